// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Retention: the log start moves, by the configuration or by a command, and the
 * segments that lie wholly below it are retired.
 *
 * Everything happens in that order: a new log start is on stable storage before
 * anybody sees it, and before a segment leaves the table.  So a crash at any
 * point leaves a log start that never moves back, and files below it that an
 * open takes for what they are.
 *
 * sync_lock keeps truncations and other log starts away throughout.  Appends go
 * on: they only add to the end of the table, and the append mutex is held for
 * changes in memory alone, and for a roll.
 */
#define pr_fmt(fmt) "plog: " fmt

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "engine.h"
#include "event.h"

/* ---- whole segments below the log start ---- */

/*
 * struct gone - segments that are to leave the table
 * @list: struct plog_retired, with a reference of its own to each segment
 * @bytes, @max_timestamp: of all of them
 */
struct gone {
	struct list_head list;
	u32 count;
	u64 bytes;
	s64 max_timestamp;
};

static void forget(struct gone *gone)
{
	struct plog_retired *r, *next;

	list_for_each_entry_safe(r, next, &gone->list, list) {
		plog_segment_put(r->seg);
		kfree(r);
	}
}

/* List the segments that lie wholly below the log start. Under the append mutex. */
static int collect(struct plog_partition *p, struct gone *gone)
{
	struct plog_table *table = plog_table(p);
	struct plog_retired *r;
	u32 i;

	for (i = 0; i + 1 < table->count && table->seg[i + 1]->base <= p->pub.log_start; i++) {
		/* its files are being renamed: the next look finds it */
		if (table->seg[i]->swap)
			break;
		r = plog_retired_alloc(table->seg[i]->base);
		if (!r)
			return -ENOMEM;
		r->seg = table->seg[i];
		refcount_inc(&r->seg->refs);
		list_add_tail(&r->list, &gone->list);
		gone->count++;
	}
	return 0;
}

/* Size and time of each: an open that was clean has not looked. */
static int measure(struct plog_partition *p, struct gone *gone)
{
	struct plog_retired *r;
	int err;

	list_for_each_entry(r, &gone->list, list) {
		err = plog_segment_use(r->seg, p->dir);
		if (err)
			return err;
		err = plog_segment_learn(r->seg, p->dir);
		r->bytes = READ_ONCE(r->seg->end);
		gone->bytes += r->bytes;
		gone->max_timestamp = max_t(s64, gone->max_timestamp,
					    READ_ONCE(r->seg->max_timestamp));
		plog_segment_unuse(r->seg);
		if (err)
			return err;
	}
	return 0;
}

/* Publish a table without the first @gone->count segments. Under the append mutex. */
static int drop_first(struct plog_partition *p, const struct gone *gone)
{
	struct plog_table *old = plog_table(p), *table;
	u32 i, n = gone->count;
	s64 max;

	table = plog_table_alloc(old->count - n);
	if (!table)
		return -ENOMEM;
	table->count = old->count - n;
	memcpy(table->seg, old->seg + n, table->count * sizeof(table->seg[0]));
	plog_publish_begin(p);
	WRITE_ONCE(p->pub.bytes, p->pub.bytes - min_t(u64, gone->bytes, p->pub.bytes));
	WRITE_ONCE(p->pub.generation, p->pub.generation + 1);
	rcu_assign_pointer(p->table, table);
	plog_publish_end(p);
	if (gone->max_timestamp >= p->pub.max_timestamp) {
		max = plog_max_timestamp(p);
		plog_publish_begin(p);
		WRITE_ONCE(p->pub.max_timestamp, max);
		plog_publish_end(p);
	}
	for (i = 0; i < n; i++) {
		struct plog_segment *seg = old->seg[i];

		/* what is not synced of it need not be any more */
		if (seg->held)
			plog_segment_unuse(seg);
		seg->held = false;
		plog_segment_retire(seg);
		plog_segment_put(seg);
	}
	kvfree_rcu(old, rcu);
	return 0;
}

int plog_retire_below(struct plog_partition *p)
{
	struct gone gone = { .max_timestamp = -1 };
	struct plog_retired *r, *next;
	u64 delay;
	int err;

	INIT_LIST_HEAD(&gone.list);
	err = plog_begin(p, NULL);
	if (err)
		return err;
	err = collect(p, &gone);
	delay = p->config.file_delete_delay_ms;
	mutex_unlock(&p->lock);
	if (!err)
		err = measure(p, &gone);
	if (err || !gone.count)
		goto out;
	/* the largest of what stays will be looked for: not while writers wait */
	if (gone.max_timestamp >= READ_ONCE(p->pub.max_timestamp))
		plog_learn_times(p);
	err = plog_begin(p, NULL);
	if (err)
		goto out;
	err = drop_first(p, &gone);
	mutex_unlock(&p->lock);
	if (err)
		goto out;
	/* a reader that has seen the old table has a reference afterwards, or none ever */
	synchronize_rcu();
	plog_event_retire(p->name, gone.count, gone.bytes);
	atomic64_add(gone.count, &p->count.retired_segments);
	atomic64_add(gone.bytes, &p->count.retired_bytes);
	list_for_each_entry_safe(r, next, &gone.list, list) {
		list_del(&r->list);
		plog_retired_add(p, r, delay);
	}
	return gone.count;
out:
	forget(&gone);
	return err;
}

/* ---- the log start ---- */

/* Put a log start into the state file, or take it back if that fails. */
static int save_log_start(struct plog_partition *p, s64 offset, s64 before)
{
	int err;

	if (mutex_lock_killable(&p->state_lock))
		return -EINTR;
	p->saved.log_start = offset;
	err = plog_save_locked(p, false, true);
	if (err)
		p->saved.log_start = before;
	mutex_unlock(&p->state_lock);
	return err;
}

/* Under sync_lock. @offset: in: wanted; out: where it is now. */
static int advance(struct plog_partition *p, const struct plog_fence *f, s64 *offset)
{
	s64 before, wanted = *offset;
	int err;

	err = plog_begin(p, f);
	if (err)
		return err;
	before = p->pub.log_start;
	if (wanted > p->pub.high_watermark || wanted < 0)
		err = -ERANGE;
	mutex_unlock(&p->lock);
	*offset = before;
	if (err || wanted <= before)
		return err;
	/* on disk first: what was answered must not come back */
	err = save_log_start(p, wanted, before);
	if (err)
		return err;
	/*
	 * And what is written must not be refused, or the next open would find it: whoever
	 * leads by now, or kills the caller.  sync_lock keeps the log from getting shorter,
	 * and open.
	 */
	if (mutex_lock_killable(&p->lock)) {
		plog_leave_log_start(p, wanted);
		return -EINTR;
	}
	p->clean_on_disk = false;
	plog_publish_begin(p);
	WRITE_ONCE(p->pub.log_start, wanted);
	plog_publish_end(p);
	mutex_unlock(&p->lock);
	*offset = wanted;
	return 0;
}

/*
 * An open transaction that begins below the log start holds nobody up any more, and those who
 * read committed records wait for just that.
 */
static void wake_if_stable_moved(struct plog_partition *p, s64 before)
{
	if (plog_partition_end(p, PLOG_END_LSO) != before)
		plog_wake(p);
}

int plog_partition_set_log_start(struct plog_partition *p, const struct plog_fence *f, s64 *offset)
{
	s64 stable;
	int err;

	if (mutex_lock_killable(&p->sync_lock))
		return -EINTR;
	stable = plog_partition_end(p, PLOG_END_LSO);
	err = advance(p, f, offset);
	if (!err)
		/* the log starts there, whatever comes of this: the next retention tries again */
		plog_retire_below(p);
	mutex_unlock(&p->sync_lock);
	wake_if_stable_moved(p, stable);
	return err;
}

int plog_partition_roll(struct plog_partition *p, const struct plog_fence *f, s64 *base)
{
	int err = plog_begin(p, f);

	if (err)
		return err;
	err = plog_roll_now(p, true);
	*base = plog_active(p)->base;
	mutex_unlock(&p->lock);
	return err;
}

/* ---- what the configuration does not keep ---- */

/*
 * struct judge - a walk over the oldest segments
 * @now: one time for all of them
 * @from: base offset that the log would begin at
 * @left: bytes from there on
 * @whole: nothing but an active segment without records would be left,
 * @end: if this is still the log end
 * @last: base offset of the active segment that was judged then
 */
struct judge {
	struct plog_partition *p;
	struct plog_config config;
	s64 now;
	s64 from;
	u64 left;
	bool whole;
	s64 end;
	s64 last;
};

/* Is it to go? Return: 1, 0, or an error. The segment is in use. */
typedef int (*breach_fn)(struct judge *j, struct plog_segment *seg, u64 bytes);

/* While the others still have retention.bytes, as Kafka: never below it. */
static int size_breached(struct judge *j, struct plog_segment *seg, u64 bytes)
{
	u64 keep = j->config.retention_bytes;

	return j->left >= keep && j->left - keep >= bytes;
}

/* Its newest record decides, or where none has a time the file's own. */
static int time_breached(struct judge *j, struct plog_segment *seg, u64 bytes)
{
	struct plog_partition *p = j->p;
	s64 newest;
	int err;

	/* the times of the active one are known before its offsets are */
	err = plog_segment_learn(seg, p->dir);
	if (err)
		return err;
	newest = READ_ONCE(seg->max_timestamp);
	if (newest < 0)
		newest = plog_file_mtime_ms(seg->log);
	if (newest > j->now && !seg->future_said) {
		seg->future_said = true;
		pr_warn("%s: %020lld.log has records from the future (%lld): they stay until then and retention.ms longer\n",
			p->name, (long long)seg->base, (long long)newest);
	}
	return newest >= 0 && j->now - newest > j->config.retention_ms;
}

/* Look at the segment at @j->from. Return: 1 if it goes and there may be more, 0, or an error. */
static int judge_one(struct judge *j, breach_fn breached)
{
	struct plog_partition *p = j->p;
	struct plog_look look;
	u64 bytes;
	int ret = 0;

	plog_look(p, j->from, &look);
	if (!look.seg)
		return -ENODEV;
	/* the log start never passes the high watermark */
	if (look.pub.high_watermark < look.next || (look.active && !look.end))
		goto out;
	ret = plog_segment_use(look.seg, p->dir);
	if (ret)
		goto out;
	bytes = look.active ? look.end : READ_ONCE(look.seg->end);
	ret = breached(j, look.seg, bytes);
	plog_segment_unuse(look.seg);
	if (ret <= 0)
		goto out;
	j->from = look.next;
	j->left -= min_t(u64, bytes, j->left);
	if (look.active) {
		j->whole = true;
		j->end = look.next;
		j->last = look.seg->base;
	}
out:
	plog_look_put(&look);
	return ret;
}

static int judge(struct judge *j, breach_fn breached)
{
	int ret;

	do {
		ret = j->whole ? 0 : judge_one(j, breached);
	} while (ret > 0);
	return ret;
}

/* Everything has expired: a new segment takes the appends, and the log end stays. */
static int make_room(struct judge *j)
{
	struct plog_partition *p = j->p;
	int err = plog_begin(p, NULL);

	if (err)
		return err;
	if (p->pub.log_end == j->end && p->pub.high_watermark >= j->end)
		err = plog_roll_now(p, false);
	else
		/* what was appended since begins there, whatever has rolled meanwhile */
		j->from = j->last;
	mutex_unlock(&p->lock);
	return err;
}

static int retain_locked(struct plog_partition *p)
{
	struct judge j = { .p = p };
	struct plog_look look;
	int ret, count;
	s64 first;

	count = plog_retire_below(p);
	if (count < 0)
		return count;
	plog_partition_config(p, &j.config);
	plog_look(p, 0, &look);
	if (!look.seg)
		return -ENODEV;
	first = look.seg->base;
	j.from = first;
	j.left = look.pub.bytes;
	j.now = plog_now_ms();
	plog_look_put(&look);
	ret = j.config.retention_bytes < 0 ? 0 : judge(&j, size_breached);
	if (!ret && j.config.retention_ms >= 0)
		ret = judge(&j, time_breached);
	if (!ret && j.whole)
		ret = make_room(&j);
	if (ret || j.from == first)
		return ret ? ret : count;
	ret = advance(p, NULL, &j.from);
	if (!ret)
		ret = plog_retire_below(p);
	return ret < 0 ? ret : count + ret;
}

int plog_partition_retain(struct plog_partition *p)
{
	int ret = plog_check_state(p);
	s64 stable;

	if (ret)
		return ret;
	mutex_lock(&p->sync_lock);
	stable = plog_partition_end(p, PLOG_END_LSO);
	ret = retain_locked(p);
	mutex_unlock(&p->sync_lock);
	wake_if_stable_moved(p, stable);
	return ret;
}
