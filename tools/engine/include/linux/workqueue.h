/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_WORKQUEUE_H
#define _ENGINE_LINUX_WORKQUEUE_H

#include <linux/list.h>

struct workqueue_struct;
struct work_struct;
typedef void (*work_func_t)(struct work_struct *work);

struct work_struct {
	work_func_t func;
	struct list_head entry;
	struct workqueue_struct *wq;	/* queued on last */
	bool pending;
};

#define WQ_UNBOUND	1u
#define WQ_MEM_RECLAIM	2u

#define INIT_WORK(w, f)	do {						\
	(w)->func = (f);						\
	(w)->wq = NULL;							\
	(w)->pending = false;						\
	INIT_LIST_HEAD(&(w)->entry);					\
} while (0)

/* @at: CLOCK_MONOTONIC, milliseconds; @timed: in the queue's list of those that wait */
struct delayed_work {
	struct work_struct work;
	struct list_head timer;
	s64 at;
	bool timed;
};

#define INIT_DELAYED_WORK(w, f)	do {					\
	INIT_WORK(&(w)->work, f);					\
	INIT_LIST_HEAD(&(w)->timer);					\
	(w)->timed = false;						\
} while (0)

#define to_delayed_work(w)	container_of(w, struct delayed_work, work)

static inline unsigned long msecs_to_jiffies(unsigned int ms)
{
	return ms;
}

/* One thread each. */
struct workqueue_struct *alloc_workqueue(const char *name, unsigned int flags, int max_active, ...);
void destroy_workqueue(struct workqueue_struct *wq);
bool queue_work(struct workqueue_struct *wq, struct work_struct *work);
bool flush_work(struct work_struct *work);
bool cancel_work_sync(struct work_struct *work);

/*
 * One jiffy is a millisecond of CLOCK_MONOTONIC; shim_clock_ms does not hurry it.
 * True: queued; of mod_delayed_work(): it was pending already.
 */
bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *w, unsigned long delay);
bool mod_delayed_work(struct workqueue_struct *wq, struct delayed_work *w, unsigned long delay);
bool cancel_delayed_work_sync(struct delayed_work *w);

#endif
