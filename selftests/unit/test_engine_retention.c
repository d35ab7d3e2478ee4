// SPDX-License-Identifier: MIT
/*
 * Retention, retired segments, log starts and rolls, on a clock that the test
 * turns.
 */
#include "engine.h"

#include "../../kmod/engine.h"

#define DAY (24LL * 60 * 60 * 1000)

static int64_t now_ms(void)
{
	return plog_now_ms();
}

/* Segments of one batch each, of @len bytes a record, whose times are @step apart and end at @last. */
static void fill(unsigned int n, unsigned int len, int64_t last, int64_t step)
{
	for (unsigned int i = 0; i < n; i++)
		assert_true(put_at(1, len, i, last - step * (n - 1 - i)) >= 0);
}

static void open_small(void)
{
	env.config.segment_bytes = 1100;
	env.config.max_message_bytes = 1024;
	env.config.file_delete_delay_ms = 1000;
	assert_int_equal(env_open(), 0);
}

/* Batches of 600 bytes: a segment each. */
#define LEN 530

static const char *name_of(int64_t base, const char *kind)
{
	static char name[64];

	snprintf(name, sizeof(name), "%020lld.%s", (long long)base, kind);
	return name;
}

static bool exists(int64_t base, const char *kind)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", env.dir, name_of(base, kind));
	return access(path, F_OK) == 0;
}

struct listed {
	unsigned int n;
	struct plog_retired_info e[64];
};

static int note(void *arg, const struct plog_retired_info *info)
{
	struct listed *l = arg;

	assert_true(l->n < 64);
	l->e[l->n++] = *info;
	return 0;
}

static struct listed listed(void)
{
	struct listed l = { 0 };

	assert_int_equal(plog_partition_retired(env.p, 0, note, &l), 0);
	assert_int_equal(view().retired, l.n);
	return l;
}

static int64_t start_at(int64_t offset)
{
	s64 at = offset;
	int err = plog_partition_set_log_start(env.p, NULL, &at);

	return err ? err : at;
}

/* ---- by time ---- */

static void test_time(void **state)
{
	int64_t now = now_ms();

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
	int64_t now = now_ms();

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
	int64_t now = now_ms();

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
	fill(3, LEN, now_ms() - 3 * DAY, 10);
	assert_int_equal(plog_partition_retain(env.p), 3);
	assert_int_equal(view().log_start, 3);
	assert_int_equal(view().log_end, 3);
	assert_int_equal(view().segments, 1);
	assert_int_equal(view().bytes, 0);
	assert_int_equal(view().max_timestamp, -1);
	assert_true(exists(3, "log"));
	/* an empty one never goes */
	assert_int_equal(plog_partition_retain(env.p), 0);
	assert_int_equal(put_at(1, LEN, 9, now_ms()), 3);
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
	meanwhile.fresh = put_at(1, 20, 7, now_ms());
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
		fill(3, LEN, now_ms() - 3 * DAY, 10);
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

			n += make_batch(at, 1, 20, k, now_ms() - (k < 2 ? 3 * DAY : 0));
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
	fill(5, LEN, now_ms() - 9 * DAY, 10);
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
		put_at(5, 100, i, now_ms() - 9 * DAY);
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
	fill(2, 100, now_ms() - 9 * DAY, 10);
	mutex_lock(&env.p->lock);
	plog_fence(env.p, -EIO, "for the test");
	mutex_unlock(&env.p->lock);
	assert_int_equal(plog_partition_retain(env.p), -EROFS);
	assert_int_equal(start_at(1), -EROFS);
	assert_int_equal(view().log_start, 0);
}

/* ---- the log start by command ---- */

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
		put_at(5, 100, i, now_ms() - 9 * DAY);
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

/* Nothing is lost by a lack of memory, wherever it strikes. */
static void test_no_memory(void **state)
{
	int64_t now = now_ms();
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

/* ---- retired files ---- */

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
	fill(3, LEN, now_ms() - 9 * DAY, 1);
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
		T(test_high_watermark_inside), T(test_fenced), T(test_log_start),
		T(test_log_start_read), T(test_log_start_not_saved), T(test_log_start_of_another),
		T(test_no_memory), T(test_emptied), T(test_reopened), T(test_pinned),
		T(test_taken), T(test_done_while_emptied), T(test_same_name),
		T(test_segments_max), T(test_many_emptied), T(test_ranges),
	};

	return cmocka_run_group_tests_name("engine retention", tests, NULL, NULL);
}
