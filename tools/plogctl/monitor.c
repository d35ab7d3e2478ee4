// SPDX-License-Identifier: MIT
/* Events of the module as they come. */
#include "plogctl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

const struct option monitor_options[] = {
	{ "--count", "N", "end after N events", false },
	{ "--timeout", "SECONDS", "end after so much time", false },
	{ 0 }
};

struct watch {
	const struct ctl *ctl;
	uint64_t left;		/* events to go, UINT64_MAX for ever */
};

static int64_t clock_ms(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void say_instance(const struct watch *watch, const struct instance_info *info)
{
	const char *now = time_text(clock_ms(CLOCK_REALTIME));

	if (watch->ctl->json) {
		struct json_object *o = json_new();

		json_text(o, "time", now);
		json_text(o, "event", "instance");
		json_text(o, "state", instance_state_text(info->state));
		json_text(o, "data_dir", info->data_dir);
		json_number(o, "partitions", info->partitions);
		json_number(o, "online", info->online);
		json_unsigned(o, "incarnation", info->incarnation);
		json_print(o, true);
		return;
	}
	printf("%s instance %s", now, instance_state_text(info->state));
	if (*info->data_dir)
		printf(" data-dir=%s", info->data_dir);
	if (info->incarnation)
		printf(" daemon=%" PRIu64, info->incarnation);
	putchar('\n');
}

static void say_partition(const struct watch *watch, const struct partition_info *info)
{
	const char *now = time_text(clock_ms(CLOCK_REALTIME));

	if (watch->ctl->json) {
		struct json_object *o = partition_json(info);

		json_text(o, "time", now);
		json_text(o, "event", "partition");
		json_print(o, true);
		return;
	}
	printf("%s partition %s/%" PRIu32 " %s", now, info->topic, info->index,
	       partition_state_text(info->state));
	if (info->error)
		printf(" error=\"%s\"", strerror(info->error));
	if (info->state == PLOG_PARTITION_ONLINE)
		printf(" start=%" PRId64 " end=%" PRId64, info->log_start, info->log_end);
	putchar('\n');
}

static void say_retired(const struct watch *watch, const struct retired_info *info)
{
	const char *now = time_text(clock_ms(CLOCK_REALTIME));

	if (watch->ctl->json) {
		struct json_object *o = json_new();

		json_text(o, "time", now);
		json_text(o, "event", "retired");
		json_text(o, "topic", info->topic);
		json_number(o, "partition", info->index);
		json_print(o, true);
		return;
	}
	printf("%s retired %s/%" PRIu32 " has files to delete\n", now, info->topic, info->index);
}

static int on_event(void *arg, uint8_t command, struct nlattr **attrs)
{
	struct partition_info partition;
	struct instance_info instance;
	struct retired_info retired;
	struct watch *watch = arg;

	if (!watch->left)
		return 0;
	if (command == PLOG_CMD_INSTANCE_NTF && instance_decode(attrs, &instance))
		say_instance(watch, &instance);
	else if (command == PLOG_CMD_PARTITION_NTF && partition_decode(attrs, &partition))
		say_partition(watch, &partition);
	else if (command == PLOG_CMD_RETIRED_NTF && retired_decode(attrs, &retired))
		say_retired(watch, &retired);
	else
		return 0;
	if (watch->left != UINT64_MAX)
		watch->left--;
	return 0;
}

static void say_lost(const struct watch *watch)
{
	const char *now = time_text(clock_ms(CLOCK_REALTIME));

	if (watch->ctl->json) {
		struct json_object *o = json_new();

		json_text(o, "time", now);
		json_text(o, "event", "lost");
		json_print(o, true);
		return;
	}
	printf("%s events were lost: look at \"plogctl partition show\"\n", now);
}

int monitor(struct ctl *ctl)
{
	const char *count = option_value(ctl, "--count"), *text = option_value(ctl, "--timeout");
	struct watch watch = { .ctl = ctl, .left = UINT64_MAX };
	uint64_t timeout = 0;
	struct plog_error err;
	struct net *net;
	int64_t end;
	int ret;

	if ((count && number_parse(count, 1, UINT32_MAX, "--count", &watch.left, &err)) ||
	    (text && number_parse(text, 1, 86400, "--timeout", &timeout, &err)))
		return fail_usage(ctl, "%s", err.text);
	interrupt_catch();
	ret = net_open(&net, &err);
	if (!ret)
		ret = net_events_open(net, &err);
	end = clock_ms(CLOCK_MONOTONIC) + (int64_t)timeout * 1000;
	while (!ret && watch.left && !interrupted) {
		int64_t rest = timeout ? end - clock_ms(CLOCK_MONOTONIC) : -1;

		if (timeout && rest <= 0)
			break;
		if (net_events_wait(net, rest, on_event, &watch) == -ENOBUFS)
			say_lost(&watch);
		if (fflush(stdout))
			break;
	}
	net_close(net);
	return ret ? fail(&err) : EXIT_OK;
}
