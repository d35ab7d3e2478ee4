// SPDX-License-Identifier: MIT
#include "change.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/libplog/topicconfig.h"
#include "../kafka/error.h"
#include "../log/log.h"
#include "../say.h"
#include "broker.h"
#include "netlink.h"
#include "topics.h"

/* How long plogctl may hold the data directory for a change of its own. */
#define CHANGE_WAIT_MS 10000

struct changes {
	struct broker *broker;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct change *first, **last;
	bool stop;
};

void change_init(struct change *c, enum change_kind kind, const char *name, size_t n)
{
	memset(c, 0, sizeof(*c));
	c->kind = kind;
	if (n > DATADIR_TOPIC_MAX)
		n = DATADIR_TOPIC_MAX;
	if (n)
		memcpy(c->name, name, n);
	properties_init(&c->set);
	c->partition = -1;
	c->owner.mode = 0600;
	c->node = true;
}

void change_clear(struct change *c)
{
	properties_clear(&c->set);
	topic_put(c->topic);
	c->topic = NULL;
}

static void refuse(struct change *c, int16_t error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void refuse(struct change *c, int16_t error, const char *fmt, ...)
{
	va_list ap;

	c->error = error;
	va_start(ap, fmt);
	vsnprintf(c->text, sizeof(c->text), fmt, ap);
	va_end(ap);
}

/* ---- opening the logs of a topic ---- */

static void free_logs(struct log **logs, uint32_t n, bool shut)
{
	for (uint32_t i = 0; logs && i < n; i++) {
		if (!logs[i])
			continue;
		if (shut)
			log_shut(logs[i], false, NULL);
		log_put(logs[i]);
	}
	free(logs);
}

/* As which Kafka error a change is refused that has come so far. */
static int16_t refusal(int ret)
{
	switch (ret) {
	case -EEXIST:
		return KERR_TOPIC_ALREADY_EXISTS;
	case -EUSERS:
		return KERR_POLICY_VIOLATION;
	case -EFBIG:
		/* the topic's file: nothing but the configuration has no end */
		return KERR_INVALID_CONFIG;
	default:
		return KERR_KAFKA_STORAGE_ERROR;
	}
}

/* -EUSERS: there are as many partitions as there may be. */
static int begin_log(struct broker *b, const struct datadir_topic *conf, uint32_t i,
		     struct log **out, struct plog_error *err)
{
	struct log_config config;
	bool made = false;
	int fd, ret;

	fd = datadir_partition_open(b->datadir, conf, i, &made, err);
	if (fd < 0)
		return fd;
	if (made)
		say(SAY_WARN, "topics", "%s-%u: its folder was missing and has been made anew, "
		    "empty", conf->name, i);
	topic_log_config(b, conf, i, &config);
	ret = log_open(b->engine, conf->name, i, fd, &config, out, err);
	close(fd);
	/* a disk that is full is not said here: the engine makes its files later */
	return ret == -ENOSPC ? -EUSERS : ret;
}

/* ---- create ---- */

static bool collides(struct broker *b, const char *name, char *with)
{
	struct topic **all;
	size_t count;
	bool found = false;

	/* only names with . or _ can */
	if (!strpbrk(name, "._"))
		return false;
	all = topics_all(b->topics, &count);
	for (size_t i = 0; all && !found && i < count; i++)
		if (strcmp(all[i]->conf.name, name) &&
		    datadir_topic_names_collide(all[i]->conf.name, name)) {
			strcpy(with, all[i]->conf.name);
			found = true;
		}
	topics_all_free(all, count);
	return found;
}

static void check_create(struct broker *b, struct change *c)
{
	char with[DATADIR_TOPIC_MAX + 1];
	struct plog_error err = { "" };
	struct topic *old;
	int ret;

	if (datadir_topic_name_check(c->name, &err)) {
		refuse(c, KERR_INVALID_TOPIC_EXCEPTION, "%s", err.text);
		return;
	}
	old = topics_find(b->topics, kstr_of(c->name));
	if (old) {
		refuse(c, KERR_TOPIC_ALREADY_EXISTS, "Topic '%s' already exists.", c->name);
		topic_put(old);
		return;
	}
	if (collides(b, c->name, with)) {
		refuse(c, KERR_INVALID_TOPIC_EXCEPTION, "Topic '%s' collides with existing topic "
		       "'%s': names that differ only by '.' and '_' are not allowed.", c->name,
		       with);
		return;
	}
	if (c->partitions < 1 || c->partitions > DATADIR_PARTITIONS_MAX) {
		refuse(c, KERR_INVALID_PARTITIONS, "Topic '%s': the number of partitions must be "
		       "from 1 to %d, not %" PRId64 ".", c->name, DATADIR_PARTITIONS_MAX,
		       c->partitions);
		return;
	}
	ret = topicconfig_check_all(&c->set, &err);
	if (ret)
		refuse(c, KERR_INVALID_CONFIG, "%s", err.text);
}

static int make_topic(struct broker *b, struct change *c, struct datadir_topic *conf,
		      struct plog_error *err)
{
	struct log **logs = calloc(c->partitions, sizeof(*logs));
	struct topic *topic;
	uint32_t i, n = c->partitions;
	int ret = 0;

	if (!logs)
		return plog_error_set(err, -ENOMEM, "%s: out of memory", c->name);
	conf->partitions = n;
	conf->owner = c->owner;
	conf->node = c->node;
	if (properties_merge(&conf->config, &c->set)) {
		free(logs);
		return plog_error_set(err, -ENOMEM, "%s: out of memory", c->name);
	}
	ret = datadir_topic_create(b->datadir, conf, err);
	if (ret) {
		free(logs);
		return ret;
	}
	for (i = 0; !ret && i < n; i++)
		ret = begin_log(b, conf, i, &logs[i], err);
	for (i = 0; !ret && i < n; i++)
		ret = log_wait(logs[i], err);
	topic = ret ? NULL : topic_new(b, conf, logs);
	if (!topic) {
		if (!ret)
			ret = plog_error_set(err, -ENOMEM, "%s: out of memory", c->name);
		free_logs(logs, n, true);
		datadir_topic_delete(b->datadir, c->name, NULL);
		return ret;
	}
	topic_get(topic);
	ret = topics_put(b->topics, topic);
	if (ret) {
		topic_put(topic);
		for (i = 0; i < n; i++)
			log_shut(topic->logs[i], false, NULL);
		topic_put(topic);
		datadir_topic_delete(b->datadir, c->name, NULL);
		return plog_error_set(err, ret, "%s: out of memory", c->name);
	}
	c->topic = topic;
	return 0;
}

static void create(struct broker *b, struct change *c)
{
	struct plog_error err = { "" };
	struct datadir_topic conf;
	int ret;

	check_create(b, c);
	if (c->error || c->validate_only)
		return;
	datadir_topic_init(&conf, c->name);
	ret = make_topic(b, c, &conf, &err);
	datadir_topic_clear(&conf);
	if (ret) {
		refuse(c, refusal(ret), "%s", err.text);
		say(SAY_ERROR, "topics", "topic %s was not created: %s", c->name, err.text);
		return;
	}
	say(SAY_INFO, "topics", "topic %s was created with %" PRId64 " partition%s", c->name,
	    c->partitions, c->partitions == 1 ? "" : "s");
}

/* ---- delete ---- */

static void delete(struct broker *b, struct change *c)
{
	struct plog_error err = { "" };
	struct topic *topic = topics_find(b->topics, kstr_of(c->name));
	bool other = topic && !kuuid_is_zero(&c->id) && !kuuid_eq(&c->id, &topic->id);
	int ret;

	topic_put(topic);
	if (!topic) {
		/* who named an id saw it when the request came */
		refuse(c, kuuid_is_zero(&c->id) ? KERR_UNKNOWN_TOPIC_OR_PARTITION :
		       KERR_UNKNOWN_TOPIC_ID, "There is no topic '%s' any more.", c->name);
		return;
	}
	if (other) {
		/* deleted and made again while this change was in line */
		refuse(c, KERR_UNKNOWN_TOPIC_ID, "Topic '%s' has another id by now.", c->name);
		return;
	}
	/* no other thread changes the table */
	topic = topics_take(b->topics, c->name);
	for (uint32_t i = 0; i < topic->partitions; i++)
		if (topic->logs[i] && log_shut(topic->logs[i], false, &err))
			say(SAY_WARN, "topics", "%s-%u: %s", c->name, i, err.text);
	ret = datadir_topic_delete(b->datadir, c->name, &err);
	topic_put(topic);
	if (ret) {
		/* out of service it is; the rest of its files goes at the next start */
		refuse(c, KERR_KAFKA_STORAGE_ERROR, "%s", err.text);
		say(SAY_ERROR, "topics", "topic %s: its files could not be removed: %s", c->name,
		    err.text);
		return;
	}
	say(SAY_INFO, "topics", "topic %s was deleted", c->name);
}

/* ---- alter ---- */

static int change_conf(const struct change *c, struct datadir_topic *conf, struct plog_error *err)
{
	struct datadir_change change = {
		.partitions = c->partitions,
		.set = &c->set,
		.unset = c->unset,
		.unset_count = c->nunset,
		.owner = c->owner,
		.uid_set = c->set_uid,
		.gid_set = c->set_gid,
		.mode_set = c->set_mode,
		.partition = c->partition,
	};

	return datadir_topic_change(conf, &change, err);
}

/* Tell each log of @old what @conf says. The first failure is the answer, the others are tried. */
static int configure_logs(struct broker *b, const struct topic *old,
			  const struct datadir_topic *conf, struct plog_error *err)
{
	struct log_config config;
	int ret = 0, one;

	for (uint32_t i = 0; i < old->partitions; i++) {
		if (!old->logs[i])
			continue;
		topic_log_config(b, conf, i, &config);
		one = log_configure(old->logs[i], &config, ret ? NULL : err);
		if (one && !ret)
			ret = one;
	}
	return ret;
}

static int replace(struct broker *b, struct change *c, struct topic *old,
		   struct datadir_topic *conf, struct plog_error *err)
{
	uint32_t i, n = conf->partitions;
	struct log **logs = calloc(n, sizeof(*logs));
	struct topic *topic;
	int ret = 0;

	if (!logs)
		return plog_error_set(err, -ENOMEM, "%s: out of memory", conf->name);
	for (i = old->partitions; !ret && i < n; i++)
		ret = begin_log(b, conf, i, &logs[i], err);
	for (i = old->partitions; !ret && i < n; i++)
		ret = log_wait(logs[i], err);
	if (!ret)
		ret = configure_logs(b, old, conf, err);
	if (ret) {
		free_logs(logs, n, true);
		return ret;
	}
	for (i = 0; i < old->partitions; i++) {
		logs[i] = old->logs[i];
		if (logs[i])
			log_get(logs[i]);
	}
	topic = topic_new(b, conf, logs);
	if (!topic) {
		free_logs(logs, n, false);
		return plog_error_set(err, -ENOMEM, "out of memory");
	}
	topic_get(topic);
	ret = topics_put(b->topics, topic);
	if (ret) {
		topic_put(topic);
		topic_put(topic);
		return plog_error_set(err, ret, "out of memory");
	}
	c->topic = topic;
	return 0;
}

/*
 * A change was refused by the engine, of some partitions or all: the file and the other
 * logs are to say what they said before. New logs are shut already.
 */
static void take_back(struct broker *b, const struct topic *old, const struct datadir_topic *before)
{
	struct plog_error err = { "" };
	int ret;

	ret = datadir_topic_shrink(b->datadir, before, &err);
	if (ret)
		say(SAY_ERROR, "topics", "topic %s: a change that was refused stays in its file: %s",
		    before->name, err.text);
	else if (configure_logs(b, old, before, &err))
		say(SAY_ERROR, "topics", "topic %s: some partitions keep a change that was refused: "
		    "%s", before->name, err.text);
}

static void alter(struct broker *b, struct change *c)
{
	struct plog_error err = { "" };
	struct datadir_topic conf, before;
	struct topic *old = topics_find(b->topics, kstr_of(c->name));
	int ret;

	if (!old) {
		refuse(c, KERR_UNKNOWN_TOPIC_OR_PARTITION, "There is no topic '%s'.", c->name);
		return;
	}
	ret = datadir_topic_read(b->datadir, c->name, &before, &err);
	if (ret) {
		refuse(c, KERR_KAFKA_STORAGE_ERROR, "%s", err.text);
		topic_put(old);
		return;
	}
	ret = datadir_topic_read(b->datadir, c->name, &conf, &err);
	if (ret) {
		refuse(c, KERR_KAFKA_STORAGE_ERROR, "%s", err.text);
		datadir_topic_clear(&before);
		topic_put(old);
		return;
	}
	ret = change_conf(c, &conf, &err);
	if (ret) {
		refuse(c, ret == -EDOM ? KERR_INVALID_PARTITIONS :
		       ret == -ENOENT ? KERR_UNKNOWN_TOPIC_OR_PARTITION :
		       ret == -EINVAL ? KERR_INVALID_CONFIG : KERR_UNKNOWN_SERVER_ERROR,
		       "%s", err.text);
	} else {
		ret = datadir_topic_write(b->datadir, &conf, &err);
		if (!ret)
			ret = replace(b, c, old, &conf, &err);
		if (ret) {
			refuse(c, refusal(ret), "%s", err.text);
			take_back(b, old, &before);
		} else {
			say(SAY_INFO, "topics", "topic %s was changed", c->name);
		}
	}
	datadir_topic_clear(&conf);
	datadir_topic_clear(&before);
	topic_put(old);
}

static void apply_defaults(struct broker *b)
{
	size_t count;
	struct topic **all = topics_all(b->topics, &count);
	struct change c;

	for (size_t i = 0; all && i < count; i++) {
		struct plog_error err = { "" };
		struct datadir_topic conf;
		int ret = datadir_topic_read(b->datadir, all[i]->conf.name, &conf, &err);

		change_init(&c, CHANGE_ALTER, "", 0);
		if (!ret)
			ret = replace(b, &c, all[i], &conf, &err);
		if (ret)
			say(SAY_ERROR, "topics", "topic %s does not have the new defaults: %s",
			    all[i]->conf.name, err.text);
		datadir_topic_clear(&conf);
		change_clear(&c);
	}
	topics_all_free(all, count);
}

/* ---- the thread ---- */

static void report(struct task *task)
{
	struct change *c = container_of(task, struct change, task);

	c->done(c);
}

static void run(struct broker *b, struct change *c)
{
	struct plog_error err = { "" };
	int ret;

	/* beside a module plogctl may change topics too: take turns */
	ret = datadir_change_begin(b->datadir, CHANGE_WAIT_MS, &err);
	if (ret) {
		refuse(c, KERR_REQUEST_TIMED_OUT, "%s", err.text);
	} else {
		switch (c->kind) {
		case CHANGE_CREATE:
			create(b, c);
			break;
		case CHANGE_DELETE:
			delete(b, c);
			break;
		case CHANGE_ALTER:
			alter(b, c);
			break;
		case CHANGE_DEFAULTS:
			apply_defaults(b);
			break;
		}
		datadir_change_end(b->datadir);
	}
	c->task.run = report;
	loop_post(c->loop, &c->task);
}

static void *thread_main(void *arg)
{
	struct changes *changes = arg;
	struct change *c;

	pthread_mutex_lock(&changes->lock);
	for (;;) {
		while (!changes->first && !changes->stop)
			pthread_cond_wait(&changes->some, &changes->lock);
		c = changes->first;
		if (!c)
			break;
		changes->first = c->next;
		if (!changes->first)
			changes->last = &changes->first;
		pthread_mutex_unlock(&changes->lock);
		run(changes->broker, c);
		pthread_mutex_lock(&changes->lock);
	}
	pthread_mutex_unlock(&changes->lock);
	return NULL;
}

struct changes *changes_start(struct broker *b, struct plog_error *err)
{
	struct changes *changes = calloc(1, sizeof(*changes));
	sigset_t all, old;
	int ret = ENOMEM;

	if (changes) {
		changes->broker = b;
		changes->last = &changes->first;
		pthread_mutex_init(&changes->lock, NULL);
		pthread_cond_init(&changes->some, NULL);
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		ret = pthread_create(&changes->thread, NULL, thread_main, changes);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	if (ret) {
		free(changes);
		plog_error_set(err, -ret, "cannot start the thread that changes topics: %s",
			       strerror(ret));
		return NULL;
	}
	pthread_setname_np(changes->thread, "plogd-changes");
	return changes;
}

void changes_stop(struct changes *changes)
{
	if (!changes)
		return;
	pthread_mutex_lock(&changes->lock);
	changes->stop = true;
	pthread_cond_signal(&changes->some);
	pthread_mutex_unlock(&changes->lock);
	pthread_join(changes->thread, NULL);
	pthread_mutex_destroy(&changes->lock);
	pthread_cond_destroy(&changes->some);
	free(changes);
}

void changes_submit(struct changes *changes, struct change *c)
{
	c->next = NULL;
	pthread_mutex_lock(&changes->lock);
	*changes->last = c;
	changes->last = &c->next;
	pthread_cond_signal(&changes->some);
	pthread_mutex_unlock(&changes->lock);
}

/* ---- start and end ---- */

static int load_topic(struct broker *b, struct datadir_topic *conf, struct plog_error *err)
{
	struct log **logs = calloc(conf->partitions ? conf->partitions : 1, sizeof(*logs));
	uint32_t n = conf->partitions;
	struct topic *topic;
	int ret;

	if (!logs)
		return plog_error_set(err, -ENOMEM, "out of memory");
	if (conf->adopted) {
		say(SAY_INFO, "topics", "topic %s was found without its file and is adopted",
		    conf->name);
		if (kuuid_is_zero((const struct kuuid *)conf->id) && datadir_id_random(conf->id)) {
			free(logs);
			return plog_error_set(err, -EIO, "no random numbers");
		}
		ret = datadir_topic_write(b->datadir, conf, err);
		if (ret) {
			free(logs);
			return ret;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		struct plog_error why = { "" };

		if (begin_log(b, conf, i, &logs[i], &why))
			say(SAY_ERROR, "topics", "%s-%u stays out of service: %s", conf->name, i,
			    why.text);
	}
	topic = topic_new(b, conf, logs);
	if (topic && !topics_put(b->topics, topic))
		return 0;
	if (topic)
		topic_put(topic);
	else
		free_logs(logs, n, true);
	return plog_error_set(err, -ENOMEM, "out of memory");
}

int changes_load(struct broker *b, struct plog_error *err)
{
	struct datadir_topic *found = NULL;
	struct topic **all;
	size_t count = 0, logs = 0, failed = 0;
	int ret;

	ret = datadir_change_begin(b->datadir, CHANGE_WAIT_MS, err);
	if (ret)
		return ret;
	ret = datadir_scan(b->datadir, &found, &count, err);
	for (size_t i = 0; !ret && i < count; i++)
		ret = atomic_load(&b->stopping) ? -ECANCELED : load_topic(b, &found[i], err);
	if (!ret && b->netlink)
		ret = netlink_drop_unknown(b->netlink, b->topics, err);
	datadir_change_end(b->datadir);
	datadir_topics_free(found, count);
	if (ret)
		return ret;

	/* all of them open at the same time where the engine can do that */
	all = topics_all(b->topics, &count);
	if (!all)
		return plog_error_set(err, -ENOMEM, "out of memory");
	for (size_t t = 0; t < count; t++)
		for (uint32_t i = 0; i < all[t]->partitions; i++) {
			struct plog_error why = { "" };

			logs++;
			if (all[t]->logs[i] && !log_wait(all[t]->logs[i], &why))
				continue;
			failed++;
			if (all[t]->logs[i])
				say(SAY_ERROR, "topics", "%s stays out of service: %s",
				    all[t]->logs[i]->name, why.text);
		}
	topics_all_free(all, count);
	say(SAY_INFO, "topics", "%zu topics with %zu partitions are open%s", count, logs - failed,
	    failed ? "; others could not be opened, see above" : "");
	return 0;
}

void changes_unload(struct broker *b)
{
	size_t count;
	struct topic **all = topics_all(b->topics, &count);

	for (size_t t = 0; all && t < count; t++)
		for (uint32_t i = 0; i < all[t]->partitions; i++) {
			struct plog_error err = { "" };

			if (all[t]->logs[i] && log_shut(all[t]->logs[i], true, &err))
				say(SAY_WARN, "topics", "%s was not closed cleanly: %s",
				    all[t]->logs[i]->name, err.text);
		}
	topics_all_free(all, count);
}
