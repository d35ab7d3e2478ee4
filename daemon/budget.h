/* SPDX-License-Identifier: MIT */
#ifndef PLOG_BUDGET_H
#define PLOG_BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Memory that requests may take, over all connections. There is one for their bytes, taken as
 * they arrive, never by what a peer claims will come; and one for what they are decoded into
 * and answered from, beyond a little that each may have.
 *
 * When it is all taken, connections that want more stop reading and wait. So that they do
 * not all wait for one another, each with half a request, one at a time may go beyond the
 * limit: its request becomes complete, is answered, and gives its memory back. The most that
 * is ever held is the limit and one largest request.
 */
struct budget_waiter {
	void (*retry)(struct budget_waiter *w);	/* any thread; may post a task, no more */
	struct budget_waiter *next, **prev;	/* @prev NULL: not waiting */
	bool may_pass;				/* it asked with an owner */
};

struct budget {
	pthread_mutex_t lock;
	uint64_t limit, used, most;
	struct budget_waiter *first, **last;
	const void *beyond;	/* who may pass the limit */
};

void budget_init(struct budget *b, uint64_t limit);
void budget_set_limit(struct budget *b, uint64_t limit);

/*
 * Take @n bytes for @owner. If there is no room, @w is put in line and false is returned;
 * w->retry() is called when it is worth to ask again. @owner NULL: for something that may not
 * pass the limit, since nobody can say when its memory will be given back.
 */
bool budget_take(struct budget *b, const void *owner, uint64_t n, struct budget_waiter *w);

/* Take @n bytes that are there already, room or not: whoever asks next waits for them. */
void budget_charge(struct budget *b, uint64_t n);

/*
 * Leave the line, and give up the right to pass the limit if @owner has it. False if @w was
 * not in line: its retry() was called, or it never waited.
 */
bool budget_leave(struct budget *b, const void *owner, struct budget_waiter *w);

/* Has @owner the right to pass the limit now? Then others may be waiting for its end. */
bool budget_passes(struct budget *b, const void *owner);

/* Give @n bytes back. Any thread. */
void budget_give(struct budget *b, uint64_t n);

/* @owner's request has given its memory back: another may pass the limit. */
void budget_complete(struct budget *b, const void *owner);

#endif
