// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Stable storage: syncs, the recovery point, and the flush behind a roll.
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include "engine.h"

static void fence(struct plog_partition *p, int error)
{
	mutex_lock(&p->lock);
	plog_fence(p, error, "a sync failed");
	mutex_unlock(&p->lock);
}

/* Sync the segments that hold offsets from @from to @to. */
static int sync_segments(struct plog_partition *p, s64 from, s64 to)
{
	struct plog_look look;
	u64 end;
	int err;

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
	s64 from, to;
	int err = 0;

	if (!killable)
		mutex_lock(&p->sync_lock);
	else if (mutex_lock_killable(&p->sync_lock))
		return -EINTR;
	spin_lock(&p->point_lock);
	from = p->recovery_point;
	spin_unlock(&p->point_lock);
	/* whatever this sees was written before, by this caller too */
	to = plog_partition_end(p, PLOG_END_LEO);
	if (READ_ONCE(p->pub.state) == PLOG_PARTITION_FENCED) {
		/* an error is told once by the files, and never taken back here */
		err = -READ_ONCE(p->pub.error);
		goto out;
	}
	if (READ_ONCE(p->dir_dirty)) {
		WRITE_ONCE(p->dir_dirty, false);
		err = plog_dir_sync(p->dir);
		if (err) {
			WRITE_ONCE(p->dir_dirty, true);
			fence(p, err);
			goto out;
		}
	}
	err = sync_segments(p, from, to);
	if (err)
		goto out;
	spin_lock(&p->point_lock);
	p->recovery_point = max_t(s64, p->recovery_point, to);
	spin_unlock(&p->point_lock);
out:
	mutex_unlock(&p->sync_lock);
	return err;
}

int plog_partition_sync(struct plog_partition *p)
{
	int err = plog_check_state(p);

	if (err && err != -EROFS)
		return err;
	return plog_sync_log(p, true);
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

/* After a roll: what recovery would have to read shrinks to about one segment. */
void plog_flush_work(struct work_struct *work)
{
	struct plog_partition *p = container_of(work, struct plog_partition, flush_work);

	if (READ_ONCE(p->pub.state) == PLOG_PARTITION_ONLINE && !plog_sync_log(p, false)) {
		plog_save(p, false, true);
		release_sealed(p);
	}
	plog_partition_put(p);
}

void plog_flush_queue(struct plog_partition *p)
{
	plog_partition_get(p);
	if (!queue_work(plog_flush_wq, &p->flush_work))
		plog_partition_put(p);
}
