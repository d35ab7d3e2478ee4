// SPDX-License-Identifier: MIT
/*
 * Compaction beside readers that hold pins, a writer, syncs and look-ups, under TSan: every
 * reader sees each batch that is never left out once, in order, with a right CRC.
 */
#include "compact.h"

#include <pthread.h>

#include <linux/wait.h>

extern unsigned int plog_segment_idle_max;

#define RECORDS	2
#define STAYS	(3 * RECORDS)	/* every third batch is never left out */
#define ROUNDS	40

static bool stop;

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static bool keep_third(const struct plog_batch *b)
{
	return b->base_offset % STAYS == 0;
}

static void *writer(void *arg)
{
	uint8_t *buf = malloc(BATCH_MAX);

	(void)arg;
	for (unsigned int i = 0; !stopped(); i++) {
		struct plog_append_args args = { .raw = buf };

		args.size = make_batch(buf, RECORDS, 100, i, 1000 + i);
		assert_int_equal(plog_partition_append(env.p, &args), 0);
		usleep(100);
	}
	free(buf);
	return NULL;
}

/* One pass over what is there; extents are kept for a while before they are read. */
static void read_all(uint8_t *buf, int rounds)
{
	s64 offset = 0, wanted = 0, end = plog_partition_end(env.p, PLOG_END_HW);

	while (offset < end) {
		struct kvec vec = { buf, BATCH_MAX };
		struct plog_extent ext = { 0 };
		struct plog_view v;
		struct iov_iter it;
		u32 pos = 0;

		assert_int_equal(plog_partition_locate(env.p, offset, 700 + offset % 5000,
						       PLOG_END_HW, true, &ext, &v), 0);
		assert_true(ext.length > 0);
		if (rounds % 3 == 0)
			usleep(500);
		iov_iter_kvec(&it, ITER_DEST, &vec, 1, ext.length);
		assert_int_equal(plog_extent_read(&ext, 0, &it), ext.length);
		while (pos < ext.length) {
			struct plog_batch b;

			assert_int_equal(plog_batch_decode(buf + pos, &b), 0);
			assert_int_equal(plog_batch_check(buf + pos, b.size, &b), 0);
			assert_true(b.base_offset >= offset);
			/* none of those that stay was passed over */
			assert_true(b.base_offset <= wanted);
			if (b.base_offset == wanted)
				wanted += STAYS;
			offset = plog_batch_last_offset(&b) + 1;
			pos += b.size;
		}
		assert_true(ext.next_offset >= offset && ext.next_offset <= wanted);
		offset = ext.next_offset;
		plog_extent_put(&ext);
	}
	assert_true(wanted >= end);
}

static void *reader(void *arg)
{
	uint8_t *buf = malloc(BATCH_MAX);

	for (int rounds = (long)arg; !stopped(); rounds++)
		read_all(buf, rounds);
	free(buf);
	return NULL;
}

static int count_segment(void *arg, const struct plog_segment_info *info)
{
	(void)info;
	++*(int *)arg;
	return 0;
}

static void *prober(void *arg)
{
	struct plog_batch_header *h = calloc(64, sizeof(*h));
	unsigned int seed = 3;

	(void)arg;
	while (!stopped()) {
		struct plog_time_hit hit;
		struct plog_view v;
		s64 at = 0, end = plog_partition_end(env.p, PLOG_END_HW);
		u32 count = 64;
		int n = 0;

		assert_int_equal(plog_partition_lookup(env.p, 1000 + rand_r(&seed) % 400, false,
						       PLOG_END_HW, &hit), 0);
		at = end ? rand_r(&seed) % end : 0;
		assert_int_equal(plog_partition_headers(env.p, PLOG_END_HW, 0, &at, h, &count, &v),
				 0);
		for (u32 i = 1; i < count; i++)
			assert_true(h[i].base_offset > h[i - 1].last_offset);
		assert_int_equal(plog_partition_segments(env.p, 0, count_segment, &n), 0);
		assert_true(n > 0);
		assert_int_equal(plog_partition_sync(env.p), 0);
	}
	free(h);
	return NULL;
}

static void run(unsigned int idle_max)
{
	unsigned int was = plog_segment_idle_max, seed = 11;
	pthread_t t[5];
	int swaps = 0;

	plog_segment_idle_max = idle_max;
	env.config.segment_bytes = 4096;
	env.config.index_interval_bytes = 500;
	stop = false;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 200; i++)
		put(RECORDS, 100, i);
	pthread_create(&t[0], NULL, writer, NULL);
	for (long i = 1; i < 4; i++)
		pthread_create(&t[i], NULL, reader, (void *)i);
	pthread_create(&t[4], NULL, prober, NULL);
	while (swaps < ROUNDS) {
		int64_t base[4096];
		int n = log_files(base, 4096), from, to;

		from = rand_r(&seed) % (n - 1);
		to = from + rand_r(&seed) % (n - 1 - from < 6 ? n - 1 - from : 6);
		compact(base[from], base[to], keep_third);
		assert_int_equal(swap(base[from], base[to]), 0);
		if (swaps % 4 == 1)
			usleep(3000);
		finish_files(base[from], base[to], RENAMED_LOG);
		if (swaps % 4 == 2)
			usleep(3000);
		assert_int_equal(swap_done(), 0);
		swaps++;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], NULL);
	read_all(env.buf, 1);
	env_close();
	assert_int_equal(env_open(), 0);
	read_all(env.buf, 1);
	env_crash();
	assert_int_equal(env_open(), 0);
	read_all(env.buf, 1);
	plog_segment_idle_max = was;
}

static void test_swaps(void **state)
{
	(void)state;
	run(128);
}

/* Files are closed as soon as nobody uses them, and opened again by name. */
static void test_swaps_lazy(void **state)
{
	(void)state;
	run(0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_swaps), T(test_swaps_lazy) };

	return cmocka_run_group_tests_name("engine swap threads", tests, NULL, NULL);
}
