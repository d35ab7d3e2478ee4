// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Compaction: one segment takes the place of a run of them.
 *
 * Who compacts writes the new segment under names that no segment of the table
 * has, "BASE.log.swap" and the same for the indexes, where BASE is that of the
 * first one replaced; then asks for the swap, deletes what the others of the run
 * have, and renames.  The module opens the files by these names, so that
 * nothing has to be believed of a descriptor: they are regular files of the
 * partition's directory, and no live ones.
 *
 * All that takes long happens before any lock: each batch, each CRC, both
 * indexes anew, and a sync.  What is swapped out stays readable for who has it
 * pinned, through the open files, and is never opened by name again.  What is
 * swapped in stays open until the caller says that its files have their
 * names, so that in between no name has to be right.
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

/*
 * struct run - the segments that go
 * @from, @count: their places in the table
 * @next: base of the segment behind them
 * @bytes, @max_timestamp: of all of them
 */
struct run {
	u32 from;
	u32 count;
	s64 next;
	u64 bytes;
	s64 max_timestamp;
};

/* Find them. Under the append mutex. */
static int find_run(struct plog_partition *p, const struct plog_swap_args *args, struct run *run)
{
	struct plog_table *table = plog_table(p);
	u32 i = 0, last;

	lockdep_assert_held(&p->lock);
	if (p->pub.generation != args->generation)
		return -ESTALE;
	if (p->swapped)
		return -EBUSY;
	while (i < table->count && table->seg[i]->base < args->first)
		i++;
	for (last = i; last < table->count && table->seg[last]->base < args->last; last++)
		;
	/* the last segment takes appends */
	if (last + 1 >= table->count || table->seg[i]->base != args->first ||
	    table->seg[last]->base != args->last)
		return -ERANGE;
	run->from = i;
	run->count = last + 1 - i;
	run->next = table->seg[last + 1]->base;
	/* compaction must not see what may yet be truncated, or aborted */
	return run->next <= plog_last_stable(&p->pub) ? 0 : -ERANGE;
}

/* Size and time of each: an open that was clean has not looked. Under sync_lock alone. */
static int measure(struct plog_partition *p, s64 from, struct run *run)
{
	struct plog_look look;
	int err = 0;

	while (!err && from < run->next) {
		plog_look(p, from, &look);
		if (!look.seg)
			return -ENODEV;
		/* it was found under another lock: what has been cut since has no such end */
		if (look.active || look.seg->base != from) {
			plog_look_put(&look);
			return -ERANGE;
		}
		err = plog_segment_use(look.seg, p->dir);
		if (!err) {
			err = plog_segment_learn(look.seg, p->dir);
			run->bytes += READ_ONCE(look.seg->end);
			run->max_timestamp = max_t(s64, run->max_timestamp,
						   READ_ONCE(look.seg->max_timestamp));
			plog_segment_unuse(look.seg);
		}
		from = look.next;
		plog_look_put(&look);
	}
	return err;
}

static int sync_file(struct plog_file *file)
{
	u64 size = plog_file_size(file);

	return size ? plog_file_sync(file, 0, size - 1) : 0;
}

/* An index is no more than a help, but here it must be there: it is to be renamed. */
static int need_index(struct plog_partition *p, s64 base, const char *kind,
		      struct plog_file **where)
{
	char name[PLOG_SEGMENT_NAME];
	struct plog_file *file;

	if (*where)
		return 0;
	plog_segment_name(name, base, kind);
	file = plog_file_open(p->dir, name, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	*where = file;
	return 0;
}

/*
 * Open the new files, check every batch in them, make the indexes anew, and have
 * all of it on stable storage: recovery will not look here again.
 * @next: out: the offset behind the last batch
 */
static int load(struct plog_partition *p, struct plog_segment *seg, s64 *next)
{
	u64 size, valid;
	int err;

	seg->swap = true;
	err = plog_segment_open_raw(seg, p->dir);
	if (err)
		return err;
	err = need_index(p, seg->base, "index.swap", &seg->index.e.file);
	if (!err)
		err = need_index(p, seg->base, "timeindex.swap", &seg->timeindex.e.file);
	if (err)
		goto err_unuse;
	size = plog_file_size(seg->log);
	err = -EFBIG;
	if (size > INT_MAX)
		goto err_unuse;
	*next = seg->base;
	err = plog_segment_scan(seg, size, next, true, &valid);
	if (!err && valid != size)
		err = -EBADMSG;
	if (err)
		goto err_unuse;
	WRITE_ONCE(seg->end, size);
	err = sync_file(seg->log);
	if (!err)
		err = sync_file(seg->index.e.file);
	if (!err)
		err = sync_file(seg->timeindex.e.file);
	if (!err)
		return 0;
err_unuse:
	plog_segment_unuse(seg);
	return err;
}

/* Does it lie in what goes? */
static bool in_run(const struct plog_segment *seg, const struct run *run, s64 offset)
{
	return offset >= seg->base && offset < run->next;
}

/*
 * The last offset with a producer id below the end of the run, for those who know one
 * that goes: what is published, and what is on stable storage.
 */
static int last_producer(struct plog_partition *p, const struct plog_segment *seg,
			 const struct run *run, s64 *last)
{
	*last = seg->last_producer;
	if (*last >= 0 || (!in_run(seg, run, p->pub.last_producer) &&
			   !in_run(seg, run, p->settled.last_producer)))
		return 0;
	return plog_unstable_last_producer(p, plog_table(p), seg->base, last);
}

static int swap_locked(struct plog_partition *p, struct plog_segment *seg, const struct run *run)
{
	struct plog_table *old = plog_table(p), *table;
	u32 i, rest = old->count - run->from - run->count;
	s64 last, max;
	int err;

	err = last_producer(p, seg, run, &last);
	if (err)
		return err;
	table = plog_table_alloc(run->from + 1 + rest);
	if (!table)
		return -ENOMEM;
	table->count = run->from + 1 + rest;
	memcpy(table->seg, old->seg, run->from * sizeof(table->seg[0]));
	table->seg[run->from] = seg;
	memcpy(table->seg + run->from + 1, old->seg + run->from + run->count,
	       rest * sizeof(table->seg[0]));
	p->clean_on_disk = false;
	/* one reference of the table, one of ours until the names are right */
	refcount_inc(&seg->refs);
	p->swapped = seg;
	p->swapped_last = old->seg[run->from + run->count - 1]->base;
	plog_publish_begin(p);
	WRITE_ONCE(p->pub.bytes, p->pub.bytes - min_t(u64, run->bytes, p->pub.bytes) + seg->end);
	WRITE_ONCE(p->pub.generation, p->pub.generation + 1);
	if (in_run(seg, run, p->pub.last_producer))
		WRITE_ONCE(p->pub.last_producer, last);
	WRITE_ONCE(p->pub.last_marker, min_t(s64, p->pub.last_marker, p->pub.last_producer));
	rcu_assign_pointer(p->table, table);
	plog_publish_end(p);
	spin_lock(&p->point_lock);
	if (in_run(seg, run, p->settled.last_producer))
		p->settled.last_producer = last;
	p->settled.last_marker = min_t(s64, p->settled.last_marker, p->settled.last_producer);
	spin_unlock(&p->point_lock);
	plog_event_swap(p->name, seg->base, run->count, seg->end);
	if (run->max_timestamp >= p->pub.max_timestamp &&
	    seg->max_timestamp < p->pub.max_timestamp) {
		max = plog_max_timestamp(p);
		plog_publish_begin(p);
		WRITE_ONCE(p->pub.max_timestamp, max);
		plog_publish_end(p);
	}
	for (i = run->from; i < run->from + run->count; i++) {
		struct plog_segment *gone = old->seg[i];

		/* its content is in the new one, on stable storage, or not wanted */
		if (gone->held)
			plog_segment_unuse(gone);
		gone->held = false;
		plog_segment_retire(gone);
		plog_segment_put(gone);
	}
	kvfree_rcu(old, rcu);
	return 0;
}

int plog_partition_swap(struct plog_partition *p, const struct plog_fence *f,
			struct plog_swap_args *args)
{
	struct run run = { .max_timestamp = -1 };
	struct plog_segment *seg;
	u32 index_interval;
	s64 next;
	int err;

	if (args->first < 0 || args->last < args->first)
		return -EINVAL;
	/* so that a caller who is late does not have it all read */
	err = plog_begin(p, f);
	if (err)
		return err;
	err = find_run(p, args, &run);
	index_interval = p->config.index_interval_bytes;
	mutex_unlock(&p->lock);
	if (err)
		return err;
	seg = plog_segment_alloc(args->first);
	if (!seg)
		return -ENOMEM;
	seg->counts = &p->count.segments;
	seg->index_interval = index_interval;
	err = load(p, seg, &next);
	if (err)
		goto out_put;
	err = next <= run.next ? plog_begin(p, f) : -ERANGE;
	if (err)
		goto out_unuse;
	/* compacted logs have gaps: durable before there is one */
	err = plog_note_gap(p);
	mutex_unlock(&p->lock);
	/* a clean mark that is on the disk yet is of other sizes, and the last segment fits it */
	if (!err && !READ_ONCE(p->state_durable))
		err = plog_save(p, false, true);
	if (err)
		goto out_unuse;
	/* no truncation, retention or sync beside it */
	err = -EINTR;
	if (mutex_lock_killable(&p->sync_lock))
		goto out_unuse;
	err = measure(p, args->first, &run);
	/* the largest of what stays may be looked for: not while writers wait */
	if (!err && run.max_timestamp >= READ_ONCE(p->pub.max_timestamp))
		plog_learn_times(p);
	if (!err)
		err = plog_begin(p, f);
	if (!err) {
		err = find_run(p, args, &run);
		if (!err)
			err = swap_locked(p, seg, &run);
		args->generation = p->pub.generation;
		mutex_unlock(&p->lock);
	}
	mutex_unlock(&p->sync_lock);
	if (!err)
		return 0;
out_unuse:
	plog_segment_unuse(seg);
out_put:
	plog_segment_retire(seg);
	plog_segment_put(seg);
	return err;
}

/* Have the files of the segment that was swapped in got their names? */
static int check_name(struct plog_partition *p, struct plog_segment *seg)
{
	char name[PLOG_SEGMENT_NAME];
	struct plog_file *file;
	int err;

	plog_segment_name(name, seg->base, "log");
	file = plog_file_open(p->dir, name, PLOG_FILE_RDONLY);
	if (IS_ERR(file))
		return PTR_ERR(file);
	err = plog_file_same(file, seg->log) ? 0 : -ENOENT;
	plog_file_close(file);
	return err;
}

int plog_partition_swap_done(struct plog_partition *p, const struct plog_fence *f)
{
	struct plog_segment *seg;
	int err;

	if (mutex_lock_killable(&p->sync_lock))
		return -EINTR;
	err = plog_begin(p, f);
	if (err)
		goto out;
	seg = p->swapped;
	if (seg)
		refcount_inc(&seg->refs);
	mutex_unlock(&p->lock);
	if (!seg)
		goto out;
	err = check_name(p, seg);
	if (!err)
		err = plog_begin(p, f);
	if (!err) {
		plog_swap_forget(p);
		mutex_unlock(&p->lock);
		/* the last producer may be another one; who cannot write it finds more than there is */
		plog_save(p, false, true);
	}
	plog_segment_put(seg);
out:
	mutex_unlock(&p->sync_lock);
	return err;
}

void plog_swap_forget(struct plog_partition *p)
{
	struct plog_segment *seg = p->swapped;

	lockdep_assert_held(&p->lock);
	if (!seg)
		return;
	p->swapped = NULL;
	WRITE_ONCE(seg->swap, false);
	plog_segment_unuse(seg);
	plog_segment_put(seg);
}

int plog_partition_swap_state(struct plog_partition *p, u64 *generation, s64 *pending,
			      s64 *last)
{
	/* opening holds the mutex as long as a recovery takes */
	if (READ_ONCE(p->pub.state) == PLOG_PARTITION_OPENING)
		return -EAGAIN;
	if (mutex_lock_killable(&p->lock))
		return -EINTR;
	*generation = p->pub.generation;
	*pending = p->swapped ? p->swapped->base : -1;
	*last = p->swapped ? p->swapped_last : -1;
	mutex_unlock(&p->lock);
	return 0;
}
