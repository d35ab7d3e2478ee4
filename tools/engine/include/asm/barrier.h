/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_ASM_BARRIER_H
#define _ENGINE_ASM_BARRIER_H

#include <linux/compiler.h>

#define smp_load_acquire(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define smp_store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)

#ifdef __SANITIZE_THREAD__
/* TSan does not model fences; it does model a read-modify-write of one word. */
extern int shim_fence_word;
#define smp_mb()	((void)__atomic_fetch_add(&shim_fence_word, 0, __ATOMIC_SEQ_CST))
#else
#define smp_mb()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
#define smp_rmb()	smp_mb()
#define smp_wmb()	smp_mb()

#endif
