// SPDX-License-Identifier: GPL-2.0
/*
 * The last stable offset: set by appends and by command, seen by readers of
 * committed records, and what wakes them.
 */
#include "producer.h"

static int64_t stable(int fd)
{
	struct plog_state st = { 0 };

	return partition_state(fd, &st) ? -1 : st.last_stable;
}

static int unstable(int fd, uint64_t incarnation, int64_t offset)
{
	return partition_control(fd, PLOG_CONTROL_UNSTABLE, incarnation, EPOCH, offset);
}

TEST_F(producer, appends_set_it)
{
	struct plog_locate loc = { 0 };
	struct plog_producer who = { 0 };

	EXPECT_EQ(0, PUT(-1, 0, SAYS_NOTHING));
	EXPECT_EQ(1, PUT(7, ATTR_TRANSACTIONAL, PLOG_UNSTABLE_HERE));
	EXPECT_EQ(2, PUT(-1, 0, SAYS_NOTHING));
	EXPECT_EQ(1, stable(self->batch));
	ASSERT_EQ(0, ioctl(self->batch, PLOG_IOC_PRODUCER, &who));
	EXPECT_EQ(1, who.last_offset);
	EXPECT_EQ(1, who.first_unstable);
	EXPECT_EQ(3, who.log_end);
	/* an extent ends there, and there is no more behind */
	ASSERT_EQ(0, partition_locate(self->batch, 0, 1 << 20, PLOG_LOCATE_COMMITTED, &loc));
	EXPECT_EQ(1, loc.next_offset);
	EXPECT_EQ(1, loc.last_stable);
	EXPECT_EQ(3, loc.high_watermark);
	ASSERT_EQ(0, partition_locate(self->batch, 1, 1 << 20, PLOG_LOCATE_COMMITTED, &loc));
	EXPECT_EQ(0, loc.length);
	EXPECT_EQ(3, MARKER(7, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE));
	EXPECT_EQ(4, stable(self->batch));
	ASSERT_EQ(0, partition_locate(self->batch, 1, 1 << 20, PLOG_LOCATE_COMMITTED, &loc));
	EXPECT_EQ(4, loc.next_offset);
	ASSERT_EQ(0, ioctl(self->batch, PLOG_IOC_PRODUCER, &who));
	EXPECT_EQ(3, who.last_offset);
	EXPECT_EQ(-1, who.first_unstable);
}

/* A daemon that says nothing opens a transaction with a batch of one. */
TEST_F(producer, silence_is_safe)
{
	EXPECT_EQ(0, PUT(7, 0, SAYS_NOTHING));
	EXPECT_EQ(1, stable(self->batch));
	EXPECT_EQ(1, PUT(7, ATTR_TRANSACTIONAL, SAYS_NOTHING));
	EXPECT_EQ(2, MARKER(7, PLOG_CONTROL_ABORT, SAYS_NOTHING));
	EXPECT_EQ(1, stable(self->batch));
	EXPECT_EQ(0, unstable(self->batch, self->incarnation, -1));
	EXPECT_EQ(3, stable(self->batch));
}

TEST_F(producer, wrong_uses)
{
	struct plog_producer who = { .reserved = { 1 } };
	struct plog_append arg = { 0 };
	struct plog_bind bind = { .topic = "t" };
	struct batch b;
	int fd;

	ASSERT_TRUE(batch_text(&b, "x"));
	/* the daemon's flag */
	arg.flags = PLOG_APPEND_UNSTABLE;
	arg.leader_epoch = -1;
	EXPECT_EQ(-EPERM, partition_append(self->batch, b.data, b.size, &arg));
	/* the field without the flag */
	arg = (struct plog_append){ .leader_epoch = -1, .first_unstable = 5 };
	EXPECT_EQ(-EINVAL, partition_append(self->batch, b.data, b.size, &arg));
	arg = (struct plog_append){ .leader_epoch = -1, .reserved = { 5 } };
	EXPECT_EQ(-EINVAL, partition_append(self->batch, b.data, b.size, &arg));
	/* offsets that cannot be */
	EXPECT_EQ(-EINVAL, PUT(7, ATTR_TRANSACTIONAL, 1));
	EXPECT_EQ(-EINVAL, PUT(7, ATTR_TRANSACTIONAL, -3));
	EXPECT_EQ(-EINVAL, PUT(7, ATTR_TRANSACTIONAL, INT64_MAX));
	EXPECT_EQ(-EINVAL, PUT(7, ATTR_TRANSACTIONAL, PLOG_UNSTABLE_NONE));
	EXPECT_EQ(0, partition_end(self->batch));
	EXPECT_EQ(-ERANGE, unstable(self->batch, self->incarnation, 1));
	EXPECT_EQ(-ERANGE, unstable(self->batch, self->incarnation, -2));
	EXPECT_EQ(-ESTALE, unstable(self->batch, self->incarnation + 1, 0));
	EXPECT_EQ(-ESTALE, partition_control(self->batch, PLOG_CONTROL_UNSTABLE,
					     self->incarnation, EPOCH + 1, 0));
	/* commands that there are not */
	EXPECT_EQ(-EINVAL, partition_control(self->batch, 0, self->incarnation, EPOCH, 0));
	EXPECT_EQ(-EINVAL, partition_control(self->batch, 99, self->incarnation, EPOCH, 0));
	EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_PRODUCER, &who)));
	EXPECT_EQ(EFAULT, FAILS(ioctl(self->batch, PLOG_IOC_PRODUCER, WILD)));
	EXPECT_EQ(ENOTCONN, FAILS(ioctl(self->control, PLOG_IOC_PRODUCER, &who)));
	fd = open("/dev/plog-control", O_WRONLY);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PLOG_IOC_BIND, &bind));
	EXPECT_EQ(EBADF, FAILS(ioctl(fd, PLOG_IOC_PRODUCER, &who)));
	close(fd);
	batch_free(&b);
}

/* Readers of committed records wait for the offset, not for the log end. */
TEST_F(producer, readers_wait_for_it)
{
	int fd = partition_bind_flags("t", 0, PLOG_MODE_READ_COMMITTED, O_NONBLOCK);
	struct plog_locate loc = { 0 };
	char value[64];
	int block, i;
	pid_t pid;

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, PUT(7, ATTR_TRANSACTIONAL, PLOG_UNSTABLE_HERE));
	EXPECT_EQ(0, polled(fd, POLLIN, 0));
	EXPECT_EQ(POLLIN, polled(self->fd, POLLIN, 0));
	EXPECT_EQ(EAGAIN, FAILS(read(fd, value, sizeof(value))));
	EXPECT_EQ(30, read(self->fd, value, sizeof(value)));
	EXPECT_EQ(0, lseek(fd, 0, SEEK_END));
	EXPECT_EQ(1, lseek(self->fd, 0, SEEK_END));
	/* a cursor that found nothing polls for the same */
	ASSERT_EQ(0, partition_locate(self->batch, 0, 1000, PLOG_LOCATE_COMMITTED, &loc));
	EXPECT_EQ(0, loc.length);
	EXPECT_EQ(0, polled(self->batch, POLLIN, 0));
	pid = child();
	if (!pid) {
		block = partition_bind("t", 0, PLOG_MODE_READ_COMMITTED);
		_exit(read(block, value, sizeof(value)) == 30 ? 0 : 1);
	}
	usleep(100000);
	/* the offset moves without the log end */
	EXPECT_EQ(0, unstable(self->batch, self->incarnation, -1));
	EXPECT_EQ(POLLIN, polled(fd, POLLIN, 0));
	EXPECT_EQ(POLLIN, polled(self->batch, POLLIN, 0));
	EXPECT_EQ(30, read(fd, value, sizeof(value)));
	ASSERT_EQ(pid, waitpid(pid, &i, 0));
	EXPECT_EQ(0, i);
	close(fd);
}

/* The daemon dies, and the machine does: nobody reads what is open. */
TEST_F(producer, restarts)
{
	struct plog_producer who = { 0 };
	int copy;

	EXPECT_EQ(0, PUT(7, ATTR_TRANSACTIONAL, PLOG_UNSTABLE_HERE));
	EXPECT_EQ(1, PUT(8, ATTR_TRANSACTIONAL, PLOG_UNSTABLE_HERE));
	EXPECT_EQ(2, MARKER(7, PLOG_CONTROL_COMMIT, 1));
	EXPECT_EQ(1, stable(self->batch));
	/* another daemon */
	close(self->control);
	self->control = control_open(0);
	ASSERT_EQ(0, control_register(self->control, 0, &self->incarnation));
	EXPECT_EQ(1, stable(self->batch));
	/* what a crash leaves */
	ASSERT_EQ(0, instance_open_copy(&self->in, instance_path(&self->in, "t", 0, NULL), "c"));
	copy = partition_bind("c", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, copy);
	EXPECT_EQ(1, stable(copy));
	ASSERT_EQ(0, ioctl(copy, PLOG_IOC_PRODUCER, &who));
	EXPECT_EQ(2, who.last_offset);
	EXPECT_EQ(1, who.first_unstable);
	/* the daemon knows better */
	EXPECT_EQ(0, unstable(copy, self->incarnation, -1));
	EXPECT_EQ(3, stable(copy));
	close(copy);
}

SELFTEST_MAIN
