/* SPDX-License-Identifier: MIT */
/*
 * A plog instance for a test: a data directory of its own, partitions in it,
 * descriptors bound to them. Everything by the device and netlink alone; no
 * other program of the project takes part.
 */
#ifndef PLOG_SELFTESTS_INSTANCE_H
#define PLOG_SELFTESTS_INSTANCE_H

#include "nl.h"

/**
 * struct instance - the instance of the network namespace it was started in
 * @dir: its data directory, below $PLOG_TEST_DIR (/var/lib/plog if unset)
 */
struct instance {
	struct nl nl;
	char dir[256];
	int dir_fd;
	int lock_fd;
};

/* Move this process into a network namespace of its own; 0 or -errno. */
int namespace_new(void);

/**
 * instance_start() - make the instance of this network namespace
 * @dir: data directory, NULL: a new one
 *
 * Return: 0 or a negative errno (in->nl.error_text has the reason).
 */
int instance_start(struct instance *in, const char *dir);

/* Stop it and wait until it is gone (20 s); the directory stays. */
int instance_stop(struct instance *in);

/* Remove the data directory. */
void instance_remove(struct instance *in);

/* Let go of socket and descriptors without a stop. */
void instance_close(struct instance *in);

/**
 * instance_partition() - PARTITION_NEW in a directory DIR/TOPIC-INDEX
 * @part: dir_fd is chosen here
 *
 * Waits until it is no longer opening. Return: 0 if it is online, -errno of
 * the request, or the errno that opening failed with.
 */
int instance_partition(struct instance *in, struct nl_partition *part);

/* The same with nothing but defaults. */
int instance_topic(struct instance *in, const char *topic);

/* Wait until a partition has left the state OPENING; 0 if online. */
int instance_wait(struct instance *in, const char *topic, uint32_t index);

/* PARTITION_DEL, and wait for the event that it is closed. */
int instance_delete(struct instance *in, const char *topic, uint32_t index);

/**
 * instance_open_copy() - open what a crash at this moment would leave
 * @from: a partition's directory, in use or not
 *
 * Copies its files as they are now, under the open log, into topic @copy's
 * partition 0 and opens that.
 */
int instance_open_copy(struct instance *in, const char *from, const char *copy);

/* Path of a partition's directory, or of a file in it; static storage. */
const char *instance_path(struct instance *in, const char *topic, uint32_t index,
			  const char *file);

/* A new control descriptor; -errno. @flags: of open(2), besides O_RDWR. */
int control_open(int flags);
/* A descriptor bound to a partition, PLOG_MODE_* in @mode; -errno. */
int partition_bind(const char *topic, uint32_t index, uint32_t mode);
int partition_bind_flags(const char *topic, uint32_t index, uint32_t mode, int flags);

/* Wrappers of the ioctls: 0 or -errno. */
int partition_state(int fd, struct plog_state *out);
int64_t partition_end(int fd);
int partition_append(int fd, const void *data, size_t size, struct plog_append *out);
int partition_locate(int fd, int64_t offset, uint32_t max_bytes, uint32_t flags,
		     struct plog_locate *out);
int partition_mode(int fd, uint32_t mode);
int partition_control(int fd, uint32_t command, uint64_t incarnation, int32_t epoch,
		      int64_t offset);
int control_register(int fd, uint32_t port, uint64_t *incarnation);

/* The leader epoch of a partition that no daemon has moved yet. */
#define EPOCH 0

/**
 * partition_check() - read the whole log through @fd and check every batch
 * @batches: out: how many; may be NULL
 *
 * Return: NULL, or what is wrong. Leaves a cursor behind.
 */
const char *partition_check(int fd, int *batches);

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t now_ms(void);

/* Factor for timeouts and amounts: 1, or more where the kernel is a slow one. */
int slow(void);

#endif
