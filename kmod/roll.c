// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Rolls: a worker makes the files of the next segment, under the credentials of
 * the directory, and whoever holds the append mutex installs it.
 */
#define pr_fmt(fmt) "plog: " fmt

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "engine.h"
#include "event.h"

/* What the configuration says of a segment as it begins, and not afterwards. */
static void take_config(struct plog_partition *p, struct plog_segment *seg)
{
	u64 most = min_t(u64, p->config.segment_jitter_ms, p->config.segment_ms);

	seg->index_bytes = p->config.index_bytes;
	seg->jitter = 0;
	if (most)
		div64_u64_rem(get_random_u64(), most, &seg->jitter);
}

void plog_roll_work(struct work_struct *work)
{
	struct plog_roll *roll = container_of(work, struct plog_roll, work);
	struct plog_partition *p = container_of(roll, struct plog_partition, roll);
	struct plog_segment *seg;
	int err = 0;

	/* what recovery may take for a loss where segments meet stands there */
	if (!READ_ONCE(p->state_durable))
		err = plog_save(p, false, true);
	if (err)
		goto out;
	err = -ENOMEM;
	seg = plog_segment_alloc(roll->base);
	if (!seg)
		goto out;
	seg->counts = &p->count.segments;
	seg->index_interval = roll->index_interval;
	roll->table = plog_table_alloc(roll->count);
	if (!roll->table)
		goto out_put;
	err = plog_segment_create(seg, p->dir, plog_now_ms(), roll->preallocate);
	if (err)
		goto out_table;
	WRITE_ONCE(p->dir_dirty, true);
	roll->segment = seg;
	goto out;

out_table:
	kvfree(roll->table);
	roll->table = NULL;
out_put:
	plog_segment_put(seg);
out:
	roll->error = err;
	smp_store_release(&roll->stage, PLOG_ROLL_DONE);
	wake_up_all(&p->roll_wait);
	plog_partition_put(p);
}

static void roll_start(struct plog_partition *p, s64 base)
{
	p->roll.base = base;
	p->roll.count = plog_table(p)->count + 1;
	p->roll.index_interval = p->config.index_interval_bytes;
	p->roll.preallocate = p->config.preallocate ? p->config.segment_bytes : 0;
	p->roll.segment = NULL;
	p->roll.table = NULL;
	p->roll.stage = PLOG_ROLL_RUNNING;
	plog_partition_get(p);
	queue_work(plog_roll_wq, &p->roll.work);
}

static void roll_install(struct plog_partition *p, struct plog_segment *seg,
			 struct plog_table *table)
{
	struct plog_table *old = plog_table(p);
	struct plog_segment *sealed = plog_active(p);

	memcpy(table->seg, old->seg, old->count * sizeof(old->seg[0]));
	table->seg[old->count] = seg;
	table->count = old->count + 1;
	plog_segment_seal(sealed);
	plog_segment_trim(sealed);
	take_config(p, seg);
	WRITE_ONCE(sealed->active, false);
	WRITE_ONCE(seg->active, true);
	seg->held = true;
	plog_rest_awake(p);
	plog_publish_begin(p);
	WRITE_ONCE(p->pub.active_end, 0);
	rcu_assign_pointer(p->table, table);
	plog_publish_end(p);
	kvfree_rcu(old, rcu);
	atomic64_inc(&p->count.rolls);
	plog_event_roll(p->name, seg->base);
	plog_flush_queue(p);
}

int plog_roll_settle(struct plog_partition *p, s64 base, bool killable)
{
	struct plog_roll *roll = &p->roll;
	struct plog_segment *seg;

	lockdep_assert_held(&p->lock);
	if (READ_ONCE(roll->stage) == PLOG_ROLL_IDLE)
		return 0;
	if (!killable)
		wait_event(p->roll_wait, smp_load_acquire(&roll->stage) == PLOG_ROLL_DONE);
	else if (wait_event_killable(p->roll_wait,
				     smp_load_acquire(&roll->stage) == PLOG_ROLL_DONE))
		return -EINTR;
	roll->stage = PLOG_ROLL_IDLE;
	seg = roll->segment;
	roll->segment = NULL;
	if (!seg)
		return roll->base == base ? roll->error : 0;
	if (roll->base == base || (base < 0 && roll->base == p->pub.log_end)) {
		roll_install(p, seg, roll->table);
		return 0;
	}
	/* for an append that did not come: recovery passes over an empty file */
	kvfree(roll->table);
	plog_segment_unuse(seg);
	plog_segment_retire(seg);
	plog_retired_add_empty(p, seg->base);
	plog_segment_put(seg);
	return 0;
}

/* What a failed append has left behind the end; on a frozen filesystem after the thaw. */
static int cut_off(struct plog_partition *p, struct plog_segment *seg)
{
	int err = plog_dir_thawed(p->dir);

	if (err)
		return err;
	WRITE_ONCE(p->cut_dirty, true);
	err = plog_file_truncate(seg->log, seg->end);
	if (err)
		plog_fence(p, err, "a failed append could not be cut off");
	else
		seg->uncut = false;
	return err;
}

int plog_active_renew(struct plog_partition *p, struct plog_segment *seg)
{
	int err;

	lockdep_assert_held(&p->lock);
	if (seg->active)
		return seg->uncut ? cut_off(p, seg) : 0;
	err = plog_segment_activate(seg, p->dir);
	/* whatever lies under its name now, it is not the log */
	if (err == -EUCLEAN)
		plog_fence(p, err, "the last segment's file was replaced or cut");
	if (err)
		return err;
	if (seg->held)
		plog_segment_unuse(seg);	/* the table was a user already */
	seg->held = true;
	if (!seg->index_bytes)
		take_config(p, seg);
	plog_rest_awake(p);
	return 0;
}

int plog_roll_to(struct plog_partition *p, s64 base, bool killable)
{
	int err;

	lockdep_assert_held(&p->lock);
	/* recovery would not believe in more, and its list has an end */
	if (plog_table(p)->count >= READ_ONCE(plog_segments_max)) {
		pr_warn_ratelimited("%s: has as many segments as segments_max (%u) allows\n",
				    p->name, READ_ONCE(plog_segments_max));
		return -ENOSPC;
	}
	err = plog_sync_before_roll(p);
	if (err)
		return err;
	err = plog_retired_reuse(p, base);
	if (err)
		return err;
	roll_start(p, base);
	return plog_roll_settle(p, base, killable);
}

int plog_roll_now(struct plog_partition *p, bool killable)
{
	struct plog_segment *seg;
	int err = plog_roll_settle(p, -1, killable);

	if (err)
		return err;
	seg = plog_active(p);
	err = plog_active_renew(p, seg);
	if (err || !seg->end)
		return err;
	if (p->clean_on_disk) {
		err = plog_save(p, false, false);
		if (err)
			return err;
		p->clean_on_disk = false;
	}
	return plog_roll_to(p, p->pub.log_end, killable);
}

int plog_roll_make(struct plog_partition *p, s64 base, struct plog_segment **seg)
{
	struct plog_roll *roll = &p->roll;
	int err = plog_roll_settle(p, -1, true);

	if (err)
		return err;
	err = plog_retired_reuse(p, base);
	if (err)
		return err;
	roll_start(p, base);
	if (wait_event_killable(p->roll_wait,
				smp_load_acquire(&roll->stage) == PLOG_ROLL_DONE))
		return -EINTR;
	roll->stage = PLOG_ROLL_IDLE;
	kvfree(roll->table);
	*seg = roll->segment;
	roll->segment = NULL;
	if (!*seg)
		return roll->error;
	take_config(p, *seg);
	return 0;
}

int plog_note_gap(struct plog_partition *p)
{
	int err;

	lockdep_assert_held(&p->lock);
	if (p->gaps_noted)
		return 0;
	/*
	 * What rolled so far did not sync what was before it: a hole that a power cut
	 * leaves there would be taken for a gap from now on.  Rolls go on to do it if
	 * this fails: what was to be written may be on the disk all the same.
	 */
	WRITE_ONCE(p->gaps, true);
	err = plog_sync_before_roll(p);
	if (err)
		return err;
	if (mutex_lock_killable(&p->state_lock))
		return -EINTR;
	p->saved.dense = false;
	err = plog_save_locked(p, false, true);
	/* the next gap has to say it again */
	if (err)
		p->saved.dense = true;
	mutex_unlock(&p->state_lock);
	p->gaps_noted = !err;
	return err;
}
