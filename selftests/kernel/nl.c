// SPDX-License-Identifier: MIT
#include "nl.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>

#define ANSWER_MS 20000

static int family_attr(const struct nlattr *attr, void *data)
{
	struct nl *nl = data;
	const struct nlattr *group, *field;

	switch (mnl_attr_get_type(attr)) {
	case CTRL_ATTR_FAMILY_ID:
		nl->family = mnl_attr_get_u16(attr);
		break;
	case CTRL_ATTR_MCAST_GROUPS:
		mnl_attr_for_each_nested(group, attr) {
			uint32_t id = 0;
			bool ours = false;

			mnl_attr_for_each_nested(field, group) {
				if (mnl_attr_get_type(field) == CTRL_ATTR_MCAST_GRP_ID)
					id = mnl_attr_get_u32(field);
				else if (mnl_attr_get_type(field) == CTRL_ATTR_MCAST_GRP_NAME)
					ours = !strcmp(mnl_attr_get_str(field),
						       PLOG_GENL_GROUP_EVENTS);
			}
			if (ours)
				nl->group = id;
		}
		break;
	}
	return MNL_CB_OK;
}

static int family_cb(const struct nlmsghdr *nlh, void *data)
{
	return mnl_attr_parse(nlh, sizeof(struct genlmsghdr), family_attr, data);
}

static int resolve(struct nl *nl)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh;
	int ret;

	nl->family = GENL_ID_CTRL;
	nlh = nl_begin(nl, buf, CTRL_CMD_GETFAMILY, 0);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, PLOG_GENL_NAME);
	ret = nl_talk(nl, nlh, family_cb, nl);
	if (ret)
		return ret;
	return nl->family == GENL_ID_CTRL ? -ENOENT : 0;
}

int nl_open(struct nl *nl)
{
	int one = 1;
	int ret;

	memset(nl, 0, sizeof(*nl));
	nl->sequence = 1;
	nl->socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!nl->socket)
		return -errno;
	if (mnl_socket_bind(nl->socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_setsockopt(nl->socket, NETLINK_EXT_ACK, &one, sizeof(one)) < 0 ||
	    mnl_socket_setsockopt(nl->socket, NETLINK_CAP_ACK, &one, sizeof(one)) < 0) {
		ret = -errno;
		goto err_close;
	}
	nl->port = mnl_socket_get_portid(nl->socket);
	ret = resolve(nl);
	if (ret)
		goto err_close;
	return 0;

err_close:
	mnl_socket_close(nl->socket);
	nl->socket = NULL;
	return ret;
}

int nl_join(struct nl *nl)
{
	int group = (int)nl->group;

	if (mnl_socket_setsockopt(nl->socket, NETLINK_ADD_MEMBERSHIP, &group,
				  sizeof(group)) < 0)
		return -errno;
	return 0;
}

void nl_close(struct nl *nl)
{
	if (nl->socket)
		mnl_socket_close(nl->socket);
	nl->socket = NULL;
}

struct nlmsghdr *nl_begin(struct nl *nl, void *buf, uint8_t cmd, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = nl->family;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	nlh->nlmsg_seq = nl->sequence++;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = PLOG_GENL_VERSION;
	return nlh;
}

/* Keep the text behind an ack, from byte @skip of its payload on. */
static void take_text(struct nl *nl, const struct nlmsghdr *nlh, size_t skip)
{
	const struct nlattr *attr;

	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	mnl_attr_for_each(attr, nlh, skip) {
		switch (mnl_attr_get_type(attr)) {
		case NLMSGERR_ATTR_MSG:
			strncpy(nl->error_text, mnl_attr_get_str(attr),
				sizeof(nl->error_text) - 1);
			break;
		case NLMSGERR_ATTR_OFFS:
			nl->error_offset = mnl_attr_get_u32(attr);
			break;
		}
	}
}

/* An ack or a refusal: keep its text, return its errno. */
static int take_ack(struct nl *nl, const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);
	size_t skip = sizeof(*err);

	if (!(nlh->nlmsg_flags & NLM_F_CAPPED) && mnl_nlmsg_get_payload_len(nlh) >= skip)
		skip += err->msg.nlmsg_len - sizeof(struct nlmsghdr);
	take_text(nl, nlh, skip);
	return err->error;
}

/* The end of a dump says how it went in the same way. */
static int take_done(struct nl *nl, const struct nlmsghdr *nlh)
{
	int err = 0;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(err))
		return 0;
	memcpy(&err, mnl_nlmsg_get_payload(nlh), sizeof(err));
	take_text(nl, nlh, sizeof(err));
	return err;
}

static int receive(struct nl *nl, void *buf, int timeout_ms)
{
	struct pollfd pfd = { .fd = mnl_socket_get_fd(nl->socket), .events = POLLIN };
	int ret = poll(&pfd, 1, timeout_ms);

	if (ret < 0)
		return -errno;
	if (!ret)
		return -ETIMEDOUT;
	ret = (int)mnl_socket_recvfrom(nl->socket, buf, NL_BUF_SIZE);
	return ret < 0 ? -errno : ret;
}

void (*nl_on_request)(uint8_t cmd);

int nl_talk(struct nl *nl, struct nlmsghdr *nlh, mnl_cb_t cb, void *data)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	uint32_t seq = nlh->nlmsg_seq;
	char buf[NL_BUF_SIZE];
	int len;

	nl->error_text[0] = '\0';
	nl->error_offset = 0;
	if (nl_on_request && nlh->nlmsg_type == nl->family)
		nl_on_request(genl->cmd);
	if (mnl_socket_sendto(nl->socket, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	for (;;) {
		const struct nlmsghdr *in = (void *)buf;

		len = receive(nl, buf, ANSWER_MS);
		if (len < 0)
			return len;
		for (; mnl_nlmsg_ok(in, len); in = mnl_nlmsg_next(in, &len)) {
			if (in->nlmsg_seq != seq)
				continue;
			if (in->nlmsg_type == NLMSG_ERROR)
				return take_ack(nl, in);
			if (in->nlmsg_type == NLMSG_DONE)
				return take_done(nl, in);
			if (in->nlmsg_type >= NLMSG_MIN_TYPE && cb)
				cb(in, data);
		}
	}
}

struct nlmsghdr *nl_event(struct nl *nl, void *buf, int timeout_ms)
{
	struct timespec now;
	int64_t end, left;
	int len;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + timeout_ms;
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		left = end - (now.tv_sec * 1000 + now.tv_nsec / 1000000);
		if (left < 0)
			return NULL;
		len = receive(nl, buf, (int)left);
		if (len < 0)
			return NULL;
	} while (!mnl_nlmsg_ok(buf, len) ||
		 ((struct nlmsghdr *)buf)->nlmsg_type != nl->family);
	return buf;
}

struct nest {
	const struct nlattr **tb;
	int max;
};

static int nest_attr(const struct nlattr *attr, void *data)
{
	struct nest *nest = data;
	int type = mnl_attr_get_type(attr);

	if (type <= nest->max)
		nest->tb[type] = attr;
	return MNL_CB_OK;
}

bool nl_nest(const struct nlmsghdr *nlh, int type, const struct nlattr **tb, int max)
{
	const struct nlattr *attr;
	struct nest nest = { .tb = tb, .max = max };

	memset(tb, 0, sizeof(*tb) * (max + 1));
	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) == type) {
			mnl_attr_parse_nested(attr, nest_attr, &nest);
			return true;
		}
	}
	return false;
}

static int instance_cb(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *tb[PLOG_A_INSTANCE_MAX + 1];
	struct nl_instance *out = data;

	if (!nl_nest(nlh, PLOG_A_INSTANCE, tb, PLOG_A_INSTANCE_MAX))
		return MNL_CB_OK;
	if (tb[PLOG_A_INSTANCE_STATE])
		out->state = mnl_attr_get_u32(tb[PLOG_A_INSTANCE_STATE]);
	if (tb[PLOG_A_INSTANCE_PARTITIONS])
		out->partitions = mnl_attr_get_u32(tb[PLOG_A_INSTANCE_PARTITIONS]);
	if (tb[PLOG_A_INSTANCE_ONLINE])
		out->online = mnl_attr_get_u32(tb[PLOG_A_INSTANCE_ONLINE]);
	if (tb[PLOG_A_INSTANCE_INCARNATION])
		out->incarnation = mnl_attr_get_u64(tb[PLOG_A_INSTANCE_INCARNATION]);
	if (tb[PLOG_A_INSTANCE_DATA_DIR])
		strncpy(out->data_dir, mnl_attr_get_str(tb[PLOG_A_INSTANCE_DATA_DIR]),
			sizeof(out->data_dir) - 1);
	if (tb[PLOG_A_INSTANCE_VERSION])
		strncpy(out->version, mnl_attr_get_str(tb[PLOG_A_INSTANCE_VERSION]),
			sizeof(out->version) - 1);
	for (int i = PLOG_A_INSTANCE_MAX_PARTITIONS; i <= PLOG_A_INSTANCE_MAX_APPEND_BYTES; i++)
		if (tb[i])
			out->limits[i] = mnl_attr_get_u32(tb[i]);
	if (tb[PLOG_A_INSTANCE_DESCRIPTORS])
		out->descriptors = mnl_attr_get_u32(tb[PLOG_A_INSTANCE_DESCRIPTORS]);
	return MNL_CB_OK;
}

int nl_instance_get(struct nl *nl, struct nl_instance *out)
{
	char buf[NL_BUF_SIZE];

	memset(out, 0, sizeof(*out));
	return nl_talk(nl, nl_begin(nl, buf, PLOG_CMD_INSTANCE_GET, 0), instance_cb, out);
}

int nl_instance_set(struct nl *nl, const char *label, int dir_fd, int lock_fd)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, PLOG_CMD_INSTANCE_SET, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_INSTANCE);

	if (label)
		mnl_attr_put_strz(nlh, PLOG_A_INSTANCE_DATA_DIR, label);
	mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_DIR_FD, (uint32_t)dir_fd);
	mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_LOCK_FD, (uint32_t)lock_fd);
	mnl_attr_nest_end(nlh, nest);
	return nl_talk(nl, nlh, NULL, NULL);
}

int nl_instance_limit(struct nl *nl, int attr, uint32_t value)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, PLOG_CMD_INSTANCE_SET, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_INSTANCE);

	mnl_attr_put_u32(nlh, attr, value);
	mnl_attr_nest_end(nlh, nest);
	return nl_talk(nl, nlh, NULL, NULL);
}

int nl_instance_stop(struct nl *nl)
{
	char buf[NL_BUF_SIZE];

	return nl_talk(nl, nl_begin(nl, buf, PLOG_CMD_INSTANCE_STOP, 0), NULL, NULL);
}

static int partition_request(struct nl *nl, uint8_t cmd, const struct nl_partition *part)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, cmd, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);

	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, part->topic);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, part->index);
	if (cmd == PLOG_CMD_PARTITION_NEW && part->dir_fd >= 0)
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_DIR_FD, (uint32_t)part->dir_fd);
	if (part->topic_id_set)
		mnl_attr_put(nlh, PLOG_A_PARTITION_TOPIC_ID, 16, part->topic_id);
	if (part->flags)
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_FLAGS, part->flags);
	if (part->node)
		mnl_attr_put_u8(nlh, PLOG_A_PARTITION_NODE, 1);
	if (part->uid)
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_UID, part->uid);
	if (part->gid)
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_GID, part->gid);
	if (part->mode_set)
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_MODE, part->mode);
	if (part->max_message_bytes)
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_MAX_MESSAGE_BYTES,
				 part->max_message_bytes);
	if (part->segment_bytes)
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_SEGMENT_BYTES, part->segment_bytes);
	if (part->segment_ms)
		mnl_attr_put_u64(nlh, PLOG_A_PARTITION_SEGMENT_MS, part->segment_ms);
	if (part->index_interval_bytes)
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX_INTERVAL_BYTES,
				 part->index_interval_bytes);
	if (part->index_bytes)
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX_BYTES, part->index_bytes);
	mnl_attr_nest_end(nlh, nest);
	return nl_talk(nl, nlh, NULL, NULL);
}

int nl_partition_new(struct nl *nl, const struct nl_partition *part)
{
	return partition_request(nl, PLOG_CMD_PARTITION_NEW, part);
}

int nl_partition_set(struct nl *nl, const struct nl_partition *part)
{
	return partition_request(nl, PLOG_CMD_PARTITION_SET, part);
}

int nl_partition_del(struct nl *nl, const char *topic, uint32_t index)
{
	struct nl_partition part = { .topic = topic, .index = index, .dir_fd = -1 };

	return partition_request(nl, PLOG_CMD_PARTITION_DEL, &part);
}

bool nl_partition_parse(const struct nlmsghdr *nlh, struct nl_partition *out)
{
	const struct nlattr *tb[PLOG_A_PARTITION_MAX + 1];

	if (!nl_nest(nlh, PLOG_A_PARTITION, tb, PLOG_A_PARTITION_MAX))
		return false;

#define TAKE(field, attr, get)						\
	do {								\
		if (tb[PLOG_A_PARTITION_##attr])			\
			out->field = get(tb[PLOG_A_PARTITION_##attr]);	\
	} while (0)

	memset(out, 0, sizeof(*out));
	out->dir_fd = -1;
	if (tb[PLOG_A_PARTITION_TOPIC])
		strncpy(out->name, mnl_attr_get_str(tb[PLOG_A_PARTITION_TOPIC]),
			sizeof(out->name) - 1);
	out->topic = out->name;
	if (tb[PLOG_A_PARTITION_TOPIC_ID] &&
	    mnl_attr_get_payload_len(tb[PLOG_A_PARTITION_TOPIC_ID]) == 16) {
		memcpy(out->topic_id, mnl_attr_get_payload(tb[PLOG_A_PARTITION_TOPIC_ID]), 16);
		out->topic_id_set = true;
	}
	out->mode_set = tb[PLOG_A_PARTITION_MODE];
	TAKE(index, INDEX, mnl_attr_get_u32);
	TAKE(state, STATE, mnl_attr_get_u32);
	TAKE(error, ERROR, mnl_attr_get_u32);
	TAKE(flags, FLAGS, mnl_attr_get_u32);
	TAKE(node, NODE, mnl_attr_get_u8);
	TAKE(uid, UID, mnl_attr_get_u32);
	TAKE(gid, GID, mnl_attr_get_u32);
	TAKE(mode, MODE, mnl_attr_get_u32);
	TAKE(leader_epoch, LEADER_EPOCH, (int32_t)mnl_attr_get_u32);
	TAKE(log_start, LOG_START, (int64_t)mnl_attr_get_u64);
	TAKE(high_watermark, HIGH_WATERMARK, (int64_t)mnl_attr_get_u64);
	TAKE(last_stable, LAST_STABLE, (int64_t)mnl_attr_get_u64);
	TAKE(log_end, LOG_END, (int64_t)mnl_attr_get_u64);
	TAKE(bytes, BYTES, mnl_attr_get_u64);
	TAKE(segments, SEGMENTS, mnl_attr_get_u32);
	TAKE(max_message_bytes, MAX_MESSAGE_BYTES, mnl_attr_get_u32);
	TAKE(segment_bytes, SEGMENT_BYTES, mnl_attr_get_u32);
	TAKE(segment_ms, SEGMENT_MS, mnl_attr_get_u64);
	TAKE(index_interval_bytes, INDEX_INTERVAL_BYTES, mnl_attr_get_u32);
	TAKE(index_bytes, INDEX_BYTES, mnl_attr_get_u32);
	TAKE(max_timestamp, MAX_TIMESTAMP, (int64_t)mnl_attr_get_u64);
#undef TAKE
	return true;
}

static int partition_cb(const struct nlmsghdr *nlh, void *data)
{
	nl_partition_parse(nlh, data);
	return MNL_CB_OK;
}

int nl_partition_get(struct nl *nl, const char *topic, uint32_t index,
		     struct nl_partition *out)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, PLOG_CMD_PARTITION_GET, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);

	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, topic);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, index);
	mnl_attr_nest_end(nlh, nest);
	memset(out, 0, sizeof(*out));
	return nl_talk(nl, nlh, partition_cb, out);
}

static int stats_cb(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *tb[PLOG_A_STATS_MAX + 1];
	uint64_t *counters = data;
	int i;

	if (!nl_nest(nlh, PLOG_A_STATS, tb, PLOG_A_STATS_MAX))
		return MNL_CB_OK;
	for (i = PLOG_A_STATS_APPENDS; i <= PLOG_A_STATS_MAX; i++)
		counters[i] = tb[i] ? mnl_attr_get_u64(tb[i]) : UINT64_MAX;
	return MNL_CB_OK;
}

int nl_stats_get(struct nl *nl, const char *topic, uint32_t index,
		 uint64_t counters[PLOG_A_STATS_MAX + 1])
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, PLOG_CMD_STATS_GET, 0);
	struct nlattr *nest;

	if (topic) {
		nest = mnl_attr_nest_start(nlh, PLOG_A_STATS);
		mnl_attr_put_strz(nlh, PLOG_A_STATS_TOPIC, topic);
		mnl_attr_put_u32(nlh, PLOG_A_STATS_INDEX, index);
		mnl_attr_nest_end(nlh, nest);
	}
	memset(counters, 0xff, sizeof(*counters) * (PLOG_A_STATS_MAX + 1));
	return nl_talk(nl, nlh, stats_cb, counters);
}
