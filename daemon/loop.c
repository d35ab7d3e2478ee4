// SPDX-License-Identifier: MIT
#include "loop.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "conn.h"
#include "log/log.h"
#include "say.h"

#define TICK_MS 500

static void run_tasks(uv_async_t *handle)
{
	struct loop *loop = handle->data;
	struct task *list;

	pthread_mutex_lock(&loop->lock);
	list = loop->first;
	loop->first = NULL;
	loop->last = &loop->first;
	pthread_mutex_unlock(&loop->lock);

	while (list) {
		struct task *task = list;

		/* the task may free itself */
		list = task->next;
		task->run(task);
	}
	loop_check_end(loop);
}

static void on_tick(uv_timer_t *timer)
{
	struct loop *loop = timer->data;

	conn_tick_all(loop);
	log_watch_sweep(loop, false);
	loop_check_end(loop);
}

int loop_init(struct loop *loop, struct broker *broker, unsigned int index)
{
	int ret;

	*loop = (struct loop){ .broker = broker, .index = index };
	loop->last = &loop->first;
	pthread_mutex_init(&loop->lock, NULL);
	ret = uv_loop_init(&loop->uv);
	if (ret)
		return ret;
	loop->uv.data = loop;
	ret = uv_async_init(&loop->uv, &loop->wake, run_tasks);
	if (ret)
		return ret;
	loop->wake.data = loop;
	ret = uv_timer_init(&loop->uv, &loop->tick);
	if (ret)
		return ret;
	loop->tick.data = loop;
	return uv_timer_start(&loop->tick, on_tick, TICK_MS, TICK_MS);
}

static void *thread_main(void *arg)
{
	struct loop *loop = arg;

	uv_run(&loop->uv, UV_RUN_DEFAULT);
	return NULL;
}

int loop_start(struct loop *loop)
{
	sigset_t all, old;
	char name[16];
	int ret;

	/* signals are the control loop's */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&loop->thread, NULL, thread_main, loop);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return -ret;
	loop->started = true;
	snprintf(name, sizeof(name), "plogd-net%u", loop->index % 1000);
	pthread_setname_np(loop->thread, name);
	return 0;
}

void loop_post(struct loop *loop, struct task *task)
{
	bool first;

	task->next = NULL;
	pthread_mutex_lock(&loop->lock);
	first = !loop->first;
	*loop->last = task;
	loop->last = &task->next;
	/* under the lock: loop_close() takes it before the handle goes */
	if (first && !loop->closed)
		uv_async_send(&loop->wake);
	pthread_mutex_unlock(&loop->lock);
}

struct drain_task {
	struct task task;
	struct loop *loop;
	bool force;
};

static void drain(struct task *task)
{
	struct drain_task *d = (struct drain_task *)task;
	struct loop *loop = d->loop;

	loop->draining = true;
	loop->force |= d->force;
	free(d);
	conn_drain_all(loop);
	loop_check_end(loop);
}

void loop_drain(struct loop *loop, bool force)
{
	struct drain_task *d = malloc(sizeof(*d));

	/* without these few bytes there is no clean end: the caller's deadline ends it */
	if (!d) {
		say(SAY_ERROR, "net", "out of memory: cannot drain network thread %u",
		    loop->index);
		return;
	}
	*d = (struct drain_task){ .task.run = drain, .loop = loop, .force = force };
	loop_post(loop, &d->task);
}

void loop_check_end(struct loop *loop)
{
	if (!loop->draining || loop->reported || loop->conns || loop->nworks)
		return;
	/*
	 * The loop goes on until all are empty: a request of another loop's connection may
	 * still have to visit the partitions that this one owns.
	 */
	loop->reported = true;
	if (loop->drained.run)
		loop_post(loop->report_to, &loop->drained);
}

static void stop(struct task *task)
{
	struct loop *loop = container_of(task, struct loop, stop);

	log_watch_sweep(loop, true);
	uv_stop(&loop->uv);
}

void loop_stop(struct loop *loop)
{
	loop->stop.run = stop;
	loop_post(loop, &loop->stop);
}

void loop_join(struct loop *loop)
{
	if (loop->started)
		pthread_join(loop->thread, NULL);
	loop->started = false;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void loop_close(struct loop *loop)
{
	int ret;

	pthread_mutex_lock(&loop->lock);
	loop->closed = true;
	pthread_mutex_unlock(&loop->lock);
	uv_walk(&loop->uv, close_handle, NULL);
	uv_run(&loop->uv, UV_RUN_DEFAULT);
	ret = uv_loop_close(&loop->uv);
	if (ret)
		say(SAY_WARN, "net", "a network thread ended with handles open: %s",
		    uv_strerror(ret));
	pthread_mutex_destroy(&loop->lock);
}
