// SPDX-License-Identifier: MIT
/*
 * Any bytes as record batches for the C library's walk, and any order of calls: what it gives is
 * what there is to be read (see fuzz_walk_ref.c), in order, once, without what is to be left
 * out, whatever fails in between; nothing that is wanted is passed over in silence; and there
 * is an end.
 *
 * Input: flags, length of the script, length of the log (see fuzz_walk_log.c), script, log, and
 * the batches. The script is calls from its begin; the answers of the filter are taken from it
 * too.
 */
#include "fuzz_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plog.h"
#include "wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#define UNASKED	2		/* no answer of the filter's */

struct run {
	struct frames all;
	struct plog_walk *walk;
	uint8_t *bytes;		/* that it looks at now: the first of all.bytes */
	size_t length;
	int count;		/* frames that are whole among them */
	int at;			/* frame that the walk stands in or before */
	int64_t passed;		/* delta of the last record that was given of it, -1 */
	bool open;		/* and it is being read */
	int lax;		/* frame during which from was lowered: no more is promised */
	int64_t from, next_offset;
	bool filtering;
	unsigned int kind;	/* of filter */
	int answer[FUZZ_FRAMES];	/* in this call */
	struct fuzz_bytes script;
};

/* ---- what the library asks for ---- */

static unsigned int fail_in;
static bool failed;

void fuzz_must(int ok)
{
	if (!ok)
		abort();
}

uint8_t fuzz_take(struct fuzz_bytes *b)
{
	if (!b->n)
		return 0;
	b->n--;
	return *b->p++;
}

void fuzz_fail(unsigned int nth)
{
	fail_in = nth;
	failed = false;
}

bool fuzz_failed(void)
{
	return failed;
}

/* Nothing is allocated in proportion to a number in the input. */
static bool fails(size_t n, size_t size)
{
	fuzz_must(n <= (16u << 20) / size);
	if (!fail_in || --fail_in)
		return false;
	return failed = true;
}

void *fuzz_malloc(size_t size);
void *fuzz_calloc(size_t n, size_t size);
void *fuzz_realloc(void *p, size_t size);
void *fuzz_reallocarray(void *p, size_t n, size_t size);

void *fuzz_malloc(size_t size)
{
	return fails(1, size) ? NULL : malloc(size);
}

void *fuzz_calloc(size_t n, size_t size)
{
	return fails(n, size) ? NULL : calloc(n, size);
}

void *fuzz_realloc(void *p, size_t size)
{
	return fails(1, size) ? NULL : realloc(p, size);
}

void *fuzz_reallocarray(void *p, size_t n, size_t size)
{
	return fails(n, size) ? NULL : reallocarray(p, n, size);
}

/* ---- where the walk stands ---- */

static size_t frame_end(const struct run *run, int i)
{
	return i ? run->all.frame[i - 1].pos + run->all.frame[i - 1].size : 0;
}

/* The frame that begins where the walk stands; count behind them all. */
static int stands(const struct run *run)
{
	size_t pos = run->length - plog_walk_rest(run->walk);
	int i = 0;

	fuzz_must(plog_walk_rest(run->walk) <= run->length);
	while (i < run->count && run->all.frame[i].pos < pos)
		i++;
	fuzz_must(i < run->count ? run->all.frame[i].pos == pos :
		  pos == frame_end(run, i) || pos == run->length);
	return i;
}

/* Behind the whole frames: is there a length, and one that no batch has? */
static bool ends_broken(const struct run *run)
{
	size_t end = frame_end(run, run->count);

	return run->count == run->all.count && run->all.broken &&
	       run->length - plog_walk_rest(run->walk) == end &&
	       run->length - end >= WIRE_LEADER_EPOCH;
}

/* The next record that is wanted of frame @i, NULL if none is. */
static const struct given *wanted(const struct run *run, int i)
{
	const struct frame *f = &run->all.frame[i];
	int64_t passed = i == run->at ? run->passed : -1;

	for (uint32_t k = 0; k < f->count; k++) {
		const struct given *g = &run->all.given[f->first + k];

		if (g->delta > passed && f->base + g->delta >= run->from)
			return g;
	}
	return NULL;
}

static bool unwanted(const struct run *run, int i)
{
	const struct frame *f = &run->all.frame[i];

	return f->control || f->next_offset <= run->from || run->answer[i] == 1;
}

/* Those between were left out rightly. */
static void passed_over(const struct run *run, int from, int to)
{
	for (int i = from; i < to; i++) {
		const struct frame *f = &run->all.frame[i];

		fuzz_must(f->opens);
		if (unwanted(run, i))
			continue;
		fuzz_must(!f->error);
		fuzz_must(run->lax == i || !wanted(run, i));
	}
}

static int filter(void *arg, int64_t producer, int64_t offset)
{
	struct run *run = arg;
	int i = stands(run);
	const struct frame *f = &run->all.frame[i];
	int ret;

	fuzz_must(run->filtering && i < run->count && f->opens && f->transactional);
	fuzz_must(!f->control && f->next_offset > run->from);
	fuzz_must(producer == f->producer && offset == f->base);
	/* once for each, but again after an error */
	fuzz_must(run->answer[i] == UNASKED && !(run->open && run->at == i));
	if (run->kind == FILTER_PLAIN) {
		uint8_t b = fuzz_take(&run->script);

		ret = b >= 0xf0 ? -EINTR : b & 1;
	} else {
		ret = fuzz_log_check(producer, offset);
	}
	return run->answer[i] = ret;
}

/* ---- the calls, each with what it must do ---- */

static void check_record(struct run *run, int i, const struct plog_record *r)
{
	const struct frame *f = &run->all.frame[i];
	const struct given *g = wanted(run, i);

	fuzz_must(i < run->count && f->opens && !f->control);
	/* opened now: then it was asked about */
	if (run->filtering && f->transactional && !(run->open && run->at == i))
		fuzz_must(!run->answer[i]);
	if (run->lax == i)
		for (g = &run->all.given[f->first]; f->base + g->delta < r->offset; g++)
			fuzz_must(g < &run->all.given[f->first + f->count - 1]);
	fuzz_must(g && r->offset == f->base + g->delta && r->offset >= run->from);
	fuzz_must(i != run->at || g->delta > run->passed);
	fuzz_must(r->timestamp == g->timestamp && record_hash(r) == g->hash);
	fuzz_must(r->leader_epoch == f->epoch && r->codec == (f->attributes & WIRE_ATTR_CODEC));
	fuzz_must(r->log_append_time == !!(f->attributes & WIRE_ATTR_APPEND_TIME));
	fuzz_must(plog_walk_next_offset(run->walk) == f->next_offset);
	run->at = i;
	run->passed = g->delta;
	run->open = true;
}

static void check_error(struct run *run, int i, int ret)
{
	const struct frame *f = &run->all.frame[i];

	if (i == run->count) {
		fuzz_must(ret == -EBADMSG && ends_broken(run));
	} else if (ret == -ENOMEM && fuzz_failed()) {
		;
	} else if (run->answer[i] < 0) {
		fuzz_must(ret == run->answer[i]);
	} else {
		fuzz_must(ret == f->error);
		fuzz_must(!f->opens || run->lax == i || !wanted(run, i));
		/* one that is open is read to its end */
		fuzz_must(!f->opens || !unwanted(run, i) || (run->open && run->at == i));
	}
	if (i != run->at)
		run->passed = -1;
	run->at = i;
	run->open = false;
}

static int next(struct run *run)
{
	size_t rest = plog_walk_rest(run->walk);
	struct plog_record r;
	int ret, i;

	for (i = 0; i < FUZZ_FRAMES; i++)
		run->answer[i] = UNASKED;
	memset(&r, 0x5a, sizeof(r));
	ret = plog_walk_next(run->walk, &r);
	i = stands(run);
	fuzz_must(ret <= 1 && plog_walk_rest(run->walk) <= rest && i >= run->at);
	passed_over(run, run->at, i);
	if (ret > 0) {
		check_record(run, i, &r);
	} else if (ret < 0) {
		check_error(run, i, ret);
	} else {
		fuzz_must(i == run->count && !ends_broken(run));
		run->at = i;
		run->open = false;
	}
	run->next_offset = plog_walk_next_offset(run->walk);
	fuzz_must(run->next_offset >= -1);
	return ret;
}

static void skip(struct run *run)
{
	int i = stands(run), ret = plog_walk_skip(run->walk);

	if (i < run->count) {
		const struct frame *f = &run->all.frame[i];

		fuzz_must(!ret && run->length - plog_walk_rest(run->walk) == f->pos + f->size);
		if (f->next_offset >= 0)
			run->next_offset = f->next_offset;
		run->at = i + 1;
	} else {
		fuzz_must(ret == -ENODATA && !plog_walk_rest(run->walk));
		run->at = run->count;
	}
	fuzz_must(plog_walk_next_offset(run->walk) == run->next_offset);
	run->passed = -1;
	run->open = false;
}

static void set_from(struct run *run, uint8_t b)
{
	const struct frame *f = run->all.count ? &run->all.frame[b % run->all.count] : NULL;
	int64_t from = f ? f->base : 0;

	if (b & 0x80)
		from = b & 0x40 ? INT64_MAX : INT64_MIN;
	else if (f && f->count)
		from += run->all.given[f->first + (b >> 2) % f->count].delta;
	if (from < run->from)
		run->lax = run->at;
	run->from = from;
	plog_walk_from(run->walk, from);
}

/* Other bytes: all, or so many less. */
static void set_bytes(struct run *run, size_t less)
{
	uint8_t *old = run->bytes;

	run->length = run->all.length - (less < run->all.length ? less : run->all.length);
	run->bytes = malloc(run->length ? run->length : 1);
	if (run->length)
		memcpy(run->bytes, run->all.bytes, run->length);
	run->count = 0;
	while (run->count < run->all.count && frame_end(run, run->count + 1) <= run->length)
		run->count++;
	run->at = 0;
	run->passed = -1;
	run->open = false;
	run->lax = -1;
	run->from = 0;
	run->next_offset = -1;
	if (run->walk) {
		plog_walk_set(run->walk, run->bytes, run->length);
	} else {
		fuzz_fail(1);
		fuzz_must(plog_walk_new(run->bytes, run->length, &run->walk) == -ENOMEM);
		fuzz_must(!run->walk);
		fuzz_fail(0);
		fuzz_must(!plog_walk_new(run->bytes, run->length, &run->walk));
	}
	fuzz_must(plog_walk_rest(run->walk) == run->length);
	fuzz_must(plog_walk_next_offset(run->walk) == -1);
	free(old);
}

static void set_filter(struct run *run, bool on)
{
	run->filtering = on && run->kind != FILTER_NONE;
	plog_walk_filter(run->walk, run->filtering ? filter : NULL, run);
}

static void call(struct run *run, uint8_t op)
{
	int ret;

	switch (op & 7) {
	case 0:
		skip(run);
		break;
	case 1:
		set_from(run, fuzz_take(&run->script));
		break;
	case 2:
		set_filter(run, op & 8);
		break;
	case 3:
		set_bytes(run, op & 8 ? 0 : (op >> 4) + 16u * fuzz_take(&run->script));
		break;
	case 4:
		/* out of memory, and again; nothing but that may come of it */
		fuzz_fail(1 + (op >> 4));
		ret = next(run);
		if (ret == -ENOMEM && op & 8)
			next(run);
		fuzz_fail(0);
		break;
	case 5:
		if (run->kind >= FILTER_LOG)
			fuzz_log_check(op >> 6, fuzz_take(&run->script) * (1 + (op >> 3 & 7)));
		break;
	default:
		for (int n = 1 + (op >> 3); n && next(run) > 0; n--)
			;
	}
}

/* Whatever there still is. An error is met again, or has gone; then it is passed. */
static void drain(struct run *run)
{
	uint64_t most = run->all.ngiven + 3u * FUZZ_FRAMES + run->script.n;
	int ret, error = 0;

	while ((ret = next(run))) {
		fuzz_must(most--);
		if (ret < 0 && error) {
			/* the same, but where the filter is asked anew */
			fuzz_must(ret == error || run->kind != FILTER_NONE);
			skip(run);
			error = 0;
		} else {
			error = ret < 0 ? ret : 0;
		}
	}
	fuzz_must(!next(run));
	skip(run);
	fuzz_must(!plog_walk_rest(run->walk) && !next(run));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct run run;
	struct fuzz_bytes log;
	size_t script;

	if (n < 3 || n - 3 < (size_t)p[1] + p[2])
		return -1;
	memset(&run, 0, sizeof(run));
	script = p[1];
	run.kind = FUZZ_FILTER(p[0]);
	run.script = (struct fuzz_bytes){ p + 3, script };
	log = (struct fuzz_bytes){ p + 3 + script, p[2] };
	fuzz_fail(0);
	if (!frames_make(&run.all, p + 3 + script + p[2], n - 3 - script - p[2], p[0])) {
		frames_free(&run.all);
		return -1;
	}
	if (run.kind >= FILTER_LOG)
		fuzz_log_begin(log, &run.script, run.kind == FILTER_LOG);
	set_bytes(&run, 0);
	set_filter(&run, true);
	while (run.script.n)
		call(&run, fuzz_take(&run.script));
	drain(&run);
	plog_walk_free(run.walk);
	fuzz_log_end();
	free(run.bytes);
	frames_free(&run.all);
	return 0;
}
