/* SPDX-License-Identifier: MIT */
#ifndef MAKER_H
#define MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Makes record batches for tests, right ones and, by changing what is under the CRC, wrong
 * ones. Everything aborts when memory is out.
 */
struct maker {
	uint8_t *records;	/* not compressed */
	size_t size, cap;
	int64_t base_timestamp, max_timestamp;
	int32_t count;
};

void maker_begin(struct maker *m);

/* A record; @key or @value NULL is null. The first one's time is the base. */
void maker_record(struct maker *m, int64_t timestamp, const void *key, size_t key_size,
		  const void *value, size_t value_size);

/* The same with every number as given, and @headers empty headers. */
void maker_record_raw(struct maker *m, int64_t length_change, int64_t timestamp_delta,
		      int64_t offset_delta, const void *key, int64_t key_size, const void *value,
		      int64_t value_size, int64_t headers);

/* Bytes as they are among the records. */
void maker_bytes(struct maker *m, const void *p, size_t n);
void maker_number(struct maker *m, int64_t v);	/* zigzag */

/* The whole batch, compressed as @codec says; to be freed. Ends @m. */
uint8_t *maker_end(struct maker *m, unsigned int codec, size_t *size);

/* A batch around @n bytes that are compressed already. */
uint8_t *maker_wrap(const struct maker *m, unsigned int codec, const uint8_t *p, size_t n,
		    size_t *size);

/* A batch of @count records with times 1000, 1001, ... and values of @value_size bytes. */
uint8_t *maker_simple(unsigned int codec, int32_t count, size_t value_size, size_t *size);

/* Compress @n bytes; to be freed. */
uint8_t *maker_compress(unsigned int codec, const uint8_t *p, size_t n, size_t *size);

/* Bare snappy, without Java's framing. */
uint8_t *maker_snappy_block(const uint8_t *p, size_t n, size_t *size);

/* zstd of @level, by a stream that does not know the size before (so a window of its own). */
uint8_t *maker_zstd(const uint8_t *p, size_t n, int level, int window_log, size_t *size);

/* Overwrite a field of a batch; the CRC is set right again. */
void maker_set8(uint8_t *batch, size_t size, size_t at, uint8_t v);
void maker_set16(uint8_t *batch, size_t size, size_t at, uint16_t v);
void maker_set32(uint8_t *batch, size_t size, size_t at, uint32_t v);
void maker_set64(uint8_t *batch, size_t size, size_t at, uint64_t v);
void maker_crc(uint8_t *batch, size_t size);

/* Where fields of the header are. */
enum {
	AT_BASE_OFFSET = 0,
	AT_LENGTH = 8,
	AT_LEADER_EPOCH = 12,
	AT_MAGIC = 16,
	AT_CRC = 17,
	AT_ATTRIBUTES = 21,
	AT_LAST_OFFSET_DELTA = 23,
	AT_BASE_TIMESTAMP = 27,
	AT_MAX_TIMESTAMP = 35,
	AT_PRODUCER_ID = 43,
	AT_PRODUCER_EPOCH = 51,
	AT_BASE_SEQUENCE = 53,
	AT_COUNT = 57,
};

#endif
