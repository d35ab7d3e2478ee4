// SPDX-License-Identifier: MIT
/*
 * plogd: reads the configuration, brings the parts up in order, waits for signals, takes the
 * parts down in reverse order.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../tools/libplog/datadir.h"
#include "../uapi/linux/plog_netlink.h"
#include "broker/admin.h"
#include "broker/broker.h"
#include "broker/change.h"
#include "broker/janitor.h"
#include "broker/netlink.h"
#include "broker/topics.h"
#include "conn.h"
#include "kafka/fetch_session.h"
#include "listener.h"
#include "log/appender.h"
#include "log/engines.h"
#include "log/log.h"
#include "peers.h"
#include "say.h"

#define OVERRIDES_MAX 64
#define HEARTBEAT_MS 1000
#define STOPPING_MAX_MS 60000

struct options {
	const char *path;
	const char *overrides[OVERRIDES_MAX];
	unsigned int noverrides;
	char engine[64];
	bool check;
};

struct daemon {
	struct broker b;
	struct options options;
	uv_signal_t signals[3];
	uv_timer_t heartbeat, drain_timer;
	unsigned int drained;		/* client loops that are empty */
	bool draining;
};

static void usage(FILE *to)
{
	fprintf(to,
"Usage: plogd [OPTION]... [FILE]\n"
"\n"
"Serves Kafka's protocol from the logs of the plog module (or of an engine of\n"
"its own). FILE has Kafka's server.properties keys; see daemon/plogd.properties.\n"
"\n"
"  --engine module|process  where the logs are: in the kernel (the default), or in\n"
"                           this process, for machines that cannot load the module\n"
"  --set KEY=VALUE          as if FILE had this line; may be given many times\n"
"  --log-level LEVEL        error, warn, info (the default) or debug\n"
"  --check                  read the configuration, say what is wrong, and end\n"
"  --version, --help\n"
"\n"
"SIGTERM or SIGINT: answer what is in flight and end; a second one ends at once.\n"
"SIGHUP: read FILE again.\n"
"Exit status: 0 stopped as asked; 1 could not start, or had to stop; 2 wrong usage.\n");
}

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "engine", required_argument, NULL, 'e' },
		{ "set", required_argument, NULL, 's' },
		{ "log-level", required_argument, NULL, 'l' },
		{ "check", no_argument, NULL, 'c' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	enum say_level level;
	int c;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'e':
			snprintf(o->engine, sizeof(o->engine), "plog.engine=%s", optarg);
			break;
		case 's':
			if (o->noverrides == OVERRIDES_MAX - 1) {
				fprintf(stderr, "plogd: at most %d --set\n", OVERRIDES_MAX - 1);
				return 2;
			}
			o->overrides[o->noverrides++] = optarg;
			break;
		case 'l':
			if (say_parse_level(optarg, &level)) {
				fprintf(stderr, "plogd: --log-level %s: must be error, warn, info "
					"or debug\n", optarg);
				return 2;
			}
			say_set_level(level);
			break;
		case 'c':
			o->check = true;
			break;
		case 'V':
			printf("plogd %s\n", BROKER_VERSION);
			exit(0);
		case 'h':
			usage(stdout);
			exit(0);
		default:
			fprintf(stderr, "Try plogd --help.\n");
			return 2;
		}
	}
	if (*o->engine)
		o->overrides[o->noverrides++] = o->engine;
	if (argc - optind > 1) {
		fprintf(stderr, "plogd: one FILE at most\nTry plogd --help.\n");
		return 2;
	}
	o->path = argv[optind];
	return 0;
}

/*
 * A descriptor for each connection, each partition and each cursor. Connections get three
 * quarters of them: however many peers there are, logs can roll and topics can be made. Cursors
 * get an eighth, and as those that are not in use a sixteenth: an answer holds them for as long
 * as its reader takes.
 */
static void raise_limits(struct broker *b)
{
	struct rlimit limit;

	b->connections_room = INT64_MAX;
	b->cursors_room = INT32_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return;
	b->connections_room = limit.rlim_cur / 4 * 3;
	b->cursors_room = limit.rlim_cur / 16;
}

/* ---- the end ---- */

static void on_all_drained(struct daemon *d)
{
	for (unsigned int i = 0; i < d->b.nloops; i++)
		loop_stop(&d->b.loops[i]);
	for (unsigned int i = 0; i < d->b.nloops; i++)
		loop_join(&d->b.loops[i]);
	uv_stop(&d->b.control.uv);
}

static void on_loop_drained(struct task *task)
{
	struct loop *loop = container_of(task, struct loop, drained);
	struct daemon *d = container_of(loop->broker, struct daemon, b);

	if (++d->drained == d->b.nloops)
		on_all_drained(d);
}

static void on_drain_timeout(uv_timer_t *timer)
{
	struct daemon *d = timer->data;

	say(SAY_WARN, "plogd", "%u connections still have answers to get: they are closed",
	    atomic_load(&d->b.connections));
	for (unsigned int i = 0; i < d->b.nloops; i++)
		loop_drain(&d->b.loops[i], true);
}

static void begin_drain(struct daemon *d)
{
	if (d->draining)
		return;
	d->draining = true;
	for (unsigned int i = 0; i < d->b.nlisteners; i++)
		listener_close(&d->b.listeners[i]);
	for (unsigned int i = 0; i < d->b.nloops; i++)
		loop_drain(&d->b.loops[i], false);
	uv_timer_start(&d->drain_timer, on_drain_timeout, broker_config(&d->b)->drain_ms, 0);
}

static void on_stop_task(struct task *task)
{
	begin_drain(container_of(container_of(task, struct broker, stop_task), struct daemon, b));
}

void broker_stop(struct broker *b, int exit_code)
{
	if (atomic_exchange(&b->stopping, true))
		return;
	atomic_store(&b->exit_code, exit_code);
	loop_post(&b->control, &b->stop_task);
}

/* ---- signals and reload ---- */

static bool same_properties(const struct properties *a, const struct properties *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->entries[i].key, b->entries[i].key) ||
		    strcmp(a->entries[i].value, b->entries[i].value))
			return false;
	return true;
}

static void defaults_applied(struct change *change)
{
	say(SAY_INFO, "plogd", "the new defaults are in force for every topic");
	change_clear(change);
	free(change);
}

static void reload(struct daemon *d)
{
	struct config *now = atomic_load(&d->b.config), *next;
	struct plog_error err = { "" };
	struct change *change;
	bool defaults;

	if (!d->options.path) {
		say(SAY_WARN, "plogd", "SIGHUP: there is no configuration file to read again");
		return;
	}
	if (config_read(d->options.path, d->options.overrides, d->options.noverrides, &next,
			&err)) {
		say(SAY_ERROR, "plogd", "SIGHUP: the old configuration stays: %s", err.text);
		return;
	}
	config_keep(next, now);
	defaults = !same_properties(&next->topic_defaults, &now->topic_defaults);
	next->previous = now;
	atomic_store(&d->b.config, next);
	budget_set_limit(&d->b.budget, config_request_memory(next));
	budget_set_limit(&d->b.decoded, config_request_memory(next));
	janitor_reconfigure(&d->b);
	say(SAY_INFO, "plogd", "SIGHUP: %s was read again", d->options.path);
	change = defaults ? malloc(sizeof(*change)) : NULL;
	if (!change)
		return;
	change_init(change, CHANGE_DEFAULTS, "", 0);
	change->loop = &d->b.control;
	change->done = defaults_applied;
	changes_submit(d->b.changes, change);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct daemon *d = handle->data;

	if (number == SIGHUP) {
		reload(d);
		return;
	}
	if (atomic_load(&d->b.stopping)) {
		say(SAY_WARN, "plogd", "a second signal: ending at once");
		_exit(1);
	}
	say(SAY_INFO, "plogd", "%s: no new connections; answering what is in flight",
	    number == SIGTERM ? "SIGTERM" : "SIGINT");
	broker_stop(&d->b, 0);
}

/* ---- signals during the start: the control loop does not run yet ---- */

static struct broker *starting;
static atomic_bool hangup;

static void on_early_signal(int number)
{
	if (number == SIGHUP)
		atomic_store(&hangup, true);
	else if (atomic_exchange(&starting->stopping, true))
		_exit(1);
}

static void take_early_signals(struct broker *b)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
	struct sigaction act = { .sa_handler = on_early_signal, .sa_flags = SA_RESTART };

	starting = b;
	for (unsigned int i = 0; i < 3; i++)
		sigaction(numbers[i], &act, NULL);
}

/* ---- registration ---- */

void broker_check_replaced(struct broker *b)
{
	if (!b->netlink || module_registered(b->engine) || atomic_load(&b->stopping))
		return;
	say(SAY_ERROR, "plogd", "another plogd has registered with the module and replaced this "
	    "one, which ends");
	broker_stop(b, 1);
}

static void on_heartbeat(uv_timer_t *timer)
{
	struct daemon *d = timer->data;

	broker_check_replaced(&d->b);
}

/* ---- the beginning ---- */

static int open_directory(struct broker *b, struct plog_error *err)
{
	const struct config *config = broker_config(b);
	struct netlink_instance instance;
	int ret;

	if (config->engine == CONFIG_ENGINE_PROCESS)
		return datadir_open(config->log_dir, DATADIR_CREATE, &b->datadir, err);

	b->netlink = netlink_open(b, err);
	if (!b->netlink)
		return -ENODEV;
	ret = netlink_instance(b->netlink, &instance, err);
	for (int i = 0; !ret && instance.state == PLOG_INSTANCE_STOPPING; i++) {
		if (atomic_load(&b->stopping))
			return -ECANCELED;
		if (!i)
			say(SAY_INFO, "plogd", "waiting for the instance on %s to stop",
			    instance.label);
		if (i == STOPPING_MAX_MS / 50)
			return plog_error_set(err, -EBUSY, "the instance on %s is still stopping",
					      instance.label);
		usleep(50000);
		ret = netlink_instance(b->netlink, &instance, err);
	}
	if (ret)
		return ret;
	if (instance.state == PLOG_INSTANCE_RUNNING) {
		if (!datadir_same(instance.label, config->log_dir))
			return plog_error_set(err, -EBUSY, "%s is %s, but the module serves %s in "
					      "this network namespace; stop that instance (plogctl "
					      "instance stop) or set %s to it", config->log_dir_key,
					      config->log_dir, instance.label,
					      config->log_dir_key);
		ret = datadir_open(config->log_dir, DATADIR_ATTACH, &b->datadir, err);
		return ret ? ret : netlink_instance_limits(b->netlink, config, err);
	}
	ret = datadir_open(config->log_dir, DATADIR_CREATE, &b->datadir, err);
	if (ret)
		return ret;
	ret = netlink_instance_set(b->netlink, datadir_path(b->datadir), datadir_fd(b->datadir),
				   datadir_lock_fd(b->datadir), err);
	if (!ret)
		say(SAY_INFO, "plogd", "the module now serves %s", datadir_path(b->datadir));
	return ret ? ret : netlink_instance_limits(b->netlink, config, err);
}

static int identify(struct broker *b, struct plog_error *err)
{
	const struct config *config = broker_config(b);
	struct datadir_meta meta = { 0 };
	uint8_t id[DATADIR_ID_SIZE];
	char text[DATADIR_ID_TEXT + 1];
	int ret;

	ret = datadir_meta_read(b->datadir, &meta, err);
	if (ret == -ENOENT) {
		ret = datadir_id_random(id);
		if (!ret)
			ret = datadir_id_random(meta.directory_id);
		if (ret)
			return plog_error_set(err, ret, "no random numbers: %s", strerror(-ret));
		datadir_id_text(id, text);
		snprintf(meta.cluster_id, sizeof(meta.cluster_id), "%s", text);
		meta.node_id = config->node_id;
		ret = datadir_meta_write(b->datadir, &meta, err);
	}
	if (ret)
		return ret;
	if (meta.node_id != config->node_id)
		return plog_error_set(err, -EINVAL, "%s belongs to node.id %" PRId32
				      " (meta.properties), but the configuration says node.id %"
				      PRId64, config->log_dir, meta.node_id, config->node_id);
	b->node_id = meta.node_id;
	snprintf(b->cluster_id, sizeof(b->cluster_id), "%s", meta.cluster_id);
	return 0;
}

static int make_loops(struct broker *b, struct plog_error *err)
{
	unsigned int n = broker_config(b)->network_threads;
	int ret;

	ret = loop_init(&b->control, b, UINT_MAX);
	if (ret)
		return plog_error_set(err, ret, "the control loop: %s", uv_strerror(ret));
	b->loops = calloc(n, sizeof(*b->loops));
	if (!b->loops)
		return plog_error_set(err, -ENOMEM, "out of memory");
	for (unsigned int i = 0; i < n; i++) {
		ret = loop_init(&b->loops[i], b, i);
		if (ret)
			return plog_error_set(err, ret, "network thread %u: %s", i,
					      uv_strerror(ret));
		b->loops[i].drained.run = on_loop_drained;
		b->loops[i].report_to = &b->control;
		b->nloops++;
	}
	return 0;
}

static int open_listeners(struct broker *b, struct plog_error *err)
{
	const struct config *config = broker_config(b);
	int ret;

	b->listeners = calloc(config->nlisteners, sizeof(*b->listeners));
	if (!b->listeners)
		return plog_error_set(err, -ENOMEM, "out of memory");
	for (unsigned int i = 0; i < config->nlisteners; i++) {
		ret = listener_open(&b->listeners[i], b, &config->listeners[i], err);
		if (ret)
			return ret;
		b->nlisteners++;
	}
	return 0;
}

static int start(struct broker *b, struct plog_error *err)
{
	int ret;

	b->peers = peers_new();
	b->topics = topics_new();
	b->sessions = fetch_sessions_new();
	if (!b->peers || !b->topics || !b->sessions)
		return plog_error_set(err, -ENOMEM, "out of memory");
	budget_init(&b->budget, config_request_memory(broker_config(b)));
	budget_init(&b->decoded, config_request_memory(broker_config(b)));
	ret = make_loops(b, err);
	if (ret)
		return ret;
	/* a port that is taken is told before the logs are touched */
	ret = open_listeners(b, err);
	if (ret)
		return ret;
	ret = open_directory(b, err);
	if (ret)
		return ret;
	ret = identify(b, err);
	if (ret)
		return ret;
	b->engine = b->netlink ? module_start(b, err) : process_start(b, err);
	if (!b->engine)
		return -ENODEV;
	b->appenders = appenders_start(b->nloops, err);
	if (!b->appenders)
		return -ENOMEM;
	ret = changes_load(b, err);
	if (ret)
		return ret;
	if (atomic_load(&b->stopping))
		return -ECANCELED;
	b->changes = changes_start(b, err);
	if (!b->changes)
		return -ENOMEM;
	if (b->netlink) {
		ret = netlink_retention_check(b->netlink, broker_config(b)->retention_check_ms,
					      err);
		if (ret)
			return ret;
	}
	return janitor_start(b, err) ? 0 : -ENOMEM;
}

static int serve(struct daemon *d, struct plog_error *err)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
	struct broker *b = &d->b;
	int ret = 0;

	for (unsigned int i = 0; i < 3 && !ret; i++) {
		ret = uv_signal_init(&b->control.uv, &d->signals[i]);
		d->signals[i].data = d;
		if (!ret)
			ret = uv_signal_start(&d->signals[i], on_signal, numbers[i]);
	}
	/* from here on signals come to the loop: what came before counts as well */
	if (!ret && atomic_load(&b->stopping))
		ret = -ECANCELED;
	if (ret)
		return plog_error_set(err, ret, "cannot start: %s", uv_strerror(ret));
	ret = uv_timer_init(&b->control.uv, &d->drain_timer);
	d->drain_timer.data = d;
	if (!ret && b->netlink) {
		ret = uv_timer_init(&b->control.uv, &d->heartbeat);
		d->heartbeat.data = d;
		if (!ret)
			ret = uv_timer_start(&d->heartbeat, on_heartbeat, HEARTBEAT_MS,
					     HEARTBEAT_MS);
		if (!ret)
			ret = netlink_start(b->netlink);
	}
	for (unsigned int i = 0; i < b->nloops && !ret; i++)
		ret = loop_start(&b->loops[i]);
	for (unsigned int i = 0; i < b->nlisteners && !ret; i++) {
		ret = listener_start(&b->listeners[i]);
		if (!ret)
			say(SAY_INFO, "plogd", "ready: listener %s at port %u, node %" PRId32
			    ", cluster %s, engine %s", b->listeners[i].name, b->listeners[i].port,
			    b->node_id, b->cluster_id, b->engine->ops->name);
	}
	if (ret) {
		plog_error_set(err, ret, "cannot start: %s", uv_strerror(ret));
		/* threads that run have no connections: they end at once */
		for (unsigned int i = 0; i < b->nloops; i++)
			if (b->loops[i].started)
				loop_stop(&b->loops[i]);
		return ret;
	}
	if (atomic_exchange(&hangup, false))
		reload(d);
	uv_run(&b->control.uv, UV_RUN_DEFAULT);
	return 0;
}

static void take_down(struct daemon *d)
{
	struct broker *b = &d->b;

	for (unsigned int i = 0; i < b->nloops; i++)
		loop_join(&b->loops[i]);
	/* every Produce has come home, or its loop would not have ended */
	appenders_stop(b->appenders);
	changes_stop(b->changes);
	janitor_stop(atomic_load(&b->janitor));
	for (unsigned int i = 0; i < b->nlisteners; i++)
		listener_close(&b->listeners[i]);
	for (unsigned int i = 0; i < b->nloops; i++)
		loop_close(&b->loops[i]);
	/* the module keeps its logs open; those of this process are closed with their mark */
	if (b->engine && !b->netlink)
		changes_unload(b);
	topics_free(b->topics);
	fetch_sessions_free(b->sessions);
	if (b->engine)
		b->engine->ops->stop(b->engine);
	netlink_close(b->netlink);
	janitor_free(atomic_load(&b->janitor));
	if (b->control.uv.data)
		loop_close(&b->control);
	if (b->datadir)
		datadir_close(b->datadir);
	peers_free(b->peers);
	free(b->listeners);
	free(b->loops);
	config_free(atomic_load(&b->config));
}

int main(int argc, char **argv)
{
	static struct daemon d;
	struct plog_error err = { "" };
	struct config *config;
	char threads[16];
	int ret;

	ret = parse_options(argc, argv, &d.options);
	if (ret)
		return ret;
	if (config_read(d.options.path, d.options.overrides, d.options.noverrides, &config,
			&err)) {
		say(SAY_ERROR, "config", "%s", err.text);
		return 1;
	}
	if (d.options.check) {
		config_free(config);
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	raise_limits(&d.b);
	snprintf(threads, sizeof(threads), "%" PRId64, config->io_threads);
	/* libuv reads it when the first work is queued */
	setenv("UV_THREADPOOL_SIZE", threads, 1);

	atomic_store(&d.b.config, config);
	d.b.config_path = d.options.path;
	d.b.stop_task.run = on_stop_task;
	take_early_signals(&d.b);
	say(SAY_INFO, "plogd", "plogd %s starts on %s", BROKER_VERSION, config->log_dir);
	ret = start(&d.b, &err);
	if (!ret)
		ret = serve(&d, &err);
	if (ret == -ECANCELED) {
		say(SAY_INFO, "plogd", "a signal: ending before there is anything to serve");
	} else if (ret) {
		say(SAY_ERROR, "plogd", "%s", err.text);
		atomic_store(&d.b.exit_code, 1);
	}
	ret = atomic_load(&d.b.exit_code);
	take_down(&d);
	say(SAY_INFO, "plogd", ret ? "ended" : "stopped");
	return ret;
}
