// SPDX-License-Identifier: GPL-2.0
/*
 * A disk that fails: the partition is fenced, says so, keeps serving what it has,
 * syncs nothing twice, and once the disk has healed it is opened again with
 * nothing that was acknowledged missing. And errors that are no reason to fence.
 *
 *	errors FS=[PART-OF-A-NAME,...]...
 */
#include "../kernel/fixture.h"

#include <sys/mount.h>
#include <sys/statfs.h>

#include <linux/fiemap.h>
#include <linux/fs.h>

#include "dm.h"

#define SCRATCH	"/tmp/errors"
#define MNT	SCRATCH "/mnt"
#define FIRST	"00000000000000000000.log"
#define VALUE	1000
/* batches whose bytes are known by their offset */
#define SEGMENT	20000

FIXTURE(disk)
{
	struct instance in;
	struct nl events;
	int loop;
	char loop_path[32];
	char dev[32];
	uint64_t sectors;
	int fd;			/* of partition t-0, batch mode */
	int control;
	uint64_t incarnation;
	int64_t acked;
	int64_t gone;		/* batches that a filesystem threw away */
	bool mounted;
	char fs[16];
};

static int shell(const char *format, ...)
{
	char cmd[600];
	va_list ap;

	va_start(ap, format);
	vsnprintf(cmd, sizeof(cmd), format, ap);
	va_end(ap);
	return system(cmd);
}

/* What check() has to say goes into the output. */
#define EXPECT_RIGHT(call)							\
	do {									\
		const char *wrong_ = call;					\
										\
		EXPECT_EQ(NULL, wrong_) TH_LOG("%s", wrong_);			\
	} while (0)
#define EXPECT_GOOD(fd) EXPECT_RIGHT(check(fd))

/* ---- the disk ---- */

static int disk_good(FIXTURE_DATA(disk) *self)
{
	struct dm_line line = { .target = "linear", .length = self->sectors };

	snprintf(line.params, sizeof(line.params), "%s 0", self->loop_path);
	return dm_reload("errors", &line, 1);
}

/* A piece of it: good, or refusing writes, or refusing all. */
static void piece(FIXTURE_DATA(disk) *self, struct dm_line *line, uint64_t from, uint64_t to,
		  const char *how)
{
	const char *features = strcmp(how, "flakey") ? "" : " 0 3600 1 error_writes";

	memset(line, 0, sizeof(*line));
	line->target = how;
	line->start = from;
	line->length = to - from;
	if (strcmp(how, "error"))
		snprintf(line->params, sizeof(line->params), "%s %llu%s", self->loop_path,
			 (unsigned long long)from, features);
}

static int disk_fails_writes(FIXTURE_DATA(disk) *self)
{
	struct dm_line line;

	piece(self, &line, 0, self->sectors, "flakey");
	return dm_reload("errors", &line, 1);
}

static int by_place(const void *a, const void *b)
{
	const struct fiemap_extent *x = a, *y = b;

	return x->fe_physical < y->fe_physical ? -1 : x->fe_physical > y->fe_physical;
}

/* Only where @file lies, with what was allocated in advance. */
static int disk_fails_file(FIXTURE_DATA(disk) *self, const char *file, const char *how)
{
	static struct {
		struct fiemap map;
		struct fiemap_extent extent[16];
	} m;
	struct dm_line lines[40];
	uint64_t at = 0;
	uint32_t i;
	int n = 0, fd = open(file, O_RDONLY | O_CLOEXEC), ret;

	memset(&m, 0, sizeof(m));
	m.map.fm_length = FIEMAP_MAX_OFFSET;
	m.map.fm_flags = FIEMAP_FLAG_SYNC;
	m.map.fm_extent_count = 16;
	ret = fd < 0 || ioctl(fd, FS_IOC_FIEMAP, &m.map) ? -errno : 0;
	close(fd);
	if (ret)
		return ret;
	if (!m.map.fm_mapped_extents)
		return -ENODATA;
	qsort(m.extent, m.map.fm_mapped_extents, sizeof(m.extent[0]), by_place);
	for (i = 0; i < m.map.fm_mapped_extents; i++) {
		uint64_t from = m.extent[i].fe_physical >> 9;
		uint64_t to = from + (m.extent[i].fe_length >> 9);

		if (from < at || to > self->sectors)
			return -ERANGE;
		if (from > at)
			piece(self, &lines[n++], at, from, "linear");
		piece(self, &lines[n++], from, to, how);
		at = to;
	}
	if (at < self->sectors)
		piece(self, &lines[n++], at, self->sectors, "linear");
	return dm_reload("errors", lines, n);
}

static int mount_it(FIXTURE_DATA(disk) *self)
{
	int ret = mount(self->dev, MNT, self->fs, 0, NULL) ? -errno : 0;

	self->mounted = !ret;
	return ret;
}

static int unmount_it(FIXTURE_DATA(disk) *self)
{
	int i;

	for (i = 0; i < 500 && umount(MNT); i++) {
		if (errno != EBUSY)
			return -errno;
		usleep(10000);
	}
	self->mounted = i == 500;
	return self->mounted ? -EBUSY : 0;
}

/* ---- the partition ---- */

static int open_log(FIXTURE_DATA(disk) *self)
{
	struct nl_partition part = {
		.topic = "t", .segment_bytes = SEGMENT, .index_interval_bytes = 4096,
	};
	int ret = instance_partition(&self->in, &part);

	if (ret)
		return ret;
	self->fd = partition_bind("t", 0, PLOG_MODE_BATCH);
	return self->fd < 0 ? self->fd : 0;
}

static int start(FIXTURE_DATA(disk) *self)
{
	int ret = instance_start(&self->in, MNT "/data");

	self->control = -1;
	self->fd = -1;
	if (ret)
		return ret;
	self->control = control_open(0);
	ret = control_register(self->control, 0, &self->incarnation);
	return ret ? ret : open_log(self);
}

static int stop(FIXTURE_DATA(disk) *self)
{
	if (self->fd >= 0)
		close(self->fd);
	if (self->control >= 0)
		close(self->control);
	self->fd = self->control = -1;
	return instance_stop(&self->in);
}

/* Without the page cache and the clean mark: what the disk has, and nothing else. */
static int power_cycle(FIXTURE_DATA(disk) *self)
{
	int ret = stop(self);

	unlink(instance_path(&self->in, "t", 0, "plog.state"));
	if (!ret)
		ret = unmount_it(self);
	if (!ret)
		ret = mount_it(self);
	return ret ? ret : start(self);
}

static int append(FIXTURE_DATA(disk) *self, uint32_t flags)
{
	struct plog_append arg = { .flags = flags, .leader_epoch = -1 };
	uint8_t value[VALUE];
	struct batch b;
	int ret;

	memset(value, 'a' + (int)(partition_end(self->fd) % 26), sizeof(value));
	if (!batch_init(&b, VALUE + 200, 1000) || !batch_add_value(&b, value, VALUE))
		return -ENOMEM;
	batch_finish(&b);
	ret = partition_append(self->fd, b.data, b.size, &arg);
	batch_free(&b);
	if (!ret && flags & PLOG_APPEND_SYNC)
		self->acked = arg.last_offset + 1;
	return ret;
}

static int appends(FIXTURE_DATA(disk) *self, int n, uint32_t flags)
{
	int ret = 0;

	while (!ret && n--)
		ret = append(self, flags);
	return ret;
}

/* All of the log by the device: CRCs, offsets, and the values that were appended. */
static const char *check(int fd)
{
	const char *wrong = partition_check(fd, NULL);
	struct plog_state state;
	struct plog_locate loc;
	uint8_t buf[2 * VALUE];
	int64_t at;

	if (wrong || partition_state(fd, &state))
		return wrong ? wrong : "no state";
	for (at = state.log_start; at < state.log_end; at++) {
		if (partition_locate(fd, at, 1, PLOG_LOCATE_WHOLE, &loc) ||
		    read(fd, buf, sizeof(buf)) != (ssize_t)loc.length)
			return "a batch cannot be read";
		if (buf[loc.length - 2] != 'a' + at % 26)
			return "another value than was appended";
	}
	return NULL;
}

/*
 * What a fenced log must serve: all of it that was acknowledged as synced, and of
 * what follows nothing but what was appended. There a filesystem may have
 * thrown away what it could not write, which is an error and never other bytes:
 * btrfs does; ext4 and xfs keep the pages.
 */
static const char *check_fenced(FIXTURE_DATA(disk) *self)
{
	static uint8_t buf[1 << 20];
	struct plog_state state;
	struct plog_locate loc;
	const char *wrong;
	uint32_t max;
	int64_t at, next;
	int n;

	if (strcmp(self->fs, "btrfs"))
		return check(self->fd);
	if (partition_state(self->fd, &state))
		return "no state";
	/* in large steps, then batch by batch */
	for (max = sizeof(buf); max; max = max > 1 ? 1 : 0) {
		for (at = state.log_start; at < state.log_end; at = next) {
			if (partition_locate(self->fd, at, max, PLOG_LOCATE_WHOLE, &loc)) {
				if (errno != EIO)
					return strerror(errno);
				if (at < self->acked)
					return "a batch that was synced is gone";
				next = at + 1;
				self->gone += max == 1;
				continue;
			}
			if (read(self->fd, buf, sizeof(buf)) != (ssize_t)loc.length)
				return "a batch cannot be read";
			next = at;
			wrong = batch_walk(buf, loc.length, &next, &n);
			if (wrong)
				return wrong;
			if (next != loc.next_offset || (max == 1 && next != at + 1))
				return "next_offset is not behind the last batch";
			if (max == 1 && buf[loc.length - 2] != 'a' + at % 26)
				return "another value than was appended";
		}
	}
	return NULL;
}

static uint64_t fsyncs(FIXTURE_DATA(disk) *self)
{
	uint64_t c[PLOG_A_STATS_MAX + 1] = { 0 };

	nl_stats_get(&self->in.nl, "t", 0, c);
	return c[PLOG_A_STATS_FSYNCS];
}

static uint32_t state_of(FIXTURE_DATA(disk) *self, uint32_t *error)
{
	struct nl_partition got = { 0 };

	nl_partition_get(&self->in.nl, "t", 0, &got);
	*error = got.error;
	return got.state;
}

/* The event that says so; those before it are of no interest. */
static bool heard_of_fence(FIXTURE_DATA(disk) *self, uint32_t error)
{
	static char buf[NL_BUF_SIZE];
	struct nl_partition got;
	struct nlmsghdr *nlh;

	while ((nlh = nl_event(&self->events, buf, 5000)))
		if (nl_partition_parse(nlh, &got) && !strcmp(got.name, "t") &&
		    got.state == PLOG_PARTITION_FENCED)
			return got.error == error;
	return false;
}

static int log_start(FIXTURE_DATA(disk) *self, int64_t offset)
{
	return partition_control(self->fd, PLOG_CONTROL_LOG_START, self->incarnation, EPOCH, offset);
}

static int preallocate(FIXTURE_DATA(disk) *self, const char *name, off_t bytes)
{
	int fd = open(instance_path(&self->in, "t", 0, name), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	int ret = fd < 0 || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, bytes) || fsync(fd) ? -errno : 0;

	close(fd);
	return ret;
}

FIXTURE_SETUP(disk)
{
	const char *fs = getenv("CRASH_FS");
	struct dm_line line;
	uint64_t size;

	snprintf(self->fs, sizeof(self->fs), "%s", fs && *fs ? fs : "ext4");
	size = (!strcmp(self->fs, "xfs") ? 300ULL : !strcmp(self->fs, "btrfs") ? 160 : 48) << 20;
	self->fd = self->control = -1;
	ASSERT_EQ(0, namespace_new());
	mkdir(SCRATCH, 0755);
	mkdir(MNT, 0755);
	self->loop = loop_open(SCRATCH "/disk", size, self->loop_path);
	ASSERT_LE(0, self->loop);
	self->sectors = size >> 9;
	piece(self, &line, 0, self->sectors, "linear");
	ASSERT_EQ(0, dm_create("errors", &line, 1, self->dev));
	ASSERT_EQ(0, shell("mkfs.%s -q %s %s >/dev/null", self->fs,
			   strcmp(self->fs, "ext4") ? "-f" : "-F -N 64", self->dev));
	ASSERT_EQ(0, mount_it(self));
	ASSERT_EQ(0, mkdir(MNT "/data", 0755));
	ASSERT_EQ(0, start(self));
	ASSERT_EQ(0, nl_open(&self->events));
	ASSERT_EQ(0, nl_join(&self->events));
	sync();
}

FIXTURE_TEARDOWN(disk)
{
	if (self->gone)
		TH_LOG("%s: %lld unsynced batches were thrown away", self->fs, (long long)self->gone);
	disk_good(self);
	nl_close(&self->events);
	if (self->in.nl.socket) {
		EXPECT_EQ(0, stop(self));
	}
	if (self->mounted) {
		EXPECT_EQ(0, unmount_it(self));
	}
	EXPECT_EQ(0, dm_remove("errors"));
	loop_close(self->loop);
	unlink(SCRATCH "/disk");
}

/* Fenced, said so everywhere, and no worse than that. */
#define EXPECT_FENCED(errno_)							\
	do {									\
		uint32_t error_;						\
		uint64_t before_;						\
		int64_t end_ = partition_end(self->fd);				\
		EXPECT_TRUE(heard_of_fence(self, errno_));			\
		EXPECT_EQ(PLOG_PARTITION_FENCED, state_of(self, &error_));	\
		EXPECT_EQ(errno_, error_);					\
		EXPECT_EQ(0, shell("plogctl partition show t 0 | grep -q 'fenced: %s'",	\
				   strerror(errno_)));				\
		EXPECT_EQ(-EROFS, append(self, 0));				\
		EXPECT_EQ(-EROFS, append(self, PLOG_APPEND_SYNC));		\
		EXPECT_EQ(end_, partition_end(self->fd));			\
		EXPECT_RIGHT(check_fenced(self));				\
		before_ = fsyncs(self);						\
		EXPECT_EQ(errno_, FAILS(fsync(self->fd)));			\
		EXPECT_EQ(errno_, FAILS(fsync(self->fd)));			\
		EXPECT_EQ(before_, fsyncs(self));				\
	} while (0)

/* The log's own blocks fail; the file system lives on, and forgets the error. */
TEST_F(disk, failed_sync_fences)
{
	const char *file = instance_path(&self->in, "t", 0, FIRST);
	int64_t acked;

	if (!strcmp(self->fs, "btrfs"))
		SKIP(return, "where a file lies is not where its bytes go");
	ASSERT_EQ(0, appends(self, 5, PLOG_APPEND_SYNC));
	ASSERT_EQ(0, preallocate(self, FIRST, 65536));
	ASSERT_EQ(0, disk_fails_file(self, file, "flakey"));
	ASSERT_EQ(0, appends(self, 6, 0));
	EXPECT_EQ(-EIO, append(self, PLOG_APPEND_SYNC));
	acked = self->acked;
	EXPECT_FENCED(EIO);

	/* a disk that works again takes nothing back */
	ASSERT_EQ(0, disk_good(self));
	EXPECT_EQ(EIO, FAILS(fsync(self->fd)));
	EXPECT_EQ(-EROFS, append(self, 0));

	/*
	 * Opened again on the same mount: the pages that were not written are in
	 * the page cache still, and clean.
	 */
	close(self->fd);
	ASSERT_EQ(0, instance_delete(&self->in, "t", 0));
	ASSERT_EQ(0, open_log(self));
	EXPECT_LE(acked, partition_end(self->fd));
	EXPECT_GOOD(self->fd);
	ASSERT_EQ(0, appends(self, 5, PLOG_APPEND_SYNC));
	acked = self->acked;
	EXPECT_GOOD(self->fd);

	ASSERT_EQ(0, power_cycle(self));
	EXPECT_EQ(acked, partition_end(self->fd));
	EXPECT_GOOD(self->fd);
	EXPECT_EQ(0, append(self, PLOG_APPEND_SYNC));
}

/* Everything fails, the journal and with it the file system too. */
TEST_F(disk, dead_disk_fences)
{
	int64_t acked;

	ASSERT_EQ(0, appends(self, 50, PLOG_APPEND_SYNC));
	ASSERT_EQ(0, disk_fails_writes(self));
	ASSERT_EQ(0, appends(self, 3, 0));
	EXPECT_NE(0, FAILS(fsync(self->fd)));
	acked = self->acked;
	EXPECT_FENCED(EIO);
	ASSERT_EQ(0, disk_good(self));
	ASSERT_EQ(0, power_cycle(self));
	EXPECT_LE(acked, partition_end(self->fd));
	EXPECT_GOOD(self->fd);
	EXPECT_EQ(0, appends(self, 40, PLOG_APPEND_SYNC));
	acked = self->acked;
	ASSERT_EQ(0, power_cycle(self));
	EXPECT_EQ(acked, partition_end(self->fd));
	EXPECT_GOOD(self->fd);
}

/* The new segment's name cannot be made durable. */
TEST_F(disk, failed_roll_fences)
{
	int64_t acked, end;
	int ret = 0, i;

	ASSERT_EQ(0, appends(self, 5, PLOG_APPEND_SYNC));
	ASSERT_EQ(0, disk_fails_writes(self));
	/* the file system may refuse the new file, or fail when it has to keep it */
	for (i = 0; i < 40 && !ret; i++)
		ret = append(self, i % 8 == 7 ? PLOG_APPEND_SYNC : 0);
	EXPECT_NE(0, ret);
	acked = self->acked;
	end = partition_end(self->fd);
	EXPECT_LE(acked, end);
	EXPECT_RIGHT(check_fenced(self));
	ASSERT_EQ(0, disk_good(self));
	ASSERT_EQ(0, power_cycle(self));
	EXPECT_LE(acked, partition_end(self->fd));
	EXPECT_GE(end, partition_end(self->fd));
	EXPECT_GOOD(self->fd);
	EXPECT_EQ(0, appends(self, 40, PLOG_APPEND_SYNC));
	EXPECT_GOOD(self->fd);
}

/* The state file cannot be written: what needs it fails, and appends do not. */
TEST_F(disk, failed_state_file)
{
	const char *file;
	uint32_t error;

	if (!strcmp(self->fs, "btrfs"))
		SKIP(return, "where a file lies is not where its bytes go");
	ASSERT_EQ(0, appends(self, 10, PLOG_APPEND_SYNC));
	ASSERT_EQ(0, log_start(self, 1));
	ASSERT_EQ(0, log_start(self, 2));
	file = instance_path(&self->in, "t", 0, "plog.state");
	ASSERT_EQ(0, disk_fails_file(self, file, "flakey"));
	EXPECT_EQ(-EIO, log_start(self, 5));
	EXPECT_EQ(-EIO, partition_control(self->fd, PLOG_CONTROL_TRUNCATE, self->incarnation, EPOCH,
					  8));
	EXPECT_EQ(10, partition_end(self->fd));
	EXPECT_EQ(PLOG_PARTITION_ONLINE, state_of(self, &error));
	EXPECT_EQ(0, append(self, PLOG_APPEND_SYNC));
	EXPECT_GOOD(self->fd);

	/* nobody was told of offset 5: it is not the log start now, nor for the next who opens */
	ASSERT_EQ(0, disk_good(self));
	{
		struct plog_state state;

		ASSERT_EQ(0, partition_state(self->fd, &state));
		EXPECT_EQ(2, state.log_start);
		EXPECT_EQ(0, log_start(self, 4));
		ASSERT_EQ(0, stop(self));
		ASSERT_EQ(0, unmount_it(self));
		ASSERT_EQ(0, mount_it(self));
		ASSERT_EQ(0, start(self));
		ASSERT_EQ(0, partition_state(self->fd, &state));
		EXPECT_EQ(4, state.log_start);
		EXPECT_EQ(11, state.log_end);
	}
	EXPECT_GOOD(self->fd);
}

/* A block of one segment cannot be read: its readers are told, others are not touched. */
TEST_F(disk, unreadable_segment)
{
	struct plog_locate loc;
	uint8_t buf[2 * VALUE];
	struct plog_state state;
	uint32_t error;
	char cmd[100] = "echo 3 > /proc/sys/vm/drop_caches";

	if (!strcmp(self->fs, "btrfs"))
		SKIP(return, "where a file lies is not where its bytes go");
	ASSERT_EQ(0, appends(self, 60, PLOG_APPEND_SYNC));
	ASSERT_EQ(0, partition_state(self->fd, &state));
	ASSERT_LE(3, state.segments);
	ASSERT_EQ(0, disk_fails_file(self, instance_path(&self->in, "t", 0, FIRST), "error"));
	ASSERT_EQ(0, shell("%s", cmd));
	/* to find a batch its segment is read, or only its index: then the read tells */
	if (partition_locate(self->fd, 5, 1, PLOG_LOCATE_WHOLE, &loc)) {
		EXPECT_EQ(EIO, errno);
	} else {
		EXPECT_EQ(EIO, FAILS(read(self->fd, buf, sizeof(buf))));
	}
	EXPECT_EQ(0, partition_locate(self->fd, 40, 1, PLOG_LOCATE_WHOLE, &loc));
	EXPECT_EQ(loc.length, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(PLOG_PARTITION_ONLINE, state_of(self, &error));
	EXPECT_EQ(0, append(self, PLOG_APPEND_SYNC));
	ASSERT_EQ(0, disk_good(self));
	EXPECT_GOOD(self->fd);
}

/* No room: the append fails, the log does not. */
TEST_F(disk, no_room)
{
	const int64_t begin = partition_end(self->fd);
	uint32_t error;
	int64_t end;
	int ret = 0, i;

	ASSERT_EQ(0, appends(self, 5, PLOG_APPEND_SYNC));
	shell("dd if=/dev/zero of=" MNT "/filler bs=4M 2>/dev/null; sync; "
	      "dd if=/dev/zero of=" MNT "/filler2 bs=4k 2>/dev/null; sync");
	for (i = 0; i < 2000 && !ret; i++)
		ret = append(self, i % 50 == 49 ? PLOG_APPEND_SYNC : 0);
	EXPECT_EQ(-ENOSPC, ret);
	end = partition_end(self->fd);
	EXPECT_LT(begin, end);
	EXPECT_GOOD(self->fd);
	ret = append(self, 0);
	EXPECT_TRUE(!ret || ret == -ENOSPC);
	EXPECT_EQ(PLOG_PARTITION_ONLINE, state_of(self, &error));
	shell("rm -f " MNT "/filler " MNT "/filler2; sync");
	EXPECT_EQ(0, appends(self, 40, PLOG_APPEND_SYNC));
	EXPECT_GOOD(self->fd);
	end = partition_end(self->fd);
	ASSERT_EQ(0, power_cycle(self));
	EXPECT_EQ(end, partition_end(self->fd));
	EXPECT_GOOD(self->fd);
}

/* No room for names: the roll fails, and works once there is. */
TEST_F(disk, no_inodes)
{
	uint32_t error;
	int64_t end;
	int ret = 0, i;

	if (strcmp(self->fs, "ext4"))
		SKIP(return, "it makes inodes as it needs them");
	ASSERT_EQ(0, append(self, PLOG_APPEND_SYNC));
	shell("i=0; while : 2>/dev/null > " MNT "/file$i; do i=$((i+1)); done 2>/dev/null; sync");
	for (i = 0; i < 60 && !ret; i++)
		ret = append(self, 0);
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_EQ(PLOG_PARTITION_ONLINE, state_of(self, &error));
	EXPECT_EQ(0, FAILS(fsync(self->fd)));
	EXPECT_GOOD(self->fd);
	end = partition_end(self->fd);
	EXPECT_EQ(-ENOSPC, append(self, 0));
	shell("rm -f " MNT "/file*; sync");
	EXPECT_EQ(0, appends(self, 40, PLOG_APPEND_SYNC));
	EXPECT_EQ(end + 40, partition_end(self->fd));
	EXPECT_GOOD(self->fd);
	ASSERT_EQ(0, power_cycle(self));
	EXPECT_EQ(end + 40, partition_end(self->fd));
	EXPECT_GOOD(self->fd);
}

static void __attribute__((constructor)) __constructor_order_last(void)
{
	if (!__constructor_order)
		__constructor_order = _CONSTRUCTOR_ORDER_BACKWARD;
}

/* The tests on one file system: "FS=PART-OF-A-NAME,PART...", or "FS=" for all. */
static int run_on(char *name, char *which)
{
	char *argv[32] = { name };
	int argc = 1;

	*which++ = 0;
	setenv("CRASH_FS", name, 1);
	for (which = strtok(which, ","); which && argc < 31; which = strtok(NULL, ","))
		argv[argc++] = which;
	printf("# %s\n", name);
	only(argc, argv);
	stretch();
	return test_harness_run(argc, argv);
}

int main(int argc, char **argv)
{
	int i, status, failed = 0;

	system("modprobe -a loop dm_mod dm_flakey ext4 xfs btrfs");
	mkdir(SCRATCH, 0755);
	mount("errors", SCRATCH, "tmpfs", 0, "size=80%");
	for (i = 1; i < argc; i++) {
		char *which = strchr(argv[i], '=');
		pid_t pid;

		if (!which) {
			fprintf(stderr, "Usage: errors FS=[PART-OF-A-NAME,...]...\n");
			return 2;
		}
		fflush(stdout);
		pid = fork();
		if (!pid)
			exit(run_on(argv[i], which));
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			failed = 1;
	}
	return failed;
}
