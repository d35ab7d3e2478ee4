/* SPDX-License-Identifier: MIT */
#ifndef PLOG_SEEN_H
#define PLOG_SEEN_H

#include <stdint.h>

#include "arena.h"

/* What a request has named so far, to find what it names twice in time that grows with it. */
struct seen {
	struct seen_slot {
		const void *key;	/* NULL: empty */
		uint32_t at;
	} *slots;
	uint32_t mask;
};

/* Room for @n notes. 0, or -1 if @arena has none. */
int seen_init(struct seen *s, struct arena *arena, uint32_t n);

/*
 * Position @at of the request names what @key, which lives as long as @s and is not NULL,
 * stands for. Returns the first position that did: @at, if it is new.
 */
uint32_t seen_note(struct seen *s, const void *key, uint32_t at);

#endif
