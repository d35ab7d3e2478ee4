// SPDX-License-Identifier: GPL-2.0
/*
 * Goes wrong on request: a letter written to /proc/faulty chooses how. Shows
 * that tools/vm/vm notices each.
 */
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

static DEFINE_SPINLOCK(first);
static DEFINE_SPINLOCK(second);

/* Both orders, so that lockdep has something to say; nothing can hang here. */
static void invert_locks(void)
{
	spin_lock(&first);
	spin_lock(&second);
	spin_unlock(&second);
	spin_unlock(&first);

	spin_lock(&second);
	spin_lock(&first);
	spin_unlock(&first);
	spin_unlock(&second);
}

static void use_after_free(void)
{
	char *p = kmalloc(100, GFP_KERNEL);

	if (!p)
		return;
	OPTIMIZER_HIDE_VAR(p);
	kfree(p);
	WRITE_ONCE(p[3], 1);
}

static void lose_memory(void)
{
	int i;

	/* Many, as a stale copy of a pointer may hide one from the scan. */
	for (i = 0; i < 20; i++) {
		char *p = kmalloc(100, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(p);
	}
}

static ssize_t faulty_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	char how;

	if (!len || get_user(how, buf))
		return -EFAULT;
	switch (how) {
	case 'w':
		WARN_ON(1);
		break;
	case 'l':
		invert_locks();
		break;
	case 'u':
		use_after_free();
		break;
	case 'm':
		lose_memory();
		break;
	default:
		return -EINVAL;
	}
	return len;
}

static const struct proc_ops faulty_ops = {
	.proc_write = faulty_write,
};

static int __init faulty_init(void)
{
	return proc_create("faulty", 0600, NULL, &faulty_ops) ? 0 : -ENOMEM;
}

static void __exit faulty_exit(void)
{
	remove_proc_entry("faulty", NULL);
}

module_init(faulty_init);
module_exit(faulty_exit);
MODULE_DESCRIPTION("Goes wrong on request");
MODULE_LICENSE("GPL");
