/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_LIMITS_H
#define _ENGINE_LINUX_LIMITS_H

#include <limits.h>
#include <stdint.h>

#define U8_MAX	UINT8_MAX
#define U16_MAX	UINT16_MAX
#define S16_MAX	INT16_MAX
#define S32_MAX	INT32_MAX
#define S32_MIN	INT32_MIN
#define U32_MAX	UINT32_MAX
#define S64_MAX	((s64)INT64_MAX)
#define S64_MIN	((s64)INT64_MIN)
#define U64_MAX	((u64)UINT64_MAX)

#endif
