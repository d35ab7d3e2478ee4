// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Transactions as far as the log knows them: the first unstable offset, and
 * where producers and their markers were last.
 *
 * Who is in a transaction is the daemon's knowledge.  The log keeps what comes
 * of it, together with the offsets that appends move, and two rules of its own
 * for the time in which no daemon has spoken, so that no reader of committed
 * records sees one of an open transaction:
 *
 *  - a batch of a transaction whose append says nothing opens one;
 *  - when the log is opened after an unclean stop, a batch of a transaction
 *    without a later marker of its producer holds the offset, until the daemon
 *    has built its own state and says better.
 *
 * As in Kafka a transaction is over for readers when its marker is below the
 * high watermark, not when it is appended: a truncation may take the marker.
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "engine.h"
#include "event.h"

/* Open transactions that a scan tells from each other; 16 KiB. Those beyond hold for good. */
#define OPEN_MAX	1024

void plog_settled_init(struct plog_settled *s)
{
	s->offset = 0;
	s->first_unstable = S64_MAX;
	s->last_producer = -1;
	s->last_marker = -1;
}

/* ---- moving it ---- */

static s64 latest(const struct plog_unstable *u, s64 now)
{
	return u && u->count ? u->waiting[u->count - 1].next : now;
}

/* @now: what is published; @hw: the high watermark that will be. */
static s64 move(struct plog_unstable *u, s64 now, s64 hw, s64 value, s64 marker)
{
	s64 last = latest(u, now);

	if (value == last)
		return now;
	if (value < last) {
		/* the end that waits left nothing open: this is what opens then */
		if (last == S64_MAX && u && u->count) {
			u->waiting[u->count - 1].next = value;
			return now;
		}
		if (u)
			u->count = 0;
		return min_t(s64, now, value);
	}
	if (marker < hw && (!u || !u->count))
		return value;
	if (!u)
		return now;
	/* put together with the one before it counts later, which is safe */
	if (u->count == PLOG_UNSTABLE_WAITING)
		u->count--;
	u->waiting[u->count].marker = marker;
	u->waiting[u->count].next = value;
	u->count++;
	return now;
}

static s64 replicated(struct plog_unstable *u, s64 now, s64 hw)
{
	u32 i = 0;

	while (i < u->count && u->waiting[i].marker < hw)
		now = u->waiting[i++].next;
	if (i) {
		u->count -= i;
		memmove(u->waiting, u->waiting + i, u->count * sizeof(u->waiting[0]));
	}
	return now;
}

/* Only where the high watermark is behind does an end have to wait. */
static int need_waiting(struct plog_partition *p)
{
	if (p->unstable || !(p->config.flags & PLOG_STATE_REPLICATED))
		return 0;
	p->unstable = kzalloc(sizeof(*p->unstable), GFP_KERNEL_ACCOUNT);
	return p->unstable ? 0 : -ENOMEM;
}

int plog_unstable_admit(struct plog_partition *p, s64 value, s64 first)
{
	lockdep_assert_held(&p->lock);
	if (value > first || value < PLOG_UNSTABLE_HERE)
		return -EINVAL;
	return need_waiting(p);
}

s64 plog_unstable_latest(const struct plog_partition *p)
{
	lockdep_assert_held(&p->lock);
	return latest(p->unstable, p->pub.first_unstable);
}

void plog_unstable_set(struct plog_partition *p, s64 value, s64 marker)
{
	s64 hw = p->pub.high_watermark;

	lockdep_assert_held(&p->lock);
	if (!(p->config.flags & PLOG_STATE_REPLICATED))
		hw = S64_MAX;
	WRITE_ONCE(p->pub.first_unstable,
		   move(p->unstable, p->pub.first_unstable, hw, value, marker));
}

void plog_unstable_replicated(struct plog_partition *p)
{
	lockdep_assert_held(&p->lock);
	if (p->unstable && p->unstable->count)
		WRITE_ONCE(p->pub.first_unstable,
			   replicated(p->unstable, p->pub.first_unstable,
				      p->pub.high_watermark));
}

int plog_partition_set_unstable(struct plog_partition *p, const struct plog_fence *f, s64 *offset)
{
	s64 value = *offset < 0 ? S64_MAX : *offset;
	int err = plog_begin(p, f);

	if (err)
		return err;
	if (*offset < -1 || (*offset >= 0 && *offset > p->pub.log_end))
		err = -ERANGE;
	else
		err = need_waiting(p);
	if (!err) {
		plog_publish_begin(p);
		/* it was decided with all before the log end in view, replicated or not */
		plog_unstable_set(p, value, p->pub.log_end - 1);
		plog_publish_end(p);
		spin_lock(&p->point_lock);
		p->settled.offset = min_t(s64, p->settled.offset, value);
		p->opened = min_t(s64, p->opened, value);
		spin_unlock(&p->point_lock);
		*offset = p->pub.first_unstable == S64_MAX ? -1 : p->pub.first_unstable;
	}
	mutex_unlock(&p->lock);
	/* who reads committed records waits for this, with the log end where it was */
	if (!err)
		plog_wake(p);
	return err;
}

/* ---- looking at the log ---- */

/* Call @fn for the batches of a segment from @from on, as long as it returns 0. */
static int walk_segment(struct plog_partition *p, struct plog_segment *seg, s64 from,
			int (*fn)(void *arg, const struct plog_batch *b), void *arg)
{
	struct plog_cursor cur;
	u8 *window;
	int ret;

	window = kmalloc(PLOG_RECORD_WINDOW, GFP_KERNEL);
	if (!window)
		return -ENOMEM;
	ret = plog_segment_use(seg, p->dir);
	if (ret)
		goto out_free;
	plog_cursor_init(&cur, seg, READ_ONCE(seg->end), READ_ONCE(seg->cut_gen), window);
	ret = plog_segment_seek(seg, &cur, from);
	while (ret > 0) {
		ret = fn(arg, &cur.batch);
		if (ret)
			break;
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		cond_resched();
		ret = plog_cursor_next(&cur);
	}
	plog_segment_unuse(seg);
out_free:
	kfree(window);
	return ret == -EBADMSG ? -EIO : ret;
}

/*
 * struct opened - a transaction that a scan has met
 * struct scan - what it knows
 * @hold: of what did not fit into @open
 */
struct opened {
	s64 producer;
	s64 first;
};

struct scan {
	struct opened *open;
	u32 count;
	u32 room;
	s64 hold;
	s64 hw;
	s64 now;
	struct plog_unstable *unstable;
	struct plog_settled *found;
};

static int open_one(struct scan *s, const struct plog_batch *b)
{
	struct opened *more;
	u32 i, room;

	for (i = 0; i < s->count; i++)
		if (s->open[i].producer == b->producer_id)
			return 0;
	if (s->count == OPEN_MAX) {
		s->hold = min_t(s64, s->hold, b->base_offset);
		return 0;
	}
	if (s->count == s->room) {
		room = s->room ? 2 * s->room : 16;
		more = kvmalloc(room * sizeof(*more), GFP_KERNEL);
		if (!more)
			return -ENOMEM;
		if (s->count)
			memcpy(more, s->open, s->count * sizeof(*more));
		kvfree(s->open);
		s->open = more;
		s->room = room;
	}
	s->open[s->count].producer = b->producer_id;
	s->open[s->count].first = b->base_offset;
	s->count++;
	return 0;
}

static void close_one(struct scan *s, s64 producer)
{
	u32 i;

	for (i = 0; i < s->count; i++) {
		if (s->open[i].producer == producer) {
			s->open[i] = s->open[--s->count];
			return;
		}
	}
}

static s64 first_open(const struct scan *s)
{
	s64 first = s->hold;
	u32 i;

	for (i = 0; i < s->count; i++)
		first = min_t(s64, first, s->open[i].first);
	return first;
}

static int scan_batch(void *arg, const struct plog_batch *b)
{
	struct scan *s = arg;
	s64 last = plog_batch_last_offset(b);
	int err;

	if (b->producer_id < 0)
		return 0;
	s->found->last_producer = last;
	if (b->attributes & PLOG_ATTR_CONTROL) {
		s->found->last_marker = last;
		close_one(s, b->producer_id);
	} else if (b->attributes & PLOG_ATTR_TRANSACTIONAL) {
		err = open_one(s, b);
		if (err)
			return err;
	} else {
		return 0;
	}
	s->now = move(s->unstable, s->now, s->hw, first_open(s), last);
	return 0;
}

struct look_for {
	s64 last;
	bool there;
};

static int look_at(void *arg, const struct plog_batch *b)
{
	struct look_for *l = arg;

	l->there = b->producer_id >= 0 && plog_batch_last_offset(b) == l->last;
	return 1;
}

/*
 * The last producer below the scan, if none was met in it: as it was @noted, unless
 * that batch was compacted away and nobody could note any more which one is the
 * last now.
 */
static int find_last_producer(struct plog_partition *p, const struct plog_table *table, s64 from,
			      s64 noted, s64 *last)
{
	struct look_for l = { .last = noted };
	int ret;

	if (noted < 0 || *last >= from || !table->count)
		return 0;
	if (noted < from) {
		ret = walk_segment(p, table->seg[plog_table_find(table, noted)], noted, look_at,
				   &l);
		if (ret < 0 || l.there)
			return min_t(int, ret, 0);
	}
	return plog_unstable_last_producer(p, table, min_t(s64, from, noted), last);
}

int plog_unstable_scan(struct plog_partition *p, const struct plog_table *table, s64 hw,
		       s64 log_end)
{
	struct plog_settled *saved = &p->saved.settled, found = *saved;
	struct scan s = { .hold = S64_MAX, .hw = hw, .now = S64_MAX, .found = &found };
	s64 from = saved->offset;
	int err = 0;
	u32 i;

	/* what was on stable storage is gone: nothing that was noted holds */
	if (log_end < from)
		from = 0;
	if (log_end > hw) {
		err = need_waiting(p);
		if (err)
			return err;
		s.unstable = p->unstable;
	}
	if (found.last_producer >= from)
		found.last_producer = -1;
	/* one below the scan may be the last, though the last producer is found in there */
	found.last_marker = min_t(s64, found.last_marker, from - 1);
	for (i = 0; !err && i < table->count; i++) {
		if (READ_ONCE(p->abandoned)) {
			err = -ECANCELED;
			break;
		}
		if (i + 1 < table->count && table->seg[i + 1]->base <= from)
			continue;
		err = walk_segment(p, table->seg[i], from, scan_batch, &s);
	}
	kvfree(s.open);
	if (!err)
		err = find_last_producer(p, table, from, saved->last_producer,
					 &found.last_producer);
	if (err)
		return err;
	/* no marker is without a producer id */
	found.last_marker = min_t(s64, found.last_marker, found.last_producer);
	found.first_unstable = s.now;
	found.offset = min_t(s64, from, s.now);
	*saved = found;
	return 0;
}

/* ---- truncation ---- */

struct last {
	s64 below;
	s64 producer;
};

static int note_last(void *arg, const struct plog_batch *b)
{
	struct last *l = arg;

	if (b->base_offset >= l->below)
		return 1;
	if (b->producer_id >= 0)
		l->producer = plog_batch_last_offset(b);
	return 0;
}

int plog_unstable_last_producer(struct plog_partition *p, const struct plog_table *table,
				s64 below, s64 *last)
{
	struct last l = { .below = below, .producer = -1 };
	u32 i = table->count;
	int err = 0;

	while (i-- > 0 && err >= 0 && l.producer < 0)
		if (table->seg[i]->base < below)
			err = walk_segment(p, table->seg[i], table->seg[i]->base, note_last, &l);
	*last = l.producer;
	return min_t(int, err, 0);
}

int plog_unstable_plan_cut(struct plog_partition *p, s64 offset, struct plog_settled *after)
{
	struct plog_unstable *u = p->unstable;
	s64 last = p->pub.first_unstable;
	u32 i;
	int err;

	lockdep_assert_held(&p->lock);
	after->last_producer = p->pub.last_producer;
	if (after->last_producer >= offset) {
		err = plog_unstable_last_producer(p, plog_table(p), offset,
						  &after->last_producer);
		if (err)
			return err;
	}
	/* no marker is without a producer id */
	after->last_marker = min_t(s64, p->pub.last_marker, after->last_producer);
	after->first_unstable = last;
	for (i = 0; u && i < u->count && u->waiting[i].marker < offset; i++)
		last = u->waiting[i].next;
	if (!i)
		after->first_unstable = last >= offset ? S64_MAX : last;
	/*
	 * Ends of transactions that counted already: what they ended is open
	 * again, from where on nobody knows but who reads the log from its start.
	 */
	if (offset < p->pub.high_watermark && p->pub.last_marker >= offset)
		after->first_unstable = min_t(s64, after->first_unstable, p->pub.log_start);
	after->offset = min_t(s64, offset, after->first_unstable);
	return 0;
}

void plog_unstable_cut(struct plog_partition *p, s64 offset, const struct plog_settled *after)
{
	struct plog_unstable *u = p->unstable;

	lockdep_assert_held(&p->lock);
	if (u) {
		while (u->count && u->waiting[u->count - 1].marker >= offset)
			u->count--;
		if (u->count && u->waiting[u->count - 1].next >= offset)
			u->waiting[u->count - 1].next = S64_MAX;
	}
	WRITE_ONCE(p->pub.first_unstable, after->first_unstable);
	WRITE_ONCE(p->pub.last_producer, after->last_producer);
	WRITE_ONCE(p->pub.last_marker, after->last_marker);
}
