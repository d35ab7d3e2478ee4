// SPDX-License-Identifier: MIT
#include "listener.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "config.h"
#include "conn.h"
#include "peers.h"
#include "say.h"

#define PAUSE_MS 100
#define ACCEPT_MAX 64

struct handover {
	struct task task;
	struct loop *loop;
	struct listener *listener;
	int fd;
	struct sockaddr_storage address;
};

int listener_open(struct listener *l, struct broker *broker, const struct config_listener *config,
		  struct plog_error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	const struct config *all = broker_config(broker);
	const char *host = *config->host ? config->host : "0.0.0.0";
	struct addrinfo *ai = NULL;
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	char port[8];
	int ret, one = 1, size;

	*l = (struct listener){ .broker = broker, .fd = -1 };
	snprintf(l->name, sizeof(l->name), "%s", config->name);
	snprintf(port, sizeof(port), "%u", config->port);
	ret = getaddrinfo(host, port, &hints, &ai);
	if (ret)
		return plog_error_set(err, -EADDRNOTAVAIL, "listener %s: the address %s cannot be "
				      "used: %s", l->name, host, gai_strerror(ret));
	l->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		goto fail;
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (all->receive_buffer > 0) {
		/* before listen(): the window that is offered depends on it */
		size = all->receive_buffer;
		setsockopt(l->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	}
	if (all->send_buffer > 0) {
		size = all->send_buffer;
		setsockopt(l->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	}
	if (bind(l->fd, ai->ai_addr, ai->ai_addrlen) || listen(l->fd, all->listen_backlog) ||
	    getsockname(l->fd, (struct sockaddr *)&own, &len))
		goto fail;
	freeaddrinfo(ai);
	l->port = ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port :
						    ((struct sockaddr_in *)&own)->sin_port);
	return 0;
fail:
	ret = -errno;
	plog_error_set(err, ret, "listener %s: cannot listen at %s:%u: %s%s", l->name, host,
		       config->port, strerror(-ret), ret == -EADDRINUSE ?
		       " (another broker runs there, or another program has the port)" : "");
	freeaddrinfo(ai);
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	return ret;
}

static void take_over(struct task *task)
{
	struct handover *h = container_of(task, struct handover, task);

	conn_open(h->loop, h->listener, h->fd, &h->address);
	free(h);
}

static struct loop *least_loaded(struct broker *b)
{
	struct loop *best = &b->loops[b->accepted++ % b->nloops];

	/* the counts of other threads are a hint: an old one is as good */
	for (unsigned int i = 0; i < b->nloops; i++)
		if (atomic_load(&b->loops[i].nconns) + 1 < atomic_load(&best->nconns))
			best = &b->loops[i];
	return best;
}

static void hand_over(struct listener *l, int fd, const struct sockaddr_storage *address)
{
	struct handover *h = malloc(sizeof(*h));

	if (!h) {
		say(SAY_ERROR, "net", "out of memory: a connection was refused");
		close(fd);
		listener_gone(l, address);
		return;
	}
	h->task.run = take_over;
	h->loop = least_loaded(l->broker);
	h->listener = l;
	h->fd = fd;
	h->address = *address;
	loop_post(h->loop, &h->task);
}

static void on_accept(uv_poll_t *poll, int status, int events);

static void on_pause_over(uv_timer_t *timer)
{
	struct listener *l = timer->data;

	if (l->open)
		uv_poll_start(&l->poll, UV_READABLE, on_accept);
}

static void pause_accept(struct listener *l)
{
	uv_poll_stop(&l->poll);
	uv_timer_start(&l->pause, on_pause_over, PAUSE_MS, 0);
}

static void on_accept(uv_poll_t *poll, int status, int events)
{
	struct listener *l = poll->data;
	struct broker *b = l->broker;
	const struct config *config = broker_config(b);
	int64_t max = config->connections_max;

	if (max > b->connections_room)
		max = b->connections_room;
	(void)status;
	(void)events;
	for (int i = 0; i < ACCEPT_MAX && l->open; i++) {
		struct sockaddr_storage address = { 0 };
		socklen_t len = sizeof(address);
		int fd;

		if (atomic_load(&b->connections) >= (uint64_t)max) {
			/* as in Kafka the next ones wait in the backlog until one ends */
			if (!l->full_said)
				say(SAY_WARN, "net", "%" PRId64 " connections are open (%s): new "
				    "ones wait", max, max == config->connections_max ?
				    "max.connections" : "three quarters of the open files that "
				    "plogd may have, see ulimit -n or LimitNOFILE=");
			l->full_said = true;
			pause_accept(l);
			return;
		}
		fd = accept4(l->fd, (struct sockaddr *)&address, &len,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EAGAIN)
				return;
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			    errno == ENOBUFS) {
				/* every so many ms again: one line until one is accepted */
				if (!l->failure_said)
					say(SAY_ERROR, "net", "cannot accept a connection: %s; "
					    "trying again", strerror(errno));
				l->failure_said = true;
				pause_accept(l);
				return;
			}
			continue;	/* the peer has gone already */
		}
		l->full_said = false;
		l->failure_said = false;
		if (peers_add(b->peers, &address, config->connections_max_per_ip)) {
			say(SAY_WARN, "net", "a connection was refused: its address has %" PRId64
			    " (max.connections.per.ip)", config->connections_max_per_ip);
			close(fd);
			continue;
		}
		atomic_fetch_add(&b->connections, 1);
		hand_over(l, fd, &address);
	}
}

int listener_start(struct listener *l)
{
	int ret = uv_poll_init(&l->broker->control.uv, &l->poll, l->fd);

	if (ret)
		return ret;
	l->poll.data = l;
	ret = uv_timer_init(&l->broker->control.uv, &l->pause);
	if (ret)
		return ret;
	l->pause.data = l;
	l->open = true;
	return uv_poll_start(&l->poll, UV_READABLE, on_accept);
}

void listener_close(struct listener *l)
{
	if (l->open) {
		l->open = false;
		uv_poll_stop(&l->poll);
		uv_timer_stop(&l->pause);
		uv_close((uv_handle_t *)&l->poll, NULL);
		uv_close((uv_handle_t *)&l->pause, NULL);
	}
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

void listener_gone(struct listener *l, const struct sockaddr_storage *address)
{
	peers_remove(l->broker->peers, address);
	atomic_fetch_sub(&l->broker->connections, 1);
}
