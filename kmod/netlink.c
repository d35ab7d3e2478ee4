// SPDX-License-Identifier: GPL-2.0
/*
 * The generic netlink family: instance and partition.
 *
 * genl's lock is held across a request, and every other family waits for it to
 * be registered: so nothing here waits for a disk or a daemon.  A request takes
 * its references and returns; work queues do the rest and events tell.
 *
 * Documentation/netlink/specs/plog.yaml says the same as the tables here; a
 * test compares it with the header.
 */
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/plog.h>
#include <linux/plog_netlink.h>
#include <linux/slab.h>
#include <net/genetlink.h>

#include "message.h"
#include "net.h"
#include "netlink.h"
#include "part.h"
#include "vfs.h"

#define PLOG_STATE_ALL	(PLOG_STATE_REPLICATED | PLOG_STATE_LEADER | PLOG_STATE_COMPACT | \
			 PLOG_STATE_INTERNAL | PLOG_STATE_LOG_APPEND_TIME)

/* ---- policies ---- */

/* Not const: 6.1 points to them without. */
static struct netlink_range_validation message_bytes_range = {
	.min = PLOG_MESSAGE_BYTES_MIN, .max = PLOG_MESSAGE_BYTES_MAX,
};
static struct netlink_range_validation segment_bytes_range = {
	.min = 14, .max = INT_MAX,
};
static struct netlink_range_validation segment_ms_range = {
	.min = 1, .max = S64_MAX,
};
static struct netlink_range_validation index_interval_range = {
	.min = 0, .max = INT_MAX,
};
static struct netlink_range_validation index_bytes_range = {
	.min = 8, .max = INT_MAX,
};
static struct netlink_range_validation ms_range = {
	.min = 0, .max = S64_MAX,
};
static struct netlink_range_validation flush_messages_range = {
	.min = 1, .max = S64_MAX,
};
static struct netlink_range_validation check_ms_range = {
	.min = 1, .max = INT_MAX,
};
static struct netlink_range_validation index_range = {
	.min = 0, .max = INT_MAX,
};

static struct netlink_range_validation partitions_range = {
	.min = 1, .max = PLOG_PARTITIONS_LIMIT,
};
static struct netlink_range_validation waiters_range = {
	.min = 1, .max = PLOG_WAITERS_LIMIT,
};
static struct netlink_range_validation descriptors_range = {
	.min = 1, .max = INT_MAX,
};

#define TOPIC_POLICY	{ .type = NLA_NUL_STRING, .len = PLOG_TOPIC_MAX }
#define INDEX_POLICY	NLA_POLICY_FULL_RANGE(NLA_U32, &index_range)

static const struct nla_policy instance_set_nest[PLOG_A_INSTANCE_MAX + 1] = {
	[PLOG_A_INSTANCE_DATA_DIR] = { .type = NLA_NUL_STRING, .len = PLOG_LABEL_MAX },
	[PLOG_A_INSTANCE_DIR_FD] = NLA_POLICY_MIN(NLA_S32, 0),
	[PLOG_A_INSTANCE_LOCK_FD] = NLA_POLICY_MIN(NLA_S32, 0),
	[PLOG_A_INSTANCE_RETENTION_CHECK_MS] = NLA_POLICY_FULL_RANGE(NLA_U32, &check_ms_range),
	[PLOG_A_INSTANCE_MAX_PARTITIONS] = NLA_POLICY_FULL_RANGE(NLA_U32, &partitions_range),
	[PLOG_A_INSTANCE_MAX_WAITERS] = NLA_POLICY_FULL_RANGE(NLA_U32, &waiters_range),
	[PLOG_A_INSTANCE_MAX_DESCRIPTORS] = NLA_POLICY_FULL_RANGE(NLA_U32, &descriptors_range),
	[PLOG_A_INSTANCE_MAX_APPEND_BYTES] =
		NLA_POLICY_FULL_RANGE(NLA_U32, &message_bytes_range),
};

static const struct nla_policy instance_set_policy[PLOG_A_INSTANCE + 1] = {
	[PLOG_A_INSTANCE] = NLA_POLICY_NESTED(instance_set_nest),
};

/* What SET can say of a partition; NEW can say all of it. */
#define PARTITION_SETUP_POLICY \
	[PLOG_A_PARTITION_TOPIC] = TOPIC_POLICY, \
	[PLOG_A_PARTITION_INDEX] = INDEX_POLICY, \
	[PLOG_A_PARTITION_FLAGS] = NLA_POLICY_MASK(NLA_U32, PLOG_STATE_ALL), \
	[PLOG_A_PARTITION_NODE] = NLA_POLICY_MAX(NLA_U8, 1), \
	[PLOG_A_PARTITION_UID] = { .type = NLA_U32 }, \
	[PLOG_A_PARTITION_GID] = { .type = NLA_U32 }, \
	[PLOG_A_PARTITION_MODE] = NLA_POLICY_MAX(NLA_U32, 0777), \
	[PLOG_A_PARTITION_MAX_MESSAGE_BYTES] = \
		NLA_POLICY_FULL_RANGE(NLA_U32, &message_bytes_range), \
	[PLOG_A_PARTITION_SEGMENT_BYTES] = NLA_POLICY_FULL_RANGE(NLA_U32, &segment_bytes_range), \
	[PLOG_A_PARTITION_SEGMENT_MS] = NLA_POLICY_FULL_RANGE(NLA_U64, &segment_ms_range), \
	[PLOG_A_PARTITION_INDEX_INTERVAL_BYTES] = \
		NLA_POLICY_FULL_RANGE(NLA_U32, &index_interval_range), \
	[PLOG_A_PARTITION_INDEX_BYTES] = NLA_POLICY_FULL_RANGE(NLA_U32, &index_bytes_range), \
	[PLOG_A_PARTITION_RETENTION_MS] = NLA_POLICY_MIN(NLA_S64, -1), \
	[PLOG_A_PARTITION_RETENTION_BYTES] = NLA_POLICY_MIN(NLA_S64, -1), \
	[PLOG_A_PARTITION_FILE_DELETE_DELAY_MS] = NLA_POLICY_FULL_RANGE(NLA_U64, &ms_range), \
	[PLOG_A_PARTITION_SEGMENT_JITTER_MS] = NLA_POLICY_FULL_RANGE(NLA_U64, &ms_range), \
	[PLOG_A_PARTITION_FLUSH_MESSAGES] = NLA_POLICY_FULL_RANGE(NLA_U64, &flush_messages_range), \
	[PLOG_A_PARTITION_FLUSH_MS] = NLA_POLICY_FULL_RANGE(NLA_U64, &ms_range), \
	[PLOG_A_PARTITION_PREALLOCATE] = NLA_POLICY_MAX(NLA_U8, 1)

static const struct nla_policy partition_new_nest[PLOG_A_PARTITION_MAX + 1] = {
	PARTITION_SETUP_POLICY,
	[PLOG_A_PARTITION_DIR_FD] = NLA_POLICY_MIN(NLA_S32, 0),
	[PLOG_A_PARTITION_TOPIC_ID] = NLA_POLICY_EXACT_LEN(16),
};

static const struct nla_policy partition_new_policy[PLOG_A_PARTITION + 1] = {
	[PLOG_A_PARTITION] = NLA_POLICY_NESTED(partition_new_nest),
};

static const struct nla_policy partition_set_nest[PLOG_A_PARTITION_MAX + 1] = {
	PARTITION_SETUP_POLICY,
};

static const struct nla_policy partition_set_policy[PLOG_A_PARTITION + 1] = {
	[PLOG_A_PARTITION] = NLA_POLICY_NESTED(partition_set_nest),
};

const struct nla_policy plog_partition_key_nest[PLOG_A_PARTITION_INDEX + 1] = {
	[PLOG_A_PARTITION_TOPIC] = TOPIC_POLICY,
	[PLOG_A_PARTITION_INDEX] = INDEX_POLICY,
};

const struct nla_policy plog_partition_key_policy[PLOG_A_PARTITION + 1] = {
	[PLOG_A_PARTITION] = NLA_POLICY_NESTED(plog_partition_key_nest),
};

const struct nla_policy plog_stats_key_nest[PLOG_A_STATS_INDEX + 1] = {
	[PLOG_A_STATS_TOPIC] = TOPIC_POLICY,
	[PLOG_A_STATS_INDEX] = INDEX_POLICY,
};

const struct nla_policy plog_stats_key_policy[PLOG_A_STATS + 1] = {
	[PLOG_A_STATS] = NLA_POLICY_NESTED(plog_stats_key_nest),
};

static const struct nla_policy delete_records_nest[PLOG_A_PARTITION_LOG_START + 1] = {
	[PLOG_A_PARTITION_TOPIC] = TOPIC_POLICY,
	[PLOG_A_PARTITION_INDEX] = INDEX_POLICY,
	[PLOG_A_PARTITION_LOG_START] = NLA_POLICY_MIN(NLA_S64, 0),
};

static const struct nla_policy plog_delete_records_policy[PLOG_A_PARTITION + 1] = {
	[PLOG_A_PARTITION] = NLA_POLICY_NESTED(delete_records_nest),
};

static const struct nla_policy retired_nest[PLOG_A_RETIRED_FAILED + 1] = {
	[PLOG_A_RETIRED_TOPIC] = TOPIC_POLICY,
	[PLOG_A_RETIRED_INDEX] = INDEX_POLICY,
	[PLOG_A_RETIRED_BASE_OFFSET] = NLA_POLICY_MIN(NLA_S64, 0),
	[PLOG_A_RETIRED_INCARNATION] = { .type = NLA_U64 },
	[PLOG_A_RETIRED_FAILED] = NLA_POLICY_MAX(NLA_U8, 1),
};

static const struct nla_policy plog_retired_policy[PLOG_A_RETIRED + 1] = {
	[PLOG_A_RETIRED] = NLA_POLICY_NESTED(retired_nest),
};

static const struct nla_policy relay_request_nest[PLOG_A_RELAY_PAYLOAD + 1] = {
	[PLOG_A_RELAY_COOKIE] = { .type = NLA_U32 },
	[PLOG_A_RELAY_PAYLOAD] = { .type = NLA_BINARY, .len = PLOG_RELAY_MAX },
};

static const struct nla_policy relay_request_policy[PLOG_A_RELAY + 1] = {
	[PLOG_A_RELAY] = NLA_POLICY_NESTED(relay_request_nest),
};

static const struct nla_policy relay_reply_nest[PLOG_A_RELAY_PAYLOAD + 1] = {
	[PLOG_A_RELAY_PORT] = NLA_POLICY_MIN(NLA_U32, 1),
	[PLOG_A_RELAY_COOKIE] = { .type = NLA_U32 },
	[PLOG_A_RELAY_PAYLOAD] = { .type = NLA_BINARY, .len = PLOG_RELAY_MAX },
};

static const struct nla_policy relay_reply_policy[PLOG_A_RELAY + 1] = {
	[PLOG_A_RELAY] = NLA_POLICY_NESTED(relay_reply_nest),
};

/* ---- help for every request ---- */

int plog_netlink_admin(struct sk_buff *skb, struct netlink_ext_ack *extack)
{
	if (netlink_capable(skb, CAP_NET_ADMIN))
		return 0;
	NL_SET_ERR_MSG(extack,
		       "this needs CAP_NET_ADMIN in the initial user namespace: rootless is not supported");
	return -EPERM;
}

int plog_netlink_nest(struct nlattr **tb, int max, int type, struct nlattr **attrs,
		      const struct nla_policy *policy, struct netlink_ext_ack *extack)
{
	if (!attrs[type]) {
		NL_SET_ERR_MSG(extack, "the request has no attributes of its object");
		return -EINVAL;
	}
	return nla_parse_nested(tb, max, attrs[type], policy, extack);
}

/* A reason that is chosen at run time: all of them are literals. */
void plog_netlink_why(struct netlink_ext_ack *extack, const char *why)
{
	if (extack && why && !extack->_msg)
		extack->_msg = why;
}

int plog_netlink_topic(const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	if (!attr) {
		NL_SET_ERR_MSG(extack, "the topic is missing");
		return -EINVAL;
	}
	if (plog_part_topic_valid(nla_data(attr), strlen(nla_data(attr))))
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "a topic name has 1 to 249 of a-z A-Z 0-9 . _ - and is not . or ..");
	return -EINVAL;
}

struct plog_part *plog_netlink_find(struct plog_instance *inst, const struct nlattr *topic,
				    const struct nlattr *index, struct netlink_ext_ack *extack)
{
	struct plog_part *part;
	int err;

	err = plog_netlink_topic(topic, extack);
	if (err)
		return ERR_PTR(err);
	if (!index) {
		NL_SET_ERR_MSG(extack, "the partition's index is missing");
		return ERR_PTR(-EINVAL);
	}
	part = plog_part_find(inst, nla_data(topic), nla_get_u32(index));
	if (!part) {
		NL_SET_ERR_MSG_ATTR(extack, topic, "there is no partition of this topic and index");
		return ERR_PTR(-ENOENT);
	}
	return part;
}

static const char *dir_text(int err)
{
	switch (err) {
	case -EBADF:
		return "the directory's descriptor is not open for reading";
	case -ENOTDIR:
		return "the directory's descriptor is not one of a directory";
	case -EOPNOTSUPP:
		return "the directory must be on ext4, xfs, btrfs or tmpfs, without DAX";
	case -EROFS:
		return "the directory is on a filesystem that is mounted read-only";
	default:
		return NULL;
	}
}

static struct plog_dir *get_dir(const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	struct plog_dir *dir;

	if (!attr) {
		NL_SET_ERR_MSG(extack, "the directory's descriptor is missing");
		return ERR_PTR(-EINVAL);
	}
	/* In the sender's task: a request is handled in its own sendmsg(2). */
	dir = plog_dir_get(nla_get_s32(attr));
	if (IS_ERR(dir)) {
		NL_SET_BAD_ATTR(extack, attr);
		plog_netlink_why(extack, dir_text(PTR_ERR(dir)));
	}
	return dir;
}

/* ---- instance ---- */

static int instance_get(struct sk_buff *skb, struct genl_info *info)
{
	struct plog_instance *inst = plog_instance_of(genl_info_net(info));
	struct sk_buff *reply;
	int err = -ENOMEM;

	reply = genlmsg_new(PLOG_MESSAGE_SIZE, GFP_KERNEL);
	if (!reply)
		goto out;
	err = plog_message_put_instance(reply, inst, info->snd_portid, info->snd_seq, 0,
					PLOG_CMD_INSTANCE_GET);
	if (err) {
		nlmsg_free(reply);
		goto out;
	}
	err = genlmsg_reply(reply, info);
out:
	plog_instance_put(inst);
	return err;
}

/* Of an instance that runs. */
static int set_retention_check(struct genl_info *info, const struct nlattr *ms)
{
	struct plog_instance *inst = plog_instance_of(genl_info_net(info));
	int err = plog_instance_set_retention_check(inst, nla_get_u32(ms));

	if (err)
		NL_SET_ERR_MSG(info->extack, "no instance is running in this network namespace");
	plog_instance_put(inst);
	return err;
}

/* Take the limits that are there into @limits. Return: is there any? */
static bool read_limits(struct nlattr **tb, struct plog_limits *limits)
{
	const struct {
		int attr;
		u32 *to;
	} all[] = {
		{ PLOG_A_INSTANCE_MAX_PARTITIONS, &limits->partitions },
		{ PLOG_A_INSTANCE_MAX_WAITERS, &limits->waiters },
		{ PLOG_A_INSTANCE_MAX_DESCRIPTORS, &limits->descriptors },
		{ PLOG_A_INSTANCE_MAX_APPEND_BYTES, &limits->append_bytes },
	};
	bool any = false;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		if (!tb[all[i].attr])
			continue;
		*all[i].to = nla_get_u32(tb[all[i].attr]);
		any = true;
	}
	return any;
}

static int instance_start(struct plog_instance *inst, struct nlattr **tb,
			  struct netlink_ext_ack *extack)
{
	const char *why = NULL;
	struct plog_dir *dir;
	struct file *lock;
	int err;

	if (!nla_len(tb[PLOG_A_INSTANCE_DATA_DIR]) ||
	    !*(char *)nla_data(tb[PLOG_A_INSTANCE_DATA_DIR])) {
		NL_SET_ERR_MSG(extack, "the data directory's name is missing");
		return -EINVAL;
	}
	if (!tb[PLOG_A_INSTANCE_LOCK_FD]) {
		NL_SET_ERR_MSG(extack, "the lock file's descriptor is missing");
		return -EINVAL;
	}
	dir = get_dir(tb[PLOG_A_INSTANCE_DIR_FD], extack);
	if (IS_ERR(dir))
		return PTR_ERR(dir);
	lock = plog_dir_lock_get(dir, nla_get_s32(tb[PLOG_A_INSTANCE_LOCK_FD]), &why);
	if (IS_ERR(lock)) {
		err = PTR_ERR(lock);
		NL_SET_BAD_ATTR(extack, tb[PLOG_A_INSTANCE_LOCK_FD]);
		plog_dir_put(dir);
	} else {
		err = plog_instance_start(inst, nla_data(tb[PLOG_A_INSTANCE_DATA_DIR]), dir, lock,
					  &why);
	}
	if (err)
		plog_netlink_why(extack, why);
	return err;
}

static int instance_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[ARRAY_SIZE(instance_set_nest)];
	struct netlink_ext_ack *extack = info->extack;
	struct plog_instance *inst;
	struct plog_limits limits;
	bool any;
	int err;

	err = plog_netlink_admin(skb, extack);
	if (err)
		return err;
	err = plog_netlink_nest(tb, ARRAY_SIZE(tb) - 1, PLOG_A_INSTANCE, info->attrs,
				instance_set_nest, extack);
	if (err)
		return err;
	if (tb[PLOG_A_INSTANCE_RETENTION_CHECK_MS] && !tb[PLOG_A_INSTANCE_DATA_DIR]) {
		err = set_retention_check(info, tb[PLOG_A_INSTANCE_RETENTION_CHECK_MS]);
		if (err)
			return err;
	}

	inst = plog_instance_of(genl_info_net(info));
	plog_instance_limits(inst, &limits);
	any = read_limits(tb, &limits);
	if (tb[PLOG_A_INSTANCE_DATA_DIR]) {
		err = instance_start(inst, tb, extack);
	} else if ((!any && !tb[PLOG_A_INSTANCE_RETENTION_CHECK_MS]) ||
		   tb[PLOG_A_INSTANCE_DIR_FD] || tb[PLOG_A_INSTANCE_LOCK_FD]) {
		NL_SET_ERR_MSG(extack, "the data directory's name is missing");
		err = -EINVAL;
	}
	/* Two of these at once are two people's: the last one's word counts. */
	if (!err && any) {
		plog_instance_limits_set(inst, &limits);
		plog_message_instance(inst);
	}
	if (!err && tb[PLOG_A_INSTANCE_DATA_DIR] && tb[PLOG_A_INSTANCE_RETENTION_CHECK_MS])
		plog_instance_set_retention_check(inst,
			nla_get_u32(tb[PLOG_A_INSTANCE_RETENTION_CHECK_MS]));
	plog_instance_put(inst);
	return err;
}

static int instance_stop(struct sk_buff *skb, struct genl_info *info)
{
	struct plog_instance *inst;
	int err;

	err = plog_netlink_admin(skb, info->extack);
	if (err)
		return err;
	inst = plog_instance_of(genl_info_net(info));
	err = plog_instance_stop(inst);
	if (err)
		NL_SET_ERR_MSG(info->extack, "no instance is running in this network namespace");
	plog_instance_put(inst);
	return err;
}

/* ---- partition ---- */

/* Take the attributes that are there into @setup, and check the whole. */
static int read_setup(struct nlattr **tb, struct plog_part_setup *setup,
		      struct netlink_ext_ack *extack)
{
	struct plog_config *config = &setup->config;
	const char *what;

	if (tb[PLOG_A_PARTITION_FLAGS])
		config->flags = nla_get_u32(tb[PLOG_A_PARTITION_FLAGS]);
	if (tb[PLOG_A_PARTITION_MAX_MESSAGE_BYTES])
		config->max_message_bytes = nla_get_u32(tb[PLOG_A_PARTITION_MAX_MESSAGE_BYTES]);
	if (tb[PLOG_A_PARTITION_SEGMENT_BYTES])
		config->segment_bytes = nla_get_u32(tb[PLOG_A_PARTITION_SEGMENT_BYTES]);
	if (tb[PLOG_A_PARTITION_SEGMENT_MS])
		config->segment_ms = nla_get_u64(tb[PLOG_A_PARTITION_SEGMENT_MS]);
	if (tb[PLOG_A_PARTITION_INDEX_INTERVAL_BYTES])
		config->index_interval_bytes =
			nla_get_u32(tb[PLOG_A_PARTITION_INDEX_INTERVAL_BYTES]);
	if (tb[PLOG_A_PARTITION_INDEX_BYTES])
		config->index_bytes = nla_get_u32(tb[PLOG_A_PARTITION_INDEX_BYTES]);
	if (tb[PLOG_A_PARTITION_RETENTION_MS])
		config->retention_ms = nla_get_s64(tb[PLOG_A_PARTITION_RETENTION_MS]);
	if (tb[PLOG_A_PARTITION_RETENTION_BYTES])
		config->retention_bytes = nla_get_s64(tb[PLOG_A_PARTITION_RETENTION_BYTES]);
	if (tb[PLOG_A_PARTITION_FILE_DELETE_DELAY_MS])
		config->file_delete_delay_ms =
			nla_get_u64(tb[PLOG_A_PARTITION_FILE_DELETE_DELAY_MS]);
	if (tb[PLOG_A_PARTITION_SEGMENT_JITTER_MS])
		config->segment_jitter_ms = nla_get_u64(tb[PLOG_A_PARTITION_SEGMENT_JITTER_MS]);
	if (tb[PLOG_A_PARTITION_FLUSH_MESSAGES])
		config->flush_messages = nla_get_u64(tb[PLOG_A_PARTITION_FLUSH_MESSAGES]);
	if (tb[PLOG_A_PARTITION_FLUSH_MS])
		config->flush_ms = nla_get_u64(tb[PLOG_A_PARTITION_FLUSH_MS]);
	if (tb[PLOG_A_PARTITION_PREALLOCATE])
		config->preallocate = nla_get_u8(tb[PLOG_A_PARTITION_PREALLOCATE]);
	if (plog_config_check(config, &what)) {
		/* It names one of a few literals. */
		plog_netlink_why(extack, what);
		return -ERANGE;
	}

	if (tb[PLOG_A_PARTITION_UID]) {
		setup->uid = make_kuid(&init_user_ns, nla_get_u32(tb[PLOG_A_PARTITION_UID]));
		if (!uid_valid(setup->uid)) {
			NL_SET_ERR_MSG_ATTR(extack, tb[PLOG_A_PARTITION_UID],
					    "this is no user id");
			return -EINVAL;
		}
	}
	if (tb[PLOG_A_PARTITION_GID]) {
		setup->gid = make_kgid(&init_user_ns, nla_get_u32(tb[PLOG_A_PARTITION_GID]));
		if (!gid_valid(setup->gid)) {
			NL_SET_ERR_MSG_ATTR(extack, tb[PLOG_A_PARTITION_GID],
					    "this is no group id");
			return -EINVAL;
		}
	}
	if (tb[PLOG_A_PARTITION_MODE])
		setup->mode = nla_get_u32(tb[PLOG_A_PARTITION_MODE]);
	if (tb[PLOG_A_PARTITION_NODE])
		setup->node = nla_get_u8(tb[PLOG_A_PARTITION_NODE]);
	if (tb[PLOG_A_PARTITION_TOPIC_ID])
		memcpy(setup->topic_id, nla_data(tb[PLOG_A_PARTITION_TOPIC_ID]),
		       sizeof(setup->topic_id));
	return 0;
}

static int partition_new(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[ARRAY_SIZE(partition_new_nest)];
	struct netlink_ext_ack *extack = info->extack;
	struct plog_part_setup setup = { .mode = 0600 };
	struct plog_instance *inst;
	const char *why = NULL;
	struct plog_dir *dir;
	int err;

	err = plog_netlink_admin(skb, extack);
	if (err)
		return err;
	err = plog_netlink_nest(tb, ARRAY_SIZE(tb) - 1, PLOG_A_PARTITION, info->attrs,
				partition_new_nest, extack);
	if (err)
		return err;
	err = plog_netlink_topic(tb[PLOG_A_PARTITION_TOPIC], extack);
	if (err)
		return err;
	if (!tb[PLOG_A_PARTITION_INDEX]) {
		NL_SET_ERR_MSG(extack, "the partition's index is missing");
		return -EINVAL;
	}
	plog_config_init(&setup.config);
	setup.uid = GLOBAL_ROOT_UID;
	setup.gid = GLOBAL_ROOT_GID;
	err = read_setup(tb, &setup, extack);
	if (err)
		return err;
	dir = get_dir(tb[PLOG_A_PARTITION_DIR_FD], extack);
	if (IS_ERR(dir))
		return PTR_ERR(dir);

	inst = plog_instance_of(genl_info_net(info));
	mutex_lock(&inst->mutex);
	if (inst->state != PLOG_INSTANCE_RUNNING) {
		why = "no instance is running in this network namespace: set one first";
		err = -ENODEV;
		plog_dir_put(dir);
	} else {
		err = plog_part_add(inst, nla_data(tb[PLOG_A_PARTITION_TOPIC]),
				    nla_get_u32(tb[PLOG_A_PARTITION_INDEX]), dir, &setup, &why);
	}
	mutex_unlock(&inst->mutex);
	plog_instance_put(inst);
	if (err)
		plog_netlink_why(extack, why);
	return err;
}

static int partition_del(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[ARRAY_SIZE(plog_partition_key_nest)];
	struct netlink_ext_ack *extack = info->extack;
	struct plog_instance *inst;
	struct plog_part *part;
	int err;

	err = plog_netlink_admin(skb, extack);
	if (err)
		return err;
	err = plog_netlink_nest(tb, ARRAY_SIZE(tb) - 1, PLOG_A_PARTITION, info->attrs,
				plog_partition_key_nest, extack);
	if (err)
		return err;
	inst = plog_instance_of(genl_info_net(info));
	part = plog_netlink_find(inst, tb[PLOG_A_PARTITION_TOPIC], tb[PLOG_A_PARTITION_INDEX],
				 extack);
	if (IS_ERR(part)) {
		err = PTR_ERR(part);
	} else {
		mutex_lock(&inst->mutex);
		plog_part_remove(part, false);
		mutex_unlock(&inst->mutex);
		plog_part_put(part);
	}
	plog_instance_put(inst);
	return err;
}

static int partition_get(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[ARRAY_SIZE(plog_partition_key_nest)];
	struct plog_instance *inst;
	struct plog_part *part;
	struct sk_buff *reply;
	int err;

	err = plog_netlink_nest(tb, ARRAY_SIZE(tb) - 1, PLOG_A_PARTITION, info->attrs,
				plog_partition_key_nest, info->extack);
	if (err)
		return err;
	inst = plog_instance_of(genl_info_net(info));
	part = plog_netlink_find(inst, tb[PLOG_A_PARTITION_TOPIC], tb[PLOG_A_PARTITION_INDEX],
				 info->extack);
	if (IS_ERR(part)) {
		err = PTR_ERR(part);
		goto out;
	}
	err = -ENOMEM;
	reply = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!reply)
		goto out_part;
	err = plog_message_put_partition(reply, part, info->snd_portid, info->snd_seq, 0,
					 PLOG_CMD_PARTITION_GET, NULL);
	if (err)
		nlmsg_free(reply);
	else
		err = genlmsg_reply(reply, info);
out_part:
	plog_part_put(part);
out:
	plog_instance_put(inst);
	return err;
}

static int partition_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[ARRAY_SIZE(partition_set_nest)];
	struct netlink_ext_ack *extack = info->extack;
	struct plog_part_setup setup;
	struct plog_instance *inst;
	struct plog_part *part;
	int err;

	err = plog_netlink_admin(skb, extack);
	if (err)
		return err;
	err = plog_netlink_nest(tb, ARRAY_SIZE(tb) - 1, PLOG_A_PARTITION, info->attrs,
				partition_set_nest, extack);
	if (err)
		return err;
	inst = plog_instance_of(genl_info_net(info));
	part = plog_netlink_find(inst, tb[PLOG_A_PARTITION_TOPIC], tb[PLOG_A_PARTITION_INDEX],
				 extack);
	if (IS_ERR(part)) {
		err = PTR_ERR(part);
		goto out;
	}
	/* Two of these at once must not lose a change. */
	mutex_lock(&inst->mutex);
	plog_part_setup_get(part, &setup);
	err = read_setup(tb, &setup, extack);
	if (!err && !part->member) {
		NL_SET_ERR_MSG(extack, "the partition has just been deleted");
		err = -ENOENT;
	}
	if (!err)
		plog_part_setup_set(part, &setup);
	mutex_unlock(&inst->mutex);
	plog_part_put(part);
out:
	plog_instance_put(inst);
	return err;
}

/* ---- the family ---- */

static const struct genl_ops plog_ops[] = {
	{
		.cmd = PLOG_CMD_INSTANCE_GET,
		.doit = instance_get,
	},
	{
		.cmd = PLOG_CMD_INSTANCE_SET,
		.doit = instance_set,
		.policy = instance_set_policy,
		.maxattr = ARRAY_SIZE(instance_set_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_INSTANCE_STOP,
		.doit = instance_stop,
	},
	{
		.cmd = PLOG_CMD_PARTITION_NEW,
		.doit = partition_new,
		.policy = partition_new_policy,
		.maxattr = ARRAY_SIZE(partition_new_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_PARTITION_DEL,
		.doit = partition_del,
		.policy = plog_partition_key_policy,
		.maxattr = ARRAY_SIZE(plog_partition_key_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_PARTITION_GET,
		.doit = partition_get,
		.start = plog_dump_partitions_start,
		.dumpit = plog_dump_partitions,
		.done = plog_dump_done,
		.policy = plog_partition_key_policy,
		.maxattr = ARRAY_SIZE(plog_partition_key_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_PARTITION_SET,
		.doit = partition_set,
		.policy = partition_set_policy,
		.maxattr = ARRAY_SIZE(partition_set_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_STATS_GET,
		.doit = plog_dump_stats_one,
		.start = plog_dump_stats_start,
		.dumpit = plog_dump_stats,
		.done = plog_dump_done,
		.policy = plog_stats_key_policy,
		.maxattr = ARRAY_SIZE(plog_stats_key_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_SEGMENT_GET,
		.start = plog_dump_segments_start,
		.dumpit = plog_dump_segments,
		.done = plog_dump_done,
		.policy = plog_partition_key_policy,
		.maxattr = ARRAY_SIZE(plog_partition_key_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_RELAY_REQUEST,
		.doit = plog_relay_request,
		.policy = relay_request_policy,
		.maxattr = ARRAY_SIZE(relay_request_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_RELAY_REPLY,
		.doit = plog_relay_reply,
		.policy = relay_reply_policy,
		.maxattr = ARRAY_SIZE(relay_reply_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_RETENTION_RUN,
		.doit = plog_command_retention_run,
		.policy = plog_partition_key_policy,
		.maxattr = ARRAY_SIZE(plog_partition_key_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_PARTITION_ROLL,
		.doit = plog_command_roll,
		.policy = plog_partition_key_policy,
		.maxattr = ARRAY_SIZE(plog_partition_key_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_PARTITION_DELETE_RECORDS,
		.doit = plog_command_delete_records,
		.policy = plog_delete_records_policy,
		.maxattr = ARRAY_SIZE(plog_delete_records_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_RETIRED_GET,
		.start = plog_dump_retired_start,
		.dumpit = plog_dump_retired,
		.done = plog_dump_done,
		.policy = plog_partition_key_policy,
		.maxattr = ARRAY_SIZE(plog_partition_key_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_RETIRED_TAKE,
		.doit = plog_command_retired_take,
		.policy = plog_retired_policy,
		.maxattr = ARRAY_SIZE(plog_retired_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_RETIRED_DONE,
		.doit = plog_command_retired_done,
		.policy = plog_retired_policy,
		.maxattr = ARRAY_SIZE(plog_retired_policy) - 1,
	},
	{
		.cmd = PLOG_CMD_EPOCH_GET,
		.start = plog_dump_segments_start,
		.dumpit = plog_dump_epochs,
		.done = plog_dump_done,
		.policy = plog_partition_key_policy,
		.maxattr = ARRAY_SIZE(plog_partition_key_policy) - 1,
	},
};

static const struct genl_multicast_group plog_groups[] = {
	{ .name = PLOG_GENL_GROUP_EVENTS },
};

struct genl_family plog_family = {
	.name = PLOG_GENL_NAME,
	.version = PLOG_GENL_VERSION,
	.module = THIS_MODULE,
	.netnsok = true,
	.parallel_ops = true,
	.ops = plog_ops,
	.n_ops = ARRAY_SIZE(plog_ops),
	.mcgrps = plog_groups,
	.n_mcgrps = ARRAY_SIZE(plog_groups),
	/* Every command, the first included, is checked strictly. */
	.resv_start_op = 1,
};

int plog_netlink_init(void)
{
	int err = genl_register_family(&plog_family);

	if (!err)
		plog_message_enable(true);
	return err;
}

void plog_netlink_exit(void)
{
	plog_message_enable(false);
	genl_unregister_family(&plog_family);
}
