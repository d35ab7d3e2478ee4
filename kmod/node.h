/* SPDX-License-Identifier: GPL-2.0 */
/* Device nodes /dev/plog/TOPIC/INDEX of the initial network namespace. */
#ifndef _PLOG_NODE_H
#define _PLOG_NODE_H

struct plog_node;
struct plog_part;

/**
 * plog_node_add() - make the node of a partition
 *
 * With owner and mode as they are now.  Sleeps on devtmpfs.
 * Return: the node, or an error as ERR_PTR.
 */
struct plog_node *plog_node_add(struct plog_part *part);

/* Take it away; open descriptors stay. */
void plog_node_del(struct plog_node *node);

/* The partition of a minor number, with a reference, or NULL. */
struct plog_part *plog_node_find(unsigned int minor);

int plog_node_init(void);
void plog_node_exit(void);

#endif /* _PLOG_NODE_H */
