// SPDX-License-Identifier: MIT
/*
 * Leader epochs: look-ups, elections, the file, what the log says where the file does
 * not, truncation by epoch, replicas' appends.
 */
#include "engine.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <linux/slab.h>

#include "../../kmod/engine.h"
#include "../../kmod/epoch.h"

#define FILE_NAME PLOG_EPOCH_NAME

/* ---- help ---- */

/* "epoch:start" of each entry, as the partition tells them. */
static const char *epochs(void)
{
	static char text[4096];
	struct plog_epoch_info info[64];
	int n = plog_partition_epochs(env.p, 0, info, 64);
	size_t len = 0;

	assert_true(n >= 0);
	text[0] = 0;
	for (int i = 0; i < n; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%d:%lld", i ? " " : "",
				info[i].epoch, (long long)info[i].start);
	return text;
}

static const char *file(void)
{
	static char text[8192];

	memset(text, 0, sizeof(text));
	file_read(FILE_NAME, text, sizeof(text) - 1);
	return text;
}

static void set_file(const char *text)
{
	if (file_size(FILE_NAME) > 0)
		file_cut(FILE_NAME, 0);
	file_write(FILE_NAME, 0, text, strlen(text));
}

static void end_of(s32 asked, s32 epoch, s64 end)
{
	s32 found = asked, now;
	s64 at = 99;

	assert_int_equal(plog_partition_epoch_end(env.p, &found, &at, &now), 0);
	assert_int_equal(found, epoch);
	assert_int_equal(at, end);
	assert_int_equal(now, view().leader_epoch);
}

static int lead(s32 epoch, uint32_t flags)
{
	struct plog_lead_args args = { .flags = flags, .epoch = epoch };

	return plog_partition_lead(env.p, &args);
}

#define LEADER (PLOG_LEAD_REPLICATED | PLOG_LEAD_LEADER)
#define FOLLOWER PLOG_LEAD_REPLICATED

/* A batch of @count records for @offset and @epoch behind what is at @at; its size. */
static size_t replica(size_t at, s64 offset, s32 epoch, unsigned int count)
{
	size_t n = make_batch(env.buf + at, count, 50, (unsigned int)offset, 1000);

	put_unaligned_be64(offset, env.buf + at);
	put_unaligned_be32(epoch, env.buf + at + 12);
	return n;
}

#define REPLICA (PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA)

static int64_t follow(s64 offset, s32 epoch, unsigned int count)
{
	return append_as(replica(0, offset, epoch, count), ITER, REPLICA);
}

/* {0 from 0, 2 from 100, 5 from 250}, log end 300. */
static void make_b26(void)
{
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 30; i++) {
		if (i == 10)
			assert_int_equal(lead(2, LEADER), 0);
		if (i == 25)
			assert_int_equal(lead(5, LEADER), 0);
		assert_int_equal(put(10, 20, i), 10 * i);
	}
	assert_string_equal(epochs(), "0:0 2:100 5:250");
}

/* Go on in a copy of the directory, and back to it. */
static char master[64];

static void branch(void)
{
	char to[64];

	env_snapshot(to);
	strcpy(master, env.dir);
	strcpy(env.dir, to);
}

static void back(void)
{
	env_wipe();
	strcpy(env.dir, master);
}

/* ---- look-ups ---- */

static void test_end_of(void **state)
{
	(void)state;
	make_b26();
	assert_int_equal(view().log_end, 300);
	end_of(0, 0, 100);
	end_of(1, 0, 100);
	end_of(2, 2, 250);
	end_of(3, 2, 250);
	end_of(4, 2, 250);
	end_of(5, 5, 300);
	end_of(6, -1, -1);
	end_of(-1, -1, -1);
	end_of(INT_MIN, -1, -1);
	end_of(INT_MAX, -1, -1);
}

static void test_epoch_at(void **state)
{
	struct plog_fence f = { .leader_epoch = 5 };
	s32 epoch, now;
	s64 to = 120;

	(void)state;
	make_b26();
	assert_int_equal(plog_partition_set_hw(env.p, &f, &to), 0);
	for (s64 at = 0; at <= 300; at += 10) {
		assert_int_equal(plog_partition_epoch_at(env.p, at, &epoch, &now), 0);
		assert_int_equal(epoch, at < 100 ? 0 : at < 250 ? 2 : 5);
		assert_int_equal(now, 5);
	}
	assert_int_equal(plog_partition_epoch_at(env.p, 301, &epoch, &now), 0);
	assert_int_equal(epoch, -1);
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &to), 0);
	/* what is gone is asked for: the start of what is there */
	assert_string_equal(epochs(), "2:120 5:250");
	end_of(0, 0, 120);
	end_of(1, 1, 120);
	end_of(2, 2, 250);
	assert_int_equal(plog_partition_epoch_at(env.p, 119, &epoch, &now), 0);
	assert_int_equal(epoch, -1);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_string_equal(epochs(), "2:120 5:250");
	/* the file may have more; it follows with the next change */
	assert_int_equal(lead(6, LEADER), 0);
	assert_string_equal(file(), "0\n3\n2 120\n5 250\n6 300\n");
}

/* ---- elections ---- */

static void test_election_without_a_write(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	assert_string_equal(epochs(), "0:0");	/* a lone broker leads from the start */
	end_of(0, 0, 0);
	assert_int_equal(plog_partition_set_epoch(env.p, 3), 0);
	assert_string_equal(epochs(), "3:0");
	assert_string_equal(file(), "0\n1\n3 0\n");
	put(2, 10, 0);
	assert_int_equal(lead(4, LEADER), 0);
	assert_string_equal(file(), "0\n2\n3 0\n4 2\n");
	assert_int_equal(lead(6, LEADER), 0);
	assert_string_equal(epochs(), "3:0 6:2");
	assert_string_equal(file(), "0\n2\n3 0\n6 2\n");
	end_of(4, 3, 2);
	end_of(6, 6, 2);
	/* a follower notes nothing: its leader's batches tell */
	assert_int_equal(lead(8, FOLLOWER), 0);
	assert_string_equal(epochs(), "3:0 6:2");
	assert_int_equal(view().leader_epoch, 8);
	assert_int_equal(lead(7, LEADER), -ESTALE);
	assert_int_equal(lead(8, 1u << 7), -EINVAL);
	assert_int_equal(lead(-1, LEADER), -EINVAL);
	assert_int_equal(plog_partition_set_epoch(env.p, 7), -ESTALE);
	env_crash();
	/* whether it crashed or not */
	env.config.flags = PLOG_STATE_REPLICATED;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(env_open(), 0);
		assert_string_equal(epochs(), "3:0 6:2");
		assert_int_equal(view().leader_epoch, 8);
		env_close();
	}
}

/* The empty epoch outlives the file, by the state. */
static void test_torn_at_the_election(void **state)
{
	(void)state;
	make_b26();
	assert_int_equal(lead(9, LEADER), 0);
	assert_string_equal(epochs(), "0:0 2:100 5:250 9:300");
	env_crash();
	for (long size = file_size(FILE_NAME); size-- > 0;) {
		branch();
		file_cut(FILE_NAME, size);
		env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
		assert_int_equal(env_open(), 0);
		assert_string_equal(epochs(), "0:0 2:100 5:250 9:300");
		assert_int_equal(view().leader_epoch, 9);
		env_close();
		assert_string_equal(file(), "0\n4\n0 0\n2 100\n5 250\n9 300\n");
		back();
	}
}

/* Any write of the election fails: it does not happen, and the next one does. */
static int fail_at, seen_ops;

static int fail_one(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	if ((op != SHIM_WRITE && op != SHIM_SYNC && op != SHIM_OPEN && op != SHIM_TRUNCATE) ||
	    (strcmp(name, FILE_NAME) && strcmp(name, "plog.state")))
		return 0;
	if (seen_ops++ != fail_at)
		return 0;
	if (done)
		*done = len / 2;
	return -ENOSPC;
}

static void test_election_on_a_full_disk(void **state)
{
	bool failed = true;

	(void)state;
	for (fail_at = 0; failed; fail_at++) {
		env_wipe();
		assert_int_equal(mkdir(env.dir, 0755), 0);
		env.config.flags = 0;
		make_b26();
		seen_ops = 0;
		shim_file_fault = fail_one;
		failed = lead(9, LEADER) != 0;
		shim_file_fault = NULL;
		assert_string_equal(epochs(), failed ? "0:0 2:100 5:250" :
						       "0:0 2:100 5:250 9:300");
		assert_int_equal(view().leader_epoch, failed ? 5 : 9);
		if (fail_at & 1) {
			assert_int_equal(lead(9, LEADER), 0);
			assert_string_equal(epochs(), "0:0 2:100 5:250 9:300");
			assert_string_equal(file(), "0\n4\n0 0\n2 100\n5 250\n9 300\n");
		}
		env_crash();
		env.config.flags = PLOG_STATE_REPLICATED;
		assert_int_equal(env_open(), 0);
		assert_int_equal(walk(PLOG_END_LEO), 300);
		/* half way it may have happened, or not; never anything else */
		if (strcmp(epochs(), "0:0 2:100 5:250"))
			assert_string_equal(epochs(), "0:0 2:100 5:250 9:300");
		env_close();
	}
	assert_true(fail_at >= 6);
}

static void test_no_memory(void **state)
{
	int err = 1;

	(void)state;
	make_b26();
	for (int n = 1; err; n++) {
		shim_fail_alloc = n;
		err = lead(9, LEADER);
		shim_fail_alloc = 0;
		if (err) {
			assert_int_equal(err, -ENOMEM);
			assert_string_equal(epochs(), "0:0 2:100 5:250");
		}
	}
	assert_string_equal(epochs(), "0:0 2:100 5:250 9:300");
	for (int n = 1, ok = 0; !ok; n++) {
		shim_fail_alloc = n;
		ok = follow(300, 9, 1) >= 0;
		shim_fail_alloc = 0;
	}
	env_close();
	for (int n = 1, ok = 0; !ok; n++) {
		shim_fail_alloc = n;
		ok = !env_open();
		shim_fail_alloc = 0;
	}
	assert_string_equal(epochs(), "0:0 2:100 5:250 9:300");
}

/* ---- the file ---- */

static void parse(const char *text, int want)
{
	struct plog_epoch_builder b;
	char *copy = malloc(strlen(text) ? strlen(text) : 1);

	memcpy(copy, text, strlen(text));
	assert_int_equal(plog_epoch_parse(copy, strlen(text), &b), want);
	if (!want) {
		struct plog_epochs *list = plog_epoch_finish(&b);
		size_t room = plog_epoch_text_size(list ? list->count : 0);
		char *again = malloc(room);

		assert_int_equal(plog_epoch_format(list, 0, again, room), strlen(text));
		assert_memory_equal(again, text, strlen(text));
		free(again);
		kvfree(list);
	}
	free(copy);
}

static void test_parse(void **state)
{
	(void)state;
	parse("0\n0\n", 0);
	parse("0\n1\n0 0\n", 0);
	parse("0\n3\n0 0\n2 100\n5 250\n", 0);
	parse("0\n1\n2147483647 9223372036854775807\n", 0);
	for (const char *const *bad = (const char *const[]){
		     "", "0", "0\n", "1\n0\n", "0\n0", "0\n0\n\n", "0\n1\n", "0\n0\n0 0\n",
		     "0\n1\n0 0", "0\n1\n0 0\n\n", "0\n1\n0  0\n", "0\n1\n 0 0\n", "0\n1\n0 0 \n",
		     "0\n1\n00 0\n", "0\n1\n0 00\n", "0\n1\n+1 0\n", "0\n1\n-1 0\n", "0\n1\n0 -1\n",
		     "0\n1\n0\t0\n", "0\r\n1\r\n0 0\r\n", "0\n2\n0 0\n0 5\n", "0\n2\n0 0\n1 0\n",
		     "0\n2\n1 0\n0 5\n", "0\n2\n0 5\n1 3\n", "0\n1\n2147483648 0\n",
		     "0\n1\n0 9223372036854775808\n", "0\n1\n0 99999999999999999999999999\n",
		     "0\n99999999999\n", "0\n-1\n", "0\n2\n0 0\n", "0\n1\n0 0\n1 1\n", "0\n1\nx y\n",
		     "0\n1\n0x1 0\n", NULL }; *bad; bad++)
		parse(*bad, -EBADMSG);
	/* a zero byte is not an end */
	assert_int_equal(plog_epoch_parse("0\n0\n\0", 5, &(struct plog_epoch_builder){ 0 }),
			 -EBADMSG);
}

/* What somebody puts into the file: the log has the last word. */
static void test_hostile_files(void **state)
{
	static const char *const files[] = {
		NULL, "", "0\n0\n", "garbage", "0\n1\n0 0\n", "0\n2\n0 0\n5 250\n",
		"0\n3\n0 0\n2 101\n5 250\n", "0\n3\n0 0\n2 110\n5 250\n",
		"0\n3\n0 0\n2 90\n5 250\n", "0\n3\n0 0\n3 100\n5 250\n",
		"0\n3\n1 0\n2 100\n5 250\n", "0\n4\n0 0\n2 100\n5 250\n9 260\n",
		"0\n4\n0 0\n2 100\n5 250\n9 5000\n", "0\n3\n0 5\n2 100\n5 250\n",
		"0\n2\n0 0\n2 100\n", "0\n1\n2147483647 9223372036854775807\n",
		"0\n4\n0 0\n2 100\n3 200\n5 250\n", "0\n1\n5 0\n", "0\n1\n5 250\n",
		"0\n3\n0 0\n2 100\n5 240\n", "0\n3\n0 0\n2 100\n5 260\n",
	};
	(void)state;
	env.config.segment_bytes = 3000;
	make_b26();
	assert_true(view().segments > 3);
	env_close();
	env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(files); i++) {
		const char *text = files[i / 2];

		branch();
		if (text)
			set_file(text);
		else
			file_remove(FILE_NAME);
		if (i & 1) {
			/* after an unclean stop */
			assert_int_equal(env_open(), 0);
			put(1, 10, 1);
			env_crash();
			if (text)
				set_file(text);
		}
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().leader_epoch, 5);
		/* older ones may be listed no more; but a clean stop knows what it wrote */
		if (i & 1 && text && !strcmp(text, "0\n1\n5 250\n"))
			assert_string_equal(epochs(), "5:250");
		else
			assert_string_equal(epochs(), "0:0 2:100 5:250");
		assert_int_equal(walk(PLOG_END_LEO), 300 + (i & 1));
		env_close();
		back();
	}
}

/* No regular file there: elections cannot be noted, and say so; the rest goes on. */
static void test_not_a_file(void **state)
{
	char path[128];

	(void)state;
	make_b26();
	env_close();
	file_remove(FILE_NAME);
	snprintf(path, sizeof(path), "%s/" FILE_NAME, env.dir);
	assert_int_equal(symlink("/etc/hostname", path), 0);
	assert_int_equal(env_open(), 0);
	assert_string_equal(epochs(), "0:0 2:100 5:250");
	assert_int_equal(lead(9, LEADER), -EINVAL);
	assert_int_equal(view().leader_epoch, 5);
	assert_int_equal(put(10, 20, 1), 300);
	file_remove(FILE_NAME);
	assert_int_equal(lead(9, LEADER), 0);
	assert_string_equal(file(), "0\n4\n0 0\n2 100\n5 250\n9 310\n");
}

/* No file, and behind a clean stop a batch that is damaged to begin below zero: it is none. */
static void test_damaged_offset(void **state)
{
	static const uint8_t base[] = { 0xff, 0xff, 0xff, 0xff, 0xff }, last_delta = 0x31;

	(void)state;
	assert_int_equal(env_open(), 0);
	put(10, 20, 1);
	env_close();
	file_remove(FILE_NAME);
	file_write("00000000000000000000.log", 0, base, sizeof(base));
	file_write("00000000000000000000.log", 23, &last_delta, 1);
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().leader_epoch, 0);
	assert_int_equal(view().log_end, 10);
}

/* Many epochs in many segments, and no file: found in less than a walk of the log. */
static int reads;

static int count_reads(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)name;
	(void)pos;
	(void)len;
	(void)done;
	reads += op == SHIM_READ;
	return 0;
}

static void test_rebuilt(void **state)
{
	char before[4096];
	unsigned int seed = 5;
	s32 epoch = 0;

	(void)state;
	env.config.segment_bytes = 40000;
	env.config.index_interval_bytes = 1000;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 4000; i++) {
		if (i % 150 == 149)
			assert_int_equal(plog_partition_set_epoch(env.p, ++epoch + rand_r(&seed) % 2),
					 0);
		epoch = view().leader_epoch;
		put(1 + rand_r(&seed) % 3, 10 + rand_r(&seed) % 300, i);
	}
	strcpy(before, epochs());
	env_close();
	file_remove(FILE_NAME);
	shim_file_fault = count_reads;
	assert_int_equal(env_open(), 0);
	shim_file_fault = NULL;
	print_message("# %d epochs found with %d reads\n", epoch, reads);
	assert_string_equal(epochs(), before);
	env_crash();
	/* and from a checkpoint that has only some of them */
	set_file("0\n1\n0 0\n");
	assert_int_equal(env_open(), 0);
	assert_string_equal(epochs(), before);
}

/* A compacted follower's log has gaps, and epochs of which nothing is left. */
static void test_rebuilt_with_gaps(void **state)
{
	size_t n = 0;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	env.config.segment_bytes = 2000;
	assert_int_equal(env_open(), 0);
	assert_string_equal(epochs(), "");
	end_of(0, -1, -1);
	assert_int_equal(lead(20, FOLLOWER), 0);
	n += replica(n, 7, 1, 1);
	n += replica(n, 100, 1, 2);
	n += replica(n, 500, 4, 1);
	n += replica(n, 501, 4, 1);
	n += replica(n, 900, 11, 3);
	assert_int_equal(append_as(n, ITER, REPLICA), 7);
	for (int i = 0; i < 40; i++)
		assert_int_equal(follow(1000 + 10 * i, i < 20 ? 11 : 12, 2), 1000 + 10 * i);
	assert_string_equal(epochs(), "1:7 4:500 11:900 12:1200");
	for (int i = 0; i < 3; i++) {
		if (i == 2)
			env_crash();
		else
			env_close();
		if (!i)
			assert_string_equal(file(), "0\n4\n1 7\n4 500\n11 900\n12 1200\n");
		if (file_size(FILE_NAME) >= 0)
			file_remove(FILE_NAME);
		assert_int_equal(env_open(), 0);
		assert_string_equal(epochs(), "1:7 4:500 11:900 12:1200");
	}
	/* entries that compaction leaves without batches are right too */
	assert_int_equal(follow(1400, 12, 2), 1400);
	env_crash();
	set_file("0\n6\n0 0\n1 5\n3 300\n4 400\n11 900\n12 1200\n");
	assert_int_equal(env_open(), 0);
	assert_string_equal(epochs(), "0:0 1:5 3:300 4:400 11:900 12:1200");
	/* but not a last one that begins where a later one does, behind batches of its own */
	env_crash();
	set_file("0\n3\n1 7\n4 500\n11 1200\n");
	assert_int_equal(env_open(), 0);
	assert_string_equal(epochs(), "1:7 4:500 11:900 12:1200");
}

static void test_more_epochs_than_are_kept(void **state)
{
	struct plog_epoch_info *info = calloc(PLOG_EPOCHS_MAX + 1, sizeof(*info));
	const int count = PLOG_EPOCHS_MAX + 100;
	size_t n = 0;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	assert_int_equal(lead(INT_MAX, FOLLOWER), 0);
	for (int i = 0; i < count; i++)
		n += replica(n, i, i, 1);
	assert_int_equal(append_as(n, ITER, REPLICA), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(plog_partition_epochs(env.p, 0, info, PLOG_EPOCHS_MAX + 1),
				 PLOG_EPOCHS_MAX);
		assert_int_equal(info[0].epoch, 100);
		assert_int_equal(info[PLOG_EPOCHS_MAX - 1].epoch, count - 1);
		end_of(50, 50, 100);
		end_of(101, 101, 102);
		env_close();
		file_remove(FILE_NAME);
		assert_int_equal(env_open(), 0);
	}
	free(info);
}

/* A tail that a power cut took, with the epochs in it. */
static void test_lost_tail(void **state)
{
	(void)state;
	make_b26();
	assert_int_equal(lead(9, LEADER), 0);
	env_crash();
	file_cut(FIRST_LOG, file_size(FIRST_LOG) / 300 * 120);
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	assert_true(view().log_end > 100 && view().log_end < 150);
	assert_string_equal(epochs(), "0:0 2:100");
	assert_int_equal(view().leader_epoch, 9);
}

/* ---- truncation ---- */

static s32 cut_by_epoch(s32 epoch, s64 end)
{
	struct plog_fence f = { .leader_epoch = view().leader_epoch };
	s64 at = end;

	assert_int_equal(plog_partition_truncate_epoch(env.p, &f, &epoch, &at), 0);
	assert_int_equal(at, view().log_end);
	return epoch;
}

static void test_truncate(void **state)
{
	struct plog_fence f = { .leader_epoch = 5 };
	s64 to = 300;

	(void)state;
	make_b26();
	/* a leader goes on in its epoch, from where it cut */
	to = 200;
	assert_int_equal(plog_partition_truncate(env.p, &f, &to), 0);
	assert_string_equal(epochs(), "0:0 2:100 5:200");
	assert_string_equal(file(), "0\n3\n0 0\n2 100\n5 200\n");
	assert_int_equal(lead(6, FOLLOWER), 0);
	f.leader_epoch = 6;
	/* 5 was noted at the end, and nothing written: gone with a truncation to there */
	to = 200;
	assert_int_equal(plog_partition_truncate(env.p, &f, &to), 0);
	assert_string_equal(epochs(), "0:0 2:100");
	assert_string_equal(file(), "0\n2\n0 0\n2 100\n");
	assert_int_equal(follow(200, 4, 1), 200);
	to = 100;
	assert_int_equal(plog_partition_truncate(env.p, &f, &to), 0);
	assert_string_equal(epochs(), "0:0");
	to = 0;
	assert_int_equal(plog_partition_truncate(env.p, &f, &to), 0);
	assert_string_equal(epochs(), "");
	assert_string_equal(file(), "0\n0\n");
	assert_int_equal(view().leader_epoch, 6);
	env_crash();
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	assert_string_equal(epochs(), "");
}

/* B27: 0 to 9 replicated and 10 to 12 alone in epoch 0; the leader of 1 began at 10. */
static void test_diverged(void **state)
{
	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	assert_int_equal(lead(0, LEADER), 0);
	for (int i = 0; i < 13; i++)
		put(1, 10, i);
	assert_int_equal(lead(1, FOLLOWER), 0);
	assert_int_equal(cut_by_epoch(0, 10), -1);
	assert_int_equal(view().log_end, 10);
	assert_int_equal(follow(10, 1, 1), 10);
	assert_int_equal(follow(11, 1, 1), 11);
	assert_string_equal(epochs(), "0:0 1:10");
	/* nothing to do: the leader is ahead */
	assert_int_equal(cut_by_epoch(1, 50), -1);
	assert_int_equal(view().log_end, 12);
}

/* KIP-279: a fast leader change; the leader's epoch is not known here. */
static void test_asked_again(void **state)
{
	(void)state;
	make_b26();
	assert_int_equal(lead(7, FOLLOWER), 0);
	/* asked for 5, the leader has 3 at most, which ended at 400: 2 is the largest here */
	assert_int_equal(cut_by_epoch(3, 400), 2);
	assert_int_equal(view().log_end, 250);
	assert_string_equal(epochs(), "0:0 2:100");
	/* asked for 2, its largest is 1: that of 0 is left here */
	assert_int_equal(cut_by_epoch(1, 170), 0);
	assert_int_equal(view().log_end, 100);
	assert_int_equal(cut_by_epoch(0, 60), -1);
	assert_int_equal(view().log_end, 60);
	assert_string_equal(epochs(), "0:0");
	assert_int_equal(walk(PLOG_END_LEO), 60);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 60);
}

static void test_unknown_epoch(void **state)
{
	struct plog_fence f = { .leader_epoch = 5 };
	s64 hw = 220, start = 210;
	s32 epoch = 5;

	(void)state;
	make_b26();
	assert_int_equal(plog_partition_set_hw(env.p, &f, &hw), 0);
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &start), 0);
	assert_int_equal(plog_partition_truncate_epoch(env.p, &(struct plog_fence){
						       .leader_epoch = 4 }, &epoch, &hw), -ESTALE);
	assert_int_equal(lead(7, FOLLOWER), 0);
	/* it knows nothing: back to what is committed */
	assert_int_equal(cut_by_epoch(-1, -1), -1);
	assert_int_equal(view().log_end, 220);
	assert_int_equal(view().high_watermark, 220);
	/* an offset without an epoch; never below the log start */
	assert_int_equal(cut_by_epoch(-1, 50), -1);
	assert_int_equal(view().log_end, 210);
	assert_int_equal(view().log_start, 210);
	assert_int_equal(view().high_watermark, 210);
}

/* ---- replicas' appends ---- */

static void test_replica_epochs(void **state)
{
	size_t n, first;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	assert_int_equal(lead(6, FOLLOWER), 0);
	first = replica(0, 0, 2, 1);
	n = first + replica(first, 1, 4, 1);
	assert_int_equal(append_as(n, ITER, REPLICA), 0);
	assert_string_equal(epochs(), "2:0 4:1");
	/* of a later epoch than this was fetched in */
	assert_int_equal(follow(2, 7, 1), -ESTALE);
	/* epochs that fall, against the log and in one call */
	assert_int_equal(follow(2, 3, 1), -EINVAL);
	assert_int_equal(follow(2, -1, 1), -EINVAL);
	first = replica(0, 2, 6, 1);
	n = first + replica(first, 3, 5, 1);
	assert_int_equal(append_as(n, ITER, REPLICA), -EINVAL);
	assert_int_equal(view().log_end, 2);
	assert_string_equal(epochs(), "2:0 4:1");
	assert_int_equal(append_as(first, ITER, REPLICA), 2);
	assert_string_equal(epochs(), "2:0 4:1 6:2");
	/* the file follows later; the log tells */
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_string_equal(epochs(), "2:0 4:1 6:2");
}

/* The epochs of what was refused leave no trace. */
static void test_refused_replica(void **state)
{
	size_t first, n;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(env_open(), 0);
	assert_int_equal(lead(9, FOLLOWER), 0);
	assert_int_equal(follow(0, 1, 1), 0);
	first = replica(0, 1, 3, 1);
	n = first + replica(first, 2, 5, 1);
	env.buf[n - 1] ^= 1;
	assert_int_equal(append_as(n, ITER, REPLICA), -EBADMSG);
	assert_string_equal(epochs(), "1:0");
	env.buf[n - 1] ^= 1;
	assert_int_equal(append_as(n, ITER, REPLICA), 1);
	assert_string_equal(epochs(), "1:0 3:1 5:2");
}

/* The leader's log start lies inside a batch: an empty follower takes it whole. */
static void test_first_batch_below(void **state)
{
	struct plog_fence f = { .leader_epoch = 3 };
	s64 at;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	for (int round = 0; round < 2; round++) {
		assert_int_equal(env_open(), 0);
		assert_int_equal(lead(3, FOLLOWER), 0);
		if (round) {
			/* what was here is older than all the leader has */
			assert_int_equal(follow(0, 1, 5), 0);
			assert_int_equal(follow(5, 1, 5), 5);
		}
		at = 105;
		assert_int_equal(plog_partition_start_at(env.p, &f, &at), 0);
		assert_int_equal(at, 105);
		assert_int_equal(view().log_start, 105);
		assert_int_equal(view().high_watermark, 105);
		assert_int_equal(view().bytes, 0);
		assert_string_equal(epochs(), "");
		assert_int_equal(walk(PLOG_END_LEO), 0);
		/* one that ends before is none of it; one that only touches neither */
		assert_int_equal(follow(95, 2, 5), -EINVAL);
		assert_int_equal(follow(100, 2, 5), -EINVAL);
		assert_int_equal(follow(102, 2, 10), 102);
		assert_int_equal(view().log_start, 105);
		assert_int_equal(view().log_end, 112);
		assert_int_equal(walk(PLOG_END_LEO), 10);
		assert_string_equal(epochs(), "2:105");
		/* not empty any more */
		assert_int_equal(follow(110, 2, 10), -EINVAL);
		assert_int_equal(follow(112, 3, 1), 112);
		if (round)
			env_crash();
		else
			env_close();
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().log_start, 105);
		assert_int_equal(view().log_end, 113);
		assert_string_equal(epochs(), "2:105 3:112");
		assert_int_equal(walk(PLOG_END_LEO), 11);
		env_close();
		env_wipe();
		assert_int_equal(mkdir(env.dir, 0755), 0);
	}
}

/* The same where what is deleted still lies in the files, base offset and all. */
static void test_first_batch_below_again(void **state)
{
	struct plog_fence f = { .leader_epoch = 3 };
	s64 at;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED;
	env.config.segment_bytes = 3000;
	assert_int_equal(env_open(), 0);
	assert_int_equal(lead(3, FOLLOWER), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(follow(10 * i, 1, 10), 10 * i);
	at = 1000;
	assert_int_equal(plog_partition_set_hw(env.p, &f, &at), 0);
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), 0);
	assert_int_equal(view().log_start, 1000);
	/* base 0 is that of a segment that is there */
	assert_int_equal(follow(0, 2, 1200), 0);
	assert_int_equal(view().log_end, 1200);
	assert_int_equal(view().log_start, 1000);
	assert_int_equal(view().segments, 1);
	assert_int_equal(walk(PLOG_END_LEO), 1200);
	for (int i = 0; i < 50; i++)
		assert_int_equal(follow(1200 + 10 * i, 2, 10), 1200 + 10 * i);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 1000);
	assert_int_equal(view().log_end, 1700);
	assert_int_equal(walk(PLOG_END_LEO), 1700);
}

static void test_start_at_refused(void **state)
{
	struct plog_fence f = { .leader_epoch = 5 };
	s64 at = 400;

	(void)state;
	make_b26();
	assert_int_equal(plog_partition_start_at(env.p, &f, &at), -EINVAL);
	assert_int_equal(lead(5, FOLLOWER), 0);
	at = 299;
	assert_int_equal(plog_partition_start_at(env.p, &f, &at), -ERANGE);
	at = S64_MAX;
	assert_int_equal(plog_partition_start_at(env.p, &f, &at), -ERANGE);
	f.leader_epoch = 4;
	at = 400;
	assert_int_equal(plog_partition_start_at(env.p, &f, &at), -ESTALE);
	assert_int_equal(view().log_end, 300);
	assert_int_equal(walk(PLOG_END_LEO), 300);
	assert_string_equal(epochs(), "0:0 2:100 5:250");
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_end_of), T(test_epoch_at), T(test_election_without_a_write),
		T(test_torn_at_the_election), T(test_election_on_a_full_disk),
		T(test_no_memory), T(test_parse), T(test_hostile_files), T(test_not_a_file),
		T(test_damaged_offset),
		T(test_rebuilt), T(test_rebuilt_with_gaps), T(test_more_epochs_than_are_kept),
		T(test_lost_tail), T(test_truncate), T(test_diverged), T(test_asked_again),
		T(test_unknown_epoch), T(test_replica_epochs), T(test_refused_replica),
		T(test_first_batch_below), T(test_first_batch_below_again),
		T(test_start_at_refused),
	};

	return cmocka_run_group_tests_name("engine epoch", tests, NULL, NULL);
}
