// SPDX-License-Identifier: MIT
/*
 * Transactions in the engine: the first unstable offset through appends,
 * replication, truncations and restarts, and the last offset of a producer.
 */
#include "transaction.h"

#include <pthread.h>
#include <sys/stat.h>

#include <linux/wait.h>

#include "../../kmod/engine.h"

static int64_t lso(void)
{
	struct plog_view v = view();

	assert_int_equal(v.last_stable, plog_partition_end(env.p, PLOG_END_LSO));
	return v.last_stable;
}

static int set_unstable(int64_t offset, int64_t *now)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };
	s64 at = offset;
	int err = plog_partition_set_unstable(env.p, &f, &at);

	if (now)
		*now = at;
	return err;
}

static void set_hw(int64_t offset)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };
	s64 at = offset;

	assert_int_equal(plog_partition_set_hw(env.p, &f, &at), 0);
	assert_int_equal(at, offset);
}

static void cut(int64_t offset)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };
	s64 at = offset;

	assert_int_equal(plog_partition_truncate(env.p, &f, &at), 0);
}

static void open_replicated(void)
{
	env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
	assert_int_equal(env_open(), 0);
}

static void test_one_transaction(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().first_unstable, -1);
	assert_int_equal(put(2, 10, 1), 0);
	assert_int_equal(lso(), 2);
	assert_int_equal(put_transaction(7, 3, PLOG_UNSTABLE_HERE), 2);
	assert_int_equal(lso(), 2);
	assert_int_equal(view().high_watermark, 5);
	assert_int_equal(put_transaction(7, 1, PLOG_UNSTABLE_HERE), 5);
	assert_int_equal(put(1, 10, 1), 6);
	assert_int_equal(lso(), 2);
	assert_int_equal(walk(PLOG_END_LSO), 2);
	assert_int_equal(put_marker(7, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE), 7);
	assert_int_equal(lso(), 8);
	assert_int_equal(view().first_unstable, -1);
	assert_int_equal(walk(PLOG_END_LSO), 8);
}

/* The daemon says where the oldest of several begins. */
static void test_interleaved(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put_transaction(1, 1, PLOG_UNSTABLE_HERE), 0);
	assert_int_equal(put_transaction(2, 1, PLOG_UNSTABLE_HERE), 1);
	assert_int_equal(put_transaction(3, 1, PLOG_UNSTABLE_HERE), 2);
	assert_int_equal(put_marker(2, PLOG_CONTROL_ABORT, 0), 3);
	assert_int_equal(lso(), 0);
	assert_int_equal(put_marker(1, PLOG_CONTROL_COMMIT, 2), 4);
	assert_int_equal(lso(), 2);
	assert_int_equal(put_transaction(1, 1, PLOG_UNSTABLE_HERE), 5);
	assert_int_equal(put_marker(3, PLOG_CONTROL_COMMIT, 5), 6);
	assert_int_equal(lso(), 5);
	assert_int_equal(put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE), 7);
	assert_int_equal(lso(), 8);
}

/* A daemon that says nothing lets no reader see what is open. */
static void test_said_nothing(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 10, 1);
	assert_int_equal(put_idempotent(5, 1), 1);
	assert_int_equal(lso(), 2);
	assert_int_equal(put_transaction(5, 1, SAYS_NOTHING), 2);
	assert_int_equal(put_marker(5, PLOG_CONTROL_COMMIT, SAYS_NOTHING), 3);
	assert_int_equal(lso(), 2);
	assert_int_equal(set_unstable(-1, NULL), 0);
	assert_int_equal(lso(), 4);
}

static void test_refused(void **state)
{
	struct plog_append_args args = { .flags = PLOG_APPEND_UNSTABLE, .raw = env.buf };
	struct plog_fence stale = { .leader_epoch = -5 };
	s64 at = 0;

	(void)state;
	assert_int_equal(env_open(), 0);
	args.size = make_batch(env.buf, 1, 10, 1, 1);
	assert_int_equal(plog_partition_append(env.p, &args), -EINVAL);
	assert_int_equal(put_transaction(1, 1, 1), -EINVAL);	/* behind its own base */
	assert_int_equal(put_transaction(1, 1, -3), -EINVAL);
	assert_int_equal(put_transaction(1, 1, PLOG_UNSTABLE_NONE), -EINVAL);
	assert_int_equal(view().log_end, 0);
	assert_int_equal(put_transaction(1, 1, 0), 0);
	assert_int_equal(lso(), 0);
	assert_int_equal(set_unstable(2, NULL), -ERANGE);
	assert_int_equal(set_unstable(-2, NULL), -ERANGE);
	assert_int_equal(plog_partition_set_unstable(env.p, &stale, &at), -ESTALE);
	assert_int_equal(lso(), 0);
	assert_int_equal(set_unstable(1, NULL), 0);
	assert_int_equal(lso(), 1);
}

/* In a replicated log the end of a transaction counts when its marker is replicated. */
static void test_replicated(void **state)
{
	int64_t now;

	(void)state;
	open_replicated();
	assert_int_equal(put_transaction(1, 1, PLOG_UNSTABLE_HERE), 0);
	assert_int_equal(put_transaction(2, 1, PLOG_UNSTABLE_HERE), 1);
	assert_int_equal(put_marker(1, PLOG_CONTROL_COMMIT, 1), 2);
	assert_int_equal(put_marker(2, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE), 3);
	assert_int_equal(put_transaction(1, 1, PLOG_UNSTABLE_HERE), 4);
	assert_int_equal(lso(), 0);
	set_hw(2);
	assert_int_equal(lso(), 0);
	set_hw(3);
	assert_int_equal(lso(), 1);
	set_hw(4);
	assert_int_equal(lso(), 4);
	set_hw(5);
	assert_int_equal(lso(), 4);
	/* without an append: all before the log end must be replicated */
	assert_int_equal(put_marker(1, PLOG_CONTROL_COMMIT, SAYS_NOTHING), 5);
	assert_int_equal(set_unstable(-1, &now), 0);
	assert_int_equal(now, 4);
	set_hw(6);
	assert_int_equal(lso(), 6);
	/* a log that stops being replicated has no high watermark behind */
	assert_int_equal(put_transaction(1, 1, PLOG_UNSTABLE_HERE), 6);
	assert_int_equal(put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE), 7);
	assert_int_equal(lso(), 6);
	env.config.flags = 0;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	assert_int_equal(lso(), 8);
}

/* More ends than are kept apart: they count later, and all of them in the end. */
static void test_many_ends_wait(void **state)
{
	(void)state;
	open_replicated();
	for (int i = 0; i < 100; i++) {
		assert_int_equal(put_transaction(1, 1, PLOG_UNSTABLE_HERE), 2 * i);
		assert_int_equal(put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE), 2 * i + 1);
	}
	for (int hw = 1; hw <= 200; hw++) {
		set_hw(hw);
		assert_true(lso() <= hw);
		if (hw < 30)
			assert_int_equal(lso(), hw & ~1);
	}
	assert_int_equal(lso(), 200);
}

static void test_truncated_marker(void **state)
{
	(void)state;
	open_replicated();
	put_transaction(1, 1, PLOG_UNSTABLE_HERE);
	put_transaction(2, 1, PLOG_UNSTABLE_HERE);
	set_hw(2);
	put_marker(1, PLOG_CONTROL_COMMIT, 1);
	put_marker(2, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE);
	put_transaction(1, 1, PLOG_UNSTABLE_HERE);
	cut(3);				/* the second marker, and what begins behind it */
	set_hw(3);
	assert_int_equal(lso(), 1);
	cut(3);
	put_marker(2, PLOG_CONTROL_ABORT, PLOG_UNSTABLE_NONE);
	set_hw(4);
	assert_int_equal(lso(), 4);
	put_transaction(1, 1, PLOG_UNSTABLE_HERE);
	put(1, 10, 1);
	cut(5);
	assert_int_equal(view().first_unstable, 4);
	cut(4);				/* the transaction itself */
	assert_int_equal(view().first_unstable, -1);
	assert_int_equal(lso(), 4);
}

/* Markers below the high watermark: an unclean election. Nobody knows what opens again. */
static void test_truncated_below(void **state)
{
	struct plog_fence f = { 0 };
	s64 at = 1;

	(void)state;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 5; i++)
		put(1, 10, i);
	cut(4);				/* no producer about */
	assert_int_equal(view().first_unstable, -1);
	put_transaction(1, 1, PLOG_UNSTABLE_HERE);
	put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE);
	put(1, 10, 1);
	cut(6);				/* behind the marker */
	assert_int_equal(lso(), 6);
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), 0);
	cut(5);
	assert_int_equal(view().first_unstable, 1);
	assert_int_equal(lso(), 1);
	assert_int_equal(set_unstable(4, NULL), 0);
	assert_int_equal(lso(), 4);
}

static void test_log_start_passes(void **state)
{
	struct plog_fence f = { 0 };
	s64 at;

	(void)state;
	assert_int_equal(env_open(), 0);
	put_transaction(1, 4, PLOG_UNSTABLE_HERE);
	put(4, 10, 1);
	at = 6;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), 0);
	assert_int_equal(lso(), 6);
	assert_int_equal(view().last_producer, -1);
	put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE);
	assert_int_equal(lso(), 9);
	assert_int_equal(view().last_producer, 8);
}

static void *wait_for_stable(void *arg)
{
	wait_event(*plog_partition_waitq(env.p),
		   plog_partition_end(env.p, PLOG_END_LSO) >= (long)arg);
	return NULL;
}

/* The offset moves, the log end does not: who waits for committed records hears of it. */
static void test_wakes(void **state)
{
	pthread_t t;
	int heard;

	(void)state;
	assert_int_equal(env_open(), 0);
	put_transaction(1, 1, PLOG_UNSTABLE_HERE);
	assert_int_equal(pthread_create(&t, NULL, wait_for_stable, (void *)1), 0);
	usleep(20000);
	heard = env.visible;
	assert_int_equal(set_unstable(-1, NULL), 0);
	pthread_join(t, NULL);
	assert_true(env.visible > heard);
}

/* So it does when the log start goes beyond the transaction, and else nobody is woken. */
static void test_log_start_wakes(void **state)
{
	struct plog_fence f = { 0 };
	pthread_t t;
	s64 at = 3;
	int heard;

	(void)state;
	assert_int_equal(env_open(), 0);
	put(4, 10, 1);
	put_transaction(1, 4, PLOG_UNSTABLE_HERE);
	put(4, 10, 2);
	heard = env.visible;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), 0);
	assert_int_equal(env.visible, heard);
	assert_int_equal(pthread_create(&t, NULL, wait_for_stable, (void *)6), 0);
	usleep(20000);
	at = 6;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), 0);
	pthread_join(t, NULL);
	assert_true(env.visible > heard);
}

/* ---- restarts ---- */

static void test_clean_restart(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	put_idempotent(9, 2);
	put(1, 10, 1);
	put_transaction(1, 1, PLOG_UNSTABLE_HERE);
	put(1, 10, 1);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(lso(), 3);
	assert_int_equal(view().last_producer, 3);
	put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(lso(), 6);
	assert_int_equal(view().last_producer, 5);
}

static void test_crash(void **state)
{
	(void)state;
	env.config.segment_bytes = 1024;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 20; i++)
		put(1, 80, i);
	put_transaction(1, 1, PLOG_UNSTABLE_HERE);	/* 20 */
	put_transaction(2, 1, PLOG_UNSTABLE_HERE);
	put_marker(1, PLOG_CONTROL_COMMIT, 21);
	for (int i = 0; i < 20; i++)
		put(1, 80, i);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(lso(), 21);
	assert_int_equal(view().last_producer, 22);
	/* again, after a sync in the middle of it */
	assert_int_equal(plog_partition_sync(env.p), 0);
	put_marker(2, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE);
	assert_int_equal(lso(), 44);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(lso(), 44);
	assert_int_equal(view().last_producer, 43);
	/* a directory without our state, Apache Kafka's */
	put_transaction(3, 1, PLOG_UNSTABLE_HERE);
	env_crash();
	file_remove("plog.state");
	assert_int_equal(env_open(), 0);
	assert_int_equal(lso(), 44);
	assert_int_equal(view().last_producer, 44);
}

static int say_open(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)pos; (void)len; (void)done;
	if (op == SHIM_SYNC && !strcmp(name, FIRST_LOG))
		set_unstable(2, NULL);
	return 0;
}

/* The daemon finds one that is open while what lies around it is synced. */
static void test_open_while_synced(void **state)
{
	(void)state;
	for (int again = 0; again < 2; again++) {
		env_empty();
		assert_int_equal(env_open(), 0);
		put_transaction(1, 2, PLOG_UNSTABLE_HERE);
		put_transaction(2, 2, 0);
		/* which is not so */
		put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE);
		assert_int_equal(lso(), 5);
		if (again) {
			assert_true(plog_flush(env.p));
			put(1, 10, 1);
		}
		shim_file_fault = say_open;
		assert_true(plog_flush(env.p));
		shim_file_fault = NULL;
		assert_int_equal(lso(), 2);
		env_crash();
		assert_int_equal(env_open(), 0);
		assert_int_equal(lso(), 2);
		/* and the next sync goes by what is open then */
		put_marker(2, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE);
		assert_true(plog_flush(env.p));
		assert_int_equal(env.p->settled.offset, view().log_end);
		env_crash();
	}
	assert_int_equal(env_open(), 0);
	assert_int_equal(lso(), view().log_end);
}

/* The marker was not on stable storage: what it ended is open again. */
static void test_lost_marker(void **state)
{
	struct plog_fence f = { 0 };
	s64 at = 0;
	long size;

	(void)state;
	assert_int_equal(env_open(), 0);
	put_transaction(1, 1, PLOG_UNSTABLE_HERE);
	put(1, 10, 1);
	assert_int_equal(plog_partition_sync(env.p), 0);
	size = file_size(FIRST_LOG);
	put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE);
	assert_int_equal(lso(), 3);
	/* the state file is written meanwhile, with the log end as it is now */
	at = 1;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), 0);
	env_crash();
	file_cut(FIRST_LOG, size);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().first_unstable, 0);
	assert_int_equal(lso(), 1);	/* the log start */
}

/* What is below the high watermark is over, what is not waits, after a crash too. */
static void test_crash_replicated(void **state)
{
	(void)state;
	open_replicated();
	put_transaction(1, 1, PLOG_UNSTABLE_HERE);
	put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE);
	set_hw(2);
	assert_int_equal(plog_partition_sync(env.p), 0);
	env_close();
	open_replicated();
	put_transaction(1, 1, PLOG_UNSTABLE_HERE);
	put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE);
	put_transaction(2, 1, PLOG_UNSTABLE_HERE);
	env_crash();
	open_replicated();
	assert_int_equal(view().first_unstable, 2);
	set_hw(3);
	assert_int_equal(lso(), 2);
	set_hw(4);
	assert_int_equal(lso(), 4);
	set_hw(5);
	assert_int_equal(lso(), 4);
	cut(4);
	assert_int_equal(view().first_unstable, -1);
}

/* More at once than a scan tells apart: those beyond hold, until the daemon speaks. */
static void test_crash_with_many(void **state)
{
	static uint8_t young[8192];
	size_t size;

	(void)state;
	assert_int_equal(env_open(), 0);
	size = file_read("plog.state", young, sizeof(young));
	assert_true(size > 0);
	for (int i = 0; i < 1030; i++)
		assert_int_equal(put_transaction(i, 1, PLOG_UNSTABLE_HERE), i);
	for (int i = 0; i < 1030; i++)
		put_marker(i, PLOG_CONTROL_COMMIT, i == 1029 ? PLOG_UNSTABLE_NONE : i + 1);
	assert_int_equal(lso(), 2060);
	env_crash();
	/* as if nothing of it had been noted */
	file_write("plog.state", 0, young, size);
	file_cut("plog.state", size);
	assert_int_equal(env_open(), 0);
	assert_int_equal(lso(), 1024);
	assert_int_equal(set_unstable(-1, NULL), 0);
	assert_int_equal(lso(), 2060);
}

static void test_no_memory(void **state)
{
	size_t n;

	(void)state;
	open_replicated();
	n = make_batch(env.buf, 1, 20, 1, 1000);
	of_producer(env.buf, n, 1, true);
	shim_fail_alloc = 1;
	assert_int_equal(append_says(n, PLOG_UNSTABLE_HERE), -ENOMEM);
	shim_fail_alloc = 1;
	assert_int_equal(set_unstable(-1, NULL), -ENOMEM);
	shim_fail_alloc = 0;
	assert_int_equal(view().log_end, 0);
	assert_int_equal(append_says(n, PLOG_UNSTABLE_HERE), 0);
	put_marker(1, PLOG_CONTROL_COMMIT, PLOG_UNSTABLE_NONE);
	env_crash();
	for (int i = 1;; i++) {
		int err;

		shim_fail_alloc = i;
		err = env_open();
		if (!err)
			break;
		assert_int_equal(err, -ENOMEM);
	}
	shim_fail_alloc = 0;
	assert_int_equal(view().first_unstable, 0);
	set_hw(2);
	assert_int_equal(lso(), 2);
}

/* ---- the last offset with a producer id ---- */

static void test_last_producer(void **state)
{
	(void)state;
	env.config.segment_bytes = 1024;
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().last_producer, -1);
	put(3, 80, 1);
	put_idempotent(4, 3);		/* 3 to 5 */
	for (int i = 0; i < 30; i++)
		put(1, 80, i);
	put_idempotent(5, 2);		/* 36, 37 */
	put(1, 10, 1);
	assert_true(view().segments > 3);
	assert_int_equal(view().last_producer, 37);
	cut(38);
	assert_int_equal(view().last_producer, 37);
	cut(36);			/* it is segments away */
	assert_int_equal(view().last_producer, 5);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().last_producer, 5);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().last_producer, 5);
	cut(3);
	assert_int_equal(view().last_producer, -1);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().last_producer, -1);
}

/* Replica batches: many in one append, of several producers. */
static void test_replica_batches(void **state)
{
	static uint8_t many[8192];
	size_t n = 0, one;
	struct plog_batch b;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 6; i++) {
		one = i == 4 ? make_marker(many + n, 1, PLOG_CONTROL_COMMIT, 2) :
			       make_batch(many + n, 2, 10, i, 1000 + i);
		if (i == 1 || i == 3)
			of_producer(many + n, one, i, true);
		assert_int_equal(plog_batch_decode(many + n, &b), 0);
		b.base_offset = 10 * i;
		plog_batch_encode(&b, many + n);
		n += one;
	}
	assert_int_equal(append_replica(many, n, SAYS_NOTHING), 0);
	assert_int_equal(view().first_unstable, 10);
	assert_int_equal(view().last_producer, 40);
	set_hw(52);
	assert_int_equal(lso(), 10);
	assert_int_equal(set_unstable(30, NULL), 0);
	assert_int_equal(lso(), 30);
	env_crash();
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	set_hw(52);
	assert_int_equal(lso(), 30);
	/* what it says of the whole: nothing is open behind it, once that is replicated */
	cut(0);
	assert_int_equal(append_replica(many, n, PLOG_UNSTABLE_HERE), 0);
	assert_int_equal(view().first_unstable, 0);
	cut(0);
	assert_int_equal(append_replica(many, n, PLOG_UNSTABLE_NONE), 0);
	assert_int_equal(view().first_unstable, -1);
}

/* ---- against a model ---- */

#define PRODUCERS	6
#define EVENTS		4000

/* What was appended: a producer's batch, its end, or nobody's. */
struct happened {
	int producer;
	bool end;
};

static struct happened log_of[EVENTS];

/* The oldest transaction that is open after @end, whose end at or behind @seen is not seen. */
static int64_t oldest(int64_t end, int64_t seen)
{
	int64_t open[PRODUCERS], first = INT64_MAX;

	for (int i = 0; i < PRODUCERS; i++)
		open[i] = -1;
	for (int64_t o = 0; o < end; o++) {
		int p = log_of[o].producer;

		if (p < 0 || (log_of[o].end && o >= seen))
			continue;
		if (log_of[o].end)
			open[p] = -1;
		else if (open[p] < 0)
			open[p] = o;
	}
	for (int i = 0; i < PRODUCERS; i++)
		if (open[i] >= 0 && open[i] < first)
			first = open[i];
	return first;
}

static int64_t says(int64_t end)
{
	int64_t first = oldest(end, end);

	return first == INT64_MAX ? PLOG_UNSTABLE_NONE : first;
}

static void run_model(unsigned int seed, bool is_replicated, int steps)
{
	struct plog_view v;
	bool exact = true;

	for (int i = 0; i < steps; i++) {
		int what = rand_r(&seed) % 100, producer = rand_r(&seed) % PRODUCERS;
		int64_t end = view().log_end, first, limit, at;

		if (end >= EVENTS - 1)
			break;
		if (what < 35) {
			log_of[end] = (struct happened){ producer, false };
			assert_int_equal(put_transaction(producer, 1, exact && what < 25 ?
							 PLOG_UNSTABLE_HERE : SAYS_NOTHING), end);
		} else if (what < 65) {
			log_of[end] = (struct happened){ producer, true };
			assert_int_equal(put_marker(producer, what & 1, says(end + 1)), end);
		} else if (what < 75) {
			log_of[end] = (struct happened){ -1, false };
			assert_int_equal(put(1, 30, i), end);
		} else if (what < 88) {
			if (is_replicated) {
				at = view().high_watermark;
				set_hw(at + rand_r(&seed) % (end - at + 1));
			}
		} else if (what < 92) {
			at = is_replicated ? view().high_watermark : end;
			cut(at + rand_r(&seed) % (end - at + 1));
		} else if (what < 94) {
			assert_int_equal(plog_partition_sync(env.p), 0);
		} else if (what < 96) {
			env_close();
			assert_int_equal(env_open(), 0);
			exact = false;
		} else if (what < 97) {
			env_crash();
			assert_int_equal(env_open(), 0);
			exact = false;
		} else {
			/* the daemon has built its state again */
			assert_int_equal(set_unstable(says(end), NULL), 0);
		}
		v = view();
		/* no reader sees a record of a transaction whose end is not replicated */
		first = oldest(v.log_end, v.high_watermark);
		limit = first < v.high_watermark ? first : v.high_watermark;
		if (v.last_stable > limit)
			fail_msg("step %d: last stable %lld, may be %lld", i,
				 (long long)v.last_stable, (long long)limit);
		/* and without a restart everything that may be seen, but where ends are put together */
		if (exact && !is_replicated && v.last_stable != limit)
			fail_msg("step %d: last stable %lld, not %lld", i,
				 (long long)v.last_stable, (long long)limit);
		first = -1;
		for (int64_t o = 0; o < v.log_end; o++)
			if (log_of[o].producer >= 0)
				first = o;
		assert_int_equal(v.last_producer, first);
	}
	/* in the end all comes right */
	v = view();
	if (is_replicated)
		set_hw(v.log_end);
	assert_int_equal(set_unstable(says(v.log_end), NULL), 0);
	v = view();
	assert_int_equal(v.last_stable, says(v.log_end) < 0 ? v.log_end : says(v.log_end));
	env_close();
}

static void test_model(void **state)
{
	(void)state;
	env.config.segment_bytes = 4096;
	for (unsigned int seed = 1; seed <= 40; seed++) {
		bool is_replicated = seed & 1;

		print_message("# seed %u\n", seed);
		env.config.flags = is_replicated ? PLOG_STATE_REPLICATED | PLOG_STATE_LEADER : 0;
		env.log[0] = 0;
		assert_int_equal(env_open(), 0);
		run_model(seed, is_replicated, 300);
		env_wipe();
		assert_int_equal(mkdir(env.dir, 0700), 0);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_one_transaction), T(test_interleaved), T(test_said_nothing),
		T(test_refused), T(test_replicated), T(test_many_ends_wait),
		T(test_truncated_marker), T(test_truncated_below), T(test_log_start_passes),
		T(test_wakes), T(test_log_start_wakes), T(test_clean_restart), T(test_crash),
		T(test_open_while_synced),
		T(test_lost_marker),
		T(test_crash_replicated), T(test_crash_with_many), T(test_no_memory),
		T(test_last_producer), T(test_replica_batches), T(test_model),
	};

	return cmocka_run_group_tests_name("engine transactions", tests, NULL, NULL);
}
