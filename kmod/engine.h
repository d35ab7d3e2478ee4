/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The partition as the files of the engine see it.
 *
 * Lock order: plog_partition.lock, state_lock, plog_segment.flock, the lists of
 * idle segments and of partitions that are awake.  sync_lock is taken before any of
 * them.
 */
#ifndef _PLOG_ENGINE_H
#define _PLOG_ENGINE_H

#include <linux/atomic.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rcupdate.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "../uapi/linux/plog.h"
#include "epoch.h"
#include "partition.h"
#include "segment.h"
#include "state.h"

/* More segments than this in one directory are not believed: 1 PiB of log. */
#define PLOG_SEGMENTS_MAX	(1u << 20)

/* The same, as the operator wants it: 2 to PLOG_SEGMENTS_MAX. */
extern unsigned int plog_segments_max;

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
	u32 cuts;		/* truncations so far */
	s64 epoch_start;	/* where @leader_epoch begins, -1: not led here */
	s64 log_start;
	s64 high_watermark;
	s64 first_unstable;	/* S64_MAX: none */
	s64 log_end;
	s64 last_producer;	/* last offset of the last batch with a producer id, -1: none */
	s64 last_marker;	/* of a transaction's end, its last offset, -1: none */
	s64 max_timestamp;
	u64 bytes;
	u64 active_end;		/* of the last segment in the table */
	u64 generation;		/* of the table: of what left it or was replaced */
};

/* The last stable offset.  DeleteRecords may pass an open transaction's start. */
static inline s64 plog_last_stable(const struct plog_published *pub)
{
	return min_t(s64, pub->high_watermark, max_t(s64, pub->first_unstable, pub->log_start));
}

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
	u64 preallocate;		/* bytes */
	struct plog_segment *segment;
	struct plog_table *table;
	int error;
};

/* Those that segments count for their partition stand in plog_segment_counts. */
struct plog_counters {
	atomic64_t appends, records, append_bytes, append_refused;
	atomic64_t reads, read_bytes, wakeups, rolls, fsyncs;
	atomic64_t recovered_bytes, truncated_bytes;
	atomic64_t lookups, sync_errors;
	struct plog_segment_counts segments;
	atomic64_t retired_segments, retired_bytes;
};

/* Ends of transactions that wait for the high watermark; more of them are put together. */
#define PLOG_UNSTABLE_WAITING	16

/**
 * struct plog_unstable - ends of transactions that are not replicated yet
 * @marker: last offset of the marker
 * @next: the first unstable offset once the high watermark has passed it
 *
 * Oldest first, under the append mutex.
 */
struct plog_unstable {
	u32 count;
	struct {
		s64 marker;
		s64 next;
	} waiting[PLOG_UNSTABLE_WAITING];
};

struct plog_partition {
	refcount_t refs;
	char *name;
	struct plog_dir *dir;
	const struct plog_partition_events *ops;
	void *owner;

	struct mutex lock;	/* the append mutex */
	seqcount_t seq;
	struct plog_published pub;
	struct plog_table __rcu *table;
	struct plog_epochs __rcu *epochs;	/* NULL: none is known */
	struct plog_config config;	/* under lock */
	bool clean_on_disk;		/* under lock: the state file says so */
	bool led;			/* under lock: its role was told by a LEAD */
	bool below_min_isr;		/* under lock: acks=all is refused */
	bool unsettled;			/* under point_lock, the next and unsettled_start: */
	int unsettled_error;		/* what a killed caller left, see plog_settle() */
	const s64 *lease;		/* of the owner's, see plog_partition_set_lease() */
	bool gaps;			/* under lock: rolls sync, as the log may have gaps */
	bool gaps_noted;		/* under lock: saved.dense is false, and durable */
	bool fresh;			/* there was nothing in the directory when it was opened */
	bool state_durable;		/* the state file was synced since the log was opened */
	bool cut_dirty;			/* a failed append was cut off, and no sync knows */
	bool dir_dirty;			/* names were made that are not durable */
	bool abandoned;			/* an open that runs is not wanted any more */
	bool leftovers;			/* empty files of no segment lie about, and are not listed */
	struct plog_roll roll;
	wait_queue_head_t roll_wait;

	struct plog_segment *swapped;	/* under lock: its files bear another name yet; a use */
	s64 swapped_last;		/* under lock: base of the last one it has replaced */
	struct plog_unstable *unstable;	/* under lock; NULL until there is a transaction */

	s64 appended;			/* milliseconds since 1970, of the last append */
	struct list_head awake;		/* see rest.c */

	wait_queue_head_t waitq;

	struct mutex state_lock;
	struct plog_saved saved;	/* under state_lock */
	bool epochs_dirty;		/* the file is not what it should be */
	bool epochs_pending;		/* saves write the next two; set under state_lock */
	s32 epoch_next;
	struct plog_epochs *epochs_next;	/* not published yet; under state_lock and RCU */

	struct mutex sync_lock;		/* one sync at a time, and no truncation beside it */
	s64 unsettled_start;
	spinlock_t point_lock;
	s64 recovery_point;		/* under point_lock */
	struct plog_settled settled;	/* under point_lock */
	s64 opened;			/* under point_lock: least told of since a sync began */
	struct work_struct flush_work;
	u64 flush_messages, flush_ms;	/* of the config, read without locks */
	struct delayed_work flush_later;

	spinlock_t retired_lock;	/* what follows, see retired.c */
	struct list_head retired;
	u32 retired_count;
	u64 retired_id;			/* of the last one */
	bool reap_queued;
	bool reap_stopped;
	s64 reap_at;			/* uptime, milliseconds, if queued */
	struct delayed_work reap_work;

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

s64 plog_now_ms(void);	/* since 1970 */
s64 plog_uptime_ms(void);	/* since the machine started: never set back */

/**
 * plog_look() - what is published, and the last segment with a base not above
 * @offset, or the first segment; none if @offset is negative
 *
 * @look->seg is to be put, if it is not NULL.  Never sleeps.
 */
void plog_look(struct plog_partition *p, s64 offset, struct plog_look *look);
void plog_look_put(struct plog_look *look);
void plog_look_view(const struct plog_look *look, struct plog_view *view);

/* lookup.c */
s64 plog_end_of(const struct plog_published *pub, enum plog_end end);
/* 0, -EAGAIN (opening) or -ENODEV (closed or failed). */
int plog_check_readable(const struct plog_published *pub);

/**
 * plog_look_use() - have the files of @look->seg open, and @look->end known
 *
 * Return: 0 with one more user of the segment, or an error.  If the segment is
 * retired by now the error is of no account: look again.
 */
int plog_look_use(struct plog_partition *p, struct plog_look *look);
/* Were bytes of the segment truncated since the look? Then look again. */
bool plog_look_cut(const struct plog_look *look);

/* The last segment with a base not above @offset, or the first: its place in the table. */
u32 plog_table_find(const struct plog_table *table, s64 offset);

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

/* What a LEAD says of a partition. */
#define PLOG_ROLE	(PLOG_STATE_REPLICATED | PLOG_STATE_LEADER)

/* What readers see of the flags, under the append mutex. */
static inline u32 plog_pub_flags(const struct plog_partition *p)
{
	return p->config.flags | (p->below_min_isr ? PLOG_STATE_BELOW_MIN_ISR : 0);
}

/* Do appends get their offsets here, by these PLOG_STATE_*? */
static inline bool plog_leads(u32 flags)
{
	return !(flags & PLOG_STATE_REPLICATED) || flags & PLOG_STATE_LEADER;
}

/* Is an append or command of that state allowed? Under the append mutex. */
int plog_check_state(const struct plog_partition *p);

int plog_check_fence(const struct plog_partition *p, s32 leader_epoch, u64 incarnation,
		     const u64 *current_incarnation);

/**
 * plog_begin() - take the append mutex for a command
 * @f: the epoch and incarnation it was decided in; NULL: neither counts
 *
 * Return: 0 with the mutex, or -ESTALE, -EAGAIN, -EROFS, -ENODEV, -EINTR without.
 */
int plog_begin(struct plog_partition *p, const struct plog_fence *f);

/**
 * plog_settle() - publish what a caller who was killed could not
 *
 * A log start that is in the state file, or the error of a failed sync: left under sync_lock
 * by who waited in vain for the append mutex.  The next command does it, a close, or the
 * flush that is queued for it.  Under the append mutex.
 */
void plog_settle(struct plog_partition *p);

/*
 * The largest timestamp of the table, under the append mutex.  Opens the files of each
 * segment whose times are not known: after a clean open, and where plog_learn_times() did
 * not go before, as many as there are (a truncation, which nobody appends beside).
 */
s64 plog_max_timestamp(struct plog_partition *p);

/* Have the times of all segments known that take no appends. Under sync_lock alone. */
void plog_learn_times(struct plog_partition *p);

/* roll.c, under the append mutex */

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
 * plog_roll_to() - a new segment with base @base takes the appends
 *
 * No roll is running.  Return: 0, -EINTR, -EBUSY (the name is still being
 * deleted), -ENOSPC (segments_max), or an error of the files or a sync.
 */
int plog_roll_to(struct plog_partition *p, s64 base, bool killable);

/**
 * plog_roll_now() - a new segment at the log end, unless the last one is empty
 *
 * Under the append mutex.  Return: 0, -EINTR, -EBUSY, -ENOSPC, an error of the files.
 */
int plog_roll_now(struct plog_partition *p, bool killable);

/**
 * plog_roll_make() - have the files of a segment made that is not installed
 * @seg: out: with one user and one reference, both the caller's
 *
 * Under the append mutex.  Return: 0, -EINTR, or an error of the files.
 */
int plog_roll_make(struct plog_partition *p, s64 base, struct plog_segment **seg);

/**
 * plog_note_gap() - from now on a segment may begin behind the end of the one before
 *
 * Recovery must not take that for damage, nor a hole of before for a gap: so all
 * that is there is synced the first time.  Durable on return: 0, or an error of
 * the files.
 */
int plog_note_gap(struct plog_partition *p);

/**
 * plog_active_renew() - the last segment takes appends, again if it was sealed, and ends
 * where its batches do
 *
 * Under the append mutex.  Return: 0, -EINTR, or an error of the files.
 */
int plog_active_renew(struct plog_partition *p, struct plog_segment *seg);

/* partition.c */

/**
 * plog_save() - write the state file as of now
 * @clean: with the clean mark
 * @sync: on stable storage on return
 *
 * Return: 0, -EINTR (a fatal signal), -ENOMEM, or an error of the files.
 */
int plog_save(struct plog_partition *p, bool clean, bool sync);
/* The same under state_lock, for who changes what it is to say, and takes it back if it fails. */
int plog_save_locked(struct plog_partition *p, bool clean, bool sync);

/* truncate.c */

/**
 * plog_log_restart() - throw away all there is, and go on with a segment at @base
 * @start: log start, log end and high watermark from now on; the log start of the
 *	   state file already
 *
 * The list of leader epochs is empty afterwards.  Under sync_lock and the append mutex.
 * Return: 0, -EINTR, -ENOMEM, or an error of the files.
 */
int plog_log_restart(struct plog_partition *p, s64 base, s64 start);

/* lead.c */

/* Is this a replicated partition that is led here, and the lease has run out? */
bool plog_lease_over(const struct plog_partition *p);

/* rest.c */

/* Partitions that hold their last segment's files without an append, all together. */
extern unsigned int plog_active_max;

void plog_rest_init(void);
/* No partition is there any more. */
void plog_rest_exit(void);

/* What the worker does while too many are awake: a look at each, and those that are idle rest. */
void plog_rest_look(void);

/* Its last segment is held from now on. Under the append mutex. */
void plog_rest_awake(struct plog_partition *p);
/* It is not any more. */
void plog_rest_forget(struct plog_partition *p);

/* sync.c */

/* A log start that is in the state file, by who could not publish it. Under sync_lock. */
void plog_leave_log_start(struct plog_partition *p, s64 log_start);

/* Sync, write the recovery point down, and let go of what is sealed. Is it all synced? */
bool plog_flush(struct plog_partition *p);

void plog_flush_work(struct work_struct *work);
void plog_flush_later_work(struct work_struct *work);
void plog_flush_queue(struct plog_partition *p);

/* flush.ms is shorter now: what waits by the one before waits no longer. Without locks. */
void plog_flush_sooner(struct plog_partition *p);

/* How long a recovery point may wait to be written down, as Kafka's checkpoints. */
#define PLOG_CHECKPOINT_MS	60000

/**
 * plog_flush_policy() - what flush.messages and flush.ms ask for after an append
 *
 * Without the append mutex.  Return: 0, or -EIO if a sync failed, whatever its error.
 */
int plog_flush_policy(struct plog_partition *p);

/**
 * plog_sync_log() - sync what lies between the recovery point and the log end
 * @killable: the wait for another sync may be ended by a fatal signal
 *
 * Moves the recovery point in memory.  Without the append mutex, which it takes
 * to fence after an error.
 */
int plog_sync_log(struct plog_partition *p, bool killable);

/**
 * plog_sync_before_roll() - no batch of the next segment reaches the disk before these
 *
 * Where segments need not meet (plog_note_gap()), recovery cannot tell a gap between
 * two of them from the end of the first that a power cut took, and a follower would
 * never fetch what lay there: the first is on the disk before the second has a
 * batch.  Elsewhere recovery sees it, and nobody has to wait.  Under the append
 * mutex.
 */
int plog_sync_before_roll(struct plog_partition *p);

/* retired.c */

/**
 * struct plog_retired - a segment whose files wait to be deleted
 * @base: its name
 * @id: in the order of retirement
 * @bytes: that its files hold
 * @seg: a reference, for as long as somebody may read it; NULL: nobody does, or
 *	 what he reads is void
 * @due: uptime in milliseconds before which nothing is deleted
 * @emptied: the log file has no bytes any more
 * @emptying: this moment, by the engine
 * @gone: whoever deleted it was done while the engine emptied it, which frees it
 * @taker: who deletes it this moment; 0: nobody
 */
struct plog_retired {
	struct list_head list;
	s64 base;
	u64 id;
	u64 bytes;
	struct plog_segment *seg;
	s64 due;
	bool emptied;
	bool emptying;
	bool gone;
	u64 taker;
};

struct plog_retired *plog_retired_alloc(s64 base);

/**
 * plog_retired_add() - list a segment that is in no table
 * @r: base, bytes, seg and emptied are set; taken over
 *
 * If it has a segment, no reader may be about to get a reference: a grace
 * period has passed since it left the table.
 */
void plog_retired_add(struct plog_partition *p, struct plog_retired *r, u64 delay_ms);

/* Where more are listed those that the engine has emptied are not: the next open finds them. */
#define PLOG_RETIRED_MAX	1024

/*
 * The same for an empty file of that name; without memory, or where enough are listed,
 * only a flag remembers it.
 */
void plog_retired_add_empty(struct plog_partition *p, s64 base);

/**
 * plog_retired_add_found() - the same for files that an open has found, and nobody reads
 *
 * Where enough are listed they are emptied at once.  Return: 0 or -ENOMEM.
 */
int plog_retired_add_found(struct plog_partition *p, s64 base, u64 bytes);

/**
 * plog_retired_reuse() - a segment of that name is to be made
 *
 * Return: 0 and the name is free, -EBUSY if somebody is deleting it.
 */
int plog_retired_reuse(struct plog_partition *p, s64 base);

void plog_reap_work(struct work_struct *work);
/* Look at the list after that time, or before. */
void plog_reap_queue(struct plog_partition *p, s64 delay_ms);
/* No more looks; forget the list. */
void plog_reap_stop(struct plog_partition *p);
/* Forget the list, which nobody has been shown yet or will be. */
void plog_retired_free(struct plog_partition *p);

/**
 * plog_retired_empty_all() - cut the files of all of them to nothing, at once
 *
 * What readers hold of them is void.  For a log that begins anew: it may come to
 * the same offsets, and an open would find two logs in one directory.  Under the
 * append mutex, for as many as are listed, which has no bound but what was retired
 * within file.delete.delay.ms: three cuts and a sync each.  Nobody appends to a log
 * that is given up.  Return: 0, or an error of the files.
 */
int plog_retired_empty_all(struct plog_partition *p);

/* retention.c */

/* Log starts below which whole segments lie: retire those. Under sync_lock alone. */
int plog_retire_below(struct plog_partition *p);
/* unstable.c */

/* Transactions of a log without any. */
void plog_settled_init(struct plog_settled *s);

/**
 * plog_unstable_admit() - is what an append says of transactions possible, and
 * is there memory to note it?
 * @value: PLOG_UNSTABLE_* of the uapi header or an offset
 * @first: base offset of the append
 *
 * Under the append mutex.  Return: 0, -EINVAL, -ENOMEM.
 */
int plog_unstable_admit(struct plog_partition *p, s64 value, s64 first);

/**
 * plog_unstable_set() - the first unstable offset from now on
 * @value: S64_MAX for none
 * @marker: last offset of what ended the oldest transaction, if it is a later one
 *
 * Between plog_publish_begin() and _end(); the high watermark is published
 * behind this if the offset goes down.
 */
void plog_unstable_set(struct plog_partition *p, s64 value, s64 marker);

/* What it is as of the log end, whatever is replicated; under the append mutex. */
s64 plog_unstable_latest(const struct plog_partition *p);

/* The high watermark was published: the ends of transactions below it count. */
void plog_unstable_replicated(struct plog_partition *p);

/*
 * The last offset of the last batch below @below that has a producer id, -1: none.
 *
 * Walks headers back from there, to the start of the log where none has one; a fatal
 * signal ends it.  Under the append mutex for a truncation that takes the last one away,
 * which nobody appends beside, and for a swap that does: writers wait for that.
 */
int plog_unstable_last_producer(struct plog_partition *p, const struct plog_table *table,
				s64 below, s64 *last);

/* Of a truncation to @offset: learn what will hold then; may read the log. */
int plog_unstable_plan_cut(struct plog_partition *p, s64 offset, struct plog_settled *after);
/* Between plog_publish_begin() and _end(). */
void plog_unstable_cut(struct plog_partition *p, s64 offset, const struct plog_settled *after);

/**
 * plog_unstable_scan() - find open transactions behind the settled offset
 * @table: the segments, checked
 * @hw, @log_end: as they will be published
 *
 * For an opening partition: sets all that it is about, and publishes it.
 */
int plog_unstable_scan(struct plog_partition *p, const struct plog_table *table, s64 hw,
		       s64 log_end);

/* swap.c */

/* Its files have their names, or nobody will look: let go. Under the append mutex. */
void plog_swap_forget(struct plog_partition *p);

/* recovery.c */
int plog_recover(struct plog_partition *p);

#endif /* _PLOG_ENGINE_H */
