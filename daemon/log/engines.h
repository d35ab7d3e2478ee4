/* SPDX-License-Identifier: MIT */
#ifndef PLOG_ENGINES_H
#define PLOG_ENGINES_H

#include <stdbool.h>

#include "../../tools/libplog/properties.h"

struct broker;
struct log_engine;

/* The module's logs: open the control node, register as the instance's daemon. */
struct log_engine *module_start(struct broker *b, struct plog_error *err);

/* Is this process still the registered daemon? */
bool module_registered(struct log_engine *engine);

/* The engine inside this process. */
struct log_engine *process_start(struct broker *b, struct plog_error *err);

#endif
