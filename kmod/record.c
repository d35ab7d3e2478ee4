// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Records inside an uncompressed batch.  Whoever wrote these bytes is taken for
 * an enemy: each number is checked against what is left before it is used.
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "../uapi/linux/plog.h"
#include "file.h"
#include "record.h"

#define VARINT_MAX	5	/* bytes of 32 bits, seven a byte */
#define VARLONG_MAX	10

/* ---- building ---- */

static u32 zigzag(s32 v)
{
	return (u32)v << 1 ^ (u32)(v >> 31);
}

static u32 varint_size(s32 v)
{
	u32 z = zigzag(v), n = 1;

	while (z >= 0x80) {
		z >>= 7;
		n++;
	}
	return n;
}

static u8 *varint_put(u8 *p, s32 v)
{
	u32 z = zigzag(v);

	while (z >= 0x80) {
		*p++ = z | 0x80;
		z >>= 7;
	}
	*p++ = z;
	return p;
}

/* Attributes, timestamp delta 0, offset delta, null key, value, no headers. */
static u32 body_size(u32 index, u32 value_len)
{
	return 1 + 1 + varint_size(index) + 1 + varint_size(value_len) + value_len + 1;
}

u32 plog_record_frame_size(u32 index, u32 value_len)
{
	u32 body = body_size(index, value_len);

	return varint_size(body) + body;
}

void plog_builder_init(struct plog_builder *b, u8 *buf, size_t size, s64 timestamp)
{
	b->buf = buf;
	b->size = size;
	b->used = PLOG_BATCH_HEADER;
	b->timestamp = timestamp;
	b->count = 0;
}

u8 *plog_builder_value(struct plog_builder *b, u32 value_len)
{
	u8 *p, *value;
	u32 size;

	if (value_len > PLOG_MESSAGE_BYTES_MAX || b->count >= PLOG_RECORDS_MAX)
		return NULL;
	size = plog_record_frame_size(b->count, value_len);
	if (b->used > b->size || size > b->size - b->used)
		return NULL;
	p = varint_put(b->buf + b->used, body_size(b->count, value_len));
	*p++ = 0;			/* attributes */
	*p++ = 0;			/* timestamp delta */
	p = varint_put(p, b->count);
	p = varint_put(p, -1);		/* key */
	value = varint_put(p, value_len);
	value[value_len] = 0;		/* headers */
	b->used += size;
	b->count++;
	return value;
}

size_t plog_builder_finish(struct plog_builder *b)
{
	struct plog_batch header = {
		.size = b->used,
		.leader_epoch = -1,
		.magic = 2,
		.last_offset_delta = b->count - 1,
		.base_timestamp = b->timestamp,
		.max_timestamp = b->timestamp,
		.producer_id = -1,
		.producer_epoch = -1,
		.base_sequence = -1,
		.count = b->count,
	};

	if (!b->count)
		return 0;
	plog_batch_encode(&header, b->buf);
	header.crc = plog_batch_crc(b->buf, b->used);
	plog_batch_encode(&header, b->buf);
	return b->used;
}

/* ---- bytes ---- */

void plog_source_mem(struct plog_source *src, const u8 *batch, u32 size)
{
	memset(src, 0, sizeof(*src));
	src->mem = batch;
	src->size = size;
}

void plog_source_file(struct plog_source *src, struct plog_file *file, u64 pos, u32 size,
		      u8 *window)
{
	memset(src, 0, sizeof(*src));
	src->file = file;
	src->pos = pos;
	src->size = size;
	src->window = window;
}

const u8 *plog_source_at(struct plog_source *src, u32 pos, u32 len)
{
	u32 want;
	ssize_t n;
	u64 at;

	if (pos > src->size || len > src->size - pos)
		return ERR_PTR(-EBADMSG);
	if (src->mem)
		return src->mem + pos;
	at = src->pos + pos;
	if (at >= src->window_pos && at + len <= src->window_pos + src->window_len)
		return src->window + (at - src->window_pos);
	if (len > PLOG_RECORD_WINDOW)
		return ERR_PTR(-EBADMSG);
	want = min_t(u32, PLOG_RECORD_WINDOW, src->size - pos);
	src->window_len = 0;
	n = plog_file_read(src->file, src->window, want, at);
	if (n < 0)
		return ERR_PTR(n);
	if (n < len)
		return ERR_PTR(-EIO);	/* the file ends before its log does */
	src->window_pos = at;
	src->window_len = n;
	return src->window;
}

/*
 * A place in a source, and where the thing that is read must end.  The bytes
 * from @pos on are at @at, @ready of them, so that most steps look no further.
 */
struct cursor {
	struct plog_source *src;
	u32 pos;
	u32 end;
	const u8 *at;
	u32 ready;
};

static void cursor_init(struct cursor *c, struct plog_source *src, u32 pos, u32 end)
{
	c->src = src;
	c->pos = pos;
	c->end = end;
	c->at = NULL;
	c->ready = 0;
}

/* Have @len bytes ready, or all that are left. */
static int cursor_fill(struct cursor *c, u32 len)
{
	struct plog_source *src = c->src;
	u32 left = c->end - c->pos;
	const u8 *at;

	len = min_t(u32, len, left);
	if (c->ready >= len)
		return 0;
	at = plog_source_at(src, c->pos, len);
	if (IS_ERR(at))
		return PTR_ERR(at);
	c->at = at;
	if (src->mem)
		c->ready = left;
	else
		c->ready = min_t(u32, left, src->window + src->window_len - at);
	return 0;
}

/* Step over @len bytes, which are known to be there. */
static void cursor_skip(struct cursor *c, u32 len)
{
	c->pos += len;
	if (len < c->ready) {
		c->at += len;
		c->ready -= len;
	} else {
		c->ready = 0;
	}
}

/* Seven bits a byte, lowest first; @bits is 32 or 64. */
static int get_long(struct cursor *c, u32 bits, u64 *value)
{
	u32 max = min_t(u32, bits == 32 ? VARINT_MAX : VARLONG_MAX, c->end - c->pos);
	u32 shift = 0, i;
	int err;

	*value = 0;
	err = cursor_fill(c, max);
	if (err)
		return err;
	for (i = 0; i < max; i++, shift += 7) {
		u8 byte = c->at[i];

		/* the last byte has room for the rest of the bits alone */
		if (bits - shift < 7 && (byte & 0x7f) >> (bits - shift))
			return -EBADMSG;
		*value |= (u64)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			cursor_skip(c, i + 1);
			return 0;
		}
	}
	return -EBADMSG;
}

/* Most numbers are one byte. */
static inline int get_unsigned(struct cursor *c, u32 bits, u64 *value)
{
	if (c->ready && !(*c->at & 0x80)) {
		*value = *c->at++;
		c->pos++;
		c->ready--;
		return 0;
	}
	return get_long(c, bits, value);
}

static inline int get_varint(struct cursor *c, s32 *value)
{
	u64 z;
	int err = get_unsigned(c, 32, &z);

	*value = (s32)((u32)z >> 1 ^ -((u32)z & 1));
	return err;
}

static inline int get_varlong(struct cursor *c, s64 *value)
{
	u64 z;
	int err = get_unsigned(c, 64, &z);

	*value = (s64)(z >> 1 ^ -(z & 1));
	return err;
}

/* A length of -1 (where @null) or more, and that many bytes: step over them. */
static int get_bytes(struct cursor *c, bool null, s32 *len, u32 *pos)
{
	int err = get_varint(c, len);

	if (err)
		return err;
	*pos = c->pos;
	if (*len < 0)
		return *len == -1 && null ? 0 : -EBADMSG;
	if (*len > c->end - c->pos)
		return -EBADMSG;
	cursor_skip(c, *len);
	return 0;
}

int plog_record_decode(struct plog_source *src, u32 pos, struct plog_record *rec)
{
	struct cursor c;
	s32 len;
	int err;

	if (pos >= src->size)
		return -EBADMSG;
	cursor_init(&c, src, pos, src->size);
	err = get_varint(&c, &len);
	if (err)
		return err;
	if (len < 1 || len > c.end - c.pos)
		return -EBADMSG;
	c.end = c.pos + len;
	c.ready = min_t(u32, c.ready, len);
	cursor_skip(&c, 1);		/* attributes: none is defined */
	rec->pos = pos;
	rec->size = c.end - pos;
	err = get_varlong(&c, &rec->timestamp_delta);
	if (err)
		return err;
	err = get_varint(&c, &rec->offset_delta);
	if (err)
		return err;
	err = get_bytes(&c, true, &rec->key_len, &rec->key_pos);
	if (err)
		return err;
	err = get_bytes(&c, true, &rec->value_len, &rec->value_pos);
	if (err)
		return err;
	rec->headers_pos = c.pos;
	return 0;
}

int plog_record_headers(struct plog_source *src, const struct plog_record *rec)
{
	struct cursor c;
	s32 count, len;
	u32 pos;
	int err;

	cursor_init(&c, src, rec->headers_pos, rec->pos + rec->size);
	err = get_varint(&c, &count);
	if (err)
		return err;
	/* each takes two bytes at least, so that count cannot keep us here */
	if (count < 0 || count > (c.end - c.pos) / 2)
		return -EBADMSG;
	while (count--) {
		err = get_bytes(&c, false, &len, &pos);
		if (err)
			return err;
		err = get_bytes(&c, true, &len, &pos);
		if (err)
			return err;
	}
	return c.pos == c.end ? 0 : -EBADMSG;
}

int plog_record_check(struct plog_source *src, const struct plog_batch *b,
		      struct plog_record_summary *sum)
{
	u32 pos = PLOG_BATCH_HEADER;
	struct plog_record rec;
	s64 timestamp;
	s32 i;
	int err;

	sum->max_timestamp = -1;
	sum->keyless = false;
	if (b->attributes & ~PLOG_ATTR_LOG_APPEND_TIME || b->producer_id != -1 ||
	    b->producer_epoch != -1 || b->base_sequence != -1)
		return -EOPNOTSUPP;
	if (b->last_offset_delta != b->count - 1 || b->size != src->size)
		return -EINVAL;
	for (i = 0; i < b->count; i++) {
		/* 64 MiB of the smallest records are millions */
		if (!(i & 1023))
			cond_resched();
		err = plog_record_decode(src, pos, &rec);
		if (err)
			return err;
		err = plog_record_headers(src, &rec);
		if (err)
			return err;
		if (rec.offset_delta != i)
			return -EINVAL;
		if (__builtin_add_overflow(b->base_timestamp, rec.timestamp_delta, &timestamp) ||
		    timestamp < -1)
			return -EINVAL;
		sum->max_timestamp = max_t(s64, sum->max_timestamp, timestamp);
		sum->keyless |= rec.key_len < 0;
		pos += rec.size;
	}
	if (pos != b->size)
		return -EBADMSG;
	if (!(b->attributes & PLOG_ATTR_LOG_APPEND_TIME) && b->max_timestamp != sum->max_timestamp)
		return -EINVAL;
	return 0;
}
