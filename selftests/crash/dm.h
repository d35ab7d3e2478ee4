/* SPDX-License-Identifier: MIT */
/*
 * Loop devices and device mapper tables for the crash tests, by their ioctls: a
 * mark has to reach dm-log-writes right behind the fsync that it stands for, and
 * an emulated machine takes tens of milliseconds to start dmsetup(8).
 */
#ifndef PLOG_CRASH_DM_H
#define PLOG_CRASH_DM_H

#include <stdint.h>

/**
 * loop_open() - a loop device over a sparse file
 * @file: made, or made anew, with @size bytes
 * @path: out: "/dev/loopN", 32 bytes
 *
 * Return: its descriptor, to be closed by loop_close(), or -errno.
 */
int loop_open(const char *file, uint64_t size, char path[32]);
void loop_close(int fd);

/* One line of a table: [@start, @start + @length) in sectors of 512 bytes. */
struct dm_line {
	uint64_t start;
	uint64_t length;
	const char *target;
	char params[128];
};

/**
 * dm_create() - a mapped device with this table
 * @path: out: "/dev/dm-N", 32 bytes
 *
 * All of these return 0 or -errno.
 */
int dm_create(const char *name, const struct dm_line *lines, int n, char path[32]);

/* Put another table under a device that is in use, without flushing what is on its way. */
int dm_reload(const char *name, const struct dm_line *lines, int n);

/* Waits for whoever still has it open. */
int dm_remove(const char *name);

/* Send @text to the target at sector 0. */
int dm_message(const char *name, const char *text);

/* The status line of the target at sector 0, as dmsetup status shows it behind its name. */
int dm_status(const char *name, char *text, int size);

/* Sectors of a block device, or a negative errno. */
int64_t device_sectors(const char *path);

#endif
