/* SPDX-License-Identifier: GPL-2.0 */
/* An open descriptor, shared by cdev.c, write.c, ioctl.c and splice.c. */
#ifndef _PLOG_CDEV_H
#define _PLOG_CDEV_H

#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/plog.h>

#include "part.h"
#include "partition.h"

struct plog_instance;

/**
 * struct plog_desc - what file->private_data points to
 * @instance: of the opener's network namespace
 * @privileged: the opener had CAP_NET_ADMIN in the initial user namespace
 * @lock: all that follows; but @part, once set, and @mode may be read without
 * @part: partition it is bound to, NULL before; set once
 * @incarnation: of the daemon registered by this descriptor, 0 for none
 * @mode: PLOG_MODE_*
 * @reader: record mode
 * @extent: batch mode: the cursor; its position is the file's
 * @spare: a buffer of write.c's for the next append, or NULL; by xchg()
 * @want, @want_end: offset and end that an empty LOCATE asked for, for poll
 * @waitq: who polls since before it was bound
 * @forward: wakes @waitq with the partition's; @forwarding: it is in line there
 *
 * The position of the file (f_pos) is the next record's Kafka offset in record
 * mode, and the byte inside @extent in batch mode.
 */
struct plog_desc {
	struct plog_instance *instance;
	bool privileged;
	struct mutex lock;
	struct plog_part *part;
	u64 incarnation;
	u32 mode;
	struct plog_reader reader;
	struct plog_extent extent;
	void *spare;
	s64 want;
	enum plog_end want_end;
	wait_queue_head_t waitq;
	wait_queue_entry_t forward;
	bool forwarding;
};

/* The partition it is bound to, or NULL. */
static inline struct plog_part *plog_desc_part(struct plog_desc *desc)
{
	return smp_load_acquire(&desc->part);
}

/* Which end reads in that mode stop at. */
static inline enum plog_end plog_desc_end(u32 mode)
{
	return mode & PLOG_MODE_READ_COMMITTED ? PLOG_END_LSO : PLOG_END_HW;
}

/**
 * plog_cdev_bind() - make @desc a descriptor of @part
 * @file: its file, for the access modes
 *
 * @desc->lock must be held.  Takes a reference. Return: 0, -EBUSY, -EACCES.
 */
int plog_cdev_bind(struct plog_desc *desc, struct file *file, struct plog_part *part, u32 mode);

/* Set the mode and go to its start; @desc->lock must be held. */
void plog_cdev_set_mode(struct plog_desc *desc, struct file *file, u32 mode);

/* write.c */
ssize_t plog_write_iter(struct kiocb *iocb, struct iov_iter *from);
struct plog_append;
/* PLOG_IOC_APPEND, with the argument copied and its flags known. */
int plog_write_append(struct plog_desc *desc, struct file *file, struct plog_append *arg);

/* ioctl.c */
long plog_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

/* splice.c */
ssize_t plog_splice_read(struct file *file, loff_t *ppos, struct pipe_inode_info *pipe,
			 size_t len, unsigned int flags);

/* cdev.c */
extern const struct file_operations plog_node_fops;
int plog_cdev_init(void);
void plog_cdev_exit(void);

#endif /* _PLOG_CDEV_H */
