/* SPDX-License-Identifier: MIT */
#ifndef PLOG_KAFKADIR_INTERNAL_H
#define PLOG_KAFKADIR_INTERNAL_H

#include "kafkadir.h"

/* As kmod/state.h has them; test_engine_import holds the two together. */
#define KAFKADIR_STATE_SIZE	512
#define KAFKADIR_STATE_IMPORTED	8

/* Read the three checkpoints if that was not done yet. */
int kafkadir_read(struct kafkadir *kafka, int dirfd, struct plog_error *err);

#endif /* PLOG_KAFKADIR_INTERNAL_H */
