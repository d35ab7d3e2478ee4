// SPDX-License-Identifier: MIT
/* Finding records by time. */
#include "engine.h"

#include "../../kmod/engine.h"

static void expect(int line, s64 timestamp, bool max, s64 offset, s64 time, bool inside)
{
	struct plog_time_hit hit;

	assert_int_equal(plog_partition_lookup(env.p, timestamp, max, PLOG_END_HW, &hit), 0);
	if (hit.offset != offset || hit.timestamp != time || hit.inside != inside)
		print_message("# line %d: %lld at %lld%s\n", line, (long long)hit.offset,
			      (long long)hit.timestamp, hit.inside ? " inside" : "");
	assert_int_equal(hit.offset, offset);
	assert_int_equal(hit.timestamp, time);
	assert_int_equal(hit.inside, inside);
}

#define AT(t, off, time) expect(__LINE__, t, false, off, time, false)
#define NONE(t) expect(__LINE__, t, false, -1, -1, false)
#define MAX(off, time) expect(__LINE__, 0, true, off, time, false)

static const struct rec four[] = {
	{ 2, NULL, "a" }, { 4, NULL, "b" }, { 6, NULL, "c" }, { 8, NULL, "d" },
};

static void check_four(void)
{
	AT(0, 0, 2);
	AT(2, 0, 2);
	AT(3, 1, 4);
	AT(5, 2, 6);
	AT(8, 3, 8);
	NONE(9);
	MAX(3, 8);
}

static void test_batches(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	NONE(0);
	expect(__LINE__, 0, true, -1, -1, false);
	for (int i = 0; i < 4; i++)
		append(make_records(env.buf, &four[i], 1, 0));
	check_four();
	env_close();
	assert_int_equal(env_open(), 0);
	check_four();
}

static void test_one_batch(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	append(make_records(env.buf, four, 4, 0));
	check_four();
	env_crash();
	assert_int_equal(env_open(), 0);
	check_four();
}

static void test_compressed(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	append(make_records(env.buf, &four[0], 1, 0));
	append(make_records(env.buf, &four[1], 3, 1));
	AT(1, 0, 2);
	expect(__LINE__, 3, false, 1, 8, true);
	expect(__LINE__, 0, true, 1, 8, true);
	NONE(9);
}

/* The answer by looking at everything. */
static s64 times[4000];
static int ntimes;

static void compare(s64 from)
{
	for (s64 t = 0; t < 3000; t += 17) {
		int i = from;

		while (i < ntimes && times[i] < t)
			i++;
		if (i < ntimes)
			AT(t, i, times[i]);
		else
			NONE(t);
	}
}

static void test_out_of_order(void **state)
{
	struct plog_fence f = { 0 };
	s64 top = -1, first = 0, to;

	(void)state;
	env.config.segment_bytes = 4000;
	env.config.index_interval_bytes = 300;
	assert_int_equal(env_open(), 0);
	srandom(7);
	ntimes = 0;
	for (int b = 0; b < 400; b++) {
		struct rec recs[5];
		unsigned int n = 1 + random() % 5;

		for (unsigned int i = 0; i < n; i++) {
			s64 t = b * 5 + random() % 600;

			recs[i] = (struct rec){ t, NULL, "some value to have bytes" };
			if (t > top) {
				top = t;
				first = ntimes;
			}
			times[ntimes++] = t;
		}
		assert_int_equal(append(make_records(env.buf, recs, n, 0)), ntimes - n);
	}
	assert_true(view().segments > 10);
	compare(0);
	MAX(first, top);
	env_close();
	assert_int_equal(env_open(), 0);
	compare(0);
	env_crash();
	assert_int_equal(env_open(), 0);
	compare(0);
	MAX(first, top);
	to = 333;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &to), 0);
	compare(333);
	to = 700;
	assert_int_equal(plog_partition_truncate(env.p, &f, &to), 0);
	ntimes = to;
	compare(333);
	env_crash();
	assert_int_equal(env_open(), 0);
	compare(333);
}

static void test_below_the_watermark(void **state)
{
	struct plog_time_hit hit;
	struct plog_fence f = { 0 };
	s64 hw = 2;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 4; i++)
		append(make_records(env.buf, &four[i], 1, 0));
	NONE(0);
	assert_int_equal(plog_partition_set_hw(env.p, &f, &hw), 0);
	AT(3, 1, 4);
	NONE(5);
	assert_int_equal(plog_partition_lookup(env.p, 5, false, PLOG_END_LEO, &hit), 0);
	assert_int_equal(hit.offset, 2);
}

static void test_without_times(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 50; i++)
		put_at(1, 200, i, -1);
	NONE(0);
	AT(-1, 0, -1);
	env_close();
	assert_int_equal(file_size(FIRST_TIMEINDEX), 0);
	assert_int_equal(env_open(), 0);
	NONE(0);
	put_at(1, 200, 1, 77);
	AT(0, 50, 77);
}

/* Kafka's cleaner keeps a header of a batch of which no record is left. */
static size_t make_empty(s64 offset, s64 span, s64 time)
{
	struct plog_batch b = {
		.magic = 2, .base_offset = offset, .last_offset_delta = span - 1,
		.base_timestamp = time, .max_timestamp = time, .producer_id = 7,
		.base_sequence = 0, .size = PLOG_BATCH_HEADER, .leader_epoch = 0,
	};

	plog_batch_encode(&b, env.buf);
	fix_crc(env.buf, b.size);
	return b.size;
}

static s64 append_replica(size_t size)
{
	return append_as(size, ITER, PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA);
}

static void test_empty_batches(void **state)
{
	struct plog_reader r;
	size_t size;

	(void)state;
	env.config.index_interval_bytes = 1;
	assert_int_equal(env_open(), 0);
	/* not from a producer */
	assert_int_equal(append(make_empty(0, 5, 100)), -EINVAL);
	assert_true(append_replica(make_empty(0, 5, 100)) >= 0);
	size = make_records(env.buf, four, 4, 0);
	put_unaligned_be64(5, env.buf);
	put_unaligned_be32(0, env.buf + 12);
	assert_true(append_replica(size) >= 0);
	assert_true(append_replica(make_empty(9, 3, 200)) >= 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(view().log_end, 12);
		assert_int_equal(view().max_timestamp, 8);
		AT(1, 5, 2);
		AT(8, 8, 8);
		NONE(9);
		MAX(8, 8);
		assert_int_equal(walk(PLOG_END_LEO), 4);
		plog_reader_init(&r, env.p, PLOG_END_LEO);
		assert_string_equal(next_value(&r), "a");
		plog_reader_seek(&r, 9);
		assert_string_equal(next_value(&r), "-EAGAIN");
		plog_reader_release(&r);
		if (i & 1)
			env_crash();
		else
			env_close();
		/* as Kafka has it: its time index knows of the last one */
		if (i == 2) {
			uint8_t entry[12];

			put_unaligned_be64(200, entry);
			put_unaligned_be32(11, entry + 8);
			file_write(FIRST_TIMEINDEX, file_size(FIRST_TIMEINDEX), entry, 12);
		}
		assert_int_equal(env_open(), 0);
	}
}

/* A batch with a time for all of it, of which compaction has left records: with a codec, or none. */
static size_t make_rest(s64 offset, s32 span, const s32 *deltas, unsigned int n, s64 time,
			unsigned int codec)
{
	struct plog_batch b = {
		.magic = 2, .base_offset = offset, .last_offset_delta = span - 1, .count = n,
		.base_timestamp = 7, .max_timestamp = time, .producer_id = -1,
		.producer_epoch = -1, .base_sequence = -1, .leader_epoch = 0,
		.attributes = codec | PLOG_ATTR_LOG_APPEND_TIME,
	};
	uint8_t *p = env.buf + PLOG_BATCH_HEADER;

	for (unsigned int i = 0; i < n; i++) {
		/* of seven bytes: no key, one byte of a value, no headers */
		const uint8_t rec[] = { 14, 0, 0, 2 * deltas[i], 1, 2, 'v', 0 };

		p = mempcpy(p, rec, sizeof(rec));
	}
	b.size = p - env.buf;
	plog_batch_encode(&b, env.buf);
	fix_crc(env.buf, b.size);
	return b.size;
}

/* The first record that is there, not the first offset of its batch. */
static void test_append_time_compacted(void **state)
{
	static const s32 middle[] = { 2, 4 }, last[] = { 9 }, all[] = { 0, 1 };
	struct plog_time_hit hit;
	s64 at = 3;

	(void)state;
	env.config.index_interval_bytes = 1;
	assert_int_equal(env_open(), 0);
	assert_true(append_replica(make_rest(0, 8, middle, 2, 500, 0)) >= 0);
	assert_true(append_replica(make_rest(8, 10, last, 1, 400, 0)) >= 0);
	assert_true(append_replica(make_rest(18, 2, all, 2, 450, 1)) >= 0);
	assert_true(append_replica(make_rest(20, 8, middle, 2, 300, 1)) >= 0);
	AT(1, 2, 500);
	MAX(2, 500);
	assert_int_equal(plog_partition_set_log_start(env.p, NULL, &at), 0);
	AT(1, 4, 500);
	MAX(4, 500);
	/* none of the first batch is left from here on */
	at = 5;
	assert_int_equal(plog_partition_set_log_start(env.p, NULL, &at), 0);
	AT(1, 17, 400);
	AT(401, 18, 450);
	MAX(18, 450);
	NONE(451);
	/* where none is missing nobody has to look into it; else it is for who can */
	at = 19;
	assert_int_equal(plog_partition_set_log_start(env.p, NULL, &at), 0);
	AT(401, 19, 450);
	at = 21;
	assert_int_equal(plog_partition_set_log_start(env.p, NULL, &at), 0);
	assert_int_equal(plog_partition_lookup(env.p, 1, false, PLOG_END_LEO, &hit), 0);
	assert_int_equal(hit.offset, 21);
	assert_int_equal(hit.timestamp, 300);
	assert_true(hit.inside);
}

/* A truncation of the batch that the log starts in. */
static void test_cut_at_the_start(void **state)
{
	struct plog_fence f = { 0 };
	s64 at = 6;

	(void)state;
	assert_int_equal(env_open(), 0);
	append(make_records(env.buf, four, 4, 0));
	append(make_records(env.buf, four, 4, 0));
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), 0);
	at = 7;
	assert_int_equal(plog_partition_truncate(env.p, &f, &at), 0);
	assert_int_equal(at, 6);
	assert_int_equal(view().log_end, 6);
	assert_int_equal(view().high_watermark, 6);
	NONE(0);
	MAX(-1, -1);
	for (int i = 0; i < 3; i++) {
		env_crash();
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().log_start, 6);
		assert_int_equal(view().log_end, 6 + 4 * i);
		assert_int_equal(walk(PLOG_END_HW), 4 * i);
		assert_int_equal(append(make_records(env.buf, four, 4, 0)), 6 + 4 * i);
		AT(3, 7, 4);
		MAX(9, 8);
	}
}

static void test_epoch_of_the_hit(void **state)
{
	struct plog_time_hit hit;

	(void)state;
	assert_int_equal(env_open(), 0);
	append(make_records(env.buf, &four[0], 1, 0));
	assert_int_equal(plog_partition_set_epoch(env.p, 3), 0);
	append(make_records(env.buf, &four[1], 1, 0));
	assert_int_equal(plog_partition_lookup(env.p, 1, false, PLOG_END_HW, &hit), 0);
	assert_int_equal(hit.leader_epoch, 0);
	assert_int_equal(plog_partition_lookup(env.p, 3, false, PLOG_END_HW, &hit), 0);
	assert_int_equal(hit.leader_epoch, 3);
}

static struct {
	bool busy;
	unsigned int asked, missed;
} seen;

/* Whenever an append reads what it has written: can the time of all that is visible be found? */
static int look_up(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	struct plog_time_hit hit;
	s64 hw;

	(void)name; (void)pos; (void)len; (void)done;
	if (op != SHIM_READ || seen.busy)
		return 0;
	seen.busy = true;
	hw = view().high_watermark;
	if (plog_partition_lookup(env.p, four[hw - 1].time, false, PLOG_END_HW, &hit) ||
	    hit.offset != hw - 1)
		seen.missed++;
	seen.asked++;
	seen.busy = false;
	return 0;
}

static void test_visible_by_its_time(void **state)
{
	struct kvec vec = { env.buf, 0 };
	struct plog_append_args args = { .flags = PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA };
	struct iov_iter it;
	size_t n = 0;

	(void)state;
	assert_int_equal(env_open(), 0);
	append(make_records(env.buf, &four[0], 1, 0));
	for (int i = 1; i < 4; i++) {
		uint8_t *at = env.buf + n;

		n += make_records(at, &four[i], 1, 0);
		put_unaligned_be64(i, at);
		put_unaligned_be32(0, at + 12);
	}
	seen = (typeof(seen)){ 0 };
	vec.iov_len = n;
	iov_iter_kvec(&it, ITER_SOURCE, &vec, 1, n);
	args.from = &it;
	shim_file_fault = look_up;
	assert_int_equal(plog_partition_append(env.p, &args), 0);
	shim_file_fault = NULL;
	assert_true(seen.asked > 4);
	assert_int_equal(seen.missed, 0);
	check_four();
}

/* ---- the largest of what stays ---- */

static __thread int opened, opened_locked;

/* Is a file opened while this thread keeps writers away? */
static int look_at_the_lock(enum shim_file_op op, const char *name, u64 pos, size_t len,
			    size_t *done)
{
	if (op != SHIM_OPEN || !strstr(name, ".log"))
		return 0;
	opened++;
	if (mutex_trylock(&env.p->lock))
		mutex_unlock(&env.p->lock);
	else
		opened_locked++;
	return 0;
}

/* Retention looks for it where the newest has gone, in each segment: writers do not wait. */
static void test_largest_beside_writers(void **state)
{
	s64 base, to = 1;
	int i;

	(void)state;
	assert_int_equal(env_open(), 0);
	for (i = 0; i < 20; i++) {
		assert_int_equal(put_at(1, 20, i, i ? 500 + i % 7 : 1000), i);
		assert_int_equal(plog_partition_roll(env.p, NULL, &base), 0);
	}
	env_close();
	shim_file_fault = look_at_the_lock;
	assert_int_equal(env_open(), 0);
	opened = opened_locked = 0;
	assert_int_equal(plog_partition_set_log_start(env.p, NULL, &to), 0);
	shim_file_fault = NULL;
	assert_int_equal(view().segments, 20);
	assert_int_equal(view().max_timestamp, 506);
	assert_true(opened >= 19);
	assert_int_equal(opened_locked, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_batches), T(test_one_batch), T(test_compressed), T(test_out_of_order),
		T(test_below_the_watermark), T(test_without_times), T(test_epoch_of_the_hit),
		T(test_cut_at_the_start), T(test_empty_batches), T(test_append_time_compacted),
		T(test_visible_by_its_time), T(test_largest_beside_writers),
	};

	return cmocka_run_group_tests_name("engine time", tests, NULL, NULL);
}
