// SPDX-License-Identifier: MIT
/*
 * The engine against a model that keeps a plain array: random operations with
 * crashes, of the process and of the machine. A failure prints a seed that
 * replays it: PLOG_SEED=N PLOG_STEPS=N test_engine_model
 */
#include "engine.h"

#include <sys/stat.h>
#include <time.h>

#include "../../kmod/engine.h"

#define MAX_BATCHES 20000

/* A batch of the log as it should be. */
struct expected {
	s64 base;
	unsigned int count, len, seed;
	s64 time;
	s32 epoch;
};

static struct {
	struct expected b[MAX_BATCHES];
	int n;
	s64 start, end;
	s32 epoch;
} m;

static unsigned int seed, step;

static unsigned int rnd(unsigned int n)
{
	static unsigned long long x;

	if (!n) {
		x = seed * 2654435761ULL + 88172645463325252ULL;
		return 0;
	}
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (x >> 11) % n;
}

static void configure(void)
{
	env.config.segment_bytes = 2000 + rnd(20000);
	env.config.max_message_bytes = 1024 + rnd(30000);
	env.config.index_interval_bytes = rnd(3) ? rnd(3000) : 0;
	env.config.index_bytes = rnd(4) ? 1 << 20 : 24 + 24 * rnd(5);
	env.config.segment_ms = rnd(4) ? 1ULL << 40 : 1 + rnd(2000);
}

static void check_view(void)
{
	struct plog_view v = view();

	assert_int_equal(v.log_end, m.end);
	assert_int_equal(v.high_watermark, m.end);
	assert_int_equal(v.log_start, m.start);
	assert_int_equal(v.leader_epoch, m.epoch);
}

/* The first batch whose last offset is @offset or more. */
static int find(s64 offset)
{
	int low = 0, high = m.n;

	while (low < high) {
		int mid = (low + high) / 2;

		if (m.b[mid].base + m.b[mid].count <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void do_append(void)
{
	struct expected *e = &m.b[m.n];
	enum how how = rnd(HOWS);
	size_t size;
	int64_t got;

	if (m.n == MAX_BATCHES)
		return;
	*e = (struct expected){ m.end, 1 + rnd(5), 1 + rnd(rnd(10) ? 200 : 8000), rnd(1000),
				1000 + rnd(3000) + m.n, m.epoch };
	size = make_batch(env.buf, e->count, e->len, e->seed, e->time);
	got = append_as(size, how, rnd(2) ? PLOG_APPEND_DAEMON : 0);
	if (size > env.config.max_message_bytes || size > env.config.segment_bytes) {
		assert_int_equal(got, -EMSGSIZE);
		return;
	}
	assert_int_equal(got, m.end);
	m.n++;
	m.end += e->count;
}

static void do_refused(void)
{
	size_t size = make_batch(env.buf, 2, 100, 1, 1);

	env.buf[size - 1] ^= 1;
	assert_int_equal(append_as(size, rnd(2) ? RAW : ITER, 0), -EBADMSG);
}

static void do_locate(void)
{
	s64 offset = m.start + rnd(m.end - m.start + 1);
	u32 max = rnd(20000), pos = 0;
	struct plog_extent ext = { 0 };
	uint8_t *bytes, *want;
	struct plog_view v;
	int i = find(offset);

	assert_int_equal(plog_partition_locate(env.p, offset, max, PLOG_END_HW, true, &ext, &v), 0);
	if (offset == m.end) {
		assert_int_equal(ext.length, 0);
		return;
	}
	bytes = malloc(ext.length);
	want = malloc(BATCH_MAX);
	assert_true(ext.length > 0);
	assert_int_equal(ext.base_offset, m.b[i].base);
	while (pos < ext.length) {
		struct kvec vec = { bytes + pos, ext.length - pos };
		size_t n = make_batch(want, m.b[i].count, m.b[i].len, m.b[i].seed, m.b[i].time);
		struct iov_iter it;

		put_unaligned_be64(m.b[i].base, want);
		put_unaligned_be32(m.b[i].epoch, want + 12);
		assert_true(n <= ext.length - pos);
		assert_true(pos == 0 || pos + n <= max);
		iov_iter_kvec(&it, ITER_DEST, &vec, 1, n);
		assert_int_equal(plog_extent_read(&ext, pos, &it), n);
		assert_memory_equal(bytes + pos, want, n);
		pos += n;
		i++;
	}
	assert_int_equal(ext.next_offset, i < m.n ? m.b[i].base : m.end);
	plog_extent_put(&ext);
	free(bytes);
	free(want);
}

static void do_lookup(void)
{
	s64 t = 900 + rnd(4000) + m.n / 2;
	struct plog_time_hit hit;
	int i = find(m.start);

	assert_int_equal(plog_partition_lookup(env.p, t, false, PLOG_END_HW, &hit), 0);
	while (i < m.n && m.b[i].time < t)
		i++;
	if (i == m.n) {
		assert_int_equal(hit.offset, -1);
		return;
	}
	assert_int_equal(hit.offset, m.b[i].base > m.start ? m.b[i].base : m.start);
	assert_int_equal(hit.timestamp, m.b[i].time);
	assert_int_equal(hit.leader_epoch, m.b[i].epoch);
}

static void do_read(void)
{
	static uint8_t want[BATCH_MAX];
	s64 offset = m.start + rnd(m.end - m.start + 1);
	struct plog_reader r;
	int i = find(offset);

	plog_reader_init(&r, env.p, PLOG_END_HW);
	plog_reader_seek(&r, offset);
	for (int k = 0; k < 20 && offset < m.end; k++, offset++) {
		struct plog_source src;
		struct plog_record rec;
		const char *got;
		size_t n;

		while (m.b[i].base + m.b[i].count <= offset)
			i++;
		n = make_batch(want, m.b[i].count, m.b[i].len, m.b[i].seed, 0);
		plog_source_mem(&src, want, n);
		rec.pos = PLOG_BATCH_HEADER;
		rec.size = 0;
		for (s64 o = m.b[i].base; o <= offset; o++)
			assert_int_equal(plog_record_decode(&src, rec.pos + rec.size, &rec), 0);
		got = next_value(&r);
		assert_int_equal(strlen(got), rec.value_len);
		assert_memory_equal(got, want + rec.value_pos, rec.value_len);
	}
	if (offset == m.end)
		assert_string_equal(next_value(&r), "-EAGAIN");
	plog_reader_release(&r);
}

/* The log now ends at @end, which is where a batch begins. */
static void model_cut(s64 end)
{
	while (m.n && m.b[m.n - 1].base >= end)
		m.n--;
	m.end = end;
}

static void do_truncate(void)
{
	struct plog_fence f = { .leader_epoch = m.epoch };
	s64 back = rnd(10) ? rnd(20) : rnd(m.end - m.start + 1);
	s64 to = m.end - back < m.start ? m.start : m.end - back;
	s64 want = to;
	int i = find(to);

	/* a batch goes whole, but never one that holds the log start */
	if (i < m.n && m.b[i].base < to)
		want = m.b[i].base;
	if (want < m.start)
		return;
	assert_int_equal(plog_partition_truncate(env.p, &f, &to), 0);
	if (to != want)
		print_message("# step %u: cut to %lld, not %lld; batch %lld+%u, log %lld to %lld\n", step,
			      (long long)to, (long long)want, (long long)m.b[i].base, m.b[i].count,
			      (long long)m.start, (long long)m.end);
	assert_int_equal(to, want);
	model_cut(want);
}

static void do_log_start(void)
{
	struct plog_fence f = { .leader_epoch = m.epoch };
	s64 to = m.start + rnd(rnd(20) ? 5 : m.end - m.start + 1);

	if (to > m.end)
		to = m.end;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &to), 0);
	m.start = to;
}

static void do_epoch(void)
{
	m.epoch += rnd(2);
	assert_int_equal(plog_partition_set_epoch(env.p, m.epoch), 0);
}

static void do_sync(void)
{
	assert_int_equal(plog_partition_sync(env.p), 0);
	assert_int_equal(env.p->recovery_point, m.end);
}

static int find_base(void *arg, const struct plog_segment_info *info)
{
	s64 *a = arg;

	if (info->base_offset <= a[0])
		a[1] = info->base_offset;
	return 0;
}

/* The epoch is kept with the state; what of it was lost comes from the log. */
static void reopen(void)
{
	configure();
	assert_int_equal(env_open(), 0);
	assert_true(view().leader_epoch <= m.epoch);
	assert_int_equal(plog_partition_set_epoch(env.p, m.epoch), 0);
}

/* The machine stops: of what was not synced some bytes are not on the disk. */
static void do_power_cut(void)
{
	struct plog_extent ext = { 0 };
	s64 at[2], point;
	struct plog_view v;
	char name[64];
	u64 pos = 0;
	u32 size = 0;
	s64 base = -1;

	point = env.p->recovery_point > m.start ? env.p->recovery_point : m.start;
	if (point < m.end) {
		at[0] = point + rnd(m.end - point);
		assert_int_equal(plog_partition_locate(env.p, at[0], 1, PLOG_END_HW, true, &ext,
						       &v), 0);
		at[0] = ext.base_offset;
		assert_int_equal(plog_partition_segments(env.p, 0, find_base, at), 0);
		base = ext.base_offset;
		pos = ext.pos;
		size = ext.length;
		plog_extent_put(&ext);
	}
	plog_partition_get(env.p);
	plog_partition_close(env.p, false);
	/* a flush may have come before */
	if (base >= 0 && base < env.p->recovery_point)
		base = -1;
	plog_partition_put(env.p);
	env_crash();
	if (base >= 0) {
		uint8_t zeros[61] = { 0 };

		snprintf(name, sizeof(name), "%020lld.log", (long long)at[1]);
		if (rnd(2))
			file_cut(name, pos + rnd(size));
		else
			file_write(name, pos, zeros, 61);
		/* the batch may begin below the log start, where the log begins anew then */
		model_cut(base);
		if (m.end < m.start)
			m.end = m.start;
	}
	reopen();
}

static void one_step(void)
{
	unsigned int what = rnd(1000);

	if (what < 600)
		do_append();
	else if (what < 640)
		do_refused();
	else if (what < 760)
		do_locate();
	else if (what < 800)
		do_lookup();
	else if (what < 860)
		do_read();
	else if (what < 890)
		do_truncate();
	else if (what < 910)
		do_log_start();
	else if (what < 920)
		do_epoch();
	else if (what < 940)
		do_sync();
	else if (what < 960) {
		configure();
		assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	} else if (what < 970) {
		env_close();
		reopen();
	} else if (what < 985) {
		env_crash();
		reopen();
	} else
		do_power_cut();
	check_view();
}

static void test_model(void **state)
{
	unsigned int steps = getenv("PLOG_STEPS") ? atoi(getenv("PLOG_STEPS")) : 15000;

	(void)state;
	seed = getenv("PLOG_SEED") ? (unsigned int)atoi(getenv("PLOG_SEED")) :
				     (unsigned int)time(NULL);
	print_message("# PLOG_SEED=%u PLOG_STEPS=%u\n", seed, steps);
	rnd(0);
	configure();
	assert_int_equal(env_open(), 0);
	for (step = 0; step < steps; step++) {
		/* begin anew before the array is full, or everything is slow */
		if (m.n >= MAX_BATCHES / 4) {
			assert_int_equal(walk(PLOG_END_HW) > 0, 1);
			env_close();
			env_wipe();
			assert_int_equal(mkdir(env.dir, 0755), 0);
			memset(&m, 0, sizeof(m));
			assert_int_equal(env_open(), 0);
		}
		one_step();
	}
	walk(PLOG_END_HW);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_model) };

	return cmocka_run_group_tests_name("engine model", tests, NULL, NULL);
}
