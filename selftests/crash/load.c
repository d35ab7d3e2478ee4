// SPDX-License-Identifier: MIT
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../kernel/batch.h"
#include "content.h"
#include "verify.h"

static char text[500];

static const char *wrong(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return text;
}

/* ---- partitions ---- */

const char *load_open(struct load *load, struct instance *in, int n)
{
	struct load_part *part;
	struct plog_state state;
	int i, ret;

	memset(load, 0, sizeof(*load));
	pthread_mutex_init(&load->lock, NULL);
	crc32c_bytes("", 1);	/* its tables, before there are threads */
	load->in = in;
	load->n = n;
	load->control = control_open(0);
	ret = load->control < 0 ? load->control
				: control_register(load->control, 0, &load->incarnation);
	if (ret)
		return wrong("cannot register: %s", strerror(-ret));
	for (i = 0; i < n; i++) {
		struct nl_partition p = {
			.topic = LOAD_TOPIC,
			.index = (uint32_t)i,
			.segment_bytes = LOAD_SEGMENT,
			.index_interval_bytes = LOAD_INTERVAL,
		};

		part = &load->part[i];
		part->load = load;
		part->nr = (uint32_t)i;
		part->fd = part->sync_fd = -1;
		part->replica = i >= n - n / 4;
		if (part->replica)
			p.flags = PLOG_STATE_REPLICATED;
		ret = instance_partition(in, &p);
		if (ret)
			return wrong("partition %d does not open: %s %s", i, strerror(-ret),
				     in->nl.error_text);
		part->fd = partition_bind(LOAD_TOPIC, part->nr, PLOG_MODE_BATCH);
		part->sync_fd = partition_bind_flags(LOAD_TOPIC, part->nr, PLOG_MODE_BATCH, O_DSYNC);
		if (part->fd < 0 || part->sync_fd < 0)
			return wrong("partition %d: no descriptor", i);
		ret = partition_state(part->fd, &state);
		if (ret)
			return wrong("partition %d: no state: %s", i, strerror(-ret));
		part->epoch = state.leader_epoch;
	}
	return NULL;
}

void load_close(struct load *load)
{
	int i;

	for (i = 0; i < load->n; i++) {
		close(load->part[i].fd);
		close(load->part[i].sync_fd);
		free(load->part[i].spans);
		load->part[i].spans = NULL;
	}
	close(load->control);
	load->n = 0;
}

/* ---- writing ---- */

static uint64_t draw(struct load_part *part, uint64_t below)
{
	part->random = content_hash(part->random, part->nr, 1);
	return (part->random >> 11) % below;
}

static bool failed(struct load_part *part, const char *what, int error)
{
	struct load *load = part->load;

	pthread_mutex_lock(&load->lock);
	if (!load->error[0])
		snprintf(load->error, sizeof(load->error), "partition %u at offset %lld: %s: %s",
			 part->nr, (long long)part->next, what, strerror(error));
	load->stop = true;
	pthread_mutex_unlock(&load->lock);
	return false;
}

static void remember(struct load_part *part, int64_t base, int count)
{
	if (part->count == part->room) {
		part->room = part->room ? 2 * part->room : 256;
		part->spans = realloc(part->spans, (size_t)part->room * sizeof(part->spans[0]));
		if (!part->spans)
			abort();
	}
	part->spans[part->count++] = (struct load_span){ base, base + count };
}

static void acknowledge(struct load_part *part)
{
	struct load *load = part->load;

	pthread_mutex_lock(&load->lock);
	if (!part->bare)
		part->promise.acked = part->next;
	load->syncs++;
	if (load->acked && !load->stop)
		load->acked(load, part);
	pthread_mutex_unlock(&load->lock);
}

/* Enter a leader epoch. A leader's is on stable storage before this returns. */
static bool lead(struct load_part *part, uint32_t epoch)
{
	struct plog_lead arg = {
		.flags = part->replica ? PLOG_LEAD_REPLICATED : 0,
		.leader_epoch = (int32_t)epoch,
		.incarnation = part->load->incarnation,
	};

	if (ioctl(part->fd, PLOG_IOC_LEAD, &arg))
		return failed(part, "a new leader epoch", errno);
	if (arg.log_end != part->next)
		return failed(part, "a leader epoch begins elsewhere", ERANGE);
	part->epoch = (int32_t)epoch;
	return true;
}

/* Under the lock, in the leader epoch of the same number. */
static void begin_generation(struct load_part *part, uint32_t gen)
{
	promise_begin(&part->promise, part->next, gen);
	if (!part->replica) {
		part->promise.lead_epoch = (int32_t)gen;
		part->promise.lead_at = part->next;
	}
	part->load->epochs++;
}

/* There is no room for another one that a reader might still ask for. */
static bool too_many(const struct promise *pr)
{
	return pr->gens > PROMISE_GENS - 2 && pr->start < pr->from[1];
}

/* An election: what follows is of another leader epoch. */
static bool elect(struct load_part *part)
{
	struct load *load = part->load;
	uint32_t gen = part->promise.newest + 1;

	/* a follower that was cut inside a gap: it goes on where the next batch says */
	if (too_many(&part->promise) || part->bare)
		return true;
	if (!lead(part, gen))
		return false;
	pthread_mutex_lock(&load->lock);
	begin_generation(part, gen);
	if (load->acked && !load->stop)
		load->acked(load, part);
	pthread_mutex_unlock(&load->lock);
	return true;
}

enum how { PLAIN, SYNC, DSYNC };

/* A follower's append: several batches at their offsets, gaps between them. */
static bool append_replica(struct load_part *part, enum how how)
{
	uint8_t *buf = malloc(4 * CONTENT_ROOM);
	struct plog_append arg = {
		.flags = PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA |
			 (how == PLAIN ? 0 : PLOG_APPEND_SYNC),
		.leader_epoch = part->epoch,
		.incarnation = part->load->incarnation,
	};
	int i, n = 1 + (int)draw(part, 4), count, ret;
	int64_t next = part->next;
	size_t size = 0, content;

	for (i = 0; i < n; i++) {
		next += content_gap(part->nr, part->promise.newest, next);
		content = content_make(buf + size, part->nr, part->promise.newest, next, &count);
		batch_put(buf + size, AT_EPOCH, 4, (uint64_t)part->epoch);
		size += content;
		remember(part, next, count);
		next += count;
	}
	ret = partition_append(part->fd, buf, size, &arg);
	free(buf);
	if (ret)
		return failed(part, "append of a replica", -ret);
	part->next = next;
	part->bare = false;
	part->load->batches += (uint64_t)n;
	if (!draw(part, 3) && partition_control(part->fd, PLOG_CONTROL_HIGH_WATERMARK,
						part->load->incarnation, part->epoch, next))
		return failed(part, "high watermark", errno);
	if (how != PLAIN)
		acknowledge(part);
	return true;
}

static bool append(struct load_part *part, enum how how)
{
	static __thread uint8_t buf[CONTENT_ROOM];
	struct plog_append arg = {
		.flags = how == SYNC ? PLOG_APPEND_SYNC : 0,
		.leader_epoch = -1,
	};
	int count, ret = 0;
	size_t size;

	if (part->replica)
		return append_replica(part, how);
	size = content_make(buf, part->nr, part->promise.newest, part->next, &count);
	remember(part, part->next, count);
	if (how == DSYNC) {
		if (write(part->sync_fd, buf, size) != (ssize_t)size)
			ret = -errno;
	} else {
		ret = partition_append(part->fd, buf, size, &arg);
		if (!ret && arg.base_offset != part->next)
			return failed(part, "an append went to another offset", ERANGE);
	}
	if (ret)
		return failed(part, "append", -ret);
	part->next += count;
	part->bare = false;
	part->load->batches++;
	if (how != PLAIN)
		acknowledge(part);
	return true;
}

static bool move_start(struct load_part *part)
{
	struct load *load = part->load;
	int64_t start = part->promise.start, to;
	int ret;

	to = start + (part->next - start) / 3 + (int64_t)draw(part, 4);
	if (to > part->next)
		return true;
	if (part->replica && partition_control(part->fd, PLOG_CONTROL_HIGH_WATERMARK,
					       load->incarnation, part->epoch, part->next))
		return failed(part, "high watermark", errno);
	pthread_mutex_lock(&load->lock);
	part->promise.start_asked = to;
	pthread_mutex_unlock(&load->lock);
	ret = partition_control(part->fd, PLOG_CONTROL_LOG_START, load->incarnation, part->epoch, to);
	if (ret)
		return failed(part, "log start", -ret);
	pthread_mutex_lock(&load->lock);
	part->promise.start = to;
	promise_forget(&part->promise);
	load->starts++;
	if (load->acked && !load->stop)
		load->acked(load, part);
	pthread_mutex_unlock(&load->lock);
	return true;
}

/* Back by up to 60 batches, often over a roll, and mostly inside a batch. */
static bool truncate_log(struct load_part *part)
{
	struct load *load = part->load;
	struct promise *pr = &part->promise;
	struct plog_state state;
	int64_t to, base;
	uint32_t gen;
	int i, ret;

	if (part->count < 2 || too_many(pr))
		return true;
	i = (int)draw(part, 60);
	i = i < part->count - 1 ? part->count - 1 - i : 1;
	base = part->spans[i].base;
	if (base < pr->start || (load->keep && base < pr->acked))
		return true;
	to = base + (int64_t)draw(part, 2);
	if (to >= part->next)
		to = base;
	pthread_mutex_lock(&load->lock);
	/* in a log with gaps it then ends in a batch, whatever its end is called */
	promise_cut(pr, part->spans[i - 1].end);
	pthread_mutex_unlock(&load->lock);
	/* a follower hears of the leader first, and a leader begins where it was cut */
	gen = pr->newest + 1;
	if (part->replica && !lead(part, gen))
		return false;
	ret = partition_control(part->fd, PLOG_CONTROL_TRUNCATE, load->incarnation, part->epoch, to);
	if (!ret)
		ret = partition_state(part->fd, &state);
	if (ret)
		return failed(part, "truncation", -ret);
	/* inside a gap it may name the gap's begin */
	if (state.log_end > to || state.log_end < part->spans[i - 1].end)
		return failed(part, "a truncation cut elsewhere", ERANGE);
	part->count = i + (to > base && state.log_end > base);
	part->next = state.log_end;
	part->bare = true;
	if (!part->replica && !lead(part, gen))
		return false;
	pthread_mutex_lock(&load->lock);
	begin_generation(part, gen);
	load->truncations++;
	if (!part->replica && load->acked && !load->stop)
		load->acked(load, part);
	pthread_mutex_unlock(&load->lock);
	return true;
}

static void *work(void *arg)
{
	struct load_part *part = arg;
	bool good = true;

	while (good && !part->load->stop) {
		uint64_t what = draw(part, 104);

		if (part->retained && what >= 93)
			what += 7;

		if (what < 60) {
			good = append(part, PLAIN);
		} else if (what < 75) {
			good = append(part, SYNC);
		} else if (what < 85) {
			good = append(part, DSYNC);
		} else if (what < 93) {
			if (fsync(part->fd))
				good = failed(part, "fsync", errno);
			else
				acknowledge(part);
		} else if (what < 96) {
			good = move_start(part);
		} else if (what < 100) {
			good = truncate_log(part);
		} else if (what < 102) {
			good = elect(part);
		} else if (partition_control(part->fd, PLOG_CONTROL_ROLL, part->load->incarnation,
					     part->epoch, 0)) {
			good = failed(part, "roll", errno);
		}
	}
	return NULL;
}

/* Keep two segments or so, and look often. */
static void retain(struct load *load, struct load_part *part)
{
	char buf[NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(&load->in->nl, buf, PLOG_CMD_PARTITION_SET, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_PARTITION);
	int ret;

	mnl_attr_put_strz(nlh, PLOG_A_PARTITION_TOPIC, LOAD_TOPIC);
	mnl_attr_put_u32(nlh, PLOG_A_PARTITION_INDEX, part->nr);
	mnl_attr_put_u64(nlh, PLOG_A_PARTITION_RETENTION_BYTES, LOAD_SEGMENT);
	mnl_attr_nest_end(nlh, nest);
	ret = nl_talk(&load->in->nl, nlh, NULL, NULL);
	if (!ret) {
		nlh = nl_begin(&load->in->nl, buf, PLOG_CMD_INSTANCE_SET, 0);
		nest = mnl_attr_nest_start(nlh, PLOG_A_INSTANCE);
		mnl_attr_put_u32(nlh, PLOG_A_INSTANCE_RETENTION_CHECK_MS, 20);
		mnl_attr_nest_end(nlh, nest);
		ret = nl_talk(&load->in->nl, nlh, NULL, NULL);
	}
	if (ret)
		failed(part, "retention", -ret);
}

void load_start(struct load *load, uint64_t seed)
{
	int i, tries;

	for (i = 0; i < load->n; i++) {
		struct load_part *part = &load->part[i];

		part->random = content_hash(seed, part->nr, 7);
		part->next = partition_end(part->fd);
		if (lead(part, part->promise.newest + 1))
			begin_generation(part, part->promise.newest + 1);
		/* a log of many lives */
		for (tries = 0; part->promise.gens > PROMISE_GENS / 3 && tries < 8; tries++)
			move_start(part);
		part->retained = i == 1;
		if (part->retained) {
			part->promise.start_asked = INT64_MAX;
			retain(load, part);
		}
		if (pthread_create(&part->thread, NULL, work, part))
			abort();
	}
}

const char *load_wait(struct load *load)
{
	int i;

	for (i = 0; i < load->n; i++)
		pthread_join(load->part[i].thread, NULL);
	return load->error[0] ? load->error : NULL;
}

/* ---- comparing ---- */

/* One batch at the log end, on stable storage; it must be found there. */
static const char *append_next(struct load_part *part)
{
	int64_t before = partition_end(part->fd), now;
	struct plog_locate loc;

	part->next = before;
	if (!lead(part, part->promise.newest + 1))
		return part->load->error;
	promise_begin(&part->promise, before, part->promise.newest + 1);
	if (!append(part, SYNC))
		return part->load->error;
	now = partition_end(part->fd);
	if (now != part->next)
		return wrong("partition %u ends at %lld and not at %lld after an append", part->nr,
			     (long long)now, (long long)part->next);
	if (partition_locate(part->fd, now - 1, 1 << 20, PLOG_LOCATE_WHOLE | PLOG_LOCATE_LOG_END,
			     &loc) || loc.next_offset != now)
		return wrong("partition %u: the append behind the crash is not found", part->nr);
	return NULL;
}

const char *load_verify(struct load *load, const struct promise *promises, struct found *found)
{
	int i;

	for (i = 0; i < load->n; i++) {
		struct load_part *part = &load->part[i];
		struct found f = { 0 };
		const char *bad;

		/* the high watermark of a follower is what its leader said last */
		if (part->replica &&
		    partition_control(part->fd, PLOG_CONTROL_HIGH_WATERMARK, load->incarnation, part->epoch,
				      partition_end(part->fd)))
			return wrong("partition %d: high watermark", i);
		bad = verify_log(part->fd, part->nr, &promises[i], part->replica, &f);
		if (bad)
			return wrong("partition %d: %s", i, bad);
		found->batches += f.batches;
		found->promised += f.promised;
		part->promise = f.now;
		bad = append_next(part);
		if (bad)
			return bad;
	}
	return NULL;
}

const char *load_verify_files(const struct load *load, const char *dir, int n, struct found *found)
{
	char path[400];
	const char *bad;
	int i;

	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s-%d", dir, LOAD_TOPIC, i);
		bad = verify_files(path, LOAD_INTERVAL, load->part[i].promise.start, found);
		if (bad)
			return wrong("%s-%d: %s", LOAD_TOPIC, i, bad);
	}
	return NULL;
}
