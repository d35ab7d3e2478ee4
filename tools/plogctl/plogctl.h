/* SPDX-License-Identifier: MIT */
/*
 * plogctl: what its files share.
 *
 * main.c parses the command line into a struct ctl and calls the command, one
 * per file.  A command returns the exit status; errors below it are a negative
 * errno and a sentence in a struct plog_error.
 */
#ifndef PLOGCTL_H
#define PLOGCTL_H

#include <json-c/json.h>
#include <linux/plog.h>
#include <linux/plog_netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "datadir.h"
#include "topicconfig.h"

#ifndef PLOGCTL_VERSION
#define PLOGCTL_VERSION "0.1"
#endif

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct ctl;
struct net;

/**
 * struct option - one option of a command
 * @name: with its dashes, "--partitions"
 * @argument: what its value is called in the help; NULL for a flag
 * @many: may stand more than once
 */
struct option {
	const char *name;
	const char *argument;
	const char *doc;
	bool many;
};

/**
 * struct command - one row of the table in main.c
 * @group, @verb: "topic", "create"; @verb is NULL where the group is the command
 * @usage: the arguments, as the help shows them
 * @summary: one line
 * @text: more, for the command's own help
 * @options: ends with a NULL name; may be NULL
 */
struct command {
	const char *group;
	const char *verb;
	const char *usage;
	const char *summary;
	const char *text;
	const struct option *options;
	unsigned int args_min, args_max;
	int (*run)(struct ctl *ctl);
};

struct chosen {
	const struct option *option;
	const char *value;
};

/* The world of one run. */
struct ctl {
	const struct command *command;
	char **args;		/* positional, after the command's words */
	unsigned int arg_count;
	struct chosen *chosen;
	size_t chosen_count;
	bool json;
	bool bytes;
};

/* main.c: the table, in the order of the help; ends with a NULL group */
extern const struct command commands[];

/* ---- options.c ---- */

/*
 * Finds the command and fills in @ctl.  Return: -1 to go on and run it, or the
 * exit status (help was printed, or the usage was wrong).
 */
int options_parse(struct ctl *ctl, int argc, char **argv);
void options_release(struct ctl *ctl);

bool option_given(const struct ctl *ctl, const char *name);
/* Its last value, or NULL. */
const char *option_value(const struct ctl *ctl, const char *name);
/* Its @n-th value (0 is the first), or NULL. */
const char *option_nth(const struct ctl *ctl, const char *name, size_t n);

/* A whole number; -EINVAL with @err naming @what. */
int number_parse(const char *text, uint64_t min, uint64_t max, const char *what, uint64_t *value,
		 struct plog_error *err);
/* "0660" or "660". */
int mode_parse(const char *text, mode_t *mode, struct plog_error *err);
/* "USER", "USER:GROUP" or ":GROUP", names or numbers; what is absent stays. */
int owner_parse(const char *text, struct datadir_owner *owner, struct plog_error *err);

/* Print "plogctl: ..." to stderr; return EXIT_FAILED and EXIT_USAGE. */
int fail(const struct plog_error *err);
int fail_usage(const struct ctl *ctl, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- output.c ---- */

struct table;
struct column {
	const char *title;
	bool right;		/* numbers */
};

/* Exits with a message when memory ends. */
struct table *table_new(const struct column *columns, size_t count);
/* The same for an array: its length is counted once. */
#define TABLE_NEW(columns)	table_new(columns, sizeof(columns) / sizeof((columns)[0]))
/* Cells go left to right, then to the next row. */
void table_cell(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints and frees it. */
void table_print(struct table *t);

/* "Name:      value", names padded to the widest that is usual. */
void line(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "1.5M", or all digits with --bytes. In one of a few static buffers. */
const char *size_text(const struct ctl *ctl, uint64_t bytes);
/* ISO 8601 in UTC with milliseconds; "-" if negative. */
const char *time_text(int64_t ms);
const char *user_text(uid_t uid);
const char *group_text(gid_t gid);

/* json-c's, but exiting with a message when memory ends. */
struct json_object *json_new(void);
struct json_object *json_list(void);
void json_text(struct json_object *o, const char *key, const char *value);
void json_number(struct json_object *o, const char *key, int64_t value);
void json_unsigned(struct json_object *o, const char *key, uint64_t value);
void json_truth(struct json_object *o, const char *key, bool value);
void json_put(struct json_object *o, const char *key, struct json_object *value);
void json_append(struct json_object *list, struct json_object *value);
/* One document on stdout, indented, or on one line if @compact. Frees it. */
void json_print(struct json_object *o, bool compact);

/* What a command lists: rows of a table, or with --json objects of an array. */
struct listing {
	const struct ctl *ctl;
	struct table *table;		/* NULL with --json */
	struct json_object *all;	/* NULL without */
};

void listing_begin(struct listing *l, const struct ctl *ctl, const struct column *columns,
		   size_t count);
#define LISTING_BEGIN(l, ctl, columns) \
	listing_begin(l, ctl, columns, sizeof(columns) / sizeof((columns)[0]))
/* Prints and frees it. */
void listing_print(struct listing *l);

/* ---- net.c: the family ---- */

struct nl_msg;
struct nlattr;

/* Finds the family. -ENOENT: the module is not loaded. */
int net_open(struct net **out, struct plog_error *err);
void net_close(struct net *net);
/* A message to fill in; exits with a message when memory ends. */
struct nl_msg *net_message(struct net *net, uint8_t command, int flags);
/* Attributes of @msg as PLOG_A_*, each NULL or a nest. */
typedef int (*net_handler)(void *arg, uint8_t command, struct nlattr **attrs);
/*
 * Sends @msg (and frees it), calls @fn (may be NULL) for each answer, waits for
 * the acknowledgement.  Return: 0 or the kernel's negative errno, with the
 * kernel's own words where it gave some; @what names the thing asked for.
 */
int net_request(struct net *net, struct nl_msg *msg, net_handler fn, void *arg,
		const char *what, struct plog_error *err);

/* Subscribe to events; before the request whose outcome they tell. */
int net_events_open(struct net *net, struct plog_error *err);
/*
 * Wait up to @timeout_ms (-1: for ever) and handle what has come.  Return: how
 * many events, 0 at the timeout or at a signal, -ENOBUFS if some were lost.
 */
int net_events_wait(struct net *net, int timeout_ms, net_handler fn, void *arg);

/*
 * Ask the daemon.  @request is not freed; *@reply is the caller's.  Return: 0
 * and the reply has "ok":true; -EREMOTEIO (the daemon refused, @err has its
 * words); -EHOSTDOWN (no daemon); -ETIMEDOUT; -ECONNRESET (it died meanwhile).
 */
int net_relay(struct net *net, struct json_object *request, unsigned int timeout_s,
	      struct json_object **reply, struct plog_error *err);

/* ---- kernel.c: requests and what they give ---- */

#define INSTANCE_LIMITS 4

/* What an instance refuses to pass. */
struct instance_limit {
	uint32_t attr;		/* PLOG_A_INSTANCE_MAX_* */
	const char *option;	/* "--max-partitions" */
	const char *name;	/* in JSON */
	const char *title;	/* for people */
	uint64_t min, max;
};

extern const struct instance_limit instance_limits[INSTANCE_LIMITS];

struct instance_info {
	uint32_t state;		/* PLOG_INSTANCE_* */
	char data_dir[PLOG_LABEL_MAX + 1];
	uint32_t partitions;
	uint32_t online;
	uint64_t incarnation;
	char version[64];
	uint32_t retention_check_ms;
	uint32_t limits[INSTANCE_LIMITS];	/* in the order of instance_limits */
	uint32_t descriptors;
};

struct partition_info {
	char topic[PLOG_TOPIC_SIZE];
	uint32_t index, state, error, flags;
	bool node;
	uint8_t topic_id[DATADIR_ID_SIZE];
	uint32_t uid, gid, mode;
	int32_t leader_epoch;
	int64_t log_start, high_watermark, last_stable, log_end, max_timestamp;
	uint64_t bytes, segment_ms;
	uint32_t segments, max_message_bytes, segment_bytes, index_interval_bytes, index_bytes;
	int64_t retention_ms, retention_bytes;
	uint64_t file_delete_delay_ms, segment_jitter_ms, flush_messages, flush_ms;
	bool preallocate;
	uint32_t retired;
};

struct partition_list {
	struct partition_info *entries;	/* sorted by topic and index */
	size_t count, room;
};

struct segment_info {
	int64_t base_offset, max_timestamp;
	uint64_t bytes, generation;
	uint32_t index_bytes, timeindex_bytes, pins;
	bool active;
};

struct retired_info {
	char topic[PLOG_TOPIC_SIZE];
	uint32_t index, pins, state;	/* PLOG_RETIRED_STATE_* */
	int64_t base_offset;
	uint64_t bytes;
};

struct epoch_info {
	int32_t epoch;
	int64_t start;
};

struct stats_info {
	char topic[PLOG_TOPIC_SIZE];	/* empty: of the whole instance */
	uint32_t index;
	uint64_t counters[PLOG_A_STATS_MAX + 1];
};

int kernel_instance_get(struct net *net, struct instance_info *info, struct plog_error *err);
/* As above, but -ENODEV with advice if there is no running instance. */
int kernel_instance_need(struct net *net, struct instance_info *info, struct plog_error *err);
/* @dir NULL: only limits.  @limits: 0 leaves one as it is. */
int kernel_instance_set(struct net *net, const struct datadir *dir,
			const uint32_t limits[INSTANCE_LIMITS], struct plog_error *err);
int kernel_instance_stop(struct net *net, struct plog_error *err);

/* Put a partition into service: opens its folder, making one that is missing (*@made). */
int kernel_partition_new(struct net *net, struct datadir *dir, const struct datadir_topic *topic,
			 uint32_t partition, bool *made, struct plog_error *err);
/* Hand on configuration and owner. */
int kernel_partition_set(struct net *net, const struct datadir_topic *topic, uint32_t partition,
			 struct plog_error *err);
int kernel_partition_del(struct net *net, const char *topic, uint32_t partition,
			 struct plog_error *err);
int kernel_partition_get(struct net *net, const char *topic, uint32_t partition,
			 struct partition_info *info, struct plog_error *err);
/* All, or those of @topic. */
int kernel_partition_list(struct net *net, const char *topic, struct partition_list *list,
			  struct plog_error *err);
void partition_list_free(struct partition_list *list);
const struct partition_info *partition_list_find(const struct partition_list *list,
						 const char *topic, uint32_t index);
/* Partitions of one topic in the sorted list; *@count of them. */
const struct partition_info *partition_list_topic(const struct partition_list *list,
						  const char *topic, size_t *count);

int kernel_segments(struct net *net, const char *topic, uint32_t partition,
		    void (*fn)(void *arg, const struct segment_info *info), void *arg,
		    struct plog_error *err);
/* How often retention looks at each partition, of an instance that runs. */
int kernel_retention_check(struct net *net, uint32_t ms, struct plog_error *err);
/* All (@topic NULL), a topic's (@partition NULL), or one: in the background. */
int kernel_retention_run(struct net *net, const char *topic, const uint32_t *partition,
			 struct plog_error *err);
int kernel_partition_roll(struct net *net, const char *topic, uint32_t partition,
			  struct plog_error *err);
int kernel_delete_records(struct net *net, const char *topic, uint32_t partition,
			  int64_t log_start, struct plog_error *err);
int kernel_retired(struct net *net, const char *topic, const uint32_t *partition,
		   void (*fn)(void *arg, const struct retired_info *info), void *arg,
		   struct plog_error *err);
/* Become the one who deletes it, without a daemon; and say how it went (0, or not). */
int kernel_retired_take(struct net *net, const struct retired_info *info, struct plog_error *err);
int kernel_retired_done(struct net *net, const struct retired_info *info, int failed,
			struct plog_error *err);
const char *retired_state_text(uint32_t state);
bool retired_decode(struct nlattr **attrs, struct retired_info *info);

int kernel_epochs(struct net *net, const char *topic, uint32_t partition,
		  void (*fn)(void *arg, const struct epoch_info *info), void *arg,
		  struct plog_error *err);
/* Totals (@topic NULL) or one partition's. */
int kernel_stats(struct net *net, const char *topic, uint32_t partition,
		 struct stats_info *stats, struct plog_error *err);
int kernel_stats_all(struct net *net, struct stats_info **stats, size_t *count,
		     struct plog_error *err);
/* The order of those: by topic and partition. */
int stats_by_place(const void *a, const void *b);

/* Read a nest of a message; false if it is absent or malformed. */
bool instance_decode(struct nlattr **attrs, struct instance_info *info);
bool partition_decode(struct nlattr **attrs, struct partition_info *info);

const char *instance_state_text(uint32_t state);
const char *partition_state_text(uint32_t state);
struct json_object *partition_json(const struct partition_info *info);

/*
 * Wait until no partition that @wanted (topic and index are read) names is
 * opening any more, with a progress line on a terminal.  net_events_open() was
 * called before they were put into service.  Each that is not online then is
 * told to @failed.  Return: 0; -EINTR; or as kernel_partition_list().
 */
int kernel_wait_online(struct net *net, const struct partition_list *wanted,
		       void (*failed)(void *arg, const struct partition_info *info), void *arg,
		       struct plog_error *err);
/* Adds to @list; exits with a message when memory ends. */
void partition_list_add(struct partition_list *list, const char *topic, uint32_t index);

/* ---- topics, by one of two ways ---- */

/* topic_local.c: no daemon, we do the directory work */
int local_topic_create(struct net *net, const char *label, struct datadir_topic *topic,
		       struct plog_error *err);
int local_topic_list(const char *label, struct datadir_topic **topics, size_t *count,
		     struct plog_error *err);
int local_topic_read(const char *label, const char *name, struct datadir_topic *topic,
		     struct plog_error *err);
int local_topic_delete(struct net *net, const char *label, const char *name,
		       struct plog_error *err);
int local_topic_alter(struct net *net, const char *label, const char *name,
		      const struct datadir_change *change, struct datadir_topic *topic,
		      struct plog_error *err);

/* topic_remote.c: the daemon does it; topics are initialized by the call */
int remote_topic_create(struct net *net, struct datadir_topic *topic, struct plog_error *err);
int remote_topic_list(struct net *net, struct datadir_topic **topics, size_t *count,
		      struct plog_error *err);
int remote_topic_read(struct net *net, const char *name, struct datadir_topic *topic,
		      struct plog_error *err);
int remote_topic_delete(struct net *net, const char *name, struct plog_error *err);
int remote_topic_alter(struct net *net, const char *name, const struct datadir_change *change,
		       struct datadir_topic *topic, struct plog_error *err);

/* ---- commands ---- */

extern const struct option instance_set_options[], instance_stop_options[],
	topic_create_options[], topic_alter_options[], topic_describe_options[],
	stats_options[], monitor_options[];

int instance_set(struct ctl *ctl);
int instance_show(struct ctl *ctl);
int instance_stop(struct ctl *ctl);
int topic_create(struct ctl *ctl);
int topic_list(struct ctl *ctl);
int topic_describe(struct ctl *ctl);
int topic_delete(struct ctl *ctl);
int topic_alter(struct ctl *ctl);
int topic_configs(struct ctl *ctl);
int partition_show(struct ctl *ctl);
int partition_roll(struct ctl *ctl);
int partition_delete_records(struct ctl *ctl);
int segment_list(struct ctl *ctl);
int epoch_list(struct ctl *ctl);
int segment_retired(struct ctl *ctl);
int segment_clean(struct ctl *ctl);
int retention_run(struct ctl *ctl);
int stats_show(struct ctl *ctl);
int monitor(struct ctl *ctl);
int version_show(struct ctl *ctl);
int help_show(struct ctl *ctl);

/* Set by SIGINT and SIGTERM once interrupt_catch() was called. */
extern volatile bool interrupted;
void interrupt_catch(void);

#endif /* PLOGCTL_H */
