// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The sparse indexes of a segment.
 */
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/slab.h>
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

static u32 entry_size(enum kind kind)
{
	return kind == BY_TIME ? PLOG_TIMEINDEX_ENTRY : PLOG_INDEX_ENTRY;
}

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

/* ---- what waits in memory ---- */

static void ring_put(u64 *ring, enum kind kind, u32 n, const u8 *raw)
{
	n %= PLOG_INDEX_RING;
	if (kind == BY_TIME) {
		WRITE_ONCE(ring[2 * n], get_unaligned_be64(raw));
		WRITE_ONCE(ring[2 * n + 1], get_unaligned_be32(raw + 8));
	} else {
		WRITE_ONCE(ring[n], get_unaligned_be64(raw));
	}
}

static void ring_get(const u64 *ring, enum kind kind, u32 n, u8 *raw)
{
	n %= PLOG_INDEX_RING;
	if (kind == BY_TIME) {
		put_unaligned_be64(READ_ONCE(ring[2 * n]), raw);
		put_unaligned_be32(READ_ONCE(ring[2 * n + 1]), raw + 8);
	} else {
		put_unaligned_be64(READ_ONCE(ring[n]), raw);
	}
}

static int read_file(struct plog_entries *es, u32 size, u32 first, u32 count, u8 *raw)
{
	ssize_t n = plog_file_read(es->file, raw, size * count, (u64)first * size);

	if (n < 0)
		return n;
	return n == size * count ? 0 : -EIO;
}

/* Read the entries [@first, @first + @count), in the file or still in memory. */
static int read_entries(struct plog_entries *es, enum kind kind, u32 first, u32 count, u8 *raw)
{
	u32 size = entry_size(kind), written, in_file, i;
	int err;

	for (;;) {
		written = smp_load_acquire(&es->written);
		in_file = first < written ? min_t(u32, count, written - first) : 0;
		if (in_file) {
			err = read_file(es, size, first, in_file, raw);
			if (err)
				return err;
		}
		if (in_file == count)
			return 0;
		if (!es->ring)
			return -EIO;
		for (i = in_file; i < count; i++)
			ring_get(es->ring, kind, first + i, raw + i * size);
		/*
		 * A place in the ring is used again only after its entry was
		 * written: these were not, so they are what they seem.
		 */
		smp_rmb();
		if (READ_ONCE(es->written) <= first + in_file)
			return 0;
	}
}

static u64 *ring_alloc(enum kind kind)
{
	return kmalloc(PLOG_INDEX_RING * sizeof(u64) * (kind == BY_TIME ? 2 : 1),
		       GFP_KERNEL_ACCOUNT);
}

static void entries_close(struct plog_entries *es)
{
	if (es->file)
		plog_file_close(es->file);
	es->file = NULL;
	kfree(es->ring);
	es->ring = NULL;
	WRITE_ONCE(es->count, es->written);
}

static void entries_set(struct plog_entries *es, u32 count)
{
	WRITE_ONCE(es->count, count);
	smp_store_release(&es->written, count);
}

static int entries_flush(struct plog_entries *es, enum kind kind)
{
	u32 size = entry_size(kind), n = es->count - es->written, i;
	u8 raw[PLOG_INDEX_RING * PLOG_TIMEINDEX_ENTRY];
	int err;

	if (!n || !es->file || !es->ring)
		return 0;
	for (i = 0; i < n; i++)
		ring_get(es->ring, kind, es->written + i, raw + i * size);
	err = plog_file_write(es->file, raw, n * size, (u64)es->written * size);
	if (err)
		WRITE_ONCE(es->count, es->written);
	else
		smp_store_release(&es->written, es->count);
	return err;
}

static int entries_append(struct plog_entries *es, enum kind kind, const u8 *raw)
{
	u32 size = entry_size(kind);
	int err;

	if (!es->ring) {
		err = plog_file_write(es->file, raw, size, (u64)es->count * size);
		if (err)
			return err;
		smp_store_release(&es->written, es->count + 1);
		smp_store_release(&es->count, es->count + 1);
		return 0;
	}
	ring_put(es->ring, kind, es->count, raw);
	smp_store_release(&es->count, es->count + 1);
	return es->count - es->written >= PLOG_INDEX_BURST ? entries_flush(es, kind) : 0;
}

static void entries_trim(struct plog_entries *es, enum kind kind)
{
	u64 size;

	if (!es->file)
		return;
	entries_flush(es, kind);
	size = (u64)es->count * entry_size(kind);
	if (plog_file_size(es->file) > size)
		plog_file_truncate(es->file, size);
}

static int entries_reset(struct plog_entries *es)
{
	entries_set(es, 0);
	return es->file && plog_file_size(es->file) ? plog_file_truncate(es->file, 0) : 0;
}

/* ---- searching ---- */

/* Where @key would lie between two entries if keys grew evenly. */
static u32 guess(u32 low, u32 high, s64 low_key, s64 high_key, s64 key)
{
	u64 range = (u64)high_key - low_key, part = (u64)key - low_key;

	if (high_key <= low_key || key <= low_key || key >= high_key)
		return low + (high - low) / 2;
	while (range >> 32) {
		range >>= 1;
		part >>= 1;
	}
	return low + div64_u64(part * (high - low), range);
}

/*
 * Where to read first.  Keys from @low_key to @last_key lie in @count entries, or so
 * it was said: a guess that is wrong costs a read, no more.
 */
static u32 first_guess(u32 count, s64 low_key, s64 last_key, s64 key)
{
	u32 at = count - 1;

	if (key <= low_key)
		at = 0;
	else if (key < last_key)
		at = guess(0, at, low_key, last_key, key);
	return at > CHUNK / 2 ? min_t(u32, at - CHUNK / 2, count - min_t(u32, count, CHUNK)) : 0;
}

/*
 * The last entry whose key is not above @key.  Offsets, positions and times grow
 * evenly as a rule, so that a guess between the ends needs one or two reads
 * whatever the size; where it does not help, every second step halves what is
 * left.  Damaged entries may lead astray, but never out of the file.
 * @low_key, @last_key: about what the first and the last entry have
 */
static int search(struct plog_entries *es, enum kind kind, s64 low_key, s64 last_key, s64 key,
		  struct entry *found)
{
	u32 low = 0, high = smp_load_acquire(&es->count), first, n, i, step;
	u8 raw[CHUNK * PLOG_TIMEINDEX_ENTRY];
	u32 size = entry_size(kind);
	s64 high_key = last_key;
	bool any = false;
	struct entry e;
	int err;

	if (!high || !smp_load_acquire(&es->file))
		return 0;
	/* everything below low is not above the key, everything from high on is */
	first = first_guess(high, low_key, last_key, key);
	for (step = 0; low < high; step++) {
		n = min_t(u32, CHUNK, high - first);
		err = read_entries(es, kind, first, n, raw);
		if (err)
			return err;
		for (i = 0; i < n; i++) {
			decode(kind, raw + i * size, &e);
			if (e.key > key)
				break;
			*found = e;
			any = true;
		}
		if (i) {
			low = first + i;
			low_key = found->key;
		}
		if (i < n) {
			high = first + i;
			high_key = e.key;
		}
		if (i && i < n)
			break;
		if (high - low <= CHUNK) {
			first = low;
			continue;
		}
		first = step & 1 ? low + (high - low) / 2 :
				   guess(low, high, low_key, high_key, key);
		/* the guess in the middle of what is read */
		first = first - low > CHUNK / 2 ? first - CHUNK / 2 : low;
	}
	return any;
}

/*
 * How many entries to keep so that none has a key of @key or more; from the
 * end, since a truncation is short as a rule.
 */
static u32 keep_below(struct plog_entries *es, enum kind kind, s64 key, bool by_offset)
{
	u8 raw[CHUNK * PLOG_TIMEINDEX_ENTRY];
	u32 size = entry_size(kind), keep = es->count, first, n;
	struct entry e;

	while (keep) {
		n = min_t(u32, keep, CHUNK);
		first = keep - n;
		if (read_entries(es, kind, first, n, raw))
			return 0;
		for (; n; n--, keep--) {
			decode(kind, raw + (n - 1) * size, &e);
			if ((by_offset ? e.offset : e.key) < key)
				return keep;
		}
	}
	return 0;
}

/* ---- offsets ---- */

/* Take the first @count entries for valid, if the last of them can be. */
static int index_take(struct plog_index *idx, u32 count, u64 log_end)
{
	u8 raw[PLOG_INDEX_ENTRY];
	struct entry e;
	int err;

	entries_set(&idx->e, 0);
	WRITE_ONCE(idx->last_offset, -1);
	WRITE_ONCE(idx->last_pos, 0);
	if (!count)
		return 0;
	err = read_file(&idx->e, PLOG_INDEX_ENTRY, count - 1, 1, raw);
	if (err)
		return err;
	decode(BY_OFFSET, raw, &e);
	/* the first batch never has an entry: position 0 is a page of zeros */
	if (e.offset <= 0 || !e.pos || e.pos >= log_end)
		return -EBADMSG;
	WRITE_ONCE(idx->last_offset, e.offset);
	WRITE_ONCE(idx->last_pos, e.pos);
	entries_set(&idx->e, count);
	return 0;
}

int plog_index_load(struct plog_index *idx, u64 log_end)
{
	u64 size = plog_file_size(idx->e.file);

	if (size % PLOG_INDEX_ENTRY || size / PLOG_INDEX_ENTRY > INT_MAX) {
		index_take(idx, 0, log_end);
		return -EBADMSG;
	}
	return index_take(idx, size / PLOG_INDEX_ENTRY, log_end);
}

int plog_index_append(struct plog_index *idx, s32 offset, u32 pos)
{
	u8 raw[PLOG_INDEX_ENTRY];
	int err;

	if (!idx->e.file || (idx->e.count && offset <= idx->last_offset))
		return -EINVAL;
	put_unaligned_be32(offset, raw);
	put_unaligned_be32(pos, raw + 4);
	err = entries_append(&idx->e, BY_OFFSET, raw);
	if (!err) {
		WRITE_ONCE(idx->last_offset, offset);
		WRITE_ONCE(idx->last_pos, pos);
	}
	return err;
}

int plog_index_lookup(struct plog_index *idx, s64 offset, s32 *found, u32 *pos)
{
	struct entry e;
	int ret = search(&idx->e, BY_OFFSET, 0, READ_ONCE(idx->last_offset), offset, &e);

	if (ret > 0) {
		*found = e.offset;
		*pos = e.pos;
	}
	return ret;
}

int plog_index_lookup_pos(struct plog_index *idx, u64 pos, s32 *found, u32 *found_pos)
{
	struct entry e;
	int ret = search(&idx->e, BY_POSITION, 0, READ_ONCE(idx->last_pos), pos, &e);

	if (ret > 0) {
		*found = e.offset;
		*found_pos = e.pos;
	}
	return ret;
}

void plog_index_cut(struct plog_index *idx, u64 pos)
{
	u32 keep;

	if (!idx->e.file)
		return;
	plog_index_flush(idx);
	keep = keep_below(&idx->e, BY_POSITION, pos, false);
	if (index_take(idx, keep, U64_MAX))
		index_take(idx, 0, 0);
	plog_index_trim(idx);
}

int plog_index_reset(struct plog_index *idx)
{
	WRITE_ONCE(idx->last_offset, -1);
	WRITE_ONCE(idx->last_pos, 0);
	return entries_reset(&idx->e);
}

void plog_index_buffer(struct plog_index *idx)
{
	if (!idx->e.ring)
		idx->e.ring = ring_alloc(BY_OFFSET);
}

void plog_index_close(struct plog_index *idx)
{
	entries_close(&idx->e);
}

void plog_index_flush(struct plog_index *idx)
{
	entries_flush(&idx->e, BY_OFFSET);
}

void plog_index_trim(struct plog_index *idx)
{
	entries_trim(&idx->e, BY_OFFSET);
}

/* ---- times ---- */

static int timeindex_take(struct plog_timeindex *idx, u32 count)
{
	u8 raw[PLOG_TIMEINDEX_ENTRY];
	struct entry e;
	int err;

	entries_set(&idx->e, 0);
	WRITE_ONCE(idx->last_timestamp, -1);
	idx->last_offset = 0;
	if (!count)
		return 0;
	err = read_file(&idx->e, PLOG_TIMEINDEX_ENTRY, count - 1, 1, raw);
	if (err)
		return err;
	decode(BY_TIME, raw, &e);
	/* times only grow, so that a second 0 is a page of zeros */
	if (e.key < 0 || e.offset < 0 || (count > 1 && !e.key))
		return -EBADMSG;
	WRITE_ONCE(idx->last_timestamp, e.key);
	idx->last_offset = e.offset;
	entries_set(&idx->e, count);
	return 0;
}

int plog_timeindex_load(struct plog_timeindex *idx)
{
	u64 size = plog_file_size(idx->e.file);

	if (size % PLOG_TIMEINDEX_ENTRY || size / PLOG_TIMEINDEX_ENTRY > INT_MAX) {
		timeindex_take(idx, 0);
		return -EBADMSG;
	}
	return timeindex_take(idx, size / PLOG_TIMEINDEX_ENTRY);
}

bool plog_timeindex_is_short(struct plog_timeindex *idx)
{
	return idx->e.file && !idx->e.ring &&
	       plog_file_size(idx->e.file) < (u64)idx->e.written * PLOG_TIMEINDEX_ENTRY;
}

int plog_timeindex_append(struct plog_timeindex *idx, s64 timestamp, s32 offset)
{
	u8 raw[PLOG_TIMEINDEX_ENTRY];
	int err;

	if (!idx->e.file || timestamp <= idx->last_timestamp ||
	    (idx->e.count && offset < idx->last_offset))
		return -EINVAL;
	put_unaligned_be64(timestamp, raw);
	put_unaligned_be32(offset, raw + 8);
	err = entries_append(&idx->e, BY_TIME, raw);
	if (!err) {
		WRITE_ONCE(idx->last_timestamp, timestamp);
		idx->last_offset = offset;
	}
	return err;
}

int plog_timeindex_lookup(struct plog_timeindex *idx, s64 first, s64 timestamp, s64 *found,
			  s32 *offset)
{
	struct entry e;
	int ret = search(&idx->e, BY_TIME, first, READ_ONCE(idx->last_timestamp), timestamp, &e);

	if (ret > 0) {
		*found = e.key;
		*offset = e.offset;
	}
	return ret;
}

void plog_timeindex_cut(struct plog_timeindex *idx, s64 offset)
{
	u32 keep;

	if (!idx->e.file)
		return;
	plog_timeindex_flush(idx);
	keep = keep_below(&idx->e, BY_TIME, offset, true);
	if (timeindex_take(idx, keep))
		timeindex_take(idx, 0);
	plog_timeindex_trim(idx);
}

int plog_timeindex_reset(struct plog_timeindex *idx)
{
	WRITE_ONCE(idx->last_timestamp, -1);
	idx->last_offset = 0;
	return entries_reset(&idx->e);
}

void plog_timeindex_buffer(struct plog_timeindex *idx)
{
	if (!idx->e.ring)
		idx->e.ring = ring_alloc(BY_TIME);
}

void plog_timeindex_close(struct plog_timeindex *idx)
{
	entries_close(&idx->e);
}

void plog_timeindex_flush(struct plog_timeindex *idx)
{
	entries_flush(&idx->e, BY_TIME);
}

void plog_timeindex_trim(struct plog_timeindex *idx)
{
	entries_trim(&idx->e, BY_TIME);
}
