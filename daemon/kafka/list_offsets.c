// SPDX-License-Identifier: MIT
#include "../../uapi/linux/plog.h"
#include "../broker/broker.h"
#include "../broker/topics.h"
#include "../conn.h"
#include "../log/log.h"
#include "../request.h"
#include "error.h"
#include "schema.h"
#include "seen.h"

struct part {
	const struct list_offsets_request_partition *in;
	struct list_offsets_response_partition *out;
	struct topic *topic;		/* a reference, or NULL */
	struct log *log;		/* NULL: answered already */
	struct log_state state;
};

struct offsets {
	struct part *parts;
	uint32_t nparts;
	uint32_t at;			/* that is being searched */
	struct list_offsets_response *answer;
	struct seen seen;
	bool stable;
};

static void search(struct request *req, struct offsets *o, struct part *part)
{
	struct list_offsets_response_partition *out = part->out;
	bool max = part->in->timestamp == LIST_OFFSETS_MAX_TIMESTAMP;
	int64_t end = o->stable ? part->state.last_stable : part->state.high_watermark;
	int64_t timestamp = max ? 0 : part->in->timestamp;
	struct log_hit hit = { .offset = -1, .timestamp = -1, .leader_epoch = -1 };
	int ret;

	ret = log_find_time(part->log, timestamp, max,
			    o->stable ? LOG_END_STABLE : LOG_END_COMMITTED, &req->abandoned,
			    &hit);
	if (ret) {
		out->error_code = log_error(ret);
		return;
	}
	if (hit.offset < 0 || hit.offset >= end)
		return;		/* nothing found: -1, -1 and no error */
	out->offset = hit.offset;
	out->timestamp = hit.timestamp;
	out->leader_epoch = hit.leader_epoch;
}

static void finish(struct request *req)
{
	struct offsets *o = req->ctx;

	for (uint32_t i = 0; i < o->nparts; i++)
		topic_put(o->parts[i].topic);
	request_answer(req, o->answer);
}

static void search_some(struct request *req)
{
	struct offsets *o = req->ctx;
	uint64_t since = uv_hrtime();

	/* a compressed batch takes seconds to look through: one, or what is done in a moment */
	do {
		if (o->parts[o->at].log)
			search(req, o, &o->parts[o->at]);
	} while (++o->at < o->nparts && !request_turn_over(since));
}

static void searched_some(struct request *req)
{
	struct offsets *o = req->ctx;

	if (o->at < o->nparts && !req->conn->closed)
		request_work(req, search_some, searched_some);
	else
		finish(req);
}

/* What needs no search; leaves part->log set where one is needed. */
static int16_t answer_simple(struct request *req, struct offsets *o, struct part *part)
{
	const struct list_offsets_request *body = req->body;
	struct list_offsets_response_partition *out = part->out;
	const struct log_state *state = &part->state;
	struct log *log = part->topic->logs[part->in->partition_index];
	int16_t version = req->header.version;
	int64_t at = part->in->timestamp;

	if (body->replica_id >= 0)
		return KERR_NOT_LEADER_OR_FOLLOWER;
	if (!log)
		return KERR_KAFKA_STORAGE_ERROR;
	if (log_state(log, &part->state))
		return KERR_UNKNOWN_TOPIC_OR_PARTITION;
	if (state->state == PLOG_PARTITION_OPENING)
		return KERR_NOT_LEADER_OR_FOLLOWER;
	if (state->state != PLOG_PARTITION_ONLINE && state->state != PLOG_PARTITION_FENCED)
		return KERR_KAFKA_STORAGE_ERROR;
	if (part->in->current_leader_epoch >= 0 &&
	    part->in->current_leader_epoch < state->leader_epoch)
		return KERR_FENCED_LEADER_EPOCH;
	if (part->in->current_leader_epoch > state->leader_epoch)
		return KERR_UNKNOWN_LEADER_EPOCH;
	if (at < LIST_OFFSETS_EARLIEST_PENDING_UPLOAD ||
	    (at == LIST_OFFSETS_MAX_TIMESTAMP && version < 7) ||
	    (at == LIST_OFFSETS_EARLIEST_LOCAL && version < 8) ||
	    (at == LIST_OFFSETS_LATEST_TIERED && version < 9) ||
	    (at == LIST_OFFSETS_EARLIEST_PENDING_UPLOAD && version < 11))
		return KERR_UNSUPPORTED_VERSION;
	switch (at) {
	case LIST_OFFSETS_LATEST:
		out->offset = o->stable ? state->last_stable : state->high_watermark;
		out->leader_epoch = state->leader_epoch;
		break;
	case LIST_OFFSETS_EARLIEST:
	case LIST_OFFSETS_EARLIEST_LOCAL:
		/* nothing is ever moved elsewhere: what is local is all */
		out->offset = state->log_start;
		out->leader_epoch = log_epoch_at(log, state->log_start);
		break;
	case LIST_OFFSETS_LATEST_TIERED:
	case LIST_OFFSETS_EARLIEST_PENDING_UPLOAD:
		break;
	default:
		part->log = log;
	}
	return 0;
}

static void refuse(struct part *part, int16_t error)
{
	part->out->error_code = error;
	part->out->timestamp = -1;
	part->out->offset = -1;
	part->out->leader_epoch = -1;
	part->log = NULL;
}

static void begin_part(struct request *req, struct offsets *o, struct part *part,
		       struct kstr name)
{
	struct broker *b = request_broker(req);
	int32_t index = part->in->partition_index;
	uint32_t at = part - o->parts, first = at;
	int16_t error;

	part->out->partition_index = index;
	refuse(part, 0);
	part->topic = topics_find(b->topics, name);
	if (!part->topic || index < 0 || (uint32_t)index >= part->topic->partitions) {
		refuse(part, KERR_UNKNOWN_TOPIC_OR_PARTITION);
		return;
	}
	/* as Kafka: a partition that is named twice is refused, each time */
	if (part->topic->logs[index])
		first = seen_note(&o->seen, part->topic->logs[index], at);
	if (first != at) {
		refuse(&o->parts[first], KERR_INVALID_REQUEST);
		refuse(part, KERR_INVALID_REQUEST);
		return;
	}
	error = answer_simple(req, o, part);
	if (error)
		refuse(part, error);
}

void handle_list_offsets(struct request *req)
{
	const struct list_offsets_request *body = req->body;
	struct offsets *o = arena_alloc(&req->arena, sizeof(*o));
	uint64_t n = 0;

	for (int32_t t = 0; t < body->topics.n; t++)
		if (body->topics.v[t].partitions.n > 0)
			n += body->topics.v[t].partitions.n;
	if (!o)
		goto fail;
	req->ctx = o;
	o->stable = body->isolation_level != 0;
	o->parts = arena_array(&req->arena, n, sizeof(*o->parts));
	o->answer = codec_new(&req->arena, &schema_list_offsets_response);
	if (!o->parts || !o->answer || seen_init(&o->seen, &req->arena, n))
		goto fail;
	o->answer->topics.n = body->topics.n < 0 ? 0 : body->topics.n;
	o->answer->topics.v = codec_new_array(&req->arena, &schema_list_offsets_response_topic,
					      o->answer->topics.n);
	if (!o->answer->topics.v)
		goto fail;
	for (int32_t t = 0; t < o->answer->topics.n; t++) {
		const struct list_offsets_request_topic *in = &body->topics.v[t];
		struct list_offsets_response_topic *out = &o->answer->topics.v[t];
		int32_t count = in->partitions.n < 0 ? 0 : in->partitions.n;

		out->name = in->name;
		out->partitions.n = count;
		out->partitions.v = codec_new_array(&req->arena,
						    &schema_list_offsets_response_partition,
						    count);
		if (!out->partitions.v) {
			for (uint32_t i = 0; i < o->nparts; i++)
				topic_put(o->parts[i].topic);
			goto fail;
		}
		for (int32_t i = 0; i < count; i++) {
			struct part *part = &o->parts[o->nparts++];

			part->in = &in->partitions.v[i];
			part->out = &out->partitions.v[i];
			begin_part(req, o, part, in->name);
		}
	}
	for (uint32_t i = 0; i < o->nparts; i++)
		if (o->parts[i].log) {
			request_work(req, search_some, searched_some);
			return;
		}
	finish(req);
	return;
fail:
	request_fail(req, "ListOffsets names more partitions than a request may hold in memory");
}
