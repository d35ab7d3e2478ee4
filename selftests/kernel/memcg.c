// SPDX-License-Identifier: GPL-2.0
/*
 * Whose memory a log is: the pages of its files are charged to the cgroup of whoever
 * handed the instance's directory over, not of who made the topic, nor of the writer or
 * reader that happens to fill them.
 */
#include "fixture.h"

#define ROOT	"/sys/fs/cgroup"
#define OWNER	ROOT "/plog-owner"
#define MAKER	ROOT "/plog-maker"
#define USER	ROOT "/plog-user"
#define CHUNK	(256 << 10)
#define CHUNKS	64

static int put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err = -errno;
	close(fd);
	return err;
}

/* This process, with all of its memory to come, is of that cgroup. */
static int enter(const char *cgroup)
{
	char path[128], pid[16];

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	snprintf(pid, sizeof(pid), "%d", getpid());
	return put_text(path, pid);
}

/* Bytes of files that are charged to it; -1 if it does not say. */
static long long file_bytes(const char *cgroup)
{
	char path[128], line[256];
	long long bytes = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/memory.stat", cgroup);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (bytes < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "file %lld", &bytes) != 1)
			bytes = -1;
	fclose(f);
	return bytes;
}

/* What the kernel counts by processor is added up now and then. */
static bool wait_file_bytes(const char *cgroup, long long least)
{
	int64_t end = now_ms() + 20000;

	while (file_bytes(cgroup) < least && now_ms() < end)
		usleep(50000);
	return file_bytes(cgroup) >= least;
}

static int append_chunks(void)
{
	static struct batch b;
	int fd = partition_bind("t", 0, PLOG_MODE_BATCH), i;

	if (fd < 0)
		return -fd;
	batch_fill(&b, CHUNK - 200, 'm');
	for (i = 0; i < CHUNKS; i++)
		if (partition_append(fd, b.data, b.size, NULL))
			return 99;
	return fsync(fd) ? errno : 0;
}

/* Through read(2), or through a pipe to nowhere: both bring pages in. */
static int read_all(bool spliced)
{
	static char buf[1 << 20];
	int fd = partition_bind("t", 0, PLOG_MODE_BATCH), pipes[2], null;
	int64_t end = partition_end(fd), offset = 0;

	null = open("/dev/null", O_WRONLY);
	if (fd < 0 || null < 0 || pipe(pipes))
		return 100;
	while (offset < end) {
		struct plog_locate loc;
		ssize_t n, left;

		if (partition_locate(fd, offset, sizeof(buf), 0, &loc) || !loc.length)
			return 101;
		for (left = loc.length; left > 0; left -= n) {
			n = spliced ? splice(fd, NULL, pipes[1], NULL, left, 0) :
				      read(fd, buf, left);
			if (n <= 0)
				return 102;
			if (spliced && splice(pipes[0], NULL, null, NULL, n, 0) != n)
				return 103;
		}
		offset = loc.next_offset;
	}
	return 0;
}

/* Do @work in the user's cgroup, by a process of its own. */
static int as_user(int (*work)(void))
{
	pid_t pid = child();
	int status = -1;

	if (!pid)
		_exit(enter(USER) ? 98 : work());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int read_copied(void)
{
	return read_all(false);
}

static int read_spliced(void)
{
	return read_all(true);
}

FIXTURE(memcg)
{
	struct instance in;
};

FIXTURE_SETUP(memcg)
{
	memset(self, 0, sizeof(*self));
	ASSERT_EQ(0, namespace_new());
	ASSERT_TRUE(!mkdir(OWNER, 0755) || errno == EEXIST) {
		TH_LOG("%s: %s (is cgroup2 mounted?)", OWNER, strerror(errno));
	}
	ASSERT_TRUE(!mkdir(MAKER, 0755) || errno == EEXIST);
	ASSERT_TRUE(!mkdir(USER, 0755) || errno == EEXIST);
	ASSERT_LE(0, file_bytes(OWNER)) {
		TH_LOG("no memory controller");
	}
	/* handed over from there, and then left alone */
	ASSERT_EQ(0, enter(OWNER));
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	ASSERT_EQ(0, enter(MAKER));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	ASSERT_EQ(0, enter(ROOT));
}

FIXTURE_TEARDOWN(memcg)
{
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
	EXPECT_EQ(0, rmdir(USER));
	EXPECT_EQ(0, rmdir(MAKER));
	EXPECT_EQ(0, rmdir(OWNER));
}

TEST_F(memcg, pages_of_a_log_are_its_owners)
{
	long long owner = file_bytes(OWNER), user = file_bytes(USER);
	long long log = (long long)CHUNK * CHUNKS;

	ASSERT_EQ(0, as_user(append_chunks));
	EXPECT_TRUE(wait_file_bytes(OWNER, owner + log * 15 / 16)) {
		TH_LOG("owner %lld, user %lld after an append of %lld",
		       file_bytes(OWNER) - owner, file_bytes(USER) - user, log);
	}
	EXPECT_GT(user + log / 8, file_bytes(USER));
}

TEST_F(memcg, pages_that_readers_bring_in_are_too)
{
	long long log = (long long)CHUNK * CHUNKS, owner, user;
	int (*const readers[])(void) = { read_copied, read_spliced };
	unsigned int i;

	ASSERT_EQ(0, append_chunks());
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, put_text("/proc/sys/vm/drop_caches", "1"));
		user = file_bytes(USER);
		ASSERT_EQ(0, as_user(readers[i]));
		owner = log * 15 / 16;
		EXPECT_TRUE(wait_file_bytes(OWNER, owner)) {
			TH_LOG("reader %u: owner %lld, user %lld of %lld", i, file_bytes(OWNER),
			       file_bytes(USER) - user, log);
		}
		EXPECT_GT(user + log / 8, file_bytes(USER));
	}
}

SELFTEST_MAIN
