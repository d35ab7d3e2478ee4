// SPDX-License-Identifier: MIT
#include "instance.h"
#include "batch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 20000

int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int slow(void)
{
	return access("/sys/kernel/debug/kmemleak", F_OK) ? 1 : 4;
}

static void pause_ms(int ms)
{
	struct timespec ts = { .tv_nsec = ms * 1000000L };

	nanosleep(&ts, NULL);
}

int namespace_new(void)
{
	return unshare(CLONE_NEWNET) ? -errno : 0;
}

static int directory_new(char *dir, size_t size)
{
	const char *base = getenv("PLOG_TEST_DIR");

	snprintf(dir, size, "%s/test.XXXXXX", base && *base ? base : "/var/lib/plog");
	return mkdtemp(dir) ? 0 : -errno;
}

int instance_start(struct instance *in, const char *dir)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[300];
	int ret;

	memset(in, 0, sizeof(*in));
	in->dir_fd = -1;
	in->lock_fd = -1;
	ret = nl_open(&in->nl);
	if (ret)
		return ret;
	if (dir)
		snprintf(in->dir, sizeof(in->dir), "%s", dir);
	else
		ret = directory_new(in->dir, sizeof(in->dir));
	if (ret)
		goto err;

	in->dir_fd = open(in->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/.lock", in->dir);
	in->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (in->dir_fd < 0 || in->lock_fd < 0 || fcntl(in->lock_fd, F_OFD_SETLK, &lock)) {
		ret = -errno;
		goto err;
	}
	ret = nl_instance_set(&in->nl, in->dir, in->dir_fd, in->lock_fd);
	if (ret)
		goto err;
	return 0;

err:
	if (in->dir_fd >= 0)
		close(in->dir_fd);
	if (in->lock_fd >= 0)
		close(in->lock_fd);
	in->dir_fd = in->lock_fd = -1;
	mnl_socket_close(in->nl.socket);
	in->nl.socket = NULL;
	return ret;
}

void instance_close(struct instance *in)
{
	nl_close(&in->nl);
	if (in->dir_fd >= 0)
		close(in->dir_fd);
	if (in->lock_fd >= 0)
		close(in->lock_fd);
	in->dir_fd = in->lock_fd = -1;
}

int instance_stop(struct instance *in)
{
	int64_t end = now_ms() + WAIT_MS * slow();
	struct nl_instance got;
	int ret;

	ret = nl_instance_stop(&in->nl);
	if (ret)
		return ret;
	for (;;) {
		ret = nl_instance_get(&in->nl, &got);
		if (ret || got.state == PLOG_INSTANCE_NONE ||
		    got.state == PLOG_INSTANCE_STOPPED)
			break;
		if (now_ms() > end)
			return -ETIMEDOUT;
		pause_ms(2);
	}
	instance_close(in);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

void instance_remove(struct instance *in)
{
	nftw(in->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

const char *instance_path(struct instance *in, const char *topic, uint32_t index,
			  const char *file)
{
	static char path[1024];

	snprintf(path, sizeof(path), "%s/%s-%u%s%s", in->dir, topic, index, file ? "/" : "",
		 file ? file : "");
	return path;
}

int instance_wait(struct instance *in, const char *topic, uint32_t index)
{
	int64_t end = now_ms() + WAIT_MS * slow();
	struct nl_partition got;
	int ret;

	for (;;) {
		ret = nl_partition_get(&in->nl, topic, index, &got);
		if (ret)
			return ret;
		if (got.state == PLOG_PARTITION_ONLINE)
			return 0;
		if (got.state != PLOG_PARTITION_OPENING)
			return got.error ? -(int)got.error : -EPROTO;
		if (now_ms() > end)
			return -ETIMEDOUT;
		pause_ms(2);
	}
}

int instance_partition(struct instance *in, struct nl_partition *part)
{
	const char *path = instance_path(in, part->topic, part->index, NULL);
	int ret;

	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	part->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (part->dir_fd < 0)
		return -errno;
	ret = nl_partition_new(&in->nl, part);
	close(part->dir_fd);
	part->dir_fd = -1;
	return ret ? ret : instance_wait(in, part->topic, part->index);
}

int instance_topic(struct instance *in, const char *topic)
{
	struct nl_partition part = { .topic = topic };

	return instance_partition(in, &part);
}

int instance_delete(struct instance *in, const char *topic, uint32_t index)
{
	int64_t end = now_ms() + WAIT_MS * slow();
	char buf[NL_BUF_SIZE];
	struct nl_partition got;
	struct nlmsghdr *nlh;
	struct nl ev;
	int ret;

	/* its directory is free for another use when the event comes */
	ret = nl_open(&ev);
	if (ret)
		return ret;
	ret = nl_join(&ev);
	if (!ret)
		ret = nl_partition_del(&in->nl, topic, index);
	while (!ret) {
		int64_t left = end - now_ms();

		nlh = left > 0 ? nl_event(&ev, buf, (int)left) : NULL;
		if (!nlh)
			ret = -ETIMEDOUT;
		else if (nl_partition_parse(nlh, &got) && !strcmp(got.name, topic) &&
			 got.index == index && got.state == PLOG_PARTITION_CLOSED)
			break;
	}
	nl_close(&ev);
	return ret;
}

static int copy_file(int from_dir, int to_dir, const char *name)
{
	int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC);
	int to = openat(to_dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	static char buf[1 << 16];
	ssize_t n;
	int ret = 0;

	if (from < 0 || to < 0)
		ret = -errno;
	while (!ret && (n = read(from, buf, sizeof(buf))) > 0) {
		if (write(to, buf, (size_t)n) != n)
			ret = -EIO;
	}
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return ret;
}

int instance_open_copy(struct instance *in, const char *from_path, const char *copy)
{
	int from, to, ret = 0;
	struct dirent *entry;
	DIR *dir;

	/* first, since it may come from instance_path() as well */
	from = open(from_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mkdir(instance_path(in, copy, 0, NULL), 0755))
		return -errno;
	to = open(instance_path(in, copy, 0, NULL), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = from < 0 ? NULL : fdopendir(from);
	if (to < 0 || !dir)
		return -errno;
	while (!ret && (entry = readdir(dir))) {
		if (entry->d_type == DT_REG)
			ret = copy_file(from, to, entry->d_name);
	}
	closedir(dir);
	close(to);
	return ret ? ret : instance_topic(in, copy);
}

int control_open(int flags)
{
	int fd = open("/dev/plog-control", O_RDWR | O_CLOEXEC | flags);

	return fd < 0 ? -errno : fd;
}

int partition_bind_flags(const char *topic, uint32_t index, uint32_t mode, int flags)
{
	struct plog_bind bind = { .flags = mode, .partition = index };
	int fd = control_open(flags);

	if (fd < 0)
		return fd;
	strncpy(bind.topic, topic, sizeof(bind.topic) - 1);
	if (ioctl(fd, PLOG_IOC_BIND, &bind)) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return fd;
}

int partition_bind(const char *topic, uint32_t index, uint32_t mode)
{
	return partition_bind_flags(topic, index, mode, 0);
}

int partition_state(int fd, struct plog_state *out)
{
	memset(out, 0, sizeof(*out));
	return ioctl(fd, PLOG_IOC_STATE, out) ? -errno : 0;
}

int64_t partition_end(int fd)
{
	struct plog_state state;
	int ret = partition_state(fd, &state);

	return ret ? ret : state.log_end;
}

int partition_append(int fd, const void *data, size_t size, struct plog_append *out)
{
	struct plog_append local = { .leader_epoch = -1 };

	if (!out)
		out = &local;
	out->data = (uintptr_t)data;
	out->length = (uint32_t)size;
	return ioctl(fd, PLOG_IOC_APPEND, out) ? -errno : 0;
}

int partition_locate(int fd, int64_t offset, uint32_t max_bytes, uint32_t flags,
		     struct plog_locate *out)
{
	memset(out, 0, sizeof(*out));
	out->offset = offset;
	out->max_bytes = max_bytes;
	out->flags = flags;
	return ioctl(fd, PLOG_IOC_LOCATE, out) ? -errno : 0;
}

int partition_mode(int fd, uint32_t mode)
{
	struct plog_mode arg = { .flags = mode };

	return ioctl(fd, PLOG_IOC_SET_MODE, &arg) ? -errno : 0;
}

int partition_control(int fd, uint32_t command, uint64_t incarnation, int32_t epoch,
		      int64_t offset)
{
	struct plog_control arg = {
		.command = command,
		.leader_epoch = epoch,
		.incarnation = incarnation,
		.offset = offset,
	};

	return ioctl(fd, PLOG_IOC_CONTROL, &arg) ? -errno : 0;
}

int control_register(int fd, uint32_t port, uint64_t *incarnation)
{
	struct plog_register arg = { .netlink_port = port };

	if (ioctl(fd, PLOG_IOC_REGISTER, &arg))
		return -errno;
	if (incarnation)
		*incarnation = arg.incarnation;
	return 0;
}

static ssize_t read_all(int fd, uint8_t *buf, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(fd, buf + got, size - got);

		if (n < 0)
			return -errno;
		if (!n)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

const char *partition_check(int fd, int *batches)
{
	const uint32_t step = 1 << 20;
	struct plog_state state;
	struct plog_locate loc;
	const char *wrong = NULL;
	uint8_t *buf = NULL;
	int total = 0, n;
	int64_t at;

	if (partition_state(fd, &state))
		return "no state";
	for (at = state.log_start; !wrong && at < state.log_end; at = loc.next_offset) {
		int64_t next = at;

		if (partition_locate(fd, at, step, PLOG_LOCATE_WHOLE, &loc))
			wrong = "LOCATE fails below the log end";
		else if (!loc.length || loc.next_offset <= at)
			wrong = "LOCATE finds nothing below the log end";
		if (wrong)
			break;
		buf = realloc(buf, loc.length);
		if (!buf || read_all(fd, buf, loc.length) != (ssize_t)loc.length)
			wrong = "a short read of an extent";
		else
			wrong = batch_walk(buf, loc.length, &next, &n);
		if (!wrong && next != loc.next_offset)
			wrong = "next_offset is not behind the last batch";
		total += n;
	}
	free(buf);
	if (batches)
		*batches = total;
	return wrong;
}
