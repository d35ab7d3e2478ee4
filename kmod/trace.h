/* SPDX-License-Identifier: GPL-2.0 */
/* The tracepoints, /sys/kernel/tracing/events/plog. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM plog

#if !defined(_PLOG_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _PLOG_TRACE_H

#include <linux/string.h>
#include <linux/tracepoint.h>

/*
 * The name is a dynamic array and not a __string, whose macros changed their
 * arguments in 6.10.
 */
#define plog_trace_name(n) __dynamic_array(char, name, strlen(n) + 1)
#define plog_trace_assign(n) strcpy(__get_dynamic_array(name), n)

TRACE_EVENT(plog_append,
	TP_PROTO(const char *partition, s64 base, s64 last, u32 bytes, int error),
	TP_ARGS(partition, base, last, bytes, error),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(s64, base)
		__field(s64, last)
		__field(u32, bytes)
		__field(int, error)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->base = base;
		__entry->last = last;
		__entry->bytes = bytes;
		__entry->error = error;
	),
	TP_printk("%s base=%lld last=%lld bytes=%u error=%d", __get_str(name),
		  __entry->base, __entry->last, __entry->bytes, __entry->error)
);

TRACE_EVENT(plog_publish,
	TP_PROTO(const char *partition, s64 log_end, s64 high_watermark),
	TP_ARGS(partition, log_end, high_watermark),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(s64, log_end)
		__field(s64, high_watermark)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->log_end = log_end;
		__entry->high_watermark = high_watermark;
	),
	TP_printk("%s log_end=%lld high_watermark=%lld", __get_str(name),
		  __entry->log_end, __entry->high_watermark)
);

TRACE_EVENT(plog_splice,
	TP_PROTO(const char *partition, s64 base, u64 position, s64 bytes),
	TP_ARGS(partition, base, position, bytes),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(s64, base)
		__field(u64, position)
		__field(s64, bytes)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->base = base;
		__entry->position = position;
		__entry->bytes = bytes;
	),
	TP_printk("%s base=%lld position=%llu bytes=%lld", __get_str(name),
		  __entry->base, __entry->position, __entry->bytes)
);

TRACE_EVENT(plog_wake,
	TP_PROTO(const char *partition, s64 end),
	TP_ARGS(partition, end),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(s64, end)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->end = end;
	),
	TP_printk("%s end=%lld", __get_str(name), __entry->end)
);

TRACE_EVENT(plog_fence,
	TP_PROTO(const char *partition, int error),
	TP_ARGS(partition, error),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(int, error)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->error = error;
	),
	TP_printk("%s error=%d", __get_str(name), __entry->error)
);

TRACE_EVENT(plog_roll,
	TP_PROTO(const char *partition, s64 base),
	TP_ARGS(partition, base),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(s64, base)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->base = base;
	),
	TP_printk("%s base=%lld", __get_str(name), __entry->base)
);

TRACE_EVENT(plog_rest,
	TP_PROTO(const char *partition, s64 end),
	TP_ARGS(partition, end),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(s64, end)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->end = end;
	),
	TP_printk("%s end=%lld", __get_str(name), __entry->end)
);

TRACE_EVENT(plog_recover,
	TP_PROTO(const char *partition, u64 scanned, u64 cut),
	TP_ARGS(partition, scanned, cut),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(u64, scanned)
		__field(u64, cut)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->scanned = scanned;
		__entry->cut = cut;
	),
	TP_printk("%s scanned=%llu cut=%llu", __get_str(name),
		  __entry->scanned, __entry->cut)
);

TRACE_EVENT(plog_retire,
	TP_PROTO(const char *partition, u32 segments, u64 bytes),
	TP_ARGS(partition, segments, bytes),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(u32, segments)
		__field(u64, bytes)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->segments = segments;
		__entry->bytes = bytes;
	),
	TP_printk("%s segments=%u bytes=%llu", __get_str(name),
		  __entry->segments, __entry->bytes)
);

TRACE_EVENT(plog_sync,
	TP_PROTO(const char *partition, s64 from, s64 to, int error),
	TP_ARGS(partition, from, to, error),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(s64, from)
		__field(s64, to)
		__field(int, error)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->from = from;
		__entry->to = to;
		__entry->error = error;
	),
	TP_printk("%s from=%lld to=%lld error=%d", __get_str(name), __entry->from,
		  __entry->to, __entry->error)
);

TRACE_EVENT(plog_truncate,
	TP_PROTO(const char *partition, s64 end, u64 bytes, int error),
	TP_ARGS(partition, end, bytes, error),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(s64, end)
		__field(u64, bytes)
		__field(int, error)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->end = end;
		__entry->bytes = bytes;
		__entry->error = error;
	),
	TP_printk("%s end=%lld bytes=%llu error=%d", __get_str(name), __entry->end,
		  __entry->bytes, __entry->error)
);

TRACE_EVENT(plog_epoch,
	TP_PROTO(const char *partition, s32 epoch, s64 start),
	TP_ARGS(partition, epoch, start),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(s32, epoch)
		__field(s64, start)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->epoch = epoch;
		__entry->start = start;
	),
	TP_printk("%s epoch=%d start=%lld", __get_str(name), __entry->epoch,
		  __entry->start)
);

TRACE_EVENT(plog_swap,
	TP_PROTO(const char *partition, s64 first, u32 segments, u64 bytes),
	TP_ARGS(partition, first, segments, bytes),
	TP_STRUCT__entry(
		plog_trace_name(partition)
		__field(s64, first)
		__field(u32, segments)
		__field(u64, bytes)
	),
	TP_fast_assign(
		plog_trace_assign(partition);
		__entry->first = first;
		__entry->segments = segments;
		__entry->bytes = bytes;
	),
	TP_printk("%s first=%lld segments=%u bytes=%llu", __get_str(name), __entry->first,
		  __entry->segments, __entry->bytes)
);

#endif /* _PLOG_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
