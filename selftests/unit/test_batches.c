// SPDX-License-Identifier: MIT
/* Batches that are right: reading them, finding in them, storing them in another codec. */
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/error.h"
#include "log/compress.h"
#include "maker.h"

static void test_iterator(void **state)
{
	unsigned int codec;
	size_t n;

	(void)state;
	for (codec = 0; codec <= COMPRESS_ZSTD; codec++) {
		struct records_iter it;
		struct record r;
		struct maker m;
		uint8_t *p;

		maker_begin(&m);
		maker_record(&m, 100, "k0", 2, "v0", 2);
		maker_record(&m, 90, NULL, 0, NULL, 0);
		maker_record(&m, 110, "", 0, "", 0);
		p = maker_end(&m, codec, &n);
		maker_set64(p, n, AT_BASE_OFFSET, 1000);
		assert_int_equal(records_iter_open(&it, p, n, UINT64_MAX), 0);
		assert_int_equal(records_iter_next(&it, &r, NULL), 1);
		assert_int_equal(r.offset, 1000);
		assert_int_equal(r.timestamp, 100);
		assert_int_equal(r.key_size, 2);
		assert_int_equal(r.value_size, 2);
		if (codec == COMPRESS_NONE) {
			assert_memory_equal(r.key, "k0", 2);
			assert_memory_equal(r.value, "v0", 2);
		} else {
			assert_null(r.key);
			assert_null(r.value);
		}
		assert_int_equal(records_iter_next(&it, &r, NULL), 1);
		assert_int_equal(r.offset, 1001);
		assert_int_equal(r.timestamp, 90);
		assert_int_equal(r.key_size, -1);
		assert_int_equal(r.value_size, -1);
		assert_null(r.key);
		assert_int_equal(records_iter_next(&it, &r, NULL), 1);
		assert_int_equal(r.offset, 1002);
		assert_int_equal(r.timestamp, 110);
		assert_int_equal(r.key_size, 0);
		assert_int_equal(records_iter_next(&it, &r, NULL), 0);
		assert_int_equal(records_iter_next(&it, &r, NULL), 0);
		records_iter_close(&it);
		/* with the broker's time all have it */
		records_stamp(p, n, true, 5000);
		assert_int_equal(records_iter_open(&it, p, n, UINT64_MAX), 0);
		while (records_iter_next(&it, &r, NULL) > 0)
			assert_int_equal(r.timestamp, 5000);
		records_iter_close(&it);
		free(p);
	}
}

/* B6 inside of one batch, compressed or not, and with times out of order. */
static void test_find_time(void **state)
{
	static const int64_t times[] = { 2, 4, 6, 8 };
	static const int64_t want[][2] = {
		{ 0, 0 }, { 2, 0 }, { 3, 1 }, { 4, 1 }, { 5, 2 }, { 7, 3 }, { 8, 3 }, { 9, -1 },
	};
	unsigned int codec;
	struct record r;
	struct maker m;
	uint8_t *p;
	size_t n, i;

	(void)state;
	for (codec = 0; codec <= COMPRESS_ZSTD; codec++) {
		maker_begin(&m);
		for (i = 0; i < 4; i++)
			maker_record(&m, times[i], NULL, 0, "v", 1);
		p = maker_end(&m, codec, &n);
		maker_set64(p, n, AT_BASE_OFFSET, 0);
		for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
			int ret = records_find_time(p, n, 0, want[i][0], false, NULL, &r);

			assert_int_equal(ret, want[i][1] >= 0);
			if (ret) {
				assert_int_equal(r.offset, want[i][1]);
				assert_int_equal(r.timestamp, times[want[i][1]]);
			}
		}
		assert_int_equal(records_find_time(p, n, 0, 0, true, NULL, &r), 1);
		assert_int_equal(r.offset, 3);
		free(p);

		maker_begin(&m);
		maker_record(&m, 5, NULL, 0, "v", 1);
		maker_record(&m, 9, NULL, 0, "v", 1);
		maker_record(&m, 1, NULL, 0, "v", 1);
		maker_record(&m, 9, NULL, 0, "v", 1);
		p = maker_end(&m, codec, &n);
		assert_int_equal(records_find_time(p, n, 0, 6, false, NULL, &r), 1);
		assert_int_equal(r.offset, 1);
		assert_int_equal(records_find_time(p, n, 0, 0, true, NULL, &r), 1);
		assert_int_equal(r.offset, 1);
		assert_int_equal(r.timestamp, 9);
		/* the bytes of a log can be damaged too */
		assert_int_equal(records_find_time(p, n - 1, 0, 0, true, NULL, &r), -EBADMSG);
		free(p);
	}
}

/* What the shape of a compacted log allows: offsets with gaps, a last one that is gone. */
static void test_gaps(void **state)
{
	struct records_iter it;
	struct record r;
	struct maker m;
	uint8_t *p;
	size_t n;

	(void)state;
	maker_begin(&m);
	maker_record_raw(&m, 0, 3, 2, NULL, -1, NULL, -1, 0);
	maker_record_raw(&m, 0, 4, 7, NULL, -1, NULL, -1, 0);
	p = maker_end(&m, COMPRESS_GZIP, &n);
	maker_set64(p, n, AT_BASE_OFFSET, 100);
	maker_set32(p, n, AT_LAST_OFFSET_DELTA, 9);
	assert_int_equal(records_iter_open(&it, p, n, UINT64_MAX), 0);
	assert_int_equal(records_iter_next(&it, &r, NULL), 1);
	assert_int_equal(r.offset, 102);
	assert_int_equal(records_iter_next(&it, &r, NULL), 1);
	assert_int_equal(r.offset, 107);
	assert_int_equal(records_iter_next(&it, &r, NULL), 0);
	records_iter_close(&it);
	free(p);
}

/* Are these the same records? The second batch's CRC and shape are checked as well. */
static void same_records(const uint8_t *a, size_t na, const uint8_t *b, size_t nb)
{
	struct records_iter x, y;
	struct record r, q;
	int ret;

	assert_int_equal(be(b + AT_CRC, 4), records_crc(b, nb));
	assert_int_equal(be(b + AT_LENGTH, 4), nb - 12);
	assert_int_equal(records_iter_open(&x, a, na, UINT64_MAX), 0);
	assert_int_equal(records_iter_open(&y, b, nb, UINT64_MAX), 0);
	do {
		ret = records_iter_next(&x, &r, NULL);
		assert_int_equal(records_iter_next(&y, &q, NULL), ret);
		if (ret > 0) {
			assert_int_equal(r.offset, q.offset);
			assert_int_equal(r.timestamp, q.timestamp);
			assert_int_equal(r.key_size, q.key_size);
			assert_int_equal(r.value_size, q.value_size);
		}
	} while (ret > 0);
	assert_int_equal(ret, 0);
	assert_int_equal(x.expanded, y.expanded);
	records_iter_close(&x);
	records_iter_close(&y);
}

/* compression.type other than "producer": from every codec to every codec. */
static void test_change_codec(void **state)
{
	static const int levels[5][3] = { { 0 }, { -1, 1, 9 }, { 0 }, { 9, 1, 17 }, { 3, -5, 22 } };
	unsigned int from;
	size_t n;
	int to, i;

	(void)state;
	for (from = 0; from <= COMPRESS_ZSTD; from++) {
		uint8_t *p = maker_simple(from, 3000, 50, &n);

		maker_set64(p, n, AT_MAX_TIMESTAMP, 1);	/* to be corrected on the way */
		for (to = 0; to <= COMPRESS_ZSTD; to++) {
			for (i = 0; i < 3; i++) {
				uint8_t *one = malloc(n), *two = malloc(n);
				struct records_check a, b;
				unsigned int steps = 0;

				rules.codec = to;
				rules.level = levels[to][i];
				memcpy(one, p, n);
				memcpy(two, p, n);
				records_check_init(&a, one, n, &rules, &arena);
				assert_true(records_check_is_long(&a) == (from || to));
				assert_int_equal(records_check_run(&a, UINT64_MAX), 1);
				assert_int_equal(a.error, KERR_NONE);
				assert_int_equal(a.data[22], to);
				assert_int_equal(be(a.data + AT_MAX_TIMESTAMP, 8), 3999);
				same_records(p, n, a.data, a.size);
				assert_true((a.data == one) == ((int)from == to));
				records_check_init(&b, two, n, &rules, &arena);
				while (!records_check_run(&b, 70000))
					steps++;
				assert_int_equal(b.error, KERR_NONE);
				assert_in_range(steps, 1, 8);
				assert_int_equal(a.size, b.size);
				assert_memory_equal(a.data, b.data, a.size);
				records_check_end(&a);
				records_check_end(&b);
				free(one);
				free(two);
			}
		}
		free(p);
	}
}

/* What is small as it comes may be too large as the topic wants it. */
static void test_change_codec_too_large(void **state)
{
	struct records_check c;
	uint8_t *p, *plain;
	size_t n, n_plain;

	(void)state;
	plain = maker_simple(COMPRESS_NONE, 1000, 1000, &n_plain);
	p = maker_simple(COMPRESS_GZIP, 1000, 1000, &n);
	rules.codec = COMPRESS_NONE;
	rules.max_message_bytes = (uint32_t)n_plain;
	REFUSED(p, n, KERR_NONE);
	rules.max_message_bytes = (uint32_t)n_plain - 1;
	assert_int_equal(check(p, n, &c, NULL), KERR_MESSAGE_TOO_LARGE);
	assert_non_null(strstr(c.text, "in the topic's codec none"));
	/* and the other way round it is the batch as it comes that counts */
	rules.codec = COMPRESS_GZIP;
	rules.max_message_bytes = (uint32_t)n;
	REFUSED(plain, n_plain, KERR_MESSAGE_TOO_LARGE);
	free(p);
	free(plain);
}

/* Batches that another implementation made. */
static void test_golden(void **state)
{
	static char line[16384], name[16], hex[16000];
	static uint8_t raw[8000];
	FILE *f = fopen(SRCDIR "/golden_batches.txt", "r");
	unsigned int codec = 0;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		static const int64_t times[] = {
			1600000000000, 1600000000005, 1599999999999, 1600000000003
		};
		static const int32_t keys[] = { 3, -1, 0, 300 }, values[] = { 5, 1000, -1, 0 };
		static const int32_t headers[] = { 0, 2, 0, 1 };
		struct records_check c;
		struct records_iter it;
		struct record r;
		unsigned int byte, i;
		size_t n = 0;

		if (line[0] == '#')
			continue;
		assert_int_equal(sscanf(line, "%15s %15999s", name, hex), 2);
		assert_string_equal(name, compress_name(codec));
		while (sscanf(hex + 2 * n, "%2x", &byte) == 1)
			raw[n++] = (uint8_t)byte;
		rules.now_ms = 1600000000010;
		assert_int_equal(check(raw, n, &c, NULL), KERR_NONE);
		assert_int_equal(c.batch.attributes, codec);
		assert_int_equal(c.batch.count, 4);
		assert_int_equal(c.batch.max_timestamp, 1600000000005);
		assert_int_equal(records_iter_open(&it, raw, n, UINT64_MAX), 0);
		for (i = 0; i < 4; i++) {
			assert_int_equal(records_iter_next(&it, &r, NULL), 1);
			assert_int_equal(r.index, i);
			assert_int_equal(r.timestamp, times[i]);
			assert_int_equal(r.key_size, keys[i]);
			assert_int_equal(r.value_size, values[i]);
			assert_int_equal(r.headers, headers[i]);
		}
		assert_int_equal(records_iter_next(&it, &r, NULL), 0);
		records_iter_close(&it);
		codec++;
	}
	fclose(f);
	assert_int_equal(codec, 5);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, check_setup, check_teardown)
	const struct CMUnitTest tests[] = {
		T(test_iterator),
		T(test_find_time),
		T(test_gaps),
		T(test_change_codec),
		T(test_change_codec_too_large),
		T(test_golden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
