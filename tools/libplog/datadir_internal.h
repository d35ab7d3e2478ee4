/* SPDX-License-Identifier: MIT */
#ifndef PLOG_DATADIR_INTERNAL_H
#define PLOG_DATADIR_INTERNAL_H

#include <limits.h>
#include <string.h>

#include "datadir.h"
#include "kafkadir.h"

#define DATADIR_TOPIC_SUFFIX	".topic"

struct datadir {
	int fd;
	int lock_fd;
	int change_fd;		/* a second descriptor of the directory, for flock(2) */
	bool attached;
	char *path;
	struct kafkadir kafka;
};

static inline bool datadir_id_is_set(const uint8_t id[DATADIR_ID_SIZE])
{
	static const uint8_t none[DATADIR_ID_SIZE];

	return memcmp(id, none, sizeof(none)) != 0;
}

/* "TOPIC.topic" */
void datadir_file_name(const char *topic, char name[NAME_MAX + 1]);
/* Reads the file; @topic is initialized by the call. -ENOENT without a file. */
int datadir_file_read(struct datadir *dir, const char *name, struct datadir_topic *topic,
		      bool *deleting, struct plog_error *err);
int datadir_file_write(struct datadir *dir, const struct datadir_topic *topic, bool deleting,
		       struct plog_error *err);

/* Finish deletions that a crash has cut short, remove leftovers. Needs the lock. */
int datadir_sweep(struct datadir *dir, struct plog_error *err);

#endif /* PLOG_DATADIR_INTERNAL_H */
