// SPDX-License-Identifier: GPL-2.0
/*
 * Device nodes.  devtmpfs is one for all namespaces, so only the first network
 * namespace has them.  A "!" in a device's name becomes a "/" in devtmpfs.
 */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "cdev.h"
#include "compat.h"
#include "node.h"
#include "object.h"
#include "part.h"

static bool plog_nodes = true;
module_param_named(nodes, plog_nodes, bool, 0444);
MODULE_PARM_DESC(nodes, "make device nodes /dev/plog/TOPIC/PARTITION where a partition asks for one (default Y)");

struct plog_node {
	struct device dev;
	kuid_t uid;
	kgid_t gid;
	umode_t mode;
};

static dev_t plog_node_region;
static struct class *plog_class;
static struct cdev plog_node_cdev;
/* Partitions by minor number. */
static DEFINE_XARRAY_ALLOC(plog_minors);

static void node_release(struct device *dev)
{
	kfree(container_of(dev, struct plog_node, dev));
	plog_object_destroyed(PLOG_OBJECT_NODE);
}

static char *node_devnode(PLOG_DEVNODE_CONST struct device *dev, umode_t *mode,
			  kuid_t *uid, kgid_t *gid)
{
	PLOG_DEVNODE_CONST struct plog_node *node = container_of(dev, struct plog_node, dev);

	if (mode)
		*mode = node->mode;
	if (uid)
		*uid = node->uid;
	if (gid)
		*gid = node->gid;
	return NULL;
}

static const struct device_type plog_node_type = {
	.name = "plog",
	.devnode = node_devnode,
};

struct plog_node *plog_node_add(struct plog_part *part)
{
	struct plog_part_setup setup;
	struct plog_node *node;
	u32 minor;
	int err;

	if (!plog_nodes)
		return NULL;
	node = kzalloc(sizeof(*node), GFP_KERNEL);
	if (!node)
		return ERR_PTR(-ENOMEM);
	plog_part_setup_get(part, &setup);
	node->uid = setup.uid;
	node->gid = setup.gid;
	node->mode = setup.mode;
	plog_object_created(PLOG_OBJECT_NODE);
	device_initialize(&node->dev);
	node->dev.class = plog_class;
	node->dev.type = &plog_node_type;
	node->dev.release = node_release;

	err = xa_alloc(&plog_minors, &minor, part, XA_LIMIT(0, MINORMASK), GFP_KERNEL);
	if (err)
		goto out_put;
	node->dev.devt = MKDEV(MAJOR(plog_node_region), minor);
	err = dev_set_name(&node->dev, "plog!%s!%u", part->topic, part->index);
	if (err)
		goto out_minor;
	err = device_add(&node->dev);
	if (err)
		goto out_minor;
	return node;

out_minor:
	xa_erase(&plog_minors, minor);
out_put:
	put_device(&node->dev);
	return ERR_PTR(err);
}

void plog_node_del(struct plog_node *node)
{
	u32 minor = MINOR(node->dev.devt);

	/*
	 * First: no open finds the partition any more.  NULL keeps the number
	 * taken: nobody else may get it as long as this device has it.
	 */
	xa_store(&plog_minors, minor, NULL, GFP_KERNEL);
	device_unregister(&node->dev);
	xa_erase(&plog_minors, minor);
}

struct plog_part *plog_node_find(unsigned int minor)
{
	struct plog_part *part;

	rcu_read_lock();
	part = xa_load(&plog_minors, minor);
	if (part && !plog_part_tryget(part))
		part = NULL;
	rcu_read_unlock();
	return part;
}

int plog_node_init(void)
{
	int err;

	err = alloc_chrdev_region(&plog_node_region, 0, MINORMASK + 1, "plog");
	if (err)
		return err;
	plog_class = plog_compat_class_create("plog");
	if (IS_ERR(plog_class)) {
		err = PTR_ERR(plog_class);
		goto out_region;
	}
	cdev_init(&plog_node_cdev, &plog_node_fops);
	plog_node_cdev.owner = THIS_MODULE;
	err = cdev_add(&plog_node_cdev, plog_node_region, MINORMASK + 1);
	if (err)
		goto out_class;
	return 0;

out_class:
	class_destroy(plog_class);
out_region:
	unregister_chrdev_region(plog_node_region, MINORMASK + 1);
	return err;
}

void plog_node_exit(void)
{
	cdev_del(&plog_node_cdev);
	class_destroy(plog_class);
	unregister_chrdev_region(plog_node_region, MINORMASK + 1);
	xa_destroy(&plog_minors);
}
