/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* <asm/unaligned.h> moved to <linux/unaligned.h> in 6.12. */
#ifndef _PLOG_COMPAT_UNALIGNED_H
#define _PLOG_COMPAT_UNALIGNED_H

#ifdef __KERNEL__
#include "have.h"
#endif

#if defined(HAVE_LINUX_UNALIGNED_H) || !defined(__KERNEL__)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#endif
