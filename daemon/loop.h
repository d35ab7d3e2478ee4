/* SPDX-License-Identifier: MIT */
#ifndef PLOG_LOOP_H
#define PLOG_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

/*
 * Threads of the daemon, and what belongs to which
 *
 * control loop   the main thread: signals, the listening sockets, netlink, reload, the end.
 * client loops   num.network.threads of them. A connection belongs to one loop from accept
 *                to close; only that thread touches it. Reading needs no owner: the log has
 *                no lock between readers and writers, so each loop reads for its own
 *                connections.
 * appenders      as many. A partition belongs to one of them (log_owner()): appends to it
 *                run there and nowhere else, so that a check and the append that follows it
 *                are one step in one thread. A Produce visits the owners of its partitions
 *                one after the other and comes back to its loop (log/appender.h).
 * changes        one thread that makes, alters and deletes topics, one after the other
 *                (broker/change.h). It may sleep on the disk and on netlink.
 * thread pool    libuv's: what may take long and belongs to nobody else. Checking records
 *                of compressed batches, lookups by time, reading what is not recent, and
 *                sending it. Of work that takes long each turn does a piece, and what nobody
 *                waits for any more is left.
 *
 * What is shared: the table of topics (a read-write lock, entries immutable and counted),
 * fetch sessions (a mutex), the memory budget of requests (a mutex), the configuration (a
 * pointer to something that never changes and is kept until the end). A request is handed
 * over, never shared: whoever runs it is its only user.
 *
 * Nothing blocks a client loop. An append, which copies into the page cache and may be
 * throttled there with every other writer of the machine, has its own threads. Locating and
 * sending records that were written a while ago, which may have to be read from the disk,
 * happens in the thread pool (log_is_recent()).
 */
struct broker;
struct conn;
struct log_watch;

#ifndef container_of
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#endif

struct task {
	void (*run)(struct task *task);
	struct task *next;
};

struct loop {
	uv_loop_t uv;
	struct broker *broker;
	unsigned int index;		/* among the client loops; UINT_MAX for control */
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;		/* of the queue */
	struct task *first, **last;
	bool closed;			/* no more posts are taken */
	uv_async_t wake;

	/* posted to @report_to once when the loop drains and has become empty */
	struct task drained;
	struct loop *report_to;
	struct task stop;

	/* of the loop's own thread */
	uv_timer_t tick;		/* twice a second: timeouts of connections */
	struct conn *conns;
	struct log_watch *watches;
	atomic_uint nconns;		/* others look at it as a hint */
	unsigned int nworks;		/* uv_queue_work calls that have not come back */
	bool draining;			/* no new requests; connections close when idle */
	bool reported;			/* @drained was posted */
	bool force;			/* connections close at once */
};

/* Set up @loop; @index as in the struct. 0 or a negative errno. */
int loop_init(struct loop *loop, struct broker *broker, unsigned int index);

/* Run a client loop in a thread of its own until loop_stop(). 0 or a negative errno. */
int loop_start(struct loop *loop);

/*
 * Run @task->run(@task) on @loop soon. Any thread. @task belongs to the loop until it runs.
 * Posted tasks run in order. Never fails while the loop lives: loops outlive their posters.
 */
void loop_post(struct loop *loop, struct task *task);

/* Milliseconds, monotonic, as of this turn of the loop. */
static inline uint64_t loop_now(const struct loop *loop)
{
	return uv_now(&loop->uv);
}

/* Ask a client loop to answer what it has and to end; @force: without answering. Any thread. */
void loop_drain(struct loop *loop, bool force);

/* Let the thread of a client loop end. After all client loops have reported to be empty. */
void loop_stop(struct loop *loop);

/* Wait for the thread of a client loop. */
void loop_join(struct loop *loop);

/* Close the handles of a loop that runs no more, and free what it holds. */
void loop_close(struct loop *loop);

/* On the loop's thread: call when a connection or a queued work has gone. */
void loop_check_end(struct loop *loop);

#endif
