// SPDX-License-Identifier: MIT
/* Files of Java's properties: what is read, what is written. */
#include "cm.h"

#include "properties.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* properties.c's */
#define FILE_MAX (1 << 20)

static char root[PATH_MAX];

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(root, sizeof(root), "%s/test_properties.XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[PATH_MAX + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static int entries(void)
{
	DIR *d = opendir(root);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n;
}

static void properties_format(void **state)
{
	static const char text[] =
		"# comment\n"
		"! another\n"
		"\n"
		"   a = 1\r\n"
		"b:2\r"
		"c 3\n"
		"d\n"
		"e=one \\\n    two\\\r\n three\n"
		"f\\=\\:\\ g=\\u00e9\\t\\ud83d\\ude00\\q\n"
		"h=  \\  x  \n"
		"a=again\n"
		"last=\\";
	struct properties p;
	struct plog_error err;

	(void)state;
	properties_init(&p);
	assert_int_equal(properties_parse(&p, text, sizeof(text) - 1, "x", &err), 0);
	assert_string_equal(properties_get(&p, "a"), "again");
	assert_string_equal(properties_get(&p, "b"), "2");
	assert_string_equal(properties_get(&p, "c"), "3");
	assert_string_equal(properties_get(&p, "d"), "");
	assert_string_equal(properties_get(&p, "e"), "one twothree");
	assert_string_equal(properties_get(&p, "f=: g"), "\xc3\xa9\t\xf0\x9f\x98\x80q");
	assert_string_equal(properties_get(&p, "h"), "  x  ");
	assert_string_equal(properties_get(&p, "last"), "");
	assert_int_equal(properties_find(&p, "d")->line, 7);
	assert_int_equal(p.count, 8);
	assert_true(properties_unset(&p, "d"));
	assert_false(properties_unset(&p, "d"));
	properties_clear(&p);

	assert_int_equal(properties_parse(&p, "a=\0b", 4, "x", &err), -EINVAL);
	assert_int_equal(properties_parse(&p, "a=\\u12", 6, "x", &err), -EINVAL);
	assert_int_equal(properties_parse(&p, "a=\\ud800", 8, "x", &err), -EINVAL);
	assert_int_equal(properties_parse(&p, "a=\\u0000", 8, "x", &err), -EINVAL);
	assert_int_equal(properties_parse(&p, "ok=1\n\n : 2", 10, "name", &err), -EINVAL);
	assert_string_equal(err.text, "name, line 3: a value without a key");
	properties_clear(&p);
}

static void properties_files(void **state)
{
	struct properties out, in;
	struct plog_error err;
	int dirfd, fd;
	char *large;

	(void)state;
	dirfd = open(root, O_RDONLY | O_DIRECTORY);
	properties_init(&out);
	properties_init(&in);
	assert_int_equal(properties_set(&out, " k=:#!\\", "  \n\\ v\t"), 0);
	assert_int_equal(properties_set(&out, "empty", ""), 0);
	assert_int_equal(properties_write(&out, dirfd, "f", "hello", 0640, &err), 0);
	assert_int_equal(properties_read(&in, dirfd, "f", &err), 0);
	assert_int_equal(in.count, 2);
	assert_string_equal(properties_get(&in, " k=:#!\\"), "  \n\\ v\t");
	assert_int_equal(properties_read(&in, dirfd, "g", &err), -ENOENT);
	assert_int_equal(mkdirat(dirfd, "d", 0755), 0);
	assert_int_equal(properties_read(&in, dirfd, "d", &err), -EINVAL);
	fd = openat(dirfd, "f", O_WRONLY);
	assert_int_equal(ftruncate(fd, (1 << 20) + 1), 0);
	close(fd);
	assert_int_equal(properties_read(&in, dirfd, "f", &err), -EFBIG);
	/* what could not be read again is not written: the last that can, and one byte more */
	large = malloc(FILE_MAX + 1);
	assert_non_null(large);
	memset(large, 'x', FILE_MAX);
	properties_clear(&out);
	large[FILE_MAX - 3] = '\0';
	assert_int_equal(properties_set(&out, "k", large), 0);
	assert_int_equal(properties_write(&out, dirfd, "f", NULL, 0640, &err), 0);
	assert_int_equal(properties_read(&in, dirfd, "f", &err), 0);
	assert_string_equal(properties_get(&in, "k"), large);
	large[0] = '\n';
	assert_int_equal(properties_set(&out, "k", large), 0);
	assert_int_equal(properties_write(&out, dirfd, "f", NULL, 0640, &err), -EFBIG);
	assert_non_null(strstr(err.text, "larger than 1048576 bytes"));
	properties_clear(&in);
	assert_int_equal(properties_read(&in, dirfd, "f", &err), 0);
	assert_int_equal(*properties_get(&in, "k"), 'x');
	free(large);
	/* a failed write leaves nothing behind */
	assert_true(properties_write(&out, dirfd, "d", NULL, 0640, &err) < 0);
	assert_int_equal(entries(), 2);
	properties_clear(&out);
	properties_clear(&in);
	close(dirfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(properties_format),
		cmocka_unit_test_setup_teardown(properties_files, setup, teardown),
	};

	return cmocka_run_group_tests_name("properties", tests, NULL, NULL);
}
