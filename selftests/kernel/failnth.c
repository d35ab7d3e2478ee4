// SPDX-License-Identifier: GPL-2.0
/*
 * Fail the first, second, third... allocation or user copy inside a call: it
 * fails with an error and changes nothing, or it works. Needs a kernel with
 * fault injection (CONFIG_FAULT_INJECTION and its FAILSLAB, FAIL_PAGE_ALLOC
 * and FAULT_INJECTION_USERCOPY).
 */
#include "fixture.h"

static bool knob(const char *name, const char *value)
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

static bool injection_ready(void)
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
static void grow_stack(void)
{
	volatile char deep[1 << 20];
	size_t i;

	for (i = 0; i < sizeof(deep); i += 1024)
		deep[i] = 1;
}

static void set_nth(int n)
{
	char buf[16];
	int len = snprintf(buf, sizeof(buf), "%d", n);

	/* this call itself may be the one that fails, and then the next one not */
	if (pwrite(nth_fd, buf, (size_t)len, 0) != len &&
	    pwrite(nth_fd, buf, (size_t)len, 0) != len)
		_exit(98);
}

/* Disarm; did the failure happen, and before this call? */
static bool fired(void)
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
			after;							\
			if (!fired_)						\
				break;						\
		}								\
		EXPECT_LT(0, failures_) {					\
			TH_LOG("no injected failure was seen");			\
		}								\
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

TEST_F_TIMEOUT(failnth, record_write, 120)
{
	int64_t end = 0;

	NEED_INJECTION();
	EACH_FAILURE(FAILS(write(self->fd, "record", 6)), GREW_BY(self->fd, 1));
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, large_record_write, 120)
{
	static char big[100000];
	int64_t end = 0;

	NEED_INJECTION();
	memset(big, 'b', sizeof(big));
	EACH_FAILURE(FAILS(write(self->fd, big, sizeof(big))), GREW_BY(self->fd, 1));
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, writev, 120)
{
	struct iovec iov[3] = { { "a", 1 }, { "b", 1 }, { "c", 1 } };
	int64_t end = 0;

	NEED_INJECTION();
	EACH_FAILURE(FAILS(writev(self->fd, iov, 3)), GREW_BY(self->fd, 3));
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, small_batch, 120)
{
	struct batch b;
	int64_t end = 0;

	NEED_INJECTION();
	ASSERT_TRUE(batch_fill(&b, 20000, 's'));
	EACH_FAILURE(-partition_append(self->batch, b.data, b.size, NULL),
		     GREW(self->batch, 1, true));
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, large_batch, 120)
{
	struct batch b;
	int64_t end = 0;

	NEED_INJECTION();
	ASSERT_TRUE(batch_fill(&b, 100000, 'l'));
	EACH_FAILURE(-partition_append(self->batch, b.data, b.size, NULL),
		     GREW(self->batch, 1, true));
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, pinned_batch, 120)
{
	int control = control_open(0);
	struct plog_append args;
	uint64_t incarnation;
	struct batch b;
	int64_t end = 0;

	NEED_INJECTION();
	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	ASSERT_TRUE(batch_fill(&b, 100000, 'p'));
	EACH_FAILURE(({
		args = (struct plog_append){
			.flags = PLOG_APPEND_DAEMON, .incarnation = incarnation,
			.leader_epoch = EPOCH,
		};
		-partition_append(self->batch, b.data, b.size, &args);
	}), GREW(self->batch, 1, true));
	LOG_IS_GOOD(self->batch, "c");
	close(control);
}

TEST_F_TIMEOUT(failnth, append_that_rolls, 200)
{
	struct nl_partition part = { .topic = "r", .segment_bytes = 2000 };
	struct batch b;
	int64_t end = 0;
	int fd;

	NEED_INJECTION();
	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("r", 0, PLOG_MODE_BATCH);
	/* each append needs a new segment */
	ASSERT_TRUE(batch_fill(&b, 1500, 'r'));
	EACH_FAILURE(-partition_append(fd, b.data, b.size, NULL), GREW(fd, 1, true));
	EXPECT_EQ(NULL, partition_check(fd, NULL));
	close(fd);
	batch_free(&b);
}

TEST_F_TIMEOUT(failnth, record_read, 120)
{
	char buf[64];
	int i;

	NEED_INJECTION();
	for (i = 0; i < 5; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	EACH_FAILURE(({
		lseek(self->fd, 2, SEEK_SET);
		memset(buf, 0, sizeof(buf));
		FAILS(read(self->fd, buf, sizeof(buf)));
	}), ({
		if (!err) {
			EXPECT_STREQ("record", buf);
			EXPECT_EQ(3, lseek(self->fd, 0, SEEK_CUR));
		} else {
			EXPECT_EQ(2, lseek(self->fd, 0, SEEK_CUR));
		}
	}));
}

TEST_F_TIMEOUT(failnth, bind, 120)
{
	struct plog_bind bind = { .topic = "t" };
	int fd = -1;

	NEED_INJECTION();
	EACH_FAILURE(({
		fd = open("/dev/plog-control", O_RDWR);
		fd < 0 ? errno : FAILS(ioctl(fd, PLOG_IOC_BIND, &bind));
	}), ({
		if (!err) {
			EXPECT_EQ(0, partition_end(fd));
		}
		if (fd >= 0)
			close(fd);
	}));
}

TEST_F_TIMEOUT(failnth, locate_and_splice, 120)
{
	struct plog_locate loc;
	int pipefd[2], i;
	static uint8_t buf[1 << 16];

	NEED_INJECTION();
	for (i = 0; i < 50; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	ASSERT_EQ(0, pipe(pipefd));
	EACH_FAILURE(({
		int ret_ = -partition_locate(self->batch, 10, 4000, 0, &loc);

		if (!ret_) {
			ssize_t n = splice(self->batch, NULL, pipefd[1], NULL, loc.length, 0);

			ret_ = n < 0 ? errno : 0;
			if (n > 0 && read(pipefd[0], buf, (size_t)n) != n)
				ret_ = ret_ ?: EIO;
		}
		ret_;
	}), (void)0);
	close(pipefd[0]);
	close(pipefd[1]);
}

TEST_F_TIMEOUT(failnth, lookup, 120)
{
	struct plog_lookup look;
	int i;

	NEED_INJECTION();
	for (i = 0; i < 50; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	EACH_FAILURE(({
		memset(&look, 0, sizeof(look));
		FAILS(ioctl(self->batch, PLOG_IOC_LOOKUP, &look));
	}), ({
		if (!err) {
			EXPECT_EQ(0, look.offset);
		}
	}));
}

TEST_F_TIMEOUT(failnth, registration, 120)
{
	int fd = -1;

	NEED_INJECTION();
	EACH_FAILURE(({
		int ret_;

		fd = control_open(0);
		ret_ = fd < 0 ? -fd : -control_register(fd, 0, NULL);
		ret_;
	}), ({
		struct nl_instance got;

		if (fd >= 0)
			close(fd);
		EXPECT_EQ(0, nl_instance_get(&self->in.nl, &got));
		EXPECT_EQ(0, got.incarnation);
	}));
}

TEST_F_TIMEOUT(failnth, partition_new_and_del, 300)
{
	struct nl_partition part = { .topic = "n" };

	NEED_INJECTION();
	ASSERT_EQ(0, mkdir(instance_path(&self->in, "n", 0, NULL), 0755));
	part.dir_fd = open(instance_path(&self->in, "n", 0, NULL), O_RDONLY | O_DIRECTORY);
	EACH_FAILURE(-nl_partition_new(&self->in.nl, &part), ({
		struct nl_partition got;

		/* the request may have worked and its answer been lost */
		if (!nl_partition_get(&self->in.nl, "n", 0, &got)) {
			instance_wait(&self->in, "n", 0);
			EXPECT_EQ(0, instance_delete(&self->in, "n", 0));
		}
	}));
	close(part.dir_fd);
}

TEST_F_TIMEOUT(failnth, partition_get_and_dump, 200)
{
	struct nl_partition got;
	char buf[NL_BUF_SIZE];

	NEED_INJECTION();
	EACH_FAILURE(-nl_partition_get(&self->in.nl, "t", 0, &got), (void)0);
	EACH_FAILURE(({
		struct nl nl;
		int ret_;

		/* a failed dump may leave the socket with messages in it */
		ret_ = nl_open(&nl);
		if (!ret_) {
			ret_ = nl_talk(&nl, nl_begin(&nl, buf, PLOG_CMD_PARTITION_GET,
						     NLM_F_DUMP), NULL, NULL);
			nl_close(&nl);
		}
		-ret_;
	}), (void)0);
}

TEST_F_TIMEOUT(failnth, instance_set, 300)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct nl_instance got;
	char dir[256], path[300];
	int dir_fd, lock_fd;
	struct nl nl;

	NEED_INJECTION();
	close(self->fd);
	close(self->batch);
	self->fd = self->batch = -1;
	ASSERT_EQ(0, instance_stop(&self->in));
	strcpy(dir, self->in.dir);
	snprintf(path, sizeof(path), "%s/.lock", dir);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	lock_fd = open(path, O_RDWR);
	ASSERT_EQ(0, fcntl(lock_fd, F_OFD_SETLK, &lock));
	ASSERT_EQ(0, nl_open(&nl));
	EACH_FAILURE(-nl_instance_set(&nl, dir, dir_fd, lock_fd), ({
		/* it may have worked and its answer been lost */
		while (!nl_instance_get(&nl, &got) && (got.state == PLOG_INSTANCE_RUNNING ||
						       got.state == PLOG_INSTANCE_STOPPING)) {
			if (got.state == PLOG_INSTANCE_RUNNING)
				nl_instance_stop(&nl);
			usleep(1000);
		}
	}));
	nl_close(&nl);
	close(dir_fd);
	close(lock_fd);
	ASSERT_EQ(0, instance_start(&self->in, dir));
}

SELFTEST_MAIN
