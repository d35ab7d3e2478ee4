// SPDX-License-Identifier: GPL-2.0
/*
 * The cursor of batch mode: LOCATE pins bytes, and read, splice and sendfile
 * take exactly those, whatever happens to the log meanwhile.
 */
#include <netinet/in.h>
#include <sys/sendfile.h>

#include "fixture.h"

/* Append @n batches of one record with @length bytes each. */
static int fill(int fd, int n, size_t length)
{
	int i, ret = 0;

	for (i = 0; i < n && !ret; i++) {
		struct batch b;

		if (!batch_fill(&b, length, 'a' + i % 26))
			return -ENOMEM;
		ret = partition_append(fd, b.data, b.size, NULL);
		batch_free(&b);
	}
	return ret;
}

static ssize_t read_fully(int fd, uint8_t *buf, size_t size)
{
	size_t got = 0;
	ssize_t n;

	while (got < size && (n = read(fd, buf + got, size - got)) > 0)
		got += (size_t)n;
	return (ssize_t)got;
}

/* A connected pair of TCP sockets on loopback. */
static int tcp_pair(int pair[2])
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (system("ip link set lo up"))
		return -1;
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (void *)&addr, sizeof(addr)) || listen(listener, 1) ||
	    getsockname(listener, (void *)&addr, &len) ||
	    connect(pair[0], (void *)&addr, sizeof(addr)))
		return -1;
	pair[1] = accept(listener, NULL, NULL);
	close(listener);
	return pair[1] < 0 ? -1 : 0;
}

TEST_F(log, locate_starts_at_the_batch_that_holds_the_offset)
{
	struct plog_locate loc;
	struct batch b;
	int i;

	ASSERT_TRUE(batch_init(&b, 4096, 1));
	for (i = 0; i < 10; i++)
		ASSERT_TRUE(batch_add_value(&b, "x", 1));
	batch_finish(&b);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, partition_append(self->batch, b.data, b.size, NULL));
	ASSERT_EQ(0, partition_locate(self->batch, 15, 1 << 20, 0, &loc));
	EXPECT_EQ(10, loc.base_offset);
	EXPECT_EQ(30, loc.next_offset);
	EXPECT_EQ(2 * b.size, loc.length);
	EXPECT_EQ(0, loc.log_start);
	EXPECT_EQ(30, loc.high_watermark);
	EXPECT_EQ(30, loc.last_stable);
	EXPECT_EQ(30, loc.log_end);
	batch_free(&b);
}

TEST_F(log, locate_keeps_to_whole_batches_in_the_limit)
{
	struct plog_locate loc;
	uint32_t one;

	ASSERT_EQ(0, fill(self->batch, 10, 100));
	ASSERT_EQ(0, partition_locate(self->batch, 0, 1 << 20, 0, &loc));
	one = loc.length / 10;
	ASSERT_EQ(0, partition_locate(self->batch, 0, 3 * one, 0, &loc));
	EXPECT_EQ(3 * one, loc.length);
	EXPECT_EQ(3, loc.next_offset);
	ASSERT_EQ(0, partition_locate(self->batch, 0, 4 * one - 1, 0, &loc));
	EXPECT_EQ(3 * one, loc.length);
	ASSERT_EQ(0, partition_locate(self->batch, 2, one - 1, 0, &loc));
	EXPECT_EQ(0, loc.length);
	EXPECT_EQ(-1, loc.base_offset);
	ASSERT_EQ(0, partition_locate(self->batch, 2, one - 1, PLOG_LOCATE_WHOLE, &loc));
	EXPECT_EQ(one, loc.length);
	ASSERT_EQ(0, partition_locate(self->batch, 2, 0, PLOG_LOCATE_WHOLE, &loc));
	EXPECT_EQ(one, loc.length);
	ASSERT_EQ(0, partition_locate(self->batch, 0, UINT32_MAX, 0, &loc));
	EXPECT_EQ(10 * one, loc.length);
}

TEST_F(log, locate_at_and_beyond_the_ends)
{
	struct plog_locate loc;

	ASSERT_EQ(0, partition_locate(self->batch, 0, 4096, 0, &loc));
	EXPECT_EQ(0, loc.length);
	ASSERT_EQ(0, fill(self->batch, 3, 10));
	ASSERT_EQ(0, partition_locate(self->batch, 3, 4096, 0, &loc));
	EXPECT_EQ(0, loc.length);
	EXPECT_EQ(-ERANGE, partition_locate(self->batch, 4, 4096, 0, &loc));
	EXPECT_EQ(3, loc.log_end);
	EXPECT_EQ(0, loc.log_start);
	EXPECT_EQ(-ERANGE, partition_locate(self->batch, -1, 4096, 0, &loc));
	EXPECT_EQ(-ERANGE, partition_locate(self->batch, INT64_MIN, 4096, 0, &loc));
	EXPECT_EQ(-ERANGE, partition_locate(self->batch, INT64_MAX, 4096, 0, &loc));
}

TEST_F(log, read_gives_the_extent_then_zero)
{
	struct plog_locate loc;
	uint8_t buf[8192];
	int64_t next = 0;

	EXPECT_EQ(0, FAILS(read(self->batch, buf, sizeof(buf))));
	ASSERT_EQ(0, fill(self->batch, 10, 100));
	ASSERT_EQ(0, partition_locate(self->batch, 0, 1 << 20, 0, &loc));
	/* appended later: not in it */
	ASSERT_EQ(0, fill(self->batch, 1, 100));
	EXPECT_EQ(7, read(self->batch, buf, 7));
	EXPECT_EQ(loc.length - 7, read_fully(self->batch, buf + 7, sizeof(buf) - 7));
	EXPECT_EQ(0, read(self->batch, buf, 1));
	EXPECT_EQ(0, read(self->batch, buf, 1));
	EXPECT_EQ(NULL, batch_walk(buf, loc.length, &next, NULL));
	EXPECT_EQ(10, next);
}

TEST_F(log, poll_follows_the_cursor)
{
	struct plog_locate loc;
	uint8_t buf[4096];
	pid_t pid;

	ASSERT_EQ(0, fill(self->batch, 1, 10));
	ASSERT_EQ(0, partition_locate(self->batch, 0, 4096, 0, &loc));
	EXPECT_NE(0, polled(self->batch, POLLIN, 0));
	ASSERT_EQ(loc.length, read(self->batch, buf, sizeof(buf)));
	ASSERT_EQ(0, partition_locate(self->batch, 1, 4096, 0, &loc));
	ASSERT_EQ(0, loc.length);
	EXPECT_EQ(0, polled(self->batch, POLLIN, 50));
	pid = child();
	if (!pid) {
		usleep(100000);
		_exit(write(self->fd, "x", 1) != 1);
	}
	EXPECT_NE(0, polled(self->batch, POLLIN, 10000));
	waitpid(pid, NULL, 0);
	ASSERT_EQ(0, partition_locate(self->batch, 1, 4096, 0, &loc));
	EXPECT_LT(0, loc.length);
}

TEST_F(log, splice_to_a_pipe_is_exact)
{
	static uint8_t want[1 << 16], got[1 << 16];
	struct plog_locate loc;
	size_t moved = 0;
	int pipefd[2];
	ssize_t n;

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(0, fill(self->batch, 20, 2000));
	ASSERT_EQ(0, partition_locate(self->batch, 0, sizeof(want), 0, &loc));
	ASSERT_EQ(loc.length, read_fully(self->batch, want, loc.length));
	ASSERT_EQ(0, partition_locate(self->batch, 0, sizeof(want), 0, &loc));
	while ((n = splice(self->batch, NULL, pipefd[1], NULL, 10000, 0)) > 0) {
		ASSERT_EQ(n, read_fully(pipefd[0], got + moved, (size_t)n));
		moved += (size_t)n;
	}
	EXPECT_EQ(0, n);
	EXPECT_EQ(loc.length, moved);
	EXPECT_EQ(0, memcmp(want, got, moved));
	close(pipefd[0]);
	close(pipefd[1]);
}

TEST_F(log, splice_and_read_share_the_cursor)
{
	static uint8_t buf[20000];
	struct plog_locate loc;
	int64_t next = 0;
	int pipefd[2];

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(0, fill(self->batch, 8, 2000));
	ASSERT_EQ(0, partition_locate(self->batch, 0, sizeof(buf), 0, &loc));
	ASSERT_EQ(1000, read(self->batch, buf, 1000));
	ASSERT_EQ(3000, splice(self->batch, NULL, pipefd[1], NULL, 3000, 0));
	ASSERT_EQ(3000, read_fully(pipefd[0], buf + 1000, 3000));
	ASSERT_EQ(loc.length - 4000, read_fully(self->batch, buf + 4000, sizeof(buf) - 4000));
	EXPECT_EQ(NULL, batch_walk(buf, loc.length, &next, NULL));
	close(pipefd[0]);
	close(pipefd[1]);
}

TEST_F(log, sendfile_to_a_socket_is_exact)
{
	static uint8_t want[1 << 20], got[1 << 20];
	struct plog_locate loc;
	size_t sent = 0;
	int pair[2], status;
	ssize_t n;
	pid_t pid;

	ASSERT_EQ(0, tcp_pair(pair));
	ASSERT_EQ(0, fill(self->batch, 9, 100000));
	ASSERT_EQ(0, partition_locate(self->batch, 0, sizeof(want), 0, &loc));
	ASSERT_LT(800000, loc.length);
	ASSERT_EQ(loc.length, read_fully(self->batch, want, loc.length));
	pid = child();
	if (!pid) {
		close(pair[0]);
		n = read_fully(pair[1], got, sizeof(got));
		_exit(n != (ssize_t)loc.length || memcmp(want, got, (size_t)n));
	}
	ASSERT_EQ(0, partition_locate(self->batch, 0, sizeof(want), 0, &loc));
	while (sent < loc.length &&
	       (n = sendfile(pair[0], self->batch, NULL, loc.length - sent)) > 0)
		sent += (size_t)n;
	EXPECT_EQ(loc.length, sent);
	EXPECT_EQ(0, sendfile(pair[0], self->batch, NULL, 1));
	close(pair[0]);
	close(pair[1]);
	waitpid(pid, &status, 0);
	EXPECT_EQ(0, status);
}

TEST_F(log, sendfile_does_not_block_on_a_full_socket)
{
	struct plog_locate loc;
	int pair[2], rounds = 0;
	ssize_t n;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	ASSERT_EQ(0, fcntl(pair[0], F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, fill(self->batch, 9, 100000));
	ASSERT_EQ(0, partition_locate(self->batch, 0, 1 << 20, 0, &loc));
	while ((n = sendfile(pair[0], self->batch, NULL, loc.length)) > 0 && rounds++ < 1000)
		;
	EXPECT_EQ(-1, n);
	EXPECT_EQ(EAGAIN, errno);
	/* what did not go is still there */
	EXPECT_NE(0, polled(self->batch, POLLIN, 0));
	close(pair[0]);
	close(pair[1]);
}

TEST_F(log, splice_without_an_extent_gives_zero)
{
	int pipefd[2];

	ASSERT_EQ(0, pipe(pipefd));
	EXPECT_EQ(0, splice(self->batch, NULL, pipefd[1], NULL, 4096, SPLICE_F_NONBLOCK));
	close(pipefd[0]);
	close(pipefd[1]);
}

TEST_F(log, extent_outlives_the_partition)
{
	static uint8_t want[1 << 16], got[1 << 16];
	struct plog_locate loc;
	char cmd[600];
	int pipefd[2];
	ssize_t n;
	size_t moved;

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(0, fill(self->batch, 20, 2000));
	ASSERT_EQ(0, partition_locate(self->batch, 0, sizeof(want), 0, &loc));
	ASSERT_EQ(loc.length, read_fully(self->batch, want, loc.length));
	ASSERT_EQ(0, partition_locate(self->batch, 0, sizeof(want), 0, &loc));

	ASSERT_EQ(0, instance_delete(&self->in, "t", 0));
	snprintf(cmd, sizeof(cmd), "rm -rf %s", instance_path(&self->in, "t", 0, NULL));
	ASSERT_EQ(0, system(cmd));

	ASSERT_EQ(5000, read_fully(self->batch, got, 5000));
	moved = 5000;
	while (moved < loc.length &&
	       (n = splice(self->batch, NULL, pipefd[1], NULL, loc.length - moved, 0)) > 0) {
		ASSERT_EQ(n, read_fully(pipefd[0], got + moved, (size_t)n));
		moved += (size_t)n;
	}
	EXPECT_EQ(loc.length, moved);
	EXPECT_EQ(0, memcmp(want, got, moved));
	EXPECT_EQ(-ENODEV, partition_locate(self->batch, 0, 4096, 0, &loc));
	close(pipefd[0]);
	close(pipefd[1]);
}

TEST_F(log, extent_outlives_the_instance)
{
	static uint8_t got[1 << 16];
	struct plog_locate loc;
	int64_t next = 0;

	ASSERT_EQ(0, fill(self->batch, 20, 2000));
	ASSERT_EQ(0, partition_locate(self->batch, 0, sizeof(got), 0, &loc));
	ASSERT_EQ(0, instance_stop(&self->in));
	ASSERT_EQ(loc.length, read_fully(self->batch, got, loc.length));
	EXPECT_EQ(NULL, batch_walk(got, loc.length, &next, NULL));
}

TEST_F(log, truncated_bytes_are_estale)
{
	static uint8_t buf[1 << 16];
	struct plog_locate loc;
	uint64_t incarnation;
	int control = control_open(0), pipefd[2];
	ssize_t n;

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(0, fill(self->batch, 20, 2000));
	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	ASSERT_EQ(0, partition_locate(self->batch, 5, sizeof(buf), 0, &loc));
	ASSERT_EQ(100, read(self->batch, buf, 100));
	/* other descriptor: must not disturb this cursor */
	{
		int other = partition_bind("t", 0, PLOG_MODE_BATCH);

		ASSERT_LE(0, other);
		ASSERT_EQ(0, partition_control(other, PLOG_CONTROL_TRUNCATE, incarnation, EPOCH, 8));
		close(other);
	}
	EXPECT_EQ(8, partition_end(self->batch));
	n = read(self->batch, buf, sizeof(buf));
	EXPECT_EQ(-1, n);
	EXPECT_EQ(ESTALE, errno);
	EXPECT_EQ(ESTALE, FAILS(splice(self->batch, NULL, pipefd[1], NULL, 4096, 0)));
	/* new bytes at the same place change nothing */
	ASSERT_EQ(0, partition_mode(self->fd, PLOG_MODE_BATCH));
	ASSERT_EQ(0, fill(self->fd, 20, 2000));
	EXPECT_EQ(ESTALE, FAILS(read(self->batch, buf, sizeof(buf))));
	EXPECT_EQ(ESTALE, FAILS(splice(self->batch, NULL, pipefd[1], NULL, 4096, 0)));
	/* a new LOCATE finds what is there now */
	ASSERT_EQ(0, partition_locate(self->batch, 5, sizeof(buf), 0, &loc));
	EXPECT_EQ(loc.length, read_fully(self->batch, buf, loc.length));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	close(pipefd[0]);
	close(pipefd[1]);
	close(control);
}

TEST_F(log, truncation_behind_an_extent_leaves_it)
{
	static uint8_t buf[1 << 16];
	struct plog_locate loc;
	uint64_t incarnation;
	int64_t next = 0;
	int control = control_open(0);

	ASSERT_EQ(0, fill(self->batch, 20, 500));
	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	ASSERT_EQ(0, partition_locate(self->batch, 0, 2000, 0, &loc));
	ASSERT_LT(0, loc.length);
	ASSERT_GT(10, loc.next_offset);
	ASSERT_EQ(0, partition_control(self->batch, PLOG_CONTROL_TRUNCATE, incarnation, EPOCH, 10));
	EXPECT_EQ(loc.length, read_fully(self->batch, buf, loc.length));
	EXPECT_EQ(NULL, batch_walk(buf, loc.length, &next, NULL));
	close(control);
}

TEST_F(log, set_mode_drops_the_extent)
{
	struct plog_locate loc;
	uint8_t buf[64];

	ASSERT_EQ(0, fill(self->batch, 1, 10));
	ASSERT_EQ(0, partition_locate(self->batch, 0, 4096, 0, &loc));
	ASSERT_EQ(0, partition_mode(self->batch, PLOG_MODE_BATCH));
	EXPECT_EQ(0, read(self->batch, buf, sizeof(buf)));
}

TEST_F(log, wild_destination_is_efault_and_keeps_the_place)
{
	struct plog_locate loc;
	uint8_t buf[4096];
	int64_t next = 0;

	ASSERT_EQ(0, fill(self->batch, 3, 100));
	ASSERT_EQ(0, partition_locate(self->batch, 0, 4096, 0, &loc));
	EXPECT_EQ(EFAULT, FAILS(read(self->batch, WILD, 100)));
	EXPECT_EQ(loc.length, read(self->batch, buf, sizeof(buf)));
	EXPECT_EQ(NULL, batch_walk(buf, loc.length, &next, NULL));
}

TEST_F(log, pins_are_counted_and_given_back)
{
	struct plog_locate loc;
	int fds[20], i;

	ASSERT_EQ(0, fill(self->batch, 3, 100));
	for (i = 0; i < 20; i++) {
		fds[i] = partition_bind("t", 0, PLOG_MODE_BATCH);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(0, partition_locate(fds[i], 0, 4096, 0, &loc));
	}
	for (i = 0; i < 20; i++)
		close(fds[i]);
	/* a second LOCATE on one descriptor drops the first */
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(0, partition_locate(self->batch, i % 3, 4096, 0, &loc));
}

TEST_F(log, extents_stay_inside_a_segment)
{
	struct nl_partition part = { .topic = "r", .segment_bytes = 4096 };
	struct plog_locate loc;
	int64_t at = 0;
	int fd, hops = 0;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("r", 0, PLOG_MODE_BATCH);
	ASSERT_EQ(0, fill(fd, 40, 600));
	while (at < 40) {
		ASSERT_EQ(0, partition_locate(fd, at, 1 << 20, 0, &loc));
		ASSERT_LT(0, loc.length);
		EXPECT_GE(4096, loc.length);
		EXPECT_EQ(at, loc.base_offset);
		at = loc.next_offset;
		hops++;
	}
	EXPECT_LT(5, hops);
	close(fd);
}

SELFTEST_MAIN
