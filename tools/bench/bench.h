/* SPDX-License-Identifier: MIT */
#ifndef PLOG_BENCH_H
#define PLOG_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The run: set by main(), read by all. */
struct bench {
	bool count;		/* instructions, not seconds */
	int rounds;
	const char *data;	/* data directory */
	int data_fd;
};
extern struct bench bench;

/* Measurements of each variant in a round by the clock; variants of a test, at most. */
#define BENCH_SLICES	8
#define BENCH_VARIANTS	3

/* One way to do what a test measures. */
struct variant {
	const char *name;
	/* Returns the cost of one operation, tick() by tick(). */
	double (*run)(const struct variant *v);
	void *arg;
};

/* A valid batch of an exact size. */
struct batch {
	uint8_t *data;
	size_t size;		/* bytes */
	int records;
};

void die(const char *what) __attribute__((noreturn));

/* Seconds, or instructions, since some fixed moment. */
double tick(void);

/* Run all variants in turn, slice by slice, warm up once, print a sample line for each. */
void measure(const char *test, const struct variant *variants, int n);

void batch_make(struct batch *b, size_t size);

/* /dev/plog/@topic/0 in @mode (PLOG_MODE_*); ends the program on an error. */
int device_open(const char *topic, uint32_t mode);
int64_t device_end(int fd);
void expect_records(const char *test, int64_t got, int64_t want);

void bench_append(void);
void bench_records(void);
void bench_sendfile(void);

#endif
