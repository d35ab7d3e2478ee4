// SPDX-License-Identifier: MIT
/* Retention by time and by size, on a clock that the test turns. */
#include "segments.h"

static bool exists(int64_t base, const char *kind)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", env.dir, name_of(base, kind));
	return access(path, F_OK) == 0;
}

/* ---- by time ---- */

static void test_time(void **state)
{
	int64_t now = plog_now_ms();

	(void)state;
	env.config.retention_ms = 10 * DAY;
	open_small();
	/* days -15, -12, -9, -6, -3, 0 */
	fill(6, LEN, now, 3 * DAY);
	assert_int_equal(view().segments, 6);
	assert_int_equal(plog_partition_retain(env.p), 2);
	assert_int_equal(view().log_start, 2);
	assert_int_equal(view().log_end, 6);
	assert_int_equal(view().segments, 4);
	assert_int_equal(plog_partition_retain(env.p), 0);
	assert_int_equal(walk(PLOG_END_HW), 4);
	/* not a millisecond before: -9 days is kept until 10 days are over, and then one more ms */
	shim_clock_ms += DAY - 1000;
	assert_int_equal(plog_partition_retain(env.p), 0);
	shim_clock_ms += 2000;
	assert_int_equal(plog_partition_retain(env.p), 1);
	assert_int_equal(view().log_start, 3);
	/* never back */
	assert_int_equal(start_at(1), 3);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 3);
	assert_int_equal(walk(PLOG_END_HW), 3);
}

/* The newest record of a segment decides, wherever it stands. */
static void test_time_out_of_order(void **state)
{
	int64_t now = plog_now_ms();

	(void)state;
	env.config.retention_ms = DAY;
	env.config.segment_bytes = 2000;
	env.config.max_message_bytes = 1024;
	assert_int_equal(env_open(), 0);
	put_at(1, LEN, 0, now);
	put_at(1, LEN, 1, now - 5 * DAY);
	put_at(1, LEN, 2, now - 5 * DAY);
	put_at(1, LEN, 3, now - 5 * DAY);	/* in the second segment */
	put_at(1, LEN, 4, now - 5 * DAY);
	put_at(1, LEN, 5, now - 5 * DAY);
	put_at(1, LEN, 6, now);
	assert_int_equal(view().segments, 3);
	/* the first one is new, so that nothing behind it goes either */
	assert_int_equal(plog_partition_retain(env.p), 0);
	assert_int_equal(view().log_start, 0);
	shim_clock_ms += DAY + 1000;
	assert_int_equal(plog_partition_retain(env.p), 3);
	assert_int_equal(view().log_start, 7);
}

static void test_future(void **state)
{
	int64_t now = plog_now_ms();

	(void)state;
	env.config.retention_ms = DAY;
	open_small();
	put_at(1, LEN, 0, now - 9 * DAY);
	put_at(1, LEN, 1, now + 5 * DAY);
	put_at(1, LEN, 2, now - 9 * DAY);
	put_at(1, LEN, 3, now);
	assert_int_equal(plog_partition_retain(env.p), 1);
	assert_int_equal(view().log_start, 1);
	assert_non_null(strstr(env.log, "future"));
	env.log[0] = 0;
	assert_int_equal(plog_partition_retain(env.p), 0);
	/* said once */
	assert_null(strstr(env.log, "future"));
	shim_clock_ms += 6 * DAY + 1000;
	/* all of it by now */
	assert_int_equal(plog_partition_retain(env.p), 3);
	assert_int_equal(view().log_start, 4);
}

/* Records without a time: the file's own counts. */
static void test_no_timestamp(void **state)
{
	(void)state;
	env.config.retention_ms = DAY;
	open_small();
	for (int i = 0; i < 3; i++)
		put_at(1, LEN, i, -1);
	assert_int_equal(plog_partition_retain(env.p), 0);
	shim_clock_ms += DAY + 2000;
	assert_int_equal(plog_partition_retain(env.p), 3);
	assert_int_equal(view().log_start, 3);
	assert_int_equal(view().max_timestamp, -1);
}

static void test_unlimited(void **state)
{
	(void)state;
	open_small();
	fill(4, LEN, 1000, 10);
	shim_clock_ms += 20000 * DAY;
	assert_int_equal(plog_partition_retain(env.p), 0);
	env.config.retention_ms = INT64_MAX;
	env.config.retention_bytes = INT64_MAX;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	assert_int_equal(plog_partition_retain(env.p), 0);
	/* at once changeable; 0 keeps nothing that is a millisecond old */
	env.config.retention_ms = 0;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	assert_int_equal(plog_partition_retain(env.p), 4);
	assert_int_equal(view().log_start, 4);
}

/* Everything has expired: a new segment at the log end, which stays. */
static void test_all_expired(void **state)
{
	(void)state;
	env.config.retention_ms = DAY;
	open_small();
	fill(3, LEN, plog_now_ms() - 3 * DAY, 10);
	assert_int_equal(plog_partition_retain(env.p), 3);
	assert_int_equal(view().log_start, 3);
	assert_int_equal(view().log_end, 3);
	assert_int_equal(view().segments, 1);
	assert_int_equal(view().bytes, 0);
	assert_int_equal(view().max_timestamp, -1);
	assert_true(exists(3, "log"));
	/* an empty one never goes */
	assert_int_equal(plog_partition_retain(env.p), 0);
	assert_int_equal(put_at(1, LEN, 9, plog_now_ms()), 3);
	assert_int_equal(view().segments, 1);
	assert_int_equal(walk(PLOG_END_HW), 1);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 3);
	assert_int_equal(view().log_end, 4);
	assert_int_equal(walk(PLOG_END_HW), 1);
}

/*
 * What is appended while retention is at work is not what it has judged, wherever that
 * comes between: to the segment that had expired, and with a roll behind it.
 */
static struct {
	int left;	/* times that the append mutex is taken before */
	bool roll;
	int64_t fresh;
} meanwhile;

static void append_meanwhile(struct mutex *l)
{
	s64 base;

	if (l != &env.p->lock || meanwhile.left--)
		return;
	shim_locking = NULL;
	meanwhile.fresh = put_at(1, 20, 7, plog_now_ms());
	assert_true(meanwhile.fresh > 0);
	if (meanwhile.roll)
		assert_int_equal(plog_partition_roll(env.p, NULL, &base), 0);
}

static void test_appended_meanwhile(void **state)
{
	int asked = 0;

	(void)state;
	env.config.retention_ms = DAY;
	open_small();
	for (int k = 0; k < 20; k++) {
		fill(3, LEN, plog_now_ms() - 3 * DAY, 10);
		meanwhile.left = k / 2;
		meanwhile.roll = k % 2;
		meanwhile.fresh = -1;
		shim_locking = append_meanwhile;
		assert_true(plog_partition_retain(env.p) >= 0);
		shim_locking = NULL;
		if (meanwhile.fresh >= 0) {
			asked++;
			assert_in_range(meanwhile.fresh, view().log_start, view().log_end - 1);
			/* and what was left is no more than its segment */
			assert_true(plog_partition_retain(env.p) >= 0);
			assert_in_range(meanwhile.fresh - view().log_start, 0, 1);
			assert_int_equal(walk(PLOG_END_HW), view().log_end - view().log_start);
		}
		shim_clock_ms += 3 * DAY;
		assert_true(plog_partition_retain(env.p) >= 0);
		assert_int_equal(view().log_start, view().log_end);
	}
	assert_true(asked > 6);
}

static int reads;	/* that succeed */

static int no_read(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	return op == SHIM_READ && !strcmp(name, FIRST_LOG) && reads-- <= 0 ? -EIO : 0;
}

/* A replica's batches that cannot be read again, once they are written, are as new as they said. */
static void test_time_unread(void **state)
{
	int taken = 0;

	(void)state;
	env.config.retention_ms = DAY;
	for (int i = 0; i < 16; i++) {
		int64_t got;
		size_t n = 0;

		env_empty();
		assert_int_equal(env_open(), 0);
		for (int k = 0; k < 3; k++) {
			uint8_t *at = env.buf + n;

			n += make_batch(at, 1, 20, k, plog_now_ms() - (k < 2 ? 3 * DAY : 0));
			put_unaligned_be64(k, at);
			put_unaligned_be32(0, at + 12);
		}
		reads = i;
		shim_file_fault = no_read;
		got = append_as(n, ITER, PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA);
		shim_file_fault = NULL;
		taken += got == 0;
		assert_int_equal(plog_partition_retain(env.p), 0);
		assert_int_equal(view().log_start, 0);
		assert_int_equal(walk(PLOG_END_HW), got ? 0 : 3);
		env_crash();
	}
	assert_in_range(taken, 4, 15);
}

/* ---- by size ---- */

static void test_size(void **state)
{
	uint64_t one;

	(void)state;
	open_small();
	put_at(1, LEN, 0, 1000);
	one = view().bytes;
	fill(4, LEN, 1000, 1);
	assert_int_equal(view().bytes, 5 * one);
	/* what stays is at least retention.bytes: 5 - 2 segments are below 3 and a half */
	env.config.retention_bytes = 3 * one + one / 2;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	assert_int_equal(plog_partition_retain(env.p), 1);
	assert_int_equal(view().log_start, 1);
	assert_int_equal(view().bytes, 4 * one);
	env.config.retention_bytes = 3 * one;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	assert_int_equal(plog_partition_retain(env.p), 1);
	assert_int_equal(view().bytes, 3 * one);
	/* one byte less and the rule does not give another one away */
	env.config.retention_bytes = 2 * one + 1;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	assert_int_equal(plog_partition_retain(env.p), 0);
	env.config.retention_bytes = 0;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	assert_int_equal(plog_partition_retain(env.p), 3);
	assert_int_equal(view().log_start, 5);
	assert_int_equal(view().log_end, 5);
	assert_int_equal(view().bytes, 0);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 5);
	assert_int_equal(view().bytes, 0);
}

/* ---- what protects ---- */

static void set_hw(int64_t offset)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };
	s64 at = offset;

	assert_int_equal(plog_partition_set_hw(env.p, &f, &at), 0);
	assert_int_equal(at, offset);
}

static void test_high_watermark(void **state)
{
	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
	env.config.retention_ms = DAY;
	open_small();
	fill(5, LEN, plog_now_ms() - 9 * DAY, 10);
	assert_int_equal(plog_partition_retain(env.p), 0);
	assert_int_equal(view().log_start, 0);
	set_hw(3);
	assert_int_equal(plog_partition_retain(env.p), 3);
	assert_int_equal(view().log_start, 3);
	set_hw(4);
	assert_int_equal(plog_partition_retain(env.p), 1);
	assert_int_equal(view().log_start, 4);
	assert_int_equal(view().segments, 1);
	set_hw(5);
	assert_int_equal(plog_partition_retain(env.p), 1);
	assert_int_equal(view().log_start, 5);
	assert_int_equal(view().log_end, 5);
}

/* Batches of more than one record: a high watermark inside the last of a segment holds it. */
static void test_high_watermark_inside(void **state)
{
	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
	env.config.retention_ms = DAY;
	open_small();
	for (int i = 0; i < 3; i++)
		put_at(5, 100, i, plog_now_ms() - 9 * DAY);
	assert_int_equal(view().segments, 3);
	set_hw(9);
	assert_int_equal(plog_partition_retain(env.p), 1);
	assert_int_equal(view().log_start, 5);
	set_hw(10);
	assert_int_equal(plog_partition_retain(env.p), 1);
	assert_int_equal(view().log_start, 10);
}

static void test_fenced(void **state)
{
	(void)state;
	env.config.retention_ms = DAY;
	assert_int_equal(env_open(), 0);
	fill(2, 100, plog_now_ms() - 9 * DAY, 10);
	mutex_lock(&env.p->lock);
	plog_fence(env.p, -EIO, "for the test");
	mutex_unlock(&env.p->lock);
	assert_int_equal(plog_partition_retain(env.p), -EROFS);
	assert_int_equal(start_at(1), -EROFS);
	assert_int_equal(view().log_start, 0);
}

/* Nothing is lost by a lack of memory, wherever it strikes. */
static void test_no_memory(void **state)
{
	int64_t now = plog_now_ms();
	int fails = 0;

	(void)state;
	open_small();
	for (int n = 1; n < 60; n++) {
		int ret;
		s64 before = view().log_end;

		fill(3, LEN, now - 9 * DAY, 10);
		env.config.retention_ms = DAY;
		assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
		shim_failed_allocs = 0;
		shim_fail_alloc = n;
		ret = plog_partition_retain(env.p);
		shim_fail_alloc = 0;
		if (ret < 0) {
			assert_int_equal(ret, -ENOMEM);
			fails++;
			ret = plog_partition_retain(env.p);
			assert_true(ret >= 0);
		} else if (shim_failed_allocs) {
			/* a worker's, or of a help that it does without */
			plog_partition_retain(env.p);
		}
		assert_int_equal(view().log_start, before + 3);
		assert_int_equal(view().log_end, before + 3);
		assert_int_equal(view().segments, 1);
		assert_int_equal(walk(PLOG_END_HW), 0);
	}
	assert_true(fails > 3);
}

static void test_ranges(void **state)
{
	const char *what;

	(void)state;
#define WRONG(field, value, name) do {						\
	struct plog_config c;							\
	plog_config_init(&c);							\
	c.field = (value);							\
	assert_int_equal(plog_config_check(&c, &what), -ERANGE);		\
	assert_string_equal(what, name);					\
} while (0)
	WRONG(retention_ms, -2, "retention.ms");
	WRONG(retention_bytes, -2, "retention.bytes");
	WRONG(file_delete_delay_ms, 1ULL << 63, "file.delete.delay.ms");
	WRONG(segment_jitter_ms, 1ULL << 63, "segment.jitter.ms");
	WRONG(flush_messages, 0, "flush.messages");
	WRONG(flush_messages, 1ULL << 63, "flush.messages");
	WRONG(flush_ms, 1ULL << 63, "flush.ms");
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_time), T(test_time_out_of_order), T(test_future), T(test_no_timestamp),
		T(test_unlimited), T(test_all_expired), T(test_appended_meanwhile),
		T(test_time_unread), T(test_size), T(test_high_watermark),
		T(test_high_watermark_inside), T(test_fenced), T(test_no_memory),
		T(test_ranges),
	};

	return cmocka_run_group_tests_name("engine retention", tests, NULL, NULL);
}
