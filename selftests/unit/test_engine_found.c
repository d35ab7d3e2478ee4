// SPDX-License-Identifier: MIT
/*
 * What the model found, step by step: swaps, retired segments, log starts, leader epochs
 * and transactions, across stops that were not clean. The disk is in memory.
 */
#include "transaction.h"

#include "../../kmod/engine.h"
#include "../../tools/engine/memfile.h"

static int setup(void **state)
{
	shim_inline_work = true;
	memdisk_wipe();
	return env_setup(state);
}

static const char *name_of(s64 base, const char *kind)
{
	static char name[64];

	snprintf(name, sizeof(name), "%020lld.%s", (long long)base, kind);
	return name;
}

static void roll(void)
{
	s64 base;

	assert_int_equal(plog_partition_roll(env.p, NULL, &base), 0);
	assert_int_equal(base, view().log_end);
}

static int start_log_at(s64 offset)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };

	return plog_partition_set_log_start(env.p, &f, &offset);
}

static s64 truncate_to(s64 offset)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };

	assert_int_equal(plog_partition_truncate(env.p, &f, &offset), 0);
	return offset;
}

/* Put a segment of the @keep first bytes of FIRST.log in its place, files named or not. */
static void swap_out(s64 first, u64 keep, bool named)
{
	static const char *const kinds[] = { "index", "timeindex", "log" };
	struct plog_fence f = { .leader_epoch = view().leader_epoch };
	struct plog_swap_args args = { .first = first, .last = first };
	s64 pending, last;
	char from[64];

	memdisk_write(name_of(first, "index.swap"), 0, NULL, 0);
	memdisk_write(name_of(first, "timeindex.swap"), 0, NULL, 0);
	assert_int_equal(memdisk_read(name_of(first, "log"), 0, env.buf, keep), keep);
	memdisk_write(name_of(first, "log.swap"), 0, env.buf, keep);
	assert_int_equal(plog_partition_swap_state(env.p, &args.generation, &pending, &last), 0);
	assert_int_equal(plog_partition_swap(env.p, &f, &args), 0);
	if (!named)
		return;
	for (int i = 0; i < 3; i++) {
		strcpy(from, name_of(first, kinds[i]));
		strcat(from, ".swap");
		memdisk_rename(from, name_of(first, kinds[i]));
	}
}

static void swap_done(void)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };

	assert_int_equal(plog_partition_swap_done(env.p, &f), 0);
}

static int add_bytes(void *arg, const struct plog_segment_info *info)
{
	*(u64 *)arg += info->bytes;
	return 0;
}

static u64 bytes_of_segments(void)
{
	u64 bytes = 0;

	assert_int_equal(plog_partition_segments(env.p, 0, add_bytes, &bytes), 0);
	return bytes;
}

static const char *epochs(void)
{
	struct plog_epoch_info got[16];
	static char text[256];
	size_t n = 0;
	int count = plog_partition_epochs(env.p, 0, got, 16);

	text[0] = 0;
	for (int i = 0; i < count; i++)
		n += snprintf(text + n, sizeof(text) - n, "%s%d:%lld", i ? " " : "", got[i].epoch,
			      (long long)got[i].start);
	return text;
}

static int64_t follow(s64 offset, s32 epoch, unsigned int count)
{
	size_t n = make_batch(env.buf, count, 50, (unsigned int)offset, 1000);

	put_unaligned_be64(offset, env.buf);
	put_unaligned_be32(epoch, env.buf + 12);
	return append_as(n, ITER, PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA);
}

/* ---- the log start ---- */

/* A log that could not begin anew is there, also when it is opened again. */
static void test_start_at_refused(void **state)
{
	struct plog_fence f = { 0 };
	s64 to = 1000;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(2, 100, 1), 0);
	roll();
	assert_int_equal(put(2, 100, 1), 2);
	to = 2;
	assert_int_equal(plog_partition_set_hw(env.p, &f, &to), 0);
	swap_out(0, 0, true);
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	to = 1000;
	assert_int_equal(plog_partition_start_at(env.p, &f, &to), -EBUSY);
	assert_int_equal(to, 4);
	swap_done();
	assert_int_equal(plog_partition_sync(env.p), 0);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 0);
	assert_int_equal(view().log_end, 4);
}

/* The same, where the file of that name is in somebody's hands. */
static void test_start_at_taken(void **state)
{
	struct plog_fence f = { 0 };
	s64 to;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	env.config.file_delete_delay_ms = 0;
	env.deletes = true;
	assert_int_equal(env_open(), 0);
	assert_int_equal(follow(0, 0, 5), 0);
	roll();
	assert_int_equal(follow(5, 0, 5), 5);
	roll();
	assert_int_equal(follow(10, 0, 5), 10);
	assert_int_equal(truncate_to(4), 0);
	assert_int_equal(plog_partition_retired_take(env.p, 5, 1), 0);
	to = 5;
	assert_int_equal(follow(0, 0, 3), 0);
	assert_int_equal(plog_partition_start_at(env.p, &f, &to), -EBUSY);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 0);
	assert_int_equal(view().log_end, 3);
}

/* Three segments, of which the first is retired and the second compacted to nothing. */
static void make_gap(void)
{
	env.config.file_delete_delay_ms = 1 << 20;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(put(5, 100, i), 5 * i);
		roll();
	}
	assert_int_equal(put(5, 100, 3), 15);
	assert_int_equal(start_log_at(7), 0);
	assert_int_equal(view().retired, 1);
	swap_out(5, 0, true);
	swap_done();
}

/* What an empty segment told the end of does not come back, whatever is left of it. */
static void test_retired_behind_an_empty_one(void **state)
{
	(void)state;
	make_gap();
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(bytes_of_segments(), view().bytes);
	assert_int_equal(view().retired, 2);
	assert_int_equal(view().log_end, 20);
	assert_int_equal(walk(PLOG_END_HW), 10);
}

/* Recovery begins in it: it must not be taken for the end of the log. */
static void test_retired_in_the_way(void **state)
{
	(void)state;
	make_gap();
	env.p->recovery_point = 7;
	assert_int_equal(plog_save(env.p, false, true), 0);
	env_crash();
	memdisk_cut(FIRST_LOG, memdisk_size(FIRST_LOG) - 1);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 7);
	assert_int_equal(view().log_end, 20);
	assert_int_equal(walk(PLOG_END_HW), 10);
}

/* A log that starts in a gap before its first segment is truncated to its start. */
static void test_truncated_before_the_first_segment(void **state)
{
	(void)state;
	make_gap();
	env_close();
	memdisk_remove(FIRST_LOG);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().segments, 2);
	assert_int_equal(truncate_to(7), 7);
	assert_int_equal(put(2, 100, 1), 7);
	assert_int_equal(plog_partition_sync(env.p), 0);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 9);
	assert_int_equal(walk(PLOG_END_HW), 2);
}

/* And the high watermark of before does not come back for what is appended then. */
static void test_truncated_below_the_watermark(void **state)
{
	(void)state;
	make_gap();
	env_close();
	memdisk_remove(FIRST_LOG);
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().high_watermark, 20);
	assert_int_equal(truncate_to(7), 7);
	assert_int_equal(view().high_watermark, 7);
	assert_int_equal(follow(7, 0, 2), 7);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 9);
	assert_int_equal(view().high_watermark, 7);
}

/* A segment that lies below the log start, and that an open leaves out. */
static void test_bytes_after_a_clean_end(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(5, 100, 1), 0);
	assert_int_equal(put(5, 100, 1), 5);
	assert_int_equal(start_log_at(5), 0);
	assert_int_equal(truncate_to(5), 5);
	roll();
	assert_int_equal(put(5, 100, 1), 5);
	assert_int_equal(view().segments, 2);
	assert_int_equal(bytes_of_segments(), view().bytes);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().segments, 1);
	assert_int_equal(bytes_of_segments(), view().bytes);
}

/* ---- retired files ---- */

/* What the disk had. */
static unsigned int all_is_lost(unsigned int n)
{
	return n == 5 ? 1 : 0;
}

/* Files that the engine has emptied stay so: a log may begin anew at a lower offset. */
static void test_emptied_for_good(void **state)
{
	(void)state;
	env.config.file_delete_delay_ms = 0;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(5, 100, 1), 0);
	roll();
	assert_int_equal(put(5, 100, 1), 5);
	assert_int_equal(plog_partition_sync(env.p), 0);
	assert_int_equal(start_log_at(5), 0);
	shim_run_work();
	assert_int_equal(memdisk_size(FIRST_LOG), 0);
	env_crash();
	memdisk_power_cut(all_is_lost);
	assert_int_equal(memdisk_size(FIRST_LOG), 0);
}

/* ---- leader epochs ---- */

/* An epoch that ends where the log starts has no record: Kafka forgets it, and so do we. */
static void test_epoch_below_the_start(void **state)
{
	struct plog_fence f = { 0 };
	s64 to = 5;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	assert_int_equal(plog_partition_set_epoch(env.p, 4), 0);
	f.leader_epoch = 4;
	assert_int_equal(follow(0, 3, 5), 0);
	assert_int_equal(follow(5, 4, 5), 5);
	to = 5;
	assert_int_equal(plog_partition_set_hw(env.p, &f, &to), 0);
	assert_int_equal(start_log_at(5), 0);
	assert_int_equal(truncate_to(5), 5);
	assert_string_equal(epochs(), "");
	/* the leader has older ones there: who does not take them can never follow it */
	assert_int_equal(follow(5, 2, 5), 5);
	assert_int_equal(follow(10, 3, 5), 10);
	assert_string_equal(epochs(), "2:5 3:10");
	env_crash();
	memdisk_remove("leader-epoch-checkpoint");
	assert_int_equal(env_open(), 0);
	/* what lies below the log start has no say */
	assert_string_equal(epochs(), "2:5 3:10");
	assert_int_equal(truncate_to(5), 5);
	assert_string_equal(epochs(), "");
}

/* ---- producers and transactions ---- */

/* A marker below the part that is scanned ended a transaction too. */
static void test_marker_below_the_scan(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put_transaction(1, 3, PLOG_UNSTABLE_HERE), 0);
	assert_int_equal(put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE), 3);
	assert_int_equal(put_transaction(2, 1, PLOG_UNSTABLE_HERE), 4);
	assert_int_equal(plog_partition_sync(env.p), 0);
	assert_int_equal(plog_save(env.p, false, true), 0);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().first_unstable, 4);
	/* it is open again */
	assert_int_equal(truncate_to(3), 3);
	assert_int_equal(view().last_stable, 0);
}

/* What the last producer's offset is on stable storage is not what it is in memory. */
static void test_swap_of_the_last_producer(void **state)
{
	u64 first, tail;

	(void)state;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put_idempotent(1, 1), 0);
	first = memdisk_size(FIRST_LOG);
	assert_int_equal(put_idempotent(1, 1), 1);
	roll();
	assert_int_equal(put(1, 100, 1), 2);
	assert_int_equal(plog_partition_sync(env.p), 0);
	tail = memdisk_size(name_of(2, "log"));
	assert_int_equal(put_idempotent(1, 1), 3);
	swap_out(0, first, true);
	swap_done();
	assert_int_equal(view().last_producer, 3);
	env_crash();
	memdisk_cut(name_of(2, "log"), tail);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 3);
	assert_int_equal(view().last_producer, 0);
}

/* A swap took it, and nobody has noted so: who was the last before that? */
static void test_last_producer_swapped_unnoted(void **state)
{
	u64 first;

	(void)state;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put_idempotent(2, 1), 0);
	first = memdisk_size(FIRST_LOG);
	assert_int_equal(put_transaction(1, 1, PLOG_UNSTABLE_HERE), 1);
	assert_int_equal(put_transaction(1, 1, PLOG_UNSTABLE_HERE), 2);
	assert_int_equal(plog_partition_sync(env.p), 0);
	assert_int_equal(plog_save(env.p, false, true), 0);
	assert_int_equal(put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE), 3);
	roll();
	assert_int_equal(put(1, 100, 1), 4);
	swap_out(0, first, true);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().last_producer, 0);
}

static int cut_inside(s64 *end)
{
	struct plog_fence f = { 0 };
	s64 at = 7;

	*end = 7;
	return plog_partition_truncate(env.p, &f, &at);
}

static int start_far(s64 *end)
{
	struct plog_fence f = { 0 };
	s64 at = 1000;

	*end = 1000;
	return plog_partition_start_at(env.p, &f, &at);
}

/* In the last segment's file, which is empty. */
static int start_here(s64 *end)
{
	struct plog_fence f = { 0 };
	s64 at = 20;

	*end = 20;
	return plog_partition_start_at(env.p, &f, &at);
}

/* A cut without memory: it was not made, or it was and the next append learns the rest. */
static void test_cut_without_memory(void **state)
{
	static int (*const cuts[])(s64 *end) = { cut_inside, start_far, start_here };
	int failed = 0, err, i, n;
	bool more;
	s64 end;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	for (i = 0; i < 3; i++) {
		for (n = 1, more = true; more; n++) {
			memdisk_wipe();
			assert_int_equal(env_open(), 0);
			for (int k = 0; k < 20; k++) {
				assert_int_equal(follow(k, 0, 1), k);
				if (k % 5 == 4)
					roll();
			}
			/* so that the times of what is cut are not known */
			env_close();
			assert_int_equal(env_open(), 0);
			shim_fail_alloc = n;
			err = cuts[i](&end);
			more = !shim_fail_alloc;
			shim_fail_alloc = 0;
			assert_true(!err || err == -ENOMEM);
			failed += !!err;
			assert_int_equal(view().state, PLOG_PARTITION_ONLINE);
			if (i ? view().log_start != end : view().log_end != end) {
				assert_true(err);
				assert_int_equal(walk(PLOG_END_LEO), 20);
				assert_int_equal(cuts[i](&end), 0);
			}
			assert_int_equal(view().log_end, end);
			assert_int_equal(follow(end, 0, 3), end);
			assert_int_equal(walk(PLOG_END_LEO), end == 7 ? 10 : 3);
			env_crash();
			assert_int_equal(env_open(), 0);
			assert_int_equal(walk(PLOG_END_LEO), end == 7 ? 10 : 3);
			env_close();
		}
	}
	assert_int_equal(env_open(), 0);
	assert_true(failed > 10);
}

static int lead(s32 epoch)
{
	struct plog_lead_args args = { .flags = PLOG_LEAD_REPLICATED | PLOG_LEAD_LEADER,
				       .epoch = epoch };

	return plog_partition_lead(env.p, &args);
}

/*
 * Who cannot lead for want of memory may have it on the disk already: an epoch that was
 * given out, in which nothing was written. It does no harm: what is appended in the one
 * before is believed, and that epoch, or a later one, leads.
 */
static void test_lead_without_memory(void **state)
{
	int failed = 0, later = 0;
	bool more = true;

	(void)state;
	for (int n = 1; more; n++) {
		for (int again = 0; again < 2; again++) {
			memdisk_wipe();
			assert_int_equal(env_open(), 0);
			assert_int_equal(lead(5), 0);
			assert_int_equal(put(3, 100, 1), 0);
			shim_fail_alloc = n;
			if (!lead(6)) {
				more = !shim_fail_alloc;
				shim_fail_alloc = 0;
				env_crash();
				continue;
			}
			shim_fail_alloc = 0;
			failed++;
			assert_int_equal(view().leader_epoch, 5);
			assert_string_equal(epochs(), "5:0");
			/* the leader of before goes on, or not */
			if (again)
				assert_int_equal(put(2, 100, 2), 3);
			env_crash();
			assert_int_equal(env_open(), 0);
			assert_int_equal(view().log_end, again ? 5 : 3);
			assert_int_equal(walk(PLOG_END_LEO), again ? 5 : 3);
			later += view().leader_epoch == 6;
			assert_true(view().leader_epoch == 5 || view().leader_epoch == 6);
			/* who opens it leads, and begins that epoch where the log ends */
			if (view().leader_epoch == 5)
				assert_string_equal(epochs(), "5:0");
			else
				assert_string_equal(epochs(), again ? "5:0 6:5" : "5:0 6:3");
			assert_int_equal(lead(6), 0);
			assert_string_equal(epochs(), again ? "5:0 6:5" : "5:0 6:3");
			assert_int_equal(lead(7), 0);
			assert_string_equal(epochs(), again ? "5:0 7:5" : "5:0 7:3");
			env_close();
		}
	}
	assert_true(failed > 4 && later);
	assert_int_equal(env_open(), 0);
}

static int count_one(void *arg, const struct plog_retired_info *info)
{
	++*(int *)arg;
	return 0;
}

/* Who deletes is not patient: he tries at each step of an open. */
static int taken_early;

static int take_while_opening(enum shim_file_op op, const char *name, u64 pos, size_t len,
			      size_t *done)
{
	if (view().state != PLOG_PARTITION_OPENING)
		return 0;
	if (!plog_partition_retired_take(env.p, 5, 1))
		taken_early++;
	assert_int_equal(plog_partition_retired(env.p, 0, count_one, &taken_early), 0);
	return 0;
}

/* Nothing is given away that an open has listed: it may make a segment of that name yet. */
static void test_taken_while_opening(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(5, 100, 0), 0);
	roll();
	assert_int_equal(start_log_at(5), 0);
	env_crash();
	shim_file_fault = take_while_opening;
	taken_early = 0;
	assert_int_equal(env_open(), 0);
	shim_file_fault = NULL;
	assert_int_equal(taken_early, 0);
	assert_int_equal(view().log_start, 5);
	assert_int_equal(put(5, 100, 0), 5);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 5);
}

static int note_state(void *arg, const struct plog_retired_info *info)
{
	*(enum plog_retired_state *)arg = info->state;
	return 1;
}

/* A delay that never ends lasts until the log is opened again. */
static void test_delay_without_end(void **state)
{
	enum plog_retired_state is;

	(void)state;
	env.config.file_delete_delay_ms = S64_MAX;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(5, 100, 0), 0);
	roll();
	assert_int_equal(put(5, 100, 0), 5);
	assert_int_equal(start_log_at(5), 0);
	shim_clock_ms += 1LL << 42;
	shim_run_work();
	assert_int_equal(plog_partition_retired(env.p, 0, note_state, &is), 1);
	assert_int_equal(is, PLOG_RETIRED_DELAYED);
	assert_int_equal(plog_partition_retired_take(env.p, 0, 1), -EBUSY);
	assert_true(memdisk_size(FIRST_LOG) > 0);
	env_close();
	assert_int_equal(env_open(), 0);
	shim_run_work();
	assert_int_equal(memdisk_size(FIRST_LOG), 0);
	assert_int_equal(plog_partition_retired(env.p, 0, note_state, &is), 1);
	assert_int_equal(is, PLOG_RETIRED_EMPTIED);
}

/* A write of the state file that fails at its very end. */
static int state_is_full(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	if (op != SHIM_WRITE || strcmp(name, "plog.state"))
		return 0;
	*done = len;
	return -ENOSPC;
}

static int syncs;

static int count_syncs(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	syncs += op == SHIM_SYNC;
	return 0;
}

/* What could not be written down may stand there all the same: a clean end says so again. */
static void test_clean_mark_after_a_failed_write(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(5, 100, 0), 0);
	env_close();
	assert_int_equal(env_open(), 0);
	shim_file_fault = state_is_full;
	assert_int_equal(put(5, 100, 0), -ENOSPC);
	shim_file_fault = NULL;
	env_close();
	/* a recovery syncs what it has found */
	shim_file_fault = count_syncs;
	assert_int_equal(env_open(), 0);
	shim_file_fault = NULL;
	assert_int_equal(syncs, 0);
	assert_int_equal(view().log_end, 5);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_start_at_refused), T(test_start_at_taken),
		T(test_retired_behind_an_empty_one), T(test_retired_in_the_way),
		T(test_truncated_before_the_first_segment),
		T(test_truncated_below_the_watermark), T(test_bytes_after_a_clean_end),
		T(test_emptied_for_good), T(test_epoch_below_the_start),
		T(test_marker_below_the_scan), T(test_swap_of_the_last_producer),
		T(test_last_producer_swapped_unnoted), T(test_cut_without_memory),
		T(test_lead_without_memory), T(test_taken_while_opening),
		T(test_delay_without_end), T(test_clean_mark_after_a_failed_write),
	};

	return cmocka_run_group_tests_name("engine, as the model found it", tests, NULL, NULL);
}
