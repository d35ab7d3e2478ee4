// SPDX-License-Identifier: MIT
#include "maker.h"

#include <endian.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "log/compress.h"
#include "log/crc32c.h"

#define HEADER 61

static void must(bool ok)
{
	if (!ok)
		abort();
}

void maker_begin(struct maker *m)
{
	memset(m, 0, sizeof(*m));
	m->max_timestamp = -1;
}

void maker_bytes(struct maker *m, const void *p, size_t n)
{
	if (m->size + n > m->cap) {
		m->cap = (m->size + n) * 2;
		m->records = realloc(m->records, m->cap);
		must(m->records);
	}
	if (n && p)
		memcpy(m->records + m->size, p, n);
	m->size += n;
}

void maker_number(struct maker *m, int64_t v)
{
	uint64_t z = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
	uint8_t byte;

	do {
		byte = z & 0x7f;
		z >>= 7;
		if (z)
			byte |= 0x80;
		maker_bytes(m, &byte, 1);
	} while (z);
}

void maker_record_raw(struct maker *m, int64_t length_change, int64_t timestamp_delta,
		      int64_t offset_delta, const void *key, int64_t key_size, const void *value,
		      int64_t value_size, int64_t headers)
{
	struct maker body;

	maker_begin(&body);
	maker_bytes(&body, "", 1);
	maker_number(&body, timestamp_delta);
	maker_number(&body, offset_delta);
	maker_number(&body, key_size);
	if (key)
		maker_bytes(&body, key, (size_t)key_size);
	maker_number(&body, value_size);
	if (value)
		maker_bytes(&body, value, (size_t)value_size);
	maker_number(&body, headers);
	for (; headers > 0 && headers < 1000; headers--)
		maker_bytes(&body, "\0\x01", 2);
	maker_number(m, (int64_t)body.size + length_change);
	maker_bytes(m, body.records, body.size);
	free(body.records);
	m->count++;
}

void maker_record(struct maker *m, int64_t timestamp, const void *key, size_t key_size,
		  const void *value, size_t value_size)
{
	if (!m->count)
		m->base_timestamp = timestamp;
	if (timestamp > m->max_timestamp)
		m->max_timestamp = timestamp;
	maker_record_raw(m, 0, timestamp - m->base_timestamp, m->count, key,
			 key ? (int64_t)key_size : -1, value, value ? (int64_t)value_size : -1, 0);
}

uint8_t *maker_snappy_block(const uint8_t *p, size_t n, size_t *size)
{
	uint8_t *out;

	*size = snappy_max_compressed_length(n);
	out = malloc(*size);
	must(out && snappy_compress((const char *)p, n, (char *)out, size) == SNAPPY_OK);
	return out;
}

/* As Java does it: blocks of 32 KiB. */
static uint8_t *snappy_framed(const uint8_t *p, size_t n, size_t *size)
{
	static const uint8_t head[] = {
		0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1
	};
	struct maker m;

	maker_begin(&m);
	maker_bytes(&m, head, sizeof(head));
	while (n) {
		size_t k = n < 32768 ? n : 32768, c;
		uint8_t *block = maker_snappy_block(p, k, &c);
		uint32_t length = htobe32((uint32_t)c);

		maker_bytes(&m, &length, sizeof(length));
		maker_bytes(&m, block, c);
		free(block);
		p += k;
		n -= k;
	}
	*size = m.size;
	return m.records;
}

static uint8_t *gzip(const uint8_t *p, size_t n, size_t *size)
{
	z_stream z = { 0 };
	uint8_t *out;

	must(deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	*size = deflateBound(&z, n);
	out = malloc(*size);
	must(out);
	z.next_in = (Bytef *)(uintptr_t)p;
	z.avail_in = (uInt)n;
	z.next_out = out;
	z.avail_out = (uInt)*size;
	must(deflate(&z, Z_FINISH) == Z_STREAM_END);
	*size = z.total_out;
	deflateEnd(&z);
	return out;
}

static uint8_t *lz4(const uint8_t *p, size_t n, size_t *size)
{
	LZ4F_preferences_t prefs = { .frameInfo = { .blockMode = LZ4F_blockIndependent } };
	uint8_t *out;

	*size = LZ4F_compressFrameBound(n, &prefs);
	out = malloc(*size);
	must(out);
	*size = LZ4F_compressFrame(out, *size, p, n, &prefs);
	must(!LZ4F_isError(*size));
	return out;
}

uint8_t *maker_zstd(const uint8_t *p, size_t n, int level, int window_log, size_t *size)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_inBuffer in = { p, n, 0 };
	ZSTD_outBuffer out = { NULL, ZSTD_compressBound(n) + 64, 0 };
	size_t ret;

	out.dst = malloc(out.size);
	must(c && out.dst);
	ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window_log);
	ret = ZSTD_compressStream2(c, &out, &in, ZSTD_e_continue);
	must(!ZSTD_isError(ret));
	must(!ZSTD_compressStream2(c, &out, &in, ZSTD_e_end));
	ZSTD_freeCCtx(c);
	*size = out.pos;
	return out.dst;
}

uint8_t *maker_compress(unsigned int codec, const uint8_t *p, size_t n, size_t *size)
{
	uint8_t *out;

	switch (codec) {
	case COMPRESS_GZIP:
		return gzip(p, n, size);
	case COMPRESS_SNAPPY:
		return snappy_framed(p, n, size);
	case COMPRESS_LZ4:
		return lz4(p, n, size);
	case COMPRESS_ZSTD:
		return maker_zstd(p, n, 3, 0, size);
	}
	out = malloc(n ? n : 1);
	must(out);
	if (n)
		memcpy(out, p, n);
	*size = n;
	return out;
}

uint8_t *maker_wrap(const struct maker *m, unsigned int codec, const uint8_t *p, size_t n,
		    size_t *size)
{
	uint8_t *batch = calloc(1, HEADER + n);

	must(batch);
	*size = HEADER + n;
	memcpy(batch + HEADER, p, n);
	maker_set32(batch, *size, AT_LENGTH, (uint32_t)(*size - 12));
	maker_set32(batch, *size, AT_LEADER_EPOCH, UINT32_MAX);
	maker_set8(batch, *size, AT_MAGIC, 2);
	maker_set16(batch, *size, AT_ATTRIBUTES, (uint16_t)codec);
	maker_set32(batch, *size, AT_LAST_OFFSET_DELTA, (uint32_t)(m->count - 1));
	maker_set64(batch, *size, AT_BASE_TIMESTAMP, (uint64_t)m->base_timestamp);
	maker_set64(batch, *size, AT_MAX_TIMESTAMP, (uint64_t)m->max_timestamp);
	maker_set64(batch, *size, AT_PRODUCER_ID, UINT64_MAX);
	maker_set16(batch, *size, AT_PRODUCER_EPOCH, UINT16_MAX);
	maker_set32(batch, *size, AT_BASE_SEQUENCE, UINT32_MAX);
	maker_set32(batch, *size, AT_COUNT, (uint32_t)m->count);
	return batch;
}

uint8_t *maker_end(struct maker *m, unsigned int codec, size_t *size)
{
	size_t n;
	uint8_t *c = maker_compress(codec, m->records, m->size, &n);
	uint8_t *batch = maker_wrap(m, codec, c, n, size);

	free(c);
	free(m->records);
	m->records = NULL;
	return batch;
}

uint8_t *maker_simple(unsigned int codec, int32_t count, size_t value_size, size_t *size)
{
	uint8_t *value = malloc(value_size ? value_size : 1);
	struct maker m;
	int32_t i;

	must(value);
	memset(value, 'v', value_size);
	maker_begin(&m);
	for (i = 0; i < count; i++)
		maker_record(&m, 1000 + i, "key", 3, value, value_size);
	free(value);
	return maker_end(&m, codec, size);
}

void maker_crc(uint8_t *batch, size_t size)
{
	uint32_t crc = htobe32(crc32c(0, batch + AT_ATTRIBUTES, size - AT_ATTRIBUTES));

	memcpy(batch + AT_CRC, &crc, sizeof(crc));
}

void maker_set8(uint8_t *batch, size_t size, size_t at, uint8_t v)
{
	batch[at] = v;
	maker_crc(batch, size);
}

void maker_set16(uint8_t *batch, size_t size, size_t at, uint16_t v)
{
	v = htobe16(v);
	memcpy(batch + at, &v, sizeof(v));
	maker_crc(batch, size);
}

void maker_set32(uint8_t *batch, size_t size, size_t at, uint32_t v)
{
	v = htobe32(v);
	memcpy(batch + at, &v, sizeof(v));
	maker_crc(batch, size);
}

void maker_set64(uint8_t *batch, size_t size, size_t at, uint64_t v)
{
	v = htobe64(v);
	memcpy(batch + at, &v, sizeof(v));
	maker_crc(batch, size);
}
