// SPDX-License-Identifier: MIT
#include "siphash.h"

static uint64_t rotate(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static void rounds(uint64_t *v, int n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

void siphash_init(struct siphash *h, const uint64_t key[2])
{
	*h = (struct siphash){
		.v = {
			key[0] ^ 0x736f6d6570736575,
			key[1] ^ 0x646f72616e646f6d,
			key[0] ^ 0x6c7967656e657261,
			key[1] ^ 0x7465646279746573,
		},
	};
}

static void word(struct siphash *h, uint64_t m)
{
	h->v[3] ^= m;
	rounds(h->v, 2);
	h->v[0] ^= m;
}

void siphash_add(struct siphash *h, const void *p, size_t n)
{
	const uint8_t *b = p;

	while (n--) {
		h->tail |= (uint64_t)*b++ << 8 * (h->length % 8);
		if (++h->length % 8)
			continue;
		word(h, h->tail);
		h->tail = 0;
	}
}

uint64_t siphash_end(struct siphash *h)
{
	word(h, h->tail | (uint64_t)h->length << 56);
	h->v[2] ^= 0xff;
	rounds(h->v, 4);
	return h->v[0] ^ h->v[1] ^ h->v[2] ^ h->v[3];
}
