/* SPDX-License-Identifier: MIT */
#ifndef PLOG_LOG_H
#define PLOG_LOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../tools/libplog/properties.h"

/*
 * The log of one partition, behind which is either the module (log/module.c) or the engine
 * linked into the daemon (log/process.c).
 *
 * A struct log is counted; whoever holds a reference may call what is below from any thread
 * unless it says otherwise. After the partition was deleted every call fails with -ENODEV.
 */
struct loop;
struct log;
struct log_cursor;
struct log_engine;
struct log_watch;

/* What the log is told of its topic's configuration. */
struct log_config {
	uint32_t flags;			/* PLOG_STATE_COMPACT, _INTERNAL, _LOG_APPEND_TIME */
	uint32_t max_message_bytes;
	uint32_t segment_bytes;
	uint64_t segment_ms;
	uint32_t index_interval_bytes;
	uint32_t index_bytes;
	int64_t retention_ms, retention_bytes;	/* -1: no limit */
	uint64_t file_delete_delay_ms;
	uint64_t segment_jitter_ms;
	uint64_t flush_messages, flush_ms;	/* INT64_MAX: never */
	bool preallocate;
	uint32_t uid, gid, mode;	/* who may use the device node */
	bool node;			/* make one */
	uint8_t topic_id[16];
};

/* One consistent look; offsets as in struct plog_state of the uapi header. */
struct log_state {
	uint32_t state;			/* PLOG_PARTITION_* */
	uint32_t flags;			/* PLOG_STATE_* */
	int32_t leader_epoch;		/* never below 0: a partition of a lone broker is in 0 */
	int64_t log_start;
	int64_t high_watermark;
	int64_t last_stable;
	int64_t log_end;
	int64_t max_timestamp;		/* -1: none */
	uint64_t bytes;
};

enum log_end {
	LOG_END_COMMITTED,		/* high watermark */
	LOG_END_STABLE,			/* last stable offset: read_committed */
	LOG_ENDS
};

struct log_append {
	bool says_unstable;		/* in: @first_unstable means something */
	int64_t first_unstable;		/* in: what is open from here on, see struct plog_append */
	int64_t base_offset;		/* out */
	int64_t last_offset;		/* out */
	int64_t log_append_time;	/* out; -1 where the topic has CreateTime */
	int64_t log_start;		/* out */
};

struct log_extent {
	uint32_t length;		/* bytes; 0: nothing to read */
	int64_t base_offset;		/* of the first batch; -1 if @length is 0 */
	int64_t next_offset;		/* behind the last batch */
	struct log_state state;		/* seen in the same moment; @bytes and more are not set */
};

/* Headers of batches, see PLOG_IOC_HEADERS; to the log end. */
struct plog_batch_header;
struct log_headers {
	int64_t offset;			/* in: from here on; out: where to go on */
	uint32_t flags;			/* in: PLOG_HEADERS_PRODUCERS, _CONTROL */
	uint32_t count;			/* in: room, to PLOG_HEADERS_MAX; out: how many */
	struct plog_batch_header *entries;
	int64_t log_start, log_end;	/* out */
};

/* What the log knows of producers. */
struct log_producers {
	int64_t last_offset;		/* of the last batch with a producer id, -1: none */
	int64_t first_unstable;		/* -1: no transaction is open */
};

/* A compacted segment for a run of them, see struct plog_swap. */
struct log_swap {
	uint64_t generation;		/* in: of the table that was seen; out: now */
	int64_t first, last;		/* in: base offsets of the run */
	int64_t pending, pending_last;	/* out: of a swap that is not done, -1: none */
};

struct log_hit {
	int64_t offset;			/* -1: nothing found */
	int64_t timestamp;
	int32_t leader_epoch;
	bool inside;			/* in the compressed batch that holds @offset, there or behind */
	bool behind;			/* not found: the latest record lies behind the end */
};

/* Base offsets of segments. The list is to be freed, whatever came of it. */
struct log_bases {
	int64_t *list;
	size_t count, room;
};

/* One more. 0, -ENOMEM. */
int log_bases_add(struct log_bases *bases, int64_t base);

struct log_ops {
	const char *name;

	/* Free what the engine has. All logs are gone. */
	void (*stop)(struct log_engine *engine);

	/* Make the engine's side of a log and begin to open it; @dirfd is the folder. */
	int (*begin)(struct log *log, int dirfd, const struct log_config *config,
		     struct plog_error *err);
	/* Wait until it is open. */
	int (*wait)(struct log *log, struct plog_error *err);
	int (*configure)(struct log *log, const struct log_config *config,
			 struct plog_error *err);
	/* Out of service; @clean: synced, to be opened again without a scan. */
	int (*close)(struct log *log, bool clean, struct plog_error *err);
	void (*free)(struct log *log);

	int (*state)(struct log *log, struct log_state *state);
	/* -ESTALE: of another epoch, or of another daemon's time */
	int (*append)(struct log *log, uint8_t *batch, uint32_t size, int32_t leader_epoch,
		      struct log_append *a);
	int (*sync)(struct log *log);
	int (*lookup)(struct log *log, int64_t from, int64_t timestamp, bool max,
		      enum log_end end, struct log_hit *hit);
	/* plog_epoch of the uapi header: @at: the epoch of @offset; else where @epoch ended */
	int (*epoch)(struct log *log, bool at, int32_t *epoch, int64_t *offset);
	int (*truncate)(struct log *log, int32_t leader_epoch, int64_t *offset);
	int (*set_log_start)(struct log *log, int32_t leader_epoch, int64_t *offset);
	/* -1: no transaction is open; out: what is published */
	int (*set_unstable)(struct log *log, int32_t leader_epoch, int64_t *offset);
	/* -ERANGE: below the log start or above the log end */
	int (*headers)(struct log *log, struct log_headers *h);
	int (*producers)(struct log *log, struct log_producers *p);
	/* The steps of a compaction's files: datadir_swap_commit() and others */
	int (*swap)(struct log *log, int32_t leader_epoch, struct log_swap *swap);
	int (*swap_done)(struct log *log, int32_t leader_epoch);
	int (*swap_ask)(struct log *log, struct log_swap *swap);

	/*
	 * Let go what retention does not keep. NULL: the engine has a clock of its own.
	 * Number of segments, or a negative errno.
	 */
	int (*retain)(struct log *log);
	/* Retired segments whose files may be deleted: adds to @bases. */
	int (*retired)(struct log *log, struct log_bases *bases);
	/* Become the one who deletes it; then say whether its files are gone. */
	int (*retired_take)(struct log *log, int64_t base);
	int (*retired_done)(struct log *log, int64_t base, bool gone);

	struct log_cursor *(*cursor_new)(struct log *log, int *error);
	void (*cursor_free)(struct log_cursor *cursor);
	void (*cursor_unpin)(struct log_cursor *cursor);
	int (*locate)(struct log_cursor *cursor, int64_t offset, uint32_t max_bytes, bool whole,
		      enum log_end end, struct log_extent *extent);
	ssize_t (*send)(struct log_cursor *cursor, int sock, uint64_t skip, size_t n);
	ssize_t (*read)(struct log_cursor *cursor, uint64_t skip, void *buf, size_t n);

	/* Wake-ups, see struct log_watch. On the watch's loop. */
	int (*watch_open)(struct log_watch *watch);
	int (*watch_arm)(struct log_watch *watch, int64_t end);
	void (*watch_close)(struct log_watch *watch);
};

/* Where logs come from: made by module_start() or process_start(). */
struct log_engine {
	const struct log_ops *ops;
	struct broker *broker;
	atomic_uint idle_cursors, used_cursors;
};

struct log {
	struct log_engine *engine;
	atomic_uint refs;
	uint32_t index;
	char topic[250];
	char name[264];			/* "topic-index", for lines */
	atomic_bool deleted;		/* out of service for good */
	atomic_bool broken_said;	/* one line about an I/O error is enough */
	atomic_bool retired;		/* it may have files to delete, see broker/janitor.h */
	void *impl;			/* the engine's */
	atomic_int epoch;		/* leader epoch as seen last; -1: not yet */

	pthread_mutex_t lock;		/* of what follows */
	struct log_cursor *cursors;	/* not in use */
	unsigned int ncursors;
	struct log_watch **watches;	/* by loop and end, log_watch_slot(); its loop's own */

	/* high watermarks seen some and some more seconds ago, see log_is_recent() */
	_Atomic int64_t recent_new, recent_old;
	_Atomic uint64_t recent_at;	/* milliseconds, when recent_new was taken */
};

struct log_cursor {
	struct log *log;		/* holds a reference while in use */
	struct log_cursor *next;
	struct log_extent extent;	/* of the last log_locate() */
};

/* ---- made, changed and closed by the changes thread or at start and end; may sleep ---- */

/*
 * A log with one reference, being opened in the folder @dirfd (not kept). log_wait() tells
 * when it is online. 0, or a negative errno and a sentence.
 */
int log_open(struct log_engine *engine, const char *topic, uint32_t index, int dirfd,
	     const struct log_config *config, struct log **out, struct plog_error *err);
int log_wait(struct log *log, struct plog_error *err);
int log_configure(struct log *log, const struct log_config *config, struct plog_error *err);
int log_shut(struct log *log, bool clean, struct plog_error *err);

void log_get(struct log *log);
void log_put(struct log *log);	/* NULL is fine */

/* ---- any thread ---- */

/* Never sleeps. 0, -ENODEV. */
int log_state(struct log *log, struct log_state *state);

/* Index of the appender, of @n, that appends to this log. */
unsigned int log_owner(const struct log *log, unsigned int n);

/*
 * Append one batch whose records were checked, in the epoch that is known. The
 * header may be changed in place. On the owner's thread. 0 or a Kafka error; on an
 * error nothing was appended. A broken disk is told in one line.
 */
int16_t log_append(struct log *log, uint8_t *batch, uint32_t size, struct log_append *a);

/*
 * The first record at or after @timestamp, or with @max the first of those with the largest
 * one of the whole log (not found if that lies behind @end). Compressed batches are opened,
 * the disk may be read. 0, also if there is none (-1, -1, -1); -ENODEV, -EAGAIN, -EIO,
 * -EBADMSG (a damaged batch), -ENOMEM, -ECANCELED (another thread has set *@stop).
 */
int log_find_time(struct log *log, int64_t timestamp, bool max, enum log_end end,
		  const atomic_bool *stop, struct log_hit *hit);

/* The same from offset @from on, as the log knows it: hit->inside leaves the rest to do. */
int log_lookup(struct log *log, int64_t from, int64_t timestamp, bool max, enum log_end end,
	       struct log_hit *hit);

/*
 * Move the log start, on stable storage when this returns. @offset: in: wanted, out: where it
 * is now, which may be later. 0, -ERANGE above the high watermark, -EROFS fenced, ... May sleep.
 */
int log_set_log_start(struct log *log, int64_t *offset);

/*
 * What is open from now on, without an append, in the epoch that is known: when the daemon has
 * built its state. 0, errno.
 */
int log_set_unstable(struct log *log, int64_t *offset);

/* Walk the headers of batches: any thread that may read the disk. 0, -ERANGE, errno. */
int log_headers(struct log *log, struct log_headers *h);
int log_producers(struct log *log, struct log_producers *p);

/*
 * Where did a leader epoch end (KIP-101)? *@epoch: the largest known that is not above it, *@end:
 * where the next one begins; -1 and -1 if there is nothing to tell. Never sleeps. 0, errno.
 */
int log_epoch_end(struct log *log, int32_t *epoch, int64_t *end);

/* The leader epoch of the record at @offset, -1 if it is not known. Never sleeps. */
int32_t log_epoch_at(struct log *log, int64_t offset);

/*
 * Were the records at @offset written so lately (some ten seconds at least) that they are in
 * the page cache, and reading them does not wait for the disk?
 */
bool log_is_recent(struct log *log, int64_t offset, uint64_t now_ms);

/* Note where the end is, for log_is_recent(). */
void log_note_end(struct log *log, int64_t end, uint64_t now_ms);

/*
 * A cursor on the log: a descriptor of its own, that pins one extent. From a pool. NULL and
 * a negative errno in *@error. Used by one thread at a time.
 */
struct log_cursor *log_cursor_get(struct log *log, int *error);
void log_cursor_put(struct log_cursor *cursor);

/*
 * Are there cursors left for readers, of those that the limit of open files allows? @more: for
 * one who has some already; the last half is for who has none. A hint, as others take them too.
 */
bool log_cursors_left(const struct log *log, bool more);

/*
 * Pin the batches from @offset on, at most @max_bytes of them; @whole: the first one even if
 * it is larger. Drops the extent before. 0 and @cursor->extent, -ERANGE (below the log start
 * or above the log end; extent.state is valid), -ENODEV, -EAGAIN (opening), -EIO, ...
 */
int log_locate(struct log_cursor *cursor, int64_t offset, uint32_t max_bytes, bool whole,
	       enum log_end end);

/*
 * sendfile up to @n bytes of the extent, from byte @skip of it on, to the socket. Pieces must
 * follow each other without a gap. Bytes sent, 0 at the end, -EAGAIN (the socket is full),
 * -ESTALE (truncated meanwhile: the peer must not get more), other errors of either side.
 */
ssize_t log_cursor_send(struct log_cursor *cursor, int sock, uint64_t skip, size_t n);

/* The same into memory. */
ssize_t log_cursor_read(struct log_cursor *cursor, uint64_t skip, void *buf, size_t n);

/* As the errors of calls that read. */
int16_t log_error(int error);

/* ---- waiting: a client loop's thread ---- */

struct log_waiter {
	void (*wake)(struct log_waiter *waiter);
	struct log_watch *watch;	/* NULL: not waiting */
	struct log_waiter *next, **prev;
};

/*
 * Call @waiter->wake once, on @loop, when the end of @kind of @log passes @end or the
 * partition goes away; that may be before this returns no sooner than the next turn of the
 * loop. 0 or a negative errno. At that time the waiter is not waiting any more.
 */
int log_wait_end(struct log *log, struct loop *loop, enum log_end kind, int64_t end,
		 struct log_waiter *waiter);
void log_wait_cancel(struct log_waiter *waiter);

/*
 * All waiters of one loop for one end of a log share a watch; it is kept for a while after the
 * last has gone, since the next Fetch of a consumer is never far.
 */
struct log_watch {
	struct log *log;		/* a reference */
	struct loop *loop;
	enum log_end kind;		/* what is waited for */
	struct log_watch *next;		/* of the loop */
	struct log_waiter *waiters;
	int64_t armed;			/* the end that is waited past; -1: not armed */
	uint64_t idle_since;		/* milliseconds */
	void *impl;			/* the engine's */
};

/* Where a watch is among the log->watches, of LOG_ENDS for each loop. */
unsigned int log_watch_slot(const struct loop *loop, enum log_end kind);

/* The engine calls this on the loop's thread: wake all. */
void log_watch_fire(struct log_watch *watch);

/* Close what has been idle for ten seconds, or everything. */
void log_watch_sweep(struct loop *loop, bool all);

#endif
