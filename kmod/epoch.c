// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The list of leader epochs, and its text in Kafka's checkpoint format. */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "epoch.h"

/* "-2147483648 -9223372036854775808\n" is longer than any entry that is written */
#define LINE_MAX_SIZE	34

/*
 * While a list is made it may grow to twice of what is kept, so that the oldest
 * entries move out once for many new ones.
 */
#define ROOM_MAX	(2 * PLOG_EPOCHS_MAX)

static struct plog_epochs *list_alloc(u32 room)
{
	struct plog_epochs *list = kvmalloc(struct_size(list, entry, room), GFP_KERNEL);

	if (list)
		list->count = 0;
	return list;
}

/* Forget the oldest until @count are left. */
static void keep_newest(struct plog_epochs *list, u32 count)
{
	if (list->count <= count)
		return;
	memmove(list->entry, list->entry + list->count - count, count * sizeof(list->entry[0]));
	list->count = count;
}

/* Room for one entry more. */
static int grow(struct plog_epoch_builder *b)
{
	u32 count = b->list ? b->list->count : 0, room;
	struct plog_epochs *list;

	if (count < b->room)
		return 0;
	if (b->room >= ROOM_MAX) {
		keep_newest(b->list, PLOG_EPOCHS_MAX);
		return 0;
	}
	room = b->room ? min_t(u32, 2 * b->room, ROOM_MAX) : 1;
	list = list_alloc(room);
	if (!list)
		return -ENOMEM;
	if (b->list) {
		memcpy(list->entry, b->list->entry, count * sizeof(list->entry[0]));
		list->count = count;
	}
	kvfree(b->list);
	b->list = list;
	b->room = room;
	return 0;
}

int plog_epoch_begin(struct plog_epoch_builder *b, const struct plog_epochs *old)
{
	u32 count = old ? old->count : 0;

	b->list = NULL;
	b->room = 0;
	if (!count)
		return 0;
	/* an idle partition keeps this for good: room for one more, and no doubling */
	b->list = list_alloc(count + 1);
	if (!b->list)
		return -ENOMEM;
	b->room = count + 1;
	memcpy(b->list->entry, old->entry, count * sizeof(old->entry[0]));
	b->list->count = count;
	return 0;
}

int plog_epoch_assign(struct plog_epoch_builder *b, s32 epoch, s64 start)
{
	struct plog_epochs *list = b->list;
	u32 count = list ? list->count : 0;
	int err;

	if (epoch < 0 || start < 0)
		return -EINVAL;
	if (count && list->entry[count - 1].epoch == epoch && list->entry[count - 1].start <= start)
		return 0;
	while (count && (list->entry[count - 1].epoch >= epoch ||
			 list->entry[count - 1].start >= start))
		count--;
	if (list)
		list->count = count;
	err = grow(b);
	if (err)
		return err;
	list = b->list;
	list->entry[list->count].epoch = epoch;
	list->entry[list->count].start = start;
	list->count++;
	return 0;
}

void plog_epoch_cut(struct plog_epoch_builder *b, s64 end)
{
	while (b->list && b->list->count && b->list->entry[b->list->count - 1].start >= end)
		b->list->count--;
}

/* The entry that holds @offset: the last that begins at or before it; 0 without one. */
static u32 holder(const struct plog_epochs *list, s64 offset)
{
	u32 low = 0, high = list->count;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (list->entry[mid].start <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : 0;
}

void plog_epoch_trim(struct plog_epoch_builder *b, s64 start)
{
	struct plog_epochs *list = b->list;

	if (!list || !list->count)
		return;
	keep_newest(list, list->count - holder(list, start));
	list->entry[0].start = max_t(s64, list->entry[0].start, start);
}

struct plog_epochs *plog_epoch_finish(struct plog_epoch_builder *b)
{
	struct plog_epochs *list = b->list;

	if (list && !list->count) {
		kvfree(list);
		list = NULL;
	}
	if (list)
		keep_newest(list, PLOG_EPOCHS_MAX);
	b->list = NULL;
	b->room = 0;
	return list;
}

void plog_epoch_drop(struct plog_epoch_builder *b)
{
	kvfree(b->list);
	b->list = NULL;
	b->room = 0;
}

s32 plog_epoch_last(const struct plog_epochs *list)
{
	return list ? list->entry[list->count - 1].epoch : -1;
}

s64 plog_epoch_last_start(const struct plog_epochs *list)
{
	return list ? list->entry[list->count - 1].start : -1;
}

/* The last entry with an epoch not above @epoch, or -1. */
static s64 floor_of(const struct plog_epochs *list, s32 epoch)
{
	u32 low = 0, high = list->count;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (list->entry[mid].epoch <= epoch)
			low = mid + 1;
		else
			high = mid;
	}
	return (s64)low - 1;
}

s64 plog_epoch_end_of(const struct plog_epochs *list, s64 log_start, s64 log_end, s32 *epoch)
{
	s64 i, first;

	if (*epoch < 0 || !list || *epoch > plog_epoch_last(list)) {
		*epoch = -1;
		return -1;
	}
	/* what ended before the log start is gone, whether or not it was taken out yet */
	first = holder(list, log_start);
	i = floor_of(list, *epoch);
	if (i < first)
		return max_t(s64, list->entry[first].start, log_start);
	*epoch = list->entry[i].epoch;
	return i == (s64)list->count - 1 ? log_end : list->entry[i + 1].start;
}

s32 plog_epoch_at(const struct plog_epochs *list, s64 offset)
{
	u32 i;

	if (!list)
		return -1;
	i = holder(list, offset);
	return list->entry[i].start <= offset ? list->entry[i].epoch : -1;
}

/* ---- text ---- */

/* The number at @*at, of digits alone and not above @max, and the byte @end behind it. */
static int parse_number(const char **at, const char *stop, s64 max, char end, s64 *out)
{
	const char *p = *at;
	s64 v = 0;

	if (p == stop || *p < '0' || *p > '9' || (*p == '0' && p + 1 < stop && p[1] != end))
		return -EBADMSG;
	for (; p < stop && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, (s64)10, &v) ||
		    __builtin_add_overflow(v, (s64)(*p - '0'), &v) || v > max)
			return -EBADMSG;
	if (p == stop || *p != end)
		return -EBADMSG;
	*at = p + 1;
	*out = v;
	return 0;
}

static int parse_entry(const char **at, const char *stop, struct plog_epoch_builder *b)
{
	const struct plog_epoch_entry *last;
	s64 epoch, start;
	int err;

	err = parse_number(at, stop, INT_MAX, ' ', &epoch);
	if (!err)
		err = parse_number(at, stop, S64_MAX, '\n', &start);
	if (err)
		return err;
	if (b->list && b->list->count) {
		last = &b->list->entry[b->list->count - 1];
		if (last->epoch >= epoch || last->start >= start)
			return -EBADMSG;
	}
	return plog_epoch_assign(b, epoch, start);
}

int plog_epoch_parse(const char *text, size_t len, struct plog_epoch_builder *b)
{
	const char *at = text, *stop = text + len;
	s64 version, count;
	int err;

	b->list = NULL;
	b->room = 0;
	err = parse_number(&at, stop, 0, '\n', &version);
	if (!err)
		err = parse_number(&at, stop, INT_MAX, '\n', &count);
	while (!err && count--)
		err = parse_entry(&at, stop, b);
	if (!err && at != stop)
		err = -EBADMSG;
	if (err)
		plog_epoch_drop(b);
	return err;
}

size_t plog_epoch_text_size(u32 count)
{
	return (size_t)(count + 2) * LINE_MAX_SIZE;
}

size_t plog_epoch_format(const struct plog_epochs *list, s64 log_start, char *text, size_t room)
{
	u32 first = list ? holder(list, log_start) : 0, count = list ? list->count : 0, i;
	size_t n = 0;

	n += scnprintf(text + n, room - n, "0\n%u\n", count - first);
	for (i = first; i < count; i++)
		n += scnprintf(text + n, room - n, "%d %lld\n", list->entry[i].epoch,
			       (long long)(i > first ? list->entry[i].start :
					   max_t(s64, list->entry[i].start, log_start)));
	return n;
}
