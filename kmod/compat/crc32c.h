/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* crc32c() is declared in <linux/crc32c.h> up to 6.14, in <linux/crc32.h> since. */
#ifndef _PLOG_COMPAT_CRC32C_H
#define _PLOG_COMPAT_CRC32C_H

#if __has_include(<linux/crc32c.h>)
#include <linux/crc32c.h>
#else
#include <linux/crc32.h>
#endif

#endif
