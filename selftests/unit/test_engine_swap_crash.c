// SPDX-License-Identifier: MIT
/*
 * A compaction interrupted at each of its steps: the daemon dies beside a log that stays
 * open, or all of it does; and the completion is interrupted as well.
 */
#include "compact.h"
#include "../../kmod/engine.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

/* Every call that changes something fails from the n-th on: nothing more happens. */
static int left;

static bool dead(void)
{
	if (left > 0)
		left--;
	errno = EIO;
	return !left;
}

#define renameat(a, b, c, d)	(dead() ? -1 : (renameat)(a, b, c, d))
#define unlinkat(a, b, c)	(dead() ? -1 : (unlinkat)(a, b, c))
#define fsync(fd)		(dead() ? -1 : (fsync)(fd))
#define pwrite(a, b, c, d)	(dead() ? -1 : (pwrite)(a, b, c, d))
#include "../../tools/libplog/datadir_swap.c"
#undef renameat
#undef unlinkat
#undef fsync
#undef pwrite

static int64_t bases[4096];
static uint8_t young_state[8192];	/* plog.state of the empty log */
static size_t young_size;
static int64_t all, compacted;
static int from, to;

static bool keep_third(const struct plog_batch *b)
{
	return b->base_offset % 6 == 0;
}

/* Nothing of the last of the run is left: what covers it does not reach it. */
static bool keep_begin(const struct plog_batch *b)
{
	return b->base_offset % 6 == 0 && b->base_offset < bases[to];
}

static int folder(void)
{
	int fd = open(env.dir, O_RDONLY | O_DIRECTORY);

	assert_true(fd >= 0);
	return fd;
}

static void make(bool (*keep)(const struct plog_batch *b))
{
	char old[128], new[128];

	env.config.segment_bytes = 2048;
	env.config.index_interval_bytes = 300;
	assert_int_equal(env_open(), 0);
	young_size = file_read("plog.state", young_state, sizeof(young_state));
	assert_true(young_size > 0);
	for (int i = 0; i < 120; i++)
		put(2, 60, i);
	all = 240;
	assert_true(log_files(bases, 4096) > 6);
	from = 1;
	to = 4;
	compacted = all - (bases[to + 1] - bases[from]) + compact(bases[from], bases[to], keep);
	for (int i = 0; i < 3; i++) {
		snprintf(old, sizeof(old), "%s/%020lld.%s.swap", env.dir, (long long)bases[from],
			 kinds[i]);
		snprintf(new, sizeof(new), "%s/%020lld.%s.cleaned", env.dir,
			 (long long)bases[from], kinds[i]);
		assert_int_equal(rename(old, new), 0);
	}
}

/* All steps, as far as they get; was it the end? */
static bool steps(int fd)
{
	return !datadir_swap_commit(fd, bases[from], NULL) && !swap(bases[from], bases[to]) &&
	       !datadir_swap_finish(fd, bases[from], bases[to], NULL) && !swap_done();
}

static int odd_names(const char *end)
{
	struct found f = { 0 };
	int64_t swaps = 1;
	int fd = folder(), n = 0;

	assert_int_equal(look(fd, is_leftover, &swaps, &f, NULL), 0);
	for (size_t i = 0; i < f.count; i++)
		n += !end || strstr(f.names[i], end) != NULL;
	free(f.names);
	close(fd);
	return n;
}

static void next(void)
{
	env_wipe();
	assert_int_equal(mkdir(env.dir, 0700), 0);
	env.log[0] = 0;
}

/* The whole machine stops. */
static void test_all_dies(void **state)
{
	bool ended = false, clean = false;
	int old = 0, new = 0, points = 0;

	(void)state;
	for (int n = 1; !ended; points++, clean = !clean, n += clean ? 0 : 1) {
		struct plog_error err = { "" };
		int fd, ret, again;
		int64_t records;

		make(points % 3 == 2 ? keep_begin : keep_third);
		fd = folder();
		left = n;
		ended = steps(fd);
		left = 0;
		if (clean)
			env_close();
		else
			env_crash();
		/* and the completion is interrupted, at each step */
		for (again = 1;; again++) {
			left = again;
			ret = datadir_swap_recover(fd, &err);
			if (left > 0 || !ret)
				break;
		}
		left = 0;
		assert_int_equal(ret, 0);
		assert_int_equal(odd_names(NULL), 0);
		assert_int_equal(env_open(), 0);
		assert_null(strstr(env.log, "cut off"));
		records = walk(PLOG_END_HW);
		if (records == all)
			old++;
		else
			new++;
		/* all of it, or what compaction has left, or that and an old segment behind */
		assert_true(records == all || records == compacted ||
			    records == compacted + (bases[to + 1] - bases[to]));
		assert_int_equal(view().log_end, all);
		put(2, 60, 1);
		env_crash();
		assert_int_equal(env_open(), 0);
		assert_int_equal(walk(PLOG_END_HW), records + 2);
		env_close();
		close(fd);
		next();
	}
	print_message("# %d points: %d with the old segments, %d with the new one\n", points, old,
		      new);
	assert_true(old > 4 && new > 8);
}

/* The daemon dies, the log goes on; the next one asks it. */
static void test_daemon_dies(void **state)
{
	bool ended = false;
	int points = 0;

	(void)state;
	for (int n = 1; !ended; n++, points++) {
		s64 pending, last;
		u64 now;
		int fd, again, ret;

		make(keep_third);
		fd = folder();
		left = n;
		ended = steps(fd);
		left = 0;
		assert_int_equal(walk(PLOG_END_HW), generation() > 1 ? compacted : all);
		for (again = 1;; again++) {
			left = again;
			assert_int_equal(plog_partition_swap_state(env.p, &now, &pending, &last), 0);
			if (pending < 0)
				ret = datadir_swap_drop(fd, NULL);
			else
				ret = datadir_swap_finish(fd, pending, last, NULL);
			if (!ret && pending >= 0)
				ret = swap_done();
			if (left > 0 || !ret)
				break;
		}
		left = 0;
		assert_int_equal(ret, 0);
		assert_int_equal(odd_names(NULL), 0);
		assert_int_equal(walk(PLOG_END_HW), now > 1 ? compacted : all);
		env_close();
		assert_int_equal(env_open(), 0);
		assert_int_equal(walk(PLOG_END_HW), now > 1 ? compacted : all);
		env_close();
		close(fd);
		next();
	}
	print_message("# %d points\n", points);
	assert_true(points > 12);
}

/* As a follower that a leader gave a gap: the log may have been swapped. */
static void note_gaps(void)
{
	mutex_lock(&env.p->lock);
	assert_int_equal(plog_note_gap(env.p), 0);
	mutex_unlock(&env.p->lock);
}

/* A .swap that nobody wrote whole is not believed, and a stranger's folder not touched. */
static void test_not_whole(void **state)
{
	struct plog_error err = { "" };
	int fd = folder();

	(void)state;
	left = 1000;
	file_write("00000000000000000000.log.swap", 0, "x", 1);
	assert_int_equal(datadir_swap_recover(fd, &err), 0);
	assert_int_equal(file_size("00000000000000000000.log.swap"), 1);
	file_remove("00000000000000000000.log.swap");
	assert_int_equal(env_open(), 0);
	put(1, 10, 1);
	note_gaps();
	env_close();
	for (int i = 1; i < 3; i++) {
		static const uint8_t bad[2][61] = { { 0 }, { [11] = 200, [16] = 2 } };

		file_write("00000000000000000000.log.swap", 0, bad[i - 1], i * 30);
		assert_int_equal(datadir_swap_recover(fd, &err), -EINVAL);
		assert_non_null(strstr(err.text, "not whole"));
	}
	assert_int_equal(env_open(), -EUCLEAN);
	file_remove("00000000000000000000.log.swap");
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 1);
	close(fd);
}

/* A swap that the engine never heard of is completed, if it may be one that it has made. */
static void test_not_heard_of(void **state)
{
	int fd;

	(void)state;
	left = 1000;
	make(keep_third);
	note_gaps();
	fd = folder();
	assert_int_equal(datadir_swap_commit(fd, bases[from], NULL), 0);
	env_close();
	assert_int_equal(datadir_swap_recover(fd, NULL), 0);
	assert_int_equal(odd_names(NULL), 0);
	assert_int_equal(env_open(), 0);
	/* the clean mark was for other sizes */
	assert_non_null(strstr(env.log, "was not closed cleanly"));
	assert_int_equal(walk(PLOG_END_HW), compacted);
	assert_int_equal(view().log_end, all);
	close(fd);
}

/*
 * Before the first swap of a log nothing was synced for one, and nothing deleted: no hole
 * that the power cut has left becomes a gap.
 */
static void test_first_is_dropped(void **state)
{
	char name[64];
	int fd;

	(void)state;
	left = 1000;
	make(keep_third);
	fd = folder();
	assert_int_equal(datadir_swap_commit(fd, bases[from], NULL), 0);
	env_crash();
	/* no recovery point was ever written */
	file_write("plog.state", 0, young_state, young_size);
	file_cut("plog.state", young_size);
	/* a segment behind those of the swap had not reached the disk, the next one had */
	name_of(name, bases[to + 1], "log", "");
	file_cut(name, 0);
	assert_int_equal(datadir_swap_recover(fd, NULL), 0);
	assert_int_equal(odd_names(NULL), 0);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, bases[to + 1]);
	assert_int_equal(walk(PLOG_END_HW), bases[to + 1]);
	put(2, 60, 1);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), bases[to + 1] + 2);
	close(fd);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_all_dies), T(test_daemon_dies), T(test_not_whole), T(test_not_heard_of),
		T(test_first_is_dropped),
	};

	return cmocka_run_group_tests_name("engine swap crash", tests, NULL, NULL);
}
