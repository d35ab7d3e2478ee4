// SPDX-License-Identifier: GPL-2.0
/*
 * Device nodes, which only the initial network namespace has: /dev/plog/T/P is
 * bound when it is opened, has the partition's owner and mode, comes and goes
 * with it.
 */
#include <dirent.h>
#include <grp.h>

#include "fixture.h"

FIXTURE(node)
{
	struct instance in;
};

FIXTURE_SETUP(node)
{
	int ret = instance_start(&self->in, NULL);

	ASSERT_EQ(0, ret) {
		TH_LOG("%s: %s; is an instance running in this namespace?", strerror(-ret),
		       self->in.nl.error_text);
	}
}

FIXTURE_TEARDOWN(node)
{
	EXPECT_EQ(0, instance_stop(&self->in));
	EXPECT_NE(0, access("/dev/plog/n/0", F_OK));
	instance_remove(&self->in);
}

/* devtmpfs works in a thread of its own: wait for a node to come or go. */
static bool node_is(const char *path, bool there)
{
	int64_t end = now_ms() + 5000;

	do {
		if (!access(path, F_OK) == there)
			return true;
		usleep(1000);
	} while (now_ms() < end);
	return false;
}

static int with_node(struct instance *in, const char *topic, uint32_t uid, uint32_t gid,
		     uint32_t mode)
{
	struct nl_partition part = {
		.topic = topic, .uid = uid, .gid = gid, .mode = mode, .mode_set = true,
		.node = true,
	};

	return instance_partition(in, &part);
}

TEST_F(node, echo_and_cat)
{
	char buf[64] = "", command[64];
	FILE *f;

	ASSERT_EQ(0, with_node(&self->in, "n", 0, 0, 0600)) {
		TH_LOG("%s", self->in.nl.error_text);
	}
	ASSERT_TRUE(node_is("/dev/plog/n/0", true));
	ASSERT_EQ(0, system("echo hello > /dev/plog/n/0"));
	ASSERT_EQ(0, system("printf 'two\\n' >> /dev/plog/n/0"));
	f = popen("head -n 2 /dev/plog/n/0", "r");
	ASSERT_NE(NULL, f);
	EXPECT_NE(NULL, fgets(buf, sizeof(buf), f));
	EXPECT_STREQ("hello\n", buf);
	EXPECT_NE(NULL, fgets(buf, sizeof(buf), f));
	EXPECT_STREQ("two\n", buf);
	pclose(f);
	/* cat follows until it is killed */
	snprintf(command, sizeof(command), "timeout %d cat /dev/plog/n/0", 3 * slow());
	f = popen(command, "r");
	EXPECT_NE(NULL, fgets(buf, sizeof(buf), f));
	EXPECT_STREQ("hello\n", buf);
	EXPECT_NE(NULL, fgets(buf, sizeof(buf), f));
	EXPECT_EQ(NULL, fgets(buf, sizeof(buf), f));
	pclose(f);
}

TEST_F(node, dd_and_tee)
{
	ASSERT_EQ(0, with_node(&self->in, "n", 0, 0, 0600));
	ASSERT_TRUE(node_is("/dev/plog/n/0", true));
	EXPECT_EQ(0, system("head -c 30000 /dev/zero | dd of=/dev/plog/n/0 bs=10000 "
			    "iflag=fullblock 2>/dev/null"));
	EXPECT_EQ(0, system("echo tee | tee /dev/plog/n/0 >/dev/null"));
	EXPECT_EQ(0, system("test $(dd if=/dev/plog/n/0 bs=64k count=3 2>/dev/null | wc -c) = "
			    "30000"));
}

TEST_F(node, owner_and_mode_are_the_partitions)
{
	struct stat st;
	int i;

	ASSERT_EQ(0, with_node(&self->in, "n", 1000, 1001, 0640));
	ASSERT_TRUE(node_is("/dev/plog/n/0", true));
	/* devtmpfs makes a node as root's and then gives it away */
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(0, stat("/dev/plog/n/0", &st));
		if (st.st_uid == 1000)
			break;
		usleep(10000);
	}
	EXPECT_EQ(1000, st.st_uid);
	EXPECT_EQ(1001, st.st_gid);
	EXPECT_EQ(0640, st.st_mode & 07777);
	EXPECT_TRUE(S_ISCHR(st.st_mode));
}

TEST_F(node, chmod_of_the_node_gives_nothing_away)
{
	pid_t pid;
	int status;

	/* the partition's own bits count, whatever the node's say */
	ASSERT_EQ(0, with_node(&self->in, "n", 0, 0, 0600));
	ASSERT_TRUE(node_is("/dev/plog/n/0", true));
	ASSERT_EQ(0, chmod("/dev/plog/n/0", 0666));
	pid = child();
	if (!pid) {
		if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
		    setresuid(65534, 65534, 65534))
			_exit(1);
		_exit(open("/dev/plog/n/0", O_RDWR) < 0 && errno == EACCES ? 0 : 2);
	}
	waitpid(pid, &status, 0);
	EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST_F(node, comes_and_goes_with_the_partition)
{
	int i, fd;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, with_node(&self->in, "n", 0, 0, 0600));
		ASSERT_TRUE(node_is("/dev/plog/n/0", true));
		fd = open("/dev/plog/n/0", O_RDWR | O_NONBLOCK);
		ASSERT_LE(0, fd);
		EXPECT_EQ(1, write(fd, "x", 1));
		EXPECT_EQ(i + 1, partition_end(fd));
		ASSERT_EQ(0, instance_delete(&self->in, "n", 0));
		EXPECT_TRUE(node_is("/dev/plog/n/0", false));
		EXPECT_EQ(ENODEV, FAILS(write(fd, "x", 1)));
		close(fd);
	}
}

TEST_F(node, recreated_after_a_reopen)
{
	char dir[256], buf[8];
	int fd;

	ASSERT_EQ(0, with_node(&self->in, "n", 0, 0, 0600));
	ASSERT_TRUE(node_is("/dev/plog/n/0", true));
	ASSERT_EQ(0, system("echo kept > /dev/plog/n/0"));
	strcpy(dir, self->in.dir);
	ASSERT_EQ(0, instance_stop(&self->in));
	EXPECT_TRUE(node_is("/dev/plog/n/0", false));
	ASSERT_EQ(0, instance_start(&self->in, dir));
	ASSERT_EQ(0, with_node(&self->in, "n", 0, 0, 0600));
	ASSERT_TRUE(node_is("/dev/plog/n/0", true));
	fd = open("/dev/plog/n/0", O_RDONLY);
	EXPECT_EQ(5, read(fd, buf, sizeof(buf)));
	EXPECT_EQ(0, memcmp(buf, "kept\n", 5));
	close(fd);
}

TEST_F(node, set_switches_it_on)
{
	struct nl_partition part = { .topic = "n", .dir_fd = -1, .node = true };
	struct nl_partition got;
	int i;

	ASSERT_EQ(0, instance_topic(&self->in, "n"));
	EXPECT_NE(0, access("/dev/plog/n/0", F_OK));
	ASSERT_EQ(0, nl_partition_set(&self->in.nl, &part));
	EXPECT_TRUE(node_is("/dev/plog/n/0", true));
	/* the file is there a moment before the worker says so */
	for (i = 0; i < 500; i++) {
		ASSERT_EQ(0, nl_partition_get(&self->in.nl, "n", 0, &got));
		if (got.node)
			break;
		usleep(1000);
	}
	EXPECT_TRUE(got.node);
}

TEST_F(node, batch_mode_on_a_node)
{
	struct batch b;
	int fd;

	ASSERT_EQ(0, with_node(&self->in, "n", 0, 0, 0600));
	ASSERT_TRUE(node_is("/dev/plog/n/0", true));
	fd = open("/dev/plog/n/0", O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, partition_mode(fd, PLOG_MODE_BATCH));
	ASSERT_TRUE(batch_text(&b, "batch"));
	EXPECT_EQ(0, partition_append(fd, b.data, b.size, NULL));
	EXPECT_EQ(NULL, partition_check(fd, NULL));
	{
		struct plog_bind bind = { .topic = "n" };

		EXPECT_EQ(EBUSY, FAILS(ioctl(fd, PLOG_IOC_BIND, &bind)));
		EXPECT_EQ(-EBUSY, control_register(fd, 0, NULL));
	}
	close(fd);
	batch_free(&b);
}

TEST_F(node, two_partitions_two_nodes)
{
	struct nl_partition part = { .topic = "n", .node = true };

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	part.index = 1;
	ASSERT_EQ(0, instance_partition(&self->in, &part));
	ASSERT_TRUE(node_is("/dev/plog/n/0", true));
	ASSERT_TRUE(node_is("/dev/plog/n/1", true));
	ASSERT_EQ(0, system("echo zero > /dev/plog/n/0; echo one > /dev/plog/n/1"));
	EXPECT_EQ(0, system("test $(head -n 1 /dev/plog/n/1) = one"));
	ASSERT_EQ(0, instance_delete(&self->in, "n", 0));
	EXPECT_TRUE(node_is("/dev/plog/n/0", false));
	EXPECT_EQ(0, system("test $(head -n 1 /dev/plog/n/1) = one"));
}

/* Another directory each time: the one before may still be closing. */
static int again(struct instance *in, int round)
{
	struct nl_partition part = { .topic = "again", .node = true };
	char dir[16];
	int ret;

	snprintf(dir, sizeof(dir), "dir%d", round % 2);
	if (mkdirat(in->dir_fd, dir, 0755) && errno != EEXIST)
		return -errno;
	part.dir_fd = openat(in->dir_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (part.dir_fd < 0)
		return -errno;
	ret = nl_partition_new(&in->nl, &part);
	close(part.dir_fd);
	return ret;
}

TEST_F(node, a_name_is_taken_until_its_node_is_gone)
{
	int64_t end = now_ms() + 20000;
	int round, busy = 0, ret;

	for (round = 0; round < 40 && now_ms() < end; round++) {
		do {
			ret = again(&self->in, round);
			if (ret == -EBUSY) {
				busy++;
				EXPECT_STRNE("", self->in.nl.error_text);
			}
		} while (ret == -EBUSY && now_ms() < end);
		ASSERT_EQ(0, ret) TH_LOG("round %d: %s", round, self->in.nl.error_text);
		ASSERT_EQ(0, instance_wait(&self->in, "again", 0));
		ASSERT_TRUE(node_is("/dev/plog/again/0", true)) TH_LOG("round %d", round);
		ASSERT_EQ(0, nl_partition_del(&self->in.nl, "again", 0));
	}
	EXPECT_EQ(40, round);
	/* or the test has tested nothing */
	EXPECT_LT(0, busy);
	EXPECT_TRUE(node_is("/dev/plog/again/0", false));
}

TEST_F(node, o_trunc_and_o_append_are_harmless)
{
	int fd;

	ASSERT_EQ(0, with_node(&self->in, "n", 0, 0, 0600));
	ASSERT_TRUE(node_is("/dev/plog/n/0", true));
	ASSERT_EQ(0, system("echo one > /dev/plog/n/0"));
	fd = open("/dev/plog/n/0", O_WRONLY | O_TRUNC | O_APPEND | O_CREAT, 0600);
	ASSERT_LE(0, fd);
	EXPECT_EQ(1, partition_end(fd));
	EXPECT_EQ(3, write(fd, "two", 3));
	EXPECT_EQ(2, partition_end(fd));
	close(fd);
	EXPECT_NE(0, truncate("/dev/plog/n/0", 0));
}

TEST_F(node, other_namespaces_have_none)
{
	struct nl_partition part = { .topic = "other", .node = true };
	struct instance in;
	int ret;

	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&in, NULL));
	ret = instance_partition(&in, &part);
	EXPECT_NE(0, access("/dev/plog/other/0", F_OK));
	/* asking for one is refused with a reason, or is without effect */
	if (ret) {
		EXPECT_STRNE("", in.nl.error_text);
	}
	EXPECT_EQ(0, instance_stop(&in));
	instance_remove(&in);
}

SELFTEST_MAIN
