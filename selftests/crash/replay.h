/* SPDX-License-Identifier: MIT */
/*
 * The log of dm-log-writes, played onto a file step by step.
 *
 * The format, little endian (Linux's Documentation/admin-guide/device-mapper/
 * log-writes.rst and the target itself): sector 0 is the head: magic 8,
 * version 8, number of entries 8, sector size 4. Then entry by entry one sector:
 * target sector 8, number of sectors 8, flags 8, length of inline data 8; with a
 * mark its text behind that; else the sectors' content follows, but for a
 * discard, which has none. A write is in the log only once a later flush, or its own
 * FUA, has made it durable.
 */
#ifndef PLOG_CRASH_REPLAY_H
#define PLOG_CRASH_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

enum {
	REPLAY_FLUSH = 1,
	REPLAY_FUA = 2,
	REPLAY_DISCARD = 4,
	REPLAY_MARK = 8,
};

/**
 * struct replay - where a replay is
 * @left: entries that are still to come
 * @flags: REPLAY_* of the last entry
 * @mark: its text, if it was a mark
 * @done, @bytes: what was played so far
 */
struct replay {
	int log;
	int target;
	uint64_t at;
	uint64_t left;
	uint32_t sector;
	uint64_t flags;
	char mark[256];
	uint64_t done;
	uint64_t bytes;
};

/* Open @log; what it holds goes to the file @target. 0 or -errno (-EINVAL: no such log). */
int replay_open(struct replay *r, const char *log, const char *target);
void replay_close(struct replay *r);

/* Play one entry. Return: 1, 0 at the end, -errno. */
int replay_step(struct replay *r);

#endif
