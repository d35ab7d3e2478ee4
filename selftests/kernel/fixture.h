/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fixture that most of the tests use: a network namespace with an instance
 * of its own and topic "t" with one partition, bound once in each mode. The
 * teardown stops the instance, which must always work.
 */
#ifndef PLOG_SELFTESTS_FIXTURE_H
#define PLOG_SELFTESTS_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "batch.h"
#include "instance.h"

FIXTURE(log)
{
	struct instance in;
	int fd;			/* record mode, O_NONBLOCK */
	int batch;		/* batch mode, O_NONBLOCK */
};

FIXTURE_SETUP(log)
{
	int ret;

	self->fd = self->batch = -1;
	ASSERT_EQ(0, namespace_new());
	ret = instance_start(&self->in, NULL);
	ASSERT_EQ(0, ret) {
		TH_LOG("INSTANCE_SET: %s: %s", strerror(-ret), self->in.nl.error_text);
	}
	ret = instance_topic(&self->in, "t");
	ASSERT_EQ(0, ret) {
		TH_LOG("PARTITION_NEW: %s: %s", strerror(-ret), self->in.nl.error_text);
	}
	self->fd = partition_bind_flags("t", 0, 0, O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->batch = partition_bind_flags("t", 0, PLOG_MODE_BATCH, O_NONBLOCK);
	ASSERT_LE(0, self->batch);
}

FIXTURE_TEARDOWN(log)
{
	if (self->fd >= 0)
		close(self->fd);
	if (self->batch >= 0)
		close(self->batch);
	if (self->in.nl.socket) {
		EXPECT_EQ(0, instance_stop(&self->in));
	}
	instance_remove(&self->in);
}

/* fork(2) for helpers of a test: they end with it, however it ends. */
static inline pid_t child(void)
{
	pid_t parent = getpid(), pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

/* Keep only the tests whose names hold one of the arguments. */
static inline void only(int argc, char **argv)
{
	struct __fixture_metadata *f;
	int i;

	for (f = __fixture_list; f && argc > 1; f = f->next) {
		struct __test_metadata **t = &f->tests;

		while (*t) {
			bool wanted = false;

			for (i = 1; i < argc; i++)
				wanted |= strstr((*t)->name, argv[i]) != NULL;
			if (wanted)
				t = &(*t)->next;
			else
				*t = (*t)->next;
		}
	}
}

/* A debug kernel gets more time. */
static inline void stretch(void)
{
	struct __fixture_metadata *f;
	struct __test_metadata *t;

	for (f = __fixture_list; f; f = f->next)
		for (t = f->tests; t; t = t->next)
			t->timeout *= slow();
}

/* main(): PROGRAM [PART-OF-A-TEST'S-NAME]... */
#define SELFTEST_MAIN						\
	static void __attribute__((constructor))		\
	__constructor_order_last(void)				\
	{							\
		if (!__constructor_order)			\
			__constructor_order = _CONSTRUCTOR_ORDER_BACKWARD; \
	}							\
	int main(int argc, char **argv)				\
	{							\
		only(argc, argv);				\
		stretch();					\
		return test_harness_run(argc, argv);		\
	}

/* errno of a call that returns -1, else 0 */
#define FAILS(call) ((call) < 0 ? errno : 0)

/* An address that no process has. */
#define WILD ((void *)0xdead000000000000UL)

/* Two pages of which the second is not there; @size bytes end at the gap. */
static inline uint8_t *before_gap(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t span = (size + page - 1) & ~(page - 1);
	uint8_t *map = mmap(NULL, span + page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return NULL;
	munmap(map + span, page);
	return map + span - size;
}

/* Have these been readable at once? */
static inline short polled(int fd, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	return poll(&pfd, 1, timeout_ms) > 0 ? pfd.revents : 0;
}

/* @call fails with @error and says why in its extended ack. */
#define EXPECT_REFUSED(error, call)						\
	do {									\
		EXPECT_EQ(-(error), call);					\
		EXPECT_STRNE("", self->in.nl.error_text) {			\
			TH_LOG("a refusal without a text");			\
		}								\
	} while (0)

/* The same where any error will do; then what to say of a call that worked. */
#define EXPECT_REFUSED_SOMEHOW(call, ...)					\
	do {									\
		EXPECT_GT(0, call) {						\
			TH_LOG("" __VA_ARGS__);					\
		}								\
		EXPECT_STRNE("", self->in.nl.error_text) {			\
			TH_LOG("a refusal without a text " __VA_ARGS__);	\
		}								\
	} while (0)

#endif
