/* SPDX-License-Identifier: MIT */
/*
 * Batches that say what they are: partition, generation (one more after each
 * truncation or start) and base offset give every byte, and where the next batch
 * begins. So what is found after a crash is checked without a list of what was
 * written.
 */
#ifndef PLOG_CRASH_CONTENT_H
#define PLOG_CRASH_CONTENT_H

#include <stddef.h>
#include <stdint.h>

#define CONTENT_ROOM 16384

/* A number from several; the same in every run. */
uint64_t content_hash(uint64_t a, uint64_t b, uint64_t c);

/**
 * content_make() - the batch at base offset @base
 * @to: CONTENT_ROOM bytes
 * @count: out: its records, so many offsets
 *
 * Return: its size.
 */
size_t content_make(uint8_t *to, uint32_t part, uint32_t gen, int64_t base, int *count);

/* Offsets left out before a batch of @gen behind offset @end, in a log with gaps. */
int64_t content_gap(uint32_t part, uint32_t gen, int64_t end);

/**
 * content_check() - is that batch, base offset and all, one of partition @part?
 * @gen: out
 *
 * Return: NULL, or what is wrong.
 */
const char *content_check(const uint8_t *batch, size_t size, uint32_t part, uint32_t *gen);

#endif
