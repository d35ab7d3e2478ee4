// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The state file of a partition.  It is opened for each use: writes are rare,
 * and an idle partition is to hold no file.
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "compat/crc32c.h"
#include "compat/unaligned.h"
#include "file.h"
#include "state.h"

#define MAGIC		"plogstat"
#define VERSION		1
#define FLAG_CLEAN	1
#define FLAG_LEFTOVERS	2
#define FLAG_DENSE	4
#define FLAG_IMPORTED	8
#define FLAGS		(FLAG_CLEAN | FLAG_LEFTOVERS | FLAG_DENSE | FLAG_IMPORTED)
#define CRC_AT		(PLOG_STATE_SLOT_SIZE - 4)

static u32 slot_crc(const u8 *raw)
{
	return ~crc32c(~0u, raw, CRC_AT);
}

static int decode(const u8 *raw, struct plog_saved *s)
{
	s64 unstable, producer, marker;
	u32 flags;

	if (memcmp(raw, MAGIC, 8) || slot_crc(raw) != get_unaligned_le32(raw + CRC_AT))
		return -ENOENT;
	flags = get_unaligned_le32(raw + 12);
	if (get_unaligned_le32(raw + 8) != VERSION || flags & ~FLAGS)
		return -EOPNOTSUPP;
	s->clean = flags & FLAG_CLEAN;
	s->leftovers = flags & FLAG_LEFTOVERS;
	s->dense = flags & FLAG_DENSE;
	s->imported = flags & FLAG_IMPORTED;
	s->sequence = get_unaligned_le64(raw + 16);
	s->recovery_point = get_unaligned_le64(raw + 24);
	s->high_watermark = get_unaligned_le64(raw + 32);
	s->log_start = get_unaligned_le64(raw + 40);
	s->log_end = get_unaligned_le64(raw + 48);
	s->active_base = get_unaligned_le64(raw + 56);
	s->active_bytes = get_unaligned_le64(raw + 64);
	s->bytes = get_unaligned_le64(raw + 72);
	s->max_timestamp = get_unaligned_le64(raw + 80);
	s->leader_epoch = get_unaligned_le32(raw + 88);
	s->epoch_start = get_unaligned_le64(raw + 92);
	s->epochs_crc = get_unaligned_le32(raw + 220);
	s->settled.offset = get_unaligned_le64(raw + 140);
	unstable = get_unaligned_le64(raw + 148);
	producer = get_unaligned_le64(raw + 156);
	marker = get_unaligned_le64(raw + 164);
	if (s->settled.offset < 0 || unstable < 0 || producer < 0 || marker < 0)
		return -ENOENT;
	s->settled.first_unstable = unstable ? unstable - 1 : S64_MAX;
	s->settled.last_producer = producer - 1;
	s->settled.last_marker = marker - 1;
	if (s->log_start < 0 || s->recovery_point < 0 || s->high_watermark < s->log_start ||
	    s->leader_epoch < 0 || s->epoch_start < -1)
		return -ENOENT;
	return 0;
}

static void encode(const struct plog_saved *s, u8 *raw)
{
	memset(raw, 0, PLOG_STATE_SLOT_SIZE);
	memcpy(raw, MAGIC, 8);
	put_unaligned_le32(VERSION, raw + 8);
	put_unaligned_le32((s->clean ? FLAG_CLEAN : 0) |
			   (s->leftovers ? FLAG_LEFTOVERS : 0) | (s->dense ? FLAG_DENSE : 0) |
			   (s->imported ? FLAG_IMPORTED : 0),
			   raw + 12);
	put_unaligned_le64(s->sequence, raw + 16);
	put_unaligned_le64(s->recovery_point, raw + 24);
	put_unaligned_le64(s->high_watermark, raw + 32);
	put_unaligned_le64(s->log_start, raw + 40);
	put_unaligned_le64(s->log_end, raw + 48);
	put_unaligned_le64(s->active_base, raw + 56);
	put_unaligned_le64(s->active_bytes, raw + 64);
	put_unaligned_le64(s->bytes, raw + 72);
	put_unaligned_le64(s->max_timestamp, raw + 80);
	put_unaligned_le32(s->leader_epoch, raw + 88);
	put_unaligned_le64(s->settled.offset, raw + 140);
	if (s->settled.first_unstable != S64_MAX)
		put_unaligned_le64(s->settled.first_unstable + 1, raw + 148);
	put_unaligned_le64(s->settled.last_producer + 1, raw + 156);
	put_unaligned_le64(s->settled.last_marker + 1, raw + 164);
	put_unaligned_le64(s->epoch_start, raw + 92);
	put_unaligned_le32(s->epochs_crc, raw + 220);
	put_unaligned_le32(slot_crc(raw), raw + CRC_AT);
}

int plog_state_read(struct plog_dir *dir, struct plog_saved *saved)
{
	struct plog_file *file;
	struct plog_saved s;
	int err = -ENOENT, i;
	ssize_t n;
	u8 *raw;

	file = plog_file_open(dir, PLOG_STATE_NAME, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	raw = kmalloc(PLOG_STATE_SLOT_SIZE, GFP_KERNEL);
	if (!raw) {
		err = -ENOMEM;
		goto out_close;
	}
	/* a slot whose sync failed, and of which nobody was told */
	plog_file_doubt(file);
	memset(saved, 0, sizeof(*saved));
	for (i = 0; i < 2; i++) {
		int bad;

		n = plog_file_read(file, raw, PLOG_STATE_SLOT_SIZE, i ? PLOG_STATE_SLOT2 : 0);
		if (n < 0) {
			err = n;
			break;
		}
		if (n < PLOG_STATE_SLOT_SIZE)
			continue;
		bad = decode(raw, &s);
		if (bad == -EOPNOTSUPP) {
			err = bad;
			break;
		}
		if (bad || (!err && s.sequence < saved->sequence))
			continue;
		*saved = s;
		err = 0;
	}
	kfree(raw);
out_close:
	plog_file_close(file);
	return err;
}

int plog_state_write(struct plog_dir *dir, struct plog_saved *saved, bool sync)
{
	struct plog_file *file;
	u64 pos;
	int err;
	u8 *raw;

	raw = kmalloc(PLOG_STATE_SLOT_SIZE, GFP_KERNEL);
	if (!raw)
		return -ENOMEM;
	file = plog_file_open(dir, PLOG_STATE_NAME, PLOG_FILE_CREATE);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto out_free;
	}
	saved->sequence++;
	pos = saved->sequence & 1 ? PLOG_STATE_SLOT2 : 0;
	encode(saved, raw);
	err = plog_file_write(file, raw, PLOG_STATE_SLOT_SIZE, pos);
	/* both slots: the other may have been written without */
	if (!err && sync)
		err = plog_file_sync(file, 0, PLOG_STATE_SLOT2 + PLOG_STATE_SLOT_SIZE - 1);
	plog_file_close(file);
out_free:
	kfree(raw);
	return err;
}
