/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What tests turn: faults and time.  Nothing of the engine includes this. */
#ifndef _ENGINE_SHIM_H
#define _ENGINE_SHIM_H

#include <linux/types.h>
#include <linux/wait.h>		/* shim_killed */

/* The n-th allocation from now fails (1 is the next one), 0: none. */
extern int shim_fail_alloc;
extern int shim_failed_allocs;

/* Added to the clock, milliseconds. */
extern s64 shim_clock_ms;

/* What get_random_u64() gives; NULL: random numbers. */
extern u64 (*shim_random)(void);

/* If not 0, what the clocks say before that is added: a run that can be repeated. */
extern s64 shim_fixed_ms;

/*
 * Set before plog_engine_init(): no threads.  A roll is made where it is asked
 * for, everything else waits for shim_run_work() or for who waits for it; delayed
 * work for its time by shim_clock_ms.
 */
extern bool shim_inline_work;
/* Run what is queued, and due; how many there were. */
unsigned int shim_run_work(void);

/* Called by this thread before it takes a mutex by mutex_lock_killable(). */
struct mutex;
extern __thread void (*shim_locking)(struct mutex *l);

/* Called by this thread after it copied from an iov_iter, whose memory may change then. */
extern __thread void (*shim_copied)(void);

/* Where pr_warn() and its like go; NULL is stderr. */
extern void (*shim_log)(const char *line);

enum shim_file_op {
	SHIM_OPEN, SHIM_READ, SHIM_WRITE, SHIM_TRUNCATE, SHIM_SYNC, SHIM_DIR_SYNC,
	SHIM_PREALLOCATE, SHIM_WRITEBACK,
};

/*
 * Asked before each file operation.  Returns 0 to let it happen or a negative
 * errno; of a write, *@done says how many bytes reach the file before it fails.
 */
extern int (*shim_file_fault)(enum shim_file_op op, const char *name, u64 pos, size_t len,
			      size_t *done);

/* The filesystem is frozen, to who asks plog_dir_thawed(). */
extern bool shim_frozen;

/* Open files, for leak checks. */
extern int shim_open_files;

#endif
