// SPDX-License-Identifier: MIT
/*
 * What is refused or fails leaves the log as it was: for readers, for the next
 * append, and for recovery.
 */
#include "engine.h"

#include <pthread.h>
#include <sys/resource.h>

/* Nothing was appended since @before; the next append works; a crash changes nothing. */
static void unharmed(struct plog_view before)
{
	struct plog_view v = view();

	assert_int_equal(v.log_end, before.log_end);
	assert_int_equal(v.high_watermark, before.high_watermark);
	assert_int_equal(v.bytes, before.bytes);
	assert_int_equal(v.max_timestamp, before.max_timestamp);
	assert_int_equal(walk(PLOG_END_LEO), before.log_end);
	assert_int_equal(put(1, 20, 3), before.log_end);
	assert_int_equal(walk(PLOG_END_LEO), before.log_end + 1);
}

static void unharmed_on_disk(int64_t log_end)
{
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, log_end);
	assert_int_equal(walk(PLOG_END_LEO), log_end);
}

struct bad {
	const char *name;
	int offset;		/* byte of the header to change */
	int bytes;
	int64_t value;
	bool fix;		/* the CRC */
	bool daemon;
	int error;
};

static const struct bad bad[] = {
	{ "crc", 17, 4, 1, false, true, -EBADMSG },
	{ "payload", 100, 1, 0, false, true, -EBADMSG },
	{ "magic 1", 16, 1, 1, false, true, -EBADMSG },
	{ "magic 3", 16, 1, 3, false, true, -EBADMSG },
	{ "length 0", 8, 4, 0, false, true, -EINVAL },
	{ "length short", 8, 4, 48, false, true, -EINVAL },
	{ "length other", 8, 4, 100, false, true, -EINVAL },
	{ "length huge", 8, 4, 0x7fffffff, false, true, -EINVAL },
	{ "length negative", 8, 4, -1, false, true, -EINVAL },
	{ "count 0", 57, 4, 0, true, true, -EINVAL },
	{ "count negative", 57, 4, -3, true, true, -EINVAL },
	{ "count large", 57, 4, 4, true, true, -EINVAL },
	{ "count of records", 57, 4, 2, true, false, -EINVAL },
	{ "last offset negative", 23, 4, -1, true, true, -EINVAL },
	{ "last offset huge", 23, 4, 0x7fffffff, true, false, -EINVAL },
	{ "codec", 21, 2, 1, true, false, -EOPNOTSUPP },
	{ "transaction", 21, 2, PLOG_ATTR_TRANSACTIONAL, true, false, -EOPNOTSUPP },
	{ "control", 21, 2, PLOG_ATTR_CONTROL, true, false, -EOPNOTSUPP },
	{ "unknown attribute", 21, 2, 0x80, true, false, -EOPNOTSUPP },
	{ "producer id", 43, 8, 5, true, false, -EOPNOTSUPP },
	{ "producer epoch", 51, 2, 5, true, false, -EOPNOTSUPP },
	{ "max timestamp", 35, 8, 77, true, false, -EINVAL },
	{ "base timestamp", 27, 8, -77, true, false, -EINVAL },
	{ "record length", 61, 1, 0x7e, true, false, -EBADMSG },
	{ "record length 0", 61, 1, 0, true, false, -EBADMSG },
};

static void test_bad_batches(void **state)
{
	size_t size = make_records(env.buf, (struct rec[]){ { 9, "k", "value one of it" },
							    { 10, "k", "value two of it" },
							    { 11, NULL, "value three of" } },
				   3, 0);
	uint8_t good[1024];

	(void)state;
	memcpy(good, env.buf, size);
	assert_int_equal(env_open(), 0);
	put(1, 20, 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct bad *b = &bad[i];

		for (int how = RAW; how <= ITER; how++) {
			struct plog_view before = view();
			int64_t got;

			memcpy(env.buf, good, size);
			for (int k = 0; k < b->bytes; k++)
				env.buf[b->offset + k] = b->value >> 8 * (b->bytes - 1 - k);
			if (b->fix)
				fix_crc(env.buf, size);
			got = append_as(size, how, b->daemon ? PLOG_APPEND_DAEMON : 0);
			if (got != b->error)
				print_message("# %s, way %d: %lld\n", b->name, how, (long long)got);
			assert_int_equal(got, b->error);
			unharmed(before);
		}
	}
	unharmed_on_disk(view().log_end);
}

static void test_bad_sizes(void **state)
{
	struct plog_append_args args = { .raw = env.buf };
	struct plog_view before;
	size_t size;

	(void)state;
	env.config.max_message_bytes = 2000;
	assert_int_equal(env_open(), 0);
	put(1, 20, 0);
	before = view();
	size = make_batch(env.buf, 1, 500, 1, 1);
	for (args.size = 0; args.size < 70; args.size++)
		assert_int_equal(plog_partition_append(env.p, &args), -EINVAL);
	assert_int_equal(append_as(size - 1, ITER, 0), -EINVAL);
	assert_int_equal(append_as(size + 1, ITER, 0), -EINVAL);
	size = make_batch(env.buf, 1, 2000, 1, 1);
	for (int how = RAW; how < HOWS; how++)
		assert_int_equal(append_as(size, how, 0), -EMSGSIZE);
	assert_int_equal(append_as(size, RAW, PLOG_APPEND_REPLICA), -EINVAL);
	assert_int_equal(append_as(size, ITER, PLOG_APPEND_REPLICA), -EINVAL);
	assert_int_equal(append_as(size, ITER, 1u << 30), -EINVAL);
	unharmed(before);
}

static void test_permissions(void **state)
{
	struct plog_view before;
	size_t size;

	(void)state;
	env.config.flags = PLOG_STATE_COMPACT;
	assert_int_equal(env_open(), 0);
	size = make_records(env.buf, (struct rec[]){ { 1, "k", "v" }, { 1, NULL, "v" } }, 2, 0);
	before = view();
	assert_int_equal(append_as(size, RAW, 0), -EPERM);
	assert_int_equal(append_as(size, ITER, 0), -EPERM);
	unharmed(before);
	size = make_records(env.buf, (struct rec[]){ { 1, "k", "v" }, { 1, "l", NULL } }, 2, 0);
	assert_true(append_as(size, RAW, 0) > 0);
	assert_true(append_as(size, ITER, 0) > 0);
	env.config.flags = PLOG_STATE_INTERNAL;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	before = view();
	assert_int_equal(append_as(size, ITER, 0), -EPERM);
	assert_true(append_as(size, ITER, PLOG_APPEND_DAEMON) > 0);
}

/* ---- file faults ---- */

static struct {
	int op;			/* which kind fails */
	const char *suffix;	/* of the file's name */
	int skip;		/* how many of them pass before */
	int times;		/* how many fail then */
	int error;
	size_t done;		/* bytes that a write still writes */
	int cut_error;		/* and what a truncation of the log gives */
} plan;

static int faults(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	size_t n = strlen(name), k = strlen(plan.suffix);

	(void)pos;
	(void)len;
	if (op == SHIM_TRUNCATE && plan.cut_error && n == 24)
		return plan.cut_error;
	if ((int)op != plan.op || n < k || strcmp(name + n - k, plan.suffix))
		return 0;
	if (plan.skip-- > 0)
		return 0;
	if (plan.times-- <= 0)
		return 0;
	if (done)
		*done = plan.done;
	return plan.error;
}

static void inject(int op, const char *suffix, int skip, int times, int error, size_t done)
{
	plan = (typeof(plan)){ op, suffix, skip, times, error, done, 0 };
	shim_file_fault = faults;
}

/* A batch whose one value is itself a batch that would fit there. */
static size_t make_trap(uint8_t *buf, int64_t base)
{
	uint8_t inner[512], *value;
	size_t n = make_batch(inner, 4, 50, 9, 1234);
	struct plog_builder b;

	put_unaligned_be64(base, inner);
	put_unaligned_be32(0, inner + 12);
	plog_builder_init(&b, buf, BATCH_MAX, 1);
	value = plog_builder_value(&b, 3 * n);
	for (int i = 0; i < 3; i++)
		memcpy(value + i * n, inner, n);
	return plog_builder_finish(&b);
}

static void test_short_writes(void **state)
{
	static const int errors[] = { -ENOSPC, -EIO, -EINTR, -EDQUOT };
	size_t size, total = 0;

	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 20, 0);
	for (int how = RAW; how < HOWS; how++) {
		int writes = how == RAW ? 1 : 2;

		for (int w = 0; w < writes; w++) {
			size_t max = w ? PLOG_BATCH_HEADER : 800;

			for (size_t done = 0; done < max; done += 7) {
				struct plog_view before = view();

				size = make_trap(env.buf, before.log_end);
				inject(SHIM_WRITE, ".log", w, 1, errors[done % 4], done);
				assert_int_equal(append_as(size, how, PLOG_APPEND_DAEMON),
						 errors[done % 4]);
				shim_file_fault = NULL;
				assert_int_equal(file_size(FIRST_LOG), before.bytes);
				unharmed(before);
				total++;
			}
		}
	}
	assert_true(total > 300);
	unharmed_on_disk(view().log_end);
}

/* As before, but the cut fails as well: no append may follow, and recovery finds nothing. */
static void test_cut_fails(void **state)
{
	(void)state;
	for (int how = RAW; how < HOWS; how++) {
		for (size_t done = 1; done < 700; done += 23) {
			struct plog_view v;
			size_t size;

			assert_int_equal(env_open(), 0);
			assert_true(put(1, 20, 0) >= 0);
			v = view();
			size = make_trap(env.buf, v.log_end);
			inject(SHIM_WRITE, ".log", 0, 1, -ENOSPC, done);
			plan.cut_error = -EIO;
			assert_int_equal(append_as(size, how, PLOG_APPEND_DAEMON), -ENOSPC);
			assert_int_equal(view().state, PLOG_PARTITION_FENCED);
			/* the cut's: the append's is its caller's */
			assert_int_equal(view().error, EIO);
			assert_int_equal(env.state, PLOG_PARTITION_FENCED);
			shim_file_fault = NULL;
			assert_int_equal(put(1, 20, 0), -EROFS);
			assert_int_equal(walk(PLOG_END_HW), v.log_end);
			assert_true(file_size(FIRST_LOG) > (long)v.bytes);
			/* closing cleanly does not make it clean */
			if (done % 2)
				env_close();
			else
				env_crash();
			assert_int_equal(env_open(), 0);
			assert_int_equal(view().log_end, v.log_end);
			assert_int_equal(file_size(FIRST_LOG), v.bytes);
			assert_int_equal(walk(PLOG_END_HW), v.log_end);
			env_close();
		}
	}
}

/* A wrong CRC with a payload that is a batch, and the cut fails. */
static void test_refused_trap(void **state)
{
	int64_t end;
	size_t size;

	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 20, 0);
	end = view().log_end;
	size = make_trap(env.buf, end);
	env.buf[17] ^= 1;
	inject(SHIM_WRITE, ".none", 0, 0, 0, 0);
	plan.cut_error = -EIO;
	assert_int_equal(append_as(size, ITER, 0), -EBADMSG);
	assert_int_equal(view().state, PLOG_PARTITION_FENCED);
	shim_file_fault = NULL;
	/* all of the payload is there */
	assert_int_equal(file_size(FIRST_LOG), view().bytes + size);
	unharmed_on_disk(end);
	assert_int_equal(put(1, 20, 0), end);
	unharmed_on_disk(end + 1);
}

/* A right CRC over records that are refused, and the cut fails. */
static void test_refused_records(void **state)
{
	int64_t end;
	size_t size;

	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 20, 0);
	end = view().log_end;
	size = make_batch(env.buf, 3, 100, 1, 1);
	env.buf[60]--;			/* one record more than the header says */
	env.buf[26]--;
	fix_crc(env.buf, size);
	inject(SHIM_WRITE, ".none", 0, 0, 0, 0);
	plan.cut_error = -EIO;
	assert_int_equal(append_as(size, ITER, 0), -EBADMSG);
	assert_int_equal(view().state, PLOG_PARTITION_FENCED);
	shim_file_fault = NULL;
	unharmed_on_disk(end);
}

static void test_sync_fails(void **state)
{
	struct plog_extent ext = { 0 };
	struct plog_view v;

	(void)state;
	assert_int_equal(env_open(), 0);
	put(2, 20, 0);
	assert_int_equal(plog_partition_sync(env.p), 0);
	put(2, 20, 0);
	inject(SHIM_SYNC, ".log", 0, 1, -EIO, 0);
	assert_int_equal(plog_partition_sync(env.p), -EIO);
	/* the error is final, whatever the file says to the next sync */
	assert_int_equal(plog_partition_sync(env.p), -EIO);
	v = view();
	assert_int_equal(v.state, PLOG_PARTITION_FENCED);
	assert_int_equal(v.error, EIO);
	assert_int_equal(put(1, 1, 1), -EROFS);
	assert_int_equal(plog_partition_locate(env.p, 0, 1000, PLOG_END_HW, true, &ext, &v), 0);
	plog_extent_put(&ext);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().state, PLOG_PARTITION_ONLINE);
	inject(SHIM_SYNC, ".log", 0, 1, -EIO, 0);
	make_batch(env.buf, 1, 20, 0, 0);
	assert_int_equal(append_as(make_batch(env.buf, 1, 20, 0, 0), RAW, PLOG_APPEND_SYNC), -EIO);
	assert_int_equal(view().state, PLOG_PARTITION_FENCED);
	assert_int_equal(view().log_end, 5);
}

/* Locate from @offset; the offset behind what is given, or the error. */
static int64_t located(int64_t offset, unsigned int bytes)
{
	struct plog_extent ext = { 0 };
	struct plog_view v;
	int64_t next;
	int err;

	err = plog_partition_locate(env.p, offset, bytes, PLOG_END_HW, true, &ext, &v);
	next = ext.next_offset;
	assert_int_equal(!!ext.length, !err);
	plog_extent_put(&ext);
	return err ? err : next;
}

/* What a filesystem takes away after a write that failed is not read as a log. */
static void unsynced_lost(bool sync)
{
	static const uint8_t zeros[4096];
	const long batch = (long)make_batch(env.buf, 1, 1000, 0, 0);
	struct plog_reader early, late;
	char value[1001];
	int i;

	assert_int_equal(env_open(), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(put(1, 1000, i), i);
	assert_int_equal(plog_partition_sync(env.p), 0);
	for (; i < 10; i++)
		assert_int_equal(put(1, 1000, i), i);
	assert_int_equal(file_size(FIRST_LOG), 10 * batch);
	plog_reader_init(&early, env.p, PLOG_END_HW);
	plog_reader_init(&late, env.p, PLOG_END_HW);
	strcpy(value, next_value(&early));
	/* the middle of a value, its batch's header is there */
	file_write(FIRST_LOG, 7 * batch + 500, zeros, 400);
	assert_int_equal(located(0, 1 << 20), 10);
	if (sync) {
		inject(SHIM_SYNC, ".log", 0, 1, -EIO, 0);
		assert_int_equal(plog_partition_sync(env.p), -EIO);
	} else {
		inject(SHIM_WRITEBACK, ".log", 0, 100, -EIO, 0);
		/* readers see it before any writer or sync has come by */
		assert_int_equal(located(0, 1 << 20), 7);
		assert_int_equal(view().state, PLOG_PARTITION_ONLINE);
		assert_int_equal(put(1, 1000, 1), -EROFS);
		assert_int_equal(view().error, EIO);
	}
	assert_int_equal(view().state, PLOG_PARTITION_FENCED);
	assert_int_equal(view().log_end, 10);
	assert_int_equal(located(0, 1 << 20), 7);
	assert_int_equal(located(2, 3 * batch), 5);
	assert_int_equal(located(6, 1), 7);
	assert_int_equal(located(7, 1), -EIO);
	assert_int_equal(located(7, 1 << 20), -EIO);
	/* behind it is more that is whole */
	assert_int_equal(located(8, 1 << 20), 10);
	for (i = 0; i < 7; i++)
		assert_int_equal(strlen(next_value(&late)), 1000);
	assert_string_equal(next_value(&late), "-EIO");
	/* this one had it all pinned before */
	for (i = 1; i < 7; i++)
		assert_int_equal(strlen(next_value(&early)), 1000);
	assert_string_equal(next_value(&early), "-EIO");
	plog_reader_release(&early);
	plog_reader_release(&late);
	/* of the header nothing is left: no index finds what is behind */
	file_write(FIRST_LOG, 5 * batch, zeros, 100);
	assert_int_equal(located(0, 1 << 20), 5);
	assert_int_equal(located(5, 1 << 20), -EIO);
	/* a sync had promised this: it is read as ever, and the CRC is the reader's business */
	file_write(FIRST_LOG, 2 * batch + 500, zeros, 400);
	assert_int_equal(located(0, 3 * batch), 3);
	assert_string_not_equal(value, "");
}

static void test_sync_fails_bytes_lost(void **state)
{
	(void)state;
	unsynced_lost(true);
}

static void test_writeback_fails(void **state)
{
	(void)state;
	unsynced_lost(false);
}

/* Of an append with a sync no other error than EIO says that something was appended. */
static void test_sync_of_append_fails(void **state)
{
	static const int errors[] = { -ENOSPC, -EDQUOT, -ENOMEM, -EINTR };

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().log_end, i);
		inject(SHIM_SYNC, ".log", 0, 1, errors[i], 0);
		assert_int_equal(append_as(make_batch(env.buf, 1, 20, 0, 0), RAW,
					   PLOG_APPEND_SYNC), -EIO);
		assert_int_equal(view().log_end, i + 1);
		env_close();
	}
}

static void test_index_fails(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 300; i++) {
		if (i == 50)
			inject(SHIM_WRITE, "index", 0, 20, -ENOSPC, 3);
		assert_int_equal(put(2, 300, i), 2 * i);
	}
	assert_int_equal(walk(PLOG_END_HW), 600);
	for (int64_t o = 0; o < 600; o += 13) {
		struct plog_extent ext = { 0 };
		struct plog_view v;

		assert_int_equal(plog_partition_locate(env.p, o, 1000, PLOG_END_HW, true, &ext, &v),
				 0);
		assert_int_equal(ext.base_offset, o & ~1);
		plog_extent_put(&ext);
	}
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 600);
}

static void test_no_index_at_all(void **state)
{
	(void)state;
	env.config.segment_bytes = 10000;
	inject(SHIM_OPEN, "index", 0, 1 << 30, -EMFILE, 0);
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(put_at(2, 300, i, 1000 + i), 2 * i);
	assert_int_equal(walk(PLOG_END_HW), 200);
	shim_file_fault = NULL;
	unharmed_on_disk(200);
	assert_true(file_size(FIRST_INDEX) > 0);
}

static void test_roll_fails(void **state)
{
	char name[128];
	size_t size;
	FILE *file;

	(void)state;
	env.config.segment_bytes = 3000;
	assert_int_equal(env_open(), 0);
	size = make_batch(env.buf, 2, 500, 0, 1);
	put(2, 500, 1);
	put(2, 500, 1);
	inject(SHIM_OPEN, ".log", 0, 2, -ENOSPC, 0);
	assert_int_equal(append(size), -ENOSPC);
	assert_int_equal(view().segments, 1);
	make_batch(env.buf, 2, 500, 0, 1);
	assert_int_equal(append(size), -ENOSPC);
	make_batch(env.buf, 2, 500, 0, 1);
	assert_int_equal(append(size), 4);
	assert_int_equal(view().segments, 2);
	/* what an earlier log has left where the next segment goes cannot be cut */
	put(2, 500, 1);
	snprintf(name, sizeof(name), "%s/00000000000000000008.log", env.dir);
	file = fopen(name, "w");
	assert_non_null(file);
	fputs("left over", file);
	fclose(file);
	inject(SHIM_TRUNCATE, ".log", 0, 1, -EIO, 0);
	assert_int_equal(put(2, 500, 1), -EIO);
	assert_int_equal(view().state, PLOG_PARTITION_ONLINE);
	unharmed_on_disk(8);
}

static void test_state_file_fails(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 20, 0);
	env_close();
	assert_int_equal(env_open(), 0);
	inject(SHIM_WRITE, "plog.state", 0, 1, -ENOSPC, 100);
	assert_int_equal(put(1, 20, 0), -ENOSPC);
	assert_int_equal(put(1, 20, 0), 1);
	inject(SHIM_SYNC, "plog.state", 0, 1, -EIO, 100);
	assert_int_equal(plog_partition_close(env.p, true), -EIO);
	plog_partition_put(env.p);
	env.p = NULL;
	shim_file_fault = NULL;
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 2);
}

static void test_read_fails(void **state)
{
	struct plog_extent ext = { 0 };
	struct plog_view v;

	(void)state;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 100; i++)
		put(1, 200, i);
	inject(SHIM_READ, ".log", 0, 1, -EIO, 0);
	assert_int_equal(plog_partition_locate(env.p, 50, 300, PLOG_END_HW, true, &ext, &v), -EIO);
	assert_int_equal(plog_partition_locate(env.p, 50, 300, PLOG_END_HW, true, &ext, &v), 0);
	plog_extent_put(&ext);
	env_crash();
	/* an error while reading is no reason to cut */
	inject(SHIM_READ, ".log", 20, 1, -EIO, 0);
	assert_int_equal(env_open(), -EIO);
	assert_int_equal(env.state, PLOG_PARTITION_CLOSED);
	shim_file_fault = NULL;
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 100);
}

static void test_file_size_limit(void **state)
{
	struct rlimit old, lim;
	struct plog_view before;

	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 2000, 0);
	before = view();
	getrlimit(RLIMIT_FSIZE, &old);
	lim = old;
	lim.rlim_cur = before.bytes + 100;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &lim), 0);
	for (int how = RAW; how < HOWS; how++)
		assert_int_equal(append_as(make_batch(env.buf, 1, 2000, 0, 0), how, 0), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	unharmed(before);
	unharmed_on_disk(before.log_end + 1);
}

/* ---- signals ---- */

static void test_killed(void **state)
{
	size_t size;
	int killed = 0;

	(void)state;
	env.config.segment_bytes = 3000;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 200; i++) {
		int64_t end = view().log_end, got;

		size = make_batch(env.buf, 2, 500, i, 1000);
		shim_killed = true;
		got = append(size);
		shim_killed = false;
		if (got == -EINTR) {
			killed++;
			assert_int_equal(view().log_end, end);
			make_batch(env.buf, 2, 500, i, 1000);
			got = append(size);
		}
		assert_int_equal(got, end);
	}
	assert_int_equal(walk(PLOG_END_HW), 400);
	assert_true(killed > 0);
	unharmed_on_disk(400);
}

/* ---- memory ---- */

/* Do @fn with the n-th allocation failing, for each n until none fails. */
static void each_alloc(int64_t (*fn)(void), int64_t right)
{
	int n = 0, failed;
	int64_t got;

	do {
		shim_failed_allocs = 0;
		shim_fail_alloc = ++n;
		got = fn();
		shim_fail_alloc = 0;
		failed = shim_failed_allocs;
		if (got != right)
			assert_int_equal(got, -ENOMEM);
		assert_true(failed || got == right);
	} while (failed);
	assert_true(n > 1);
}

static int64_t do_append(void)
{
	int64_t end = view().log_end;
	int64_t got = append_as(make_batch(env.buf, 2, 100, 1, 1), ITER, 0);

	assert_true(got == end || view().log_end == end);
	return got < 0 ? got : 0;
}

static int64_t do_locate(void)
{
	struct plog_extent ext = { 0 };
	struct plog_view v;
	int err = plog_partition_locate(env.p, 50, 1000, PLOG_END_HW, true, &ext, &v);

	plog_extent_put(&ext);
	return err;
}

static int64_t do_lookup(void)
{
	struct plog_time_hit hit;

	return plog_partition_lookup(env.p, 1050, false, PLOG_END_HW, &hit);
}

static int64_t do_read(void)
{
	struct plog_reader r;
	const char *got;

	plog_reader_init(&r, env.p, PLOG_END_HW);
	got = next_value(&r);
	plog_reader_release(&r);
	return strcmp(got, "-ENOMEM") ? 0 : -ENOMEM;
}

static int64_t do_open(void)
{
	int err;

	if (env.p)
		env_crash();
	err = env_open();
	return err;
}

static int64_t do_truncate(void)
{
	struct plog_fence f = { 0 };
	s64 to;

	if (put(2, 500, 0) < 0)
		return -ENOMEM;
	to = view().log_end < 3 ? 0 : view().log_end - 3;
	return plog_partition_truncate(env.p, &f, &to);
}

static int64_t do_set_start(void)
{
	struct plog_fence f = { 0 };
	s64 to = view().log_start + 1, was = to - 1;
	int err = plog_partition_set_log_start(env.p, &f, &to);

	assert_int_equal(view().log_start, err ? was : was + 1);
	return err;
}

static void test_allocations(void **state)
{
	int64_t end;

	(void)state;
	each_alloc(do_open, 0);
	for (int i = 0; i < 100; i++)
		put_at(1, 200, i, 1000 + i);
	each_alloc(do_append, 0);
	env.config.segment_bytes = 2000;
	plog_partition_configure(env.p, &env.config);
	for (int i = 0; i < 5; i++)
		each_alloc(do_append, 0);
	end = view().log_end;
	each_alloc(do_locate, 0);
	each_alloc(do_lookup, 0);
	each_alloc(do_read, 0);
	each_alloc(do_set_start, 0);
	each_alloc(do_open, 0);
	assert_int_equal(view().log_end, end);
	assert_int_equal(view().log_start > 0, 1);
	walk(PLOG_END_HW);
}

static void test_truncate_allocations(void **state)
{
	(void)state;
	env.config.segment_bytes = 2000;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 100; i++)
		put_at(1, 200, i, 1000 + i);
	for (int n = 1; n < 40; n++) {
		int64_t got;

		shim_failed_allocs = 0;
		shim_fail_alloc = n;
		got = do_truncate();
		shim_fail_alloc = 0;
		if (got && got != -ENOMEM)
			print_message("# %d: %lld\n", n, (long long)got);
		assert_true(got == 0 || got == -ENOMEM);
		walk(PLOG_END_LEO);
		if (view().state == PLOG_PARTITION_FENCED)
			assert_int_equal(do_open(), 0);
	}
	walk(PLOG_END_LEO);
}

/* ---- a crash before each single file operation ---- */

static char snapshots[2000][64];
static int64_t acked[2000];	/* log end that was acknowledged by then */
static int snapshot_count;
static pthread_mutex_t snap_lock = PTHREAD_MUTEX_INITIALIZER;

static int snap(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)name;
	(void)pos;
	(void)len;
	(void)done;
	/* the workers' operations too: while one is here, none goes on */
	pthread_mutex_lock(&snap_lock);
	if (op != SHIM_READ && op != SHIM_OPEN && snapshot_count < 2000) {
		acked[snapshot_count] = env.p ? plog_partition_end(env.p, PLOG_END_LEO) : -1;
		env_snapshot(snapshots[snapshot_count++]);
	}
	pthread_mutex_unlock(&snap_lock);
	return 0;
}

static void test_crash_anywhere(void **state)
{
	struct plog_fence f = { 0 };
	char own[64];
	int64_t least = 0;
	s64 to;

	(void)state;
	snapshot_count = 0;
	env.config.segment_bytes = 4000;
	assert_int_equal(env_open(), 0);
	shim_file_fault = snap;
	for (int i = 0; i < 40; i++) {
		size_t size = make_trap(env.buf, view().log_end);

		if (i % 5 == 4)		/* one that is refused, late */
			env.buf[17] ^= 1;
		append_as(size, i % HOWS == ITER_CHECKED ? ITER : i % HOWS, PLOG_APPEND_DAEMON);
		if (i == 30)
			plog_partition_sync(env.p);
	}
	to = 2;
	plog_partition_set_log_start(env.p, &f, &to);
	env_close();
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 10; i++)
		put(1, 900, i);
	env_close();
	shim_file_fault = NULL;
	assert_true(snapshot_count > 100 && snapshot_count < 2000);
	strcpy(own, env.dir);
	for (int i = 0; i < snapshot_count; i++) {
		int64_t end;

		strcpy(env.dir, snapshots[i]);
		if (acked[i] >= 0)
			least = acked[i];
		assert_int_equal(env_open(), 0);
		end = view().log_end;
		/* all that was acknowledged, and at most the one in the making */
		if (end < least || end > least + 1)
			print_message("# crash %d: %lld of %lld\n", i, (long long)end,
				      (long long)least);
		assert_in_range(end, least, least + 1);
		assert_int_equal(walk(PLOG_END_LEO), end - view().log_start);
		assert_int_equal(put(1, 10, 0), end);
		env_close();
		env_wipe();
	}
	strcpy(env.dir, own);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_bad_batches), T(test_bad_sizes), T(test_permissions), T(test_short_writes),
		T(test_cut_fails), T(test_refused_trap),
		T(test_refused_records), T(test_sync_fails), T(test_sync_fails_bytes_lost),
		T(test_sync_of_append_fails), T(test_writeback_fails), T(test_index_fails),
		T(test_no_index_at_all), T(test_roll_fails), T(test_state_file_fails),
		T(test_read_fails), T(test_file_size_limit), T(test_killed),
		T(test_allocations), T(test_truncate_allocations), T(test_crash_anywhere),
	};

	return cmocka_run_group_tests_name("engine faults", tests, NULL, NULL);
}
