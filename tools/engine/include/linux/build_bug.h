/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_BUILD_BUG_H
#define _ENGINE_LINUX_BUILD_BUG_H

#include <assert.h>

#define BUILD_BUG_ON(cond)	static_assert(!(cond), #cond)

#endif
