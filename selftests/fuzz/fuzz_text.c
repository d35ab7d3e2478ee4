// SPDX-License-Identifier: MIT
/*
 * Any bytes as the files that user space reads: properties, topic configuration, a
 * broker's configuration, Kafka's checkpoints, ids and names of topics, meta.properties,
 * a topic's file, partition.metadata, a producer snapshot, what Kafka or a compaction has
 * left in a partition's folder. What was read is the same after it was written and read
 * again; what is refused must say why. Input: which of them, and the bytes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* ---- the data directory that files lie in ---- */

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

static void remove_file(const char *name)
{
	must(!unlinkat(datadir_fd(dir), name, 0));
}

/* ---- texts ---- */

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

#define CHECKPOINT	"replication-offset-checkpoint"

static void checkpoint(const char *text, size_t n)
{
	struct kafkadir_checkpoint cp = { 0 }, again = { 0 };
	struct plog_error err = { "" };
	bool sorted = true;
	size_t i;

	put_file(CHECKPOINT, text, n);
	if (kafkadir_checkpoint_read(&cp, datadir_fd(dir), CHECKPOINT, &err)) {
		must(err.text[0] != 0 && !cp.count);
		remove_file(CHECKPOINT);
		return;
	}
	for (i = 0; i < cp.count; i++) {
		int order = i ? strcmp(cp.entries[i - 1].topic, cp.entries[i].topic) : -1;

		must(order <= 0 && cp.entries[i].offset >= 0 && cp.entries[i].topic[0]);
		must(order || cp.entries[i - 1].partition <= cp.entries[i].partition);
		sorted &= order || cp.entries[i - 1].partition < cp.entries[i].partition;
	}
	/* a partition that stands there twice has one of its two */
	for (i = 0; i < cp.count && sorted; i++)
		must(kafkadir_checkpoint_find(&cp, cp.entries[i].topic, cp.entries[i].partition) ==
		     cp.entries[i].offset);
	must(!kafkadir_checkpoint_write(&cp, datadir_fd(dir), CHECKPOINT, &err));
	must(!kafkadir_checkpoint_read(&again, datadir_fd(dir), CHECKPOINT, &err));
	must(again.count == cp.count);
	kafkadir_checkpoint_clear(&again);
	if (cp.count)
		must(!kafkadir_forget(datadir_fd(dir), cp.entries[0].topic, &err));
	kafkadir_checkpoint_clear(&cp);
	remove_file(CHECKPOINT);
}

static void configuration(const char *text, size_t n)
{
	static struct config *defaults;
	struct config *config = NULL;
	struct plog_error err = { "" };
	char path[96];

	put_file("server.properties", text, n);
	snprintf(path, sizeof(path), "%s/server.properties", folder);
	if (config_read(path, NULL, 0, &config, &err)) {
		must(err.text[0] != 0);
	} else {
		must(config->nlisteners >= 1 && config->nlisteners <= CONFIG_LISTENERS_MAX);
		must(defaults || !config_read(NULL, NULL, 0, &defaults, &err));
		config_keep(config, defaults);
		config_free(config);
	}
	remove_file("server.properties");
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
	remove_file("meta.properties");
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
	remove_file(TOPIC_FILE);
}

static void metadata(const char *text, size_t n)
{
	must(!mkdirat(datadir_fd(dir), FOLDER, 0700));
	put_file(METADATA, text, n);
	topic("k");
	remove_file(METADATA);
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

/* ---- a partition's folder ---- */

/* The next @part of the bytes: its size in two bytes, then itself. */
static const uint8_t *part(const uint8_t **p, size_t *n, size_t *size)
{
	const uint8_t *at = *p + 2;

	if (*n < 2) {
		*size = 0;
		return *p;
	}
	*size = (size_t)(*p)[0] << 8 | (*p)[1];
	*n -= 2;
	*size = *size < *n ? *size : *n;
	*n -= *size;
	*p = at + *size;
	return at;
}

static void put_part(const char *name, const uint8_t **p, size_t *n)
{
	size_t size;
	const uint8_t *bytes = part(p, n, &size);

	if (size)
		put_file(name, bytes, size);
}

/* How many files there are whose names end so; with @all they are removed. */
static int count_files(int fd, const char *suffix, bool all)
{
	DIR *d = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY));
	struct dirent *e;
	int found = 0;

	must(d != NULL);
	while ((e = readdir(d))) {
		size_t n = strlen(e->d_name), k = strlen(suffix);

		if (all)
			unlinkat(fd, e->d_name, 0);
		found += n >= k && !strcmp(e->d_name + n - k, suffix);
	}
	closedir(d);
	return found;
}

static int folder_begin(void)
{
	int fd;

	must(!mkdirat(datadir_fd(dir), FOLDER, 0700));
	fd = openat(datadir_fd(dir), FOLDER, O_RDONLY | O_DIRECTORY);
	must(fd >= 0);
	return fd;
}

static void folder_end(int fd)
{
	count_files(fd, "", true);
	close(fd);
	must(!unlinkat(datadir_fd(dir), FOLDER, AT_REMOVEDIR));
}

#define FIRST	FOLDER "/00000000000000000000.log"
#define SECOND	FOLDER "/00000000000000000005.log"
#define SLOT	512

static uint32_t get32(const uint8_t *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

/*
 * Kafka's: three checkpoints, epochs, two logs, two that replace them, and one that was not
 * ready. What is made of it is a state that the engine takes.
 */
static void import(const uint8_t *p, size_t n)
{
	static const char *const checkpoints[] = {
		"log-start-offset-checkpoint", CHECKPOINT, "recovery-point-offset-checkpoint",
	};
	struct kafkadir kafka = { 0 };
	struct plog_error err = { "" };
	uint8_t state[SLOT + 1];
	int fd = folder_begin(), file, ret;

	for (int i = 0; i < 3; i++)
		put_part(checkpoints[i], &p, &n);
	put_part(FOLDER "/leader-epoch-checkpoint", &p, &n);
	put_part(FIRST, &p, &n);
	put_part(SECOND, &p, &n);
	put_part(FIRST ".swap", &p, &n);
	put_part(SECOND ".swap", &p, &n);
	put_part(FIRST ".cleaned", &p, &n);
	ret = kafkadir_import(&kafka, datadir_fd(dir), "k", 0, fd, &err);
	must(ret <= 0 && (!ret || err.text[0]));
	file = openat(fd, "plog.state", O_RDONLY);
	must(file < 0 || !ret);
	if (file >= 0) {
		must(read(file, state, sizeof(state)) == SLOT && !memcmp(state, "plogstat", 8));
		must(get32(state + SLOT - 4) == crc32c(0, state, SLOT - 4));
		/* recovery point, high watermark, log start, leader epoch */
		must(!(state[31] & 0x80) && !(state[39] & 0x80) && !(state[47] & 0x80));
		must(!(state[91] & 0x80));
		must(!count_files(fd, ".swap", false));
		must(!kafkadir_import(&kafka, datadir_fd(dir), "k", 0, fd, &err));
		close(file);
	}
	kafkadir_clear(&kafka);
	for (int i = 0; i < 3; i++)
		unlinkat(datadir_fd(dir), checkpoints[i], 0);
	folder_end(fd);
}

/* A state, two logs, two that replace them, and one that was not ready. */
static void swap(uint8_t *p, size_t n, bool right)
{
	const uint8_t *at = p;
	struct plog_error err = { "" };
	int fd = folder_begin(), ret;
	size_t size;

	/* no guess would meet the CRC */
	if (right && n >= 2 + SLOT) {
		uint32_t sum = crc32c(0, p + 2, SLOT - 4);

		for (int i = 0; i < 4; i++)
			p[2 + SLOT - 4 + i] = (uint8_t)(sum >> 8 * i);
	}
	size = n;
	put_part(FOLDER "/plog.state", &at, &size);
	put_part(FIRST, &at, &size);
	put_part(SECOND, &at, &size);
	put_part(FIRST ".swap", &at, &size);
	put_part(SECOND ".swap", &at, &size);
	put_part(FIRST ".cleaned", &at, &size);
	/* indexes without their log */
	put_file(FOLDER "/00000000000000000007.index.swap", "", 0);
	put_file(FOLDER "/00000000000000000009.timeindex.cleaned", "", 0);
	ret = datadir_swap_recover(fd, &err);
	must(ret <= 0 && (!ret || err.text[0]));
	if (!ret && !faccessat(fd, "plog.state", F_OK, 0)) {
		must(!count_files(fd, ".swap", false) && !count_files(fd, ".cleaned", false));
		must(!datadir_swap_recover(fd, &err));
	}
	folder_end(fd);
}

#define RIGHT	0x10	/* in the first byte: a CRC is put right */

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
	switch (p[0] % 16) {
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
	case 7:
		snapshot((uint8_t *)text, n - 1, p[0] & RIGHT);
		break;
	case 8:
		import((uint8_t *)text, n - 1);
		break;
	default:
		swap((uint8_t *)text, n - 1, p[0] & RIGHT);
	}
	free(text);
	return 0;
}
