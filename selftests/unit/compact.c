// SPDX-License-Identifier: MIT
/* A compactor for tests of the engine. */
#include "compact.h"

#include <dirent.h>
#include <fcntl.h>

static int order(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int log_files(int64_t *bases, int max)
{
	DIR *d = opendir(env.dir);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)) && n < max)
		if (strlen(e->d_name) == 24 && !strcmp(e->d_name + 20, ".log"))
			bases[n++] = atoll(e->d_name);
	closedir(d);
	qsort(bases, n, sizeof(*bases), order);
	return n;
}

static const char *path(int64_t base, const char *kind)
{
	static char p[2][128];
	static int i;

	i ^= 1;
	snprintf(p[i], sizeof(p[i]), "%s/%020lld.%s", env.dir, (long long)base, kind);
	return p[i];
}

static void make_empty(int64_t base, const char *kind)
{
	int fd = open(path(base, kind), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	close(fd);
}

/* The batches of one log that @keep wants, their records into *@records; false: it ends inside one. */
static bool copy(int64_t base, int to, bool (*keep)(const struct plog_batch *b), uint8_t *bytes,
		 int *records)
{
	int from = open(path(base, "log"), O_RDONLY);
	struct plog_batch b;
	ssize_t n, rest;

	while ((n = read(from, bytes, PLOG_BATCH_HEADER)) == PLOG_BATCH_HEADER) {
		if (plog_batch_decode(bytes, &b))
			break;
		rest = b.size - PLOG_BATCH_HEADER;
		if (read(from, bytes + PLOG_BATCH_HEADER, rest) != rest)
			break;
		if (!keep(&b))
			continue;
		assert_int_equal(write(to, bytes, b.size), b.size);
		*records += b.count;
	}
	close(from);
	return n <= 0;
}

int try_compact(int64_t first, int64_t last, bool (*keep)(const struct plog_batch *b))
{
	int64_t bases[4096];
	int n = log_files(bases, 4096), records = 0;
	uint8_t *bytes = malloc(BATCH_MAX);
	int to = open(path(first, "log.swap"), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(to >= 0);
	for (int i = 0; i < n && records >= 0; i++)
		if (bases[i] >= first && bases[i] <= last &&
		    !copy(bases[i], to, keep, bytes, &records))
			records = -1;
	close(to);
	free(bytes);
	make_empty(first, "index.swap");
	make_empty(first, "timeindex.swap");
	return records;
}

int compact(int64_t first, int64_t last, bool (*keep)(const struct plog_batch *b))
{
	int records = try_compact(first, last, keep);

	assert_true(records >= 0);
	return records;
}

static void rename_one(int64_t base, const char *kind)
{
	char from[16];

	snprintf(from, sizeof(from), "%s.swap", kind);
	assert_int_equal(rename(path(base, from), path(base, kind)), 0);
}

void finish_files(int64_t first, int64_t last, enum step end)
{
	static const char *const kinds[] = { "log", "index", "timeindex" };
	int64_t bases[4096];
	int n = log_files(bases, 4096);

	for (int i = 0; i < n; i++)
		for (int k = 0; bases[i] > first && bases[i] <= last && k < 3; k++)
			unlink(path(bases[i], kinds[k]));
	if (end >= RENAMED_INDEX)
		rename_one(first, "index");
	if (end >= RENAMED_TIMEINDEX)
		rename_one(first, "timeindex");
	if (end >= RENAMED_LOG)
		rename_one(first, "log");
}

uint64_t generation(void)
{
	s64 pending, last;
	u64 now;

	assert_int_equal(plog_partition_swap_state(env.p, &now, &pending, &last), 0);
	return now;
}

int swap(int64_t first, int64_t last)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };
	struct plog_swap_args args = { generation(), first, last };

	return plog_partition_swap(env.p, &f, &args);
}

int swap_done(void)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };

	return plog_partition_swap_done(env.p, &f);
}
