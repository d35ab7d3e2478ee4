/* SPDX-License-Identifier: GPL-2.0 */
/* Netlink messages: what is sent, as netlink.c and dump.c build it, and the events. */
#ifndef _PLOG_MESSAGE_H
#define _PLOG_MESSAGE_H

#include <net/genetlink.h>

struct plog_instance;
struct plog_part;

/* The family, of netlink.c. */
extern struct genl_family plog_family;

/**
 * plog_message_put_instance() - one whole message about an instance
 *
 * Takes the instance's mutex.  Return: 0 or -EMSGSIZE.
 */
int plog_message_put_instance(struct sk_buff *skb, struct plog_instance *inst, u32 portid,
			      u32 seq, int flags, u8 cmd);
/* The same for a partition, and for its counters; never sleep. */
int plog_message_put_partition(struct sk_buff *skb, struct plog_part *part, u32 portid,
			       u32 seq, int flags, u8 cmd, struct netlink_callback *cb);
int plog_message_put_stats(struct sk_buff *skb, struct plog_part *part, u32 portid,
			   u32 seq, int flags, struct netlink_callback *cb);
/* Totals of an instance. */
int plog_message_put_totals(struct sk_buff *skb, struct plog_instance *inst, u32 portid,
			    u32 seq);

/* Bytes that are always enough for one of them. */
#define PLOG_MESSAGE_SIZE	(8 << 10)

/* Send an event to whoever listens in the instance's namespace; may sleep. */
void plog_message_instance(struct plog_instance *inst);
void plog_message_partition(struct plog_part *part);
/* Files of retired segments can be deleted. */
void plog_message_retired(struct plog_part *part);

/* Events may be sent from now on, or not any more: none is under way on return. */
void plog_message_enable(bool on);

#endif /* _PLOG_MESSAGE_H */
