// SPDX-License-Identifier: GPL-2.0
/*
 * Finding records by time, inside batches and over segments.
 */
#include "fixture.h"

static int lookup(int fd, int64_t timestamp, uint32_t flags, struct plog_lookup *out)
{
	memset(out, 0, sizeof(*out));
	out->timestamp = timestamp;
	out->flags = flags;
	return ioctl(fd, PLOG_IOC_LOOKUP, out) ? -errno : 0;
}

static int append_at(int fd, int64_t base, const int64_t *deltas, int n)
{
	struct batch b;
	int i, ret;

	if (!batch_init(&b, 4096, base))
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		struct record r = {
			.key_length = -1, .value = "value", .value_length = 5,
			.time_delta = deltas[i],
		};

		batch_add(&b, &r);
	}
	batch_finish(&b);
	ret = partition_append(fd, b.data, b.size, NULL);
	batch_free(&b);
	return ret;
}

TEST_F(log, empty_log_has_nothing)
{
	struct plog_lookup look;

	ASSERT_EQ(0, lookup(self->batch, 0, 0, &look));
	EXPECT_EQ(-1, look.offset);
	EXPECT_EQ(-1, look.timestamp);
	ASSERT_EQ(0, lookup(self->batch, 0, PLOG_LOOKUP_MAX, &look));
	EXPECT_EQ(-1, look.offset);
}

TEST_F(log, finds_the_first_record_at_or_after)
{
	static const int64_t deltas[] = { 0, 10, 20, 30 };
	struct plog_lookup look;
	int i;

	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, append_at(self->batch, 1000 + 100 * i, deltas, 4));
	ASSERT_EQ(0, lookup(self->batch, 0, 0, &look));
	EXPECT_EQ(0, look.offset);
	EXPECT_EQ(1000, look.timestamp);
	ASSERT_EQ(0, lookup(self->batch, 1310, 0, &look));
	EXPECT_EQ(13, look.offset);
	EXPECT_EQ(1310, look.timestamp);
	ASSERT_EQ(0, lookup(self->batch, 1311, 0, &look));
	EXPECT_EQ(14, look.offset);
	EXPECT_EQ(1320, look.timestamp);
	ASSERT_EQ(0, lookup(self->batch, 1331, 0, &look));
	EXPECT_EQ(16, look.offset);
	EXPECT_EQ(1400, look.timestamp);
	ASSERT_EQ(0, lookup(self->batch, 1930, 0, &look));
	EXPECT_EQ(39, look.offset);
	ASSERT_EQ(0, lookup(self->batch, 1931, 0, &look));
	EXPECT_EQ(-1, look.offset);
	EXPECT_EQ(-1, look.timestamp);
	ASSERT_EQ(0, lookup(self->batch, INT64_MAX, 0, &look));
	EXPECT_EQ(-1, look.offset);
	/* what came out is nothing to go in with */
	EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_LOOKUP, &look)));
}

TEST_F(log, times_out_of_order)
{
	static const int64_t deltas[] = { 50, 0, 90, 10 };
	struct plog_lookup look;

	ASSERT_EQ(0, append_at(self->batch, 5000, deltas, 4));
	ASSERT_EQ(0, append_at(self->batch, 1000, deltas, 4));
	ASSERT_EQ(0, append_at(self->batch, 3000, deltas, 4));
	ASSERT_EQ(0, lookup(self->batch, 1000, 0, &look));
	EXPECT_EQ(0, look.offset);
	EXPECT_EQ(5050, look.timestamp);
	ASSERT_EQ(0, lookup(self->batch, 5051, 0, &look));
	EXPECT_EQ(2, look.offset);
	EXPECT_EQ(5090, look.timestamp);
	ASSERT_EQ(0, lookup(self->batch, 5091, 0, &look));
	EXPECT_EQ(-1, look.offset);
	ASSERT_EQ(0, lookup(self->batch, 0, PLOG_LOOKUP_MAX, &look));
	EXPECT_EQ(2, look.offset);
	EXPECT_EQ(5090, look.timestamp);
}

TEST_F(log, over_many_segments)
{
	struct nl_partition part = {
		.topic = "r", .segment_bytes = 4096, .index_interval_bytes = 512,
	};
	static const int64_t deltas[] = { 0, 1 };
	struct plog_lookup look;
	int fd, i;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("r", 0, PLOG_MODE_BATCH);
	for (i = 0; i < 500; i++)
		ASSERT_EQ(0, append_at(fd, 10000 + 10 * i, deltas, 2));
	for (i = 0; i < 500; i += 7) {
		ASSERT_EQ(0, lookup(fd, 10000 + 10 * i, 0, &look));
		EXPECT_EQ(2 * i, look.offset);
		ASSERT_EQ(0, lookup(fd, 10000 + 10 * i + 1, 0, &look));
		EXPECT_EQ(2 * i + 1, look.offset);
		EXPECT_EQ(10000 + 10 * i + 1, look.timestamp);
	}
	ASSERT_EQ(0, lookup(fd, 0, PLOG_LOOKUP_MAX, &look));
	EXPECT_EQ(999, look.offset);
	close(fd);
}

TEST_F(log, compressed_batches_say_look_inside)
{
	struct plog_append arg = { .flags = PLOG_APPEND_DAEMON, .leader_epoch = EPOCH };
	int control = control_open(0);
	struct plog_lookup look;
	uint64_t incarnation;
	struct batch b;

	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	arg.incarnation = incarnation;
	ASSERT_TRUE(batch_fill(&b, 100, 'z'));
	batch_put(b.data, AT_MAX_TIME, 8, 2000);
	batch_set(b.data, b.size, AT_ATTRIBUTES, 2, 4);
	ASSERT_EQ(0, partition_append(self->batch, b.data, b.size, &arg));
	ASSERT_EQ(0, lookup(self->batch, 1500, 0, &look));
	EXPECT_EQ(0, look.offset);
	EXPECT_EQ(PLOG_LOOKUP_INSIDE, look.flags);
	EXPECT_EQ(2000, look.timestamp);
	ASSERT_EQ(0, lookup(self->batch, 2001, 0, &look));
	EXPECT_EQ(-1, look.offset);
	batch_free(&b);
	close(control);
}

TEST_F(log, negative_and_extreme_times)
{
	static const int64_t deltas[] = { 0 };
	struct plog_lookup look;

	ASSERT_EQ(0, append_at(self->batch, 100, deltas, 1));
	ASSERT_EQ(0, lookup(self->batch, INT64_MIN, 0, &look));
	EXPECT_EQ(0, look.offset);
	ASSERT_EQ(0, lookup(self->batch, -1, 0, &look));
	EXPECT_EQ(0, look.offset);
	ASSERT_EQ(0, lookup(self->batch, INT64_MAX, 0, &look));
	EXPECT_EQ(-1, look.offset);
}

TEST_F(log, from_an_offset_and_below_the_log_start)
{
	struct plog_control start = { .command = PLOG_CONTROL_LOG_START, .offset = 7,
				      .leader_epoch = EPOCH };
	static const int64_t deltas[] = { 50, 0, 90, 10 };
	int control = control_open(0);
	struct plog_lookup look;
	uint64_t incarnation;

	ASSERT_EQ(0, append_at(self->batch, 5000, deltas, 4));	/* 0: 5050 5000 5090 5010 */
	ASSERT_EQ(0, append_at(self->batch, 5000, deltas, 4));	/* 4 */
	ASSERT_EQ(0, append_at(self->batch, 3000, deltas, 4));	/* 8 */
	memset(&look, 0, sizeof(look));
	look.timestamp = 5040;
	look.offset = 1;
	ASSERT_EQ(0, FAILS(ioctl(self->batch, PLOG_IOC_LOOKUP, &look)));
	EXPECT_EQ(2, look.offset);
	memset(&look, 0, sizeof(look));
	look.flags = PLOG_LOOKUP_MAX;
	look.offset = 3;
	ASSERT_EQ(0, FAILS(ioctl(self->batch, PLOG_IOC_LOOKUP, &look)));
	EXPECT_EQ(6, look.offset);
	look.offset = -1;
	EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_LOOKUP, &look)));

	/* the latest are deleted, one of them in the batch that the log starts in */
	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	start.incarnation = incarnation;
	ASSERT_EQ(0, FAILS(ioctl(self->batch, PLOG_IOC_CONTROL, &start)));
	ASSERT_EQ(0, lookup(self->batch, 0, PLOG_LOOKUP_MAX, &look));
	EXPECT_EQ(7, look.offset);
	EXPECT_EQ(5010, look.timestamp);
	ASSERT_EQ(0, lookup(self->batch, 5011, 0, &look));
	EXPECT_EQ(-1, look.offset);
	EXPECT_EQ(0, look.flags);
	close(control);
}

SELFTEST_MAIN
