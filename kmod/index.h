/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The two sparse indexes of a segment, in Kafka's format, big endian:
 *
 *  .index      u32 offset - base, u32 position: the last offset of a batch and
 *              where that batch begins
 *  .timeindex  s64 timestamp, u32 offset - base: the largest timestamp up to
 *              here and the last offset of the first batch that has it
 *
 * Both only ever help: what a look-up finds is checked against the log, and a
 * look-up that finds nothing starts at the segment's first byte.
 */
#ifndef _PLOG_INDEX_H
#define _PLOG_INDEX_H

#include <linux/types.h>

struct plog_file;

#define PLOG_INDEX_ENTRY	8
#define PLOG_TIMEINDEX_ENTRY	12

/* Entries that wait in memory until so many can be written at once, and the room for them. */
#define PLOG_INDEX_BURST	32
#define PLOG_INDEX_RING		(2 * PLOG_INDEX_BURST)

/**
 * struct plog_entries - the entries of either index
 * @file: NULL where there is none
 * @count: valid ones; written by whoever appends, read by anyone
 * @written: those of them that are in the file
 * @ring: the others, entry n at n modulo PLOG_INDEX_RING, as words: of the
 *	  offset index one, offset and position; of the time index two, time and
 *	  offset.  NULL: entries are written at once
 *
 * A write to the file costs more than all else in an append of some KiB. What
 * is lost with the machine is built anew by the scan that follows.
 */
struct plog_entries {
	struct plog_file *file;
	u32 count;
	u32 written;
	u64 *ring;
};

/*
 * @last_offset, @last_pos: of the last entry, the offset relative; -1 and 0 without
 *			    one.  The writer's; a search takes them for a hint
 */
struct plog_index {
	struct plog_entries e;
	s32 last_offset;
	u32 last_pos;
};

/* @last_timestamp, @last_offset: of the last entry, likewise; -1 and 0 without one */
struct plog_timeindex {
	struct plog_entries e;
	s64 last_timestamp;
	s32 last_offset;
};

/**
 * plog_index_buffer() - let entries wait in memory from now on
 *
 * No memory is no error.  Freed by plog_index_close(), with the file.
 */
void plog_index_buffer(struct plog_index *idx);
void plog_timeindex_buffer(struct plog_timeindex *idx);

/* Nobody reads any more. What waits in memory is gone: plog_index_flush() first. */
void plog_index_close(struct plog_index *idx);
void plog_timeindex_close(struct plog_timeindex *idx);

/* Write what waits; entries that cannot be written are dropped. */
void plog_index_flush(struct plog_index *idx);
void plog_timeindex_flush(struct plog_timeindex *idx);

/**
 * plog_index_load() - take over the entries of the open file
 * @log_end: size of the log: no entry may point behind it
 *
 * Looks at the size and the last entry alone.
 * Return: 0; -EBADMSG if it is damaged (no entries are taken); an error of the file.
 */
int plog_index_load(struct plog_index *idx, u64 log_end);
int plog_timeindex_load(struct plog_timeindex *idx);

/* Has the file lost entries while it was not open? Nobody appends meanwhile. */
bool plog_timeindex_is_short(struct plog_timeindex *idx);

/**
 * plog_index_append() - add an entry
 * @offset: relative to the base offset
 *
 * Return: 0; -EINVAL unless @offset is above that of the last entry (and, for
 * the time index, @timestamp above the last); an error of the file: the entry is not there.
 */
int plog_index_append(struct plog_index *idx, s32 offset, u32 pos);
int plog_timeindex_append(struct plog_timeindex *idx, s64 timestamp, s32 offset);

/**
 * plog_index_lookup() - the last entry with an offset not above @offset
 *
 * Return: 1 and the entry, 0 if there is none, or an error of the file.
 */
int plog_index_lookup(struct plog_index *idx, s64 offset, s32 *found, u32 *pos);

/* The last entry with a position not above @pos. */
int plog_index_lookup_pos(struct plog_index *idx, u64 pos, s32 *found, u32 *found_pos);

/**
 * plog_timeindex_lookup() - the last entry with a timestamp not above @timestamp
 * @first: about the time of the first entry; makes it fast, and not right
 *
 * Return: as plog_index_lookup().
 */
int plog_timeindex_lookup(struct plog_timeindex *idx, s64 first, s64 timestamp, s64 *found,
			  s32 *offset);

/**
 * plog_index_cut() - drop the entries of batches at or behind @pos
 * plog_timeindex_cut() - drop those with an offset of @offset or more
 *
 * The file is cut too; an error of that is no harm and is not told.
 */
void plog_index_cut(struct plog_index *idx, u64 pos);
void plog_timeindex_cut(struct plog_timeindex *idx, s64 offset);

/* Drop everything. Return: 0 or an error of the file. */
int plog_index_reset(struct plog_index *idx);
int plog_timeindex_reset(struct plog_timeindex *idx);

/* Write what waits, and make the file as long as its entries. */
void plog_index_trim(struct plog_index *idx);
void plog_timeindex_trim(struct plog_timeindex *idx);

#endif /* _PLOG_INDEX_H */
