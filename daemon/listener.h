/* SPDX-License-Identifier: MIT */
#ifndef PLOG_LISTENER_H
#define PLOG_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "../tools/libplog/properties.h"

struct broker;
struct config_listener;

/*
 * A listening socket. The control loop accepts and hands each connection to the client loop
 * that has the fewest, where it stays.
 */
struct listener {
	struct broker *broker;
	char name[64];		/* as in the configuration */
	int fd;
	uint16_t port;		/* the one it got, if any free one was asked for */
	uv_poll_t poll;
	uv_timer_t pause;	/* no descriptors, or max.connections: try again later */
	bool open;
	bool full_said, failure_said;
};

/* Bind and listen, do not accept yet. 0, or a negative errno and a sentence. */
int listener_open(struct listener *l, struct broker *broker, const struct config_listener *config,
		  struct plog_error *err);

/* Accept from now on. On the control loop. 0 or a negative errno. */
int listener_start(struct listener *l);

/* Accept no more and close the socket; new connections are refused by the kernel. */
void listener_close(struct listener *l);

/* A connection that this one had accepted has ended. Any thread. */
void listener_gone(struct listener *l, const struct sockaddr_storage *address);

#endif
