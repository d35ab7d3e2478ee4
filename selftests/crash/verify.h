/* SPDX-License-Identifier: MIT */
/*
 * Is what was found after a crash what was promised?
 */
#ifndef PLOG_CRASH_VERIFY_H
#define PLOG_CRASH_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "promise.h"

/**
 * struct found - what was there, for the figures
 * @end: the log end
 * @batches: read and compared
 * @promised: those of them that had been acknowledged
 * @now: what was found, as the promise from here on
 */
struct found {
	int64_t start;
	int64_t end;
	uint64_t batches;
	uint64_t promised;
	uint64_t entries;	/* of both indexes */
	struct promise now;
};

/**
 * verify_log() - read an open partition through its device and compare
 * @fd: bound in batch mode
 * @part: as content_make() was told
 * @gaps: the log has those of content_gap()
 *
 * Everything acknowledged is there, as it was appended, the rest is whole
 * batches that were appended once, look-ups by offset and time find what the
 * batches say. Return: NULL, or what is wrong.
 */
const char *verify_log(int fd, uint32_t part, const struct promise *promise, bool gaps,
		       struct found *found);

/**
 * verify_files() - walk the closed partition's files
 * @dir: its directory
 * @interval: index.interval.bytes
 * @start: the log start
 *
 * Each segment is whole batches from its first byte to its last, they follow each
 * other, and every entry of the two indexes names a batch that is there. The
 * indexes of a segment below the log start nobody reads, nor has looked at.
 */
const char *verify_files(const char *dir, uint32_t interval, int64_t start, struct found *found);

#endif
