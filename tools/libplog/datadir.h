/* SPDX-License-Identifier: MIT */
/*
 * The data directory of one broker, which plogctl and plogd share:
 *
 *   .lock                whoever serves the directory holds an OFD write lock
 *                        on it (the module through the file handed over)
 *   meta.properties      cluster.id, node.id: Kafka's, written by plogd
 *   TOPIC.topic          properties of a topic: topic.id, partitions, owner,
 *                        node, and Kafka's configuration keys as they are
 *   TOPIC-N/             partition folder: segments, partition.metadata
 *   TOPIC-N.HEX-delete/  being deleted; swept at the next start
 *
 * What returns int gives 0 or a negative errno and then says in @err (which may
 * be NULL) what was wrong.  Every change is on stable storage on return.
 *
 * Who may change: with the lock (datadir_open() without DATADIR_ATTACH) anyone
 * at any time.  Attached, while the module serves the directory, plogctl and
 * plogd agree by datadir_change_begin(): plogd registers with the module first
 * and then reads the topics inside begin/end; plogctl asks inside begin/end
 * whether a daemon is registered, and if so leaves the change to it.  So no
 * change is ever missed.
 */
#ifndef PLOG_DATADIR_H
#define PLOG_DATADIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "properties.h"

#define DATADIR_TOPIC_MAX	249	/* bytes of a topic name */
#define DATADIR_PARTITIONS_MAX	65536	/* partitions of one topic */
#define DATADIR_ID_SIZE		16
#define DATADIR_ID_TEXT		22	/* base64url without padding */

struct datadir;

/* datadir_open() flags */
#define DATADIR_CREATE	(1u << 0) /* make the directory (and its parents) if absent */
#define DATADIR_ATTACH	(1u << 1) /* another serves it: do not lock, but check that it is locked */

/**
 * datadir_open() - open a data directory
 *
 * Without DATADIR_ATTACH it is locked, half-made deletions are finished and
 * *-delete leftovers swept.
 *
 * Return: 0 and *@out; -EBUSY (somebody else serves it); -ENOLCK (DATADIR_ATTACH
 * and nobody serves it, so it is not the directory that was meant); -ENOENT,
 * -ENOTDIR, -EACCES, ...
 */
int datadir_open(const char *path, unsigned int flags, struct datadir **out,
		 struct plog_error *err);
/* Closes the descriptors; the lock ends unless another process or the module has the file too. */
void datadir_close(struct datadir *dir);

/* The directory and its .lock, for DIR_FD and LOCK_FD of INSTANCE_SET. Owned by @dir. */
int datadir_fd(const struct datadir *dir);
int datadir_lock_fd(const struct datadir *dir);
/* Its absolute name without symbolic links: the label of the instance. */
const char *datadir_path(const struct datadir *dir);

/* Does @path name the directory that the label @label names? (Same device and inode.) */
bool datadir_same(const char *label, const char *path);

/* Take turns with other processes; waits up to @timeout_ms. 0 or -ETIMEDOUT. */
int datadir_change_begin(struct datadir *dir, unsigned int timeout_ms, struct plog_error *err);
void datadir_change_end(struct datadir *dir);

/* ---- identity of the broker ---- */

struct datadir_meta {
	char cluster_id[64];
	int32_t node_id;
	uint8_t directory_id[DATADIR_ID_SIZE];
};

/* -ENOENT if it was never written; -EINVAL if it cannot be used. */
int datadir_meta_read(struct datadir *dir, struct datadir_meta *meta, struct plog_error *err);
int datadir_meta_write(struct datadir *dir, const struct datadir_meta *meta,
		       struct plog_error *err);

/* ---- ids ---- */

/* 16 random bytes, version 4 UUID; never one whose text begins with '-' (as Kafka). 0 or errno. */
int datadir_id_random(uint8_t id[DATADIR_ID_SIZE]);
void datadir_id_text(const uint8_t id[DATADIR_ID_SIZE], char text[DATADIR_ID_TEXT + 1]);
/* 0, or -EINVAL if @text is not 22 characters of base64url. */
int datadir_id_parse(const char *text, uint8_t id[DATADIR_ID_SIZE]);

/* ---- topics ---- */

struct datadir_owner {
	uid_t uid;
	gid_t gid;
	mode_t mode;		/* 0 to 0777 */
};

/**
 * struct datadir_topic - a topic as its file has it
 * @id: zero for none (a directory of an old Kafka)
 * @partitions: how many the topic has: folders 0 to @partitions - 1
 * @owner: of every partition without an override
 * @overrides, @override_count: sorted by partition
 * @node: /dev/plog/TOPIC/N wanted
 * @adopted: there was no .topic file: made up from the folders found
 * @config: the keys that were set
 */
struct datadir_topic {
	char name[DATADIR_TOPIC_MAX + 1];
	uint8_t id[DATADIR_ID_SIZE];
	uint32_t partitions;
	struct datadir_owner owner;
	struct datadir_override {
		uint32_t partition;
		struct datadir_owner owner;
	} *overrides;
	size_t override_count;
	bool node;
	bool adopted;
	struct properties config;
};

/* A topic with that name, one partition, no id, mode 0600 of uid 0 and gid 0, node true. */
void datadir_topic_init(struct datadir_topic *topic, const char *name);
void datadir_topic_clear(struct datadir_topic *topic);
/* Owner of one partition; the override if there is one. */
struct datadir_owner datadir_topic_owner(const struct datadir_topic *topic, uint32_t partition);
/* Set an override (equal to the topic's owner: drop it). 0 or -ENOMEM. */
int datadir_topic_set_owner(struct datadir_topic *topic, uint32_t partition,
			    const struct datadir_owner *owner);

/**
 * struct datadir_change - what an alteration changes of a topic
 * @partitions: more than now; 0: as it is
 * @set: configuration to set; NULL for none
 * @unset, @unset_count: keys to take out
 * @owner: which parts of it count tell @uid_set, @gid_set and @mode_set
 * @partition: owner and mode of this one only; -1: of all, and those that single
 *	partitions had of their own end
 */
struct datadir_change {
	int64_t partitions;
	const struct properties *set;
	char **unset;
	size_t unset_count;
	struct datadir_owner owner;
	bool uid_set, gid_set, mode_set;
	int64_t partition;
};

/**
 * datadir_topic_change() - a topic as it is after a change; nothing is written
 *
 * Return: 0; -EDOM (number of partitions); -ENOENT (no such partition); -EINVAL (the
 * configuration); -ENOMEM.  After an error @topic is of no use.
 */
int datadir_topic_change(struct datadir_topic *topic, const struct datadir_change *change,
			 struct plog_error *err);

/* Kafka's rules: 1 to 249 of [a-zA-Z0-9._-], not "." or "..". 0 or -EINVAL. */
int datadir_topic_name_check(const char *name, struct plog_error *err);
/* Do the two differ only by . and _ (Kafka's metrics would mix them up)? */
bool datadir_topic_names_collide(const char *a, const char *b);

/**
 * datadir_scan() - read every topic
 * @topics, @count: out: sorted by name; give back to datadir_topics_free()
 *
 * Folders without a .topic file (Apache Kafka's) come as topics with @adopted
 * set; datadir_topic_write() makes the file.  Return: 0; -EINVAL (a file that
 * cannot be used; @err names it); -ENOMEM, -EIO, ...
 */
int datadir_scan(struct datadir *dir, struct datadir_topic **topics, size_t *count,
		 struct plog_error *err);
void datadir_topics_free(struct datadir_topic *topics, size_t count);

/* One topic. @topic is initialized by the call. -ENOENT if there is none. */
int datadir_topic_read(struct datadir *dir, const char *name, struct datadir_topic *topic,
		       struct plog_error *err);

/**
 * datadir_topic_create() - a new topic: its file and all its folders
 * @topic: @id zero: a random one is put in.  The configuration is not checked
 *	here (topicconfig_check_all() does).
 *
 * Return: 0; -EEXIST; -EINVAL (name or partition count); -ENOSPC, ...  On an
 * error after the file was made the topic is removed again.
 */
int datadir_topic_create(struct datadir *dir, struct datadir_topic *topic,
			 struct plog_error *err);

/**
 * datadir_topic_write() - replace the topic's file, make folders that are missing
 *
 * For a change of owner or configuration, for a larger number of partitions and
 * to adopt.  Return: 0, -EINVAL (fewer partitions than there are, or too many), ...
 */
int datadir_topic_write(struct datadir *dir, const struct datadir_topic *topic,
			struct plog_error *err);

/**
 * datadir_topic_shrink() - take a growth back that was refused
 * @before: the topic as it was before datadir_topic_write()
 *
 * Its folders from @before->partitions on go, with what is in them, then its file is
 * written as it was.  A crash in between leaves the file of the growth: the next start
 * makes the folders anew.  Only for partitions that are out of service.  Return: 0, or
 * an error of the file system.
 */
int datadir_topic_shrink(struct datadir *dir, const struct datadir_topic *before,
			 struct plog_error *err);

/**
 * datadir_topic_delete() - remove the topic's file and folders
 *
 * Take its partitions out of service before.  A crash in the middle leaves a
 * topic that the next datadir_open() deletes to the end.  Return: 0, -ENOENT, ...
 */
int datadir_topic_delete(struct datadir *dir, const char *name, struct plog_error *err);

/**
 * datadir_partition_open() - the folder of one partition
 * @made: out, may be NULL: it was missing and has been made anew, empty
 *
 * Return: a descriptor (close it after it was handed over) or a negative errno.
 */
int datadir_partition_open(struct datadir *dir, const struct datadir_topic *topic,
			   uint32_t partition, bool *made, struct plog_error *err);

/**
 * datadir_partition_find() - the folder of one partition, if it is there
 *
 * Return: a descriptor to close(), or a negative errno.
 */
int datadir_partition_find(struct datadir *dir, const char *topic, uint32_t partition);

/**
 * datadir_segments_lock() - be the one who deletes segments of a partition
 * @fd: its folder, opened for this
 *
 * Held from before a retired segment is taken until the module was told that it
 * is gone; it ends with close(@fd), or the process. So whoever has taken one and
 * is stopped before it unlinks keeps others from finishing its work, after which
 * the name could be that of a new segment.
 * Return: 0, -EAGAIN (somebody else has it), or another negative errno.
 */
int datadir_segments_lock(int fd);

/**
 * datadir_segment_delete() - unlink the files of one segment
 * @fd: the partition's folder, locked by datadir_segments_lock()
 * @base: the segment's base offset
 *
 * The log last: while it is there an opening finds the others too.  What is not
 * there is no error.  Nor is it synced: a crash that brings files back leaves
 * what an opening takes for retired again.
 */
int datadir_segment_delete(int fd, int64_t base, struct plog_error *err);

/* ---- compaction: the files around a swap of segments ---- */

/*
 * Whoever compacts writes BASE.log.cleaned, BASE.index.cleaned and BASE.timeindex.cleaned into
 * the partition's folder and syncs them; then
 *
 *   datadir_swap_commit()	they are named .swap
 *   PLOG_IOC_SWAP		the log engine reads the new segment from here on
 *   datadir_swap_finish()	the others of the run are deleted, .swap is dropped from names
 *   PLOG_IOC_SWAP, PLOG_SWAP_DONE
 *
 * Each can be interrupted anywhere, and done again.  If the engine serves the partition, ask it
 * (PLOG_SWAP_ASK): a swap that is pending is to be finished, else datadir_swap_drop().  If
 * it does not, datadir_swap_recover(); datadir_partition_open() does that where nobody
 * serves the directory.  That may complete what was committed and not swapped: so nothing is
 * truncated between the commit and the swap, nor after one that was refused before
 * datadir_swap_drop().
 *
 * @dirfd is the folder of the partition.  All of it is on stable storage on return.
 */
int datadir_swap_commit(int dirfd, int64_t base, struct plog_error *err);

/* @last: base offset of the last segment of the run */
int datadir_swap_finish(int dirfd, int64_t base, int64_t last, struct plog_error *err);

/* The swap never happened: delete .cleaned and .swap. */
int datadir_swap_drop(int dirfd, struct plog_error *err);

/**
 * datadir_swap_recover() - complete or drop what an interrupted compaction has left
 *
 * Kafka's rule: a .log.swap is complete, what it covers is deleted and it gets its name, and
 * the clean mark is voided; .cleaned is dropped.  Where plog.state says that the log has no
 * gaps the engine has never swapped, so that all is still there: .log.swap is dropped too.
 * A folder without a plog.state is left alone: it is imported first.
 * Return: 0; -EINVAL (a .log.swap that is not whole); an error of the files.
 */
int datadir_swap_recover(int dirfd, struct plog_error *err);

#endif /* PLOG_DATADIR_H */
