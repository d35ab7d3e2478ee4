/* SPDX-License-Identifier: MIT */
/*
 * Writers that keep account of what they were promised: one thread a partition,
 * appends with and without syncs, rolls, truncations, moves of the log start, new
 * leader epochs; on the last partitions as a follower does it, with gaps, and on one
 * under retention, which moves the log start by itself.
 */
#ifndef PLOG_CRASH_LOAD_H
#define PLOG_CRASH_LOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "../kernel/instance.h"
#include "promise.h"

#define LOAD_PARTS	8
#define LOAD_TOPIC	"crash"
#define LOAD_SEGMENT	24576
#define LOAD_INTERVAL	1024

struct load;

/**
 * struct load_part - one partition and its writer
 * @replica: replicated, fed as a follower is
 * @retained: by size, in the module's own time; neither truncated nor let start later
 * @epoch: that it is in
 * @promise: under load.lock
 * @next: the log end, of the writer alone
 * @bare: nothing was appended since a truncation, which may have left a gap at the end
 * @spans: offsets of the batches of this run, by which truncations find their cut
 */
struct load_part {
	struct load *load;
	uint32_t nr;
	bool replica;
	bool retained;
	int32_t epoch;
	int fd;
	int sync_fd;
	struct promise promise;
	int64_t next;
	bool bare;
	struct load_span {
		int64_t base, end;
	} *spans;
	int count, room;
	uint64_t random;
	pthread_t thread;
};

/**
 * struct load
 * @in: the instance, started
 * @keep: truncations leave what was acknowledged
 * @acked: called under @lock behind each acknowledgement, after the promise was
 *	   changed; may be NULL
 * @stop: set it to end the writers
 * @error: what went wrong first, "" if nothing
 */
struct load {
	struct instance *in;
	struct load_part part[LOAD_PARTS];
	int n;
	int control;
	uint64_t incarnation;
	bool keep;
	void (*acked)(struct load *load, struct load_part *part);
	void *arg;
	pthread_mutex_t lock;
	volatile bool stop;
	char error[400];
	uint64_t batches, syncs, rolls, truncations, starts, epochs;
};

/**
 * load_open() - make the partitions' objects, or open what is there, and bind
 * @n: partitions, to LOAD_PARTS; the last quarter are replicas
 *
 * Return: NULL, or what is wrong.
 */
const char *load_open(struct load *load, struct instance *in, int n);
void load_close(struct load *load);

/* Begin writing; each partition begins a generation at its log end. */
void load_start(struct load *load, uint64_t seed);
/* Wait for the writers. Return: NULL, or what went wrong. */
const char *load_wait(struct load *load);

/**
 * load_verify() - compare all partitions with promises, then append to each
 * @promises: as many as partitions
 * @found: out: summed up
 */
struct found;
const char *load_verify(struct load *load, const struct promise *promises, struct found *found);

/* Walk the files of the @n partitions below @dir, verified and closed; the instance is stopped. */
const char *load_verify_files(const struct load *load, const char *dir, int n,
			      struct found *found);

#endif
