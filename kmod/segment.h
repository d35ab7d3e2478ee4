/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A segment: base offset, three files that are opened when somebody needs
 * them, and what is known of their content.
 */
#ifndef _PLOG_SEGMENT_H
#define _PLOG_SEGMENT_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/types.h>

#include "index.h"
#include "record.h"

struct plog_dir;
struct plog_file;

/* Longest name: 20 digits, ".timeindex.swap", zero. */
#define PLOG_SEGMENT_NAME	40

/* plog_segment.end of a segment whose log was not opened yet */
#define PLOG_END_UNKNOWN	U64_MAX

/* What the segments of a partition count for it. */
struct plog_segment_counts {
	atomic64_t rebuilds;	/* of indexes */
	atomic_t files;		/* open */
	atomic_t pins;
};

/**
 * struct plog_segment - one segment of a partition's table
 * @base: offset in its name
 * @end: bytes of valid batches; of the active segment only the writer looks at
 *	 it, readers take the end that was published with the log end
 * @cut_gen: raised before bytes are truncated; @cut_low: lowest place of a cut
 * @counts: of its partition, which is there as long as a file of it is open;
 *	    may be NULL
 * @pins: extents that hold it
 * @users: the files are open while this is not 0
 * @flock: for opening, closing and loading; below the partition's mutex
 * @retired: left the table: its files are closed with the last user
 * @active, @held: under the partition's mutex: takes appends; the table itself
 *	 is a user, until the segment is synced and no more active
 * @inode, @inode_gen: of the log's file, once it was open: a name may be given to
 *	another file while nobody looks, and that is not the log
 * @uncut: under the partition's mutex, while active: a failed append's bytes lie behind
 *	@end, whose writer was killed while the filesystem was frozen
 * @swap: its files are named "....swap", and open; nothing is made that is missing
 * @last_producer: last offset of the last batch with a producer id that a scan
 *	has met, -1
 * @created: time in milliseconds, for segment.ms where records bear no time
 * @first_timestamp: of the first batch, -1: none yet
 * @max_timestamp: valid if @times_known; and the last offset of its batch
 * @index_from: where the last indexed batch begins
 * @index_bytes: largest index; 0: not known yet
 * @jitter: milliseconds off segment.ms
 * @preallocated: the log's file may have room behind its end
 * @future_said: that its records are newer than the clock, in the log
 * @walked, @walked_next: where the valid batches end that the last walk to the end
 *			  of the log file found, and the offset behind them
 *
 * The fields from @first_timestamp on are the writer's, under the partition's
 * mutex, while the segment is active, and under @flock afterwards.
 */
struct plog_segment {
	s64 base;
	refcount_t refs;
	struct plog_segment_counts *counts;
	atomic_t pins;
	atomic_t users;
	u64 end;
	u32 cut_gen;
	u64 cut_low;
	struct mutex flock;
	struct list_head lru;
	bool retired;
	bool index_bad;
	bool active;
	bool held;
	bool uncut;
	bool swap;
	struct plog_file *log;
	u64 inode;
	u32 inode_gen;
	struct plog_index index;
	struct plog_timeindex timeindex;
	s64 created;
	s64 first_timestamp;
	bool times_known;
	s64 max_timestamp;
	s64 max_timestamp_offset;
	s32 max_epoch;		/* leader epoch of the batches scanned */
	s64 last_producer;
	u64 index_from;
	u64 walked;
	s64 walked_next;
	u32 index_interval;
	u32 index_bytes;
	u64 jitter;
	bool preallocated;
	bool future_said;
	struct rcu_head rcu;
};

/* Write the name of a segment's file: kind is "log", "index" or "timeindex". */
void plog_segment_name(char name[PLOG_SEGMENT_NAME], s64 base, const char *kind);

/* Is @name that of a log that was to be swapped in? */
bool plog_segment_is_swap(const char *name, unsigned int len);

/* The base offset if @name is that of a segment's log, else -1. */
s64 plog_segment_parse(const char *name, unsigned int len);

/**
 * plog_segment_alloc() - an object with one reference and no file
 *
 * Return: NULL if there is no memory.
 */
struct plog_segment *plog_segment_alloc(s64 base);

/* The last reference closes the files; may sleep. */
void plog_segment_put(struct plog_segment *seg);

/**
 * plog_segment_create() - open or make the three files, empty
 * @now: milliseconds since 1970
 * @preallocate: bytes to have room for on the disk, 0: none.  Where that is
 *	refused the segment does without
 *
 * Return: 0 with one user, or an error of the files.  An index that cannot be
 * made is no error: the segment does without.
 */
int plog_segment_create(struct plog_segment *seg, struct plog_dir *dir, s64 now,
			u64 preallocate);

/* The log alone: the indexes are made with the first append. Not yet active. */
int plog_segment_create_log(struct plog_segment *seg, struct plog_dir *dir, s64 now,
			    u64 preallocate);

/*
 * A segment without a batch: empty the files that lie under its indexes' names, and make none.
 * Kafka's are made long before they are used, of zeros, and nobody looks at them here
 * before the first append.
 */
void plog_segment_empty_indexes(struct plog_segment *seg, struct plog_dir *dir);

/**
 * plog_segment_activate() - the files of the active segment: all three, and the right
 * to write them
 *
 * Return: 0 with one more user, -EUCLEAN (the log's file is another one than it was, or
 * shorter than its batches), -EINTR, -ENOMEM, or an error of the files.  Nothing has
 * changed then.
 */
int plog_segment_activate(struct plog_segment *seg, struct plog_dir *dir);

/**
 * plog_segment_use() - have the files open
 *
 * The first use looks at the indexes and builds anew what is damaged.
 * Return: 0 with one more user, -EUCLEAN (the log's file is another one than it was),
 * or an error of the files.
 */
int plog_segment_use(struct plog_segment *seg, struct plog_dir *dir);
void plog_segment_unuse(struct plog_segment *seg);

/* Open the files without a look at the indexes: for a scan. One more user. */
int plog_segment_open_raw(struct plog_segment *seg, struct plog_dir *dir);

/* The segment has left the table: keep its files no longer than needed. */
void plog_segment_retire(struct plog_segment *seg);

/* Tell readers before a byte from @pos on goes; they look after they have read. */
static inline void plog_segment_void(struct plog_segment *seg, u64 pos)
{
	if (pos < seg->cut_low)
		WRITE_ONCE(seg->cut_low, pos);
	smp_store_release(&seg->cut_gen, seg->cut_gen + 1);
}

/**
 * plog_segment_scan() - check batch after batch, and write both indexes anew
 * @file_end: bytes to look at
 * @next: in: least offset the first batch may have; out: the one behind the last
 * @crc: check CRCs too
 * @valid: out: where the first bytes that are no valid batch begin
 *
 * Learns the timestamps too.  Files must be open; the caller is the only writer.
 * Return: 0; -EINTR; -ENOMEM; an error of the log's file (an index' is no error).
 */
int plog_segment_scan(struct plog_segment *seg, u64 file_end, s64 *next, bool crc, u64 *valid);

/**
 * plog_segment_note() - index the batch at @pos that was just written
 * @size: its bytes
 */
void plog_segment_note(struct plog_segment *seg, s64 last_offset, s64 max_timestamp, u64 pos);

/* No more appends: last entry of the time index, sizes as they are. */
void plog_segment_seal(struct plog_segment *seg);

/* Give back room on the disk that was not used. In use by the caller; not while it is active. */
void plog_segment_trim(struct plog_segment *seg);

/**
 * plog_segment_times() - make first_timestamp and max_timestamp known, and open
 * the time index
 *
 * In use by the caller, who holds flock; if active, the partition's mutex too.
 * Return: 0, -ENOMEM, or an error of the files.
 */
int plog_segment_times(struct plog_segment *seg, struct plog_dir *dir);

/**
 * plog_segment_learn() - the same by who does not hold flock; those of the active one are
 * its writer's, and known
 *
 * In use by the caller.  Another may hold flock while it builds an index anew, on a
 * frozen filesystem until that is thawed.  Return: 0, -EINTR (a fatal signal), -ENOMEM,
 * or an error of the files.
 */
int plog_segment_learn(struct plog_segment *seg, struct plog_dir *dir);

/**
 * plog_segment_cut() - cut the files where the batch at @pos with @offset begins
 *
 * @seg->end is @pos already.  In use by the caller, under the partition's mutex.
 */
int plog_segment_cut(struct plog_segment *seg, struct plog_dir *dir, u64 pos, s64 offset);

/**
 * struct plog_cursor - for walking the headers of a segment
 */
struct plog_cursor {
	struct plog_source src;
	u64 pos;		/* of the batch in @batch */
	u64 end;
	u32 cut_gen;
	struct plog_batch batch;
};

/**
 * plog_cursor_init()
 * @window: PLOG_RECORD_WINDOW bytes
 * @end: of what may be looked at
 * @cut_gen: of the segment when @end was read
 */
void plog_cursor_init(struct plog_cursor *cur, struct plog_segment *seg, u64 end, u32 cut_gen,
		      u8 *window);

/**
 * plog_cursor_at() - read the header at @pos
 *
 * Return: 1, 0 at the end, -EBADMSG if there is no batch, or an error of the file.
 */
int plog_cursor_at(struct plog_cursor *cur, u64 pos);

/* Go on to the batch behind the one now. */
static inline int plog_cursor_next(struct plog_cursor *cur)
{
	return plog_cursor_at(cur, cur->pos + cur->batch.size);
}

/**
 * plog_segment_check() - is the batch that the cursor stands on whole, and does it follow?
 * @next: least base offset it may have
 * @crc: look at its bytes too
 *
 * Return: 0, -EBADMSG if not, or an error of the file.
 */
int plog_segment_check(struct plog_segment *seg, struct plog_cursor *cur, s64 next, bool crc);

/* Build a damaged index anew, unless the segment is active: its writer does. */
int plog_segment_repair(struct plog_segment *seg, struct plog_dir *dir);

/**
 * plog_segment_seek() - the first batch whose last offset is @offset or more
 *
 * Uses the index where that leads to a batch it names, else walks from the
 * start.  Return: 1 with the cursor on it, 0 if there is none below the
 * cursor's end, -EBADMSG if the log is damaged, -ESTALE if it was truncated
 * meanwhile, or an error of the file.
 */
int plog_segment_seek(struct plog_segment *seg, struct plog_cursor *cur, s64 offset);

/* How many idle segments keep their files open, all partitions together. */
extern unsigned int plog_segment_idle_max;

#endif /* _PLOG_SEGMENT_H */
