// SPDX-License-Identifier: GPL-2.0
/*
 * Dumps: partitions, their counters, the segments of one.
 *
 * A dump goes on at the id, or the offset, behind the last one it sent, whatever
 * came or went meanwhile; the reader is told when it did (NLM_F_DUMP_INTR).
 */
#include <linux/fs.h>
#include <linux/plog.h>
#include <linux/plog_netlink.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/sock.h>

#include "message.h"
#include "net.h"
#include "netlink.h"
#include "part.h"

/*
 * struct dump - the state of one, in cb->args[0]
 * @part: whose segments, or NULL
 * @next_id: of the next partition
 * @next_offset: of the next segment, at least; or the next leader epoch
 * @next_retired: of the next retired segment, at least
 * @ended: nothing is left
 * @topic: only that one's partitions, if not empty
 * @refused: an error that the first dumpit gives, with a text: on 6.1 the
 *	start of a dump has no extended ack to put it in
 * @why: that text
 */
struct dump {
	struct plog_instance *instance;
	struct plog_part *part;
	unsigned long next_id;
	s64 next_offset;
	u64 next_retired;
	bool ended;
	char topic[PLOG_TOPIC_SIZE];
	int refused;
	struct netlink_ext_ack why;
};

static struct dump *dump_of(struct netlink_callback *cb)
{
	return (struct dump *)cb->args[0];
}

static int dump_start(struct netlink_callback *cb, int type, const struct nla_policy *policy,
		      const struct nla_policy *nest, struct nlattr **tb)
{
	struct nlattr *attrs[PLOG_A_MAX + 1] = { };
	struct dump *dump;
	int err;

	/* Parsed again: where genl keeps what it parsed changed in 6.6. */
	err = genlmsg_parse(cb->nlh, &plog_family, attrs, type, policy, cb->extack);
	if (err)
		return err;
	if (attrs[type]) {
		err = nla_parse_nested(tb, PLOG_A_PARTITION_INDEX, attrs[type], nest, cb->extack);
		if (err)
			return err;
	}
	dump = kzalloc(sizeof(*dump), GFP_KERNEL);
	if (!dump)
		return -ENOMEM;
	dump->instance = plog_instance_of(sock_net(cb->skb->sk));
	cb->args[0] = (long)dump;
	return 0;
}

int plog_dump_done(struct netlink_callback *cb)
{
	struct dump *dump = dump_of(cb);

	if (!dump)
		return 0;
	if (dump->part)
		plog_part_put(dump->part);
	plog_instance_put(dump->instance);
	kfree(dump);
	return 0;
}

static int filter_start(struct netlink_callback *cb, int type, const struct nla_policy *policy,
			const struct nla_policy *nest)
{
	struct nlattr *tb[PLOG_A_PARTITION_INDEX + 1] = { };
	struct dump *dump;
	int err;

	err = dump_start(cb, type, policy, nest, tb);
	if (err)
		return err;
	dump = dump_of(cb);
	if (tb[PLOG_A_PARTITION_INDEX]) {
		NL_SET_ERR_MSG(&dump->why,
			       "a dump takes no index: ask for one partition without dumping");
		dump->refused = -EINVAL;
	} else if (tb[PLOG_A_PARTITION_TOPIC]) {
		dump->refused = plog_netlink_topic(tb[PLOG_A_PARTITION_TOPIC], &dump->why);
		if (!dump->refused)
			strscpy(dump->topic, nla_data(tb[PLOG_A_PARTITION_TOPIC]),
				sizeof(dump->topic));
	}
	return 0;
}

/* The error of the start, if there was one. */
static int refused(struct dump *dump, struct netlink_callback *cb)
{
	if (dump->refused)
		plog_netlink_why(cb->extack, dump->why._msg);
	return dump->refused;
}

typedef int (*put_fn)(struct sk_buff *skb, struct plog_part *part, struct netlink_callback *cb);

static int walk(struct sk_buff *skb, struct netlink_callback *cb, put_fn put)
{
	struct dump *dump = dump_of(cb);
	struct plog_part *part;
	int err = refused(dump, cb);

	if (err)
		return err;
	/* 0 would mean that nobody looks. */
	cb->seq = READ_ONCE(dump->instance->generation) | 1U << 31;
	while ((part = plog_part_next(dump->instance, dump->next_id))) {
		if (!dump->topic[0] || !strcmp(dump->topic, part->topic))
			err = put(skb, part, cb);
		if (!err)
			dump->next_id = part->id + 1;
		plog_part_put(part);
		if (err)
			break;
	}
	return skb->len ? skb->len : err;
}

static int put_partition(struct sk_buff *skb, struct plog_part *part,
			 struct netlink_callback *cb)
{
	return plog_message_put_partition(skb, part, NETLINK_CB(cb->skb).portid,
					  cb->nlh->nlmsg_seq, NLM_F_MULTI,
					  PLOG_CMD_PARTITION_GET, cb);
}

int plog_dump_partitions_start(struct netlink_callback *cb)
{
	return filter_start(cb, PLOG_A_PARTITION, plog_partition_key_policy,
			    plog_partition_key_nest);
}

int plog_dump_partitions(struct sk_buff *skb, struct netlink_callback *cb)
{
	return walk(skb, cb, put_partition);
}

/* ---- counters ---- */

static int put_stats(struct sk_buff *skb, struct plog_part *part, struct netlink_callback *cb)
{
	return plog_message_put_stats(skb, part, NETLINK_CB(cb->skb).portid,
				      cb->nlh->nlmsg_seq, NLM_F_MULTI, cb);
}

int plog_dump_stats_start(struct netlink_callback *cb)
{
	BUILD_BUG_ON((int)PLOG_A_STATS_TOPIC != (int)PLOG_A_PARTITION_TOPIC ||
		     (int)PLOG_A_STATS_INDEX != (int)PLOG_A_PARTITION_INDEX);
	return filter_start(cb, PLOG_A_STATS, plog_stats_key_policy, plog_stats_key_nest);
}

int plog_dump_stats(struct sk_buff *skb, struct netlink_callback *cb)
{
	return walk(skb, cb, put_stats);
}

/* Without a dump: one partition's, or the totals of the instance. */
int plog_dump_stats_one(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[PLOG_A_STATS_INDEX + 1] = { };
	struct plog_part *part = NULL;
	struct plog_instance *inst;
	struct sk_buff *reply;
	int err;

	if (info->attrs[PLOG_A_STATS]) {
		err = nla_parse_nested(tb, PLOG_A_STATS_INDEX, info->attrs[PLOG_A_STATS],
				       plog_stats_key_nest, info->extack);
		if (err)
			return err;
	}
	inst = plog_instance_of(genl_info_net(info));
	if (tb[PLOG_A_STATS_TOPIC] || tb[PLOG_A_STATS_INDEX]) {
		part = plog_netlink_find(inst, tb[PLOG_A_STATS_TOPIC], tb[PLOG_A_STATS_INDEX],
					 info->extack);
		if (IS_ERR(part)) {
			err = PTR_ERR(part);
			goto out;
		}
	}
	err = -ENOMEM;
	reply = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!reply)
		goto out_part;
	if (part)
		err = plog_message_put_stats(reply, part, info->snd_portid, info->snd_seq, 0,
					     NULL);
	else
		err = plog_message_put_totals(reply, inst, info->snd_portid, info->snd_seq);
	if (err)
		nlmsg_free(reply);
	else
		err = genlmsg_reply(reply, info);
out_part:
	if (part)
		plog_part_put(part);
out:
	plog_instance_put(inst);
	return err;
}

/* ---- segments ---- */

struct segment_walk {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	struct dump *dump;
};

static int put_segment(void *arg, const struct plog_segment_info *seg)
{
	struct segment_walk *walk = arg;
	struct sk_buff *skb = walk->skb;
	struct nlattr *nest;
	void *head;

	head = genlmsg_put(skb, NETLINK_CB(walk->cb->skb).portid, walk->cb->nlh->nlmsg_seq,
			   &plog_family, NLM_F_MULTI, PLOG_CMD_SEGMENT_GET);
	if (!head)
		return -EMSGSIZE;
	nest = nla_nest_start(skb, PLOG_A_SEGMENT);
	if (!nest)
		goto out_cancel;
	if (nla_put_s64(skb, PLOG_A_SEGMENT_BASE_OFFSET, seg->base_offset, PLOG_A_SEGMENT_PAD) ||
	    nla_put_u64_64bit(skb, PLOG_A_SEGMENT_BYTES, seg->bytes, PLOG_A_SEGMENT_PAD) ||
	    nla_put_u32(skb, PLOG_A_SEGMENT_INDEX_BYTES, seg->index_bytes) ||
	    nla_put_u32(skb, PLOG_A_SEGMENT_TIMEINDEX_BYTES, seg->timeindex_bytes) ||
	    nla_put_s64(skb, PLOG_A_SEGMENT_MAX_TIMESTAMP, seg->max_timestamp,
			PLOG_A_SEGMENT_PAD) ||
	    nla_put_u8(skb, PLOG_A_SEGMENT_ACTIVE, seg->active) ||
	    nla_put_u32(skb, PLOG_A_SEGMENT_PINS, seg->pins) ||
	    nla_put_u64_64bit(skb, PLOG_A_SEGMENT_GENERATION, seg->generation,
			      PLOG_A_SEGMENT_PAD))
		goto out_cancel;
	nla_nest_end(skb, nest);
	genlmsg_end(skb, head);
	walk->dump->next_offset = seg->base_offset + 1;
	return 0;

out_cancel:
	genlmsg_cancel(skb, head);
	return -EMSGSIZE;
}

int plog_dump_segments_start(struct netlink_callback *cb)
{
	struct nlattr *tb[PLOG_A_PARTITION_INDEX + 1] = { };
	struct plog_part *part;
	struct dump *dump;
	int err;

	err = dump_start(cb, PLOG_A_PARTITION, plog_partition_key_policy,
			 plog_partition_key_nest, tb);
	if (err)
		return err;
	dump = dump_of(cb);
	part = plog_netlink_find(dump->instance, tb[PLOG_A_PARTITION_TOPIC],
				 tb[PLOG_A_PARTITION_INDEX], &dump->why);
	if (IS_ERR(part)) {
		dump->refused = PTR_ERR(part);
		return 0;
	}
	/* It opens files, and may build an index anew: nothing for strangers. */
	dump->refused = plog_part_permission(part, MAY_READ);
	if (dump->refused) {
		NL_SET_ERR_MSG(&dump->why,
			       "the partition's owner and mode do not let the caller read");
		plog_part_put(part);
		return 0;
	}
	dump->part = part;
	return 0;
}

int plog_dump_segments(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump *dump = dump_of(cb);
	struct segment_walk walk = { .skb = skb, .cb = cb, .dump = dump };
	int err = refused(dump, cb);

	if (err || dump->ended)
		return err;
	err = plog_partition_segments(dump->part->log, dump->next_offset, put_segment, &walk);
	if (!err)
		dump->ended = true;
	return skb->len ? skb->len : err;
}

/* ---- retired segments ---- */

struct retired_walk {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	struct dump *dump;
	struct plog_part *part;
};

/* Under a spinlock. */
static int put_retired(void *arg, const struct plog_retired_info *info)
{
	struct retired_walk *walk = arg;
	struct sk_buff *skb = walk->skb;
	struct nlattr *nest;
	void *head;

	BUILD_BUG_ON((int)PLOG_RETIRED_TAKEN != (int)PLOG_RETIRED_STATE_TAKEN ||
		     (int)PLOG_RETIRED_READY != (int)PLOG_RETIRED_STATE_READY);
	head = genlmsg_put(skb, NETLINK_CB(walk->cb->skb).portid, walk->cb->nlh->nlmsg_seq,
			   &plog_family, NLM_F_MULTI, PLOG_CMD_RETIRED_GET);
	if (!head)
		return -EMSGSIZE;
	nest = nla_nest_start(skb, PLOG_A_RETIRED);
	if (!nest)
		goto out_cancel;
	if (nla_put_string(skb, PLOG_A_RETIRED_TOPIC, walk->part->topic) ||
	    nla_put_u32(skb, PLOG_A_RETIRED_INDEX, walk->part->index) ||
	    nla_put_s64(skb, PLOG_A_RETIRED_BASE_OFFSET, info->base_offset, PLOG_A_RETIRED_PAD) ||
	    nla_put_u64_64bit(skb, PLOG_A_RETIRED_BYTES, info->bytes, PLOG_A_RETIRED_PAD) ||
	    nla_put_u32(skb, PLOG_A_RETIRED_PINS, info->pins) ||
	    nla_put_u32(skb, PLOG_A_RETIRED_STATE, info->state))
		goto out_cancel;
	nla_nest_end(skb, nest);
	genlmsg_end(skb, head);
	walk->dump->next_retired = info->id + 1;
	return 0;

out_cancel:
	genlmsg_cancel(skb, head);
	return -EMSGSIZE;
}

static int put_part_retired(struct sk_buff *skb, struct plog_part *part,
			    struct netlink_callback *cb)
{
	struct retired_walk walk = { .skb = skb, .cb = cb, .dump = dump_of(cb), .part = part };
	int err = plog_partition_retired(part->log, walk.dump->next_retired, put_retired, &walk);

	if (!err)
		walk.dump->next_retired = 0;
	return err;
}

int plog_dump_retired_start(struct netlink_callback *cb)
{
	struct nlattr *tb[PLOG_A_PARTITION_INDEX + 1] = { };
	struct dump *dump;
	int err;

	err = dump_start(cb, PLOG_A_PARTITION, plog_partition_key_policy,
			 plog_partition_key_nest, tb);
	if (err)
		return err;
	dump = dump_of(cb);
	if (tb[PLOG_A_PARTITION_INDEX]) {
		struct plog_part *part = plog_netlink_find(dump->instance,
							   tb[PLOG_A_PARTITION_TOPIC],
							   tb[PLOG_A_PARTITION_INDEX], &dump->why);

		if (IS_ERR(part))
			dump->refused = PTR_ERR(part);
		else
			dump->part = part;
	} else if (tb[PLOG_A_PARTITION_TOPIC]) {
		dump->refused = plog_netlink_topic(tb[PLOG_A_PARTITION_TOPIC], &dump->why);
		if (!dump->refused)
			strscpy(dump->topic, nla_data(tb[PLOG_A_PARTITION_TOPIC]),
				sizeof(dump->topic));
	}
	return 0;
}

int plog_dump_retired(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump *dump = dump_of(cb);
	int err = refused(dump, cb);

	if (err || dump->ended)
		return err;
	if (!dump->part)
		return walk(skb, cb, put_part_retired);
	err = put_part_retired(skb, dump->part, cb);
	if (!err)
		dump->ended = true;
	return skb->len ? skb->len : err;
}

/* ---- leader epochs ---- */

/* Looked at together; what does not fit into the message is looked at again. */
#define EPOCHS_AT_ONCE	16

static int put_epoch(struct sk_buff *skb, struct netlink_callback *cb,
		     const struct plog_epoch_info *epoch)
{
	struct nlattr *nest;
	void *head;

	head = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &plog_family,
			   NLM_F_MULTI, PLOG_CMD_EPOCH_GET);
	if (!head)
		return -EMSGSIZE;
	nest = nla_nest_start(skb, PLOG_A_EPOCH);
	if (!nest || nla_put_s32(skb, PLOG_A_EPOCH_LEADER_EPOCH, epoch->epoch) ||
	    nla_put_s64(skb, PLOG_A_EPOCH_START_OFFSET, epoch->start, PLOG_A_EPOCH_PAD)) {
		genlmsg_cancel(skb, head);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	genlmsg_end(skb, head);
	return 0;
}

int plog_dump_epochs(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct plog_epoch_info epochs[EPOCHS_AT_ONCE];
	struct dump *dump = dump_of(cb);
	int err = refused(dump, cb), i, n;

	while (!err && !dump->ended) {
		n = plog_partition_epochs(dump->part->log, dump->next_offset, epochs,
					  EPOCHS_AT_ONCE);
		if (n < 0)
			err = n;
		for (i = 0; !err && i < n; i++) {
			err = put_epoch(skb, cb, &epochs[i]);
			if (!err)
				dump->next_offset = (s64)epochs[i].epoch + 1;
		}
		if (!err && (n < EPOCHS_AT_ONCE || dump->next_offset > INT_MAX))
			dump->ended = true;
	}
	return skb->len ? skb->len : err;
}
