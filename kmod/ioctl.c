// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of the device.  A call's number holds its size, so a wrong size is
 * an unknown call: -ENOTTY.  Each argument is copied once, checked in the copy
 * and used from the copy.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/plog.h>
#include <linux/plog_netlink.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "cdev.h"
#include "net.h"
#include "part.h"

#define PLOG_MODE_ALL	(PLOG_MODE_BATCH | PLOG_MODE_READ_COMMITTED | PLOG_MODE_ACKS_ALL)
#define PLOG_APPEND_ALL	(PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA | PLOG_APPEND_SYNC | \
			 PLOG_APPEND_UNSTABLE | PLOG_APPEND_ACKS_ALL)
#define PLOG_HEADERS_ALL	(PLOG_HEADERS_PRODUCERS | PLOG_HEADERS_CONTROL | PLOG_HEADERS_LOG_END)
#define PLOG_LOCATE_ALL	(PLOG_LOCATE_COMMITTED | PLOG_LOCATE_LOG_END | PLOG_LOCATE_WHOLE)

#define reserved_used(arg) memchr_inv((arg).reserved, 0, sizeof((arg).reserved))

static bool instance_dead(struct plog_instance *inst)
{
	return READ_ONCE(inst->dead);
}

static long do_info(struct plog_desc *desc, void __user *to)
{
	struct plog_info arg;
	u32 port;

	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (reserved_used(arg))
		return -EINVAL;
	if (instance_dead(desc->instance))
		return -ENODEV;
	arg.abi_major = PLOG_ABI_MAJOR;
	arg.abi_minor = PLOG_ABI_MINOR;
	arg.partitions_max = READ_ONCE(desc->instance->limits.partitions);
	arg.message_bytes_max = READ_ONCE(desc->instance->limits.append_bytes);
	plog_instance_daemon(desc->instance, &arg.incarnation, &port);
	return copy_to_user(to, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static long do_bind(struct plog_desc *desc, struct file *file, void __user *from)
{
	struct plog_part *part;
	struct plog_bind arg;
	size_t len;
	int err;

	if (copy_from_user(&arg, from, sizeof(arg)))
		return -EFAULT;
	if (arg.flags & ~PLOG_MODE_ALL)
		return -EINVAL;
	len = strnlen(arg.topic, sizeof(arg.topic));
	if (len == sizeof(arg.topic) || memchr_inv(arg.topic + len, 0, sizeof(arg.topic) - len) ||
	    !plog_part_topic_valid(arg.topic, len))
		return -EINVAL;

	part = plog_part_find(desc->instance, arg.topic, arg.partition);
	if (!part)
		return -ENODEV;
	err = -EINTR;
	if (mutex_lock_killable(&desc->lock))
		goto out;
	err = plog_cdev_bind(desc, file, part, arg.flags);
	mutex_unlock(&desc->lock);
out:
	plog_part_put(part);
	return err;
}

static long do_register(struct plog_desc *desc, void __user *to)
{
	struct plog_register arg;
	u64 incarnation;
	int err;

	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (arg.flags || reserved_used(arg))
		return -EINVAL;
	if (!desc->privileged || !capable(CAP_NET_ADMIN))
		return -EPERM;
	if (instance_dead(desc->instance))
		return -ENODEV;
	if (mutex_lock_killable(&desc->lock))
		return -EINTR;
	err = -EBUSY;
	if (desc->part || desc->incarnation)
		goto out;
	err = plog_instance_register(desc->instance, desc, arg.netlink_port, &incarnation);
	if (err)
		goto out;
	/* Set even if the copy fails: the registration stands, closing ends it. */
	WRITE_ONCE(desc->incarnation, incarnation);
	arg.incarnation = incarnation;
	if (copy_to_user(to, &arg, sizeof(arg)))
		err = -EFAULT;
out:
	mutex_unlock(&desc->lock);
	return err;
}

static long do_set_mode(struct plog_desc *desc, struct file *file, void __user *from)
{
	struct plog_mode arg;

	if (copy_from_user(&arg, from, sizeof(arg)))
		return -EFAULT;
	if (arg.flags & ~PLOG_MODE_ALL || reserved_used(arg))
		return -EINVAL;
	if (mutex_lock_killable(&desc->lock))
		return -EINTR;
	plog_cdev_set_mode(desc, file, arg.flags);
	mutex_unlock(&desc->lock);
	return 0;
}

static long do_state(struct plog_part *part, void __user *to)
{
	struct plog_part_setup setup;
	struct plog_state arg;
	struct plog_view view;

	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (reserved_used(arg))
		return -EINVAL;
	plog_partition_view(part->log, &view);
	plog_part_setup_get(part, &setup);
	arg.flags = view.flags;
	arg.state = view.state;
	arg.log_start = view.log_start;
	arg.high_watermark = view.high_watermark;
	arg.last_stable = view.last_stable;
	arg.log_end = view.log_end;
	arg.bytes = view.bytes;
	arg.segments = view.segments;
	arg.leader_epoch = view.leader_epoch;
	arg.max_message_bytes = setup.config.max_message_bytes;
	arg.uid = from_kuid_munged(current_user_ns(), setup.uid);
	arg.gid = from_kgid_munged(current_user_ns(), setup.gid);
	arg.mode = setup.mode;
	arg.pad = 0;
	arg.partition = part->index;
	arg.max_timestamp = view.max_timestamp;
	memcpy(arg.topic_id, setup.topic_id, sizeof(arg.topic_id));
	strscpy_pad(arg.topic, part->topic, sizeof(arg.topic));
	return copy_to_user(to, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static long do_append(struct plog_desc *desc, struct file *file, void __user *to)
{
	struct plog_append arg;
	int err;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (arg.flags & ~PLOG_APPEND_ALL || arg.pad || reserved_used(arg) ||
	    (arg.first_unstable && !(arg.flags & PLOG_APPEND_UNSTABLE)))
		return -EINVAL;
	/* An answer that cannot be given must be no append: the caller would repeat it. */
	if (copy_to_user(to, &arg, sizeof(arg)))
		return -EFAULT;
	err = plog_write_append(desc, file, &arg);
	if (err)
		return err;
	return copy_to_user(to, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static long do_locate(struct plog_desc *desc, struct file *file, void __user *to)
{
	struct plog_part *part = desc->part;
	enum plog_end end = PLOG_END_HW;
	struct plog_locate arg;
	struct plog_view view;
	int err;

	if (!(file->f_mode & FMODE_READ))
		return -EBADF;
	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (arg.flags & ~PLOG_LOCATE_ALL || reserved_used(arg))
		return -EINVAL;
	if (arg.flags & PLOG_LOCATE_LOG_END) {
		if (arg.flags & PLOG_LOCATE_COMMITTED)
			return -EINVAL;
		if (!desc->privileged)
			return -EPERM;
		end = PLOG_END_LEO;
	} else if (arg.flags & PLOG_LOCATE_COMMITTED) {
		end = PLOG_END_LSO;
	}

	if (mutex_lock_killable(&desc->lock))
		return -EINTR;
	err = -EINVAL;
	if (!(desc->mode & PLOG_MODE_BATCH))
		goto out;
	plog_extent_put(&desc->extent);
	file->f_pos = 0;
	err = plog_partition_locate(part->log, arg.offset, arg.max_bytes, end,
				    arg.flags & PLOG_LOCATE_WHOLE, &desc->extent, &view);
	if (err && err != -ERANGE)
		goto out;
	WRITE_ONCE(desc->want, arg.offset);
	WRITE_ONCE(desc->want_end, end);
	arg.length = desc->extent.length;
	arg.base_offset = arg.length ? desc->extent.base_offset : -1;
	arg.next_offset = arg.length ? desc->extent.next_offset : arg.offset;
	arg.leader_epoch = view.leader_epoch;
	arg.log_start = view.log_start;
	arg.high_watermark = view.high_watermark;
	arg.last_stable = view.last_stable;
	arg.log_end = view.log_end;
	if (copy_to_user(to, &arg, sizeof(arg)))
		err = -EFAULT;
out:
	mutex_unlock(&desc->lock);
	return err;
}

static long do_lookup(struct plog_part *part, struct file *file, void __user *to)
{
	struct plog_time_hit hit;
	struct plog_lookup arg;
	int err;

	if (!(file->f_mode & FMODE_READ))
		return -EBADF;
	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (arg.flags & ~(PLOG_LOOKUP_COMMITTED | PLOG_LOOKUP_MAX) || reserved_used(arg))
		return -EINVAL;
	if (arg.offset < 0)
		return -EINVAL;
	err = plog_partition_lookup_from(part->log, arg.offset, arg.timestamp,
					 arg.flags & PLOG_LOOKUP_MAX,
					 arg.flags & PLOG_LOOKUP_COMMITTED ? PLOG_END_LSO :
									     PLOG_END_HW, &hit);
	if (err)
		return err;
	arg.offset = hit.offset;
	arg.timestamp = hit.timestamp;
	arg.leader_epoch = hit.leader_epoch;
	arg.flags = (hit.inside ? PLOG_LOOKUP_INSIDE : 0) | (hit.behind ? PLOG_LOOKUP_BEHIND : 0);
	return copy_to_user(to, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static long do_headers(struct plog_desc *desc, struct file *file, void __user *to)
{
	struct plog_batch_header *entries;
	struct plog_headers arg;
	struct plog_view view;
	s64 offset;
	u32 count;
	int err;

	if (!(file->f_mode & FMODE_READ))
		return -EBADF;
	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (arg.flags & ~PLOG_HEADERS_ALL || reserved_used(arg) || !arg.count ||
	    arg.count > PLOG_HEADERS_MAX)
		return -EINVAL;
	if (arg.flags & PLOG_HEADERS_LOG_END && !desc->privileged)
		return -EPERM;
	offset = arg.offset;
	count = arg.count;
	entries = kvmalloc_array(count, sizeof(*entries), GFP_KERNEL_ACCOUNT);
	if (!entries)
		return -ENOMEM;
	err = plog_partition_headers(desc->part->log,
				     arg.flags & PLOG_HEADERS_LOG_END ? PLOG_END_LEO : PLOG_END_HW,
				     arg.flags, &offset, entries, &count, &view);
	if (err && err != -ERANGE)
		goto out;
	arg.offset = offset;
	arg.count = count;
	arg.log_start = view.log_start;
	arg.high_watermark = view.high_watermark;
	arg.last_stable = view.last_stable;
	arg.log_end = view.log_end;
	if (copy_to_user(u64_to_user_ptr(arg.entries), entries, count * sizeof(*entries)) ||
	    copy_to_user(to, &arg, sizeof(arg)))
		err = -EFAULT;
out:
	kvfree(entries);
	return err;
}

static long do_producer(struct plog_part *part, struct file *file, void __user *to)
{
	struct plog_producer arg;
	struct plog_view view;

	if (!(file->f_mode & FMODE_READ))
		return -EBADF;
	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (reserved_used(arg))
		return -EINVAL;
	plog_partition_view(part->log, &view);
	if (view.state == PLOG_PARTITION_OPENING)
		return -EAGAIN;
	if (view.state != PLOG_PARTITION_ONLINE && view.state != PLOG_PARTITION_FENCED)
		return -ENODEV;
	arg.last_offset = view.last_producer;
	arg.first_unstable = view.first_unstable;
	arg.log_start = view.log_start;
	arg.log_end = view.log_end;
	return copy_to_user(to, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static long do_swap(struct plog_desc *desc, struct file *file, void __user *to)
{
	struct plog_instance *inst = desc->instance;
	struct plog_partition *log = desc->part->log;
	struct plog_swap_args args;
	struct plog_fence fence;
	struct plog_swap arg;
	s64 pending, last;
	u64 generation;
	int err;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (reserved_used(arg) || arg.flags & ~(PLOG_SWAP_DONE | PLOG_SWAP_ASK) ||
	    arg.flags == (PLOG_SWAP_DONE | PLOG_SWAP_ASK))
		return -EINVAL;
	if (!desc->privileged)
		return -EPERM;
	fence.leader_epoch = arg.leader_epoch;
	fence.incarnation = arg.incarnation;
	fence.current_incarnation = &inst->incarnation;
	args.generation = arg.generation;
	args.first = arg.first_base;
	args.last = arg.last_base;

	/*
	 * Not counted as a call of the daemon's that a new one waits for: reading
	 * a segment takes its time, and the change itself is fenced.
	 */
	if (arg.flags & PLOG_SWAP_DONE)
		err = plog_partition_swap_done(log, &fence);
	else if (arg.flags & PLOG_SWAP_ASK)
		err = 0;
	else
		err = plog_partition_swap(log, &fence, &args);
	if (err)
		return err;
	err = plog_partition_swap_state(log, &generation, &pending, &last);
	if (err)
		return err;
	arg.generation = generation;
	arg.pending = pending;
	if (arg.flags & PLOG_SWAP_ASK)
		arg.last_base = last;
	return copy_to_user(to, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static bool control_known(u32 command)
{
	switch (command) {
	case PLOG_CONTROL_HIGH_WATERMARK:
	case PLOG_CONTROL_TRUNCATE:
	case PLOG_CONTROL_LOG_START:
	case PLOG_CONTROL_ROLL:
	case PLOG_CONTROL_TRUNCATE_EPOCH:
	case PLOG_CONTROL_UNSTABLE:
	case PLOG_CONTROL_START_AT:
		return true;
	default:
		return false;
	}
}

static long do_control(struct plog_desc *desc, struct file *file, void __user *to)
{
	struct plog_instance *inst = desc->instance;
	struct plog_partition *log = desc->part->log;
	struct plog_control arg;
	struct plog_fence fence;
	s64 offset;
	s32 epoch;
	int err;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (reserved_used(arg) || arg.pad || !control_known(arg.command) ||
	    (arg.epoch && arg.command != PLOG_CONTROL_TRUNCATE_EPOCH))
		return -EINVAL;
	if (!desc->privileged)
		return -EPERM;
	fence.leader_epoch = arg.leader_epoch;
	fence.incarnation = arg.incarnation;
	fence.current_incarnation = &inst->incarnation;
	offset = arg.offset;
	epoch = arg.epoch;

	err = plog_instance_call(inst, arg.incarnation);
	if (err)
		return err;
	switch (arg.command) {
	case PLOG_CONTROL_HIGH_WATERMARK:
		err = plog_partition_set_hw(log, &fence, &offset);
		break;
	case PLOG_CONTROL_TRUNCATE:
		err = plog_partition_truncate(log, &fence, &offset);
		break;
	case PLOG_CONTROL_LOG_START:
		err = plog_partition_set_log_start(log, &fence, &offset);
		break;
	case PLOG_CONTROL_ROLL:
		err = plog_partition_roll(log, &fence, &offset);
		break;
	case PLOG_CONTROL_UNSTABLE:
		err = plog_partition_set_unstable(log, &fence, &offset);
		break;
	case PLOG_CONTROL_TRUNCATE_EPOCH:
		err = plog_partition_truncate_epoch(log, &fence, &epoch, &offset);
		break;
	case PLOG_CONTROL_START_AT:
		err = plog_partition_start_at(log, &fence, &offset);
		break;
	default:
		err = -EINVAL;
	}
	plog_instance_call_end(inst);
	if (err)
		return err;
	arg.offset = offset;
	arg.epoch = epoch;
	return copy_to_user(to, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static long do_lead(struct plog_desc *desc, struct file *file, void __user *to)
{
	struct plog_instance *inst = desc->instance;
	struct plog_lead_args args = { };
	struct plog_lead arg;
	int err;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (reserved_used(arg))
		return -EINVAL;
	if (!desc->privileged)
		return -EPERM;
	args.flags = arg.flags;
	args.epoch = arg.leader_epoch;
	args.incarnation = arg.incarnation;
	args.current_incarnation = &inst->incarnation;

	err = plog_instance_call(inst, arg.incarnation);
	if (err)
		return err;
	err = plog_partition_lead(desc->part->log, &args);
	plog_instance_call_end(inst);
	if (err)
		return err;
	arg.log_end = args.log_end;
	arg.high_watermark = args.high_watermark;
	return copy_to_user(to, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static long do_lease(struct plog_desc *desc, void __user *from)
{
	struct plog_lease arg;

	if (copy_from_user(&arg, from, sizeof(arg)))
		return -EFAULT;
	if (reserved_used(arg) || arg.deadline < 0)
		return -EINVAL;
	return plog_instance_lease(desc->instance, desc, arg.deadline);
}

static long do_epoch(struct plog_part *part, struct file *file, void __user *to)
{
	struct plog_epoch arg;
	s32 epoch, current_epoch;
	s64 end;
	int err;

	if (!(file->f_mode & FMODE_READ))
		return -EBADF;
	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (reserved_used(arg) || arg.pad || arg.flags & ~PLOG_EPOCH_AT)
		return -EINVAL;
	epoch = arg.epoch;
	end = arg.offset;
	if (arg.flags & PLOG_EPOCH_AT)
		err = plog_partition_epoch_at(part->log, end, &epoch, &current_epoch);
	else
		err = plog_partition_epoch_end(part->log, &epoch, &end, &current_epoch);
	if (err)
		return err;
	arg.epoch = epoch;
	arg.offset = end;
	arg.leader_epoch = current_epoch;
	return copy_to_user(to, &arg, sizeof(arg)) ? -EFAULT : 0;
}

long plog_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct plog_desc *desc = file->private_data;
	void __user *user = (void __user *)arg;
	struct plog_part *part;

	switch (cmd) {
	case PLOG_IOC_INFO:
		return do_info(desc, user);
	case PLOG_IOC_BIND:
		return do_bind(desc, file, user);
	case PLOG_IOC_REGISTER:
		return do_register(desc, user);
	case PLOG_IOC_LEASE:
		return do_lease(desc, user);
	case PLOG_IOC_SET_MODE:
	case PLOG_IOC_STATE:
	case PLOG_IOC_APPEND:
	case PLOG_IOC_LOCATE:
	case PLOG_IOC_LOOKUP:
	case PLOG_IOC_CONTROL:
	case PLOG_IOC_HEADERS:
	case PLOG_IOC_PRODUCER:
	case PLOG_IOC_EPOCH:
	case PLOG_IOC_LEAD:
	case PLOG_IOC_SWAP:
		break;
	default:
		return -ENOTTY;
	}

	part = plog_desc_part(desc);
	if (!part)
		return -ENOTCONN;
	switch (cmd) {
	case PLOG_IOC_SET_MODE:
		return do_set_mode(desc, file, user);
	case PLOG_IOC_STATE:
		return do_state(part, user);
	case PLOG_IOC_APPEND:
		return do_append(desc, file, user);
	case PLOG_IOC_LOCATE:
		return do_locate(desc, file, user);
	case PLOG_IOC_LOOKUP:
		return do_lookup(part, file, user);
	case PLOG_IOC_HEADERS:
		return do_headers(desc, file, user);
	case PLOG_IOC_PRODUCER:
		return do_producer(part, file, user);
	case PLOG_IOC_EPOCH:
		return do_epoch(part, file, user);
	case PLOG_IOC_LEAD:
		return do_lead(desc, file, user);
	case PLOG_IOC_SWAP:
		return do_swap(desc, file, user);
	default:
		return do_control(desc, file, user);
	}
}
