// SPDX-License-Identifier: MIT
#include "topicconfig.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/plog.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BOOLEAN		.type = TOPICCONFIG_BOOLEAN, .values = "true false"
#define INT(lo, hi)	.type = TOPICCONFIG_INT, .min = (lo), .max = (hi)
#define LONG(lo, hi)	.type = TOPICCONFIG_LONG, .min = (lo), .max = (hi)
#define DOUBLE(lo, hi)	.type = TOPICCONFIG_DOUBLE, .min = (lo), .max = (hi)
#define STRING(v)	.type = TOPICCONFIG_STRING, .values = (v)
#define LIST(v)		.type = TOPICCONFIG_LIST, .values = (v)
#define FOREVER		"9223372036854775807"

/*
 * Ranges are Kafka's, save where the module cannot go: max.message.bytes is
 * bounded both ways, and segment.bytes may be smaller than Kafka 4's 1 MiB.
 */
static const struct topicconfig_key table[] = {
	{
		.name = "cleanup.policy", .server = "log.cleanup.policy",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_COMPACT,
		LIST("compact delete"), .initial = "delete",
		.doc = "what becomes of old segments: delete, compact or both; empty keeps all",
	}, {
		.name = "compression.gzip.level", .server = "compression.gzip.level",
		.scope = TOPICCONFIG_DAEMON,
		INT(-1, 9), .initial = "-1",
		.doc = "level for compression.type=gzip; -1 is zlib's default",
	}, {
		.name = "compression.lz4.level", .server = "compression.lz4.level",
		.scope = TOPICCONFIG_DAEMON,
		INT(1, 17), .initial = "9",
		.doc = "level for compression.type=lz4",
	}, {
		.name = "compression.type", .server = "compression.type",
		.scope = TOPICCONFIG_DAEMON,
		STRING("uncompressed zstd lz4 snappy gzip producer"), .initial = "producer",
		.doc = "codec of the stored batches; producer keeps what clients send",
	}, {
		.name = "compression.zstd.level", .server = "compression.zstd.level",
		.scope = TOPICCONFIG_DAEMON,
		INT(-131072, 22), .initial = "3",
		.doc = "level for compression.type=zstd",
	}, {
		.name = "delete.retention.ms", .server = "log.cleaner.delete.retention.ms",
		LONG(0, INT64_MAX), .initial = "86400000",
		.doc = "how long a compacted log keeps the markers of deleted keys",
	}, {
		.name = "file.delete.delay.ms", .server = "log.segment.delete.delay.ms",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_FILE_DELETE_DELAY_MS,
		LONG(0, INT64_MAX), .initial = "60000",
		.doc = "how long the files of a segment that retention took away stay",
	}, {
		.name = "flush.messages", .server = "log.flush.interval.messages",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_FLUSH_MESSAGES,
		LONG(1, INT64_MAX), .initial = FOREVER,
		.doc = "sync to stable storage after so many records",
	}, {
		.name = "flush.ms", .server = "log.flush.interval.ms",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_FLUSH_MS,
		LONG(0, INT64_MAX), .initial = FOREVER,
		.doc = "sync to stable storage after so much time",
	}, {
		.name = "follower.replication.throttled.replicas", .server = "",
		LIST(NULL), .initial = "",
		.doc = "replicas throttled as followers: PARTITION:BROKER,... or *",
	}, {
		.name = "index.interval.bytes", .server = "log.index.interval.bytes",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_INDEX_INTERVAL_BYTES,
		INT(0, INT_MAX), .initial = "4096",
		.doc = "one index entry per so many bytes of log",
	}, {
		.name = "leader.replication.throttled.replicas", .server = "",
		LIST(NULL), .initial = "",
		.doc = "replicas throttled as leaders: PARTITION:BROKER,... or *",
	}, {
		.name = "local.retention.bytes", .server = "log.local.retention.bytes",
		LONG(-2, INT64_MAX), .initial = "-2",
		.doc = "with remote storage, local bytes per partition; -2: as retention.bytes",
	}, {
		.name = "local.retention.ms", .server = "log.local.retention.ms",
		LONG(-2, INT64_MAX), .initial = "-2",
		.doc = "with remote storage, local time to keep; -2: as retention.ms",
	}, {
		.name = "max.compaction.lag.ms", .server = "log.cleaner.max.compaction.lag.ms",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_MAX_COMPACTION_LAG_MS,
		LONG(1, INT64_MAX), .initial = FOREVER,
		.doc = "longest time that a record may stay uncompacted",
	}, {
		.name = "max.message.bytes", .server = "message.max.bytes",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_MAX_MESSAGE_BYTES,
		INT(PLOG_MESSAGE_BYTES_MIN, PLOG_MESSAGE_BYTES_MAX), .initial = "1048588",
		.doc = "largest record batch that is taken, as sent",
	}, {
		.name = "message.timestamp.after.max.ms",
		.server = "log.message.timestamp.after.max.ms",
		.scope = TOPICCONFIG_DAEMON,
		LONG(0, INT64_MAX), .initial = "3600000",
		.doc = "how far a record's time may be ahead of the broker's",
	}, {
		.name = "message.timestamp.before.max.ms",
		.server = "log.message.timestamp.before.max.ms",
		.scope = TOPICCONFIG_DAEMON,
		LONG(0, INT64_MAX), .initial = FOREVER,
		.doc = "how far a record's time may be behind the broker's",
	}, {
		.name = "message.timestamp.type", .server = "log.message.timestamp.type",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_LOG_APPEND_TIME,
		STRING("CreateTime LogAppendTime"), .initial = "CreateTime",
		.doc = "whose time a record bears: its producer's or the append's",
	}, {
		.name = "min.cleanable.dirty.ratio", .server = "log.cleaner.min.cleanable.ratio",
		DOUBLE(0, 1000), .initial = "0.5",
		.doc = "compact once this part of the log is new",
	}, {
		.name = "min.compaction.lag.ms", .server = "log.cleaner.min.compaction.lag.ms",
		LONG(0, INT64_MAX), .initial = "0",
		.doc = "shortest time that a record stays uncompacted",
	}, {
		.name = "min.insync.replicas", .server = "min.insync.replicas",
		.scope = TOPICCONFIG_DAEMON,
		INT(1, INT_MAX), .initial = "1",
		.doc = "replicas that must have a record before acks=all is answered",
	}, {
		.name = "preallocate", .server = "log.preallocate",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_PREALLOCATE,
		BOOLEAN, .initial = "false",
		.doc = "allocate a segment's file at once",
	}, {
		.name = "remote.log.copy.disable", .server = "",
		BOOLEAN, .initial = "false",
		.doc = "copy no more to remote storage",
	}, {
		.name = "remote.log.delete.on.disable", .server = "",
		BOOLEAN, .initial = "false",
		.doc = "delete the remote part when remote storage is disabled",
	}, {
		.name = "remote.storage.enable", .server = "",
		BOOLEAN, .initial = "false",
		.doc = "keep old segments in remote storage",
	}, {
		.name = "retention.bytes", .server = "log.retention.bytes",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_RETENTION_BYTES,
		LONG(-1, INT64_MAX), .initial = "-1",
		.doc = "most bytes of a partition before old segments go; -1: no limit",
	}, {
		.name = "retention.ms",
		.server = "log.retention.ms log.retention.minutes:60000 "
			  "log.retention.hours:3600000",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_RETENTION_MS,
		LONG(-1, INT64_MAX), .initial = "604800000",
		.doc = "how long records are kept before old segments go; -1: no limit",
	}, {
		.name = "segment.bytes", .server = "log.segment.bytes",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_SEGMENT_BYTES,
		INT(14, INT_MAX), .initial = "1073741824",
		.doc = "size at which a new segment is begun",
	}, {
		.name = "segment.index.bytes", .server = "log.index.size.max.bytes",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_INDEX_BYTES,
		INT(12, INT_MAX), .initial = "10485760",
		.doc = "largest offset index of a segment",
	}, {
		.name = "segment.jitter.ms",
		.server = "log.roll.jitter.ms log.roll.jitter.hours:3600000",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_SEGMENT_JITTER_MS,
		LONG(0, INT64_MAX), .initial = "0",
		.doc = "most that is taken off segment.ms at random",
	}, {
		.name = "segment.ms", .server = "log.roll.ms log.roll.hours:3600000",
		.scope = TOPICCONFIG_MODULE, .module = TOPICCONFIG_SEGMENT_MS,
		LONG(1, INT64_MAX), .initial = "604800000",
		.doc = "age at which a new segment is begun",
	}, {
		.name = "unclean.leader.election.enable",
		.server = "unclean.leader.election.enable",
		BOOLEAN, .initial = "false",
		.doc = "may a replica that lags become leader, losing records?",
	},
};

#define ROWS (sizeof(table) / sizeof(table[0]))

const struct topicconfig_key *topicconfig_keys(size_t *count)
{
	*count = ROWS;
	return table;
}

const struct topicconfig_key *topicconfig_find(const char *name)
{
	size_t low = 0, high = ROWS;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(table[middle].name, name);

		if (!order)
			return &table[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Levenshtein's distance; names longer than the row buffer are just far. */
static size_t distance(const char *a, const char *b)
{
	size_t row[64], length = strlen(b);

	if (length >= sizeof(row) / sizeof(row[0]) || strlen(a) >= 64)
		return SIZE_MAX;
	for (size_t j = 0; j <= length; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= length; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[length];
}

const char *topicconfig_nearest(const char *name)
{
	const char *nearest = NULL;
	size_t best = strlen(name) / 3 + 1;

	for (size_t i = 0; i < ROWS; i++) {
		size_t d = distance(name, table[i].name);

		if (d <= best) {
			best = d;
			nearest = table[i].name;
			if (!d)
				break;
		}
	}
	return nearest;
}

/* ---- values ---- */

/* What is left of @text without the blanks around it. */
static const char *trimmed(const char *text, size_t *length)
{
	while (isspace((unsigned char)*text))
		text++;
	*length = strlen(text);
	while (*length && isspace((unsigned char)text[*length - 1]))
		(*length)--;
	return text;
}

/* Copies @text without the blanks around it; false if it does not fit. */
static bool trim(const char *text, char *to, size_t size)
{
	size_t length;

	text = trimmed(text, &length);
	if (length >= size)
		return false;
	memcpy(to, text, length);
	to[length] = '\0';
	return true;
}

static bool parse_integer(const char *text, int64_t *value)
{
	char digits[32], *end;
	long long parsed;

	if (!trim(text, digits, sizeof(digits)) || !*digits || isspace((unsigned char)*digits))
		return false;
	errno = 0;
	parsed = strtoll(digits, &end, 10);
	if (errno || *end || end == digits)
		return false;
	*value = parsed;
	return true;
}

/* The C library's strtod() follows the locale and takes hexadecimal: not wanted. */
static bool parse_double(const char *text, double *value)
{
	char digits[64], *at = digits;
	double result = 0, scale = 1;
	bool some = false, negative;

	if (!trim(text, digits, sizeof(digits)))
		return false;
	negative = *at == '-';
	if (*at == '-' || *at == '+')
		at++;
	for (; isdigit((unsigned char)*at); at++, some = true)
		result = result * 10 + (*at - '0');
	if (*at == '.') {
		for (at++; isdigit((unsigned char)*at); at++, some = true) {
			scale /= 10;
			result += scale * (*at - '0');
		}
	}
	if (some && (*at == 'e' || *at == 'E')) {
		int64_t exponent;

		if (!parse_integer(at + 1, &exponent) || exponent < -300 || exponent > 300)
			return false;
		for (; exponent > 0; exponent--)
			result *= 10;
		for (; exponent < 0; exponent++)
			result /= 10;
		at += strlen(at);
	}
	if (!some || *at)
		return false;
	*value = negative ? -result : result;
	return true;
}

static bool parse_boolean(const char *text, bool *value)
{
	char word[8];

	if (!trim(text, word, sizeof(word)))
		return false;
	*value = !strcasecmp(word, "true");
	return *value || !strcasecmp(word, "false");
}

/* Is the word of @length bytes one of @words, which blanks separate? */
static bool is_word(const char *words, const char *word, size_t length)
{
	const char *at = words;

	while (*at) {
		size_t n = strcspn(at, " ");

		if (n == length && !memcmp(at, word, n))
			return true;
		at += n;
		at += strspn(at, " ");
	}
	return false;
}

/* Calls for each element of a comma-separated list; stops where @fn says true. */
static bool each_element(const char *list, bool (*fn)(void *arg, const char *element, size_t n),
			 void *arg)
{
	while (*list) {
		size_t n = strcspn(list, ",");
		const char *start = list;
		size_t length = n;

		while (length && isspace((unsigned char)*start)) {
			start++;
			length--;
		}
		while (length && isspace((unsigned char)start[length - 1]))
			length--;
		if (fn(arg, start, length))
			return true;
		list += n;
		if (*list == ',')
			list++;
	}
	return false;
}

static bool element_wrong(void *arg, const char *element, size_t length)
{
	return !is_word(arg, element, length);
}

/* "*", or PARTITION:BROKER. */
static bool throttle_wrong(void *arg, const char *element, size_t length)
{
	size_t i = 0, digits = 0;

	(void)arg;
	if (length == 1 && *element == '*')
		return false;
	for (; i < length && isdigit((unsigned char)element[i]); i++)
		digits++;
	if (!digits || i == length || element[i++] != ':')
		return true;
	for (digits = 0; i < length && isdigit((unsigned char)element[i]); i++)
		digits++;
	return !digits || i != length;
}

static int check_list(const struct topicconfig_key *key, const char *value,
		      struct plog_error *err)
{
	char all[512];

	if (!trim(value, all, sizeof(all)))
		return plog_error_set(err, -EINVAL, "%s: the list is too long", key->name);
	if (key->values && each_element(all, element_wrong, (void *)key->values))
		return plog_error_set(err, -EINVAL, "%s=%s: a list of these is allowed: %s",
				      key->name, value, key->values);
	if (!key->values && each_element(all, throttle_wrong, NULL))
		return plog_error_set(err, -EINVAL, "%s=%s: must be * or a list of "
				      "PARTITION:BROKER", key->name, value);
	return 0;
}

static int check_row(const struct topicconfig_key *key, const char *value,
		     struct plog_error *err)
{
	int64_t number;
	double real;
	bool truth;

	switch (key->type) {
	case TOPICCONFIG_INT:
	case TOPICCONFIG_LONG:
		if (!parse_integer(value, &number))
			return plog_error_set(err, -EINVAL, "%s=%s: must be a whole number from %"
					      PRId64 " to %" PRId64, key->name, value, key->min,
					      key->max);
		if (number < key->min || number > key->max)
			return plog_error_set(err, -EINVAL, "%s=%s: out of range, must be %" PRId64
					      " to %" PRId64, key->name, value, key->min,
					      key->max);
		/* Kafka: 1 to 9 or -1. */
		if (!number && !strcmp(key->name, "compression.gzip.level"))
			return plog_error_set(err, -EINVAL, "%s=0: must be 1 to 9, or -1",
					      key->name);
		return 0;
	case TOPICCONFIG_DOUBLE:
		if (!parse_double(value, &real) || real < key->min / 1000.0 ||
		    real > key->max / 1000.0)
			return plog_error_set(err, -EINVAL, "%s=%s: must be a number from %g to %g",
					      key->name, value, key->min / 1000.0,
					      key->max / 1000.0);
		return 0;
	case TOPICCONFIG_BOOLEAN:
		if (!parse_boolean(value, &truth))
			return plog_error_set(err, -EINVAL, "%s=%s: must be true or false",
					      key->name, value);
		return 0;
	case TOPICCONFIG_STRING:
		if (key->values && !is_word(key->values, value, strlen(value)))
			return plog_error_set(err, -EINVAL, "%s=%s: must be one of: %s", key->name,
					      value, key->values);
		return 0;
	case TOPICCONFIG_LIST:
		return check_list(key, value, err);
	}
	return plog_error_set(err, -EINVAL, "%s: of no known type", key->name);
}

int topicconfig_check(const char *name, const char *value, struct plog_error *err)
{
	const struct topicconfig_key *key = topicconfig_find(name);
	const char *nearest;

	if (key)
		return check_row(key, value, err);
	nearest = topicconfig_nearest(name);
	if (nearest)
		return plog_error_set(err, -ENOENT, "there is no topic configuration \"%s\"; "
				      "did you mean %s?", name, nearest);
	return plog_error_set(err, -ENOENT, "there is no topic configuration \"%s\"", name);
}

int topicconfig_check_all(const struct properties *config, struct plog_error *err)
{
	int64_t least, most;

	for (size_t i = 0; i < config->count; i++) {
		int ret = topicconfig_check(config->entries[i].key, config->entries[i].value, err);

		if (ret)
			return ret;
	}
	least = topicconfig_number(config, NULL, "min.compaction.lag.ms");
	most = topicconfig_number(config, NULL, "max.compaction.lag.ms");
	if (least > most)
		return plog_error_set(err, -EINVAL, "min.compaction.lag.ms=%" PRId64 " is above "
				      "max.compaction.lag.ms=%" PRId64, least, most);
	if (!topicconfig_boolean(config, NULL, "remote.storage.enable"))
		return 0;
	least = topicconfig_number(config, NULL, "local.retention.ms");
	most = topicconfig_number(config, NULL, "retention.ms");
	if (most != -1 && (least > most || least == -1))
		return plog_error_set(err, -EINVAL, "local.retention.ms=%" PRId64 " is above "
				      "retention.ms=%" PRId64, least, most);
	least = topicconfig_number(config, NULL, "local.retention.bytes");
	most = topicconfig_number(config, NULL, "retention.bytes");
	if (most != -1 && (least > most || least == -1))
		return plog_error_set(err, -EINVAL, "local.retention.bytes=%" PRId64 " is above "
				      "retention.bytes=%" PRId64, least, most);
	return 0;
}

int topicconfig_set(struct properties *config, const char *name, const char *value)
{
	const struct topicconfig_key *key = topicconfig_find(name);
	size_t length;
	char *kept;
	int ret;

	/* of a STRING each byte counts */
	if (!key || key->type == TOPICCONFIG_STRING)
		return properties_set(config, name, value);
	value = trimmed(value, &length);
	kept = strndup(value, length);
	if (!kept)
		return -ENOMEM;
	ret = properties_set(config, name, kept);
	free(kept);
	return ret;
}

const char *topicconfig_value(const struct properties *config, const struct properties *defaults,
			      const char *name)
{
	const struct topicconfig_key *key = topicconfig_find(name);
	const char *value = NULL;

	if (config)
		value = properties_get(config, name);
	if (!value && defaults)
		value = properties_get(defaults, name);
	if (!value && key)
		value = key->initial;
	return value;
}

int64_t topicconfig_number(const struct properties *config, const struct properties *defaults,
			   const char *name)
{
	const char *value = topicconfig_value(config, defaults, name);
	int64_t number;

	/* Checked when it was set; a file edited by hand since then has the default. */
	if (value && !topicconfig_check(name, value, NULL) && parse_integer(value, &number))
		return number;
	value = topicconfig_value(NULL, NULL, name);
	return value && parse_integer(value, &number) ? number : 0;
}

bool topicconfig_boolean(const struct properties *config, const struct properties *defaults,
			 const char *name)
{
	const char *value = topicconfig_value(config, defaults, name);
	bool truth;

	if (value && parse_boolean(value, &truth))
		return truth;
	value = topicconfig_value(NULL, NULL, name);
	return value && parse_boolean(value, &truth) && truth;
}

double topicconfig_double(const struct properties *config, const struct properties *defaults,
			  const char *name)
{
	const char *value = topicconfig_value(config, defaults, name);
	double real;

	if (value && !topicconfig_check(name, value, NULL) && parse_double(value, &real))
		return real;
	value = topicconfig_value(NULL, NULL, name);
	return value && parse_double(value, &real) ? real : 0;
}

static bool element_equal(void *arg, const char *element, size_t length)
{
	const char *wanted = arg;

	return strlen(wanted) == length && !memcmp(wanted, element, length);
}

bool topicconfig_has(const struct properties *config, const struct properties *defaults,
		     const char *name, const char *element)
{
	const struct topicconfig_key *key = topicconfig_find(name);
	const char *value = topicconfig_value(config, defaults, name);

	if (!key || !value)
		return false;
	if (key->type != TOPICCONFIG_LIST)
		return !strcmp(value, element);
	return each_element(value, element_equal, (void *)element);
}

/* ---- the broker's defaults ---- */

/* One synonym, "log.roll.hours:3600000", if @server has it. 1: taken, 0: absent. */
static int take_synonym(const struct topicconfig_key *key, const char *synonym, size_t length,
			const struct properties *server, struct properties *defaults,
			struct plog_error *err)
{
	const char *colon = memchr(synonym, ':', length), *value;
	int64_t factor = 1, number;
	struct plog_error why;
	char name[64], text[32];
	size_t n = colon ? (size_t)(colon - synonym) : length;

	snprintf(name, sizeof(name), "%.*s", (int)n, synonym);
	if (colon)
		factor = strtoll(colon + 1, NULL, 10);
	value = properties_get(server, name);
	if (!value)
		return 0;
	if (factor != 1) {
		if (!parse_integer(value, &number))
			return plog_error_set(err, -EINVAL, "%s=%s: must be a whole number", name,
					      value);
		/* -1 means no limit in any unit. */
		if (number > 0 && __builtin_mul_overflow(number, factor, &number))
			return plog_error_set(err, -EINVAL, "%s=%s: too large", name, value);
		snprintf(text, sizeof(text), "%" PRId64, number);
		value = text;
	}
	if (check_row(key, value, &why))
		return plog_error_set(err, -EINVAL, "%s: as the default of %s", name, why.text);
	if (properties_set(defaults, key->name, value))
		return plog_error_set(err, -ENOMEM, "out of memory");
	return 1;
}

int topicconfig_server_defaults(const struct properties *server, struct properties *defaults,
				struct plog_error *err)
{
	for (size_t i = 0; i < ROWS; i++) {
		const char *at = table[i].server;

		while (*at) {
			size_t n = strcspn(at, " ");
			int ret = take_synonym(&table[i], at, n, server, defaults, err);

			if (ret < 0)
				return ret;
			if (ret)
				break;
			at += n;
			at += strspn(at, " ");
		}
	}
	return 0;
}

/* ---- the module's part ---- */

void topicconfig_module(const char *topic, const struct properties *config,
			const struct properties *defaults, struct topicconfig_module *out)
{
	uint64_t lag = INT64_MAX;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < ROWS; i++) {
		const char *name = table[i].name;

		switch (table[i].module) {
		case TOPICCONFIG_MODULE_NONE:
			break;
		case TOPICCONFIG_MAX_MESSAGE_BYTES:
			out->max_message_bytes = topicconfig_number(config, defaults, name);
			break;
		case TOPICCONFIG_SEGMENT_BYTES:
			out->segment_bytes = topicconfig_number(config, defaults, name);
			break;
		case TOPICCONFIG_SEGMENT_MS:
			out->segment_ms = topicconfig_number(config, defaults, name);
			break;
		case TOPICCONFIG_INDEX_INTERVAL_BYTES:
			out->index_interval_bytes = topicconfig_number(config, defaults, name);
			break;
		case TOPICCONFIG_INDEX_BYTES:
			out->index_bytes = topicconfig_number(config, defaults, name) & ~7u;
			break;
		case TOPICCONFIG_COMPACT:
			if (topicconfig_has(config, defaults, name, "compact"))
				out->flags |= PLOG_STATE_COMPACT;
			break;
		case TOPICCONFIG_LOG_APPEND_TIME:
			if (topicconfig_has(config, defaults, name, "LogAppendTime"))
				out->flags |= PLOG_STATE_LOG_APPEND_TIME;
			break;
		case TOPICCONFIG_RETENTION_MS:
			out->retention_ms = topicconfig_number(config, defaults, name);
			break;
		case TOPICCONFIG_RETENTION_BYTES:
			out->retention_bytes = topicconfig_number(config, defaults, name);
			break;
		case TOPICCONFIG_FILE_DELETE_DELAY_MS:
			out->file_delete_delay_ms = topicconfig_number(config, defaults, name);
			break;
		case TOPICCONFIG_SEGMENT_JITTER_MS:
			out->segment_jitter_ms = topicconfig_number(config, defaults, name);
			break;
		case TOPICCONFIG_FLUSH_MESSAGES:
			out->flush_messages = topicconfig_number(config, defaults, name);
			break;
		case TOPICCONFIG_FLUSH_MS:
			out->flush_ms = topicconfig_number(config, defaults, name);
			break;
		case TOPICCONFIG_PREALLOCATE:
			out->preallocate = topicconfig_boolean(config, defaults, name);
			break;
		case TOPICCONFIG_MAX_COMPACTION_LAG_MS:
			lag = topicconfig_number(config, defaults, name);
			break;
		}
	}
	/* without "delete" nothing goes but what lies below the log start */
	if (!topicconfig_has(config, defaults, "cleanup.policy", "delete")) {
		out->retention_ms = -1;
		out->retention_bytes = -1;
	}
	/* the active segment is not compacted: it is begun anew in time */
	if (out->flags & PLOG_STATE_COMPACT && lag < out->segment_ms)
		out->segment_ms = lag;
	if (topicconfig_topic_internal(topic))
		out->flags |= PLOG_STATE_INTERNAL;
}

bool topicconfig_topic_internal(const char *topic)
{
	static const char * const names[] = {
		"__consumer_offsets", "__transaction_state", "__share_group_state",
		"__cluster_metadata",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(topic, names[i]))
			return true;
	return false;
}
