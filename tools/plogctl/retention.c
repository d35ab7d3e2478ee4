// SPDX-License-Identifier: MIT
/* What goes from a log, and when: retention, records deleted by command, rolls. */
#include "plogctl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_S		60

static int take_partition(const struct ctl *ctl, uint32_t *index, struct plog_error *err)
{
	uint64_t number = 0;
	int ret = 0;

	if (ctl->arg_count >= 2)
		ret = number_parse(ctl->args[1], 0, UINT32_MAX, "the partition", &number, err);
	*index = number;
	return ret;
}

int retention_run(struct ctl *ctl)
{
	struct instance_info info;
	struct plog_error err;
	uint32_t index;
	struct net *net;
	int ret;

	if (take_partition(ctl, &index, &err))
		return fail_usage(ctl, "%s", err.text);
	ret = net_open(&net, &err);
	if (!ret)
		ret = kernel_instance_need(net, &info, &err);
	if (!ret)
		ret = kernel_retention_run(net, ctl->arg_count ? ctl->args[0] : NULL,
					   ctl->arg_count >= 2 ? &index : NULL, &err);
	net_close(net);
	if (ret)
		return fail(&err);
	if (ctl->json) {
		struct json_object *o = json_new();

		json_truth(o, "started", true);
		json_print(o, false);
	} else {
		printf("retention looks at %s%s%s now\n", ctl->arg_count ? ctl->args[0] :
		       "all partitions", ctl->arg_count >= 2 ? "/" : "",
		       ctl->arg_count >= 2 ? ctl->args[1] : "");
	}
	return EXIT_OK;
}

/* ---- commands to one partition, whose outcome is waited for ---- */

static int64_t now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* Until @done says so of the partition. Events only say when to look. */
static int wait_for(struct net *net, const char *topic, uint32_t index,
		    bool (*done)(const struct partition_info *info, int64_t wanted),
		    int64_t wanted, struct partition_info *info, struct plog_error *err)
{
	int64_t end = now_s() + WAIT_S;

	for (;;) {
		int ret = kernel_partition_get(net, topic, index, info, err);

		if (ret || done(info, wanted))
			return ret;
		if (info->state != PLOG_PARTITION_ONLINE)
			return plog_error_set(err, -EIO, "partition %s/%" PRIu32 " is %s: %s",
					      topic, index, partition_state_text(info->state),
					      info->error ? strerror(info->error) : "nothing was done");
		if (interrupted)
			return plog_error_set(err, -EINTR, "interrupted; the module goes on");
		if (now_s() >= end)
			return plog_error_set(err, -ETIMEDOUT, "partition %s/%" PRIu32 ": not done "
					      "within %d s; the kernel's log (dmesg) may say why",
					      topic, index, WAIT_S);
		net_events_wait(net, 200, NULL, NULL);
	}
}

int partition_roll(struct ctl *ctl)
{
	struct partition_info info;
	struct plog_error err;
	uint32_t index;
	struct net *net;
	int ret;

	if (take_partition(ctl, &index, &err))
		return fail_usage(ctl, "%s", err.text);
	interrupt_catch();
	ret = net_open(&net, &err);
	if (!ret)
		ret = net_events_open(net, &err);
	if (!ret)
		ret = kernel_partition_roll(net, ctl->args[0], index, &err);
	if (!ret) {
		/* the event that it was done, or a second: one without records rolls nothing */
		net_events_wait(net, 1000, NULL, NULL);
		ret = kernel_partition_get(net, ctl->args[0], index, &info, &err);
	}
	net_close(net);
	if (ret)
		return fail(&err);
	if (ctl->json)
		json_print(partition_json(&info), false);
	else
		printf("%s/%" PRIu32 ": %" PRIu32 " segment%s, log end %" PRId64 "\n", info.topic,
		       info.index, info.segments, info.segments == 1 ? "" : "s", info.log_end);
	return EXIT_OK;
}

/* Kafka's rules for DeleteRecords. */
static int may_delete(struct net *net, const struct instance_info *instance, const char *name,
		      struct plog_error *err)
{
	struct datadir_topic topic = { 0 };
	int ret;

	if (topicconfig_topic_internal(name))
		return plog_error_set(err, -EPERM, "topic %s is an internal one: its records "
				      "cannot be deleted", name);
	ret = instance->incarnation ? remote_topic_read(net, name, &topic, err) :
				      local_topic_read(instance->data_dir, name, &topic, err);
	if (!ret && !topicconfig_has(&topic.config, NULL, "cleanup.policy", "delete"))
		ret = plog_error_set(err, -EPERM, "topic %s has a cleanup.policy without "
				     "\"delete\": its records cannot be deleted", name);
	datadir_topic_clear(&topic);
	return ret;
}

static bool has_started(const struct partition_info *info, int64_t wanted)
{
	return info->log_start >= wanted;
}

static int delete_records(struct net *net, const char *topic, uint32_t index, int64_t offset,
			  struct partition_info *info, struct plog_error *err)
{
	struct instance_info instance;
	int ret;

	ret = net_events_open(net, err);
	if (!ret)
		ret = kernel_instance_need(net, &instance, err);
	if (!ret)
		ret = may_delete(net, &instance, topic, err);
	if (!ret && offset < 0) {
		ret = kernel_partition_get(net, topic, index, info, err);
		offset = info->high_watermark;
	}
	if (!ret)
		ret = kernel_delete_records(net, topic, index, offset, err);
	return ret ? ret : wait_for(net, topic, index, has_started, offset, info, err);
}

int partition_delete_records(struct ctl *ctl)
{
	bool all = !strcmp(ctl->args[2], "high-watermark");
	struct partition_info info;
	struct plog_error err;
	uint64_t offset = 0;
	uint32_t index;
	struct net *net;
	int ret;

	if (take_partition(ctl, &index, &err) ||
	    (!all && number_parse(ctl->args[2], 0, INT64_MAX, "the offset", &offset, &err)))
		return fail_usage(ctl, "%s", err.text);
	interrupt_catch();
	ret = net_open(&net, &err);
	if (!ret)
		ret = delete_records(net, ctl->args[0], index, all ? -1 : (int64_t)offset, &info,
				     &err);
	net_close(net);
	if (ret)
		return fail(&err);
	if (ctl->json)
		json_print(partition_json(&info), false);
	else
		printf("%s/%" PRIu32 " starts at offset %" PRId64 "\n", info.topic, info.index,
		       info.log_start);
	return EXIT_OK;
}

/* ---- retired segments ---- */

static void on_retired(void *arg, const struct retired_info *r)
{
	struct listing *out = arg;

	if (out->all) {
		struct json_object *o = json_new();

		json_text(o, "topic", r->topic);
		json_number(o, "partition", r->index);
		json_number(o, "base_offset", r->base_offset);
		json_unsigned(o, "bytes", r->bytes);
		json_number(o, "pins", r->pins);
		json_text(o, "state", retired_state_text(r->state));
		json_append(out->all, o);
		return;
	}
	table_cell(out->table, "%s", r->topic);
	table_cell(out->table, "%" PRIu32, r->index);
	table_cell(out->table, "%" PRId64, r->base_offset);
	table_cell(out->table, "%s", size_text(out->ctl, r->bytes));
	table_cell(out->table, "%" PRIu32, r->pins);
	table_cell(out->table, "%s", retired_state_text(r->state));
}

int segment_retired(struct ctl *ctl)
{
	static const struct column columns[] = {
		{ "TOPIC", false }, { "PARTITION", true }, { "BASE", true }, { "SIZE", true },
		{ "PINS", true }, { "STATE", false },
	};
	struct listing out;
	struct instance_info info;
	struct plog_error err;
	uint32_t index;
	struct net *net;
	int ret;

	if (take_partition(ctl, &index, &err))
		return fail_usage(ctl, "%s", err.text);
	ret = net_open(&net, &err);
	if (!ret)
		ret = kernel_instance_need(net, &info, &err);
	if (!ret) {
		LISTING_BEGIN(&out, ctl, columns);
		ret = kernel_retired(net, ctl->arg_count ? ctl->args[0] : NULL,
				     ctl->arg_count >= 2 ? &index : NULL, on_retired, &out, &err);
	}
	net_close(net);
	if (ret)
		return fail(&err);
	listing_print(&out);
	return EXIT_OK;
}

/* What there was to delete when we looked. */
struct deleting {
	struct retired_info *list;
	size_t count, room;
	size_t deleted;
};

static void note_deletable(void *arg, const struct retired_info *r)
{
	struct deleting *d = arg;

	/* and what somebody has taken who did not finish, or is at it: there is a lock for that */
	if (r->state != PLOG_RETIRED_STATE_READY && r->state != PLOG_RETIRED_STATE_EMPTIED &&
	    r->state != PLOG_RETIRED_STATE_TAKEN)
		return;
	if (d->count == d->room) {
		size_t room = d->room ? 2 * d->room : 64;
		void *larger = reallocarray(d->list, room, sizeof(*d->list));

		if (!larger) {
			warn("out of memory");
			exit(EXIT_FAILED);
		}
		d->list = larger;
		d->room = room;
	}
	d->list[d->count++] = *r;
}

/* One segment's files, in the folder of its partition. */
static int delete_one(struct net *net, struct datadir *dir, const struct retired_info *r,
		      struct plog_error *err)
{
	int fd, ret;

	fd = datadir_partition_find(dir, r->topic, r->index);
	if (fd < 0)
		return plog_error_set(err, fd, "the folder of %s/%" PRIu32 ": %s", r->topic,
				      r->index, strerror(-fd));
	ret = datadir_segments_lock(fd);
	if (ret)
		ret = plog_error_set(err, ret, "the folder of %s/%" PRIu32 ": %s", r->topic, r->index,
				     ret == -EAGAIN ? "another process is deleting segments there" :
				     strerror(-ret));
	else
		ret = kernel_retired_take(net, r, err);
	if (!ret) {
		ret = datadir_segment_delete(fd, r->base_offset, err);
		kernel_retired_done(net, r, ret, ret ? NULL : err);
	}
	close(fd);
	return ret;
}

int segment_clean(struct ctl *ctl)
{
	struct instance_info info = { 0 };
	struct deleting d = { 0 };
	struct datadir *dir = NULL;
	struct plog_error err;
	struct net *net;
	uint32_t index;
	int ret;

	if (take_partition(ctl, &index, &err))
		return fail_usage(ctl, "%s", err.text);
	ret = net_open(&net, &err);
	if (!ret)
		ret = kernel_instance_need(net, &info, &err);
	if (!ret && info.incarnation)
		ret = plog_error_set(&err, -EBUSY, "a daemon is registered: it deletes the files "
				     "by itself");
	if (!ret)
		ret = datadir_open(info.data_dir, DATADIR_ATTACH, &dir, &err);
	if (!ret)
		ret = kernel_retired(net, ctl->arg_count ? ctl->args[0] : NULL,
				     ctl->arg_count >= 2 ? &index : NULL, note_deletable, &d, &err);
	for (size_t i = 0; !ret && i < d.count; i++) {
		ret = delete_one(net, dir, &d.list[i], &err);
		d.deleted += !ret;
	}
	free(d.list);
	if (dir)
		datadir_close(dir);
	net_close(net);
	if (ret)
		return fail(&err);
	if (ctl->json) {
		struct json_object *o = json_new();

		json_number(o, "deleted", d.deleted);
		json_print(o, false);
	} else {
		printf("files of %zu segment%s deleted\n", d.deleted, d.deleted == 1 ? "" : "s");
	}
	return EXIT_OK;
}
