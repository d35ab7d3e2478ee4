/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* One "CPU" that all threads share. */
#ifndef _ENGINE_LINUX_PERCPU_H
#define _ENGINE_LINUX_PERCPU_H

#define DECLARE_PER_CPU(type, name)	extern type name
#define DEFINE_PER_CPU(type, name)	type name
#define per_cpu(name, cpu)		(*((void)(cpu), &(name)))
#define for_each_possible_cpu(cpu)	for ((cpu) = 0; (cpu) < 1; (cpu)++)
#define this_cpu_inc(x)			((void)__atomic_fetch_add(&(x), 1, __ATOMIC_RELAXED))

#endif
