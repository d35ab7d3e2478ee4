/* SPDX-License-Identifier: MIT */
/*
 * Which transactions were aborted, for readers of committed records.  A batch of a
 * transaction was, if the next marker of its producer in the log says so: so the markers
 * ahead of the reader are read from the log's headers, as far as they are needed.
 */
#ifndef PLOG_ABORTED_H
#define PLOG_ABORTED_H

#include <stdint.h>

struct aborted;
struct plog_headers;

/* As PLOG_IOC_HEADERS: 0 or a negative errno. */
typedef int (*aborted_headers)(void *arg, struct plog_headers *headers);

/* 0 or -ENOMEM. */
int aborted_new(aborted_headers headers, void *arg, struct aborted **out);
void aborted_free(struct aborted *aborted);

/**
 * aborted_check() - was the batch at @offset, of a transaction of @producer's, aborted?
 *
 * It is below the last stable offset.  Offsets rise from call to call; one that does
 * not begins anew.  Return: 1, 0, -ENOMEM, or an error of the headers.
 */
int aborted_check(struct aborted *aborted, int64_t producer, int64_t offset);

#endif
