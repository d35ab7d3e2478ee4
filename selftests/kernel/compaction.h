/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a daemon does when it compacts: a new segment written beside the old ones,
 * PLOG_IOC_SWAP, the files renamed.
 */
#ifndef PLOG_SELFTESTS_COMPACTION_H
#define PLOG_SELFTESTS_COMPACTION_H

#include <stdbool.h>
#include <stdint.h>

struct plog_swap;

/* Base offsets of the segments that have a log in @dir, sorted; how many. */
int segment_bases(const char *dir, int64_t *bases, int max);

/* Path of a segment's file of @kind; good until the call after the next. */
const char *segment_file(const char *dir, int64_t base, const char *kind);

/*
 * BASE.log.swap from the logs bases[first] to bases[last], with each batch whose base offset
 * @every divides, and indexes of one byte, which are damaged: the module makes them anew.
 */
bool compaction_write(const char *dir, const int64_t *bases, int first, int last, int every);

/* The files of a swap that was made get their names. */
void compaction_rename(const char *dir, const int64_t *bases, int first, int last);

/* PLOG_IOC_SWAP; @out: what came back, or NULL. 0 or -errno. */
int swap_call(int fd, uint64_t incarnation, int64_t first, int64_t last, uint64_t generation,
	      uint32_t flags, struct plog_swap *out);

/* The generation of the segments as they are; 0: refused. */
uint64_t swap_generation(int fd);

#endif
