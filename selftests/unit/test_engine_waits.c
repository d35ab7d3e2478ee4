// SPDX-License-Identifier: MIT
/*
 * A save of the state file that waits until a filesystem is thawed, as a worker's does,
 * or an index that is written then, keeps nobody waiting who cannot be killed.  They are
 * played by a thread that holds their lock; who waits for it is found out by an alarm.
 */
#include "engine.h"

#include <pthread.h>
#include <semaphore.h>

#include "../../kmod/engine.h"

#define WAITS_S 20

static struct {
	pthread_t thread;
	struct mutex *lock;
	sem_t taken, thawed;
	bool on;
	bool armed;
} save;

static void *save_that_waits(void *arg)
{
	(void)arg;
	mutex_lock(save.lock);
	sem_post(&save.taken);
	sem_wait(&save.thawed);
	mutex_unlock(save.lock);
	return NULL;
}

static void freeze(struct mutex *lock)
{
	save.lock = lock;
	assert_int_equal(pthread_create(&save.thread, NULL, save_that_waits, NULL), 0);
	sem_wait(&save.taken);
	save.on = true;
	alarm(WAITS_S);
}

static void thaw(void)
{
	assert_true(save.on);
	alarm(0);
	save.on = false;
	sem_post(&save.thawed);
	pthread_join(save.thread, NULL);
}

static void die_waiting(struct mutex *l)
{
	if (save.on && l == save.lock)
		shim_killed = true;
}

static int lead(s32 epoch, uint32_t flags)
{
	struct plog_lead_args args = { .flags = flags, .epoch = epoch };

	return plog_partition_lead(env.p, &args);
}

static int64_t follow(s64 offset, s32 epoch)
{
	size_t n = make_batch(env.buf, 1, 20, 1, 1000);

	plog_batch_place(env.buf, offset, epoch);
	return append_as(n, ITER, PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA);
}

/* Where the list of epochs says that @epoch ended. */
static s64 end_of(s32 epoch)
{
	s32 asked = epoch, now;
	s64 end;

	assert_int_equal(plog_partition_epoch_end(env.p, &asked, &end, &now), 0);
	return asked == epoch ? end : -1;
}

/* The header is the last thing that an append writes. */
static int freeze_at_the_header(enum shim_file_op op, const char *name, u64 pos, size_t len,
				size_t *done)
{
	if (op == SHIM_WRITE && len == PLOG_BATCH_HEADER && strstr(name, ".log") &&
	    __atomic_exchange_n(&save.armed, false, __ATOMIC_ACQ_REL))
		freeze(&env.p->state_lock);
	return 0;
}

static void test_append_in_a_new_epoch(void **state)
{
	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	shim_file_fault = freeze_at_the_header;
	assert_int_equal(env_open(), 0);
	assert_int_equal(lead(7, PLOG_LEAD_REPLICATED), 0);
	assert_int_equal(follow(0, 5), 0);
	__atomic_store_n(&save.armed, true, __ATOMIC_RELEASE);
	assert_int_equal(follow(1, 6), 1);
	assert_int_equal(end_of(5), 1);
	thaw();
	/* the next save writes it down, and the one after has nothing to say */
	assert_true(plog_flush(env.p));
	assert_false(env.p->epochs_dirty);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(end_of(5), 1);
	assert_int_equal(end_of(6), 2);
	assert_int_equal(view().leader_epoch, 7);
}

/* What plog_partition_lead() does, with a save between the two. */
static void test_change_of_epochs(void **state)
{
	struct plog_partition *p;
	struct plog_epochs *list;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	assert_int_equal(lead(2, PLOG_LEAD_REPLICATED), 0);
	assert_int_equal(follow(0, 2), 0);
	p = env.p;
	mutex_lock(&p->lock);
	list = plog_epoch_list(p);
	assert_int_equal(plog_epoch_prepare(p, list, 3), 0);
	freeze(&env.p->state_lock);
	plog_publish_begin(p);
	plog_epoch_install(p, list, 3);
	plog_publish_end(p);
	plog_epoch_settle(p);
	thaw();
	mutex_unlock(&p->lock);
	/* a change that a later one has replaced is not written any more */
	assert_int_equal(lead(4, PLOG_LEAD_REPLICATED | PLOG_LEAD_LEADER), 0);
	assert_int_equal(put(1, 20, 1), 1);
	assert_true(plog_flush(p));
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().leader_epoch, 4);
	assert_int_equal(end_of(2), 1);
	assert_int_equal(end_of(4), 2);
}

/* The file of the segment that a log begins anew with cannot be made. */
static int freeze_at_the_file(enum shim_file_op op, const char *name, u64 pos, size_t len,
			      size_t *done)
{
	if (op != SHIM_OPEN || strcmp(name, "00000000000000001000.log") ||
	    !__atomic_exchange_n(&save.armed, false, __ATOMIC_ACQ_REL))
		return 0;
	freeze(&env.p->state_lock);
	return -ENOSPC;
}

static void test_start_at_taken_back(void **state)
{
	struct plog_fence f = { .leader_epoch = 2 };
	s64 at = 1000;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	shim_file_fault = freeze_at_the_file;
	assert_int_equal(env_open(), 0);
	assert_int_equal(lead(2, PLOG_LEAD_REPLICATED), 0);
	assert_int_equal(follow(0, 2), 0);
	__atomic_store_n(&save.armed, true, __ATOMIC_RELEASE);
	shim_locking = die_waiting;
	assert_int_equal(plog_partition_start_at(env.p, &f, &at), -ENOSPC);
	shim_locking = NULL;
	shim_killed = false;
	thaw();
	/* it could not be taken back: nothing may be acknowledged that an open throws away */
	assert_int_equal(view().state, PLOG_PARTITION_FENCED);
	assert_int_equal(view().log_end, 1);
	assert_int_equal(walk(PLOG_END_LEO), 1);
	assert_int_equal(follow(1, 2), -EROFS);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 1000);
	assert_int_equal(view().log_end, 1000);
}

/* An index that is built anew waits for the thaw, below a segment's lock. */
static int ignore(void *arg, const struct plog_segment_info *info)
{
	return 0;
}

static void test_times(void **state)
{
	struct plog_fence f = { 0 };
	struct plog_look look;
	s64 base, at = 1;

	(void)state;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(put(1, 20, i), i);
		assert_int_equal(plog_partition_roll(env.p, NULL, &base), 0);
	}
	plog_look(env.p, 0, &look);
	/* who builds one anew uses the segment: nobody else is the last to do so */
	assert_int_equal(plog_segment_use(look.seg, env.p->dir), 0);
	freeze(&look.seg->flock);
	shim_locking = die_waiting;
	assert_int_equal(plog_partition_segments(env.p, 0, ignore, NULL), -EINTR);
	shim_killed = false;
	/* the log start is on the disk, and what lies below it is for the next retention */
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), 0);
	shim_killed = false;
	assert_int_equal(view().segments, 4);
	assert_int_equal(plog_partition_retain(env.p), -EINTR);
	shim_locking = NULL;
	shim_killed = false;
	thaw();
	plog_segment_unuse(look.seg);
	plog_look_put(&look);
	assert_int_equal(plog_partition_retain(env.p), 1);
	assert_int_equal(view().segments, 3);
}

/* ---- the append mutex, which an append holds that waits for the thaw ---- */

static int freeze_at(enum shim_file_op op, enum shim_file_op wanted, const char *name,
		     const char *of, int error)
{
	/* not a worker, who would wait with the locks that it has */
	if (op != wanted || !strstr(name, of) || !shim_locking ||
	    !__atomic_exchange_n(&save.armed, false, __ATOMIC_ACQ_REL))
		return 0;
	freeze(&env.p->lock);
	return error;
}

static int freeze_at_the_state_file(enum shim_file_op op, const char *name, u64 pos, size_t len,
				    size_t *done)
{
	return freeze_at(op, SHIM_WRITE, name, "plog.state", 0);
}

static int freeze_at_the_sync(enum shim_file_op op, const char *name, u64 pos, size_t len,
			      size_t *done)
{
	return freeze_at(op, SHIM_SYNC, name, ".log", -EIO);
}

static void wait_until(bool (*seen)(void))
{
	for (int i = 0; i < 20000 && !seen(); i++)
		usleep(1000);
	assert_true(seen());
}

static bool log_starts_at_2(void)
{
	return view().log_start == 2;
}

/* A log start of 2 is on the disk when who set it is killed. */
static void kill_behind_the_log_start(void)
{
	struct plog_fence f = { 0 };
	s64 at = 2;

	shim_file_fault = freeze_at_the_state_file;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(3, 20, 1), 0);
	__atomic_store_n(&save.armed, true, __ATOMIC_RELEASE);
	shim_locking = die_waiting;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), -EINTR);
	shim_locking = NULL;
	shim_killed = false;
	assert_int_equal(view().log_start, 0);
	thaw();
}

/* It is the log's, and never moves back: to the next command, whether a worker was before it. */
static void test_log_start(void **state)
{
	struct plog_fence f = { 0 };
	s64 at = 1;

	(void)state;
	kill_behind_the_log_start();
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), 0);
	assert_int_equal(at, 2);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 2);
}

static void test_log_start_without_a_command(void **state)
{
	(void)state;
	kill_behind_the_log_start();
	wait_until(log_starts_at_2);
}

static bool is_fenced(void)
{
	return view().state == PLOG_PARTITION_FENCED;
}

/* The files tell an error once: it is not lost with who was to tell of it. */
static void test_failed_sync(void **state)
{
	(void)state;
	shim_file_fault = freeze_at_the_sync;
	assert_int_equal(env_open(), 0);
	assert_int_equal(put(3, 20, 1), 0);
	__atomic_store_n(&save.armed, true, __ATOMIC_RELEASE);
	shim_locking = die_waiting;
	assert_int_equal(plog_partition_sync(env.p), -EIO);
	shim_locking = NULL;
	shim_killed = false;
	assert_int_equal(plog_partition_sync(env.p), -EIO);
	thaw();
	wait_until(is_fenced);
	assert_int_equal(view().error, EIO);
}

static int setup(void **state)
{
	memset(&save, 0, sizeof(save));
	sem_init(&save.taken, 0, 0);
	sem_init(&save.thawed, 0, 0);
	return env_setup(state);
}

/* A flush may still run, and look at what the teardown sets. */
static int teardown(void **state)
{
	if (env.p)
		env_close();
	return env_teardown(state);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_append_in_a_new_epoch), T(test_change_of_epochs),
		T(test_start_at_taken_back), T(test_times), T(test_log_start),
		T(test_log_start_without_a_command), T(test_failed_sync),
	};

	return cmocka_run_group_tests_name("engine waits", tests, NULL, NULL);
}
