/* SPDX-License-Identifier: MIT */
#ifndef PLOG_APPENDER_H
#define PLOG_APPENDER_H

#include "../../tools/libplog/properties.h"
#include "../loop.h"

/*
 * Threads that append, as many as there are client loops. Each partition belongs to one of
 * them (log_owner()), and what is posted runs in order: so a check and the append that follows
 * it are one step. An append copies into the page cache, and there it may be throttled with
 * every other writer of the machine, or wait for a file system that is frozen; here it keeps
 * none but other appends waiting.
 */
struct appender;

/* Begin @n of them. NULL: an error and a sentence. */
struct appender *appenders_start(unsigned int n, struct plog_error *err);

/* Run @task->run(@task) on appender @index soon. Any thread. It belongs to it until it runs. */
void appender_post(struct appender *appenders, unsigned int index, struct task *task);

/* Wait for what was posted, and end them. NULL is fine. */
void appenders_stop(struct appender *appenders);

#endif
