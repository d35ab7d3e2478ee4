/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Kafka's record batch v2: the 61-byte header, big endian.
 *
 *   0 base offset 8 | 8 length 4 (of what follows it) | 12 leader epoch 4 |
 *  16 magic 1 | 17 crc 4 (of all from 21 on) | 21 attributes 2 |
 *  23 last offset delta 4 | 27 base timestamp 8 | 35 max timestamp 8 |
 *  43 producer id 8 | 51 producer epoch 2 | 53 base sequence 4 | 57 count 4
 */
#ifndef _PLOG_BATCH_H
#define _PLOG_BATCH_H

#include <linux/types.h>

#define PLOG_BATCH_HEADER	61
#define PLOG_BATCH_OVERHEAD	12	/* base offset and length themselves */
#define PLOG_BATCH_CRC_START	21

#define PLOG_ATTR_CODEC		0x07
#define PLOG_ATTR_LOG_APPEND_TIME 0x08
#define PLOG_ATTR_TRANSACTIONAL	0x10
#define PLOG_ATTR_CONTROL	0x20
#define PLOG_ATTR_DELETE_HORIZON 0x40

/* The header, decoded to the machine's byte order. */
struct plog_batch {
	s64 base_offset;
	u32 size;		/* whole batch in bytes, 61 or more */
	s32 leader_epoch;
	s8 magic;
	u32 crc;
	u16 attributes;
	s32 last_offset_delta;
	s64 base_timestamp;
	s64 max_timestamp;
	s64 producer_id;
	s16 producer_epoch;
	s32 base_sequence;
	s32 count;
};

/**
 * plog_batch_decode() - read a header
 * @raw: PLOG_BATCH_HEADER bytes
 *
 * Return: 0; -EBADMSG if the magic is not 2; -EINVAL if the length field is
 * below what a header needs or so large that the size passes INT_MAX, the count is
 * negative, or 0 with bytes behind the header, or last offset delta is negative or
 * less than count - 1.
 */
int plog_batch_decode(const u8 *raw, struct plog_batch *b);

/* Write a header: the reverse of plog_batch_decode(). */
void plog_batch_encode(const struct plog_batch *b, u8 *raw);

/* Write the two fields that no CRC covers. */
void plog_batch_place(u8 *raw, s64 base_offset, s32 leader_epoch);

/* Write the CRC. */
void plog_batch_seal(u8 *raw, u32 crc);

/* CRC32C of a whole batch in memory, from byte 21 on, as the field has it. */
u32 plog_batch_crc(const u8 *raw, size_t size);

/**
 * plog_batch_check() - is this one whole batch, with a right CRC?
 * @raw: @size bytes in memory
 * @b: the decoded header
 *
 * Return: 0; -EINVAL or -EBADMSG as plog_batch_decode(); -EINVAL if @size is not
 * that of the batch; -EBADMSG if the CRC is wrong.
 */
int plog_batch_check(const u8 *raw, size_t size, struct plog_batch *b);

/**
 * plog_batch_crc_shift() - what @len zero bytes do to a CRC32C register
 *
 * CRC is linear: a header that is changed changes the CRC of the batch by
 * shift(crc(old header) ^ crc(new header), bytes behind it), without a second
 * pass over the payload.  Takes about log2(@len) * 64 steps.
 */
u32 plog_batch_crc_shift(u32 crc, u64 len);

static inline s64 plog_batch_last_offset(const struct plog_batch *b)
{
	return b->base_offset + b->last_offset_delta;
}

#endif /* _PLOG_BATCH_H */
