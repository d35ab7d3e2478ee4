// SPDX-License-Identifier: MIT
/* Topics of a data directory, in a real folder. */
#include "folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
	folder_remove(NULL);
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

#define CASE(f) cmocka_unit_test_setup_teardown(f, folder_make, folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		CASE(adopt_kafka),
		CASE(bad_topic_files),
		cmocka_unit_test(owner_overrides),
	};

	return cmocka_run_group_tests_name("datadir topics", tests, NULL, NULL);
}
