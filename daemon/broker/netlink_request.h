/* SPDX-License-Identifier: MIT */
#ifndef PLOG_NETLINK_REQUEST_H
#define PLOG_NETLINK_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "netlink.h"

/* How the files of the netlink side make requests. Not for others. */
struct nlattr;
struct nlmsghdr;

/* What answers a request: each message goes to @fn; a negative return ends it. */
struct netlink_answer {
	int (*fn)(const struct nlmsghdr *nlh, void *arg);
	void *arg;
};

/* Begin a message of our family in @buf, of MNL_SOCKET_BUFFER_SIZE bytes. */
struct nlmsghdr *netlink_begin(struct netlink *nl, char *buf, uint8_t cmd, uint16_t flags);

/* The same with a partition's name in it; *@nest is open, for more of it. */
struct nlmsghdr *netlink_begin_partition(struct netlink *nl, char *buf, uint8_t cmd,
					 uint16_t flags, const char *topic, uint32_t index,
					 struct nlattr **nest);

/*
 * Send @nlh and take all of the answer, which goes to @answer, if not NULL. Any thread but the
 * control loop's. 0 or a negative errno and a sentence about @what (@err may be NULL).
 */
int netlink_ask(struct netlink *nl, struct nlmsghdr *nlh, const struct netlink_answer *answer,
		const char *what, struct plog_error *err);

/* An attribute's number, 0 if it has another size; its text, cut to @size. */
uint32_t netlink_u32(const struct nlattr *attr);
uint64_t netlink_u64(const struct nlattr *attr);
void netlink_text(const struct nlattr *attr, char *to, size_t size);

/* A retired segment as a message tells of it; what it lacks stays as it is. */
struct netlink_retired {
	char topic[256];
	uint32_t index, state;
	int64_t base;
};
void netlink_read_retired(const struct nlmsghdr *nlh, struct netlink_retired *out);

#endif
