// SPDX-License-Identifier: MIT
/*
 * plogcat: print the records of a partition, or of a segment's file, whatever
 * codec they were compressed with.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plog.h"

enum { FAILED = 1, USAGE = 2 };

struct cat {
	const char *source;	/* as given, for messages */
	const char *topic;
	uint32_t partition;
	const char *format;
	bool json;
	bool end;		/* exit where the log ends now */
	bool committed;
	uint64_t count;		/* records to go, UINT64_MAX for all */
	const char *from;	/* of -o, or NULL */
};

static const char help[] =
	"usage: plogcat [OPTION...] TOPIC/PARTITION | /dev/plog/TOPIC/PARTITION | FILE.log\n"
	"\n"
	"Prints the values of a partition's records as they come, or of the records in\n"
	"a segment's file, whatever they were compressed with.\n"
	"\n"
	"  -e, --exit            end where the log ends now, do not wait for more\n"
	"  -o, --offset WHERE    beginning (default), end, OFFSET, -N for the last N\n"
	"                        offsets, or s@TIME: the first not older than TIME, in\n"
	"                        milliseconds since 1970\n"
	"  -c, --count N         end after N records\n"
	"  -f, --format TEXT     print this for each record; default %s. In it:\n"
	"                          %s value    %k key     %h headers   %o offset\n"
	"                          %T time     %t topic   %p partition %z codec\n"
	"                          %S, %K length of value and key, -1 for none\n"
	"                          %e leader epoch   %% percent sign\n"
	"                          \\n \\t \\r \\\\ \\xHH as in C\n"
	"  -J, --json            print a JSON object a line\n"
	"  -C, --committed       only records below the last stable offset\n"
	"  -h, --help            print this help\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 the command line was wrong.\n";

static int fail(const struct cat *cat, int error, const char *what)
{
	const char *why = strerror(-error);

	switch (error) {
	case -ENOENT:
		why = "it is not there; is the module loaded? See: plogctl instance show";
		break;
	case -ENOTTY:
		why = "this is no partition's device";
		break;
	case -ERANGE:
		why = "the offset is not in the log; see: plogctl partition show";
		break;
	case -EBADMSG:
		why = "the batch is damaged, or older than Kafka 0.11";
		break;
	case -ENODEV:
		why = "there is no such partition in service; see: plogctl partition show";
		break;
	case -ENODATA:
		why = "no record is that young";
		break;
	}
	fflush(stdout);
	fprintf(stderr, "plogcat: %s: %s: %s\n", cat->source, what, why);
	return FAILED;
}

/* ---- output ---- */

static void put(const void *bytes, int64_t length)
{
	if (length > 0)
		fwrite(bytes, 1, length, stdout);
}

static const char *codec_name(uint8_t codec)
{
	static const char * const names[] = { "none", "gzip", "snappy", "lz4", "zstd" };

	return codec < sizeof(names) / sizeof(names[0]) ? names[codec] : "unknown";
}

static void put_headers(const struct plog_record *r)
{
	for (uint32_t i = 0; i < r->header_count; i++) {
		const struct plog_header *h = &r->headers[i];

		if (i)
			putchar(',');
		put(h->key, h->key_length);
		putchar('=');
		if (h->value_length < 0)
			fputs("NULL", stdout);
		put(h->value, h->value_length);
	}
}

/* Behind the backslash at @f; returns the last character taken. */
static const char *put_escape(const char *f)
{
	char digits[3] = "";

	switch (*f) {
	case 'n': putchar('\n'); break;
	case 't': putchar('\t'); break;
	case 'r': putchar('\r'); break;
	case 'x':
		for (int i = 0; i < 2 && f[1] && strchr("0123456789abcdefABCDEF", f[1]); i++)
			digits[i] = *++f;
		putchar(strtol(digits, NULL, 16));
		break;
	default: putchar(*f); break;
	}
	return f;
}

static void put_field(const struct cat *cat, const struct plog_record *r, char field)
{
	switch (field) {
	case 's': put(r->value, r->value_length); break;
	case 'k': put(r->key, r->key_length); break;
	case 'h': put_headers(r); break;
	case 'o': printf("%" PRId64, r->offset); break;
	case 'T': printf("%" PRId64, r->timestamp); break;
	case 't': fputs(cat->topic, stdout); break;
	case 'p': printf("%" PRIu32, cat->partition); break;
	case 'z': fputs(codec_name(r->codec), stdout); break;
	case 'S': printf("%" PRId32, r->value_length); break;
	case 'K': printf("%" PRId32, r->key_length); break;
	case 'e': printf("%" PRId32, r->leader_epoch); break;
	case '%': putchar('%'); break;
	}
}

/* Is every % in it one that we know? */
static bool format_check(const char *format)
{
	for (const char *f = format; *f; f++) {
		if (*f == '\\' && !*++f)
			return false;
		if (*f == '%' && (!*++f || !strchr("skhoTtpzSKe%", *f)))
			return false;
	}
	return true;
}

/* Bytes as a JSON string: UTF-8 as it is, what is none as U+FFFD. */
static void put_json_text(const void *bytes, int64_t length)
{
	const uint8_t *p = bytes;

	if (length < 0) {
		fputs("null", stdout);
		return;
	}
	putchar('"');
	for (int64_t i = 0; i < length; i++) {
		unsigned int more = p[i] < 0x80 ? 0 : p[i] >> 5 == 6 ? 1 : p[i] >> 4 == 14 ? 2 :
				    p[i] >> 3 == 30 ? 3 : 9;
		bool good = more < 9 && i + more < length;

		for (unsigned int k = 1; good && k <= more; k++)
			good = p[i + k] >> 6 == 2;
		if (!good)
			fputs("\xef\xbf\xbd", stdout);
		else if (more)
			put(p + i, more + 1);
		else if (p[i] == '"' || p[i] == '\\')
			printf("\\%c", p[i]);
		else if (p[i] < 0x20)
			printf("\\u%04x", p[i]);
		else
			putchar(p[i]);
		if (good)
			i += more;
	}
	putchar('"');
}

static void put_json(const struct cat *cat, const struct plog_record *r)
{
	printf("{\"topic\":\"%s\",\"partition\":%" PRIu32 ",\"offset\":%" PRId64
	       ",\"tstype\":\"%s\",\"ts\":%" PRId64 ",\"codec\":\"%s\",\"headers\":[", cat->topic,
	       cat->partition, r->offset, r->log_append_time ? "logappend" : "create",
	       r->timestamp, codec_name(r->codec));
	/* Name and value in turn, as kcat has them. */
	for (uint32_t i = 0; i < r->header_count; i++) {
		if (i)
			putchar(',');
		put_json_text(r->headers[i].key, r->headers[i].key_length);
		putchar(',');
		put_json_text(r->headers[i].value, r->headers[i].value_length);
	}
	fputs("],\"key\":", stdout);
	put_json_text(r->key, r->key_length);
	fputs(",\"payload\":", stdout);
	put_json_text(r->value, r->value_length);
	fputs("}\n", stdout);
}

static void put_record(const struct cat *cat, const struct plog_record *r)
{
	if (cat->json) {
		put_json(cat, r);
		return;
	}
	for (const char *f = cat->format; *f; f++) {
		if (*f == '\\')
			f = put_escape(f + 1);
		else if (*f == '%')
			put_field(cat, r, *++f);
		else
			putchar(*f);
	}
}

/* ---- a partition ---- */

static int seek(const struct cat *cat, struct plog *log)
{
	const char *from = cat->from;
	struct plog_state state;
	long long number;
	char *end;
	int ret;

	if (!from || !strcmp(from, "beginning"))
		return plog_seek(log, PLOG_OFFSET_BEGIN);
	if (!strcmp(from, "end"))
		return plog_seek(log, PLOG_OFFSET_END);
	errno = 0;
	number = strtoll(strncmp(from, "s@", 2) ? from : from + 2, &end, 10);
	if (errno || *end || end == from || (*from == 's' && (end == from + 2 || number < 0)))
		return -EINVAL;
	if (*from == 's')
		return plog_seek_time(log, number);
	if (number >= 0)
		return plog_seek(log, number);
	ret = plog_stat(log, &state);
	if (ret)
		return ret;
	number += cat->committed ? state.last_stable : state.high_watermark;
	return plog_seek(log, number < state.log_start ? state.log_start : number);
}

static int cat_log(struct cat *cat, struct plog *log)
{
	int64_t last = INT64_MAX;
	struct plog_record record;
	int ret;

	ret = seek(cat, log);
	if (ret == -EINVAL) {
		fprintf(stderr, "plogcat: -o %s: must be beginning, end, OFFSET, -N or s@TIME\n",
			cat->from);
		return USAGE;
	}
	/* Without a record that young there is nothing to print before the end. */
	if (ret == -ENODATA && cat->end)
		return 0;
	if (ret)
		return fail(cat, ret, "cannot go to the offset");
	if (cat->end) {
		struct plog_state state;

		ret = plog_stat(log, &state);
		if (ret)
			return fail(cat, ret, "cannot ask for the end");
		last = cat->committed ? state.last_stable : state.high_watermark;
	}
	while (cat->count && !ferror(stdout)) {
		ret = plog_next(log, &record, 0);
		if (!ret) {
			/* Caught up: show what there is before waiting. */
			if (cat->end || fflush(stdout))
				break;
			ret = plog_next(log, &record, -1);
		}
		if (ret == -EINTR)
			break;
		if (ret < 0)
			return fail(cat, ret, "cannot read");
		if (record.offset >= last)
			break;
		put_record(cat, &record);
		if (cat->count != UINT64_MAX)
			cat->count--;
		if (record.offset + 1 >= last)
			break;
	}
	return 0;
}

/* ---- a segment's file ---- */

static int cat_bytes(struct cat *cat, const void *bytes, size_t length)
{
	struct plog_record record;
	struct plog_walk *walk;
	int ret;

	ret = plog_walk_new(bytes, length, &walk);
	if (ret)
		return fail(cat, ret, "cannot read");
	if (cat->from && strcmp(cat->from, "beginning"))
		plog_walk_from(walk, strtoll(cat->from, NULL, 10));
	while (cat->count && !ferror(stdout)) {
		ret = plog_walk_next(walk, &record);
		if (ret <= 0)
			break;
		put_record(cat, &record);
		if (cat->count != UINT64_MAX)
			cat->count--;
	}
	if (ret < 0) {
		char where[64];

		snprintf(where, sizeof(where), "byte %zu", length - plog_walk_rest(walk));
		fail(cat, ret, where);
	}
	if (!ret && plog_walk_rest(walk)) {
		fflush(stdout);
		fprintf(stderr, "plogcat: %s: the last %zu bytes are no whole batch\n",
			cat->source, plog_walk_rest(walk));
	}
	plog_walk_free(walk);
	return ret < 0 ? FAILED : 0;
}

static int cat_file(struct cat *cat, int fd, size_t length)
{
	void *bytes;
	int status;

	if (!length)
		return 0;
	bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return fail(cat, -errno, "cannot read");
	status = cat_bytes(cat, bytes, length);
	munmap(bytes, length);
	return status;
}

/* ---- which of the two ---- */

/* ".../TOPIC/PARTITION": sets topic and partition if it ends like that. */
static bool split(struct cat *cat, char *name)
{
	char *slash = strrchr(name, '/'), *end;
	unsigned long number;

	if (!slash || slash == name || !slash[1])
		return false;
	errno = 0;
	number = strtoul(slash + 1, &end, 10);
	if (errno || *end || number > UINT32_MAX || slash[1] < '0' || slash[1] > '9')
		return false;
	*slash = '\0';
	cat->partition = number;
	cat->topic = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	return true;
}

static int run(struct cat *cat)
{
	unsigned int flags = PLOG_OPEN_READ | (cat->committed ? PLOG_OPEN_COMMITTED : 0);
	char *name = strdup(cat->source);
	struct plog *log = NULL;
	struct stat st;
	int fd, status;

	if (!name)
		return fail(cat, -ENOMEM, "cannot open");
	cat->topic = "";
	fd = open(cat->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		status = cat_file(cat, fd, st.st_size);
	} else if (!split(cat, name)) {
		fprintf(stderr, "plogcat: %s is neither a file nor TOPIC/PARTITION\n",
			cat->source);
		status = USAGE;
	} else {
		int ret;

		if (strchr(name, '/'))
			ret = plog_open_path(cat->source, flags, &log);
		else
			ret = plog_open(cat->topic, cat->partition, flags, &log);
		status = ret ? fail(cat, ret, "cannot open") : cat_log(cat, log);
	}
	if (fd >= 0)
		close(fd);
	plog_close(log);
	free(name);
	return status;
}

static void on_signal(int signal)
{
	(void)signal;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "exit", no_argument, NULL, 'e' },
		{ "offset", required_argument, NULL, 'o' },
		{ "count", required_argument, NULL, 'c' },
		{ "format", required_argument, NULL, 'f' },
		{ "json", no_argument, NULL, 'J' },
		{ "committed", no_argument, NULL, 'C' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	struct cat cat = { .format = "%s", .count = UINT64_MAX };
	struct sigaction action = { .sa_handler = on_signal };
	char *end;
	int option, status;

	while ((option = getopt_long(argc, argv, "eo:c:f:JCh", options, NULL)) != -1) {
		switch (option) {
		case 'e': cat.end = true; break;
		case 'o': cat.from = optarg; break;
		case 'f': cat.format = optarg; break;
		case 'J': cat.json = true; break;
		case 'C': cat.committed = true; break;
		case 'c':
			errno = 0;
			cat.count = strtoull(optarg, &end, 10);
			if (errno || *end || *optarg < '0' || *optarg > '9') {
				fprintf(stderr, "plogcat: -c needs a number, not \"%s\"\n", optarg);
				return USAGE;
			}
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			fputs("plogcat: see plogcat --help\n", stderr);
			return USAGE;
		}
	}
	if (optind + 1 != argc || !format_check(cat.format)) {
		fputs(optind + 1 != argc ? help : "plogcat: the format has a % or \\ that is none "
		      "of those in plogcat --help\n", stderr);
		return USAGE;
	}
	cat.source = argv[optind];
	/* Without a restart, so that waiting ends. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	status = run(&cat);
	if ((fflush(stdout) || ferror(stdout)) && !status) {
		fprintf(stderr, "plogcat: cannot write: %s\n", strerror(errno));
		status = FAILED;
	}
	return status;
}
