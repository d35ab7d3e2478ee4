/* SPDX-License-Identifier: GPL-2.0 */
/* A partition as a member of an instance: name, owner, node, and its engine. */
#ifndef _PLOG_PART_H
#define _PLOG_PART_H

#include <linux/cred.h>
#include <linux/rhashtable.h>
#include <linux/workqueue.h>

#include "partition.h"

struct plog_instance;
struct plog_node;

/* What its work has to do, bits of plog_part.todo. */
enum {
	PLOG_TODO_OPEN,
	PLOG_TODO_CONFIGURE,
	PLOG_TODO_NODE,
	PLOG_TODO_CLOSE,
	PLOG_TODO_EVENT,
	PLOG_TODO_LOG_START,
	PLOG_TODO_ROLL,
	PLOG_TODO_RETAIN,
};

/**
 * struct plog_part_setup - what PARTITION_NEW and PARTITION_SET can say
 * @config: of the engine
 * @uid, @gid, @mode: owner and permission bits
 * @node: wants a device node
 * @topic_id: KIP-516, zero for none
 */
struct plog_part_setup {
	struct plog_config config;
	kuid_t uid;
	kgid_t gid;
	umode_t mode;
	bool node;
	u8 topic_id[16];
};

/**
 * struct plog_part - one partition
 * @hash, @ref, @rcu: found under RCU; the instance holds a reference until it
 *	has closed, and so do descriptors, dumps and @work
 * @id: in the order of creation, never used twice
 * @instance, @log, @dir: fixed; @dir belongs to @log and is compared only
 * @member: in service (written under the instance mutex); the name stays taken
 *	until it has closed: two of one name would fight for the device node
 * @clean: how to close (set before PLOG_TODO_CLOSE)
 * @lock: @setup, @wanted_start
 * @todo, @work: all that sleeps on a disk, one thing at a time
 * @node: the device node, of @work alone
 * @waiters: calls that sleep until the visible end moves
 * @index, @topic, @topic_len: the name
 */
struct plog_part {
	struct rhash_head hash;
	refcount_t ref;
	struct rcu_head rcu;
	unsigned long id;
	struct plog_instance *instance;
	struct plog_partition *log;
	struct plog_dir *dir;
	bool member;
	bool clean;
	spinlock_t lock;
	struct plog_part_setup setup;
	s64 wanted_start;	/* of PLOG_TODO_LOG_START */
	unsigned long todo;
	struct work_struct work;
	struct plog_node *node;
	atomic_t waiters;
	u32 index;
	u32 topic_len;
	char topic[];
};

extern const struct rhashtable_params plog_part_params;

/* Does @topic have a name that Kafka allows? */
bool plog_part_topic_valid(const char *topic, size_t len);

/**
 * plog_part_add() - make a partition and open it in the background
 * @dir: taken over, also on failure
 * @why: set to a text for people if it is refused
 *
 * The instance's mutex must be held.  Return: 0, -EEXIST, -ENOSPC
 * (max-partitions), -EBUSY (its directory is in use, or one of that name is
 * still closing), -ERANGE, -ENOMEM.
 */
int plog_part_add(struct plog_instance *inst, const char *topic, u32 index,
		  struct plog_dir *dir, const struct plog_part_setup *setup,
		  const char **why);

/**
 * plog_part_remove() - take a member out and close it in the background
 * @clean: for an instance that stops; else it is only let go
 *
 * The instance's mutex must be held.
 */
void plog_part_remove(struct plog_part *part, bool clean);

/**
 * plog_part_find() - look a partition up
 *
 * Return: with a reference, or NULL.
 */
struct plog_part *plog_part_find(struct plog_instance *inst, const char *topic, u32 index);

/* The first one with an id of at least @id, with a reference, or NULL. */
struct plog_part *plog_part_next(struct plog_instance *inst, unsigned long id);

/* Only where RCU keeps the memory: false if the last reference is gone. */
bool plog_part_tryget(struct plog_part *part);
/* May sleep. */
void plog_part_put(struct plog_part *part);

/**
 * plog_part_wait_begin() - a call may come to sleep for the partition
 *
 * Return: 0, plog_part_wait_end() must follow; or -EBUSY where as many as the
 * instance's limit do.
 */
int plog_part_wait_begin(struct plog_part *part);
void plog_part_wait_end(struct plog_part *part);

/* One look at the setup. */
void plog_part_setup_get(struct plog_part *part, struct plog_part_setup *setup);

/* max.message.bytes alone, which every append asks for. */
static inline u32 plog_part_message_max(const struct plog_part *part)
{
	return READ_ONCE(part->setup.config.max_message_bytes);
}

/**
 * plog_part_setup_set() - change it
 *
 * Owner, mode and max.message.bytes count at once, the rest and the node
 * follow in the background.  @setup has been checked, @part is a member, and
 * the instance's mutex must be held.
 */
void plog_part_setup_set(struct plog_part *part, const struct plog_part_setup *setup);

/*
 * Retention, a roll, a new log start: in the background, each followed by an
 * event if it changed something.  Nothing happens to what is no member any
 * more.  The instance's mutex must be held.
 */
void plog_part_retain(struct plog_part *part);
void plog_part_roll(struct plog_part *part);
void plog_part_delete_records(struct plog_part *part, s64 log_start);

/**
 * plog_part_permission() - may the caller read and write here?
 * @mask: MAY_READ, MAY_WRITE
 *
 * By owner, group and mode, as for a file; CAP_DAC_OVERRIDE and CAP_NET_ADMIN
 * in the initial user namespace go past it.  Return: 0 or -EACCES.
 */
int plog_part_permission(struct plog_part *part, int mask);

int plog_part_init(void);
void plog_part_exit(void);

#endif /* _PLOG_PART_H */
