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

/* One thread each. */
struct workqueue_struct *alloc_workqueue(const char *name, unsigned int flags, int max_active, ...);
void destroy_workqueue(struct workqueue_struct *wq);
bool queue_work(struct workqueue_struct *wq, struct work_struct *work);
bool flush_work(struct work_struct *work);
bool cancel_work_sync(struct work_struct *work);

#endif
