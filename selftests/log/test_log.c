// SPDX-License-Identifier: MIT
/*
 * What the daemon can ask of a log, asked of both of its engines: the parts of struct log_ops
 * that no request of Kafka's protocol comes to yet, and those that two daemons have to
 * themselves.
 *
 *   test_log module|process DIRECTORY
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../tools/libplog/datadir.h"
#include "../../uapi/linux/plog.h"
#include "broker/broker.h"
#include "broker/netlink.h"
#include "broker/topics.h"
#include "kafka/error.h"
#include "log/engines.h"
#include "log/log.h"
#include "maker.h"

#define TRANSACTIONAL 0x10
#define CONTROL 0x20
#define PRODUCER 4711
#define IDEMPOTENT 42

static struct broker b;
static struct log *lg;
static int folder;
static int tests, failed, replaced;

/* Of main.c, which is not here. */
void broker_stop(struct broker *broker, int exit_code)
{
	(void)broker;
	(void)exit_code;
}

void broker_check_replaced(struct broker *broker)
{
	(void)broker;
	replaced++;
}

/* ---- TAP ---- */

static bool ok(bool good, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool ok(bool good, const char *fmt, ...)
{
	va_list ap;

	failed += !good;
	printf("%sok %d - ", good ? "" : "not ", ++tests);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	return good;
}

static bool is(int64_t got, int64_t wanted, const char *name)
{
	if (got != wanted)
		printf("# got %" PRId64 ", not %" PRId64 "\n", got, wanted);
	return ok(got == wanted, "%s", name);
}

static void need(int ret, const struct plog_error *err)
{
	if (!ret)
		return;
	printf("Bail out! %s (%d)\n", err->text, ret);
	exit(1);
}

/* ---- the broker around a log ---- */

static void start_broker(const char *engine, const char *dir)
{
	char name[PATH_MAX + 16], kind[64];
	const char *overrides[] = { name, kind };
	struct plog_error err = { "" };
	struct config *config;

	snprintf(name, sizeof(name), "log.dirs=%s", dir);
	snprintf(kind, sizeof(kind), "plog.engine=%s", engine);
	need(config_read(NULL, overrides, 2, &config, &err), &err);
	atomic_init(&b.config, config);
	b.topics = topics_new();
	b.loops = calloc(1, sizeof(*b.loops));
	b.nloops = 1;
	need(loop_init(&b.control, &b, UINT_MAX) || loop_init(&b.loops[0], &b, 0), &err);
	need(datadir_open(dir, DATADIR_CREATE, &b.datadir, &err), &err);
	if (!strcmp(engine, "module")) {
		b.netlink = netlink_open(&b, &err);
		need(!b.netlink, &err);
		need(netlink_instance_set(b.netlink, dir, datadir_fd(b.datadir),
					  datadir_lock_fd(b.datadir), &err), &err);
	}
	b.engine = b.netlink ? module_start(&b, &err) : process_start(&b, &err);
	need(!b.engine, &err);
}

/* Segments of two batches each. */
static void open_log(struct log_config *config)
{
	static const char *const keys[][2] = {
		{ "segment.bytes", "1500" }, { "cleanup.policy", "compact,delete" },
		{ "retention.ms", "-1" }, { "file.delete.delay.ms", "0" },
		{ "max.message.bytes", "1400" },
	};
	struct plog_error err = { "" };
	struct datadir_topic topic;

	datadir_topic_init(&topic, "t");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (properties_set(&topic.config, keys[i][0], keys[i][1]))
			exit(1);
	need(datadir_topic_create(b.datadir, &topic, &err), &err);
	folder = datadir_partition_find(b.datadir, "t", 0);
	topic_log_config(&b, &topic, 0, config);
	need(log_open(b.engine, "t", 0, folder, config, &lg, &err), &err);
	need(log_wait(lg, &err), &err);
	datadir_topic_clear(&topic);
}

/* ---- help ---- */

static const struct log_ops *ops(void)
{
	return lg->engine->ops;
}

static struct log_state state(void)
{
	struct log_state s = { .log_end = -1 };

	log_state(lg, &s);
	return s;
}

/* One record of 600 bytes; the offset it got, or the Kafka error below 0. */
static int64_t put(int64_t producer, unsigned int attributes, int64_t unstable)
{
	struct log_append a = {
		.says_unstable = attributes != 0, .first_unstable = unstable, .base_offset = -1,
	};
	char value[600] = "value";
	struct maker m;
	uint8_t *batch;
	size_t size;
	int error;

	maker_begin(&m);
	if (attributes & CONTROL)	/* a commit, of the coordinator's epoch 3 */
		maker_record(&m, 1000, "\0\0\0\1", 4, "\0\0\0\0\0\3", 6);
	else
		maker_record(&m, 1000, "key", 3, value, sizeof(value));
	batch = maker_end(&m, 0, &size);
	maker_set16(batch, size, AT_ATTRIBUTES, attributes);
	maker_set64(batch, size, AT_PRODUCER_ID, producer);
	maker_set16(batch, size, AT_PRODUCER_EPOCH, producer < 0 ? -1 : 2);
	maker_set32(batch, size, AT_BASE_SEQUENCE, producer < 0 || attributes & CONTROL ? -1 : 5);
	error = log_append(lg, batch, size, &a);
	free(batch);
	return error ? -error : a.base_offset;
}

/* Offsets of the batches that are there, as text. */
static const char *batches(void)
{
	static char text[1000];
	size_t len = 0;
	int error = 0;
	struct log_cursor *c = log_cursor_get(lg, &error);
	int64_t at = state().log_start;
	uint8_t bytes[4096];

	text[0] = 0;
	while (c && !log_locate(c, at, 1, true, LOG_END_COMMITTED) && c->extent.length &&
	       log_cursor_read(c, 0, bytes, sizeof(bytes)) > 0) {
		len += snprintf(text + len, sizeof(text) - len, "%s%" PRId64, len ? " " : "",
				c->extent.base_offset);
		at = c->extent.next_offset;
	}
	if (c)
		log_cursor_put(c);
	return text;
}

static void same(const char *got, const char *wanted, const char *name)
{
	if (strcmp(got, wanted))
		printf("# got '%s', not '%s'\n", got, wanted);
	ok(!strcmp(got, wanted), "%s", name);
}

/* ---- headers and producers ---- */

static void test_headers(void)
{
	struct plog_batch_header h[16];
	struct log_headers all = { .count = 16, .entries = h };
	struct log_producers p;
	int64_t end = state().log_end;

	is(log_headers(lg, &all), 0, "headers");
	is(all.count, 6, "of all batches");
	is(all.offset, end, "to the log end");
	is(h[5].base_offset, 5, "the last is the last");
	is(h[4].producer_id, PRODUCER, "with its producer");
	ok(h[4].attributes == TRANSACTIONAL && h[4].producer_epoch == 2 && h[4].base_sequence == 5 &&
	   h[4].count == 1 && h[4].base_timestamp == 1000 && h[4].control == -1 && !h[4].leader_epoch,
	   "and all that the batch says");
	all = (struct log_headers){ .count = 1, .entries = h, .flags = PLOG_HEADERS_PRODUCERS };
	is(log_headers(lg, &all) ? -1 : h[0].base_offset, 4, "only those with a producer");
	is(all.offset, 5, "one at a time");
	is(log_headers(lg, &all) ? -1 : h[0].base_offset, 5, "and on from there");
	all = (struct log_headers){ .count = 4, .entries = h, .flags = PLOG_HEADERS_CONTROL };
	is(log_headers(lg, &all) ? -1 : (int64_t)all.count, 0, "no marker yet");
	all = (struct log_headers){ .count = 4, .entries = h, .offset = end + 1 };
	is(log_headers(lg, &all), -ERANGE, "beyond the log end is out of range");
	ok(!all.count && !all.log_start && all.log_end == end, "and tells where the log is");

	is(log_producers(lg, &p) ? -2 : p.last_offset, 5, "the last batch with a producer id");
	is(p.first_unstable, 4, "the first offset of the open transaction");
	is(state().last_stable, 4, "where committed records end");
}

/* ---- waiting for an end ---- */

static bool woken;

static void on_wake(struct log_waiter *w)
{
	(void)w;
	woken = true;
}

static void on_timer(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

/* Let the loop turn for at most @ms. */
static bool turn(unsigned int ms)
{
	uv_loop_t *loop = &b.loops[0].uv;
	uv_timer_t timer;

	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_timer, ms, 0);
	while (!woken && uv_is_active((uv_handle_t *)&timer))
		uv_run(loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(loop, UV_RUN_NOWAIT);
	return woken;
}

static void test_waiting(void)
{
	struct log_waiter stable = { .wake = on_wake }, all = { .wake = on_wake };
	int64_t none = -1;

	is(log_wait_end(lg, &b.loops[0], LOG_END_STABLE, 4, &stable), 0, "wait for committed records");
	is(put(-1, 0, 0), 6, "an append behind the open transaction");
	ok(!turn(300), "wakes nobody who waits for committed records");
	is(log_wait_end(lg, &b.loops[0], LOG_END_COMMITTED, 7, &all), 0, "wait for any record");
	is(put(-1, 0, 0), 7, "another append");
	ok(turn(5000), "wakes who waits for any");
	ok(stable.watch, "and not the other");
	woken = false;
	is(put(PRODUCER, TRANSACTIONAL | CONTROL, PLOG_UNSTABLE_NONE), 8, "the marker of the end");
	ok(turn(5000), "wakes the one");
	is(state().last_stable, 9, "all is stable now");
	woken = false;
	is(put(PRODUCER, TRANSACTIONAL, PLOG_UNSTABLE_HERE), 9, "one more transaction");
	is(log_wait_end(lg, &b.loops[0], LOG_END_STABLE, 9, &stable), 0, "wait again");
	is(log_set_unstable(lg, &none), 0, "without an append it is said that none is open");
	ok(turn(5000), "which wakes too");
	log_watch_sweep(&b.loops[0], true);
	turn(1);
}

static void test_markers(void)
{
	struct plog_batch_header h[4];
	struct log_headers all = { .count = 4, .entries = h, .flags = PLOG_HEADERS_CONTROL };

	is(log_headers(lg, &all) ? -1 : (int64_t)all.count, 1, "one marker");
	ok(h[0].base_offset == 8 && h[0].control == PLOG_CONTROL_COMMIT &&
	   h[0].coordinator_epoch == 3, "a commit of the coordinator's epoch");
}

/* ---- compaction ---- */

/* The first batch of the segment at @base is what stays of a run. */
static void write_cleaned(int64_t base)
{
	static const char *const kinds[] = { "index", "timeindex", "log" };
	uint8_t bytes[4096];
	char name[64];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "%020" PRId64 ".log", base);
	fd = openat(folder, name, O_RDONLY);
	n = read(fd, bytes, sizeof(bytes));
	close(fd);
	if (n > 12)
		n = 12 + (bytes[8] << 24 | bytes[9] << 16 | bytes[10] << 8 | bytes[11]);
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%020" PRId64 ".%s.cleaned", base, kinds[i]);
		fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		if (i == 2 && write(fd, bytes, n) != n)
			exit(1);
		close(fd);
	}
}

static void test_swap(void)
{
	struct log_swap ask = { 0 }, swap = { .first = 0, .last = 2 };
	struct plog_error err = { "" };

	same(batches(), "0 1 2 3 4 5 6 7 8 9", "before the compaction");
	is(ops()->swap_ask(lg, &ask), 0, "ask for the segments");
	is(ask.pending, -1, "no swap is pending");
	write_cleaned(0);
	is(datadir_swap_commit(folder, 0, &err), 0, "name the cleaned segment");
	swap.generation = ask.generation + 7;
	ok(ops()->swap(lg, 0, &swap) < 0, "a swap of segments that were not seen is refused");
	swap.generation = ask.generation;
	is(ops()->swap(lg, 1, &swap), -ESTALE, "so is one of another epoch");
	swap.generation = ask.generation;
	is(ops()->swap(lg, 0, &swap), 0, "swap");
	is(swap.pending, 0, "its files have no names yet");
	same(batches(), "0 4 5 6 7 8 9", "the new segment is read");
	is(datadir_swap_finish(folder, 0, 2, &err), 0, "name them");
	is(ops()->swap_done(lg, 0), 0, "say so");
	is(ops()->swap_ask(lg, &ask) ? -2 : ask.pending, -1, "nothing is pending");
	ok(ask.generation > swap.generation - 1, "the generation does not go back");
	same(batches(), "0 4 5 6 7 8 9", "the same is read");
}

/* A daemon dies between the swap and its end: the next one finds the module serving it. */
static void test_interrupted_swap(const struct log_config *config)
{
	struct log_swap ask = { 0 }, swap = { .first = 4, .last = 6 };
	struct plog_error err = { "" };
	struct log *old = lg;

	is(ops()->swap_ask(lg, &ask), 0, "ask once more");
	write_cleaned(4);
	is(datadir_swap_commit(folder, 4, &err), 0, "name another cleaned segment");
	swap.generation = ask.generation;
	is(ops()->swap(lg, 0, &swap), 0, "swap, and die");
	need(log_open(b.engine, "t", 0, folder, config, &lg, &err), &err);
	need(log_wait(lg, &err), &err);
	log_put(old);
	is(ops()->swap_ask(lg, &ask) ? -2 : ask.pending, -1, "the next daemon has ended it");
	same(batches(), "0 4 9", "with what was swapped in");
	ok(faccessat(folder, "00000000000000000004.log.swap", F_OK, 0), "no .swap is left");
	ok(faccessat(folder, "00000000000000000006.log", F_OK, 0), "nor what it replaces");
}

/* ---- epochs, truncation, retired segments ---- */

static void test_epochs(void)
{
	int64_t end = state().log_end, at = end - 1;
	int32_t epoch = 0;

	is(log_epoch_end(lg, &epoch, &at) ? -2 : at, end, "the first epoch ends with the log");
	is(log_epoch_at(lg, end - 1), 0, "and holds the last record");
	at = end - 1;
	is(ops()->truncate(lg, 3, &at), -ESTALE, "a truncation of another epoch is refused");
	at = end - 1;
	is(ops()->truncate(lg, 0, &at), 0, "one of this is not");
	is(state().log_end, end - 1, "the last record is gone");
	is(put(-1, 0, 0), end - 1, "its offset is given again");
	is(ops()->sync(lg), 0, "sync");
}

static void test_retired(void)
{
	struct log_bases bases = { 0 };
	struct plog_error err = { "" };
	int64_t start = state().log_end, base;

	put(-1, 0, 0);
	is(log_set_log_start(lg, &start), 0, "delete what is there");
	for (int i = 0; i < 500 && bases.count < 2; i++) {
		usleep(20000);
		if (ops()->retain)
			ops()->retain(lg);
		bases.count = 0;
		if (ops()->retired(lg, &bases))
			break;
	}
	if (!ok(bases.count > 1, "its segments are retired, and nobody empties them"))
		return;
	is(ops()->retired_take(lg, bases.list[0]), 0, "take one");
	is(ops()->retired_done(lg, bases.list[0], false), 0, "it could not be deleted");
	is(ops()->retired_take(lg, bases.list[0]), -EBUSY, "it waits for a while");
	base = bases.list[1];
	is(ops()->retired_take(lg, base), 0, "take another");
	is(datadir_segment_delete(folder, base, &err), 0, "delete its files");
	is(ops()->retired_done(lg, base, true), 0, "say so");
	ok(ops()->retired_take(lg, base), "there is no such thing any more");
	free(bases.list);
}

/* ---- two daemons ---- */

static void test_replaced(void)
{
	struct log_engine *old = b.engine;
	struct plog_error err = { "" };
	struct log_swap none = { 0 };
	int64_t at = 0, end = state().log_end;

	ok(module_registered(old), "the module knows this daemon");
	b.engine = module_start(&b, &err);
	need(!b.engine, &err);
	ok(!module_registered(old), "another has registered");
	is(put(-1, 0, 0), -KERR_NOT_LEADER_OR_FOLLOWER, "an append of the old one is refused");
	is(replaced, 1, "and it looks why");
	is(log_set_log_start(lg, &at), -ESTALE, "so is DeleteRecords");
	is(ops()->truncate(lg, 0, &at), -ESTALE, "a truncation");
	is(log_set_unstable(lg, &at), -ESTALE, "an end of transactions");
	is(ops()->swap(lg, 0, &none), -ESTALE, "a swap");
	is(state().log_end, end, "the log is as it was");
	lg->engine = b.engine;
	is(put(-1, 0, 0), end, "the new one appends");
	old->ops->stop(old);
	is(put(-1, 0, 0), end + 1, "also when the old one has gone");
}

int main(int argc, char **argv)
{
	struct plog_error err = { "" };
	struct log_config config;
	struct log_producers p;
	bool module;

	if (argc != 3)
		return 2;
	module = !strcmp(argv[1], "module");
	start_broker(argv[1], argv[2]);
	open_log(&config);
	is(log_producers(lg, &p) ? -2 : p.last_offset, -1, "no producer yet");
	for (int i = 0; i < 4; i++)
		put(-1, 0, 0);
	is(put(PRODUCER, TRANSACTIONAL, PLOG_UNSTABLE_HERE), 4, "a transaction begins");
	is(put(IDEMPOTENT, 0, 0), 5, "and an idempotent producer writes");
	test_headers();
	test_waiting();
	test_markers();
	test_swap();
	if (module)
		test_interrupted_swap(&config);
	test_epochs();
	test_retired();
	if (module)
		test_replaced();
	is(log_shut(lg, true, &err), 0, "take it out of service");
	is(log_producers(lg, &p), -ENODEV, "nothing can be asked any more");
	log_put(lg);
	b.engine->ops->stop(b.engine);
	netlink_close(b.netlink);
	printf("1..%d\n", tests);
	return failed != 0;
}
