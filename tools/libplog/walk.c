// SPDX-License-Identifier: MIT
/*
 * Opening record batches.  The bytes may have been made by an enemy: nothing is
 * allocated in proportion to a number among them, only to bytes that are there.
 */
#include "plog.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "compress.h"
#include "crc32c.h"
#include "wire.h"

#define CHUNK	65536

struct plog_walk {
	const uint8_t *bytes;
	size_t length;
	size_t pos;		/* of the batch that is open, or of the next one */
	int64_t from;		/* records below are left out */
	int (*aborted)(void *arg, int64_t producer, int64_t offset);
	void *aborted_arg;
	int64_t next_offset;

	/* the batch that is open: size 0 for none */
	size_t size;
	int64_t base_offset, base_time, max_time;
	int32_t last_delta, leader_epoch;
	uint16_t attributes;
	uint32_t left;		/* records to come */
	int32_t delta;		/* of the record before, -1 at first */
	int32_t resume;		/* after an error: the last one given, -1 for none */
	const uint8_t *at, *end;	/* the records as they lie there */

	/* its bytes expanded, from start on, if it is compressed */
	struct decompressor *decompressor;
	uint8_t *buffer;
	size_t room, start, filled;

	struct plog_header *headers;
	size_t header_room;
};

int plog_walk_new(const void *bytes, size_t length, struct plog_walk **out)
{
	struct plog_walk *walk = calloc(1, sizeof(*walk));

	*out = walk;
	if (!walk)
		return -ENOMEM;
	plog_walk_set(walk, bytes, length);
	return 0;
}

static void close_batch(struct plog_walk *walk)
{
	decompress_close(walk->decompressor);
	walk->decompressor = NULL;
	walk->size = 0;
}

/* The open batch is done with, and the next one's turn. */
static void leave_batch(struct plog_walk *walk)
{
	walk->pos += walk->size;
	walk->resume = -1;
	close_batch(walk);
}

void plog_walk_free(struct plog_walk *walk)
{
	if (!walk)
		return;
	close_batch(walk);
	free(walk->buffer);
	free(walk->headers);
	free(walk);
}

void plog_walk_set(struct plog_walk *walk, const void *bytes, size_t length)
{
	close_batch(walk);
	walk->bytes = bytes;
	walk->length = length;
	walk->pos = 0;
	walk->from = 0;
	walk->next_offset = -1;
	walk->resume = -1;
}

void plog_walk_from(struct plog_walk *walk, int64_t offset)
{
	walk->from = offset;
}

void plog_walk_filter(struct plog_walk *walk,
		      int (*aborted)(void *arg, int64_t producer, int64_t offset), void *arg)
{
	walk->aborted = aborted;
	walk->aborted_arg = arg;
}

size_t plog_walk_rest(const struct plog_walk *walk)
{
	return walk->length - walk->pos;
}

int64_t plog_walk_next_offset(const struct plog_walk *walk)
{
	return walk->next_offset;
}

/* Size of the batch at pos; 0 if it is not all there, -EBADMSG. */
static int64_t batch_size(const struct plog_walk *walk)
{
	size_t rest = walk->length - walk->pos;
	int32_t length;

	if (rest < WIRE_LEADER_EPOCH)
		return 0;
	length = wire_get32(walk->bytes + walk->pos + WIRE_LENGTH);
	if (length < WIRE_RECORDS - WIRE_LEADER_EPOCH)
		return -EBADMSG;
	if ((size_t)length + WIRE_LEADER_EPOCH > rest)
		return 0;
	return (int64_t)length + WIRE_LEADER_EPOCH;
}

int plog_walk_skip(struct plog_walk *walk)
{
	int64_t size = batch_size(walk), base;
	const uint8_t *b = walk->bytes + walk->pos;
	int32_t delta;

	close_batch(walk);
	walk->resume = -1;
	if (size <= 0) {
		/* Without a length there is no way on. */
		walk->pos = walk->length;
		return -ENODATA;
	}
	base = wire_get64(b + WIRE_BASE_OFFSET);
	delta = wire_get32(b + WIRE_LAST_DELTA);
	if (base >= 0 && delta >= 0 && base < INT64_MAX - delta)
		walk->next_offset = base + delta + 1;
	walk->pos += size;
	return 0;
}

/* Opens the batch at pos. 1, 0 at the end, or an error. */
static int open_batch(struct plog_walk *walk)
{
	int64_t size = batch_size(walk);
	const uint8_t *b = walk->bytes + walk->pos;
	int32_t count;
	int ret;

	if (size <= 0)
		return size;
	if (b[WIRE_MAGIC] != 2 || crc32c(0, b + WIRE_ATTRIBUTES, size - WIRE_ATTRIBUTES) !=
				  wire_get32(b + WIRE_CRC))
		return -EBADMSG;
	walk->base_offset = wire_get64(b + WIRE_BASE_OFFSET);
	walk->leader_epoch = wire_get32(b + WIRE_LEADER_EPOCH);
	walk->attributes = wire_get16(b + WIRE_ATTRIBUTES);
	walk->last_delta = wire_get32(b + WIRE_LAST_DELTA);
	walk->base_time = wire_get64(b + WIRE_BASE_TIME);
	walk->max_time = wire_get64(b + WIRE_MAX_TIME);
	count = wire_get32(b + WIRE_COUNT);
	/* A batch that compaction has emptied has no records, and keeps its last offset. */
	if (walk->base_offset < 0 || walk->last_delta < 0 || count < 0 ||
	    (int64_t)count - 1 > walk->last_delta ||
	    walk->base_offset > INT64_MAX - 1 - walk->last_delta)
		return -EBADMSG;
	walk->left = count;
	walk->delta = -1;
	walk->at = b + WIRE_RECORDS;
	walk->end = b + size;
	walk->next_offset = walk->base_offset + walk->last_delta + 1;
	if (walk->attributes & WIRE_ATTR_CODEC && count) {
		ret = decompress_open(&walk->decompressor, walk->attributes & WIRE_ATTR_CODEC,
				      walk->at, walk->end - walk->at);
		if (ret)
			return ret == -EOPNOTSUPP ? -EBADMSG : ret;
		walk->start = 0;
		walk->filled = 0;
	}
	walk->size = size;
	return 1;
}

/* At least @n expanded bytes at start. 0; -EBADMSG if the batch ends before. */
static int fill(struct plog_walk *walk, size_t n)
{
	while (walk->filled - walk->start < n) {
		ssize_t got;

		if (walk->start && walk->room - walk->start < n) {
			memmove(walk->buffer, walk->buffer + walk->start,
				walk->filled - walk->start);
			walk->filled -= walk->start;
			walk->start = 0;
		}
		if (walk->filled == walk->room) {
			/* Doubled only when what is there has been filled. */
			size_t room = walk->room ? 2 * walk->room : CHUNK;
			uint8_t *larger = realloc(walk->buffer, room);

			if (!larger)
				return -ENOMEM;
			walk->buffer = larger;
			walk->room = room;
		}
		got = decompress_read(walk->decompressor, walk->buffer + walk->filled,
				      walk->room - walk->filled);
		if (got <= 0)
			return got ? got : -EBADMSG;
		walk->filled += got;
	}
	return 0;
}

/* The length in front of a compressed record. */
static int compressed_length(struct plog_walk *walk, int64_t *length)
{
	/* It may be the last bytes: ask for one after the other. */
	for (size_t n = 1;; n++) {
		int used, ret = fill(walk, n);

		if (ret)
			return ret;
		used = wire_get_varint(walk->buffer + walk->start, n, WIRE_VARINT_MAX, length);
		if (used < 0)
			return -EBADMSG;
		if (used) {
			walk->start += used;
			return 0;
		}
	}
}

/* The bytes of the next record. */
static int take_record(struct plog_walk *walk, const uint8_t **body, size_t *size)
{
	int64_t length;
	int ret;

	if (!walk->decompressor) {
		int used = wire_get_varint(walk->at, walk->end - walk->at, WIRE_VARINT_MAX,
					   &length);

		if (used <= 0 || length < 0 || length > walk->end - walk->at - used)
			return -EBADMSG;
		*body = walk->at + used;
		*size = length;
		walk->at += used + length;
		return 0;
	}
	ret = compressed_length(walk, &length);
	if (ret)
		return ret;
	if (length < 0)
		return -EBADMSG;
	if (length > PLOG_RECORD_BYTES_MAX)
		return -EMSGSIZE;
	ret = fill(walk, length);
	if (ret)
		return ret;
	*body = walk->buffer + walk->start;
	*size = length;
	walk->start += length;
	return 0;
}

/* Where the parser of one record stands. */
struct body {
	const uint8_t *at, *end;
};

static bool take_varint(struct body *b, unsigned int most, int64_t *value)
{
	int used = wire_get_varint(b->at, b->end - b->at, most, value);

	if (used <= 0)
		return false;
	b->at += used;
	return true;
}

/* A length, -1 or more (0 or more unless @null), and so many bytes. */
static bool take_bytes(struct body *b, bool null, const void **bytes, int32_t *length)
{
	int64_t n;

	if (!take_varint(b, WIRE_VARINT_MAX, &n) || n < (null ? -1 : 0) || n > b->end - b->at)
		return false;
	*length = n;
	*bytes = n < 0 ? NULL : b->at;
	b->at += n < 0 ? 0 : n;
	return true;
}

static int take_headers(struct plog_walk *walk, struct body *b, struct plog_record *r)
{
	int64_t count;

	/* Two bytes are the least that one takes. */
	if (!take_varint(b, WIRE_VARINT_MAX, &count) || count < 0 || count > (b->end - b->at) / 2)
		return -EBADMSG;
	if ((size_t)count > walk->header_room) {
		struct plog_header *larger = reallocarray(walk->headers, count, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		walk->headers = larger;
		walk->header_room = count;
	}
	for (int64_t i = 0; i < count; i++) {
		struct plog_header *h = &walk->headers[i];
		const void *key;
		int32_t length;

		if (!take_bytes(b, false, &key, &length) ||
		    !take_bytes(b, true, &h->value, &h->value_length))
			return -EBADMSG;
		h->key = key;
		h->key_length = length;
	}
	r->headers = walk->headers;
	r->header_count = count;
	return 0;
}

static int parse_record(struct plog_walk *walk, struct plog_record *r)
{
	int64_t time_delta, delta;
	struct body b;
	size_t size;
	int ret;

	ret = take_record(walk, &b.at, &size);
	if (ret)
		return ret;
	b.end = b.at + size;
	memset(r, 0, sizeof(*r));
	if (!size)
		return -EBADMSG;
	b.at++;			/* attributes: none are defined */
	if (!take_varint(&b, WIRE_VARLONG_MAX, &time_delta) ||
	    !take_varint(&b, WIRE_VARINT_MAX, &delta) ||
	    delta <= walk->delta || delta > walk->last_delta ||
	    !take_bytes(&b, true, &r->key, &r->key_length) ||
	    !take_bytes(&b, true, &r->value, &r->value_length))
		return -EBADMSG;
	ret = take_headers(walk, &b, r);
	if (ret)
		return ret;
	if (b.at != b.end)
		return -EBADMSG;
	walk->delta = delta;
	r->offset = walk->base_offset + delta;
	r->leader_epoch = walk->leader_epoch;
	r->codec = walk->attributes & WIRE_ATTR_CODEC;
	r->log_append_time = walk->attributes & WIRE_ATTR_APPEND_TIME ? 1 : 0;
	/* The sum of two numbers of a stranger's wraps, as in Kafka's clients and in plogd. */
	r->timestamp = r->log_append_time ? walk->max_time :
		       (int64_t)((uint64_t)walk->base_time + (uint64_t)time_delta);
	return 0;
}

/* All records were given: nothing may follow them. */
static int end_batch(struct plog_walk *walk)
{
	uint8_t byte;
	int ret = 0;

	if (walk->decompressor) {
		ssize_t more = walk->filled > walk->start ? 1 :
			       decompress_read(walk->decompressor, &byte, 1);

		if (more)
			ret = more < 0 ? more : -EBADMSG;
	} else if (!(walk->attributes & WIRE_ATTR_CODEC) && walk->at != walk->end) {
		ret = -EBADMSG;
	}
	if (!ret)
		leave_batch(walk);
	return ret;
}

/* Is none of the open batch wanted? 1, 0, or an error of the filter. */
static int unwanted(const struct plog_walk *walk)
{
	if (walk->attributes & WIRE_ATTR_CONTROL || walk->next_offset <= walk->from)
		return 1;
	if (!walk->aborted || !(walk->attributes & WIRE_ATTR_TRANSACTIONAL))
		return 0;
	return walk->aborted(walk->aborted_arg,
			     wire_get64(walk->bytes + walk->pos + WIRE_PRODUCER_ID),
			     walk->base_offset);
}

int plog_walk_next(struct plog_walk *walk, struct plog_record *record)
{
	int ret;

	for (;;) {
		if (!walk->size) {
			ret = open_batch(walk);
			if (ret <= 0)
				break;
			ret = unwanted(walk);
			if (ret < 0)
				break;
			if (ret) {
				leave_batch(walk);
				continue;
			}
		}
		if (!walk->left) {
			ret = end_batch(walk);
			if (ret)
				break;
			continue;
		}
		ret = parse_record(walk, record);
		if (ret)
			break;
		walk->left--;
		if (record->offset >= walk->from && walk->delta > walk->resume)
			return 1;
	}
	/* If it is tried again, what was given is not given twice. */
	if (walk->size && walk->delta > walk->resume)
		walk->resume = walk->delta;
	close_batch(walk);
	return ret;
}
