/* SPDX-License-Identifier: MIT */
#ifndef PLOG_COMPRESS_H
#define PLOG_COMPRESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reading compressed records bit by bit, whatever they expand to. The bytes may have been
 * made by an enemy. One decompressor holds:
 *   gzip    32 KiB of window
 *   snappy  a window of the block's size, 8 MiB at most and never above 22 times the
 *           compressed block (the most that the format can expand)
 *   lz4     two blocks of at most 4 MiB
 *   zstd    the frame's window, 8 MiB at most; of those with up to 128 MiB (levels 20 and
 *           up) two can be open in the whole process
 * Depends on nothing else of the daemon, so that the library can use it too.
 */

/* The codec bits of a batch's attributes. */
enum compress_type {
	COMPRESS_NONE = 0,
	COMPRESS_GZIP = 1,
	COMPRESS_SNAPPY = 2,	/* framed as Java's snappy does, or one bare block */
	COMPRESS_LZ4 = 3,	/* the LZ4 frame format */
	COMPRESS_ZSTD = 4,
};

struct decompressor;

/* "gzip", or NULL if there is no such type. COMPRESS_NONE is "none". */
const char *compress_name(unsigned int type);

/*
 * Begin to expand the @n bytes at @in, which stay the caller's and must not change.
 * 0, -ENOMEM, -EOPNOTSUPP (no such type, also COMPRESS_NONE), -EBADMSG (not data of that
 * type), -EBUSY (a large window, and as many as may are open: try again later).
 */
int decompress_open(struct decompressor **out, unsigned int type, const uint8_t *in, size_t n);

/*
 * The next bytes, at most @n (not 0), into @out. 0 is the end: all input was used and
 * it was complete. -EBADMSG for input that is damaged, cut short or followed by garbage;
 * -ENOMEM. Never looks at more input than it needs for @n bytes of output. After an error
 * every call gives the same error.
 */
ssize_t decompress_read(struct decompressor *d, uint8_t *out, size_t n);

/* Free everything. NULL is allowed. */
void decompress_close(struct decompressor *d);

#endif
