// SPDX-License-Identifier: MIT
/* Flush policies: what flush.messages and flush.ms sync, and what a sync that fails says. */
#include "engine.h"

#include "../../kmod/engine.h"

static s64 point(void)
{
	s64 at;

	spin_lock(&env.p->point_lock);
	at = env.p->recovery_point;
	spin_unlock(&env.p->point_lock);
	return at;
}

static void test_flush_messages(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	put(5, 10, 0);
	assert_int_equal(point(), 0);
	env.config.flush_messages = 10;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	put(4, 10, 0);
	assert_int_equal(point(), 0);
	put(1, 10, 0);
	assert_int_equal(point(), 10);
	put(9, 10, 0);
	assert_int_equal(point(), 10);
	put(9, 10, 0);
	assert_int_equal(point(), 28);
	env.config.flush_messages = 1;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	put(1, 10, 0);
	assert_int_equal(point(), 29);
}

static int refuse_log(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	return op == SHIM_SYNC && strstr(name, ".log") ? -EIO : 0;
}

static void test_flush_fails(void **state)
{
	(void)state;
	env.config.flush_messages = 2;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(1, 10, 0), 0);
	shim_file_fault = refuse_log;
	assert_int_equal(put(1, 10, 0), -EIO);
	assert_int_equal(view().state, PLOG_PARTITION_FENCED);
	assert_int_equal(view().log_end, 2);
	assert_int_equal(put(1, 10, 0), -EROFS);
}

static enum shim_file_op refused_op;
static int refused_with;

static int refuse(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	return op == refused_op && !strcmp(name, FIRST_LOG) ? refused_with : 0;
}

/* What was appended and not synced is told by one error, which says nothing else. */
static void test_flush_lacks(void **state)
{
	static const int lacks[] = { -ENOMEM, -ENFILE, -EMFILE };
	unsigned int idle_max = plog_segment_idle_max;
	s64 base;

	(void)state;
	env.config.flush_messages = 1;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(1, 10, 0), 0);
	/* the first segment is synced and its files are closed; a sync opens it again */
	plog_segment_idle_max = 0;
	assert_int_equal(plog_partition_roll(env.p, NULL, &base), 0);
	flush_work(&env.p->flush_work);
	refused_op = SHIM_OPEN;
	for (int i = 0; i < 3; i++) {
		refused_with = lacks[i];
		shim_file_fault = refuse;
		assert_int_equal(put(1, 10, 0), -EIO);
		shim_file_fault = NULL;
		assert_int_equal(view().state, PLOG_PARTITION_ONLINE);
		assert_int_equal(view().log_end, i + 2);
		assert_int_equal(point(), 1);
	}
	plog_segment_idle_max = idle_max;
	assert_int_equal(put(1, 10, 0), 4);
	assert_int_equal(point(), 5);
	env_close();
	env_empty();
	assert_int_equal(env_open(), 0);
	/* a disk that is full only when it is synced, as over a network */
	refused_op = SHIM_SYNC;
	refused_with = -ENOSPC;
	shim_file_fault = refuse;
	assert_int_equal(put(1, 10, 0), -EIO);
	assert_int_equal(view().log_end, 1);
	assert_int_equal(view().state, PLOG_PARTITION_FENCED);
	assert_int_equal(view().error, ENOSPC);
}

static void wait_point(s64 wanted)
{
	for (int i = 0; i < 20000 && point() < wanted; i++)
		usleep(1000);
	assert_int_equal(point(), wanted);
}

static void test_flush_ms(void **state)
{
	(void)state;
	env.config.flush_ms = 1;
	assert_int_equal(env_open(), 0);
	put(3, 10, 0);
	wait_point(3);
	put(3, 10, 0);
	wait_point(6);
	/* written down too: an unclean stop checks from there on */
	env.config.flush_ms = INT64_MAX - 1;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	put(3, 10, 0);
	mutex_lock(&env.p->state_lock);
	assert_true(env.p->saved.recovery_point >= 3);
	mutex_unlock(&env.p->state_lock);
	/* a close does not wait for a clock that is far from over */
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_true(point() >= 3);
	assert_int_equal(walk(PLOG_END_HW), 9);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_flush_messages), T(test_flush_fails), T(test_flush_lacks), T(test_flush_ms),
	};

	return cmocka_run_group_tests_name("engine flush", tests, NULL, NULL);
}
