// SPDX-License-Identifier: MIT
/* The topic commands; who does the work is decided here. */
#include "plogctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct option topic_create_options[] = {
	{ "--partitions", "N", "how many (default 1)", false },
	{ "--config", "KEY=VALUE", "configuration; see \"plogctl topic configs\"", true },
	{ "--owner", "USER[:GROUP]", "of the partitions (default: who runs plogctl)", false },
	{ "--mode", "OCTAL", "who may read and write (default 0600)", false },
	{ "--no-node", NULL, "no /dev/plog/NAME/N", false },
	{ 0 }
};

const struct option topic_describe_options[] = {
	{ "--all", NULL, "all configuration keys, also those at their default", false },
	{ 0 }
};

const struct option topic_alter_options[] = {
	{ "--partitions", "N", "more partitions than now", false },
	{ "--set", "KEY=VALUE", "change a configuration key", true },
	{ "--unset", "KEY", "back to the default", true },
	{ "--owner", "USER[:GROUP]", "new owner", false },
	{ "--mode", "OCTAL", "who may read and write", false },
	{ "--partition", "N", "owner and mode of this partition only", false },
	{ 0 }
};

/* Where topics are changed. */
struct place {
	struct net *net;
	struct instance_info info;
	bool remote;
};

static int place_open(struct place *place, struct plog_error *err)
{
	int ret;

	memset(place, 0, sizeof(*place));
	ret = net_open(&place->net, err);
	if (!ret)
		ret = kernel_instance_need(place->net, &place->info, err);
	place->remote = place->info.incarnation != 0;
	return ret;
}

/* ---- output ---- */

static struct json_object *owner_json(struct json_object *o, const struct datadir_owner *owner)
{
	char mode[8];

	json_number(o, "uid", owner->uid);
	json_number(o, "gid", owner->gid);
	snprintf(mode, sizeof(mode), "%04o", owner->mode & 0777);
	json_text(o, "mode", mode);
	return o;
}

static struct json_object *topic_json(const struct datadir_topic *topic)
{
	struct json_object *o = json_new(), *config = json_new();
	char id[DATADIR_ID_TEXT + 1];

	datadir_id_text(topic->id, id);
	json_text(o, "name", topic->name);
	json_text(o, "id", id);
	json_number(o, "partitions", topic->partitions);
	for (size_t i = 0; i < topic->config.count; i++)
		json_text(config, topic->config.entries[i].key, topic->config.entries[i].value);
	json_put(o, "config", config);
	owner_json(o, &topic->owner);
	json_truth(o, "node", topic->node);
	if (topic->override_count) {
		struct json_object *list = json_list();

		for (size_t i = 0; i < topic->override_count; i++) {
			struct json_object *entry = json_new();

			json_number(entry, "partition", topic->overrides[i].partition);
			json_append(list, owner_json(entry, &topic->overrides[i].owner));
		}
		json_put(o, "overrides", list);
	}
	return o;
}

static const char *scope_text(const char *name)
{
	const struct topicconfig_key *key = topicconfig_find(name);

	if (!key)
		return "unknown to this version, stored";
	switch (key->scope) {
	case TOPICCONFIG_MODULE:
		return "module";
	case TOPICCONFIG_DAEMON:
		return "daemon";
	case TOPICCONFIG_STORED:
		break;
	}
	return "stored: nothing acts on it yet";
}

static void say_config(const struct ctl *ctl, const struct datadir_topic *topic)
{
	static const struct column columns[] = {
		{ "CONFIGURATION", false }, { "VALUE", false }, { "SET", false }, { "ACTS", false },
	};
	const struct topicconfig_key *keys;
	struct table *t;
	size_t count;

	if (!topic->config.count && !option_given(ctl, "--all"))
		return;
	t = TABLE_NEW(columns);
	for (size_t i = 0; i < topic->config.count; i++) {
		table_cell(t, "%s", topic->config.entries[i].key);
		table_cell(t, "%s", topic->config.entries[i].value);
		table_cell(t, "yes");
		table_cell(t, "%s", scope_text(topic->config.entries[i].key));
	}
	keys = topicconfig_keys(&count);
	for (size_t i = 0; option_given(ctl, "--all") && i < count; i++) {
		if (properties_get(&topic->config, keys[i].name))
			continue;
		table_cell(t, "%s", keys[i].name);
		table_cell(t, "%s", keys[i].initial);
		table_cell(t, "no");
		table_cell(t, "%s", scope_text(keys[i].name));
	}
	putchar('\n');
	table_print(t);
}

static void say_partitions(const struct ctl *ctl, const struct partition_info *parts, size_t count)
{
	static const struct column columns[] = {
		{ "PARTITION", true }, { "STATE", false }, { "START", true }, { "HIGH", true },
		{ "END", true }, { "SIZE", true }, { "SEGMENTS", true }, { "OWNER", false },
		{ "MODE", false },
	};
	struct table *t = TABLE_NEW(columns);

	for (size_t i = 0; i < count; i++) {
		table_cell(t, "%" PRIu32, parts[i].index);
		table_cell(t, "%s", partition_state_text(parts[i].state));
		table_cell(t, "%" PRId64, parts[i].log_start);
		table_cell(t, "%" PRId64, parts[i].high_watermark);
		table_cell(t, "%" PRId64, parts[i].log_end);
		table_cell(t, "%s", size_text(ctl, parts[i].bytes));
		table_cell(t, "%" PRIu32, parts[i].segments);
		table_cell(t, "%s:%s", user_text(parts[i].uid), group_text(parts[i].gid));
		table_cell(t, "%04o", parts[i].mode);
	}
	putchar('\n');
	table_print(t);
}

static void say_topic(const struct datadir_topic *topic)
{
	char id[DATADIR_ID_TEXT + 1];

	datadir_id_text(topic->id, id);
	line("topic", "%s", topic->name);
	line("id", "%s", id);
	line("partitions", "%" PRIu32, topic->partitions);
	line("owner", "%s:%s", user_text(topic->owner.uid), group_text(topic->owner.gid));
	line("mode", "%04o", topic->owner.mode);
	if (topic->node)
		line("nodes", "/dev/plog/%s/N", topic->name);
	else
		line("nodes", "none");
}

/* ---- create ---- */

/* "KEY=VALUE" of @option into @config, checked. */
static int take_config(const struct ctl *ctl, const char *option, struct properties *config,
		       struct plog_error *err)
{
	const char *text;

	for (size_t i = 0; (text = option_nth(ctl, option, i)); i++) {
		const char *equals = strchr(text, '=');
		char *key;
		int ret;

		if (!equals || equals == text)
			return plog_error_set(err, -EINVAL, "%s needs KEY=VALUE, not \"%s\"",
					      option, text);
		key = strndup(text, equals - text);
		if (!key)
			return plog_error_set(err, -ENOMEM, "out of memory");
		ret = topicconfig_check(key, equals + 1, err);
		if (!ret && topicconfig_set(config, key, equals + 1))
			ret = plog_error_set(err, -ENOMEM, "out of memory");
		free(key);
		if (ret)
			return ret;
	}
	return 0;
}

static int take_create(const struct ctl *ctl, struct datadir_topic *topic, struct plog_error *err)
{
	const char *partitions = option_value(ctl, "--partitions");
	const char *owner = option_value(ctl, "--owner"), *mode = option_value(ctl, "--mode");
	uint64_t number;
	int ret;

	datadir_topic_init(topic, ctl->args[0]);
	ret = datadir_topic_name_check(ctl->args[0], err);
	topic->owner.uid = getuid();
	topic->owner.gid = getgid();
	topic->node = !option_given(ctl, "--no-node");
	if (!ret && partitions) {
		ret = number_parse(partitions, 1, DATADIR_PARTITIONS_MAX, "--partitions", &number,
				   err);
		topic->partitions = number;
	}
	if (!ret && owner)
		ret = owner_parse(owner, &topic->owner, err);
	if (!ret && mode)
		ret = mode_parse(mode, &topic->owner.mode, err);
	if (!ret)
		ret = take_config(ctl, "--config", &topic->config, err);
	return ret ? ret : topicconfig_check_all(&topic->config, err);
}

int topic_create(struct ctl *ctl)
{
	struct datadir_topic topic;
	struct plog_error err;
	struct place place;
	int ret;

	if (take_create(ctl, &topic, &err)) {
		datadir_topic_clear(&topic);
		return fail_usage(ctl, "%s", err.text);
	}
	ret = place_open(&place, &err);
	if (!ret && place.remote)
		ret = remote_topic_create(place.net, &topic, &err);
	else if (!ret)
		ret = local_topic_create(place.net, place.info.data_dir, &topic, &err);
	if (!ret && ctl->json)
		json_print(topic_json(&topic), false);
	else if (!ret)
		printf("topic %s: %" PRIu32 " partition%s\n", topic.name, topic.partitions,
		       topic.partitions == 1 ? "" : "s");
	datadir_topic_clear(&topic);
	net_close(place.net);
	return ret ? fail(&err) : EXIT_OK;
}

/* ---- list ---- */

static void list_row(const struct ctl *ctl, struct table *t, struct json_object *all,
		     const struct datadir_topic *topic, const struct partition_list *parts)
{
	const struct partition_info *info;
	uint64_t bytes = 0, records = 0;
	size_t count, online = 0;

	info = partition_list_topic(parts, topic->name, &count);
	for (size_t i = 0; i < count; i++) {
		online += info[i].state == PLOG_PARTITION_ONLINE;
		bytes += info[i].bytes;
		records += info[i].log_end - info[i].log_start;
	}
	if (all) {
		struct json_object *o = topic_json(topic);

		json_number(o, "online", online);
		json_unsigned(o, "offsets", records);
		json_unsigned(o, "bytes", bytes);
		json_append(all, o);
		return;
	}
	table_cell(t, "%s", topic->name);
	table_cell(t, "%" PRIu32, topic->partitions);
	table_cell(t, "%zu", online);
	table_cell(t, "%" PRIu64, records);
	table_cell(t, "%s", size_text(ctl, bytes));
}

int topic_list(struct ctl *ctl)
{
	static const struct column columns[] = {
		{ "TOPIC", false }, { "PARTITIONS", true }, { "ONLINE", true },
		{ "OFFSETS", true }, { "SIZE", true },
	};
	struct datadir_topic *topics = NULL;
	struct partition_list parts = { 0 };
	struct json_object *all = NULL;
	struct table *t = NULL;
	struct plog_error err;
	struct place place;
	size_t count = 0;
	int ret;

	ret = place_open(&place, &err);
	if (!ret && place.remote)
		ret = remote_topic_list(place.net, &topics, &count, &err);
	else if (!ret)
		ret = local_topic_list(place.info.data_dir, &topics, &count, &err);
	if (!ret)
		ret = kernel_partition_list(place.net, NULL, &parts, &err);
	if (!ret) {
		if (ctl->json)
			all = json_list();
		else
			t = TABLE_NEW(columns);
		for (size_t i = 0; i < count; i++)
			list_row(ctl, t, all, &topics[i], &parts);
		if (all)
			json_print(all, false);
		else
			table_print(t);
	}
	partition_list_free(&parts);
	datadir_topics_free(topics, count);
	net_close(place.net);
	return ret ? fail(&err) : EXIT_OK;
}

/* ---- describe ---- */

static struct json_object *describe_json(const struct ctl *ctl, const struct datadir_topic *topic,
					 const struct partition_info *parts, size_t count)
{
	struct json_object *o = topic_json(topic), *list = json_list(), *values;
	const struct topicconfig_key *keys;
	size_t key_count;

	for (size_t i = 0; i < count; i++)
		json_append(list, partition_json(&parts[i]));
	json_put(o, "partition_states", list);
	if (!option_given(ctl, "--all"))
		return o;
	values = json_new();
	keys = topicconfig_keys(&key_count);
	for (size_t i = 0; i < key_count; i++)
		json_text(values, keys[i].name,
			  topicconfig_value(&topic->config, NULL, keys[i].name));
	json_put(o, "config_in_force", values);
	return o;
}

int topic_describe(struct ctl *ctl)
{
	const struct partition_info *info;
	struct partition_list parts = { 0 };
	struct datadir_topic topic = { 0 };
	struct plog_error err;
	struct place place;
	size_t count;
	int ret;

	ret = place_open(&place, &err);
	if (!ret && place.remote)
		ret = remote_topic_read(place.net, ctl->args[0], &topic, &err);
	else if (!ret)
		ret = local_topic_read(place.info.data_dir, ctl->args[0], &topic, &err);
	if (!ret)
		ret = kernel_partition_list(place.net, topic.name, &parts, &err);
	if (!ret) {
		info = partition_list_topic(&parts, topic.name, &count);
		if (ctl->json) {
			json_print(describe_json(ctl, &topic, info, count), false);
		} else {
			say_topic(&topic);
			say_config(ctl, &topic);
			say_partitions(ctl, info, count);
		}
	}
	partition_list_free(&parts);
	datadir_topic_clear(&topic);
	net_close(place.net);
	return ret ? fail(&err) : EXIT_OK;
}

/* ---- delete ---- */

int topic_delete(struct ctl *ctl)
{
	const char *name = ctl->args[0];
	struct plog_error err;
	struct place place;
	int ret;

	ret = place_open(&place, &err);
	if (!ret && place.remote)
		ret = remote_topic_delete(place.net, name, &err);
	else if (!ret)
		ret = local_topic_delete(place.net, place.info.data_dir, name, &err);
	net_close(place.net);
	if (ret)
		return fail(&err);
	if (ctl->json) {
		struct json_object *o = json_new();

		json_text(o, "deleted", name);
		json_print(o, false);
	} else {
		printf("topic %s deleted\n", name);
	}
	return EXIT_OK;
}

/* ---- alter ---- */

static int take_alter(const struct ctl *ctl, struct datadir_change *change,
		      struct properties *set, struct plog_error *err)
{
	const char *owner = option_value(ctl, "--owner"), *mode = option_value(ctl, "--mode");
	const char *partitions = option_value(ctl, "--partitions");
	const char *partition = option_value(ctl, "--partition"), *key;
	uint64_t number;
	int ret;

	memset(change, 0, sizeof(*change));
	change->set = set;
	change->partition = -1;
	ret = take_config(ctl, "--set", set, err);
	if (ret)
		return ret;
	change->unset = calloc(ctl->chosen_count + 1, sizeof(*change->unset));
	if (!change->unset)
		return plog_error_set(err, -ENOMEM, "out of memory");
	while ((key = option_nth(ctl, "--unset", change->unset_count))) {
		if (properties_get(set, key))
			return plog_error_set(err, -EINVAL, "--set and --unset of the same key %s",
					      key);
		change->unset[change->unset_count++] = (char *)key;
	}
	if (partitions) {
		ret = number_parse(partitions, 1, DATADIR_PARTITIONS_MAX, "--partitions", &number,
				   err);
		change->partitions = number;
	}
	if (!ret && owner) {
		ret = owner_parse(owner, &change->owner, err);
		change->uid_set = *owner != ':';
		change->gid_set = strchr(owner, ':') && strchr(owner, ':')[1];
	}
	if (!ret && mode) {
		ret = mode_parse(mode, &change->owner.mode, err);
		change->mode_set = true;
	}
	if (!ret && partition) {
		ret = number_parse(partition, 0, DATADIR_PARTITIONS_MAX - 1, "--partition",
				   &number, err);
		change->partition = number;
		if (!ret && !owner && !mode)
			ret = plog_error_set(err, -EINVAL, "--partition needs --owner or --mode");
	}
	if (!ret && !ctl->chosen_count)
		ret = plog_error_set(err, -EINVAL, "there is nothing to change");
	return ret;
}

int topic_alter(struct ctl *ctl)
{
	struct datadir_topic topic = { 0 };
	struct properties set = { 0 };
	struct datadir_change change;
	struct plog_error err;
	struct place place;
	int ret;

	if (take_alter(ctl, &change, &set, &err)) {
		properties_clear(&set);
		free(change.unset);
		return fail_usage(ctl, "%s", err.text);
	}
	ret = place_open(&place, &err);
	if (!ret && place.remote)
		ret = remote_topic_alter(place.net, ctl->args[0], &change, &topic, &err);
	else if (!ret)
		ret = local_topic_alter(place.net, place.info.data_dir, ctl->args[0], &change,
					&topic, &err);
	if (!ret && ctl->json)
		json_print(topic_json(&topic), false);
	else if (!ret)
		printf("topic %s changed\n", topic.name);
	properties_clear(&set);
	free(change.unset);
	datadir_topic_clear(&topic);
	net_close(place.net);
	return ret ? fail(&err) : EXIT_OK;
}

/* ---- configs ---- */

static const char *type_text(enum topicconfig_type type)
{
	switch (type) {
	case TOPICCONFIG_BOOLEAN: return "boolean";
	case TOPICCONFIG_STRING: return "string";
	case TOPICCONFIG_INT: return "int";
	case TOPICCONFIG_LONG: return "long";
	case TOPICCONFIG_DOUBLE: return "double";
	case TOPICCONFIG_LIST: return "list";
	}
	return "?";
}

static struct json_object *key_json(const struct topicconfig_key *key)
{
	struct json_object *o = json_new();

	json_text(o, "name", key->name);
	json_text(o, "type", type_text(key->type));
	json_text(o, "default", key->initial);
	if (key->type == TOPICCONFIG_INT || key->type == TOPICCONFIG_LONG) {
		json_number(o, "min", key->min);
		json_number(o, "max", key->max);
	}
	if (key->values)
		json_text(o, "values", key->values);
	json_text(o, "server_keys", key->server);
	json_text(o, "acts", scope_text(key->name));
	json_text(o, "doc", key->doc);
	return o;
}

static int say_key(const struct ctl *ctl, const char *name)
{
	const struct topicconfig_key *key = topicconfig_find(name);
	struct plog_error err;

	if (!key) {
		topicconfig_check(name, "", &err);
		return fail(&err);
	}
	if (ctl->json) {
		json_print(key_json(key), false);
		return EXIT_OK;
	}
	line("key", "%s", key->name);
	line("meaning", "%s", key->doc);
	line("type", "%s", type_text(key->type));
	if (key->type == TOPICCONFIG_INT || key->type == TOPICCONFIG_LONG)
		line("range", "%" PRId64 " to %" PRId64, key->min, key->max);
	if (key->type == TOPICCONFIG_DOUBLE)
		line("range", "%g to %g", key->min / 1000.0, key->max / 1000.0);
	if (key->values)
		line("values", "%s", key->values);
	line("default", "%s", key->initial);
	if (*key->server)
		line("broker's default by", "%s", key->server);
	line("acts", "%s", scope_text(key->name));
	return EXIT_OK;
}

int topic_configs(struct ctl *ctl)
{
	static const struct column columns[] = {
		{ "KEY", false }, { "DEFAULT", false }, { "ACTS", false }, { "MEANING", false },
	};
	const struct topicconfig_key *keys;
	struct json_object *all;
	struct table *t;
	size_t count;

	if (ctl->arg_count)
		return say_key(ctl, ctl->args[0]);
	keys = topicconfig_keys(&count);
	if (ctl->json) {
		all = json_list();
		for (size_t i = 0; i < count; i++)
			json_append(all, key_json(&keys[i]));
		json_print(all, false);
		return EXIT_OK;
	}
	t = TABLE_NEW(columns);
	for (size_t i = 0; i < count; i++) {
		table_cell(t, "%s", keys[i].name);
		table_cell(t, "%s", keys[i].initial);
		table_cell(t, "%s", keys[i].scope == TOPICCONFIG_STORED ? "stored" :
				    scope_text(keys[i].name));
		table_cell(t, "%s", keys[i].doc);
	}
	table_print(t);
	return EXIT_OK;
}
