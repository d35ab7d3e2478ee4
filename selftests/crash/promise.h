/* SPDX-License-Identifier: MIT */
/*
 * What a partition has promised at some moment: what must be found after a power
 * cut at that moment or later.
 */
#ifndef PLOG_CRASH_PROMISE_H
#define PLOG_CRASH_PROMISE_H

#include <stddef.h>
#include <stdint.h>

#define PROMISE_GENS 64

/**
 * struct promise
 * @acked: all below was acknowledged as being on stable storage
 * @start: the log start that was answered last
 * @start_asked: the highest that was ever asked for
 * @newest: the last generation that was begun
 * @gens, @gen: generation @gen[i] is what lies from offset @from[i] on; its batches
 *	bear it as their leader epoch
 * @lead_epoch, @lead_at: the epoch that a leader began last, and where; 0 if none is
 *	promised
 */
struct promise {
	int64_t acked;
	int64_t start;
	int64_t start_asked;
	uint32_t newest;
	int gens;
	int64_t from[PROMISE_GENS];
	uint32_t gen[PROMISE_GENS];
	int32_t lead_epoch;
	int64_t lead_at;
};

/* Before the log is cut to @offset: nothing from there on is promised any more. */
void promise_cut(struct promise *p, int64_t offset);

/* What follows, from @offset on, is of generation @gen. */
void promise_begin(struct promise *p, int64_t offset, uint32_t gen);

/* Nobody asks what lies below the log start. */
void promise_forget(struct promise *p);

/* The generation at @offset, and where it begins (@from may be NULL). */
uint32_t promise_gen(const struct promise *p, int64_t offset, int64_t *from);

/* One line of text, of up to PROMISE_TEXT bytes, and back: the partition, or -1. */
#define PROMISE_TEXT 4000
void promise_print(const struct promise *p, uint32_t part, char *to, size_t size);
int promise_read(const char *text, struct promise *p);

#endif
