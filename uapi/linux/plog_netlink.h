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
	 * With MAX_* also changes limits, those of the instance or, without
	 * DATA_DIR, of the namespace whether one runs or not.
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

	/*
	 * In the background; PARTITION_NTF follows where something changed.
	 * RETENTION_RUN: look now what retention keeps, and which files can be
	 * deleted: of all partitions, or of PLOG_A_PARTITION with TOPIC, or
	 * with TOPIC and INDEX.
	 * PARTITION_ROLL: begin a new segment, unless the last one is empty.
	 * PARTITION_DELETE_RECORDS: TOPIC, INDEX and LOG_START, which is to be
	 * on stable storage before it is seen; -ERANGE above the high watermark.
	 */
	PLOG_CMD_RETENTION_RUN,
	PLOG_CMD_PARTITION_ROLL,
	PLOG_CMD_PARTITION_DELETE_RECORDS,

	/*
	 * Retired segments, whose files wait to be deleted.
	 * RETIRED_GET: dump (PLOG_A_PARTITION with TOPIC, or TOPIC and INDEX, optional).
	 * RETIRED_TAKE: TOPIC, INDEX, BASE_OFFSET and the daemon's INCARNATION:
	 * from now on the caller alone deletes these files.
	 * RETIRED_DONE: the same, and FAILED if they are still there.
	 * RETIRED_NTF: a partition, TOPIC and INDEX, has some that can be
	 * deleted; sent while a daemon is registered.
	 */
	PLOG_CMD_RETIRED_GET,
	PLOG_CMD_RETIRED_TAKE,
	PLOG_CMD_RETIRED_DONE,
	PLOG_CMD_RETIRED_NTF,

	/* EPOCH_GET: dump of one partition's leader epochs. */
	PLOG_CMD_EPOCH_GET,

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
	PLOG_A_RETIRED,		/* nest PLOG_A_RETIRED_* */
	PLOG_A_EPOCH,		/* nest PLOG_A_EPOCH_* */
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
	PLOG_A_INSTANCE_RETENTION_CHECK_MS, /* u32: how often retention looks, 1 to INT_MAX */
	/* What the instance refuses to pass; Documentation/limits.rst. */
	PLOG_A_INSTANCE_MAX_PARTITIONS,	/* u32: 1 to 1048576 */
	PLOG_A_INSTANCE_MAX_WAITERS,	/* u32: calls that wait, a partition; 1 to 1048576 */
	PLOG_A_INSTANCE_MAX_DESCRIPTORS, /* u32: of the device, without CAP_NET_ADMIN; 1 to INT_MAX */
	PLOG_A_INSTANCE_MAX_APPEND_BYTES, /* u32: one append; 1024 to 64 MiB */
	PLOG_A_INSTANCE_DESCRIPTORS,	/* u32: of the device that are open now */
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
	PLOG_A_PARTITION_RETENTION_MS,	/* s64: retention.ms, -1: no limit */
	PLOG_A_PARTITION_RETENTION_BYTES, /* s64: retention.bytes, -1: no limit */
	PLOG_A_PARTITION_FILE_DELETE_DELAY_MS, /* u64: file.delete.delay.ms */
	PLOG_A_PARTITION_SEGMENT_JITTER_MS, /* u64: segment.jitter.ms */
	PLOG_A_PARTITION_FLUSH_MESSAGES, /* u64: flush.messages, S64_MAX: never */
	PLOG_A_PARTITION_FLUSH_MS,	/* u64: flush.ms, S64_MAX: never */
	PLOG_A_PARTITION_PREALLOCATE,	/* u8: preallocate */
	PLOG_A_PARTITION_RETIRED,	/* u32: segments whose files wait to be deleted */
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
	PLOG_A_STATS_RETIRED_SEGMENTS,	/* u64: segments that retention and log starts took away */
	PLOG_A_STATS_RETIRED_BYTES,	/* u64: bytes of their logs */
	PLOG_A_STATS_LOOKUPS,		/* looks for a record by its time */
	PLOG_A_STATS_SYNC_ERRORS,	/* syncs that failed: the partition is fenced */
	PLOG_A_STATS_INDEX_REBUILDS,	/* indexes built anew from their log */
	/* As it is now, no counters. */
	PLOG_A_STATS_WAITERS,		/* calls that wait for records or acknowledgement */
	PLOG_A_STATS_OPEN_FILES,	/* log and index files that are open */
	PLOG_A_STATS_PINS,		/* extents that readers hold */
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
	PLOG_A_SEGMENT_GENERATION,	/* u64: of the table it stands in, for PLOG_IOC_SWAP */
	__PLOG_A_SEGMENT_MAX,
};
#define PLOG_A_SEGMENT_MAX (__PLOG_A_SEGMENT_MAX - 1)

/* PLOG_A_RETIRED_STATE */
enum {
	PLOG_RETIRED_STATE_DELAYED = 0,	/* file.delete.delay.ms is not over */
	PLOG_RETIRED_STATE_HELD = 1,	/* somebody reads it */
	PLOG_RETIRED_STATE_READY = 2,	/* to be deleted */
	PLOG_RETIRED_STATE_EMPTIED = 3,	/* the same, without content */
	PLOG_RETIRED_STATE_TAKEN = 4,	/* being deleted */
};

enum {
	PLOG_A_RETIRED_TOPIC = 1,	/* string */
	PLOG_A_RETIRED_INDEX,		/* u32 */
	PLOG_A_RETIRED_BASE_OFFSET,	/* s64: that its files are named by */
	PLOG_A_RETIRED_BYTES,		/* u64: of its log */
	PLOG_A_RETIRED_PINS,		/* u32: extents that hold it */
	PLOG_A_RETIRED_STATE,		/* u32, PLOG_RETIRED_STATE_* */
	PLOG_A_RETIRED_INCARNATION,	/* u64: the daemon that takes it; absent: there is no daemon */
	PLOG_A_RETIRED_FAILED,		/* u8: 1 = could not be deleted, is tried again */
	PLOG_A_RETIRED_PAD,
	__PLOG_A_RETIRED_MAX,
};
#define PLOG_A_RETIRED_MAX (__PLOG_A_RETIRED_MAX - 1)

enum {
	PLOG_A_RELAY_PORT = 1,	/* u32: netlink port of the asker */
	PLOG_A_RELAY_COOKIE,	/* u32: chosen by the asker, comes back with the reply */
	PLOG_A_RELAY_PAYLOAD,	/* binary: JSON, opaque to the kernel, to 32 KiB */
	__PLOG_A_RELAY_MAX,
};
#define PLOG_A_RELAY_MAX (__PLOG_A_RELAY_MAX - 1)

enum {
	PLOG_A_EPOCH_LEADER_EPOCH = 1,	/* s32 */
	PLOG_A_EPOCH_START_OFFSET,	/* s64: where it begins */
	PLOG_A_EPOCH_PAD,
	__PLOG_A_EPOCH_MAX,
};
#define PLOG_A_EPOCH_MAX (__PLOG_A_EPOCH_MAX - 1)

#endif /* _UAPI_LINUX_PLOG_NETLINK_H */
