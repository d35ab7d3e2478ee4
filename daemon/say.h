/* SPDX-License-Identifier: MIT */
#ifndef PLOG_SAY_H
#define PLOG_SAY_H

/*
 * What plogd tells the person who runs it: one line each on standard error, with the time
 * in UTC, a level, the part that speaks and a plain sentence.
 */
enum say_level {
	SAY_ERROR,	/* the daemon or a partition cannot do its work */
	SAY_WARN,	/* something is wrong, the work goes on */
	SAY_INFO,	/* what an operator wants to read: start, stop, topics, closed peers */
	SAY_DEBUG,	/* each request and each step */
};

/* Lines above @level are left out from now on. Any thread. */
void say_set_level(enum say_level level);

/* "error", "warn", "info" or "debug" into *@level: 0, or -1 if @name is none of them. */
int say_parse_level(const char *name, enum say_level *level);

/* Would a line of @level be written? For callers that must work to make the text. */
int say_wanted(enum say_level level);

/* Write one line. Any thread; a line is never torn by another one. */
void say(enum say_level level, const char *part, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
