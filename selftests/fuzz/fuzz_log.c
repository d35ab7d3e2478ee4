// SPDX-License-Identifier: MIT
/*
 * Any bytes as a segment with its indexes, the state file and the leader epochs: opening,
 * reading and looking up must come to an end, and what is served must be whole batches.
 * Input: sizes of index, time index, state and leader epochs in two bytes each, their
 * bytes, the rest is the log. The upper bit of the first size: the CRCs of batches are put
 * right; of the third: those of the state's slots, and behind a clean mark, that of the epochs.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/crc32c.h>
#include <linux/err.h>
#include <linux/unaligned.h>
#include <shim.h>

#include "../../kmod/partition.h"
#include "../../kmod/batch.h"
#include "../../kmod/state.h"
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

/* ---- no guess meets a CRC ---- */

#define RIGHT	0x8000
#define FILES	5

static const char *const names[FILES] = {
	"00000000000000000000.index", "00000000000000000000.timeindex", "plog.state",
	"leader-epoch-checkpoint", "00000000000000000000.log",
};
enum { INDEX, TIMEINDEX, STATE, EPOCHS, LOG };

struct part {
	uint8_t *p;
	size_t n;
	bool right;
};

static void right_batches(uint8_t *p, size_t n)
{
	struct plog_batch b;

	while (n >= PLOG_BATCH_HEADER && !plog_batch_decode(p, &b) && b.size <= n) {
		put_unaligned_be32(plog_batch_crc(p, b.size), p + 17);
		p += b.size;
		n -= b.size;
	}
}

/* A clean mark that holds: what lies in the log is not looked at before it is served. */
static bool believed;

static void look_at_slots(const struct part *state)
{
	believed = false;
	for (size_t at = 0; at + PLOG_STATE_SLOT_SIZE <= state->n; at += PLOG_STATE_SLOT2) {
		const uint8_t *slot = state->p + at;

		believed |= slot[12] & 1 && get_unaligned_le32(slot + PLOG_STATE_SLOT_SIZE - 4) ==
			    ~crc32c(~0u, slot, PLOG_STATE_SLOT_SIZE - 4);
	}
}

static void right_slots(const struct part *state, const struct part *epochs)
{
	for (size_t at = 0; at + PLOG_STATE_SLOT_SIZE <= state->n; at += PLOG_STATE_SLOT2) {
		uint8_t *slot = state->p + at;

		put_unaligned_le32(~crc32c(~0u, epochs->p, epochs->n), slot + 220);
		put_unaligned_le32(~crc32c(~0u, slot, PLOG_STATE_SLOT_SIZE - 4),
				   slot + PLOG_STATE_SLOT_SIZE - 4);
	}
}

/* The files; false if the input has not even their sizes. */
static bool put_files(uint8_t *in, size_t n)
{
	struct part part[FILES];
	uint8_t *sizes = in;

	if (n < 2 * LOG)
		return false;
	in += 2 * LOG;
	n -= 2 * LOG;
	for (int i = 0; i < FILES; i++) {
		uint16_t size = i < LOG ? get_unaligned_be16(sizes + 2 * i) : 0;

		part[i].right = size & RIGHT;
		size &= ~RIGHT;
		part[i].p = in;
		part[i].n = i == LOG || size > n ? n : size;
		in += part[i].n;
		n -= part[i].n;
	}
	if (part[INDEX].right)
		right_batches(part[LOG].p, part[LOG].n);
	if (part[STATE].right)
		right_slots(&part[STATE], &part[EPOCHS]);
	look_at_slots(&part[STATE]);
	for (int i = 0; i < FILES; i++)
		if (i != EPOCHS || part[i].n)
			put_file(names[i], part[i].p, part[i].n);
	return true;
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

			if (believed && (ext.length - pos < PLOG_BATCH_HEADER ||
					 plog_batch_decode(bytes + pos, &b) ||
					 b.size > ext.length - pos))
				break;
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

/* The headers of all batches, or of the markers: in order, and to the end. */
static void read_headers(struct plog_partition *p, u32 flags)
{
	struct plog_batch_header h[3];
	struct plog_view v;
	s64 at, before, last = -1;
	int err;

	plog_partition_view(p, &v);
	at = v.log_start;
	do {
		u32 count = sizeof(h) / sizeof(h[0]);

		before = at;
		err = plog_partition_headers(p, PLOG_END_LEO, flags, &at, h, &count, &v);
		must(!err || (err == -EIO && believed));
		for (u32 i = 0; !err && i < count; i++) {
			must(believed || h[i].base_offset > last);
			must(h[i].last_offset >= h[i].base_offset);
			must(!flags || h[i].attributes & 0x20);
			must(h[i].control >= -1 && (h[i].control < 0 || h[i].attributes & 0x20));
			last = h[i].last_offset;
		}
	} while (!err && at > before && at < v.log_end);
	must(err || believed || at >= v.log_end);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t n)
{
	struct plog_append_args args = { .flags = PLOG_APPEND_DAEMON };
	struct plog_partition *p;
	struct plog_config config;
	struct plog_time_hit hit;
	struct plog_builder b;
	struct plog_reader r;
	struct plog_dir *d;
	struct plog_view v;
	uint8_t buf[256], *copy;
	int err;

	if (dirfd_ < 0)
		init();
	clean_up();
	must(!mkdir(dir, 0700));
	close(dirfd_);
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY);
	copy = malloc(n ? n : 1);
	memcpy(copy, in, n);
	if (!put_files(copy, n)) {
		free(copy);
		return -1;
	}
	free(copy);

	d = plog_dir_get(dirfd_);
	must(!IS_ERR(d));
	plog_config_init(&config);
	config.index_interval_bytes = 100;
	p = plog_partition_create("fuzz-0", d, &config, NULL, NULL);
	must(!IS_ERR(p));
	err = plog_partition_open(p);
	/* the last: Kafka's log ends before the start that it has noted */
	must(!err || err == -EPROTONOSUPPORT || err == -EOPNOTSUPP || err == -EBADMSG);
	if (!err) {
		read_all(p);
		read_headers(p, 0);
		read_headers(p, PLOG_HEADERS_CONTROL);
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
