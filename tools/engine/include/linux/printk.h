/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_PRINTK_H
#define _ENGINE_LINUX_PRINTK_H

#include <linux/compiler.h>

#ifndef pr_fmt
#define pr_fmt(fmt) fmt
#endif

void shim_printk(const char *fmt, ...) __printf(1, 2);

#define pr_err(fmt, ...)	shim_printk(pr_fmt(fmt), ##__VA_ARGS__)
#define pr_warn(fmt, ...)	shim_printk(pr_fmt(fmt), ##__VA_ARGS__)
#define pr_info(fmt, ...)	shim_printk(pr_fmt(fmt), ##__VA_ARGS__)
#define pr_warn_ratelimited(fmt, ...)	shim_printk(pr_fmt(fmt), ##__VA_ARGS__)
#define pr_err_ratelimited(fmt, ...)	shim_printk(pr_fmt(fmt), ##__VA_ARGS__)

#endif
