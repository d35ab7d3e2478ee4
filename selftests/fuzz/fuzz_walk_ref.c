// SPDX-License-Identifier: MIT
/*
 * What there is to be read in the input's batches: their headers by the daemon's decoder, the
 * records of each by a walk that wants all and is not disturbed. That must be what the
 * daemon's reader finds in the same bytes, and what the daemon would append, with or without
 * another codec, must be read whole.
 */
#include "fuzz_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compress.h"
#include "compressor.h"
#include "kafka/error.h"
#include "log/records.h"
#include "plog.h"
#include "wire.h"

/* ---- the bytes ---- */

/* A batch whose records are compressed here. */
static void put_compressed(struct buf *to, const uint8_t *p, size_t n, unsigned int codec)
{
	struct compressor *c;
	uint8_t *head = buf_extend(to, WIRE_RECORDS);

	fuzz_must(head != NULL);
	memcpy(head, p, WIRE_RECORDS);
	fuzz_must(!compress_open(&c, codec, compress_default_level(codec), n - WIRE_RECORDS, to));
	fuzz_must(!compress_write(c, p + WIRE_RECORDS, n - WIRE_RECORDS) && !compress_end(c));
	compress_close(c);
}

static void put_right(struct buf *to, const uint8_t *p, size_t n, unsigned int flags, int64_t *next)
{
	unsigned int codec = wire_get16(p + WIRE_ATTRIBUTES) & WIRE_ATTR_CODEC;
	size_t at = to->len, size;
	uint8_t *b;
	int32_t delta;

	if (flags & FUZZ_COMPRESS && codec && compress_name(codec)) {
		put_compressed(to, p, n, codec);
	} else {
		b = buf_extend(to, n);
		fuzz_must(b != NULL);
		memcpy(b, p, n);
	}
	b = to->data + at;
	size = to->len - at;
	delta = (int32_t)wire_get32(b + WIRE_LAST_DELTA);
	if (flags & FUZZ_ASCEND) {
		wire_put64(b + WIRE_BASE_OFFSET, (uint64_t)*next);
		*next += (delta < 0 ? 0 : delta) + INT64_C(1);
	}
	wire_put32(b + WIRE_LENGTH, (uint32_t)size - WIRE_LEADER_EPOCH);
	b[WIRE_MAGIC] = 2;
	wire_put32(b + WIRE_CRC, records_crc(b, size));
}

static void make_bytes(struct buf *to, const uint8_t *p, size_t n, unsigned int flags)
{
	int64_t next = 0;
	uint8_t *rest;

	while (flags & FUZZ_RIGHT && n >= WIRE_RECORDS) {
		int64_t size = (int64_t)(int32_t)wire_get32(p + WIRE_LENGTH) + WIRE_LEADER_EPOCH;

		if (size < WIRE_RECORDS || size > (int64_t)n)
			size = (int64_t)n;
		put_right(to, p, (size_t)size, flags, &next);
		p += size;
		n -= (size_t)size;
	}
	rest = n ? buf_extend(to, n) : NULL;
	if (rest)
		memcpy(rest, p, n);
	fuzz_must(!buf_error(to));
}

/* ---- the records ---- */

static uint64_t mix(uint64_t hash, const void *p, int64_t n)
{
	const uint8_t *b = p;

	hash = (hash ^ (uint64_t)n) * UINT64_C(0x100000001b3);
	for (int64_t i = 0; i < n; i++)
		hash = (hash ^ b[i]) * UINT64_C(0x100000001b3);
	return hash;
}

uint64_t record_hash(const struct plog_record *r)
{
	uint64_t hash = mix(UINT64_C(0xcbf29ce484222325), r->key, r->key_length);

	fuzz_must(r->key_length >= -1 && r->value_length >= -1);
	fuzz_must((r->key_length < 0) == !r->key && (r->value_length < 0) == !r->value);
	hash = mix(hash, r->value, r->value_length);
	for (uint32_t i = 0; i < r->header_count; i++) {
		const struct plog_header *h = &r->headers[i];

		fuzz_must(h->key && h->value_length >= -1 && (h->value_length < 0) == !h->value);
		hash = mix(mix(hash, h->key, h->key_length), h->value, h->value_length);
	}
	return hash;
}

/* The first frame from @pos on. 1; 0: the rest is a part of one; -1: none begins so. */
static int frame_at(const struct frames *f, size_t pos, struct frame *out)
{
	size_t rest = f->length - pos;
	struct records_batch b;
	int32_t length;

	if (rest < WIRE_LEADER_EPOCH)
		return 0;
	length = (int32_t)wire_get32(f->bytes + pos + WIRE_LENGTH);
	if (length < WIRE_RECORDS - WIRE_LEADER_EPOCH)
		return -1;
	if ((size_t)length > rest - WIRE_LEADER_EPOCH)
		return 0;
	fuzz_must(!records_header(f->bytes + pos, rest, &b));
	*out = (struct frame){
		.pos = pos, .size = (size_t)b.size, .base = b.base_offset,
		.producer = b.producer_id, .next_offset = -1, .epoch = b.leader_epoch,
		.attributes = b.attributes, .control = b.attributes & RECORDS_CONTROL,
		.transactional = b.attributes & RECORDS_TRANSACTIONAL,
	};
	if (b.base_offset >= 0 && b.last_offset_delta >= 0 &&
	    b.base_offset < INT64_MAX - b.last_offset_delta)
		out->next_offset = b.base_offset + b.last_offset_delta + 1;
	out->opens = b.magic == 2 && records_crc(f->bytes + pos, (size_t)b.size) == b.crc &&
		     out->next_offset >= 0 && b.count >= 0 &&
		     b.count <= (int64_t)b.last_offset_delta + 1;
	if (out->opens && b.count && b.attributes & RECORDS_CODEC_MASK) {
		struct decompressor *d = NULL;
		int err = decompress_open(&d, b.attributes & RECORDS_CODEC_MASK,
					  f->bytes + pos + RECORDS_HEADER,
					  (size_t)b.size - RECORDS_HEADER);

		fuzz_must(!err || err == -EBADMSG || err == -EOPNOTSUPP);
		out->opens = !err;
		decompress_close(d);
	}
	return 1;
}

static void add_given(struct frames *f, const struct frame *frame, const struct plog_record *r)
{
	if (f->ngiven == f->room) {
		f->room = f->room ? 2 * f->room : 256;
		f->given = realloc(f->given, f->room * sizeof(*f->given));
		fuzz_must(f->given != NULL);
	}
	f->given[f->ngiven++] = (struct given){
		.timestamp = r->timestamp, .hash = record_hash(r),
		.delta = (int32_t)(r->offset - frame->base),
	};
}

/* All records of the whole batch at @p, and how it ends. */
static void read_plain(struct frames *f, struct frame *frame, const uint8_t *p, size_t n)
{
	/* a block of its own, so that the sanitizer sees one byte too many */
	uint8_t *copy = memcpy(malloc(n), p, n);
	struct plog_walk *walk;
	struct plog_record r;
	int32_t last = -1;

	frame->first = f->ngiven;
	fuzz_must(!plog_walk_new(copy, n, &walk));
	while ((frame->error = plog_walk_next(walk, &r)) > 0) {
		fuzz_must(r.offset - frame->base > last && r.offset < frame->next_offset);
		add_given(f, frame, &r);
		last = (int32_t)(r.offset - frame->base);
	}
	frame->count = f->ngiven - frame->first;
	fuzz_must(!frame->error || frame->error == -EBADMSG || frame->error == -EMSGSIZE);
	fuzz_must(frame->error || (frame->opens && !plog_walk_rest(walk)));
	fuzz_must(frame->opens || !frame->count);
	plog_walk_free(walk);
	free(copy);
}

/* ---- the daemon's reader ---- */

/* Its verdict on a batch that opens: 1 and what it gives is what was given, 0, -EFBIG. */
static int daemon_reads(const struct frames *f, const struct frame *frame, bool compare)
{
	struct records_iter it;
	struct record r;
	int64_t last = -1;
	uint32_t n = 0;
	bool rising = true;
	int ret;

	ret = records_iter_open(&it, f->bytes + frame->pos, frame->size, FUZZ_EXPANDED);
	while (!ret && (ret = records_iter_next(&it, &r, NULL)) > 0) {
		int64_t delta = (int64_t)((uint64_t)r.offset - (uint64_t)frame->base);

		ret = 0;
		rising &= delta > last && delta <= it.batch.last_offset_delta;
		last = delta;
		if (compare && rising && n < frame->count)
			fuzz_must(f->given[frame->first + n].delta == delta &&
				  f->given[frame->first + n].timestamp == r.timestamp);
		n++;
	}
	if (!ret)
		rising &= (int64_t)n == it.batch.count;
	records_iter_close(&it);
	if (ret == -EFBIG)
		return ret;
	return !ret && rising;
}

/* What the daemon would append of this batch of a client. */
static void daemon_takes(const struct frames *f, const struct frame *frame, int codec)
{
	uint8_t *copy = memcpy(malloc(frame->size), f->bytes + frame->pos, frame->size);
	struct frames mine = { 0 };
	struct frame whole = *frame;
	struct records_check c;
	struct records_rules rules;
	struct arena arena;

	wire_put64(copy, 0);
	records_rules_init(&rules, INT64_MAX / 2);
	rules.after_max_ms = INT64_MAX;
	rules.expanded_max = FUZZ_EXPANDED;
	rules.producer_ids = true;
	rules.transactions = true;
	rules.codec = codec;
	rules.level = codec < 0 ? 0 : compress_default_level((unsigned int)codec);
	arena_init(&arena, 1 << 20);
	records_check_init(&c, copy, frame->size, &rules, &arena);
	fuzz_must(records_check_run(&c, UINT64_MAX) == 1);
	if (!c.error) {
		whole.base = 0;
		whole.next_offset = (int64_t)c.batch.last_offset_delta + 1;
		read_plain(&mine, &whole, c.data, c.size);
		fuzz_must(!frame->error && !whole.error);
		fuzz_must(whole.count == frame->count && (int64_t)whole.count == c.batch.count);
		for (uint32_t i = 0; i < whole.count; i++) {
			const struct given *was = &f->given[frame->first + i];

			fuzz_must(mine.given[i].delta == (int32_t)i && was->delta == (int32_t)i);
			fuzz_must(mine.given[i].hash == was->hash);
			fuzz_must(frame->attributes & RECORDS_LOG_APPEND_TIME ||
				  mine.given[i].timestamp == was->timestamp);
		}
	}
	records_check_end(&c);
	arena_free(&arena);
	free(mine.given);
	free(copy);
}

static bool add_frame(struct frames *f, struct frame *frame, unsigned int flags)
{
	uint32_t records = wire_get32(f->bytes + frame->pos + WIRE_COUNT);
	int ret;

	if (frame->opens && daemon_reads(f, frame, false) == -EFBIG)
		return false;
	read_plain(f, frame, f->bytes + frame->pos, frame->size);
	if (frame->opens && !frame->control && records) {
		ret = daemon_reads(f, frame, true);
		fuzz_must(ret == !frame->error);
		fuzz_must(frame->error || frame->count == records);
		daemon_takes(f, frame, FUZZ_CODEC(flags));
	}
	f->frame[f->count++] = *frame;
	return true;
}

bool frames_make(struct frames *f, const uint8_t *p, size_t n, unsigned int flags)
{
	struct frame frame;
	struct buf made;
	size_t pos = 0;
	int ret;

	memset(f, 0, sizeof(*f));
	buf_init(&made, 1 << 20, NULL);
	make_bytes(&made, p, n, flags);
	f->length = made.len;
	f->bytes = malloc(f->length ? f->length : 1);
	if (f->length)
		memcpy(f->bytes, made.data, f->length);
	buf_free(&made);
	while ((ret = frame_at(f, pos, &frame)) > 0) {
		if (f->count == FUZZ_FRAMES || !add_frame(f, &frame, flags))
			return false;
		pos += frame.size;
	}
	f->broken = ret < 0;
	return true;
}

void frames_free(struct frames *f)
{
	free(f->bytes);
	free(f->given);
}
