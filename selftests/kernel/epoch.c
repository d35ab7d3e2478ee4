// SPDX-License-Identifier: GPL-2.0
/*
 * Leader epochs: elections, where an epoch ended, truncation by epoch, what a
 * follower takes, and the file that a crash or an enemy leaves.
 */
#include "fixture.h"

FIXTURE(epoch)
{
	struct instance in;
	int control;
	int batch;
	uint64_t incarnation;
	char file[300];
	char dir[256];
};

static int open_topic(struct __test_metadata *_metadata, FIXTURE_DATA(epoch) *self)
{
	struct nl_partition part = { .topic = "t", .flags = PLOG_STATE_REPLICATED };

	EXPECT_EQ(0, instance_partition(&self->in, &part)) {
		TH_LOG("%s", self->in.nl.error_text);
	}
	self->control = control_open(0);
	EXPECT_EQ(0, control_register(self->control, 0, &self->incarnation));
	self->batch = partition_bind("t", 0, PLOG_MODE_BATCH);
	return self->batch;
}

FIXTURE_SETUP(epoch)
{
	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	strcpy(self->file, instance_path(&self->in, "t", 0, "leader-epoch-checkpoint"));
	strcpy(self->dir, self->in.dir);
	ASSERT_LE(0, open_topic(_metadata, self));
}

static void shut(FIXTURE_DATA(epoch) *self)
{
	close(self->control);
	close(self->batch);
}

FIXTURE_TEARDOWN(epoch)
{
	shut(self);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
}

static int reopen(struct __test_metadata *_metadata, FIXTURE_DATA(epoch) *self)
{
	shut(self);
	EXPECT_EQ(0, instance_stop(&self->in));
	EXPECT_EQ(0, instance_start(&self->in, self->dir));
	return open_topic(_metadata, self);
}

static int lead(FIXTURE_DATA(epoch) *self, int32_t epoch, uint32_t flags)
{
	struct plog_lead arg = {
		.flags = flags, .leader_epoch = epoch, .incarnation = self->incarnation,
	};

	return ioctl(self->batch, PLOG_IOC_LEAD, &arg) ? -errno : 0;
}

#define LEADER (PLOG_LEAD_REPLICATED | PLOG_LEAD_LEADER)
#define FOLLOWER PLOG_LEAD_REPLICATED

/* One-record batches, locally, in whatever epoch it is. */
static int fill(int fd, int count)
{
	struct batch b;
	int ret = 0;

	if (!batch_text(&b, "record"))
		return -ENOMEM;
	while (!ret && count--)
		ret = partition_append(fd, b.data, b.size, NULL);
	batch_free(&b);
	return ret;
}

/* A leader's batch of one record. */
static int follow(FIXTURE_DATA(epoch) *self, int32_t now, int64_t offset, int32_t epoch, int count)
{
	struct plog_append arg = {
		.flags = PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA,
		.incarnation = self->incarnation, .leader_epoch = now,
	};
	struct batch b;
	int i, ret;

	if (!batch_init(&b, 4096, 0))
		return -ENOMEM;
	for (i = 0; i < count; i++)
		batch_add_value(&b, "x", 1);
	batch_finish(&b);
	batch_put(b.data, AT_BASE_OFFSET, 8, (uint64_t)offset);
	batch_put(b.data, AT_EPOCH, 4, (uint32_t)epoch);
	ret = partition_append(self->batch, b.data, b.size, &arg);
	batch_free(&b);
	return ret;
}

static int end_of(int fd, int32_t asked, int32_t *epoch, int64_t *end)
{
	struct plog_epoch arg = { .epoch = asked };

	*epoch = -2;
	*end = -2;
	if (ioctl(fd, PLOG_IOC_EPOCH, &arg))
		return -errno;
	*epoch = arg.epoch;
	*end = arg.offset;
	return 0;
}

#define EXPECT_END(asked, want_epoch, want_end)	do {				\
	int32_t epoch_;								\
	int64_t end_;								\
										\
	EXPECT_EQ(0, end_of(self->batch, asked, &epoch_, &end_));		\
	EXPECT_EQ(want_epoch, epoch_);						\
	EXPECT_EQ(want_end, end_);						\
} while (0)

static const char *content(const char *path)
{
	static char text[8192];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	return text;
}

static int put_content(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644), bad;

	bad = fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text);
	close(fd);
	return bad;
}

/* {0 from 0, 2 from 100, 5 from 250}, log end 300: B26. */
static void make(struct __test_metadata *_metadata, FIXTURE_DATA(epoch) *self)
{
	ASSERT_EQ(0, lead(self, 0, LEADER));
	ASSERT_EQ(0, fill(self->batch, 100));
	ASSERT_EQ(0, lead(self, 2, LEADER));
	ASSERT_EQ(0, fill(self->batch, 150));
	ASSERT_EQ(0, lead(self, 5, LEADER));
	ASSERT_EQ(0, fill(self->batch, 50));
}

static const char b26_text[] = "0\n3\n0 0\n2 100\n5 250\n";

TEST_F(epoch, where_epochs_end)
{
	struct plog_epoch arg = { .flags = PLOG_EPOCH_AT, .offset = 249 };

	make(_metadata, self);
	EXPECT_END(0, 0, 100);
	EXPECT_END(1, 0, 100);
	EXPECT_END(2, 2, 250);
	EXPECT_END(3, 2, 250);
	EXPECT_END(5, 5, 300);
	EXPECT_END(6, -1, -1);
	EXPECT_END(-1, -1, -1);
	EXPECT_STREQ(b26_text, content(self->file));
	ASSERT_EQ(0, ioctl(self->batch, PLOG_IOC_EPOCH, &arg));
	EXPECT_EQ(2, arg.epoch);
	EXPECT_EQ(5, arg.leader_epoch);
	arg.flags = 2;
	EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_EPOCH, &arg)));
	arg.flags = 0;
	arg.pad = 1;
	EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_EPOCH, &arg)));
	arg.pad = 0;
	arg.reserved[1] = 1;
	EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_EPOCH, &arg)));
	EXPECT_EQ(EFAULT, FAILS(ioctl(self->batch, PLOG_IOC_EPOCH, WILD)));
	EXPECT_EQ(ENOTCONN, FAILS(ioctl(self->control, PLOG_IOC_EPOCH, &arg)));
}

TEST_F(epoch, election_is_noted_without_a_write)
{
	make(_metadata, self);
	ASSERT_EQ(0, lead(self, 9, LEADER));
	EXPECT_STREQ("0\n4\n0 0\n2 100\n5 250\n9 300\n", content(self->file));
	EXPECT_END(9, 9, 300);
	EXPECT_END(5, 5, 300);
	EXPECT_EQ(-ESTALE, lead(self, 8, LEADER));
	/* a follower notes nothing */
	ASSERT_EQ(0, lead(self, 11, FOLLOWER));
	EXPECT_END(11, -1, -1);
	ASSERT_LE(0, reopen(_metadata, self));
	EXPECT_END(9, 9, 300);
	EXPECT_EQ(-ESTALE, lead(self, 10, LEADER));
	EXPECT_EQ(0, lead(self, 11, LEADER));
}

/* What a crash leaves at this moment, with the file as it may be torn. */
TEST_F(epoch, copies_with_torn_files_know_all_epochs)
{
	static const char *const files[] = {
		NULL, "", "0\n4\n0 0\n2 100\n5 250\n9 30", "0\n", "0\n0\n", "0\n1\n0 0\n",
		"0\n4\n0 0\n2 100\n5 251\n9 300\n", "0\n2\n7 0\n9 300\n", "\xff\xfe garbage",
	};
	char from[256];
	unsigned int i;

	make(_metadata, self);
	ASSERT_EQ(0, lead(self, 9, LEADER));
	strcpy(from, instance_path(&self->in, "t", 0, NULL));
	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char name[16];
		int32_t epoch;
		int64_t end;
		int fd;

		EXPECT_EQ(0, files[i] ? put_content(self->file, files[i]) : unlink(self->file));
		sprintf(name, "c%u", i);
		ASSERT_EQ(0, instance_open_copy(&self->in, from, name));
		fd = partition_bind(name, 0, PLOG_MODE_BATCH);
		ASSERT_LE(0, fd);
		EXPECT_EQ(0, end_of(fd, 2, &epoch, &end));
		EXPECT_EQ(2, epoch);
		EXPECT_EQ(250, end);
		EXPECT_EQ(0, end_of(fd, 5, &epoch, &end));
		EXPECT_EQ(300, end) {
			TH_LOG("with the file \"%s\"", files[i] ? files[i] : "(none)");
		}
		EXPECT_EQ(0, end_of(fd, 9, &epoch, &end));
		EXPECT_EQ(9, epoch);
		EXPECT_EQ(NULL, partition_check(fd, NULL));
		close(fd);
	}
}

TEST_F(epoch, hostile_file_behind_a_clean_stop)
{
	make(_metadata, self);
	shut(self);
	ASSERT_EQ(0, instance_stop(&self->in));
	ASSERT_EQ(0, put_content(self->file, "0\n3\n0 0\n3 100\n5 250\n"));
	ASSERT_EQ(0, instance_start(&self->in, self->dir));
	ASSERT_LE(0, open_topic(_metadata, self));
	EXPECT_END(2, 2, 250);
	EXPECT_END(3, 2, 250);
	ASSERT_LE(0, reopen(_metadata, self));
	EXPECT_STREQ(b26_text, content(self->file));
}

/* A device in its place: elections fail, and say so; nothing is followed. */
TEST_F(epoch, fifo_or_link_in_its_place)
{
	make(_metadata, self);
	ASSERT_EQ(0, unlink(self->file));
	ASSERT_EQ(0, symlink("/etc/passwd", self->file));
	EXPECT_EQ(-EINVAL, lead(self, 9, LEADER));
	ASSERT_EQ(0, unlink(self->file));
	ASSERT_EQ(0, mkfifo(self->file, 0600));
	EXPECT_EQ(-EINVAL, lead(self, 9, LEADER));
	EXPECT_END(5, 5, 300);
	EXPECT_EQ(0, fill(self->batch, 1));
	ASSERT_EQ(0, unlink(self->file));
	EXPECT_EQ(0, lead(self, 9, LEADER));
	EXPECT_STREQ("0\n4\n0 0\n2 100\n5 250\n9 301\n", content(self->file));
}

TEST_F(epoch, truncation_by_epoch)
{
	struct plog_control arg = { .command = PLOG_CONTROL_TRUNCATE_EPOCH };

	make(_metadata, self);
	ASSERT_EQ(0, lead(self, 7, FOLLOWER));
	arg.incarnation = self->incarnation;
	arg.leader_epoch = 7;
	/* the leader has 3 at most, which is not known here: again, for 2 */
	arg.epoch = 3;
	arg.offset = 400;
	ASSERT_EQ(0, ioctl(self->batch, PLOG_IOC_CONTROL, &arg));
	EXPECT_EQ(2, arg.epoch);
	EXPECT_EQ(250, arg.offset);
	EXPECT_STREQ("0\n2\n0 0\n2 100\n", content(self->file));
	arg.epoch = 2;
	arg.offset = 170;
	ASSERT_EQ(0, ioctl(self->batch, PLOG_IOC_CONTROL, &arg));
	EXPECT_EQ(-1, arg.epoch);
	EXPECT_EQ(170, arg.offset);
	EXPECT_EQ(170, partition_end(self->batch));
	arg.leader_epoch = 6;
	EXPECT_EQ(ESTALE, FAILS(ioctl(self->batch, PLOG_IOC_CONTROL, &arg)));
	arg.leader_epoch = 7;
	arg.incarnation--;
	EXPECT_EQ(ESTALE, FAILS(ioctl(self->batch, PLOG_IOC_CONTROL, &arg)));
	arg.incarnation++;
	arg.command = PLOG_CONTROL_TRUNCATE;
	arg.epoch = 1;
	EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_CONTROL, &arg)));
	/* what was cut does not come back */
	ASSERT_LE(0, reopen(_metadata, self));
	EXPECT_EQ(170, partition_end(self->batch));
	EXPECT_END(2, 2, 170);
	EXPECT_END(5, -1, -1);
}

TEST_F(epoch, follower_takes_what_rises)
{
	ASSERT_EQ(0, lead(self, 6, FOLLOWER));
	EXPECT_EQ(0, follow(self, 6, 0, 2, 1));
	EXPECT_EQ(0, follow(self, 6, 10, 4, 1));
	EXPECT_EQ(-ESTALE, follow(self, 6, 11, 7, 1));
	EXPECT_EQ(-EINVAL, follow(self, 6, 11, 3, 1));
	EXPECT_EQ(-EINVAL, follow(self, 6, 10, 4, 1));
	EXPECT_EQ(-ESTALE, follow(self, 5, 11, 4, 1));
	EXPECT_EQ(11, partition_end(self->batch));
	EXPECT_END(2, 2, 10);
	EXPECT_END(4, 4, 11);
}

TEST_F(epoch, first_batch_that_begins_below_the_start)
{
	struct plog_control arg = { .command = PLOG_CONTROL_START_AT, .leader_epoch = 3,
				    .offset = 105 };
	struct plog_state state;

	ASSERT_EQ(0, lead(self, 3, FOLLOWER));
	arg.incarnation = self->incarnation;
	ASSERT_EQ(0, follow(self, 3, 0, 1, 5));
	ASSERT_EQ(0, ioctl(self->batch, PLOG_IOC_CONTROL, &arg));
	ASSERT_EQ(0, partition_state(self->batch, &state));
	EXPECT_EQ(105, state.log_start);
	EXPECT_EQ(105, state.log_end);
	EXPECT_EQ(105, state.high_watermark);
	EXPECT_EQ(0, state.bytes);
	EXPECT_EQ(-EINVAL, follow(self, 3, 100, 2, 5));
	EXPECT_EQ(0, follow(self, 3, 102, 2, 10));
	ASSERT_EQ(0, partition_state(self->batch, &state));
	EXPECT_EQ(105, state.log_start);
	EXPECT_EQ(112, state.log_end);
	EXPECT_EQ(-EINVAL, follow(self, 3, 110, 2, 5));
	ASSERT_LE(0, reopen(_metadata, self));
	ASSERT_EQ(0, partition_state(self->batch, &state));
	EXPECT_EQ(105, state.log_start);
	EXPECT_EQ(112, state.log_end);
	EXPECT_END(2, 2, 112);
}

struct listed {
	int count;
	int32_t epoch[8];
	int64_t start[8];
};

static int on_epoch(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *tb[PLOG_A_EPOCH_MAX + 1] = { };
	struct listed *l = data;

	if (!nl_nest(nlh, PLOG_A_EPOCH, tb, PLOG_A_EPOCH_MAX) || l->count == 8)
		return MNL_CB_OK;
	l->epoch[l->count] = (int32_t)mnl_attr_get_u32(tb[PLOG_A_EPOCH_LEADER_EPOCH]);
	l->start[l->count++] = (int64_t)mnl_attr_get_u64(tb[PLOG_A_EPOCH_START_OFFSET]);
	return MNL_CB_OK;
}

TEST_F(epoch, netlink_lists_them)
{
	static char buf[NL_BUF_SIZE];
	struct listed l = { 0 };
	struct nlmsghdr *nlh;
	struct nlattr *nest;

	make(_metadata, self);
	nlh = nl_begin(&self->in.nl, buf, PLOG_CMD_EPOCH_GET, NLM_F_DUMP);
	nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, "t");
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
	mnl_attr_nest_end(nlh, nest);
	ASSERT_EQ(0, nl_talk(&self->in.nl, nlh, on_epoch, &l));
	ASSERT_EQ(3, l.count);
	EXPECT_EQ(2, l.epoch[1]);
	EXPECT_EQ(100, l.start[1]);
	EXPECT_EQ(5, l.epoch[2]);
	EXPECT_EQ(250, l.start[2]);
	nlh = nl_begin(&self->in.nl, buf, PLOG_CMD_EPOCH_GET, NLM_F_DUMP);
	EXPECT_EQ(-EINVAL, nl_talk(&self->in.nl, nlh, on_epoch, &l));
	EXPECT_STRNE("", self->in.nl.error_text);
}

/* Thousands of elections, and look-ups meanwhile: each answer is of one moment. */
TEST_F(epoch, lookups_beside_elections)
{
	int i, status, rounds = 1000 / slow();
	pid_t pid;

	ASSERT_EQ(0, lead(self, 0, LEADER));
	pid = child();
	if (!pid) {
		int64_t end, last = 0;
		int32_t epoch;

		while (!end_of(self->batch, 0, &epoch, &end)) {
			/* epoch 0 ends where 1 begins, once there is one: at 1 */
			if (epoch != 0 || end < last || end > 1)
				_exit(1);
			last = end;
			if (partition_end(self->batch) >= rounds)
				_exit(0);
		}
		_exit(2);
	}
	for (i = 1; i <= rounds; i++) {
		ASSERT_EQ(0, fill(self->batch, 1));
		ASSERT_EQ(0, lead(self, i, LEADER));
	}
	waitpid(pid, &status, 0);
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_END(rounds - 1, rounds - 1, rounds);
	ASSERT_LE(0, reopen(_metadata, self));
	EXPECT_END(rounds - 1, rounds - 1, rounds);
}

SELFTEST_MAIN
