// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Partitions: their life, and what they show to readers.
 */
#define pr_fmt(fmt) "plog: " fmt

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "engine.h"
#include "event.h"
#include "object.h"

struct workqueue_struct *plog_roll_wq;
struct workqueue_struct *plog_flush_wq;
struct workqueue_struct *plog_file_wq;
unsigned int plog_segments_max = PLOG_SEGMENTS_MAX;

int plog_engine_init(void)
{
	/* two: a flush may wait for a partition whose append waits for a roll */
	plog_roll_wq = alloc_workqueue("plog_roll", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!plog_roll_wq)
		return -ENOMEM;
	plog_flush_wq = alloc_workqueue("plog_flush", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!plog_flush_wq)
		goto err_roll;
	/* and a third: who waits for a file may hold locks that a roll takes */
	plog_file_wq = alloc_workqueue("plog_file", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!plog_file_wq)
		goto err_flush;
	plog_rest_init();
	return 0;

err_flush:
	destroy_workqueue(plog_flush_wq);
err_roll:
	destroy_workqueue(plog_roll_wq);
	return -ENOMEM;
}

void plog_engine_exit(void)
{
	plog_rest_exit();
	destroy_workqueue(plog_flush_wq);
	destroy_workqueue(plog_roll_wq);
	destroy_workqueue(plog_file_wq);
	rcu_barrier();
}

s64 plog_now_ms(void)
{
	return ktime_to_ms(ktime_get_real());
}

s64 plog_uptime_ms(void)
{
	return ktime_to_ms(ktime_get_boottime());
}

/* ---- configuration ---- */

void plog_config_init(struct plog_config *config)
{
	memset(config, 0, sizeof(*config));
	config->max_message_bytes = PLOG_MESSAGE_BYTES_DEFAULT;
	config->segment_bytes = 1u << 30;
	config->segment_ms = 7ULL * 24 * 60 * 60 * 1000;
	config->index_interval_bytes = 4096;
	config->index_bytes = 10 << 20;
	config->retention_ms = -1;
	config->retention_bytes = -1;
	config->file_delete_delay_ms = 60000;
	config->flush_messages = PLOG_NEVER;
	config->flush_ms = PLOG_NEVER;
}

#define STATE_FLAGS (PLOG_STATE_REPLICATED | PLOG_STATE_LEADER | PLOG_STATE_COMPACT | \
		     PLOG_STATE_INTERNAL | PLOG_STATE_LOG_APPEND_TIME)

int plog_config_check(const struct plog_config *config, const char **what)
{
	*what = NULL;
	if (config->flags & ~STATE_FLAGS)
		*what = "flags";
	else if (config->max_message_bytes < PLOG_MESSAGE_BYTES_MIN ||
		 config->max_message_bytes > PLOG_MESSAGE_BYTES_MAX)
		*what = "max.message.bytes";
	else if (config->segment_bytes < 14 || config->segment_bytes > INT_MAX)
		*what = "segment.bytes";
	else if (config->segment_ms < 1 || config->segment_ms > S64_MAX)
		*what = "segment.ms";
	else if (config->index_interval_bytes > INT_MAX)
		*what = "index.interval.bytes";
	else if (config->index_bytes < PLOG_TIMEINDEX_ENTRY || config->index_bytes > INT_MAX)
		*what = "segment.index.bytes";
	else if (config->segment_jitter_ms > S64_MAX)
		*what = "segment.jitter.ms";
	else if (config->retention_ms < -1)
		*what = "retention.ms";
	else if (config->retention_bytes < -1)
		*what = "retention.bytes";
	else if (config->file_delete_delay_ms > S64_MAX)
		*what = "file.delete.delay.ms";
	else if (config->flush_messages < 1 || config->flush_messages > S64_MAX)
		*what = "flush.messages";
	else if (config->flush_ms > S64_MAX)
		*what = "flush.ms";
	return *what ? -ERANGE : 0;
}

static void take_flush_policy(struct plog_partition *p)
{
	WRITE_ONCE(p->flush_messages, p->config.flush_messages);
	WRITE_ONCE(p->flush_ms, p->config.flush_ms);
}

int plog_partition_configure(struct plog_partition *p, const struct plog_config *config)
{
	const char *what;
	int err = plog_config_check(config, &what);
	bool sooner, online;
	u32 flags, role;

	if (err)
		return err;
	if (mutex_lock_killable(&p->lock))
		return -EINTR;
	role = p->config.flags & PLOG_ROLE;
	sooner = config->flush_ms < p->config.flush_ms;
	p->config = *config;
	flags = config->flags;
	if (p->led)
		p->config.flags = flags = (flags & ~PLOG_ROLE) | role;
	take_flush_policy(p);
	if (p->pub.state == PLOG_PARTITION_ONLINE || p->pub.state == PLOG_PARTITION_FENCED)
		plog_active(p)->index_interval = config->index_interval_bytes;
	plog_publish_begin(p);
	WRITE_ONCE(p->pub.flags, plog_pub_flags(p));
	if (!(flags & PLOG_STATE_REPLICATED))
		smp_store_release(&p->pub.high_watermark, p->pub.log_end);
	plog_unstable_replicated(p);
	plog_publish_end(p);
	online = p->pub.state == PLOG_PARTITION_ONLINE;
	mutex_unlock(&p->lock);
	if (sooner && online)
		plog_flush_sooner(p);
	plog_wake(p);
	return 0;
}

void plog_partition_config(struct plog_partition *p, struct plog_config *config)
{
	mutex_lock(&p->lock);
	*config = p->config;
	mutex_unlock(&p->lock);
}

/* ---- life ---- */

struct plog_partition *plog_partition_create(const char *name, struct plog_dir *dir,
					     const struct plog_config *config,
					     const struct plog_partition_events *ops, void *owner)
{
	struct plog_partition *p;
	const char *what;
	int err;

	err = plog_config_check(config, &what);
	if (err)
		goto err_dir;
	err = -ENOMEM;
	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		goto err_dir;
	p->name = kstrdup(name, GFP_KERNEL);
	if (!p->name)
		goto err_free;
	refcount_set(&p->refs, 1);
	p->dir = dir;
	p->ops = ops;
	p->owner = owner;
	mutex_init(&p->lock);
	seqcount_init(&p->seq);
	mutex_init(&p->state_lock);
	mutex_init(&p->sync_lock);
	spin_lock_init(&p->point_lock);
	init_waitqueue_head(&p->waitq);
	init_waitqueue_head(&p->roll_wait);
	INIT_WORK(&p->roll.work, plog_roll_work);
	INIT_WORK(&p->flush_work, plog_flush_work);
	INIT_DELAYED_WORK(&p->flush_later, plog_flush_later_work);
	spin_lock_init(&p->retired_lock);
	INIT_LIST_HEAD(&p->retired);
	INIT_LIST_HEAD(&p->awake);
	INIT_DELAYED_WORK(&p->reap_work, plog_reap_work);
	p->config = *config;
	take_flush_policy(p);
	p->pub.flags = config->flags;
	p->pub.state = PLOG_PARTITION_OPENING;
	p->pub.first_unstable = S64_MAX;
	p->pub.last_producer = -1;
	p->pub.last_marker = -1;
	plog_settled_init(&p->settled);
	p->pub.generation = 1;
	p->pub.max_timestamp = -1;
	p->pub.epoch_start = -1;
	plog_object_created(PLOG_OBJECT_PARTITION);
	return p;

err_free:
	kfree(p);
err_dir:
	plog_dir_put(dir);
	return ERR_PTR(err);
}

void *plog_partition_owner(const struct plog_partition *p)
{
	return p->owner;
}

const char *plog_partition_name(const struct plog_partition *p)
{
	return p->name;
}

void plog_partition_get(struct plog_partition *p)
{
	refcount_inc(&p->refs);
}

/* Publish a new state, under the append mutex. */
static void set_state(struct plog_partition *p, u32 state, int error)
{
	plog_publish_begin(p);
	WRITE_ONCE(p->pub.error, -error);
	WRITE_ONCE(p->pub.state, state);
	plog_publish_end(p);
	if (p->ops && p->ops->state)
		p->ops->state(p, state, -error);
}

/* Waiters look at the state too. */
static void wake_everyone(struct plog_partition *p)
{
	wake_up_all(&p->waitq);
	if (p->ops && p->ops->visible)
		p->ops->visible(p);
}

static void drop_table(struct plog_partition *p)
{
	struct plog_table *table;
	u32 i;

	mutex_lock(&p->lock);
	plog_swap_forget(p);
	table = plog_table(p);
	plog_publish_begin(p);
	rcu_assign_pointer(p->table, NULL);
	plog_publish_end(p);
	mutex_unlock(&p->lock);
	plog_rest_forget(p);
	if (!table)
		return;
	for (i = 0; i < table->count; i++) {
		struct plog_segment *seg = table->seg[i];

		if (seg->held)
			plog_segment_unuse(seg);
		seg->held = false;
		plog_segment_retire(seg);
		plog_segment_put(seg);
	}
	kvfree_rcu(table, rcu);
}

static int do_close(struct plog_partition *p, bool clean)
{
	bool pristine;
	u32 state;
	int err = 0;

	/* not between a log start on disk and the table that goes with it */
	mutex_lock(&p->sync_lock);
	mutex_lock(&p->lock);
	plog_settle(p);
	state = p->pub.state;
	if (state == PLOG_PARTITION_CLOSED) {
		mutex_unlock(&p->lock);
		mutex_unlock(&p->sync_lock);
		return 0;
	}
	plog_roll_settle(p, -1, false);
	clean = clean && state == PLOG_PARTITION_ONLINE;
	/* at rest it was sealed, but kept its room on the disk for the next append */
	if (clean && (plog_active(p)->preallocated || plog_active(p)->uncut))
		plog_active_renew(p, plog_active(p));
	if (clean && plog_active(p)->active) {
		plog_segment_seal(plog_active(p));
		plog_segment_trim(plog_active(p));
	}
	set_state(p, PLOG_PARTITION_CLOSED, 0);
	mutex_unlock(&p->lock);
	mutex_unlock(&p->sync_lock);
	wake_everyone(p);
	if (clean) {
		/*
		 * What was made and never used needs no sync: whatever a power cut
		 * leaves of it, it is as empty as when it was opened.
		 */
		pristine = p->fresh && !p->pub.log_end && !READ_ONCE(p->state_durable) &&
			   !READ_ONCE(p->cut_dirty);
		err = pristine ? 0 : plog_sync_log(p, false);
		if (!err)
			err = plog_save(p, true, !pristine);
		if (err)
			pr_warn("%s: not closed cleanly (error %d): the next start will check the log\n",
				p->name, err);
	}
	drop_table(p);
	return err;
}

int plog_partition_close(struct plog_partition *p, bool clean)
{
	int err = do_close(p, clean);

	flush_work(&p->flush_work);
	if (cancel_delayed_work_sync(&p->flush_later))
		plog_partition_put(p);
	plog_reap_stop(p);
	return err;
}

void plog_partition_put(struct plog_partition *p)
{
	if (!refcount_dec_and_test(&p->refs))
		return;
	/* each work item holds a reference: none is queued; and nobody is to be told */
	p->ops = NULL;
	do_close(p, false);
	plog_retired_free(p);
	kvfree(rcu_dereference_protected(p->epochs, true));
	plog_dir_put(p->dir);
	mutex_destroy(&p->sync_lock);
	mutex_destroy(&p->state_lock);
	mutex_destroy(&p->lock);
	kfree(p->unstable);
	kfree(p->name);
	kfree(p);
	plog_object_destroyed(PLOG_OBJECT_PARTITION);
}

int plog_partition_open(struct plog_partition *p)
{
	int err;

	mutex_lock(&p->lock);
	if (p->pub.state != PLOG_PARTITION_OPENING) {
		mutex_unlock(&p->lock);
		return -EBUSY;
	}
	err = plog_recover(p);
	plog_event_recover(p->name, atomic64_read(&p->count.recovered_bytes),
			   atomic64_read(&p->count.truncated_bytes));
	if (err && err != -ECANCELED)
		pr_err("%s: cannot be opened (error %d)\n", p->name, err);
	set_state(p, err ? PLOG_PARTITION_FAILED : PLOG_PARTITION_ONLINE, err);
	mutex_unlock(&p->lock);
	if (err)
		drop_table(p);
	else if (READ_ONCE(p->retired_count))
		plog_reap_queue(p, 0);
	wake_everyone(p);
	return err;
}

void plog_partition_abandon(struct plog_partition *p)
{
	WRITE_ONCE(p->abandoned, true);
}

/* ---- what is published ---- */

struct plog_table *plog_table_alloc(u32 count)
{
	struct plog_table *table = kvzalloc(struct_size(table, seg, count), GFP_KERNEL);

	return table;
}

struct plog_table *plog_table(struct plog_partition *p)
{
	return rcu_dereference_protected(p->table, lockdep_is_held(&p->lock));
}

struct plog_segment *plog_active(struct plog_partition *p)
{
	struct plog_table *table = plog_table(p);

	return table->seg[table->count - 1];
}

void plog_publish_begin(struct plog_partition *p)
{
	lockdep_assert_held(&p->lock);
	/*
	 * Not a seqcount_mutex_t: its readers may take the mutex on PREEMPT_RT,
	 * and ours are under RCU.
	 */
	preempt_disable();
	write_seqcount_begin(&p->seq);
}

void plog_publish_end(struct plog_partition *p)
{
	write_seqcount_end(&p->seq);
	preempt_enable();
}

static void copy_published(const struct plog_published *from, struct plog_published *to)
{
	to->state = READ_ONCE(from->state);
	to->error = READ_ONCE(from->error);
	to->flags = READ_ONCE(from->flags);
	to->leader_epoch = READ_ONCE(from->leader_epoch);
	to->cuts = READ_ONCE(from->cuts);
	to->epoch_start = READ_ONCE(from->epoch_start);
	to->log_start = READ_ONCE(from->log_start);
	to->high_watermark = READ_ONCE(from->high_watermark);
	to->first_unstable = READ_ONCE(from->first_unstable);
	to->log_end = READ_ONCE(from->log_end);
	to->last_producer = READ_ONCE(from->last_producer);
	to->last_marker = READ_ONCE(from->last_marker);
	to->max_timestamp = READ_ONCE(from->max_timestamp);
	to->bytes = READ_ONCE(from->bytes);
	to->active_end = READ_ONCE(from->active_end);
	to->generation = READ_ONCE(from->generation);
}

u32 plog_table_find(const struct plog_table *table, s64 offset)
{
	u32 low = 0, high = table->count;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (table->seg[mid]->base <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : 0;
}

void plog_look(struct plog_partition *p, s64 offset, struct plog_look *look)
{
	struct plog_segment *seg;
	struct plog_table *table;
	unsigned int seq;
	u32 i;

again:
	seg = NULL;
	rcu_read_lock();
	seq = read_seqcount_begin(&p->seq);
	copy_published(&p->pub, &look->pub);
	table = rcu_dereference(p->table);
	look->segments = table ? table->count : 0;
	if (table && table->count && offset >= 0) {
		i = plog_table_find(table, offset);
		seg = table->seg[i];
		look->active = i == table->count - 1;
		look->next = look->active ? look->pub.log_end : table->seg[i + 1]->base;
		look->end = look->active ? look->pub.active_end : READ_ONCE(seg->end);
		look->cut_gen = READ_ONCE(seg->cut_gen);
	}
	if (read_seqcount_retry(&p->seq, seq) || (seg && !refcount_inc_not_zero(&seg->refs))) {
		rcu_read_unlock();
		goto again;
	}
	rcu_read_unlock();
	look->seg = seg;
}

void plog_look_put(struct plog_look *look)
{
	if (look->seg)
		plog_segment_put(look->seg);
	look->seg = NULL;
}

void plog_look_view(const struct plog_look *look, struct plog_view *view)
{
	const struct plog_published *pub = &look->pub;

	view->state = pub->state;
	view->error = pub->error;
	view->flags = pub->flags;
	view->segments = look->segments;
	view->leader_epoch = pub->leader_epoch;
	view->cuts = pub->cuts;
	view->log_start = pub->log_start;
	view->high_watermark = pub->high_watermark;
	view->last_stable = plog_last_stable(pub);
	view->first_unstable = pub->first_unstable == S64_MAX ? -1 : pub->first_unstable;
	/* what was deleted is not there any more */
	view->last_producer = pub->last_producer < pub->log_start ? -1 : pub->last_producer;
	view->log_end = pub->log_end;
	view->max_timestamp = pub->max_timestamp;
	view->bytes = pub->bytes;
	view->retired = 0;
}

void plog_partition_view(struct plog_partition *p, struct plog_view *view)
{
	struct plog_look look;

	plog_look(p, -1, &look);
	plog_look_view(&look, view);
	view->retired = READ_ONCE(p->retired_count);
	plog_look_put(&look);
}

s64 plog_partition_end(struct plog_partition *p, enum plog_end end)
{
	struct plog_look look;

	switch (end) {
	case PLOG_END_LEO:
		return smp_load_acquire(&p->pub.log_end);
	case PLOG_END_LSO:
		/* of three offsets that belong together */
		plog_look(p, -1, &look);
		return plog_last_stable(&look.pub);
	default:
		return smp_load_acquire(&p->pub.high_watermark);
	}
}

struct wait_queue_head *plog_partition_waitq(struct plog_partition *p)
{
	return &p->waitq;
}

void plog_wake(struct plog_partition *p)
{
	if (wq_has_sleeper(&p->waitq)) {
		wake_up_all(&p->waitq);
		atomic64_inc(&p->count.wakeups);
		plog_event_wake(p->name, READ_ONCE(p->pub.log_end));
	}
	if (p->ops && p->ops->visible)
		p->ops->visible(p);
}

void plog_fence(struct plog_partition *p, int error, const char *why)
{
	lockdep_assert_held(&p->lock);
	if (p->pub.state != PLOG_PARTITION_ONLINE)
		return;
	pr_err("%s: %s (error %d): fenced, takes no appends until it is opened again\n",
	       p->name, why, error);
	plog_event_fence(p->name, error);
	set_state(p, PLOG_PARTITION_FENCED, error);
	wake_up_all(&p->waitq);
}

void plog_settle(struct plog_partition *p)
{
	s64 start;
	int error;

	lockdep_assert_held(&p->lock);
	if (!READ_ONCE(p->unsettled))
		return;
	spin_lock(&p->point_lock);
	start = p->unsettled_start;
	error = p->unsettled_error;
	spin_unlock(&p->point_lock);
	if (start > p->pub.log_start) {
		p->clean_on_disk = false;
		plog_publish_begin(p);
		WRITE_ONCE(p->pub.log_start, start);
		plog_publish_end(p);
	}
	if (error)
		plog_fence(p, error, "a sync failed");
}

int plog_check_state(const struct plog_partition *p)
{
	switch (READ_ONCE(p->pub.state)) {
	case PLOG_PARTITION_ONLINE:
		return 0;
	case PLOG_PARTITION_OPENING:
		return -EAGAIN;
	case PLOG_PARTITION_FENCED:
		return -EROFS;
	default:
		return -ENODEV;
	}
}

int plog_check_fence(const struct plog_partition *p, s32 leader_epoch, u64 incarnation,
		     const u64 *current_incarnation)
{
	if (current_incarnation && READ_ONCE(*current_incarnation) != incarnation)
		return -ESTALE;
	return leader_epoch == p->pub.leader_epoch ? 0 : -ESTALE;
}

/* Is there a segment wholly below the log start, that was not retired yet? */
static bool starts_below(struct plog_partition *p, s64 log_start)
{
	struct plog_look first, look;
	bool below;

	plog_look(p, 0, &first);
	plog_look(p, log_start, &look);
	below = first.seg != look.seg;
	plog_look_put(&look);
	plog_look_put(&first);
	return below;
}

int plog_save_locked(struct plog_partition *p, bool clean, bool sync)
{
	struct plog_epoch_text text;
	struct plog_saved saved;
	struct plog_look look;
	bool epochs, pending;
	s64 epoch_start;
	s32 epoch;
	int err;

	lockdep_assert_held(&p->state_lock);
	/* first: what is no longer pending is published, and the look sees it */
	pending = plog_epoch_pending(p, &epoch, &epoch_start);
	plog_look(p, S64_MAX, &look);
	if (!clean && look.pub.state == PLOG_PARTITION_CLOSED) {
		/* a flush that comes late: the last word is spoken */
		plog_look_put(&look);
		return 0;
	}
	saved = p->saved;
	saved.clean = clean;
	saved.leftovers = READ_ONCE(p->leftovers) || READ_ONCE(p->retired_count);
	saved.log_start = max_t(s64, saved.log_start, look.pub.log_start);
	/* an open leaves that out, and has to count what is left */
	if (clean)
		saved.leftovers |= starts_below(p, saved.log_start);
	saved.high_watermark = max_t(s64, look.pub.high_watermark, saved.log_start);
	saved.log_end = look.pub.log_end;
	saved.active_base = look.seg ? look.seg->base : 0;
	saved.active_bytes = look.pub.active_end;
	saved.bytes = look.pub.bytes;
	saved.max_timestamp = look.pub.max_timestamp;
	saved.leader_epoch = look.pub.leader_epoch;
	saved.epoch_start = look.pub.epoch_start;
	if (pending) {
		saved.leader_epoch = epoch;
		saved.epoch_start = epoch_start;
	}
	spin_lock(&p->point_lock);
	saved.recovery_point = p->recovery_point;
	saved.settled = p->settled;
	spin_unlock(&p->point_lock);
	plog_look_put(&look);
	epochs = sync && plog_epochs_unsaved(p, look.pub.log_end);
	/* the end of what was not touched since it was opened: the file says all of this */
	if (clean && !epochs && !memcmp(&saved, &p->saved, sizeof(saved)))
		return 0;
	err = epochs ? plog_epoch_snapshot(p, &text) : 0;
	if (err)
		return err;
	if (epochs)
		saved.epochs_crc = text.crc;
	/* the epochs second: a torn file is made anew with the help of the state */
	err = plog_state_write(p->dir, &saved, sync);
	p->saved.sequence = saved.sequence;
	if (err) {
		/* it may be there all the same: a clean end is to be written, whatever was */
		p->saved.clean = false;
		goto out_text;
	}
	p->saved = saved;
	if (sync)
		WRITE_ONCE(p->state_durable, true);
	if (epochs)
		err = plog_epoch_write(p, &text);
out_text:
	if (epochs) {
		if (err)
			WRITE_ONCE(p->epochs_dirty, true);
		kvfree(text.text);
	}
	return err;
}

int plog_save(struct plog_partition *p, bool clean, bool sync)
{
	int err;

	/* a worker may hold it until a filesystem is thawed */
	if (mutex_lock_killable(&p->state_lock))
		return -EINTR;
	err = plog_save_locked(p, clean, sync);
	mutex_unlock(&p->state_lock);
	return err;
}

/* ---- counters and lists ---- */

void plog_partition_stats(struct plog_partition *p, struct plog_partition_stats *st)
{
	st->appends = atomic64_read(&p->count.appends);
	st->records = atomic64_read(&p->count.records);
	st->append_bytes = atomic64_read(&p->count.append_bytes);
	st->append_refused = atomic64_read(&p->count.append_refused);
	st->reads = atomic64_read(&p->count.reads);
	st->read_bytes = atomic64_read(&p->count.read_bytes);
	st->wakeups = atomic64_read(&p->count.wakeups);
	st->rolls = atomic64_read(&p->count.rolls);
	st->fsyncs = atomic64_read(&p->count.fsyncs);
	st->recovered_bytes = atomic64_read(&p->count.recovered_bytes);
	st->truncated_bytes = atomic64_read(&p->count.truncated_bytes);
	st->retired_segments = atomic64_read(&p->count.retired_segments);
	st->retired_bytes = atomic64_read(&p->count.retired_bytes);
	st->lookups = atomic64_read(&p->count.lookups);
	st->sync_errors = atomic64_read(&p->count.sync_errors);
	st->index_rebuilds = atomic64_read(&p->count.segments.rebuilds);
}

void plog_partition_gauges(struct plog_partition *p, struct plog_partition_gauges *g)
{
	g->open_files = atomic_read(&p->count.segments.files);
	g->pins = atomic_read(&p->count.segments.pins);
	g->generation = READ_ONCE(p->pub.generation);
}

void plog_partition_count_read(struct plog_partition *p, u64 bytes)
{
	atomic64_inc(&p->count.reads);
	atomic64_add(bytes, &p->count.read_bytes);
}

int plog_partition_segments(struct plog_partition *p, s64 from,
			    int (*fn)(void *arg, const struct plog_segment_info *info), void *arg)
{
	s64 offset = max_t(s64, from, 0);
	int ret = 0;

	for (;;) {
		struct plog_segment_info info = { 0 };
		struct plog_look look;
		struct plog_segment *seg;

		plog_look(p, offset, &look);
		seg = look.seg;
		if (!seg)
			break;
		info.base_offset = seg->base;
		ret = plog_segment_use(seg, p->dir);
		if (!ret) {
			ret = plog_segment_learn(seg, p->dir);
			info.bytes = look.active ? look.end : READ_ONCE(seg->end);
			info.index_bytes = READ_ONCE(seg->index.e.count) * PLOG_INDEX_ENTRY;
			info.timeindex_bytes =
				READ_ONCE(seg->timeindex.e.count) * PLOG_TIMEINDEX_ENTRY;
			plog_segment_unuse(seg);
		}
		if (ret && READ_ONCE(seg->retired)) {
			plog_look_put(&look);
			continue;	/* it left the table meanwhile */
		}
		info.max_timestamp = READ_ONCE(seg->max_timestamp);
		info.active = look.active;
		info.generation = look.pub.generation;
		info.pins = atomic_read(&seg->pins);
		offset = look.next;
		plog_look_put(&look);
		if (!ret)
			ret = fn(arg, &info);
		if (ret || info.active)
			break;
	}
	return ret;
}
