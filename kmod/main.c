// SPDX-License-Identifier: GPL-2.0
/* The module: what comes up in which order, and goes down in reverse. */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "cdev.h"
#include "debugfs.h"
#include "engine.h"
#include "net.h"
#include "netlink.h"
#include "node.h"
#include "part.h"
#include "partition.h"
#include "version.h"

unsigned int plog_partitions_max = 20000;
module_param_named(partitions_max, plog_partitions_max, uint, 0644);
MODULE_PARM_DESC(partitions_max, "most partitions of an instance, where it does not say otherwise (default 20000)");

static int set_segments_max(const char *text, const struct kernel_param *kp)
{
	return param_set_uint_minmax(text, kp, 2, PLOG_SEGMENTS_MAX);
}

static const struct kernel_param_ops segments_max_ops = {
	.set = set_segments_max,
	.get = param_get_uint,
};
module_param_cb(segments_max, &segments_max_ops, &plog_segments_max, 0644);
MODULE_PARM_DESC(segments_max, "most segments of one partition, 2 to 1048576 (default 1048576)");

module_param_named(idle_segments_max, plog_segment_idle_max, uint, 0644);
MODULE_PARM_DESC(idle_segments_max, "segments that nobody uses and whose files stay open (default 128)");

module_param_named(active_segments_max, plog_active_max, uint, 0644);
MODULE_PARM_DESC(active_segments_max, "partitions without an append whose last segment's files stay open (default 1024)");

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
	plog_debugfs_init();
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
	plog_debugfs_exit();
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
