// SPDX-License-Identifier: GPL-2.0
/*
 * Where the module's workers meet failures: retention, rolls, syncs, the files of
 * retired segments, opening, closing, rest, events. All of them run on the kernel's
 * unbound workers, so each of these gets a fail-nth of its own before the work is
 * asked for: the n-th allocation that any of them makes from then on fails. Others
 * use these workers too, and then a failure is theirs; none may break anything.
 *
 * Afterwards, when nothing fails any more, the work is done: by itself, or where the
 * caller was told, or is to look, when it is asked for once more. Nothing is lost.
 */
#include "fixture.h"
#include "inject.h"

#include <dirent.h>
#include <sys/mount.h>

#define WORKERS		256
#define MAX_NTH		5000

/*
 * The logs lie on a tmpfs of this program's own: a disk's filesystem has its writeback on
 * the same workers, and ext4 tells nobody of data that it could not write.
 */
__attribute__((constructor)) static void on_tmpfs(void)
{
	static const char dir[] = "/run/plog-failnth";

	mkdir(dir, 0755);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("plog", dir, "tmpfs", 0, "size=128m") || setenv("PLOG_TEST_DIR", dir, 1)) {
		perror(dir);
		exit(1);
	}
}

/* ---- the workers ---- */

static struct {
	int fd;			/* its fail-nth */
	pid_t pid;
	bool armed;
} workers[WORKERS];

static int worker_count;
static int points;		/* failures that some worker had, in this test */

static bool is_known(pid_t pid)
{
	int i;

	for (i = 0; i < worker_count; i++)
		if (workers[i].pid == pid)
			return true;
	return false;
}

static void take_worker(pid_t pid)
{
	char path[64], name[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read(fd, name, sizeof(name) - 1) < 0)
		name[0] = 0;
	close(fd);
	/* unbound ones, and those that help out where memory is short */
	if (strncmp(name, "kworker/u", 9) && strncmp(name, "plog_", 5))
		return;
	snprintf(path, sizeof(path), "/proc/%d/fail-nth", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	workers[worker_count].fd = fd;
	workers[worker_count].armed = false;
	workers[worker_count++].pid = pid;
}

/* Workers come and go; processes that were seen once and are none are not looked at again. */
static void find_workers(void)
{
	static pid_t seen;
	DIR *dir = opendir("/proc");
	struct dirent *e;
	pid_t pid, last = seen;

	while (dir && (e = readdir(dir))) {
		pid = atoi(e->d_name);
		if (pid <= last || is_known(pid) || worker_count == WORKERS)
			continue;
		take_worker(pid);
		seen = pid > seen ? pid : seen;
	}
	if (dir)
		closedir(dir);
}

static void arm(int i, unsigned int n)
{
	char text[16];

	workers[i].armed = n;
	if (pwrite(workers[i].fd, text, snprintf(text, sizeof(text), "%u", n), 0) < 0) {
		/* it has ended */
		close(workers[i].fd);
		workers[i] = workers[--worker_count];
	}
}

static void arm_all(unsigned int n)
{
	int i;

	for (i = worker_count; i-- > 0;)
		arm(i, n);
}

static bool has_failed(int i)
{
	char text[16] = "";

	return workers[i].armed && pread(workers[i].fd, text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0;
}

static int failed(void)
{
	int i, n = 0;

	for (i = 0; i < worker_count; i++)
		n += has_failed(i);
	return n;
}

/* A worker that counts down this moment may undo it: so it is done until it holds. */
static void disarm_all(void)
{
	char text[16];
	bool again;
	int i;

	do {
		arm_all(0);
		usleep(100);
		again = false;
		for (i = 0; i < worker_count; i++) {
			text[0] = 0;
			if (pread(workers[i].fd, text, sizeof(text) - 1, 0) > 0 && text[0] != '0')
				again = true;
		}
	} while (again);
}

static int64_t soon(int ms)
{
	return now_ms() + ms * slow();
}

/* Not each point, unless there is time; the first ones are the module's own mostly. */
static int step(int n)
{
	return getenv("PLOG_LONG") ? 1 : n < 8 ? 1 : n;
}

/*
 * Do @start with the n-th allocation of any worker failing, n = 1, 2, ... until twice
 * none has; wait for @done, or for a failure and then, with none ahead, for @done, with
 * @again whenever it is not there; then @check.
 */
#define EACH_WORKER_FAILURE(start, done, again, check)				\
	do {									\
		int n_, without_ = 0, last_ = 0, here_ = points;				\
		for (n_ = 1; n_ < MAX_NTH && without_ < 2; n_ += step(n_)) {		\
			int64_t end_;						\
			bool done_;						\
			int hit_;						\
			find_workers();						\
			arm_all(n_);						\
			start;							\
			for (end_ = soon(2000); !(done) && !failed() && now_ms() < end_;)	\
				usleep(500);					\
			hit_ = failed();					\
			disarm_all();						\
			points += hit_;						\
			last_ = hit_ ? n_ : last_;				\
			without_ = hit_ ? 0 : without_ + 1;			\
			for (end_ = soon(60000); !(done_ = (done)) && now_ms() < end_;) {	\
				again;						\
				usleep(2000);					\
			}							\
			EXPECT_TRUE(done_) {					\
				tell(_metadata, &self->in, n_);			\
				without_ = 2;					\
			}							\
			check;							\
		}								\
		EXPECT_LT(here_, points) {					\
			TH_LOG("no worker failed");				\
		}								\
		EXPECT_GT(MAX_NTH, n_);						\
		TH_LOG("%s: workers failed %d times, at the %dth point the last", #start,	\
		       points - here_, last_);							\
	} while (0)

/* ---- a partition ---- */

FIXTURE(worker)
{
	struct instance in;
	int fd, batch;
	int64_t end;		/* what was acknowledged */
	int fenced;		/* times that a sync failed */
};

/* A segment for each record. */
static int topic_new(struct instance *in, const char *topic)
{
	struct nl_partition part = {
		.topic = topic, .dir_fd = -1, .segment_bytes = 1100, .max_message_bytes = 1024,
	};

	return instance_partition(in, &part);
}

static bool set_parameter(const char *name, const char *value)
{
	char path[96];
	bool done;
	int fd;

	snprintf(path, sizeof(path), "/sys/module/plog/parameters/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, value, strlen(value)) > 0;
	close(fd);
	return done;
}

FIXTURE_SETUP(worker)
{
	memset(self, 0, sizeof(*self));
	self->fd = self->batch = -1;
	if (!injection_ready())
		return;
	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	ASSERT_EQ(0, topic_new(&self->in, "r"));
	self->fd = partition_bind("r", 0, 0);
	self->batch = partition_bind("r", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, self->batch);
}

FIXTURE_TEARDOWN(worker)
{
	disarm_all();
	if (nth_fd < 0 || !self->in.nl.socket)
		return;
	close(self->fd);
	close(self->batch);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
	EXPECT_TRUE(set_parameter("active_segments_max", "1024"));
	EXPECT_TRUE(set_parameter("idle_segments_max", "128"));
}

static int set_number(struct nl *nl, uint8_t cmd, const char *topic, int type, int64_t value)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, cmd, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);

	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, topic);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
	if (type)
		mnl_attr_put_u64(nlh, type, value);
	mnl_attr_nest_end(nlh, nest);
	return nl_talk(nl, nlh, NULL, NULL);
}

#define SET(name, value) \
	set_number(&self->in.nl, PLOG_CMD_PARTITION_SET, "r", PLOG_A_PARTITION_##name, value)
#define CHECK_EVERY(ms) \
	nl_instance_limit(&self->in.nl, PLOG_A_INSTANCE_RETENTION_CHECK_MS, ms)
#define COMMAND(name)	set_number(&self->in.nl, PLOG_CMD_##name, "r", 0, 0)

static struct nl_partition look(struct instance *in)
{
	struct nl_partition p = { .log_start = -1, .log_end = -1 };

	nl_partition_get(&in->nl, "r", 0, &p);
	return p;
}

static uint64_t counter(struct instance *in, int attr)
{
	uint64_t counters[PLOG_A_STATS_MAX + 1] = { 0 };

	return nl_stats_get(&in->nl, "r", 0, counters) ? 0 : counters[attr];
}

/* One record; two do not fit into a segment. */
static int put(int fd)
{
	static char value[600];

	return FAILS(write(fd, value, sizeof(value)));
}

/* Take the partition out of service, if it is there, and open it again. */
static int reopen(struct instance *in, int *fd, int *batch)
{
	int64_t give_up = soon(60000);
	int err;

	close(*fd);
	close(*batch);
	nl_partition_del(&in->nl, "r", 0);
	while ((err = topic_new(in, "r")) == -EBUSY && now_ms() < give_up)
		usleep(2000);
	*fd = partition_bind("r", 0, 0);
	*batch = partition_bind("r", 0, PLOG_MODE_BATCH);
	return err;
}

/* It has all that was acknowledged. A sync that failed fences: then it is opened again. */
#define NOTHING_LOST()								\
	do {									\
		struct nl_partition now_ = look(&self->in);			\
		if (now_.state == PLOG_PARTITION_FENCED) {			\
			self->fenced++;						\
			EXPECT_EQ(ENOMEM, now_.error);				\
			ASSERT_EQ(0, reopen(&self->in, &self->fd, &self->batch));	\
			now_ = look(&self->in);					\
		}								\
		EXPECT_EQ(PLOG_PARTITION_ONLINE, now_.state);			\
		EXPECT_EQ(self->end, now_.log_end);				\
	} while (0)

#define PUT(count)								\
	do {									\
		for (int i_ = 0; i_ < (count); i_++) {				\
			ASSERT_EQ(0, put(self->fd));				\
			self->end++;						\
		}								\
	} while (0)

static void tell(struct __test_metadata *const _metadata, struct instance *in, int n)
{
	struct nl_partition now = look(in);

	TH_LOG("failure %d: not done: state %u, error %u, log %lld to %lld, %u segments", n,
	       now.state, now.error, (long long)now.log_start, (long long)now.log_end,
	       now.segments);
}

static bool is_fenced(struct instance *in)
{
	return look(in).state == PLOG_PARTITION_FENCED;
}

/* ---- what they do ---- */

TEST_F_TIMEOUT(worker, retention, 600)
{
	NEED_INJECTION();
	ASSERT_EQ(0, SET(RETENTION_BYTES, 0));
	PUT(3);
	EACH_WORKER_FAILURE(ASSERT_EQ(0, COMMAND(RETENTION_RUN)),
			    is_fenced(&self->in) || look(&self->in).log_start == self->end,
			    ASSERT_EQ(0, COMMAND(RETENTION_RUN)), ({
		NOTHING_LOST();
		PUT(3);
	}));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

/* By the module's own clock, without a request. */
TEST_F_TIMEOUT(worker, retention_clock, 600)
{
	NEED_INJECTION();
	ASSERT_EQ(0, SET(RETENTION_BYTES, 0));
	ASSERT_EQ(0, CHECK_EVERY(1000000));
	PUT(3);
	EACH_WORKER_FAILURE(ASSERT_EQ(0, CHECK_EVERY(20)),
			    is_fenced(&self->in) || look(&self->in).log_start == self->end,
			    (void)0, ({
		ASSERT_EQ(0, CHECK_EVERY(1000000));
		NOTHING_LOST();
		PUT(3);
	}));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

/* The writer hears of it, and is served when it comes again. */
TEST_F_TIMEOUT(worker, roll, 600)
{
	int err = 0;

	NEED_INJECTION();
	PUT(1);
	EACH_WORKER_FAILURE(err = put(self->fd), partition_end(self->fd) == self->end + 1, ({
		EXPECT_NE(0, err);
		if (is_fenced(&self->in)) {
			NOTHING_LOST();
		}
		err = put(self->fd);
	}), ({
		self->end++;
		NOTHING_LOST();
	}));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

TEST_F_TIMEOUT(worker, roll_command, 600)
{
	uint32_t segments = 1;

	NEED_INJECTION();
	PUT(1);
	EACH_WORKER_FAILURE(ASSERT_EQ(0, COMMAND(PARTITION_ROLL)),
			    look(&self->in).segments > segments, ({
		if (is_fenced(&self->in)) {
			NOTHING_LOST();
		}
		ASSERT_EQ(0, COMMAND(PARTITION_ROLL));
	}), ({
		NOTHING_LOST();
		PUT(1);
		segments = look(&self->in).segments;
	}));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

TEST_F_TIMEOUT(worker, delete_records, 600)
{
	int64_t to = 1;

	NEED_INJECTION();
	PUT(2);
#define DELETE()	set_number(&self->in.nl, PLOG_CMD_PARTITION_DELETE_RECORDS, "r",	\
				   PLOG_A_PARTITION_LOG_START, to)
	EACH_WORKER_FAILURE(ASSERT_EQ(0, DELETE()),
			    is_fenced(&self->in) || look(&self->in).log_start == to,
			    ASSERT_EQ(0, DELETE()), ({
		NOTHING_LOST();
		PUT(1);
		to++;
	}));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

/* flush.ms: a worker syncs, and nobody asks. */
TEST_F_TIMEOUT(worker, flush, 600)
{
	struct nl_partition large = { .topic = "r", .dir_fd = -1, .segment_bytes = 1 << 30 };
	uint64_t before = 0;

	NEED_INJECTION();
	ASSERT_EQ(0, nl_partition_set(&self->in.nl, &large));
	ASSERT_EQ(0, SET(FLUSH_MS, 1));
	PUT(1);
	EACH_WORKER_FAILURE(({
		before = counter(&self->in, PLOG_A_STATS_FSYNCS);
		PUT(1);
	}), is_fenced(&self->in) || counter(&self->in, PLOG_A_STATS_FSYNCS) > before, (void)0, ({
		bool was_ = is_fenced(&self->in);

		NOTHING_LOST();
		if (was_) {
			ASSERT_EQ(0, nl_partition_set(&self->in.nl, &large));
			ASSERT_EQ(0, SET(FLUSH_MS, 1));
			PUT(1);
		}
	}));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

/* The directory of a partition, with all that is in it. */
static void remove_partition(struct instance *in, const char *topic)
{
	char path[1024];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s", instance_path(in, topic, 0, NULL));
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

/* What a crash has left does not open, which is told; or it does, with all that is there. */
TEST_F_TIMEOUT(worker, open_after_crash, 600)
{
	struct nl_partition now;
	char from[256];
	int err = 0;

	NEED_INJECTION();
	PUT(2);
	snprintf(from, sizeof(from), "%s", instance_path(&self->in, "r", 0, NULL));
#define OPENED()	(memset(&now, 0, sizeof(now)),						\
			 !nl_partition_get(&self->in.nl, "c", 0, &now) &&			\
			 now.state == PLOG_PARTITION_ONLINE)
	EACH_WORKER_FAILURE(err = instance_open_copy(&self->in, from, "c"), OPENED(), ({
		EXPECT_EQ(-ENOMEM, err);
		EXPECT_EQ(PLOG_PARTITION_FAILED, now.state);
		ASSERT_EQ(0, instance_delete(&self->in, "c", 0));
		err = topic_new(&self->in, "c");
	}), ({
		EXPECT_EQ(self->end, now.log_end);
		ASSERT_EQ(0, instance_delete(&self->in, "c", 0));
		remove_partition(&self->in, "c");
	}));
}

/* Whatever a close could not write down, the next open finds. */
TEST_F_TIMEOUT(worker, stop, 600)
{
	struct nl_instance got;
	char dir[256];

	NEED_INJECTION();
	strcpy(dir, self->in.dir);
	PUT(2);
	EACH_WORKER_FAILURE(({
		close(self->fd);
		close(self->batch);
		self->fd = self->batch = -1;
		ASSERT_EQ(0, nl_instance_stop(&self->in.nl));
	}), !nl_instance_get(&self->in.nl, &got) && got.state == PLOG_INSTANCE_STOPPED, (void)0, ({
		instance_close(&self->in);
		ASSERT_EQ(0, instance_start(&self->in, dir));
		ASSERT_EQ(0, reopen(&self->in, &self->fd, &self->batch));
		NOTHING_LOST();
		PUT(1);
	}));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

/* An event that there is no memory for is not missed unseen: ENOBUFS. */
TEST_F_TIMEOUT(worker, events, 600)
{
	static char buf[NL_BUF_SIZE];
	struct nl ev;
	int heard = 0, value = 100;

	NEED_INJECTION();
	ASSERT_EQ(0, nl_open(&ev));
	ASSERT_EQ(0, nl_join(&ev));
#define HEARD()	(heard || (polled(mnl_socket_get_fd(ev.socket), POLLIN, 0) &&			\
			   (heard = recv(mnl_socket_get_fd(ev.socket), buf, sizeof(buf), 0) > 0 ? 1 : -errno)))
	EACH_WORKER_FAILURE(({
		heard = 0;
		ASSERT_EQ(0, SET(RETENTION_BYTES, ++value * 1000));
	}), HEARD(), (void)0, ({
		EXPECT_TRUE(heard > 0 || heard == -ENOBUFS);
	}));
	nl_close(&ev);
}

struct retired {
	int state[8];
};

static int retired_cb(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *tb[PLOG_A_RETIRED_MAX + 1];
	struct retired *r = data;

	if (!nl_nest(nlh, PLOG_A_RETIRED, tb, PLOG_A_RETIRED_MAX))
		return MNL_CB_OK;
	r->state[mnl_attr_get_u32(tb[PLOG_A_RETIRED_STATE]) & 7]++;
	return MNL_CB_OK;
}

/* The files of each are empty, or could not be cut, and are tried again in a minute. */
static bool retired_are_done(struct nl *nl, int *later)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, PLOG_CMD_RETIRED_GET, NLM_F_DUMP);
	struct retired r = { 0 };

	if (nl_talk(nl, nlh, retired_cb, &r))
		return false;
	*later = r.state[PLOG_RETIRED_STATE_DELAYED];
	return (r.state[PLOG_RETIRED_STATE_EMPTIED] || *later) &&
	       !r.state[PLOG_RETIRED_STATE_READY] && !r.state[PLOG_RETIRED_STATE_HELD];
}

TEST_F_TIMEOUT(worker, retired_files, 600)
{
	int64_t to = 1;
	int later = 0;

	NEED_INJECTION();
	ASSERT_EQ(0, SET(FILE_DELETE_DELAY_MS, 0));
	PUT(2);
	EACH_WORKER_FAILURE(ASSERT_EQ(0, DELETE()),
			    is_fenced(&self->in) ||
			    (look(&self->in).log_start == to &&
			     retired_are_done(&self->in.nl, &later)),
			    ASSERT_EQ(0, DELETE()), ({
		NOTHING_LOST();
		ASSERT_EQ(0, SET(FILE_DELETE_DELAY_MS, 0));
		PUT(1);
		to++;
	}));
	TH_LOG("%d of them wait for another try", later);
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

/* The files of a log that nobody appends to: it is synced, and they are closed. */
TEST_F_TIMEOUT(worker, rest, 600)
{
	struct nl_partition large = { .topic = "r", .dir_fd = -1, .segment_bytes = 1 << 30 };

	NEED_INJECTION();
	ASSERT_TRUE(set_parameter("active_segments_max", "0"));
	ASSERT_TRUE(set_parameter("idle_segments_max", "0"));
	ASSERT_EQ(0, nl_partition_set(&self->in.nl, &large));
	PUT(1);
	EACH_WORKER_FAILURE(PUT(1),
			    is_fenced(&self->in) || !counter(&self->in, PLOG_A_STATS_OPEN_FILES),
			    (void)0, ({
		NOTHING_LOST();
		ASSERT_EQ(0, nl_partition_set(&self->in.nl, &large));
	}));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
}

SELFTEST_MAIN
