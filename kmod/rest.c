// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Rest: partitions that nobody appends to any more let go of their last segment's
 * files.
 *
 * Whoever takes an append holds three files open and two rings of index entries.
 * Of those that do, all partitions together, plog_active_max may go on holding
 * them without an append; of the others each is synced and then put with the
 * segments that nobody uses, whose files are closed one after the other.  The
 * next append opens them again, before it has written a byte.
 *
 * The sync comes first because an error of the disk is told to files that are
 * open: once they are closed there must be nothing left that could be lost.
 */
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "engine.h"
#include "event.h"

/* Without an append for so long a partition is idle. */
#define IDLE_MS		1000

unsigned int plog_active_max = 1024;

/* Partitions whose last segment is held, those looked at longest ago first. */
static LIST_HEAD(awake);
static unsigned int awake_count;
static DEFINE_SPINLOCK(awake_lock);
static struct delayed_work rest_work;

static bool too_many(void)
{
	return READ_ONCE(awake_count) > READ_ONCE(plog_active_max);
}

void plog_rest_awake(struct plog_partition *p)
{
	lockdep_assert_held(&p->lock);
	WRITE_ONCE(p->appended, plog_now_ms());
	spin_lock(&awake_lock);
	if (list_empty(&p->awake)) {
		list_add_tail(&p->awake, &awake);
		WRITE_ONCE(awake_count, awake_count + 1);
	}
	spin_unlock(&awake_lock);
	if (too_many())
		queue_delayed_work(plog_flush_wq, &rest_work, 0);
}

void plog_rest_forget(struct plog_partition *p)
{
	spin_lock(&awake_lock);
	if (!list_empty(&p->awake)) {
		list_del_init(&p->awake);
		WRITE_ONCE(awake_count, awake_count - 1);
	}
	spin_unlock(&awake_lock);
}

static bool is_idle(const struct plog_partition *p)
{
	s64 since = plog_now_ms() - READ_ONCE(p->appended);

	/* a clock that was set back says nothing */
	return since < 0 || since >= IDLE_MS;
}

/* Is everything on the disk, and nothing under way? */
static bool may_rest(struct plog_partition *p)
{
	struct plog_segment *seg;
	s64 point;

	if (p->pub.state != PLOG_PARTITION_ONLINE || !is_idle(p))
		return false;
	/* a roll that somebody left has sealed nothing yet */
	if (READ_ONCE(p->roll.stage) != PLOG_ROLL_IDLE || READ_ONCE(p->cut_dirty))
		return false;
	seg = plog_active(p);
	if (!seg->active || !seg->held || READ_ONCE(seg->swap))
		return false;
	/* the cut is to be synced first: the next look finds that */
	if (seg->uncut) {
		plog_active_renew(p, seg);
		return false;
	}
	spin_lock(&p->point_lock);
	point = p->recovery_point;
	spin_unlock(&p->point_lock);
	return point >= p->pub.log_end;
}

static void rest(struct plog_partition *p)
{
	struct plog_segment *seg;

	if (!plog_flush(p))
		return;
	mutex_lock(&p->lock);
	if (may_rest(p)) {
		seg = plog_active(p);
		plog_segment_seal(seg);
		WRITE_ONCE(seg->active, false);
		seg->held = false;
		plog_segment_unuse(seg);
		plog_rest_forget(p);
		plog_event_rest(p->name, p->pub.log_end);
	}
	mutex_unlock(&p->lock);
}

/* Who was looked at longest ago. False: there are none, or few enough. */
static bool next_awake(struct plog_partition **found)
{
	struct plog_partition *p;

	*found = NULL;
	spin_lock(&awake_lock);
	if (list_empty(&awake) || !too_many()) {
		spin_unlock(&awake_lock);
		return false;
	}
	p = list_first_entry(&awake, struct plog_partition, awake);
	list_move_tail(&p->awake, &awake);
	/* without a reference it is about to leave the list */
	if (refcount_inc_not_zero(&p->refs))
		*found = p;
	spin_unlock(&awake_lock);
	return true;
}

void plog_rest_look(void)
{
	unsigned int looks = READ_ONCE(awake_count);
	struct plog_partition *p;

	for (; looks && next_awake(&p); looks--) {
		if (!p)
			continue;
		if (is_idle(p))
			rest(p);
		plog_partition_put(p);
	}
}

static void look(struct work_struct *work)
{
	plog_rest_look();
	/* before that no other becomes idle */
	if (too_many())
		queue_delayed_work(plog_flush_wq, &rest_work, msecs_to_jiffies(IDLE_MS));
}

void plog_rest_init(void)
{
	INIT_DELAYED_WORK(&rest_work, look);
}

void plog_rest_exit(void)
{
	cancel_delayed_work_sync(&rest_work);
}
