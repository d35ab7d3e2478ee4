// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Finding batches: by offset, pinned as an extent, and by time.
 *
 * Readers take no lock.  They look at what is published, then at the log, then
 * whether bytes were truncated meanwhile; if so they begin anew.
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "engine.h"
#include "object.h"

s64 plog_end_of(const struct plog_published *pub, enum plog_end end)
{
	switch (end) {
	case PLOG_END_LEO:
		return pub->log_end;
	case PLOG_END_LSO:
		return plog_last_stable(pub);
	default:
		return pub->high_watermark;
	}
}

int plog_check_readable(const struct plog_published *pub)
{
	switch (pub->state) {
	case PLOG_PARTITION_ONLINE:
	case PLOG_PARTITION_FENCED:
		return 0;
	case PLOG_PARTITION_OPENING:
		return -EAGAIN;
	default:
		return -ENODEV;
	}
}

int plog_look_use(struct plog_partition *p, struct plog_look *look)
{
	int err = plog_segment_use(look->seg, p->dir);

	if (err)
		return err == -EUCLEAN ? -EIO : err;
	if (!look->active)
		look->end = READ_ONCE(look->seg->end);
	err = plog_segment_repair(look->seg, p->dir);
	if (err)
		plog_segment_unuse(look->seg);
	return err;
}

bool plog_look_cut(const struct plog_look *look)
{
	return smp_load_acquire(&look->seg->cut_gen) != look->cut_gen;
}

/*
 * Move the cursor, which stands on the first batch wanted, behind the last
 * whole batch within @max bytes whose offsets lie below @limit.
 */
static int find_end(struct plog_segment *seg, struct plog_cursor *cur, u64 start, u64 max,
		    s64 limit)
{
	u64 bound = min_t(u64, cur->end, start + max);
	s32 found;
	u32 pos;
	int ret;

	/* a jump by the index, to a batch that is there and lies before the bound */
	if (!READ_ONCE(seg->index_bad) && bound - start > 2 * PLOG_RECORD_WINDOW) {
		ret = plog_index_lookup_pos(&seg->index, bound, &found, &pos);
		if (ret > 0 && pos > start && seg->base + found < limit) {
			struct plog_cursor there = *cur;

			ret = plog_cursor_at(&there, pos);
			cur->src = there.src;
			if (ret > 0 && plog_batch_last_offset(&there.batch) == seg->base + found)
				*cur = there;
		}
	}
	for (;;) {
		if (cur->pos + cur->batch.size > bound ||
		    plog_batch_last_offset(&cur->batch) >= limit)
			return 0;
		ret = plog_cursor_next(cur);
		if (ret < 0)
			return ret;
		if (!ret)
			return 0;
	}
}

/*
 * Measure the extent from the batch that the cursor stands on.  @limit is the
 * end for this reader.
 */
static int measure(struct plog_look *look, struct plog_cursor *cur, u32 max_bytes, bool whole,
		   s64 limit, struct plog_extent *ext)
{
	struct plog_batch first = cur->batch;
	u64 start = cur->pos;
	int err;

	if (plog_batch_last_offset(&first) >= limit)
		return 0;
	if (first.size > max_bytes) {
		if (!whole)
			return 0;
		ext->length = first.size;
		ext->next_offset = plog_batch_last_offset(&first) + 1;
	} else if (limit >= look->next && look->end - start <= max_bytes) {
		ext->length = look->end - start;
		ext->next_offset = look->next;
	} else {
		err = find_end(look->seg, cur, start, max_bytes, limit);
		if (err)
			return err;
		/* the cursor is on the first batch that is not in, or at the end */
		ext->length = cur->pos - start;
		ext->next_offset = cur->pos < cur->end ? cur->batch.base_offset : look->next;
	}
	ext->pos = start;
	ext->base_offset = first.base_offset;
	return 0;
}

static bool doubtful(u32 state, struct plog_segment *seg)
{
	return state == PLOG_PARTITION_FENCED || plog_file_failed(seg->log);
}

/*
 * Behind a write that failed stands what the filesystem likes: ext4 keeps the
 * pages, btrfs takes them away and reads zeros.  So nothing above the recovery
 * point is handed out unseen then.  The extent becomes what is whole of it.
 */
static int keep_whole(struct plog_partition *p, struct plog_look *look, u8 *window,
		      struct plog_extent *ext)
{
	struct plog_segment *seg = look->seg;
	s64 point, next = ext->base_offset;
	struct plog_cursor cur;
	int ret;

	if (!doubtful(look->pub.state, seg))
		return 0;
	ext->checked = true;
	spin_lock(&p->point_lock);
	point = p->recovery_point;
	spin_unlock(&p->point_lock);
	if (ext->next_offset <= point)
		return 0;
	plog_cursor_init(&cur, seg, ext->pos + ext->length, look->cut_gen, window);
	for (ret = plog_cursor_at(&cur, ext->pos); ret > 0; ret = plog_cursor_next(&cur)) {
		s64 last = plog_batch_last_offset(&cur.batch);

		ret = plog_segment_check(seg, &cur, next, last >= point);
		if (!ret && fatal_signal_pending(current))
			ret = -EINTR;
		if (ret)
			break;
		next = last + 1;
		cond_resched();
	}
	if (!ret)
		return 0;
	ext->length = ret == -EBADMSG || ret == -EIO ? cur.pos - ext->pos : 0;
	ext->next_offset = next;
	if (ext->length)
		return 0;
	return ret == -EBADMSG ? -EIO : ret;
}

static int locate_in(struct plog_partition *p, struct plog_look *look, s64 offset, u32 max_bytes,
		     bool whole, s64 limit, struct plog_extent *ext)
{
	struct plog_cursor cur;
	u8 *window;
	int ret;

	window = kmalloc(PLOG_RECORD_WINDOW, GFP_KERNEL);
	if (!window)
		return -ENOMEM;
	plog_cursor_init(&cur, look->seg, look->end, look->cut_gen, window);
	ret = plog_segment_seek(look->seg, &cur, offset);
	if (ret > 0) {
		ret = measure(look, &cur, max_bytes, whole, limit, ext);
		ext->checked = false;
		if (!ret && ext->length)
			ret = keep_whole(p, look, window, ext);
		ret = ret ? ret : 1;
	}
	kfree(window);
	return ret;
}

int plog_partition_locate(struct plog_partition *p, s64 offset, u32 max_bytes, enum plog_end end,
			  bool whole, struct plog_extent *ext, struct plog_view *view)
{
	struct plog_look look;
	s64 from = offset, limit;
	int ret;

again:
	plog_look(p, from, &look);
	plog_look_view(&look, view);
	ret = plog_check_readable(&look.pub);
	if (ret)
		goto out_put;
	ret = offset < look.pub.log_start || offset > look.pub.log_end ? -ERANGE : 0;
	limit = plog_end_of(&look.pub, end);
	if (ret || from >= limit || !look.seg)
		goto out_put;
	ret = plog_look_use(p, &look);
	if (ret && READ_ONCE(look.seg->retired)) {
		/* it left the table meanwhile, and its files may be gone */
		plog_look_put(&look);
		from = offset;
		goto again;
	}
	if (ret)
		goto out_put;
	ret = locate_in(p, &look, from, max_bytes, whole, limit, ext);
	if (ret == -ESTALE || plog_look_cut(&look)) {
		ext->length = 0;
		plog_segment_unuse(look.seg);
		plog_look_put(&look);
		from = offset;
		goto again;
	}
	if (!ret && !look.active) {
		/* behind its last batch: compaction leaves gaps */
		from = look.next;
		plog_segment_unuse(look.seg);
		plog_look_put(&look);
		goto again;
	}
	if (ret > 0 && ext->length) {
		plog_partition_get(p);
		ext->partition = p;
		ext->segment = look.seg;
		ext->cut_gen = look.cut_gen;
		atomic_inc(&look.seg->pins);
		atomic_inc(&p->count.segments.pins);
		plog_object_created(PLOG_OBJECT_EXTENT);
		return 0;	/* the extent keeps the reference and the use */
	}
	plog_segment_unuse(look.seg);
	if (ret > 0)
		ret = 0;
	if (ret == -EBADMSG)
		ret = -EIO;
out_put:
	plog_look_put(&look);
	return ret;
}

void plog_extent_put(struct plog_extent *ext)
{
	struct plog_partition *p = ext->partition;
	struct plog_segment *seg = ext->segment;
	bool retired;

	ext->partition = NULL;
	ext->segment = NULL;
	ext->length = 0;
	if (!seg)
		return;
	retired = READ_ONCE(seg->retired);
	atomic_dec(&seg->pins);
	atomic_dec(&p->count.segments.pins);
	plog_object_destroyed(PLOG_OBJECT_EXTENT);
	plog_segment_unuse(seg);
	plog_segment_put(seg);
	if (retired)
		plog_reap_queue(p, 0);	/* its files may have waited for this */
	plog_partition_put(p);
}

bool plog_extent_stale(const struct plog_extent *ext)
{
	struct plog_segment *seg = ext->segment;

	/* the bytes were taken before: their reads must not move behind this one */
	smp_rmb();
	return smp_load_acquire(&seg->cut_gen) != ext->cut_gen &&
	       ext->pos + ext->length > READ_ONCE(seg->cut_low);
}

bool plog_extent_doubtful(const struct plog_extent *ext)
{
	return !ext->checked && doubtful(READ_ONCE(ext->partition->pub.state), ext->segment);
}

struct plog_file *plog_extent_file(const struct plog_extent *ext)
{
	return ext->segment->log;
}

ssize_t plog_extent_read(struct plog_extent *ext, u32 skip, struct iov_iter *to)
{
	size_t count = iov_iter_count(to), take;
	ssize_t n;

	if (!ext->length || skip >= ext->length || !count)
		return 0;
	take = min_t(size_t, count, ext->length - skip);
	iov_iter_truncate(to, take);
	n = plog_file_read_iter(ext->segment->log, to, ext->pos + skip);
	iov_iter_reexpand(to, count - (take - iov_iter_count(to)));
	if (plog_extent_stale(ext))
		return -ESTALE;
	if (n > 0)
		plog_partition_count_read(ext->partition, n);
	/* the log has these bytes: a file that ends before is damaged */
	return n ? n : -EIO;
}

/* ---- by time ---- */

/*
 * struct wanted - what a look-up by time is after
 * @timestamp: least one, or with @max the very one
 * @least: offset from which on the caller wants it
 * @from, @limit: offsets that count, as of the look
 */
struct wanted {
	s64 timestamp;
	bool max;
	s64 least;
	s64 from;
	s64 limit;
};

static bool fits(const struct wanted *w, s64 timestamp)
{
	return w->max ? timestamp == w->timestamp : timestamp >= w->timestamp;
}

/*
 * The first record at or above @w->from that fits, or with @best the first of
 * the latest, in the uncompressed batch the cursor stands on.
 * Return: 1, 0, or an error of the file.
 */
static int walk_records(struct plog_cursor *cur, const struct wanted *w, bool best, s64 *found,
			s64 *timestamp)
{
	const struct plog_batch *b = &cur->batch;
	bool append_time = b->attributes & PLOG_ATTR_LOG_APPEND_TIME;
	struct plog_source src = cur->src;
	u32 pos = cur->pos + PLOG_BATCH_HEADER;
	struct plog_record rec;
	bool any = false;
	s64 time, offset;
	int err = 0;
	s32 i;

	src.size = cur->pos + b->size;
	for (i = 0; i < b->count; i++) {
		err = plog_record_decode(&src, pos, &rec);
		if (err)
			break;
		pos += rec.size;
		if (append_time)
			time = b->max_timestamp;
		else if (__builtin_add_overflow(b->base_timestamp, rec.timestamp_delta, &time))
			continue;
		offset = b->base_offset + rec.offset_delta;
		if (offset < w->from || (best ? any && time <= *timestamp : !fits(w, time)))
			continue;
		*found = offset;
		*timestamp = time;
		any = true;
		if (!best)
			break;
	}
	/* the window is shared: what the cursor knows of it is out of date */
	cur->src.window_len = 0;
	return err && err != -EBADMSG ? err : any;
}

/* Is there a record at each offset of the batch, and are their times those of the batch? */
static bool all_alike(const struct plog_batch *b)
{
	return b->attributes & PLOG_ATTR_LOG_APPEND_TIME &&
	       b->count == (s64)b->last_offset_delta + 1;
}

/* The record in the batch the cursor stands on. Return: 1, 0 or an error. */
static int find_record(struct plog_cursor *cur, const struct wanted *w, struct plog_time_hit *hit)
{
	const struct plog_batch *b = &cur->batch;

	hit->leader_epoch = b->leader_epoch;
	hit->inside = false;
	hit->timestamp = b->max_timestamp;
	hit->offset = max_t(s64, b->base_offset, w->from);
	if (all_alike(b))
		return 1;
	if (b->attributes & PLOG_ATTR_CODEC) {
		hit->inside = true;
		return 1;
	}
	return walk_records(cur, w, false, &hit->offset, &hit->timestamp);
}

/* From where to walk: behind the last entry that says "nothing as late before". */
static int seek_time(struct plog_look *look, struct plog_cursor *cur, const struct wanted *w)
{
	struct plog_segment *seg = look->seg;
	s64 offset = max_t(s64, w->from, seg->base), timestamp;
	s32 relative;
	int ret;

	ret = plog_timeindex_lookup(&seg->timeindex, READ_ONCE(seg->first_timestamp), w->timestamp,
				    &timestamp, &relative);
	/* -EIO: it is shorter than it was, or cannot be read; the log can */
	if (ret < 0 && ret != -EIO)
		return ret;
	/* an entry of what a truncation is about to cut off says nothing of the index */
	if (ret > 0 && seg->base + relative > offset && seg->base + relative < look->next) {
		ret = plog_segment_seek(seg, cur, seg->base + relative);
		if (ret < 0)
			return ret;
		if (ret > 0 && cur->batch.max_timestamp == timestamp &&
		    plog_batch_last_offset(&cur->batch) == seg->base + relative)
			return 1;
		/* the entry does not fit the log: walk it all */
		cur->pos = 0;
	}
	return plog_segment_seek(seg, cur, offset);
}

static int lookup_in(struct plog_look *look, const struct wanted *w, struct plog_time_hit *hit)
{
	struct plog_cursor cur;
	u8 *window;
	int ret;

	window = kmalloc(PLOG_RECORD_WINDOW, GFP_KERNEL);
	if (!window)
		return -ENOMEM;
	plog_cursor_init(&cur, look->seg, look->end, look->cut_gen, window);
	for (ret = seek_time(look, &cur, w); ret > 0; ret = plog_cursor_next(&cur)) {
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		cond_resched();
		if (cur.batch.base_offset >= w->limit) {
			ret = 0;
			break;
		}
		/* with @max too: the largest of a batch may lie below what counts */
		if (plog_batch_last_offset(&cur.batch) < w->from ||
		    cur.batch.max_timestamp < w->timestamp || !cur.batch.count)
			continue;
		ret = find_record(&cur, w, hit);
		if (ret)
			break;
	}
	kfree(window);
	return ret == -EBADMSG ? -EIO : ret;
}

/* The largest timestamp of the segment, as far as the look goes. */
static int segment_max(struct plog_partition *p, struct plog_look *look, s64 *max)
{
	struct plog_segment *seg = look->seg;
	int err = 0;

	if (mutex_lock_killable(&seg->flock))
		return -EINTR;
	/*
	 * While it is active its writer keeps them, and learns them anew under
	 * this lock; before the first append nobody does.
	 */
	if (!READ_ONCE(seg->active))
		err = plog_segment_times(seg, p->dir);
	*max = READ_ONCE(seg->max_timestamp);
	mutex_unlock(&seg->flock);
	return err;
}

/*
 * The largest timestamp from @w->from on, in a segment that begins before that.
 * Of a compressed batch that does too, it is the batch's: only who expands it
 * can tell.
 */
static int rest_max(struct plog_look *look, const struct wanted *w, s64 *max)
{
	struct plog_cursor cur;
	s64 offset, time;
	u8 *window;
	int ret;

	window = kmalloc(PLOG_RECORD_WINDOW, GFP_KERNEL);
	if (!window)
		return -ENOMEM;
	*max = -1;
	plog_cursor_init(&cur, look->seg, look->end, look->cut_gen, window);
	for (ret = plog_segment_seek(look->seg, &cur, w->from); ret > 0;
	     ret = plog_cursor_next(&cur)) {
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		cond_resched();
		time = cur.batch.max_timestamp;
		if (time <= *max || !cur.batch.count)
			continue;
		if (cur.batch.base_offset < w->from && !all_alike(&cur.batch) &&
		    !(cur.batch.attributes & PLOG_ATTR_CODEC)) {
			ret = walk_records(&cur, w, true, &offset, &time);
			if (ret < 0)
				break;
			if (!ret)
				continue;
		}
		*max = max_t(s64, *max, time);
	}
	kfree(window);
	return ret == -EBADMSG ? -EIO : ret;
}

/* Is it known without a look into the files that nothing in the segment fits? */
static bool is_older(const struct plog_look *look, const struct wanted *w, bool best)
{
	const struct plog_segment *seg = look->seg;

	return !best && !look->active && smp_load_acquire(&seg->times_known) &&
	       READ_ONCE(seg->max_timestamp) < w->timestamp && !plog_look_cut(look);
}

/* Segments that are passed over in one section under RCU. */
#define OLDER_AT_ONCE	1024

/*
 * The offset from which a walk has to look: behind the segments that are known, without
 * a look into their files, to have nothing as late.  The last one never is.  A
 * truncation or swap meanwhile takes records away or leaves them as they were: what
 * was passed over has nothing to find afterwards either, and what is appended to a
 * segment that is the last by then is found from the segment's end on.
 */
static s64 skip_older(struct plog_partition *p, s64 offset, s64 timestamp)
{
	const struct plog_table *table;
	u32 i, n;

	do {
		rcu_read_lock();
		table = rcu_dereference(p->table);
		n = OLDER_AT_ONCE;
		for (i = table ? plog_table_find(table, offset) : 0;
		     table && n && i + 1 < table->count; i++, n--) {
			const struct plog_segment *seg = table->seg[i];

			if (!smp_load_acquire(&seg->times_known) ||
			    READ_ONCE(seg->max_timestamp) >= timestamp)
				break;
			offset = table->seg[i + 1]->base;
		}
		rcu_read_unlock();
		cond_resched();
	} while (!n && !fatal_signal_pending(current));
	return offset;
}

/*
 * Walk the segments from @w->from on.  With @best, only note the first that has
 * the largest timestamp.  Return: 1 with a hit, 0 without, -ESTALE to begin anew.
 */
static int walk_segments(struct plog_partition *p, enum plog_end end, struct wanted *w, bool best,
			 struct plog_time_hit *hit)
{
	s64 offset, max, top = -1;
	struct plog_look look;
	bool last;
	int ret;

	plog_look(p, -1, &look);
	ret = plog_check_readable(&look.pub);
	if (ret)
		return ret;
	w->from = max_t(s64, w->least, look.pub.log_start);
	w->limit = plog_end_of(&look.pub, end);
	offset = w->from;
	do {
		if (!best)
			offset = skip_older(p, offset, w->timestamp);
		plog_look(p, offset, &look);
		/* the latest record of all may lie behind what this reader may see */
		if (!look.seg || offset >= (best ? look.pub.log_end : w->limit)) {
			plog_look_put(&look);
			return 0;
		}
		ret = 0;
		if (is_older(&look, w, best)) {
			/* no file of it is opened for that */
		} else if (!(ret = plog_look_use(p, &look))) {
			ret = segment_max(p, &look, &max);
			if (!ret && best && max > top && look.seg->base < w->from)
				ret = rest_max(&look, w, &max);
			if (!ret && best && max > top) {
				top = max;
				w->timestamp = max;
			} else if (!ret && !best && max >= w->timestamp) {
				ret = lookup_in(&look, w, hit);
			}
			if (plog_look_cut(&look))
				ret = -ESTALE;
			plog_segment_unuse(look.seg);
		} else if (READ_ONCE(look.seg->retired)) {
			ret = -ESTALE;
		}
		last = look.active;
		offset = look.next;
		plog_look_put(&look);
	} while (!ret && !last);
	return ret;
}

int plog_partition_lookup_from(struct plog_partition *p, s64 from, s64 timestamp, bool max,
			       enum plog_end end, struct plog_time_hit *hit)
{
	struct wanted w = { .timestamp = timestamp, .max = max, .least = from };
	int ret;

	atomic64_inc(&p->count.lookups);
	do {
		ret = 0;
		if (max) {
			w.timestamp = -1;
			ret = walk_segments(p, end, &w, true, hit);
		}
		if (!ret && (!max || w.timestamp >= 0))
			ret = walk_segments(p, end, &w, false, hit);
	} while (ret == -ESTALE);
	/* the record may lie behind the end that this reader may see */
	if (ret > 0 && hit->offset < w.limit) {
		hit->behind = false;
		return 0;
	}
	hit->behind = max && w.timestamp >= 0;
	hit->offset = -1;
	hit->timestamp = -1;
	hit->leader_epoch = -1;
	hit->inside = false;
	return ret < 0 ? ret : 0;
}
