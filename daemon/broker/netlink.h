/* SPDX-License-Identifier: MIT */
#ifndef PLOG_NETLINK_H
#define PLOG_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../tools/libplog/properties.h"

struct broker;
struct log_bases;
struct log_config;
struct netlink;
struct topics;

/*
 * The daemon's side of the generic netlink family "plog": requests that change partitions,
 * and the events and relayed requests that come unasked.
 *
 * Two sockets. Requests go out on one that the control loop reads; whoever asks from another
 * thread waits for the kernel's answer, which the kernel gives at once: nothing in it sleeps.
 * On the control loop itself requests must not wait and there are none. Events come on the
 * other; if some were lost (ENOBUFS) all states are dumped again.
 */

/* Open the sockets and find the family. NULL and a sentence: most likely no module. */
struct netlink *netlink_open(struct broker *b, struct plog_error *err);
void netlink_close(struct netlink *nl);

/* The port that relayed requests come to, for PLOG_IOC_REGISTER. */
uint32_t netlink_port(const struct netlink *nl);

/* Read events and relayed requests on the control loop from now on. 0 or a negative errno. */
int netlink_start(struct netlink *nl);

/* The instance: 0 and its label ("" if there is none), state and partition counts. */
struct netlink_instance {
	uint32_t state;
	char label[4096];
	char version[64];
	uint32_t partitions, online;
	uint64_t incarnation;
};
int netlink_instance(struct netlink *nl, struct netlink_instance *out, struct plog_error *err);

/* Make the instance on a locked data directory. */
int netlink_instance_set(struct netlink *nl, const char *label, int dirfd, int lockfd,
			 struct plog_error *err);

/* Change the instance's limits that @config names; nothing if it names none. */
struct config;
int netlink_instance_limits(struct netlink *nl, const struct config *config,
			    struct plog_error *err);

/* PARTITION_NEW. -EEXIST: it is there, without a sentence. */
int netlink_partition_new(struct netlink *nl, const char *topic, uint32_t index, int dirfd,
			  const struct log_config *config, struct plog_error *err);
int netlink_partition_set(struct netlink *nl, const char *topic, uint32_t index,
			  const struct log_config *config, struct plog_error *err);
int netlink_partition_del(struct netlink *nl, const char *topic, uint32_t index,
			  struct plog_error *err);

/*
 * Wait until the partition is not opening any more: 0 online or fenced; -EIO and so on if it
 * failed; -ENOENT; -ETIMEDOUT. Not on the control loop.
 */
int netlink_partition_wait(struct netlink *nl, const char *topic, uint32_t index,
			   struct plog_error *err);

/* Take partitions out of the module that no topic of the table has. */
int netlink_drop_unknown(struct netlink *nl, struct topics *topics, struct plog_error *err);

/* How often the module's retention looks, milliseconds. */
int netlink_retention_check(struct netlink *nl, int64_t ms, struct plog_error *err);

/* Retired segments of a partition whose files may be deleted. */
int netlink_retired(struct netlink *nl, const char *topic, uint32_t index,
		    struct log_bases *bases);
int netlink_retired_take(struct netlink *nl, const char *topic, uint32_t index, int64_t base,
			 uint64_t incarnation);
int netlink_retired_done(struct netlink *nl, const char *topic, uint32_t index, int64_t base,
			 uint64_t incarnation, bool gone);

/* Answer a relayed request; @json is @size bytes. From the control loop. 0 or an errno. */
int netlink_relay_reply(struct netlink *nl, uint32_t port, uint32_t cookie, const char *json,
			size_t size);

#endif
