// SPDX-License-Identifier: MIT
/*
 * Topics without a daemon: plogctl writes the data directory and tells the
 * module.  The directory is found by the instance's label; that somebody holds
 * its lock shows that it is the one that is served.
 */
#include "plogctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CHANGE_TIMEOUT_MS	10000

/*
 * Our turn to change the directory.  A daemon registers before it reads the
 * topics, so one that is not registered by now will see what we do.
 */
static int begin(struct net *net, const char *label, struct datadir **dir,
		 struct plog_error *err)
{
	struct instance_info info;
	int ret;

	ret = datadir_open(label, DATADIR_ATTACH, dir, err);
	if (ret)
		return ret;
	ret = datadir_change_begin(*dir, CHANGE_TIMEOUT_MS, err);
	if (ret)
		goto close;
	ret = kernel_instance_need(net, &info, err);
	if (ret)
		goto close;
	if (info.incarnation || strcmp(info.data_dir, label)) {
		ret = plog_error_set(err, -EAGAIN, "a daemon has just started; run the command "
				     "again");
		goto close;
	}
	return 0;

close:
	datadir_close(*dir);
	*dir = NULL;
	return ret;
}

static void note_failed(void *arg, const struct partition_info *info)
{
	struct plog_error *first = arg;

	if (!*first->text)
		plog_error_set(first, 0, "partition %s/%" PRIu32 " is %s: %s", info->topic,
			       info->index, partition_state_text(info->state),
			       info->error ? strerror(info->error) : "no reason told");
}

/* Puts partitions @from and up into service and waits for them. */
static int serve(struct net *net, struct datadir *dir, const struct datadir_topic *topic,
		 uint32_t from, struct plog_error *err)
{
	struct partition_list wanted = { 0 };
	struct plog_error first = { "" };
	int ret = net_events_open(net, err);

	for (uint32_t i = from; !ret && i < topic->partitions; i++) {
		partition_list_add(&wanted, topic->name, i);
		ret = kernel_partition_new(net, dir, topic, i, NULL, err);
	}
	if (!ret)
		ret = kernel_wait_online(net, &wanted, note_failed, &first, err);
	if (!ret && *first.text) {
		*err = first;
		ret = -EIO;
	}
	partition_list_free(&wanted);
	return ret;
}

static void unserve(struct net *net, const char *topic)
{
	struct partition_list now;

	if (kernel_partition_list(net, topic, &now, NULL))
		return;
	for (size_t i = 0; i < now.count; i++)
		kernel_partition_del(net, topic, now.entries[i].index, NULL);
	partition_list_free(&now);
}

static int check_collision(struct datadir *dir, const char *name, struct plog_error *err)
{
	struct datadir_topic *topics;
	size_t count;
	int ret = datadir_scan(dir, &topics, &count, err);

	if (ret)
		return ret;
	for (size_t i = 0; !ret && i < count; i++)
		if (datadir_topic_names_collide(name, topics[i].name))
			ret = plog_error_set(err, -EEXIST, "topic names %s and %s differ only by "
					     "'.' and '_', which is not allowed: metrics would "
					     "mix them up", name, topics[i].name);
	datadir_topics_free(topics, count);
	return ret;
}

int local_topic_create(struct net *net, const char *label, struct datadir_topic *topic,
		       struct plog_error *err)
{
	struct datadir *dir;
	int ret;

	ret = begin(net, label, &dir, err);
	if (ret)
		return ret;
	ret = check_collision(dir, topic->name, err);
	if (!ret)
		ret = datadir_topic_create(dir, topic, err);
	if (!ret) {
		ret = serve(net, dir, topic, 0, err);
		if (ret) {
			/* Nobody has used it yet: better none than half of one. */
			unserve(net, topic->name);
			datadir_topic_delete(dir, topic->name, NULL);
		}
	}
	datadir_close(dir);
	return ret;
}

int local_topic_list(const char *label, struct datadir_topic **topics, size_t *count,
		     struct plog_error *err)
{
	struct datadir *dir;
	int ret = datadir_open(label, DATADIR_ATTACH, &dir, err);

	if (ret)
		return ret;
	ret = datadir_scan(dir, topics, count, err);
	datadir_close(dir);
	return ret;
}

int local_topic_read(const char *label, const char *name, struct datadir_topic *topic,
		     struct plog_error *err)
{
	struct datadir *dir;
	int ret;

	memset(topic, 0, sizeof(*topic));
	ret = datadir_open(label, DATADIR_ATTACH, &dir, err);
	if (ret)
		return ret;
	ret = datadir_topic_read(dir, name, topic, err);
	datadir_close(dir);
	return ret;
}

int local_topic_delete(struct net *net, const char *label, const char *name,
		       struct plog_error *err)
{
	struct partition_list now = { 0 };
	struct datadir_topic topic;
	struct datadir *dir;
	int ret;

	ret = begin(net, label, &dir, err);
	if (ret)
		return ret;
	ret = datadir_topic_read(dir, name, &topic, err);
	/* One whose file cannot be used can still be deleted. */
	if (ret == -EINVAL && !datadir_topic_name_check(name, NULL))
		ret = 0;
	if (!ret)
		ret = kernel_partition_list(net, name, &now, err);
	for (size_t i = 0; !ret && i < now.count; i++) {
		ret = kernel_partition_del(net, name, now.entries[i].index, err);
		if (ret == -ENOENT)
			ret = 0;
	}
	if (!ret)
		ret = datadir_topic_delete(dir, name, err);
	partition_list_free(&now);
	datadir_topic_clear(&topic);
	datadir_close(dir);
	return ret;
}

/* ---- alter ---- */

/* Partitions that are on their way out. */
struct closing {
	const char *topic;
	uint32_t from;
	size_t left;
};

static int on_event(void *arg, uint8_t command, struct nlattr **attrs)
{
	struct closing *c = arg;
	struct partition_info info;

	(void)command;
	if (partition_decode(attrs, &info) && info.state == PLOG_PARTITION_CLOSED &&
	    info.index >= c->from && !strcmp(info.topic, c->topic) && c->left)
		c->left--;
	return 0;
}

/*
 * The module has not taken all of the new partitions: none of them stays.  Whether it
 * takes them shows only when they are there, and a crash must not leave a part of them,
 * so the file comes first, as for a topic that is created.
 */
static void take_back(struct net *net, struct datadir *dir, const struct datadir_topic *before)
{
	struct closing closing = { before->name, before->partitions, 0 };
	struct partition_list now;
	struct plog_error err;

	if (!kernel_partition_list(net, before->name, &now, NULL)) {
		for (size_t i = 0; i < now.count; i++)
			if (now.entries[i].index >= before->partitions &&
			    !kernel_partition_del(net, before->name, now.entries[i].index, NULL))
				closing.left++;
		partition_list_free(&now);
	}
	/* What still closes may write into its folder, and keeps its name. */
	while (closing.left && net_events_wait(net, 1000, on_event, &closing) > 0)
		;
	if (datadir_topic_shrink(dir, before, &err))
		warn("topic %s keeps its new partitions: %s", before->name, err.text);
}

static int grow(struct net *net, struct datadir *dir, const struct datadir_topic *before,
		const struct datadir_topic *topic, struct plog_error *err)
{
	int ret = datadir_topic_write(dir, topic, err);

	if (!ret)
		ret = serve(net, dir, topic, before->partitions, err);
	if (ret)
		take_back(net, dir, before);
	return ret;
}

int local_topic_alter(struct net *net, const char *label, const char *name,
		      const struct datadir_change *change, struct datadir_topic *topic,
		      struct plog_error *err)
{
	struct datadir_topic before = { 0 };
	struct partition_list now = { 0 };
	struct datadir *dir;
	int ret;

	memset(topic, 0, sizeof(*topic));
	ret = begin(net, label, &dir, err);
	if (ret)
		return ret;
	ret = datadir_topic_read(dir, name, topic, err);
	if (!ret)
		ret = datadir_topic_read(dir, name, &before, err);
	if (!ret)
		ret = datadir_topic_change(topic, change, err);
	if (!ret && topic->partitions > before.partitions)
		ret = grow(net, dir, &before, topic, err);
	else if (!ret)
		ret = datadir_topic_write(dir, topic, err);
	if (!ret)
		ret = kernel_partition_list(net, name, &now, err);
	for (size_t i = 0; !ret && i < now.count; i++)
		if (now.entries[i].index < before.partitions)
			ret = kernel_partition_set(net, topic, now.entries[i].index, err);
	partition_list_free(&now);
	datadir_topic_clear(&before);
	datadir_close(dir);
	return ret;
}
