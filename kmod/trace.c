// SPDX-License-Identifier: GPL-2.0
/* The engine's events as tracepoints. */
#include "event.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

void plog_event_append(const char *name, s64 base, s64 last, u32 bytes, int error)
{
	trace_plog_append(name, base, last, bytes, error);
}

void plog_event_publish(const char *name, s64 log_end, s64 high_watermark)
{
	trace_plog_publish(name, log_end, high_watermark);
}

void plog_event_wake(const char *name, s64 end)
{
	trace_plog_wake(name, end);
}

void plog_event_fence(const char *name, int error)
{
	trace_plog_fence(name, error);
}

void plog_event_roll(const char *name, s64 base_offset)
{
	trace_plog_roll(name, base_offset);
}

void plog_event_rest(const char *name, s64 log_end)
{
	trace_plog_rest(name, log_end);
}

void plog_event_recover(const char *name, u64 scanned, u64 cut)
{
	trace_plog_recover(name, scanned, cut);
}

void plog_event_retire(const char *name, u32 segments, u64 bytes)
{
	trace_plog_retire(name, segments, bytes);
}

void plog_event_sync(const char *name, s64 from, s64 to, int error)
{
	trace_plog_sync(name, from, to, error);
}

void plog_event_truncate(const char *name, s64 end, u64 bytes, int error)
{
	trace_plog_truncate(name, end, bytes, error);
}

void plog_event_epoch(const char *name, s32 epoch, s64 start)
{
	trace_plog_epoch(name, epoch, start);
}

void plog_event_swap(const char *name, s64 first, u32 segments, u64 bytes)
{
	trace_plog_swap(name, first, segments, bytes);
}
