/* SPDX-License-Identifier: MIT */
#ifndef PLOG_CHANGE_H
#define PLOG_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "../../tools/libplog/datadir.h"
#include "../kafka/codec.h"
#include "../loop.h"

struct broker;
struct changes;
struct topic;

/*
 * Topics are made, altered and deleted by one thread, one after the other, because it sleeps
 * on the disk and on the module. Whoever wants a change submits it and hears of the end on
 * its own loop.
 */
enum change_kind {
	CHANGE_CREATE,
	CHANGE_DELETE,
	CHANGE_ALTER,
	CHANGE_DEFAULTS,	/* the broker's defaults are others: tell all logs */
};

struct change {
	enum change_kind kind;
	char name[DATADIR_TOPIC_MAX + 1];

	/* create: the topic wanted; alter: unused fields as change_init() leaves them */
	int64_t partitions;		/* alter: 0 leaves it */
	struct properties set;		/* configuration to set */
	char **unset;			/* keys to take out; the caller's */
	size_t nunset;
	struct datadir_owner owner;
	bool set_uid, set_gid, set_mode;	/* alter: which of @owner count */
	int64_t partition;		/* alter: whose owner; -1: the topic's */
	bool node;
	bool validate_only;		/* create: check, make nothing */
	struct kuuid id;		/* delete: only the topic with this id; zero: any */

	/* outcome */
	int16_t error;			/* a Kafka error number */
	char text[PLOG_ERROR_MAX];	/* why */
	struct topic *topic;		/* as it is now: a reference, NULL after an error */

	struct loop *loop;		/* where @done is called */
	void (*done)(struct change *change);
	void *arg;
	struct task task;
	struct change *next;
};

/* Set up an empty change of @kind for topic @name (at most 249 bytes). */
void change_init(struct change *change, enum change_kind kind, const char *name, size_t n);

/* Free what it owns: the properties and the reference. */
void change_clear(struct change *change);

/* Begin the thread. NULL and a sentence on failure. */
struct changes *changes_start(struct broker *b, struct plog_error *err);

/* Finish what was submitted, and end. */
void changes_stop(struct changes *changes);

/* Any thread. @change belongs to the thread until done() is called on its loop. */
void changes_submit(struct changes *changes, struct change *change);

/*
 * Read the topics of the data directory and open all their logs. At the start, before there
 * are any requests. A partition that cannot be opened is told and stays out of service; only
 * what concerns the whole directory is an error. -ECANCELED: plogd is to end.
 */
int changes_load(struct broker *b, struct plog_error *err);

/* Close every log cleanly, for a later start without a scan. At the end. */
void changes_unload(struct broker *b);

#endif
