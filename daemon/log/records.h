/* SPDX-License-Identifier: MIT */
#ifndef PLOG_RECORDS_H
#define PLOG_RECORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../kafka/arena.h"
#include "../kafka/buf.h"

/*
 * Record batches (format v2) in memory: reading their header and their records, and the
 * check of what a client sent. Nothing here keeps state between calls or takes a lock; any
 * thread may call it, for one batch one at a time.
 */

#define RECORDS_HEADER 61	/* bytes before the records */
#define RECORDS_LOG_OVERHEAD 12	/* base offset and length, which the length does not count */
#define RECORDS_CRC_FROM 21	/* the CRC covers the bytes from here to the end */

#define RECORDS_CODEC_MASK 0x07
#define RECORDS_LOG_APPEND_TIME 0x08
#define RECORDS_TRANSACTIONAL 0x10
#define RECORDS_CONTROL 0x20

/* The header in the machine's byte order. */
struct records_batch {
	int64_t base_offset;
	int64_t size;			/* of the whole batch, as its length field says */
	int32_t leader_epoch;
	int8_t magic;
	uint32_t crc;
	uint16_t attributes;
	int32_t last_offset_delta;
	int64_t base_timestamp;
	int64_t max_timestamp;
	int64_t producer_id;		/* -1: none */
	int16_t producer_epoch;
	int32_t base_sequence;
	int32_t count;
};

/* Read the header from the @n bytes at @p. 0, or -EBADMSG if they are fewer than it has. */
int records_header(const uint8_t *p, size_t n, struct records_batch *b);

/* The CRC that the @size bytes of a whole batch should bear. @size >= RECORDS_HEADER. */
uint32_t records_crc(const uint8_t *batch, size_t size);

/*
 * Write timestamp type and max timestamp into a whole batch and correct its CRC. Does
 * nothing if both are so already.
 */
void records_stamp(uint8_t *batch, size_t size, bool log_append_time, int64_t max_timestamp);

/* Write codec and length into a whole batch of @size bytes and correct its CRC. */
void records_set_codec(uint8_t *batch, size_t size, unsigned int codec);

/* One record. */
struct record {
	int32_t index;			/* in the batch */
	int64_t offset;			/* base offset and delta */
	int64_t timestamp;		/* that of the batch if it has LogAppendTime */
	int32_t key_size, value_size;	/* -1: null */
	const uint8_t *key, *value;	/* NULL if null, or if the batch is compressed */
	int32_t headers;		/* how many */
};

struct compressor;
struct decompressor;

/*
 * The records of a batch, one after the other, compressed or not. What a record says is
 * checked against the bytes that are there: nothing is trusted and nothing is allocated in
 * proportion to anything. Compressed records pass through a window and are not kept.
 */
struct records_iter {
	struct records_batch batch;
	const char *why;		/* after an error: what was wrong */
	uint64_t expanded;		/* bytes of records so far */
	bool client_times;		/* set it to have each record's own time with any type */

	uint64_t limit;
	struct decompressor *d;
	uint8_t *window;
	const uint8_t *p, *end;		/* bytes at hand */
	bool ended;			/* no more will come */
	int error;
	int32_t next;			/* index of the record that comes next */
	uint32_t skip;			/* bytes of it that are still to be passed */
	uint64_t pending;		/* of its body, after the bytes to skip */
	struct record rec;
	int step;
	int32_t headers_left;
	bool header_value;
};

/*
 * Begin with the @n bytes of a whole batch at @p, which stay the caller's. At most @limit
 * bytes of records are expanded. 0, -EBADMSG (size, magic or count are wrong, or not data of
 * that codec), -EOPNOTSUPP (no such codec), -ENOMEM, -EBUSY (see decompress_open()). The CRC
 * is not looked at.
 */
int records_iter_open(struct records_iter *it, const uint8_t *p, size_t n, uint64_t limit);

/*
 * 1 and the next record; 0 after the last, if the batch ended there; -EBADMSG (malformed),
 * -EFBIG (@limit passed), -ENOMEM. An error stays. With *@budget (may be NULL) no more than
 * about so many bytes are passed: it is counted down, and -EAGAIN asks to call again.
 */
int records_iter_next(struct records_iter *it, struct record *rec, uint64_t *budget);

void records_iter_close(struct records_iter *it);

/*
 * The first record of the batch, of those at offset @from and behind, whose time is
 * @timestamp or later, or with @max the first of those with the largest time. 1 and *@rec (no
 * key, no value), 0 if there is none, -ECANCELED (another thread has set *@stop, which may be
 * NULL), or an error as above. Expands at most RECORDS_EXPANDED_MAX.
 */
int records_find_time(const uint8_t *p, size_t n, int64_t from, int64_t timestamp, bool max,
		      const atomic_bool *stop, struct record *rec);

/* The check of a client's batch */

/* What the records of one batch may expand to, unless the caller says otherwise. */
#define RECORDS_EXPANDED_MAX (UINT64_C(512) << 20)
/* So many records at most are named in an error. */
#define RECORDS_ERRORS_MAX 100

struct records_rules {
	int64_t now_ms;			/* wall clock */
	int64_t before_max_ms;		/* message.timestamp.before.max.ms; INT64_MAX */
	int64_t after_max_ms;		/* message.timestamp.after.max.ms; 1 h */
	uint32_t max_message_bytes;	/* of the whole batch; 1048588 */
	uint64_t expanded_max;		/* RECORDS_EXPANDED_MAX */
	bool log_append_time;		/* message.timestamp.type is LogAppendTime */
	bool compact;			/* cleanup.policy has "compact" */
	bool zstd;			/* the request may carry zstd (Produce 7+); true */
	bool producer_ids;		/* idempotent producers are served; false */
	bool transactions;		/* so are transactional ones; false */
	int codec;			/* compression.type; RECORDS_CODEC_KEEP: "producer" */
	int level;			/* of that codec */
};

#define RECORDS_CODEC_KEEP (-1)

/* Kafka's defaults. @now_ms: the wall clock. */
void records_rules_init(struct records_rules *rules, int64_t now_ms);

struct records_bad {
	int32_t index;			/* of the record in its batch */
	const char *text;		/* in the arena */
};

/*
 * A check at work. The batch is @batch; the check may correct its header in place: on a
 * CreateTime topic the timestamp type and the max timestamp, with the CRC. On a topic with
 * LogAppendTime the header is left alone: whoever appends (the module) stamps it.
 */
struct records_check {
	/* the answer, valid when records_check_run() has returned 1 */
	int16_t error;			/* KERR_*; KERR_NONE: append it */
	const char *text;		/* why, for error_message; NULL without an error */
	struct records_bad *bad;	/* records at fault, by index */
	int32_t nbad;
	struct records_batch batch;	/* as the client sent it, but for a corrected header */
	/* what is to be appended: the batch, or one of the same records in the topic's codec */
	const uint8_t *data;		/* until records_check_end() */
	uint32_t size;

	struct records_rules rules;
	uint8_t *p;
	size_t n;
	struct arena *arena;
	struct records_iter iter;
	struct decompressor *from;
	struct compressor *to;
	struct buf out;
	size_t at;			/* of the batch: passed to @to */
	int step;
	int64_t max_timestamp;
	bool bad_time;
	char line[200];
};

/*
 * Prepare to check the @n bytes of one partition's records at @p (may be NULL with @n 0).
 * They and the @arena, which texts of errors are put into, must stay until
 * records_check_end().
 */
void records_check_init(struct records_check *c, uint8_t *p, size_t n,
			const struct records_rules *rules, struct arena *arena);

/*
 * Does the batch name a codec, or the topic one? Then the check may take long: it belongs
 * into a worker, in steps. Looks at the header only; false if there is none.
 */
bool records_check_is_long(const struct records_check *c);

/*
 * Go on with the check for about @budget bytes of records: 1 when it is finished, 0 when
 * there is more to do. Any thread, but one at a time. UINT64_MAX finishes in one call; the
 * work is bounded by the batch's size or, compressed, by rules.expanded_max.
 *
 * Errors, in the order in which they are looked for:
 *   INVALID_RECORD                no batch, a part of one, more than one, or magic not 2
 *   UNSUPPORTED_COMPRESSION_TYPE  zstd before Produce 7, or no such codec
 *   INVALID_RECORD                base offset not 0
 *   MESSAGE_TOO_LARGE             larger than max_message_bytes
 *   CORRUPT_MESSAGE               wrong CRC, or a size smaller than a header
 *   INVALID_RECORD                count, offset range, control bit, undefined attributes,
 *                                 producer id without a sequence, or one that is not served;
 *                                 transactional without a producer id
 *   INVALID_TXN_STATE             transactional, and transactions are not served
 *   INVALID_RECORD                records malformed, fewer or more than the count, offset
 *                                 deltas not 0, 1, 2, ..., or damaged compressed data
 *   MESSAGE_TOO_LARGE             expands to more than expanded_max, or is larger than
 *                                 max_message_bytes in the topic's own codec
 *   INVALID_TIMESTAMP             a record's time is -1, below 0 or outside the window; the
 *                                 client's LogAppendTime bit on a topic with that type
 *   INVALID_RECORD                a null key for a compacted topic
 *   REQUEST_TIMED_OUT             too many batches with large windows at once; try again
 *   UNKNOWN_SERVER_ERROR          no memory
 */
int records_check_run(struct records_check *c, uint64_t budget);

/* Free what the check holds; needed after each records_check_init(). */
void records_check_end(struct records_check *c);

#endif
