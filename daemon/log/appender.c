// SPDX-License-Identifier: MIT
#include "appender.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct appender {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct task *first, **last;
	bool stop;
	unsigned int count;		/* how many there are; of the first one only */
};

static void *thread_main(void *arg)
{
	struct appender *a = arg;
	struct task *list;
	bool stop = false;

	while (!stop) {
		pthread_mutex_lock(&a->lock);
		while (!a->first && !a->stop)
			pthread_cond_wait(&a->some, &a->lock);
		list = a->first;
		a->first = NULL;
		a->last = &a->first;
		stop = !list;
		pthread_mutex_unlock(&a->lock);
		while (list) {
			struct task *task = list;

			/* it is posted elsewhere before it returns */
			list = task->next;
			task->run(task);
		}
	}
	return NULL;
}

struct appender *appenders_start(unsigned int n, struct plog_error *err)
{
	struct appender *all = calloc(n, sizeof(*all));
	sigset_t blocked, old;
	char name[16];
	int ret = ENOMEM;

	for (unsigned int i = 0; all && i < n; i++) {
		struct appender *a = &all[i];

		a->last = &a->first;
		pthread_mutex_init(&a->lock, NULL);
		pthread_cond_init(&a->some, NULL);
		/* signals are the control loop's */
		sigfillset(&blocked);
		pthread_sigmask(SIG_SETMASK, &blocked, &old);
		ret = pthread_create(&a->thread, NULL, thread_main, a);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (ret) {
			pthread_mutex_destroy(&a->lock);
			pthread_cond_destroy(&a->some);
			break;
		}
		all->count++;
		snprintf(name, sizeof(name), "plogd-log%u", i % 1000);
		pthread_setname_np(a->thread, name);
	}
	if (ret) {
		appenders_stop(all);
		plog_error_set(err, -ret, "cannot start a thread for appends: %s", strerror(ret));
		return NULL;
	}
	return all;
}

void appender_post(struct appender *appenders, unsigned int index, struct task *task)
{
	struct appender *a = &appenders[index];

	task->next = NULL;
	pthread_mutex_lock(&a->lock);
	if (!a->first)
		pthread_cond_signal(&a->some);
	*a->last = task;
	a->last = &task->next;
	pthread_mutex_unlock(&a->lock);
}

void appenders_stop(struct appender *appenders)
{
	for (unsigned int i = 0; appenders && i < appenders->count; i++) {
		struct appender *a = &appenders[i];

		pthread_mutex_lock(&a->lock);
		a->stop = true;
		pthread_cond_signal(&a->some);
		pthread_mutex_unlock(&a->lock);
		pthread_join(a->thread, NULL);
		pthread_mutex_destroy(&a->lock);
		pthread_cond_destroy(&a->some);
	}
	free(appenders);
}
