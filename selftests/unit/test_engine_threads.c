// SPDX-License-Identifier: MIT
/*
 * Writers, readers, syncs, look-ups, truncations and retention at once, under TSan: each
 * reader sees each offset once, in order, with a right CRC.
 */
#include "engine.h"

#include <pthread.h>
#include <time.h>

#include <linux/wait.h>

#include "../../kmod/engine.h"

#define WRITERS		3
#define BATCHES		400
#define RECORDS		3
#define TOTAL		(WRITERS * BATCHES * RECORDS)

static bool stop;
static long cuts;

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static int64_t append_own(uint8_t *buf, unsigned int seed, bool iter)
{
	size_t n = make_batch(buf, RECORDS, 60 + seed % 200, seed, 1000 + seed);
	struct plog_append_args args = { .raw = buf, .size = n };
	struct kvec vec = { buf, n };
	struct iov_iter it;
	int err;

	if (iter) {
		iov_iter_kvec(&it, ITER_SOURCE, &vec, 1, n);
		args.raw = NULL;
		args.from = &it;
	}
	err = plog_partition_append(env.p, &args);
	return err ? err : args.base_offset;
}

static void *writer(void *arg)
{
	long id = (long)arg;
	uint8_t *buf = malloc(BATCH_MAX);

	for (int i = 0; i < BATCHES; i++)
		assert_true(append_own(buf, id * BATCHES + i, i & 1) >= 0);
	free(buf);
	return NULL;
}

/* Wait until the end has passed @offset. */
static void wait_for(s64 offset)
{
	wait_event(*plog_partition_waitq(env.p),
		   plog_partition_end(env.p, PLOG_END_HW) > offset || stopped());
}

/* Read batches until @to; with truncations about, begin anew where one was met. */
static void *batch_reader(void *arg)
{
	uint8_t *buf = malloc(BATCH_MAX);
	s64 offset = 0, to = (long)arg;

	while (offset < to && !stopped()) {
		struct kvec vec = { buf, BATCH_MAX };
		struct plog_extent ext = { 0 };
		struct plog_view v;
		struct iov_iter it;
		u32 pos = 0;
		ssize_t n;
		int err;

		err = plog_partition_locate(env.p, offset, 100 + offset % 7000, PLOG_END_HW, true,
					    &ext, &v);
		if (err == -ERANGE && cuts) {
			offset = 0;
			continue;
		}
		assert_int_equal(err, 0);
		assert_true(v.high_watermark <= v.log_end);
		if (!ext.length) {
			wait_for(offset);
			continue;
		}
		iov_iter_kvec(&it, ITER_DEST, &vec, 1, ext.length);
		n = plog_extent_read(&ext, 0, &it);
		if (n == -ESTALE && cuts) {
			plog_extent_put(&ext);
			offset = 0;
			continue;
		}
		assert_int_equal(n, ext.length);
		while (pos < ext.length) {
			struct plog_batch b;

			assert_int_equal(plog_batch_decode(buf + pos, &b), 0);
			assert_int_equal(plog_batch_check(buf + pos, b.size, &b), 0);
			assert_int_equal(b.base_offset, offset);
			offset += RECORDS;
			pos += b.size;
		}
		assert_int_equal(ext.next_offset, offset);
		plog_extent_put(&ext);
	}
	free(buf);
	return NULL;
}

static void *record_reader(void *arg)
{
	char value[4096];
	struct plog_reader r;
	s64 count = 0;

	plog_reader_init(&r, env.p, PLOG_END_HW);
	while (count < (long)arg && !stopped()) {
		struct kvec vec = { value, sizeof(value) };
		struct iov_iter it;
		ssize_t n;

		iov_iter_kvec(&it, ITER_DEST, &vec, 1, sizeof(value));
		n = plog_reader_next(&r, &it);
		if (n == -EAGAIN) {
			wait_for(count);
			continue;
		}
		if ((n == -ESTALE || n == -ERANGE) && cuts) {
			plog_reader_seek(&r, 0);
			count = 0;
			continue;
		}
		assert_true(n > 0);
		assert_int_equal(r.offset, ++count);
	}
	plog_reader_release(&r);
	return NULL;
}

static void *prober(void *arg)
{
	unsigned int seed = 5;
	struct plog_time_hit hit;
	s64 last = 0;

	(void)arg;
	while (!stopped()) {
		struct plog_view v = view();

		assert_true(v.log_end >= v.high_watermark && v.log_start <= v.high_watermark);
		if (!cuts)
			assert_true(v.log_end >= last);
		last = v.log_end;
		assert_int_equal(plog_partition_lookup(env.p, 1000 + rand_r(&seed) % 1000, false,
						       PLOG_END_HW, &hit), 0);
		assert_true(cuts || hit.offset < plog_partition_end(env.p, PLOG_END_HW));
	}
	return NULL;
}

static void *syncer(void *arg)
{
	(void)arg;
	while (!stopped()) {
		assert_int_equal(plog_partition_sync(env.p), 0);
		usleep(1000);
	}
	return NULL;
}

static void start(pthread_t *t, void *(*fn)(void *), long arg)
{
	assert_int_equal(pthread_create(t, NULL, fn, (void *)arg), 0);
}

static void finish(pthread_t *t, int n)
{
	while (n--)
		pthread_join(t[n], NULL);
}

static void wake(void)
{
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	wake_up_all(plog_partition_waitq(env.p));
}

static void test_readers_and_writers(void **state)
{
	pthread_t writers[WRITERS], readers[6], helpers[2];

	(void)state;
	stop = false;
	cuts = 0;
	env.config.segment_bytes = 30000;
	env.config.index_interval_bytes = 1000;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 3; i++)
		start(&readers[i], batch_reader, TOTAL);
	for (int i = 3; i < 6; i++)
		start(&readers[i], record_reader, TOTAL);
	start(&helpers[0], prober, 0);
	start(&helpers[1], syncer, 0);
	for (long i = 0; i < WRITERS; i++)
		start(&writers[i], writer, i);
	finish(writers, WRITERS);
	finish(readers, 6);
	wake();
	finish(helpers, 2);
	assert_int_equal(view().log_end, TOTAL);
	assert_true(view().segments > 10);
	assert_int_equal(walk(PLOG_END_HW), TOTAL);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), TOTAL);
}

static void test_truncations(void **state)
{
	pthread_t readers[4], helpers[2];
	struct plog_fence f = { 0 };
	unsigned int seed = 3;

	(void)state;
	stop = false;
	cuts = 1;
	env.config.segment_bytes = 20000;
	env.config.index_interval_bytes = 500;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 2; i++)
		start(&readers[i], batch_reader, 1L << 40);
	for (int i = 2; i < 4; i++)
		start(&readers[i], record_reader, 1L << 40);
	start(&helpers[0], prober, 0);
	start(&helpers[1], syncer, 0);
	for (int round = 0; round < 60; round++) {
		s64 to;

		for (int i = 0; i < 60; i++)
			assert_true(append_own(env.buf, round * 60 + i, i & 1) >= 0);
		to = view().log_end / RECORDS;
		to -= rand_r(&seed) % (round % 10 == 9 ? to : 70);
		to *= RECORDS;
		assert_int_equal(plog_partition_truncate(env.p, &f, &to), 0);
	}
	wake();
	finish(readers, 4);
	finish(helpers, 2);
	assert_int_equal(walk(PLOG_END_HW), view().log_end);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), view().log_end);
}

#define DAY (24LL * 60 * 60 * 1000)

static void *retainer(void *arg)
{
	(void)arg;
	while (!stopped())
		assert_true(plog_partition_retain(env.p) >= 0);
	return NULL;
}

/* Retention goes on beside a writer: all is old, but for the record that comes just then. */
static void test_retention(void **state)
{
	pthread_t helpers[2];

	(void)state;
	stop = false;
	env.config.segment_bytes = 2000;
	env.config.max_message_bytes = 1024;
	env.config.file_delete_delay_ms = 0;
	env.config.retention_ms = DAY;
	assert_int_equal(env_open(), 0);
	start(&helpers[0], retainer, 0);
	start(&helpers[1], syncer, 0);
	for (int round = 0; round < 400; round++) {
		s64 fresh, base;

		for (int i = 0; i < 3; i++)
			assert_true(put_at(1, 500, i, plog_now_ms() - 9 * DAY) >= 0);
		fresh = put_at(1, 20, round, plog_now_ms());
		assert_true(fresh >= 0);
		/* or the segment grows by what is old by its times, and stays */
		if (round & 1)
			assert_int_equal(plog_partition_roll(env.p, NULL, &base), 0);
		/* behind the one that was on its way */
		assert_true(plog_partition_retain(env.p) >= 0);
		assert_in_range(fresh, view().log_start, view().log_end - 1);
		__atomic_add_fetch(&shim_clock_ms, 2 * DAY, __ATOMIC_RELAXED);
	}
	wake();
	finish(helpers, 2);
	assert_true(plog_partition_retain(env.p) >= 0);
	assert_int_equal(view().log_start, view().log_end);
}

/* The partition is closed under waiters, readers and writers. */
static void *until_closed(void *arg)
{
	uint8_t *buf = malloc(BATCH_MAX);
	struct plog_extent ext = { 0 };
	struct plog_view v;
	int64_t got;
	int err;

	do {
		got = (long)arg ? append_own(buf, 1, 0) : 0;
		err = plog_partition_locate(env.p, 0, 1000, PLOG_END_HW, true, &ext, &v);
		plog_extent_put(&ext);
	} while (got >= 0 && !err);
	assert_true(err == -ENODEV || got == -ENODEV);
	free(buf);
	return NULL;
}

static void test_close(void **state)
{
	(void)state;
	env.config.segment_bytes = 5000;
	for (int i = 0; i < 10; i++) {
		pthread_t t[4];

		assert_int_equal(env_open(), 0);
		for (long k = 0; k < 4; k++)
			start(&t[k], until_closed, k & 1);
		usleep(10000);
		plog_partition_close(env.p, i & 1);
		finish(t, 4);
		plog_partition_put(env.p);
		env.p = NULL;
	}
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), view().log_end);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_readers_and_writers), T(test_truncations), T(test_retention), T(test_close),
	};

	return cmocka_run_group_tests_name("engine threads", tests, NULL, NULL);
}
