/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Records inside an uncompressed batch v2: building them for record mode, and
 * one bounded iterator that assumes the bytes were written by an enemy.
 *
 * A record: varint length of what follows | s8 attributes | varlong timestamp
 * delta | varint offset delta | varint key length, key | varint value length,
 * value | varint number of headers, each: varint key length, key, varint value
 * length, value.  Varints are zigzag; a length of -1 is null (not for a header's key).
 */
#ifndef _PLOG_RECORD_H
#define _PLOG_RECORD_H

#include <linux/types.h>

#include "batch.h"
#include "file.h"

/* ---- building ---- */

/**
 * plog_record_frame_size() - bytes that one record with no key and headers takes
 * @index: of the record in its batch
 * @value_len: bytes of the value, at most PLOG_MESSAGE_BYTES_MAX
 *
 * Its timestamp is that of the batch.
 */
u32 plog_record_frame_size(u32 index, u32 value_len);

struct plog_builder {
	u8 *buf;
	size_t size;		/* of @buf */
	size_t used;
	s64 timestamp;
	u32 count;
};

/**
 * plog_builder_init() - start a batch in @buf
 * @size: of @buf: PLOG_BATCH_HEADER and the sum of plog_record_frame_size()
 * @timestamp: of every record, milliseconds since 1970
 */
void plog_builder_init(struct plog_builder *b, u8 *buf, size_t size, s64 timestamp);

/**
 * plog_builder_value() - add a record
 *
 * Return: where its @value_len bytes of value go, or NULL if they do not fit.
 * The framing around them is complete; fill them in before plog_builder_finish().
 */
u8 *plog_builder_value(struct plog_builder *b, u32 value_len);

/**
 * plog_builder_finish() - write header and CRC
 *
 * Base offset is 0, leader epoch -1: the append sets both.
 * Return: size of the batch, 0 if it has no record.
 */
size_t plog_builder_finish(struct plog_builder *b);

/* ---- reading ---- */

#define PLOG_RECORD_WINDOW	4096

/**
 * struct plog_source - the bytes of one batch, in memory or in a file
 *
 * Positions are counted from the batch's first byte.
 */
struct plog_source {
	const u8 *mem;		/* NULL: in @file */
	u32 size;
	bool paged;		/* look at @page before @window */
	struct plog_file *file;
	u64 pos;		/* of the batch in @file */
	u8 *window;		/* PLOG_RECORD_WINDOW bytes of the caller's */
	u64 window_pos;		/* in @file */
	u32 window_len;
	struct plog_page page;
};

void plog_source_mem(struct plog_source *src, const u8 *batch, u32 size);

/**
 * plog_source_file() - @size bytes at @pos of @file
 * @window: PLOG_RECORD_WINDOW bytes to read into, the caller's as long as @src
 *	    is used
 */
void plog_source_file(struct plog_source *src, struct plog_file *file, u64 pos, u32 size,
		      u8 *window);

/**
 * plog_source_pages() - the same, without a copy where the page cache has the bytes
 * @window: for what crosses from one page to the next, or is not cached
 *
 * Who else writes to the file can change what was looked at: to be used on what
 * was just written there, under the append mutex.  End it by plog_source_done().
 */
void plog_source_pages(struct plog_source *src, struct plog_file *file, u64 pos, u32 size,
		       u8 *window);
void plog_source_done(struct plog_source *src);

/**
 * plog_source_at() - look at @len bytes at @pos of the batch
 * @len: at most PLOG_RECORD_WINDOW
 *
 * Return: a pointer that is valid until the next call, or -EBADMSG if the batch
 * ends before, or -EIO, -EINTR, -ENOMEM from the file as ERR_PTR.
 */
const u8 *plog_source_at(struct plog_source *src, u32 pos, u32 len);

/**
 * struct plog_record - the framing of one record
 * @pos: of its first byte in the batch
 * @size: bytes, its own length field included
 * @key_len, @value_len: -1 is null
 * @headers_pos: of the number of headers
 */
struct plog_record {
	u32 pos;
	u32 size;
	s64 timestamp_delta;
	s32 offset_delta;
	s32 key_len;
	u32 key_pos;
	s32 value_len;
	u32 value_pos;
	u32 headers_pos;
};

/**
 * plog_record_decode() - read the framing of the record at @pos
 *
 * Everything up to the value is checked to lie inside the record, and the
 * record inside the batch; headers are not looked at.
 *
 * Return: 0, -EBADMSG, or an error of the file.
 */
int plog_record_decode(struct plog_source *src, u32 pos, struct plog_record *rec);

/* Check the headers too: they end exactly where the record does. */
int plog_record_headers(struct plog_source *src, const struct plog_record *rec);

/**
 * struct plog_record_summary - what plog_record_check() learned
 * @max_timestamp: largest of the records
 * @keyless: a record has a null key
 */
struct plog_record_summary {
	s64 max_timestamp;
	bool keyless;
};

/**
 * plog_record_check() - is this batch one that an unprivileged writer may append?
 * @b: its header, decoded
 *
 * Uncompressed, without producer id, transaction and control bits; every record
 * well formed, offset deltas 0, 1, 2, ... to the last, no bytes behind it, the
 * header's max timestamp the largest of the records' (or its type is
 * LogAppendTime), no timestamp below -1.
 *
 * Return: 0; -EOPNOTSUPP (codec, producer id, transaction, control bit, attributes
 * that are not defined); -EINVAL (a count, offset or timestamp that is not what
 * the records say); -EBADMSG (framing); or an error of the file.
 */
int plog_record_check(struct plog_source *src, const struct plog_batch *b,
		      struct plog_record_summary *sum);

#endif /* _PLOG_RECORD_H */
