// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The life of an append, and the rolls it causes.
 *
 * A batch becomes one when its header is written, after its payload was
 * written and found right; until then its first 61 bytes are a hole.  Recovery
 * stops at the first bytes that are no header and never looks behind them, so
 * that a payload that itself looks like a batch is never found.
 */
#define pr_fmt(fmt) "plog: " fmt

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "compat/crc32c.h"
#include "engine.h"
#include "event.h"

/*
 * struct pending - an append on its way
 * @raw: the first batch's header, copied once, as it will be written
 * @b: the same as it came, and, if @must_check, @sum its CRC register
 * @size: bytes of all batches
 * @first, @last: offsets, of replica batches from the start
 *
 * The caller's memory may change under our hands: nothing but @raw is believed
 * until it was read again from the file.
 */
struct pending {
	u8 raw[PLOG_BATCH_HEADER];
	struct plog_batch b;
	u32 sum;
	u64 size;
	s64 first;
	s64 last;
	s64 max_timestamp;
	u64 records;
	u32 batches;
	bool must_check;	/* CRC over the file */
	bool must_iterate;	/* and the records */
	bool keyless;
	s64 log_append_time;
};

static u32 header_register(const u8 *raw)
{
	return crc32c(~0u, raw + PLOG_BATCH_CRC_START, PLOG_BATCH_HEADER - PLOG_BATCH_CRC_START);
}

/* Copy and decode the next header of @it, and step over its batch. */
static int next_header(struct iov_iter *it, u8 *raw, struct plog_batch *b)
{
	size_t left = iov_iter_count(it);
	int err;

	if (left < PLOG_BATCH_HEADER || !copy_from_iter_full(raw, PLOG_BATCH_HEADER, it))
		return -EINVAL;
	err = plog_batch_decode(raw, b);
	if (err)
		return err;
	if (b->size > left)
		return -EINVAL;
	iov_iter_advance(it, b->size - PLOG_BATCH_HEADER);
	return 0;
}

/* Add a batch to an append whose batches keep their offsets; those must rise. */
static int add_replica(struct pending *a, const struct plog_batch *b)
{
	if (b->base_offset < 0 || (a->batches && b->base_offset <= a->last))
		return -EINVAL;
	if (!a->batches) {
		a->first = b->base_offset;
		a->max_timestamp = -1;
	}
	if (__builtin_add_overflow(b->base_offset, (s64)b->last_offset_delta, &a->last) ||
	    a->last == S64_MAX || a->last - a->first > INT_MAX)
		return -EOVERFLOW;
	a->max_timestamp = max_t(s64, a->max_timestamp, b->max_timestamp);
	a->records += b->count;
	a->batches++;
	return 0;
}

static int prepare_replica(struct pending *a, struct iov_iter it)
{
	u8 raw[PLOG_BATCH_HEADER];
	struct plog_batch b;
	int err = 0;

	while (!err && iov_iter_count(&it)) {
		err = next_header(&it, raw, &b);
		if (!err)
			err = add_replica(a, &b);
	}
	return err;
}

/* What can be checked without the mutex. */
static noinline_for_stack int prepare(struct pending *a, struct plog_append_args *args)
{
	bool daemon = args->flags & PLOG_APPEND_DAEMON;
	struct plog_record_summary sum;
	struct plog_source src;
	struct iov_iter all;
	int err;

	memset(a, 0, sizeof(*a));
	if (args->flags & ~(PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA | PLOG_APPEND_SYNC) ||
	    (args->flags & PLOG_APPEND_REPLICA && (!daemon || args->raw)))
		return -EINVAL;
	a->size = args->raw ? args->size : iov_iter_count(args->from);
	if (a->size < PLOG_BATCH_HEADER || a->size > INT_MAX)
		return a->size ? (a->size > INT_MAX ? -EMSGSIZE : -EINVAL) : -EINVAL;
	if (args->raw) {
		memcpy(a->raw, args->raw, PLOG_BATCH_HEADER);
	} else {
		all = *args->from;
		if (!copy_from_iter_full(a->raw, PLOG_BATCH_HEADER, args->from))
			return -EFAULT;
	}
	err = plog_batch_decode(a->raw, &a->b);
	if (err)
		return err;
	a->keyless = args->keyless;
	a->must_check = !args->checked;
	if (a->must_check && !args->raw)
		a->sum = header_register(a->raw);
	a->must_iterate = !args->checked && !daemon;
	if (args->flags & PLOG_APPEND_REPLICA)
		return prepare_replica(a, all);
	if (a->b.size != a->size)
		return -EINVAL;
	a->batches = 1;
	a->records = a->b.count;
	a->max_timestamp = a->b.max_timestamp;
	if (!daemon && (a->b.attributes & ~PLOG_ATTR_LOG_APPEND_TIME || a->b.producer_id != -1))
		return -EOPNOTSUPP;
	if (!args->raw || args->checked)
		return 0;
	if (plog_batch_crc(args->raw, args->size) != a->b.crc)
		return -EBADMSG;
	a->must_check = false;
	if (a->must_iterate) {
		plog_source_mem(&src, args->raw, args->size);
		err = plog_record_check(&src, &a->b, &sum);
		if (err)
			return err;
		a->keyless = sum.keyless;
		a->must_iterate = false;
	}
	return 0;
}

/* Is it allowed here and now? Under the append mutex. */
static int admit(struct plog_partition *p, struct pending *a, struct plog_append_args *args)
{
	u32 flags = p->config.flags;
	int err = plog_check_state(p);

	if (err)
		return err;
	if (args->flags & PLOG_APPEND_DAEMON) {
		err = plog_check_fence(p, args->leader_epoch, args->incarnation,
				       args->current_incarnation);
		if (err)
			return err;
	} else if (flags & PLOG_STATE_INTERNAL || (flags & PLOG_STATE_COMPACT && a->keyless)) {
		return -EPERM;
	}
	if (args->flags & PLOG_APPEND_REPLICA)
		return a->first < p->pub.log_end ? -EINVAL : 0;
	if (flags & PLOG_STATE_REPLICATED && !(flags & PLOG_STATE_LEADER))
		return -EROFS;
	if (a->size > p->config.max_message_bytes || a->size > p->config.segment_bytes)
		return -EMSGSIZE;
	a->first = p->pub.log_end;
	if (__builtin_add_overflow(a->first, (s64)a->b.last_offset_delta, &a->last) ||
	    a->last == S64_MAX)
		return -EOVERFLOW;
	return 0;
}

/*
 * Give the batch its place, its epoch and, where the topic says so, its time.
 * The first two are outside of the CRC; for the time the CRC is corrected, not
 * computed again.
 */
static void stamp(struct plog_partition *p, struct pending *a, s64 now)
{
	struct plog_batch b = a->b;
	u32 before;

	b.base_offset = a->first;
	b.leader_epoch = p->pub.leader_epoch;
	a->log_append_time = -1;
	if (p->config.flags & PLOG_STATE_LOG_APPEND_TIME) {
		b.attributes |= PLOG_ATTR_LOG_APPEND_TIME;
		b.max_timestamp = now;
		a->log_append_time = now;
	} else {
		b.attributes &= ~PLOG_ATTR_LOG_APPEND_TIME;
	}
	a->max_timestamp = b.max_timestamp;
	if (b.attributes != a->b.attributes || b.max_timestamp != a->b.max_timestamp) {
		before = a->must_check ? a->sum : header_register(a->raw);
		plog_batch_encode(&b, a->raw);
		b.crc ^= plog_batch_crc_shift(before ^ header_register(a->raw),
					      b.size - PLOG_BATCH_HEADER);
	}
	plog_batch_encode(&b, a->raw);
}

/* ---- rolling ---- */

static bool must_roll(struct plog_partition *p, struct plog_segment *seg, struct pending *a,
		      s64 now)
{
	const struct plog_config *c = &p->config;
	s64 waited;

	if (!seg->end)
		return a->last - seg->base > INT_MAX;
	if (seg->end + a->size > c->segment_bytes || a->last - seg->base > INT_MAX)
		return true;
	/* the time index keeps room for its last entry, at the roll */
	if (seg->index.e.count >= c->index_bytes / PLOG_INDEX_ENTRY ||
	    seg->timeindex.e.count + 1 >= c->index_bytes / PLOG_TIMEINDEX_ENTRY)
		return true;
	/*
	 * Records' time where they have one, as Kafka does; else the clock.
	 * Not beyond the clock, or a writer whose timestamps run ahead would
	 * get a segment for each of its batches.
	 */
	if (seg->first_timestamp < 0)
		waited = now - seg->created;
	else if (__builtin_sub_overflow(min_t(s64, a->max_timestamp, now), seg->first_timestamp,
					&waited))
		return false;
	return waited > 0 && (u64)waited > c->segment_ms;
}

void plog_roll_work(struct work_struct *work)
{
	struct plog_roll *roll = container_of(work, struct plog_roll, work);
	struct plog_partition *p = container_of(roll, struct plog_partition, roll);
	struct plog_segment *seg;
	int err = -ENOMEM;

	seg = plog_segment_alloc(roll->base);
	if (!seg)
		goto out;
	seg->index_interval = roll->index_interval;
	roll->table = plog_table_alloc(roll->count);
	if (!roll->table)
		goto out_put;
	err = plog_segment_create(seg, p->dir, plog_now_ms(), 0);
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
	WRITE_ONCE(sealed->active, false);
	WRITE_ONCE(seg->active, true);
	seg->held = true;
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
	WRITE_ONCE(p->leftovers, true);
	kvfree(roll->table);
	plog_segment_unuse(seg);
	plog_segment_retire(seg);
	plog_segment_put(seg);
	return 0;
}

int plog_active_renew(struct plog_partition *p, struct plog_segment *seg)
{
	int err;

	lockdep_assert_held(&p->lock);
	if (seg->active)
		return 0;
	err = plog_segment_activate(seg, p->dir);
	if (err)
		return err;
	if (seg->held)
		plog_segment_unuse(seg);	/* the table was a user already */
	seg->held = true;
	return 0;
}

/* The segment to write to; rolls if it must. */
static int active_segment(struct plog_partition *p, struct pending *a, s64 now,
			  struct plog_segment **active)
{
	struct plog_segment *seg;
	int err = plog_roll_settle(p, -1, true);

	if (err)
		return err;
	seg = plog_active(p);
	err = plog_active_renew(p, seg);
	if (err)
		return err;
	if (must_roll(p, seg, a, now)) {
		/* recovery would not believe in more, and its list has an end */
		if (plog_table(p)->count >= PLOG_SEGMENTS_MAX)
			return -ENOSPC;
		roll_start(p, a->first);
		err = plog_roll_settle(p, a->first, true);
		if (err)
			return err;
		seg = plog_active(p);
		if (a->last - seg->base > INT_MAX)
			return -EOVERFLOW;
	}
	*active = seg;
	return 0;
}

/* ---- writing ---- */

static int check_crc(struct plog_segment *seg, u64 pos, const struct plog_batch *b, u32 sum)
{
	int err = plog_file_crc32c(seg->log, pos + PLOG_BATCH_HEADER,
				   b->size - PLOG_BATCH_HEADER, &sum);

	if (err)
		return err;
	return ~sum == b->crc ? 0 : -EBADMSG;
}

/* Read the header at @pos of the file; it must end at or before @end. */
static int file_header(struct plog_segment *seg, u64 pos, u64 end, u8 *raw, struct plog_batch *b)
{
	ssize_t n;
	int err;

	if (end - pos < PLOG_BATCH_HEADER)
		return -EINVAL;
	n = plog_file_read(seg->log, raw, PLOG_BATCH_HEADER, pos);
	if (n != PLOG_BATCH_HEADER)
		return n < 0 ? n : -EIO;
	err = plog_batch_decode(raw, b);
	if (err)
		return err;
	return b->size <= end - pos ? 0 : -EINVAL;
}

/* The batches behind the first, as they lie in the file: what was announced? */
static int check_replica(struct plog_segment *seg, struct pending *a, u64 pos)
{
	struct pending seen = { .b = a->b };
	u64 end = pos + a->size;
	u8 raw[PLOG_BATCH_HEADER];
	struct plog_batch b;
	int err;

	err = add_replica(&seen, &a->b);
	for (pos += a->b.size; !err && pos < end; pos += b.size) {
		err = file_header(seg, pos, end, raw, &b);
		if (!err)
			err = add_replica(&seen, &b);
		if (!err)
			err = check_crc(seg, pos, &b, header_register(raw));
	}
	if (err)
		return err;
	if (seen.last != a->last || seen.batches != a->batches)
		return -EINVAL;
	a->max_timestamp = seen.max_timestamp;
	a->records = seen.records;
	return 0;
}

/* Is what lies in the file behind the header what the header says? */
static noinline_for_stack int check_file(struct plog_segment *seg, struct pending *a, u64 pos)
{
	struct plog_record_summary sum;
	struct plog_source src;
	u8 *window;
	int err;

	err = check_crc(seg, pos, &a->b, a->sum);
	if (!err && a->batches > 1)
		err = check_replica(seg, a, pos);
	if (err || !a->must_iterate)
		return err;
	window = kmalloc(PLOG_RECORD_WINDOW, GFP_KERNEL);
	if (!window)
		return -ENOMEM;
	plog_source_file(&src, seg->log, pos, a->size, window);
	err = plog_record_check(&src, &a->b, &sum);
	a->keyless = !err && sum.keyless;
	kfree(window);
	return err;
}

static int write_batch(struct plog_partition *p, struct plog_segment *seg, struct pending *a,
		       struct plog_append_args *args)
{
	u64 pos = seg->end;
	int err = 0;

	if (args->raw) {
		/*
		 * Found right before the mutex was taken: nothing can refuse it
		 * now but a write that fails, and then it is not whole.
		 */
		memcpy(args->raw, a->raw, PLOG_BATCH_HEADER);
		err = plog_file_write(seg->log, args->raw, a->size, pos);
		goto out;
	}
	if (a->size > PLOG_BATCH_HEADER)
		err = plog_file_write_iter(seg->log, args->from, pos + PLOG_BATCH_HEADER);
	if (!err && a->must_check)
		err = check_file(seg, a, pos);
	if (!err && p->config.flags & PLOG_STATE_COMPACT && a->keyless &&
	    !(args->flags & PLOG_APPEND_DAEMON))
		err = -EPERM;
	if (!err)
		err = plog_file_write(seg->log, a->raw, PLOG_BATCH_HEADER, pos);
out:
	if (err && plog_file_size(seg->log) != pos && plog_file_truncate(seg->log, pos))
		plog_fence(p, err, "a failed append could not be cut off");
	return err;
}

static void publish(struct plog_partition *p, struct plog_segment *seg, struct pending *a)
{
	u64 end = seg->end + a->size;
	s64 log_end = a->last + 1;

	WRITE_ONCE(seg->end, end);
	plog_publish_begin(p);
	WRITE_ONCE(p->pub.active_end, end);
	WRITE_ONCE(p->pub.bytes, p->pub.bytes + a->size);
	if (a->max_timestamp > p->pub.max_timestamp)
		WRITE_ONCE(p->pub.max_timestamp, a->max_timestamp);
	smp_store_release(&p->pub.log_end, log_end);
	if (!(p->config.flags & PLOG_STATE_REPLICATED))
		smp_store_release(&p->pub.high_watermark, log_end);
	plog_publish_end(p);
	plog_event_publish(p->name, log_end, p->pub.high_watermark);
}

static void note(struct plog_segment *seg, struct pending *a, u64 pos)
{
	u8 raw[PLOG_BATCH_HEADER];
	u64 end = pos + a->size;
	struct plog_batch b;

	if (a->batches == 1) {
		plog_segment_note(seg, a->last, a->max_timestamp, pos);
		return;
	}
	for (; pos < end && !file_header(seg, pos, end, raw, &b); pos += b.size)
		plog_segment_note(seg, plog_batch_last_offset(&b), b.max_timestamp, pos);
}

/* A leader's compacted log has gaps: recovery must not take them for damage. */
static int note_gap(struct plog_partition *p)
{
	bool was;

	mutex_lock(&p->state_lock);
	was = p->saved.dense;
	p->saved.dense = false;
	mutex_unlock(&p->state_lock);
	return was ? plog_save(p, false, true) : 0;
}

static int append_locked(struct plog_partition *p, struct pending *a,
			 struct plog_append_args *args)
{
	struct plog_segment *seg;
	s64 now = plog_now_ms();
	u64 pos;
	int err;

	err = admit(p, a, args);
	if (err)
		return err;
	if (!(args->flags & PLOG_APPEND_REPLICA))
		stamp(p, a, now);
	else
		a->log_append_time = -1;
	if (p->clean_on_disk) {
		/*
		 * Need not be durable: the clean mark names the size of the
		 * active segment, so that it is void once the log has grown.
		 */
		err = plog_save(p, false, false);
		if (err)
			return err;
		p->clean_on_disk = false;
	}
	if (args->flags & PLOG_APPEND_REPLICA && a->first > p->pub.log_end) {
		err = note_gap(p);
		if (err)
			return err;
	}
	err = active_segment(p, a, now, &seg);
	if (err)
		return err;
	pos = seg->end;
	err = write_batch(p, seg, a, args);
	if (err)
		return err;
	publish(p, seg, a);
	note(seg, a, pos);
	args->base_offset = a->first;
	args->last_offset = a->last;
	args->log_append_time = a->log_append_time;
	args->log_start = p->pub.log_start;
	return 0;
}

int plog_partition_append(struct plog_partition *p, struct plog_append_args *args)
{
	struct pending a;
	int err = plog_check_state(p);

	if (!err)
		err = prepare(&a, args);
	if (!err && mutex_lock_killable(&p->lock))
		err = -EINTR;
	if (!err) {
		err = append_locked(p, &a, args);
		mutex_unlock(&p->lock);
	}
	if (err) {
		atomic64_inc(&p->count.append_refused);
		plog_event_append(p->name, -1, -1, 0, err);
		return err;
	}
	plog_event_append(p->name, a.first, a.last, a.size, 0);
	atomic64_add(a.batches, &p->count.appends);
	atomic64_add(a.records, &p->count.records);
	atomic64_add(a.size, &p->count.append_bytes);
	plog_wake(p);
	if (args->flags & PLOG_APPEND_SYNC)
		err = plog_sync_log(p, true);
	return err;
}
