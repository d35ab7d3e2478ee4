/* SPDX-License-Identifier: MIT */
/*
 * The log as it should be: an array of batches, and rules in the words of the
 * documentation, as plain as they go. Knows nothing of the engine's insides.
 */
#ifndef TEST_MODEL_H
#define TEST_MODEL_H

#include "engine.h"

#define MAX_BATCHES	4000
#define MAX_EPOCHS	4000
#define MAX_SEGMENTS	4000
#define PRODUCERS	4

enum kind { PLAIN, IDEMPOTENT, TRANSACTIONAL, MARKER };

/* A batch. */
struct expected {
	s64 base;
	unsigned int count, len, seed, size;
	s64 time;		/* of the first record */
	s64 append_time;	/* of all of them, -1: they have their own */
	s32 epoch;
	enum kind kind;
	int producer;
};

/* The log is b[0] to b[n - 1], of which some may lie below start. */
struct model {
	int n;
	s64 start, end, hw;
	s32 epoch;		/* that it is led in */
	s32 tried;		/* the latest that it was to be led in, though that failed */
	bool replicated, leader, below_min_isr;
	bool led;		/* the role was told by a LEAD */
	bool told;		/* the engine was told all of transactions */
	s64 swap_first, swap_last;	/* segments whose files are not renamed yet; -1 */
	s64 taken;		/* name of a segment whose files are being deleted; -1 */
	bool noted;		/* the last epoch is on disk */
	s64 producer;		/* the engine takes this for the last one's, though it is gone; -1 */
	int epochs;
	struct plog_epoch_info ep[MAX_EPOCHS];
	struct expected b[MAX_BATCHES];
};

/* Segments as the engine has cut the log. */
struct segments {
	int n;
	s64 base[MAX_SEGMENTS];
};

void model_clear(struct model *m);
void model_copy(struct model *to, const struct model *from);

/* ---- batches ---- */

static inline s64 last_of(const struct expected *e)
{
	return e->base + e->count - 1;
}

/* The time of the @i-th record, and the largest. */
s64 time_of(const struct expected *e, unsigned int i);
s64 max_time(const struct expected *e);
/* Its bytes as they lie in the log; their number. */
size_t batch_bytes(const struct expected *e, uint8_t *buf);
/* The first batch whose last offset is @offset or more. */
int model_find(const struct model *m, s64 offset);
/* The first record from @from to below @limit that is not before @t; -1. */
s64 model_by_time(const struct model *m, s64 from, s64 limit, s64 t, const struct expected **e);
/* The largest time from @from on; -1. */
s64 model_latest(const struct model *m, s64 from);
/* Bytes of the batches from @from to below @to. */
u64 model_bytes(const struct model *m, s64 from, s64 to);

/* ---- offsets ---- */

static inline bool model_leads(const struct model *m)
{
	return !m->replicated || m->leader;
}

void model_add(struct model *m, const struct expected *e);
/* Where a cut to @to ends: a batch goes whole, and a gap before it. -1: below the start. */
s64 model_cut_end(const struct model *m, s64 to);
void model_cut(struct model *m, s64 end);
void model_restart(struct model *m, s64 start);
void model_set_start(struct model *m, s64 start);

/* ---- leader epochs ---- */

/* Epoch @epoch writes from @start on. */
void model_epoch(struct model *m, s32 epoch, s64 start);
void model_cut_epochs(struct model *m, s64 end);
s32 model_last_epoch(const struct model *m);
/* KIP-101: the end of the largest epoch not above *@epoch, which goes there. */
s64 model_epoch_end(const struct model *m, s32 *epoch);

/* ---- transactions ---- */

/*
 * The first offset from @from on of the oldest transaction that is open, or whose
 * marker is not below @hw; INT64_MAX: none is. @open: of each producer, or -1.
 */
s64 model_unstable(const struct model *m, s64 from, s64 hw, s64 open[PRODUCERS]);
s64 model_last_stable(const struct model *m, s64 from);
s64 model_last_producer(const struct model *m);
/* Markers that wait for the high watermark. */
int model_waiting(const struct model *m);

/* ---- retention ---- */

/* Where the log starts once @c is kept to. @mtime: of a file without a record. */
s64 model_retain(const struct model *m, const struct segments *s, const struct plog_config *c,
		 s64 now, s64 (*mtime)(s64 base));

#endif
