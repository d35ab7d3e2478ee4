// SPDX-License-Identifier: MIT
/*
 * Compaction: segments swapped under readers, what is refused, what a crash leaves.
 */
#include "compact.h"
#include "transaction.h"

#include <fcntl.h>
#include <sys/stat.h>

extern unsigned int plog_segment_idle_max;

static int64_t base[4096];
static int segments;

/* A log of many segments, with times that rise by 10. */
static void make_log(int batches)
{
	env.config.segment_bytes = 2048;
	env.config.index_interval_bytes = 300;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < batches; i++)
		put_at(2, 60, i, 1000 + 10 * i);
	segments = log_files(base, 4096);
	assert_true(segments > 8);
}

static bool keep_third(const struct plog_batch *b)
{
	return b->base_offset % 6 == 0;
}

static bool keep_all(const struct plog_batch *b)
{
	(void)b;
	return true;
}

static bool keep_none(const struct plog_batch *b)
{
	(void)b;
	return false;
}

static int64_t pending(void)
{
	s64 at, last;
	u64 now;

	assert_int_equal(plog_partition_swap_state(env.p, &now, &at, &last), 0);
	return at;
}

/* Every offset's batch, by locate from each offset on, is what walking gives. */
static void check_reading(int64_t records)
{
	struct plog_view v = view();

	assert_int_equal(walk(PLOG_END_HW), records);
	for (int64_t o = 0; o < v.log_end; o += 7) {
		struct plog_extent ext = { 0 };
		uint8_t head[PLOG_BATCH_HEADER];
		struct kvec vec = { head, sizeof(head) };
		struct plog_batch b;
		struct iov_iter it;

		assert_int_equal(plog_partition_locate(env.p, o, 500, PLOG_END_HW, true, &ext, &v),
				 0);
		if (ext.length) {
			iov_iter_kvec(&it, ITER_DEST, &vec, 1, sizeof(head));
			assert_int_equal(plog_extent_read(&ext, 0, &it), sizeof(head));
			assert_int_equal(plog_batch_decode(head, &b), 0);
			assert_true(plog_batch_last_offset(&b) >= o);
		}
		plog_extent_put(&ext);
	}
}

static void test_swap(void **state)
{
	struct plog_extent ext = { 0 };
	struct plog_time_hit hit;
	uint8_t before[4096], after[4096];
	struct kvec vec = { before, sizeof(before) };
	struct iov_iter it;
	struct plog_view v, old;
	int64_t records, gone;
	uint64_t gen;

	(void)state;
	make_log(200);
	old = view();
	gen = generation();
	assert_int_equal(plog_partition_locate(env.p, base[1], 1500, PLOG_END_HW, true, &ext, &v),
			 0);
	iov_iter_kvec(&it, ITER_DEST, &vec, 1, ext.length);
	assert_int_equal(plog_extent_read(&ext, 0, &it), ext.length);
	records = compact(base[0], base[5], keep_third);
	gone = base[6] - records;
	assert_int_equal(swap(base[0], base[5]), 0);
	assert_int_equal(pending(), 0);
	assert_int_equal(generation(), gen + 1);
	v = view();
	assert_int_equal(v.segments, old.segments - 5);
	assert_int_equal(v.log_end, old.log_end);
	assert_true(v.bytes < old.bytes);
	check_reading(400 - gone);
	/* what is pinned is as it was, whatever happens to the names */
	assert_false(plog_extent_stale(&ext));
	assert_int_equal(swap_done(), -ENOENT);
	finish_files(base[0], base[5], RENAMED_LOG);
	vec.iov_base = after;
	iov_iter_kvec(&it, ITER_DEST, &vec, 1, ext.length);
	assert_int_equal(plog_extent_read(&ext, 0, &it), ext.length);
	assert_memory_equal(before, after, ext.length);
	plog_extent_put(&ext);
	check_reading(400 - gone);
	assert_int_equal(swap_done(), 0);
	assert_int_equal(pending(), -1);
	assert_int_equal(swap_done(), 0);
	check_reading(400 - gone);
	/* by time: a batch that is left, and one that is not */
	assert_int_equal(plog_partition_lookup(env.p, 1030, false, PLOG_END_HW, &hit), 0);
	assert_int_equal(hit.offset, 6);
	assert_int_equal(plog_partition_lookup(env.p, 1031, false, PLOG_END_HW, &hit), 0);
	assert_int_equal(hit.offset, 12);
	/* again, over what was swapped before */
	compact(base[0], base[7], keep_third);
	assert_int_equal(swap(base[0], base[7]), 0);
	finish_files(base[0], base[7], RENAMED_LOG);
	assert_int_equal(swap_done(), 0);
	records = walk(PLOG_END_HW);
	old = view();
	env_close();
	assert_int_equal(env_open(), 0);
	v = view();
	assert_int_equal(v.bytes, old.bytes);
	assert_int_equal(v.max_timestamp, old.max_timestamp);
	check_reading(records);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().bytes, old.bytes);
	check_reading(records);
	put(1, 10, 1);
	assert_int_equal(walk(PLOG_END_HW), records + 1);
}

/* No file is kept open but what must: a name is never opened while it is another's. */
static void test_lazy(void **state)
{
	unsigned int was = plog_segment_idle_max;
	int64_t left;

	(void)state;
	make_log(200);
	plog_segment_idle_max = 0;
	assert_int_equal(plog_partition_sync(env.p), 0);
	left = 400 - base[6] + compact(base[0], base[5], keep_third);
	check_reading(400);
	assert_int_equal(swap(base[0], base[5]), 0);
	for (enum step s = UNLINKED; s < STEPS; s++) {
		check_reading(left);
		if (s == UNLINKED)
			finish_files(base[0], base[5], UNLINKED);
		else if (s == RENAMED_LOG)
			finish_files(base[0], base[5], RENAMED_LOG);
	}
	check_reading(left);
	assert_int_equal(swap_done(), 0);
	check_reading(left);
	env_close();
	assert_int_equal(env_open(), 0);
	check_reading(left);
	plog_segment_idle_max = was;
}

/* A reader that held a segment without its files open looks again. */
static void test_retired_is_not_opened(void **state)
{
	unsigned int was = plog_segment_idle_max;
	struct plog_view v;

	(void)state;
	make_log(200);
	plog_segment_idle_max = 0;
	compact(base[0], base[5], keep_third);
	assert_int_equal(swap(base[0], base[5]), 0);
	finish_files(base[0], base[5], RENAMED_LOG);
	assert_int_equal(swap_done(), 0);
	for (int64_t o = 0; o < base[6]; o++) {
		struct plog_extent ext = { 0 };

		assert_int_equal(plog_partition_locate(env.p, o, 100, PLOG_END_HW, true, &ext, &v),
				 0);
		assert_true(ext.length > 0);
		plog_extent_put(&ext);
	}
	plog_segment_idle_max = was;
}

static void test_empty(void **state)
{
	(void)state;
	make_log(200);
	assert_int_equal(compact(base[2], base[4], keep_none), 0);
	assert_int_equal(swap(base[2], base[4]), 0);
	finish_files(base[2], base[4], RENAMED_LOG);
	assert_int_equal(swap_done(), 0);
	check_reading(400 - (base[5] - base[2]));
	env_crash();
	assert_int_equal(env_open(), 0);
	check_reading(400 - (base[5] - base[2]));
	env_close();
	assert_int_equal(env_open(), 0);
	check_reading(400 - (base[5] - base[2]));
}

/* The largest timestamp and the last producer were in what went. */
static void test_what_is_published(void **state)
{
	(void)state;
	env.config.segment_bytes = 1024;
	assert_int_equal(env_open(), 0);
	put_idempotent(3, 1);
	for (int i = 0; i < 20; i++)
		put_at(1, 80, i, 1000 + i);
	put_at(1, 80, 1, 9000);
	put_idempotent(4, 1);
	for (int i = 0; i < 20; i++)
		put_at(1, 80, i, 2000 + i);
	segments = log_files(base, 4096);
	assert_int_equal(view().last_producer, 22);
	assert_int_equal(view().max_timestamp, 9000);
	assert_true(base[1] < 21 && base[segments - 2] > 23);
	compact(base[1], base[segments - 2], keep_none);
	assert_int_equal(swap(base[1], base[segments - 2]), 0);
	assert_int_equal(view().max_timestamp, 2019);
	assert_int_equal(view().last_producer, 0);
	finish_files(base[1], base[segments - 2], RENAMED_LOG);
	assert_int_equal(swap_done(), 0);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().max_timestamp, 2019);
	assert_int_equal(view().last_producer, 0);
}

/* The machine stops before it is noted that the last producer was in what went. */
static void test_last_producer_not_noted(void **state)
{
	static uint8_t noted[8192];
	size_t size;

	(void)state;
	env.config.segment_bytes = 1024;
	assert_int_equal(env_open(), 0);
	put_idempotent(3, 1);
	for (int i = 0; i < 20; i++)
		put(1, 80, i);
	put_idempotent(4, 1);
	for (int i = 0; i < 20; i++)
		put(1, 80, i);
	segments = log_files(base, 4096);
	assert_true(base[1] < 21 && base[segments - 2] > 21);
	assert_int_equal(plog_partition_sync(env.p), 0);
	/* the end of a swap notes the last producer, and the log may have gaps now */
	compact(base[0], base[0], keep_all);
	assert_int_equal(swap(base[0], base[0]), 0);
	finish_files(base[0], base[0], RENAMED_LOG);
	assert_int_equal(swap_done(), 0);
	assert_int_equal(view().last_producer, 21);
	size = file_read("plog.state", noted, sizeof(noted));
	compact(base[1], base[segments - 2], keep_none);
	assert_int_equal(swap(base[1], base[segments - 2]), 0);
	finish_files(base[1], base[segments - 2], RENAMED_LOG);
	env_crash();
	file_write("plog.state", 0, noted, size);
	file_cut("plog.state", size);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().last_producer, 0);
	assert_int_equal(view().log_end, 42);
}

static void test_refused(void **state)
{
	struct plog_fence f = { 0 }, stale = { .leader_epoch = 7 };
	struct plog_swap_args args = { 0 };
	char name[128], other[128];
	s64 to;

	(void)state;
	make_log(200);
	/* no such run */
	compact(base[0], base[3], keep_third);
	assert_int_equal(swap(base[0], base[3] + 1), -ERANGE);
	assert_int_equal(swap(base[0] + 1, base[3]), -ERANGE);
	assert_int_equal(swap(base[3], base[0]), -EINVAL);
	assert_int_equal(swap(-1, base[3]), -EINVAL);
	assert_int_equal(swap(base[0], base[segments - 1]), -ERANGE);	/* takes appends */
	assert_int_equal(swap(base[0], 1 << 20), -ERANGE);
	assert_int_equal(swap(base[segments - 1], base[segments - 1]), -ERANGE);
	/* another table, another daemon */
	args = (struct plog_swap_args){ generation() + 1, base[0], base[3] };
	assert_int_equal(plog_partition_swap(env.p, &f, &args), -ESTALE);
	args.generation = generation() - 1;
	assert_int_equal(plog_partition_swap(env.p, &f, &args), -ESTALE);
	args.generation = generation();
	assert_int_equal(plog_partition_swap(env.p, &stale, &args), -ESTALE);
	/* no files, or no regular ones */
	assert_int_equal(swap(base[1], base[3]), -ENOENT);
	snprintf(name, sizeof(name), "%s/%020d.index.swap", env.dir, 0);
	snprintf(other, sizeof(other), "%s/elsewhere", env.dir);
	assert_int_equal(rename(name, other), 0);
	assert_int_equal(swap(base[0], base[3]), -ENOENT);
	assert_int_equal(symlink("elsewhere", name), 0);
	assert_int_equal(swap(base[0], base[3]), -EINVAL);
	unlink(name);
	assert_int_equal(rename(other, name), 0);
	snprintf(name, sizeof(name), "%s/%020d.log.swap", env.dir, 0);
	assert_int_equal(rename(name, other), 0);
	assert_int_equal(mkdir(name, 0700), 0);
	assert_true(swap(base[0], base[3]) < 0);
	rmdir(name);
	assert_int_equal(symlink("elsewhere", name), 0);
	assert_int_equal(swap(base[0], base[3]), -EINVAL);
	unlink(name);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(swap(base[0], base[3]), -EINVAL);
	unlink(name);
	assert_int_equal(rename(other, name), 0);
	/* what is in them: beyond the run, a half batch, a CRC, no order, too large */
	assert_int_equal(swap(base[0], base[2]), -ERANGE);
	file_cut("00000000000000000000.log.swap", file_size("00000000000000000000.log.swap") - 1);
	assert_int_equal(swap(base[0], base[3]), -EBADMSG);
	compact(base[0], base[3], keep_third);
	file_write("00000000000000000000.log.swap", 100, "x", 1);
	assert_int_equal(swap(base[0], base[3]), -EBADMSG);
	compact(base[0], base[3], keep_third);
	file_write("00000000000000000000.log.swap", 0, "\0\0\0\0\0\0\0\x7f", 8);
	assert_int_equal(swap(base[0], base[3]), -EBADMSG);
	compact(base[0], base[3], keep_third);
	file_cut("00000000000000000000.log.swap", 1L << 31);
	assert_int_equal(swap(base[0], base[3]), -EFBIG);
	/* a log of another base: its offsets lie below */
	compact(base[0], base[3], keep_third);
	snprintf(other, sizeof(other), "%s/%020lld.log.swap", env.dir, (long long)base[1]);
	assert_int_equal(rename(name, other), 0);
	for (int i = 0; i < 2; i++) {
		static const char *const kinds[] = { "index", "timeindex" };

		snprintf(name, sizeof(name), "%s/%020d.%s.swap", env.dir, 0, kinds[i]);
		snprintf(other, sizeof(other), "%s/%020lld.%s.swap", env.dir, (long long)base[1],
			 kinds[i]);
		assert_int_equal(rename(name, other), 0);
	}
	assert_int_equal(swap(base[1], base[3]), -EBADMSG);
	assert_int_equal(generation(), 1);
	assert_int_equal(walk(PLOG_END_HW), 400);
	/* one at a time, and nothing cuts it meanwhile */
	compact(base[1], base[3], keep_third);
	assert_int_equal(swap(base[1], base[3]), 0);
	compact(base[4], base[5], keep_third);
	assert_int_equal(swap(base[4], base[5]), -EBUSY);
	to = base[2];
	assert_int_equal(plog_partition_truncate(env.p, &f, &to), -EBUSY);
	to = base[5];
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &to), 0);
	assert_true(view().segments < (unsigned int)segments - 2);
	finish_files(base[1], base[3], RENAMED_LOG);
	assert_int_equal(swap_done(), 0);
	assert_int_equal(plog_partition_retain(env.p) >= 0, 1);
	to = base[6];
	assert_int_equal(plog_partition_truncate(env.p, &f, &to), 0);
}

/* What an open transaction or a high watermark holds is not compacted. */
/* Cuts the log off in the middle of the run, at the moment that its new file is opened. */
static int cut_at_open(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };
	s64 to = base[2];

	(void)pos; (void)len; (void)done;
	if (op != SHIM_OPEN || !strstr(name, ".log.swap"))
		return 0;
	shim_file_fault = NULL;
	assert_int_equal(plog_partition_truncate(env.p, &f, &to), 0);
	return 0;
}

/* What is to be swapped was there when it was asked for, and is not when it is its turn. */
static void test_cut_meanwhile(void **state)
{
	(void)state;
	make_log(400);
	compact(base[0], base[5], keep_third);
	shim_file_fault = cut_at_open;
	assert_int_equal(swap(base[0], base[5]), -ERANGE);
	assert_null(shim_file_fault);
	assert_int_equal(pending(), -1);
	assert_int_equal(view().log_end, base[2]);
	assert_int_equal(walk(PLOG_END_HW), base[2]);
	put(2, 60, 1);
}

static void test_above_the_stable_offset(void **state)
{
	struct plog_fence f = { 0 };
	s64 at;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
	make_log(200);
	compact(base[0], base[2], keep_third);
	assert_int_equal(swap(base[0], base[2]), -ERANGE);
	at = base[3] - 1;
	assert_int_equal(plog_partition_set_hw(env.p, &f, &at), 0);
	assert_int_equal(swap(base[0], base[2]), -ERANGE);
	at = base[3];
	assert_int_equal(plog_partition_set_hw(env.p, &f, &at), 0);
	at = base[3] - 1;
	assert_int_equal(plog_partition_set_unstable(env.p, &f, &at), 0);
	assert_int_equal(swap(base[0], base[2]), -ERANGE);
	at = base[3];
	assert_int_equal(plog_partition_set_unstable(env.p, &f, &at), 0);
	at = view().log_end;
	assert_int_equal(plog_partition_set_hw(env.p, &f, &at), 0);
	assert_int_equal(swap(base[0], base[2]), 0);
}

/* A truncation and retention change the generation, appends and rolls do not. */
static void test_generation(void **state)
{
	struct plog_fence f = { 0 };
	uint64_t gen;
	s64 at;

	(void)state;
	make_log(100);
	gen = generation();
	for (int i = 0; i < 50; i++)
		put(2, 60, i);
	assert_true(view().segments > (unsigned int)segments);
	assert_int_equal(generation(), gen);
	at = view().log_end - 2;
	assert_int_equal(plog_partition_truncate(env.p, &f, &at), 0);
	assert_int_equal(generation(), gen + 1);
	at = base[2];
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), 0);
	assert_true(generation() > gen + 1);
}

/* Half replaced directories are not served. */
static void test_interrupted(void **state)
{
	(void)state;
	make_log(200);
	compact(base[0], base[5], keep_third);
	assert_int_equal(swap(base[0], base[5]), 0);
	env_close();
	assert_int_equal(env_open(), -EUCLEAN);
	assert_non_null(strstr(env.log, "interrupted"));
	finish_files(base[0], base[5], RENAMED_TIMEINDEX);
	assert_int_equal(env_open(), -EUCLEAN);
}

/* ---- faults ---- */

static int countdown, hits;

static int fail_one(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)op;
	(void)name;
	(void)pos;
	(void)len;
	(void)done;
	if (countdown && !--countdown) {
		hits++;
		return -EIO;
	}
	return 0;
}

static void test_faults(void **state)
{
	int64_t left;
	int i, err;

	(void)state;
	make_log(200);
	assert_int_equal(plog_partition_sync(env.p), 0);
	for (i = 1;; i++) {
		bool failed;

		compact(base[0], base[0], keep_all);
		shim_fail_alloc = i;
		err = swap(base[0], base[0]);
		failed = !shim_fail_alloc;
		shim_fail_alloc = 0;
		/* some can be done without */
		assert_true(!err || err == -ENOMEM);
		assert_int_equal(walk(PLOG_END_HW), 400);
		if (!err) {
			finish_files(base[0], base[0], RENAMED_LOG);
			assert_int_equal(swap_done(), 0);
		}
		if (!failed)
			break;
	}
	assert_true(i > 5);
	compact(base[0], base[5], keep_third);
	assert_int_equal(swap(base[0], base[5]), 0);
	finish_files(base[0], base[5], RENAMED_LOG);
	assert_int_equal(swap_done(), 0);
	left = walk(PLOG_END_HW);
	hits = 0;
	for (i = 1;; i++) {
		compact(base[6], base[6], keep_all);
		shim_file_fault = fail_one;
		countdown = i;
		err = swap(base[6], base[6]);
		shim_file_fault = NULL;
		assert_true(!err || err == -EIO);
		assert_int_equal(view().state, PLOG_PARTITION_ONLINE);
		assert_int_equal(walk(PLOG_END_HW), left);
		if (!err) {
			finish_files(base[6], base[6], RENAMED_LOG);
			assert_int_equal(swap_done(), 0);
		}
		if (countdown)
			break;
	}
	assert_true(hits > 8);
	shim_killed = true;
	compact(base[8], base[8], keep_all);
	assert_int_equal(swap(base[8], base[8]), -EINTR);
	shim_killed = false;
	assert_int_equal(swap(base[8], base[8]), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_swap), T(test_lazy), T(test_retired_is_not_opened), T(test_empty),
		T(test_what_is_published), T(test_last_producer_not_noted), T(test_refused),
		T(test_above_the_stable_offset), T(test_cut_meanwhile),
		T(test_generation), T(test_interrupted), T(test_faults),
	};

	return cmocka_run_group_tests_name("engine swap", tests, NULL, NULL);
}
