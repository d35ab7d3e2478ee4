// SPDX-License-Identifier: MIT
/* What the daemon asks of the module's retention, and tells it. */
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdio.h>

#include "../../uapi/linux/plog_netlink.h"
#include "../log/log.h"
#include "netlink_request.h"

int netlink_retention_check(struct netlink *nl, int64_t ms, struct plog_error *err)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct nlmsghdr *nlh = netlink_begin(nl, buf, PLOG_CMD_INSTANCE_SET, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_INSTANCE);

	mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_RETENTION_CHECK_MS, ms > INT32_MAX ? INT32_MAX : ms);
	mnl_attr_nest_end(nlh, nest);
	return netlink_ask(nl, nlh, NULL, "log.retention.check.interval.ms", err);
}

void netlink_read_retired(const struct nlmsghdr *nlh, struct netlink_retired *out)
{
	const struct nlattr *nest, *attr;

	mnl_attr_for_each(nest, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(nest) != PLOG_A_RETIRED)
			continue;
		mnl_attr_for_each_nested(attr, nest) {
			switch (mnl_attr_get_type(attr)) {
			case PLOG_A_RETIRED_TOPIC:
				netlink_text(attr, out->topic, sizeof(out->topic));
				break;
			case PLOG_A_RETIRED_INDEX:
				out->index = netlink_u32(attr);
				break;
			case PLOG_A_RETIRED_BASE_OFFSET:
				out->base = (int64_t)netlink_u64(attr);
				break;
			case PLOG_A_RETIRED_STATE:
				out->state = netlink_u32(attr);
				break;
			}
		}
	}
}

static int note_base(const struct nlmsghdr *nlh, void *arg)
{
	struct netlink_retired r = { .base = -1 };

	netlink_read_retired(nlh, &r);
	if (r.base < 0 || r.state == PLOG_RETIRED_STATE_DELAYED ||
	    r.state == PLOG_RETIRED_STATE_HELD)
		return 0;
	return log_bases_add(arg, r.base);
}

int netlink_retired(struct netlink *nl, const char *topic, uint32_t index,
		    struct log_bases *bases)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct netlink_answer answer = { note_base, bases };
	struct nlattr *nest;
	struct nlmsghdr *nlh = netlink_begin_partition(nl, buf, PLOG_CMD_RETIRED_GET, NLM_F_DUMP,
						       topic, index, &nest);

	mnl_attr_nest_end(nlh, nest);
	return netlink_ask(nl, nlh, &answer, topic, NULL);
}

static int say_retired(struct netlink *nl, uint8_t cmd, const char *topic, uint32_t index,
		       int64_t base, uint64_t incarnation, bool failed)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct nlmsghdr *nlh = netlink_begin(nl, buf, cmd, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_RETIRED);

	mnl_attr_put_strz(nlh, PLOG_A_RETIRED_TOPIC, topic);
	mnl_attr_put_u32(nlh, PLOG_A_RETIRED_INDEX, index);
	mnl_attr_put_u64(nlh, PLOG_A_RETIRED_BASE_OFFSET, (uint64_t)base);
	mnl_attr_put_u64(nlh, PLOG_A_RETIRED_INCARNATION, incarnation);
	if (failed)
		mnl_attr_put_u8(nlh, PLOG_A_RETIRED_FAILED, 1);
	mnl_attr_nest_end(nlh, nest);
	return netlink_ask(nl, nlh, NULL, topic, NULL);
}

int netlink_retired_take(struct netlink *nl, const char *topic, uint32_t index, int64_t base,
			 uint64_t incarnation)
{
	return say_retired(nl, PLOG_CMD_RETIRED_TAKE, topic, index, base, incarnation, false);
}

int netlink_retired_done(struct netlink *nl, const char *topic, uint32_t index, int64_t base,
			 uint64_t incarnation, bool gone)
{
	return say_retired(nl, PLOG_CMD_RETIRED_DONE, topic, index, base, incarnation, !gone);
}
