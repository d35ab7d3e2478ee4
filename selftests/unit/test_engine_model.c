// SPDX-License-Identifier: MIT
/*
 * The engine against a model that keeps a plain array (model.h): random operations
 * with faults and crashes, of the process and of the machine, also in the middle of
 * an operation, and damage to indexes. The disk is in memory (memfile.h) and
 * loses what was not synced, page by page. Nothing depends on the clock or on
 * threads: a failure prints a seed that replays it:
 *
 *   PLOG_SEED=N PLOG_STEPS=N test_engine_model
 */
#include "model_run.h"

#include <time.h>

#ifndef STEPS
#define STEPS 30000
#endif

struct model m;
struct pin pins[MAX_PINS];
unsigned int seed, step, steps;
struct done done;
bool tracing, worn;
static int most;		/* batches before the log begins anew */
static unsigned int trace_from;
static bool replicated;		/* this log, if its configuration says so */

unsigned int rnd(unsigned int n)
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

static u64 any_u64(void)
{
	return (u64)rnd(UINT_MAX) << 32 | rnd(UINT_MAX);
}

void configure(void)
{
	struct plog_config *c = &env.config;

	c->segment_bytes = 2000 + rnd(20000);
	c->max_message_bytes = 1024 + rnd(30000);
	c->index_interval_bytes = rnd(3) ? rnd(3000) : 0;
	c->index_bytes = rnd(4) ? 1 << 20 : 24 + 24 * rnd(5);
	c->segment_ms = rnd(4) ? 1ULL << 40 : 1 + rnd(2000);
	c->segment_jitter_ms = rnd(4) ? 0 : rnd(2000);
	c->retention_ms = rnd(2) ? -1 : 500 + rnd(20000);
	c->retention_bytes = rnd(2) ? -1 : (s64)rnd(100000);
	c->file_delete_delay_ms = rnd(2000);
	c->flush_messages = rnd(8) ? PLOG_NEVER : 1 + rnd(100);
	c->flush_ms = rnd(8) ? PLOG_NEVER : rnd(1000);
	c->preallocate = !rnd(4);
	c->flags = rnd(4) ? 0 : PLOG_STATE_LOG_APPEND_TIME;
	if (replicated)
		c->flags |= PLOG_STATE_REPLICATED | (rnd(4) ? PLOG_STATE_LEADER : 0);
}

/* How often of 1000 steps, and what; one that returns something is to return 0. */
static const struct {
	unsigned int share;
	int (*change)(void);
	void (*look)(void);
} operations[] = {
	{ 450, do_append },
	{ 55, do_replica },
	{ 15, .look = do_refused },
	{ 90, .look = do_locate },
	{ 45, .look = do_lookup },
	{ 30, .look = do_read },
	{ 20, .look = do_headers },
	{ 20, .look = do_ask_epochs },
	{ 25, .look = do_pin },
	{ 20, do_truncate },
	{ 8, do_truncate_epoch },
	{ 15, do_log_start },
	{ 10, do_epoch },
	{ 12, do_lead },
	{ 3, do_start_at },
	{ 25, do_hw },
	{ 20, do_unstable },
	{ 15, do_retain },
	{ 15, do_retired },
	{ 10, do_swap },
	{ 5, do_swap_done },
	{ 5, do_roll },
	{ 12, do_sync },
	{ 10, do_configure },
	{ 20, .look = do_fault },
	{ 10, .look = do_reopen },
};

static void one_step(void)
{
	unsigned int what = rnd(1000), kind;

	shim_clock_ms += rnd(20);
	if (!rnd(4))
		do_work();
	for (unsigned int i = 0; i < ARRAY_SIZE(operations); i++) {
		if (what >= operations[i].share) {
			what -= operations[i].share;
			continue;
		}
		if (operations[i].look)
			operations[i].look();
		else
			assert_int_equal(operations[i].change(), 0);
		trace("%u", i);
		check_view();
		return;
	}
	kind = rnd(5);
	do_crash(kind > 1, kind & 1);
	check_view();
}

static void begin_anew(void)
{
	unpin_all();
	if (env.p) {
		check_all();
		env_close();
	}
	worn = false;
	memdisk_wipe();
	model_clear(&m);
	most = 50 + rnd(1500);
	replicated = !rnd(3);
	env.deletes = rnd(3);
	done.logs++;
	configure();
	assert_int_equal(env_open(), 0);
	take_role();
	m.epoch = view().leader_epoch;
	if (model_leads(&m))
		model_epoch(&m, m.epoch, 0);
}

static void quiet(const char *line)
{
	if (tracing)
		print_message("# %s", line);
}

static int model_setup(void **state)
{
	shim_inline_work = true;
	shim_fixed_ms = clock_start;
	shim_random = any_u64;
	if (env_setup(state))
		return -1;
	shim_log = quiet;
	return 0;
}

static int model_teardown(void **state)
{
	if (step < steps)
		print_message("# failed in step %u: PLOG_SEED=%u PLOG_STEPS=%u\n", step, seed,
			      step + 1);
	unpin_all();
	return env_teardown(state);
}

static void print_done(void)
{
#define N(x) ((unsigned long long)done.x)
	print_message("# %u steps: %llu logs, %llu crashes, %llu of them power cuts, %llu in the middle of something; %llu damaged indexes and epoch files, %llu failing calls, %llu pages lost\n",
		      steps, N(logs), N(crashes), N(cuts), N(middle), N(damage), N(faults),
		      (unsigned long long)memdisk_lost_pages);
	print_message("# %llu retentions that moved the log start, %llu retired segments deleted, %llu compactions, %llu new roles, %llu cuts by epoch, %llu logs begun anew elsewhere\n",
		      N(retained), N(retired), N(swaps), N(leads), N(epoch_cuts), N(restarts));
	print_message("# %llu ends of transactions, the last stable offset exact after %llu steps; %llu look-ups by time, %llu walks over headers\n",
		      N(transactions), N(exact), N(lookups), N(headers));
#undef N
}

static void test_model(void **state)
{
	(void)state;
	trace_from = getenv("PLOG_TRACE") ? (unsigned int)atoi(getenv("PLOG_TRACE")) : UINT_MAX;
	steps = getenv("PLOG_STEPS") ? (unsigned int)atoi(getenv("PLOG_STEPS")) : STEPS;
	seed = getenv("PLOG_SEED") ? (unsigned int)atoi(getenv("PLOG_SEED")) :
				     (unsigned int)time(NULL);
	print_message("# PLOG_SEED=%u PLOG_STEPS=%u\n", seed, steps);
	rnd(0);
	for (step = 0; step < steps; step++) {
		tracing = step >= trace_from;
		if (!env.p || m.n >= most || worn)
			begin_anew();
		one_step();
	}
	check_all();
	print_done();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_model, model_setup, model_teardown),
	};

	return cmocka_run_group_tests_name("engine model", tests, NULL, NULL);
}
