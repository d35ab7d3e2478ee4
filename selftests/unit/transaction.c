// SPDX-License-Identifier: MIT
/* Batches of producers and transactions, for tests of the engine. */
#include "transaction.h"

void of_producer(uint8_t *buf, size_t size, int64_t producer, bool transactional)
{
	struct plog_batch b;

	assert_int_equal(plog_batch_decode(buf, &b), 0);
	b.producer_id = producer;
	b.producer_epoch = 3;
	b.base_sequence = 0;
	if (transactional)
		b.attributes |= PLOG_ATTR_TRANSACTIONAL;
	plog_batch_encode(&b, buf);
	fix_crc(buf, size);
}

size_t make_marker(uint8_t *buf, int64_t producer, int type, int32_t coordinator_epoch)
{
	static const uint8_t record[] = {
		2 * 16, 0, 0, 0, 2 * 4, 0, 0, 0, 0, 2 * 6, 0, 0, 0, 0, 0, 0, 0,
	};
	struct plog_batch b = {
		.size = PLOG_BATCH_HEADER + sizeof(record), .leader_epoch = -1, .magic = 2,
		.attributes = PLOG_ATTR_TRANSACTIONAL | PLOG_ATTR_CONTROL, .base_timestamp = 7,
		.max_timestamp = 7, .producer_id = producer, .producer_epoch = 3,
		.base_sequence = -1, .count = 1,
	};
	uint8_t *r = buf + PLOG_BATCH_HEADER;

	memcpy(r, record, sizeof(record));
	put_unaligned_be16(type, r + 7);
	put_unaligned_be32(coordinator_epoch, r + 12);
	plog_batch_encode(&b, buf);
	fix_crc(buf, b.size);
	return b.size;
}

static int64_t append_flags(uint8_t *buf, size_t size, int64_t first_unstable, uint32_t flags)
{
	struct plog_append_args args = { .flags = PLOG_APPEND_DAEMON | flags };
	struct kvec vec = { buf, size };
	struct iov_iter it;
	int err;

	args.leader_epoch = view().leader_epoch;
	if (first_unstable != SAYS_NOTHING) {
		args.flags |= PLOG_APPEND_UNSTABLE;
		args.first_unstable = first_unstable;
	}
	if (flags & PLOG_APPEND_REPLICA) {
		iov_iter_kvec(&it, ITER_SOURCE, &vec, 1, size);
		args.from = &it;
	} else {
		args.raw = buf;
		args.size = size;
	}
	err = plog_partition_append(env.p, &args);
	return err ? err : args.base_offset;
}

int64_t append_says(size_t size, int64_t first_unstable)
{
	return append_flags(env.buf, size, first_unstable, 0);
}

int64_t append_replica(uint8_t *buf, size_t size, int64_t first_unstable)
{
	return append_flags(buf, size, first_unstable, PLOG_APPEND_REPLICA);
}

int64_t put_transaction(int64_t producer, unsigned int count, int64_t first_unstable)
{
	size_t n = make_batch(env.buf, count, 20, producer, 1000);

	of_producer(env.buf, n, producer, true);
	return append_says(n, first_unstable);
}

int64_t put_idempotent(int64_t producer, unsigned int count)
{
	size_t n = make_batch(env.buf, count, 20, producer, 1000);

	of_producer(env.buf, n, producer, false);
	return append_says(n, SAYS_NOTHING);
}

int64_t put_marker(int64_t producer, int type, int64_t first_unstable)
{
	return append_says(make_marker(env.buf, producer, type, 9), first_unstable);
}
