// SPDX-License-Identifier: MIT
#include "buf.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t limit, void (*drop)(void *handle))
{
	memset(b, 0, sizeof(*b));
	b->limit = limit;
	b->drop = drop;
}

void buf_reset(struct buf *b)
{
	unsigned int i;

	if (b->drop)
		for (i = 0; i < b->nextents; i++)
			b->drop(b->extents[i].handle);
	b->nextents = 0;
	b->extent_bytes = 0;
	b->len = 0;
	b->error = 0;
}

void buf_free(struct buf *b)
{
	buf_reset(b);
	free(b->data);
	free(b->extents);
	b->data = NULL;
	b->extents = NULL;
	b->cap = 0;
	b->extent_cap = 0;
}

int buf_error(const struct buf *b)
{
	return b->error;
}

uint64_t buf_total(const struct buf *b)
{
	return b->len + b->extent_bytes;
}

int buf_reserve(struct buf *b, size_t n, unsigned int extents)
{
	size_t cap;
	void *p;

	if (b->error)
		return b->error;
	if (b->len > b->limit || n > b->limit - b->len)
		return b->error = -EMSGSIZE;
	if (n > b->cap - b->len) {
		cap = b->cap < 512 ? 512 : b->cap;
		while (cap - b->len < n) {
			if (cap > b->limit / 2) {
				cap = b->limit;
				break;
			}
			cap *= 2;
		}
		p = realloc(b->data, cap);
		if (!p)
			return b->error = -ENOMEM;
		b->data = p;
		b->cap = cap;
	}
	if (extents > b->extent_cap - b->nextents) {
		unsigned int want;

		if (__builtin_add_overflow(b->nextents, extents, &want) || want > UINT32_MAX / 2)
			return b->error = -EMSGSIZE;
		want = want < 8 ? 8 : want + want / 2;
		p = reallocarray(b->extents, want, sizeof(*b->extents));
		if (!p)
			return b->error = -ENOMEM;
		b->extents = p;
		b->extent_cap = want;
	}
	return 0;
}

uint8_t *buf_extend(struct buf *b, size_t n)
{
	uint8_t *p;

	if (buf_reserve(b, n, 0))
		return NULL;
	p = b->data + b->len;
	b->len += n;
	return p;
}

void buf_put(struct buf *b, const void *from, size_t n)
{
	uint8_t *p;

	if (!n)
		return;
	p = buf_extend(b, n);
	if (p)
		memcpy(p, from, n);
}

void buf_put_u8(struct buf *b, uint8_t v)
{
	buf_put(b, &v, 1);
}

void buf_put_be16(struct buf *b, uint16_t v)
{
	v = htobe16(v);
	buf_put(b, &v, sizeof(v));
}

void buf_put_be32(struct buf *b, uint32_t v)
{
	v = htobe32(v);
	buf_put(b, &v, sizeof(v));
}

void buf_put_be64(struct buf *b, uint64_t v)
{
	v = htobe64(v);
	buf_put(b, &v, sizeof(v));
}

void buf_put_uvarint(struct buf *b, uint32_t v)
{
	uint8_t bytes[5];
	unsigned int n = 0;

	while (v >= 0x80) {
		bytes[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	bytes[n++] = (uint8_t)v;
	buf_put(b, bytes, n);
}

void buf_set_be32(struct buf *b, size_t at, uint32_t v)
{
	if (b->error || b->len < 4 || at > b->len - 4)
		return;
	v = htobe32(v);
	memcpy(b->data + at, &v, sizeof(v));
}

void buf_put_extent(struct buf *b, void *handle, uint64_t len)
{
	struct buf_extent *e;

	if (buf_reserve(b, 0, 1)) {
		if (b->drop)
			b->drop(handle);
		return;
	}
	e = &b->extents[b->nextents++];
	e->at = b->len;
	e->len = len;
	e->handle = handle;
	b->extent_bytes += len;
}

void buf_peek(const struct buf *b, const struct buf_pos *pos, struct buf_piece *out)
{
	memset(out, 0, sizeof(*out));
	if (pos->extent < b->nextents) {
		const struct buf_extent *e = &b->extents[pos->extent];

		if (pos->at < e->at) {
			out->data = b->data + pos->at;
			out->len = e->at - pos->at;
		} else {
			out->extent = e->handle;
			out->extent_off = pos->extent_off;
			out->len = e->len - pos->extent_off;
		}
	} else if (pos->at < b->len) {
		out->data = b->data + pos->at;
		out->len = b->len - pos->at;
	}
}

void buf_advance(const struct buf *b, struct buf_pos *pos, uint64_t n)
{
	if (pos->extent < b->nextents && pos->at >= b->extents[pos->extent].at) {
		pos->extent_off += n;
		if (pos->extent_off >= b->extents[pos->extent].len) {
			pos->extent++;
			pos->extent_off = 0;
		}
	} else {
		pos->at += n;
	}
}
