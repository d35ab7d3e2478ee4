// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Record mode: the values of a log, one after the other.
 *
 * The place of the next record is kept, and a few KiB of the log around it, so
 * that reading on costs the same for each record.
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "engine.h"

/* Bytes to pin at once: a pin costs a look-up, and holds the segment. */
#define READER_EXTENT	(1u << 20)

void plog_reader_init(struct plog_reader *r, struct plog_partition *p, enum plog_end end)
{
	memset(r, 0, sizeof(*r));
	plog_partition_get(p);
	r->partition = p;
	r->end = end;
	r->offset = -1;
}

static void drop_extent(struct plog_reader *r)
{
	plog_extent_put(&r->ext);
	r->batch_size = 0;
	r->batch_pos = 0;
}

void plog_reader_release(struct plog_reader *r)
{
	drop_extent(r);
	kfree(r->src.window);
	r->src.window = NULL;
	plog_partition_put(r->partition);
	r->partition = NULL;
}

void plog_reader_seek(struct plog_reader *r, s64 offset)
{
	drop_extent(r);
	r->offset = offset;
}

/* Pin the bytes from the wanted offset on. Return: 0 or an error. */
static int pin(struct plog_reader *r)
{
	struct plog_view view;
	u8 *window = r->src.window;
	int err;

	if (!window) {
		window = kmalloc(PLOG_RECORD_WINDOW, GFP_KERNEL_ACCOUNT);
		if (!window)
			return -ENOMEM;
		r->src.window = window;
	}
	err = plog_partition_locate(r->partition, r->offset, READER_EXTENT, r->end, true, &r->ext,
				    &view);
	if (err)
		return err;
	if (!r->ext.length)
		return -EAGAIN;
	plog_source_file(&r->src, r->ext.segment->log, r->ext.pos, r->ext.length, window);
	r->batch_pos = 0;
	r->batch_size = 0;
	return 0;
}

/* Look at the header of the batch at batch_pos. Return: 1 to read it, 0 to go on, or an error. */
static int open_batch(struct plog_reader *r)
{
	struct plog_batch b;
	const u8 *raw;
	int err;

	raw = plog_source_at(&r->src, r->batch_pos, PLOG_BATCH_HEADER);
	if (IS_ERR(raw))
		return PTR_ERR(raw);
	err = plog_batch_decode(raw, &b);
	if (err || b.size > r->ext.length - r->batch_pos)
		return -EBADMSG;
	if (b.attributes & PLOG_ATTR_CONTROL || !b.count || plog_batch_last_offset(&b) < r->offset) {
		r->offset = max_t(s64, r->offset, plog_batch_last_offset(&b) + 1);
		r->batch_pos += b.size;
		return 0;
	}
	r->offset = max_t(s64, r->offset, b.base_offset);
	if (b.attributes & PLOG_ATTR_CODEC)
		return -EOPNOTSUPP;
	r->batch_size = b.size;
	r->batch_base = b.base_offset;
	r->record_pos = r->batch_pos + PLOG_BATCH_HEADER;
	return 1;
}

/* Find the next record with a value. Return: 1 with @rec, 0 at the batch's end, or an error. */
static int find_record(struct plog_reader *r, struct plog_record *rec)
{
	u32 end = r->batch_pos + r->batch_size;
	s64 offset;
	int err;

	while (r->record_pos < end) {
		/* no record may reach out of its batch */
		r->src.size = end;
		err = plog_record_decode(&r->src, r->record_pos, rec);
		r->src.size = r->ext.length;
		if (err)
			return err;
		if (rec->offset_delta < 0)
			return -EBADMSG;
		offset = r->batch_base + rec->offset_delta;
		if (offset >= r->offset) {
			if (rec->value_len > 0)
				return 1;
			r->offset = offset + 1;
		}
		r->record_pos += rec->size;
	}
	/* compaction may have taken the last records of a batch */
	r->batch_pos = end;
	r->batch_size = 0;
	return 0;
}

static ssize_t copy_value(struct plog_reader *r, const struct plog_record *rec,
			  struct iov_iter *to)
{
	size_t count = iov_iter_count(to);
	const u8 *value;
	ssize_t n;

	if (rec->value_len > count)
		return -EMSGSIZE;
	if (rec->value_len <= PLOG_RECORD_WINDOW) {
		value = plog_source_at(&r->src, rec->value_pos, rec->value_len);
		if (IS_ERR(value))
			return PTR_ERR(value);
		n = copy_to_iter(value, rec->value_len, to);
	} else {
		iov_iter_truncate(to, rec->value_len);
		n = plog_file_read_iter(r->ext.segment->log, to, r->ext.pos + rec->value_pos);
		iov_iter_reexpand(to, count - (rec->value_len - iov_iter_count(to)));
		if (n < 0)
			return n;
	}
	return n == rec->value_len ? n : -EFAULT;
}

static ssize_t next_value(struct plog_reader *r, struct iov_iter *to)
{
	struct plog_record rec;
	ssize_t ret;

	for (;;) {
		if (!r->ext.length) {
			ret = pin(r);
			if (ret)
				return ret;
		}
		if (!r->batch_size) {
			if (r->batch_pos >= r->ext.length) {
				r->offset = max_t(s64, r->offset, r->ext.next_offset);
				drop_extent(r);
				continue;
			}
			ret = open_batch(r);
			if (ret < 0)
				return ret;
			if (!ret)
				continue;
		}
		ret = find_record(r, &rec);
		if (ret < 0)
			return ret;
		if (!ret)
			continue;
		ret = copy_value(r, &rec, to);
		if (ret > 0 && !plog_extent_stale(&r->ext)) {
			r->offset = r->batch_base + rec.offset_delta + 1;
			r->record_pos += rec.size;
		}
		return ret;
	}
}

ssize_t plog_reader_next(struct plog_reader *r, struct iov_iter *to)
{
	s64 log_start = READ_ONCE(r->partition->pub.log_start);
	ssize_t ret;

	if (r->offset < log_start)
		r->offset = log_start;
	/* a value has no checksum of its own: pinned anew, its batch is looked at */
	if (r->ext.length && unlikely(plog_extent_doubtful(&r->ext)))
		drop_extent(r);
	ret = next_value(r, to);
	/* whatever was seen in bytes that were truncated says nothing */
	if (r->ext.length && plog_extent_stale(&r->ext))
		ret = -ESTALE;
	if (ret > 0)
		plog_partition_count_read(r->partition, ret);
	else if (ret != -EMSGSIZE && ret != -EFAULT)
		drop_extent(r);
	return ret == -EBADMSG ? -EIO : ret;
}
