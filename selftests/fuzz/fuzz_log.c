// SPDX-License-Identifier: MIT
/*
 * Any bytes as a segment with its indexes and the state file: opening, reading
 * and looking up must come to an end, and what is served must be whole batches.
 * Input: sizes of index, time index and state in two bytes each, their bytes,
 * the rest is the log.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/err.h>
#include <shim.h>

#include "../../kmod/partition.h"
#include "../../kmod/batch.h"
#include "../../uapi/linux/plog.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

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

/* The engine makes files of its own too. */
static void clean_up(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		unlinkat(dirfd_, e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

static void init(void)
{
	must(mkdtemp(dir) != NULL);
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY);
	shim_log = quiet;
	must(!plog_engine_init());
	atexit(clean_up);
}

static void put_file(const char *name, const uint8_t *p, size_t n)
{
	int fd = openat(dirfd_, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	must(fd >= 0 && write(fd, p, n) == (ssize_t)n);
	close(fd);
}

static void read_all(struct plog_partition *p)
{
	static uint8_t bytes[1 << 20];
	struct plog_view v;
	int64_t offset;

	plog_partition_view(p, &v);
	must(v.log_start >= 0 && v.log_start <= v.log_end);
	for (offset = v.log_start; offset < v.log_end;) {
		struct kvec vec = { bytes, sizeof(bytes) };
		struct plog_extent ext = { 0 };
		struct iov_iter it;
		ssize_t got;
		int err;

		err = plog_partition_locate(p, offset, 1000, PLOG_END_LEO, true, &ext, &v);
		if (err || !ext.length) {
			/* a clean mark was believed */
			must(!err || err == -EIO);
			break;
		}
		must(ext.length <= sizeof(bytes));
		iov_iter_kvec(&it, ITER_DEST, &vec, 1, ext.length);
		got = plog_extent_read(&ext, 0, &it);
		must(got == ext.length);
		for (uint32_t pos = 0; pos < ext.length;) {
			struct plog_batch b;

			must(ext.length - pos >= PLOG_BATCH_HEADER);
			must(!plog_batch_decode(bytes + pos, &b));
			must(b.size <= ext.length - pos);
			pos += b.size;
		}
		must(ext.next_offset > offset);
		offset = ext.next_offset;
		plog_extent_put(&ext);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t n)
{
	struct plog_append_args args = { .flags = PLOG_APPEND_DAEMON };
	size_t index, timeindex, state, log;
	struct plog_partition *p;
	struct plog_config config;
	struct plog_time_hit hit;
	struct plog_builder b;
	struct plog_reader r;
	struct plog_dir *d;
	struct plog_view v;
	uint8_t buf[256];
	int err;

	if (dirfd_ < 0)
		init();
	if (n < 6)
		return 0;
	index = in[0] << 8 | in[1];
	timeindex = in[2] << 8 | in[3];
	state = in[4] << 8 | in[5];
	in += 6;
	n -= 6;
	index = index < n ? index : n;
	timeindex = timeindex < n - index ? timeindex : n - index;
	state = state < n - index - timeindex ? state : n - index - timeindex;
	log = n - index - timeindex - state;
	clean_up();
	must(!mkdir(dir, 0700));
	close(dirfd_);
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY);
	put_file("00000000000000000000.index", in, index);
	put_file("00000000000000000000.timeindex", in + index, timeindex);
	put_file("plog.state", in + index + timeindex, state);
	put_file("00000000000000000000.log", in + index + timeindex + state, log);

	d = plog_dir_get(dirfd_);
	must(!IS_ERR(d));
	plog_config_init(&config);
	config.index_interval_bytes = 100;
	p = plog_partition_create("fuzz-0", d, &config, NULL, NULL);
	must(!IS_ERR(p));
	err = plog_partition_open(p);
	must(!err || err == -EPROTONOSUPPORT || err == -EOPNOTSUPP);
	if (!err) {
		read_all(p);
		err = plog_partition_lookup(p, 5, false, PLOG_END_LEO, &hit);
		must(!err || err == -EIO);
		err = plog_partition_lookup(p, 0, true, PLOG_END_LEO, &hit);
		must(!err || err == -EIO);
		plog_reader_init(&r, p, PLOG_END_LEO);
		for (int i = 0; i < 50; i++) {
			struct kvec vec = { buf, sizeof(buf) };
			struct iov_iter it;

			iov_iter_kvec(&it, ITER_DEST, &vec, 1, sizeof(buf));
			if (plog_reader_next(&r, &it) < 0)
				plog_reader_seek(&r, r.offset + 1);
		}
		plog_reader_release(&r);
		plog_partition_view(p, &v);
		plog_builder_init(&b, buf, sizeof(buf), 7);
		memset(plog_builder_value(&b, 100), 'x', 100);
		args.raw = buf;
		args.size = plog_builder_finish(&b);
		args.leader_epoch = v.leader_epoch;
		err = plog_partition_append(p, &args);
		must(!err || err == -EOVERFLOW);
		read_all(p);
	}
	plog_partition_close(p, true);
	plog_partition_put(p);
	return 0;
}
