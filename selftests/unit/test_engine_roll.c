// SPDX-License-Identifier: MIT
/*
 * Rolls: by command, by age with its jitter, by full indexes, and the room that a new
 * segment's log is given.
 */
#include "engine.h"

#include <sys/stat.h>

#include "../../kmod/engine.h"

static int64_t roll(void)
{
	s64 base;
	int err = plog_partition_roll(env.p, NULL, &base);

	return err ? err : base;
}

static void test_roll(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	assert_int_equal(roll(), 0);
	assert_int_equal(view().segments, 1);
	put(3, 100, 1);
	assert_int_equal(roll(), 3);
	assert_int_equal(roll(), 3);
	assert_int_equal(view().segments, 2);
	put(2, 100, 1);
	env_close();
	assert_int_equal(env_open(), 0);
	/* the last segment of a clean log is not even open */
	assert_int_equal(roll(), 5);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().segments, 3);
	assert_int_equal(view().log_end, 5);
	assert_int_equal(put(1, 100, 1), 5);
	assert_int_equal(walk(PLOG_END_HW), 6);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 6);
}

static u64 chosen;

static u64 choose(void)
{
	return chosen;
}

static void test_jitter(void **state)
{
	(void)state;
	shim_random = choose;
	env.config.segment_ms = 10000;
	env.config.segment_jitter_ms = 4000;
	chosen = 3000;
	assert_int_equal(env_open(), 0);
	put_at(1, 10, 0, plog_now_ms());
	/* a segment that lay there has its jitter since the first append */
	shim_clock_ms += 6000;
	put_at(1, 10, 0, plog_now_ms());
	assert_int_equal(view().segments, 1);
	chosen = 4001;	/* modulo 4000: 1 */
	shim_clock_ms += 1500;
	put_at(1, 10, 0, plog_now_ms());
	assert_int_equal(view().segments, 2);
	shim_clock_ms += 9500;
	put_at(1, 10, 0, plog_now_ms());
	assert_int_equal(view().segments, 2);
	shim_clock_ms += 1000;
	/* never more than segment.ms itself */
	env.config.segment_jitter_ms = INT64_MAX;
	chosen = 19999;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	put_at(1, 10, 0, plog_now_ms());
	assert_int_equal(view().segments, 3);
	shim_clock_ms += 2;
	put_at(1, 10, 0, plog_now_ms());
	assert_int_equal(view().segments, 4);
	shim_random = NULL;
}

/* segment.index.bytes holds for segments that begin after it was set. */
static void test_index_bytes(void **state)
{
	(void)state;
	env.config.index_interval_bytes = 0;
	env.config.index_bytes = 80;
	assert_int_equal(env_open(), 0);
	put(1, 10, 0);
	env.config.index_bytes = 24;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	/* the time index has room for 80 / 12 entries, the last of them for the roll */
	for (int i = 1; i <= 5; i++)
		put(1, 10, i);
	assert_int_equal(view().segments, 1);
	put(1, 10, 6);
	assert_int_equal(view().segments, 2);
	put(1, 10, 7);
	assert_int_equal(view().segments, 2);
	put(1, 10, 8);
	assert_int_equal(view().segments, 3);
}

static long blocks_of(const char *name)
{
	char path[200];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", env.dir, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_blocks * 512;
}

static void test_preallocate(void **state)
{
	(void)state;
	env.config.segment_bytes = 1 << 20;
	env.config.preallocate = true;
	assert_int_equal(env_open(), 0);
	put(1, 100, 0);
	assert_true(file_size(FIRST_LOG) < 300);
	assert_true(blocks_of(FIRST_LOG) >= 1 << 20);
	assert_int_equal(roll(), 1);
	assert_true(blocks_of(FIRST_LOG) < 65536);
	assert_true(blocks_of("00000000000000000001.log") >= 1 << 20);
	put(1, 100, 0);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 2);
	put(1, 100, 0);
	env_close();
	env.config.preallocate = false;
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 3);
	assert_int_equal(roll(), 3);
	assert_true(blocks_of("00000000000000000003.log") < 65536);
}

static int no_room(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	return op == SHIM_PREALLOCATE ? -ENOSPC : 0;
}

static void test_preallocate_refused(void **state)
{
	(void)state;
	env.config.preallocate = true;
	shim_file_fault = no_room;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(1, 100, 0), 0);
	assert_int_equal(roll(), 1);
	assert_int_equal(put(1, 100, 0), 1);
	assert_non_null(strstr(env.log, "no room"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_roll), T(test_jitter), T(test_index_bytes), T(test_preallocate),
		T(test_preallocate_refused),
	};

	return cmocka_run_group_tests_name("engine roll", tests, NULL, NULL);
}
