/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_KERNEL_H
#define _ENGINE_LINUX_KERNEL_H

#include <stdio.h>

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/types.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* As snprintf(), but the length that was written. */
int scnprintf(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

int kstrtoull(const char *s, unsigned int base, unsigned long long *res);

#endif
