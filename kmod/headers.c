// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The headers of batches, one after the other: what a daemon builds its
 * knowledge of producers and transactions from, and a reader of committed
 * records its knowledge of what was aborted.
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "compat/unaligned.h"
#include "engine.h"

/*
 * struct walk - one call
 * @limit: batches that end at or behind it are not for this reader
 * @next: offset to go on from
 * @looked: headers seen so far
 */
struct walk {
	u32 flags;
	s64 limit;
	s64 next;
	u32 looked;
	u32 room;
	u32 count;
	struct plog_batch_header *out;
};

static bool is_full(const struct walk *w)
{
	return w->count == w->room || w->looked == PLOG_HEADERS_LOOKED;
}

/*
 * A marker is one record: its key is a version and a type, its value a version
 * and the epoch of the coordinator, 2, 2, 2 and 4 bytes.
 */
static int read_marker(struct plog_cursor *cur, struct plog_batch_header *h)
{
	struct plog_source src = cur->src;
	struct plog_record rec;
	const u8 *raw;
	s16 type;
	int err;

	src.size = cur->pos + cur->batch.size;
	err = plog_record_decode(&src, cur->pos + PLOG_BATCH_HEADER, &rec);
	if (!err && rec.key_len >= 4) {
		raw = plog_source_at(&src, rec.key_pos, 4);
		err = PTR_ERR_OR_ZERO(raw);
		type = err ? -1 : get_unaligned_be16(raw + 2);
		h->control = max_t(s16, type, -1);
	}
	if (!err && h->control >= 0 && rec.value_len >= 6) {
		raw = plog_source_at(&src, rec.value_pos, 6);
		err = PTR_ERR_OR_ZERO(raw);
		if (!err)
			h->coordinator_epoch = get_unaligned_be32(raw + 2);
	}
	/* the window is shared: what the cursor knows of it is out of date */
	cur->src.window_len = 0;
	return err == -EBADMSG ? 0 : err;
}

static int add(struct walk *w, struct plog_cursor *cur)
{
	const struct plog_batch *b = &cur->batch;
	struct plog_batch_header *h = &w->out[w->count];

	if (w->flags & PLOG_HEADERS_PRODUCERS && b->producer_id < 0)
		return 0;
	if (w->flags & PLOG_HEADERS_CONTROL && !(b->attributes & PLOG_ATTR_CONTROL))
		return 0;
	memset(h, 0, sizeof(*h));
	h->base_offset = b->base_offset;
	h->last_offset = plog_batch_last_offset(b);
	h->base_timestamp = b->base_timestamp;
	h->max_timestamp = b->max_timestamp;
	h->producer_id = b->producer_id;
	h->size = b->size;
	h->leader_epoch = b->leader_epoch;
	h->base_sequence = b->base_sequence;
	h->count = b->count;
	h->coordinator_epoch = -1;
	h->attributes = b->attributes;
	h->producer_epoch = b->producer_epoch;
	h->control = -1;
	w->count++;
	if (b->attributes & PLOG_ATTR_CONTROL && !(b->attributes & PLOG_ATTR_CODEC))
		return read_marker(cur, h);
	return 0;
}

/* The batches of one segment. Return: 1 if there may be more in the next, 0 to end, an error. */
static int walk_segment(struct plog_look *look, struct walk *w, u8 *window)
{
	struct plog_cursor cur;
	int ret, err;

	plog_cursor_init(&cur, look->seg, look->end, look->cut_gen, window);
	for (ret = plog_segment_seek(look->seg, &cur, w->next); ret > 0;
	     ret = plog_cursor_next(&cur)) {
		if (plog_batch_last_offset(&cur.batch) >= w->limit) {
			/* the end lies inside this one: next time it is looked at again */
			w->next = w->limit;
			return 0;
		}
		if (is_full(w))
			return 0;
		err = add(w, &cur);
		if (err)
			return err;
		w->looked++;
		w->next = plog_batch_last_offset(&cur.batch) + 1;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	if (ret < 0)
		return ret;
	/* behind its last batch: compaction leaves gaps */
	w->next = max_t(s64, w->next, min_t(s64, look->next, w->limit));
	return !look->active;
}

int plog_partition_headers(struct plog_partition *p, enum plog_end end, u32 flags, s64 *offset,
			   struct plog_batch_header *out, u32 *count, struct plog_view *view)
{
	struct walk w = { .flags = flags, .room = min_t(u32, *count, PLOG_HEADERS_MAX), .out = out };
	struct plog_look look;
	u8 *window;
	int ret;

	*count = 0;
	window = kmalloc(PLOG_RECORD_WINDOW, GFP_KERNEL);
	if (!window)
		return -ENOMEM;
again:
	w.next = *offset;
	w.count = 0;
	w.looked = 0;
	do {
		plog_look(p, w.next, &look);
		plog_look_view(&look, view);
		ret = plog_check_readable(&look.pub);
		if (!ret && !w.looked && (*offset < look.pub.log_start || *offset > look.pub.log_end))
			ret = -ERANGE;
		w.limit = plog_end_of(&look.pub, end);
		if (ret || w.next >= w.limit || !look.seg || is_full(&w)) {
			plog_look_put(&look);
			break;
		}
		ret = plog_look_use(p, &look);
		if (!ret) {
			ret = walk_segment(&look, &w, window);
			if (plog_look_cut(&look))
				ret = -ESTALE;
			plog_segment_unuse(look.seg);
		} else if (READ_ONCE(look.seg->retired)) {
			ret = -ESTALE;
		}
		plog_look_put(&look);
	} while (ret > 0);
	/* what was seen in bytes that are gone says nothing */
	if (ret == -ESTALE && !fatal_signal_pending(current))
		goto again;
	kfree(window);
	if (ret == -ESTALE)
		ret = -EINTR;
	if (ret < 0)
		return ret == -EBADMSG ? -EIO : ret;
	*offset = w.next;
	*count = w.count;
	return 0;
}
