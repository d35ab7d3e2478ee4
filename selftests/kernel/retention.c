// SPDX-License-Identifier: GPL-2.0
/*
 * What goes from a log, on the module's own clock or by request, and what
 * becomes of the files: with a daemon, without one, under readers.
 */
#include <linux/genetlink.h>

#include "fixture.h"

/* The topic that most of this is about: a segment for each batch. */
static struct nl_partition small(const char *topic)
{
	return (struct nl_partition){
		.topic = topic, .dir_fd = -1, .segment_bytes = 1100, .max_message_bytes = 1024,
	};
}

/* Requests with more attributes than struct nl_partition has. */
static int set_number(struct nl *nl, uint8_t cmd, const char *topic, int type, int64_t value)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, cmd, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);

	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, topic);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
	if (type == PLOG_A_PARTITION_PREALLOCATE)
		mnl_attr_put_u8(nlh, type, value);
	else if (type)
		mnl_attr_put_u64(nlh, type, value);
	mnl_attr_nest_end(nlh, nest);
	return nl_talk(nl, nlh, NULL, NULL);
}

#define SET(name, value) \
	set_number(&self->in.nl, PLOG_CMD_PARTITION_SET, "r", PLOG_A_PARTITION_##name, value)
#define COMMAND(name)	set_number(&self->in.nl, PLOG_CMD_##name, "r", 0, 0)

static int retired_request(struct nl *nl, uint8_t cmd, int64_t base, uint64_t incarnation)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, cmd, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_RETIRED);

	mnl_attr_put_strz(nlh, PLOG_A_RETIRED_TOPIC, "r");
	mnl_attr_put_u32(nlh, PLOG_A_RETIRED_INDEX, 0);
	mnl_attr_put_u64(nlh, PLOG_A_RETIRED_BASE_OFFSET, base);
	if (incarnation)
		mnl_attr_put_u64(nlh, PLOG_A_RETIRED_INCARNATION, incarnation);
	mnl_attr_nest_end(nlh, nest);
	return nl_talk(nl, nlh, NULL, NULL);
}

#define TAKE(base, who)	retired_request(&self->in.nl, PLOG_CMD_RETIRED_TAKE, base, who)
#define DONE(base, who)	retired_request(&self->in.nl, PLOG_CMD_RETIRED_DONE, base, who)

/* How many retired segments are in which state, and the lowest base offset. */
struct retired {
	int all, state[8];
	int64_t first;
	uint64_t bytes;
};

static int retired_cb(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *tb[PLOG_A_RETIRED_MAX + 1];
	struct retired *r = data;
	int64_t base;

	if (!nl_nest(nlh, PLOG_A_RETIRED, tb, PLOG_A_RETIRED_MAX))
		return MNL_CB_OK;
	base = (int64_t)mnl_attr_get_u64(tb[PLOG_A_RETIRED_BASE_OFFSET]);
	r->first = r->all && r->first < base ? r->first : base;
	r->all++;
	r->state[mnl_attr_get_u32(tb[PLOG_A_RETIRED_STATE]) & 7]++;
	r->bytes += mnl_attr_get_u64(tb[PLOG_A_RETIRED_BYTES]);
	return MNL_CB_OK;
}

static struct retired retired_get(struct nl *nl)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, PLOG_CMD_RETIRED_GET, NLM_F_DUMP);
	struct retired r = { .first = -1 };

	if (nl_talk(nl, nlh, retired_cb, &r))
		r.all = -1;
	return r;
}

static struct nl_partition look(struct nl *nl)
{
	struct nl_partition p = { 0 };

	nl_partition_get(nl, "r", 0, &p);
	return p;
}

/* Wait until @cond, looking again and again; false after 20 s. */
#define EVENTUALLY(cond) ({						\
	int64_t __end = now_ms() + 20000 * slow();			\
	while (!(cond) && now_ms() < __end)				\
		usleep(10000);						\
	(cond);								\
})

/* One record, of that time in milliseconds; two of these do not fit into one segment. */
static int put(int fd, int64_t time)
{
	char value[600];
	struct batch b;
	int ret;

	memset(value, 'x', sizeof(value));
	if (!batch_init(&b, 1000, time))
		return -ENOMEM;
	batch_add_value(&b, value, sizeof(value));
	batch_finish(&b);
	ret = partition_append(fd, b.data, b.size, NULL);
	batch_free(&b);
	return ret;
}

static int64_t wall_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static const char *file_of(struct instance *in, int64_t base, const char *kind)
{
	char name[64];

	snprintf(name, sizeof(name), "%020lld.%s", (long long)base, kind);
	return instance_path(in, "r", 0, name);
}

/* -1: there is none. */
static long size_of(struct instance *in, int64_t base, const char *kind)
{
	struct stat st;

	return stat(file_of(in, base, kind), &st) ? -1 : (long)st.st_size;
}

/* What the segment's log takes on the disk, bytes; -1: there is none. */
static long room_of(struct instance *in, int64_t base)
{
	struct stat st;

	return stat(file_of(in, base, "log"), &st) ? -1 : (long)st.st_blocks * 512;
}

FIXTURE(retention)
{
	struct instance in;
	int batch;
};

FIXTURE_SETUP(retention)
{
	struct nl_partition part = small("r");
	int i;

	self->batch = -1;
	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	ASSERT_EQ(0, instance_partition(&self->in, &part));
	self->batch = partition_bind_flags("r", 0, PLOG_MODE_BATCH, O_NONBLOCK);
	ASSERT_LE(0, self->batch);
	/* of long ago */
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, put(self->batch, 1000 + i));
	ASSERT_EQ(5, look(&self->in.nl).segments);
	ASSERT_EQ(0, SET(FILE_DELETE_DELAY_MS, 0));
}

FIXTURE_TEARDOWN(retention)
{
	if (self->batch >= 0)
		close(self->batch);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
}

TEST_F(retention, keeps_everything_unless_told)
{
	ASSERT_EQ(0, COMMAND(RETENTION_RUN));
	ASSERT_EQ(0, nl_instance_limit(&self->in.nl, PLOG_A_INSTANCE_RETENTION_CHECK_MS, 1));
	usleep(200000);
	EXPECT_EQ(0, look(&self->in.nl).log_start);
	EXPECT_EQ(0, retired_get(&self->in.nl).all);
}

TEST_F(retention, by_time_without_a_daemon)
{
	ASSERT_EQ(0, put(self->batch, wall_ms()));
	ASSERT_EQ(0, SET(RETENTION_MS, 3600000));
	ASSERT_EQ(0, COMMAND(RETENTION_RUN));
	ASSERT_TRUE(EVENTUALLY(look(&self->in.nl).log_start == 5));
	EXPECT_EQ(6, look(&self->in.nl).log_end);
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	/* nobody unlinks here: the module gives the room back */
	ASSERT_TRUE(EVENTUALLY(retired_get(&self->in.nl).state[PLOG_RETIRED_STATE_EMPTIED] == 5));
	EXPECT_EQ(0, size_of(&self->in, 0, "log"));
	EXPECT_EQ(0, size_of(&self->in, 0, "index"));
	EXPECT_EQ(0, size_of(&self->in, 0, "timeindex"));
	EXPECT_EQ(0, retired_get(&self->in.nl).bytes);
	EXPECT_LT(0, size_of(&self->in, 5, "log"));
}

TEST_F(retention, on_its_own_clock)
{
	ASSERT_EQ(0, SET(RETENTION_MS, 3600000));
	ASSERT_EQ(0, nl_instance_limit(&self->in.nl, PLOG_A_INSTANCE_RETENTION_CHECK_MS, 20));
	/* all of it has expired: the log end stays */
	ASSERT_TRUE(EVENTUALLY(look(&self->in.nl).log_start == 5));
	EXPECT_EQ(5, look(&self->in.nl).log_end);
	/* the log start moves first, its segments go after it */
	EXPECT_TRUE(EVENTUALLY(look(&self->in.nl).segments == 1));
	ASSERT_EQ(0, put(self->batch, wall_ms()));
	EXPECT_EQ(6, look(&self->in.nl).log_end);
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

TEST_F(retention, by_size)
{
	uint64_t bytes = look(&self->in.nl).bytes;

	ASSERT_EQ(0, SET(RETENTION_BYTES, bytes / 5 * 2));
	ASSERT_EQ(0, COMMAND(RETENTION_RUN));
	ASSERT_TRUE(EVENTUALLY(look(&self->in.nl).log_start == 3));
	EXPECT_EQ(bytes / 5 * 2, look(&self->in.nl).bytes);
	EXPECT_EQ(2, look(&self->in.nl).segments);
}

TEST_F(retention, the_delay_is_kept)
{
	ASSERT_EQ(0, SET(FILE_DELETE_DELAY_MS, 3600000));
	ASSERT_EQ(0, SET(RETENTION_BYTES, 0));
	ASSERT_EQ(0, COMMAND(RETENTION_RUN));
	ASSERT_TRUE(EVENTUALLY(look(&self->in.nl).log_start == 5));
	ASSERT_EQ(0, COMMAND(RETENTION_RUN));
	usleep(100000);
	EXPECT_EQ(5, retired_get(&self->in.nl).state[PLOG_RETIRED_STATE_DELAYED]);
	EXPECT_LT(0, size_of(&self->in, 0, "log"));
	EXPECT_REFUSED(EBUSY, TAKE(0, 0));
	EXPECT_REFUSED(ENOENT, TAKE(5, 0));
	EXPECT_REFUSED(ENOENT, DONE(0, 0));
}

TEST_F(retention, a_pinned_extent_keeps_its_bytes)
{
	struct plog_locate loc;
	uint8_t data[1000];
	int64_t next = 0;

	ASSERT_EQ(0, partition_locate(self->batch, 0, 1000, 0, &loc));
	ASSERT_LT(0, loc.length);
	ASSERT_EQ(0, SET(RETENTION_BYTES, 0));
	ASSERT_EQ(0, COMMAND(RETENTION_RUN));
	ASSERT_TRUE(EVENTUALLY(retired_get(&self->in.nl).state[PLOG_RETIRED_STATE_EMPTIED] == 4));
	EXPECT_EQ(1, retired_get(&self->in.nl).state[PLOG_RETIRED_STATE_HELD]);
	EXPECT_REFUSED(EBUSY, TAKE(0, 0));
	ASSERT_EQ((ssize_t)loc.length, read(self->batch, data, sizeof(data)));
	EXPECT_EQ(NULL, batch_walk(data, loc.length, &next, NULL));
	EXPECT_EQ(1, next);
	EXPECT_LT(0, size_of(&self->in, 0, "log"));
	/* letting go is what it waits for */
	ASSERT_EQ(0, partition_mode(self->batch, PLOG_MODE_BATCH));
	EXPECT_TRUE(EVENTUALLY(size_of(&self->in, 0, "log") == 0));
}

TEST_F(retention, a_daemon_deletes)
{
	char buf[NL_BUF_SIZE];
	const struct nlattr *tb[PLOG_A_RETIRED_MAX + 1] = { 0 };
	uint64_t incarnation = 0;
	struct nl events = { 0 };
	int control, i;

	control = control_open(0);
	ASSERT_LE(0, control);
	ASSERT_EQ(0, control_register(control, self->in.nl.port, &incarnation));
	ASSERT_EQ(0, nl_open(&events));
	ASSERT_EQ(0, nl_join(&events));
	ASSERT_EQ(0, SET(RETENTION_BYTES, 0));
	ASSERT_EQ(0, COMMAND(RETENTION_RUN));
	for (i = 0; i < 50; i++) {
		struct nlmsghdr *nlh = nl_event(&events, buf, 20000 * slow());

		ASSERT_NE(NULL, nlh);
		if (((struct genlmsghdr *)mnl_nlmsg_get_payload(nlh))->cmd == PLOG_CMD_RETIRED_NTF) {
			ASSERT_TRUE(nl_nest(nlh, PLOG_A_RETIRED, tb, PLOG_A_RETIRED_MAX));
			break;
		}
	}
	ASSERT_NE(NULL, tb[PLOG_A_RETIRED_TOPIC]);
	EXPECT_STREQ("r", mnl_attr_get_str(tb[PLOG_A_RETIRED_TOPIC]));
	EXPECT_EQ(5, retired_get(&self->in.nl).state[PLOG_RETIRED_STATE_READY]);
	/* the module leaves them alone */
	EXPECT_LT(0, size_of(&self->in, 0, "log"));
	EXPECT_REFUSED(EBUSY, TAKE(0, 0));
	EXPECT_REFUSED(ESTALE, TAKE(0, incarnation + 1));
	ASSERT_EQ(0, TAKE(0, incarnation));
	EXPECT_EQ(1, retired_get(&self->in.nl).state[PLOG_RETIRED_STATE_TAKEN]);
	EXPECT_EQ(0, unlink(file_of(&self->in, 0, "index")));
	EXPECT_EQ(0, unlink(file_of(&self->in, 0, "timeindex")));
	EXPECT_EQ(0, unlink(file_of(&self->in, 0, "log")));
	EXPECT_EQ(0, DONE(0, incarnation));
	EXPECT_EQ(4, retired_get(&self->in.nl).all);
	EXPECT_EQ(1, retired_get(&self->in.nl).first);
	/* one that dies with a segment taken leaves it to the next */
	ASSERT_EQ(0, TAKE(1, incarnation));
	close(control);
	EXPECT_REFUSED(ESTALE, TAKE(2, incarnation));
	control = control_open(0);
	ASSERT_EQ(0, control_register(control, self->in.nl.port, &incarnation));
	EXPECT_EQ(0, TAKE(1, incarnation));
	EXPECT_EQ(0, DONE(1, incarnation));
	close(control);
	/* and without a next one the module empties them */
	ASSERT_EQ(0, COMMAND(RETENTION_RUN));
	EXPECT_TRUE(EVENTUALLY(size_of(&self->in, 4, "log") == 0));
	nl_close(&events);
}

TEST_F(retention, records_are_deleted_by_request)
{
	struct nl *nl = &self->in.nl;
	struct plog_locate loc;
	char dir[300];

#define DELETE(offset) \
	set_number(nl, PLOG_CMD_PARTITION_DELETE_RECORDS, "r", PLOG_A_PARTITION_LOG_START, offset)
	EXPECT_REFUSED(ERANGE, DELETE(6));
	EXPECT_REFUSED_SOMEHOW(DELETE(-1));
	EXPECT_REFUSED(EINVAL, COMMAND(PARTITION_DELETE_RECORDS));
	ASSERT_EQ(0, DELETE(2));
	ASSERT_TRUE(EVENTUALLY(look(nl).log_start == 2));
	EXPECT_TRUE(EVENTUALLY(look(nl).segments == 3));
	EXPECT_EQ(-ERANGE, partition_locate(self->batch, 1, 1000, 0, &loc));
	/* what a crash at this moment would leave */
	snprintf(dir, sizeof(dir), "%s", instance_path(&self->in, "r", 0, NULL));
	ASSERT_EQ(0, instance_open_copy(&self->in, dir, "copy"));
	{
		struct nl_partition copy = { 0 };

		ASSERT_EQ(0, nl_partition_get(nl, "copy", 0, &copy));
		EXPECT_EQ(2, copy.log_start);
		EXPECT_EQ(5, copy.log_end);
		EXPECT_EQ(3, copy.segments);
	}
	ASSERT_EQ(0, DELETE(1));
	ASSERT_EQ(0, DELETE(5));
	ASSERT_TRUE(EVENTUALLY(look(nl).log_start == 5));
	EXPECT_EQ(5, look(nl).log_end);
	ASSERT_EQ(0, put(self->batch, 1000));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

/* Segments that were retired do not come back with an open. */
TEST_F(retention, an_open_finds_them_retired)
{
	struct nl_partition part = small("r");

	ASSERT_EQ(0, SET(FILE_DELETE_DELAY_MS, 3600000));
	ASSERT_EQ(0, SET(RETENTION_BYTES, look(&self->in.nl).bytes / 5 * 2));
	ASSERT_EQ(0, COMMAND(RETENTION_RUN));
	ASSERT_TRUE(EVENTUALLY(look(&self->in.nl).log_start == 3));
	EXPECT_LT(0, size_of(&self->in, 0, "log"));
	close(self->batch);
	ASSERT_EQ(0, instance_delete(&self->in, "r", 0));
	ASSERT_EQ(0, instance_partition(&self->in, &part));
	EXPECT_EQ(3, look(&self->in.nl).log_start);
	EXPECT_EQ(2, look(&self->in.nl).segments);
	EXPECT_EQ(5, look(&self->in.nl).log_end);
	/* nobody can be reading them: there is no delay */
	EXPECT_TRUE(EVENTUALLY(size_of(&self->in, 0, "log") == 0));
	self->batch = partition_bind_flags("r", 0, PLOG_MODE_BATCH, O_NONBLOCK);
	ASSERT_LE(0, self->batch);
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

TEST_F(retention, rolls_by_request)
{
	uint64_t incarnation = 0;
	int control;

	ASSERT_EQ(0, COMMAND(PARTITION_ROLL));
	ASSERT_TRUE(EVENTUALLY(look(&self->in.nl).segments == 6));
	EXPECT_EQ(0, size_of(&self->in, 5, "log"));
	/* an empty one is not followed by another */
	control = control_open(0);
	ASSERT_EQ(0, control_register(control, self->in.nl.port, &incarnation));
	EXPECT_EQ(0, partition_control(self->batch, PLOG_CONTROL_ROLL, incarnation, EPOCH, 0));
	EXPECT_EQ(6, look(&self->in.nl).segments);
	EXPECT_EQ(-ESTALE, partition_control(self->batch, PLOG_CONTROL_ROLL, incarnation - 1,
					     EPOCH, 0));
	ASSERT_EQ(0, put(self->batch, 1000));
	EXPECT_EQ(0, partition_control(self->batch, PLOG_CONTROL_ROLL, incarnation, EPOCH, 0));
	EXPECT_EQ(7, look(&self->in.nl).segments);
	close(control);
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

static uint64_t fsyncs(struct nl *nl)
{
	uint64_t counters[PLOG_A_STATS_MAX + 1];

	return nl_stats_get(nl, "r", 0, counters) ? 0 : counters[PLOG_A_STATS_FSYNCS];
}

TEST_F(retention, flushes_by_count_and_by_time)
{
	struct nl *nl = &self->in.nl;
	uint64_t before;

	ASSERT_EQ(0, SET(SEGMENT_JITTER_MS, 0));
	ASSERT_EQ(0, SET(FLUSH_MESSAGES, 1));
	/* that is in force when a command behind it is done */
	ASSERT_EQ(0, COMMAND(PARTITION_ROLL));
	ASSERT_TRUE(EVENTUALLY(look(nl).segments == 6));
	before = fsyncs(nl);
	/* each append syncs, before it returns */
	ASSERT_EQ(0, put(self->batch, 1000));
	EXPECT_LT(before, fsyncs(nl));
	ASSERT_EQ(0, SET(FLUSH_MESSAGES, INT64_MAX));
	ASSERT_EQ(0, SET(FLUSH_MS, 50));
	usleep(200000);
	before = fsyncs(nl);
	ASSERT_EQ(0, put(self->batch, 1000));
	EXPECT_TRUE(EVENTUALLY(fsyncs(nl) > before));
}

TEST_F(retention, preallocates_and_gives_back)
{
	struct nl_partition part = small("r");

	close(self->batch);
	ASSERT_EQ(0, instance_delete(&self->in, "r", 0));
	part.segment_bytes = 1 << 20;
	ASSERT_EQ(0, instance_partition(&self->in, &part));
	ASSERT_EQ(0, SET(PREALLOCATE, 1));
	self->batch = partition_bind_flags("r", 0, PLOG_MODE_BATCH, O_NONBLOCK);
	ASSERT_LE(0, self->batch);
	ASSERT_EQ(0, put(self->batch, 1000));
	/* the configuration follows in the background */
	ASSERT_EQ(0, COMMAND(PARTITION_ROLL));
	/* the file is there a moment before its room */
	EXPECT_TRUE(EVENTUALLY(room_of(&self->in, 6) >= 1 << 20));
	EXPECT_EQ(0, size_of(&self->in, 6, "log"));
	ASSERT_EQ(0, put(self->batch, 1000));
	ASSERT_EQ(0, COMMAND(PARTITION_ROLL));
	ASSERT_TRUE(EVENTUALLY(size_of(&self->in, 7, "log") == 0));
	EXPECT_TRUE(EVENTUALLY(room_of(&self->in, 6) < 1 << 18));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

TEST_F(retention, values_out_of_range_are_refused)
{
	EXPECT_REFUSED_SOMEHOW(SET(RETENTION_MS, -2));
	EXPECT_REFUSED_SOMEHOW(SET(RETENTION_BYTES, -2));
	EXPECT_REFUSED_SOMEHOW(SET(FILE_DELETE_DELAY_MS, -1));
	EXPECT_REFUSED_SOMEHOW(SET(FLUSH_MESSAGES, 0));
	EXPECT_REFUSED_SOMEHOW(SET(FLUSH_MS, -1));
	EXPECT_REFUSED_SOMEHOW(SET(SEGMENT_JITTER_MS, -1));
	EXPECT_REFUSED_SOMEHOW(SET(PREALLOCATE, 2));
	EXPECT_REFUSED_SOMEHOW(nl_instance_limit(&self->in.nl,
						 PLOG_A_INSTANCE_RETENTION_CHECK_MS, 0));
	EXPECT_REFUSED_SOMEHOW(nl_instance_limit(&self->in.nl,
						 PLOG_A_INSTANCE_RETENTION_CHECK_MS, 0x80000000u));
}

SELFTEST_MAIN
