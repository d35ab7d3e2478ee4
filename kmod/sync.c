// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Stable storage: syncs, the recovery point, and the flush behind a roll.
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include "engine.h"
#include "event.h"

/* ---- what is left by who was killed ---- */

/* Under sync_lock: nobody else leaves anything meanwhile. */
static void leave(struct plog_partition *p, s64 log_start, int error)
{
	/* its close has waited for the flushes, and whom they tell may be gone */
	if (READ_ONCE(p->pub.state) == PLOG_PARTITION_CLOSED)
		return;
	spin_lock(&p->point_lock);
	p->unsettled_start = max_t(s64, p->unsettled_start, log_start);
	if (error)
		WRITE_ONCE(p->unsettled_error, error);
	WRITE_ONCE(p->unsettled, true);
	spin_unlock(&p->point_lock);
	plog_flush_queue(p);
}

void plog_leave_log_start(struct plog_partition *p, s64 log_start)
{
	leave(p, log_start, 0);
}

/*
 * By a worker, who has all the time there is, unless the append mutex's next owner was faster.
 * Syncs go on beside it.
 */
static void settle_what_was_left(struct plog_partition *p)
{
	s64 start;
	int error;

	if (!READ_ONCE(p->unsettled))
		return;
	spin_lock(&p->point_lock);
	start = p->unsettled_start;
	error = p->unsettled_error;
	spin_unlock(&p->point_lock);
	mutex_lock(&p->lock);
	plog_settle(p);
	mutex_unlock(&p->lock);
	spin_lock(&p->point_lock);
	/* what was left since is for the flush that was queued for it */
	if (p->unsettled_start == start && p->unsettled_error == error)
		WRITE_ONCE(p->unsettled, false);
	spin_unlock(&p->point_lock);
	plog_wake(p);
}

static void fence(struct plog_partition *p, int error)
{
	atomic64_inc(&p->count.sync_errors);
	if (mutex_lock_killable(&p->lock)) {
		leave(p, 0, error);
		return;
	}
	plog_fence(p, error, "a sync failed");
	mutex_unlock(&p->lock);
}

/* ---- syncs ---- */

/*
 * Sync the segments that hold offsets from @from to @to, and the one that ends at
 * @from: a failed append, or recovery, may have cut it since it was synced.
 */
static int sync_segments(struct plog_partition *p, s64 from, s64 to, bool cut)
{
	struct plog_look look;
	u64 end;
	int err;

	if ((from < to || cut) && from > 0)
		from--;
	while (from < to) {
		plog_look(p, from, &look);
		if (!look.seg)
			return -ENODEV;
		err = plog_segment_use(look.seg, p->dir);
		if (!err) {
			end = look.active ? look.end : READ_ONCE(look.seg->end);
			if (end) {
				err = plog_file_sync(look.seg->log, 0, end - 1);
				atomic64_inc(&p->count.fsyncs);
				if (err)
					fence(p, err);
			}
			plog_segment_unuse(look.seg);
		}
		from = look.next;
		if (look.active)
			from = to;
		plog_look_put(&look);
		if (err)
			return err;
	}
	return 0;
}

int plog_sync_log(struct plog_partition *p, bool killable)
{
	struct plog_settled seen;
	struct plog_look look;
	s64 from, to;
	bool cut;
	int err = 0;

	if (!killable)
		mutex_lock(&p->sync_lock);
	else if (mutex_lock_killable(&p->sync_lock))
		return -EINTR;
	spin_lock(&p->point_lock);
	from = p->recovery_point;
	p->opened = S64_MAX;
	spin_unlock(&p->point_lock);
	/* whatever this sees was written before, by this caller too */
	plog_look(p, -1, &look);
	to = look.pub.log_end;
	seen.first_unstable = look.pub.first_unstable;
	seen.offset = min_t(s64, seen.first_unstable, to);
	seen.last_producer = look.pub.last_producer;
	seen.last_marker = look.pub.last_marker;
	/* an error is told once by the files, and never taken back here */
	if (READ_ONCE(p->pub.state) == PLOG_PARTITION_FENCED)
		err = -READ_ONCE(p->pub.error);
	else
		err = READ_ONCE(p->unsettled_error);
	if (err)
		goto out;
	if (READ_ONCE(p->dir_dirty)) {
		WRITE_ONCE(p->dir_dirty, false);
		err = plog_dir_sync(p->dir);
		if (err) {
			WRITE_ONCE(p->dir_dirty, true);
			fence(p, err);
			goto out;
		}
	}
	/* where nothing was appended since: a clean mark may follow, that trusts sizes */
	cut = READ_ONCE(p->cut_dirty);
	WRITE_ONCE(p->cut_dirty, false);
	err = sync_segments(p, from, to, cut);
	if (err) {
		WRITE_ONCE(p->cut_dirty, true);
		goto out;
	}
	spin_lock(&p->point_lock);
	p->recovery_point = max_t(s64, p->recovery_point, to);
	/* a transaction that was told of meanwhile is not settled, though its end may be there */
	seen.offset = min_t(s64, seen.offset, p->opened);
	p->settled = seen;
	spin_unlock(&p->point_lock);
out:
	mutex_unlock(&p->sync_lock);
	plog_event_sync(p->name, from, to, err);
	return err;
}

int plog_partition_sync(struct plog_partition *p)
{
	int err = plog_check_state(p);

	if (err && err != -EROFS)
		return err;
	return plog_sync_log(p, true);
}

int plog_sync_before_roll(struct plog_partition *p)
{
	struct plog_table *table = plog_table(p);
	int err = 0;
	s64 point;
	u32 i;

	lockdep_assert_held(&p->lock);
	if (!READ_ONCE(p->gaps))
		return 0;
	spin_lock(&p->point_lock);
	point = p->recovery_point;
	spin_unlock(&p->point_lock);
	for (i = table->count; !err && i-- > 0;) {
		struct plog_segment *seg = table->seg[i];

		if (READ_ONCE(seg->end)) {
			err = plog_segment_use(seg, p->dir);
			if (err)
				return err;
			err = plog_file_sync(seg->log, 0, READ_ONCE(seg->end) - 1);
			atomic64_inc(&p->count.fsyncs);
			plog_segment_unuse(seg);
			if (err)
				plog_fence(p, err, "a sync failed");
		}
		if (seg->base <= point)
			break;
	}
	return err;
}

/* The segments that take no more appends and are synced need no open files. */
static void release_sealed(struct plog_partition *p)
{
	struct plog_table *table;
	s64 point;
	u32 i;

	mutex_lock(&p->lock);
	spin_lock(&p->point_lock);
	point = p->recovery_point;
	spin_unlock(&p->point_lock);
	table = plog_table(p);
	/* not those of a roll since then: their file may yet have an error to tell */
	for (i = 0; table && i + 1 < table->count && table->seg[i + 1]->base <= point; i++) {
		if (table->seg[i]->held && !table->seg[i]->active) {
			table->seg[i]->held = false;
			plog_segment_unuse(table->seg[i]);
		}
	}
	mutex_unlock(&p->lock);
}

bool plog_flush(struct plog_partition *p)
{
	settle_what_was_left(p);
	if (READ_ONCE(p->pub.state) != PLOG_PARTITION_ONLINE || plog_sync_log(p, false))
		return false;
	plog_save(p, false, true);
	release_sealed(p);
	return true;
}

/* After a roll: what recovery would have to read shrinks to about one segment. */
void plog_flush_work(struct work_struct *work)
{
	struct plog_partition *p = container_of(work, struct plog_partition, flush_work);

	plog_flush(p);
	plog_partition_put(p);
}

/* flush.ms is over, or a recovery point has waited long enough to be written down. */
void plog_flush_later_work(struct work_struct *work)
{
	struct plog_partition *p = container_of(to_delayed_work(work), struct plog_partition,
						flush_later);

	plog_flush(p);
	plog_partition_put(p);
}

static void flush_later(struct plog_partition *p, u64 ms)
{
	plog_partition_get(p);
	if (!queue_delayed_work(plog_flush_wq, &p->flush_later,
				msecs_to_jiffies(min_t(u64, ms, INT_MAX))))
		plog_partition_put(p);
	/* a close that did not see this one is seen here */
	else if (READ_ONCE(p->pub.state) != PLOG_PARTITION_ONLINE &&
		 cancel_delayed_work_sync(&p->flush_later))
		plog_partition_put(p);
}

/*
 * flush.messages: by who appended, as Kafka does, so that nobody is answered
 * before.  flush.ms: the first append that is not synced starts the clock.
 */
int plog_flush_policy(struct plog_partition *p)
{
	u64 messages = READ_ONCE(p->flush_messages), ms = READ_ONCE(p->flush_ms);
	s64 end = plog_partition_end(p, PLOG_END_LEO), point;
	int err;

	spin_lock(&p->point_lock);
	point = p->recovery_point;
	spin_unlock(&p->point_lock);
	if (end > point && (u64)(end - point) >= messages) {
		err = plog_sync_log(p, true);
		if (err == -EINTR) {
			/* appended it is: a worker syncs for who was killed */
			plog_flush_queue(p);
			return 0;
		}
		/* what it lacked would say that nothing was appended */
		if (err)
			return -EIO;
		ms = min_t(u64, ms, PLOG_CHECKPOINT_MS);
	}
	if (ms != PLOG_NEVER)
		flush_later(p, ms);
	return 0;
}

void plog_flush_sooner(struct plog_partition *p)
{
	if (!cancel_delayed_work_sync(&p->flush_later))
		return;
	plog_flush_queue(p);
	plog_partition_put(p);
}

void plog_flush_queue(struct plog_partition *p)
{
	plog_partition_get(p);
	if (!queue_work(plog_flush_wq, &p->flush_work))
		plog_partition_put(p);
}
