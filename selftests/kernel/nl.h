/* SPDX-License-Identifier: MIT */
/*
 * Requests of the netlink family, made with libmnl: one function a request,
 * the text of a refusal kept.
 */
#ifndef PLOG_SELFTESTS_NL_H
#define PLOG_SELFTESTS_NL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libmnl/libmnl.h>
#include <linux/plog.h>
#include <linux/plog_netlink.h>

/**
 * struct nl - a generic netlink socket that knows the family
 * @error_text: the extended ack of the last refusal, "" if it had none
 * @error_offset: offset of the attribute it points at, 0 if none
 */
struct nl {
	struct mnl_socket *socket;
	uint16_t family;
	uint32_t group;
	uint32_t sequence;
	uint32_t port;
	char error_text[512];
	uint32_t error_offset;
};

#define NL_BUF_SIZE 65536

/* Open a socket in the current network namespace. 0 or a negative errno. */
int nl_open(struct nl *nl);
/* Hear the family's events on this socket. */
int nl_join(struct nl *nl);
void nl_close(struct nl *nl);

/* Begin a request in @buf (NL_BUF_SIZE bytes). */
struct nlmsghdr *nl_begin(struct nl *nl, void *buf, uint8_t cmd, uint16_t flags);

/**
 * nl_talk() - send a request and take its answers until the ack
 * @cb: called for each message of the family; may be NULL
 *
 * Return: 0 or the negative errno of the ack; -ETIMEDOUT without an answer in
 * 20 seconds.
 */
int nl_talk(struct nl *nl, struct nlmsghdr *nlh, mnl_cb_t cb, void *data);

/* For tests of tests: called with each request of the family, before it is sent. */
extern void (*nl_on_request)(uint8_t cmd);

/**
 * nl_event() - wait for one message of the family
 * @buf: NL_BUF_SIZE bytes, holds the message afterwards
 *
 * Return: the message, or NULL after @timeout_ms.
 */
struct nlmsghdr *nl_event(struct nl *nl, void *buf, int timeout_ms);

/* The nest @type of message @nlh spread into @tb[max + 1]; false if it is not there. */
bool nl_nest(const struct nlmsghdr *nlh, int type, const struct nlattr **tb, int max);

/**
 * struct nl_instance - PLOG_CMD_INSTANCE_GET's answer
 */
struct nl_instance {
	uint32_t state;
	uint32_t partitions;
	uint32_t online;
	uint64_t incarnation;
	char data_dir[4096];
	char version[64];
	uint32_t limits[PLOG_A_INSTANCE_MAX + 1];	/* by PLOG_A_INSTANCE_MAX_* */
	uint32_t descriptors;
};

int nl_instance_get(struct nl *nl, struct nl_instance *out);
int nl_instance_set(struct nl *nl, const char *label, int dir_fd, int lock_fd);
/* Change one number of the instance, PLOG_A_INSTANCE_MAX_* or _RETENTION_CHECK_MS. */
int nl_instance_limit(struct nl *nl, int attr, uint32_t value);
int nl_instance_stop(struct nl *nl);

/**
 * struct nl_partition - what PARTITION_NEW, _SET and _GET carry
 *
 * In requests 0 means: leave the attribute out, but for @index and @dir_fd
 * (-1: leave out) and @mode (taken if @mode_set).
 */
struct nl_partition {
	const char *topic;
	uint32_t index;
	int dir_fd;
	uint32_t flags;
	bool node;
	uint32_t uid, gid, mode;
	bool mode_set;
	uint32_t max_message_bytes;
	uint32_t segment_bytes;
	uint64_t segment_ms;
	uint32_t index_interval_bytes;
	uint32_t index_bytes;
	uint8_t topic_id[16];
	bool topic_id_set;
	/* answers */
	uint32_t state;
	uint32_t error;
	int32_t leader_epoch;
	int64_t log_start, high_watermark, last_stable, log_end;
	uint64_t bytes;
	uint32_t segments;
	int64_t max_timestamp;
	char name[PLOG_TOPIC_SIZE];
};

int nl_partition_new(struct nl *nl, const struct nl_partition *part);
int nl_partition_set(struct nl *nl, const struct nl_partition *part);
int nl_partition_del(struct nl *nl, const char *topic, uint32_t index);
int nl_partition_get(struct nl *nl, const char *topic, uint32_t index,
		     struct nl_partition *out);
/* Fill @out from a message that has a PLOG_A_PARTITION; false if it has none. */
bool nl_partition_parse(const struct nlmsghdr *nlh, struct nl_partition *out);

/* Counters by attribute number (PLOG_A_STATS_*); topic NULL: the instance's totals. */
int nl_stats_get(struct nl *nl, const char *topic, uint32_t index,
		 uint64_t counters[PLOG_A_STATS_MAX + 1]);

#endif
