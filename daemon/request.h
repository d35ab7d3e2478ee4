/* SPDX-License-Identifier: MIT */
#ifndef PLOG_REQUEST_H
#define PLOG_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "budget.h"
#include "kafka/arena.h"
#include "kafka/buf.h"
#include "kafka/codec.h"
#include "loop.h"

struct broker;
struct conn;

/* Most memory that a request is decoded into and its answer is built in. */
#define REQUEST_ARENA_MAX (64 << 20)

enum request_state {
	REQUEST_QUEUED,
	REQUEST_RUNNING,
	REQUEST_DONE,
};

/*
 * One request from its last byte to the last byte of its answer. It belongs to its connection;
 * while it runs, whoever runs it is its only user, and the connection waits with its end.
 */
struct request {
	struct conn *conn;
	struct request *next;
	enum request_state state;

	uint8_t *bytes;			/* without the length; the decoded body points into it */
	size_t size;
	size_t charged;			/* of the budget of bytes */
	size_t decoded;			/* of the one of what they become */
	struct budget_waiter memory;	/* in line for that */
	struct task memory_task;

	struct codec_header header;
	const struct api *api;
	struct arena arena;
	void *body;			/* decoded, of api->request */

	struct buf out;
	struct buf_pos pos;		/* how far it was sent */
	bool silent;			/* no answer at all (Produce with acks=0) */

	/* for the handler */
	void *ctx;			/* its own */
	/* on the loop: stop waiting and answer now (the peer has gone, or plogd ends); or NULL */
	void (*hurry)(struct request *req);
	/* @body was not encoded: give back the extents in it; or NULL */
	void (*undo)(struct request *req, const void *body);
	struct task task;
	/* set when the connection is closed: work that takes long need not be finished */
	atomic_bool abandoned;
	uv_work_t work;
	void (*work_done)(struct request *req);
	void (*work_run)(struct request *req);
};

/* A handler: answers by request_answer(), now or later, on the connection's loop. */
typedef void request_handler(struct request *req);

/* A request of the @size bytes at @bytes, which it takes over. NULL: no memory (nothing taken). */
struct request *request_new(struct conn *conn, uint8_t *bytes, size_t size, size_t charged);
void request_free(struct request *req);

/*
 * Decode and hand to the API's handler. On the loop. What cannot be served closes the
 * connection with a line.
 */
void request_run(struct request *req);

/* Encode @body, of api->response, and let it be sent. On the loop; the request has ended. */
void request_answer(struct request *req, const void *body);

/* The same where there is no answer. */
void request_silent(struct request *req);

/* The request cannot be answered: close the connection with a line. */
void request_fail(struct request *req, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Run @run in the thread pool and then @done on the loop. On the loop. If that is not possible
 * @run is called at once.
 */
void request_work(struct request *req, void (*run)(struct request *req),
		  void (*done)(struct request *req));

/*
 * @run, begun at @since of uv_hrtime(), has had its turn: where it can stop in the middle it
 * leaves the rest to another request_work(), behind those who wait for the pool.
 */
bool request_turn_over(uint64_t since);

struct loop *request_loop(const struct request *req);
struct broker *request_broker(const struct request *req);

request_handler handle_api_versions, handle_metadata, handle_produce, handle_fetch,
	handle_list_offsets, handle_find_coordinator, handle_create_topics,
	handle_delete_topics, handle_delete_records, handle_offset_for_leader_epoch;

#endif
