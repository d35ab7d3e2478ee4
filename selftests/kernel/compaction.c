// SPDX-License-Identifier: GPL-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/plog.h>

#include "batch.h"
#include "compaction.h"
#include "instance.h"

static const char *const kinds[] = { "index", "timeindex", "log" };

static int order(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int segment_bases(const char *dir, int64_t *bases, int max)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)) && n < max)
		if (strlen(e->d_name) == 24 && !strcmp(e->d_name + 20, ".log"))
			bases[n++] = atoll(e->d_name);
	if (d)
		closedir(d);
	qsort(bases, (size_t)n, sizeof(*bases), order);
	return n;
}

const char *segment_file(const char *dir, int64_t base, const char *kind)
{
	static char path[2][4600];
	static int i;

	i ^= 1;
	snprintf(path[i], sizeof(path[i]), "%s/%020lld.%s", dir, (long long)base, kind);
	return path[i];
}

bool compaction_write(const char *dir, const int64_t *bases, int first, int last, int every)
{
	static uint8_t batch[1 << 16];
	int to = open(segment_file(dir, bases[first], "log.swap"), O_WRONLY | O_CREAT | O_TRUNC,
		      0644);
	int fd, i;
	bool ok = to >= 0;

	for (i = first; i <= last && ok; i++) {
		fd = open(segment_file(dir, bases[i], "log"), O_RDONLY);
		while (read(fd, batch, BATCH_HEADER) == BATCH_HEADER) {
			size_t size = batch_get(batch, AT_LENGTH, 4) + 12;

			if (read(fd, batch + BATCH_HEADER, size - BATCH_HEADER) !=
			    (ssize_t)(size - BATCH_HEADER)) {
				ok = false;
				break;
			}
			if (batch_get(batch, AT_BASE_OFFSET, 8) % every == 0)
				ok &= write(to, batch, size) == (ssize_t)size;
		}
		close(fd);
	}
	close(to);
	for (i = 0; i < 2; i++) {
		char kind[32];

		snprintf(kind, sizeof(kind), "%s.swap", kinds[i]);
		fd = open(segment_file(dir, bases[first], kind), O_WRONLY | O_CREAT | O_TRUNC, 0644);
		ok &= write(fd, "x", 1) == 1;	/* damaged: they are made anew */
		close(fd);
	}
	return ok;
}

void compaction_rename(const char *dir, const int64_t *bases, int first, int last)
{
	char kind[32];
	int i, k;

	for (i = first + 1; i <= last; i++)
		for (k = 0; k < 3; k++)
			unlink(segment_file(dir, bases[i], kinds[k]));
	for (k = 0; k < 3; k++) {
		snprintf(kind, sizeof(kind), "%s.swap", kinds[k]);
		rename(segment_file(dir, bases[first], kind), segment_file(dir, bases[first], kinds[k]));
	}
}

int swap_call(int fd, uint64_t incarnation, int64_t first, int64_t last, uint64_t generation,
	      uint32_t flags, struct plog_swap *out)
{
	struct plog_swap arg = {
		.generation = generation,
		.first_base = first,
		.last_base = last,
		.incarnation = incarnation,
		.leader_epoch = EPOCH,
		.flags = flags,
	};
	int err = ioctl(fd, PLOG_IOC_SWAP, &arg) ? -errno : 0;

	if (out)
		*out = arg;
	return err;
}

uint64_t swap_generation(int fd)
{
	struct plog_swap now;

	return swap_call(fd, 0, 0, 0, 0, PLOG_SWAP_ASK, &now) ? 0 : now.generation;
}
