// SPDX-License-Identifier: MIT
/* The header iterator: what it gives, where it ends, and what it makes of damage. */
#include "transaction.h"

static struct plog_batch_header got[PLOG_HEADERS_MAX + 1];
static uint32_t count;

static int ask(enum plog_end end, uint32_t flags, int64_t *offset, uint32_t room)
{
	struct plog_view v;
	s64 at = *offset;
	int err;

	count = room;
	err = plog_partition_headers(env.p, end, flags, &at, got, &count, &v);
	*offset = at;
	if (!err)
		assert_int_equal(v.log_end, view().log_end);
	return err;
}

static void open_small(void)
{
	env.config.segment_bytes = 1024;
	env.config.index_interval_bytes = 200;
	assert_int_equal(env_open(), 0);
}

static void test_fields(void **state)
{
	int64_t at = 0;
	size_t n;

	(void)state;
	assert_int_equal(env_open(), 0);
	n = make_batch(env.buf, 3, 20, 5, 4000);
	of_producer(env.buf, n, 77, true);
	append_says(n, PLOG_UNSTABLE_HERE);
	put_marker(77, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE);
	put_marker(78, PLOG_CONTROL_ABORT, PLOG_UNSTABLE_NONE);
	assert_int_equal(ask(PLOG_END_HW, 0, &at, 10), 0);
	assert_int_equal(count, 3);
	assert_int_equal(at, 5);
	assert_int_equal(got[0].base_offset, 0);
	assert_int_equal(got[0].last_offset, 2);
	assert_int_equal(got[0].base_timestamp, 4000);
	assert_int_equal(got[0].max_timestamp, 4000);
	assert_int_equal(got[0].producer_id, 77);
	assert_int_equal(got[0].producer_epoch, 3);
	assert_int_equal(got[0].base_sequence, 0);
	assert_int_equal(got[0].count, 3);
	assert_int_equal(got[0].size, n);
	assert_int_equal(got[0].attributes, PLOG_ATTR_TRANSACTIONAL);
	assert_int_equal(got[0].control, -1);
	assert_int_equal(got[0].coordinator_epoch, -1);
	assert_int_equal(got[1].attributes, PLOG_ATTR_TRANSACTIONAL | PLOG_ATTR_CONTROL);
	assert_int_equal(got[1].control, PLOG_CONTROL_COMMIT);
	assert_int_equal(got[1].coordinator_epoch, 9);
	assert_int_equal(got[2].control, PLOG_CONTROL_ABORT);
	assert_int_equal(got[2].producer_id, 78);
	assert_int_equal(got[2].base_offset, 4);
	/* nothing is left */
	assert_int_equal(ask(PLOG_END_HW, 0, &at, 10), 0);
	assert_int_equal(count, 0);
	assert_int_equal(at, 5);
}

/* Over many segments, in pieces of any size, each batch once and in order. */
static void test_pieces(void **state)
{
	int64_t at, next;
	int seen;

	(void)state;
	open_small();
	for (int i = 0; i < 200; i++)
		put(1 + i % 4, 40, i);
	assert_true(view().segments > 20);
	for (int room = 1; room < 250; room += room < 5 ? 1 : 37) {
		at = 0;
		next = 0;
		seen = 0;
		do {
			assert_int_equal(ask(PLOG_END_HW, 0, &at, room), 0);
			assert_true(count <= room);
			for (uint32_t i = 0; i < count; i++, seen++) {
				assert_int_equal(got[i].base_offset, next);
				next = got[i].last_offset + 1;
			}
		} while (at < view().high_watermark);
		assert_int_equal(seen, 200);
		assert_int_equal(next, view().log_end);
	}
	/* from the middle of a batch: that batch */
	at = 8;
	assert_int_equal(ask(PLOG_END_HW, 0, &at, 1), 0);
	assert_int_equal(got[0].base_offset, 6);
	assert_int_equal(got[0].last_offset, 9);
}

static void test_filters(void **state)
{
	int64_t at = 0;

	(void)state;
	open_small();
	for (int i = 0; i < 100; i++) {
		put(1, 60, i);
		if (i % 10 == 3)
			put_idempotent(5, 1);
		if (i % 50 == 7)
			put_marker(6, PLOG_CONTROL_ABORT, PLOG_UNSTABLE_NONE);
	}
	assert_int_equal(ask(PLOG_END_HW, PLOG_HEADERS_PRODUCERS, &at, 1024), 0);
	assert_int_equal(count, 12);
	assert_int_equal(at, view().log_end);
	at = 0;
	assert_int_equal(ask(PLOG_END_HW, PLOG_HEADERS_CONTROL, &at, 1024), 0);
	assert_int_equal(count, 2);
	assert_int_equal(got[1].producer_id, 6);
	at = 0;
	assert_int_equal(ask(PLOG_END_HW, PLOG_HEADERS_CONTROL, &at, 1), 0);
	assert_int_equal(count, 1);
	assert_true(at <= got[0].last_offset + 60);
	assert_int_equal(ask(PLOG_END_HW, PLOG_HEADERS_CONTROL, &at, 1), 0);
	assert_int_equal(count, 1);
	assert_int_equal(got[0].base_offset, view().last_producer > got[0].base_offset ?
			 got[0].base_offset : -1);
}

static void test_ends(void **state)
{
	struct plog_fence f = { 0 };
	int64_t at = 0;
	s64 to;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
	assert_int_equal(env_open(), 0);
	f.leader_epoch = view().leader_epoch;
	for (int i = 0; i < 4; i++)
		put(5, 40, i);
	assert_int_equal(ask(PLOG_END_HW, 0, &at, 10), 0);
	assert_int_equal(count, 0);
	assert_int_equal(at, 0);
	assert_int_equal(ask(PLOG_END_LEO, 0, &at, 10), 0);
	assert_int_equal(count, 4);
	to = 12;			/* inside the third */
	assert_int_equal(plog_partition_set_hw(env.p, &f, &to), 0);
	at = 0;
	assert_int_equal(ask(PLOG_END_HW, 0, &at, 10), 0);
	assert_int_equal(count, 2);
	assert_int_equal(at, 12);
	to = 15;
	assert_int_equal(plog_partition_set_hw(env.p, &f, &to), 0);
	assert_int_equal(ask(PLOG_END_HW, 0, &at, 10), 0);
	assert_int_equal(count, 1);
	assert_int_equal(got[0].base_offset, 10);
	to = 5;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &to), 0);
	at = 4;
	assert_int_equal(ask(PLOG_END_HW, 0, &at, 10), -ERANGE);
	at = 21;
	assert_int_equal(ask(PLOG_END_HW, 0, &at, 10), -ERANGE);
	at = 20;
	assert_int_equal(ask(PLOG_END_HW, 0, &at, 10), 0);
	assert_int_equal(count, 0);
	at = 0;
	assert_int_equal(plog_partition_close(env.p, false), 0);
	assert_int_equal(ask(PLOG_END_HW, 0, &at, 10), -ENODEV);
}

/* Markers that are none: the framing is a stranger's. */
static void test_damaged_marker(void **state)
{
	int64_t at = 0;
	size_t n;

	(void)state;
	assert_int_equal(env_open(), 0);
	for (unsigned int i = PLOG_BATCH_HEADER; i < PLOG_BATCH_HEADER + 18; i++) {
		n = make_marker(env.buf, 1, PLOG_CONTROL_COMMIT, 3);
		env.buf[i] = 0xff;
		fix_crc(env.buf, n);
		assert_true(append_says(n, PLOG_UNSTABLE_NONE) >= 0);
	}
	n = make_marker(env.buf, 1, 0xffff, -1);
	assert_true(append_says(n, PLOG_UNSTABLE_NONE) >= 0);
	n = make_marker(env.buf, 1, 5, -1);
	assert_true(append_says(n, PLOG_UNSTABLE_NONE) >= 0);
	assert_int_equal(ask(PLOG_END_HW, PLOG_HEADERS_CONTROL, &at, 1024), 0);
	assert_int_equal(count, 20);
	for (int i = 0; i < 20; i++)
		assert_true(got[i].control >= -1);
	assert_int_equal(got[0].control, -1);
	assert_int_equal(got[18].control, -1);
	assert_int_equal(got[19].control, 5);
}

/* A log of more headers than one call looks at: it comes back without one, and goes on. */
static void test_bounded(void **state)
{
	int64_t at = 0;
	int calls = 0;

	(void)state;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < PLOG_HEADERS_LOOKED + 100; i++)
		put(1, 1, 1);
	put_idempotent(1, 1);
	do {
		assert_int_equal(ask(PLOG_END_HW, PLOG_HEADERS_PRODUCERS, &at, 8), 0);
		calls++;
	} while (at < view().high_watermark);
	assert_int_equal(calls, 2);
	assert_int_equal(count, 1);
	at = 0;
	shim_killed = true;
	assert_int_equal(ask(PLOG_END_HW, PLOG_HEADERS_PRODUCERS, &at, 8), -EINTR);
	shim_killed = false;
	shim_fail_alloc = 1;
	assert_int_equal(ask(PLOG_END_HW, PLOG_HEADERS_PRODUCERS, &at, 8), -ENOMEM);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_fields), T(test_pieces), T(test_filters), T(test_ends),
		T(test_damaged_marker), T(test_bounded),
	};

	return cmocka_run_group_tests_name("engine headers", tests, NULL, NULL);
}
