/* SPDX-License-Identifier: GPL-2.0 */
/* What the module's own files need of file.c beyond the engine's file.h. */
#ifndef _PLOG_VFS_H
#define _PLOG_VFS_H

#include <linux/fs.h>

#include "file.h"

/**
 * plog_file_filp() - the open file behind a plog_file, for splice
 *
 * Valid as long as the plog_file is.
 */
struct file *plog_file_filp(struct plog_file *file);

/**
 * plog_file_charge() - charge pages to the log's memory cgroup from now on
 *
 * Return: what set_active_memcg() is to be called with at the end.
 */
struct mem_cgroup *plog_file_charge(struct plog_file *file);

/*
 * The pages of files that are opened in @dir from now on are charged to the memory cgroup
 * of who handed @other over. Before anybody else uses @dir.
 */
void plog_dir_charge_as(struct plog_dir *dir, const struct plog_dir *other);

/**
 * plog_dir_claim() - take a directory for one user in the whole kernel
 *
 * Two partitions, or two instances in two namespaces, must never write to one
 * directory.  Give it back by plog_dir_unclaim().
 * Return: 0, or -EBUSY if another plog_dir of the same inode is claimed.
 */
int plog_dir_claim(struct plog_dir *dir);

/**
 * plog_dir_unclaim() - give a directory back; harmless if it was not claimed
 */
void plog_dir_unclaim(struct plog_dir *dir);

/**
 * plog_dir_lock_get() - hold the lock file that guards a data directory
 * @dir: the data directory
 * @fd: descriptor of ".lock" in it, open in the calling task
 * @why: set to a text for people if it is refused
 *
 * Return: the file, with a reference, or -EBADF or -EINVAL as ERR_PTR.
 */
struct file *plog_dir_lock_get(struct plog_dir *dir, int fd, const char **why);

/*
 * Let go of it, from a worker: if nobody else has the file open, the lock is
 * free when this returns.
 */
void plog_dir_lock_put(struct file *lock);

#endif /* _PLOG_VFS_H */
