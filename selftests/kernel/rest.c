// SPDX-License-Identifier: GPL-2.0
/*
 * Partitions that nobody appends to close their files; the next append has them
 * again, and never another file that bears the name.
 */
#include "fixture.h"

#define PARAMETERS	"/sys/module/plog/parameters/"
#define MANY		40

static unsigned int parameter(const char *name)
{
	char path[96], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, text, sizeof(text) - 1) < 0)
			text[0] = 0;
		close(fd);
	}
	return atoi(text);
}

static int set_parameter(const char *name, unsigned int value)
{
	char path[96], text[16];
	int fd, n, err = 0;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	n = snprintf(text, sizeof(text), "%u", value);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, n) != n)
		err = -errno;
	close(fd);
	return err;
}

static long long files(struct nl *nl, const char *topic)
{
	uint64_t counters[PLOG_A_STATS_MAX + 1];

	return nl_stats_get(nl, topic, 0, counters) ? -1 :
						      (long long)counters[PLOG_A_STATS_OPEN_FILES];
}

/* Files of topic come down, or go up, to @want. */
static bool wait_files(struct nl *nl, const char *topic, long long want)
{
	int64_t end = now_ms() + 30000 * slow();

	while (files(nl, topic) != want && now_ms() < end)
		usleep(20000);
	return files(nl, topic) == want;
}

FIXTURE(rest)
{
	FIXTURE_DATA(log) log;
	unsigned int active, idle;
};

FIXTURE_SETUP(rest)
{
	memset(self, 0, sizeof(*self));
	self->active = parameter("active_segments_max");
	self->idle = parameter("idle_segments_max");
	ASSERT_EQ(1024, self->active);
	ASSERT_EQ(128, self->idle);
	ASSERT_EQ(0, set_parameter("active_segments_max", 0));
	ASSERT_EQ(0, set_parameter("idle_segments_max", 0));
	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->log.in, NULL));
	ASSERT_EQ(0, instance_topic(&self->log.in, "t"));
	self->log.fd = partition_bind_flags("t", 0, 0, O_NONBLOCK);
	ASSERT_LE(0, self->log.fd);
}

FIXTURE_TEARDOWN(rest)
{
	close(self->log.fd);
	EXPECT_EQ(0, instance_stop(&self->log.in));
	instance_remove(&self->log.in);
	EXPECT_EQ(0, set_parameter("active_segments_max", self->active));
	EXPECT_EQ(0, set_parameter("idle_segments_max", self->idle));
}

TEST_F(rest, closes_and_opens_again)
{
	struct nl *nl = &self->log.in.nl;
	char value[16], got[16];
	int i, n, fd;

	EXPECT_EQ(0, files(nl, "t"));
	for (i = 0; i < 3; i++) {
		n = snprintf(value, sizeof(value), "value %d", i);
		ASSERT_EQ(n, write(self->log.fd, value, n));
		EXPECT_TRUE(wait_files(nl, "t", 0)) {
			TH_LOG("%lld files stay open", files(nl, "t"));
		}
	}
	fd = partition_bind_flags("t", 0, 0, O_NONBLOCK);
	ASSERT_LE(0, fd);
	for (i = 0; i < 3; i++) {
		n = snprintf(value, sizeof(value), "value %d", i);
		ASSERT_EQ(n, read(fd, got, sizeof(got)));
		EXPECT_EQ(0, memcmp(value, got, n));
	}
	close(fd);
}

/* As long as there are fewer than that, nobody closes anything. */
TEST_F(rest, no_more_than_must)
{
	struct nl *nl = &self->log.in.nl;

	ASSERT_EQ(0, set_parameter("active_segments_max", 1));
	ASSERT_EQ(1, write(self->log.fd, "x", 1));
	EXPECT_EQ(3, files(nl, "t"));
	usleep(2500000);
	EXPECT_EQ(3, files(nl, "t"));
}

TEST_F(rest, many_partitions)
{
	int fds[MANY], i;
	char topic[16];

	for (i = 0; i < MANY; i++) {
		snprintf(topic, sizeof(topic), "many%d", i);
		ASSERT_EQ(0, instance_topic(&self->log.in, topic));
		fds[i] = partition_bind_flags(topic, 0, 0, O_NONBLOCK);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(1, write(fds[i], "x", 1));
	}
	for (i = 0; i < MANY; i++) {
		snprintf(topic, sizeof(topic), "many%d", i);
		EXPECT_TRUE(wait_files(&self->log.in.nl, topic, 0));
		EXPECT_EQ(1, write(fds[i], "y", 1));
		EXPECT_EQ(2, partition_end(fds[i]));
		close(fds[i]);
	}
}

/* What was put under the log's name while nobody looked is not written to. */
TEST_F(rest, another_file_of_that_name)
{
	struct plog_state state;
	char path[320], away[320];
	struct stat st;
	int fd;

	ASSERT_EQ(1, write(self->log.fd, "x", 1));
	ASSERT_TRUE(wait_files(&self->log.in.nl, "t", 0));
	snprintf(path, sizeof(path), "%s",
		 instance_path(&self->log.in, "t", 0, "00000000000000000000.log"));
	snprintf(away, sizeof(away), "%s",
		 instance_path(&self->log.in, "t", 0, "away"));
	ASSERT_EQ(0, rename(path, away));
	fd = open(path, O_CREAT | O_RDWR, 0644);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ftruncate(fd, 5000));
	EXPECT_EQ(EUCLEAN, FAILS(write(self->log.fd, "y", 1)));
	ASSERT_EQ(0, partition_state(self->log.fd, &state));
	EXPECT_EQ(PLOG_PARTITION_FENCED, state.state);
	EXPECT_EQ(EROFS, FAILS(write(self->log.fd, "y", 1)));
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(5000, st.st_size);
	EXPECT_EQ(0, st.st_blocks);
	close(fd);
	ASSERT_EQ(0, rename(away, path));
}

/* A directory that took the name is not the partition's. */
TEST_F(rest, another_directory_of_that_name)
{
	char path[320], away[340];

	ASSERT_EQ(1, write(self->log.fd, "x", 1));
	ASSERT_TRUE(wait_files(&self->log.in.nl, "t", 0));
	snprintf(path, sizeof(path), "%s", instance_path(&self->log.in, "t", 0, NULL));
	snprintf(away, sizeof(away), "%s.away", path);
	ASSERT_EQ(0, rename(path, away));
	ASSERT_EQ(0, mkdir(path, 0755));
	EXPECT_EQ(1, write(self->log.fd, "y", 1));
	EXPECT_EQ(2, partition_end(self->log.fd));
	/* nothing was made in there */
	EXPECT_EQ(0, rmdir(path));
	EXPECT_EQ(0, rename(away, path));
}

SELFTEST_MAIN
