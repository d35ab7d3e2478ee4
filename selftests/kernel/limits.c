// SPDX-License-Identifier: GPL-2.0
/* Each limit of Documentation/limits.rst is met, refuses, says so, and can be moved. */
#include "fixture.h"

/* A child that blocks in read(2) on topic t; its status tells how that ended. */
static pid_t reader(void)
{
	pid_t pid = child();

	if (!pid) {
		int fd = partition_bind("t", 0, 0);
		char c;

		if (fd < 0)
			_exit(255);
		_exit(read(fd, &c, 1) == 1 ? 0 : errno);
	}
	return pid;
}

static int status_of(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Calls of topic t that wait now. */
static long long waiting(struct nl *nl)
{
	uint64_t counters[PLOG_A_STATS_MAX + 1];

	return nl_stats_get(nl, "t", 0, counters) ? -1 : (long long)counters[PLOG_A_STATS_WAITERS];
}

static bool wait_waiting(struct nl *nl, long long want)
{
	int64_t end = now_ms() + 20000;

	while (waiting(nl) != want && now_ms() < end)
		usleep(2000);
	return waiting(nl) == want;
}

TEST_F(log, defaults_and_ranges)
{
	static const struct {
		int attr;
		uint32_t min, max, def;
	} all[] = {
		{ PLOG_A_INSTANCE_MAX_PARTITIONS, 1, 1 << 20, 20000 },
		{ PLOG_A_INSTANCE_MAX_WAITERS, 1, 1 << 20, 4096 },
		{ PLOG_A_INSTANCE_MAX_DESCRIPTORS, 1, INT32_MAX, 65536 },
		{ PLOG_A_INSTANCE_MAX_APPEND_BYTES, 1024, 64 << 20, 64 << 20 },
	};
	struct nl_instance got;
	struct plog_info info = { 0 };
	unsigned int i;
	int fd;

	ASSERT_EQ(0, nl_instance_get(&self->in.nl, &got));
	EXPECT_EQ(2, got.descriptors);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		EXPECT_EQ(all[i].def, got.limits[all[i].attr]);
		EXPECT_EQ(-ERANGE, nl_instance_limit(&self->in.nl, all[i].attr, all[i].min - 1));
		EXPECT_EQ(-ERANGE, nl_instance_limit(&self->in.nl, all[i].attr, all[i].max + 1));
		EXPECT_EQ(0, nl_instance_limit(&self->in.nl, all[i].attr, all[i].min));
		EXPECT_EQ(0, nl_instance_limit(&self->in.nl, all[i].attr, all[i].max));
	}
	ASSERT_EQ(0, nl_instance_get(&self->in.nl, &got));
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		EXPECT_EQ(all[i].max, got.limits[all[i].attr]);
	fd = control_open(0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PLOG_IOC_INFO, &info));
	EXPECT_EQ(1 << 20, info.partitions_max);
	EXPECT_EQ(64 << 20, info.message_bytes_max);
	close(fd);
}

TEST_F(log, of_a_namespace_without_an_instance)
{
	struct nl_instance got;
	struct nl nl;

	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, nl_open(&nl));
	EXPECT_EQ(0, nl_instance_limit(&nl, PLOG_A_INSTANCE_MAX_PARTITIONS, 7));
	ASSERT_EQ(0, nl_instance_get(&nl, &got));
	EXPECT_EQ(7, got.limits[PLOG_A_INSTANCE_MAX_PARTITIONS]);
	EXPECT_EQ(PLOG_INSTANCE_NONE, got.state);
	nl_close(&nl);
	/* and no other's */
	ASSERT_EQ(0, nl_instance_get(&self->in.nl, &got));
	EXPECT_EQ(20000, got.limits[PLOG_A_INSTANCE_MAX_PARTITIONS]);
}

TEST_F(log, partitions)
{
	ASSERT_EQ(0, nl_instance_limit(&self->in.nl, PLOG_A_INSTANCE_MAX_PARTITIONS, 2));
	EXPECT_EQ(0, instance_topic(&self->in, "u"));
	EXPECT_REFUSED(ENOSPC, instance_topic(&self->in, "v"));
	/* one less than there are refuses none that is there */
	ASSERT_EQ(0, nl_instance_limit(&self->in.nl, PLOG_A_INSTANCE_MAX_PARTITIONS, 1));
	EXPECT_EQ(1, write(self->fd, "x", 1));
	/* nor does it hide that one is there: a daemon that starts again asks for them so */
	EXPECT_REFUSED(EEXIST, instance_topic(&self->in, "u"));
	EXPECT_EQ(0, instance_delete(&self->in, "u", 0));
	EXPECT_REFUSED(ENOSPC, instance_topic(&self->in, "v"));
	ASSERT_EQ(0, nl_instance_limit(&self->in.nl, PLOG_A_INSTANCE_MAX_PARTITIONS, 2));
	EXPECT_EQ(0, instance_topic(&self->in, "v"));
}

TEST_F(log, waiters)
{
	pid_t first, second;
	char c;
	int fd;

	ASSERT_EQ(0, nl_instance_limit(&self->in.nl, PLOG_A_INSTANCE_MAX_WAITERS, 2));
	first = reader();
	second = reader();
	ASSERT_TRUE(wait_waiting(&self->in.nl, 2));
	fd = partition_bind("t", 0, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(EBUSY, FAILS(read(fd, &c, 1)));
	/* who does not wait is not counted */
	EXPECT_EQ(EAGAIN, FAILS(read(self->fd, &c, 1)));
	ASSERT_EQ(0, nl_instance_limit(&self->in.nl, PLOG_A_INSTANCE_MAX_WAITERS, 3));
	kill(first, SIGKILL);
	status_of(first);
	ASSERT_TRUE(wait_waiting(&self->in.nl, 1));
	ASSERT_EQ(1, write(self->fd, "x", 1));
	EXPECT_EQ(0, status_of(second));
	EXPECT_TRUE(wait_waiting(&self->in.nl, 0));
	EXPECT_EQ(1, read(fd, &c, 1));
	close(fd);
}

TEST_F(log, acks_all_waits_too)
{
	struct nl_partition part = { .topic = "r", .dir_fd = -1,
				     .flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER };
	struct plog_state state;
	struct batch b;
	pid_t pid;
	int fd;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	ASSERT_EQ(0, nl_instance_limit(&self->in.nl, PLOG_A_INSTANCE_MAX_WAITERS, 1));
	pid = child();
	if (!pid) {
		fd = partition_bind("r", 0, PLOG_MODE_BATCH | PLOG_MODE_ACKS_ALL);
		batch_fill(&b, 100, 'a');
		partition_append(fd, b.data, b.size, NULL);
		_exit(1);
	}
	fd = partition_bind("r", 0, PLOG_MODE_BATCH | PLOG_MODE_ACKS_ALL);
	ASSERT_LE(0, fd);
	while (!partition_state(fd, &state) && state.log_end < 1)
		usleep(2000);
	/* refused before anything is appended */
	batch_fill(&b, 100, 'b');
	EXPECT_EQ(-EBUSY, partition_append(fd, b.data, b.size, NULL));
	ASSERT_EQ(0, partition_state(fd, &state));
	EXPECT_EQ(1, state.log_end);
	kill(pid, SIGKILL);
	status_of(pid);
	close(fd);
}

TEST_F(log, descriptors)
{
	struct nl_instance got;
	pid_t pid;
	int fd;

	ASSERT_EQ(0, nl_instance_get(&self->in.nl, &got));
	ASSERT_EQ(2, got.descriptors);
	ASSERT_EQ(0, nl_instance_limit(&self->in.nl, PLOG_A_INSTANCE_MAX_DESCRIPTORS, 3));
	pid = child();
	if (!pid) {
		/* as anybody */
		if (setgid(65534) || setuid(65534))
			_exit(100);
		fd = control_open(0);
		if (fd < 0)
			_exit(-fd);
		if (control_open(0) != -ENFILE)
			_exit(101);
		close(fd);
		fd = control_open(0);
		_exit(fd < 0 ? -fd : 0);
	}
	EXPECT_EQ(0, status_of(pid));
	/* nobody else's descriptors keep an operator out */
	fd = control_open(0);
	EXPECT_LE(0, fd);
	ASSERT_EQ(0, nl_instance_get(&self->in.nl, &got));
	EXPECT_EQ(3, got.descriptors);
	close(fd);
	fd = control_open(0);
	EXPECT_LE(0, fd);
	close(fd);
}

TEST_F(log, bytes_of_an_append)
{
	static char value[4096];
	struct batch b;
	int fd;

	ASSERT_EQ(0, nl_instance_limit(&self->in.nl, PLOG_A_INSTANCE_MAX_APPEND_BYTES, 2048));
	EXPECT_EQ(EMSGSIZE, FAILS(write(self->fd, value, 2048)));
	EXPECT_EQ(1900, write(self->fd, value, 1900));
	batch_fill(&b, 2048, 'x');
	EXPECT_EQ(-EMSGSIZE, partition_append(self->batch, b.data, b.size, NULL));
	EXPECT_EQ(EMSGSIZE, FAILS(write(self->batch, b.data, b.size)));
	ASSERT_EQ(0, nl_instance_limit(&self->in.nl, PLOG_A_INSTANCE_MAX_APPEND_BYTES, 8192));
	EXPECT_EQ(0, partition_append(self->batch, b.data, b.size, NULL));
	fd = partition_bind("t", 0, 0);
	EXPECT_EQ(2048, write(fd, value, 2048));
	EXPECT_EQ(3, partition_end(fd));
	close(fd);
}

SELFTEST_MAIN
