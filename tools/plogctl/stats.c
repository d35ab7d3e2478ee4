// SPDX-License-Identifier: MIT
#include "plogctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct option stats_options[] = {
	{ "--interval", "SECONDS", "print what was counted in each interval", false },
	{ "--count", "N", "end after N intervals", false },
	{ 0 }
};

static const struct counter {
	uint32_t attr;
	const char *name;	/* in JSON and in the list of one */
	const char *title;	/* in the table */
	bool bytes;
	bool now;		/* no counter: as it is now */
} counters[] = {
	{ PLOG_A_STATS_APPENDS, "appends", "APPENDS", false, false },
	{ PLOG_A_STATS_RECORDS, "records", "RECORDS", false, false },
	{ PLOG_A_STATS_APPEND_BYTES, "append_bytes", "IN", true, false },
	{ PLOG_A_STATS_APPEND_REFUSED, "append_refused", "REFUSED", false, false },
	{ PLOG_A_STATS_READS, "reads", "READS", false, false },
	{ PLOG_A_STATS_READ_BYTES, "read_bytes", "OUT", true, false },
	{ PLOG_A_STATS_WAKEUPS, "wakeups", "WAKEUPS", false, false },
	{ PLOG_A_STATS_ROLLS, "rolls", "ROLLS", false, false },
	{ PLOG_A_STATS_FSYNCS, "fsyncs", "FSYNCS", false, false },
	{ PLOG_A_STATS_RECOVERED_BYTES, "recovered_bytes", "RECOVERED", true, false },
	{ PLOG_A_STATS_TRUNCATED_BYTES, "truncated_bytes", "TRUNCATED", true, false },
	{ PLOG_A_STATS_LOOKUPS, "lookups", "LOOKUPS", false, false },
	{ PLOG_A_STATS_SYNC_ERRORS, "sync_errors", "SYNCERR", false, false },
	{ PLOG_A_STATS_INDEX_REBUILDS, "index_rebuilds", "REBUILDS", false, false },
	{ PLOG_A_STATS_RETIRED_SEGMENTS, "retired_segments", "RETIRED", false, false },
	{ PLOG_A_STATS_RETIRED_BYTES, "retired_bytes", "RETIRED SIZE", true, false },
	{ PLOG_A_STATS_WAITERS, "waiters", "WAITERS", false, true },
	{ PLOG_A_STATS_OPEN_FILES, "open_files", "FILES", false, true },
	{ PLOG_A_STATS_PINS, "pins", "PINS", false, true },
};

#define COUNTERS (sizeof(counters) / sizeof(counters[0]))

/* Totals first, then partitions. */
struct sample {
	struct stats_info *entries;
	size_t count;
};

static int sample_take(const struct ctl *ctl, struct net *net, uint32_t index,
		       struct sample *sample, struct plog_error *err)
{
	struct stats_info total, *all;
	size_t count, kept = 0;
	int ret;

	memset(sample, 0, sizeof(*sample));
	if (ctl->arg_count == 2) {
		ret = kernel_stats(net, ctl->args[0], index, &total, err);
		count = 0;
		all = NULL;
	} else {
		ret = kernel_stats(net, NULL, 0, &total, err);
		if (!ret)
			ret = kernel_stats_all(net, &all, &count, err);
	}
	if (ret)
		return ret;
	sample->entries = calloc(count + 1, sizeof(*sample->entries));
	if (!sample->entries) {
		free(all);
		return plog_error_set(err, -ENOMEM, "out of memory");
	}
	if (ctl->arg_count != 1)
		sample->entries[kept++] = total;
	for (size_t i = 0; i < count; i++)
		if (!ctl->arg_count || !strcmp(all[i].topic, ctl->args[0]))
			sample->entries[kept++] = all[i];
	sample->count = kept;
	free(all);
	if (ctl->arg_count == 1 && !kept) {
		free(sample->entries);
		return plog_error_set(err, -ENOENT, "there is no partition of a topic \"%s\"; see: "
				      "plogctl topic list", ctl->args[0]);
	}
	return 0;
}

/* What was counted since @before; a partition opened anew starts from zero. */
static void subtract(struct sample *now, const struct sample *before)
{
	size_t j = 0;

	/* Both are sorted, the totals with their empty name first. */
	for (size_t i = 0; i < now->count; i++) {
		struct stats_info *n = &now->entries[i];
		const struct stats_info *b;
		int order = -1;

		while (j < before->count &&
		       (order = stats_by_place(&before->entries[j], n)) < 0)
			j++;
		if (j == before->count || order)
			continue;
		b = &before->entries[j++];
		for (size_t k = 0; k < COUNTERS; k++) {
			uint32_t attr = counters[k].attr;

			if (!counters[k].now && n->counters[attr] >= b->counters[attr])
				n->counters[attr] -= b->counters[attr];
		}
	}
}

static struct json_object *stats_json(const struct stats_info *s)
{
	struct json_object *o = json_new();

	if (*s->topic) {
		json_text(o, "topic", s->topic);
		json_number(o, "partition", s->index);
	}
	for (size_t i = 0; i < COUNTERS; i++)
		json_unsigned(o, counters[i].name, s->counters[counters[i].attr]);
	return o;
}

static void say_json(const struct sample *sample, bool compact)
{
	struct json_object *o = json_new(), *list = json_list();

	for (size_t i = 0; i < sample->count; i++) {
		if (*sample->entries[i].topic)
			json_append(list, stats_json(&sample->entries[i]));
		else
			json_put(o, "total", stats_json(&sample->entries[i]));
	}
	json_put(o, "partitions", list);
	json_print(o, compact);
}

static const char *counter_text(const struct ctl *ctl, const struct stats_info *s, size_t i)
{
	static char texts[COUNTERS][24];
	uint64_t value = s->counters[counters[i].attr];

	if (counters[i].bytes)
		return size_text(ctl, value);
	snprintf(texts[i], sizeof(texts[i]), "%" PRIu64, value);
	return texts[i];
}

static void say_table(const struct ctl *ctl, const struct sample *sample)
{
	struct column columns[2 + COUNTERS] = { { "TOPIC", false }, { "PARTITION", true } };
	struct table *t;

	for (size_t i = 0; i < COUNTERS; i++)
		columns[2 + i] = (struct column){ counters[i].title, true };
	t = table_new(columns, 2 + COUNTERS);
	for (size_t n = 0; n < sample->count; n++) {
		const struct stats_info *s = &sample->entries[n];

		if (*s->topic) {
			table_cell(t, "%s", s->topic);
			table_cell(t, "%" PRIu32, s->index);
		} else {
			table_cell(t, "(all)");
			table_cell(t, "-");
		}
		for (size_t i = 0; i < COUNTERS; i++)
			table_cell(t, "%s", counter_text(ctl, s, i));
	}
	table_print(t);
}

static void say(const struct ctl *ctl, const struct sample *sample, bool again)
{
	if (ctl->json) {
		if (ctl->arg_count == 2)
			json_print(stats_json(&sample->entries[0]), again);
		else
			say_json(sample, again);
		return;
	}
	if (ctl->arg_count == 2 && !again) {
		for (size_t i = 0; i < COUNTERS; i++)
			line(counters[i].name, "%s", counter_text(ctl, sample->entries, i));
		return;
	}
	if (again)
		printf("%s\n", time_text((int64_t)time(NULL) * 1000));
	say_table(ctl, sample);
	if (again)
		putchar('\n');
	fflush(stdout);
}

static int repeat(const struct ctl *ctl, struct net *net, uint32_t index, uint64_t interval,
		  uint64_t count, struct plog_error *err)
{
	struct timespec pause = { .tv_sec = interval };
	struct sample before, now, change;
	int ret;

	ret = sample_take(ctl, net, index, &before, err);
	for (uint64_t i = 0; !ret && (!count || i < count); i++) {
		/* A signal ends the sleep, and with it the loop. */
		if (nanosleep(&pause, NULL) < 0 || interrupted)
			break;
		ret = sample_take(ctl, net, index, &now, err);
		if (ret)
			break;
		change.count = now.count;
		change.entries = calloc(now.count + 1, sizeof(*change.entries));
		if (!change.entries) {
			free(now.entries);
			ret = plog_error_set(err, -ENOMEM, "out of memory");
			break;
		}
		memcpy(change.entries, now.entries, now.count * sizeof(*now.entries));
		subtract(&change, &before);
		say(ctl, &change, true);
		free(change.entries);
		free(before.entries);
		before = now;
	}
	free(before.entries);
	return ret;
}

int stats_show(struct ctl *ctl)
{
	const char *interval = option_value(ctl, "--interval");
	const char *count = option_value(ctl, "--count");
	uint64_t index = 0, seconds = 0, times = 0;
	struct sample sample;
	struct plog_error err;
	struct net *net;
	int ret;

	if ((ctl->arg_count == 2 &&
	     number_parse(ctl->args[1], 0, UINT32_MAX, "the partition", &index, &err)) ||
	    (interval && number_parse(interval, 1, 86400, "--interval", &seconds, &err)) ||
	    (count && number_parse(count, 1, UINT32_MAX, "--count", &times, &err)))
		return fail_usage(ctl, "%s", err.text);
	if (count && !interval)
		return fail_usage(ctl, "--count needs --interval");
	interrupt_catch();
	ret = net_open(&net, &err);
	if (!ret && interval) {
		ret = repeat(ctl, net, index, seconds, times, &err);
	} else if (!ret) {
		ret = sample_take(ctl, net, index, &sample, &err);
		if (!ret) {
			say(ctl, &sample, false);
			free(sample.entries);
		}
	}
	net_close(net);
	return ret ? fail(&err) : EXIT_OK;
}
