/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* crc32c() is declared in <linux/crc32c.h> up to 6.14, in <linux/crc32.h> since. */
#ifndef _PLOG_COMPAT_CRC32C_H
#define _PLOG_COMPAT_CRC32C_H

#ifdef __KERNEL__
#include "have.h"
#endif

#if defined(HAVE_LINUX_CRC32C_H) || !defined(__KERNEL__)
#include <linux/crc32c.h>
#else
#include <linux/crc32.h>
#endif

#endif
