// SPDX-License-Identifier: MIT
/* Decompression in pieces, of good and bad data, and CRC32C. */
#include "cm.h"

#include <errno.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "log/compress.h"
#include "log/crc32c.h"
#include "maker.h"

/* Text that compresses, with some noise in it. */
static uint8_t *text(size_t n)
{
	uint8_t *p = malloc(n ? n : 1);
	uint32_t x = 1;
	size_t i;

	for (i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = x >> 28 ? (uint8_t)"the quick brown fox "[i % 20] : (uint8_t)(x >> 20);
	}
	return p;
}

/* Expand in pieces of @step; *@out to be freed. */
static int expand(unsigned int codec, const uint8_t *in, size_t n, size_t step, uint8_t **out,
		  size_t *size)
{
	struct decompressor *d;
	size_t room = 0;
	/* blocks of their own, so that the sanitizer sees one byte too many */
	uint8_t *copy = malloc(n ? n : 1), *piece = malloc(step);
	ssize_t got;
	int err;

	if (n)
		memcpy(copy, in, n);
	*out = NULL;
	*size = 0;
	err = decompress_open(&d, codec, copy, n);
	if (!err) {
		while ((got = decompress_read(d, piece, step)) > 0) {
			assert_true((size_t)got <= step);
			if (*size + (size_t)got > room) {
				room = 2 * (*size + (size_t)got);
				*out = realloc(*out, room);
				assert_non_null(*out);
			}
			memcpy(*out + *size, piece, (size_t)got);
			*size += (size_t)got;
		}
		err = (int)got;
		/* the answer stays */
		assert_int_equal(decompress_read(d, piece, step), got);
		decompress_close(d);
	}
	free(piece);
	free(copy);
	return err;
}

static void round_trip(unsigned int codec, size_t n, size_t step)
{
	uint8_t *in = text(n), *c, *out;
	size_t c_size, size;

	c = maker_compress(codec, in, n, &c_size);
	assert_int_equal(expand(codec, c, c_size, step, &out, &size), 0);
	assert_int_equal(size, n);
	if (n)
		assert_memory_equal(in, out, n);
	free(out);
	free(c);
	free(in);
}

static void test_round_trips(void **state)
{
	static const size_t sizes[] = { 1, 2, 63, 64, 65, 1000, 32768, 65536, 65537, 300000 };
	static const size_t steps[] = { 1, 7, 64, 4096, 65536, 1 << 20 };
	unsigned int codec;
	size_t i, j;

	(void)state;
	for (codec = COMPRESS_GZIP; codec <= COMPRESS_ZSTD; codec++)
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (j = 0; j < sizeof(steps) / sizeof(steps[0]); j++)
				if (steps[j] >= 64 || sizes[i] < 70000)
					round_trip(codec, sizes[i], steps[j]);
}

static void test_snappy_block(void **state)
{
	size_t n = 3 << 20, c_size, size;
	uint8_t *in = text(n), *c, *out;

	(void)state;
	/* one bare block, far larger than a window of 64 KiB */
	c = maker_snappy_block(in, n, &c_size);
	assert_int_equal(expand(COMPRESS_SNAPPY, c, c_size, 65536, &out, &size), 0);
	assert_int_equal(size, n);
	assert_memory_equal(in, out, n);
	free(out);
	free(c);
	free(in);
}

/* A block by hand: every kind of element, also a copy from more than 64 KiB back. */
static void test_snappy_elements(void **state)
{
	static const uint8_t small[] = {
		26,			/* length */
		3 << 2, 'a', 'b', 'c', 'd',		/* literal */
		(4 - 4) << 2 | 1, 4,			/* copy 4 from 4 back */
		(8 - 1) << 2 | 2, 2, 0,			/* copy 8 from 2 back: overlaps */
		(10 - 1) << 2 | 3, 16, 0, 0, 0,		/* copy 10 from 16 back */
	};
	uint8_t *far, *out;
	size_t size;

	(void)state;
	assert_int_equal(expand(COMPRESS_SNAPPY, small, sizeof(small), 5, &out, &size), 0);
	assert_int_equal(size, 26);
	assert_memory_equal(out, "abcdabcdcdcdcdcdabcdabcdcd", 26);
	free(out);

	/* 100000 literal bytes, then 5 from 100000 back */
	far = calloc(1, 3 + 4 + 100000 + 5);
	memcpy(far, "\xa5\x8d\x06", 3);			/* 100005 */
	memcpy(far + 3, "\xf8\x9f\x86\x01", 4);		/* literal, length 100000 - 1 in 3 bytes */
	memcpy(far + 7, "START", 5);
	memcpy(far + 7 + 100000, "\x13\xa0\x86\x01\0", 5);
	assert_int_equal(expand(COMPRESS_SNAPPY, far, 3 + 4 + 100000 + 5, 4096, &out, &size), 0);
	assert_int_equal(size, 100005);
	assert_memory_equal(out + 100000, "START", 5);
	free(out);
	free(far);
}

static void test_snappy_bad(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} bad[] = {
#define B(s) { s, sizeof(s) - 1 }
		B(""), B("\x05"), B("\x80"), B("\xff\xff\xff\xff\x7f"),
		B("\xff\xff\xff\xff\xff\x01"),
		B("\x04\x0c" "abc"),		/* literal cut */
		B("\x03\x0c" "abcd"),		/* literal longer than the block */
		B("\x05\x0c" "abcd"),		/* block not full */
		B("\x04\x0c" "abcd!"),		/* bytes after it */
		B("\x08\x0c" "abcd\x01"),	/* copy cut */
		B("\x08\x0c" "abcd\x01\x05"),	/* from before the beginning */
		B("\x08\x0c" "abcd\x01\0"),	/* from nowhere */
		B("\x08\x0c" "abcd\x05\x04"),	/* longer than the block */
		B("\x04\xfc\xff\xff\xff\xff" "abcd"),
		B("\x04\xf0"),
		B("\x10\x0c" "abcd\x2e\x01"),
		B("\xff\xff\xff\x07\x0c" "abcd"),	/* says 16 MiB, cannot be */
		B("\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0"),
		B("\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x09" "abc"),
		B("\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\xff\xff\xff\xff" "abc"),
		B("\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\0"),	/* a block needs a length */
#undef B
	};
	uint8_t *out;
	size_t i, size;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(expand(COMPRESS_SNAPPY, (const uint8_t *)bad[i].bytes, bad[i].n,
					3, &out, &size), -EBADMSG);
		free(out);
	}
	/* framed and empty is nothing, and no error */
	assert_int_equal(expand(COMPRESS_SNAPPY,
				(const uint8_t *)"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01", 16, 3, &out,
				&size), 0);
	assert_int_equal(size, 0);
}

/* Cut anywhere, garbage behind, one byte changed: refused or expanded, never worse. */
static void test_damaged(void **state)
{
	size_t n = 1500, c_size, size, i;
	uint8_t *in = text(n), *c, *out;
	unsigned int codec;
	int err;

	(void)state;
	for (codec = COMPRESS_GZIP; codec <= COMPRESS_ZSTD; codec++) {
		c = maker_compress(codec, in, n, &c_size);
		for (i = 0; i < c_size; i++) {
			err = expand(codec, c, i, 512, &out, &size);
			/* Java's frame of snappy has no end mark: 16 bytes are a whole one */
			if (codec == COMPRESS_SNAPPY && i == 16)
				assert_int_equal(err, 0);
			else
				assert_int_equal(err, -EBADMSG);
			free(out);
		}
		for (i = 0; i < c_size; i++) {
			c[i] ^= 0x55;
			err = expand(codec, c, c_size, 512, &out, &size);
			assert_true(err == 0 || err == -EBADMSG);
			free(out);
			c[i] ^= 0x55;
		}
		c = realloc(c, c_size + 3);
		memcpy(c + c_size, "abc", 3);
		assert_int_equal(expand(codec, c, c_size + 3, 512, &out, &size), -EBADMSG);
		free(out);
		free(c);
	}
	free(in);
}

static void test_concatenated(void **state)
{
	static const unsigned int codecs[] = { COMPRESS_GZIP, COMPRESS_SNAPPY, COMPRESS_ZSTD };
	uint8_t *in = text(70000), *c, *both, *out;
	size_t c_size, size, i;

	(void)state;
	for (i = 0; i < 3; i++) {
		c = maker_compress(codecs[i], in, 70000, &c_size);
		both = malloc(2 * c_size);
		memcpy(both, c, c_size);
		memcpy(both + c_size, c, c_size);
		assert_int_equal(expand(codecs[i], both, 2 * c_size, 1000, &out, &size), 0);
		assert_int_equal(size, 140000);
		assert_memory_equal(out + 70000, in, 70000);
		free(out);
		free(both);
		free(c);
	}
	free(in);
}

static void test_types(void **state)
{
	struct decompressor *d;

	(void)state;
	assert_int_equal(decompress_open(&d, COMPRESS_NONE, (const uint8_t *)"x", 1), -EOPNOTSUPP);
	assert_int_equal(decompress_open(&d, 5, (const uint8_t *)"x", 1), -EOPNOTSUPP);
	assert_int_equal(decompress_open(&d, 7, (const uint8_t *)"x", 1), -EOPNOTSUPP);
	assert_string_equal(compress_name(0), "none");
	assert_string_equal(compress_name(4), "zstd");
	assert_null(compress_name(5));
	decompress_close(NULL);
}

/* Blocks that need the one before would stop Java's consumers, so they are not taken. */
static void test_lz4_linked(void **state)
{
	LZ4F_preferences_t prefs = { .frameInfo = { .blockMode = LZ4F_blockLinked } };
	uint8_t *in = text(200000), *c = malloc(LZ4F_compressFrameBound(200000, &prefs)), *out;
	size_t n = LZ4F_compressFrame(c, LZ4F_compressFrameBound(200000, &prefs), in, 200000,
				      &prefs), size;

	(void)state;
	assert_int_equal(expand(COMPRESS_LZ4, c, n, 1000, &out, &size), -EBADMSG);
	free(c);
	free(in);
}

/* Windows above 8 MiB: two at a time; above 128 MiB: never. */
static void test_zstd_windows(void **state)
{
	struct decompressor *d[4];
	uint8_t *in = text(100000), *c, *out;
	size_t n, size;

	(void)state;
	c = maker_zstd(in, 100000, 3, 23, &n);
	assert_int_equal(decompress_open(&d[0], COMPRESS_ZSTD, c, n), 0);
	assert_int_equal(decompress_open(&d[1], COMPRESS_ZSTD, c, n), 0);
	assert_int_equal(decompress_open(&d[2], COMPRESS_ZSTD, c, n), 0);
	decompress_close(d[0]);
	decompress_close(d[1]);
	decompress_close(d[2]);
	free(c);
	c = maker_zstd(in, 100000, 22, 27, &n);
	assert_int_equal(decompress_open(&d[0], COMPRESS_ZSTD, c, n), 0);
	assert_int_equal(decompress_open(&d[1], COMPRESS_ZSTD, c, n), 0);
	assert_int_equal(decompress_open(&d[2], COMPRESS_ZSTD, c, n), -EBUSY);
	decompress_close(d[0]);
	assert_int_equal(decompress_open(&d[2], COMPRESS_ZSTD, c, n), 0);
	decompress_close(d[1]);
	decompress_close(d[2]);
	assert_int_equal(expand(COMPRESS_ZSTD, c, n, 1000, &out, &size), 0);
	assert_int_equal(size, 100000);
	free(out);
	free(c);
	c = maker_zstd(in, 100000, 3, 28, &n);
	assert_int_equal(decompress_open(&d[0], COMPRESS_ZSTD, c, n), -EBADMSG);
	free(c);
	free(in);
}

static void test_crc(void **state)
{
	uint8_t *p = text(100000);
	uint32_t a, b;
	size_t n, at;

	(void)state;
	/* the check value of CRC32C, and RFC 3720's */
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c_portable(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(0, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
				32), 0x8a9136aa);
	assert_int_equal(crc32c(0, "", 0), 0);
	for (at = 0; at < 9; at++)
		for (n = 0; n < 300; n++)
			assert_int_equal(crc32c(0, p + at, n), crc32c_portable(0, p + at, n));
	a = crc32c(0, p, 100000);
	b = crc32c(crc32c(0, p, 12345), p + 12345, 100000 - 12345);
	assert_int_equal(a, b);
	assert_int_equal(a, crc32c_portable(crc32c_portable(0, p, 777), p + 777, 100000 - 777));
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_snappy_block),
		cmocka_unit_test(test_snappy_elements),
		cmocka_unit_test(test_snappy_bad),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_concatenated),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_lz4_linked),
		cmocka_unit_test(test_zstd_windows),
		cmocka_unit_test(test_crc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
