/* SPDX-License-Identifier: MIT */
/*
 * libplog: records with keys, headers and timestamps through plog's device.
 *
 * The device alone takes and gives values; this library builds the record
 * batches that carry the rest, and opens those that others have built, with any
 * of Kafka's codecs.  Link with: -lplog -lz -lzstd -llz4
 *
 *	struct plog *log;
 *	struct plog_record r = { .value = "hello", .value_length = 5,
 *				 .key_length = -1, .timestamp = PLOG_TIME_NOW };
 *
 *	plog_open("orders", 0, PLOG_OPEN_WRITE, &log);
 *	plog_put(log, &r, 0, NULL);
 *	plog_close(log);
 *
 *	plog_open("orders", 0, PLOG_OPEN_READ, &log);
 *	plog_seek(log, PLOG_OFFSET_BEGIN);
 *	while (plog_next(log, &r, -1) > 0)
 *		fwrite(r.value, 1, r.value_length, stdout);
 *
 * What returns int gives 0 (or a count that is described) or a negative errno.
 * A struct plog, and what else is made here, is used by one thread at a time;
 * different ones are independent.
 */
#ifndef PLOG_LIB_H
#define PLOG_LIB_H

#include <linux/plog.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLOG_TIME_NOW	(-1)	/* plog_record.timestamp: when it is packed */

/* Largest record that is read, once expanded; larger ones are -EMSGSIZE. */
#define PLOG_RECORD_BYTES_MAX	(256u << 20)

/**
 * struct plog_header - one header of a record
 * @key, @key_length: UTF-8, not NULL
 * @value, @value_length: bytes; a length of -1 is a null value
 */
struct plog_header {
	const char *key;
	uint32_t key_length;
	int32_t value_length;
	const void *value;
};

/**
 * struct plog_record - one record
 * @offset: when read, where it stands; not looked at when written
 * @timestamp: milliseconds since 1970, or when written PLOG_TIME_NOW
 * @key, @key_length: bytes; a length of -1 is a null key
 * @value, @value_length: bytes; a length of -1 is a null value (a tombstone in
 *	a compacted topic)
 * @headers, @header_count: in their order
 * @leader_epoch: when read, of the append; -1 for none
 * @codec: when read, how its batch was compressed: 0 none, 1 gzip, 2 snappy,
 *	3 lz4, 4 zstd
 * @log_append_time: when read, @timestamp is the append's, not the producer's
 */
struct plog_record {
	int64_t offset;
	int64_t timestamp;
	const void *key;
	const void *value;
	int32_t key_length;
	int32_t value_length;
	const struct plog_header *headers;
	uint32_t header_count;
	int32_t leader_epoch;
	uint8_t codec;
	uint8_t log_append_time;
	uint8_t reserved[6];
};

/* ---- a partition ---- */

struct plog;

#define PLOG_OPEN_READ		(1u << 0)
#define PLOG_OPEN_WRITE		(1u << 1)
#define PLOG_OPEN_COMMITTED	(1u << 2) /* read below the last stable offset only */
#define PLOG_OPEN_ACKS_ALL	(1u << 3) /* a write waits for all in-sync replicas */

/**
 * plog_open() - open a partition of the caller's network namespace
 * @flags: PLOG_OPEN_READ, PLOG_OPEN_WRITE or both, and others
 *
 * Return: 0; -ENOENT (the module is not loaded); -ENODEV (there is no such
 * partition in service); -EACCES (owner and mode of the partition); -EINVAL;
 * -ENOMEM; -EMFILE...
 */
int plog_open(const char *topic, uint32_t partition, unsigned int flags, struct plog **out);

/**
 * plog_open_path() - open a device node, "/dev/plog/TOPIC/PARTITION"
 *
 * Return: as open(2) and plog_open(); -ENOTTY if it is no node of plog's.
 */
int plog_open_path(const char *path, unsigned int flags, struct plog **out);

/* Close it. NULL is allowed. */
void plog_close(struct plog *log);

/* Its descriptor: for poll(2), sendfile(2), fsync(2). Stays @log's. */
int plog_fd(const struct plog *log);

/* State, offsets and owner. 0, -ENODEV. */
int plog_stat(struct plog *log, struct plog_state *state);

/* ---- reading ---- */

/* Instead of an offset, Kafka's names for three that move. */
#define PLOG_OFFSET_END		(-1)
#define PLOG_OFFSET_BEGIN	(-2)
#define PLOG_OFFSET_MAX_TIME	(-3) /* of the first record with the largest timestamp */

/**
 * plog_seek() - say which record plog_next() gives next
 * @offset: 0 or more, or PLOG_OFFSET_*
 *
 * Return: 0; -EINVAL; for PLOG_OFFSET_* also -ENODEV, -EAGAIN (opening), and
 * -ENODATA (PLOG_OFFSET_MAX_TIME of an empty log, or of one whose latest record
 * lies behind the end for this reader) and what plog_seek_time() may.  Whether there is anything at
 * an offset tells the next plog_next().
 */
int plog_seek(struct plog *log, int64_t offset);

/**
 * plog_seek_time() - go to the first record that is not older
 * @timestamp: milliseconds since 1970
 *
 * Looks inside compressed batches.  Return: 0; -ENODATA if there is none, then
 * nothing has moved; or as plog_next().
 */
int plog_seek_time(struct plog *log, int64_t timestamp);

/* The offset that plog_next() looks for next. */
int64_t plog_position(const struct plog *log);

/**
 * plog_next() - the next record
 * @record: filled in; what it points to stays valid until the next call with @log
 * @timeout_ms: how long to wait for one to come; 0: not at all, -1: for ever
 *
 * Starts at the log start if plog_seek() was not called.  Skips the control
 * records of transactions.  With PLOG_OPEN_COMMITTED it ends at the last stable
 * offset and skips what aborted transactions have left, too.
 *
 * Return: 1 and a record; 0 if none came in time;
 *  -ERANGE	the position is below the log start (records were deleted) or
 *		above the log end (records were truncated); plog_seek() anew
 *  -EBADMSG	the batch at the position is damaged, or of a format before
 *		Kafka 0.11; plog_skip() passes it
 *  -EMSGSIZE	the record is larger than PLOG_RECORD_BYTES_MAX; the same
 *  -EINTR	a signal while waiting
 *  -ENODEV	the partition was closed
 *  -EBADF	@log was not opened with PLOG_OPEN_READ
 *  -EIO, -ENOMEM
 */
int plog_next(struct plog *log, struct plog_record *record, int timeout_ms);

/* Move behind the batch in which plog_next() has failed. 0, -ENODATA if none is known. */
int plog_skip(struct plog *log);

/**
 * plog_locate() - pin an extent as the descriptor's cursor
 * @max_bytes: at most so much, but always one whole batch
 * @out: length, offsets: see PLOG_IOC_LOCATE
 *
 * read(2), splice(2) and sendfile(2) on plog_fd() then take exactly its bytes.
 * The next plog_next() drops it.  Return: 0 with a length of 0 if there is nothing
 * to read yet; -ERANGE; -EAGAIN; -ENODEV; -EIO.
 */
int plog_locate(struct plog *log, int64_t offset, uint32_t max_bytes, struct plog_locate *out);

/**
 * plog_send() - send the rest of the cursor's extent without copying it
 * @socket: a descriptor that sendfile(2) can write to
 *
 * Return: bytes sent, less than the rest only if @socket does not block and is
 * full (call again); -ESTALE (truncated meanwhile: plog_locate() anew, and what
 * was sent of it is void); -EPIPE, -ECONNRESET...
 */
ssize_t plog_send(struct plog *log, int socket);

/* ---- batches in memory ---- */

struct plog_walk;

/**
 * plog_walk_new() - look at record batches, as the cursor or a segment gives them
 * @bytes, @length: stay the caller's, unchanged, until plog_walk_free()
 *
 * Return: 0, -ENOMEM.
 */
int plog_walk_new(const void *bytes, size_t length, struct plog_walk **out);
void plog_walk_free(struct plog_walk *walk);
/* The same for other bytes, keeping what was allocated. */
void plog_walk_set(struct plog_walk *walk, const void *bytes, size_t length);
/* Leave out records below @offset. */
void plog_walk_from(struct plog_walk *walk, int64_t offset);
/**
 * plog_walk_filter() - leave out batches of transactions that @aborted says 1 of
 * @aborted: called once for each; 0 to keep it, or a negative errno that
 *	plog_walk_next() then returns.  NULL: keep all
 * @arg: for it, with the batch's producer id and base offset
 */
void plog_walk_filter(struct plog_walk *walk,
		      int (*aborted)(void *arg, int64_t producer, int64_t offset), void *arg);

/**
 * plog_walk_next() - the next record
 * @record: what it points to stays valid until the next call with @walk
 *
 * Checks each batch's CRC and all lengths; the bytes may come from anywhere.
 * Return: 1; 0 at the end, see plog_walk_rest(); -EBADMSG, -EMSGSIZE, -ENOMEM,
 * -EBUSY (zstd with windows above 8 MiB: as many as may are open); after an
 * error the same batch fails again until plog_walk_skip().
 */
int plog_walk_next(struct plog_walk *walk, struct plog_record *record);
/* Go to the batch behind this one. 0; -ENODATA at the end. */
int plog_walk_skip(struct plog_walk *walk);
/* Bytes at the end that are not a whole batch (or not looked at yet). */
size_t plog_walk_rest(const struct plog_walk *walk);
/* The offset behind the last batch that was begun, -1 if none was. */
int64_t plog_walk_next_offset(const struct plog_walk *walk);

/* ---- writing ---- */

struct plog_pack;

/**
 * plog_pack_new() - an empty batch
 * @limit: most bytes of it, 0 for Kafka's default of max.message.bytes
 *
 * Return: 0, -ENOMEM, -EINVAL (above PLOG_MESSAGE_BYTES_MAX).
 */
int plog_pack_new(size_t limit, struct plog_pack **out);
void plog_pack_free(struct plog_pack *pack);
/* Empty it, keeping its memory. */
void plog_pack_clear(struct plog_pack *pack);

/**
 * plog_pack_add() - add a record
 *
 * Return: 0; -EMSGSIZE (it does not fit any more: append the pack, clear it, and
 * add the record again); -EINVAL (a length below -1, a header without a key);
 * -ENOMEM.  On an error the pack is as before.
 */
int plog_pack_add(struct plog_pack *pack, const struct plog_record *record);
uint32_t plog_pack_count(const struct plog_pack *pack);

/**
 * plog_pack_finish() - its bytes as a record batch, with header and CRC
 * @bytes: out: stay @pack's, valid until it is changed
 *
 * Return: how many; 0 if it is empty.
 */
size_t plog_pack_finish(struct plog_pack *pack, const void **bytes);

/* plog_append() and plog_put() flags */
#define PLOG_SYNC	(1u << 0) /* on stable storage before the call returns */

/**
 * plog_append() - append a pack: all of its records, or none
 * @offset: out, may be NULL: of the first record
 *
 * Return: 0;
 *  -EINVAL	it is empty
 *  -EMSGSIZE	larger than the topic's max.message.bytes
 *  -EPERM	a record without a key in a compacted topic; an internal topic
 *  -EROFS	the partition is fenced after a failed write, or led elsewhere
 *  -EBADF	not opened with PLOG_OPEN_WRITE
 *  -ENODEV	closed; -EAGAIN still opening; -EINTR; -ENOSPC, -EIO...
 */
int plog_append(struct plog *log, struct plog_pack *pack, unsigned int flags, int64_t *offset);

/* One record as a batch of its own. As plog_pack_add() and plog_append(). */
int plog_put(struct plog *log, const struct plog_record *record, unsigned int flags,
	     int64_t *offset);

/**
 * plog_partition_for_key() - which partition Kafka's default partitioner takes
 * @partitions: how many the topic has, not 0
 */
uint32_t plog_partition_for_key(const void *key, size_t length, uint32_t partitions);

#ifdef __cplusplus
}
#endif

#endif /* PLOG_LIB_H */
