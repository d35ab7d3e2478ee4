/* SPDX-License-Identifier: MIT */
#ifndef PLOG_TOPICS_H
#define PLOG_TOPICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../tools/libplog/datadir.h"
#include "../kafka/codec.h"

struct broker;
struct log;
struct log_config;
struct topics;

/*
 * A topic as it is now. It never changes: a change of the topic puts another struct in its
 * place, with the same logs. So whoever holds a reference may read all of it without a lock.
 */
struct topic {
	atomic_uint refs;
	struct datadir_topic conf;	/* name, id, partitions, owners, configuration */
	struct kuuid id;
	struct kstr name;		/* of conf */
	bool internal;
	uint32_t partitions;
	struct log **logs;		/* one for each, each a reference */

	/* of the configuration in force, for each Produce and Fetch */
	uint32_t max_message_bytes;
	bool log_append_time;
	bool compact, delete;		/* cleanup.policy */
	int codec;			/* compression.type; RECORDS_CODEC_KEEP for producer */
	int codec_level;
	int64_t before_max_ms, after_max_ms;
	int64_t min_insync;
};

struct topics *topics_new(void);	/* NULL: no memory */
void topics_free(struct topics *topics);

/* A reference to the topic of that name or id, or NULL. Any thread. */
struct topic *topics_find(struct topics *topics, struct kstr name);
struct topic *topics_find_id(struct topics *topics, const struct kuuid *id);

/*
 * A reference to every topic, sorted by name, in an array of *@count pointers that is the
 * caller's to free(). NULL: no memory. Any thread.
 */
struct topic **topics_all(struct topics *topics, size_t *count);
void topics_all_free(struct topic **all, size_t count);

size_t topics_count(struct topics *topics);

/*
 * A topic with one reference from @conf, which it takes over, and @logs, which it takes over
 * too (the array and the references). NULL: no memory; both are still the caller's.
 */
struct topic *topic_new(struct broker *b, struct datadir_topic *conf, struct log **logs);
void topic_get(struct topic *topic);
void topic_put(struct topic *topic);	/* NULL is fine */

/* What one partition's log is told of the topic's configuration. */
void topic_log_config(struct broker *b, const struct datadir_topic *conf, uint32_t partition,
		      struct log_config *out);

/*
 * Put @topic, a reference that it takes over, into the table, in place of the one with its
 * name. 0 or -ENOMEM. The changes thread, and main at the start.
 */
int topics_put(struct topics *topics, struct topic *topic);

/* Take the topic of that name out; its reference is the caller's. NULL: there is none. */
struct topic *topics_take(struct topics *topics, const char *name);

#endif
