// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Retired segments: out of the table, their files still in the directory.
 *
 * A file goes when nobody reads it any more and file.delete.delay.ms are over.
 * The engine unlinks nothing.  If the owner has somebody who does, that one
 * takes an entry, unlinks the files and says so; else the engine cuts the files
 * to nothing, which gives the room back, and the entry stays for who comes
 * later.  An entry is in one hand at a time, and while somebody else may be
 * unlinking its name no segment is given it again: a log that was truncated can
 * come to the same offset once more.  Somebody who has taken it and is not heard
 * of any more may only be slow: what is taken is free again when a taker says so,
 * that one or the next.
 *
 * The list is memory alone.  An open finds the same files again: they are
 * empty, or lie wholly below the log start.  So it need not have all of them: what
 * the engine has emptied where nobody deletes is taken off a list that is long.
 */
#define pr_fmt(fmt) "plog: " fmt

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/slab.h>

#include "engine.h"
#include "event.h"

/* Look again: for a reader that has no pin, one that has, and after a failure. */
#define LOOKUP_POLL_MS	100
#define PIN_POLL_MS	30000
#define RETRY_MS	60000

struct plog_retired *plog_retired_alloc(s64 base)
{
	struct plog_retired *r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);

	if (r)
		r->base = base;
	return r;
}

static void free_one(struct plog_retired *r)
{
	if (r->seg)
		plog_segment_put(r->seg);
	kfree(r);
}

/*
 * A time beyond the end of the clock, as the largest file.delete.delay.ms gives, never
 * comes: the files stay, and listed, until the next open finds them, which does not know
 * when they were retired and lets them go.  So it is with Kafka.
 */
void plog_retired_add(struct plog_partition *p, struct plog_retired *r, u64 delay_ms)
{
	s64 now = plog_uptime_ms();
	bool never = delay_ms > S64_MAX - now;

	r->due = never ? S64_MAX : now + (s64)delay_ms;
	spin_lock(&p->retired_lock);
	r->id = ++p->retired_id;
	list_add_tail(&r->list, &p->retired);
	WRITE_ONCE(p->retired_count, p->retired_count + 1);
	spin_unlock(&p->retired_lock);
	/* from here on whoever deletes may have freed it */
	plog_reap_queue(p, never ? S64_MAX : (s64)delay_ms);
}

/* Are so many listed that an empty file need not be? */
static bool is_full(const struct plog_partition *p)
{
	return READ_ONCE(p->retired_count) >= PLOG_RETIRED_MAX;
}

void plog_retired_add_empty(struct plog_partition *p, s64 base)
{
	struct plog_retired *r = is_full(p) ? NULL : plog_retired_alloc(base);

	if (!r) {
		WRITE_ONCE(p->leftovers, true);
		return;
	}
	r->emptied = true;
	plog_retired_add(p, r, 0);
}

static struct plog_retired *find(struct plog_partition *p, s64 base)
{
	struct plog_retired *r;

	list_for_each_entry(r, &p->retired, list)
		if (r->base == base)
			return r;
	return NULL;
}

static void unlist(struct plog_partition *p, struct plog_retired *r)
{
	list_del(&r->list);
	WRITE_ONCE(p->retired_count, p->retired_count - 1);
}

int plog_retired_reuse(struct plog_partition *p, s64 base)
{
	struct plog_retired *r;
	int err = 0;

	if (!READ_ONCE(p->retired_count))
		return 0;
	spin_lock(&p->retired_lock);
	r = find(p, base);
	if (r && (r->taker || r->emptying)) {
		r = NULL;
		err = -EBUSY;
	}
	if (r)
		unlist(p, r);
	spin_unlock(&p->retired_lock);
	if (r)
		free_one(r);
	return err;
}

/* ---- who reads, and when it is time ---- */

/* The table has let go of it: whoever else holds a reference reads, or is about to. */
static bool held(const struct plog_retired *r)
{
	return r->seg && refcount_read(&r->seg->refs) > 1;
}

static enum plog_retired_state state_of(const struct plog_retired *r, s64 now)
{
	if (r->taker)
		return PLOG_RETIRED_TAKEN;
	if (r->due > now)
		return PLOG_RETIRED_DELAYED;
	if (held(r) || r->emptying)
		return PLOG_RETIRED_HELD;
	return r->emptied ? PLOG_RETIRED_EMPTIED : PLOG_RETIRED_READY;
}

/*
 * Is the list for others to see?  An open may forget it and look again, and its log may
 * come to have a segment of a name that was on it; one that is closed leaves its
 * directory to others.
 */
static int check_listed(const struct plog_partition *p)
{
	int err = plog_check_state(p);

	return err == -EROFS ? 0 : err;
}

int plog_partition_retired(struct plog_partition *p, u64 from,
			   int (*fn)(void *arg, const struct plog_retired_info *info), void *arg)
{
	s64 now = plog_uptime_ms();
	struct plog_retired *r;
	int ret = 0;

	if (check_listed(p))
		return 0;
	spin_lock(&p->retired_lock);
	list_for_each_entry(r, &p->retired, list) {
		struct plog_retired_info info = {
			.id = r->id,
			.base_offset = r->base,
			.bytes = r->bytes,
			.pins = r->seg ? atomic_read(&r->seg->pins) : 0,
			.state = state_of(r, now),
		};

		if (r->id < from)
			continue;
		ret = fn(arg, &info);
		if (ret)
			break;
	}
	spin_unlock(&p->retired_lock);
	return ret;
}

int plog_partition_retired_take(struct plog_partition *p, s64 base, u64 taker)
{
	s64 now = plog_uptime_ms();
	struct plog_retired *r;
	int err = check_listed(p);

	if (err)
		return err;
	spin_lock(&p->retired_lock);
	r = find(p, base);
	if (!r) {
		err = -ENOENT;
	} else {
		switch (state_of(r, now)) {
		case PLOG_RETIRED_DELAYED:
		case PLOG_RETIRED_HELD:
			err = -EBUSY;
			break;
		default:
			r->taker = taker;
		}
	}
	spin_unlock(&p->retired_lock);
	return err;
}

int plog_partition_retired_done(struct plog_partition *p, s64 base, u64 taker, bool gone)
{
	struct plog_retired *r;

	spin_lock(&p->retired_lock);
	r = find(p, base);
	if (!r || r->taker != taker) {
		spin_unlock(&p->retired_lock);
		return -ENOENT;
	}
	r->taker = 0;
	if (gone && r->emptying) {
		/* the engine has it too, and its name until it is through */
		r->gone = true;
		r = NULL;
	} else if (gone) {
		unlist(p, r);
	} else {
		r->due = plog_uptime_ms() + RETRY_MS;
		r = NULL;
	}
	spin_unlock(&p->retired_lock);
	if (r)
		free_one(r);
	else if (!gone)
		plog_reap_queue(p, RETRY_MS);
	return 0;
}

/* ---- reaping ---- */

static int empty_file(struct plog_partition *p, s64 base, const char *kind, bool sync)
{
	char name[PLOG_SEGMENT_NAME];
	struct plog_file *file;
	int err = 0;

	plog_segment_name(name, base, kind);
	file = plog_file_open(p->dir, name, 0);
	if (IS_ERR(file))
		return PTR_ERR(file) == -ENOENT ? 0 : PTR_ERR(file);
	if (plog_file_size(file))
		err = plog_file_truncate(file, 0);
	if (!err && sync)
		err = plog_file_sync(file, 0, 0);
	plog_file_close(file);
	return err;
}

static int empty_files(struct plog_partition *p, s64 base)
{
	int err, bad;

	err = empty_file(p, base, "index", false);
	bad = empty_file(p, base, "timeindex", false);
	err = err ? err : bad;
	/*
	 * The log last: as long as it has bytes an open knows the others too.  Synced,
	 * or a power cut could bring some of it back, beside a log that began anew at
	 * a lower offset.
	 */
	bad = empty_file(p, base, "log", true);
	return err ? err : bad;
}

/* The first that can be emptied; marked, so that nobody takes it. */
static struct plog_retired *next_to_empty(struct plog_partition *p)
{
	s64 now = plog_uptime_ms();
	struct plog_retired *r, *found = NULL;

	spin_lock(&p->retired_lock);
	list_for_each_entry(r, &p->retired, list) {
		if (r->due > now || held(r) || r->emptied || r->emptying)
			continue;
		/*
		 * One that was taken by somebody who is gone too, and stays so: the
		 * bytes need not wait for whoever it is, but the name has to.
		 */
		found = r;
		r->emptying = true;
		break;
	}
	spin_unlock(&p->retired_lock);
	return found;
}

int plog_retired_add_found(struct plog_partition *p, s64 base, u64 bytes)
{
	struct plog_retired *r;

	if (is_full(p) && !empty_files(p, base)) {
		WRITE_ONCE(p->leftovers, true);
		return 0;
	}
	r = plog_retired_alloc(base);
	if (!r)
		return -ENOMEM;
	r->bytes = bytes;
	plog_retired_add(p, r, 0);
	return 0;
}

static void empty_all(struct plog_partition *p)
{
	struct plog_segment *seg;
	struct plog_retired *r;
	int err;

	while ((r = next_to_empty(p))) {
		seg = r->seg;
		err = empty_files(p, r->base);
		if (err)
			pr_warn_ratelimited("%s: %020lld.log is retired and cannot be emptied (error %d)\n",
					    p->name, (long long)r->base, err);
		spin_lock(&p->retired_lock);
		r->emptying = false;
		/* one that is taken is being unlinked, and its name has to wait */
		if (!err && !r->taker && p->retired_count > PLOG_RETIRED_MAX) {
			WRITE_ONCE(p->leftovers, true);
			r->gone = true;
		}
		if (r->gone) {
			unlist(p, r);
			spin_unlock(&p->retired_lock);
			free_one(r);
			continue;
		}
		if (err) {
			r->due = plog_uptime_ms() + RETRY_MS;
			seg = NULL;
		} else {
			r->emptied = true;
			r->bytes = 0;
			r->seg = NULL;
		}
		spin_unlock(&p->retired_lock);
		if (seg)
			plog_segment_put(seg);
	}
}

/* The first behind @id with bytes that a reader may hold, with a reference to its segment. */
static bool next_with_bytes(struct plog_partition *p, u64 *id, s64 *base,
			    struct plog_segment **seg)
{
	struct plog_retired *r;
	bool found = false;

	spin_lock(&p->retired_lock);
	list_for_each_entry(r, &p->retired, list) {
		if (r->id <= *id || r->emptied)
			continue;
		found = true;
		*id = r->id;
		*base = r->base;
		*seg = r->seg;
		if (r->seg)
			refcount_inc(&r->seg->refs);
		break;
	}
	spin_unlock(&p->retired_lock);
	return found;
}

int plog_retired_empty_all(struct plog_partition *p)
{
	struct plog_segment *seg;
	u64 id = 0;
	s64 base;
	int err;

	lockdep_assert_held(&p->lock);
	while (next_with_bytes(p, &id, &base, &seg)) {
		if (seg) {
			plog_segment_void(seg, 0);
			plog_segment_put(seg);
		}
		/* whoever deletes or empties it at the same time does it no harm */
		err = empty_files(p, base);
		if (err)
			return err;
	}
	return 0;
}

/*
 * How long until a look is worth it, for those that cannot go yet; S64_MAX: never.
 * @ready: some can go now, or are with somebody who deletes them.
 */
static s64 next_look(struct plog_partition *p, bool *ready)
{
	s64 now = plog_uptime_ms(), next = S64_MAX, wait;
	struct plog_retired *r;

	*ready = false;
	spin_lock(&p->retired_lock);
	list_for_each_entry(r, &p->retired, list) {
		wait = S64_MAX;
		if (r->due == S64_MAX || r->emptying)
			continue;
		if (r->due > now)
			wait = r->due - now;
		else if (held(r))
			wait = atomic_read(&r->seg->pins) ? PIN_POLL_MS : LOOKUP_POLL_MS;
		else
			*ready = true;
		next = min_t(s64, next, wait);
	}
	spin_unlock(&p->retired_lock);
	return next;
}

void plog_partition_reap(struct plog_partition *p)
{
	u32 state = READ_ONCE(p->pub.state);
	bool ready;
	s64 next;

	/* one that is closed leaves its directory to others */
	if (state != PLOG_PARTITION_ONLINE && state != PLOG_PARTITION_FENCED)
		return;
	next = next_look(p, &ready);
	if (ready && p->ops && p->ops->retired && p->ops->retired(p)) {
		/* who has promised to may die, or not have heard of it */
		next = min_t(s64, next, RETRY_MS);
	} else if (ready) {
		empty_all(p);
		next = next_look(p, &ready);
	}
	if (next != S64_MAX)
		plog_reap_queue(p, next);
}

void plog_reap_work(struct work_struct *work)
{
	struct plog_partition *p = container_of(to_delayed_work(work), struct plog_partition,
						reap_work);

	spin_lock(&p->retired_lock);
	p->reap_queued = false;
	spin_unlock(&p->retired_lock);
	plog_partition_reap(p);
	plog_partition_put(p);
}

void plog_reap_queue(struct plog_partition *p, s64 delay_ms)
{
	s64 at;

	if (delay_ms == S64_MAX)
		return;
	delay_ms = min_t(s64, delay_ms, INT_MAX);
	at = plog_uptime_ms() + delay_ms;
	spin_lock(&p->retired_lock);
	if (!p->reap_stopped && (!p->reap_queued || at < p->reap_at)) {
		p->reap_queued = true;
		p->reap_at = at;
		plog_partition_get(p);
		/* it was pending with a reference of its own: this is not the last */
		if (mod_delayed_work(plog_flush_wq, &p->reap_work, msecs_to_jiffies(delay_ms)))
			plog_partition_put(p);
	}
	spin_unlock(&p->retired_lock);
}

void plog_reap_stop(struct plog_partition *p)
{
	spin_lock(&p->retired_lock);
	p->reap_stopped = true;
	spin_unlock(&p->retired_lock);
	if (cancel_delayed_work_sync(&p->reap_work))
		plog_partition_put(p);
}

void plog_retired_free(struct plog_partition *p)
{
	struct plog_retired *r;

	spin_lock(&p->retired_lock);
	while (!list_empty(&p->retired)) {
		r = list_first_entry(&p->retired, struct plog_retired, list);
		unlist(p, r);
		spin_unlock(&p->retired_lock);
		free_one(r);
		spin_lock(&p->retired_lock);
	}
	spin_unlock(&p->retired_lock);
}
