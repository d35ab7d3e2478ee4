/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection: needs a kernel with CONFIG_FAULT_INJECTION and its FAILSLAB,
 * FAIL_PAGE_ALLOC and FAULT_INJECTION_USERCOPY.
 */
#ifndef PLOG_SELFTESTS_INJECT_H
#define PLOG_SELFTESTS_INJECT_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline bool knob(const char *name, const char *value)
{
	char path[200];
	int fd, ret;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s", name);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return false;
	ret = (int)write(fd, value, strlen(value));
	close(fd);
	return ret > 0;
}

static int nth_fd = -1;

static inline bool injection_ready(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/fail-nth", gettid());
	nth_fd = open(path, O_RDWR);
	if (nth_fd < 0)
		return false;
	/* quietly: the stack of each injected failure would fill the log */
	knob("failslab/verbose", "0");
	knob("fail_page_alloc/verbose", "0");
	knob("fail_usercopy/verbose", "0");
	return knob("failslab/ignore-gfp-wait", "N") &&
	       knob("fail_page_alloc/ignore-gfp-wait", "N") &&
	       knob("fail_page_alloc/ignore-gfp-highmem", "N") &&
	       knob("fail_page_alloc/min-order", "0");
}

/* The stack must not want to grow while an allocation is to fail: SIGSEGV. */
static inline void grow_stack(void)
{
	volatile char deep[1 << 20];
	size_t i;

	for (i = 0; i < sizeof(deep); i += 1024)
		deep[i] = 1;
}

#define NEED_INJECTION()							\
	do {									\
		if (nth_fd < 0)							\
			SKIP(return, "no fault injection in this kernel");	\
	} while (0)

#endif
