/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_BUG_H
#define _ENGINE_LINUX_BUG_H

#include <stdbool.h>

/* What cannot happen ends the test, as panic_on_warn does in a guest. */
void shim_warn(const char *cond, const char *file, int line);

#define WARN_ON_ONCE(cond) ({						\
	bool __warn = !!(cond);						\
									\
	if (__builtin_expect(__warn, 0))				\
		shim_warn(#cond, __FILE__, __LINE__);			\
	__warn;								\
})
#define WARN_ON(cond)	WARN_ON_ONCE(cond)

#endif
