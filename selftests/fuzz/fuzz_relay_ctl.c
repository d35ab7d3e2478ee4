// SPDX-License-Identifier: MIT
/*
 * plogctl's end of the relay: its own files, but for the socket. An answer comes as the
 * attributes of a message do.
 */
#include "fuzz_relay.h"

#include "../../tools/plogctl/plogctl.h"

#define net_relay net_relay_of_the_module
#include "../../tools/plogctl/net.c"
#undef net_relay
#include "../../tools/plogctl/kernel.c"
#include "../../tools/plogctl/topic_remote.c"

#include <arpa/inet.h>

static const char *left;
static size_t left_size;

/* of main.c, for options.c, of which only the parsers are wanted */
const struct command commands[] = { { .group = NULL } };

volatile bool interrupted;

/* The message's attribute with this payload; kept until the next call. */
static struct nlattr *message(uint32_t cookie, const char *json, size_t size)
{
	static struct nl_msg *msg;
	struct nlattr *nest;

	nlmsg_free(msg);
	msg = nlmsg_alloc_size(size + 256);
	fuzz_must(msg != NULL);
	nest = nla_nest_start(msg, PLOG_A_RELAY | NLA_F_NESTED);
	fuzz_must(nest && !nla_put_u32(msg, PLOG_A_RELAY_COOKIE, cookie) &&
		  !nla_put(msg, PLOG_A_RELAY_PAYLOAD, size, json));
	nla_nest_end(msg, nest);
	return nest;
}

static int receive(const char *json, size_t size, struct json_object **reply,
		   struct plog_error *err)
{
	struct relay relay = { .cookie = 7 };
	struct nlattr *attrs[PLOG_A_MAX + 1] = { NULL };

	/* another's is not ours */
	attrs[PLOG_A_RELAY] = message(8, json, size);
	fuzz_must(!on_reply(&relay, PLOG_CMD_RELAY_REPLY, attrs) && !relay.reply &&
		  !relay.malformed);
	attrs[PLOG_A_RELAY] = message(7, json, size);
	fuzz_must(!on_reply(&relay, PLOG_CMD_RELAY_REPLY, attrs));
	fuzz_must(relay.reply || relay.malformed);
	return check_reply(&relay, reply, err);
}

/* Whatever is asked: the next answer. */
int net_relay(struct net *net, struct json_object *request, unsigned int timeout_s,
	      struct json_object **reply, struct plog_error *err)
{
	const char *end = left_size ? memchr(left, 0xff, left_size) : NULL;
	size_t size = end ? (size_t)(end - left) : left_size;
	const char *json = left;

	(void)net;
	(void)timeout_s;
	fuzz_must(json_object_is_type(request, json_type_object));
	*reply = NULL;
	if (!left)
		return plog_error_set(err, -ETIMEDOUT, "no answer is left");
	left = end ? end + 1 : NULL;
	left_size = end ? left_size - size - 1 : 0;
	return receive(json, size, reply, err);
}

void fuzz_relay_answer(const char *json, size_t size)
{
	struct plog_error err = { "" };
	struct json_object *reply = NULL, *field;
	struct datadir_topic topic, *topics = NULL;
	size_t count = 0;
	bool more;
	int ret = receive(json, size, &reply, &err);

	if (ret) {
		fuzz_must(ret == -EREMOTEIO && err.text[0]);
		return;
	}
	if (json_object_object_get_ex(reply, "topic", &field)) {
		fuzz_must(!take_topic(reply, &topic, &err));
		datadir_topic_clear(&topic);
		return;
	}
	if (json_object_object_get_ex(reply, "topics", &field) &&
	    json_object_is_type(field, json_type_array)) {
		fuzz_must(!take_page(reply, &topics, &count, &more, &err));
		datadir_topics_free(topics, count);
	}
	json_object_put(reply);
}

void fuzz_relay_answers(const char *bytes, size_t size, unsigned int command)
{
	char *unset[] = { "retention.ms" };
	struct datadir_change change = { .partitions = 5, .unset = unset, .unset_count = 1,
					 .mode_set = true, .partition = -1 };
	struct datadir_topic topic, *topics = NULL;
	struct plog_error err = { "" };
	size_t count = 0;
	int ret;

	left = bytes;
	left_size = size;
	datadir_topic_init(&topic, "orders");
	switch (command % 5) {
	case 0:
		ret = remote_topic_list(NULL, &topics, &count, &err);
		for (size_t i = 0; i < count; i++)
			fuzz_must(!datadir_topic_name_check(topics[i].name, NULL));
		datadir_topics_free(topics, count);
		break;
	case 1:
		ret = remote_topic_read(NULL, "orders", &topic, &err);
		break;
	case 2:
		ret = remote_topic_create(NULL, &topic, &err);
		break;
	case 3:
		ret = remote_topic_alter(NULL, "orders", &change, &topic, &err);
		break;
	default:
		ret = remote_topic_delete(NULL, "orders", &err);
	}
	fuzz_must(!ret || err.text[0]);
	if (!ret || command % 5 == 2)
		datadir_topic_clear(&topic);
}

/* ---- messages of any kind ---- */

static void seen_retired(void *arg, const struct retired_info *info)
{
	(void)arg;
	fuzz_must(strlen(info->topic) < sizeof(info->topic) && retired_state_text(info->state));
}

static void seen_segment(void *arg, const struct segment_info *info)
{
	(void)arg;
	(void)info;
}

static void seen_epoch(void *arg, const struct epoch_info *info)
{
	(void)arg;
	(void)info;
}

static void decode(struct nl_msg *msg, struct request *rq, unsigned int which)
{
	struct retired_walk retired = { seen_retired, NULL };
	struct segment_walk segment = { seen_segment, NULL };
	struct epoch_walk epoch = { seen_epoch, NULL };
	struct partition_list partitions = { 0 };
	struct stats_list stats = { 0 };
	struct relay relay = { .cookie = 7 };
	struct instance_info instance = { 0 };
	const struct request requests[] = {
		{ .fn = on_instance, .arg = &instance }, { .fn = on_listed, .arg = &partitions },
		{ .fn = on_retired, .arg = &retired }, { .fn = on_segment, .arg = &segment },
		{ .fn = on_epoch, .arg = &epoch }, { .fn = on_stats_listed, .arg = &stats },
		{ .fn = on_reply, .arg = &relay }, { .fn = NULL },
	};

	*rq = requests[which % 8];
	on_message(msg, rq);
	fuzz_must(!rq->error && instance_state_text(instance.state));
	for (size_t i = 0; i < partitions.count; i++)
		json_object_put(partition_json(&partitions.entries[i]));
	partition_list_free(&partitions);
	free(stats.entries);
	json_object_put(relay.reply);
}

void fuzz_relay_message(const struct nlmsghdr *nlh, unsigned int which)
{
	/* a copy of just its size; libnl looks at no more of a message than that it is whole */
	struct nl_msg *msg = nlmsg_convert((struct nlmsghdr *)nlh);
	struct plog_error err = { "" };
	struct request rq = { 0 };

	fuzz_must(msg != NULL);
	if (nlh->nlmsg_type == NLMSG_ERROR) {
		if (nlmsg_datalen(nlh) >= (int)sizeof(struct nlmsgerr))
			on_error(NULL, nlmsg_data(nlmsg_hdr(msg)), &rq);
	} else if (nlh->nlmsg_type == NLMSG_DONE) {
		on_dump_end(msg, &rq);
	} else {
		decode(msg, &rq, which);
	}
	fuzz_must(strlen(rq.text) < sizeof(rq.text) && rq.error <= 0);
	if (rq.error)
		fuzz_must(say_kernel(&rq, "fuzz", &err) == rq.error && err.text[0]);
	nlmsg_free(msg);
}
