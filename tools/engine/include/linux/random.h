/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_RANDOM_H
#define _ENGINE_LINUX_RANDOM_H

#include <linux/types.h>

u64 get_random_u64(void);	/* shim_random, if a test has set it */

#endif
