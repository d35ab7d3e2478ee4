// SPDX-License-Identifier: MIT
#include <string.h>

#include "../broker/broker.h"
#include "../broker/change.h"
#include "../broker/topics.h"
#include "../conn.h"
#include "../request.h"
#include "error.h"
#include "schema.h"
#include "seen.h"

struct delete {
	struct delete_topics_response *answer;
	struct request *req;
	struct change *changes;
	bool *submitted;
	uint32_t pending;
	struct seen seen;
};

static void wrong(struct delete_topics_response_topic *out, int16_t error, const char *text)
{
	out->error_code = error;
	out->error_message = kstr_of(text ? text : error_text(error));
}

static void finish(struct delete *d)
{
	for (int32_t i = 0; i < d->answer->topics.n; i++) {
		struct change *change = &d->changes[i];

		if (!d->submitted[i])
			continue;
		if (change->error)
			wrong(&d->answer->topics.v[i], change->error,
			      arena_copy(&d->req->arena, change->text, strlen(change->text)));
		change_clear(change);
	}
	request_answer(d->req, d->answer);
}

static void deleted(struct change *change)
{
	struct delete *d = change->arg;

	if (!--d->pending)
		finish(d);
}

/*
 * Which topic is meant: fills name and id of @out. A reference, or NULL and @out has an error
 * instead.
 */
static struct topic *find(struct request *req, struct kstr name, const struct kuuid *id,
		 struct delete_topics_response_topic *out)
{
	struct topics *topics = request_broker(req)->topics;
	struct topic *topic;
	char *copy;

	out->name = name;
	out->topic_id = *id;
	if ((name.n >= 0) == !kuuid_is_zero(id)) {
		wrong(out, KERR_INVALID_REQUEST, "Name a topic either by its name or by its id.");
		return NULL;
	}
	topic = name.n >= 0 ? topics_find(topics, name) : topics_find_id(topics, id);
	if (!topic) {
		wrong(out, name.n >= 0 ? KERR_UNKNOWN_TOPIC_OR_PARTITION : KERR_UNKNOWN_TOPIC_ID,
		      NULL);
		return NULL;
	}
	copy = arena_copy(&req->arena, topic->name.p, topic->name.n);
	out->name = kstr_of(copy);
	out->topic_id = topic->id;
	if (!copy) {
		topic_put(topic);
		wrong(out, KERR_UNKNOWN_SERVER_ERROR, NULL);
		return NULL;
	}
	return topic;
}

/* As Kafka: of a topic that is named twice, be it once by its id, no naming deletes it. */
static bool refuse_double(struct delete *d, const struct topic *topic, uint32_t at)
{
	static const char why[] = "The request names this topic twice.";
	uint32_t first = seen_note(&d->seen, topic, at);

	if (first == at)
		return false;
	wrong(&d->answer->topics.v[first], KERR_INVALID_REQUEST, why);
	wrong(&d->answer->topics.v[at], KERR_INVALID_REQUEST, why);
	d->pending -= d->submitted[first];
	d->submitted[first] = false;
	return true;
}

void handle_delete_topics(struct request *req)
{
	static const struct kuuid no_id;
	const struct delete_topics_request *body = req->body;
	struct broker *b = request_broker(req);
	struct delete *d = arena_alloc(&req->arena, sizeof(*d));
	struct topic **topics;
	bool states = req->header.version >= 6;
	int32_t n = states ? body->topics.n : body->topic_names.n;

	if (n < 0)
		n = 0;
	if (!d)
		goto fail;
	d->req = req;
	d->answer = codec_new(&req->arena, &schema_delete_topics_response);
	d->changes = arena_array(&req->arena, n, sizeof(*d->changes));
	d->submitted = arena_array(&req->arena, n, sizeof(*d->submitted));
	topics = arena_array(&req->arena, n, sizeof(*topics));
	if (!d->answer || !d->changes || !d->submitted || !topics ||
	    seen_init(&d->seen, &req->arena, n))
		goto fail;
	d->answer->topics.v = codec_new_array(&req->arena, &schema_delete_topics_response_topic, n);
	if (!d->answer->topics.v)
		goto fail;
	d->answer->topics.n = n;
	for (int32_t i = 0; i < n; i++) {
		struct delete_topics_response_topic *out = &d->answer->topics.v[i];
		struct kstr name = states ? body->topics.v[i].name : body->topic_names.v[i];
		struct change *change = &d->changes[i];

		if (!broker_config(b)->delete_enable) {
			out->name = name;
			wrong(out, req->header.version >= 3 ? KERR_TOPIC_DELETION_DISABLED :
							      KERR_INVALID_REQUEST,
			      "delete.topic.enable is false on this broker.");
			continue;
		}
		topics[i] = find(req, name, states ? &body->topics.v[i].topic_id : &no_id, out);
		if (!topics[i] || refuse_double(d, topics[i], i))
			continue;
		change_init(change, CHANGE_DELETE, out->name.p, out->name.n);
		if (states)
			change->id = body->topics.v[i].topic_id;
		change->loop = request_loop(req);
		change->done = deleted;
		change->arg = d;
		d->submitted[i] = true;
		d->pending++;
	}
	/* they were the keys of @seen */
	for (int32_t i = 0; i < n; i++)
		topic_put(topics[i]);
	if (!d->pending) {
		finish(d);
		return;
	}
	/* they come back on this loop, so not before this has returned */
	for (int32_t i = 0; i < n; i++)
		if (d->submitted[i])
			changes_submit(b->changes, &d->changes[i]);
	return;
fail:
	request_fail(req, "DeleteTopics names more topics than a request may hold in memory");
}
