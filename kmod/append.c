// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The life of an append.
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
 * @last_epoch: of replica batches: that of the last one; they do not fall
 * @epochs: the list with this append's, or NULL if that is the one there is
 * @may_restart: sync_lock is held, which keeps others off the table
 * @restart: the log is empty, and the first batch begins before its start
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
	s32 last_epoch;
	bool may_restart;
	bool restart;
	struct plog_epochs *epochs;
	bool must_check;	/* CRC over the file */
	bool must_iterate;	/* and the records */
	bool keyless;
	s64 log_append_time;
	s64 transaction;	/* offset of the first batch of one, markers aside; -1: none */
	s64 producer;		/* last offset of the last batch with a producer id, -1 */
	s64 marker;		/* of the end of a transaction, -1 */
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

/* What a batch with these offsets says of producers and transactions. */
static void note_producer(struct pending *a, const struct plog_batch *b, s64 first, s64 last)
{
	if (b->producer_id < 0)
		return;
	a->producer = last;
	if (b->attributes & PLOG_ATTR_CONTROL)
		a->marker = last;
	else if (b->attributes & PLOG_ATTR_TRANSACTIONAL && a->transaction < 0)
		a->transaction = first;
}

/* Add a batch to an append whose batches keep offsets and epochs; neither falls. */
static int add_replica(struct pending *a, const struct plog_batch *b)
{
	if (b->base_offset < 0 ||
	    (a->batches && (b->base_offset <= a->last || b->leader_epoch < a->last_epoch)))
		return -EINVAL;
	if (!a->batches) {
		a->first = b->base_offset;
		a->max_timestamp = -1;
	}
	if (__builtin_add_overflow(b->base_offset, (s64)b->last_offset_delta, &a->last) ||
	    a->last == S64_MAX || a->last - a->first > INT_MAX)
		return -EOVERFLOW;
	if (b->count)
		a->max_timestamp = max_t(s64, a->max_timestamp, b->max_timestamp);
	a->last_epoch = b->leader_epoch;
	a->records += b->count;
	a->batches++;
	note_producer(a, b, b->base_offset, a->last);
	return 0;
}

/* The first batch is @a->b, whatever its header says by now; @it: what follows that. */
static int prepare_replica(struct pending *a, struct iov_iter it)
{
	u8 raw[PLOG_BATCH_HEADER];
	struct plog_batch b;
	int err;

	if (a->b.size > a->size)
		return -EINVAL;
	iov_iter_advance(&it, a->b.size - PLOG_BATCH_HEADER);
	err = add_replica(a, &a->b);
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
	int err;

	memset(a, 0, sizeof(*a));
	a->transaction = -1;
	a->producer = -1;
	a->marker = -1;
	if (args->flags & ~(PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA | PLOG_APPEND_SYNC |
			    PLOG_APPEND_UNSTABLE | PLOG_APPEND_ACKS_ALL) ||
	    (args->flags & (PLOG_APPEND_REPLICA | PLOG_APPEND_UNSTABLE) && !daemon) ||
	    (args->flags & PLOG_APPEND_REPLICA &&
	     (args->raw || args->flags & PLOG_APPEND_ACKS_ALL)))
		return -EINVAL;
	a->size = args->raw ? args->size : iov_iter_count(args->from);
	if (a->size < PLOG_BATCH_HEADER || a->size > INT_MAX)
		return a->size ? (a->size > INT_MAX ? -EMSGSIZE : -EINVAL) : -EINVAL;
	if (args->raw) {
		memcpy(a->raw, args->raw, PLOG_BATCH_HEADER);
	} else if (!copy_from_iter_full(a->raw, PLOG_BATCH_HEADER, args->from)) {
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
		return prepare_replica(a, *args->from);
	if (a->b.size != a->size || !a->b.count)
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

/* What the append says of transactions, or what the log takes it to say. */
static int admit_unstable(struct plog_partition *p, const struct pending *a,
			  const struct plog_append_args *args)
{
	if (args->flags & PLOG_APPEND_UNSTABLE) {
		/* nothing is open, but what is just appended */
		if (args->first_unstable == PLOG_UNSTABLE_NONE && a->transaction >= 0 &&
		    a->marker < a->transaction)
			return -EINVAL;
		return plog_unstable_admit(p, args->first_unstable, a->first);
	}
	return a->transaction < 0 ? 0 : plog_unstable_admit(p, PLOG_UNSTABLE_HERE, a->first);
}

static void publish_unstable(struct plog_partition *p, const struct pending *a,
			     const struct plog_append_args *args)
{
	s64 value = plog_unstable_latest(p);

	if (!(args->flags & PLOG_APPEND_UNSTABLE))
		value = min_t(s64, value, a->transaction);
	else if (args->first_unstable == PLOG_UNSTABLE_HERE)
		value = min_t(s64, value, a->first);
	else
		value = args->first_unstable < 0 ? S64_MAX : args->first_unstable;
	plog_unstable_set(p, value, a->last);
}

/*
 * A leader's batches follow what is here, and none is of a later epoch than the
 * caller knows of.  Only a log without a record may begin before its own start:
 * where a leader's log start lies inside a batch, that batch comes whole.
 */
static int admit_replica(struct plog_partition *p, struct pending *a,
			 const struct plog_append_args *args)
{
	if (a->last_epoch > p->pub.leader_epoch)
		return -ESTALE;
	a->restart = a->first < p->pub.log_end;
	if (a->restart && (!a->may_restart || p->pub.log_start != p->pub.log_end ||
			   a->last < p->pub.log_end))
		return -EINVAL;
	/* what is in a log that begins anew counts no more */
	if (!a->restart && a->b.leader_epoch < plog_epoch_last(plog_epoch_list(p)))
		return -EINVAL;
	return admit_unstable(p, a, args);
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
		return admit_replica(p, a, args);
	if (!plog_leads(flags))
		return -EROFS;
	if (plog_lease_over(p))
		return -EKEYEXPIRED;
	if (args->flags & PLOG_APPEND_ACKS_ALL && flags & PLOG_STATE_REPLICATED &&
	    p->below_min_isr)
		return -EHOSTUNREACH;
	if (a->size > p->config.max_message_bytes || a->size > p->config.segment_bytes)
		return -EMSGSIZE;
	a->first = p->pub.log_end;
	if (__builtin_add_overflow(a->first, (s64)a->b.last_offset_delta, &a->last) ||
	    a->last == S64_MAX)
		return -EOVERFLOW;
	note_producer(a, &a->b, a->first, a->last);
	return admit_unstable(p, a, args);
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
	if (b.attributes == a->b.attributes && b.max_timestamp == a->b.max_timestamp) {
		plog_batch_place(a->raw, b.base_offset, b.leader_epoch);
		return;
	}
	before = a->must_check ? a->sum : header_register(a->raw);
	plog_batch_encode(&b, a->raw);
	plog_batch_seal(a->raw, b.crc ^ plog_batch_crc_shift(before ^ header_register(a->raw),
							     b.size - PLOG_BATCH_HEADER));
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
	if (seg->index.e.count >= seg->index_bytes / PLOG_INDEX_ENTRY ||
	    seg->timeindex.e.count + 1 >= seg->index_bytes / PLOG_TIMEINDEX_ENTRY)
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
	return waited > 0 && (u64)waited > c->segment_ms - min_t(u64, seg->jitter, c->segment_ms);
}

/*
 * A segment begins where the one before ends, also where a leader's compacted log
 * has a gap there: after a power cut that is how recovery knows that the one
 * before is whole.  But for a gap that an index cannot express.
 */
static int roll_for(struct plog_partition *p, const struct pending *a)
{
	s64 base = p->pub.log_end;
	int err = 0;

	if (a->last - base > INT_MAX) {
		base = a->first;
		if (base > p->pub.log_end)
			err = plog_note_gap(p);
	}
	return err ? err : plog_roll_to(p, base, true);
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
		err = roll_for(p, a);
		if (err == -EBUSY && seg->end + a->size <= INT_MAX &&
		    a->last - seg->base <= INT_MAX)
			err = 0;	/* no harm in one batch more: the next one rolls */
		if (err)
			return err == -EBUSY ? -EAGAIN : err;
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
	struct pending seen = { .b = a->b, .transaction = -1, .producer = -1, .marker = -1 };
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
	if (seen.last != a->last || seen.batches != a->batches ||
	    seen.transaction != a->transaction || seen.last_epoch != a->last_epoch)
		return -EINVAL;
	a->max_timestamp = seen.max_timestamp;
	a->records = seen.records;
	a->producer = seen.producer;
	a->marker = seen.marker;
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
	plog_source_pages(&src, seg->log, pos, a->size, window);
	err = plog_record_check(&src, &a->b, &sum);
	plog_source_done(&src);
	a->keyless = !err && sum.keyless;
	kfree(window);
	return err;
}

/* ---- leader epochs ---- */

/* The list with what this leader appends in its epoch from now on. */
static int own_epoch(struct plog_partition *p, struct pending *a)
{
	struct plog_epochs *list = plog_epoch_list(p);
	s32 epoch = p->pub.leader_epoch;
	struct plog_epoch_builder b;
	int err;

	if (plog_epoch_last(list) == epoch || epoch < 0)
		return 0;
	err = plog_epoch_begin(&b, list);
	if (!err)
		err = plog_epoch_assign(&b, epoch, a->first);
	if (err)
		plog_epoch_drop(&b);
	else
		a->epochs = plog_epoch_finish(&b);
	return err;
}

/* The list with the epochs of replica batches, all but the first one's header in the file. */
static int replica_epochs(struct plog_partition *p, struct plog_segment *seg, struct pending *a,
			  u64 pos)
{
	struct plog_epochs *list = plog_epoch_list(p);
	struct plog_batch batch = a->b;
	u64 end = pos + a->size;
	struct plog_epoch_builder b;
	u8 raw[PLOG_BATCH_HEADER];
	int err;

	if (a->last_epoch < 0 || (!a->restart && a->last_epoch == plog_epoch_last(list)))
		return 0;
	err = plog_epoch_begin(&b, a->restart ? NULL : list);
	while (!err) {
		if (batch.leader_epoch >= 0)
			err = plog_epoch_assign(&b, batch.leader_epoch, batch.base_offset);
		pos += batch.size;
		if (err || pos >= end)
			break;
		err = file_header(seg, pos, end, raw, &batch);
	}
	if (err)
		plog_epoch_drop(&b);
	else
		a->epochs = plog_epoch_finish(&b);
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
		goto out_lease;
	}
	if (a->size > PLOG_BATCH_HEADER)
		err = plog_file_write_iter(seg->log, args->from, pos + PLOG_BATCH_HEADER);
	if (!err && a->must_check)
		err = check_file(seg, a, pos);
	if (!err && p->config.flags & PLOG_STATE_COMPACT && a->keyless &&
	    !(args->flags & PLOG_APPEND_DAEMON))
		err = -EPERM;
	if (!err && args->flags & PLOG_APPEND_REPLICA)
		err = replica_epochs(p, seg, a, pos);
	/* it may have run out while the bytes were copied: no header then */
	if (!err && !(args->flags & PLOG_APPEND_REPLICA) && plog_lease_over(p))
		err = -EKEYEXPIRED;
	if (!err)
		err = plog_file_write(seg->log, a->raw, PLOG_BATCH_HEADER, pos);
out_lease:
	/* the last look before others see it, who may have another leader by now */
	if (!err && !(args->flags & PLOG_APPEND_REPLICA) && plog_lease_over(p))
		err = -EKEYEXPIRED;
	if (err && plog_file_size(seg->log) != pos) {
		seg->uncut = true;
		/* killed while the filesystem is frozen, the next append does it */
		plog_active_renew(p, seg);
	}
	return err;
}

static void publish(struct plog_partition *p, struct plog_segment *seg, struct pending *a,
		    const struct plog_append_args *args)
{
	struct plog_epochs *old = NULL;
	s64 log_end = a->last + 1;

	plog_publish_begin(p);
	WRITE_ONCE(p->pub.active_end, seg->end);
	WRITE_ONCE(p->pub.bytes, p->pub.bytes + a->size);
	if (a->max_timestamp > p->pub.max_timestamp)
		WRITE_ONCE(p->pub.max_timestamp, a->max_timestamp);
	if (a->producer >= 0)
		WRITE_ONCE(p->pub.last_producer, a->producer);
	if (a->marker >= 0)
		WRITE_ONCE(p->pub.last_marker, a->marker);
	if (a->transaction >= 0 || args->flags & PLOG_APPEND_UNSTABLE)
		publish_unstable(p, a, args);
	smp_store_release(&p->pub.log_end, log_end);
	if (!(p->config.flags & PLOG_STATE_REPLICATED))
		smp_store_release(&p->pub.high_watermark, log_end);
	if (a->epochs)
		old = plog_epoch_install(p, a->epochs, p->pub.leader_epoch);
	plog_publish_end(p);
	if (a->epochs) {
		/* the headers say it too: the file may follow with the next save */
		plog_epoch_noted(p);
		plog_epoch_free(old);
		a->epochs = NULL;
	}
	plog_event_publish(p->name, log_end, p->pub.high_watermark);
}

/*
 * The segment has it, times and indexes too: who sees the offsets goes by them, and
 * retention would let go what is newer than they say.
 */
static void note(struct plog_segment *seg, struct pending *a)
{
	u64 pos = seg->end, end = pos + a->size;
	u8 raw[PLOG_BATCH_HEADER];
	struct plog_batch b;

	WRITE_ONCE(seg->end, end);
	if (a->batches == 1) {
		plog_segment_note(seg, a->last, a->max_timestamp, pos);
		return;
	}
	for (; pos < end && !file_header(seg, pos, end, raw, &b); pos += b.size)
		plog_segment_note(seg, plog_batch_last_offset(&b),
				  b.count ? b.max_timestamp : -1, pos);
	/* where that failed: whoever opens the segment finds which batch it was */
	if (pos < end && a->max_timestamp > seg->max_timestamp) {
		WRITE_ONCE(seg->max_timestamp, a->max_timestamp);
		seg->max_timestamp_offset = a->last;
	}
}

static int append_locked(struct plog_partition *p, struct pending *a,
			 struct plog_append_args *args)
{
	struct plog_segment *seg;
	s64 now = plog_now_ms();
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
	if (a->restart) {
		err = plog_note_gap(p);
		if (!err)
			err = plog_log_restart(p, a->first, p->pub.log_end);
		if (err)
			return err;
	}
	err = active_segment(p, a, now, &seg);
	if (!err && !(args->flags & PLOG_APPEND_REPLICA))
		err = own_epoch(p, a);
	if (err)
		return err;
	err = plog_file_failed(seg->log);
	if (err) {
		/* on a disk that has stopped writing nothing is answered as written */
		plog_fence(p, err, "writing to the disk failed");
		kvfree(a->epochs);
		return plog_check_state(p);
	}
	err = write_batch(p, seg, a, args);
	if (err) {
		kvfree(a->epochs);
		return err;
	}
	WRITE_ONCE(p->appended, now);
	/* nothing fails from here on */
	note(seg, a);
	publish(p, seg, a, args);
	args->base_offset = a->first;
	args->last_offset = a->last;
	args->log_append_time = a->log_append_time;
	args->log_start = p->pub.log_start;
	args->epoch = p->pub.leader_epoch;
	args->cuts = p->pub.cuts;
	return 0;
}

int plog_partition_append(struct plog_partition *p, struct plog_append_args *args)
{
	struct pending a;
	bool below;
	int err = plog_check_state(p);

	if (!err)
		err = prepare(&a, args);
	/* it may change the table's beginning, like truncations and retention */
	below = !err && args->flags & PLOG_APPEND_REPLICA && a.first < READ_ONCE(p->pub.log_end);
	if (below && mutex_lock_killable(&p->sync_lock)) {
		below = false;
		err = -EINTR;
	}
	if (!err && mutex_lock_killable(&p->lock))
		err = -EINTR;
	if (!err) {
		a.may_restart = below;
		err = append_locked(p, &a, args);
		mutex_unlock(&p->lock);
	}
	if (below)
		mutex_unlock(&p->sync_lock);
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
	/* it was appended, whatever the sync says: one error tells that, and no other does */
	if (args->flags & PLOG_APPEND_SYNC)
		return plog_sync_log(p, true) ? -EIO : 0;
	if (unlikely(READ_ONCE(p->flush_messages) != PLOG_NEVER ||
		     READ_ONCE(p->flush_ms) != PLOG_NEVER))
		return plog_flush_policy(p);
	return 0;
}
