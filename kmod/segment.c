// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Segments: their files, opened while somebody needs them, and walks over the
 * batches in them.
 */
#define pr_fmt(fmt) "plog: " fmt

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "compat/crc32c.h"
#include "file.h"
#include "object.h"
#include "segment.h"

unsigned int plog_segment_idle_max = 128;

/* Idle segments that one caller closes. */
#define CLOSE_AT_ONCE	8

/* Segments that nobody uses and whose files are open, longest idle first. */
static LIST_HEAD(idle);
static unsigned int idle_count;
static DEFINE_SPINLOCK(idle_lock);

void plog_segment_name(char name[PLOG_SEGMENT_NAME], s64 base, const char *kind)
{
	snprintf(name, PLOG_SEGMENT_NAME, "%020lld.%s", (long long)base, kind);
}

s64 plog_segment_parse(const char *name, unsigned int len)
{
	s64 base = 0;
	int i;

	if (len != 24 || memcmp(name + 20, ".log", 4))
		return -1;
	for (i = 0; i < 20; i++) {
		if (name[i] < '0' || name[i] > '9')
			return -1;
		if (__builtin_mul_overflow(base, (s64)10, &base) ||
		    __builtin_add_overflow(base, (s64)(name[i] - '0'), &base))
			return -1;
	}
	return base;
}

bool plog_segment_is_swap(const char *name, unsigned int len)
{
	return len == 29 && plog_segment_parse(name, 24) >= 0 && !memcmp(name + 24, ".swap", 5);
}

struct plog_segment *plog_segment_alloc(s64 base)
{
	struct plog_segment *seg = kzalloc(sizeof(*seg), GFP_KERNEL);

	if (!seg)
		return NULL;
	seg->base = base;
	refcount_set(&seg->refs, 1);
	atomic_set(&seg->pins, 0);
	atomic_set(&seg->users, 0);
	seg->end = PLOG_END_UNKNOWN;
	seg->cut_low = U64_MAX;
	mutex_init(&seg->flock);
	INIT_LIST_HEAD(&seg->lru);
	seg->index.last_offset = -1;
	seg->timeindex.last_timestamp = -1;
	seg->first_timestamp = -1;
	seg->max_timestamp = -1;
	seg->max_timestamp_offset = base;
	seg->last_producer = -1;
	seg->index_interval = 4096;
	plog_object_created(PLOG_OBJECT_SEGMENT);
	return seg;
}

static void count_file(struct plog_segment *seg, int n)
{
	if (seg->counts)
		atomic_add(n, &seg->counts->files);
}

static void close_files(struct plog_segment *seg)
{
	int n = !!seg->log + !!seg->index.e.file + !!seg->timeindex.e.file;

	/* Without one that is open the partition may be gone. */
	if (n)
		count_file(seg, -n);
	if (seg->log)
		plog_file_close(seg->log);
	seg->log = NULL;
	plog_index_close(&seg->index);
	plog_timeindex_close(&seg->timeindex);
}

void plog_segment_put(struct plog_segment *seg)
{
	if (!refcount_dec_and_test(&seg->refs))
		return;
	close_files(seg);
	mutex_destroy(&seg->flock);
	kfree_rcu(seg, rcu);
	plog_object_destroyed(PLOG_OBJECT_SEGMENT);
}

/* ---- files ---- */

static struct plog_file *open_kind(struct plog_segment *seg, struct plog_dir *dir,
				   const char *kind, u32 flags)
{
	char name[PLOG_SEGMENT_NAME], swap[16];

	/* its name may be another segment's by now */
	if (seg->retired)
		return ERR_PTR(-ESTALE);
	if (READ_ONCE(seg->swap)) {
		snprintf(swap, sizeof(swap), "%s.swap", kind);
		kind = swap;
		flags &= ~PLOG_FILE_CREATE;
	}
	plog_segment_name(name, seg->base, kind);
	return plog_file_open(dir, name, flags);
}

static int open_log(struct plog_segment *seg, struct plog_dir *dir, u32 flags)
{
	struct plog_file *file;
	u64 inode;
	u32 gen;

	if (seg->log)
		return 0;
	file = open_kind(seg, dir, "log", flags);
	if (IS_ERR(file))
		return PTR_ERR(file);
	plog_file_identity(file, &inode, &gen);
	if (seg->inode && (seg->inode != inode || seg->inode_gen != gen)) {
		pr_err_ratelimited("%020lld.log is another file than it was: it is not read\n",
				   (long long)seg->base);
		plog_file_close(file);
		return -EUCLEAN;
	}
	seg->inode = inode;
	seg->inode_gen = gen;
	seg->log = file;
	count_file(seg, 1);
	return 0;
}

/*
 * An index is a help: without a file look-ups walk the log.
 * @make: it where it is missing; nobody misses that of an empty segment
 */
static bool open_index(struct plog_segment *seg, struct plog_dir *dir, const char *kind,
		       struct plog_file **where, bool make)
{
	struct plog_file *file;

	if (*where)
		return true;
	file = open_kind(seg, dir, kind, make ? PLOG_FILE_CREATE : 0);
	if (IS_ERR(file) && (seg->retired || seg->swap || PTR_ERR(file) == -EINTR ||
			     (!make && PTR_ERR(file) == -ENOENT)))
		return false;
	if (IS_ERR(file)) {
		pr_warn_ratelimited("cannot open %020lld.%s (error %ld): look-ups will be slow\n",
				    (long long)seg->base, kind, PTR_ERR(file));
		return false;
	}
	/* of the last segment, readers may be searching: nothing, until there are entries */
	smp_store_release(where, file);
	count_file(seg, 1);
	return true;
}

int plog_segment_create_log(struct plog_segment *seg, struct plog_dir *dir, s64 now,
			    u64 preallocate)
{
	int err = open_log(seg, dir, PLOG_FILE_CREATE);

	if (err)
		return err;
	/* a file of that name is what a truncation has left behind */
	err = plog_file_size(seg->log) ? plog_file_truncate(seg->log, 0) : 0;
	if (err) {
		close_files(seg);
		return err;
	}
	if (preallocate && plog_file_preallocate(seg->log, preallocate))
		pr_warn_ratelimited("%020lld.log: no room of %llu bytes could be had in advance\n",
				    (long long)seg->base, (unsigned long long)preallocate);
	seg->preallocated = preallocate;
	seg->end = 0;
	seg->created = now;
	seg->times_known = true;
	atomic_inc(&seg->users);
	return 0;
}

/* An index that is missing because who was killed did not wait for it is the next one's to make. */
static int check_killed(const struct plog_file *index)
{
	return !index && fatal_signal_pending(current) ? -EINTR : 0;
}

/* The indexes of an empty segment, empty. Return: 0 or -EINTR; else it does without. */
static int make_indexes(struct plog_segment *seg, struct plog_dir *dir)
{
	if (open_index(seg, dir, "index", &seg->index.e.file, true) &&
	    plog_index_reset(&seg->index)) {
		plog_index_close(&seg->index);
		count_file(seg, -1);
	}
	if (open_index(seg, dir, "timeindex", &seg->timeindex.e.file, true) &&
	    plog_timeindex_reset(&seg->timeindex)) {
		plog_timeindex_close(&seg->timeindex);
		count_file(seg, -1);
	}
	return check_killed(seg->index.e.file) || check_killed(seg->timeindex.e.file) ? -EINTR : 0;
}

void plog_segment_empty_indexes(struct plog_segment *seg, struct plog_dir *dir)
{
	mutex_lock(&seg->flock);
	if (open_index(seg, dir, "index", &seg->index.e.file, false))
		plog_index_reset(&seg->index);
	if (open_index(seg, dir, "timeindex", &seg->timeindex.e.file, false))
		plog_timeindex_reset(&seg->timeindex);
	if (!atomic_read(&seg->users))
		close_files(seg);
	mutex_unlock(&seg->flock);
}

int plog_segment_create(struct plog_segment *seg, struct plog_dir *dir, s64 now,
			u64 preallocate)
{
	int err = plog_segment_create_log(seg, dir, now, preallocate);

	if (err)
		return err;
	/* by a worker, whom nobody kills */
	make_indexes(seg, dir);
	plog_index_buffer(&seg->index);
	plog_timeindex_buffer(&seg->timeindex);
	return 0;
}

/* Under flock, or the segment is the caller's alone. */
static int rebuild(struct plog_segment *seg)
{
	s64 next = seg->base;
	u64 end = READ_ONCE(seg->end), valid;

	if (seg->counts)
		atomic64_inc(&seg->counts->rebuilds);
	return plog_segment_scan(seg, end, &next, false, &valid);
}

static int load_index(struct plog_segment *seg, struct plog_dir *dir)
{
	u64 end = READ_ONCE(seg->end);
	int err;

	if (!open_index(seg, dir, "index", &seg->index.e.file, end))
		return end ? check_killed(seg->index.e.file) : 0;
	err = plog_index_load(&seg->index, end);
	if (err && err != -EBADMSG)
		return err;
	/* without entries the log is one interval and a batch, or has lost them */
	if (end <= seg->index_interval) {
		if (err)
			plog_index_reset(&seg->index);
		return 0;
	}
	if (seg->index.e.count)
		return 0;
	open_index(seg, dir, "timeindex", &seg->timeindex.e.file, true);
	err = rebuild(seg);
	if (!err && seg->index.e.count)
		pr_warn("%020lld.index was damaged or missing and has been built anew\n",
			(long long)seg->base);
	return err;
}

static int load(struct plog_segment *seg, struct plog_dir *dir)
{
	int err;
	u64 size;

	if (seg->log)
		return 0;
	err = open_log(seg, dir, 0);
	if (err)
		return err;
	if (READ_ONCE(seg->end) == PLOG_END_UNKNOWN) {
		size = plog_file_size(seg->log);
		/* positions of the index have 32 bits */
		WRITE_ONCE(seg->end, min_t(u64, size, INT_MAX));
	}
	err = load_index(seg, dir);
	if (err)
		close_files(seg);
	return err;
}

/* Take it off the list of the idle. Was it there? Then a reference is the caller's. */
static bool unidle(struct plog_segment *seg)
{
	bool was;

	spin_lock(&idle_lock);
	was = !list_empty(&seg->lru);
	if (was) {
		list_del_init(&seg->lru);
		idle_count--;
	}
	spin_unlock(&idle_lock);
	return was;
}

/*
 * One more user, to whom the files are open; and to all who come after without
 * flock, by plog_segment_use(): they must see what was set up before.
 */
static void add_user(struct plog_segment *seg)
{
	(void)atomic_inc_return_release(&seg->users);
}

int plog_segment_open_raw(struct plog_segment *seg, struct plog_dir *dir)
{
	bool was_idle;
	int err;

	/* it may be idle: a look at its size has opened it before */
	mutex_lock(&seg->flock);
	was_idle = unidle(seg);
	err = open_log(seg, dir, 0);
	if (!err) {
		open_index(seg, dir, "index", &seg->index.e.file, true);
		open_index(seg, dir, "timeindex", &seg->timeindex.e.file, true);
		add_user(seg);
	}
	mutex_unlock(&seg->flock);
	if (was_idle)
		plog_segment_put(seg);
	return err;
}

/*
 * Appends go where the batches end: is that the end of the file?  Behind it may lie
 * what somebody else has written there meanwhile.
 */
static int check_end(struct plog_segment *seg)
{
	u64 size = plog_file_size(seg->log);

	if (size < seg->end)
		return -EUCLEAN;
	return size > seg->end ? plog_file_truncate(seg->log, seg->end) : 0;
}

static int use_slow(struct plog_segment *seg, struct plog_dir *dir, bool activate)
{
	bool was_idle;
	int err;

	/* a damaged index may be built anew in there, which takes its time */
	if (mutex_lock_killable(&seg->flock))
		return -EINTR;
	was_idle = unidle(seg);
	err = load(seg, dir);
	if (!err && activate)
		err = check_end(seg);
	if (!err && activate && !seg->end)
		err = make_indexes(seg, dir);
	if (!err && activate)
		err = plog_segment_times(seg, dir);
	if (err && !atomic_read(&seg->users))
		close_files(seg);
	if (!err) {
		add_user(seg);
		if (activate) {
			plog_index_buffer(&seg->index);
			plog_timeindex_buffer(&seg->timeindex);
			WRITE_ONCE(seg->active, true);
		}
	}
	mutex_unlock(&seg->flock);
	if (was_idle)
		plog_segment_put(seg);
	return err;
}

int plog_segment_use(struct plog_segment *seg, struct plog_dir *dir)
{
	if (atomic_inc_not_zero(&seg->users))
		return 0;
	return use_slow(seg, dir, false);
}

static void find_index_from(struct plog_segment *seg)
{
	s32 offset;
	u32 pos;

	seg->index_from = 0;
	if (plog_index_lookup_pos(&seg->index, U64_MAX >> 1, &offset, &pos) > 0)
		seg->index_from = pos;
}

int plog_segment_activate(struct plog_segment *seg, struct plog_dir *dir)
{
	int err = use_slow(seg, dir, true);

	if (!err)
		find_index_from(seg);
	return err;
}

/* Close the one that was idle longest. False: there are not too many. */
static bool close_idle(void)
{
	struct plog_segment *seg = NULL;

	spin_lock(&idle_lock);
	if (idle_count > READ_ONCE(plog_segment_idle_max)) {
		seg = list_first_entry(&idle, struct plog_segment, lru);
		list_del_init(&seg->lru);
		idle_count--;
	}
	spin_unlock(&idle_lock);
	if (!seg)
		return false;
	mutex_lock(&seg->flock);
	/* used again, or used and idle again, since it was taken off? */
	if (!atomic_read(&seg->users) && list_empty(&seg->lru))
		close_files(seg);
	mutex_unlock(&seg->flock);
	plog_segment_put(seg);
	return true;
}

void plog_segment_unuse(struct plog_segment *seg)
{
	int i;

	if (!atomic_dec_and_mutex_lock(&seg->users, &seg->flock))
		return;
	if (seg->retired) {
		close_files(seg);
		mutex_unlock(&seg->flock);
		return;
	}
	refcount_inc(&seg->refs);
	spin_lock(&idle_lock);
	list_add_tail(&seg->lru, &idle);
	idle_count++;
	spin_unlock(&idle_lock);
	mutex_unlock(&seg->flock);
	/* one has come; more go where the limit is lower than it was, but not all at once */
	for (i = 0; i < CLOSE_AT_ONCE && close_idle(); i++)
		;
}

void plog_segment_retire(struct plog_segment *seg)
{
	bool was_idle;

	mutex_lock(&seg->flock);
	WRITE_ONCE(seg->retired, true);
	was_idle = unidle(seg);
	if (!atomic_read(&seg->users))
		close_files(seg);
	mutex_unlock(&seg->flock);
	if (was_idle)
		plog_segment_put(seg);
}

/* ---- walking ---- */

void plog_cursor_init(struct plog_cursor *cur, struct plog_segment *seg, u64 end, u32 cut_gen,
		      u8 *window)
{
	plog_source_file(&cur->src, seg->log, 0, end, window);
	cur->pos = 0;
	cur->end = end;
	cur->cut_gen = cut_gen;
}

int plog_cursor_at(struct plog_cursor *cur, u64 pos)
{
	const u8 *raw;
	int err;

	cur->pos = pos;
	if (pos >= cur->end)
		return 0;
	if (cur->end - pos < PLOG_BATCH_HEADER)
		return -EBADMSG;
	raw = plog_source_at(&cur->src, pos, PLOG_BATCH_HEADER);
	if (IS_ERR(raw))
		return PTR_ERR(raw);
	err = plog_batch_decode(raw, &cur->batch);
	if (err || cur->batch.size > cur->end - pos)
		return -EBADMSG;
	return 1;
}

/* Put the cursor on a batch that the index names and whose offsets lie below @offset. */
static int seek_by_index(struct plog_segment *seg, struct plog_cursor *cur, s64 offset)
{
	s64 relative = offset - seg->base;
	s32 found;
	u32 pos;
	int ret;

	ret = plog_index_lookup(&seg->index, relative, &found, &pos);
	if (ret > 0) {
		if (pos >= cur->end)
			return -EBADMSG;
		ret = plog_cursor_at(cur, pos);
		if (ret > 0 && plog_batch_last_offset(&cur->batch) != seg->base + found)
			ret = -EBADMSG;
		return ret;
	}
	return ret == 0 || ret == -EIO ? plog_cursor_at(cur, 0) : ret;
}

/* The index told a lie. Unless the log was cut under it, it is no good. */
static int distrust(struct plog_segment *seg, struct plog_cursor *cur)
{
	if (smp_load_acquire(&seg->cut_gen) != cur->cut_gen)
		return -ESTALE;
	pr_warn_ratelimited("%020lld.index does not fit its log: building it anew\n",
			    (long long)seg->base);
	WRITE_ONCE(seg->index_bad, true);
	return 0;
}

int plog_segment_repair(struct plog_segment *seg, struct plog_dir *dir)
{
	int err = 0;

	if (!READ_ONCE(seg->index_bad) || READ_ONCE(seg->active))
		return 0;
	if (mutex_lock_killable(&seg->flock))
		return -EINTR;
	if (READ_ONCE(seg->index_bad) && !seg->active) {
		open_index(seg, dir, "timeindex", &seg->timeindex.e.file, true);
		err = rebuild(seg);
	}
	mutex_unlock(&seg->flock);
	return err;
}

int plog_segment_seek(struct plog_segment *seg, struct plog_cursor *cur, s64 offset)
{
	int ret;

	ret = READ_ONCE(seg->index_bad) ? plog_cursor_at(cur, 0) :
					  seek_by_index(seg, cur, offset);
	if (ret == -EBADMSG) {
		ret = distrust(seg, cur);
		if (ret)
			return ret;
		ret = plog_cursor_at(cur, 0);
	}
	while (ret > 0 && plog_batch_last_offset(&cur->batch) < offset) {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		ret = plog_cursor_next(cur);
	}
	if (ret < 0 && smp_load_acquire(&seg->cut_gen) != cur->cut_gen)
		return -ESTALE;
	return ret;
}

/* ---- scanning ---- */

/* What a walk learns; published at its end, since look-ups go on meanwhile. */
struct times {
	s64 first;
	s64 max;
	s64 max_offset;
};

static void learn(struct times *t, const struct plog_batch *b, u64 pos)
{
	if (!pos)
		t->first = b->max_timestamp;
	if (b->count && b->max_timestamp > t->max) {
		t->max = b->max_timestamp;
		t->max_offset = plog_batch_last_offset(b);
	}
}

static void publish_times(struct plog_segment *seg, const struct times *t)
{
	WRITE_ONCE(seg->first_timestamp, t->first);
	seg->max_timestamp_offset = t->max_offset;
	WRITE_ONCE(seg->max_timestamp, t->max);
	smp_store_release(&seg->times_known, true);
}

static void add_entries(struct plog_segment *seg, s64 last_offset, u64 pos, s64 max, s64 max_offset)
{
	plog_index_append(&seg->index, last_offset - seg->base, pos);
	plog_timeindex_append(&seg->timeindex, max, max_offset - seg->base);
}

void plog_segment_note(struct plog_segment *seg, s64 last_offset, s64 max_timestamp, u64 pos)
{
	if (!pos)
		WRITE_ONCE(seg->first_timestamp, max_timestamp);
	if (max_timestamp > seg->max_timestamp) {
		WRITE_ONCE(seg->max_timestamp, max_timestamp);
		seg->max_timestamp_offset = last_offset;
	}
	if (pos - seg->index_from > seg->index_interval) {
		add_entries(seg, last_offset, pos, seg->max_timestamp, seg->max_timestamp_offset);
		seg->index_from = pos;
	}
	if (READ_ONCE(seg->index_bad)) {
		mutex_lock(&seg->flock);
		rebuild(seg);
		mutex_unlock(&seg->flock);
	}
}

void plog_segment_seal(struct plog_segment *seg)
{
	plog_timeindex_append(&seg->timeindex, seg->max_timestamp,
			      seg->max_timestamp_offset - seg->base);
	plog_index_trim(&seg->index);
	plog_timeindex_trim(&seg->timeindex);
}

void plog_segment_trim(struct plog_segment *seg)
{
	/* what cannot be given back does no harm */
	if (seg->preallocated)
		plog_file_truncate(seg->log, seg->end);
	seg->preallocated = false;
}

int plog_segment_check(struct plog_segment *seg, struct plog_cursor *cur, s64 next, bool crc)
{
	struct plog_batch *b = &cur->batch;
	const u8 *raw;
	s64 last;
	u32 sum;
	int err;

	if (b->base_offset < next || b->base_offset < seg->base ||
	    __builtin_add_overflow(b->base_offset, (s64)b->last_offset_delta, &last) ||
	    last == S64_MAX || last - seg->base > INT_MAX)
		return -EBADMSG;
	if (!crc)
		return 0;
	raw = plog_source_at(&cur->src, cur->pos, PLOG_BATCH_HEADER);
	if (IS_ERR(raw))
		return PTR_ERR(raw);
	sum = crc32c(~0u, raw + PLOG_BATCH_CRC_START, PLOG_BATCH_HEADER - PLOG_BATCH_CRC_START);
	err = plog_file_crc32c(seg->log, cur->pos + PLOG_BATCH_HEADER,
			       b->size - PLOG_BATCH_HEADER, &sum);
	if (err)
		return err;
	return ~sum == b->crc ? 0 : -EBADMSG;
}

static int scan(struct plog_segment *seg, u64 file_end, u64 pos, s64 *next, bool crc, bool rebuild,
		struct times *t, u64 *valid)
{
	struct plog_cursor cur;
	u8 *window;
	int ret;

	window = kmalloc(PLOG_RECORD_WINDOW, GFP_KERNEL);
	if (!window)
		return -ENOMEM;
	if (rebuild) {
		/*
		 * Bad until it is done, which a signal can prevent.  Readers may be
		 * searching: an index that cannot be cut is written over, not closed.
		 */
		WRITE_ONCE(seg->index_bad, true);
		plog_index_reset(&seg->index);
		plog_timeindex_reset(&seg->timeindex);
		seg->index_from = 0;
	}
	plog_cursor_init(&cur, seg, file_end, 0, window);
	for (ret = plog_cursor_at(&cur, pos); ret > 0; ret = plog_cursor_next(&cur)) {
		ret = plog_segment_check(seg, &cur, *next, crc);
		if (ret)
			break;
		learn(t, &cur.batch, cur.pos);
		seg->max_epoch = max_t(s32, seg->max_epoch, cur.batch.leader_epoch);
		if (cur.batch.producer_id >= 0)
			seg->last_producer = plog_batch_last_offset(&cur.batch);
		if (rebuild && cur.pos - seg->index_from > seg->index_interval) {
			add_entries(seg, plog_batch_last_offset(&cur.batch), cur.pos, t->max,
				    t->max_offset);
			seg->index_from = cur.pos;
		}
		*next = plog_batch_last_offset(&cur.batch) + 1;
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		cond_resched();
	}
	kfree(window);
	*valid = cur.pos;
	if (ret < 0 && ret != -EBADMSG)
		return ret;
	seg->walked = cur.pos;
	seg->walked_next = *next;
	publish_times(seg, t);
	if (rebuild) {
		plog_segment_seal(seg);
		WRITE_ONCE(seg->index_bad, false);
	}
	return 0;
}

int plog_segment_scan(struct plog_segment *seg, u64 file_end, s64 *next, bool crc, u64 *valid)
{
	struct times t = { -1, -1, seg->base };

	return scan(seg, file_end, 0, next, crc, true, &t, valid);
}

/*
 * The largest timestamp is that of the last time index entry, if the batch it
 * names says so, or of one behind.
 */
static int learn_all_times(struct plog_segment *seg)
{
	u64 end = READ_ONCE(seg->end), from = 0, valid;
	struct plog_timeindex *idx = &seg->timeindex;
	struct times t = { -1, -1, seg->base };
	struct plog_cursor cur;
	s64 next = seg->base;
	u8 *window;
	int ret;

	window = kmalloc(PLOG_RECORD_WINDOW, GFP_KERNEL);
	if (!window)
		return -ENOMEM;
	plog_cursor_init(&cur, seg, end, READ_ONCE(seg->cut_gen), window);
	ret = plog_cursor_at(&cur, 0);
	if (ret > 0) {
		learn(&t, &cur.batch, 0);
		if (idx->e.count) {
			ret = plog_segment_seek(seg, &cur, seg->base + idx->last_offset);
			/* Kafka counts the time of a batch that lost all its records, too */
			if (ret > 0 && (cur.batch.max_timestamp != idx->last_timestamp ||
					!cur.batch.count ||
					plog_batch_last_offset(&cur.batch) !=
						seg->base + idx->last_offset))
				ret = -EBADMSG;
			if (!ret)
				ret = -EBADMSG;
			from = cur.pos;
			next = cur.batch.base_offset;
		}
	}
	kfree(window);
	if (ret == -EBADMSG) {
		pr_warn_ratelimited("%020lld.timeindex does not fit its log: building it anew\n",
				    (long long)seg->base);
		return rebuild(seg);
	}
	if (ret < 0)
		return ret;
	return scan(seg, end, from, &next, false, false, &t, &valid);
}

int plog_segment_times(struct plog_segment *seg, struct plog_dir *dir)
{
	int err = 0;

	open_index(seg, dir, "timeindex", &seg->timeindex.e.file, READ_ONCE(seg->end));
	if (seg->times_known && !plog_timeindex_is_short(&seg->timeindex))
		return 0;
	if (seg->times_known)
		return rebuild(seg);
	if (seg->timeindex.e.file)
		err = plog_timeindex_load(&seg->timeindex);
	/* a reader that is killed says nothing against the index */
	if (err && err != -EBADMSG)
		return err;
	return err ? rebuild(seg) : learn_all_times(seg);
}

int plog_segment_learn(struct plog_segment *seg, struct plog_dir *dir)
{
	int err;

	if (mutex_lock_killable(&seg->flock))
		return -EINTR;
	err = READ_ONCE(seg->active) ? 0 : plog_segment_times(seg, dir);
	mutex_unlock(&seg->flock);
	return err;
}

int plog_segment_cut(struct plog_segment *seg, struct plog_dir *dir, u64 pos, s64 offset)
{
	int err, bad;

	mutex_lock(&seg->flock);
	err = plog_file_truncate(seg->log, pos);
	/*
	 * Or a power cut could bring back what was cut, behind what is appended
	 * from here on, maybe to another file: a file system may keep the order of
	 * changes of one file alone (btrfs does).
	 */
	if (!err)
		err = plog_file_sync(seg->log, pos, pos);
	plog_index_cut(&seg->index, pos);
	if (open_index(seg, dir, "timeindex", &seg->timeindex.e.file, true)) {
		if (!seg->times_known)
			plog_timeindex_load(&seg->timeindex);
		plog_timeindex_cut(&seg->timeindex, offset - seg->base);
	}
	WRITE_ONCE(seg->times_known, false);
	bad = plog_segment_times(seg, dir);
	find_index_from(seg);
	if (bad == -EINTR || bad == -ENOMEM) {
		/* the cut is done, whatever came then: the next append learns the rest */
		WRITE_ONCE(seg->active, false);
		bad = 0;
	}
	mutex_unlock(&seg->flock);
	return err ? err : bad;
}
