// SPDX-License-Identifier: GPL-2.0
/*
 * The tracepoints: each has a line of what was done, with the values that it had. In a
 * buffer of its own, which nobody else's events fill.
 */
#include <dirent.h>
#include <stdarg.h>

#include "compaction.h"
#include "fixture.h"

#define TRACING		"/sys/kernel/tracing"
#define BUFFER		TRACING "/instances/plog-test"
#define EVENTS		BUFFER "/events/plog"
#define PARAMETERS	"/sys/module/plog/parameters"

static int put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err = -errno;
	close(fd);
	return err;
}

/* Does a line of the buffer hold @text, or end with it? */
static bool in_buffer(const char *text, bool ends)
{
	char line[512];
	bool found = false;
	FILE *f = fopen(BUFFER "/trace", "re");

	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *at;

		line[strcspn(line, "\n")] = 0;
		at = strstr(line, text);
		found = at && (!ends || !at[strlen(text)]);
	}
	if (f)
		fclose(f);
	return found;
}

static bool traced_now(const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return in_buffer(text, true);
}

#define EXPECT_TRACED(...)						\
	EXPECT_TRUE(traced_now(__VA_ARGS__)) {				\
		TH_LOG("not traced: " __VA_ARGS__);			\
	}

FIXTURE(trace)
{
	struct instance in;
	int control;
	uint64_t incarnation;
	struct batch b;		/* of one record */
};

FIXTURE_SETUP(trace)
{
	memset(self, 0, sizeof(*self));
	ASSERT_EQ(0, namespace_new());
	ASSERT_TRUE(!mkdir(BUFFER, 0700) || errno == EEXIST) {
		TH_LOG(BUFFER ": %s", strerror(errno));
	}
	ASSERT_EQ(0, put_text(EVENTS "/enable", "1"));
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	self->control = control_open(0);
	ASSERT_LE(0, self->control);
	ASSERT_EQ(0, control_register(self->control, 0, &self->incarnation));
	ASSERT_TRUE(batch_fill(&self->b, 1000, 'x'));
}

FIXTURE_TEARDOWN(trace)
{
	close(self->control);
	batch_free(&self->b);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
	EXPECT_EQ(0, put_text(PARAMETERS "/active_segments_max", "1024"));
	EXPECT_EQ(0, put_text(PARAMETERS "/idle_segments_max", "128"));
	EXPECT_EQ(0, put_text(EVENTS "/enable", "0"));
	EXPECT_EQ(0, rmdir(BUFFER));
}

static int open_topic(FIXTURE_DATA(trace) *self, const char *topic, uint32_t mode)
{
	return instance_topic(&self->in, topic) ? -1 : partition_bind(topic, 0, mode);
}

#define APPEND()	partition_append(fd, self->b.data, self->b.size, NULL)
#define CONTROL(what, offset) \
	partition_control(fd, PLOG_CONTROL_##what, self->incarnation, EPOCH, offset)

static void append_and_read(struct __test_metadata *_metadata, FIXTURE_DATA(trace) *self, int fd)
{
	struct plog_locate loc;
	int pipes[2];
	ssize_t n;

	EXPECT_TRACED("plog_recover: t-0 scanned=0 cut=0");
	ASSERT_EQ(0, APPEND());
	EXPECT_TRACED("plog_append: t-0 base=0 last=0 bytes=%zu error=0", self->b.size);
	EXPECT_TRACED("plog_publish: t-0 log_end=1 high_watermark=1");
	self->b.data[AT_CRC] ^= 1;
	EXPECT_EQ(-EBADMSG, APPEND());
	self->b.data[AT_CRC] ^= 1;
	EXPECT_TRACED("plog_append: t-0 base=-1 last=-1 bytes=0 error=%d", -EBADMSG);
	ASSERT_EQ(0, fsync(fd));
	EXPECT_TRACED("plog_sync: t-0 from=0 to=1 error=0");
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(0, partition_locate(fd, 0, 4096, 0, &loc));
	ASSERT_EQ(100, splice(fd, NULL, pipes[1], NULL, 100, 0));
	EXPECT_TRACED("plog_splice: t-0 base=0 position=0 bytes=100");
	n = splice(fd, NULL, pipes[1], NULL, loc.length, 0);
	ASSERT_LT(0, n);
	EXPECT_TRACED("plog_splice: t-0 base=0 position=100 bytes=%zd", n);
	close(pipes[0]);
	close(pipes[1]);
}

static void move_offsets(struct __test_metadata *_metadata, FIXTURE_DATA(trace) *self, int fd)
{
	struct plog_lead lead = {
		.flags = PLOG_LEAD_LEADER, .leader_epoch = EPOCH + 5,
		.incarnation = self->incarnation,
	};

	ASSERT_EQ(0, CONTROL(ROLL, 0));
	EXPECT_TRACED("plog_roll: t-0 base=1");
	ASSERT_EQ(0, APPEND());
	ASSERT_EQ(0, APPEND());
	ASSERT_EQ(0, CONTROL(LOG_START, 1));
	EXPECT_TRACED("plog_retire: t-0 segments=1 bytes=%zu", self->b.size);
	ASSERT_EQ(0, CONTROL(TRUNCATE, 2));
	EXPECT_TRACED("plog_truncate: t-0 end=2 bytes=%zu error=0", self->b.size);
	ASSERT_EQ(0, ioctl(fd, PLOG_IOC_LEAD, &lead));
	EXPECT_TRACED("plog_epoch: t-0 epoch=%d start=2", EPOCH + 5);
}

/* A reader that waits; nothing tells whether it does already. */
static void wake(struct __test_metadata *_metadata, FIXTURE_DATA(trace) *self, int fd)
{
	int64_t end = now_ms() + 20000 * slow();
	bool woken = false;
	pid_t pid = child();

	if (!pid) {
		int reader = partition_bind("t", 0, 0);
		char buf[2000];

		while (read(reader, buf, sizeof(buf)) >= 0)
			;
		_exit(1);
	}
	while (!woken && now_ms() < end) {
		ASSERT_EQ(0, APPEND());
		woken = traced_now("plog_wake: t-0 end=%lld", (long long)partition_end(fd));
		usleep(10000);
	}
	EXPECT_TRUE(woken);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void swap(struct __test_metadata *_metadata, FIXTURE_DATA(trace) *self)
{
	int fd = open_topic(self, "s", PLOG_MODE_BATCH), i;
	char dir[4096];
	int64_t base[4];

	ASSERT_LE(0, fd);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, APPEND());
		if (i & 1)
			ASSERT_EQ(0, CONTROL(ROLL, 0));
	}
	snprintf(dir, sizeof(dir), "%s", instance_path(&self->in, "s", 0, NULL));
	ASSERT_EQ(3, segment_bases(dir, base, 4));
	ASSERT_TRUE(compaction_write(dir, base, 0, 1, 3));
	ASSERT_EQ(0, swap_call(fd, self->incarnation, base[0], base[1], swap_generation(fd), 0,
			       NULL));
	/* the batches at 0 and 3 are left */
	EXPECT_TRACED("plog_swap: s-0 first=0 segments=2 bytes=%zu", 2 * self->b.size);
	close(fd);
}

/* It rests, and then its log is another file. */
static void rest_and_fence(struct __test_metadata *_metadata, FIXTURE_DATA(trace) *self)
{
	int64_t end = now_ms() + 20000 * slow();
	int fd, other;
	char path[320];

	ASSERT_EQ(0, put_text(PARAMETERS "/active_segments_max", "0"));
	ASSERT_EQ(0, put_text(PARAMETERS "/idle_segments_max", "0"));
	fd = open_topic(self, "q", PLOG_MODE_BATCH);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, APPEND());
	/* a worker's, a second later */
	while (!traced_now("plog_rest: q-0 end=1") && now_ms() < end)
		usleep(20000);
	EXPECT_TRACED("plog_rest: q-0 end=1");
	snprintf(path, sizeof(path), "%s",
		 instance_path(&self->in, "q", 0, "00000000000000000000.log"));
	ASSERT_EQ(0, unlink(path));
	other = open(path, O_CREAT | O_RDWR, 0644);
	ASSERT_LE(0, other);
	EXPECT_EQ(-EUCLEAN, APPEND());
	EXPECT_TRACED("plog_fence: q-0 error=%d", -EUCLEAN);
	close(other);
	close(fd);
}

TEST_F(trace, each_event_has_its_values)
{
	int fd = open_topic(self, "t", PLOG_MODE_BATCH), n = 0;
	struct dirent *e;
	char text[300];
	DIR *d;

	ASSERT_LE(0, fd);
	append_and_read(_metadata, self, fd);
	move_offsets(_metadata, self, fd);
	wake(_metadata, self, fd);
	swap(_metadata, self);
	rest_and_fence(_metadata, self);
	close(fd);
	/* and none is left out here */
	d = opendir(EVENTS);
	ASSERT_NE(NULL, d);
	while ((e = readdir(d))) {
		if (strncmp(e->d_name, "plog_", 5))
			continue;
		snprintf(text, sizeof(text), "%s: ", e->d_name);
		EXPECT_TRUE(in_buffer(text, false)) {
			TH_LOG("no %s", e->d_name);
		}
		n++;
	}
	closedir(d);
	EXPECT_LE(13, n);
}

SELFTEST_MAIN
