// SPDX-License-Identifier: MIT
/*
 * Any bytes as the records of a batch. From memory and from a file, through its
 * window and through its pages, the iterator must say the same, and what it
 * accepts must add up: the check has a fast way past most records, the walk not.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/err.h>
#include <linux/unaligned.h>

#include "../../kmod/file.h"
#include "../../kmod/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static struct plog_dir *dir;
static struct plog_file *file;

static void must(int ok)
{
	if (!ok)
		abort();
}

static void make_file(void)
{
	char name[] = "/dev/shm/plog-fuzz-XXXXXX";
	int fd;

	must(mkdtemp(name) != NULL);
	fd = open(name, O_RDONLY | O_DIRECTORY);
	dir = plog_dir_get(fd);
	must(!IS_ERR(dir));
	file = plog_file_open(dir, "log", PLOG_FILE_CREATE);
	must(!IS_ERR(file));
	unlinkat(fd, "log", 0);
	rmdir(name);
	close(fd);
}

/* Walk what was accepted: every record follows the one before, to the last byte. */
static void walk(struct plog_source *src, const struct plog_batch *b,
		 const struct plog_record_summary *sum)
{
	uint32_t pos = PLOG_BATCH_HEADER;
	struct plog_record rec;
	int64_t max = -1;

	for (int32_t i = 0; i < b->count; i++) {
		must(!plog_record_decode(src, pos, &rec));
		must(!plog_record_headers(src, &rec));
		must(rec.pos == pos && rec.size >= 6 && rec.offset_delta == i);
		must(rec.key_len < 0 || rec.key_pos + rec.key_len <= pos + rec.size);
		must(rec.value_len < 0 || rec.value_pos + rec.value_len <= pos + rec.size);
		must(rec.key_len >= 0 || sum->keyless);
		if (b->base_timestamp + rec.timestamp_delta > max)
			max = b->base_timestamp + rec.timestamp_delta;
		pos += rec.size;
	}
	must(pos == b->size && max == sum->max_timestamp);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static uint8_t window[PLOG_RECORD_WINDOW];
	struct plog_record_summary mem_sum, file_sum, page_sum;
	struct plog_source mem, far, paged;
	struct plog_record one, two;
	uint8_t *batch, *tight;
	struct plog_batch b;
	int err;

	if (n < PLOG_BATCH_HEADER)
		return 0;
	if (!file)
		make_file();
	/* a header that gets the records looked at */
	tight = malloc(n);
	batch = memcpy(tight, p, n);
	put_unaligned_be32(n - PLOG_BATCH_OVERHEAD, batch + 8);
	batch[16] = 2;
	if (p[0] & 1) {
		put_unaligned_be16(p[22] & 8, batch + 21);
		memset(batch + 43, 0xff, 14);
	}
	if (!plog_batch_decode(batch, &b)) {
		must(!plog_file_write(file, batch, n, 7));
		plog_source_mem(&mem, batch, n);
		plog_source_file(&far, file, 7, n, window);
		err = plog_record_check(&mem, &b, &mem_sum);
		must(err == plog_record_check(&far, &b, &file_sum));
		plog_source_pages(&paged, file, 7, n, window);
		must(err == plog_record_check(&paged, &b, &page_sum));
		must(!err || err == -EINVAL || err == -EBADMSG || err == -EOPNOTSUPP);
		if (!err) {
			must(mem_sum.max_timestamp == file_sum.max_timestamp);
			must(mem_sum.keyless == file_sum.keyless);
			must(mem_sum.max_timestamp == page_sum.max_timestamp);
			must(mem_sum.keyless == page_sum.keyless);
			walk(&mem, &b, &mem_sum);
			far.window_len = 0;	/* the pages' too */
			walk(&far, &b, &file_sum);
			walk(&paged, &b, &page_sum);
		}
		plog_source_done(&paged);
	}
	/* and from any place in it */
	plog_source_mem(&mem, batch, n);
	plog_source_file(&far, file, 7, n, window);
	must(!plog_file_write(file, batch, n, 7));
	for (size_t pos = 0; pos <= n; pos += 1 + n / 32) {
		memset(&one, 0, sizeof(one));
		memset(&two, 0, sizeof(two));
		err = plog_record_decode(&mem, pos, &one);
		must(err == plog_record_decode(&far, pos, &two));
		must(!memcmp(&one, &two, sizeof(one)));
		if (!err) {
			must(one.size <= n - pos);
			must(plog_record_headers(&mem, &one) == plog_record_headers(&far, &two));
		}
	}
	free(tight);
	return 0;
}
