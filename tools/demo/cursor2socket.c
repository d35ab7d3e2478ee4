// SPDX-License-Identifier: MIT
/*
 * Sends a whole partition through a TCP socket by sendfile(2) from a cursor on
 * its device, decodes the batches at the other end, and writes the values to
 * standard output.
 *
 * The decoder is written here from the format's description and shares no
 * code with the project's own: what it accepts, a stranger would accept.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/plog.h>

#define CHUNK (1u << 20)

static void fail(const char *what)
{
	fprintf(stderr, "cursor2socket: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void corrupt(const char *what, uint64_t at)
{
	fprintf(stderr, "cursor2socket: byte %llu of the stream: %s\n", (unsigned long long)at,
		what);
	exit(1);
}

/* CRC-32C, bit by bit: slow and plain. */
static uint32_t crc32c(const uint8_t *p, size_t len)
{
	static uint32_t table[256];
	uint32_t crc = ~0u;

	if (!table[1]) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t c = i;

			for (int k = 0; k < 8; k++)
				c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
			table[i] = c;
		}
	}
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}

static uint32_t be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return be32toh(v);
}

static int64_t be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return (int64_t)be64toh(v);
}

/* A zigzag varint inside [*p, end). */
static int64_t varint(const uint8_t **p, const uint8_t *end, uint64_t at)
{
	uint64_t v = 0;
	int shift = 0;

	while (*p < end && shift < 64) {
		uint8_t byte = *(*p)++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
		shift += 7;
	}
	corrupt("a number runs out of its batch", at);
	return 0;
}

static uint64_t records;
static int64_t expected;

/* One record: prints its value, returns where the next one starts. */
static const uint8_t *record(const uint8_t *p, const uint8_t *end, int64_t base, uint64_t at)
{
	int64_t len = varint(&p, end, at), key, value, delta;
	const uint8_t *last;

	if (len < 1 || len > end - p)
		corrupt("a record is longer than its batch", at);
	last = p + len;
	p++; /* attributes: unused */
	varint(&p, last, at); /* timestamp delta */
	delta = varint(&p, last, at);
	if (base + delta != expected)
		corrupt("an offset is missing or comes twice", at);
	expected++;
	key = varint(&p, last, at);
	if (key > last - p)
		corrupt("a key is longer than its record", at);
	p += key > 0 ? key : 0;
	value = varint(&p, last, at);
	if (value > last - p)
		corrupt("a value is longer than its record", at);
	if (value > 0 && fwrite(p, 1, value, stdout) != (size_t)value)
		fail("standard output");
	records++;
	return last;
}

static void batch(const uint8_t *raw, uint32_t size, uint64_t at)
{
	const uint8_t *p = raw + 61, *end = raw + size;
	uint32_t count = be32(raw + 57);

	if (raw[16] != 2)
		corrupt("the magic is not 2", at);
	if (be32(raw + 17) != crc32c(raw + 21, size - 21))
		corrupt("the CRC does not match", at);
	if (raw[22] & 7)
		corrupt("the batch is compressed; this decoder opens none", at);
	if (be64(raw) != expected)
		corrupt("the batch does not follow the one before it", at);
	for (uint32_t i = 0; i < count; i++)
		p = record(p, end, be64(raw), at);
	if (p != end)
		corrupt("bytes are left behind the last record", at);
}

static void read_all(int fd, uint8_t *buf, size_t len, size_t *got)
{
	ssize_t n;

	for (*got = 0; *got < len; *got += n) {
		n = read(fd, buf + *got, len - *got);
		if (n < 0)
			fail("socket");
		if (!n)
			return;
	}
}

/* The far end: a stranger with nothing but the bytes of the stream. */
static int receive(int fd)
{
	uint8_t *buf = NULL;
	uint8_t head[12];
	uint64_t at = 0;
	uint32_t size;
	size_t got;

	for (;;) {
		read_all(fd, head, sizeof(head), &got);
		if (!got)
			break;
		size = got == sizeof(head) ? be32(head + 8) + 12 : 0;
		if (size < 61 || size > PLOG_MESSAGE_BYTES_MAX)
			corrupt("no batch begins here", at);
		buf = realloc(buf, size);
		if (!buf)
			fail("memory");
		memcpy(buf, head, sizeof(head));
		read_all(fd, buf + sizeof(head), size - sizeof(head), &got);
		if (got != size - sizeof(head))
			corrupt("the stream ends inside a batch", at);
		batch(buf, size, at);
		at += size;
	}
	free(buf);
	if (fflush(stdout))
		fail("standard output");
	fprintf(stderr, "records %llu bytes %llu\n", (unsigned long long)records,
		(unsigned long long)at);
	return 0;
}

/* Both ends of a TCP connection over the loopback device. */
static void tcp_pair(int fds[2])
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&addr, &len))
		fail("loopback socket");
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fds[0] < 0 || connect(fds[0], (struct sockaddr *)&addr, len))
		fail("loopback connection");
	fds[1] = accept(listener, NULL, NULL);
	if (fds[1] < 0)
		fail("loopback connection");
	close(listener);
}

static void send_partition(int fd, int sock)
{
	struct plog_mode mode = { .flags = PLOG_MODE_BATCH };
	struct plog_state state = {};
	struct plog_locate loc;
	int64_t offset;

	if (ioctl(fd, PLOG_IOC_SET_MODE, &mode))
		fail("batch mode");
	if (ioctl(fd, PLOG_IOC_STATE, &state))
		fail("state");
	for (offset = state.log_start; offset < state.high_watermark; offset = loc.next_offset) {
		uint32_t sent = 0;

		memset(&loc, 0, sizeof(loc));
		loc.offset = offset;
		loc.max_bytes = CHUNK;
		loc.flags = PLOG_LOCATE_WHOLE;
		if (ioctl(fd, PLOG_IOC_LOCATE, &loc))
			fail("locate");
		while (sent < loc.length) {
			ssize_t n = sendfile(sock, fd, NULL, loc.length - sent);

			if (n < 0)
				fail("sendfile");
			if (!n)
				break;
			sent += n;
		}
		if (sent != loc.length || !sent) {
			fprintf(stderr, "cursor2socket: offset %lld: %u of %u bytes were sent\n",
				(long long)offset, sent, loc.length);
			exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	int fds[2], fd, status;
	pid_t child;

	if (argc != 2) {
		fprintf(stderr, "Usage: cursor2socket DEVICE > VALUES\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail(argv[1]);
	tcp_pair(fds);
	child = fork();
	if (child < 0)
		fail("fork");
	if (!child) {
		close(fd);
		close(fds[0]);
		return receive(fds[1]);
	}
	close(fds[1]);
	send_partition(fd, fds[0]);
	close(fds[0]);
	if (waitpid(child, &status, 0) != child)
		fail("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
