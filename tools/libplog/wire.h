/* SPDX-License-Identifier: MIT */
/* Fields of a record batch: big endian, and variable-length integers. */
#ifndef PLOG_WIRE_H
#define PLOG_WIRE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Where the fields of the batch header stand. */
enum {
	WIRE_BASE_OFFSET = 0,
	WIRE_LENGTH = 8,	/* of what follows it */
	WIRE_LEADER_EPOCH = 12,
	WIRE_MAGIC = 16,
	WIRE_CRC = 17,		/* of all from ATTRIBUTES on */
	WIRE_ATTRIBUTES = 21,
	WIRE_LAST_DELTA = 23,
	WIRE_BASE_TIME = 27,
	WIRE_MAX_TIME = 35,
	WIRE_PRODUCER_ID = 43,
	WIRE_PRODUCER_EPOCH = 51,
	WIRE_SEQUENCE = 53,
	WIRE_COUNT = 57,
	WIRE_RECORDS = 61,
};

#define WIRE_ATTR_CODEC		0x07
#define WIRE_ATTR_APPEND_TIME	0x08
#define WIRE_ATTR_TRANSACTIONAL	0x10
#define WIRE_ATTR_CONTROL	0x20

#define WIRE_VARINT_MAX		5
#define WIRE_VARLONG_MAX	10

static inline uint16_t wire_get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return be16toh(v);
}

static inline uint32_t wire_get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static inline uint64_t wire_get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

static inline void wire_put16(uint8_t *p, uint16_t v)
{
	v = htobe16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void wire_put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void wire_put64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
}

static inline uint64_t wire_zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

/* Bytes of @v as a varint or varlong. */
static inline unsigned int wire_varint_size(int64_t v)
{
	uint64_t z = wire_zigzag(v);
	unsigned int n = 1;

	while (z >>= 7)
		n++;
	return n;
}

static inline uint8_t *wire_put_varint(uint8_t *p, int64_t v)
{
	uint64_t z = wire_zigzag(v);

	while (z >= 0x80) {
		*p++ = z | 0x80;
		z >>= 7;
	}
	*p++ = z;
	return p;
}

/*
 * A varlong of at most @most bytes (5 for an int) from @p, which has @n.
 * Return: bytes taken, 0 if @n ends before it does, -1 if it is too long.
 */
static inline int wire_get_varint(const uint8_t *p, size_t n, unsigned int most, int64_t *value)
{
	uint64_t z = 0;

	for (unsigned int i = 0; i < most; i++) {
		if (i == n)
			return 0;
		/* the tenth byte has room for one bit, the fifth of an int for four */
		if (i + 1 == most && (p[i] & 0x7f) > (most == WIRE_VARINT_MAX ? 0x0f : 0x01))
			return -1;
		z |= (uint64_t)(p[i] & 0x7f) << 7 * i;
		if (!(p[i] & 0x80)) {
			*value = (int64_t)(z >> 1) ^ -(int64_t)(z & 1);
			return i + 1;
		}
	}
	return -1;
}

#endif /* PLOG_WIRE_H */
