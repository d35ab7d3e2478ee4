// SPDX-License-Identifier: GPL-2.0
/*
 * What is found when a partition is opened: after a clean stop, after a crash,
 * with files that are torn, damaged or missing.
 */
#include "fixture.h"

FIXTURE(recovery)
{
	struct instance in;
	struct nl_partition part;
	int fd;
	int records;
	char from[300];		/* the directory to copy */
};

FIXTURE_SETUP(recovery)
{
	char value[300];
	int i;

	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	self->part.topic = "t";
	self->part.segment_bytes = 8192;
	self->part.index_interval_bytes = 1024;
	ASSERT_EQ(0, instance_partition(&self->in, &self->part));
	self->fd = partition_bind_flags("t", 0, 0, O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	for (i = 0; i < 60; i++) {
		memset(value, 'a' + i % 26, sizeof(value));
		ASSERT_EQ(sizeof(value), write(self->fd, value, sizeof(value)));
	}
	self->records = 60;
	strcpy(self->from, instance_path(&self->in, "t", 0, NULL));
}

FIXTURE_TEARDOWN(recovery)
{
	close(self->fd);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
}

/* Run a shell command in a copy of the partition, then open it. */
static int open_after(struct instance *in, const char *from, const char *command)
{
	struct nl_partition part = {
		.topic = "c", .segment_bytes = 8192, .index_interval_bytes = 1024,
	};
	char cmd[2000];

	snprintf(cmd, sizeof(cmd), "cp -r %s %s/c-0 && cd %s/c-0 && ( %s )", from, in->dir,
		 in->dir, command);
	if (system(cmd))
		return 1;
	return instance_partition(in, &part);
}

/* The copy opens, has @count records, all of them good, and takes more. */
#define EXPECT_RECOVERED(count, command)					\
	do {									\
		int fd_, n_;							\
		char c_[301];							\
		ASSERT_EQ(0, open_after(&self->in, self->from, command));	\
		fd_ = partition_bind_flags("c", 0, PLOG_MODE_BATCH, O_NONBLOCK);	\
		ASSERT_LE(0, fd_);						\
		EXPECT_EQ(count, partition_end(fd_));				\
		EXPECT_EQ(NULL, partition_check(fd_, &n_));			\
		EXPECT_EQ(count, n_);						\
		ASSERT_EQ(0, partition_mode(fd_, 0));				\
		for (n_ = 0; n_ < (count); n_++) {				\
			ASSERT_EQ(300, read(fd_, c_, sizeof(c_)));		\
			ASSERT_EQ('a' + n_ % 26, c_[0]);			\
		}								\
		EXPECT_EQ(EAGAIN, FAILS(read(fd_, c_, sizeof(c_))));		\
		EXPECT_EQ(3, write(fd_, "new", 3));				\
		EXPECT_EQ(3, read(fd_, c_, sizeof(c_)));			\
		EXPECT_EQ((count) + 1, partition_end(fd_));			\
		close(fd_);							\
	} while (0)

/* The last segment that has bytes in it. */
#define LAST "f=$(find . -name '*.log' -size +0 | sort | tail -n 1); "

TEST_F(recovery, crash_loses_nothing_that_was_written)
{
	EXPECT_RECOVERED(self->records, "true");
}

TEST_F(recovery, clean_stop_scans_nothing)
{
	uint64_t counters[PLOG_A_STATS_MAX + 1];
	char dir[256];
	int fd;

	close(self->fd);
	strcpy(dir, self->in.dir);
	ASSERT_EQ(0, instance_stop(&self->in));
	ASSERT_EQ(0, instance_start(&self->in, dir));
	ASSERT_EQ(0, instance_partition(&self->in, &self->part));
	fd = partition_bind("t", 0, 0);
	EXPECT_EQ(self->records, partition_end(fd));
	ASSERT_EQ(0, nl_stats_get(&self->in.nl, "t", 0, counters));
	EXPECT_EQ(0, counters[PLOG_A_STATS_RECOVERED_BYTES]);
	EXPECT_EQ(0, counters[PLOG_A_STATS_TRUNCATED_BYTES]);
	close(fd);
	self->fd = -1;
}

TEST_F(recovery, crash_scans_and_says_how_much)
{
	uint64_t counters[PLOG_A_STATS_MAX + 1];

	ASSERT_EQ(0, open_after(&self->in, self->from, LAST "printf garbage >> $f"));
	ASSERT_EQ(0, nl_stats_get(&self->in.nl, "c", 0, counters));
	EXPECT_LT(0, counters[PLOG_A_STATS_RECOVERED_BYTES]);
	EXPECT_EQ(7, counters[PLOG_A_STATS_TRUNCATED_BYTES]);
}

TEST_F(recovery, torn_tail_is_cut)
{
	EXPECT_RECOVERED(self->records - 1, LAST "truncate -s -1 $f");
}

TEST_F(recovery, tail_torn_in_the_header_is_cut)
{
	EXPECT_RECOVERED(self->records, LAST "head -c 40 $f >> $f.t; cat $f.t >> $f; rm $f.t");
}

TEST_F(recovery, zeros_behind_the_end_are_cut)
{
	EXPECT_RECOVERED(self->records, LAST "truncate -s +5000 $f");
}

TEST_F(recovery, garbage_behind_the_end_is_cut)
{
	EXPECT_RECOVERED(self->records, LAST "head -c 3000 /dev/urandom >> $f");
}

TEST_F(recovery, old_batches_behind_the_end_are_not_believed)
{
	/* well formed, but their offsets are not those that come next */
	EXPECT_RECOVERED(self->records, LAST "cp $f x; cat x >> $f; rm x");
}

TEST_F(recovery, flipped_bit_cuts_from_there)
{
	/* the last batch of the last segment: flip its last byte */
	EXPECT_RECOVERED(self->records - 1,
			 LAST "s=$(stat -c %s $f); printf '\\377' | "
			 "dd of=$f bs=1 seek=$((s - 10)) conv=notrunc 2>/dev/null");
}

TEST_F(recovery, missing_indexes_are_rebuilt)
{
	EXPECT_RECOVERED(self->records, "rm -f *.index *.timeindex");
}

TEST_F(recovery, empty_indexes_are_rebuilt)
{
	EXPECT_RECOVERED(self->records, "for f in *.index *.timeindex; do : > $f; done");
}

TEST_F(recovery, garbage_indexes_hide_nothing)
{
	EXPECT_RECOVERED(self->records,
			 "for f in *.index *.timeindex; do head -c 800 /dev/urandom > $f; done");
}

/* Every kind in user space: test_engine_damage. Here what the kernel's files add. */
TEST_F_TIMEOUT(recovery, indexes_damaged_behind_a_clean_mark, 120)
{
	static const char *const kinds[] = {
		"rm $f", ": > $f", "truncate -s 10M $f", "truncate -s -3 $f", "truncate -s 1 $f",
		"dd if=/dev/zero of=$f bs=8 count=2 conv=notrunc status=none",
		"dd if=/dev/urandom of=$f bs=8 count=3 conv=notrunc status=none",
		"rm $f; mkdir $f", "rm -rf $f; ln -s /etc/passwd $f", "rm -f $f; mkfifo $f",
		"rm -f $f; cp ../t-0/plog.state $f", "chmod 0 $f", "chattr +i $f 2>/dev/null",
	};
	struct plog_lookup look;
	char dir[256], cmd[600];
	int fd, n;
	size_t i;

	strcpy(dir, self->in.dir);
	close(self->fd);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		ASSERT_EQ(0, instance_stop(&self->in));
		/* of all segments, or the last one */
		snprintf(cmd, sizeof(cmd), "cd %s/t-0 && for f in $(ls *index | %s); do %s; done", dir,
			 i & 1 ? "cat" : "tail -n 2", kinds[i]);
		ASSERT_EQ(0, system(cmd));
		ASSERT_EQ(0, instance_start(&self->in, dir));
		ASSERT_EQ(0, instance_partition(&self->in, &self->part));
		fd = partition_bind("t", 0, PLOG_MODE_BATCH);
		ASSERT_LE(0, fd);
		EXPECT_EQ(self->records, partition_end(fd));
		EXPECT_EQ(NULL, partition_check(fd, &n));
		EXPECT_EQ(self->records, n);
		memset(&look, 0, sizeof(look));
		look.flags = PLOG_LOOKUP_MAX;
		ASSERT_EQ(0, FAILS(ioctl(fd, PLOG_IOC_LOOKUP, &look)));
		EXPECT_LE(0, look.offset);
		look.flags = 0;
		look.offset = 0;
		ASSERT_EQ(0, FAILS(ioctl(fd, PLOG_IOC_LOOKUP, &look)));
		EXPECT_LE(0, look.offset);
		ASSERT_EQ(0, partition_mode(fd, 0));
		EXPECT_EQ(3, write(fd, "new", 3));
		EXPECT_EQ(++self->records, partition_end(fd));
		close(fd);
	}
	snprintf(cmd, sizeof(cmd), "cd %s/t-0 && chattr -i *index 2>/dev/null; true", dir);
	system(cmd);
	self->fd = -1;
}

/* A file that is made on somebody's behalf is as a worker's, whatever the caller's umask is. */
TEST_F(recovery, files_do_not_know_their_callers_umask)
{
	struct plog_lead lead = { .flags = PLOG_LEAD_LEADER, .leader_epoch = EPOCH + 1 };
	char path[512];
	struct stat st;
	int control = control_open(0), err;
	uint64_t incarnation;
	mode_t mask;

	ASSERT_LE(0, control);
	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	lead.incarnation = incarnation;
	strcpy(path, instance_path(&self->in, "t", 0, "leader-epoch-checkpoint"));
	unlink(path);
	mask = umask(0777);
	err = FAILS(ioctl(self->fd, PLOG_IOC_LEAD, &lead));
	umask(mask);
	EXPECT_EQ(0, err);
	ASSERT_EQ(0, stat(path, &st));
	EXPECT_EQ(0644, st.st_mode & 07777);
	close(control);
}

TEST_F(recovery, missing_state_file_scans_all)
{
	EXPECT_RECOVERED(self->records, "rm -f plog.state");
}

TEST_F(recovery, garbage_state_file_scans_all)
{
	EXPECT_RECOVERED(self->records, "head -c 4096 /dev/urandom > plog.state");
}

TEST_F(recovery, half_state_file)
{
	EXPECT_RECOVERED(self->records, "truncate -s 100 plog.state");
}

TEST_F(recovery, strange_files_are_left_alone)
{
	EXPECT_RECOVERED(self->records,
			 "echo x > README; echo y > 5.log; mkdir sub; echo z > abc.index; "
			 "echo w > 00000000000000000000.log.deleted; "
			 "echo version: 0 > partition.metadata");
	EXPECT_EQ(0, access(instance_path(&self->in, "c", 0, "README"), F_OK));
	EXPECT_EQ(0, access(instance_path(&self->in, "c", 0, "sub"), F_OK));
}

TEST_F(recovery, empty_last_segment)
{
	EXPECT_RECOVERED(self->records,
			 ": > 00000000000000000060.log; : > 00000000000000000060.index; "
			 ": > 00000000000000000060.timeindex");
}

TEST_F(recovery, first_segment_missing_moves_the_log_start)
{
	struct plog_state state;
	int fd, n;

	ASSERT_EQ(0, open_after(&self->in, self->from, "rm 00000000000000000000.*"));
	fd = partition_bind("c", 0, PLOG_MODE_BATCH);
	ASSERT_EQ(0, partition_state(fd, &state));
	EXPECT_LT(0, state.log_start);
	EXPECT_EQ(self->records, state.log_end);
	EXPECT_EQ(NULL, partition_check(fd, &n));
	EXPECT_EQ(state.log_end - state.log_start, n);
	close(fd);
}

TEST_F(recovery, symlink_is_not_followed)
{
	int ret = open_after(&self->in, self->from,
			     "echo secret > ../secret; rm 00000000000000000000.log; "
			     "ln -s ../secret 00000000000000000000.log");

	char cmd[400];

	EXPECT_NE(0, ret);
	snprintf(cmd, sizeof(cmd), "test \"$(cat %s/secret)\" = secret", self->in.dir);
	EXPECT_EQ(0, system(cmd));
}

TEST_F(recovery, reopen_again_and_again)
{
	char dir[256], value[300];
	int round, fd;

	close(self->fd);
	self->fd = -1;
	memset(value, 'r', sizeof(value));
	for (round = 0; round < 8; round++) {
		strcpy(dir, self->in.dir);
		ASSERT_EQ(0, instance_stop(&self->in));
		ASSERT_EQ(0, instance_start(&self->in, dir));
		ASSERT_EQ(0, instance_partition(&self->in, &self->part));
		fd = partition_bind("t", 0, PLOG_MODE_BATCH);
		ASSERT_EQ(self->records + round, partition_end(fd));
		EXPECT_EQ(NULL, partition_check(fd, NULL));
		ASSERT_EQ(0, partition_mode(fd, 0));
		ASSERT_EQ(300, write(fd, value, sizeof(value)));
		close(fd);
	}
}

TEST_F(recovery, kafka_segment_names_and_index_files)
{
	const char *const index = "00000000000000000000.index";
	const char *const timeindex = "00000000000000000000.timeindex";
	struct stat st;

	/* a rolled segment's: whole entries of 8 and 12 bytes, no room left over */
	ASSERT_EQ(0, stat(instance_path(&self->in, "t", 0, index), &st));
	EXPECT_EQ(0, st.st_size % 8);
	EXPECT_LT(0, st.st_size);
	ASSERT_EQ(0, stat(instance_path(&self->in, "t", 0, timeindex), &st));
	EXPECT_EQ(0, st.st_size % 12);
	EXPECT_LT(0, st.st_size);
}

SELFTEST_MAIN
