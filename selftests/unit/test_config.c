// SPDX-License-Identifier: MIT
#include "cm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "say.h"

static char path[64];

static void write_file(const char *text)
{
	FILE *f;

	strcpy(path, "/tmp/test_config.XXXXXX");
	close(mkstemp(path));
	f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
}

static struct config *read_text(const char *text, struct plog_error *err)
{
	struct config *config = NULL;
	int ret;

	err->text[0] = 0;
	write_file(text);
	ret = config_read(path, NULL, 0, &config, err);
	unlink(path);
	assert_int_equal(ret != 0, config == NULL);
	return config;
}

static struct config *good(const char *text)
{
	struct plog_error err;
	struct config *config = read_text(text, &err);

	if (!config)
		fail_msg("%s: %s", text, err.text);
	return config;
}

/* @text is refused; the sentence has file and line @line (0: none) and the words. */
static void bad(const char *text, unsigned int line, const char *a, const char *b)
{
	struct plog_error err;
	struct config *config = read_text(text, &err);
	char place[80];

	if (config) {
		config_free(config);
		fail_msg("taken: %s", text);
	}
	snprintf(place, sizeof(place), "%s:%u: ", path, line);
	if (line && strncmp(err.text, place, strlen(place)))
		fail_msg("'%s' does not begin with '%s'", err.text, place);
	if (!strstr(err.text, a) || !strstr(err.text, b))
		fail_msg("'%s' has not both '%s' and '%s'", err.text, a, b);
}

static void defaults(void **state)
{
	struct config *c = good("");

	(void)state;
	assert_int_equal(c->node_id, 0);
	assert_string_equal(c->log_dir, "/var/lib/plog");
	assert_int_equal(c->engine, CONFIG_ENGINE_MODULE);
	assert_int_equal(c->nlisteners, 1);
	assert_string_equal(c->listeners[0].name, "PLAINTEXT");
	assert_int_equal(c->listeners[0].port, 9092);
	assert_string_equal(c->listeners[0].advertised_host, "");
	assert_int_equal(c->request_max, 104857600);
	assert_int_equal(c->idle_max_ms, 600000);
	assert_int_equal(c->num_partitions, 1);
	assert_true(c->auto_create);
	assert_true(c->delete_enable);
	assert_int_equal(c->fetch_max, 57671680);
	assert_int_equal(c->fetch_sessions, 1000);
	assert_int_equal(c->retention_check_ms, 300000);
	assert_true(c->network_threads >= 1);
	assert_int_equal(config_request_memory(c), 2 * 104857600ULL + (64 << 20));
	config_free(c);
}

static void values(void **state)
{
	struct config *c = good("# comment\n! too\nbroker.id = 7\nlog.dir: /x\\\n  /y\n"
				"num.partitions=4\n auto.create.topics.enable = FALSE\n"
				"queued.max.request.bytes=300000000\nnum.network.threads=3\n"
				"plog.engine=process\nbroker.rack=r1\n");

	(void)state;
	assert_int_equal(c->node_id, 7);
	assert_string_equal(c->log_dir, "/x/y");
	assert_string_equal(c->log_dir_key, "log.dir");
	assert_int_equal(c->num_partitions, 4);
	assert_false(c->auto_create);
	assert_int_equal(config_request_memory(c), 300000000);
	assert_int_equal(c->network_threads, 3);
	assert_int_equal(c->engine, CONFIG_ENGINE_PROCESS);
	assert_string_equal(c->rack, "r1");
	config_free(c);
}

static void listeners(void **state)
{
	struct config *c = good("listeners=PLAINTEXT://127.0.0.1:9092, external://[::1]:0\n"
				"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,"
				"EXTERNAL:PLAINTEXT\n"
				"advertised.listeners=EXTERNAL://broker.example:19092\n");

	(void)state;
	assert_int_equal(c->nlisteners, 2);
	assert_string_equal(c->listeners[0].host, "127.0.0.1");
	/* no address that stands for all: it can be told as it is */
	assert_string_equal(c->listeners[0].advertised_host, "127.0.0.1");
	assert_int_equal(c->listeners[0].advertised_port, 0);
	assert_string_equal(c->listeners[1].name, "EXTERNAL");
	assert_string_equal(c->listeners[1].host, "::1");
	assert_int_equal(c->listeners[1].port, 0);
	assert_string_equal(c->listeners[1].advertised_host, "broker.example");
	assert_int_equal(c->listeners[1].advertised_port, 19092);
	config_free(c);

	bad("listeners=\n", 1, "listeners", "at least one");
	bad("listeners=9092\n", 1, "listeners", "NAME://HOST:PORT");
	bad("listeners=PLAINTEXT://127.0.0.1:70000\n", 1, "listeners", "NAME://HOST:PORT");
	bad("listeners=PLAINTEXT://127.0.0.1:\n", 1, "listeners", "NAME://HOST:PORT");
	bad("listeners=PLAINTEXT://::1:9092\n", 1, "listeners", "brackets");
	bad("listeners=SSL://:9092\n", 1, "SSL", "PLAINTEXT only");
	bad("listeners=X://:9092\nlistener.security.protocol.map=X:SASL_SSL\n", 1, "X",
	    "PLAINTEXT only");
	bad("listeners=PLAINTEXT://:1,PLAINTEXT://:2\n", 1, "PLAINTEXT", "twice");
	bad("\nadvertised.listeners=PLAINTEXT://:9092\n", 2, "advertised.listeners",
	    "clients can reach");
	bad("advertised.listeners=OTHER://h:1\n", 1, "OTHER", "listeners has no");
	bad("advertised.listeners=h:1\n", 1, "h:1", "NAME://HOST:PORT");
}

static void wrong_values(void **state)
{
	(void)state;
	bad("num.partitions=0\n", 1, "num.partitions=0", "from 1 to 65536");
	bad("\n\nnum.partitions=x\n", 3, "num.partitions=x", "whole number");
	bad("num.partitions=1 2\n", 1, "num.partitions", "whole number");
	bad("num.partitions=99999999999999999999\n", 1, "num.partitions", "whole number");
	bad("num.partitions=\n", 1, "num.partitions", "whole number");
	bad("auto.create.topics.enable=1\n", 1, "auto.create.topics.enable", "true or false");
	bad("plog.engine=kernel\n", 1, "plog.engine", "module or process");
	bad("log.dirs=/a,/b\n", 1, "log.dirs", "one directory");
	bad("log.dirs=\n", 1, "log.dirs", "must not be empty");
	bad("default.replication.factor=3\n", 1, "default.replication.factor", "must be 1");
	bad("queued.max.request.bytes=1000\n", 1, "queued.max.request.bytes",
	    "socket.request.max.bytes");
	bad("connections.max.idle.ms=5\n", 1, "connections.max.idle.ms", "at least 100");
	bad("fetch.max.bytes=5\n", 1, "fetch.max.bytes", "from 1024");
	bad("node.id=-1\n", 1, "node.id", "from 0");
	bad("log.segment.bytes=many\n", 1, "log.segment.bytes", "");
	bad("num.partitions=\\u00zz\n", 0, path, "");
}

static void defaults_of_topics(void **state)
{
	struct config *c = good("log.retention.hours=24\nlog.segment.bytes=1048576\n"
				"compression.type=zstd\n");

	(void)state;
	assert_string_equal(properties_get(&c->topic_defaults, "retention.ms"), "86400000");
	assert_string_equal(properties_get(&c->topic_defaults, "segment.bytes"), "1048576");
	assert_string_equal(properties_get(&c->topic_defaults, "compression.type"), "zstd");
	config_free(c);
}

static void overrides(void **state)
{
	const char *const set[] = { "num.partitions=9", "node.id=3" };
	const char *const wrong[] = { "num.partitions" };
	struct config *c = NULL;
	struct plog_error err;

	(void)state;
	write_file("num.partitions=2\n");
	assert_int_equal(config_read(path, set, 2, &c, &err), 0);
	assert_int_equal(c->num_partitions, 9);
	assert_int_equal(c->node_id, 3);
	config_free(c);
	c = NULL;
	assert_int_equal(config_read(path, wrong, 1, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "KEY=VALUE"));
	unlink(path);
	assert_int_equal(config_read(path, NULL, 0, &c, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(config_read(NULL, NULL, 0, &c, &err), 0);
	config_free(c);
}

static void reload(void **state)
{
	struct config *now = good("node.id=1\nnum.partitions=1\nlog.dirs=/a\n"
				  "listeners=PLAINTEXT://127.0.0.1:9092\nbroker.rack=r\n");
	struct config *next = good("node.id=2\nnum.partitions=5\nlog.dirs=/b\n"
				   "listeners=PLAINTEXT://127.0.0.1:9093\n");

	(void)state;
	/* node.id, log.dirs and listeners have to wait */
	assert_int_equal(config_keep(next, now), 3);
	assert_int_equal(next->node_id, 1);
	assert_string_equal(next->log_dir, "/a");
	assert_int_equal(next->listeners[0].port, 9092);
	assert_int_equal(next->num_partitions, 5);
	assert_null(next->rack);
	next->previous = now;
	config_free(next);

	now = good("listeners=PLAINTEXT://0.0.0.0:9092\n");
	next = good("listeners=PLAINTEXT://0.0.0.0:9092\n"
		    "advertised.listeners=PLAINTEXT://h:1\n");
	assert_int_equal(config_keep(next, now), 0);
	assert_string_equal(next->listeners[0].advertised_host, "h");
	next->previous = now;
	config_free(next);
}

static void any_host(void **state)
{
	(void)state;
	assert_true(config_host_any(""));
	assert_true(config_host_any("0.0.0.0"));
	assert_true(config_host_any("::"));
	assert_false(config_host_any("127.0.0.1"));
	assert_false(config_host_any("broker"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(values),
		cmocka_unit_test(listeners),
		cmocka_unit_test(wrong_values),
		cmocka_unit_test(defaults_of_topics),
		cmocka_unit_test(overrides),
		cmocka_unit_test(reload),
		cmocka_unit_test(any_host),
	};

	/* warnings about keys are not what is tested here */
	say_set_level(SAY_ERROR);
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
