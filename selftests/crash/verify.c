// SPDX-License-Identifier: MIT
#include "verify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../kernel/batch.h"
#include "../kernel/instance.h"
#include "content.h"

#define STEP (1u << 20)

/* A sentence with numbers; one at a time. */
static const char *wrong(const char *format, ...)
{
	static char text[400];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return text;
}

/* struct seen - a batch that was read */
struct seen {
	int64_t base;
	int64_t last;
	int64_t time;
	uint64_t pos;
	int32_t epoch;
};

struct list {
	struct seen *at;
	int n;
	int room;
};

static struct seen *add(struct list *l)
{
	if (l->n == l->room) {
		l->room = l->room ? 2 * l->room : 256;
		l->at = realloc(l->at, (size_t)l->room * sizeof(*l->at));
		if (!l->at)
			abort();
	}
	return &l->at[l->n++];
}

/* Header and CRC of a batch of which @room bytes are there. Return: its size, 0 if it is none. */
static size_t whole(const uint8_t *p, size_t room)
{
	size_t size;

	if (room < BATCH_HEADER || p[AT_MAGIC] != 2)
		return 0;
	size = 12 + (size_t)batch_get(p, AT_LENGTH, 4);
	if (size < BATCH_HEADER || size > room)
		return 0;
	if (crc32c_bytes(p + AT_ATTRIBUTES, size - AT_ATTRIBUTES) !=
	    (uint32_t)batch_get(p, AT_CRC, 4))
		return 0;
	return size;
}

static void note(struct list *l, const uint8_t *p, uint64_t pos)
{
	struct seen *s = add(l);

	s->base = (int64_t)batch_get(p, AT_BASE_OFFSET, 8);
	s->last = s->base + (int64_t)batch_get(p, AT_LAST_DELTA, 4);
	s->time = (int64_t)batch_get(p, AT_MAX_TIME, 8);
	s->pos = pos;
	s->epoch = (int32_t)batch_get(p, AT_EPOCH, 4);
}

/* One batch of the log against the promise. */
static const char *check(const uint8_t *p, size_t size, uint32_t part, const struct promise *pr,
			 bool gaps, int64_t *next, uint32_t *before, struct found *f)
{
	int64_t base = (int64_t)batch_get(p, AT_BASE_OFFSET, 8);
	int64_t last = base + (int64_t)batch_get(p, AT_LAST_DELTA, 4);
	int64_t behind = *next, from;
	const char *bad;
	uint32_t gen;

	bad = content_check(p, size, part, &gen);
	if (bad)
		return wrong("offset %lld: %s", (long long)base, bad);
	if (batch_get(p, AT_EPOCH, 4) != gen)
		return wrong("offset %lld is of leader epoch %d, and was appended in %u",
			     (long long)base, (int)batch_get(p, AT_EPOCH, 4), gen);
	if (last < pr->acked) {
		if (gen != promise_gen(pr, base, &from))
			return wrong("offset %lld was acknowledged in generation %u, found is one of %u",
				     (long long)base, promise_gen(pr, base, NULL), gen);
		/* a truncation may have ended the log inside a gap */
		if (gaps && behind >= 0 && behind < from)
			behind = from;
		f->promised++;
	} else if (gen > pr->newest) {
		return wrong("offset %lld is of generation %u, which was never begun",
			     (long long)base, gen);
	}
	/* behind what was acknowledged a truncation may be seen or not, but no hole */
	if (*next >= 0 && (!gaps || last < pr->acked || gen == *before) &&
	    base != behind + (gaps ? content_gap(part, gen, behind) : 0) &&
	    !(gaps && base == behind && behind > *next))
		return wrong("offset %lld follows offset %lld", (long long)base,
			     (long long)*next - 1);
	if (base < *next)
		return wrong("offset %lld comes twice", (long long)base);
	if (!f->now.gens || gen != *before)
		promise_begin(&f->now, base, gen);
	*next = last + 1;
	*before = gen;
	f->batches++;
	return NULL;
}

static const char *read_extent(int fd, uint8_t *buf, uint32_t length)
{
	uint32_t got = 0;

	while (got < length) {
		ssize_t n = read(fd, buf + got, length - got);

		if (n <= 0)
			return wrong("an extent of %u bytes ends after %u: %s", length, got,
				     n ? strerror(errno) : "end");
		got += (uint32_t)n;
	}
	return NULL;
}

static const char *read_all(int fd, uint32_t part, const struct promise *pr, bool gaps,
			    struct list *list, struct found *f)
{
	int64_t at = f->start, next = -1;
	const char *bad = NULL;
	struct plog_locate loc;
	uint32_t before = 0;
	uint8_t *buf = NULL;
	int ret;

	while (!bad && at < f->end) {
		uint8_t *p;

		ret = partition_locate(fd, at, STEP, PLOG_LOCATE_WHOLE, &loc);
		if (ret || !loc.length) {
			bad = wrong("offset %lld of %lld cannot be located: %s", (long long)at,
				    (long long)f->end, ret ? strerror(-ret) : "nothing there");
			break;
		}
		buf = realloc(buf, loc.length);
		if (!buf)
			abort();
		bad = read_extent(fd, buf, loc.length);
		for (p = buf; !bad && p < buf + loc.length;) {
			size_t size = whole(p, (size_t)(buf + loc.length - p));

			if (!size) {
				bad = wrong("behind offset %lld there is no whole batch",
					    (long long)next - 1);
				break;
			}
			bad = check(p, size, part, pr, gaps, &next, &before, f);
			note(list, p, 0);
			p += size;
		}
		/* where offsets have gaps it goes on with the next segment, or the log end */
		if (!bad && (gaps ? next > loc.next_offset : next != loc.next_offset))
			bad = wrong("an extent ends at %lld and says %lld", (long long)next,
				    (long long)loc.next_offset);
		at = loc.next_offset;
	}
	free(buf);
	if (!bad && next >= 0 && (gaps ? next > f->end : next != f->end))
		bad = wrong("the last batch ends at %lld, the log at %lld", (long long)next,
			    (long long)f->end);
	return bad;
}

static const char *look_up(int fd, const struct list *list, const struct found *f)
{
	int i, j, k;

	for (i = 0; i < 8 && list->n; i++) {
		const struct seen *s = &list->at[content_hash(i, (uint64_t)f->end, 0) %
						 (uint64_t)list->n];
		struct plog_locate loc;
		struct plog_lookup up = { .timestamp = s->time };
		int64_t offset = s->last;

		if (offset < f->start)
			continue;
		if (partition_locate(fd, offset, STEP, PLOG_LOCATE_WHOLE, &loc) || !loc.length ||
		    loc.base_offset != s->base)
			return wrong("a look-up of offset %lld does not find its batch",
				     (long long)offset);
		if (ioctl(fd, PLOG_IOC_LOOKUP, &up))
			return wrong("a look-up by time fails: %s", strerror(errno));
		for (j = 0; j < list->n && (list->at[j].time < s->time ||
					    list->at[j].last < f->start); j++)
			;
		if (up.offset >= f->start && up.offset >= list->at[j].base &&
		    up.offset <= list->at[j].last)
			continue;
		/*
		 * The batch that the log start lies in may have the time before it only:
		 * then it is the next one that has it, or none.
		 */
		for (k = j + 1; k < list->n && list->at[k].time < s->time; k++)
			;
		if (list->at[j].base >= f->start ||
		    (k == list->n ? up.offset != -1 : up.offset < list->at[k].base ||
						      up.offset > list->at[k].last))
			return wrong("a look-up of time %lld finds offset %lld, the first batch has %lld to %lld",
				     (long long)s->time, (long long)up.offset,
				     (long long)list->at[j].base, (long long)list->at[j].last);
	}
	return NULL;
}

/* The list of leader epochs against the batches, and the epoch that was answered last. */
static const char *look_up_epochs(int fd, const struct list *list, const struct promise *pr,
				  const struct found *f)
{
	int64_t begin = pr->lead_at;
	struct plog_epoch e;
	int i;

	for (i = 0; i < list->n; i++) {
		const struct seen *s = &list->at[i];

		e = (struct plog_epoch){ .flags = PLOG_EPOCH_AT,
			.offset = s->base < f->start ? f->start : s->base };
		if (ioctl(fd, PLOG_IOC_EPOCH, &e))
			return wrong("a look-up of an epoch fails: %s", strerror(errno));
		if (e.epoch != s->epoch)
			return wrong("offset %lld is of leader epoch %d, the list says %d",
				     (long long)s->base, s->epoch, e.epoch);
		/* the truncation that the epoch began with is not seen: it begins behind all */
		if (s->base >= pr->lead_at && s->epoch < pr->lead_epoch)
			begin = f->end;
	}
	if (!pr->lead_epoch || pr->lead_at <= f->start || pr->lead_at > f->end)
		return NULL;
	e = (struct plog_epoch){ .epoch = pr->lead_epoch - 1 };
	if (ioctl(fd, PLOG_IOC_EPOCH, &e))
		return wrong("a look-up of an epoch's end fails: %s", strerror(errno));
	if (e.offset != begin)
		return wrong("leader epoch %d began at offset %lld, the one before is said to end at %lld",
			     pr->lead_epoch, (long long)begin, (long long)e.offset);
	return NULL;
}

const char *verify_log(int fd, uint32_t part, const struct promise *pr, bool gaps, struct found *f)
{
	struct list list = { 0 };
	struct plog_state state;
	const char *bad;
	int ret;

	ret = partition_state(fd, &state);
	if (ret)
		return wrong("no state: %s", strerror(-ret));
	f->start = state.log_start;
	f->end = state.log_end;
	if (state.state != PLOG_PARTITION_ONLINE)
		return wrong("it is in state %u", state.state);
	if (f->start < pr->start || f->start > pr->start_asked)
		return wrong("the log starts at %lld; %lld was answered, %lld asked for",
			     (long long)f->start, (long long)pr->start, (long long)pr->start_asked);
	if (f->end < pr->acked)
		return wrong("the log ends at %lld, %lld was acknowledged", (long long)f->end,
			     (long long)pr->acked);
	f->now.start = f->now.start_asked = f->start;
	bad = read_all(fd, part, pr, gaps, &list, f);
	f->now.acked = f->end;
	f->now.newest = pr->newest;
	if (!bad)
		bad = look_up(fd, &list, f);
	if (!bad)
		bad = look_up_epochs(fd, &list, pr, f);
	free(list.at);
	return bad;
}

/* ---- files ---- */

static uint8_t *slurp(const char *dir, int64_t base, const char *kind, size_t *size)
{
	char path[400];
	struct stat st;
	uint8_t *p;
	int fd;

	snprintf(path, sizeof(path), "%s/%020lld.%s", dir, (long long)base, kind);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	*size = 0;
	if (fd < 0 || fstat(fd, &st)) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	p = malloc((size_t)st.st_size + 1);
	if (!p || read(fd, p, (size_t)st.st_size) != st.st_size)
		abort();
	close(fd);
	*size = (size_t)st.st_size;
	return p;
}

static const char *check_index(const uint8_t *p, size_t size, int64_t base, const struct list *l,
			       uint64_t bytes, uint32_t interval, struct found *f)
{
	int64_t before = -1;
	size_t i;
	int j = 0;

	if (size % 8)
		return wrong("%020lld.index has %zu bytes", (long long)base, size);
	for (i = 0; i < size; i += 8, f->entries++) {
		int64_t offset = base + (int64_t)batch_get(p, i, 4);
		uint64_t pos = batch_get(p, i + 4, 4);

		while (j < l->n && l->at[j].pos < pos)
			j++;
		if (j == l->n || l->at[j].pos != pos || l->at[j].last != offset || offset <= before)
			return wrong("%020lld.index: entry %zu (offset %lld at %llu) is no batch",
				     (long long)base, i / 8, (long long)offset,
				     (unsigned long long)pos);
		before = offset;
	}
	if (!size && bytes > interval + CONTENT_ROOM)
		return wrong("%020lld.index is empty beside %llu bytes of log", (long long)base,
			     (unsigned long long)bytes);
	return NULL;
}

static const char *check_timeindex(const uint8_t *p, size_t size, int64_t base,
				   const struct list *l, struct found *f)
{
	size_t i;
	int j;

	if (size % 12)
		return wrong("%020lld.timeindex has %zu bytes", (long long)base, size);
	for (i = 0; i < size; i += 12, f->entries++) {
		int64_t time = (int64_t)batch_get(p, i, 8);
		int64_t offset = base + (int64_t)batch_get(p, i + 8, 4);

		for (j = 0; j < l->n && l->at[j].time < time; j++)
			;
		if (j == l->n || l->at[j].time != time || l->at[j].last != offset)
			return wrong("%020lld.timeindex: entry %zu (time %lld, offset %lld) is no batch",
				     (long long)base, i / 12, (long long)time, (long long)offset);
	}
	return NULL;
}

static const char *check_segment(const char *dir, int64_t base, uint32_t interval, int64_t start,
				 int64_t *next, struct found *f)
{
	size_t bytes, n, pos = 0;
	struct list l = { 0 };
	const char *bad = NULL;
	uint8_t *log, *index;

	log = slurp(dir, base, "log", &bytes);
	while (pos < bytes) {
		size_t size = whole(log + pos, bytes - pos);

		if (!size) {
			bad = wrong("%020lld.log: at byte %zu of %zu there is no whole batch",
				    (long long)base, pos, bytes);
			break;
		}
		note(&l, log + pos, pos);
		if (l.at[l.n - 1].base < *next) {
			bad = wrong("%020lld.log: offset %lld comes behind %lld", (long long)base,
				    (long long)l.at[l.n - 1].base, (long long)*next - 1);
			break;
		}
		*next = l.at[l.n - 1].last + 1;
		pos += size;
	}
	free(log);
	if (*next <= start)
		bytes = 0;
	/* an empty one is what was made and then not needed, or what a truncation has left */
	if (!bad && bytes) {
		index = slurp(dir, base, "index", &n);
		bad = check_index(index, n, base, &l, bytes, interval, f);
		free(index);
	}
	if (!bad && bytes) {
		index = slurp(dir, base, "timeindex", &n);
		bad = check_timeindex(index, n, base, &l, f);
		free(index);
	}
	free(l.at);
	return bad;
}

static int log_name(const struct dirent *e)
{
	return strlen(e->d_name) == 24 && !strcmp(e->d_name + 20, ".log");
}

const char *verify_files(const char *dir, uint32_t interval, int64_t start, struct found *f)
{
	struct dirent **names;
	const char *bad = NULL;
	int64_t next = -1;
	int i, n = scandir(dir, &names, log_name, alphasort);

	if (n < 0)
		return wrong("%s: %s", dir, strerror(errno));
	for (i = 0; i < n; i++) {
		if (!bad)
			bad = check_segment(dir, strtoll(names[i]->d_name, NULL, 10), interval,
					    start, &next, f);
		free(names[i]);
	}
	free(names);
	return bad;
}
