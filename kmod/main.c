// SPDX-License-Identifier: GPL-2.0
/* The module: what comes up in which order, and goes down in reverse. */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "cdev.h"
#include "net.h"
#include "netlink.h"
#include "node.h"
#include "part.h"
#include "partition.h"
#include "version.h"

unsigned int plog_partitions_max = 20000;
module_param_named(partitions_max, plog_partitions_max, uint, 0644);
MODULE_PARM_DESC(partitions_max, "most partitions of one instance (default 20000)");

static int __init plog_init(void)
{
	int err;

	err = plog_engine_init();
	if (err)
		return err;
	err = plog_part_init();
	if (err)
		goto out_engine;
	err = plog_node_init();
	if (err)
		goto out_part;
	err = plog_net_init();
	if (err)
		goto out_node;
	err = plog_netlink_init();
	if (err)
		goto out_net;
	err = plog_cdev_init();
	if (err)
		goto out_netlink;
	return 0;

out_netlink:
	plog_netlink_exit();
out_net:
	plog_net_exit();
out_node:
	plog_node_exit();
out_part:
	plog_part_exit();
out_engine:
	plog_engine_exit();
	rcu_barrier();
	return err;
}

/*
 * No descriptor is open here: each holds the module.  Running instances are
 * closed cleanly, which can take as long as the disk does.
 */
static void __exit plog_exit(void)
{
	plog_cdev_exit();
	plog_netlink_exit();
	plog_net_exit();
	plog_node_exit();
	plog_part_exit();
	plog_engine_exit();
	rcu_barrier();
}

module_init(plog_init);
module_exit(plog_exit);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The plog authors");
MODULE_DESCRIPTION("Partition logs in the page cache, spoken to by Apache Kafka's clients");
MODULE_VERSION(PLOG_VERSION);
MODULE_SOFTDEP("pre: libcrc32c");
