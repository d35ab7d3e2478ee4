/* SPDX-License-Identifier: MIT */
#ifndef PLOG_JANITOR_H
#define PLOG_JANITOR_H

#include <stdint.h>

#include "../../tools/libplog/properties.h"

struct broker;
struct janitor;
struct log;

/*
 * The janitor: a thread that unlinks the files of retired segments, and, where the engine has
 * no clock of its own, lets retention look at every log each log.retention.check.interval.ms.
 *
 * Whose files they are is agreed with the engine file by file: it gives each to one taker.
 */

/* NULL and a sentence. Looks at every log at once: some may have files of an earlier life. */
struct janitor *janitor_start(struct broker *b, struct plog_error *err);
/* End the thread; and free it, when nobody can tell it anything any more. NULL is fine. */
void janitor_stop(struct janitor *janitor);
void janitor_free(struct janitor *janitor);

/* @log has files to delete; NULL: any may have. Any thread, at any time of the broker. */
void janitor_tell(struct broker *b, struct log *log);
void janitor_tell_name(struct broker *b, const char *topic, uint32_t index);

/* The configuration was read again. */
void janitor_reconfigure(struct broker *b);

#endif
