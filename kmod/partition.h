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
 * @index_bytes: largest index, bytes, a multiple of 8
 */
struct plog_config {
	u32 flags;
	u32 max_message_bytes;
	u32 segment_bytes;
	u64 segment_ms;
	u32 index_interval_bytes;
	u32 index_bytes;
};

/* Kafka's defaults. */
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
 * @visible: the log end or the high watermark moved; called without locks that
 *	     the engine holds, after the waiters in wait were woken; must not sleep
 * @state: the state changed (PLOG_PARTITION_*), @error is a positive errno or 0;
 *	   may be called under the append mutex; must not call the engine
 */
struct plog_partition_events {
	void (*visible)(struct plog_partition *p);
	void (*state)(struct plog_partition *p, u32 state, int error);
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
	s32 leader_epoch;
	s64 log_start;
	s64 high_watermark;
	s64 last_stable;
	s64 log_end;
	s64 max_timestamp;
	u64 bytes;
};
void plog_partition_view(struct plog_partition *p, struct plog_view *view);

/* Counters; read without locks. */
struct plog_partition_stats {
	u64 appends, records, append_bytes, append_refused;
	u64 reads, read_bytes, wakeups, rolls, fsyncs;
	u64 recovered_bytes, truncated_bytes;
};
void plog_partition_stats(struct plog_partition *p, struct plog_partition_stats *st);
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
 * out: @base_offset, @last_offset, @log_append_time, @log_start
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
	s64 base_offset;
	s64 last_offset;
	s64 log_append_time;
	s64 log_start;
};

/**
 * plog_partition_append() - append batches
 *
 * Return: 0, or
 *  -EBADMSG	CRC, magic or framing wrong
 *  -EMSGSIZE	larger than max.message.bytes
 *  -EINVAL	length or count fields contradict each other, or nothing to append
 *  -EOPNOTSUPP	codec, producer id or control bit without PLOG_APPEND_DAEMON
 *  -ESTALE	older incarnation or leader epoch
 *  -EPERM	a keyless record for a compacted topic, or an internal topic,
 *		without PLOG_APPEND_DAEMON
 *  -EROFS	fenced: no append until the partition is reopened; or replicated
 *		and not led here
 *  -EAGAIN	still opening
 *  -ENODEV	closed or failed
 *  -EINTR	fatal signal
 *  -EOVERFLOW	offsets would pass 2^63 - 1
 *  -EFBIG, -ENOSPC, -EDQUOT, -EIO, -ENOMEM as from the filesystem
 * On any error nothing was appended.  Exception: with PLOG_APPEND_SYNC or
 * plog_partition_sync() an -EIO of the sync itself: appended, not stable, and
 * the partition is fenced.
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
 * a batch cuts the whole batch: @offset tells.
 */
struct plog_fence {
	s32 leader_epoch;
	u64 incarnation;
	const u64 *current_incarnation;
};
/**
 * plog_partition_set_epoch() - lead or follow in another epoch from now on
 *
 * Return: 0, -ESTALE (older than the one now), -EAGAIN, -ENODEV, -EINTR.
 */
int plog_partition_set_epoch(struct plog_partition *p, s32 epoch);
int plog_partition_set_hw(struct plog_partition *p, const struct plog_fence *f, s64 *offset);
int plog_partition_truncate(struct plog_partition *p, const struct plog_fence *f, s64 *offset);
int plog_partition_set_log_start(struct plog_partition *p, const struct plog_fence *f,
				 s64 *offset);

/* ---- read ---- */

/* Which end readers stop at. */
enum plog_end { PLOG_END_HW, PLOG_END_LSO, PLOG_END_LEO };

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
 * @offset: -1 if nothing; the batch's base offset if @inside
 * @inside: the batch is compressed, the caller must look into it; @timestamp is
 *	    then its largest
 */
struct plog_time_hit {
	s64 offset;
	s64 timestamp;
	s32 leader_epoch;
	bool inside;
};

/**
 * plog_partition_lookup() - first record with a timestamp of at least @timestamp
 * @max: instead the record with the largest timestamp
 */
int plog_partition_lookup(struct plog_partition *p, s64 timestamp, bool max,
			  enum plog_end end, struct plog_time_hit *hit);

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
};
int plog_partition_segments(struct plog_partition *p, s64 from,
			    int (*fn)(void *arg, const struct plog_segment_info *info),
			    void *arg);

#endif /* _PLOG_PARTITION_H */
