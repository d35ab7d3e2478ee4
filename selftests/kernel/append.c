// SPDX-License-Identifier: GPL-2.0
/*
 * Appends in batch mode: what is taken, what is refused, and that a refused
 * batch leaves nothing behind.
 */
#include "fixture.h"

TEST_F(log, append_assigns_offsets)
{
	struct plog_append arg = { .leader_epoch = -1 };
	struct batch b;
	int i;

	ASSERT_TRUE(batch_init(&b, 4096, 123456));
	for (i = 0; i < 10; i++)
		ASSERT_TRUE(batch_add_value(&b, "value", 5));
	batch_finish(&b);
	for (i = 0; i < 5; i++) {
		arg.base_offset = arg.last_offset = 77;
		ASSERT_EQ(0, partition_append(self->batch, b.data, b.size, &arg));
		EXPECT_EQ(i * 10, arg.base_offset);
		EXPECT_EQ(i * 10 + 9, arg.last_offset);
		EXPECT_EQ(-1, arg.log_append_time);
		EXPECT_EQ(0, arg.log_start);
	}
	EXPECT_EQ(50, partition_end(self->batch));
	EXPECT_EQ(NULL, partition_check(self->batch, &i));
	EXPECT_EQ(5, i);
	batch_free(&b);
}

TEST_F(log, write_appends_a_batch_too)
{
	struct batch b;

	ASSERT_TRUE(batch_text(&b, "hello"));
	EXPECT_EQ(b.size, write(self->batch, b.data, b.size));
	EXPECT_EQ(1, partition_end(self->batch));
	EXPECT_EQ(EINVAL, FAILS(write(self->batch, b.data, 0)));
	EXPECT_NE(0, FAILS(write(self->batch, b.data, b.size - 1)));
	EXPECT_EQ(1, partition_end(self->batch));
	batch_free(&b);
}

TEST_F(log, every_size_around_the_bounded_buffer)
{
	static const int sizes[] = {
		0, 1, 4000, 65400, 65460, 65464, 65466, 65468, 65470, 65472, 65474, 65480, 65536,
		65600, 131072, 300000, 1048400,
	};
	struct batch b;
	char byte = 'v';
	size_t i;
	int n;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_TRUE(batch_fill(&b, (size_t)sizes[i], byte));
		ASSERT_EQ(0, partition_append(self->batch, b.data, b.size, NULL)) {
			TH_LOG("value of %d bytes", sizes[i]);
		}
		batch_free(&b);
	}
	EXPECT_EQ(NULL, partition_check(self->batch, &n));
	EXPECT_EQ(ARRAY_SIZE(sizes), n);
}

TEST_F(log, unaligned_source_addresses)
{
	uint8_t *buf = malloc(200000);
	struct batch b;
	int at;

	ASSERT_TRUE(batch_fill(&b, 150000, 'u'));
	for (at = 0; at < 9; at++) {
		memcpy(buf + at * 5, b.data, b.size);
		ASSERT_EQ(0, partition_append(self->batch, buf + at * 5, b.size, NULL));
	}
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	batch_free(&b);
	free(buf);
}

FIXTURE(size)
{
	struct instance in;
	int batch;
	int control;
	struct plog_append args;
};

FIXTURE_VARIANT(size)
{
	size_t length;
	bool daemon;
};

/*
 * Below and above the bounded buffer of 64 KiB; what the daemon vouches for and
 * is large is not copied but pinned.
 */
FIXTURE_VARIANT_ADD(size, small) { .length = 500 };
FIXTURE_VARIANT_ADD(size, large) { .length = 300000 };
FIXTURE_VARIANT_ADD(size, pinned) { .length = 300000, .daemon = true };

FIXTURE_SETUP(size)
{
	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	self->batch = partition_bind_flags("t", 0, PLOG_MODE_BATCH, O_NONBLOCK);
	ASSERT_LE(0, self->batch);
	self->control = control_open(0);
	self->args.leader_epoch = -1;
	if (variant->daemon) {
		uint64_t incarnation;

		ASSERT_EQ(0, control_register(self->control, 0, &incarnation));
		self->args.flags = PLOG_APPEND_DAEMON;
		self->args.incarnation = incarnation;
		self->args.leader_epoch = EPOCH;
	}
}

FIXTURE_TEARDOWN(size)
{
	close(self->batch);
	close(self->control);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
}

#define APPEND(from, bytes)							\
	({									\
		struct plog_append args_ = self->args;				\
		partition_append(self->batch, from, bytes, &args_);		\
	})

/* @from is refused with @error, nothing is appended, and the next append works. */
#define REFUSED(error, from, bytes)						\
	do {									\
		int64_t end_ = partition_end(self->batch);			\
		struct batch good_;						\
		EXPECT_EQ(-(error), APPEND(from, bytes));			\
		EXPECT_EQ(end_, partition_end(self->batch));			\
		ASSERT_TRUE(batch_text(&good_, "the next append is fine"));	\
		EXPECT_EQ(0, partition_append(self->batch, good_.data, good_.size, NULL)); \
		EXPECT_EQ(end_ + 1, partition_end(self->batch));		\
		EXPECT_EQ(NULL, partition_check(self->batch, NULL));		\
		batch_free(&good_);						\
	} while (0)

TEST_F(size, wrong_crc_is_ebadmsg)
{
	struct batch b;

	ASSERT_TRUE(batch_fill(&b, variant->length, 'c'));
	b.data[AT_CRC] ^= 1;
	REFUSED(EBADMSG, b.data, b.size);
	b.data[AT_CRC] ^= 1;
	b.data[b.size - 1] ^= 0x80;
	REFUSED(EBADMSG, b.data, b.size);
	b.data[b.size - 1] ^= 0x80;
	b.data[AT_MAX_TIME] ^= 4;
	REFUSED(EBADMSG, b.data, b.size);
	batch_free(&b);
}

TEST_F(size, wrong_magic_is_ebadmsg)
{
	struct batch b;
	int magic;

	ASSERT_TRUE(batch_fill(&b, variant->length, 'm'));
	for (magic = 0; magic < 256; magic += magic < 4 ? 1 : 63) {
		if (magic == 2)
			continue;
		batch_set(b.data, b.size, AT_MAGIC, 1, (uint64_t)magic);
		REFUSED(EBADMSG, b.data, b.size);
	}
	batch_free(&b);
}

TEST_F(size, wrong_length_is_einval)
{
	static const uint64_t lengths[] = { 0, 1, 48, 0x7fffffff, 0x80000000, 0xffffffff };
	struct batch b;
	size_t i;

	ASSERT_TRUE(batch_fill(&b, variant->length, 'l'));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		batch_set(b.data, b.size, AT_LENGTH, 4, lengths[i]);
		REFUSED(EINVAL, b.data, b.size);
	}
	batch_set(b.data, b.size, AT_LENGTH, 4, b.size - 12 + 1);
	REFUSED(EINVAL, b.data, b.size);
	batch_set(b.data, b.size, AT_LENGTH, 4, b.size - 12 - 1);
	REFUSED(EINVAL, b.data, b.size);
	batch_free(&b);
}

TEST_F(size, torn_batch_is_einval)
{
	struct batch b;

	ASSERT_TRUE(batch_fill(&b, variant->length, 't'));
	REFUSED(EINVAL, b.data, 1);
	REFUSED(EINVAL, b.data, BATCH_HEADER - 1);
	REFUSED(EINVAL, b.data, BATCH_HEADER);
	REFUSED(EINVAL, b.data, b.size - 1);
	REFUSED(EINVAL, b.data, 0);
	batch_free(&b);
}

TEST_F(size, wrong_count_is_einval)
{
	static const uint32_t counts[] = { 0, 2, 100, 0x7fffffff, 0x80000000, 0xffffffff };
	struct batch b;
	size_t i;

	ASSERT_TRUE(batch_fill(&b, variant->length, 'n'));
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		batch_set(b.data, b.size, AT_COUNT, 4, counts[i]);
		REFUSED(EINVAL, b.data, b.size);
	}
	batch_set(b.data, b.size, AT_COUNT, 4, 1);
	/* the offsets must be as many as the records: */
	if (!variant->daemon) {
		/* compaction leaves gaps, which only the daemon may bring */
		batch_set(b.data, b.size, AT_LAST_DELTA, 4, 5);
		REFUSED(EINVAL, b.data, b.size);
	}
	batch_set(b.data, b.size, AT_LAST_DELTA, 4, 0xffffffff);
	REFUSED(EINVAL, b.data, b.size);
	/* two records more are said than there are; the daemon would have seen that */
	batch_set(b.data, b.size, AT_LAST_DELTA, 4, 2);
	batch_set(b.data, b.size, AT_COUNT, 4, 3);
	if (!variant->daemon)
		REFUSED(EBADMSG, b.data, b.size);
	batch_free(&b);
}

TEST_F(size, two_batches_in_one_append_are_refused)
{
	struct batch b;
	uint8_t *two;

	ASSERT_TRUE(batch_fill(&b, variant->length, '2'));
	two = malloc(2 * b.size);
	memcpy(two, b.data, b.size);
	memcpy(two + b.size, b.data, b.size);
	REFUSED(EINVAL, two, 2 * b.size);
	free(two);
	batch_free(&b);
}

TEST_F(size, damaged_framing_is_refused)
{
	struct batch b;
	size_t at;

	if (variant->daemon)
		SKIP(return, "the daemon vouches for its records");
	/* the record's own length, its key length, its value's length, its headers */
	for (at = BATCH_HEADER; at < BATCH_HEADER + 10; at++) {
		int flip;

		for (flip = 1; flip < 256; flip <<= 1) {
			int ret, again;

			ASSERT_TRUE(batch_fill(&b, variant->length, 0));
			b.data[at] ^= (uint8_t)flip;
			batch_seal(b.data, b.size);
			ret = APPEND(b.data, b.size);
			/* attributes and time of a record are free, framing is not */
			if (ret) {
				EXPECT_TRUE(ret == -EINVAL || ret == -EBADMSG);
			}
			again = (int)partition_end(self->batch);
			EXPECT_LE(0, again);
			batch_free(&b);
		}
	}
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	/* every value that got in must be readable as a record */
	{
		int fd = partition_bind_flags("t", 0, 0, O_NONBLOCK);
		static char buf[1 << 20];
		ssize_t n;

		while ((n = read(fd, buf, sizeof(buf))) > 0)
			;
		EXPECT_EQ(-1, n);
		EXPECT_EQ(EAGAIN, errno);
		close(fd);
	}
}

TEST_F(size, larger_than_max_message_bytes_is_emsgsize)
{
	struct nl_partition part = { .topic = "t", .dir_fd = -1 };
	struct batch b;
	uint8_t fit[8192];
	int i, ret;

	ASSERT_TRUE(batch_fill(&b, variant->length + 1000, 'x'));
	part.max_message_bytes = (uint32_t)b.size - 1 > 1024 ? (uint32_t)b.size - 1 : 1024;
	ASSERT_EQ(0, nl_partition_set(&self->in.nl, &part));
	REFUSED(EMSGSIZE, b.data, b.size);
	/* at the limit it goes in */
	part.max_message_bytes = (uint32_t)b.size;
	ASSERT_EQ(0, nl_partition_set(&self->in.nl, &part));
	/* a change of configuration reaches the log in the background */
	for (i = 0; (ret = APPEND(b.data, b.size)) == -EMSGSIZE && i < 500; i++)
		usleep(10000);
	EXPECT_EQ(0, ret);
	/* a length that lies above the limit, with few bytes behind it */
	memcpy(fit, b.data, BATCH_HEADER);
	batch_put(fit, AT_LENGTH, 4, 0x7ffffff0);
	EXPECT_NE(0, APPEND(fit, sizeof(fit)));
	batch_free(&b);
}

TEST_F(size, wild_source_is_efault)
{
	struct batch b;
	uint8_t *gap;

	ASSERT_TRUE(batch_fill(&b, variant->length, 'w'));
	EXPECT_EQ(-EFAULT, APPEND(WILD, b.size));
	EXPECT_EQ(-EFAULT, APPEND(NULL, b.size));
	EXPECT_EQ(-EFAULT, APPEND((void *)0xffff888000000000UL, b.size));
	/* a good header, then nothing */
	gap = before_gap(BATCH_HEADER);
	memcpy(gap, b.data, BATCH_HEADER);
	REFUSED(EFAULT, gap, b.size);
	/* everything but the last byte */
	gap = before_gap(b.size - 1);
	memcpy(gap, b.data, b.size - 1);
	REFUSED(EFAULT, gap, b.size);
	batch_free(&b);
}

TEST_F(log, header_contradictions)
{
	struct batch b;
	int i;

	ASSERT_TRUE(batch_init(&b, 4096, 1000));
	for (i = 0; i < 3; i++)
		ASSERT_TRUE(batch_add_value(&b, "abc", 3));
	batch_finish(&b);
	/* a base offset of the caller's is replaced, not believed */
	batch_put(b.data, AT_BASE_OFFSET, 8, 0x7fffffffffffff00);
	batch_put(b.data, AT_EPOCH, 4, 1234);
	ASSERT_EQ(0, partition_append(self->batch, b.data, b.size, NULL));
	EXPECT_EQ(3, partition_end(self->batch));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	/* undefined attribute bits */
	batch_set(b.data, b.size, AT_ATTRIBUTES, 2, 0x8000);
	EXPECT_NE(0, partition_append(self->batch, b.data, b.size, NULL));
	EXPECT_EQ(3, partition_end(self->batch));
	batch_free(&b);
}

TEST_F(log, appends_of_many_processes_are_all_there)
{
	const int writers = 4, each = 100 / slow();
	int i, j, batches, status;
	pid_t pids[4];

	for (i = 0; i < writers; i++) {
		pids[i] = child();
		if (pids[i])
			continue;
		for (j = 0; j < each; j++) {
			struct batch b;

			if (!batch_fill(&b, (size_t)(10 + (i * each + j) * 331 % 90000), 'a' + i) ||
			    partition_append(self->batch, b.data, b.size, NULL))
				_exit(1);
			batch_free(&b);
		}
		_exit(0);
	}
	for (i = 0; i < writers; i++) {
		waitpid(pids[i], &status, 0);
		EXPECT_EQ(0, status);
	}
	EXPECT_EQ(writers * each, partition_end(self->batch));
	EXPECT_EQ(NULL, partition_check(self->batch, &batches));
	EXPECT_EQ(writers * each, batches);
}

TEST_F(log, segments_roll_and_readers_cross_them)
{
	struct nl_partition part = { .topic = "r", .segment_bytes = 4096 };
	struct plog_state state;
	char buf[600], seen[600];
	int fd, reader, i;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("r", 0, 0);
	reader = partition_bind_flags("r", 0, 0, O_NONBLOCK);
	ASSERT_LE(0, fd);
	for (i = 0; i < 100; i++) {
		memset(buf, 'a' + i % 26, sizeof(buf));
		ASSERT_EQ(sizeof(buf), write(fd, buf, sizeof(buf)));
		/* half of the records are read at once, the others later */
		if (i % 2) {
			ASSERT_EQ(sizeof(seen), read(reader, seen, sizeof(seen)));
			EXPECT_EQ('a' + i / 2 % 26, seen[0]);
		}
	}
	for (i = 50; i < 100; i++) {
		ASSERT_EQ(sizeof(seen), read(reader, seen, sizeof(seen)));
		EXPECT_EQ('a' + i % 26, seen[599]);
	}
	EXPECT_EQ(EAGAIN, FAILS(read(reader, seen, sizeof(seen))));
	ASSERT_EQ(0, partition_state(fd, &state));
	EXPECT_LT(15, state.segments);
	ASSERT_EQ(0, partition_mode(reader, PLOG_MODE_BATCH));
	EXPECT_EQ(NULL, partition_check(reader, &i));
	EXPECT_EQ(100, i);
	EXPECT_EQ(0, access(instance_path(&self->in, "r", 0, "00000000000000000000.log"), R_OK));
	close(fd);
	close(reader);
}

TEST_F(log, batch_larger_than_a_segment_gets_its_own)
{
	struct nl_partition part = { .topic = "r", .segment_bytes = 2048 };
	struct batch b;
	int fd, i, n;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("r", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, fd);
	for (i = 0; i < 6; i++) {
		ASSERT_TRUE(batch_fill(&b, i % 2 ? 100 : 1000, 'b'));
		ASSERT_EQ(0, partition_append(fd, b.data, b.size, NULL));
		batch_free(&b);
	}
	/* Kafka refuses what passes segment.bytes (RECORD_LIST_TOO_LARGE) */
	ASSERT_TRUE(batch_fill(&b, 50000, 'B'));
	n = partition_append(fd, b.data, b.size, NULL);
	EXPECT_TRUE(n == 0 || n == -EMSGSIZE);
	EXPECT_EQ(NULL, partition_check(fd, &i));
	EXPECT_EQ(6 + !n, i);
	batch_free(&b);
	close(fd);
}

TEST_F(log, segment_ms_rolls_by_time)
{
	struct nl_partition part = { .topic = "ms", .segment_ms = 50 };
	struct plog_state state;
	int fd;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("ms", 0, 0);
	ASSERT_EQ(1, write(fd, "a", 1));
	usleep(120000);
	ASSERT_EQ(1, write(fd, "b", 1));
	ASSERT_EQ(0, partition_state(fd, &state));
	EXPECT_EQ(2, state.segments);
	close(fd);
}

TEST_F(log, sync_flag_syncs)
{
	uint64_t before[PLOG_A_STATS_MAX + 1], after[PLOG_A_STATS_MAX + 1];
	struct plog_append arg = { .flags = PLOG_APPEND_SYNC, .leader_epoch = -1 };
	struct batch b;

	ASSERT_TRUE(batch_text(&b, "s"));
	ASSERT_EQ(0, nl_stats_get(&self->in.nl, "t", 0, before));
	ASSERT_EQ(0, partition_append(self->batch, b.data, b.size, &arg));
	ASSERT_EQ(0, nl_stats_get(&self->in.nl, "t", 0, after));
	EXPECT_LT(before[PLOG_A_STATS_FSYNCS], after[PLOG_A_STATS_FSYNCS]);
	EXPECT_EQ(before[PLOG_A_STATS_APPENDS] + 1, after[PLOG_A_STATS_APPENDS]);
	EXPECT_EQ(before[PLOG_A_STATS_RECORDS] + 1, after[PLOG_A_STATS_RECORDS]);
	batch_free(&b);
}

TEST_F(log, splice_from_pipe_appends_a_whole_batch)
{
	struct batch b;
	int pipefd[2];
	int64_t end;
	ssize_t n;

	/*
	 * Receiving by splice is for the daemon; what a module without it must do
	 * is refuse, never take half.
	 */
	ASSERT_TRUE(batch_text(&b, "through a pipe"));
	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(b.size, write(pipefd[1], b.data, b.size));
	n = splice(pipefd[0], NULL, self->batch, NULL, b.size, 0);
	end = partition_end(self->batch);
	EXPECT_TRUE((n == (ssize_t)b.size && end == 1) || (n < 0 && end == 0));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	close(pipefd[0]);
	close(pipefd[1]);
	batch_free(&b);
}

SELFTEST_MAIN
