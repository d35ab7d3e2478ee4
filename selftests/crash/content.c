// SPDX-License-Identifier: MIT
#include "content.h"

#include <stdlib.h>
#include <string.h>

#include "../kernel/batch.h"

/* What each value begins with. */
struct label {
	uint32_t part;
	uint32_t gen;
	int64_t base;
};

uint64_t content_hash(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t x = a * 0x9e3779b97f4a7c15ULL ^ b * 0xc2b2ae3d27d4eb4fULL ^ c;
	int i;

	for (i = 0; i < 2; i++) {
		x ^= x >> 30;
		x *= 0xbf58476d1ce4e5b9ULL;
		x ^= x >> 27;
	}
	return x ^ x >> 31;
}

size_t content_make(uint8_t *to, uint32_t part, uint32_t gen, int64_t base, int *count)
{
	struct label label = { part, gen, base };
	uint64_t seed = content_hash(part, gen, (uint64_t)base), x = seed;
	uint8_t value[2048];
	struct batch b;
	size_t size;
	int i, n = 1 + (int)(seed % 5);

	if (!batch_init(&b, CONTENT_ROOM, 1700000000000 + base * 10 + (int64_t)(seed >> 8) % 300))
		abort();
	for (i = 0; i < n; i++) {
		/* mostly small, now and then one that fills a block or more */
		int len = (int)((x >> 20) % (x % 8 ? 200 : 1500)), j;
		struct record r = { .key_length = -1, .value = value };

		memcpy(value, &label, sizeof(label));
		for (j = 0; j < len; j += 8) {
			x = content_hash(x, seed, (uint64_t)j);
			memcpy(value + sizeof(label) + j, &x, 8);
		}
		r.value_length = (int)sizeof(label) + len;
		r.time_delta = (int64_t)(x % 40);
		if (!batch_add(&b, &r))
			abort();
	}
	batch_finish(&b);
	size = b.size;
	memcpy(to, b.data, size);
	batch_put(to, AT_BASE_OFFSET, 8, (uint64_t)base);
	batch_free(&b);
	*count = n;
	return size;
}

int64_t content_gap(uint32_t part, uint32_t gen, int64_t end)
{
	uint64_t h = content_hash(part + 1000, gen, (uint64_t)end);

	return h % 12 ? 0 : 1 + (int64_t)(h >> 32) % 40;
}

const char *content_check(const uint8_t *batch, size_t size, uint32_t part, uint32_t *gen)
{
	static uint8_t same[CONTENT_ROOM];
	int64_t base = (int64_t)batch_get(batch, AT_BASE_OFFSET, 8);
	const uint8_t *at = batch + BATCH_HEADER;
	struct label label;
	size_t want;
	int count, i;

	/* a record: length, attributes, time, offset 0, key length -1, value length */
	while (at < batch + size && *at & 0x80)
		at++;
	at += 2;
	while (at < batch + size && *at & 0x80)
		at++;
	at += 3;
	while (at < batch + size && *at & 0x80)
		at++;
	at++;
	if (at + sizeof(label) > batch + size)
		return "a batch that no writer made";
	memcpy(&label, at, sizeof(label));
	if (label.part != part)
		return "a batch of another partition";
	if (label.base != base)
		return "a batch at another offset than it was appended at";
	want = content_make(same, part, label.gen, base, &count);
	if (want != size)
		return "a batch of another size than was appended";
	for (i = AT_MAGIC; i < (int)size; i++)
		if (batch[i] != same[i])
			return "a batch with other bytes than were appended";
	*gen = label.gen;
	return NULL;
}
