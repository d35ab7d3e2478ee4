// SPDX-License-Identifier: MIT
#include "say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The only state: set at the start and on reload, read by every thread. */
static atomic_int max_level = SAY_INFO;

static const char *const names[] = { "error", "warn", "info", "debug" };
static const char *const shown[] = { "ERROR", "WARN ", "INFO ", "DEBUG" };

void say_set_level(enum say_level level)
{
	atomic_store(&max_level, level);
}

int say_parse_level(const char *name, enum say_level *level)
{
	for (unsigned int i = 0; i < 4; i++)
		if (!strcmp(name, names[i])) {
			*level = i;
			return 0;
		}
	return -1;
}

int say_wanted(enum say_level level)
{
	return (int)level <= atomic_load_explicit(&max_level, memory_order_relaxed);
}

void say(enum say_level level, const char *part, const char *fmt, ...)
{
	char line[1600];
	struct timespec now;
	struct tm tm;
	size_t n;
	va_list ap;
	int saved = errno, more;

	if (!say_wanted(level))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
	n += snprintf(line + n, sizeof(line) - n, ".%03ldZ %s %s: ", now.tv_nsec / 1000000,
		      shown[level], part);
	va_start(ap, fmt);
	more = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	if (more > 0)
		n += (size_t)more < sizeof(line) - n - 1 ? (size_t)more : sizeof(line) - n - 2;
	/* a peer's bytes may be in the text: they must not write lines of their own */
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[n++] = '\n';
	/* one write, so that threads do not mix; there is nobody to tell if it fails */
	if (write(STDERR_FILENO, line, n) < 0)
		errno = saved;
	errno = saved;
}
