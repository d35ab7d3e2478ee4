// SPDX-License-Identifier: MIT
#include "netlink.h"

#include <errno.h>
#include <inttypes.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../uapi/linux/plog.h"
#include "../../uapi/linux/plog_netlink.h"
#include "../log/log.h"
#include "../say.h"
#include "admin.h"
#include "broker.h"
#include "janitor.h"
#include "netlink_request.h"
#include "topics.h"

#define REPLY_SIZE (64 << 10)
#define OPEN_TIMEOUT_MS 600000
/* Events of ten thousand partitions at once. */
#define EVENTS_BUFFER (8 << 20)

struct netlink {
	struct broker *broker;
	uint16_t family;
	uint32_t group;

	pthread_mutex_t lock;		/* of the request socket */
	struct mnl_socket *request;
	uint32_t port, seq;
	char reply[REPLY_SIZE];

	struct mnl_socket *events, *relay;	/* of the control loop */
	uint32_t relay_port;
	uv_poll_t events_poll, relay_poll;
	bool started;

	pthread_mutex_t wait_lock;
	pthread_cond_t changed;		/* some partition's state did */
};

/* ---- attributes: whoever has sent them, they are read within their size ---- */

static void take(const struct nlattr *attr, void *to, size_t size)
{
	if (mnl_attr_get_payload_len(attr) == size)
		memcpy(to, mnl_attr_get_payload(attr), size);
}

uint32_t netlink_u32(const struct nlattr *attr)
{
	uint32_t v = 0;

	take(attr, &v, sizeof(v));
	return v;
}

uint64_t netlink_u64(const struct nlattr *attr)
{
	uint64_t v = 0;

	take(attr, &v, sizeof(v));
	return v;
}

void netlink_text(const struct nlattr *attr, char *to, size_t size)
{
	snprintf(to, size, "%.*s", (int)mnl_attr_get_payload_len(attr),
		 (const char *)mnl_attr_get_payload(attr));
}

/* The command of a message of the family @type, -1 of another or if it is cut short. */
static int command_of(const struct nlmsghdr *nlh, uint16_t type)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type != type || mnl_nlmsg_get_payload_len(nlh) < sizeof(*g))
		return -1;
	return g->cmd;
}

#define ERRNO_MAX 4095

/* What a message of type NLMSG_ERROR says: 0 or a negative errno, if it is one. */
static int error_of(const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*e) || e->error > 0 || e->error < -ERRNO_MAX)
		return -EBADMSG;
	return e->error;
}

/* ---- requests ---- */

static struct nlmsghdr *start_message(char *buf, uint16_t type, uint8_t cmd, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *g;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = cmd;
	g->version = type == GENL_ID_CTRL ? 1 : PLOG_GENL_VERSION;
	return nlh;
}

struct nlmsghdr *netlink_begin(struct netlink *nl, char *buf, uint8_t cmd, uint16_t flags)
{
	return start_message(buf, nl->family, cmd, flags);
}

/* The text that came with a refusal. */
static const char *extack_text(const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	size_t skip = sizeof(*e);

	if (mnl_nlmsg_get_payload_len(nlh) < skip || !(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return NULL;
	/* without the cap the request is repeated in full */
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
		skip += mnl_nlmsg_get_payload_len(&e->msg);
	if (skip > mnl_nlmsg_get_payload_len(nlh))
		return NULL;
	mnl_attr_for_each(attr, nlh, MNL_ALIGN(skip))
		if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG &&
		    !mnl_attr_validate(attr, MNL_TYPE_NUL_STRING))
			return mnl_attr_get_str(attr);
	return NULL;
}

/*
 * A message of the kernel's own: a process with CAP_NET_ADMIN in this network namespace can
 * write to these ports too, but neither answers, nor tells, nor relays.  Return: its bytes,
 * 0: it was another's, or -1 with errno, ENOSPC where it is longer than @size.
 */
static ssize_t receive(struct mnl_socket *s, void *buf, size_t size, int flags)
{
	struct sockaddr_nl from = { 0 };
	socklen_t from_len = sizeof(from);
	ssize_t n = recvfrom(mnl_socket_get_fd(s), buf, size, flags | MSG_TRUNC,
			     (struct sockaddr *)&from, &from_len);

	if (n >= 0 && from.nl_pid)
		return 0;
	if (n > (ssize_t)size) {
		errno = ENOSPC;
		return -1;
	}
	return n;
}

/* The kernel has the answer ready when the send returns. */
int netlink_ask(struct netlink *nl, struct nlmsghdr *nlh, const struct netlink_answer *answer,
		const char *what, struct plog_error *err)
{
	bool done = false;
	int error = 0;

	pthread_mutex_lock(&nl->lock);
	nlh->nlmsg_seq = ++nl->seq;
	if (!(nlh->nlmsg_flags & NLM_F_DUMP))
		nlh->nlmsg_flags |= NLM_F_ACK;
	if (mnl_socket_sendto(nl->request, nlh, nlh->nlmsg_len) < 0) {
		error = -errno;
		pthread_mutex_unlock(&nl->lock);
		return plog_error_set(err, error, "%s: cannot ask the module: %s", what,
				      strerror(-error));
	}
	while (!done) {
		ssize_t n = receive(nl->request, nl->reply, sizeof(nl->reply), 0);
		const struct nlmsghdr *h = (void *)nl->reply;
		int len = n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			error = -errno;
			plog_error_set(err, error, "%s: %s", what, strerror(-error));
			break;
		}
		for (; !done && mnl_nlmsg_ok(h, len); h = mnl_nlmsg_next(h, &len)) {
			if (h->nlmsg_seq != nl->seq)
				continue;
			if (h->nlmsg_type == NLMSG_ERROR) {
				const char *text = extack_text(h);
				int said = error_of(h);

				done = true;
				if (!said || error)
					continue;
				error = said;
				plog_error_set(err, error, "%s: %s", what,
					       text ? text : strerror(-error));
			} else if (h->nlmsg_type == NLMSG_DONE) {
				done = true;
			} else if (answer && !error) {
				error = answer->fn(h, answer->arg);
				if (error)
					plog_error_set(err, error, "%s: %s", what,
						       strerror(-error));
			}
		}
	}
	pthread_mutex_unlock(&nl->lock);
	return error;
}

/* ---- family ---- */

struct family {
	uint16_t id;
	uint32_t group;
};

static int read_group(const struct nlattr *nest, struct family *f)
{
	char name[GENL_NAMSIZ] = "";
	const struct nlattr *attr;
	uint32_t id = 0;

	mnl_attr_for_each_nested(attr, nest) {
		if (mnl_attr_get_type(attr) == CTRL_ATTR_MCAST_GRP_NAME)
			netlink_text(attr, name, sizeof(name));
		else if (mnl_attr_get_type(attr) == CTRL_ATTR_MCAST_GRP_ID)
			id = netlink_u32(attr);
	}
	if (!strcmp(name, PLOG_GENL_GROUP_EVENTS))
		f->group = id;
	return 0;
}

static int read_family(const struct nlmsghdr *nlh, void *arg)
{
	struct family *f = arg;
	const struct nlattr *attr, *group;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
			take(attr, &f->id, sizeof(f->id));
		else if (mnl_attr_get_type(attr) == CTRL_ATTR_MCAST_GROUPS)
			mnl_attr_for_each_nested(group, attr)
				read_group(group, f);
	}
	return 0;
}

static struct mnl_socket *open_socket(void)
{
	struct mnl_socket *s = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	int one = 1;

	if (!s)
		return NULL;
	if (mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID)) {
		mnl_socket_close(s);
		return NULL;
	}
	mnl_socket_setsockopt(s, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(s, NETLINK_CAP_ACK, &one, sizeof(one));
	return s;
}

static struct mnl_socket *open_listening(int size)
{
	struct mnl_socket *s = open_socket();
	int fd;

	if (!s)
		return NULL;
	fd = mnl_socket_get_fd(s);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return s;
}

struct netlink *netlink_open(struct broker *b, struct plog_error *err)
{
	struct netlink *nl = calloc(1, sizeof(*nl));
	struct timeval patience = { .tv_sec = 10 };
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct family family = { 0 };
	struct netlink_answer answer = { read_family, &family };
	struct nlmsghdr *nlh;
	int ret;

	if (!nl) {
		plog_error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	nl->broker = b;
	pthread_mutex_init(&nl->lock, NULL);
	pthread_mutex_init(&nl->wait_lock, NULL);
	pthread_cond_init(&nl->changed, NULL);
	nl->seq = time(NULL);
	nl->request = open_socket();
	/* the kernel answers within the call that asks: one that does not is a fault, not a wait */
	if (nl->request)
		setsockopt(mnl_socket_get_fd(nl->request), SOL_SOCKET, SO_RCVTIMEO, &patience,
			   sizeof(patience));
	nl->events = open_listening(EVENTS_BUFFER);
	nl->relay = open_listening(1 << 20);
	if (!nl->request || !nl->events || !nl->relay) {
		plog_error_set(err, -errno, "cannot open a netlink socket: %s", strerror(errno));
		goto fail;
	}
	nl->relay_port = mnl_socket_get_portid(nl->relay);

	nlh = start_message(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, PLOG_GENL_NAME);
	ret = netlink_ask(nl, nlh, &answer, "netlink family plog", err);
	if (ret || !family.id) {
		plog_error_set(err, -ENODEV, "the plog module is not loaded (insmod plog.ko); "
			       "without it, plogd --engine=process keeps the logs itself");
		goto fail;
	}
	nl->family = family.id;
	nl->group = family.group;
	if (mnl_socket_setsockopt(nl->events, NETLINK_ADD_MEMBERSHIP, &nl->group,
				  sizeof(nl->group))) {
		plog_error_set(err, -errno, "cannot listen to the module's events: %s",
			       strerror(errno));
		goto fail;
	}
	return nl;
fail:
	netlink_close(nl);
	return NULL;
}

void netlink_close(struct netlink *nl)
{
	if (!nl)
		return;
	if (nl->started) {
		/* the control loop runs no more, but for the end of these two */
		uv_poll_stop(&nl->events_poll);
		uv_poll_stop(&nl->relay_poll);
		uv_close((uv_handle_t *)&nl->events_poll, NULL);
		uv_close((uv_handle_t *)&nl->relay_poll, NULL);
		uv_run(&nl->broker->control.uv, UV_RUN_NOWAIT);
	}
	if (nl->request)
		mnl_socket_close(nl->request);
	if (nl->events)
		mnl_socket_close(nl->events);
	if (nl->relay)
		mnl_socket_close(nl->relay);
	pthread_mutex_destroy(&nl->lock);
	pthread_mutex_destroy(&nl->wait_lock);
	pthread_cond_destroy(&nl->changed);
	free(nl);
}

uint32_t netlink_port(const struct netlink *nl)
{
	return nl->relay_port;
}

/* ---- instance ---- */

static int read_instance(const struct nlmsghdr *nlh, void *arg)
{
	struct netlink_instance *out = arg;
	const struct nlattr *nest, *attr;

	mnl_attr_for_each(nest, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(nest) != PLOG_A_INSTANCE)
			continue;
		mnl_attr_for_each_nested(attr, nest) {
			switch (mnl_attr_get_type(attr)) {
			case PLOG_A_INSTANCE_STATE:
				out->state = netlink_u32(attr);
				break;
			case PLOG_A_INSTANCE_DATA_DIR:
				netlink_text(attr, out->label, sizeof(out->label));
				break;
			case PLOG_A_INSTANCE_VERSION:
				netlink_text(attr, out->version, sizeof(out->version));
				break;
			case PLOG_A_INSTANCE_PARTITIONS:
				out->partitions = netlink_u32(attr);
				break;
			case PLOG_A_INSTANCE_ONLINE:
				out->online = netlink_u32(attr);
				break;
			case PLOG_A_INSTANCE_INCARNATION:
				out->incarnation = netlink_u64(attr);
				break;
			}
		}
	}
	return 0;
}

int netlink_instance(struct netlink *nl, struct netlink_instance *out, struct plog_error *err)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct netlink_answer answer = { read_instance, out };

	memset(out, 0, sizeof(*out));
	return netlink_ask(nl, netlink_begin(nl, buf, PLOG_CMD_INSTANCE_GET, 0), &answer,
			"the module's instance", err);
}

int netlink_instance_set(struct netlink *nl, const char *label, int dirfd, int lockfd,
			 struct plog_error *err)
{
	/* a label may have a page, which is what MNL_SOCKET_BUFFER_SIZE is */
	char buf[MNL_SOCKET_BUFFER_SIZE + PLOG_LABEL_MAX + 1];
	struct nlmsghdr *nlh = netlink_begin(nl, buf, PLOG_CMD_INSTANCE_SET, 0);
	struct nlattr *nest;

	nest = mnl_attr_nest_start(nlh, PLOG_A_INSTANCE);
	mnl_attr_put_strz(nlh, PLOG_A_INSTANCE_DATA_DIR, label);
	mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_DIR_FD, dirfd);
	mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_LOCK_FD, lockfd);
	mnl_attr_nest_end(nlh, nest);
	return netlink_ask(nl, nlh, NULL, label, err);
}

int netlink_instance_limits(struct netlink *nl, const struct config *config,
			    struct plog_error *err)
{
	const struct {
		uint16_t attr;
		int64_t value;
	} all[] = {
		{ PLOG_A_INSTANCE_MAX_PARTITIONS, config->max_partitions },
		{ PLOG_A_INSTANCE_MAX_WAITERS, config->max_waiters },
		{ PLOG_A_INSTANCE_MAX_DESCRIPTORS, config->max_descriptors },
		{ PLOG_A_INSTANCE_MAX_APPEND_BYTES, config->max_append_bytes },
	};
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct nlmsghdr *nlh = netlink_begin(nl, buf, PLOG_CMD_INSTANCE_SET, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_INSTANCE);
	bool any = false;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!all[i].value)
			continue;
		mnl_attr_put_u32(nlh, all[i].attr, all[i].value);
		any = true;
	}
	mnl_attr_nest_end(nlh, nest);
	return any ? netlink_ask(nl, nlh, NULL, "the instance's limits", err) : 0;
}

/* ---- partitions ---- */

struct nlmsghdr *netlink_begin_partition(struct netlink *nl, char *buf, uint8_t cmd,
					 uint16_t flags, const char *topic, uint32_t index,
					 struct nlattr **nest)
{
	struct nlmsghdr *nlh = netlink_begin(nl, buf, cmd, flags);

	*nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, topic);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, index);
	return nlh;
}

static void put_config(struct nlmsghdr *nlh, const struct log_config *c)
{
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_FLAGS, c->flags);
	mnl_attr_put_u8(nlh, PLOG_A_PARTITION_NODE, c->node);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_UID, c->uid);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_GID, c->gid);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_MODE, c->mode);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_MAX_MESSAGE_BYTES, c->max_message_bytes);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_SEGMENT_BYTES, c->segment_bytes);
	mnl_attr_put_u64(nlh, PLOG_A_PARTITION_SEGMENT_MS, c->segment_ms);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX_INTERVAL_BYTES, c->index_interval_bytes);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX_BYTES, c->index_bytes);
	mnl_attr_put_u64(nlh, PLOG_A_PARTITION_RETENTION_MS, c->retention_ms);
	mnl_attr_put_u64(nlh, PLOG_A_PARTITION_RETENTION_BYTES, c->retention_bytes);
	mnl_attr_put_u64(nlh, PLOG_A_PARTITION_FILE_DELETE_DELAY_MS, c->file_delete_delay_ms);
	mnl_attr_put_u64(nlh, PLOG_A_PARTITION_SEGMENT_JITTER_MS, c->segment_jitter_ms);
	mnl_attr_put_u64(nlh, PLOG_A_PARTITION_FLUSH_MESSAGES, c->flush_messages);
	mnl_attr_put_u64(nlh, PLOG_A_PARTITION_FLUSH_MS, c->flush_ms);
	mnl_attr_put_u8(nlh, PLOG_A_PARTITION_PREALLOCATE, c->preallocate);
}

static const char *name_of(char *text, size_t size, const char *topic, uint32_t index)
{
	snprintf(text, size, "%s-%u", topic, index);
	return text;
}

int netlink_partition_new(struct netlink *nl, const char *topic, uint32_t index, int dirfd,
			  const struct log_config *config, struct plog_error *err)
{
	static const uint8_t none[16];
	char buf[MNL_SOCKET_BUFFER_SIZE], name[264];
	struct nlattr *nest;
	struct nlmsghdr *nlh = netlink_begin_partition(nl, buf, PLOG_CMD_PARTITION_NEW, 0, topic,
						       index, &nest);

	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_DIR_FD, dirfd);
	if (memcmp(config->topic_id, none, sizeof(none)))
		mnl_attr_put(nlh, PLOG_A_PARTITION_TOPIC_ID, 16, config->topic_id);
	put_config(nlh, config);
	mnl_attr_nest_end(nlh, nest);
	return netlink_ask(nl, nlh, NULL, name_of(name, sizeof(name), topic, index), err);
}

int netlink_partition_set(struct netlink *nl, const char *topic, uint32_t index,
			  const struct log_config *config, struct plog_error *err)
{
	char buf[MNL_SOCKET_BUFFER_SIZE], name[264];
	struct nlattr *nest;
	struct nlmsghdr *nlh = netlink_begin_partition(nl, buf, PLOG_CMD_PARTITION_SET, 0, topic,
						       index, &nest);

	put_config(nlh, config);
	mnl_attr_nest_end(nlh, nest);
	return netlink_ask(nl, nlh, NULL, name_of(name, sizeof(name), topic, index), err);
}

int netlink_partition_del(struct netlink *nl, const char *topic, uint32_t index,
			  struct plog_error *err)
{
	char buf[MNL_SOCKET_BUFFER_SIZE], name[264];
	struct nlattr *nest;
	struct nlmsghdr *nlh = netlink_begin_partition(nl, buf, PLOG_CMD_PARTITION_DEL, 0, topic,
						       index, &nest);

	mnl_attr_nest_end(nlh, nest);
	return netlink_ask(nl, nlh, NULL, name_of(name, sizeof(name), topic, index), err);
}

struct partition {
	char topic[256];
	uint32_t index, state, error;
};

static int read_partition(const struct nlmsghdr *nlh, void *arg)
{
	struct partition *out = arg;
	const struct nlattr *nest, *attr;

	mnl_attr_for_each(nest, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(nest) != PLOG_A_PARTITION)
			continue;
		mnl_attr_for_each_nested(attr, nest) {
			switch (mnl_attr_get_type(attr)) {
			case PLOG_A_PARTITION_TOPIC:
				netlink_text(attr, out->topic, sizeof(out->topic));
				break;
			case PLOG_A_PARTITION_INDEX:
				out->index = netlink_u32(attr);
				break;
			case PLOG_A_PARTITION_STATE:
				out->state = netlink_u32(attr);
				break;
			case PLOG_A_PARTITION_ERROR:
				out->error = netlink_u32(attr);
				break;
			}
		}
	}
	return 0;
}

/* Until an event, or for a while: before the control loop runs nobody reads events. */
static void wait_change(struct netlink *nl, unsigned int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ms * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&nl->wait_lock);
	pthread_cond_timedwait(&nl->changed, &nl->wait_lock, &until);
	pthread_mutex_unlock(&nl->wait_lock);
}

int netlink_partition_wait(struct netlink *nl, const char *topic, uint32_t index,
			   struct plog_error *err)
{
	char buf[MNL_SOCKET_BUFFER_SIZE], name[264];
	unsigned int waited = 0, step = 1;

	name_of(name, sizeof(name), topic, index);
	for (;;) {
		struct partition p = { .state = PLOG_PARTITION_CLOSED };
		struct netlink_answer answer = { read_partition, &p };
		struct nlattr *nest;
		struct nlmsghdr *nlh = netlink_begin_partition(nl, buf, PLOG_CMD_PARTITION_GET, 0,
							       topic, index, &nest);
		int ret;

		mnl_attr_nest_end(nlh, nest);
		ret = netlink_ask(nl, nlh, &answer, name, err);
		if (ret)
			return ret;
		if (p.state == PLOG_PARTITION_ONLINE || p.state == PLOG_PARTITION_FENCED)
			return 0;
		if (p.state != PLOG_PARTITION_OPENING)
			return plog_error_set(err, p.error ? -(int)p.error : -EIO,
					      "%s: the module cannot open its log: %s", name,
					      p.error ? strerror(p.error) : "it is closed");
		if (waited > OPEN_TIMEOUT_MS)
			return plog_error_set(err, -ETIMEDOUT, "%s: still being opened after %d "
					      "minutes", name, OPEN_TIMEOUT_MS / 60000);
		wait_change(nl, step);
		waited += step;
		if (step < 64)
			step *= 2;
	}
}

/* ---- dump ---- */

struct unknown {
	struct topics *topics;
	struct partition *list;
	size_t count;
};

static int collect_unknown(const struct nlmsghdr *nlh, void *arg)
{
	struct unknown *u = arg;
	struct partition p = { 0 }, *list;
	struct topic *topic;
	bool known;

	read_partition(nlh, &p);
	topic = topics_find(u->topics, kstr_of(p.topic));
	known = topic && p.index < topic->partitions;
	topic_put(topic);
	if (known)
		return 0;
	list = realloc(u->list, (u->count + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	u->list = list;
	u->list[u->count++] = p;
	return 0;
}

int netlink_drop_unknown(struct netlink *nl, struct topics *topics, struct plog_error *err)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct unknown u = { .topics = topics };
	struct netlink_answer answer = { collect_unknown, &u };
	int ret;

	ret = netlink_ask(nl, netlink_begin(nl, buf, PLOG_CMD_PARTITION_GET, NLM_F_DUMP),
		       &answer, "the module's partitions", err);
	for (size_t i = 0; !ret && i < u.count; i++) {
		say(SAY_WARN, "topics", "%s-%u is open in the module, but no topic has it: it is "
		    "taken out", u.list[i].topic, u.list[i].index);
		ret = netlink_partition_del(nl, u.list[i].topic, u.list[i].index, err);
	}
	free(u.list);
	return ret;
}

/* ---- what comes unasked: control loop ---- */

static void tell_partition(const struct partition *p)
{
	if (p->state == PLOG_PARTITION_FENCED)
		say(SAY_ERROR, "log", "%s-%u is fenced and takes no more appends until it is "
		    "reopened: %s", p->topic, p->index, strerror(p->error));
	else if (p->state == PLOG_PARTITION_FAILED)
		say(SAY_ERROR, "log", "%s-%u cannot be opened: %s", p->topic, p->index,
		    strerror(p->error));
}

static int tell_dumped(const struct nlmsghdr *nlh, void *arg)
{
	struct partition p = { 0 };

	(void)arg;
	read_partition(nlh, &p);
	tell_partition(&p);
	return 0;
}

static void check_instance(struct netlink *nl, uint32_t state)
{
	if (state != PLOG_INSTANCE_STOPPING && state != PLOG_INSTANCE_STOPPED)
		return;
	if (atomic_load(&nl->broker->stopping))
		return;
	say(SAY_ERROR, "plogd", "the module's instance was stopped (plogctl instance stop): there "
	    "are no logs to serve any more");
	broker_stop(nl->broker, 1);
}

/* Some events were lost: ask for everything that they could have said. */
static void resync(struct netlink *nl)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct netlink_answer answer = { tell_dumped, NULL };
	struct netlink_instance instance;
	struct plog_error err = { "" };

	say(SAY_WARN, "plogd", "the module's events came faster than they were read; asking for "
	    "all states");
	if (netlink_instance(nl, &instance, &err) ||
	    netlink_ask(nl, netlink_begin(nl, buf, PLOG_CMD_PARTITION_GET, NLM_F_DUMP),
		     &answer, "the module's partitions", &err)) {
		say(SAY_ERROR, "plogd", "%s", err.text);
		return;
	}
	if (!instance.state)
		instance.state = PLOG_INSTANCE_STOPPED;
	check_instance(nl, instance.state);
	janitor_tell(nl->broker, NULL);
}

static void wake_waiters(struct netlink *nl)
{
	pthread_mutex_lock(&nl->wait_lock);
	pthread_cond_broadcast(&nl->changed);
	pthread_mutex_unlock(&nl->wait_lock);
}

static void on_event(struct netlink *nl, const struct nlmsghdr *nlh)
{
	int command = command_of(nlh, nl->family);
	struct netlink_instance instance = { 0 };
	struct partition p = { 0 };

	if (command == PLOG_CMD_PARTITION_NTF) {
		read_partition(nlh, &p);
		tell_partition(&p);
	} else if (command == PLOG_CMD_RETIRED_NTF) {
		struct netlink_retired r = { .base = -1 };

		netlink_read_retired(nlh, &r);
		janitor_tell_name(nl->broker, r.topic, r.index);
	} else if (command == PLOG_CMD_INSTANCE_NTF) {
		read_instance(nlh, &instance);
		check_instance(nl, instance.state);
	}
}

static void on_events(uv_poll_t *poll, int status, int events)
{
	struct netlink *nl = poll->data;
	char buf[REPLY_SIZE];

	(void)status;
	(void)events;
	for (int i = 0; i < 64; i++) {
		const struct nlmsghdr *nlh = (void *)buf;
		ssize_t n = receive(nl->events, buf, sizeof(buf), MSG_DONTWAIT);
		int len = n;

		/* one that is too long is as good as lost */
		if (n < 0 && (errno == ENOBUFS || errno == ENOSPC)) {
			resync(nl);
			continue;
		}
		if (n < 0)
			break;
		for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len))
			on_event(nl, nlh);
	}
	wake_waiters(nl);
}

static void on_relayed(struct netlink *nl, const struct nlmsghdr *nlh)
{
	const struct nlattr *nest, *attr, *payload = NULL;
	uint32_t port = 0, cookie = 0;

	if (nlh->nlmsg_type == NLMSG_ERROR) {
		const char *text = extack_text(nlh);
		int error = error_of(nlh);

		if (error)
			say(SAY_DEBUG, "admin", "an answer did not arrive: %s",
			    text ? text : strerror(-error));
		return;
	}
	if (command_of(nlh, nl->family) != PLOG_CMD_RELAY_REQUEST)
		return;
	mnl_attr_for_each(nest, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(nest) != PLOG_A_RELAY)
			continue;
		mnl_attr_for_each_nested(attr, nest) {
			if (mnl_attr_get_type(attr) == PLOG_A_RELAY_PORT)
				port = netlink_u32(attr);
			else if (mnl_attr_get_type(attr) == PLOG_A_RELAY_COOKIE)
				cookie = netlink_u32(attr);
			else if (mnl_attr_get_type(attr) == PLOG_A_RELAY_PAYLOAD)
				payload = attr;
		}
	}
	if (port && payload)
		admin_request(nl->broker, port, cookie, mnl_attr_get_payload(payload),
			      mnl_attr_get_payload_len(payload));
}

static void on_relay(uv_poll_t *poll, int status, int events)
{
	struct netlink *nl = poll->data;
	char buf[REPLY_SIZE];

	(void)status;
	(void)events;
	for (int i = 0; i < 16; i++) {
		const struct nlmsghdr *nlh = (void *)buf;
		ssize_t n = receive(nl->relay, buf, sizeof(buf), MSG_DONTWAIT);
		int len = n;

		/* an asker that hears nothing asks again */
		if (n < 0 && (errno == ENOBUFS || errno == ENOSPC))
			continue;
		if (n < 0)
			return;
		for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len))
			on_relayed(nl, nlh);
	}
}

int netlink_start(struct netlink *nl)
{
	uv_loop_t *uv = &nl->broker->control.uv;
	int ret;

	ret = uv_poll_init(uv, &nl->events_poll, mnl_socket_get_fd(nl->events));
	if (ret)
		return ret;
	ret = uv_poll_init(uv, &nl->relay_poll, mnl_socket_get_fd(nl->relay));
	if (ret) {
		uv_close((uv_handle_t *)&nl->events_poll, NULL);
		return ret;
	}
	nl->events_poll.data = nl;
	nl->relay_poll.data = nl;
	nl->started = true;
	ret = uv_poll_start(&nl->events_poll, UV_READABLE, on_events);
	return ret ? ret : uv_poll_start(&nl->relay_poll, UV_READABLE, on_relay);
}

int netlink_relay_reply(struct netlink *nl, uint32_t port, uint32_t cookie, const char *json,
			size_t size)
{
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	char *buf;
	int ret = 0;

	/* the module takes no more, and the length of an attribute has 16 bits */
	if (size > PLOG_RELAY_MAX)
		return -EMSGSIZE;
	buf = malloc(size + MNL_SOCKET_BUFFER_SIZE);
	if (!buf)
		return -ENOMEM;
	nlh = netlink_begin(nl, buf, PLOG_CMD_RELAY_REPLY, NLM_F_ACK);
	nest = mnl_attr_nest_start(nlh, PLOG_A_RELAY);
	mnl_attr_put_u32(nlh, PLOG_A_RELAY_PORT, port);
	mnl_attr_put_u32(nlh, PLOG_A_RELAY_COOKIE, cookie);
	mnl_attr_put(nlh, PLOG_A_RELAY_PAYLOAD, size, json);
	mnl_attr_nest_end(nlh, nest);
	if (mnl_socket_sendto(nl->relay, nlh, nlh->nlmsg_len) < 0)
		ret = -errno;
	free(buf);
	return ret;
}
