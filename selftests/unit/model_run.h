/* SPDX-License-Identifier: MIT */
/*
 * The engine and the model side by side: what the files of test_engine_model share.
 */
#ifndef TEST_MODEL_RUN_H
#define TEST_MODEL_RUN_H

#include "model.h"

#include "../../kmod/engine.h"
#include "../../tools/engine/memfile.h"

#define MAX_PINS 4

/* An extent that is held over other operations. */
struct pin {
	struct plog_extent ext;
	int count;		/* batches */
	struct expected b[64];
	s64 cut;		/* the lowest log end since it was pinned */
	bool swapped;		/* its segment was compacted since */
};

extern struct model m;
extern struct pin pins[MAX_PINS];
extern unsigned int seed, step, steps;
static const s64 clock_start = 1700000000000;

/* What was done, for the last line. */
extern struct done {
	u64 logs, crashes, cuts, middle, damage, faults, retained, retired, swaps, leads,
	    restarts, epoch_cuts, transactions, lookups, headers, exact;
} done;

/* PLOG_TRACE=N: what is done from step N on, for a run that is replayed */
extern bool tracing;
/* It is not known which bytes are left where nobody reads: the next step takes a new log. */
extern bool worn;
#define trace(fmt, ...) do {								\
	if (tracing)									\
		print_message("# %u " fmt ": [%lld, %lld) hw %lld, %d batches\n", step,		\
			      ##__VA_ARGS__, (long long)m.start, (long long)m.end,		\
			      (long long)m.hw, m.n);					\
} while (0)

/* A number below @n; 0 begins anew with the seed. */
unsigned int rnd(unsigned int n);
void configure(void);
struct plog_fence fence_now(void);

/* ---- model_check.c: what can be read is what should be ---- */

void check_view(void);
void check_epochs(void);
/* Does @ext hold @b[0] and what follows it? How many batches it is. */
int check_extent(struct plog_extent *ext, const struct expected *b, u32 max);
/* Every batch that can be read, byte for byte. */
void check_all(void);
int list_segments(struct segments *s);
void unpin_all(void);
void do_pin(void);
void do_locate(void);
void do_lookup(void);
void do_read(void);
void do_headers(void);
void do_ask_epochs(void);

/* ---- model_change.c: what changes the log; each says what the engine said ---- */

int do_append(void);
int do_replica(void);
void do_refused(void);
int do_truncate(void);
int do_truncate_epoch(void);
int do_log_start(void);
int do_epoch(void);
int do_lead(void);
int do_start_at(void);
int do_hw(void);
int do_unstable(void);
int do_retain(void);
int do_retired(void);
int do_swap(void);
int do_swap_done(void);
int do_roll(void);
int do_sync(void);
int do_configure(void);
int do_work(void);

/*
 * The files of a swap that is not done get their names; as long as the partition is closed.
 * False: they are gone, the engine had not noted yet that there will be gaps.
 */
bool finish_swap(void);
/* A swap that the engine has refused: its files go. */
void drop_swap(void);

/* ---- model_crash.c: the end of the process or the machine, and damage ---- */

void do_crash(bool power, bool middle);
/* Closed cleanly and opened again, perhaps with other indexes than before. */
void do_reopen(void);
/* An allocation or a write fails in the middle of something, and nothing else does. */
void do_fault(void);
/* The log's role is that of the configuration that it was opened with. */
void take_role(void);

#endif
