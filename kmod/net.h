/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The instance: plog in one network namespace.
 *
 * Lock order, outermost first:
 *
 *	pipe (of splice) > plog_desc.lock > partition's append mutex >
 *	freeze protection (tried, see file.c) > inode > mmap
 *
 *	plog_instances_lock, or plog_desc.lock > plog_instance.mutex >
 *	claims_lock (file.c)
 *
 * Nothing sleeps on a disk under plog_instance.mutex or plog_instances_lock;
 * plog_part.lock and plog_instance.daemon_lock are spinlocks at the end of
 * every chain.  The append mutex and plog_instance.mutex are never held at
 * once.
 */
#ifndef _PLOG_NET_H
#define _PLOG_NET_H

#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>

#include "partition.h"

/**
 * struct plog_limits - what an instance refuses to pass, Documentation/limits.rst
 * @partitions: of the instance
 * @waiters: calls that wait at once, of one partition
 * @descriptors: of the device, by openers without CAP_NET_ADMIN
 * @append_bytes: of one append
 */
struct plog_limits {
	u32 partitions;
	u32 waiters;
	u32 descriptors;
	u32 append_bytes;
};

#define PLOG_PARTITIONS_LIMIT	(1u << 20)	/* what minor numbers reach */
#define PLOG_WAITERS_DEFAULT	4096
#define PLOG_WAITERS_LIMIT	(1u << 20)
#define PLOG_DESCRIPTORS_DEFAULT 65536

/**
 * struct plog_instance - partitions and daemon of one network namespace
 * @ref: held by the namespace, by each descriptor, partition and pending work
 * @net: the namespace; RCU, NULL once it is going away
 * @initial: it is the first namespace of the machine, which has device nodes
 * @list: in the list of all instances
 * @mutex: everything down to @closed that is not marked otherwise
 * @state: PLOG_INSTANCE_*; read without the lock by READ_ONCE()
 * @dead: the namespace is gone: nothing can be started any more
 * @label: name of the data directory, for people; NULL before the first one
 * @dir, @lock: the data directory and the lock file in it
 * @parts: struct plog_part by topic and index; looked up under RCU
 * @ids: the same by id, which only grows: the order of dumps
 * @next_id: of the next partition
 * @count: partitions in @parts
 * @generation: changed whenever a partition comes or goes, so that a dump can
 *	tell that it is not one consistent look
 * @gone: counters of the partitions that are closed
 * @limits: changed under @mutex, read without by READ_ONCE()
 * @descriptors: open ones
 * @busy: partitions that are not closed yet, in @parts or on their way out
 * @closed: woken when @busy gets 0, and when @state leaves STOPPING
 * @stop_work: closes everything
 * @retention_check_ms: how often retention looks at every partition
 * @retention_work: does so; holds a reference while it is pending
 * @daemon_lock: what follows
 * @incarnation: of the daemon that may append now; also read by the engine
 *	under a partition's append mutex
 * @daemon: descriptor of the registered daemon, NULL for none
 * @daemon_port: its netlink port, 0 for none
 * @daemon_calls: calls in progress under @incarnation or the one before
 * @drained: woken when @daemon_calls gets 0, and when @incarnation changes
 * @lease: until when replicated partitions may be led, nanoseconds of
 *	CLOCK_BOOTTIME, 0 for no limit; also read by the engine
 */
struct plog_instance {
	refcount_t ref;
	struct net __rcu *net;
	bool initial;
	struct list_head list;

	struct mutex mutex;
	u32 state;
	bool dead;
	char *label;
	struct plog_dir *dir;
	struct file *lock;
	struct rhashtable parts;
	struct xarray ids;
	unsigned long next_id;
	u32 count;
	u32 generation;
	struct plog_partition_stats gone;
	struct plog_limits limits;
	atomic_t descriptors;
	atomic_t busy;
	wait_queue_head_t closed;
	struct work_struct stop_work;
	u32 retention_check_ms;
	struct delayed_work retention_work;

	spinlock_t daemon_lock;
	u64 incarnation;
	const void *daemon;
	u32 daemon_port;
	u32 daemon_calls;
	wait_queue_head_t drained;
	s64 lease;
};

/* What an instance's limit of partitions is before somebody sets it: a module parameter. */
extern unsigned int plog_partitions_max;

/**
 * plog_instance_of() - the instance of a namespace that the caller holds
 *
 * Return: with a reference.
 */
struct plog_instance *plog_instance_of(struct net *net);
void plog_instance_get(struct plog_instance *inst);
/* May sleep. */
void plog_instance_put(struct plog_instance *inst);

/**
 * plog_instance_descriptor() - count a descriptor that is opened
 * @privileged: the opener has CAP_NET_ADMIN: counted, never refused
 *
 * Return: 0, plog_instance_descriptor_end() must follow; or -ENFILE.
 */
int plog_instance_descriptor(struct plog_instance *inst, bool privileged);
void plog_instance_descriptor_end(struct plog_instance *inst);

/* One consistent look, and a change of all of them; in their ranges. */
void plog_instance_limits(struct plog_instance *inst, struct plog_limits *limits);
void plog_instance_limits_set(struct plog_instance *inst, const struct plog_limits *limits);

/**
 * plog_instance_start() - take a data directory into service
 * @label: its name, copied
 * @dir, @lock: taken over, also on failure
 * @why: set to a text for people if it is refused
 *
 * Return: 0, -EEXIST (runs with this label), -EBUSY (runs with another, is
 * stopping, or another namespace has the directory), -ENODEV, -ENOMEM.
 */
int plog_instance_start(struct plog_instance *inst, const char *label,
			struct plog_dir *dir, struct file *lock, const char **why);

/**
 * plog_instance_stop() - close all partitions, in the background
 *
 * An event tells when.  Return: 0, or -ENODEV if it does not run (or stops already).
 */
int plog_instance_stop(struct plog_instance *inst);

/* Kafka's log.retention.check.interval.ms. */
#define PLOG_RETENTION_CHECK_MS	(5 * 60 * 1000)

/**
 * plog_instance_set_retention_check() - look so often from now on
 * @ms: 1 to INT_MAX
 *
 * Return: 0, or -ENODEV if it does not run.
 */
int plog_instance_set_retention_check(struct plog_instance *inst, u32 ms);

/**
 * plog_instance_register() - make a descriptor the daemon's
 * @daemon: the descriptor, only compared
 * @port: its netlink port or 0
 * @incarnation: out
 *
 * The old daemon's calls have drained on return.  Return: 0, -EINTR (killed
 * while waiting: the old one is out, there is no new one), -ENODEV.
 */
int plog_instance_register(struct plog_instance *inst, const void *daemon, u32 port,
			   u64 *incarnation);
/* The descriptor is closed; nothing happens if another one took its place. */
void plog_instance_unregister(struct plog_instance *inst, const void *daemon);

/**
 * plog_instance_call() - begin a call of the daemon
 *
 * Return: 0, then plog_instance_call_end() must follow, or -ESTALE.
 */
int plog_instance_call(struct plog_instance *inst, u64 incarnation);
void plog_instance_call_end(struct plog_instance *inst);

/**
 * plog_instance_lease() - set until when replicated partitions may be led
 * @daemon: the descriptor that registered the daemon
 * @deadline: nanoseconds of CLOCK_BOOTTIME, 0 for no limit
 *
 * Return: 0, or -ESTALE if @daemon is not, or no more, the daemon's.
 */
int plog_instance_lease(struct plog_instance *inst, const void *daemon, s64 deadline);

/* One look at the daemon: its incarnation, 0 for none, and its port. */
void plog_instance_daemon(struct plog_instance *inst, u64 *incarnation, u32 *port);

/**
 * plog_instances_walk() - call @fn for the instance of each network namespace
 * @fn: with a reference that is the walk's, and no lock; may sleep, and ends the
 *	walk by returning non-zero
 *
 * One that comes meanwhile may be missed.  Return: what @fn did, or 0.
 */
int plog_instances_walk(int (*fn)(struct plog_instance *inst, void *arg), void *arg);

int plog_net_init(void);
/* All instances are closed and freed on return. */
void plog_net_exit(void);

#endif /* _PLOG_NET_H */
