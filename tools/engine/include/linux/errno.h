/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_ERRNO_H
#define _ENGINE_LINUX_ERRNO_H

#include_next <linux/errno.h>

#endif
