// SPDX-License-Identifier: MIT
/*
 * One life of a guest that will be killed: opens what the last one left, compares
 * it with what had been acknowledged, and then writes, with a line of output for
 * each acknowledgement, until it is killed. killed.py is the other side.
 *
 *	killed --life N [--promises FILE] [--last]
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load.h"
#include "verify.h"

#define DATA	"/var/lib/plog/data"
#define PARTS	8

static struct promise promises[PARTS];

static void line(const char *format, ...)
{
	char text[1000];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (write(1, text, (size_t)n) != n)
		exit(1);
}

static int fail(const char *what)
{
	line("bad %s\n", what);
	return 1;
}

/* Under the lock: lines come out in the order in which things were promised. */
static void say(struct load *load, struct load_part *part)
{
	static char text[PROMISE_TEXT];
	size_t n;

	(void)load;
	promise_print(&part->promise, part->nr, text, sizeof(text));
	n = strlen(text);
	if (write(1, text, n) != (ssize_t)n)
		exit(1);
}

static void read_promises(const char *file)
{
	char text[PROMISE_TEXT];
	struct promise p;
	FILE *f = fopen(file, "re");
	int part;

	while (f && fgets(text, sizeof(text), f)) {
		part = promise_read(text, &p);
		if (part >= 0 && part < PARTS)
			promises[part] = p;
	}
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "life", required_argument, NULL, 'n' },
		{ "promises", required_argument, NULL, 'p' },
		{ "last", no_argument, NULL, 'l' },
		{ 0 },
	};
	static struct load load;
	struct found found = { 0 };
	struct instance in;
	const char *bad;
	uint32_t life = 0;
	bool last = false;
	int opt, i, ret;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'n')
			life = (uint32_t)atoi(optarg);
		else if (opt == 'p')
			read_promises(optarg);
		else if (opt == 'l')
			last = true;
		else
			return 2;
	}
	mkdir(DATA, 0755);
	ret = namespace_new();
	if (!ret)
		ret = instance_start(&in, DATA);
	if (ret)
		return fail("no instance");
	bad = load_open(&load, &in, PARTS);
	if (bad)
		return fail(bad);
	load.keep = true;
	load.acked = say;
	/* what the last life asked for and nobody heard of may be there or not */
	for (i = 0; i < PARTS; i++) {
		promises[i].start_asked = INT64_MAX;
		promises[i].newest = life * 10000;
	}
	bad = load_verify(&load, promises, &found);
	if (bad) {
		ret = system("cd " DATA " && dmesg | grep plog: | tail -n 20 && stat -c '%n %s' */*.log");
		return fail(bad);
	}
	line("found %llu %llu\n", (unsigned long long)found.batches,
	     (unsigned long long)found.promised);
	if (last) {
		load_close(&load);
		if (instance_stop(&in))
			return fail("the instance does not stop");
		bad = load_verify_files(&load, DATA, PARTS, &found);
		if (bad)
			return fail(bad);
		line("files %llu\n", (unsigned long long)found.entries);
		return 0;
	}
	/* names are the business of who makes the directories */
	sync();
	line("load\n");
	load_start(&load, life);
	bad = load_wait(&load);
	return fail(bad ? bad : "the writers ended");
}
