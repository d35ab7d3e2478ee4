// SPDX-License-Identifier: MIT
#include "topics.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/libplog/topicconfig.h"
#include "../log/compress.h"
#include "../log/log.h"
#include "../log/records.h"
#include "broker.h"

/*
 * Two sorted arrays: names and ids are chosen by strangers, and a search in a sorted array
 * costs the same whatever they choose. A change moves pointers, which for ten thousand topics
 * is nothing beside the directories that it makes.
 */
struct topics {
	pthread_rwlock_t lock;
	struct topic **by_name, **by_id;
	size_t count, room;
};

struct topics *topics_new(void)
{
	struct topics *t = calloc(1, sizeof(*t));

	if (t)
		pthread_rwlock_init(&t->lock, NULL);
	return t;
}

void topics_free(struct topics *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->count; i++)
		topic_put(t->by_name[i]);
	free(t->by_name);
	free(t->by_id);
	pthread_rwlock_destroy(&t->lock);
	free(t);
}

static int compare_name(const struct topic *topic, const char *p, size_t n)
{
	size_t len = topic->name.n;
	int d = n ? memcmp(topic->name.p, p, len < n ? len : n) : 0;

	return d ? d : len < n ? -1 : len > n;
}

/* Index of the first that is not below. */
static size_t search_name(const struct topics *t, const char *p, size_t n)
{
	size_t lo = 0, hi = t->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare_name(t->by_name[mid], p, n) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static size_t search_id(const struct topics *t, const struct kuuid *id)
{
	size_t lo = 0, hi = t->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (memcmp(t->by_id[mid]->id.b, id->b, sizeof(id->b)) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct topic *topics_find(struct topics *t, struct kstr name)
{
	struct topic *topic = NULL;
	size_t i;

	if (name.n < 0)
		return NULL;
	pthread_rwlock_rdlock(&t->lock);
	i = search_name(t, name.p, name.n);
	if (i < t->count && !compare_name(t->by_name[i], name.p, name.n)) {
		topic = t->by_name[i];
		topic_get(topic);
	}
	pthread_rwlock_unlock(&t->lock);
	return topic;
}

struct topic *topics_find_id(struct topics *t, const struct kuuid *id)
{
	struct topic *topic = NULL;
	size_t i;

	if (kuuid_is_zero(id))
		return NULL;
	pthread_rwlock_rdlock(&t->lock);
	i = search_id(t, id);
	if (i < t->count && kuuid_eq(&t->by_id[i]->id, id)) {
		topic = t->by_id[i];
		topic_get(topic);
	}
	pthread_rwlock_unlock(&t->lock);
	return topic;
}

struct topic **topics_all(struct topics *t, size_t *count)
{
	struct topic **all;

	pthread_rwlock_rdlock(&t->lock);
	*count = t->count;
	all = malloc((t->count + 1) * sizeof(*all));
	for (size_t i = 0; all && i < t->count; i++) {
		all[i] = t->by_name[i];
		topic_get(all[i]);
	}
	pthread_rwlock_unlock(&t->lock);
	return all;
}

void topics_all_free(struct topic **all, size_t count)
{
	for (size_t i = 0; all && i < count; i++)
		topic_put(all[i]);
	free(all);
}

size_t topics_count(struct topics *t)
{
	size_t count;

	pthread_rwlock_rdlock(&t->lock);
	count = t->count;
	pthread_rwlock_unlock(&t->lock);
	return count;
}

/* ---- one topic ---- */

/* The codec that batches are stored in, where it is not the producer's choice. */
static void set_codec(struct topic *topic, const struct properties *defaults)
{
	const struct properties *config = &topic->conf.config;
	char level[40];

	topic->codec = RECORDS_CODEC_KEEP;
	if (topicconfig_has(config, defaults, "compression.type", "uncompressed"))
		topic->codec = COMPRESS_NONE;
	for (unsigned int i = COMPRESS_GZIP; i <= COMPRESS_ZSTD; i++)
		if (topicconfig_has(config, defaults, "compression.type", compress_name(i)))
			topic->codec = (int)i;
	if (topic->codec <= COMPRESS_NONE || topic->codec == COMPRESS_SNAPPY)
		return;
	snprintf(level, sizeof(level), "compression.%s.level", compress_name(topic->codec));
	topic->codec_level = (int)topicconfig_number(config, defaults, level);
}

struct topic *topic_new(struct broker *b, struct datadir_topic *conf, struct log **logs)
{
	const struct properties *defaults = &broker_config(b)->topic_defaults;
	struct topic *topic = calloc(1, sizeof(*topic));

	if (!topic)
		return NULL;
	atomic_init(&topic->refs, 1);
	topic->conf = *conf;
	memset(conf, 0, sizeof(*conf));
	conf = &topic->conf;
	memcpy(topic->id.b, conf->id, sizeof(topic->id.b));
	topic->name = kstr_of(conf->name);
	topic->internal = topicconfig_topic_internal(conf->name);
	topic->partitions = conf->partitions;
	topic->logs = logs;
	topic->max_message_bytes = topicconfig_number(&conf->config, defaults,
						      "max.message.bytes");
	topic->log_append_time = topicconfig_has(&conf->config, defaults,
						 "message.timestamp.type", "LogAppendTime");
	topic->compact = topicconfig_has(&conf->config, defaults, "cleanup.policy", "compact");
	topic->delete = topicconfig_has(&conf->config, defaults, "cleanup.policy", "delete");
	set_codec(topic, defaults);
	topic->before_max_ms = topicconfig_number(&conf->config, defaults,
						  "message.timestamp.before.max.ms");
	topic->after_max_ms = topicconfig_number(&conf->config, defaults,
						 "message.timestamp.after.max.ms");
	topic->min_insync = topicconfig_number(&conf->config, defaults, "min.insync.replicas");
	return topic;
}

void topic_get(struct topic *topic)
{
	atomic_fetch_add(&topic->refs, 1);
}

void topic_put(struct topic *topic)
{
	if (!topic || atomic_fetch_sub(&topic->refs, 1) != 1)
		return;
	for (uint32_t i = 0; i < topic->partitions; i++)
		log_put(topic->logs[i]);
	free(topic->logs);
	datadir_topic_clear(&topic->conf);
	free(topic);
}

void topic_log_config(struct broker *b, const struct datadir_topic *conf, uint32_t partition,
		      struct log_config *out)
{
	struct datadir_owner owner = datadir_topic_owner(conf, partition);
	struct topicconfig_module m;

	topicconfig_module(conf->name, &conf->config, &broker_config(b)->topic_defaults, &m);
	*out = (struct log_config){
		.flags = m.flags,
		.max_message_bytes = m.max_message_bytes,
		.segment_bytes = m.segment_bytes,
		.segment_ms = m.segment_ms,
		.index_interval_bytes = m.index_interval_bytes,
		.index_bytes = m.index_bytes,
		.retention_ms = m.retention_ms,
		.retention_bytes = m.retention_bytes,
		.file_delete_delay_ms = m.file_delete_delay_ms,
		.segment_jitter_ms = m.segment_jitter_ms,
		.flush_messages = m.flush_messages,
		.flush_ms = m.flush_ms,
		.preallocate = m.preallocate,
		.uid = owner.uid,
		.gid = owner.gid,
		.mode = owner.mode,
		.node = conf->node,
	};
	memcpy(out->topic_id, conf->id, sizeof(out->topic_id));
}

/* ---- changes ---- */

static int make_room(struct topics *t)
{
	size_t room = t->room ? t->room * 2 : 64;
	struct topic **p;

	if (t->count < t->room)
		return 0;
	p = realloc(t->by_name, room * sizeof(*p));
	if (!p)
		return -ENOMEM;
	t->by_name = p;
	p = realloc(t->by_id, room * sizeof(*p));
	if (!p)
		return -ENOMEM;
	t->by_id = p;
	t->room = room;
	return 0;
}

static void insert(struct topic **array, size_t count, size_t at, struct topic *topic)
{
	memmove(array + at + 1, array + at, (count - at) * sizeof(*array));
	array[at] = topic;
}

static void delete(struct topic **array, size_t count, size_t at)
{
	memmove(array + at, array + at + 1, (count - at - 1) * sizeof(*array));
}

/* Ids of adopted topics may be zero, and then not unique: look for the struct itself. */
static size_t find_in_ids(const struct topics *t, const struct topic *topic)
{
	size_t i = search_id(t, &topic->id);

	while (t->by_id[i] != topic)
		i++;
	return i;
}

static struct topic *take(struct topics *t, const char *name, size_t n)
{
	size_t i = search_name(t, name, n);
	struct topic *topic;

	if (i == t->count || compare_name(t->by_name[i], name, n))
		return NULL;
	topic = t->by_name[i];
	delete(t->by_id, t->count, find_in_ids(t, topic));
	delete(t->by_name, t->count, i);
	t->count--;
	return topic;
}

int topics_put(struct topics *t, struct topic *topic)
{
	struct topic *old;
	int ret;

	pthread_rwlock_wrlock(&t->lock);
	ret = make_room(t);
	if (ret) {
		pthread_rwlock_unlock(&t->lock);
		return ret;
	}
	old = take(t, topic->name.p, topic->name.n);
	insert(t->by_name, t->count, search_name(t, topic->name.p, topic->name.n), topic);
	insert(t->by_id, t->count, search_id(t, &topic->id), topic);
	t->count++;
	pthread_rwlock_unlock(&t->lock);
	topic_put(old);
	return 0;
}

struct topic *topics_take(struct topics *t, const char *name)
{
	struct topic *topic;

	pthread_rwlock_wrlock(&t->lock);
	topic = take(t, name, strlen(name));
	pthread_rwlock_unlock(&t->lock);
	return topic;
}
