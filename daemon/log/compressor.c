// SPDX-License-Identifier: MIT
#include "compressor.h"

#include <errno.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define PIECE (32 << 10)	/* of input for snappy and lz4, of output for gzip and zstd */
#define ZSTD_HIGH (8 << 20)	/* above it levels past 19 would take hundreds of megabytes */
#define LZ4_DEFAULT 9		/* Kafka's number for the fast form */

struct compressor {
	unsigned int type;
	struct buf *to;
	z_stream gzip;
	bool gzip_ready;
	LZ4F_cctx *lz4;
	ZSTD_CCtx *zstd;
	uint8_t *piece;
	size_t held;		/* bytes of @piece that wait: snappy */
	uint8_t *out;		/* what a piece is compressed into */
	size_t out_size;
};

int compress_default_level(unsigned int type)
{
	switch (type) {
	case COMPRESS_GZIP:
		return Z_DEFAULT_COMPRESSION;
	case COMPRESS_LZ4:
		return LZ4_DEFAULT;
	case COMPRESS_ZSTD:
		return ZSTD_CLEVEL_DEFAULT;
	}
	return 0;
}

/* Blocks that stand alone: Kafka's reader takes no others. */
static int open_lz4(struct compressor *c, int level)
{
	LZ4F_preferences_t prefs = {
		.frameInfo = { .blockMode = LZ4F_blockIndependent, .blockSizeID = LZ4F_max64KB },
	};
	size_t n;

	if (level != LZ4_DEFAULT)
		prefs.compressionLevel = level < 3 ? 3 : level > 12 ? 12 : level;
	c->out_size = LZ4F_compressBound(PIECE, &prefs);
	c->out = malloc(c->out_size);
	if (!c->out || LZ4F_isError(LZ4F_createCompressionContext(&c->lz4, LZ4F_VERSION)))
		return -ENOMEM;
	n = LZ4F_compressBegin(c->lz4, c->out, c->out_size, &prefs);
	if (LZ4F_isError(n))
		return -ENOMEM;
	buf_put(c->to, c->out, n);
	return 0;
}

static int open_zstd(struct compressor *c, int level, uint64_t size)
{
	c->out_size = PIECE;
	c->out = malloc(c->out_size);
	c->zstd = ZSTD_createCCtx();
	if (!c->out || !c->zstd)
		return -ENOMEM;
	if (size > ZSTD_HIGH && level > 19)
		level = 19;
	ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setPledgedSrcSize(c->zstd, size);
	return 0;
}

static int open_gzip(struct compressor *c, int level)
{
	c->out_size = PIECE;
	c->out = malloc(c->out_size);
	if (!c->out || deflateInit2(&c->gzip, level, Z_DEFLATED, MAX_WBITS + 16, 8,
				    Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	c->gzip_ready = true;
	return 0;
}

static int open_snappy(struct compressor *c)
{
	static const uint8_t head[] = {
		0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1
	};

	c->out_size = snappy_max_compressed_length(PIECE);
	c->out = malloc(c->out_size);
	c->piece = malloc(PIECE);
	if (!c->out || !c->piece)
		return -ENOMEM;
	buf_put(c->to, head, sizeof(head));
	return 0;
}

int compress_open(struct compressor **out, unsigned int type, int level, uint64_t size,
		  struct buf *to)
{
	struct compressor *c;
	int err = 0;

	if (!compress_name(type))
		return -EOPNOTSUPP;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->type = type;
	c->to = to;
	switch (type) {
	case COMPRESS_GZIP:
		err = open_gzip(c, level);
		break;
	case COMPRESS_SNAPPY:
		err = open_snappy(c);
		break;
	case COMPRESS_LZ4:
		err = open_lz4(c, level);
		break;
	case COMPRESS_ZSTD:
		err = open_zstd(c, level, size);
		break;
	}
	if (err) {
		compress_close(c);
		return err;
	}
	*out = c;
	return 0;
}

static int gzip_write(struct compressor *c, const uint8_t *p, size_t n, int flush)
{
	z_stream *z = &c->gzip;
	int ret;

	z->next_in = (Bytef *)(uintptr_t)p;
	z->avail_in = (uInt)n;
	do {
		z->next_out = c->out;
		z->avail_out = (uInt)c->out_size;
		ret = deflate(z, flush);
		if (ret == Z_STREAM_ERROR)
			return -ENOMEM;
		buf_put(c->to, c->out, c->out_size - z->avail_out);
	} while (!z->avail_out);
	return 0;
}

static int zstd_write(struct compressor *c, const uint8_t *p, size_t n, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = { p, n, 0 };
	size_t rest;

	do {
		ZSTD_outBuffer out = { c->out, c->out_size, 0 };

		rest = ZSTD_compressStream2(c->zstd, &out, &in, end);
		if (ZSTD_isError(rest))
			return -ENOMEM;
		buf_put(c->to, c->out, out.pos);
	} while (end == ZSTD_e_end ? rest : in.pos < in.size);
	return 0;
}

static int snappy_block(struct compressor *c)
{
	size_t n = c->out_size;

	if (!c->held)
		return 0;
	if (snappy_compress((const char *)c->piece, c->held, (char *)c->out, &n) != SNAPPY_OK)
		return -ENOMEM;
	buf_put_be32(c->to, (uint32_t)n);
	buf_put(c->to, c->out, n);
	c->held = 0;
	return 0;
}

static int write_piece(struct compressor *c, const uint8_t *p, size_t n)
{
	size_t k;

	switch (c->type) {
	case COMPRESS_GZIP:
		return gzip_write(c, p, n, Z_NO_FLUSH);
	case COMPRESS_SNAPPY:
		while (n) {
			k = PIECE - c->held < n ? PIECE - c->held : n;
			memcpy(c->piece + c->held, p, k);
			c->held += k;
			p += k;
			n -= k;
			if (c->held == PIECE && snappy_block(c))
				return -ENOMEM;
		}
		return 0;
	case COMPRESS_LZ4:
		k = LZ4F_compressUpdate(c->lz4, c->out, c->out_size, p, n, NULL);
		if (LZ4F_isError(k))
			return -ENOMEM;
		buf_put(c->to, c->out, k);
		return 0;
	case COMPRESS_ZSTD:
		return zstd_write(c, p, n, ZSTD_e_continue);
	}
	buf_put(c->to, p, n);
	return 0;
}

int compress_write(struct compressor *c, const uint8_t *p, size_t n)
{
	while (n) {
		size_t k = n < PIECE ? n : PIECE;
		int err = write_piece(c, p, k);

		if (err)
			return err;
		p += k;
		n -= k;
	}
	return 0;
}

int compress_end(struct compressor *c)
{
	size_t n;

	switch (c->type) {
	case COMPRESS_GZIP:
		return gzip_write(c, NULL, 0, Z_FINISH);
	case COMPRESS_SNAPPY:
		return snappy_block(c);
	case COMPRESS_LZ4:
		n = LZ4F_compressEnd(c->lz4, c->out, c->out_size, NULL);
		if (LZ4F_isError(n))
			return -ENOMEM;
		buf_put(c->to, c->out, n);
		return 0;
	case COMPRESS_ZSTD:
		return zstd_write(c, NULL, 0, ZSTD_e_end);
	}
	return 0;
}

void compress_close(struct compressor *c)
{
	if (!c)
		return;
	if (c->gzip_ready)
		deflateEnd(&c->gzip);
	LZ4F_freeCompressionContext(c->lz4);
	ZSTD_freeCCtx(c->zstd);
	free(c->piece);
	free(c->out);
	free(c);
}
