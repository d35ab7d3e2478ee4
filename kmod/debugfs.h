/* SPDX-License-Identifier: GPL-2.0 */
/* What debugfs shows of the module: /sys/kernel/debug/plog, for root, read-only. */
#ifndef _PLOG_DEBUGFS_H
#define _PLOG_DEBUGFS_H

/* Never fails: a kernel without debugfs just shows nothing. */
void plog_debugfs_init(void);
/* Nobody reads any more on return. */
void plog_debugfs_exit(void);

#endif /* _PLOG_DEBUGFS_H */
