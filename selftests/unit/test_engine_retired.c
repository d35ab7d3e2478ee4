// SPDX-License-Identifier: MIT
/* Retired segments: who deletes their files, and who may have their names. */
#include "segments.h"

static void test_emptied(void **state)
{
	struct listed l;

	(void)state;
	open_small();
	fill(4, LEN, 1000, 1);
	assert_int_equal(start_at(2), 2);
	l = listed();
	assert_int_equal(l.n, 2);
	assert_int_equal(l.e[0].base_offset, 0);
	assert_int_equal(l.e[1].base_offset, 1);
	assert_int_equal(l.e[0].state, PLOG_RETIRED_DELAYED);
	assert_true(l.e[0].bytes > 500);
	plog_partition_reap(env.p);
	assert_true(file_size(FIRST_LOG) > 0);
	shim_clock_ms += 1001;
	plog_partition_reap(env.p);
	assert_int_equal(file_size(FIRST_LOG), 0);
	assert_int_equal(file_size(name_of(1, "log")), 0);
	assert_int_equal(file_size(FIRST_TIMEINDEX), 0);
	l = listed();
	assert_int_equal(l.n, 2);
	assert_int_equal(l.e[1].state, PLOG_RETIRED_EMPTIED);
	assert_int_equal(l.e[1].bytes, 0);
	/* names that nobody unlinked are no segments after any kind of stop */
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().segments, 2);
	assert_int_equal(view().log_start, 2);
	assert_int_equal(listed().n, 2);
	assert_int_equal(listed().e[0].state, PLOG_RETIRED_EMPTIED);
	assert_int_equal(walk(PLOG_END_HW), 2);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().segments, 2);
	assert_int_equal(walk(PLOG_END_HW), 2);
	assert_int_equal(listed().n, 2);
}

/* Stopped before the delay was over: retired again, and at once deletable. */
static void test_reopened(void **state)
{
	(void)state;
	for (int crash = 0; crash < 2; crash++) {
		open_small();
		fill(4, LEN, 1000, 1);
		assert_int_equal(start_at(view().log_end - 2), view().log_end - 2);
		if (crash)
			env_crash();
		else
			env_close();
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().segments, 2);
		assert_int_equal(view().log_end - view().log_start, 2);
		assert_true(view().bytes > 1000 && view().bytes < 1500);
		/* a sync in the background may hold one for a moment */
		for (int k = 0; k < 2000; k++) {
			unsigned int held = 0;

			plog_partition_reap(env.p);
			for (unsigned int i = 0; i < listed().n; i++)
				held += listed().e[i].state == PLOG_RETIRED_HELD;
			if (!held)
				break;
			usleep(1000);
		}
		for (unsigned int i = 0; i < listed().n; i++)
			assert_int_equal(listed().e[i].state, PLOG_RETIRED_EMPTIED);
		assert_int_equal(walk(PLOG_END_HW), 2);
		env_close();
	}
}

static void test_pinned(void **state)
{
	struct plog_extent ext = { 0 };
	uint8_t bytes[2000];
	struct kvec vec = { bytes, sizeof(bytes) };
	struct plog_view v;
	struct plog_batch b;
	struct iov_iter it;
	struct listed l;

	(void)state;
	env.config.retention_ms = DAY;
	open_small();
	fill(3, LEN, plog_now_ms() - 9 * DAY, 1);
	assert_int_equal(plog_partition_locate(env.p, 0, 4000, PLOG_END_HW, true, &ext, &v), 0);
	assert_int_equal(plog_partition_retain(env.p), 3);
	shim_clock_ms += 2000;
	plog_partition_reap(env.p);
	l = listed();
	assert_int_equal(l.n, 3);
	assert_int_equal(l.e[0].state, PLOG_RETIRED_HELD);
	assert_int_equal(l.e[0].pins, 1);
	assert_int_equal(l.e[1].state, PLOG_RETIRED_EMPTIED);
	assert_int_equal(plog_partition_retired_take(env.p, 0, 7), -EBUSY);
	/* the bytes are there, whatever retention did */
	iov_iter_kvec(&it, ITER_DEST, &vec, 1, ext.length);
	assert_int_equal(plog_extent_read(&ext, 0, &it), ext.length);
	assert_int_equal(plog_batch_check(bytes, ext.length, &b), 0);
	plog_extent_put(&ext);
	/* that is what it has waited for */
	for (int i = 0; i < 5000 && file_size(FIRST_LOG); i++)
		usleep(1000);
	assert_int_equal(file_size(FIRST_LOG), 0);
}

static int asked;
static bool answer;

static bool on_retired(struct plog_partition *p)
{
	(void)p;
	__atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
	return answer;
}

static const struct plog_partition_events with_daemon = { .retired = on_retired };

static void test_taken(void **state)
{
	struct listed l;

	(void)state;
	open_small();
	env.p->ops = &with_daemon;
	answer = true;
	asked = 0;
	fill(4, LEN, 1000, 1);
	assert_int_equal(start_at(2), 2);
	assert_int_equal(plog_partition_retired_take(env.p, 0, 7), -EBUSY);
	shim_clock_ms += 1001;
	plog_partition_reap(env.p);
	assert_true(asked >= 1);
	/* somebody deletes: the engine does not */
	assert_true(file_size(FIRST_LOG) > 0);
	assert_int_equal(plog_partition_retired_take(env.p, 3, 7), -ENOENT);
	assert_int_equal(plog_partition_retired_take(env.p, 0, 7), 0);
	assert_int_equal(listed().e[0].state, PLOG_RETIRED_TAKEN);
	assert_int_equal(plog_partition_retired_done(env.p, 0, 8, true), -ENOENT);
	file_remove(FIRST_LOG);
	file_remove(FIRST_INDEX);
	file_remove(FIRST_TIMEINDEX);
	assert_int_equal(plog_partition_retired_done(env.p, 0, 7, true), 0);
	l = listed();
	assert_int_equal(l.n, 1);
	assert_int_equal(l.e[0].base_offset, 1);
	/* one that dies with it leaves it to the next one */
	assert_int_equal(plog_partition_retired_take(env.p, 1, 7), 0);
	assert_int_equal(plog_partition_retired_take(env.p, 1, 8), 0);
	assert_int_equal(plog_partition_retired_done(env.p, 1, 7, true), -ENOENT);
	assert_int_equal(plog_partition_retired_done(env.p, 1, 8, false), 0);
	assert_int_equal(listed().e[0].state, PLOG_RETIRED_DELAYED);
	shim_clock_ms += 60001;
	assert_int_equal(plog_partition_retired_take(env.p, 1, 8), 0);
	/* where there is no next one the engine needs the room, and leaves the name */
	answer = false;
	plog_partition_reap(env.p);
	assert_int_equal(listed().e[0].state, PLOG_RETIRED_TAKEN);
	assert_int_equal(listed().e[0].bytes, 0);
	assert_int_equal(file_size(name_of(1, "log")), 0);
	plog_partition_reap(env.p);
	assert_int_equal(plog_partition_retired_take(env.p, 1, 9), 0);
	assert_int_equal(plog_partition_retired_done(env.p, 1, 8, true), -ENOENT);
	assert_int_equal(plog_partition_retired_done(env.p, 1, 9, true), 0);
	assert_int_equal(listed().n, 0);
}

static int done_err, reuse_err;

/* Deletes 0 while the engine is about to empty it. */
static int deletes(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)pos; (void)len; (void)done;
	if (op == SHIM_OPEN && strstr(name, FIRST_INDEX)) {
		file_remove(FIRST_LOG);
		file_remove(FIRST_INDEX);
		file_remove(FIRST_TIMEINDEX);
		done_err = plog_partition_retired_done(env.p, 0, 7, true);
		reuse_err = plog_retired_reuse(env.p, 0);
	}
	return 0;
}

/* A taker that was thought dead is done while the engine has the entry in hand. */
static void test_done_while_emptied(void **state)
{
	(void)state;
	open_small();
	env.p->ops = &with_daemon;
	fill(2, LEN, 1000, 1);
	assert_int_equal(start_at(1), 1);
	shim_clock_ms += 1001;
	assert_int_equal(plog_partition_retired_take(env.p, 0, 7), 0);
	done_err = reuse_err = 1;
	answer = false;
	shim_file_fault = deletes;
	plog_partition_reap(env.p);
	shim_file_fault = NULL;
	assert_int_equal(done_err, 0);
	/* the engine may yet cut a file of that name: no segment may have it */
	assert_int_equal(reuse_err, -EBUSY);
	assert_int_equal(listed().n, 0);
	assert_int_equal(plog_retired_reuse(env.p, 0), 0);
}

static int64_t cut_to(int64_t offset)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };
	s64 at = offset;
	int err = plog_partition_truncate(env.p, &f, &at);

	return err ? err : at;
}

/* Truncated, and grown to the same offset: the name is taken back, or stepped over. */
static void test_same_name(void **state)
{
	struct listed l;

	(void)state;
	open_small();
	env.p->ops = &with_daemon;
	answer = true;
	fill(4, LEN, 1000, 1);
	assert_int_equal(cut_to(1), 1);
	l = listed();
	assert_int_equal(l.n, 2);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(l.e[i].state, PLOG_RETIRED_EMPTIED);
	assert_int_equal(put_at(1, LEN, 0, 1000), 1);
	assert_int_equal(view().segments, 2);
	/* 2 is taken by somebody who will unlink it: the batch goes to the segment before */
	assert_int_equal(plog_partition_retired_take(env.p, 2, 7), 0);
	assert_int_equal(put_at(1, LEN, 0, 1000), 2);
	assert_int_equal(view().segments, 2);
	assert_true(file_size(name_of(1, "log")) > 1100);
	file_remove(name_of(2, "log"));
	assert_int_equal(plog_partition_retired_done(env.p, 2, 7, true), 0);
	/* 3 is listed and not taken: it is a segment again, and nobody can take it */
	assert_int_equal(put_at(1, LEN, 0, 1000), 3);
	assert_int_equal(view().segments, 3);
	assert_int_equal(plog_partition_retired_take(env.p, 3, 7), -ENOENT);
	assert_int_equal(listed().n, 0);
	assert_int_equal(walk(PLOG_END_HW), 4);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 4);
}

/* What was retired and is still there is no segment of those that segments_max allows. */
static void test_segments_max(void **state)
{
	(void)state;
	plog_segments_max = 3;
	for (int crash = 0; crash < 2; crash++) {
		s64 start;

		open_small();
		fill(3, LEN, 1000, 1);
		/* not emptied yet; then emptied */
		for (int i = 0; i < 3; i++) {
			start = view().log_end - 1;
			assert_int_equal(start_at(start), start);
			fill(2, LEN, 1000, 1);
			assert_int_equal(view().segments, 3);
			if (i == 1) {
				shim_clock_ms += 1001;
				plog_partition_reap(env.p);
			}
		}
		assert_true(listed().n >= 6);
		if (crash)
			env_crash();
		else
			env_close();
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().log_start, start);
		assert_int_equal(view().segments, 3);
		assert_int_equal(walk(PLOG_END_HW), 3);
		assert_true(listed().n >= 6);
		/* nor are those of a truncation, which lie anywhere */
		assert_int_equal(cut_to(view().log_end - 1), start + 2);
		assert_int_equal(cut_to(start + 1), start + 1);
		fill(1, 10, 1000, 1);
		if (crash)
			env_crash();
		else
			env_close();
		assert_int_equal(env_open(), 0);
		assert_int_equal(walk(PLOG_END_HW), 2);
		env_close();
		env_empty();
	}
	plog_segments_max = PLOG_SEGMENTS_MAX;
}

static int count(void *arg, const struct plog_retired_info *info)
{
	assert_int_equal(info->bytes, 0);
	++*(unsigned int *)arg;
	return 0;
}

static unsigned int retired(void)
{
	unsigned int n = 0;

	for (int i = 0; i < 5000; i++) {
		n = 0;
		plog_partition_reap(env.p);
		if (view().retired <= PLOG_RETIRED_MAX)
			break;
		usleep(1000);
	}
	assert_int_equal(plog_partition_retired(env.p, 0, count, &n), 0);
	assert_int_equal(view().retired, n);
	return n;
}

/* Where nobody deletes the names become more and more, but neither the list nor an open does. */
static void test_many_emptied(void **state)
{
	const int64_t names = PLOG_RETIRED_MAX + 200, more = 18000;

	(void)state;
	plog_segments_max = 3;
	open_small();
	for (int64_t i = 0; i < names; i++) {
		fill(1, LEN, 1000, 1);
		if (i)
			assert_int_equal(start_at(i), i);
	}
	shim_clock_ms += 1001;
	assert_int_equal(retired(), PLOG_RETIRED_MAX);
	for (int64_t i = 0; i < names - 1; i++)
		assert_int_equal(file_size(name_of(i, "log")), 0);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 1);
	assert_int_equal(retired(), PLOG_RETIRED_MAX);
	/* one that was not emptied before the stop, behind those that are listed */
	fill(1, LEN, 1000, 1);
	assert_int_equal(start_at(names), names);
	env_crash();
	assert_true(file_size(name_of(names - 1, "log")) > 0);
	assert_int_equal(env_open(), 0);
	assert_int_equal(retired(), PLOG_RETIRED_MAX);
	assert_int_equal(file_size(name_of(names - 1, "log")), 0);
	/* and as many as no one look at the directory takes, before the log and in it */
	for (int64_t i = 0; i < more; i++)
		file_write(name_of(i < more / 2 ? names + 1000 + i : 2 * names + 1000000 + i,
				   "log"), 0, "", 0);
	fill(1, LEN, 1000, 1);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 2);
	assert_int_equal(view().log_start, names);
	assert_int_equal(view().segments, 2);
	assert_int_equal(retired(), PLOG_RETIRED_MAX);
	fill(1, LEN, 1000, 1);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 3);
	plog_segments_max = PLOG_SEGMENTS_MAX;
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_emptied), T(test_reopened), T(test_pinned), T(test_taken),
		T(test_done_while_emptied), T(test_same_name), T(test_segments_max),
		T(test_many_emptied),
	};

	return cmocka_run_group_tests_name("engine retired segments", tests, NULL, NULL);
}
