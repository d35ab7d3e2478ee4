// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The header of a record batch, and its CRC.
 */
#include <linux/errno.h>
#include <linux/limits.h>

#include "batch.h"
#include "compat/crc32c.h"
#include "compat/unaligned.h"

#define POLY	0x82f63b78u	/* CRC32C, reflected */

int plog_batch_decode(const u8 *raw, struct plog_batch *b)
{
	u32 length = get_unaligned_be32(raw + 8);

	b->base_offset = get_unaligned_be64(raw);
	b->leader_epoch = get_unaligned_be32(raw + 12);
	b->magic = raw[16];
	b->crc = get_unaligned_be32(raw + 17);
	b->attributes = get_unaligned_be16(raw + 21);
	b->last_offset_delta = get_unaligned_be32(raw + 23);
	b->base_timestamp = get_unaligned_be64(raw + 27);
	b->max_timestamp = get_unaligned_be64(raw + 35);
	b->producer_id = get_unaligned_be64(raw + 43);
	b->producer_epoch = get_unaligned_be16(raw + 51);
	b->base_sequence = get_unaligned_be32(raw + 53);
	b->count = get_unaligned_be32(raw + 57);
	if (b->magic != 2)
		return -EBADMSG;
	if (length < PLOG_BATCH_HEADER - PLOG_BATCH_OVERHEAD ||
	    length > INT_MAX - PLOG_BATCH_OVERHEAD)
		return -EINVAL;
	b->size = length + PLOG_BATCH_OVERHEAD;
	/*
	 * A compacted batch holds fewer records than its offsets span, or none:
	 * then it is but a header, kept for the producer's last sequence number.
	 */
	if (b->count < 0 || b->last_offset_delta < 0 || b->last_offset_delta < b->count - 1 ||
	    (!b->count && b->size != PLOG_BATCH_HEADER))
		return -EINVAL;
	return 0;
}

void plog_batch_encode(const struct plog_batch *b, u8 *raw)
{
	put_unaligned_be64(b->base_offset, raw);
	put_unaligned_be32(b->size - PLOG_BATCH_OVERHEAD, raw + 8);
	put_unaligned_be32(b->leader_epoch, raw + 12);
	raw[16] = b->magic;
	put_unaligned_be32(b->crc, raw + 17);
	put_unaligned_be16(b->attributes, raw + 21);
	put_unaligned_be32(b->last_offset_delta, raw + 23);
	put_unaligned_be64(b->base_timestamp, raw + 27);
	put_unaligned_be64(b->max_timestamp, raw + 35);
	put_unaligned_be64(b->producer_id, raw + 43);
	put_unaligned_be16(b->producer_epoch, raw + 51);
	put_unaligned_be32(b->base_sequence, raw + 53);
	put_unaligned_be32(b->count, raw + 57);
}

void plog_batch_place(u8 *raw, s64 base_offset, s32 leader_epoch)
{
	put_unaligned_be64(base_offset, raw);
	put_unaligned_be32(leader_epoch, raw + 12);
}

void plog_batch_seal(u8 *raw, u32 crc)
{
	put_unaligned_be32(crc, raw + 17);
}

u32 plog_batch_crc(const u8 *raw, size_t size)
{
	return ~crc32c(~0u, raw + PLOG_BATCH_CRC_START, size - PLOG_BATCH_CRC_START);
}

int plog_batch_check(const u8 *raw, size_t size, struct plog_batch *b)
{
	int err;

	if (size < PLOG_BATCH_HEADER)
		return -EINVAL;
	err = plog_batch_decode(raw, b);
	if (err)
		return err;
	if (b->size != size)
		return -EINVAL;
	return plog_batch_crc(raw, size) == b->crc ? 0 : -EBADMSG;
}

/* The product of two polynomials modulo CRC32C's; bit 31 is x^0. */
static u32 multiply(u32 a, u32 b)
{
	u32 product = 0;

	while (a) {
		if (a & (1u << 31))
			product ^= b;
		a <<= 1;
		b = b >> 1 ^ (b & 1 ? POLY : 0);
	}
	return product;
}

u32 plog_batch_crc_shift(u32 crc, u64 len)
{
	u32 power = 1u << (31 - 8);	/* x^8: one byte of zeros */

	for (; len; len >>= 1) {
		if (len & 1)
			crc = multiply(crc, power);
		power = multiply(power, power);
	}
	return crc;
}
