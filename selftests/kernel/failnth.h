/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fail the first, second, third... allocation or user copy inside a call: it
 * fails with an error and changes nothing, or it works. See inject.h for what the
 * kernel needs.
 */
#ifndef PLOG_SELFTESTS_FAILNTH_H
#define PLOG_SELFTESTS_FAILNTH_H

#include "fixture.h"
#include "inject.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static bool armed;

static inline void set_nth(int n)
{
	char buf[16];
	int len = snprintf(buf, sizeof(buf), "%d", n);

	armed = n;
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

#define MAX_NTH 400

/*
 * Every call that there is: each is met with failures by the tests of failnth.c, or of
 * failnth_daemon.c (@daemon).  Commands that are events alone are nobody's to call.
 */
struct known {
	const char *name;
	unsigned int number;
	bool daemon, event;
};

#define IOC(name_, daemon_)	{ "PLOG_IOC_" #name_, _IOC_NR(PLOG_IOC_##name_), daemon_, false }
#define CMD(name_, daemon_)	{ "PLOG_CMD_" #name_, PLOG_CMD_##name_, daemon_, false }
#define NTF(name_)		{ "PLOG_CMD_" #name_, PLOG_CMD_##name_, false, true }

static const struct known known_ioctls[] = {
	IOC(INFO, false), IOC(BIND, false), IOC(REGISTER, false), IOC(SET_MODE, false),
	IOC(STATE, false), IOC(APPEND, false), IOC(LOCATE, false), IOC(LOOKUP, false),
	IOC(CONTROL, false), IOC(HEADERS, false), IOC(PRODUCER, false), IOC(EPOCH, false),
	IOC(LEAD, true), IOC(LEASE, true), IOC(SWAP, true),
};

static const struct known known_commands[] = {
	CMD(INSTANCE_GET, true), CMD(INSTANCE_SET, false), CMD(INSTANCE_STOP, false),
	NTF(INSTANCE_NTF), CMD(PARTITION_NEW, false), CMD(PARTITION_DEL, false),
	CMD(PARTITION_GET, false), CMD(PARTITION_SET, false), NTF(PARTITION_NTF),
	CMD(STATS_GET, false), CMD(SEGMENT_GET, false), CMD(RELAY_REQUEST, true),
	CMD(RELAY_REPLY, true), CMD(RETENTION_RUN, false), CMD(PARTITION_ROLL, false),
	CMD(PARTITION_DELETE_RECORDS, false), CMD(RETIRED_GET, false), CMD(RETIRED_TAKE, true),
	CMD(RETIRED_DONE, true), NTF(RETIRED_NTF), CMD(EPOCH_GET, true),
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

_Static_assert(LENGTH(known_ioctls) == PLOG_IOCTLS, "an ioctl of plog.h is not in known_ioctls");
_Static_assert(LENGTH(known_commands) == PLOG_CMD_MAX,
	       "a command of plog_netlink.h is not in known_commands");

/* Of all tests, each of which is a process: what came out where an n-th point failed. */
static struct totals {
	unsigned int calls;	/* different ones */
	unsigned int points;	/* that were failed */
	unsigned int memory;	/* that gave ENOMEM: slab and pages */
	unsigned int copies;	/* EFAULT: user copies */
	unsigned int others;
	unsigned int survived;	/* the call worked all the same */
	bool ioctls[1 << _IOC_NRBITS];	/* that were called with a failure ahead */
	bool commands[PLOG_CMD_MAX + 1];
} *totals;

static pid_t first_process;

/* Every ioctl of the program comes through here. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (armed && _IOC_TYPE(request) == PLOG_IOC_MAGIC)
		totals->ioctls[_IOC_NR(request)] = true;
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

static void on_request(uint8_t cmd)
{
	if (armed && cmd <= PLOG_CMD_MAX)
		totals->commands[cmd] = true;
}

__attribute__((constructor)) static void make_totals(void)
{
	nl_on_request = on_request;
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
 * Run @call with its n-th allocation failing, for n = 1, 2, ... until it gets
 * through without one failing; each time @after, with the errno in "err".
 */
#define EACH_FAILURE(call, after)						\
	do {									\
		int n_, failures_ = 0;						\
		for (n_ = 1; n_ < MAX_NTH; n_++) {				\
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

/* The last test of a program: has each call that is its own been met? Else its name. */
static inline const char *missed(const struct known *k, size_t count, const bool *met,
				 bool daemon)
{
	for (; count--; k++)
		if (!k->event && k->daemon == daemon && !met[k->number])
			return k->name;
	return NULL;
}

#define MET_ALL(daemon)								\
	do {									\
		EXPECT_EQ(NULL, missed(known_ioctls, LENGTH(known_ioctls),	\
				       totals->ioctls, daemon));		\
		EXPECT_EQ(NULL, missed(known_commands, LENGTH(known_commands),	\
				       totals->commands, daemon));		\
	} while (0)

#define IOCTL(fd, cmd, type, ...)						\
	({									\
		struct type arg_ = { __VA_ARGS__ };				\
		FAILS(ioctl(fd, cmd, &arg_));					\
	})

#endif
