// SPDX-License-Identifier: MIT
#include "dm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <linux/loop.h>

#define ROOM 16384

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

int loop_open(const char *file, uint64_t size, char path[32])
{
	struct loop_config config = { .info.lo_flags = LO_FLAGS_AUTOCLEAR };
	int ctl = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int back, fd = -1, nr, ret = 0;

	back = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (ctl < 0 || back < 0 || ftruncate(back, (off_t)size)) {
		ret = -errno;
		goto out;
	}
	nr = ioctl(ctl, LOOP_CTL_GET_FREE);
	if (nr < 0) {
		ret = -errno;
		goto out;
	}
	snprintf(path, 32, "/dev/loop%d", nr);
	fd = open(path, O_RDWR | O_CLOEXEC);
	config.fd = (uint32_t)back;
	if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config)) {
		ret = -errno;
		if (fd >= 0)
			close(fd);
	}
out:
	if (ctl >= 0)
		close(ctl);
	if (back >= 0)
		close(back);
	return ret ? ret : fd;
}

void loop_close(int fd)
{
	if (fd < 0)
		return;
	ioctl(fd, LOOP_CLR_FD);
	close(fd);
}

/* A request for device @name with room behind the header; ROOM bytes. */
static struct dm_ioctl *begin(const char *name)
{
	struct dm_ioctl *d = calloc(1, ROOM);

	if (!d)
		exit(4);
	d->version[0] = DM_VERSION_MAJOR;
	d->data_size = ROOM;
	d->data_start = sizeof(*d);
	snprintf(d->name, sizeof(d->name), "%s", name);
	return d;
}

static int send_request(unsigned long request, struct dm_ioctl *d)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	return fd < 0 || ioctl(fd, request, d) ? -errno : 0;
}

static int load(const char *name, const struct dm_line *lines, int n)
{
	struct dm_ioctl *d = begin(name);
	char *at = (char *)d + sizeof(*d);
	int i, ret;

	d->target_count = (uint32_t)n;
	for (i = 0; i < n; i++) {
		struct dm_target_spec *spec = (struct dm_target_spec *)at;
		size_t len = strlen(lines[i].params) + 1;

		len = (sizeof(*spec) + len + 7) & ~7UL;
		if (at + len > (char *)d + ROOM) {
			free(d);
			return -E2BIG;
		}
		spec->sector_start = lines[i].start;
		spec->length = lines[i].length;
		snprintf(spec->target_type, sizeof(spec->target_type), "%s", lines[i].target);
		strcpy(at + sizeof(*spec), lines[i].params);
		spec->next = (uint32_t)len;
		at += len;
	}
	ret = send_request(DM_TABLE_LOAD, d);
	free(d);
	return ret;
}

static int suspend(const char *name, uint32_t flags)
{
	struct dm_ioctl *d = begin(name);
	int ret;

	d->flags = flags;
	ret = send_request(DM_DEV_SUSPEND, d);
	free(d);
	return ret;
}

int dm_create(const char *name, const struct dm_line *lines, int n, char path[32])
{
	struct dm_ioctl *d = begin(name);
	int ret, tries;

	ret = send_request(DM_DEV_CREATE, d);
	if (!ret)
		snprintf(path, 32, "/dev/dm-%u", minor(d->dev));
	free(d);
	if (ret)
		return ret;
	ret = load(name, lines, n);
	if (!ret)
		ret = suspend(name, 0);		/* no flag: resume */
	if (ret) {
		dm_remove(name);
		return ret;
	}
	for (tries = 0; tries < 500 && access(path, F_OK); tries++)
		pause_ms(2);
	return 0;
}

int dm_reload(const char *name, const struct dm_line *lines, int n)
{
	int ret = load(name, lines, n);

	/* a file system must not be frozen for it: it would write what is to fail */
	if (!ret)
		ret = suspend(name, DM_SUSPEND_FLAG | DM_SKIP_LOCKFS_FLAG | DM_NOFLUSH_FLAG);
	if (!ret)
		ret = suspend(name, 0);
	return ret;
}

int dm_remove(const char *name)
{
	int ret = 0, tries;

	for (tries = 0; tries < 500; tries++) {
		struct dm_ioctl *d = begin(name);

		ret = send_request(DM_DEV_REMOVE, d);
		free(d);
		if (ret != -EBUSY)
			break;
		pause_ms(10);
	}
	return ret;
}

int dm_message(const char *name, const char *text)
{
	struct dm_ioctl *d = begin(name);
	struct dm_target_msg *msg = (struct dm_target_msg *)((char *)d + sizeof(*d));
	int ret;

	strcpy((char *)(msg + 1), text);
	ret = send_request(DM_TARGET_MSG, d);
	free(d);
	return ret;
}

int dm_status(const char *name, char *text, int size)
{
	struct dm_ioctl *d = begin(name);
	int ret = send_request(DM_TABLE_STATUS, d);

	if (!ret)
		snprintf(text, (size_t)size, "%s",
			 (char *)d + d->data_start + sizeof(struct dm_target_spec));
	free(d);
	return ret;
}

int64_t device_sectors(const char *path)
{
	uint64_t bytes = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, BLKGETSIZE64, &bytes)) {
		int ret = -errno;

		if (fd >= 0)
			close(fd);
		return ret;
	}
	close(fd);
	return (int64_t)(bytes >> 9);
}
