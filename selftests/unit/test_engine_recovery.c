// SPDX-License-Identifier: MIT
/* Torn tails, damaged indexes, damaged state, foreign files: what opening makes of them. */
#include <fcntl.h>

#include "engine.h"

/* Every offset can be found, and every time. */
static void look_everywhere(int64_t end)
{
	struct plog_view v;

	assert_int_equal(view().log_end, end);
	assert_int_equal(walk(PLOG_END_LEO), end);
	for (int64_t o = 0; o < end; o += end > 200 ? 7 : 1) {
		struct plog_extent ext = { 0 };
		struct plog_time_hit hit;

		assert_int_equal(plog_partition_locate(env.p, o, 100, PLOG_END_LEO, true, &ext, &v),
				 0);
		assert_int_equal(ext.base_offset, o);
		plog_extent_put(&ext);
		assert_int_equal(plog_partition_lookup(env.p, 1000 + o, false, PLOG_END_LEO, &hit),
				 0);
		assert_int_equal(hit.offset, o);
		assert_int_equal(hit.timestamp, 1000 + o);
	}
}

static void fill(int count)
{
	for (int i = 0; i < count; i++)
		put(1, 200, view().log_end);
}

static void test_torn_tail(void **state)
{
	uint8_t zeros[400] = { 0 }, bytes[400], whole[4000];
	size_t size = make_batch(env.buf, 1, 200, 0, 0), all;

	(void)state;
	assert_int_equal(env_open(), 0);
	fill(10);
	env_crash();
	all = file_read(FIRST_LOG, whole, sizeof(whole));
	assert_int_equal(all, 10 * size);
	for (size_t cut = 0; cut <= size; cut++) {
		/* as long as it was written, or with zeros where a page did not make it */
		for (int how = 0; how < 3; how++) {
			file_cut(FIRST_LOG, 0);
			file_write(FIRST_LOG, 0, whole, all - size + cut);
			if (how == 1)
				file_write(FIRST_LOG, all - size + cut, zeros, size - cut);
			if (how == 2) {
				file_write(FIRST_LOG, 0, whole, all);
				file_write(FIRST_LOG, all - size, zeros, cut);
			}
			assert_int_equal(env_open(), 0);
			if (cut == (how == 2 ? 0 : size)) {
				assert_int_equal(view().log_end, 10);
			} else if (view().log_end == 10) {
				/* the bytes that were lost were zeros anyway */
				assert_int_equal(file_read(FIRST_LOG, bytes, 1), 1);
			} else {
				assert_int_equal(view().log_end, 9);
				assert_int_equal(file_size(FIRST_LOG), 9 * size);
			}
			walk(PLOG_END_LEO);
			env_crash();
		}
	}
}

static void test_flipped_bits(void **state)
{
	uint8_t whole[4000], b;
	size_t size = make_batch(env.buf, 1, 200, 0, 0), all;

	(void)state;
	assert_int_equal(env_open(), 0);
	fill(6);
	env_crash();
	all = file_read(FIRST_LOG, whole, sizeof(whole));
	for (size_t at = 3 * size; at < 4 * size; at++) {
		file_write(FIRST_LOG, 0, whole, all);
		b = whole[at] ^ 0x10;
		file_write(FIRST_LOG, at, &b, 1);
		assert_int_equal(env_open(), 0);
		/* the epoch is outside of the CRC, the upper bytes of the offset make a gap */
		if (at - 3 * size >= 12 && at - 3 * size < 16)
			assert_int_equal(view().log_end, 6);
		else if (at - 3 * size >= 8)
			assert_int_equal(view().log_end, 3);
		env_crash();
	}
}

static void test_torn_in_the_middle(void **state)
{
	uint8_t junk[10] = "junkjunk";

	(void)state;
	env.config.segment_bytes = 3000;
	assert_int_equal(env_open(), 0);
	fill(40);
	env_crash();
	/* the flush behind a roll may have moved the recovery point, or not */
	if (file_size("plog.state") >= 0)
		file_remove("plog.state");
	file_write("00000000000000000011.log", 500, junk, 10);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 12);
	assert_int_equal(view().segments, 2);
	assert_non_null(strstr(env.log, "cut off"));
	assert_int_equal(file_size("00000000000000000022.log"), 0);
	look_everywhere(12);
	fill(40);
	look_everywhere(52);
	env_close();
	assert_int_equal(env_open(), 0);
	look_everywhere(52);
}

/* A truncation's cut of a whole segment was lost, and the log has grown over its base since. */
static void test_cut_that_was_lost(void **state)
{
	long long to = 15;
	uint8_t gone[4000];
	size_t size;

	(void)state;
	env.config.segment_bytes = 3000;
	assert_int_equal(env_open(), 0);
	fill(40);
	size = file_read("00000000000000000022.log", gone, sizeof(gone));
	assert_int_equal(plog_partition_truncate(env.p, NULL, &to), 0);
	assert_int_equal(to, 15);
	/* of another size, so that the rolls come at other offsets */
	while (view().log_end < 60)
		put(1, 300, view().log_end);
	env_crash();
	assert_true(file_size("00000000000000000022.log") <= 0);
	file_remove("plog.state");
	file_write("00000000000000000022.log", 0, gone, size);
	assert_int_equal(env_open(), 0);
	assert_non_null(strstr(env.log, "do not follow"));
	look_everywhere(60);
	fill(10);
	look_everywhere(70);
}

/* Where one segment has lost its end and the next all it had, the log ends in the first. */
static void test_emptied_segment(void **state)
{
	size_t size = make_batch(env.buf, 1, 200, 0, 0);
	uint8_t junk[100] = "junk";

	(void)state;
	env.config.segment_bytes = 3000;
	assert_int_equal(env_open(), 0);
	fill(25);
	env_crash();
	/* without a state file offsets may have gaps */
	file_remove("plog.state");
	file_cut("00000000000000000011.log", 9 * size);
	file_write("00000000000000000022.log", 0, junk, sizeof(junk));
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().segments, 2);
	look_everywhere(20);
	fill(10);
	look_everywhere(30);
}

/* Bytes written to the file that is written to now, and of those, what was synced. */
static struct {
	char name[40];
	size_t written, synced;
	int rolls;
	bool late;
} order;

static int watch_order(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)done;
	if (!strstr(name, ".log"))
		return 0;
	if (op == SHIM_SYNC && !strcmp(name, order.name))
		order.synced = order.written;
	if (op != SHIM_WRITE)
		return 0;
	if (strcmp(name, order.name)) {
		order.late |= order.synced != order.written;
		order.rolls += order.name[0] != 0;
		snprintf(order.name, sizeof(order.name), "%s", name);
		order.written = order.synced = 0;
	}
	order.written = pos + len > order.written ? pos + len : order.written;
	return 0;
}

/*
 * A follower that began anew at its leader's start: where its segments need not meet, one is on
 * the disk before the next has a batch.
 */
static void test_gaps_sync_before_roll(void **state)
{
	struct plog_fence f = { .leader_epoch = 0 };
	s64 at = 100;

	(void)state;
	env.config.segment_bytes = 3000;
	env.config.flags |= PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	f.leader_epoch = view().leader_epoch;
	assert_int_equal(plog_partition_start_at(env.p, &f, &at), 0);
	memset(&order, 0, sizeof(order));
	shim_file_fault = watch_order;
	for (int i = 0; i < 60; i++) {
		size_t n = make_batch(env.buf, 1, 200, i, 1000 + i);

		at += i % 7 == 6 ? 5 : 1;
		put_unaligned_be64(at, env.buf);
		put_unaligned_be32(0, env.buf + 12);
		assert_int_equal(append_as(n, ITER, PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA), at);
	}
	shim_file_fault = NULL;
	assert_false(order.late);
	assert_int_equal(order.rolls, 5);
}

/* A power cut takes the end of a segment that was not synced, but not the next one. */
static void test_gap_between_segments(void **state)
{
	size_t size = make_batch(env.buf, 1, 200, 0, 0), saved;
	uint8_t slots[8192];

	(void)state;
	env.config.segment_bytes = 3000;
	assert_int_equal(env_open(), 0);
	env_close();
	assert_int_equal(env_open(), 0);
	fill(1);
	saved = file_read("plog.state", slots, sizeof(slots));
	fill(39);
	env_crash();
	/* as of before the flushes behind the rolls */
	file_cut("plog.state", 0);
	file_write("plog.state", 0, slots, saved);
	file_cut("00000000000000000011.log", 10 * size);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 21);
	assert_int_equal(view().segments, 2);
	assert_non_null(strstr(env.log, "cut off"));
	look_everywhere(21);
	fill(10);
	look_everywhere(31);
}

static void test_clean_open_reads_nothing(void **state)
{
	struct plog_partition_stats st;

	(void)state;
	env.config.segment_bytes = 5000;
	assert_int_equal(env_open(), 0);
	fill(200);
	env_close();
	assert_int_equal(env_open(), 0);
	plog_partition_stats(env.p, &st);
	assert_int_equal(st.recovered_bytes, 0);
	look_everywhere(200);
	env_crash();
	/* nothing was appended: still clean */
	assert_int_equal(env_open(), 0);
	plog_partition_stats(env.p, &st);
	assert_int_equal(st.recovered_bytes, 0);
	fill(1);
	env_crash();
	assert_int_equal(env_open(), 0);
	plog_partition_stats(env.p, &st);
	assert_true(st.recovered_bytes > 0);
	/* and only what lies behind the recovery point */
	assert_true(st.recovered_bytes <= 5000);
	look_everywhere(201);
}

static void test_clean_mark_of_another_log(void **state)
{
	uint8_t saved[8192];
	size_t n;

	(void)state;
	assert_int_equal(env_open(), 0);
	fill(20);
	env_close();
	n = file_read("plog.state", saved, sizeof(saved));
	assert_int_equal(env_open(), 0);
	fill(5);
	env_crash();
	/* as if the new state had never reached the disk */
	file_write("plog.state", 0, saved, n);
	assert_int_equal(env_open(), 0);
	look_everywhere(25);
}

struct damage {
	const char *name;
	void (*fn)(const char *file, long size);
};

static void d_remove(const char *f, long size)
{
	file_remove(f);
}

static void d_empty(const char *f, long size)
{
	file_cut(f, 0);
}

static void d_half(const char *f, long size)
{
	file_cut(f, size / 24 / 2 * 24);
}

static void d_odd(const char *f, long size)
{
	file_cut(f, size - 5);
}

static void d_pad(const char *f, long size)
{
	file_cut(f, size + 24 * 50);
}

static void d_zero(const char *f, long size)
{
	file_cut(f, 0);
	file_cut(f, size);
}

static void d_zero_middle(const char *f, long size)
{
	uint8_t zeros[48] = { 0 };

	file_write(f, size / 48 * 24, zeros, 48);
}

static void d_ones(const char *f, long size)
{
	uint8_t ones[24];

	memset(ones, 0xff, sizeof(ones));
	file_write(f, size / 24 * 24 - 24, ones, 24);
}

static void d_noise(const char *f, long size)
{
	for (long i = 0; i < size; i++) {
		uint8_t b = random();

		file_write(f, i, &b, 1);
	}
}

/* Positions that are a batch's, but another's. */
static void d_shift(const char *f, long size)
{
	uint8_t raw[65536];
	size_t n = file_read(f, raw, sizeof(raw));

	if (n > 24)
		file_write(f, 0, raw + 24, n - 24);
}

static void d_swap(const char *f, long size)
{
	uint8_t raw[65536];
	char other[64];
	size_t n;

	strcpy(other, strcmp(strchr(f, '.'), ".index") ? FIRST_TIMEINDEX : FIRST_INDEX);
	n = file_read(other, raw, sizeof(raw));
	file_cut(f, 0);
	file_write(f, 0, raw, n);
}

/* Entries that name a batch behind the one they mean. */
static void d_ahead(const char *f, long size)
{
	bool times = strstr(f, "time");
	size_t n, step = times ? 12 : 8, field = times ? 8 : 4;
	uint8_t raw[65536];

	n = file_read(f, raw, sizeof(raw));
	for (size_t i = 0; i + 4 * step <= n; i += step)
		memcpy(raw + i + field, raw + i + 3 * step + field, 4);
	file_write(f, 0, raw, n);
}

static const struct damage damages[] = {
	{ "removed", d_remove }, { "empty", d_empty }, { "half", d_half }, { "odd", d_odd },
	{ "padded", d_pad }, { "zeroed", d_zero }, { "zeros inside", d_zero_middle },
	{ "ones at the end", d_ones }, { "noise", d_noise }, { "shifted", d_shift },
	{ "swapped", d_swap }, { "ahead", d_ahead },
};

/* Damage the index of a sealed segment and of the active one, after a clean and an unclean stop. */
static void test_damaged_indexes(void **state)
{
	static const char *const files[] = {
		"00000000000000000177.index", "00000000000000000177.timeindex",
		"00000000000000000354.index", "00000000000000000354.timeindex",
	};
	int64_t end = 500;

	(void)state;
	env.config.segment_bytes = 48000;
	env.config.index_interval_bytes = 500;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < end; i++)
		put(1, 200, i);
	look_everywhere(end);
	env_close();
	for (size_t f = 0; f < 4; f++)
		assert_true(file_size(files[f]) > 100);
	for (size_t d = 0; d < ARRAY_SIZE(damages); d++) {
		for (size_t f = 0; f < 4; f++) {
			print_message("# %s %s\n", files[f], damages[d].name);
			damages[d].fn(files[f], file_size(files[f]));
			assert_int_equal(env_open(), 0);
			look_everywhere(end);
			put(1, 200, end++);
			look_everywhere(end);
			if (f & 1)
				env_crash();
			else
				env_close();
			assert_int_equal(env_open(), 0);
			look_everywhere(end);
			env_close();
		}
	}
}

static void test_damaged_state(void **state)
{
	struct plog_fence f = { 0 };
	uint8_t whole[8192], b;
	size_t n;
	s64 to = 5;

	(void)state;
	assert_int_equal(env_open(), 0);
	fill(20);
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &to), 0);
	to = 7;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &to), 0);
	env_crash();
	n = file_read("plog.state", whole, sizeof(whole));
	for (int slot = 0; slot < 2; slot++) {
		int64_t other = -1;

		for (int at = 0; at < 512; at += 3) {
			file_write("plog.state", 0, whole, n);
			b = whole[slot * 4096 + at] ^ 1;
			file_write("plog.state", slot * 4096 + at, &b, 1);
			assert_int_equal(env_open(), 0);
			/* a damaged slot is passed over for the other one */
			if (other < 0)
				other = view().log_start;
			assert_int_equal(view().log_start, other);
			assert_int_equal(view().log_end, 20);
			env_crash();
		}
		assert_true(other == 5 || other == 7);
	}
	/* both: from the log alone */
	file_cut("plog.state", 0);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 0);
	look_everywhere(20);
	env_crash();
	/* numbers that no log has are damage too, whatever the CRC says: epoch, offsets */
	for (int i = 0; i < 5; i++) {
		static const int at[] = { 88, 140, 148, 156, 164 };
		uint8_t odd[8192];

		memcpy(odd, whole, n);
		for (int slot = 0; slot < 2; slot++) {
			uint8_t *s = odd + slot * 4096;

			s[at[i] + (i ? 7 : 3)] = 0x80;
			put_unaligned_le32(~crc32c(~0u, s, 508), s + 508);
		}
		file_write("plog.state", 0, odd, n);
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().log_start, 0);
		assert_int_equal(view().log_end, 20);
		env_crash();
	}
	/* a version from the future is not guessed at */
	file_write("plog.state", 0, whole, n);
	for (int slot = 0; slot < 2; slot++) {
		uint8_t *s = whole + slot * 4096;

		s[8] = 2;
		put_unaligned_le32(~crc32c(~0u, s, 508), s + 508);
	}
	file_write("plog.state", 0, whole, n);
	assert_int_equal(env_open(), -EOPNOTSUPP);
}

static void test_old_format(void **state)
{
	uint8_t raw[100] = { 0 };

	(void)state;
	put_unaligned_be32(60, raw + 8);
	raw[16] = 1;
	file_write(FIRST_LOG, 0, raw, sizeof(raw));
	assert_int_equal(env_open(), -EPROTONOSUPPORT);
	assert_non_null(strstr(env.log, "old format"));
	assert_int_equal(file_size(FIRST_LOG), sizeof(raw));
	/* zeros are no old batch: just nothing */
	memset(raw, 0, sizeof(raw));
	file_write(FIRST_LOG, 0, raw, sizeof(raw));
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 0);
}

static void test_other_files(void **state)
{
	static const char *const names[] = {
		"partition.metadata", "00000000000000000000.log.deleted",
		"00000000000000000007.log.cleaned", "00000000000000000007.index.swap",
		"0000000000000000000x.log", "99999999999999999999.log", "000.log",
		"00000000000000000010.snapshot", "00000000000000000000.txnindex",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		file_write(names[i], 0, "x", 1);
	assert_int_equal(env_open(), 0);
	fill(3);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().segments, 1);
	look_everywhere(3);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(file_size(names[i]), 1);
}

static void test_not_from_zero(void **state)
{
	(void)state;
	env.config.segment_bytes = 3000;
	assert_int_equal(env_open(), 0);
	fill(40);
	env_close();
	file_remove(FIRST_LOG);
	file_remove(FIRST_INDEX);
	file_remove(FIRST_TIMEINDEX);
	file_remove("plog.state");
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 11);
	assert_int_equal(view().log_end, 40);
	assert_int_equal(walk(PLOG_END_HW), 29);
}

static void test_not_a_file(void **state)
{
	char target[128];

	(void)state;
	snprintf(target, sizeof(target), "%s/%s", env.dir, FIRST_LOG);
	assert_int_equal(symlink("/etc/passwd", target), 0);
	assert_int_equal(env_open(), -EINVAL);
	file_remove(FIRST_LOG);
}

/* ---- truncation ---- */

static int cut_to(int64_t offset, int64_t *now)
{
	struct plog_fence f = { 0 };
	s64 to = offset;
	int err = plog_partition_truncate(env.p, &f, &to);

	if (now)
		*now = to;
	return err;
}

static void test_truncate(void **state)
{
	int64_t now, end;

	(void)state;
	env.config.segment_bytes = 5000;
	env.config.index_interval_bytes = 600;
	assert_int_equal(env_open(), 0);
	fill(100);
	assert_int_equal(cut_to(101, NULL), -ERANGE);
	assert_int_equal(cut_to(100, &now), 0);
	assert_int_equal(now, 100);
	srandom(1);
	for (int i = 0; i < 60; i++) {
		end = view().log_end;
		end -= random() % (i % 10 == 9 ? end : 30);
		assert_int_equal(cut_to(end, &now), 0);
		assert_int_equal(now, end);
		assert_int_equal(view().max_timestamp, end ? 999 + end : -1);
		look_everywhere(end);
		if (i % 4 == 1)
			env_crash();
		if (i % 4 == 3)
			env_close();
		if (!env.p) {
			assert_int_equal(env_open(), 0);
			look_everywhere(end);
		}
		fill(25 + i % 7);
		look_everywhere(end + 25 + i % 7);
		if (i % 8 == 1)
			env_crash();
		if (i % 8 == 5)
			env_close();
		if (!env.p) {
			assert_int_equal(env_open(), 0);
			look_everywhere(end + 25 + i % 7);
		}
	}
	assert_int_equal(cut_to(0, NULL), 0);
	look_everywhere(0);
	env_close();
	assert_int_equal(env_open(), 0);
	look_everywhere(0);
	fill(10);
	look_everywhere(10);
}

static void test_truncate_inside_a_batch(void **state)
{
	int64_t now;

	(void)state;
	assert_int_equal(env_open(), 0);
	put(5, 10, 0);
	put(5, 10, 0);
	assert_int_equal(cut_to(7, &now), 0);
	assert_int_equal(now, 5);
	assert_int_equal(view().log_end, 5);
	assert_int_equal(put(1, 1, 1), 5);
}

static void test_truncate_under_extents(void **state)
{
	struct plog_extent below = { 0 }, across = { 0 }, sealed = { 0 };
	struct kvec vec = { env.buf, 1000 };
	struct plog_reader r;
	struct plog_view v;
	struct iov_iter it;

	(void)state;
	env.config.segment_bytes = 5000;
	assert_int_equal(env_open(), 0);
	fill(50);
	plog_reader_init(&r, env.p, PLOG_END_HW);
	plog_reader_seek(&r, 39);
	next_value(&r);
	assert_int_equal(plog_partition_locate(env.p, 38, 300, PLOG_END_HW, true, &below, &v), 0);
	assert_int_equal(plog_partition_locate(env.p, 38, 1500, PLOG_END_HW, true, &across, &v), 0);
	assert_int_equal(plog_partition_locate(env.p, 48, 1500, PLOG_END_HW, true, &sealed, &v), 0);
	assert_int_equal(cut_to(40, NULL), 0);
	assert_false(plog_extent_stale(&below));
	assert_true(plog_extent_stale(&across));
	assert_true(plog_extent_stale(&sealed));
	iov_iter_kvec(&it, ITER_DEST, &vec, 1, 1000);
	assert_int_equal(plog_extent_read(&below, 0, &it), below.length);
	iov_iter_kvec(&it, ITER_DEST, &vec, 1, 1000);
	assert_int_equal(plog_extent_read(&across, 0, &it), -ESTALE);
	fill(50);
	assert_true(plog_extent_stale(&across));
	iov_iter_kvec(&it, ITER_DEST, &vec, 1, 1000);
	assert_int_equal(plog_extent_read(&sealed, 0, &it), -ESTALE);
	assert_string_equal(next_value(&r), "-ESTALE");
	assert_true(next_value(&r)[0] != '-');
	plog_extent_put(&below);
	plog_extent_put(&across);
	plog_extent_put(&sealed);
	plog_reader_release(&r);
	look_everywhere(90);
}

static void test_truncate_watermark(void **state)
{
	struct plog_fence f = { 0 };
	s64 hw = 20;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
	assert_int_equal(env_open(), 0);
	fill(30);
	assert_int_equal(plog_partition_set_hw(env.p, &f, &hw), 0);
	assert_int_equal(cut_to(25, NULL), 0);
	assert_int_equal(view().high_watermark, 20);
	assert_int_equal(cut_to(15, NULL), 0);
	assert_int_equal(view().high_watermark, 15);
	hw = 10;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &hw), 0);
	assert_int_equal(cut_to(9, NULL), -ERANGE);
	assert_int_equal(cut_to(10, NULL), 0);
	assert_int_equal(view().log_end, 10);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 10);
	assert_int_equal(view().log_start, 10);
	assert_int_equal(view().high_watermark, 10);
}

/* A stop need not wait for a scan that nobody wants any more, and loses nothing by it. */
static void test_abandoned(void **state)
{
	struct plog_dir *dir;
	int fd;

	(void)state;
	env.config.segment_bytes = 3000;
	assert_int_equal(env_open(), 0);
	fill(40);
	env_crash();
	fd = open(env.dir, O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	dir = plog_dir_get(fd);
	close(fd);
	assert_false(IS_ERR(dir));
	env.p = plog_partition_create("test-0", dir, &env.config, NULL, NULL);
	assert_false(IS_ERR(env.p));
	plog_partition_abandon(env.p);
	assert_int_equal(plog_partition_open(env.p), -ECANCELED);
	assert_int_equal(view().state, PLOG_PARTITION_FAILED);
	assert_int_equal(view().error, ECANCELED);
	plog_partition_close(env.p, true);
	plog_partition_put(env.p);
	env.p = NULL;
	assert_int_equal(env_open(), 0);
	look_everywhere(40);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_torn_tail), T(test_flipped_bits), T(test_torn_in_the_middle),
		T(test_cut_that_was_lost), T(test_emptied_segment), T(test_gaps_sync_before_roll),
		T(test_gap_between_segments),
		T(test_clean_open_reads_nothing), T(test_clean_mark_of_another_log),
		T(test_damaged_indexes), T(test_damaged_state), T(test_old_format),
		T(test_other_files), T(test_not_from_zero), T(test_not_a_file), T(test_truncate),
		T(test_truncate_inside_a_batch), T(test_truncate_under_extents),
		T(test_truncate_watermark), T(test_abandoned),
	};

	return cmocka_run_group_tests_name("engine recovery", tests, NULL, NULL);
}
