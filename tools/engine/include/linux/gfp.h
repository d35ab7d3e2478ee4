/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_GFP_H
#define _ENGINE_LINUX_GFP_H

#define GFP_KERNEL		0u
#define GFP_KERNEL_ACCOUNT	1u

#endif
