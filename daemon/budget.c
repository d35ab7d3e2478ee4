// SPDX-License-Identifier: MIT
#include "budget.h"

#include <stddef.h>

void budget_init(struct budget *b, uint64_t limit)
{
	*b = (struct budget){ .limit = limit };
	b->last = &b->first;
	pthread_mutex_init(&b->lock, NULL);
}

static void unlink_waiter(struct budget *b, struct budget_waiter *w)
{
	if (!w->prev)
		return;
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	else
		b->last = w->prev;
	w->next = NULL;
	w->prev = NULL;
}

/* Call those in line that may now succeed: as many as there is room for, and one beyond. */
static void wake(struct budget *b)
{
	bool room = b->used < b->limit;

	do {
		struct budget_waiter *w = b->first;

		if (!room) {
			if (b->beyond)
				return;
			while (w && !w->may_pass)
				w = w->next;
		}
		if (!w)
			return;
		unlink_waiter(b, w);
		w->retry(w);
	} while (room);
}

void budget_set_limit(struct budget *b, uint64_t limit)
{
	pthread_mutex_lock(&b->lock);
	b->limit = limit;
	wake(b);
	pthread_mutex_unlock(&b->lock);
}

bool budget_take(struct budget *b, const void *owner, uint64_t n, struct budget_waiter *w)
{
	bool ok = true;

	pthread_mutex_lock(&b->lock);
	if (b->used + n > b->limit && (!owner || b->beyond != owner)) {
		if (owner && !b->beyond) {
			b->beyond = owner;
		} else {
			ok = false;
			w->may_pass = owner;
			if (!w->prev) {
				w->next = NULL;
				w->prev = b->last;
				*b->last = w;
				b->last = &w->next;
			}
		}
	}
	if (ok) {
		b->used += n;
		if (b->used > b->most)
			b->most = b->used;
	}
	pthread_mutex_unlock(&b->lock);
	return ok;
}

void budget_charge(struct budget *b, uint64_t n)
{
	pthread_mutex_lock(&b->lock);
	b->used += n;
	if (b->used > b->most)
		b->most = b->used;
	pthread_mutex_unlock(&b->lock);
}

static void end_beyond(struct budget *b, const void *owner)
{
	if (b->beyond == owner) {
		b->beyond = NULL;
		wake(b);
	}
}

bool budget_leave(struct budget *b, const void *owner, struct budget_waiter *w)
{
	bool waited;

	pthread_mutex_lock(&b->lock);
	waited = w->prev;
	unlink_waiter(b, w);
	end_beyond(b, owner);
	pthread_mutex_unlock(&b->lock);
	return waited;
}

bool budget_passes(struct budget *b, const void *owner)
{
	bool passes;

	pthread_mutex_lock(&b->lock);
	passes = b->beyond == owner;
	pthread_mutex_unlock(&b->lock);
	return passes;
}

void budget_give(struct budget *b, uint64_t n)
{
	pthread_mutex_lock(&b->lock);
	b->used -= n;
	wake(b);
	pthread_mutex_unlock(&b->lock);
}

void budget_complete(struct budget *b, const void *owner)
{
	pthread_mutex_lock(&b->lock);
	end_beyond(b, owner);
	pthread_mutex_unlock(&b->lock);
}
