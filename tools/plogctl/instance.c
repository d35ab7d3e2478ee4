// SPDX-License-Identifier: MIT
#include "plogctl.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define CHANGE_TIMEOUT_MS	10000

const struct option instance_set_options[] = {
	{ "--data-dir", "DIR", "the data directory; made if there is none", false },
	{ "--retention-check-ms", "MS", "how often retention looks (default 300000)", false },
	{ "--max-partitions", "N", "most partitions of the instance (20000)", false },
	{ "--max-waiters", "N", "most calls that wait, of one partition (4096)", false },
	{ "--max-descriptors", "N", "most descriptors that users have open (65536)", false },
	{ "--max-append-bytes", "N", "most bytes of one append (67108864)", false },
	{ 0 }
};

const struct option instance_stop_options[] = {
	{ "--timeout", "SECONDS", "how long to wait for it (default 60, 0: do not wait)", false },
	{ 0 }
};

/* One "instance set" under way. */
struct setting {
	struct ctl *ctl;
	struct net *net;
	struct datadir *dir;
	struct partition_list wanted;
	uint32_t limits[INSTANCE_LIMITS];
	size_t topics, adopted, failures;
	struct json_object *failed;
};

static void say_failed(void *arg, const struct partition_info *info)
{
	struct setting *set = arg;
	const char *why = info->error ? strerror(info->error) :
			  info->state == PLOG_PARTITION_CLOSED ? "taken out of service meanwhile" :
								 "no reason told";

	set->failures++;
	warn("partition %s/%" PRIu32 " is %s: %s", info->topic, info->index,
	     partition_state_text(info->state), why);
	if (set->failed) {
		struct json_object *o = json_new();

		json_text(o, "topic", info->topic);
		json_number(o, "partition", info->index);
		json_text(o, "state", partition_state_text(info->state));
		json_text(o, "error", why);
		json_append(set->failed, o);
	}
}

static void say_refused(struct setting *set, const char *topic, uint32_t partition,
			const struct plog_error *err)
{
	set->failures++;
	warn("%s", err->text);
	if (set->failed) {
		struct json_object *o = json_new();

		json_text(o, "topic", topic);
		json_number(o, "partition", partition);
		json_text(o, "error", err->text);
		json_append(set->failed, o);
	}
}

/* A topic of a directory that Kafka has written gets a file, and an id if it has none. */
static int adopt(struct setting *set, struct datadir_topic *topic, struct plog_error *err)
{
	static const uint8_t none[DATADIR_ID_SIZE];

	if (!topic->adopted)
		return 0;
	if (!memcmp(topic->id, none, sizeof(none)) && datadir_id_random(topic->id))
		return plog_error_set(err, -EIO, "no random bytes to be had");
	set->adopted++;
	return datadir_topic_write(set->dir, topic, err);
}

static int serve_topics(struct setting *set, struct plog_error *err)
{
	struct datadir_topic *topics;
	struct partition_list now;
	size_t count;
	int ret;

	ret = kernel_partition_list(set->net, NULL, &now, err);
	if (ret)
		return ret;
	ret = datadir_scan(set->dir, &topics, &count, err);
	for (size_t i = 0; !ret && i < count; i++) {
		set->topics++;
		ret = adopt(set, &topics[i], err);
		for (uint32_t n = 0; !ret && n < topics[i].partitions && !interrupted; n++) {
			struct plog_error why;
			bool made = false;

			partition_list_add(&set->wanted, topics[i].name, n);
			if (partition_list_find(&now, topics[i].name, n))
				continue;
			if (kernel_partition_new(set->net, set->dir, &topics[i], n, &made, &why)) {
				say_refused(set, topics[i].name, n, &why);
				set->wanted.count--;
			}
			if (made)
				warn("the folder of partition %s/%" PRIu32 " was missing; it "
				     "begins anew, empty", topics[i].name, n);
		}
	}
	datadir_topics_free(topics, count);
	partition_list_free(&now);
	return ret;
}

static bool limits_given(const struct setting *set)
{
	for (size_t i = 0; i < INSTANCE_LIMITS; i++)
		if (set->limits[i])
			return true;
	return false;
}

static int limits_read(struct setting *set, struct plog_error *err)
{
	for (size_t i = 0; i < INSTANCE_LIMITS; i++) {
		const struct instance_limit *limit = &instance_limits[i];
		const char *text = option_value(set->ctl, limit->option);
		uint64_t value;
		int ret;

		if (!text)
			continue;
		ret = number_parse(text, limit->min, limit->max, limit->option, &value, err);
		if (ret)
			return ret;
		set->limits[i] = value;
	}
	return 0;
}

/* Without a directory: of the namespace, whether something runs there or not. */
static int set_limits(struct setting *set)
{
	struct plog_error err = { "" };
	int ret = net_open(&set->net, &err);

	if (!ret)
		ret = kernel_instance_set(set->net, NULL, set->limits, &err);
	net_close(set->net);
	if (ret)
		return fail(&err);
	return instance_show(set->ctl);
}

/* Lock the directory and make the instance, or attach to the one that serves it. */
static int open_directory(struct setting *set, const char *path, struct plog_error *err)
{
	struct instance_info info;
	int ret;

	ret = kernel_instance_get(set->net, &info, err);
	if (ret)
		return ret;
	if (info.state == PLOG_INSTANCE_STOPPING)
		return plog_error_set(err, -EBUSY, "the instance on %s is still stopping; wait for "
				      "it with: plogctl instance stop", info.data_dir);
	if (info.state == PLOG_INSTANCE_RUNNING) {
		if (!datadir_same(info.data_dir, path))
			return plog_error_set(err, -EBUSY, "this network namespace serves %s "
					      "already; stop that first: plogctl instance stop",
					      info.data_dir);
		ret = datadir_open(info.data_dir, DATADIR_ATTACH, &set->dir, err);
		if (!ret && limits_given(set))
			ret = kernel_instance_set(set->net, NULL, set->limits, err);
		return ret;
	}
	ret = datadir_open(path, DATADIR_CREATE, &set->dir, err);
	return ret ? ret : kernel_instance_set(set->net, set->dir, set->limits, err);
}

static int set_directory(struct setting *set, const char *path, struct plog_error *err)
{
	int ret;

	ret = net_events_open(set->net, err);
	if (!ret)
		ret = open_directory(set, path, err);
	if (ret)
		return ret;
	ret = datadir_change_begin(set->dir, CHANGE_TIMEOUT_MS, err);
	if (ret)
		return ret;
	ret = serve_topics(set, err);
	datadir_change_end(set->dir);
	if (ret)
		return ret;
	return kernel_wait_online(set->net, &set->wanted, say_failed, set, err);
}

static void say_set(const struct setting *set)
{
	size_t online = set->wanted.count;

	if (set->ctl->json) {
		struct json_object *o = json_new();

		json_text(o, "data_dir", datadir_path(set->dir));
		json_number(o, "topics", set->topics);
		json_number(o, "adopted", set->adopted);
		json_number(o, "partitions", online);
		json_put(o, "failed", set->failed);
		json_print(o, false);
		return;
	}
	printf("serving %s: %zu topic%s, %zu partition%s", datadir_path(set->dir), set->topics,
	       set->topics == 1 ? "" : "s", online, online == 1 ? "" : "s");
	if (set->adopted)
		printf(", %zu adopted from Apache Kafka", set->adopted);
	if (set->failures)
		printf(", %zu NOT online", set->failures);
	putchar('\n');
}

/* Of the instance that runs, and nothing else. */
static int set_check(const struct ctl *ctl, uint32_t ms)
{
	struct plog_error err;
	struct net *net;
	int ret;

	ret = net_open(&net, &err);
	if (!ret)
		ret = kernel_retention_check(net, ms, &err);
	net_close(net);
	if (ret)
		return fail(&err);
	if (ctl->json) {
		struct json_object *o = json_new();

		json_number(o, "retention_check_ms", ms);
		json_print(o, false);
	} else {
		printf("retention looks every %" PRIu32 " ms\n", ms);
	}
	return EXIT_OK;
}

int instance_set(struct ctl *ctl)
{
	const char *path = option_value(ctl, "--data-dir");
	const char *check = option_value(ctl, "--retention-check-ms");
	struct setting set = { .ctl = ctl };
	struct plog_error err = { "" };
	uint64_t ms = 0;
	int ret;

	if (check && number_parse(check, 1, INT_MAX, "--retention-check-ms", &ms, &err))
		return fail_usage(ctl, "%s", err.text);
	if (limits_read(&set, &err))
		return fail_usage(ctl, "%s", err.text);
	if (!path && limits_given(&set)) {
		ret = set_limits(&set);
		if (ret || !check)
			return ret;
	}
	if (!path && !check)
		return fail_usage(ctl, "--data-dir DIR is missing");
	interrupt_catch();
	if (!path)
		return set_check(ctl, ms);
	if (ctl->json)
		set.failed = json_list();
	ret = net_open(&set.net, &err);
	if (!ret)
		ret = set_directory(&set, path, &err);
	if (!ret && check)
		ret = kernel_retention_check(set.net, ms, &err);
	if (!ret)
		say_set(&set);
	else
		json_object_put(set.failed);
	partition_list_free(&set.wanted);
	datadir_close(set.dir);
	net_close(set.net);
	if (ret)
		return fail(&err);
	return set.failures ? EXIT_FAILED : EXIT_OK;
}

int instance_show(struct ctl *ctl)
{
	struct instance_info info;
	struct plog_error err;
	struct net *net;
	int ret;

	ret = net_open(&net, &err);
	if (!ret)
		ret = kernel_instance_get(net, &info, &err);
	net_close(net);
	if (ret)
		return fail(&err);
	if (ctl->json) {
		struct json_object *o = json_new();

		json_text(o, "state", instance_state_text(info.state));
		json_text(o, "data_dir", info.data_dir);
		json_number(o, "partitions", info.partitions);
		json_number(o, "online", info.online);
		json_unsigned(o, "incarnation", info.incarnation);
		json_text(o, "version", info.version);
		json_number(o, "retention_check_ms", info.retention_check_ms);
		json_number(o, "descriptors", info.descriptors);
		for (size_t i = 0; i < INSTANCE_LIMITS; i++)
			json_number(o, instance_limits[i].name, info.limits[i]);
		json_print(o, false);
		return EXIT_OK;
	}
	line("state", "%s", instance_state_text(info.state));
	line("data directory", "%s", *info.data_dir ? info.data_dir : "-");
	line("partitions", "%" PRIu32 ", %" PRIu32 " online", info.partitions, info.online);
	if (info.incarnation)
		line("daemon", "registered, incarnation %" PRIu64, info.incarnation);
	else
		line("daemon", "none");
	line("retention check", "every %" PRIu32 " ms", info.retention_check_ms);
	line("module", "%s", info.version);
	line("descriptors", "%" PRIu32, info.descriptors);
	for (size_t i = 0; i < INSTANCE_LIMITS; i++)
		line(instance_limits[i].title, "%" PRIu32, info.limits[i]);
	return EXIT_OK;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Until there is no instance any more. Events only say when to look. */
static int wait_stopped(struct net *net, uint64_t timeout_s, struct plog_error *err)
{
	int64_t end = now_ms() + (int64_t)timeout_s * 1000;
	struct instance_info info;

	for (;;) {
		int ret = kernel_instance_get(net, &info, err);

		if (ret)
			return ret;
		if (info.state == PLOG_INSTANCE_NONE || info.state == PLOG_INSTANCE_STOPPED)
			return 0;
		if (interrupted)
			return plog_error_set(err, -EINTR, "interrupted; the instance goes on "
					      "stopping");
		if (now_ms() >= end)
			return plog_error_set(err, -ETIMEDOUT, "the instance has not stopped "
					      "within %" PRIu64 " s; it goes on stopping, see: "
					      "plogctl instance show", timeout_s);
		net_events_wait(net, 500, NULL, NULL);
	}
}

static int stop(struct net *net, uint64_t timeout_s, char *data_dir, size_t size,
		struct plog_error *err)
{
	struct instance_info info;
	int ret;

	ret = net_events_open(net, err);
	if (!ret)
		ret = kernel_instance_get(net, &info, err);
	if (ret)
		return ret;
	snprintf(data_dir, size, "%s", info.data_dir);
	if (info.state == PLOG_INSTANCE_NONE || info.state == PLOG_INSTANCE_STOPPED)
		return plog_error_set(err, -ENODEV, "there is nothing to stop: no data directory "
				      "is set in this network namespace");
	if (info.state == PLOG_INSTANCE_RUNNING) {
		ret = kernel_instance_stop(net, err);
		if (ret)
			return ret;
	}
	return timeout_s ? wait_stopped(net, timeout_s, err) : 0;
}

int instance_stop(struct ctl *ctl)
{
	const char *text = option_value(ctl, "--timeout");
	char data_dir[PLOG_LABEL_MAX + 1] = "";
	struct net *net = NULL;
	struct plog_error err;
	uint64_t timeout = 60;
	int ret;

	if (text && number_parse(text, 0, 86400, "--timeout", &timeout, &err))
		return fail_usage(ctl, "%s", err.text);
	interrupt_catch();
	ret = net_open(&net, &err);
	if (!ret)
		ret = stop(net, timeout, data_dir, sizeof(data_dir), &err);
	net_close(net);
	if (ret)
		return fail(&err);
	if (ctl->json) {
		struct json_object *o = json_new();

		json_text(o, "data_dir", data_dir);
		json_text(o, "state", timeout ? "stopped" : "stopping");
		json_print(o, false);
	} else {
		printf("%s: %s\n", data_dir, timeout ? "closed cleanly" : "stopping");
	}
	return EXIT_OK;
}
