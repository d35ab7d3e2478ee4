/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * plog: partition logs in the kernel - the character device.
 *
 * Two kinds of device node speak this interface:
 *
 *   /dev/plog-control           binds to a partition by PLOG_IOC_BIND, or
 *                               registers the daemon by PLOG_IOC_REGISTER
 *   /dev/plog/TOPIC/PARTITION   is bound when it is opened
 *
 * Documentation/uapi.rst describes every call with its errors.  All integers
 * are in the byte order of the machine; batches are Kafka's record batch
 * format v2, big endian.  "flags" and "reserved" fields must be zero where no
 * flag is defined; anything else is -EINVAL.
 *
 * Change log
 *   1.0  first version
 */
#ifndef _UAPI_LINUX_PLOG_H
#define _UAPI_LINUX_PLOG_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PLOG_ABI_MAJOR		1
#define PLOG_ABI_MINOR		0

/* Longest topic name (Kafka's limit), without the terminating zero. */
#define PLOG_TOPIC_MAX		249
#define PLOG_TOPIC_SIZE		256

/* Size of a v2 record batch header: from the base offset to the record count. */
#define PLOG_BATCH_HEADER_SIZE	61

/* Bounds of max.message.bytes, in bytes. */
#define PLOG_MESSAGE_BYTES_MIN	1024
#define PLOG_MESSAGE_BYTES_MAX	(64 << 20)
#define PLOG_MESSAGE_BYTES_DEFAULT 1048588

/* Largest number of records of one writev(2) in record mode. */
#define PLOG_RECORDS_MAX	65536

/* plog_info.features: what this module can do beyond ABI 1.0. None so far. */

/**
 * struct plog_info - PLOG_IOC_INFO: what the module is
 * @abi_major: PLOG_ABI_MAJOR of the module; differs only where old callers break
 * @abi_minor: PLOG_ABI_MINOR of the module; larger means more flags and calls
 * @features: mask of optional features, zero in ABI 1.0
 * @partitions_max: most partitions of one instance
 * @message_bytes_max: largest max.message.bytes that is taken, in bytes
 * @incarnation: the daemon registered now in the caller's instance, 0 if none
 * @reserved: zero
 */
struct plog_info {
	__u32 abi_major;
	__u32 abi_minor;
	__u64 features;
	__u32 partitions_max;
	__u32 message_bytes_max;
	__u64 incarnation;
	__u64 reserved[4];
};

/* plog_bind.flags and plog_mode.flags */
#define PLOG_MODE_BATCH		(1u << 0) /* whole batches, not record values */
#define PLOG_MODE_READ_COMMITTED (1u << 1) /* stop at the last stable offset */
#define PLOG_MODE_ACKS_ALL	(1u << 2) /* a write waits for the high watermark */

/**
 * struct plog_bind - PLOG_IOC_BIND: make a control descriptor one of a partition
 * @flags: PLOG_MODE_*
 * @partition: index of the partition, 0 or more
 * @topic: name, zero terminated, the rest zero
 *
 * The partition is looked up in the network namespace in which the descriptor
 * was opened.  A descriptor binds once; rebinding is -EBUSY.
 */
struct plog_bind {
	__u32 flags;
	__u32 partition;
	char topic[PLOG_TOPIC_SIZE];
};

/**
 * struct plog_register - PLOG_IOC_REGISTER: become the instance's daemon
 * @flags: zero
 * @netlink_port: the caller's generic netlink port for the relay, 0 for none
 * @incarnation: out: the new incarnation, larger than any before
 * @reserved: zero
 *
 * Needs CAP_NET_ADMIN in the initial user namespace.  The old daemon's calls
 * have drained when this returns, and later ones fail with -ESTALE.  Closing
 * the descriptor ends the registration.
 */
struct plog_register {
	__u32 flags;
	__u32 netlink_port;
	__u64 incarnation;
	__u64 reserved[2];
};

/**
 * struct plog_mode - PLOG_IOC_SET_MODE: how this descriptor reads and writes
 * @flags: PLOG_MODE_*
 * @reserved: zero
 *
 * Drops a pinned extent and moves the read position to @flags' own start: the
 * log start in record mode.
 */
struct plog_mode {
	__u32 flags;
	__u32 reserved[3];
};

/* plog_state.state */
enum {
	PLOG_PARTITION_OPENING = 0,
	PLOG_PARTITION_ONLINE = 1,
	PLOG_PARTITION_FENCED = 2,	/* readable, takes no append until reopened */
	PLOG_PARTITION_FAILED = 3,	/* could not be opened */
	PLOG_PARTITION_CLOSED = 4,	/* deleted or stopped */
};

/* plog_state.flags */
#define PLOG_STATE_REPLICATED	(1u << 0) /* the daemon moves the high watermark */
#define PLOG_STATE_LEADER	(1u << 1) /* takes appends without given offsets */
#define PLOG_STATE_COMPACT	(1u << 2) /* keyless records are refused */
#define PLOG_STATE_INTERNAL	(1u << 3) /* closed to unprivileged descriptors */
#define PLOG_STATE_LOG_APPEND_TIME (1u << 4) /* message.timestamp.type=LogAppendTime */
#define PLOG_STATE_BELOW_MIN_ISR (1u << 5) /* acks=all is refused, see PLOG_IOC_LEAD */

/**
 * struct plog_state - PLOG_IOC_STATE: one consistent look at the partition
 * @flags: PLOG_STATE_*
 * @state: PLOG_PARTITION_*
 * @log_start: first offset that can be read
 * @high_watermark: offsets below are committed
 * @last_stable: offsets below belong to no open transaction
 * @log_end: offset that the next record gets
 * @bytes: size of all segments in bytes
 * @segments: how many segments there are
 * @leader_epoch: epoch that appends are made in, -1 for none
 * @max_message_bytes: largest batch that is taken, in bytes, header included
 * @uid, @gid, @mode: owner and permissions of the partition
 * @partition: index
 * @max_timestamp: largest timestamp in the log, milliseconds since 1970, -1 if
 *                 the log is empty
 * @topic_id: the topic's id (KIP-516), zero for none
 * @topic: name, zero terminated
 * @reserved: zero
 */
struct plog_state {
	__u32 flags;
	__u32 state;
	__s64 log_start;
	__s64 high_watermark;
	__s64 last_stable;
	__s64 log_end;
	__u64 bytes;
	__u32 segments;
	__s32 leader_epoch;
	__u32 max_message_bytes;
	__u32 uid;
	__u32 gid;
	__u32 mode;
	__u32 partition;
	__u32 pad;
	__s64 max_timestamp;
	__u8 topic_id[16];
	char topic[PLOG_TOPIC_SIZE];
	__u64 reserved[4];
};

/* plog_append.flags */
#define PLOG_APPEND_DAEMON	(1u << 0) /* checked by the daemon: any codec, producer ids */
#define PLOG_APPEND_REPLICA	(1u << 1) /* offsets and epochs as given, many batches */
#define PLOG_APPEND_SYNC	(1u << 2) /* on stable storage before the call returns */
#define PLOG_APPEND_UNSTABLE	(1u << 3) /* first_unstable says what is open from here on */

/* plog_append.first_unstable, if it is no offset */
#define PLOG_UNSTABLE_NONE	(-1)	/* no transaction is open from here on */
#define PLOG_UNSTABLE_HERE	(-2)	/* base_offset, if none was open; else as it was */
#define PLOG_APPEND_ACKS_ALL	(1u << 4) /* refused below min.insync.replicas; no wait */

/**
 * struct plog_append - PLOG_IOC_APPEND: append whole batches
 * @flags: PLOG_APPEND_*
 * @length: bytes at @data; one batch, with PLOG_APPEND_REPLICA one or more
 * @data: address of the bytes
 * @incarnation: with PLOG_APPEND_DAEMON the caller's, else 0
 * @leader_epoch: with PLOG_APPEND_DAEMON the epoch decided in, else -1
 * @pad: zero
 * @base_offset: out: offset of the first record
 * @last_offset: out: offset of the last record
 * @log_append_time: out: milliseconds since 1970 where the topic's timestamp
 *                   type is LogAppendTime, else -1
 * @log_start: out: first offset that can be read
 * @first_unstable: with PLOG_APPEND_UNSTABLE, which is the daemon's: the first
 *                  offset of the oldest transaction that is open behind this
 *                  append, at most its base offset, or PLOG_UNSTABLE_*; else 0.
 *                  Published together with the log end.  A later one than
 *                  before, or none, counts for readers when the high watermark
 *                  has passed the append.  Without the flag a transactional
 *                  batch that is no marker is taken to say PLOG_UNSTABLE_HERE.
 *                  It speaks for the end of the append: of a transaction that
 *                  begins and ends within one append of several batches nothing
 *                  is seen, so a follower ends an append behind each marker.
 * @reserved: zero
 */
struct plog_append {
	__u32 flags;
	__u32 length;
	__aligned_u64 data;
	__u64 incarnation;
	__s32 leader_epoch;
	__u32 pad;
	__s64 base_offset;
	__s64 last_offset;
	__s64 log_append_time;
	__s64 log_start;
	__s64 first_unstable;
	__u64 reserved[1];
};

/* plog_locate.flags: at most one of the two isolations; none: high watermark */
#define PLOG_LOCATE_COMMITTED	(1u << 0) /* end at the last stable offset */
#define PLOG_LOCATE_LOG_END	(1u << 1) /* end at the log end: followers, daemon only */
#define PLOG_LOCATE_WHOLE	(1u << 2) /* the first batch whole even above max_bytes */

/**
 * struct plog_locate - PLOG_IOC_LOCATE: pin an extent and make it the cursor
 * @offset: in: offset wanted; the extent starts with the batch that holds it
 * @max_bytes: in: most bytes of the extent
 * @flags: in: PLOG_LOCATE_*
 * @length: out: bytes of the extent, whole batches of one segment; 0 if there
 *          is nothing to read yet or nothing that fits
 * @leader_epoch: out: epoch the partition is led in
 * @base_offset: out: base offset of the first batch, -1 if @length is 0
 * @next_offset: out: offset behind the last batch of the extent
 * @log_start, @high_watermark, @last_stable, @log_end: out, as in plog_state
 * @reserved: zero
 *
 * Drops the extent before it.  Until the next LOCATE or the close, read(2),
 * splice(2) and sendfile(2) on the descriptor take exactly these bytes, then
 * give 0.  poll(2) tells readable while bytes of the extent are left or, when
 * @length was 0, once there is an offset above @offset to read.
 *
 * -ERANGE: @offset is below the log start or above the end that the isolation
 * allows (an offset between that end and the log end is no error: length 0);
 * the out fields are filled in.
 */
struct plog_locate {
	__s64 offset;
	__u32 max_bytes;
	__u32 flags;
	__u32 length;
	__s32 leader_epoch;
	__s64 base_offset;
	__s64 next_offset;
	__s64 log_start;
	__s64 high_watermark;
	__s64 last_stable;
	__s64 log_end;
	__u64 reserved[2];
};

/* plog_lookup.flags */
#define PLOG_LOOKUP_COMMITTED	(1u << 0) /* look below the last stable offset only */
#define PLOG_LOOKUP_MAX		(1u << 1) /* the record with the largest timestamp */
#define PLOG_LOOKUP_BEHIND	(1u << 30) /* out: the latest record lies behind the end */
#define PLOG_LOOKUP_INSIDE	(1u << 31) /* out: the batch is compressed: look inside */

/**
 * struct plog_lookup - PLOG_IOC_LOOKUP: find by time
 * @timestamp: in: the first record at or after it, milliseconds since 1970;
 *             out: its timestamp, -1 if there is none
 * @flags: in: PLOG_LOOKUP_COMMITTED or PLOG_LOOKUP_MAX; out: PLOG_LOOKUP_INSIDE
 *         if the record is in the compressed batch that holds @offset, at that
 *         offset or behind, and @timestamp is the batch's largest.  If no such
 *         record is in it (it lies below the log start): ask again from behind
 *         the batch; with PLOG_LOOKUP_MAX the later of the two counts.
 *         PLOG_LOOKUP_BEHIND if with PLOG_LOOKUP_MAX nothing was found for that reason
 * @leader_epoch: out: epoch of the batch found, -1 for none
 * @offset: in: least offset, 0 for the log start; out: offset found, -1 if there
 *          is none
 * @reserved: zero
 *
 * With PLOG_LOOKUP_MAX the first record that has the largest timestamp of the
 * whole log; none, if it lies behind the end for this reader (as Kafka, KIP-734).
 */
struct plog_lookup {
	__s64 timestamp;
	__u32 flags;
	__s32 leader_epoch;
	__s64 offset;
	__u64 reserved[2];
};

/* plog_headers.flags */
#define PLOG_HEADERS_PRODUCERS	(1u << 0) /* only batches with a producer id */
#define PLOG_HEADERS_CONTROL	(1u << 1) /* only markers of transactions */
#define PLOG_HEADERS_LOG_END	(1u << 2) /* end at the log end: daemon only */

/* Most headers that one call gives, and most that it looks at. */
#define PLOG_HEADERS_MAX	1024
#define PLOG_HEADERS_LOOKED	65536

/* plog_batch_header.control */
#define PLOG_CONTROL_ABORT	0
#define PLOG_CONTROL_COMMIT	1

/**
 * struct plog_batch_header - the header of a record batch, decoded
 * @base_offset, @last_offset: of its records
 * @base_timestamp, @max_timestamp: milliseconds since 1970
 * @producer_id: -1 for none
 * @size: bytes of the whole batch
 * @leader_epoch: that it was appended in, -1 for none
 * @base_sequence: of the producer, -1 for none
 * @count: of records
 * @coordinator_epoch: of a marker: its coordinator's, else -1
 * @attributes: as in the batch: 0x07 codec, 0x08 LogAppendTime, 0x10
 *              transactional, 0x20 control
 * @producer_epoch: -1 for none
 * @control: of a control batch: the type in its record's key, PLOG_CONTROL_*,
 *           2 and above for others; -1 for no control batch or a damaged one
 * @pad: zero
 */
struct plog_batch_header {
	__s64 base_offset;
	__s64 last_offset;
	__s64 base_timestamp;
	__s64 max_timestamp;
	__s64 producer_id;
	__u32 size;
	__s32 leader_epoch;
	__s32 base_sequence;
	__s32 count;
	__s32 coordinator_epoch;
	__u16 attributes;
	__s16 producer_epoch;
	__s16 control;
	__u16 pad[3];
};

/**
 * struct plog_headers - PLOG_IOC_HEADERS: walk the headers of batches
 * @offset: in: the first header is of the batch that holds it, or of the next
 *          one; out: where to go on
 * @flags: PLOG_HEADERS_*
 * @count: in: room at @entries, 1 to PLOG_HEADERS_MAX; out: how many are there
 * @entries: address of an array of struct plog_batch_header
 * @log_start, @high_watermark, @last_stable, @log_end: out, as in plog_state
 * @reserved: zero
 *
 * Ends at the high watermark: a marker may lie behind the last stable offset
 * and yet say how a transaction below it ended.  There is more as long as
 * @offset is below that end; a call that has looked at PLOG_HEADERS_LOOKED
 * headers gives what it has found among them, which may be nothing.
 */
struct plog_headers {
	__s64 offset;
	__u32 flags;
	__u32 count;
	__aligned_u64 entries;
	__s64 log_start;
	__s64 high_watermark;
	__s64 last_stable;
	__s64 log_end;
	__u64 reserved[2];
};

/**
 * struct plog_producer - PLOG_IOC_PRODUCER: what the log knows of producers
 * @last_offset: out: last offset of the last batch that bears a producer id, -1
 *               if none does; who has read the headers up to it knows them all
 * @first_unstable: out: first offset of the oldest open transaction, -1 if
 *                  none is open; after an unclean stop, or a truncation of
 *                  markers below the high watermark, possibly one that is none
 * @log_start, @log_end: out, as in plog_state, and of the same moment
 * @reserved: zero
 */
struct plog_producer {
	__s64 last_offset;
	__s64 first_unstable;
	__s64 log_start;
	__s64 log_end;
	__u64 reserved[4];
};

/* plog_swap.flags: one of them, or none: swap */
#define PLOG_SWAP_DONE		(1u << 0) /* the files of the swap have their names */
#define PLOG_SWAP_ASK		(1u << 1) /* change nothing, just fill in */

/**
 * struct plog_swap - PLOG_IOC_SWAP: a compacted segment for a run of them
 * @generation: in: of the segments that the caller saw (PLOG_A_SEGMENT_GENERATION);
 *              out: of those now
 * @first_base, @last_base: base offsets of the first and the last segment that go;
 *                          with PLOG_SWAP_ASK @last_base comes out: of what is
 *                          pending, -1 if nothing is
 * @incarnation: the caller's
 * @leader_epoch: epoch it was decided in
 * @flags: PLOG_SWAP_*
 * @pending: out: base offset of a swap whose files have no names yet, -1: none
 * @reserved: zero
 *
 * The new segment lies in the partition's directory as BASE.log.swap,
 * BASE.index.swap and BASE.timeindex.swap, BASE being @first_base.  The
 * module checks each batch, makes both indexes anew and syncs them, then
 * replaces the run in one step.  After that the caller deletes the files of the
 * others of the run, renames the new ones to their names without ".swap", the log
 * last, and calls again with PLOG_SWAP_DONE.  Readers that have old bytes
 * pinned keep them.
 */
struct plog_swap {
	__u64 generation;
	__s64 first_base;
	__s64 last_base;
	__u64 incarnation;
	__s32 leader_epoch;
	__u32 flags;
	__s64 pending;
	__u64 reserved[2];
};

/* plog_control.command */
enum {
	PLOG_CONTROL_HIGH_WATERMARK = 1, /* offset: the new high watermark */
	PLOG_CONTROL_TRUNCATE = 2,	 /* offset: the new log end */
	PLOG_CONTROL_LOG_START = 3,	 /* offset: the new log start, persistent on return */
	PLOG_CONTROL_ROLL = 4,		 /* offset: out: where the segment that takes appends begins */
	PLOG_CONTROL_UNSTABLE = 7,	 /* offset: of the oldest open transaction, -1: none */
	PLOG_CONTROL_TRUNCATE_EPOCH = 5, /* epoch, offset: where the leader's epoch ended */
	PLOG_CONTROL_START_AT = 8,	 /* offset: drop all there is and go on there */
};

/**
 * struct plog_control - PLOG_IOC_CONTROL: the daemon moves an offset
 * @command: PLOG_CONTROL_*
 * @leader_epoch: epoch it was decided in
 * @incarnation: the caller's
 * @offset: in: the offset wanted; out: the offset now
 * @epoch: TRUNCATE_EPOCH: in: that the leader answered with, -1 with @offset -1 if
 *         it knows none; out: that it has to be asked for next, -1: the logs agree.
 *         Else zero
 * @pad: zero
 * @reserved: zero
 */
struct plog_control {
	__u32 command;
	__s32 leader_epoch;
	__u64 incarnation;
	__s64 offset;
	__s32 epoch;
	__u32 pad;
	__u64 reserved[1];
};

/* plog_lead.flags */
#define PLOG_LEAD_REPLICATED	(1u << 0) /* the daemon moves the high watermark */
#define PLOG_LEAD_LEADER	(1u << 1) /* appends get their offsets here */
#define PLOG_LEAD_BELOW_MIN_ISR	(1u << 2) /* acks=all is refused: EHOSTUNREACH */

/**
 * struct plog_lead - PLOG_IOC_LEAD: the partition's role from now on
 * @flags: PLOG_LEAD_*
 * @leader_epoch: not below the one that the partition is in
 * @incarnation: the caller's
 * @log_end: out: where the epoch begins, for a leader
 * @high_watermark: out
 * @reserved: zero
 *
 * Everything changes in one step, under the append mutex.  A leader notes (epoch,
 * log end) on stable storage, whether or not anything is written in the epoch.
 * Later changes of the configuration leave the role alone.
 */
struct plog_lead {
	__u32 flags;
	__s32 leader_epoch;
	__u64 incarnation;
	__s64 log_end;
	__s64 high_watermark;
	__u64 reserved[2];
};

/**
 * struct plog_lease - PLOG_IOC_LEASE: until when replicated partitions may be led
 * @deadline: nanoseconds of CLOCK_BOOTTIME, 0 for no limit
 * @reserved: zero
 *
 * On the descriptor that has registered the daemon, for its whole instance.  From
 * the deadline on, replicated partitions refuse all appends but a leader's
 * (PLOG_APPEND_REPLICA) with EKEYEXPIRED.  It outlives the daemon.
 */
struct plog_lease {
	__s64 deadline;
	__u64 reserved[3];
};

/* plog_epoch.flags */
#define PLOG_EPOCH_AT		(1u << 0) /* which epoch is the record at @offset of? */

/**
 * struct plog_epoch - PLOG_IOC_EPOCH: where a leader epoch ended (KIP-101)
 * @flags: PLOG_EPOCH_AT or 0
 * @epoch: in: asked for; out: the largest that is not above it; if all that is
 *         known is later, as it was; -1 if it is negative or later than all
 * @offset: out: where the next epoch begins, the log end for the last one, or -1;
 *          with PLOG_EPOCH_AT: in
 * @leader_epoch: out: that the partition is in
 * @pad: zero
 * @reserved: zero
 *
 * With PLOG_EPOCH_AT @epoch is only an answer, -1 if it is not known.
 */
struct plog_epoch {
	__u32 flags;
	__s32 epoch;
	__s64 offset;
	__s32 leader_epoch;
	__u32 pad;
	__u64 reserved[2];
};

#define PLOG_IOC_MAGIC		0xB9
#define PLOG_IOC_INFO		_IOWR(PLOG_IOC_MAGIC, 0x00, struct plog_info)
#define PLOG_IOC_BIND		_IOWR(PLOG_IOC_MAGIC, 0x01, struct plog_bind)
#define PLOG_IOC_REGISTER	_IOWR(PLOG_IOC_MAGIC, 0x02, struct plog_register)
#define PLOG_IOC_SET_MODE	_IOWR(PLOG_IOC_MAGIC, 0x10, struct plog_mode)
#define PLOG_IOC_STATE		_IOWR(PLOG_IOC_MAGIC, 0x11, struct plog_state)
#define PLOG_IOC_APPEND		_IOWR(PLOG_IOC_MAGIC, 0x12, struct plog_append)
#define PLOG_IOC_LOCATE		_IOWR(PLOG_IOC_MAGIC, 0x13, struct plog_locate)
#define PLOG_IOC_LOOKUP		_IOWR(PLOG_IOC_MAGIC, 0x14, struct plog_lookup)
#define PLOG_IOC_CONTROL	_IOWR(PLOG_IOC_MAGIC, 0x15, struct plog_control)
#define PLOG_IOC_HEADERS	_IOWR(PLOG_IOC_MAGIC, 0x19, struct plog_headers)
#define PLOG_IOC_PRODUCER	_IOWR(PLOG_IOC_MAGIC, 0x1a, struct plog_producer)
#define PLOG_IOC_EPOCH		_IOWR(PLOG_IOC_MAGIC, 0x16, struct plog_epoch)
#define PLOG_IOC_LEAD		_IOWR(PLOG_IOC_MAGIC, 0x17, struct plog_lead)
#define PLOG_IOC_LEASE		_IOWR(PLOG_IOC_MAGIC, 0x18, struct plog_lease)
#define PLOG_IOC_SWAP		_IOWR(PLOG_IOC_MAGIC, 0x1b, struct plog_swap)

#define PLOG_ABI_ASSERT(type, size) \
	_Static_assert(sizeof(type) == (size), #type " changed size")

#ifndef __cplusplus
PLOG_ABI_ASSERT(struct plog_info, 64);
PLOG_ABI_ASSERT(struct plog_bind, 264);
PLOG_ABI_ASSERT(struct plog_register, 32);
PLOG_ABI_ASSERT(struct plog_mode, 16);
PLOG_ABI_ASSERT(struct plog_state, 392);
PLOG_ABI_ASSERT(struct plog_append, 80);
PLOG_ABI_ASSERT(struct plog_locate, 88);
PLOG_ABI_ASSERT(struct plog_lookup, 40);
PLOG_ABI_ASSERT(struct plog_control, 40);
PLOG_ABI_ASSERT(struct plog_batch_header, 72);
PLOG_ABI_ASSERT(struct plog_headers, 72);
PLOG_ABI_ASSERT(struct plog_producer, 64);
PLOG_ABI_ASSERT(struct plog_lead, 48);
PLOG_ABI_ASSERT(struct plog_lease, 32);
PLOG_ABI_ASSERT(struct plog_epoch, 40);
PLOG_ABI_ASSERT(struct plog_swap, 64);
#endif

#endif /* _UAPI_LINUX_PLOG_H */
