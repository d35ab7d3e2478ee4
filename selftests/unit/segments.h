/* SPDX-License-Identifier: MIT */
/*
 * Logs of small segments, and what was retired of them, for tests of the engine.
 */
#ifndef TEST_SEGMENTS_H
#define TEST_SEGMENTS_H

#include "engine.h"

#include "../../kmod/engine.h"

#define DAY (24LL * 60 * 60 * 1000)

/* env_open() where a batch whose record has LEN bytes, 600 with all, fills a segment. */
#define LEN 530
void open_small(void);

/* @n segments of one batch each, of @len bytes a record; times are @step apart and end at @last. */
void fill(unsigned int n, unsigned int len, int64_t last, int64_t step);

/* The name of a segment's file: "log", "index", "timeindex". */
const char *name_of(int64_t base, const char *kind);

/* Move the log start; where it is then, or the error. */
int64_t start_at(int64_t offset);

/* The retired segments. */
struct listed {
	unsigned int n;
	struct plog_retired_info e[64];
};
struct listed listed(void);

#endif
