// SPDX-License-Identifier: MIT
/* Building record batches. */
#include "plog.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "crc32c.h"
#include "wire.h"

struct plog_pack {
	uint8_t *bytes;
	size_t length;		/* with the header, which plog_pack_finish() writes */
	size_t room;
	size_t limit;
	uint32_t count;
	int64_t base_time;
	int64_t max_time;
};

int plog_pack_new(size_t limit, struct plog_pack **out)
{
	struct plog_pack *pack;

	*out = NULL;
	if (limit > PLOG_MESSAGE_BYTES_MAX)
		return -EINVAL;
	pack = calloc(1, sizeof(*pack));
	if (!pack)
		return -ENOMEM;
	pack->limit = limit ? limit : PLOG_MESSAGE_BYTES_DEFAULT;
	plog_pack_clear(pack);
	*out = pack;
	return 0;
}

void plog_pack_free(struct plog_pack *pack)
{
	if (!pack)
		return;
	free(pack->bytes);
	free(pack);
}

void plog_pack_clear(struct plog_pack *pack)
{
	pack->length = WIRE_RECORDS;
	pack->count = 0;
}

uint32_t plog_pack_count(const struct plog_pack *pack)
{
	return pack->count;
}

/* Adds @length and its varint to *@size; false if the sum passes what a batch can have. */
static bool add_bytes(uint64_t *size, int64_t length)
{
	*size += wire_varint_size(length) + (length > 0 ? length : 0);
	return *size <= PLOG_MESSAGE_BYTES_MAX;
}

/* What the record takes behind its own length. 0, -EINVAL, -EMSGSIZE. */
static int body_size(const struct plog_record *r, int64_t time_delta, uint32_t offset_delta,
		     uint64_t *size)
{
	if (r->key_length < -1 || r->value_length < -1 || r->header_count > INT_MAX ||
	    (r->key_length > 0 && !r->key) || (r->value_length > 0 && !r->value) ||
	    (r->header_count && !r->headers))
		return -EINVAL;
	*size = 1 + wire_varint_size(time_delta) + wire_varint_size(offset_delta) +
		wire_varint_size(r->header_count);
	if (!add_bytes(size, r->key_length) || !add_bytes(size, r->value_length))
		return -EMSGSIZE;
	for (uint32_t i = 0; i < r->header_count; i++) {
		const struct plog_header *h = &r->headers[i];

		if (!h->key || h->value_length < -1 || (h->value_length > 0 && !h->value))
			return -EINVAL;
		if (!add_bytes(size, h->key_length) || !add_bytes(size, h->value_length))
			return -EMSGSIZE;
	}
	return 0;
}

static uint8_t *put_bytes(uint8_t *p, const void *bytes, int64_t length)
{
	p = wire_put_varint(p, length);
	if (length > 0) {
		memcpy(p, bytes, length);
		p += length;
	}
	return p;
}

static int make_room(struct plog_pack *pack, size_t more)
{
	size_t room = pack->room ? pack->room : 4096;
	uint8_t *larger;

	while (room - pack->length < more || room < pack->length)
		room *= 2;
	if (room == pack->room)
		return 0;
	larger = realloc(pack->bytes, room);
	if (!larger)
		return -ENOMEM;
	pack->bytes = larger;
	pack->room = room;
	return 0;
}

int plog_pack_add(struct plog_pack *pack, const struct plog_record *r)
{
	int64_t time = r->timestamp, delta = 0;
	uint64_t size;
	uint8_t *p;
	int ret;

	if (time == PLOG_TIME_NOW) {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		time = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	}
	if (time < 0)
		return -EINVAL;
	if (pack->count)
		delta = time - pack->base_time;
	ret = body_size(r, delta, pack->count, &size);
	if (ret)
		return ret;
	if (pack->length + wire_varint_size(size) + size > pack->limit || pack->count == INT_MAX)
		return -EMSGSIZE;
	ret = make_room(pack, wire_varint_size(size) + size);
	if (ret)
		return ret;
	p = wire_put_varint(pack->bytes + pack->length, size);
	*p++ = 0;
	p = wire_put_varint(p, delta);
	p = wire_put_varint(p, pack->count);
	p = put_bytes(p, r->key, r->key_length);
	p = put_bytes(p, r->value, r->value_length);
	p = wire_put_varint(p, r->header_count);
	for (uint32_t i = 0; i < r->header_count; i++) {
		p = put_bytes(p, r->headers[i].key, r->headers[i].key_length);
		p = put_bytes(p, r->headers[i].value, r->headers[i].value_length);
	}
	pack->length = p - pack->bytes;
	if (!pack->count++) {
		pack->base_time = time;
		pack->max_time = time;
	} else if (time > pack->max_time) {
		pack->max_time = time;
	}
	return 0;
}

size_t plog_pack_finish(struct plog_pack *pack, const void **bytes)
{
	uint8_t *b = pack->bytes;

	*bytes = b;
	if (!pack->count)
		return 0;
	wire_put64(b + WIRE_BASE_OFFSET, 0);
	wire_put32(b + WIRE_LENGTH, pack->length - WIRE_LEADER_EPOCH);
	wire_put32(b + WIRE_LEADER_EPOCH, -1);
	b[WIRE_MAGIC] = 2;
	wire_put16(b + WIRE_ATTRIBUTES, 0);
	wire_put32(b + WIRE_LAST_DELTA, pack->count - 1);
	wire_put64(b + WIRE_BASE_TIME, pack->base_time);
	wire_put64(b + WIRE_MAX_TIME, pack->max_time);
	wire_put64(b + WIRE_PRODUCER_ID, -1);
	wire_put16(b + WIRE_PRODUCER_EPOCH, -1);
	wire_put32(b + WIRE_SEQUENCE, -1);
	wire_put32(b + WIRE_COUNT, pack->count);
	wire_put32(b + WIRE_CRC, crc32c(0, b + WIRE_ATTRIBUTES, pack->length - WIRE_ATTRIBUTES));
	return pack->length;
}

/* MurmurHash2 with Kafka's seed. */
static uint32_t murmur2(const uint8_t *p, size_t length)
{
	const uint32_t m = 0x5bd1e995;
	uint32_t h = 0x9747b28c ^ (uint32_t)length;

	for (; length >= 4; p += 4, length -= 4) {
		uint32_t k;

		memcpy(&k, p, sizeof(k));
		k = le32toh(k) * m;
		k ^= k >> 24;
		h = h * m ^ k * m;
	}
	if (length > 2)
		h ^= (uint32_t)p[2] << 16;
	if (length > 1)
		h ^= (uint32_t)p[1] << 8;
	if (length)
		h = (h ^ p[0]) * m;
	h ^= h >> 13;
	h *= m;
	return h ^ h >> 15;
}

uint32_t plog_partition_for_key(const void *key, size_t length, uint32_t partitions)
{
	return (murmur2(key, length) & 0x7fffffff) % partitions;
}
