/* SPDX-License-Identifier: MIT */
#ifndef FUZZ_RELAY_H
#define FUZZ_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdint.h>

/* Ends the process where @ok is 0. */
void fuzz_must(int ok);

/* An answer of the daemon's own: plogctl must take it, or say which error it bears. */
void fuzz_relay_answer(const char *json, size_t size);

/* Any bytes as answers, divided by 0xff, to the command of that number. */
void fuzz_relay_answers(const char *bytes, size_t size, unsigned int command);

#define FUZZ_FAMILY	0x21	/* of netlink */

struct broker;
struct nlmsghdr;

/* Messages of the module's to plogd or plogctl. */
void fuzz_relay_messages(struct broker *broker, const uint8_t *p, size_t n, bool daemon);
/* One to plogctl, for the command that @which is of. */
void fuzz_relay_message(const struct nlmsghdr *nlh, unsigned int which);

#endif
