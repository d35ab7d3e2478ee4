// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The sums of what was made and what is gone. */
#include <linux/atomic.h>
#include <linux/percpu.h>

#include "object.h"

DEFINE_PER_CPU(struct plog_object_counts, plog_object_counts);

static const char *const names[PLOG_OBJECTS] = {
	[PLOG_OBJECT_INSTANCE] = "instances",
	[PLOG_OBJECT_MEMBER] = "members",
	[PLOG_OBJECT_PARTITION] = "partitions",
	[PLOG_OBJECT_SEGMENT] = "segments",
	[PLOG_OBJECT_EXTENT] = "extents",
	[PLOG_OBJECT_DIRECTORY] = "directories",
	[PLOG_OBJECT_FILE] = "files",
	[PLOG_OBJECT_DESCRIPTOR] = "descriptors",
	[PLOG_OBJECT_NODE] = "nodes",
};

void plog_object_read(enum plog_object kind, u64 *created, u64 *destroyed)
{
	int cpu;

	*created = 0;
	*destroyed = 0;
	/* first what is gone: an object that dies meanwhile counts as there */
	for_each_possible_cpu(cpu)
		*destroyed += READ_ONCE(per_cpu(plog_object_counts, cpu).destroyed[kind]);
	smp_rmb();
	for_each_possible_cpu(cpu)
		*created += READ_ONCE(per_cpu(plog_object_counts, cpu).created[kind]);
}

const char *plog_object_name(enum plog_object kind)
{
	return names[kind];
}
