// SPDX-License-Identifier: MIT
#include "cm.h"

#include "topicconfig.h"

#include <errno.h>
#include <linux/plog.h>
#include <string.h>

static void table_is_sorted(void **state)
{
	const struct topicconfig_key *keys;
	size_t count;

	(void)state;
	keys = topicconfig_keys(&count);
	assert_true(count > 30);
	for (size_t i = 1; i < count; i++)
		assert_true(strcmp(keys[i - 1].name, keys[i].name) < 0);
	for (size_t i = 0; i < count; i++)
		assert_ptr_equal(topicconfig_find(keys[i].name), &keys[i]);
	assert_null(topicconfig_find(""));
	assert_null(topicconfig_find("zzz"));
}

static void defaults_are_right(void **state)
{
	const struct topicconfig_key *keys;
	struct plog_error err;
	size_t count;

	(void)state;
	keys = topicconfig_keys(&count);
	for (size_t i = 0; i < count; i++)
		if (topicconfig_check(keys[i].name, keys[i].initial, &err))
			fail_msg("%s", err.text);
}

static void check(const char *name, const char *value, int wanted)
{
	struct plog_error err = { "" };
	int ret = topicconfig_check(name, value, &err);

	if (ret != wanted)
		fail_msg("%s=%s: %d (%s), not %d", name, value, ret, err.text, wanted);
	if (ret)
		assert_non_null(strstr(err.text, name));
}

static void values(void **state)
{
	(void)state;
	check("segment.bytes", "14", 0);
	check("segment.bytes", "13", -EINVAL);
	check("segment.bytes", "2147483647", 0);
	check("segment.bytes", "2147483648", -EINVAL);
	check("segment.bytes", "99999999999999999999", -EINVAL);
	check("segment.bytes", " 1000 ", 0);
	check("segment.bytes", "", -EINVAL);
	check("segment.bytes", " ", -EINVAL);
	check("segment.bytes", "1e6", -EINVAL);
	check("segment.bytes", "0x10", -EINVAL);
	check("segment.bytes", "10 0", -EINVAL);
	check("max.message.bytes", "1023", -EINVAL);
	check("max.message.bytes", "1024", 0);
	check("max.message.bytes", "67108864", 0);
	check("max.message.bytes", "67108865", -EINVAL);
	check("retention.ms", "-1", 0);
	check("retention.ms", "-2", -EINVAL);
	check("retention.ms", "9223372036854775807", 0);
	check("retention.ms", "9223372036854775808", -EINVAL);
	check("cleanup.policy", "compact, delete", 0);
	check("cleanup.policy", "compact,,delete", -EINVAL);
	check("cleanup.policy", "", 0);
	check("cleanup.policy", "shred", -EINVAL);
	check("compression.type", "zstd", 0);
	check("compression.type", "ZSTD", -EINVAL);
	check("compression.gzip.level", "-1", 0);
	check("compression.gzip.level", "0", -EINVAL);
	check("compression.gzip.level", "9", 0);
	check("compression.gzip.level", "10", -EINVAL);
	check("min.cleanable.dirty.ratio", "0.25", 0);
	check("min.cleanable.dirty.ratio", "1", 0);
	check("min.cleanable.dirty.ratio", "1.01", -EINVAL);
	check("min.cleanable.dirty.ratio", "5e-1", 0);
	check("min.cleanable.dirty.ratio", "-0.1", -EINVAL);
	check("min.cleanable.dirty.ratio", ".", -EINVAL);
	check("min.cleanable.dirty.ratio", "nan", -EINVAL);
	check("preallocate", "true", 0);
	check("preallocate", "FALSE", 0);
	check("preallocate", "1", -EINVAL);
	check("message.timestamp.type", "LogAppendTime", 0);
	check("message.timestamp.type", "logappendtime", -EINVAL);
	check("leader.replication.throttled.replicas", "*", 0);
	check("leader.replication.throttled.replicas", "0:1,1:2", 0);
	check("leader.replication.throttled.replicas", "", 0);
	check("leader.replication.throttled.replicas", "0-1", -EINVAL);
	check("leader.replication.throttled.replicas", "0:", -EINVAL);
	check("segment.byte", "1", -ENOENT);
	check("", "1", -ENOENT);
}

static void kept(const char *name, const char *value, const char *wanted)
{
	struct properties p;

	properties_init(&p);
	assert_int_equal(topicconfig_set(&p, name, value), 0);
	assert_string_equal(properties_get(&p, name), wanted);
	properties_clear(&p);
}

static void blanks_are_not_kept(void **state)
{
	(void)state;
	kept("segment.bytes", "\n\n 1000\t\n", "1000");
	kept("segment.bytes", " \n", "");
	kept("min.cleanable.dirty.ratio", " 0.5\n", "0.5");
	kept("preallocate", "\ntrue", "true");
	kept("cleanup.policy", " compact, delete ", "compact, delete");
	/* neither of these is a value that is taken: it stays wrong */
	kept("compression.type", " zstd", " zstd");
	kept("no.such.key", " x ", " x ");
}

static void near_misses(void **state)
{
	(void)state;
	assert_string_equal(topicconfig_nearest("segment.byte"), "segment.bytes");
	assert_string_equal(topicconfig_nearest("cleanup_policy"), "cleanup.policy");
	assert_string_equal(topicconfig_nearest("retention"), "retention.ms");
	assert_null(topicconfig_nearest("colour"));
}

static void together(void **state)
{
	struct plog_error err;
	struct properties p;

	(void)state;
	properties_init(&p);
	assert_int_equal(topicconfig_check_all(&p, &err), 0);
	properties_set(&p, "max.compaction.lag.ms", "10");
	assert_int_equal(topicconfig_check_all(&p, &err), 0);
	properties_set(&p, "min.compaction.lag.ms", "11");
	assert_int_equal(topicconfig_check_all(&p, &err), -EINVAL);
	properties_set(&p, "min.compaction.lag.ms", "10");
	assert_int_equal(topicconfig_check_all(&p, &err), 0);
	properties_set(&p, "local.retention.ms", "604800001");
	assert_int_equal(topicconfig_check_all(&p, &err), 0);
	properties_set(&p, "remote.storage.enable", "true");
	assert_int_equal(topicconfig_check_all(&p, &err), -EINVAL);
	properties_set(&p, "retention.ms", "-1");
	assert_int_equal(topicconfig_check_all(&p, &err), 0);
	properties_set(&p, "nonsense", "1");
	assert_int_equal(topicconfig_check_all(&p, &err), -ENOENT);
	properties_clear(&p);
}

static void layers(void **state)
{
	struct properties server, defaults, topic;
	struct plog_error err;

	(void)state;
	properties_init(&server);
	properties_init(&defaults);
	properties_init(&topic);
	properties_set(&server, "listeners", "PLAINTEXT://:9092");
	properties_set(&server, "log.retention.hours", "2");
	properties_set(&server, "log.roll.hours", "3");
	properties_set(&server, "log.roll.ms", "1000");
	properties_set(&server, "log.segment.bytes", "5000");
	properties_set(&server, "log.cleanup.policy", "compact,delete");
	assert_int_equal(topicconfig_server_defaults(&server, &defaults, &err), 0);
	assert_string_equal(properties_get(&defaults, "retention.ms"), "7200000");
	assert_string_equal(properties_get(&defaults, "segment.ms"), "1000");
	assert_int_equal(defaults.count, 4);
	properties_set(&topic, "segment.bytes", "6000");
	assert_int_equal(topicconfig_number(&topic, &defaults, "segment.bytes"), 6000);
	assert_int_equal(topicconfig_number(NULL, &defaults, "segment.bytes"), 5000);
	assert_int_equal(topicconfig_number(NULL, NULL, "segment.bytes"), 1073741824);
	assert_true(topicconfig_has(&topic, &defaults, "cleanup.policy", "compact"));
	assert_false(topicconfig_has(&topic, NULL, "cleanup.policy", "compact"));
	assert_true(topicconfig_double(NULL, NULL, "min.cleanable.dirty.ratio") == 0.5);
	assert_false(topicconfig_boolean(NULL, NULL, "preallocate"));
	assert_null(topicconfig_value(NULL, NULL, "nonsense"));
	/* one edited by hand into something that cannot be has the default */
	properties_set(&topic, "segment.bytes", "many");
	assert_int_equal(topicconfig_number(&topic, NULL, "segment.bytes"), 1073741824);

	properties_set(&server, "log.retention.hours", "9223372036854775807");
	assert_int_equal(topicconfig_server_defaults(&server, &defaults, &err), -EINVAL);
	properties_set(&server, "log.retention.hours", "-1");
	assert_int_equal(topicconfig_server_defaults(&server, &defaults, &err), 0);
	assert_int_equal(topicconfig_number(NULL, &defaults, "retention.ms"), -1);
	properties_set(&server, "log.segment.bytes", "1");
	assert_int_equal(topicconfig_server_defaults(&server, &defaults, &err), -EINVAL);
	assert_non_null(strstr(err.text, "log.segment.bytes"));
	properties_clear(&server);
	properties_clear(&defaults);
	properties_clear(&topic);
}

static void module_part(void **state)
{
	struct topicconfig_module m;
	struct properties topic;

	(void)state;
	properties_init(&topic);
	topicconfig_module("t", &topic, NULL, &m);
	assert_int_equal(m.flags, 0);
	assert_int_equal(m.max_message_bytes, PLOG_MESSAGE_BYTES_DEFAULT);
	assert_int_equal(m.segment_bytes, 1 << 30);
	assert_int_equal(m.segment_ms, 604800000);
	assert_int_equal(m.index_interval_bytes, 4096);
	assert_int_equal(m.index_bytes, 10485760);
	assert_int_equal(m.retention_ms, 604800000);
	assert_int_equal(m.retention_bytes, -1);
	assert_int_equal(m.file_delete_delay_ms, 60000);
	assert_int_equal(m.segment_jitter_ms, 0);
	assert_int_equal(m.flush_messages, INT64_MAX);
	assert_int_equal(m.flush_ms, INT64_MAX);
	assert_false(m.preallocate);
	properties_set(&topic, "retention.ms", "5");
	properties_set(&topic, "retention.bytes", "6");
	properties_set(&topic, "file.delete.delay.ms", "7");
	properties_set(&topic, "segment.jitter.ms", "8");
	properties_set(&topic, "flush.messages", "9");
	properties_set(&topic, "flush.ms", "10");
	properties_set(&topic, "preallocate", "true");
	properties_set(&topic, "max.compaction.lag.ms", "11");
	topicconfig_module("t", &topic, NULL, &m);
	assert_int_equal(m.retention_ms, 5);
	assert_int_equal(m.retention_bytes, 6);
	assert_int_equal(m.file_delete_delay_ms, 7);
	assert_int_equal(m.segment_jitter_ms, 8);
	assert_int_equal(m.flush_messages, 9);
	assert_int_equal(m.flush_ms, 10);
	assert_true(m.preallocate);
	/* only a log that is compacted has to roll for it */
	assert_int_equal(m.segment_ms, 604800000);
	/* and only one with "delete" loses anything by time or size */
	properties_set(&topic, "cleanup.policy", "compact");
	topicconfig_module("t", &topic, NULL, &m);
	assert_int_equal(m.segment_ms, 11);
	assert_int_equal(m.retention_ms, -1);
	assert_int_equal(m.retention_bytes, -1);
	properties_set(&topic, "cleanup.policy", "delete,compact");
	properties_set(&topic, "message.timestamp.type", "LogAppendTime");
	properties_set(&topic, "segment.index.bytes", "1003");
	properties_set(&topic, "max.message.bytes", "2000");
	topicconfig_module("__consumer_offsets", &topic, NULL, &m);
	assert_int_equal(m.flags, PLOG_STATE_COMPACT | PLOG_STATE_LOG_APPEND_TIME |
			 PLOG_STATE_INTERNAL);
	assert_int_equal(m.index_bytes, 1000);
	assert_int_equal(m.max_message_bytes, 2000);
	assert_int_equal(m.retention_ms, 5);
	assert_true(topicconfig_topic_internal("__transaction_state"));
	assert_false(topicconfig_topic_internal("__mine"));
	properties_clear(&topic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_sorted),
		cmocka_unit_test(defaults_are_right),
		cmocka_unit_test(values),
		cmocka_unit_test(blanks_are_not_kept),
		cmocka_unit_test(near_misses),
		cmocka_unit_test(together),
		cmocka_unit_test(layers),
		cmocka_unit_test(module_part),
	};

	return cmocka_run_group_tests_name("topicconfig", tests, NULL, NULL);
}
