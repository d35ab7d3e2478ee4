/* SPDX-License-Identifier: MIT */
/*
 * The configuration keys of a topic: Kafka's names, types, ranges and defaults,
 * and which of them reach the module.  A topic's configuration itself is a
 * struct properties that holds the keys that were set, and only those.
 */
#ifndef PLOG_TOPICCONFIG_H
#define PLOG_TOPICCONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "properties.h"

enum topicconfig_type {
	TOPICCONFIG_BOOLEAN = 1, /* numbers as in Kafka's DescribeConfigs */
	TOPICCONFIG_STRING = 2,
	TOPICCONFIG_INT = 3,
	TOPICCONFIG_LONG = 5,
	TOPICCONFIG_DOUBLE = 6,
	TOPICCONFIG_LIST = 7,
};

/* Who acts on a key. */
enum topicconfig_scope {
	TOPICCONFIG_STORED,	/* nobody yet: checked, kept, shown */
	TOPICCONFIG_DAEMON,	/* plogd, at once */
	TOPICCONFIG_MODULE,	/* the module, at once: PARTITION_SET */
};

/* Which value of the module's a key of scope MODULE sets. */
enum topicconfig_module_key {
	TOPICCONFIG_MODULE_NONE = 0,
	TOPICCONFIG_MAX_MESSAGE_BYTES,
	TOPICCONFIG_SEGMENT_BYTES,
	TOPICCONFIG_SEGMENT_MS,
	TOPICCONFIG_INDEX_INTERVAL_BYTES,
	TOPICCONFIG_INDEX_BYTES,
	TOPICCONFIG_COMPACT,		/* PLOG_STATE_COMPACT */
	TOPICCONFIG_LOG_APPEND_TIME,	/* PLOG_STATE_LOG_APPEND_TIME */
	TOPICCONFIG_RETENTION_MS,
	TOPICCONFIG_RETENTION_BYTES,
	TOPICCONFIG_FILE_DELETE_DELAY_MS,
	TOPICCONFIG_SEGMENT_JITTER_MS,
	TOPICCONFIG_FLUSH_MESSAGES,
	TOPICCONFIG_FLUSH_MS,
	TOPICCONFIG_PREALLOCATE,
	TOPICCONFIG_MAX_COMPACTION_LAG_MS, /* a segment of a compacted topic is no older */
};

/**
 * struct topicconfig_key - one row of the table
 * @name: of the topic configuration, "segment.bytes"
 * @server: keys of server.properties that set a broker's default for it,
 *	strongest first, separated by blanks, each with ":FACTOR" where its unit
 *	is a larger one ("log.roll.ms log.roll.hours:3600000"); "" for none
 * @type: how values are read
 * @scope: who acts on it
 * @module: what it sets in the module
 * @min, @max: range of INT and LONG, and of DOUBLE in thousandths
 * @values: allowed values of STRING and elements of LIST, separated by blanks;
 *	NULL for any
 * @initial: default, as text
 * @doc: one line for people
 */
struct topicconfig_key {
	const char *name;
	const char *server;
	enum topicconfig_type type;
	enum topicconfig_scope scope;
	enum topicconfig_module_key module;
	int64_t min, max;
	const char *values;
	const char *initial;
	const char *doc;
};

/* The table, sorted by name; *@count rows. */
const struct topicconfig_key *topicconfig_keys(size_t *count);
/* NULL if Kafka has no such key. */
const struct topicconfig_key *topicconfig_find(const char *name);
/* The known key closest to a mistyped one, or NULL if none is close. */
const char *topicconfig_nearest(const char *name);

/**
 * topicconfig_check() - is this value right for this key?
 *
 * Return: 0; -ENOENT (no such key; @err names the closest); -EINVAL (not of the
 * type, out of range, not one of the values).
 */
int topicconfig_check(const char *name, const char *value, struct plog_error *err);

/**
 * topicconfig_check_all() - topicconfig_check() of all, and what keys say together
 *
 * (max.compaction.lag.ms at least min.compaction.lag.ms; local retention not
 * above retention.)  Return: as topicconfig_check().
 */
int topicconfig_check_all(const struct properties *config, struct plog_error *err);

/**
 * topicconfig_set() - properties_set() of a value as it is kept: without blanks round it
 *
 * Any number of blanks is allowed round a number, a boolean or a list; without them
 * what topicconfig_check() takes is a few hundred bytes at most.  Nothing is
 * checked here.  Return: 0 or -ENOMEM.
 */
int topicconfig_set(struct properties *config, const char *name, const char *value);

/**
 * topicconfig_value() - the value in force
 * @config: the topic's; may be NULL
 * @defaults: the broker's, by topic key, from topicconfig_server_defaults(); may
 *	be NULL
 *
 * Return: text of @config, else of @defaults, else Kafka's default; NULL only if
 * there is no such key.
 */
const char *topicconfig_value(const struct properties *config, const struct properties *defaults,
			      const char *name);
/* The same for keys of the types that fit; the key must be in the table. */
int64_t topicconfig_number(const struct properties *config, const struct properties *defaults,
			   const char *name);
bool topicconfig_boolean(const struct properties *config, const struct properties *defaults,
			 const char *name);
double topicconfig_double(const struct properties *config, const struct properties *defaults,
			  const char *name);
/* Is @element in the LIST value, or the STRING equal to it? */
bool topicconfig_has(const struct properties *config, const struct properties *defaults,
		     const char *name, const char *element);

/**
 * topicconfig_server_defaults() - a broker's defaults for topics
 * @server: the broker's server.properties
 * @defaults: out: topic keys; initialized by the caller
 *
 * "log.retention.hours=24" becomes "retention.ms=86400000", and so on.  Keys of
 * @server that do not concern topics are ignored.  Return: 0, -EINVAL (a value
 * that is not allowed; @err names the server's key), -ENOMEM.
 */
int topicconfig_server_defaults(const struct properties *server, struct properties *defaults,
				struct plog_error *err);

/* What the module is told with PARTITION_NEW and PARTITION_SET. */
struct topicconfig_module {
	uint32_t flags;		/* PLOG_STATE_COMPACT, _LOG_APPEND_TIME, _INTERNAL */
	uint32_t max_message_bytes;
	uint32_t segment_bytes;
	uint64_t segment_ms;
	uint32_t index_interval_bytes;
	uint32_t index_bytes;	/* rounded down to a multiple of 8, as Kafka does */
	int64_t retention_ms;	/* -1 too where cleanup.policy has no delete */
	int64_t retention_bytes;
	uint64_t file_delete_delay_ms;
	uint64_t segment_jitter_ms;
	uint64_t flush_messages;
	uint64_t flush_ms;
	bool preallocate;
};

/**
 * topicconfig_module() - the module's part of a configuration that was checked
 * @topic: name: Kafka's internal topics get PLOG_STATE_INTERNAL
 */
void topicconfig_module(const char *topic, const struct properties *config,
			const struct properties *defaults, struct topicconfig_module *out);

/* Is it one of Kafka's own topics (__consumer_offsets, __transaction_state, ...)? */
bool topicconfig_topic_internal(const char *topic);

#endif /* PLOG_TOPICCONFIG_H */
