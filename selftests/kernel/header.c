// SPDX-License-Identifier: GPL-2.0
/* PLOG_IOC_HEADERS: what it gives, what it refuses, and that it ends. */
#include "producer.h"

static struct plog_batch_header got[PLOG_HEADERS_MAX];

static int headers(int fd, int64_t offset, uint32_t flags, uint32_t room, struct plog_headers *arg)
{
	*arg = (struct plog_headers){
		.offset = offset,
		.flags = flags,
		.count = room,
		.entries = (uintptr_t)got,
	};
	return ioctl(fd, PLOG_IOC_HEADERS, arg) ? -errno : 0;
}

TEST_F(producer, headers_are_decoded)
{
	struct plog_headers arg;
	struct batch b;

	ASSERT_TRUE(batch_text(&b, "x"));
	ASSERT_EQ(0, append_says(self->batch, self->incarnation, b.data, b.size, SAYS_NOTHING));
	ASSERT_EQ(1, PUT(42, ATTR_TRANSACTIONAL, PLOG_UNSTABLE_HERE));
	ASSERT_EQ(2, MARKER(42, PLOG_CONTROL_ABORT, PLOG_UNSTABLE_NONE));
	memset(got, 0xff, sizeof(got));
	ASSERT_EQ(0, headers(self->batch, 0, 0, 10, &arg));
	EXPECT_EQ(3, arg.count);
	EXPECT_EQ(3, arg.offset);
	EXPECT_EQ(3, arg.high_watermark);
	EXPECT_EQ(3, arg.last_stable);
	EXPECT_EQ(3, arg.log_end);
	EXPECT_EQ(0, arg.log_start);
	EXPECT_EQ(0, got[0].base_offset);
	EXPECT_EQ(0, got[0].last_offset);
	EXPECT_EQ(b.size, got[0].size);
	EXPECT_EQ(-1, got[0].producer_id);
	EXPECT_EQ(EPOCH, got[0].leader_epoch);
	EXPECT_EQ(-1, got[0].control);
	EXPECT_EQ(0, got[0].pad[0] | got[0].pad[1] | got[0].pad[2]);
	EXPECT_EQ(42, got[1].producer_id);
	EXPECT_EQ(1, got[1].producer_epoch);
	EXPECT_EQ(0, got[1].base_sequence);
	EXPECT_EQ(1, got[1].count);
	EXPECT_EQ(ATTR_TRANSACTIONAL, got[1].attributes);
	EXPECT_EQ(PLOG_CONTROL_ABORT, got[2].control);
	EXPECT_EQ(5, got[2].coordinator_epoch);
	/* and nothing was written behind them */
	EXPECT_EQ(-1, got[3].base_offset);
	/* the two filters; a record-mode descriptor may ask too */
	ASSERT_EQ(0, headers(self->fd, 0, PLOG_HEADERS_PRODUCERS, 10, &arg));
	EXPECT_EQ(2, arg.count);
	ASSERT_EQ(0, headers(self->fd, 0, PLOG_HEADERS_CONTROL, 10, &arg));
	EXPECT_EQ(1, arg.count);
	EXPECT_EQ(2, got[0].base_offset);
	batch_free(&b);
}

/* A thousand batches over several segments, in pieces. */
TEST_F(producer, pieces)
{
	struct nl_partition part = { .topic = "s", .segment_bytes = 16384 };
	struct plog_headers arg;
	int64_t at = 0, next = 0;
	int fd, i;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("s", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, fd);
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(i, put_of(fd, self->incarnation, i % 3 ? -1 : i, 0, SAYS_NOTHING));
	while (at < 1000) {
		ASSERT_EQ(0, headers(fd, at, 0, 77, &arg));
		ASSERT_LT(at, arg.offset);
		for (i = 0; i < (int)arg.count; i++, next++)
			ASSERT_EQ(next, got[i].base_offset);
		at = arg.offset;
	}
	EXPECT_EQ(1000, next);
	ASSERT_EQ(0, headers(fd, 0, PLOG_HEADERS_PRODUCERS, PLOG_HEADERS_MAX, &arg));
	EXPECT_EQ(334, arg.count);
	EXPECT_EQ(999, got[333].base_offset);
	close(fd);
}

TEST_F(producer, wrong_uses)
{
	struct plog_bind bind = { .topic = "t" };
	struct plog_headers arg;
	int fd;

	ASSERT_EQ(0, PUT(1, 0, SAYS_NOTHING));
	EXPECT_EQ(-EINVAL, headers(self->batch, 0, 0, 0, &arg));
	EXPECT_EQ(-EINVAL, headers(self->batch, 0, 0, PLOG_HEADERS_MAX + 1, &arg));
	EXPECT_EQ(-EINVAL, headers(self->batch, 0, 0, UINT32_MAX, &arg));
	EXPECT_EQ(-EINVAL, headers(self->batch, 0, 1 << 3, 1, &arg));
	EXPECT_EQ(-ERANGE, headers(self->batch, -1, 0, 1, &arg));
	EXPECT_EQ(-ERANGE, headers(self->batch, 2, 0, 1, &arg));
	EXPECT_EQ(1, arg.log_end);
	EXPECT_EQ(0, headers(self->batch, 1, 0, 1, &arg));
	EXPECT_EQ(0, arg.count);
	arg = (struct plog_headers){ .count = 1, .entries = (uintptr_t)got, .reserved = { 0, 1 } };
	EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_HEADERS, &arg)));
	arg = (struct plog_headers){ .count = 1, .entries = (uintptr_t)WILD };
	EXPECT_EQ(EFAULT, FAILS(ioctl(self->batch, PLOG_IOC_HEADERS, &arg)));
	EXPECT_EQ(EFAULT, FAILS(ioctl(self->batch, PLOG_IOC_HEADERS, WILD)));
	EXPECT_EQ(ENOTCONN, FAILS(ioctl(self->control, PLOG_IOC_HEADERS, &arg)));
	/* one entry's room, and then a hole */
	arg = (struct plog_headers){ .count = 1, .entries = (uintptr_t)before_gap(sizeof(got[0])) };
	EXPECT_EQ(0, ioctl(self->batch, PLOG_IOC_HEADERS, &arg));
	arg = (struct plog_headers){ .count = 1, .entries = (uintptr_t)before_gap(10) };
	EXPECT_EQ(EFAULT, FAILS(ioctl(self->batch, PLOG_IOC_HEADERS, &arg)));
	fd = open("/dev/plog-control", O_WRONLY);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PLOG_IOC_BIND, &bind));
	EXPECT_EQ(-EBADF, headers(fd, 0, 0, 1, &arg));
	close(fd);
}

/* The log end is the daemon's; a stranger reads to the high watermark. */
TEST_F(producer, ends)
{
	struct plog_headers arg;
	struct nl_partition part = {
		.topic = "r",
		.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER,
		.mode = 0666,
		.mode_set = true,
	};
	int fd, status;
	pid_t pid;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("r", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, put_of(fd, self->incarnation, 1, 0, SAYS_NOTHING));
	EXPECT_EQ(0, headers(fd, 0, 0, 1, &arg));
	EXPECT_EQ(0, arg.count);
	EXPECT_EQ(0, headers(fd, 0, PLOG_HEADERS_LOG_END, 1, &arg));
	EXPECT_EQ(1, arg.count);
	pid = child();
	if (!pid) {
		if (setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000))
			_exit(2);
		fd = partition_bind("r", 0, PLOG_MODE_BATCH);
		_exit(fd < 0 ? 3 : headers(fd, 0, PLOG_HEADERS_LOG_END, 1, &arg) == -EPERM ? 0 : 1);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	close(fd);
}

SELFTEST_MAIN
