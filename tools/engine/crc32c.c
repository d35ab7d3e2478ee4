// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * CRC32C by the SSE 4.2 instruction, three streams at a time as the kernel's
 * own does it: the instruction takes one operand a cycle and answers after
 * three.  Elsewhere by table.
 */
#include <pthread.h>
#include <string.h>

#include <linux/crc32c.h>

#define POLY	0x82f63b78u	/* reflected */
#define BLOCK	1024		/* bytes of one of the three streams */

static u32 table[8][256];
static u32 shift1[4][256];	/* register after BLOCK zero bytes, by byte */
static u32 shift2[4][256];	/* after 2 * BLOCK */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_sse42;

static u32 by_table(u32 crc, const u8 *p, size_t len)
{
	for (; len >= 8; p += 8, len -= 8) {
		u32 lo = crc ^ (p[0] | p[1] << 8 | p[2] << 16 | (u32)p[3] << 24);

		crc = table[7][lo & 0xff] ^ table[6][lo >> 8 & 0xff] ^
		      table[5][lo >> 16 & 0xff] ^ table[4][lo >> 24] ^
		      table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
	}
	while (len--)
		crc = table[0][(crc ^ *p++) & 0xff] ^ crc >> 8;
	return crc;
}

static void fill(void)
{
	static const u8 zeros[2 * BLOCK];

	for (u32 i = 0; i < 256; i++) {
		u32 c = i;

		for (int k = 0; k < 8; k++)
			c = c >> 1 ^ (c & 1 ? POLY : 0);
		table[0][i] = c;
	}
	for (u32 i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			table[k][i] = table[0][table[k - 1][i] & 0xff] ^ table[k - 1][i] >> 8;
	for (u32 i = 0; i < 256; i++) {
		for (int k = 0; k < 4; k++) {
			shift1[k][i] = by_table(i << 8 * k, zeros, BLOCK);
			shift2[k][i] = by_table(i << 8 * k, zeros, 2 * BLOCK);
		}
	}
#ifdef __x86_64__
	have_sse42 = __builtin_cpu_supports("sse4.2");
#endif
}

#ifdef __x86_64__
static u32 shift(u32 t[4][256], u32 crc)
{
	return t[0][crc & 0xff] ^ t[1][crc >> 8 & 0xff] ^ t[2][crc >> 16 & 0xff] ^ t[3][crc >> 24];
}

__attribute__((target("sse4.2"))) static u32 by_sse42(u32 seed, const u8 *p, size_t len)
{
	u64 crc = seed, v;

	for (; len >= 3 * BLOCK; p += 3 * BLOCK, len -= 3 * BLOCK) {
		u64 b = 0, c = 0, w, x;

		for (size_t i = 0; i < BLOCK; i += 8) {
			memcpy(&v, p + i, 8);
			memcpy(&w, p + BLOCK + i, 8);
			memcpy(&x, p + 2 * BLOCK + i, 8);
			crc = __builtin_ia32_crc32di(crc, v);
			b = __builtin_ia32_crc32di(b, w);
			c = __builtin_ia32_crc32di(c, x);
		}
		crc = shift(shift2, crc) ^ shift(shift1, b) ^ (u32)c;
	}
	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&v, p, 8);
		crc = __builtin_ia32_crc32di(crc, v);
	}
	while (len--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}
#endif

u32 crc32c(u32 crc, const void *buf, size_t len)
{
	pthread_once(&once, fill);
#ifdef __x86_64__
	if (have_sse42)
		return by_sse42(crc, buf, len);
#endif
	return by_table(crc, buf, len);
}
