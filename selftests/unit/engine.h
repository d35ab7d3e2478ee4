/* SPDX-License-Identifier: MIT */
/*
 * A partition of the engine in a directory of its own, for tests.
 */
#ifndef TEST_ENGINE_H
#define TEST_ENGINE_H

#include "cm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/err.h>
#include <linux/kernel.h>

#include <shim.h>
#include <linux/unaligned.h>
#include "../../kmod/batch.h"
#include <linux/crc32c.h>
#include "../../kmod/partition.h"
#include "../../kmod/record.h"
#include "../../uapi/linux/plog.h"

#define BATCH_MAX (4 << 20)

struct env {
	char dir[64];
	struct plog_config config;
	struct plog_partition *p;
	int visible;		/* calls of the event */
	unsigned int state;	/* of the last state event */
	bool deletes;		/* somebody unlinks what is retired */
	char log[8192];		/* what the engine printed */
	uint8_t *buf;		/* BATCH_MAX bytes */
};

extern struct env env;

/* Fixtures of each test: an empty directory, and Kafka's defaults. */
int env_setup(void **state);
int env_teardown(void **state);

/* Open the directory's partition; the error of the open. */
int env_open(void);
/* Close it, cleanly or as if the process had died: nothing more is written. */
void env_close(void);
void env_crash(void);

/* A batch of @count records, each of @len bytes that depend on @seed; its size. */
size_t make_batch(uint8_t *buf, unsigned int count, unsigned int len, unsigned int seed,
		  int64_t timestamp);

/* A batch with a record per value, offset deltas and times as given. */
struct rec {
	int64_t time;
	const char *key;	/* NULL: null */
	const char *value;
};
size_t make_records(uint8_t *buf, const struct rec *recs, unsigned int count, unsigned int attrs);

/* Set the CRC after the header or the payload was changed. */
void fix_crc(uint8_t *batch, size_t size);

/* Append the batch in env.buf, by @how, as a privileged caller; offset or error. */
enum how { RAW, ITER, ITER_CHECKED, HOWS };
int64_t append_as(size_t size, enum how how, uint32_t flags);
int64_t append(size_t size);

/* make_batch() and append() it. */
int64_t put(unsigned int count, unsigned int len, unsigned int seed);
int64_t put_at(unsigned int count, unsigned int len, unsigned int seed, int64_t timestamp);

struct plog_view view(void);

/* Walk everything from the log start to @end by locate, checking batches; the number of records. */
int64_t walk(enum plog_end end);

/* The next value of a record-mode reader as a string; "-ENAME"-like number on error. */
const char *next_value(struct plog_reader *r);

/* Files of the directory. */
long file_size(const char *name);
void file_cut(const char *name, long size);
void file_write(const char *name, long pos, const void *bytes, size_t n);
size_t file_read(const char *name, void *bytes, size_t n);
void file_remove(const char *name);

/* Copy the directory to a new one, which takes its place: a crash whose disk is kept. */
void env_snapshot(char to[64]);
/* Remove the directory, or only what is in it. */
void env_wipe(void);
void env_empty(void);

#define FIRST_LOG "00000000000000000000.log"
#define FIRST_INDEX "00000000000000000000.index"
#define FIRST_TIMEINDEX "00000000000000000000.timeindex"

#endif
