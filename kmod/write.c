// SPDX-License-Identifier: GPL-2.0
/*
 * From the caller's bytes to an append.
 *
 * No page fault of a caller may happen under a partition's append mutex: its
 * memory can be a userfaultfd's or a FUSE file's, and never arrive.  So the
 * bytes are copied before, or their pages are pinned before:
 *
 *   record mode			copied into a batch that is built here
 *   up to PLOG_COPY_MAX		copied, and checked in the copy
 *   larger				pinned; the engine checks the CRC, and the
 *					records if they are not the daemon's, in
 *					the page cache, where the caller can
 *					change nothing
 *
 * All of them are bounded by the partition's max.message.bytes and the instance's
 * limit of bytes an append.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/plog.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uio.h>

#include "batch.h"
#include "cdev.h"
#include "compat.h"
#include "net.h"
#include "part.h"
#include "record.h"

/*
 * Instructions of an append from the daemon, counted in a guest on 6.1 and ext4:
 *
 *	bytes	copied	pinned
 *	 4096	 13400	 15300
 *	16384	 39300	 42400
 *	65536	150800	155500
 *
 * Up to here a copy costs no more than pinning, is checked before the mutex is
 * taken, and never reaches the file if it is refused.
 */
#define PLOG_COPY_MAX	(64 << 10)

/*
 * Above this a buffer comes from the page allocator, which costs 3000 of these:
 * so a descriptor keeps one of PLOG_COPY_MAX for its next append.
 */
#define PLOG_SLAB_MAX	(8 << 10)

/*
 * A line that echo writes needs no allocation, which costs 400 instructions with
 * its release and the check of the copy that goes there.
 */
#define PLOG_STACK_MAX	256

/*
 * struct plog_bytes - a caller's batch where the engine can take it
 * @small: for up to PLOG_STACK_MAX bytes
 * @buf: a copy, or
 * @pages, @vec, @count: pinned pages
 * @iter: over either
 * @keep: @buf is one of PLOG_COPY_MAX
 */
struct plog_bytes {
	u8 *buf;
	bool keep;
	struct page **pages;
	struct bio_vec *vec;
	unsigned int count;
	struct iov_iter iter;
	struct kvec kvec;
	u8 small[PLOG_STACK_MAX];
};

static void bytes_init(struct plog_bytes *bytes)
{
	bytes->buf = NULL;
	bytes->keep = false;
	bytes->pages = NULL;
	bytes->vec = NULL;
	bytes->count = 0;
}

static int bytes_alloc(struct plog_bytes *bytes, struct plog_desc *desc, size_t size)
{
	if (size <= PLOG_STACK_MAX) {
		bytes->buf = bytes->small;
		return 0;
	}
	bytes->keep = size > PLOG_SLAB_MAX && size <= PLOG_COPY_MAX;
	if (bytes->keep)
		bytes->buf = xchg(&desc->spare, NULL);
	if (!bytes->buf)
		bytes->buf = kvmalloc(bytes->keep ? PLOG_COPY_MAX : size, GFP_KERNEL_ACCOUNT);
	return bytes->buf ? 0 : -ENOMEM;
}

static void bytes_release(struct plog_bytes *bytes, struct plog_desc *desc)
{
	unsigned int i;

	if (bytes->buf == bytes->small)
		return;
	for (i = 0; i < bytes->count; i++)
		plog_compat_unpin_page(bytes->vec[i].bv_page);
	kvfree(bytes->pages);
	kvfree(bytes->vec);
	if (bytes->keep)
		bytes->buf = xchg(&desc->spare, bytes->buf);
	kvfree(bytes->buf);
}

static void bytes_kvec(struct plog_bytes *bytes, size_t size)
{
	bytes->kvec.iov_base = bytes->buf;
	bytes->kvec.iov_len = size;
	iov_iter_kvec(&bytes->iter, ITER_SOURCE, &bytes->kvec, 1, size);
}

static int bytes_copy(struct plog_bytes *bytes, struct plog_desc *desc, struct iov_iter *from)
{
	size_t size = iov_iter_count(from);
	int err;

	err = bytes_alloc(bytes, desc, size);
	if (err)
		return err;
	if (!copy_from_iter_full(bytes->buf, size, from))
		return -EFAULT;
	bytes_kvec(bytes, size);
	return 0;
}

/* Pin user memory, segment by segment: one bio_vec a page. */
static int bytes_pin(struct plog_bytes *bytes, struct iov_iter *from)
{
	/* Each segment of a writev can begin and end inside a page. */
	unsigned int max = DIV_ROUND_UP(iov_iter_count(from), PAGE_SIZE) + 2 * from->nr_segs + 2;
	size_t size = iov_iter_count(from), left = size;

	bytes->pages = kvmalloc_array(max, sizeof(*bytes->pages), GFP_KERNEL_ACCOUNT);
	bytes->vec = kvmalloc_array(max, sizeof(*bytes->vec), GFP_KERNEL_ACCOUNT);
	if (!bytes->pages || !bytes->vec)
		return -ENOMEM;

	while (left) {
		size_t start, part;
		unsigned int i;
		ssize_t n;

		if (WARN_ON_ONCE(bytes->count >= max))
			return -EINVAL;
		if (fatal_signal_pending(current))
			return -EINTR;
		n = plog_compat_pin_pages(from, bytes->pages, left, max - bytes->count, &start);
		if (n <= 0)
			return n == -ERESTARTSYS ? -EINTR : n ? n : -EFAULT;
		left -= n;
		for (i = 0; n; i++) {
			part = min_t(size_t, n, PAGE_SIZE - start);
			bytes->vec[bytes->count++] = (struct bio_vec){
				.bv_page = bytes->pages[i],
				.bv_offset = start,
				.bv_len = part,
			};
			start = 0;
			n -= part;
		}
	}
	iov_iter_bvec(&bytes->iter, ITER_SOURCE, bytes->vec, bytes->count, size);
	return 0;
}

/*
 * Take a batch from @from into @bytes and @args.  The daemon vouches for what is
 * inside; with PLOG_APPEND_REPLICA it may be several batches, which go to the
 * engine as they are.  A copy is checked there before the mutex is taken.
 */
static int bytes_take(struct plog_bytes *bytes, struct plog_desc *desc, struct iov_iter *from,
		      struct plog_append_args *args)
{
	size_t size = iov_iter_count(from);
	int err;

	args->from = &bytes->iter;
	if (size > PLOG_COPY_MAX)
		return bytes_pin(bytes, from);
	err = bytes_copy(bytes, desc, from);
	if (!err && !(args->flags & PLOG_APPEND_REPLICA)) {
		args->raw = bytes->buf;
		args->size = size;
	}
	return err;
}

/*
 * acks=all.  A caller that does not want to wait is refused before anything is
 * appended, unless there is nothing to wait for: what it appended it could not
 * ask about again.
 */
static int append(struct plog_desc *desc, struct plog_part *part, struct plog_append_args *args,
		  bool nonblock)
{
	struct plog_view view;
	int err;

	if (!(READ_ONCE(desc->mode) & PLOG_MODE_ACKS_ALL))
		return plog_partition_append(part->log, args);

	plog_partition_view(part->log, &view);
	if (nonblock && view.flags & PLOG_STATE_REPLICATED)
		return -EAGAIN;
	/* Before the append: one that may not wait must not have been made. */
	err = plog_part_wait_begin(part);
	if (err)
		return err;
	args->flags |= PLOG_APPEND_ACKS_ALL;
	err = plog_partition_append(part->log, args);
	if (!err)
		err = plog_partition_wait_acks(part->log, args);
	plog_part_wait_end(part);
	return err;
}

/* ---- record mode ---- */

/*
 * Add up what the records of @from take: each segment is one.  An empty one is
 * refused, since a reader could not tell its record from the end of the file.
 */
static int measure_records(const struct iov_iter *from, u32 max, u32 *total)
{
	struct iov_iter it = *from;
	u32 count = 0;
	u64 sum = PLOG_BATCH_HEADER;

	while (iov_iter_count(&it)) {
		size_t len = iov_iter_single_seg_count(&it);

		if (!len || count >= PLOG_RECORDS_MAX)
			return -EINVAL;
		if (len > max)
			return -EMSGSIZE;
		sum += plog_record_frame_size(count++, len);
		if (sum > max)
			return -EMSGSIZE;
		iov_iter_advance(&it, len);
	}
	/* An advance steps over empty segments; so count them here. */
	if (!count || (iter_is_iovec(from) && count != from->nr_segs))
		return -EINVAL;
	*total = sum;
	return 0;
}

static int build_records(struct plog_bytes *bytes, struct plog_desc *desc,
			 struct iov_iter *from, u32 total, struct plog_append_args *args)
{
	struct plog_builder builder;
	int err;

	err = bytes_alloc(bytes, desc, total);
	if (err)
		return err;
	plog_builder_init(&builder, bytes->buf, total,
			  ktime_to_ms(ktime_get_real()));
	while (iov_iter_count(from)) {
		size_t len = iov_iter_single_seg_count(from);
		u8 *value = plog_builder_value(&builder, len);

		if (WARN_ON_ONCE(!value))
			return -EMSGSIZE;
		if (!copy_from_iter_full(value, len, from))
			return -EFAULT;
	}
	args->raw = bytes->buf;
	args->size = plog_builder_finish(&builder);
	args->checked = true;
	args->keyless = true;
	return 0;
}

static int take_records(struct plog_bytes *bytes, struct plog_desc *desc, struct iov_iter *from,
			u32 max, struct plog_append_args *args)
{
	u32 total;
	int err;

	/* A pipe has no records, only bytes. */
	if (!user_backed_iter(from))
		return -EINVAL;
	err = measure_records(from, max, &total);
	if (err)
		return err;
	return build_records(bytes, desc, from, total, args);
}

/* ---- write(2), writev(2), splice(2) ---- */

ssize_t plog_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct plog_desc *desc = iocb->ki_filp->private_data;
	struct plog_part *part = plog_desc_part(desc);
	struct plog_append_args args = { .leader_epoch = -1 };
	size_t count = iov_iter_count(from);
	struct plog_bytes bytes;
	u32 max;
	int err;

	if (!part)
		return -ENOTCONN;
	if (!count)
		return -EINVAL;
	bytes_init(&bytes);
	if (iocb->ki_flags & IOCB_DSYNC)
		args.flags |= PLOG_APPEND_SYNC;
	max = min(plog_part_message_max(part), READ_ONCE(desc->instance->limits.append_bytes));
	if (READ_ONCE(desc->mode) & PLOG_MODE_BATCH) {
		if (count < PLOG_BATCH_HEADER)
			return -EINVAL;
		if (count > max)
			return -EMSGSIZE;
		err = bytes_take(&bytes, desc, from, &args);
	} else {
		err = take_records(&bytes, desc, from, max, &args);
	}
	if (!err)
		err = append(desc, part, &args, iocb->ki_filp->f_flags & O_NONBLOCK ||
			     iocb->ki_flags & IOCB_NOWAIT);
	bytes_release(&bytes, desc);
	return err ? err : count;
}

/* ---- PLOG_IOC_APPEND ---- */

int plog_write_append(struct plog_desc *desc, struct file *file, struct plog_append *arg)
{
	bool daemon = arg->flags & PLOG_APPEND_DAEMON;
	struct plog_part *part = plog_desc_part(desc);
	struct plog_instance *inst = desc->instance;
	struct plog_append_args args = {
		.flags = arg->flags | (file->f_flags & O_DSYNC ? PLOG_APPEND_SYNC : 0),
		.leader_epoch = daemon ? arg->leader_epoch : -1,
		.incarnation = arg->incarnation,
		.current_incarnation = daemon ? &inst->incarnation : NULL,
		.first_unstable = arg->first_unstable,
	};
	struct plog_bytes bytes;
	struct iov_iter from;
	struct iovec iov;
	u32 max;
	int err;

	if (daemon ? !desc->privileged :
	    arg->flags & (PLOG_APPEND_REPLICA | PLOG_APPEND_UNSTABLE))
		return -EPERM;
	if (!daemon && (arg->incarnation || arg->leader_epoch != -1))
		return -EINVAL;
	if (arg->length < PLOG_BATCH_HEADER)
		return -EINVAL;
	/* Several batches, each of which the engine measures. */
	max = arg->flags & PLOG_APPEND_REPLICA ? PLOG_MESSAGE_BYTES_MAX :
	      plog_part_message_max(part);
	if (arg->length > min(max, READ_ONCE(inst->limits.append_bytes)))
		return -EMSGSIZE;

	iov.iov_base = u64_to_user_ptr(arg->data);
	iov.iov_len = arg->length;
	if (!access_ok(iov.iov_base, iov.iov_len))
		return -EFAULT;
	iov_iter_init(&from, ITER_SOURCE, &iov, 1, iov.iov_len);
	bytes_init(&bytes);
	err = bytes_take(&bytes, desc, &from, &args);
	if (err)
		goto out;

	if (daemon) {
		/* From here on a new daemon waits for us; there is no fault left to wait in. */
		err = plog_instance_call(inst, arg->incarnation);
		if (err)
			goto out;
		err = plog_partition_append(part->log, &args);
		plog_instance_call_end(inst);
	} else {
		err = append(desc, part, &args, file->f_flags & O_NONBLOCK);
	}
	if (err)
		goto out;
	arg->base_offset = args.base_offset;
	arg->last_offset = args.last_offset;
	arg->log_append_time = args.log_append_time;
	arg->log_start = args.log_start;
out:
	bytes_release(&bytes, desc);
	return err;
}
