/* SPDX-License-Identifier: MIT */
#ifndef PLOG_SNAPSHOT_H
#define PLOG_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Kafka's producer state files, OFFSET.snapshot in a partition's folder: what is known of each
 * producer id up to, but without, the record at that offset. Big endian:
 *
 *   version 2 (1) | CRC32C 4 of all behind it | count 4 | and so many entries of
 *   producer id 8 | epoch 2 | last sequence 4 | last offset 8 | offset delta 4 |
 *   timestamp 8 | coordinator epoch 4 | first offset of the open transaction 8
 */
#define SNAPSHOT_HEADER 10
#define SNAPSHOT_ENTRY 46

struct snapshot_entry {
	int64_t producer_id;
	int16_t epoch;
	int32_t last_sequence;		/* of the last batch; -1: a marker came last */
	int64_t last_offset;		/* -1 with it */
	int32_t offset_delta;		/* last offset less the batch's first */
	int64_t timestamp;		/* milliseconds; -1: none */
	int32_t coordinator_epoch;	/* of the last marker; -1: none */
	int64_t txn_first_offset;	/* -1: no transaction is open */
};

/*
 * Read the @n bytes of a file at @p. 0 and *@entries (to be freed) in the order of the file;
 * -EBADMSG (cut short, bytes behind the last entry, or a wrong CRC: as if the file were not
 * there), -EPROTONOSUPPORT (another version), -ENOMEM.
 */
int snapshot_read(const uint8_t *p, size_t n, struct snapshot_entry **entries, uint32_t *count);

/* The bytes of a file with these entries, *@n of them, to be freed; NULL without memory. */
uint8_t *snapshot_write(const struct snapshot_entry *entries, uint32_t count, size_t *n);

#endif
