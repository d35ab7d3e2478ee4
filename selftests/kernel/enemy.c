// SPDX-License-Identifier: GPL-2.0
/* Values and netlink messages as an enemy makes them: see enemy.h. */
#include "enemy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/genetlink.h>

struct enemy_known *enemy_known;

__attribute__((constructor)) static void make_known(void)
{
	void *shared = mmap(NULL, sizeof(*enemy_known), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	enemy_known = shared == MAP_FAILED ? NULL : shared;
}

/* ---- values ---- */

static uint64_t state = 1;

void enemy_seed(uint64_t seed)
{
	int i;

	state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
	for (i = 0; i < 10; i++)
		rnd(2);
}

uint32_t rnd(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return n ? (uint32_t)((state >> 11) % n) : 0;
}

uint64_t odd_value(void)
{
	static const uint64_t odd[] = {
		0, 1, 2, 7, 60, 61, 62, 255, 256, 4095, 4096, 65535, 65536, 1 << 20, INT32_MAX,
		1ULL << 31, UINT32_MAX, 1ULL << 32, INT64_MAX - 1, INT64_MAX, 1ULL << 63,
		UINT64_MAX - 1, UINT64_MAX,
	};

	switch (rnd(4)) {
	case 0:
		return rnd(64);
	case 1:
		return ((uint64_t)rnd(UINT32_MAX) << 32 | rnd(UINT32_MAX)) >> rnd(64);
	default:
		return odd[rnd(sizeof(odd) / sizeof(odd[0]))];
	}
}

const char *topic_name(void)
{
	static const char *const odd[] = { "", ".", "..", "a/b", "t\n", "x y", "\xff", "__t" };
	static char name[16];

	if (!rnd(10))
		return odd[rnd(8)];
	snprintf(name, sizeof(name), "h%u", rnd(ENEMY_TOPICS));
	return rnd(3) ? name : "t";
}

uint64_t enemy_offset(void)
{
	switch (rnd(6)) {
	case 0:
		return odd_value();
	case 1:
		return rnd(rnd(2) ? 20 : 2000);
	case 2:
		return (uint64_t)enemy_known->state.log_start + rnd(3);
	case 3:
		return (uint64_t)enemy_known->state.high_watermark - rnd(3);
	case 4:
		return (uint64_t)enemy_known->state.log_end - rnd(20);
	default:
		return (uint64_t)enemy_known->state.log_end;
	}
}

uint64_t enemy_incarnation(void)
{
	return rnd(8) ? enemy_known->incarnation : odd_value();
}

/* ---- netlink ---- */

static int some_number(const struct enemy_message *m)
{
	switch (rnd(6)) {
	case 0:
		return m->instance->dir_fd;
	case 1:
		return m->instance->lock_fd;
	case 2:
		return m->fds[rnd(m->fd_count)];
	case 3:
		return (int)odd_value();
	default:
		return (int)rnd(3);
	}
}

/* An attribute of any type and size, in place or not. */
static void add_attribute(const struct enemy_message *m, struct nlmsghdr *nlh, uint32_t type,
			  int depth)
{
	uint8_t junk[600];
	uint64_t v = odd_value();
	uint32_t n = (uint32_t[]){ 0, 1, 2, 4, 4, 4, 8, 8, 16, 3, 300 }[rnd(11)];
	const char *name = topic_name();

	if (nlh->nlmsg_len > 4000)
		return;
	if (!rnd(40) && depth < 4) {
		struct nlattr *nest = mnl_attr_nest_start(nlh, (uint16_t)type);

		for (n = rnd(6); n; n--)
			add_attribute(m, nlh, rnd(40), depth + 1);
		mnl_attr_nest_end(nlh, nest);
		return;
	}
	switch (rnd(4)) {
	case 0:
		mnl_attr_put(nlh, (uint16_t)type, n > 8 ? 8 : n, &v);
		break;
	case 1:
		memset(junk, (int)rnd(256), sizeof(junk));
		mnl_attr_put(nlh, (uint16_t)(type | (rnd(8) ? 0 : 0x8000)), n, junk);
		break;
	case 2:
		mnl_attr_put(nlh, (uint16_t)type, strlen(name) + rnd(2), name);
		break;
	default:
		mnl_attr_put_u32(nlh, (uint16_t)type, (uint32_t)some_number(m));
	}
}

/* Some, where only those should be that a request has. */
static void add_strange(const struct enemy_message *m, struct nlmsghdr *nlh, uint32_t max)
{
	uint32_t n;

	for (n = rnd(3) ? 0 : rnd(3); n; n--)
		add_attribute(m, nlh, rnd(max + 3), 1);
}

/* A setting of a partition that it may have, or nearly. */
static void add_setting(struct nlmsghdr *nlh)
{
	switch (rnd(12)) {
	case 0:
	case 1:
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_FLAGS, rnd(2) ? 0 : rnd(64));
		break;
	case 2:
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_SEGMENT_BYTES, 14 + rnd(100000));
		break;
	case 3:
		mnl_attr_put_u64(nlh, PLOG_A_PARTITION_RETENTION_BYTES, rnd(100000));
		break;
	case 4:
		mnl_attr_put_u64(nlh, PLOG_A_PARTITION_RETENTION_MS, rnd(2) ? 100000 : rnd(2000));
		break;
	case 5:
		mnl_attr_put_u64(nlh, PLOG_A_PARTITION_FILE_DELETE_DELAY_MS,
				 rnd(4) ? rnd(50) : odd_value());
		break;
	case 6:
		mnl_attr_put_u8(nlh, PLOG_A_PARTITION_NODE, (uint8_t)rnd(2));
		break;
	case 7:
		mnl_attr_put_u64(nlh, PLOG_A_PARTITION_SEGMENT_MS,
				 rnd(2) ? 50 + rnd(500) : odd_value());
		break;
	case 8:
		mnl_attr_put_u64(nlh, PLOG_A_PARTITION_FLUSH_MESSAGES,
				 rnd(4) ? odd_value() : 1 + rnd(9));
		break;
	case 9:
		mnl_attr_put_u64(nlh, PLOG_A_PARTITION_FLUSH_MS,
				 rnd(2) ? rnd(1000) : odd_value());
		break;
	case 10:
		/* not of segments that fill the disk */
		mnl_attr_put_u8(nlh, PLOG_A_PARTITION_PREALLOCATE, (uint8_t)rnd(2));
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_SEGMENT_BYTES, 14 + rnd(100000));
		break;
	default:
		mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX_INTERVAL_BYTES, rnd(5000));
	}
}

static void add_partition(struct enemy_message *m, struct nlmsghdr *nlh)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
	const char *topic = rnd(4) ? topic_name() : "t";
	uint32_t n = m->command == PLOG_CMD_PARTITION_SET ? 1 + rnd(3) : rnd(5);
	char dir[300];
	int fd = -1;

	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, topic);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, rnd(6) ? 0 : rnd(4));
	switch (m->command) {
	case PLOG_CMD_PARTITION_NEW:
		snprintf(dir, sizeof(dir), "%s/%s-0", m->instance->dir,
			 rnd(8) ? topic : topic_name());
		fd = open(dir, O_RDONLY | O_DIRECTORY);
		if (fd >= 0)
			mnl_attr_put_u32(nlh, PLOG_A_PARTITION_DIR_FD, (uint32_t)fd);
		/* fall through */
	case PLOG_CMD_PARTITION_SET:
		for (; n; n--)
			add_setting(nlh);
		break;
	case PLOG_CMD_PARTITION_DELETE_RECORDS:
		mnl_attr_put_u64(nlh, PLOG_A_PARTITION_LOG_START, enemy_offset());
		break;
	}
	add_strange(m, nlh, PLOG_A_PARTITION_MAX);
	mnl_attr_nest_end(nlh, nest);
	m->opened = fd;
}

static void add_instance(const struct enemy_message *m, struct nlmsghdr *nlh)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_INSTANCE);

	if (!rnd(4)) {
		mnl_attr_put_strz(nlh, PLOG_A_INSTANCE_DATA_DIR, m->instance->dir);
		mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_DIR_FD, (uint32_t)m->instance->dir_fd);
		mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_LOCK_FD, (uint32_t)m->instance->lock_fd);
	}
	/* so that topic t can be made again by whoever looks after it */
	if (rnd(2))
		mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_MAX_PARTITIONS, 8 * ENEMY_TOPICS + rnd(1000));
	if (rnd(2))
		mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_RETENTION_CHECK_MS, 1 + rnd(5000));
	if (rnd(2))
		mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_MAX_WAITERS, 1 + rnd(20));
	if (rnd(2))
		mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_MAX_DESCRIPTORS, 1 + rnd(100));
	if (rnd(2))
		mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_MAX_APPEND_BYTES, 1024 + rnd(1 << 20));
	mnl_attr_nest_end(nlh, nest);
}

/* The segment that was asked for last, and the one that was got last: that is given back. */
static struct segment {
	char topic[16];
	int64_t base;
} asked, taken;

static void add_retired(const struct enemy_message *m, struct nlmsghdr *nlh)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_RETIRED);
	uint64_t daemon = enemy_known->daemon;

	if (m->command == PLOG_CMD_RETIRED_DONE && rnd(6)) {
		asked = taken;
	} else {
		bool known = rnd(6) && *enemy_known->retired_topic;

		snprintf(asked.topic, sizeof(asked.topic), "%s",
			 known ? enemy_known->retired_topic : topic_name());
		asked.base = rnd(6) ? enemy_known->retired : (int64_t)enemy_offset();
	}
	mnl_attr_put_strz(nlh, PLOG_A_RETIRED_TOPIC, asked.topic);
	mnl_attr_put_u32(nlh, PLOG_A_RETIRED_INDEX, 0);
	mnl_attr_put_u64(nlh, PLOG_A_RETIRED_BASE_OFFSET, (uint64_t)asked.base);
	if (rnd(8) ? daemon : !daemon)
		mnl_attr_put_u64(nlh, PLOG_A_RETIRED_INCARNATION,
				 rnd(8) ? daemon : enemy_incarnation());
	if (!rnd(3))
		mnl_attr_put_u8(nlh, PLOG_A_RETIRED_FAILED, (uint8_t)rnd(2));
	add_strange(m, nlh, PLOG_A_RETIRED_MAX);
	mnl_attr_nest_end(nlh, nest);
}

static void add_relay(const struct enemy_message *m, struct nlmsghdr *nlh)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_RELAY);

	if (m->command == PLOG_CMD_RELAY_REPLY ? rnd(8) : !rnd(8))
		mnl_attr_put_u32(nlh, PLOG_A_RELAY_PORT, m->nl->port + (rnd(4) ? 0 : rnd(2)));
	if (rnd(8))
		mnl_attr_put_u32(nlh, PLOG_A_RELAY_COOKIE, rnd(1000));
	if (rnd(8))
		mnl_attr_put(nlh, PLOG_A_RELAY_PAYLOAD, rnd(3000), m->payload);
	add_strange(m, nlh, PLOG_A_RELAY_MAX);
	mnl_attr_nest_end(nlh, nest);
}

static void add_stats(const struct enemy_message *m, struct nlmsghdr *nlh)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_STATS);

	mnl_attr_put_strz(nlh, PLOG_A_STATS_TOPIC, topic_name());
	mnl_attr_put_u32(nlh, PLOG_A_STATS_INDEX, 0);
	add_strange(m, nlh, PLOG_A_STATS_MAX);
	mnl_attr_nest_end(nlh, nest);
}

/* What a request of this command has. */
static void add_right(struct enemy_message *m, struct nlmsghdr *nlh)
{
	switch (m->command) {
	case PLOG_CMD_INSTANCE_GET:
	case PLOG_CMD_INSTANCE_STOP:
		break;
	case PLOG_CMD_INSTANCE_SET:
		add_instance(m, nlh);
		break;
	case PLOG_CMD_STATS_GET:
		if (rnd(2))
			add_stats(m, nlh);
		break;
	case PLOG_CMD_RELAY_REQUEST:
	case PLOG_CMD_RELAY_REPLY:
		add_relay(m, nlh);
		break;
	case PLOG_CMD_RETIRED_TAKE:
	case PLOG_CMD_RETIRED_DONE:
		add_retired(m, nlh);
		break;
	case PLOG_CMD_RETIRED_GET:
	case PLOG_CMD_RETENTION_RUN:
		if (rnd(2))
			break;
		/* fall through */
	default:
		add_partition(m, nlh);
	}
}

/* Whatever can be nested in anything. */
static void add_junk(const struct enemy_message *m, struct nlmsghdr *nlh)
{
	struct nlattr *nest;
	uint32_t n;

	if (!rnd(8)) {
		add_attribute(m, nlh, rnd(PLOG_A_MAX + 3), 0);
		return;
	}
	nest = mnl_attr_nest_start(nlh, (uint16_t)rnd(PLOG_A_MAX + 2));
	for (n = rnd(10); n; n--)
		add_attribute(m, nlh, rnd(34), 1);
	mnl_attr_nest_end(nlh, nest);
	if (!rnd(8))
		nest->nla_len = (uint16_t)rnd(65536);
	if (!rnd(8))
		nest->nla_type &= 0x7fff;
}

static bool is_dump(uint32_t command)
{
	switch (command) {
	case PLOG_CMD_PARTITION_GET:
	case PLOG_CMD_STATS_GET:
		return rnd(4) == 0;
	case PLOG_CMD_SEGMENT_GET:
	case PLOG_CMD_RETIRED_GET:
	case PLOG_CMD_EPOCH_GET:
		return rnd(8) != 0;
	default:
		return rnd(16) == 0;
	}
}

/* Which one; what ends partitions or all of them seldom, since they have to be made anew then. */
static uint32_t any_command(void)
{
	uint32_t command = rnd(PLOG_CMD_MAX + 2);

	if ((command == PLOG_CMD_INSTANCE_STOP || command == PLOG_CMD_PARTITION_DEL) && rnd(8))
		command = PLOG_CMD_PARTITION_NEW;
	if (command == PLOG_CMD_INSTANCE_STOP && rnd(20))
		command = PLOG_CMD_PARTITION_GET;
	return command;
}

/* ---- answers ---- */

static void learn_retired(const struct nlmsghdr *nlh)
{
	const struct nlattr *tb[PLOG_A_RETIRED_MAX + 1];

	if (!nl_nest(nlh, PLOG_A_RETIRED, tb, PLOG_A_RETIRED_MAX) ||
	    !tb[PLOG_A_RETIRED_TOPIC] || !tb[PLOG_A_RETIRED_BASE_OFFSET])
		return;
	snprintf(enemy_known->retired_topic, sizeof(enemy_known->retired_topic), "%s",
		 mnl_attr_get_str(tb[PLOG_A_RETIRED_TOPIC]));
	enemy_known->retired = (int64_t)mnl_attr_get_u64(tb[PLOG_A_RETIRED_BASE_OFFSET]);
}

static void learn_daemon(const struct nlmsghdr *nlh)
{
	const struct nlattr *tb[PLOG_A_INSTANCE_MAX + 1];

	if (nl_nest(nlh, PLOG_A_INSTANCE, tb, PLOG_A_INSTANCE_MAX) &&
	    tb[PLOG_A_INSTANCE_INCARNATION])
		enemy_known->daemon = mnl_attr_get_u64(tb[PLOG_A_INSTANCE_INCARNATION]);
}

static void take_answers(struct enemy_message *m)
{
	static uint8_t buf[NL_BUF_SIZE];
	int fd = mnl_socket_get_fd(m->nl->socket);
	ssize_t length;

	m->worked = false;
	while ((length = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) >= 0 || errno == ENOBUFS) {
		const struct nlmsghdr *in = (const void *)buf;
		int left = (int)length;

		for (; mnl_nlmsg_ok(in, left); in = mnl_nlmsg_next(in, &left)) {
			const struct genlmsghdr *genl = mnl_nlmsg_get_payload(in);

			if (in->nlmsg_type == NLMSG_ERROR || in->nlmsg_type == NLMSG_DONE) {
				if (mnl_nlmsg_get_payload_len(in) >= sizeof(int))
					m->worked |= !*(const int *)mnl_nlmsg_get_payload(in);
			} else if (in->nlmsg_type == m->nl->family) {
				if (genl->cmd == PLOG_CMD_RETIRED_GET)
					learn_retired(in);
				else if (genl->cmd == PLOG_CMD_INSTANCE_GET)
					learn_daemon(in);
			}
		}
	}
}

long enemy_message(struct enemy_message *m)
{
	static uint8_t buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh;
	bool counts;
	long ret;

	m->command = any_command();
	m->opened = -1;
	nlh = nl_begin(m->nl, buf, (uint8_t)m->command, 0);
	if (!rnd(6))
		nlh->nlmsg_flags = (uint16_t)rnd(65536);
	if (is_dump(m->command))
		nlh->nlmsg_flags |= NLM_F_DUMP;
	if (rnd(2))
		add_right(m, nlh);
	else
		add_junk(m, nlh);
	/* one that is not a request, or not ours, is acknowledged and no more */
	counts = nlh->nlmsg_flags & NLM_F_REQUEST;
	if (!rnd(30)) {
		nlh->nlmsg_len = rnd(nlh->nlmsg_len + 10);
		counts = false;
	}
	if (!rnd(50)) {
		buf[rnd(nlh->nlmsg_len + 1)] ^= (uint8_t)(1 << rnd(8));
		counts = false;
	}
	ret = sendto(mnl_socket_get_fd(m->nl->socket), buf, mnl_nlmsg_get_payload_len(nlh) + 16, MSG_DONTWAIT, NULL, 0);
	take_answers(m);
	m->worked &= counts;
	if (m->worked && m->command == PLOG_CMD_RETIRED_TAKE)
		taken = asked;
	if (m->opened >= 0)
		close(m->opened);
	return ret;
}
