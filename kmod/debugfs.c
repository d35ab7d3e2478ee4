// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/plog: the module from inside, for whoever looks for a fault.
 * No interface: its files change as the module does.  Root's and read-only.
 *
 * Each line is put together under references of its own, so partitions and
 * namespaces may come and go while a file is read: a line is one look, the file
 * is not.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/plog.h>
#include <linux/plog_netlink.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "debugfs.h"
#include "engine.h"
#include "net.h"
#include "object.h"
#include "part.h"

static struct dentry *plog_debugfs;

/* objects: NAME CREATED DESTROYED, a kind a line */
static int objects_show(struct seq_file *m, void *unused)
{
	u64 created, destroyed;
	unsigned int kind;

	for (kind = 0; kind < PLOG_OBJECTS; kind++) {
		plog_object_read(kind, &created, &destroyed);
		seq_printf(m, "%s %llu %llu\n", plog_object_name(kind), created, destroyed);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(objects);

/* ---- instances ---- */

static const char *instance_state(u32 state)
{
	switch (state) {
	case PLOG_INSTANCE_NONE:
		return "none";
	case PLOG_INSTANCE_RUNNING:
		return "running";
	case PLOG_INSTANCE_STOPPING:
		return "stopping";
	default:
		return "stopped";
	}
}

/* The inode number that names a network namespace in /proc; 0: it is going away. */
static unsigned int namespace_of(struct plog_instance *inst)
{
	unsigned int inum = 0;
	struct net *net;

	rcu_read_lock();
	net = rcu_dereference(inst->net);
	if (net)
		inum = net->ns.inum;
	rcu_read_unlock();
	return inum;
}

static int show_instance(struct plog_instance *inst, void *arg)
{
	struct seq_file *m = arg;
	u64 incarnation;
	u32 port;

	plog_instance_daemon(inst, &incarnation, &port);
	seq_printf(m, "net:[%u] %s", namespace_of(inst), instance_state(READ_ONCE(inst->state)));
	mutex_lock(&inst->mutex);
	seq_printf(m, " partitions=%u generation=%u busy=%d descriptors=%d incarnation=%llu",
		   inst->count, inst->generation, atomic_read(&inst->busy),
		   atomic_read(&inst->descriptors), incarnation);
	seq_puts(m, " data=");
	seq_escape(m, inst->label ?: "-", " \t\n\\");
	mutex_unlock(&inst->mutex);
	seq_putc(m, '\n');
	return 0;
}

static int instances_show(struct seq_file *m, void *unused)
{
	plog_instances_walk(show_instance, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(instances);

/* ---- partitions ---- */

static const char *partition_state(u32 state)
{
	static const char *const names[] = {
		[PLOG_PARTITION_OPENING] = "opening", [PLOG_PARTITION_ONLINE] = "online",
		[PLOG_PARTITION_FENCED] = "fenced", [PLOG_PARTITION_FAILED] = "failed",
		[PLOG_PARTITION_CLOSED] = "closed",
	};

	return state < ARRAY_SIZE(names) && names[state] ? names[state] : "?";
}

/*
 * Bytes of the module's own memory that a partition takes, as the allocator rounds
 * them, with the entries that wait for its indexes; without what readers hold.
 */
static size_t memory_of(struct plog_part *part)
{
	struct plog_partition *p = part->log;
	size_t sum = ksize(part) + ksize(p) + ksize(p->name) + ksize(p->dir);
	struct plog_epochs *epochs;
	struct plog_table *table;
	u32 i;

	rcu_read_lock();
	table = rcu_dereference(p->table);
	/* kvmalloc() gives the slab's memory for lists as short as they are in practice */
	epochs = rcu_dereference(p->epochs);
	if (epochs)
		sum += kmalloc_size_roundup(struct_size(epochs, entry, epochs->count));
	if (table) {
		sum += kmalloc_size_roundup(struct_size(table, seg, table->count));
		for (i = 0; i < table->count; i++)
			sum += ksize(table->seg[i]) +
			       (READ_ONCE(table->seg[i]->active) ? PLOG_INDEX_RING * 24 : 0);
	}
	rcu_read_unlock();
	/* rings are estimated, and files, for both may be closed while one looks */
	sum += atomic_read(&p->count.segments.files) * sizeof(void *) * 2;
	return sum;
}

static void show_part(struct seq_file *m, struct plog_part *part)
{
	struct plog_partition_gauges g;
	struct plog_view v;

	plog_partition_view(part->log, &v);
	plog_partition_gauges(part->log, &g);
	seq_printf(m, "net:[%u] %s-%u %s error=%d refs=%u epoch=%d start=%lld hw=%lld lso=%lld end=%lld",
		   namespace_of(part->instance), part->topic, part->index,
		   partition_state(v.state), v.error, refcount_read(&part->ref), v.leader_epoch,
		   v.log_start, v.high_watermark, v.last_stable, v.log_end);
	seq_printf(m, " bytes=%llu segments=%u table=%llu files=%llu pins=%llu waiters=%d memory=%zu\n",
		   v.bytes, v.segments, g.generation, g.open_files, g.pins,
		   atomic_read(&part->waiters),
		   memory_of(part));
}

static int show_parts(struct plog_instance *inst, void *arg)
{
	struct seq_file *m = arg;
	struct plog_part *part;
	unsigned long id = 0;

	/* A file that is full is read again from its start, into more room. */
	while (!seq_has_overflowed(m) && (part = plog_part_next(inst, id))) {
		show_part(m, part);
		id = part->id + 1;
		plog_part_put(part);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static int partitions_show(struct seq_file *m, void *unused)
{
	return plog_instances_walk(show_parts, m);
}
DEFINE_SHOW_ATTRIBUTE(partitions);

void plog_debugfs_init(void)
{
	plog_debugfs = debugfs_create_dir("plog", NULL);
	debugfs_create_file("objects", 0400, plog_debugfs, NULL, &objects_fops);
	debugfs_create_file("instances", 0400, plog_debugfs, NULL, &instances_fops);
	debugfs_create_file("partitions", 0400, plog_debugfs, NULL, &partitions_fops);
}

void plog_debugfs_exit(void)
{
	debugfs_remove(plog_debugfs);
}
