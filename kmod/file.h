/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Every file operation of the engine.  kmod/file.c does them on the VFS,
 * tools/engine/file.c with system calls; the engine knows no other way to a
 * file.  All of them may sleep.  Names are single components inside a
 * directory that was handed over as a descriptor; nothing else is resolved,
 * renamed or unlinked.
 */
#ifndef _PLOG_FILE_H
#define _PLOG_FILE_H

#include <linux/types.h>
#include <linux/uio.h>

struct plog_dir;	/* a partition's directory with the credentials to use there */
struct plog_file;	/* an open regular file in it */

/**
 * plog_dir_get() - hold a directory
 * @fd: descriptor of a directory, open in the calling task
 *
 * Return: the directory, or -EBADF, -ENOTDIR, -EOPNOTSUPP (not ext4, xfs,
 * btrfs or tmpfs; or DAX), -EROFS, -ENOMEM as ERR_PTR.
 */
struct plog_dir *plog_dir_get(int fd);
void plog_dir_put(struct plog_dir *dir);

/**
 * plog_dir_thawed() - wait until the filesystem is not frozen
 *
 * For what changes files by calls that wait for a thaw as truncate(2) does, and cannot
 * be killed there.  A freeze that begins afterwards is such a wait all the same: who
 * asks does it right before.
 *
 * Return: 0, or -EINTR for a fatal signal.
 */
int plog_dir_thawed(struct plog_dir *dir);

/**
 * plog_dir_sync() - make names created in @dir durable
 */
int plog_dir_sync(struct plog_dir *dir);

/**
 * plog_dir_iterate() - call @fn for each name in @dir
 * @fn: returns 0 to go on, else the walk ends and returns that. It must not
 *      touch @dir.
 */
int plog_dir_iterate(struct plog_dir *dir,
		     int (*fn)(void *arg, const char *name, unsigned int len),
		     void *arg);

#define PLOG_FILE_CREATE	(1u << 0) /* make it where it is missing */
#define PLOG_FILE_RDONLY	(1u << 1)

/**
 * plog_file_open() - open @name in @dir for reading and writing
 *
 * Return: the file, or as ERR_PTR -ENOENT, -EINVAL (not a regular file, or a
 * symbolic link), -ENOMEM, -EMFILE, any error of the filesystem; -EINTR (a fatal
 * signal: one that is to be made may be made yet).
 */
struct plog_file *plog_file_open(struct plog_dir *dir, const char *name,
				 unsigned int flags);
void plog_file_close(struct plog_file *file);

u64 plog_file_size(struct plog_file *file);

/**
 * plog_file_identity() - what tells the file from others of its filesystem
 * @inode: never 0
 * @gen: differs where the filesystem has used the number for another file before
 */
void plog_file_identity(struct plog_file *file, u64 *inode, u32 *gen);

/* Do both mean the same file, whatever its names? */
bool plog_file_same(struct plog_file *a, struct plog_file *b);

/**
 * plog_file_read() - read @len bytes at @pos into kernel memory
 *
 * Return: bytes read (short only at the end of the file), or an error.
 */
ssize_t plog_file_read(struct plog_file *file, void *buf, size_t len, u64 pos);

/**
 * plog_file_read_iter() - read up to iov_iter_count(@to) bytes at @pos
 *
 * @to may be user memory.
 */
ssize_t plog_file_read_iter(struct plog_file *file, struct iov_iter *to, u64 pos);

/**
 * plog_file_write() - write kernel memory at @pos, all of it or an error
 *
 * Return: 0, or -EFBIG (RLIMIT_FSIZE of the caller or the filesystem's limit;
 * no signal is sent), -ENOSPC, -EDQUOT, -EINTR (fatal signal), -EIO, ...
 * After an error any part may have been written and the file be longer.
 */
int plog_file_write(struct plog_file *file, const void *buf, size_t len, u64 pos);

/**
 * plog_file_write_iter() - write iov_iter_count(@from) bytes at @pos
 *
 * @from holds pages or kernel memory (never unpinned user memory: no page
 * fault may happen under a partition's mutex).  As plog_file_write().
 */
int plog_file_write_iter(struct plog_file *file, struct iov_iter *from, u64 pos);

/**
 * plog_file_crc32c() - CRC32C of @len bytes at @pos, of the page cache's pages
 * where they are there
 * @crc: in: running value, as crc32c() takes it; out: the same
 */
int plog_file_crc32c(struct plog_file *file, u64 pos, u64 len, u32 *crc);

/**
 * struct plog_page - a page of a file's, mapped to look at
 * @at: its bytes; NULL if none is mapped
 * @len: how many
 * @pos: of the first in the file
 * @ref: what holds it
 */
struct plog_page {
	const u8 *at;
	u32 len;
	u64 pos;
	void *ref;
};

/**
 * plog_file_page_get() - map the page that the page cache has of @pos
 *
 * What lies behind the end of the file reads as zeros.  The caller may sleep
 * while it is mapped, and puts one before it gets another.
 *
 * Return: was it there? Else read the file.
 */
bool plog_file_page_get(struct plog_file *file, u64 pos, struct plog_page *page);
void plog_file_page_put(struct plog_page *page);

/**
 * plog_file_truncate() - set the size
 */
int plog_file_truncate(struct plog_file *file, u64 size);

/**
 * plog_file_preallocate() - have room on the disk for @size bytes
 *
 * The size of the file stays: no reader and no recovery ever sees a tail of
 * zeros.  plog_file_truncate() to the size gives what was not used back.
 * Return: 0, -EOPNOTSUPP, -ENOSPC, ...
 */
int plog_file_preallocate(struct plog_file *file, u64 size);

/**
 * plog_file_mtime_ms() - when it was written to last, milliseconds since 1970
 *
 * Return: -1 if the filesystem does not tell.
 */
s64 plog_file_mtime_ms(struct plog_file *file);

/**
 * plog_file_sync() - data and size on stable storage
 * @start, @end: range in bytes, @end inclusive
 *
 * A writeback error since the file was opened is returned once; it is final
 * for the partition (an fsync is never retried).
 */
int plog_file_sync(struct plog_file *file, u64 start, u64 end);

/**
 * plog_file_failed() - has a write to the disk failed that no sync has told of?
 *
 * Cheap, and asking changes nothing: the next plog_file_sync() tells it still.
 * Return: 0, or the error (since the file was opened).
 */
int plog_file_failed(struct plog_file *file);

/**
 * plog_file_doubt() - read from the disk what comes next
 *
 * Drops what the page cache has of it and need not be written.  Where writing
 * failed, pages are left behind that are clean and yet not on the disk: taken for
 * the log they could be lost below what is synced later.  What somebody still
 * holds (a pipe) stays.
 */
void plog_file_doubt(struct plog_file *file);

/**
 * plog_file_readahead() - start reading @len bytes at @pos, without waiting
 */
void plog_file_readahead(struct plog_file *file, u64 pos, u64 len);

#endif /* _PLOG_FILE_H */
