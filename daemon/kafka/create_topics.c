// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "../../tools/libplog/topicconfig.h"
#include "../broker/broker.h"
#include "../broker/change.h"
#include "../broker/topics.h"
#include "../conn.h"
#include "../request.h"
#include "error.h"
#include "schema.h"

struct create {
	struct request *req;
	struct create_topics_response *answer;
	struct change *changes;		/* one for each topic of the request */
	bool *submitted;
	uint32_t pending;
};

static void wrong(struct request *req, struct create_topics_response_topic *out, int16_t error,
		  const char *text)
{
	const char *copy = arena_copy(&req->arena, text, strlen(text));

	out->error_code = error;
	out->error_message = kstr_of(copy);
}

/* ---- answer ---- */

/* Every configuration of the topic, with where its value comes from. */
static int fill_configs(struct request *req, const struct properties *set,
			struct create_topics_response_topic *out)
{
	const struct properties *defaults = &broker_config(request_broker(req))->topic_defaults;
	size_t count;
	const struct topicconfig_key *keys = topicconfig_keys(&count);

	out->configs.v = codec_new_array(&req->arena, &schema_create_topics_result_config, count);
	if (!out->configs.v)
		return -1;
	out->configs.n = count;
	for (size_t i = 0; i < count; i++) {
		struct create_topics_result_config *c = &out->configs.v[i];
		const char *value = topicconfig_value(set, defaults, keys[i].name);
		const char *copy = value ? arena_copy(&req->arena, value, strlen(value)) : NULL;

		c->name = kstr_of(keys[i].name);
		c->value = kstr_of(copy);
		c->config_source = properties_get(set, keys[i].name) ? 1 :
				   properties_get(defaults, keys[i].name) ? 4 : 5;
	}
	return 0;
}

static void finish(struct create *c)
{
	struct request *req = c->req;
	const struct create_topics_request *body = req->body;
	int ret = 0;

	for (int32_t i = 0; i < c->answer->topics.n; i++) {
		struct create_topics_response_topic *out = &c->answer->topics.v[i];
		struct change *change = &c->changes[i];

		if (!c->submitted[i])
			continue;
		if (change->error) {
			wrong(req, out, change->error, change->text);
		} else {
			out->num_partitions = change->partitions;
			out->replication_factor = 1;
			if (change->topic)
				out->topic_id = change->topic->id;
			if (req->header.version >= 5)
				ret |= fill_configs(req, &change->set, out);
		}
	}
	for (int32_t i = 0; i < body->topics.n; i++)
		change_clear(&c->changes[i]);
	if (ret)
		request_fail(req, "the answer to CreateTopics needs more memory than a request may "
			     "have");
	else
		request_answer(req, c->answer);
}

static void created(struct change *change)
{
	struct create *c = change->arg;

	if (!--c->pending)
		finish(c);
}

/* ---- what is wanted ---- */

/* Partitions by an assignment that names their replicas: there is one broker to name. */
static bool check_assignments(struct request *req, const struct create_topics_request_topic *in,
			      struct create_topics_response_topic *out, int64_t *partitions)
{
	int32_t n = in->assignments.n;
	bool *seen;

	if (in->num_partitions != -1 || in->replication_factor != -1) {
		wrong(req, out, KERR_INVALID_REQUEST, "With a replica assignment, the number of "
		      "partitions and the replication factor must be -1.");
		return false;
	}
	seen = arena_array(&req->arena, n, sizeof(*seen));
	if (!seen) {
		wrong(req, out, KERR_INVALID_REPLICA_ASSIGNMENT, "Too many partitions.");
		return false;
	}
	for (int32_t i = 0; i < n; i++) {
		const struct create_topics_assignment *a = &in->assignments.v[i];

		if (a->partition_index < 0 || a->partition_index >= n || seen[a->partition_index]) {
			wrong(req, out, KERR_INVALID_REPLICA_ASSIGNMENT, "The partitions of a "
			      "replica assignment must be 0, 1, 2 and so on, each once.");
			return false;
		}
		seen[a->partition_index] = true;
		if (a->broker_ids.n != 1 ||
		    a->broker_ids.v[0] != request_broker(req)->node_id) {
			wrong(req, out, KERR_INVALID_REPLICA_ASSIGNMENT, "This broker is alone: a "
			      "replica assignment must name it and no other.");
			return false;
		}
	}
	*partitions = n;
	return true;
}

static bool check_counts(struct request *req, const struct create_topics_request_topic *in,
			 struct create_topics_response_topic *out, int64_t *partitions)
{
	const struct config *config = broker_config(request_broker(req));

	if (in->assignments.n > 0)
		return check_assignments(req, in, out, partitions);
	*partitions = in->num_partitions == -1 ? config->num_partitions : in->num_partitions;
	if (*partitions < 1) {
		wrong(req, out, KERR_INVALID_PARTITIONS, "The number of partitions must be at "
		      "least 1, or -1 for the broker's default.");
		return false;
	}
	if (in->replication_factor != 1 && in->replication_factor != -1) {
		wrong(req, out, KERR_INVALID_REPLICATION_FACTOR, in->replication_factor < 1 ?
		      "The replication factor must be at least 1, or -1 for the default." :
		      "The replication factor is larger than the number of brokers: 1.");
		return false;
	}
	return true;
}

static bool take_configs(struct request *req, const struct create_topics_request_topic *in,
			 struct create_topics_response_topic *out, struct properties *set)
{
	for (int32_t i = 0; i < in->configs.n; i++) {
		const struct create_topics_config *c = &in->configs.v[i];
		char *key, *value;

		if (c->value.n < 0) {
			wrong(req, out, KERR_INVALID_CONFIG, "A configuration has no value.");
			return false;
		}
		/* copies end with a NUL; one inside would hide what follows it */
		key = arena_copy(&req->arena, c->name.p, c->name.n);
		value = arena_copy(&req->arena, c->value.p, c->value.n);
		if (!key || !value || strlen(key) != (size_t)c->name.n ||
		    strlen(value) != (size_t)c->value.n || topicconfig_set(set, key, value)) {
			wrong(req, out, KERR_INVALID_CONFIG, "A configuration cannot be read.");
			return false;
		}
	}
	return true;
}

static int by_name(const void *a, const void *b)
{
	const struct create_topics_request_topic *x = *(void *const *)a, *y = *(void *const *)b;
	int32_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
	int d = n > 0 ? memcmp(x->name.p, y->name.p, n) : 0;

	return d ? d : (x->name.n > y->name.n) - (x->name.n < y->name.n);
}

/* Names that stand there twice are refused, all of them. */
static int refuse_doubles(struct request *req, struct create *c)
{
	const struct create_topics_request *body = req->body;
	int32_t n = c->answer->topics.n;
	const struct create_topics_request_topic **sorted;

	sorted = arena_array(&req->arena, n, sizeof(*sorted));
	if (!sorted)
		return -1;
	for (int32_t i = 0; i < n; i++)
		sorted[i] = &body->topics.v[i];
	qsort(sorted, n, sizeof(*sorted), by_name);
	for (int32_t i = 1; i < n; i++) {
		if (!kstr_eq(sorted[i]->name, sorted[i - 1]->name))
			continue;
		for (int32_t k = i - 1; k <= i; k++)
			wrong(req, &c->answer->topics.v[sorted[k] - body->topics.v],
			      KERR_INVALID_REQUEST, "The request names this topic twice.");
	}
	return 0;
}

void handle_create_topics(struct request *req)
{
	const struct create_topics_request *body = req->body;
	struct broker *b = request_broker(req);
	struct create *c = arena_alloc(&req->arena, sizeof(*c));
	int32_t n = body->topics.n < 0 ? 0 : body->topics.n;

	if (!c)
		goto fail;
	c->req = req;
	c->answer = codec_new(&req->arena, &schema_create_topics_response);
	c->changes = arena_array(&req->arena, n, sizeof(*c->changes));
	c->submitted = arena_array(&req->arena, n, sizeof(*c->submitted));
	if (!c->answer || !c->changes || !c->submitted)
		goto fail;
	c->answer->topics.v = codec_new_array(&req->arena, &schema_create_topics_response_topic, n);
	if (!c->answer->topics.v)
		goto fail;
	c->answer->topics.n = n;
	if (refuse_doubles(req, c))
		goto fail;
	for (int32_t i = 0; i < n; i++) {
		const struct create_topics_request_topic *in = &body->topics.v[i];
		struct create_topics_response_topic *out = &c->answer->topics.v[i];
		struct change *change = &c->changes[i];

		out->name = in->name;
		out->configs.n = 0;
		if (!out->error_code)
			out->error_message = KSTR_NULL;
		change_init(change, CHANGE_CREATE, in->name.p, in->name.n < 0 ? 0 : in->name.n);
		if (out->error_code)
			continue;
		if (in->name.n > DATADIR_TOPIC_MAX || in->name.n < 1 ||
		    memchr(in->name.p, 0, in->name.n)) {
			wrong(req, out, KERR_INVALID_TOPIC_EXCEPTION, "A topic name has 1 to 249 "
			      "characters of a-z, A-Z, 0-9, '.', '_' and '-'.");
			continue;
		}
		if (!check_counts(req, in, out, &change->partitions) ||
		    !take_configs(req, in, out, &change->set))
			continue;
		change->validate_only = body->validate_only;
		change->loop = request_loop(req);
		change->done = created;
		change->arg = c;
		c->submitted[i] = true;
		c->pending++;
	}
	if (!c->pending) {
		finish(c);
		return;
	}
	/* they come back on this loop, so not before this has returned */
	for (int32_t i = 0; i < n; i++)
		if (c->submitted[i])
			changes_submit(b->changes, &c->changes[i]);
	return;
fail:
	request_fail(req, "CreateTopics names more topics than a request may hold in memory");
}
