// SPDX-License-Identifier: GPL-2.0
/* Since 6.9: what leases and locks share sits in struct file_lock_core. */
#include <linux/filelock.h>

fl_owner_t probe(struct file_lock *fl);
fl_owner_t probe(struct file_lock *fl)
{
	return fl->c.flc_owner;
}
