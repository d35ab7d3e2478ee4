// SPDX-License-Identifier: MIT
#include "request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/broker.h"
#include "conn.h"
#include "kafka/schema.h"
#include "log/log.h"
#include "say.h"

/* Most bytes of one answer in memory; extents of logs do not count. */
#define ANSWER_MAX (64 << 20)

/* How long a request has a thread of the pool to itself. */
#define TURN_NS 10000000

static const struct {
	int16_t key;
	request_handler *handle;
} handlers[] = {
	{ API_PRODUCE, handle_produce },
	{ API_FETCH, handle_fetch },
	{ API_LIST_OFFSETS, handle_list_offsets },
	{ API_METADATA, handle_metadata },
	{ API_FIND_COORDINATOR, handle_find_coordinator },
	{ API_API_VERSIONS, handle_api_versions },
	{ API_CREATE_TOPICS, handle_create_topics },
	{ API_DELETE_TOPICS, handle_delete_topics },
	{ API_DELETE_RECORDS, handle_delete_records },
	{ API_OFFSET_FOR_LEADER_EPOCH, handle_offset_for_leader_epoch },
};

static void drop_extent(void *handle)
{
	log_cursor_put(handle);
}

struct request *request_new(struct conn *conn, uint8_t *bytes, size_t size, size_t charged)
{
	struct request *req = calloc(1, sizeof(*req));

	if (!req)
		return NULL;
	req->conn = conn;
	req->bytes = bytes;
	req->size = size;
	req->charged = charged;
	arena_init(&req->arena, REQUEST_ARENA_MAX);
	buf_init(&req->out, ANSWER_MAX, drop_extent);
	return req;
}

/* What came in is not needed any more. */
static void free_input(struct request *req)
{
	struct budget *budget = &request_broker(req)->budget;
	struct budget *decoded = &request_broker(req)->decoded;

	arena_free(&req->arena);
	if (req->decoded) {
		budget_give(decoded, req->decoded);
		budget_complete(decoded, req->conn);
	}
	req->decoded = 0;
	free(req->bytes);
	req->bytes = NULL;
	req->body = NULL;
	if (req->charged) {
		budget_give(budget, req->charged);
		budget_complete(budget, req->conn);
	}
	req->charged = 0;
}

void request_free(struct request *req)
{
	free_input(req);
	buf_free(&req->out);
	free(req);
}

struct loop *request_loop(const struct request *req)
{
	return req->conn->loop;
}

struct broker *request_broker(const struct request *req)
{
	return req->conn->loop->broker;
}

void request_fail(struct request *req, const char *fmt, ...)
{
	struct conn *conn = req->conn;
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	req->silent = true;
	req->hurry = NULL;
	free_input(req);
	conn_close(conn, "%s", why);
	conn_answered(conn, req);
}

void request_answer(struct request *req, const void *body)
{
	struct conn *conn = req->conn;
	int ret;

	if (conn->closed) {
		/* nobody to send it to */
		if (req->undo)
			req->undo(req, body);
		request_silent(req);
		return;
	}
	ret = codec_encode_response(&req->out, req->api, req->header.version,
				    req->header.correlation, body);
	if (ret) {
		if (req->undo)
			req->undo(req, body);
		request_fail(req, "the answer to %s version %d cannot be made: %s",
			     req->api->name, req->header.version,
			     ret == -EMSGSIZE ? "it is too large" : strerror(-ret));
		return;
	}
	if (say_wanted(SAY_DEBUG))
		say(SAY_DEBUG, "request", "%s: %s v%d: answered with %llu bytes", conn->peer,
		    req->api->name, req->header.version,
		    (unsigned long long)buf_total(&req->out));
	free_input(req);
	conn_answered(conn, req);
}

void request_silent(struct request *req)
{
	struct conn *conn = req->conn;

	req->silent = true;
	free_input(req);
	conn_answered(conn, req);
}

static const char *client_of(const struct request *req, char *text, size_t size)
{
	int n = req->header.client_id.n;

	snprintf(text, size, "%.*s", n < 0 ? 0 : n > 100 ? 100 : n,
		 n < 0 ? "" : req->header.client_id.p);
	return text;
}

/* A version that we do not have is answered in the one form that every client can read. */
static void answer_version_unknown(struct request *req)
{
	struct api_versions_range range = {
		.api_key = API_API_VERSIONS,
		.min_version = req->api->min,
		.max_version = req->api->max,
	};
	struct api_versions_response answer = {
		.error_code = 35,	/* UNSUPPORTED_VERSION */
		.api_keys = { &range, 1 },
		.finalized_features_epoch = -1,
	};

	req->header.version = 0;
	request_answer(req, &answer);
}

/* ---- memory for what it is decoded into ---- */

static void on_grown(void *arg, size_t bytes)
{
	struct request *req = arg;

	req->decoded += bytes;
	budget_charge(&request_broker(req)->decoded, bytes);
}

static void on_memory(struct task *task)
{
	struct request *req = container_of(task, struct request, memory_task);

	req->hurry = NULL;
	if (req->conn->closed)
		request_silent(req);
	else
		request_run(req);
}

static void retry_memory(struct budget_waiter *w)
{
	struct request *req = container_of(w, struct request, memory);

	loop_post(request_loop(req), &req->memory_task);
}

/* The connection is closed or plogd ends: nobody waits for memory then. */
static void hurry_memory(struct request *req)
{
	if (!req->conn->closed && !req->conn->loop->draining)
		return;
	if (!budget_leave(&request_broker(req)->decoded, req->conn, &req->memory))
		return;		/* on_memory() is on its way */
	if (req->conn->closed)
		request_silent(req);
	else
		request_fail(req, "it ends while %s waits for memory", req->api->name);
}

/*
 * It has been decoded, and holds more memory than each may have. If there is none to be had,
 * it gives all of that back and stands in line; it will be decoded again.
 */
static bool take_memory(struct request *req)
{
	size_t extra = req->arena.extra;

	req->memory.retry = retry_memory;
	req->memory_task.run = on_memory;
	if (extra && !budget_take(&request_broker(req)->decoded, req->conn, extra, &req->memory)) {
		arena_free(&req->arena);
		req->body = NULL;
		req->hurry = hurry_memory;
		return false;
	}
	req->decoded = extra;
	req->arena.grown = on_grown;
	req->arena.grown_arg = req;
	return true;
}

void request_run(struct request *req)
{
	struct codec_fault fault = { 0 };
	char text[300];
	int ret;

	ret = codec_read_header(req->bytes, req->size, &req->header, &fault);
	if (ret == -EPROTO) {
		codec_fault_text(&fault, text, sizeof(text));
		request_fail(req, "not a request of Kafka's protocol: %s", text);
		return;
	}
	req->api = api_find(req->header.key);
	if (!req->api) {
		request_fail(req, "a request with API key %d, which this broker does not serve",
			     req->header.key);
		return;
	}
	if (ret == -ERANGE && req->api->key == API_API_VERSIONS) {
		answer_version_unknown(req);
		return;
	}
	if (ret == -ERANGE || req->header.version < req->api->served) {
		request_fail(req, "%s version %d, which this broker does not serve (it has %d to "
			     "%d)", req->api->name, req->header.version, req->api->served,
			     req->api->max);
		return;
	}
	ret = codec_decode_request(req->api, req->header.version, req->bytes + req->header.size,
				   req->size - req->header.size, &req->arena, &req->body, &fault);
	if (ret == -ENOMEM) {
		request_fail(req, "%s version %d asks for more than a request may hold in memory",
			     req->api->name, req->header.version);
		return;
	}
	if (ret) {
		codec_fault_text(&fault, text, sizeof(text));
		request_fail(req, "malformed request, version %d: %s", req->header.version, text);
		return;
	}
	if (!take_memory(req))
		return;
	if (say_wanted(SAY_DEBUG))
		say(SAY_DEBUG, "request", "%s: %s v%d, %zu bytes, client %s", req->conn->peer,
		    req->api->name, req->header.version, req->size,
		    client_of(req, text, sizeof(text)));
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
		if (handlers[i].key == req->api->key) {
			handlers[i].handle(req);
			return;
		}
	request_fail(req, "%s has no handler", req->api->name);
}

bool request_turn_over(uint64_t since)
{
	return uv_hrtime() - since >= TURN_NS;
}

static void work_run(uv_work_t *work)
{
	struct request *req = work->data;

	req->work_run(req);
}

static void work_done(uv_work_t *work, int status)
{
	struct request *req = work->data;

	(void)status;	/* nothing is ever cancelled */
	request_loop(req)->nworks--;
	req->work_done(req);
}

void request_work(struct request *req, void (*run)(struct request *req),
		  void (*done)(struct request *req))
{
	struct loop *loop = request_loop(req);

	req->work.data = req;
	req->work_run = run;
	req->work_done = done;
	if (uv_queue_work(&loop->uv, &req->work, work_run, work_done)) {
		run(req);
		done(req);
		return;
	}
	loop->nworks++;
}
