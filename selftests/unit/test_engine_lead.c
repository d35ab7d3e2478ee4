// SPDX-License-Identifier: MIT
/*
 * Leadership under TSan: roles, the lease, and writers that wait for all replicas while epochs
 * change and logs are cut.
 */
#include "engine.h"

#include <pthread.h>

#include <linux/ktime.h>
#include <linux/wait.h>

#define LEADER (PLOG_LEAD_REPLICATED | PLOG_LEAD_LEADER)

static s64 deadline;

static int lead(s32 epoch, uint32_t flags)
{
	struct plog_lead_args args = { .flags = flags, .epoch = epoch };

	return plog_partition_lead(env.p, &args);
}

static int open_leased(void)
{
	int err = env_open();

	deadline = 0;
	if (!err)
		plog_partition_set_lease(env.p, &deadline);
	return err;
}

static int move_hw(s64 to)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };

	return plog_partition_set_hw(env.p, &f, &to);
}

/* One record, locally; the error, or 0 with @args for the wait. */
static int append_one(struct plog_append_args *args, uint32_t flags, bool large)
{
	uint8_t *buf = malloc(BATCH_MAX);
	size_t n = make_batch(buf, 1, large ? 100000 : 10, 1, 1000);
	struct kvec vec = { buf, n };
	struct iov_iter it;
	int err;

	*args = (struct plog_append_args){ .raw = buf, .size = n, .flags = flags };
	if (large) {
		iov_iter_kvec(&it, ITER_SOURCE, &vec, 1, n);
		args->raw = NULL;
		args->from = &it;
	}
	err = plog_partition_append(env.p, args);
	free(buf);
	return err;
}

static void test_lease(void **state)
{
	struct plog_append_args args;
	s64 now = ktime_get_boottime_ns();

	(void)state;
	assert_int_equal(open_leased(), 0);
	deadline = now - 1;
	/* not replicated: it does not care */
	assert_int_equal(append_one(&args, 0, false), 0);
	assert_int_equal(lead(1, LEADER), 0);
	for (int large = 0; large < 2; large++)
		assert_int_equal(append_one(&args, 0, large), -EKEYEXPIRED);
	assert_int_equal(view().log_end, 1);
	assert_int_equal(file_size(FIRST_LOG), view().bytes);
	deadline = now + 3600 * 1000000000LL;
	assert_int_equal(append_one(&args, 0, true), 0);
	shim_clock_ms += 3601 * 1000;
	assert_int_equal(append_one(&args, 0, true), -EKEYEXPIRED);
	deadline = 0;
	assert_int_equal(append_one(&args, 0, true), 0);
}

static int armed;

/* It runs out between the check and the publishing: nothing of the batch is left. */
static int expire(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)pos;
	(void)len;
	(void)done;
	if (op == SHIM_WRITE && strstr(name, ".log") && __atomic_load_n(&armed, __ATOMIC_RELAXED))
		__atomic_store_n(&deadline, 1, __ATOMIC_RELAXED);
	return 0;
}

static void test_lease_ends_while_bytes_are_copied(void **state)
{
	struct plog_append_args args;

	(void)state;
	/* before the log's workers are there, who look at it too */
	shim_file_fault = expire;
	assert_int_equal(open_leased(), 0);
	assert_int_equal(lead(1, LEADER), 0);
	assert_int_equal(append_one(&args, 0, false), 0);
	for (int large = 0; large < 2; large++) {
		deadline = ktime_get_boottime_ns() + 3600 * 1000000000LL;
		__atomic_store_n(&armed, 1, __ATOMIC_RELAXED);
		assert_int_equal(append_one(&args, 0, large), -EKEYEXPIRED);
		__atomic_store_n(&armed, 0, __ATOMIC_RELAXED);
		assert_int_equal(view().log_end, 1);
		assert_int_equal(file_size(FIRST_LOG), view().bytes);
	}
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 1);
	assert_int_equal(walk(PLOG_END_LEO), 1);
}

static void test_min_isr(void **state)
{
	struct plog_append_args args;

	(void)state;
	assert_int_equal(open_leased(), 0);
	assert_int_equal(lead(1, LEADER | PLOG_LEAD_BELOW_MIN_ISR), 0);
	assert_int_equal(view().flags, PLOG_STATE_REPLICATED | PLOG_STATE_LEADER |
				       PLOG_STATE_BELOW_MIN_ISR);
	assert_int_equal(append_one(&args, PLOG_APPEND_ACKS_ALL, false), -EHOSTUNREACH);
	assert_int_equal(append_one(&args, 0, false), 0);
	assert_int_equal(lead(1, LEADER), 0);
	assert_int_equal(append_one(&args, PLOG_APPEND_ACKS_ALL, false), 0);
	/* a configuration leaves the role alone */
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	assert_int_equal(view().flags, PLOG_STATE_REPLICATED | PLOG_STATE_LEADER);
	assert_int_equal(view().high_watermark, 0);
}

/* ---- waiting ---- */

static bool stop;
static int confirmed, uncertain, writing;

static int atomic_read_int(const int *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static void *acks_writer(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		struct plog_append_args args;
		int err = append_one(&args, PLOG_APPEND_ACKS_ALL, false);

		if (err == -EROFS || err == -EHOSTUNREACH) {
			/* it follows for a moment, or is short of replicas */
			usleep(100);
			continue;
		}
		assert_int_equal(err, 0);
		err = plog_partition_wait_acks(env.p, &args);
		assert_true(!err || err == -ESTALE);
		__atomic_fetch_add(err ? &uncertain : &confirmed, 1, __ATOMIC_RELAXED);
		if (!err)
			assert_true(plog_partition_end(env.p, PLOG_END_HW) > args.last_offset ||
				    view().cuts != args.cuts);
	}
	__atomic_fetch_sub(&writing, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *epoch_reader(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		struct plog_epoch_info info[8];
		s32 epoch = 0, now;
		s64 end;

		assert_int_equal(plog_partition_epoch_end(env.p, &epoch, &end, &now), 0);
		assert_true(end == -1 || (end >= 0 && epoch >= 0));
		assert_true(plog_partition_epochs(env.p, 0, info, 8) >= 0);
	}
	return NULL;
}

static void test_waiters(void **state)
{
	unsigned int seed = 7;
	pthread_t t[5];
	s32 epoch = 1;

	(void)state;
	stop = false;
	confirmed = uncertain = 0;
	writing = 4;
	env.config.segment_bytes = 5000;
	assert_int_equal(open_leased(), 0);
	assert_int_equal(lead(epoch, LEADER), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(pthread_create(&t[i], NULL, i < 4 ? acks_writer : epoch_reader,
						NULL), 0);
	for (int i = 0; i < 1500 || !atomic_read_int(&confirmed) ||
			!atomic_read_int(&uncertain); i++) {
		struct plog_fence f = { .leader_epoch = epoch };
		s64 at;

		switch (rand_r(&seed) % 16) {
		case 0:
			assert_int_equal(lead(++epoch, rand_r(&seed) % 3 ? LEADER :
					      PLOG_LEAD_REPLICATED), 0);
			assert_int_equal(lead(++epoch, LEADER), 0);
			break;
		case 1:
			at = view().high_watermark;
			assert_int_equal(plog_partition_truncate(env.p, &f, &at), 0);
			break;
		case 2:
			assert_int_equal(lead(epoch, LEADER | PLOG_LEAD_BELOW_MIN_ISR), 0);
			assert_int_equal(lead(epoch, LEADER), 0);
			break;
		default:
			move_hw(view().log_end);
			usleep(rand_r(&seed) % 300);
		}
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	/* whoever waits still is let go by an epoch */
	assert_int_equal(lead(++epoch, LEADER), 0);
	/* and whoever has looked at stop before and appends only now, by the watermark */
	while (__atomic_load_n(&writing, __ATOMIC_ACQUIRE)) {
		move_hw(view().log_end);
		usleep(1000);
	}
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], NULL);
	print_message("# %d confirmed, %d uncertain, %d epochs\n", confirmed, uncertain, epoch);
	assert_int_equal(walk(PLOG_END_LEO), view().log_end);
}

/* Cut off, and another record in its place below the high watermark: that is not it. */
static void test_cut_ends_a_wait(void **state)
{
	struct plog_append_args args, other;
	struct plog_fence f = { .leader_epoch = 1 };
	s64 at = 0;

	(void)state;
	assert_int_equal(open_leased(), 0);
	assert_int_equal(lead(1, LEADER), 0);
	assert_int_equal(append_one(&args, PLOG_APPEND_ACKS_ALL, false), 0);
	assert_int_equal(plog_partition_truncate(env.p, &f, &at), 0);
	assert_int_equal(append_one(&other, PLOG_APPEND_ACKS_ALL, false), 0);
	assert_int_equal(move_hw(1), 0);
	assert_int_equal(plog_partition_wait_acks(env.p, &args), -ESTALE);
	assert_int_equal(plog_partition_wait_acks(env.p, &other), 0);
	assert_int_equal(lead(2, LEADER), 0);
	assert_int_equal(plog_partition_wait_acks(env.p, &other), -ESTALE);
}

static void *wait_one(void *arg)
{
	struct plog_append_args *args = arg;

	return (void *)(long)plog_partition_wait_acks(env.p, args);
}

static void test_close_ends_a_wait(void **state)
{
	struct plog_append_args args;
	pthread_t t;
	void *ret;

	(void)state;
	assert_int_equal(open_leased(), 0);
	assert_int_equal(lead(1, LEADER), 0);
	assert_int_equal(append_one(&args, PLOG_APPEND_ACKS_ALL, false), 0);
	assert_int_equal(pthread_create(&t, NULL, wait_one, &args), 0);
	usleep(20000);
	plog_partition_get(env.p);
	plog_partition_close(env.p, false);
	pthread_join(t, &ret);
	assert_int_equal((long)ret, -ENODEV);
	plog_partition_put(env.p);
	/* one who was killed does not wait at all */
	env_crash();
	assert_int_equal(open_leased(), 0);
	assert_int_equal(lead(2, LEADER), 0);
	assert_int_equal(append_one(&args, 0, false), 0);
	shim_killed = true;
	assert_int_equal(plog_partition_wait_acks(env.p, &args), -EINTR);
	shim_killed = false;
}

/* A flush may still run, and look at what the teardown sets. */
static int close_and_teardown(void **state)
{
	if (env.p)
		env_close();
	return env_teardown(state);
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, close_and_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_lease), T(test_lease_ends_while_bytes_are_copied), T(test_min_isr),
		T(test_cut_ends_a_wait), T(test_waiters), T(test_close_ends_a_wait),
	};

	return cmocka_run_group_tests_name("engine lead", tests, NULL, NULL);
}
