// SPDX-License-Identifier: MIT
/* Any bytes as a batch: header, CRC, and the CRC's correction without the payload. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/crc32c.h>
#include <linux/errno.h>

#include "../../kmod/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void must(int ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	uint8_t *copy, again[PLOG_BATCH_HEADER];
	struct plog_batch b;
	uint32_t before, after;
	int err;

	if (n < PLOG_BATCH_HEADER) {
		must(plog_batch_check(p, n, &b) == -EINVAL);
		return 0;
	}
	err = plog_batch_decode(p, &b);
	must(!err || err == -EINVAL || err == -EBADMSG);
	if (!err) {
		must(b.size >= PLOG_BATCH_HEADER && b.size <= INT32_MAX);
		must(b.count > 0 || (!b.count && b.size == PLOG_BATCH_HEADER));
		must(b.last_offset_delta >= b.count - 1);
		plog_batch_encode(&b, again);
		must(!memcmp(again, p, sizeof(again)));
	}
	err = plog_batch_check(p, n, &b);
	must(!err || err == -EINVAL || err == -EBADMSG);
	must(!!err || (b.size == n && b.crc == plog_batch_crc(p, n)));

	/* change the header as LogAppendTime does, and correct the CRC for it */
	copy = malloc(n);
	memcpy(copy, p, n);
	copy[22] ^= 8;
	memcpy(copy + 35, p, 8);
	before = crc32c(~0u, p + PLOG_BATCH_CRC_START, PLOG_BATCH_HEADER - PLOG_BATCH_CRC_START);
	after = crc32c(~0u, copy + PLOG_BATCH_CRC_START, PLOG_BATCH_HEADER - PLOG_BATCH_CRC_START);
	must((plog_batch_crc(p, n) ^
	      plog_batch_crc_shift(before ^ after, n - PLOG_BATCH_HEADER)) ==
	     plog_batch_crc(copy, n));
	free(copy);
	return 0;
}
