// SPDX-License-Identifier: GPL-2.0
/*
 * Splice and sendfile: the cursor's bytes leave as the page cache's own pages.
 *
 * The position is the byte inside the extent, the file's own or the caller's:
 * a socket that takes less than was read makes sendfile(2) set it back.
 *
 * A truncation is noticed after the pages were taken: then the call fails with
 * -ESTALE, never with a false end.  sendfile(2) has not sent those pages; a
 * pipe of the caller's holds them, and is to be thrown away.  Pages that a
 * socket holds already can change until they are sent: the receiver's CRC
 * tells.
 */
#include <linux/fs.h>
#include <linux/plog.h>
#include <linux/sched/mm.h>
#include <linux/splice.h>

#include "cdev.h"
#include "compat.h"
#include "trace.h"
#include "vfs.h"

ssize_t plog_splice_read(struct file *file, loff_t *ppos, struct pipe_inode_info *pipe,
			 size_t len, unsigned int flags)
{
	struct plog_desc *desc = file->private_data;
	struct plog_part *part = plog_desc_part(desc);
	struct plog_extent *ext = &desc->extent;
	struct mem_cgroup *old_memcg;
	const struct cred *old;
	struct file *backing;
	ssize_t n = 0;
	loff_t pos;

	if (!part)
		return -ENOTCONN;
	/* Where a record ends, a pipe does not show: cat(1) reads instead. */
	if (!(READ_ONCE(desc->mode) & PLOG_MODE_BATCH))
		return -EINVAL;
	/*
	 * Nothing blocks inside a splice: into a regular file it comes with that
	 * filesystem's freeze protection held, which LOCATE may wait for when it
	 * opens a segment under desc->lock.
	 */
	if (!mutex_trylock(&desc->lock))
		return -EBUSY;
	if (*ppos < 0 || *ppos >= ext->length)
		goto out;
	len = min_t(u64, len, ext->length - *ppos);
	if (!len)
		goto out;
	if (plog_extent_stale(ext)) {
		n = -ESTALE;
		goto out;
	}

	backing = plog_file_filp(plog_extent_file(ext));
	pos = ext->pos + *ppos;
	old = override_creds(backing->f_cred);
	old_memcg = plog_file_charge(plog_extent_file(ext));
	n = plog_compat_splice_read(backing, &pos, pipe, len, flags);
	set_active_memcg(old_memcg);
	revert_creds(old);
	if (plog_extent_stale(ext))
		n = -ESTALE;
	else if (!n)
		n = -EIO;
	trace_plog_splice(plog_partition_name(part->log), ext->base_offset, *ppos, n);
	if (n > 0) {
		*ppos += n;
		plog_partition_count_read(part->log, n);
	}
out:
	mutex_unlock(&desc->lock);
	return n;
}
