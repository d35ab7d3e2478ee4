/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_RCUPDATE_H
#define _ENGINE_LINUX_RCUPDATE_H

#include <linux/types.h>
#include <asm/barrier.h>

/* liburcu's "bulletproof" flavour; a read-write lock under TSan. */
void rcu_read_lock(void);
void rcu_read_unlock(void);
void synchronize_rcu(void);

static inline void rcu_barrier(void)
{
}

#define RCU_INIT_POINTER(p, v)		WRITE_ONCE(p, v)
#define rcu_assign_pointer(p, v)	smp_store_release(&(p), (v))
#define rcu_dereference(p)		smp_load_acquire(&(p))
#define rcu_dereference_protected(p, c)	((void)(c), READ_ONCE(p))

/* Nobody calls it inside a read section, so waiting here is allowed. */
#define kfree_rcu(p, member)	do {					\
	synchronize_rcu();						\
	kfree(p);							\
} while (0)
#define kvfree_rcu(p, member)	kfree_rcu(p, member)

#endif
