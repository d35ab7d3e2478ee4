/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_PREEMPT_H
#define _ENGINE_LINUX_PREEMPT_H

/* A reader that spins on a preempted writer is slow here, not stuck. */
#define preempt_disable()	do { } while (0)
#define preempt_enable()	do { } while (0)

#endif
