/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The partition as the files of the engine see it.
 *
 * Lock order: plog_partition.lock, state_lock, plog_segment.flock, the list of
 * idle segments.  sync_lock is taken before any of them.
 */
#ifndef _PLOG_ENGINE_H
#define _PLOG_ENGINE_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rcupdate.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "../uapi/linux/plog.h"
#include "partition.h"
#include "segment.h"
#include "state.h"

/* More segments than this in one directory are not believed: 1 PiB of log. */
#define PLOG_SEGMENTS_MAX	(1u << 20)

/* The segments, by base offset.  Replaced as a whole, read under RCU. */
struct plog_table {
	struct rcu_head rcu;
	u32 count;
	struct plog_segment *seg[];
};

/**
 * struct plog_published - what readers see, all of it together
 *
 * Written under the append mutex inside plog_partition.seq.
 */
struct plog_published {
	u32 state;
	int error;
	u32 flags;
	s32 leader_epoch;
	s64 log_start;
	s64 high_watermark;
	s64 first_unstable;	/* S64_MAX: none */
	s64 log_end;
	s64 max_timestamp;
	u64 bytes;
	u64 active_end;		/* of the last segment in the table */
};

enum plog_roll_stage { PLOG_ROLL_IDLE, PLOG_ROLL_RUNNING, PLOG_ROLL_DONE };

/**
 * struct plog_roll - the making of the next segment
 *
 * Started and settled under the append mutex; a caller that is killed while it
 * waits leaves it to the next one.
 */
struct plog_roll {
	struct work_struct work;
	int stage;
	s64 base;
	u32 count;			/* of segments then */
	u32 index_interval;
	struct plog_segment *segment;
	struct plog_table *table;
	int error;
};

struct plog_counters {
	atomic64_t appends, records, append_bytes, append_refused;
	atomic64_t reads, read_bytes, wakeups, rolls, fsyncs;
	atomic64_t recovered_bytes, truncated_bytes;
};

struct plog_partition {
	refcount_t refs;
	char *name;
	struct plog_dir *dir;
	const struct plog_partition_events *ops;
	void *owner;

	struct mutex lock;	/* the append mutex */
	seqcount_mutex_t seq;
	struct plog_published pub;
	struct plog_table __rcu *table;
	struct plog_config config;	/* under lock */
	bool clean_on_disk;		/* under lock: the state file says so */
	bool dir_dirty;			/* names were made that are not durable */
	bool leftovers;			/* under lock: empty files that are no segments lie about */
	struct plog_roll roll;
	wait_queue_head_t roll_wait;

	wait_queue_head_t waitq;

	struct mutex state_lock;
	struct plog_saved saved;	/* under state_lock */

	struct mutex sync_lock;		/* one sync at a time, and no truncation beside it */
	spinlock_t point_lock;
	s64 recovery_point;		/* under point_lock */
	struct work_struct flush_work;

	struct plog_counters count;
};

/* One consistent look for a reader, with the segment that holds an offset. */
struct plog_look {
	struct plog_published pub;
	struct plog_segment *seg;	/* referenced; NULL if there is none */
	s64 next;			/* base of the next segment, or the log end */
	u64 end;			/* of @seg, or PLOG_END_UNKNOWN */
	u32 cut_gen;
	bool active;
	u32 segments;
};

/* partition.c */
extern struct workqueue_struct *plog_roll_wq;	/* never waits for a partition */
extern struct workqueue_struct *plog_flush_wq;
extern struct workqueue_struct *plog_file_wq;	/* takes no lock of ours */

s64 plog_now_ms(void);

/**
 * plog_look() - what is published, and the last segment with a base not above
 * @offset, or the first segment; none if @offset is negative
 *
 * @look->seg is to be put, if it is not NULL.  Never sleeps.
 */
void plog_look(struct plog_partition *p, s64 offset, struct plog_look *look);
void plog_look_put(struct plog_look *look);
void plog_look_view(const struct plog_look *look, struct plog_view *view);

/* The segment table, for who holds the append mutex. */
struct plog_table *plog_table(struct plog_partition *p);
struct plog_segment *plog_active(struct plog_partition *p);

/* Room for @count segments, or NULL. */
struct plog_table *plog_table_alloc(u32 count);

/* Change p->pub and the table between these two, under the append mutex. */
void plog_publish_begin(struct plog_partition *p);
void plog_publish_end(struct plog_partition *p);

/* After the mutex was dropped: wake who waits for the visible end. */
void plog_wake(struct plog_partition *p);

/* Under the append mutex: no append from now on. */
void plog_fence(struct plog_partition *p, int error, const char *why);

/* Is an append or command of that state allowed? Under the append mutex. */
int plog_check_state(const struct plog_partition *p);
int plog_check_fence(const struct plog_partition *p, s32 leader_epoch, u64 incarnation,
		     const u64 *current_incarnation);

/* append.c, under the append mutex */

/**
 * plog_roll_settle() - wait for a roll, be it one that somebody left
 * @base: that the caller wants to append at, -1: none
 * @killable: or wait whatever comes
 *
 * Installs the new segment, or drops it where it fits no more.
 * Return: 0, -EINTR, or the error of a roll for @base.
 */
int plog_roll_settle(struct plog_partition *p, s64 base, bool killable);
void plog_roll_work(struct work_struct *work);

/**
 * plog_active_renew() - the last segment takes appends, again if it was sealed
 *
 * Under the append mutex.  Return: 0, -EINTR, or an error of the files.
 */
int plog_active_renew(struct plog_partition *p, struct plog_segment *seg);

/**
 * plog_save() - write the state file as of now
 * @clean: with the clean mark
 * @sync: on stable storage on return
 */
int plog_save(struct plog_partition *p, bool clean, bool sync);

/* sync.c */
void plog_flush_work(struct work_struct *work);
void plog_flush_queue(struct plog_partition *p);

/**
 * plog_sync_log() - sync what lies between the recovery point and the log end
 * @killable: the wait for another sync may be ended by a fatal signal
 *
 * Moves the recovery point in memory.  Without the append mutex, which it takes
 * to fence after an error.
 */
int plog_sync_log(struct plog_partition *p, bool killable);

/* recovery.c */
int plog_recover(struct plog_partition *p);

#endif /* _PLOG_ENGINE_H */
