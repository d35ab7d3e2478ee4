// SPDX-License-Identifier: MIT
/*
 * The files of a compaction: Kafka's .cleaned and .swap steps around the swap in the log
 * engine, and what is left to do where one was interrupted.
 */
#include "datadir.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS	20
#define HEADER	61

/* The log last: as long as it lies there under its old name, nothing has happened yet. */
static const char *const kinds[] = { "index", "timeindex", "log" };

/* plog.state: see kmod/state.h */
#define STATE		"plog.state"
#define SLOT_SIZE	512
#define SLOT2		4096
#define FLAG_CLEAN	1
#define FLAG_DENSE	4

static int fail_at(struct plog_error *err, const char *what, const char *name)
{
	return plog_error_set(err, -errno, "cannot %s %s: %m", what, name);
}

static int sync_folder(int dirfd, struct plog_error *err)
{
	return fsync(dirfd) ? fail_at(err, "sync", "the folder of the partition") : 0;
}

static void name_of(char name[64], int64_t base, const char *kind, const char *suffix)
{
	snprintf(name, 64, "%020" PRId64 ".%s%s", base, kind, suffix);
}

/* Rename the three files of a segment; some may have got there before. */
static int rename_all(int dirfd, int64_t base, const char *from, const char *to,
		      struct plog_error *err)
{
	char old[64], new[64];

	for (int i = 0; i < 3; i++) {
		name_of(old, base, kinds[i], from);
		name_of(new, base, kinds[i], to);
		if (renameat(dirfd, old, dirfd, new) && errno != ENOENT)
			return fail_at(err, "rename", old);
	}
	return 0;
}

static int unlink_name(int dirfd, const char *name, struct plog_error *err)
{
	return unlinkat(dirfd, name, 0) && errno != ENOENT ? fail_at(err, "delete", name) : 0;
}

/* The base offset of "DIGITS.KIND" or "DIGITS.KIND.SUFFIX"; -1: another name. */
static int64_t parse(const char *name, const char *kind, const char *suffix)
{
	int64_t base = 0;

	for (int i = 0; i < DIGITS; i++) {
		if (name[i] < '0' || name[i] > '9' ||
		    __builtin_mul_overflow(base, (int64_t)10, &base) ||
		    __builtin_add_overflow(base, (int64_t)(name[i] - '0'), &base))
			return -1;
	}
	name += DIGITS;
	if (*name++ != '.' || strncmp(name, kind, strlen(kind)) ||
	    strcmp(name + strlen(kind), suffix))
		return -1;
	return base;
}

/* ---- looking through a folder ---- */

/*
 * struct found - names to act on, taken before anything changes
 */
struct found {
	char (*names)[64];
	size_t count, room;
};

static int add(struct found *f, const char *name, size_t length)
{
	if (f->count == f->room) {
		size_t room = f->room ? 2 * f->room : 16;
		void *larger = reallocarray(f->names, room, sizeof(*f->names));

		if (!larger)
			return -ENOMEM;
		f->names = larger;
		f->room = room;
	}
	memcpy(f->names[f->count++], name, length + 1);
	return 0;
}

/* All names that @want wants. */
static int look(int dirfd, bool (*want)(const char *name, const int64_t *arg), const int64_t *arg,
		struct found *f, struct plog_error *err)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		ret = fail_at(err, "read", "the folder of the partition");
		if (fd >= 0)
			close(fd);
		return ret;
	}
	while (!ret && (e = readdir(dir)))
		if (strlen(e->d_name) < sizeof(*f->names) && want(e->d_name, arg))
			ret = add(f, e->d_name, strlen(e->d_name));
	closedir(dir);
	return ret ? plog_error_set(err, ret, "out of memory") : 0;
}

static bool is_swapped_log(const char *name, const int64_t *arg)
{
	(void)arg;
	return parse(name, "log", ".swap") >= 0;
}

/* A segment's file with a base above arg[0] and up to arg[1]. */
static bool is_covered(const char *name, const int64_t *arg)
{
	for (int i = 0; i < 3; i++) {
		int64_t base = parse(name, kinds[i], "");

		if (base > arg[0] && base <= arg[1])
			return true;
	}
	return false;
}

/* ".cleaned", and with arg[0] ".swap". */
static bool is_leftover(const char *name, const int64_t *arg)
{
	for (int i = 0; i < 3; i++)
		if (parse(name, kinds[i], ".cleaned") >= 0 ||
		    (arg[0] && parse(name, kinds[i], ".swap") >= 0))
			return true;
	return false;
}

/* Delete what @want wants, logs last. */
static int unlink_all(int dirfd, bool (*want)(const char *name, const int64_t *arg),
		      const int64_t *arg, struct plog_error *err)
{
	struct found f = { 0 };
	int ret = look(dirfd, want, arg, &f, err);

	for (int logs = 0; logs < 2; logs++)
		for (size_t i = 0; !ret && i < f.count; i++)
			if (!!strstr(f.names[i], ".log") == logs)
				ret = unlink_name(dirfd, f.names[i], err);
	if (!ret && f.count)
		ret = sync_folder(dirfd, err);
	free(f.names);
	return ret;
}

/* The last offset in a log; its base - 1 if it is empty. It was written whole. */
static int last_offset(int dirfd, const char *name, int64_t base, int64_t *last,
		       struct plog_error *err)
{
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint8_t raw[HEADER];
	uint64_t first, next = base, at = 0;
	uint32_t size, delta;
	struct stat st;
	bool whole = true;

	if (fd < 0)
		return fail_at(err, "open", name);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		whole = false;
	while (whole && at < (uint64_t)st.st_size) {
		whole = pread(fd, raw, HEADER, at) == HEADER;
		memcpy(&first, raw, 8);
		memcpy(&size, raw + 8, 4);
		memcpy(&delta, raw + 23, 4);
		first = be64toh(first);
		size = be32toh(size);
		delta = be32toh(delta);
		whole = whole && size >= HEADER - 12 && size <= (uint64_t)st.st_size - at - 12 &&
			delta <= INT32_MAX && first >= next &&
			first <= (uint64_t)INT64_MAX - 1 - delta;
		if (whole) {
			next = first + delta + 1;
			at += (uint64_t)size + 12;
		}
	}
	close(fd);
	*last = (int64_t)next - 1;
	return whole ? 0 : plog_error_set(err, -EINVAL, "%s is not whole: it is no segment that a "
					  "compaction was to leave; move it away", name);
}

/* ---- plog.state ---- */

static uint32_t slot_crc(const uint8_t *raw)
{
	uint32_t crc = ~0u;

	for (int i = 0; i < SLOT_SIZE - 4; i++) {
		crc ^= raw[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return le64toh(v);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return le32toh(v);
}

static void put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, 4);
}

/*
 * struct state - the younger of the two slots that are whole
 * @fd: of the file; -1: there is none
 * @there: is one of them whole?
 */
struct state {
	int fd;
	bool there;
	uint64_t sequence;
	uint8_t raw[SLOT_SIZE];
};

static int state_open(int dirfd, struct state *s, struct plog_error *err)
{
	uint8_t raw[SLOT_SIZE];

	*s = (struct state){ .fd = openat(dirfd, STATE, O_RDWR | O_NOFOLLOW | O_NONBLOCK |
					  O_CLOEXEC) };
	if (s->fd < 0)
		return errno == ENOENT ? 0 : fail_at(err, "open", STATE);
	for (int i = 0; i < 2; i++) {
		if (pread(s->fd, raw, SLOT_SIZE, i * SLOT2) != SLOT_SIZE ||
		    memcmp(raw, "plogstat", 8) || slot_crc(raw) != get32(raw + SLOT_SIZE - 4))
			continue;
		if (get32(raw + 8) != 1) {
			close(s->fd);
			return plog_error_set(err, -EOPNOTSUPP, STATE " is of a newer version");
		}
		if (!s->there || get64(raw + 16) > s->sequence) {
			memcpy(s->raw, raw, SLOT_SIZE);
			s->there = true;
			s->sequence = get64(raw + 16);
		}
	}
	return 0;
}

static void state_close(struct state *s)
{
	if (s->fd >= 0)
		close(s->fd);
}

/*
 * Can the engine have made a swap?  Before its first one, and so before any file of a log
 * is replaced, it notes on stable storage that the log has gaps.
 */
static int may_be_swapped(int dirfd, bool *may, struct plog_error *err)
{
	struct state s;
	int ret = state_open(dirfd, &s, err);

	if (ret)
		return ret;
	*may = !s.there || !(get32(s.raw + 12) & FLAG_DENSE);
	state_close(&s);
	return 0;
}

/* The sizes that the clean mark was made for hold no more once a swap is completed. */
static int void_clean_mark(int dirfd, struct plog_error *err)
{
	struct state s;
	int ret = state_open(dirfd, &s, err);
	uint64_t next;

	if (ret)
		return ret;
	if (s.there && get32(s.raw + 12) & FLAG_CLEAN) {
		next = htole64(s.sequence + 1);
		put32(s.raw + 12, get32(s.raw + 12) & ~FLAG_CLEAN);
		memcpy(s.raw + 16, &next, 8);
		put32(s.raw + SLOT_SIZE - 4, slot_crc(s.raw));
		if (pwrite(s.fd, s.raw, SLOT_SIZE, (s.sequence + 1) & 1 ? SLOT2 : 0) != SLOT_SIZE ||
		    fsync(s.fd))
			ret = fail_at(err, "write", STATE);
	}
	state_close(&s);
	return ret;
}

/* ---- the steps ---- */

int datadir_swap_commit(int dirfd, int64_t base, struct plog_error *err)
{
	int ret = rename_all(dirfd, base, ".cleaned", ".swap", err);

	return ret ? ret : sync_folder(dirfd, err);
}

int datadir_swap_finish(int dirfd, int64_t base, int64_t last, struct plog_error *err)
{
	int64_t range[2] = { base, last };
	int ret;

	ret = unlink_all(dirfd, is_covered, range, err);
	if (!ret)
		ret = rename_all(dirfd, base, ".swap", "", err);
	return ret ? ret : sync_folder(dirfd, err);
}

int datadir_swap_drop(int dirfd, struct plog_error *err)
{
	int64_t swaps = 1;

	return unlink_all(dirfd, is_leftover, &swaps, err);
}

int datadir_swap_recover(int dirfd, struct plog_error *err)
{
	struct found f = { 0 };
	int64_t base, last = 0, swaps = 0, all = 1;
	bool may = false;
	int ret;

	/* a log that Kafka has served is imported first */
	if (faccessat(dirfd, STATE, F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
		return 0;
	/* one look is enough where there is nothing, as a rule: ten thousand may start */
	ret = look(dirfd, is_leftover, &all, &f, err);
	if (ret || !f.count)
		goto out;
	f.count = 0;
	ret = may_be_swapped(dirfd, &may, err);
	/* all that it was to replace is there: nobody has deleted before the engine swapped */
	if (!ret && !may) {
		ret = datadir_swap_drop(dirfd, err);
		goto out;
	}
	if (!ret)
		ret = unlink_all(dirfd, is_leftover, &swaps, err);
	if (!ret)
		ret = look(dirfd, is_swapped_log, NULL, &f, err);
	for (size_t i = 0; !ret && i < f.count; i++) {
		base = parse(f.names[i], "log", ".swap");
		ret = last_offset(dirfd, f.names[i], base, &last, err);
		if (!ret)
			ret = void_clean_mark(dirfd, err);
		if (!ret)
			ret = datadir_swap_finish(dirfd, base, last, err);
	}
	/* indexes without their log: of a set that was not complete */
	if (!ret)
		ret = unlink_all(dirfd, is_leftover, &all, err);
out:
	free(f.names);
	return ret;
}
