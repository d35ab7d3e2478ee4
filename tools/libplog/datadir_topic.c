// SPDX-License-Identifier: MIT
#include "datadir_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define METADATA_NAME	"partition.metadata"
/* Kafka's own metadata log lives among the topics and is none. */
#define RAFT_TOPIC	"__cluster_metadata"

#define CLEAN_NAME	".kafka_cleanshutdown"

/* Partitions that are made with syncs of their own. */
#define SYNC_EACH_MAX	16

/* One folder TOPIC-N. */
struct folder {
	char topic[DATADIR_TOPIC_MAX + 1];
	uint32_t partition;
};

/* What a walk over the directory found. */
struct listing {
	char (*files)[DATADIR_TOPIC_MAX + 1];	/* topics that have a file */
	size_t file_count, file_room;
	struct folder *folders;
	size_t folder_count, folder_room;
	char (*leftovers)[NAME_MAX + 1];	/* *-delete folders, temporary files */
	size_t leftover_count, leftover_room;
};

/* ---- names ---- */

/* Splits "orders-12"; false if it is no partition folder's name. */
static bool folder_parse(const char *name, struct folder *folder)
{
	const char *dash = strrchr(name, '-');
	size_t length = dash ? (size_t)(dash - name) : 0;
	unsigned long number;
	char *end;

	if (!length || length > DATADIR_TOPIC_MAX || !dash[1])
		return false;
	for (const char *at = dash + 1; *at; at++)
		if (*at < '0' || *at > '9')
			return false;
	/* "orders-01" is not what Kafka or we would make. */
	if (dash[1] == '0' && dash[2])
		return false;
	errno = 0;
	number = strtoul(dash + 1, &end, 10);
	if (errno || number >= DATADIR_PARTITIONS_MAX)
		return false;
	memcpy(folder->topic, name, length);
	folder->topic[length] = '\0';
	folder->partition = number;
	return datadir_topic_name_check(folder->topic, NULL) == 0;
}

static void folder_name(const char *topic, uint32_t partition, char name[NAME_MAX + 1])
{
	snprintf(name, NAME_MAX + 1, "%.*s-%" PRIu32, DATADIR_TOPIC_MAX, topic, partition);
}

/* "*.<32 hexadecimal digits>-delete": Kafka's and our folders on their way out. */
static bool is_deleted_folder(const char *name)
{
	static const char suffix[] = "-delete";
	size_t length = strlen(name), tail = sizeof(suffix) - 1;

	if (length < 33 + tail || strcmp(name + length - tail, suffix))
		return false;
	name += length - tail - 33;
	return *name == '.' && strspn(name + 1, "0123456789abcdef") >= 32;
}

static bool is_temporary(const char *name)
{
	size_t length = strlen(name);

	return !strncmp(name, ".plog-", 6) && length > 10 && !strcmp(name + length - 4, ".tmp");
}

/* ---- walking the directory ---- */

static void *grow(void *array, size_t count, size_t *room, size_t size)
{
	void *larger;

	if (count < *room)
		return array;
	larger = reallocarray(array, *room ? 2 * *room : 16, size);
	if (larger)
		*room = *room ? 2 * *room : 16;
	return larger;
}

static void listing_clear(struct listing *list)
{
	free(list->files);
	free(list->folders);
	free(list->leftovers);
	memset(list, 0, sizeof(*list));
}

static int add_leftover(struct listing *list, const char *name)
{
	void *larger = grow(list->leftovers, list->leftover_count, &list->leftover_room,
			    sizeof(*list->leftovers));

	if (!larger)
		return -ENOMEM;
	list->leftovers = larger;
	snprintf(list->leftovers[list->leftover_count++], NAME_MAX + 1, "%s", name);
	return 0;
}

static int add_file(struct listing *list, const char *name, size_t length)
{
	void *larger = grow(list->files, list->file_count, &list->file_room, sizeof(*list->files));
	char *to;

	if (!larger)
		return -ENOMEM;
	list->files = larger;
	to = list->files[list->file_count];
	memcpy(to, name, length);
	to[length] = '\0';
	if (!datadir_topic_name_check(to, NULL))
		list->file_count++;
	return 0;
}

static int add_folder(struct listing *list, const struct folder *folder)
{
	void *larger = grow(list->folders, list->folder_count, &list->folder_room,
			    sizeof(*list->folders));

	if (!larger)
		return -ENOMEM;
	list->folders = larger;
	list->folders[list->folder_count++] = *folder;
	return 0;
}

static int add_entry(struct listing *list, const char *name, bool folder)
{
	size_t length = strlen(name), suffix = sizeof(DATADIR_TOPIC_SUFFIX) - 1;
	struct folder split;

	if (folder) {
		if (is_deleted_folder(name))
			return add_leftover(list, name);
		if (folder_parse(name, &split) && strcmp(split.topic, RAFT_TOPIC))
			return add_folder(list, &split);
		return 0;
	}
	if (is_temporary(name))
		return add_leftover(list, name);
	if (length > suffix && length - suffix <= DATADIR_TOPIC_MAX &&
	    !strcmp(name + length - suffix, DATADIR_TOPIC_SUFFIX))
		return add_file(list, name, length - suffix);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int by_folder(const void *a, const void *b)
{
	const struct folder *x = a, *y = b;
	int order = strcmp(x->topic, y->topic);

	return order ? order : x->partition < y->partition ? -1 : x->partition > y->partition;
}

/* Everything in the directory, sorted. */
static int list_directory(struct datadir *dir, struct listing *list, struct plog_error *err)
{
	struct dirent *entry;
	struct stat st;
	int fd, ret = 0;
	DIR *stream;

	memset(list, 0, sizeof(*list));
	fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		ret = plog_error_set(err, -errno, "cannot list %s: %m", dir->path);
		if (fd >= 0)
			close(fd);
		return ret;
	}
	for (errno = 0; (entry = readdir(stream)); errno = 0) {
		bool folder = entry->d_type == DT_DIR;

		if (entry->d_type == DT_UNKNOWN) {
			if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
				continue;
			folder = S_ISDIR(st.st_mode);
		}
		ret = add_entry(list, entry->d_name, folder);
		if (ret) {
			plog_error_set(err, ret, "out of memory");
			break;
		}
	}
	if (!ret && errno)
		ret = plog_error_set(err, -errno, "cannot list %s: %m", dir->path);
	closedir(stream);
	if (ret) {
		listing_clear(list);
		return ret;
	}
	if (list->file_count)
		qsort(list->files, list->file_count, sizeof(*list->files), by_name);
	if (list->folder_count)
		qsort(list->folders, list->folder_count, sizeof(*list->folders), by_folder);
	return 0;
}

/* The folders of one topic in a sorted listing. */
static const struct folder *folders_of(const struct listing *list, const char *topic,
				       size_t *count)
{
	size_t low = 0, high = list->folder_count, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(list->folders[middle].topic, topic) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < list->folder_count; end++)
		if (strcmp(list->folders[end].topic, topic))
			break;
	*count = end - low;
	/* a listing without folders has no array */
	return *count ? list->folders + low : NULL;
}

/* ---- partition folders ---- */

/* topic_id of a folder's partition.metadata. -ENOENT: no such file, or an empty one. */
static int metadata_read(int fd, const char *folder, uint8_t id[DATADIR_ID_SIZE],
			 struct plog_error *err)
{
	struct properties p;
	const char *value;
	int ret;

	memset(id, 0, DATADIR_ID_SIZE);
	properties_init(&p);
	ret = properties_read(&p, fd, METADATA_NAME, err);
	if (!ret && !p.count) {
		ret = -ENOENT;
	} else if (!ret) {
		value = properties_get(&p, "topic_id");
		if (!value || datadir_id_parse(value, id))
			ret = plog_error_set(err, -EINVAL, "%s/" METADATA_NAME ": topic_id is "
					     "missing or cannot be used", folder);
	}
	properties_clear(&p);
	return ret;
}

/*
 * Without a sync: after a crash the file is there whole, or empty, or not at all,
 * and the last two are as good as new, see metadata_read().
 */
static int write_unsynced(int dirfd, const char *text, int length, struct plog_error *err)
{
	int fd = openat(dirfd, METADATA_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			0640);
	int ret = 0;

	if (fd < 0)
		return plog_error_set(err, -errno, "cannot write " METADATA_NAME ": %m");
	/* what a write that is short does not set */
	errno = EIO;
	if (fchmod(fd, 0640) < 0 || write(fd, text, length) != length)
		ret = plog_error_set(err, -errno, "cannot write " METADATA_NAME ": %m");
	if (close(fd) < 0 && !ret)
		ret = plog_error_set(err, -errno, "cannot write " METADATA_NAME ": %m");
	if (ret)
		unlinkat(dirfd, METADATA_NAME, 0);
	return ret;
}

static int metadata_write(int fd, const uint8_t id[DATADIR_ID_SIZE], bool sync,
			  struct plog_error *err)
{
	char id_text[DATADIR_ID_TEXT + 1], text[64];
	int length;

	datadir_id_text(id, id_text);
	length = snprintf(text, sizeof(text), "version: 0\ntopic_id: %s", id_text);
	if (!sync)
		return write_unsynced(fd, text, length, err);
	return plog_file_replace(fd, METADATA_NAME, text, length, 0640, err);
}

static int partition_open(struct datadir *dir, const struct datadir_topic *topic,
			  uint32_t partition, bool sync, bool *made, struct plog_error *err)
{
	char name[NAME_MAX + 1], theirs[DATADIR_ID_TEXT + 1], ours[DATADIR_ID_TEXT + 1];
	uint8_t id[DATADIR_ID_SIZE];
	bool fresh = false;
	int fd, ret;

	if (made)
		*made = false;
	folder_name(topic->name, partition, name);
	fd = openat(dir->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(dir->fd, name, 0750) < 0)
			return plog_error_set(err, -errno, "cannot make %s/%s: %m", dir->path,
					      name);
		fresh = true;
		fd = openat(dir->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd < 0)
		return plog_error_set(err, -errno, "cannot open %s/%s: %m", dir->path, name);
	ret = fresh ? -ENOENT : metadata_read(fd, name, id, err);
	if (ret && ret != -ENOENT)
		goto close;
	if (ret == -ENOENT && datadir_id_is_set(topic->id)) {
		ret = metadata_write(fd, topic->id, sync, err);
		if (ret)
			goto close;
	} else if (!ret && datadir_id_is_set(topic->id) && memcmp(id, topic->id, sizeof(id))) {
		datadir_id_text(id, theirs);
		datadir_id_text(topic->id, ours);
		ret = plog_error_set(err, -EINVAL, "%s/%s belongs to another topic of that name: "
				     "its id is %s, that of the topic %s", dir->path, name,
				     theirs, ours);
		goto close;
	}
	if (fresh && sync && fsync(dir->fd) < 0) {
		ret = plog_error_set(err, -errno, "cannot sync %s: %m", dir->path);
		goto close;
	}
	if (made)
		*made = fresh;
	return fd;

close:
	close(fd);
	return ret;
}

int datadir_partition_open(struct datadir *dir, const struct datadir_topic *topic,
			   uint32_t partition, bool *made, struct plog_error *err)
{
	int fd = partition_open(dir, topic, partition, true, made, err), ret;

	if (fd < 0)
		return fd;
	/* what the module serves is not touched behind its back: plogd asks it */
	ret = dir->attached ? 0 : datadir_swap_recover(fd, err);
	if (!ret)
		ret = kafkadir_import(&dir->kafka, dir->fd, topic->name, partition, fd, err);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/*
 * Three syncs for each of 10,000 partitions take minutes: from some number on the
 * file system is synced once, at the end.  Nobody has been told of them before.
 */
static int make_folders(struct datadir *dir, const struct datadir_topic *topic,
			struct plog_error *err)
{
	bool each = topic->partitions <= SYNC_EACH_MAX, any = false;

	for (uint32_t i = 0; i < topic->partitions; i++) {
		bool made;
		int fd = partition_open(dir, topic, i, each, &made, err);

		if (fd < 0)
			return fd;
		close(fd);
		any |= made;
	}
	if (!each && any && syncfs(dir->fd) < 0)
		return plog_error_set(err, -errno, "cannot sync %s: %m", dir->path);
	return 0;
}

/* ---- deleting ---- */

/*
 * Of Kafka's own, which bear names like ours, only Kafka knows whether all of its
 * log was to go: leave what holds segments and was never served here.
 */
static bool is_kafkas(struct datadir *dir, const char *name)
{
	int fd = openat(dir->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	bool segments = false, served = false;
	struct dirent *entry;

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while ((entry = readdir(stream))) {
		size_t length = strlen(entry->d_name);

		segments |= length == 24 && !strcmp(entry->d_name + 20, ".log");
		served |= !strcmp(entry->d_name, "plog.state");
	}
	closedir(stream);
	return segments && !served;
}

/* A folder with nothing but files in it. */
static int remove_folder(struct datadir *dir, const char *name, struct plog_error *err)
{
	struct dirent *entry;
	DIR *stream;
	int fd, ret;

	fd = openat(dir->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		ret = plog_error_set(err, -errno, "cannot list %s/%s: %m", dir->path, name);
		if (fd >= 0)
			close(fd);
		return ret;
	}
	while ((entry = readdir(stream))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (unlinkat(fd, entry->d_name, 0) < 0 && errno != ENOENT) {
			ret = plog_error_set(err, -errno, "cannot remove %s/%s/%s: %m", dir->path,
					     name, entry->d_name);
			closedir(stream);
			return ret;
		}
	}
	closedir(stream);
	if (unlinkat(dir->fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return plog_error_set(err, -errno, "cannot remove %s/%s: %m", dir->path, name);
	return 0;
}

/* Out of the way first: a folder under its own name is a partition's. */
static int retire_folder(struct datadir *dir, const struct folder *folder,
			 char retired[NAME_MAX + 1], struct plog_error *err)
{
	char name[NAME_MAX + 1], number[16];
	uint64_t tag[2];
	int room;

	if (getrandom(tag, sizeof(tag), 0) != sizeof(tag))
		return plog_error_set(err, -EIO, "no random bytes to be had");
	folder_name(folder->topic, folder->partition, name);
	/* Kafka shortens the topic's name too, to stay within 255 bytes. */
	room = NAME_MAX - (1 + 32 + 7) -
	       snprintf(number, sizeof(number), "-%" PRIu32, folder->partition);
	snprintf(retired, NAME_MAX + 1, "%.*s%s.%016" PRIx64 "%016" PRIx64 "-delete", room,
		 folder->topic, number, tag[0], tag[1]);
	if (renameat(dir->fd, name, dir->fd, retired) < 0)
		return plog_error_set(err, -errno, "cannot rename %s/%s: %m", dir->path, name);
	return 0;
}

/* The folders of a topic whose file says "deleting", then the file. */
static int finish_delete(struct datadir *dir, const char *topic, const struct listing *list,
			 struct plog_error *err)
{
	const struct folder *folders;
	char file[NAME_MAX + 1];
	char (*retired)[NAME_MAX + 1] = NULL;
	size_t count;
	int ret = 0;

	folders = folders_of(list, topic, &count);
	if (count) {
		retired = calloc(count, sizeof(*retired));
		if (!retired)
			return plog_error_set(err, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; !ret && i < count; i++)
		ret = retire_folder(dir, &folders[i], retired[i], err);
	if (ret)
		goto out;
	datadir_file_name(topic, file);
	/* The names must be gone for good before the mark is. */
	if (fsync(dir->fd) < 0 || (unlinkat(dir->fd, file, 0) < 0 && errno != ENOENT) ||
	    fsync(dir->fd) < 0) {
		ret = plog_error_set(err, -errno, "cannot remove %s/%s: %m", dir->path, file);
		goto out;
	}
	for (size_t i = 0; !ret && i < count; i++)
		ret = remove_folder(dir, retired[i], err);
out:
	free(retired);
	return ret;
}

int datadir_topic_delete(struct datadir *dir, const char *name, struct plog_error *err)
{
	struct datadir_topic topic;
	struct listing list;
	size_t count = 0;
	bool deleting;
	int ret;

	ret = datadir_topic_name_check(name, err);
	if (ret)
		return ret;
	ret = list_directory(dir, &list, err);
	if (ret)
		return ret;
	ret = datadir_file_read(dir, name, &topic, &deleting, err);
	if (ret == -ENOENT) {
		folders_of(&list, name, &count);
		if (!count) {
			ret = plog_error_set(err, -ENOENT, "there is no topic \"%s\" in %s", name,
					     dir->path);
			goto out;
		}
	}
	/* A file that cannot be used must not keep its topic from going. */
	if (ret)
		datadir_topic_init(&topic, name);
	ret = datadir_file_write(dir, &topic, true, err);
	datadir_topic_clear(&topic);
	/*
	 * A full disk is what topics are deleted for, so it must not need room.  Without the
	 * mark a crash in the middle leaves the topic there, with some of its folders empty.
	 */
	if (!ret || ret == -ENOSPC || ret == -EDQUOT)
		ret = kafkadir_forget(dir->fd, name, err);
	if (!ret || ret == -ENOSPC || ret == -EDQUOT)
		ret = finish_delete(dir, name, &list, err);
out:
	listing_clear(&list);
	return ret;
}

int datadir_sweep(struct datadir *dir, struct plog_error *err)
{
	struct datadir_topic topic;
	struct listing list;
	bool deleting;
	int ret;

	ret = list_directory(dir, &list, err);
	if (ret)
		return ret;
	for (size_t i = 0; !ret && i < list.file_count; i++) {
		/* One that cannot be used is datadir_scan()'s to complain about. */
		if (datadir_file_read(dir, list.files[i], &topic, &deleting, NULL))
			continue;
		datadir_topic_clear(&topic);
		if (deleting)
			ret = finish_delete(dir, list.files[i], &list, err);
	}
	/* Kafka's: it would tell a broker that what is written here needs no recovery. */
	if (!ret && unlinkat(dir->fd, CLEAN_NAME, 0) < 0 && errno != ENOENT)
		ret = plog_error_set(err, -errno, "cannot remove %s/" CLEAN_NAME ": %m",
				     dir->path);
	for (size_t i = 0; !ret && i < list.leftover_count; i++) {
		const char *name = list.leftovers[i];

		if (is_deleted_folder(name) && is_kafkas(dir, name))
			continue;
		if (is_deleted_folder(name))
			ret = remove_folder(dir, name, err);
		else if (unlinkat(dir->fd, name, 0) < 0 && errno != ENOENT)
			ret = plog_error_set(err, -errno, "cannot remove %s/%s: %m", dir->path,
					     name);
	}
	listing_clear(&list);
	return ret;
}

/* ---- reading and writing topics ---- */

/*
 * Kafka keeps a topic's configuration elsewhere.  Nothing is to expire that it
 * would have kept, and its own topics are always compacted.
 */
static int adopt_config(struct datadir_topic *topic)
{
	static const char *const compacted[] = {
		"__consumer_offsets", "__transaction_state", "__share_group_state",
	};
	int ret;

	for (size_t i = 0; i < sizeof(compacted) / sizeof(compacted[0]); i++)
		if (!strcmp(topic->name, compacted[i]))
			return properties_set(&topic->config, "cleanup.policy", "compact");
	ret = properties_set(&topic->config, "retention.ms", "-1");
	return ret ? ret : properties_set(&topic->config, "retention.bytes", "-1");
}

/* A topic of which there are folders only. */
static int adopt(struct datadir *dir, const struct folder *folders, size_t count,
		 struct datadir_topic *topic, struct plog_error *err)
{
	char name[NAME_MAX + 1];

	datadir_topic_init(topic, folders[0].topic);
	topic->adopted = true;
	topic->partitions = folders[count - 1].partition + 1;
	if (adopt_config(topic))
		return plog_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++) {
		uint8_t id[DATADIR_ID_SIZE];
		int ret, fd;

		folder_name(folders[i].topic, folders[i].partition, name);
		fd = openat(dir->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return plog_error_set(err, -errno, "cannot open %s/%s: %m", dir->path,
					      name);
		ret = metadata_read(fd, name, id, err);
		close(fd);
		if (ret == -ENOENT)
			continue;
		if (ret)
			return ret;
		if (!datadir_id_is_set(topic->id))
			memcpy(topic->id, id, sizeof(id));
		else if (memcmp(topic->id, id, sizeof(id)))
			return plog_error_set(err, -EINVAL, "the folders of topic %s in %s have "
					      "different topic ids (" METADATA_NAME "); move "
					      "aside those that do not belong", topic->name,
					      dir->path);
	}
	return 0;
}

static int topic_load(struct datadir *dir, const char *name, const struct listing *list,
		      struct datadir_topic *topic, struct plog_error *err)
{
	const struct folder *folders;
	bool deleting = false;
	size_t count;
	int ret;

	folders = folders_of(list, name, &count);
	ret = datadir_file_read(dir, name, topic, &deleting, err);
	if (ret == -ENOENT && count) {
		ret = adopt(dir, folders, count, topic, err);
		if (ret)
			datadir_topic_clear(topic);
		return ret;
	}
	if (ret)
		return ret;
	if (deleting) {
		datadir_topic_clear(topic);
		return -ENOENT;
	}
	/* Kafka may have served the directory meanwhile and added partitions. */
	if (count && folders[count - 1].partition >= topic->partitions)
		topic->partitions = folders[count - 1].partition + 1;
	return 0;
}

static int scan_one(struct datadir *dir, const char *name, const struct listing *list,
		    struct datadir_topic **topics, size_t *count, size_t *room,
		    struct plog_error *err)
{
	void *larger = grow(*topics, *count, room, sizeof(**topics));
	int ret;

	if (!larger)
		return plog_error_set(err, -ENOMEM, "out of memory");
	*topics = larger;
	ret = topic_load(dir, name, list, *topics + *count, err);
	if (!ret)
		(*count)++;
	return ret == -ENOENT ? 0 : ret;
}

int datadir_scan(struct datadir *dir, struct datadir_topic **topics, size_t *count,
		 struct plog_error *err)
{
	size_t room = 0, file = 0, folder = 0;
	struct listing list;
	int ret;

	*topics = NULL;
	*count = 0;
	ret = list_directory(dir, &list, err);
	if (ret)
		return ret;
	/* Merge the two sorted lists of names. */
	while (!ret && (file < list.file_count || folder < list.folder_count)) {
		const char *name;

		if (file < list.file_count &&
		    (folder == list.folder_count ||
		     strcmp(list.files[file], list.folders[folder].topic) <= 0))
			name = list.files[file];
		else
			name = list.folders[folder].topic;
		ret = scan_one(dir, name, &list, topics, count, &room, err);
		while (folder < list.folder_count && !strcmp(list.folders[folder].topic, name))
			folder++;
		if (file < list.file_count && !strcmp(list.files[file], name))
			file++;
	}
	listing_clear(&list);
	if (ret) {
		datadir_topics_free(*topics, *count);
		*topics = NULL;
		*count = 0;
	}
	return ret;
}

void datadir_topics_free(struct datadir_topic *topics, size_t count)
{
	for (size_t i = 0; i < count; i++)
		datadir_topic_clear(&topics[i]);
	free(topics);
}

int datadir_topic_read(struct datadir *dir, const char *name, struct datadir_topic *topic,
		       struct plog_error *err)
{
	struct listing list;
	int ret;

	memset(topic, 0, sizeof(*topic));
	ret = datadir_topic_name_check(name, err);
	if (!ret)
		ret = list_directory(dir, &list, err);
	if (ret)
		return ret;
	ret = topic_load(dir, name, &list, topic, err);
	if (ret == -ENOENT)
		plog_error_set(err, ret, "there is no topic \"%s\" in %s", name, dir->path);
	listing_clear(&list);
	return ret;
}

static int partitions_check(const struct datadir_topic *topic, struct plog_error *err)
{
	if (topic->partitions < 1 || topic->partitions > DATADIR_PARTITIONS_MAX)
		return plog_error_set(err, -EINVAL, "topic %s: the number of partitions must be 1 "
				      "to %d, not %" PRIu32, topic->name, DATADIR_PARTITIONS_MAX,
				      topic->partitions);
	return 0;
}

int datadir_topic_create(struct datadir *dir, struct datadir_topic *topic,
			 struct plog_error *err)
{
	struct listing list = { 0 };
	struct datadir_topic old;
	bool deleting;
	size_t count;
	int ret;

	ret = datadir_topic_name_check(topic->name, err);
	if (!ret)
		ret = partitions_check(topic, err);
	if (!ret)
		ret = list_directory(dir, &list, err);
	if (ret)
		return ret;
	ret = datadir_file_read(dir, topic->name, &old, &deleting, NULL);
	if (!ret)
		datadir_topic_clear(&old);
	if (!ret && deleting) {
		/* A deletion that a crash has cut short. */
		ret = finish_delete(dir, topic->name, &list, err);
		if (ret)
			goto out;
	} else {
		folders_of(&list, topic->name, &count);
		if (ret != -ENOENT || count) {
			ret = plog_error_set(err, -EEXIST, "topic \"%s\" exists already in %s",
					     topic->name, dir->path);
			goto out;
		}
	}
	if (!datadir_id_is_set(topic->id) && datadir_id_random(topic->id)) {
		ret = plog_error_set(err, -EIO, "no random bytes to be had");
		goto out;
	}
	/* File first: folders alone would be adopted, with fewer partitions, after a crash. */
	ret = datadir_file_write(dir, topic, false, err);
	if (!ret)
		ret = make_folders(dir, topic, err);
	if (ret)
		datadir_topic_delete(dir, topic->name, NULL);
out:
	listing_clear(&list);
	return ret;
}

int datadir_topic_write(struct datadir *dir, const struct datadir_topic *topic,
			struct plog_error *err)
{
	struct datadir_topic old;
	int ret;

	ret = partitions_check(topic, err);
	if (ret)
		return ret;
	ret = datadir_topic_read(dir, topic->name, &old, err);
	if (!ret && topic->partitions < old.partitions)
		ret = plog_error_set(err, -EINVAL, "topic %s has %" PRIu32 " partitions; their "
				     "number can only grow", topic->name, old.partitions);
	datadir_topic_clear(&old);
	if (ret)
		return ret;
	ret = datadir_file_write(dir, topic, false, err);
	return ret ? ret : make_folders(dir, topic, err);
}

int datadir_topic_shrink(struct datadir *dir, const struct datadir_topic *before,
			 struct plog_error *err)
{
	const struct folder *folders;
	char retired[NAME_MAX + 1];
	struct listing list;
	size_t count;
	int ret;

	ret = list_directory(dir, &list, err);
	if (ret)
		return ret;
	folders = folders_of(&list, before->name, &count);
	for (; !ret && count && folders[count - 1].partition >= before->partitions; count--) {
		ret = retire_folder(dir, &folders[count - 1], retired, err);
		if (!ret)
			remove_folder(dir, retired, NULL);	/* or datadir_sweep() does */
	}
	listing_clear(&list);
	/* The folders first: one that is left would make the topic larger again. */
	if (!ret && fsync(dir->fd) < 0)
		ret = plog_error_set(err, -errno, "cannot sync %s: %m", dir->path);
	return ret ? ret : datadir_file_write(dir, before, false, err);
}

int datadir_partition_find(struct datadir *dir, const char *topic, uint32_t partition)
{
	char name[DATADIR_TOPIC_MAX + 12];
	int fd;

	if (datadir_topic_name_check(topic, NULL))
		return -EINVAL;
	snprintf(name, sizeof(name), "%s-%" PRIu32, topic, partition);
	fd = openat(datadir_fd(dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int datadir_segments_lock(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
}

int datadir_segment_delete(int fd, int64_t base, struct plog_error *err)
{
	static const char * const kinds[] = { "index", "timeindex", "txnindex", "snapshot", "log" };
	char name[48];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(name, sizeof(name), "%020" PRId64 ".%s", base, kinds[i]);
		if (unlinkat(fd, name, 0) && errno != ENOENT)
			return plog_error_set(err, -errno, "cannot delete %s: %s", name,
					      strerror(errno));
	}
	return 0;
}
