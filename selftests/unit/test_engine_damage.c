// SPDX-License-Identifier: MIT
/*
 * Index damage of every kind, of either index or both, of a sealed segment and of
 * the active one, with and without a clean mark: every batch is served, nothing
 * is deleted, times are found, the next append is right, and so it is after it.
 */
#include "engine.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FIRST 500
#define SEALED "00000000000000000177"
#define ACTIVE "00000000000000000354"

static int64_t count;

static char kept[2][65536];	/* indexes of an earlier, shorter log */
static long kept_size[2];

static const char *path_of(const char *name)
{
	static char p[256];

	snprintf(p, sizeof(p), "%s/%s", env.dir, name);
	return p;
}

static void replace(const char *f, const void *bytes, size_t n)
{
	file_cut(f, 0);
	file_write(f, 0, bytes, n);
}

static bool is_time(const char *f)
{
	return strstr(f, "timeindex");
}

static size_t step_of(const char *f)
{
	return is_time(f) ? 12 : 8;
}

static size_t load(const char *f, uint8_t raw[65536])
{
	return file_read(f, raw, 65536);
}

/* ---- kinds ---- */

static void k_missing(const char *f) { file_remove(f); }
static void k_empty(const char *f) { file_cut(f, 0); }
static void k_zero_padded(const char *f) { file_cut(f, file_size(f) + 24 * 50); }
static void k_preallocated(const char *f) { file_cut(f, 10 << 20); }
static void k_padded_oddly(const char *f) { file_cut(f, file_size(f) + 5); }
static void k_half(const char *f) { file_cut(f, file_size(f) / 24 / 2 * 24); }
static void k_one_entry(const char *f) { file_cut(f, step_of(f)); }
static void k_cut_by_1(const char *f) { file_cut(f, file_size(f) - 1); }
static void k_cut_by_7(const char *f) { file_cut(f, file_size(f) - 7); }
static void k_one_byte(const char *f) { file_cut(f, 1); }

static void k_all_zeros(const char *f)
{
	long size = file_size(f);

	file_cut(f, 0);
	file_cut(f, size);
}

static void k_zeros_inside(const char *f)
{
	uint8_t zeros[48] = { 0 };

	file_write(f, file_size(f) / 48 * 24, zeros, 48);
}

static void k_ones(const char *f)
{
	uint8_t ones[24];

	memset(ones, 0xff, sizeof(ones));
	file_write(f, file_size(f), ones, sizeof(ones));
}

static void k_noise(const char *f)
{
	uint8_t raw[65536];
	size_t n = load(f, raw);

	for (size_t i = 0; i < n; i++)
		raw[i] = random();
	replace(f, raw, n);
}

/* As of a shorter log of other batches, then truncated. */
static void k_stale(const char *f)
{
	replace(f, kept[is_time(f)], kept_size[is_time(f)]);
}

/* The other kind of index of the same segment. */
static void k_swapped(const char *f)
{
	uint8_t raw[65536];
	char other[64];
	size_t n;

	snprintf(other, sizeof(other), "%.20s.%s", f, is_time(f) ? "index" : "timeindex");
	n = load(other, raw);
	replace(f, raw, n);
}

static void k_of_another_segment(const char *f)
{
	uint8_t raw[65536];
	char other[64];
	size_t n;

	snprintf(other, sizeof(other), "%s%s", strncmp(f, SEALED, 20) ? SEALED :
		 "00000000000000000000", f + 20);
	n = load(other, raw);
	replace(f, raw, n);
}

/* Offsets counted from another base. */
static void k_wrong_base(const char *f)
{
	uint8_t raw[65536];
	size_t n = load(f, raw), step = step_of(f), at = is_time(f) ? 8 : 0;

	for (size_t i = 0; i + step <= n; i += step)
		put_unaligned_be32(get_unaligned_be32(raw + i + at) + 177, raw + i + at);
	replace(f, raw, n);
}

static void k_out_of_order(const char *f)
{
	uint8_t raw[65536], entry[12];
	size_t n = load(f, raw), step = step_of(f), entries = n / step;

	for (size_t i = 0; i < entries / 2; i++) {
		memcpy(entry, raw + i * step, step);
		memcpy(raw + i * step, raw + (entries - 1 - i) * step, step);
		memcpy(raw + (entries - 1 - i) * step, entry, step);
	}
	replace(f, raw, n);
}

static void k_repeated(const char *f)
{
	uint8_t raw[65536];
	size_t n = load(f, raw), step = step_of(f);

	for (size_t i = step; i + step <= n; i += step)
		memcpy(raw + i, raw, step);
	replace(f, raw, n);
}

/* Positions behind the end of the log; times of the far future. */
static void k_behind_the_end(const char *f)
{
	uint8_t raw[65536];
	size_t n = load(f, raw), step = step_of(f);

	for (size_t i = n / step / 2 * step; i + step <= n; i += step) {
		if (is_time(f))
			put_unaligned_be64(INT64_MAX - 1000 + i, raw + i);
		else
			put_unaligned_be32(0x7fff0000 + i, raw + i + 4);
	}
	replace(f, raw, n);
}

/* Each names a batch behind the one it means. */
static void k_ahead(const char *f)
{
	uint8_t raw[65536];
	size_t n = load(f, raw), step = step_of(f), at = is_time(f) ? 8 : 4;

	for (size_t i = 0; i + 4 * step <= n; i += step)
		memcpy(raw + i + at, raw + i + 3 * step + at, 4);
	replace(f, raw, n);
}

static void k_negative(const char *f)
{
	uint8_t raw[65536];
	size_t n = load(f, raw), step = step_of(f);

	for (size_t i = 0; i + step <= n; i += 2 * step)
		raw[i] |= 0x80;
	replace(f, raw, n);
}

static void k_directory(const char *f)
{
	file_remove(f);
	assert_int_equal(mkdir(path_of(f), 0755), 0);
}

static void k_symlink(const char *f)
{
	file_remove(f);
	assert_int_equal(symlink("/etc/passwd", path_of(f)), 0);
}

static void k_fifo(const char *f)
{
	file_remove(f);
	assert_int_equal(mkfifo(path_of(f), 0644), 0);
}

/* Root reads everything: the fault stands for the permission. */
static const char *denied[2];

static int deny(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)pos;
	(void)len;
	(void)done;
	for (int i = 0; op == SHIM_OPEN && i < 2; i++)
		if (denied[i] && !strcmp(name, denied[i]))
			return -EACCES;
	return 0;
}

static void k_unreadable(const char *f)
{
	denied[is_time(f)] = f;
	shim_file_fault = deny;
}

#define K(name) { #name, k_##name }
static const struct {
	const char *name;
	void (*fn)(const char *file);
} kinds[] = {
	K(missing), K(empty), K(zero_padded), K(preallocated), K(padded_oddly), K(half),
	K(one_entry), K(cut_by_1), K(cut_by_7), K(one_byte), K(all_zeros), K(zeros_inside),
	K(ones), K(noise), K(stale), K(swapped), K(of_another_segment), K(wrong_base),
	K(out_of_order), K(repeated), K(behind_the_end), K(ahead), K(negative), K(directory),
	K(symlink), K(fifo), K(unreadable),
};

/* ---- the log ---- */

/* Times go up and down, so that the time index matters. */
static int64_t time_of(int64_t o)
{
	return 100000 + o * 10 - (o % 7) * 25;
}

static void append_one(void)
{
	assert_int_equal(put_at(1, 200, count, time_of(count)), count);
	count++;
}

static void look_everywhere(void)
{
	struct plog_time_hit hit;
	int64_t best = 0;

	assert_int_equal(view().log_end, count);
	assert_int_equal(walk(PLOG_END_LEO), count);
	for (int64_t o = 0; o < count; o += 13) {
		struct plog_extent ext = { 0 };
		struct plog_view v;
		int64_t want = 0;

		assert_int_equal(plog_partition_locate(env.p, o, 1, PLOG_END_LEO, true, &ext, &v),
				 0);
		assert_int_equal(ext.base_offset, o);
		plog_extent_put(&ext);
		while (time_of(want) < time_of(o))
			want++;
		assert_int_equal(plog_partition_lookup(env.p, time_of(o), false, PLOG_END_LEO,
						       &hit), 0);
		assert_int_equal(hit.offset, want);
		assert_int_equal(hit.timestamp, time_of(want));
	}
	for (int64_t o = 1; o < count; o++)
		if (time_of(o) > time_of(best))
			best = o;
	assert_int_equal(plog_partition_lookup(env.p, 0, true, PLOG_END_LEO, &hit), 0);
	assert_int_equal(hit.offset, best);
	assert_int_equal(plog_partition_lookup(env.p, time_of(best) + 1, false, PLOG_END_LEO, &hit),
			 0);
	assert_int_equal(hit.offset, -1);
}

static void keep(const char *f)
{
	kept_size[is_time(f)] = file_read(f, kept[is_time(f)], sizeof(kept[0]));
	assert_true(kept_size[is_time(f)] > 48);
}

static void make_log(void)
{
	env.config.segment_bytes = 48000;
	env.config.index_interval_bytes = 500;
	assert_int_equal(env_open(), 0);
	/* another log, whose indexes are kept */
	for (int i = 0; i < 150; i++)
		put_at(2, 77, i, 100003 + 31 * i);
	env_close();
	keep(FIRST_INDEX);
	keep(FIRST_TIMEINDEX);
	env_empty();
	count = 0;
	assert_int_equal(env_open(), 0);
	while (count < FIRST)
		append_one();
	assert_int_equal(view().segments, 3);
	env_close();
}

static void repair(const char *f)
{
	denied[0] = denied[1] = NULL;
	shim_file_fault = NULL;
	/* what is no file stays in the way until somebody removes it */
	rmdir(path_of(f));
	if (file_size(f) < 0 || unlink(path_of(f)))
		return;
}

/* One damage: @what & 1 the offset index, & 2 the time index. */
static void damage(unsigned int kind, const char *segment, unsigned int what, bool clean)
{
	char name[2][64];
	int64_t before;

	snprintf(name[0], sizeof(name[0]), "%s.index", segment);
	snprintf(name[1], sizeof(name[1]), "%s.timeindex", segment);
	*env.log = 0;
	/* a clean mark is there, or is not: then the log is read from the recovery point on */
	assert_int_equal(env_open(), 0);
	append_one();
	if (clean)
		env_close();
	else
		env_crash();
	for (int i = 0; i < 2; i++)
		if (what & 1 << i)
			kinds[kind].fn(name[i]);
	before = count;
	assert_int_equal(env_open(), 0);
	if (what & 4)
		append_one();	/* before anybody has looked */
	look_everywhere();
	for (int i = 0; i < 12; i++)
		append_one();
	look_everywhere();
	if (what & 1)
		env_crash();
	else
		env_close();
	assert_int_equal(env_open(), 0);
	look_everywhere();
	env_close();
	for (int i = 0; i < 2; i++)
		if (what & 1 << i && (kinds[kind].fn == k_directory || kinds[kind].fn == k_fifo ||
				      kinds[kind].fn == k_symlink ||
				      kinds[kind].fn == k_unreadable))
			repair(name[i]);
	assert_int_equal(env_open(), 0);
	look_everywhere();
	/* back to where it was, so that the segments stay the same */
	{
		struct plog_fence f = { .leader_epoch = view().leader_epoch };
		s64 to = FIRST;

		assert_true(before <= count);
		assert_int_equal(plog_partition_truncate(env.p, &f, &to), 0);
		count = to;
	}
	look_everywhere();
	env_close();
}

static char doing[128];

static void all_kinds(bool clean)
{
	static const char *const segments[] = { SEALED, ACTIVE };

	make_log();
	for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++)
		for (unsigned int s = 0; s < 2; s++)
			for (unsigned int what = 1; what < 8; what++) {
				if (what == 4)
					continue;
				snprintf(doing, sizeof(doing), "%s, %s, %u", kinds[k].name,
					 segments[s], what);
				damage(k, segments[s], what, clean);
			}
	*doing = 0;
}

static void test_with_a_clean_mark(void **state)
{
	(void)state;
	all_kinds(true);
}

static void test_without(void **state)
{
	(void)state;
	all_kinds(false);
}

static int teardown(void **state)
{
	if (*doing)
		print_message("# at %s\n", doing);
	*doing = 0;
	denied[0] = denied[1] = NULL;
	return env_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_with_a_clean_mark, env_setup, teardown),
		cmocka_unit_test_setup_teardown(test_without, env_setup, teardown),
	};

	return cmocka_run_group_tests_name("engine index damage", tests, NULL, NULL);
}
