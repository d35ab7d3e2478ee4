/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_WAIT_H
#define _ENGINE_LINUX_WAIT_H

#include <pthread.h>

#include <linux/atomic.h>

struct wait_queue_head {
	pthread_mutex_t m;
	pthread_cond_t c;
	atomic_t sleepers;
};
typedef struct wait_queue_head wait_queue_head_t;

void init_waitqueue_head(struct wait_queue_head *wq);
void wake_up_all(struct wait_queue_head *wq);

extern __thread bool shim_killed;	/* this thread has a fatal signal */

static inline bool wq_has_sleeper(struct wait_queue_head *wq)
{
	smp_mb();
	return atomic_read(&wq->sleepers) != 0;
}

/*
 * The waker changes the condition first and takes the lock to wake, so that a
 * wake-up between the test and the sleep cannot be lost.
 */
#define wait_event_killable(wq, cond) ({				\
	int __ret = 0;							\
									\
	if (!(cond)) {							\
		pthread_mutex_lock(&(wq).m);				\
		atomic_inc(&(wq).sleepers);				\
		smp_mb();						\
		while (!(cond)) {					\
			if (shim_killed) {				\
				__ret = -ERESTARTSYS;			\
				break;					\
			}						\
			pthread_cond_wait(&(wq).c, &(wq).m);		\
		}							\
		atomic_dec(&(wq).sleepers);				\
		pthread_mutex_unlock(&(wq).m);				\
	}								\
	__ret;								\
})

#define wait_event(wq, cond) do {					\
	bool __killed = shim_killed;					\
									\
	shim_killed = false;						\
	(void)wait_event_killable(wq, cond);				\
	shim_killed = __killed;						\
} while (0)

#define ERESTARTSYS	512

#endif
