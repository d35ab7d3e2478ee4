// SPDX-License-Identifier: MIT
/*
 * The first opening of partitions that Apache Kafka has left: what user space
 * makes of its checkpoints and half-done renames, and the engine of that.
 * env.dir stands for both the data directory and the partition's folder.
 */
#include "engine.h"

#include "kafkadir.h"

#include <dirent.h>
#include <fcntl.h>

#define NEXT_LOG "00000000000000000100.log"

static struct kafkadir kafka;

static int setup(void **state)
{
	memset(&kafka, 0, sizeof(kafka));
	return env_setup(state);
}

static int teardown(void **state)
{
	kafkadir_clear(&kafka);
	return env_teardown(state);
}

static void put_text(const char *name, const char *text)
{
	file_write(name, 0, text, strlen(text));
}

static bool exists(const char *name)
{
	return file_size(name) >= 0;
}

static struct plog_error err;

static int import(void)
{
	int fd = open(env.dir, O_RDONLY | O_DIRECTORY), ret;

	*err.text = 0;
	kafkadir_clear(&kafka);
	ret = kafkadir_import(&kafka, fd, "test", 0, fd, &err);
	close(fd);
	if (ret)
		assert_true(*err.text);
	return ret;
}

static void checkpoints(const char *start, const char *hw, const char *point)
{
	if (start)
		put_text("log-start-offset-checkpoint", start);
	if (hw)
		put_text("replication-offset-checkpoint", hw);
	if (point)
		put_text("recovery-point-offset-checkpoint", point);
}

/* Segments of 100 batches of one record, as a broker's that never knew plog. */
static void make_log(int records)
{
	size_t size = make_batch(env.buf, 1, 200, 0, 1000);

	env.config.segment_bytes = 100 * size;
	env.config.index_interval_bytes = 1000;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < records; i++)
		put(1, 200, i);
	env_close();
	file_remove("plog.state");
	assert_true(records <= 100 || exists(NEXT_LOG));
}

/* A sum over names, sizes and bytes of all files but @but. */
static uint64_t fingerprint(const char *but)
{
	DIR *d = opendir(env.dir);
	uint64_t sum = 0;
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d))) {
		static uint8_t bytes[1 << 20];
		uint64_t h = 14695981039346656037u;
		size_t n;

		if (e->d_name[0] == '.' || (but && strstr(e->d_name, but)))
			continue;
		for (const char *c = e->d_name; *c; c++)
			h = (h ^ (uint8_t)*c) * 1099511628211u;
		n = file_read(e->d_name, bytes, sizeof(bytes));
		for (size_t i = 0; i < n; i++)
			h = (h ^ bytes[i]) * 1099511628211u;
		sum += h;
	}
	closedir(d);
	return sum;
}

static void test_checkpoints_are_honoured(void **state)
{
	struct plog_partition_stats st;

	(void)state;
	make_log(250);
	checkpoints("0\n2\nother 3 7\ntest 0 42\n", "0\n1\ntest 0 240\n", "0\n1\ntest 0 210\n");
	put_text("leader-epoch-checkpoint", "0\n3\n0 0\n4 17\n9 200\n");
	put_text("00000000000000000250.snapshot", "producers");
	put_text("00000000000000000000.log.deleted", "old");
	put_text("00000000000000000100.log.cleaned", "half");
	assert_int_equal(import(), 0);
	env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 42);
	assert_int_equal(view().high_watermark, 240);
	assert_int_equal(view().log_end, 250);
	assert_int_equal(view().leader_epoch, 9);
	assert_int_equal(view().segments, 3);
	/* only the segment with the recovery point in it was read */
	plog_partition_stats(env.p, &st);
	assert_int_equal(st.recovered_bytes, file_size("00000000000000000200.log"));
	env_close();
	assert_true(exists("00000000000000000250.snapshot"));
	assert_true(exists("00000000000000000000.log.deleted"));
	assert_true(exists("00000000000000000100.log.cleaned"));

	/* once only: the state is ours from now on */
	checkpoints("0\n1\ntest 0 99\n", NULL, NULL);
	assert_int_equal(import(), 0);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 42);
	env_close();
}

static void test_unreplicated(void **state)
{
	(void)state;
	make_log(50);
	checkpoints(NULL, "0\n1\ntest 0 20\n", NULL);
	assert_int_equal(import(), 0);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 0);
	assert_int_equal(view().high_watermark, 50);
	assert_int_equal(walk(PLOG_END_HW), 50);
}

static void test_no_word_of_it(void **state)
{
	(void)state;
	/* nothing there */
	assert_int_equal(import(), 0);
	make_log(50);
	assert_int_equal(import(), 0);
	assert_false(exists("plog.state"));
	checkpoints("", "0\n1\nanother 0 20\n", "0\n1\ntest 1 3\n");
	assert_int_equal(import(), 0);
	assert_false(exists("plog.state"));
	/* a line without a log: a topic that was deleted and made anew */
	file_remove(FIRST_LOG);
	checkpoints("0\n1\ntest 0 42\n", NULL, NULL);
	assert_int_equal(import(), 0);
	assert_false(exists("plog.state"));
}

static void test_bad_checkpoints(void **state)
{
	static const char *const bad[] = {
		"1\n0\n", "x\n0\n", "0\n", "0\n1\n", "0\n2\ntest 0 1\n", "0\n0\ntest 0 1\n",
		"0\n1\ntest 0\n", "0\n1\ntest 0 1 2\n", "0\n1\ntest -1 1\n", "0\n1\ntest 0 -1\n",
		"0\n1\ntest 0 9223372036854775808\n", "0\n1\ntest 0x 1\n", "0 1\ntest 0 1\n",
		"0\n1\ntest 0 1", "",
	};

	(void)state;
	make_log(10);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		file_write("log-start-offset-checkpoint", 0, "", 0);
		file_cut("log-start-offset-checkpoint", 0);
		checkpoints(bad[i], NULL, NULL);
		/* the last two are fine */
		if (i + 2 < ARRAY_SIZE(bad)) {
			assert_int_equal(import(), -EINVAL);
			assert_non_null(strstr(err.text, "log-start-offset-checkpoint"));
			assert_false(exists("plog.state"));
		} else {
			assert_int_equal(import(), 0);
			if (exists("plog.state"))
				file_remove("plog.state");
		}
	}
}

static void test_old_formats(void **state)
{
	(void)state;
	for (int magic = 0; magic < 2; magic++) {
		uint8_t byte = magic;
		uint64_t before;

		make_log(150);
		file_write(NEXT_LOG, 16, &byte, 1);
		checkpoints(NULL, NULL, "0\n1\ntest 0 150\n");
		before = fingerprint(NULL);
		assert_int_equal(import(), -EPROTONOSUPPORT);
		assert_non_null(strstr(err.text, "test-0/00000000000000000100.log"));
		assert_non_null(strstr(err.text, magic ? "format 1" : "format 0"));
		assert_true(fingerprint(NULL) == before);
		env_empty();
	}
}

/* A broker that was killed, with preallocate=true and indexes at their full size. */
static void test_zero_tails(void **state)
{
	uint8_t zeros[5000] = { 0 };
	long size;

	(void)state;
	make_log(150);
	size = file_size(NEXT_LOG);
	file_write(NEXT_LOG, 100000, zeros, sizeof(zeros));
	file_write("00000000000000000100.index", 90000, zeros, 5000);
	file_write("00000000000000000100.timeindex", 90000, zeros, 5000);
	/* it had rolled, but not yet cut the one before */
	file_write(FIRST_LOG, 200000, zeros, sizeof(zeros));
	checkpoints(NULL, NULL, "0\n1\ntest 0 0\n");
	assert_int_equal(import(), 0);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 150);
	assert_int_equal(walk(PLOG_END_HW), 150);
	assert_int_equal(file_size(NEXT_LOG), size);
	assert_int_equal(put(1, 200, 7), 150);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(walk(PLOG_END_HW), 151);
}

/* A new active segment, all of it zeros. */
static void test_zeros_alone(void **state)
{
	uint8_t zeros[5000] = { 0 };

	(void)state;
	make_log(100);
	file_write(NEXT_LOG, 0, zeros, sizeof(zeros));
	checkpoints(NULL, NULL, "0\n1\ntest 0 100\n");
	assert_int_equal(import(), 0);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 100);
	assert_int_equal(put(1, 200, 7), 100);
	assert_int_equal(walk(PLOG_END_HW), 101);
}

/* Of a partition that nobody has used: Kafka makes its indexes of zeros all the same. */
static void test_zeros_of_indexes(void **state)
{
	uint8_t zeros[5000] = { 0 };

	(void)state;
	file_write(FIRST_LOG, 0, zeros, 0);
	file_write(FIRST_INDEX, 0, zeros, sizeof(zeros));
	file_write("00000000000000000000.timeindex", 0, zeros, sizeof(zeros));
	checkpoints(NULL, NULL, "0\n1\ntest 0 0\n");
	assert_int_equal(import(), 0);
	assert_int_equal(env_open(), 0);
	/* its dump tool takes zeros for entries, and nothing need ever be appended */
	assert_int_equal(file_size(FIRST_INDEX), 0);
	assert_int_equal(file_size("00000000000000000000.timeindex"), 0);
	assert_int_equal(put(1, 200, 7), 0);
	assert_int_equal(walk(PLOG_END_HW), 1);
}

static void test_damage_cuts_nothing(void **state)
{
	uint64_t before;
	uint8_t byte;

	(void)state;
	make_log(250);
	file_read(FIRST_LOG, &byte, 1);
	byte = 0xa5;
	file_write(FIRST_LOG, 5000, &byte, 1);
	checkpoints(NULL, NULL, "0\n1\ntest 0 0\n");
	assert_int_equal(import(), 0);
	before = fingerprint("index");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(env_open(), -EBADMSG);
		assert_non_null(strstr(env.log, "nothing was cut"));
		assert_true(fingerprint("index") == before);
	}
	/* at the end it is what a killed broker leaves */
	env_empty();
	make_log(250);
	file_cut("00000000000000000200.log", file_size("00000000000000000200.log") - 10);
	checkpoints(NULL, NULL, "0\n1\ntest 0 0\n");
	assert_int_equal(import(), 0);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 249);
	assert_int_equal(walk(PLOG_END_HW), 249);
	env_close();
}

static void test_start_behind_the_end(void **state)
{
	uint64_t before;

	(void)state;
	make_log(150);
	checkpoints("0\n1\ntest 0 1000\n", NULL, NULL);
	assert_int_equal(import(), 0);
	before = fingerprint("index");
	assert_int_equal(env_open(), -EBADMSG);
	assert_non_null(strstr(env.log, "log-start-offset-checkpoint"));
	assert_true(fingerprint("index") == before);
	file_remove("plog.state");
	put_text("log-start-offset-checkpoint", "0\n1\ntest 0 150 \n");
	file_cut("log-start-offset-checkpoint", strlen("0\n1\ntest 0 150 \n"));
	assert_int_equal(import(), 0);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 150);
	assert_int_equal(walk(PLOG_END_HW), 0);
	assert_int_equal(put(1, 200, 7), 150);
}

static void to(const char *base, const char *from, const char *into)
{
	static const char *const kinds[] = { "log", "index", "timeindex" };

	for (int i = 0; i < 3; i++) {
		char a[512], b[512];

		snprintf(a, sizeof(a), "%s/%s.%s%s", env.dir, base, kinds[i], from);
		snprintf(b, sizeof(b), "%s/%s.%s%s", env.dir, base, kinds[i], into);
		rename(a, b);
	}
}

static void rename_one(const char *from, const char *into)
{
	char a[512], b[512];

	snprintf(a, sizeof(a), "%s/%s", env.dir, from);
	snprintf(b, sizeof(b), "%s/%s", env.dir, into);
	assert_int_equal(rename(a, b), 0);
}

/*
 * Segments 0 and 100 were being replaced by one, without the records 50 to 149,
 * when the broker was killed. @stage: how far it had got.
 */
static void one_swap(int stage)
{
	static uint8_t bytes[1 << 20];
	size_t half, n;

	make_log(250);
	half = file_read(FIRST_LOG, bytes, sizeof(bytes)) / 2;
	n = file_read(NEXT_LOG, bytes + half, sizeof(bytes) - half) / 2;
	memmove(bytes + half, bytes + half + n, n);
	file_write("00000000000000000000.log.swap", 0, bytes, half + n);
	file_write("00000000000000000000.index.swap", 0, "", 0);
	if (stage == 5) {
		/* of two that replace, only one was renamed */
		file_write("00000000000000000000.log.cleaned", 0, bytes, half);
	}
	if (stage >= 1 && stage < 5)
		to("00000000000000000000", "", ".deleted");
	if (stage >= 2 && stage < 5)
		to("00000000000000000100", "", ".deleted");
	if (stage == 3)
		to("00000000000000000000", ".swap", "");
	if (stage == 3)		/* indexes first, the log last */
		rename_one(FIRST_LOG, "00000000000000000000.log.swap");
	checkpoints(NULL, NULL, "0\n1\ntest 0 250\n");
	assert_int_equal(import(), 0);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 250);
	assert_int_equal(walk(PLOG_END_HW), stage == 5 ? 250 : 150);
	assert_int_equal(view().segments, stage == 5 ? 3 : 2);
	assert_int_equal(put(1, 200, 7), 250);
	env_close();
	assert_false(exists("00000000000000000000.log.swap"));
	if (stage == 5) {
		assert_true(exists("00000000000000000000.log.cleaned"));
		assert_true(exists("00000000000000000000.log.deleted"));
	} else {
		assert_true(exists("00000000000000000000.log.deleted"));
		assert_true(exists("00000000000000000100.log.deleted"));
		assert_int_equal(file_size(FIRST_LOG), half + n);
	}
	env_empty();
}

static void test_half_done_swaps(void **state)
{
	(void)state;
	for (int stage = 0; stage <= 5; stage++)
		one_swap(stage);
	/* one that is not whole is not for us to decide about */
	make_log(150);
	put_text("00000000000000000000.log.swap", "half a batch");
	checkpoints(NULL, NULL, "0\n1\ntest 0 150\n");
	assert_int_equal(import(), -EINVAL);
	assert_non_null(strstr(err.text, ".swap"));
}

static void test_forget(void **state)
{
	struct kafkadir_checkpoint cp;
	char text[200] = "";
	int fd;

	(void)state;
	checkpoints("0\n3\na 0 1\ntest 0 42\ntest 1 43\n", "0\n1\na 0 20\n", "garbage\n");
	fd = open(env.dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(kafkadir_forget(fd, "test", &err), 0);
	file_read("log-start-offset-checkpoint", text, sizeof(text));
	assert_string_equal(text, "0\n1\na 0 1\n");
	memset(text, 0, sizeof(text));
	file_read("recovery-point-offset-checkpoint", text, sizeof(text));
	assert_string_equal(text, "garbage\n");
	assert_int_equal(kafkadir_checkpoint_read(&cp, fd, "replication-offset-checkpoint", &err),
			 0);
	assert_int_equal(kafkadir_checkpoint_find(&cp, "a", 0), 20);
	assert_int_equal(kafkadir_checkpoint_find(&cp, "a", 1), -1);
	assert_int_equal(kafkadir_checkpoint_find(&cp, "aa", 0), -1);
	kafkadir_checkpoint_clear(&cp);
	close(fd);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_checkpoints_are_honoured), T(test_unreplicated), T(test_no_word_of_it),
		T(test_bad_checkpoints), T(test_old_formats), T(test_zero_tails),
		T(test_zeros_alone), T(test_zeros_of_indexes), T(test_damage_cuts_nothing),
		T(test_start_behind_the_end),
		T(test_half_done_swaps), T(test_forget),
	};

	return cmocka_run_group_tests_name("engine import", tests, NULL, NULL);
}
