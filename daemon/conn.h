/* SPDX-License-Identifier: MIT */
#ifndef PLOG_CONN_H
#define PLOG_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <uv.h>

#include "budget.h"
#include "kafka/buf.h"
#include "loop.h"
#include "request.h"

/*
 * A client's connection
 *
 * The socket is ours and not a uv_stream_t: answers are memory and runs of a log that leave
 * by sendfile, in one order, and only the owner of the descriptor can mix the two. A uv_poll_t
 * tells when it is readable or writable; reading and sending are plain non-blocking calls.
 *
 * Requests are read ahead, up to CONN_REQUESTS_MAX; they run one after the other, as Kafka
 * runs them, so what a client sent first is appended first; answers leave in the same order.
 * Reading stops while that many are held, while the budget has no memory, and no request runs
 * while CONN_OUTPUT_MAX bytes of memory or CONN_ANSWERS_MAX answers wait for a slow reader.
 *
 * A request must arrive: plog.request.arrival.ms after its first byte it has to be complete,
 * or to keep coming at CONN_ARRIVAL_RATE. A connection on which nothing moves for
 * connections.max.idle.ms is closed.
 */
#define CONN_REQUESTS_MAX 32
#define CONN_OUTPUT_MAX (1 << 20)
#define CONN_ANSWERS_MAX 4
#define CONN_INBUF 4096

/* Slowest arrival once plog.request.arrival.ms have gone: bytes per millisecond, 16 KB/s. */
#define CONN_ARRIVAL_RATE 16

struct listener;

struct conn {
	struct loop *loop;
	struct conn *next, **prev;	/* of the loop */
	struct listener *listener;
	int fd;				/* -1: closed */
	uv_poll_t poll;
	int events;			/* that are polled for */
	uv_timer_t timer;		/* of the request that runs: a Fetch that waits */
	unsigned int handles;		/* that are not closed yet */
	char peer[80];			/* "10.0.0.1:4711", for lines */
	struct sockaddr_storage address;

	/* what arrives */
	uint8_t inbuf[CONN_INBUF];	/* read ahead: heads and small requests */
	unsigned int in_at, in_end;
	uint8_t *body;			/* of the request that is arriving; NULL: none is */
	size_t size, have, cap;		/* claimed; arrived; allocated and taken of the budget */
	uint64_t begun;			/* when its first byte came, ms; 0: none is under way */
	bool used;			/* some request came */
	bool eof;			/* the peer sends no more */
	bool gone;			/* the peer has closed: nobody waits for answers */
	bool no_memory;			/* in line at the budget */
	struct budget_waiter memory;
	struct task memory_task;

	/* requests: answered ones first, then the one that runs, then those to come */
	struct request *first, **last;
	struct request *running;	/* also while it waits in another thread */
	unsigned int nrequests;
	bool close_after;		/* when what is answered so far has been sent */

	/* what leaves */
	uv_work_t send_work;		/* sends the first answer's extents */
	bool sending;			/* it does so now */
	ssize_t send_result;		/* bytes, or an error if there were none */
	bool corked;

	uint64_t moved;			/* when bytes last came or went, ms */
	bool want_write;		/* the socket was full */
	bool advancing;
	bool again;			/* again_task is posted */
	struct task again_task;
	bool closed;

	/* of the client, by ApiVersions: for lines and metrics */
	char software[64];
};

/*
 * Take over the accepted, non-blocking socket @fd on the loop that runs this. The socket is
 * closed if it cannot.
 */
void conn_open(struct loop *loop, struct listener *listener, int fd,
	       const struct sockaddr_storage *address);

/* Close now, with a line that names the peer and the reason; @fmt NULL: without. */
void conn_close(struct conn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* @req, which runs, has been given its answer or its end. */
void conn_answered(struct conn *conn, struct request *req);

/* Go on: send, run the next request, read. Whenever one of these may have become possible. */
void conn_advance(struct conn *conn);

/* Close connections that have stood still too long. */
void conn_tick_all(struct loop *loop);

/* loop->draining or loop->force was set. */
void conn_drain_all(struct loop *loop);

/*
 * For conn.c and send.c
 *
 * Send what is answered. 1: all of it has left; 0: more is to come (writable events, or the
 * thread pool, will go on); negative errno: the connection cannot be used any more.
 */
int conn_send(struct conn *conn);

/* The thread pool has let go of a connection that was closed meanwhile. */
void conn_reap(struct conn *conn);

#endif
