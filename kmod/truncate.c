// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Offsets that the daemon moves: the high watermark, the log start, the log
 * end back, and the leader epoch.
 */
#define pr_fmt(fmt) "plog: " fmt

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "engine.h"
#include "event.h"

/* Take the mutex for a command of that epoch. Return: 0 with the mutex, or an error. */
static int begin(struct plog_partition *p, const struct plog_fence *f)
{
	int err = plog_check_state(p);

	/* opening holds the mutex as long as a recovery takes */
	if (err)
		return err;
	if (mutex_lock_killable(&p->lock))
		return -EINTR;
	err = plog_check_state(p);
	if (!err && f)
		err = plog_check_fence(p, f->leader_epoch, f->incarnation, f->current_incarnation);
	if (err)
		mutex_unlock(&p->lock);
	return err;
}

int plog_partition_set_epoch(struct plog_partition *p, s32 epoch)
{
	int err = begin(p, NULL);

	if (err)
		return err;
	if (epoch < p->pub.leader_epoch) {
		err = -ESTALE;
	} else if (epoch > p->pub.leader_epoch) {
		plog_publish_begin(p);
		WRITE_ONCE(p->pub.leader_epoch, epoch);
		plog_publish_end(p);
	}
	mutex_unlock(&p->lock);
	/* a writer that waits for the high watermark of an epoch that is over */
	if (!err)
		plog_wake(p);
	return err;
}

int plog_partition_set_hw(struct plog_partition *p, const struct plog_fence *f, s64 *offset)
{
	bool moved = false;
	int err = begin(p, f);

	if (err)
		return err;
	if (!(p->config.flags & PLOG_STATE_REPLICATED)) {
		err = -EINVAL;
	} else if (*offset < p->pub.log_start || *offset > p->pub.log_end) {
		err = -ERANGE;
	} else if (*offset > p->pub.high_watermark) {
		plog_publish_begin(p);
		smp_store_release(&p->pub.high_watermark, *offset);
		plog_publish_end(p);
		moved = true;
	}
	*offset = p->pub.high_watermark;
	mutex_unlock(&p->lock);
	if (moved) {
		plog_event_publish(p->name, READ_ONCE(p->pub.log_end), *offset);
		plog_wake(p);
	}
	return err;
}

/* Put a log start into the state file, or take it back if that fails. */
static int save_log_start(struct plog_partition *p, s64 offset, s64 before)
{
	int err;

	mutex_lock(&p->state_lock);
	p->saved.log_start = offset;
	mutex_unlock(&p->state_lock);
	err = plog_save(p, false, true);
	if (err) {
		mutex_lock(&p->state_lock);
		p->saved.log_start = before;
		mutex_unlock(&p->state_lock);
	}
	return err;
}

int plog_partition_set_log_start(struct plog_partition *p, const struct plog_fence *f, s64 *offset)
{
	s64 before, wanted = *offset;
	int err;

	/*
	 * On disk first: what was answered must not come back.  Appends go on
	 * meanwhile; truncations and other log starts wait.
	 */
	if (mutex_lock_killable(&p->sync_lock))
		return -EINTR;
	err = begin(p, f);
	if (err)
		goto out;
	before = p->pub.log_start;
	if (wanted > p->pub.high_watermark || wanted < 0)
		err = -ERANGE;
	mutex_unlock(&p->lock);
	*offset = before;
	if (err || wanted <= before)
		goto out;
	err = save_log_start(p, wanted, before);
	if (!err)
		err = begin(p, f);
	if (err)
		goto out;
	p->clean_on_disk = false;
	plog_publish_begin(p);
	WRITE_ONCE(p->pub.log_start, wanted);
	plog_publish_end(p);
	mutex_unlock(&p->lock);
	*offset = wanted;
out:
	mutex_unlock(&p->sync_lock);
	return err;
}

/* ---- truncation ---- */

/*
 * struct cut - where the log will end
 * @keep: segments that stay
 * @pos: bytes of the last of them
 * @offset: the new log end
 */
struct cut {
	u32 keep;
	u64 pos;
	s64 offset;
};

/* Find the batch that holds @offset or follows it. */
static int find_cut(struct plog_partition *p, s64 offset, struct cut *cut)
{
	struct plog_table *table = plog_table(p);
	struct plog_segment *seg;
	struct plog_cursor cur;
	u32 i = table->count;
	u8 *window;
	int ret;

	while (i > 1 && table->seg[i - 1]->base > offset)
		i--;
	seg = table->seg[i - 1];
	cut->keep = i;
	cut->offset = offset;
	ret = plog_segment_use(seg, p->dir);
	if (ret)
		return ret;
	window = kmalloc(PLOG_RECORD_WINDOW, GFP_KERNEL);
	if (!window) {
		ret = -ENOMEM;
		goto out;
	}
	plog_cursor_init(&cur, seg, seg->end, seg->cut_gen, window);
	ret = plog_segment_seek(seg, &cur, offset);
	cut->pos = cur.pos;
	if (ret > 0)
		cut->offset = min_t(s64, offset, cur.batch.base_offset);
	else if (!ret)
		cut->pos = seg->end;
	kfree(window);
out:
	plog_segment_unuse(seg);
	return ret < 0 ? (ret == -EBADMSG ? -EIO : ret) : 0;
}

/* Tell readers before a byte goes; they look after they have read. */
static void void_extents(struct plog_segment *seg, u64 pos)
{
	if (pos < seg->cut_low)
		WRITE_ONCE(seg->cut_low, pos);
	smp_store_release(&seg->cut_gen, seg->cut_gen + 1);
}

/* What cannot be learnt now, by a caller that is killed, leaves what is published. */
static s64 max_timestamp(struct plog_partition *p)
{
	struct plog_table *table = plog_table(p);
	bool known = true;
	s64 max = -1;
	u32 i;

	for (i = 0; i < table->count; i++) {
		struct plog_segment *seg = table->seg[i];

		if (plog_segment_use(seg, p->dir)) {
			known = false;
			continue;
		}
		mutex_lock(&seg->flock);
		if (seg->active || !plog_segment_times(seg, p->dir))
			max = max_t(s64, max, seg->max_timestamp);
		else
			known = false;
		mutex_unlock(&seg->flock);
		plog_segment_unuse(seg);
	}
	return known ? max : max_t(s64, max, p->pub.max_timestamp);
}

/* Publish the shorter log; from here on no reader finds what goes. */
static void publish_cut(struct plog_partition *p, struct plog_table *table, const struct cut *cut,
			u64 bytes)
{
	struct plog_table *old = plog_table(p);
	u32 i;

	memcpy(table->seg, old->seg, cut->keep * sizeof(old->seg[0]));
	table->count = cut->keep;
	plog_publish_begin(p);
	for (i = cut->keep; i < old->count; i++) {
		void_extents(old->seg[i], 0);
		WRITE_ONCE(old->seg[i]->end, 0);
	}
	void_extents(table->seg[cut->keep - 1], cut->pos);
	WRITE_ONCE(table->seg[cut->keep - 1]->end, cut->pos);
	WRITE_ONCE(p->pub.active_end, cut->pos);
	WRITE_ONCE(p->pub.bytes, bytes);
	smp_store_release(&p->pub.log_end, cut->offset);
	if (p->pub.high_watermark > cut->offset)
		smp_store_release(&p->pub.high_watermark, cut->offset);
	rcu_assign_pointer(p->table, table);
	plog_publish_end(p);
}

static int truncate_locked(struct plog_partition *p, s64 offset)
{
	struct plog_table *old, *table;
	struct plog_segment *seg;
	struct cut cut;
	u64 bytes, gone = 0;
	s64 max;
	u32 i;
	int err, bad = 0;

	err = plog_roll_settle(p, -1, true);
	if (err)
		return err;
	old = plog_table(p);
	err = find_cut(p, offset, &cut);
	if (err)
		return err;
	table = plog_table_alloc(cut.keep);
	if (!table)
		return -ENOMEM;
	/* open what will be cut: nothing that can fail is left to do then */
	for (i = cut.keep - 1; i < old->count; i++) {
		err = plog_segment_use(old->seg[i], p->dir);
		if (err)
			goto err_unuse;
		gone += old->seg[i]->end;
	}
	gone -= cut.pos;
	spin_lock(&p->point_lock);
	p->recovery_point = min_t(s64, p->recovery_point, cut.offset);
	spin_unlock(&p->point_lock);
	if (cut.keep < old->count)
		WRITE_ONCE(p->leftovers, true);
	/*
	 * Durable before the log is shorter: a clean mark could fit a log that
	 * was cut and has grown to the same size, and recovery has to begin
	 * where the log was changed.
	 */
	err = plog_save(p, false, true);
	if (err)
		goto err_unuse;
	p->clean_on_disk = false;
	bytes = p->pub.bytes - min_t(u64, gone, p->pub.bytes);
	publish_cut(p, table, &cut, bytes);
	/* from the end: a crash in the middle leaves the start of the log */
	for (i = old->count; i-- > cut.keep;) {
		seg = old->seg[i];
		err = plog_segment_cut(seg, p->dir, 0, seg->base);
		bad = bad ? bad : err;
		plog_segment_unuse(seg);
		seg->active = false;
		if (seg->held)
			plog_segment_unuse(seg);
		seg->held = false;
		plog_segment_retire(seg);
		plog_segment_put(seg);
	}
	seg = table->seg[cut.keep - 1];
	err = plog_segment_cut(seg, p->dir, cut.pos, cut.offset);
	bad = bad ? bad : err;
	plog_segment_unuse(seg);
	kvfree_rcu(old, rcu);
	/* killed here, the next append does it */
	err = plog_active_renew(p, seg);
	bad = bad || err == -EINTR ? bad : err;
	max = max_timestamp(p);
	plog_publish_begin(p);
	WRITE_ONCE(p->pub.max_timestamp, max);
	plog_publish_end(p);
	atomic64_add(gone, &p->count.truncated_bytes);
	if (bad)
		plog_fence(p, bad, "a truncation failed half way");
	return bad;

err_unuse:
	while (i-- > cut.keep - 1)
		plog_segment_unuse(old->seg[i]);
	kvfree(table);
	return err;
}

int plog_partition_truncate(struct plog_partition *p, const struct plog_fence *f, s64 *offset)
{
	int err;

	/* no sync may take the end that it saw for the recovery point */
	if (mutex_lock_killable(&p->sync_lock))
		return -EINTR;
	err = begin(p, f);
	if (err) {
		mutex_unlock(&p->sync_lock);
		return err;
	}
	if (*offset < p->pub.log_start || *offset > p->pub.log_end)
		err = -ERANGE;
	else if (*offset < p->pub.log_end)
		err = truncate_locked(p, *offset);
	*offset = p->pub.log_end;
	mutex_unlock(&p->lock);
	mutex_unlock(&p->sync_lock);
	plog_wake(p);
	return err;
}
