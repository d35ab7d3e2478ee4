// SPDX-License-Identifier: MIT
/* The C library's look-ups, its device calls going to the engine of the test. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lookup_bridge.h"

static int device_ioctl(int fd, unsigned long cmd, void *arg);
static ssize_t device_read(int fd, void *buf, size_t n);

#define ioctl device_ioctl
#define read device_read
#include "../../tools/libplog/plog.c"
#undef ioctl
#undef read

static uint64_t taken;		/* of the cursor's extent */

static int answer(int ret)
{
	errno = -ret;
	return ret < 0 ? -1 : 0;
}

static int device_ioctl(int fd, unsigned long cmd, void *arg)
{
	struct plog_lookup *look = arg;
	struct plog_locate *at = arg;
	struct bridge_extent ext;
	struct bridge_hit hit;
	int ret;

	(void)fd;
	switch (cmd) {
	case PLOG_IOC_LOOKUP:
		ret = bridge_lookup(look->offset, look->timestamp, look->flags & PLOG_LOOKUP_MAX,
				    &hit);
		look->offset = hit.offset;
		look->timestamp = hit.timestamp;
		look->leader_epoch = hit.leader_epoch;
		look->flags = (hit.inside ? PLOG_LOOKUP_INSIDE : 0) |
			      (hit.behind ? PLOG_LOOKUP_BEHIND : 0);
		return answer(ret);
	case PLOG_IOC_LOCATE:
		ret = bridge_locate(at->offset, at->max_bytes, &ext);
		at->length = ext.length;
		at->base_offset = ext.base_offset;
		at->next_offset = ext.next_offset;
		taken = 0;
		return answer(ret);
	}
	return answer(-ENOTTY);
}

static ssize_t device_read(int fd, void *buf, size_t n)
{
	ssize_t got = bridge_read(taken, buf, n);

	(void)fd;
	if (got < 0)
		return answer(got);
	taken += got;
	return got;
}

int library_find(int64_t timestamp, bool max, int64_t *offset)
{
	struct plog *log;
	int ret;

	ret = wrap(open("/dev/null", O_RDONLY | O_CLOEXEC), PLOG_OPEN_READ, &log);
	if (ret)
		return ret;
	/* a position that must stay where it is if there is nothing */
	plog_seek(log, 12345678);
	ret = max ? plog_seek(log, PLOG_OFFSET_MAX_TIME) : plog_seek_time(log, timestamp);
	if (ret == -ENODATA && plog_position(log) == 12345678) {
		*offset = -1;
		ret = 0;
	} else if (!ret) {
		*offset = plog_position(log);
	}
	plog_close(log);
	return ret;
}
