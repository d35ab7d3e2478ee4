// SPDX-License-Identifier: MIT
/*
 * Any bytes as what the module relays between plogctl and plogd. To the daemon: whatever comes,
 * one answer goes back, a JSON object that plogctl takes, and a change that is submitted is
 * one that the thread of the changes may be given. To plogctl: an answer is taken whole, or
 * refused with a reason. And as the netlink messages themselves, of any kind, to both.
 *
 * Input: which way, and 0x80 for messages, then the bytes; of answers as many as are divided
 * by byte 0xff.
 */
#include "fuzz_relay.h"

#include <json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../uapi/linux/plog_netlink.h"
#include "broker/admin.h"
#include "broker/broker.h"
#include "broker/change.h"
#include "broker/netlink.h"
#include "broker/topics.h"
#include "kafka/error.h"
#include "kafka/fetch_session.h"
#include "listener.h"
#include "log/log.h"
#include "say.h"
#include "topicconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#define PORT	4711
#define COOKIE	0x01020304
#define TOPICS	5

static struct config config = {
	.nlisteners = 1,
	.listeners = { { .name = "PLAINTEXT", .host = "127.0.0.1" } },
	.num_partitions = 3,
};
static const struct log_ops ops = { .name = "module" };
static struct log_engine engine = { .ops = &ops };
static struct listener listener = { .port = 9092 };
static struct broker broker = {
	.node_id = 1,
	.cluster_id = "AAAAAAAAAAAAAAAAAAAAAQ",
	.listeners = &listener,
	.nlisteners = 1,
	.engine = &engine,
};
static struct topic topics[TOPICS];
static int answers;
static bool submitted, messages;

void fuzz_must(int ok)
{
	if (!ok)
		abort();
}

/* ---- what admin.c asks of the rest of the broker ---- */

void say(enum say_level level, const char *part, const char *fmt, ...)
{
	(void)level;
	(void)part;
	(void)fmt;
}

const char *fuzz_datadir_path(const struct datadir *dir);

const char *fuzz_datadir_path(const struct datadir *dir)
{
	(void)dir;
	return "/var/lib/plog";
}

uint32_t fetch_sessions_count(struct fetch_sessions *s)
{
	(void)s;
	return 0;
}

struct topic *topics_find(struct topics *all, struct kstr name)
{
	(void)all;
	/* what a message says may be anything that fits in there */
	fuzz_must(messages ? name.n < 256 : name.n > 0 && name.n <= DATADIR_TOPIC_MAX);
	for (int i = 0; i < TOPICS; i++) {
		if (strlen(topics[i].conf.name) == (size_t)name.n &&
		    !memcmp(topics[i].conf.name, name.p, (size_t)name.n)) {
			topics[i].refs++;
			return &topics[i];
		}
	}
	return NULL;
}

struct topic **topics_all(struct topics *all, size_t *count)
{
	struct topic **list = calloc(TOPICS, sizeof(*list));

	(void)all;
	fuzz_must(list != NULL);
	for (int i = 0; i < TOPICS; i++)
		list[i] = &topics[i];
	*count = TOPICS;
	return list;
}

void topics_all_free(struct topic **all, size_t count)
{
	fuzz_must(count == TOPICS);
	free(all);
}

size_t topics_count(struct topics *all)
{
	(void)all;
	return TOPICS;
}

void topic_put(struct topic *topic)
{
	if (topic)
		fuzz_must(topic->refs-- > 0);
}

void change_init(struct change *c, enum change_kind kind, const char *name, size_t n)
{
	memset(c, 0, sizeof(*c));
	c->kind = kind;
	fuzz_must(n <= DATADIR_TOPIC_MAX);
	memcpy(c->name, name, n);
	properties_init(&c->set);
	c->partition = -1;
	c->owner.mode = 0600;
	c->node = true;
}

void change_clear(struct change *c)
{
	properties_clear(&c->set);
	if (c->topic)
		topic_put(c->topic);
	c->topic = NULL;
}

/* Is it one, with values that the thread may be given? Then it fails, or gives a topic. */
void changes_submit(struct changes *changes, struct change *c)
{
	struct plog_error err = { "" };

	(void)changes;
	submitted = true;
	fuzz_must(strlen(c->name) <= DATADIR_TOPIC_MAX && !(c->owner.mode & ~0777u));
	fuzz_must(c->partition >= -1 && c->partition <= INT32_MAX);
	fuzz_must(c->partitions >= INT32_MIN && c->partitions <= INT32_MAX);
	for (size_t i = 0; i < c->nunset; i++)
		fuzz_must(c->unset[i] != NULL && strlen(c->unset[i]) <= PLOG_RELAY_MAX);
	if (c->kind != CHANGE_DELETE && !topicconfig_check_all(&c->set, &err)) {
		c->topic = &topics[c->set.count % TOPICS];
		c->topic->refs++;
	} else if (c->kind != CHANGE_DELETE) {
		fuzz_must(err.text[0] != 0);
		c->error = KERR_INVALID_CONFIG;
		memcpy(c->text, err.text, sizeof(c->text));
	}
	c->done(c);
}

/* What plogctl makes of it; it must be able to. */
int netlink_relay_reply(struct netlink *nl, uint32_t port, uint32_t cookie, const char *json,
			size_t size)
{
	(void)nl;
	fuzz_must(messages || (port == PORT && cookie == COOKIE));
	fuzz_must(size <= PLOG_RELAY_MAX);
	answers++;
	fuzz_relay_answer(json, size);
	return 0;
}

/* ---- both ways ---- */

static void topic_set(struct topic *t, const char *name, uint32_t partitions, const char *conf)
{
	struct plog_error err = { "" };

	datadir_topic_init(&t->conf, name);
	fuzz_must(!properties_parse(&t->conf.config, conf, strlen(conf), "topic", &err));
	t->conf.id[15] = 1;
	t->conf.partitions = t->partitions = partitions;
}

static void once(void)
{
	static char longest[24000], too_long[40000];

	atomic_store(&broker.config, &config);
	memset(longest, 'x', sizeof(longest) - 1);
	memcpy(longest, "a=", 2);
	topic_set(&topics[0], "orders", 3, "retention.ms=1000\ncleanup.policy=compact\n");
	topic_set(&topics[1], "a", 1, "");
	/* so that the list has more than a page */
	topic_set(&topics[2], "long", 7, longest);
	topic_set(&topics[3], "long.2", 7, longest);
	/* and one that no answer can hold: somebody has written its file */
	memset(too_long, 'x', sizeof(too_long) - 1);
	memcpy(too_long, "a=", 2);
	topic_set(&topics[4], "longer", 7, too_long);
	for (uint32_t i = 0; i < 1000; i++) {
		struct datadir_owner owner = { .uid = i, .gid = UINT32_MAX - 1, .mode = 0600 };

		fuzz_must(!datadir_topic_set_owner(&topics[1].conf, i, &owner));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static bool ready;
	char *json;

	if (!ready)
		once();
	ready = true;
	if (!n)
		return -1;
	/* blocks of their own, so that the sanitizer sees one byte too many */
	json = malloc(n);
	fuzz_must(json != NULL);
	memcpy(json, p + 1, n - 1);
	messages = p[0] & 0x80;
	if (messages) {
		fuzz_relay_messages(&broker, p + 1, n - 1, p[0] & 1);
	} else if (p[0] & 1) {
		fuzz_relay_answers(json, n - 1, p[0] >> 1);
	} else {
		answers = 0;
		submitted = false;
		admin_request(&broker, PORT, COOKIE, json, n - 1);
		fuzz_must(answers == 1);
		for (int i = 0; i < TOPICS; i++)
			fuzz_must(topics[i].refs == 0);
	}
	free(json);
	return 0;
}
