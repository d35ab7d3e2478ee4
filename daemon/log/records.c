// SPDX-License-Identifier: MIT
#include "records.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compress.h"
#include "crc32c.h"

#define WINDOW (64 << 10)
/* Bytes between two looks at whether a search is still wanted. */
#define FIND_STEP (4 << 20)

#define VARINT_MAX 10		/* bytes of the longest number in a record */
#define RECORD_MIN 7		/* bytes of the shortest record, its length included */

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return be16toh(v);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

int records_header(const uint8_t *p, size_t n, struct records_batch *b)
{
	if (n < RECORDS_HEADER)
		return -EBADMSG;
	b->base_offset = (int64_t)get64(p);
	b->size = (int64_t)(int32_t)get32(p + 8) + RECORDS_LOG_OVERHEAD;
	b->leader_epoch = (int32_t)get32(p + 12);
	b->magic = (int8_t)p[16];
	b->crc = get32(p + 17);
	b->attributes = get16(p + 21);
	b->last_offset_delta = (int32_t)get32(p + 23);
	b->base_timestamp = (int64_t)get64(p + 27);
	b->max_timestamp = (int64_t)get64(p + 35);
	b->producer_id = (int64_t)get64(p + 43);
	b->producer_epoch = (int16_t)get16(p + 51);
	b->base_sequence = (int32_t)get32(p + 53);
	b->count = (int32_t)get32(p + 57);
	return 0;
}

uint32_t records_crc(const uint8_t *batch, size_t size)
{
	return crc32c(0, batch + RECORDS_CRC_FROM, size - RECORDS_CRC_FROM);
}

void records_stamp(uint8_t *batch, size_t size, bool log_append_time, int64_t max_timestamp)
{
	uint16_t old = get16(batch + 21), attributes = old;
	uint64_t time;
	uint32_t crc;

	if (log_append_time)
		attributes |= RECORDS_LOG_APPEND_TIME;
	else
		attributes &= (uint16_t)~RECORDS_LOG_APPEND_TIME;
	if (attributes == old && (int64_t)get64(batch + 35) == max_timestamp)
		return;
	attributes = htobe16(attributes);
	memcpy(batch + 21, &attributes, sizeof(attributes));
	time = htobe64((uint64_t)max_timestamp);
	memcpy(batch + 35, &time, sizeof(time));
	crc = htobe32(records_crc(batch, size));
	memcpy(batch + 17, &crc, sizeof(crc));
}

void records_set_codec(uint8_t *batch, size_t size, unsigned int codec)
{
	uint16_t attributes = (uint16_t)((get16(batch + 21) & ~RECORDS_CODEC_MASK) | codec);
	uint32_t v = htobe32((uint32_t)(size - RECORDS_LOG_OVERHEAD));

	memcpy(batch + 8, &v, sizeof(v));
	attributes = htobe16(attributes);
	memcpy(batch + 21, &attributes, sizeof(attributes));
	v = htobe32(records_crc(batch, size));
	memcpy(batch + 17, &v, sizeof(v));
}

/* What comes next in the bytes of a record. */
enum {
	STEP_LENGTH,
	STEP_VALUE,
	STEP_HEADERS,
	STEP_HEADER,
	STEP_END,
};

static int fail(struct records_iter *it, int error, const char *why)
{
	it->error = error;
	it->why = why;
	return error;
}

int records_iter_open(struct records_iter *it, const uint8_t *p, size_t n, uint64_t limit)
{
	unsigned int codec;
	int err;

	memset(it, 0, sizeof(*it));
	it->limit = limit;
	if (records_header(p, n, &it->batch) || it->batch.size != (int64_t)n)
		return fail(it, -EBADMSG, "the size is not that of one batch");
	if (it->batch.magic != 2)
		return fail(it, -EBADMSG, "the magic is not 2");
	if (it->batch.count < 0)
		return fail(it, -EBADMSG, "the count is negative");
	codec = it->batch.attributes & RECORDS_CODEC_MASK;
	if (codec == COMPRESS_NONE) {
		it->p = p + RECORDS_HEADER;
		it->end = p + n;
		it->ended = true;
		it->expanded = n - RECORDS_HEADER;
		if ((uint64_t)it->batch.count * RECORD_MIN > n - RECORDS_HEADER)
			return fail(it, -EBADMSG, "the batch is too small for so many records");
		return 0;
	}
	err = decompress_open(&it->d, codec, p + RECORDS_HEADER, n - RECORDS_HEADER);
	if (err)
		return fail(it, err, err == -EOPNOTSUPP ? "no such codec" :
			    err == -EBUSY ? "too many large windows are open" :
			    err == -ENOMEM ? "no memory" : "the compressed data is damaged");
	it->window = malloc(WINDOW);
	if (!it->window) {
		records_iter_close(it);
		return fail(it, -ENOMEM, "no memory");
	}
	it->p = it->window;
	it->end = it->window;
	return 0;
}

void records_iter_close(struct records_iter *it)
{
	decompress_close(it->d);
	free(it->window);
	it->d = NULL;
	it->window = NULL;
}

static size_t at_hand(const struct records_iter *it)
{
	return (size_t)(it->end - it->p);
}

/* Get @want bytes (or what is left of them) into one piece. Not more than WINDOW / 2. */
static int ensure(struct records_iter *it, size_t want, uint64_t *budget)
{
	while (at_hand(it) < want && !it->ended) {
		size_t have = at_hand(it);
		ssize_t got;

		if (budget && !*budget)
			return -EAGAIN;
		memmove(it->window, it->p, have);
		it->p = it->window;
		it->end = it->window + have;
		got = decompress_read(it->d, it->window + have, WINDOW - have);
		if (got == -ENOMEM)
			return fail(it, -ENOMEM, "no memory");
		if (got < 0)
			return fail(it, -EBADMSG, "the compressed data is damaged or cut short");
		if (!got) {
			it->ended = true;
			break;
		}
		it->end += got;
		it->expanded += (uint64_t)got;
		if (it->expanded > it->limit)
			return fail(it, -EFBIG, "the records expand to more than is allowed");
		if (budget)
			*budget -= *budget < (uint64_t)got ? *budget : (uint64_t)got;
	}
	return 0;
}

/* A zigzag number of at most @bits from the bytes at hand; counted off the record's body. */
static int number(struct records_iter *it, unsigned int bits, bool in_body, int64_t *out)
{
	uint64_t v = 0;
	unsigned int shift;

	for (shift = 0; ; shift += 7) {
		uint8_t byte;

		if (in_body && !it->pending)
			return fail(it, -EBADMSG, "a record is longer than its length says");
		if (!at_hand(it))
			return fail(it, -EBADMSG, "the batch ends inside a record");
		byte = *it->p++;
		if (in_body)
			it->pending--;
		if (shift + 7 > bits && byte >> (bits - shift))
			return fail(it, -EBADMSG, "a number in a record is too large");
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	*out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
	return 0;
}

/* A length inside the body: @min is -1 where null may be. Its bytes are to be skipped. */
static int length(struct records_iter *it, int min, int32_t *out)
{
	int64_t n;
	int err;

	err = number(it, 32, true, &n);
	if (err)
		return err;
	if (n < min)
		return fail(it, -EBADMSG, "a length in a record is negative");
	if (n > 0) {
		if ((uint64_t)n > it->pending)
			return fail(it, -EBADMSG, "a record is longer than its length says");
		it->pending -= (uint64_t)n;
		it->skip = (uint32_t)n;
	}
	*out = (int32_t)n;
	return 0;
}

/* Where the bytes of a key or value are, if they stay. */
static const uint8_t *place(const struct records_iter *it, int32_t size)
{
	return it->d || size < 0 ? NULL : it->p;
}

static int pass(struct records_iter *it, uint64_t *budget)
{
	while (it->skip) {
		size_t k = at_hand(it);
		int err;

		if (!k) {
			err = ensure(it, 1, budget);
			if (err)
				return err;
			if (!at_hand(it))
				return fail(it, -EBADMSG, "the batch ends inside a record");
			continue;
		}
		if (k > it->skip)
			k = it->skip;
		it->p += k;
		it->skip -= (uint32_t)k;
	}
	return 0;
}

static int begin_record(struct records_iter *it, uint64_t *budget)
{
	int64_t size, time, delta;
	int err;

	/* length, attributes and three numbers: so a record begins in one go */
	err = ensure(it, 1 + 4 * VARINT_MAX, budget);
	if (err)
		return err;
	if (!it->d && budget && !*budget)
		return -EAGAIN;
	err = number(it, 32, false, &size);
	if (err)
		return err;
	if (size < 0)
		return fail(it, -EBADMSG, "the length of a record is negative");
	if (it->ended && (uint64_t)size > at_hand(it))
		return fail(it, -EBADMSG, "the batch ends inside a record");
	if (!it->d && budget)
		*budget -= *budget < (uint64_t)size ? *budget : (uint64_t)size;
	it->pending = (uint64_t)size;
	if (!it->pending || !at_hand(it))
		return fail(it, -EBADMSG, "a record is longer than its length says");
	it->p++;		/* attributes: none are defined */
	it->pending--;
	err = number(it, 64, true, &time);
	if (!err)
		err = number(it, 32, true, &delta);
	if (!err)
		err = length(it, -1, &it->rec.key_size);
	if (err)
		return err;
	it->rec.index = it->next;
	it->rec.offset = (int64_t)((uint64_t)it->batch.base_offset + (uint64_t)delta);
	if (it->batch.attributes & RECORDS_LOG_APPEND_TIME && !it->client_times)
		it->rec.timestamp = it->batch.max_timestamp;
	else
		it->rec.timestamp = (int64_t)((uint64_t)it->batch.base_timestamp + (uint64_t)time);
	it->rec.key = place(it, it->rec.key_size);
	return 0;
}

/* After the last record: nothing may follow. */
static int finish(struct records_iter *it, uint64_t *budget)
{
	int err;

	err = ensure(it, 1, budget);
	if (err)
		return err;
	if (at_hand(it))
		return fail(it, -EBADMSG, "bytes follow the last record that the count names");
	return 0;
}

int records_iter_next(struct records_iter *it, struct record *rec, uint64_t *budget)
{
	int err;
	int64_t n;
	int32_t ignored;

	if (it->error)
		return it->error;
	for (;;) {
		err = pass(it, budget);
		if (err)
			return err;
		switch (it->step) {
		case STEP_LENGTH:
			if (it->next == it->batch.count)
				return finish(it, budget);
			err = begin_record(it, budget);
			if (err)
				return err;
			it->step = STEP_VALUE;
			break;
		case STEP_VALUE:
			err = ensure(it, VARINT_MAX, budget);
			if (!err)
				err = length(it, -1, &it->rec.value_size);
			if (err)
				return err;
			it->rec.value = place(it, it->rec.value_size);
			it->step = STEP_HEADERS;
			break;
		case STEP_HEADERS:
			err = ensure(it, VARINT_MAX, budget);
			if (!err)
				err = number(it, 32, true, &n);
			if (err)
				return err;
			/* each takes two bytes at the least */
			if (n < 0 || (uint64_t)n > it->pending / 2)
				return fail(it, -EBADMSG,
					    "a record has an impossible number of headers");
			it->rec.headers = (int32_t)n;
			it->headers_left = (int32_t)n;
			it->header_value = false;
			it->step = STEP_HEADER;
			break;
		case STEP_HEADER:
			if (!it->headers_left) {
				it->step = STEP_END;
				break;
			}
			err = ensure(it, VARINT_MAX, budget);
			if (!err)
				err = length(it, it->header_value ? -1 : 0, &ignored);
			if (err)
				return err;
			if (it->header_value)
				it->headers_left--;
			it->header_value = !it->header_value;
			break;
		default:
			if (it->pending)
				return fail(it, -EBADMSG,
					    "a record is shorter than its length says");
			it->step = STEP_LENGTH;
			it->next++;
			*rec = it->rec;
			return 1;
		}
	}
}

int records_find_time(const uint8_t *p, size_t n, int64_t from, int64_t timestamp, bool max,
		      const atomic_bool *stop, struct record *rec)
{
	struct records_iter it;
	struct record r;
	uint64_t budget = FIND_STEP;
	bool found = false;
	int ret;

	ret = records_iter_open(&it, p, n, RECORDS_EXPANDED_MAX);
	if (ret)
		return ret;
	while ((ret = records_iter_next(&it, &r, &budget)) > 0 || ret == -EAGAIN) {
		if (ret == -EAGAIN) {
			if (stop && atomic_load(stop)) {
				ret = -ECANCELED;
				break;
			}
			budget = FIND_STEP;
			continue;
		}
		if (r.offset < from)
			continue;
		if (max ? found && r.timestamp <= rec->timestamp : r.timestamp < timestamp)
			continue;
		*rec = r;
		rec->key = NULL;
		rec->value = NULL;
		found = true;
		if (!max)
			break;
	}
	records_iter_close(&it);
	return ret < 0 ? ret : found;
}
