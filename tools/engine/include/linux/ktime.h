/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_KTIME_H
#define _ENGINE_LINUX_KTIME_H

#include <linux/types.h>

typedef s64 ktime_t;

/* Both are moved by shim_clock_ms. */
ktime_t ktime_get_real(void);
ktime_t ktime_get_boottime(void);

u64 ktime_get_boottime_ns(void);	/* moved by shim_clock_ms too */

static inline s64 ktime_to_ms(ktime_t t)
{
	return t / 1000000;
}

#endif
