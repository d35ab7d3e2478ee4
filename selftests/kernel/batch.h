/* SPDX-License-Identifier: MIT */
/*
 * Record batches for the tests: built here from Kafka's description of the
 * format, apart from the module's own code, so that the two check each other.
 */
#ifndef PLOG_SELFTESTS_BATCH_H
#define PLOG_SELFTESTS_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the fields of a header are. */
enum {
	AT_BASE_OFFSET = 0,
	AT_LENGTH = 8,
	AT_EPOCH = 12,
	AT_MAGIC = 16,
	AT_CRC = 17,
	AT_ATTRIBUTES = 21,
	AT_LAST_DELTA = 23,
	AT_BASE_TIME = 27,
	AT_MAX_TIME = 35,
	AT_PRODUCER_ID = 43,
	AT_PRODUCER_EPOCH = 51,
	AT_SEQUENCE = 53,
	AT_COUNT = 57,
	BATCH_HEADER = 61,
};

struct record {
	const void *key;
	int key_length;		/* -1: null */
	const void *value;
	int value_length;	/* -1: null */
	int64_t time_delta;
};

struct batch {
	uint8_t *data;
	size_t size;
	size_t room;
	int count;
	int64_t base_time;
	int64_t max_time;
};

/* An empty batch that takes records up to @room bytes; freed by batch_free(). */
bool batch_init(struct batch *b, size_t room, int64_t base_time);
void batch_free(struct batch *b);
/* Append a record; false if it does not fit. */
bool batch_add(struct batch *b, const struct record *record);
bool batch_add_value(struct batch *b, const void *value, int length);
/* Write the header and the CRC. */
void batch_finish(struct batch *b);
/* A finished batch with one record of @length bytes @fill. */
bool batch_fill(struct batch *b, size_t length, int fill);
/* A finished batch with one text as value. */
bool batch_text(struct batch *b, const char *text);

/* Set a header field and make the CRC right again. */
void batch_set(uint8_t *data, size_t size, size_t at, int bytes, uint64_t value);
uint64_t batch_get(const uint8_t *data, size_t at, int bytes);
void batch_put(uint8_t *data, size_t at, int bytes, uint64_t value);
void batch_seal(uint8_t *data, size_t size);

/**
 * batch_walk() - check that @size bytes are whole, intact batches
 * @next: in: offset that the first must have; out: offset behind the last
 * @batches: out: how many there were; may be NULL
 *
 * Return: NULL, or what is wrong.
 */
const char *batch_walk(const uint8_t *data, size_t size, int64_t *next, int *batches);

uint32_t crc32c_bytes(const void *data, size_t size);

#endif
