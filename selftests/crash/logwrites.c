// SPDX-License-Identifier: MIT
/*
 * Crash consistency by dm-log-writes: writers run on a device whose writes are
 * logged, with a mark behind each acknowledgement. Then the log is played onto an
 * empty device, and at each mark (of each --every), what a power cut at that
 * moment would have left is mounted, opened and compared with what had been
 * acknowledged.
 *
 * Runs as root in a guest with the module; selftests/crash/run starts it.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/btrfs.h>

#include "dm.h"
#include "load.h"
#include "replay.h"
#include "verify.h"

#define SCRATCH	"/tmp/crash"
#define MNT	SCRATCH "/mnt"
#define DATA	MNT "/data"
#define PARTS	8
#define MARKS	5000
#define SAY_MS	20000	/* how far it is */

static struct promise marks[MARKS][PARTS];
static int marked, wanted;
static bool points;
static int every = 20;
static uint64_t seed = 1;

static uint64_t disk_size(const char *fs)
{
	return (!strcmp(fs, "xfs") ? 300ULL : !strcmp(fs, "btrfs") ? 160ULL : 64ULL) << 20;
}

static void diag(const char *format, ...)
{
	va_list ap;

	printf("# ");
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

static int shell(const char *format, ...)
{
	char cmd[600];
	va_list ap;

	va_start(ap, format);
	vsnprintf(cmd, sizeof(cmd), format, ap);
	va_end(ap);
	return system(cmd);
}

static void set(const char *file, const char *value)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		diag("cannot set %s: %s", file, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* btrfs keeps in mind where it saw a file system last: here on two devices. */
static void forget_devices(void)
{
	struct btrfs_ioctl_vol_args args = { 0 };
	int fd = open("/dev/btrfs-control", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	ioctl(fd, BTRFS_IOC_FORGET_DEV, &args);
	close(fd);
}

/* ---- the run that is recorded ---- */

static void mark(struct load *load, struct load_part *part)
{
	char text[32];
	int i, ret;

	(void)part;
	for (i = 0; i < load->n; i++)
		marks[marked][i] = load->part[i].promise;
	snprintf(text, sizeof(text), "mark %d", marked);
	ret = dm_message("crash-log", text);
	if (ret && !load->error[0])
		snprintf(load->error, sizeof(load->error), "no mark: %s", strerror(-ret));
	if (++marked == wanted || ret)
		load->stop = true;
}

static const char *record_on(struct load *load, struct instance *in)
{
	const char *bad;
	int ret, i;

	if (mkdir(DATA, 0755))
		return "cannot make the data directory";
	ret = instance_start(in, DATA);
	if (ret)
		return "no instance";
	bad = load_open(load, in, PARTS);
	if (bad)
		return bad;
	/* the directories themselves are the business of who makes them */
	sync();
	load->acked = mark;
	marked = 0;
	load_start(load, seed);
	for (i = 0; !load->stop; i++) {
		/* a commit of the journal between writes and their sync is worth a look */
		usleep(20000);
		if (i % 8 == 7)
			sync();
	}
	bad = load_wait(load);
	for (i = 0; i < load->n; i++) {
		uint64_t c[PLOG_A_STATS_MAX + 1] = { 0 };

		nl_stats_get(&in->nl, LOAD_TOPIC, (uint32_t)i, c);
		load->rolls += c[PLOG_A_STATS_ROLLS];
	}
	diag("%llu batches in %d partitions, %llu acknowledged syncs, %llu rolls, %llu truncations, %llu log starts, %llu leader epochs",
	     (unsigned long long)load->batches, PARTS, (unsigned long long)load->syncs,
	     (unsigned long long)load->rolls, (unsigned long long)load->truncations,
	     (unsigned long long)load->starts, (unsigned long long)load->epochs);
	load_close(load);
	ret = instance_stop(in);
	return bad ? bad : ret ? "the instance does not stop" : NULL;
}

static const char *record(const char *fs)
{
	uint64_t size = disk_size(fs);
	struct dm_line line = { .target = "log-writes", .length = size >> 9 };
	char disk[32], log[32], dev[32];
	const char *bad = NULL;
	struct instance in;
	static struct load load;
	char status[200];
	int d, l, ret;

	d = loop_open(SCRATCH "/disk", size, disk);
	l = loop_open(SCRATCH "/log", 8ULL << 30, log);
	if (d < 0 || l < 0)
		return "no loop devices";
	snprintf(line.params, sizeof(line.params), "%s %s", disk, log);
	ret = dm_create("crash-log", &line, 1, dev);
	if (ret)
		return "dm-log-writes cannot be set up";
	if (shell("mkfs.%s -q %s %s >&2", fs, strcmp(fs, "ext4") ? "-f -K" : "-F -E nodiscard", dev))
		bad = "mkfs failed";
	if (!bad && mount(dev, MNT, fs, 0, NULL))
		bad = "cannot mount";
	if (!bad) {
		bad = record_on(&load, &in);
		if (umount(MNT))
			bad = bad ? bad : "cannot unmount";
	}
	dm_status("crash-log", status, sizeof(status));
	if (strstr(status, "disabled"))
		bad = bad ? bad : "dm-log-writes gave up";
	if (dm_remove("crash-log"))
		bad = bad ? bad : "cannot remove dm-log-writes";
	loop_close(d);
	loop_close(l);
	unlink(SCRATCH "/disk");
	forget_devices();
	return bad;
}

/* ---- the replay ---- */

static const char *open_and_compare(const struct promise *promises, struct found *found)
{
	struct instance in;
	static struct load load;
	const char *bad;
	int ret;

	ret = instance_start(&in, DATA);
	if (ret)
		return "no instance";
	bad = load_open(&load, &in, PARTS);
	if (!bad)
		bad = load_verify(&load, promises, found);
	load_close(&load);
	ret = instance_stop(&in);
	if (!bad && ret)
		bad = "the instance does not stop";
	if (!bad)
		bad = load_verify_files(&load, DATA, PARTS, found);
	return bad;
}

/* What is played so far, under a layer that takes the writes of the recovery. */
static const char *look(const char *fs, const char *base, const char *cow,
			const struct promise *promises, struct found *found)
{
	struct dm_line line = { .target = "snapshot", .length = disk_size(fs) >> 9 };
	const char *bad = NULL;
	char dev[32];

	snprintf(line.params, sizeof(line.params), "%s %s N 8", base, cow);
	if (dm_create("crash-look", &line, 1, dev))
		return "dm-snapshot cannot be set up";
	if (mount(dev, MNT, fs, 0, NULL)) {
		bad = "what was played cannot be mounted";
	} else {
		bad = open_and_compare(promises, found);
		if (bad)
			shell("dmesg | grep plog: | tail -n 12 | sed 's/^/# /'; cd %s && stat -c '# %%n %%s' */*.log",
			      DATA);
		if (umount(MNT))
			bad = bad ? bad : "cannot unmount";
	}
	if (dm_remove("crash-look"))
		bad = bad ? bad : "cannot remove dm-snapshot";
	forget_devices();
	return bad;
}

static const char *compare(const char *fs, int *looks, struct found *found)
{
	char base[32], cow[32], where[100] = "";
	static char text[600];
	int64_t began = now_ms(), said = began;
	const char *bad = NULL;
	struct replay r;
	int b, c, ret, last = -1;

	b = loop_open(SCRATCH "/base", disk_size(fs), base);
	c = loop_open(SCRATCH "/cow", disk_size(fs), cow);
	if (b < 0 || c < 0)
		return "no loop devices";
	if (replay_open(&r, SCRATCH "/log", SCRATCH "/base"))
		return "no log of dm-log-writes";
	while (!bad && (ret = replay_step(&r)) > 0) {
		bool here = false;

		if (r.flags & REPLAY_MARK && sscanf(r.mark, "%d", &last) == 1)
			here = last % every == every - 1;
		else if (points && last >= 0 && last < marked - 1)
			here = r.flags & (REPLAY_FLUSH | REPLAY_FUA);
		if (!here)
			continue;
		snprintf(where, sizeof(where), "mark %d, entry %llu", last,
			 (unsigned long long)r.done);
		bad = look(fs, base, cow, marks[last], found);
		++*looks;
		if (now_ms() - said > SAY_MS) {
			said = now_ms();
			diag("%s: %d looks of %d in %lld s", fs, *looks, marked / every,
			     (long long)(said - began) / 1000);
		}
	}
	if (!bad && ret < 0)
		bad = strerror(-ret);
	if (!bad && last != marked - 1)
		bad = "marks are missing";
	diag("%s: %llu entries, %llu KiB played", fs, (unsigned long long)r.done,
	     (unsigned long long)r.bytes >> 10);
	replay_close(&r);
	loop_close(b);
	loop_close(c);
	unlink(SCRATCH "/base");
	unlink(SCRATCH "/cow");
	unlink(SCRATCH "/log");
	if (!bad)
		return NULL;
	snprintf(text, sizeof(text), "%s: %s", where, bad);
	return text;
}

static void usage(FILE *to)
{
	fprintf(to, "Usage: logwrites [--every N] [--points] [--seed N] FS:MARKS...\n");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "every", required_argument, NULL, 'e' },
		{ "points", no_argument, NULL, 'p' },
		{ "seed", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int opt, i, bad = 0;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'e') {
			every = atoi(optarg);
		} else if (opt == 'p') {
			points = true;
		} else if (opt == 's') {
			seed = strtoull(optarg, NULL, 0);
		} else {
			usage(opt == 'h' ? stdout : stderr);
			return opt == 'h' ? 0 : 2;
		}
	}
	if (optind == argc || every < 1) {
		usage(stderr);
		return 2;
	}
	shell("modprobe -a loop dm_mod dm_log_writes dm_snapshot ext4 xfs btrfs");
	mkdir(SCRATCH, 0755);
	mount("crash", SCRATCH, "tmpfs", 0, "size=90%");
	mkdir(MNT, 0755);
	if (namespace_new()) {
		printf("Bail out! no network namespace\n");
		return 1;
	}
	set("/proc/sys/vm/dirty_writeback_centisecs", "10");
	set("/proc/sys/vm/dirty_expire_centisecs", "20");
	printf("TAP version 13\n1..%d\n", argc - optind);
	for (i = optind; i < argc; i++) {
		struct found found = { 0 };
		int64_t began = now_ms(), then;
		char *fs = argv[i], *colon = strchr(fs, ':');
		const char *text;
		int looks = 0;

		if (colon) {
			*colon = 0;
			wanted = atoi(colon + 1) * every;
		}
		if (wanted < 1 || wanted > MARKS) {
			usage(stderr);
			return 2;
		}
		text = record(fs);
		then = now_ms();
		if (!text)
			text = compare(fs, &looks, &found);
		diag("%s: seed %llu, recorded in %.1f s, %d power cuts looked at in %.1f s", fs,
		     (unsigned long long)seed, (double)(then - began) / 1000, looks,
		     (double)(now_ms() - then) / 1000);
		if (text) {
			bad = 1;
			diag("%s", text);
		}
		printf("%sok %d - %s: %d of %d marks: %llu batches found, %llu of them acknowledged, %llu index entries, all right\n",
		       text ? "not " : "", i - optind + 1, fs, marked / every, marked,
		       (unsigned long long)found.batches, (unsigned long long)found.promised,
		       (unsigned long long)found.entries);
		fflush(stdout);
	}
	return bad;
}
