/* SPDX-License-Identifier: MIT */
#ifndef PLOG_ADMIN_H
#define PLOG_ADMIN_H

#include <stddef.h>
#include <stdint.h>

struct broker;

/*
 * plogctl's topic and broker commands, which the module relays: one JSON object each way, of
 * 32 KiB at most. Documentation/netlink.rst has the commands.
 *
 * On the control loop. The answer goes to @port and @cookie by netlink_relay_reply(), now or
 * when the change has been made.
 */
void admin_request(struct broker *b, uint32_t port, uint32_t cookie, const char *json,
		   size_t size);

#endif
