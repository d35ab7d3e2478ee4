// SPDX-License-Identifier: MIT
#include "admin.h"

#include <inttypes.h>
#include <errno.h>
#include <json.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/libplog/topicconfig.h"
#include "../../uapi/linux/plog_netlink.h"
#include "../kafka/error.h"
#include "../kafka/fetch_session.h"
#include "../listener.h"
#include "../log/log.h"
#include "../say.h"
#include "broker.h"
#include "change.h"
#include "netlink.h"
#include "topics.h"

/* Room for {"ok":true,"more":true,...} around a page. */
#define PAGE_MAX (PLOG_RELAY_MAX - 256)
/* ... and of ,"cut":true in the last topic of one. */
#define TOPIC_MAX (PAGE_MAX - 16)

/* One request, until it is answered. */
struct ask {
	struct broker *b;
	uint32_t port, cookie;
	struct json_object *in;
	struct change change;		/* if it is one */
	char **unset;
};

static void end(struct ask *a)
{
	json_object_put(a->in);
	free(a->unset);
	free(a);
}

static void refuse(struct ask *a, int16_t code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As it is sent; the text is @out's. */
static const char *text_of_object(struct json_object *out, size_t *size)
{
	return json_object_to_json_string_length(out, JSON_C_TO_STRING_PLAIN |
						 JSON_C_TO_STRING_NOSLASHESCAPE, size);
}

static void send_object(struct ask *a, struct json_object *out)
{
	size_t size = 0;
	const char *text = text_of_object(out, &size);
	int ret;

	if (text && size > PLOG_RELAY_MAX) {
		json_object_put(out);
		refuse(a, KERR_UNKNOWN_SERVER_ERROR, "The answer has %zu bytes; the relay takes "
		       "%d.", size, PLOG_RELAY_MAX);
		return;
	}
	ret = text ? netlink_relay_reply(a->b->netlink, a->port, a->cookie, text, size) : -ENOMEM;
	if (ret)
		say(SAY_WARN, "admin", "an answer to plogctl could not be sent: %s",
		    strerror(-ret));
	json_object_put(out);
	end(a);
}

static void refuse(struct ask *a, int16_t code, const char *fmt, ...)
{
	struct json_object *out = json_object_new_object();
	char text[PLOG_ERROR_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_object_object_add(out, "ok", json_object_new_boolean(false));
	json_object_object_add(out, "code", json_object_new_int(code));
	json_object_object_add(out, "error", json_object_new_string(error_name(code)));
	json_object_object_add(out, "message", json_object_new_string(text));
	send_object(a, out);
}

static struct json_object *good(void)
{
	struct json_object *out = json_object_new_object();

	json_object_object_add(out, "ok", json_object_new_boolean(true));
	return out;
}

/* ---- a topic as JSON ---- */

static void add_owner(struct json_object *out, const struct datadir_owner *owner)
{
	char mode[8];

	snprintf(mode, sizeof(mode), "%04o", (unsigned int)owner->mode);
	json_object_object_add(out, "uid", json_object_new_int64(owner->uid));
	json_object_object_add(out, "gid", json_object_new_int64(owner->gid));
	json_object_object_add(out, "mode", json_object_new_string(mode));
}

/* Owners of single partitions, in @room bytes. False: not all of them. */
static bool add_overrides(struct json_object *out, const struct datadir_topic *conf, size_t room)
{
	struct json_object *list;
	size_t used = 20, size;

	if (!conf->override_count)
		return true;
	list = json_object_new_array();
	json_object_object_add(out, "overrides", list);
	for (size_t i = 0; i < conf->override_count; i++) {
		const struct datadir_override *o = &conf->overrides[i];
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "partition", json_object_new_int64(o->partition));
		add_owner(one, &o->owner);
		text_of_object(one, &size);
		used += size + 1;
		if (used > room) {
			json_object_put(one);
			return false;
		}
		json_object_array_add(list, one);
	}
	return true;
}

/*
 * At most TOPIC_MAX bytes as text. Ten thousands of partitions may have owners of their own,
 * and a file that somebody has written by hand any configuration: then these are left out,
 * and "cut" tells.
 */
static struct json_object *topic_json(const struct topic *topic)
{
	struct json_object *out = json_object_new_object(), *config = json_object_new_object();
	char id[DATADIR_ID_TEXT + 1];
	bool cut = false;
	size_t size = 0;

	datadir_id_text(topic->conf.id, id);
	json_object_object_add(out, "name", json_object_new_string(topic->conf.name));
	json_object_object_add(out, "id", json_object_new_string(id));
	json_object_object_add(out, "partitions", json_object_new_int64(topic->partitions));
	for (size_t i = 0; i < topic->conf.config.count; i++)
		json_object_object_add(config, topic->conf.config.entries[i].key,
				       json_object_new_string(topic->conf.config.entries[i].value));
	json_object_object_add(out, "config", config);
	add_owner(out, &topic->conf.owner);
	json_object_object_add(out, "node", json_object_new_boolean(topic->conf.node));
	text_of_object(out, &size);
	if (size > TOPIC_MAX) {
		json_object_object_add(out, "config", json_object_new_object());
		text_of_object(out, &size);
		cut = true;
	}
	cut |= !add_overrides(out, &topic->conf, TOPIC_MAX - size);
	if (cut)
		json_object_object_add(out, "cut", json_object_new_boolean(true));
	return out;
}

static void send_topic(struct ask *a, const struct topic *topic)
{
	struct json_object *out = good();

	json_object_object_add(out, "topic", topic_json(topic));
	send_object(a, out);
}

/* ---- what is asked ---- */

/* A string, in which no NUL hides what follows it; else NULL. */
static const char *whole_text(struct json_object *v)
{
	if (!json_object_is_type(v, json_type_string) ||
	    strlen(json_object_get_string(v)) != (size_t)json_object_get_string_len(v))
		return NULL;
	return json_object_get_string(v);
}

static const char *text_of(struct ask *a, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(a->in, key, &v) ? whole_text(v) : NULL;
}

/* 1: *@out is set; 0: the key is not there; -1: it is no number in the range. */
static int number_of(struct ask *a, const char *key, int64_t min, int64_t max, int64_t *out)
{
	struct json_object *v;

	if (!json_object_object_get_ex(a->in, key, &v))
		return 0;
	if (!json_object_is_type(v, json_type_int))
		return -1;
	*out = json_object_get_int64(v);
	return *out < min || *out > max ? -1 : 1;
}

/* "mode" is text in octal. As number_of(). */
static int mode_of(struct ask *a, mode_t *out)
{
	struct json_object *v;
	const char *text;
	char *rest;
	long mode;

	if (!json_object_object_get_ex(a->in, "mode", &v))
		return 0;
	text = text_of(a, "mode");
	if (!text || !*text)
		return -1;
	mode = strtol(text, &rest, 8);
	if (*rest || mode < 0 || mode > 0777)
		return -1;
	*out = mode;
	return 1;
}

static int config_of(struct ask *a, struct properties *set)
{
	struct json_object *v;

	if (!json_object_object_get_ex(a->in, "config", &v))
		return 0;
	if (!json_object_is_type(v, json_type_object))
		return -1;
	json_object_object_foreach(v, key, value) {
		if (!whole_text(value) || topicconfig_set(set, key, whole_text(value)))
			return -1;
	}
	return 0;
}

static int unset_of(struct ask *a, struct change *change)
{
	struct json_object *v;
	size_t n;

	if (!json_object_object_get_ex(a->in, "unset", &v))
		return 0;
	if (!json_object_is_type(v, json_type_array))
		return -1;
	n = json_object_array_length(v);
	a->unset = calloc(n ? n : 1, sizeof(*a->unset));
	if (!a->unset)
		return -1;
	for (size_t i = 0; i < n; i++) {
		a->unset[i] = (char *)whole_text(json_object_array_get_idx(v, i));
		if (!a->unset[i])
			return -1;
	}
	change->unset = a->unset;
	change->nunset = n;
	return 0;
}

/* Owner and mode. -1: one of them is no value of its kind. */
static int owner_of(struct ask *a, struct change *change)
{
	int64_t n = 0;
	int uid, gid, mode;

	uid = number_of(a, "uid", 0, UINT32_MAX - 1, &n);
	if (uid > 0)
		change->owner.uid = n;
	gid = number_of(a, "gid", 0, UINT32_MAX - 1, &n);
	if (gid > 0)
		change->owner.gid = n;
	mode = mode_of(a, &change->owner.mode);
	change->set_uid = uid > 0;
	change->set_gid = gid > 0;
	change->set_mode = mode > 0;
	return uid < 0 || gid < 0 || mode < 0 ? -1 : 0;
}

/* ---- commands ---- */

static void changed(struct change *change)
{
	struct ask *a = change->arg;

	if (change->error)
		refuse(a, change->error, "%s", change->text);
	else if (change->topic)
		send_topic(a, change->topic);
	else
		send_object(a, good());
	/* @a is gone, but not what the change owned */
}

static void changed_and_clear(struct change *change)
{
	struct change copy = *change;

	changed(change);
	change_clear(&copy);
}

static void submit(struct ask *a)
{
	a->change.loop = &a->b->control;
	a->change.done = changed_and_clear;
	a->change.arg = a;
	changes_submit(a->b->changes, &a->change);
}

static void topic_create(struct ask *a, const char *topic)
{
	struct change *c = &a->change;
	struct json_object *node;

	change_init(c, CHANGE_CREATE, topic, strlen(topic));
	c->partitions = broker_config(a->b)->num_partitions;
	if (number_of(a, "partitions", INT32_MIN, INT32_MAX, &c->partitions) < 0 ||
	    config_of(a, &c->set) || owner_of(a, c)) {
		change_clear(c);
		refuse(a, KERR_INVALID_REQUEST, "topic-create: a field is of the wrong type or out "
		       "of range");
		return;
	}
	if (json_object_object_get_ex(a->in, "node", &node))
		c->node = json_object_get_boolean(node);
	submit(a);
}

static void topic_alter(struct ask *a, const char *topic)
{
	struct change *c = &a->change;

	change_init(c, CHANGE_ALTER, topic, strlen(topic));
	if (number_of(a, "partitions", 1, INT32_MAX, &c->partitions) < 0 ||
	    number_of(a, "partition", 0, INT32_MAX, &c->partition) < 0 ||
	    config_of(a, &c->set) || unset_of(a, c) || owner_of(a, c)) {
		change_clear(c);
		refuse(a, KERR_INVALID_REQUEST, "topic-alter: a field is of the wrong type or out "
		       "of range");
		return;
	}
	submit(a);
}

static void topic_delete(struct ask *a, const char *topic)
{
	change_init(&a->change, CHANGE_DELETE, topic, strlen(topic));
	submit(a);
}

static void topic_describe(struct ask *a, const char *name)
{
	struct topic *topic = topics_find(a->b->topics, kstr_of(name));

	if (!topic) {
		refuse(a, KERR_UNKNOWN_TOPIC_OR_PARTITION, "There is no topic '%s'.", name);
		return;
	}
	send_topic(a, topic);
	topic_put(topic);
}

static void topic_list(struct ask *a)
{
	const char *after = text_of(a, "after");
	struct json_object *list = json_object_new_array(), *out = good();
	size_t count, used = 0, size;
	struct topic **all = topics_all(a->b->topics, &count);
	bool more = false;

	for (size_t i = 0; all && i < count && !more; i++) {
		struct json_object *one;

		if (after && strcmp(all[i]->conf.name, after) <= 0)
			continue;
		one = topic_json(all[i]);
		text_of_object(one, &size);
		more = used && used + size + 1 > PAGE_MAX;
		if (more) {
			json_object_put(one);
			break;
		}
		used += size + 1;
		json_object_array_add(list, one);
	}
	topics_all_free(all, count);
	json_object_object_add(out, "topics", list);
	if (more)
		json_object_object_add(out, "more", json_object_new_boolean(true));
	send_object(a, out);
}

static void broker_describe(struct ask *a)
{
	struct broker *b = a->b;
	const struct config *config = broker_config(b);
	struct json_object *out = good(), *listeners = json_object_new_array();

	for (unsigned int i = 0; i < b->nlisteners; i++) {
		const struct config_listener *l = &config->listeners[i];
		char text[600];

		snprintf(text, sizeof(text), "%s://%s:%u", l->name,
			 *l->advertised_host ? l->advertised_host : l->host,
			 l->advertised_port ? (unsigned int)l->advertised_port :
					      b->listeners[i].port);
		json_object_array_add(listeners, json_object_new_string(text));
	}
	json_object_object_add(out, "node_id", json_object_new_int(b->node_id));
	json_object_object_add(out, "cluster_id", json_object_new_string(b->cluster_id));
	json_object_object_add(out, "listeners", listeners);
	json_object_object_add(out, "version", json_object_new_string(BROKER_VERSION));
	json_object_object_add(out, "engine", json_object_new_string(b->engine->ops->name));
	json_object_object_add(out, "data_dir", json_object_new_string(datadir_path(b->datadir)));
	json_object_object_add(out, "incarnation", json_object_new_int64(b->incarnation));
	json_object_object_add(out, "connections",
			       json_object_new_int64(atomic_load(&b->connections)));
	json_object_object_add(out, "topics", json_object_new_int64(topics_count(b->topics)));
	json_object_object_add(out, "fetch_sessions",
			       json_object_new_int64(fetch_sessions_count(b->sessions)));
	send_object(a, out);
}

static const struct {
	const char *name;
	void (*topic)(struct ask *a, const char *topic);
	void (*plain)(struct ask *a);
} commands[] = {
	{ "topic-create", topic_create, NULL },
	{ "topic-list", NULL, topic_list },
	{ "topic-describe", topic_describe, NULL },
	{ "topic-delete", topic_delete, NULL },
	{ "topic-alter", topic_alter, NULL },
	{ "broker-describe", NULL, broker_describe },
};

static void run(struct ask *a)
{
	const char *command = text_of(a, "command"), *topic = text_of(a, "topic");
	int64_t version = 0;

	if (number_of(a, "v", 1, 1, &version) <= 0) {
		refuse(a, KERR_UNSUPPORTED_VERSION, "This plogd speaks version 1 of the commands: "
		       "use the plogctl of the same release.");
		return;
	}
	for (size_t i = 0; command && i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(command, commands[i].name))
			continue;
		if (commands[i].plain)
			commands[i].plain(a);
		else if (!topic || !*topic || strlen(topic) > DATADIR_TOPIC_MAX)
			refuse(a, KERR_INVALID_TOPIC_EXCEPTION, "%s needs the name of a topic, 1 "
			       "to 249 characters.", command);
		else
			commands[i].topic(a, topic);
		return;
	}
	refuse(a, KERR_INVALID_REQUEST, "This plogd has no command '%.100s'.",
	       command ? command : "");
}

void admin_request(struct broker *b, uint32_t port, uint32_t cookie, const char *json,
		   size_t size)
{
	struct ask *a = calloc(1, sizeof(*a));
	struct json_tokener *t = json_tokener_new_ex(8);

	if (!a || !t) {
		say(SAY_ERROR, "admin", "out of memory");
		free(a);
		json_tokener_free(t);
		return;
	}
	a->b = b;
	a->port = port;
	a->cookie = cookie;
	a->in = json_tokener_parse_ex(t, json, size > INT_MAX ? INT_MAX : (int)size);
	json_tokener_free(t);
	if (!json_object_is_type(a->in, json_type_object))
		refuse(a, KERR_INVALID_REQUEST, "The request is not one JSON object.");
	else
		run(a);
}
