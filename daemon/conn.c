// SPDX-License-Identifier: MIT
#include "conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "listener.h"
#include "log/log.h"
#include "say.h"

/* Steps and bytes of one connection before the others of its loop have their turn. */
#define STEPS_MAX 64
#define READ_MAX (512 << 10)

/* First step of a request's buffer; it grows fourfold, then twofold from 64 KiB on. */
#define BODY_FIRST 4096

/* Shortest header: key, version, correlation. */
#define REQUEST_MIN 8

/* ---- end ---- */

static void maybe_free(struct conn *conn)
{
	struct loop *loop = conn->loop;
	struct request *req;

	if (!conn->closed || conn->advancing || conn->running || conn->sending ||
	    conn->handles || conn->again || conn->no_memory)
		return;
	while ((req = conn->first)) {
		conn->first = req->next;
		request_free(req);
	}
	free(conn->body);
	budget_give(&loop->broker->budget, conn->cap);
	*conn->prev = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	loop->nconns--;
	listener_gone(conn->listener, &conn->address);
	free(conn);
	loop_check_end(loop);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct conn *conn = handle->data;

	conn->handles--;
	maybe_free(conn);
}

static void close_fd(struct conn *conn)
{
	if (conn->fd < 0 || conn->sending)
		return;
	close(conn->fd);
	conn->fd = -1;
}

void conn_close(struct conn *conn, const char *fmt, ...)
{
	char why[600];
	va_list ap;

	if (conn->closed)
		return;
	if (fmt) {
		va_start(ap, fmt);
		vsnprintf(why, sizeof(why), fmt, ap);
		va_end(ap);
		say(SAY_WARN, "net", "%s: connection closed: %s", conn->peer, why);
	}
	conn->closed = true;
	conn->gone = true;
	uv_close((uv_handle_t *)&conn->poll, on_handle_closed);
	uv_close((uv_handle_t *)&conn->timer, on_handle_closed);
	/* a worker that sends keeps the descriptor until it comes back, which this hastens */
	if (conn->fd >= 0)
		shutdown(conn->fd, SHUT_RDWR);
	close_fd(conn);
	if (budget_leave(&conn->loop->broker->budget, conn, &conn->memory))
		conn->no_memory = false;
	if (conn->running)
		atomic_store(&conn->running->abandoned, true);
	if (conn->running && conn->running->hurry)
		conn->running->hurry(conn->running);
	maybe_free(conn);
}

void conn_reap(struct conn *conn)
{
	close_fd(conn);
	maybe_free(conn);
}

/* ---- reading ---- */

static void on_memory(struct task *task)
{
	struct conn *conn = container_of(task, struct conn, memory_task);

	conn->no_memory = false;
	if (conn->closed)
		maybe_free(conn);
	else
		conn_advance(conn);
}

static void retry_memory(struct budget_waiter *w)
{
	struct conn *conn = container_of(w, struct conn, memory);

	loop_post(conn->loop, &conn->memory_task);
}

static bool may_read(const struct conn *conn)
{
	return !conn->eof && !conn->no_memory && !conn->close_after && !conn->loop->draining &&
	       conn->nrequests < CONN_REQUESTS_MAX;
}

/* The length is there: is it one that we take? 0, or -1 and the connection is closed. */
static int begin_request(struct conn *conn)
{
	const struct config *config = broker_config(conn->loop->broker);
	const uint8_t *p = conn->inbuf + conn->in_at;
	int32_t size = (int32_t)((uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]);

	if (!memcmp(p, "GET ", 4) || !memcmp(p, "POST", 4) || !memcmp(p, "HEAD", 4)) {
		conn_close(conn, "this port speaks Kafka's protocol, the peer speaks HTTP");
		return -1;
	}
	if (p[0] == 0x16 && p[1] == 0x03) {
		conn_close(conn, "this listener is PLAINTEXT, the peer speaks TLS");
		return -1;
	}
	if (size < 0) {
		conn_close(conn, "a request with the negative length %" PRId32, size);
		return -1;
	}
	if (size < REQUEST_MIN) {
		conn_close(conn, "a request of %" PRId32 " bytes, which is shorter than its header",
			   size);
		return -1;
	}
	if (size > config->request_max) {
		conn_close(conn, "a request of %" PRId32 " bytes; socket.request.max.bytes is %"
			   PRId64, size, config->request_max);
		return -1;
	}
	conn->in_at += 4;
	conn->size = size;
	conn->have = 0;
	return 0;
}

static struct request *next_queued(const struct conn *conn)
{
	struct request *req = conn->first;

	while (req && req->state == REQUEST_DONE)
		req = req->next;
	return req && req->state == REQUEST_QUEUED ? req : NULL;
}

/* Does the peer take its answers? */
static bool output_small(const struct conn *conn)
{
	unsigned int answers = 0;
	size_t bytes = 0;

	for (struct request *req = conn->first; req && req->state == REQUEST_DONE;
	     req = req->next) {
		answers++;
		bytes += req->out.len - req->pos.at;
	}
	return answers < CONN_ANSWERS_MAX && bytes < CONN_OUTPUT_MAX;
}

/*
 * Will the request that is arriving run as soon as it is here? Only then may it pass the limit
 * of memory: one behind a Fetch that waits, or behind answers that nobody takes, would keep all
 * others waiting for as long as its client likes.
 */
static bool runs_next(const struct conn *conn)
{
	return !conn->running && !next_queued(conn) && output_small(conn);
}

/* Room for more of the body. 0: yes; 1: not now; -1: closed. */
static int grow(struct conn *conn)
{
	struct budget *budget = &conn->loop->broker->budget;
	size_t cap = conn->cap, next;
	uint8_t *body;

	next = !cap ? BODY_FIRST : cap < 65536 ? cap * 4 : cap * 2;
	if (next > conn->size)
		next = conn->size;
	if (!budget_take(budget, runs_next(conn) ? conn : NULL, next - cap, &conn->memory)) {
		conn->no_memory = true;
		return 1;
	}
	body = realloc(conn->body, next);
	if (!body) {
		budget_give(budget, next - cap);
		conn_close(conn, "out of memory for a request of %zu bytes", conn->size);
		return -1;
	}
	conn->body = body;
	conn->cap = next;
	return 0;
}

static int queue_request(struct conn *conn)
{
	struct request *req = request_new(conn, conn->body, conn->size, conn->cap);

	if (!req) {
		conn_close(conn, "out of memory for a request");
		return -1;
	}
	conn->body = NULL;
	conn->cap = conn->size = conn->have = 0;
	conn->begun = 0;
	conn->used = true;
	*conn->last = req;
	conn->last = &req->next;
	conn->nrequests++;
	return 0;
}

static void peer_ended(struct conn *conn)
{
	unsigned int rest = conn->in_end - conn->in_at;

	conn->eof = true;
	conn->gone = true;
	if (conn->size)
		say(SAY_WARN, "net", "%s: ended in the middle of a request (%zu of %zu bytes)",
		    conn->peer, conn->have, conn->size);
	else if (rest)
		say(SAY_WARN, "net", "%s: ended in the middle of a request's length", conn->peer);
	else
		say(SAY_DEBUG, "net", "%s: closed by the peer", conn->peer);
	if (conn->running && conn->running->hurry)
		conn->running->hurry(conn->running);
}

/* recv() with the bookkeeping. >0 bytes; 0: nothing now, or the end (eof); -1: closed. */
static ssize_t take(struct conn *conn, void *p, size_t n)
{
	ssize_t got;

	do {
		got = recv(conn->fd, p, n, 0);
	} while (got < 0 && errno == EINTR);
	if (got > 0) {
		conn->moved = loop_now(conn->loop);
		if (!conn->begun)
			conn->begun = conn->moved;
		return got;
	}
	if (!got) {
		peer_ended(conn);
		return 0;
	}
	if (errno == EAGAIN)
		return 0;
	say(SAY_DEBUG, "net", "%s: %s", conn->peer, strerror(errno));
	conn_close(conn, NULL);
	return -1;
}

/* Read what is there. 1: requests were queued; 0: not; -1: closed. */
static int read_some(struct conn *conn)
{
	size_t total = 0;
	int queued = 0, ret;
	ssize_t got;

	while (may_read(conn) && total < READ_MAX) {
		size_t avail = conn->in_end - conn->in_at;

		if (!conn->size) {
			if (avail >= 4) {
				if (begin_request(conn))
					return -1;
				if (!conn->begun)
					conn->begun = loop_now(conn->loop);
				continue;
			}
			memmove(conn->inbuf, conn->inbuf + conn->in_at, avail);
			conn->in_at = 0;
			conn->in_end = avail;
			got = take(conn, conn->inbuf + avail, CONN_INBUF - avail);
			if (got <= 0)
				return got < 0 ? -1 : queued;
			conn->in_end += got;
			total += got;
			continue;
		}
		if (conn->have == conn->cap) {
			ret = grow(conn);
			if (ret)
				return ret < 0 ? -1 : queued;
		}
		if (avail) {
			size_t n = conn->cap - conn->have;

			if (n > avail)
				n = avail;
			memcpy(conn->body + conn->have, conn->inbuf + conn->in_at, n);
			conn->in_at += n;
			conn->have += n;
		} else {
			got = take(conn, conn->body + conn->have, conn->cap - conn->have);
			if (got <= 0)
				return got < 0 ? -1 : queued;
			conn->have += got;
			total += got;
		}
		if (conn->have == conn->size) {
			if (queue_request(conn))
				return -1;
			queued = 1;
			/* one at a time while nothing waits: the common case needs no list */
			if (!conn->running)
				return 1;
		}
	}
	return queued;
}

/* ---- going on ---- */

static void on_poll(uv_poll_t *poll, int status, int events);

static void update_poll(struct conn *conn)
{
	int events = 0;

	if (may_read(conn))
		events |= UV_READABLE;
	if (conn->want_write && !conn->sending)
		events |= UV_WRITABLE;
	if (!conn->gone)
		events |= UV_DISCONNECT;
	if (events == conn->events)
		return;
	conn->events = events;
	if (events)
		uv_poll_start(&conn->poll, events, on_poll);
	else
		uv_poll_stop(&conn->poll);
}

static void on_again(struct task *task)
{
	struct conn *conn = container_of(task, struct conn, again_task);

	conn->again = false;
	if (conn->closed)
		maybe_free(conn);
	else
		conn_advance(conn);
}

void conn_advance(struct conn *conn)
{
	int steps = 0, ret;
	bool more = true;

	if (conn->advancing || conn->closed)
		return;
	conn->advancing = true;
	while (more && !conn->closed && steps++ < STEPS_MAX) {
		struct request *req;

		more = false;
		ret = conn_send(conn);
		if (ret < 0) {
			say(SAY_DEBUG, "net", "%s: cannot send: %s", conn->peer, strerror(-ret));
			conn_close(conn, NULL);
			break;
		}
		if (!conn->running && !conn->close_after && output_small(conn)) {
			req = next_queued(conn);
			if (req) {
				conn->running = req;
				req->state = REQUEST_RUNNING;
				request_run(req);
				more = true;
				continue;
			}
		}
		/* it stands in line as one that may not pass the limit, and now it may */
		if (conn->no_memory && !conn->memory.may_pass && runs_next(conn) &&
		    budget_leave(&conn->loop->broker->budget, conn, &conn->memory))
			conn->no_memory = false;
		if (may_read(conn) && read_some(conn) > 0)
			more = true;
	}
	conn->advancing = false;
	if (conn->closed) {
		maybe_free(conn);
		return;
	}
	if ((conn->eof || conn->close_after || conn->loop->draining) && !conn->running &&
	    !conn->sending && (!conn->first || conn->loop->force ||
			       (conn->close_after && conn->first->state == REQUEST_QUEUED))) {
		conn_close(conn, NULL);
		return;
	}
	update_poll(conn);
	if (more && !conn->again) {
		conn->again = true;
		loop_post(conn->loop, &conn->again_task);
	}
}

void conn_answered(struct conn *conn, struct request *req)
{
	req->state = REQUEST_DONE;
	req->hurry = NULL;
	conn->running = NULL;
	conn->moved = loop_now(conn->loop);
	if (conn->closed)
		maybe_free(conn);
	else
		conn_advance(conn);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct conn *conn = poll->data;

	if (status < 0) {
		/* an error of the socket: reading tells which */
		int error = 0;
		socklen_t len = sizeof(error);

		getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len);
		say(SAY_DEBUG, "net", "%s: %s", conn->peer,
		    error ? strerror(error) : "closed by the peer");
		conn_close(conn, NULL);
		return;
	}
	if (events & UV_DISCONNECT) {
		conn->gone = true;
		if (conn->running && conn->running->hurry)
			conn->running->hurry(conn->running);
	}
	if (events & UV_WRITABLE)
		conn->want_write = false;
	conn_advance(conn);
}

/* ---- begin ---- */

static void name_peer(struct conn *conn)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (conn->address.ss_family == AF_INET6) {
		struct sockaddr_in6 *a = (struct sockaddr_in6 *)&conn->address;

		inet_ntop(AF_INET6, &a->sin6_addr, host, sizeof(host));
		snprintf(conn->peer, sizeof(conn->peer), "[%s]:%u", host, ntohs(a->sin6_port));
	} else {
		struct sockaddr_in *a = (struct sockaddr_in *)&conn->address;

		inet_ntop(AF_INET, &a->sin_addr, host, sizeof(host));
		snprintf(conn->peer, sizeof(conn->peer), "%s:%u", host, ntohs(a->sin_port));
	}
}

void conn_open(struct loop *loop, struct listener *listener, int fd,
	       const struct sockaddr_storage *address)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	int one = 1;

	if (!conn || loop->draining)
		goto refuse;
	conn->loop = loop;
	conn->listener = listener;
	conn->fd = fd;
	conn->address = *address;
	conn->last = &conn->first;
	conn->memory.retry = retry_memory;
	conn->memory_task.run = on_memory;
	conn->again_task.run = on_again;
	conn->moved = loop_now(loop);
	name_peer(conn);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* a peer whose machine is gone may have a Fetch here that waits for hours */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	if (uv_poll_init(&loop->uv, &conn->poll, fd))
		goto refuse;
	uv_timer_init(&loop->uv, &conn->timer);
	conn->poll.data = conn;
	conn->timer.data = conn;
	conn->handles = 2;
	conn->next = loop->conns;
	if (conn->next)
		conn->next->prev = &conn->next;
	conn->prev = &loop->conns;
	loop->conns = conn;
	loop->nconns++;
	say(SAY_DEBUG, "net", "%s: connected", conn->peer);
	conn_advance(conn);
	return;
refuse:
	free(conn);
	close(fd);
	listener_gone(listener, address);
}

/* ---- time ---- */

static void tick(struct conn *conn)
{
	const struct config *config = broker_config(conn->loop->broker);
	uint64_t now = loop_now(conn->loop);

	/* it is us who do not read: the peer's time to send a request stands still */
	if (conn->begun && !may_read(conn))
		conn->begun = now;
	if (conn->begun && may_read(conn)) {
		uint64_t age = now - conn->begun, free_ms = config->request_arrival_ms;

		if (age > free_ms && conn->have < (age - free_ms) * CONN_ARRIVAL_RATE) {
			if (conn->size)
				conn_close(conn, "only %zu of the %zu bytes of a request came in %"
					   PRIu64 " s (plog.request.arrival.ms)", conn->have,
					   conn->size, age / 1000);
			else
				conn_close(conn, "half a request's length, and nothing more in %"
					   PRIu64 " s (plog.request.arrival.ms)", age / 1000);
			return;
		}
	}
	/* a request that waits for data, or in line for memory, is not idleness of the peer */
	if (config->idle_max_ms < 0 || conn->running || conn->no_memory || conn->sending ||
	    now - conn->moved <= (uint64_t)config->idle_max_ms)
		return;
	if (conn->first)
		conn_close(conn, "it takes none of its answers since %" PRId64
			   " ms (connections.max.idle.ms)", config->idle_max_ms);
	else if (!conn->used && !conn->begun)
		conn_close(conn, "nothing came in %" PRId64 " ms (connections.max.idle.ms)",
			   config->idle_max_ms);
	else
		conn_close(conn, "idle for %" PRId64 " ms (connections.max.idle.ms)",
			   config->idle_max_ms);
}

void conn_tick_all(struct loop *loop)
{
	struct conn *conn, *next;

	for (conn = loop->conns; conn; conn = next) {
		next = conn->next;
		if (!conn->closed)
			tick(conn);
	}
}

void conn_drain_all(struct loop *loop)
{
	struct conn *conn, *next;

	for (conn = loop->conns; conn; conn = next) {
		next = conn->next;
		if (conn->closed)
			continue;
		if (loop->force) {
			conn_close(conn, NULL);
			continue;
		}
		if (conn->running && conn->running->hurry)
			conn->running->hurry(conn->running);
		else
			conn_advance(conn);
	}
}
