// SPDX-License-Identifier: GPL-2.0
/*
 * Leadership: the role that a daemon gives, its lease, fencing by epoch and
 * incarnation, and writers that wait for all replicas.
 */
#include <time.h>

#include "fixture.h"

FIXTURE(lease)
{
	struct instance in;
	int control;
	int fd;			/* record mode, acks=all */
	int batch;		/* batch mode */
	uint64_t incarnation;
};

FIXTURE_SETUP(lease)
{
	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	self->control = control_open(0);
	ASSERT_EQ(0, control_register(self->control, 0, &self->incarnation));
	self->fd = partition_bind("t", 0, PLOG_MODE_ACKS_ALL);
	ASSERT_LE(0, self->fd);
	self->batch = partition_bind("t", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, self->batch);
}

FIXTURE_TEARDOWN(lease)
{
	close(self->control);
	close(self->fd);
	close(self->batch);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
}

static int lead_as(int fd, uint64_t incarnation, int32_t epoch, uint32_t flags)
{
	struct plog_lead arg = {
		.flags = flags, .leader_epoch = epoch, .incarnation = incarnation,
	};

	return ioctl(fd, PLOG_IOC_LEAD, &arg) ? -errno : 0;
}

#define LEAD(epoch, flags) lead_as(self->batch, self->incarnation, epoch, flags)
#define LEADER (PLOG_LEAD_REPLICATED | PLOG_LEAD_LEADER)
#define FOLLOWER PLOG_LEAD_REPLICATED

/* Nanoseconds of CLOCK_BOOTTIME. */
static int64_t boottime(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int lease(int fd, int64_t deadline)
{
	struct plog_lease arg = { .deadline = deadline };

	return ioctl(fd, PLOG_IOC_LEASE, &arg) ? -errno : 0;
}

static int append(int fd, uint64_t incarnation, int32_t epoch, uint32_t flags)
{
	struct plog_append arg = {
		.flags = flags, .incarnation = incarnation, .leader_epoch = epoch,
	};
	struct batch b;
	int ret;

	if (!batch_text(&b, "x"))
		return -ENOMEM;
	batch_put(b.data, AT_BASE_OFFSET, 8, (uint64_t)partition_end(fd));
	batch_put(b.data, AT_EPOCH, 4, (uint32_t)epoch);
	ret = partition_append(fd, b.data, b.size, &arg);
	batch_free(&b);
	return ret;
}

#define DAEMON_APPEND(epoch) append(self->batch, self->incarnation, epoch, PLOG_APPEND_DAEMON)
#define LOCAL_APPEND() append(self->batch, 0, -1, 0)

static int move_hw(int fd, uint64_t incarnation, int32_t epoch, int64_t to)
{
	return partition_control(fd, PLOG_CONTROL_HIGH_WATERMARK, incarnation, epoch, to);
}

TEST_F(lease, role_changes_in_one_step)
{
	struct plog_lead arg = { .flags = LEADER, .leader_epoch = 4 };
	struct plog_state state;

	ASSERT_EQ(0, LOCAL_APPEND());
	arg.incarnation = self->incarnation;
	ASSERT_EQ(0, ioctl(self->batch, PLOG_IOC_LEAD, &arg));
	EXPECT_EQ(1, arg.log_end);
	EXPECT_EQ(1, arg.high_watermark);
	ASSERT_EQ(0, partition_state(self->batch, &state));
	EXPECT_EQ(PLOG_STATE_REPLICATED | PLOG_STATE_LEADER, state.flags);
	EXPECT_EQ(4, state.leader_epoch);
	/* the high watermark is the daemon's from here on */
	ASSERT_EQ(0, LOCAL_APPEND());
	ASSERT_EQ(0, partition_state(self->batch, &state));
	EXPECT_EQ(1, state.high_watermark);
	EXPECT_EQ(2, state.log_end);
	ASSERT_EQ(0, LEAD(5, FOLLOWER));
	EXPECT_EQ(-EROFS, LOCAL_APPEND());
	EXPECT_EQ(-EROFS, DAEMON_APPEND(5));
	EXPECT_EQ(0, append(self->batch, self->incarnation, 5,
			    PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA));
	ASSERT_EQ(0, LEAD(6, LEADER | PLOG_LEAD_BELOW_MIN_ISR));
	ASSERT_EQ(0, partition_state(self->batch, &state));
	EXPECT_EQ(PLOG_STATE_REPLICATED | PLOG_STATE_LEADER | PLOG_STATE_BELOW_MIN_ISR,
		  state.flags);
	/* not replicated any more: all of it is committed */
	ASSERT_EQ(0, LEAD(7, 0));
	ASSERT_EQ(0, partition_state(self->batch, &state));
	EXPECT_EQ(state.log_end, state.high_watermark);
	EXPECT_EQ(0, state.flags);
}

TEST_F(lease, lead_is_refused)
{
	struct plog_lead arg = { .leader_epoch = 1, .incarnation = self->incarnation };
	int ro, other;

	EXPECT_EQ(-EINVAL, LEAD(1, 1u << 3));
	EXPECT_EQ(-EINVAL, LEAD(-1, LEADER));
	arg.reserved[0] = 1;
	EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_LEAD, &arg)));
	EXPECT_EQ(EFAULT, FAILS(ioctl(self->batch, PLOG_IOC_LEAD, WILD)));
	EXPECT_EQ(-ESTALE, lead_as(self->batch, self->incarnation + 1, 1, LEADER));
	EXPECT_EQ(-ESTALE, lead_as(self->batch, 0, 1, LEADER));
	ASSERT_EQ(0, LEAD(3, LEADER));
	EXPECT_EQ(-ESTALE, LEAD(2, LEADER));
	EXPECT_EQ(0, LEAD(3, LEADER));
	arg.reserved[0] = 0;
	ro = open("/dev/plog-control", O_RDONLY);
	ASSERT_LE(0, ro);
	EXPECT_EQ(ENOTCONN, FAILS(ioctl(ro, PLOG_IOC_LEAD, &arg)));
	close(ro);
	/* another daemon takes over: the old one's calls are over */
	other = control_open(0);
	ASSERT_EQ(0, control_register(other, 0, NULL));
	EXPECT_EQ(-ESTALE, LEAD(4, LEADER));
	EXPECT_EQ(-ESTALE, lease(self->control, 1));
	EXPECT_EQ(-ESTALE, DAEMON_APPEND(3));
	EXPECT_EQ(-ESTALE, move_hw(self->batch, self->incarnation, 3, 0));
	close(other);
}

TEST_F(lease, older_epochs_are_fenced)
{
	ASSERT_EQ(0, LEAD(3, LEADER));
	EXPECT_EQ(0, DAEMON_APPEND(3));
	EXPECT_EQ(0, move_hw(self->batch, self->incarnation, 3, 1));
	ASSERT_EQ(0, LEAD(4, LEADER));
	EXPECT_EQ(-ESTALE, DAEMON_APPEND(3));
	EXPECT_EQ(-ESTALE, move_hw(self->batch, self->incarnation, 3, 1));
	EXPECT_EQ(-ESTALE, partition_control(self->batch, PLOG_CONTROL_TRUNCATE,
					     self->incarnation, 3, 0));
	EXPECT_EQ(0, DAEMON_APPEND(4));
	EXPECT_EQ(2, partition_end(self->batch));
}

TEST_F(lease, configuration_does_not_change_the_role)
{
	struct nl_partition part = { .topic = "t", .dir_fd = -1, .segment_ms = 60000 };
	struct nl_partition got = { 0 };
	struct plog_state state;
	int i;

	ASSERT_EQ(0, LEAD(3, FOLLOWER));
	ASSERT_EQ(0, nl_partition_set(&self->in.nl, &part));
	for (i = 0; i < 1000 && got.segment_ms != 60000; i++) {
		ASSERT_EQ(0, nl_partition_get(&self->in.nl, "t", 0, &got));
		usleep(1000);
	}
	/* it follows in the background */
	usleep(100000);
	ASSERT_EQ(0, partition_state(self->batch, &state));
	EXPECT_EQ(PLOG_STATE_REPLICATED, state.flags);
	EXPECT_EQ(-EROFS, LOCAL_APPEND());
}

TEST_F(lease, appends_end_with_the_lease)
{
	EXPECT_EQ(-ESTALE, lease(self->batch, boottime()));
	EXPECT_EQ(-EINVAL, lease(self->control, -1));
	/* who is not replicated does not care */
	ASSERT_EQ(0, lease(self->control, 1));
	EXPECT_EQ(0, LOCAL_APPEND());
	ASSERT_EQ(0, LEAD(1, LEADER));
	EXPECT_EQ(-EKEYEXPIRED, LOCAL_APPEND());
	EXPECT_EQ(-EKEYEXPIRED, DAEMON_APPEND(1));
	EXPECT_EQ(1, partition_end(self->batch));
	ASSERT_EQ(0, lease(self->control, boottime() + 3600 * 1000000000LL));
	EXPECT_EQ(0, LOCAL_APPEND());
	EXPECT_EQ(0, DAEMON_APPEND(1));
	/* it runs out by itself */
	ASSERT_EQ(0, lease(self->control, boottime() + 100000000));
	usleep(110000);
	EXPECT_EQ(-EKEYEXPIRED, LOCAL_APPEND());
	/* a follower goes on, and so do all without a lease */
	ASSERT_EQ(0, LEAD(2, FOLLOWER));
	EXPECT_EQ(0, append(self->batch, self->incarnation, 2,
			    PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA));
	ASSERT_EQ(0, LEAD(3, LEADER));
	ASSERT_EQ(0, lease(self->control, 0));
	EXPECT_EQ(0, LOCAL_APPEND());
	ASSERT_EQ(0, LEAD(4, 0));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

TEST_F(lease, outlives_its_daemon)
{
	uint64_t next;

	ASSERT_EQ(0, LEAD(1, LEADER));
	ASSERT_EQ(0, lease(self->control, boottime() + 200000000));
	close(self->control);
	EXPECT_EQ(0, LOCAL_APPEND());
	usleep(210000);
	EXPECT_EQ(-EKEYEXPIRED, LOCAL_APPEND());
	self->control = control_open(0);
	ASSERT_EQ(0, control_register(self->control, 0, &next));
	EXPECT_EQ(-EKEYEXPIRED, LOCAL_APPEND());
	ASSERT_EQ(0, lease(self->control, boottime() + 3600 * 1000000000LL));
	EXPECT_EQ(0, LOCAL_APPEND());
}

/* Writers while the lease comes and goes: what was refused is not in the log. */
TEST_F(lease, runs_out_under_writers)
{
	struct batch big;
	int i, batches, fds[2], taken = 0, got;
	pid_t pid[4];

	ASSERT_EQ(0, LEAD(1, LEADER));
	ASSERT_EQ(0, pipe(fds));
	ASSERT_TRUE(batch_fill(&big, 300000, 'b'));
	for (i = 0; i < 4; i++) {
		pid[i] = child();
		if (!pid[i]) {
			struct plog_append arg;
			int64_t until = now_ms() + 1500;
			int ret;

			got = 0;
			while (now_ms() < until) {
				memset(&arg, 0, sizeof(arg));
				arg.leader_epoch = -1;
				if (i & 1) {
					arg.flags = PLOG_APPEND_DAEMON;
					arg.leader_epoch = 1;
					arg.incarnation = self->incarnation;
				}
				ret = partition_append(self->batch, big.data, big.size, &arg);
				if (ret && ret != -EKEYEXPIRED)
					_exit(1);
				got += !ret;
			}
			_exit(write(fds[1], &got, sizeof(got)) != sizeof(got));
		}
	}
	/* at first it runs out in each round; where processors are busy few appends make it then */
	for (i = 0; i < 60; i++) {
		ASSERT_EQ(0, lease(self->control, boottime() + 5000000 * (1 + i / 6)));
		usleep(20000);
	}
	ASSERT_EQ(0, lease(self->control, 0));
	for (i = 0; i < 4; i++) {
		int status;

		ASSERT_EQ(sizeof(got), read(fds[0], &got, sizeof(got)));
		taken += got;
		waitpid(pid[i], &status, 0);
		EXPECT_EQ(0, WEXITSTATUS(status));
	}
	EXPECT_LT(0, taken);
	EXPECT_EQ(taken, partition_end(self->batch));
	ASSERT_EQ(0, move_hw(self->batch, self->incarnation, 1, taken));
	EXPECT_EQ(NULL, partition_check(self->batch, &batches));
	EXPECT_EQ(taken, batches);
	batch_free(&big);
	close(fds[0]);
	close(fds[1]);
}

/* ---- acks=all ---- */

/* A child that writes one record with acks=all and ends with the errno, or 0. */
static pid_t waiter(int fd)
{
	pid_t pid = child();

	if (!pid)
		_exit(FAILS(write(fd, "x", 1)));
	return pid;
}

static int ended_with(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void until_end(int fd, int64_t end)
{
	while (partition_end(fd) < end)
		usleep(1000);
}

TEST_F(lease, acks_all_below_min_isr_appends_nothing)
{
	ASSERT_EQ(0, LEAD(1, LEADER | PLOG_LEAD_BELOW_MIN_ISR));
	EXPECT_EQ(EHOSTUNREACH, FAILS(write(self->fd, "x", 1)));
	EXPECT_EQ(-EHOSTUNREACH, append(self->batch, 0, -1, PLOG_APPEND_ACKS_ALL));
	EXPECT_EQ(-EHOSTUNREACH, append(self->batch, self->incarnation, 1,
					PLOG_APPEND_DAEMON | PLOG_APPEND_ACKS_ALL));
	EXPECT_EQ(0, partition_end(self->batch));
	/* acks=1 does not ask */
	EXPECT_EQ(0, LOCAL_APPEND());
	ASSERT_EQ(0, LEAD(1, LEADER));
	/* the flag alone does not wait */
	EXPECT_EQ(0, append(self->batch, 0, -1, PLOG_APPEND_ACKS_ALL));
	EXPECT_EQ(-EINVAL, append(self->batch, self->incarnation, 1, PLOG_APPEND_DAEMON |
				  PLOG_APPEND_REPLICA | PLOG_APPEND_ACKS_ALL));
	/* nothing to wait for where nothing is replicated */
	ASSERT_EQ(0, LEAD(2, PLOG_LEAD_BELOW_MIN_ISR));
	EXPECT_EQ(1, write(self->fd, "x", 1));
}

TEST_F(lease, acks_all_ends_with_the_high_watermark)
{
	pid_t pid;

	ASSERT_EQ(0, LEAD(1, LEADER));
	pid = waiter(self->fd);
	until_end(self->batch, 1);
	usleep(50000);
	EXPECT_EQ(0, waitpid(pid, NULL, WNOHANG));
	ASSERT_EQ(0, move_hw(self->batch, self->incarnation, 1, 1));
	EXPECT_EQ(0, ended_with(pid));
}

TEST_F(lease, acks_all_ends_with_the_epoch)
{
	pid_t pid;

	ASSERT_EQ(0, LEAD(1, LEADER));
	pid = waiter(self->fd);
	until_end(self->batch, 1);
	ASSERT_EQ(0, LEAD(2, LEADER));
	EXPECT_EQ(ESTALE, ended_with(pid));
	/* the same epoch again ends nothing */
	pid = waiter(self->fd);
	until_end(self->batch, 2);
	ASSERT_EQ(0, LEAD(2, LEADER | PLOG_LEAD_BELOW_MIN_ISR));
	usleep(50000);
	EXPECT_EQ(0, waitpid(pid, NULL, WNOHANG));
	ASSERT_EQ(0, move_hw(self->batch, self->incarnation, 2, 2));
	EXPECT_EQ(0, ended_with(pid));
}

TEST_F(lease, acks_all_ends_with_a_truncation)
{
	pid_t pid;

	ASSERT_EQ(0, LEAD(1, LEADER));
	pid = waiter(self->fd);
	until_end(self->batch, 1);
	ASSERT_EQ(0, partition_control(self->batch, PLOG_CONTROL_TRUNCATE, self->incarnation, 1,
				       0));
	/* another record in its place is not it */
	ASSERT_EQ(0, LOCAL_APPEND());
	ASSERT_EQ(0, move_hw(self->batch, self->incarnation, 1, 1));
	EXPECT_EQ(ESTALE, ended_with(pid));
}

TEST_F(lease, acks_all_without_blocking)
{
	int fd = partition_bind_flags("t", 0, PLOG_MODE_ACKS_ALL, O_NONBLOCK);

	ASSERT_LE(0, fd);
	/* nothing to wait for: fine */
	EXPECT_EQ(1, write(fd, "x", 1));
	ASSERT_EQ(0, LEAD(1, LEADER));
	EXPECT_EQ(EAGAIN, FAILS(write(fd, "x", 1)));
	EXPECT_EQ(1, partition_end(fd));
	close(fd);
}

TEST_F(lease, acks_all_can_be_killed_and_deleted)
{
	pid_t pid;

	ASSERT_EQ(0, LEAD(1, LEADER));
	pid = waiter(self->fd);
	until_end(self->batch, 1);
	kill(pid, SIGKILL);
	EXPECT_EQ(-1, ended_with(pid));
	pid = waiter(self->fd);
	until_end(self->batch, 2);
	ASSERT_EQ(0, instance_delete(&self->in, "t", 0));
	EXPECT_EQ(ENODEV, ended_with(pid));
}

/* 64 at once, each to its own offset: each watermark wakes those that it satisfies. */
TEST_F(lease, many_wait_for_acks)
{
	enum { WAITERS = 64 };
	pid_t pid[WAITERS];
	int i;

	ASSERT_EQ(0, LEAD(1, LEADER));
	for (i = 0; i < WAITERS; i++)
		pid[i] = waiter(self->fd);
	until_end(self->batch, WAITERS);
	for (i = 1; i <= WAITERS; i += 7)
		ASSERT_EQ(0, move_hw(self->batch, self->incarnation, 1, i));
	ASSERT_EQ(0, move_hw(self->batch, self->incarnation, 1, WAITERS));
	for (i = 0; i < WAITERS; i++)
		EXPECT_EQ(0, ended_with(pid[i]));
}

SELFTEST_MAIN
