/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A disk in memory under the engine, in place of file.c, that can lose power.
 *
 * What was not synced is lost page by page, in any subset: a page is on the
 * disk as it was when it was synced last, or as it is now. The size of a file
 * is the one on the disk, the one now or one in between; bytes that nobody has
 * written are zeros. The name of a file is safe once its directory or the file
 * itself was synced, as it is on the filesystems that the module takes; of the
 * others those made before some moment are there.
 *
 * There is one disk with one directory, whatever descriptor plog_dir_get() is
 * given, and one thread may use it: shim_inline_work.
 */
#ifndef _ENGINE_MEMFILE_H
#define _ENGINE_MEMFILE_H

#include <linux/types.h>

#define MEMDISK_PAGE	512u

/* An empty disk. No file may be open. */
void memdisk_wipe(void);

/*
 * The power goes, and comes again. @rnd gives a number below its argument and
 * decides what is lost. No file may be open.
 */
void memdisk_power_cut(unsigned int (*rnd)(unsigned int n));

/* Everything is on the disk, as after sync(2). */
void memdisk_sync(void);

/*
 * For tests, past the engine: -1 where there is no such file. What is written
 * or cut here is on the disk at once.
 */
s64 memdisk_size(const char *name);
size_t memdisk_read(const char *name, u64 pos, void *buf, size_t len);
void memdisk_write(const char *name, u64 pos, const void *buf, size_t len);
void memdisk_cut(const char *name, u64 size);
/* Who has it open keeps it, without a name. */
void memdisk_remove(const char *name);
/* What was there under @to goes; nothing happens if there is no @from. */
void memdisk_rename(const char *from, const char *to);
/* Milliseconds since 1970. */
s64 memdisk_mtime(const char *name);
/* The @n-th file, NULL behind the last. */
const char *memdisk_name(unsigned int n);

/* Operations since the start, for who wants to know how much was done. */
extern u64 memdisk_syncs, memdisk_writes, memdisk_lost_pages;

#endif
