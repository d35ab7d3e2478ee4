// SPDX-License-Identifier: MIT
#include <time.h>

#include "../broker/broker.h"
#include "../broker/topics.h"
#include "../conn.h"
#include "../log/appender.h"
#include "../log/log.h"
#include "../log/records.h"
#include "../request.h"
#include "error.h"
#include "schema.h"

/* Records that are checked on the loop itself: about a tenth of a millisecond of work. */
#define CHECK_INLINE_MAX (64 << 10)
/* Bytes of records between two turns of the thread pool: a huge batch waits, others do not. */
#define CHECK_STEP (4 << 20)

/*
 * A Produce: check every batch (here or in the thread pool), then append, partition by
 * partition, on the threads that own them, then answer.
 */
struct part {
	struct produce_response_partition *out;
	const struct produce_request_partition *in;
	struct topic *topic;		/* a reference, or NULL */
	struct log *log;		/* NULL: out->error_code says why */
	unsigned int owner;
	bool checking;			/* @check was begun */
	bool checked;
	struct records_check check;
};

struct produce {
	struct request *req;
	struct part *parts;
	uint32_t nparts;
	uint32_t at;			/* that is being checked */
	unsigned int appender;		/* that appends now */
	struct task task;
	struct produce_response *answer;
};

static int64_t wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* ---- the end ---- */

static void release(struct produce *p)
{
	for (uint32_t i = 0; i < p->nparts; i++) {
		if (p->parts[i].checking)
			records_check_end(&p->parts[i].check);
		topic_put(p->parts[i].topic);
	}
}

/* acks=0: the client learns of an error by the end of its connection, as with Kafka. */
static void end_silent(struct produce *p)
{
	const struct produce_request *body = p->req->body;
	uint32_t at = 0;

	for (int32_t t = 0; t < body->topics.n; t++)
		for (int32_t i = 0; i < body->topics.v[t].partitions.n; i++) {
			struct part *part = &p->parts[at++];
			int16_t error = part->out->error_code;
			struct kstr name = body->topics.v[t].name;

			if (!error)
				continue;
			release(p);
			request_fail(p->req, "Produce with acks=0 to %.*s-%d failed: %s",
				     name.n, name.p, part->in->index, error_name(error));
			return;
		}
	release(p);
	request_silent(p->req);
}

static void finish(struct produce *p)
{
	const struct produce_request *body = p->req->body;

	if (!body->acks) {
		end_silent(p);
		return;
	}
	release(p);
	request_answer(p->req, p->answer);
}

/* ---- append ---- */

static void take_errors(struct request *req, struct part *part)
{
	struct produce_response_partition *out = part->out;
	const struct records_check *c = &part->check;

	out->error_code = c->error;
	if (c->text)
		out->error_message = kstr_of(c->text);
	if (!c->nbad)
		return;
	out->record_errors.v = codec_new_array(&req->arena, &schema_produce_record_error, c->nbad);
	if (!out->record_errors.v)
		return;
	out->record_errors.n = c->nbad;
	for (int32_t i = 0; i < c->nbad; i++) {
		out->record_errors.v[i].batch_index = c->bad[i].index;
		out->record_errors.v[i].message = kstr_of(c->bad[i].text);
	}
}

static void append_part(struct part *part)
{
	struct produce_response_partition *out = part->out;
	struct log_append a = { .base_offset = -1, .log_append_time = -1, .log_start = -1 };

	/* the bytes are this request's, or the check's own, and nobody reads them after this */
	out->error_code = log_append(part->log, (uint8_t *)part->check.data, part->check.size, &a);
	if (out->error_code) {
		out->error_message = kstr_of(error_text(out->error_code));
		return;
	}
	out->base_offset = a.base_offset;
	out->log_append_time_ms = a.log_append_time;
	out->log_start_offset = a.log_start;
}

static void go_home(struct task *task)
{
	finish(container_of(task, struct produce, task));
}

static void append_here(struct task *task);

/* On from one to the next, until each owner has had its turn. */
static void next_owner(struct produce *p)
{
	struct broker *b = request_broker(p->req);

	while (++p->appender < b->nloops)
		for (uint32_t i = 0; i < p->nparts; i++)
			if (p->parts[i].log && p->parts[i].owner == p->appender) {
				p->task.run = append_here;
				appender_post(b->appenders, p->appender, &p->task);
				return;
			}
	p->task.run = go_home;
	loop_post(request_loop(p->req), &p->task);
}

static void append_here(struct task *task)
{
	struct produce *p = container_of(task, struct produce, task);

	for (uint32_t i = 0; i < p->nparts; i++)
		if (p->parts[i].log && p->parts[i].owner == p->appender)
			append_part(&p->parts[i]);
	next_owner(p);
}

static void start_append(struct produce *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->nparts; i++) {
		struct part *part = &p->parts[i];

		if (!part->log)
			continue;
		if (part->check.error) {
			take_errors(p->req, part);
			part->log = NULL;
		} else {
			any = true;
		}
	}
	if (!any) {
		finish(p);
		return;
	}
	p->appender = -1;
	next_owner(p);
}

/* ---- check ---- */

static void check_some(struct request *req)
{
	struct produce *p = req->ctx;

	for (; p->at < p->nparts; p->at++) {
		struct part *part = &p->parts[p->at];

		if (part->log && !part->checked) {
			if (!records_check_run(&part->check, CHECK_STEP))
				return;
			part->checked = true;
		}
	}
}

static void checked_some(struct request *req)
{
	struct produce *p = req->ctx;

	if (p->at == p->nparts) {
		start_append(p);
	} else if (req->conn->closed) {
		/* nothing was promised, and nobody is there any more whom to promise */
		release(p);
		request_silent(req);
	} else {
		/* back to the end of the pool's queue, so that others have their turn */
		request_work(req, check_some, checked_some);
	}
}

static void start_check(struct produce *p)
{
	size_t bytes = 0;
	bool pool = false;

	for (uint32_t i = 0; i < p->nparts; i++) {
		struct part *part = &p->parts[i];
		struct records_rules rules;
		int64_t n = part->in->records.n < 0 ? 0 : part->in->records.n;

		if (!part->log)
			continue;
		records_rules_init(&rules, wall_ms());
		rules.before_max_ms = part->topic->before_max_ms;
		rules.after_max_ms = part->topic->after_max_ms;
		rules.max_message_bytes = part->topic->max_message_bytes;
		rules.log_append_time = part->topic->log_append_time;
		rules.compact = part->topic->compact;
		rules.codec = part->topic->codec;
		rules.level = part->topic->codec_level;
		rules.zstd = p->req->header.version >= 7;
		records_check_init(&part->check, (uint8_t *)part->in->records.p, n, &rules,
				   &p->req->arena);
		part->checking = true;
		bytes += n;
		pool |= records_check_is_long(&part->check);
	}
	if (pool || bytes > CHECK_INLINE_MAX) {
		request_work(p->req, check_some, checked_some);
		return;
	}
	do {
		check_some(p->req);
	} while (p->at < p->nparts);
	start_append(p);
}

/* ---- begin ---- */

/* Where the records go to, or why they cannot. */
static void aim(struct produce *p, struct part *part, const struct produce_request_topic *in)
{
	const struct produce_request *body = p->req->body;
	struct broker *b = request_broker(p->req);

	part->out->index = part->in->index;
	part->out->base_offset = -1;
	part->out->error_message = KSTR_NULL;
	if (body->acks < -1 || body->acks > 1) {
		part->out->error_code = KERR_INVALID_REQUIRED_ACKS;
		return;
	}
	if (p->req->header.version >= 13)
		part->topic = topics_find_id(b->topics, &in->topic_id);
	else
		part->topic = topics_find(b->topics, in->name);
	if (!part->topic && p->req->header.version >= 13) {
		part->out->error_code = KERR_UNKNOWN_TOPIC_ID;
		return;
	}
	if (!part->topic || part->in->index < 0 ||
	    (uint32_t)part->in->index >= part->topic->partitions) {
		part->out->error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
		return;
	}
	if (part->topic->internal) {
		part->out->error_code = KERR_INVALID_TOPIC_EXCEPTION;
		return;
	}
	if (body->acks == -1 && part->topic->min_insync > 1) {
		part->out->error_code = KERR_NOT_ENOUGH_REPLICAS;
		return;
	}
	part->log = part->topic->logs[part->in->index];
	if (!part->log)
		part->out->error_code = KERR_KAFKA_STORAGE_ERROR;
	else
		part->owner = log_owner(part->log, b->nloops);
}

void handle_produce(struct request *req)
{
	const struct produce_request *body = req->body;
	struct produce *p = arena_alloc(&req->arena, sizeof(*p));
	uint64_t n = 0;
	uint32_t at = 0;

	for (int32_t t = 0; t < body->topics.n; t++)
		n += body->topics.v[t].partitions.n < 0 ? 0 : body->topics.v[t].partitions.n;
	if (p) {
		p->req = req;
		p->parts = arena_array(&req->arena, n, sizeof(*p->parts));
		p->answer = codec_new(&req->arena, &schema_produce_response);
	}
	if (!p || !p->parts || !p->answer)
		goto fail;
	req->ctx = p;
	p->answer->topics.n = body->topics.n < 0 ? 0 : body->topics.n;
	p->answer->topics.v = codec_new_array(&req->arena, &schema_produce_response_topic,
					      p->answer->topics.n);
	if (!p->answer->topics.v)
		goto fail;
	for (int32_t t = 0; t < p->answer->topics.n; t++) {
		const struct produce_request_topic *in = &body->topics.v[t];
		struct produce_response_topic *out = &p->answer->topics.v[t];
		int32_t count = in->partitions.n < 0 ? 0 : in->partitions.n;

		out->name = in->name;
		out->topic_id = in->topic_id;
		out->partitions.n = count;
		out->partitions.v = codec_new_array(&req->arena,
						    &schema_produce_response_partition, count);
		if (!out->partitions.v)
			goto fail_parts;
		for (int32_t i = 0; i < count; i++) {
			struct part *part = &p->parts[at++];

			p->nparts = at;
			part->in = &in->partitions.v[i];
			part->out = &out->partitions.v[i];
			aim(p, part, in);
		}
	}
	start_check(p);
	return;
fail_parts:
	release(p);
fail:
	request_fail(req, "Produce names more partitions than a request may hold in memory");
}
