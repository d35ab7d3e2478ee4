/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * plog: partition logs in the kernel - the generic netlink family.
 *
 * Documentation/netlink/specs/plog.yaml says the same in the form that
 * Linux's netlink tools read, Documentation/netlink.rst in prose.  A request
 * concerns the plog instance of the sender's network namespace.  All but the
 * get requests need CAP_NET_ADMIN.  Every refusal carries an extended ack.
 *
 * Change log
 *   1  first version
 */
#ifndef _UAPI_LINUX_PLOG_NETLINK_H
#define _UAPI_LINUX_PLOG_NETLINK_H

#define PLOG_GENL_NAME		"plog"
#define PLOG_GENL_VERSION	1
#define PLOG_GENL_GROUP_EVENTS	"events"

/* Longest data directory label and longest relay payload, in bytes. */
#define PLOG_LABEL_MAX		4095
#define PLOG_RELAY_MAX		32768

enum {
	/*
	 * INSTANCE_GET: -> PLOG_A_INSTANCE
	 * INSTANCE_SET: PLOG_A_INSTANCE with DATA_DIR, DIR_FD and LOCK_FD
	 * makes the instance; -EBUSY if there is one with another directory.
	 * INSTANCE_STOP: closes all partitions cleanly and ends the instance,
	 * in the background; the event INSTANCE_NTF with state STOPPED tells
	 * when.
	 */
	PLOG_CMD_INSTANCE_GET = 1,
	PLOG_CMD_INSTANCE_SET,
	PLOG_CMD_INSTANCE_STOP,
	PLOG_CMD_INSTANCE_NTF,

	/*
	 * PARTITION_NEW: PLOG_A_PARTITION with TOPIC, INDEX, DIR_FD and
	 * configuration; opens in the background, PARTITION_NTF tells the
	 * outcome.
	 * PARTITION_DEL: takes it out of service; its files stay.
	 * PARTITION_GET: do with TOPIC and INDEX, or dump (TOPIC optional).
	 * PARTITION_SET: changes configuration.
	 */
	PLOG_CMD_PARTITION_NEW,
	PLOG_CMD_PARTITION_DEL,
	PLOG_CMD_PARTITION_GET,
	PLOG_CMD_PARTITION_SET,
	PLOG_CMD_PARTITION_NTF,

	/* STATS_GET: do (instance totals, or one partition), or dump (all). */
	PLOG_CMD_STATS_GET,
	/* SEGMENT_GET: dump of one partition's segments. */
	PLOG_CMD_SEGMENT_GET,

	/*
	 * RELAY_REQUEST: forwarded to the registered daemon with PORT and
	 * COOKIE of the asker; -EHOSTDOWN if there is none.
	 * RELAY_REPLY: from the daemon, forwarded to PORT.
	 */
	PLOG_CMD_RELAY_REQUEST,
	PLOG_CMD_RELAY_REPLY,

	__PLOG_CMD_MAX,
};
#define PLOG_CMD_MAX (__PLOG_CMD_MAX - 1)

/* Attributes of a message: one nest each. */
enum {
	PLOG_A_INSTANCE = 1,	/* nest PLOG_A_INSTANCE_* */
	PLOG_A_PARTITION,	/* nest PLOG_A_PARTITION_* */
	PLOG_A_STATS,		/* nest PLOG_A_STATS_* */
	PLOG_A_SEGMENT,		/* nest PLOG_A_SEGMENT_* */
	PLOG_A_RELAY,		/* nest PLOG_A_RELAY_* */
	__PLOG_A_MAX,
};
#define PLOG_A_MAX (__PLOG_A_MAX - 1)

/* PLOG_A_INSTANCE_STATE */
enum {
	PLOG_INSTANCE_NONE = 0,
	PLOG_INSTANCE_RUNNING = 1,
	PLOG_INSTANCE_STOPPING = 2,
	PLOG_INSTANCE_STOPPED = 3,
};

enum {
	PLOG_A_INSTANCE_STATE = 1,	/* u32, PLOG_INSTANCE_* */
	PLOG_A_INSTANCE_DATA_DIR,	/* string: label only, never resolved */
	PLOG_A_INSTANCE_LOCK_FD,	/* s32: DATA_DIR/.lock, holding an OFD write lock */
	PLOG_A_INSTANCE_PARTITIONS,	/* u32: how many there are */
	PLOG_A_INSTANCE_ONLINE,		/* u32: how many of them are online */
	PLOG_A_INSTANCE_INCARNATION,	/* u64: of the registered daemon, 0 for none */
	PLOG_A_INSTANCE_VERSION,	/* string: of the module */
	PLOG_A_INSTANCE_DIR_FD,		/* s32: DATA_DIR itself */
	PLOG_A_INSTANCE_PAD,
	__PLOG_A_INSTANCE_MAX,
};
#define PLOG_A_INSTANCE_MAX (__PLOG_A_INSTANCE_MAX - 1)

enum {
	PLOG_A_PARTITION_TOPIC = 1,	/* string, 1 to 249 of [a-zA-Z0-9._-] */
	PLOG_A_PARTITION_INDEX,		/* u32 */
	PLOG_A_PARTITION_DIR_FD,	/* s32: its directory */
	PLOG_A_PARTITION_TOPIC_ID,	/* binary, 16 bytes */
	PLOG_A_PARTITION_STATE,		/* u32, PLOG_PARTITION_* of plog.h */
	PLOG_A_PARTITION_ERROR,		/* u32: errno that FAILED or FENCED came with */
	PLOG_A_PARTITION_FLAGS,		/* u32, PLOG_STATE_* of plog.h */
	PLOG_A_PARTITION_NODE,		/* u8: 1 = /dev/plog/TOPIC/INDEX exists */
	PLOG_A_PARTITION_UID,		/* u32 */
	PLOG_A_PARTITION_GID,		/* u32 */
	PLOG_A_PARTITION_MODE,		/* u32: permission bits, 0 to 0777 */
	PLOG_A_PARTITION_LEADER_EPOCH,	/* s32, -1 for none */
	PLOG_A_PARTITION_LOG_START,	/* s64 */
	PLOG_A_PARTITION_HIGH_WATERMARK, /* s64 */
	PLOG_A_PARTITION_LAST_STABLE,	/* s64 */
	PLOG_A_PARTITION_LOG_END,	/* s64 */
	PLOG_A_PARTITION_BYTES,		/* u64 */
	PLOG_A_PARTITION_SEGMENTS,	/* u32 */
	PLOG_A_PARTITION_MAX_MESSAGE_BYTES, /* u32: max.message.bytes */
	PLOG_A_PARTITION_SEGMENT_BYTES,	/* u32: segment.bytes, 14 to INT_MAX */
	PLOG_A_PARTITION_SEGMENT_MS,	/* u64: segment.ms */
	PLOG_A_PARTITION_INDEX_INTERVAL_BYTES, /* u32: index.interval.bytes */
	PLOG_A_PARTITION_INDEX_BYTES,	/* u32: segment.index.bytes */
	PLOG_A_PARTITION_MAX_TIMESTAMP,	/* s64 */
	PLOG_A_PARTITION_PAD,
	__PLOG_A_PARTITION_MAX,
};
#define PLOG_A_PARTITION_MAX (__PLOG_A_PARTITION_MAX - 1)

/* Counters, u64 each, since the partition or the instance was opened. */
enum {
	PLOG_A_STATS_TOPIC = 1,		/* string; absent in instance totals */
	PLOG_A_STATS_INDEX,		/* u32 */
	PLOG_A_STATS_APPENDS,		/* batches appended */
	PLOG_A_STATS_RECORDS,		/* records appended */
	PLOG_A_STATS_APPEND_BYTES,
	PLOG_A_STATS_APPEND_REFUSED,	/* appends that failed */
	PLOG_A_STATS_READS,		/* record reads and extents located */
	PLOG_A_STATS_READ_BYTES,	/* bytes copied or spliced to readers */
	PLOG_A_STATS_WAKEUPS,		/* waiters woken by an append */
	PLOG_A_STATS_ROLLS,
	PLOG_A_STATS_FSYNCS,
	PLOG_A_STATS_RECOVERED_BYTES,	/* bytes scanned by recovery */
	PLOG_A_STATS_TRUNCATED_BYTES,	/* bytes cut off by recovery and truncation */
	PLOG_A_STATS_PAD,
	__PLOG_A_STATS_MAX,
};
#define PLOG_A_STATS_MAX (__PLOG_A_STATS_MAX - 1)

enum {
	PLOG_A_SEGMENT_BASE_OFFSET = 1,	/* s64 */
	PLOG_A_SEGMENT_BYTES,		/* u64 */
	PLOG_A_SEGMENT_INDEX_BYTES,	/* u32 */
	PLOG_A_SEGMENT_TIMEINDEX_BYTES,	/* u32 */
	PLOG_A_SEGMENT_MAX_TIMESTAMP,	/* s64 */
	PLOG_A_SEGMENT_ACTIVE,		/* u8 */
	PLOG_A_SEGMENT_PINS,		/* u32: extents that hold it */
	PLOG_A_SEGMENT_PAD,
	__PLOG_A_SEGMENT_MAX,
};
#define PLOG_A_SEGMENT_MAX (__PLOG_A_SEGMENT_MAX - 1)

enum {
	PLOG_A_RELAY_PORT = 1,	/* u32: netlink port of the asker */
	PLOG_A_RELAY_COOKIE,	/* u32: chosen by the asker, comes back with the reply */
	PLOG_A_RELAY_PAYLOAD,	/* binary: JSON, opaque to the kernel, to 32 KiB */
	__PLOG_A_RELAY_MAX,
};
#define PLOG_A_RELAY_MAX (__PLOG_A_RELAY_MAX - 1)

#endif /* _UAPI_LINUX_PLOG_NETLINK_H */
