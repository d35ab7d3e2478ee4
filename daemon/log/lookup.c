// SPDX-License-Identifier: MIT
/* Finding a record by time, in compressed batches too. */
#include <errno.h>
#include <stdlib.h>

#include "log.h"
#include "records.h"

/* The whole batch that holds @offset, to be freed, and where the next begins. */
static ssize_t read_batch(struct log *log, int64_t offset, uint8_t **batch, int64_t *next)
{
	struct log_cursor *cursor;
	ssize_t n;
	int ret = 0;

	cursor = log_cursor_get(log, &ret);
	if (!cursor)
		return ret;
	/* one batch: it is the first, and none larger than max.message.bytes was ever taken */
	ret = log_locate(cursor, offset, 0, true, LOG_END_COMMITTED);
	/* nothing there: the batch ends behind what may be seen */
	n = ret ? ret : cursor->extent.length ? (ssize_t)cursor->extent.length : -ENODATA;
	*batch = n < 0 ? NULL : malloc(n);
	if (n >= 0 && !*batch)
		n = -ENOMEM;
	if (n >= 0) {
		n = log_cursor_read(cursor, 0, *batch, n);
		*next = cursor->extent.next_offset;
	}
	log_cursor_put(cursor);
	if (n < 0)
		free(*batch);
	return n;
}

/*
 * What a look-up has come to, with the record that it is: 1, or 0 if the batch has none.
 * @next: out: where to look on
 */
static int look_inside(struct log *log, struct log_hit *hit, int64_t timestamp, bool max,
		       const atomic_bool *stop, int64_t *next)
{
	uint8_t *batch = NULL;
	struct record rec;
	ssize_t n;
	int ret;

	n = read_batch(log, hit->offset, &batch, next);
	if (n < 0)
		return n;
	ret = records_find_time(batch, n, hit->offset, timestamp, max, stop, &rec);
	free(batch);
	if (ret > 0) {
		hit->offset = rec.offset;
		hit->timestamp = rec.timestamp;
	}
	return ret;
}

static const struct log_hit nothing = { .offset = -1, .timestamp = -1, .leader_epoch = -1 };

int log_find_time(struct log *log, int64_t timestamp, bool max, enum log_end end,
		  const atomic_bool *stop, struct log_hit *hit)
{
	struct log_hit best = nothing;
	int64_t from = 0, promised;
	int ret;

	for (;;) {
		if (stop && atomic_load(stop))
			return -ECANCELED;
		ret = log_lookup(log, from, timestamp, max, end, hit);
		if (ret)
			return ret;
		if (hit->offset >= 0 && hit->inside) {
			promised = hit->timestamp;
			ret = look_inside(log, hit, timestamp, max, stop, &from);
			if (ret == -ERANGE || ret == -ESTALE) {
				/* deleted or truncated meanwhile */
				best = nothing;
				from = 0;
				continue;
			}
			if (ret == -ENODATA) {
				*hit = nothing;
				hit->behind = max;
				break;
			}
			if (ret < 0)
				return ret;
			/*
			 * The batch's largest time may be of a record below the log start:
			 * then one behind the batch may be later than what is left of it.
			 */
			if (!ret || (max && hit->timestamp < promised)) {
				if (ret && hit->timestamp > best.timestamp)
					best = *hit;
				continue;
			}
		}
		break;
	}
	if (best.offset >= 0 && !hit->behind && best.timestamp >= hit->timestamp)
		*hit = best;
	hit->inside = false;
	return 0;
}
