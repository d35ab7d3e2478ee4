/* SPDX-License-Identifier: MIT */
#ifndef FUZZ_WALK_H
#define FUZZ_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_FRAMES	64		/* batches of one input */
#define FUZZ_EXPANDED	(256 << 10)	/* what the records of one may come to */

/* the first byte of the input */
#define FUZZ_RIGHT	1	/* lengths, magic and CRCs are put right */
#define FUZZ_COMPRESS	2	/* ... records that lie there bare are compressed as the batch says */
#define FUZZ_ASCEND	4	/* ... and base offsets follow each other */
#define FUZZ_FILTER(flags)	((flags) >> 3 & 3)
#define FUZZ_CODEC(flags)	((int)((flags) >> 5) % 6 - 1)	/* of the topic */

enum {
	FILTER_NONE,
	FILTER_PLAIN,	/* answers are bytes of the input */
	FILTER_LOG,	/* the aborted transactions of a log that is one */
	FILTER_BYTES,	/* ... whose headers are bytes of the input */
};

void fuzz_must(int ok);

/* Bytes of the input that are used up one by one; 0 when there are no more. */
struct fuzz_bytes {
	const uint8_t *p;
	size_t n;
};

uint8_t fuzz_take(struct fuzz_bytes *b);

/* Let the @nth allocation of the library from now on fail, 0: none. Has one since? */
void fuzz_fail(unsigned int nth);
bool fuzz_failed(void);

/* ---- fuzz_walk_ref.c: what there is to be read ---- */

struct given {
	int64_t timestamp;
	uint64_t hash;		/* of key, value and headers */
	int32_t delta;
};

/* A batch by its length field, however damaged. */
struct frame {
	size_t pos, size;
	int64_t base, producer;
	int64_t next_offset;	/* -1: its fields make none */
	int32_t epoch;
	uint16_t attributes;
	bool opens;		/* header, CRC and the head of compressed bytes are right */
	bool control, transactional;
	int error;		/* behind its last record, of a reader that wants all */
	uint32_t first, count;	/* its records in frames.given[] */
};

struct frames {
	uint8_t *bytes;
	size_t length;
	struct frame frame[FUZZ_FRAMES];
	int count;
	bool broken;		/* behind the last one: a length that no batch has */
	struct given *given;
	uint32_t ngiven, room;
};

struct plog_record;

/* False if the input is not wanted: it has too many batches, or they expand too far. */
bool frames_make(struct frames *f, const uint8_t *p, size_t n, unsigned int flags);
void frames_free(struct frames *f);
uint64_t record_hash(const struct plog_record *r);

/* ---- fuzz_walk_log.c: aborted.c on headers that the input makes ---- */

/* @entries make the log, or nothing of it; @answers tell how each question is answered. */
void fuzz_log_begin(struct fuzz_bytes entries, struct fuzz_bytes *answers, bool honest);
void fuzz_log_end(void);
/* Ask, and check what comes. As aborted_check(). */
int fuzz_log_check(int64_t producer, int64_t offset);

#endif
