/* SPDX-License-Identifier: MIT */
/*
 * A real folder under $TMPDIR, and the data directory in it.
 */
#ifndef TEST_FOLDER_H
#define TEST_FOLDER_H

#include "cm.h"

#include "datadir.h"

#include <limits.h>
#include <stdbool.h>

/* The folder's path. */
extern char root[PATH_MAX];

/* Fixtures of each test. */
int folder_make(void **state);
int folder_remove(void **state);

/* The path of a file in it; four of them at once. */
const char *path(const char *name);

/* Write a file, read one; is there one? */
void put(const char *name, const char *text);
void get(const char *name, char *text, size_t size);
bool exists(const char *name);

/* How many entries a folder has, but . .. .lock */
int entries(const char *name);

/* Open the data directory, make a topic in it: it works. */
struct datadir *open_it(unsigned int flags);
void make_topic(struct datadir *dir, const char *name, uint32_t partitions);

#endif
