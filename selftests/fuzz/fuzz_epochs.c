// SPDX-License-Identifier: MIT
/*
 * Leader epochs: any bytes as a checkpoint file, and any order of changes to the list against a
 * plain array that follows Kafka's rules one entry at a time.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/slab.h>

#include "../../kmod/epoch.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void must(int ok)
{
	if (!ok)
		abort();
}

struct plain {
	struct plog_epoch_entry e[2048];
	uint32_t n;
};

static void rises(const struct plog_epochs *list)
{
	for (uint32_t i = 0; list && i < list->count; i++) {
		must(list->entry[i].epoch >= 0 && list->entry[i].start >= 0);
		must(!i || (list->entry[i - 1].epoch < list->entry[i].epoch &&
			    list->entry[i - 1].start < list->entry[i].start));
	}
}

/* Where an epoch ended, as Kafka's page on it says. */
static int64_t end_of(const struct plain *m, int64_t end, int32_t *epoch)
{
	int32_t floor = -1;
	uint32_t i;

	if (*epoch < 0 || !m->n || *epoch > m->e[m->n - 1].epoch) {
		*epoch = -1;
		return -1;
	}
	for (i = 0; i < m->n && m->e[i].epoch <= *epoch; i++)
		floor = m->e[i].epoch;
	if (i)
		*epoch = floor;
	return i < m->n ? m->e[i].start : end;
}

static void compare(const struct plog_epochs *list, const struct plain *m, int32_t asked)
{
	int32_t mine = asked, theirs = asked;

	must((list ? list->count : 0) == m->n);
	for (uint32_t i = 0; i < m->n; i++)
		must(list->entry[i].epoch == m->e[i].epoch && list->entry[i].start == m->e[i].start);
	must(plog_epoch_end_of(list, 0, INT64_MAX, &mine) == end_of(m, INT64_MAX, &theirs));
	must(mine == theirs);
}

static void plain_assign(struct plain *m, int32_t epoch, int64_t start)
{
	if (m->n && m->e[m->n - 1].epoch == epoch && m->e[m->n - 1].start <= start)
		return;
	while (m->n && (m->e[m->n - 1].epoch >= epoch || m->e[m->n - 1].start >= start))
		m->n--;
	m->e[m->n++] = (struct plog_epoch_entry){ epoch, start };
}

static void changes(const uint8_t *p, size_t n)
{
	static struct plain m;
	struct plog_epoch_builder b = { 0 };
	struct plog_epochs *list = NULL;

	m.n = 0;
	for (; n >= 5 && m.n < 2000; p += 5, n -= 5) {
		int32_t epoch = p[1] | (p[2] & 1) << 8;
		int64_t at = p[3] | p[4] << 8;

		must(!plog_epoch_begin(&b, list));
		kvfree(list);
		switch (p[0] % 4) {
		case 0:
			plog_epoch_cut(&b, at);
			while (m.n && m.e[m.n - 1].start >= at)
				m.n--;
			break;
		case 1:
			plog_epoch_trim(&b, at);
			while (m.n > 1 && m.e[1].start <= at)
				memmove(m.e, m.e + 1, --m.n * sizeof(*m.e));
			if (m.n && m.e[0].start < at)
				m.e[0].start = at;
			break;
		default:
			must(!plog_epoch_assign(&b, epoch, at));
			plain_assign(&m, epoch, at);
		}
		list = plog_epoch_finish(&b);
		rises(list);
		compare(list, &m, epoch);
	}
	kvfree(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct plog_epoch_builder b;
	struct plog_epochs *list;
	char *text;
	size_t room;
	int err;

	err = plog_epoch_parse((const char *)p, n, &b);
	must(!err || err == -EBADMSG);
	if (err) {
		must(!b.list);
		changes(p, n);
		return 0;
	}
	list = plog_epoch_finish(&b);
	rises(list);
	/* what it says is what it was read from, byte for byte */
	room = plog_epoch_text_size(list ? list->count : 0);
	text = malloc(room);
	must(plog_epoch_format(list, 0, text, room) == n && !memcmp(text, p, n));
	free(text);
	kvfree(list);
	return 0;
}
