/* SPDX-License-Identifier: MIT */
#ifndef PLOG_BUF_H
#define PLOG_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What goes out on a connection: bytes in memory, and between them extents, that is runs of
 * bytes that are elsewhere (a pinned range of a log) and leave by sendfile. The memory is one
 * growing block; an extent is remembered by the position in that block where it belongs.
 *
 * Writers need not look at each result: the first failure stays in @error, later writes do
 * nothing, and buf_error() tells at the end.
 */
struct buf_extent {
	size_t at;		/* goes out before data[at] */
	uint64_t len;		/* bytes, at least 1 */
	void *handle;		/* the owner's; buf never looks inside */
};

struct buf {
	uint8_t *data;
	size_t len, cap;
	size_t limit;		/* of the bytes in memory */
	struct buf_extent *extents;
	unsigned int nextents, extent_cap;
	uint64_t extent_bytes;	/* sum of the extents' lengths */
	void (*drop)(void *handle);	/* called once for each extent on reset and free */
	int error;		/* 0, -ENOMEM, or -EMSGSIZE when the limit was met */
};

/* How far a buffer has been sent. All zero is the beginning. */
struct buf_pos {
	size_t at;		/* bytes of data[] that are gone */
	unsigned int extent;	/* extents that are wholly gone */
	uint64_t extent_off;	/* bytes gone of extents[extent] */
};

/* The next run to send: memory if @extent is NULL, else a part of an extent. */
struct buf_piece {
	const uint8_t *data;
	void *extent;		/* handle */
	uint64_t extent_off;	/* where to begin inside the extent */
	uint64_t len;		/* 0: nothing is left */
};

/* Begin an empty buffer; @drop (may be NULL) gives the handles of extents back. */
void buf_init(struct buf *b, size_t limit, void (*drop)(void *handle));

/* Forget content and error, drop the extents, keep the memory. */
void buf_reset(struct buf *b);

/* As buf_reset(), and give the memory back. */
void buf_free(struct buf *b);

/* 0, or the first error that a write to @b met: -ENOMEM, -EMSGSIZE. */
int buf_error(const struct buf *b);

/* Bytes in memory and in extents together. */
uint64_t buf_total(const struct buf *b);

/*
 * Make sure that @n more bytes and @extents more extents can be written without an error.
 * 0, -ENOMEM or -EMSGSIZE; the error stays as that of a write would.
 */
int buf_reserve(struct buf *b, size_t n, unsigned int extents);

/*
 * Room for @n more bytes at the end, counted as written: the caller fills them at once.
 * NULL after an error. The pointer is good until the next write.
 */
uint8_t *buf_extend(struct buf *b, size_t n);

void buf_put(struct buf *b, const void *p, size_t n);
void buf_put_u8(struct buf *b, uint8_t v);
void buf_put_be16(struct buf *b, uint16_t v);
void buf_put_be32(struct buf *b, uint32_t v);
void buf_put_be64(struct buf *b, uint64_t v);

/* An unsigned LEB128 number, as Kafka's compact lengths and tags are. */
void buf_put_uvarint(struct buf *b, uint32_t v);

/* Overwrite the four bytes at @at, which must have been written. */
void buf_set_be32(struct buf *b, size_t at, uint32_t v);

/* @len bytes of @handle belong here. The buffer owns @handle from now on, also on error. */
void buf_put_extent(struct buf *b, void *handle, uint64_t len);

/* What to send next from @pos. @out->len is 0 at the end. */
void buf_peek(const struct buf *b, const struct buf_pos *pos, struct buf_piece *out);

/* @n bytes of the piece that buf_peek() gave were sent; @n must not exceed its length. */
void buf_advance(const struct buf *b, struct buf_pos *pos, uint64_t n);

#endif
