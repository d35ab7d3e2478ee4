/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_SLAB_H
#define _ENGINE_LINUX_SLAB_H

#include <linux/types.h>
#include <linux/gfp.h>

/* All of them fail where shim_fail_alloc says so. */
void *shim_alloc(size_t size, bool zero);
void kfree(const void *p);
char *kstrdup(const char *s, gfp_t gfp);

#define kmalloc(size, gfp)	((void)(gfp), shim_alloc(size, false))
#define kzalloc(size, gfp)	((void)(gfp), shim_alloc(size, true))
#define kvmalloc(size, gfp)	kmalloc(size, gfp)
#define kvzalloc(size, gfp)	kzalloc(size, gfp)
#define kvfree(p)		kfree(p)

#endif
