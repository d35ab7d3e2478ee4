// SPDX-License-Identifier: MIT
/*
 * CRC-32C by the instruction that the kernel uses too, and as well as it can
 * be used: the instruction has a latency of three cycles and a throughput of
 * one, so three streams run side by side and are joined at the end.  Anything
 * slower would make the plain file look worse than it is.
 *
 * Joining: with the state of a stream seen as a polynomial over GF(2), feeding
 * L zero bytes is a linear map.  For a fixed L it is tabulated by byte of the
 * state, four tables of 256, and crc(A B) = map_L(crc(A)) ^ crc(B) for B of
 * length L started at zero.
 */
#include <cpuid.h>
#include <nmmintrin.h>
#include <string.h>

#include "crc32c.h"

/* Bytes of each stream: the long for the bulk, the short for what is left. */
#define LONG_STREAM	4096
#define SHORT_STREAM	256

struct shift {
	uint32_t table[4][256];
};

static struct shift shift_long, shift_short;

static uint32_t feed_zeros(uint32_t state, size_t len)
{
	while (len--)
		state = _mm_crc32_u8(state, 0);
	return state;
}

static void shift_init(struct shift *s, size_t len)
{
	/* Linear: the image of a byte is the sum of the images of its bits. */
	for (int byte = 0; byte < 4; byte++) {
		for (int bit = 0; bit < 8; bit++)
			s->table[byte][1 << bit] = feed_zeros(1u << (8 * byte + bit), len);
		for (int v = 1; v < 256; v++)
			s->table[byte][v] = s->table[byte][v & (v - 1)] ^ s->table[byte][v & -v];
	}
}

static inline uint32_t shift(const struct shift *s, uint32_t state)
{
	return s->table[0][state & 0xff] ^ s->table[1][state >> 8 & 0xff] ^
	       s->table[2][state >> 16 & 0xff] ^ s->table[3][state >> 24];
}

int crc32c_init(void)
{
	unsigned int a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_2))
		return -1;
	shift_init(&shift_long, LONG_STREAM);
	shift_init(&shift_short, SHORT_STREAM);
	return 0;
}

static inline uint64_t load(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Three streams of @len bytes each from @p on. */
static inline uint32_t three(uint32_t state, const uint8_t *p, size_t len, const struct shift *s)
{
	uint64_t a = state, b = 0, c = 0;

	for (size_t i = 0; i < len; i += 32) {
		for (size_t k = i; k < i + 32; k += 8) {
			a = _mm_crc32_u64(a, load(p + k));
			b = _mm_crc32_u64(b, load(p + len + k));
			c = _mm_crc32_u64(c, load(p + 2 * len + k));
		}
	}
	return shift(s, shift(s, a) ^ b) ^ c;
}

uint32_t crc32c(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t state = ~0u;
	uint64_t wide;

	for (; len >= 3 * LONG_STREAM; p += 3 * LONG_STREAM, len -= 3 * LONG_STREAM)
		state = three(state, p, LONG_STREAM, &shift_long);
	for (; len >= 3 * SHORT_STREAM; p += 3 * SHORT_STREAM, len -= 3 * SHORT_STREAM)
		state = three(state, p, SHORT_STREAM, &shift_short);
	for (wide = state; len >= 8; p += 8, len -= 8)
		wide = _mm_crc32_u64(wide, load(p));
	for (state = wide; len; p++, len--)
		state = _mm_crc32_u8(state, *p);
	return ~state;
}
