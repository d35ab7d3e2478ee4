// SPDX-License-Identifier: GPL-2.0
/*
 * The netlink family: every request, what it refuses and says, events, dumps.
 * The relay has a file of its own.
 */
#include <linux/capability.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "fixture.h"

/* PARTITION_NEW for DIR/NAME-0 with attributes of @part. */
static int partition_in(struct instance *in, const char *name, struct nl_partition *part)
{
	const char *path = instance_path(in, name, 0, NULL);
	int ret;

	if (mkdir(path, 0755) && errno != EEXIST)
		return 1;
	part->dir_fd = open(path, O_RDONLY | O_DIRECTORY);
	ret = nl_partition_new(&in->nl, part);
	close(part->dir_fd);
	return ret;
}

TEST_F(log, instance_get_describes_it)
{
	struct nl_instance got;

	ASSERT_EQ(0, nl_instance_get(&self->in.nl, &got));
	EXPECT_EQ(PLOG_INSTANCE_RUNNING, got.state);
	EXPECT_STREQ(self->in.dir, got.data_dir);
	EXPECT_EQ(1, got.partitions);
	EXPECT_EQ(1, got.online);
	EXPECT_EQ(0, got.incarnation);
	EXPECT_STRNE("", got.version);
}

TEST_F(log, namespace_without_instance)
{
	struct nl_instance got;
	struct nl_partition part;
	struct nl nl;

	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, nl_open(&nl));
	ASSERT_EQ(0, nl_instance_get(&nl, &got));
	EXPECT_EQ(PLOG_INSTANCE_NONE, got.state);
	EXPECT_EQ(0, got.partitions);
	EXPECT_GT(0, nl_partition_get(&nl, "t", 0, &part));
	EXPECT_STRNE("", nl.error_text);
	EXPECT_GT(0, nl_partition_del(&nl, "t", 0));
	EXPECT_STRNE("", nl.error_text);
	EXPECT_GT(0, nl_instance_stop(&nl));
	EXPECT_STRNE("", nl.error_text);
	nl_close(&nl);
}

TEST_F(log, second_instance_set_is_ebusy)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char other[300], path[320];
	int dir, file;

	snprintf(other, sizeof(other), "%s/other", self->in.dir);
	snprintf(path, sizeof(path), "%s/.lock", other);
	ASSERT_EQ(0, mkdir(other, 0755));
	dir = open(other, O_RDONLY | O_DIRECTORY);
	file = open(path, O_RDWR | O_CREAT, 0600);
	ASSERT_EQ(0, fcntl(file, F_OFD_SETLK, &lock));
	EXPECT_REFUSED(EBUSY, nl_instance_set(&self->in.nl, other, dir, file));
	close(dir);
	close(file);
	/* the same once more says that it is there already */
	EXPECT_REFUSED(EEXIST, nl_instance_set(&self->in.nl, self->in.dir, self->in.dir_fd,
					       self->in.lock_fd));
}

TEST_F(log, instance_set_checks_its_descriptors)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int devnull = open("/dev/null", O_RDWR), dir, file, pipefd[2];
	char path[300];

	ASSERT_EQ(0, instance_stop(&self->in));
	ASSERT_EQ(0, nl_open(&self->in.nl));
	dir = open(self->in.dir, O_RDONLY | O_DIRECTORY);
	snprintf(path, sizeof(path), "%s/.lock", self->in.dir);
	file = open(path, O_RDWR);
	ASSERT_EQ(0, pipe(pipefd));

	EXPECT_REFUSED_SOMEHOW(nl_instance_set(&self->in.nl, "x", -1, file));
	EXPECT_REFUSED(EBADF, nl_instance_set(&self->in.nl, "x", 999, file));
	EXPECT_REFUSED(ENOTDIR, nl_instance_set(&self->in.nl, "x", devnull, file));
	EXPECT_REFUSED(ENOTDIR, nl_instance_set(&self->in.nl, "x", file, file));
	EXPECT_REFUSED_SOMEHOW(nl_instance_set(&self->in.nl, "x", dir, -1));
	EXPECT_REFUSED_SOMEHOW(nl_instance_set(&self->in.nl, "x", dir, devnull));
	EXPECT_REFUSED_SOMEHOW(nl_instance_set(&self->in.nl, "x", dir, pipefd[0]));
	EXPECT_REFUSED_SOMEHOW(nl_instance_set(&self->in.nl, "x", dir, dir));
	/* the lock is not held */
	EXPECT_REFUSED_SOMEHOW(nl_instance_set(&self->in.nl, "x", dir, file));
	/* no label */
	ASSERT_EQ(0, fcntl(file, F_OFD_SETLK, &lock));
	EXPECT_REFUSED(EINVAL, nl_instance_set(&self->in.nl, NULL, dir, file));
	EXPECT_EQ(0, nl_instance_set(&self->in.nl, "x", dir, file));
	close(dir);
	close(file);
}

TEST_F(log, lock_stays_held_after_the_setter_is_gone)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[300];
	int file;

	close(self->in.lock_fd);
	self->in.lock_fd = -1;
	snprintf(path, sizeof(path), "%s/.lock", self->in.dir);
	file = open(path, O_RDWR);
	EXPECT_EQ(EAGAIN, FAILS(fcntl(file, F_OFD_SETLK, &lock)));
	ASSERT_EQ(0, instance_stop(&self->in));
	EXPECT_EQ(0, fcntl(file, F_OFD_SETLK, &lock));
	close(file);
}

TEST_F(log, partition_new_wants_its_attributes)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	int dir, missing;

	ASSERT_EQ(0, mkdir(instance_path(&self->in, "n", 0, NULL), 0755));
	dir = open(instance_path(&self->in, "n", 0, NULL), O_RDONLY | O_DIRECTORY);
	for (missing = 0; missing < 3; missing++) {
		nlh = nl_begin(&self->in.nl, buf, PLOG_CMD_PARTITION_NEW, 0);
		nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
		if (missing != 0)
			mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, "n");
		if (missing != 1)
			mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
		if (missing != 2)
			mnl_attr_put_u32(nlh, PLOG_A_PARTITION_DIR_FD, (uint32_t)dir);
		mnl_attr_nest_end(nlh, nest);
		EXPECT_REFUSED(EINVAL, nl_talk(&self->in.nl, nlh, NULL, NULL));
	}
	nlh = nl_begin(&self->in.nl, buf, PLOG_CMD_PARTITION_NEW, 0);
	EXPECT_REFUSED(EINVAL, nl_talk(&self->in.nl, nlh, NULL, NULL));
	close(dir);
}

TEST_F(log, wrong_attribute_sizes_are_refused)
{
	static const struct {
		int type, size;
	} wrong[] = {
		{ PLOG_A_PARTITION_INDEX, 1 }, { PLOG_A_PARTITION_INDEX, 8 },
		{ PLOG_A_PARTITION_DIR_FD, 2 }, { PLOG_A_PARTITION_DIR_FD, 8 },
		{ PLOG_A_PARTITION_TOPIC_ID, 15 }, { PLOG_A_PARTITION_TOPIC_ID, 17 },
		{ PLOG_A_PARTITION_TOPIC_ID, 0 }, { PLOG_A_PARTITION_FLAGS, 3 },
		{ PLOG_A_PARTITION_MODE, 2 }, { PLOG_A_PARTITION_UID, 0 },
		{ PLOG_A_PARTITION_SEGMENT_MS, 4 }, { PLOG_A_PARTITION_SEGMENT_BYTES, 8 },
		{ PLOG_A_PARTITION_NODE, 4 }, { PLOG_A_PARTITION_MAX_MESSAGE_BYTES, 1 },
		{ PLOG_A_PARTITION_MAX + 1, 4 }, { 200, 4 },
	};
	char buf[NL_BUF_SIZE], junk[32] = { 0 };
	size_t i;
	int dir;

	ASSERT_EQ(0, mkdir(instance_path(&self->in, "n", 0, NULL), 0755));
	dir = open(instance_path(&self->in, "n", 0, NULL), O_RDONLY | O_DIRECTORY);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct nlmsghdr *nlh = nl_begin(&self->in.nl, buf, PLOG_CMD_PARTITION_NEW, 0);
		struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);

		mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, "n");
		if (wrong[i].type != PLOG_A_PARTITION_INDEX)
			mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
		if (wrong[i].type != PLOG_A_PARTITION_DIR_FD)
			mnl_attr_put_u32(nlh, PLOG_A_PARTITION_DIR_FD, (uint32_t)dir);
		mnl_attr_put(nlh, (uint16_t)wrong[i].type, (size_t)wrong[i].size, junk);
		mnl_attr_nest_end(nlh, nest);
		EXPECT_REFUSED_SOMEHOW(nl_talk(&self->in.nl, nlh, NULL, NULL),
				       "attribute %d of %d bytes", wrong[i].type, wrong[i].size);
	}
	close(dir);
}

TEST_F(log, topic_names_are_checked)
{
	static const char *const bad[] = {
		"", ".", "..", "a/b", "a b", "a!b", "../x", "a\x01", "\xff", "caf\xc3\xa9", "a:b",
	};
	struct nl_partition part = { .topic = "" };
	char name[300];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		part.topic = bad[i];
		EXPECT_REFUSED_SOMEHOW(partition_in(&self->in, "n", &part),
				       "topic name '%s'", bad[i]);
	}
	memset(name, 'a', sizeof(name));
	name[PLOG_TOPIC_MAX + 1] = '\0';
	part.topic = name;
	EXPECT_REFUSED_SOMEHOW(partition_in(&self->in, "n", &part));
	name[PLOG_TOPIC_MAX] = '\0';
	EXPECT_EQ(0, partition_in(&self->in, "n", &part));
	EXPECT_EQ(0, instance_wait(&self->in, name, 0));
	{
		int fd = partition_bind(name, 0, 0);

		EXPECT_LE(0, fd);
		EXPECT_EQ(1, write(fd, "x", 1));
		close(fd);
	}
}

TEST_F(log, configuration_out_of_range_is_refused)
{
	static const struct nl_partition bad[] = {
		{ .max_message_bytes = PLOG_MESSAGE_BYTES_MIN - 1 },
		{ .max_message_bytes = PLOG_MESSAGE_BYTES_MAX + 1 },
		{ .max_message_bytes = UINT32_MAX },
		{ .segment_bytes = 13 },
		{ .segment_bytes = 0x80000000 },
		{ .segment_ms = UINT64_MAX },
		{ .index_bytes = 7 },
		{ .index_interval_bytes = 0x80000000 },
		{ .mode = 01000, .mode_set = true },
		{ .mode = UINT32_MAX, .mode_set = true },
		{ .flags = 1u << 5 },
		{ .flags = 1u << 31 },
		{ .uid = UINT32_MAX },
		{ .gid = UINT32_MAX },
	};
	struct nl_partition part, got;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		part = bad[i];
		part.topic = "n";
		EXPECT_REFUSED_SOMEHOW(partition_in(&self->in, "n", &part),
				       "row %zu, new", i);
		part.topic = "t";
		EXPECT_REFUSED_SOMEHOW(nl_partition_set(&self->in.nl, &part),
				       "row %zu, set", i);
	}
	/* a refused change changed nothing */
	ASSERT_EQ(0, nl_partition_get(&self->in.nl, "t", 0, &got));
	EXPECT_EQ(PLOG_MESSAGE_BYTES_DEFAULT, got.max_message_bytes);
	EXPECT_EQ(1u << 30, got.segment_bytes);
	EXPECT_EQ(4096, got.index_interval_bytes);
	EXPECT_EQ(10u << 20, got.index_bytes);
	EXPECT_EQ(604800000, got.segment_ms);
}

TEST_F(log, partition_get_tells_what_was_set)
{
	struct nl_partition got, part = {
		.topic = "n", .index = 7, .uid = 12, .gid = 34, .mode = 0640, .mode_set = true,
		.max_message_bytes = 5000, .segment_bytes = 100000, .segment_ms = 77777,
		.index_interval_bytes = 1000, .index_bytes = 8000, .topic_id_set = true,
		.topic_id = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
		.flags = PLOG_STATE_LEADER | PLOG_STATE_LOG_APPEND_TIME,
	};

	ASSERT_EQ(0, instance_partition(&self->in, &part)) {
		TH_LOG("%s", self->in.nl.error_text);
	}
	ASSERT_EQ(0, nl_partition_get(&self->in.nl, "n", 7, &got));
	EXPECT_STREQ("n", got.name);
	EXPECT_EQ(7, got.index);
	EXPECT_EQ(12, got.uid);
	EXPECT_EQ(34, got.gid);
	EXPECT_EQ(0640, got.mode);
	EXPECT_EQ(5000, got.max_message_bytes);
	EXPECT_EQ(100000, got.segment_bytes);
	EXPECT_EQ(77777, got.segment_ms);
	EXPECT_EQ(1000, got.index_interval_bytes);
	EXPECT_EQ(8000, got.index_bytes);
	EXPECT_TRUE(got.topic_id_set);
	EXPECT_EQ(0, memcmp(part.topic_id, got.topic_id, 16));
	EXPECT_EQ(part.flags, got.flags);
	EXPECT_EQ(PLOG_PARTITION_ONLINE, got.state);
	EXPECT_EQ(0, got.log_start);
	EXPECT_EQ(0, got.log_end);
	EXPECT_EQ(-1, got.max_timestamp);
	EXPECT_FALSE(got.node);
}

TEST_F(log, partition_set_changes_one_thing)
{
	struct nl_partition got, part = { .topic = "t", .dir_fd = -1 };
	int i;

	part.max_message_bytes = 4321;
	ASSERT_EQ(0, nl_partition_set(&self->in.nl, &part));
	ASSERT_EQ(0, nl_partition_get(&self->in.nl, "t", 0, &got));
	EXPECT_EQ(4321, got.max_message_bytes);
	EXPECT_EQ(1u << 30, got.segment_bytes);
	part.max_message_bytes = 0;
	part.segment_bytes = 65536;
	ASSERT_EQ(0, nl_partition_set(&self->in.nl, &part));
	/* the engine gets it in the background */
	for (i = 0; i < 500; i++) {
		ASSERT_EQ(0, nl_partition_get(&self->in.nl, "t", 0, &got));
		if (got.segment_bytes == 65536)
			break;
		usleep(10000);
	}
	EXPECT_EQ(4321, got.max_message_bytes);
	EXPECT_EQ(65536, got.segment_bytes);
	part.topic = "nosuch";
	EXPECT_REFUSED(ENOENT, nl_partition_set(&self->in.nl, &part));
}

TEST_F(log, same_partition_twice_is_eexist)
{
	struct nl_partition part = { .topic = "t" };

	EXPECT_REFUSED(EEXIST, partition_in(&self->in, "t", &part));
	/* the same directory under another name is no better */
	part.topic = "other";
	EXPECT_REFUSED_SOMEHOW(partition_in(&self->in, "t", &part));
}

TEST_F(log, directories_are_checked)
{
	struct nl_partition part = { .topic = "n" };
	int fds[4], pipefd[2];
	size_t i;

	ASSERT_EQ(0, pipe(pipefd));
	fds[0] = -1;
	fds[1] = open("/dev/null", O_RDONLY);
	fds[2] = pipefd[0];
	/* a filesystem that has no log files */
	fds[3] = open("/proc", O_RDONLY | O_DIRECTORY);
	for (i = 1; i < ARRAY_SIZE(fds); i++) {
		part.dir_fd = fds[i];
		EXPECT_REFUSED_SOMEHOW(nl_partition_new(&self->in.nl, &part),
				       "descriptor %zu", i);
	}
	part.dir_fd = 1000;
	EXPECT_REFUSED(EBADF, nl_partition_new(&self->in.nl, &part));
	close(fds[1]);
	close(fds[3]);
}

TEST_F(log, broken_directory_fails_and_says_so)
{
	struct nl_partition got, part = { .topic = "n" };
	char path[600];
	int fd;

	/* a directory where the first segment should be */
	ASSERT_EQ(0, mkdir(instance_path(&self->in, "n", 0, NULL), 0755));
	strcpy(path, instance_path(&self->in, "n", 0, "00000000000000000000.log"));
	ASSERT_EQ(0, mkdir(path, 0755));
	EXPECT_GT(0, instance_partition(&self->in, &part));
	ASSERT_EQ(0, nl_partition_get(&self->in.nl, "n", 0, &got));
	EXPECT_EQ(PLOG_PARTITION_FAILED, got.state);
	EXPECT_NE(0, got.error);
	fd = partition_bind("n", 0, 0);
	EXPECT_LE(0, fd);
	EXPECT_EQ(ENODEV, FAILS(write(fd, "x", 1)));
	EXPECT_EQ(ENODEV, FAILS(read(fd, path, 1)));
	close(fd);
	/* it can be taken away and made anew */
	ASSERT_EQ(0, rmdir(path));
	EXPECT_EQ(0, instance_delete(&self->in, "n", 0));
	EXPECT_EQ(0, instance_partition(&self->in, &part));
}

TEST_F(log, unknown_partition_is_enoent)
{
	uint64_t counters[PLOG_A_STATS_MAX + 1];
	struct nl_partition got;

	EXPECT_REFUSED(ENOENT, nl_partition_get(&self->in.nl, "x", 0, &got));
	EXPECT_REFUSED(ENOENT, nl_partition_get(&self->in.nl, "t", 1, &got));
	EXPECT_REFUSED(ENOENT, nl_partition_del(&self->in.nl, "x", 0));
	EXPECT_REFUSED(ENOENT, nl_stats_get(&self->in.nl, "x", 0, counters));
}

TEST_F(log, deleted_partition_leaves_its_files)
{
	char buf[8];
	int fd;

	ASSERT_EQ(4, write(self->fd, "kept", 4));
	ASSERT_EQ(0, instance_delete(&self->in, "t", 0));
	EXPECT_EQ(0, access(instance_path(&self->in, "t", 0, "00000000000000000000.log"), F_OK));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	/* the old descriptor does not come to life again */
	EXPECT_EQ(ENODEV, FAILS(write(self->fd, "x", 1)));
	fd = partition_bind("t", 0, 0);
	EXPECT_EQ(4, read(fd, buf, sizeof(buf)));
	EXPECT_EQ(1, partition_end(fd));
	close(fd);
}

TEST_F(log, stats_count)
{
	uint64_t one[PLOG_A_STATS_MAX + 1], all[PLOG_A_STATS_MAX + 1];
	struct iovec iov[3] = { { "a", 1 }, { "b", 1 }, { "c", 1 } };
	char buf[8];

	ASSERT_EQ(3, writev(self->fd, iov, 3));
	ASSERT_EQ(1, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(-EINVAL, partition_append(self->batch, "x", 1, NULL));
	ASSERT_EQ(0, nl_stats_get(&self->in.nl, "t", 0, one));
	EXPECT_EQ(1, one[PLOG_A_STATS_APPENDS]);
	EXPECT_EQ(3, one[PLOG_A_STATS_RECORDS]);
	EXPECT_LT(BATCH_HEADER, one[PLOG_A_STATS_APPEND_BYTES]);
	EXPECT_EQ(1, one[PLOG_A_STATS_READS]);
	EXPECT_EQ(1, one[PLOG_A_STATS_READ_BYTES]);
	ASSERT_EQ(0, nl_stats_get(&self->in.nl, NULL, 0, all));
	EXPECT_EQ(1, all[PLOG_A_STATS_APPENDS]);
	EXPECT_EQ(3, all[PLOG_A_STATS_RECORDS]);
}

TEST_F(log, events_tell_what_happens)
{
	const struct nlattr *tb[PLOG_A_INSTANCE_MAX + 1];
	struct nl_partition part;
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh;
	struct genlmsghdr *genl;
	bool online = false, closed = false, stopped = false;
	struct nl ev;

	ASSERT_EQ(0, nl_open(&ev));
	ASSERT_EQ(0, nl_join(&ev));
	ASSERT_EQ(0, instance_topic(&self->in, "e"));
	while (!online && (nlh = nl_event(&ev, buf, 5000))) {
		genl = mnl_nlmsg_get_payload(nlh);
		online = genl->cmd == PLOG_CMD_PARTITION_NTF && nl_partition_parse(nlh, &part) &&
			 !strcmp(part.name, "e") && part.state == PLOG_PARTITION_ONLINE;
	}
	EXPECT_TRUE(online);
	ASSERT_EQ(0, instance_delete(&self->in, "e", 0));
	while (!closed && (nlh = nl_event(&ev, buf, 5000))) {
		genl = mnl_nlmsg_get_payload(nlh);
		closed = genl->cmd == PLOG_CMD_PARTITION_NTF && nl_partition_parse(nlh, &part) &&
			 !strcmp(part.name, "e") && part.state == PLOG_PARTITION_CLOSED;
	}
	EXPECT_TRUE(closed);
	ASSERT_EQ(0, nl_instance_stop(&self->in.nl));
	while (!stopped && (nlh = nl_event(&ev, buf, 5000))) {
		genl = mnl_nlmsg_get_payload(nlh);
		stopped = genl->cmd == PLOG_CMD_INSTANCE_NTF &&
			  nl_nest(nlh, PLOG_A_INSTANCE, tb, PLOG_A_INSTANCE_MAX) &&
			  tb[PLOG_A_INSTANCE_STATE] &&
			  mnl_attr_get_u32(tb[PLOG_A_INSTANCE_STATE]) == PLOG_INSTANCE_STOPPED;
	}
	EXPECT_TRUE(stopped);
	nl_close(&ev);
	instance_close(&self->in);
}

TEST_F(log, events_stay_in_their_namespace)
{
	char buf[NL_BUF_SIZE];
	struct nl ev;
	int old = open("/proc/self/ns/net", O_RDONLY);

	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, nl_open(&ev));
	ASSERT_EQ(0, nl_join(&ev));
	ASSERT_EQ(0, setns(old, CLONE_NEWNET));
	ASSERT_EQ(0, instance_topic(&self->in, "e"));
	EXPECT_EQ(NULL, nl_event(&ev, buf, 300));
	nl_close(&ev);
	close(old);
}

/* ---- dumps ---- */

struct counted {
	int messages, online;
	uint64_t sum;
};

static int count_partition(const struct nlmsghdr *nlh, void *data)
{
	struct counted *c = data;
	struct nl_partition part;

	if (nl_partition_parse(nlh, &part)) {
		c->messages++;
		c->online += part.state == PLOG_PARTITION_ONLINE;
		c->sum += part.index;
	}
	return MNL_CB_OK;
}

static int count_any(const struct nlmsghdr *nlh, void *data)
{
	struct counted *c = data;

	(void)nlh;
	c->messages++;
	return MNL_CB_OK;
}

static int dump(struct nl *nl, uint8_t cmd, const char *topic, mnl_cb_t cb, struct counted *c)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, cmd, NLM_F_DUMP);
	struct nlattr *nest;

	memset(c, 0, sizeof(*c));
	if (topic) {
		nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
		mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, topic);
		mnl_attr_nest_end(nlh, nest);
	}
	return nl_talk(nl, nlh, cb, c);
}

TEST_F_TIMEOUT(log, a_thousand_partitions, 120)
{
	struct nl_partition part = { .topic = "many" };
	const uint32_t n = 1000 / (uint32_t)slow();
	struct nl_instance got;
	struct counted c;
	int64_t end;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const char *path;

		part.index = i;
		path = instance_path(&self->in, "many", i, NULL);
		ASSERT_EQ(0, mkdir(path, 0755));
		part.dir_fd = open(path, O_RDONLY | O_DIRECTORY);
		ASSERT_EQ(0, nl_partition_new(&self->in.nl, &part)) {
			TH_LOG("partition %u: %s", i, self->in.nl.error_text);
		}
		close(part.dir_fd);
	}
	end = now_ms() + 100000;
	do {
		ASSERT_EQ(0, nl_instance_get(&self->in.nl, &got));
		usleep(10000);
	} while (got.online < n + 1 && now_ms() < end);
	ASSERT_EQ(n + 1, got.online);

	ASSERT_EQ(0, dump(&self->in.nl, PLOG_CMD_PARTITION_GET, NULL, count_partition, &c));
	EXPECT_EQ(n + 1, c.messages);
	EXPECT_EQ(n + 1, c.online);
	EXPECT_EQ(n * (n - 1) / 2, c.sum);
	ASSERT_EQ(0, dump(&self->in.nl, PLOG_CMD_PARTITION_GET, "many", count_partition, &c));
	EXPECT_EQ(n, c.messages);
	ASSERT_EQ(0, dump(&self->in.nl, PLOG_CMD_PARTITION_GET, "t", count_partition, &c));
	EXPECT_EQ(1, c.messages);
	ASSERT_EQ(0, dump(&self->in.nl, PLOG_CMD_PARTITION_GET, "none", count_partition, &c));
	EXPECT_EQ(0, c.messages);
	ASSERT_EQ(0, dump(&self->in.nl, PLOG_CMD_STATS_GET, NULL, count_any, &c));
	EXPECT_LE(n + 1, c.messages);
	/* each can be reached */
	for (i = 0; i < n; i += 97) {
		int fd = partition_bind("many", i, 0);

		EXPECT_LE(0, fd);
		EXPECT_EQ(1, write(fd, "x", 1));
		close(fd);
	}
	/* a dump that nobody reads to its end */
	{
		char buf[NL_BUF_SIZE];
		struct nl lazy;

		ASSERT_EQ(0, nl_open(&lazy));
		{
			struct nlmsghdr *nlh = nl_begin(&lazy, buf, PLOG_CMD_PARTITION_GET,
							NLM_F_DUMP);

			ASSERT_LT(0, mnl_socket_sendto(lazy.socket, nlh, nlh->nlmsg_len));
		}
		nl_close(&lazy);
	}
	/* a dump while partitions go */
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, nl_partition_del(&self->in.nl, "many", i * 7));
	ASSERT_EQ(0, dump(&self->in.nl, PLOG_CMD_PARTITION_GET, "many", count_partition, &c));
	EXPECT_EQ(n - 20, c.messages);
}

TEST_F(log, segments_are_dumped)
{
	struct nl_partition part = { .topic = "r", .segment_bytes = 4096 };
	char buf[NL_BUF_SIZE], value[1000];
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	struct counted c = { 0 };
	struct plog_state state;
	int fd, i;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("r", 0, 0);
	memset(value, 'x', sizeof(value));
	for (i = 0; i < 40; i++)
		ASSERT_EQ(sizeof(value), write(fd, value, sizeof(value)));
	ASSERT_EQ(0, partition_state(fd, &state));
	nlh = nl_begin(&self->in.nl, buf, PLOG_CMD_SEGMENT_GET, NLM_F_DUMP);
	nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, "r");
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
	mnl_attr_nest_end(nlh, nest);
	ASSERT_EQ(0, nl_talk(&self->in.nl, nlh, count_any, &c));
	EXPECT_EQ(state.segments, c.messages);
	EXPECT_LT(10, c.messages);
	/* without a partition it says what it wants */
	EXPECT_REFUSED_SOMEHOW(dump(&self->in.nl, PLOG_CMD_SEGMENT_GET, NULL, count_any, &c));
	close(fd);
}

/* ---- permission ---- */

static int drop_net_admin(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return -errno;
	data[0].effective &= ~(1u << CAP_NET_ADMIN);
	data[0].permitted &= ~(1u << CAP_NET_ADMIN);
	data[0].inheritable &= ~(1u << CAP_NET_ADMIN);
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

TEST_F(log, changes_need_net_admin)
{
	int status;
	pid_t pid = child();

	if (!pid) {
		struct nl_partition part = { .topic = "n" }, got;
		struct nl_instance inst;
		char buf[NL_BUF_SIZE];
		struct nl nl;

		if (drop_net_admin() || nl_open(&nl))
			_exit(1);
		part.dir_fd = self->in.dir_fd;
		if (nl_instance_stop(&nl) != -EPERM)
			_exit(2);
		if (nl_partition_new(&nl, &part) != -EPERM)
			_exit(3);
		if (nl_partition_del(&nl, "t", 0) != -EPERM)
			_exit(4);
		part.topic = "t";
		part.max_message_bytes = 5000;
		if (nl_partition_set(&nl, &part) != -EPERM)
			_exit(5);
		if (nl_instance_set(&nl, "x", self->in.dir_fd, self->in.lock_fd) != -EPERM)
			_exit(6);
		if (nl_talk(&nl, nl_begin(&nl, buf, PLOG_CMD_RELAY_REQUEST, 0), NULL, NULL) !=
		    -EPERM)
			_exit(7);
		if (nl_talk(&nl, nl_begin(&nl, buf, PLOG_CMD_RELAY_REPLY, 0), NULL, NULL) !=
		    -EPERM)
			_exit(8);
		/* looking is free */
		if (nl_instance_get(&nl, &inst) || nl_partition_get(&nl, "t", 0, &got))
			_exit(9);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST_F(log, unknown_commands_and_attributes)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh;

	nlh = nl_begin(&self->in.nl, buf, PLOG_CMD_MAX + 1, 0);
	EXPECT_EQ(-EOPNOTSUPP, nl_talk(&self->in.nl, nlh, NULL, NULL));
	nlh = nl_begin(&self->in.nl, buf, 200, 0);
	EXPECT_EQ(-EOPNOTSUPP, nl_talk(&self->in.nl, nlh, NULL, NULL));
	nlh = nl_begin(&self->in.nl, buf, PLOG_CMD_PARTITION_NTF, 0);
	EXPECT_EQ(-EOPNOTSUPP, nl_talk(&self->in.nl, nlh, NULL, NULL));
	nlh = nl_begin(&self->in.nl, buf, PLOG_CMD_INSTANCE_STOP, 0);
	mnl_attr_put_u32(nlh, PLOG_A_MAX + 1, 1);
	EXPECT_REFUSED_SOMEHOW(nl_talk(&self->in.nl, nlh, NULL, NULL));
	/* a nest that is not marked as one, or is no nest at all */
	nlh = nl_begin(&self->in.nl, buf, PLOG_CMD_PARTITION_GET, 0);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION, 0xffffffff);
	EXPECT_REFUSED_SOMEHOW(nl_talk(&self->in.nl, nlh, NULL, NULL));
}

TEST_F(log, string_attributes_end_where_they_should)
{
	char buf[NL_BUF_SIZE], open_ended[8] = { 't', 't', 't', 't', 't', 't', 't', 't' };
	char *label = malloc(PLOG_LABEL_MAX + 2);
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	struct nl_partition got;

	/* no zero at the end: taken as the name, or refused, never read past */
	nlh = nl_begin(&self->in.nl, buf, PLOG_CMD_PARTITION_GET, 0);
	nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
	mnl_attr_put(nlh, PLOG_A_PARTITION_TOPIC, 8, open_ended);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
	mnl_attr_nest_end(nlh, nest);
	EXPECT_REFUSED_SOMEHOW(nl_talk(&self->in.nl, nlh, NULL, NULL));
	/* a zero inside */
	nlh = nl_begin(&self->in.nl, buf, PLOG_CMD_PARTITION_DEL, 0);
	nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
	mnl_attr_put(nlh, PLOG_A_PARTITION_TOPIC, 4, "t\0x");
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
	mnl_attr_nest_end(nlh, nest);
	nl_talk(&self->in.nl, nlh, NULL, NULL);
	/* a label above its limit */
	memset(label, 'a', PLOG_LABEL_MAX + 1);
	label[PLOG_LABEL_MAX + 1] = '\0';
	ASSERT_EQ(0, instance_stop(&self->in));
	ASSERT_EQ(0, nl_open(&self->in.nl));
	EXPECT_REFUSED_SOMEHOW(nl_instance_set(&self->in.nl, label, 0, 1));
	EXPECT_GT(0, nl_partition_get(&self->in.nl, "t", 0, &got));
	nl_close(&self->in.nl);
	free(label);
}

TEST_F(log, random_messages_are_survived)
{
	struct nl nl;
	int i;

	ASSERT_EQ(0, nl_open(&nl));
	srand(1);
	for (i = 0; i < 3000 / slow(); i++) {
		char buf[NL_BUF_SIZE];
		uint8_t cmd = (uint8_t)(1 + rand() % (PLOG_CMD_MAX + 2));
		struct nlmsghdr *nlh;
		int attrs = rand() % 6, j;

		/* not the stop, or the rest is refused at the door */
		if (cmd == PLOG_CMD_INSTANCE_STOP)
			continue;
		nlh = nl_begin(&nl, buf, cmd, rand() % 8 ? 0 : NLM_F_DUMP);
		for (j = 0; j < attrs; j++) {
			char junk[64];
			size_t len = (size_t)(rand() % (int)sizeof(junk)), k;
			struct nlattr *nest = NULL;

			for (k = 0; k < sizeof(junk); k++)
				junk[k] = (char)(rand() % 4 ? 0 : rand());
			if (rand() % 4)
				nest = mnl_attr_nest_start(nlh, (uint16_t)(rand() % 7));
			mnl_attr_put(nlh, (uint16_t)(rand() % 30), len, junk);
			mnl_attr_put(nlh, (uint16_t)(rand() % 30), 4, junk);
			if (nest)
				mnl_attr_nest_end(nlh, nest);
		}
		nl_talk(&nl, nlh, NULL, NULL);
	}
	nl_close(&nl);
}

SELFTEST_MAIN
