// SPDX-License-Identifier: MIT
#include "records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../kafka/error.h"
#include "compress.h"
#include "compressor.h"

#define ATTRIBUTES_KNOWN (RECORDS_CODEC_MASK | RECORDS_LOG_APPEND_TIME | \
			  RECORDS_TRANSACTIONAL | RECORDS_CONTROL)
#define LEGACY_MIN 14		/* what the length of a batch of any magic is at least */

enum {
	STEP_HEADER,
	STEP_RECORDS,
	STEP_CODEC,
	STEP_DONE,
};

#define PIECE (64 << 10)

void records_rules_init(struct records_rules *rules, int64_t now_ms)
{
	*rules = (struct records_rules){
		.now_ms = now_ms,
		.before_max_ms = INT64_MAX,
		.after_max_ms = 3600000,
		.max_message_bytes = 1048588,
		.expanded_max = RECORDS_EXPANDED_MAX,
		.zstd = true,
		.codec = RECORDS_CODEC_KEEP,
	};
}

void records_check_init(struct records_check *c, uint8_t *p, size_t n,
			const struct records_rules *rules, struct arena *arena)
{
	memset(c, 0, sizeof(*c));
	c->p = p;
	c->n = n;
	c->rules = *rules;
	c->arena = arena;
	c->max_timestamp = -1;
	buf_init(&c->out, rules->max_message_bytes, NULL);
}

bool records_check_is_long(const struct records_check *c)
{
	return c->n >= RECORDS_HEADER &&
	       (c->p[22] & RECORDS_CODEC_MASK || c->rules.codec > COMPRESS_NONE);
}

/* Let go of what only the work needs. */
static void close_work(struct records_check *c)
{
	records_iter_close(&c->iter);
	decompress_close(c->from);
	compress_close(c->to);
	c->from = NULL;
	c->to = NULL;
}

void records_check_end(struct records_check *c)
{
	close_work(c);
	buf_free(&c->out);
}

/* The answer is @error; the text stays in the check. */
__attribute__((format(printf, 3, 4)))
static int refuse(struct records_check *c, int16_t error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->line, sizeof(c->line), fmt, ap);
	va_end(ap);
	c->error = error;
	c->text = c->line;
	c->step = STEP_DONE;
	return 1;
}

static int refuse_memory(struct records_check *c)
{
	return refuse(c, KERR_UNKNOWN_SERVER_ERROR, "no memory to check the batch");
}

/* Name a record that is at fault. False when memory is out. */
__attribute__((format(printf, 3, 4)))
static bool blame(struct records_check *c, int32_t index, const char *fmt, ...)
{
	char line[200];
	char *text;
	va_list ap;

	if (c->nbad == RECORDS_ERRORS_MAX)
		return true;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (!c->bad)
		c->bad = arena_array(c->arena, RECORDS_ERRORS_MAX, sizeof(*c->bad));
	text = arena_copy(c->arena, line, strlen(line));
	if (!c->bad || !text)
		return false;
	c->bad[c->nbad++] = (struct records_bad){ index, text };
	return true;
}

/* What the request as a whole must be: one batch of our magic. */
static int check_shape(struct records_check *c)
{
	const uint8_t *p = c->p;
	int64_t size;
	int8_t magic;

	if (!c->n)
		return refuse(c, KERR_INVALID_RECORD, "there is no record batch");
	if (c->n < 17)
		return refuse(c, KERR_INVALID_RECORD, "%zu bytes are no record batch", c->n);
	size = (int32_t)((uint32_t)p[8] << 24 | (uint32_t)p[9] << 16 |
			 (uint32_t)p[10] << 8 | p[11]);
	if (size < LEGACY_MIN)
		return refuse(c, KERR_CORRUPT_MESSAGE, "a batch says that it has %" PRId64
			      " bytes, which is less than any has", size);
	size += RECORDS_LOG_OVERHEAD;
	magic = (int8_t)p[16];
	if (magic < 0 || magic > 2)
		return refuse(c, KERR_CORRUPT_MESSAGE, "there is no batch format with magic %d",
			      magic);
	if (size > (int64_t)c->n)
		return refuse(c, KERR_INVALID_RECORD, "the batch has %" PRId64
			      " bytes by its header, but only %zu are here", size, c->n);
	if (magic != 2)
		return refuse(c, KERR_INVALID_RECORD,
			      "the batch has the old format with magic %d: only 2 is taken", magic);
	if (size < RECORDS_HEADER)
		return refuse(c, KERR_CORRUPT_MESSAGE, "the batch has %" PRId64
			      " bytes, which is less than its header has", size);
	records_header(p, c->n, &c->batch);
	if ((c->batch.attributes & RECORDS_CODEC_MASK) == COMPRESS_ZSTD && !c->rules.zstd)
		return refuse(c, KERR_UNSUPPORTED_COMPRESSION_TYPE,
			      "zstd needs version 7 of Produce or later");
	if (size < (int64_t)c->n)
		return refuse(c, KERR_INVALID_RECORD,
			      "%" PRId64 " bytes follow the batch: one batch for a partition "
			      "is taken",
			      (int64_t)c->n - size);
	return 0;
}

static int check_header(struct records_check *c)
{
	const struct records_batch *b = &c->batch;
	unsigned int codec = b->attributes & RECORDS_CODEC_MASK;
	uint32_t crc;

	if (b->base_offset)
		return refuse(c, KERR_INVALID_RECORD, "the base offset is %" PRId64
			      " and must be 0", b->base_offset);
	if (c->n > c->rules.max_message_bytes)
		return refuse(c, KERR_MESSAGE_TOO_LARGE,
			      "the batch has %zu bytes, above the %" PRIu32
			      " of max.message.bytes", c->n, c->rules.max_message_bytes);
	crc = records_crc(c->p, c->n);
	if (crc != b->crc)
		return refuse(c, KERR_CORRUPT_MESSAGE, "the CRC is %08" PRIx32
			      ", the batch says %08" PRIx32, crc, b->crc);
	if (!compress_name(codec))
		return refuse(c, KERR_UNSUPPORTED_COMPRESSION_TYPE, "there is no codec %u", codec);
	if (b->count <= 0)
		return refuse(c, KERR_INVALID_RECORD, "the batch has %" PRId32 " records",
			      b->count);
	if ((int64_t)b->last_offset_delta + 1 != b->count)
		return refuse(c, KERR_INVALID_RECORD, "the last offset delta is %" PRId32
			      " with %" PRId32 " records", b->last_offset_delta, b->count);
	if (b->attributes & RECORDS_CONTROL)
		return refuse(c, KERR_INVALID_RECORD, "clients may not write control records");
	if (b->attributes & ~ATTRIBUTES_KNOWN)
		return refuse(c, KERR_INVALID_RECORD, "attributes %#x are not defined",
			      b->attributes & ~ATTRIBUTES_KNOWN);
	if (b->producer_id >= 0 && b->base_sequence < 0)
		return refuse(c, KERR_INVALID_RECORD, "the batch of producer %" PRId64
			      " has no sequence number", b->producer_id);
	if (b->attributes & RECORDS_TRANSACTIONAL) {
		if (b->producer_id < 0)
			return refuse(c, KERR_INVALID_RECORD,
				      "the batch is transactional but has no producer id");
		if (!c->rules.transactions)
			return refuse(c, KERR_INVALID_TXN_STATE,
				      "this broker serves no transactions");
	}
	if (b->producer_id >= 0 && !c->rules.producer_ids)
		return refuse(c, KERR_INVALID_RECORD, "the batch bears producer id %" PRId64
			      ", but this broker gives none out", b->producer_id);
	return 0;
}

/* False when memory is out. */
static bool check_record(struct records_check *c, const struct record *r)
{
	const struct records_rules *rules = &c->rules;
	int64_t age = (int64_t)((uint64_t)rules->now_ms - (uint64_t)r->timestamp);

	if (rules->compact && r->key_size < 0)
		return blame(c, r->index, "a record without a key cannot be compacted");
	if (rules->log_append_time) {
		if (!(c->batch.attributes & RECORDS_LOG_APPEND_TIME))
			return true;
		c->bad_time = true;
		return blame(c, r->index, "a client may not set the type LogAppendTime");
	}
	if (r->timestamp > c->max_timestamp)
		c->max_timestamp = r->timestamp;
	if (r->timestamp < 0) {
		c->bad_time = true;
		return blame(c, r->index, "the time %" PRId64 " is not a time", r->timestamp);
	}
	if (age > rules->before_max_ms) {
		c->bad_time = true;
		return blame(c, r->index, "the time %" PRId64 " is %" PRId64
			     " ms ago, above message.timestamp.before.max.ms", r->timestamp, age);
	}
	if (age < 0 && (uint64_t)-(age + 1) >= (uint64_t)rules->after_max_ms) {
		c->bad_time = true;
		return blame(c, r->index, "the time %" PRId64 " is %" PRIu64
			     " ms ahead, above message.timestamp.after.max.ms", r->timestamp,
			     (uint64_t)-(age + 1) + 1);
	}
	return true;
}

/* The iterator met something wrong. */
static int refuse_iter(struct records_check *c, int err)
{
	const char *why = c->iter.why ? c->iter.why : "the compressed data is damaged";

	switch (err) {
	case -ENOMEM:
		return refuse_memory(c);
	case -EBUSY:
		return refuse(c, KERR_REQUEST_TIMED_OUT,
			      "too many batches with large zstd windows at once, try again");
	case -EFBIG:
		return refuse(c, KERR_MESSAGE_TOO_LARGE,
			      "the records expand to more than %" PRIu64 " bytes",
			      c->rules.expanded_max);
	}
	if (!blame(c, c->iter.next, "%s", why))
		return refuse_memory(c);
	return refuse(c, KERR_INVALID_RECORD, "record %" PRId32 ": %s", c->iter.next, why);
}

/* The topic has a codec of its own: make a batch with the same records in that. */
static int begin_codec(struct records_check *c)
{
	unsigned int codec = c->batch.attributes & RECORDS_CODEC_MASK;
	uint64_t size = c->iter.expanded;
	uint8_t *head;
	int err = 0;

	/* the windows of the check are not needed any more, and may be the last of their kind */
	records_iter_close(&c->iter);
	head = buf_extend(&c->out, RECORDS_HEADER);
	if (head)
		memcpy(head, c->p, RECORDS_HEADER);
	if (codec != COMPRESS_NONE)
		err = decompress_open(&c->from, codec, c->p + RECORDS_HEADER,
				      c->n - RECORDS_HEADER);
	if (!err)
		err = compress_open(&c->to, (unsigned int)c->rules.codec, c->rules.level, size,
				    &c->out);
	if (err)
		return refuse_iter(c, err);
	c->at = RECORDS_HEADER;
	c->step = STEP_CODEC;
	return 0;
}

static int end_codec(struct records_check *c)
{
	int err;

	err = compress_end(c->to);
	if (err)
		return refuse_iter(c, err);
	err = buf_error(&c->out);
	if (err == -EMSGSIZE)
		return refuse(c, KERR_MESSAGE_TOO_LARGE,
			      "the batch is above the %" PRIu32 " bytes of max.message.bytes "
			      "in the topic's codec %s", c->rules.max_message_bytes,
			      compress_name((unsigned int)c->rules.codec));
	if (err)
		return refuse_memory(c);
	records_set_codec(c->out.data, c->out.len, (unsigned int)c->rules.codec);
	c->data = c->out.data;
	c->size = (uint32_t)c->out.len;
	c->step = STEP_DONE;
	return 1;
}

static int change_codec(struct records_check *c, uint64_t *budget)
{
	uint8_t piece[PIECE];

	while (!buf_error(&c->out)) {
		const uint8_t *p = piece;
		ssize_t n;
		int err;

		if (budget && !*budget)
			return 0;
		if (c->from) {
			n = decompress_read(c->from, piece, sizeof(piece));
			if (n < 0)
				return refuse_iter(c, (int)n);
		} else {
			p = c->p + c->at;
			n = c->n - c->at < PIECE ? (ssize_t)(c->n - c->at) : PIECE;
			c->at += (size_t)n;
		}
		if (!n)
			break;
		err = compress_write(c->to, p, (size_t)n);
		if (err)
			return refuse_iter(c, err);
		if (budget)
			*budget -= *budget < (uint64_t)n ? *budget : (uint64_t)n;
	}
	return end_codec(c);
}

static int check_records(struct records_check *c, uint64_t *budget)
{
	struct record r;
	int ret;

	while ((ret = records_iter_next(&c->iter, &r, budget)) > 0) {
		if (r.offset != r.index) {
			if (!blame(c, r.index, "the offset delta is %" PRId64, r.offset))
				return refuse_memory(c);
			return refuse(c, KERR_INVALID_RECORD, "record %" PRId32
				      " has the offset delta %" PRId64, r.index, r.offset);
		}
		if (!check_record(c, &r))
			return refuse_memory(c);
		if (c->nbad == RECORDS_ERRORS_MAX)
			break;
	}
	if (ret == -EAGAIN)
		return 0;
	if (ret < 0)
		return refuse_iter(c, ret);
	if (c->nbad)
		return refuse(c, c->bad_time ? KERR_INVALID_TIMESTAMP : KERR_INVALID_RECORD,
			      "%" PRId32 "%s of %" PRId32 " records refused; record %" PRId32
			      ": %s",
			      c->nbad, c->nbad == RECORDS_ERRORS_MAX ? " or more" : "",
			      c->batch.count, c->bad[0].index, c->bad[0].text);
	if (!c->rules.log_append_time) {
		records_stamp(c->p, c->n, false, c->max_timestamp);
		records_header(c->p, c->n, &c->batch);
	}
	if (c->rules.codec == RECORDS_CODEC_KEEP ||
	    (unsigned int)c->rules.codec == (c->batch.attributes & RECORDS_CODEC_MASK)) {
		c->data = c->p;
		c->size = (uint32_t)c->n;
		c->step = STEP_DONE;
		return 1;
	}
	return begin_codec(c);
}

static int check_some(struct records_check *c, uint64_t budget)
{
	int ret;

	if (c->step == STEP_HEADER) {
		ret = check_shape(c);
		if (!ret)
			ret = check_header(c);
		if (ret)
			return ret;
		ret = records_iter_open(&c->iter, c->p, c->n, c->rules.expanded_max);
		if (ret)
			return refuse_iter(c, ret);
		c->iter.client_times = true;
		c->step = STEP_RECORDS;
	}
	if (c->step == STEP_RECORDS) {
		ret = check_records(c, budget == UINT64_MAX ? NULL : &budget);
		if (ret || c->step == STEP_RECORDS)
			return ret;
	}
	return change_codec(c, budget == UINT64_MAX ? NULL : &budget);
}

int records_check_run(struct records_check *c, uint64_t budget)
{
	if (c->step == STEP_DONE)
		return 1;
	if (!check_some(c, budget))
		return 0;
	/* a request has many batches: what is done holds no window */
	close_work(c);
	if (c->error)
		buf_free(&c->out);
	return 1;
}
