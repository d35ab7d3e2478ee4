// SPDX-License-Identifier: MIT
/* What a client may send as records, and what it gets for anything else. */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "kafka/error.h"
#include "log/compress.h"
#include "maker.h"

static void test_good(void **state)
{
	unsigned int codec;
	size_t n;

	(void)state;
	for (codec = 0; codec <= COMPRESS_ZSTD; codec++) {
		uint8_t *p = maker_simple(codec, 100, 50, &n), *after;
		struct records_check c;

		assert_int_equal(check(p, n, &c, &after), KERR_NONE);
		assert_int_equal(c.batch.count, 100);
		assert_int_equal(c.batch.max_timestamp, 1099);
		assert_int_equal(c.batch.attributes & RECORDS_CODEC_MASK, codec);
		/* nothing to correct: not a byte is changed */
		assert_memory_equal(p, after, n);
		free(after);
		free(p);
	}
}

static void test_is_long(void **state)
{
	struct records_check c;
	uint8_t *p;
	size_t n;

	(void)state;
	p = maker_simple(COMPRESS_NONE, 1, 1, &n);
	records_check_init(&c, p, n, &rules, &arena);
	assert_false(records_check_is_long(&c));
	records_check_end(&c);
	free(p);
	p = maker_simple(COMPRESS_LZ4, 1, 1, &n);
	records_check_init(&c, p, n, &rules, &arena);
	assert_true(records_check_is_long(&c));
	records_check_end(&c);
	records_check_init(&c, p, 60, &rules, &arena);
	assert_false(records_check_is_long(&c));
	records_check_end(&c);
	records_check_init(&c, NULL, 0, &rules, &arena);
	assert_false(records_check_is_long(&c));
	records_check_end(&c);
	free(p);
}

static void test_max_timestamp(void **state)
{
	static const int64_t wrong[] = { -1, 0, 999, 1050, 1098, 1100, INT64_MAX };
	unsigned int codec;
	size_t n, i;

	(void)state;
	for (codec = 0; codec <= COMPRESS_ZSTD; codec++) {
		uint8_t *p = maker_simple(codec, 100, 5, &n), *after;
		struct records_check c;

		for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
			maker_set64(p, n, AT_MAX_TIMESTAMP, (uint64_t)wrong[i]);
			assert_int_equal(check(p, n, &c, &after), KERR_NONE);
			assert_int_equal(be(after + AT_MAX_TIMESTAMP, 8), 1099);
			assert_int_equal(c.batch.max_timestamp, 1099);
			assert_int_equal(be(after + AT_CRC, 4), records_crc(after, n));
			free(after);
		}
		free(p);
	}
}

static void test_shape(void **state)
{
	struct records_check c;
	uint8_t *p, *two;
	size_t n, i;

	(void)state;
	REFUSED(NULL, 0, KERR_INVALID_RECORD);
	p = maker_simple(COMPRESS_NONE, 3, 10, &n);
	/* cut anywhere: not a whole batch */
	for (i = 1; i < n; i++)
		REFUSED(p, i, KERR_INVALID_RECORD);
	/* two batches, or something behind one */
	two = malloc(2 * n);
	memcpy(two, p, n);
	memcpy(two + n, p, n);
	for (i = n + 1; i <= 2 * n; i++)
		REFUSED(two, i, KERR_INVALID_RECORD);
	check(two, 2 * n, &c, NULL);
	assert_non_null(strstr(c.text, "one batch for a partition"));
	free(two);
	/* lengths that no batch has */
	maker_set32(p, n, AT_LENGTH, 0);
	REFUSED(p, n, KERR_CORRUPT_MESSAGE);
	maker_set32(p, n, AT_LENGTH, UINT32_MAX);
	REFUSED(p, n, KERR_CORRUPT_MESSAGE);
	maker_set32(p, n, AT_LENGTH, 13);
	REFUSED(p, n, KERR_CORRUPT_MESSAGE);
	maker_set32(p, n, AT_LENGTH, 48);
	REFUSED(p, n, KERR_CORRUPT_MESSAGE);
	maker_set32(p, n, AT_LENGTH, INT32_MAX);
	REFUSED(p, n, KERR_INVALID_RECORD);
	maker_set32(p, n, AT_LENGTH, (uint32_t)n - 12 - 1);
	REFUSED(p, n, KERR_INVALID_RECORD);
	maker_set32(p, n, AT_LENGTH, (uint32_t)n - 12);
	/* other formats */
	maker_set8(p, n, AT_MAGIC, 0);
	REFUSED(p, n, KERR_INVALID_RECORD);
	maker_set8(p, n, AT_MAGIC, 1);
	REFUSED(p, n, KERR_INVALID_RECORD);
	maker_set8(p, n, AT_MAGIC, 3);
	REFUSED(p, n, KERR_CORRUPT_MESSAGE);
	maker_set8(p, n, AT_MAGIC, 0xff);
	REFUSED(p, n, KERR_CORRUPT_MESSAGE);
	maker_set8(p, n, AT_MAGIC, 2);
	assert_int_equal(check(p, n, &c, NULL), KERR_NONE);
	free(p);
}

static void test_crc(void **state)
{
	uint8_t *p;
	size_t n, i;

	(void)state;
	p = maker_simple(COMPRESS_NONE, 3, 10, &n);
	for (i = AT_ATTRIBUTES; i < n; i++) {
		/* the codec bits would be looked at before */
		p[i] ^= i == 22 ? 0x80 : 0x04;
		REFUSED(p, n, KERR_CORRUPT_MESSAGE);
		p[i] ^= i == 22 ? 0x80 : 0x04;
	}
	for (i = AT_CRC; i < AT_ATTRIBUTES; i++) {
		p[i] ^= 1;
		REFUSED(p, n, KERR_CORRUPT_MESSAGE);
		p[i] ^= 1;
	}
	free(p);
}

static void test_header(void **state)
{
	struct records_check c;
	struct maker m;
	uint8_t *p;
	size_t n;

	(void)state;
	p = maker_simple(COMPRESS_NONE, 3, 10, &n);
#define SET(bits, at, value, code, back) do { \
	maker_set##bits(p, n, at, (uint##bits##_t)(value)); \
	REFUSED(p, n, code); \
	maker_set##bits(p, n, at, (uint##bits##_t)(back)); \
} while (0)
	SET(64, AT_BASE_OFFSET, 1, KERR_INVALID_RECORD, 0);
	SET(64, AT_BASE_OFFSET, -1, KERR_INVALID_RECORD, 0);
	SET(32, AT_COUNT, 0, KERR_INVALID_RECORD, 3);
	SET(32, AT_COUNT, -1, KERR_INVALID_RECORD, 3);
	SET(32, AT_COUNT, 2, KERR_INVALID_RECORD, 3);
	SET(32, AT_COUNT, 4, KERR_INVALID_RECORD, 3);
	SET(32, AT_COUNT, INT32_MAX, KERR_INVALID_RECORD, 3);
	SET(32, AT_LAST_OFFSET_DELTA, 1, KERR_INVALID_RECORD, 2);
	SET(32, AT_LAST_OFFSET_DELTA, 3, KERR_INVALID_RECORD, 2);
	SET(32, AT_LAST_OFFSET_DELTA, -1, KERR_INVALID_RECORD, 2);
	SET(32, AT_LAST_OFFSET_DELTA, INT32_MAX, KERR_INVALID_RECORD, 2);
	/* control */
	SET(16, AT_ATTRIBUTES, 0x20, KERR_INVALID_RECORD, 0);
	SET(16, AT_ATTRIBUTES, 0x30, KERR_INVALID_RECORD, 0);
	/* delete horizon, and what nobody has defined */
	SET(16, AT_ATTRIBUTES, 0x40, KERR_INVALID_RECORD, 0);
	SET(16, AT_ATTRIBUTES, 0x8000, KERR_INVALID_RECORD, 0);
	/* codecs that do not exist */
	SET(16, AT_ATTRIBUTES, 5, KERR_UNSUPPORTED_COMPRESSION_TYPE, 0);
	SET(16, AT_ATTRIBUTES, 7, KERR_UNSUPPORTED_COMPRESSION_TYPE, 0);
	/* transactional without a producer */
	SET(16, AT_ATTRIBUTES, 0x10, KERR_INVALID_RECORD, 0);
	/* both of count and delta wrong, but agreeing: the records tell */
	maker_set32(p, n, AT_LAST_OFFSET_DELTA, 1);
	SET(32, AT_COUNT, 2, KERR_INVALID_RECORD, 3);
	maker_set32(p, n, AT_LAST_OFFSET_DELTA, 3);
	SET(32, AT_COUNT, 4, KERR_INVALID_RECORD, 3);
	maker_set32(p, n, AT_LAST_OFFSET_DELTA, INT32_MAX - 1);
	SET(32, AT_COUNT, INT32_MAX, KERR_INVALID_RECORD, 3);
	maker_set32(p, n, AT_LAST_OFFSET_DELTA, 2);
	REFUSED(p, n, KERR_NONE);
	maker_set64(p, n, AT_BASE_OFFSET, 9);
	check(p, n, &c, NULL);
	assert_string_equal(c.text, "the base offset is 9 and must be 0");
	free(p);

	/* no records at all, and a header that says so */
	maker_begin(&m);
	p = maker_end(&m, COMPRESS_NONE, &n);
	assert_int_equal(n, RECORDS_HEADER);
	REFUSED(p, n, KERR_INVALID_RECORD);
	free(p);
}

static void test_producers(void **state)
{
	struct records_check c;
	uint8_t *p;
	size_t n;

	(void)state;
	p = maker_simple(COMPRESS_NONE, 3, 10, &n);
	maker_set64(p, n, AT_PRODUCER_ID, 7);
	REFUSED(p, n, KERR_INVALID_RECORD);		/* no sequence */
	rules.producer_ids = true;
	REFUSED(p, n, KERR_INVALID_RECORD);
	maker_set32(p, n, AT_BASE_SEQUENCE, 0);
	REFUSED(p, n, KERR_NONE);
	rules.producer_ids = false;
	assert_int_equal(check(p, n, &c, NULL), KERR_INVALID_RECORD);
	assert_string_equal(c.text, "the batch bears producer id 7, but this broker gives none "
			    "out");
	maker_set16(p, n, AT_ATTRIBUTES, 0x10);
	REFUSED(p, n, KERR_INVALID_TXN_STATE);
	rules.producer_ids = true;
	REFUSED(p, n, KERR_INVALID_TXN_STATE);
	rules.transactions = true;
	REFUSED(p, n, KERR_NONE);
	free(p);
}

static void test_too_large(void **state)
{
	uint8_t *p;
	size_t n;

	(void)state;
	p = maker_simple(COMPRESS_NONE, 3, 1000, &n);
	rules.max_message_bytes = (uint32_t)n;
	REFUSED(p, n, KERR_NONE);
	rules.max_message_bytes = (uint32_t)n - 1;
	REFUSED(p, n, KERR_MESSAGE_TOO_LARGE);
	/* before the CRC, so that a too large batch costs nothing */
	p[n - 1] ^= 1;
	REFUSED(p, n, KERR_MESSAGE_TOO_LARGE);
	free(p);
}

static void test_zstd_versions(void **state)
{
	unsigned int codec;
	uint8_t *p;
	size_t n;

	(void)state;
	rules.zstd = false;
	for (codec = 0; codec <= COMPRESS_ZSTD; codec++) {
		p = maker_simple(codec, 3, 10, &n);
		REFUSED(p, n, codec == COMPRESS_ZSTD ? KERR_UNSUPPORTED_COMPRESSION_TYPE : 0);
		free(p);
	}
}

/* Times in and out of the window; which records are named. */
static void test_times(void **state)
{
	static const struct {
		int64_t time, before, after;
		bool good;
	} cases[] = {
		{ NOW, INT64_MAX, 0, true },
		{ NOW + 1, INT64_MAX, 0, false },
		{ NOW + 3600000, INT64_MAX, 3600000, true },
		{ NOW + 3600001, INT64_MAX, 3600000, false },
		{ INT64_MAX, INT64_MAX, 3600000, false },
		{ INT64_MAX, INT64_MAX, INT64_MAX, true },
		{ 0, INT64_MAX, 3600000, true },
		{ NOW - 100, 100, 0, true },
		{ NOW - 101, 100, 0, false },
		{ -1, INT64_MAX, INT64_MAX, false },
		{ INT64_MIN, INT64_MAX, INT64_MAX, false },
	};
	unsigned int codec;
	size_t n, i;

	(void)state;
	for (codec = 0; codec <= COMPRESS_ZSTD; codec++) {
		for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct records_check c;
			struct maker m;
			uint8_t *p;

			maker_begin(&m);
			maker_record(&m, NOW, "k", 1, "v", 1);
			maker_record_raw(&m, 0, (int64_t)((uint64_t)cases[i].time - NOW), 1, "k",
					 1, "v", 1, 0);
			maker_record(&m, NOW, "k", 1, "v", 1);
			p = maker_end(&m, codec, &n);
			rules.before_max_ms = cases[i].before;
			rules.after_max_ms = cases[i].after;
			check(p, n, &c, NULL);
			assert_int_equal(c.error, cases[i].good ? 0 : KERR_INVALID_TIMESTAMP);
			assert_int_equal(c.nbad, !cases[i].good);
			if (c.nbad) {
				assert_int_equal(c.bad[0].index, 1);
				assert_non_null(strstr(c.bad[0].text, "time"));
			}
			free(p);
		}
	}
}

static void test_log_append_time(void **state)
{
	struct records_check c;
	uint8_t *p, *after;
	size_t n;

	(void)state;
	p = maker_simple(COMPRESS_NONE, 3, 10, &n);
	/* the broker's time counts: the client's is not looked at, and the header left alone */
	rules.log_append_time = true;
	maker_set64(p, n, AT_BASE_TIMESTAMP, UINT64_MAX);
	maker_set64(p, n, AT_MAX_TIMESTAMP, 5);
	assert_int_equal(check(p, n, &c, &after), KERR_NONE);
	assert_memory_equal(p, after, n);
	free(after);
	/* but it may not claim to be the broker */
	maker_set16(p, n, AT_ATTRIBUTES, RECORDS_LOG_APPEND_TIME);
	assert_int_equal(check(p, n, &c, NULL), KERR_INVALID_TIMESTAMP);
	assert_int_equal(c.nbad, 3);
	/* on a topic with CreateTime the bit goes away */
	rules.log_append_time = false;
	maker_set64(p, n, AT_BASE_TIMESTAMP, 1000);
	assert_int_equal(check(p, n, &c, &after), KERR_NONE);
	assert_int_equal(be(after + AT_ATTRIBUTES, 2), 0);
	assert_int_equal(be(after + AT_MAX_TIMESTAMP, 8), 1002);
	assert_int_equal(be(after + AT_CRC, 4), records_crc(after, n));
	/* and stamping says it again */
	records_stamp(after, n, true, 77);
	assert_int_equal(be(after + AT_ATTRIBUTES, 2), RECORDS_LOG_APPEND_TIME);
	assert_int_equal(be(after + AT_MAX_TIMESTAMP, 8), 77);
	assert_int_equal(be(after + AT_CRC, 4), records_crc(after, n));
	free(after);
	free(p);
}

static void test_compacted(void **state)
{
	unsigned int codec;
	size_t n;

	(void)state;
	rules.compact = true;
	for (codec = 0; codec <= COMPRESS_ZSTD; codec++) {
		struct records_check c;
		struct maker m;
		uint8_t *p;

		maker_begin(&m);
		maker_record(&m, 5, "k", 1, "v", 1);
		maker_record(&m, 5, NULL, 0, "v", 1);
		maker_record(&m, 5, "", 0, "v", 1);
		maker_record(&m, 5, NULL, 0, "v", 1);
		p = maker_end(&m, codec, &n);
		assert_int_equal(check(p, n, &c, NULL), KERR_INVALID_RECORD);
		assert_int_equal(c.nbad, 2);
		assert_int_equal(c.bad[0].index, 1);
		assert_int_equal(c.bad[1].index, 3);
		assert_string_equal(c.text, "2 of 4 records refused; record 1: a record without a "
				    "key cannot be compacted");
		/* a time out of range beside it decides the error */
		rules.before_max_ms = 100;
		assert_int_equal(check(p, n, &c, NULL), KERR_INVALID_TIMESTAMP);
		assert_int_equal(c.nbad, 4);
		rules.before_max_ms = INT64_MAX;
		rules.compact = false;
		REFUSED(p, n, KERR_NONE);
		rules.compact = true;
		free(p);
	}
}

static void test_many_bad(void **state)
{
	struct records_check c;
	uint8_t *p;
	size_t n;

	(void)state;
	rules.before_max_ms = 1;
	p = maker_simple(COMPRESS_GZIP, 5000, 10, &n);
	assert_int_equal(check(p, n, &c, NULL), KERR_INVALID_TIMESTAMP);
	assert_int_equal(c.nbad, RECORDS_ERRORS_MAX);
	free(p);
}

/* One record that is malformed in some way, between two good ones, in every codec. */
static void test_framing(void **state)
{
	static const struct {
		int64_t length_change, delta, key_size, value_size, headers;
		bool good;
	} cases[] = {
		{ 0, 1, 1, 1, 0, true },
		{ 0, 1, 1, 1, 3, true },
		{ 1, 1, 1, 1, 0, false },		/* longer than what is in it */
		{ -1, 1, 1, 1, 0, false },
		{ -100, 1, 1, 1, 0, false },		/* negative length */
		{ INT32_MAX - 100, 1, 1, 1, 0, false },
		{ 0, 0, 1, 1, 0, false },		/* offset deltas out of order */
		{ 0, 2, 1, 1, 0, false },
		{ 0, -1, 1, 1, 0, false },
		{ 0, INT32_MAX, 1, 1, 0, false },
		{ 0, 1, -2, 1, 0, false },
		{ 0, 1, 1, -2, 0, false },
		{ 0, 1, INT32_MIN, 1, 0, false },
		{ 0, 1, 1, 1, -1, false },
		{ 0, 1, 1, 1, 1000, false },		/* headers that are not there */
		{ 0, 1, 1, 1, INT32_MAX, false },
		{ 0, (int64_t)1 << 33, 1, 1, 0, false },	/* numbers of more than 32 bits */
		{ 0, 1, 1, (int64_t)1 << 40, 0, false },
	};
	unsigned int codec;
	size_t n, i;

	(void)state;
	for (codec = 0; codec <= COMPRESS_ZSTD; codec++) {
		for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			const char *key = cases[i].key_size == 1 ? "k" : NULL;
			const char *value = cases[i].value_size == 1 ? "v" : NULL;
			struct records_check c;
			struct maker m;
			uint8_t *p;

			maker_begin(&m);
			maker_record(&m, 5, "key", 3, "value", 5);
			maker_record_raw(&m, cases[i].length_change, 0, cases[i].delta, key,
					 cases[i].key_size, value, cases[i].value_size,
					 cases[i].headers);
			maker_record(&m, 5, "key", 3, "value", 5);
			p = maker_end(&m, codec, &n);
			check(p, n, &c, NULL);
			if (c.error != (cases[i].good ? 0 : KERR_INVALID_RECORD))
				fail_msg("codec %u case %zu: %d", codec, i, c.error);
			if (!cases[i].good) {
				assert_int_equal(c.nbad, 1);
				assert_true(c.bad[0].index == 1 || c.bad[0].index == 2);
			}
			free(p);
		}
	}
}

/* Key sizes and the like that pass the record's end, but not the batch's. */
static void test_inner_lengths(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} bodies[] = {
#define B(s) { s, sizeof(s) - 1 }
		/* attributes, time, delta, then: */
		B("\0\0\0\x14" "k\x02v\0"),		/* key of 10 */
		B("\0\0\0\x02" "k\x14v\0"),		/* value of 10 */
		B("\0\0\0\x02" "k\x02v\x02\x14" "h\0"),	/* header key of 10 */
		B("\0\0\0\x02" "k\x02v\x02\x01\x01"),	/* header key null */
		B("\0\0\0\x02" "k\x02v\x02\x02h\x14"),	/* header value of 10 */
		B("\0\0\0\x02" "k\x02v\x02\x02h"),		/* header without value */
		B("\0\0\0\x02" "k\x02v"),			/* no number of headers */
		B("\0\0\0\x02" "k"),			/* no value */
		B("\0\0\0"),				/* no key */
		B("\0\0"),
		B("\0"),
		B(""),
		/* a time of 77 bits, a delta of 33 */
		B("\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\x02k\x02v\0"),
		B("\0\0\x80\x80\x80\x80\x10\x02k\x02v\0"),
#undef B
	};
	size_t n, i;
	unsigned int codec;

	(void)state;
	for (codec = 0; codec <= COMPRESS_ZSTD; codec++) {
		for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
			struct maker m;
			uint8_t *p;

			maker_begin(&m);
			maker_number(&m, (int64_t)bodies[i].n);
			maker_bytes(&m, bodies[i].bytes, bodies[i].n);
			m.count = 1;
			maker_record(&m, 5, "a longer key", 12, "a longer value", 14);
			p = maker_end(&m, codec, &n);
			REFUSED(p, n, KERR_INVALID_RECORD);
			free(p);
		}
	}
}

/* Compressed records that are cut, damaged or followed by something, under a right CRC. */
static void test_damaged_codec(void **state)
{
	unsigned int codec;
	size_t n, i;

	(void)state;
	for (codec = COMPRESS_GZIP; codec <= COMPRESS_ZSTD; codec++) {
		struct records_check c;
		size_t size, whole;
		uint8_t *p, *z, *batch;
		struct maker m;

		maker_begin(&m);
		for (i = 0; i < 50; i++)
			maker_record(&m, 5, "key", 3, "some value", 10);
		z = maker_compress(codec, m.records, m.size, &whole);
		for (size = 0; size < whole; size++) {
			batch = maker_wrap(&m, codec, z, size, &n);
			REFUSED(batch, n, KERR_INVALID_RECORD);
			free(batch);
		}
		z = realloc(z, whole + 1);
		z[whole] = 0;
		batch = maker_wrap(&m, codec, z, whole + 1, &n);
		REFUSED(batch, n, KERR_INVALID_RECORD);
		free(batch);
		for (i = 0; i < whole; i++) {
			z[i] ^= 0x10;
			batch = maker_wrap(&m, codec, z, whole, &n);
			/*
			 * Some bytes mean nothing here, and where a codec has no checksum of its
			 * own others make another record, perhaps one of another time.
			 */
			check(batch, n, &c, NULL);
			assert_true(c.error == KERR_INVALID_RECORD || c.error == KERR_NONE ||
				    c.error == KERR_INVALID_TIMESTAMP);
			free(batch);
			z[i] ^= 0x10;
		}
		free(z);
		/* a byte more inside of what is compressed */
		maker_bytes(&m, "", 1);
		p = maker_end(&m, codec, &n);
		REFUSED(p, n, KERR_INVALID_RECORD);
		free(p);
	}
}

static long peak_kib(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss;
}

/* B16: 2 GiB in one value in some 200 KiB of batch. */
static void test_bomb(void **state)
{
	const size_t piece = 16 << 20;
	const unsigned int pieces = 127;
	uint8_t *zeros = calloc(1, piece), *head, *body, *p;
	size_t head_size, body_size, n, total;
	struct records_check c;
	struct maker m, all;
	unsigned int i, steps = 0;
	long before;

	(void)state;
	/* the framing up to the value, then the value in frames of its own */
	total = piece * pieces;
	maker_begin(&m);
	maker_number(&m, (int64_t)(1 + 1 + 1 + 1 + 5 + total + 1));
	maker_bytes(&m, "\0\0\0\x01", 4);
	maker_number(&m, (int64_t)total);
	m.count = 1;
	m.max_timestamp = 0;
	head = maker_compress(COMPRESS_ZSTD, m.records, m.size, &head_size);
	body = maker_compress(COMPRESS_ZSTD, zeros, piece, &body_size);
	maker_begin(&all);
	maker_bytes(&all, head, head_size);
	for (i = 0; i < pieces; i++)
		maker_bytes(&all, body, body_size);
	free(head);
	head = maker_compress(COMPRESS_ZSTD, (const uint8_t *)"", 1, &head_size);
	maker_bytes(&all, head, head_size);
	p = maker_wrap(&m, COMPRESS_ZSTD, all.records, all.size, &n);
	free(zeros);
	free(head);
	free(body);
	free(all.records);
	free(m.records);
	assert_true(n < 300 << 10);

	/* by the rules as they are it is refused early */
	before = peak_kib();
	records_check_init(&c, p, n, &rules, &arena);
	while (!records_check_run(&c, 1 << 20))
		steps++;
	assert_int_equal(c.error, KERR_MESSAGE_TOO_LARGE);
	assert_in_range(steps, 500, 520);
	assert_in_range(c.iter.expanded, RECORDS_EXPANDED_MAX, RECORDS_EXPANDED_MAX + (64 << 10));
	records_check_end(&c);
	/* and even if it may, it passes through a window */
	rules.expanded_max = UINT64_MAX;
	records_check_init(&c, p, n, &rules, &arena);
	assert_int_equal(records_check_run(&c, UINT64_MAX), 1);
	assert_int_equal(c.error, KERR_NONE);
	assert_in_range(c.iter.expanded, total, total + 20);
	records_check_end(&c);
	print_message("# 2 GiB out of %zu bytes took %ld KiB of memory\n", n, peak_kib() - before);
	assert_in_range(peak_kib() - before, 0, 32 << 10);
	free(p);
}

/* The limit holds for every codec, and is met at the byte. */
static void test_expanded_max(void **state)
{
	unsigned int codec;
	uint8_t *p;
	size_t n;

	(void)state;
	for (codec = COMPRESS_GZIP; codec <= COMPRESS_ZSTD; codec++) {
		struct records_iter it;
		struct record r;

		p = maker_simple(codec, 1000, 1000, &n);
		assert_int_equal(records_iter_open(&it, p, n, UINT64_MAX), 0);
		while (records_iter_next(&it, &r, NULL) > 0)
			;
		records_iter_close(&it);
		assert_in_range(it.expanded, 1000000, 1100000);
		rules.expanded_max = it.expanded;
		REFUSED(p, n, KERR_NONE);
		rules.expanded_max = it.expanded - 1;
		REFUSED(p, n, KERR_MESSAGE_TOO_LARGE);
		free(p);
	}
}

static void test_large_windows(void **state)
{
	struct records_check a, b, c;
	uint8_t *z, *p;
	size_t size, n;
	struct maker m;
	int i;

	(void)state;
	maker_begin(&m);
	for (i = 0; i < 20000; i++)
		maker_record(&m, 5, "key", 3, "some value", 10);
	z = maker_zstd(m.records, m.size, 22, 27, &size);
	p = maker_wrap(&m, COMPRESS_ZSTD, z, size, &n);
	records_check_init(&a, p, n, &rules, &arena);
	records_check_init(&b, p, n, &rules, &arena);
	assert_int_equal(records_check_run(&a, 1), 0);
	assert_int_equal(records_check_run(&b, 1), 0);
	/* the third has to come again */
	records_check_init(&c, p, n, &rules, &arena);
	assert_int_equal(records_check_run(&c, 1), 1);
	assert_int_equal(c.error, KERR_REQUEST_TIMED_OUT);
	records_check_end(&c);
	assert_int_equal(records_check_run(&a, UINT64_MAX), 1);
	assert_int_equal(a.error, KERR_NONE);
	/* a check that is done holds nothing any more */
	REFUSED(p, n, KERR_NONE);
	records_check_end(&a);
	records_check_end(&b);
	REFUSED(p, n, KERR_NONE);
	free(p);
	free(z);
	free(m.records);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, check_setup, check_teardown)
	const struct CMUnitTest tests[] = {
		T(test_good),
		T(test_is_long),
		T(test_max_timestamp),
		T(test_shape),
		T(test_crc),
		T(test_header),
		T(test_producers),
		T(test_too_large),
		T(test_zstd_versions),
		T(test_times),
		T(test_log_append_time),
		T(test_compacted),
		T(test_many_bad),
		T(test_framing),
		T(test_inner_lengths),
		T(test_damaged_codec),
		T(test_bomb),
		T(test_expanded_max),
		T(test_large_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
