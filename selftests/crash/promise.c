// SPDX-License-Identifier: MIT
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void promise_cut(struct promise *p, int64_t offset)
{
	if (p->acked > offset)
		p->acked = offset;
	if (p->lead_at >= offset)
		p->lead_epoch = 0;
}

void promise_forget(struct promise *p)
{
	while (p->gens > 1 && p->from[1] <= p->start) {
		p->gens--;
		memmove(p->from, p->from + 1, (size_t)p->gens * sizeof(p->from[0]));
		memmove(p->gen, p->gen + 1, (size_t)p->gens * sizeof(p->gen[0]));
	}
}

void promise_begin(struct promise *p, int64_t offset, uint32_t gen)
{
	promise_cut(p, offset);
	while (p->gens && p->from[p->gens - 1] >= offset)
		p->gens--;
	promise_forget(p);
	if (p->gens == PROMISE_GENS)
		abort();
	p->from[p->gens] = offset;
	p->gen[p->gens++] = gen;
	if (p->newest < gen)
		p->newest = gen;
}

uint32_t promise_gen(const struct promise *p, int64_t offset, int64_t *from)
{
	int i = p->gens;

	while (i > 1 && p->from[i - 1] > offset)
		i--;
	if (from)
		*from = i ? p->from[i - 1] : 0;
	return i ? p->gen[i - 1] : 0;
}

void promise_print(const struct promise *p, uint32_t part, char *to, size_t size)
{
	int i, n = snprintf(to, size, "promise %u %lld %lld %d@%lld", part, (long long)p->acked,
			    (long long)p->start, p->lead_epoch, (long long)p->lead_at);

	for (i = 0; i < p->gens; i++)
		n += snprintf(to + n, size - (size_t)n, " %lld:%u", (long long)p->from[i],
			      p->gen[i]);
	snprintf(to + n, size - (size_t)n, "\n");
}

int promise_read(const char *text, struct promise *p)
{
	long long acked, start, lead, from;
	unsigned int part, gen;
	int n, epoch;

	if (sscanf(text, "promise %u %lld %lld %d@%lld%n", &part, &acked, &start, &epoch, &lead,
		   &n) != 5)
		return -1;
	memset(p, 0, sizeof(*p));
	p->lead_epoch = epoch;
	p->lead_at = lead;
	p->acked = acked;
	p->start = start;
	for (text += n; sscanf(text, " %lld:%u%n", &from, &gen, &n) == 2; text += n) {
		if (p->gens == PROMISE_GENS)
			return -1;
		p->from[p->gens] = from;
		p->gen[p->gens++] = gen;
	}
	return (int)part;
}
