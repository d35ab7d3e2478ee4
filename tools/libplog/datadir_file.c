// SPDX-License-Identifier: MIT
/* A topic as such: its name, its owner, its file. */
#include "datadir_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topicconfig.h"

/* ---- names ---- */

int datadir_topic_name_check(const char *name, struct plog_error *err)
{
	size_t length = strlen(name);

	if (!length)
		return plog_error_set(err, -EINVAL, "the topic name is empty");
	if (length > DATADIR_TOPIC_MAX)
		return plog_error_set(err, -EINVAL, "the topic name has %zu characters, at most "
				      "%d are allowed", length, DATADIR_TOPIC_MAX);
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return plog_error_set(err, -EINVAL, "the topic name cannot be \"%s\"", name);
	for (const char *at = name; *at; at++) {
		bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
			      (*at >= '0' && *at <= '9');

		if (!letter && *at != '.' && *at != '_' && *at != '-')
			return plog_error_set(err, -EINVAL, "topic name \"%s\": only letters, "
					      "digits, '.', '_' and '-' are allowed", name);
	}
	return 0;
}

bool datadir_topic_names_collide(const char *a, const char *b)
{
	if (!strcmp(a, b))
		return false;
	for (; *a && *b; a++, b++) {
		bool joker = (*a == '.' || *a == '_') && (*b == '.' || *b == '_');

		if (*a != *b && !joker)
			return false;
	}
	return !*a && !*b;
}

/* ---- struct datadir_topic ---- */

void datadir_topic_init(struct datadir_topic *topic, const char *name)
{
	memset(topic, 0, sizeof(*topic));
	snprintf(topic->name, sizeof(topic->name), "%s", name);
	topic->partitions = 1;
	topic->owner.mode = 0600;
	topic->node = true;
}

void datadir_topic_clear(struct datadir_topic *topic)
{
	free(topic->overrides);
	properties_clear(&topic->config);
	memset(topic, 0, sizeof(*topic));
}

static bool owner_equal(const struct datadir_owner *a, const struct datadir_owner *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->mode == b->mode;
}

struct datadir_owner datadir_topic_owner(const struct datadir_topic *topic, uint32_t partition)
{
	for (size_t i = 0; i < topic->override_count; i++)
		if (topic->overrides[i].partition == partition)
			return topic->overrides[i].owner;
	return topic->owner;
}

int datadir_topic_set_owner(struct datadir_topic *topic, uint32_t partition,
			    const struct datadir_owner *owner)
{
	struct datadir_override *larger, *at;
	size_t i = 0, count = topic->override_count;

	while (i < count && topic->overrides[i].partition < partition)
		i++;
	if (i < count && topic->overrides[i].partition == partition) {
		at = &topic->overrides[i];
		if (!owner_equal(owner, &topic->owner)) {
			at->owner = *owner;
			return 0;
		}
		memmove(at, at + 1, (count - i - 1) * sizeof(*at));
		topic->override_count--;
		return 0;
	}
	if (owner_equal(owner, &topic->owner))
		return 0;
	larger = reallocarray(topic->overrides, count + 1, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	topic->overrides = larger;
	at = larger + i;
	memmove(at + 1, at, (count - i) * sizeof(*at));
	*at = (struct datadir_override){ .partition = partition, .owner = *owner };
	topic->override_count++;
	return 0;
}

/* ---- a change ---- */

static int change_owner(struct datadir_topic *topic, const struct datadir_change *change,
			struct plog_error *err)
{
	bool all = change->partition < 0;
	struct datadir_owner owner;

	if (!all && change->partition >= topic->partitions)
		return plog_error_set(err, -ENOENT, "topic %s has no partition %" PRId64,
				      topic->name, change->partition);
	if (!change->uid_set && !change->gid_set && !change->mode_set)
		return 0;
	owner = all ? topic->owner : datadir_topic_owner(topic, change->partition);
	if (change->uid_set)
		owner.uid = change->owner.uid;
	if (change->gid_set)
		owner.gid = change->owner.gid;
	if (change->mode_set)
		owner.mode = change->owner.mode;
	if (all) {
		topic->owner = owner;
		topic->override_count = 0;
	} else if (datadir_topic_set_owner(topic, change->partition, &owner)) {
		return plog_error_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

int datadir_topic_change(struct datadir_topic *topic, const struct datadir_change *change,
			 struct plog_error *err)
{
	int ret;

	if (change->partitions && change->partitions <= topic->partitions)
		return plog_error_set(err, -EDOM, "topic %s has %" PRIu32 " partitions; their "
				      "number can only grow", topic->name, topic->partitions);
	if (change->partitions > DATADIR_PARTITIONS_MAX)
		return plog_error_set(err, -EDOM, "topic %s: at most %d partitions", topic->name,
				      DATADIR_PARTITIONS_MAX);
	if (change->partitions)
		topic->partitions = change->partitions;
	for (size_t i = 0; i < change->unset_count; i++)
		if (!properties_unset(&topic->config, change->unset[i]) &&
		    !topicconfig_find(change->unset[i]))
			return plog_error_set(err, -EINVAL, "topic %s has no configuration "
					      "\"%s\"", topic->name, change->unset[i]);
	if (change->set && properties_merge(&topic->config, change->set))
		return plog_error_set(err, -ENOMEM, "out of memory");
	ret = topicconfig_check_all(&topic->config, err);
	if (ret)
		return ret == -ENOENT ? -EINVAL : ret;
	return change_owner(topic, change, err);
}

/* ---- the topic's file ---- */

void datadir_file_name(const char *topic, char name[NAME_MAX + 1])
{
	snprintf(name, NAME_MAX + 1, "%.*s" DATADIR_TOPIC_SUFFIX, DATADIR_TOPIC_MAX, topic);
}

static int number_parse(const char *text, int base, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, base);
	/* strtoull() takes a sign and blanks; we do not. */
	if (errno || end == text || *end || *text < '0' || *text > '9' || *value > max)
		return -EINVAL;
	return 0;
}

/* "uid", "gid" or "mode" into @owner; -ENOENT if @key is none of them. */
static int owner_parse(const char *key, const char *value, struct datadir_owner *owner)
{
	uint64_t number;

	if (!strcmp(key, "uid")) {
		if (number_parse(value, 10, UINT32_MAX - 1, &number))
			return -EINVAL;
		owner->uid = number;
	} else if (!strcmp(key, "gid")) {
		if (number_parse(value, 10, UINT32_MAX - 1, &number))
			return -EINVAL;
		owner->gid = number;
	} else if (!strcmp(key, "mode")) {
		if (number_parse(value, 8, 0777, &number))
			return -EINVAL;
		owner->mode = number;
	} else {
		return -ENOENT;
	}
	return 0;
}

/* "partition.3.mode": -ENOENT if @key is of another form. */
static int override_parse(struct datadir_topic *topic, const char *key, const char *value)
{
	struct datadir_owner owner;
	unsigned long partition;
	char *end;
	int ret;

	if (strncmp(key, "partition.", 10) || key[10] < '0' || key[10] > '9')
		return -ENOENT;
	partition = strtoul(key + 10, &end, 10);
	if (*end != '.')
		return -ENOENT;
	if (partition >= DATADIR_PARTITIONS_MAX)
		return -EINVAL;
	owner = datadir_topic_owner(topic, partition);
	ret = owner_parse(end + 1, value, &owner);
	return ret ? ret : datadir_topic_set_owner(topic, partition, &owner);
}

/* One key of the file. */
static int key_parse(struct datadir_topic *topic, const char *key, const char *value,
		     bool *deleting)
{
	uint64_t number;
	int ret;

	if (!strcmp(key, "topic.id"))
		return datadir_id_parse(value, topic->id);
	if (!strcmp(key, "partitions")) {
		if (number_parse(value, 10, DATADIR_PARTITIONS_MAX, &number) || !number)
			return -EINVAL;
		topic->partitions = number;
		return 0;
	}
	if (!strcmp(key, "node") || !strcmp(key, "deleting")) {
		bool truth = !strcmp(value, "true");

		if (!truth && strcmp(value, "false"))
			return -EINVAL;
		if (*key == 'n')
			topic->node = truth;
		else
			*deleting = truth;
		return 0;
	}
	ret = owner_parse(key, value, &topic->owner);
	return ret == -ENOENT ? properties_set(&topic->config, key, value) : ret;
}

static int topic_from_properties(struct datadir_topic *topic, const struct properties *p,
				 bool *deleting, struct plog_error *err)
{
	const struct property *entry;
	int ret;

	*deleting = false;
	/* The topic's owner comes first: an override equal to it is none. */
	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < p->count; i++) {
			bool override = !strncmp(p->entries[i].key, "partition.", 10);

			entry = &p->entries[i];
			if (override != (pass == 1))
				continue;
			ret = -ENOENT;
			if (override)
				ret = override_parse(topic, entry->key, entry->value);
			if (ret == -ENOENT)
				ret = key_parse(topic, entry->key, entry->value, deleting);
			if (ret == -ENOMEM)
				return plog_error_set(err, ret, "out of memory");
			if (ret)
				return plog_error_set(err, ret, "%s" DATADIR_TOPIC_SUFFIX ", line "
						      "%u: %s=%s cannot be used", topic->name,
						      entry->line, entry->key, entry->value);
		}
	}
	return 0;
}

int datadir_file_read(struct datadir *dir, const char *name, struct datadir_topic *topic,
			   bool *deleting, struct plog_error *err)
{
	char file[NAME_MAX + 1];
	struct properties p;
	int ret;

	datadir_topic_init(topic, name);
	datadir_file_name(name, file);
	properties_init(&p);
	ret = properties_read(&p, dir->fd, file, err);
	if (!ret)
		ret = topic_from_properties(topic, &p, deleting, err);
	properties_clear(&p);
	if (ret)
		datadir_topic_clear(topic);
	return ret;
}

static int set_owner(struct properties *p, const char *prefix, const struct datadir_owner *owner)
{
	char key[48], value[16];
	int ret;

	snprintf(key, sizeof(key), "%suid", prefix);
	snprintf(value, sizeof(value), "%u", owner->uid);
	ret = properties_set(p, key, value);
	snprintf(key, sizeof(key), "%sgid", prefix);
	snprintf(value, sizeof(value), "%u", owner->gid);
	if (!ret)
		ret = properties_set(p, key, value);
	snprintf(key, sizeof(key), "%smode", prefix);
	snprintf(value, sizeof(value), "%04o", owner->mode);
	return ret ? ret : properties_set(p, key, value);
}

int datadir_file_write(struct datadir *dir, const struct datadir_topic *topic, bool deleting,
			    struct plog_error *err)
{
	char text[48], file[NAME_MAX + 1];
	struct properties p;
	int ret;

	properties_init(&p);
	/* What is on its way out keeps none, so that no size keeps it from going. */
	ret = deleting ? 0 : properties_merge(&p, &topic->config);
	if (!ret && datadir_id_is_set(topic->id)) {
		datadir_id_text(topic->id, text);
		ret = properties_set(&p, "topic.id", text);
	}
	snprintf(text, sizeof(text), "%" PRIu32, topic->partitions);
	if (!ret)
		ret = properties_set(&p, "partitions", text);
	if (!ret)
		ret = properties_set(&p, "node", topic->node ? "true" : "false");
	if (!ret && deleting)
		ret = properties_set(&p, "deleting", "true");
	if (!ret)
		ret = set_owner(&p, "", &topic->owner);
	for (size_t i = 0; !ret && !deleting && i < topic->override_count; i++) {
		snprintf(text, sizeof(text), "partition.%" PRIu32 ".",
			 topic->overrides[i].partition);
		ret = set_owner(&p, text, &topic->overrides[i].owner);
	}
	datadir_file_name(topic->name, file);
	if (ret)
		plog_error_set(err, ret, "out of memory");
	else
		ret = properties_write(&p, dir->fd, file, "A topic of plog; change it with "
				       "\"plogctl topic alter\"", 0640, err);
	properties_clear(&p);
	return ret;
}

