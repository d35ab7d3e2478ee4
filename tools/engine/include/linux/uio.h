/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The iov_iter of the kernel, for arrays of struct kvec alone. */
#ifndef _ENGINE_LINUX_UIO_H
#define _ENGINE_LINUX_UIO_H

#include <sys/uio.h>

#include <linux/types.h>

struct kvec {
	void *iov_base;
	size_t iov_len;
};

struct iov_iter {
	const struct kvec *kvec;
	unsigned long nr_segs;
	size_t iov_offset;	/* in kvec[0] */
	size_t count;
};

#define ITER_SOURCE	1
#define ITER_DEST	0

static inline size_t iov_iter_count(const struct iov_iter *i)
{
	return i->count;
}

static inline void iov_iter_truncate(struct iov_iter *i, u64 count)
{
	if (i->count > count)
		i->count = count;
}

static inline void iov_iter_reexpand(struct iov_iter *i, size_t count)
{
	i->count = count;
}

void iov_iter_kvec(struct iov_iter *i, unsigned int direction, const struct kvec *kvec,
		   unsigned long nr_segs, size_t count);
void iov_iter_advance(struct iov_iter *i, size_t bytes);
size_t copy_from_iter(void *addr, size_t bytes, struct iov_iter *i);
size_t copy_to_iter(const void *addr, size_t bytes, struct iov_iter *i);

static inline bool copy_from_iter_full(void *addr, size_t bytes, struct iov_iter *i)
{
	struct iov_iter before = *i;

	if (copy_from_iter(addr, bytes, i) == bytes)
		return true;
	*i = before;
	return false;
}

#endif
