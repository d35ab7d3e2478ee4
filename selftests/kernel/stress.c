// SPDX-License-Identifier: GPL-2.0
/*
 * Everything at once: writers, readers and splicers, rolls, retention, log
 * starts, truncations, swaps, partitions that are made and deleted, attempts to
 * remove the module. What is read of topic "s" must be each offset exactly once, in
 * order, with a right CRC and in each writer's order; the log start moves only
 * behind the slowest reader. At the end as many objects are gone as were made.
 *
 * PLOG_STRESS_USERS writers and as many readers, for PLOG_STRESS_SECONDS.
 */
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#include "compaction.h"
#include "fixture.h"

#define USERS		8
#define SECONDS		20
#define MAX_USERS	128
#define MAX_LAG		20000
#define KINDS		9	/* of what disturbs */
#define LATE		3000	/* tries behind the end of the time */
#define OBJECTS		"/sys/kernel/debug/plog/objects"

static struct shared {
	volatile int writers_end, readers_end;
	volatile int64_t at[MAX_USERS];		/* where each reader of "s" is; -1: none */
	volatile uint64_t wrote[MAX_USERS], took[MAX_USERS];
} *s;

static int number(const char *name, int otherwise)
{
	const char *value = getenv(name);

	return value && *value ? atoi(value) : otherwise;
}

/* What those may see whose partition is cut, emptied or taken away. */
static bool expected_error(int err)
{
	return err == ENODEV || err == EAGAIN || err == ESTALE || err == ERANGE ||
	       err == ENOENT || err == EROFS;
}

/* ---- writers ---- */

static void too_far(int users)
{
	for (;;) {
		int64_t low = INT64_MAX, high = 0;
		int i;

		for (i = 0; i < users; i++) {
			if (s->at[i] < 0)
				continue;
			low = s->at[i] < low ? s->at[i] : low;
		}
		for (i = 0; i < users; i++)
			high += (int64_t)s->wrote[i];
		if (low == INT64_MAX || high - low < MAX_LAG || s->writers_end)
			return;
		usleep(1000);
	}
}

/* Values "WRITER NUMBER": by write(2), writev(2) or the ioctl. */
static void writer(int who, int users, const char *topic, bool strict)
{
	uint64_t n = 0;
	char text[3][64];
	int fd = -1, batch = -1, err, size[3], i;
	struct batch b;

	while (!s->writers_end) {
		if (fd < 0) {
			fd = partition_bind(topic, 0, 0);
			batch = partition_bind(topic, 0, PLOG_MODE_BATCH);
			if (fd < 0 || batch < 0) {
				if (strict)
					_exit(1);
				close(fd);
				close(batch);
				fd = -1;
				usleep(2000);
				continue;
			}
		}
		for (i = 0; i < 3; i++)
			size[i] = snprintf(text[i], sizeof(text[i]), "w%03d %010llu", who,
					   (unsigned long long)n + (unsigned int)i);
		if (n % 3 == 0) {
			err = FAILS(write(fd, text[0], (size_t)size[0]));
			i = 1;
		} else if (n % 3 == 1) {
			struct iovec iov[3] = { { text[0], (size_t)size[0] },
						{ text[1], (size_t)size[1] },
						{ text[2], (size_t)size[2] } };

			err = FAILS(writev(fd, iov, 3));
			i = 3;
		} else {
			if (!batch_text(&b, text[0]))
				_exit(2);
			err = -partition_append(batch, b.data, b.size, NULL);
			batch_free(&b);
			i = 1;
		}
		if (!err) {
			n += (uint64_t)i;
			if (strict)
				s->wrote[who] = n;
		} else if (strict || !expected_error(err)) {
			_exit(err);
		} else {
			close(fd);
			close(batch);
			fd = -1;
		}
		if (strict && n % 64 == 0)
			too_far(users);
		if (!strict)
			usleep(500);
	}
	_exit(0);
}

/* ---- readers ---- */

/* The numbers of each writer follow each other, from whatever was seen first. */
static bool in_order(int64_t *seen, const char *value)
{
	unsigned long long n;
	int who;

	if (sscanf(value, "w%d %llu", &who, &n) != 2 || who < 0 || who >= MAX_USERS)
		return false;
	if (seen[who] >= 0 && (int64_t)n != seen[who] + 1)
		return false;
	seen[who] = (int64_t)n;
	return true;
}

static void record_reader(int who)
{
	int fd = partition_bind_flags("s", 0, 0, O_NONBLOCK);
	int64_t seen[MAX_USERS];
	char value[64];

	memset(seen, 0xff, sizeof(seen));
	if (fd < 0)
		_exit(1);
	for (;;) {
		int64_t at = s->at[who];
		bool end = s->readers_end;
		ssize_t n = read(fd, value, sizeof(value) - 1);

		if (n < 0 && errno == EAGAIN) {
			if (end)
				_exit(0);
			polled(fd, POLLIN, 100);
			continue;
		}
		if (n <= 0)
			_exit(errno);
		value[n] = 0;
		if (!in_order(seen, value))
			_exit(100);
		if (lseek(fd, 0, SEEK_CUR) != at + 1)
			_exit(101);
		s->at[who] = at + 1;
		s->took[who]++;
	}
}

/* Take @length bytes of the cursor by splice; 0 or an errno. */
static int take(int fd, int pipefd[2], char *buf, size_t length)
{
	size_t got = 0;

	while (got < length) {
		ssize_t n = splice(fd, NULL, pipefd[1], NULL, length - got, 0), m;

		if (n <= 0)
			return n ? errno : EPIPE;
		for (; n; n -= m) {
			m = read(pipefd[0], buf + got, (size_t)n);
			if (m <= 0)
				return EIO;
			got += (size_t)m;
		}
	}
	return 0;
}

/* Whole batches; their offsets, CRCs and order. @strict: of "s", where nothing may go. */
static void splicer(int who, const char *topic, bool strict)
{
	static char buf[1 << 17];
	struct plog_locate loc;
	int64_t at = 0, next;
	int pipefd[2], fd = -1, err;

	if (pipe(pipefd))
		_exit(1);
	while (strict || !s->readers_end) {
		bool end = s->readers_end;

		if (fd < 0)
			fd = partition_bind(topic, 0, PLOG_MODE_BATCH);
		err = fd < 0 ? -fd : -partition_locate(fd, at, 60000, PLOG_LOCATE_WHOLE, &loc);
		if (!err && !loc.length) {
			if (end)
				break;
			polled(fd, POLLIN, 100);
			continue;
		}
		next = loc.base_offset;
		if (!err && loc.length > sizeof(buf))
			_exit(102);
		if (!err)
			err = take(fd, pipefd, buf, loc.length);
		if (err) {
			if (strict || !expected_error(err))
				_exit(err);
			if (err == ERANGE)
				at = loc.log_start > at ? loc.log_start : loc.log_end;
			else if (fd >= 0 && err != ESTALE)
				close(fd), fd = -1, usleep(2000);
			while (!strict && polled(pipefd[0], POLLIN, 0) &&
			       read(pipefd[0], buf, sizeof(buf)) > 0)
				;
			continue;
		}
		if (strict && next != at)
			_exit(103);
		/* bytes in a pipe are the page cache's: a truncation may change them there */
		if (batch_walk((uint8_t *)buf, loc.length, &next, NULL) ||
		    next != loc.next_offset) {
			if (strict)
				_exit(104);
			continue;
		}
		s->took[who] += (uint64_t)(next - loc.base_offset);
		at = next;
		if (strict)
			s->at[who] = at;
	}
	_exit(0);
}

/* ---- who disturbs ---- */

static int send_partition(struct nl *nl, uint8_t command, const char *topic, int64_t log_start)
{
	static char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, command, NLM_F_ACK);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);

	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, topic);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
	if (log_start >= 0)
		mnl_attr_put_u64(nlh, PLOG_A_PARTITION_LOG_START, (uint64_t)log_start);
	mnl_attr_nest_end(nlh, nest);
	return nl_talk(nl, nlh, NULL, NULL);
}

static int send_retention(struct nl *nl, const char *topic)
{
	static char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, PLOG_CMD_RETENTION_RUN, NLM_F_ACK);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);

	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, topic);
	mnl_attr_nest_end(nlh, nest);
	return nl_talk(nl, nlh, NULL, NULL);
}

/* "d" with a retention that always has something to do: see fill_and_retain(). */
static int new_retained(struct instance *in)
{
	static char buf[NL_BUF_SIZE];
	struct nl_partition part = { .topic = "d", .segment_bytes = 20000 };
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	int ret = instance_partition(in, &part);

	if (ret)
		return ret;
	nlh = nl_begin(&in->nl, buf, PLOG_CMD_PARTITION_SET, NLM_F_ACK);
	nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, "d");
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, 0);
	mnl_attr_put_u64(nlh, PLOG_A_PARTITION_RETENTION_BYTES, 60000);
	mnl_attr_put_u64(nlh, PLOG_A_PARTITION_FILE_DELETE_DELAY_MS, 100);
	mnl_attr_nest_end(nlh, nest);
	return nl_talk(&in->nl, nlh, NULL, NULL);
}

/* Two segments more for "d", so that the oldest ones go. */
static int fill_and_retain(struct instance *in, int fd)
{
	struct batch b;
	int i, ret = 0;

	if (!batch_fill(&b, 4000, 'd'))
		return -ENOMEM;
	for (i = 0; i < 10 && !ret; i++)
		ret = partition_append(fd, b.data, b.size, NULL);
	batch_free(&b);
	return ret ? ret : send_retention(&in->nl, "d");
}

static bool each_happened(const uint64_t *did, int kinds)
{
	while (kinds--)
		if (!did[kinds])
			return false;
	return true;
}

/*
 * A run of sealed segments of "s" for one of the same batches, as a compaction
 * that finds nothing to leave out. -EALREADY: there are none, or they changed.
 */
static int swap_some(struct instance *in, int fd, uint64_t incarnation)
{
	const char *dir = instance_path(in, "s", 0, NULL);
	static int64_t bases[100000];
	uint64_t generation = swap_generation(fd);
	char path[1024];
	struct plog_state state;
	struct stat st;
	int n, first = 0, last, ret;

	snprintf(path, sizeof(path), "%s", dir);
	ret = partition_state(fd, &state);
	if (ret)
		return ret;
	n = segment_bases(path, bases, 100000);
	/* those of the log: a roll that is under way has its file there already... */
	while (n && !stat(segment_file(path, bases[n - 1], "log"), &st) && !st.st_size)
		n--;
	/* ...and retired ones lie there too */
	while (first < n && bases[first] < state.log_start)
		first++;
	if (n - 1 - first < 2)
		return -EALREADY;
	first += rand() % (n - 1 - first);
	last = first + rand() % 3;
	last = last < n - 1 ? last : n - 2;
	if (!compaction_write(path, bases, first, last, 1))
		return -EIO;
	ret = swap_call(fd, incarnation, bases[first], bases[last], generation, 0, NULL);
	if (ret == -ESTALE)
		return -EALREADY;
	if (ret)
		return ret;
	compaction_rename(path, bases, first, last);
	return swap_call(fd, incarnation, 0, 0, 0, PLOG_SWAP_DONE, NULL);
}

/*
 * "NAME CREATED DESTROYED" lines: how many objects are left; -1 without the file.
 * Instances go with their network namespaces, and this one stays.
 */
static int64_t objects_left(char *text, size_t room)
{
	FILE *f = fopen(OBJECTS, "r");
	unsigned long long created, destroyed;
	char name[64];
	int64_t n = 0;

	*text = 0;
	if (!f)
		return -1;
	while (fscanf(f, "%63s %llu %llu", name, &created, &destroyed) == 3) {
		size_t used = strlen(text);

		snprintf(text + used, room - used, " %s %llu/%llu", name, created, destroyed);
		n += strcmp(name, "instances") ? (int64_t)(created - destroyed) : 0;
	}
	fclose(f);
	return n;
}

TEST_F_TIMEOUT(log, everything_at_once, 100000)
{
	int users = number("PLOG_STRESS_USERS", USERS), i, status, n;
	int64_t left;
	int64_t end = now_ms() + 1000LL * number("PLOG_STRESS_SECONDS", SECONDS), t0, low, log_end;
	struct nl_partition rolled = { .topic = "s", .segment_bytes = 200000 };
	struct nl_partition deleted = { .topic = "c", .segment_bytes = 200000 };
	uint64_t did[KINDS] = { 0 }, wrote = 0, took = 0, incarnation;
	uint64_t counters[PLOG_A_STATS_MAX + 1] = { 0 };
	int64_t longest[KINDS] = { 0 };
	pid_t pids[2 * MAX_USERS];
	int control = control_open(0), cut, fd, kept, late = 0;
	struct plog_state state;
	char text[600];

	ASSERT_TRUE(users > 0 && users <= MAX_USERS);
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, s);
	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	ASSERT_EQ(0, instance_partition(&self->in, &rolled));
	ASSERT_EQ(0, instance_topic(&self->in, "x"));
	/* its opens look at what its deletion did not sync: that must not grow with it */
	ASSERT_EQ(0, instance_partition(&self->in, &deleted));
	ASSERT_EQ(0, new_retained(&self->in));
	for (i = 0; i < users; i++)
		s->at[i] = -1;
	for (i = 0; i < users; i++)
		if (i % 4 < 2)
			s->at[i] = 0;
	for (i = 0; i < 2 * users; i++) {
		static const char *const other[] = { "x", "c", "d" };
		int who = i % users;

		pids[i] = child();
		if (pids[i])
			continue;
		close(self->in.lock_fd);
		if (i < users && who % 4 == 0)
			record_reader(who);
		else if (i < users && who % 4 == 1)
			splicer(who, "s", true);
		else if (i < users)
			splicer(who, other[who % 3], false);
		else if (who % 4)
			writer(who, users, "s", true);
		else
			writer(who, users, other[who / 4 % 3], false);
	}
	fd = partition_bind("s", 0, PLOG_MODE_BATCH);
	cut = partition_bind("x", 0, PLOG_MODE_BATCH);
	kept = partition_bind("d", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, cut);
	ASSERT_LE(0, kept);
	/* a slow machine may not have come to each by then */
	while (now_ms() < end || (late++ < LATE && !each_happened(did, KINDS))) {
		int what = rand() % KINDS, ret = 0;

		usleep(5000);
		t0 = now_ms();
		switch (what) {
		case 0:
			ret = send_partition(&self->in.nl, PLOG_CMD_PARTITION_ROLL, "s", -1);
			break;
		case 1:
			ret = partition_control(fd, PLOG_CONTROL_ROLL, incarnation, EPOCH, 0);
			break;
		case 2:
			for (low = INT64_MAX, i = 0; i < users; i++)
				if (s->at[i] >= 0 && s->at[i] < low)
					low = s->at[i];
			ret = send_partition(&self->in.nl, PLOG_CMD_PARTITION_DELETE_RECORDS, "s",
					     low);
			break;
		case 3:
			low = partition_end(cut);
			partition_state(cut, &state);
			low = state.log_start + (low - state.log_start) * (rand() % 100) / 100;
			ret = partition_control(cut, PLOG_CONTROL_TRUNCATE, incarnation, EPOCH, low);
			break;
		case 4:
			ret = fill_and_retain(&self->in, kept);
			break;
		case 5:
			ret = instance_delete(&self->in, "c", 0);
			if (!ret)
				ret = instance_partition(&self->in, &deleted);
			break;
		case 6:
			/* refused: there are descriptors */
			ret = syscall(SYS_delete_module, "plog", O_NONBLOCK) ? 0 : -EEXIST;
			break;
		case 7:
			ret = swap_some(&self->in, fd, incarnation);
			break;
		default:
			ret = nl_stats_get(&self->in.nl, "s", 0,
					   (uint64_t[PLOG_A_STATS_MAX + 1]){ 0 });
		}
		if (ret == -EALREADY)
			continue;
		ASSERT_EQ(0, ret) {
			TH_LOG("operation %d after %lld ms: %s %s", what,
			       (long long)(now_ms() - t0), strerror(-ret), self->in.nl.error_text);
		}
		did[what]++;
		t0 = now_ms() - t0;
		longest[what] = longest[what] > t0 ? longest[what] : t0;
		/* nobody has ended: that would be with an error */
		for (i = 0; i < 2 * users; i++) {
			if (pids[i] && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
				pids[i] = 0;
				ASSERT_TRUE(false) {
					TH_LOG("%s %d ended with status %d (%s)",
					       i < users ? "reader" : "writer", i % users,
					       WEXITSTATUS(status), strerror(WEXITSTATUS(status)));
				}
			}
		}
	}
	/* a worker does it, whenever that comes */
	for (late = 0; late < LATE; late++) {
		ASSERT_EQ(0, nl_stats_get(&self->in.nl, "d", 0, counters));
		if (counters[PLOG_A_STATS_RETIRED_SEGMENTS])
			break;
		ASSERT_EQ(0, fill_and_retain(&self->in, kept));
		usleep(10000);
	}
	s->writers_end = 1;
	for (i = users; i < 2 * users; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_EQ(0, status);
	}
	s->readers_end = 1;
	for (i = 0; i < users; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_EQ(0, status) {
			TH_LOG("reader %d ended with status %d", i, WEXITSTATUS(status));
		}
	}
	log_end = partition_end(fd);
	for (i = 0; i < users; i++) {
		wrote += s->wrote[i];
		took += s->took[i];
		if (i % 4 < 2) {
			EXPECT_EQ(log_end, s->at[i]) {
				TH_LOG("reader %d has not come to the end", i);
			}
			EXPECT_EQ((uint64_t)log_end, s->took[i]);
		}
	}
	EXPECT_EQ((uint64_t)log_end, wrote);
	TH_LOG("%d + %d: %llu records written to \"s\", %llu taken by all readers; %llu + %llu rolls, %llu log starts, %llu truncations, %llu retentions, %llu deletions, %llu removals refused, %llu swaps",
	       users, users, (unsigned long long)wrote, (unsigned long long)took,
	       (unsigned long long)did[0], (unsigned long long)did[1], (unsigned long long)did[2],
	       (unsigned long long)did[3], (unsigned long long)did[4], (unsigned long long)did[5],
	       (unsigned long long)did[6], (unsigned long long)did[7]);
	TH_LOG("the longest: roll %lld and %lld ms, log start %lld ms, truncation %lld ms, retention %lld ms, deletion and creation %lld ms, swap %lld ms, statistics %lld ms",
	       (long long)longest[0], (long long)longest[1], (long long)longest[2],
	       (long long)longest[3], (long long)longest[4], (long long)longest[5],
	       (long long)longest[7], (long long)longest[8]);
	for (i = 0; i < KINDS; i++) {
		EXPECT_LT(0, did[i]) {
			TH_LOG("operation %d has not happened", i);
		}
	}
	EXPECT_LT(0, counters[PLOG_A_STATS_RETIRED_SEGMENTS]);
	EXPECT_LT(0, counters[PLOG_A_STATS_RETIRED_BYTES]);
	ASSERT_EQ(0, partition_state(kept, &state));
	EXPECT_LT(0, state.log_start);
	EXPECT_EQ(NULL, partition_check(cut, &n));
	close(fd);
	close(cut);
	close(kept);
	close(control);
	close(self->fd);
	close(self->batch);
	self->fd = self->batch = -1;
	ASSERT_EQ(0, instance_stop(&self->in));
	/* what was freed by RCU and by queues takes its time */
	for (t0 = now_ms(); (left = objects_left(text, sizeof(text))) > 0 && now_ms() < t0 + 30000;)
		usleep(50000);
	EXPECT_EQ(0, left);
	TH_LOG("objects created/destroyed:%s", text);
}

SELFTEST_MAIN
