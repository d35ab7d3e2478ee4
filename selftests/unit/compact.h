/* SPDX-License-Identifier: MIT */
/*
 * A compactor for tests of the engine: it leaves out whole batches.
 */
#ifndef TEST_COMPACT_H
#define TEST_COMPACT_H

#include "engine.h"

/* Base offsets of the log files of env.dir, sorted; how many. */
int log_files(int64_t *bases, int max);

/*
 * Write FIRST.log.swap and two empty indexes from the logs FIRST to LAST, with the batches that
 * @keep wants; the number of records.
 */
int compact(int64_t first, int64_t last, bool (*keep)(const struct plog_batch *b));
/* The same; -1 where a log ends inside a batch: it is being cut at the moment. */
int try_compact(int64_t first, int64_t last, bool (*keep)(const struct plog_batch *b));

/* Where a swap would be interrupted; STEPS: nowhere. */
enum step { UNLINKED, RENAMED_INDEX, RENAMED_TIMEINDEX, RENAMED_LOG, STEPS };

/* What the daemon does behind the swap: delete what the others have, rename; up to @end. */
void finish_files(int64_t first, int64_t last, enum step end);

/* plog_partition_swap() and _done() as the daemon, with the generation as it is. */
int swap(int64_t first, int64_t last);
int swap_done(void);
uint64_t generation(void);

#endif
