// SPDX-License-Identifier: MIT
#include "snappy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_MIN (64 << 10)
#define WINDOW_MAX (8 << 20)
/* Three bytes of input give 64 of output at the very best; the length costs one byte more. */
#define RATIO_MAX 22

/* Java's framing: this, two version numbers of 4 bytes, then blocks with a length each. */
static const uint8_t frame_magic[8] = { 0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0 };
#define FRAME_HEADER 16

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

int snappy_open(struct snappy *s, const uint8_t *in, size_t n)
{
	memset(s, 0, sizeof(*s));
	s->in = in;
	s->end = in + n;
	if (n >= FRAME_HEADER && !memcmp(in, frame_magic, sizeof(frame_magic))) {
		s->framed = true;
		s->in += FRAME_HEADER;
	} else if (!n) {
		return -EBADMSG;
	}
	return 0;
}

/* Room to look back in for a block of @size. */
static int window_fit(struct snappy *s, uint64_t size)
{
	size_t want = WINDOW_MIN;
	uint8_t *p;

	while (want < size && want < WINDOW_MAX)
		want *= 2;
	if (want <= s->window_size)
		return 0;
	p = malloc(want);
	if (!p)
		return -ENOMEM;
	free(s->window);
	s->window = p;
	s->window_size = want;
	return 0;
}

/* 1: a block begins; 0: the input has ended where it may. */
static int block_begin(struct snappy *s, bool first)
{
	uint32_t size, shift, length = 0;
	size_t bytes;
	int err;

	if (s->framed) {
		/* streams may follow each other, each with its own frame header */
		while ((size_t)(s->end - s->in) >= FRAME_HEADER &&
		       !memcmp(s->in, frame_magic, sizeof(frame_magic)))
			s->in += FRAME_HEADER;
		if (s->in == s->end)
			return 0;
		if (s->end - s->in < 4)
			return -EBADMSG;
		size = be32(s->in);
		s->in += 4;
		if (size > (size_t)(s->end - s->in))
			return -EBADMSG;
		s->block_end = s->in + size;
	} else {
		if (!first)
			return s->in == s->end ? 0 : -EBADMSG;
		s->block_end = s->end;
	}
	bytes = (size_t)(s->block_end - s->in);
	for (shift = 0; ; shift += 7) {
		uint8_t byte;

		if (shift > 28 || s->in == s->block_end)
			return -EBADMSG;
		byte = *s->in++;
		if (shift == 28 && byte > 0x0f)
			return -EBADMSG;
		length |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	if (length > (uint64_t)bytes * RATIO_MAX)
		return -EBADMSG;
	err = window_fit(s, length);
	if (err)
		return err;
	s->produced = 0;
	s->left = length;
	s->in_block = true;
	return 1;
}

/* Read the next element's head: a literal or a copy. */
static int element(struct snappy *s)
{
	size_t bytes = (size_t)(s->block_end - s->in);
	uint32_t length, distance, i, extra;
	uint8_t tag;

	if (!bytes)
		return -EBADMSG;
	tag = *s->in++;
	bytes--;
	if (!(tag & 3)) {
		length = tag >> 2;
		if (length >= 60) {
			extra = length - 59;
			if (bytes < extra)
				return -EBADMSG;
			for (length = 0, i = 0; i < extra; i++)
				length |= (uint32_t)s->in[i] << (8 * i);
			s->in += extra;
			bytes -= extra;
		}
		if (length >= s->left || length >= bytes)	/* it counts from 1 */
			return -EBADMSG;
		s->literal = length + 1;
		return 0;
	}
	if ((tag & 3) == 1) {
		if (bytes < 1)
			return -EBADMSG;
		length = ((tag >> 2) & 7) + 4;
		distance = (uint32_t)(tag >> 5) << 8 | s->in[0];
		s->in += 1;
	} else {
		extra = (tag & 3) == 2 ? 2 : 4;
		if (bytes < extra)
			return -EBADMSG;
		length = (tag >> 2) + 1;
		for (distance = 0, i = 0; i < extra; i++)
			distance |= (uint32_t)s->in[i] << (8 * i);
		s->in += extra;
	}
	if (!distance || distance > s->produced || distance > s->window_size || length > s->left)
		return -EBADMSG;
	s->copy = length;
	s->distance = distance;
	return 0;
}

/* Remember @n bytes that went out. */
static void remember(struct snappy *s, const uint8_t *p, size_t n)
{
	size_t at = s->produced & (s->window_size - 1), first = s->window_size - at;

	s->produced += n;
	s->left -= n;
	if (first > n)
		first = n;
	memcpy(s->window + at, p, first);
	if (n > first)
		memcpy(s->window, p + first, n - first);
}

/* Copy *@k bytes, or as many of them as lie in one piece, to out[done]. */
static void copy(struct snappy *s, uint8_t *out, size_t done, size_t *k)
{
	size_t at = (s->produced - s->distance) & (s->window_size - 1), i;

	if (s->distance <= done) {
		/* they went out in this call; what is copied may be copied again */
		for (i = 0; i < *k; i++)
			out[done + i] = out[done + i - s->distance];
	} else {
		if (*k > s->distance)
			*k = s->distance;
		if (*k > s->window_size - at)
			*k = s->window_size - at;
		memcpy(out + done, s->window + at, *k);
	}
	remember(s, out + done, *k);
}

ssize_t snappy_read(struct snappy *s, uint8_t *out, size_t n)
{
	size_t done = 0, k;
	int ret;

	while (done < n) {
		if (!s->in_block) {
			ret = block_begin(s, !s->window);
			if (ret < 0)
				return ret;
			if (!ret)
				break;
			continue;
		}
		if (s->literal) {
			k = s->literal;
			if (k > n - done)
				k = n - done;
			if (k > s->window_size)
				k = s->window_size;
			memcpy(out + done, s->in, k);
			remember(s, out + done, k);
			s->in += k;
			s->literal -= (uint32_t)k;
			done += k;
		} else if (s->copy) {
			k = s->copy;
			if (k > n - done)
				k = n - done;
			copy(s, out, done, &k);
			s->copy -= (uint32_t)k;
			done += k;
		} else if (!s->left) {
			if (s->in != s->block_end)
				return -EBADMSG;
			s->in_block = false;
		} else {
			ret = element(s);
			if (ret)
				return ret;
		}
	}
	return (ssize_t)done;
}

void snappy_close(struct snappy *s)
{
	free(s->window);
	s->window = NULL;
	s->window_size = 0;
}
