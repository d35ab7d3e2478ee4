/* SPDX-License-Identifier: MIT */
/*
 * Batches of producers and transactions, for tests of the engine.
 */
#ifndef TEST_TRANSACTION_H
#define TEST_TRANSACTION_H

#include "engine.h"

/* Make @buf's batch of @size bytes one of a producer's, in a transaction or not. */
void of_producer(uint8_t *buf, size_t size, int64_t producer, bool transactional);

/* A marker: PLOG_CONTROL_ABORT or _COMMIT; its size. */
size_t make_marker(uint8_t *buf, int64_t producer, int type, int32_t coordinator_epoch);

/* What an append says of open transactions: an offset, PLOG_UNSTABLE_*, or nothing. */
#define SAYS_NOTHING INT64_MIN

/* Append @size bytes of env.buf; the offset, or an error. */
int64_t append_says(size_t size, int64_t first_unstable);

/* The same of batches that have their offsets. */
int64_t append_replica(uint8_t *buf, size_t size, int64_t first_unstable);

/* A transactional or idempotent batch of @count records, a marker. */
int64_t put_transaction(int64_t producer, unsigned int count, int64_t first_unstable);
int64_t put_idempotent(int64_t producer, unsigned int count);
int64_t put_marker(int64_t producer, int type, int64_t first_unstable);

#endif
