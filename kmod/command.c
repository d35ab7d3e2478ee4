// SPDX-License-Identifier: GPL-2.0
/*
 * Netlink requests that make partitions do something: retention, rolls, log
 * starts, and who deletes the files of retired segments.
 *
 * What sleeps on a disk is left to the partition's own work.
 */
#include <linux/plog.h>
#include <linux/plog_netlink.h>
#include <net/genetlink.h>

#include "message.h"
#include "net.h"
#include "netlink.h"
#include "part.h"

/* All partitions, or those of @topic. */
static int run_many(struct plog_instance *inst, const struct nlattr *topic,
		    struct netlink_ext_ack *extack)
{
	struct plog_part *part;
	unsigned long id;
	int err = topic ? plog_netlink_topic(topic, extack) : 0;
	bool any = false;

	if (err)
		return err;
	mutex_lock(&inst->mutex);
	xa_for_each(&inst->ids, id, part) {
		if (topic && strcmp(part->topic, nla_data(topic)))
			continue;
		plog_part_retain(part);
		any = true;
	}
	mutex_unlock(&inst->mutex);
	if (any || !topic)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, topic, "there is no partition of this topic");
	return -ENOENT;
}

int plog_command_retention_run(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[PLOG_A_PARTITION_INDEX + 1] = { };
	struct netlink_ext_ack *extack = info->extack;
	struct plog_instance *inst;
	struct plog_part *part;
	int err;

	err = plog_netlink_admin(skb, extack);
	if (!err && info->attrs[PLOG_A_PARTITION])
		err = plog_netlink_nest(tb, ARRAY_SIZE(tb) - 1, PLOG_A_PARTITION, info->attrs,
					plog_partition_key_nest, extack);
	if (err)
		return err;
	inst = plog_instance_of(genl_info_net(info));
	if (!tb[PLOG_A_PARTITION_INDEX]) {
		err = run_many(inst, tb[PLOG_A_PARTITION_TOPIC], extack);
		goto out;
	}
	part = plog_netlink_find(inst, tb[PLOG_A_PARTITION_TOPIC], tb[PLOG_A_PARTITION_INDEX],
				 extack);
	if (IS_ERR(part)) {
		err = PTR_ERR(part);
		goto out;
	}
	mutex_lock(&inst->mutex);
	plog_part_retain(part);
	mutex_unlock(&inst->mutex);
	plog_part_put(part);
out:
	plog_instance_put(inst);
	return err;
}

static int check_online(struct plog_part *part, struct plog_view *view,
			struct netlink_ext_ack *extack)
{
	plog_partition_view(part->log, view);
	switch (view->state) {
	case PLOG_PARTITION_ONLINE:
		return 0;
	case PLOG_PARTITION_OPENING:
		NL_SET_ERR_MSG(extack, "the partition is still opening");
		return -EAGAIN;
	case PLOG_PARTITION_FENCED:
		NL_SET_ERR_MSG(extack, "the partition is fenced: nothing is changed in it until it is opened again");
		return -EROFS;
	default:
		NL_SET_ERR_MSG(extack, "the partition is not open");
		return -ENODEV;
	}
}

int plog_command_roll(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[PLOG_A_PARTITION_INDEX + 1] = { };
	struct plog_instance *inst;
	struct plog_part *part;
	struct plog_view view;
	int err;

	err = plog_netlink_admin(skb, info->extack);
	if (!err)
		err = plog_netlink_nest(tb, ARRAY_SIZE(tb) - 1, PLOG_A_PARTITION, info->attrs,
					plog_partition_key_nest, info->extack);
	if (err)
		return err;
	inst = plog_instance_of(genl_info_net(info));
	part = plog_netlink_find(inst, tb[PLOG_A_PARTITION_TOPIC], tb[PLOG_A_PARTITION_INDEX],
				 info->extack);
	if (IS_ERR(part)) {
		err = PTR_ERR(part);
		goto out;
	}
	err = check_online(part, &view, info->extack);
	if (!err) {
		mutex_lock(&inst->mutex);
		plog_part_roll(part);
		mutex_unlock(&inst->mutex);
	}
	plog_part_put(part);
out:
	plog_instance_put(inst);
	return err;
}

int plog_command_delete_records(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[PLOG_A_PARTITION_LOG_START + 1] = { };
	struct netlink_ext_ack *extack = info->extack;
	struct plog_instance *inst;
	struct plog_part *part;
	struct plog_view view;
	s64 offset;
	int err;

	err = plog_netlink_admin(skb, extack);
	if (!err)
		/* the policy of the operation has checked the values */
		err = plog_netlink_nest(tb, ARRAY_SIZE(tb) - 1, PLOG_A_PARTITION, info->attrs,
					NULL, extack);
	if (err)
		return err;
	if (!tb[PLOG_A_PARTITION_LOG_START]) {
		NL_SET_ERR_MSG(extack, "the new log start is missing");
		return -EINVAL;
	}
	offset = nla_get_s64(tb[PLOG_A_PARTITION_LOG_START]);
	inst = plog_instance_of(genl_info_net(info));
	part = plog_netlink_find(inst, tb[PLOG_A_PARTITION_TOPIC], tb[PLOG_A_PARTITION_INDEX],
				 extack);
	if (IS_ERR(part)) {
		err = PTR_ERR(part);
		goto out;
	}
	err = check_online(part, &view, extack);
	if (!err && offset > view.high_watermark) {
		NL_SET_ERR_MSG_ATTR(extack, tb[PLOG_A_PARTITION_LOG_START],
				    "the log start cannot be above the high watermark");
		err = -ERANGE;
	}
	if (!err) {
		mutex_lock(&inst->mutex);
		plog_part_delete_records(part, offset);
		mutex_unlock(&inst->mutex);
	}
	plog_part_put(part);
out:
	plog_instance_put(inst);
	return err;
}

/* ---- retired segments ---- */

/*
 * Who may delete: the registered daemon, or, without one, anybody who may
 * change things; those are told apart by their netlink port.
 */
static int taker_of(struct plog_instance *inst, struct genl_info *info,
		    const struct nlattr *incarnation, u64 *taker)
{
	u64 now;
	u32 port;

	plog_instance_daemon(inst, &now, &port);
	if (!incarnation) {
		if (now) {
			NL_SET_ERR_MSG(info->extack,
				       "a daemon is registered: it is the one who deletes");
			return -EBUSY;
		}
		*taker = 1ULL << 63 | info->snd_portid;
		return 0;
	}
	*taker = nla_get_u64(incarnation);
	if (now && *taker == now)
		return 0;
	NL_SET_ERR_MSG_ATTR(info->extack, incarnation, "this is not the registered daemon");
	return -ESTALE;
}

static int retired(struct genl_info *info, bool done)
{
	struct nlattr *tb[PLOG_A_RETIRED_FAILED + 1] = { };
	struct netlink_ext_ack *extack = info->extack;
	struct plog_instance *inst;
	struct plog_part *part;
	u64 taker;
	s64 base;
	int err;

	/* the policy of the operation has checked the values */
	err = plog_netlink_nest(tb, ARRAY_SIZE(tb) - 1, PLOG_A_RETIRED, info->attrs, NULL, extack);
	if (err)
		return err;
	if (!tb[PLOG_A_RETIRED_BASE_OFFSET]) {
		NL_SET_ERR_MSG(extack, "the segment's base offset is missing");
		return -EINVAL;
	}
	base = nla_get_s64(tb[PLOG_A_RETIRED_BASE_OFFSET]);
	inst = plog_instance_of(genl_info_net(info));
	err = taker_of(inst, info, tb[PLOG_A_RETIRED_INCARNATION], &taker);
	if (err)
		goto out;
	part = plog_netlink_find(inst, tb[PLOG_A_RETIRED_TOPIC], tb[PLOG_A_RETIRED_INDEX], extack);
	if (IS_ERR(part)) {
		err = PTR_ERR(part);
		goto out;
	}
	if (done)
		err = plog_partition_retired_done(part->log, base, taker,
						  !tb[PLOG_A_RETIRED_FAILED] ||
						  !nla_get_u8(tb[PLOG_A_RETIRED_FAILED]));
	else
		err = plog_partition_retired_take(part->log, base, taker);
	if (err == -ENOENT)
		plog_netlink_why(extack, done ?
				 "the caller has not taken a segment of this base offset" :
				 "there is no retired segment of this base offset");
	else if (err == -EBUSY)
		NL_SET_ERR_MSG(extack, "somebody reads the segment, or its time has not come");
	else if (err == -EAGAIN)
		NL_SET_ERR_MSG(extack, "the partition is still opening");
	else if (err == -ENODEV)
		NL_SET_ERR_MSG(extack, "the partition is not open");
	plog_part_put(part);
out:
	plog_instance_put(inst);
	return err;
}

int plog_command_retired_take(struct sk_buff *skb, struct genl_info *info)
{
	int err = plog_netlink_admin(skb, info->extack);

	return err ? err : retired(info, false);
}

int plog_command_retired_done(struct sk_buff *skb, struct genl_info *info)
{
	int err = plog_netlink_admin(skb, info->extack);

	return err ? err : retired(info, true);
}
