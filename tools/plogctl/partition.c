// SPDX-License-Identifier: MIT
/* Partitions, their segments and leader epochs. */
#include "plogctl.h"

#include <inttypes.h>
#include <string.h>

static void say_one(const struct ctl *ctl, const struct partition_info *p)
{
	char id[DATADIR_ID_TEXT + 1];

	datadir_id_text(p->topic_id, id);
	line("partition", "%s/%" PRIu32, p->topic, p->index);
	line("topic id", "%s", id);
	if (p->error)
		line("state", "%s: %s", partition_state_text(p->state), strerror(p->error));
	else
		line("state", "%s", partition_state_text(p->state));
	if (p->node)
		line("node", "/dev/plog/%s/%" PRIu32, p->topic, p->index);
	else
		line("node", "none");
	line("owner", "%s:%s", user_text(p->uid), group_text(p->gid));
	line("mode", "%04o", p->mode);
	line("leader epoch", "%" PRId32, p->leader_epoch);
	line("log start", "%" PRId64, p->log_start);
	line("high watermark", "%" PRId64, p->high_watermark);
	line("last stable", "%" PRId64, p->last_stable);
	line("log end", "%" PRId64, p->log_end);
	line("newest timestamp", "%s", time_text(p->max_timestamp));
	line("size", "%s in %" PRIu32 " segment%s", size_text(ctl, p->bytes), p->segments,
	     p->segments == 1 ? "" : "s");
	line("flags", "%s%s%s%s%s%s%s", p->flags ? "" : "-",
	     p->flags & PLOG_STATE_REPLICATED ? "replicated " : "",
	     p->flags & PLOG_STATE_LEADER ? "leader " : "",
	     p->flags & PLOG_STATE_BELOW_MIN_ISR ? "below-min-isr " : "",
	     p->flags & PLOG_STATE_COMPACT ? "compact " : "",
	     p->flags & PLOG_STATE_INTERNAL ? "internal " : "",
	     p->flags & PLOG_STATE_LOG_APPEND_TIME ? "log-append-time" : "");
	line("max.message.bytes", "%" PRIu32, p->max_message_bytes);
	line("segment.bytes", "%" PRIu32, p->segment_bytes);
	line("segment.ms", "%" PRIu64, p->segment_ms);
	line("index.interval.bytes", "%" PRIu32, p->index_interval_bytes);
	line("segment.index.bytes", "%" PRIu32, p->index_bytes);
	line("segment.jitter.ms", "%" PRIu64, p->segment_jitter_ms);
	line("preallocate", "%s", p->preallocate ? "true" : "false");
	line("retention.ms", "%" PRId64, p->retention_ms);
	line("retention.bytes", "%" PRId64, p->retention_bytes);
	line("file.delete.delay.ms", "%" PRIu64, p->file_delete_delay_ms);
	line("flush.messages", "%" PRIu64, p->flush_messages);
	line("flush.ms", "%" PRIu64, p->flush_ms);
	line("retired segments", "%" PRIu32, p->retired);
}

static void say_many(const struct ctl *ctl, const struct partition_list *list)
{
	static const struct column columns[] = {
		{ "TOPIC", false }, { "PARTITION", true }, { "STATE", false }, { "START", true },
		{ "HIGH", true }, { "END", true }, { "SIZE", true }, { "SEGMENTS", true },
		{ "NEWEST", false }, { "ERROR", false },
	};
	struct table *t = TABLE_NEW(columns);

	for (size_t i = 0; i < list->count; i++) {
		const struct partition_info *p = &list->entries[i];

		table_cell(t, "%s", p->topic);
		table_cell(t, "%" PRIu32, p->index);
		table_cell(t, "%s", partition_state_text(p->state));
		table_cell(t, "%" PRId64, p->log_start);
		table_cell(t, "%" PRId64, p->high_watermark);
		table_cell(t, "%" PRId64, p->log_end);
		table_cell(t, "%s", size_text(ctl, p->bytes));
		table_cell(t, "%" PRIu32, p->segments);
		table_cell(t, "%s", time_text(p->max_timestamp));
		table_cell(t, "%s", p->error ? strerror(p->error) : "-");
	}
	table_print(t);
}

static int show_one(const struct ctl *ctl, struct net *net, uint32_t index,
		    struct plog_error *err)
{
	struct partition_info info;
	int ret = kernel_partition_get(net, ctl->args[0], index, &info, err);

	if (ret)
		return ret;
	if (ctl->json)
		json_print(partition_json(&info), false);
	else
		say_one(ctl, &info);
	return 0;
}

static int show_many(const struct ctl *ctl, struct net *net, struct plog_error *err)
{
	const char *topic = ctl->arg_count ? ctl->args[0] : NULL;
	struct partition_list list;
	struct json_object *all;
	int ret = kernel_partition_list(net, topic, &list, err);

	if (ret)
		return ret;
	if (topic && !list.count) {
		partition_list_free(&list);
		return plog_error_set(err, -1, "there is no partition of a topic \"%s\"; see: "
				      "plogctl topic list", topic);
	}
	if (ctl->json) {
		all = json_list();
		for (size_t i = 0; i < list.count; i++)
			json_append(all, partition_json(&list.entries[i]));
		json_print(all, false);
	} else {
		say_many(ctl, &list);
	}
	partition_list_free(&list);
	return 0;
}

int partition_show(struct ctl *ctl)
{
	struct instance_info info;
	uint64_t index = 0;
	struct plog_error err;
	struct net *net;
	int ret;

	if (ctl->arg_count == 2 &&
	    number_parse(ctl->args[1], 0, UINT32_MAX, "the partition", &index, &err))
		return fail_usage(ctl, "%s", err.text);
	ret = net_open(&net, &err);
	if (!ret)
		ret = kernel_instance_need(net, &info, &err);
	if (!ret)
		ret = ctl->arg_count == 2 ? show_one(ctl, net, index, &err) :
					    show_many(ctl, net, &err);
	net_close(net);
	return ret ? fail(&err) : EXIT_OK;
}

/* ---- segments ---- */

static void on_segment(void *arg, const struct segment_info *s)
{
	struct listing *out = arg;

	if (out->all) {
		struct json_object *o = json_new();

		json_number(o, "base_offset", s->base_offset);
		json_unsigned(o, "bytes", s->bytes);
		json_number(o, "index_bytes", s->index_bytes);
		json_number(o, "timeindex_bytes", s->timeindex_bytes);
		json_number(o, "max_timestamp", s->max_timestamp);
		json_truth(o, "active", s->active);
		json_number(o, "pins", s->pins);
		json_unsigned(o, "generation", s->generation);
		json_append(out->all, o);
		return;
	}
	table_cell(out->table, "%" PRId64, s->base_offset);
	table_cell(out->table, "%s", size_text(out->ctl, s->bytes));
	table_cell(out->table, "%s", size_text(out->ctl, s->index_bytes));
	table_cell(out->table, "%s", size_text(out->ctl, s->timeindex_bytes));
	table_cell(out->table, "%s", time_text(s->max_timestamp));
	table_cell(out->table, "%" PRIu32, s->pins);
	table_cell(out->table, "%" PRIu64, s->generation);
	table_cell(out->table, "%s", s->active ? "active" : "-");
}

int segment_list(struct ctl *ctl)
{
	static const struct column columns[] = {
		{ "BASE", true }, { "SIZE", true }, { "INDEX", true }, { "TIMEINDEX", true },
		{ "NEWEST", false }, { "PINS", true }, { "GENERATION", true },
		{ "STATE", false },
	};
	struct listing out;
	struct plog_error err;
	struct net *net;
	uint64_t index;
	int ret;

	if (number_parse(ctl->args[1], 0, UINT32_MAX, "the partition", &index, &err))
		return fail_usage(ctl, "%s", err.text);
	ret = net_open(&net, &err);
	if (!ret) {
		LISTING_BEGIN(&out, ctl, columns);
		ret = kernel_segments(net, ctl->args[0], index, on_segment, &out, &err);
	}
	net_close(net);
	if (ret)
		return fail(&err);
	listing_print(&out);
	return EXIT_OK;
}

/* ---- leader epochs ---- */

static void on_epoch(void *arg, const struct epoch_info *e)
{
	struct listing *out = arg;

	if (out->all) {
		struct json_object *o = json_new();

		json_number(o, "leader_epoch", e->epoch);
		json_number(o, "start_offset", e->start);
		json_append(out->all, o);
		return;
	}
	table_cell(out->table, "%" PRId32, e->epoch);
	table_cell(out->table, "%" PRId64, e->start);
}

int epoch_list(struct ctl *ctl)
{
	static const struct column columns[] = { { "EPOCH", true }, { "START", true } };
	struct listing out;
	struct plog_error err;
	struct net *net;
	uint64_t index;
	int ret;

	if (number_parse(ctl->args[1], 0, UINT32_MAX, "the partition", &index, &err))
		return fail_usage(ctl, "%s", err.text);
	ret = net_open(&net, &err);
	if (!ret) {
		LISTING_BEGIN(&out, ctl, columns);
		ret = kernel_epochs(net, ctl->args[0], index, on_epoch, &out, &err);
	}
	net_close(net);
	if (ret)
		return fail(&err);
	listing_print(&out);
	return EXIT_OK;
}
