// SPDX-License-Identifier: GPL-2.0
/* Since 6.5: vfs_splice_read() checks and calls a file's splice_read. */
#include <linux/fs.h>
#include <linux/splice.h>

ssize_t probe(struct file *in, loff_t *ppos, struct pipe_inode_info *pipe);
ssize_t probe(struct file *in, loff_t *ppos, struct pipe_inode_info *pipe)
{
	return vfs_splice_read(in, ppos, pipe, 1, 0);
}
