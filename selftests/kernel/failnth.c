// SPDX-License-Identifier: GPL-2.0
/* What people and the daemon do to a partition, with each of its failure points: failnth.h. */
#include "failnth.h"

TEST_F_TIMEOUT(failnth, record_write, 120)
{
	int64_t end = 0;

	NEED_INJECTION();
	EACH_FAILURE(FAILS(write(self->fd, "record", 6)), GREW_BY(self->fd, 1));
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, large_record_write, 120)
{
	static char big[100000];
	int64_t end = 0;

	NEED_INJECTION();
	memset(big, 'b', sizeof(big));
	EACH_FAILURE(FAILS(write(self->fd, big, sizeof(big))), GREW_BY(self->fd, 1));
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, writev, 120)
{
	struct iovec iov[3] = { { "a", 1 }, { "b", 1 }, { "c", 1 } };
	int64_t end = 0;

	NEED_INJECTION();
	EACH_FAILURE(FAILS(writev(self->fd, iov, 3)), GREW_BY(self->fd, 3));
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, small_batch, 120)
{
	struct batch b;
	int64_t end = 0;

	NEED_INJECTION();
	ASSERT_TRUE(batch_fill(&b, 20000, 's'));
	EACH_FAILURE(-partition_append(self->batch, b.data, b.size, NULL),
		     GREW(self->batch, 1, true));
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, large_batch, 120)
{
	struct batch b;
	int64_t end = 0;

	NEED_INJECTION();
	ASSERT_TRUE(batch_fill(&b, 100000, 'l'));
	EACH_FAILURE(-partition_append(self->batch, b.data, b.size, NULL),
		     GREW(self->batch, 1, true));
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, batch_write, 120)
{
	struct batch b;
	int64_t end = 0;

	NEED_INJECTION();
	ASSERT_TRUE(batch_fill(&b, 100000, 'w'));
	EACH_FAILURE(FAILS(write(self->batch, b.data, b.size)), GREW_BY(self->batch, 1));
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, pinned_batch, 120)
{
	int control = control_open(0);
	struct plog_append args;
	uint64_t incarnation;
	struct batch b;
	int64_t end = 0;

	NEED_INJECTION();
	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	ASSERT_TRUE(batch_fill(&b, 100000, 'p'));
	EACH_FAILURE(({
		args = (struct plog_append){
			.flags = PLOG_APPEND_DAEMON, .incarnation = incarnation,
			.leader_epoch = EPOCH,
		};
		-partition_append(self->batch, b.data, b.size, &args);
	}), GREW(self->batch, 1, true));
	LOG_IS_GOOD(self->batch, "c");
	close(control);
}

TEST_F_TIMEOUT(failnth, append_that_rolls, 200)
{
	struct nl_partition part = { .topic = "r", .segment_bytes = 2000 };
	struct batch b;
	int64_t end = 0;
	int fd;

	NEED_INJECTION();
	ASSERT_EQ(0, instance_partition(&self->in, &part));
	fd = partition_bind("r", 0, PLOG_MODE_BATCH);
	/* each append needs a new segment */
	ASSERT_TRUE(batch_fill(&b, 1500, 'r'));
	EACH_FAILURE(-partition_append(fd, b.data, b.size, NULL), GREW(fd, 1, true));
	EXPECT_EQ(NULL, partition_check(fd, NULL));
	close(fd);
	batch_free(&b);
}

TEST_F_TIMEOUT(failnth, record_read, 120)
{
	char buf[64];
	int i;

	NEED_INJECTION();
	for (i = 0; i < 5; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	EACH_FAILURE(({
		lseek(self->fd, 2, SEEK_SET);
		memset(buf, 0, sizeof(buf));
		FAILS(read(self->fd, buf, sizeof(buf)));
	}), ({
		if (!err) {
			EXPECT_STREQ("record", buf);
			EXPECT_EQ(3, lseek(self->fd, 0, SEEK_CUR));
		} else {
			EXPECT_EQ(2, lseek(self->fd, 0, SEEK_CUR));
		}
	}));
}

TEST_F_TIMEOUT(failnth, bind, 120)
{
	struct plog_bind bind = { .topic = "t" };
	int fd = -1;

	NEED_INJECTION();
	EACH_FAILURE(({
		fd = open("/dev/plog-control", O_RDWR);
		fd < 0 ? errno : FAILS(ioctl(fd, PLOG_IOC_BIND, &bind));
	}), ({
		if (!err) {
			EXPECT_EQ(0, partition_end(fd));
		}
		if (fd >= 0)
			close(fd);
	}));
}

TEST_F_TIMEOUT(failnth, locate_and_splice, 120)
{
	struct plog_locate loc;
	int pipefd[2], i;
	static uint8_t buf[1 << 16];

	NEED_INJECTION();
	for (i = 0; i < 50; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	ASSERT_EQ(0, pipe(pipefd));
	EACH_FAILURE(({
		int ret_ = -partition_locate(self->batch, 10, 4000, 0, &loc);

		if (!ret_) {
			ssize_t n = splice(self->batch, NULL, pipefd[1], NULL, loc.length, 0);

			ret_ = n < 0 ? errno : 0;
			if (n > 0 && read(pipefd[0], buf, (size_t)n) != n)
				ret_ = ret_ ?: EIO;
		}
		ret_;
	}), (void)0);
	close(pipefd[0]);
	close(pipefd[1]);
}

TEST_F_TIMEOUT(failnth, lookup, 120)
{
	struct plog_lookup look;
	int i;

	NEED_INJECTION();
	for (i = 0; i < 50; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	EACH_FAILURE(({
		memset(&look, 0, sizeof(look));
		FAILS(ioctl(self->batch, PLOG_IOC_LOOKUP, &look));
	}), ({
		if (!err) {
			EXPECT_EQ(0, look.offset);
		}
	}));
}

TEST_F_TIMEOUT(failnth, registration, 120)
{
	int fd = -1;

	NEED_INJECTION();
	EACH_FAILURE(({
		int ret_;

		fd = control_open(0);
		ret_ = fd < 0 ? -fd : -control_register(fd, 0, NULL);
		ret_;
	}), ({
		struct nl_instance got;

		if (fd >= 0)
			close(fd);
		EXPECT_EQ(0, nl_instance_get(&self->in.nl, &got));
		EXPECT_EQ(0, got.incarnation);
	}));
}

TEST_F_TIMEOUT(failnth, partition_new_and_del, 300)
{
	struct nl_partition part = { .topic = "n" };

	NEED_INJECTION();
	ASSERT_EQ(0, mkdir(instance_path(&self->in, "n", 0, NULL), 0755));
	part.dir_fd = open(instance_path(&self->in, "n", 0, NULL), O_RDONLY | O_DIRECTORY);
	EACH_FAILURE(-nl_partition_new(&self->in.nl, &part), ({
		struct nl_partition got;

		/* the request may have worked and its answer been lost */
		if (!nl_partition_get(&self->in.nl, "n", 0, &got)) {
			instance_wait(&self->in, "n", 0);
			EXPECT_EQ(0, instance_delete(&self->in, "n", 0));
		}
	}));
	close(part.dir_fd);
	ASSERT_EQ(0, instance_topic(&self->in, "d"));
	EACH_FAILURE(-nl_partition_del(&self->in.nl, "d", 0), ({
		int64_t give_up = now_ms() + 20000 * slow();
		int ret_;

		/* it may have worked and its answer been lost; it is closed in the background */
		while ((ret_ = instance_topic(&self->in, "d")) == -EBUSY && now_ms() < give_up)
			usleep(1000);
		EXPECT_TRUE(ret_ == 0 || (err && ret_ == -EEXIST));
	}));
}

/* On a socket of its own: one that failed may leave messages in it. */
static int dump(uint8_t command)
{
	static char buf[NL_BUF_SIZE];
	struct nl nl;
	int ret = nl_open(&nl);

	if (ret)
		return -ret;
	ret = nl_talk(&nl, nl_begin(&nl, buf, command, NLM_F_DUMP), NULL, NULL);
	nl_close(&nl);
	return -ret;
}

TEST_F_TIMEOUT(failnth, partition_get_and_dump, 200)
{
	struct nl_partition got;

	NEED_INJECTION();
	EACH_FAILURE(-nl_partition_get(&self->in.nl, "t", 0, &got), (void)0);
	EACH_FAILURE(dump(PLOG_CMD_PARTITION_GET), (void)0);
}

TEST_F_TIMEOUT(failnth, instance_set, 300)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct nl_instance got;
	char dir[256], path[300];
	int dir_fd, lock_fd;
	struct nl nl;

	NEED_INJECTION();
	close(self->fd);
	close(self->batch);
	self->fd = self->batch = -1;
	ASSERT_EQ(0, instance_stop(&self->in));
	strcpy(dir, self->in.dir);
	snprintf(path, sizeof(path), "%s/.lock", dir);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	lock_fd = open(path, O_RDWR);
	ASSERT_EQ(0, fcntl(lock_fd, F_OFD_SETLK, &lock));
	ASSERT_EQ(0, nl_open(&nl));
	EACH_FAILURE(-nl_instance_set(&nl, dir, dir_fd, lock_fd), ({
		/* it may have worked and its answer been lost */
		while (!nl_instance_get(&nl, &got) && (got.state == PLOG_INSTANCE_RUNNING ||
						       got.state == PLOG_INSTANCE_STOPPING)) {
			if (got.state == PLOG_INSTANCE_RUNNING)
				nl_instance_stop(&nl);
			usleep(1000);
		}
	}));
	nl_close(&nl);
	close(dir_fd);
	close(lock_fd);
	ASSERT_EQ(0, instance_start(&self->in, dir));
}

/* ---- every other call ---- */

TEST_F_TIMEOUT(failnth, looks, 200)
{
	struct plog_batch_header entries[8];
	int i;

	NEED_INJECTION();
	for (i = 0; i < 30; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	EACH_FAILURE(IOCTL(self->batch, PLOG_IOC_INFO, plog_info, 0), (void)0);
	EACH_FAILURE(IOCTL(self->batch, PLOG_IOC_STATE, plog_state, 0), (void)0);
	EACH_FAILURE(IOCTL(self->batch, PLOG_IOC_EPOCH, plog_epoch, 0), (void)0);
	EACH_FAILURE(IOCTL(self->batch, PLOG_IOC_PRODUCER, plog_producer, 0), (void)0);
	EACH_FAILURE(IOCTL(self->batch, PLOG_IOC_HEADERS, plog_headers, .count = 8,
			   .entries = (uintptr_t)entries), (void)0);
	EACH_FAILURE(IOCTL(self->batch, PLOG_IOC_LOOKUP, plog_lookup,
			   .flags = PLOG_LOOKUP_MAX), (void)0);
	EACH_FAILURE(IOCTL(self->fd, PLOG_IOC_SET_MODE, plog_mode, .flags = 0), (void)0);
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, extent_read, 120)
{
	struct plog_locate loc;
	static char buf[8000];
	int i;

	NEED_INJECTION();
	for (i = 0; i < 50; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	EACH_FAILURE(({
		int ret_ = -partition_locate(self->batch, 10, 4000, 0, &loc);

		ret_ ? ret_ : FAILS(read(self->batch, buf, loc.length));
	}), (void)0);
}

TEST_F_TIMEOUT(failnth, syncs, 120)
{
	int64_t end = 0;
	int fd = -1;

	NEED_INJECTION();
	fd = partition_bind_flags("t", 0, 0, O_DSYNC);
	ASSERT_LE(0, fd);
	/* its sync may have failed after the append: then it is there all the same */
	EACH_FAILURE(FAILS(write(fd, "record", 6)), ({
		int64_t now_ = partition_end(fd);

		EXPECT_TRUE(now_ == end + 1 || (err && now_ == end));
		end = now_;
	}));
	EACH_FAILURE(({
		ssize_t n_ = write(self->fd, "x", 1);

		n_ == 1 ? FAILS(fsync(self->fd)) : errno;
	}), (void)0);
	close(fd);
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, controls, 300)
{
	int control = control_open(0), i;
	uint64_t incarnation;
	int64_t at = 1;

	NEED_INJECTION();
	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	for (i = 0; i < 100; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	EACH_FAILURE(-partition_control(self->batch, PLOG_CONTROL_LOG_START, incarnation, EPOCH,
					at++), (void)0);
	EACH_FAILURE(-partition_control(self->batch, PLOG_CONTROL_UNSTABLE, incarnation, EPOCH,
					-1), (void)0);
	EACH_FAILURE(({
		ssize_t n_ = write(self->fd, "x", 1);

		n_ == 1 ? -partition_control(self->batch, PLOG_CONTROL_ROLL, incarnation, EPOCH,
					     0) : errno;
	}), (void)0);
	EACH_FAILURE(IOCTL(control, PLOG_IOC_LEASE, plog_lease, 0), (void)0);
	LOG_IS_GOOD(self->batch, "c");
	i = 1;
	EACH_FAILURE(IOCTL(self->batch, PLOG_IOC_LEAD, plog_lead,
			   .flags = PLOG_LEAD_REPLICATED | PLOG_LEAD_LEADER,
			   .leader_epoch = i++, .incarnation = incarnation), (void)0);
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	close(control);
}

/* A truncation that fails half way fences the partition: it is opened again then. */
TEST_F_TIMEOUT(failnth, truncation, 300)
{
	int control = control_open(0), i;
	struct plog_state state;
	uint64_t incarnation;
	int64_t at = 399;

	NEED_INJECTION();
	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	for (i = 0; i < 400; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	EACH_FAILURE(-partition_control(self->batch, PLOG_CONTROL_TRUNCATE, incarnation, EPOCH,
					at--), ({
		ASSERT_EQ(0, partition_state(self->batch, &state));
		EXPECT_TRUE(state.state == PLOG_PARTITION_ONLINE ||
			    (err && state.state == PLOG_PARTITION_FENCED));
		if (state.state == PLOG_PARTITION_FENCED) {
			close(self->batch);
			ASSERT_EQ(0, instance_delete(&self->in, "t", 0));
			ASSERT_EQ(0, instance_topic(&self->in, "t"));
			self->batch = partition_bind("t", 0, PLOG_MODE_BATCH);
			ASSERT_LE(0, self->batch);
		}
		EXPECT_LE(at + 1, partition_end(self->batch));
	}));
	LOG_IS_GOOD(self->batch, "c");
	close(control);
}

/* A request on partition "t" with one attribute more, if @type. */
static int request(struct instance *in, uint8_t command, uint16_t flags, int type, uint64_t value)
{
	static char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	struct nl nl;
	int ret = nl_open(&nl);

	(void)in;
	if (ret)
		return -ret;
	nlh = nl_begin(&nl, buf, command, flags);
	nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, "t");
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
	if (type)
		mnl_attr_put_u64(nlh, (uint16_t)type, value);
	mnl_attr_nest_end(nlh, nest);
	ret = nl_talk(&nl, nlh, NULL, NULL);
	nl_close(&nl);
	return -ret;
}

TEST_F_TIMEOUT(failnth, requests, 400)
{
	uint64_t value = 100000, counters[PLOG_A_STATS_MAX + 1];
	int i;

	NEED_INJECTION();
	for (i = 0; i < 30; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	EACH_FAILURE(request(&self->in, PLOG_CMD_PARTITION_SET, NLM_F_ACK,
			     PLOG_A_PARTITION_RETENTION_BYTES, value++), (void)0);
	EACH_FAILURE(-nl_stats_get(&self->in.nl, "t", 0, counters), (void)0);
	EACH_FAILURE(-nl_stats_get(&self->in.nl, NULL, 0, counters), (void)0);
	EACH_FAILURE(dump(PLOG_CMD_STATS_GET), (void)0);
	EACH_FAILURE(request(&self->in, PLOG_CMD_SEGMENT_GET, NLM_F_DUMP, 0, 0), (void)0);
	EACH_FAILURE(request(&self->in, PLOG_CMD_RETIRED_GET, NLM_F_DUMP, 0, 0), (void)0);
	EACH_FAILURE(request(&self->in, PLOG_CMD_RETENTION_RUN, NLM_F_ACK, 0, 0), (void)0);
	EACH_FAILURE(request(&self->in, PLOG_CMD_PARTITION_ROLL, NLM_F_ACK, 0, 0), (void)0);
	EACH_FAILURE(request(&self->in, PLOG_CMD_PARTITION_DELETE_RECORDS, NLM_F_ACK,
			     PLOG_A_PARTITION_LOG_START, 1), (void)0);
	LOG_IS_GOOD(self->batch, "c");
}

TEST_F_TIMEOUT(failnth, instance_stop, 300)
{
	struct nl_instance got;
	char dir[256];
	struct nl nl;

	NEED_INJECTION();
	strcpy(dir, self->in.dir);
	close(self->fd);
	close(self->batch);
	self->fd = self->batch = -1;
	ASSERT_EQ(0, nl_open(&nl));
	EACH_FAILURE(-nl_instance_stop(&nl), ({
		while (!nl_instance_get(&nl, &got) && got.state == PLOG_INSTANCE_STOPPING)
			usleep(1000);
		if (got.state != PLOG_INSTANCE_RUNNING && got.state != PLOG_INSTANCE_STOPPING) {
			instance_close(&self->in);
			ASSERT_EQ(0, instance_start(&self->in, dir));
		}
	}));
	nl_close(&nl);
}

/* The last one: nothing that can be called is left out. */
TEST_F(failnth, every_call)
{
	NEED_INJECTION();
	MET_ALL(false);
}

SELFTEST_MAIN
