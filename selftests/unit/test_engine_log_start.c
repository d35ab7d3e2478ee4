// SPDX-License-Identifier: MIT
/* The log start by command: DeleteRecords. */
#include "segments.h"

static void test_log_start(void **state)
{
	(void)state;
	open_small();
	for (int i = 0; i < 4; i++)
		put_at(5, 100, i, 1000);
	assert_int_equal(view().segments, 4);
	assert_int_equal(start_at(21), -ERANGE);
	assert_int_equal(start_at(-1), -ERANGE);
	/* inside a batch of the second segment: the first one goes */
	assert_int_equal(start_at(7), 7);
	assert_int_equal(view().segments, 3);
	assert_int_equal(view().log_start, 7);
	assert_int_equal(start_at(3), 7);
	assert_int_equal(start_at(10), 10);
	assert_int_equal(view().segments, 2);
	/* the active one stays, whatever lies below the start in it */
	assert_int_equal(start_at(20), 20);
	assert_int_equal(view().segments, 1);
	assert_int_equal(view().log_end, 20);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 20);
	assert_int_equal(view().log_end, 20);
	assert_int_equal(put_at(1, 100, 1, 1000), 20);
	assert_int_equal(walk(PLOG_END_HW), 1);
	/* whatever cleanup.policy says, what lies below the start goes once it can */
	assert_int_equal(put_at(5, 100, 1, 1000), 21);
	assert_int_equal(view().segments, 2);
	assert_int_equal(start_at(21), 21);
	assert_int_equal(view().segments, 1);
}

static void test_log_start_read(void **state)
{
	struct plog_extent ext = { 0 };
	struct plog_view v;

	(void)state;
	open_small();
	for (int i = 0; i < 3; i++)
		put_at(5, 100, i, 1000);
	assert_int_equal(start_at(7), 7);
	assert_int_equal(plog_partition_locate(env.p, 6, 1000, PLOG_END_HW, true, &ext, &v), -ERANGE);
	assert_int_equal(plog_partition_locate(env.p, 0, 1000, PLOG_END_HW, true, &ext, &v), -ERANGE);
	assert_int_equal(v.log_start, 7);
	/* the batch comes whole */
	assert_int_equal(plog_partition_locate(env.p, 7, 1000, PLOG_END_HW, true, &ext, &v), 0);
	assert_int_equal(ext.base_offset, 5);
	plog_extent_put(&ext);
}

static int refuse_state(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	return op == SHIM_SYNC && !strcmp(name, "plog.state") ? -EIO : 0;
}

/* A start that cannot be written down is none. */
static void test_log_start_not_saved(void **state)
{
	(void)state;
	open_small();
	for (int i = 0; i < 3; i++)
		put_at(5, 100, i, plog_now_ms() - 9 * DAY);
	shim_file_fault = refuse_state;
	assert_int_equal(start_at(7), -EIO);
	assert_int_equal(view().log_start, 0);
	env.config.retention_ms = DAY;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	assert_int_equal(plog_partition_retain(env.p), -EIO);
	assert_int_equal(view().log_start, 0);
	assert_int_equal(listed().n, 0);
	shim_file_fault = NULL;
	assert_int_equal(start_at(7), 7);
	assert_int_equal(view().segments, 3);	/* one more that retention has rolled */
}

static u64 incarnation;

static int succeeded(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	if (op == SHIM_SYNC && !strcmp(name, "plog.state"))
		incarnation = 2;
	return 0;
}

/* A start that is written down is one, whoever comes then; and who is refused has moved nothing. */
static void test_log_start_of_another(void **state)
{
	struct plog_fence f = { .incarnation = 1, .current_incarnation = &incarnation };
	s64 at, start = 0;

	(void)state;
	open_small();
	for (int i = 0; i < 3; i++)
		put_at(5, 100, i, 1000);
	f.leader_epoch = view().leader_epoch;
	for (int i = 0; i < 2; i++) {
		incarnation = 1 + i;
		at = 7 + i;
		shim_file_fault = succeeded;
		if (!plog_partition_set_log_start(env.p, &f, &at))
			start = at;
		shim_file_fault = NULL;
		assert_int_equal(view().log_start, start);
		env_crash();
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().log_start, start);
	}
	/* the second one was refused, before anything was written */
	assert_int_equal(start, 7);
	assert_int_equal(walk(PLOG_END_HW), 10);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_log_start), T(test_log_start_read), T(test_log_start_not_saved),
		T(test_log_start_of_another),
	};

	return cmocka_run_group_tests_name("engine log start", tests, NULL, NULL);
}
