/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_SCHED_SIGNAL_H
#define _ENGINE_LINUX_SCHED_SIGNAL_H

#include <linux/wait.h>

#define current				NULL
#define fatal_signal_pending(task)	((void)(task), shim_killed)

#endif
