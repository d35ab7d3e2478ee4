// SPDX-License-Identifier: MIT
/*
 * Any bytes as the log of a compacted segment: either it is refused and nothing has
 * changed, or all of it is whole batches in their order, within the run.
 * Input: one byte, odd: CRCs are set right; the rest is the log.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/err.h>
#include <linux/unaligned.h>
#include <shim.h>

#include "../../kmod/partition.h"
#include "../../kmod/batch.h"
#include "../../uapi/linux/plog.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#define SEGMENTS	4
#define PER_SEGMENT	3	/* batches of one record */

static const char *const kinds[] = { "log", "index", "timeindex" };
static char dir[] = "/dev/shm/plog-fuzz-XXXXXX";
static int dirfd_ = -1;

static void must(int ok)
{
	if (!ok)
		abort();
}

static void quiet(const char *line)
{
	(void)line;
}

static void clean_up(void)
{
	char name[64];

	for (int i = 0; i <= SEGMENTS; i++) {
		for (int k = 0; k < 3; k++) {
			snprintf(name, sizeof(name), "%020d.%s", i * PER_SEGMENT, kinds[k]);
			unlinkat(dirfd_, name, 0);
			strcat(name, ".swap");
			unlinkat(dirfd_, name, 0);
		}
	}
	unlinkat(dirfd_, "plog.state", 0);
	unlinkat(dirfd_, "leader-epoch-checkpoint", 0);
}

static void gone(void)
{
	clean_up();
	rmdir(dir);
}

static void init(void)
{
	must(mkdtemp(dir) != NULL);
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY);
	must(dirfd_ >= 0);
	shim_log = quiet;
	must(!plog_engine_init());
	atexit(gone);
}

static void put_file(const char *kind, const uint8_t *p, size_t n)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "%020d.%s.swap", PER_SEGMENT, kind);
	fd = openat(dirfd_, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	must(fd >= 0 && write(fd, p, n) == (ssize_t)n);
	close(fd);
}

static void fill(struct plog_partition *p)
{
	for (int i = 0; i < SEGMENTS * PER_SEGMENT + 1; i++) {
		struct plog_append_args args = { .flags = PLOG_APPEND_DAEMON };
		struct plog_builder b;
		struct plog_view v;
		uint8_t buf[256];

		plog_partition_view(p, &v);
		plog_builder_init(&b, buf, sizeof(buf), 1000 + i);
		memset(plog_builder_value(&b, 100), 'a' + i, 100);
		args.raw = buf;
		args.size = plog_builder_finish(&b);
		args.leader_epoch = v.leader_epoch;
		must(!plog_partition_append(p, &args));
		must(args.base_offset == i);
	}
}

/* All that is served, in order; the number of batches. */
static int read_all(struct plog_partition *p)
{
	static uint8_t bytes[1 << 20];
	struct plog_view v;
	int64_t offset = 0;
	int batches = 0;

	plog_partition_view(p, &v);
	while (offset < v.log_end) {
		struct kvec vec = { bytes, sizeof(bytes) };
		struct plog_extent ext = { 0 };
		struct iov_iter it;

		must(!plog_partition_locate(p, offset, 1000, PLOG_END_LEO, true, &ext, &v));
		must(ext.length > 0 && ext.length <= sizeof(bytes));
		iov_iter_kvec(&it, ITER_DEST, &vec, 1, ext.length);
		must(plog_extent_read(&ext, 0, &it) == ext.length);
		for (uint32_t pos = 0; pos < ext.length;) {
			struct plog_batch b;

			must(ext.length - pos >= PLOG_BATCH_HEADER);
			must(!plog_batch_decode(bytes + pos, &b));
			must(b.size <= ext.length - pos);
			must(plog_batch_crc(bytes + pos, b.size) == b.crc);
			must(plog_batch_last_offset(&b) >= offset);
			offset = plog_batch_last_offset(&b) + 1;
			pos += b.size;
			batches++;
		}
		must(ext.next_offset >= offset);
		offset = ext.next_offset;
		plog_extent_put(&ext);
	}
	return batches;
}

static void fix_crcs(uint8_t *p, size_t n)
{
	struct plog_batch b;

	while (n >= PLOG_BATCH_HEADER && !plog_batch_decode(p, &b) && b.size <= n) {
		put_unaligned_be32(plog_batch_crc(p, b.size), p + 17);
		p += b.size;
		n -= b.size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t n)
{
	struct plog_swap_args args = { 0, PER_SEGMENT, 2 * PER_SEGMENT };
	struct plog_batch_header h[8];
	struct plog_fence fence = { 0 };
	struct plog_partition *p;
	struct plog_config config;
	struct plog_time_hit hit;
	struct plog_view v;
	struct plog_dir *d;
	s64 pending, last, at = 0;
	uint8_t *log;
	u32 count = 8;
	int err;

	if (dirfd_ < 0)
		init();
	if (n < 1)
		return 0;
	clean_up();
	d = plog_dir_get(dirfd_);
	must(!IS_ERR(d));
	plog_config_init(&config);
	config.index_interval_bytes = 100;
	config.segment_bytes = PER_SEGMENT * 200 - 60;
	p = plog_partition_create("fuzz-0", d, &config, NULL, NULL);
	must(!IS_ERR(p));
	must(!plog_partition_open(p));
	fill(p);
	plog_partition_view(p, &v);
	must(v.segments == SEGMENTS + 1);
	fence.leader_epoch = v.leader_epoch;

	log = malloc(n);
	memcpy(log, in + 1, n - 1);
	if (in[0] & 1)
		fix_crcs(log, n - 1);
	put_file("log", log, n - 1);
	put_file("index", log, n - 1 < 40 ? n - 1 : 40);
	put_file("timeindex", log, n - 1 < 30 ? n - 1 : 30);
	free(log);

	must(!plog_partition_swap_state(p, &args.generation, &pending, &last));
	err = plog_partition_swap(p, &fence, &args);
	must(!err || err == -EBADMSG || err == -ERANGE);
	must((err ? SEGMENTS : SEGMENTS - 1) + 1 == (plog_partition_view(p, &v), (int)v.segments));
	must(!err || read_all(p) == SEGMENTS * PER_SEGMENT + 1);
	must(read_all(p) >= (SEGMENTS - 2) * PER_SEGMENT + 1);
	must(!plog_partition_lookup_from(p, 0, 5, false, PLOG_END_LEO, &hit));
	must(!plog_partition_lookup_from(p, 0, 0, true, PLOG_END_LEO, &hit));
	must(!plog_partition_headers(p, PLOG_END_LEO, 0, &at, h, &count, &v));
	plog_partition_close(p, true);
	plog_partition_put(p);
	return 0;
}
