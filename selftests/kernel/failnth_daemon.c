// SPDX-License-Identifier: GPL-2.0
/*
 * What only a daemon does, with each of its failure points: replica appends, transactions,
 * roles and epochs, compaction, retired files, the relay. See failnth.h.
 */
#include "failnth.h"

#include "compaction.h"

/* A registered daemon. */
#define DAEMON(port_)								\
	int control = control_open(0);						\
	uint64_t incarnation = 0;						\
	NEED_INJECTION();							\
	ASSERT_EQ(0, control_register(control, port_, &incarnation))

#define AS_DAEMON .incarnation = incarnation

/* Role and epoch of the partition. */
static int lead(int fd, uint64_t incarnation, uint32_t flags, int32_t epoch)
{
	struct plog_lead arg = { .flags = flags, .leader_epoch = epoch, AS_DAEMON };

	return FAILS(ioctl(fd, PLOG_IOC_LEAD, &arg));
}

/* Two batches as a leader sends them. */
static int replica(int fd, uint64_t incarnation, int32_t epoch, int64_t at)
{
	struct plog_append arg = {
		.flags = PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA, AS_DAEMON,
		.leader_epoch = epoch,
	};
	static uint8_t two[20000];
	struct batch b;
	int ret;

	if (!batch_fill(&b, 4000, 'r'))
		return ENOMEM;
	for (int i = 0; i < 2; i++) {
		memcpy(two + i * b.size, b.data, b.size);
		for (int k = 0; k < 8; k++)
			two[i * b.size + k] = (uint8_t)((uint64_t)(at + i) >> (56 - 8 * k));
		for (int k = 0; k < 4; k++)
			two[i * b.size + 12 + k] = (uint8_t)((uint32_t)epoch >> (24 - 8 * k));
	}
	ret = -partition_append(fd, two, 2 * b.size, &arg);
	batch_free(&b);
	return ret;
}

TEST_F_TIMEOUT(failnth, replica_append, 200)
{
	int64_t end = 0;

	DAEMON(0);
	ASSERT_EQ(0, lead(self->batch, incarnation, PLOG_LEAD_REPLICATED, 3));
	EACH_FAILURE(replica(self->batch, incarnation, 3, end), GREW(self->batch, 2, true));
	/* who checks reads up to the high watermark */
	ASSERT_EQ(0, partition_control(self->batch, PLOG_CONTROL_HIGH_WATERMARK, incarnation, 3,
				       end));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	close(control);
}

TEST_F_TIMEOUT(failnth, unstable_append, 200)
{
	struct plog_append arg;
	int64_t end = 0;
	struct batch b;

	DAEMON(0);
	ASSERT_TRUE(batch_fill(&b, 300, 'u'));
	EACH_FAILURE(({
		arg = (struct plog_append){
			.flags = PLOG_APPEND_DAEMON | PLOG_APPEND_UNSTABLE, AS_DAEMON,
			.leader_epoch = EPOCH, .first_unstable = PLOG_UNSTABLE_HERE,
		};
		-partition_append(self->batch, b.data, b.size, &arg);
	}), GREW(self->batch, 1, true));
	batch_free(&b);
	LOG_IS_GOOD(self->batch, "c");
	close(control);
}

TEST_F_TIMEOUT(failnth, roles_and_leases, 300)
{
	int32_t epoch = 1;

	DAEMON(0);
	EACH_FAILURE(lead(self->batch, incarnation, PLOG_LEAD_REPLICATED | PLOG_LEAD_LEADER |
			  PLOG_LEAD_BELOW_MIN_ISR, epoch++), (void)0);
	EACH_FAILURE(lead(self->batch, incarnation, PLOG_LEAD_REPLICATED, epoch++), (void)0);
	EACH_FAILURE(IOCTL(control, PLOG_IOC_LEASE, plog_lease, .deadline = INT64_MAX), (void)0);
	EACH_FAILURE(IOCTL(self->batch, PLOG_IOC_EPOCH, plog_epoch, .epoch = 1), (void)0);
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	close(control);
}

/* One that fails half way fences the partition: then it is made anew. */
static void unfence(struct __test_metadata *const _metadata, FIXTURE_DATA(failnth) *self,
		    uint64_t incarnation, uint32_t role, int32_t *epoch)
{
	struct plog_state state;

	ASSERT_EQ(0, partition_state(self->batch, &state));
	*epoch = state.leader_epoch;
	if (state.state == PLOG_PARTITION_ONLINE)
		return;
	ASSERT_EQ(PLOG_PARTITION_FENCED, state.state);
	close(self->batch);
	ASSERT_EQ(0, instance_delete(&self->in, "t", 0));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	self->batch = partition_bind("t", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, self->batch);
	ASSERT_EQ(0, partition_state(self->batch, &state));
	*epoch = state.leader_epoch + 1;
	ASSERT_EQ(0, lead(self->batch, incarnation, role, *epoch));
}

static int control_call(int fd, uint64_t incarnation, uint32_t command, int32_t leader_epoch,
			int32_t epoch, int64_t offset)
{
	struct plog_control arg = {
		.command = command, .leader_epoch = leader_epoch, AS_DAEMON, .epoch = epoch,
		.offset = offset,
	};

	return FAILS(ioctl(fd, PLOG_IOC_CONTROL, &arg));
}

TEST_F_TIMEOUT(failnth, truncate_epoch, 400)
{
	int64_t end = 200;
	int32_t epoch = 2;
	int i;

	DAEMON(0);
	for (i = 0; i < 200; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	ASSERT_EQ(0, lead(self->batch, incarnation, PLOG_LEAD_REPLICATED, epoch));
	EACH_FAILURE(control_call(self->batch, incarnation, PLOG_CONTROL_TRUNCATE_EPOCH, epoch, 0,
				  end - 1), ({
		unfence(_metadata, self, incarnation, PLOG_LEAD_REPLICATED, &epoch);
		end = partition_end(self->batch);
	}));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	close(control);
}

TEST_F_TIMEOUT(failnth, start_at, 400)
{
	int32_t epoch = 2;
	int64_t to = 10;

	DAEMON(0);
	ASSERT_EQ(6, write(self->fd, "record", 6));
	ASSERT_EQ(0, lead(self->batch, incarnation, PLOG_LEAD_REPLICATED, epoch));
	EACH_FAILURE(control_call(self->batch, incarnation, PLOG_CONTROL_START_AT, epoch, 0, to), ({
		unfence(_metadata, self, incarnation, PLOG_LEAD_REPLICATED, &epoch);
		to = partition_end(self->batch) + 10;
	}));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	close(control);
}

TEST_F_TIMEOUT(failnth, high_watermark, 200)
{
	int64_t at = 0;

	DAEMON(0);
	for (int i = 0; i < 50; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	ASSERT_EQ(0, lead(self->batch, incarnation, PLOG_LEAD_REPLICATED | PLOG_LEAD_LEADER, 1));
	EACH_FAILURE(control_call(self->batch, incarnation, PLOG_CONTROL_HIGH_WATERMARK, 1, 0,
				  at++), (void)0);
	close(control);
}

/* Topic "s" with many segments. */
static int segments(struct instance *in, char dir[4096], int64_t *base, int *count)
{
	struct nl_partition part = { .topic = "s", .segment_bytes = 2000 };
	int fd, i;

	if (instance_partition(in, &part))
		return -1;
	fd = partition_bind("s", 0, PLOG_MODE_BATCH);
	for (i = 0; i < 60; i++) {
		struct batch b;

		if (!batch_fill(&b, 400, 's') || partition_append(fd, b.data, b.size, NULL))
			return -1;
		batch_free(&b);
	}
	snprintf(dir, 4096, "%s", instance_path(in, "s", 0, NULL));
	*count = segment_bases(dir, base, 100);
	return fd;
}

TEST_F_TIMEOUT(failnth, swap, 400)
{
	int64_t base[100];
	char dir[4096];
	uint64_t generation;
	int fd, count;

	DAEMON(0);
	fd = segments(&self->in, dir, base, &count);
	ASSERT_LE(0, fd);
	ASSERT_LT(6, count);
	ASSERT_TRUE(compaction_write(dir, base, 1, 1, 1));
	generation = swap_generation(fd);
	EACH_FAILURE(-swap_call(fd, incarnation, base[1], base[1], generation, 0, NULL), ({
		struct plog_swap now = { .pending = -1 };

		/* it may have worked and its answer been lost */
		ASSERT_EQ(0, swap_call(fd, incarnation, 0, 0, 0, PLOG_SWAP_ASK, &now));
		if (now.pending >= 0) {
			compaction_rename(dir, base, 1, 1);
			EXPECT_EQ(0, swap_call(fd, incarnation, 0, 0, 0, PLOG_SWAP_DONE, NULL));
			ASSERT_TRUE(compaction_write(dir, base, 1, 1, 1));
		}
		generation = swap_generation(fd);
		EXPECT_EQ(60, partition_end(fd));
	}));
	ASSERT_EQ(0, swap_call(fd, incarnation, base[1], base[1], generation, 0, NULL));
	compaction_rename(dir, base, 1, 1);
	EACH_FAILURE(-swap_call(fd, incarnation, 0, 0, 0, PLOG_SWAP_DONE, NULL), ({
		struct plog_swap now = { .pending = -1 };

		ASSERT_EQ(0, swap_call(fd, incarnation, 0, 0, 0, PLOG_SWAP_ASK, &now));
		if (now.pending < 0 && err) {
			EXPECT_TRUE(compaction_write(dir, base, 1, 1, 1));
			ASSERT_EQ(0, swap_call(fd, incarnation, base[1], base[1],
					       swap_generation(fd), 0, NULL));
			compaction_rename(dir, base, 1, 1);
		}
	}));
	EACH_FAILURE(-swap_call(fd, incarnation, 0, 0, 0, PLOG_SWAP_ASK, NULL), (void)0);
	EXPECT_EQ(NULL, partition_check(fd, NULL));
	close(fd);
	close(control);
}

static int retired_request(uint8_t cmd, int64_t base, uint64_t incarnation)
{
	static char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	struct nl nl;
	int ret = nl_open(&nl);

	if (ret)
		return -ret;
	nlh = nl_begin(&nl, buf, cmd, NLM_F_ACK);
	nest = mnl_attr_nest_start(nlh, PLOG_A_RETIRED);
	mnl_attr_put_strz(nlh, PLOG_A_RETIRED_TOPIC, "s");
	mnl_attr_put_u32(nlh, PLOG_A_RETIRED_INDEX, 0);
	mnl_attr_put_u64(nlh, PLOG_A_RETIRED_BASE_OFFSET, (uint64_t)base);
	mnl_attr_put_u64(nlh, PLOG_A_RETIRED_INCARNATION, incarnation);
	mnl_attr_nest_end(nlh, nest);
	ret = nl_talk(&nl, nlh, NULL, NULL);
	nl_close(&nl);
	return -ret;
}

/* How long files of retired segments stay. */
static int keep_files(uint64_t ms)
{
	static char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	struct nl nl;
	int ret = nl_open(&nl);

	if (ret)
		return ret;
	nlh = nl_begin(&nl, buf, PLOG_CMD_PARTITION_SET, NLM_F_ACK);
	nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, "s");
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
	mnl_attr_put_u64(nlh, PLOG_A_PARTITION_FILE_DELETE_DELAY_MS, ms);
	mnl_attr_nest_end(nlh, nest);
	ret = nl_talk(&nl, nlh, NULL, NULL);
	nl_close(&nl);
	return ret;
}

TEST_F_TIMEOUT(failnth, retired_files, 400)
{
	int64_t base[100];
	int fd, count, i = 0;
	char dir[4096];

	DAEMON(self->in.nl.port);
	fd = segments(&self->in, dir, base, &count);
	ASSERT_LE(0, fd);
	ASSERT_LT(20, 2 * count);
	ASSERT_EQ(0, keep_files(1));
	ASSERT_EQ(0, partition_control(fd, PLOG_CONTROL_LOG_START, incarnation, EPOCH,
				       base[count - 1]));
	usleep(200000);
	/* taken once, it can be taken again by the same: a lost answer is no loss */
	EACH_FAILURE(retired_request(PLOG_CMD_RETIRED_TAKE, base[0], incarnation), (void)0);
	EACH_FAILURE(({
		int ret_ = retired_request(PLOG_CMD_RETIRED_DONE, base[i], incarnation);

		/* done, though its answer was lost */
		ret_ == ENOENT ? 0 : ret_;
	}), ({
		if (i + 2 < count)
			i++;
		retired_request(PLOG_CMD_RETIRED_TAKE, base[i], incarnation);
	}));
	EXPECT_EQ(NULL, partition_check(fd, NULL));
	close(fd);
	close(control);
}

static int relay(uint8_t cmd, uint32_t port)
{
	static char buf[2 * NL_BUF_SIZE];
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	struct nl nl;
	int ret = nl_open(&nl);

	if (ret)
		return -ret;
	nlh = nl_begin(&nl, buf, cmd, NLM_F_ACK);
	nest = mnl_attr_nest_start(nlh, PLOG_A_RELAY);
	if (cmd == PLOG_CMD_RELAY_REPLY)
		mnl_attr_put_u32(nlh, PLOG_A_RELAY_PORT, port);
	mnl_attr_put_u32(nlh, PLOG_A_RELAY_COOKIE, 5);
	mnl_attr_put(nlh, PLOG_A_RELAY_PAYLOAD, 2, "{}");
	mnl_attr_nest_end(nlh, nest);
	ret = nl_talk(&nl, nlh, NULL, NULL);
	nl_close(&nl);
	return -ret;
}

/* Read what has come, so that the socket has room for more. */
static void drain(struct nl *nl)
{
	static char buf[2 * NL_BUF_SIZE];

	while (nl_event(nl, buf, 0))
		;
}

TEST_F_TIMEOUT(failnth, relay, 300)
{
	struct nl daemon;

	NEED_INJECTION();
	ASSERT_EQ(0, nl_open(&daemon));
	{
		DAEMON(daemon.port);
		EACH_FAILURE(relay(PLOG_CMD_RELAY_REQUEST, 0), drain(&daemon));
		close(control);
	}
	nl_close(&daemon);
}

/* The answer comes from the port that the daemon has registered. */
TEST_F_TIMEOUT(failnth, relay_reply, 300)
{
	static char buf[NL_BUF_SIZE];
	struct nl daemon, asker;

	NEED_INJECTION();
	ASSERT_EQ(0, nl_open(&daemon));
	ASSERT_EQ(0, nl_open(&asker));
	{
		DAEMON(daemon.port);
		EACH_FAILURE(({
			struct nlmsghdr *nlh = nl_begin(&daemon, buf, PLOG_CMD_RELAY_REPLY,
							NLM_F_ACK);
			struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_RELAY);

			mnl_attr_put_u32(nlh, PLOG_A_RELAY_PORT, asker.port);
			mnl_attr_put_u32(nlh, PLOG_A_RELAY_COOKIE, 5);
			mnl_attr_put(nlh, PLOG_A_RELAY_PAYLOAD, 2, "{}");
			mnl_attr_nest_end(nlh, nest);
			-nl_talk(&daemon, nlh, NULL, NULL);
		}), ({
			drain(&asker);
			drain(&daemon);
		}));
		close(control);
	}
	nl_close(&asker);
	nl_close(&daemon);
}

/* Requests of one attribute. */
static int ask(uint8_t command, uint16_t flags, uint16_t nest_type, const char *topic,
	       uint16_t type, uint64_t value)
{
	static char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	struct nl nl;
	int ret = nl_open(&nl);

	if (ret)
		return -ret;
	nlh = nl_begin(&nl, buf, command, flags);
	nest = mnl_attr_nest_start(nlh, nest_type);
	if (topic) {
		mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, topic);
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
	}
	if (type)
		mnl_attr_put_u32(nlh, type, (uint32_t)value);
	mnl_attr_nest_end(nlh, nest);
	ret = nl_talk(&nl, nlh, NULL, NULL);
	nl_close(&nl);
	return -ret;
}

TEST_F_TIMEOUT(failnth, other_requests, 400)
{
	struct nl_instance got;

	DAEMON(0);
	EACH_FAILURE(-nl_instance_get(&self->in.nl, &got), (void)0);
	EACH_FAILURE(ask(PLOG_CMD_INSTANCE_SET, NLM_F_ACK, PLOG_A_INSTANCE, NULL,
			 PLOG_A_INSTANCE_RETENTION_CHECK_MS, 100000), (void)0);
	EACH_FAILURE(ask(PLOG_CMD_EPOCH_GET, NLM_F_DUMP, PLOG_A_PARTITION, "t", 0, 0), (void)0);
	EACH_FAILURE(ask(PLOG_CMD_PARTITION_GET, NLM_F_DUMP, PLOG_A_PARTITION, NULL, 0, 0),
		     (void)0);
	close(control);
}

/* The last one: nothing that can be called is left out. */
TEST_F(failnth, every_call)
{
	NEED_INJECTION();
	MET_ALL(true);
}

SELFTEST_MAIN
