// SPDX-License-Identifier: MIT
/*
 * What the device costs beside the plain file that it could be.  Runs in the
 * guest, called by tools/bench/bench; prints one line per measurement:
 *
 *	sample TEST VARIANT ROUND VALUE
 *
 * VALUE is seconds per operation, with --count instructions per operation.
 *
 * Each round measures every variant of a test in several short slices, in an
 * order that turns, so that a drift of the machine meets all of them alike; its
 * sample is the median of its slices, so that what meets one of them, as when
 * somebody else takes the processor, meets no sample.  Everything that is dirty
 * is written back between two measurements, outside of the time.  The first
 * round warms up and is not printed.
 *
 * A page of the guest that was never touched has no memory behind it yet: the
 * machine finds some when the guest first writes there, which was seen to take
 * 10 to 45 us a page.  The plain file gives its pages back when it is cut and
 * gets them again, a log grows and grows: it alone would pay.  So with the
 * clock everything that is free is touched once before, and what was appended
 * leaves the page cache when it is on the disk.
 *
 * Counting: under QEMU's -icount shift=0 each guest instruction moves the
 * virtual clock by one nanosecond, and the guest's time stamp counter is that
 * clock.  So a difference of two RDTSC is the number of instructions that the
 * one processor of the guest ran between them, interrupts and kernel threads
 * included.  A loop of known length is counted first: where it does not come
 * out right, the program says so and ends.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <linux/plog.h>

#include "bench.h"
#include "crc32c.h"

static const char usage[] =
	"Usage: plogbench [--count] [--rounds N] --data DIR\n"
	"\n"
	"  --count     count instructions (the guest runs under -icount)\n"
	"  --rounds N  measure N times (5)\n"
	"  --data DIR  the data directory; the topics append, records and read exist\n";

struct bench bench = { .rounds = 5 };

void die(const char *what)
{
	fprintf(stderr, "plogbench: %s: %s\n", what, strerror(errno));
	exit(1);
}

double tick(void)
{
	struct timespec ts;

	if (bench.count)
		return __rdtsc();
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Two instructions a turn: does the clock agree? */
static void check_clock(void)
{
	uint64_t turns = 10000000, left = turns;
	double start = tick(), got;

	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(left) : : "cc");
	got = (tick() - start) / (2.0 * turns);
	printf("clock %.4f\n", got);
	if (got < 0.98 || got > 1.02) {
		fprintf(stderr,
			"plogbench: a loop of %llu instructions counts as %.2f times as many: the\n"
			"time stamp counter is no instruction counter; run under -icount shift=0\n",
			(unsigned long long)(2 * turns), got);
		exit(1);
	}
}

/* Left untouched, for what the guest needs meanwhile. */
#define KEEP_FREE (48ul << 20)

/* Have memory behind every page that is free. */
static void touch_memory(void)
{
	struct sysinfo info;
	size_t size;
	void *p;

	if (sysinfo(&info))
		die("sysinfo");
	size = info.freeram * info.mem_unit;
	if (size <= KEEP_FREE)
		return;
	size -= KEEP_FREE;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		die("memory to touch");
	munmap(p, size);
}

/* Take the clean pages of a topic's log out of the page cache. */
static void forget(const char *topic)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s-0", bench.data, topic);
	dir = opendir(path);
	if (!dir)
		die(path);
	while ((e = readdir(dir))) {
		int fd;

		if (!strstr(e->d_name, ".log"))
			continue;
		fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			die(e->d_name);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
	}
	closedir(dir);
}

/* Write back what is dirty, so that it does not happen in somebody's time. */
static void settle(void)
{
	if (syncfs(bench.data_fd))
		die("syncfs");
	if (!bench.count) {
		forget("append");
		forget("records");
	}
}

static int by_cost(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *cost, int n)
{
	qsort(cost, n, sizeof(*cost), by_cost);
	return n & 1 ? cost[n / 2] : (cost[n / 2 - 1] + cost[n / 2]) / 2;
}

void measure(const char *test, const struct variant *variants, int n)
{
	int slices = bench.count ? 1 : BENCH_SLICES;
	double cost[BENCH_VARIANTS][BENCH_SLICES];

	for (int round = 0; round <= bench.rounds; round++) {
		for (int slice = 0; slice < slices; slice++) {
			for (int i = 0; i < n; i++) {
				int k = (round + slice + i) % n;

				settle();
				cost[k][slice] = variants[k].run(&variants[k]);
			}
		}
		for (int i = 0; round && i < n; i++)
			printf("sample %s %s %d %.12g\n", test, variants[i].name, round,
			       median(cost[i], slices));
		fflush(stdout);
	}
}

/* ---- batches ---- */

static size_t put_varint(uint8_t *p, int64_t value)
{
	uint64_t v = (uint64_t)value << 1 ^ value >> 63;
	size_t n = 0;

	while (v >= 0x80) {
		p[n++] = v | 0x80;
		v >>= 7;
	}
	p[n++] = v;
	return n;
}

static void put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, 4);
}

static void put64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, 8);
}

/* What a record of @value bytes takes, with its length in front. */
static size_t record_size(size_t value, int index)
{
	uint8_t tmp[10];
	size_t body = 1 + 1 + put_varint(tmp, index) + 1 + put_varint(tmp, value) + value + 1;

	return put_varint(tmp, body) + body;
}

static size_t put_record(uint8_t *p, size_t value, int index)
{
	uint8_t tmp[10];
	size_t n;

	n = put_varint(p, 1 + 1 + put_varint(tmp, index) + 1 + put_varint(tmp, value) + value + 1);
	p[n++] = 0;			/* attributes */
	n += put_varint(p + n, 0);	/* timestamp delta */
	n += put_varint(p + n, index);
	n += put_varint(p + n, -1);	/* no key */
	n += put_varint(p + n, value);
	for (size_t i = 0; i < value; i++)
		p[n++] = 'a' + (i + index) % 26;
	p[n++] = 0;			/* no headers */
	return n;
}

/*
 * The value of the next record where @left bytes are left: 1 KiB, or what
 * fills the batch exactly, or, where a length that takes one more byte stands
 * in the way of that, a few bytes, after which it fits.
 */
static size_t fit(size_t left, int index)
{
	if (left >= 2 * record_size(1024, index))
		return 1024;
	for (size_t value = left; value; value--) {
		if (record_size(value, index) == left)
			return value;
	}
	return 7;
}

/* Records of about 1 KiB that fill @size bytes exactly. */
void batch_make(struct batch *b, size_t size)
{
	size_t pos = PLOG_BATCH_HEADER_SIZE;
	struct timespec ts;
	int64_t ms;

	b->size = size;
	b->data = aligned_alloc(4096, (size + 4095) & ~4095ul);
	if (!b->data)
		die("memory");
	memset(b->data, 0, size);
	for (b->records = 0; pos < size; b->records++)
		pos += put_record(b->data + pos, fit(size - pos, b->records), b->records);
	clock_gettime(CLOCK_REALTIME, &ts);
	ms = ts.tv_sec * 1000ll + ts.tv_nsec / 1000000;
	put32(b->data + 8, size - 12);
	put32(b->data + 12, -1);	/* leader epoch */
	b->data[16] = 2;		/* magic */
	put32(b->data + 23, b->records - 1);
	put64(b->data + 27, ms);
	put64(b->data + 35, ms);
	put64(b->data + 43, -1);	/* producer id */
	b->data[51] = b->data[52] = 0xff;	/* producer epoch */
	put32(b->data + 53, -1);	/* base sequence */
	put32(b->data + 57, b->records);
	put32(b->data + 17, crc32c(b->data + 21, size - 21));
}

int device_open(const char *topic, uint32_t mode)
{
	struct plog_mode m = { .flags = mode };
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "/dev/plog/%s/0", topic);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die(path);
	if (mode && ioctl(fd, PLOG_IOC_SET_MODE, &m))
		die("PLOG_IOC_SET_MODE");
	return fd;
}

int64_t device_end(int fd)
{
	struct plog_state state = {};

	if (ioctl(fd, PLOG_IOC_STATE, &state))
		die("PLOG_IOC_STATE");
	return state.log_end;
}

/* A measurement that took other records than it meant to is none. */
void expect_records(const char *test, int64_t got, int64_t want)
{
	if (got == want)
		return;
	fprintf(stderr, "plogbench: %s: %lld records are in the log, not %lld\n", test,
		(long long)got, (long long)want);
	exit(1);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", no_argument, NULL, 'c' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "data", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	cpu_set_t first;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			bench.count = true;
			break;
		case 'r':
			bench.rounds = atoi(optarg);
			break;
		case 'd':
			bench.data = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind != argc || !bench.data || bench.rounds < 1) {
		fputs(usage, stderr);
		return 2;
	}
	bench.data_fd = open(bench.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (bench.data_fd < 0)
		die(bench.data);
	if (crc32c_init()) {
		fprintf(stderr, "plogbench: this processor has no CRC32C instruction\n");
		return 1;
	}
	/* Here the caller, on the other processor, if there is one, the sink. */
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof(first), &first);
	if (bench.count)
		check_clock();
	else
		touch_memory();
	bench_append();
	bench_records();
	bench_sendfile();
	return 0;
}
