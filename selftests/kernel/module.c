// SPDX-License-Identifier: GPL-2.0
/*
 * The module itself comes and goes: never under an open descriptor, always
 * with its logs closed, and it finds them again. These tests remove and insert
 * it; they leave it inserted.
 */
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "fixture.h"

static int module_remove(void)
{
	return syscall(SYS_delete_module, "plog", O_NONBLOCK) ? -errno : 0;
}

static bool module_there(void)
{
	return !access("/sys/module/plog", F_OK);
}

static int module_insert(void)
{
	const char *given = getenv("PLOG_MODULE");
	struct utsname name;
	char path[300];
	int fd, ret;

	uname(&name);
	if (given && *given)
		snprintf(path, sizeof(path), "%s", given);
	else
		snprintf(path, sizeof(path), "build/module/%s/plog.ko", name.release);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return ret;
}

/* The node is there once devtmpfs has made it. */
static int wait_control(void)
{
	int64_t end = now_ms() + 5000;
	int fd;

	while ((fd = control_open(0)) == -ENOENT && now_ms() < end)
		usleep(1000);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int module_cycle(void)
{
	int ret = module_remove();

	if (!ret)
		ret = module_insert();
	return ret ? ret : wait_control();
}

/* Is there something to read, in the time that a slow machine may take? */
static bool arrives(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 30000) == 1 && p.revents & POLLIN;
}

FIXTURE(module)
{
	struct instance in;
};

FIXTURE_SETUP(module)
{
	int ret;

	if (!module_there())
		ASSERT_EQ(0, module_insert());
	ret = instance_start(&self->in, NULL);
	ASSERT_EQ(0, ret) {
		TH_LOG("%s: %s", strerror(-ret), self->in.nl.error_text);
	}
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
}

FIXTURE_TEARDOWN(module)
{
	if (!module_there()) {
		EXPECT_EQ(0, module_insert());
		EXPECT_EQ(0, wait_control());
	} else if (self->in.nl.socket) {
		instance_stop(&self->in);
	}
	instance_remove(&self->in);
}

TEST_F(module, open_descriptor_holds_it)
{
	int control = control_open(0), bound;

	ASSERT_LE(0, control);
	EXPECT_EQ(-EAGAIN, module_remove());
	close(control);
	bound = partition_bind("t", 0, 0);
	ASSERT_LE(0, bound);
	EXPECT_EQ(-EAGAIN, module_remove());
	/* nor does the end of what it was bound to let go of it */
	ASSERT_EQ(0, instance_stop(&self->in));
	EXPECT_EQ(-EAGAIN, module_remove());
	EXPECT_EQ(ENODEV, FAILS(write(bound, "x", 1)));
	close(bound);
	EXPECT_EQ(0, module_cycle());
}

TEST_F(module, blocked_reader_holds_it)
{
	int ready[2], status;
	pid_t pid;

	ASSERT_EQ(0, pipe(ready));
	pid = child();
	if (!pid) {
		char c;
		int fd = partition_bind("t", 0, 0);

		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		_exit(read(fd, &c, 1) == 1);
	}
	ASSERT_TRUE(arrives(ready[0]));
	close(ready[0]);
	close(ready[1]);
	usleep(200000);
	EXPECT_EQ(-EAGAIN, module_remove());
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	EXPECT_TRUE(WIFSIGNALED(status));
	ASSERT_EQ(0, instance_stop(&self->in));
	EXPECT_EQ(0, module_cycle());
}

TEST_F(module, splice_in_flight_holds_it)
{
	int pair[2], status, i;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	pid = child();
	if (!pid) {
		struct plog_locate loc;
		struct batch b;
		int fd = partition_bind("t", 0, PLOG_MODE_BATCH);

		for (i = 0; i < 10; i++) {
			batch_fill(&b, 100000, 's');
			partition_append(fd, b.data, b.size, NULL);
		}
		partition_locate(fd, 0, 1 << 20, 0, &loc);
		/* nobody reads: it blocks in the socket */
		sendfile(pair[0], fd, NULL, loc.length);
		_exit(0);
	}
	ASSERT_TRUE(arrives(pair[1]));
	usleep(300000);
	ASSERT_EQ(0, waitpid(pid, &status, WNOHANG));
	EXPECT_EQ(-EAGAIN, module_remove());
	ASSERT_EQ(0, instance_stop(&self->in));
	EXPECT_EQ(-EAGAIN, module_remove());
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(0, module_cycle());
	close(pair[0]);
	close(pair[1]);
}

TEST_F(module, bytes_in_a_pipe_outlive_it)
{
	int fd = partition_bind("t", 0, 0), batch, pipefd[2];
	struct plog_locate loc;
	static uint8_t buf[4096];
	int64_t next = 0;

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(4, write(fd, "pipe", 4));
	batch = partition_bind("t", 0, PLOG_MODE_BATCH);
	ASSERT_EQ(0, partition_locate(batch, 0, sizeof(buf), 0, &loc));
	ASSERT_EQ(loc.length, splice(batch, NULL, pipefd[1], NULL, loc.length, 0));
	close(batch);
	close(fd);
	ASSERT_EQ(0, instance_stop(&self->in));
	ASSERT_EQ(0, module_remove());
	EXPECT_EQ(loc.length, read(pipefd[0], buf, sizeof(buf)));
	EXPECT_EQ(NULL, batch_walk(buf, loc.length, &next, NULL));
	close(pipefd[0]);
	close(pipefd[1]);
}

TEST_F(module, stop_remove_insert_set_finds_everything)
{
	uint64_t counters[PLOG_A_STATS_MAX + 1];
	char dir[256], buf[32];
	int fd = partition_bind("t", 0, 0), i;

	for (i = 0; i < 50; i++)
		ASSERT_EQ(6, write(fd, "record", 6));
	close(fd);
	strcpy(dir, self->in.dir);
	ASSERT_EQ(0, instance_stop(&self->in));
	ASSERT_EQ(0, module_cycle());
	ASSERT_EQ(0, instance_start(&self->in, dir));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	fd = partition_bind_flags("t", 0, 0, O_NONBLOCK);
	for (i = 0; i < 50; i++)
		ASSERT_EQ(6, read(fd, buf, sizeof(buf)));
	EXPECT_EQ(EAGAIN, FAILS(read(fd, buf, sizeof(buf))));
	ASSERT_EQ(0, nl_stats_get(&self->in.nl, "t", 0, counters));
	EXPECT_EQ(0, counters[PLOG_A_STATS_RECOVERED_BYTES]);
	close(fd);
}

TEST_F(module, removal_with_a_running_instance_closes_it_cleanly)
{
	uint64_t counters[PLOG_A_STATS_MAX + 1];
	char dir[256];
	int fd = partition_bind("t", 0, 0), ret;

	ASSERT_EQ(6, write(fd, "record", 6));
	close(fd);
	strcpy(dir, self->in.dir);
	ret = module_remove();
	if (ret) {
		/* an instance may hold the module: then it says so */
		EXPECT_EQ(-EAGAIN, ret);
		ASSERT_EQ(0, instance_stop(&self->in));
		ASSERT_EQ(0, module_remove());
	} else {
		instance_close(&self->in);
	}
	ASSERT_EQ(0, module_insert());
	ASSERT_EQ(0, wait_control());
	ASSERT_EQ(0, instance_start(&self->in, dir));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	fd = partition_bind("t", 0, 0);
	EXPECT_EQ(1, partition_end(fd));
	ASSERT_EQ(0, nl_stats_get(&self->in.nl, "t", 0, counters));
	EXPECT_EQ(0, counters[PLOG_A_STATS_RECOVERED_BYTES]);
	close(fd);
}

TEST_F(module, removal_while_a_namespace_dies)
{
	int round, status;

	ASSERT_EQ(0, instance_stop(&self->in));
	for (round = 0; round < 5; round++) {
		int64_t end = now_ms() + 20000;
		pid_t pid = child();
		int ret;

		if (!pid) {
			struct nl_partition part = { .topic = "n", .dir_fd = -1 };
			struct instance in;
			int fd;

			if (namespace_new() || instance_start(&in, NULL) ||
			    instance_topic(&in, "t"))
				_exit(1);
			fd = partition_bind("t", 0, 0);
			if (write(fd, "x", 1) != 1)
				_exit(2);
			/* one more is still opening when the end comes */
			mkdir(instance_path(&in, "n", 0, NULL), 0755);
			part.dir_fd = open(instance_path(&in, "n", 0, NULL),
					   O_RDONLY | O_DIRECTORY);
			_exit(nl_partition_new(&in.nl, &part) ? 3 : 0);
		}
		waitpid(pid, &status, 0);
		ASSERT_EQ(0, status);
		do {
			ret = module_remove();
		} while (ret == -EAGAIN && now_ms() < end);
		ASSERT_EQ(0, ret);
		ASSERT_EQ(0, module_insert());
		ASSERT_EQ(0, wait_control());
	}
}

TEST_F(module, removal_while_somebody_listens)
{
	struct nl ev;

	ASSERT_EQ(0, instance_stop(&self->in));
	ASSERT_EQ(0, nl_open(&ev));
	ASSERT_EQ(0, nl_join(&ev));
	EXPECT_EQ(0, module_remove());
	{
		struct nl_instance got;

		EXPECT_GT(0, nl_instance_get(&ev, &got));
	}
	nl_close(&ev);
	EXPECT_EQ(0, module_insert());
	EXPECT_EQ(0, wait_control());
}

TEST_F_TIMEOUT(module, removal_races_with_opens, 90)
{
	volatile int *stop = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t end = now_ms() + 3000;
	int i, status, removed = 0;
	pid_t pids[3];

	ASSERT_EQ(0, instance_stop(&self->in));
	for (i = 0; i < 3; i++) {
		pids[i] = child();
		if (pids[i])
			continue;
		while (!*stop) {
			struct plog_info info = { 0 };
			struct nl_instance got;
			struct nl nl;
			int fd = control_open(0);

			if (fd >= 0) {
				ioctl(fd, PLOG_IOC_INFO, &info);
				close(fd);
			}
			if (i == 2 && !nl_open(&nl)) {
				nl_instance_get(&nl, &got);
				nl_close(&nl);
			}
			usleep(1000);
		}
		_exit(0);
	}
	while (now_ms() < end) {
		int ret = module_remove();

		if (ret) {
			EXPECT_EQ(-EAGAIN, ret);
			continue;
		}
		removed++;
		EXPECT_EQ(0, module_insert());
	}
	*stop = 1;
	for (i = 0; i < 3; i++) {
		waitpid(pids[i], &status, 0);
		EXPECT_EQ(0, status);
	}
	EXPECT_LT(0, removed);
	EXPECT_EQ(0, wait_control());
}

SELFTEST_MAIN
