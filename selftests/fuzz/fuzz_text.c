// SPDX-License-Identifier: MIT
/*
 * Any bytes as the files that user space reads: properties, topic configuration, a
 * broker's configuration, Kafka's checkpoints, ids and names of topics, meta.properties,
 * a topic's file, partition.metadata, a producer snapshot. What was read is the same
 * after it was written and read again; what is refused must say why. Input: which of
 * them, and the bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "datadir.h"
#include "crc32c.h"
#include "kafkadir.h"
#include "snapshot.h"
#include "topicconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void must(int ok)
{
	if (!ok)
		abort();
}

/* A file with these bytes: its path; closed by the next call. */
static const char *file_of(const void *p, size_t n)
{
	static char path[64];
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("fuzz", 0);
	must(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, p, n, 0) == (ssize_t)n);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

static void properties(const char *text, size_t n)
{
	struct properties a, defaults;
	struct plog_error err = { "" };

	properties_init(&a);
	properties_init(&defaults);
	if (properties_parse(&a, text, n, "name", &err)) {
		must(err.text[0] != 0);
	} else {
		if (topicconfig_check_all(&a, &err))
			must(err.text[0] != 0);
		err.text[0] = 0;
		if (topicconfig_server_defaults(&a, &defaults, &err))
			must(err.text[0] != 0);
	}
	properties_clear(&a);
	properties_clear(&defaults);
}

static void checkpoint(const char *text, size_t n)
{
	struct kafkadir_checkpoint cp = { 0 };
	struct plog_error err = { "" };
	size_t i;

	if (kafkadir_checkpoint_read(&cp, AT_FDCWD, file_of(text, n), &err))
		must(err.text[0] != 0);
	for (i = 0; i < cp.count; i++)
		must(kafkadir_checkpoint_find(&cp, cp.entries[i].topic, cp.entries[i].partition) ==
		     cp.entries[i].offset);
	kafkadir_checkpoint_clear(&cp);
}

static void configuration(const char *text, size_t n)
{
	struct config *config = NULL;
	struct plog_error err = { "" };

	if (config_read(file_of(text, n), NULL, 0, &config, &err))
		must(err.text[0] != 0);
	else
		config_free(config);
}

static void names(const char *text)
{
	uint8_t id[DATADIR_ID_SIZE];
	char back[DATADIR_ID_TEXT + 1];
	struct plog_error err = { "" };

	if (!datadir_id_parse(text, id)) {
		datadir_id_text(id, back);
		must(!strcmp(text, back));
	}
	if (datadir_topic_name_check(text, &err))
		must(err.text[0] != 0);
	(void)topicconfig_nearest(text);
	(void)topicconfig_check(text, text, &err);
}

/* ---- files of a data directory ---- */

#define TOPIC_FILE	"t.topic"
#define FOLDER		"k-0"
#define METADATA	FOLDER "/partition.metadata"

static char folder[64];
static struct datadir *dir;

static void folder_remove(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command))
		perror(folder);
}

static void folder_make(void)
{
	struct plog_error err = { "" };

	snprintf(folder, sizeof(folder), "%s/fuzz_text.XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	must(mkdtemp(folder) != NULL);
	atexit(folder_remove);
	must(!datadir_open(folder, 0, &dir, &err));
}

static void put_file(const char *name, const void *p, size_t n)
{
	int fd = openat(datadir_fd(dir), name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	must(fd >= 0 && write(fd, p, n) == (ssize_t)n);
	close(fd);
}

static void meta(const char *text, size_t n)
{
	struct datadir_meta a, b;
	struct plog_error err = { "" };

	put_file("meta.properties", text, n);
	if (datadir_meta_read(dir, &a, &err)) {
		must(err.text[0] != 0);
	} else {
		must(!datadir_meta_write(dir, &a, &err));
		must(!datadir_meta_read(dir, &b, &err));
		must(a.node_id == b.node_id && !strcmp(a.cluster_id, b.cluster_id) &&
		     !memcmp(a.directory_id, b.directory_id, sizeof(a.directory_id)));
	}
	unlinkat(datadir_fd(dir), "meta.properties", 0);
}

/* The topic of a file of its own, or of what Kafka has left. */
static void topic(const char *name)
{
	struct plog_error err = { "" };
	struct datadir_topic t, *all;
	size_t count;

	if (datadir_topic_read(dir, name, &t, &err)) {
		must(err.text[0] != 0);
	} else {
		must(!strcmp(t.name, name) && t.partitions >= 1);
		must(t.partitions <= DATADIR_PARTITIONS_MAX && !(t.owner.mode & ~0777u));
		for (size_t i = 1; i < t.override_count; i++)
			must(t.overrides[i - 1].partition < t.overrides[i].partition);
		datadir_topic_clear(&t);
	}
	err.text[0] = 0;
	if (datadir_scan(dir, &all, &count, &err)) {
		must(err.text[0] != 0);
		return;
	}
	must(count <= 1);
	datadir_topics_free(all, count);
}

static void topic_file(const char *text, size_t n)
{
	put_file(TOPIC_FILE, text, n);
	topic("t");
	unlinkat(datadir_fd(dir), TOPIC_FILE, 0);
}

static void metadata(const char *text, size_t n)
{
	must(!mkdirat(datadir_fd(dir), FOLDER, 0700));
	put_file(METADATA, text, n);
	topic("k");
	unlinkat(datadir_fd(dir), METADATA, 0);
	must(!unlinkat(datadir_fd(dir), FOLDER, AT_REMOVEDIR));
}

/* ---- a snapshot of producers ---- */

static void snapshot(uint8_t *p, size_t n, bool right)
{
	struct snapshot_entry *entries;
	uint32_t count, sum;
	uint8_t *again;
	size_t size;

	/* no guess would meet the CRC */
	if (right && n >= SNAPSHOT_HEADER) {
		sum = crc32c(0, p + 6, n - 6);
		for (int i = 0; i < 4; i++)
			p[2 + i] = (uint8_t)(sum >> (24 - 8 * i));
	}
	if (snapshot_read(p, n, &entries, &count))
		return;
	again = snapshot_write(entries, count, &size);
	must(again && size == n && !memcmp(p, again, n));
	free(again);
	free(entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static int quiet;
	char *text;

	if (!n)
		return -1;
	/* warnings of unknown keys */
	if (!quiet) {
		quiet = 1;
		must(freopen("/dev/null", "w", stdout) != NULL);
		folder_make();
	}
	text = malloc(n);
	must(text != NULL);
	memcpy(text, p + 1, n - 1);
	text[n - 1] = 0;
	switch (p[0] % 8) {
	case 0:
		properties(text, n - 1);
		break;
	case 1:
		checkpoint(text, n - 1);
		break;
	case 2:
		configuration(text, n - 1);
		break;
	case 3:
		names(text);
		break;
	case 4:
		meta(text, n - 1);
		break;
	case 5:
		topic_file(text, n - 1);
		break;
	case 6:
		metadata(text, n - 1);
		break;
	default:
		snapshot((uint8_t *)text, n - 1, p[0] & 8);
	}
	free(text);
	return 0;
}
