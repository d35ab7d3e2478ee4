// SPDX-License-Identifier: MIT
/*
 * The aborted transactions: aborted.c on a log of markers. An honest one answers as
 * PLOG_IOC_HEADERS may, at times with few entries, an error, or a start that has moved; what is
 * aborted is then known. Or the answers are any bytes: there must be an end.
 *
 * An entry of the log is a byte: producer, kind, and how many offsets it stands before the
 * next.
 */
#include "fuzz_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/plog.h>

#include "aborted.h"

#define ENTRIES	256
#define OTHER	2		/* a control record of a type that is not known */

struct entry {
	int64_t offset, producer;
	int16_t type;		/* -1: no marker */
};

static struct {
	struct entry e[ENTRIES];
	int count;
	int64_t start, end;
	struct fuzz_bytes *answers, entries;
	struct aborted *aborted;
	bool honest;
	int error;		/* given in this question */
	int idle;		/* calls in this question that used up nothing */
} fake;

static struct plog_batch_header header_of(const struct entry *e)
{
	return (struct plog_batch_header){
		.base_offset = e->offset, .last_offset = e->offset,
		.producer_id = e->producer, .control = e->type,
	};
}

static int honest(struct plog_headers *h, struct plog_batch_header *out)
{
	uint8_t how = fuzz_take(fake.answers);
	uint32_t n = 0, looked = 0, most = how & 0x0f ? 3u * (how & 0x0f) : ENTRIES;
	int i = 0;

	if (how >= 0xf0)
		return fake.error = how & 1 ? -EIO : -EINTR;
	if (how >= 0xe0 && h->offset >= fake.start && h->offset <= fake.end - (how & 0x0f))
		fake.start = h->offset + (how & 0x0f);
	h->log_start = fake.start;
	if (h->offset < fake.start || h->offset > fake.end)
		return -ERANGE;
	while (i < fake.count && fake.e[i].offset < h->offset)
		i++;
	for (; i < fake.count && looked < most && n < h->count; i++, looked++) {
		if (fake.e[i].type >= 0)
			out[n++] = header_of(&fake.e[i]);
		h->offset = fake.e[i].offset + 1;
	}
	if (i == fake.count)
		h->offset = fake.end;
	h->count = n;
	return 0;
}

static int any(struct plog_headers *h, struct plog_batch_header *out)
{
	static const int errors[] = { -EIO, -ERANGE, -ENODEV, -ERANGE };
	uint8_t how = fuzz_take(fake.answers);
	uint32_t n = how & 0x1f ? (how & 0x1f) - 1 : h->count;
	int64_t at = h->offset;

	/* the numbers below stay numbers */
	if (at > INT64_MAX / 2)
		return fake.error = -EIO;
	h->log_start = at + (int8_t)fuzz_take(&fake.entries) * (INT64_C(1) << (how & 0x1f));
	if (how & 0x80)
		return fake.error = errors[how >> 5 & 3];
	if (n > fake.entries.n)
		n = (uint32_t)fake.entries.n;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t b = fuzz_take(&fake.entries);
		struct entry e = { at + (b >> 3) - 8, b & 3, b >> 2 & 1 };

		out[i] = header_of(&e);
	}
	h->count = n;
	h->offset = at + (how & 0x40 ? -5 : how >> 5 & 1 ? 7 : 0);
	return 0;
}

static int headers(void *arg, struct plog_headers *h)
{
	struct plog_batch_header *out = (void *)(uintptr_t)h->entries;

	fuzz_must(arg == &fake && h->flags == PLOG_HEADERS_CONTROL);
	fuzz_must(h->count >= 1 && h->count <= PLOG_HEADERS_MAX && h->offset >= 0);
	/* the room is there, or ASan tells */
	memset(out, 0, h->count * sizeof(*out));
	if (!fake.answers->n)
		fake.idle++;
	/* an honest log has an end, and so has what it was asked */
	fuzz_must(fake.idle <= (fake.honest ? fake.count + 3 : 1));
	return fake.honest ? honest(h, out) : any(h, out);
}

static void make_log(void)
{
	static const int16_t types[] = { -1, PLOG_CONTROL_ABORT, PLOG_CONTROL_COMMIT, OTHER };
	int64_t offset = 0;

	while (fake.entries.n && fake.count < ENTRIES) {
		uint8_t b = fuzz_take(&fake.entries);

		fake.e[fake.count++] = (struct entry){ offset, b & 3, types[b >> 2 & 3] };
		offset += 1 + (b >> 4);
	}
	fake.end = offset;
}

void fuzz_log_begin(struct fuzz_bytes entries, struct fuzz_bytes *answers, bool honest_log)
{
	memset(&fake, 0, sizeof(fake));
	fake.honest = honest_log;
	fake.entries = entries;
	fake.answers = answers;
	if (honest_log)
		make_log();
	fuzz_fail(1);
	fuzz_must(aborted_new(headers, &fake, &fake.aborted) == -ENOMEM && !fake.aborted);
	fuzz_fail(0);
	fuzz_must(!aborted_new(headers, &fake, &fake.aborted));
}

void fuzz_log_end(void)
{
	aborted_free(fake.aborted);
	fake.aborted = NULL;
}

/* By the definition: what the producer's next marker says, 0 without one. */
static int defined(int64_t producer, int64_t from)
{
	for (int i = 0; i < fake.count; i++) {
		const struct entry *e = &fake.e[i];

		if (e->offset >= from && e->producer == producer && e->type >= 0 &&
		    e->type != OTHER)
			return e->type == PLOG_CONTROL_ABORT;
	}
	return 0;
}

int fuzz_log_check(int64_t producer, int64_t offset)
{
	int ret;

	fake.error = 0;
	fake.idle = 0;
	ret = aborted_check(fake.aborted, producer, offset);
	if (ret == -ENOMEM && fuzz_failed())
		return ret;
	if (ret < 0) {
		fuzz_must(ret == fake.error || (ret == -ERANGE && fake.honest && offset > fake.end));
		return ret;
	}
	fuzz_must(ret <= 1);
	/* of markers that are deleted, some are known and some not */
	if (fake.honest && fake.start <= offset)
		fuzz_must(ret == defined(producer, offset));
	return ret;
}
