// SPDX-License-Identifier: MIT
/* The generic netlink family "plog": requests, events, the relay to the daemon. */
#include "plogctl.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

/*
 * The attributes of any request, the longest label among them; libnl clears as much
 * for each, so that only a relay's, with its payload, is larger.
 */
#define MESSAGE_SIZE	(PLOG_LABEL_MAX + 4096)
#define RELAY_SIZE	(PLOG_RELAY_MAX + 4096)

#define ERRNO_MAX	4095

struct net {
	struct nl_sock *socket;
	struct nl_sock *events;
	int family;
};

/* One request under way. */
struct request {
	net_handler fn;
	void *arg;
	int error;		/* negative errno */
	bool done;
	char text[PLOG_ERROR_MAX];	/* the kernel's words */
};

static int say_nl(struct plog_error *err, int code, const char *what)
{
	return plog_error_set(err, -EIO, "netlink: cannot %s: %s", what, nl_geterror(code));
}

static struct nl_sock *connect_socket(struct plog_error *err)
{
	struct nl_sock *socket = nl_socket_alloc();
	int on = 1, ret;

	if (!socket) {
		plog_error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	ret = genl_connect(socket);
	if (ret < 0) {
		say_nl(err, ret, "open a socket");
		nl_socket_free(socket);
		return NULL;
	}
	/* The kernel's own words for what was wrong. */
	setsockopt(nl_socket_get_fd(socket), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	return socket;
}

int net_open(struct net **out, struct plog_error *err)
{
	struct net *net = calloc(1, sizeof(*net));

	*out = NULL;
	if (!net)
		return plog_error_set(err, -ENOMEM, "out of memory");
	net->socket = connect_socket(err);
	if (!net->socket) {
		free(net);
		return -EIO;
	}
	net->family = genl_ctrl_resolve(net->socket, PLOG_GENL_NAME);
	if (net->family < 0) {
		net_close(net);
		return plog_error_set(err, -ENOENT, "the plog module is not loaded (genetlink "
				      "family \"" PLOG_GENL_NAME "\" not found); run: modprobe "
				      "plog, or insmod plog.ko");
	}
	*out = net;
	return 0;
}

void net_close(struct net *net)
{
	if (!net)
		return;
	nl_socket_free(net->events);
	nl_socket_free(net->socket);
	free(net);
}

static struct nl_msg *message_new(struct net *net, uint8_t command, int flags, size_t size)
{
	struct nl_msg *msg = nlmsg_alloc_size(size);

	if (!msg || !genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, net->family, 0, flags, command,
				 PLOG_GENL_VERSION)) {
		warn("out of memory");
		exit(EXIT_FAILED);
	}
	return msg;
}

struct nl_msg *net_message(struct net *net, uint8_t command, int flags)
{
	return message_new(net, command, flags, MESSAGE_SIZE);
}

/* ---- answers ---- */

/* The text among the attributes behind an error or the end of a dump. */
static void take_text(struct request *rq, struct nlmsghdr *nlh, size_t skip)
{
	struct nlattr *attrs[NLMSGERR_ATTR_MAX + 1];
	size_t length = nlh->nlmsg_len, from = NLMSG_HDRLEN + NLMSG_ALIGN(skip);

	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS) || from > length)
		return;
	if (nla_parse(attrs, NLMSGERR_ATTR_MAX, (struct nlattr *)((char *)nlh + from),
		      length - from, NULL) < 0 || !attrs[NLMSGERR_ATTR_MSG])
		return;
	snprintf(rq->text, sizeof(rq->text), "%.*s", nla_len(attrs[NLMSGERR_ATTR_MSG]),
		 (const char *)nla_data(attrs[NLMSGERR_ATTR_MSG]));
}

/* A negative errno, if @code is one. */
static int error_of(int code)
{
	return code < 0 && code >= -ERRNO_MAX ? code : -EBADMSG;
}

static int on_error(struct sockaddr_nl *from, struct nlmsgerr *error, void *arg)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)((char *)error - NLMSG_HDRLEN);
	struct request *rq = arg;
	size_t skip = sizeof(*error);

	(void)from;
	rq->error = error_of(error->error);
	rq->done = true;
	/* Without CAPPED the whole request is quoted before the attributes. */
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
		skip += error->msg.nlmsg_len - NLMSG_HDRLEN;
	take_text(rq, nlh, skip);
	return NL_STOP;
}

static int on_ack(struct nl_msg *msg, void *arg)
{
	struct request *rq = arg;

	(void)msg;
	rq->done = true;
	return NL_STOP;
}

static int on_dump_end(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *nlh = nlmsg_hdr(msg);
	struct request *rq = arg;

	rq->done = true;
	if (nlmsg_datalen(nlh) >= (int)sizeof(int)) {
		int code;

		memcpy(&code, nlmsg_data(nlh), sizeof(code));
		if (code < 0) {
			rq->error = error_of(code);
			take_text(rq, nlh, sizeof(int));
		}
	}
	return NL_STOP;
}

static int on_message(struct nl_msg *msg, void *arg)
{
	struct genlmsghdr *header = genlmsg_hdr(nlmsg_hdr(msg));
	struct nlattr *attrs[PLOG_A_MAX + 1];
	struct request *rq = arg;

	if (!genlmsg_valid_hdr(nlmsg_hdr(msg), 0) ||
	    genlmsg_parse(nlmsg_hdr(msg), 0, attrs, PLOG_A_MAX, NULL) < 0)
		return NL_SKIP;
	if (rq->fn) {
		int ret = rq->fn(rq->arg, header->cmd, attrs);

		if (ret < 0 && !rq->error)
			rq->error = ret;
	}
	return NL_OK;
}

static int no_sequence(struct nl_msg *msg, void *arg)
{
	(void)msg;
	(void)arg;
	return NL_OK;
}

static struct nl_cb *callbacks(struct request *rq, bool sequence)
{
	struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);

	if (!cb) {
		warn("out of memory");
		exit(EXIT_FAILED);
	}
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_message, rq);
	nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_ack, rq);
	nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_dump_end, rq);
	nl_cb_err(cb, NL_CB_CUSTOM, on_error, rq);
	if (!sequence)
		nl_cb_set(cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, no_sequence, NULL);
	return cb;
}

static int say_kernel(const struct request *rq, const char *what, struct plog_error *err)
{
	if (*rq->text)
		return plog_error_set(err, rq->error, "%s: %s", what, rq->text);
	if (rq->error == -EPERM)
		return plog_error_set(err, rq->error, "%s: not permitted; this needs "
				      "CAP_NET_ADMIN in the initial user namespace", what);
	return plog_error_set(err, rq->error, "%s: %s", what, strerror(-rq->error));
}

int net_request(struct net *net, struct nl_msg *msg, net_handler fn, void *arg,
		const char *what, struct plog_error *err)
{
	struct request rq = { .fn = fn, .arg = arg };
	struct nl_cb *cb = callbacks(&rq, true);
	int ret;

	ret = nl_send_auto(net->socket, msg);
	nlmsg_free(msg);
	while (ret >= 0 && !rq.done)
		ret = nl_recvmsgs(net->socket, cb);
	nl_cb_put(cb);
	if (rq.error)
		return say_kernel(&rq, what, err);
	/* libnl tells here too of a dump during which something changed: no matter. */
	return rq.done ? 0 : say_nl(err, ret, what);
}

/* ---- events ---- */

int net_events_open(struct net *net, struct plog_error *err)
{
	int group, ret;

	if (net->events)
		return 0;
	group = genl_ctrl_resolve_grp(net->socket, PLOG_GENL_NAME, PLOG_GENL_GROUP_EVENTS);
	if (group < 0)
		return say_nl(err, group, "find the group of events");
	net->events = connect_socket(err);
	if (!net->events)
		return -EIO;
	nl_socket_disable_seq_check(net->events);
	/* Thousands of partitions may open at once. */
	nl_socket_set_buffer_size(net->events, 4 << 20, 0);
	ret = nl_socket_add_membership(net->events, group);
	if (!ret)
		ret = nl_socket_set_nonblocking(net->events);
	if (ret < 0) {
		nl_socket_free(net->events);
		net->events = NULL;
		return say_nl(err, ret, "subscribe to events");
	}
	return 0;
}

/* Counts on the way to the caller's handler. */
struct counter {
	net_handler fn;
	void *arg;
	int count;
};

static int count_event(void *arg, uint8_t command, struct nlattr **attrs)
{
	struct counter *counter = arg;

	counter->count++;
	return counter->fn ? counter->fn(counter->arg, command, attrs) : 0;
}

int net_events_wait(struct net *net, int timeout_ms, net_handler fn, void *arg)
{
	struct pollfd poll_fd = { .fd = nl_socket_get_fd(net->events), .events = POLLIN };
	struct counter counter = { fn, arg, 0 };
	struct request rq = { .fn = count_event, .arg = &counter };
	struct nl_cb *cb;
	int ret;

	if (poll(&poll_fd, 1, timeout_ms) <= 0)
		return 0;
	cb = callbacks(&rq, false);
	do {
		ret = nl_recvmsgs(net->events, cb);
	} while (ret >= 0);
	nl_cb_put(cb);
	/* libnl makes ENOBUFS this one. */
	if (ret == -NLE_NOMEM)
		return -ENOBUFS;
	return counter.count;
}

/* ---- relay ---- */

struct relay {
	uint32_t cookie;
	struct json_object *reply;
	bool malformed;
};

static int on_reply(void *arg, uint8_t command, struct nlattr **attrs)
{
	static struct nla_policy policy[PLOG_A_RELAY_MAX + 1] = {
		[PLOG_A_RELAY_COOKIE] = { .type = NLA_U32 },
	};
	struct nlattr *tb[PLOG_A_RELAY_MAX + 1];
	struct relay *relay = arg;
	struct json_tokener *tok;

	if (command != PLOG_CMD_RELAY_REPLY || !attrs[PLOG_A_RELAY] || relay->reply ||
	    nla_parse_nested(tb, PLOG_A_RELAY_MAX, attrs[PLOG_A_RELAY], policy) < 0 ||
	    !tb[PLOG_A_RELAY_COOKIE] || !tb[PLOG_A_RELAY_PAYLOAD] ||
	    nla_get_u32(tb[PLOG_A_RELAY_COOKIE]) != relay->cookie)
		return 0;
	tok = json_tokener_new();
	if (!tok)
		return -ENOMEM;
	relay->reply = json_tokener_parse_ex(tok, nla_data(tb[PLOG_A_RELAY_PAYLOAD]),
					     nla_len(tb[PLOG_A_RELAY_PAYLOAD]));
	json_tokener_free(tok);
	relay->malformed = !json_object_is_type(relay->reply, json_type_object);
	return 0;
}

static int check_reply(struct relay *relay, struct json_object **reply, struct plog_error *err)
{
	struct json_object *ok, *field;
	const char *message = NULL, *name = NULL;

	if (relay->malformed) {
		json_object_put(relay->reply);
		return plog_error_set(err, -EPROTO, "the daemon's answer is no JSON object");
	}
	if (json_object_object_get_ex(relay->reply, "ok", &ok) && json_object_get_boolean(ok)) {
		*reply = relay->reply;
		return 0;
	}
	if (json_object_object_get_ex(relay->reply, "message", &field))
		message = json_object_get_string(field);
	if (json_object_object_get_ex(relay->reply, "error", &field))
		name = json_object_get_string(field);
	plog_error_set(err, 0, "plogd: %s%s%s%s", message ? message : name ? name : "refused",
		       message && name ? " (" : "", message && name ? name : "",
		       message && name ? ")" : "");
	json_object_put(relay->reply);
	return -EREMOTEIO;
}

/* The incarnation of the daemon that is registered now, 0 for none or unknown. */
static uint64_t incarnation(struct net *net)
{
	struct instance_info info;

	return kernel_instance_get(net, &info, NULL) ? 0 : info.incarnation;
}

static int await_reply(struct net *net, struct nl_sock *socket, struct request *rq,
		       struct relay *relay, unsigned int timeout_s, struct plog_error *err)
{
	struct pollfd poll_fd = { .fd = nl_socket_get_fd(socket), .events = POLLIN };
	struct nl_cb *cb = callbacks(rq, false);
	uint64_t asked = incarnation(net);
	unsigned int waited = 0;
	int ret = 0;

	/* The answer may come before the acknowledgement of the question. */
	while (!rq->error && !relay->reply && !relay->malformed) {
		int ready = poll(&poll_fd, 1, 1000);

		if (ready > 0) {
			ret = nl_recvmsgs(socket, cb);
			if (ret < 0 && !rq->error) {
				ret = say_nl(err, ret, "receive the daemon's answer");
				break;
			}
			ret = 0;
			continue;
		}
		if (ready < 0 && errno != EINTR) {
			ret = plog_error_set(err, -errno, "poll: %m");
			break;
		}
		if (incarnation(net) != asked) {
			ret = plog_error_set(err, -ECONNRESET, "the daemon went away before it "
					     "answered; it may have done it or not: see \"plogctl "
					     "topic list\"");
			break;
		}
		if (++waited >= timeout_s) {
			ret = plog_error_set(err, -ETIMEDOUT, "the daemon has not answered for %u "
					     "s; it may still do it: see \"plogctl topic list\"",
					     timeout_s);
			break;
		}
	}
	nl_cb_put(cb);
	return ret < 0 ? ret : 0;
}

int net_relay(struct net *net, struct json_object *request, unsigned int timeout_s,
	      struct json_object **reply, struct plog_error *err)
{
	struct relay relay = { 0 };
	struct request rq = { .fn = on_reply, .arg = &relay };
	struct nl_sock *socket;
	struct nlattr *nest;
	struct nl_msg *msg;
	const char *text;
	int ret;

	*reply = NULL;
	if (getrandom(&relay.cookie, sizeof(relay.cookie), 0) != sizeof(relay.cookie))
		return plog_error_set(err, -EIO, "no random bytes to be had");
	text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
	if (!text || strlen(text) > PLOG_RELAY_MAX)
		return plog_error_set(err, -E2BIG, "the request to the daemon would be larger than "
				      "%d bytes", PLOG_RELAY_MAX);
	socket = connect_socket(err);
	if (!socket)
		return -EIO;
	nl_socket_set_buffer_size(socket, 1 << 20, 0);
	msg = message_new(net, PLOG_CMD_RELAY_REQUEST, 0, RELAY_SIZE);
	nest = nla_nest_start(msg, PLOG_A_RELAY | NLA_F_NESTED);
	nla_put_u32(msg, PLOG_A_RELAY_COOKIE, relay.cookie);
	nla_put(msg, PLOG_A_RELAY_PAYLOAD, strlen(text), text);
	nla_nest_end(msg, nest);
	ret = nl_send_auto(socket, msg);
	nlmsg_free(msg);
	if (ret < 0)
		ret = say_nl(err, ret, "ask the daemon");
	else
		ret = await_reply(net, socket, &rq, &relay, timeout_s, err);
	if (!ret && rq.error)
		ret = say_kernel(&rq, "cannot ask the daemon", err);
	nl_socket_free(socket);
	if (!ret)
		return check_reply(&relay, reply, err);
	json_object_put(relay.reply);
	return ret;
}
