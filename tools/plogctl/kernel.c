// SPDX-License-Identifier: MIT
/* What the module is asked and told, as C structures. */
#include "plogctl.h"

#include <errno.h>
#include <inttypes.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- decoding ---- */

static void take_string(struct nlattr *attr, char *to, size_t size)
{
	*to = '\0';
	if (attr)
		snprintf(to, size, "%.*s", nla_len(attr), (const char *)nla_data(attr));
}

static uint64_t take_number(struct nlattr *attr)
{
	if (!attr)
		return 0;
	switch (nla_len(attr)) {
	case 1:
		return nla_get_u8(attr);
	case 4:
		return nla_get_u32(attr);
	case 8:
		return nla_get_u64(attr);
	}
	return 0;
}

bool instance_decode(struct nlattr **attrs, struct instance_info *info)
{
	struct nlattr *tb[PLOG_A_INSTANCE_MAX + 1];

	memset(info, 0, sizeof(*info));
	if (!attrs[PLOG_A_INSTANCE] ||
	    nla_parse_nested(tb, PLOG_A_INSTANCE_MAX, attrs[PLOG_A_INSTANCE], NULL) < 0)
		return false;
	info->state = take_number(tb[PLOG_A_INSTANCE_STATE]);
	take_string(tb[PLOG_A_INSTANCE_DATA_DIR], info->data_dir, sizeof(info->data_dir));
	take_string(tb[PLOG_A_INSTANCE_VERSION], info->version, sizeof(info->version));
	info->partitions = take_number(tb[PLOG_A_INSTANCE_PARTITIONS]);
	info->online = take_number(tb[PLOG_A_INSTANCE_ONLINE]);
	info->incarnation = take_number(tb[PLOG_A_INSTANCE_INCARNATION]);
	info->retention_check_ms = take_number(tb[PLOG_A_INSTANCE_RETENTION_CHECK_MS]);
	for (size_t n = 0; n < INSTANCE_LIMITS; n++)
		info->limits[n] = take_number(tb[instance_limits[n].attr]);
	info->descriptors = take_number(tb[PLOG_A_INSTANCE_DESCRIPTORS]);
	return true;
}

bool partition_decode(struct nlattr **attrs, struct partition_info *info)
{
	struct nlattr *tb[PLOG_A_PARTITION_MAX + 1];

	memset(info, 0, sizeof(*info));
	if (!attrs[PLOG_A_PARTITION] ||
	    nla_parse_nested(tb, PLOG_A_PARTITION_MAX, attrs[PLOG_A_PARTITION], NULL) < 0 ||
	    !tb[PLOG_A_PARTITION_TOPIC])
		return false;
	take_string(tb[PLOG_A_PARTITION_TOPIC], info->topic, sizeof(info->topic));
	if (tb[PLOG_A_PARTITION_TOPIC_ID] &&
	    nla_len(tb[PLOG_A_PARTITION_TOPIC_ID]) == DATADIR_ID_SIZE)
		memcpy(info->topic_id, nla_data(tb[PLOG_A_PARTITION_TOPIC_ID]), DATADIR_ID_SIZE);
#define TAKE(field, ATTR) (info->field = take_number(tb[PLOG_A_PARTITION_##ATTR]))
	TAKE(index, INDEX);
	TAKE(state, STATE);
	TAKE(error, ERROR);
	TAKE(flags, FLAGS);
	TAKE(node, NODE);
	TAKE(uid, UID);
	TAKE(gid, GID);
	TAKE(mode, MODE);
	TAKE(leader_epoch, LEADER_EPOCH);
	TAKE(log_start, LOG_START);
	TAKE(high_watermark, HIGH_WATERMARK);
	TAKE(last_stable, LAST_STABLE);
	TAKE(log_end, LOG_END);
	TAKE(bytes, BYTES);
	TAKE(segments, SEGMENTS);
	TAKE(max_message_bytes, MAX_MESSAGE_BYTES);
	TAKE(segment_bytes, SEGMENT_BYTES);
	TAKE(segment_ms, SEGMENT_MS);
	TAKE(index_interval_bytes, INDEX_INTERVAL_BYTES);
	TAKE(index_bytes, INDEX_BYTES);
	TAKE(max_timestamp, MAX_TIMESTAMP);
	TAKE(retention_ms, RETENTION_MS);
	TAKE(retention_bytes, RETENTION_BYTES);
	TAKE(file_delete_delay_ms, FILE_DELETE_DELAY_MS);
	TAKE(segment_jitter_ms, SEGMENT_JITTER_MS);
	TAKE(flush_messages, FLUSH_MESSAGES);
	TAKE(flush_ms, FLUSH_MS);
	TAKE(preallocate, PREALLOCATE);
	TAKE(retired, RETIRED);
#undef TAKE
	if (!tb[PLOG_A_PARTITION_LEADER_EPOCH])
		info->leader_epoch = -1;
	if (!tb[PLOG_A_PARTITION_MAX_TIMESTAMP])
		info->max_timestamp = -1;
	return true;
}

const char *instance_state_text(uint32_t state)
{
	static const char * const names[] = { "none", "running", "stopping", "stopped" };

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

const char *partition_state_text(uint32_t state)
{
	static const char * const names[] = { "opening", "online", "fenced", "failed", "closed" };

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

struct json_object *partition_json(const struct partition_info *info)
{
	struct json_object *o = json_new();
	char id[DATADIR_ID_TEXT + 1], mode[8];

	json_text(o, "topic", info->topic);
	json_number(o, "partition", info->index);
	datadir_id_text(info->topic_id, id);
	json_text(o, "topic_id", id);
	json_text(o, "state", partition_state_text(info->state));
	if (info->error) {
		json_number(o, "errno", info->error);
		json_text(o, "error", strerror(info->error));
	}
	json_truth(o, "node", info->node);
	json_number(o, "uid", info->uid);
	json_number(o, "gid", info->gid);
	snprintf(mode, sizeof(mode), "%04o", info->mode & 07777);
	json_text(o, "mode", mode);
	json_number(o, "leader_epoch", info->leader_epoch);
	json_number(o, "log_start", info->log_start);
	json_number(o, "high_watermark", info->high_watermark);
	json_number(o, "last_stable", info->last_stable);
	json_number(o, "log_end", info->log_end);
	json_number(o, "max_timestamp", info->max_timestamp);
	json_unsigned(o, "bytes", info->bytes);
	json_number(o, "segments", info->segments);
	json_truth(o, "replicated", info->flags & PLOG_STATE_REPLICATED);
	json_truth(o, "leader", info->flags & PLOG_STATE_LEADER);
	json_truth(o, "compact", info->flags & PLOG_STATE_COMPACT);
	json_truth(o, "internal", info->flags & PLOG_STATE_INTERNAL);
	json_truth(o, "log_append_time", info->flags & PLOG_STATE_LOG_APPEND_TIME);
	json_number(o, "max.message.bytes", info->max_message_bytes);
	json_number(o, "segment.bytes", info->segment_bytes);
	json_unsigned(o, "segment.ms", info->segment_ms);
	json_number(o, "index.interval.bytes", info->index_interval_bytes);
	json_number(o, "segment.index.bytes", info->index_bytes);
	json_number(o, "retention.ms", info->retention_ms);
	json_number(o, "retention.bytes", info->retention_bytes);
	json_unsigned(o, "file.delete.delay.ms", info->file_delete_delay_ms);
	json_unsigned(o, "segment.jitter.ms", info->segment_jitter_ms);
	json_unsigned(o, "flush.messages", info->flush_messages);
	json_unsigned(o, "flush.ms", info->flush_ms);
	json_truth(o, "preallocate", info->preallocate);
	json_number(o, "retired", info->retired);
	return o;
}

/* ---- the instance ---- */

static int on_instance(void *arg, uint8_t command, struct nlattr **attrs)
{
	(void)command;
	instance_decode(attrs, arg);
	return 0;
}

int kernel_instance_get(struct net *net, struct instance_info *info, struct plog_error *err)
{
	memset(info, 0, sizeof(*info));
	return net_request(net, net_message(net, PLOG_CMD_INSTANCE_GET, 0), on_instance, info,
			   "cannot ask for the instance", err);
}

int kernel_instance_need(struct net *net, struct instance_info *info, struct plog_error *err)
{
	int ret = kernel_instance_get(net, info, err);

	if (ret)
		return ret;
	if (info->state == PLOG_INSTANCE_STOPPING)
		return plog_error_set(err, -ENODEV, "the instance of this network namespace is "
				      "stopping; wait for it with: plogctl instance stop");
	if (info->state != PLOG_INSTANCE_RUNNING)
		return plog_error_set(err, -ENODEV, "no data directory is set in this network "
				      "namespace; run: plogctl instance set --data-dir DIR");
	return 0;
}

const struct instance_limit instance_limits[INSTANCE_LIMITS] = {
	{ PLOG_A_INSTANCE_MAX_PARTITIONS, "--max-partitions", "max_partitions",
	  "max partitions", 1, 1 << 20 },
	{ PLOG_A_INSTANCE_MAX_WAITERS, "--max-waiters", "max_waiters", "max waiters", 1, 1 << 20 },
	{ PLOG_A_INSTANCE_MAX_DESCRIPTORS, "--max-descriptors", "max_descriptors",
	  "max descriptors", 1, INT32_MAX },
	{ PLOG_A_INSTANCE_MAX_APPEND_BYTES, "--max-append-bytes", "max_append_bytes",
	  "max append bytes", PLOG_MESSAGE_BYTES_MIN, PLOG_MESSAGE_BYTES_MAX },
};

int kernel_instance_set(struct net *net, const struct datadir *dir,
			const uint32_t limits[INSTANCE_LIMITS], struct plog_error *err)
{
	struct nl_msg *msg = net_message(net, PLOG_CMD_INSTANCE_SET, 0);
	struct nlattr *nest = nla_nest_start(msg, PLOG_A_INSTANCE | NLA_F_NESTED);
	char what[256];

	snprintf(what, sizeof(what), "cannot set limits");
	if (dir) {
		if (strlen(datadir_path(dir)) > PLOG_LABEL_MAX) {
			nlmsg_free(msg);
			return plog_error_set(err, -ENAMETOOLONG, "the name of the data directory "
					      "is longer than %d bytes", PLOG_LABEL_MAX);
		}
		nla_put_string(msg, PLOG_A_INSTANCE_DATA_DIR, datadir_path(dir));
		nla_put_u32(msg, PLOG_A_INSTANCE_DIR_FD, datadir_fd(dir));
		nla_put_u32(msg, PLOG_A_INSTANCE_LOCK_FD, datadir_lock_fd(dir));
		snprintf(what, sizeof(what), "cannot set data directory %s", datadir_path(dir));
	}
	for (size_t i = 0; i < INSTANCE_LIMITS; i++)
		if (limits[i])
			nla_put_u32(msg, instance_limits[i].attr, limits[i]);
	nla_nest_end(msg, nest);
	return net_request(net, msg, NULL, NULL, what, err);
}

int kernel_instance_stop(struct net *net, struct plog_error *err)
{
	return net_request(net, net_message(net, PLOG_CMD_INSTANCE_STOP, 0), NULL, NULL,
			   "cannot stop the instance", err);
}

/* ---- partitions ---- */

static struct nl_msg *partition_message(struct net *net, uint8_t command, int flags,
					const char *topic, uint32_t partition,
					struct nlattr **nest)
{
	struct nl_msg *msg = net_message(net, command, flags);

	*nest = nla_nest_start(msg, PLOG_A_PARTITION | NLA_F_NESTED);
	nla_put_string(msg, PLOG_A_PARTITION_TOPIC, topic);
	nla_put_u32(msg, PLOG_A_PARTITION_INDEX, partition);
	return msg;
}

static void put_configuration(struct nl_msg *msg, const struct datadir_topic *topic,
			      uint32_t partition)
{
	struct datadir_owner owner = datadir_topic_owner(topic, partition);
	struct topicconfig_module m;

	topicconfig_module(topic->name, &topic->config, NULL, &m);
	nla_put_u32(msg, PLOG_A_PARTITION_FLAGS, m.flags);
	nla_put_u32(msg, PLOG_A_PARTITION_UID, owner.uid);
	nla_put_u32(msg, PLOG_A_PARTITION_GID, owner.gid);
	nla_put_u32(msg, PLOG_A_PARTITION_MODE, owner.mode);
	nla_put_u32(msg, PLOG_A_PARTITION_MAX_MESSAGE_BYTES, m.max_message_bytes);
	nla_put_u32(msg, PLOG_A_PARTITION_SEGMENT_BYTES, m.segment_bytes);
	nla_put_u64(msg, PLOG_A_PARTITION_SEGMENT_MS, m.segment_ms);
	nla_put_u32(msg, PLOG_A_PARTITION_INDEX_INTERVAL_BYTES, m.index_interval_bytes);
	nla_put_u32(msg, PLOG_A_PARTITION_INDEX_BYTES, m.index_bytes);
	nla_put_u64(msg, PLOG_A_PARTITION_RETENTION_MS, m.retention_ms);
	nla_put_u64(msg, PLOG_A_PARTITION_RETENTION_BYTES, m.retention_bytes);
	nla_put_u64(msg, PLOG_A_PARTITION_FILE_DELETE_DELAY_MS, m.file_delete_delay_ms);
	nla_put_u64(msg, PLOG_A_PARTITION_SEGMENT_JITTER_MS, m.segment_jitter_ms);
	nla_put_u64(msg, PLOG_A_PARTITION_FLUSH_MESSAGES, m.flush_messages);
	nla_put_u64(msg, PLOG_A_PARTITION_FLUSH_MS, m.flush_ms);
	nla_put_u8(msg, PLOG_A_PARTITION_PREALLOCATE, m.preallocate);
}

int kernel_partition_new(struct net *net, struct datadir *dir, const struct datadir_topic *topic,
			 uint32_t partition, bool *made, struct plog_error *err)
{
	struct nlattr *nest;
	struct nl_msg *msg;
	char what[300];
	int fd, ret;

	fd = datadir_partition_open(dir, topic, partition, made, err);
	if (fd < 0)
		return fd;
	msg = partition_message(net, PLOG_CMD_PARTITION_NEW, 0, topic->name, partition, &nest);
	nla_put_u32(msg, PLOG_A_PARTITION_DIR_FD, fd);
	nla_put(msg, PLOG_A_PARTITION_TOPIC_ID, DATADIR_ID_SIZE, topic->id);
	nla_put_u8(msg, PLOG_A_PARTITION_NODE, topic->node);
	put_configuration(msg, topic, partition);
	nla_nest_end(msg, nest);
	snprintf(what, sizeof(what), "cannot open partition %s/%" PRIu32, topic->name, partition);
	ret = net_request(net, msg, NULL, NULL, what, err);
	close(fd);
	return ret;
}

int kernel_partition_set(struct net *net, const struct datadir_topic *topic, uint32_t partition,
			 struct plog_error *err)
{
	struct nlattr *nest;
	struct nl_msg *msg;
	char what[300];

	msg = partition_message(net, PLOG_CMD_PARTITION_SET, 0, topic->name, partition, &nest);
	put_configuration(msg, topic, partition);
	nla_nest_end(msg, nest);
	snprintf(what, sizeof(what), "cannot configure partition %s/%" PRIu32, topic->name,
		 partition);
	return net_request(net, msg, NULL, NULL, what, err);
}

int kernel_partition_del(struct net *net, const char *topic, uint32_t partition,
			 struct plog_error *err)
{
	struct nlattr *nest;
	struct nl_msg *msg;
	char what[300];

	msg = partition_message(net, PLOG_CMD_PARTITION_DEL, 0, topic, partition, &nest);
	nla_nest_end(msg, nest);
	snprintf(what, sizeof(what), "cannot take partition %s/%" PRIu32 " out of service", topic,
		 partition);
	return net_request(net, msg, NULL, NULL, what, err);
}

static int on_partition(void *arg, uint8_t command, struct nlattr **attrs)
{
	(void)command;
	partition_decode(attrs, arg);
	return 0;
}

int kernel_partition_get(struct net *net, const char *topic, uint32_t partition,
			 struct partition_info *info, struct plog_error *err)
{
	struct nlattr *nest;
	struct nl_msg *msg;
	char what[300];

	memset(info, 0, sizeof(*info));
	msg = partition_message(net, PLOG_CMD_PARTITION_GET, 0, topic, partition, &nest);
	nla_nest_end(msg, nest);
	snprintf(what, sizeof(what), "cannot show partition %s/%" PRIu32, topic, partition);
	return net_request(net, msg, on_partition, info, what, err);
}

static struct partition_info *list_room(struct partition_list *list)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		void *larger = reallocarray(list->entries, room, sizeof(*list->entries));

		if (!larger) {
			warn("out of memory");
			exit(EXIT_FAILED);
		}
		list->entries = larger;
		list->room = room;
	}
	return &list->entries[list->count];
}

void partition_list_add(struct partition_list *list, const char *topic, uint32_t index)
{
	struct partition_info *info = list_room(list);

	memset(info, 0, sizeof(*info));
	snprintf(info->topic, sizeof(info->topic), "%s", topic);
	info->index = index;
	list->count++;
}

static int on_listed(void *arg, uint8_t command, struct nlattr **attrs)
{
	struct partition_list *list = arg;

	(void)command;
	if (partition_decode(attrs, list_room(list)))
		list->count++;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct partition_info *x = a, *y = b;
	int order = strcmp(x->topic, y->topic);

	return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

int kernel_partition_list(struct net *net, const char *topic, struct partition_list *list,
			  struct plog_error *err)
{
	struct nl_msg *msg = net_message(net, PLOG_CMD_PARTITION_GET, NLM_F_DUMP);
	struct nlattr *nest;
	int ret;

	memset(list, 0, sizeof(*list));
	if (topic) {
		nest = nla_nest_start(msg, PLOG_A_PARTITION | NLA_F_NESTED);
		nla_put_string(msg, PLOG_A_PARTITION_TOPIC, topic);
		nla_nest_end(msg, nest);
	}
	ret = net_request(net, msg, on_listed, list, "cannot list partitions", err);
	if (ret)
		partition_list_free(list);
	else if (list->count)
		qsort(list->entries, list->count, sizeof(*list->entries), by_place);
	return ret;
}

void partition_list_free(struct partition_list *list)
{
	free(list->entries);
	memset(list, 0, sizeof(*list));
}

const struct partition_info *partition_list_find(const struct partition_list *list,
						 const char *topic, uint32_t index)
{
	struct partition_info key = { .index = index };

	snprintf(key.topic, sizeof(key.topic), "%s", topic);
	if (!list->count)
		return NULL;
	return bsearch(&key, list->entries, list->count, sizeof(key), by_place);
}

const struct partition_info *partition_list_topic(const struct partition_list *list,
						  const char *topic, size_t *count)
{
	size_t low = 0, high = list->count, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(list->entries[middle].topic, topic) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < list->count; end++)
		if (strcmp(list->entries[end].topic, topic))
			break;
	*count = end - low;
	return list->entries + low;
}

/* ---- retention ---- */

int kernel_retention_check(struct net *net, uint32_t ms, struct plog_error *err)
{
	struct nl_msg *msg = net_message(net, PLOG_CMD_INSTANCE_SET, 0);
	struct nlattr *nest = nla_nest_start(msg, PLOG_A_INSTANCE | NLA_F_NESTED);

	nla_put_u32(msg, PLOG_A_INSTANCE_RETENTION_CHECK_MS, ms);
	nla_nest_end(msg, nest);
	return net_request(net, msg, NULL, NULL, "cannot set how often retention looks", err);
}

/* TOPIC and INDEX, where they are given. */
static void put_filter(struct nl_msg *msg, const char *topic, const uint32_t *partition)
{
	struct nlattr *nest;

	if (!topic)
		return;
	nest = nla_nest_start(msg, PLOG_A_PARTITION | NLA_F_NESTED);
	nla_put_string(msg, PLOG_A_PARTITION_TOPIC, topic);
	if (partition)
		nla_put_u32(msg, PLOG_A_PARTITION_INDEX, *partition);
	nla_nest_end(msg, nest);
}

int kernel_retention_run(struct net *net, const char *topic, const uint32_t *partition,
			 struct plog_error *err)
{
	struct nl_msg *msg = net_message(net, PLOG_CMD_RETENTION_RUN, 0);

	put_filter(msg, topic, partition);
	return net_request(net, msg, NULL, NULL, "cannot run retention", err);
}

int kernel_partition_roll(struct net *net, const char *topic, uint32_t partition,
			  struct plog_error *err)
{
	struct nlattr *nest;
	struct nl_msg *msg;
	char what[300];

	msg = partition_message(net, PLOG_CMD_PARTITION_ROLL, 0, topic, partition, &nest);
	nla_nest_end(msg, nest);
	snprintf(what, sizeof(what), "cannot begin a new segment of %s/%" PRIu32, topic, partition);
	return net_request(net, msg, NULL, NULL, what, err);
}

int kernel_delete_records(struct net *net, const char *topic, uint32_t partition,
			  int64_t log_start, struct plog_error *err)
{
	struct nlattr *nest;
	struct nl_msg *msg;
	char what[300];

	msg = partition_message(net, PLOG_CMD_PARTITION_DELETE_RECORDS, 0, topic, partition, &nest);
	nla_put_u64(msg, PLOG_A_PARTITION_LOG_START, log_start);
	nla_nest_end(msg, nest);
	snprintf(what, sizeof(what), "cannot delete the records of %s/%" PRIu32 " below %" PRId64,
		 topic, partition, log_start);
	return net_request(net, msg, NULL, NULL, what, err);
}

const char *retired_state_text(uint32_t state)
{
	static const char * const names[] = { "delayed", "held", "ready", "emptied", "taken" };

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

bool retired_decode(struct nlattr **attrs, struct retired_info *info)
{
	struct nlattr *tb[PLOG_A_RETIRED_MAX + 1];

	memset(info, 0, sizeof(*info));
	if (!attrs[PLOG_A_RETIRED] ||
	    nla_parse_nested(tb, PLOG_A_RETIRED_MAX, attrs[PLOG_A_RETIRED], NULL) < 0 ||
	    !tb[PLOG_A_RETIRED_TOPIC])
		return false;
	take_string(tb[PLOG_A_RETIRED_TOPIC], info->topic, sizeof(info->topic));
	info->index = take_number(tb[PLOG_A_RETIRED_INDEX]);
	info->base_offset = take_number(tb[PLOG_A_RETIRED_BASE_OFFSET]);
	info->bytes = take_number(tb[PLOG_A_RETIRED_BYTES]);
	info->pins = take_number(tb[PLOG_A_RETIRED_PINS]);
	info->state = take_number(tb[PLOG_A_RETIRED_STATE]);
	return true;
}

struct retired_walk {
	void (*fn)(void *arg, const struct retired_info *info);
	void *arg;
};

static int on_retired(void *arg, uint8_t command, struct nlattr **attrs)
{
	struct retired_walk *walk = arg;
	struct retired_info info;

	(void)command;
	if (retired_decode(attrs, &info))
		walk->fn(walk->arg, &info);
	return 0;
}

int kernel_retired(struct net *net, const char *topic, const uint32_t *partition,
		   void (*fn)(void *arg, const struct retired_info *info), void *arg,
		   struct plog_error *err)
{
	struct nl_msg *msg = net_message(net, PLOG_CMD_RETIRED_GET, NLM_F_DUMP);
	struct retired_walk walk = { fn, arg };

	put_filter(msg, topic, partition);
	return net_request(net, msg, on_retired, &walk, "cannot list retired segments", err);
}

static int retired_request(struct net *net, uint8_t command, const struct retired_info *info,
			   int failed, struct plog_error *err)
{
	struct nl_msg *msg = net_message(net, command, 0);
	struct nlattr *nest = nla_nest_start(msg, PLOG_A_RETIRED | NLA_F_NESTED);
	char what[300];

	nla_put_string(msg, PLOG_A_RETIRED_TOPIC, info->topic);
	nla_put_u32(msg, PLOG_A_RETIRED_INDEX, info->index);
	nla_put_u64(msg, PLOG_A_RETIRED_BASE_OFFSET, info->base_offset);
	if (failed)
		nla_put_u8(msg, PLOG_A_RETIRED_FAILED, 1);
	nla_nest_end(msg, nest);
	snprintf(what, sizeof(what), "cannot delete segment %" PRId64 " of %s/%" PRIu32,
		 info->base_offset, info->topic, info->index);
	return net_request(net, msg, NULL, NULL, what, err);
}

int kernel_retired_take(struct net *net, const struct retired_info *info, struct plog_error *err)
{
	return retired_request(net, PLOG_CMD_RETIRED_TAKE, info, 0, err);
}

int kernel_retired_done(struct net *net, const struct retired_info *info, int failed,
			struct plog_error *err)
{
	return retired_request(net, PLOG_CMD_RETIRED_DONE, info, failed, err);
}

/* ---- segments and counters ---- */

struct segment_walk {
	void (*fn)(void *arg, const struct segment_info *info);
	void *arg;
};

static int on_segment(void *arg, uint8_t command, struct nlattr **attrs)
{
	struct nlattr *tb[PLOG_A_SEGMENT_MAX + 1];
	struct segment_walk *walk = arg;
	struct segment_info info;

	(void)command;
	if (!attrs[PLOG_A_SEGMENT] ||
	    nla_parse_nested(tb, PLOG_A_SEGMENT_MAX, attrs[PLOG_A_SEGMENT], NULL) < 0)
		return 0;
	info.base_offset = take_number(tb[PLOG_A_SEGMENT_BASE_OFFSET]);
	info.bytes = take_number(tb[PLOG_A_SEGMENT_BYTES]);
	info.index_bytes = take_number(tb[PLOG_A_SEGMENT_INDEX_BYTES]);
	info.timeindex_bytes = take_number(tb[PLOG_A_SEGMENT_TIMEINDEX_BYTES]);
	info.max_timestamp = tb[PLOG_A_SEGMENT_MAX_TIMESTAMP] ?
			     (int64_t)take_number(tb[PLOG_A_SEGMENT_MAX_TIMESTAMP]) : -1;
	info.active = take_number(tb[PLOG_A_SEGMENT_ACTIVE]);
	info.pins = take_number(tb[PLOG_A_SEGMENT_PINS]);
	info.generation = take_number(tb[PLOG_A_SEGMENT_GENERATION]);
	walk->fn(walk->arg, &info);
	return 0;
}

int kernel_segments(struct net *net, const char *topic, uint32_t partition,
		    void (*fn)(void *arg, const struct segment_info *info), void *arg,
		    struct plog_error *err)
{
	struct segment_walk walk = { fn, arg };
	struct nlattr *nest;
	struct nl_msg *msg;
	char what[300];

	msg = partition_message(net, PLOG_CMD_SEGMENT_GET, NLM_F_DUMP, topic, partition, &nest);
	nla_nest_end(msg, nest);
	snprintf(what, sizeof(what), "cannot list the segments of %s/%" PRIu32, topic, partition);
	return net_request(net, msg, on_segment, &walk, what, err);
}

struct epoch_walk {
	void (*fn)(void *arg, const struct epoch_info *info);
	void *arg;
};

static int on_epoch(void *arg, uint8_t command, struct nlattr **attrs)
{
	struct nlattr *tb[PLOG_A_EPOCH_MAX + 1];
	struct epoch_walk *walk = arg;
	struct epoch_info info;

	(void)command;
	if (!attrs[PLOG_A_EPOCH] ||
	    nla_parse_nested(tb, PLOG_A_EPOCH_MAX, attrs[PLOG_A_EPOCH], NULL) < 0)
		return 0;
	info.epoch = (int32_t)take_number(tb[PLOG_A_EPOCH_LEADER_EPOCH]);
	info.start = (int64_t)take_number(tb[PLOG_A_EPOCH_START_OFFSET]);
	walk->fn(walk->arg, &info);
	return 0;
}

int kernel_epochs(struct net *net, const char *topic, uint32_t partition,
		  void (*fn)(void *arg, const struct epoch_info *info), void *arg,
		  struct plog_error *err)
{
	struct epoch_walk walk = { fn, arg };
	struct nlattr *nest;
	struct nl_msg *msg;
	char what[300];

	msg = partition_message(net, PLOG_CMD_EPOCH_GET, NLM_F_DUMP, topic, partition, &nest);
	nla_nest_end(msg, nest);
	snprintf(what, sizeof(what), "cannot list the leader epochs of %s/%" PRIu32, topic,
		 partition);
	return net_request(net, msg, on_epoch, &walk, what, err);
}

static bool stats_decode(struct nlattr **attrs, struct stats_info *stats)
{
	struct nlattr *tb[PLOG_A_STATS_MAX + 1];

	memset(stats, 0, sizeof(*stats));
	if (!attrs[PLOG_A_STATS] ||
	    nla_parse_nested(tb, PLOG_A_STATS_MAX, attrs[PLOG_A_STATS], NULL) < 0)
		return false;
	take_string(tb[PLOG_A_STATS_TOPIC], stats->topic, sizeof(stats->topic));
	stats->index = take_number(tb[PLOG_A_STATS_INDEX]);
	for (int i = PLOG_A_STATS_APPENDS; i <= PLOG_A_STATS_MAX; i++)
		if (i != PLOG_A_STATS_PAD)
			stats->counters[i] = take_number(tb[i]);
	return true;
}

static int on_stats(void *arg, uint8_t command, struct nlattr **attrs)
{
	(void)command;
	stats_decode(attrs, arg);
	return 0;
}

int kernel_stats(struct net *net, const char *topic, uint32_t partition,
		 struct stats_info *stats, struct plog_error *err)
{
	struct nl_msg *msg = net_message(net, PLOG_CMD_STATS_GET, 0);
	struct nlattr *nest;
	char what[300];

	memset(stats, 0, sizeof(*stats));
	snprintf(what, sizeof(what), "cannot show statistics");
	if (topic) {
		nest = nla_nest_start(msg, PLOG_A_STATS | NLA_F_NESTED);
		nla_put_string(msg, PLOG_A_STATS_TOPIC, topic);
		nla_put_u32(msg, PLOG_A_STATS_INDEX, partition);
		nla_nest_end(msg, nest);
		snprintf(what, sizeof(what), "cannot show statistics of %s/%" PRIu32, topic,
			 partition);
	}
	return net_request(net, msg, on_stats, stats, what, err);
}

struct stats_list {
	struct stats_info *entries;
	size_t count, room;
};

static int on_stats_listed(void *arg, uint8_t command, struct nlattr **attrs)
{
	struct stats_list *list = arg;

	(void)command;
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		void *larger = reallocarray(list->entries, room, sizeof(*list->entries));

		if (!larger)
			return -ENOMEM;
		list->entries = larger;
		list->room = room;
	}
	if (stats_decode(attrs, &list->entries[list->count]) &&
	    *list->entries[list->count].topic)
		list->count++;
	return 0;
}

int stats_by_place(const void *a, const void *b)
{
	const struct stats_info *x = a, *y = b;
	int order = strcmp(x->topic, y->topic);

	return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

int kernel_stats_all(struct net *net, struct stats_info **stats, size_t *count,
		     struct plog_error *err)
{
	struct nl_msg *msg = net_message(net, PLOG_CMD_STATS_GET, NLM_F_DUMP);
	struct stats_list list = { 0 };
	int ret;

	*stats = NULL;
	*count = 0;
	ret = net_request(net, msg, on_stats_listed, &list, "cannot list statistics", err);
	if (ret) {
		free(list.entries);
		return ret;
	}
	if (list.count)
		qsort(list.entries, list.count, sizeof(*list.entries), stats_by_place);
	*stats = list.entries;
	*count = list.count;
	return 0;
}

/* ---- waiting ---- */

static void progress(size_t ready, size_t all, bool last)
{
	static bool shown;

	if (!isatty(STDERR_FILENO) || (last && !shown))
		return;
	shown = true;
	fprintf(stderr, "\ropening partitions: %zu of %zu%s", ready, all, last ? "\n" : "");
	fflush(stderr);
}

/*
 * Let events come until one has come for each of @opening partitions.  A look at
 * all of them for each event would cost as much as their number squared.
 */
static void wait_events(struct net *net, const struct partition_list *wanted, size_t opening)
{
	size_t seen = 0;

	while (seen < opening && !interrupted) {
		int got = net_events_wait(net, 1000, NULL, NULL);

		/* nothing for a second, or some were lost: time for a look */
		if (got <= 0)
			return;
		seen += got;
		progress(wanted->count - (opening - (seen < opening ? seen : opening)),
			 wanted->count, false);
	}
}

int kernel_wait_online(struct net *net, const struct partition_list *wanted,
		       void (*failed)(void *arg, const struct partition_info *info), void *arg,
		       struct plog_error *err)
{
	static const struct partition_info gone = { .state = PLOG_PARTITION_CLOSED };
	struct partition_list now;
	size_t opening;

	for (;;) {
		/* Events only say when to look: they may get lost, a dump does not. */
		int ret = kernel_partition_list(net, NULL, &now, err);

		if (ret)
			return ret;
		opening = 0;
		for (size_t i = 0; i < wanted->count; i++) {
			const struct partition_info *info;

			info = partition_list_find(&now, wanted->entries[i].topic,
						   wanted->entries[i].index);
			if (info && info->state == PLOG_PARTITION_OPENING)
				opening++;
		}
		if (!opening)
			break;
		partition_list_free(&now);
		progress(wanted->count - opening, wanted->count, false);
		if (interrupted)
			return plog_error_set(err, -EINTR, "interrupted; partitions go on opening, "
					      "see: plogctl partition show");
		wait_events(net, wanted, opening);
	}
	progress(wanted->count, wanted->count, true);
	for (size_t i = 0; i < wanted->count; i++) {
		const struct partition_info *info;
		struct partition_info missing = gone;

		info = partition_list_find(&now, wanted->entries[i].topic,
					   wanted->entries[i].index);
		if (!info) {
			memcpy(missing.topic, wanted->entries[i].topic, sizeof(missing.topic));
			missing.index = wanted->entries[i].index;
			info = &missing;
		}
		if (info->state != PLOG_PARTITION_ONLINE)
			failed(arg, info);
	}
	partition_list_free(&now);
	return 0;
}
