// SPDX-License-Identifier: MIT
#include "compress.h"

#include <errno.h>
#include <lz4frame.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "snappy.h"

#define ZSTD_ORDINARY_LOG 23	/* 8 MiB: all levels up to 19 */
#define ZSTD_LARGE_LOG 27	/* what zstd itself takes without being asked */
#define LARGE_WINDOWS_MAX 2	/* open at once, of those above ZSTD_ORDINARY_LOG */

static atomic_uint large_windows;

struct decompressor {
	unsigned int type;
	const uint8_t *in;
	size_t n, pos;
	bool between;		/* at the end of a member or frame: the input may end here */
	bool large;		/* counted in large_windows */
	int error;
	z_stream gzip;
	LZ4F_dctx *lz4;
	ZSTD_DCtx *zstd;
	struct snappy snappy;
};

const char *compress_name(unsigned int type)
{
	static const char *const names[] = { "none", "gzip", "snappy", "lz4", "zstd" };

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;
}

/* gzip: members may follow each other, as they may in a .gz file. */
static ssize_t gzip_read(struct decompressor *d, uint8_t *out, size_t n)
{
	z_stream *z = &d->gzip;
	size_t before = n > UINT32_MAX ? UINT32_MAX : n;
	int ret;

	z->next_out = out;
	z->avail_out = (uInt)before;
	while (z->avail_out == before) {
		size_t input = d->n - d->pos;

		if (d->between) {
			if (!input)
				return 0;
			if (inflateReset(z) != Z_OK)
				return -EBADMSG;
			d->between = false;
		}
		if (!input)
			return -EBADMSG;
		z->next_in = (Bytef *)(uintptr_t)(d->in + d->pos);
		z->avail_in = input > UINT32_MAX ? UINT32_MAX : (uInt)input;
		ret = inflate(z, Z_NO_FLUSH);
		d->pos = (size_t)(z->next_in - d->in);
		if (ret == Z_MEM_ERROR)
			return -ENOMEM;
		if (ret == Z_STREAM_END)
			d->between = true;
		else if (ret != Z_OK)
			return -EBADMSG;
	}
	return (ssize_t)(before - z->avail_out);
}

static ssize_t lz4_read(struct decompressor *d, uint8_t *out, size_t n)
{
	for (;;) {
		size_t used = d->n - d->pos, got = n, hint;

		if (d->between)
			return used ? -EBADMSG : 0;
		hint = LZ4F_decompress(d->lz4, out, &got, d->in + d->pos, &used, NULL);
		if (LZ4F_isError(hint))
			return -EBADMSG;
		d->pos += used;
		d->between = !hint;
		if (got)
			return (ssize_t)got;
		if (!used && hint)
			return -EBADMSG;	/* wants more than there is */
	}
}

static ssize_t zstd_read(struct decompressor *d, uint8_t *out, size_t n)
{
	ZSTD_outBuffer o = { out, n, 0 };
	ZSTD_inBuffer i = { d->in, d->n, d->pos };

	while (!o.pos) {
		size_t before = i.pos, ret;

		if (d->between && i.pos == i.size)
			break;
		ret = ZSTD_decompressStream(d->zstd, &o, &i);
		if (ZSTD_isError(ret))
			return ZSTD_getErrorCode(ret) == ZSTD_error_memory_allocation ?
				-ENOMEM : -EBADMSG;
		d->between = !ret;
		if (ret && !o.pos && i.pos == before)
			return -EBADMSG;
	}
	d->pos = i.pos;
	return (ssize_t)o.pos;
}

static int gzip_open(struct decompressor *d)
{
	int ret = inflateInit2(&d->gzip, MAX_WBITS + 16);

	return ret == Z_OK ? 0 : ret == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
}

/*
 * Kafka's own reader does not take blocks that need the block before them, so a batch of
 * those would be stored here and stop every Java consumer.
 */
static int lz4_open(struct decompressor *d)
{
	static const uint8_t magic[] = { 0x04, 0x22, 0x4d, 0x18 };

	if (d->n < 7 || memcmp(d->in, magic, sizeof(magic)) || !(d->in[4] & 0x20))
		return -EBADMSG;
	return LZ4F_isError(LZ4F_createDecompressionContext(&d->lz4, LZ4F_VERSION)) ? -ENOMEM : 0;
}

/* The window that the first frame asks for, in bytes; 0 if there is no frame to be seen. */
static uint64_t zstd_window(const uint8_t *p, size_t n)
{
	static const uint8_t magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
	static const unsigned char dictionary[] = { 0, 1, 2, 4 };
	unsigned int i, size;
	uint64_t window = 0;
	size_t at = 5;

	if (n < 6 || memcmp(p, magic, sizeof(magic)))
		return 0;
	if (!(p[4] & 0x20)) {
		window = UINT64_C(1) << (10 + (p[5] >> 3));
		return window + window / 8 * (p[5] & 7);
	}
	/* a single segment: the window is the content */
	at += dictionary[p[4] & 3];
	size = 1u << (p[4] >> 6);
	if (n < at + size)
		return 0;
	for (i = 0; i < size; i++)
		window |= (uint64_t)p[at + i] << (8 * i);
	return size == 2 ? window + 256 : window;
}

static int zstd_open(struct decompressor *d)
{
	uint64_t window = zstd_window(d->in, d->n);
	unsigned int log = ZSTD_ORDINARY_LOG;

	if (window > UINT64_C(1) << ZSTD_LARGE_LOG)
		return -EBADMSG;
	if (window > UINT64_C(1) << ZSTD_ORDINARY_LOG) {
		log = ZSTD_LARGE_LOG;
		if (atomic_fetch_add(&large_windows, 1) >= LARGE_WINDOWS_MAX) {
			atomic_fetch_sub(&large_windows, 1);
			return -EBUSY;
		}
		d->large = true;
	}
	d->zstd = ZSTD_createDCtx();
	if (!d->zstd)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, (int)log);
	d->between = true;
	return d->n ? 0 : -EBADMSG;
}

int decompress_open(struct decompressor **out, unsigned int type, const uint8_t *in, size_t n)
{
	struct decompressor *d;
	int err;

	if (type == COMPRESS_NONE || !compress_name(type))
		return -EOPNOTSUPP;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->type = type;
	d->in = in;
	d->n = n;
	switch (type) {
	case COMPRESS_GZIP:
		err = gzip_open(d);
		break;
	case COMPRESS_SNAPPY:
		err = snappy_open(&d->snappy, in, n);
		break;
	case COMPRESS_LZ4:
		err = lz4_open(d);
		break;
	default:
		err = zstd_open(d);
		break;
	}
	if (err) {
		decompress_close(d);
		return err;
	}
	*out = d;
	return 0;
}

ssize_t decompress_read(struct decompressor *d, uint8_t *out, size_t n)
{
	ssize_t got;

	if (d->error)
		return d->error;
	switch (d->type) {
	case COMPRESS_GZIP:
		got = gzip_read(d, out, n);
		break;
	case COMPRESS_SNAPPY:
		got = snappy_read(&d->snappy, out, n);
		break;
	case COMPRESS_LZ4:
		got = lz4_read(d, out, n);
		break;
	default:
		got = zstd_read(d, out, n);
		break;
	}
	if (got < 0)
		d->error = (int)got;
	return got;
}

void decompress_close(struct decompressor *d)
{
	if (!d)
		return;
	switch (d->type) {
	case COMPRESS_GZIP:
		inflateEnd(&d->gzip);
		break;
	case COMPRESS_SNAPPY:
		snappy_close(&d->snappy);
		break;
	case COMPRESS_LZ4:
		LZ4F_freeDecompressionContext(d->lz4);
		break;
	default:
		ZSTD_freeDCtx(d->zstd);
		break;
	}
	if (d->large)
		atomic_fetch_sub(&large_windows, 1);
	free(d);
}
