/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_SEQLOCK_H
#define _ENGINE_LINUX_SEQLOCK_H

#include <asm/barrier.h>

typedef struct {
	unsigned int seq;
} seqcount_t;

#define seqcount_init(s)	((s)->seq = 0)

static inline unsigned int read_seqcount_begin(const seqcount_t *s)
{
	unsigned int seq;

	while ((seq = smp_load_acquire(&s->seq)) & 1)
		;
	return seq;
}

static inline int read_seqcount_retry(const seqcount_t *s, unsigned int start)
{
	smp_rmb();
	return READ_ONCE(s->seq) != start;
}

static inline void write_seqcount_begin(seqcount_t *s)
{
	WRITE_ONCE(s->seq, s->seq + 1);
	smp_wmb();
}

static inline void write_seqcount_end(seqcount_t *s)
{
	smp_store_release(&s->seq, s->seq + 1);
}

#endif
