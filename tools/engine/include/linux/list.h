/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_LIST_H
#define _ENGINE_LINUX_LIST_H

#include <linux/compiler.h>
#include <linux/types.h>

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD_INIT(name)	{ &(name), &(name) }
#define LIST_HEAD(name)		struct list_head name = LIST_HEAD_INIT(name)

/* As the kernel has it: a list may be looked at for being empty by who has no lock. */
static inline void INIT_LIST_HEAD(struct list_head *l)
{
	WRITE_ONCE(l->next, l);
	WRITE_ONCE(l->prev, l);
}

static inline bool list_empty(const struct list_head *l)
{
	return READ_ONCE(l->next) == l;
}

static inline void list_add_tail(struct list_head *n, struct list_head *head)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

static inline void list_del_init(struct list_head *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	INIT_LIST_HEAD(n);
}

static inline void list_del(struct list_head *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
}

static inline void list_move_tail(struct list_head *n, struct list_head *head)
{
	list_del(n);
	list_add_tail(n, head);
}

#define list_first_entry(head, type, member) container_of((head)->next, type, member)
#define list_next_entry(pos, member) \
	container_of((pos)->member.next, __typeof__(*(pos)), member)

#define list_for_each_entry(pos, head, member)				\
	for (pos = list_first_entry(head, __typeof__(*pos), member);	\
	     &pos->member != (head); pos = list_next_entry(pos, member))

#define list_for_each_entry_safe(pos, n, head, member)			\
	for (pos = list_first_entry(head, __typeof__(*pos), member),	\
	     n = list_next_entry(pos, member);				\
	     &pos->member != (head); pos = n, n = list_next_entry(n, member))

#endif
