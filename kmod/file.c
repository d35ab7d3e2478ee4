// SPDX-License-Identifier: GPL-2.0
/*
 * The engine's file operations on the VFS.
 *
 * Credentials: a directory is used under those of the task that handed it
 * over, and so are the files in it (f_cred), whoever appends.  Pages of the log
 * are charged to the memory cgroup of who handed over the instance's data directory.
 *
 * Freeze protection: a write takes it by trylock, and where that fails waits
 * killably, here, with the partition's append mutex held.  Nobody is stuck for
 * good: others wait for the mutex killably, readers need neither, and the
 * freezer needs nothing of ours.  (Dropping the mutex for the wait would mean
 * checking everything of an append again, between its payload and its header
 * too, where a caller that is killed would leave the cut to somebody else.)
 * A file that has to be made is made by a worker, which the wait is left to by a
 * caller who is killed.
 * A truncation waits killably first, see plog_dir_thawed().  What an append has written
 * that is killed then stays behind the end until the next one, see plog_active_renew().
 */
#include <linux/completion.h>
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/fadvise.h>
#include <linux/falloc.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/highmem.h>
#include <linux/magic.h>
#include <linux/memcontrol.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/stat.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "compat/crc32c.h"
#include "engine.h"
#include "object.h"
#include "vfs.h"

/* A frozen filesystem is tried again this often: nothing tells of a thaw. */
#define PLOG_FREEZE_POLL_MS	50

/* Bytes of a reader's memory that are made present at once. */
#define PLOG_FAULT_AHEAD	(64 << 10)

struct plog_dir {
	struct path path;
	const struct cred *cred;
	struct mem_cgroup *memcg;	/* NULL: no cgroup */
	struct hlist_node claim;
	bool claimed;
};

struct plog_file {
	struct file *filp;
	struct mem_cgroup *memcg;
};

/* Directories in use, by inode: 1024 lists of about 20 at partitions_max. */
static DEFINE_MUTEX(claims_lock);
static struct hlist_head claims[1024];

static struct hlist_head *claim_list(const struct inode *inode)
{
	return &claims[hash_ptr(inode, ilog2(ARRAY_SIZE(claims)))];
}

/* What the design was tried on; overlays and network filesystems are not. */
static bool usable_filesystem(const struct super_block *sb)
{
	switch (sb->s_magic) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return true;
	default:
		return false;
	}
}

struct plog_dir *plog_dir_get(int fd)
{
	struct plog_dir *dir;
	struct inode *inode;
	struct file *filp;
	int err;

	filp = fget(fd);
	if (!filp)
		return ERR_PTR(-EBADF);
	inode = file_inode(filp);

	err = -ENOTDIR;
	if (!S_ISDIR(inode->i_mode))
		goto out_put;
	err = -EOPNOTSUPP;
	if (!usable_filesystem(inode->i_sb))
		goto out_put;
	err = -EROFS;
	if (__mnt_is_readonly(filp->f_path.mnt))
		goto out_put;
	err = -ENOMEM;
	dir = kzalloc(sizeof(*dir), GFP_KERNEL_ACCOUNT);
	if (!dir)
		goto out_put;

	dir->path = filp->f_path;
	path_get(&dir->path);
	dir->cred = get_current_cred();
	dir->memcg = get_mem_cgroup_from_mm(current->mm);
	fput(filp);
	plog_object_created(PLOG_OBJECT_DIRECTORY);
	return dir;

out_put:
	fput(filp);
	return ERR_PTR(err);
}

void plog_dir_put(struct plog_dir *dir)
{
	plog_dir_unclaim(dir);
	path_put(&dir->path);
	put_cred(dir->cred);
	mem_cgroup_put(dir->memcg);
	kfree(dir);
	plog_object_destroyed(PLOG_OBJECT_DIRECTORY);
}

int plog_dir_claim(struct plog_dir *dir)
{
	struct inode *inode = d_inode(dir->path.dentry);
	struct hlist_head *list = claim_list(inode);
	struct plog_dir *other;
	int err = 0;

	mutex_lock(&claims_lock);
	hlist_for_each_entry(other, list, claim) {
		if (d_inode(other->path.dentry) == inode) {
			err = -EBUSY;
			goto out;
		}
	}
	hlist_add_head(&dir->claim, list);
	dir->claimed = true;
out:
	mutex_unlock(&claims_lock);
	return err;
}

void plog_dir_unclaim(struct plog_dir *dir)
{
	mutex_lock(&claims_lock);
	if (dir->claimed)
		hlist_del(&dir->claim);
	dir->claimed = false;
	mutex_unlock(&claims_lock);
}

struct file *plog_dir_lock_get(struct plog_dir *dir, int fd, const char **why)
{
	struct file *filp = fget(fd);
	struct dentry *dentry;
	int err = -EINVAL;
	bool named;

	if (!filp) {
		*why = "the lock file's descriptor is not an open file";
		return ERR_PTR(-EBADF);
	}
	dentry = filp->f_path.dentry;
	if (!S_ISREG(file_inode(filp)->i_mode)) {
		*why = "the lock file is not a regular file";
		goto out_put;
	}
	spin_lock(&dentry->d_lock);
	named = dentry->d_parent == dir->path.dentry && dentry->d_name.len == 5 &&
		!memcmp(dentry->d_name.name, ".lock", 5);
	spin_unlock(&dentry->d_lock);
	if (!named) {
		*why = "the lock file is not .lock in the data directory";
		goto out_put;
	}
	if (!plog_compat_ofd_write_locked(filp)) {
		*why = "the lock file is not locked by an OFD write lock of this descriptor";
		goto out_put;
	}
	return filp;

out_put:
	fput(filp);
	return ERR_PTR(err);
}

void plog_dir_lock_put(struct file *lock)
{
	/* A worker's fput() is put off, but people may lock again when they hear of the end. */
	__fput_sync(lock);
}

/*
 * A worker's fput() is put off to another worker: then a file would still hold
 * its mount when an instance says that it has stopped.
 */
static void put_file(struct file *filp)
{
	if (current->flags & PF_KTHREAD)
		__fput_sync(filp);
	else
		fput(filp);
}

static struct file *open_dir(struct plog_dir *dir)
{
	return dentry_open(&dir->path, O_RDONLY | O_DIRECTORY | O_LARGEFILE, dir->cred);
}

int plog_dir_sync(struct plog_dir *dir)
{
	struct file *filp = open_dir(dir);
	int err;

	if (IS_ERR(filp))
		return PTR_ERR(filp);
	err = vfs_fsync(filp, 0);
	put_file(filp);
	return err;
}

struct plog_dir_walk {
	struct dir_context ctx;
	int (*fn)(void *arg, const char *name, unsigned int len);
	void *arg;
	int ret;
	bool any;
};

static bool walk_name(struct dir_context *ctx, const char *name, int len, loff_t pos,
		      u64 ino, unsigned int type)
{
	struct plog_dir_walk *walk = container_of(ctx, struct plog_dir_walk, ctx);

	walk->any = true;
	if ((len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.'))
		return true;
	walk->ret = walk->fn(walk->arg, name, len);
	return !walk->ret;
}

int plog_dir_iterate(struct plog_dir *dir,
		     int (*fn)(void *arg, const char *name, unsigned int len),
		     void *arg)
{
	struct plog_dir_walk walk = { .ctx.actor = walk_name, .fn = fn, .arg = arg };
	const struct cred *old;
	struct file *filp;
	int err;

	filp = open_dir(dir);
	if (IS_ERR(filp))
		return PTR_ERR(filp);
	old = override_creds(dir->cred);
	do {
		walk.any = false;
		err = iterate_dir(filp, &walk.ctx);
	} while (!err && !walk.ret && walk.any);
	revert_creds(old);
	put_file(filp);
	return err < 0 ? err : walk.ret;
}

/* A reference of the file's own: files can outlive their directory's user. */
static struct mem_cgroup *hold_memcg(struct mem_cgroup *memcg)
{
	struct mem_cgroup *old;

	if (!memcg)
		return NULL;
	old = set_active_memcg(memcg);
	memcg = get_mem_cgroup_from_mm(NULL);
	set_active_memcg(old);
	return memcg;
}

void plog_dir_charge_as(struct plog_dir *dir, const struct plog_dir *other)
{
	struct mem_cgroup *old = dir->memcg;

	dir->memcg = hold_memcg(other->memcg);
	mem_cgroup_put(old);
}

/*
 * Nothing but a regular file is opened: the open of a FIFO takes the pipe's lock,
 * which comes before ours, and a device may do anything.
 * Return: 1 if there is one, 0 if there is nothing of the name, or an error.
 */
static int peek(struct plog_dir *dir, const char *name)
{
	struct file *filp = file_open_root(&dir->path, name, O_PATH | O_NOFOLLOW, 0);
	int ret;

	if (IS_ERR(filp))
		return PTR_ERR(filp) == -ENOENT ? 0 : PTR_ERR(filp);
	ret = S_ISREG(file_inode(filp)->i_mode) ? 1 : -EINVAL;
	put_file(filp);
	return ret;
}

/*
 * A name is walked to twice at most, also where its file is made: ten thousand
 * partitions that open do this six times each.
 */
static struct file *open_name(struct plog_dir *dir, const char *name, int oflags)
{
	const struct cred *old = override_creds(dir->cred);
	int there = peek(dir, name);
	struct file *filp;

	if (there < 0)
		filp = ERR_PTR(there);
	else if (there)
		filp = file_open_root(&dir->path, name, oflags & ~O_CREAT, 0644);
	else if (oflags & O_CREAT)
		/* what somebody puts there meanwhile is not opened unseen */
		filp = file_open_root(&dir->path, name, oflags | O_EXCL, 0644);
	else
		filp = ERR_PTR(-ENOENT);
	revert_creds(old);
	return filp;
}

/*
 * struct creation - a file that a worker makes
 * @refs: of the worker and of who waits for it, and may be killed meanwhile
 * @dir: with references of its own
 */
struct creation {
	struct work_struct work;
	refcount_t refs;
	struct completion done;
	struct plog_dir dir;
	int oflags;
	struct file *filp;
	char name[];
};

static void creation_put(struct creation *c)
{
	if (!refcount_dec_and_test(&c->refs))
		return;
	if (!IS_ERR_OR_NULL(c->filp))
		put_file(c->filp);
	path_put(&c->dir.path);
	put_cred(c->dir.cred);
	kfree(c);
}

static void create_work(struct work_struct *work)
{
	struct creation *c = container_of(work, struct creation, work);

	c->filp = open_name(&c->dir, c->name, c->oflags);
	complete(&c->done);
	creation_put(c);
}

/*
 * The umask that would count is that of whoever reads or writes the log just now.
 * Theirs can make a file that the next Kafka cannot open; a worker's is 022.  It may
 * wait for a thaw, and then is left to it by who is killed.
 */
static struct file *create_name(struct plog_dir *dir, const char *name, int oflags)
{
	struct creation *c;
	struct file *filp;

	oflags |= O_CREAT;
	if (current->flags & PF_KTHREAD)
		return open_name(dir, name, oflags);
	c = kzalloc(struct_size(c, name, strlen(name) + 1), GFP_KERNEL);
	if (!c)
		return ERR_PTR(-ENOMEM);
	INIT_WORK(&c->work, create_work);
	refcount_set(&c->refs, 2);
	init_completion(&c->done);
	c->dir.path = dir->path;
	path_get(&c->dir.path);
	c->dir.cred = get_cred(dir->cred);
	c->oflags = oflags;
	strcpy(c->name, name);
	queue_work(plog_file_wq, &c->work);
	if (wait_for_completion_killable(&c->done)) {
		filp = ERR_PTR(-EINTR);
	} else {
		filp = c->filp;
		c->filp = NULL;
	}
	creation_put(c);
	return filp;
}

struct plog_file *plog_file_open(struct plog_dir *dir, const char *name,
				 unsigned int flags)
{
	int oflags = O_LARGEFILE | O_NOFOLLOW | O_NONBLOCK;
	struct plog_file *file;
	struct inode *inode;
	struct file *filp;
	int err;

	oflags |= flags & PLOG_FILE_RDONLY ? O_RDONLY : O_RDWR;
	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return ERR_PTR(-ENOMEM);
	if (flags & PLOG_FILE_CREATE && current->flags & PF_KTHREAD)
		filp = create_name(dir, name, oflags);
	else
		filp = open_name(dir, name, oflags);
	/* not there, or gone by the time it was opened */
	if (flags & PLOG_FILE_CREATE && PTR_ERR(filp) == -ENOENT)
		filp = create_name(dir, name, oflags);
	if (PTR_ERR(filp) == -EEXIST)
		filp = open_name(dir, name, oflags);
	if (IS_ERR(filp)) {
		err = PTR_ERR(filp);
		/* What O_NOFOLLOW says of a symbolic link, and open of a FIFO or socket. */
		if (err == -ELOOP || err == -ENXIO || err == -EISDIR)
			err = -EINVAL;
		goto out_free;
	}

	inode = file_inode(filp);
	err = -EINVAL;
	/* Of another filesystem: something is mounted over the name. */
	if (!S_ISREG(inode->i_mode) || inode->i_sb != dir->path.dentry->d_sb)
		goto out_put;
	err = -EOPNOTSUPP;
	if (IS_DAX(inode))
		goto out_put;

	/* Nobody wants a log's access time, and it costs writes. */
	spin_lock(&filp->f_lock);
	filp->f_flags = (filp->f_flags & ~O_NONBLOCK) | O_NOATIME;
	spin_unlock(&filp->f_lock);
	file->filp = filp;
	file->memcg = hold_memcg(dir->memcg);
	plog_object_created(PLOG_OBJECT_FILE);
	return file;

out_put:
	put_file(filp);
out_free:
	kfree(file);
	return ERR_PTR(err);
}

void plog_file_close(struct plog_file *file)
{
	put_file(file->filp);
	mem_cgroup_put(file->memcg);
	kfree(file);
	plog_object_destroyed(PLOG_OBJECT_FILE);
}

struct file *plog_file_filp(struct plog_file *file)
{
	return file->filp;
}

struct mem_cgroup *plog_file_charge(struct plog_file *file)
{
	return set_active_memcg(file->memcg);
}

bool plog_file_same(struct plog_file *a, struct plog_file *b)
{
	return file_inode(a->filp) == file_inode(b->filp);
}

void plog_file_identity(struct plog_file *file, u64 *inode, u32 *gen)
{
	*inode = file_inode(file->filp)->i_ino;
	*gen = file_inode(file->filp)->i_generation;
}

u64 plog_file_size(struct plog_file *file)
{
	return i_size_read(file_inode(file->filp));
}

ssize_t plog_file_read(struct plog_file *file, void *buf, size_t len, u64 pos)
{
	const struct cred *old_cred = override_creds(file->filp->f_cred);
	struct mem_cgroup *old = plog_file_charge(file);
	size_t done = 0;
	loff_t at = pos;
	ssize_t n = 0;

	while (done < len) {
		n = kernel_read(file->filp, buf + done, len - done, &at);
		if (n <= 0)
			break;
		done += n;
	}
	set_active_memcg(old);
	revert_creds(old_cred);
	if (n < 0)
		return n == -ERESTARTSYS ? -EINTR : n;
	return done;
}

/* Permission hooks judge the credentials that the file was opened with. */
static int verify_area(struct file *filp, int how, u64 pos, size_t len)
{
	const struct cred *old = override_creds(filp->f_cred);
	loff_t at = pos;
	int err;

	err = rw_verify_area(how, filp, &at, len);
	revert_creds(old);
	return err;
}

/*
 * One read that waits for no page of the reader's.  XFS copies under the inode's
 * lock, shared, which an append wants for itself, under its partition's mutex: a
 * reader whose memory never arrives, a userfaultfd's, would stop every writer.
 */
static ssize_t read_present(struct plog_file *file, struct kiocb *kiocb, struct iov_iter *to)
{
	struct mem_cgroup *old = plog_file_charge(file);
	ssize_t n;

	pagefault_disable();
	n = file->filp->f_op->read_iter(kiocb, to);
	pagefault_enable();
	set_active_memcg(old);
	return n;
}

/*
 * Not under the file's credentials: @to may be user memory, and a page fault
 * there is the caller's own business.
 */
ssize_t plog_file_read_iter(struct plog_file *file, struct iov_iter *to, u64 pos)
{
	struct file *filp = file->filp;
	struct kiocb kiocb;
	ssize_t n, done = 0;
	size_t ahead;
	int err;

	if (!iov_iter_count(to))
		return 0;
	err = verify_area(filp, READ, pos, iov_iter_count(to));
	if (err)
		return err;
	init_sync_kiocb(&kiocb, filp);
	kiocb.ki_pos = pos;
	do {
		n = read_present(file, &kiocb, to);
		if (n > 0) {
			done += n;
			continue;
		}
		if (n != -EFAULT || !user_backed_iter(to))
			break;
		/* With no lock held: make them present, and try again. */
		ahead = min_t(size_t, iov_iter_count(to), PLOG_FAULT_AHEAD);
		if (fault_in_iov_iter_writeable(to, ahead) == ahead)
			break;
	} while (iov_iter_count(to));
	if (done)
		return done;
	return n == -ERESTARTSYS ? -EINTR : n;
}

int plog_dir_thawed(struct plog_dir *dir)
{
	struct super_block *sb = dir->path.dentry->d_sb;

	while (!sb_start_write_trylock(sb)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		schedule_timeout_killable(msecs_to_jiffies(PLOG_FREEZE_POLL_MS));
	}
	sb_end_write(sb);
	return 0;
}

static int start_write(struct file *filp)
{
	while (!file_start_write_trylock(filp)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		schedule_timeout_killable(msecs_to_jiffies(PLOG_FREEZE_POLL_MS));
	}
	return 0;
}

int plog_file_write_iter(struct plog_file *file, struct iov_iter *from, u64 pos)
{
	u64 len = iov_iter_count(from), limit = rlimit(RLIMIT_FSIZE);
	struct file *filp = file->filp;
	struct mem_cgroup *old_memcg;
	const struct cred *old;
	struct kiocb kiocb;
	int err;

	if (!len)
		return 0;
	/*
	 * The filesystem would send SIGXFSZ for a limit that the caller has set
	 * for files of its own, and write a part.
	 */
	if (limit != RLIM_INFINITY && pos + len > limit)
		return -EFBIG;
	err = verify_area(filp, WRITE, pos, min_t(u64, len, MAX_RW_COUNT));
	if (err)
		return err;
	err = start_write(filp);
	if (err)
		return err;

	init_sync_kiocb(&kiocb, filp);
	kiocb.ki_pos = pos;
	old = override_creds(filp->f_cred);
	old_memcg = plog_file_charge(file);
	while (iov_iter_count(from)) {
		ssize_t n = filp->f_op->write_iter(&kiocb, from);

		if (n <= 0) {
			err = n == -ERESTARTSYS ? -EINTR : n ? n : -EIO;
			break;
		}
	}
	set_active_memcg(old_memcg);
	revert_creds(old);
	file_end_write(filp);
	return err;
}

int plog_file_write(struct plog_file *file, const void *buf, size_t len, u64 pos)
{
	struct kvec vec = { .iov_base = (void *)buf, .iov_len = len };
	struct iov_iter from;

	iov_iter_kvec(&from, ITER_SOURCE, &vec, 1, len);
	return plog_file_write_iter(file, &from, pos);
}

/* A piece that the page cache does not have whole: read it. */
static int crc_by_read(struct plog_file *file, void **page, u64 pos, size_t len, u32 *crc)
{
	ssize_t n;

	if (!*page) {
		*page = (void *)__get_free_page(GFP_KERNEL);
		if (!*page)
			return -ENOMEM;
	}
	n = plog_file_read(file, *page, len, pos);
	if (n < 0)
		return n;
	if (n < len)
		return -EIO;
	*crc = crc32c(*crc, *page, len);
	return 0;
}

/* As much as @folio has of @len bytes at @pos; 0 if it is not there. */
static u64 crc_of_folio(struct folio *folio, u64 pos, u64 len, u32 *crc)
{
	u64 at = folio_pos(folio), end = at + folio_size(folio), from = pos;

	if (pos < at || pos >= end || !folio_test_uptodate(folio))
		return 0;
	for (end = min(end, pos + len); pos < end;) {
		void *bytes = kmap_local_folio(folio, offset_in_folio(folio, pos));
		size_t n = min_t(u64, end - pos, PAGE_SIZE - offset_in_page(pos));

		*crc = crc32c(*crc, bytes, n);
		kunmap_local(bytes);
		pos += n;
	}
	return end - from;
}

int plog_file_crc32c(struct plog_file *file, u64 pos, u64 len, u32 *crc)
{
	struct address_space *mapping = file->filp->f_mapping;
	void *page = NULL;
	int err = 0;

	while (len) {
		pgoff_t next = pos >> PAGE_SHIFT;
		struct folio_batch batch;
		unsigned int i;
		u64 done = 0, n;

		/* Some kernels name a large folio twice: the second time it gives nothing. */
		folio_batch_init(&batch);
		filemap_get_folios_contig(mapping, &next, (pos + len - 1) >> PAGE_SHIFT, &batch);
		for (i = 0; i < folio_batch_count(&batch); i++) {
			if (done < len)
				done += crc_of_folio(batch.folios[i], pos + done, len - done, crc);
			folio_put(batch.folios[i]);
		}
		if (!done) {
			n = min_t(u64, len, PAGE_SIZE - offset_in_page(pos));
			err = crc_by_read(file, &page, pos, n, crc);
			if (err)
				break;
			done = n;
		}
		pos += done;
		len -= done;
		cond_resched();
	}
	free_page((unsigned long)page);
	return err;
}

bool plog_file_page_get(struct plog_file *file, u64 pos, struct plog_page *page)
{
	struct folio *folio = filemap_get_folio(file->filp->f_mapping, pos >> PAGE_SHIFT);

	if (IS_ERR_OR_NULL(folio))
		return false;
	if (!folio_test_uptodate(folio)) {
		folio_put(folio);
		return false;
	}
	page->pos = round_down(pos, PAGE_SIZE);
	page->len = PAGE_SIZE;
	page->at = kmap_local_folio(folio, offset_in_folio(folio, page->pos));
	page->ref = folio;
	return true;
}

void plog_file_page_put(struct plog_page *page)
{
	kunmap_local(page->at);
	folio_put(page->ref);
	page->at = NULL;
}

/* A truncation in a worker's hands. */
struct truncation {
	struct work_struct work;
	struct file *filp;
	u64 size;
	int err;
};

static int truncate(struct file *filp, u64 size)
{
	const struct cred *old = override_creds(filp->f_cred);
	int err;

	err = vfs_truncate(&filp->f_path, size);
	revert_creds(old);
	return err;
}

static void truncate_work(struct work_struct *work)
{
	struct truncation *t = container_of(work, struct truncation, work);

	t->err = truncate(t->filp, t->size);
}

/*
 * The cut after an append that was killed must not fail because of the kill: XFS
 * and btrfs give up where a fatal signal is pending (the block that is cut in two
 * is written, or space is waited for).  Workers get none.
 */
int plog_file_truncate(struct plog_file *file, u64 size)
{
	struct truncation t = { .filp = file->filp, .size = size };
	int err = truncate(file->filp, size);

	if (err != -EINTR && err != -ERESTARTSYS)
		return err;
	INIT_WORK_ONSTACK(&t.work, truncate_work);
	queue_work(plog_file_wq, &t.work);
	flush_work(&t.work);
	destroy_work_on_stack(&t.work);
	return t.err;
}

int plog_file_preallocate(struct plog_file *file, u64 size)
{
	const struct cred *old_cred = override_creds(file->filp->f_cred);
	struct mem_cgroup *old = plog_file_charge(file);
	int err;

	err = vfs_fallocate(file->filp, FALLOC_FL_KEEP_SIZE, 0, size);
	set_active_memcg(old);
	revert_creds(old_cred);
	return err;
}

s64 plog_file_mtime_ms(struct plog_file *file)
{
	struct kstat stat;
	int err;

	/* inodes keep it in another way in each version; this never changed */
	err = vfs_getattr(&file->filp->f_path, &stat, STATX_MTIME, AT_STATX_SYNC_AS_STAT);
	if (err || !(stat.result_mask & STATX_MTIME))
		return -1;
	return stat.mtime.tv_sec * MSEC_PER_SEC + stat.mtime.tv_nsec / NSEC_PER_MSEC;
}

int plog_file_sync(struct plog_file *file, u64 start, u64 end)
{
	/* The size is part of what is needed to read the data back. */
	return vfs_fsync_range(file->filp, start, end, 1);
}

int plog_file_failed(struct plog_file *file)
{
	return filemap_check_wb_err(file->filp->f_mapping, READ_ONCE(file->filp->f_wb_err));
}

void plog_file_doubt(struct plog_file *file)
{
	vfs_fadvise(file->filp, 0, 0, POSIX_FADV_DONTNEED);
}

void plog_file_readahead(struct plog_file *file, u64 pos, u64 len)
{
	vfs_fadvise(file->filp, pos, len, POSIX_FADV_WILLNEED);
}
