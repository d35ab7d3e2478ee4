// SPDX-License-Identifier: MIT
#include "replay.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC	0x6a736677736872ULL
#define CHUNK	(1u << 20)

static int read_at(int fd, void *to, size_t n, uint64_t at)
{
	ssize_t got = pread(fd, to, n, (off_t)at);

	return got == (ssize_t)n ? 0 : got < 0 ? -errno : -EIO;
}

int replay_open(struct replay *r, const char *log, const char *target)
{
	uint64_t head[4];
	int ret;

	memset(r, 0, sizeof(*r));
	r->log = open(log, O_RDONLY | O_CLOEXEC);
	r->target = open(target, O_RDWR | O_CLOEXEC);
	ret = r->log < 0 || r->target < 0 ? -errno : read_at(r->log, head, sizeof(head), 0);
	if (!ret && (le64toh(head[0]) != MAGIC || le64toh(head[1]) != 1))
		ret = -EINVAL;
	if (ret) {
		replay_close(r);
		return ret;
	}
	r->left = le64toh(head[2]);
	r->sector = (uint32_t)le64toh(head[3]);
	r->at = r->sector;
	return r->sector >= 512 ? 0 : -EINVAL;
}

void replay_close(struct replay *r)
{
	if (r->log >= 0)
		close(r->log);
	if (r->target >= 0)
		close(r->target);
	r->log = r->target = -1;
}

static int copy(struct replay *r, uint64_t to, uint64_t n)
{
	static char *buf;
	int ret = 0;

	if (!buf)
		buf = malloc(CHUNK);
	while (n && !ret) {
		size_t step = n < CHUNK ? n : CHUNK;

		ret = read_at(r->log, buf, step, r->at);
		if (!ret && pwrite(r->target, buf, step, (off_t)to) != (ssize_t)step)
			ret = -EIO;
		r->at += step;
		to += step;
		n -= step;
		r->bytes += step;
	}
	return ret;
}

int replay_step(struct replay *r)
{
	uint64_t entry[4], bytes, to;
	size_t room = sizeof(r->mark) - 1;
	int ret;

	if (!r->left)
		return 0;
	ret = read_at(r->log, entry, sizeof(entry), r->at);
	if (ret)
		return ret;
	to = le64toh(entry[0]) * r->sector;
	bytes = le64toh(entry[1]) * r->sector;
	r->flags = le64toh(entry[2]);
	if (r->flags & REPLAY_MARK) {
		uint64_t n = le64toh(entry[3]);

		memset(r->mark, 0, sizeof(r->mark));
		ret = read_at(r->log, r->mark, n < room ? n : room, r->at + sizeof(entry));
	}
	r->at += r->sector;
	if (!ret && r->flags & REPLAY_DISCARD) {
		if (fallocate(r->target, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)to,
			      (off_t)bytes))
			ret = -errno;
	} else if (!ret && bytes) {
		ret = copy(r, to, bytes);
	}
	r->left--;
	r->done++;
	return ret ? ret : 1;
}
