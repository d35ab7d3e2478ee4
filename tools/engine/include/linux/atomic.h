/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_ATOMIC_H
#define _ENGINE_LINUX_ATOMIC_H

#include <linux/types.h>
#include <asm/barrier.h>

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	s64 counter;
} atomic64_t;

#define ATOMIC_INIT(v)	{ (v) }

static inline int atomic_read(const atomic_t *a)
{
	return __atomic_load_n(&a->counter, __ATOMIC_RELAXED);
}

static inline void atomic_set(atomic_t *a, int v)
{
	__atomic_store_n(&a->counter, v, __ATOMIC_RELAXED);
}

static inline void atomic_add(int d, atomic_t *a)
{
	__atomic_fetch_add(&a->counter, d, __ATOMIC_RELAXED);
}

static inline void atomic_inc(atomic_t *a)
{
	__atomic_fetch_add(&a->counter, 1, __ATOMIC_RELAXED);
}

static inline int atomic_inc_return_release(atomic_t *a)
{
	return __atomic_add_fetch(&a->counter, 1, __ATOMIC_RELEASE);
}

static inline void atomic_dec(atomic_t *a)
{
	__atomic_fetch_sub(&a->counter, 1, __ATOMIC_RELAXED);
}

static inline bool atomic_dec_and_test(atomic_t *a)
{
	return __atomic_sub_fetch(&a->counter, 1, __ATOMIC_ACQ_REL) == 0;
}

/* Add @d unless it is @u; was it added? */
static inline bool atomic_add_unless(atomic_t *a, int d, int u)
{
	int c = atomic_read(a);

	while (c != u)
		if (__atomic_compare_exchange_n(&a->counter, &c, c + d, true, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

static inline bool atomic_inc_not_zero(atomic_t *a)
{
	return atomic_add_unless(a, 1, 0);
}

static inline s64 atomic64_read(const atomic64_t *a)
{
	return __atomic_load_n(&a->counter, __ATOMIC_RELAXED);
}

static inline void atomic64_set(atomic64_t *a, s64 v)
{
	__atomic_store_n(&a->counter, v, __ATOMIC_RELAXED);
}

static inline void atomic64_add(s64 d, atomic64_t *a)
{
	__atomic_fetch_add(&a->counter, d, __ATOMIC_RELAXED);
}

static inline void atomic64_inc(atomic64_t *a)
{
	atomic64_add(1, a);
}

#endif
