// SPDX-License-Identifier: GPL-2.0
/* Since 6.3: iov_iter_extract_pages() pins; iov_iter_get_pages2() only refers. */
#include <linux/uio.h>

ssize_t probe(struct iov_iter *i, struct page ***pages);
ssize_t probe(struct iov_iter *i, struct page ***pages)
{
	size_t start;

	return iov_iter_extract_pages(i, pages, 1, 1, 0, &start);
}
