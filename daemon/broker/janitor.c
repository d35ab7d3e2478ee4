// SPDX-License-Identifier: MIT
#include "janitor.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../tools/libplog/datadir.h"
#include "../log/log.h"
#include "../say.h"
#include "broker.h"
#include "netlink.h"
#include "topics.h"

struct janitor {
	struct broker *broker;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t some;		/* CLOCK_MONOTONIC */
	bool news;			/* some log's flag is set */
	bool stop;
	int64_t next;			/* when retention looks, milliseconds; -1: it never does */
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool stopped(struct janitor *j)
{
	bool stop;

	pthread_mutex_lock(&j->lock);
	stop = j->stop;
	pthread_mutex_unlock(&j->lock);
	return stop;
}

/* ---- files ---- */

static void delete_files(struct janitor *j, struct log *log)
{
	const struct log_ops *ops = log->engine->ops;
	struct plog_error err = { "" };
	struct log_bases bases = { 0 };
	int fd, ret;

	if (ops->retired(log, &bases) || !bases.count) {
		free(bases.list);
		return;
	}
	fd = datadir_partition_find(j->broker->datadir, log->topic, log->index);
	ret = fd < 0 ? 0 : datadir_segments_lock(fd);
	if (ret) {
		/* a daemon before this one that has not ended; the module says it again */
		say(SAY_WARN, "retention", "%s: segments wait to be deleted: %s", log->name,
		    ret == -EAGAIN ? "another process is at it" : strerror(-ret));
		close(fd);
		fd = -1;
	}
	for (size_t i = 0; fd >= 0 && i < bases.count && !stopped(j); i++) {
		if (ops->retired_take(log, bases.list[i]))
			continue;
		/* one of this name that was deleted and made again has other files: leave it */
		ret = atomic_load(&log->deleted) ? -ENODEV :
		      datadir_segment_delete(fd, bases.list[i], &err);
		if (ret && ret != -ENODEV)
			say(SAY_ERROR, "retention", "%s: %s; it is tried again", log->name, err.text);
		if (ops->retired_done(log, bases.list[i], !ret))
			continue;
		if (!ret)
			say(SAY_DEBUG, "retention", "%s: segment %lld was deleted", log->name,
			    (long long)bases.list[i]);
	}
	if (fd >= 0)
		close(fd);
	free(bases.list);
}

/* ---- every log ---- */

static void walk(struct janitor *j, bool retain)
{
	size_t count;
	struct topic **all = topics_all(j->broker->topics, &count);

	for (size_t t = 0; all && t < count; t++)
		for (uint32_t i = 0; i < all[t]->partitions && !stopped(j); i++) {
			struct log *log = all[t]->logs[i];
			int ret;

			if (!log || atomic_load(&log->deleted))
				continue;
			if (retain) {
				ret = log->engine->ops->retain(log);
				if (ret > 0)
					say(SAY_INFO, "retention", "%s: %d segment%s let go",
					    log->name, ret, ret == 1 ? "" : "s");
				else if (ret < 0 && ret != -ENODEV && ret != -EROFS)
					say(SAY_WARN, "retention", "%s: %s", log->name,
					    strerror(-ret));
			}
			if (atomic_exchange(&log->retired, false))
				delete_files(j, log);
		}
	topics_all_free(all, count);
}

/* Under the lock. */
static void schedule(struct janitor *j)
{
	struct broker *b = j->broker;
	int64_t now = now_ms(), every = broker_config(b)->retention_check_ms;

	if (!b->engine->ops->retain)
		j->next = -1;
	else
		j->next = every > INT64_MAX - now ? INT64_MAX : now + every;
}

/* Until there is something to do. Under the lock. Is it retention? */
static bool await(struct janitor *j)
{
	struct timespec until;

	while (!j->stop && !j->news && (j->next < 0 || now_ms() < j->next)) {
		/* a clock that far away is no clock */
		if (j->next < 0 || j->next > INT64_MAX / 2) {
			pthread_cond_wait(&j->some, &j->lock);
			continue;
		}
		until.tv_sec = j->next / 1000;
		until.tv_nsec = j->next % 1000 * 1000000;
		pthread_cond_timedwait(&j->some, &j->lock, &until);
	}
	return j->next >= 0 && now_ms() >= j->next;
}

static void *thread_main(void *arg)
{
	struct janitor *j = arg;
	bool retain;

	pthread_mutex_lock(&j->lock);
	schedule(j);
	while (!j->stop) {
		retain = await(j);
		if (j->stop)
			break;
		j->news = false;
		if (retain)
			schedule(j);
		pthread_mutex_unlock(&j->lock);
		walk(j, retain);
		pthread_mutex_lock(&j->lock);
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

struct janitor *janitor_start(struct broker *b, struct plog_error *err)
{
	struct janitor *j = calloc(1, sizeof(*j));
	pthread_condattr_t attr;
	sigset_t all, old;
	int ret = ENOMEM;

	if (j) {
		j->broker = b;
		pthread_mutex_init(&j->lock, NULL);
		pthread_condattr_init(&attr);
		pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
		pthread_cond_init(&j->some, &attr);
		pthread_condattr_destroy(&attr);
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		ret = pthread_create(&j->thread, NULL, thread_main, j);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	if (ret) {
		free(j);
		plog_error_set(err, -ret, "cannot start the thread of the retention: %s",
			       strerror(ret));
		return NULL;
	}
	pthread_setname_np(j->thread, "plogd-janitor");
	atomic_store(&b->janitor, j);
	janitor_tell(b, NULL);
	return j;
}

void janitor_stop(struct janitor *j)
{
	if (!j)
		return;
	pthread_mutex_lock(&j->lock);
	j->stop = true;
	pthread_cond_signal(&j->some);
	pthread_mutex_unlock(&j->lock);
	pthread_join(j->thread, NULL);
}

void janitor_free(struct janitor *j)
{
	if (!j)
		return;
	pthread_mutex_destroy(&j->lock);
	pthread_cond_destroy(&j->some);
	free(j);
}

static void wake(struct broker *b)
{
	struct janitor *j = atomic_load(&b->janitor);

	/* before it is there: it looks at everything when it begins */
	if (!j)
		return;
	pthread_mutex_lock(&j->lock);
	j->news = true;
	pthread_cond_signal(&j->some);
	pthread_mutex_unlock(&j->lock);
}

void janitor_tell(struct broker *b, struct log *log)
{
	size_t count;
	struct topic **all;

	if (log) {
		atomic_store(&log->retired, true);
	} else {
		all = topics_all(b->topics, &count);
		for (size_t t = 0; all && t < count; t++)
			for (uint32_t i = 0; i < all[t]->partitions; i++)
				if (all[t]->logs[i])
					atomic_store(&all[t]->logs[i]->retired, true);
		topics_all_free(all, count);
	}
	wake(b);
}

void janitor_tell_name(struct broker *b, const char *topic, uint32_t index)
{
	struct topic *t = topics_find(b->topics, kstr_of(topic));

	if (t && index < t->partitions && t->logs[index])
		janitor_tell(b, t->logs[index]);
	topic_put(t);
}

void janitor_reconfigure(struct broker *b)
{
	struct janitor *j = atomic_load(&b->janitor);
	struct plog_error err = { "" };

	if (b->netlink) {
		if (netlink_retention_check(b->netlink, broker_config(b)->retention_check_ms, &err))
			say(SAY_WARN, "retention", "%s", err.text);
		return;
	}
	pthread_mutex_lock(&j->lock);
	schedule(j);
	pthread_cond_signal(&j->some);
	pthread_mutex_unlock(&j->lock);
}
