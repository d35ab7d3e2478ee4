// SPDX-License-Identifier: MIT
#include "properties.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX	(1u << 20)

int plog_error_set(struct plog_error *err, int code, const char *format, ...)
{
	va_list args;

	if (err) {
		va_start(args, format);
		vsnprintf(err->text, sizeof(err->text), format, args);
		va_end(args);
	}
	return code;
}

void properties_init(struct properties *p)
{
	memset(p, 0, sizeof(*p));
}

void properties_clear(struct properties *p)
{
	for (size_t i = 0; i < p->count; i++) {
		free(p->entries[i].key);
		free(p->entries[i].value);
	}
	free(p->entries);
	properties_init(p);
}

/* Index of @key, or of where it belongs; *@found tells which. */
static size_t position(const struct properties *p, const char *key, bool *found)
{
	size_t low = 0, high = p->count;

	*found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(p->entries[middle].key, key);

		if (!order) {
			*found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct property *properties_find(const struct properties *p, const char *key)
{
	bool found;
	size_t i = position(p, key, &found);

	return found ? &p->entries[i] : NULL;
}

const char *properties_get(const struct properties *p, const char *key)
{
	const struct property *entry = properties_find(p, key);

	return entry ? entry->value : NULL;
}

static int set_at_line(struct properties *p, const char *key, const char *value,
		       unsigned int line)
{
	struct property *entry;
	char *copy, *name;
	bool found;
	size_t i = position(p, key, &found);

	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	if (found) {
		entry = &p->entries[i];
		free(entry->value);
		entry->value = copy;
		entry->line = line;
		return 0;
	}
	if (p->count == p->room) {
		size_t room = p->room ? 2 * p->room : 8;
		struct property *larger = reallocarray(p->entries, room, sizeof(*larger));

		if (!larger)
			goto free_copy;
		p->entries = larger;
		p->room = room;
	}
	name = strdup(key);
	if (!name)
		goto free_copy;
	entry = &p->entries[i];
	memmove(entry + 1, entry, (p->count - i) * sizeof(*entry));
	p->count++;
	*entry = (struct property){ .key = name, .value = copy, .line = line };
	return 0;

free_copy:
	free(copy);
	return -ENOMEM;
}

int properties_set(struct properties *p, const char *key, const char *value)
{
	if (!value) {
		properties_unset(p, key);
		return 0;
	}
	return set_at_line(p, key, value, 0);
}

bool properties_unset(struct properties *p, const char *key)
{
	bool found;
	size_t i = position(p, key, &found);
	struct property *entry = &p->entries[i];

	if (!found)
		return false;
	free(entry->key);
	free(entry->value);
	p->count--;
	memmove(entry, entry + 1, (p->count - i) * sizeof(*entry));
	return true;
}

int properties_merge(struct properties *p, const struct properties *from)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct property *entry = &from->entries[i];
		int ret = set_at_line(p, entry->key, entry->value, entry->line);

		if (ret)
			return ret;
	}
	return 0;
}

/* ---- reading ---- */

/* Where the parser stands in the text. */
struct cursor {
	const char *at, *end;
	unsigned int line;
	const char *name;
	struct plog_error *err;
};

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\f';
}

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && blank(*c->at))
		c->at++;
}

/* Takes one end of line (\n, \r or \r\n) if there is one. */
static bool take_newline(struct cursor *c)
{
	if (c->at == c->end || (*c->at != '\n' && *c->at != '\r'))
		return false;
	if (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n')
		c->at++;
	c->at++;
	c->line++;
	return true;
}

static int hex4(struct cursor *c, uint32_t *value)
{
	*value = 0;
	if (c->end - c->at < 4)
		goto bad;
	for (int i = 0; i < 4; i++) {
		char digit = *c->at++;

		*value <<= 4;
		if (digit >= '0' && digit <= '9')
			*value |= digit - '0';
		else if ((digit | 32) >= 'a' && (digit | 32) <= 'f')
			*value |= (digit | 32) - 'a' + 10;
		else
			goto bad;
	}
	return 0;
bad:
	return plog_error_set(c->err, -EINVAL, "%s, line %u: \\u needs four hexadecimal digits",
			      c->name, c->line);
}

static char *put_utf8(char *to, uint32_t code)
{
	if (code < 0x80) {
		*to++ = code;
	} else if (code < 0x800) {
		*to++ = 0xc0 | code >> 6;
		*to++ = 0x80 | (code & 0x3f);
	} else if (code < 0x10000) {
		*to++ = 0xe0 | code >> 12;
		*to++ = 0x80 | (code >> 6 & 0x3f);
		*to++ = 0x80 | (code & 0x3f);
	} else {
		*to++ = 0xf0 | code >> 18;
		*to++ = 0x80 | (code >> 12 & 0x3f);
		*to++ = 0x80 | (code >> 6 & 0x3f);
		*to++ = 0x80 | (code & 0x3f);
	}
	return to;
}

/* Behind "\u": one code point, a surrogate pair taken together. */
static int take_unicode(struct cursor *c, char **to)
{
	uint32_t code, low;
	int ret = hex4(c, &code);

	if (ret)
		return ret;
	if (code >= 0xd800 && code < 0xdc00 && c->end - c->at >= 6 &&
	    c->at[0] == '\\' && c->at[1] == 'u') {
		c->at += 2;
		ret = hex4(c, &low);
		if (ret)
			return ret;
		if (low < 0xdc00 || low > 0xdfff)
			goto bad;
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	} else if (code >= 0xd800 && code <= 0xdfff) {
		goto bad;
	}
	if (!code)
		goto bad;
	*to = put_utf8(*to, code);
	return 0;
bad:
	return plog_error_set(c->err, -EINVAL, "%s, line %u: \\u escape is not a character",
			      c->name, c->line);
}

/*
 * Decodes up to the end of the logical line, or for a key to its separator,
 * into @to, which has room for all of the text: decoding never makes it longer
 * (the longest, \uXXXX, is 6 bytes for 3).
 */
static int take_token(struct cursor *c, bool key, char *to)
{
	int ret;

	while (c->at < c->end) {
		char ch = *c->at;

		if (ch == '\n' || ch == '\r')
			break;
		if (key && (ch == '=' || ch == ':' || blank(ch)))
			break;
		c->at++;
		if (!ch)
			return plog_error_set(c->err, -EINVAL, "%s, line %u: zero byte",
					      c->name, c->line);
		if (ch != '\\') {
			*to++ = ch;
			continue;
		}
		if (c->at == c->end)
			break;
		if (take_newline(c)) {
			skip_blanks(c);
			continue;
		}
		ch = *c->at++;
		switch (ch) {
		case 'n': *to++ = '\n'; break;
		case 't': *to++ = '\t'; break;
		case 'r': *to++ = '\r'; break;
		case 'f': *to++ = '\f'; break;
		case 'u':
			ret = take_unicode(c, &to);
			if (ret)
				return ret;
			break;
		case '\0':
			return plog_error_set(c->err, -EINVAL, "%s, line %u: zero byte",
					      c->name, c->line);
		default: *to++ = ch; break;
		}
	}
	*to = '\0';
	return 0;
}

int properties_parse(struct properties *p, const char *text, size_t length,
		     const char *name, struct plog_error *err)
{
	struct cursor c = { .at = text, .end = text + length, .line = 1, .name = name, .err = err };
	char *key = malloc(length + 1), *value = malloc(length + 1);
	int ret = 0;

	if (!key || !value) {
		ret = plog_error_set(err, -ENOMEM, "%s: out of memory", name);
		goto out;
	}
	while (c.at < c.end) {
		unsigned int line = c.line;

		skip_blanks(&c);
		if (c.at == c.end)
			break;
		if (take_newline(&c))
			continue;
		if (*c.at == '#' || *c.at == '!') {
			while (c.at < c.end && *c.at != '\n' && *c.at != '\r')
				c.at++;
			continue;
		}
		ret = take_token(&c, true, key);
		if (ret)
			goto out;
		skip_blanks(&c);
		if (c.at < c.end && (*c.at == '=' || *c.at == ':')) {
			c.at++;
			skip_blanks(&c);
		}
		ret = take_token(&c, false, value);
		if (ret)
			goto out;
		if (!*key) {
			ret = plog_error_set(err, -EINVAL, "%s, line %u: a value without a key",
					     name, line);
			goto out;
		}
		ret = set_at_line(p, key, value, line);
		if (ret) {
			plog_error_set(err, ret, "%s: out of memory", name);
			goto out;
		}
	}
out:
	free(key);
	free(value);
	return ret;
}

int properties_read(struct properties *p, int dirfd, const char *name, struct plog_error *err)
{
	struct stat st;
	char *text = NULL;
	size_t length = 0;
	int ret, fd;

	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return plog_error_set(err, -errno, "cannot open %s: %m", name);
	if (fstat(fd, &st) < 0) {
		ret = plog_error_set(err, -errno, "cannot read %s: %m", name);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		ret = plog_error_set(err, -EINVAL, "%s is not a regular file", name);
		goto out;
	}
	if (st.st_size > FILE_MAX) {
		ret = plog_error_set(err, -EFBIG, "%s is larger than %u bytes", name, FILE_MAX);
		goto out;
	}
	text = malloc(FILE_MAX + 1);
	if (!text) {
		ret = plog_error_set(err, -ENOMEM, "%s: out of memory", name);
		goto out;
	}
	for (;;) {
		ssize_t got = read(fd, text + length, FILE_MAX + 1 - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			ret = plog_error_set(err, -errno, "cannot read %s: %m", name);
			goto out;
		}
		if (!got)
			break;
		length += got;
		if (length > FILE_MAX) {
			ret = plog_error_set(err, -EFBIG, "%s is larger than %u bytes", name,
					     FILE_MAX);
			goto out;
		}
	}
	ret = properties_parse(p, text, length, name, err);
out:
	free(text);
	close(fd);
	return ret;
}

/* ---- writing ---- */

static void write_escaped(FILE *f, const char *text, bool key)
{
	for (const char *at = text; *at; at++) {
		switch (*at) {
		case '\n': fputs("\\n", f); break;
		case '\t': fputs("\\t", f); break;
		case '\r': fputs("\\r", f); break;
		case '\f': fputs("\\f", f); break;
		case '\\': fputs("\\\\", f); break;
		case ' ':
			/* a blank inside a value needs none */
			fputs(key || at == text ? "\\ " : " ", f);
			break;
		case '=': case ':': case '#': case '!':
			if (key)
				fputc('\\', f);
			fputc(*at, f);
			break;
		default: fputc(*at, f); break;
		}
	}
}

int plog_file_replace(int dirfd, const char *name, const void *data, size_t length,
		      unsigned int mode, struct plog_error *err)
{
	const char *at = data;
	char temporary[64];
	uint64_t tag;
	int fd, ret;

	if (getrandom(&tag, sizeof(tag), 0) != sizeof(tag))
		return plog_error_set(err, -EIO, "no random bytes to be had");
	/* A fixed length: name + suffix could pass the file system's limit. */
	snprintf(temporary, sizeof(temporary), ".plog-%016llx.tmp", (unsigned long long)tag);
	fd = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return plog_error_set(err, -errno, "cannot write %s: %m", name);
	while (length) {
		ssize_t put = write(fd, at, length);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0) {
			ret = plog_error_set(err, -errno, "cannot write %s: %m", name);
			goto close;
		}
		at += put;
		length -= put;
	}
	/* The mode again, because of the caller's umask. */
	if (fchmod(fd, mode) < 0 || fsync(fd) < 0) {
		ret = plog_error_set(err, -errno, "cannot write %s: %m", name);
		goto close;
	}
	if (close(fd) < 0) {
		ret = plog_error_set(err, -errno, "cannot write %s: %m", name);
		goto unlink;
	}
	if (renameat(dirfd, temporary, dirfd, name) < 0) {
		ret = plog_error_set(err, -errno, "cannot replace %s: %m", name);
		goto unlink;
	}
	if (fsync(dirfd) < 0)
		return plog_error_set(err, -errno, "cannot sync the directory of %s: %m", name);
	return 0;

close:
	close(fd);
unlink:
	unlinkat(dirfd, temporary, 0);
	return ret;
}

int properties_write(const struct properties *p, int dirfd, const char *name,
		     const char *comment, unsigned int mode, struct plog_error *err)
{
	char *text = NULL;
	size_t length = 0;
	FILE *f = open_memstream(&text, &length);
	int ret;

	if (!f)
		return plog_error_set(err, -ENOMEM, "%s: out of memory", name);
	if (comment)
		fprintf(f, "# %s\n", comment);
	for (size_t i = 0; i < p->count; i++) {
		write_escaped(f, p->entries[i].key, true);
		fputc('=', f);
		write_escaped(f, p->entries[i].value, false);
		fputc('\n', f);
	}
	if (fclose(f))
		ret = plog_error_set(err, -ENOMEM, "%s: out of memory", name);
	else if (length > FILE_MAX)
		/* properties_read() would not take it */
		ret = plog_error_set(err, -EFBIG, "%s would be larger than %u bytes", name,
				     FILE_MAX);
	else
		ret = plog_file_replace(dirfd, name, text, length, mode, err);
	free(text);
	return ret;
}
