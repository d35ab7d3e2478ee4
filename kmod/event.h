/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the engine tells whoever watches: tracepoints of the events system
 * "plog" in the kernel (trace.h), nothing in user space.  @name is the
 * partition's, "topic-index".
 */
#ifndef _PLOG_EVENT_H
#define _PLOG_EVENT_H

#include <linux/types.h>

#ifdef __KERNEL__

void plog_event_append(const char *name, s64 base, s64 last, u32 bytes, int error);
void plog_event_publish(const char *name, s64 log_end, s64 high_watermark);
void plog_event_wake(const char *name, s64 end);
void plog_event_fence(const char *name, int error);
void plog_event_roll(const char *name, s64 base_offset);
void plog_event_rest(const char *name, s64 log_end);
void plog_event_recover(const char *name, u64 scanned, u64 cut);
void plog_event_retire(const char *name, u32 segments, u64 bytes);
void plog_event_sync(const char *name, s64 from, s64 to, int error);
void plog_event_truncate(const char *name, s64 end, u64 bytes, int error);
void plog_event_epoch(const char *name, s32 epoch, s64 start);
void plog_event_swap(const char *name, s64 first, u32 segments, u64 bytes);

#else

/* An append ended: offsets of its records, its size, 0 or a negative errno. */
static inline void plog_event_append(const char *name, s64 base, s64 last, u32 bytes, int error)
{
}

/* Readers may now see up to these. */
static inline void plog_event_publish(const char *name, s64 log_end, s64 high_watermark)
{
}

/* Somebody was waiting and has been woken. */
static inline void plog_event_wake(const char *name, s64 end)
{
}

/* No append is taken any more; the negative errno that led to it. */
static inline void plog_event_fence(const char *name, int error)
{
}

/* A new segment takes the appends. */
static inline void plog_event_roll(const char *name, s64 base_offset)
{
}

/* The last segment's files are held open no more; the next append opens them. */
static inline void plog_event_rest(const char *name, s64 log_end)
{
}

/* The scan at opening is over: bytes read, and bytes cut off at the end. */
static inline void plog_event_recover(const char *name, u64 scanned, u64 cut)
{
}

/* Segments have left the table at the start of the log. */
static inline void plog_event_retire(const char *name, u32 segments, u64 bytes)
{
}

/* A sync ended: offsets that it was for; 0 or a negative errno. */
static inline void plog_event_sync(const char *name, s64 from, s64 to, int error)
{
}

/* A truncation ended: the log end now, bytes cut off, 0 or a negative errno. */
static inline void plog_event_truncate(const char *name, s64 end, u64 bytes, int error)
{
}

/* The leader epoch is another now; where it starts, -1: nowhere yet. */
static inline void plog_event_epoch(const char *name, s32 epoch, s64 start)
{
}

/* A compacted segment has replaced so many from @first on; its bytes. */
static inline void plog_event_swap(const char *name, s64 first, u32 segments, u64 bytes)
{
}

#endif

#endif /* _PLOG_EVENT_H */
