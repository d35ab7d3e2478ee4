/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Leader epochs: which epoch wrote from which offset on (KIP-101, KIP-279).
 *
 * The list is a whole that is replaced as a whole, read under RCU inside the
 * partition's sequence count, so that it always fits the log end published with
 * it.  Epochs and start offsets both rise strictly.  On disk it is Kafka's
 * "leader-epoch-checkpoint":
 *
 *	0\n			the version
 *	COUNT\n
 *	EPOCH START-OFFSET\n	COUNT times
 *
 * The file is a help, never the truth: what it should say can be found in the
 * headers of the batches, but for an epoch in which nothing was written yet,
 * and that one is in plog.state.
 */
#ifndef _PLOG_EPOCH_H
#define _PLOG_EPOCH_H

#include <linux/rcupdate.h>
#include <linux/types.h>

struct plog_partition;
struct plog_table;

#define PLOG_EPOCH_NAME		"leader-epoch-checkpoint"

/*
 * Entries that are kept, the newest.  What an older epoch is asked for then gets
 * the answer that Kafka gives once retention has taken the epoch: the start of
 * the oldest that is known.  64 KiB.
 */
#define PLOG_EPOCHS_MAX		4096

/* A larger file is not believed: some 33000 entries of the longest kind. */
#define PLOG_EPOCH_FILE_MAX	(1u << 20)

struct plog_epoch_entry {
	s32 epoch;
	s64 start;		/* offset of the first record, or of the next one then */
};

struct plog_epochs {
	struct rcu_head rcu;
	u32 count;		/* 1 or more: an empty list is NULL */
	struct plog_epoch_entry entry[];
};

/* ---- the list, in memory ---- */

/* A list being made; zeroed is an empty one. Ended by finish or drop. */
struct plog_epoch_builder {
	struct plog_epochs *list;
	u32 room;
};

/**
 * plog_epoch_begin() - start with the entries of @old, which may be NULL
 *
 * Return: 0 or -ENOMEM.
 */
int plog_epoch_begin(struct plog_epoch_builder *b, const struct plog_epochs *old);

/**
 * plog_epoch_assign() - epoch @epoch writes from @start on
 *
 * Nothing happens if that is the last one and does not begin earlier.  Else the
 * entries that are not below both go: a leader that wrote nothing leaves none.
 * Return: 0, -EINVAL (a negative number), -ENOMEM.
 */
int plog_epoch_assign(struct plog_epoch_builder *b, s32 epoch, s64 start);

/* The log ends at @end now: what begins there or later goes. */
void plog_epoch_cut(struct plog_epoch_builder *b, s64 end);

/* The log starts at @start now: the entry that holds it begins there, older ones go. */
void plog_epoch_trim(struct plog_epoch_builder *b, s64 start);

/* The list, NULL if it is empty; frees what else the builder has. */
struct plog_epochs *plog_epoch_finish(struct plog_epoch_builder *b);
void plog_epoch_drop(struct plog_epoch_builder *b);

/* The last epoch, -1 without one, and where it begins, -1. */
s32 plog_epoch_last(const struct plog_epochs *list);
s64 plog_epoch_last_start(const struct plog_epochs *list);

/**
 * plog_epoch_end_of() - where did an epoch end?
 * @log_start, @log_end: of the same moment as @list
 * @epoch: in: asked for; out: the largest that is not above it, or as it was if
 *	   all that is known is newer; -1 if @epoch is negative or newer than all
 *
 * Return: the start of the next epoch, @log_end for the last one, or -1.
 */
s64 plog_epoch_end_of(const struct plog_epochs *list, s64 log_start, s64 log_end, s32 *epoch);

/* The epoch of the record at @offset, -1 if it is not known. */
s32 plog_epoch_at(const struct plog_epochs *list, s64 offset);

/* ---- the file ---- */

/**
 * plog_epoch_parse() - read Kafka's checkpoint format
 * @b: out: the entries, to be finished or dropped by the caller
 *
 * Strict: no byte more or less than Kafka writes, both columns rising.
 * Return: 0, -EBADMSG, -ENOMEM.
 */
int plog_epoch_parse(const char *text, size_t len, struct plog_epoch_builder *b);

/* Room that plog_epoch_format() needs for @count entries, in bytes. */
size_t plog_epoch_text_size(u32 count);

/* Write what the file should hold, without what lies before @log_start; its length. */
size_t plog_epoch_format(const struct plog_epochs *list, s64 log_start, char *text, size_t room);

/**
 * struct plog_epoch_text - a file's content
 * @text, @len: to be freed by kvfree()
 * @crc: CRC32C of it
 */
struct plog_epoch_text {
	char *text;
	size_t len;
	u32 crc;
};

/**
 * plog_epoch_snapshot() - the content that the file should have now
 *
 * With the state lock held.  Return: 0 or -ENOMEM.
 */
int plog_epoch_snapshot(struct plog_partition *p, struct plog_epoch_text *t);

/**
 * plog_epoch_write() - write the file in place, cut it to its length, sync it
 *
 * With the state lock held.  Return: 0 or an error of the file.
 */
int plog_epoch_write(struct plog_partition *p, const struct plog_epoch_text *t);

/* ---- the partition ---- */

/**
 * plog_epoch_load() - the list of a log that is being opened
 * @table: its segments, not yet published
 * @trusted: the log was closed cleanly: believe a file with the CRC that is saved
 *
 * What the file says is compared with the log: with one look-up per entry.  Where
 * it is missing or wrong the list is made from the headers, by bisection.
 * Raises p->saved.leader_epoch to the last epoch.  Under the append mutex.
 * Return: 0, -ENOMEM, -EINTR, or an error of the log's files.
 */
int plog_epoch_load(struct plog_partition *p, struct plog_table *table, s64 log_end, bool trusted,
		    struct plog_epochs **list);

/**
 * plog_epoch_prepare() - have a list on stable storage that is not yet published
 * @next: the list
 * @epoch: the leader epoch then
 *
 * From here to plog_epoch_settle() every save writes this one.  Under the append
 * mutex.  Return: 0, or an error of the files, after which nothing is pending and
 * @next is still the caller's.
 */
int plog_epoch_prepare(struct plog_partition *p, struct plog_epochs *next, s32 epoch);

/* Inside plog_publish_begin() and _end(): the list that readers see; the old one. */
struct plog_epochs *plog_epoch_install(struct plog_partition *p, struct plog_epochs *next,
				       s32 epoch);

/* What was prepared is published. Under the append mutex; waits for nobody. */
void plog_epoch_settle(struct plog_partition *p);

/* Is a change pending, and what is the state file to say then? Under state_lock. */
bool plog_epoch_pending(struct plog_partition *p, s32 *epoch, s64 *start);

/* A list was published that no save knows of. Under the append mutex; waits for nobody. */
void plog_epoch_noted(struct plog_partition *p);

/* Free a list that readers may still see. */
void plog_epoch_free(struct plog_epochs *list);

/*
 * Is the list to be written down?  Not what is found without a file as well: epoch 0
 * from offset 0 on, or none, of a log that ends at 0.  Under the state lock, or where
 * the partition is opened.
 */
bool plog_epochs_unsaved(struct plog_partition *p, s64 log_end);

/* The list, for who holds the append mutex. */
struct plog_epochs *plog_epoch_list(struct plog_partition *p);

#endif /* _PLOG_EPOCH_H */
