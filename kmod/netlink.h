/* SPDX-License-Identifier: GPL-2.0 */
/* What netlink.c, dump.c, command.c and relay.c share. */
#ifndef _PLOG_NETLINK_H
#define _PLOG_NETLINK_H

#include <linux/plog_netlink.h>
#include <net/genetlink.h>

struct plog_instance;
struct plog_part;

/* TOPIC and INDEX alone. */
extern const struct nla_policy plog_partition_key_nest[PLOG_A_PARTITION_INDEX + 1];
extern const struct nla_policy plog_partition_key_policy[PLOG_A_PARTITION + 1];
extern const struct nla_policy plog_stats_key_nest[PLOG_A_STATS_INDEX + 1];
extern const struct nla_policy plog_stats_key_policy[PLOG_A_STATS + 1];

/* May the sender change things? 0, or -EPERM with a text. */
int plog_netlink_admin(struct sk_buff *skb, struct netlink_ext_ack *extack);

/* Parse the nest @type of a request into @tb[0 .. @max]. */
int plog_netlink_nest(struct nlattr **tb, int max, int type, struct nlattr **attrs,
		      const struct nla_policy *policy, struct netlink_ext_ack *extack);

/* Say why: a literal, or NULL. */
void plog_netlink_why(struct netlink_ext_ack *extack, const char *why);

/* Is it there, and a name? 0 or -EINVAL with a text. */
int plog_netlink_topic(const struct nlattr *attr, struct netlink_ext_ack *extack);

/* The partition with a reference, or as ERR_PTR -EINVAL, -ENOENT with a text. */
struct plog_part *plog_netlink_find(struct plog_instance *inst, const struct nlattr *topic,
				    const struct nlattr *index, struct netlink_ext_ack *extack);

/* dump.c */
int plog_dump_partitions_start(struct netlink_callback *cb);
int plog_dump_partitions(struct sk_buff *skb, struct netlink_callback *cb);
int plog_dump_stats_one(struct sk_buff *skb, struct genl_info *info);
int plog_dump_stats_start(struct netlink_callback *cb);
int plog_dump_stats(struct sk_buff *skb, struct netlink_callback *cb);
int plog_dump_segments_start(struct netlink_callback *cb);
int plog_dump_segments(struct sk_buff *skb, struct netlink_callback *cb);
/* It starts like that of segments. */
int plog_dump_epochs(struct sk_buff *skb, struct netlink_callback *cb);
int plog_dump_retired_start(struct netlink_callback *cb);
int plog_dump_retired(struct sk_buff *skb, struct netlink_callback *cb);
int plog_dump_done(struct netlink_callback *cb);

/* command.c */
int plog_command_retention_run(struct sk_buff *skb, struct genl_info *info);
int plog_command_roll(struct sk_buff *skb, struct genl_info *info);
int plog_command_delete_records(struct sk_buff *skb, struct genl_info *info);
int plog_command_retired_take(struct sk_buff *skb, struct genl_info *info);
int plog_command_retired_done(struct sk_buff *skb, struct genl_info *info);

/* relay.c */
int plog_relay_request(struct sk_buff *skb, struct genl_info *info);
int plog_relay_reply(struct sk_buff *skb, struct genl_info *info);

int plog_netlink_init(void);
void plog_netlink_exit(void);

#endif /* _PLOG_NETLINK_H */
