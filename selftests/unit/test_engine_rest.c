// SPDX-License-Identifier: MIT
/*
 * Rest: who takes no appends closes the files of the last segment, and has them
 * again for the next append, or says why not, with the log as it was.
 */
#include "engine.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

extern unsigned int plog_segment_idle_max, plog_active_max;
void plog_rest_look(void);

static int setup(void **state)
{
	plog_segment_idle_max = 0;
	plog_active_max = 0;
	return env_setup(state);
}

static int teardown(void **state)
{
	int ret = env_teardown(state);

	/* no worker looks at these any more */
	shim_file_fault = NULL;
	shim_fail_alloc = 0;
	plog_segment_idle_max = 128;
	plog_active_max = 1024;
	return ret;
}

static u64 files(void)
{
	struct plog_partition_gauges g;

	plog_partition_gauges(env.p, &g);
	return g.open_files;
}

static void rest(void)
{
	/* a worker looks at it too */
	__atomic_store_n(&shim_clock_ms, shim_clock_ms + 1500, __ATOMIC_RELAXED);
	plog_rest_look();
}

static void fences(int error)
{
	assert_int_equal(view().state, PLOG_PARTITION_FENCED);
	assert_int_equal(view().error, error);
	assert_int_equal(put(1, 20, 1), -EROFS);
}

/* ---- closing and opening again ---- */

static void test_closes_and_opens(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 60; i++) {
		assert_int_equal(put_at(2, 700, i, 1000 + i), 2 * i);
		assert_int_equal(files(), 3);
		/* not while it is busy */
		plog_rest_look();
		assert_int_equal(files(), 3);
		if (i % 3)
			continue;
		rest();
		assert_int_equal(files(), 0);
		assert_int_equal(walk(PLOG_END_HW), 2 * i + 2);
		assert_int_equal(files(), 0);
	}
	/* what the index was told before each rest is there */
	assert_true(file_size(FIRST_INDEX) > 8 * 10);
	rest();
	assert_int_equal(files(), 0);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 120);
	assert_int_equal(view().max_timestamp, 1059);
}

/* Few enough are left alone. */
static void test_allowed_to_stay(void **state)
{
	(void)state;
	__atomic_store_n(&plog_active_max, 1, __ATOMIC_RELAXED);
	assert_int_equal(env_open(), 0);
	put(1, 20, 1);
	rest();
	assert_int_equal(files(), 3);
	__atomic_store_n(&plog_active_max, 0, __ATOMIC_RELAXED);
	rest();
	assert_int_equal(files(), 0);
}

static int kill_when_frozen(enum shim_file_op op, const char *name, u64 pos, size_t len,
			    size_t *done)
{
	(void)pos;
	if (op != SHIM_WRITE || strcmp(name, FIRST_LOG))
		return 0;
	shim_killed = shim_frozen = true;
	*done = len / 2;
	return -EINTR;
}

/* What a killed append has left is cut, and the cut synced, before the file is closed. */
static void test_uncut(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 20, 1);
	shim_file_fault = kill_when_frozen;
	assert_int_equal(put(1, 200, 1), -EINTR);
	shim_file_fault = NULL;
	shim_killed = shim_frozen = false;
	assert_true((u64)file_size(FIRST_LOG) > view().bytes);
	rest();
	rest();
	assert_int_equal(file_size(FIRST_LOG), view().bytes);
	assert_int_equal(files(), 0);
	assert_int_equal(walk(PLOG_END_HW), 1);
}

/* Nothing that only the page cache knows is left behind a closed file. */
static int syncs, fail_sync;

static int watch_sync(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)pos;
	(void)len;
	(void)done;
	if (op != SHIM_SYNC || strcmp(name, FIRST_LOG))
		return 0;
	syncs++;
	return fail_sync;
}

static void test_synced_before(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 20, 1);
	syncs = 0;
	shim_file_fault = watch_sync;
	rest();
	assert_int_equal(files(), 0);
	assert_int_equal(syncs, 1);
	/* and no second time */
	rest();
	assert_int_equal(syncs, 1);
	assert_int_equal(put(1, 20, 2), 1);
	fail_sync = -EIO;
	rest();
	fail_sync = 0;
	fences(EIO);
	assert_int_equal(walk(PLOG_END_HW), 2);
}

/* Times need no walk through the log, nor its last entry twice. */
static void test_times(void **state)
{
	struct plog_time_hit hit;

	(void)state;
	assert_int_equal(env_open(), 0);
	put_at(1, 3000, 1, 5000);
	for (int i = 0; i < 20; i++)
		put_at(1, 3000, i, 100 + i);
	rest();
	assert_int_equal(files(), 0);
	put_at(1, 3000, 1, 4000);
	put_at(1, 3000, 1, 6000);
	rest();
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(plog_partition_lookup(env.p, 5500, false, PLOG_END_HW, &hit), 0);
		assert_int_equal(hit.offset, 22);
		assert_int_equal(plog_partition_lookup(env.p, 0, true, PLOG_END_HW, &hit), 0);
		assert_int_equal(hit.offset, 22);
		assert_int_equal(plog_partition_lookup(env.p, 4500, false, PLOG_END_HW, &hit), 0);
		assert_int_equal(hit.offset, 0);
		env_close();
		assert_int_equal(env_open(), 0);
	}
}

/* Rolls, truncations and a log that begins anew, each from rest. */
static void test_commands(void **state)
{
	s64 base;

	(void)state;
	env.config.segment_bytes = 4096;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 40; i++) {
		put(1, 500, i);
		if (i % 5 == 0) {
			rest();
			assert_int_equal(files(), 0);
		}
	}
	rest();
	assert_int_equal(plog_partition_roll(env.p, NULL, &base), 0);
	assert_int_equal(base, 40);
	rest();
	assert_int_equal(files(), 0);
	assert_int_equal(walk(PLOG_END_HW), 40);
	base = 33;
	assert_int_equal(plog_partition_truncate(env.p, NULL, &base), 0);
	rest();
	assert_int_equal(files(), 0);
	assert_int_equal(walk(PLOG_END_HW), 33);
	assert_int_equal(put(1, 500, 1), 33);
	rest();
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 34);
}

/* What was had in advance is kept at rest and given back by a close. */
static int trims;

static int watch_trim(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)pos;
	(void)len;
	(void)done;
	trims += op == SHIM_TRUNCATE && !strcmp(name, FIRST_LOG);
	return 0;
}

static void test_preallocated(void **state)
{
	(void)state;
	env.config.preallocate = true;
	env.config.segment_bytes = 1 << 20;
	assert_int_equal(env_open(), 0);
	put(1, 500, 1);
	trims = 0;
	shim_file_fault = watch_trim;
	rest();
	assert_int_equal(files(), 0);
	assert_int_equal(trims, 0);
	env_close();
	assert_int_equal(trims, 1);
}

/* ---- what can go wrong ---- */

/* The n-th open of anything from now on fails. */
static int opens;

static int fail_open(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)name;
	(void)pos;
	(void)len;
	(void)done;
	return op == SHIM_OPEN && !--opens ? -ENFILE : 0;
}

static void test_no_descriptor(void **state)
{
	int n, left = 0, refused = 0;
	int64_t end = 0;

	(void)state;
	assert_int_equal(env_open(), 0);
	for (n = 1; n < 20; n++) {
		int64_t got;

		rest();
		assert_int_equal(files(), 0);
		opens = n;
		shim_file_fault = fail_open;
		got = put(1, 3000, n);
		shim_file_fault = NULL;
		left = opens;
		if (got < 0) {
			assert_int_equal(got, -ENFILE);
			assert_int_equal(files(), 0);
			refused++;
		} else {
			assert_int_equal(got, end++);
		}
		assert_int_equal(view().state, PLOG_PARTITION_ONLINE);
		assert_int_equal(view().log_end, end);
		assert_int_equal(put(1, 3000, n), end++);
		assert_int_equal(walk(PLOG_END_HW), end);
		if (left > 0)
			break;
	}
	/* the log's open refuses an append; without an index it goes on */
	assert_true(refused >= 1);
	assert_true(n > 2 && n < 20);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), end);
}

static void test_no_memory(void **state)
{
	int64_t end = 0;
	int n;

	(void)state;
	assert_int_equal(env_open(), 0);
	for (n = 1; n < 200; n++) {
		int before = shim_failed_allocs;
		int64_t got;

		rest();
		assert_int_equal(files(), 0);
		shim_fail_alloc = n;
		got = put(1, 3000, n);
		shim_fail_alloc = 0;
		if (got < 0)
			assert_int_equal(got, -ENOMEM);
		else
			assert_int_equal(got, end++);
		assert_int_equal(view().log_end, end);
		assert_int_equal(put(1, 3000, n), end++);
		assert_int_equal(walk(PLOG_END_HW), end);
		if (shim_failed_allocs == before)
			break;
	}
	assert_true(n > 3 && n < 200);
}

/* Another file under the log's name is not the log. */
static void test_replaced(void **state)
{
	char path[128], away[128], byte = 0;
	int fd;

	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 500, 1);
	put(1, 500, 2);
	rest();
	assert_int_equal(files(), 0);
	snprintf(path, sizeof(path), "%s/" FIRST_LOG, env.dir);
	snprintf(away, sizeof(away), "%s/away", env.dir);
	assert_int_equal(rename(path, away), 0);
	fd = open(path, O_CREAT | O_WRONLY, 0644);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &byte, 1, 5000), 1);
	close(fd);
	assert_int_equal(put(1, 500, 3), -EUCLEAN);
	fences(EUCLEAN);
	/* it was not touched */
	assert_int_equal(file_size(FIRST_LOG), 5001);
	assert_int_equal(rename(away, path), 0);
	assert_int_equal(walk(PLOG_END_HW), 2);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(1, 500, 3), 2);
}

/* A directory under its name is not its directory. */
static void test_directory_replaced(void **state)
{
	char away[128];

	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 500, 1);
	rest();
	snprintf(away, sizeof(away), "%s.away", env.dir);
	assert_int_equal(rename(env.dir, away), 0);
	assert_int_equal(mkdir(env.dir, 0755), 0);
	assert_int_equal(put(1, 500, 2), 1);
	assert_int_equal(walk(PLOG_END_HW), 2);
	assert_int_equal(rmdir(env.dir), 0);
	assert_int_equal(rename(away, env.dir), 0);
}

static void test_cut_or_longer(void **state)
{
	char bytes[3000] = "not a batch";
	long size;

	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 500, 1);
	put(1, 500, 2);
	size = file_size(FIRST_LOG);
	rest();
	/* what somebody has put behind it is no part of the log */
	file_write(FIRST_LOG, size, bytes, sizeof(bytes));
	assert_int_equal(put(1, 500, 3), 2);
	assert_int_equal(file_size(FIRST_LOG), size / 2 * 3);
	assert_int_equal(walk(PLOG_END_HW), 3);
	rest();
	file_cut(FIRST_LOG, size - 1);
	assert_int_equal(put(1, 500, 4), -EUCLEAN);
	fences(EUCLEAN);
}

/* Indexes that were lost meanwhile are built anew. */
static void lose_indexes(bool both)
{
	struct plog_time_hit hit;
	char entry[12];

	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 30; i++)
		put_at(1, 3000, i, 1000 + i);
	rest();
	if (both)
		file_remove(FIRST_INDEX);
	file_remove(FIRST_TIMEINDEX);
	put_at(1, 3000, 30, 1030);
	put_at(1, 3000, 31, 1031);
	assert_int_equal(walk(PLOG_END_HW), 32);
	for (int i = 0; i < 32; i++) {
		assert_int_equal(plog_partition_lookup(env.p, 1000 + i, false, PLOG_END_HW, &hit),
				 0);
		assert_int_equal(hit.offset, i);
	}
	rest();
	assert_true(file_size(FIRST_INDEX) > 8 * 10);
	assert_true(file_size(FIRST_TIMEINDEX) > 12 * 10);
	assert_int_equal(file_size(FIRST_TIMEINDEX) % 12, 0);
	/* no hole at its start */
	assert_int_equal(file_read(FIRST_TIMEINDEX, entry, sizeof(entry)), 12);
	assert_memory_not_equal(entry, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
}

static void test_indexes_gone(void **state)
{
	(void)state;
	lose_indexes(true);
}

static void test_timeindex_gone(void **state)
{
	(void)state;
	lose_indexes(false);
}

/* ---- all at once ---- */

static bool stop;

static void *reader(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct plog_view v = view();
		struct plog_extent ext = { 0 };
		struct plog_time_hit hit;
		int64_t at = v.high_watermark / 2;

		if (!v.high_watermark)
			continue;
		assert_int_equal(plog_partition_locate(env.p, at, 1 << 16, PLOG_END_HW, true, &ext,
						       &v), 0);
		assert_true(ext.length > 0);
		plog_extent_put(&ext);
		assert_int_equal(plog_partition_lookup(env.p, 1000 + at, false, PLOG_END_HW, &hit),
				 0);
		assert_int_equal(hit.offset, at);
	}
	return NULL;
}

static void *rester(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		/* only this thread moves it */
		__atomic_store_n(&shim_clock_ms, shim_clock_ms + 1500, __ATOMIC_RELAXED);
		plog_rest_look();
		usleep(200);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[3];

	(void)state;
	env.config.segment_bytes = 64 << 10;
	env.config.segment_ms = S64_MAX;
	assert_int_equal(env_open(), 0);
	stop = false;
	pthread_create(&threads[0], NULL, reader, NULL);
	pthread_create(&threads[1], NULL, reader, NULL);
	pthread_create(&threads[2], NULL, rester, NULL);
	for (int i = 0; i < 1500; i++) {
		assert_int_equal(put_at(1, 600, i, 1000 + i), i);
		if (i % 8 == 0)
			usleep(400);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(walk(PLOG_END_HW), 1500);
	rest();
	assert_int_equal(files(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#ifdef THREADS	/* without those that set faults beside the workers */
		T(test_closes_and_opens), T(test_commands), T(test_threads),
#else
		T(test_closes_and_opens), T(test_allowed_to_stay), T(test_uncut),
		T(test_synced_before), T(test_times), T(test_commands), T(test_preallocated),
		T(test_no_descriptor),
		T(test_no_memory), T(test_replaced), T(test_directory_replaced),
		T(test_cut_or_longer), T(test_indexes_gone), T(test_timeindex_gone),
		T(test_threads),
#endif
	};

	return cmocka_run_group_tests_name("engine rest", tests, NULL, NULL);
}
