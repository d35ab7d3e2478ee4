// SPDX-License-Identifier: MIT
#include "folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char root[PATH_MAX];

int folder_make(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(root, sizeof(root), "%s/plog-folder.XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(root) ? 0 : -1;
}

int folder_remove(void **state)
{
	char command[PATH_MAX + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

const char *path(const char *name)
{
	static char paths[4][PATH_MAX + NAME_MAX + 2];
	static unsigned int next;
	char *p = paths[next++ % 4];

	snprintf(p, sizeof(paths[0]), "%s/%s", root, name);
	return p;
}

void put(const char *name, const char *text)
{
	FILE *f = fopen(path(name), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

void get(const char *name, char *text, size_t size)
{
	FILE *f = fopen(path(name), "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	fclose(f);
}

bool exists(const char *name)
{
	return access(path(name), F_OK) == 0;
}

int entries(const char *name)
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

struct datadir *open_it(unsigned int flags)
{
	struct plog_error err = { "" };
	struct datadir *dir;
	int ret = datadir_open(root, flags, &dir, &err);

	if (ret)
		print_message("# %s\n", err.text);
	assert_int_equal(ret, 0);
	return dir;
}

void make_topic(struct datadir *dir, const char *name, uint32_t partitions)
{
	struct plog_error err = { "" };
	struct datadir_topic topic;

	datadir_topic_init(&topic, name);
	topic.partitions = partitions;
	if (datadir_topic_create(dir, &topic, &err))
		fail_msg("%s", err.text);
	datadir_topic_clear(&topic);
}
