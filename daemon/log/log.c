// SPDX-License-Identifier: MIT
#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../broker/broker.h"
#include "../kafka/error.h"
#include "../loop.h"
#include "../say.h"

/* Descriptors kept for the next reader: of one log, and of all if the limit of files allows. */
#define CURSORS_PER_LOG 8
#define CURSORS_IDLE_MAX 2048

#define WATCH_IDLE_MS 10000
#define RECENT_MS 10000

/* ---- life ---- */

int log_open(struct log_engine *engine, const char *topic, uint32_t index, int dirfd,
	     const struct log_config *config, struct log **out, struct plog_error *err)
{
	struct log *log = calloc(1, sizeof(*log));
	int ret;

	if (!log)
		return plog_error_set(err, -ENOMEM, "%s-%u: out of memory", topic, index);
	log->watches = calloc(engine->broker->nloops * LOG_ENDS, sizeof(*log->watches));
	if (!log->watches) {
		free(log);
		return plog_error_set(err, -ENOMEM, "%s-%u: out of memory", topic, index);
	}
	log->engine = engine;
	log->index = index;
	snprintf(log->topic, sizeof(log->topic), "%s", topic);
	snprintf(log->name, sizeof(log->name), "%s-%u", log->topic, index);
	atomic_init(&log->refs, 1);
	atomic_init(&log->epoch, -1);
	pthread_mutex_init(&log->lock, NULL);
	ret = engine->ops->begin(log, dirfd, config, err);
	if (ret) {
		pthread_mutex_destroy(&log->lock);
		free(log->watches);
		free(log);
		return ret;
	}
	*out = log;
	return 0;
}

int log_wait(struct log *log, struct plog_error *err)
{
	return log->engine->ops->wait(log, err);
}

int log_configure(struct log *log, const struct log_config *config, struct plog_error *err)
{
	return log->engine->ops->configure(log, config, err);
}

int log_shut(struct log *log, bool clean, struct plog_error *err)
{
	atomic_store(&log->deleted, true);
	return log->engine->ops->close(log, clean, err);
}

void log_get(struct log *log)
{
	atomic_fetch_add(&log->refs, 1);
}

void log_put(struct log *log)
{
	struct log_cursor *c;

	if (!log || atomic_fetch_sub(&log->refs, 1) != 1)
		return;
	while ((c = log->cursors)) {
		log->cursors = c->next;
		atomic_fetch_sub(&log->engine->idle_cursors, 1);
		log->engine->ops->cursor_free(c);
	}
	log->engine->ops->free(log);
	pthread_mutex_destroy(&log->lock);
	free(log->watches);
	free(log);
}

/* ---- calls ---- */

int log_state(struct log *log, struct log_state *state)
{
	int ret;

	if (atomic_load(&log->deleted))
		return -ENODEV;
	ret = log->engine->ops->state(log, state);
	if (!ret)
		atomic_store_explicit(&log->epoch, state->leader_epoch, memory_order_relaxed);
	return ret;
}

unsigned int log_owner(const struct log *log, unsigned int n)
{
	uint32_t h = 2166136261u;

	/* spreads the partitions of one topic evenly, and the topics too */
	for (const char *p = log->topic; *p; p++)
		h = (h ^ (unsigned char)*p) * 16777619u;
	return (h + log->index) % n;
}

int16_t log_error(int error)
{
	switch (error < 0 ? -error : error) {
	case 0:
		return KERR_NONE;
	case ERANGE:
		return KERR_OFFSET_OUT_OF_RANGE;
	case ENODEV:
	case ENOENT:
		return KERR_UNKNOWN_TOPIC_OR_PARTITION;
	case EAGAIN:
	case ESTALE:
	case EKEYEXPIRED:
	case EINTR:
		/* asks the client to look for the leader again and to repeat */
		return KERR_NOT_LEADER_OR_FOLLOWER;
	case EHOSTUNREACH:
		return KERR_NOT_ENOUGH_REPLICAS;
	case EBADMSG:
		return KERR_CORRUPT_MESSAGE;
	case EMSGSIZE:
		return KERR_MESSAGE_TOO_LARGE;
	case EINVAL:
	case EOPNOTSUPP:
	case EPERM:
		return KERR_INVALID_RECORD;
	default:
		return KERR_KAFKA_STORAGE_ERROR;
	}
}

/* In the epoch seen last; if that is over the log tells, and is asked for the new one. */
static int append_in_epoch(struct log *log, uint8_t *batch, uint32_t size,
			   struct log_append *a)
{
	int32_t epoch = atomic_load_explicit(&log->epoch, memory_order_relaxed);
	struct log_state state;
	int ret = -ESTALE;

	if (epoch >= 0)
		ret = log->engine->ops->append(log, batch, size, epoch, a);
	if (ret != -ESTALE)
		return ret;
	ret = log_state(log, &state);
	if (ret)
		return ret;
	if (state.leader_epoch == epoch)
		return -ESTALE;
	return log->engine->ops->append(log, batch, size, state.leader_epoch, a);
}

int log_set_log_start(struct log *log, int64_t *offset)
{
	int64_t wanted = *offset;
	struct log_state state;
	int ret = -ESTALE;

	/* an epoch that ends in between is asked for again, as often as that can happen */
	for (int i = 0; i < 3 && ret == -ESTALE; i++) {
		ret = log_state(log, &state);
		if (ret)
			return ret;
		*offset = wanted;
		ret = log->engine->ops->set_log_start(log, state.leader_epoch, offset);
	}
	if (ret == -ESTALE)
		broker_check_replaced(log->engine->broker);
	return ret;
}

int16_t log_append(struct log *log, uint8_t *batch, uint32_t size, struct log_append *a)
{
	int16_t error;
	int ret;

	if (atomic_load(&log->deleted))
		return KERR_UNKNOWN_TOPIC_OR_PARTITION;
	ret = append_in_epoch(log, batch, size, a);
	if (!ret) {
		if (atomic_load_explicit(&log->broken_said, memory_order_relaxed) &&
		    atomic_exchange(&log->broken_said, false))
			say(SAY_INFO, "log", "%s: appends succeed again", log->name);
		return 0;
	}
	error = log_error(ret);
	if (error == KERR_KAFKA_STORAGE_ERROR) {
		/* a full disk gives an error per append: one line tells it, until one succeeds */
		if (!atomic_exchange(&log->broken_said, true))
			say(SAY_ERROR, "log", "%s: cannot append: %s%s", log->name, strerror(-ret),
			    ret == -EROFS ? " (the partition is fenced after a failed write; "
					    "it takes appends again once it was reopened)" : "");
	} else if (ret == -ESTALE) {
		broker_check_replaced(log->engine->broker);
	}
	return error;
}

int log_set_unstable(struct log *log, int64_t *offset)
{
	struct log_state state;
	int ret;

	if (atomic_load(&log->deleted))
		return -ENODEV;
	ret = log_state(log, &state);
	return ret ? ret : log->engine->ops->set_unstable(log, state.leader_epoch, offset);
}

int log_headers(struct log *log, struct log_headers *h)
{
	if (atomic_load(&log->deleted))
		return -ENODEV;
	return log->engine->ops->headers(log, h);
}

int log_producers(struct log *log, struct log_producers *p)
{
	if (atomic_load(&log->deleted))
		return -ENODEV;
	return log->engine->ops->producers(log, p);
}

int log_lookup(struct log *log, int64_t from, int64_t timestamp, bool max, enum log_end end,
	       struct log_hit *hit)
{
	if (atomic_load(&log->deleted))
		return -ENODEV;
	return log->engine->ops->lookup(log, from, timestamp, max, end, hit);
}

int log_epoch_end(struct log *log, int32_t *epoch, int64_t *end)
{
	if (atomic_load(&log->deleted))
		return -ENODEV;
	return log->engine->ops->epoch(log, false, epoch, end);
}

int32_t log_epoch_at(struct log *log, int64_t offset)
{
	int32_t epoch = -1;

	if (atomic_load(&log->deleted) || log->engine->ops->epoch(log, true, &epoch, &offset))
		return -1;
	return epoch;
}

int log_bases_add(struct log_bases *b, int64_t base)
{
	if (b->count == b->room) {
		size_t room = b->room ? 2 * b->room : 64;
		int64_t *list = realloc(b->list, room * sizeof(*list));

		if (!list)
			return -ENOMEM;
		b->list = list;
		b->room = room;
	}
	b->list[b->count++] = base;
	return 0;
}

void log_note_end(struct log *log, int64_t end, uint64_t now)
{
	uint64_t at = atomic_load_explicit(&log->recent_at, memory_order_relaxed);

	if (at && now - at < RECENT_MS)
		return;
	/* of several threads here at once one moves the marks; a lost race costs nothing */
	if (!atomic_compare_exchange_strong(&log->recent_at, &at, now ? now : 1))
		return;
	atomic_store(&log->recent_old, at ? atomic_load(&log->recent_new) : end);
	atomic_store(&log->recent_new, end);
}

bool log_is_recent(struct log *log, int64_t offset, uint64_t now)
{
	uint64_t at = atomic_load_explicit(&log->recent_at, memory_order_relaxed);

	/* marks that were not moved for long tell nothing about what is cached */
	return at && now - at < 6 * RECENT_MS && offset >= atomic_load(&log->recent_old);
}

/* ---- cursors ---- */

struct log_cursor *log_cursor_get(struct log *log, int *error)
{
	struct log_cursor *c;

	if (atomic_load(&log->deleted)) {
		*error = -ENODEV;
		return NULL;
	}
	pthread_mutex_lock(&log->lock);
	c = log->cursors;
	if (c) {
		log->cursors = c->next;
		log->ncursors--;
	}
	pthread_mutex_unlock(&log->lock);
	if (c) {
		atomic_fetch_sub(&log->engine->idle_cursors, 1);
	} else {
		c = log->engine->ops->cursor_new(log, error);
		if (!c)
			return NULL;
	}
	atomic_fetch_add(&log->engine->used_cursors, 1);
	log_get(log);
	c->log = log;
	c->next = NULL;
	c->extent = (struct log_extent){ .base_offset = -1 };
	return c;
}

bool log_cursors_left(const struct log *log, bool more)
{
	int64_t room = log->engine->broker->cursors_room;

	return atomic_load(&log->engine->used_cursors) < (more ? room : 2 * room);
}

static unsigned int idle_max(const struct log_engine *engine)
{
	int64_t room = engine->broker->cursors_room;

	return room < CURSORS_IDLE_MAX ? room : CURSORS_IDLE_MAX;
}

void log_cursor_put(struct log_cursor *c)
{
	struct log *log = c->log;
	struct log_engine *engine = log->engine;
	bool kept = false;

	engine->ops->cursor_unpin(c);
	atomic_fetch_sub(&engine->used_cursors, 1);
	if (atomic_fetch_add(&engine->idle_cursors, 1) < idle_max(engine) &&
	    !atomic_load(&log->deleted)) {
		pthread_mutex_lock(&log->lock);
		if (log->ncursors < CURSORS_PER_LOG) {
			c->next = log->cursors;
			log->cursors = c;
			log->ncursors++;
			kept = true;
		}
		pthread_mutex_unlock(&log->lock);
	}
	if (!kept) {
		atomic_fetch_sub(&engine->idle_cursors, 1);
		engine->ops->cursor_free(c);
	}
	log_put(log);
}

int log_locate(struct log_cursor *c, int64_t offset, uint32_t max_bytes, bool whole,
	       enum log_end end)
{
	c->extent = (struct log_extent){ .base_offset = -1 };
	if (atomic_load(&c->log->deleted))
		return -ENODEV;
	return c->log->engine->ops->locate(c, offset, max_bytes, whole, end, &c->extent);
}

ssize_t log_cursor_send(struct log_cursor *c, int sock, uint64_t skip, size_t n)
{
	return c->log->engine->ops->send(c, sock, skip, n);
}

ssize_t log_cursor_read(struct log_cursor *c, uint64_t skip, void *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = c->log->engine->ops->read(c, skip + done, (char *)buf + done,
							n - done);

		if (got == -EINTR)
			continue;
		if (got < 0)
			return got;
		if (!got)
			break;
		done += got;
	}
	return done;
}

/* ---- waiting ---- */

static void unlink_waiter(struct log_waiter *w)
{
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->next = NULL;
	w->prev = NULL;
	w->watch = NULL;
}

unsigned int log_watch_slot(const struct loop *loop, enum log_end kind)
{
	return loop->index * LOG_ENDS + kind;
}

void log_watch_fire(struct log_watch *watch)
{
	struct log_waiter *list = watch->waiters;

	watch->armed = -1;
	watch->waiters = NULL;
	if (list)
		list->prev = &list;
	watch->idle_since = loop_now(watch->loop);
	while (list) {
		struct log_waiter *w = list;

		/* wake() may cancel others of the list: they unlink themselves from it */
		unlink_waiter(w);
		w->wake(w);
	}
}

static void watch_free(struct log_watch *watch)
{
	struct log *log = watch->log;

	log->engine->ops->watch_close(watch);
	log->watches[log_watch_slot(watch->loop, watch->kind)] = NULL;
	free(watch);
	log_put(log);
}

static struct log_watch *watch_of(struct log *log, struct loop *loop, enum log_end kind,
				  int *error)
{
	struct log_watch *watch = log->watches[log_watch_slot(loop, kind)];

	if (watch)
		return watch;
	watch = calloc(1, sizeof(*watch));
	if (!watch) {
		*error = -ENOMEM;
		return NULL;
	}
	watch->log = log;
	watch->loop = loop;
	watch->kind = kind;
	watch->armed = -1;
	watch->idle_since = loop_now(loop);
	*error = log->engine->ops->watch_open(watch);
	if (*error) {
		free(watch);
		return NULL;
	}
	log_get(log);
	log->watches[log_watch_slot(loop, kind)] = watch;
	watch->next = loop->watches;
	loop->watches = watch;
	return watch;
}

int log_wait_end(struct log *log, struct loop *loop, enum log_end kind, int64_t end,
		 struct log_waiter *w)
{
	struct log_watch *watch;
	int error = 0;

	if (atomic_load(&log->deleted))
		return -ENODEV;
	watch = watch_of(log, loop, kind, &error);
	if (!watch)
		return error;
	w->watch = watch;
	w->next = watch->waiters;
	if (w->next)
		w->next->prev = &w->next;
	w->prev = &watch->waiters;
	watch->waiters = w;
	if (watch->armed < 0 || end < watch->armed) {
		watch->armed = end;
		error = log->engine->ops->watch_arm(watch, end);
		if (error) {
			watch->armed = -1;
			unlink_waiter(w);
			return error;
		}
	}
	return 0;
}

void log_wait_cancel(struct log_waiter *w)
{
	struct log_watch *watch = w->watch;

	if (!watch)
		return;
	unlink_waiter(w);
	if (!watch->waiters)
		watch->idle_since = loop_now(watch->loop);
}

void log_watch_sweep(struct loop *loop, bool all)
{
	struct log_watch **at = &loop->watches;

	while (*at) {
		struct log_watch *watch = *at;

		if (!all && (watch->waiters ||
			     (loop_now(loop) - watch->idle_since < WATCH_IDLE_MS &&
			      !atomic_load(&watch->log->deleted)))) {
			at = &watch->next;
			continue;
		}
		*at = watch->next;
		watch_free(watch);
	}
}
