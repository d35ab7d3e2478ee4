/* SPDX-License-Identifier: MIT */
/*
 * Files of key=value lines in the format of Java's properties, which Kafka
 * uses for server.properties and meta.properties: comments with # and !,
 * separators = : or blank, continuation with a backslash at the end of the
 * line, \n \t \uXXXX and so on.  Keys are kept sorted; a key that stands twice
 * has its last value.
 */
#ifndef PLOG_PROPERTIES_H
#define PLOG_PROPERTIES_H

#include <stdbool.h>
#include <stddef.h>

/* Room for the text of an error, terminating zero included. */
#define PLOG_ERROR_MAX	768

/* What went wrong, as a sentence for people without a newline at its end. */
struct plog_error {
	char text[PLOG_ERROR_MAX];
};

/* Fills in @err, which may be NULL; returns @code, for "return plog_error_set(...)". */
int plog_error_set(struct plog_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * plog_file_replace() - put a file in place of another, durably
 * @dirfd: the directory; @name has no slash
 * @mode: permission bits of the file
 *
 * Written beside the old file, synced, renamed over it, directory synced: after
 * a power cut there is the old or the new one.  Return: 0 or a negative errno.
 */
int plog_file_replace(int dirfd, const char *name, const void *data, size_t length,
		      unsigned int mode, struct plog_error *err);

struct property {
	char *key;
	char *value;		/* never NULL, may be empty */
	unsigned int line;	/* where it stood in the file, 0 if set by a call */
};

/* Zeroed is empty.  Owns keys and values. */
struct properties {
	struct property *entries;	/* sorted by key */
	size_t count;
	size_t room;
};

void properties_init(struct properties *p);
void properties_clear(struct properties *p);

/* The value, or NULL if there is none. Belongs to @p until the next change. */
const char *properties_get(const struct properties *p, const char *key);
const struct property *properties_find(const struct properties *p, const char *key);

/* 0 or -ENOMEM; both strings are copied. A NULL value removes the key. */
int properties_set(struct properties *p, const char *key, const char *value);
bool properties_unset(struct properties *p, const char *key);
/* Adds all of @from over what is there. 0 or -ENOMEM, then @p may hold a part. */
int properties_merge(struct properties *p, const struct properties *from);

/**
 * properties_parse() - add what a text holds
 * @name: of the file, for @err
 *
 * Return: 0, -EINVAL (a line that is no property, a bad \u escape, a zero
 * byte), -ENOMEM.
 */
int properties_parse(struct properties *p, const char *text, size_t length,
		     const char *name, struct plog_error *err);

/**
 * properties_read() - add what a file holds
 * @dirfd: as in openat(2)
 *
 * Return: 0, -EFBIG above 1 MiB, or as properties_parse() and openat(2).
 */
int properties_read(struct properties *p, int dirfd, const char *name, struct plog_error *err);

/**
 * properties_write() - plog_file_replace() with these keys
 * @comment: first line without "#", or NULL
 *
 * Return: 0, -EFBIG if properties_read() would find it too large, and then the old
 * file stays, or as plog_file_replace().
 */
int properties_write(const struct properties *p, int dirfd, const char *name,
		     const char *comment, unsigned int mode, struct plog_error *err);

#endif /* PLOG_PROPERTIES_H */
