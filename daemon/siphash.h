/* SPDX-License-Identifier: MIT */
#ifndef PLOG_SIPHASH_H
#define PLOG_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/*
 * SipHash-2-4: a hash whose collisions nobody can make who does not know the key. For tables
 * of things that strangers name.
 */
struct siphash {
	uint64_t v[4];
	uint64_t tail;		/* bytes that do not make a word yet */
	size_t length;
};

void siphash_init(struct siphash *h, const uint64_t key[2]);
void siphash_add(struct siphash *h, const void *p, size_t n);
uint64_t siphash_end(struct siphash *h);

#endif
