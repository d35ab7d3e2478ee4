// SPDX-License-Identifier: MIT
/* The data directory itself, in a real folder: names, ids, locks, identity. */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- ids ---- */

static void id_text_round_trip(void **state)
{
	uint8_t id[DATADIR_ID_SIZE], again[DATADIR_ID_SIZE];
	char text[DATADIR_ID_TEXT + 1];

	(void)state;
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(datadir_id_random(id), 0);
		datadir_id_text(id, text);
		assert_int_equal(strlen(text), 22);
		assert_int_not_equal(text[0], '-');
		assert_int_equal(id[6] >> 4, 4);
		assert_int_equal(id[8] >> 6, 2);
		assert_int_equal(datadir_id_parse(text, again), 0);
		assert_memory_equal(id, again, sizeof(id));
	}
}

static void id_text_known(void **state)
{
	/* by: python3 -c 'import base64;print(base64.urlsafe_b64encode(bytes(range(240,256))))' */
	uint8_t id[DATADIR_ID_SIZE];
	char text[DATADIR_ID_TEXT + 1];

	(void)state;
	for (int i = 0; i < 16; i++)
		id[i] = 240 + i;
	datadir_id_text(id, text);
	assert_string_equal(text, "8PHy8_T19vf4-fr7_P3-_w");
	assert_int_equal(datadir_id_parse("8PHy8_T19vf4-fr7_P3-_", id), -EINVAL);
	assert_int_equal(datadir_id_parse("8PHy8_T19vf4-fr7_P3-_ww", id), -EINVAL);
	assert_int_equal(datadir_id_parse("8PHy8_T19vf4-fr7_P3+_w", id), -EINVAL);
	/* bits behind the last byte that no encoder would set */
	assert_int_equal(datadir_id_parse("8PHy8_T19vf4-fr7_P3-_x", id), -EINVAL);
	assert_int_equal(datadir_id_parse("", id), -EINVAL);
}

/* ---- names ---- */

static void names(void **state)
{
	struct plog_error err;
	char longest[DATADIR_TOPIC_MAX + 2];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[DATADIR_TOPIC_MAX + 1] = '\0';
	assert_int_equal(datadir_topic_name_check(longest, &err), -EINVAL);
	longest[DATADIR_TOPIC_MAX] = '\0';
	assert_int_equal(datadir_topic_name_check(longest, &err), 0);
	assert_int_equal(datadir_topic_name_check("a.b_c-D9", &err), 0);
	assert_int_equal(datadir_topic_name_check("...", &err), 0);
	assert_int_equal(datadir_topic_name_check("", &err), -EINVAL);
	assert_int_equal(datadir_topic_name_check(".", &err), -EINVAL);
	assert_int_equal(datadir_topic_name_check("..", &err), -EINVAL);
	assert_int_equal(datadir_topic_name_check("a/b", &err), -EINVAL);
	assert_non_null(strstr(err.text, "a/b"));
	assert_int_equal(datadir_topic_name_check("gr\xc3\xb6\xc3\x9f" "e", &err), -EINVAL);
	assert_true(datadir_topic_names_collide("a.b", "a_b"));
	assert_false(datadir_topic_names_collide("a.b", "a.b"));
	assert_false(datadir_topic_names_collide("a.b", "a-b"));
	assert_false(datadir_topic_names_collide("a.b", "a_bc"));
}

/* ---- the lock ---- */

static void lock_excludes(void **state)
{
	struct plog_error err;
	struct datadir *one, *two;

	(void)state;
	one = open_it(0);
	assert_int_equal(datadir_open(root, 0, &two, &err), -EBUSY);
	assert_null(two);
	assert_non_null(strstr(err.text, root));
	assert_non_null(strstr(err.text, "in use"));
	datadir_close(one);
	one = open_it(0);
	datadir_close(one);
}

/* A descriptor that somebody else keeps, as the module does, keeps the lock. */
static void lock_stays_with_descriptor(void **state)
{
	struct plog_error err;
	struct datadir *one, *two;
	int kept;

	(void)state;
	one = open_it(0);
	kept = dup(datadir_lock_fd(one));
	datadir_close(one);
	assert_int_equal(datadir_open(root, 0, &two, &err), -EBUSY);
	two = open_it(DATADIR_ATTACH);
	datadir_close(two);
	close(kept);
	two = open_it(0);
	datadir_close(two);
}

/* Another process takes the lock in the way of Java's FileChannel. */
static void lock_against_kafka(void **state)
{
	struct plog_error err;
	struct datadir *dir;
	char pid_text[32], byte;
	int ready[2], done[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(done), 0);
	pid = fork();
	if (!pid) {
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
		int fd = open(path(".lock"), O_RDWR | O_CREAT, 0644);

		/* so that a parent that failed does not leave us here for ever */
		close(done[1]);
		if (fcntl(fd, F_SETLK, &lock) < 0)
			_exit(1);
		if (write(ready[1], "x", 1) != 1 || read(done[0], &byte, 1) != 1)
			_exit(2);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(datadir_open(root, 0, &dir, &err), -EBUSY);
	snprintf(pid_text, sizeof(pid_text), "process %d", pid);
	assert_non_null(strstr(err.text, pid_text));
	assert_int_equal(write(done[1], "x", 1), 1);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	dir = open_it(0);
	datadir_close(dir);
	close(ready[0]);
	close(ready[1]);
	close(done[0]);
	close(done[1]);
}

/* An OFD lock does not tell its holder: it is looked up. */
static void lock_names_process(void **state)
{
	struct plog_error err;
	struct datadir *dir;
	char pid_text[32], byte;
	int ready[2], done[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(done), 0);
	pid = fork();
	if (!pid) {
		struct datadir *mine;

		close(done[1]);
		if (datadir_open(root, 0, &mine, NULL) || write(ready[1], "x", 1) != 1 ||
		    read(done[0], &byte, 1) != 1)
			_exit(2);
		datadir_close(mine);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(datadir_open(root, 0, &dir, &err), -EBUSY);
	snprintf(pid_text, sizeof(pid_text), "process %d (test_datadir)", pid);
	assert_non_null(strstr(err.text, pid_text));
	assert_int_equal(write(done[1], "x", 1), 1);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	close(ready[0]);
	close(ready[1]);
	close(done[0]);
	close(done[1]);
}

static void attach_needs_a_server(void **state)
{
	struct plog_error err;
	struct datadir *dir;

	(void)state;
	assert_int_equal(datadir_open(root, DATADIR_ATTACH, &dir, &err), -ENOLCK);
	assert_false(exists(".lock"));
	put(".lock", "");
	assert_int_equal(datadir_open(root, DATADIR_ATTACH, &dir, &err), -ENOLCK);
}

static void open_errors(void **state)
{
	struct plog_error err;
	struct datadir *dir;

	(void)state;
	assert_int_equal(datadir_open(path("no/such"), 0, &dir, &err), -ENOENT);
	assert_int_equal(datadir_open("", DATADIR_CREATE, &dir, &err), -EINVAL);
	put("file", "");
	assert_int_equal(datadir_open(path("file"), DATADIR_CREATE, &dir, &err), -ENOTDIR);
	assert_int_equal(datadir_open(path("file/x"), DATADIR_CREATE, &dir, &err), -ENOTDIR);
	assert_int_equal(datadir_open(path("new/deep/dir"), DATADIR_CREATE, &dir, &err), 0);
	assert_string_equal(datadir_path(dir), path("new/deep/dir"));
	datadir_close(dir);
	/* .lock must not lead somewhere else */
	assert_int_equal(symlink("/etc/passwd", path("new/deep/.lock")), 0);
	assert_int_equal(datadir_open(path("new/deep"), 0, &dir, &err), -ELOOP);
}

static void same_directory(void **state)
{
	(void)state;
	assert_int_equal(mkdir(path("a"), 0755), 0);
	assert_int_equal(mkdir(path("b"), 0755), 0);
	assert_int_equal(symlink("a", path("c")), 0);
	assert_true(datadir_same(path("a"), path("a/../a/")));
	assert_true(datadir_same(path("a"), path("c")));
	assert_false(datadir_same(path("a"), path("b")));
	assert_false(datadir_same(path("a"), path("none")));
}

static void changes_take_turns(void **state)
{
	struct datadir *one, *two;
	struct plog_error err;

	(void)state;
	one = open_it(0);
	two = open_it(DATADIR_ATTACH);
	assert_int_equal(datadir_change_begin(one, 0, &err), 0);
	assert_int_equal(datadir_change_begin(two, 50, &err), -ETIMEDOUT);
	datadir_change_end(one);
	assert_int_equal(datadir_change_begin(two, 50, &err), 0);
	datadir_close(two);
	assert_int_equal(datadir_change_begin(one, 50, &err), 0);
	datadir_close(one);
}

/* ---- identity ---- */

static void meta(void **state)
{
	struct datadir_meta out = { .cluster_id = "MkU3OEVBNTcwNTJENDM2Qk", .node_id = 7 }, in;
	struct plog_error err;
	struct datadir *dir;
	char text[512];

	(void)state;
	dir = open_it(0);
	assert_int_equal(datadir_meta_read(dir, &in, &err), -ENOENT);
	assert_int_equal(datadir_id_random(out.directory_id), 0);
	assert_int_equal(datadir_meta_write(dir, &out, &err), 0);
	assert_int_equal(datadir_meta_read(dir, &in, &err), 0);
	assert_string_equal(in.cluster_id, out.cluster_id);
	assert_int_equal(in.node_id, 7);
	assert_memory_equal(in.directory_id, out.directory_id, DATADIR_ID_SIZE);

	/* as Kafka writes it, in its old version too; keys we do not know stay */
	put("meta.properties", "#\n#Mon Jan 01 00:00:00 UTC 2024\ncluster.id=abc\nversion=0\n"
	    "broker.id=3\nnew.key=x\n");
	assert_int_equal(datadir_meta_read(dir, &in, &err), 0);
	assert_int_equal(in.node_id, 3);
	assert_int_equal(datadir_meta_write(dir, &in, &err), 0);
	get("meta.properties", text, sizeof(text));
	assert_string_equal(text, "cluster.id=abc\nnew.key=x\nnode.id=3\nversion=1\n");

	put("meta.properties", "cluster.id=abc\nversion=2\nnode.id=3\n");
	assert_int_equal(datadir_meta_read(dir, &in, &err), -EINVAL);
	put("meta.properties", "cluster.id=abc\nversion=1\nnode.id=-3\n");
	assert_int_equal(datadir_meta_read(dir, &in, &err), -EINVAL);
	assert_non_null(strstr(err.text, "node.id=-3"));
	put("meta.properties", "version=1\nnode.id=3\n");
	assert_int_equal(datadir_meta_read(dir, &in, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cluster.id is missing"));
	datadir_close(dir);
}

static void leftovers_are_swept(void **state)
{
	struct datadir *dir;

	(void)state;
	assert_int_equal(mkdir(path("a-0.0123456789abcdef0123456789abcdef-delete"), 0755), 0);
	put("a-0.0123456789abcdef0123456789abcdef-delete/f", "x");
	assert_int_equal(mkdir(path("keep-delete"), 0755), 0);
	assert_int_equal(mkdir(path("keep.0123-delete"), 0755), 0);
	put(".plog-0123456789abcdef.tmp", "half a file");
	dir = open_it(0);
	assert_int_equal(entries(""), 2);
	datadir_close(dir);
}

/* Whoever is stopped in the middle of it keeps others out; whoever dies does not. */
static void one_deletes_segments(void **state)
{
	struct plog_error err;
	int fds[2], a, b, status;
	char c = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(mkdir(path("t-0"), 0755), 0);
	put("t-0/00000000000000000007.log", "log");
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		a = open(path("t-0"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		c = datadir_segments_lock(a) ? 'x' : 'l';
		if (write(fds[1], &c, 1) != 1)
			_exit(1);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(c, 'l');
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	a = open(path("t-0"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(datadir_segments_lock(a), -EAGAIN);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(datadir_segments_lock(a), 0);
	b = open(path("t-0"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(datadir_segments_lock(b), -EAGAIN);
	assert_int_equal(datadir_segment_delete(a, 7, &err), 0);
	assert_int_equal(access(path("t-0/00000000000000000007.log"), F_OK), -1);
	close(a);
	assert_int_equal(datadir_segments_lock(b), 0);
	close(b);
	close(fds[0]);
	close(fds[1]);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, folder_make, folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(id_text_round_trip),
		cmocka_unit_test(id_text_known),
		cmocka_unit_test(names),
		CASE(lock_excludes),
		CASE(lock_stays_with_descriptor),
		CASE(lock_against_kafka),
		CASE(lock_names_process),
		CASE(attach_needs_a_server),
		CASE(open_errors),
		CASE(same_directory),
		CASE(changes_take_turns),
		CASE(meta),
		CASE(leftovers_are_swept),
		CASE(one_deletes_segments),
	};

	return cmocka_run_group_tests_name("datadir", tests, NULL, NULL);
}
