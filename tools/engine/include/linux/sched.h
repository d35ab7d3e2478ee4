/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_SCHED_H
#define _ENGINE_LINUX_SCHED_H

#define cond_resched()	((void)0)

#endif
