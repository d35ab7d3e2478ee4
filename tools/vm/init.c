// SPDX-License-Identifier: MIT
/*
 * The first process of a guest of tools/vm/vm. It mounts the machine's root,
 * runs one command there, carries its output and exit status to the host by
 * virtio ports, and turns the guest off.
 *
 * It is a program of its own, linked statically, so that a guest is up in few
 * seconds under emulation, and so that nothing a test breaks (a shell, a full
 * /tmp, a lost /dev) can make a failure look like success.
 *
 * The host puts /run.conf into the initramfs: strings KEY=VALUE, each ended by
 * a NUL. See struct conf for the keys. Ports:
 *   ctl   lines both ways; to the host: "ready", "status N", "note TEXT",
 *         "fail TEXT" (the run has failed, whatever the command said),
 *         "text TEXT" (what belongs to a failure), "told" (all about a hang),
 *         "fatal TEXT" (the guest gave up before the command ran),
 *         "bytes OUT ERR", "done"; from the host: "term", "kill", "hang",
 *         "eof N"
 *   out, err, in   the command's; "eof N" says that its input ends after N
 *         bytes, as a port cannot be closed without losing what is under way
 *   log   the kernel's log at the end
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init.h"

static struct conf {
	char **argv;		/* arg=: the command, in order */
	int argc;
	char **envp;		/* env=NAME=VALUE */
	int envc;
	char **modules;		/* module=FILE: insert before the root is there */
	int nmodules;
	char **keep;		/* keep=DIR: must stay visible below /tmp and /run */
	int nkeep;
	char *cwd;
	char *insert;		/* FILE of the module under test, NAME.ko: comes last */
	char *libmodules;	/* directory that /lib/modules/RELEASE stands for */
	char *fs;		/* file system of the log disk */
	char *disk;		/* size of the log disk if it is a tmpfs */
	bool net;		/* there is an eth0 for published ports */
	bool merge;		/* stdout and stderr are one stream */
	bool input;		/* there is a port for stdin */
	bool leaks;		/* look for leaked memory at the end */
} conf;

int ctl_fd = -1;
static int log_port = -1;

/* One direction of a stream between a pipe of the command's and a port. */
struct relay {
	int from, to;
	bool from_is_port;
	size_t at, len;
	unsigned long long total;
	unsigned long long end;	/* the source ends after so many bytes */
	char buf[65536];
};

static struct relay out = { .from = -1, .to = -1, .end = -1ULL };
static struct relay err = { .from = -1, .to = -1, .end = -1ULL };
static struct relay in = { .from = -1, .to = -1, .end = -1ULL, .from_is_port = true };

void say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n, done = 0;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (ctl_fd < 0) {
		fwrite(line, 1, n, stderr);
		return;
	}
	while (done < n) {
		ssize_t w = write(ctl_fd, line + done, n - done);

		if (w > 0) {
			done += w;
		} else if (w < 0 && errno == EAGAIN) {
			poll(&(struct pollfd){ .fd = ctl_fd, .events = POLLOUT }, 1, 100);
		} else if (errno != EINTR) {
			return;
		}
	}
}

static void __attribute__((noreturn)) power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

void fatal(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say("fatal %s", text);
	/* The host kills the guest on this line; the wait is for the line. */
	sleep(2);
	power_off();
}

static void append(char ***list, int *n, char *value)
{
	char **grown = realloc(*list, (*n + 2) * sizeof(*grown));

	if (!grown)
		fatal("out of memory reading the run's configuration");
	grown[(*n)++] = value;
	grown[*n] = NULL;
	*list = grown;
}

static void read_conf(void)
{
	static char text[1 << 20];
	int fd = open("/run.conf", O_RDONLY);
	ssize_t n;
	char *p;

	if (fd < 0)
		fatal("no /run.conf in the initramfs");
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	for (p = text; p < text + n; p += strlen(p) + 1) {
		/* The values outlive the walk: each is used where it stands. */
		char *value = strchr(p, '=');
		size_t len = value ? value - p : 0;

		if (!value)
			continue;
		value++;
#define KEY(name) (len == sizeof(name) - 1 && !memcmp(p, name, len))
		if (KEY("arg"))
			append(&conf.argv, &conf.argc, value);
		else if (KEY("env"))
			append(&conf.envp, &conf.envc, value);
		else if (KEY("module"))
			append(&conf.modules, &conf.nmodules, value);
		else if (KEY("keep"))
			append(&conf.keep, &conf.nkeep, value);
		else if (KEY("cwd"))
			conf.cwd = value;
		else if (KEY("insert"))
			conf.insert = value;
		else if (KEY("libmodules"))
			conf.libmodules = value;
		else if (KEY("fs"))
			conf.fs = value;
		else if (KEY("disk"))
			conf.disk = value;
		else if (KEY("net"))
			conf.net = true;
		else if (KEY("merge"))
			conf.merge = true;
		else if (KEY("input"))
			conf.input = true;
		else if (KEY("leaks"))
			conf.leaks = true;
		else
			fatal("unknown key in /run.conf: %s", p);
#undef KEY
	}
	if (!conf.argc || !conf.cwd)
		fatal("/run.conf lacks a command or a folder");
}

static void insert(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fatal("cannot open module %s: %s", file, strerror(errno));
	if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
		fatal("cannot insert module %s: %s (the kernel log tells why)", file,
		      strerror(errno));
	close(fd);
	/* Those of the initramfs take memory; the module under test stays for more. */
	if (!strncmp(file, "/m/", 3))
		unlink(file);
}

/* The port that the host called @name; they appear some time after the driver. */
static int open_port(const char *name, int flags)
{
	int tries;

	for (tries = 0; tries < 30000; tries++) {
		DIR *d = opendir("/sys/class/virtio-ports");
		struct dirent *e;

		while (d && (e = readdir(d))) {
			char path[320], text[64] = "";
			int fd;
			ssize_t n;

			snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", e->d_name);
			fd = open(path, O_RDONLY);
			if (fd < 0)
				continue;
			n = read(fd, text, sizeof(text) - 1);
			close(fd);
			if (n > 0 && text[n - 1] == '\n')
				text[n - 1] = 0;
			if (strcmp(text, name))
				continue;
			snprintf(path, sizeof(path), "/dev/%s", e->d_name);
			closedir(d);
			fd = open(path, flags | O_CLOEXEC);
			if (fd < 0)
				fatal("cannot open %s for port %s: %s", path, name,
				      strerror(errno));
			return fd;
		}
		if (d)
			closedir(d);
		usleep(1000);
	}
	fatal("the port %s did not appear", name);
}

static void open_ports(void)
{
	ctl_fd = open_port("ctl", O_RDWR | O_NONBLOCK);
	log_port = open_port("log", O_WRONLY);
	out.to = open_port("out", O_WRONLY | O_NONBLOCK);
	if (!conf.merge)
		err.to = open_port("err", O_WRONLY | O_NONBLOCK);
	if (conf.input)
		in.from = open_port("in", O_RDONLY | O_NONBLOCK);
}

/* --- the command --------------------------------------------------------- */

static void make_pipe(int fd[2])
{
	if (pipe2(fd, O_CLOEXEC))
		fatal("no pipe: %s", strerror(errno));
}

static pid_t start_command(void)
{
	int o[2], e[2], i[2] = { -1, -1 };
	pid_t pid;

	make_pipe(o);
	if (conf.merge)
		e[0] = e[1] = -1;
	else
		make_pipe(e);
	if (conf.input)
		make_pipe(i);

	pid = fork();
	if (pid < 0)
		fatal("no process for the command: %s", strerror(errno));
	if (!pid) {
		sigset_t none;

		setsid();
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		dup2(conf.input ? i[0] : open("/dev/null", O_RDONLY), 0);
		dup2(o[1], 1);
		dup2(conf.merge ? o[1] : e[1], 2);
		environ = conf.envp;
		if (chdir(conf.cwd)) {
			fprintf(stderr, "vm: cannot enter %s: %s\n", conf.cwd, strerror(errno));
			_exit(125);
		}
		execvp(conf.argv[0], conf.argv);
		fprintf(stderr, "vm: cannot run %s: %s\n", conf.argv[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	close(o[1]);
	out.from = o[0];
	fcntl(out.from, F_SETFL, O_NONBLOCK);
	if (!conf.merge) {
		close(e[1]);
		err.from = e[0];
		fcntl(err.from, F_SETFL, O_NONBLOCK);
	}
	if (conf.input) {
		close(i[0]);
		in.to = i[1];
		fcntl(in.to, F_SETFL, O_NONBLOCK);
	}
	return pid;
}

/* Moves what can be moved now; false once the source has ended. */
static bool relay_step(struct relay *r)
{
	for (;;) {
		ssize_t n;

		while (r->at < r->len) {
			n = write(r->to, r->buf + r->at, r->len - r->at);
			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0 && errno == EAGAIN)
				return true;
			if (n < 0)
				return false;
			r->at += n;
			r->total += n;
		}
		if (r->total == r->end)
			return false;
		n = read(r->from, r->buf, sizeof(r->buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0)
			return false;
		r->at = 0;
		r->len = n;
	}
}

static void relay_end(struct relay *r)
{
	if (r->from >= 0)
		close(r->from);
	r->from = -1;
	if (r->from_is_port && r->to >= 0) {
		close(r->to);
		r->to = -1;
	}
}

/* What @r waits for: room in the target when it holds data, else data. */
static void relay_poll(struct relay *r, struct pollfd *p)
{
	bool holds = r->at < r->len;

	p->fd = r->from < 0 ? -1 : holds ? r->to : r->from;
	p->events = holds ? POLLOUT : POLLIN;
	p->revents = 0;
}

static void sysrq(const char *keys)
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);

	for (; fd >= 0 && *keys; keys++)
		if (write(fd, keys, 1) < 0)
			break;
	if (fd >= 0)
		close(fd);
}

/* A process of user space: its line of /proc/PID/stat, cut behind its name. */
struct process {
	char text[512];	/* "PID (NAME" */
	char state;
};

/* Calls @show for each process but this one. */
static void each_process(void (*show)(const struct process *p, const char *pid))
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct process p;
		char path[300], *name_end;
		int fd, ppid = -1;
		ssize_t n;

		if (atoi(e->d_name) <= 1)
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		n = read(fd, p.text, sizeof(p.text) - 1);
		close(fd);
		if (n <= 0)
			continue;
		p.text[n] = 0;
		name_end = strrchr(p.text, ')');
		/* Threads of the kernel are children of process 2. */
		if (!name_end || sscanf(name_end, ") %c %d", &p.state, &ppid) != 2 || ppid == 2 ||
		    !strncmp(p.text, "2 ", 2))
			continue;
		*name_end = 0;
		show(&p, e->d_name);
	}
	if (d)
		closedir(d);
}

static void show_process(const struct process *p, const char *pid)
{
	char path[64], stack[4096], *line, *rest;
	ssize_t n;
	int fd;

	say("text process %s) is in state %c", p->text, p->state);
	snprintf(path, sizeof(path), "/proc/%s/stack", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, stack, sizeof(stack) - 1);
	close(fd);
	if (n <= 0)
		return;
	stack[n] = 0;
	for (line = strtok_r(stack, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		say("text   %s", line);
}

/*
 * What runs, and where the kernel is with it: the one thing to know about a
 * hang. The kernel's own report of blocked tasks and busy CPUs goes to its log.
 */
static void describe_hang(void)
{
	each_process(show_process);
	sysrq("lw");
	say("told");
}

static void control(pid_t pid)
{
	static char line[64];
	static size_t len;
	char c;

	while (read(ctl_fd, &c, 1) == 1) {
		if (c != '\n') {
			if (len < sizeof(line) - 1)
				line[len++] = c;
			continue;
		}
		line[len] = 0;
		len = 0;
		if (!strcmp(line, "term"))
			kill(-pid, SIGTERM);
		else if (!strcmp(line, "kill"))
			kill(-pid, SIGKILL);
		else if (!strcmp(line, "hang"))
			describe_hang();
		else if (sscanf(line, "eof %llu", &in.end) == 1 && in.from >= 0 &&
			 !relay_step(&in))
			relay_end(&in);
	}
}

/* Carries streams until the command has ended; returns its exit status. */
static int run_command(void)
{
	pid_t pid, dead;
	sigset_t chld;
	int sig, status, result = -1;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	sig = signalfd(-1, &chld, SFD_NONBLOCK | SFD_CLOEXEC);
	pid = start_command();

	while (result < 0) {
		struct pollfd p[5] = {
			{ .fd = sig, .events = POLLIN },
			{ .fd = ctl_fd, .events = POLLIN },
		};
		struct signalfd_siginfo info;

		relay_poll(&out, &p[2]);
		relay_poll(&err, &p[3]);
		relay_poll(&in, &p[4]);
		poll(p, 5, -1);
		if (p[2].revents && !relay_step(&out))
			relay_end(&out);
		if (p[3].revents && !relay_step(&err))
			relay_end(&err);
		if (p[4].revents && !relay_step(&in))
			relay_end(&in);
		if (p[1].revents)
			control(pid);
		if (!p[0].revents)
			continue;
		while (read(sig, &info, sizeof(info)) > 0)
			;
		while ((dead = waitpid(-1, &status, WNOHANG)) > 0)
			if (dead == pid)
				result = WIFEXITED(status) ? WEXITSTATUS(status)
							   : 128 + WTERMSIG(status);
	}
	close(sig);
	relay_end(&in);
	return result;
}

/* True when no process but this one is left, within @ms. */
static bool reap(int ms)
{
	for (;; ms -= 5) {
		pid_t pid;

		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return true;
		if (ms <= 0)
			return false;
		usleep(5000);
	}
}

static void unkillable(const struct process *p, const char *pid)
{
	show_process(p, pid);
	say("fail process %s) of the guest cannot be killed (state %c)", p->text, p->state);
}

/*
 * Ends what the command left running. A process that outlives SIGKILL is stuck
 * inside the kernel: that is a finding, not a detail.
 */
static void end_processes(void)
{
	if (reap(0))
		return;
	kill(-1, SIGTERM);
	if (reap(1000))
		return;
	kill(-1, SIGKILL);
	if (reap(10000))
		return;
	each_process(unkillable);
	sysrq("w");
}

/* What is still in the pipes; writers are gone, so this ends. */
static void drain(struct relay *r)
{
	while (r->from >= 0) {
		struct pollfd p;

		if (!relay_step(r)) {
			relay_end(r);
			break;
		}
		relay_poll(r, &p);
		/* Only a stuck process can still hold the other end. */
		if (p.events == POLLIN && poll(&p, 1, 100) == 0)
			break;
		if (p.events == POLLOUT)
			poll(&p, 1, 1000);
	}
}

static void send_log(void)
{
	static char text[4 << 20];
	int n = klogctl(3 /* read all */, text, sizeof(text));
	int at = 0;

	while (at < n) {
		ssize_t w = write(log_port, text + at, n - at);

		if (w <= 0)
			break;
		at += w;
	}
	say("log %d", at);
}

/*
 * On the host: prints the frequency in kHz at which the processor's time stamp
 * counter runs, which under emulation is the guest's as well. The guest's kernel
 * cannot measure it where it competes for the processor: it has been seen to be
 * wrong by a factor of five.
 */
static int print_tsc_khz(void)
{
	unsigned long long tsc[2] = { 0 }, ns[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		unsigned long long best = -1ULL;

		if (i)
			usleep(20000);
		/* Of several readings the one that nothing came between. */
		for (int try = 0; try < 50; try++) {
			struct timespec a, b;
			unsigned long long t, took;

			clock_gettime(CLOCK_MONOTONIC_RAW, &a);
			t = __builtin_ia32_rdtsc();
			clock_gettime(CLOCK_MONOTONIC_RAW, &b);
			took = (b.tv_sec - a.tv_sec) * 1000000000ULL + b.tv_nsec - a.tv_nsec;
			if (took >= best)
				continue;
			best = took;
			tsc[i] = t;
			ns[i] = a.tv_sec * 1000000000ULL + a.tv_nsec + took / 2;
		}
	}
	printf("%llu\n", (tsc[1] - tsc[0]) * 1000000 / (ns[1] - ns[0]));
	return 0;
}

int main(int argc, char **argv)
{
	int status;

	if (argc == 2 && !strcmp(argv[1], "tsc-khz"))
		return print_tsc_khz();
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	read_conf();
	for (int i = 0; i < conf.nmodules; i++)
		insert(conf.modules[i]);
	open_ports();
	guest_root(conf.libmodules);
	guest_mounts(conf.keep, conf.nkeep);
	guest_settings();
	guest_network(conf.net);
	guest_disk(conf.fs, conf.disk);
	if (conf.insert)
		insert(conf.insert);
	say("ready");
	status = run_command();
	say("status %d", status);
	end_processes();
	drain(&out);
	if (!conf.merge)
		drain(&err);
	guest_end(conf.insert, conf.leaks);
	send_log();
	say("bytes %llu %llu", out.total, err.total);
	say("done");
	power_off();
}
