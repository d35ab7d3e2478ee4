// SPDX-License-Identifier: GPL-2.0
/* What debugfs shows: for root alone, read-only, and right. */
#include "fixture.h"

#define ROOT "/sys/kernel/debug/plog"

struct object {
	char name[32];
	unsigned long long created, destroyed;
};

#define OBJECTS_MAX 32

/* Read ROOT/objects. Return: how many lines, or -errno. */
static int objects_read(struct object *o)
{
	FILE *f = fopen(ROOT "/objects", "r");
	int n = 0;

	if (!f)
		return -errno;
	while (n < OBJECTS_MAX &&
	       fscanf(f, "%31s %llu %llu", o[n].name, &o[n].created, &o[n].destroyed) == 3)
		n++;
	fclose(f);
	return n;
}

static long long living(const char *name)
{
	struct object o[OBJECTS_MAX];
	int n = objects_read(o), i;

	for (i = 0; i < n; i++)
		if (!strcmp(o[i].name, name))
			return o[i].created - o[i].destroyed;
	return -1;
}

/* Work of the kernel's ends soon after what people see of it. */
static long long settles(const char *name, long long want)
{
	int64_t end = now_ms() + 20000;
	long long n;

	while ((n = living(name)) != want && now_ms() < end)
		usleep(10000);
	return n;
}

TEST_F(log, objects_are_counted)
{
	struct object before[OBJECTS_MAX], after[OBJECTS_MAX];
	long long extents;
	struct plog_locate loc;
	struct batch b;
	int n, i;

	/* of an instance that comes and goes, everything is gone again */
	n = objects_read(before);
	ASSERT_LT(5, n);
	extents = living("extents");
	batch_fill(&b, 1000, 'x');
	ASSERT_EQ(0, partition_append(self->batch, b.data, b.size, NULL));
	ASSERT_EQ(0, partition_locate(self->batch, 0, 4096, 0, &loc));
	EXPECT_EQ(extents + 1, living("extents"));
	EXPECT_LE(1, living("files"));
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, instance_topic(&self->in, "u") ?:
			     instance_delete(&self->in, "u", 0));
	close(self->batch);
	self->batch = -1;
	EXPECT_EQ(extents, settles("extents", extents));
	for (i = 0; i < n; i++)
		if (!strcmp(before[i].name, "partitions") || !strcmp(before[i].name, "members") ||
		    !strcmp(before[i].name, "directories"))
			EXPECT_EQ(before[i].created - before[i].destroyed,
				  settles(before[i].name,
					  before[i].created - before[i].destroyed));
	ASSERT_EQ(n, objects_read(after));
	for (i = 0; i < n; i++) {
		EXPECT_LE(before[i].created, after[i].created);
		EXPECT_LE(before[i].destroyed, after[i].destroyed);
	}
}

TEST_F(log, nobody_writes_and_strangers_read_nothing)
{
	int fd = open(ROOT "/objects", O_RDONLY), status;
	struct stat st;
	pid_t pid;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(0400, st.st_mode & 07777);
	EXPECT_EQ(0, st.st_uid);
	close(fd);
	fd = open(ROOT "/objects", O_RDWR);
	EXPECT_NE(0, fd < 0 ? errno : FAILS(write(fd, "x", 1)));
	close(fd);
	pid = child();
	if (!pid) {
		if (setgid(65534) || setuid(65534))
			_exit(2);
		_exit(open(ROOT "/objects", O_RDONLY) < 0 && errno == EACCES ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	EXPECT_EQ(0, status);
}

/* The line of ROOT/partitions for topic @name, or false. */
static bool partition_line(const char *name, char *line, size_t size)
{
	FILE *f = fopen(ROOT "/partitions", "r");
	bool found = false;
	char key[64];

	snprintf(key, sizeof(key), " %s-0 ", name);
	while (f && !found && fgets(line, size, f))
		found = strstr(line, key) != NULL;
	if (f)
		fclose(f);
	return found;
}

TEST_F(log, partitions_tell_what_they_hold)
{
	char line[1024], *memory;
	struct plog_locate loc;
	struct batch b;

	batch_fill(&b, 1000, 'x');
	ASSERT_EQ(0, instance_topic(&self->in, "watched"));
	ASSERT_EQ(0, partition_append(self->batch, b.data, b.size, NULL));
	ASSERT_EQ(0, partition_locate(self->batch, 0, 4096, 0, &loc));
	ASSERT_TRUE(partition_line("watched", line, sizeof(line)));
	EXPECT_NE(NULL, strstr(line, " online "));
	EXPECT_NE(NULL, strstr(line, " end=0 "));
	EXPECT_NE(NULL, strstr(line, " pins=0 "));
	/* an idle partition takes at most 4 KiB of the module's memory */
	memory = strstr(line, " memory=");
	ASSERT_NE(NULL, memory);
	EXPECT_GE(4096, atoi(memory + 8)) {
		TH_LOG("%s", line);
	}
	EXPECT_LT(0, atoi(memory + 8));
}

TEST_F(log, files_are_read_while_everything_changes)
{
	static const char *const names[] = { "objects", "instances", "partitions" };
	int64_t end = now_ms() + 2000;
	char path[64], buf[4096];
	unsigned int i;
	pid_t pid;

	pid = child();
	if (!pid) {
		struct instance in;

		while (1) {
			if (namespace_new() || instance_start(&in, NULL))
				_exit(1);
			instance_topic(&in, "c");
			instance_topic(&in, "d");
			instance_delete(&in, "c", 0);
			instance_stop(&in);
			instance_remove(&in);
		}
	}
	while (now_ms() < end) {
		for (i = 0; i < 3; i++) {
			FILE *f;

			snprintf(path, sizeof(path), ROOT "/%s", names[i]);
			f = fopen(path, "r");
			ASSERT_NE(NULL, f);
			while (fgets(buf, sizeof(buf), f))
				EXPECT_NE(NULL, strchr(buf, '\n'));
			fclose(f);
		}
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

SELFTEST_MAIN
