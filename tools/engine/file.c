// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * File operations of the engine by system calls.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <linux/crc32c.h>
#include <linux/err.h>
#include <linux/slab.h>
#include <shim.h>

#include "../../kmod/file.h"
#include "../../kmod/object.h"

struct plog_dir {
	int fd;
};

struct plog_file {
	int fd;
	char name[64];
};

int (*shim_file_fault)(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done);
int shim_open_files;
bool shim_frozen;

static int fault(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	return shim_file_fault ? shim_file_fault(op, name, pos, len, done) : 0;
}

/*
 * The module takes ext4, xfs, btrfs and tmpfs alone.  Here the kernel stands in
 * between, so that what a container has (overlay) or a test uses is fine too;
 * network filesystems are not: their locks and errors come too late.
 */
static bool unsuitable(int fd)
{
	struct statfs st;

	if (fstatfs(fd, &st))
		return true;
	switch ((unsigned int)st.f_type) {
	case NFS_SUPER_MAGIC:
	case SMB_SUPER_MAGIC:
	case 0xff534d42u:	/* cifs */
	case 0xfe534d42u:	/* smb3 */
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
		return true;
	}
	return false;
}

struct plog_dir *plog_dir_get(int fd)
{
	struct plog_dir *dir;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return ERR_PTR(-errno);
	if (!S_ISDIR(st.st_mode))
		return ERR_PTR(-ENOTDIR);
	if (unsuitable(fd))
		return ERR_PTR(-EOPNOTSUPP);
	dir = kmalloc(sizeof(*dir), GFP_KERNEL);
	if (!dir)
		return ERR_PTR(-ENOMEM);
	/* A position of its own, and no O_PATH: it is read and synced. */
	dir->fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->fd < 0) {
		err = -errno;
		kfree(dir);
		return ERR_PTR(err);
	}
	__atomic_fetch_add(&shim_open_files, 1, __ATOMIC_RELAXED);
	plog_object_created(PLOG_OBJECT_DIRECTORY);
	return dir;
}

void plog_dir_put(struct plog_dir *dir)
{
	close(dir->fd);
	kfree(dir);
	__atomic_fetch_sub(&shim_open_files, 1, __ATOMIC_RELAXED);
	plog_object_destroyed(PLOG_OBJECT_DIRECTORY);
}

int plog_dir_thawed(struct plog_dir *dir)
{
	while (__atomic_load_n(&shim_frozen, __ATOMIC_ACQUIRE)) {
		if (shim_killed)
			return -EINTR;
		usleep(1000);
	}
	return 0;
}

int plog_dir_sync(struct plog_dir *dir)
{
	int err = fault(SHIM_DIR_SYNC, "", 0, 0, NULL);

	if (err)
		return err;
	return fsync(dir->fd) ? -errno : 0;
}

int plog_dir_iterate(struct plog_dir *dir,
		     int (*fn)(void *arg, const char *name, unsigned int len), void *arg)
{
	int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	struct dirent *d;
	DIR *dp;

	if (fd < 0)
		return -errno;
	dp = fdopendir(fd);
	if (!dp) {
		err = -errno;
		close(fd);
		return err;
	}
	for (;;) {
		errno = 0;
		d = readdir(dp);
		if (!d) {
			err = -errno;
			break;
		}
		err = fn(arg, d->d_name, strlen(d->d_name));
		if (err)
			break;
	}
	closedir(dp);
	return err;
}

struct plog_file *plog_file_open(struct plog_dir *dir, const char *name, unsigned int flags)
{
	int how = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, err;
	struct plog_file *file;
	struct stat st;

	if (strchr(name, '/') || strlen(name) >= sizeof(file->name))
		return ERR_PTR(-EINVAL);
	err = fault(SHIM_OPEN, name, flags, 0, NULL);
	if (err)
		return ERR_PTR(err);
	file = kzalloc(sizeof(*file), GFP_KERNEL);
	if (!file)
		return ERR_PTR(-ENOMEM);
	strcpy(file->name, name);
	how |= flags & PLOG_FILE_RDONLY ? O_RDONLY : O_RDWR;
	if (flags & PLOG_FILE_CREATE)
		how |= O_CREAT;
	file->fd = openat(dir->fd, name, how, 0644);
	if (file->fd < 0) {
		err = errno == ELOOP ? -EINVAL : -errno;
		goto err_free;
	}
	if (fstat(file->fd, &st) || !S_ISREG(st.st_mode)) {
		err = -EINVAL;
		goto err_close;
	}
	__atomic_fetch_add(&shim_open_files, 1, __ATOMIC_RELAXED);
	plog_object_created(PLOG_OBJECT_FILE);
	return file;

err_close:
	close(file->fd);
err_free:
	kfree(file);
	return ERR_PTR(err);
}

void plog_file_close(struct plog_file *file)
{
	close(file->fd);
	kfree(file);
	__atomic_fetch_sub(&shim_open_files, 1, __ATOMIC_RELAXED);
	plog_object_destroyed(PLOG_OBJECT_FILE);
}

int plog_file_fd(const struct plog_file *file)
{
	return file->fd;
}

bool plog_file_same(struct plog_file *a, struct plog_file *b)
{
	struct stat x, y;

	return !fstat(a->fd, &x) && !fstat(b->fd, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

void plog_file_identity(struct plog_file *file, u64 *inode, u32 *gen)
{
	struct stat st;

	*inode = fstat(file->fd, &st) ? 0 : st.st_ino;
	*gen = 0;
}

u64 plog_file_size(struct plog_file *file)
{
	struct stat st;

	return fstat(file->fd, &st) ? 0 : st.st_size;
}

ssize_t plog_file_read(struct plog_file *file, void *buf, size_t len, u64 pos)
{
	size_t done = 0;
	int err = fault(SHIM_READ, file->name, pos, len, NULL);

	if (err)
		return err;
	while (done < len) {
		ssize_t n = pread(file->fd, (char *)buf + done, len - done, pos + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += n;
	}
	return done;
}

ssize_t plog_file_read_iter(struct plog_file *file, struct iov_iter *to, u64 pos)
{
	size_t done = 0;

	while (iov_iter_count(to)) {
		char *base = (char *)to->kvec->iov_base + to->iov_offset;
		size_t want = to->kvec->iov_len - to->iov_offset;
		ssize_t n;

		if (want > to->count)
			want = to->count;
		if (!want) {		/* an empty segment: step over it */
			to->kvec++;
			to->nr_segs--;
			to->iov_offset = 0;
			continue;
		}
		n = plog_file_read(file, base, want, pos + done);
		if (n < 0)
			return done ? (ssize_t)done : n;
		iov_iter_advance(to, n);
		done += n;
		if ((size_t)n < want)
			break;
	}
	return done;
}

/* RLIMIT_FSIZE gives the error, not the signal, unless somebody wants that. */
__attribute__((constructor)) static void ignore_limit_signal(void)
{
	struct sigaction sa;

	if (!sigaction(SIGXFSZ, NULL, &sa) && sa.sa_handler == SIG_DFL)
		signal(SIGXFSZ, SIG_IGN);
}

static int write_all(struct plog_file *file, const char *buf, size_t len, u64 pos)
{
	while (len) {
		ssize_t n = pwrite(file->fd, buf, len, pos);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf += n;
		pos += n;
		len -= n;
	}
	return 0;
}

int plog_file_write(struct plog_file *file, const void *buf, size_t len, u64 pos)
{
	size_t done = 0;
	int err = fault(SHIM_WRITE, file->name, pos, len, &done);

	if (err) {
		write_all(file, buf, done < len ? done : len, pos);
		return err;
	}
	return write_all(file, buf, len, pos);
}

int plog_file_write_iter(struct plog_file *file, struct iov_iter *from, u64 pos)
{
	size_t count = iov_iter_count(from), done = count;
	int fail = fault(SHIM_WRITE, file->name, pos, count, &done), err;

	if (fail && done < count)
		count = done;
	while (count) {
		size_t n = from->kvec->iov_len - from->iov_offset;

		if (n > count)
			n = count;
		err = write_all(file, (char *)from->kvec->iov_base + from->iov_offset, n, pos);
		if (err)
			return err;
		if (!n) {
			from->kvec++;
			from->nr_segs--;
			from->iov_offset = 0;
			continue;
		}
		iov_iter_advance(from, n);
		pos += n;
		count -= n;
	}
	return fail;
}

int plog_file_crc32c(struct plog_file *file, u64 pos, u64 len, u32 *crc)
{
	char buf[16384];

	while (len) {
		size_t want = len < sizeof(buf) ? len : sizeof(buf);
		ssize_t n = plog_file_read(file, buf, want, pos);

		if (n < 0)
			return n;
		if ((size_t)n < want)
			return -EIO;	/* shorter than its length: cut by someone else */
		*crc = crc32c(*crc, buf, n);
		pos += n;
		len -= n;
	}
	return 0;
}

/* There is no page cache to look into: a copy of a page. */
#define PAGE 4096

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

int plog_file_truncate(struct plog_file *file, u64 size)
{
	int err = fault(SHIM_TRUNCATE, file->name, size, 0, NULL);

	if (err)
		return err;
	return ftruncate(file->fd, size) ? -errno : 0;
}

int plog_file_preallocate(struct plog_file *file, u64 size)
{
	int err = fault(SHIM_PREALLOCATE, file->name, size, 0, NULL);

	if (err)
		return err;
	return fallocate(file->fd, FALLOC_FL_KEEP_SIZE, 0, size) ? -errno : 0;
}

s64 plog_file_mtime_ms(struct plog_file *file)
{
	struct stat st;

	if (fstat(file->fd, &st))
		return -1;
	return (s64)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
}

int plog_file_sync(struct plog_file *file, u64 start, u64 end)
{
	int err = fault(SHIM_SYNC, file->name, start, end - start, NULL);

	if (err)
		return err;
	return fdatasync(file->fd) ? -errno : 0;
}

int plog_file_failed(struct plog_file *file)
{
	/* nothing but a sync tells, or a test */
	return fault(SHIM_WRITEBACK, file->name, 0, 0, NULL);
}

void plog_file_doubt(struct plog_file *file)
{
	posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
}

void plog_file_readahead(struct plog_file *file, u64 pos, u64 len)
{
	posix_fadvise(file->fd, pos, len, POSIX_FADV_WILLNEED);
}
