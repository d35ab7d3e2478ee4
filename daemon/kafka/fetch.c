// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../uapi/linux/plog.h"
#include "../broker/broker.h"
#include "../broker/topics.h"
#include "../conn.h"
#include "../log/compress.h"
#include "../log/log.h"
#include "../request.h"
#include "error.h"
#include "fetch_session.h"
#include "schema.h"
#include "seen.h"

/* Pause between two looks while there is less than min_bytes, however often appends come. */
#define AGAIN_MS 5

/* Partitions with records in one answer: each takes a descriptor until it has been sent. */
#define CURSORS_MAX 512
/* Until it is tried again where there are no descriptors at all. */
#define FULL_MS 50

/*
 * A Fetch: look at every partition, pin what will be sent (so that every length in the answer
 * is certain), and answer; or wait for min_bytes until max_wait_ms have gone.
 *
 *   look()     offsets and errors; never sleeps; on the loop
 *   pin()      LOCATE; on the loop if all that is wanted was written lately, else in the pool
 *   decide()   answer, or park() and look() again when something has come
 */
struct part {
	struct kstr name;
	struct kuuid id;
	int32_t partition;
	const struct fetch_request_partition *wanted;
	struct session_part *cached;	/* NULL without a session */

	struct topic *topic;		/* a reference, or NULL */
	struct log *log;		/* NULL: @error says why */
	int16_t error;
	bool unknown;			/* was from the beginning: told, but it ends no waiting */
	bool known;			/* @state is */
	bool pinning;			/* there are records: locate them */
	struct log_state state;
	struct log_cursor *cursor;	/* holds the extent that will be sent, or NULL */
	struct log_waiter waiter;
	struct fetch *fetch;
};

struct fetch {
	struct request *req;
	struct fetch_context context;
	struct part *parts;
	uint32_t nparts;
	uint64_t deadline;		/* ms of the loop */
	int64_t min_bytes, max_bytes;
	uint64_t bytes;			/* pinned */
	uint32_t ncursors;		/* that pin them */
	bool by_id, stable;
	bool failed;			/* some partition has an error */
	bool last;			/* answer whatever there is */
	bool begun;			/* was looked at before */
	bool full;			/* more could be read, but for the cursors it takes */
};

static void look(struct fetch *f);

/* ---- answer ---- */

static void unpin(struct fetch *f)
{
	for (uint32_t i = 0; i < f->nparts; i++) {
		struct part *part = &f->parts[i];

		if (part->cursor)
			log_cursor_put(part->cursor);
		part->cursor = NULL;
		topic_put(part->topic);
		part->topic = NULL;
		part->log = NULL;
	}
	f->bytes = 0;
	f->ncursors = 0;
}

static void end_session(struct fetch *f)
{
	fetch_session_end(request_broker(f->req)->sessions, f->context.session);
	f->context.session = NULL;
}

static void no_memory(struct fetch *f)
{
	unpin(f);
	end_session(f);
	request_fail(f->req, "the answer to Fetch needs more memory than a request may have");
}

/* Does the answer name this partition? Notes what the client is told. */
static bool worth_telling(struct fetch *f, struct part *part)
{
	struct session_part *c = part->cached;
	bool told = !f->context.incremental;

	if (!c)
		return true;
	if (part->cursor)
		told = true;
	if (part->error) {
		/* again and again, and once more when it is over */
		c->high_watermark = -1;
		return true;
	}
	if (c->high_watermark != part->state.high_watermark ||
	    c->log_start != part->state.log_start)
		told = true;
	c->high_watermark = part->state.high_watermark;
	c->log_start = part->state.log_start;
	return told;
}

static void fill_part(struct fetch *f, struct part *part, struct fetch_response_partition *out)
{
	out->partition_index = part->partition;
	out->error_code = part->error;
	out->high_watermark = part->known ? part->state.high_watermark : -1;
	out->last_stable_offset = part->known ? part->state.last_stable : -1;
	out->log_start_offset = part->known ? part->state.log_start : -1;
	/* no transaction was ever aborted here: an empty list for those who ask, null else */
	out->aborted_transactions.n = f->stable ? 0 : -1;
	out->preferred_read_replica = -1;
	out->records.n = 0;
	out->records.p = (const uint8_t *)"";
	if (part->error == KERR_FENCED_LEADER_EPOCH || part->error == KERR_UNKNOWN_LEADER_EPOCH) {
		out->current_leader.leader_id = request_broker(f->req)->node_id;
		out->current_leader.leader_epoch = part->state.leader_epoch;
	}
	if (part->cursor) {
		out->records.n = part->cursor->extent.length;
		out->records.p = NULL;
		out->records.extent = part->cursor;
		/* it travels with the answer from here on */
		part->cursor = NULL;
	}
}

static bool same_topic(const struct fetch *f, const struct part *a, const struct part *b)
{
	return f->by_id ? kuuid_eq(&a->id, &b->id) : kstr_eq(a->name, b->name);
}

/* The answer was not sent: its cursors come back. */
static void undo(struct request *req, const void *body)
{
	const struct fetch_response *answer = body;

	(void)req;
	for (int32_t t = 0; t < answer->topics.n; t++)
		for (int32_t i = 0; i < answer->topics.v[t].partitions.n; i++) {
			struct krecords *r = &answer->topics.v[t].partitions.v[i].records;

			if (r->extent)
				log_cursor_put(r->extent);
			r->extent = NULL;
		}
}

/* The partitions to tell, as runs of the same topic. */
static int fill_topics(struct fetch *f, struct fetch_response *answer, struct part **told,
		       uint32_t n)
{
	struct fetch_response_topic *topic = NULL;
	uint32_t runs = 0;

	for (uint32_t i = 0; i < n; i++)
		runs += !i || !same_topic(f, told[i], told[i - 1]);
	answer->topics.v = codec_new_array(&f->req->arena, &schema_fetch_response_topic, runs);
	if (!answer->topics.v)
		return -1;
	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && same_topic(f, told[end], told[i]); end++)
			;
		topic = &answer->topics.v[answer->topics.n];
		topic->topic = told[i]->name;
		if (f->context.session && told[i]->name.n > 0) {
			/* the session's own, which is let go before the answer is made */
			topic->topic.p = arena_copy(&f->req->arena, told[i]->name.p,
						    told[i]->name.n);
			if (!topic->topic.p)
				return -1;
		}
		topic->topic_id = told[i]->id;
		topic->partitions.v = codec_new_array(&f->req->arena,
						      &schema_fetch_response_partition, end - i);
		if (!topic->partitions.v)
			return -1;
		answer->topics.n++;
		topic->partitions.n = end - i;
		for (uint32_t k = i; k < end; k++)
			fill_part(f, told[k], &topic->partitions.v[k - i]);
	}
	return 0;
}

static void answer_now(struct fetch *f)
{
	struct request *req = f->req;
	struct fetch_response *answer;
	struct part **told;
	uint32_t n = 0;

	answer = codec_new(&req->arena, &schema_fetch_response);
	told = arena_array(&req->arena, f->nparts, sizeof(*told));
	if (!answer || !told) {
		no_memory(f);
		return;
	}
	answer->session_id = fetch_session_id(f->context.session);
	for (uint32_t i = 0; i < f->nparts; i++) {
		struct part *part = &f->parts[i];

		if (part->cached && part->cursor && f->context.incremental)
			fetch_session_served(f->context.session, part->cached);
		if (worth_telling(f, part))
			told[n++] = part;
	}
	if (fill_topics(f, answer, told, n)) {
		undo(req, answer);
		no_memory(f);
		return;
	}
	unpin(f);
	req->undo = undo;
	/* first: the connection's next request may go on with the session, and runs at once */
	end_session(f);
	request_answer(req, answer);
}

static void answer_error(struct request *req, int16_t error)
{
	struct fetch_response *answer = codec_new(&req->arena, &schema_fetch_response);

	if (!answer) {
		request_fail(req, "out of memory");
		return;
	}
	answer->error_code = error;
	request_answer(req, answer);
}

/* ---- waiting ---- */

static void unpark(struct fetch *f)
{
	for (uint32_t i = 0; i < f->nparts; i++)
		log_wait_cancel(&f->parts[i].waiter);
	uv_timer_stop(&f->req->conn->timer);
	f->req->hurry = NULL;
}

static void hurry(struct request *req)
{
	struct fetch *f = req->ctx;

	unpark(f);
	f->last = true;
	if (!req->conn->closed) {
		look(f);
		return;
	}
	unpin(f);
	end_session(f);
	request_silent(req);
}

static void on_timer(uv_timer_t *timer)
{
	struct conn *conn = timer->data;
	struct fetch *f = conn->running->ctx;

	unpark(f);
	if (loop_now(conn->loop) >= f->deadline)
		f->last = true;
	look(f);
}

/* The timer, at the deadline or at most @most ms from now. */
static void wait_for(struct fetch *f, uint64_t most)
{
	uint64_t now = loop_now(request_loop(f->req));
	uint64_t left = f->deadline > now ? f->deadline - now : 1;

	f->req->hurry = hurry;
	uv_timer_start(&f->req->conn->timer, on_timer, left < most ? left : most, 0);
}

static void on_wake(struct log_waiter *waiter)
{
	struct fetch *f = container_of(waiter, struct part, waiter)->fetch;
	bool some = f->bytes > 0;

	unpark(f);
	/* on the way to min_bytes an append is one step of many */
	if (some)
		wait_for(f, AGAIN_MS);
	else
		look(f);
}

/* What a reader of this kind may see of it. */
static int64_t visible_end(const struct fetch *f, const struct part *part)
{
	return f->stable ? part->state.last_stable : part->state.high_watermark;
}

/* Wait for more anywhere: appends, or transactions that end. */
static void park(struct fetch *f)
{
	enum log_end kind = f->stable ? LOG_END_STABLE : LOG_END_COMMITTED;
	struct loop *loop = request_loop(f->req);
	/* without a cursor there is nothing that could be waited for */
	uint64_t most = f->full ? FULL_MS : UINT64_MAX;

	for (uint32_t i = 0; i < f->nparts; i++) {
		struct part *part = &f->parts[i];

		if (part->cursor)
			log_cursor_put(part->cursor);
		part->cursor = NULL;
		part->waiter.wake = on_wake;
		if (part->log &&
		    log_wait_end(part->log, loop, kind, visible_end(f, part), &part->waiter))
			most = AGAIN_MS;	/* cannot be waited for: look again soon */
	}
	wait_for(f, most);
}

static void decide(struct fetch *f)
{
	struct loop *loop = request_loop(f->req);

	if (f->req->conn->closed) {
		unpin(f);
		end_session(f);
		request_silent(f->req);
		return;
	}
	if (f->last || f->failed || !f->nparts || f->bytes >= (uint64_t)f->min_bytes ||
	    (f->full && f->bytes) || loop_now(loop) >= f->deadline || f->req->conn->gone ||
	    loop->draining)
		answer_now(f);
	else
		park(f);
}

/* ---- pin ---- */

static void pin_part(struct fetch *f, struct part *part)
{
	int64_t left = f->max_bytes - (int64_t)f->bytes;
	int64_t limit = part->wanted->partition_max_bytes;
	/* of all partitions the first with records gives one batch, however large */
	bool whole = !f->bytes;
	int ret = 0;

	if (limit > left)
		limit = left;
	if (limit < 0)
		limit = 0;
	if (!limit && !whole)
		return;
	if (f->ncursors >= CURSORS_MAX || !log_cursors_left(part->log, f->ncursors > 0)) {
		f->full = true;
		return;
	}
	part->cursor = log_cursor_get(part->log, &ret);
	if (part->cursor)
		ret = log_locate(part->cursor, part->wanted->fetch_offset, limit, whole,
				 f->stable ? LOG_END_STABLE : LOG_END_COMMITTED);
	if (!ret || ret == -ERANGE)
		part->state = part->cursor->extent.state;
	if (!ret && part->cursor->extent.length) {
		f->bytes += part->cursor->extent.length;
		f->ncursors++;
		return;
	}
	if (part->cursor)
		log_cursor_put(part->cursor);
	part->cursor = NULL;
	if (ret) {
		part->error = log_error(ret);
		f->failed = true;
	}
}

static void pin(struct request *req)
{
	struct fetch *f = req->ctx;

	for (uint32_t i = 0; i < f->nparts; i++)
		if (f->parts[i].pinning)
			pin_part(f, &f->parts[i]);
}

static void pinned(struct request *req)
{
	decide(req->ctx);
}

/* ---- look ---- */

static struct topic *find_topic(struct fetch *f, struct part *part)
{
	struct topics *topics = request_broker(f->req)->topics;

	return f->by_id ? topics_find_id(topics, &part->id) : topics_find(topics, part->name);
}

static int16_t look_at(struct fetch *f, struct part *part)
{
	const struct fetch_request_partition *w = part->wanted;
	const struct fetch_request *body = f->req->body;

	part->topic = find_topic(f, part);
	if (!part->topic)
		return f->by_id ? KERR_UNKNOWN_TOPIC_ID : KERR_UNKNOWN_TOPIC_OR_PARTITION;
	if (part->partition < 0 || (uint32_t)part->partition >= part->topic->partitions)
		return KERR_UNKNOWN_TOPIC_OR_PARTITION;
	if (body->replica_id >= 0 || body->replica_state.replica_id >= 0)
		return KERR_NOT_LEADER_OR_FOLLOWER;
	part->log = part->topic->logs[part->partition];
	if (!part->log)
		return KERR_KAFKA_STORAGE_ERROR;
	if (log_state(part->log, &part->state))
		return KERR_UNKNOWN_TOPIC_OR_PARTITION;
	if (part->state.state == PLOG_PARTITION_OPENING)
		return KERR_NOT_LEADER_OR_FOLLOWER;
	if (part->state.state != PLOG_PARTITION_ONLINE &&
	    part->state.state != PLOG_PARTITION_FENCED)
		return KERR_KAFKA_STORAGE_ERROR;
	part->known = true;
	if (w->current_leader_epoch >= 0 && w->current_leader_epoch < part->state.leader_epoch)
		return KERR_FENCED_LEADER_EPOCH;
	if (w->current_leader_epoch > part->state.leader_epoch)
		return KERR_UNKNOWN_LEADER_EPOCH;
	if (part->topic->codec == COMPRESS_ZSTD && f->req->header.version < 10)
		return KERR_UNSUPPORTED_COMPRESSION_TYPE;
	if (w->fetch_offset < part->state.log_start || w->fetch_offset > part->state.log_end)
		return KERR_OFFSET_OUT_OF_RANGE;
	return 0;
}

static void look(struct fetch *f)
{
	uint64_t now = loop_now(request_loop(f->req));
	bool cold = false;

	uint32_t unknown = 0;

	unpin(f);
	f->failed = false;
	f->full = false;
	for (uint32_t i = 0; i < f->nparts; i++) {
		struct part *part = &f->parts[i];
		bool missing;

		part->known = false;
		part->pinning = false;
		part->error = look_at(f, part);
		if (part->error) {
			/*
			 * A consumer may ask for what was deleted until it has heard; that must
			 * not make its polls for all the rest a busy loop.
			 */
			missing = !part->log && part->error != KERR_KAFKA_STORAGE_ERROR;
			part->log = NULL;
			part->unknown = missing && (part->unknown || !f->begun);
			if (part->unknown)
				unknown++;
			else
				f->failed = true;
			continue;
		}
		log_note_end(part->log, part->state.high_watermark, now);
		if (part->wanted->fetch_offset >= visible_end(f, part))
			continue;
		part->pinning = true;
		cold |= !log_is_recent(part->log, part->wanted->fetch_offset, now);
	}
	f->begun = true;
	if (unknown == f->nparts)
		f->failed = true;
	if (cold) {
		request_work(f->req, pin, pinned);
		return;
	}
	pin(f->req);
	decide(f);
}

/* ---- begin ---- */

static int parts_of_session(struct fetch *f)
{
	struct fetch_session *session = f->context.session;
	struct session_part *c;
	uint32_t i = 0;

	f->nparts = fetch_session_count(session);
	f->parts = arena_array(&f->req->arena, f->nparts, sizeof(*f->parts));
	if (!f->parts)
		return -1;
	for (c = fetch_session_first(session); c; c = c->next, i++)
		f->parts[i] = (struct part){
			.name = c->name,
			.id = c->id,
			.partition = c->partition,
			.wanted = &c->wanted,
			.cached = c,
			.fetch = f,
		};
	return 0;
}

/* As Kafka: of a partition that is named twice the last counts, in the first's place. */
static void add_part(struct fetch *f, struct seen *seen, const struct fetch_request_topic *topic,
		     const struct fetch_request_partition *wanted)
{
	struct part *part = &f->parts[f->nparts];
	int32_t i = wanted->partition;
	uint32_t first = f->nparts;

	*part = (struct part){
		.name = topic->topic,
		.id = topic->topic_id,
		.partition = i,
		.wanted = wanted,
		.fetch = f,
	};
	/* which keeps its logs, the keys of @seen, until look() */
	part->topic = find_topic(f, part);
	if (part->topic && i >= 0 && (uint32_t)i < part->topic->partitions && part->topic->logs[i])
		first = seen_note(seen, part->topic->logs[i], f->nparts);
	if (first == f->nparts) {
		f->nparts++;
		return;
	}
	f->parts[first].wanted = wanted;
	topic_put(part->topic);
}

static int parts_of_request(struct fetch *f)
{
	const struct fetch_request *body = f->req->body;
	struct seen seen;
	uint32_t n = 0;

	for (int32_t t = 0; t < body->topics.n; t++)
		if (body->topics.v[t].partitions.n > 0)
			n += body->topics.v[t].partitions.n;
	f->parts = arena_array(&f->req->arena, n, sizeof(*f->parts));
	if (!f->parts || seen_init(&seen, &f->req->arena, n))
		return -1;
	for (int32_t t = 0; t < body->topics.n; t++) {
		const struct fetch_request_topic *topic = &body->topics.v[t];

		for (int32_t i = 0; i < topic->partitions.n; i++)
			add_part(f, &seen, topic, &topic->partitions.v[i]);
	}
	return 0;
}

void handle_fetch(struct request *req)
{
	const struct fetch_request *body = req->body;
	struct broker *b = request_broker(req);
	const struct config *config = broker_config(b);
	uint64_t now = loop_now(request_loop(req));
	struct fetch *f = arena_alloc(&req->arena, sizeof(*f));

	if (!f) {
		request_fail(req, "out of memory");
		return;
	}
	f->req = req;
	req->ctx = f;
	f->by_id = req->header.version >= 13;
	f->stable = body->isolation_level != 0;
	f->max_bytes = body->max_bytes < config->fetch_max ? body->max_bytes : config->fetch_max;
	if (f->max_bytes < 0)
		f->max_bytes = 0;
	f->min_bytes = body->min_bytes < f->max_bytes ? body->min_bytes : f->max_bytes;
	if (f->min_bytes < 0)
		f->min_bytes = 0;
	f->deadline = now + (body->max_wait_ms > 0 ? body->max_wait_ms : 0);
	/* memory is short, and others wait for this one to give its own back */
	f->last = budget_passes(&b->budget, req->conn) || budget_passes(&b->decoded, req->conn);
	fetch_session_begin(b->sessions, body, req->header.version, config->fetch_sessions, now,
			    &f->context);
	if (f->context.error) {
		answer_error(req, f->context.error);
		return;
	}
	if (f->context.session ? parts_of_session(f) : parts_of_request(f)) {
		f->nparts = 0;
		no_memory(f);
		return;
	}
	look(f);
}
