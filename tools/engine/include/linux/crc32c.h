/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_CRC32C_H
#define _ENGINE_LINUX_CRC32C_H

#include <linux/types.h>

/* The raw register, as the kernel's: seed ~0 and invert at the end. */
u32 crc32c(u32 crc, const void *buf, size_t len);

#endif
