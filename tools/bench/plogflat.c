// SPDX-License-Identifier: MIT
/*
 * What must not grow with the log: instructions of an append and of look-ups at
 * 1 MB, 1 GB and 20 GB.  Runs in the guest, called by tools/bench/flat.
 *
 *	plogflat logs DIR	the three logs in DIR, to be served afterwards
 *	plogflat segments DIR	one of 1,000 segments
 *	plogflat count		measure the three, under -icount: the time stamp counter
 *				is the number of instructions
 *
 * The logs are synthetic.  A log of 20 GB in batches of 16 KiB would have 1.3 million
 * of them: here only those that are looked for have a header, and the one on each
 * side; all else is a hole, which takes no room and no time.  The indexes are whole,
 * with an entry for each batch, as they would be, so that a search has as far to go.
 * A look-up that read anything but what its index names would meet zeros, and fail.
 * What is appended then is real.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <x86intrin.h>

#include <linux/plog.h>

#include "crc32c.h"

#define BATCH	(16 << 10)
#define HEADER	61
#define TIME	1700000000000ll
/*
 * A prime: of places at even powers of two each would lie at a border of two pages of
 * the indexes of the larger logs, as one of eleven does otherwise, and each search
 * there would read both.
 */
#define ROUNDS	61

struct log {
	const char *topic;
	int sealed;		/* segments of @sealed_mb before the last */
	int sealed_mb;
	int active_mb;
};

static const struct log logs[] = {
	{ "flat-1m", 0, 0, 1 },
	{ "flat-1g", 1, 768, 256 },
	{ "flat-20g", 20, 1000, 480 },
};

/* for opening */
static const struct log segments[] = {
	{ "flat-1000", 999, 1, 1 },
};

static int64_t batches(const struct log *l)
{
	return ((int64_t)l->sealed * l->sealed_mb + l->active_mb) * ((1 << 20) / BATCH);
}

/* The offset of look-up @n: all over the log. */
static int64_t place(int64_t end, int n)
{
	return end * n / ROUNDS;
}

static void die(const char *what)
{
	fprintf(stderr, "plogflat: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void put(void *at, uint64_t value, int bytes)
{
	value = htobe64(value << (64 - 8 * bytes));
	memcpy(at, &value, bytes);
}

static void put_le(uint8_t *at, uint64_t value, int bytes)
{
	value = htole64(value);
	memcpy(at, &value, bytes);
}

static void header(uint8_t *raw, int64_t offset)
{
	memset(raw, 0, HEADER);
	put(raw, offset, 8);
	put(raw + 8, BATCH - 12, 4);
	raw[16] = 2;
	/* LogAppendTime: no record has to be looked at */
	put(raw + 21, 8, 2);
	put(raw + 27, TIME + offset, 8);
	put(raw + 35, TIME + offset, 8);
	memset(raw + 43, 0xff, 14);
	put(raw + 57, 1, 4);
}

static int create(int dir, int64_t base, const char *kind)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "%020lld.%s", (long long)base, kind);
	fd = openat(dir, name, O_CREAT | O_TRUNC | O_RDWR, 0644);
	if (fd < 0)
		die(name);
	return fd;
}

/* Is batch @offset looked for, or beside one that is? */
static bool wanted(int64_t end, int64_t offset)
{
	int round = offset * ROUNDS / end;

	return offset - place(end, round) <= 1 || place(end, round + 1) - offset <= 1;
}

static void headers(int log, int64_t base, int n, int64_t end)
{
	uint8_t raw[HEADER];

	for (int i = 0; i < n; i++) {
		int64_t offset = base + i;

		/* the last of a segment too: its times are read when it takes appends */
		if (i && i != n - 1 && !wanted(end, offset))
			continue;
		header(raw, offset);
		if (pwrite(log, raw, HEADER, (off_t)i * BATCH) != HEADER)
			die("write");
	}
	if (ftruncate(log, (off_t)n * BATCH))
		die("truncate");
}

static void put_file(int dir, int64_t base, const char *kind, const void *bytes, ssize_t size)
{
	int fd = create(dir, base, kind);

	if (write(fd, bytes, size) != size)
		die(kind);
	close(fd);
}

/* One segment of a log that ends at @end; the offset behind it. */
static int64_t segment(int dir, int64_t base, int mb, int64_t end)
{
	int log = create(dir, base, "log"), n = mb * ((1 << 20) / BATCH);
	uint8_t *index = malloc(n * 8), *times = malloc(n * 12);

	if (!index || !times)
		die("memory");
	headers(log, base, n, end);
	close(log);
	/* the first batch has no entry */
	for (int i = 1; i < n; i++) {
		put(index + (i - 1) * 8, i, 4);
		put(index + (i - 1) * 8 + 4, (uint64_t)i * BATCH, 4);
		put(times + (i - 1) * 12, TIME + base + i, 8);
		put(times + (i - 1) * 12 + 8, i, 4);
	}
	put_file(dir, base, "index", index, (n - 1) * 8);
	put_file(dir, base, "timeindex", times, (n - 1) * 12);
	free(index);
	free(times);
	return base + n;
}

/*
 * plog.state as a clean close leaves it, see kmod/state.c, and the leader epochs that
 * it vouches for: else they would be looked for in the batches.
 */
static void state(int dir, int64_t end, int64_t active, uint64_t active_bytes, uint64_t bytes)
{
	static const char epochs[] = "0\n1\n0 0\n";
	int fd = openat(dir, "leader-epoch-checkpoint", O_CREAT | O_TRUNC | O_RDWR, 0644);
	uint8_t raw[512] = "plogstat";

	if (write(fd, epochs, strlen(epochs)) != (ssize_t)strlen(epochs))
		die("leader-epoch-checkpoint");
	close(fd);
	fd = openat(dir, "plog.state", O_CREAT | O_TRUNC | O_RDWR, 0644);

	put_le(raw + 8, 1, 4);
	put_le(raw + 12, 1 | 4, 4);
	put_le(raw + 16, 2, 8);
	put_le(raw + 24, end, 8);
	put_le(raw + 32, end, 8);
	put_le(raw + 48, end, 8);
	put_le(raw + 56, active, 8);
	put_le(raw + 64, active_bytes, 8);
	put_le(raw + 72, bytes, 8);
	put_le(raw + 80, TIME + end - 1, 8);
	put_le(raw + 140, end, 8);
	put_le(raw + 220, crc32c(epochs, strlen(epochs)), 4);
	put_le(raw + 508, crc32c(raw, 508), 4);
	if (pwrite(fd, raw, 512, 0) != 512 || fsync(fd))
		die("plog.state");
	close(fd);
}

static void make(const char *root, const struct log *l)
{
	int64_t base = 0, active;
	char path[512];
	int dir, n;

	snprintf(path, sizeof(path), "%s/%s-0", root, l->topic);
	if (mkdir(path, 0755) && errno != EEXIST)
		die(path);
	dir = open(path, O_RDONLY | O_DIRECTORY);
	if (dir < 0)
		die(path);
	for (n = 0; n < l->sealed; n++)
		base = segment(dir, base, l->sealed_mb, batches(l));
	active = base;
	base = segment(dir, base, l->active_mb, batches(l));
	state(dir, base, active, (uint64_t)l->active_mb << 20, batches(l) * BATCH);
	close(dir);
}

static int bind_to(const char *topic)
{
	struct plog_bind arg = { .flags = PLOG_MODE_BATCH };
	int fd = open("/dev/plog-control", O_RDWR);

	strcpy(arg.topic, topic);
	if (fd < 0 || ioctl(fd, PLOG_IOC_BIND, &arg))
		die(topic);
	return fd;
}

/* A real batch of 16 KiB with one record. */
static uint8_t *real_batch(uint32_t size)
{
	uint8_t *b = calloc(1, size), *at = b + HEADER;
	uint32_t left = size - HEADER, value;

	header(b, 0);
	put(b + 8, size - 12, 4);
	put(b + 21, 0, 2);
	/* record: length, attributes, deltas, null key, value, no headers */
	value = left - 3 - 4 - 3 - 1;
	for (uint64_t v = 2 * (uint64_t)(left - 3); ; v >>= 7) {
		*at++ = (v & 127) | (v > 127 ? 128 : 0);
		if (v <= 127)
			break;
	}
	*at++ = 0;
	*at++ = 0;
	*at++ = 0;
	*at++ = 1;
	for (uint64_t v = 2 * (uint64_t)value; ; v >>= 7) {
		*at++ = (v & 127) | (v > 127 ? 128 : 0);
		if (v <= 127)
			break;
	}
	put(b + 17, crc32c(b + 21, size - 21), 4);
	return b;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The median, so that a tick of the clock in one of them counts for nothing. */
static uint64_t median(uint64_t *samples, int n)
{
	qsort(samples, n, sizeof(*samples), compare);
	return samples[n / 2];
}

static void count(void)
{
	uint8_t *batch = real_batch(16384);
	unsigned int i;

	for (i = 0; i < 3; i++) {
		const struct log *l = &logs[i];
		uint64_t appends[ROUNDS], offsets[ROUNDS], times[ROUNDS], start;
		int64_t end = batches(l);
		int fd = bind_to(l->topic), pass, n;

		/*
		 * The last pass counts. Those before bring into memory what it needs, and
		 * have the kernel move pages that are read again to the list of active
		 * ones, which happens once, and never to an index of a single page.
		 */
		for (pass = 0; pass < 4; pass++) {
			for (n = 0; n < ROUNDS; n++) {
				struct plog_locate loc = {
					.offset = place(end, n), .max_bytes = BATCH,
				};
				struct plog_lookup look = { .timestamp = TIME + place(end, n) };

				start = __rdtsc();
				if (ioctl(fd, PLOG_IOC_LOCATE, &loc))
					die("LOCATE");
				offsets[n] = __rdtsc() - start;
				if (loc.base_offset != place(end, n) || loc.length != BATCH) {
					fprintf(stderr, "plogflat: %s: offset %lld is not found\n",
						l->topic, (long long)place(end, n));
					exit(1);
				}
				start = __rdtsc();
				if (ioctl(fd, PLOG_IOC_LOOKUP, &look))
					die("LOOKUP");
				times[n] = __rdtsc() - start;
				if (look.offset != place(end, n)) {
					fprintf(stderr, "plogflat: %s: time of offset %lld gives %lld\n",
						l->topic, (long long)place(end, n),
						(long long)look.offset);
					exit(1);
				}
			}
		}
		for (pass = 0; pass < 2; pass++) {
			for (n = 0; n < ROUNDS; n++) {
				start = __rdtsc();
				if (write(fd, batch, 16384) != 16384)
					die("write");
				appends[n] = __rdtsc() - start;
			}
		}
		printf("flat %s append %llu offset %llu time %llu\n", l->topic,
		       (unsigned long long)median(appends, ROUNDS),
		       (unsigned long long)median(offsets, ROUNDS),
		       (unsigned long long)median(times, ROUNDS));
		close(fd);
	}
	free(batch);
}

int main(int argc, char **argv)
{
	if (crc32c_init())
		die("no SSE4.2");
	if (argc == 3 && !strcmp(argv[1], "logs")) {
		for (unsigned int i = 0; i < sizeof(logs) / sizeof(logs[0]); i++)
			make(argv[2], &logs[i]);
	} else if (argc == 3 && !strcmp(argv[1], "segments")) {
		make(argv[2], &segments[0]);
	} else if (argc == 2 && !strcmp(argv[1], "count")) {
		count();
	} else {
		fprintf(stderr, "usage: plogflat logs DIR | segments DIR | count\n");
		return 2;
	}
	return 0;
}
