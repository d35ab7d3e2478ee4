// SPDX-License-Identifier: MIT
/* The data directory, in a real folder under $TMPDIR. */
#include "cm.h"

#include "datadir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[PATH_MAX];

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(root, sizeof(root), "%s/test_datadir.XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[PATH_MAX + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static const char *path(const char *name)
{
	static char paths[4][PATH_MAX + NAME_MAX + 2];
	static unsigned int next;
	char *p = paths[next++ % 4];

	snprintf(p, sizeof(paths[0]), "%s/%s", root, name);
	return p;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(path(name), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void get(const char *name, char *text, size_t size)
{
	FILE *f = fopen(path(name), "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	fclose(f);
}

static bool exists(const char *name)
{
	return access(path(name), F_OK) == 0;
}

/* Entries but . .. .lock */
static int entries(const char *name)
{
	DIR *d = opendir(path(name));
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
		     strcmp(e->d_name, ".lock");
	closedir(d);
	return n;
}

static struct datadir *open_it(unsigned int flags)
{
	struct plog_error err = { "" };
	struct datadir *dir;
	int ret = datadir_open(root, flags, &dir, &err);

	if (ret)
		print_message("# %s\n", err.text);
	assert_int_equal(ret, 0);
	return dir;
}

static void make_topic(struct datadir *dir, const char *name, uint32_t partitions)
{
	struct plog_error err = { "" };
	struct datadir_topic topic;

	datadir_topic_init(&topic, name);
	topic.partitions = partitions;
	if (datadir_topic_create(dir, &topic, &err))
		fail_msg("%s", err.text);
	datadir_topic_clear(&topic);
}

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

/* ---- topics ---- */

static void topic_round_trip(void **state)
{
	struct datadir_owner special = { .uid = 12, .gid = 34, .mode = 0640 };
	struct datadir_topic out, *topics;
	struct plog_error err;
	struct datadir *dir;
	size_t count;

	(void)state;
	dir = open_it(0);
	datadir_topic_init(&out, "orders");
	out.partitions = 3;
	out.owner = (struct datadir_owner){ .uid = 1000, .gid = 50, .mode = 0600 };
	out.node = false;
	assert_int_equal(datadir_topic_set_owner(&out, 2, &special), 0);
	assert_int_equal(properties_set(&out.config, "segment.bytes", "1000000"), 0);
	assert_int_equal(properties_set(&out.config, "partition.like", "a = b\\c\nd #"), 0);
	assert_int_equal(datadir_topic_create(dir, &out, &err), 0);
	datadir_close(dir);

	dir = open_it(0);
	assert_int_equal(datadir_scan(dir, &topics, &count, &err), 0);
	assert_int_equal(count, 1);
	assert_string_equal(topics[0].name, "orders");
	assert_memory_equal(topics[0].id, out.id, DATADIR_ID_SIZE);
	assert_int_equal(topics[0].partitions, 3);
	assert_false(topics[0].node);
	assert_false(topics[0].adopted);
	assert_int_equal(datadir_topic_owner(&topics[0], 0).uid, 1000);
	assert_int_equal(datadir_topic_owner(&topics[0], 2).uid, 12);
	assert_int_equal(datadir_topic_owner(&topics[0], 2).gid, 34);
	assert_int_equal(datadir_topic_owner(&topics[0], 2).mode, 0640);
	assert_int_equal(topics[0].config.count, 2);
	assert_string_equal(properties_get(&topics[0].config, "segment.bytes"), "1000000");
	assert_string_equal(properties_get(&topics[0].config, "partition.like"), "a = b\\c\nd #");
	datadir_topics_free(topics, count);
	datadir_topic_clear(&out);
	datadir_close(dir);
}

/* Nothing is written that the next start could not read. */
static void topic_files_are_bounded(void **state)
{
	struct datadir_topic topic, *topics;
	struct plog_error err;
	struct datadir *dir;
	char *large;
	size_t count;

	(void)state;
	large = calloc(1, (1 << 20) + 1);
	assert_non_null(large);
	memset(large, 'x', 1 << 20);
	dir = open_it(0);
	datadir_topic_init(&topic, "orders");
	assert_int_equal(properties_set(&topic.config, "k", large), 0);
	assert_int_equal(datadir_topic_create(dir, &topic, &err), -EFBIG);
	datadir_topic_clear(&topic);
	datadir_topic_init(&topic, "orders");
	assert_int_equal(datadir_topic_create(dir, &topic, &err), 0);
	assert_int_equal(properties_set(&topic.config, "k", large), 0);
	assert_int_equal(datadir_topic_write(dir, &topic, &err), -EFBIG);
	datadir_close(dir);

	dir = open_it(0);
	assert_int_equal(datadir_scan(dir, &topics, &count, &err), 0);
	assert_int_equal(count, 1);
	assert_int_equal(topics[0].config.count, 0);
	datadir_topics_free(topics, count);
	/* the mark of a deletion finds room in any file that can be read */
	memcpy(large, "k=", 2);
	put("orders.topic", large);
	assert_int_equal(datadir_topic_write(dir, &topic, &err), -EFBIG);
	assert_int_equal(datadir_topic_delete(dir, "orders", &err), 0);
	datadir_topic_clear(&topic);
	datadir_close(dir);
	free(large);
}

static void folders_bear_the_id(void **state)
{
	char text[128], id[DATADIR_ID_TEXT + 1], wanted[128];
	struct datadir_topic topic;
	struct plog_error err;
	struct datadir *dir;
	bool made;
	int fd;

	(void)state;
	dir = open_it(0);
	make_topic(dir, "t", 2);
	assert_int_equal(datadir_topic_read(dir, "t", &topic, &err), 0);
	datadir_id_text(topic.id, id);
	snprintf(wanted, sizeof(wanted), "version: 0\ntopic_id: %s", id);
	get("t-1/partition.metadata", text, sizeof(text));
	assert_string_equal(text, wanted);

	fd = datadir_partition_open(dir, &topic, 1, &made, &err);
	assert_true(fd >= 0);
	assert_false(made);
	close(fd);

	/* a crash may leave the file empty: it is written again */
	put("t-1/partition.metadata", "");
	fd = datadir_partition_open(dir, &topic, 1, &made, &err);
	assert_true(fd >= 0);
	close(fd);
	get("t-1/partition.metadata", text, sizeof(text));
	assert_string_equal(text, wanted);

	put("t-0/partition.metadata", "version: 0\ntopic_id: 8PHy8_T19vf4-fr7_P3-_w\n");
	assert_int_equal(datadir_partition_open(dir, &topic, 0, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "another topic"));

	/* a folder that is gone comes back, and that is told */
	teardown(NULL);
	assert_int_equal(mkdir(root, 0755), 0);
	datadir_close(dir);
	dir = open_it(0);
	fd = datadir_partition_open(dir, &topic, 1, &made, &err);
	assert_true(fd >= 0);
	assert_true(made);
	close(fd);
	assert_true(exists("t-1/partition.metadata"));

	/* and one that leads elsewhere is refused */
	assert_int_equal(symlink("t-1", path("t-0")), 0);
	assert_true(datadir_partition_open(dir, &topic, 0, NULL, &err) < 0);
	datadir_topic_clear(&topic);
	datadir_close(dir);
}

static void many_folders(void **state)
{
	struct plog_error err = { "" };
	char wanted[128], text[128], name[64], id[DATADIR_ID_TEXT + 1];
	struct datadir_topic topic;
	struct datadir *dir;
	int i;

	(void)state;
	/* so many are synced together, which must leave the same behind */
	dir = open_it(0);
	make_topic(dir, "t", 40);
	assert_int_equal(datadir_topic_read(dir, "t", &topic, &err), 0);
	assert_int_equal(topic.partitions, 40);
	datadir_id_text(topic.id, id);
	snprintf(wanted, sizeof(wanted), "version: 0\ntopic_id: %s", id);
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "t-%d/partition.metadata", i);
		get(name, text, sizeof(text));
		assert_string_equal(text, wanted);
	}
	/* what a crash has left empty or taken is made good by the next change */
	put("t-7/partition.metadata", "");
	assert_int_equal(unlink(path("t-8/partition.metadata")), 0);
	topic.partitions = 41;
	assert_int_equal(datadir_topic_write(dir, &topic, &err), 0);
	for (i = 7; i < 41; i += i == 8 ? 32 : 1) {
		snprintf(name, sizeof(name), "t-%d/partition.metadata", i);
		get(name, text, sizeof(text));
		assert_string_equal(text, wanted);
	}
	datadir_topic_clear(&topic);
	datadir_close(dir);
}

static void create_refuses(void **state)
{
	struct datadir_topic topic;
	struct plog_error err;
	struct datadir *dir;

	(void)state;
	dir = open_it(0);
	make_topic(dir, "t", 1);
	datadir_topic_init(&topic, "t");
	assert_int_equal(datadir_topic_create(dir, &topic, &err), -EEXIST);
	assert_non_null(strstr(err.text, "\"t\""));
	datadir_topic_init(&topic, "a/b");
	assert_int_equal(datadir_topic_create(dir, &topic, &err), -EINVAL);
	datadir_topic_init(&topic, "u");
	topic.partitions = 0;
	assert_int_equal(datadir_topic_create(dir, &topic, &err), -EINVAL);
	topic.partitions = DATADIR_PARTITIONS_MAX + 1;
	assert_int_equal(datadir_topic_create(dir, &topic, &err), -EINVAL);
	/* a folder of that name without a topic file is somebody's */
	assert_int_equal(mkdir(path("u-5"), 0755), 0);
	topic.partitions = 1;
	assert_int_equal(datadir_topic_create(dir, &topic, &err), -EEXIST);
	assert_false(exists("u-0"));
	assert_false(exists("u.topic"));
	datadir_close(dir);
}

/* Half made: nothing of it stays. */
static void create_undoes(void **state)
{
	struct datadir_topic topic;
	struct plog_error err;
	struct datadir *dir;

	(void)state;
	dir = open_it(0);
	put("t-2", "a file where the folder should be");
	datadir_topic_init(&topic, "t");
	topic.partitions = 4;
	assert_true(datadir_topic_create(dir, &topic, &err) < 0);
	assert_non_null(strstr(err.text, "t-2"));
	assert_int_equal(entries(""), 1);
	datadir_close(dir);
}

static void longest_name(void **state)
{
	char name[DATADIR_TOPIC_MAX + 1];
	struct plog_error err;
	struct datadir *dir;

	(void)state;
	memset(name, 'x', DATADIR_TOPIC_MAX);
	name[DATADIR_TOPIC_MAX] = '\0';
	dir = open_it(0);
	make_topic(dir, name, 12);
	assert_int_equal(entries(""), 13);
	assert_int_equal(datadir_topic_delete(dir, name, &err), 0);
	assert_int_equal(entries(""), 0);
	datadir_close(dir);
}

/* A growth that was refused. */
static void growth_is_taken_back(struct datadir *dir, struct datadir_topic *before)
{
	struct datadir_topic topic;
	struct plog_error err;

	assert_int_equal(datadir_topic_shrink(dir, before, &err), 0);
	assert_false(exists("t-2"));
	assert_true(exists("t-1/partition.metadata"));
	/* t.topic, its two folders, and nothing to be swept */
	assert_int_equal(entries("."), 3);
	assert_int_equal(datadir_topic_read(dir, "t", &topic, &err), 0);
	assert_int_equal(topic.partitions, 2);
	datadir_topic_clear(&topic);
}

static void more_partitions(void **state)
{
	struct datadir_topic topic;
	struct plog_error err;
	struct datadir *dir;

	(void)state;
	dir = open_it(0);
	make_topic(dir, "t", 2);
	assert_int_equal(datadir_topic_read(dir, "t", &topic, &err), 0);
	topic.partitions = 5;
	assert_int_equal(datadir_topic_write(dir, &topic, &err), 0);
	assert_true(exists("t-4/partition.metadata"));
	topic.partitions = 4;
	assert_int_equal(datadir_topic_write(dir, &topic, &err), -EINVAL);
	datadir_topic_clear(&topic);
	assert_int_equal(datadir_topic_read(dir, "t", &topic, &err), 0);
	assert_int_equal(topic.partitions, 5);
	topic.partitions = 2;
	growth_is_taken_back(dir, &topic);
	datadir_topic_clear(&topic);
	datadir_topic_init(&topic, "none");
	assert_int_equal(datadir_topic_write(dir, &topic, &err), -ENOENT);
	datadir_close(dir);
}

static void delete_removes_all(void **state)
{
	struct plog_error err;
	struct datadir *dir;

	(void)state;
	dir = open_it(0);
	make_topic(dir, "t", 3);
	make_topic(dir, "t-1", 2);	/* its folders look alike */
	put("t-1/00000000000000000000.log", "records");
	assert_int_equal(datadir_topic_delete(dir, "t", &err), 0);
	assert_false(exists("t-0"));
	assert_false(exists("t-1"));
	assert_false(exists("t-2"));
	assert_true(exists("t-1-0"));
	assert_int_equal(entries(""), 3);
	assert_int_equal(datadir_topic_delete(dir, "t", &err), -ENOENT);
	assert_int_equal(datadir_topic_delete(dir, "../x", &err), -EINVAL);
	datadir_close(dir);
}

/* A power cut in the middle of a deletion: it is finished, never undone in part. */
static void delete_is_finished(void **state)
{
	struct datadir_topic *topics;
	struct plog_error err;
	struct datadir *dir, *second;
	char text[1024];
	size_t count;

	(void)state;
	dir = open_it(0);
	make_topic(dir, "t", 2);
	make_topic(dir, "u", 1);
	get("t.topic", text, sizeof(text));
	strcat(text, "deleting=true\n");
	put("t.topic", text);
	assert_int_equal(rename(path("t-0"),
				path("t-0.0123456789abcdef0123456789abcdef-delete")), 0);
	put("t-0.0123456789abcdef0123456789abcdef-delete/x", "");

	/* who reads meanwhile does not see it */
	second = open_it(DATADIR_ATTACH);
	assert_int_equal(datadir_scan(second, &topics, &count, &err), 0);
	assert_int_equal(count, 1);
	datadir_topics_free(topics, count);
	datadir_close(second);
	datadir_close(dir);

	dir = open_it(0);
	assert_int_equal(entries(""), 2);
	assert_true(exists("u-0"));
	datadir_close(dir);

	/* the same, but made again before a restart */
	dir = open_it(0);
	get("u.topic", text, sizeof(text));
	strcat(text, "deleting=true\n");
	put("u.topic", text);
	put("u-0/old", "");
	make_topic(dir, "u", 1);
	assert_false(exists("u-0/old"));
	datadir_close(dir);
	dir = open_it(0);
	assert_true(exists("u-0"));
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

/* A directory of Apache Kafka: folders, no topic files. */
static void adopt_kafka(void **state)
{
	char id[DATADIR_ID_TEXT + 1];
	struct datadir_topic *topics;
	struct plog_error err;
	struct datadir *dir;
	size_t count;

	(void)state;
	put("meta.properties", "cluster.id=abc\nversion=1\nnode.id=1\n");
	put("recovery-point-offset-checkpoint", "0\n0\n");
	assert_int_equal(mkdir(path("__cluster_metadata-0"), 0755), 0);
	assert_int_equal(mkdir(path("a-b-0"), 0755), 0);
	assert_int_equal(mkdir(path("a-b-2"), 0755), 0);
	put("a-b-0/partition.metadata", "version: 0\ntopic_id: 8PHy8_T19vf4-fr7_P3-_w");
	put("a-b-2/partition.metadata", "version: 0\ntopic_id: 8PHy8_T19vf4-fr7_P3-_w");
	assert_int_equal(mkdir(path("old-0"), 0755), 0);
	assert_int_equal(mkdir(path("no_partition"), 0755), 0);
	assert_int_equal(mkdir(path("stray-01"), 0755), 0);
	assert_int_equal(mkdir(path("x-0.0123456789abcdef0123456789abcdef-future"), 0755), 0);
	dir = open_it(0);
	assert_int_equal(datadir_scan(dir, &topics, &count, &err), 0);
	assert_int_equal(count, 2);
	assert_string_equal(topics[0].name, "a-b");
	assert_true(topics[0].adopted);
	assert_int_equal(topics[0].partitions, 3);
	datadir_id_text(topics[0].id, id);
	assert_string_equal(id, "8PHy8_T19vf4-fr7_P3-_w");
	assert_string_equal(topics[1].name, "old");
	assert_int_equal(topics[1].partitions, 1);
	assert_int_equal(datadir_topic_write(dir, &topics[0], &err), 0);
	datadir_topics_free(topics, count);
	assert_true(exists("a-b.topic"));
	assert_true(exists("a-b-1/partition.metadata"));

	/* Kafka runs on it again and adds a partition: it counts */
	assert_int_equal(mkdir(path("a-b-3"), 0755), 0);
	assert_int_equal(datadir_scan(dir, &topics, &count, &err), 0);
	assert_false(topics[0].adopted);
	assert_int_equal(topics[0].partitions, 4);
	datadir_topics_free(topics, count);

	put("old-0/partition.metadata", "version: 0\ntopic_id: nonsense\n");
	assert_int_equal(datadir_scan(dir, &topics, &count, &err), -EINVAL);
	assert_non_null(strstr(err.text, "old-0"));
	put("old-0/partition.metadata", "version: 0\ntopic_id: 8PHy8_T19vf4-fr7_P3-_w");
	assert_int_equal(mkdir(path("old-1"), 0755), 0);
	put("old-1/partition.metadata", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ");
	assert_int_equal(datadir_scan(dir, &topics, &count, &err), -EINVAL);
	assert_non_null(strstr(err.text, "different topic ids"));
	datadir_close(dir);
}

static void bad_topic_files(void **state)
{
	static const char * const bad[] = {
		"partitions=0\n", "partitions=-1\n", "partitions=65537\n", "partitions=x\n",
		"uid=-1\n", "uid=4294967295\n", "gid= \n", "mode=1000\n", "mode=9\n",
		"node=perhaps\n", "topic.id=short\n", "deleting=yes\n",
		"partition.70000.uid=1\n", "partition.1.mode=x\n", "\\u00zz=1\n", "=value\n",
	};
	struct datadir_topic topic, *topics;
	struct plog_error err;
	struct datadir *dir;
	size_t count;

	(void)state;
	dir = open_it(0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put("t.topic", bad[i]);
		if (datadir_topic_read(dir, "t", &topic, &err) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
		assert_non_null(strstr(err.text, "t.topic, line 1"));
		assert_int_equal(datadir_scan(dir, &topics, &count, &err), -EINVAL);
		assert_null(topics);
	}
	/* what is not understood can still be deleted */
	assert_int_equal(datadir_topic_delete(dir, "t", &err), 0);
	assert_false(exists("t.topic"));
	put("t.topic", "partitions=2\nfuture.key=kept\n");
	assert_int_equal(datadir_topic_read(dir, "t", &topic, &err), 0);
	assert_string_equal(properties_get(&topic.config, "future.key"), "kept");
	datadir_topic_clear(&topic);
	datadir_close(dir);
}

static void owner_overrides(void **state)
{
	struct datadir_owner a = { 1, 1, 0600 }, b = { 2, 2, 0660 };
	struct datadir_topic topic;

	(void)state;
	datadir_topic_init(&topic, "t");
	topic.owner = a;
	assert_int_equal(datadir_topic_set_owner(&topic, 5, &b), 0);
	assert_int_equal(datadir_topic_set_owner(&topic, 1, &b), 0);
	assert_int_equal(datadir_topic_set_owner(&topic, 3, &b), 0);
	assert_int_equal(datadir_topic_set_owner(&topic, 4, &a), 0);
	assert_int_equal(topic.override_count, 3);
	assert_int_equal(topic.overrides[1].partition, 3);
	assert_int_equal(datadir_topic_set_owner(&topic, 3, &a), 0);
	assert_int_equal(topic.override_count, 2);
	assert_int_equal(datadir_topic_owner(&topic, 3).uid, 1);
	assert_int_equal(datadir_topic_owner(&topic, 5).uid, 2);
	datadir_topic_clear(&topic);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(id_text_round_trip),
		cmocka_unit_test(id_text_known),
		cmocka_unit_test(names),
		cmocka_unit_test(owner_overrides),
		CASE(lock_excludes),
		CASE(lock_stays_with_descriptor),
		CASE(lock_against_kafka),
		CASE(lock_names_process),
		CASE(attach_needs_a_server),
		CASE(open_errors),
		CASE(same_directory),
		CASE(changes_take_turns),
		CASE(meta),
		CASE(topic_round_trip),
		CASE(topic_files_are_bounded),
		CASE(folders_bear_the_id),
		CASE(many_folders),
		CASE(create_refuses),
		CASE(create_undoes),
		CASE(longest_name),
		CASE(more_partitions),
		CASE(delete_removes_all),
		CASE(delete_is_finished),
		CASE(leftovers_are_swept),
		CASE(adopt_kafka),
		CASE(bad_topic_files),
		CASE(one_deletes_segments),
	};

	return cmocka_run_group_tests_name("datadir", tests, NULL, NULL);
}
