/* SPDX-License-Identifier: MIT */
#ifndef PLOG_COMPRESSOR_H
#define PLOG_COMPRESSOR_H

#include <stddef.h>
#include <stdint.h>

#include "../kafka/buf.h"
#include "compress.h"

/*
 * Compressing records bit by bit into a buffer, in the forms that Kafka's clients read. What
 * the buffer cannot take stays in its error; the compressor goes on and changes nothing.
 */
struct compressor;

/*
 * The level that Kafka's compression.TYPE.level has unless it is set: gzip -1 (of 1 to 9),
 * lz4 9 (of 1 to 17; 9 is the fast one), zstd 3 (to 22). 0 for the others, which have none.
 */
int compress_default_level(unsigned int type);

/*
 * Begin to append compressed bytes to @to. @size is how many will be written in all: it
 * bounds the memory of zstd's higher levels. COMPRESS_NONE copies. 0, -ENOMEM, -EOPNOTSUPP.
 */
int compress_open(struct compressor **out, unsigned int type, int level, uint64_t size,
		  struct buf *to);

/* 0, or -ENOMEM. */
int compress_write(struct compressor *c, const uint8_t *p, size_t n);

/* Write what is still held back, and the end. 0, or -ENOMEM. */
int compress_end(struct compressor *c);

/* Free everything. NULL is allowed. */
void compress_close(struct compressor *c);

#endif
