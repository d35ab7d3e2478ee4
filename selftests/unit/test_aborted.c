// SPDX-License-Identifier: MIT
/* What a reader of committed records leaves out: aborted.c on a log of headers, and the walk. */
#include "cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aborted.h"
#include "maker.h"
#include "plog.h"

/* The log: one batch an offset. */
struct entry {
	int producer;		/* -1: nobody's */
	int type;		/* -1: data; else of a marker */
};

static struct {
	struct entry e[4000];
	int64_t start, end;
	int per_call;		/* headers looked at in one */
	int calls, error;
} fake;

static int headers(void *arg, struct plog_headers *h)
{
	struct plog_batch_header *out = (void *)(uintptr_t)h->entries;
	uint32_t n = 0;
	int looked = 0;

	(void)arg;
	fake.calls++;
	assert_int_equal(h->flags, PLOG_HEADERS_CONTROL);
	if (fake.error)
		return fake.error;
	h->log_start = fake.start;
	if (h->offset < fake.start || h->offset > fake.end)
		return -ERANGE;
	for (; h->offset < fake.end && looked < fake.per_call && n < h->count; h->offset++) {
		struct entry *e = &fake.e[h->offset];

		looked++;
		if (e->producer < 0 || e->type < 0)
			continue;
		out[n++] = (struct plog_batch_header){
			.base_offset = h->offset, .last_offset = h->offset,
			.producer_id = e->producer, .control = e->type,
		};
	}
	h->count = n;
	return 0;
}

static void put(int producer, int type)
{
	fake.e[fake.end++] = (struct entry){ producer, type };
}

/* From the definition: the next marker of that producer. */
static int expected(int64_t offset)
{
	for (int64_t o = offset + 1; o < fake.end; o++)
		if (fake.e[o].producer == fake.e[offset].producer &&
		    (fake.e[o].type == PLOG_CONTROL_ABORT || fake.e[o].type == PLOG_CONTROL_COMMIT))
			return fake.e[o].type == PLOG_CONTROL_ABORT;
	return 0;
}

static void begin(int per_call)
{
	memset(&fake, 0, sizeof(fake));
	fake.per_call = per_call;
}

static void by_marker(void **state)
{
	struct aborted *a;

	(void)state;
	begin(100);
	put(1, -1);
	put(2, -1);
	put(1, -1);
	put(2, PLOG_CONTROL_ABORT);
	put(1, 7);			/* of a type that is not known */
	put(1, PLOG_CONTROL_COMMIT);
	put(1, -1);
	put(1, PLOG_CONTROL_ABORT);
	put(3, -1);			/* nobody ever said */
	assert_int_equal(aborted_new(headers, NULL, &a), 0);
	assert_int_equal(aborted_check(a, 1, 0), 0);
	assert_int_equal(aborted_check(a, 2, 1), 1);
	assert_int_equal(aborted_check(a, 1, 2), 0);
	assert_int_equal(aborted_check(a, 1, 6), 1);
	assert_int_equal(aborted_check(a, 3, 8), 0);
	/* back */
	assert_int_equal(aborted_check(a, 2, 1), 1);
	/* an error is told, and the next try goes on */
	aborted_free(a);
	assert_int_equal(aborted_new(headers, NULL, &a), 0);
	fake.error = -EIO;
	assert_int_equal(aborted_check(a, 2, 1), -EIO);
	fake.error = 0;
	assert_int_equal(aborted_check(a, 2, 1), 1);
	aborted_free(a);
	/* the log start has passed the reader: -ERANGE, and a newer start */
	assert_int_equal(aborted_new(headers, NULL, &a), 0);
	fake.start = 6;
	assert_int_equal(aborted_check(a, 1, 2), 1);
	aborted_free(a);
	aborted_free(NULL);
}

static void any_log(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 30; seed++) {
		unsigned int r = seed;
		struct aborted *a;

		begin(1 + rand_r(&r) % 300);
		while (fake.end < 3000) {
			int what = rand_r(&r) % 10, producer = rand_r(&r) % 12;

			put(what < 3 ? -1 : producer, what < 8 ? -1 : what - 8);
		}
		assert_int_equal(aborted_new(headers, NULL, &a), 0);
		for (int64_t o = 0; o < fake.end; o++) {
			if (rand_r(&r) % 500 == 0)
				o = rand_r(&r) % fake.end;
			if (fake.e[o].producer < 0 || fake.e[o].type >= 0)
				continue;
			assert_int_equal(aborted_check(a, fake.e[o].producer, o), expected(o));
		}
		/* the log is read a few times at most, not once for each batch */
		assert_true(fake.calls < 3000);
		aborted_free(a);
	}
}

/* ---- the walk leaves them out ---- */

static int asked;

static int odd_ones(void *arg, int64_t producer, int64_t offset)
{
	assert_ptr_equal(arg, &asked);
	assert_int_equal(producer, 100 + offset);
	if (asked++ == 3)
		return -EINTR;
	return offset & 1;
}

static void walk(void **state)
{
	uint8_t *all = NULL;
	size_t size = 0, n;
	struct plog_walk *w;
	struct plog_record r;

	(void)state;
	asked = 0;
	for (int i = 0; i < 8; i++) {
		uint8_t *b = maker_simple(i % 3 ? 0 : 4, 1, 10, &n);

		maker_set64(b, n, AT_BASE_OFFSET, i);
		maker_set64(b, n, AT_PRODUCER_ID, 100 + i);
		/* the last two are of no transaction */
		maker_set16(b, n, AT_ATTRIBUTES, (i % 3 ? 0 : 4) | (i < 6 ? 0x10 : 0));
		all = realloc(all, size + n);
		memcpy(all + size, b, n);
		size += n;
		free(b);
	}
	assert_int_equal(plog_walk_new(all, size, &w), 0);
	plog_walk_filter(w, odd_ones, &asked);
	assert_int_equal(plog_walk_next(w, &r), 1);
	assert_int_equal(r.offset, 0);
	assert_int_equal(plog_walk_next(w, &r), 1);
	assert_int_equal(r.offset, 2);
	/* the filter fails: the same batch again */
	assert_int_equal(plog_walk_next(w, &r), -EINTR);
	assert_int_equal(plog_walk_next(w, &r), 1);
	assert_int_equal(r.offset, 4);
	assert_int_equal(plog_walk_next(w, &r), 1);
	assert_int_equal(r.offset, 6);
	assert_int_equal(plog_walk_next(w, &r), 1);
	assert_int_equal(r.offset, 7);
	assert_int_equal(plog_walk_next(w, &r), 0);
	plog_walk_set(w, all, size);
	plog_walk_filter(w, NULL, NULL);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(plog_walk_next(w, &r), 1);
		assert_int_equal(r.offset, i);
	}
	plog_walk_free(w);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_marker), cmocka_unit_test(any_log), cmocka_unit_test(walk),
	};

	return cmocka_run_group_tests_name("aborted transactions", tests, NULL, NULL);
}
