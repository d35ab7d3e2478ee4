// SPDX-License-Identifier: MIT
/* The C library without a device: building batches and opening them. */
#include "cm.h"

#include "plog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "maker.h"
#include "wire.h"

static struct plog_walk *walk_over(const void *bytes, size_t length)
{
	struct plog_walk *walk;

	assert_int_equal(plog_walk_new(bytes, length, &walk), 0);
	return walk;
}

static void same_bytes(const void *a, int32_t n, const char *text, int32_t wanted)
{
	assert_int_equal(n, wanted);
	if (n < 0)
		assert_null(a);
	else
		assert_memory_equal(a, text, n);
}

/* ---- variable-length integers ---- */

static void varints(void **state)
{
	static const struct {
		int64_t value;
		const char *bytes;
		unsigned int size;
	} known[] = {
		{ 0, "\x00", 1 }, { -1, "\x01", 1 }, { 1, "\x02", 1 }, { 63, "\x7e", 1 },
		{ -64, "\x7f", 1 }, { 64, "\x80\x01", 2 }, { -65, "\x81\x01", 2 },
		{ 8191, "\xfe\x7f", 2 }, { 8192, "\x80\x80\x01", 3 },
		{ INT32_MAX, "\xfe\xff\xff\xff\x0f", 5 }, { INT32_MIN, "\xff\xff\xff\xff\x0f", 5 },
		{ INT64_MAX, "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10 },
		{ INT64_MIN, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10 },
	};
	int64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const uint8_t *bytes = (const uint8_t *)known[i].bytes;
		unsigned int most = known[i].size > 5 ? WIRE_VARLONG_MAX : WIRE_VARINT_MAX;
		uint8_t out[WIRE_VARLONG_MAX];

		assert_int_equal(wire_varint_size(known[i].value), known[i].size);
		assert_int_equal(wire_put_varint(out, known[i].value) - out, known[i].size);
		assert_memory_equal(out, bytes, known[i].size);
		for (unsigned int n = 0; n < known[i].size; n++)
			assert_int_equal(wire_get_varint(bytes, n, most, &value), 0);
		assert_int_equal(wire_get_varint(bytes, known[i].size, most, &value),
				 known[i].size);
		assert_true(value == known[i].value);
	}
	/* more bits than fit */
	assert_int_equal(wire_get_varint((uint8_t *)"\xff\xff\xff\xff\x10", 5, 5, &value), -1);
	assert_int_equal(wire_get_varint((uint8_t *)"\xff\xff\xff\xff\x8f\x00", 6, 5, &value), -1);
	assert_int_equal(wire_get_varint((uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10,
					 10, &value), -1);
}

/* ---- building ---- */

static void round_trip(void **state)
{
	static const struct plog_header headers[] = {
		{ .key = "h1", .key_length = 2, .value = "v1", .value_length = 2 },
		{ .key = "", .key_length = 0, .value = NULL, .value_length = -1 },
		{ .key = "h3", .key_length = 2, .value = "", .value_length = 0 },
	};
	static const struct plog_record in[] = {
		{ .timestamp = 1000, .key_length = -1, .value = "one", .value_length = 3 },
		{ .timestamp = 900, .key = "k", .key_length = 1, .value_length = -1,
		  .headers = headers, .header_count = 3 },
		{ .timestamp = 5000000000000, .key = "", .key_length = 0, .value = "",
		  .value_length = 0 },
	};
	struct plog_record r;
	struct plog_pack *pack;
	struct plog_walk *walk;
	const void *bytes;
	size_t length;

	(void)state;
	assert_int_equal(plog_pack_new(0, &pack), 0);
	assert_int_equal(plog_pack_finish(pack, &bytes), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(plog_pack_add(pack, &in[i]), 0);
	assert_int_equal(plog_pack_count(pack), 3);
	length = plog_pack_finish(pack, &bytes);
	assert_int_equal(wire_get64((uint8_t *)bytes + AT_MAX_TIMESTAMP), 5000000000000);
	assert_int_equal(wire_get64((uint8_t *)bytes + AT_BASE_TIMESTAMP), 1000);
	assert_int_equal(wire_get32((uint8_t *)bytes + AT_LAST_OFFSET_DELTA), 2);
	assert_true((int64_t)wire_get64((uint8_t *)bytes + AT_PRODUCER_ID) == -1);

	walk = walk_over(bytes, length);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(plog_walk_next(walk, &r), 1);
		assert_int_equal(r.offset, i);
		assert_int_equal(r.timestamp, in[i].timestamp);
		same_bytes(r.key, r.key_length, in[i].key, in[i].key_length);
		same_bytes(r.value, r.value_length, in[i].value, in[i].value_length);
		assert_int_equal(r.header_count, in[i].header_count);
		assert_int_equal(r.codec, 0);
	}
	assert_int_equal(plog_walk_next(walk, &r), 0);
	assert_int_equal(plog_walk_next(walk, &r), 0);
	assert_int_equal(plog_walk_rest(walk), 0);
	assert_int_equal(plog_walk_next_offset(walk), 3);

	plog_walk_set(walk, bytes, length);
	plog_walk_from(walk, 1);
	assert_int_equal(plog_walk_next(walk, &r), 1);
	assert_int_equal(r.offset, 1);
	same_bytes(r.headers[0].key, r.headers[0].key_length, "h1", 2);
	same_bytes(r.headers[0].value, r.headers[0].value_length, "v1", 2);
	same_bytes(r.headers[1].value, r.headers[1].value_length, NULL, -1);
	same_bytes(r.headers[2].value, r.headers[2].value_length, "", 0);
	plog_walk_free(walk);
	plog_pack_free(pack);
}

static void pack_limits(void **state)
{
	struct plog_record r = { .timestamp = 1, .key_length = -1 };
	struct plog_header h = { .value_length = -1 };
	static char value[2000];
	struct plog_pack *pack;
	const void *bytes;

	(void)state;
	assert_int_equal(plog_pack_new(PLOG_MESSAGE_BYTES_MAX + 1, &pack), -EINVAL);
	assert_null(pack);
	assert_int_equal(plog_pack_new(1024, &pack), 0);
	r.value = value;
	/* 61 of header, 2 of length, 1 + 1 + 1 + 1 + 2 + value + 1 */
	r.value_length = 1024 - 61 - 2 - 7;
	assert_int_equal(plog_pack_add(pack, &r), 0);
	assert_int_equal(plog_pack_finish(pack, &bytes), 1024);
	assert_int_equal(plog_pack_add(pack, &r), -EMSGSIZE);
	assert_int_equal(plog_pack_count(pack), 1);
	plog_pack_clear(pack);
	r.value_length++;
	assert_int_equal(plog_pack_add(pack, &r), -EMSGSIZE);
	r.value_length = INT32_MAX;
	assert_int_equal(plog_pack_add(pack, &r), -EMSGSIZE);
	r.value_length = -2;
	assert_int_equal(plog_pack_add(pack, &r), -EINVAL);
	r.value_length = 0;
	r.key_length = 1;
	assert_int_equal(plog_pack_add(pack, &r), -EINVAL);
	r.key_length = -1;
	r.headers = &h;
	r.header_count = 1;
	assert_int_equal(plog_pack_add(pack, &r), -EINVAL);
	r.header_count = 0;
	r.timestamp = -2;
	assert_int_equal(plog_pack_add(pack, &r), -EINVAL);
	assert_int_equal(plog_pack_count(pack), 0);
	r.timestamp = PLOG_TIME_NOW;
	assert_int_equal(plog_pack_add(pack, &r), 0);
	plog_pack_finish(pack, &bytes);
	assert_true(wire_get64((uint8_t *)bytes + AT_BASE_TIMESTAMP) > 1700000000000);
	plog_pack_free(pack);
}

/* As Kafka's own tests have them. */
static void key_hash(void **state)
{
	static const struct {
		const char *key;
		int32_t hash;
	} known[] = {
		{ "21", -973932308 },
		{ "foobar", -790332482 },
		{ "a-little-bit-long-string", -985981536 },
		{ "a-little-bit-longer-string", -1486304829 },
		{ "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971 },
		{ "abc", 479470107 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_int_equal(plog_partition_for_key(known[i].key, strlen(known[i].key),
							0x80000000u),
				 known[i].hash & 0x7fffffff);
	assert_true(plog_partition_for_key("", 0, 7) < 7);
}

/* ---- opening what others have made ---- */

static size_t from_hex(const char *hex, uint8_t *out)
{
	size_t n = 0;
	unsigned int byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		out[n++] = byte;
	return n;
}

static void golden(void **state)
{
	static char line[16384], kkk[300], xxx[1000];
	static uint8_t bytes[8192];
	struct plog_record r;
	int lines = 0;
	FILE *f;

	(void)state;
	memset(kkk, 'k', sizeof(kkk));
	memset(xxx, 'x', sizeof(xxx));
	f = fopen(SRCDIR "/golden_batches.txt", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		struct plog_walk *walk;
		size_t n;

		if (*line == '#')
			continue;
		n = from_hex(strchr(line, ' ') + 1, bytes);
		walk = walk_over(bytes, n);
		assert_int_equal(plog_walk_next(walk, &r), 1);
		assert_int_equal(r.codec, lines);
		assert_int_equal(r.timestamp, 1600000000000);
		same_bytes(r.key, r.key_length, "key", 3);
		same_bytes(r.value, r.value_length, "value", 5);
		assert_int_equal(plog_walk_next(walk, &r), 1);
		same_bytes(r.key, r.key_length, NULL, -1);
		same_bytes(r.value, r.value_length, xxx, 1000);
		assert_int_equal(r.header_count, 2);
		same_bytes(r.headers[0].key, r.headers[0].key_length, "h1", 2);
		same_bytes(r.headers[0].value, r.headers[0].value_length, "v1", 2);
		same_bytes(r.headers[1].value, r.headers[1].value_length, "", 0);
		assert_int_equal(plog_walk_next(walk, &r), 1);
		assert_int_equal(r.timestamp, 1599999999999);
		same_bytes(r.key, r.key_length, "", 0);
		same_bytes(r.value, r.value_length, NULL, -1);
		assert_int_equal(plog_walk_next(walk, &r), 1);
		assert_int_equal(r.offset, 3);
		same_bytes(r.key, r.key_length, kkk, 300);
		assert_int_equal(r.headers[0].value_length, -1);
		assert_int_equal(plog_walk_next(walk, &r), 0);
		plog_walk_free(walk);
		lines++;
	}
	fclose(f);
	assert_int_equal(lines, 5);
}

static void several_batches(void **state)
{
	uint8_t *bytes = NULL;
	size_t length = 0, size;
	struct plog_walk *walk;
	struct plog_record r;
	int64_t offset = 100;

	(void)state;
	for (unsigned int codec = 0; codec < 5; codec++) {
		uint8_t *batch = maker_simple(codec, 10, 20000, &size);

		maker_set64(batch, size, AT_BASE_OFFSET, 100 + 10 * codec);
		maker_set32(batch, size, AT_LEADER_EPOCH, codec);
		bytes = realloc(bytes, length + size);
		memcpy(bytes + length, batch, size);
		length += size;
		free(batch);
	}
	walk = walk_over(bytes, length);
	while (plog_walk_next(walk, &r) == 1) {
		assert_int_equal(r.offset, offset);
		assert_int_equal(r.codec, (offset - 100) / 10);
		assert_int_equal(r.leader_epoch, (offset - 100) / 10);
		assert_int_equal(r.timestamp, 1000 + offset % 10);
		assert_int_equal(r.value_length, 20000);
		offset++;
	}
	assert_int_equal(offset, 150);
	assert_int_equal(plog_walk_next_offset(walk), 150);

	/* control records are none; what an append was stamped with counts for all */
	maker_set16(bytes, wire_get32(bytes + 8) + 12, AT_ATTRIBUTES, 0x20);
	plog_walk_set(walk, bytes, length);
	assert_int_equal(plog_walk_next(walk, &r), 1);
	assert_int_equal(r.offset, 110);
	maker_set16(bytes, wire_get32(bytes + 8) + 12, AT_ATTRIBUTES, 0x08);
	plog_walk_set(walk, bytes, length);
	assert_int_equal(plog_walk_next(walk, &r), 1);
	assert_int_equal(r.timestamp, 1009);
	assert_int_equal(r.log_append_time, 1);

	/* a part at the end is the end */
	plog_walk_set(walk, bytes, length - 1);
	plog_walk_from(walk, 139);
	assert_int_equal(plog_walk_next(walk, &r), 1);
	assert_int_equal(r.offset, 139);
	assert_int_equal(plog_walk_next(walk, &r), 0);
	assert_int_equal(plog_walk_rest(walk), size - 1);
	plog_walk_free(walk);
	free(bytes);
}

/* A batch whose third record fails, and behind it one of @count from offset 3 on. */
static uint8_t *bad_and_good(int codec, int count, size_t *size)
{
	uint8_t *bad, *good, *both;
	size_t bad_size, good_size;
	struct maker m;

	maker_begin(&m);
	maker_record(&m, 1, NULL, 0, "a", 1);
	maker_record(&m, 2, NULL, 0, "b", 1);
	maker_record_raw(&m, 0, 0, 9, NULL, -1, "c", 1, 0);	/* offset beyond the last */
	bad = maker_end(&m, codec, &bad_size);
	good = maker_simple(0, count, 5, &good_size);
	maker_set64(good, good_size, AT_BASE_OFFSET, 3);
	*size = bad_size + good_size;
	both = malloc(*size);
	memcpy(both, bad, bad_size);
	memcpy(both + bad_size, good, good_size);
	free(bad);
	free(good);
	return both;
}

/* An error stays where it is, and nothing is given twice; the next batch can be had. */
static void errors_stay(void **state)
{
	uint8_t *both;
	size_t size;
	struct plog_walk *walk;
	struct plog_record r;

	(void)state;
	both = bad_and_good(1, 1, &size);
	walk = walk_over(both, size);
	assert_int_equal(plog_walk_next(walk, &r), 1);
	assert_int_equal(plog_walk_next(walk, &r), 1);
	assert_int_equal(plog_walk_next(walk, &r), -EBADMSG);
	assert_int_equal(plog_walk_next(walk, &r), -EBADMSG);
	assert_int_equal(plog_walk_skip(walk), 0);
	assert_int_equal(plog_walk_next_offset(walk), 3);
	assert_int_equal(plog_walk_next(walk, &r), 1);
	assert_int_equal(r.offset, 3);
	assert_int_equal(plog_walk_next(walk, &r), 0);
	assert_int_equal(plog_walk_skip(walk), -ENODATA);
	plog_walk_free(walk);
	free(both);
}

/* What was given of a batch that failed says nothing about the one behind it. */
static void passed_by_from(void **state)
{
	uint8_t *both;
	size_t size;
	struct plog_walk *walk;
	struct plog_record r;

	(void)state;
	both = bad_and_good(0, 3, &size);
	walk = walk_over(both, size);
	assert_int_equal(plog_walk_next(walk, &r), 1);
	assert_int_equal(plog_walk_next(walk, &r), 1);
	assert_int_equal(plog_walk_next(walk, &r), -EBADMSG);
	plog_walk_from(walk, 3);
	for (int i = 3; i < 6; i++) {
		assert_int_equal(plog_walk_next(walk, &r), 1);
		assert_int_equal(r.offset, i);
	}
	assert_int_equal(plog_walk_next(walk, &r), 0);
	plog_walk_free(walk);
	free(both);
}

static void refuse(uint8_t *batch, size_t size)
{
	struct plog_walk *walk = walk_over(batch, size);
	struct plog_record r;
	int ret;

	while ((ret = plog_walk_next(walk, &r)) > 0)
		;
	assert_int_equal(ret, -EBADMSG);
	plog_walk_free(walk);
	free(batch);
}

static void damaged_headers(void **state)
{
	uint8_t *b;
	size_t n;

	(void)state;
	b = maker_simple(0, 3, 10, &n);
	b[n - 3] ^= 1;		/* in a value: only the CRC can tell */
	refuse(b, n);
	b = maker_simple(0, 3, 10, &n);
	maker_set8(b, n, AT_MAGIC, 1);
	refuse(b, n);
	b = maker_simple(0, 3, 10, &n);
	wire_put32(b + AT_LENGTH, 48);
	refuse(b, n);
	b = maker_simple(0, 3, 10, &n);
	wire_put32(b + AT_LENGTH, -1);
	refuse(b, n);
	b = maker_simple(0, 3, 10, &n);
	maker_set32(b, n, AT_COUNT, 4);
	refuse(b, n);
	b = maker_simple(0, 3, 10, &n);
	maker_set32(b, n, AT_COUNT, 2);		/* one record too many */
	refuse(b, n);
	b = maker_simple(2, 3, 10, &n);
	maker_set32(b, n, AT_COUNT, 2);
	refuse(b, n);
	b = maker_simple(0, 3, 10, &n);
	maker_set32(b, n, AT_COUNT, -1);
	refuse(b, n);
	b = maker_simple(0, 3, 10, &n);
	maker_set32(b, n, AT_LAST_OFFSET_DELTA, 1);
	refuse(b, n);
	b = maker_simple(0, 3, 10, &n);
	maker_set32(b, n, AT_LAST_OFFSET_DELTA, -1);
	refuse(b, n);
	b = maker_simple(0, 3, 10, &n);
	maker_set64(b, n, AT_BASE_OFFSET, INT64_MAX);
	refuse(b, n);
	b = maker_simple(0, 3, 10, &n);
	maker_set64(b, n, AT_BASE_OFFSET, -1);
	refuse(b, n);
	b = maker_simple(0, 3, 10, &n);
	maker_set16(b, n, AT_ATTRIBUTES, 5);	/* no such codec */
	refuse(b, n);
	b = maker_simple(0, 3, 10, &n);
	maker_set16(b, n, AT_ATTRIBUTES, 1);	/* not gzip */
	refuse(b, n);
}

/* The sum of base and delta wraps around, as in Kafka's clients and in plogd. */
static void times_wrap(void **state)
{
	struct plog_walk *walk;
	struct plog_record r;
	uint8_t *b;
	size_t n;

	(void)state;
	b = maker_simple(0, 3, 10, &n);
	maker_set64(b, n, AT_BASE_TIMESTAMP, INT64_MAX);
	walk = walk_over(b, n);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(plog_walk_next(walk, &r), 1);
		assert_true(r.timestamp == (i ? INT64_MIN + i - 1 : INT64_MAX));
	}
	assert_int_equal(plog_walk_next(walk, &r), 0);
	plog_walk_free(walk);
	free(b);
}

/* A batch of one record, made by @raw of the maker, in each codec. */
static void bad_record(int64_t length_change, int64_t offset_delta, const void *key,
		       int64_t key_size, int64_t value_size, int64_t headers)
{
	for (unsigned int codec = 0; codec < 5; codec++) {
		struct maker m;
		uint8_t *b;
		size_t n;

		maker_begin(&m);
		maker_record_raw(&m, length_change, 0, offset_delta, key, key_size, "v",
				 value_size, headers);
		b = maker_end(&m, codec, &n);
		refuse(b, n);
	}
}

static void damaged_records(void **state)
{
	struct maker m;
	uint8_t *b;
	size_t n;

	(void)state;
	/* a byte behind what its fields say */
	maker_begin(&m);
	maker_record_raw(&m, 1, 0, 0, NULL, -1, "v", 1, 0);
	maker_bytes(&m, "", 1);
	b = maker_end(&m, 0, &n);
	refuse(b, n);
	bad_record(1, 0, NULL, -1, 1, 0);
	bad_record(-1, 0, NULL, -1, 1, 0);
	bad_record(-6, 0, NULL, -1, 1, 0);
	bad_record(-100, 0, NULL, -1, 1, 0);
	bad_record(100000000, 0, NULL, -1, 1, 0);
	bad_record(0, 1, NULL, -1, 1, 0);
	bad_record(0, -1, NULL, -1, 1, 0);
	bad_record(0, 0, NULL, -2, 1, 0);
	bad_record(0, 0, NULL, -1, 1, -1);
}

/* Compaction leaves gaps between offsets, and batches without any record. */
static void compacted(void **state)
{
	uint8_t *bytes, *gap, *empty;
	size_t gap_size, empty_size;
	struct plog_walk *walk;
	struct plog_record r;
	struct maker m;

	(void)state;
	maker_begin(&m);
	maker_record_raw(&m, 0, 0, 2, NULL, -1, "a", 1, 0);
	maker_record_raw(&m, 0, 0, 7, NULL, -1, "b", 1, 0);
	gap = maker_end(&m, 3, &gap_size);
	maker_set32(gap, gap_size, AT_LAST_OFFSET_DELTA, 9);
	empty = maker_simple(0, 1, 1, &empty_size);
	empty_size = 61;
	wire_put32(empty + AT_LENGTH, 49);
	maker_set32(empty, empty_size, AT_COUNT, 0);
	maker_set32(empty, empty_size, AT_LAST_OFFSET_DELTA, 4);
	maker_set64(empty, empty_size, AT_BASE_OFFSET, 10);
	bytes = malloc(gap_size + empty_size);
	memcpy(bytes, gap, gap_size);
	memcpy(bytes + gap_size, empty, empty_size);
	walk = walk_over(bytes, gap_size + empty_size);
	assert_int_equal(plog_walk_next(walk, &r), 1);
	assert_int_equal(r.offset, 2);
	assert_int_equal(plog_walk_next(walk, &r), 1);
	assert_int_equal(r.offset, 7);
	assert_int_equal(plog_walk_next(walk, &r), 0);
	assert_int_equal(plog_walk_next_offset(walk), 15);
	plog_walk_free(walk);
	free(bytes);
	free(gap);
	free(empty);
}

/* Whatever the bytes: an end or an error, within bounds (ASan looks on). */
static void any_bytes(void **state)
{
	static const int kinds[] = { 0, -EBADMSG, -EMSGSIZE, -EBUSY };
	unsigned int seed = 1;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		unsigned int codec = round % 5;
		struct plog_walk *walk;
		struct plog_record r;
		bool known = false;
		uint8_t *b;
		size_t n;
		int ret;

		b = maker_simple(codec, 1 + round % 7, round % 100, &n);
		for (int flips = 1 + round % 4; flips; flips--) {
			size_t at = 16 + (unsigned int)rand_r(&seed) % (n - 16);

			b[at] = rand_r(&seed);
		}
		b[AT_MAGIC] = 2;
		maker_crc(b, n);
		walk = walk_over(b, n);
		while ((ret = plog_walk_next(walk, &r)) > 0)
			;
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			known |= ret == kinds[i];
		if (!known)
			fail_msg("round %d: %d", round, ret);
		plog_walk_free(walk);
		free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(varints),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(pack_limits),
		cmocka_unit_test(key_hash),
		cmocka_unit_test(golden),
		cmocka_unit_test(several_batches),
		cmocka_unit_test(errors_stay),
		cmocka_unit_test(passed_by_from),
		cmocka_unit_test(damaged_headers),
		cmocka_unit_test(times_wrap),
		cmocka_unit_test(damaged_records),
		cmocka_unit_test(compacted),
		cmocka_unit_test(any_bytes),
	};

	return cmocka_run_group_tests_name("libplog", tests, NULL, NULL);
}
