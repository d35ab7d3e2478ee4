/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fail the first, second, third... allocation or user copy inside a call: it
 * fails with an error and changes nothing, or it works. Needs a kernel with
 * fault injection (CONFIG_FAULT_INJECTION and its FAILSLAB, FAIL_PAGE_ALLOC
 * and FAULT_INJECTION_USERCOPY).
 */
#ifndef PLOG_SELFTESTS_FAILNTH_H
#define PLOG_SELFTESTS_FAILNTH_H

#include "fixture.h"

#include <sys/mman.h>

static inline bool knob(const char *name, const char *value)
{
	char path[200];
	int fd, ret;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s", name);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return false;
	ret = (int)write(fd, value, strlen(value));
	close(fd);
	return ret > 0;
}

static int nth_fd = -1;

static inline bool injection_ready(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/fail-nth", gettid());
	nth_fd = open(path, O_RDWR);
	if (nth_fd < 0)
		return false;
	/* quietly: the stack of each injected failure would fill the log */
	knob("failslab/verbose", "0");
	knob("fail_page_alloc/verbose", "0");
	knob("fail_usercopy/verbose", "0");
	return knob("failslab/ignore-gfp-wait", "N") &&
	       knob("fail_page_alloc/ignore-gfp-wait", "N") &&
	       knob("fail_page_alloc/ignore-gfp-highmem", "N") &&
	       knob("fail_page_alloc/min-order", "0");
}

/* The stack must not want to grow while an allocation is to fail: SIGSEGV. */
static inline void grow_stack(void)
{
	volatile char deep[1 << 20];
	size_t i;

	for (i = 0; i < sizeof(deep); i += 1024)
		deep[i] = 1;
}

static inline void set_nth(int n)
{
	char buf[16];
	int len = snprintf(buf, sizeof(buf), "%d", n);

	/* this call itself may be the one that fails, and then the next one not */
	if (pwrite(nth_fd, buf, (size_t)len, 0) != len &&
	    pwrite(nth_fd, buf, (size_t)len, 0) != len)
		_exit(98);
}

/* Disarm; did the failure happen, and before this call? */
static inline bool fired(void)
{
	char buf[16] = "";
	bool before;

	before = pread(nth_fd, buf, sizeof(buf) - 1, 0) > 0 && atoi(buf) == 0;
	set_nth(0);
	return before;
}

#define NEED_INJECTION()							\
	do {									\
		if (nth_fd < 0)							\
			SKIP(return, "no fault injection in this kernel");	\
	} while (0)

#define MAX_NTH 400

/* Of all tests, each of which is a process: what came out where an n-th point failed. */
static struct totals {
	unsigned int calls;	/* different ones */
	unsigned int points;	/* that were failed */
	unsigned int memory;	/* that gave ENOMEM: slab and pages */
	unsigned int copies;	/* EFAULT: user copies */
	unsigned int others;
	unsigned int survived;	/* the call worked all the same */
} *totals;

static pid_t first_process;

__attribute__((constructor)) static void make_totals(void)
{
	totals = mmap(NULL, sizeof(*totals), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	first_process = getpid();
}

static inline void count_point(int err)
{
	unsigned int *n = err == ENOMEM ? &totals->memory : err == EFAULT ? &totals->copies :
			  err ? &totals->others : &totals->survived;

	__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&totals->points, 1, __ATOMIC_RELAXED);
}

__attribute__((destructor)) static void print_totals(void)
{
	if (getpid() == first_process && totals->calls)
		printf("# fail-nth: %u calls, %u failure points reached: %u out of memory, %u user copies, %u others, %u that did no harm\n",
		       totals->calls, totals->points, totals->memory, totals->copies,
		       totals->others, totals->survived);
}

/*
 * Run @call with its n-th allocation failing, for n = 1, 2, ... (in growing
 * steps: page after page of a large batch is the same) until it gets through
 * without one failing; then @after, with the errno in "err".
 */
#define EACH_FAILURE(call, after)						\
	do {									\
		int n_, failures_ = 0;						\
		for (n_ = 1; n_ < MAX_NTH; n_ += 1 + n_ / 24) {			\
			int err;						\
			bool fired_;						\
			set_nth(n_);						\
			err = (call);						\
			fired_ = fired();					\
			if (!fired_) {						\
				EXPECT_EQ(0, err);				\
			}							\
			EXPECT_TRUE(err == 0 || err == ENOMEM || err == EFAULT ||	\
				    err == EIO || err == ENOSPC || err == ENOBUFS ||	\
				    err == ENFILE) {				\
				TH_LOG("failure %d gave %s", n_, strerror(err));	\
			}							\
			failures_ += err != 0;					\
			if (fired_)						\
				count_point(err);				\
			after;							\
			if (!fired_)						\
				break;						\
		}								\
		EXPECT_LT(0, failures_) {					\
			TH_LOG("no injected failure was seen");			\
		}								\
		TH_LOG("%s: %d failures at %d points", #call, failures_, n_ - 1);	\
		__atomic_fetch_add(&totals->calls, 1, __ATOMIC_RELAXED);	\
		EXPECT_GT(MAX_NTH, n_);						\
	} while (0)

FIXTURE(failnth)
{
	struct instance in;
	int fd;
	int batch;
};

FIXTURE_SETUP(failnth)
{
	/* the tests themselves skip: SKIP() here would run them all the same */
	if (!injection_ready()) {
		nth_fd = -1;
		return;
	}
	grow_stack();
	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	self->fd = partition_bind_flags("t", 0, 0, O_NONBLOCK);
	self->batch = partition_bind("t", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, self->batch);
}

FIXTURE_TEARDOWN(failnth)
{
	if (nth_fd < 0 || !self->in.nl.socket)
		return;
	close(self->fd);
	close(self->batch);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
}

/*
 * After an append: the log grew by one if it worked, by nothing if not. But for
 * an ioctl whose answer could not be copied out: @lost.
 */
#define GREW(fd, by, lost)							\
	do {									\
		int64_t now_ = partition_end(fd);				\
		if (!(lost) || err != EFAULT || now_ != end + (by)) {		\
			EXPECT_EQ(end + (err ? 0 : (by)), now_);		\
		}								\
		end = now_;							\
	} while (0)
#define GREW_BY(fd, by) GREW(fd, by, false)

#define LOG_IS_GOOD(fd, name)							\
	do {									\
		int n_, copy_;							\
		EXPECT_EQ(NULL, partition_check(fd, NULL));			\
		ASSERT_EQ(0, instance_open_copy(&self->in,			\
			instance_path(&self->in, "t", 0, NULL), name));		\
		copy_ = partition_bind(name, 0, PLOG_MODE_BATCH);		\
		EXPECT_EQ(partition_end(fd), partition_end(copy_));		\
		EXPECT_EQ(NULL, partition_check(copy_, &n_));			\
		close(copy_);							\
	} while (0)

#define IOCTL(fd, cmd, type, ...)						\
	({									\
		struct type arg_ = { __VA_ARGS__ };				\
		FAILS(ioctl(fd, cmd, &arg_));					\
	})

#endif
