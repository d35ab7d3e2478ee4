/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * "plog.state": what the partition keeps besides its log, in one file with two
 * slots that are written in turn, each with a sequence number and a CRC32C, so
 * that a write that is cut short leaves the one before.  Little endian:
 *
 *   0 magic "plogstat" 8 | 8 version 4 | 12 flags 4 (1: clean, 2: leftovers, 4: dense,
 *   8: imported) |
 *  16 sequence 8 | 24 recovery point 8 | 32 high watermark 8 |
 *  40 log start 8 | 48 log end 8 | 56 active segment 8 | 64 its bytes 8 |
 *  72 all bytes 8 | 80 max timestamp 8 | 88 leader epoch 4 |
 *  92 where that epoch begins 8 | zeros |
 * 140 settled offset 8 | 148 first unstable offset 8 | 156 last offset with a
 *     producer id 8 | 164 last marker 8 (these three plus one, 0: none) | zeros |
 * 220 CRC32C of the leader epochs' file 4 | zeros |
 * 508 CRC32C 4 of all before it
 *
 * The second slot begins at 4096: a device that tears a sector while it writes
 * one slot must not hold the other in the same sector.
 */
#ifndef _PLOG_STATE_H
#define _PLOG_STATE_H

#include <linux/types.h>

struct plog_dir;
struct plog_file;

#define PLOG_STATE_NAME		"plog.state"
#define PLOG_STATE_SLOT_SIZE	512
#define PLOG_STATE_SLOT2	4096

/**
 * struct plog_settled - of transactions, what is on stable storage
 * @offset: what lies below belongs to no transaction that is open, or whose end
 *	    could be lost with the machine
 * @first_unstable: S64_MAX for none; exact if the log was closed cleanly
 * @last_producer, @last_marker: of batches with a producer id, and of markers
 *	among them; the last offset, -1 for none.  Those behind @offset are found
 *	again by who scans from there.
 */
struct plog_settled {
	s64 offset;
	s64 first_unstable;
	s64 last_producer;
	s64 last_marker;
};

/**
 * struct plog_saved - the content of a slot
 * @clean: the log was closed cleanly: nothing but what follows has to be read
 * @leftovers: empty files named like segments may lie in the directory
 * @imported: user space has made the slot, from what Apache Kafka had noted of its
 *	log (tools/libplog/kafkadir_import.c): nothing but its end may be cut off
 * @dense: each segment begins where the one before ends, even where offsets have
 *	   gaps; not so in logs that others made
 * @recovery_point: all below is on stable storage and was checked
 * @log_end, @active_base, @active_bytes, @bytes, @max_timestamp: if @clean
 * @epoch_start: where @leader_epoch begins, -1: it was never led here
 * @epochs_crc: of the content that the leader epochs' file was given last
 */
struct plog_saved {
	bool clean;
	bool leftovers;
	bool dense;
	bool imported;
	u64 sequence;
	s64 recovery_point;
	s64 high_watermark;
	s64 log_start;
	s64 log_end;
	s64 active_base;
	u64 active_bytes;
	u64 bytes;
	s64 max_timestamp;
	s32 leader_epoch;
	struct plog_settled settled;
	s64 epoch_start;
	u32 epochs_crc;
};

/**
 * plog_state_read() - the younger of the two slots that are whole
 *
 * Return: 0; -ENOENT if there is no file or no slot is whole; -EOPNOTSUPP for
 * a version that is not known; an error of the file.
 */
int plog_state_read(struct plog_dir *dir, struct plog_saved *saved);

/**
 * plog_state_write() - write the slot whose turn it is
 * @sync: on stable storage on return
 *
 * The sequence number of @saved goes up.  Callers serialize.
 */
int plog_state_write(struct plog_dir *dir, struct plog_saved *saved, bool sync);

#endif /* _PLOG_STATE_H */
