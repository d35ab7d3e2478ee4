// SPDX-License-Identifier: MIT
#include "fetch_session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "../siphash.h"
#include "error.h"

/* As Kafka: a session that was used so lately is not thrown out for another one. */
#define EVICT_MS 120000
/* Partitions of all sessions together: a hundred bytes and a name each. */
#define PARTS_MAX 1000000
#define BUCKETS 4096

struct fetch_session {
	int32_t id;
	int32_t epoch;			/* that the next request must bear */
	bool by_id;			/* topic ids, not names */
	bool held;
	bool removed;			/* free it when it is let go */
	uint64_t made, used;		/* ms */
	struct session_part *first, *last;
	struct session_part **buckets;
	uint32_t nbuckets, count;
	struct fetch_session *next;	/* of the bucket */
};

struct fetch_sessions {
	pthread_mutex_t lock;
	uint64_t key[2];
	struct fetch_session *buckets[BUCKETS];
	uint32_t count;
	uint64_t parts;
};

struct fetch_sessions *fetch_sessions_new(void)
{
	struct fetch_sessions *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	if (getrandom(s->key, sizeof(s->key), 0) != sizeof(s->key)) {
		free(s);
		return NULL;
	}
	return s;
}

static void free_session(struct fetch_sessions *s, struct fetch_session *session)
{
	struct session_part *part;

	s->parts -= session->count;
	while ((part = session->first)) {
		session->first = part->next;
		free(part);
	}
	free(session->buckets);
	free(session);
}

void fetch_sessions_free(struct fetch_sessions *s)
{
	if (!s)
		return;
	for (int i = 0; i < BUCKETS; i++)
		while (s->buckets[i]) {
			struct fetch_session *session = s->buckets[i];

			s->buckets[i] = session->next;
			free_session(s, session);
		}
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- partitions of one session ---- */

static uint32_t hash_part(const struct fetch_sessions *s, struct kstr name,
			  const struct kuuid *id, int32_t partition)
{
	struct siphash h;

	siphash_init(&h, s->key);
	siphash_add(&h, &partition, sizeof(partition));
	if (name.n >= 0)
		siphash_add(&h, name.p, name.n);
	else
		siphash_add(&h, id->b, sizeof(id->b));
	return siphash_end(&h);
}

static bool same_part(const struct session_part *part, struct kstr name, const struct kuuid *id,
		      int32_t partition)
{
	return part->partition == partition &&
	       (name.n >= 0 ? kstr_eq(part->name, name) : kuuid_eq(&part->id, id));
}

static struct session_part **find_part(const struct fetch_sessions *s,
				       const struct fetch_session *session, struct kstr name,
				       const struct kuuid *id, int32_t partition)
{
	struct session_part **at;

	at = &session->buckets[hash_part(s, name, id, partition) & (session->nbuckets - 1)];
	while (*at && !same_part(*at, name, id, partition))
		at = &(*at)->chain;
	return at;
}

static int grow(struct fetch_sessions *s, struct fetch_session *session)
{
	uint32_t n = session->nbuckets ? session->nbuckets * 2 : 16;
	struct session_part **buckets;

	if (session->nbuckets && session->count < session->nbuckets)
		return 0;
	buckets = calloc(n, sizeof(*buckets));
	if (!buckets)
		return -1;
	for (struct session_part *p = session->first; p; p = p->next) {
		uint32_t h = hash_part(s, p->name, &p->id, p->partition) & (n - 1);

		p->chain = buckets[h];
		buckets[h] = p;
	}
	free(session->buckets);
	session->buckets = buckets;
	session->nbuckets = n;
	return 0;
}

static void unlink_part(struct fetch_session *session, struct session_part *part)
{
	*(part->prev ? &part->prev->next : &session->first) = part->next;
	*(part->next ? &part->next->prev : &session->last) = part->prev;
}

static void link_last(struct fetch_session *session, struct session_part *part)
{
	part->next = NULL;
	part->prev = session->last;
	*(session->last ? &session->last->next : &session->first) = part;
	session->last = part;
}

/* Add or update. -1: no memory, or too many partitions in all sessions. */
static int set_part(struct fetch_sessions *s, struct fetch_session *session, struct kstr name,
		    const struct kuuid *id, const struct fetch_request_partition *wanted)
{
	struct session_part **at, *part;
	int32_t len;

	if (session->by_id)
		name = KSTR_NULL;
	len = name.n < 0 ? 0 : name.n;
	if (grow(s, session))
		return -1;
	at = find_part(s, session, name, id, wanted->partition);
	if (*at) {
		(*at)->wanted = *wanted;
		return 0;
	}
	if (s->parts >= PARTS_MAX)
		return -1;
	part = calloc(1, sizeof(*part) + len);
	if (!part)
		return -1;
	part->name.n = name.n;
	if (name.n >= 0)
		part->name.p = memcpy(part + 1, name.p, len);
	part->id = *id;
	part->partition = wanted->partition;
	part->wanted = *wanted;
	part->high_watermark = -1;
	part->log_start = -1;
	*at = part;
	link_last(session, part);
	session->count++;
	s->parts++;
	return 0;
}

static void forget_part(struct fetch_sessions *s, struct fetch_session *session,
			struct kstr name, const struct kuuid *id, int32_t partition)
{
	struct session_part **at, *part;

	if (!session->nbuckets)
		return;
	at = find_part(s, session, session->by_id ? KSTR_NULL : name, id, partition);
	part = *at;
	if (!part)
		return;
	*at = part->chain;
	unlink_part(session, part);
	free(part);
	session->count--;
	s->parts--;
}

static int set_parts(struct fetch_sessions *s, struct fetch_session *session,
		     const struct fetch_request *req)
{
	for (int32_t t = 0; t < req->topics.n; t++) {
		const struct fetch_request_topic *topic = &req->topics.v[t];

		for (int32_t i = 0; i < topic->partitions.n; i++)
			if (set_part(s, session, topic->topic, &topic->topic_id,
				     &topic->partitions.v[i]))
				return -1;
	}
	return 0;
}

/* ---- sessions ---- */

static struct fetch_session **find(struct fetch_sessions *s, int32_t id)
{
	struct fetch_session **at = &s->buckets[(uint32_t)id % BUCKETS];

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

static void remove_at(struct fetch_sessions *s, struct fetch_session **at)
{
	struct fetch_session *session = *at;

	*at = session->next;
	s->count--;
	if (session->held)
		session->removed = true;
	else
		free_session(s, session);
}

/* Is there a slot for one more with @count partitions, perhaps in place of another? */
static bool make_room(struct fetch_sessions *s, uint32_t slots, uint32_t count, uint64_t now)
{
	struct fetch_session **oldest = NULL, **smallest = NULL;

	if (s->count < slots)
		return true;
	if (!slots)
		return false;
	for (int i = 0; i < BUCKETS; i++)
		for (struct fetch_session **at = &s->buckets[i]; *at; at = &(*at)->next) {
			if ((*at)->held)
				continue;
			if (!oldest || (*at)->used < (*oldest)->used)
				oldest = at;
			if (now - (*at)->made > EVICT_MS &&
			    (!smallest || (*at)->count < (*smallest)->count))
				smallest = at;
		}
	if (oldest && now - (*oldest)->used > EVICT_MS)
		remove_at(s, oldest);
	else if (smallest && (*smallest)->count < count)
		remove_at(s, smallest);
	return s->count < slots;
}

static struct fetch_session *make(struct fetch_sessions *s, const struct fetch_request *req,
				  bool by_id, uint32_t slots, uint64_t now)
{
	struct fetch_session *session;
	uint64_t count = 0;
	uint32_t id;

	for (int32_t t = 0; t < req->topics.n; t++)
		if (req->topics.v[t].partitions.n > 0)
			count += req->topics.v[t].partitions.n;
	if (!count || count > PARTS_MAX || !make_room(s, slots, count, now))
		return NULL;
	session = calloc(1, sizeof(*session));
	if (!session)
		return NULL;
	session->by_id = by_id;
	session->made = session->used = now;
	session->epoch = 1;
	session->held = true;
	if (set_parts(s, session, req)) {
		free_session(s, session);
		return NULL;
	}
	do {
		if (getrandom(&id, sizeof(id), 0) != sizeof(id)) {
			free_session(s, session);
			return NULL;
		}
		session->id = id & INT32_MAX;
	} while (!session->id || *find(s, session->id));
	session->next = s->buckets[session->id % BUCKETS];
	s->buckets[session->id % BUCKETS] = session;
	s->count++;
	return session;
}

static void resume(struct fetch_sessions *s, const struct fetch_request *req, bool by_id,
		   uint64_t now, struct fetch_context *out)
{
	struct fetch_session **at = find(s, req->session_id), *session = *at;

	if (!session) {
		out->error = KERR_FETCH_SESSION_ID_NOT_FOUND;
		return;
	}
	if (session->held || session->epoch != req->session_epoch) {
		out->error = KERR_INVALID_FETCH_SESSION_EPOCH;
		return;
	}
	if (session->by_id != by_id) {
		out->error = KERR_FETCH_SESSION_TOPIC_ID_ERROR;
		return;
	}
	session->epoch = session->epoch == INT32_MAX ? 1 : session->epoch + 1;
	session->used = now;
	if (set_parts(s, session, req)) {
		/* not even a part of what it wants can be kept: the client begins again */
		remove_at(s, at);
		out->error = KERR_FETCH_SESSION_ID_NOT_FOUND;
		return;
	}
	for (int32_t t = 0; t < req->forgotten_topics.n; t++) {
		const struct fetch_forgotten_topic *topic = &req->forgotten_topics.v[t];

		for (int32_t i = 0; i < topic->partitions.n; i++)
			forget_part(s, session, topic->topic, &topic->topic_id,
				    topic->partitions.v[i]);
	}
	if (!session->count) {
		/* nothing is left to remember */
		remove_at(s, at);
		return;
	}
	session->held = true;
	out->session = session;
	out->incremental = true;
}

void fetch_session_begin(struct fetch_sessions *s, const struct fetch_request *req,
			 int16_t version, uint32_t slots, uint64_t now,
			 struct fetch_context *out)
{
	bool by_id = version >= 13;

	*out = (struct fetch_context){ 0 };
	if (version < 7)
		return;
	pthread_mutex_lock(&s->lock);
	if (req->session_epoch > 0) {
		resume(s, req, by_id, now, out);
	} else {
		/* 0 begins a new one, -1 wants none; either ends the one that is named */
		struct fetch_session **at = find(s, req->session_id);

		if (req->session_id && *at)
			remove_at(s, at);
		if (!req->session_epoch)
			out->session = make(s, req, by_id, slots, now);
	}
	pthread_mutex_unlock(&s->lock);
}

int32_t fetch_session_id(const struct fetch_session *session)
{
	return session ? session->id : 0;
}

struct session_part *fetch_session_first(const struct fetch_session *session)
{
	return session->first;
}

uint32_t fetch_session_count(const struct fetch_session *session)
{
	return session->count;
}

void fetch_session_served(struct fetch_session *session, struct session_part *part)
{
	unlink_part(session, part);
	link_last(session, part);
}

void fetch_session_end(struct fetch_sessions *s, struct fetch_session *session)
{
	if (!session)
		return;
	pthread_mutex_lock(&s->lock);
	session->held = false;
	if (session->removed)
		free_session(s, session);
	pthread_mutex_unlock(&s->lock);
}

uint32_t fetch_sessions_count(struct fetch_sessions *s)
{
	uint32_t count;

	pthread_mutex_lock(&s->lock);
	count = s->count;
	pthread_mutex_unlock(&s->lock);
	return count;
}
