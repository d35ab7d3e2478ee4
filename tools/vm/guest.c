// SPDX-License-Identifier: MIT
/* What a guest looks like: its mounts, settings and network, and their end. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "init.h"

#define LOG_DIR "/var/lib/plog"

static void must_mount(const char *what, const char *where, const char *type,
		       unsigned long flags, const char *options)
{
	if (!mount(what, where, type, flags, options))
		return;
	fatal("cannot mount %s (%s) at %s: %s", what, type ? type : "bind", where,
	      strerror(errno));
}

static void make_dirs(const char *path)
{
	char part[4096];
	size_t i;

	snprintf(part, sizeof(part), "%s", path);
	for (i = 1; part[i]; i++) {
		if (part[i] != '/')
			continue;
		part[i] = 0;
		mkdir(part, 0755);
		part[i] = '/';
	}
	mkdir(part, 0755);
}

/* Settings are wishes: a kernel without one runs the command all the same. */
static int set(const char *file, const char *value)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

void guest_root(const char *libmodules)
{
	struct utsname u;
	char path[256];

	mkdir("/lower", 0755);
	mkdir("/rw", 0755);
	mkdir("/newroot", 0755);
	must_mount("machine", "/lower", "9p", MS_RDONLY,
		   "trans=virtio,version=9p2000.L,cache=loose,msize=524288");
	must_mount("scratch", "/rw", "tmpfs", 0, "mode=755,size=75%");
	mkdir("/rw/upper", 0755);
	mkdir("/rw/aside", 0755);
	must_mount("root", "/newroot", "overlay", 0,
		   "lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/aside,index=off,xino=off");
	umount2("/proc", MNT_DETACH);
	umount2("/sys", MNT_DETACH);
	umount2("/dev", MNT_DETACH);
	if (chdir("/newroot") || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") ||
	    chdir("/"))
		fatal("cannot enter the root: %s", strerror(errno));
	if (libmodules) {
		uname(&u);
		snprintf(path, sizeof(path), "/lib/modules/%s", u.release);
		/* The machine may have headers there: cover, not replace. */
		make_dirs(path);
		must_mount(libmodules, path, NULL, MS_BIND, NULL);
	}
}

/* A tmpfs at @where in which those of @keep that it would hide stay visible. */
static void cover(const char *where, const char *options, char **keep, int n)
{
	size_t len = strlen(where);
	int fd[16], i;

	if (n > 16)
		n = 16;
	for (i = 0; i < n; i++) {
		fd[i] = -1;
		if (!strncmp(keep[i], where, len) && keep[i][len] == '/')
			fd[i] = open(keep[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	mkdir(where, 0755);
	must_mount("tmpfs", where, "tmpfs", 0, options);
	for (i = 0; i < n; i++) {
		char self[64];

		if (fd[i] < 0)
			continue;
		make_dirs(keep[i]);
		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd[i]);
		must_mount(self, keep[i], NULL, MS_BIND, NULL);
		close(fd[i]);
	}
}

void guest_mounts(char **keep, int n)
{
	must_mount("proc", "/proc", "proc", 0, NULL);
	must_mount("sysfs", "/sys", "sysfs", 0, NULL);
	must_mount("devtmpfs", "/dev", "devtmpfs", 0, "mode=755");
	mkdir("/dev/pts", 0755);
	mkdir("/dev/shm", 01777);
	must_mount("devpts", "/dev/pts", "devpts", 0, "mode=620,ptmxmode=666");
	must_mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
	if (symlink("/proc/self/fd", "/dev/fd") || symlink("fd/0", "/dev/stdin") ||
	    symlink("fd/1", "/dev/stdout") || symlink("fd/2", "/dev/stderr"))
		say("note cannot link /dev/fd: %s", strerror(errno));
	cover("/tmp", "mode=1777", keep, n);
	cover("/run", "mode=755", keep, n);
	mkdir("/run/lock", 01777);

	/* These a kernel may lack. */
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mount("configfs", "/sys/kernel/config", "configfs", 0, NULL);
	if (!mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL)) {
		static const char *const ctl[] = { "+memory", "+io", "+pids", "+cpu" };

		for (size_t i = 0; i < sizeof(ctl) / sizeof(*ctl); i++)
			set("/sys/fs/cgroup/cgroup.subtree_control", ctl[i]);
	}
}

static void limit(int what, rlim_t soft, rlim_t hard)
{
	setrlimit(what, &(struct rlimit){ .rlim_cur = soft, .rlim_max = hard });
}

void guest_settings(void)
{
	limit(RLIMIT_CORE, 0, 0);
	limit(RLIMIT_NOFILE, 65536, 1048576);
	limit(RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY);
	sethostname("plog", 4);
	set("/proc/sys/kernel/sysrq", "1");
	set("/proc/sys/kernel/core_pattern", "core");
	set("/proc/sys/kernel/printk_devkmsg", "on");
	set("/proc/sys/kernel/kptr_restrict", "0");
	set("/proc/sys/vm/unprivileged_userfaultfd", "1");
}

static void if_up(int sock, const char *name)
{
	struct ifreq r = { 0 };

	snprintf(r.ifr_name, IFNAMSIZ, "%s", name);
	if (ioctl(sock, SIOCGIFFLAGS, &r))
		goto err;
	r.ifr_flags |= IFF_UP;
	if (!ioctl(sock, SIOCSIFFLAGS, &r))
		return;
err:
	say("note cannot bring %s up: %s", name, strerror(errno));
}

static void if_address(int sock, const char *name, int what, const char *address)
{
	struct ifreq r = { 0 };
	struct sockaddr_in *a = (struct sockaddr_in *)&r.ifr_addr;

	snprintf(r.ifr_name, IFNAMSIZ, "%s", name);
	a->sin_family = AF_INET;
	inet_pton(AF_INET, address, &a->sin_addr);
	if (ioctl(sock, what, &r))
		say("note cannot set an address of %s: %s", name, strerror(errno));
}

void guest_network(bool published)
{
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0) {
		say("note no network: %s", strerror(errno));
		return;
	}
	if_up(sock, "lo");
	if (published) {
		if_address(sock, "eth0", SIOCSIFADDR, "10.0.2.15");
		if_address(sock, "eth0", SIOCSIFNETMASK, "255.255.255.0");
		if_up(sock, "eth0");
	}
	close(sock);
}

void guest_disk(const char *fs, const char *size)
{
	char options[64];

	if (!fs)
		return;
	make_dirs(LOG_DIR);
	if (strcmp(fs, "tmpfs")) {
		must_mount("/dev/vda", LOG_DIR, fs, 0, NULL);
		return;
	}
	snprintf(options, sizeof(options), "mode=755,size=%s", size);
	must_mount("logs", LOG_DIR, "tmpfs", 0, options);
}

/*
 * kmemleak believes an object lost when two scans saw no pointer to it, and
 * leaves those younger than 5 s alone.
 */
static void check_leaks(void)
{
	static char text[65536];
	static const char file[] = "/sys/kernel/debug/kmemleak";
	size_t len = 0;
	ssize_t n;
	char *line, *rest, named[512];
	int fd, leaks = 0;

	if (access(file, F_OK)) {
		say("fail this kernel cannot look for leaks: there is no %s", file);
		return;
	}
	set(file, "scan");
	sleep(5);
	set(file, "scan");
	fd = open(file, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && len < sizeof(text) - 1 &&
	       (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += n;
	if (fd < 0) {
		say("fail cannot read %s: %s", file, strerror(errno));
		return;
	}
	close(fd);
	text[len] = 0;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (!strncmp(line, "unreferenced", 12))
			leaks++;
		if (leaks > 5)
			continue;
		symbols_name(line, named, sizeof(named));
		say("text kmemleak: %s", named);
	}
	if (leaks)
		say("fail kmemleak: %d objects of kernel memory were lost", leaks);
}

static void end_disk(void)
{
	int tries;

	sync();
	if (!umount2(LOG_DIR, 0) || errno == EINVAL || errno == ENOENT)
		return;
	for (tries = 0; tries < 40 && errno == EBUSY; tries++) {
		usleep(50000);
		if (!umount2(LOG_DIR, 0))
			return;
	}
	say("note the log disk is still in use at the end: %s", strerror(errno));
	set("/proc/sysrq-trigger", "s");
	set("/proc/sysrq-trigger", "u");
	sync();
}

static void remove_module(const char *file)
{
	const char *slash = strrchr(file, '/');
	char name[64], *p;
	int tries;

	snprintf(name, sizeof(name), "%s", slash ? slash + 1 : file);
	for (p = name; *p && *p != '.'; p++)
		if (*p == '-')
			*p = '_';
	*p = 0;
	symbols_keep(name);
	/* References of what was just killed may take a moment to go. */
	for (tries = 0; tries < 20; tries++) {
		if (!syscall(SYS_delete_module, name, O_NONBLOCK) || errno == ENOENT)
			return;
		usleep(50000);
	}
	say("note the module %s stays inserted: %s", name, strerror(errno));
}

void guest_end(const char *file, bool leaks)
{
	if (file)
		remove_module(file);
	if (leaks)
		check_leaks();
	end_disk();
}
