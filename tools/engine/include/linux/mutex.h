/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_MUTEX_H
#define _ENGINE_LINUX_MUTEX_H

#include <pthread.h>

#include <linux/atomic.h>
#include <linux/lockdep.h>

struct mutex {
	pthread_mutex_t m;
};

#define DEFINE_MUTEX(name) struct mutex name = { PTHREAD_MUTEX_INITIALIZER }

static inline void mutex_init(struct mutex *l)
{
	pthread_mutex_init(&l->m, NULL);
}

static inline void mutex_destroy(struct mutex *l)
{
	pthread_mutex_destroy(&l->m);
}

static inline void mutex_lock(struct mutex *l)
{
	pthread_mutex_lock(&l->m);
}

static inline int mutex_trylock(struct mutex *l)
{
	return pthread_mutex_trylock(&l->m) == 0;
}

static inline void mutex_unlock(struct mutex *l)
{
	pthread_mutex_unlock(&l->m);
}

/* -EINTR while the thread plays one that is being killed: shim_killed. */
int mutex_lock_killable(struct mutex *l);

/* Decrement; only if that gives zero, return true with @l held. */
static inline int atomic_dec_and_mutex_lock(atomic_t *a, struct mutex *l)
{
	if (atomic_add_unless(a, -1, 1))
		return 0;
	mutex_lock(l);
	if (atomic_dec_and_test(a))
		return 1;
	mutex_unlock(l);
	return 0;
}

#endif
