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

void plog_event_recover(const char *name, u64 scanned, u64 cut)
{
	trace_plog_recover(name, scanned, cut);
}
