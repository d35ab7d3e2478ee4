// SPDX-License-Identifier: GPL-2.0
/*
 * Partitions as members of an instance.
 *
 * A name is looked up by siphash, whose key strangers do not know: they choose
 * topic names.  Everything that sleeps on a disk happens in one work item per
 * partition, so opening, closing and what lies between never meet.
 */
#define pr_fmt(fmt) "plog: " fmt

#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/plog.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/slab.h>

#include "message.h"
#include "net.h"
#include "node.h"
#include "object.h"
#include "part.h"
#include "vfs.h"

/* Partitions that are opened or closed at once: enough to keep a disk busy. */
#define PLOG_PART_WORKERS	32

struct part_key {
	const char *topic;
	u32 topic_len;
	u32 index;
};

static siphash_key_t part_hash_key __read_mostly;
static struct workqueue_struct *plog_part_wq;

static u32 hash_name(const char *topic, u32 len, u32 index, u32 seed)
{
	return siphash(topic, len, &part_hash_key) ^ hash_32(index, 32) ^ seed;
}

static u32 hash_key(const void *data, u32 len, u32 seed)
{
	const struct part_key *key = data;

	return hash_name(key->topic, key->topic_len, key->index, seed);
}

static u32 hash_part(const void *data, u32 len, u32 seed)
{
	const struct plog_part *part = data;

	return hash_name(part->topic, part->topic_len, part->index, seed);
}

static int compare_part(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct part_key *key = arg->key;
	const struct plog_part *part = obj;

	return key->index != part->index || key->topic_len != part->topic_len ||
	       memcmp(key->topic, part->topic, key->topic_len);
}

const struct rhashtable_params plog_part_params = {
	.key_len = sizeof(struct part_key),
	.head_offset = offsetof(struct plog_part, hash),
	.hashfn = hash_key,
	.obj_hashfn = hash_part,
	.obj_cmpfn = compare_part,
	.automatic_shrinking = true,
};

bool plog_part_topic_valid(const char *topic, size_t len)
{
	size_t i;

	if (!len || len > PLOG_TOPIC_MAX)
		return false;
	if (topic[0] == '.' && (len == 1 || (len == 2 && topic[1] == '.')))
		return false;
	for (i = 0; i < len; i++) {
		char c = topic[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* ---- references ---- */

bool plog_part_tryget(struct plog_part *part)
{
	return refcount_inc_not_zero(&part->ref);
}

int plog_part_wait_begin(struct plog_part *part)
{
	u32 max = READ_ONCE(part->instance->limits.waiters);

	if (atomic_inc_return(&part->waiters) <= max)
		return 0;
	atomic_dec(&part->waiters);
	pr_warn_ratelimited("%s-%u: as many calls wait as max-waiters (%u) allows: refused one more\n",
			    part->topic, part->index, max);
	return -EBUSY;
}

void plog_part_wait_end(struct plog_part *part)
{
	atomic_dec(&part->waiters);
}

void plog_part_put(struct plog_part *part)
{
	struct plog_instance *inst = part->instance;

	might_sleep();
	if (!refcount_dec_and_test(&part->ref))
		return;
	plog_partition_put(part->log);
	kfree_rcu(part, rcu);
	plog_object_destroyed(PLOG_OBJECT_MEMBER);
	plog_instance_put(inst);
}

struct plog_part *plog_part_find(struct plog_instance *inst, const char *topic, u32 index)
{
	struct part_key key = { .topic = topic, .topic_len = strlen(topic), .index = index };
	struct plog_part *part;

	rcu_read_lock();
	part = rhashtable_lookup(&inst->parts, &key, plog_part_params);
	if (part && (!READ_ONCE(part->member) || !plog_part_tryget(part)))
		part = NULL;
	rcu_read_unlock();
	return part;
}

struct plog_part *plog_part_next(struct plog_instance *inst, unsigned long id)
{
	struct plog_part *part;

	rcu_read_lock();
	do {
		part = xa_find(&inst->ids, &id, ULONG_MAX, XA_PRESENT);
		id++;
	} while (part && !plog_part_tryget(part));
	rcu_read_unlock();
	return part;
}

/* ---- work ---- */

static void queue(struct plog_part *part, int todo)
{
	/* First: work that is pending already may do it, and end the membership. */
	refcount_inc(&part->ref);
	set_bit(todo, &part->todo);
	if (!queue_work(plog_part_wq, &part->work))
		/* It is pending with a reference of its own: this is not the last. */
		refcount_dec(&part->ref);
}

static void event_state(struct plog_partition *p, u32 state, int error)
{
	/* That one comes when everything is done, from close_part(). */
	if (state != PLOG_PARTITION_CLOSED)
		queue(plog_partition_owner(p), PLOG_TODO_EVENT);
}

/* The daemon hears of it and takes them, now or when it looks the next time. */
static bool event_retired(struct plog_partition *p)
{
	struct plog_part *part = plog_partition_owner(p);
	u64 incarnation;
	u32 port;

	plog_instance_daemon(part->instance, &incarnation, &port);
	if (!incarnation)
		return false;
	plog_message_retired(part);
	return true;
}

static const struct plog_partition_events part_events = {
	.state = event_state,
	.retired = event_retired,
};

static void make_node(struct plog_part *part)
{
	struct plog_part_setup setup;
	struct plog_node *node;

	plog_part_setup_get(part, &setup);
	if (part->node)
		plog_node_del(part->node);
	WRITE_ONCE(part->node, NULL);
	if (!setup.node)
		return;
	node = plog_node_add(part);
	if (IS_ERR(node)) {
		pr_warn("/dev/plog/%s/%u: no device node (%ld); bind by /dev/plog-control\n",
			part->topic, part->index, PTR_ERR(node));
		return;
	}
	WRITE_ONCE(part->node, node);
}

static void close_part(struct plog_part *part)
{
	struct plog_instance *inst = part->instance;
	struct plog_partition_stats stats;
	u64 *sum = (u64 *)&inst->gone, *one = (u64 *)&stats;
	unsigned int i;

	if (part->node)
		plog_node_del(part->node);
	WRITE_ONCE(part->node, NULL);
	/* It says in the log what went wrong. */
	plog_partition_close(part->log, part->clean);
	plog_dir_unclaim(part->dir);

	plog_partition_stats(part->log, &stats);
	BUILD_BUG_ON(sizeof(stats) % sizeof(u64));
	mutex_lock(&inst->mutex);
	rhashtable_remove_fast(&inst->parts, &part->hash, plog_part_params);
	for (i = 0; i < sizeof(stats) / sizeof(u64); i++)
		sum[i] += one[i];
	mutex_unlock(&inst->mutex);

	plog_message_partition(part);
	if (atomic_dec_and_test(&inst->busy))
		wake_up_all(&inst->closed);
}

/* What somebody asked for, or the instance's clock. */
static void run_commands(struct plog_part *part, unsigned long todo)
{
	bool event = false;
	s64 offset, base;

	if (todo & BIT(PLOG_TODO_LOG_START)) {
		spin_lock(&part->lock);
		offset = part->wanted_start;
		part->wanted_start = 0;
		spin_unlock(&part->lock);
		plog_partition_set_log_start(part->log, NULL, &offset);
		event = true;
	}
	if (todo & BIT(PLOG_TODO_ROLL)) {
		plog_partition_roll(part->log, NULL, &base);
		event = true;
	}
	if (todo & BIT(PLOG_TODO_RETAIN)) {
		event |= plog_partition_retain(part->log) > 0;
		plog_partition_reap(part->log);
	}
	if (event)
		set_bit(PLOG_TODO_EVENT, &part->todo);
}

static void part_work(struct work_struct *work)
{
	struct plog_part *part = container_of(work, struct plog_part, work);
	/*
	 * All at once: a command that is among them finds the configuration that
	 * was set before it among them too, or in force.
	 */
	unsigned long todo = xchg(&part->todo, 0);
	bool node = todo & BIT(PLOG_TODO_NODE);
	struct plog_part_setup setup;

	if (todo & BIT(PLOG_TODO_OPEN))
		node = !plog_partition_open(part->log);
	if (todo & BIT(PLOG_TODO_CLOSE)) {
		close_part(part);
		part->todo = 0;
		/* The reference of the membership that ended. */
		plog_part_put(part);
		goto out;
	}
	if (todo & BIT(PLOG_TODO_CONFIGURE)) {
		plog_part_setup_get(part, &setup);
		plog_partition_configure(part->log, &setup.config);
		set_bit(PLOG_TODO_EVENT, &part->todo);
	}
	if (node)
		make_node(part);
	run_commands(part, todo);
	if (test_and_clear_bit(PLOG_TODO_EVENT, &part->todo) || todo & BIT(PLOG_TODO_EVENT))
		plog_message_partition(part);
out:
	plog_part_put(part);
}

/* ---- members ---- */

int plog_part_add(struct plog_instance *inst, const char *topic, u32 index,
		  struct plog_dir *dir, const struct plog_part_setup *setup,
		  const char **why)
{
	/* topic, "-", and 10 digits */
	char name[PLOG_TOPIC_SIZE + 12];
	struct plog_part *part, *other;
	struct part_key key;
	int err;

	lockdep_assert_held(&inst->mutex);

	err = -ENOMEM;
	key.topic_len = strlen(topic);
	part = kzalloc(struct_size(part, topic, key.topic_len + 1), GFP_KERNEL_ACCOUNT);
	if (!part)
		goto out_dir;
	refcount_set(&part->ref, 1);
	spin_lock_init(&part->lock);
	INIT_WORK(&part->work, part_work);
	part->setup = *setup;
	part->setup.node &= inst->initial;
	part->index = index;
	part->topic_len = key.topic_len;
	memcpy(part->topic, topic, key.topic_len + 1);
	part->id = inst->next_id;
	part->dir = dir;
	part->instance = inst;

	key.topic = part->topic;
	key.index = index;
	/* Members leave the table under the mutex only. */
	other = rhashtable_lookup_fast(&inst->parts, &key, plog_part_params);
	if (other) {
		*why = other->member ? "there is a partition of this topic and index" :
				       "the partition of this name before is still closing";
		err = other->member ? -EEXIST : -EBUSY;
		goto out_free;
	}
	/* Of those that are there a daemon hears -EEXIST, also if the limit is lower by now. */
	if (inst->count >= inst->limits.partitions) {
		*why = "the instance has as many partitions as its max-partitions allows";
		err = -ENOSPC;
		goto out_free;
	}
	err = plog_dir_claim(dir);
	if (err) {
		*why = "the directory belongs to a partition that is open or still closing";
		goto out_free;
	}
	/* whoever makes a topic: the memory is the instance's */
	plog_dir_charge_as(dir, inst->dir);
	snprintf(name, sizeof(name), "%s-%u", topic, index);
	part->log = plog_partition_create(name, dir, &setup->config, &part_events, part);
	if (IS_ERR(part->log)) {
		err = PTR_ERR(part->log);
		/* The directory went with it. */
		kfree(part);
		return err;
	}
	plog_object_created(PLOG_OBJECT_MEMBER);
	plog_partition_set_lease(part->log, &inst->lease);
	err = xa_err(xa_store(&inst->ids, part->id, part, GFP_KERNEL_ACCOUNT));
	if (err)
		goto out_log;
	err = rhashtable_insert_fast(&inst->parts, &part->hash, plog_part_params);
	if (err)
		goto out_ids;

	plog_instance_get(inst);
	inst->next_id++;
	inst->count++;
	inst->generation++;
	WRITE_ONCE(part->member, true);
	atomic_inc(&inst->busy);
	queue(part, PLOG_TODO_OPEN);
	return 0;

out_ids:
	/* A dump may have found it and hold a reference: give it an instance to put. */
	xa_erase(&inst->ids, part->id);
	plog_instance_get(inst);
	plog_partition_close(part->log, false);
	plog_dir_unclaim(dir);
	plog_part_put(part);
	return err;
out_log:
	plog_partition_put(part->log);
	kfree(part);
	plog_object_destroyed(PLOG_OBJECT_MEMBER);
	return err;
out_free:
	kfree(part);
out_dir:
	plog_dir_put(dir);
	return err;
}

void plog_part_remove(struct plog_part *part, bool clean)
{
	struct plog_instance *inst = part->instance;

	lockdep_assert_held(&inst->mutex);

	if (!part->member)
		return;
	WRITE_ONCE(part->member, false);
	xa_erase(&inst->ids, part->id);
	inst->count--;
	inst->generation++;
	part->clean = clean;
	plog_partition_abandon(part->log);
	/* The work drops the membership's reference too. */
	queue(part, PLOG_TODO_CLOSE);
}

void plog_part_setup_get(struct plog_part *part, struct plog_part_setup *setup)
{
	spin_lock(&part->lock);
	*setup = part->setup;
	spin_unlock(&part->lock);
}

void plog_part_setup_set(struct plog_part *part, const struct plog_part_setup *setup)
{
	bool node;

	lockdep_assert_held(&part->instance->mutex);

	spin_lock(&part->lock);
	node = !uid_eq(part->setup.uid, setup->uid) || !gid_eq(part->setup.gid, setup->gid) ||
	       part->setup.mode != setup->mode || part->setup.node != setup->node;
	part->setup = *setup;
	part->setup.node &= part->instance->initial;
	spin_unlock(&part->lock);
	if (node)
		set_bit(PLOG_TODO_NODE, &part->todo);
	queue(part, PLOG_TODO_CONFIGURE);
}

void plog_part_retain(struct plog_part *part)
{
	lockdep_assert_held(&part->instance->mutex);
	if (part->member)
		queue(part, PLOG_TODO_RETAIN);
}

void plog_part_roll(struct plog_part *part)
{
	lockdep_assert_held(&part->instance->mutex);
	if (part->member)
		queue(part, PLOG_TODO_ROLL);
}

void plog_part_delete_records(struct plog_part *part, s64 log_start)
{
	lockdep_assert_held(&part->instance->mutex);
	if (!part->member)
		return;
	spin_lock(&part->lock);
	part->wanted_start = max(part->wanted_start, log_start);
	spin_unlock(&part->lock);
	queue(part, PLOG_TODO_LOG_START);
}

int plog_part_permission(struct plog_part *part, int mask)
{
	struct plog_part_setup setup;
	umode_t mode;

	plog_part_setup_get(part, &setup);
	mode = setup.mode;
	if (uid_eq(current_fsuid(), setup.uid))
		mode >>= 6;
	else if (in_group_p(setup.gid))
		mode >>= 3;
	if ((mask & ~mode & (MAY_READ | MAY_WRITE)) == 0)
		return 0;
	if (capable(CAP_DAC_OVERRIDE) || capable(CAP_NET_ADMIN))
		return 0;
	return -EACCES;
}

int plog_part_init(void)
{
	get_random_bytes(&part_hash_key, sizeof(part_hash_key));
	plog_part_wq = alloc_workqueue("plog_part", WQ_UNBOUND, PLOG_PART_WORKERS);
	return plog_part_wq ? 0 : -ENOMEM;
}

void plog_part_exit(void)
{
	destroy_workqueue(plog_part_wq);
}
