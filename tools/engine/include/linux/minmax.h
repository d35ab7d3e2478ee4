/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_MINMAX_H
#define _ENGINE_LINUX_MINMAX_H

#define min_t(type, a, b) ({ type __a = (a), __b = (b); __a < __b ? __a : __b; })
#define max_t(type, a, b) ({ type __a = (a), __b = (b); __a > __b ? __a : __b; })
#define clamp_t(type, v, lo, hi)	min_t(type, max_t(type, v, lo), hi)
#define min(a, b)	min_t(__typeof__(a), a, b)
#define max(a, b)	max_t(__typeof__(a), a, b)

#endif
