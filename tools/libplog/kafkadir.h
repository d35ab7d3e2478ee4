/* SPDX-License-Identifier: MIT */
/*
 * What Apache Kafka has left in a data directory and in its partition folders,
 * for the first time that a partition is opened here.
 *
 *   log-start-offset-checkpoint, replication-offset-checkpoint (high watermarks),
 *   recovery-point-offset-checkpoint: text: a version, 0; a count; and so many
 *	lines "topic partition offset"
 *   .kafka_cleanshutdown: the broker was stopped; who serves the directory next
 *	removes it (datadir_open())
 *   TOPIC-N/: segments; leader-epoch-checkpoint; *.snapshot, *.txnindex, which stay;
 *	*.deleted and *.cleaned, which are not part of the log; *.swap, see
 *	kafkadir_import()
 */
#ifndef PLOG_KAFKADIR_H
#define PLOG_KAFKADIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "properties.h"

/* Files of another size than this are not read: 2 million partitions. */
#define KAFKADIR_FILE_MAX	(512u << 20)

struct kafkadir_entry {
	char *topic;
	uint32_t partition;
	int64_t offset;
};

/* Zeroed is empty. */
struct kafkadir_checkpoint {
	struct kafkadir_entry *entries;	/* sorted by topic and partition */
	size_t count;
};

/**
 * kafkadir_checkpoint_read() - read a checkpoint file of Kafka's
 * @dirfd: the data directory
 *
 * Return: 0; -ENOENT; -EINVAL (not such a file: @err names the line); -ENOMEM, -EIO.
 */
int kafkadir_checkpoint_read(struct kafkadir_checkpoint *cp, int dirfd, const char *name,
			     struct plog_error *err);
void kafkadir_checkpoint_clear(struct kafkadir_checkpoint *cp);

/* The offset, or -1 if there is none. */
int64_t kafkadir_checkpoint_find(const struct kafkadir_checkpoint *cp, const char *topic,
				 uint32_t partition);

/* Replace the file. 0 or a negative errno. */
int kafkadir_checkpoint_write(const struct kafkadir_checkpoint *cp, int dirfd, const char *name,
			      struct plog_error *err);

/* The three of a data directory, read once. Zeroed is "not yet". */
struct kafkadir {
	bool read;
	struct kafkadir_checkpoint log_start, high_watermark, recovery_point;
};

void kafkadir_clear(struct kafkadir *kafka);

/**
 * kafkadir_import() - before the first opening of a partition that may be Kafka's
 * @kafka: of the data directory; filled in by the first call
 * @dirfd: the data directory, @fd: the partition's folder
 *
 * Does nothing if there is a plog.state, no segment, or no word of the partition
 * in Kafka's checkpoints; else
 *  - refuses segments in the formats before Kafka 0.11, with the segment's name;
 *  - finishes what Kafka has left half done when it was killed while it replaced
 *    segments: files *.swap get their names, and those they replace become
 *    *.deleted, as Kafka would name them (nothing is removed);
 *  - writes a plog.state with the log start, the high watermark, the recovery
 *    point and the leader epoch that Kafka has noted, durably, and with a mark
 *    that this log is not to be cut before its last segment.
 *
 * Return: 0; -EPROTONOSUPPORT (old format); -EINVAL (a checkpoint that cannot be
 * read, or a .swap that is not whole); an error of the files.
 */
int kafkadir_import(struct kafkadir *kafka, int dirfd, const char *topic, uint32_t partition,
		    int fd, struct plog_error *err);

/**
 * kafkadir_forget() - a topic is deleted: leave no offsets for one of its name
 *
 * Return: 0, also where Kafka has never been; an error of the files.
 */
int kafkadir_forget(int dirfd, const char *topic, struct plog_error *err);

#endif /* PLOG_KAFKADIR_H */
