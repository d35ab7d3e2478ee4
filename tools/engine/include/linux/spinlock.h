/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_SPINLOCK_H
#define _ENGINE_LINUX_SPINLOCK_H

#include <pthread.h>

#include <linux/atomic.h>
#include <linux/lockdep.h>

/* A thread that spins would burn the quantum of the one it waits for. */
typedef struct {
	pthread_mutex_t m;
} spinlock_t;

#define DEFINE_SPINLOCK(name) spinlock_t name = { PTHREAD_MUTEX_INITIALIZER }

static inline void spin_lock_init(spinlock_t *l)
{
	pthread_mutex_init(&l->m, NULL);
}

static inline void spin_lock(spinlock_t *l)
{
	pthread_mutex_lock(&l->m);
}

static inline void spin_unlock(spinlock_t *l)
{
	pthread_mutex_unlock(&l->m);
}

#endif
