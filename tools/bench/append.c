// SPDX-License-Identifier: MIT
/*
 * Whole batches into the log, against the same bytes into a file with the
 * CRC computed by the caller: what a broker in user space has to do at least.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/plog.h>

#include "bench.h"
#include "crc32c.h"

/* Bytes of one measurement. Counted ones need few: they do not vary. */
#define TIMED_BYTES	((64ul << 20) / BENCH_SLICES)
#define COUNTED_BYTES	(8ul << 20)

struct append {
	struct batch batch;
	int ops;
	uint64_t incarnation;
};

/* Keeps the compiler from dropping a sum that nobody reads. */
static volatile uint32_t sink;

/* The plain file grows from nothing, as the log grows at its end. */
static double run_file(const struct variant *v)
{
	const struct append *a = v->arg;
	char path[PATH_MAX];
	double start, cost;
	int fd;

	snprintf(path, sizeof(path), "%s/../plain", bench.data);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		die(path);
	start = tick();
	for (int i = 0; i < a->ops; i++) {
		sink = crc32c(a->batch.data + 21, a->batch.size - 21);
		if (write(fd, a->batch.data, a->batch.size) != (ssize_t)a->batch.size)
			die(path);
	}
	cost = (tick() - start) / a->ops;
	close(fd);
	return cost;
}

/* Any program that may write to the topic: the module checks every record. */
static double run_write(const struct variant *v)
{
	const struct append *a = v->arg;
	int fd = device_open("append", PLOG_MODE_BATCH);
	int64_t end = device_end(fd);
	double start, cost;

	start = tick();
	for (int i = 0; i < a->ops; i++) {
		if (write(fd, a->batch.data, a->batch.size) != (ssize_t)a->batch.size)
			die("write to the device");
	}
	cost = (tick() - start) / a->ops;
	expect_records(v->name, device_end(fd) - end, (int64_t)a->ops * a->batch.records);
	close(fd);
	return cost;
}

/* The daemon's call: it has checked the records, the module checks header and CRC. */
static double run_daemon(const struct variant *v)
{
	const struct append *a = v->arg;
	int fd = device_open("append", PLOG_MODE_BATCH);
	struct plog_state state = {};
	double start, cost;

	if (ioctl(fd, PLOG_IOC_STATE, &state))
		die("PLOG_IOC_STATE");
	start = tick();
	for (int i = 0; i < a->ops; i++) {
		struct plog_append call = {
			.flags = PLOG_APPEND_DAEMON,
			.length = a->batch.size,
			.data = (uintptr_t)a->batch.data,
			.incarnation = a->incarnation,
			.leader_epoch = state.leader_epoch,
		};

		if (ioctl(fd, PLOG_IOC_APPEND, &call))
			die("PLOG_IOC_APPEND");
	}
	cost = (tick() - start) / a->ops;
	expect_records(v->name, device_end(fd) - state.log_end,
		       (int64_t)a->ops * a->batch.records);
	close(fd);
	return cost;
}

static void measure_size(const char *test, size_t size, uint64_t incarnation)
{
	struct append a = { .incarnation = incarnation };
	struct variant variants[] = {
		{ "file", run_file, &a },
		{ "write", run_write, &a },
		{ "daemon", run_daemon, &a },
	};

	batch_make(&a.batch, size);
	a.ops = (bench.count ? COUNTED_BYTES : TIMED_BYTES) / size;
	measure(test, variants, 3);
	free(a.batch.data);
}

void bench_append(void)
{
	struct plog_register reg = {};
	int control = open("/dev/plog-control", O_RDWR | O_CLOEXEC);

	if (control < 0)
		die("/dev/plog-control");
	if (ioctl(control, PLOG_IOC_REGISTER, &reg))
		die("PLOG_IOC_REGISTER");
	measure_size("append-16k", 16 << 10, reg.incarnation);
	measure_size("append-1m", 1 << 20, reg.incarnation);
	close(control);
}

/* ---- single records ---- */

/* What `echo` writes: a few words and a newline. */
#define VALUE "a line as echo has it\n"
#define VALUE_LEN (sizeof(VALUE) - 1)
#define PER_WRITEV 100

static int records(void)
{
	return bench.count ? 2000 : 20000 / BENCH_SLICES;
}

static double run_record_write(const struct variant *v)
{
	int fd = device_open("records", 0), n = records();
	int64_t end = device_end(fd);
	double start, cost;

	start = tick();
	for (int i = 0; i < n; i++) {
		if (write(fd, VALUE, VALUE_LEN) != VALUE_LEN)
			die("write of a record");
	}
	cost = (tick() - start) / n;
	expect_records(v->name, device_end(fd) - end, n);
	close(fd);
	return cost;
}

static double run_record_writev(const struct variant *v)
{
	int fd = device_open("records", 0), n = records() * 5 / PER_WRITEV;
	int64_t end = device_end(fd);
	struct iovec iov[PER_WRITEV];
	double start, cost;

	for (int i = 0; i < PER_WRITEV; i++)
		iov[i] = (struct iovec){ VALUE, VALUE_LEN };
	start = tick();
	for (int i = 0; i < n; i++) {
		if (writev(fd, iov, PER_WRITEV) != PER_WRITEV * VALUE_LEN)
			die("writev of records");
	}
	cost = (tick() - start) / n / PER_WRITEV;
	expect_records(v->name, device_end(fd) - end, (int64_t)n * PER_WRITEV);
	close(fd);
	return cost;
}

/* For the scale: the same words into a plain file, with no framing and no CRC. */
static double run_record_file(const struct variant *v)
{
	char path[PATH_MAX];
	int n = records(), fd;
	double start, cost;

	(void)v;
	snprintf(path, sizeof(path), "%s/../plain", bench.data);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		die(path);
	start = tick();
	for (int i = 0; i < n; i++) {
		if (write(fd, VALUE, VALUE_LEN) != VALUE_LEN)
			die(path);
	}
	cost = (tick() - start) / n;
	close(fd);
	return cost;
}

void bench_records(void)
{
	struct variant variants[] = {
		{ "write", run_record_write, NULL },
		{ "writev-100", run_record_writev, NULL },
		{ "file", run_record_file, NULL },
	};

	measure("records", variants, 3);
}
