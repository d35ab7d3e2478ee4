// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What the engine uses of the kernel, on top of POSIX threads and liburcu.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <shim.h>

int shim_fence_word;
int shim_fail_alloc;
int shim_failed_allocs;
s64 shim_clock_ms;
u64 (*shim_random)(void);
void (*shim_log)(const char *line);
bool shim_inline_work;
s64 shim_fixed_ms;
__thread bool shim_killed;
__thread void (*shim_locking)(struct mutex *l);
__thread void (*shim_copied)(void);

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

int scnprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, size, fmt, ap);
	va_end(ap);
	return n < (int)size ? n : size ? (int)size - 1 : 0;
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
	if (shim_locking)
		shim_locking(l);
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

static s64 clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static s64 moved_ns(void)
{
	return __atomic_load_n(&shim_clock_ms, __ATOMIC_RELAXED) * 1000000;
}

ktime_t ktime_get_real(void)
{
	return (shim_fixed_ms ? shim_fixed_ms * 1000000 : clock_ns(CLOCK_REALTIME)) + moved_ns();
}

ktime_t ktime_get_boottime(void)
{
	return (shim_fixed_ms ? shim_fixed_ms * 1000000 : clock_ns(CLOCK_BOOTTIME)) + moved_ns();
}

u64 get_random_u64(void)
{
	u64 x = 0;

	if (shim_random)
		return shim_random();
	if (getrandom(&x, sizeof(x), GRND_NONBLOCK) != sizeof(x))
		x = clock_ns(CLOCK_MONOTONIC);
	return x;
}

u64 ktime_get_boottime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec +
	       __atomic_load_n(&shim_clock_ms, __ATOMIC_RELAXED) * 1000000;
}

/* ---- work ---- */

struct workqueue_struct {
	pthread_mutex_t m;
	pthread_cond_t c;	/* something was queued, or has run */
	struct list_head queue;
	struct list_head timers;	/* delayed work, in no order */
	struct work_struct *running;
	bool stop;
	bool threaded;
	bool at_once;		/* its work waits for nobody: may run where it is queued */
	pthread_t thread;
	struct list_head all;
};

static LIST_HEAD(inline_queues);

static s64 monotonic_ms(void)
{
	if (shim_inline_work)
		return ktime_to_ms(ktime_get_boottime());
	return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

/* Queue what is due; when the next timer is. */
static s64 run_timers(struct workqueue_struct *wq)
{
	s64 now = monotonic_ms(), next = S64_MAX;
	struct delayed_work *w, *n;

	list_for_each_entry_safe(w, n, &wq->timers, timer) {
		if (w->at > now) {
			next = w->at < next ? w->at : next;
			continue;
		}
		list_del_init(&w->timer);
		w->timed = false;
		list_add_tail(&w->work.entry, &wq->queue);
	}
	return next;
}

/* Wait for something to happen, but no longer than for the next timer. */
static void await_work(struct workqueue_struct *wq)
{
	s64 next = run_timers(wq);
	struct timespec ts;

	if (!list_empty(&wq->queue))
		return;
	if (next == S64_MAX) {
		pthread_cond_wait(&wq->c, &wq->m);
		return;
	}
	ts.tv_sec = next / 1000;
	ts.tv_nsec = next % 1000 * 1000000;
	pthread_cond_timedwait(&wq->c, &wq->m, &ts);
}

static void run_inline(struct work_struct *w)
{
	list_del_init(&w->entry);
	w->pending = false;
	w->func(w);		/* may free w */
}

unsigned int shim_run_work(void)
{
	struct workqueue_struct *wq;
	unsigned int n = 0;

	list_for_each_entry(wq, &inline_queues, all) {
		run_timers(wq);
		while (!list_empty(&wq->queue)) {
			run_inline(list_first_entry(&wq->queue, struct work_struct, entry));
			n++;
		}
	}
	return n;
}

static void *worker(void *arg)
{
	struct workqueue_struct *wq = arg;

	pthread_mutex_lock(&wq->m);
	for (;;) {
		struct work_struct *w;

		while (list_empty(&wq->queue) && !wq->stop)
			await_work(wq);
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
	pthread_condattr_t attr;

	if (!wq)
		return NULL;
	pthread_mutex_init(&wq->m, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wq->c, &attr);
	pthread_condattr_destroy(&attr);
	INIT_LIST_HEAD(&wq->queue);
	INIT_LIST_HEAD(&wq->timers);
	if (shim_inline_work) {
		wq->at_once = strstr(name, "roll") != NULL;
		list_add_tail(&wq->all, &inline_queues);
		return wq;
	}
	wq->threaded = true;
	if (pthread_create(&wq->thread, NULL, worker, wq)) {
		kfree(wq);
		return NULL;
	}
	return wq;
}

void destroy_workqueue(struct workqueue_struct *wq)
{
	if (!wq->threaded) {
		shim_run_work();
		list_del_init(&wq->all);
		kfree(wq);
		return;
	}
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
	if (wq->at_once && queued)
		run_inline(w);
	return queued;
}

static bool wait_work(struct work_struct *w, bool cancel)
{
	struct workqueue_struct *wq = w->wq;
	bool was = false;

	if (!wq)
		return false;
	if (!wq->threaded) {
		was = w->pending;
		if (was && cancel) {
			list_del_init(&w->entry);
			w->pending = false;
		} else if (was) {
			run_inline(w);
		}
		return was;
	}
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

static void start_timer(struct workqueue_struct *wq, struct delayed_work *w, unsigned long delay)
{
	w->work.pending = true;
	/* always the same one; who cancels looks before he can know its mutex */
	__atomic_store_n(&w->work.wq, wq, __ATOMIC_RELEASE);
	w->timed = delay > 0;
	w->at = monotonic_ms() + (s64)delay;
	if (w->timed)
		list_add_tail(&w->timer, &wq->timers);
	else
		list_add_tail(&w->work.entry, &wq->queue);
	pthread_cond_broadcast(&wq->c);
}

bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *w, unsigned long delay)
{
	bool queued;

	pthread_mutex_lock(&wq->m);
	queued = !w->work.pending;
	if (queued)
		start_timer(wq, w, delay);
	pthread_mutex_unlock(&wq->m);
	return queued;
}

/* Off the list that it waits in. Under the queue's mutex. */
static void stop_timer(struct delayed_work *w)
{
	if (w->timed)
		list_del_init(&w->timer);
	else
		list_del_init(&w->work.entry);
	w->timed = false;
	w->work.pending = false;
}

bool mod_delayed_work(struct workqueue_struct *wq, struct delayed_work *w, unsigned long delay)
{
	bool was;

	pthread_mutex_lock(&wq->m);
	was = w->work.pending;
	if (was)
		stop_timer(w);
	start_timer(wq, w, delay);
	pthread_mutex_unlock(&wq->m);
	return was;
}

bool cancel_delayed_work_sync(struct delayed_work *w)
{
	struct workqueue_struct *wq = __atomic_load_n(&w->work.wq, __ATOMIC_ACQUIRE);
	bool was;

	if (!wq)
		return false;
	pthread_mutex_lock(&wq->m);
	was = w->work.pending;
	if (was)
		stop_timer(w);
	while (wq->running == &w->work)
		pthread_cond_wait(&wq->c, &wq->m);
	pthread_mutex_unlock(&wq->m);
	return was;
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
	size_t n = walk(i, bytes, addr, false);

	if (shim_copied)
		shim_copied();
	return n;
}

size_t copy_to_iter(const void *addr, size_t bytes, struct iov_iter *i)
{
	return walk(i, bytes, (void *)addr, true);
}
