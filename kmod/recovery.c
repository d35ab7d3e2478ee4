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

struct bases {
	u32 count;
	u32 room;
	s64 *base;
};

static int add_base(void *arg, const char *name, unsigned int len)
{
	s64 base = plog_segment_parse(name, len), *more;
	struct bases *b = arg;
	u32 room;

	if (base < 0)
		return 0;
	if (b->count == b->room) {
		room = b->room ? 2 * b->room : 16;
		if (room > PLOG_SEGMENTS_MAX)
			return -E2BIG;
		more = kvmalloc(room * sizeof(*more), GFP_KERNEL);
		if (!more)
			return -ENOMEM;
		if (b->count)
			memcpy(more, b->base, b->count * sizeof(*more));
		kvfree(b->base);
		b->base = more;
		b->room = room;
	}
	b->base[b->count++] = base;
	return 0;
}

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

static void sort_bases(struct bases *b)
{
	u32 i;
	s64 t;

	for (i = b->count / 2; i-- > 0;)
		sift(b->base, i, b->count);
	for (i = b->count; i-- > 1;) {
		t = b->base[0];
		b->base[0] = b->base[i];
		b->base[i] = t;
		sift(b->base, 0, i);
	}
}

static int find_bases(struct plog_partition *p, struct bases *b)
{
	int err = plog_dir_iterate(p->dir, add_base, b);

	if (!err)
		sort_bases(b);
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

/* Room for one more than there are files: the log may have to start anew. */
static struct plog_table *make_table(struct plog_partition *p, const struct bases *b)
{
	struct plog_table *table = plog_table_alloc(b->count + 1);
	u32 i;

	if (!table)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < b->count; i++) {
		table->seg[i] = plog_segment_alloc(b->base[i]);
		if (!table->seg[i]) {
			free_table(table);
			return ERR_PTR(-ENOMEM);
		}
		table->seg[i]->index_interval = p->config.index_interval_bytes;
		table->count++;
	}
	return table;
}

/*
 * Learn the sizes, and forget empty files but @keep: those of a truncation, or
 * of a roll for an append that did not come, that nobody unlinked.  One may lie
 * where the log has grown to since, and would hide what is there.
 */
static int forget_empty(struct plog_partition *p, struct plog_table *table, s64 keep)
{
	char name[PLOG_SEGMENT_NAME];
	struct plog_segment *seg;
	struct plog_file *file;
	u32 i, kept = 0;
	int err = 0;

	for (i = 0; i < table->count; i++) {
		seg = table->seg[i];
		table->seg[kept++] = seg;
		if (err)
			continue;
		plog_segment_name(name, seg->base, "log");
		file = plog_file_open(p->dir, name, 0);
		if (IS_ERR(file)) {
			err = PTR_ERR(file);
			continue;
		}
		seg->end = min_t(u64, plog_file_size(file), INT_MAX);
		plog_file_close(file);
		if (!seg->end && seg->base != keep) {
			p->leftovers = true;
			kept--;
			plog_segment_retire(seg);
			plog_segment_put(seg);
		}
	}
	table->count = kept;
	return err;
}

/* Drop the segments from @from on; what is in them is no part of the log. */
static int drop_from(struct plog_partition *p, struct plog_table *table, u32 from)
{
	struct plog_segment *seg;
	struct plog_file *file;
	char name[PLOG_SEGMENT_NAME];
	u64 size;
	int err;

	while (table->count > from) {
		seg = table->seg[table->count - 1];
		plog_segment_name(name, seg->base, "log");
		file = plog_file_open(p->dir, name, 0);
		if (IS_ERR(file))
			return PTR_ERR(file);
		size = plog_file_size(file);
		err = size ? plog_file_truncate(file, 0) : 0;
		plog_file_close(file);
		if (err)
			return err;
		if (size) {
			pr_warn("%s: %s: %llu bytes do not follow what is before them and were cut off\n",
				p->name, name, (unsigned long long)size);
			atomic64_add(size, &p->count.truncated_bytes);
		}
		table->count--;
		p->leftovers = true;
		plog_segment_retire(seg);
		plog_segment_put(seg);
	}
	return 0;
}

static int start_anew(struct plog_partition *p, struct plog_table *table, s64 base)
{
	struct plog_segment *seg = plog_segment_alloc(base);
	int err;

	if (!seg)
		return -ENOMEM;
	seg->index_interval = p->config.index_interval_bytes;
	err = plog_segment_create(seg, p->dir, plog_now_ms(), 0);
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
	u64 size, valid;
	int err;

	err = plog_segment_open_raw(seg, p->dir);
	if (err)
		return err;
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
	if (valid < size) {
		pr_warn("%s: %020lld.log: the last %llu bytes are no whole batch and were cut off\n",
			p->name, (long long)seg->base, (unsigned long long)(size - valid));
		err = plog_file_truncate(seg->log, valid);
		if (err)
			goto out;
		atomic64_add(size - valid, &p->count.truncated_bytes);
		err = 1;
	}
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

/* @log_end: -1 if there is no segment */
/*
 * @dense: offsets have no gaps here. One behind the recovery point @from is what
 * a power cut leaves that took the end of a segment, but not the next one.
 */
static int scan(struct plog_partition *p, struct plog_table *table, s64 from, bool dense,
		s64 *log_end)
{
	u32 first = table->count ? segment_of(table, from) : 0, i;
	s64 next = -1;
	int ret = 0;

	for (i = first; i < table->count && !ret; i++) {
		s64 base = table->seg[i]->base;

		if (dense && i > first && base > next && base > from) {
			ret = 1;
			break;
		}
		ret = scan_segment(p, table, i, &next);
		if (ret < 0)
			return ret;
		p->saved.leader_epoch = max_t(s32, p->saved.leader_epoch,
					      table->seg[i]->max_epoch);
	}
	if (ret) {
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
static int find_active(struct plog_partition *p, struct plog_table *table,
		       const struct bases *bases, s64 log_start, s64 *log_end)
{
	bool made = false;
	int err;
	u32 i;

	if (*log_end < log_start) {
		err = drop_from(p, table, 0);
		if (err)
			return err;
		*log_end = log_start;
	}
	for (i = 0; i < bases->count; i++)
		made |= bases->base[i] == *log_end;
	if (table->count && (!made || table->seg[table->count - 1]->base == *log_end))
		return 0;
	return start_anew(p, table, *log_end);
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
		err = plog_segment_use(seg, p->dir);
		if (err)
			return err;
		mutex_lock(&seg->flock);
		err = plog_segment_times(seg, p->dir);
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

static void go_online(struct plog_partition *p, struct plog_table *table, s64 log_end, u64 bytes,
		      s64 max_timestamp)
{
	const struct plog_saved *saved = &p->saved;
	s64 hw = log_end;

	if (p->config.flags & PLOG_STATE_REPLICATED)
		hw = min_t(s64, max_t(s64, saved->high_watermark, saved->log_start), log_end);
	plog_publish_begin(p);
	WRITE_ONCE(p->pub.leader_epoch, saved->leader_epoch);
	WRITE_ONCE(p->pub.log_start, saved->log_start);
	WRITE_ONCE(p->pub.active_end, table->seg[table->count - 1]->end);
	WRITE_ONCE(p->pub.bytes, bytes);
	WRITE_ONCE(p->pub.max_timestamp, max_timestamp);
	smp_store_release(&p->pub.log_end, log_end);
	smp_store_release(&p->pub.high_watermark, hw);
	rcu_assign_pointer(p->table, table);
	plog_publish_end(p);
	spin_lock(&p->point_lock);
	p->recovery_point = min_t(s64, saved->recovery_point, log_end);
	spin_unlock(&p->point_lock);
}

int plog_recover(struct plog_partition *p)
{
	struct plog_saved *saved = &p->saved;
	struct bases bases = { 0 };
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
	if (!known)
		memset(saved, 0, sizeof(*saved));
	err = find_bases(p, &bases);
	if (err)
		goto out_bases;
	if (!known)
		saved->dense = !bases.count;
	table = make_table(p, &bases);
	err = PTR_ERR_OR_ZERO(table);
	if (err)
		goto out_bases;
	if (saved->clean && saved->leftovers) {
		err = forget_empty(p, table, saved->active_base);
		if (err)
			goto out_table;
	}
	if (is_clean(p, table, saved)) {
		p->clean_on_disk = true;
		go_online(p, table, saved->log_end, saved->bytes, saved->max_timestamp);
		goto out_bases;
	}
	/* the log cannot start below its first file */
	if (bases.count && saved->log_start < bases.base[0])
		saved->log_start = bases.base[0];
	err = forget_empty(p, table, -1);
	if (err)
		goto out_table;
	if (known && table->count)
		pr_info("%s: was not closed cleanly, checking from offset %lld on\n", p->name,
			(long long)saved->recovery_point);
	err = scan(p, table, saved->recovery_point, saved->dense, &log_end);
	if (err)
		goto out_table;
	err = find_active(p, table, &bases, saved->log_start, &log_end);
	if (err)
		goto out_table;
	err = add_up(p, table, &bytes, &max_timestamp);
	if (err)
		goto out_table;
	if (!known && saved->dense) {
		/* that it is dense, for an open that follows a power cut */
		err = plog_state_write(p->dir, saved, false);
		if (err)
			goto out_table;
	}
	go_online(p, table, log_end, bytes, max_timestamp);
	if (p->recovery_point < log_end)
		plog_flush_queue(p);
	goto out_bases;

out_table:
	free_table(table);
out_bases:
	kvfree(bases.base);
	return err;
}
