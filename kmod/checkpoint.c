// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Leader epochs on disk: the checkpoint file, and the headers of the log that
 * say the same.
 *
 * The file is written in place, since nothing here renames: a crash in the
 * middle leaves a torn one.  So it is checked when it is read, by its form, and
 * after an unclean stop entry by entry against the log.
 */
#define pr_fmt(fmt) "plog: " fmt

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat/crc32c.h"
#include "engine.h"
#include "event.h"
#include "epoch.h"

struct plog_epochs *plog_epoch_list(struct plog_partition *p)
{
	return rcu_dereference_protected(p->epochs, lockdep_is_held(&p->lock));
}

/* Is the list what is found without a file as well, where nothing was written? */
static bool is_first(struct plog_partition *p)
{
	const struct plog_epochs *list;
	bool first;

	rcu_read_lock();
	list = rcu_dereference(p->epochs);
	first = !list || (list->count == 1 && !list->entry[0].epoch && !list->entry[0].start);
	rcu_read_unlock();
	return first;
}

bool plog_epochs_unsaved(struct plog_partition *p, s64 log_end)
{
	return READ_ONCE(p->epochs_dirty) &&
	       (READ_ONCE(p->epochs_pending) || p->saved.epochs_crc || log_end || !is_first(p));
}

void plog_epoch_free(struct plog_epochs *list)
{
	if (list)
		kvfree_rcu(list, rcu);
}

/* ---- writing ---- */

int plog_epoch_snapshot(struct plog_partition *p, struct plog_epoch_text *t)
{
	struct plog_epochs *list;
	u32 count = 1, have;
	size_t room;

	lockdep_assert_held(&p->state_lock);
	/* before the list is looked at: pairs with plog_epoch_noted() */
	WRITE_ONCE(p->epochs_dirty, false);
	smp_mb();
	for (;;) {
		room = plog_epoch_text_size(count);
		t->text = kvmalloc(room, GFP_KERNEL);
		if (!t->text) {
			WRITE_ONCE(p->epochs_dirty, true);
			return -ENOMEM;
		}
		rcu_read_lock();
		list = smp_load_acquire(&p->epochs_pending) ? p->epochs_next :
							      rcu_dereference(p->epochs);
		have = list ? list->count : 0;
		if (have <= count) {
			t->len = plog_epoch_format(list, READ_ONCE(p->pub.log_start), t->text,
						   room);
			rcu_read_unlock();
			break;
		}
		rcu_read_unlock();
		/* it grew while memory was looked for */
		kvfree(t->text);
		count = have;
	}
	t->crc = ~crc32c(~0u, t->text, t->len);
	return 0;
}

int plog_epoch_write(struct plog_partition *p, const struct plog_epoch_text *t)
{
	struct plog_file *file;
	bool made = false;
	int err;

	lockdep_assert_held(&p->state_lock);
	file = plog_file_open(p->dir, PLOG_EPOCH_NAME, 0);
	if (IS_ERR(file) && PTR_ERR(file) == -ENOENT) {
		made = true;
		file = plog_file_open(p->dir, PLOG_EPOCH_NAME, PLOG_FILE_CREATE);
	}
	if (IS_ERR(file))
		return PTR_ERR(file);
	err = plog_file_write(file, t->text, t->len, 0);
	if (!err && plog_file_size(file) > t->len)
		err = plog_file_truncate(file, t->len);
	if (!err)
		err = plog_file_sync(file, 0, t->len - 1);
	plog_file_close(file);
	if (!err && made)
		err = plog_dir_sync(p->dir);
	return err;
}

void plog_epoch_noted(struct plog_partition *p)
{
	/* the list before the mark: who takes the mark away and looks then finds one of the two */
	smp_mb();
	WRITE_ONCE(p->epochs_dirty, true);
}

bool plog_epoch_pending(struct plog_partition *p, s32 *epoch, s64 *start)
{
	bool pending;

	lockdep_assert_held(&p->state_lock);
	/* once it is settled the list may be replaced, and freed after a grace period */
	rcu_read_lock();
	pending = smp_load_acquire(&p->epochs_pending);
	if (pending) {
		*epoch = p->epoch_next;
		*start = plog_epoch_last(p->epochs_next) == *epoch ?
			 plog_epoch_last_start(p->epochs_next) : -1;
	}
	rcu_read_unlock();
	return pending;
}

int plog_epoch_prepare(struct plog_partition *p, struct plog_epochs *next, s32 epoch)
{
	int err;

	lockdep_assert_held(&p->lock);
	if (mutex_lock_killable(&p->state_lock))
		return -EINTR;
	p->epochs_next = next;
	p->epoch_next = epoch;
	WRITE_ONCE(p->epochs_pending, true);
	WRITE_ONCE(p->epochs_dirty, true);
	err = plog_save_locked(p, false, true);
	if (err)
		WRITE_ONCE(p->epochs_pending, false);
	mutex_unlock(&p->state_lock);
	if (!err)
		p->clean_on_disk = false;
	return err;
}

/*
 * Without state_lock: a save under way may wait until a filesystem is thawed.  It sees
 * that the change is pending, or else what was published before this.
 */
void plog_epoch_settle(struct plog_partition *p)
{
	lockdep_assert_held(&p->lock);
	smp_store_release(&p->epochs_pending, false);
}

struct plog_epochs *plog_epoch_install(struct plog_partition *p, struct plog_epochs *next,
				       s32 epoch)
{
	struct plog_epochs *old = plog_epoch_list(p);

	rcu_assign_pointer(p->epochs, next);
	WRITE_ONCE(p->pub.leader_epoch, epoch);
	WRITE_ONCE(p->pub.epoch_start,
		   plog_epoch_last(next) == epoch ? plog_epoch_last_start(next) : -1);
	plog_event_epoch(p->name, epoch, p->pub.epoch_start);
	return old;
}

/* ---- what the log says ---- */

/*
 * struct finder - looks for batches by their offset in a table that is not
 * published yet
 */
struct finder {
	struct plog_partition *p;
	struct plog_table *table;
	s64 from;		/* offsets of the log: from here, */
	s64 end;		/* up to here */
	u8 *window;
	bool known;		/* the state file names the leader epoch */
};

/* The first batch whose last offset is @offset or more. Return: 1, 0 or an error. */
static int batch_at(struct finder *f, s64 offset, struct plog_batch *batch)
{
	u32 low = 0, high = f->table->count, i;
	struct plog_segment *seg;
	struct plog_cursor cur;
	int ret = 0;

	if (fatal_signal_pending(current))
		return -EINTR;
	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (f->table->seg[mid]->base <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	for (i = low ? low - 1 : 0; i < f->table->count && !ret; i++) {
		seg = f->table->seg[i];
		ret = plog_segment_use(seg, f->p->dir);
		if (ret)
			return ret;
		plog_cursor_init(&cur, seg, READ_ONCE(seg->end), READ_ONCE(seg->cut_gen),
				 f->window);
		ret = plog_segment_seek(seg, &cur, offset);
		plog_segment_unuse(seg);
	}
	if (ret > 0)
		*batch = cur.batch;
	return ret;
}

/* The last batch that begins below @end. Return: 1, 0 or an error. */
static int last_before(struct finder *f, s64 end, struct plog_batch *batch)
{
	s64 low = f->from, high = end;
	int ret, found = 0;

	if (low >= high)
		return 0;
	ret = batch_at(f, high - 1, batch);
	if (ret < 0 || (ret && batch->base_offset < end))
		return ret;
	/* there is a gap before the end: the last offset that something holds or follows */
	while (low < high) {
		s64 mid = low + (high - low) / 2;
		struct plog_batch b;

		ret = batch_at(f, mid, &b);
		if (ret < 0)
			return ret;
		if (!ret || b.base_offset >= end) {
			high = mid;
			continue;
		}
		*batch = b;
		found = 1;
		low = plog_batch_last_offset(&b) + 1;
	}
	return found;
}

/*
 * The first batch of an epoch not below that of @first, which is one of them, and
 * the batch @before it.  Bisection: epochs do not fall along a log.
 * Return: 1 with a @before, 0 if there is none, or an error.
 */
static int first_of_epoch(struct finder *f, struct plog_batch *first, struct plog_batch *before)
{
	s64 low = f->from, high = max_t(s64, first->base_offset, f->from);
	s32 epoch = first->leader_epoch;
	struct plog_batch b;
	int ret, found = 0;

	while (low < high) {
		s64 mid = low + (high - low) / 2;

		ret = batch_at(f, mid, &b);
		if (ret < 0)
			return ret;
		if (ret && b.leader_epoch < epoch) {
			*before = b;
			found = 1;
			low = plog_batch_last_offset(&b) + 1;
			continue;
		}
		if (ret)
			*first = b;
		high = ret ? min_t(s64, mid, b.base_offset) : mid;
	}
	return found;
}

/*
 * Add the epochs above those that @list has, from the end of the log back, as
 * many as are kept.
 */
static int add_from_log(struct finder *f, struct plog_epoch_builder *list)
{
	s32 known = list->list && list->list->count ?
		    list->list->entry[list->list->count - 1].epoch : -1;
	struct plog_epoch_builder back = { 0 };
	struct plog_batch first, before;
	u32 i, count = 0;
	int ret, err = 0;
	s64 last = S64_MAX;

	ret = last_before(f, f->end, &first);
	while (ret > 0 && first.leader_epoch > known && count < PLOG_EPOCHS_MAX) {
		ret = first_of_epoch(f, &first, &before);
		if (ret < 0)
			break;
		/* offsets that do not fall with their epochs are no log's of ours */
		if (first.base_offset < 0 || first.base_offset >= last)
			break;
		last = first.base_offset;
		/* from the back: kept with both columns turned round, so that they rise */
		err = plog_epoch_assign(&back, INT_MAX - first.leader_epoch,
					S64_MAX - first.base_offset);
		if (err)
			break;
		count++;
		if (ret > 0)
			first = before;
	}
	if (ret == -EBADMSG)
		ret = 0;
	for (i = back.list ? back.list->count : 0; !err && ret >= 0 && i-- > 0;)
		err = plog_epoch_assign(list, INT_MAX - back.list->entry[i].epoch,
					S64_MAX - back.list->entry[i].start);
	plog_epoch_drop(&back);
	return ret < 0 ? ret : err;
}

/*
 * Does entry @i fit the log: is the first batch from its start on of its epoch,
 * and the one before of the epoch before?  An epoch may have lost its batches to
 * compaction, and the first one its beginning to the log start.
 * Return: 1, 0 or an error.
 */
static int fits(struct finder *f, const struct plog_epochs *list, u32 i)
{
	const struct plog_epoch_entry *e = &list->entry[i];
	struct plog_batch b;
	int ret;

	ret = batch_at(f, max_t(s64, e->start, f->from), &b);
	if (ret < 0)
		return ret;
	/* a later epoch than the last one is for add_from_log() */
	if (ret && (i + 1 == list->count ? b.leader_epoch < e->epoch :
		    b.base_offset < e[1].start && b.leader_epoch != e->epoch))
		return 0;
	/* one in which nothing was written is the state file's, and no later one can be */
	if (!ret && f->known && e->epoch > f->p->saved.leader_epoch)
		return 0;
	if (e->start <= f->from)
		return 1;
	ret = last_before(f, e->start, &b);
	if (ret <= 0)
		return ret < 0 ? ret : 1;
	if (plog_batch_last_offset(&b) >= e->start)
		return 0;
	/* older ones may not be listed any more, but none of its own */
	if (!i)
		return b.leader_epoch < e->epoch;
	/* not where it begins: the log may start inside a batch, and the entry there */
	return plog_batch_last_offset(&b) < e[-1].start ? b.leader_epoch < e[-1].epoch :
							  b.leader_epoch == e[-1].epoch;
}

static int all_fit(struct finder *f, const struct plog_epochs *list)
{
	int ret = 1;
	u32 i;

	for (i = 0; list && i < list->count && ret > 0; i++)
		ret = fits(f, list, i);
	return ret == -EBADMSG ? 0 : ret;
}

/* ---- reading ---- */

/*
 * Read the file.  @crc: of what it holds
 * Return: 0; -ENOENT; -EBADMSG if it is not as Kafka writes it, or cannot be read;
 * -ENOMEM.
 */
static int read_file(struct plog_partition *p, struct plog_epoch_builder *list, u32 *crc)
{
	struct plog_file *file;
	ssize_t n;
	char *text;
	u64 size;
	int err;

	file = plog_file_open(p->dir, PLOG_EPOCH_NAME, PLOG_FILE_RDONLY);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		return err == -ENOENT || err == -ENOMEM || err == -EINTR ? err : -EBADMSG;
	}
	err = -EBADMSG;
	size = plog_file_size(file);
	if (!size || size > PLOG_EPOCH_FILE_MAX)
		goto out_close;
	err = -ENOMEM;
	text = kvmalloc(size, GFP_KERNEL);
	if (!text)
		goto out_close;
	n = plog_file_read(file, text, size, 0);
	err = n == -EINTR || n == -ENOMEM ? n : -EBADMSG;
	if (n == size) {
		*crc = ~crc32c(~0u, text, size);
		err = plog_epoch_parse(text, size, list);
	}
	kvfree(text);
out_close:
	plog_file_close(file);
	return err;
}

/* The epoch that the state file names, if nothing was written in it yet. */
static int add_from_state(struct finder *f, struct plog_epoch_builder *list)
{
	const struct plog_saved *saved = &f->p->saved;
	struct plog_batch b;
	int ret;

	if (saved->epoch_start < f->from || saved->epoch_start > f->end ||
	    (list->list && list->list->count &&
	     list->list->entry[list->list->count - 1].epoch >= saved->leader_epoch))
		return 0;
	ret = saved->epoch_start < f->end ? batch_at(f, saved->epoch_start, &b) : 0;
	if (ret)
		return ret < 0 && ret != -EBADMSG ? ret : 0;
	return plog_epoch_assign(list, saved->leader_epoch, saved->epoch_start);
}

/* Compare with the log, and make it from the log where it does not fit. */
static int check(struct finder *f, struct plog_epoch_builder *list, bool *rebuilt)
{
	int ret = *rebuilt ? 0 : all_fit(f, list->list);
	int err;

	if (ret < 0)
		return ret;
	if (!ret) {
		plog_epoch_drop(list);
		*rebuilt = true;
	}
	err = add_from_log(f, list);
	return err ? err : add_from_state(f, list);
}

int plog_epoch_load(struct plog_partition *p, struct plog_table *table, s64 log_end, bool trusted,
		    struct plog_epochs **out)
{
	struct finder f = { .p = p, .table = table, .end = log_end };
	struct plog_saved *saved = &p->saved;
	struct plog_epoch_builder list = { 0 };
	bool unusable, rebuilt;
	u32 crc = 0;
	int err;

	/* what lies before the log start is no part of it: its epochs may be any */
	f.from = table->count ? max_t(s64, table->seg[0]->base, saved->log_start) : log_end;
	err = read_file(p, &list, &crc);
	if (err && err != -ENOENT && err != -EBADMSG)
		return err;
	/* a clean stop was the last to write: not one byte may be another */
	if (!err && trusted && crc != saved->epochs_crc) {
		plog_epoch_drop(&list);
		err = -EBADMSG;
	}
	unusable = rebuilt = err;
	if (err == -EBADMSG)
		pr_warn("%s: " PLOG_EPOCH_NAME " is damaged: taking the leader epochs from the log\n",
			p->name);
	p->epochs_dirty = rebuilt || !trusted || crc != saved->epochs_crc;
	f.known = saved->sequence && !saved->imported;
	if (p->epochs_dirty) {
		err = -ENOMEM;
		f.window = kmalloc(PLOG_RECORD_WINDOW, GFP_KERNEL);
		if (!f.window)
			goto err_drop;
		/* a torn tail took the batches of these */
		plog_epoch_cut(&list, log_end + 1);
		if (list.list && !list.list->count)
			plog_epoch_drop(&list);
		err = check(&f, &list, &rebuilt);
		kfree(f.window);
		if (err)
			goto err_drop;
		if (rebuilt && !unusable)
			pr_warn("%s: " PLOG_EPOCH_NAME " does not fit the log: taking the leader epochs from there\n",
				p->name);
	}
	plog_epoch_trim(&list, saved->log_start);
	*out = plog_epoch_finish(&list);
	saved->leader_epoch = max_t(s32, saved->leader_epoch, plog_epoch_last(*out));
	return 0;

err_drop:
	plog_epoch_drop(&list);
	return err;
}
