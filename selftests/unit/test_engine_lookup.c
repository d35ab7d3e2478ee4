// SPDX-License-Identifier: MIT
/*
 * Look-ups by time in random logs, against a look at every record: times out of order and
 * equal, all codecs, LogAppendTime, many segments, the log start and the high watermark
 * anywhere. The engine alone, the C library and the daemon, which open compressed batches.
 */
#include "engine.h"
#include "lookup_bridge.h"
#include "maker.h"

#define RECORDS 4000
#define BEGIN INT64_C(1000000000000)

static struct {
	s64 time;
	bool packed;	/* in a compressed batch with times of its own */
	s64 next;	/* where the next batch begins */
} recs[RECORDS];
static s64 start, count, hw;
static enum plog_end end;	/* for whom is asked, */
static s64 limit;		/* and what he may see */
static unsigned int now_at;	/* the seed */
static char asked[200];

/* ---- what the library and the daemon see of it ---- */

static struct plog_extent pinned;

int bridge_lookup(int64_t from, int64_t timestamp, bool max, struct bridge_hit *hit)
{
	struct plog_time_hit found;
	int ret = plog_partition_lookup_from(env.p, from, timestamp, max, end, &found);

	*hit = (struct bridge_hit){ found.offset, found.timestamp, found.leader_epoch,
				    found.inside, found.behind };
	return ret;
}

int bridge_locate(int64_t offset, uint32_t max_bytes, struct bridge_extent *ext)
{
	struct plog_view v;
	int ret;

	plog_extent_put(&pinned);
	ret = plog_partition_locate(env.p, offset, max_bytes, end, true, &pinned, &v);
	ext->length = pinned.length;
	ext->base_offset = pinned.base_offset;
	ext->next_offset = pinned.next_offset;
	return ret;
}

ssize_t bridge_read(uint64_t skip, void *buf, size_t n)
{
	struct kvec vec = { buf, n };
	struct iov_iter it;

	iov_iter_kvec(&it, ITER_DEST, &vec, 1, n);
	return plog_extent_read(&pinned, skip, &it);
}

/* ---- the log ---- */

static void append_one(unsigned int codec, unsigned int n, s64 spread)
{
	struct plog_append_args args = {
		.flags = PLOG_APPEND_DAEMON, .leader_epoch = view().leader_epoch,
	};
	bool stamped = env.config.flags & PLOG_STATE_LOG_APPEND_TIME;
	struct maker m;
	size_t size;

	maker_begin(&m);
	for (unsigned int i = 0; i < n; i++) {
		s64 t = BEGIN + random() % spread;

		recs[count + i].time = t;
		recs[count + i].packed = codec && !stamped;
		recs[count + i].next = count + n;
		maker_record(&m, t, NULL, 0, "some value, so that there are bytes", 10 + t % 25);
	}
	args.raw = maker_end(&m, codec, &size);
	args.size = size;
	/* transactions that begin and end */
	if (random() % 10 == 0) {
		args.flags |= PLOG_APPEND_UNSTABLE;
		args.first_unstable = random() % 2 ? PLOG_UNSTABLE_HERE : PLOG_UNSTABLE_NONE;
	}
	shim_clock_ms = random() % spread - 1000;
	assert_int_equal(plog_partition_append(env.p, &args), 0);
	assert_int_equal(args.base_offset, count);
	for (unsigned int i = 0; stamped && i < n; i++)
		recs[count + i].time = args.log_append_time;
	count += n;
	free(args.raw);
}

static s64 expected(s64 timestamp, bool max)
{
	s64 best = -1;

	for (s64 o = start; o < count; o++) {
		if (max ? best >= 0 && recs[o].time <= recs[best].time : recs[o].time < timestamp)
			continue;
		best = o;
		if (!max)
			break;
	}
	return best >= limit ? -1 : best;
}

static void ask(s64 timestamp, bool max)
{
	s64 want = expected(timestamp, max);
	int64_t offset, time;
	struct bridge_hit hit;

	snprintf(asked, sizeof(asked), "seed %u: %s %lld in [%lld, %lld) of %lld", now_at,
		 max ? "latest," : "at or after", (long long)timestamp, (long long)start,
		 (long long)limit, (long long)count);

	assert_int_equal(bridge_lookup(0, timestamp, max, &hit), 0);
	if (!hit.inside) {
		/* without a compressed batch in its way, the engine alone is right */
		if (want < 0 || !recs[want].packed)
			assert_int_equal(hit.offset, want);
		assert_int_equal(hit.timestamp, hit.offset < 0 ? -1 : recs[hit.offset].time);
	}
	assert_int_equal(library_find(timestamp, max, &offset), 0);
	assert_int_equal(offset, want);
	assert_int_equal(daemon_find(timestamp, max, &offset, &time), 0);
	assert_int_equal(offset, want);
	assert_int_equal(time, want < 0 ? -1 : recs[want].time);
}

static void ask_for_one(void)
{
	ask(0, true);
	ask(0, false);
	ask(INT64_MAX, false);
	for (int i = 0; i < 12 && count; i++) {
		s64 o = random() % count;

		ask(recs[o].time, false);
		ask(recs[o].time + 1, false);
		ask(recs[start + (count > start ? o % (count - start) : 0)].time, false);
	}
}

static void ask_much(void)
{
	end = PLOG_END_HW;
	limit = hw;
	ask_for_one();
	end = PLOG_END_LSO;
	limit = view().last_stable;
	ask_for_one();
}

static void move_watermark(bool all)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };

	if (!(env.config.flags & PLOG_STATE_REPLICATED)) {
		hw = count;
		return;
	}
	if (hw < start)
		hw = start;
	/* followers take whole batches */
	hw = all ? count : hw + random() % (count - hw + 1);
	if (hw)
		hw = recs[hw - 1].next;
	assert_int_equal(plog_partition_set_hw(env.p, &f, &hw), 0);
}

static void move_start(void)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };

	/* small steps too, into the batch of the one before */
	start += random() % (random() % 2 && hw - start > 6 ? 6 : hw - start + 1);
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &start), 0);
}

static void cut(void)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };
	s64 to = start + random() % (count - start + 1);

	if (plog_partition_truncate(env.p, &f, &to) == 0)
		count = to;
	hw = view().high_watermark;
}

static void reopen(bool clean)
{
	plog_extent_put(&pinned);
	if (clean)
		env_close();
	else
		env_crash();
	assert_int_equal(env_open(), 0);
	hw = view().high_watermark;
	assert_int_equal(view().log_end, count);
	assert_int_equal(view().log_start, start);
}

/* @kind: 0 no codec, 1 all of them, 2 LogAppendTime, 3 all of that in turn */
static void one_log(unsigned int seed, unsigned int kind, bool replicated)
{
	s64 spread = seed % 3 ? 40 + seed % 1000 : 5;

	srandom(seed);
	start = count = hw = 0;
	env.config.segment_bytes = 1000 + random() % 6000;
	env.config.index_interval_bytes = random() % 3 ? 200 + random() % 500 : 4096;
	env.config.flags = (replicated ? PLOG_STATE_REPLICATED | PLOG_STATE_LEADER : 0) |
			   (kind == 2 ? PLOG_STATE_LOG_APPEND_TIME : 0);
	assert_int_equal(env_open(), 0);
	ask_much();
	for (int i = 0; i < 120 && count < RECORDS - 10; i++) {
		append_one(kind & 1 ? random() % 5 : 0, 1 + random() % 7, spread);
		move_watermark(random() % 2);
		if (kind == 3 && random() % 8 == 0) {
			env.config.flags ^= PLOG_STATE_LOG_APPEND_TIME;
			assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
		}
		switch (random() % 40) {
		case 0:
		case 1:
			move_start();
			ask_much();
			break;
		case 2:
			cut();
			ask_much();
			break;
		case 3:
			if (!replicated)
				reopen(false);
			ask_much();
			break;
		case 4:
			reopen(true);
			ask_much();
			break;
		}
	}
	ask_much();
	move_start();
	ask_much();
	move_start();
	ask_much();
	plog_extent_put(&pinned);
	env_close();
}

static void run(unsigned int kind, bool replicated)
{
	const char *more = getenv("PLOG_LOOKUP_ROUNDS");
	unsigned int rounds = more ? strtoul(more, NULL, 10) : 12;

	for (unsigned int seed = 1; seed <= rounds; seed++) {
		now_at = seed;
		one_log(seed, kind, replicated);
		env_empty();
	}
	*asked = 0;
}

static void test_plain(void **state) { (void)state; run(0, false); }
static void test_codecs(void **state) { (void)state; run(1, false); }
static void test_append_time(void **state) { (void)state; run(2, false); }
static void test_mixed(void **state) { (void)state; run(3, false); }
static void test_watermark(void **state) { (void)state; run(3, true); }

static int teardown(void **state)
{
	if (*asked)
		print_message("# the last question: %s\n", asked);
	*asked = 0;
	plog_extent_put(&pinned);
	return env_teardown(state);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_plain), T(test_codecs), T(test_append_time), T(test_mixed),
		T(test_watermark),
	};

	return cmocka_run_group_tests_name("engine look-ups by time", tests, NULL, NULL);
}
