// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * RCU: liburcu's "bulletproof" flavour, whose threads need not register; under
 * TSan, which cannot see into it, a read-write lock.  In a file of its own:
 * liburcu's headers use names of the kernel too.
 */
void rcu_read_lock(void);
void rcu_read_unlock(void);
void synchronize_rcu(void);

#ifdef __SANITIZE_THREAD__

#include <pthread.h>

static pthread_rwlock_t rcu = PTHREAD_RWLOCK_INITIALIZER;

void rcu_read_lock(void)
{
	pthread_rwlock_rdlock(&rcu);
}

void rcu_read_unlock(void)
{
	pthread_rwlock_unlock(&rcu);
}

void synchronize_rcu(void)
{
	pthread_rwlock_wrlock(&rcu);
	pthread_rwlock_unlock(&rcu);
}

#else

#define URCU_NO_COMPAT_IDENTIFIERS
#include <urcu/urcu-bp.h>

void rcu_read_lock(void)
{
	urcu_bp_read_lock();
}

void rcu_read_unlock(void)
{
	urcu_bp_read_unlock();
}

void synchronize_rcu(void)
{
	urcu_bp_synchronize_rcu();
}

#endif
