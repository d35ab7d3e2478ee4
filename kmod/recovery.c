// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Opening: what lies in the directory, and after an unclean stop the scan of
 * what lies behind the recovery point.
 */
#define pr_fmt(fmt) "plog: " fmt

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "compat/unaligned.h"
#include "engine.h"

/*
 * struct names - names of segments, some at a time, for no directory has more of them
 * than its filesystem allows: what retention leaves of a segment where nobody
 * deletes is an empty file
 * @from: they are not below that
 * @all: of those there are no more
 * @swap: one is half replaced
 */
#define NAMES_MORE	16384	/* than segments_max are looked at together */

struct names {
	s64 from;
	bool all;
	bool swap;
	u32 most;
	u32 count;
	u32 room;
	s64 *base;
};

/*
 * struct found - what the directory has
 * @count: names, 2 for more than one
 * @below: the highest that is not above the log start, or -1
 */
struct found {
	u32 count;
	s64 below;
};

/* Heap sort: the kernel's sort() has a shape of its own in each version. */
static void sift(s64 *a, u32 root, u32 count)
{
	for (;;) {
		u32 child = 2 * root + 1;
		s64 t;

		if (child >= count)
			return;
		if (child + 1 < count && a[child + 1] > a[child])
			child++;
		if (a[root] >= a[child])
			return;
		t = a[root];
		a[root] = a[child];
		a[child] = t;
		root = child;
	}
}

static void heapify(struct names *n)
{
	u32 i;

	for (i = n->count / 2; i-- > 0;)
		sift(n->base, i, n->count);
}

static void sort_names(struct names *n)
{
	u32 i;
	s64 t;

	heapify(n);
	for (i = n->count; i-- > 1;) {
		t = n->base[0];
		n->base[0] = n->base[i];
		n->base[i] = t;
		sift(n->base, 0, i);
	}
}

static int grow(struct names *n)
{
	u32 room = min_t(u32, n->room ? 2 * n->room : 16, n->most);
	s64 *more = kvmalloc(room * sizeof(*more), GFP_KERNEL);

	if (!more)
		return -ENOMEM;
	if (n->count)
		memcpy(more, n->base, n->count * sizeof(*more));
	kvfree(n->base);
	n->base = more;
	n->room = room;
	return 0;
}

static int add_name(void *arg, const char *name, unsigned int len)
{
	s64 base = plog_segment_parse(name, len);
	struct names *n = arg;
	int err;

	if (base < 0)
		n->swap |= plog_segment_is_swap(name, len);
	if (base < n->from)
		return 0;
	if (n->count < n->most) {
		err = n->count == n->room ? grow(n) : 0;
		if (err)
			return err;
		n->base[n->count++] = base;
		if (n->count == n->most)
			heapify(n);
		return 0;
	}
	/* the lowest are kept, and the highest of those is on top */
	n->all = false;
	if (base < n->base[0]) {
		n->base[0] = base;
		sift(n->base, 0, n->count);
	}
	return 0;
}

/* The lowest names from @n->from on, in order. */
static int next_names(struct plog_partition *p, struct names *n)
{
	int err;

	n->all = true;
	n->count = 0;
	err = plog_dir_iterate(p->dir, add_name, n);
	if (!err && n->swap) {
		/* some files of the run may be gone, and the one that replaces them has no name yet */
		pr_err("%s: a .log.swap of a compaction that was interrupted: it has to be renamed first\n",
		       p->name);
		err = -EUCLEAN;
	}
	if (!err)
		sort_names(n);
	return err;
}

static void free_table(struct plog_table *table)
{
	u32 i;

	for (i = 0; i < table->count; i++) {
		if (table->seg[i]->held)
			plog_segment_unuse(table->seg[i]);
		plog_segment_retire(table->seg[i]);
		plog_segment_put(table->seg[i]);
	}
	kvfree(table);
}

/* Segment @base, of @end bytes or PLOG_END_UNKNOWN, is the last one so far. */
static int add_segment(struct plog_partition *p, struct plog_table *table, s64 base, u64 end)
{
	struct plog_segment *seg = plog_segment_alloc(base);

	if (!seg)
		return -ENOMEM;
	seg->end = end;
	seg->counts = &p->count.segments;
	seg->index_interval = p->config.index_interval_bytes;
	table->seg[table->count++] = seg;
	return 0;
}

/*
 * The first segment lies wholly below the log start, and was retired before the stop;
 * its files are still there.  Nobody reads them now: they can be deleted at once.
 */
static int retire_again(struct plog_partition *p, struct plog_table *table)
{
	struct plog_segment *seg = table->seg[0];
	u64 bytes = READ_ONCE(seg->end) == PLOG_END_UNKNOWN ? 0 : seg->end;
	int err = plog_retired_add_found(p, seg->base, bytes);

	if (err)
		return err;
	plog_segment_retire(seg);
	plog_segment_put(seg);
	table->count--;
	memmove(table->seg, table->seg + 1, table->count * sizeof(table->seg[0]));
	return 0;
}

/*
 * The size of a log file into *@end.
 * @durable: nothing, if it is that, is what the disk has to know of
 */
static int learn_size(struct plog_partition *p, s64 base, bool durable, u64 *end)
{
	char name[PLOG_SEGMENT_NAME];
	struct plog_file *file;
	int err = 0;

	plog_segment_name(name, base, "log");
	file = plog_file_open(p->dir, name, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	*end = min_t(u64, plog_file_size(file), INT_MAX);
	if (!*end && durable)
		err = plog_file_sync(file, 0, 0);
	plog_file_close(file);
	return err;
}

/*
 * Make segments of @n, behind those of @table, but not of empty files: those of a
 * truncation, of retention, or of a roll for an append that did not come, that nobody
 * unlinked.  One may lie where the log has grown to since, and would hide what is
 * there.
 */
static int add_segments(struct plog_partition *p, struct plog_table *table,
			const struct names *n, struct found *found)
{
	const struct plog_saved *saved = &p->saved;
	s64 keep = saved->clean ? saved->active_base : -1;
	/* who has closed cleanly knew whether there are any */
	bool look = !saved->clean || saved->leftovers;
	int err = 0;
	u32 i;

	for (i = 0; i < n->count && !err; i++) {
		s64 base = n->base[i];
		u64 end = PLOG_END_UNKNOWN;

		if (READ_ONCE(p->abandoned))
			return -ECANCELED;
		if (base <= saved->log_start)
			found->below = base;
		if (look)
			err = learn_size(p, base, !saved->clean, &end);
		if (err)
			return err;
		if (!end && base != keep) {
			plog_retired_add_empty(p, base);
			continue;
		}
		if (base <= saved->log_start && table->count)
			err = retire_again(p, table);
		if (!err && table->count >= READ_ONCE(plog_segments_max)) {
			pr_err("%s: more segments than segments_max (%u) allows\n", p->name,
			       READ_ONCE(plog_segments_max));
			err = -E2BIG;
		}
		if (!err)
			err = add_segment(p, table, base, end);
	}
	return err;
}

/*
 * Where compaction has left a segment empty the one before it may have been retired:
 * the name alone tells where that one ends.  Its file may be cut anywhere by now,
 * and must not be taken for the end of the log.  But the name may also be left from
 * a truncation, where the log has grown to since: only the batches tell.
 * Return: 1 if @seg has no batch from @end on, 0, or an error.
 */
static int ends_below(struct plog_partition *p, struct plog_segment *seg, s64 end)
{
	s64 next = seg->base;
	u64 valid;
	int err;

	err = plog_segment_open_raw(seg, p->dir);
	if (err)
		return err;
	err = plog_segment_scan(seg, plog_file_size(seg->log), &next, false, &valid);
	plog_segment_unuse(seg);
	return err ? err : next <= end;
}

/*
 * Does the log start with its first file, @base? Not where a power cut took the files
 * before: a log start is on the disk before anything below it goes, and what lies behind
 * the recovery point has to follow what was before it, as everywhere in a dense log.
 */
static bool starts_with(const struct plog_saved *saved, s64 base)
{
	return !saved->dense || saved->imported || base <= saved->recovery_point;
}

/*
 * All segments that are not empty and do not lie below the log start, into a table with
 * room for one more: the log may have to start anew.
 */
static int find_segments(struct plog_partition *p, struct found *found, struct plog_table **out)
{
	struct names n = { .most = READ_ONCE(plog_segments_max) + NAMES_MORE };
	struct plog_saved *saved = &p->saved;
	struct plog_table *table = NULL, *more;
	s64 base;
	int err;

	found->count = 0;
	found->below = -1;
	do {
		err = next_names(p, &n);
		if (err)
			break;
		if (!found->count && n.count) {
			found->count = min_t(u32, n.count, 2);
			/* the log cannot start below its first file */
			if (!saved->clean && starts_with(saved, n.base[0]))
				saved->log_start = max_t(s64, saved->log_start, n.base[0]);
		}
		err = -ENOMEM;
		more = plog_table_alloc((table ? table->count : 0) + n.count + 1);
		if (!more)
			break;
		if (table) {
			more->count = table->count;
			memcpy(more->seg, table->seg, table->count * sizeof(table->seg[0]));
			kvfree(table);
		}
		table = more;
		err = add_segments(p, table, &n, found);
		if (!n.all)
			n.from = n.base[n.count - 1] + 1;
	} while (!err && !n.all);
	kvfree(n.base);
	/* the last one takes the appends, with a name of its own */
	base = !err && table->count > 1 ? table->seg[0]->base : S64_MAX;
	if (base < found->below) {
		err = ends_below(p, table->seg[0], found->below);
		if (err > 0)
			err = retire_again(p, table);
	}
	if (err && table)
		free_table(table);
	*out = err ? NULL : table;
	return err;
}

/*
 * Of segments whose sizes are known.  Not those that the clean mark was made for: one
 * may be retired now that was not then, and one come back whose end was told by an
 * empty one behind it.
 */
static u64 count_bytes(const struct plog_table *table)
{
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < table->count; i++)
		bytes += table->seg[i]->end;
	return bytes;
}

/* Cut, on stable storage: see plog_segment_cut(). */
static int cut_file(struct plog_file *file, u64 size)
{
	int err = plog_file_truncate(file, size);

	return err ? err : plog_file_sync(file, 0, 0);
}

/* Drop segment @i; what is in it is no part of the log. */
static int drop(struct plog_partition *p, struct plog_table *table, u32 i)
{
	struct plog_segment *seg = table->seg[i];
	char name[PLOG_SEGMENT_NAME];
	struct plog_file *file;
	u64 size;
	int err;

	plog_segment_name(name, seg->base, "log");
	file = plog_file_open(p->dir, name, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	size = plog_file_size(file);
	err = size ? cut_file(file, 0) : 0;
	plog_file_close(file);
	if (err)
		return err;
	if (size) {
		pr_warn("%s: %s: %llu bytes do not follow what is before them and were cut off\n",
			p->name, name, (unsigned long long)size);
		atomic64_add(size, &p->count.truncated_bytes);
	}
	table->count--;
	memmove(&table->seg[i], &table->seg[i + 1], (table->count - i) * sizeof(table->seg[0]));
	plog_segment_retire(seg);
	plog_retired_add_empty(p, seg->base);
	plog_segment_put(seg);
	return 0;
}

/* From the end: a crash in the middle leaves the start of the log. */
static int drop_from(struct plog_partition *p, struct plog_table *table, u32 from)
{
	int err = 0;

	while (!err && table->count > from)
		err = drop(p, table, table->count - 1);
	return err;
}

static int start_anew(struct plog_partition *p, struct plog_table *table, s64 base)
{
	struct plog_segment *seg = plog_segment_alloc(base);
	int err;

	if (!seg)
		return -ENOMEM;
	seg->counts = &p->count.segments;
	seg->index_interval = p->config.index_interval_bytes;
	/* nobody can have been given the list of an open that is not over */
	err = plog_retired_reuse(p, base);
	if (!err)
		err = plog_segment_create_log(seg, p->dir, plog_now_ms(), p->config.preallocate ?
					      p->config.segment_bytes : 0);
	if (err) {
		plog_segment_put(seg);
		return err;
	}
	p->dir_dirty = true;
	table->seg[table->count++] = seg;
	plog_segment_unuse(seg);
	return 0;
}

/*
 * Batches of Kafka's formats 0 and 1 have offset and size at the same places,
 * their CRC where ours has the epoch, and the magic where ours is too.
 */
static int refuse_old_format(struct plog_partition *p, struct plog_segment *seg, u64 size)
{
	u8 raw[17];
	ssize_t n;
	u32 len;

	if (size < 26)
		return 0;
	n = plog_file_read(seg->log, raw, sizeof(raw), 0);
	if (n < 0)
		return n;
	len = get_unaligned_be32(raw + 8);
	if (n < (ssize_t)sizeof(raw) || raw[16] > 1 || len < 14 || len > size - 12)
		return 0;
	pr_err("%s: %020lld.log holds messages in Kafka's old format %u: rewrite the topic with a broker of Kafka 0.11 to 3.x first\n",
	       p->name, (long long)seg->base, raw[16]);
	return -EPROTONOSUPPORT;
}

/*
 * Check segment @i from its first byte on and cut what is no valid batch.
 * @next: the offset that may follow
 * Return: 1 if the log ends here, 0 if it may go on in the next segment.
 */
static int scan_segment(struct plog_partition *p, struct plog_table *table, u32 i, s64 *next)
{
	struct plog_segment *seg = table->seg[i];
	bool goes_on = false;
	u64 size, valid;
	int err;

	err = plog_segment_open_raw(seg, p->dir);
	if (err)
		return err;
	plog_file_doubt(seg->log);
	size = plog_file_size(seg->log);
	if (size > INT_MAX) {
		/* positions in an index have 31 bits: nobody wrote that as a log */
		pr_err("%s: %020lld.log has %llu bytes, more than a segment can: move it away\n",
		       p->name, (long long)seg->base, (unsigned long long)size);
		err = -EFBIG;
		goto out;
	}
	err = refuse_old_format(p, seg, size);
	if (err)
		goto out;
	if (*next < seg->base)
		*next = seg->base;
	err = plog_segment_scan(seg, size, next, true, &valid);
	if (err)
		goto out;
	atomic64_add(size, &p->count.recovered_bytes);
	seg->end = valid;
	if (valid < size && p->saved.imported && i + 1 < table->count) {
		/* zeros, of a file that was made at its full size, hide nothing */
		goes_on = table->seg[i + 1]->base == *next;
		if (!goes_on) {
			pr_err("%s: %020lld.log is damaged at byte %llu, and more of Kafka's log follows: nothing was cut; move the segments from there on away to do without them\n",
			       p->name, (long long)seg->base, (unsigned long long)valid);
			err = -EBADMSG;
			goto out;
		}
	}
	if (valid < size) {
		pr_warn("%s: %020lld.log: the last %llu bytes are no whole batch and were cut off\n",
			p->name, (long long)seg->base, (unsigned long long)(size - valid));
		err = plog_file_truncate(seg->log, valid);
		if (err)
			goto out;
		atomic64_add(size - valid, &p->count.truncated_bytes);
	}
	/* also where nothing was cut: what was before a crash may not be on the disk yet */
	err = plog_file_sync(seg->log, 0, valid ? valid - 1 : 0);
	if (!err && valid < size && !goes_on)
		err = 1;
out:
	plog_segment_unuse(seg);
	return err;
}

/* The first segment that may hold offsets from @offset on. */
static u32 segment_of(const struct plog_table *table, s64 offset)
{
	u32 i = table->count;

	while (i > 0 && table->seg[i - 1]->base > offset)
		i--;
	return i ? i - 1 : 0;
}

/*
 * @dense: a segment begins where the one before ends, or not above @log_start. A
 * gap behind the recovery point @from is what a power cut leaves that took the end
 * of a segment, or all of it, but not the next one.
 * A segment that begins inside what lies before it was cut off once, and its cut
 * was lost: no reason to doubt what follows.
 * @log_end: -1 if there is no segment
 */
static int scan(struct plog_partition *p, struct plog_table *table, s64 from, bool dense,
		s64 log_start, s64 *log_end)
{
	u32 first = table->count ? segment_of(table, from) : 0, i;
	s64 next = -1, end = -1;
	int ret = 0;

	for (i = first; i < table->count && !ret; i++) {
		s64 base = table->seg[i]->base;

		/* who closes waits for this, and a large log takes minutes */
		if (READ_ONCE(p->abandoned))
			return -ECANCELED;
		if (i > first && base < next) {
			ret = drop(p, table, i--);
			if (ret)
				return ret;
			continue;
		}
		if (dense && base > from && base > max_t(s64, next, log_start)) {
			ret = 1;
			break;
		}
		end = next;
		ret = scan_segment(p, table, i, &next);
		if (ret < 0)
			return ret;
		if (table->seg[i]->max_epoch > p->saved.leader_epoch) {
			p->saved.leader_epoch = table->seg[i]->max_epoch;
			p->saved.epoch_start = -1;
		}
	}
	if (ret) {
		/*
		 * An emptied one has no say: what was before it may be lost too,
		 * and a follower that began at its base would never fetch that.
		 */
		if (i > 1 && !table->seg[i - 1]->end) {
			i--;
			if (i > first)
				next = end;
		}
		ret = drop_from(p, table, i);
		if (ret)
			return ret;
	}
	*log_end = next;
	return 0;
}

/*
 * The segment that takes the next append: the last one; an empty file that was
 * made for that offset; or a new one, if nothing is left or the log has lost
 * its end and what is left lies before its start.
 */
static int find_active(struct plog_partition *p, struct plog_table *table, s64 log_start,
		       s64 *log_end)
{
	struct plog_segment *last;
	u64 size;
	int err;

	if (*log_end < log_start && p->saved.imported && table->count) {
		pr_err("%s: the log ends at %lld, before the start %lld that Kafka has noted: remove its line from log-start-offset-checkpoint, and plog.state, to have what is there\n",
		       p->name, (long long)*log_end, (long long)log_start);
		return -EBADMSG;
	}
	if (*log_end < log_start) {
		err = drop_from(p, table, 0);
		if (err)
			return err;
		*log_end = log_start;
	}
	if (table->count) {
		last = table->seg[table->count - 1];
		if (last->base == *log_end)
			return 0;
		err = learn_size(p, *log_end, false, &size);
		if (err)
			return err == -ENOENT ? 0 : err;
	}
	return start_anew(p, table, *log_end);
}

/*
 * The rest of a failed append was cut off, and then the next one rolled; nothing
 * has synced that cut, and a power cut has taken it back.  It is not even known
 * where the recovery point lies behind it.  But nothing is missing before
 * @next, where the next segment begins: so the bytes are nobody's.
 */
static int cut_rest(struct plog_partition *p, struct plog_segment *seg, s64 next)
{
	u64 end = seg->end;
	int err;

	if (seg->walked >= end || seg->walked_next != next)
		return 0;
	pr_warn("%s: %020lld.log: %llu bytes behind its last batch are no batch and were cut off\n",
		p->name, (long long)seg->base, (unsigned long long)(end - seg->walked));
	err = cut_file(seg->log, seg->walked);
	if (err)
		return err;
	WRITE_ONCE(seg->end, seg->walked);
	atomic64_add(end - seg->walked, &p->count.truncated_bytes);
	return 0;
}

/* Sizes and times of what was not scanned: a clean log has them saved. */
static int add_up(struct plog_partition *p, struct plog_table *table, u64 *bytes,
		  s64 *max_timestamp)
{
	struct plog_segment *seg;
	u32 i;
	int err;

	*bytes = 0;
	*max_timestamp = -1;
	for (i = 0; i < table->count; i++) {
		seg = table->seg[i];
		/* one that was just made */
		if (!seg->end && seg->times_known)
			continue;
		err = plog_segment_use(seg, p->dir);
		if (err)
			return err;
		mutex_lock(&seg->flock);
		err = plog_segment_times(seg, p->dir);
		if (!err && i + 1 < table->count)
			err = cut_rest(p, seg, table->seg[i + 1]->base);
		mutex_unlock(&seg->flock);
		*bytes += seg->end;
		*max_timestamp = max_t(s64, *max_timestamp, seg->max_timestamp);
		plog_segment_unuse(seg);
		if (err)
			return err;
	}
	return 0;
}

/* Does the directory hold what the clean mark was made for? */
static bool is_clean(struct plog_partition *p, struct plog_table *table,
		     const struct plog_saved *saved)
{
	struct plog_segment *seg;
	bool same;

	if (!saved->clean || !table->count)
		return false;
	seg = table->seg[table->count - 1];
	if (seg->base != saved->active_base || saved->log_end < seg->base ||
	    saved->log_end < saved->log_start ||
	    plog_segment_use(seg, p->dir))
		return false;
	same = seg->end == saved->active_bytes;
	plog_segment_unuse(seg);
	if (!same)
		seg->end = PLOG_END_UNKNOWN;
	return same;
}

static s64 high_watermark(const struct plog_partition *p, s64 log_end)
{
	const struct plog_saved *saved = &p->saved;

	if (!(p->config.flags & PLOG_STATE_REPLICATED))
		return log_end;
	return min_t(s64, max_t(s64, saved->high_watermark, saved->log_start), log_end);
}

/*
 * The epochs, and the one that a leader goes on with: an epoch begins where it is
 * taken up, written or not (KIP-101).
 */
static int find_epochs(struct plog_partition *p, struct plog_table *table, s64 log_end,
		       bool clean, struct plog_epochs **out)
{
	struct plog_epoch_builder list;
	struct plog_epochs *found;
	int err;

	err = plog_epoch_load(p, table, log_end, clean, &found);
	if (err)
		return err;
	*out = found;
	if (!plog_leads(p->config.flags) || plog_epoch_last(found) == p->saved.leader_epoch)
		return 0;
	err = plog_epoch_begin(&list, found);
	if (!err)
		err = plog_epoch_assign(&list, p->saved.leader_epoch, log_end);
	kvfree(found);
	if (err) {
		plog_epoch_drop(&list);
		return err;
	}
	p->epochs_dirty = true;
	*out = plog_epoch_finish(&list);
	return 0;
}

static void go_online(struct plog_partition *p, struct plog_table *table,
		      struct plog_epochs *epochs, s64 log_end, u64 bytes, s64 max_timestamp)
{
	const struct plog_saved *saved = &p->saved;
	s64 hw = high_watermark(p, log_end);

	WRITE_ONCE(p->gaps, !saved->dense);
	p->gaps_noted = !saved->dense;
	plog_publish_begin(p);
	plog_epoch_install(p, epochs, saved->leader_epoch);
	WRITE_ONCE(p->pub.log_start, saved->log_start);
	WRITE_ONCE(p->pub.active_end, table->seg[table->count - 1]->end);
	WRITE_ONCE(p->pub.bytes, bytes);
	WRITE_ONCE(p->pub.max_timestamp, max_timestamp);
	WRITE_ONCE(p->pub.first_unstable, saved->settled.first_unstable);
	WRITE_ONCE(p->pub.last_producer, saved->settled.last_producer);
	WRITE_ONCE(p->pub.last_marker, saved->settled.last_marker);
	smp_store_release(&p->pub.log_end, log_end);
	smp_store_release(&p->pub.high_watermark, hw);
	rcu_assign_pointer(p->table, table);
	plog_publish_end(p);
	spin_lock(&p->point_lock);
	p->recovery_point = min_t(s64, saved->recovery_point, log_end);
	p->settled = saved->settled;
	spin_unlock(&p->point_lock);
}

/*
 * What was found is what the log is from now on, also after a power cut that
 * follows: the files are synced, now for what goes with them.
 */
static int settle(struct plog_partition *p, s64 log_end)
{
	struct plog_saved *saved = &p->saved;
	int err = plog_dir_sync(p->dir);

	if (err)
		return err;
	p->dir_dirty = false;
	saved->clean = false;
	saved->leftovers = p->leftovers;
	saved->recovery_point = log_end;
	/* one of before would cover what is appended next */
	saved->high_watermark = max_t(s64, min_t(s64, saved->high_watermark, log_end),
				      saved->log_start);
	err = plog_state_write(p->dir, saved, true);
	p->state_durable = !err;
	/* a full disk does not keep anybody from reading */
	return err == -ENOSPC || err == -EDQUOT ? 0 : err;
}

int plog_recover(struct plog_partition *p)
{
	struct plog_saved *saved = &p->saved;
	struct found found;
	struct plog_epochs *epochs = NULL;
	struct plog_table *table;
	s64 log_end, max_timestamp;
	bool known;
	u64 bytes;
	int err;

	err = plog_state_read(p->dir, saved);
	if (err && err != -ENOENT) {
		if (err == -EOPNOTSUPP)
			pr_err("%s: " PLOG_STATE_NAME " is of a newer version\n", p->name);
		return err;
	}
	known = !err;
	if (!known) {
		memset(saved, 0, sizeof(*saved));
		plog_settled_init(&saved->settled);
		saved->epoch_start = -1;
	}
	err = find_segments(p, &found, &table);
	if (err)
		return err;
	/* the state is durable before there is a second segment: others made those */
	if (!known)
		saved->dense = found.count <= 1;
	if (saved->clean && saved->leftovers)
		saved->bytes = count_bytes(table);
	if (saved->clean && !is_clean(p, table, saved)) {
		/* it was made for something else: nothing of it counts, as after a crash */
		saved->clean = false;
		free_table(table);
		plog_retired_free(p);
		err = find_segments(p, &found, &table);
		if (err)
			return err;
	}
	if (saved->clean) {
		err = find_epochs(p, table, saved->log_end, true, &epochs);
		if (err)
			goto out_table;
		p->clean_on_disk = true;
		go_online(p, table, epochs, saved->log_end, saved->bytes, saved->max_timestamp);
		/* an empty one's first epoch is found again: the clean mark can stay */
		if (plog_epochs_unsaved(p, saved->log_end))
			plog_flush_queue(p);
		return 0;
	}
	if (known && table->count)
		pr_info("%s: %s, checking from offset %lld on\n", p->name,
			saved->imported ? "is Kafka's" : "was not closed cleanly",
			(long long)saved->recovery_point);
	err = scan(p, table, saved->recovery_point, saved->dense, saved->log_start,
		   &log_end);
	if (err)
		goto out_table;
	err = find_active(p, table, saved->log_start, &log_end);
	if (err)
		goto out_table;
	if (found.count && !READ_ONCE(table->seg[table->count - 1]->end))
		plog_segment_empty_indexes(table->seg[table->count - 1], p->dir);
	err = add_up(p, table, &bytes, &max_timestamp);
	if (!err)
		err = plog_unstable_scan(p, table, high_watermark(p, log_end), log_end);
	if (err)
		goto out_table;
	err = find_epochs(p, table, log_end, false, &epochs);
	if (err)
		goto out_table;
	saved->imported = false;
	/* nothing that is worth a sync in a new partition */
	p->fresh = !known && !found.count;
	err = known || found.count ? settle(p, log_end) :
				     plog_state_write(p->dir, saved, false);
	if (err)
		goto out_epochs;
	go_online(p, table, epochs, log_end, bytes, max_timestamp);
	/*
	 * A new one's epoch need not be written down: until there is a batch, opening
	 * finds the same, and then its header says it.  Three syncs for each of
	 * 10,000 partitions that are made together take longer than all else.
	 */
	if (p->recovery_point < log_end || (p->epochs_dirty && (known || found.count)))
		plog_flush_queue(p);
	return 0;

out_epochs:
	kvfree(epochs);
out_table:
	free_table(table);
	return err;
}
