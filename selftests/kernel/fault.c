// SPDX-License-Identifier: GPL-2.0
/*
 * An append that fails in the middle: the log ends where it ended, readers see
 * nothing of it, and what a crash right then leaves holds nothing of it, even
 * where the payload itself is made of well-formed batches.
 */
#include <sys/mount.h>
#include <sys/resource.h>

#include "fixture.h"

FIXTURE(fault)
{
	struct instance in;
	int fd;
	int batch;
	int control;
	struct plog_append args;	/* what an append of the variant is made with */
	int good;		/* records appended before */
};

FIXTURE_VARIANT(fault)
{
	size_t length;
	bool daemon;
};

/*
 * Below and above the bounded buffer of 64 KiB; what the daemon vouches for and
 * is large is not copied but pinned.
 */
FIXTURE_VARIANT_ADD(fault, small) { .length = 20000 };
FIXTURE_VARIANT_ADD(fault, large) { .length = 400000 };
FIXTURE_VARIANT_ADD(fault, pinned) { .length = 400000, .daemon = true };

#define APPEND(from, bytes)							\
	({									\
		struct plog_append args_ = self->args;				\
		partition_append(self->batch, from, bytes, &args_);		\
	})

FIXTURE_SETUP(fault)
{
	int i;

	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	self->fd = partition_bind_flags("t", 0, 0, O_NONBLOCK);
	self->batch = partition_bind("t", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, self->batch);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(4, write(self->fd, "good", 4));
	self->good = 3;
	self->control = control_open(0);
	self->args.leader_epoch = -1;
	if (variant->daemon) {
		uint64_t incarnation;

		ASSERT_EQ(0, control_register(self->control, 0, &incarnation));
		self->args.flags = PLOG_APPEND_DAEMON;
		self->args.incarnation = incarnation;
		self->args.leader_epoch = EPOCH;
	}
}

FIXTURE_TEARDOWN(fault)
{
	close(self->fd);
	close(self->batch);
	close(self->control);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
}

/*
 * A batch whose value is full of batches that would continue the log at
 * @offset: whoever resumes a scan inside it is fooled.
 */
static bool trojan(struct batch *b, size_t length, int64_t offset)
{
	uint8_t *value = calloc(1, length);
	struct batch inner;
	size_t at;
	bool ok;

	if (!value || !batch_text(&inner, "I must never be seen"))
		return false;
	batch_put(inner.data, AT_BASE_OFFSET, 8, (uint64_t)offset);
	batch_put(inner.data, AT_EPOCH, 4, 0xffffffff);
	for (at = 0; at + inner.size <= length; at += inner.size)
		memcpy(value + at, inner.data, inner.size);
	ok = batch_init(b, length + 128, 1000) && batch_add_value(b, value, (int)length);
	if (ok)
		batch_finish(b);
	batch_free(&inner);
	free(value);
	return ok;
}

/* Of the failed append there is nothing, here or in what a crash would leave. */
#define EXPECT_NOTHING_OF_IT(copy)						\
	do {									\
		char name_[32];							\
		struct plog_state state_;					\
		int fd_, batches_;						\
		ASSERT_EQ(0, partition_state(self->batch, &state_));		\
		EXPECT_EQ(self->good, state_.log_end);				\
		EXPECT_EQ(self->good, state_.high_watermark);			\
		EXPECT_EQ(NULL, partition_check(self->batch, &batches_));	\
		EXPECT_EQ(self->good, batches_);				\
		snprintf(name_, sizeof(name_), "copy%s", copy);			\
		ASSERT_EQ(0, instance_open_copy(&self->in,			\
			  instance_path(&self->in, "t", 0, NULL), name_));	\
		fd_ = partition_bind(name_, 0, PLOG_MODE_BATCH);		\
		ASSERT_LE(0, fd_);						\
		EXPECT_EQ(self->good, partition_end(fd_));			\
		EXPECT_EQ(NULL, partition_check(fd_, &batches_));		\
		EXPECT_EQ(self->good, batches_);				\
		close(fd_);							\
		/* and the next append is fine */				\
		EXPECT_EQ(4, write(self->fd, "good", 4));			\
		self->good++;							\
		EXPECT_EQ(self->good, partition_end(self->batch));		\
	} while (0)

TEST_F(fault, unmapped_page_in_the_middle)
{
	struct batch b;
	uint8_t *gap;
	size_t cut;

	ASSERT_TRUE(trojan(&b, variant->length, self->good));
	cut = b.size / 2;
	gap = before_gap(cut);
	memcpy(gap, b.data, cut);
	EXPECT_EQ(-EFAULT, APPEND(gap, b.size));
	EXPECT_NOTHING_OF_IT("1");
	/* all but the last page */
	cut = b.size - 4096;
	gap = before_gap(cut);
	memcpy(gap, b.data, cut);
	EXPECT_EQ(-EFAULT, APPEND(gap, b.size));
	EXPECT_NOTHING_OF_IT("2");
	/* the header alone */
	gap = before_gap(BATCH_HEADER);
	memcpy(gap, b.data, BATCH_HEADER);
	EXPECT_EQ(-EFAULT, APPEND(gap, b.size));
	EXPECT_NOTHING_OF_IT("3");
	batch_free(&b);
}

TEST_F(fault, protected_page_in_the_middle)
{
	size_t span = (variant->length + 0x3fff) & ~0xfffUL;
	struct batch b;
	uint8_t *map;

	map = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	ASSERT_TRUE(trojan(&b, variant->length, self->good));
	memcpy(map, b.data, b.size);
	ASSERT_EQ(0, mprotect(map + 0x3000, 4096, PROT_NONE));
	EXPECT_EQ(-EFAULT, APPEND(map, b.size));
	EXPECT_NOTHING_OF_IT("1");
	ASSERT_EQ(0, mprotect(map + 0x3000, 4096, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, APPEND(map, b.size));
	EXPECT_EQ(self->good + 1, partition_end(self->batch));
	batch_free(&b);
}

TEST_F(fault, file_that_ends_under_the_mapping)
{
	size_t span = (variant->length + 0x1fff) & ~0xfffUL;
	struct batch b;
	uint8_t *map;
	int mem = memfd_create("source", 0);

	/* touching it would be SIGBUS, so the kernel's copy is EFAULT */
	ASSERT_EQ(0, ftruncate(mem, (off_t)span));
	map = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	ASSERT_NE(MAP_FAILED, map);
	ASSERT_TRUE(trojan(&b, variant->length, self->good));
	memcpy(map, b.data, b.size);
	ASSERT_EQ(0, ftruncate(mem, 8192));
	EXPECT_EQ(-EFAULT, APPEND(map, b.size));
	EXPECT_NOTHING_OF_IT("1");
	batch_free(&b);
	close(mem);
}

TEST_F(fault, wrong_crc_over_a_payload_of_batches)
{
	struct batch b;

	ASSERT_TRUE(trojan(&b, variant->length, self->good));
	b.data[b.size - 1] ^= 1;
	EXPECT_EQ(-EBADMSG, APPEND(b.data, b.size));
	EXPECT_NOTHING_OF_IT("1");
	batch_free(&b);
}

TEST_F(fault, record_writes_with_a_missing_page)
{
	struct iovec iov[2];
	uint8_t *gap = before_gap(8000);

	memset(gap, 'x', 8000);
	EXPECT_EQ(EFAULT, FAILS(write(self->fd, gap, variant->length)));
	EXPECT_NOTHING_OF_IT("1");
	iov[0].iov_base = "first";
	iov[0].iov_len = 5;
	iov[1].iov_base = gap;
	iov[1].iov_len = variant->length;
	EXPECT_EQ(EFAULT, FAILS(writev(self->fd, iov, 2)));
	EXPECT_NOTHING_OF_IT("2");
}

static volatile sig_atomic_t xfsz;

static void on_xfsz(int sig)
{
	(void)sig;
	xfsz = 1;
}

TEST_F(fault, rlimit_fsize_is_efbig_without_a_signal)
{
	struct rlimit old, low;
	struct batch b;
	int round;

	signal(SIGXFSZ, on_xfsz);
	ASSERT_TRUE(trojan(&b, variant->length, self->good));
	ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &old));
	for (round = 0; round < 3; round++) {
		/* before, inside and just before the end of what would be written */
		struct plog_state state;

		ASSERT_EQ(0, partition_state(self->batch, &state));
		low = old;
		low.rlim_cur = state.bytes + (round == 0 ? 0 : round == 1 ? b.size / 2 :
					      b.size - 1);
		ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &low));
		EXPECT_EQ(-EFBIG, APPEND(b.data, b.size));
		ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &old));
		EXPECT_EQ(0, xfsz);
		EXPECT_NOTHING_OF_IT(round == 0 ? "1" : round == 1 ? "2" : "3");
	}
	batch_free(&b);
}

TEST_F(fault, rlimit_fsize_of_one_writer_does_not_hurt_others)
{
	struct batch b;
	int status;
	pid_t pid;

	ASSERT_TRUE(trojan(&b, variant->length, self->good));
	pid = child();
	if (!pid) {
		struct rlimit low = { 100, 100 };

		setrlimit(RLIMIT_FSIZE, &low);
		_exit(-APPEND(b.data, b.size));
	}
	waitpid(pid, &status, 0);
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(EFBIG, WEXITSTATUS(status));
	EXPECT_NOTHING_OF_IT("1");
	EXPECT_EQ(0, APPEND(b.data, b.size));
	batch_free(&b);
}

/* A partition "full" whose directory lies on a filesystem mounted at @mnt. */
static int partition_on(struct instance *in, const char *mnt)
{
	struct nl_partition part = { .topic = "full" };
	char path[600];
	int ret;

	snprintf(path, sizeof(path), "%s/full-0", mnt);
	if (mkdir(path, 0755))
		return -errno;
	part.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (part.dir_fd < 0)
		return -errno;
	ret = nl_partition_new(&in->nl, &part);
	close(part.dir_fd);
	return ret ? ret : instance_wait(in, "full", 0);
}

static int enospc_on(struct __test_metadata *_metadata, struct instance *in, size_t length,
		     const char *mnt, const char *more)
{
	char from[600];
	int fd, batches, copy;
	struct batch b;
	int64_t end = 0;
	int ret, full = 0;

	ret = partition_on(in, mnt);
	EXPECT_EQ(0, ret);
	if (ret)
		return ret;
	fd = partition_bind("full", 0, PLOG_MODE_BATCH);
	EXPECT_LE(0, fd);
	while (full < 3) {
		if (!trojan(&b, length, end))
			return -ENOMEM;
		ret = partition_append(fd, b.data, b.size, NULL);
		batch_free(&b);
		if (ret == 0 && end < 1000) {
			end++;
			continue;
		}
		EXPECT_EQ(-ENOSPC, ret) {
			TH_LOG("after %lld batches", (long long)end);
		}
		EXPECT_EQ(end, partition_end(fd));
		full++;
	}
	EXPECT_LT(0, end);
	EXPECT_EQ(NULL, partition_check(fd, &batches));
	EXPECT_EQ(end, batches);
	snprintf(from, sizeof(from), "%s/full-0", mnt);
	EXPECT_EQ(0, instance_open_copy(in, from, "crash"));
	copy = partition_bind("crash", 0, PLOG_MODE_BATCH);
	EXPECT_EQ(end, partition_end(copy));
	EXPECT_EQ(NULL, partition_check(copy, &batches));
	EXPECT_EQ(end, batches);
	close(copy);
	/* with space again it goes on */
	if (more) {
		EXPECT_EQ(0, system(more));
	}
	ret = batch_fill(&b, length, 'g') ? partition_append(fd, b.data, b.size, NULL) : -ENOMEM;
	EXPECT_EQ(0, ret);
	EXPECT_EQ(end + 1, partition_end(fd));
	EXPECT_EQ(NULL, partition_check(fd, NULL));
	batch_free(&b);
	close(fd);
	EXPECT_EQ(0, instance_delete(in, "full", 0));
	return 0;
}

TEST_F(fault, full_tmpfs)
{
	char mnt[300], more[700];

	snprintf(mnt, sizeof(mnt), "%s/small", self->in.dir);
	ASSERT_EQ(0, mkdir(mnt, 0755));
	ASSERT_EQ(0, mount("tmpfs", mnt, "tmpfs", 0, "size=2m"));
	snprintf(more, sizeof(more), "mount -o remount,size=16m %s", mnt);
	enospc_on(_metadata, &self->in, variant->length, mnt, more);
	/* the files go with the last reference of a worker */
	usleep(200000);
	umount2(mnt, MNT_DETACH);
}

TEST_F(fault, full_ext4)
{
	char mnt[300], cmd[1500];

	snprintf(mnt, sizeof(mnt), "%s/small", self->in.dir);
	ASSERT_EQ(0, mkdir(mnt, 0755));
	snprintf(cmd, sizeof(cmd),
		 "modprobe -q loop; truncate -s 8M %s.img && mkfs.ext4 -q -F %s.img && "
		 "mount -o loop %s.img %s", mnt, mnt, mnt, mnt);
	if (system(cmd))
		SKIP(return, "no loop mounts here");
	snprintf(cmd, sizeof(cmd), "dd if=/dev/zero of=%s/ballast bs=1M count=3 2>/dev/null", mnt);
	ASSERT_EQ(0, system(cmd));
	snprintf(cmd, sizeof(cmd), "rm %s/ballast; sync -f %s", mnt, mnt);
	enospc_on(_metadata, &self->in, variant->length, mnt, cmd);
	usleep(200000);
	snprintf(cmd, sizeof(cmd), "umount %s || umount -l %s", mnt, mnt);
	EXPECT_EQ(0, system(cmd));
}

TEST_F_TIMEOUT(fault, killed_writers_leave_whole_batches, 180)
{
	struct nl_partition part = { .topic = "t", .dir_fd = -1, .max_message_bytes = 16 << 20 };
	size_t length = variant->length * 10;
	int round, batches, killed = 0, rounds = 24 / slow();
	struct batch b;
	int64_t end;

	ASSERT_EQ(0, nl_partition_set(&self->in.nl, &part));
	ASSERT_TRUE(trojan(&b, length, self->good));
	for (round = 0; round < rounds; round++) {
		int status;
		pid_t pid = child();

		if (!pid) {
			for (;;)
				APPEND(b.data, b.size);
		}
		usleep((useconds_t)(500 + round * 1777 % 30000));
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		killed += WIFSIGNALED(status);
		if (round % 8 == 7) {
			/* keep the log small */
			EXPECT_EQ(NULL, partition_check(self->batch, &batches));
			EXPECT_EQ(partition_end(self->batch), batches);
		}
	}
	EXPECT_EQ(rounds, killed);
	end = partition_end(self->batch);
	EXPECT_EQ(NULL, partition_check(self->batch, &batches));
	EXPECT_EQ(end, batches);
	EXPECT_EQ(4, write(self->fd, "good", 4));
	ASSERT_EQ(0, instance_open_copy(&self->in, instance_path(&self->in, "t", 0, NULL), "c"));
	round = partition_bind("c", 0, PLOG_MODE_BATCH);
	EXPECT_EQ(end + 1, partition_end(round));
	EXPECT_EQ(NULL, partition_check(round, &batches));
	EXPECT_EQ(end + 1, batches);
	close(round);
	batch_free(&b);
}

TEST_F_TIMEOUT(fault, copies_taken_under_load_recover, 120)
{
	int round, i, batches;
	struct batch b;
	pid_t pids[2];

	ASSERT_TRUE(trojan(&b, variant->length, self->good));
	for (i = 0; i < 2; i++) {
		pids[i] = child();
		if (!pids[i]) {
			/* good and refused appends in turns */
			for (;;) {
				APPEND(b.data, b.size);
				b.data[b.size - 1] ^= 1;
				APPEND(b.data, b.size);
				b.data[b.size - 1] ^= 1;
				/* slower than the copies are read, on any kernel */
				usleep(b.size > 65536 ? 400000 : 20000);
			}
		}
	}
	for (round = 0; round < 4; round++) {
		char name[16];
		int64_t before, after;
		int fd;

		usleep(20000);
		snprintf(name, sizeof(name), "c%d", round);
		before = partition_end(self->batch);
		ASSERT_EQ(0, instance_open_copy(&self->in,
						instance_path(&self->in, "t", 0, NULL), name));
		after = partition_end(self->batch);
		fd = partition_bind(name, 0, PLOG_MODE_BATCH);
		ASSERT_LE(0, fd);
		EXPECT_EQ(NULL, partition_check(fd, &batches));
		EXPECT_LE(before, batches);
		EXPECT_GE(after + 2, batches);
		close(fd);
	}
	for (i = 0; i < 2; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	batch_free(&b);
}

SELFTEST_MAIN
