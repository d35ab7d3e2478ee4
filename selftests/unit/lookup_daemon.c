// SPDX-License-Identifier: MIT
/* The daemon's look-ups (daemon/log/lookup.c) on the engine of the test. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "lookup_bridge.h"

static struct log a_log;
static struct log_cursor a_cursor;

int log_lookup(struct log *log, int64_t from, int64_t timestamp, bool max, enum log_end end,
	       struct log_hit *hit)
{
	struct bridge_hit found;
	int ret = bridge_lookup(from, timestamp, max, &found);

	(void)log;
	(void)end;
	hit->offset = found.offset;
	hit->timestamp = found.timestamp;
	hit->leader_epoch = found.leader_epoch;
	hit->inside = found.inside;
	hit->behind = found.behind;
	return ret;
}

struct log_cursor *log_cursor_get(struct log *log, int *error)
{
	(void)error;
	a_cursor.log = log;
	return &a_cursor;
}

void log_cursor_put(struct log_cursor *cursor)
{
	(void)cursor;
}

int log_locate(struct log_cursor *cursor, int64_t offset, uint32_t max_bytes, bool whole,
	       enum log_end end)
{
	struct bridge_extent ext;
	int ret = bridge_locate(offset, max_bytes, &ext);

	(void)end;
	(void)whole;
	cursor->extent.length = ext.length;
	cursor->extent.base_offset = ext.base_offset;
	cursor->extent.next_offset = ext.next_offset;
	return ret;
}

ssize_t log_cursor_read(struct log_cursor *cursor, uint64_t skip, void *buf, size_t n)
{
	(void)cursor;
	return bridge_read(skip, buf, n);
}

int daemon_find(int64_t timestamp, bool max, int64_t *offset, int64_t *found_time)
{
	struct log_hit hit;
	int ret = log_find_time(&a_log, timestamp, max, LOG_END_COMMITTED, NULL, &hit);

	*offset = hit.offset;
	*found_time = hit.timestamp;
	return ret;
}
