/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_COMPILER_H
#define _ENGINE_LINUX_COMPILER_H

#define __user
#define __rcu
#define __force
#define __must_check	__attribute__((warn_unused_result))
#define __printf(a, b)	__attribute__((format(printf, a, b)))
#define __maybe_unused	__attribute__((unused))
#ifndef __packed
#define __packed	__attribute__((packed))
#endif
#define __acquires(x)
#define __releases(x)
#define noinline_for_stack
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define fallthrough	__attribute__((fallthrough))

/* Relaxed atomics: what the kernel means by them, and TSan understands. */
#define READ_ONCE(x)	 __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#endif
