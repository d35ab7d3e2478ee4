// SPDX-License-Identifier: MIT
/* Kafka's producer state files. */
#include "snapshot.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crc32c.h"

#define VERSION 1
#define CRC_FROM 6

static uint64_t take(const uint8_t **p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *(*p)++;
	return v;
}

static void give(uint8_t **p, uint64_t v, unsigned int bytes)
{
	while (bytes--)
		*(*p)++ = v >> 8 * bytes;
}

int snapshot_read(const uint8_t *p, size_t n, struct snapshot_entry **entries, uint32_t *count)
{
	const uint8_t *all = p;
	struct snapshot_entry *e;
	uint32_t crc, many;

	*entries = NULL;
	*count = 0;
	if (n < SNAPSHOT_HEADER)
		return -EBADMSG;
	if (take(&p, 2) != VERSION)
		return -EPROTONOSUPPORT;
	crc = take(&p, 4);
	many = take(&p, 4);
	/* the count is checked against the bytes that are there before anything is made of it */
	if ((n - SNAPSHOT_HEADER) % SNAPSHOT_ENTRY || (n - SNAPSHOT_HEADER) / SNAPSHOT_ENTRY != many ||
	    crc32c(0, all + CRC_FROM, n - CRC_FROM) != crc)
		return -EBADMSG;
	e = calloc(many ? many : 1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	for (uint32_t i = 0; i < many; i++) {
		e[i].producer_id = take(&p, 8);
		e[i].epoch = take(&p, 2);
		e[i].last_sequence = take(&p, 4);
		e[i].last_offset = take(&p, 8);
		e[i].offset_delta = take(&p, 4);
		e[i].timestamp = take(&p, 8);
		e[i].coordinator_epoch = take(&p, 4);
		e[i].txn_first_offset = take(&p, 8);
	}
	*entries = e;
	*count = many;
	return 0;
}

uint8_t *snapshot_write(const struct snapshot_entry *entries, uint32_t count, size_t *n)
{
	size_t size = SNAPSHOT_HEADER + (size_t)count * SNAPSHOT_ENTRY;
	uint8_t *all = malloc(size), *p = all;

	if (!all)
		return NULL;
	give(&p, VERSION, 2);
	give(&p, 0, 4);
	give(&p, count, 4);
	for (uint32_t i = 0; i < count; i++) {
		const struct snapshot_entry *e = &entries[i];

		give(&p, e->producer_id, 8);
		give(&p, e->epoch, 2);
		give(&p, e->last_sequence, 4);
		give(&p, e->last_offset, 8);
		give(&p, e->offset_delta, 4);
		give(&p, e->timestamp, 8);
		give(&p, e->coordinator_epoch, 4);
		give(&p, e->txn_first_offset, 8);
	}
	p = all + 2;
	give(&p, crc32c(0, all + CRC_FROM, size - CRC_FROM), 4);
	*n = size;
	return all;
}
