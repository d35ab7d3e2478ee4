// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * File operations of the engine on a disk in memory: memfile.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bug.h>
#include <linux/crc32c.h>
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <shim.h>

#include "file.h"
#include "memfile.h"

#define PAGE	MEMDISK_PAGE

/*
 * struct node - a file
 * @now: its bytes as its users see them, zeros behind @size
 * @disk: as they were synced, zeros behind @disk_size
 * @dirty: for each page: do they differ?
 * @changed: may anything, bytes or size, differ?
 * @mtime: in milliseconds
 * @low, @high: the smallest and largest size since the last sync
 */
struct node {
	char name[64];
	bool name_safe, changed;
	unsigned int made;	/* the how manieth it was */
	bool unlinked;		/* by a test, while somebody has it open */
	unsigned int users;
	u8 *now, *disk, *dirty;
	u64 size, disk_size, low, high;
	u64 room;
	s64 mtime;
};

struct plog_dir {
	int users;
};

struct plog_file {
	struct node *node;
};

static struct {
	struct node **node;
	unsigned int count, room, open, made;
} disk;

int (*shim_file_fault)(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done);
int shim_open_files;
bool shim_frozen;
u64 memdisk_syncs, memdisk_writes, memdisk_lost_pages;

static int fault(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	return shim_file_fault ? shim_file_fault(op, name, pos, len, done) : 0;
}

/* ---- nodes ---- */

/* Names share a long beginning: the eight bytes at their ends tell them apart sooner. */
static struct node *find(const char *name)
{
	size_t size = strlen(name) + 1, tail = size - sizeof(u64);
	u64 want = 0, got = 0;

	if (size > sizeof(disk.node[0]->name))
		return NULL;
	if (size >= sizeof(want))
		memcpy(&want, name + tail, sizeof(want));
	for (unsigned int i = 0; i < disk.count; i++) {
		const char *is = disk.node[i]->name;

		if (size >= sizeof(got))
			memcpy(&got, is + tail, sizeof(got));
		if (got == want && !strcmp(is, name))
			return disk.node[i];
	}
	return NULL;
}

static struct node *make(const char *name)
{
	struct node *n = calloc(1, sizeof(*n));

	if (disk.count == disk.room) {
		disk.room = disk.room ? 2 * disk.room : 64;
		disk.node = realloc(disk.node, disk.room * sizeof(*disk.node));
	}
	if (!n || !disk.node)
		abort();
	strcpy(n->name, name);
	n->made = disk.made++;
	disk.node[disk.count++] = n;
	return n;
}

static void free_node(struct node *n)
{
	free(n->now);
	free(n->disk);
	free(n->dirty);
	free(n);
}

static void drop(unsigned int i)
{
	struct node *n = disk.node[i];

	if (n->users)
		abort();
	free_node(n);
	disk.node[i] = disk.node[--disk.count];
}

/* Its name is gone; who has it open keeps it. */
static void unlink_node(unsigned int i)
{
	struct node *n = disk.node[i];

	if (!n->users) {
		drop(i);
		return;
	}
	n->unlinked = true;
	disk.node[i] = disk.node[--disk.count];
}

/* Room in both copies for @size bytes, and the zeros that are there then. */
static void reserve(struct node *n, u64 size)
{
	u64 room = n->room ? n->room : 8 * PAGE;

	if (size <= n->room)
		return;
	while (room < size)
		room *= 2;
	n->now = realloc(n->now, room);
	n->disk = realloc(n->disk, room);
	n->dirty = realloc(n->dirty, room / PAGE);
	if (!n->now || !n->disk || !n->dirty)
		abort();
	memset(n->now + n->room, 0, room - n->room);
	memset(n->disk + n->room, 0, room - n->room);
	memset(n->dirty + n->room / PAGE, 0, (room - n->room) / PAGE);
	n->room = room;
}

static void touch(struct node *n, u64 pos, u64 end)
{
	if (pos >= end)
		return;
	memset(n->dirty + pos / PAGE, 1, (end - 1) / PAGE - pos / PAGE + 1);
	n->changed = true;
}

static void resize(struct node *n, u64 size)
{
	n->mtime = ktime_to_ms(ktime_get_real());
	reserve(n, size);
	if (size < n->size) {
		memset(n->now + size, 0, n->size - size);
		touch(n, size, n->size);
	}
	n->size = size;
	n->changed = true;
	if (size < n->low)
		n->low = size;
	if (size > n->high)
		n->high = size;
}

static void put_bytes(struct node *n, u64 pos, const void *buf, size_t len)
{
	if (!len)
		return;
	if (pos + len > n->size)
		resize(n, pos + len);
	memcpy(n->now + pos, buf, len);
	touch(n, pos, pos + len);
	n->mtime = ktime_to_ms(ktime_get_real());
	memdisk_writes++;
}

/* The pages from @first to @last, and the size. */
static void settle(struct node *n, u64 first, u64 last)
{
	/* what was cut off since is gone, also where the file has grown again */
	if (n->low < n->disk_size)
		memset(n->disk + n->low, 0, n->disk_size - n->low);
	for (u64 i = first; i <= last && i < n->room / PAGE; i++) {
		if (!n->dirty[i])
			continue;
		memcpy(n->disk + i * PAGE, n->now + i * PAGE, PAGE);
		n->dirty[i] = 0;
	}
	n->disk_size = n->low = n->high = n->size;
	n->name_safe = true;
}

static void settle_all(struct node *n)
{
	if (n->changed)
		settle(n, 0, n->room / PAGE);
	n->changed = false;
	n->name_safe = true;
}

/* ---- what tests do ---- */

void memdisk_wipe(void)
{
	while (disk.count)
		drop(disk.count - 1);
	free(disk.node);
	memset(&disk, 0, sizeof(disk));
}

static u64 size_after_cut(struct node *n, unsigned int (*rnd)(unsigned int))
{
	u64 low = n->low < n->disk_size ? n->low : n->disk_size;
	u64 high = n->high > n->disk_size ? n->high : n->disk_size;

	switch (rnd(3)) {
	case 0:
		return n->disk_size;
	case 1:
		return n->size;
	default:
		return low + rnd(high - low + 1);
	}
}

static void lose(struct node *n, unsigned int (*rnd)(unsigned int))
{
	/* nothing, everything, or some of it */
	unsigned int lost = (unsigned int[]){ 0, 10, 1, 5, 9 }[rnd(5)];
	u64 size = size_after_cut(n, rnd), pages = n->room / PAGE;
	u64 top = n->size > n->disk_size ? n->size : n->disk_size;

	if (!n->changed) {
		n->name_safe = true;
		return;
	}
	for (u64 i = 0; i < pages; i++) {
		if (!n->dirty[i])
			continue;
		if (rnd(10) < lost) {
			memcpy(n->now + i * PAGE, n->disk + i * PAGE, PAGE);
			memdisk_lost_pages++;
		}
		n->dirty[i] = 1;
	}
	if (size < top)
		memset(n->now + size, 0, top - size);
	if (pages)
		memset(n->dirty, 1, pages);
	n->size = size;
	settle_all(n);
}

void memdisk_power_cut(unsigned int (*rnd)(unsigned int n))
{
	unsigned int first_lost = disk.made, i;

	if (disk.open)
		abort();
	for (i = 0; i < disk.count; i++)
		if (!disk.node[i]->name_safe && rnd(2))
			first_lost = disk.node[i]->made < first_lost ? disk.node[i]->made :
								       first_lost;
	for (i = disk.count; i-- > 0;) {
		if (!disk.node[i]->name_safe && disk.node[i]->made >= first_lost)
			drop(i);
		else
			lose(disk.node[i], rnd);
	}
}

void memdisk_sync(void)
{
	for (unsigned int i = 0; i < disk.count; i++)
		settle_all(disk.node[i]);
}

s64 memdisk_size(const char *name)
{
	struct node *n = find(name);

	return n ? (s64)n->size : -1;
}

size_t memdisk_read(const char *name, u64 pos, void *buf, size_t len)
{
	struct node *n = find(name);

	if (!n || pos >= n->size)
		return 0;
	if (len > n->size - pos)
		len = n->size - pos;
	memcpy(buf, n->now + pos, len);
	return len;
}

void memdisk_write(const char *name, u64 pos, const void *buf, size_t len)
{
	struct node *n = find(name);

	if (!n)
		n = make(name);
	put_bytes(n, pos, buf, len);
	settle_all(n);
}

void memdisk_cut(const char *name, u64 size)
{
	struct node *n = find(name);

	if (!n)
		abort();
	resize(n, size);
	settle_all(n);
}

void memdisk_remove(const char *name)
{
	for (unsigned int i = 0; i < disk.count; i++) {
		if (!strcmp(disk.node[i]->name, name)) {
			unlink_node(i);
			return;
		}
	}
}

void memdisk_rename(const char *from, const char *to)
{
	struct node *n = find(from);

	if (!n)
		return;
	memdisk_remove(to);
	strcpy(n->name, to);
	n->name_safe = true;
}

s64 memdisk_mtime(const char *name)
{
	struct node *n = find(name);

	return n ? n->mtime : -1;
}

const char *memdisk_name(unsigned int n)
{
	return n < disk.count ? disk.node[n]->name : NULL;
}

/* ---- what the engine does ---- */

struct plog_dir *plog_dir_get(int fd)
{
	struct plog_dir *dir = kzalloc(sizeof(*dir), GFP_KERNEL);

	if (!dir)
		return ERR_PTR(-ENOMEM);
	shim_open_files++;
	return dir;
}

void plog_dir_put(struct plog_dir *dir)
{
	kfree(dir);
	shim_open_files--;
}

int plog_dir_thawed(struct plog_dir *dir)
{
	return shim_frozen && shim_killed ? -EINTR : 0;
}

int plog_dir_sync(struct plog_dir *dir)
{
	int err = fault(SHIM_DIR_SYNC, "", 0, 0, NULL);

	if (err)
		return err;
	for (unsigned int i = 0; i < disk.count; i++)
		disk.node[i]->name_safe = true;
	memdisk_syncs++;
	return 0;
}

int plog_dir_iterate(struct plog_dir *dir,
		     int (*fn)(void *arg, const char *name, unsigned int len), void *arg)
{
	int err = 0;

	for (unsigned int i = 0; i < disk.count && !err; i++)
		err = fn(arg, disk.node[i]->name, strlen(disk.node[i]->name));
	return err;
}

struct plog_file *plog_file_open(struct plog_dir *dir, const char *name, unsigned int flags)
{
	struct plog_file *file;
	struct node *n;
	int err;

	if (strchr(name, '/') || strlen(name) >= sizeof(n->name))
		return ERR_PTR(-EINVAL);
	err = fault(SHIM_OPEN, name, flags, 0, NULL);
	if (err)
		return ERR_PTR(err);
	n = find(name);
	if (!n && !(flags & PLOG_FILE_CREATE))
		return ERR_PTR(-ENOENT);
	file = kzalloc(sizeof(*file), GFP_KERNEL);
	if (!file)
		return ERR_PTR(-ENOMEM);
	file->node = n ? n : make(name);
	file->node->users++;
	disk.open++;
	shim_open_files++;
	return file;
}

void plog_file_close(struct plog_file *file)
{
	struct node *n = file->node;

	n->users--;
	if (n->unlinked && !n->users)
		free_node(n);
	disk.open--;
	shim_open_files--;
	kfree(file);
}

int plog_file_fd(const struct plog_file *file)
{
	return -1;
}

bool plog_file_same(struct plog_file *a, struct plog_file *b)
{
	return a->node == b->node;
}

void plog_file_identity(struct plog_file *file, u64 *inode, u32 *gen)
{
	*inode = (uintptr_t)file->node;
	*gen = 0;
}

u64 plog_file_size(struct plog_file *file)
{
	return file->node->size;
}

ssize_t plog_file_read(struct plog_file *file, void *buf, size_t len, u64 pos)
{
	struct node *n = file->node;
	int err = fault(SHIM_READ, n->name, pos, len, NULL);

	if (err)
		return err;
	if (pos >= n->size)
		return 0;
	if (len > n->size - pos)
		len = n->size - pos;
	memcpy(buf, n->now + pos, len);
	return len;
}

ssize_t plog_file_read_iter(struct plog_file *file, struct iov_iter *to, u64 pos)
{
	struct node *n = file->node;
	size_t len = iov_iter_count(to);
	int err = fault(SHIM_READ, n->name, pos, len, NULL);

	if (err)
		return err;
	if (pos >= n->size)
		return 0;
	if (len > n->size - pos)
		len = n->size - pos;
	return copy_to_iter(n->now + pos, len, to);
}

int plog_file_write(struct plog_file *file, const void *buf, size_t len, u64 pos)
{
	size_t done = len;
	int err = fault(SHIM_WRITE, file->node->name, pos, len, &done);

	put_bytes(file->node, pos, buf, err && done < len ? done : len);
	return err;
}

int plog_file_write_iter(struct plog_file *file, struct iov_iter *from, u64 pos)
{
	struct node *n = file->node;
	size_t count = iov_iter_count(from), done = count;
	int err = fault(SHIM_WRITE, n->name, pos, count, &done);

	if (err && done < count)
		count = done;
	if (!count)
		return err;
	if (pos + count > n->size)
		resize(n, pos + count);
	copy_from_iter(n->now + pos, count, from);
	touch(n, pos, pos + count);
	n->mtime = ktime_to_ms(ktime_get_real());
	memdisk_writes++;
	return err;
}

int plog_file_crc32c(struct plog_file *file, u64 pos, u64 len, u32 *crc)
{
	struct node *n = file->node;
	int err = fault(SHIM_READ, n->name, pos, len, NULL);

	if (err)
		return err;
	if (pos > n->size || len > n->size - pos)
		return -EIO;
	*crc = crc32c(*crc, n->now + pos, len);
	return 0;
}

bool plog_file_page_get(struct plog_file *file, u64 pos, struct plog_page *page)
{
	u8 *copy = kzalloc(PAGE, GFP_KERNEL);

	if (!copy)
		return false;
	page->pos = pos & ~(u64)(PAGE - 1);
	if (plog_file_read(file, copy, PAGE, page->pos) < 0) {
		kfree(copy);
		return false;
	}
	page->len = PAGE;
	page->at = copy;
	page->ref = copy;
	return true;
}

void plog_file_page_put(struct plog_page *page)
{
	kfree(page->ref);
	page->at = NULL;
}

int plog_file_preallocate(struct plog_file *file, u64 size)
{
	return fault(SHIM_PREALLOCATE, file->node->name, size, 0, NULL);
}

s64 plog_file_mtime_ms(struct plog_file *file)
{
	return file->node->mtime;
}

int plog_file_truncate(struct plog_file *file, u64 size)
{
	int err = fault(SHIM_TRUNCATE, file->node->name, size, 0, NULL);

	if (err)
		return err;
	resize(file->node, size);
	return 0;
}

int plog_file_sync(struct plog_file *file, u64 start, u64 end)
{
	int err = fault(SHIM_SYNC, file->node->name, start, end - start, NULL);

	if (err)
		return err;
	settle(file->node, start / PAGE, end / PAGE);
	memdisk_syncs++;
	return 0;
}

void plog_file_readahead(struct plog_file *file, u64 pos, u64 len)
{
}

int plog_file_failed(struct plog_file *file)
{
	return 0;
}

void plog_file_doubt(struct plog_file *file)
{
}
