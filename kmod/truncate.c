// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Offsets that the daemon moves: the high watermark, and the log end back, by offset
 * or by leader epoch.  The log start: retention.c.
 */
#define pr_fmt(fmt) "plog: " fmt

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "engine.h"
#include "event.h"

int plog_begin(struct plog_partition *p, const struct plog_fence *f)
{
	int err = plog_check_state(p);

	/* opening holds the mutex as long as a recovery takes */
	if (err)
		return err;
	if (mutex_lock_killable(&p->lock))
		return -EINTR;
	plog_settle(p);
	err = plog_check_state(p);
	if (!err && f)
		err = plog_check_fence(p, f->leader_epoch, f->incarnation, f->current_incarnation);
	if (err)
		mutex_unlock(&p->lock);
	return err;
}

int plog_partition_set_hw(struct plog_partition *p, const struct plog_fence *f, s64 *offset)
{
	bool moved = false;
	int err = plog_begin(p, f);

	if (err)
		return err;
	if (!(p->config.flags & PLOG_STATE_REPLICATED)) {
		err = -EINVAL;
	} else if (*offset < p->pub.log_start || *offset > p->pub.log_end) {
		err = -ERANGE;
	} else if (*offset > p->pub.high_watermark) {
		plog_publish_begin(p);
		smp_store_release(&p->pub.high_watermark, *offset);
		plog_unstable_replicated(p);
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

/*
 * Before the place of the cut there is a gap, or nothing: the log is to end where
 * the batch before it does, as it will when it is opened again.
 */
static int cut_gap(struct plog_segment *seg, struct plog_cursor *cur, s64 offset,
		   struct cut *cut)
{
	s64 end = seg->base;
	int ret;

	cut->pos = min_t(u64, cut->pos, seg->end);
	ret = plog_cursor_at(cur, 0);
	while (ret > 0 && cur->pos < cut->pos) {
		end = plog_batch_last_offset(&cur->batch) + 1;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		ret = plog_cursor_next(cur);
	}
	cut->offset = min_t(s64, end, offset);
	return ret;
}

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
	if (ret > 0 && cur.pos) {
		/* does the batch before end where this one begins? */
		cut->offset = cur.batch.base_offset;
		ret = plog_segment_seek(seg, &cur, cut->offset - 1);
	}
	if (ret >= 0 && cur.pos == cut->pos)
		ret = cut_gap(seg, &cur, offset, cut);
	kfree(window);
out:
	plog_segment_unuse(seg);
	return ret < 0 ? (ret == -EBADMSG ? -EIO : ret) : 0;
}

/* Of a segment that takes no appends: are its times known? Opens it at most once. */
static bool learn_times(struct plog_partition *p, struct plog_segment *seg)
{
	bool known = smp_load_acquire(&seg->times_known);

	if (known || plog_segment_use(seg, p->dir))
		return known;
	known = !plog_segment_learn(seg, p->dir);
	plog_segment_unuse(seg);
	return known;
}

/* What cannot be learnt now, by a caller that is killed, leaves what is published. */
s64 plog_max_timestamp(struct plog_partition *p)
{
	struct plog_table *table = plog_table(p);
	bool known = true;
	s64 max = -1;
	u32 i;

	for (i = 0; i < table->count; i++) {
		struct plog_segment *seg = table->seg[i];

		if (!seg->active && !learn_times(p, seg))
			known = false;
		else
			max = max_t(s64, max, READ_ONCE(seg->max_timestamp));
	}
	return known ? max : max_t(s64, max, p->pub.max_timestamp);
}

void plog_learn_times(struct plog_partition *p)
{
	s64 offset = 0;
	bool more;

	do {
		struct plog_look look;

		plog_look(p, offset, &look);
		/* the times of the last one are its writer's */
		more = look.seg && !look.active && !fatal_signal_pending(current);
		if (more)
			learn_times(p, look.seg);
		offset = look.next;
		plog_look_put(&look);
	} while (more);
}

static void set_hw(struct plog_partition *p, s64 hw)
{
	plog_publish_begin(p);
	smp_store_release(&p->pub.high_watermark, hw);
	plog_publish_end(p);
}

/* The list of epochs of a log that ends at @end; a leader's own begins there anew. */
static int cut_epochs(struct plog_partition *p, s64 end, struct plog_epochs **next)
{
	struct plog_epoch_builder b;
	int err = plog_epoch_begin(&b, plog_epoch_list(p));

	if (err)
		return err;
	/* as an open would find them: what begins with the log ends with it */
	plog_epoch_trim(&b, p->pub.log_start);
	plog_epoch_cut(&b, end);
	if (plog_leads(p->config.flags) && p->pub.leader_epoch >= 0)
		err = plog_epoch_assign(&b, p->pub.leader_epoch, end);
	if (err)
		plog_epoch_drop(&b);
	else
		*next = plog_epoch_finish(&b);
	return err;
}

/* Publish the shorter log; from here on no reader finds what goes. The old epochs. */
static struct plog_epochs *publish_cut(struct plog_partition *p, struct plog_table *table,
				       const struct cut *cut, u64 bytes, struct plog_epochs *next,
				       const struct plog_settled *after)
{
	struct plog_table *old = plog_table(p);
	struct plog_epochs *epochs;
	u32 i;

	memcpy(table->seg, old->seg, cut->keep * sizeof(old->seg[0]));
	table->count = cut->keep;
	plog_publish_begin(p);
	for (i = cut->keep; i < old->count; i++) {
		plog_segment_void(old->seg[i], 0);
		WRITE_ONCE(old->seg[i]->end, 0);
	}
	plog_segment_void(table->seg[cut->keep - 1], cut->pos);
	WRITE_ONCE(table->seg[cut->keep - 1]->end, cut->pos);
	WRITE_ONCE(p->pub.active_end, cut->pos);
	WRITE_ONCE(p->pub.bytes, bytes);
	WRITE_ONCE(p->pub.generation, p->pub.generation + 1);
	plog_unstable_cut(p, cut->offset, after);
	smp_store_release(&p->pub.log_end, cut->offset);
	WRITE_ONCE(p->pub.cuts, p->pub.cuts + 1);
	epochs = plog_epoch_install(p, next, p->pub.leader_epoch);
	rcu_assign_pointer(p->table, table);
	plog_publish_end(p);
	return epochs;
}

/* The segments of @old from @keep on are no more: cut them from the end, each is in use. */
static int drop_segments(struct plog_partition *p, struct plog_table *old, u32 keep,
			 const struct plog_segment *but)
{
	struct plog_segment *seg;
	int err, bad = 0;
	u32 i;

	/* from the end: a crash in the middle leaves the start of the log */
	for (i = old->count; i-- > keep;) {
		seg = old->seg[i];
		if (seg == but)
			continue;
		err = plog_segment_cut(seg, p->dir, 0, seg->base);
		bad = bad ? bad : err;
		plog_segment_unuse(seg);
		seg->active = false;
		if (seg->held)
			plog_segment_unuse(seg);
		seg->held = false;
		plog_segment_retire(seg);
		/* readers that hold it have lost its bytes anyhow */
		if (!err)
			plog_retired_add_empty(p, seg->base);
		plog_segment_put(seg);
	}
	return bad;
}

/* Another list of epochs, for the log as it is: of one that ends at @end. */
static int renew_epochs(struct plog_partition *p, s64 end)
{
	struct plog_epochs *next, *old = plog_epoch_list(p);
	int err = cut_epochs(p, end, &next);

	if (err)
		return err;
	err = plog_epoch_prepare(p, next, p->pub.leader_epoch);
	if (err) {
		kvfree(next);
		return err;
	}
	plog_publish_begin(p);
	plog_epoch_install(p, next, p->pub.leader_epoch);
	plog_publish_end(p);
	plog_epoch_settle(p);
	plog_epoch_free(old);
	return 0;
}

/*
 * The log start lies in a gap before the first segment, and nothing is to be left:
 * no segment may take an offset that is below its own name, an open would not
 * believe in it.
 */
static int truncate_all(struct plog_partition *p)
{
	int err = plog_log_restart(p, p->pub.log_start, p->pub.log_start);

	return !err && plog_leads(p->config.flags) ? renew_epochs(p, p->pub.log_end) : err;
}

static int truncate_locked(struct plog_partition *p, s64 offset)
{
	struct plog_epochs *next = NULL;
	struct plog_table *old, *table;
	struct plog_settled after;
	struct plog_segment *seg;
	struct cut cut;
	s64 max, hw = p->pub.high_watermark;
	u64 bytes, gone = 0;
	u32 i;
	int err, bad;

	err = plog_roll_settle(p, -1, true);
	if (err)
		return err;
	old = plog_table(p);
	err = find_cut(p, offset, &cut);
	if (!err && max_t(s64, cut.offset, p->pub.log_start) < old->seg[0]->base)
		return truncate_all(p);
	/* its files are being renamed */
	if (!err && p->swapped && old->seg[cut.keep - 1]->base <= p->swapped->base)
		err = -EBUSY;
	if (!err)
		err = plog_unstable_plan_cut(p, cut.offset, &after);
	if (err)
		return err;
	/* the log start may lie inside the batch that goes: the log never ends before it */
	cut.offset = max_t(s64, cut.offset, p->pub.log_start);
	err = cut_epochs(p, cut.offset, &next);
	if (err)
		return err;
	table = plog_table_alloc(cut.keep);
	if (!table) {
		kvfree(next);
		return -ENOMEM;
	}
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
	p->settled.offset = min_t(s64, p->settled.offset, after.offset);
	if (p->settled.last_producer >= cut.offset)
		p->settled.last_producer = after.last_producer;
	p->settled.last_marker = min_t(s64, p->settled.last_marker, after.last_marker);
	spin_unlock(&p->point_lock);
	/*
	 * Durable before the log is shorter: a clean mark could fit a log that
	 * was cut and has grown to the same size, recovery has to begin where
	 * the log was changed, and no epoch may come back that was cut off.
	 * With the high watermark that it will have, or one from before would
	 * cover what is appended next.
	 */
	set_hw(p, min_t(s64, hw, cut.offset));
	err = plog_epoch_prepare(p, next, p->pub.leader_epoch);
	if (err) {
		set_hw(p, hw);
		goto err_unuse;
	}
	bytes = p->pub.bytes - min_t(u64, gone, p->pub.bytes);
	plog_epoch_free(publish_cut(p, table, &cut, bytes, next, &after));
	plog_epoch_settle(p);
	bad = drop_segments(p, old, cut.keep, NULL);
	seg = table->seg[cut.keep - 1];
	err = plog_segment_cut(seg, p->dir, cut.pos, cut.offset);
	bad = bad ? bad : err;
	plog_segment_unuse(seg);
	kvfree_rcu(old, rcu);
	/* killed here, the next append does it */
	err = plog_active_renew(p, seg);
	bad = bad || err == -EINTR || err == -ENOMEM ? bad : err;
	max = plog_max_timestamp(p);
	plog_publish_begin(p);
	WRITE_ONCE(p->pub.max_timestamp, max);
	plog_publish_end(p);
	atomic64_add(gone, &p->count.truncated_bytes);
	plog_event_truncate(p->name, cut.offset, gone, bad);
	if (bad)
		plog_fence(p, bad, "a truncation failed half way");
	return bad;

err_unuse:
	while (i-- > cut.keep - 1)
		plog_segment_unuse(old->seg[i]);
	kvfree(table);
	kvfree(next);
	return err;
}

/*
 * Nothing is cut off, but a leader that wrote nothing in its epoch may have noted
 * it at the end, where a later one begins (KIP-101).
 */
static int truncate_nothing(struct plog_partition *p)
{
	struct plog_epochs *list = plog_epoch_list(p);

	if (plog_leads(p->config.flags) || !list ||
	    max_t(s64, plog_epoch_last_start(list), p->pub.log_start) < p->pub.log_end)
		return 0;
	return renew_epochs(p, p->pub.log_end);
}

/* Both locks of a truncation: no sync may take the end that it saw for the recovery point. */
static int begin_cut(struct plog_partition *p, const struct plog_fence *f)
{
	int err = plog_dir_thawed(p->dir);

	if (err)
		return err;
	if (mutex_lock_killable(&p->sync_lock))
		return -EINTR;
	err = plog_begin(p, f);
	if (err)
		mutex_unlock(&p->sync_lock);
	return err;
}

static void end_cut(struct plog_partition *p)
{
	mutex_unlock(&p->lock);
	mutex_unlock(&p->sync_lock);
	plog_wake(p);
}

int plog_partition_truncate(struct plog_partition *p, const struct plog_fence *f, s64 *offset)
{
	int err = begin_cut(p, f);

	if (err)
		return err;
	if (*offset < p->pub.log_start || *offset > p->pub.log_end)
		err = -ERANGE;
	else
		err = *offset < p->pub.log_end ? truncate_locked(p, *offset) : truncate_nothing(p);
	*offset = p->pub.log_end;
	end_cut(p);
	return err;
}

/* How far back to go for the leader's answer; *@again: then it has to be asked again. */
static s64 agreed_end(struct plog_partition *p, s32 epoch, s64 end, bool *again)
{
	const struct plog_published *pub = &p->pub;
	s32 own = epoch;
	s64 to;

	*again = false;
	if (end < 0)
		return pub->high_watermark;
	to = plog_epoch_end_of(plog_epoch_list(p), pub->log_start, pub->log_end, &own);
	if (to < 0)
		return end;
	if (own == epoch)
		return min_t(s64, to, end);
	*again = true;
	return to;
}

int plog_partition_truncate_epoch(struct plog_partition *p, const struct plog_fence *f,
				  s32 *epoch, s64 *offset)
{
	bool again;
	int err = begin_cut(p, f);
	s64 to;

	if (err)
		return err;
	to = clamp_t(s64, agreed_end(p, *epoch, *offset, &again), p->pub.log_start,
		     p->pub.log_end);
	err = to < p->pub.log_end ? truncate_locked(p, to) : truncate_nothing(p);
	*offset = p->pub.log_end;
	*epoch = again ? plog_epoch_last(plog_epoch_list(p)) : -1;
	end_cut(p);
	return err;
}

/* ---- a log that begins anew ---- */

/* A segment of that base that is there, cut to nothing then, or a new one. */
static int fresh_segment(struct plog_partition *p, s64 base, struct plog_segment **seg)
{
	struct plog_table *table = plog_table(p);
	u32 i;

	for (i = 0; i < table->count; i++) {
		if (table->seg[i]->base == base) {
			*seg = table->seg[i];
			return 0;
		}
	}
	return plog_roll_make(p, base, seg);
}

static bool in_table(const struct plog_table *table, const struct plog_segment *seg)
{
	u32 i;

	for (i = 0; i < table->count; i++)
		if (table->seg[i] == seg)
			return true;
	return false;
}

int plog_log_restart(struct plog_partition *p, s64 base, s64 start)
{
	struct plog_segment *seg = NULL;
	struct plog_table *old, *table;
	s64 hw = p->pub.high_watermark;
	struct plog_settled none;
	struct plog_epochs *epochs;
	bool reused;
	u32 i = 0;
	int err, bad;

	plog_settled_init(&none);
	err = plog_roll_settle(p, -1, true);
	if (err)
		return err;
	if (p->swapped)
		return -EBUSY;
	/* before one of their names is given again */
	err = plog_retired_empty_all(p);
	if (err)
		return err;
	old = plog_table(p);
	table = plog_table_alloc(1);
	if (!table)
		return -ENOMEM;
	err = fresh_segment(p, base, &seg);
	if (err)
		goto err_table;
	reused = in_table(old, seg);
	for (i = 0; i < old->count; i++) {
		err = plog_segment_use(old->seg[i], p->dir);
		if (err)
			goto err_unuse;
	}
	spin_lock(&p->point_lock);
	p->recovery_point = min_t(s64, p->recovery_point, base);
	plog_settled_init(&p->settled);
	spin_unlock(&p->point_lock);
	/* as for a truncation: the one from before would cover what is appended next */
	set_hw(p, min_t(s64, hw, start));
	err = plog_epoch_prepare(p, NULL, p->pub.leader_epoch);
	if (err) {
		set_hw(p, hw);
		goto err_unuse;
	}
	atomic64_add(p->pub.bytes, &p->count.truncated_bytes);
	table->seg[0] = seg;
	table->count = 1;
	plog_publish_begin(p);
	for (i = 0; i < old->count; i++) {
		plog_segment_void(old->seg[i], 0);
		WRITE_ONCE(old->seg[i]->end, 0);
	}
	WRITE_ONCE(seg->end, 0);
	WRITE_ONCE(p->pub.active_end, 0);
	WRITE_ONCE(p->pub.bytes, 0);
	WRITE_ONCE(p->pub.max_timestamp, -1);
	WRITE_ONCE(p->pub.generation, p->pub.generation + 1);
	plog_unstable_cut(p, 0, &none);
	WRITE_ONCE(p->pub.log_start, start);
	smp_store_release(&p->pub.log_end, start);
	smp_store_release(&p->pub.high_watermark, start);
	WRITE_ONCE(p->pub.cuts, p->pub.cuts + 1);
	epochs = plog_epoch_install(p, NULL, p->pub.leader_epoch);
	rcu_assign_pointer(p->table, table);
	plog_publish_end(p);
	plog_epoch_settle(p);
	plog_epoch_free(epochs);
	bad = drop_segments(p, old, 0, seg);
	if (reused) {
		err = plog_segment_cut(seg, p->dir, 0, base);
		bad = bad ? bad : err;
		plog_segment_unuse(seg);
		err = plog_active_renew(p, seg);
		bad = bad || err == -EINTR || err == -ENOMEM ? bad : err;
	} else {
		WRITE_ONCE(seg->active, true);
		seg->held = true;
		plog_rest_awake(p);
	}
	kvfree_rcu(old, rcu);
	if (bad)
		plog_fence(p, bad, "a log could not begin anew");
	return bad;

err_unuse:
	while (i-- > 0)
		plog_segment_unuse(old->seg[i]);
	if (!in_table(old, seg)) {
		plog_segment_unuse(seg);
		plog_segment_retire(seg);
		plog_segment_put(seg);
		plog_retired_add_empty(p, base);
	}
err_table:
	kvfree(table);
	return err;
}

/* struct start - what the state file said of the log before it was to begin elsewhere */
struct start {
	s64 at;
	bool dense;
};

/*
 * Nothing was thrown away: an open must not do it now, nor say that it was, nor take
 * what was not synced before rolls for a gap.  Under state_lock.
 * @saved: it may be on the disk
 */
static void unsave_start_at(struct plog_partition *p, const struct start *before, bool saved)
{
	int err = 0;

	p->saved.log_start = before->at;
	p->saved.dense = before->dense;
	/* what is acknowledged from here on must not be lost by the next open */
	if (saved)
		err = plog_save_locked(p, false, true);
	if (err)
		plog_fence(p, err, "a log start could not be taken back");
}

/* What it has to say before: a log that starts, and ends, at @offset. */
static int save_start_at(struct plog_partition *p, s64 offset, struct start *before)
{
	u64 sequence;
	int err;

	if (mutex_lock_killable(&p->state_lock))
		return -EINTR;
	sequence = p->saved.sequence;
	before->at = p->saved.log_start;
	before->dense = p->saved.dense;
	p->saved.log_start = offset;
	p->saved.dense = false;
	/* it may be on the disk even if that fails */
	WRITE_ONCE(p->gaps, true);
	err = plog_save_locked(p, false, true);
	if (err)
		unsave_start_at(p, before, p->saved.sequence != sequence);
	mutex_unlock(&p->state_lock);
	return err;
}

int plog_partition_start_at(struct plog_partition *p, const struct plog_fence *f, s64 *offset)
{
	struct start before;
	int err = begin_cut(p, f);

	if (err)
		return err;
	if (plog_leads(p->config.flags))
		err = -EINVAL;
	else if (*offset < p->pub.log_end || *offset == S64_MAX)
		err = -ERANGE;
	else if (p->swapped)
		err = -EBUSY;
	else
		err = save_start_at(p, *offset, &before);
	if (err)
		goto out;
	p->clean_on_disk = false;
	err = plog_log_restart(p, *offset, *offset);
	if (err && p->pub.log_start != *offset) {
		/* whatever comes: nothing else may be written down meanwhile */
		if (mutex_lock_killable(&p->state_lock)) {
			/* a save that waits for a thaw: as if the disk had refused this one */
			plog_fence(p, -EINTR, "a log start could not be taken back");
		} else {
			unsave_start_at(p, &before, true);
			mutex_unlock(&p->state_lock);
		}
	} else {
		p->gaps_noted = true;
	}
out:
	*offset = p->pub.log_end;
	end_cut(p);
	return err;
}
