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
void plog_event_recover(const char *name, u64 scanned, u64 cut);

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

/* The scan at opening is over: bytes read, and bytes cut off at the end. */
static inline void plog_event_recover(const char *name, u64 scanned, u64 cut)
{
}

#endif

#endif /* _PLOG_EVENT_H */
