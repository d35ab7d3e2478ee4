// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Who leads: role and leader epoch, the lease, waiting for acks=all, and what
 * the list of epochs is asked for.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "engine.h"

/* ---- role and epoch ---- */

/* The list for a leader of @epoch that begins now; the one there is for anybody else. */
static int noted(struct plog_partition *p, u32 flags, s32 epoch, struct plog_epochs **next)
{
	struct plog_epochs *list = plog_epoch_list(p);
	struct plog_epoch_builder b;
	int err;

	*next = list;
	if (!plog_leads(flags) || plog_epoch_last(list) == epoch)
		return 0;
	err = plog_epoch_begin(&b, list);
	if (!err)
		err = plog_epoch_assign(&b, epoch, p->pub.log_end);
	if (err)
		plog_epoch_drop(&b);
	else
		*next = plog_epoch_finish(&b);
	return err;
}

/* Under the append mutex: on disk first, then for all to see, in one step. */
static int change_role(struct plog_partition *p, s32 epoch, u32 role, bool below_min_isr)
{
	struct plog_epochs *next, *old = plog_epoch_list(p);
	bool moved = epoch != p->pub.leader_epoch;
	int err;

	err = noted(p, role, epoch, &next);
	if (err)
		return err;
	if (moved || next != old) {
		err = plog_epoch_prepare(p, next, epoch);
		if (err) {
			if (next != old)
				kvfree(next);
			return err;
		}
	}
	p->config.flags = (p->config.flags & ~PLOG_ROLE) | role;
	p->below_min_isr = below_min_isr;
	plog_publish_begin(p);
	plog_epoch_install(p, next, epoch);
	WRITE_ONCE(p->pub.flags, plog_pub_flags(p));
	if (!(role & PLOG_STATE_REPLICATED))
		smp_store_release(&p->pub.high_watermark, p->pub.log_end);
	plog_unstable_replicated(p);
	plog_publish_end(p);
	if (moved || next != old)
		plog_epoch_settle(p);
	if (next != old)
		plog_epoch_free(old);
	return 0;
}

int plog_partition_set_epoch(struct plog_partition *p, s32 epoch)
{
	int err = plog_begin(p, NULL);

	if (err)
		return err;
	if (epoch < p->pub.leader_epoch)
		err = -ESTALE;
	else
		err = change_role(p, epoch, p->config.flags & PLOG_ROLE, p->below_min_isr);
	mutex_unlock(&p->lock);
	/* a writer that waits for the high watermark of an epoch that is over */
	if (!err)
		plog_wake(p);
	return err;
}

static u32 role_of(u32 flags)
{
	return (flags & PLOG_LEAD_REPLICATED ? PLOG_STATE_REPLICATED : 0) |
	       (flags & PLOG_LEAD_LEADER ? PLOG_STATE_LEADER : 0);
}

int plog_partition_lead(struct plog_partition *p, struct plog_lead_args *args)
{
	int err;

	if (args->flags & ~(PLOG_LEAD_REPLICATED | PLOG_LEAD_LEADER | PLOG_LEAD_BELOW_MIN_ISR) ||
	    args->epoch < 0)
		return -EINVAL;
	err = plog_begin(p, NULL);
	if (err)
		return err;
	if (args->epoch < p->pub.leader_epoch ||
	    (args->current_incarnation &&
	     READ_ONCE(*args->current_incarnation) != args->incarnation))
		err = -ESTALE;
	else
		err = change_role(p, args->epoch, role_of(args->flags),
				  args->flags & PLOG_LEAD_BELOW_MIN_ISR);
	p->led |= !err;
	args->log_end = p->pub.log_end;
	args->high_watermark = p->pub.high_watermark;
	mutex_unlock(&p->lock);
	if (!err)
		plog_wake(p);
	return err;
}

/* ---- lease ---- */

void plog_partition_set_lease(struct plog_partition *p, const s64 *deadline)
{
	p->lease = deadline;
}

bool plog_lease_over(const struct plog_partition *p)
{
	s64 deadline;

	if (!p->lease || !(p->config.flags & PLOG_STATE_REPLICATED))
		return false;
	deadline = READ_ONCE(*p->lease);
	return deadline && (s64)ktime_get_boottime_ns() >= deadline;
}

/* ---- acks=all ---- */

int plog_partition_wait_acks(struct plog_partition *p, const struct plog_append_args *args)
{
	struct plog_view view;
	int err;

	err = wait_event_killable(p->waitq, ({
		plog_partition_view(p, &view);
		view.high_watermark > args->last_offset ||
		view.state != PLOG_PARTITION_ONLINE || view.leader_epoch != args->epoch ||
		view.cuts != args->cuts;
	}));
	if (err)
		return -EINTR;
	/* where it was cut off and others came in its place, the watermark says nothing of it */
	if (view.leader_epoch != args->epoch || view.cuts != args->cuts)
		return -ESTALE;
	if (view.high_watermark > args->last_offset)
		return 0;
	return view.state == PLOG_PARTITION_FENCED ? -EROFS : -ENODEV;
}

/* ---- look-ups by epoch ---- */

/*
 * One look at the list with the offsets of the same moment: begins an RCU section.
 * Look again if end_look() says so.
 */
static const struct plog_epochs *begin_look(struct plog_partition *p, unsigned int *seq,
					    struct plog_published *pub)
	__acquires(RCU)
{
	rcu_read_lock();
	*seq = read_seqcount_begin(&p->seq);
	pub->state = READ_ONCE(p->pub.state);
	pub->leader_epoch = READ_ONCE(p->pub.leader_epoch);
	pub->log_start = READ_ONCE(p->pub.log_start);
	pub->log_end = READ_ONCE(p->pub.log_end);
	return rcu_dereference(p->epochs);
}

static bool end_look(struct plog_partition *p, unsigned int seq)
	__releases(RCU)
{
	bool again = read_seqcount_retry(&p->seq, seq);

	rcu_read_unlock();
	return again;
}

int plog_partition_epoch_end(struct plog_partition *p, s32 *epoch, s64 *end, s32 *current_epoch)
{
	const struct plog_epochs *list;
	struct plog_published pub;
	unsigned int seq;
	s32 found;

	do {
		list = begin_look(p, &seq, &pub);
		found = *epoch;
		*end = plog_epoch_end_of(list, pub.log_start, pub.log_end, &found);
	} while (end_look(p, seq));
	*epoch = found;
	*current_epoch = pub.leader_epoch;
	return plog_check_readable(&pub);
}

int plog_partition_epoch_at(struct plog_partition *p, s64 offset, s32 *epoch, s32 *current_epoch)
{
	const struct plog_epochs *list;
	struct plog_published pub;
	unsigned int seq;

	do {
		list = begin_look(p, &seq, &pub);
		*epoch = offset >= pub.log_start && offset <= pub.log_end ?
			 plog_epoch_at(list, offset) : -1;
	} while (end_look(p, seq));
	*current_epoch = pub.leader_epoch;
	return plog_check_readable(&pub);
}

int plog_partition_epochs(struct plog_partition *p, s32 from, struct plog_epoch_info *out,
			  unsigned int max)
{
	const struct plog_epochs *list;
	struct plog_published pub;
	unsigned int seq, n;
	int err;
	u32 i;

	do {
		list = begin_look(p, &seq, &pub);
		n = 0;
		for (i = 0; list && i < list->count && n < max; i++) {
			if (list->entry[i].epoch < from)
				continue;
			/* what ended before the log start is gone */
			if (i + 1 < list->count && list->entry[i + 1].start <= pub.log_start)
				continue;
			out[n].epoch = list->entry[i].epoch;
			out[n++].start = max_t(s64, list->entry[i].start, pub.log_start);
		}
	} while (end_look(p, seq));
	err = plog_check_readable(&pub);
	return err ? err : (int)n;
}
