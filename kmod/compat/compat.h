/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The differences between kernels, and nothing else.  The code is written for
 * the newest kernel; what an older one lacks is made up for here.  HAVE_* come
 * from the compile probes in tests/, each of which says since when.
 */
#ifndef _PLOG_COMPAT_H
#define _PLOG_COMPAT_H

#include <linux/device.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/splice.h>
#include <linux/uio.h>

#include "have.h"

/* struct folio_batch: in <linux/pagevec.h> before it got a header of its own */
#ifdef HAVE_LINUX_FOLIO_BATCH_H
#include <linux/folio_batch.h>
#else
#include <linux/pagevec.h>
#endif

#ifdef HAVE_LINUX_FILELOCK_H
#include <linux/filelock.h>
#endif

/* device_type.devnode: const since 6.2 */
#ifdef HAVE_CONST_DEVNODE
#define PLOG_DEVNODE_CONST const
#else
#define PLOG_DEVNODE_CONST
#endif

/* class_create(): without an owner since 6.4 */
static inline struct class *plog_compat_class_create(const char *name)
{
#ifdef HAVE_CLASS_CREATE_NAME
	return class_create(name);
#else
	return class_create(THIS_MODULE, name);
#endif
}

/*
 * Splice out of a file that backs another.  vfs_splice_read() came in 6.5;
 * before, its checks are the caller's.
 */
static inline ssize_t plog_compat_splice_read(struct file *in, loff_t *ppos,
					      struct pipe_inode_info *pipe, size_t len,
					      unsigned int flags)
{
#ifdef HAVE_VFS_SPLICE_READ
	return vfs_splice_read(in, ppos, pipe, len, flags);
#else
	int err;

	if (!in->f_op->splice_read)
		return -EINVAL;
	err = rw_verify_area(READ, in, ppos, len);
	if (err < 0)
		return err;
	return in->f_op->splice_read(in, ppos, pipe, min_t(size_t, len, MAX_RW_COUNT), flags);
#endif
}

/*
 * Hold the pages behind user memory: pinned since 6.3, referenced before. Both
 * keep the pages; only a writer to them would need the difference.
 */
static inline ssize_t plog_compat_pin_pages(struct iov_iter *from, struct page **pages,
					    size_t bytes, unsigned int max, size_t *start)
{
#ifdef HAVE_IOV_ITER_EXTRACT_PAGES
	return iov_iter_extract_pages(from, &pages, bytes, max, 0, start);
#else
	return iov_iter_get_pages2(from, pages, bytes, max, start);
#endif
}

static inline void plog_compat_unpin_page(struct page *page)
{
#ifdef HAVE_IOV_ITER_EXTRACT_PAGES
	unpin_user_page(page);
#else
	put_page(page);
#endif
}

/* Does @filp hold a write lock of its own (an OFD lock)? Fields moved in 6.9. */
static inline bool plog_compat_ofd_write_locked(struct file *filp)
{
	struct file_lock fl;

	locks_init_lock(&fl);
	fl.fl_start = 0;
	fl.fl_end = OFFSET_MAX;
#ifdef HAVE_FILE_LOCK_CORE
	fl.c.flc_file = filp;
	fl.c.flc_type = F_RDLCK;
	fl.c.flc_flags = FL_POSIX;
	fl.c.flc_owner = (fl_owner_t)&fl;
	return !vfs_test_lock(filp, &fl) && fl.c.flc_type == F_WRLCK &&
	       fl.c.flc_owner == (fl_owner_t)filp;
#else
	fl.fl_file = filp;
	fl.fl_type = F_RDLCK;
	fl.fl_flags = FL_POSIX;
	fl.fl_owner = (fl_owner_t)&fl;
	return !vfs_test_lock(filp, &fl) && fl.fl_type == F_WRLCK &&
	       fl.fl_owner == (fl_owner_t)filp;
#endif
}

#endif /* _PLOG_COMPAT_H */
