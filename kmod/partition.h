/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The partition: one log with its offsets.  This is the whole of what the
 * module's glue (and, built in user space, the daemon's process engine) calls.
 */
#ifndef _PLOG_PARTITION_H
#define _PLOG_PARTITION_H

#include <linux/types.h>
#include <linux/uio.h>
#include <linux/wait.h>

#include "file.h"
#include "record.h"

struct plog_partition;
struct plog_segment;

/**
 * plog_engine_init() - once, before anything else here: the work queue
 *
 * Return: 0 or -ENOMEM.
 */
int plog_engine_init(void);

/* After the last partition is gone: flush what is still being freed. */
void plog_engine_exit(void);

/**
 * struct plog_config - what can be changed while the partition is open
 * @flags: PLOG_STATE_* of the uapi header
 * @max_message_bytes: largest batch, bytes, PLOG_MESSAGE_BYTES_MIN to _MAX
 * @segment_bytes: a segment is rolled before it would pass this, bytes
 * @segment_ms: or once its first record is older than this, milliseconds
 * @index_interval_bytes: one index entry per so many bytes of log
 * @index_bytes: largest index of the segments that are begun from now on, bytes,
 *	a multiple of 8
 * @segment_jitter_ms: at most so much is taken off @segment_ms, anew for each
 *	segment, milliseconds
 * @retention_ms: a segment whose newest record is older goes, milliseconds; -1: none does
 * @retention_bytes: the oldest segments go while the others have so many bytes; -1: none does
 * @file_delete_delay_ms: how long the files of a segment that went stay, milliseconds
 * @flush_messages: appends that leave so many records unsynced sync them, 1 and
 *	more; PLOG_NEVER: they do not
 * @flush_ms: records are synced so long after their append, milliseconds; or PLOG_NEVER
 * @preallocate: a new segment gets its room on the disk at once
 */
struct plog_config {
	u32 flags;
	u32 max_message_bytes;
	u32 segment_bytes;
	u64 segment_ms;
	u32 index_interval_bytes;
	u32 index_bytes;
	u64 segment_jitter_ms;
	s64 retention_ms;
	s64 retention_bytes;
	u64 file_delete_delay_ms;
	u64 flush_messages;
	u64 flush_ms;
	bool preallocate;
};

#define PLOG_NEVER	((u64)S64_MAX)

/* Kafka's defaults, but for the retention: who says nothing keeps everything. */
void plog_config_init(struct plog_config *config);

/**
 * plog_config_check() - are all values in range?
 * @what: set to the Kafka name of the first one that is not
 *
 * Return: 0 or -ERANGE.
 */
int plog_config_check(const struct plog_config *config, const char **what);

/**
 * struct plog_partition_events - how the owner hears of things
 * @visible: the log end, the high watermark or the last stable offset moved, or
 *	     the state changed; called without locks that the engine holds, after the
 *	     waiters in wait were woken; must not sleep
 * @state: the state changed (PLOG_PARTITION_*), @error is a positive errno or 0;
 *	   may be called under the append mutex; must not call the engine
 * @retired: files of retired segments may be deleted; from a work queue, without
 *	     locks.  True: somebody takes them by plog_partition_retired_take(),
 *	     now or later; false: nobody does, the engine empties them itself
 */
struct plog_partition_events {
	void (*visible)(struct plog_partition *p);
	void (*state)(struct plog_partition *p, u32 state, int error);
	bool (*retired)(struct plog_partition *p);
};

/**
 * plog_partition_create() - a partition object, not yet open
 * @name: "topic-index", for messages and traces; copied
 * @dir: taken over by the partition, also on failure
 * @ops: may be NULL
 * @owner: opaque, plog_partition_owner()
 *
 * Return: state OPENING, one reference; or -ENOMEM, -ERANGE as ERR_PTR.
 */
struct plog_partition *plog_partition_create(const char *name, struct plog_dir *dir,
					     const struct plog_config *config,
					     const struct plog_partition_events *ops,
					     void *owner);
void *plog_partition_owner(const struct plog_partition *p);
const char *plog_partition_name(const struct plog_partition *p);

void plog_partition_get(struct plog_partition *p);
/* The last reference closes what is open; may sleep. */
void plog_partition_put(struct plog_partition *p);

/**
 * plog_partition_open() - find the log in the directory, recover, go online
 *
 * Does I/O, up to a scan of everything behind the recovery point.  Call it
 * from a work queue, once.  Return: 0 (ONLINE) or a negative errno (FAILED).
 */
int plog_partition_open(struct plog_partition *p);

/**
 * plog_partition_abandon() - an open that runs, or will, is not wanted any more
 *
 * It ends with -ECANCELED at the next segment that it would scan; the log is as it
 * was.  Never sleeps; without effect on a partition that is open.
 */
void plog_partition_abandon(struct plog_partition *p);

/**
 * plog_partition_close() - take no more appends, wake every waiter
 * @clean: sync everything and write the clean mark, so that the next open
 *	   scans nothing; else just let go (a deleted partition)
 *
 * Readers that hold extents keep them.  State CLOSED.  May sleep on the disk.
 * Return: 0, or the error of the sync (the next open will recover).
 */
int plog_partition_close(struct plog_partition *p, bool clean);

/* Replace the configuration, under the append mutex. -EINTR, -ERANGE. */
int plog_partition_configure(struct plog_partition *p, const struct plog_config *config);
void plog_partition_config(struct plog_partition *p, struct plog_config *config);

/* One consistent look; never sleeps. */
struct plog_view {
	u32 state;		/* PLOG_PARTITION_* */
	int error;		/* positive errno behind FAILED and FENCED */
	u32 flags;		/* PLOG_STATE_* */
	u32 segments;
	u32 retired;		/* segments whose files are still there */
	s32 leader_epoch;
	u32 cuts;		/* truncations so far */
	s64 log_start;
	s64 high_watermark;
	s64 last_stable;
	s64 log_end;
	s64 max_timestamp;
	u64 bytes;
	s64 first_unstable;	/* -1: no transaction is open */
	s64 last_producer;	/* last offset of the last batch with a producer id, -1: none */
};
void plog_partition_view(struct plog_partition *p, struct plog_view *view);

/* Counters; read without locks. */
struct plog_partition_stats {
	u64 appends, records, append_bytes, append_refused;
	u64 reads, read_bytes, wakeups, rolls, fsyncs;
	u64 recovered_bytes, truncated_bytes;
	u64 retired_segments, retired_bytes;
	u64 lookups, sync_errors, index_rebuilds;
};
void plog_partition_stats(struct plog_partition *p, struct plog_partition_stats *st);

/**
 * struct plog_partition_gauges - what it holds now; read without locks
 * @open_files: log and index files that are open
 * @pins: extents that readers hold
 * @generation: of the table of segments: of what left it or was replaced
 */
struct plog_partition_gauges {
	u64 open_files;
	u64 pins;
	u64 generation;
};
void plog_partition_gauges(struct plog_partition *p, struct plog_partition_gauges *g);
/* For readers that take bytes past the engine (splice): add to the counters. */
void plog_partition_count_read(struct plog_partition *p, u64 bytes);

/* ---- append ---- */

/**
 * struct plog_append_args - one append
 * @flags: PLOG_APPEND_* of the uapi header
 * @incarnation, @leader_epoch: with PLOG_APPEND_DAEMON checked under the mutex
 *	against *@current_incarnation and the partition's epoch
 * @current_incarnation: where the owner keeps it; may be NULL
 * @raw, @size: the batch in kernel memory of the caller's that the engine may
 *	change (it writes the header there); or, with @raw NULL:
 * @from: the bytes, kernel memory or pinned pages; consumed
 * @checked: the whole batch is in kernel memory and plog_batch_check() and,
 *	     without PLOG_APPEND_DAEMON, plog_record_check() found it right: neither
 *	     is done again
 * @keyless: with @checked and without PLOG_APPEND_DAEMON: a record has no key
 *	     (refused by compacted topics; decided under the mutex)
 * @first_unstable: with PLOG_APPEND_UNSTABLE, PLOG_UNSTABLE_* or an offset: see
 *	struct plog_append of the uapi header
 * out: @base_offset, @last_offset, @log_append_time, @log_start; @epoch that it
 *	was made in and @cuts that went before, for plog_partition_wait_acks()
 */
struct plog_append_args {
	u32 flags;
	s32 leader_epoch;
	u64 incarnation;
	const u64 *current_incarnation;
	u8 *raw;
	size_t size;
	struct iov_iter *from;
	bool checked;
	bool keyless;
	s64 first_unstable;
	s64 base_offset;
	s64 last_offset;
	s64 log_append_time;
	s64 log_start;
	s32 epoch;
	u32 cuts;
};

/**
 * plog_partition_append() - append batches
 *
 * Return: 0, or
 *  -EBADMSG	CRC, magic or framing wrong
 *  -EMSGSIZE	larger than max.message.bytes
 *  -EINVAL	length or count fields contradict each other, nothing to append, or a
 *		first unstable offset that cannot be; or a replica's batches do not
 *		follow the log: offsets or epochs fall
 *  -EOPNOTSUPP	codec, producer id or control bit without PLOG_APPEND_DAEMON
 *  -ESTALE	older incarnation or leader epoch; or a replica's batch is of a later
 *		leader epoch than the append names
 *  -EKEYEXPIRED the lease of a replicated partition has run out
 *  -EHOSTUNREACH with PLOG_APPEND_ACKS_ALL: fewer replicas in sync than
 *		min.insync.replicas
 *  -EPERM	a keyless record for a compacted topic, or an internal topic,
 *		without PLOG_APPEND_DAEMON
 *  -EROFS	fenced: no append until the partition is reopened; or replicated
 *		and not led here
 *  -EAGAIN	still opening
 *  -ENODEV	closed or failed
 *  -EINTR	fatal signal
 *  -EOVERFLOW	offsets would pass 2^63 - 1
 *  -EFBIG, -ENOSPC, -EDQUOT, -EIO, -ENOMEM as from the filesystem
 * On any error nothing was appended.  Exception: with PLOG_APPEND_SYNC, or where
 * flush.messages asks for a sync, -EIO also says that the sync failed: appended, not
 * known to be stable.  Unless the reason was a lack of memory or descriptors, a fatal
 * signal or a close in between, the partition is fenced then.
 */
int plog_partition_append(struct plog_partition *p, struct plog_append_args *args);

/**
 * plog_partition_sync() - everything below the log end on stable storage
 */
int plog_partition_sync(struct plog_partition *p);

/**
 * plog_partition_set_hw() / _truncate() / _set_log_start()
 * @offset: in: wanted; out: where it is now
 *
 * Under the append mutex. -ESTALE as for append; -ERANGE out of
 * [log start, log end], or for set_log_start above the high watermark; -EINVAL
 * (set_hw on a partition that is not replicated).  The log start never moves
 * back: a smaller @offset changes nothing and is no error.  A truncation inside
 * a batch cuts the whole batch: @offset tells.  A new log start is on stable
 * storage before it is seen, and whole segments below it are retired.
 */
struct plog_fence {
	s32 leader_epoch;
	u64 incarnation;
	const u64 *current_incarnation;
};
/**
 * plog_partition_set_epoch() - lead or follow in another epoch from now on
 *
 * The role stays.  A leader notes where its epoch begins, on stable storage.
 * Return: 0, -ESTALE (older than the one now), -EROFS, -EAGAIN, -ENODEV, -EINTR,
 * or an error of the files.
 */
int plog_partition_set_epoch(struct plog_partition *p, s32 epoch);

/**
 * struct plog_lead_args - what a partition is from now on
 * @flags: PLOG_LEAD_* of the uapi header
 * @epoch: leader epoch, not below the one now
 * @incarnation, @current_incarnation: as in plog_fence
 * out: @log_end where the epoch begins, @high_watermark
 */
struct plog_lead_args {
	u32 flags;
	s32 epoch;
	u64 incarnation;
	const u64 *current_incarnation;
	s64 log_end;
	s64 high_watermark;
};

/**
 * plog_partition_lead() - change role, epoch, who moves the high watermark and
 * whether acks=all is refused, in one step
 *
 * A leader notes (epoch, log end), whether or not it writes anything, on stable
 * storage before this returns.  From now on plog_partition_configure() does not
 * touch the role.  Waiters for acks are woken, and fail if the epoch is another.
 * Return: 0, -EINVAL (flags), -ESTALE (epoch or incarnation), -EROFS (fenced),
 * -EAGAIN, -ENODEV, -EINTR, or an error of the files: nothing has changed then.
 */
int plog_partition_lead(struct plog_partition *p, struct plog_lead_args *args);

/**
 * plog_partition_set_lease() - how long replicated partitions may be led
 * @deadline: of CLOCK_BOOTTIME in nanoseconds, 0 for no limit; read at each
 *	      append; must stay as long as the partition does
 *
 * Before the partition is opened.
 */
void plog_partition_set_lease(struct plog_partition *p, const s64 *deadline);

/**
 * plog_partition_wait_acks() - wait until the high watermark has passed an append
 * @args: of the append that succeeded
 *
 * Return: 0, or what makes its fate uncertain: -ESTALE (another epoch, or a
 * truncation), -EROFS (fenced), -ENODEV (closed), -EINTR (fatal signal).
 */
int plog_partition_wait_acks(struct plog_partition *p, const struct plog_append_args *args);

/**
 * plog_partition_epoch_end() - where did a leader epoch end here (KIP-101)?
 * @epoch: in: asked for; out: the largest not above it, -1 if there is none to tell
 * @end: out: the first offset of the next epoch, the log end for the last one; or -1
 * @current_epoch: out: the one that the partition is in
 *
 * All of one moment; takes no lock.  Return: 0, -EAGAIN, -ENODEV.
 */
int plog_partition_epoch_end(struct plog_partition *p, s32 *epoch, s64 *end, s32 *current_epoch);

/* The epoch of the record at *@offset, which need not be there, into *@epoch: -1 if unknown. */
int plog_partition_epoch_at(struct plog_partition *p, s64 offset, s32 *epoch, s32 *current_epoch);

/**
 * plog_partition_epochs() - the epochs from @from on, in order
 * @max: room of @out
 *
 * Takes no lock.  Return: how many were written, 0 at the end, -EAGAIN, -ENODEV.
 */
struct plog_epoch_info {
	s32 epoch;
	s64 start;		/* not below the log start */
};
int plog_partition_epochs(struct plog_partition *p, s32 from, struct plog_epoch_info *out,
			  unsigned int max);
int plog_partition_set_hw(struct plog_partition *p, const struct plog_fence *f, s64 *offset);
int plog_partition_truncate(struct plog_partition *p, const struct plog_fence *f, s64 *offset);

/**
 * plog_partition_truncate_epoch() - cut to where this log and its leader's agree
 * @epoch, @offset: in: the leader's answer, where its epoch @epoch ended; -1, -1:
 *	it knows nothing of the epoch it was asked for: cut to the high watermark
 * @epoch: out: the epoch to ask the leader for next; -1: the two agree
 * @offset: out: the log end
 *
 * KIP-279: if the leader's epoch is not known here, what is later than the largest
 * one below goes, and it has to be asked again.  Never below the log start.
 * Return: as plog_partition_truncate().
 */
int plog_partition_truncate_epoch(struct plog_partition *p, const struct plog_fence *f,
				  s32 *epoch, s64 *offset);

/**
 * plog_partition_start_at() - give up all there is, and go on at @offset
 *
 * For a follower whose log ends before its leader's begins.  Log start, log end and
 * high watermark are @offset then.  Return: as plog_partition_truncate(), -ERANGE
 * if @offset is below the log end, -EINVAL if appends get their offsets here.
 */
int plog_partition_start_at(struct plog_partition *p, const struct plog_fence *f, s64 *offset);
int plog_partition_set_log_start(struct plog_partition *p, const struct plog_fence *f,
				 s64 *offset);

/**
 * plog_partition_set_unstable() - the first unstable offset, without an append
 * @offset: in: the first offset of the oldest open transaction, -1 for none;
 *	    out: what is published now
 *
 * For a daemon that has built its state after a start or a truncation.  A later
 * offset than now counts when the high watermark has reached the log end of
 * now, since the markers that it stands for must be replicated first.  Wakes
 * readers of committed records.  -ERANGE: above the log end; else as set_hw.
 */
int plog_partition_set_unstable(struct plog_partition *p, const struct plog_fence *f,
				s64 *offset);

/**
 * plog_partition_roll() - begin a new segment at the log end
 * @f: may be NULL
 * @base: out: base offset of the segment that takes appends now
 *
 * Nothing happens if that one is still empty.  Return: 0, -ESTALE, -EINTR,
 * -EBUSY (a file of that name is being deleted this moment: again), -ENOSPC
 * (as many segments as there can be), an error of the files.
 */
int plog_partition_roll(struct plog_partition *p, const struct plog_fence *f, s64 *base);

/* ---- compaction ---- */

/**
 * struct plog_swap_args - a swap
 * @generation: in: of the table that the caller saw; out: of the one now
 * @first, @last: base offsets of the first and the last segment that go
 */
struct plog_swap_args {
	u64 generation;
	s64 first;
	s64 last;
};

/**
 * plog_partition_swap() - one segment for a run of sealed ones
 *
 * Opens FIRST.log.swap, FIRST.index.swap and FIRST.timeindex.swap in the
 * directory, checks all batches, makes both indexes anew and syncs them; then
 * replaces the segments from @first to @last.  Until plog_partition_swap_done()
 * there is no other swap, and no truncation or retention of what was swapped in.
 *
 * Return: 0;
 *  -EINVAL	no such range; a name that is not a regular file
 *  -ENOENT	a file is missing
 *  -EBADMSG	the log is not whole batches with right CRCs and rising offsets
 *  -EFBIG	it is larger than a segment can be
 *  -ERANGE	the segments are not there, one of them takes appends, they reach
 *		over the last stable offset, or the new one over their end
 *  -ESTALE	the table is of another generation; or as for append
 *  -EBUSY	another swap is not done
 *  -EAGAIN, -ENODEV, -EROFS, -EINTR, -ENOMEM, an error of the files
 */
int plog_partition_swap(struct plog_partition *p, const struct plog_fence *f,
			struct plog_swap_args *args);

/**
 * plog_partition_swap_done() - the files have got their names
 *
 * Return: 0, also if there is nothing to be done; -ENOENT if FIRST.log is not
 * the file that was swapped in; -ESTALE...
 */
int plog_partition_swap_done(struct plog_partition *p, const struct plog_fence *f);

/* @pending, @last: base offsets of a swap that is not done, -1: none. 0, -EAGAIN, -EINTR. */
int plog_partition_swap_state(struct plog_partition *p, u64 *generation, s64 *pending,
			      s64 *last);

/* ---- retention ---- */

/**
 * plog_partition_retain() - let go what retention.ms and retention.bytes do not keep
 *
 * Whole segments from the oldest on, as long as all in them lies below the high
 * watermark; if everything has expired a new segment is begun first.  What lies
 * below the log start goes whatever the configuration says.  The log start
 * moves, on stable storage, before a segment leaves the table.  May wait for
 * the disk: from a work queue.
 *
 * Return: how many segments were retired, -EAGAIN, -ENODEV, -EROFS (fenced), an
 * error of the files.
 */
int plog_partition_retain(struct plog_partition *p);

/*
 * Segments that left the table, and whose files wait to be deleted, by the
 * owner's daemon if there is one.  Each has one taker: who was given it by
 * _take() unlinks its files and says so by _done(), before which no segment
 * gets the same name again.
 */
enum plog_retired_state {	/* PLOG_RETIRED_STATE_* of the netlink header */
	PLOG_RETIRED_DELAYED = 0,	/* file.delete.delay.ms is not over */
	PLOG_RETIRED_HELD = 1,		/* somebody reads it */
	PLOG_RETIRED_READY = 2,		/* to be deleted */
	PLOG_RETIRED_EMPTIED = 3,	/* the same, without content */
	PLOG_RETIRED_TAKEN = 4,		/* being deleted */
};

struct plog_retired_info {
	u64 id;			/* rises from one to the next */
	s64 base_offset;
	u64 bytes;
	u32 pins;
	enum plog_retired_state state;
};

/*
 * Call @fn for each with an id of at least @from, by id; it must not sleep, and ends by non-zero.
 * For none while the partition is not open.
 */
int plog_partition_retired(struct plog_partition *p, u64 from,
			   int (*fn)(void *arg, const struct plog_retired_info *info), void *arg);

/**
 * plog_partition_retired_take() - become the one who deletes
 * @taker: not 0; one who comes later takes over what an earlier one left
 *
 * Never sleeps.  Return: 0, -ENOENT, -EBUSY (it is held or delayed), -EAGAIN (the
 * partition is still opening), -ENODEV (it is closed, or could not be opened).
 */
int plog_partition_retired_take(struct plog_partition *p, s64 base, u64 taker);

/**
 * plog_partition_retired_done() - its files are gone, or cannot be deleted now
 *
 * Return: 0, -ENOENT (not taken by @taker).
 */
int plog_partition_retired_done(struct plog_partition *p, s64 base, u64 taker, bool gone);

/* Look now whether files can be deleted, as happens by itself: for tests, and for who asks. */
void plog_partition_reap(struct plog_partition *p);

/* ---- read ---- */

/* Which end readers stop at. */
enum plog_end { PLOG_END_HW, PLOG_END_LSO, PLOG_END_LEO };

/**
 * plog_partition_headers() - the headers of batches, decoded
 * @flags: PLOG_HEADERS_PRODUCERS, PLOG_HEADERS_CONTROL: which of them
 * @offset: in: the first is of the batch that holds it, or of the next one;
 *	    out: where to go on; at or behind the end if nothing is left
 * @out, @count: in: room for so many, at most PLOG_HEADERS_MAX; out: how many
 * @view: filled in always except for -EAGAIN and -ENODEV
 *
 * Looks at no more than PLOG_HEADERS_LOOKED of them, so that @count may be 0
 * before the end.  Never sleeps but on the disk.  Return: 0, -ERANGE (below log
 * start or above log end), -EAGAIN, -ENODEV, -EINTR, -ENOMEM, -EIO.
 */
struct plog_batch_header;
int plog_partition_headers(struct plog_partition *p, enum plog_end end, u32 flags, s64 *offset,
			   struct plog_batch_header *out, u32 *count, struct plog_view *view);

/**
 * struct plog_extent - whole batches in one segment, pinned
 *
 * Zeroed is empty.  The holder serializes access to it.
 */
struct plog_extent {
	struct plog_partition *partition;
	struct plog_segment *segment;
	u64 pos;		/* first byte, in the segment's log file */
	u32 length;
	u32 cut_gen;		/* of the segment when it was pinned */
	s64 base_offset;	/* of the first batch */
	s64 next_offset;	/* behind the last batch */
	bool checked;		/* pinned when writing had failed: its bytes were whole */
};

/**
 * plog_partition_locate() - pin the batches from @offset on
 * @whole: the first batch even if larger than @max_bytes
 * @ext: must be empty; stays empty (length 0) if there is nothing to read
 * @view: filled in always except for -EAGAIN and -ENODEV; consistent with @ext
 *
 * Return: 0, -ERANGE (below log start or above log end; at or behind the end
 * that @end allows is 0 and empty), -EAGAIN (opening), -ENODEV (closed or
 * failed), -EIO, -EINTR, -ENOMEM.
 *
 * Once writing has failed, batches above the recovery point are given only if
 * they are whole, CRC included; -EIO at the first that is not.
 */
int plog_partition_locate(struct plog_partition *p, s64 offset, u32 max_bytes,
			  enum plog_end end, bool whole, struct plog_extent *ext,
			  struct plog_view *view);
void plog_extent_put(struct plog_extent *ext);

/**
 * plog_extent_stale() - have bytes of it been truncated since it was pinned?
 *
 * Check after the bytes were taken.  Acquire semantics.
 */
bool plog_extent_stale(const struct plog_extent *ext);

/**
 * plog_extent_doubtful() - has writing to the disk failed since it was pinned?
 *
 * Then bytes that were not synced may have become others.  Who has no checksum
 * to look at pins anew: plog_partition_locate() looks.
 */
bool plog_extent_doubtful(const struct plog_extent *ext);

/**
 * plog_extent_file() - the log file behind it, for splice; valid while pinned
 */
struct plog_file *plog_extent_file(const struct plog_extent *ext);

/**
 * plog_extent_read() - copy bytes from @skip on, at most the extent's rest
 *
 * Return: bytes, 0 at the end, -ESTALE if they were truncated away, -EFAULT,
 * -EIO.
 */
ssize_t plog_extent_read(struct plog_extent *ext, u32 skip, struct iov_iter *to);

/**
 * struct plog_time_hit - what plog_partition_lookup() found
 * @offset: -1 if nothing; if @inside, of a record in the batch that is not
 *	    below what was asked for: the record is this one or a later one
 * @inside: the batch is compressed, the caller must look into it; @timestamp is
 *	    then its largest.  Where the batch begins below what counts, that may
 *	    be of a record that does not count: look on, from behind the batch
 * @behind: nothing is found because the latest record lies behind the end
 */
struct plog_time_hit {
	s64 offset;
	s64 timestamp;
	s32 leader_epoch;
	bool inside;
	bool behind;
};

/**
 * plog_partition_lookup_from() - first record with a timestamp of at least @timestamp
 * @from: least offset; below the log start: the log start
 * @max: instead the record with the largest timestamp, the first of those; it is
 *	 looked for in the whole log, and not found if it lies behind @end
 *
 * Return: 0, also if nothing is found; -EAGAIN (opening), -ENODEV, -EIO, -EINTR,
 * -ENOMEM.
 */
int plog_partition_lookup_from(struct plog_partition *p, s64 from, s64 timestamp, bool max,
			       enum plog_end end, struct plog_time_hit *hit);

static inline int plog_partition_lookup(struct plog_partition *p, s64 timestamp, bool max,
					enum plog_end end, struct plog_time_hit *hit)
{
	return plog_partition_lookup_from(p, 0, timestamp, max, end, hit);
}

/**
 * struct plog_reader - record mode: one record value after the other
 *
 * Set up by plog_reader_init(); the holder serializes access to it.
 */
struct plog_reader {
	struct plog_partition *partition;
	enum plog_end end;
	s64 offset;		/* of the next record wanted; -1: the log start */
	struct plog_extent ext;	/* where the last one was found */
	struct plog_source src;	/* the bytes of @ext; its window is ours */
	u32 batch_pos;		/* of the batch that is read, in @ext */
	u32 batch_size;		/* 0: its header was not looked at */
	s64 batch_base;
	u32 record_pos;		/* of the next record, in @ext */
};
void plog_reader_init(struct plog_reader *r, struct plog_partition *p, enum plog_end end);
void plog_reader_release(struct plog_reader *r);
/* Move to an offset; -1 is the log start. Never fails, the next read tells. */
void plog_reader_seek(struct plog_reader *r, s64 offset);

/**
 * plog_reader_next() - copy the value of the next record
 *
 * Skips control records, empty and null values and what lies below the log
 * start.  Does not wait.
 *
 * Return: bytes of the value, or -EAGAIN (nothing to read yet), -ERANGE (the
 * offset lies behind the log end: seek), -EMSGSIZE
 * (@to is too small, nothing consumed), -EOPNOTSUPP (compressed batch; seek
 * past it or use the library), -ESTALE (truncated meanwhile: seek), -EFAULT,
 * -EIO (damaged framing), -ENODEV.
 */
ssize_t plog_reader_next(struct plog_reader *r, struct iov_iter *to);

/* Woken whenever the visible end moves or the state changes. */
struct wait_queue_head *plog_partition_waitq(struct plog_partition *p);

/* The end for readers of that isolation; acquire semantics, never sleeps. */
s64 plog_partition_end(struct plog_partition *p, enum plog_end end);

/**
 * plog_partition_segments() - call @fn for each segment, oldest first
 *
 * A snapshot; @fn may sleep and ends the walk by returning non-zero.
 */
struct plog_segment_info {
	s64 base_offset;
	u64 bytes;
	u32 index_bytes, timeindex_bytes;
	s64 max_timestamp;
	bool active;
	u32 pins;
	u64 generation;		/* of the table it was seen in, see plog_partition_swap() */
};
int plog_partition_segments(struct plog_partition *p, s64 from,
			    int (*fn)(void *arg, const struct plog_segment_info *info),
			    void *arg);

#endif /* _PLOG_PARTITION_H */
