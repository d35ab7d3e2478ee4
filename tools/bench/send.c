// SPDX-License-Identifier: MIT
/*
 * sendfile(2) to a loopback TCP socket: from a cursor on the device, and from
 * the very log file that lies behind it, so that both send the same pages.
 * The cursor's LOCATE is part of its cost.
 *
 * The far end throws the bytes away inside the kernel (MSG_TRUNC): a reader
 * that copies them would only hide the difference.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/plog.h>

#include "bench.h"

#define BATCH		(1u << 20)
#define TIMED_BATCHES	64
#define COUNTED_BATCHES	8

struct link {
	int tx, rx;
	pthread_t thread;
	_Atomic uint64_t want;	/* total of bytes after which the sink posts */
	uint64_t got;
	sem_t all;
	int batches;
};

static void *sink_main(void *arg)
{
	struct link *l = arg;
	cpu_set_t second;
	ssize_t n;

	/* Fails in a guest of one processor: then both share it. */
	CPU_ZERO(&second);
	CPU_SET(1, &second);
	sched_setaffinity(0, sizeof(second), &second);
	while ((n = recv(l->rx, NULL, 4 << 20, MSG_TRUNC)) > 0) {
		l->got += n;
		if (l->got == l->want)
			sem_post(&l->all);
	}
	if (n < 0)
		die("loopback socket");
	return NULL;
}

static void link_open(struct link *l)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&addr, &len))
		die("loopback socket");
	l->tx = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->tx < 0 || connect(l->tx, (struct sockaddr *)&addr, len))
		die("loopback connection");
	l->rx = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (l->rx < 0)
		die("loopback connection");
	close(listener);
	sem_init(&l->all, 0, 0);
	if (pthread_create(&l->thread, NULL, sink_main, l))
		die("thread");
}

static void send_exactly(struct link *l, int fd, off_t *pos, size_t len)
{
	while (len) {
		ssize_t n = sendfile(l->tx, fd, pos, len);

		if (n < 0)
			die("sendfile");
		if (!n) {
			fprintf(stderr, "plogbench: sendfile ends %zu bytes early\n", len);
			exit(1);
		}
		len -= n;
	}
}

static double run_file(const struct variant *v)
{
	struct link *l = v->arg;
	char path[PATH_MAX];
	double start, cost;
	off_t pos = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/read-0/00000000000000000000.log", bench.data);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(path);
	l->want += (uint64_t)l->batches * BATCH;
	start = tick();
	for (int i = 0; i < l->batches; i++)
		send_exactly(l, fd, &pos, BATCH);
	sem_wait(&l->all);
	cost = (tick() - start) / l->batches;
	close(fd);
	return cost;
}

static double run_device(const struct variant *v)
{
	struct link *l = v->arg;
	int fd = device_open("read", PLOG_MODE_BATCH);
	double start, cost;
	int64_t offset = 0;

	l->want += (uint64_t)l->batches * BATCH;
	start = tick();
	for (int i = 0; i < l->batches; i++) {
		struct plog_locate loc = {
			.offset = offset,
			.max_bytes = BATCH,
			.flags = PLOG_LOCATE_WHOLE,
		};

		if (ioctl(fd, PLOG_IOC_LOCATE, &loc))
			die("PLOG_IOC_LOCATE");
		if (loc.length != BATCH) {
			fprintf(stderr, "plogbench: the cursor has %u bytes\n", loc.length);
			exit(1);
		}
		send_exactly(l, fd, NULL, loc.length);
		offset = loc.next_offset;
	}
	sem_wait(&l->all);
	cost = (tick() - start) / l->batches;
	close(fd);
	return cost;
}

/* What both read: batches of 1 MiB, in the page cache. */
static void fill(int batches)
{
	int fd = device_open("read", PLOG_MODE_BATCH);
	struct batch b;

	batch_make(&b, BATCH);
	for (int i = 0; i < batches; i++) {
		if (write(fd, b.data, b.size) != (ssize_t)b.size)
			die("write to the device");
	}
	free(b.data);
	close(fd);
}

void bench_sendfile(void)
{
	struct link link = {
		.batches = bench.count ? COUNTED_BATCHES : TIMED_BATCHES,
	};
	struct variant variants[] = {
		{ "file", run_file, &link },
		{ "device", run_device, &link },
	};

	fill(link.batches);
	link_open(&link);
	measure("sendfile-1m", variants, 2);
	shutdown(link.tx, SHUT_WR);
	pthread_join(link.thread, NULL);
	close(link.tx);
	close(link.rx);
}
