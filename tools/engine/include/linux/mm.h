/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_MM_H
#define _ENGINE_LINUX_MM_H

#include <linux/slab.h>

#endif
