/* SPDX-License-Identifier: MIT */
#ifndef PLOG_FETCH_SESSION_H
#define PLOG_FETCH_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "codec.h"
#include "schema.h"

/*
 * Incremental fetch sessions (KIP-227): the broker remembers which partitions a consumer
 * fetches and what it was told last, so that a Fetch names only what changes. Shared by all
 * loops, under one mutex that is held for memory work only.
 *
 * A session belongs to the request that has begun it until the request ends it; another
 * request with the same id gets an error meanwhile, as its epoch cannot be the next one.
 */
struct fetch_sessions;
struct fetch_session;

/* One partition of a session. Of the request that holds the session. */
struct session_part {
	struct kstr name;		/* own copy; null where the session goes by ids */
	struct kuuid id;
	int32_t partition;
	struct fetch_request_partition wanted;	/* offset, limits, epochs */
	int64_t high_watermark;		/* as told last; -1: tell it again */
	int64_t log_start;
	struct session_part *next, *prev;	/* in the order of service */
	struct session_part *chain;	/* of the hash bucket */
};

/* What a request is, as to sessions. */
struct fetch_context {
	int16_t error;			/* 70, 71, 106: the whole answer */
	bool incremental;		/* leave out what did not change */
	struct fetch_session *session;	/* NULL: none; go by the request's own list */
};

/* At most *@slots sessions; 0 switches them off. NULL: no memory. */
struct fetch_sessions *fetch_sessions_new(void);
void fetch_sessions_free(struct fetch_sessions *s);

/*
 * See what @req asks for and hold its session, made or found, with its changes applied.
 * @now: milliseconds, monotonic. Any thread.
 */
void fetch_session_begin(struct fetch_sessions *s, const struct fetch_request *req,
			 int16_t version, uint32_t slots, uint64_t now,
			 struct fetch_context *out);

/* The number that the answer bears; 0 without a session. */
int32_t fetch_session_id(const struct fetch_session *session);

/* The partitions of a held session. */
struct session_part *fetch_session_first(const struct fetch_session *session);
uint32_t fetch_session_count(const struct fetch_session *session);

/* It was given records: let the others go first the next time. On a held session. */
void fetch_session_served(struct fetch_session *session, struct session_part *part);

/* Let go of it. NULL is fine. */
void fetch_session_end(struct fetch_sessions *s, struct fetch_session *session);

/* How many there are. */
uint32_t fetch_sessions_count(struct fetch_sessions *s);

#endif
