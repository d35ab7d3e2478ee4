// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The sparse indexes of a segment.
 */
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <asm/barrier.h>

#include "compat/unaligned.h"
#include "file.h"
#include "index.h"

/*
 * Entries read at once: the last step of a search, and often the only one,
 * since most look-ups are near the end of the log.
 */
#define CHUNK	32

/* An entry of either index as the search sees it. */
struct entry {
	s64 key;
	s32 offset;
	u32 pos;
};

enum kind { BY_OFFSET, BY_POSITION, BY_TIME };

static void decode(enum kind kind, const u8 *raw, struct entry *e)
{
	if (kind == BY_TIME) {
		e->key = get_unaligned_be64(raw);
		e->offset = get_unaligned_be32(raw + 8);
		e->pos = 0;
		return;
	}
	e->offset = get_unaligned_be32(raw);
	e->pos = get_unaligned_be32(raw + 4);
	e->key = kind == BY_OFFSET ? e->offset : e->pos;
}

static int read_entries(struct plog_file *file, u32 size, u32 first, u32 count, u8 *raw)
{
	ssize_t n = plog_file_read(file, raw, size * count, (u64)first * size);

	if (n < 0)
		return n;
	return n == size * count ? 0 : -EIO;
}

/*
 * The last of the entries [0, @count) whose key is not above @key.  Damaged
 * entries may lead astray, but never out of the file.
 */
static int search(struct plog_file *file, enum kind kind, u32 count, s64 key, struct entry *found)
{
	u32 size = kind == BY_TIME ? PLOG_TIMEINDEX_ENTRY : PLOG_INDEX_ENTRY;
	u32 low = 0, high = count, first, n, i;
	u8 raw[CHUNK * PLOG_TIMEINDEX_ENTRY];
	bool any = false;
	struct entry e;
	int err;

	if (!file || !count)
		return 0;
	/* everything below low is not above the key, everything from high on is */
	first = count > CHUNK ? count - CHUNK : 0;
	while (low < high) {
		n = min_t(u32, CHUNK, high - first);
		err = read_entries(file, size, first, n, raw);
		if (err)
			return err;
		for (i = 0; i < n; i++) {
			decode(kind, raw + i * size, &e);
			if (e.key > key)
				break;
			*found = e;
			any = true;
		}
		if (i)
			low = first + i;
		if (i < n)
			high = first + i;
		if (i && i < n)
			break;
		first = low + (high - low) / 2;
		/* end the walk with one whole chunk */
		if (high - low <= CHUNK)
			first = low;
	}
	return any;
}

/* ---- offsets ---- */

int plog_index_load(struct plog_index *idx, u64 log_end)
{
	u64 size = plog_file_size(idx->file);
	u8 raw[PLOG_INDEX_ENTRY];
	struct entry e;
	u32 count;
	int err;

	WRITE_ONCE(idx->entries, 0);
	idx->last_offset = -1;
	if (size % PLOG_INDEX_ENTRY || size / PLOG_INDEX_ENTRY > INT_MAX)
		return -EBADMSG;
	count = size / PLOG_INDEX_ENTRY;
	if (!count)
		return 0;
	err = read_entries(idx->file, PLOG_INDEX_ENTRY, count - 1, 1, raw);
	if (err)
		return err;
	decode(BY_OFFSET, raw, &e);
	/* the first batch never has an entry: position 0 is a page of zeros */
	if (e.offset <= 0 || !e.pos || e.pos >= log_end)
		return -EBADMSG;
	idx->last_offset = e.offset;
	WRITE_ONCE(idx->entries, count);
	return 0;
}

int plog_index_append(struct plog_index *idx, s32 offset, u32 pos)
{
	u8 raw[PLOG_INDEX_ENTRY];
	int err;

	if (!idx->file || (idx->entries && offset <= idx->last_offset))
		return -EINVAL;
	put_unaligned_be32(offset, raw);
	put_unaligned_be32(pos, raw + 4);
	err = plog_file_write(idx->file, raw, sizeof(raw), (u64)idx->entries * sizeof(raw));
	if (err)
		return err;
	idx->last_offset = offset;
	smp_store_release(&idx->entries, idx->entries + 1);
	return 0;
}

int plog_index_lookup(struct plog_index *idx, s64 offset, s32 *found, u32 *pos)
{
	struct entry e;
	int ret = search(idx->file, BY_OFFSET, smp_load_acquire(&idx->entries), offset, &e);

	if (ret > 0) {
		*found = e.offset;
		*pos = e.pos;
	}
	return ret;
}

int plog_index_lookup_pos(struct plog_index *idx, u64 pos, s32 *found, u32 *found_pos)
{
	struct entry e;
	int ret = search(idx->file, BY_POSITION, smp_load_acquire(&idx->entries), pos, &e);

	if (ret > 0) {
		*found = e.offset;
		*found_pos = e.pos;
	}
	return ret;
}

/* Keep the first @entries, and learn what the last of them is. */
static void index_shrink(struct plog_index *idx, u32 entries)
{
	u8 raw[PLOG_INDEX_ENTRY];
	struct entry e;

	WRITE_ONCE(idx->entries, 0);
	idx->last_offset = -1;
	if (entries && !read_entries(idx->file, PLOG_INDEX_ENTRY, entries - 1, 1, raw)) {
		decode(BY_OFFSET, raw, &e);
		idx->last_offset = e.offset;
		smp_store_release(&idx->entries, entries);
	}
	plog_index_trim(idx);
}

void plog_index_cut(struct plog_index *idx, u64 pos)
{
	u8 raw[CHUNK * PLOG_INDEX_ENTRY];
	u32 keep = idx->entries, first, n;
	struct entry e;

	if (!idx->file)
		return;
	/* from the end: a truncation is short as a rule */
	while (keep) {
		n = min_t(u32, keep, CHUNK);
		first = keep - n;
		if (read_entries(idx->file, PLOG_INDEX_ENTRY, first, n, raw)) {
			keep = 0;
			break;
		}
		for (; n; n--, keep--) {
			decode(BY_POSITION, raw + (n - 1) * PLOG_INDEX_ENTRY, &e);
			if (e.pos < pos)
				break;
		}
		if (n)
			break;
	}
	index_shrink(idx, keep);
}

int plog_index_reset(struct plog_index *idx)
{
	WRITE_ONCE(idx->entries, 0);
	idx->last_offset = -1;
	return idx->file ? plog_file_truncate(idx->file, 0) : 0;
}

static void trim(struct plog_file *file, u64 size)
{
	if (file && plog_file_size(file) > size)
		plog_file_truncate(file, size);
}

void plog_index_trim(struct plog_index *idx)
{
	trim(idx->file, (u64)idx->entries * PLOG_INDEX_ENTRY);
}

/* ---- times ---- */

static int timeindex_last(struct plog_timeindex *idx, u32 entries)
{
	u8 raw[PLOG_TIMEINDEX_ENTRY];
	struct entry e;
	int err;

	WRITE_ONCE(idx->entries, 0);
	idx->last_timestamp = -1;
	idx->last_offset = 0;
	if (!entries)
		return 0;
	err = read_entries(idx->file, PLOG_TIMEINDEX_ENTRY, entries - 1, 1, raw);
	if (err)
		return err;
	decode(BY_TIME, raw, &e);
	if (e.key < 0 || e.offset < 0)
		return -EBADMSG;
	idx->last_timestamp = e.key;
	idx->last_offset = e.offset;
	smp_store_release(&idx->entries, entries);
	return 0;
}

int plog_timeindex_load(struct plog_timeindex *idx)
{
	u64 size = plog_file_size(idx->file);
	int err;

	if (size % PLOG_TIMEINDEX_ENTRY || size / PLOG_TIMEINDEX_ENTRY > INT_MAX) {
		timeindex_last(idx, 0);
		return -EBADMSG;
	}
	err = timeindex_last(idx, size / PLOG_TIMEINDEX_ENTRY);
	/* times only grow, so that a second 0 is a page of zeros */
	if (!err && idx->entries > 1 && !idx->last_timestamp) {
		timeindex_last(idx, 0);
		err = -EBADMSG;
	}
	return err;
}

int plog_timeindex_append(struct plog_timeindex *idx, s64 timestamp, s32 offset)
{
	u8 raw[PLOG_TIMEINDEX_ENTRY];
	int err;

	if (!idx->file || timestamp <= idx->last_timestamp ||
	    (idx->entries && offset < idx->last_offset))
		return -EINVAL;
	put_unaligned_be64(timestamp, raw);
	put_unaligned_be32(offset, raw + 8);
	err = plog_file_write(idx->file, raw, sizeof(raw), (u64)idx->entries * sizeof(raw));
	if (err)
		return err;
	idx->last_timestamp = timestamp;
	idx->last_offset = offset;
	smp_store_release(&idx->entries, idx->entries + 1);
	return 0;
}

int plog_timeindex_lookup(struct plog_timeindex *idx, s64 timestamp, s64 *found, s32 *offset)
{
	struct entry e;
	int ret = search(idx->file, BY_TIME, smp_load_acquire(&idx->entries), timestamp, &e);

	if (ret > 0) {
		*found = e.key;
		*offset = e.offset;
	}
	return ret;
}

void plog_timeindex_cut(struct plog_timeindex *idx, s64 offset)
{
	u8 raw[CHUNK * PLOG_TIMEINDEX_ENTRY];
	u32 keep = idx->entries, first, n;
	struct entry e;

	if (!idx->file)
		return;
	while (keep) {
		n = min_t(u32, keep, CHUNK);
		first = keep - n;
		if (read_entries(idx->file, PLOG_TIMEINDEX_ENTRY, first, n, raw)) {
			keep = 0;
			break;
		}
		for (; n; n--, keep--) {
			decode(BY_TIME, raw + (n - 1) * PLOG_TIMEINDEX_ENTRY, &e);
			if (e.offset < offset)
				break;
		}
		if (n)
			break;
	}
	timeindex_last(idx, keep);
	plog_timeindex_trim(idx);
}

int plog_timeindex_reset(struct plog_timeindex *idx)
{
	timeindex_last(idx, 0);
	return idx->file ? plog_file_truncate(idx->file, 0) : 0;
}

void plog_timeindex_trim(struct plog_timeindex *idx)
{
	trim(idx->file, (u64)idx->entries * PLOG_TIMEINDEX_ENTRY);
}
