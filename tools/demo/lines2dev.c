// SPDX-License-Identifier: MIT
/*
 * Writes each line of standard input to a partition's device as one record.
 *
 * A line keeps its newline: it is then never empty, and a consumer that
 * prints values one after the other prints the input again.  write(2) returns
 * when the record is in the log, so the count printed at the end is the count
 * of acknowledged records.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"Usage: lines2dev [-b N] [-w N:FILE]... DEVICE < LINES\n"
	"\n"
	"Writes each line of standard input, newline included, to DEVICE as one record.\n"
	"\n"
	"  -b N       N lines in one writev(2): one batch (default 1: write(2) each)\n"
	"  -w N:FILE  after N lines wait until FILE exists; up to 8 of them, in order\n"
	"\n"
	"Prints 'records N bytes B seconds S' on standard error. Exit status: 0 all\n"
	"lines were taken, 1 one was refused or the input could not be read, 2 usage.\n";

static char *input;
static size_t input_len;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* All of standard input into memory: reading is then no part of the time. */
static int slurp(void)
{
	size_t room = 1 << 20;
	ssize_t n;

	input = malloc(room);
	while (input) {
		n = read(STDIN_FILENO, input + input_len, room - input_len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -1 : 0;
		input_len += n;
		if (input_len == room) {
			char *more = realloc(input, room * 2);

			if (!more)
				break;
			input = more;
			room *= 2;
		}
	}
	errno = ENOMEM;
	return -1;
}

/* Where to wait, and for what. */
static struct stop {
	unsigned long lines;
	const char *file;
} stops[8];
static int nstops;

static int stop_add(const char *text)
{
	char *end;

	if (nstops == sizeof(stops) / sizeof(stops[0]))
		return -1;
	stops[nstops].lines = strtoul(text, &end, 10);
	if (end == text || *end != ':' || !end[1])
		return -1;
	stops[nstops++].file = end + 1;
	return 0;
}

static void stop_at(unsigned long lines)
{
	static int next;
	struct timespec ts = { .tv_nsec = 20000000 };

	for (; next < nstops && lines >= stops[next].lines; next++)
		while (access(stops[next].file, F_OK))
			nanosleep(&ts, NULL);
}

static int send_lines(int fd, const char *device, int batch)
{
	struct iovec iov[IOV_MAX];
	unsigned long records = 0;
	const char *p = input, *end = input + input_len;
	double start = now();

	while (p < end) {
		size_t want = 0;
		ssize_t n;
		int i;

		for (i = 0; i < batch && p < end; i++) {
			const char *nl = memchr(p, '\n', end - p);
			size_t len = (nl ? nl + 1 : end) - p;

			iov[i].iov_base = (char *)p;
			iov[i].iov_len = len;
			want += len;
			p += len;
		}
		do {
			n = i == 1 ? write(fd, iov[0].iov_base, want) : writev(fd, iov, i);
		} while (n < 0 && errno == EINTR);
		if (n != (ssize_t)want) {
			fprintf(stderr, "lines2dev: %s: line %lu: %s\n", device, records + 1,
				n < 0 ? strerror(errno) : "only a part was taken");
			return 1;
		}
		records += i;
		stop_at(records);
	}
	fprintf(stderr, "records %lu bytes %zu seconds %.2f\n", records, input_len, now() - start);
	return 0;
}

int main(int argc, char **argv)
{
	int batch = 1;
	int opt, fd;

	while ((opt = getopt(argc, argv, "b:w:h")) != -1) {
		switch (opt) {
		case 'b':
			batch = atoi(optarg);
			break;
		case 'w':
			if (stop_add(optarg)) {
				fputs(usage, stderr);
				return 2;
			}
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind != argc - 1 || batch < 1 || batch > IOV_MAX) {
		fputs(usage, stderr);
		return 2;
	}
	if (slurp()) {
		fprintf(stderr, "lines2dev: standard input: %s\n", strerror(errno));
		return 1;
	}
	fd = open(argv[optind], O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "lines2dev: %s: %s\n", argv[optind], strerror(errno));
		return 1;
	}
	return send_lines(fd, argv[optind], batch);
}
