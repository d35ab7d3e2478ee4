// SPDX-License-Identifier: MIT
#include "datadir_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_NAME	".lock"
#define META_NAME	"meta.properties"

/* ---- who holds the lock ---- */

/* Does the process have the file of @st open, with a lock on it? */
static bool process_holds(const char *pid, const struct stat *st)
{
	char name[NAME_MAX + 64], line[256];
	struct dirent *entry;
	bool holds = false;
	struct stat open;
	DIR *fds;

	snprintf(name, sizeof(name), "/proc/%s/fd", pid);
	fds = opendir(name);
	if (!fds)
		return false;
	while (!holds && (entry = readdir(fds))) {
		FILE *info;

		if (fstatat(dirfd(fds), entry->d_name, &open, 0) < 0 ||
		    open.st_ino != st->st_ino || open.st_dev != st->st_dev)
			continue;
		snprintf(name, sizeof(name), "/proc/%s/fdinfo/%.20s", pid, entry->d_name);
		info = fopen(name, "re");
		if (!info)
			continue;
		while (fgets(line, sizeof(line), info))
			if (!strncmp(line, "lock:", 5))
				holds = true;
		fclose(info);
	}
	closedir(fds);
	return holds;
}

static void process_name(const char *pid, char *to, size_t size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	f = fopen(path, "re");
	if (!f || !fgets(to, size, f))
		snprintf(to, size, "gone by now");
	to[strcspn(to, "\n")] = '\0';
	if (f)
		fclose(f);
}

/*
 * The kernel tells the holder of a POSIX lock (Apache Kafka's), not of an OFD
 * lock (ours): look who has the file open.  Nobody: then it is the module.
 */
static int say_busy(const struct datadir *dir, struct plog_error *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char pid[24] = "", name[64];
	struct dirent *entry;
	struct stat st;
	DIR *proc;

	if (!fcntl(dir->lock_fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK && lock.l_pid > 0)
		snprintf(pid, sizeof(pid), "%d", (int)lock.l_pid);
	proc = *pid || fstat(dir->lock_fd, &st) < 0 ? NULL : opendir("/proc");
	while (proc && !*pid && (entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    strtol(entry->d_name, NULL, 10) == getpid())
			continue;
		if (process_holds(entry->d_name, &st))
			snprintf(pid, sizeof(pid), "%.20s", entry->d_name);
	}
	if (proc)
		closedir(proc);
	if (*pid) {
		process_name(pid, name, sizeof(name));
		return plog_error_set(err, -EBUSY, "data directory %s is in use by process %s "
				      "(%s); stop it first", dir->path, pid, name);
	}
	return plog_error_set(err, -EBUSY, "data directory %s is in use by a plog module instance "
			      "(see \"plogctl instance show\", also in other network namespaces) "
			      "or another broker (Apache Kafka included)", dir->path);
}

static int take_lock(struct datadir *dir, struct plog_error *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (!fcntl(dir->lock_fd, F_OFD_SETLK, &lock))
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return say_busy(dir, err);
	return plog_error_set(err, -errno, "cannot lock %s/" LOCK_NAME ": %m", dir->path);
}

static int check_locked(struct datadir *dir, struct plog_error *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(dir->lock_fd, F_OFD_GETLK, &lock) < 0)
		return plog_error_set(err, -errno, "cannot ask for the lock of %s/" LOCK_NAME
				      ": %m", dir->path);
	if (lock.l_type == F_UNLCK)
		return plog_error_set(err, -ENOLCK, "nobody serves %s, although it was said to be "
				      "served; was the directory moved, or another mounted over "
				      "it?", dir->path);
	return 0;
}

/* ---- opening ---- */

static int make_directories(const char *path, struct plog_error *err)
{
	char *copy = strdup(path);
	struct stat st;
	int ret = 0;

	if (!copy)
		return plog_error_set(err, -ENOMEM, "out of memory");
	for (char *at = copy + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST) {
			ret = plog_error_set(err, -errno, "cannot make %s: %m", copy);
			goto out;
		}
		*at = '/';
	}
	/* Not for others: who may read a partition is the module's to say. */
	if (mkdir(copy, 0750) < 0 && errno != EEXIST)
		ret = plog_error_set(err, -errno, "cannot make %s: %m", copy);
	else if (stat(copy, &st) == 0 && !S_ISDIR(st.st_mode))
		ret = plog_error_set(err, -ENOTDIR, "%s is not a directory", copy);
out:
	free(copy);
	return ret;
}

int datadir_open(const char *path, unsigned int flags, struct datadir **out,
		 struct plog_error *err)
{
	struct datadir *dir;
	int ret;

	*out = NULL;
	if (!*path)
		return plog_error_set(err, -EINVAL, "the name of the data directory is empty");
	if (flags & DATADIR_CREATE) {
		ret = make_directories(path, err);
		if (ret)
			return ret;
	}
	dir = calloc(1, sizeof(*dir));
	if (!dir)
		return plog_error_set(err, -ENOMEM, "out of memory");
	dir->lock_fd = -1;
	dir->change_fd = -1;
	dir->attached = flags & DATADIR_ATTACH;
	dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->fd < 0) {
		ret = plog_error_set(err, -errno, "cannot open data directory %s: %m", path);
		goto close;
	}
	dir->path = realpath(path, NULL);
	if (!dir->path) {
		ret = plog_error_set(err, -errno, "cannot resolve data directory %s: %m", path);
		goto close;
	}
	dir->change_fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->change_fd < 0) {
		ret = plog_error_set(err, -errno, "cannot open data directory %s: %m", path);
		goto close;
	}
	dir->lock_fd = openat(dir->fd, LOCK_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW |
			      (dir->attached ? 0 : O_CREAT), 0600);
	if (dir->lock_fd < 0 && errno == ENOENT) {
		ret = plog_error_set(err, -ENOLCK, "%s has no " LOCK_NAME ": nobody serves it",
				     dir->path);
		goto close;
	}
	if (dir->lock_fd < 0) {
		ret = plog_error_set(err, -errno, "cannot open %s/" LOCK_NAME ": %m", dir->path);
		goto close;
	}
	ret = dir->attached ? check_locked(dir, err) : take_lock(dir, err);
	if (!ret && !dir->attached)
		ret = datadir_sweep(dir, err);
	if (ret)
		goto close;
	*out = dir;
	return 0;

close:
	datadir_close(dir);
	return ret;
}

void datadir_close(struct datadir *dir)
{
	if (!dir)
		return;
	if (dir->lock_fd >= 0)
		close(dir->lock_fd);
	if (dir->change_fd >= 0)
		close(dir->change_fd);
	if (dir->fd >= 0)
		close(dir->fd);
	kafkadir_clear(&dir->kafka);
	free(dir->path);
	free(dir);
}

int datadir_fd(const struct datadir *dir)
{
	return dir->fd;
}

int datadir_lock_fd(const struct datadir *dir)
{
	return dir->lock_fd;
}

const char *datadir_path(const struct datadir *dir)
{
	return dir->path;
}

bool datadir_same(const char *label, const char *path)
{
	struct stat a, b;

	return stat(label, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

int datadir_change_begin(struct datadir *dir, unsigned int timeout_ms, struct plog_error *err)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	unsigned int waited = 0;

	while (flock(dir->change_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return plog_error_set(err, -errno, "cannot lock %s for a change: %m",
					      dir->path);
		if (waited >= timeout_ms)
			return plog_error_set(err, -ETIMEDOUT, "another process has been changing "
					      "topics in %s for %u s; try again later", dir->path,
					      timeout_ms / 1000);
		nanosleep(&pause, NULL);
		waited += 10;
	}
	return 0;
}

void datadir_change_end(struct datadir *dir)
{
	flock(dir->change_fd, LOCK_UN);
}

/* ---- ids ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int datadir_id_random(uint8_t id[DATADIR_ID_SIZE])
{
	do {
		if (getrandom(id, DATADIR_ID_SIZE, 0) != DATADIR_ID_SIZE)
			return -EIO;
		id[6] = (id[6] & 0x0f) | 0x40;
		id[8] = (id[8] & 0x3f) | 0x80;
		/* 62 is '-': a tool would take such a text for an option. */
	} while (id[0] >> 2 == 62);
	return 0;
}

void datadir_id_text(const uint8_t id[DATADIR_ID_SIZE], char text[DATADIR_ID_TEXT + 1])
{
	uint32_t bits = 0;
	int held = 0;

	for (int i = 0; i < DATADIR_ID_SIZE; i++) {
		bits = bits << 8 | id[i];
		for (held += 8; held >= 6; held -= 6)
			*text++ = digits[bits >> (held - 6) & 63];
	}
	*text++ = digits[bits << (6 - held) & 63];	/* 128 = 21 * 6 + 2 bits */
	*text = '\0';
}

int datadir_id_parse(const char *text, uint8_t id[DATADIR_ID_SIZE])
{
	uint8_t out[DATADIR_ID_SIZE];
	uint32_t bits = 0;
	int held = 0, filled = 0;

	if (strlen(text) != DATADIR_ID_TEXT)
		return -EINVAL;
	for (; *text; text++) {
		const char *digit = strchr(digits, *text);

		if (!digit)
			return -EINVAL;
		bits = bits << 6 | (digit - digits);
		held += 6;
		if (held >= 8) {
			held -= 8;
			out[filled++] = bits >> held;
		}
	}
	if (bits & ((1u << held) - 1))
		return -EINVAL;
	memcpy(id, out, sizeof(out));
	return 0;
}

/* ---- identity of the broker ---- */

static int meta_wrong(const struct datadir *dir, const char *key, const char *value,
		      struct plog_error *err)
{
	return plog_error_set(err, -EINVAL, "%s/" META_NAME ": %s%s%s%s", dir->path, key,
			      value ? "=" : " is missing", value ? value : "",
			      value ? " cannot be used" : "");
}

int datadir_meta_read(struct datadir *dir, struct datadir_meta *meta, struct plog_error *err)
{
	struct properties p;
	const char *value;
	char *end;
	long node;
	int ret;

	memset(meta, 0, sizeof(*meta));
	properties_init(&p);
	ret = properties_read(&p, dir->fd, META_NAME, err);
	if (ret)
		goto out;
	value = properties_get(&p, "version");
	if (!value || (strcmp(value, "1") && strcmp(value, "0"))) {
		ret = meta_wrong(dir, "version", value, err);
		goto out;
	}
	value = properties_get(&p, "cluster.id");
	if (!value || !*value || strlen(value) >= sizeof(meta->cluster_id)) {
		ret = meta_wrong(dir, "cluster.id", value, err);
		goto out;
	}
	strcpy(meta->cluster_id, value);
	/* broker.id is what version 0, of the days of ZooKeeper, has. */
	value = properties_get(&p, "node.id");
	if (!value)
		value = properties_get(&p, "broker.id");
	errno = 0;
	node = value ? strtol(value, &end, 10) : 0;
	if (!value || errno || end == value || *end || node < 0 || node > INT32_MAX) {
		ret = meta_wrong(dir, "node.id", value, err);
		goto out;
	}
	meta->node_id = node;
	value = properties_get(&p, "directory.id");
	if (value && datadir_id_parse(value, meta->directory_id))
		ret = meta_wrong(dir, "directory.id", value, err);
out:
	properties_clear(&p);
	return ret;
}

int datadir_meta_write(struct datadir *dir, const struct datadir_meta *meta,
		       struct plog_error *err)
{
	static const uint8_t none[DATADIR_ID_SIZE];
	char node[16], id[DATADIR_ID_TEXT + 1];
	struct properties p;
	int ret;

	properties_init(&p);
	/* Keys of a newer Kafka that we do not know stay. */
	ret = properties_read(&p, dir->fd, META_NAME, err);
	if (ret && ret != -ENOENT)
		goto out;
	properties_unset(&p, "broker.id");
	snprintf(node, sizeof(node), "%" PRId32, meta->node_id);
	datadir_id_text(meta->directory_id, id);
	ret = properties_set(&p, "version", "1");
	if (!ret)
		ret = properties_set(&p, "cluster.id", meta->cluster_id);
	if (!ret)
		ret = properties_set(&p, "node.id", node);
	if (!ret && memcmp(meta->directory_id, none, sizeof(none)))
		ret = properties_set(&p, "directory.id", id);
	if (ret)
		plog_error_set(err, ret, "out of memory");
	else
		ret = properties_write(&p, dir->fd, META_NAME, NULL, 0640, err);
out:
	properties_clear(&p);
	return ret;
}
