// SPDX-License-Identifier: MIT
#include <errno.h>

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
	const struct delete_records_request_partition *in;
	struct delete_records_response_partition *out;
	struct topic *topic;		/* a reference, or NULL */
	struct log *log;		/* NULL: answered already */
};

struct deletion {
	struct part *parts;
	uint32_t nparts;
	uint32_t at;			/* that is being moved */
	struct delete_records_response *answer;
	struct seen seen;
};

/* A new log start is on stable storage before it is answered: not on a loop. */
static void move_start(struct part *part)
{
	struct delete_records_response_partition *out = part->out;
	int64_t offset = part->in->offset;
	struct log_state state;
	int ret;

	ret = log_state(part->log, &state);
	if (!ret && state.state == PLOG_PARTITION_OPENING)
		ret = -EAGAIN;
	else if (!ret && state.state != PLOG_PARTITION_ONLINE)
		ret = -EROFS;
	if (!ret) {
		if (offset == DELETE_RECORDS_HIGH_WATERMARK)
			offset = state.high_watermark;
		/* the log itself judges the rest: the high watermark may move meanwhile */
		ret = offset < 0 ? -ERANGE : log_set_log_start(part->log, &offset);
	}
	out->error_code = log_error(ret);
	if (!ret)
		out->low_watermark = offset;
}

static void move_some(struct request *req)
{
	struct deletion *d = req->ctx;
	uint64_t since = uv_hrtime();

	while (d->at < d->nparts) {
		struct part *part = &d->parts[d->at++];

		if (part->log)
			move_start(part);
		if (request_turn_over(since))
			break;
	}
}

static void finish(struct request *req)
{
	struct deletion *d = req->ctx;

	for (uint32_t i = 0; i < d->nparts; i++)
		topic_put(d->parts[i].topic);
	request_answer(req, d->answer);
}

static void moved_some(struct request *req)
{
	struct deletion *d = req->ctx;

	if (d->at < d->nparts && !req->conn->closed)
		request_work(req, move_some, moved_some);
	else
		finish(req);
}

static int16_t begin_part(struct broker *b, struct part *part, struct kstr name)
{
	int32_t index = part->in->partition_index;

	part->out->partition_index = index;
	part->out->low_watermark = -1;
	part->topic = topics_find(b->topics, name);
	if (!part->topic || index < 0 || (uint32_t)index >= part->topic->partitions)
		return KERR_UNKNOWN_TOPIC_OR_PARTITION;
	if (part->topic->internal)
		return KERR_INVALID_TOPIC_EXCEPTION;
	/* what is only compacted keeps the last record of each key */
	if (!part->topic->delete)
		return KERR_POLICY_VIOLATION;
	if (!part->topic->logs[index])
		return KERR_KAFKA_STORAGE_ERROR;
	part->log = part->topic->logs[index];
	return 0;
}

/* As Kafka: of a partition that is named twice the last offset counts, in the first's place. */
static bool is_double(struct deletion *d, struct part *part)
{
	uint32_t first;

	if (!part->log)
		return false;
	first = seen_note(&d->seen, part->log, d->nparts);
	if (first == d->nparts)
		return false;
	d->parts[first].in = part->in;
	topic_put(part->topic);
	*part = (struct part){ 0 };
	return true;
}

static int begin(struct request *req, struct deletion *d)
{
	const struct delete_records_request *body = req->body;

	for (int32_t t = 0; t < d->answer->topics.n; t++) {
		const struct delete_records_request_topic *in = &body->topics.v[t];
		struct delete_records_response_topic *out = &d->answer->topics.v[t];
		int32_t count = in->partitions.n < 0 ? 0 : in->partitions.n;

		out->name = in->name;
		out->partitions.v = codec_new_array(&req->arena,
						    &schema_delete_records_response_partition,
						    count);
		if (!out->partitions.v)
			return -ENOMEM;
		for (int32_t i = 0; i < count; i++) {
			struct part *part = &d->parts[d->nparts];

			part->in = &in->partitions.v[i];
			part->out = &out->partitions.v[out->partitions.n];
			part->out->error_code = begin_part(request_broker(req), part, in->name);
			if (is_double(d, part))
				continue;
			d->nparts++;
			out->partitions.n++;
		}
	}
	return 0;
}

void handle_delete_records(struct request *req)
{
	const struct delete_records_request *body = req->body;
	struct deletion *d = arena_alloc(&req->arena, sizeof(*d));
	uint64_t n = 0;

	for (int32_t t = 0; t < body->topics.n; t++)
		if (body->topics.v[t].partitions.n > 0)
			n += body->topics.v[t].partitions.n;
	if (!d)
		goto fail;
	req->ctx = d;
	d->parts = arena_array(&req->arena, n, sizeof(*d->parts));
	d->answer = codec_new(&req->arena, &schema_delete_records_response);
	if (!d->parts || !d->answer || seen_init(&d->seen, &req->arena, n))
		goto fail;
	d->answer->topics.n = body->topics.n < 0 ? 0 : body->topics.n;
	d->answer->topics.v = codec_new_array(&req->arena, &schema_delete_records_response_topic,
					      d->answer->topics.n);
	if (!d->answer->topics.v)
		goto fail;
	if (begin(req, d)) {
		for (uint32_t i = 0; i < d->nparts; i++)
			topic_put(d->parts[i].topic);
		goto fail;
	}
	request_work(req, move_some, moved_some);
	return;
fail:
	request_fail(req, "DeleteRecords names more partitions than a request may hold in memory");
}
