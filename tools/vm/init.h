/* SPDX-License-Identifier: MIT */
#ifndef PLOG_VM_INIT_H
#define PLOG_VM_INIT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Sends one line, made as printf does and without its newline, to the host; to
 * the console while there is no control port yet. Cuts it at 1022 bytes.
 */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Sends "fatal" and the line, made as printf does, and turns the guest off. */
void fatal(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/*
 * Mounts the machine's root read-only, an overlay over it whose changes are in
 * memory, and makes it the root of this process. @libmodules, if not NULL, is a
 * directory of the machine that becomes /lib/modules/RELEASE. A mount that
 * fails is fatal, here and in what follows.
 */
void guest_root(const char *libmodules);

/*
 * Mounts the file systems that programs expect, with empty ones at /tmp and
 * /run in which the machine's folders @keep (@n of them) are still visible.
 */
void guest_mounts(char **keep, int n);

/* Limits, host name, /proc/sys. */
void guest_settings(void);

/* Brings lo up, and eth0 with QEMU's guest address if @published. */
void guest_network(bool published);

/*
 * Mounts the log disk at /var/lib/plog: /dev/vda with file system @fs, or a
 * tmpfs of @size bytes; nothing when @fs is NULL.
 */
void guest_disk(const char *fs, const char *size);

/*
 * After the command: removes the module that came from @file, unless that is
 * NULL or something uses it, reports leaked memory as "fail" if @leaks is set,
 * and leaves the log disk clean, or says why it is not.
 */
void guest_end(const char *file, bool leaks);

/*
 * Keeps the addresses of @module's symbols, for symbols_name(); to be called
 * while it is there.
 */
void symbols_keep(const char *module);

/*
 * Copies @line to @named (@size bytes), with an address of the module that was
 * kept (" 0x...") turned into its symbol and an offset.
 */
void symbols_name(const char *line, char *named, size_t size);

#endif
