// SPDX-License-Identifier: GPL-2.0
/* Netlink messages about instances and partitions. */
#include <linux/plog.h>
#include <linux/plog_netlink.h>
#include <linux/rcupdate.h>

#include "message.h"
#include "net.h"
#include "part.h"
#include "version.h"

/* Partitions that are online, out of all members. */
static u32 count_online(struct plog_instance *inst)
{
	struct plog_view view;
	struct plog_part *part;
	unsigned long id;
	u32 online = 0;

	lockdep_assert_held(&inst->mutex);

	xa_for_each(&inst->ids, id, part) {
		plog_partition_view(part->log, &view);
		online += view.state == PLOG_PARTITION_ONLINE;
	}
	return online;
}

int plog_message_put_instance(struct sk_buff *skb, struct plog_instance *inst, u32 portid,
			      u32 seq, int flags, u8 cmd)
{
	struct nlattr *nest;
	u64 incarnation;
	void *head;
	u32 port;

	head = genlmsg_put(skb, portid, seq, &plog_family, flags, cmd);
	if (!head)
		return -EMSGSIZE;
	nest = nla_nest_start(skb, PLOG_A_INSTANCE);
	if (!nest)
		goto out_cancel;
	plog_instance_daemon(inst, &incarnation, &port);
	mutex_lock(&inst->mutex);
	if (nla_put_u32(skb, PLOG_A_INSTANCE_STATE, inst->state) ||
	    (inst->label && nla_put_string(skb, PLOG_A_INSTANCE_DATA_DIR, inst->label)) ||
	    nla_put_u32(skb, PLOG_A_INSTANCE_PARTITIONS, inst->count) ||
	    nla_put_u32(skb, PLOG_A_INSTANCE_ONLINE, count_online(inst)) ||
	    nla_put_u64_64bit(skb, PLOG_A_INSTANCE_INCARNATION, incarnation,
			      PLOG_A_INSTANCE_PAD) ||
	    nla_put_string(skb, PLOG_A_INSTANCE_VERSION, PLOG_VERSION) ||
	    nla_put_u32(skb, PLOG_A_INSTANCE_RETENTION_CHECK_MS, inst->retention_check_ms) ||
	    nla_put_u32(skb, PLOG_A_INSTANCE_MAX_PARTITIONS, inst->limits.partitions) ||
	    nla_put_u32(skb, PLOG_A_INSTANCE_MAX_WAITERS, inst->limits.waiters) ||
	    nla_put_u32(skb, PLOG_A_INSTANCE_MAX_DESCRIPTORS, inst->limits.descriptors) ||
	    nla_put_u32(skb, PLOG_A_INSTANCE_MAX_APPEND_BYTES, inst->limits.append_bytes) ||
	    nla_put_u32(skb, PLOG_A_INSTANCE_DESCRIPTORS, atomic_read(&inst->descriptors)))
		goto out_unlock;
	mutex_unlock(&inst->mutex);
	nla_nest_end(skb, nest);
	genlmsg_end(skb, head);
	return 0;

out_unlock:
	mutex_unlock(&inst->mutex);
out_cancel:
	genlmsg_cancel(skb, head);
	return -EMSGSIZE;
}

static int put_s64(struct sk_buff *skb, int type, s64 value)
{
	return nla_put_s64(skb, type, value, PLOG_A_PARTITION_PAD);
}

static int put_u64(struct sk_buff *skb, int type, u64 value)
{
	return nla_put_u64_64bit(skb, type, value, PLOG_A_PARTITION_PAD);
}

/* Retention, rolls and flushes. */
static int put_policies(struct sk_buff *skb, const struct plog_config *config)
{
	if (put_s64(skb, PLOG_A_PARTITION_RETENTION_MS, config->retention_ms) ||
	    put_s64(skb, PLOG_A_PARTITION_RETENTION_BYTES, config->retention_bytes) ||
	    put_u64(skb, PLOG_A_PARTITION_FILE_DELETE_DELAY_MS, config->file_delete_delay_ms) ||
	    put_u64(skb, PLOG_A_PARTITION_SEGMENT_JITTER_MS, config->segment_jitter_ms) ||
	    put_u64(skb, PLOG_A_PARTITION_FLUSH_MESSAGES, config->flush_messages) ||
	    put_u64(skb, PLOG_A_PARTITION_FLUSH_MS, config->flush_ms) ||
	    nla_put_u8(skb, PLOG_A_PARTITION_PREALLOCATE, config->preallocate))
		return -EMSGSIZE;
	return 0;
}

int plog_message_put_partition(struct sk_buff *skb, struct plog_part *part, u32 portid,
			       u32 seq, int flags, u8 cmd, struct netlink_callback *cb)
{
	struct plog_part_setup setup;
	struct plog_view view;
	struct nlattr *nest;
	void *head;

	plog_partition_view(part->log, &view);
	plog_part_setup_get(part, &setup);

	head = genlmsg_put(skb, portid, seq, &plog_family, flags, cmd);
	if (!head)
		return -EMSGSIZE;
	if (cb)
		genl_dump_check_consistent(cb, head);
	nest = nla_nest_start(skb, PLOG_A_PARTITION);
	if (!nest)
		goto out_cancel;
	if (nla_put_string(skb, PLOG_A_PARTITION_TOPIC, part->topic) ||
	    nla_put_u32(skb, PLOG_A_PARTITION_INDEX, part->index) ||
	    nla_put(skb, PLOG_A_PARTITION_TOPIC_ID, sizeof(setup.topic_id), setup.topic_id) ||
	    nla_put_u32(skb, PLOG_A_PARTITION_STATE, view.state) ||
	    (view.error && nla_put_u32(skb, PLOG_A_PARTITION_ERROR, view.error)) ||
	    nla_put_u32(skb, PLOG_A_PARTITION_FLAGS, view.flags) ||
	    nla_put_u8(skb, PLOG_A_PARTITION_NODE, !!READ_ONCE(part->node)) ||
	    nla_put_u32(skb, PLOG_A_PARTITION_UID, from_kuid(&init_user_ns, setup.uid)) ||
	    nla_put_u32(skb, PLOG_A_PARTITION_GID, from_kgid(&init_user_ns, setup.gid)) ||
	    nla_put_u32(skb, PLOG_A_PARTITION_MODE, setup.mode) ||
	    nla_put_s32(skb, PLOG_A_PARTITION_LEADER_EPOCH, view.leader_epoch) ||
	    put_s64(skb, PLOG_A_PARTITION_LOG_START, view.log_start) ||
	    put_s64(skb, PLOG_A_PARTITION_HIGH_WATERMARK, view.high_watermark) ||
	    put_s64(skb, PLOG_A_PARTITION_LAST_STABLE, view.last_stable) ||
	    put_s64(skb, PLOG_A_PARTITION_LOG_END, view.log_end) ||
	    nla_put_u64_64bit(skb, PLOG_A_PARTITION_BYTES, view.bytes, PLOG_A_PARTITION_PAD) ||
	    nla_put_u32(skb, PLOG_A_PARTITION_SEGMENTS, view.segments) ||
	    nla_put_u32(skb, PLOG_A_PARTITION_MAX_MESSAGE_BYTES,
			setup.config.max_message_bytes) ||
	    nla_put_u32(skb, PLOG_A_PARTITION_SEGMENT_BYTES, setup.config.segment_bytes) ||
	    nla_put_u64_64bit(skb, PLOG_A_PARTITION_SEGMENT_MS, setup.config.segment_ms,
			      PLOG_A_PARTITION_PAD) ||
	    nla_put_u32(skb, PLOG_A_PARTITION_INDEX_INTERVAL_BYTES,
			setup.config.index_interval_bytes) ||
	    nla_put_u32(skb, PLOG_A_PARTITION_INDEX_BYTES, setup.config.index_bytes) ||
	    put_s64(skb, PLOG_A_PARTITION_MAX_TIMESTAMP, view.max_timestamp) ||
	    put_policies(skb, &setup.config) ||
	    nla_put_u32(skb, PLOG_A_PARTITION_RETIRED, view.retired))
		goto out_cancel;
	nla_nest_end(skb, nest);
	genlmsg_end(skb, head);
	return 0;

out_cancel:
	genlmsg_cancel(skb, head);
	return -EMSGSIZE;
}

/* ---- counters ---- */

static const struct {
	u16 attr;
	u16 offset;
} stats_fields[] = {
#define FIELD(attr, name) { PLOG_A_STATS_##attr, offsetof(struct plog_partition_stats, name) }
	FIELD(APPENDS, appends),
	FIELD(RECORDS, records),
	FIELD(APPEND_BYTES, append_bytes),
	FIELD(APPEND_REFUSED, append_refused),
	FIELD(READS, reads),
	FIELD(READ_BYTES, read_bytes),
	FIELD(WAKEUPS, wakeups),
	FIELD(ROLLS, rolls),
	FIELD(FSYNCS, fsyncs),
	FIELD(RECOVERED_BYTES, recovered_bytes),
	FIELD(TRUNCATED_BYTES, truncated_bytes),
	FIELD(LOOKUPS, lookups),
	FIELD(SYNC_ERRORS, sync_errors),
	FIELD(INDEX_REBUILDS, index_rebuilds),
	FIELD(RETIRED_SEGMENTS, retired_segments),
	FIELD(RETIRED_BYTES, retired_bytes),
#undef FIELD
};

static u64 *stats_field(struct plog_partition_stats *stats, unsigned int i)
{
	return (void *)stats + stats_fields[i].offset;
}

/* What a partition, or all of an instance, holds now. */
struct holds {
	u64 waiters;
	u64 open_files;
	u64 pins;
};

static void add_holds(struct holds *h, struct plog_part *part)
{
	struct plog_partition_gauges g;

	plog_partition_gauges(part->log, &g);
	h->waiters += atomic_read(&part->waiters);
	h->open_files += g.open_files;
	h->pins += g.pins;
}

static int put_stats(struct sk_buff *skb, const char *topic, u32 index,
		     struct plog_partition_stats *stats, const struct holds *h, u32 portid, u32 seq, int flags,
		     struct netlink_callback *cb)
{
	struct nlattr *nest;
	unsigned int i;
	void *head;

	head = genlmsg_put(skb, portid, seq, &plog_family, flags, PLOG_CMD_STATS_GET);
	if (!head)
		return -EMSGSIZE;
	if (cb)
		genl_dump_check_consistent(cb, head);
	nest = nla_nest_start(skb, PLOG_A_STATS);
	if (!nest)
		goto out_cancel;
	if (topic && (nla_put_string(skb, PLOG_A_STATS_TOPIC, topic) ||
		      nla_put_u32(skb, PLOG_A_STATS_INDEX, index)))
		goto out_cancel;
	for (i = 0; i < ARRAY_SIZE(stats_fields); i++)
		if (nla_put_u64_64bit(skb, stats_fields[i].attr, *stats_field(stats, i),
				      PLOG_A_STATS_PAD))
			goto out_cancel;
	if (nla_put_u64_64bit(skb, PLOG_A_STATS_WAITERS, h->waiters, PLOG_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, PLOG_A_STATS_OPEN_FILES, h->open_files, PLOG_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, PLOG_A_STATS_PINS, h->pins, PLOG_A_STATS_PAD))
		goto out_cancel;
	nla_nest_end(skb, nest);
	genlmsg_end(skb, head);
	return 0;

out_cancel:
	genlmsg_cancel(skb, head);
	return -EMSGSIZE;
}

int plog_message_put_stats(struct sk_buff *skb, struct plog_part *part, u32 portid,
			   u32 seq, int flags, struct netlink_callback *cb)
{
	struct plog_partition_stats stats;
	struct holds h = { };

	plog_partition_stats(part->log, &stats);
	add_holds(&h, part);
	return put_stats(skb, part->topic, part->index, &stats, &h, portid, seq, flags, cb);
}

int plog_message_put_totals(struct sk_buff *skb, struct plog_instance *inst, u32 portid,
			    u32 seq)
{
	struct plog_partition_stats sum, one;
	struct holds h = { };
	struct plog_part *part;
	unsigned long id;
	unsigned int i;

	mutex_lock(&inst->mutex);
	sum = inst->gone;
	xa_for_each(&inst->ids, id, part) {
		plog_partition_stats(part->log, &one);
		for (i = 0; i < ARRAY_SIZE(stats_fields); i++)
			*stats_field(&sum, i) += *stats_field(&one, i);
		add_holds(&h, part);
	}
	mutex_unlock(&inst->mutex);
	return put_stats(skb, NULL, 0, &sum, &h, portid, seq, 0, NULL);
}

/* ---- events ---- */

/* RCU; the family is registered. */
static bool events_on;

static bool anybody_listens(struct plog_instance *inst)
{
	struct net *net;
	bool any;

	rcu_read_lock();
	net = rcu_dereference(inst->net);
	any = net && READ_ONCE(events_on) && genl_has_listeners(&plog_family, net, 0);
	rcu_read_unlock();
	return any;
}

/* The namespace, and the family's groups, are there for as long as RCU says so. */
static void send_event(struct plog_instance *inst, struct sk_buff *skb)
{
	struct net *net;

	rcu_read_lock();
	net = rcu_dereference(inst->net);
	if (net && READ_ONCE(events_on))
		genlmsg_multicast_netns(&plog_family, net, skb, 0, 0, GFP_ATOMIC);
	else
		nlmsg_free(skb);
	rcu_read_unlock();
}

/* There is no memory for one: who listens hears that something was lost. */
static void lose_event(struct plog_instance *inst)
{
	struct net *net;

	rcu_read_lock();
	net = rcu_dereference(inst->net);
	if (net && READ_ONCE(events_on))
		genl_set_err(&plog_family, net, 0, 0, -ENOBUFS);
	rcu_read_unlock();
}

void plog_message_instance(struct plog_instance *inst)
{
	struct sk_buff *skb;

	if (!anybody_listens(inst))
		return;
	skb = genlmsg_new(PLOG_MESSAGE_SIZE, GFP_KERNEL);
	if (!skb) {
		lose_event(inst);
		return;
	}
	if (plog_message_put_instance(skb, inst, 0, 0, 0, PLOG_CMD_INSTANCE_NTF))
		nlmsg_free(skb);
	else
		send_event(inst, skb);
}

void plog_message_partition(struct plog_part *part)
{
	struct sk_buff *skb;

	if (!anybody_listens(part->instance))
		return;
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb) {
		lose_event(part->instance);
		return;
	}
	if (plog_message_put_partition(skb, part, 0, 0, 0, PLOG_CMD_PARTITION_NTF, NULL))
		nlmsg_free(skb);
	else
		send_event(part->instance, skb);
}

void plog_message_retired(struct plog_part *part)
{
	struct nlattr *nest;
	struct sk_buff *skb;
	void *head;

	if (!anybody_listens(part->instance))
		return;
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb) {
		lose_event(part->instance);
		return;
	}
	head = genlmsg_put(skb, 0, 0, &plog_family, 0, PLOG_CMD_RETIRED_NTF);
	if (!head)
		goto out_free;
	nest = nla_nest_start(skb, PLOG_A_RETIRED);
	if (!nest || nla_put_string(skb, PLOG_A_RETIRED_TOPIC, part->topic) ||
	    nla_put_u32(skb, PLOG_A_RETIRED_INDEX, part->index))
		goto out_free;
	nla_nest_end(skb, nest);
	genlmsg_end(skb, head);
	send_event(part->instance, skb);
	return;

out_free:
	nlmsg_free(skb);
}

void plog_message_enable(bool on)
{
	WRITE_ONCE(events_on, on);
	synchronize_rcu();
}
