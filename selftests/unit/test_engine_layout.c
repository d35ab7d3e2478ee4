// SPDX-License-Identifier: MIT
/* Segments and indexes as another program reads them: segments.py. */
#include "engine.h"

static void judge(const char *options)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "python3 " SRCDIR "/segments.py %s %s", env.dir, options);
	fflush(stdout);
	assert_int_equal(system(cmd), 0);
}

static void fill(int batches)
{
	for (int i = 0; i < batches; i++)
		put_at(1 + random() % 4, 1 + random() % 400, i, 10000 + i + random() % 300);
}

static void test_layout(void **state)
{
	struct plog_fence f = { 0 };
	s64 to;

	(void)state;
	srandom(11);
	env.config.segment_bytes = 60000;
	env.config.index_interval_bytes = 700;
	assert_int_equal(env_open(), 0);
	fill(500);
	judge("--live");
	env_close();
	judge("");
	/* after a crash, once it was opened and closed again */
	assert_int_equal(env_open(), 0);
	fill(100);
	env_crash();
	assert_int_equal(env_open(), 0);
	env_close();
	judge("");
	/* after a truncation inside a segment, and more */
	assert_int_equal(env_open(), 0);
	to = view().log_end - 20;
	assert_int_equal(plog_partition_truncate(env.p, &f, &to), 0);
	judge("--live");
	fill(200);
	env_close();
	judge("");
}

/* A topic without times, and one whose times are the broker's. */
static void test_times(void **state)
{
	(void)state;
	env.config.index_interval_bytes = 300;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 50; i++)
		put_at(1, 100, i, -1);
	env.config.flags = PLOG_STATE_LOG_APPEND_TIME;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	fill(50);
	env_close();
	judge("");
}

/* That it would see a fault. */
static void test_judge(void **state)
{
	char cmd[256];

	(void)state;
	assert_int_equal(env_open(), 0);
	fill(100);
	env_close();
	file_write(FIRST_INDEX, 3, "\x7f", 1);
	snprintf(cmd, sizeof(cmd), "python3 " SRCDIR "/segments.py %s", env.dir);
	fflush(stdout);
	assert_int_not_equal(system(cmd), 0);
}

/* Indexes that lie about where a log begins have nothing to say of it. */
static void test_left_indexes(void **state)
{
	uint8_t entries[2400];
	struct plog_time_hit hit;

	(void)state;
	for (int i = 0; i < 200; i++) {
		put_unaligned_be64(5000 + i, entries + 12 * i);
		put_unaligned_be32(3 * i, entries + 12 * i + 8);
	}
	file_write(FIRST_TIMEINDEX, 0, entries, sizeof(entries));
	for (int i = 0; i < 300; i++) {
		put_unaligned_be32(2 * i + 2, entries + 8 * i);
		put_unaligned_be32(100 * i + 100, entries + 8 * i + 4);
	}
	file_write(FIRST_INDEX, 0, entries, sizeof(entries));
	env.config.index_interval_bytes = 500;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(put_at(1, 300, i, 1000 + i), i);
		assert_int_equal(walk(PLOG_END_HW), i + 1);
		assert_int_equal(plog_partition_lookup(env.p, 1000 + i, false, PLOG_END_HW, &hit),
				 0);
		assert_int_equal(hit.offset, i);
	}
	judge("--live");
	env_close();
	judge("");
	assert_true(file_size(FIRST_INDEX) < 20 * 8);
	assert_true(file_size(FIRST_TIMEINDEX) < 20 * 12);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_layout), T(test_times), T(test_judge),
		T(test_left_indexes) };

	return cmocka_run_group_tests_name("engine layout", tests, NULL, NULL);
}
