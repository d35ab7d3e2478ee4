// SPDX-License-Identifier: GPL-2.0
/* Instances: one per network namespace, their start, their end, their daemon. */
#define pr_fmt(fmt) "plog: " fmt

#include <linux/file.h>
#include <linux/plog.h>
#include <linux/plog_netlink.h>
#include <linux/rcupdate.h>
#include <linux/reboot.h>
#include <linux/slab.h>
#include <net/netns/generic.h>

#include "message.h"
#include "net.h"
#include "object.h"
#include "part.h"
#include "vfs.h"

/* At a reboot that nobody prepared, this long is waited for each instance. */
#define PLOG_REBOOT_WAIT	(30 * HZ)

struct plog_net {
	struct plog_instance *instance;
};

static unsigned int plog_net_id __read_mostly;

static LIST_HEAD(plog_instances);
static DEFINE_MUTEX(plog_instances_lock);

/* Closes instances; partitions have a work queue of their own to wait for. */
static struct workqueue_struct *plog_stop_wq;

static void stop_work(struct work_struct *work);
static void retention_work(struct work_struct *work);

static struct plog_instance *instance_create(struct net *net)
{
	struct plog_instance *inst;
	int err;

	inst = kzalloc(sizeof(*inst), GFP_KERNEL);
	if (!inst)
		return ERR_PTR(-ENOMEM);
	err = rhashtable_init(&inst->parts, &plog_part_params);
	if (err) {
		kfree(inst);
		return ERR_PTR(err);
	}
	refcount_set(&inst->ref, 1);
	RCU_INIT_POINTER(inst->net, net);
	inst->initial = net_eq(net, &init_net);
	mutex_init(&inst->mutex);
	xa_init(&inst->ids);
	inst->next_id = 1;
	inst->limits = (struct plog_limits) {
		.partitions = clamp_t(u32, READ_ONCE(plog_partitions_max), 1, PLOG_PARTITIONS_LIMIT),
		.waiters = PLOG_WAITERS_DEFAULT,
		.descriptors = PLOG_DESCRIPTORS_DEFAULT,
		.append_bytes = PLOG_MESSAGE_BYTES_MAX,
	};
	init_waitqueue_head(&inst->closed);
	INIT_WORK(&inst->stop_work, stop_work);
	INIT_DELAYED_WORK(&inst->retention_work, retention_work);
	inst->retention_check_ms = PLOG_RETENTION_CHECK_MS;
	spin_lock_init(&inst->daemon_lock);
	init_waitqueue_head(&inst->drained);

	mutex_lock(&plog_instances_lock);
	list_add_tail(&inst->list, &plog_instances);
	mutex_unlock(&plog_instances_lock);
	plog_object_created(PLOG_OBJECT_INSTANCE);
	return inst;
}

void plog_instance_get(struct plog_instance *inst)
{
	refcount_inc(&inst->ref);
}

void plog_instance_put(struct plog_instance *inst)
{
	might_sleep();
	if (!refcount_dec_and_test(&inst->ref))
		return;
	/* Every partition held a reference: there is none left. */
	rhashtable_destroy(&inst->parts);
	xa_destroy(&inst->ids);
	kfree(inst->label);
	kfree(inst);
	plog_object_destroyed(PLOG_OBJECT_INSTANCE);
}

struct plog_instance *plog_instance_of(struct net *net)
{
	struct plog_net *pn = net_generic(net, plog_net_id);

	plog_instance_get(pn->instance);
	return pn->instance;
}

/* ---- retention ---- */

/* The next look. Under the mutex, of an instance that runs. */
static void schedule_retention(struct plog_instance *inst)
{
	plog_instance_get(inst);
	if (mod_delayed_work(plog_stop_wq, &inst->retention_work,
			     msecs_to_jiffies(inst->retention_check_ms)))
		plog_instance_put(inst);
}

static void retention_work(struct work_struct *work)
{
	struct plog_instance *inst = container_of(to_delayed_work(work), struct plog_instance,
						  retention_work);
	struct plog_part *part;
	unsigned long id;

	mutex_lock(&inst->mutex);
	if (inst->state == PLOG_INSTANCE_RUNNING) {
		xa_for_each(&inst->ids, id, part)
			plog_part_retain(part);
		schedule_retention(inst);
	}
	mutex_unlock(&inst->mutex);
	plog_instance_put(inst);
}

int plog_instance_set_retention_check(struct plog_instance *inst, u32 ms)
{
	int err = -ENODEV;

	mutex_lock(&inst->mutex);
	if (inst->state == PLOG_INSTANCE_RUNNING) {
		inst->retention_check_ms = ms;
		schedule_retention(inst);
		err = 0;
	}
	mutex_unlock(&inst->mutex);
	return err;
}

/* ---- limits ---- */

int plog_instance_descriptor(struct plog_instance *inst, bool privileged)
{
	u32 max = READ_ONCE(inst->limits.descriptors);

	if (atomic_inc_return(&inst->descriptors) <= max || privileged)
		return 0;
	atomic_dec(&inst->descriptors);
	pr_warn_ratelimited("max-descriptors (%u) of a network namespace are open: refused one more\n",
			    max);
	return -ENFILE;
}

void plog_instance_descriptor_end(struct plog_instance *inst)
{
	atomic_dec(&inst->descriptors);
}

void plog_instance_limits(struct plog_instance *inst, struct plog_limits *limits)
{
	mutex_lock(&inst->mutex);
	*limits = inst->limits;
	mutex_unlock(&inst->mutex);
}

void plog_instance_limits_set(struct plog_instance *inst, const struct plog_limits *limits)
{
	mutex_lock(&inst->mutex);
	WRITE_ONCE(inst->limits.partitions, limits->partitions);
	WRITE_ONCE(inst->limits.waiters, limits->waiters);
	WRITE_ONCE(inst->limits.descriptors, limits->descriptors);
	WRITE_ONCE(inst->limits.append_bytes, limits->append_bytes);
	mutex_unlock(&inst->mutex);
}

/* ---- start and stop ---- */

int plog_instance_start(struct plog_instance *inst, const char *label,
			struct plog_dir *dir, struct file *lock, const char **why)
{
	char *copy = kstrdup(label, GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	mutex_lock(&inst->mutex);
	if (!copy)
		goto out_unlock;
	err = -ENODEV;
	if (inst->dead) {
		*why = "the network namespace is going away";
		goto out_unlock;
	}
	err = -EBUSY;
	if (inst->state == PLOG_INSTANCE_STOPPING) {
		*why = "the instance is still stopping; wait for the event that it has stopped";
		goto out_unlock;
	}
	if (inst->state == PLOG_INSTANCE_RUNNING) {
		if (strcmp(inst->label, label)) {
			*why = "an instance with another data directory is running";
		} else {
			*why = "the instance is running with this data directory already";
			err = -EEXIST;
		}
		goto out_unlock;
	}
	err = plog_dir_claim(dir);
	if (err) {
		*why = "the data directory is in use in another network namespace";
		goto out_unlock;
	}

	kfree(inst->label);
	inst->label = copy;
	inst->dir = dir;
	inst->lock = lock;
	memset(&inst->gone, 0, sizeof(inst->gone));
	WRITE_ONCE(inst->lease, 0);
	WRITE_ONCE(inst->state, PLOG_INSTANCE_RUNNING);
	inst->retention_check_ms = PLOG_RETENTION_CHECK_MS;
	schedule_retention(inst);
	mutex_unlock(&inst->mutex);
	plog_message_instance(inst);
	return 0;

out_unlock:
	mutex_unlock(&inst->mutex);
	kfree(copy);
	fput(lock);
	plog_dir_put(dir);
	return err;
}

static int stop_locked(struct plog_instance *inst)
{
	lockdep_assert_held(&inst->mutex);

	if (inst->state != PLOG_INSTANCE_RUNNING)
		return -ENODEV;
	WRITE_ONCE(inst->state, PLOG_INSTANCE_STOPPING);
	if (cancel_delayed_work(&inst->retention_work))
		plog_instance_put(inst);
	plog_instance_get(inst);
	queue_work(plog_stop_wq, &inst->stop_work);
	return 0;
}

int plog_instance_stop(struct plog_instance *inst)
{
	int err;

	mutex_lock(&inst->mutex);
	err = stop_locked(inst);
	mutex_unlock(&inst->mutex);
	if (!err)
		plog_message_instance(inst);
	return err;
}

static void stop_work(struct work_struct *work)
{
	struct plog_instance *inst = container_of(work, struct plog_instance, stop_work);
	struct plog_part *part;
	unsigned long id;
	struct plog_dir *dir;
	struct file *lock;

	mutex_lock(&inst->mutex);
	xa_for_each(&inst->ids, id, part)
		plog_part_remove(part, true);
	dir = inst->dir;
	lock = inst->lock;
	inst->dir = NULL;
	inst->lock = NULL;
	mutex_unlock(&inst->mutex);

	wait_event(inst->closed, !atomic_read(&inst->busy));
	/* Only now may somebody else open the directory. */
	plog_dir_lock_put(lock);
	plog_dir_put(dir);
	/* What tasks left to be closed: mounts must be free when people hear of it. */
	flush_delayed_fput();

	mutex_lock(&inst->mutex);
	WRITE_ONCE(inst->state, PLOG_INSTANCE_STOPPED);
	mutex_unlock(&inst->mutex);
	wake_up_all(&inst->closed);
	plog_message_instance(inst);
	plog_instance_put(inst);
}

/* ---- the daemon ---- */

int plog_instance_register(struct plog_instance *inst, const void *daemon, u32 port,
			   u64 *incarnation)
{
	int err;

	spin_lock(&inst->daemon_lock);
	WRITE_ONCE(inst->incarnation, inst->incarnation + 1);
	*incarnation = inst->incarnation;
	inst->daemon = NULL;
	inst->daemon_port = 0;
	spin_unlock(&inst->daemon_lock);
	wake_up_all(&inst->drained);

	/*
	 * No call of the old daemon begins any more, and one that has not taken
	 * its partition's append mutex fails there.  What is left ends by itself.
	 */
	err = wait_event_killable(inst->drained, !READ_ONCE(inst->daemon_calls));
	if (err)
		return -EINTR;

	spin_lock(&inst->daemon_lock);
	/* Somebody else may have registered while we waited. */
	err = inst->incarnation == *incarnation ? 0 : -ESTALE;
	if (!err) {
		inst->daemon = daemon;
		inst->daemon_port = port;
	}
	spin_unlock(&inst->daemon_lock);
	if (!err)
		plog_message_instance(inst);
	return err;
}

void plog_instance_unregister(struct plog_instance *inst, const void *daemon)
{
	bool mine;

	spin_lock(&inst->daemon_lock);
	mine = inst->daemon == daemon;
	if (mine) {
		WRITE_ONCE(inst->incarnation, inst->incarnation + 1);
		inst->daemon = NULL;
		inst->daemon_port = 0;
	}
	spin_unlock(&inst->daemon_lock);
	if (mine) {
		wake_up_all(&inst->drained);
		plog_message_instance(inst);
	}
}

int plog_instance_lease(struct plog_instance *inst, const void *daemon, s64 deadline)
{
	int err = -ESTALE;

	spin_lock(&inst->daemon_lock);
	if (inst->daemon == daemon) {
		WRITE_ONCE(inst->lease, deadline);
		err = 0;
	}
	spin_unlock(&inst->daemon_lock);
	return err;
}

int plog_instance_call(struct plog_instance *inst, u64 incarnation)
{
	int err = -ESTALE;

	spin_lock(&inst->daemon_lock);
	if (inst->daemon && inst->incarnation == incarnation) {
		inst->daemon_calls++;
		err = 0;
	}
	spin_unlock(&inst->daemon_lock);
	return err;
}

void plog_instance_call_end(struct plog_instance *inst)
{
	bool last;

	spin_lock(&inst->daemon_lock);
	last = !--inst->daemon_calls;
	spin_unlock(&inst->daemon_lock);
	if (last && wq_has_sleeper(&inst->drained))
		wake_up_all(&inst->drained);
}

void plog_instance_daemon(struct plog_instance *inst, u64 *incarnation, u32 *port)
{
	spin_lock(&inst->daemon_lock);
	*incarnation = inst->daemon ? inst->incarnation : 0;
	*port = inst->daemon_port;
	spin_unlock(&inst->daemon_lock);
}

/* ---- namespaces ---- */

static int __net_init net_init(struct net *net)
{
	struct plog_net *pn = net_generic(net, plog_net_id);

	pn->instance = instance_create(net);
	return PTR_ERR_OR_ZERO(pn->instance);
}

/*
 * The whole machine's namespaces end in one thread: no I/O here.  The
 * partitions go to our work queues, which only unloading waits for.
 */
static void __net_exit net_pre_exit(struct net *net)
{
	struct plog_net *pn = net_generic(net, plog_net_id);
	struct plog_instance *inst = pn->instance;

	/* A grace period follows before the namespace's sockets go. */
	RCU_INIT_POINTER(inst->net, NULL);

	mutex_lock(&inst->mutex);
	inst->dead = true;
	stop_locked(inst);
	mutex_unlock(&inst->mutex);

	mutex_lock(&plog_instances_lock);
	list_del_init(&inst->list);
	mutex_unlock(&plog_instances_lock);
}

static void __net_exit net_exit(struct net *net)
{
	struct plog_net *pn = net_generic(net, plog_net_id);

	plog_instance_put(pn->instance);
}

static struct pernet_operations plog_net_ops = {
	.init = net_init,
	.pre_exit = net_pre_exit,
	.exit = net_exit,
	.id = &plog_net_id,
	.size = sizeof(struct plog_net),
};

/* The instance after @inst, with a reference; NULL: the first, and none any more. */
static struct plog_instance *next_instance(struct plog_instance *inst)
{
	struct plog_instance *next;

	mutex_lock(&plog_instances_lock);
	if (!inst)
		next = list_first_entry_or_null(&plog_instances, struct plog_instance, list);
	else if (list_empty(&inst->list))
		/* its namespace has gone: nobody knows what was behind it */
		next = NULL;
	else if (list_is_last(&inst->list, &plog_instances))
		next = NULL;
	else
		next = list_next_entry(inst, list);
	/* its namespace has one as long as it is listed */
	if (next)
		plog_instance_get(next);
	mutex_unlock(&plog_instances_lock);
	return next;
}

int plog_instances_walk(int (*fn)(struct plog_instance *inst, void *arg), void *arg)
{
	struct plog_instance *inst, *next;
	int ret = 0;

	for (inst = next_instance(NULL); inst; inst = next) {
		if (!ret)
			ret = fn(inst, arg);
		next = ret ? NULL : next_instance(inst);
		plog_instance_put(inst);
	}
	return ret;
}

/* ---- the machine goes down ---- */

static int reboot_notify(struct notifier_block *nb, unsigned long event, void *unused)
{
	struct plog_instance *inst;

	mutex_lock(&plog_instances_lock);
	list_for_each_entry(inst, &plog_instances, list)
		plog_instance_stop(inst);
	list_for_each_entry(inst, &plog_instances, list)
		if (!wait_event_timeout(inst->closed,
					READ_ONCE(inst->state) != PLOG_INSTANCE_STOPPING,
					PLOG_REBOOT_WAIT))
			pr_warn("%s: still closing, its partitions will be recovered\n",
				inst->label);
	mutex_unlock(&plog_instances_lock);
	return NOTIFY_DONE;
}

static struct notifier_block plog_reboot = {
	.notifier_call = reboot_notify,
};

int plog_net_init(void)
{
	int err;

	plog_stop_wq = alloc_workqueue("plog_stop", WQ_UNBOUND, 0);
	if (!plog_stop_wq)
		return -ENOMEM;
	err = register_pernet_subsys(&plog_net_ops);
	if (err)
		goto out_wq;
	err = register_reboot_notifier(&plog_reboot);
	if (err)
		goto out_pernet;
	return 0;

out_pernet:
	unregister_pernet_subsys(&plog_net_ops);
out_wq:
	destroy_workqueue(plog_stop_wq);
	return err;
}

void plog_net_exit(void)
{
	unregister_reboot_notifier(&plog_reboot);
	unregister_pernet_subsys(&plog_net_ops);
	destroy_workqueue(plog_stop_wq);
}
