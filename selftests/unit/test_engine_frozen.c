// SPDX-License-Identifier: MIT
/*
 * What an append leaves that is killed while the filesystem is frozen: nothing that anybody
 * sees, and nothing that comes back.
 */
#include "engine.h"

#include "../../kmod/engine.h"

/* Killed at the header, with the filesystem frozen since the payload: the bytes that are there. */
static size_t bytes_there;

static int freeze_and_kill(enum shim_file_op op, const char *name, u64 pos, size_t len,
			   size_t *done)
{
	(void)pos;
	if (op == SHIM_TRUNCATE && strstr(name, ".log"))
		assert_false(shim_frozen);
	if (op != SHIM_WRITE || !strstr(name, ".log") || (len != PLOG_BATCH_HEADER && !bytes_there))
		return 0;
	shim_killed = shim_frozen = true;
	*done = bytes_there < len ? bytes_there : len;
	return -EINTR;
}

static void append_when_frozen(enum how how)
{
	struct plog_view before = view();

	shim_file_fault = freeze_and_kill;
	/* a whole batch, to the last byte, that is not one */
	bytes_there = how == RAW ? BATCH_MAX : 0;
	assert_int_equal(append_as(make_batch(env.buf, 2, 500, 1, 1000), how, 0), -EINTR);
	/* so it stays until the thaw, and the next one is killed too */
	assert_int_equal(append_as(make_batch(env.buf, 2, 500, 2, 1000), how, 0), -EINTR);
	shim_file_fault = NULL;
	assert_int_equal(view().log_end, before.log_end);
	assert_int_equal(view().state, PLOG_PARTITION_ONLINE);
	assert_true((u64)file_size(FIRST_LOG) > before.bytes);
	assert_int_equal(walk(PLOG_END_LEO), before.log_end);
}

static void test_killed_when_frozen(void **state)
{
	(void)state;
	for (int how = RAW; how < HOWS; how++) {
		s64 base, to = 1;

		for (int then = 0; then < 5; then++) {
			struct plog_fence f = { 0 };
			int64_t end;

			assert_int_equal(env_open(), 0);
			end = put(2, 500, 7) + 2;
			append_when_frozen(how);
			shim_killed = shim_frozen = false;
			switch (then) {
			case 0:		/* an append, shorter than what lies there */
				assert_int_equal(put(1, 10, 3), end++);
				assert_int_equal(file_size(FIRST_LOG), view().bytes);
				break;
			case 1:
				assert_int_equal(plog_partition_roll(env.p, &f, &base), 0);
				assert_int_equal(base, end);
				break;
			case 2:
				to = end = end - 2;
				assert_int_equal(plog_partition_truncate(env.p, &f, &to), 0);
				break;
			case 3:		/* a clean end; and one that cannot wait, which is none */
				env_close();
				assert_int_equal(env_open(), 0);
				assert_int_equal(view().log_end, end);
				assert_true(env.p->clean_on_disk);
				break;
			default:
				shim_killed = shim_frozen = true;
				env_close();
				shim_killed = shim_frozen = false;
				assert_int_equal(env_open(), 0);
				assert_false(env.p->clean_on_disk);
				/* a batch that is all there is taken, as after any crash */
				end += view().log_end > end ? 2 : 0;
				break;
			}
			env_crash();
			assert_int_equal(env_open(), 0);
			assert_int_equal(view().log_end, end);
			assert_int_equal(walk(PLOG_END_LEO), end);
			env_close();
			env_empty();
		}
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_killed_when_frozen) };

	return cmocka_run_group_tests_name("engine, frozen", tests, NULL, NULL);
}
