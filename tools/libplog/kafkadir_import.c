// SPDX-License-Identifier: MIT
/* The first opening of a partition of Kafka's. */
#include "kafkadir.h"
#include "kafkadir_internal.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc32c.h"

#define STATE_NAME	"plog.state"
#define EPOCH_NAME	"leader-epoch-checkpoint"
#define BASE_DIGITS	20

/* Bytes of a batch header, and of what an old message has before its magic. */
#define HEADER		61
#define MAGIC_AT	16

/* Base offsets of the files in the folder, by kind. */
struct bases {
	int64_t *base;
	size_t count, room;
};

struct folder {
	const char *name;	/* "topic-index" */
	int fd;
	bool known;		/* has a plog.state */
	struct bases logs;	/* BASE.log */
	struct bases swaps;	/* BASE.log.swap */
	struct bases cleaned;	/* BASE.log.cleaned */
};

static int add(struct bases *b, int64_t base)
{
	if (b->count == b->room) {
		int64_t *more = reallocarray(b->base, b->room ? 2 * b->room : 16, sizeof(*more));

		if (!more)
			return -ENOMEM;
		b->base = more;
		b->room = b->room ? 2 * b->room : 16;
	}
	b->base[b->count++] = base;
	return 0;
}

/* The base offset of "BASE" and exactly @suffix behind, or -1. */
static int64_t parse_name(const char *name, const char *suffix)
{
	int64_t base = 0;

	for (int i = 0; i < BASE_DIGITS; i++) {
		if (name[i] < '0' || name[i] > '9' || __builtin_mul_overflow(base, 10, &base) ||
		    __builtin_add_overflow(base, name[i] - '0', &base))
			return -1;
	}
	return strcmp(name + BASE_DIGITS, suffix) ? -1 : base;
}

static int by_base(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void sort(struct bases *b)
{
	if (b->count)
		qsort(b->base, b->count, sizeof(*b->base), by_base);
}

static int list(struct folder *f, struct plog_error *err)
{
	int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!stream) {
		ret = -errno;
		if (fd >= 0)
			close(fd);
		return plog_error_set(err, ret, "cannot list %s: %s", f->name, strerror(-ret));
	}
	for (errno = 0; !ret && (entry = readdir(stream)); errno = 0) {
		const char *name = entry->d_name;
		int64_t base;

		if (!strcmp(name, STATE_NAME))
			f->known = true;
		else if ((base = parse_name(name, ".log")) >= 0)
			ret = add(&f->logs, base);
		else if ((base = parse_name(name, ".log.swap")) >= 0)
			ret = add(&f->swaps, base);
		else if ((base = parse_name(name, ".log.cleaned")) >= 0)
			ret = add(&f->cleaned, base);
	}
	if (!ret)
		ret = -errno;
	closedir(stream);
	sort(&f->logs);
	sort(&f->swaps);
	sort(&f->cleaned);
	return ret ? plog_error_set(err, ret, "cannot list %s: %s", f->name, strerror(-ret)) : 0;
}

/* ---- formats ---- */

static int open_segment(struct folder *f, int64_t base, const char *suffix, struct plog_error *err)
{
	char name[NAME_MAX + 1];
	int fd;

	snprintf(name, sizeof(name), "%020" PRId64 "%s", base, suffix);
	fd = openat(f->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return plog_error_set(err, -errno, "cannot open %s/%s: %m", f->name, name);
	return fd;
}

/* The engine says the same of a segment that it scans; it does not scan all. */
static int check_format(struct folder *f, int64_t base, struct plog_error *err)
{
	uint8_t raw[MAGIC_AT + 1];
	ssize_t n;
	int fd;

	fd = open_segment(f, base, ".log", err);
	if (fd < 0)
		return fd;
	n = pread(fd, raw, sizeof(raw), 0);
	close(fd);
	/* zeros are what a file has that was made long before it is filled */
	if (n < (ssize_t)sizeof(raw) || raw[MAGIC_AT] > 1 || !(raw[8] | raw[9] | raw[10] | raw[11]))
		return 0;
	return plog_error_set(err, -EPROTONOSUPPORT, "%s/%020" PRId64 ".log holds messages in "
			      "Kafka's old format %u: rewrite the topic with a broker of Kafka 0.11 "
			      "to 3.x first", f->name, base, raw[MAGIC_AT]);
}

/* ---- what Kafka was replacing when it was killed ---- */

static int rename_all(struct folder *f, int64_t base, const char *from, const char *to,
		      struct plog_error *err)
{
	static const char *const kinds[] = { "index", "timeindex", "txnindex", "log" };

	/* the log last: it is what this begins with after a crash */
	for (size_t i = 0; i < 4; i++) {
		char old[NAME_MAX + 1], new[NAME_MAX + 1];

		snprintf(old, sizeof(old), "%020" PRId64 ".%s%s", base, kinds[i], from);
		snprintf(new, sizeof(new), "%020" PRId64 ".%s%s", base, kinds[i], to);
		if (renameat(f->fd, old, f->fd, new) < 0 && errno != ENOENT)
			return plog_error_set(err, -errno, "cannot rename %s/%s: %m", f->name,
					      old);
	}
	return 0;
}

/* The offset behind the last batch of a .swap file, which has to be whole. */
static int end_of_swap(struct folder *f, int64_t base, int64_t *end, struct plog_error *err)
{
	int fd = open_segment(f, base, ".log.swap", err);
	uint8_t raw[HEADER];
	struct stat st;
	off_t at = 0;

	if (fd < 0)
		return fd;
	*end = base;
	if (fstat(fd, &st) < 0)
		st.st_size = -1;
	while (at < st.st_size) {
		int32_t size, delta;
		int64_t first;

		if (pread(fd, raw, HEADER, at) != HEADER || raw[MAGIC_AT] != 2)
			break;
		size = be32toh(*(uint32_t *)memcpy(&size, raw + 8, 4));
		delta = be32toh(*(uint32_t *)memcpy(&delta, raw + 23, 4));
		first = be64toh(*(uint64_t *)memcpy(&first, raw, 8));
		if (size < HEADER - 12 || size > st.st_size - at - 12 || delta < 0 ||
		    first < *end || __builtin_add_overflow(first, delta, &first) ||
		    first == INT64_MAX)
			break;
		*end = first + 1;
		at += size + 12;
	}
	close(fd);
	if (at == st.st_size)
		return 0;
	return plog_error_set(err, -EINVAL, "%s/%020" PRId64 ".log.swap is not whole: start the "
			      "Kafka broker on this directory once more, and stop it", f->name, base);
}

/*
 * Kafka writes *.cleaned, renames all of them to *.swap, then those that they
 * replace to *.deleted, and the *.swap to what they are.  With a *.cleaned left
 * not above it a *.swap may be one of a set that is not complete: the segments
 * that it was to replace are all there, and it is put out of the way.
 */
static int finish_swap(struct folder *f, struct plog_error *err)
{
	size_t count = f->swaps.count;
	int64_t from, end = 0;
	int ret = 0;

	if (f->cleaned.count)
		while (count && f->swaps.base[count - 1] >= f->cleaned.base[0])
			count--;
	for (size_t i = count; !ret && i < f->swaps.count; i++)
		ret = rename_all(f, f->swaps.base[i], ".swap", ".deleted", err);
	if (ret || !count)
		return ret;
	from = f->swaps.base[0];
	for (size_t i = 0; !ret && i < count; i++)
		ret = end_of_swap(f, f->swaps.base[i], &end, err);
	for (size_t i = 0; !ret && i < f->logs.count; i++)
		if (f->logs.base[i] >= from && f->logs.base[i] < end)
			ret = rename_all(f, f->logs.base[i], "", ".deleted", err);
	/* before the next name is taken, the old one is gone for good */
	if (!ret && fsync(f->fd) < 0)
		ret = plog_error_set(err, -errno, "cannot sync %s: %m", f->name);
	for (size_t i = 0; !ret && i < count; i++)
		ret = rename_all(f, f->swaps.base[i], ".swap", "", err);
	if (!ret && fsync(f->fd) < 0)
		ret = plog_error_set(err, -errno, "cannot sync %s: %m", f->name);
	return ret;
}

/* ---- plog.state ---- */

/* The latest of the list "version, count, epoch offset ...", 0 if there is none. */
static int32_t last_epoch(struct folder *f)
{
	int fd = openat(f->fd, EPOCH_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	long long version, count, epoch, offset, latest = 0;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (!file) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	if (fscanf(file, "%lld %lld", &version, &count) == 2 && !version)
		while (fscanf(file, "%lld %lld", &epoch, &offset) == 2)
			if (epoch > latest && epoch <= INT32_MAX)
				latest = epoch;
	fclose(file);
	return latest;
}

static void put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, 4);
}

static void put64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, 8);
}

/* The engine's file, with its first slot; kmod/state.h has the layout. */
static int write_state(struct folder *f, int64_t log_start, int64_t hw, int64_t point,
		       struct plog_error *err)
{
	uint8_t raw[KAFKADIR_STATE_SIZE] = { 0 };

	memcpy(raw, "plogstat", 8);
	put32(raw + 8, 1);
	put32(raw + 12, KAFKADIR_STATE_IMPORTED);
	put64(raw + 16, 2);
	put64(raw + 24, point);
	put64(raw + 32, hw);
	put64(raw + 40, log_start);
	put32(raw + 88, last_epoch(f));
	put32(raw + KAFKADIR_STATE_SIZE - 4, crc32c(0, raw, KAFKADIR_STATE_SIZE - 4));
	return plog_file_replace(f->fd, STATE_NAME, raw, sizeof(raw), 0640, err);
}

static int import(struct kafkadir *kafka, struct folder *f, const char *topic, uint32_t partition,
		  struct plog_error *err)
{
	int64_t start, hw, point;
	int ret;

	start = kafkadir_checkpoint_find(&kafka->log_start, topic, partition);
	hw = kafkadir_checkpoint_find(&kafka->high_watermark, topic, partition);
	point = kafkadir_checkpoint_find(&kafka->recovery_point, topic, partition);
	if (start < 0 && hw < 0 && point < 0)
		return 0;
	ret = list(f, err);
	if (ret || f->known || (!f->logs.count && !f->swaps.count))
		return ret;
	for (size_t i = 0; i < f->logs.count; i++) {
		ret = check_format(f, f->logs.base[i], err);
		if (ret)
			return ret;
	}
	ret = finish_swap(f, err);
	if (ret)
		return ret;
	start = start < 0 ? 0 : start;
	return write_state(f, start, hw < start ? start : hw, point < 0 ? 0 : point, err);
}

int kafkadir_import(struct kafkadir *kafka, int dirfd, const char *topic, uint32_t partition,
		    int fd, struct plog_error *err)
{
	char name[NAME_MAX + 1];
	struct folder f = { .name = name, .fd = fd };
	int ret;

	if (!faccessat(fd, STATE_NAME, F_OK, AT_SYMLINK_NOFOLLOW))
		return 0;
	ret = kafkadir_read(kafka, dirfd, err);
	if (ret)
		return ret;
	snprintf(name, sizeof(name), "%s-%" PRIu32, topic, partition);
	ret = import(kafka, &f, topic, partition, err);
	free(f.logs.base);
	free(f.swaps.base);
	free(f.cleaned.base);
	return ret;
}
