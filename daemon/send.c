// SPDX-License-Identifier: MIT
#include "conn.h"

#include <errno.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "broker/broker.h"
#include "log/log.h"
#include "say.h"

/* Most bytes of one sendfile: a loop's other connections wait for an inline one. */
#define SEND_INLINE_MAX (512 << 10)
#define SEND_WORK_MAX (4 << 20)

/*
 * An answer with extents is many small pieces of memory with runs of the log between them;
 * while it leaves, the socket is corked, so that TCP fills its segments.
 */
static void cork(struct conn *conn, bool on)
{
	int value = on;

	if (conn->corked == on)
		return;
	setsockopt(conn->fd, IPPROTO_TCP, TCP_CORK, &value, sizeof(value));
	conn->corked = on;
}

static void send_work(uv_work_t *work)
{
	struct conn *conn = work->data;
	struct request *req = conn->first;
	struct buf_piece piece;
	uint64_t done = 0;
	ssize_t n = 0;

	buf_peek(&req->out, &req->pos, &piece);
	while (done < piece.len && done < SEND_WORK_MAX) {
		n = log_cursor_send(piece.extent, conn->fd, piece.extent_off + done,
				    piece.len - done);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		done += n;
	}
	conn->send_result = done ? (ssize_t)done : n ? n : -ESTALE;
}

/* What went wrong with an extent, for people: the client sees its connection end. */
static void say_extent(const struct conn *conn, const struct log_cursor *cursor, int error)
{
	if (error == -EPIPE || error == -ECONNRESET)
		return;
	say(SAY_WARN, "net", "%s: connection closed: records of %s from offset %lld on cannot be "
	    "sent: %s", conn->peer, cursor->log->name, (long long)cursor->extent.base_offset,
	    error == -ESTALE ? "they were truncated meanwhile" : strerror(-error));
}

/* Bytes have left, or not. 1: go on; 0: wait; or an error. */
static int sent(struct conn *conn, struct request *req, ssize_t n)
{
	if (n > 0) {
		buf_advance(&req->out, &req->pos, n);
		conn->moved = loop_now(conn->loop);
		return 1;
	}
	if (n == -EAGAIN) {
		conn->want_write = true;
		return 0;
	}
	return n ? (int)n : -EPIPE;
}

static void send_done(uv_work_t *work, int status)
{
	struct conn *conn = work->data;
	struct loop *loop = conn->loop;
	struct buf_piece piece;
	int ret;

	(void)status;
	conn->sending = false;
	loop->nworks--;
	if (conn->closed) {
		conn_reap(conn);
		return;
	}
	buf_peek(&conn->first->out, &conn->first->pos, &piece);
	ret = sent(conn, conn->first, conn->send_result);
	if (ret < 0) {
		say_extent(conn, piece.extent, ret);
		conn_close(conn, NULL);
		return;
	}
	conn_advance(conn);
}

int conn_send(struct conn *conn)
{
	struct request *req;
	int ret;

	if (conn->sending)
		return 0;
	while ((req = conn->first) && req->state == REQUEST_DONE) {
		struct buf_piece piece;
		ssize_t n;

		buf_peek(&req->out, &req->pos, &piece);
		if (req->silent || !piece.len) {
			cork(conn, false);
			conn->first = req->next;
			if (!conn->first)
				conn->last = &conn->first;
			conn->nrequests--;
			request_free(req);
			continue;
		}
		if (conn->want_write)
			return 0;
		cork(conn, req->out.nextents > 0);
		if (piece.extent) {
			struct log_cursor *cursor = piece.extent;

			if (!log_is_recent(cursor->log, cursor->extent.base_offset,
					   loop_now(conn->loop))) {
				conn->send_work.data = conn;
				if (!uv_queue_work(&conn->loop->uv, &conn->send_work, send_work,
						   send_done)) {
					conn->sending = true;
					conn->loop->nworks++;
					return 0;
				}
			}
			n = piece.len < SEND_INLINE_MAX ? piece.len : SEND_INLINE_MAX;
			n = log_cursor_send(cursor, conn->fd, piece.extent_off, n);
			if (!n)
				n = -ESTALE;
			if (n < 0 && n != -EAGAIN && n != -EINTR)
				say_extent(conn, cursor, n);
		} else {
			n = send(conn->fd, piece.data, piece.len, MSG_NOSIGNAL);
			if (n < 0)
				n = -errno;
		}
		if (n == -EINTR)
			continue;
		ret = sent(conn, req, n);
		if (ret <= 0)
			return ret;
	}
	return 1;
}
