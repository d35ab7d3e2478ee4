// SPDX-License-Identifier: MIT
/* Parts of the daemon that are pure memory: the budget, the peers, fetch sessions. */
#include "cm.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "kafka/arena.h"
#include "kafka/error.h"
#include "kafka/fetch_session.h"
#include "peers.h"
#include "siphash.h"

/* ---- budget ---- */

static unsigned int retried[4];
static struct budget_waiter waiters[4];

static void retry(struct budget_waiter *w)
{
	retried[w - waiters]++;
}

static void budget(void **state)
{
	struct budget b;
	int a = 0, c = 0, d = 0;

	(void)state;
	memset(retried, 0, sizeof(retried));
	for (int i = 0; i < 4; i++)
		waiters[i] = (struct budget_waiter){ .retry = retry };
	budget_init(&b, 100);
	assert_true(budget_take(&b, &a, 60, &waiters[0]));
	/* the first who does not fit may go beyond, the next wait in line */
	assert_true(budget_take(&b, &c, 60, &waiters[1]));
	assert_true(budget_take(&b, &c, 60, &waiters[1]));
	assert_false(budget_take(&b, &d, 1, &waiters[2]));
	assert_false(budget_take(&b, &a, 1, &waiters[0]));
	assert_int_equal(b.used, 180);
	budget_give(&b, 60);
	assert_int_equal(retried[2] + retried[0], 0);
	/* c's request is done: its memory comes back, and another may pass the limit */
	budget_give(&b, 120);
	budget_complete(&b, &c);
	assert_true(retried[2] && retried[0]);
	assert_true(budget_take(&b, &d, 1, &waiters[2]));
	/* one who leaves gives up its place, and its right */
	assert_true(budget_take(&b, &a, 200, &waiters[0]));
	assert_false(budget_take(&b, &d, 1, &waiters[2]));
	assert_true(budget_leave(&b, &d, &waiters[2]));
	assert_false(budget_leave(&b, &d, &waiters[2]));
	assert_false(budget_take(&b, &c, 1, &waiters[1]));
	retried[1] = 0;
	assert_false(budget_leave(&b, &a, &waiters[0]));
	assert_int_equal(retried[1], 1);
	assert_true(budget_take(&b, &c, 1, &waiters[1]));
	assert_true(b.most >= b.used);
	/* more is allowed: those in line are told */
	assert_false(budget_take(&b, &d, 1, &waiters[2]));
	retried[2] = 0;
	budget_set_limit(&b, 1000);
	assert_int_equal(retried[2], 1);
}

/* What is there already counts, room or not. */
static void budget_charged(void **state)
{
	struct budget b;
	int a = 0, c = 0, d = 0;

	(void)state;
	memset(retried, 0, sizeof(retried));
	for (int i = 0; i < 4; i++)
		waiters[i] = (struct budget_waiter){ .retry = retry };
	budget_init(&b, 100);
	assert_true(budget_take(&b, &a, 10, &waiters[0]));
	budget_charge(&b, 200);
	assert_int_equal(b.used, 210);
	assert_true(budget_take(&b, &c, 10, &waiters[1]));	/* beyond the limit */
	assert_false(budget_take(&b, &d, 10, &waiters[2]));
	budget_give(&b, 210);
	assert_int_equal(retried[2], 1);
	assert_true(budget_take(&b, &d, 10, &waiters[2]));
}

static size_t grown;

static void on_grown(void *arg, size_t bytes)
{
	assert_ptr_equal(arg, &grown);
	grown += bytes;
}

/* What an arena holds beyond a chunk of ordinary size. */
static void arena_extra(void **state)
{
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	assert_non_null(arena_alloc(&a, 1000));
	assert_non_null(arena_alloc(&a, ARENA_ORDINARY - 1008));
	assert_int_equal(a.extra, 0);
	assert_non_null(arena_alloc(&a, 1000));
	assert_int_equal(a.extra, ARENA_ORDINARY);
	a.grown = on_grown;
	a.grown_arg = &grown;
	assert_non_null(arena_alloc(&a, 1000));
	assert_int_equal(grown, 0);
	assert_non_null(arena_alloc(&a, 100000));
	assert_int_equal(grown, 100000);
	assert_int_equal(a.extra, ARENA_ORDINARY + 100000);
	arena_free(&a);
	assert_int_equal(a.extra, 0);
	/* a first one that is large */
	assert_non_null(arena_alloc(&a, 100000));
	assert_int_equal(a.extra, 100000 - ARENA_ORDINARY);
	assert_int_equal(grown, 100000);
	arena_free(&a);
}

/* Without an owner: never beyond the limit, and not in the way of those who may. */
static void budget_without_right(void **state)
{
	struct budget b;
	int a = 0, c = 0, d = 0;

	(void)state;
	memset(retried, 0, sizeof(retried));
	for (int i = 0; i < 4; i++)
		waiters[i] = (struct budget_waiter){ .retry = retry };
	budget_init(&b, 10);
	assert_true(budget_take(&b, &a, 10, &waiters[0]));
	assert_false(budget_take(&b, NULL, 1, &waiters[1]));
	assert_false(budget_passes(&b, &c));
	assert_true(budget_take(&b, &c, 5, &waiters[2]));
	assert_true(budget_passes(&b, &c));
	assert_false(budget_take(&b, &d, 1, &waiters[3]));
	budget_complete(&b, &c);
	assert_int_equal(retried[1], 0);
	assert_int_equal(retried[3], 1);
	/* there is room again: it is called, as anybody */
	budget_give(&b, 15);
	assert_int_equal(retried[1], 1);
	assert_true(budget_take(&b, NULL, 1, &waiters[1]));
}

/* ---- peers ---- */

static struct sockaddr_storage address(uint32_t n)
{
	struct sockaddr_storage s = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&s;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(n);
	return s;
}

static void peers_count(void **state)
{
	struct peers *p = peers_new();
	struct sockaddr_storage a;

	(void)state;
	for (uint32_t i = 0; i < 2000; i++) {
		a = address(i * 2654435761u);
		assert_int_equal(peers_add(p, &a, 2), 0);
		assert_int_equal(peers_add(p, &a, 2), 0);
		assert_int_equal(peers_add(p, &a, 2), -1);
	}
	for (uint32_t i = 0; i < 2000; i++) {
		a = address(i * 2654435761u);
		peers_remove(p, &a);
		assert_int_equal(peers_add(p, &a, 2), 0);
		peers_remove(p, &a);
		peers_remove(p, &a);
		/* one who was never counted takes nothing from others */
		peers_remove(p, &a);
	}
	a = address(1);
	assert_int_equal(peers_add(p, &a, 0), -1);
	assert_int_equal(peers_add(p, &a, 1), 0);
	peers_free(p);
}

/* ---- siphash: the vector of its paper ---- */

static void siphash(void **state)
{
	uint64_t key[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
	uint8_t in[15];
	struct siphash h;

	(void)state;
	for (int i = 0; i < 15; i++)
		in[i] = i;
	siphash_init(&h, key);
	siphash_add(&h, in, 7);
	siphash_add(&h, in + 7, 8);
	assert_true(siphash_end(&h) == 0xa129ca6149be45e5);
}

/* ---- fetch sessions ---- */

#define NPARTS 3000

static struct fetch_request_partition parts[NPARTS];
static struct fetch_request_topic one_topic;
static struct fetch_request req;

/* A request for the partitions @from to @to - 1 of one topic. */
static const struct fetch_request *ask(int32_t id, int32_t epoch, int32_t from, int32_t to)
{
	for (int32_t i = from; i < to; i++) {
		parts[i - from] = (struct fetch_request_partition){ 0 };
		parts[i - from].partition = i;
		parts[i - from].fetch_offset = 100 + i;
	}
	memset(&one_topic, 0, sizeof(one_topic));
	one_topic.topic = KSTR_LIT("topic");
	one_topic.partitions.v = parts;
	one_topic.partitions.n = to - from;
	memset(&req, 0, sizeof(req));
	req.session_id = id;
	req.session_epoch = epoch;
	req.topics.v = &one_topic;
	req.topics.n = to > from;
	return &req;
}

static int32_t make(struct fetch_sessions *s, uint32_t slots, uint64_t now, int32_t count)
{
	struct fetch_context c;
	int32_t id;

	fetch_session_begin(s, ask(0, 0, 0, count), 11, slots, now, &c);
	assert_int_equal(c.error, 0);
	assert_false(c.incremental);
	if (!c.session)
		return 0;
	assert_int_equal(fetch_session_count(c.session), count);
	id = fetch_session_id(c.session);
	assert_true(id > 0);
	fetch_session_end(s, c.session);
	return id;
}

static void sessions(void **state)
{
	struct fetch_sessions *s = fetch_sessions_new();
	struct fetch_forgotten_topic forgotten = { .topic = KSTR_LIT("topic") };
	int32_t gone[] = { 0, 1 };
	struct fetch_context c, c2;
	struct session_part *first;
	int32_t id = make(s, 10, 0, NPARTS);

	(void)state;
	fetch_session_begin(s, ask(id, 1, 5, 7), 11, 10, 1, &c);
	assert_int_equal(c.error, 0);
	assert_true(c.incremental);
	assert_int_equal(fetch_session_count(c.session), NPARTS);
	/* while it is held nobody else may have it */
	fetch_session_begin(s, ask(id, 2, 0, 0), 11, 10, 1, &c2);
	assert_int_equal(c2.error, KERR_INVALID_FETCH_SESSION_EPOCH);
	/* who was served goes to the end */
	first = fetch_session_first(c.session);
	assert_int_equal(first->partition, 0);
	fetch_session_served(c.session, first);
	assert_int_equal(fetch_session_first(c.session)->partition, 1);
	fetch_session_end(s, c.session);

	forgotten.partitions.v = gone;
	forgotten.partitions.n = 2;
	ask(id, 2, 0, 0);
	req.forgotten_topics.v = &forgotten;
	req.forgotten_topics.n = 1;
	fetch_session_begin(s, &req, 11, 10, 1, &c);
	assert_int_equal(fetch_session_count(c.session), NPARTS - 2);
	assert_int_equal(fetch_session_first(c.session)->partition, 2);
	fetch_session_end(s, c.session);
	/* forgetting what is not there is nothing */
	ask(id, 3, 0, 0);
	req.forgotten_topics.v = &forgotten;
	req.forgotten_topics.n = 1;
	fetch_session_begin(s, &req, 11, 10, 1, &c);
	assert_int_equal(fetch_session_count(c.session), NPARTS - 2);
	fetch_session_end(s, c.session);

	fetch_session_begin(s, ask(id, 9, 0, 0), 11, 10, 1, &c);
	assert_int_equal(c.error, KERR_INVALID_FETCH_SESSION_EPOCH);
	fetch_session_begin(s, ask(id, 4, 0, 0), 13, 10, 1, &c);
	assert_int_equal(c.error, KERR_FETCH_SESSION_TOPIC_ID_ERROR);
	fetch_session_begin(s, ask(id, -1, 0, 1), 11, 10, 1, &c);
	assert_int_equal(c.error, 0);
	assert_null(c.session);
	assert_int_equal(fetch_sessions_count(s), 0);
	fetch_session_begin(s, ask(id, 4, 0, 0), 11, 10, 1, &c);
	assert_int_equal(c.error, KERR_FETCH_SESSION_ID_NOT_FOUND);
	/* before version 7 there is no such thing */
	fetch_session_begin(s, ask(5, 5, 0, 1), 6, 10, 1, &c);
	assert_int_equal(c.error, 0);
	assert_null(c.session);
	fetch_sessions_free(s);
}

static void eviction(void **state)
{
	struct fetch_sessions *s = fetch_sessions_new();
	struct fetch_context c;
	int32_t a, b;

	(void)state;
	assert_int_equal(make(s, 0, 0, 1), 0);
	a = make(s, 2, 0, 1);
	b = make(s, 2, 1000, 5);
	assert_true(a && b);
	/* both are young and in use */
	assert_int_equal(make(s, 2, 2000, 9), 0);
	fetch_session_begin(s, ask(a, 1, 0, 0), 11, 2, 130000, &c);
	assert_int_equal(c.error, 0);
	fetch_session_end(s, c.session);
	/* b was not used for two minutes */
	assert_true(make(s, 2, 130001, 1) != 0);
	fetch_session_begin(s, ask(b, 1, 0, 0), 11, 2, 130002, &c);
	assert_int_equal(c.error, KERR_FETCH_SESSION_ID_NOT_FOUND);
	/* a is in use, but old and smaller than the new one */
	assert_true(make(s, 2, 130003, 50) != 0);
	fetch_session_begin(s, ask(a, 2, 0, 0), 11, 2, 130004, &c);
	assert_int_equal(c.error, KERR_FETCH_SESSION_ID_NOT_FOUND);
	assert_int_equal(fetch_sessions_count(s), 2);
	fetch_sessions_free(s);
}

/* A session that is closed while a request holds it lives until it is let go. */
static void closed_while_held(void **state)
{
	struct fetch_sessions *s = fetch_sessions_new();
	int32_t id = make(s, 5, 0, 3);
	struct fetch_context held, c;

	(void)state;
	fetch_session_begin(s, ask(id, 1, 0, 0), 11, 5, 1, &held);
	fetch_session_begin(s, ask(id, -1, 0, 0), 11, 5, 1, &c);
	assert_int_equal(fetch_sessions_count(s), 0);
	assert_int_equal(fetch_session_count(held.session), 3);
	assert_int_equal(fetch_session_first(held.session)->wanted.fetch_offset, 100);
	fetch_session_end(s, held.session);
	fetch_sessions_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budget),
		cmocka_unit_test(budget_charged),
		cmocka_unit_test(arena_extra),
		cmocka_unit_test(budget_without_right),
		cmocka_unit_test(peers_count),
		cmocka_unit_test(siphash),
		cmocka_unit_test(sessions),
		cmocka_unit_test(eviction),
		cmocka_unit_test(closed_while_held),
	};

	return cmocka_run_group_tests_name("broker", tests, NULL, NULL);
}
