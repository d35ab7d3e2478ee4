/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Values and netlink messages as an enemy makes them, for hostile.c: right but
 * for a mutation or two, or junk. The same seed makes the same ones.
 */
#ifndef PLOG_SELFTESTS_ENEMY_H
#define PLOG_SELFTESTS_ENEMY_H

#include <stdbool.h>
#include <stdint.h>

#include "instance.h"
#include "nl.h"

#define ENEMY_TOPICS	4	/* h0 to h3, beside t */

/* What all workers know of the partitions, so that some calls are as they should be; shared. */
struct enemy_known {
	volatile uint64_t incarnation;
	volatile uint64_t daemon;	/* as the instance tells it, 0: none */
	volatile uint64_t generation;
	volatile int64_t retired;	/* the base of a retired segment, */
	char retired_topic[16];		/* of this topic */
	struct plog_state state;	/* of some partition, some time ago */
};

extern struct enemy_known *enemy_known;

void enemy_seed(uint64_t seed);
/* Below @n; of all 32 bits if it is 0. */
uint32_t rnd(uint32_t n);
/* At the edges of what integers are, or anything. */
uint64_t odd_value(void);
/* One that there may be, or one that there cannot be. */
const char *topic_name(void);
/* Near one of the offsets that mean something, or any. */
uint64_t enemy_offset(void);
uint64_t enemy_incarnation(void);

/**
 * struct enemy_message - what a message is made of, and what came of it
 * @fds: descriptors of the device, -1 for none
 * @payload: of the relay, 3000 bytes at least
 * @command: which it was; may be above PLOG_CMD_MAX
 * @worked: it was answered, and not with an error
 */
struct enemy_message {
	struct nl *nl;
	const struct instance *instance;
	const int *fds;
	uint32_t fd_count;
	const void *payload;

	int opened;	/* of enemy_message() itself */
	uint32_t command;
	bool worked;
};

/* Send one, and take what comes back. What sendto() returned. */
long enemy_message(struct enemy_message *m);

#endif
