// SPDX-License-Identifier: MIT
/* Tables for people, JSON for programs. */
#include "plogctl.h"

#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
	if (memory)
		return memory;
	warn("out of memory");
	exit(EXIT_FAILED);
}

struct table {
	const struct column *columns;
	size_t width;		/* columns */
	char **cells;
	size_t count, room;
};

struct table *table_new(const struct column *columns, size_t count)
{
	struct table *t = must(calloc(1, sizeof(*t)));

	t->columns = columns;
	t->width = count;
	return t;
}

void table_cell(struct table *t, const char *format, ...)
{
	va_list args;
	char *text;

	if (t->count == t->room) {
		t->room = t->room ? 2 * t->room : 64;
		t->cells = must(reallocarray(t->cells, t->room, sizeof(*t->cells)));
	}
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	t->cells[t->count++] = must(text);
}

static void print_row(const struct table *t, char *const *cells, const int *widths)
{
	for (size_t i = 0; i < t->width; i++) {
		const char *text = cells ? cells[i] : t->columns[i].title;

		if (i)
			fputs("  ", stdout);
		if (t->columns[i].right)
			printf("%*s", widths[i], text);
		else if (i + 1 == t->width)
			fputs(text, stdout);
		else
			printf("%-*s", widths[i], text);
	}
	putchar('\n');
}

void table_print(struct table *t)
{
	int *widths = must(calloc(t->width, sizeof(*widths)));

	for (size_t i = 0; i < t->width; i++)
		widths[i] = strlen(t->columns[i].title);
	for (size_t i = 0; i < t->count; i++) {
		int length = strlen(t->cells[i]);

		if (length > widths[i % t->width])
			widths[i % t->width] = length;
	}
	print_row(t, NULL, widths);
	for (size_t i = 0; i + t->width <= t->count; i += t->width)
		print_row(t, t->cells + i, widths);
	for (size_t i = 0; i < t->count; i++)
		free(t->cells[i]);
	free(t->cells);
	free(widths);
	free(t);
}

void line(const char *name, const char *format, ...)
{
	va_list args;
	int pad = 22 - (int)strlen(name);

	printf("%s:%*s", name, pad > 1 ? pad : 1, "");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* Several may stand in one printf(). */
static char *scratch(void)
{
	static char buffers[8][48];
	static unsigned int next;

	return buffers[next++ % 8];
}

const char *size_text(const struct ctl *ctl, uint64_t bytes)
{
	static const char units[] = "BKMGTPE";
	double value = bytes;
	char *text = scratch();
	int unit = 0;

	if (ctl->bytes || bytes < 1024) {
		snprintf(text, 48, "%" PRIu64 "%s", bytes, ctl->bytes ? "" : "B");
		return text;
	}
	for (; value >= 999.5; unit++)
		value /= 1024;
	snprintf(text, 48, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
	return text;
}

const char *time_text(int64_t ms)
{
	time_t seconds = ms / 1000;
	char *text = scratch();
	struct tm tm;

	if (ms < 0 || !gmtime_r(&seconds, &tm))
		return "-";
	snprintf(text, 48, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
		 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(ms % 1000));
	return text;
}

const char *user_text(uid_t uid)
{
	struct passwd *user = getpwuid(uid);
	char *text = scratch();

	if (user)
		snprintf(text, 48, "%.47s", user->pw_name);
	else
		snprintf(text, 48, "%u", uid);
	return text;
}

const char *group_text(gid_t gid)
{
	struct group *group = getgrgid(gid);
	char *text = scratch();

	if (group)
		snprintf(text, 48, "%.47s", group->gr_name);
	else
		snprintf(text, 48, "%u", gid);
	return text;
}

struct json_object *json_new(void)
{
	return must(json_object_new_object());
}

struct json_object *json_list(void)
{
	return must(json_object_new_array());
}

void json_put(struct json_object *o, const char *key, struct json_object *value)
{
	if (json_object_object_add(o, key, value))
		must(NULL);
}

void json_append(struct json_object *list, struct json_object *value)
{
	if (json_object_array_add(list, value))
		must(NULL);
}

void json_text(struct json_object *o, const char *key, const char *value)
{
	json_put(o, key, must(json_object_new_string(value)));
}

void json_number(struct json_object *o, const char *key, int64_t value)
{
	json_put(o, key, must(json_object_new_int64(value)));
}

void json_unsigned(struct json_object *o, const char *key, uint64_t value)
{
	json_put(o, key, must(json_object_new_uint64(value)));
}

void json_truth(struct json_object *o, const char *key, bool value)
{
	json_put(o, key, must(json_object_new_boolean(value)));
}

void json_print(struct json_object *o, bool compact)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;

	flags |= compact ? JSON_C_TO_STRING_PLAIN :
			   JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED;
	puts(must((void *)json_object_to_json_string_ext(o, flags)));
	fflush(stdout);
	json_object_put(o);
}

void listing_begin(struct listing *l, const struct ctl *ctl, const struct column *columns,
		   size_t count)
{
	*l = (struct listing){ .ctl = ctl };
	if (ctl->json)
		l->all = json_list();
	else
		l->table = table_new(columns, count);
}

void listing_print(struct listing *l)
{
	if (l->all)
		json_print(l->all, false);
	else
		table_print(l->table);
}
