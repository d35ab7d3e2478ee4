// SPDX-License-Identifier: MIT
#include "crc32c.h"

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u	/* reflected */

/* table[k][b]: the CRC of byte b followed by k zero bytes */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_make(void)
{
	uint32_t i, k, crc;

	for (i = 0; i < 256; i++) {
		crc = i;
		for (k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[0][i] = crc;
	}
	for (i = 0; i < 256; i++)
		for (k = 1; k < 8; k++)
			table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 0xff];
}

uint32_t crc32c_portable(uint32_t crc, const void *from, size_t n)
{
	const uint8_t *p = from;

	pthread_once(&table_once, table_make);
	crc = ~crc;
	for (; n >= 8; n -= 8, p += 8) {
		uint64_t v;

		memcpy(&v, p, 8);
		v = le64toh(v) ^ crc;
		crc = table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^
		      table[5][v >> 16 & 0xff] ^ table[4][v >> 24 & 0xff] ^
		      table[3][v >> 32 & 0xff] ^ table[2][v >> 40 & 0xff] ^
		      table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
	}
	for (; n; n--)
		crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
	return ~crc;
}

#ifdef __x86_64__

__attribute__((target("sse4.2")))
static uint32_t crc32c_sse42(uint32_t crc, const void *from, size_t n)
{
	const uint8_t *p = from;
	uint64_t c = (uint32_t)~crc;

	for (; n >= 8; n -= 8, p += 8) {
		uint64_t v;

		memcpy(&v, p, 8);
		c = __builtin_ia32_crc32di(c, v);
	}
	for (; n; n--)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
	return (uint32_t)~c;
}

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
	if (__builtin_cpu_supports("sse4.2"))
		return crc32c_sse42(crc, p, n);
	return crc32c_portable(crc, p, n);
}

#else

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
	return crc32c_portable(crc, p, n);
}

#endif
