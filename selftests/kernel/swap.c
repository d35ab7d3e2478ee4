// SPDX-License-Identifier: GPL-2.0
/*
 * PLOG_IOC_SWAP: a compacted segment for a run of them, under readers, and what is
 * refused.
 */
#include "compaction.h"
#include "producer.h"

#define BATCHES	400

#define SWAP(first, last) \
	swap_call(fd, self->incarnation, base[first], base[last], swap_generation(fd), 0, NULL)
#define DONE() swap_call(fd, self->incarnation, 0, 0, 0, PLOG_SWAP_DONE, NULL)

/* Topic "s", BATCHES batches of one record in segments of 4 KiB. */
static int small_segments(struct instance *in, char dir[4096], int64_t *base, int *count)
{
	struct nl_partition part = { .topic = "s", .segment_bytes = 4096 };
	int fd, i;

	if (instance_partition(in, &part))
		return -1;
	fd = partition_bind("s", 0, PLOG_MODE_BATCH);
	for (i = 0; i < BATCHES; i++) {
		struct batch b;

		if (!batch_fill(&b, 100, 'a' + i % 26) ||
		    partition_append(fd, b.data, b.size, NULL))
			return -1;
		batch_free(&b);
	}
	snprintf(dir, 4096, "%s", instance_path(in, "s", 0, NULL));
	*count = segment_bases(dir, base, 100);
	return fd;
}

/* Walk all of the log by locate; @wanted: every third batch is there, up to @full all are not. */
static const char *read_all(int fd, int64_t full)
{
	static uint8_t bytes[1 << 20];
	struct plog_locate loc;
	int64_t at = 0;

	while (at < BATCHES) {
		size_t pos = 0;

		if (partition_locate(fd, at, sizeof(bytes), PLOG_LOCATE_WHOLE, &loc))
			return "locate";
		if (!loc.length || read(fd, bytes, sizeof(bytes)) != loc.length)
			return "read";
		while (pos < loc.length) {
			int64_t got = (int64_t)batch_get(bytes + pos, AT_BASE_OFFSET, 8);
			size_t size = batch_get(bytes + pos, AT_LENGTH, 4) + 12;

			if (got < full ? got % 3 || got - at > 2 : got != at)
				return "a batch is missing, or too many";
			if (crc32c_bytes(bytes + pos + AT_ATTRIBUTES, size - AT_ATTRIBUTES) !=
			    batch_get(bytes + pos, AT_CRC, 4))
				return "crc";
			at = got + 1;
			pos += size;
		}
		at = loc.next_offset;
	}
	return NULL;
}

TEST_F(producer, swap_under_readers)
{
	uint8_t before[3000], after[3000];
	char dir[4096];
	struct plog_swap now;
	struct plog_locate loc;
	int64_t base[100];
	int fd, pinned, count;
	uint64_t gen;

	fd = small_segments(&self->in, dir, base, &count);
	ASSERT_LE(0, fd);
	ASSERT_LT(8, count);
	gen = swap_generation(fd);
	ASSERT_LT(0, gen);
	pinned = partition_bind("s", 0, PLOG_MODE_BATCH);
	ASSERT_EQ(0, partition_locate(pinned, base[1], sizeof(before), 0, &loc));
	ASSERT_EQ(loc.length, read(pinned, before, sizeof(before)));
	ASSERT_TRUE(compaction_write(dir, base, 0, 5, 3));
	ASSERT_EQ(0, swap_call(fd, self->incarnation, base[0], base[5], gen, 0, &now));
	EXPECT_EQ(gen + 1, now.generation);
	EXPECT_EQ(0, now.pending);
	EXPECT_EQ(NULL, read_all(fd, base[6]));
	/* not renamed yet */
	EXPECT_EQ(-ENOENT, DONE());
	ASSERT_EQ(0, lseek(pinned, 0, SEEK_SET));
	ASSERT_EQ(loc.length, read(pinned, after, sizeof(after)));
	EXPECT_EQ(0, memcmp(before, after, loc.length));
	compaction_rename(dir, base, 0, 5);
	EXPECT_EQ(NULL, read_all(fd, base[6]));
	ASSERT_EQ(0, lseek(pinned, 0, SEEK_SET));
	memset(after, 0, sizeof(after));
	ASSERT_EQ(loc.length, read(pinned, after, sizeof(after)));
	EXPECT_EQ(0, memcmp(before, after, loc.length));
	EXPECT_EQ(0, DONE());
	EXPECT_EQ(0, swap_call(fd, 0, 0, 0, 0, PLOG_SWAP_ASK, &now));
	EXPECT_EQ(-1, now.pending);
	EXPECT_EQ(NULL, read_all(fd, base[6]));
	close(pinned);
	/* what a crash leaves, and a clean stop */
	ASSERT_EQ(0, instance_open_copy(&self->in, dir, "c"));
	close(fd);
	fd = partition_bind("c", 0, PLOG_MODE_BATCH);
	EXPECT_EQ(NULL, read_all(fd, base[6]));
	close(fd);
}

TEST_F(producer, wrong_uses)
{
	struct plog_bind bind = { .topic = "s" };
	struct plog_swap arg = { 0 };
	char dir[4096], saved[4600];
	int64_t base[100];
	int fd, ro, count;
	uint64_t gen;
	FILE *f;

	fd = small_segments(&self->in, dir, base, &count);
	ASSERT_LE(0, fd);
	gen = swap_generation(fd);
	ASSERT_TRUE(compaction_write(dir, base, 0, 3, 3));
	/* who, and when */
	EXPECT_EQ(-ESTALE, swap_call(fd, self->incarnation + 1, base[0], base[3], gen, 0, NULL));
	EXPECT_EQ(-ESTALE, swap_call(fd, self->incarnation, base[0], base[3], gen + 1, 0, NULL));
	EXPECT_EQ(-ESTALE, swap_call(fd, self->incarnation, base[0], base[3], gen - 1, 0, NULL));
	/* what */
	EXPECT_EQ(-EINVAL, swap_call(fd, self->incarnation, -1, base[3], gen, 0, NULL));
	EXPECT_EQ(-EINVAL, swap_call(fd, self->incarnation, base[3], base[0], gen, 0, NULL));
	EXPECT_EQ(-ERANGE, swap_call(fd, self->incarnation, base[0] + 1, base[3], gen, 0, NULL));
	EXPECT_EQ(-ERANGE, swap_call(fd, self->incarnation, base[0], base[3] + 1, gen, 0, NULL));
	EXPECT_EQ(-ERANGE, swap_call(fd, self->incarnation, base[0], base[count - 1], gen, 0, NULL));
	EXPECT_EQ(-ERANGE, swap_call(fd, self->incarnation, base[0], INT64_MAX, gen, 0, NULL));
	EXPECT_EQ(-ERANGE, SWAP(0, 1));		/* the new one reaches further */
	EXPECT_EQ(-ENOENT, SWAP(1, 3));
	EXPECT_EQ(-EINVAL, swap_call(fd, self->incarnation, base[0], base[3], gen, 4, NULL));
	EXPECT_EQ(-EINVAL, swap_call(fd, self->incarnation, base[0], base[3], gen, 3, NULL));
	arg.reserved[1] = 1;
	EXPECT_EQ(EINVAL, FAILS(ioctl(fd, PLOG_IOC_SWAP, &arg)));
	EXPECT_EQ(EFAULT, FAILS(ioctl(fd, PLOG_IOC_SWAP, WILD)));
	EXPECT_EQ(ENOTCONN, FAILS(ioctl(self->control, PLOG_IOC_SWAP, &arg)));
	/* files that are none */
	snprintf(saved, sizeof(saved), "%s/saved", dir);
	ASSERT_EQ(0, rename(segment_file(dir, 0, "log.swap"), saved));
	EXPECT_EQ(-ENOENT, SWAP(0, 3));
	ASSERT_EQ(0, mkdir(segment_file(dir, 0, "log.swap"), 0700));
	EXPECT_EQ(-EINVAL, SWAP(0, 3));
	ASSERT_EQ(0, rmdir(segment_file(dir, 0, "log.swap")));
	ASSERT_EQ(0, symlink("saved", segment_file(dir, 0, "log.swap")));
	EXPECT_EQ(-EINVAL, SWAP(0, 3));
	ASSERT_EQ(0, unlink(segment_file(dir, 0, "log.swap")));
	ASSERT_EQ(0, mkfifo(segment_file(dir, 0, "log.swap"), 0600));
	EXPECT_EQ(-EINVAL, SWAP(0, 3));
	ASSERT_EQ(0, unlink(segment_file(dir, 0, "log.swap")));
	ASSERT_EQ(0, rename(saved, segment_file(dir, 0, "log.swap")));
	ASSERT_EQ(0, rename(segment_file(dir, 0, "timeindex.swap"), saved));
	EXPECT_EQ(-ENOENT, SWAP(0, 3));
	ASSERT_EQ(0, rename(saved, segment_file(dir, 0, "timeindex.swap")));
	/* logs that are none */
	f = fopen(segment_file(dir, 0, "log.swap"), "r+");
	fseek(f, 70, SEEK_SET);
	fputc(0xff, f);
	fclose(f);
	EXPECT_EQ(-EBADMSG, SWAP(0, 3));
	ASSERT_TRUE(compaction_write(dir, base, 0, 3, 3));
	ASSERT_EQ(0, truncate(segment_file(dir, 0, "log.swap"), 200));
	EXPECT_EQ(-EBADMSG, SWAP(0, 3));
	ASSERT_EQ(0, truncate(segment_file(dir, 0, "log.swap"), 1L << 32));
	EXPECT_EQ(-EFBIG, SWAP(0, 3));
	EXPECT_EQ(gen, swap_generation(fd));
	EXPECT_EQ(NULL, read_all(fd, 0));
	/* one at a time; no truncation that reaches it */
	ASSERT_TRUE(compaction_write(dir, base, 0, 3, 3));
	EXPECT_EQ(0, SWAP(0, 3));
	ASSERT_TRUE(compaction_write(dir, base, 4, 5, 3));
	EXPECT_EQ(-EBUSY, SWAP(4, 5));
	EXPECT_EQ(-EBUSY, partition_control(fd, PLOG_CONTROL_TRUNCATE, self->incarnation, EPOCH,
					    base[2]));
	compaction_rename(dir, base, 0, 3);
	EXPECT_EQ(0, DONE());
	EXPECT_EQ(0, SWAP(4, 5));
	compaction_rename(dir, base, 4, 5);
	EXPECT_EQ(0, DONE());
	EXPECT_EQ(NULL, read_all(fd, base[6]));
	close(fd);
	ro = open("/dev/plog-control", O_RDONLY);
	ASSERT_EQ(0, ioctl(ro, PLOG_IOC_BIND, &bind));
	arg.reserved[1] = 0;
	EXPECT_EQ(EBADF, FAILS(ioctl(ro, PLOG_IOC_SWAP, &arg)));
	close(ro);
}

/* A directory that is half replaced is not served. */
TEST_F(producer, interrupted)
{
	char dir[4096];
	int64_t base[100];
	int fd, count;

	fd = small_segments(&self->in, dir, base, &count);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(compaction_write(dir, base, 0, 5, 3));
	ASSERT_EQ(0, SWAP(0, 5));
	EXPECT_NE(0, instance_open_copy(&self->in, dir, "c"));
	compaction_rename(dir, base, 0, 5);
	EXPECT_EQ(0, instance_open_copy(&self->in, dir, "d"));
	/* and the partition closes with a swap that nobody ended */
	close(fd);
	EXPECT_EQ(0, instance_delete(&self->in, "s", 0));
}

struct busy {
	pthread_t thread;
	int64_t stays;		/* offsets below may be left out, but each third */
	bool stop;
	const char *wrong;
	int rounds;
};

static void *busy_reader(void *arg)
{
	struct busy *b = arg;
	int fd = partition_bind("s", 0, PLOG_MODE_BATCH);
	static __thread uint8_t bytes[1 << 16];
	struct plog_locate loc;

	while (!__atomic_load_n(&b->stop, __ATOMIC_RELAXED) && !b->wrong) {
		int64_t at = 0, wanted = 0;

		while (at < BATCHES && !b->wrong) {
			size_t pos = 0;

			if (partition_locate(fd, at, 3000, PLOG_LOCATE_WHOLE, &loc))
				b->wrong = "locate";
			else if (!loc.length || read(fd, bytes, sizeof(bytes)) != loc.length)
				b->wrong = "read";
			while (!b->wrong && pos < loc.length) {
				int64_t got = (int64_t)batch_get(bytes + pos, AT_BASE_OFFSET, 8);
				size_t size = batch_get(bytes + pos, AT_LENGTH, 4) + 12;

				if (got < at || got > wanted)
					b->wrong = "order";
				else if (crc32c_bytes(bytes + pos + AT_ATTRIBUTES,
						      size - AT_ATTRIBUTES) !=
					 batch_get(bytes + pos, AT_CRC, 4))
					b->wrong = "crc";
				if (got == wanted)
					wanted += 3;
				at = got + 1;
				pos += size;
			}
			at = loc.next_offset;
		}
		b->rounds++;
	}
	close(fd);
	return NULL;
}

TEST_F(producer, many_swaps_under_load)
{
	struct busy b[3] = { 0 };
	char dir[4096];
	int64_t base[100];
	int fd, count, round, i;

	fd = small_segments(&self->in, dir, base, &count);
	ASSERT_LE(0, fd);
	for (i = 0; i < 3; i++)
		pthread_create(&b[i].thread, NULL, busy_reader, &b[i]);
	for (round = 0; round < 40; round++) {
		int from = round % (count - 3), to = from + round % 3;

		ASSERT_TRUE(compaction_write(dir, base, from, to, 3));
		ASSERT_EQ(0, SWAP(from, to)) {
			TH_LOG("round %d: %d to %d of %d", round, from, to, count);
		}
		compaction_rename(dir, base, from, to);
		ASSERT_EQ(0, DONE());
		count = segment_bases(dir, base, 100);
		if (count < 6)
			break;
	}
	for (i = 0; i < 3; i++)
		__atomic_store_n(&b[i].stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++) {
		pthread_join(b[i].thread, NULL);
		EXPECT_EQ(NULL, b[i].wrong) {
			TH_LOG("reader %d: %s", i, b[i].wrong);
		}
		EXPECT_LT(0, b[i].rounds);
	}
	close(fd);
}

SELFTEST_MAIN
