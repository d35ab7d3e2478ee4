/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_UNALIGNED_H
#define _ENGINE_LINUX_UNALIGNED_H

#include <endian.h>
#include <string.h>

#include <linux/types.h>

#define SHIM_UNALIGNED(bits, end)					\
static inline u##bits get_unaligned_##end##bits(const void *p)		\
{									\
	u##bits v;							\
									\
	memcpy(&v, p, sizeof(v));					\
	return end##bits##toh(v);					\
}									\
									\
static inline void put_unaligned_##end##bits(u##bits v, void *p)	\
{									\
	v = hto##end##bits(v);						\
	memcpy(p, &v, sizeof(v));					\
}

SHIM_UNALIGNED(16, be)
SHIM_UNALIGNED(32, be)
SHIM_UNALIGNED(64, be)
SHIM_UNALIGNED(16, le)
SHIM_UNALIGNED(32, le)
SHIM_UNALIGNED(64, le)
#undef SHIM_UNALIGNED

#endif
