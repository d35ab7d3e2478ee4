// SPDX-License-Identifier: MIT
/* Topics with a daemon: one JSON object there and one back, through the module's relay. */
#include "plogctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RELAY_VERSION	1
#define TIMEOUT_S	60

static struct json_object *request_new(const char *command)
{
	struct json_object *o = json_new();

	json_number(o, "v", RELAY_VERSION);
	json_text(o, "command", command);
	return o;
}

static int ask(struct net *net, struct json_object *request, struct json_object **reply,
	       struct plog_error *err)
{
	int ret = net_relay(net, request, TIMEOUT_S, reply, err);

	json_object_put(request);
	return ret;
}

/* ---- a topic out of the daemon's answer ---- */

static bool get_number(struct json_object *o, const char *key, int64_t min, int64_t max,
		       int64_t *value)
{
	struct json_object *field;

	if (!json_object_object_get_ex(o, key, &field) ||
	    !json_object_is_type(field, json_type_int))
		return false;
	*value = json_object_get_int64(field);
	return *value >= min && *value <= max;
}

static const char *get_text(struct json_object *o, const char *key)
{
	struct json_object *field;

	if (!json_object_object_get_ex(o, key, &field) ||
	    !json_object_is_type(field, json_type_string))
		return NULL;
	return json_object_get_string(field);
}

static bool get_owner(struct json_object *o, struct datadir_owner *owner)
{
	const char *mode = get_text(o, "mode");
	int64_t number;

	if (!get_number(o, "uid", 0, UINT32_MAX - 1, &number))
		return false;
	owner->uid = number;
	if (!get_number(o, "gid", 0, UINT32_MAX - 1, &number))
		return false;
	owner->gid = number;
	return mode && !mode_parse(mode, &owner->mode, NULL);
}

static bool get_overrides(struct json_object *o, struct datadir_topic *topic)
{
	struct json_object *list;

	if (!json_object_object_get_ex(o, "overrides", &list))
		return true;
	if (!json_object_is_type(list, json_type_array))
		return false;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);
		struct datadir_owner owner;
		int64_t partition;

		if (!get_number(entry, "partition", 0, DATADIR_PARTITIONS_MAX - 1, &partition) ||
		    !get_owner(entry, &owner) ||
		    datadir_topic_set_owner(topic, partition, &owner))
			return false;
	}
	return true;
}

static int topic_parse(struct json_object *o, struct datadir_topic *topic,
		       struct plog_error *err)
{
	const char *name = get_text(o, "name"), *id = get_text(o, "id");
	struct json_object *config, *node, *cut;
	int64_t partitions;

	datadir_topic_init(topic, name ? name : "");
	if (!name || datadir_topic_name_check(name, NULL) ||
	    !get_number(o, "partitions", 1, INT32_MAX, &partitions) ||
	    !get_owner(o, &topic->owner) || (id && *id && datadir_id_parse(id, topic->id)) ||
	    !get_overrides(o, topic))
		goto bad;
	topic->partitions = partitions;
	if (json_object_object_get_ex(o, "node", &node))
		topic->node = json_object_get_boolean(node);
	if (json_object_object_get_ex(o, "config", &config)) {
		if (!json_object_is_type(config, json_type_object))
			goto bad;
		json_object_object_foreach(config, key, value) {
			const char *text = json_object_get_string(value);

			if (!text || properties_set(&topic->config, key, text))
				goto bad;
		}
	}
	if (json_object_object_get_ex(o, "cut", &cut) && json_object_get_boolean(cut))
		warn("topic %s has more configuration, or owners of single partitions, than the daemon "
		     "can tell: see its file", name);
	return 0;
bad:
	datadir_topic_clear(topic);
	return plog_error_set(err, -EPROTO, "the daemon's answer describes a topic in a way that "
			      "this plogctl does not understand; are both of the same version?");
}

/* The reply's "topic"; frees the reply. */
static int take_topic(struct json_object *reply, struct datadir_topic *topic,
		      struct plog_error *err)
{
	struct json_object *o;
	int ret;

	if (json_object_object_get_ex(reply, "topic", &o))
		ret = topic_parse(o, topic, err);
	else
		ret = plog_error_set(err, -EPROTO, "the daemon's answer has no topic in it");
	json_object_put(reply);
	return ret;
}

/* ---- requests ---- */

static void put_mode(struct json_object *o, mode_t mode)
{
	char text[8];

	snprintf(text, sizeof(text), "%04o", mode & 0777);
	json_text(o, "mode", text);
}

static struct json_object *properties_json(const struct properties *p)
{
	struct json_object *o = json_new();

	for (size_t i = 0; i < p->count; i++)
		json_text(o, p->entries[i].key, p->entries[i].value);
	return o;
}

int remote_topic_create(struct net *net, struct datadir_topic *topic, struct plog_error *err)
{
	struct json_object *request = request_new("topic-create"), *reply;
	struct datadir_topic made;
	int ret;

	json_text(request, "topic", topic->name);
	json_number(request, "partitions", topic->partitions);
	json_put(request, "config", properties_json(&topic->config));
	json_number(request, "uid", topic->owner.uid);
	json_number(request, "gid", topic->owner.gid);
	put_mode(request, topic->owner.mode);
	json_truth(request, "node", topic->node);
	ret = ask(net, request, &reply, err);
	if (!ret)
		ret = take_topic(reply, &made, err);
	if (ret)
		return ret;
	datadir_topic_clear(topic);
	*topic = made;
	return 0;
}

/* One page; *@more tells whether another follows. */
static int take_page(struct json_object *reply, struct datadir_topic **topics, size_t *count,
		     bool *more, struct plog_error *err)
{
	struct json_object *list, *flag;
	size_t length;
	void *larger;

	*more = json_object_object_get_ex(reply, "more", &flag) && json_object_get_boolean(flag);
	if (!json_object_object_get_ex(reply, "topics", &list) ||
	    !json_object_is_type(list, json_type_array))
		return plog_error_set(err, -EPROTO, "the daemon's answer has no topics in it");
	length = json_object_array_length(list);
	if (*more && !length)
		return plog_error_set(err, -EPROTO, "the daemon's answer is an empty page");
	if (!length)
		return 0;
	larger = reallocarray(*topics, *count + length, sizeof(**topics));
	if (!larger)
		return plog_error_set(err, -ENOMEM, "out of memory");
	*topics = larger;
	for (size_t i = 0; i < length; i++) {
		int ret = topic_parse(json_object_array_get_idx(list, i), *topics + *count, err);

		if (ret)
			return ret;
		(*count)++;
	}
	return 0;
}

int remote_topic_list(struct net *net, struct datadir_topic **topics, size_t *count,
		      struct plog_error *err)
{
	bool more = true;
	int ret = 0;

	*topics = NULL;
	*count = 0;
	while (!ret && more) {
		struct json_object *request = request_new("topic-list"), *reply;

		if (*count)
			json_text(request, "after", (*topics)[*count - 1].name);
		ret = ask(net, request, &reply, err);
		if (ret)
			break;
		ret = take_page(reply, topics, count, &more, err);
		json_object_put(reply);
	}
	if (ret) {
		datadir_topics_free(*topics, *count);
		*topics = NULL;
		*count = 0;
	}
	return ret;
}

int remote_topic_read(struct net *net, const char *name, struct datadir_topic *topic,
		      struct plog_error *err)
{
	struct json_object *request = request_new("topic-describe"), *reply;
	int ret;

	memset(topic, 0, sizeof(*topic));
	json_text(request, "topic", name);
	ret = ask(net, request, &reply, err);
	return ret ? ret : take_topic(reply, topic, err);
}

int remote_topic_delete(struct net *net, const char *name, struct plog_error *err)
{
	struct json_object *request = request_new("topic-delete"), *reply;
	int ret;

	json_text(request, "topic", name);
	ret = ask(net, request, &reply, err);
	json_object_put(reply);
	return ret;
}

int remote_topic_alter(struct net *net, const char *name, const struct datadir_change *change,
		       struct datadir_topic *topic, struct plog_error *err)
{
	struct json_object *request = request_new("topic-alter"), *reply;
	int ret;

	memset(topic, 0, sizeof(*topic));
	json_text(request, "topic", name);
	if (change->partitions)
		json_number(request, "partitions", change->partitions);
	if (change->set && change->set->count)
		json_put(request, "config", properties_json(change->set));
	if (change->unset_count) {
		struct json_object *list = json_list();

		for (size_t i = 0; i < change->unset_count; i++)
			json_append(list, json_object_new_string(change->unset[i]));
		json_put(request, "unset", list);
	}
	if (change->uid_set)
		json_number(request, "uid", change->owner.uid);
	if (change->gid_set)
		json_number(request, "gid", change->owner.gid);
	if (change->mode_set)
		put_mode(request, change->owner.mode);
	if (change->partition >= 0)
		json_number(request, "partition", change->partition);
	ret = ask(net, request, &reply, err);
	return ret ? ret : take_topic(reply, topic, err);
}
