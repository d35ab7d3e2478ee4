// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What the engine uses of the kernel, on top of POSIX threads and liburcu.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <shim.h>

int shim_fence_word;
int shim_fail_alloc;
int shim_failed_allocs;
s64 shim_clock_ms;
void (*shim_log)(const char *line);
__thread bool shim_killed;

void shim_warn(const char *cond, const char *file, int line)
{
	fprintf(stderr, "WARNING: %s at %s:%d\n", cond, file, line);
	abort();
}

void shim_printk(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (shim_log)
		shim_log(line);
	else
		fputs(line, stderr);
}

int kstrtoull(const char *s, unsigned int base, unsigned long long *res)
{
	char *end;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	*res = strtoull(s, &end, base);
	if (*end)
		return -EINVAL;
	return errno ? -ERANGE : 0;
}

/* ---- memory ---- */

void *shim_alloc(size_t size, bool zero)
{
	if (__atomic_load_n(&shim_fail_alloc, __ATOMIC_RELAXED) &&
	    __atomic_sub_fetch(&shim_fail_alloc, 1, __ATOMIC_RELAXED) == 0) {
		__atomic_fetch_add(&shim_failed_allocs, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	return zero ? calloc(1, size) : malloc(size);
}

void kfree(const void *p)
{
	free((void *)p);
}

char *kstrdup(const char *s, gfp_t gfp)
{
	char *copy = kmalloc(strlen(s) + 1, gfp);

	return copy ? strcpy(copy, s) : NULL;
}

/* ---- locks and waiting ---- */

int mutex_lock_killable(struct mutex *l)
{
	if (shim_killed && !mutex_trylock(l))
		return -EINTR;
	if (!shim_killed)
		mutex_lock(l);
	return 0;
}

void init_waitqueue_head(struct wait_queue_head *wq)
{
	pthread_mutex_init(&wq->m, NULL);
	pthread_cond_init(&wq->c, NULL);
	atomic_set(&wq->sleepers, 0);
}

void wake_up_all(struct wait_queue_head *wq)
{
	pthread_mutex_lock(&wq->m);
	pthread_cond_broadcast(&wq->c);
	pthread_mutex_unlock(&wq->m);
}

ktime_t ktime_get_real(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec +
	       __atomic_load_n(&shim_clock_ms, __ATOMIC_RELAXED) * 1000000;
}

/* ---- work ---- */

struct workqueue_struct {
	pthread_mutex_t m;
	pthread_cond_t c;	/* something was queued, or has run */
	struct list_head queue;
	struct work_struct *running;
	bool stop;
	pthread_t thread;
};

static void *worker(void *arg)
{
	struct workqueue_struct *wq = arg;

	pthread_mutex_lock(&wq->m);
	for (;;) {
		struct work_struct *w;

		while (list_empty(&wq->queue) && !wq->stop)
			pthread_cond_wait(&wq->c, &wq->m);
		if (list_empty(&wq->queue))
			break;
		w = list_first_entry(&wq->queue, struct work_struct, entry);
		list_del_init(&w->entry);
		w->pending = false;
		wq->running = w;
		pthread_mutex_unlock(&wq->m);
		w->func(w);	/* may free w */
		pthread_mutex_lock(&wq->m);
		wq->running = NULL;
		pthread_cond_broadcast(&wq->c);
	}
	pthread_mutex_unlock(&wq->m);
	return NULL;
}

struct workqueue_struct *alloc_workqueue(const char *name, unsigned int flags, int max_active, ...)
{
	struct workqueue_struct *wq = kzalloc(sizeof(*wq), GFP_KERNEL);

	if (!wq)
		return NULL;
	pthread_mutex_init(&wq->m, NULL);
	pthread_cond_init(&wq->c, NULL);
	INIT_LIST_HEAD(&wq->queue);
	if (pthread_create(&wq->thread, NULL, worker, wq)) {
		kfree(wq);
		return NULL;
	}
	return wq;
}

void destroy_workqueue(struct workqueue_struct *wq)
{
	pthread_mutex_lock(&wq->m);
	wq->stop = true;
	pthread_cond_broadcast(&wq->c);
	pthread_mutex_unlock(&wq->m);
	pthread_join(wq->thread, NULL);
	kfree(wq);
}

bool queue_work(struct workqueue_struct *wq, struct work_struct *w)
{
	bool queued = false;

	pthread_mutex_lock(&wq->m);
	if (!w->pending) {
		w->pending = true;
		w->wq = wq;
		list_add_tail(&w->entry, &wq->queue);
		pthread_cond_broadcast(&wq->c);
		queued = true;
	}
	pthread_mutex_unlock(&wq->m);
	return queued;
}

static bool wait_work(struct work_struct *w, bool cancel)
{
	struct workqueue_struct *wq = w->wq;
	bool was = false;

	if (!wq)
		return false;
	pthread_mutex_lock(&wq->m);
	if (cancel && w->pending) {
		list_del_init(&w->entry);
		w->pending = false;
		was = true;
	}
	while (w->pending || wq->running == w) {
		was = true;
		pthread_cond_wait(&wq->c, &wq->m);
	}
	pthread_mutex_unlock(&wq->m);
	return was;
}

bool flush_work(struct work_struct *w)
{
	return wait_work(w, false);
}

bool cancel_work_sync(struct work_struct *w)
{
	return wait_work(w, true);
}

/* ---- iov_iter ---- */

void iov_iter_kvec(struct iov_iter *i, unsigned int direction, const struct kvec *kvec,
		   unsigned long nr_segs, size_t count)
{
	i->kvec = kvec;
	i->nr_segs = nr_segs;
	i->iov_offset = 0;
	i->count = count;
}

/* Walk @bytes, copying to or from @addr if that is not NULL. */
static size_t walk(struct iov_iter *i, size_t bytes, char *addr, bool to)
{
	size_t done = 0;

	if (bytes > i->count)
		bytes = i->count;
	while (done < bytes) {
		size_t n = i->kvec->iov_len - i->iov_offset;

		if (n > bytes - done)
			n = bytes - done;
		if (n && addr && to)
			memcpy((char *)i->kvec->iov_base + i->iov_offset, addr + done, n);
		else if (n && addr)
			memcpy(addr + done, (char *)i->kvec->iov_base + i->iov_offset, n);
		done += n;
		i->iov_offset += n;
		if (i->iov_offset == i->kvec->iov_len && i->nr_segs > 1) {
			i->kvec++;
			i->nr_segs--;
			i->iov_offset = 0;
		}
	}
	i->count -= done;
	return done;
}

void iov_iter_advance(struct iov_iter *i, size_t bytes)
{
	walk(i, bytes, NULL, false);
}

size_t copy_from_iter(void *addr, size_t bytes, struct iov_iter *i)
{
	return walk(i, bytes, addr, false);
}

size_t copy_to_iter(const void *addr, size_t bytes, struct iov_iter *i)
{
	return walk(i, bytes, (void *)addr, true);
}
