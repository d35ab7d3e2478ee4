// SPDX-License-Identifier: MIT
#include "arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN _Alignof(max_align_t)
struct arena_chunk {
	struct arena_chunk *next;
	size_t size, used;
	_Alignas(max_align_t) unsigned char bytes[];
};

void arena_init(struct arena *a, size_t limit)
{
	*a = (struct arena){ .limit = limit };
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_chunk *c = a->chunks;
	void *p;

	if (size > SIZE_MAX - ALIGN)
		return NULL;
	size = (size + ALIGN - 1) & ~(ALIGN - 1);
	if (!size)
		size = ALIGN;
	if (a->used > a->limit || size > a->limit - a->used)
		return NULL;
	if (!c || size > c->size - c->used) {
		size_t room = size > ARENA_ORDINARY ? size : ARENA_ORDINARY;
		size_t more = c ? room : room - ARENA_ORDINARY;

		if (room > SIZE_MAX - sizeof(*c))
			return NULL;
		c = malloc(sizeof(*c) + room);
		if (!c)
			return NULL;
		c->size = room;
		c->used = 0;
		c->next = a->chunks;
		a->chunks = c;
		a->extra += more;
		if (a->grown && more)
			a->grown(a->grown_arg, more);
	}
	p = c->bytes + c->used;
	c->used += size;
	a->used += size;
	return memset(p, 0, size);
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	return arena_alloc(a, bytes);
}

void *arena_copy(struct arena *a, const void *from, size_t size)
{
	char *p;

	if (size == SIZE_MAX)
		return NULL;
	p = arena_alloc(a, size + 1);
	if (p && size)
		memcpy(p, from, size);
	return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	p = arena_alloc(a, (size_t)n + 1);
	if (!p)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

void arena_reset(struct arena *a)
{
	struct arena_chunk *c = a->chunks, *keep = NULL;

	while (c) {
		struct arena_chunk *next = c->next;

		if (!keep && c->size == ARENA_ORDINARY) {
			keep = c;
			keep->used = 0;
			keep->next = NULL;
		} else {
			free(c);
		}
		c = next;
	}
	a->chunks = keep;
	a->used = 0;
	a->extra = 0;
	a->grown = NULL;
}

void arena_free(struct arena *a)
{
	arena_reset(a);
	free(a->chunks);
	a->chunks = NULL;
}
