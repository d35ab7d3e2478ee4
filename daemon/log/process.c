// SPDX-License-Identifier: MIT
/*
 * The log engine inside this process: the very same files that the module is built from.
 *
 * Its functions may be called from any thread. Wake-ups come by the engine's visible hook,
 * which runs in the thread of whoever appended and must not sleep: it only posts to the loops
 * that wait.
 */
#include <linux/types.h>
#include <linux/err.h>
#include <linux/uio.h>
#include <linux/workqueue.h>
#include <shim.h>

#include "../../kmod/partition.h"
#include "../../tools/engine/file.h"
#include "../../uapi/linux/plog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>

#include "../broker/broker.h"
#include "../broker/janitor.h"
#include "../say.h"
#include "engines.h"
#include "log.h"

struct process_watch;

/* Logs that are opened at the same time: most of it is waiting for the disk. */
#define OPENERS 8

struct process_engine {
	struct log_engine base;
	struct workqueue_struct *openers[OPENERS];	/* of one thread each */
	unsigned int next;		/* who opens next; logs are begun by one thread at a time */
};

/* What struct log is to us. */
struct process_log {
	struct plog_partition *partition;
	struct plog_config config;
	atomic_uint armed;		/* watches that want to hear */
	struct work_struct open_work;
	int error;			/* that the open ended with, once @open_work is done */
	struct process_watch *watches[];	/* as log->watches; under log->lock */
};

struct process_cursor {
	struct log_cursor base;
	struct plog_extent extent;
};

struct process_watch {
	struct task task;
	struct log_watch *watch;	/* NULL: closed, the task frees this */
	struct process_log *pl;
	int64_t end;			/* of @armed, under log->lock as what follows */
	bool armed, posted;
};

/* For plog.max.partitions. Logs are begun by one thread at a time. */
static atomic_long partitions;

static struct process_log *pl_of(const struct log *log)
{
	return log->impl;
}

static enum plog_end end_of(enum log_end end)
{
	return end == LOG_END_STABLE ? PLOG_END_LSO : PLOG_END_HW;
}

/* ---- wake-ups ---- */

static void run_watch(struct task *task)
{
	struct process_watch *pw = container_of(task, struct process_watch, task);
	struct log_watch *watch = pw->watch;

	if (!watch) {
		free(pw);
		return;
	}
	pthread_mutex_lock(&watch->log->lock);
	pw->posted = false;
	pthread_mutex_unlock(&watch->log->lock);
	log_watch_fire(watch);
}

/* Is there what it waits for? Under log->lock. */
static bool has_come(struct log *log, const struct process_watch *pw)
{
	enum plog_end end = end_of(pw->watch->kind);

	return atomic_load(&log->deleted) || plog_partition_end(pl_of(log)->partition, end) > pw->end;
}

/* Under log->lock. */
static void post_watch(struct log *log, struct process_watch *pw)
{
	struct loop *loop = pw->watch->loop;

	if (!pw->armed || !has_come(log, pw))
		return;
	pw->armed = false;
	atomic_fetch_sub(&pl_of(log)->armed, 1);
	if (!pw->posted) {
		pw->posted = true;
		loop_post(loop, &pw->task);
	}
}

static void notify(struct log *log)
{
	struct process_log *pl = pl_of(log);

	/* the end was published before this, and is looked at after arming: one of us sees */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load(&pl->armed))
		return;
	pthread_mutex_lock(&log->lock);
	for (unsigned int i = 0; i < log->engine->broker->nloops * LOG_ENDS; i++)
		if (pl->watches[i])
			post_watch(log, pl->watches[i]);
	pthread_mutex_unlock(&log->lock);
}

static void on_visible(struct plog_partition *p)
{
	notify(plog_partition_owner(p));
}

static void on_state(struct plog_partition *p, u32 state, int error)
{
	if (state == PLOG_PARTITION_FENCED)
		say(SAY_ERROR, "log", "%s is fenced and takes no more appends until plogd is "
		    "started again: %s", plog_partition_name(p), strerror(error));
}

/* The janitor unlinks what can be. */
static bool on_retired(struct plog_partition *p)
{
	struct log *log = plog_partition_owner(p);

	janitor_tell(log->engine->broker, log);
	return true;
}

static int watch_open(struct log_watch *watch)
{
	struct process_watch *pw = calloc(1, sizeof(*pw));
	struct log *log = watch->log;

	if (!pw)
		return -ENOMEM;
	pw->task.run = run_watch;
	pw->watch = watch;
	watch->impl = pw;
	pthread_mutex_lock(&log->lock);
	pl_of(log)->watches[log_watch_slot(watch->loop, watch->kind)] = pw;
	pthread_mutex_unlock(&log->lock);
	return 0;
}

static int watch_arm(struct log_watch *watch, int64_t end)
{
	struct process_watch *pw = watch->impl;
	struct log *log = watch->log;
	struct process_log *pl = pl_of(log);

	pthread_mutex_lock(&log->lock);
	if (!pw->armed) {
		pw->armed = true;
		atomic_fetch_add(&pl->armed, 1);
	}
	pw->end = end;
	atomic_thread_fence(memory_order_seq_cst);
	post_watch(log, pw);
	pthread_mutex_unlock(&log->lock);
	return 0;
}

static void watch_close(struct log_watch *watch)
{
	struct process_watch *pw = watch->impl;
	struct log *log = watch->log;
	struct process_log *pl = pl_of(log);
	bool posted;

	pthread_mutex_lock(&log->lock);
	pl->watches[log_watch_slot(watch->loop, watch->kind)] = NULL;
	if (pw->armed)
		atomic_fetch_sub(&pl->armed, 1);
	posted = pw->posted;
	pw->watch = NULL;
	pthread_mutex_unlock(&log->lock);
	/* a task that is on its way frees it */
	if (!posted)
		free(pw);
}

/* ---- life ---- */

static const struct plog_partition_events events = {
	.visible = on_visible,
	.state = on_state,
	.retired = on_retired,
};

static void fill_config(struct plog_config *out, const struct log_config *config)
{
	plog_config_init(out);
	out->flags = config->flags;
	out->max_message_bytes = config->max_message_bytes;
	out->segment_bytes = config->segment_bytes;
	out->segment_ms = config->segment_ms;
	out->index_interval_bytes = config->index_interval_bytes;
	out->index_bytes = config->index_bytes;
	out->retention_ms = config->retention_ms;
	out->retention_bytes = config->retention_bytes;
	out->file_delete_delay_ms = config->file_delete_delay_ms;
	out->segment_jitter_ms = config->segment_jitter_ms;
	out->flush_messages = config->flush_messages;
	out->flush_ms = config->flush_ms;
	out->preallocate = config->preallocate;
}

static int check_config(const struct log *log, const struct plog_config *config,
			struct plog_error *err)
{
	const char *what = "";

	if (plog_config_check(config, &what))
		return plog_error_set(err, -ERANGE, "%s: %s is out of range", log->name, what);
	return 0;
}

static void open_log(struct work_struct *work)
{
	struct process_log *pl = container_of(work, struct process_log, open_work);

	pl->error = plog_partition_open(pl->partition);
}

static int begin(struct log *log, int dirfd, const struct log_config *config,
		 struct plog_error *err)
{
	struct process_engine *pe = container_of(log->engine, struct process_engine, base);
	int64_t max = broker_config(log->engine->broker)->max_partitions;
	struct process_log *pl;
	struct plog_dir *dir;
	int ret;

	if (max && atomic_load(&partitions) >= max)
		return plog_error_set(err, -ENOSPC, "%s: there are as many partitions as "
				      "plog.max.partitions (%" PRId64 ") allows", log->name, max);
	pl = calloc(1, sizeof(*pl) +
		    log->engine->broker->nloops * LOG_ENDS * sizeof(*pl->watches));
	if (!pl)
		return plog_error_set(err, -ENOMEM, "%s: out of memory", log->name);
	fill_config(&pl->config, config);
	ret = check_config(log, &pl->config, err);
	if (ret)
		goto fail;
	dir = plog_dir_get(dirfd);
	if (IS_ERR(dir)) {
		ret = plog_error_set(err, PTR_ERR(dir), "%s: its folder cannot be used: %s",
				     log->name, PTR_ERR(dir) == -EOPNOTSUPP ?
				     "it must be on ext4, xfs, btrfs or tmpfs" :
				     strerror(-PTR_ERR(dir)));
		goto fail;
	}
	log->impl = pl;
	pl->partition = plog_partition_create(log->name, dir, &pl->config, &events, log);
	if (IS_ERR(pl->partition)) {
		ret = plog_error_set(err, PTR_ERR(pl->partition), "%s: %s", log->name,
				     strerror(-PTR_ERR(pl->partition)));
		goto fail;
	}
	atomic_fetch_add(&partitions, 1);
	INIT_WORK(&pl->open_work, open_log);
	queue_work(pe->openers[pe->next++ % OPENERS], &pl->open_work);
	return 0;
fail:
	log->impl = NULL;
	free(pl);
	return ret;
}

static int wait_open(struct log *log, struct plog_error *err)
{
	struct process_log *pl = pl_of(log);

	flush_work(&pl->open_work);
	if (pl->error)
		return plog_error_set(err, pl->error, "its log cannot be opened: %s",
				      strerror(-pl->error));
	return 0;
}

static int configure(struct log *log, const struct log_config *config, struct plog_error *err)
{
	struct plog_config next;
	int ret;

	fill_config(&next, config);
	ret = check_config(log, &next, err);
	if (!ret)
		ret = plog_partition_configure(pl_of(log)->partition, &next);
	if (ret && ret != -ERANGE)
		return plog_error_set(err, ret, "%s: %s", log->name, strerror(-ret));
	return ret;
}

static int close_log(struct log *log, bool clean, struct plog_error *err)
{
	int ret;

	flush_work(&pl_of(log)->open_work);
	ret = plog_partition_close(pl_of(log)->partition, clean);
	notify(log);
	if (ret)
		return plog_error_set(err, ret, "%s", strerror(-ret));
	return 0;
}

static void free_log(struct log *log)
{
	struct process_log *pl = pl_of(log);

	if (!pl)
		return;
	flush_work(&pl->open_work);
	plog_partition_put(pl->partition);
	atomic_fetch_sub(&partitions, 1);
	free(pl);
}

static void stop_openers(struct process_engine *pe)
{
	for (int i = 0; i < OPENERS; i++)
		if (pe->openers[i])
			destroy_workqueue(pe->openers[i]);
}

static void stop(struct log_engine *engine)
{
	struct process_engine *pe = container_of(engine, struct process_engine, base);

	stop_openers(pe);
	plog_engine_exit();
	free(pe);
}

/* ---- calls ---- */

static void fill_state(struct log_state *out, const struct plog_view *v)
{
	*out = (struct log_state){
		.state = v->state,
		.flags = v->flags,
		.leader_epoch = v->leader_epoch < 0 ? 0 : v->leader_epoch,
		.log_start = v->log_start,
		.high_watermark = v->high_watermark,
		.last_stable = v->last_stable,
		.log_end = v->log_end,
		.max_timestamp = v->max_timestamp,
		.bytes = v->bytes,
	};
}

static int state(struct log *log, struct log_state *out)
{
	struct plog_view v;

	plog_partition_view(pl_of(log)->partition, &v);
	fill_state(out, &v);
	return 0;
}

static int append(struct log *log, uint8_t *batch, uint32_t size, int32_t leader_epoch,
		  struct log_append *a)
{
	struct plog_append_args args = {
		.flags = PLOG_APPEND_DAEMON | (a->says_unstable ? PLOG_APPEND_UNSTABLE : 0),
		.leader_epoch = leader_epoch,
		.first_unstable = a->first_unstable,
		.raw = batch,
		.size = size,
		/* records_check_run() has seen the CRC of these very bytes */
		.checked = true,
	};
	int64_t max = broker_config(log->engine->broker)->max_append_bytes;
	int ret;

	if (max && size > max)
		return -EMSGSIZE;
	ret = plog_partition_append(pl_of(log)->partition, &args);
	a->base_offset = args.base_offset;
	a->last_offset = args.last_offset;
	a->log_append_time = args.log_append_time;
	a->log_start = args.log_start;
	return ret;
}

static int sync_log(struct log *log)
{
	return plog_partition_sync(pl_of(log)->partition);
}

static int lookup(struct log *log, int64_t from, int64_t timestamp, bool max, enum log_end end,
		  struct log_hit *hit)
{
	struct plog_time_hit found = { .offset = -1, .timestamp = -1, .leader_epoch = -1 };
	int ret = plog_partition_lookup_from(pl_of(log)->partition, from, timestamp, max,
					     end_of(end), &found);

	hit->offset = found.offset;
	hit->timestamp = found.timestamp;
	hit->leader_epoch = found.leader_epoch;
	hit->inside = found.inside;
	hit->behind = found.behind;
	return ret;
}

static int epoch(struct log *log, bool at, int32_t *epoch, int64_t *offset)
{
	struct plog_partition *p = pl_of(log)->partition;
	s64 where = *offset;
	s32 found = *epoch, now;
	int ret;

	ret = at ? plog_partition_epoch_at(p, where, &found, &now) :
		   plog_partition_epoch_end(p, &found, &where, &now);
	*epoch = found;
	*offset = where;
	return ret;
}

static int truncate_log(struct log *log, int32_t leader_epoch, int64_t *offset)
{
	struct plog_fence fence = { .leader_epoch = leader_epoch };
	s64 at = *offset;
	int ret = plog_partition_truncate(pl_of(log)->partition, &fence, &at);

	*offset = at;
	return ret;
}

static int set_log_start(struct log *log, int32_t leader_epoch, int64_t *offset)
{
	struct plog_fence fence = { .leader_epoch = leader_epoch };
	s64 at = *offset;
	int ret = plog_partition_set_log_start(pl_of(log)->partition, &fence, &at);

	*offset = at;
	return ret;
}

/* ---- retention ---- */

/* Who deletes: this process, and nobody else. */
#define TAKER 1

static int retain(struct log *log)
{
	int ret = plog_partition_retain(pl_of(log)->partition);

	plog_partition_reap(pl_of(log)->partition);
	return ret;
}

static int note_base(void *arg, const struct plog_retired_info *info)
{
	if (info->state == PLOG_RETIRED_DELAYED || info->state == PLOG_RETIRED_HELD)
		return 0;
	return log_bases_add(arg, info->base_offset);
}

static int retired(struct log *log, struct log_bases *bases)
{
	return plog_partition_retired(pl_of(log)->partition, 0, note_base, bases);
}

static int retired_take(struct log *log, int64_t base)
{
	return plog_partition_retired_take(pl_of(log)->partition, base, TAKER);
}

static int retired_done(struct log *log, int64_t base, bool gone)
{
	return plog_partition_retired_done(pl_of(log)->partition, base, TAKER, gone);
}

static int set_unstable(struct log *log, int32_t leader_epoch, int64_t *offset)
{
	struct plog_fence fence = { .leader_epoch = leader_epoch };
	s64 at = *offset;
	int ret = plog_partition_set_unstable(pl_of(log)->partition, &fence, &at);

	*offset = at;
	return ret;
}

static int headers(struct log *log, struct log_headers *h)
{
	struct plog_view view = { 0 };
	s64 at = h->offset;
	u32 count = h->count;
	int ret = plog_partition_headers(pl_of(log)->partition, PLOG_END_LEO, h->flags, &at,
					 h->entries, &count, &view);

	h->offset = at;
	h->count = ret ? 0 : count;
	h->log_start = view.log_start;
	h->log_end = view.log_end;
	return ret;
}

static int producers(struct log *log, struct log_producers *p)
{
	struct plog_view view;

	plog_partition_view(pl_of(log)->partition, &view);
	p->last_offset = view.last_producer;
	p->first_unstable = view.first_unstable;
	return 0;
}

/* ---- compaction ---- */

static int swap_ask(struct log *log, struct log_swap *swap)
{
	s64 pending, last;
	u64 generation;
	int ret = plog_partition_swap_state(pl_of(log)->partition, &generation, &pending, &last);

	if (!ret) {
		swap->generation = generation;
		swap->pending = pending;
		swap->pending_last = last;
	}
	return ret;
}

static int swap_segments(struct log *log, int32_t leader_epoch, struct log_swap *swap)
{
	struct plog_fence fence = { .leader_epoch = leader_epoch };
	struct plog_swap_args args = { swap->generation, swap->first, swap->last };
	int ret = plog_partition_swap(pl_of(log)->partition, &fence, &args);

	return ret ? ret : swap_ask(log, swap);
}

static int swap_done(struct log *log, int32_t leader_epoch)
{
	struct plog_fence fence = { .leader_epoch = leader_epoch };

	return plog_partition_swap_done(pl_of(log)->partition, &fence);
}

/* ---- reading ---- */

static struct process_cursor *pc_of(struct log_cursor *cursor)
{
	return container_of(cursor, struct process_cursor, base);
}

static struct log_cursor *cursor_new(struct log *log, int *error)
{
	struct process_cursor *pc = calloc(1, sizeof(*pc));

	(void)log;
	*error = -ENOMEM;
	return pc ? &pc->base : NULL;
}

static void cursor_unpin(struct log_cursor *cursor)
{
	plog_extent_put(&pc_of(cursor)->extent);
	memset(&pc_of(cursor)->extent, 0, sizeof(struct plog_extent));
}

static void cursor_free(struct log_cursor *cursor)
{
	cursor_unpin(cursor);
	free(pc_of(cursor));
}

static int locate(struct log_cursor *cursor, int64_t offset, uint32_t max_bytes, bool whole,
		  enum log_end end, struct log_extent *out)
{
	struct process_cursor *pc = pc_of(cursor);
	struct plog_view view = { 0 };
	int ret;

	cursor_unpin(cursor);
	ret = plog_partition_locate(pl_of(cursor->log)->partition, offset, max_bytes, end_of(end),
				    whole, &pc->extent, &view);
	fill_state(&out->state, &view);
	out->length = pc->extent.length;
	out->base_offset = out->length ? pc->extent.base_offset : -1;
	out->next_offset = out->length ? pc->extent.next_offset : offset;
	return ret;
}

static ssize_t send_extent(struct log_cursor *cursor, int sock, uint64_t skip, size_t n)
{
	struct process_cursor *pc = pc_of(cursor);
	off_t at = pc->extent.pos + skip;
	ssize_t sent;

	if (skip >= pc->extent.length)
		return 0;
	if (n > pc->extent.length - skip)
		n = pc->extent.length - skip;
	sent = sendfile(sock, plog_file_fd(plog_extent_file(&pc->extent)), &at, n);
	if (sent < 0)
		return -errno;
	/* the bytes may have been cut off while they were taken */
	if (!sent || plog_extent_stale(&pc->extent))
		return -ESTALE;
	plog_partition_count_read(pl_of(cursor->log)->partition, sent);
	return sent;
}

static ssize_t read_extent(struct log_cursor *cursor, uint64_t skip, void *buf, size_t n)
{
	struct kvec vec = { .iov_base = buf, .iov_len = n };
	struct iov_iter to;

	iov_iter_kvec(&to, ITER_DEST, &vec, 1, n);
	return plog_extent_read(&pc_of(cursor)->extent, skip, &to);
}

static const struct log_ops ops = {
	.name = "process",
	.stop = stop,
	.begin = begin,
	.wait = wait_open,
	.configure = configure,
	.close = close_log,
	.free = free_log,
	.state = state,
	.append = append,
	.sync = sync_log,
	.lookup = lookup,
	.epoch = epoch,
	.truncate = truncate_log,
	.set_log_start = set_log_start,
	.retain = retain,
	.retired = retired,
	.retired_take = retired_take,
	.retired_done = retired_done,
	.set_unstable = set_unstable,
	.headers = headers,
	.producers = producers,
	.swap = swap_segments,
	.swap_done = swap_done,
	.swap_ask = swap_ask,
	.cursor_new = cursor_new,
	.cursor_free = cursor_free,
	.cursor_unpin = cursor_unpin,
	.locate = locate,
	.send = send_extent,
	.read = read_extent,
	.watch_open = watch_open,
	.watch_arm = watch_arm,
	.watch_close = watch_close,
};

static void engine_line(const char *line)
{
	size_t n = strlen(line);

	while (n && line[n - 1] == '\n')
		n--;
	say(SAY_WARN, "engine", "%.*s", (int)n, line);
}

struct log_engine *process_start(struct broker *b, struct plog_error *err)
{
	struct process_engine *pe = calloc(1, sizeof(*pe));
	int ret;

	if (!pe) {
		plog_error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	shim_log = engine_line;
	ret = plog_engine_init();
	if (ret)
		goto fail;
	for (int i = 0; i < OPENERS; i++) {
		pe->openers[i] = alloc_workqueue("plog_open", 0, 1);
		if (!pe->openers[i]) {
			ret = -ENOMEM;
			goto fail_openers;
		}
	}
	pe->base.ops = &ops;
	pe->base.broker = b;
	return &pe->base;
fail_openers:
	stop_openers(pe);
	plog_engine_exit();
fail:
	plog_error_set(err, ret, "the log engine does not start: %s", strerror(-ret));
	free(pe);
	return NULL;
}
