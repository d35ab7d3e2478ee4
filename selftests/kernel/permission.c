// SPDX-License-Identifier: GPL-2.0
/*
 * Who may do what: owner, group and mode of a partition on every way in, and
 * what a descriptor without privilege cannot append.
 */
#include <grp.h>

#include "fixture.h"

#define STRANGER 65534

/* Run @call in a child of @uid and @gid; its errno, 0 for none. */
#define AS(uid, gid, call)							\
	({									\
		int status_;							\
		pid_t pid_ = child();						\
		if (!pid_) {							\
			int ret_;						\
			gid_t group_ = (gid);					\
			if (setgroups(1, &group_) || setresgid(gid, gid, gid) ||	\
			    setresuid(uid, uid, uid))				\
				_exit(255);					\
			ret_ = (call);						\
			_exit(ret_ < 0 ? -ret_ : 0);				\
		}								\
		waitpid(pid_, &status_, 0);					\
		WIFEXITED(status_) ? WEXITSTATUS(status_) : 1000 + status_;	\
	})

static int bind_only(const char *topic, int flags)
{
	struct plog_bind bind = { 0 };
	int fd = open("/dev/plog-control", flags | O_CLOEXEC);
	int ret = 0;

	strcpy(bind.topic, topic);
	if (fd < 0 || ioctl(fd, PLOG_IOC_BIND, &bind))
		ret = -errno;
	if (fd >= 0)
		close(fd);
	return ret;
}

static int topic_with(struct instance *in, const char *topic, uint32_t uid, uint32_t gid,
		      uint32_t mode, uint32_t flags)
{
	struct nl_partition part = {
		.topic = topic, .uid = uid, .gid = gid, .mode = mode, .mode_set = true,
		.flags = flags,
	};

	return instance_partition(in, &part);
}

TEST_F(log, anybody_can_ask_the_control_node)
{
	struct plog_info info = { 0 };
	int fd;

	EXPECT_EQ(0, AS(STRANGER, STRANGER, ({
		fd = control_open(0);
		fd < 0 ? fd : ioctl(fd, PLOG_IOC_INFO, &info) ? -errno : 0;
	})));
}

TEST_F(log, partitions_are_private_unless_said)
{
	EXPECT_EQ(EACCES, AS(STRANGER, STRANGER, bind_only("t", O_RDONLY)));
	EXPECT_EQ(EACCES, AS(STRANGER, STRANGER, bind_only("t", O_WRONLY)));
}

static int count_segment(const struct nlmsghdr *nlh, void *data)
{
	(void)nlh;
	++*(int *)data;
	return MNL_CB_OK;
}

/* How many segments the caller is told of; -ENOMSG if a refusal had no text. */
static int dump_segments(const char *topic)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	int segments = 0, ret;
	struct nl nl;

	ret = nl_open(&nl);
	if (ret)
		return ret;
	nlh = nl_begin(&nl, buf, PLOG_CMD_SEGMENT_GET, NLM_F_DUMP);
	nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, topic);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
	mnl_attr_nest_end(nlh, nest);
	ret = nl_talk(&nl, nlh, count_segment, &segments);
	if (ret && !nl.error_text[0])
		ret = -ENOMSG;
	nl_close(&nl);
	return ret ? ret : segments;
}

/* The dump opens files of the partition, and may build an index anew. */
TEST_F(log, segments_are_for_readers)
{
	ASSERT_EQ(0, topic_with(&self->in, "open", 0, 0, 0604, 0));
	EXPECT_EQ(1, dump_segments("t"));
	EXPECT_EQ(EACCES, AS(STRANGER, STRANGER, dump_segments("t")));
	EXPECT_EQ(0, AS(STRANGER, STRANGER, ({
		dump_segments("open") == 1 ? 0 : -1;
	})));
}

TEST_F(log, bind_checks_the_permission_bits)
{
	static const struct {
		const char *topic;
		uint32_t uid, gid, mode;
		int as_uid, as_gid;
		int rdonly, wronly, rdwr;
	} rows[] = {
		{ "a", 0, 0, 0600, STRANGER, STRANGER, EACCES, EACCES, EACCES },
		{ "b", 0, 0, 0644, STRANGER, STRANGER, 0, EACCES, EACCES },
		{ "c", 0, 0, 0622, STRANGER, STRANGER, EACCES, 0, EACCES },
		{ "d", 0, 0, 0666, STRANGER, STRANGER, 0, 0, 0 },
		{ "e", 1000, 0, 0600, 1000, STRANGER, 0, 0, 0 },
		{ "f", 1000, 0, 0400, 1000, STRANGER, 0, EACCES, EACCES },
		/* the owner's bits count for the owner, even where others have more */
		{ "g", 1000, 0, 0066, 1000, STRANGER, EACCES, EACCES, EACCES },
		{ "h", 0, 1001, 0640, STRANGER, 1001, 0, EACCES, EACCES },
		{ "i", 0, 1001, 0660, STRANGER, 1001, 0, 0, 0 },
		{ "j", 0, 1001, 0660, STRANGER, 1002, EACCES, EACCES, EACCES },
		{ "k", 0, 1001, 0606, STRANGER, 1001, EACCES, EACCES, EACCES },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		int uid = rows[i].as_uid, gid = rows[i].as_gid;

		ASSERT_EQ(0, topic_with(&self->in, rows[i].topic, rows[i].uid, rows[i].gid,
					rows[i].mode, 0));
		EXPECT_EQ(rows[i].rdonly, AS(uid, gid, bind_only(rows[i].topic, O_RDONLY))) {
			TH_LOG("row %s", rows[i].topic);
		}
		EXPECT_EQ(rows[i].wronly, AS(uid, gid, bind_only(rows[i].topic, O_WRONLY))) {
			TH_LOG("row %s", rows[i].topic);
		}
		EXPECT_EQ(rows[i].rdwr, AS(uid, gid, bind_only(rows[i].topic, O_RDWR))) {
			TH_LOG("row %s", rows[i].topic);
		}
	}
}

TEST_F(log, permissions_can_be_changed)
{
	struct nl_partition part = { .topic = "t", .dir_fd = -1, .mode = 0666, .mode_set = true };

	EXPECT_EQ(EACCES, AS(STRANGER, STRANGER, bind_only("t", O_RDWR)));
	ASSERT_EQ(0, nl_partition_set(&self->in.nl, &part)) {
		TH_LOG("%s", self->in.nl.error_text);
	}
	EXPECT_EQ(0, AS(STRANGER, STRANGER, bind_only("t", O_RDWR)));
	part.mode = 0600;
	ASSERT_EQ(0, nl_partition_set(&self->in.nl, &part));
	EXPECT_EQ(EACCES, AS(STRANGER, STRANGER, bind_only("t", O_RDWR)));
}

TEST_F(log, stranger_writes_and_reads_records)
{
	char buf[16];
	int fd;

	ASSERT_EQ(0, topic_with(&self->in, "o", 0, 0, 0666, 0));
	EXPECT_EQ(0, AS(STRANGER, STRANGER, ({
		fd = partition_bind("o", 0, 0);
		fd < 0 ? fd :
		write(fd, "mine", 4) != 4 || read(fd, buf, 16) != 4 ? -errno : 0;
	})));
}

TEST_F(log, registering_needs_privilege)
{
	EXPECT_EQ(EPERM, AS(STRANGER, STRANGER, ({
		int fd = control_open(0);

		fd < 0 ? fd : control_register(fd, 0, NULL);
	})));
}

static int append_bits(const char *topic, uint16_t attributes, int64_t producer,
		       uint32_t flags, uint64_t incarnation)
{
	struct plog_append arg = {
		.flags = flags, .incarnation = incarnation,
		.leader_epoch = flags & PLOG_APPEND_DAEMON ? EPOCH : -1,
	};
	int fd = partition_bind(topic, 0, PLOG_MODE_BATCH);
	struct batch b;

	if (fd < 0)
		return fd;
	if (!batch_text(&b, "value"))
		return -ENOMEM;
	batch_put(b.data, AT_PRODUCER_ID, 8, (uint64_t)producer);
	if (producer >= 0) {
		batch_put(b.data, AT_PRODUCER_EPOCH, 2, 0);
		batch_put(b.data, AT_SEQUENCE, 4, 0);
	}
	batch_set(b.data, b.size, AT_ATTRIBUTES, 2, attributes);
	return partition_append(fd, b.data, b.size, &arg);
}

TEST_F(log, privileged_kinds_of_batch_are_refused)
{
	int fd, i;

	ASSERT_EQ(0, topic_with(&self->in, "o", 0, 0, 0666, 0));
	fd = partition_bind("o", 0, 0);
	for (i = 0; i < 2; i++) {
		/* root without the daemon's flag is as unprivileged as anybody */
		int who = i ? STRANGER : 0;

		EXPECT_EQ(0, AS(who, who, append_bits("o", 0, -1, 0, 0)));
		EXPECT_EQ(i + 1, partition_end(fd));
		EXPECT_EQ(EOPNOTSUPP, AS(who, who, append_bits("o", 1, -1, 0, 0)));
		EXPECT_EQ(EOPNOTSUPP, AS(who, who, append_bits("o", 2, -1, 0, 0)));
		EXPECT_EQ(EOPNOTSUPP, AS(who, who, append_bits("o", 3, -1, 0, 0)));
		EXPECT_EQ(EOPNOTSUPP, AS(who, who, append_bits("o", 4, -1, 0, 0)));
		EXPECT_NE(0, AS(who, who, append_bits("o", 7, -1, 0, 0)));
		EXPECT_EQ(EOPNOTSUPP, AS(who, who, append_bits("o", 0, 5, 0, 0)));
		EXPECT_EQ(EOPNOTSUPP, AS(who, who, append_bits("o", 0x20, -1, 0, 0)));
		EXPECT_EQ(EOPNOTSUPP, AS(who, who, append_bits("o", 0x10, -1, 0, 0)));
		EXPECT_EQ(EOPNOTSUPP, AS(who, who, append_bits("o", 0x30, 5, 0, 0)));
		EXPECT_EQ(i + 1, partition_end(fd));
	}
	close(fd);
}

TEST_F(log, the_daemons_calls_need_privilege)
{
	int control = control_open(0), fd;
	uint64_t incarnation;
	struct plog_locate loc;

	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	ASSERT_EQ(0, topic_with(&self->in, "o", 0, 0, 0666, 0));
	EXPECT_EQ(EPERM, AS(STRANGER, STRANGER,
			    append_bits("o", 0, -1, PLOG_APPEND_DAEMON, incarnation)));
	EXPECT_EQ(EPERM, AS(STRANGER, STRANGER,
			    append_bits("o", 0, -1, PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA,
					incarnation)));
	EXPECT_NE(0, AS(STRANGER, STRANGER,
			append_bits("o", 0, -1, PLOG_APPEND_REPLICA, 0)));
	EXPECT_EQ(EPERM, AS(STRANGER, STRANGER, ({
		fd = partition_bind("o", 0, PLOG_MODE_BATCH);
		fd < 0 ? fd : partition_control(fd, PLOG_CONTROL_TRUNCATE, incarnation, EPOCH, 0);
	})));
	EXPECT_EQ(EPERM, AS(STRANGER, STRANGER, ({
		fd = partition_bind("o", 0, PLOG_MODE_BATCH);
		fd < 0 ? fd : partition_locate(fd, 0, 4096, PLOG_LOCATE_LOG_END, &loc);
	})));
	fd = partition_bind("o", 0, 0);
	EXPECT_EQ(0, partition_end(fd));
	close(fd);
	close(control);
}

TEST_F(log, keyless_records_never_enter_a_compacted_topic)
{
	struct record keyed = { .key = "k", .key_length = 1, .value = "v", .value_length = 1 };
	struct record keyless = { .key_length = -1, .value = "v", .value_length = 1 };
	struct batch b;
	char buf[8];
	int fd, batch;

	ASSERT_EQ(0, topic_with(&self->in, "c", 0, 0, 0666, PLOG_STATE_COMPACT));
	fd = partition_bind("c", 0, 0);
	batch = partition_bind("c", 0, PLOG_MODE_BATCH);
	EXPECT_EQ(EPERM, FAILS(write(fd, "x", 1)));
	EXPECT_EQ(0, partition_end(fd));

	ASSERT_TRUE(batch_init(&b, 512, 1));
	ASSERT_TRUE(batch_add(&b, &keyed));
	batch_finish(&b);
	EXPECT_EQ(0, partition_append(batch, b.data, b.size, NULL));
	ASSERT_TRUE(batch_add(&b, &keyless));
	batch_finish(&b);
	EXPECT_EQ(-EPERM, partition_append(batch, b.data, b.size, NULL));
	EXPECT_EQ(1, partition_end(fd));
	EXPECT_EQ(1, read(fd, buf, sizeof(buf)));
	batch_free(&b);
	close(fd);
	close(batch);
}

TEST_F(log, keyless_large_batch_never_enters_a_compacted_topic)
{
	struct batch b;
	int batch;

	ASSERT_EQ(0, topic_with(&self->in, "c", 0, 0, 0666, PLOG_STATE_COMPACT));
	batch = partition_bind("c", 0, PLOG_MODE_BATCH);
	ASSERT_TRUE(batch_fill(&b, 300000, 'k'));
	EXPECT_EQ(-EPERM, partition_append(batch, b.data, b.size, NULL));
	EXPECT_EQ(0, partition_end(batch));
	batch_free(&b);
	close(batch);
}

TEST_F(log, internal_topics_are_closed)
{
	struct batch b;
	int fd;

	ASSERT_EQ(0, topic_with(&self->in, "__x", 0, 0, 0666, PLOG_STATE_INTERNAL));
	EXPECT_NE(0, AS(STRANGER, STRANGER, ({
		fd = partition_bind("__x", 0, 0);
		fd < 0 ? fd : write(fd, "x", 1) == 1 ? 0 : -errno;
	})));
	fd = partition_bind("__x", 0, PLOG_MODE_BATCH);
	if (fd >= 0) {
		ASSERT_TRUE(batch_text(&b, "x"));
		EXPECT_EQ(-EPERM, partition_append(fd, b.data, b.size, NULL));
		EXPECT_EQ(0, partition_end(fd));
		batch_free(&b);
		close(fd);
	}
}

TEST_F(log, root_of_a_user_namespace_is_nobody_special)
{
	int status;
	pid_t pid = child();

	if (!pid) {
		struct instance other;
		int fd, ret;

		if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
			_exit(200);
		ret = instance_start(&other, self->in.dir);
		/* the directory is locked too; the lack of privilege comes first */
		if (ret != -EPERM && ret != -EAGAIN)
			_exit(1);
		ret = instance_start(&other, NULL);
		if (ret == -EACCES)
			ret = instance_start(&other, "/tmp");
		if (ret != -EPERM)
			_exit(2);
		fd = control_open(0);
		if (fd < 0 || control_register(fd, 0, NULL) != -EPERM)
			_exit(3);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (WEXITSTATUS(status) == 200)
		SKIP(return, "no user namespaces here");
	EXPECT_EQ(0, WEXITSTATUS(status));
}

SELFTEST_MAIN
