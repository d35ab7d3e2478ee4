/* SPDX-License-Identifier: MIT */
#ifndef PLOG_SNAPPY_H
#define PLOG_SNAPPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Expanding snappy in pieces. libsnappy only expands whole blocks into memory of their
 * size, which a block names itself; here a block goes through a window.
 */
struct snappy {
	const uint8_t *in, *end;	/* what is left of the whole input */
	bool framed;
	const uint8_t *block_end;
	bool in_block;
	uint8_t *window;
	size_t window_size;		/* a power of two, 0 without a window */
	uint64_t produced;		/* by this block */
	uint64_t left;			/* of this block's output */
	uint32_t literal;		/* of the element at hand: bytes to come from the input */
	uint32_t copy, distance;	/* or from @distance back */
};

/* As decompress_open(), decompress_read() and decompress_close(). */
int snappy_open(struct snappy *s, const uint8_t *in, size_t n);
ssize_t snappy_read(struct snappy *s, uint8_t *out, size_t n);
void snappy_close(struct snappy *s);

#endif
