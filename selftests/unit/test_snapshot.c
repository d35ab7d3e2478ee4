// SPDX-License-Identifier: MIT
/*
 * Kafka's producer state files. The golden ones were written by Kafka 4.3.1; with the name of
 * a file one is written there, for Kafka's own tool to read (selftests/kafka).
 */
#include "cm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/snapshot.h"

/* A transaction is open since offset 0. */
static const uint8_t golden_open[] = {
	0x00, 0x01, 0xc4, 0xd9, 0x5b, 0x7a, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x19, 0x00, 0x00, 0x00, 0x00, 0x00, 0x13,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x13, 0x00, 0x00, 0x00, 0x04,
	0x00, 0x00, 0x01, 0x74, 0x87, 0x6e, 0x81, 0xa2, 0xff, 0xff, 0xff, 0xff,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00
};

/* A marker came last: no batch is known. */
static const uint8_t golden_marker[] = {
	0x00, 0x01, 0x54, 0xf8, 0x29, 0xbe, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x19, 0x00, 0x06, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x01, 0xa2, 0x29, 0x6b, 0x19, 0xbe, 0x00, 0x00, 0x00, 0x00,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff
};

static const uint8_t golden_empty[] = {
	0x00, 0x01, 0x48, 0x67, 0x4b, 0xc7, 0x00, 0x00, 0x00, 0x00
};

static const struct snapshot_entry open_entry = {
	.producer_id = 25, .epoch = 0, .last_sequence = 19, .last_offset = 19, .offset_delta = 4,
	.timestamp = 1600000000418, .coordinator_epoch = -1, .txn_first_offset = 0,
};

static const struct snapshot_entry marker_entry = {
	.producer_id = 25, .epoch = 6, .last_sequence = -1, .last_offset = -1, .offset_delta = 0,
	.timestamp = 1795991214526, .coordinator_epoch = 0, .txn_first_offset = -1,
};

static void equal(const struct snapshot_entry *a, const struct snapshot_entry *b)
{
	assert_int_equal(a->producer_id, b->producer_id);
	assert_int_equal(a->epoch, b->epoch);
	assert_int_equal(a->last_sequence, b->last_sequence);
	assert_int_equal(a->last_offset, b->last_offset);
	assert_int_equal(a->offset_delta, b->offset_delta);
	assert_int_equal(a->timestamp, b->timestamp);
	assert_int_equal(a->coordinator_epoch, b->coordinator_epoch);
	assert_int_equal(a->txn_first_offset, b->txn_first_offset);
}

static void golden(const uint8_t *bytes, size_t size, const struct snapshot_entry *want,
		   uint32_t many)
{
	struct snapshot_entry *e;
	uint32_t count;
	uint8_t *again;
	size_t n;

	assert_int_equal(snapshot_read(bytes, size, &e, &count), 0);
	assert_int_equal(count, many);
	for (uint32_t i = 0; i < many; i++)
		equal(&e[i], &want[i]);
	again = snapshot_write(e, count, &n);
	assert_int_equal(n, size);
	assert_memory_equal(again, bytes, size);
	free(again);
	free(e);
}

static void test_golden(void **state)
{
	(void)state;
	golden(golden_open, sizeof(golden_open), &open_entry, 1);
	golden(golden_marker, sizeof(golden_marker), &marker_entry, 1);
	golden(golden_empty, sizeof(golden_empty), NULL, 0);
}

static void refused(const uint8_t *bytes, size_t n, int error)
{
	/* a copy of just that size, so that a step too far is seen */
	uint8_t *copy = malloc(n ? n : 1);
	struct snapshot_entry *e;
	uint32_t count;

	memcpy(copy, bytes, n);
	assert_int_equal(snapshot_read(copy, n, &e, &count), error);
	assert_null(e);
	assert_int_equal(count, 0);
	free(copy);
}

static void test_damaged(void **state)
{
	uint8_t bytes[sizeof(golden_open) + 1];

	(void)state;
	for (size_t n = 0; n < sizeof(golden_open); n++)
		refused(golden_open, n, -EBADMSG);
	memcpy(bytes, golden_open, sizeof(golden_open));
	bytes[sizeof(golden_open)] = 0;
	refused(bytes, sizeof(bytes), -EBADMSG);
	for (size_t bit = 0; bit < 8 * sizeof(golden_open); bit++) {
		memcpy(bytes, golden_open, sizeof(golden_open));
		bytes[bit / 8] ^= 1 << bit % 8;
		refused(bytes, sizeof(golden_open), bit < 16 ? -EPROTONOSUPPORT : -EBADMSG);
	}
	/* a count of which there is nothing, and one whose bytes pass 2^32 */
	memcpy(bytes, golden_empty, sizeof(golden_empty));
	memset(bytes + 6, 0xff, 4);
	refused(bytes, sizeof(golden_empty), -EBADMSG);
}

/* The ends of each field. */
static struct snapshot_entry extreme(unsigned int i)
{
	return i & 1 ? (struct snapshot_entry){
		INT64_MAX, INT16_MAX, INT32_MAX, INT64_MAX, INT32_MAX, INT64_MAX, INT32_MAX,
		INT64_MAX,
	} : (struct snapshot_entry){ i, i & 0x7fff, i, i + 5, 3, INT64_C(1600000000000) + i, -1, -1 };
}

static void test_many(void **state)
{
	enum { MANY = 10000 };
	struct snapshot_entry *in = calloc(MANY, sizeof(*in)), *out;
	uint32_t count;
	uint8_t *bytes;
	size_t n;

	(void)state;
	for (unsigned int i = 0; i < MANY; i++)
		in[i] = extreme(i);
	bytes = snapshot_write(in, MANY, &n);
	assert_int_equal(n, SNAPSHOT_HEADER + MANY * SNAPSHOT_ENTRY);
	assert_int_equal(snapshot_read(bytes, n, &out, &count), 0);
	assert_int_equal(count, MANY);
	for (unsigned int i = 0; i < MANY; i++)
		equal(&in[i], &out[i]);
	free(bytes);
	free(in);
	free(out);
}

static int write_one(const char *name)
{
	const struct snapshot_entry e[] = { open_entry, marker_entry, extreme(6) };
	uint8_t *bytes;
	int ret = 1;
	size_t n;
	FILE *f;

	bytes = snapshot_write(e, 3, &n);
	f = fopen(name, "wb");
	if (f && bytes && fwrite(bytes, 1, n, f) == n)
		ret = 0;
	if (f && fclose(f))
		ret = 1;
	free(bytes);
	return ret;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden), cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_many),
	};

	if (argc > 1)
		return write_one(argv[1]);
	return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
