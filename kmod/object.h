/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * How many objects of each kind were made and how many are gone: a stress test
 * compares the two, and a leak of one object in a million shows.
 */
#ifndef _PLOG_OBJECT_H
#define _PLOG_OBJECT_H

#include <linux/percpu.h>
#include <linux/types.h>

/* In the order of the names in object.c. */
enum plog_object {
	PLOG_OBJECT_INSTANCE,	/* a network namespace's struct plog_instance */
	PLOG_OBJECT_MEMBER,	/* struct plog_part, the glue's side of a partition */
	PLOG_OBJECT_PARTITION,	/* struct plog_partition, the engine's side of it */
	PLOG_OBJECT_SEGMENT,
	PLOG_OBJECT_EXTENT,	/* pins: what readers hold */
	PLOG_OBJECT_DIRECTORY,
	PLOG_OBJECT_FILE,	/* open files, each with its struct file */
	PLOG_OBJECT_DESCRIPTOR,	/* open descriptors of the device */
	PLOG_OBJECT_NODE,	/* device nodes */
	PLOG_OBJECTS,
};

/* Counted where it costs two instructions: some come and go with every read. */
struct plog_object_counts {
	u64 created[PLOG_OBJECTS];
	u64 destroyed[PLOG_OBJECTS];
};

DECLARE_PER_CPU(struct plog_object_counts, plog_object_counts);

/* Any context. */
static inline void plog_object_created(enum plog_object kind)
{
	this_cpu_inc(plog_object_counts.created[kind]);
}

static inline void plog_object_destroyed(enum plog_object kind)
{
	this_cpu_inc(plog_object_counts.destroyed[kind]);
}

/**
 * plog_object_read() - the counters of one kind since the module was inserted
 *
 * Their difference is exact only while no object of the kind comes or goes; it
 * is never negative.
 */
void plog_object_read(enum plog_object kind, u64 *created, u64 *destroyed);

/* The kind's name, for people and programs. */
const char *plog_object_name(enum plog_object kind);

#endif /* _PLOG_OBJECT_H */
