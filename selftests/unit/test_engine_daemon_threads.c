// SPDX-License-Identifier: MIT
/*
 * What a daemon does to a partition, all of it at once and beside writers and readers, under
 * TSan: retention, log starts, retired files, compaction, rolls, new epochs and roles,
 * truncation by epoch, replica appends, logs that begin anew, ends of transactions, headers.
 */
#include "compact.h"

#include <pthread.h>

#include <linux/wait.h>

#define RECORDS	3
#define ROUNDS	150
#define FOLLOWS	5		/* each so manieth epoch is a follower's */

static bool stop;
static s32 epoch;		/* the last that was taken */
static u64 done[16];

enum {
	LED, CUT, RETAINED, STARTED, TAKEN, SWAPPED, ROLLED, TOLD, APPENDED, READ, WALKED, FOLLOWED,
	ANEW, BELOW, COUNTS
};

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static void count(int what)
{
	__atomic_fetch_add(&done[what], 1, __ATOMIC_RELAXED);
}

static struct plog_fence fence_now(void)
{
	return (struct plog_fence){ .leader_epoch = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE) };
}

/* What a command may say: it was done, or decided in an epoch that is over. */
static bool fine(int err)
{
	return !err || err == -ESTALE;
}

/* The follower's epoch that it is, or -1: it leads. */
static s32 following(void)
{
	s32 now = fence_now().leader_epoch;

	return now && now % FOLLOWS == 0 ? now : -1;
}

/* @buf: make it a batch of a transaction of producer 1. */
static void transactional(uint8_t *buf)
{
	struct plog_batch b;

	assert_int_equal(plog_batch_decode(buf, &b), 0);
	b.producer_id = 1;
	b.producer_epoch = 1;
	b.base_sequence = 0;
	b.attributes |= PLOG_ATTR_TRANSACTIONAL;
	plog_batch_encode(&b, buf);
	fix_crc(buf, b.size);
}

/* Transactions of producer 1, each a batch and a marker, and plain batches. */
static void *writer(void *arg)
{
	uint8_t *buf = malloc(BATCH_MAX);
	unsigned int seed = (long)arg;

	while (!stopped()) {
		struct plog_append_args args = { .raw = buf };
		int err;

		args.size = make_batch(buf, RECORDS, 60, rand_r(&seed) % 999,
				       1000 + rand_r(&seed) % 1000);
		args.flags = PLOG_APPEND_DAEMON;
		args.leader_epoch = fence_now().leader_epoch;
		if ((long)arg == 1) {
			transactional(buf);
			args.flags |= PLOG_APPEND_UNSTABLE;
			args.first_unstable = PLOG_UNSTABLE_HERE;
		}
		err = plog_partition_append(env.p, &args);
		/* a follower takes none */
		assert_true(fine(err) || err == -EROFS);
		if (!err)
			count(APPENDED);
		usleep(50);
	}
	free(buf);
	return NULL;
}

/* The controller: new epochs, sometimes as a follower who has to cut first. */
static void *controller(void *arg)
{
	(void)arg;
	for (s32 e = 1; !stopped(); e++) {
		bool follow = e % FOLLOWS == 0;
		struct plog_lead_args args = {
			.epoch = e,
			.flags = PLOG_LEAD_REPLICATED | (follow ? 0 : PLOG_LEAD_LEADER),
		};

		assert_int_equal(plog_partition_lead(env.p, &args), 0);
		__atomic_store_n(&epoch, e, __ATOMIC_RELEASE);
		count(LED);
		if (follow) {
			struct plog_fence f = { .leader_epoch = e };
			s64 at = args.log_end - 2 * RECORDS;
			s32 asked = e - 1;
			int err;

			if (at < args.high_watermark)
				at = args.high_watermark;
			err = plog_partition_truncate_epoch(env.p, &f, &asked, &at);
			/* a segment that goes is just being renamed */
			assert_true(!err || err == -EBUSY);
			count(CUT);
		}
		usleep(2000);
	}
	return NULL;
}

/*
 * What the leader sends to a follower, two batches at a time, here and there with a gap before
 * them; to a log that has just begun, sometimes from below its start.
 */
static void *fetcher(void *arg)
{
	uint8_t *buf = malloc(BATCH_MAX);
	unsigned int seed = 11;

	(void)arg;
	while (!stopped()) {
		struct plog_append_args args = { .flags = PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA };
		struct plog_view v = view();
		s64 at = v.log_end;
		struct iov_iter it;
		struct kvec vec;
		bool below;
		size_t n = 0;
		int err;

		args.leader_epoch = following();
		if (args.leader_epoch < 0) {
			usleep(100);
			continue;
		}
		below = at && v.log_start == at && rand_r(&seed) % 2;
		if (below)
			at--;
		else if (rand_r(&seed) % 8 == 0)
			at += RECORDS;
		for (int i = 0; i < 2; i++, at += RECORDS) {
			size_t size = make_batch(buf + n, RECORDS, 60, rand_r(&seed) % 999,
						 1000 + rand_r(&seed) % 1000);

			put_unaligned_be64(at, buf + n);
			put_unaligned_be32(args.leader_epoch, buf + n + 12);
			if (i)
				transactional(buf + n);
			n += size;
		}
		vec = (struct kvec){ buf, n };
		iov_iter_kvec(&it, ITER_SOURCE, &vec, 1, n);
		args.from = &it;
		err = plog_partition_append(env.p, &args);
		/* its end has moved since; a log with a compacted segment does not begin anew */
		assert_true(fine(err) || err == -EINVAL || (below && err == -EBUSY));
		if (!err)
			count(below ? BELOW : FOLLOWED);
		usleep(200);
	}
	free(buf);
	return NULL;
}

/* Its leader's log begins behind the end of this one. */
static void *beginner(void *arg)
{
	unsigned int seed = 13;

	(void)arg;
	while (!stopped()) {
		struct plog_fence f = { .leader_epoch = following() };
		s64 to = view().log_end + rand_r(&seed) % 30;
		int err;

		if (f.leader_epoch < 0) {
			usleep(100);
			continue;
		}
		err = plog_partition_start_at(env.p, &f, &to);
		/* the end has moved; a segment of its base, or a compacted one, has not gone yet */
		assert_true(fine(err) || err == -ERANGE || err == -EBUSY);
		if (!err)
			count(ANEW);
		usleep(err ? 300 : 100000);
	}
	return NULL;
}

/* The high watermark follows; transactions end. */
static void *teller(void *arg)
{
	(void)arg;
	while (!stopped()) {
		struct plog_fence f = fence_now();
		struct plog_view v = view();
		s64 to = v.log_end;
		int err = plog_partition_set_hw(env.p, &f, &to);

		assert_true(fine(err) || err == -ERANGE);
		to = -1;
		err = plog_partition_set_unstable(env.p, &f, &to);
		assert_true(fine(err));
		count(TOLD);
		usleep(300);
	}
	return NULL;
}

static void *roller(void *arg)
{
	(void)arg;
	while (!stopped()) {
		struct plog_fence f = fence_now();
		s64 base;
		int err = plog_partition_roll(env.p, &f, &base);

		assert_true(fine(err) || err == -EBUSY);
		count(ROLLED);
		usleep(1500);
	}
	return NULL;
}

static void *retainer(void *arg)
{
	unsigned int seed = 7;

	(void)arg;
	while (!stopped()) {
		struct plog_fence f = fence_now();
		struct plog_view v = view();
		s64 to = v.log_start + rand_r(&seed) % 40;
		int err;

		if (to > v.high_watermark)
			to = v.high_watermark;
		err = plog_partition_set_log_start(env.p, &f, &to);
		/* the watermark may be lower by now */
		assert_true(fine(err) || err == -ERANGE);
		count(STARTED);
		err = plog_partition_retain(env.p);
		assert_true(err >= 0 || err == -EBUSY);
		count(RETAINED);
		plog_partition_reap(env.p);
		usleep(2000);
	}
	return NULL;
}

static int first_ready(void *arg, const struct plog_retired_info *info)
{
	if (info->state != PLOG_RETIRED_READY && info->state != PLOG_RETIRED_EMPTIED)
		return 0;
	*(s64 *)arg = info->base_offset;
	return 1;
}

/* Deletes what is retired. */
static void *janitor(void *arg)
{
	static const char *const kinds[] = { "log", "index", "timeindex" };
	char path[160];

	(void)arg;
	while (!stopped()) {
		s64 base = -1;

		plog_partition_retired(env.p, 0, first_ready, &base);
		if (base < 0 || plog_partition_retired_take(env.p, base, 3)) {
			usleep(500);
			continue;
		}
		for (int i = 0; i < 3; i++) {
			snprintf(path, sizeof(path), "%s/%020lld.%s", env.dir, (long long)base,
				 kinds[i]);
			unlink(path);
		}
		assert_int_equal(plog_partition_retired_done(env.p, base, 3, true), 0);
		count(TAKEN);
	}
	return NULL;
}

static int add_base(void *arg, const struct plog_segment_info *info)
{
	int64_t *base = arg;

	if (base[0] < 200)
		base[++base[0]] = info->base_offset;
	return 0;
}

static bool keep_third(const struct plog_batch *b)
{
	return b->base_offset % (3 * RECORDS) == 0;
}

static void remove_swap(s64 base)
{
	static const char *const kinds[] = { "log", "index", "timeindex" };
	char path[160];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%020lld.%s.swap", env.dir, (long long)base,
			 kinds[i]);
		unlink(path);
	}
}

/* Compacts a segment; one that is retired, or whose end may be cut, is refused. */
static void *compactor(void *arg)
{
	unsigned int seed = 9;

	(void)arg;
	while (!stopped()) {
		struct plog_fence f = fence_now();
		struct plog_swap_args args;
		int64_t base[201] = { 0 };
		s64 pending, last, at;
		int err;

		assert_int_equal(plog_partition_swap_state(env.p, &args.generation, &pending,
							   &last), 0);
		assert_int_equal(plog_partition_segments(env.p, 0, add_base, base), 0);
		if (base[0] < 3) {
			usleep(500);
			continue;
		}
		/* the end may be cut off, or all of it, while its files are read here */
		at = base[1 + rand_r(&seed) % (base[0] > 6 ? base[0] / 3 : 1)];
		try_compact(at, at, keep_third);
		args.first = args.last = at;
		err = plog_partition_swap(env.p, &f, &args);
		assert_true(fine(err) || err == -ERANGE || err == -EBADMSG || err == -ENOENT);
		if (err)
			remove_swap(at);
		else
			finish_files(at, at, RENAMED_LOG);
		/* whatever the epoch is by then */
		while (!err) {
			f = fence_now();
			err = plog_partition_swap_done(env.p, &f);
			if (!err)
				break;
			assert_int_equal(err, -ESTALE);
			err = 0;
			usleep(100);
		}
		if (!err)
			count(SWAPPED);
		usleep(700);
	}
	return NULL;
}

/* Reads on from where it was, or from where the log starts by now. */
static void *reader(void *arg)
{
	uint8_t *buf = malloc(BATCH_MAX);
	enum plog_end end = (long)arg % 3;
	s64 offset = 0;

	while (!stopped()) {
		struct kvec vec = { buf, BATCH_MAX };
		struct plog_extent ext = { 0 };
		struct plog_view v;
		struct iov_iter it;
		u32 pos = 0;
		ssize_t n;
		int err;

		err = plog_partition_locate(env.p, offset, 3000, end, true, &ext, &v);
		assert_true(!err || err == -ERANGE);
		assert_true(v.log_start <= v.last_stable && v.last_stable <= v.high_watermark &&
			    v.high_watermark <= v.log_end);
		if (err || !ext.length) {
			offset = offset >= v.log_start && offset <= v.log_end ? offset :
										v.log_start;
			usleep(100);
			continue;
		}
		iov_iter_kvec(&it, ITER_DEST, &vec, 1, ext.length);
		n = plog_extent_read(&ext, 0, &it);
		assert_true(n == ext.length || n == -ESTALE);
		while (n > 0 && pos < ext.length) {
			struct plog_batch b;

			assert_int_equal(plog_batch_decode(buf + pos, &b), 0);
			assert_int_equal(plog_batch_check(buf + pos, b.size, &b), 0);
			assert_true(plog_batch_last_offset(&b) >= offset);
			offset = plog_batch_last_offset(&b) + 1;
			pos += b.size;
		}
		plog_extent_put(&ext);
		count(READ);
	}
	free(buf);
	return NULL;
}

/* Asks for everything that is to be known. */
static void *prober(void *arg)
{
	struct plog_batch_header *h = calloc(64, sizeof(*h));
	struct plog_epoch_info info[64];
	unsigned int seed = 3;

	(void)arg;
	while (!stopped()) {
		struct plog_partition_stats st;
		struct plog_time_hit hit;
		struct plog_view v = view();
		s64 at = v.log_start, end;
		u32 n = 64;
		s32 asked, now;
		int err;

		err = plog_partition_headers(env.p, rand_r(&seed) % 3, rand_r(&seed) % 4, &at, h,
					     &n, &v);
		assert_true(!err || err == -ERANGE);
		for (u32 i = 1; !err && i < n; i++)
			assert_true(h[i].base_offset > h[i - 1].last_offset);
		err = plog_partition_epochs(env.p, 0, info, 64);
		assert_true(err >= 0);
		for (int i = 1; i < err; i++)
			assert_true(info[i].epoch > info[i - 1].epoch &&
				    info[i].start > info[i - 1].start);
		asked = rand_r(&seed) % 100;
		assert_int_equal(plog_partition_epoch_end(env.p, &asked, &end, &now), 0);
		assert_true(end >= -1);
		assert_int_equal(plog_partition_lookup(env.p, 1000 + rand_r(&seed) % 1000,
						       rand_r(&seed) & 1, PLOG_END_HW, &hit), 0);
		plog_partition_stats(env.p, &st);
		count(WALKED);
	}
	free(h);
	return NULL;
}

static bool all_done(void)
{
	for (int i = 0; i < COUNTS; i++)
		if (!__atomic_load_n(&done[i], __ATOMIC_RELAXED))
			return false;
	return true;
}

static void test_all_at_once(void **state)
{
	static void *(*const what[])(void *) = {
		writer, writer, controller, teller, roller, retainer, janitor, compactor, reader,
		reader, reader, prober, fetcher, beginner,
	};
	pthread_t t[ARRAY_SIZE(what)];
	struct plog_view v;

	(void)state;
	stop = false;
	env.deletes = true;
	env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
	env.config.segment_bytes = 5000;
	env.config.index_interval_bytes = 500;
	env.config.retention_bytes = 60000;
	env.config.file_delete_delay_ms = 5;
	assert_int_equal(env_open(), 0);
	for (long i = 0; i < (long)ARRAY_SIZE(what); i++)
		assert_int_equal(pthread_create(&t[i], NULL, what[i], (void *)i), 0);
	/* on a machine that is busy with others until each has had its turn */
	for (int i = 0; i < ROUNDS || (i < 20 * ROUNDS && !all_done()); i++) {
		usleep(20000);
		if (i % 10 == 0)
			assert_int_equal(plog_partition_sync(env.p), 0);
		env.config.flush_messages = i % 20 ? PLOG_NEVER : 50;
		assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < ARRAY_SIZE(what); i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < COUNTS; i++)
		assert_true(done[i] > 0);
	print_message("# %llu epochs, %llu cuts, %llu retentions, %llu log starts, %llu files deleted, %llu compactions, %llu rolls, %llu watermarks, %llu appends, %llu extents, %llu looks, %llu replica appends, %llu logs begun anew, %llu from below\n",
		      (unsigned long long)done[LED], (unsigned long long)done[CUT],
		      (unsigned long long)done[RETAINED], (unsigned long long)done[STARTED],
		      (unsigned long long)done[TAKEN], (unsigned long long)done[SWAPPED],
		      (unsigned long long)done[ROLLED], (unsigned long long)done[TOLD],
		      (unsigned long long)done[APPENDED], (unsigned long long)done[READ],
		      (unsigned long long)done[WALKED], (unsigned long long)done[FOLLOWED],
		      (unsigned long long)done[ANEW], (unsigned long long)done[BELOW]);
	v = view();
	assert_int_equal(v.state, PLOG_PARTITION_ONLINE);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, v.log_start);
	assert_int_equal(view().leader_epoch, v.leader_epoch);
	walk(PLOG_END_LEO);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_all_at_once) };

	return cmocka_run_group_tests_name("engine, all at once", tests, NULL, NULL);
}
