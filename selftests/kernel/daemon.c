// SPDX-License-Identifier: GPL-2.0
/*
 * What a registered daemon may do: registration and incarnations, the offsets
 * that it moves, appends in its name.
 */
#include <linux/fs.h>

#include "fixture.h"

FIXTURE(daemon)
{
	struct instance in;
	int control;
	int fd;			/* record mode, O_NONBLOCK */
	int batch;		/* batch mode */
	uint64_t incarnation;
};

FIXTURE_SETUP(daemon)
{
	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	self->control = control_open(0);
	ASSERT_LE(0, self->control);
	ASSERT_EQ(0, control_register(self->control, 0, &self->incarnation));
	self->fd = partition_bind_flags("t", 0, 0, O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->batch = partition_bind("t", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, self->batch);
}

FIXTURE_TEARDOWN(daemon)
{
	close(self->control);
	close(self->fd);
	close(self->batch);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
}

static int append_as(int fd, uint64_t incarnation, const struct batch *b, uint32_t flags)
{
	struct plog_append arg = {
		.flags = PLOG_APPEND_DAEMON | flags,
		.incarnation = incarnation,
		.leader_epoch = EPOCH,
	};

	return partition_append(fd, b->data, b->size, &arg);
}

static uint64_t registered(struct instance *in)
{
	struct nl_instance got;

	return nl_instance_get(&in->nl, &got) ? UINT64_MAX : got.incarnation;
}

TEST_F(daemon, registration_is_seen)
{
	struct plog_info info = { 0 };

	EXPECT_LT(0, self->incarnation);
	EXPECT_EQ(self->incarnation, registered(&self->in));
	ASSERT_EQ(0, ioctl(self->fd, PLOG_IOC_INFO, &info));
	EXPECT_EQ(self->incarnation, info.incarnation);
}

TEST_F(daemon, close_ends_the_registration)
{
	struct batch b;

	ASSERT_TRUE(batch_text(&b, "x"));
	EXPECT_EQ(0, append_as(self->batch, self->incarnation, &b, 0));
	close(self->control);
	EXPECT_EQ(0, registered(&self->in));
	EXPECT_EQ(-ESTALE, append_as(self->batch, self->incarnation, &b, 0));
	EXPECT_EQ(1, partition_end(self->batch));
	self->control = control_open(0);
	batch_free(&b);
}

TEST_F(daemon, death_ends_the_registration)
{
	uint64_t theirs;
	int fds[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(fds));
	pid = child();
	if (!pid) {
		int fd = control_open(0);

		if (control_register(fd, 0, &theirs) ||
		    write(fds[1], &theirs, sizeof(theirs)) != sizeof(theirs))
			_exit(1);
		pause();
	}
	ASSERT_EQ(sizeof(theirs), read(fds[0], &theirs, sizeof(theirs)));
	EXPECT_LT(self->incarnation, theirs);
	EXPECT_EQ(theirs, registered(&self->in));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_EQ(0, registered(&self->in));
	close(fds[0]);
	close(fds[1]);
}

TEST_F(daemon, second_registration_makes_the_first_stale)
{
	int second = control_open(0);
	uint64_t newer = 0;
	struct batch b;

	ASSERT_TRUE(batch_text(&b, "x"));
	ASSERT_EQ(0, control_register(second, 0, &newer));
	EXPECT_LT(self->incarnation, newer);
	EXPECT_EQ(-ESTALE, append_as(self->batch, self->incarnation, &b, 0));
	EXPECT_EQ(-ESTALE, partition_control(self->batch, PLOG_CONTROL_TRUNCATE,
					     self->incarnation, EPOCH, 0));
	EXPECT_EQ(-ESTALE, append_as(self->batch, newer + 1, &b, 0));
	EXPECT_EQ(0, append_as(self->batch, newer, &b, 0));
	/* the death of the old one does not end the new one */
	close(self->control);
	EXPECT_EQ(newer, registered(&self->in));
	EXPECT_EQ(0, append_as(self->batch, newer, &b, 0));
	EXPECT_EQ(2, partition_end(self->batch));
	close(second);
	self->control = control_open(0);
	batch_free(&b);
}

TEST_F(daemon, descriptor_has_one_role)
{
	struct plog_bind bind = { .topic = "t" };

	EXPECT_EQ(EBUSY, FAILS(ioctl(self->control, PLOG_IOC_BIND, &bind)));
	EXPECT_EQ(-EBUSY, control_register(self->fd, 0, NULL));
	EXPECT_EQ(-EBUSY, control_register(self->control, 0, NULL));
	EXPECT_EQ(self->incarnation, registered(&self->in));
}

TEST_F(daemon, incarnation_zero_and_foreign_flags)
{
	struct plog_append arg = { .incarnation = self->incarnation, .leader_epoch = -1 };
	struct batch b;

	ASSERT_TRUE(batch_text(&b, "x"));
	EXPECT_NE(0, append_as(self->batch, 0, &b, 0));
	/* an incarnation without the flag makes no sense */
	EXPECT_EQ(-EINVAL, partition_append(self->batch, b.data, b.size, &arg));
	EXPECT_EQ(0, partition_end(self->batch));
	batch_free(&b);
}

TEST_F(daemon, registers_in_a_hurry_are_all_different)
{
	uint64_t last = self->incarnation, now;
	int i;

	for (i = 0; i < 200 / slow(); i++) {
		int fd = control_open(0);

		ASSERT_LE(0, fd);
		ASSERT_EQ(0, control_register(fd, 0, &now));
		ASSERT_LT(last, now);
		last = now;
		close(fd);
	}
	EXPECT_EQ(0, registered(&self->in));
}

TEST_F(daemon, any_codec_and_producer_id_is_taken)
{
	struct batch b;
	int codec;

	ASSERT_TRUE(batch_fill(&b, 300, 'z'));
	for (codec = 1; codec <= 4; codec++) {
		batch_set(b.data, b.size, AT_ATTRIBUTES, 2, (uint64_t)codec);
		EXPECT_EQ(0, append_as(self->batch, self->incarnation, &b, 0));
	}
	batch_put(b.data, AT_PRODUCER_ID, 8, 4711);
	batch_put(b.data, AT_PRODUCER_EPOCH, 2, 3);
	batch_put(b.data, AT_SEQUENCE, 4, 0);
	batch_set(b.data, b.size, AT_ATTRIBUTES, 2, 0);
	EXPECT_EQ(0, append_as(self->batch, self->incarnation, &b, 0));
	EXPECT_EQ(5, partition_end(self->batch));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	batch_free(&b);
}

TEST_F(daemon, leader_epoch_that_is_not_the_partitions_is_estale)
{
	struct plog_append arg = {
		.flags = PLOG_APPEND_DAEMON, .incarnation = self->incarnation,
	};
	struct plog_state state;
	struct batch b;

	ASSERT_TRUE(batch_text(&b, "x"));
	ASSERT_EQ(0, partition_state(self->batch, &state));
	arg.leader_epoch = state.leader_epoch + 7;
	EXPECT_EQ(-ESTALE, partition_append(self->batch, b.data, b.size, &arg));
	arg.leader_epoch = state.leader_epoch - 1;
	EXPECT_EQ(-ESTALE, partition_append(self->batch, b.data, b.size, &arg));
	arg.leader_epoch = state.leader_epoch;
	EXPECT_EQ(0, partition_append(self->batch, b.data, b.size, &arg));
	EXPECT_EQ(-ESTALE, partition_control(self->batch, PLOG_CONTROL_TRUNCATE,
					     self->incarnation, state.leader_epoch + 1, 0));
	batch_free(&b);
}

TEST_F(daemon, truncate_cuts_at_a_batch)
{
	struct iovec iov[3] = { { "a", 1 }, { "b", 1 }, { "c", 1 } };
	struct plog_state state;
	int i;

	for (i = 0; i < 5; i++)
		ASSERT_EQ(3, writev(self->fd, iov, 3));
	ASSERT_EQ(0, partition_control(self->batch, PLOG_CONTROL_TRUNCATE, self->incarnation,
				       EPOCH, 6));
	ASSERT_EQ(0, partition_state(self->batch, &state));
	EXPECT_EQ(6, state.log_end);
	EXPECT_EQ(6, state.high_watermark);
	EXPECT_EQ(NULL, partition_check(self->batch, &i));
	EXPECT_EQ(2, i);
	/* inside a batch: the whole batch goes */
	ASSERT_EQ(0, partition_control(self->batch, PLOG_CONTROL_TRUNCATE, self->incarnation,
				       EPOCH, 4));
	EXPECT_EQ(3, partition_end(self->batch));
	EXPECT_EQ(-ERANGE, partition_control(self->batch, PLOG_CONTROL_TRUNCATE,
					     self->incarnation, EPOCH, 99));
	EXPECT_EQ(-ERANGE, partition_control(self->batch, PLOG_CONTROL_TRUNCATE,
					     self->incarnation, EPOCH, -1));
	ASSERT_EQ(3, writev(self->fd, iov, 3));
	EXPECT_EQ(6, partition_end(self->batch));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	ASSERT_EQ(0, partition_control(self->batch, PLOG_CONTROL_TRUNCATE, self->incarnation,
				       EPOCH, 0));
	EXPECT_EQ(0, partition_end(self->batch));
	ASSERT_EQ(3, writev(self->fd, iov, 3));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

/* Killed, but nobody may wait for ever whether it ends. */
static bool ends_when_killed(pid_t pid)
{
	int i;

	kill(pid, SIGKILL);
	for (i = 0; i < 1000; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
		usleep(10000);
	}
	return false;
}

/*
 * Who waits for a thaw, in the order in which they are killed: none needs the end of
 * another. LEAD waits for LOG_START, which holds what is written to the state file.
 */
enum { TRUNCATE, APPEND, FIRST_APPEND, LEAD, LOG_START, WAITERS };

/* One of them, until it is through. */
static bool waits(FIXTURE_DATA(daemon) *self, int what, int fresh, int led)
{
	struct plog_lead lead = {
		.flags = PLOG_LEAD_LEADER, .leader_epoch = EPOCH + 1,
		.incarnation = self->incarnation,
	};

	switch (what) {
	case TRUNCATE:
		return !partition_control(self->batch, PLOG_CONTROL_TRUNCATE, self->incarnation,
					  EPOCH, 1);
	case APPEND:
		return write(self->fd, "more", 4) == 4;
	case FIRST_APPEND:
		return write(fresh, "more", 4) == 4;
	case LEAD:
		/* it comes second */
		usleep(300000);
		return !ioctl(led, PLOG_IOC_LEAD, &lead);
	default:
		return !partition_control(led, PLOG_CONTROL_LOG_START, self->incarnation, EPOCH,
					  1);
	}
}

TEST_F(daemon, waits_for_a_thaw_can_be_killed)
{
	int dir = open(self->in.dir, O_RDONLY | O_DIRECTORY), fresh, led, i, status;
	struct plog_state state;
	bool ended[WAITERS], waited[WAITERS];
	pid_t pid[WAITERS];

	for (i = 0; i < 3; i++)
		ASSERT_EQ(4, write(self->fd, "good", 4));
	/* of which nothing but the log was made yet */
	ASSERT_EQ(0, instance_topic(&self->in, "fresh"));
	fresh = partition_bind_flags("fresh", 0, 0, O_NONBLOCK);
	ASSERT_LE(0, fresh);
	ASSERT_EQ(0, instance_topic(&self->in, "led"));
	led = partition_bind_flags("led", 0, 0, O_NONBLOCK);
	ASSERT_LE(0, led);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(4, write(led, "good", 4));
	close(led);
	led = partition_bind("led", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, led);
	ASSERT_LE(0, dir);
	if (ioctl(dir, FIFREEZE, 0)) {
		/* tmpfs cannot be frozen: nobody waits there */
		ASSERT_EQ(EOPNOTSUPP, errno);
		close(led);
		close(fresh);
		close(dir);
		return;
	}
	for (i = 0; i < WAITERS; i++) {
		pid[i] = child();
		if (!pid[i])
			_exit(waits(self, i, fresh, led));
	}
	usleep(600000);
	for (i = 0; i < WAITERS; i++)
		waited[i] = !waitpid(pid[i], &status, WNOHANG);
	for (i = 0; i < WAITERS; i++)
		ended[i] = ends_when_killed(pid[i]);
	ASSERT_EQ(0, ioctl(dir, FITHAW, 0));
	for (i = 0; i < WAITERS; i++) {
		EXPECT_TRUE(waited[i]) {
			TH_LOG("%d did not wait", i);
		}
		EXPECT_TRUE(ended[i]) {
			TH_LOG("%d could not be killed", i);
		}
	}
	EXPECT_EQ(3, partition_end(self->batch));
	ASSERT_EQ(0, partition_control(self->batch, PLOG_CONTROL_TRUNCATE, self->incarnation,
				       EPOCH, 2));
	EXPECT_EQ(2, partition_end(self->batch));
	ASSERT_EQ(4, write(self->fd, "good", 4));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	/* its indexes are the next one's to make */
	EXPECT_EQ(0, partition_end(fresh));
	ASSERT_EQ(4, write(fresh, "good", 4));
	EXPECT_EQ(1, partition_end(fresh));
	EXPECT_EQ(0, access(instance_path(&self->in, "fresh", 0, "00000000000000000000.index"),
			    F_OK));
	/* as if they had not come */
	ASSERT_EQ(0, partition_state(led, &state));
	EXPECT_EQ(0, state.log_start);
	EXPECT_EQ(EPOCH, state.leader_epoch);
	EXPECT_TRUE(waits(self, LOG_START, fresh, led));
	EXPECT_TRUE(waits(self, LEAD, fresh, led));
	ASSERT_EQ(0, partition_state(led, &state));
	EXPECT_EQ(1, state.log_start);
	EXPECT_EQ(EPOCH + 1, state.leader_epoch);
	close(led);
	close(fresh);
	close(dir);
}

/* Batches whose CRC takes a while, until the first that fails. */
static void append_large(int fd, uint64_t incarnation)
{
	struct batch b;

	if (!batch_fill(&b, 900000, 'l'))
		_exit(1);
	while (append_as(fd, incarnation, &b, 0) == 0)
		;
	_exit(2);
}

/*
 * Frozen somewhere in an append, behind the payload as a rule: the cut of who is killed then
 * waits for the thaw, but not he.
 */
TEST_F_TIMEOUT(daemon, a_killed_append_is_cut_after_the_thaw, 120)
{
	struct nl_partition part = { .topic = "large", .segment_bytes = 1 << 30 };
	int dir = open(self->in.dir, O_RDONLY | O_DIRECTORY), i, left = 0, batch, err;
	struct plog_state state;
	char log[300];
	struct batch good;
	struct stat st;
	bool ended;
	pid_t pid;

	ASSERT_LE(0, dir);
	ASSERT_TRUE(batch_fill(&good, 10, 'g'));
	ASSERT_EQ(0, instance_partition(&self->in, &part));
	batch = partition_bind("large", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, batch);
	snprintf(log, sizeof(log), "%s",
		 instance_path(&self->in, "large", 0, "00000000000000000000.log"));
	for (i = 0; i < 12; i++) {
		pid = child();
		if (!pid)
			append_large(batch, self->incarnation);
		usleep(150000 + (useconds_t)i * 7000);
		if (ioctl(dir, FIFREEZE, 0)) {
			ASSERT_EQ(EOPNOTSUPP, errno);
			ends_when_killed(pid);
			break;
		}
		usleep(100000);
		ended = ends_when_killed(pid);
		/* whatever has failed: nobody after this finds it frozen */
		err = partition_state(batch, &state) || stat(log, &st);
		ASSERT_EQ(0, ioctl(dir, FITHAW, 0));
		ASSERT_TRUE(ended) {
			TH_LOG("freeze %d: it could not be killed", i);
		}
		ASSERT_EQ(0, err);
		left += st.st_size > (off_t)state.bytes;
		EXPECT_LE((off_t)state.bytes, st.st_size);
		EXPECT_EQ(state.log_end, partition_end(batch));
		EXPECT_EQ(0, append_as(batch, self->incarnation, &good, 0));
		ASSERT_EQ(0, partition_state(batch, &state));
		ASSERT_EQ(0, stat(log, &st));
		EXPECT_EQ((off_t)state.bytes, st.st_size);
		EXPECT_EQ(NULL, partition_check(batch, NULL));
		/* a machine that is fast would fill the segment in the end */
		ASSERT_EQ(0, partition_control(batch, PLOG_CONTROL_TRUNCATE, self->incarnation,
					       EPOCH, 0));
	}
	TH_LOG("%d of %d had something to cut", left, i);
	EXPECT_TRUE(left || !i);
	batch_free(&good);
	close(batch);
	close(dir);
}

TEST_F(daemon, truncate_over_segments_survives_a_reopen)
{
	struct nl_partition part = { .topic = "r", .segment_bytes = 4096 };
	char buf[600], dir[256];
	int fd, i, batch;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("r", 0, 0);
	batch = partition_bind("r", 0, PLOG_MODE_BATCH);
	memset(buf, 'x', sizeof(buf));
	for (i = 0; i < 60; i++)
		ASSERT_EQ(sizeof(buf), write(fd, buf, sizeof(buf)));
	ASSERT_EQ(0, partition_control(batch, PLOG_CONTROL_TRUNCATE, self->incarnation, EPOCH, 13));
	EXPECT_EQ(13, partition_end(batch));
	EXPECT_EQ(NULL, partition_check(batch, &i));
	EXPECT_EQ(13, i);
	ASSERT_EQ(1, write(fd, "y", 1));
	ASSERT_EQ(0, instance_open_copy(&self->in, instance_path(&self->in, "r", 0, NULL), "c"));
	{
		int copy = partition_bind("c", 0, PLOG_MODE_BATCH);

		EXPECT_EQ(14, partition_end(copy));
		EXPECT_EQ(NULL, partition_check(copy, &i));
		EXPECT_EQ(14, i);
		close(copy);
	}
	close(fd);
	close(batch);
	strcpy(dir, self->in.dir);
	ASSERT_EQ(0, instance_stop(&self->in));
	ASSERT_EQ(0, instance_start(&self->in, dir));
	ASSERT_EQ(0, instance_partition(&self->in, &part));
	batch = partition_bind("r", 0, PLOG_MODE_BATCH);
	EXPECT_EQ(14, partition_end(batch));
	EXPECT_EQ(NULL, partition_check(batch, &i));
	EXPECT_EQ(14, i);
	close(batch);
}

TEST_F(daemon, log_start_moves_and_persists)
{
	struct plog_locate loc;
	struct plog_state state;
	char buf[16], dir[256];
	int i;

	for (i = 0; i < 10; i++) {
		buf[0] = (char)('0' + i);
		ASSERT_EQ(1, write(self->fd, buf, 1));
	}
	ASSERT_EQ(0, partition_control(self->batch, PLOG_CONTROL_LOG_START, self->incarnation,
				       EPOCH, 4));
	ASSERT_EQ(0, partition_state(self->batch, &state));
	EXPECT_EQ(4, state.log_start);
	EXPECT_EQ(10, state.log_end);
	EXPECT_EQ(1, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ('4', buf[0]);
	EXPECT_EQ(-ERANGE, partition_locate(self->batch, 3, 4096, 0, &loc));
	EXPECT_EQ(4, loc.log_start);
	EXPECT_EQ(0, partition_locate(self->batch, 4, 4096, 0, &loc));
	EXPECT_LT(0, loc.length);
	EXPECT_EQ(-ERANGE, partition_control(self->batch, PLOG_CONTROL_LOG_START,
					     self->incarnation, EPOCH, 11));
	/* what a crash leaves now knows it too */
	ASSERT_EQ(0, instance_open_copy(&self->in, instance_path(&self->in, "t", 0, NULL), "c"));
	i = partition_bind("c", 0, 0);
	ASSERT_EQ(0, partition_state(i, &state));
	EXPECT_EQ(4, state.log_start);
	EXPECT_EQ(10, state.log_end);
	close(i);

	strcpy(dir, self->in.dir);
	ASSERT_EQ(0, instance_stop(&self->in));
	ASSERT_EQ(0, instance_start(&self->in, dir));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	i = partition_bind("t", 0, 0);
	ASSERT_EQ(0, partition_state(i, &state));
	EXPECT_EQ(4, state.log_start);
	EXPECT_EQ(10, state.log_end);
	close(i);
}

TEST_F(daemon, high_watermark_belongs_to_replicated_partitions)
{
	ASSERT_EQ(1, write(self->fd, "x", 1));
	EXPECT_EQ(-EINVAL, partition_control(self->batch, PLOG_CONTROL_HIGH_WATERMARK,
					     self->incarnation, EPOCH, 0));
}

FIXTURE(replicated)
{
	struct instance in;
	int control;
	int fd;			/* record mode, O_NONBLOCK */
	int batch;		/* batch mode */
	uint64_t incarnation;
};

FIXTURE_SETUP(replicated)
{
	struct nl_partition part = {
		.topic = "t", .flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER,
	};

	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	ASSERT_EQ(0, instance_partition(&self->in, &part)) {
		TH_LOG("%s", self->in.nl.error_text);
	}
	self->control = control_open(0);
	ASSERT_EQ(0, control_register(self->control, 0, &self->incarnation));
	self->fd = partition_bind_flags("t", 0, 0, O_NONBLOCK);
	self->batch = partition_bind("t", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->batch);
}

FIXTURE_TEARDOWN(replicated)
{
	close(self->control);
	close(self->fd);
	close(self->batch);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
}

#define MOVE_HW(offset) partition_control(self->batch, PLOG_CONTROL_HIGH_WATERMARK, \
					  self->incarnation, EPOCH, offset)

TEST_F(replicated, readers_stop_at_the_high_watermark)
{
	struct plog_locate loc;
	char buf[8];

	ASSERT_EQ(1, write(self->fd, "a", 1));
	ASSERT_EQ(1, write(self->fd, "b", 1));
	EXPECT_EQ(2, partition_end(self->fd));
	EXPECT_EQ(EAGAIN, FAILS(read(self->fd, buf, 8)));
	ASSERT_EQ(0, partition_locate(self->batch, 0, 4096, 0, &loc));
	EXPECT_EQ(0, loc.length);
	EXPECT_EQ(0, loc.high_watermark);
	/* followers see the rest */
	ASSERT_EQ(0, partition_locate(self->batch, 0, 4096, PLOG_LOCATE_LOG_END, &loc));
	EXPECT_LT(0, loc.length);
	EXPECT_EQ(2, loc.next_offset);

	ASSERT_EQ(0, MOVE_HW(1));
	EXPECT_EQ(1, read(self->fd, buf, 8));
	EXPECT_EQ('a', buf[0]);
	EXPECT_EQ(EAGAIN, FAILS(read(self->fd, buf, 8)));
	ASSERT_EQ(0, MOVE_HW(2));
	EXPECT_EQ(1, read(self->fd, buf, 8));
	EXPECT_EQ(-ERANGE, MOVE_HW(3));
}

TEST_F(replicated, poll_wakes_when_the_high_watermark_moves)
{
	pid_t pid;

	ASSERT_EQ(1, write(self->fd, "a", 1));
	EXPECT_EQ(0, polled(self->fd, POLLIN, 20));
	pid = child();
	if (!pid) {
		usleep(100000);
		_exit(!!MOVE_HW(1));
	}
	EXPECT_EQ(POLLIN, polled(self->fd, POLLIN, 10000));
	waitpid(pid, NULL, 0);
}

TEST_F(replicated, acks_all_waits_for_the_high_watermark)
{
	int fd = partition_bind("t", 0, PLOG_MODE_ACKS_ALL);
	int64_t start = now_ms();
	pid_t pid;

	ASSERT_LE(0, fd);
	pid = child();
	if (!pid) {
		while (partition_end(self->fd) < 1)
			usleep(1000);
		usleep(200000);
		_exit(!!MOVE_HW(1));
	}
	EXPECT_EQ(4, write(fd, "safe", 4));
	EXPECT_LE(190, now_ms() - start);
	waitpid(pid, NULL, 0);
	close(fd);
}

TEST_F(replicated, acks_all_wait_can_be_killed)
{
	pid_t pid = child();
	int status;

	if (!pid) {
		int fd = partition_bind("t", 0, PLOG_MODE_ACKS_ALL);

		_exit(write(fd, "x", 1) == 1);
	}
	while (partition_end(self->fd) < 1)
		usleep(1000);
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(1, partition_end(self->fd));
}

TEST_F(replicated, acks_all_wait_fails_with_a_truncation)
{
	pid_t pid = child();
	int status;

	if (!pid) {
		int fd = partition_bind("t", 0, PLOG_MODE_ACKS_ALL);

		_exit(FAILS(write(fd, "x", 1)));
	}
	while (partition_end(self->fd) < 1)
		usleep(1000);
	ASSERT_EQ(0, partition_control(self->batch, PLOG_CONTROL_TRUNCATE, self->incarnation,
				       EPOCH, 0));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_NE(0, WEXITSTATUS(status));
}

TEST_F(replicated, acks_all_wait_ends_when_the_partition_goes)
{
	pid_t pid = child();
	int status;

	if (!pid) {
		int fd = partition_bind("t", 0, PLOG_MODE_ACKS_ALL);

		_exit(FAILS(write(fd, "x", 1)));
	}
	while (partition_end(self->fd) < 1)
		usleep(1000);
	ASSERT_EQ(0, instance_delete(&self->in, "t", 0));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_NE(0, WEXITSTATUS(status));
}

TEST_F(replicated, high_watermark_survives_a_stop)
{
	struct plog_state state;
	struct nl_partition part = {
		.topic = "t", .flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER,
	};
	char dir[256];
	int fd;

	ASSERT_EQ(1, write(self->fd, "a", 1));
	ASSERT_EQ(1, write(self->fd, "b", 1));
	ASSERT_EQ(1, write(self->fd, "c", 1));
	ASSERT_EQ(0, MOVE_HW(2));
	strcpy(dir, self->in.dir);
	ASSERT_EQ(0, instance_stop(&self->in));
	ASSERT_EQ(0, instance_start(&self->in, dir));
	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("t", 0, 0);
	ASSERT_EQ(0, partition_state(fd, &state));
	EXPECT_EQ(2, state.high_watermark);
	EXPECT_EQ(3, state.log_end);
	close(fd);
}

FIXTURE(follower)
{
	struct instance in;
	int control;
	int batch;
	uint64_t incarnation;
};

FIXTURE_SETUP(follower)
{
	struct nl_partition part = { .topic = "t", .flags = PLOG_STATE_REPLICATED };

	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	ASSERT_EQ(0, instance_partition(&self->in, &part)) {
		TH_LOG("%s", self->in.nl.error_text);
	}
	self->control = control_open(0);
	ASSERT_EQ(0, control_register(self->control, 0, &self->incarnation));
	self->batch = partition_bind("t", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, self->batch);
}

FIXTURE_TEARDOWN(follower)
{
	close(self->control);
	close(self->batch);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
}

TEST_F(follower, takes_no_local_appends)
{
	struct batch b;

	ASSERT_TRUE(batch_text(&b, "x"));
	EXPECT_EQ(-EROFS, partition_append(self->batch, b.data, b.size, NULL));
	EXPECT_EQ(-EROFS, append_as(self->batch, self->incarnation, &b, 0));
	EXPECT_EQ(0, partition_end(self->batch));
	batch_free(&b);
}

TEST_F(follower, replica_append_keeps_offsets_and_epochs)
{
	struct plog_lead lead = {
		.flags = PLOG_LEAD_REPLICATED, .leader_epoch = 8,
		.incarnation = self->incarnation,
	};
	struct plog_append append = {
		.flags = PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA,
		.incarnation = self->incarnation,
	};
	struct plog_locate loc;
	struct batch b, many;
	uint8_t buf[4096];
	int i;

	ASSERT_EQ(0, ioctl(self->batch, PLOG_IOC_LEAD, &lead));
	append.leader_epoch = 8;
	ASSERT_TRUE(batch_text(&b, "replica"));
	ASSERT_TRUE(batch_init(&many, 4096, 0));
	many.size = 0;
	/* four batches with a gap, as a compacted leader has them */
	for (i = 0; i < 4; i++) {
		batch_put(b.data, AT_BASE_OFFSET, 8, (uint64_t)(i < 2 ? i : i + 10));
		batch_put(b.data, AT_EPOCH, 4, (uint64_t)(5 + i));
		memcpy(many.data + many.size, b.data, b.size);
		many.size += b.size;
	}
	ASSERT_EQ(0, partition_append(self->batch, many.data, many.size, &append));
	EXPECT_EQ(14, partition_end(self->batch));
	ASSERT_EQ(0, partition_locate(self->batch, 0, sizeof(buf), PLOG_LOCATE_LOG_END, &loc));
	ASSERT_EQ(many.size, loc.length);
	ASSERT_EQ(many.size, read(self->batch, buf, sizeof(buf)));
	EXPECT_EQ(0, memcmp(buf, many.data, many.size));
	/* an offset in the gap starts at the batch behind it */
	ASSERT_EQ(0, partition_locate(self->batch, 7, sizeof(buf), PLOG_LOCATE_LOG_END, &loc));
	EXPECT_EQ(12, loc.base_offset);
	batch_free(&b);
	batch_free(&many);
}

TEST_F(follower, replica_append_below_the_end_is_refused)
{
	struct batch b, two;

	ASSERT_TRUE(batch_text(&b, "replica"));
	batch_put(b.data, AT_BASE_OFFSET, 8, 10);
	ASSERT_EQ(0, append_as(self->batch, self->incarnation, &b, PLOG_APPEND_REPLICA));
	EXPECT_EQ(11, partition_end(self->batch));
	EXPECT_NE(0, append_as(self->batch, self->incarnation, &b, PLOG_APPEND_REPLICA));
	batch_put(b.data, AT_BASE_OFFSET, 8, 3);
	EXPECT_NE(0, append_as(self->batch, self->incarnation, &b, PLOG_APPEND_REPLICA));
	/* the second of two goes backwards: neither goes in */
	ASSERT_TRUE(batch_init(&two, 4096, 0));
	batch_put(b.data, AT_BASE_OFFSET, 8, 20);
	memcpy(two.data, b.data, b.size);
	batch_put(b.data, AT_BASE_OFFSET, 8, 15);
	memcpy(two.data + b.size, b.data, b.size);
	two.size = 2 * b.size;
	EXPECT_NE(0, append_as(self->batch, self->incarnation, &two, PLOG_APPEND_REPLICA));
	EXPECT_EQ(11, partition_end(self->batch));
	/* offsets that pass 2^63 - 1 */
	batch_put(b.data, AT_BASE_OFFSET, 8, INT64_MAX);
	EXPECT_NE(0, append_as(self->batch, self->incarnation, &b, PLOG_APPEND_REPLICA));
	batch_put(b.data, AT_BASE_OFFSET, 8, (uint64_t)-5);
	EXPECT_NE(0, append_as(self->batch, self->incarnation, &b, PLOG_APPEND_REPLICA));
	EXPECT_EQ(11, partition_end(self->batch));
	batch_free(&b);
	batch_free(&two);
}

TEST_F(follower, damaged_second_batch_refuses_both)
{
	struct batch b, two;

	ASSERT_TRUE(batch_fill(&b, 500, 'r'));
	ASSERT_TRUE(batch_init(&two, 4096, 0));
	memcpy(two.data, b.data, b.size);
	batch_put(b.data, AT_BASE_OFFSET, 8, 1);
	memcpy(two.data + b.size, b.data, b.size);
	two.size = 2 * b.size;
	two.data[two.size - 5] ^= 1;
	EXPECT_EQ(-EBADMSG, append_as(self->batch, self->incarnation, &two,
				      PLOG_APPEND_REPLICA));
	EXPECT_EQ(0, partition_end(self->batch));
	two.data[two.size - 5] ^= 1;
	/* the second is torn */
	two.size -= 7;
	EXPECT_EQ(-EINVAL, append_as(self->batch, self->incarnation, &two,
				     PLOG_APPEND_REPLICA));
	two.size += 7;
	EXPECT_EQ(0, append_as(self->batch, self->incarnation, &two, PLOG_APPEND_REPLICA));
	EXPECT_EQ(2, partition_end(self->batch));
	batch_free(&b);
	batch_free(&two);
}

SELFTEST_MAIN
