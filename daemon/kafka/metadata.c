// SPDX-License-Identifier: MIT
#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/libplog/topicconfig.h"
#include "../../uapi/linux/plog.h"
#include "../broker/broker.h"
#include "../broker/change.h"
#include "../broker/topics.h"
#include "../conn.h"
#include "../listener.h"
#include "../log/log.h"
#include "../request.h"
#include "endpoint.h"
#include "error.h"
#include "schema.h"

/*
 * What a client without restrictions may do, as bits of Kafka's operations:
 * read 3, write 4, create 5, delete 6, alter 7, describe 8, cluster action 9,
 * describe configs 10, alter configs 11, idempotent write 12.
 */
#define TOPIC_OPERATIONS (1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11)
#define CLUSTER_OPERATIONS (1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12)

struct metadata {
	struct request *req;
	unsigned int pending;		/* topics that are being made */
	struct change *changes;
	unsigned int nchanges;
};

int endpoint_of(struct request *req, struct kstr *host, int32_t *port)
{
	struct conn *conn = req->conn;
	struct broker *b = request_broker(req);
	const struct config_listener *l =
		&broker_config(b)->listeners[conn->listener - b->listeners];
	char text[INET6_ADDRSTRLEN] = "127.0.0.1";
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	const char *copy;

	*port = l->advertised_port ? l->advertised_port : conn->listener->port;
	if (*l->advertised_host) {
		*host = kstr_of(l->advertised_host);
		return 0;
	}
	/* it listens everywhere: where this client has reached it, it will again */
	if (!getsockname(conn->fd, (struct sockaddr *)&own, &len)) {
		if (own.ss_family == AF_INET6)
			inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&own)->sin6_addr, text,
				  sizeof(text));
		else
			inet_ntop(AF_INET, &((struct sockaddr_in *)&own)->sin_addr, text,
				  sizeof(text));
		if (!strncmp(text, "::ffff:", 7) && strchr(text, '.'))
			memmove(text, text + 7, strlen(text + 7) + 1);
	}
	copy = arena_copy(&req->arena, text, strlen(text));
	if (!copy)
		return -1;
	*host = kstr_of(copy);
	return 0;
}

/* ---- one topic of the answer ---- */

static int fill_partitions(struct request *req, const struct topic *topic,
			   struct metadata_topic *out)
{
	struct broker *b = request_broker(req);
	/* every partition has this one broker as leader, replica and ISR: one list serves all */
	int32_t *self = arena_alloc(&req->arena, sizeof(*self));

	out->partitions.v = codec_new_array(&req->arena, &schema_metadata_partition,
					    topic->partitions);
	if (!self || !out->partitions.v)
		return -1;
	*self = b->node_id;
	out->partitions.n = topic->partitions;
	for (uint32_t i = 0; i < topic->partitions; i++) {
		struct metadata_partition *p = &out->partitions.v[i];
		struct log_state state;

		p->partition_index = i;
		p->replica_nodes.v = self;
		p->replica_nodes.n = 1;
		if (topic->logs[i] && !log_state(topic->logs[i], &state) &&
		    (state.state == PLOG_PARTITION_ONLINE ||
		     state.state == PLOG_PARTITION_FENCED)) {
			p->leader_id = b->node_id;
			p->leader_epoch = state.leader_epoch;
			p->isr_nodes.v = self;
			p->isr_nodes.n = 1;
		} else {
			p->error_code = KERR_LEADER_NOT_AVAILABLE;
			p->leader_id = -1;
			p->offline_replicas.v = self;
			p->offline_replicas.n = 1;
		}
	}
	return 0;
}

static int fill_topic(struct request *req, const struct topic *topic, struct metadata_topic *out)
{
	const struct metadata_request *body = req->body;

	out->name.p = arena_copy(&req->arena, topic->name.p, topic->name.n);
	out->name.n = topic->name.n;
	out->topic_id = topic->id;
	out->is_internal = topic->internal;
	if (body->include_topic_authorized_operations)
		out->topic_authorized_operations = TOPIC_OPERATIONS;
	return out->name.p ? fill_partitions(req, topic, out) : -1;
}

/* A topic that was asked for and is not there. */
static void fill_missing(const struct metadata_request_topic *wanted, struct metadata_topic *out)
{
	char name[DATADIR_TOPIC_MAX + 1];

	out->name = wanted->name;
	out->topic_id = wanted->topic_id;
	if (wanted->name.n < 0) {
		out->error_code = KERR_UNKNOWN_TOPIC_ID;
		return;
	}
	out->error_code = KERR_INVALID_TOPIC_EXCEPTION;
	if (wanted->name.n < 1 || wanted->name.n > DATADIR_TOPIC_MAX ||
	    memchr(wanted->name.p, 0, wanted->name.n))
		return;
	memcpy(name, wanted->name.p, wanted->name.n);
	name[wanted->name.n] = 0;
	if (!datadir_topic_name_check(name, NULL))
		out->error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
}

static bool all_wanted(const struct request *req)
{
	const struct metadata_request *body = req->body;

	return req->header.version ? body->topics.n < 0 : body->topics.n <= 0;
}

static int fill_all(struct request *req, struct metadata_response *answer)
{
	size_t count;
	struct topic **all = topics_all(request_broker(req)->topics, &count);
	int ret = all ? 0 : -1;

	if (all)
		answer->topics.v = codec_new_array(&req->arena, &schema_metadata_topic, count);
	if (!answer->topics.v)
		ret = -1;
	for (size_t i = 0; !ret && i < count; i++)
		ret = fill_topic(req, all[i], &answer->topics.v[i]);
	answer->topics.n = count;
	topics_all_free(all, count);
	return ret;
}

static int fill_wanted(struct request *req, struct metadata_response *answer)
{
	const struct metadata_request *body = req->body;
	struct topics *topics = request_broker(req)->topics;
	int32_t n = body->topics.n < 0 ? 0 : body->topics.n;

	answer->topics.v = codec_new_array(&req->arena, &schema_metadata_topic, n);
	if (!answer->topics.v)
		return -1;
	answer->topics.n = n;
	for (int32_t i = 0; i < n; i++) {
		const struct metadata_request_topic *wanted = &body->topics.v[i];
		struct topic *topic;
		int ret;

		topic = wanted->name.n >= 0 ? topics_find(topics, wanted->name) :
					      topics_find_id(topics, &wanted->topic_id);
		if (!topic) {
			fill_missing(wanted, &answer->topics.v[i]);
			continue;
		}
		ret = fill_topic(req, topic, &answer->topics.v[i]);
		topic_put(topic);
		if (ret)
			return ret;
	}
	return 0;
}

static void answer_now(struct request *req)
{
	const struct metadata_request *body = req->body;
	struct broker *b = request_broker(req);
	struct metadata_response *answer;
	struct metadata_broker *self;
	struct kstr host;
	int32_t port;

	if (req->conn->closed) {
		request_silent(req);
		return;
	}
	answer = codec_new(&req->arena, &schema_metadata_response);
	self = codec_new_array(&req->arena, &schema_metadata_broker, 1);
	if (!answer || !self || endpoint_of(req, &host, &port))
		goto fail;
	self->node_id = b->node_id;
	self->host = host;
	self->port = port;
	self->rack = kstr_of(broker_config(b)->rack);
	answer->brokers.v = self;
	answer->brokers.n = 1;
	answer->cluster_id = kstr_of(b->cluster_id);
	answer->controller_id = b->node_id;
	if (body->include_cluster_authorized_operations)
		answer->cluster_authorized_operations = CLUSTER_OPERATIONS;
	if (all_wanted(req) ? fill_all(req, answer) : fill_wanted(req, answer))
		goto fail;
	request_answer(req, answer);
	return;
fail:
	request_fail(req, "the answer to Metadata needs more memory than a request may have");
}

/* ---- automatic creation ---- */

static void created(struct change *change)
{
	struct metadata *m = change->arg;

	if (--m->pending)
		return;
	/* whatever came of it, the table tells */
	for (unsigned int i = 0; i < m->nchanges; i++)
		change_clear(&m->changes[i]);
	answer_now(m->req);
}

/* Is it missing, and may it be made by asking? */
static bool to_create(struct request *req, const struct metadata_request_topic *wanted)
{
	struct metadata_topic probe = { 0 };
	struct topic *topic;

	if (wanted->name.n < 0)
		return false;
	topic = topics_find(request_broker(req)->topics, wanted->name);
	if (topic) {
		topic_put(topic);
		return false;
	}
	fill_missing(wanted, &probe);
	/* Kafka's own topics have a form that only their owners can give them */
	return probe.error_code == KERR_UNKNOWN_TOPIC_OR_PARTITION &&
	       !(wanted->name.n > 2 && !memcmp(wanted->name.p, "__", 2));
}

/* Begin to make what is missing: 1 if there is something to wait for. */
static int create_missing(struct request *req)
{
	const struct metadata_request *body = req->body;
	struct broker *b = request_broker(req);
	struct metadata *m;
	int32_t n = 0;

	for (int32_t i = 0; i < body->topics.n; i++)
		n += to_create(req, &body->topics.v[i]);
	if (!n)
		return 0;
	m = arena_alloc(&req->arena, sizeof(*m));
	if (!m)
		return -1;
	m->changes = arena_array(&req->arena, n, sizeof(*m->changes));
	if (!m->changes)
		return -1;
	m->req = req;
	for (int32_t i = 0; i < body->topics.n && m->nchanges < (unsigned int)n; i++) {
		const struct metadata_request_topic *wanted = &body->topics.v[i];
		struct change *change;

		if (!to_create(req, wanted))
			continue;
		change = &m->changes[m->nchanges++];
		change_init(change, CHANGE_CREATE, wanted->name.p, wanted->name.n);
		change->partitions = broker_config(b)->num_partitions;
		change->loop = request_loop(req);
		change->done = created;
		change->arg = m;
	}
	/* before the first is submitted: they come back on this loop, not now */
	m->pending = m->nchanges;
	for (unsigned int i = 0; i < m->nchanges; i++)
		changes_submit(b->changes, &m->changes[i]);
	return m->nchanges > 0;
}

void handle_metadata(struct request *req)
{
	const struct metadata_request *body = req->body;
	int ret;

	for (int32_t i = 0; i < body->topics.n; i++)
		if (body->topics.v[i].name.n < 0 && req->header.version < 12) {
			request_fail(req, "Metadata version %d with a null topic name",
				     req->header.version);
			return;
		}
	if (!all_wanted(req) && body->allow_auto_topic_creation &&
	    broker_config(request_broker(req))->auto_create) {
		ret = create_missing(req);
		if (ret < 0)
			request_fail(req, "Metadata asks for more topics than a request may hold "
				     "in memory");
		if (ret)
			return;
	}
	answer_now(req);
}
