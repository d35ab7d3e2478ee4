/* SPDX-License-Identifier: MIT */
#ifndef PLOG_ENDPOINT_H
#define PLOG_ENDPOINT_H

#include <stdint.h>

#include "codec.h"

struct request;

/*
 * The address under which the client of @req finds this broker again: what its listener
 * advertises, else the address that it came to. Texts live as long as the request. 0, or -1
 * if there is no memory. On the connection's loop, and not after it was closed.
 */
int endpoint_of(struct request *req, struct kstr *host, int32_t *port);

#endif
