/* SPDX-License-Identifier: MIT */
#ifndef PLOG_PEERS_H
#define PLOG_PEERS_H

#include <stdint.h>
#include <sys/socket.h>

/* How many connections each address has. Any thread. */
struct peers;

struct peers *peers_new(void);		/* NULL: no memory */
void peers_free(struct peers *peers);

/* Count one more of @address: 0, or -1 if it has @max already or there is no memory. */
int peers_add(struct peers *peers, const struct sockaddr_storage *address, int64_t max);
void peers_remove(struct peers *peers, const struct sockaddr_storage *address);

#endif
