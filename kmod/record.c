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
	plog_batch_seal(b->buf, plog_batch_crc(b->buf, b->used));
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

void plog_source_pages(struct plog_source *src, struct plog_file *file, u64 pos, u32 size,
		       u8 *window)
{
	plog_source_file(src, file, pos, size, window);
	src->paged = true;
}

void plog_source_done(struct plog_source *src)
{
	if (src->page.at)
		plog_file_page_put(&src->page);
}

/* Map the page that holds @at, if the page cache has it. */
static bool source_page(struct plog_source *src, u64 at)
{
	if (src->page.at && at - src->page.pos < src->page.len)
		return true;
	plog_source_done(src);
	return plog_file_page_get(src->file, at, &src->page);
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
	if (src->paged && source_page(src, at) &&
	    len <= src->page.len - (at - src->page.pos))
		return src->page.at + (at - src->page.pos);
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

/* What lies at @pos in one piece: @len bytes of it. NULL where that is to be read first. */
static inline const u8 *source_piece(struct plog_source *src, u32 pos, u32 *len)
{
	u32 left = src->size - pos;
	u64 at;

	if (pos >= src->size)
		return NULL;
	if (src->mem) {
		*len = left;
		return src->mem + pos;
	}
	at = src->pos + pos;
	if (src->paged && source_page(src, at)) {
		*len = min_t(u32, left, src->page.pos + src->page.len - at);
		return src->page.at + (at - src->page.pos);
	}
	if (at - src->window_pos >= src->window_len)
		return NULL;
	*len = min_t(u32, left, src->window_pos + src->window_len - at);
	return src->window + (at - src->window_pos);
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
	c->ready = len;
	if (src->mem)
		c->ready = left;
	else if (!src->paged)
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

#define PLAIN_MAX	3	/* bytes of a number */
#define PLAIN_PREFIX	(1 + 5 * PLAIN_MAX)	/* attributes, and the numbers in front */

/* A number of up to PLAIN_MAX bytes, as it stands there; U32_MAX, which is odd, if it takes more. */
static __always_inline const u8 *get_plain(const u8 *p, u32 *z)
{
	u32 byte = READ_ONCE(*p++), v = byte;

	if (byte >= 0x80) {
		byte = READ_ONCE(*p++);
		v = (v & 0x7f) | byte << 7;
		if (byte >= 0x80) {
			byte = READ_ONCE(*p++);
			v = byte < 0x80 ? (v & 0x3fff) | byte << 14 : U32_MAX;
		}
	}
	*z = v;
	return p;
}

/*
 * struct piece - bytes of a source that lie together
 * @at: the first, at @pos of the source; @ready of them, 0 if there is none
 */
struct piece {
	const u8 *at;
	u32 pos;
	u32 ready;
};

/*
 * Most records are plain: short numbers, no headers, and the numbers in front
 * in one piece.  They take a fifth of what the two functions above take, which
 * read what is not and say what is wrong with it.  Nothing is looked at twice,
 * and each step goes forward: if the last ends where the record does, all of
 * them were inside of it.  That it lies in the batch, its last byte shows.
 *
 * Return: the record's size, 0 if it is not plain or its offset delta not @index
 */
static __always_inline u32 get_plain_record(struct plog_source *src, struct piece *piece,
					    u32 index, s32 *delta, bool *keyless)
{
	const u8 *start = piece->at, *p = start;
	u32 ready = piece->ready, z, size, end;

	p = get_plain(p, &z);
	if (unlikely(z & 1))
		return 0;
	size = p - start + z / 2;
	p = get_plain(p + 1, &z);	/* behind attributes: timestamp delta */
	if (unlikely(z == U32_MAX))
		return 0;
	*delta = z >> 1 ^ -(z & 1);
	p = get_plain(p, &z);		/* offset delta */
	if (unlikely(z != index * 2))
		return 0;
	p = get_plain(p, &z);		/* key */
	if (z & 1) {
		if (unlikely(z != 1))
			return 0;
		*keyless = true;
	} else {
		/* the value's length must be there too */
		if (z / 2 + PLAIN_MAX > ready - (p - start))
			return 0;
		p += z / 2;
	}
	p = get_plain(p, &z);		/* value */
	if (unlikely(z & 1 && z != 1))
		return 0;
	end = p - start + z / 2;	/* no headers: one more byte, a zero */
	if (unlikely(end + 1 != size))
		return 0;
	if (likely(end < ready)) {
		piece->at += size;
		piece->ready -= size;
		p = start + end;
	} else {
		piece->ready = 0;
		p = plog_source_at(src, piece->pos + end, 1);
		if (IS_ERR(p))
			return 0;
	}
	piece->pos += size;
	return READ_ONCE(*p) ? 0 : size;
}

int plog_record_check(struct plog_source *src, const struct plog_batch *b,
		      struct plog_record_summary *sum)
{
	s64 timestamp, max = -1, base = b->base_timestamp, delta;
	struct piece piece = { };
	u32 pos = PLOG_BATCH_HEADER, size;
	struct plog_record rec;
	bool keyless = false;
	s32 i, small;
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
		if (piece.ready < PLAIN_PREFIX) {
			piece.at = source_piece(src, pos, &piece.ready);
			piece.pos = pos;
		}
		size = 0;
		if (likely(piece.ready >= PLAIN_PREFIX))
			size = get_plain_record(src, &piece, i, &small, &keyless);
		if (likely(size)) {
			delta = small;
		} else {
			piece.ready = 0;
			err = plog_record_decode(src, pos, &rec);
			if (!err)
				err = plog_record_headers(src, &rec);
			if (err)
				return err;
			if (rec.offset_delta != i)
				return -EINVAL;
			size = rec.size;
			delta = rec.timestamp_delta;
			keyless |= rec.key_len < 0;
		}
		if (__builtin_add_overflow(base, delta, &timestamp) || timestamp < -1)
			return -EINVAL;
		max = max_t(s64, max, timestamp);
		pos += size;
	}
	sum->keyless = keyless;
	sum->max_timestamp = max;
	if (pos != b->size)
		return -EBADMSG;
	if (!(b->attributes & PLOG_ATTR_LOG_APPEND_TIME) && b->max_timestamp != sum->max_timestamp)
		return -EINVAL;
	return 0;
}
