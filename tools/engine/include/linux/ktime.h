/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_KTIME_H
#define _ENGINE_LINUX_KTIME_H

#include <linux/types.h>

typedef s64 ktime_t;

ktime_t ktime_get_real(void);	/* moved by shim_clock_ms */

static inline s64 ktime_to_ms(ktime_t t)
{
	return t / 1000000;
}

#endif
