// SPDX-License-Identifier: GPL-2.0
/*
 * Record mode: one write(2) is one record, one read(2) the next one's value.
 */
#include "fixture.h"

TEST_F(log, write_and_read_back)
{
	char buf[64];
	int reader = partition_bind_flags("t", 0, 0, O_NONBLOCK);

	ASSERT_LE(0, reader);
	EXPECT_EQ(5, write(self->fd, "hello", 5));
	EXPECT_EQ(6, write(self->fd, "world\n", 6));
	EXPECT_EQ(5, read(reader, buf, sizeof(buf)));
	EXPECT_EQ(0, memcmp(buf, "hello", 5));
	EXPECT_EQ(6, read(reader, buf, sizeof(buf)));
	EXPECT_EQ(0, memcmp(buf, "world\n", 6));
	EXPECT_EQ(EAGAIN, FAILS(read(reader, buf, sizeof(buf))));
	close(reader);
}

TEST_F(log, own_writes_do_not_move_the_read_position)
{
	char buf[8];

	EXPECT_EQ(1, write(self->fd, "a", 1));
	EXPECT_EQ(1, write(self->fd, "b", 1));
	EXPECT_EQ(1, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ('a', buf[0]);
}

TEST_F(log, every_value_size_around_varint_and_page_borders)
{
	static const int sizes[] = {
		1, 2, 49, 50, 51, 52, 53, 54, 55, 56, 57, 62, 63, 64, 65, 126, 127, 128, 129,
		4030, 4096, 8180, 8185, 8190, 8191, 8192, 8193, 65400, 65450, 65470, 65500,
		65536, 65537, 100000, 1000000, 1048500,
	};
	static uint8_t in[1048588], out[1048588];
	const char *wrong;
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (j = 0; j < (size_t)sizes[i]; j++)
			in[j] = (uint8_t)(j * 7 + i);
		ASSERT_EQ(sizes[i], write(self->fd, in, (size_t)sizes[i])) {
			TH_LOG("write of %d: %s", sizes[i], strerror(errno));
		}
		memset(out, 0, sizeof(out));
		ASSERT_EQ(sizes[i], read(self->fd, out, sizeof(out))) {
			TH_LOG("read of %d: %s", sizes[i], strerror(errno));
		}
		EXPECT_EQ(0, memcmp(in, out, (size_t)sizes[i]));
	}
	wrong = partition_check(self->batch, NULL);
	EXPECT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
}

TEST_F(log, the_batch_on_disk_is_kafkas)
{
	struct plog_locate loc;
	uint8_t buf[512];
	const uint8_t *r = buf + BATCH_HEADER;

	ASSERT_EQ(5, write(self->fd, "hello", 5));
	ASSERT_EQ(0, partition_locate(self->batch, 0, sizeof(buf), 0, &loc));
	ASSERT_EQ(loc.length, read(self->batch, buf, sizeof(buf)));
	EXPECT_EQ(0, batch_get(buf, AT_BASE_OFFSET, 8));
	EXPECT_EQ(loc.length - 12, batch_get(buf, AT_LENGTH, 4));
	EXPECT_EQ(2, batch_get(buf, AT_MAGIC, 1));
	EXPECT_EQ(0, batch_get(buf, AT_ATTRIBUTES, 2));
	EXPECT_EQ(0, batch_get(buf, AT_LAST_DELTA, 4));
	EXPECT_EQ(batch_get(buf, AT_BASE_TIME, 8), batch_get(buf, AT_MAX_TIME, 8));
	EXPECT_EQ(UINT64_MAX, batch_get(buf, AT_PRODUCER_ID, 8));
	EXPECT_EQ(UINT16_MAX, batch_get(buf, AT_PRODUCER_EPOCH, 2));
	EXPECT_EQ(UINT32_MAX, batch_get(buf, AT_SEQUENCE, 4));
	EXPECT_EQ(1, batch_get(buf, AT_COUNT, 4));
	/* length, attributes, time delta, offset delta, null key, value, no header */
	EXPECT_EQ(2 * 11, r[0]);
	EXPECT_EQ(0, r[1]);
	EXPECT_EQ(0, r[2]);
	EXPECT_EQ(0, r[3]);
	EXPECT_EQ(1, r[4]);
	EXPECT_EQ(10, r[5]);
	EXPECT_EQ(0, memcmp(r + 6, "hello", 5));
	EXPECT_EQ(0, r[11]);
	EXPECT_EQ(BATCH_HEADER + 12, loc.length);
}

TEST_F(log, writev_is_one_batch_with_a_record_an_element)
{
	struct iovec iov[3] = {
		{ "one", 3 }, { "twotwo", 6 }, { "three", 5 },
	};
	int batches, i;
	char buf[16];

	ASSERT_EQ(14, writev(self->fd, iov, 3));
	EXPECT_EQ(3, partition_end(self->fd));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(iov[i].iov_len, read(self->fd, buf, sizeof(buf)));
		EXPECT_EQ(0, memcmp(buf, iov[i].iov_base, iov[i].iov_len));
	}
	EXPECT_EQ(NULL, partition_check(self->batch, &batches));
	EXPECT_EQ(1, batches);
}

TEST_F(log, writev_of_a_thousand)
{
	static struct iovec iov[1000];
	static char text[1000][8];
	char buf[16];
	int i, n;

	for (i = 0; i < 1000; i++) {
		n = snprintf(text[i], sizeof(text[i]), "r%d", i);
		iov[i].iov_base = text[i];
		iov[i].iov_len = (size_t)n;
	}
	ASSERT_LT(0, writev(self->fd, iov, 1000));
	EXPECT_EQ(1000, partition_end(self->fd));
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(iov[i].iov_len, read(self->fd, buf, sizeof(buf)));
		ASSERT_EQ(0, memcmp(buf, text[i], iov[i].iov_len));
	}
}

TEST_F(log, writev_larger_than_the_bounded_buffer)
{
	static char big[3][200000];
	struct iovec iov[3];
	static char out[200001];
	int i;

	for (i = 0; i < 3; i++) {
		memset(big[i], 'a' + i, sizeof(big[i]));
		iov[i].iov_base = big[i];
		iov[i].iov_len = sizeof(big[i]);
	}
	ASSERT_EQ(600000, writev(self->fd, iov, 3));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(200000, read(self->fd, out, sizeof(out)));
		EXPECT_EQ(0, memcmp(out, big[i], 200000));
	}
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

TEST_F(log, empty_write_is_einval)
{
	struct iovec iov[3] = { { "", 0 }, { "", 0 }, { "x", 1 } };

	EXPECT_EQ(EINVAL, FAILS(write(self->fd, "", 0)));
	/* the kernel itself ends this one before any device hears of it */
	EXPECT_EQ(0, writev(self->fd, iov, 2));
	/* an empty record among others would be one that no read(2) can tell */
	EXPECT_EQ(EINVAL, FAILS(writev(self->fd, iov, 3)));
	EXPECT_EQ(EINVAL, FAILS(writev(self->fd, iov + 1, 2)));
	EXPECT_EQ(0, partition_end(self->fd));
	EXPECT_EQ(1, write(self->fd, "x", 1));
	EXPECT_EQ(1, partition_end(self->fd));
}

TEST_F(log, write_above_the_limit_is_emsgsize)
{
	struct nl_partition part = { .topic = "small", .max_message_bytes = 2048 };
	char buf[4096];
	int fd;

	memset(buf, 'x', sizeof(buf));
	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("small", 0, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(EMSGSIZE, FAILS(write(fd, buf, 2048)));
	EXPECT_EQ(EMSGSIZE, FAILS(write(fd, buf, 4096)));
	EXPECT_EQ(0, partition_end(fd));
	/* header, then length, attributes, deltas, key, value length, headers */
	EXPECT_EQ(EMSGSIZE, FAILS(write(fd, buf, 2048 - BATCH_HEADER - 9 + 1)));
	EXPECT_EQ(2048 - BATCH_HEADER - 9, write(fd, buf, 2048 - BATCH_HEADER - 9));
	EXPECT_EQ(1, partition_end(fd));
	close(fd);
}

TEST_F(log, write_of_two_gigabytes_is_emsgsize)
{
	char *huge = mmap(NULL, 1UL << 31, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ASSERT_NE(MAP_FAILED, huge);
	EXPECT_EQ(EMSGSIZE, FAILS(write(self->fd, huge, 0x7ffff000)));
	EXPECT_EQ(EMSGSIZE, FAILS(write(self->fd, huge, PLOG_MESSAGE_BYTES_MAX)));
	EXPECT_EQ(0, partition_end(self->fd));
	munmap(huge, 1UL << 31);
}

TEST_F(log, short_buffer_is_emsgsize_and_does_not_advance)
{
	char buf[8];

	ASSERT_EQ(5, write(self->fd, "12345", 5));
	EXPECT_EQ(EMSGSIZE, FAILS(read(self->fd, buf, 4)));
	EXPECT_EQ(EMSGSIZE, FAILS(read(self->fd, buf, 1)));
	EXPECT_EQ(5, read(self->fd, buf, 5));
	EXPECT_EQ(0, memcmp(buf, "12345", 5));
}

TEST_F(log, readv_scatters_one_value)
{
	char a[3], b[10];
	struct iovec iov[2] = { { a, 3 }, { b, 10 } };

	ASSERT_EQ(8, write(self->fd, "abcdefgh", 8));
	EXPECT_EQ(8, readv(self->fd, iov, 2));
	EXPECT_EQ(0, memcmp(a, "abc", 3));
	EXPECT_EQ(0, memcmp(b, "defgh", 5));
}

TEST_F(log, lseek_moves_by_offset)
{
	char buf[16], text[16];
	int i;

	for (i = 0; i < 20; i++) {
		int n = snprintf(text, sizeof(text), "rec%d", i);

		ASSERT_EQ(n, write(self->fd, text, (size_t)n));
	}
	EXPECT_EQ(13, lseek(self->fd, 13, SEEK_SET));
	EXPECT_EQ(5, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(0, memcmp(buf, "rec13", 5));
	EXPECT_EQ(14, lseek(self->fd, 0, SEEK_CUR));
	EXPECT_EQ(12, lseek(self->fd, -2, SEEK_CUR));
	EXPECT_EQ(5, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(0, memcmp(buf, "rec12", 5));
	EXPECT_EQ(20, lseek(self->fd, 0, SEEK_END));
	EXPECT_EQ(EAGAIN, FAILS(read(self->fd, buf, sizeof(buf))));
	EXPECT_EQ(19, lseek(self->fd, -1, SEEK_END));
	EXPECT_EQ(5, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(0, memcmp(buf, "rec19", 5));
	EXPECT_EQ(0, lseek(self->fd, 0, SEEK_SET));
	EXPECT_EQ(4, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(0, memcmp(buf, "rec0", 4));
}

TEST_F(log, lseek_inside_a_batch)
{
	struct iovec iov[3] = { { "a", 1 }, { "b", 1 }, { "c", 1 } };
	char c;

	ASSERT_EQ(3, writev(self->fd, iov, 3));
	ASSERT_EQ(3, writev(self->fd, iov, 3));
	EXPECT_EQ(4, lseek(self->fd, 4, SEEK_SET));
	EXPECT_EQ(1, read(self->fd, &c, 1));
	EXPECT_EQ('b', c);
	EXPECT_EQ(1, read(self->fd, &c, 1));
	EXPECT_EQ('c', c);
}

TEST_F(log, lseek_refuses_what_is_no_offset)
{
	EXPECT_EQ(EINVAL, FAILS(lseek(self->fd, -1, SEEK_SET)));
	EXPECT_EQ(EINVAL, FAILS(lseek(self->fd, 0, 99)));
	EXPECT_EQ(EINVAL, FAILS(lseek(self->fd, -5, SEEK_CUR)));
}

TEST_F(log, tombstones_and_empty_values_are_skipped)
{
	struct record tombstone = { .key = "k", .key_length = 1, .value_length = -1 };
	struct record empty = { .key = "k", .key_length = 1, .value = "", .value_length = 0 };
	struct record full = { .key = "k", .key_length = 1, .value = "v", .value_length = 1 };
	struct batch b;
	char buf[8];

	ASSERT_TRUE(batch_init(&b, 512, 1));
	ASSERT_TRUE(batch_add(&b, &tombstone) && batch_add(&b, &empty) && batch_add(&b, &full));
	batch_finish(&b);
	ASSERT_EQ(0, partition_append(self->batch, b.data, b.size, NULL));
	EXPECT_EQ(1, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ('v', buf[0]);
	EXPECT_EQ(3, lseek(self->fd, 0, SEEK_CUR));
	batch_free(&b);
}

TEST_F(log, read_blocks_until_a_write)
{
	int fd = partition_bind("t", 0, 0);
	int64_t start = now_ms();
	char buf[8];
	pid_t pid;

	ASSERT_LE(0, fd);
	pid = child();
	if (!pid) {
		usleep(200000);
		_exit(write(self->fd, "late", 4) != 4);
	}
	EXPECT_EQ(4, read(fd, buf, sizeof(buf)));
	EXPECT_LE(150, now_ms() - start);
	waitpid(pid, NULL, 0);
	close(fd);
}

static void nothing(int sig)
{
	(void)sig;
}

TEST_F(log, blocked_read_ends_at_a_signal)
{
	struct sigaction action = { .sa_handler = nothing };
	struct itimerval timer = { .it_value = { .tv_usec = 100000 } };
	int fd = partition_bind("t", 0, 0);
	char c;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	EXPECT_EQ(EINTR, FAILS(read(fd, &c, 1)));
	close(fd);
}

TEST_F(log, blocked_read_can_be_killed)
{
	pid_t pid = child();
	int status;

	if (!pid) {
		int fd = partition_bind("t", 0, 0);
		char c;

		_exit(read(fd, &c, 1) ? 1 : 2);
	}
	usleep(100000);
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_F(log, blocked_read_ends_when_the_partition_goes)
{
	pid_t pid = child();
	int status;

	if (!pid) {
		int fd = partition_bind("t", 0, 0);
		char c;

		_exit(FAILS(read(fd, &c, 1)));
	}
	usleep(100000);
	EXPECT_EQ(0, nl_partition_del(&self->in.nl, "t", 0));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(ENODEV, WEXITSTATUS(status));
}

TEST_F(log, poll_tells_readable_and_writable)
{
	char c;

	EXPECT_EQ(POLLOUT, polled(self->fd, POLLIN | POLLOUT, 0));
	EXPECT_EQ(0, polled(self->fd, POLLIN, 50));
	ASSERT_EQ(1, write(self->fd, "x", 1));
	EXPECT_EQ(POLLIN, polled(self->fd, POLLIN, 0));
	ASSERT_EQ(1, read(self->fd, &c, 1));
	EXPECT_EQ(0, polled(self->fd, POLLIN, 0));
}

TEST_F(log, poll_wakes_on_a_write)
{
	int64_t start = now_ms();
	pid_t pid = child();

	if (!pid) {
		usleep(150000);
		_exit(write(self->fd, "x", 1) != 1);
	}
	EXPECT_EQ(POLLIN, polled(self->fd, POLLIN, 10000));
	EXPECT_GT(5000, now_ms() - start);
	waitpid(pid, NULL, 0);
}

TEST_F(log, poll_tells_that_the_partition_is_gone)
{
	ASSERT_EQ(0, instance_delete(&self->in, "t", 0));
	EXPECT_NE(0, polled(self->fd, POLLIN | POLLOUT, 1000) & (POLLHUP | POLLERR));
	EXPECT_EQ(ENODEV, FAILS(write(self->fd, "x", 1)));
}

TEST_F(log, o_dsync_and_fsync_sync)
{
	uint64_t before[PLOG_A_STATS_MAX + 1], after[PLOG_A_STATS_MAX + 1];
	int fd = partition_bind_flags("t", 0, 0, O_DSYNC);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, nl_stats_get(&self->in.nl, "t", 0, before));
	EXPECT_EQ(1, write(fd, "a", 1));
	ASSERT_EQ(0, nl_stats_get(&self->in.nl, "t", 0, after));
	EXPECT_LT(before[PLOG_A_STATS_FSYNCS], after[PLOG_A_STATS_FSYNCS]);

	ASSERT_EQ(1, write(self->fd, "b", 1));
	ASSERT_EQ(0, nl_stats_get(&self->in.nl, "t", 0, before));
	EXPECT_EQ(before[PLOG_A_STATS_FSYNCS], after[PLOG_A_STATS_FSYNCS]);
	EXPECT_EQ(0, fsync(self->fd));
	ASSERT_EQ(0, nl_stats_get(&self->in.nl, "t", 0, after));
	EXPECT_LT(before[PLOG_A_STATS_FSYNCS], after[PLOG_A_STATS_FSYNCS]);
	EXPECT_EQ(0, fdatasync(self->fd));
	close(fd);
}

TEST_F(log, splice_and_sendfile_are_einval)
{
	int pipefd[2];
	loff_t at = 0;

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(1, write(self->fd, "x", 1));
	EXPECT_EQ(EINVAL, FAILS(splice(self->fd, NULL, pipefd[1], NULL, 4096, 0)));
	EXPECT_EQ(EINVAL, FAILS(splice(self->fd, &at, pipefd[1], NULL, 4096, 0)));
	ASSERT_EQ(3, write(pipefd[1], "abc", 3));
	EXPECT_EQ(EINVAL, FAILS(splice(pipefd[0], NULL, self->fd, NULL, 3, 0)));
	EXPECT_EQ(1, partition_end(self->fd));
	close(pipefd[0]);
	close(pipefd[1]);
}

TEST_F(log, compressed_batch_cannot_be_read_as_records)
{
	uint64_t incarnation;
	struct plog_append arg = { .flags = PLOG_APPEND_DAEMON };
	int control = control_open(0);
	struct batch b;
	char buf[8];

	/* only the daemon can bring one in; gzip in name is enough here */
	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	ASSERT_TRUE(batch_fill(&b, 40, 'z'));
	batch_set(b.data, b.size, AT_ATTRIBUTES, 2, 1);
	arg.incarnation = incarnation;
	arg.leader_epoch = EPOCH;
	ASSERT_EQ(0, partition_append(self->batch, b.data, b.size, &arg));
	ASSERT_EQ(4, write(self->fd, "next", 4));
	EXPECT_EQ(EOPNOTSUPP, FAILS(read(self->fd, buf, sizeof(buf))));
	EXPECT_EQ(EOPNOTSUPP, FAILS(read(self->fd, buf, sizeof(buf))));
	EXPECT_EQ(1, lseek(self->fd, 1, SEEK_SET));
	EXPECT_EQ(4, read(self->fd, buf, sizeof(buf)));
	batch_free(&b);
	close(control);
}

TEST_F(log, wild_buffers_are_efault)
{
	struct iovec iov[2] = { { "ok", 2 }, { WILD, 10 } };
	void *volatile low = (void *)8;
	char c;

	EXPECT_EQ(EFAULT, FAILS(write(self->fd, WILD, 10)));
	EXPECT_EQ(EFAULT, FAILS(write(self->fd, low, 10)));
	EXPECT_EQ(EFAULT, FAILS(write(self->fd, before_gap(8), 16)));
	EXPECT_EQ(EFAULT, FAILS(writev(self->fd, iov, 2)));
	EXPECT_EQ(EFAULT, FAILS(writev(self->fd, WILD, 2)));
	EXPECT_EQ(0, partition_end(self->fd));
	ASSERT_EQ(1, write(self->fd, "x", 1));
	EXPECT_EQ(EFAULT, FAILS(read(self->fd, WILD, 10)));
	EXPECT_EQ(EFAULT, FAILS(read(self->fd, before_gap(0), 10)));
	EXPECT_EQ(1, read(self->fd, &c, 1));
	EXPECT_EQ('x', c);
}

TEST_F(log, descriptor_open_for_reading_cannot_write)
{
	struct plog_bind bind = { .topic = "t" };
	int fd = open("/dev/plog-control", O_RDONLY);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PLOG_IOC_BIND, &bind));
	EXPECT_EQ(EBADF, FAILS(write(fd, "x", 1)));
	ASSERT_EQ(0, partition_mode(fd, PLOG_MODE_BATCH));
	EXPECT_EQ(-EBADF, partition_append(fd, "x", 1, NULL));
	close(fd);
	fd = open("/dev/plog-control", O_WRONLY);
	ASSERT_EQ(0, ioctl(fd, PLOG_IOC_BIND, &bind));
	EXPECT_EQ(1, write(fd, "x", 1));
	EXPECT_EQ(EBADF, FAILS(read(fd, &bind, 1)));
	close(fd);
}

TEST_F(log, log_append_time_topics_get_the_kernels_clock)
{
	struct nl_partition part = { .topic = "lat", .flags = PLOG_STATE_LOG_APPEND_TIME };
	struct plog_append arg = { .leader_epoch = -1 };
	struct plog_locate loc;
	struct batch b;
	uint8_t buf[256];
	int64_t next = 0;
	int fd;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("lat", 0, PLOG_MODE_BATCH);
	ASSERT_TRUE(batch_text(&b, "old"));
	ASSERT_EQ(0, partition_append(fd, b.data, b.size, &arg));
	EXPECT_LT(1600000000000LL, arg.log_append_time);
	ASSERT_EQ(0, partition_locate(fd, 0, sizeof(buf), 0, &loc));
	ASSERT_EQ(loc.length, read(fd, buf, sizeof(buf)));
	EXPECT_EQ(8, batch_get(buf, AT_ATTRIBUTES, 2));
	EXPECT_EQ(arg.log_append_time, batch_get(buf, AT_MAX_TIME, 8));
	EXPECT_EQ(NULL, batch_walk(buf, loc.length, &next, NULL));
	batch_free(&b);
	close(fd);
}

SELFTEST_MAIN
