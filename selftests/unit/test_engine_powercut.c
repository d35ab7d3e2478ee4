// SPDX-License-Identifier: MIT
/* What the model found once in millions of steps, step by step. */
#include "engine.h"

#include "../../kmod/engine.h"
#include "../../tools/engine/memfile.h"

static int setup(void **state)
{
	shim_inline_work = true;
	memdisk_wipe();
	return env_setup(state);
}

static unsigned int below(unsigned int n)
{
	return random() % n;
}

/* The largest size since the last sync, and every page as it is now. */
static unsigned int most_of(unsigned int n)
{
	return n - 1;
}

/* All was synced, then an append refused; a roll and a clean end follow, and the power goes. */
static void test_refused_then_closed(void **state)
{
	static u8 rest[16];
	size_t size;
	s64 base = 0;

	(void)state;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(2, 100, 1), 0);
	assert_int_equal(plog_partition_sync(env.p), 0);
	size = memdisk_size(FIRST_LOG);
	base = make_batch(env.buf, 2, 100, 1, 1);
	env.buf[base - 1] ^= 1;
	assert_int_equal(append_as(base, ITER, 0), -EBADMSG);
	assert_int_equal(plog_partition_roll(env.p, NULL, &base), 0);
	env_close();
	memdisk_power_cut(most_of);
	assert_int_equal(memdisk_size(FIRST_LOG), size);
	assert_int_equal(memdisk_read(FIRST_LOG, size, rest, sizeof(rest)), 0);
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 2);
}

/*
 * A partition that is new costs no sync, nor a file that nobody needs; and whatever a
 * power cut leaves of it opens as empty as it was, and takes appends.
 */
static void test_new(void **state)
{
	struct plog_time_hit hit;

	(void)state;
	for (int seed = 0; seed < 300; seed++) {
		u64 syncs = memdisk_syncs;

		srandom(seed);
		memdisk_wipe();
		assert_int_equal(env_open(), 0);
		shim_run_work();
		assert_int_equal(memdisk_size(FIRST_LOG), 0);
		assert_int_equal(memdisk_size(FIRST_INDEX), -1);
		assert_int_equal(memdisk_size(FIRST_TIMEINDEX), -1);
		assert_int_equal(memdisk_size("leader-epoch-checkpoint"), -1);
		assert_int_equal(plog_partition_lookup(env.p, 0, true, PLOG_END_HW, &hit), 0);
		assert_int_equal(hit.offset, -1);
		if (seed & 1) {
			env_close();
			assert_int_equal(memdisk_syncs, syncs);
			assert_int_equal(env_open(), 0);
			env_close();
			assert_int_equal(memdisk_size(FIRST_INDEX), -1);
			assert_int_equal(memdisk_size("leader-epoch-checkpoint"), -1);
		} else {
			env_crash();
		}
		if (seed & 2)
			memdisk_power_cut(below);
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().log_end, 0);
		assert_int_equal(put_at(1, 5000, 1, 1000), 0);
		assert_int_equal(put_at(1, 5000, 2, 2000), 1);
		assert_int_equal(plog_partition_sync(env.p), 0);
		if (seed & 4)
			env_close();
		else
			env_crash();
		memdisk_power_cut(below);
		assert_int_equal(env_open(), 0);
		assert_int_equal(walk(PLOG_END_HW), 2);
		assert_int_equal(view().max_timestamp, 2000);
		assert_int_equal(put(1, 100, 3), 2);
		env_crash();
	}
	assert_int_equal(env_open(), 0);
}

/* What was not touched is closed without a write. */
static void test_untouched(void **state)
{
	u64 syncs, writes;

	(void)state;
	env.config.segment_bytes = 8192;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 20; i++)
		put_at(2, 700, i, 1000 + i);
	env_close();
	for (int i = 0; i < 3; i++) {
		syncs = memdisk_syncs;
		writes = memdisk_writes;
		assert_int_equal(env_open(), 0);
		assert_int_equal(walk(PLOG_END_HW), 40);
		env_close();
		assert_int_equal(memdisk_syncs, syncs);
		assert_int_equal(memdisk_writes, writes);
	}
	/* and with an append it is not */
	assert_int_equal(env_open(), 0);
	put_at(2, 700, 1, 3000);
	env_close();
	assert_true(memdisk_syncs > syncs);
	memdisk_power_cut(below);
	syncs = memdisk_syncs;
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 42);
	assert_int_equal(view().max_timestamp, 3000);
	/* it was clean: nothing had to be settled */
	assert_int_equal(memdisk_syncs, syncs);
}

static int note_gap(void)
{
	int err;

	mutex_lock(&env.p->lock);
	err = plog_note_gap(env.p);
	mutex_unlock(&env.p->lock);
	return err;
}

/* A log of several segments of which nothing was synced. */
static void open_unsynced(unsigned int batches)
{
	memdisk_wipe();
	env.config.segment_bytes = 2048;
	assert_int_equal(env_open(), 0);
	for (unsigned int i = 0; i < batches; i++)
		put(1, 300, i);
	assert_true(view().segments > 4);
	assert_int_equal(env.p->recovery_point, 0);
}

/* From the moment that a log may have gaps no power cut makes one. */
static void test_noted_gap(void **state)
{
	(void)state;
	for (int seed = 0; seed < 100; seed++) {
		srandom(seed);
		open_unsynced(40);
		assert_int_equal(note_gap(), 0);
		/* what rolls from here on syncs what is before it */
		for (int i = 0; seed & 1 && i < 20; i++)
			put(1, 300, i);
		env_crash();
		memdisk_power_cut(below);
		assert_int_equal(env_open(), 0);
		assert_true(view().log_end >= 40);
		assert_int_equal(walk(PLOG_END_HW), view().log_end);
		env_crash();
	}
	assert_int_equal(env_open(), 0);
}

/* And whoever writes the state does it just then. */
static int no_sync(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)pos; (void)len; (void)done;
	if (op != SHIM_SYNC || !strstr(name, ".log"))
		return 0;
	assert_int_equal(plog_save(env.p, false, true), 0);
	return -EIO;
}

/* If it could not be synced it is not noted either. */
static void test_gap_not_noted(void **state)
{
	(void)state;
	for (int seed = 0; seed < 100; seed++) {
		srandom(seed);
		open_unsynced(40);
		shim_file_fault = no_sync;
		assert_int_equal(note_gap(), -EIO);
		shim_file_fault = NULL;
		assert_int_equal(view().state, PLOG_PARTITION_FENCED);
		shim_run_work();
		if (seed & 1)
			env_close();
		else
			env_crash();
		memdisk_power_cut(below);
		assert_int_equal(env_open(), 0);
		assert_int_equal(walk(PLOG_END_HW), view().log_end);
		env_crash();
	}
	assert_int_equal(env_open(), 0);
}

static int fail_op;

static int no_checkpoint(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)op; (void)pos; (void)len; (void)done;
	return strstr(name, "leader-epoch") && fail_op-- == 0 ? -EIO : 0;
}

/*
 * What was to note gaps fails with the note on the disk, its last step was another file's:
 * from there on rolls sync.
 */
static void test_gap_half_noted(void **state)
{
	(void)state;
	for (int seed = 0; seed < 100; seed++) {
		srandom(seed);
		memdisk_wipe();
		env.config.segment_bytes = 2048;
		assert_int_equal(env_open(), 0);
		put(1, 300, 0);
		env.p->epochs_dirty = true;
		fail_op = 1;
		shim_file_fault = no_checkpoint;
		assert_int_equal(note_gap(), -EIO);
		shim_file_fault = NULL;
		for (int i = 1; i < 40; i++)
			put(1, 300, i);
		env_crash();
		memdisk_power_cut(below);
		assert_int_equal(env_open(), 0);
		assert_int_equal(walk(PLOG_END_HW), view().log_end);
		env_crash();
	}
	assert_int_equal(env_open(), 0);
}

/* A record of a leader's, at @offset. */
static s64 follow_one(s64 offset)
{
	size_t n = make_batch(env.buf, 1, 300, offset, 1000);

	put_unaligned_be64(offset, env.buf);
	put_unaligned_be32(0, env.buf + 12);
	return append_as(n, ITER, PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA);
}

/* A follower's log of @batches, on a disk that is new. */
static void open_follower(unsigned int batches)
{
	memdisk_wipe();
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	for (unsigned int i = 0; i < batches; i++)
		assert_int_equal(follow_one(i), i);
}

/* A log was to begin elsewhere and does not: what it lacks after a power cut is no gap. */
static void test_start_at_fails(void **state)
{
	int failed = 0;

	(void)state;
	env.config.segment_bytes = 2048;
	for (int seed = 0; seed < 200; seed++) {
		struct plog_fence f = { 0 };
		s64 at = 1000;

		srandom(seed);
		open_follower(40);
		shim_fail_alloc = 1 + seed % 12;
		if (plog_partition_start_at(env.p, &f, &at) && view().log_start == 0) {
			shim_fail_alloc = 0;
			failed++;
			plog_save(env.p, false, true);
			env_crash();
			memdisk_power_cut(below);
			assert_int_equal(env_open(), 0);
			assert_int_equal(walk(PLOG_END_LEO), view().log_end);
		}
		shim_fail_alloc = 0;
		env_crash();
	}
	assert_true(failed > 20);
	assert_int_equal(env_open(), 0);
}

static int state_syncs;

/* The first sync of the state file says that it failed, whatever reached the disk. */
static int state_sync_fails(enum shim_file_op op, const char *name, u64 pos, size_t len,
			    size_t *done)
{
	(void)pos; (void)len; (void)done;
	return op == SHIM_SYNC && strstr(name, "plog.state") && !state_syncs++ ? -EIO : 0;
}

/* What is synced after a START_AT that failed is there: its word is not on the disk. */
static void test_start_at_half_saved(void **state)
{
	int taken_back = 0;

	(void)state;
	for (int seed = 0; seed < 60; seed++) {
		struct plog_fence f = { 0 };
		s64 at = 1000;

		srandom(seed);
		open_follower(10);
		state_syncs = 0;
		shim_file_fault = state_sync_fails;
		assert_int_equal(plog_partition_start_at(env.p, &f, &at), -EIO);
		shim_file_fault = NULL;
		assert_int_equal(view().state, PLOG_PARTITION_ONLINE);
		taken_back += state_syncs > 1;
		assert_int_equal(follow_one(10), 10);
		assert_int_equal(plog_partition_sync(env.p), 0);
		env_crash();
		memdisk_power_cut(below);
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().log_start, 0);
		assert_int_equal(walk(PLOG_END_LEO), 11);
		env_crash();
	}
	assert_int_equal(taken_back, 60);
	assert_int_equal(env_open(), 0);
}

/*
 * A truncation syncs the file that it cuts, and that one alone has its name after a power
 * cut, where nothing else was synced: the log starts where it did, and is empty.
 */
static void test_first_lost(void **state)
{
	int lost = 0;

	(void)state;
	for (int seed = 0; seed < 60; seed++) {
		s64 to;

		srandom(seed);
		memdisk_wipe();
		/* a new one would sync the directory, and all names */
		memdisk_write("leader-epoch-checkpoint", 0, "0\n0\n", 4);
		env.config.segment_bytes = 2048;
		assert_int_equal(env_open(), 0);
		assert_int_equal(plog_save(env.p, false, true), 0);
		for (int i = 0; i < 9; i++)
			put(1, 300, i);
		to = plog_active(env.p)->base;
		assert_true(to > 0);
		assert_int_equal(plog_partition_truncate(env.p, NULL, &to), 0);
		/* and on: what follows a hole is no log either */
		for (int i = 0; seed & 1 && i < 3; i++)
			put(1, 300, i);
		env_crash();
		memdisk_power_cut(below);
		lost += memdisk_size(FIRST_LOG) < 0;
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().log_start, 0);
		assert_int_equal(walk(PLOG_END_LEO), view().log_end);
		env_crash();
	}
	assert_true(lost > 10);
	assert_int_equal(env_open(), 0);
}

/* Nor an empty one: its first epoch is found again, whatever a power cut leaves. */
static void test_untouched_empty(void **state)
{
	u64 syncs, writes;

	(void)state;
	assert_int_equal(env_open(), 0);
	env_close();
	syncs = memdisk_syncs;
	writes = memdisk_writes;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(env_open(), 0);
		shim_run_work();
		assert_int_equal(view().leader_epoch, 0);
		env_close();
		assert_int_equal(memdisk_syncs, syncs);
		assert_int_equal(memdisk_writes, writes);
	}
	assert_int_equal(env_open(), 0);
	assert_int_equal(put_at(2, 700, 1, 3000), 0);
	assert_int_equal(plog_partition_sync(env.p), 0);
	env_crash();
	memdisk_power_cut(below);
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 2);
	assert_int_equal(view().leader_epoch, 0);
}

static int add_size(void *arg, const struct plog_segment_info *info)
{
	*(u64 *)arg += info->bytes;
	return 0;
}

/*
 * A clean mark was on the disk before a swap whose files got their names; nobody was told
 * that they did.  An append before it, and that the mark is void, may be lost.
 */
static void test_swap_after_clean(void **state)
{
	static const char *const kinds[] = { "log", "index", "timeindex" };
	static u8 kept[2000];
	size_t size;

	(void)state;
	for (int seed = 0; seed < 100; seed++) {
		struct plog_swap_args args = { .first = 0, .last = 1 };
		struct plog_fence f = { 0 };
		u64 bytes = 0;

		srandom(seed);
		memdisk_wipe();
		env.config.segment_bytes = 1100;
		assert_int_equal(env_open(), 0);
		for (int i = 0; i < 4; i++)
			put(1, 600, i);
		assert_int_equal(view().segments, 4);
		assert_int_equal(note_gap(), 0);
		env_close();
		assert_int_equal(env_open(), 0);
		if (seed & 1)
			put(1, 10, 1);
		size = memdisk_read(FIRST_LOG, 0, kept, sizeof(kept));
		memdisk_write(FIRST_LOG ".swap", 0, kept, size);
		memdisk_write(FIRST_INDEX ".swap", 0, NULL, 0);
		memdisk_write(FIRST_TIMEINDEX ".swap", 0, NULL, 0);
		args.generation = env.p->pub.generation;
		assert_int_equal(plog_partition_swap(env.p, &f, &args), 0);
		for (int i = 0; i < 3; i++) {
			char from[80], to[64];

			snprintf(to, sizeof(to), "%020d.%s", 1, kinds[i]);
			memdisk_remove(to);
			snprintf(to, sizeof(to), "%020d.%s", 0, kinds[i]);
			snprintf(from, sizeof(from), "%s.swap", to);
			memdisk_rename(from, to);
		}
		env_crash();
		memdisk_power_cut(below);
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().segments, 3);
		assert_int_equal(plog_partition_segments(env.p, 0, add_size, &bytes), 0);
		assert_int_equal(view().bytes, bytes);
		env_crash();
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_refused_then_closed), T(test_new),
		T(test_untouched), T(test_noted_gap), T(test_gap_not_noted),
		T(test_gap_half_noted), T(test_start_at_fails), T(test_start_at_half_saved),
		T(test_first_lost), T(test_untouched_empty), T(test_swap_after_clean) };

	return cmocka_run_group_tests_name("engine power cuts", tests, NULL, NULL);
}
