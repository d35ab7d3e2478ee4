// SPDX-License-Identifier: MIT
/* Which transactions were aborted: see aborted.h. */
#include "aborted.h"

#include <errno.h>
#include <linux/plog.h>
#include <stdlib.h>
#include <string.h>

/* Headers asked for at once, and markers that are behind before they are forgotten. */
#define CHUNK	128

struct marker {
	int64_t offset;
	int64_t producer;
	int16_t type;
};

/*
 * @markers: those ahead, and some behind, in the order of the log
 * @passed: how many are behind
 * @at: of the last question
 * @scanned: up to here the markers are known
 */
struct aborted {
	aborted_headers headers;
	void *arg;
	struct marker *markers;
	size_t count, room, passed;
	int64_t at, scanned;
	struct plog_batch_header chunk[CHUNK];
};

int aborted_new(aborted_headers headers, void *arg, struct aborted **out)
{
	struct aborted *a = calloc(1, sizeof(*a));

	*out = a;
	if (!a)
		return -ENOMEM;
	a->headers = headers;
	a->arg = arg;
	return 0;
}

void aborted_free(struct aborted *a)
{
	if (!a)
		return;
	free(a->markers);
	free(a);
}

static int add(struct aborted *a, const struct plog_batch_header *h)
{
	if (a->count == a->room) {
		size_t room = a->room ? 2 * a->room : CHUNK;
		struct marker *larger = reallocarray(a->markers, room, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		a->markers = larger;
		a->room = room;
	}
	a->markers[a->count++] = (struct marker){ h->base_offset, h->producer_id, h->control };
	return 0;
}

/* Go on reading markers. 1; 0: there are no more; or an error. */
static int read_on(struct aborted *a)
{
	struct plog_headers arg = {
		.offset = a->scanned,
		.flags = PLOG_HEADERS_CONTROL,
		.count = CHUNK,
		.entries = (uintptr_t)a->chunk,
	};
	int ret = a->headers(a->arg, &arg);

	if (ret == -ERANGE && arg.log_start > a->scanned) {
		/* deleted meanwhile; so is the batch that is asked about, but for its end */
		a->scanned = arg.log_start;
		return 1;
	}
	if (ret)
		return ret;
	for (uint32_t i = 0; i < arg.count; i++) {
		/* the batch that held the offset was given before */
		if (a->count && a->chunk[i].base_offset <= a->markers[a->count - 1].offset)
			continue;
		ret = add(a, &a->chunk[i]);
		if (ret)
			return ret;
	}
	if (arg.offset <= a->scanned)
		return 0;
	a->scanned = arg.offset;
	return 1;
}

static void move_to(struct aborted *a, int64_t offset)
{
	if (offset < a->at || offset > a->scanned) {
		a->count = 0;
		a->passed = 0;
		a->scanned = offset;
	}
	a->at = offset;
	while (a->passed < a->count && a->markers[a->passed].offset < offset)
		a->passed++;
	if (a->passed > CHUNK) {
		a->count -= a->passed;
		memmove(a->markers, a->markers + a->passed, a->count * sizeof(*a->markers));
		a->passed = 0;
	}
}

int aborted_check(struct aborted *a, int64_t producer, int64_t offset)
{
	size_t i;
	int ret;

	move_to(a, offset);
	for (i = a->passed;;) {
		for (; i < a->count; i++)
			if (a->markers[i].producer == producer &&
			    (a->markers[i].type == PLOG_CONTROL_ABORT ||
			     a->markers[i].type == PLOG_CONTROL_COMMIT))
				return a->markers[i].type == PLOG_CONTROL_ABORT;
		ret = read_on(a);
		/* no marker at all: whoever moved the last stable offset past it has decided */
		if (ret <= 0)
			return ret;
	}
}
