// SPDX-License-Identifier: MIT
#include "batch.h"

#include <stdlib.h>
#include <string.h>

static uint32_t table[8][256];

static void crc_init(void)
{
	int i, j;

	for (i = 0; i < 256; i++) {
		uint32_t c = (uint32_t)i;

		for (j = 0; j < 8; j++)
			c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
		table[0][i] = c;
	}
	for (i = 0; i < 256; i++)
		for (j = 1; j < 8; j++)
			table[j][i] = table[j - 1][i] >> 8 ^ table[0][table[j - 1][i] & 0xff];
}

uint32_t crc32c_bytes(const void *data, size_t size)
{
	const uint8_t *p = data;
	uint32_t c = ~0u;

	if (!table[0][1])
		crc_init();
	for (; size >= 8; size -= 8, p += 8) {
		c ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
		     (uint32_t)p[3] << 24;
		c = table[7][c & 0xff] ^ table[6][c >> 8 & 0xff] ^ table[5][c >> 16 & 0xff] ^
		    table[4][c >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^
		    table[0][p[7]];
	}
	while (size--)
		c = c >> 8 ^ table[0][(c ^ *p++) & 0xff];
	return ~c;
}

void batch_put(uint8_t *data, size_t at, int bytes, uint64_t value)
{
	while (bytes--) {
		data[at + bytes] = (uint8_t)value;
		value >>= 8;
	}
}

uint64_t batch_get(const uint8_t *data, size_t at, int bytes)
{
	uint64_t value = 0;
	int i;

	for (i = 0; i < bytes; i++)
		value = value << 8 | data[at + i];
	return value;
}

static size_t varint(uint8_t *to, int64_t value)
{
	uint64_t v = (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
	size_t n = 0;

	while (v >= 0x80) {
		to[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	to[n++] = (uint8_t)v;
	return n;
}

bool batch_init(struct batch *b, size_t room, int64_t base_time)
{
	memset(b, 0, sizeof(*b));
	b->data = calloc(1, room);
	b->room = room;
	b->size = BATCH_HEADER;
	b->base_time = base_time;
	b->max_time = -1;
	return b->data && room >= BATCH_HEADER;
}

void batch_free(struct batch *b)
{
	free(b->data);
	b->data = NULL;
}

bool batch_add(struct batch *b, const struct record *record)
{
	uint8_t head[64], middle[10], length[10];
	size_t h = 0, m, l, body;
	size_t key = record->key_length > 0 ? (size_t)record->key_length : 0;
	size_t value = record->value_length > 0 ? (size_t)record->value_length : 0;
	uint8_t *to;

	head[h++] = 0;
	h += varint(head + h, record->time_delta);
	h += varint(head + h, b->count);
	h += varint(head + h, record->key_length);
	m = varint(middle, record->value_length);
	body = h + key + m + value + 1;
	l = varint(length, (int64_t)body);
	if (b->size + l + body > b->room)
		return false;

	to = b->data + b->size;
	memcpy(to, length, l);
	to += l;
	memcpy(to, head, h);
	to += h;
	if (key)
		memcpy(to, record->key, key);
	to += key;
	memcpy(to, middle, m);
	to += m;
	if (value)
		memcpy(to, record->value, value);
	to += value;
	*to = 0;
	b->size += l + body;
	b->count++;
	if (b->base_time + record->time_delta > b->max_time)
		b->max_time = b->base_time + record->time_delta;
	return true;
}

bool batch_add_value(struct batch *b, const void *value, int length)
{
	struct record record = { .key_length = -1, .value = value, .value_length = length };

	return batch_add(b, &record);
}

void batch_seal(uint8_t *data, size_t size)
{
	batch_put(data, AT_CRC, 4, crc32c_bytes(data + AT_ATTRIBUTES, size - AT_ATTRIBUTES));
}

void batch_set(uint8_t *data, size_t size, size_t at, int bytes, uint64_t value)
{
	batch_put(data, at, bytes, value);
	batch_seal(data, size);
}

void batch_finish(struct batch *b)
{
	batch_put(b->data, AT_BASE_OFFSET, 8, 0);
	batch_put(b->data, AT_LENGTH, 4, b->size - 12);
	batch_put(b->data, AT_EPOCH, 4, (uint32_t)-1);
	batch_put(b->data, AT_MAGIC, 1, 2);
	batch_put(b->data, AT_ATTRIBUTES, 2, 0);
	batch_put(b->data, AT_LAST_DELTA, 4, (uint32_t)(b->count - 1));
	batch_put(b->data, AT_BASE_TIME, 8, (uint64_t)b->base_time);
	batch_put(b->data, AT_MAX_TIME, 8, (uint64_t)b->max_time);
	batch_put(b->data, AT_PRODUCER_ID, 8, (uint64_t)-1);
	batch_put(b->data, AT_PRODUCER_EPOCH, 2, (uint16_t)-1);
	batch_put(b->data, AT_SEQUENCE, 4, (uint32_t)-1);
	batch_put(b->data, AT_COUNT, 4, (uint32_t)b->count);
	batch_seal(b->data, b->size);
}

bool batch_fill(struct batch *b, size_t length, int fill)
{
	uint8_t *value = malloc(length ? length : 1);
	bool ok;

	if (!value)
		return false;
	memset(value, fill, length);
	ok = batch_init(b, length + 128, 1000) && batch_add_value(b, value, (int)length);
	free(value);
	if (ok)
		batch_finish(b);
	return ok;
}

bool batch_text(struct batch *b, const char *text)
{
	if (!batch_init(b, strlen(text) + 128, 1000) ||
	    !batch_add_value(b, text, (int)strlen(text)))
		return false;
	batch_finish(b);
	return true;
}

const char *batch_walk(const uint8_t *data, size_t size, int64_t *next, int *batches)
{
	int n = 0;

	for (; size; n++) {
		size_t len;

		if (size < BATCH_HEADER)
			return "a torn header";
		len = batch_get(data, AT_LENGTH, 4) + 12;
		if (len < BATCH_HEADER || len > size)
			return "a length that leaves the bytes";
		if (data[AT_MAGIC] != 2)
			return "a magic that is not 2";
		if (batch_get(data, AT_CRC, 4) !=
		    crc32c_bytes(data + AT_ATTRIBUTES, len - AT_ATTRIBUTES))
			return "a wrong CRC";
		if ((int64_t)batch_get(data, AT_BASE_OFFSET, 8) != *next)
			return "a base offset out of order";
		*next += (int32_t)batch_get(data, AT_LAST_DELTA, 4) + 1;
		data += len;
		size -= len;
	}
	if (batches)
		*batches = n;
	return NULL;
}
