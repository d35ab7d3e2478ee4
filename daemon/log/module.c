// SPDX-License-Identifier: MIT
/*
 * The log engine in the kernel: descriptors of /dev/plog-control, bound to partitions.
 *
 * Each partition has one descriptor that appends and tells the state, each cursor one of its
 * own, since a descriptor pins one extent, and each loop that waits for a partition one that
 * it polls. All of them are of this process: when it dies the kernel lets go of everything
 * and the log stays open.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "../../tools/libplog/datadir.h"
#include "../../uapi/linux/plog.h"
#include "../broker/broker.h"
#include "../broker/netlink.h"
#include "../say.h"
#include "engines.h"
#include "log.h"

#define CONTROL "/dev/plog-control"

struct module_engine {
	struct log_engine base;
	int control;			/* the registration: closing it ends it */
	uint64_t incarnation;
};

/* What struct log is to us. */
struct module_log {
	int fd;				/* appends, state */
};

struct module_cursor {
	struct log_cursor base;
	int fd;
	uint64_t at;			/* bytes of the extent that were taken */
};

struct module_watch {
	uv_poll_t poll;
	int fd;
};

static struct module_engine *engine_of(const struct log *log)
{
	return container_of(log->engine, struct module_engine, base);
}

static struct module_log *ml_of(const struct log *log)
{
	return log->impl;
}

/* A descriptor bound to the partition, or a negative errno. */
static int bind_fd(const struct log *log)
{
	struct plog_bind bind = { .flags = PLOG_MODE_BATCH, .partition = log->index };
	int fd, ret;

	fd = open(CONTROL, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	strncpy(bind.topic, log->topic, sizeof(bind.topic) - 1);
	if (ioctl(fd, PLOG_IOC_BIND, &bind)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

static int settle_swap(struct log *log, int fd, int dirfd, struct plog_error *err);

/* ---- life ---- */

static int begin(struct log *log, int dirfd, const struct log_config *config,
		 struct plog_error *err)
{
	struct netlink *nl = log->engine->broker->netlink;
	struct module_log *ml = calloc(1, sizeof(*ml));
	int ret, fd;

	if (!ml)
		return plog_error_set(err, -ENOMEM, "%s: out of memory", log->name);
	fd = bind_fd(log);
	ret = settle_swap(log, fd, dirfd, err);
	if (fd >= 0)
		close(fd);
	if (!ret)
		ret = netlink_partition_new(nl, log->topic, log->index, dirfd, config, err);
	if (ret == -EEXIST) {
		/* the log stayed open when an earlier plogd ended */
		ret = netlink_partition_set(nl, log->topic, log->index, config, err);
	}
	if (!ret) {
		ml->fd = bind_fd(log);
		if (ml->fd < 0)
			ret = plog_error_set(err, ml->fd, "%s: cannot be bound to: %s", log->name,
					     strerror(-ml->fd));
	}
	if (ret) {
		free(ml);
		return ret;
	}
	log->impl = ml;
	return 0;
}

static int wait_open(struct log *log, struct plog_error *err)
{
	return netlink_partition_wait(log->engine->broker->netlink, log->topic, log->index, err);
}

static int configure(struct log *log, const struct log_config *config, struct plog_error *err)
{
	return netlink_partition_set(log->engine->broker->netlink, log->topic, log->index, config,
				     err);
}

static int close_log(struct log *log, bool clean, struct plog_error *err)
{
	(void)clean;
	return netlink_partition_del(log->engine->broker->netlink, log->topic, log->index, err);
}

static void free_log(struct log *log)
{
	struct module_log *ml = ml_of(log);

	if (!ml)
		return;
	close(ml->fd);
	free(ml);
}

/* ---- calls ---- */

static int32_t epoch_of(int32_t epoch)
{
	return epoch < 0 ? 0 : epoch;
}

static int state(struct log *log, struct log_state *out)
{
	struct plog_state st = { 0 };

	if (ioctl(ml_of(log)->fd, PLOG_IOC_STATE, &st))
		return -errno;
	*out = (struct log_state){
		.state = st.state,
		.flags = st.flags,
		.leader_epoch = epoch_of(st.leader_epoch),
		.log_start = st.log_start,
		.high_watermark = st.high_watermark,
		.last_stable = st.last_stable,
		.log_end = st.log_end,
		.max_timestamp = st.max_timestamp,
		.bytes = st.bytes,
	};
	return 0;
}

static int append(struct log *log, uint8_t *batch, uint32_t size, int32_t leader_epoch,
		  struct log_append *a)
{
	struct plog_append arg = {
		.flags = PLOG_APPEND_DAEMON | (a->says_unstable ? PLOG_APPEND_UNSTABLE : 0),
		.length = size,
		.data = (uintptr_t)batch,
		.incarnation = engine_of(log)->incarnation,
		.leader_epoch = leader_epoch,
		.first_unstable = a->says_unstable ? a->first_unstable : 0,
	};

	if (ioctl(ml_of(log)->fd, PLOG_IOC_APPEND, &arg))
		return -errno;
	a->base_offset = arg.base_offset;
	a->last_offset = arg.last_offset;
	a->log_append_time = arg.log_append_time;
	a->log_start = arg.log_start;
	return 0;
}

static int sync_log(struct log *log)
{
	return fsync(ml_of(log)->fd) ? -errno : 0;
}

static int lookup(struct log *log, int64_t from, int64_t timestamp, bool max, enum log_end end,
		  struct log_hit *hit)
{
	struct plog_lookup arg = {
		.offset = from,
		.timestamp = timestamp,
		.flags = (max ? PLOG_LOOKUP_MAX : 0) |
			 (end == LOG_END_STABLE ? PLOG_LOOKUP_COMMITTED : 0),
	};

	if (ioctl(ml_of(log)->fd, PLOG_IOC_LOOKUP, &arg))
		return -errno;
	hit->offset = arg.offset;
	hit->timestamp = arg.timestamp;
	hit->leader_epoch = arg.leader_epoch;
	hit->inside = arg.flags & PLOG_LOOKUP_INSIDE;
	hit->behind = arg.flags & PLOG_LOOKUP_BEHIND;
	return 0;
}

static int control(struct log *log, uint32_t command, int32_t leader_epoch, int64_t *offset)
{
	struct plog_control arg = {
		.command = command,
		.leader_epoch = leader_epoch,
		.incarnation = engine_of(log)->incarnation,
		.offset = *offset,
	};

	if (ioctl(ml_of(log)->fd, PLOG_IOC_CONTROL, &arg))
		return -errno;
	*offset = arg.offset;
	return 0;
}

static int epoch(struct log *log, bool at, int32_t *epoch, int64_t *offset)
{
	struct plog_epoch arg = {
		.flags = at ? PLOG_EPOCH_AT : 0,
		.epoch = at ? 0 : *epoch,
		.offset = at ? *offset : 0,
	};

	if (ioctl(ml_of(log)->fd, PLOG_IOC_EPOCH, &arg))
		return -errno;
	*epoch = arg.epoch;
	*offset = arg.offset;
	return 0;
}

static int truncate_log(struct log *log, int32_t leader_epoch, int64_t *offset)
{
	return control(log, PLOG_CONTROL_TRUNCATE, leader_epoch, offset);
}

static int set_log_start(struct log *log, int32_t leader_epoch, int64_t *offset)
{
	return control(log, PLOG_CONTROL_LOG_START, leader_epoch, offset);
}

/* ---- retention: on the module's own clock ---- */

static int retired(struct log *log, struct log_bases *bases)
{
	return netlink_retired(log->engine->broker->netlink, log->topic, log->index, bases);
}

static int retired_take(struct log *log, int64_t base)
{
	return netlink_retired_take(log->engine->broker->netlink, log->topic, log->index, base,
				    engine_of(log)->incarnation);
}

static int retired_done(struct log *log, int64_t base, bool gone)
{
	return netlink_retired_done(log->engine->broker->netlink, log->topic, log->index, base,
				    engine_of(log)->incarnation, gone);
}

static int set_unstable(struct log *log, int32_t leader_epoch, int64_t *offset)
{
	return control(log, PLOG_CONTROL_UNSTABLE, leader_epoch, offset);
}

static int headers(struct log *log, struct log_headers *h)
{
	struct plog_headers arg = {
		.offset = h->offset,
		.flags = h->flags | PLOG_HEADERS_LOG_END,
		.count = h->count,
		.entries = (uintptr_t)h->entries,
	};
	int ret = ioctl(ml_of(log)->fd, PLOG_IOC_HEADERS, &arg) ? -errno : 0;

	h->count = ret ? 0 : arg.count;
	if (ret && ret != -ERANGE)
		return ret;
	h->offset = arg.offset;
	h->log_start = arg.log_start;
	h->log_end = arg.log_end;
	return ret;
}

static int producers(struct log *log, struct log_producers *p)
{
	struct plog_producer arg = { 0 };

	if (ioctl(ml_of(log)->fd, PLOG_IOC_PRODUCER, &arg))
		return -errno;
	p->last_offset = arg.last_offset;
	p->first_unstable = arg.first_unstable;
	return 0;
}

/* ---- compaction ---- */

static int call_swap(int fd, uint64_t incarnation, int32_t leader_epoch, uint32_t flags,
		     struct log_swap *swap)
{
	struct plog_swap arg = {
		.generation = swap->generation,
		.first_base = swap->first,
		.last_base = swap->last,
		.incarnation = incarnation,
		.leader_epoch = leader_epoch,
		.flags = flags,
	};

	if (ioctl(fd, PLOG_IOC_SWAP, &arg))
		return -errno;
	swap->generation = arg.generation;
	swap->pending = arg.pending;
	swap->pending_last = flags & PLOG_SWAP_ASK ? arg.last_base : swap->last;
	return 0;
}

static int swap_segments(struct log *log, int32_t leader_epoch, struct log_swap *swap)
{
	return call_swap(ml_of(log)->fd, engine_of(log)->incarnation, leader_epoch, 0, swap);
}

static int swap_done(struct log *log, int32_t leader_epoch)
{
	struct log_swap none = { 0 };

	return call_swap(ml_of(log)->fd, engine_of(log)->incarnation, leader_epoch,
			 PLOG_SWAP_DONE, &none);
}

static int swap_ask(struct log *log, struct log_swap *swap)
{
	return call_swap(ml_of(log)->fd, 0, 0, PLOG_SWAP_ASK, swap);
}

/*
 * An earlier plogd may have died in a compaction. If the module serves the partition, it
 * knows how far that had come; @fd is bound to it, or why it is not. Only -ENODEV says that
 * nobody serves it: then the files are ours to put in order.
 */
static int settle_swap(struct log *log, int fd, int dirfd, struct plog_error *err)
{
	struct log_swap now = { 0 };
	struct plog_state st = { 0 };
	int ret;

	if (fd == -ENODEV)
		return datadir_swap_recover(dirfd, err);
	if (fd < 0)
		return plog_error_set(err, fd, "%s: cannot be bound to: %s", log->name,
				      strerror(-fd));
	ret = call_swap(fd, 0, 0, PLOG_SWAP_ASK, &now);
	/* it is being opened anew: then there is no .swap, or it says so itself */
	if (ret == -EAGAIN)
		return 0;
	if (ret)
		return plog_error_set(err, ret, "%s: cannot ask for its segments: %s", log->name,
				      strerror(-ret));
	if (now.pending < 0)
		return datadir_swap_drop(dirfd, err);
	ret = datadir_swap_finish(dirfd, now.pending, now.pending_last, err);
	if (ret)
		return ret;
	if (ioctl(fd, PLOG_IOC_STATE, &st))
		ret = -errno;
	else
		ret = call_swap(fd, engine_of(log)->incarnation, st.leader_epoch, PLOG_SWAP_DONE,
				&now);
	if (ret)
		return plog_error_set(err, ret, "%s: cannot end a compaction: %s", log->name,
				      strerror(-ret));
	say(SAY_INFO, "log", "%s: ended a compaction that was interrupted", log->name);
	return 0;
}

/* ---- reading ---- */

static struct module_cursor *mc_of(struct log_cursor *cursor)
{
	return container_of(cursor, struct module_cursor, base);
}

static struct log_cursor *cursor_new(struct log *log, int *error)
{
	struct module_cursor *mc = calloc(1, sizeof(*mc));

	if (!mc) {
		*error = -ENOMEM;
		return NULL;
	}
	mc->fd = bind_fd(log);
	if (mc->fd < 0) {
		*error = mc->fd;
		free(mc);
		return NULL;
	}
	return &mc->base;
}

static void cursor_unpin(struct log_cursor *cursor)
{
	struct module_cursor *mc = mc_of(cursor);
	struct plog_mode mode = { .flags = PLOG_MODE_BATCH };

	/* setting the mode drops the extent; nothing pinned needs no call */
	if (cursor->extent.length)
		ioctl(mc->fd, PLOG_IOC_SET_MODE, &mode);
	cursor->extent.length = 0;
}

static void cursor_free(struct log_cursor *cursor)
{
	close(mc_of(cursor)->fd);
	free(mc_of(cursor));
}

static int locate_fd(int fd, int64_t offset, uint32_t max_bytes, uint32_t flags,
		     struct plog_locate *arg)
{
	*arg = (struct plog_locate){
		.offset = offset,
		.max_bytes = max_bytes,
		.flags = flags,
	};
	return ioctl(fd, PLOG_IOC_LOCATE, arg) ? -errno : 0;
}

static int locate(struct log_cursor *cursor, int64_t offset, uint32_t max_bytes, bool whole,
		  enum log_end end, struct log_extent *out)
{
	struct module_cursor *mc = mc_of(cursor);
	struct plog_locate arg;
	int ret;

	mc->at = 0;
	ret = locate_fd(mc->fd, offset, max_bytes, (whole ? PLOG_LOCATE_WHOLE : 0) |
			(end == LOG_END_STABLE ? PLOG_LOCATE_COMMITTED : 0), &arg);
	if (ret && ret != -ERANGE)
		return ret;
	out->length = ret ? 0 : arg.length;
	out->base_offset = out->length ? arg.base_offset : -1;
	out->next_offset = out->length ? arg.next_offset : offset;
	out->state = (struct log_state){
		.state = PLOG_PARTITION_ONLINE,
		.leader_epoch = epoch_of(arg.leader_epoch),
		.log_start = arg.log_start,
		.high_watermark = arg.high_watermark,
		.last_stable = arg.last_stable,
		.log_end = arg.log_end,
		.max_timestamp = -1,
	};
	return ret;
}

/* The descriptor's own position goes along with what is taken. */
static int seek_to(struct module_cursor *mc, uint64_t skip)
{
	if (mc->at == skip)
		return 0;
	if (lseek(mc->fd, skip, SEEK_SET) < 0)
		return -errno;
	mc->at = skip;
	return 0;
}

static ssize_t send_extent(struct log_cursor *cursor, int sock, uint64_t skip, size_t n)
{
	struct module_cursor *mc = mc_of(cursor);
	ssize_t sent;
	int ret = seek_to(mc, skip);

	if (ret)
		return ret;
	sent = sendfile(sock, mc->fd, NULL, n);
	if (sent < 0)
		return -errno;
	mc->at += sent;
	return sent;
}

static ssize_t read_extent(struct log_cursor *cursor, uint64_t skip, void *buf, size_t n)
{
	struct module_cursor *mc = mc_of(cursor);
	ssize_t got;
	int ret = seek_to(mc, skip);

	if (ret)
		return ret;
	got = read(mc->fd, buf, n);
	if (got < 0)
		return -errno;
	mc->at += got;
	return got;
}

/* ---- wake-ups ---- */

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct log_watch *watch = poll->data;

	/* an error or a hang-up is news too: whoever waits will look and see */
	(void)status;
	(void)events;
	uv_poll_stop(poll);
	log_watch_fire(watch);
}

static int watch_open(struct log_watch *watch)
{
	struct module_watch *mw = calloc(1, sizeof(*mw));
	int ret;

	if (!mw)
		return -ENOMEM;
	mw->fd = bind_fd(watch->log);
	if (mw->fd < 0) {
		ret = mw->fd;
		free(mw);
		return ret;
	}
	ret = uv_poll_init(&watch->loop->uv, &mw->poll, mw->fd);
	if (ret) {
		close(mw->fd);
		free(mw);
		return ret;
	}
	mw->poll.data = watch;
	watch->impl = mw;
	return 0;
}

static int watch_arm(struct log_watch *watch, int64_t end)
{
	struct module_watch *mw = watch->impl;
	struct plog_locate arg;
	int ret;

	/* no bytes are wanted, only to hear when there is one at or behind @end */
	ret = locate_fd(mw->fd, end, 0,
			watch->kind == LOG_END_STABLE ? PLOG_LOCATE_COMMITTED : 0, &arg);
	if (ret && ret != -ERANGE)
		return ret;
	return uv_poll_start(&mw->poll, UV_READABLE, on_poll);
}

static void on_watch_closed(uv_handle_t *handle)
{
	free(container_of((uv_poll_t *)handle, struct module_watch, poll));
}

static void watch_close(struct log_watch *watch)
{
	struct module_watch *mw = watch->impl;

	uv_poll_stop(&mw->poll);
	uv_close((uv_handle_t *)&mw->poll, on_watch_closed);
	close(mw->fd);
}

static void stop(struct log_engine *engine)
{
	struct module_engine *me = container_of(engine, struct module_engine, base);

	close(me->control);
	free(me);
}

static const struct log_ops ops = {
	.name = "module",
	.stop = stop,
	.begin = begin,
	.wait = wait_open,
	.configure = configure,
	.close = close_log,
	.free = free_log,
	.state = state,
	.append = append,
	.sync = sync_log,
	.lookup = lookup,
	.epoch = epoch,
	.truncate = truncate_log,
	.set_log_start = set_log_start,
	.retired = retired,
	.retired_take = retired_take,
	.retired_done = retired_done,
	.set_unstable = set_unstable,
	.headers = headers,
	.producers = producers,
	.swap = swap_segments,
	.swap_done = swap_done,
	.swap_ask = swap_ask,
	.cursor_new = cursor_new,
	.cursor_free = cursor_free,
	.cursor_unpin = cursor_unpin,
	.locate = locate,
	.send = send_extent,
	.read = read_extent,
	.watch_open = watch_open,
	.watch_arm = watch_arm,
	.watch_close = watch_close,
};

bool module_registered(struct log_engine *engine)
{
	struct module_engine *me = container_of(engine, struct module_engine, base);
	struct plog_info info = { 0 };

	/* if it cannot be asked, its calls will tell */
	return ioctl(me->control, PLOG_IOC_INFO, &info) || info.incarnation == me->incarnation;
}

struct log_engine *module_start(struct broker *b, struct plog_error *err)
{
	struct module_engine *me = calloc(1, sizeof(*me));
	struct plog_register reg = { .netlink_port = netlink_port(b->netlink) };
	struct plog_info info = { 0 };

	if (!me) {
		plog_error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	me->control = open(CONTROL, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (me->control < 0) {
		plog_error_set(err, -errno, "%s: %s", CONTROL, strerror(errno));
		goto fail;
	}
	if (ioctl(me->control, PLOG_IOC_INFO, &info)) {
		plog_error_set(err, -errno, "%s does not answer as a plog device: %s", CONTROL,
			       strerror(errno));
		goto fail_close;
	}
	if (info.abi_major != PLOG_ABI_MAJOR) {
		plog_error_set(err, -EPROTO, "the loaded module speaks ABI %u.%u, this plogd "
			       "needs %d.x: load the module of the same release",
			       info.abi_major, info.abi_minor, PLOG_ABI_MAJOR);
		goto fail_close;
	}
	if (ioctl(me->control, PLOG_IOC_REGISTER, &reg)) {
		plog_error_set(err, -errno, "cannot register with the module: %s%s",
			       strerror(errno), errno == EPERM ? " (plogd needs CAP_NET_ADMIN in "
			       "the initial user namespace)" : "");
		goto fail_close;
	}
	me->base.ops = &ops;
	me->base.broker = b;
	me->incarnation = b->incarnation = reg.incarnation;
	say(SAY_INFO, "plogd", "registered with the module as incarnation %llu",
	    (unsigned long long)reg.incarnation);
	return &me->base;
fail_close:
	close(me->control);
fail:
	free(me);
	return NULL;
}
