/* SPDX-License-Identifier: MIT */
#ifndef PLOG_BROKER_H
#define PLOG_BROKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../budget.h"
#include "../config.h"
#include "../loop.h"

struct appender;
struct changes;
struct datadir;
struct fetch_sessions;
struct janitor;
struct listener;
struct log_engine;
struct netlink;
struct peers;
struct topics;

#define BROKER_VERSION "0.1"

/* The world: one per process, made and ended by main.c, read by every thread. */
struct broker {
	_Atomic(struct config *) config;
	const char *config_path;	/* NULL: none */

	struct loop control;
	struct loop *loops;		/* of the clients */
	unsigned int nloops;
	struct appender *appenders;	/* as many */

	struct listener *listeners;	/* as in the configuration, in its order */
	unsigned int nlisteners;
	atomic_uint connections;
	int64_t connections_room;	/* how many the limit of open files allows */
	int64_t cursors_room;		/* and of cursors: see log_cursors_left() */
	struct peers *peers;
	uint64_t accepted;		/* of the control loop's thread */
	struct budget budget;		/* of memory for requests as they come */
	struct budget decoded;		/* and as they are worked on */

	int32_t node_id;
	char cluster_id[64];
	uint64_t incarnation;		/* given by the module; 0 for the process engine */
	_Atomic uint64_t last_topic_change;

	struct datadir *datadir;
	struct log_engine *engine;
	struct netlink *netlink;	/* NULL with the process engine */
	struct topics *topics;
	struct changes *changes;
	_Atomic(struct janitor *) janitor;
	struct fetch_sessions *sessions;

	struct task stop_task;		/* posted to the control loop by broker_stop() */
	atomic_bool stopping;
	atomic_int exit_code;
};

/* The configuration in force; stays valid until the end. Any thread. */
static inline const struct config *broker_config(struct broker *b)
{
	return atomic_load_explicit(&b->config, memory_order_acquire);
}

/* Ask for a clean end with @exit_code. Any thread; the first call counts. */
void broker_stop(struct broker *b, int exit_code);

/* An append came back as that of an old incarnation: has another plogd taken over? Any thread. */
void broker_check_replaced(struct broker *b);

#endif
