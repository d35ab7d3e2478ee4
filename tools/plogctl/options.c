// SPDX-License-Identifier: MIT
/* The command line: finding the command, its options and arguments, help. */
#include "plogctl.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option common[] = {
	{ "--json", NULL, "print JSON instead of text for people", false },
	{ "--bytes", NULL, "print sizes in bytes, all digits", false },
	{ "--help", NULL, "print this help", false },
	{ NULL, NULL, NULL, false },
};

int fail(const struct plog_error *err)
{
	fprintf(stderr, "plogctl: %s\n", err->text);
	if (geteuid() && (strstr(err->text, "CAP_NET_ADMIN") ||
			  strstr(err->text, strerror(EACCES))))
		fprintf(stderr, "plogctl: run it as root: sudo plogctl ...\n");
	return EXIT_FAILED;
}

void warn(const char *format, ...)
{
	va_list args;

	fputs("plogctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static void words(const struct command *cmd, FILE *f)
{
	fprintf(f, "plogctl %s%s%s", cmd->group, cmd->verb ? " " : "", cmd->verb ? cmd->verb : "");
}

int fail_usage(const struct ctl *ctl, const char *format, ...)
{
	va_list args;

	fputs("plogctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (ctl->command) {
		fputs("\nusage: ", stderr);
		words(ctl->command, stderr);
		fprintf(stderr, "%s%s\n", *ctl->command->usage ? " " : "", ctl->command->usage);
	} else {
		fputs("\nsee: plogctl help\n", stderr);
	}
	return EXIT_USAGE;
}

/* ---- help ---- */

static void help_options(const struct option *o)
{
	for (; o && o->name; o++) {
		char left[48];

		snprintf(left, sizeof(left), "%s%s%s", o->name, o->argument ? " " : "",
			 o->argument ? o->argument : "");
		printf("  %-22s %s%s\n", left, o->doc, o->many ? " (may be repeated)" : "");
	}
}

static void help_command(const struct command *cmd)
{
	printf("usage: ");
	words(cmd, stdout);
	printf("%s%s\n\n%s.\n", *cmd->usage ? " " : "", cmd->usage, cmd->summary);
	if (cmd->text)
		printf("\n%s\n", cmd->text);
	printf("\noptions:\n");
	help_options(cmd->options);
	help_options(common);
}

static void help_group(const char *group, FILE *f)
{
	for (const struct command *cmd = commands; cmd->group; cmd++) {
		char left[40];

		if (group && strcmp(group, cmd->group))
			continue;
		snprintf(left, sizeof(left), "%s%s%s", cmd->group, cmd->verb ? " " : "",
			 cmd->verb ? cmd->verb : "");
		fprintf(f, "  %-18s %s\n", left, cmd->summary);
	}
}

static void help_all(void)
{
	printf("usage: plogctl COMMAND [ARGUMENT...] [OPTION...]\n\n"
	       "Runs the partition logs of the plog kernel module, in the network namespace\n"
	       "that it is called in.\n\ncommands:\n");
	help_group(NULL, stdout);
	printf("\noptions of every command:\n");
	help_options(common);
	printf("\n\"plogctl COMMAND --help\" tells more. Exit status: 0 done, 1 failed,\n"
	       "2 the command line was wrong.\n");
}

/* ---- near misses ---- */

/* Levenshtein's distance of two short words. */
static size_t distance(const char *a, const char *b)
{
	size_t row[40], length = strlen(b);

	if (length >= 40 || strlen(a) >= 40)
		return SIZE_MAX;
	for (size_t j = 0; j <= length; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 1; j <= length; j++) {
			size_t best = diagonal + (a[i] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[length];
}

static void nearer(const char *word, const char *candidate, const char **best, size_t *least)
{
	size_t d = distance(word, candidate);

	/* "part" for "partition" is near as well */
	if (strlen(word) >= 3 && !strncmp(word, candidate, strlen(word)))
		d = 1;
	if (d < *least) {
		*least = d;
		*best = candidate;
	}
}

static const struct option *find_option(const struct option *o, const char *name, size_t length)
{
	for (; o && o->name; o++)
		if (strlen(o->name) == length && !memcmp(o->name, name, length))
			return o;
	return NULL;
}

static int unknown_option(const struct ctl *ctl, const char *name, size_t length)
{
	char word[64];
	const char *best = NULL;
	size_t least = 4;

	snprintf(word, sizeof(word), "%.*s", (int)length, name);
	for (const struct option *o = ctl->command->options; o && o->name; o++)
		nearer(word, o->name, &best, &least);
	for (const struct option *o = common; o->name; o++)
		nearer(word, o->name, &best, &least);
	if (best)
		return fail_usage(ctl, "unknown option %s; did you mean %s?", word, best);
	return fail_usage(ctl, "unknown option %s", word);
}

static int unknown_word(const struct ctl *ctl, const char *group, const char *word)
{
	const char *best = NULL;
	size_t least = 3;

	for (const struct command *cmd = commands; cmd->group; cmd++) {
		if (!group)
			nearer(word, cmd->group, &best, &least);
		else if (!strcmp(group, cmd->group) && cmd->verb)
			nearer(word, cmd->verb, &best, &least);
	}
	if (best && group)
		return fail_usage(ctl, "there is no command \"%s %s\"; did you mean \"%s %s\"?",
				  group, word, group, best);
	if (best)
		return fail_usage(ctl, "there is no command \"%s\"; did you mean \"%s\"?", word,
				  best);
	return fail_usage(ctl, "there is no command \"%s%s%s\"", group ? group : "",
			  group ? " " : "", word);
}

/* ---- parsing ---- */

static bool is_group(const char *word)
{
	for (const struct command *cmd = commands; cmd->group; cmd++)
		if (!strcmp(cmd->group, word))
			return true;
	return false;
}

static const struct command *find_command(const char *group, const char *verb)
{
	for (const struct command *cmd = commands; cmd->group; cmd++) {
		if (strcmp(cmd->group, group))
			continue;
		if (!cmd->verb || (verb && !strcmp(cmd->verb, verb)))
			return cmd;
	}
	return NULL;
}

/* Finds the command in the first words; *@used of them. -1 or an exit status. */
static int parse_command(struct ctl *ctl, int argc, char **argv, int *used)
{
	const char *group = argc > 1 ? argv[1] : NULL, *verb = argc > 2 ? argv[2] : NULL;

	if (!group || !strcmp(group, "--help") || !strcmp(group, "-h")) {
		help_all();
		return group ? EXIT_OK : EXIT_USAGE;
	}
	if (!strcmp(group, "--version"))
		group = "version";
	if (*group == '-')
		return fail_usage(ctl, "the command comes before options such as %s", group);
	if (!is_group(group))
		return unknown_word(ctl, NULL, group);
	ctl->command = find_command(group, verb);
	if (ctl->command) {
		*used = ctl->command->verb ? 3 : 2;
		return -1;
	}
	if (verb && (!strcmp(verb, "--help") || !strcmp(verb, "-h"))) {
		printf("commands:\n");
		help_group(group, stdout);
		return EXIT_OK;
	}
	if (verb && *verb != '-')
		return unknown_word(ctl, group, verb);
	fprintf(stderr, "plogctl: \"%s\" needs one more word:\n", group);
	help_group(group, stderr);
	return EXIT_USAGE;
}

static int take_option(struct ctl *ctl, const char *arg, char ***next)
{
	const char *equals = strchr(arg, '='), *value = NULL;
	size_t length = equals ? (size_t)(equals - arg) : strlen(arg);
	const struct option *o;

	o = find_option(ctl->command->options, arg, length);
	if (!o)
		o = find_option(common, arg, length);
	if (!o)
		return unknown_option(ctl, arg, length);
	if (!o->argument && equals)
		return fail_usage(ctl, "%s takes no value", o->name);
	if (o->argument) {
		value = equals ? equals + 1 : **next;
		if (!value)
			return fail_usage(ctl, "%s needs a value: %s %s", o->name, o->name,
					  o->argument);
		if (!equals)
			(*next)++;
		if (!o->many && option_given(ctl, o->name))
			return fail_usage(ctl, "%s stands twice", o->name);
	}
	if (!strcmp(o->name, "--json"))
		ctl->json = true;
	if (!strcmp(o->name, "--bytes"))
		ctl->bytes = true;
	ctl->chosen[ctl->chosen_count++] = (struct chosen){ o, value };
	return -1;
}

int options_parse(struct ctl *ctl, int argc, char **argv)
{
	bool only_args = false;
	int used = 1, ret;

	ret = parse_command(ctl, argc, argv, &used);
	if (ret >= 0)
		return ret;
	ctl->args = calloc(argc + 1, sizeof(*ctl->args));
	ctl->chosen = calloc(argc + 1, sizeof(*ctl->chosen));
	if (!ctl->args || !ctl->chosen) {
		warn("out of memory");
		return EXIT_FAILED;
	}
	for (char **next = argv + used; *next;) {
		char *arg = *next++;

		if (only_args || *arg != '-' || !arg[1]) {
			ctl->args[ctl->arg_count++] = arg;
		} else if (!strcmp(arg, "--")) {
			only_args = true;
		} else if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
			help_command(ctl->command);
			return EXIT_OK;
		} else {
			ret = take_option(ctl, arg, &next);
			if (ret >= 0)
				return ret;
		}
	}
	if (ctl->arg_count < ctl->command->args_min)
		return fail_usage(ctl, "an argument is missing");
	if (ctl->arg_count > ctl->command->args_max)
		return fail_usage(ctl, "one argument too many: %s",
				  ctl->args[ctl->command->args_max]);
	return -1;
}

void options_release(struct ctl *ctl)
{
	free(ctl->args);
	free(ctl->chosen);
}

int help_show(struct ctl *ctl)
{
	struct ctl none = { 0 };
	const struct command *cmd;

	if (!ctl->arg_count) {
		help_all();
		return EXIT_OK;
	}
	if (!is_group(ctl->args[0]))
		return unknown_word(&none, NULL, ctl->args[0]);
	cmd = find_command(ctl->args[0], ctl->args[1]);
	if (cmd) {
		help_command(cmd);
		return EXIT_OK;
	}
	if (ctl->args[1])
		return unknown_word(&none, ctl->args[0], ctl->args[1]);
	printf("commands:\n");
	help_group(ctl->args[0], stdout);
	return EXIT_OK;
}

const char *option_nth(const struct ctl *ctl, const char *name, size_t n)
{
	for (size_t i = 0; i < ctl->chosen_count; i++)
		if (!strcmp(ctl->chosen[i].option->name, name) && !n--)
			return ctl->chosen[i].value;
	return NULL;
}

const char *option_value(const struct ctl *ctl, const char *name)
{
	return option_nth(ctl, name, 0);
}

bool option_given(const struct ctl *ctl, const char *name)
{
	for (size_t i = 0; i < ctl->chosen_count; i++)
		if (!strcmp(ctl->chosen[i].option->name, name))
			return true;
	return false;
}

/* ---- values ---- */

int number_parse(const char *text, uint64_t min, uint64_t max, const char *what, uint64_t *value,
		 struct plog_error *err)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || *value < min || *value > max)
		return plog_error_set(err, -EINVAL, "%s must be a number from %llu to %llu, "
				      "not \"%s\"", what, (unsigned long long)min,
				      (unsigned long long)max, text);
	return 0;
}

int mode_parse(const char *text, mode_t *mode, struct plog_error *err)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 8);
	if (errno || *text < '0' || *text > '7' || *end || value > 0777)
		return plog_error_set(err, -EINVAL, "the mode must be octal, 0000 to 0777, not "
				      "\"%s\"", text);
	*mode = value;
	return 0;
}

static bool id_parse(const char *text, uint32_t *id)
{
	uint64_t value;

	if (number_parse(text, 0, UINT32_MAX - 1, "", &value, NULL))
		return false;
	*id = value;
	return true;
}

int owner_parse(const char *text, struct datadir_owner *owner, struct plog_error *err)
{
	const char *colon = strchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : strlen(text);
	struct passwd *user;
	struct group *group;
	char name[256];

	if (length >= sizeof(name) || (!length && (!colon || !colon[1])))
		return plog_error_set(err, -EINVAL, "the owner must be USER, USER:GROUP or :GROUP, "
				      "not \"%s\"", text);
	memcpy(name, text, length);
	name[length] = '\0';
	if (length && !id_parse(name, &owner->uid)) {
		user = getpwnam(name);
		if (!user)
			return plog_error_set(err, -EINVAL, "there is no user \"%s\"", name);
		owner->uid = user->pw_uid;
	}
	if (colon && colon[1] && !id_parse(colon + 1, &owner->gid)) {
		group = getgrnam(colon + 1);
		if (!group)
			return plog_error_set(err, -EINVAL, "there is no group \"%s\"", colon + 1);
		owner->gid = group->gr_gid;
	}
	return 0;
}
