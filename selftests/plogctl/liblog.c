// SPDX-License-Identifier: MIT
/*
 * The C library on the device.  Needs topics "lib" and "txn" with an empty partition
 * 0 and a compacted topic "keys"; prints lines of TAP without numbers, which
 * test_plogctl.sh counts on.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "plog.h"

static bool good;

#define CHECK(condition)						\
	do {								\
		if (!(condition)) {					\
			printf("# line %d: %s\n", __LINE__, #condition); \
			good = false;					\
		}							\
	} while (0)

static struct plog_record record(int64_t time, const char *key, const char *value)
{
	return (struct plog_record){
		.timestamp = time,
		.key = key, .key_length = key ? (int32_t)strlen(key) : -1,
		.value = value, .value_length = value ? (int32_t)strlen(value) : -1,
	};
}

static bool is(const void *bytes, int32_t length, const char *text)
{
	return text ? length == (int32_t)strlen(text) && !memcmp(bytes, text, length) :
		      length == -1;
}

static void opening(void)
{
	struct plog *log = NULL;

	CHECK(plog_open("none", 0, PLOG_OPEN_READ, &log) == -ENODEV);
	CHECK(!log);
	CHECK(plog_open("lib", 0, 0, &log) == -EINVAL);
	CHECK(plog_open("", 0, PLOG_OPEN_READ, &log) == -EINVAL);
	CHECK(plog_open("lib", 0, PLOG_OPEN_READ | 1u << 20, &log) == -EINVAL);
	CHECK(plog_open_path("/dev/null", PLOG_OPEN_READ, &log) == -ENOTTY);
	CHECK(plog_open_path("/dev/plog/lib/0", PLOG_OPEN_READ, &log) == 0);
	plog_close(log);
}

static void writing(void)
{
	const struct plog_header headers[] = {
		{ .key = "h", .key_length = 1, .value = "1", .value_length = 1 },
		{ .key = "n", .key_length = 1, .value_length = -1 },
	};
	struct plog_record r = record(1000, "k", "first");
	struct plog *log, *reader;
	struct plog_pack *pack;
	int64_t offset = -1;

	CHECK(plog_open("lib", 0, PLOG_OPEN_WRITE, &log) == 0);
	CHECK(plog_open("lib", 0, PLOG_OPEN_READ, &reader) == 0);
	CHECK(plog_put(reader, &r, 0, NULL) == -EBADF);
	CHECK(plog_next(log, &r, 0) == -EBADF);
	r = record(1000, "k", "first");
	r.headers = headers;
	r.header_count = 2;
	CHECK(plog_put(log, &r, PLOG_SYNC, &offset) == 0 && offset == 0);
	CHECK(plog_put(log, &r, 8, &offset) == -EINVAL);
	CHECK(plog_pack_new(0, &pack) == 0);
	CHECK(plog_append(log, pack, 0, NULL) == -EINVAL);
	for (int i = 0; i < 10; i++) {
		r = record(2000 + 10 * i, NULL, "packed");
		CHECK(plog_pack_add(pack, &r) == 0);
	}
	CHECK(plog_append(log, pack, 0, &offset) == 0 && offset == 1);
	plog_pack_clear(pack);
	r = record(3000, "gone", NULL);
	CHECK(plog_pack_add(pack, &r) == 0);
	CHECK(plog_append(log, pack, 0, &offset) == 0 && offset == 11);
	plog_pack_free(pack);
	plog_close(log);
	plog_close(reader);
}

static void reading(void)
{
	struct plog_record r;
	struct plog *log;

	CHECK(plog_open("lib", 0, PLOG_OPEN_READ, &log) == 0);
	CHECK(plog_next(log, &r, 0) == 1);
	CHECK(r.offset == 0 && r.timestamp == 1000 && is(r.key, r.key_length, "k"));
	CHECK(is(r.value, r.value_length, "first") && r.header_count == 2);
	CHECK(is(r.headers[0].value, r.headers[0].value_length, "1"));
	CHECK(r.headers[1].value_length == -1);
	for (int i = 0; i < 10; i++) {
		CHECK(plog_next(log, &r, 0) == 1);
		CHECK(r.offset == 1 + i && r.timestamp == 2000 + 10 * i && r.key_length == -1);
	}
	CHECK(plog_next(log, &r, 0) == 1 && r.value_length == -1);
	CHECK(plog_next(log, &r, 0) == 0);
	CHECK(plog_next(log, &r, 50) == 0);
	CHECK(plog_position(log) == 12);
	plog_close(log);
}

static void seeking(void)
{
	struct plog_record r;
	struct plog *log;

	CHECK(plog_open("lib", 0, PLOG_OPEN_READ | PLOG_OPEN_COMMITTED, &log) == 0);
	CHECK(plog_seek(log, 5) == 0 && plog_next(log, &r, 0) == 1 && r.offset == 5);
	CHECK(plog_seek(log, PLOG_OFFSET_BEGIN) == 0 && plog_next(log, &r, 0) == 1 &&
	      r.offset == 0);
	CHECK(plog_seek(log, PLOG_OFFSET_END) == 0 && plog_next(log, &r, 0) == 0);
	CHECK(plog_position(log) == 12);
	CHECK(plog_seek(log, PLOG_OFFSET_MAX_TIME) == 0 && plog_next(log, &r, 0) == 1 &&
	      r.offset == 11);
	CHECK(plog_seek(log, -4) == -EINVAL);
	CHECK(plog_seek(log, 13) == 0 && plog_next(log, &r, 0) == -ERANGE);
	CHECK(plog_seek_time(log, 0) == 0 && plog_position(log) == 0);
	CHECK(plog_seek_time(log, 2031) == 0 && plog_next(log, &r, 0) == 1 && r.offset == 5);
	CHECK(plog_seek_time(log, 3001) == -ENODATA && plog_position(log) == 6);
	plog_close(log);
}

static void *write_later(void *log)
{
	const struct timespec pause = { .tv_nsec = 300 * 1000 * 1000 };
	struct plog_record r = record(4000, NULL, "late");

	nanosleep(&pause, NULL);
	CHECK(plog_put(log, &r, 0, NULL) == 0);
	return NULL;
}

static void waiting(void)
{
	struct plog *reader, *writer;
	struct plog_record r;
	pthread_t thread;

	CHECK(plog_open("lib", 0, PLOG_OPEN_READ, &reader) == 0);
	CHECK(plog_open("lib", 0, PLOG_OPEN_WRITE, &writer) == 0);
	CHECK(plog_seek(reader, PLOG_OFFSET_END) == 0);
	pthread_create(&thread, NULL, write_later, writer);
	CHECK(plog_next(reader, &r, 10000) == 1 && is(r.value, r.value_length, "late"));
	pthread_join(thread, NULL);
	plog_close(reader);
	plog_close(writer);
}

static void cursor(void)
{
	static char bytes[1 << 16];
	struct plog_locate at;
	struct plog_record r;
	struct plog_walk *walk;
	size_t got = 0;
	struct plog *log;
	int pair[2], n = 0;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(plog_open("lib", 0, PLOG_OPEN_READ, &log) == 0);
	CHECK(plog_locate(log, 3, sizeof(bytes), &at) == 0);
	CHECK(at.length > 0 && at.base_offset == 1 && at.next_offset == 13);
	CHECK(plog_send(log, pair[0]) == (ssize_t)at.length);
	CHECK(plog_send(log, pair[0]) == 0);
	while (got < at.length) {
		ssize_t m = read(pair[1], bytes + got, sizeof(bytes) - got);

		if (m <= 0)
			break;
		got += m;
	}
	CHECK(got == at.length);
	CHECK(plog_walk_new(bytes, got, &walk) == 0);
	plog_walk_from(walk, 3);
	while (plog_walk_next(walk, &r) == 1)
		CHECK(r.offset == 3 + n++);
	CHECK(n == 10 && plog_walk_rest(walk) == 0);
	plog_walk_free(walk);
	/* the cursor does not disturb where records are read */
	CHECK(plog_next(log, &r, 0) == 1 && r.offset == 0);
	CHECK(plog_locate(log, 13, 100, &at) == 0 && at.length == 0);
	CHECK(plog_locate(log, 99, 100, &at) == -ERANGE);
	plog_close(log);
	close(pair[0]);
	close(pair[1]);
}

static void refusals(void)
{
	static char large[8192];
	struct plog_record r;
	struct plog *log;

	memset(large, 'x', sizeof(large) - 1);
	CHECK(plog_open("keys", 0, PLOG_OPEN_READ | PLOG_OPEN_WRITE, &log) == 0);
	r = record(1, NULL, "no key");
	CHECK(plog_put(log, &r, 0, NULL) == -EPERM);
	r = record(1, "k", large);	/* max.message.bytes is 4096 there */
	CHECK(plog_put(log, &r, 0, NULL) == -EMSGSIZE);
	CHECK(plog_next(log, &r, 0) == 0);
	r = record(1, "k", NULL);
	CHECK(plog_put(log, &r, 0, NULL) == 0);
	CHECK(plog_next(log, &r, 0) == 1 && r.offset == 0);
	plog_close(log);
}

/* ---- transactions, as a daemon appends them ---- */

uint32_t crc32c(uint32_t crc, const void *p, size_t n);	/* of the library */

static void put_be(uint8_t *p, int bytes, uint64_t value)
{
	while (bytes--) {
		p[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

/* Append @r as @producer's, with @attributes, and say where the last stable offset is then. */
static int append_of(int fd, uint64_t incarnation, const struct plog_record *r, int64_t producer,
		     int attributes, int64_t unstable)
{
	struct plog_state st = { 0 };
	struct plog_append arg = {
		.flags = PLOG_APPEND_DAEMON | PLOG_APPEND_UNSTABLE,
		.incarnation = incarnation,
		.first_unstable = unstable,
	};
	struct plog_pack *pack;
	const void *bytes;
	uint8_t batch[512];
	int ret;

	if (ioctl(fd, PLOG_IOC_STATE, &st))
		return -errno;
	arg.leader_epoch = st.leader_epoch;
	if (plog_pack_new(0, &pack) || plog_pack_add(pack, r))
		return -ENOMEM;
	arg.length = plog_pack_finish(pack, &bytes);
	if (arg.length > sizeof(batch))
		return -EMSGSIZE;
	memcpy(batch, bytes, arg.length);
	plog_pack_free(pack);
	put_be(batch + 21, 2, attributes);
	put_be(batch + 43, 8, producer);
	put_be(batch + 51, 2, 0);
	put_be(batch + 53, 4, 0);
	put_be(batch + 17, 4, crc32c(0, batch + 21, arg.length - 21));
	arg.data = (uintptr_t)batch;
	ret = ioctl(fd, PLOG_IOC_APPEND, &arg) ? -errno : 0;
	return ret;
}

static int append_marker(int fd, uint64_t incarnation, int64_t producer, char type,
			 int64_t unstable)
{
	const char key[4] = { 0, 0, 0, type }, value[6] = { 0 };
	struct plog_record r = { .timestamp = 5, .key = key, .key_length = 4, .value = value,
				 .value_length = 6 };

	return append_of(fd, incarnation, &r, producer, 0x30, unstable);
}

static void transactions(void)
{
	struct plog_register reg = { 0 };
	struct plog_bind bind = { .topic = "txn" };
	int control = open("/dev/plog-control", O_RDWR), fd = open("/dev/plog-control", O_RDWR);
	struct plog_record r = record(1, NULL, "kept"), lost = record(1, NULL, "lost");
	struct plog *all, *committed;
	char seen[16] = "";
	int64_t start;

	CHECK(!ioctl(control, PLOG_IOC_REGISTER, &reg));
	CHECK(!ioctl(fd, PLOG_IOC_BIND, &bind));
	CHECK(plog_open("txn", 0, PLOG_OPEN_READ, &all) == 0);
	CHECK(plog_open("txn", 0, PLOG_OPEN_READ | PLOG_OPEN_COMMITTED, &committed) == 0);
	CHECK(plog_seek(all, PLOG_OFFSET_END) == 0);
	start = plog_position(all);
	CHECK(plog_seek(committed, start) == 0);
	/* 8 commits, 9 aborts, their batches between each other */
	CHECK(!append_of(fd, reg.incarnation, &r, 8, 0x10, PLOG_UNSTABLE_HERE));
	CHECK(!append_of(fd, reg.incarnation, &lost, 9, 0x10, start));
	CHECK(!append_of(fd, reg.incarnation, &r, 8, 0x10, start));
	CHECK(plog_next(committed, &r, 0) == 0);
	CHECK(!append_marker(fd, reg.incarnation, 8, PLOG_CONTROL_COMMIT, start + 1));
	/* one is to be seen, though the marker that says so lies behind the end */
	CHECK(plog_next(committed, &r, 0) == 1 && is(r.value, r.value_length, "kept"));
	CHECK(plog_next(committed, &r, 0) == 0);
	CHECK(!append_marker(fd, reg.incarnation, 9, PLOG_CONTROL_ABORT, PLOG_UNSTABLE_NONE));
	CHECK(plog_next(committed, &r, 0) == 1 && is(r.value, r.value_length, "kept"));
	CHECK(r.offset == start + 2);
	CHECK(plog_next(committed, &r, 0) == 0);
	while (plog_next(all, &r, 0) > 0 && strlen(seen) < 8)
		strncat(seen, r.value, 1);
	CHECK(!strcmp(seen, "klk"));
	/* back, and again */
	CHECK(plog_seek(committed, start + 1) == 0);
	CHECK(plog_next(committed, &r, 0) == 1 && r.offset == start + 2);
	plog_close(committed);
	plog_close(all);
	close(fd);
	close(control);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{ "partitions are opened, or not", opening },
		{ "records and packs are appended", writing },
		{ "records are read with all that they carry", reading },
		{ "offsets and times are found", seeking },
		{ "a reader is woken", waiting },
		{ "a cursor goes through a socket", cursor },
		{ "what must not be appended is not", refusals },
		{ "aborted transactions are left out", transactions },
	};
	int status = 0;

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		good = true;
		tests[i].run();
		printf("%sok - C library: %s\n", good ? "" : "not ", tests[i].name);
		fflush(stdout);
		if (!good)
			status = 1;
	}
	return status;
}
