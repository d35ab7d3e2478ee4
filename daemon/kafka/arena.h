/* SPDX-License-Identifier: MIT */
#ifndef PLOG_ARENA_H
#define PLOG_ARENA_H

#include <stddef.h>

/*
 * Memory with one owner and one end: all that a request is decoded into and all that its
 * answer is built from. What is in it is freed at once, and its sum is limited, so that no
 * request can make the daemon allocate more than its arena was given.
 */
struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;	/* newest first */
	size_t used;			/* bytes handed out, rounding included */
	size_t limit;			/* arena_alloc() fails beyond this sum */
	size_t extra;			/* bytes of memory held beyond one ordinary chunk */
	/* told of each @bytes more of @extra, if it is set; arena_reset() forgets both */
	void (*grown)(void *arg, size_t bytes);
	void *grown_arg;
};

/* Memory of an ordinary chunk: what a small request takes. */
#define ARENA_ORDINARY 16384

/* Begin an arena that hands out at most @limit bytes. Allocates nothing yet. */
void arena_init(struct arena *a, size_t limit);

/*
 * @size zeroed bytes, aligned for any type, valid until arena_reset() or arena_free().
 * NULL when the limit would be passed or memory is out. A @size of 0 gives a valid pointer.
 */
void *arena_alloc(struct arena *a, size_t size);

/* @count elements of @size bytes each, as arena_alloc(); NULL also when the product overflows. */
void *arena_array(struct arena *a, size_t count, size_t size);

/* A copy of @size bytes at @from, with a NUL after them that is not counted. NULL as above. */
void *arena_copy(struct arena *a, const void *from, size_t size);

/* Formatted text that lives as long as the arena; NULL as above. */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Forget everything, keep one chunk of ordinary size for the next request. */
void arena_reset(struct arena *a);

/* Give everything back. The arena may be used again as after arena_init(). */
void arena_free(struct arena *a);

#endif
