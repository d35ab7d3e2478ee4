// SPDX-License-Identifier: GPL-2.0
/* The device: open, close, read, seek, poll. */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/plog.h>
#include <linux/plog_netlink.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/splice.h>
#include <linux/uio.h>

#include "cdev.h"
#include "net.h"
#include "node.h"
#include "object.h"
#include "part.h"

/* ---- open and close ---- */

static int forward_wake(wait_queue_entry_t *wait, unsigned int mode, int sync, void *key)
{
	struct plog_desc *desc = container_of(wait, struct plog_desc, forward);

	__wake_up(&desc->waitq, mode, 0, key);
	return 1;
}

/* Takes the reference of @inst over, also on failure. */
static struct plog_desc *desc_create(struct plog_instance *inst)
{
	bool privileged = ns_capable_noaudit(&init_user_ns, CAP_NET_ADMIN);
	struct plog_desc *desc;
	int err;

	err = plog_instance_descriptor(inst, privileged);
	if (err)
		goto out_put;
	err = -ENOMEM;
	desc = kzalloc(sizeof(*desc), GFP_KERNEL_ACCOUNT);
	if (!desc)
		goto out_count;
	desc->instance = inst;
	desc->privileged = privileged;
	mutex_init(&desc->lock);
	init_waitqueue_head(&desc->waitq);
	init_waitqueue_func_entry(&desc->forward, forward_wake);
	plog_object_created(PLOG_OBJECT_DESCRIPTOR);
	return desc;

out_count:
	plog_instance_descriptor_end(inst);
out_put:
	plog_instance_put(inst);
	return ERR_PTR(err);
}

static void desc_free(struct plog_desc *desc)
{
	plog_instance_descriptor_end(desc->instance);
	plog_instance_put(desc->instance);
	kvfree(desc->spare);
	kfree(desc);
	plog_object_destroyed(PLOG_OBJECT_DESCRIPTOR);
}

static int control_open(struct inode *inode, struct file *file)
{
	struct plog_desc *desc;

	desc = desc_create(plog_instance_of(current->nsproxy->net_ns));
	if (IS_ERR(desc))
		return PTR_ERR(desc);
	file->private_data = desc;
	return 0;
}

static int node_open(struct inode *inode, struct file *file)
{
	struct plog_part *part = plog_node_find(iminor(inode));
	struct plog_desc *desc;
	int err;

	if (!part)
		return -ENODEV;
	plog_instance_get(part->instance);
	desc = desc_create(part->instance);
	err = PTR_ERR_OR_ZERO(desc);
	if (err)
		goto out_part;
	mutex_lock(&desc->lock);
	err = plog_cdev_bind(desc, file, part, 0);
	mutex_unlock(&desc->lock);
	if (err)
		goto out_desc;
	file->private_data = desc;
	plog_part_put(part);
	return 0;

out_desc:
	desc_free(desc);
out_part:
	plog_part_put(part);
	return err;
}

static int release(struct inode *inode, struct file *file)
{
	struct plog_desc *desc = file->private_data;

	if (desc->incarnation)
		plog_instance_unregister(desc->instance, desc);
	if (desc->part) {
		if (desc->forwarding)
			remove_wait_queue(plog_partition_waitq(desc->part->log), &desc->forward);
		plog_extent_put(&desc->extent);
		plog_reader_release(&desc->reader);
		plog_part_put(desc->part);
	}
	desc_free(desc);
	return 0;
}

int plog_cdev_bind(struct plog_desc *desc, struct file *file, struct plog_part *part, u32 mode)
{
	int mask = 0, err;

	lockdep_assert_held(&desc->lock);

	if (desc->part || desc->incarnation)
		return -EBUSY;
	if (file->f_mode & FMODE_READ)
		mask |= MAY_READ;
	if (file->f_mode & FMODE_WRITE)
		mask |= MAY_WRITE;
	err = plog_part_permission(part, mask);
	if (err)
		return err;

	refcount_inc(&part->ref);
	WRITE_ONCE(desc->mode, mode);
	plog_reader_init(&desc->reader, part->log, plog_desc_end(mode));
	file->f_pos = 0;
	/* Pairs with plog_desc_part(): whoever sees it sees the rest. */
	smp_store_release(&desc->part, part);
	/*
	 * An epoll takes its place in line once and for all, so who came before the
	 * partition is told of it by us.  wq_has_sleeper() has the barrier that pairs
	 * with the one in poll(): it sees the partition, or we see it.
	 */
	if (wq_has_sleeper(&desc->waitq)) {
		add_wait_queue(plog_partition_waitq(part->log), &desc->forward);
		desc->forwarding = true;
		wake_up_all(&desc->waitq);
	}
	return 0;
}

void plog_cdev_set_mode(struct plog_desc *desc, struct file *file, u32 mode)
{
	lockdep_assert_held(&desc->lock);

	plog_extent_put(&desc->extent);
	plog_reader_release(&desc->reader);
	plog_reader_init(&desc->reader, desc->part->log, plog_desc_end(mode));
	desc->want = 0;
	desc->want_end = plog_desc_end(mode);
	file->f_pos = 0;
	WRITE_ONCE(desc->mode, mode);
}

/* ---- read ---- */

/*
 * Sleep until the end that readers stop at is not @seen any more or the state
 * is not @state: then another look can give something else.
 */
static int wait_for_more(struct plog_part *part, enum plog_end end, s64 seen, u32 state)
{
	struct plog_view view;
	int err = plog_part_wait_begin(part);

	if (err)
		return err;
	err = wait_event_interruptible(*plog_partition_waitq(part->log), ({
		plog_partition_view(part->log, &view);
		view.state != state || plog_partition_end(part->log, end) != seen;
	}));
	plog_part_wait_end(part);
	return err;
}

static ssize_t read_record(struct plog_desc *desc, struct kiocb *iocb, struct iov_iter *to)
{
	struct plog_reader *reader = &desc->reader;
	struct plog_part *part = desc->part;
	struct plog_view view;
	enum plog_end end;
	ssize_t n;
	s64 seen;
	int err;

	for (;;) {
		/* Looked at before the record is, so that no wake-up is missed. */
		plog_partition_view(part->log, &view);
		if (mutex_lock_interruptible(&desc->lock))
			return -ERESTARTSYS;
		if (desc->mode & PLOG_MODE_BATCH) {
			mutex_unlock(&desc->lock);
			return -EAGAIN;
		}
		end = plog_desc_end(desc->mode);
		seen = plog_partition_end(part->log, end);
		/* The reader's own start, -1, is the file's 0. */
		if (iocb->ki_pos != max_t(s64, reader->offset, 0))
			plog_reader_seek(reader, iocb->ki_pos);
		n = plog_reader_next(reader, to);
		if (n > 0)
			iocb->ki_pos = reader->offset;
		else if (n == -EAGAIN && reader->offset > iocb->ki_pos)
			/* It went past records that are not shown: once is enough. */
			iocb->ki_pos = reader->offset;
		mutex_unlock(&desc->lock);

		if (n != -EAGAIN)
			return n;
		if (iocb->ki_filp->f_flags & O_NONBLOCK || iocb->ki_flags & IOCB_NOWAIT)
			return n;
		err = wait_for_more(part, end, seen, view.state);
		if (err)
			return err;
	}
}

static ssize_t read_extent(struct plog_desc *desc, struct kiocb *iocb, struct iov_iter *to)
{
	ssize_t n = 0;

	if (mutex_lock_interruptible(&desc->lock))
		return -ERESTARTSYS;
	if (iocb->ki_pos >= 0 && iocb->ki_pos < desc->extent.length) {
		n = plog_extent_read(&desc->extent, iocb->ki_pos, to);
		if (n > 0)
			iocb->ki_pos += n;
	}
	mutex_unlock(&desc->lock);
	return n;
}

static ssize_t read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct plog_desc *desc = iocb->ki_filp->private_data;

	if (!plog_desc_part(desc))
		return -ENOTCONN;
	if (!iov_iter_count(to))
		return 0;
	if (READ_ONCE(desc->mode) & PLOG_MODE_BATCH)
		return read_extent(desc, iocb, to);
	return read_record(desc, iocb, to);
}

/* ---- seek ---- */

static loff_t llseek(struct file *file, loff_t offset, int whence)
{
	struct plog_desc *desc = file->private_data;
	struct plog_part *part = plog_desc_part(desc);
	loff_t ret = -EINVAL;
	s64 base;
	u32 mode;

	if (!part)
		return -ENOTCONN;
	if (mutex_lock_interruptible(&desc->lock))
		return -ERESTARTSYS;
	mode = desc->mode;
	switch (whence) {
	case SEEK_SET:
		base = 0;
		break;
	case SEEK_CUR:
		base = file->f_pos;
		break;
	case SEEK_END:
		base = mode & PLOG_MODE_BATCH ? desc->extent.length :
		       plog_partition_end(part->log, plog_desc_end(mode));
		break;
	default:
		goto out;
	}
	if (check_add_overflow(base, (s64)offset, &base) || base < 0)
		goto out;
	if (mode & PLOG_MODE_BATCH && base > desc->extent.length)
		goto out;
	file->f_pos = base;
	ret = base;
out:
	mutex_unlock(&desc->lock);
	return ret;
}

/* ---- poll ---- */

static __poll_t poll(struct file *file, poll_table *wait)
{
	struct plog_desc *desc = file->private_data;
	struct plog_part *part = plog_desc_part(desc);
	struct plog_view view;
	__poll_t mask = 0;
	loff_t pos;
	u32 mode;

	if (!part) {
		u64 mine = READ_ONCE(desc->incarnation);

		/* A daemon learns here that another one took its place. */
		poll_wait(file, &desc->instance->drained, wait);
		poll_wait(file, &desc->waitq, wait);
		if (mine && READ_ONCE(desc->instance->incarnation) != mine)
			mask |= EPOLLHUP;
		/* Pairs with plog_cdev_bind(). */
		smp_mb();
		part = plog_desc_part(desc);
		if (!part)
			return mask;
	}

	poll_wait(file, plog_partition_waitq(part->log), wait);
	plog_partition_view(part->log, &view);
	pos = READ_ONCE(file->f_pos);
	mode = READ_ONCE(desc->mode);

	if (view.state == PLOG_PARTITION_CLOSED || view.state == PLOG_PARTITION_FAILED)
		mask |= EPOLLHUP | EPOLLERR | EPOLLIN | EPOLLRDNORM;
	/* A fenced one refuses at once, which is not waiting either. */
	if (view.state != PLOG_PARTITION_OPENING)
		mask |= EPOLLOUT | EPOLLWRNORM;
	if (view.state == PLOG_PARTITION_OPENING)
		return mask;

	if (mode & PLOG_MODE_BATCH) {
		u32 length = READ_ONCE(desc->extent.length);

		if (length ? pos < length :
		    plog_partition_end(part->log, READ_ONCE(desc->want_end)) >
		    READ_ONCE(desc->want))
			mask |= EPOLLIN | EPOLLRDNORM;
	} else if (plog_partition_end(part->log, plog_desc_end(mode)) >
		   max_t(s64, pos, view.log_start)) {
		mask |= EPOLLIN | EPOLLRDNORM;
	}
	return mask;
}

static int fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct plog_part *part = plog_desc_part(file->private_data);

	if (!part)
		return -ENOTCONN;
	return plog_partition_sync(part->log);
}

/* ---- registration ---- */

static const struct file_operations plog_control_fops = {
	.owner = THIS_MODULE,
	.open = control_open,
	.release = release,
	.llseek = llseek,
	.read_iter = read_iter,
	.write_iter = plog_write_iter,
	.poll = poll,
	.unlocked_ioctl = plog_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.fsync = fsync,
	.splice_read = plog_splice_read,
	.splice_write = iter_file_splice_write,
};

const struct file_operations plog_node_fops = {
	.owner = THIS_MODULE,
	.open = node_open,
	.release = release,
	.llseek = llseek,
	.read_iter = read_iter,
	.write_iter = plog_write_iter,
	.poll = poll,
	.unlocked_ioctl = plog_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.fsync = fsync,
	.splice_read = plog_splice_read,
	.splice_write = iter_file_splice_write,
};

/*
 * Everybody may open it: binding checks the partition's owner and mode, and
 * registering the capability.
 */
static struct miscdevice plog_control = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "plog-control",
	.fops = &plog_control_fops,
	.mode = 0666,
};

int plog_cdev_init(void)
{
	return misc_register(&plog_control);
}

void plog_cdev_exit(void)
{
	misc_deregister(&plog_control);
}
