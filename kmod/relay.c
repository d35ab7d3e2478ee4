// SPDX-License-Identifier: GPL-2.0
/*
 * The relay: topic-level commands of plogctl reach the daemon, and its answers
 * the asker.  The kernel checks who may ask and who may answer, and forwards
 * bytes that it does not look into.  It keeps nothing and waits for nobody: an
 * asker that hears nothing asks again.
 */
#include <linux/plog.h>
#include <linux/plog_netlink.h>
#include <net/genetlink.h>

#include "message.h"
#include "net.h"
#include "netlink.h"

static int forward(struct genl_info *info, u32 to, u32 port, struct nlattr *cookie,
		   struct nlattr *payload, u8 cmd)
{
	struct nlattr *nest;
	struct sk_buff *skb;
	void *head;

	skb = genlmsg_new(nla_total_size(0) + 2 * nla_total_size(sizeof(u32)) +
			  nla_total_size(nla_len(payload)), GFP_KERNEL);
	if (!skb)
		return -ENOMEM;
	head = genlmsg_put(skb, 0, 0, &plog_family, 0, cmd);
	if (!head)
		goto out_free;
	nest = nla_nest_start(skb, PLOG_A_RELAY);
	if (!nest || nla_put_u32(skb, PLOG_A_RELAY_PORT, port) ||
	    nla_put_u32(skb, PLOG_A_RELAY_COOKIE, nla_get_u32(cookie)) ||
	    nla_put(skb, PLOG_A_RELAY_PAYLOAD, nla_len(payload), nla_data(payload)))
		goto out_free;
	nla_nest_end(skb, nest);
	genlmsg_end(skb, head);
	return genlmsg_unicast(genl_info_net(info), skb, to);

out_free:
	nlmsg_free(skb);
	return -EMSGSIZE;
}

static int parse(struct nlattr **tb, struct sk_buff *skb, struct genl_info *info)
{
	int err;

	err = plog_netlink_admin(skb, info->extack);
	if (err)
		return err;
	/* The policy of the operation has checked the values. */
	err = plog_netlink_nest(tb, PLOG_A_RELAY_PAYLOAD, PLOG_A_RELAY, info->attrs, NULL,
				info->extack);
	if (err)
		return err;
	if (!tb[PLOG_A_RELAY_COOKIE] || !tb[PLOG_A_RELAY_PAYLOAD]) {
		NL_SET_ERR_MSG(info->extack, "the cookie or the payload is missing");
		return -EINVAL;
	}
	return 0;
}

int plog_relay_request(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[PLOG_A_RELAY_PAYLOAD + 1];
	struct plog_instance *inst;
	u64 incarnation;
	u32 port;
	int err;

	err = parse(tb, skb, info);
	if (err)
		return err;
	inst = plog_instance_of(genl_info_net(info));
	plog_instance_daemon(inst, &incarnation, &port);
	plog_instance_put(inst);
	if (!incarnation || !port) {
		NL_SET_ERR_MSG(info->extack,
			       "no daemon is registered in this network namespace: start plogd");
		return -EHOSTDOWN;
	}
	err = forward(info, port, info->snd_portid, tb[PLOG_A_RELAY_COOKIE],
		      tb[PLOG_A_RELAY_PAYLOAD], PLOG_CMD_RELAY_REQUEST);
	if (err == -ECONNREFUSED) {
		NL_SET_ERR_MSG(info->extack, "the daemon does not listen to netlink any more");
		err = -EHOSTDOWN;
	} else if (err == -EAGAIN) {
		NL_SET_ERR_MSG(info->extack, "the daemon has too many requests waiting: try again");
	}
	return err;
}

int plog_relay_reply(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[PLOG_A_RELAY_PAYLOAD + 1];
	struct plog_instance *inst;
	u64 incarnation;
	u32 port;
	int err;

	err = parse(tb, skb, info);
	if (err)
		return err;
	if (!tb[PLOG_A_RELAY_PORT]) {
		NL_SET_ERR_MSG(info->extack, "the asker's port is missing");
		return -EINVAL;
	}
	inst = plog_instance_of(genl_info_net(info));
	plog_instance_daemon(inst, &incarnation, &port);
	plog_instance_put(inst);
	if (!incarnation || port != info->snd_portid) {
		NL_SET_ERR_MSG(info->extack, "only the registered daemon's netlink port may reply");
		return -EPERM;
	}
	err = forward(info, nla_get_u32(tb[PLOG_A_RELAY_PORT]), port, tb[PLOG_A_RELAY_COOKIE],
		      tb[PLOG_A_RELAY_PAYLOAD], PLOG_CMD_RELAY_REPLY);
	if (err == -ECONNREFUSED)
		NL_SET_ERR_MSG(info->extack, "the asker is gone");
	return err;
}
