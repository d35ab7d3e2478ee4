// SPDX-License-Identifier: MIT
/* A partition through the device. */
#include "plog.h"
#include "aborted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_NODE	"/dev/plog-control"
#define FETCH_BYTES	(1u << 20)

#define OPEN_FLAGS	(PLOG_OPEN_READ | PLOG_OPEN_WRITE | PLOG_OPEN_COMMITTED | \
			 PLOG_OPEN_ACKS_ALL)

struct plog {
	int fd;
	unsigned int flags;
	int64_t position;	/* -1: the log start, wherever that is then */
	uint32_t rest;		/* of the cursor's extent, for plog_send() */

	uint8_t *bytes;		/* of the extent that plog_next() walks */
	size_t room;
	struct plog_walk *walk;
	struct aborted *aborted;	/* with PLOG_OPEN_COMMITTED */
	bool walking;
	int64_t walk_end;	/* offset behind the extent */
};

/* ---- opening ---- */

static int open_mode(unsigned int flags)
{
	if (!(flags & PLOG_OPEN_WRITE))
		return O_RDONLY | O_CLOEXEC;
	return (flags & PLOG_OPEN_READ ? O_RDWR : O_WRONLY) | O_CLOEXEC;
}

static uint32_t device_mode(unsigned int flags)
{
	return PLOG_MODE_BATCH |
	       (flags & PLOG_OPEN_COMMITTED ? PLOG_MODE_READ_COMMITTED : 0) |
	       (flags & PLOG_OPEN_ACKS_ALL ? PLOG_MODE_ACKS_ALL : 0);
}

static int read_headers(void *arg, struct plog_headers *headers)
{
	struct plog *log = arg;

	return ioctl(log->fd, PLOG_IOC_HEADERS, headers) ? -errno : 0;
}

/* Around a descriptor, which is closed if that fails. */
static int wrap(int fd, unsigned int flags, struct plog **out)
{
	struct plog *log = calloc(1, sizeof(*log));

	if (!log || plog_walk_new(NULL, 0, &log->walk)) {
		free(log);
		close(fd);
		return -ENOMEM;
	}
	if (flags & PLOG_OPEN_COMMITTED && aborted_new(read_headers, log, &log->aborted)) {
		plog_walk_free(log->walk);
		free(log);
		close(fd);
		return -ENOMEM;
	}
	log->fd = fd;
	log->flags = flags;
	log->position = -1;
	*out = log;
	return 0;
}

int plog_open(const char *topic, uint32_t partition, unsigned int flags, struct plog **out)
{
	struct plog_bind bind = { .flags = device_mode(flags), .partition = partition };
	int fd, ret;

	*out = NULL;
	if (!(flags & (PLOG_OPEN_READ | PLOG_OPEN_WRITE)) || flags & ~OPEN_FLAGS ||
	    !*topic || strlen(topic) > PLOG_TOPIC_MAX)
		return -EINVAL;
	strcpy(bind.topic, topic);
	/* Not the partition's own node: that is one of the initial network namespace. */
	fd = open(CONTROL_NODE, open_mode(flags));
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PLOG_IOC_BIND, &bind) < 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return wrap(fd, flags, out);
}

int plog_open_path(const char *path, unsigned int flags, struct plog **out)
{
	struct plog_mode mode = { .flags = device_mode(flags) };
	int fd, ret;

	*out = NULL;
	if (!(flags & (PLOG_OPEN_READ | PLOG_OPEN_WRITE)) || flags & ~OPEN_FLAGS)
		return -EINVAL;
	fd = open(path, open_mode(flags));
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PLOG_IOC_SET_MODE, &mode) < 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return wrap(fd, flags, out);
}

void plog_close(struct plog *log)
{
	if (!log)
		return;
	plog_walk_free(log->walk);
	aborted_free(log->aborted);
	free(log->bytes);
	close(log->fd);
	free(log);
}

int plog_fd(const struct plog *log)
{
	return log->fd;
}

int plog_stat(struct plog *log, struct plog_state *state)
{
	memset(state, 0, sizeof(*state));
	return ioctl(log->fd, PLOG_IOC_STATE, state) < 0 ? -errno : 0;
}

/* ---- the cursor ---- */

static uint32_t isolation(const struct plog *log)
{
	return log->flags & PLOG_OPEN_COMMITTED ? PLOG_LOCATE_COMMITTED : 0;
}

int plog_locate(struct plog *log, int64_t offset, uint32_t max_bytes, struct plog_locate *out)
{
	memset(out, 0, sizeof(*out));
	out->offset = offset;
	out->max_bytes = max_bytes;
	out->flags = PLOG_LOCATE_WHOLE | isolation(log);
	log->rest = 0;
	log->walking = false;
	if (ioctl(log->fd, PLOG_IOC_LOCATE, out) < 0)
		return -errno;
	log->rest = out->length;
	return 0;
}

ssize_t plog_send(struct plog *log, int socket)
{
	ssize_t total = 0;

	while (log->rest) {
		ssize_t sent = sendfile(socket, log->fd, NULL, log->rest);

		if (sent < 0 && errno == EINTR && !total)
			continue;
		if (sent < 0) {
			/* What was sent stands; the next call meets the error again. */
			if (total && errno != ESTALE)
				return total;
			return errno == EAGAIN ? total : -errno;
		}
		if (!sent)
			return -EIO;
		log->rest -= sent;
		total += sent;
	}
	return total;
}

/* ---- reading ---- */

static int find_time(struct plog *log, int64_t timestamp, bool max, int64_t *offset);

static int end_offset(struct plog *log, int64_t *offset)
{
	struct plog_state state;
	int ret;

	ret = plog_stat(log, &state);
	if (ret)
		return ret;
	if (state.state == PLOG_PARTITION_OPENING)
		return -EAGAIN;
	*offset = log->flags & PLOG_OPEN_COMMITTED ? state.last_stable : state.high_watermark;
	return 0;
}

int plog_seek(struct plog *log, int64_t offset)
{
	int ret;

	if (offset < PLOG_OFFSET_MAX_TIME)
		return -EINVAL;
	log->walking = false;
	if (offset >= 0) {
		log->position = offset;
		return 0;
	}
	if (offset == PLOG_OFFSET_BEGIN) {
		log->position = -1;
		return 0;
	}
	ret = offset == PLOG_OFFSET_MAX_TIME ? find_time(log, 0, true, &offset) :
					       end_offset(log, &offset);
	if (ret)
		return ret;
	log->position = offset;
	return 0;
}

int64_t plog_position(const struct plog *log)
{
	return log->position;
}

/* The extent's bytes into memory. -ESTALE: it was truncated meanwhile. */
static int read_extent(struct plog *log, uint32_t length)
{
	uint32_t got = 0;

	if (length > log->room) {
		uint8_t *larger = realloc(log->bytes, length);

		if (!larger)
			return -ENOMEM;
		log->bytes = larger;
		log->room = length;
	}
	while (got < length) {
		ssize_t n = read(log->fd, log->bytes + got, length - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -EIO;
		got += n;
	}
	return 0;
}

/* Where the log starts now, for a position that was never set. */
static int begin(struct plog *log)
{
	struct plog_state state;
	int ret;

	if (log->position >= 0)
		return 0;
	ret = plog_stat(log, &state);
	if (ret)
		return ret;
	if (state.state == PLOG_PARTITION_OPENING)
		return -EAGAIN;
	log->position = state.log_start;
	return 0;
}

static int is_aborted(void *arg, int64_t producer, int64_t offset)
{
	return aborted_check(arg, producer, offset);
}

/* The next extent to walk. 1; 0 if there is nothing yet. */
static int fetch(struct plog *log)
{
	bool from_start = log->position < 0;
	struct plog_locate at;
	int ret;

	for (;;) {
		ret = begin(log);
		if (!ret)
			ret = plog_locate(log, log->position, FETCH_BYTES, &at);
		/* The start may have moved between the two calls. */
		if (ret == -ERANGE && from_start && log->position < at.log_start) {
			log->position = -1;
			continue;
		}
		if (ret || !at.length)
			return ret;
		ret = read_extent(log, at.length);
		if (ret != -ESTALE)
			break;
	}
	log->rest = 0;
	if (ret)
		return ret;
	plog_walk_set(log->walk, log->bytes, at.length);
	plog_walk_from(log->walk, log->position);
	plog_walk_filter(log->walk, log->aborted ? is_aborted : NULL, log->aborted);
	log->walk_end = at.next_offset;
	log->walking = true;
	return 1;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Until there may be something to read. 0, -EINTR, -ETIME. */
static int wait_readable(struct plog *log, int timeout_ms, int64_t end)
{
	struct pollfd poll_fd = { .fd = log->fd, .events = POLLIN };
	int rest = -1;

	if (timeout_ms >= 0) {
		int64_t left = end - now_ms();

		if (left <= 0)
			return -ETIME;
		rest = left > INT_MAX ? INT_MAX : left;
	}
	return poll(&poll_fd, 1, rest) < 0 ? -errno : 0;
}

int plog_next(struct plog *log, struct plog_record *record, int timeout_ms)
{
	int64_t end = timeout_ms > 0 ? now_ms() + timeout_ms : 0;
	int ret;

	if (!(log->flags & PLOG_OPEN_READ))
		return -EBADF;
	for (;;) {
		if (log->walking) {
			ret = plog_walk_next(log->walk, record);
			if (ret > 0)
				log->position = record->offset + 1;
			if (ret)
				return ret;
			/* Behind gaps that compaction has left, too. */
			if (log->walk_end > log->position)
				log->position = log->walk_end;
			log->walking = false;
		}
		ret = fetch(log);
		if (ret > 0)
			continue;
		/* Opening: wait for it as for a record. */
		if (ret && ret != -EAGAIN)
			return ret;
		ret = wait_readable(log, timeout_ms, end);
		if (ret)
			return ret == -ETIME ? 0 : ret;
	}
}

int plog_skip(struct plog *log)
{
	int64_t next;

	if (!log->walking || plog_walk_skip(log->walk))
		return -ENODATA;
	next = plog_walk_next_offset(log->walk);
	if (next > log->position)
		log->position = next;
	return 0;
}

/* ---- by time ---- */

struct hit {
	int64_t offset;		/* -1: none */
	int64_t timestamp;
};

/*
 * The record in the compressed batch that a look-up has come to: 1, or 0 if it
 * has none from hit->offset on.  @next: out: where the next batch begins.
 */
static int look_inside(struct plog *log, struct hit *hit, int64_t timestamp, bool max,
		       int64_t *next)
{
	struct plog_record record;
	struct plog_locate at;
	bool found = false;
	int ret;

	ret = plog_locate(log, hit->offset, 1, &at);
	if (!ret && !at.length)
		ret = -ENODATA;		/* it ends behind what may be seen */
	if (!ret)
		ret = read_extent(log, at.length);
	log->rest = 0;
	if (ret)
		return ret;
	*next = at.next_offset;
	plog_walk_set(log->walk, log->bytes, at.length);
	plog_walk_from(log->walk, hit->offset);
	plog_walk_filter(log->walk, NULL, NULL);	/* the time of a record, whoever's */
	while ((ret = plog_walk_next(log->walk, &record)) > 0) {
		if (max ? found && record.timestamp <= hit->timestamp :
			  record.timestamp < timestamp)
			continue;
		hit->offset = record.offset;
		hit->timestamp = record.timestamp;
		found = true;
		if (!max)
			break;
	}
	return ret < 0 ? ret : found;
}

/* 0, -ENODATA if there is none, or an error. */
static int find_time(struct plog *log, int64_t timestamp, bool max, int64_t *offset)
{
	uint32_t flags = (max ? PLOG_LOOKUP_MAX : 0) |
			 (log->flags & PLOG_OPEN_COMMITTED ? PLOG_LOOKUP_COMMITTED : 0);
	struct hit hit, best = { .offset = -1, .timestamp = -1 };
	bool behind = false;
	int64_t from = 0;
	int ret;

	log->walking = false;
	for (;;) {
		struct plog_lookup lookup = {
			.timestamp = timestamp, .flags = flags, .offset = from,
		};

		if (ioctl(log->fd, PLOG_IOC_LOOKUP, &lookup) < 0)
			return -errno;
		hit.offset = lookup.offset;
		hit.timestamp = lookup.timestamp;
		behind = lookup.flags & PLOG_LOOKUP_BEHIND;
		if (lookup.offset < 0 || !(lookup.flags & PLOG_LOOKUP_INSIDE))
			break;
		ret = look_inside(log, &hit, timestamp, max, &from);
		if (ret == -ERANGE || ret == -ESTALE) {
			/* Deleted or truncated meanwhile. */
			best.offset = best.timestamp = -1;
			from = 0;
			continue;
		}
		if (ret < 0)
			return ret;
		if (ret && (!max || hit.timestamp == lookup.timestamp))
			break;
		/* What the batch has promised lies below the log start. */
		if (ret && hit.timestamp > best.timestamp)
			best = hit;
	}
	if (best.offset >= 0 && !behind && best.timestamp >= hit.timestamp)
		hit = best;
	*offset = hit.offset;
	return hit.offset < 0 ? -ENODATA : 0;
}

int plog_seek_time(struct plog *log, int64_t timestamp)
{
	int64_t offset;
	int ret;

	if (!(log->flags & PLOG_OPEN_READ))
		return -EBADF;
	ret = find_time(log, timestamp, false, &offset);
	return ret ? ret : plog_seek(log, offset);
}

/* ---- writing ---- */

int plog_append(struct plog *log, struct plog_pack *pack, unsigned int flags, int64_t *offset)
{
	struct plog_append append = { .leader_epoch = -1 };
	const void *bytes;
	size_t length;

	if (!(log->flags & PLOG_OPEN_WRITE))
		return -EBADF;
	if (flags & ~PLOG_SYNC)
		return -EINVAL;
	length = plog_pack_finish(pack, &bytes);
	if (!length)
		return -EINVAL;
	append.flags = flags & PLOG_SYNC ? PLOG_APPEND_SYNC : 0;
	append.data = (uintptr_t)bytes;
	append.length = length;
	if (ioctl(log->fd, PLOG_IOC_APPEND, &append) < 0)
		return -errno;
	if (offset)
		*offset = append.base_offset;
	return 0;
}

int plog_put(struct plog *log, const struct plog_record *record, unsigned int flags,
	     int64_t *offset)
{
	struct plog_pack *pack;
	int ret;

	ret = plog_pack_new(PLOG_MESSAGE_BYTES_MAX, &pack);
	if (ret)
		return ret;
	ret = plog_pack_add(pack, record);
	if (!ret)
		ret = plog_append(log, pack, flags, offset);
	plog_pack_free(pack);
	return ret;
}
