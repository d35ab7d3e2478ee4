// SPDX-License-Identifier: MIT
#include "kafkadir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const checkpoint_names[] = {
	"log-start-offset-checkpoint", "replication-offset-checkpoint",
	"recovery-point-offset-checkpoint",
};

/* ---- checkpoints ---- */

static int compare(const char *topic, uint32_t partition, const struct kafkadir_entry *e)
{
	int order = strcmp(topic, e->topic);

	return order ? order : partition < e->partition ? -1 : partition > e->partition;
}

static int by_partition(const void *a, const void *b)
{
	const struct kafkadir_entry *x = a;

	return compare(x->topic, x->partition, b);
}

void kafkadir_checkpoint_clear(struct kafkadir_checkpoint *cp)
{
	for (size_t i = 0; i < cp->count; i++)
		free(cp->entries[i].topic);
	free(cp->entries);
	memset(cp, 0, sizeof(*cp));
}

/* One number alone on its line. */
static bool parse_number(const char *line, long long max, long long *value)
{
	char *end;

	errno = 0;
	*value = strtoll(line, &end, 10);
	return !errno && end != line && (*end == '\0' || *end == '\n') && *value >= 0 &&
	       *value <= max;
}

/* "topic partition offset" */
static int parse_entry(char *line, struct kafkadir_entry *e)
{
	char *save, *topic = strtok_r(line, " \t\n", &save), *number, *offset;
	long long partition, value;

	number = topic ? strtok_r(NULL, " \t\n", &save) : NULL;
	offset = number ? strtok_r(NULL, " \t\n", &save) : NULL;
	if (!offset || strtok_r(NULL, " \t\n", &save) ||
	    !parse_number(number, INT32_MAX, &partition) ||
	    !parse_number(offset, INT64_MAX, &value))
		return -EINVAL;
	e->topic = strdup(topic);
	e->partition = partition;
	e->offset = value;
	return e->topic ? 0 : -ENOMEM;
}

static int parse(struct kafkadir_checkpoint *cp, FILE *f, const char *name,
		 struct plog_error *err)
{
	long long version, count;
	size_t room = 0, size = 0;
	unsigned int at = 1;
	char *line = NULL;
	int ret = 0;

	if (getline(&line, &size, f) < 0)
		goto out;	/* as a broker makes it that has never written it */
	if (!parse_number(line, 0, &version))
		goto wrong;
	at++;
	if (getline(&line, &size, f) < 0 || !parse_number(line, INT32_MAX, &count))
		goto wrong;
	while (getline(&line, &size, f) >= 0) {
		at++;
		if (cp->count == room) {
			struct kafkadir_entry *more = reallocarray(cp->entries,
								   room ? 2 * room : 64,
								   sizeof(*more));

			if (!more) {
				ret = -ENOMEM;
				goto out;
			}
			cp->entries = more;
			room = room ? 2 * room : 64;
		}
		ret = parse_entry(line, &cp->entries[cp->count]);
		if (ret == -EINVAL)
			goto wrong;
		if (ret)
			goto out;
		cp->count++;
	}
	at++;
	/* one that was cut short is no good */
	if (cp->count != (size_t)count)
		goto wrong;
	if (cp->count)
		qsort(cp->entries, cp->count, sizeof(*cp->entries), by_partition);
out:
	free(line);
	if (!ret && ferror(f))
		ret = -EIO;
	if (ret)
		plog_error_set(err, ret, "cannot read %s: %s", name, strerror(-ret));
	return ret;
wrong:
	free(line);
	return plog_error_set(err, -EINVAL, "%s, line %u: not what Apache Kafka writes there; move "
			      "the file away to do without", name, at);
}

int kafkadir_checkpoint_read(struct kafkadir_checkpoint *cp, int dirfd, const char *name,
			     struct plog_error *err)
{
	struct stat st;
	FILE *f;
	int fd, ret;

	memset(cp, 0, sizeof(*cp));
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return plog_error_set(err, -errno, "cannot open %s: %m", name);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > KAFKADIR_FILE_MAX) {
		close(fd);
		return plog_error_set(err, -EINVAL, "%s is no file of offsets", name);
	}
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return plog_error_set(err, -ENOMEM, "out of memory");
	}
	ret = parse(cp, f, name, err);
	fclose(f);
	if (ret)
		kafkadir_checkpoint_clear(cp);
	return ret;
}

int64_t kafkadir_checkpoint_find(const struct kafkadir_checkpoint *cp, const char *topic,
				 uint32_t partition)
{
	size_t low = 0, high = cp->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare(topic, partition, &cp->entries[middle]);

		if (!order)
			return cp->entries[middle].offset;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

int kafkadir_checkpoint_write(const struct kafkadir_checkpoint *cp, int dirfd, const char *name,
			      struct plog_error *err)
{
	size_t length = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &length);
	int ret;

	if (!f)
		return plog_error_set(err, -ENOMEM, "out of memory");
	fprintf(f, "0\n%zu\n", cp->count);
	for (size_t i = 0; i < cp->count; i++)
		fprintf(f, "%s %" PRIu32 " %" PRId64 "\n", cp->entries[i].topic,
			cp->entries[i].partition, cp->entries[i].offset);
	if (fclose(f))
		ret = plog_error_set(err, -ENOMEM, "out of memory");
	else
		ret = plog_file_replace(dirfd, name, text, length, 0640, err);
	free(text);
	return ret;
}

void kafkadir_clear(struct kafkadir *kafka)
{
	kafkadir_checkpoint_clear(&kafka->log_start);
	kafkadir_checkpoint_clear(&kafka->high_watermark);
	kafkadir_checkpoint_clear(&kafka->recovery_point);
	kafka->read = false;
}

int kafkadir_read(struct kafkadir *kafka, int dirfd, struct plog_error *err)
{
	struct kafkadir_checkpoint *to[] = {
		&kafka->log_start, &kafka->high_watermark, &kafka->recovery_point,
	};

	if (kafka->read)
		return 0;
	for (size_t i = 0; i < 3; i++) {
		int ret = kafkadir_checkpoint_read(to[i], dirfd, checkpoint_names[i], err);

		if (ret && ret != -ENOENT) {
			kafkadir_clear(kafka);
			return ret;
		}
	}
	kafka->read = true;
	return 0;
}

int kafkadir_forget(int dirfd, const char *topic, struct plog_error *err)
{
	for (size_t i = 0; i < 3; i++) {
		struct kafkadir_checkpoint cp;
		size_t kept = 0, had;
		int ret;

		ret = kafkadir_checkpoint_read(&cp, dirfd, checkpoint_names[i], NULL);
		if (ret == -ENOENT || ret == -EINVAL)
			continue;	/* one that cannot be read is never believed */
		if (ret)
			return plog_error_set(err, ret, "cannot read %s: %s", checkpoint_names[i],
					      strerror(-ret));
		had = cp.count;
		for (size_t n = 0; n < had; n++) {
			if (strcmp(cp.entries[n].topic, topic))
				cp.entries[kept++] = cp.entries[n];
			else
				free(cp.entries[n].topic);
		}
		cp.count = kept;
		if (kept < had)
			ret = kafkadir_checkpoint_write(&cp, dirfd, checkpoint_names[i], err);
		kafkadir_checkpoint_clear(&cp);
		if (ret)
			return ret;
	}
	return 0;
}
