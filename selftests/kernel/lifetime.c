// SPDX-License-Identifier: GPL-2.0
/*
 * Objects that go while others use them: partitions under load, instances,
 * namespaces, directories that two want.
 */
#include <sys/sendfile.h>

#include "fixture.h"

/* Shared between the processes of a test. */
struct shared {
	volatile int stop;
	volatile int64_t done[16];
};

static struct shared *share(void)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return s == MAP_FAILED ? NULL : s;
}

/* What a user of a partition may see while it comes and goes. */
static bool expected_error(int err)
{
	return err == ENODEV || err == EAGAIN || err == ESTALE || err == ERANGE;
}

enum { RECORD_WRITER, RECORD_READER, APPENDER, SPLICER, POLLER, KINDS };

/*
 * Bytes that were spliced are the page cache's own: a truncation can change
 * them while they wait in a pipe. A read(2) must give right ones or none.
 */
static bool copy_only;

/* Take @length bytes of the cursor; 0 or an errno. */
static int take(int fd, int pipefd[2], char *buf, size_t room, size_t length)
{
	size_t got = 0;

	if (length > room)
		return EOVERFLOW;
	while (got < length) {
		ssize_t n, m;

		if (copy_only) {
			n = read(fd, buf + got, length - got);
			if (n <= 0)
				return n ? errno : EPIPE;
			got += (size_t)n;
			continue;
		}
		n = splice(fd, NULL, pipefd[1], NULL, length - got, 0);
		if (n <= 0)
			return n ? errno : EPIPE;
		for (; n; n -= m) {
			m = read(pipefd[0], buf + got, (size_t)n);
			if (m <= 0)
				return EIO;
			got += (size_t)m;
		}
	}
	return 0;
}

/* @at: where a splicer goes on; writers may keep its end out of reach for long. */
static int use_once(int kind, int fd, int pipefd[2], struct batch *b, int64_t *at)
{
	static char buf[1 << 17];
	struct plog_locate loc;
	int64_t next;
	ssize_t n;
	int err;

	switch (kind) {
	case RECORD_WRITER:
		return write(fd, "some record", 11) == 11 ? 0 : errno;
	case RECORD_READER:
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && errno == EAGAIN) {
			lseek(fd, 0, SEEK_SET);
			return polled(fd, POLLIN, 1) ? 0 : 0;
		}
		return n > 0 ? 0 : errno;
	case APPENDER:
		return -partition_append(fd, b->data, b->size, NULL);
	case SPLICER:
		err = -partition_locate(fd, *at, 40000, PLOG_LOCATE_WHOLE, &loc);
		if (err)
			return err;
		if (!loc.length) {
			*at = 0;
			return 0;
		}
		next = loc.base_offset;
		err = take(fd, pipefd, buf, sizeof(buf), loc.length);
		if (err)
			return err;
		if (batch_walk((uint8_t *)buf, loc.length, &next, NULL) || next != loc.next_offset)
			return EBADMSG;
		*at = next;
		return 0;
	case POLLER:
		polled(fd, POLLIN | POLLOUT, 5);
		return 0;
	}
	return EINVAL;
}

/* Use partition "t" until told to stop; exit status is an errno nobody expected. */
static void user(struct shared *s, int who, int kind, const char *topic)
{
	uint32_t mode = kind == APPENDER || kind == SPLICER ? PLOG_MODE_BATCH : 0;
	struct batch b;
	int pipefd[2], fd, err;
	int64_t at;

	if (!batch_fill(&b, who % 2 ? 300 : 90000, 'a' + who) || pipe(pipefd))
		_exit(99);
	while (!s->stop) {
		fd = partition_bind_flags(topic, 0, mode, O_NONBLOCK);
		if (fd < 0) {
			if (!expected_error(-fd))
				_exit(-fd);
			usleep(500);
			continue;
		}
		at = 0;
		do {
			err = use_once(kind, fd, pipefd, &b, &at);
			s->done[who] += !err;
			if (kind == APPENDER || kind == RECORD_WRITER)
				usleep(300);
		} while (!err && !s->stop);
		if (err && !expected_error(err))
			_exit(err);
		close(fd);
	}
	_exit(0);
}

/* @in: whose lock they must not keep */
static int start_users(struct shared *s, struct instance *in, pid_t *pids, int n,
		       const char *topic)
{
	int i;

	for (i = 0; i < n; i++) {
		pids[i] = child();
		if (!pids[i]) {
			close(in->lock_fd);
			user(s, i, i % KINDS, topic);
		}
	}
	return n;
}

static bool all_done(const struct shared *s, int n)
{
	while (n-- > 0)
		if (!s->done[n])
			return false;
	return true;
}

#define JOIN(s, pids, n)							\
	do {									\
		int i_, status_;						\
		(s)->stop = 1;							\
		for (i_ = 0; i_ < (n); i_++) {					\
			ASSERT_EQ((pids)[i_], waitpid((pids)[i_], &status_, 0));	\
			EXPECT_EQ(0, status_) {					\
				TH_LOG("user %d of kind %d: %s", i_, i_ % KINDS,	\
				       strerror(WEXITSTATUS(status_)));		\
			}							\
		}								\
	} while (0)

TEST_F_TIMEOUT(log, delete_and_recreate_under_load, 120)
{
	struct shared *s = share();
	int64_t end = now_ms() + 4000;
	pid_t pids[10];
	int rounds = 0, i, n;

	n = start_users(s, &self->in, pids, 10, "t");
	/* on a slow machine, until each has had its turn */
	while (now_ms() < end || rounds < 4 || !all_done(s, n)) {
		usleep(30000);
		ASSERT_EQ(0, instance_delete(&self->in, "t", 0));
		ASSERT_EQ(0, instance_topic(&self->in, "t"));
		rounds++;
	}
	JOIN(s, pids, n);
	i = partition_bind("t", 0, PLOG_MODE_BATCH);
	EXPECT_EQ(NULL, partition_check(i, NULL));
	close(i);
}

TEST_F_TIMEOUT(log, stop_and_start_under_load, 120)
{
	struct shared *s = share();
	pid_t pids[10];
	char dir[256];
	int i, n;

	strcpy(dir, self->in.dir);
	n = start_users(s, &self->in, pids, 10, "t");
	for (i = 0; i < 8; i++) {
		usleep(100000);
		ASSERT_EQ(0, instance_stop(&self->in));
		ASSERT_EQ(0, instance_start(&self->in, dir)) {
			TH_LOG("%s", self->in.nl.error_text);
		}
		ASSERT_EQ(0, instance_topic(&self->in, "t"));
	}
	JOIN(s, pids, n);
	i = partition_bind("t", 0, PLOG_MODE_BATCH);
	EXPECT_EQ(NULL, partition_check(i, NULL));
	close(i);
}

TEST_F_TIMEOUT(log, rolls_under_load, 120)
{
	struct nl_partition part = { .topic = "r", .segment_bytes = 200000 };
	struct shared *s = share();
	struct plog_state state;
	pid_t pids[10];
	int n, fd;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	n = start_users(s, &self->in, pids, 10, "r");
	fd = partition_bind("r", 0, PLOG_MODE_BATCH);
	do {
		usleep(100000);
		ASSERT_EQ(0, partition_state(fd, &state));
	} while (state.segments < 20 || !all_done(s, n));
	JOIN(s, pids, n);
	EXPECT_EQ(NULL, partition_check(fd, NULL));
	close(fd);
}

TEST_F_TIMEOUT(log, truncations_under_load, 120)
{
	struct shared *s = share();
	int control = control_open(0), n, rounds = 0;
	int64_t end = now_ms() + 3000;
	uint64_t incarnation;
	pid_t pids[10];

	ASSERT_EQ(0, control_register(control, 0, &incarnation));
	copy_only = true;
	n = start_users(s, &self->in, pids, 10, "t");
	while (now_ms() < end || rounds < 6 || !all_done(s, n)) {
		int64_t at = partition_end(self->batch);
		int ret;

		usleep(20000);
		ret = partition_control(self->batch, PLOG_CONTROL_TRUNCATE, incarnation, EPOCH,
					at * 3 / 4);
		EXPECT_EQ(0, ret);
		rounds++;
	}
	JOIN(s, pids, n);
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	close(control);
}

TEST_F(log, readers_see_every_record_in_order_while_segments_roll)
{
	struct nl_partition part = { .topic = "r", .segment_bytes = 8192 };
	const int records = 3000 / slow();
	pid_t pids[3];
	int i, j, status, fd;

	ASSERT_EQ(0, instance_partition(&self->in, &part));
	for (i = 0; i < 3; i++) {
		pids[i] = child();
		if (pids[i])
			continue;
		fd = partition_bind("r", 0, 0);
		for (j = 0; j < records; j++) {
			char buf[64] = "", want[64];

			snprintf(want, sizeof(want), "record number %d", j);
			if (read(fd, buf, sizeof(buf) - 1) < 0 || strcmp(buf, want))
				_exit(1);
		}
		_exit(0);
	}
	fd = partition_bind("r", 0, 0);
	for (j = 0; j < records; j++) {
		char buf[64];
		int n = snprintf(buf, sizeof(buf), "record number %d", j);

		ASSERT_EQ(n, write(fd, buf, (size_t)n));
	}
	for (i = 0; i < 3; i++) {
		waitpid(pids[i], &status, 0);
		EXPECT_EQ(0, status);
	}
	close(fd);
}

TEST_F(log, splice_in_flight_does_not_hold_up_a_stop)
{
	int pair[2], i, status;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	for (i = 0; i < 10; i++) {
		struct batch b;

		ASSERT_TRUE(batch_fill(&b, 100000, 's'));
		ASSERT_EQ(0, partition_append(self->batch, b.data, b.size, NULL));
		batch_free(&b);
	}
	pid = child();
	if (!pid) {
		struct plog_locate loc;

		partition_locate(self->batch, 0, 1 << 20, 0, &loc);
		/* nobody reads: it blocks in the socket */
		sendfile(pair[0], self->batch, NULL, loc.length);
		_exit(0);
	}
	usleep(200000);
	ASSERT_EQ(0, waitpid(pid, &status, WNOHANG));
	EXPECT_EQ(0, instance_delete(&self->in, "t", 0));
	EXPECT_EQ(0, instance_stop(&self->in));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	close(pair[0]);
	close(pair[1]);
}

TEST_F(log, bytes_in_a_pipe_outlive_everything)
{
	static uint8_t buf[1 << 16];
	struct plog_locate loc;
	int64_t next = 0;
	int pipefd[2], i;
	size_t got = 0;
	ssize_t n;

	for (i = 0; i < 10; i++)
		ASSERT_EQ(11, write(self->fd, "pipe record", 11));
	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(0, partition_locate(self->batch, 0, sizeof(buf), 0, &loc));
	ASSERT_EQ(loc.length, splice(self->batch, NULL, pipefd[1], NULL, loc.length, 0));
	close(self->batch);
	close(self->fd);
	self->batch = self->fd = -1;
	ASSERT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
	close(pipefd[1]);
	while ((n = read(pipefd[0], buf + got, sizeof(buf) - got)) > 0)
		got += (size_t)n;
	EXPECT_EQ(loc.length, got);
	EXPECT_EQ(NULL, batch_walk(buf, got, &next, NULL));
	EXPECT_EQ(10, next);
	close(pipefd[0]);
}

TEST_F(log, stop_while_partitions_open)
{
	struct nl_partition part = { .topic = "many" };
	uint32_t i;

	for (i = 0; i < 60; i++) {
		const char *path = instance_path(&self->in, "many", i, NULL);

		part.index = i;
		ASSERT_EQ(0, mkdir(path, 0755));
		part.dir_fd = open(path, O_RDONLY | O_DIRECTORY);
		ASSERT_EQ(0, nl_partition_new(&self->in.nl, &part));
		close(part.dir_fd);
	}
	EXPECT_EQ(0, instance_stop(&self->in));
}

TEST_F(log, delete_while_it_opens)
{
	struct nl_partition part = { .topic = "n" };
	int i;

	ASSERT_EQ(0, mkdir(instance_path(&self->in, "n", 0, NULL), 0755));
	for (i = 0; i < 30; i++) {
		part.dir_fd = open(instance_path(&self->in, "n", 0, NULL),
				   O_RDONLY | O_DIRECTORY);
		ASSERT_EQ(0, nl_partition_new(&self->in.nl, &part)) {
			TH_LOG("round %d: %s", i, self->in.nl.error_text);
		}
		close(part.dir_fd);
		ASSERT_EQ(0, instance_delete(&self->in, "n", 0));
	}
}

TEST_F(log, a_thousand_descriptors)
{
	static int fds[1000];
	int i;

	for (i = 0; i < 1000; i++) {
		fds[i] = partition_bind_flags("t", 0, i % 2 ? PLOG_MODE_BATCH : 0, O_NONBLOCK);
		ASSERT_LE(0, fds[i]) {
			TH_LOG("descriptor %d: %s", i, strerror(-fds[i]));
		}
	}
	EXPECT_EQ(1, write(fds[0], "x", 1));
	EXPECT_EQ(0, instance_delete(&self->in, "t", 0));
	for (i = 0; i < 1000; i++)
		close(fds[i]);
}

/* ---- namespaces ---- */

/* Open a data directory whose last user may still be letting go. */
static int start_when_free(struct instance *in, const char *dir)
{
	int64_t end = now_ms() + 15000 * slow();
	int ret;

	do {
		ret = instance_start(in, dir);
		if (ret != -EAGAIN && ret != -EBUSY)
			break;
		usleep(5000);
	} while (now_ms() < end);
	return ret;
}

TEST(namespace_dies_with_partitions_open)
{
	char dir[256];
	int round, fds[2], status, records = 0;

	ASSERT_EQ(0, pipe(fds));
	dir[0] = '\0';
	for (round = 0; round < 5; round++) {
		struct instance in;
		pid_t pid = child();
		int fd;

		if (!pid) {
			int i;

			if (namespace_new() || start_when_free(&in, dir[0] ? dir : NULL) ||
			    instance_topic(&in, "t"))
				_exit(1);
			if (write(fds[1], in.dir, sizeof(in.dir)) != sizeof(in.dir))
				_exit(2);
			fd = partition_bind("t", 0, 0);
			if (partition_end(fd) != records)
				_exit(3);
			for (i = 0; i < 10; i++)
				if (write(fd, "record", 6) != 6)
					_exit(4);
			/* no stop, no close: the namespace goes with us */
			_exit(0);
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_EQ(0, status) {
			TH_LOG("round %d: status %x", round, status);
		}
		ASSERT_EQ(sizeof(dir), read(fds[0], dir, sizeof(dir)));
		records += 10;
	}
	/* and by a kill in the middle of writes */
	{
		struct instance in;
		pid_t pid = child();
		int fd, n;

		if (!pid) {
			if (namespace_new() || start_when_free(&in, dir) ||
			    instance_topic(&in, "t"))
				_exit(1);
			if (write(fds[1], "go", 2) != 2)
				_exit(2);
			fd = partition_bind("t", 0, 0);
			for (;;)
				if (write(fd, "record", 6) != 6)
					_exit(4);
		}
		ASSERT_EQ(2, read(fds[0], in.dir, 2));
		usleep(50000);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		ASSERT_TRUE(WIFSIGNALED(status));

		ASSERT_EQ(0, namespace_new());
		ASSERT_EQ(0, start_when_free(&in, dir));
		ASSERT_EQ(0, instance_topic(&in, "t"));
		fd = partition_bind("t", 0, PLOG_MODE_BATCH);
		EXPECT_LE(records, partition_end(fd));
		EXPECT_EQ(NULL, partition_check(fd, &n));
		EXPECT_EQ(partition_end(fd), n);
		close(fd);
		EXPECT_EQ(0, instance_stop(&in));
		instance_remove(&in);
	}
}

static int send_fds(int socket, const int *fds, int n)
{
	char control[CMSG_SPACE(8 * sizeof(int))], byte = 'f';
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int)),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	memset(control, 0, sizeof(control));
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, (size_t)n * sizeof(int));
	return sendmsg(socket, &msg, 0) == 1 ? 0 : -errno;
}

static int receive_fds(int socket, int *fds, int n)
{
	char control[CMSG_SPACE(8 * sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};

	if (recvmsg(socket, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		return -EIO;
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), (size_t)n * sizeof(int));
	return 0;
}

TEST(descriptors_outlive_their_namespace)
{
	int pair[2], fds[4], status;
	struct plog_bind bind = { .topic = "t" };
	struct plog_locate loc;
	struct plog_info info = { 0 };
	uint8_t buf[4096];
	int64_t next = 0;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	pid = child();
	if (!pid) {
		struct instance in;

		if (namespace_new() || instance_start(&in, NULL) || instance_topic(&in, "t"))
			_exit(1);
		fds[0] = partition_bind_flags("t", 0, 0, O_NONBLOCK);
		fds[1] = partition_bind_flags("t", 0, PLOG_MODE_BATCH, O_NONBLOCK);
		fds[2] = control_open(0);
		fds[3] = control_open(0);
		if (write(fds[0], "x", 1) != 1 ||
		    partition_locate(fds[1], 0, 4096, 0, &loc) ||
		    control_register(fds[3], 0, NULL) || send_fds(pair[1], fds, 4))
			_exit(2);
		_exit(0);
	}
	ASSERT_EQ(0, receive_fds(pair[0], fds, 4));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	/* the namespace goes in its own time */
	{
		int64_t end = now_ms() + 15000 * slow();

		while (write(fds[0], "x", 1) == 1 && now_ms() < end)
			usleep(5000);
	}
	EXPECT_EQ(ENODEV, FAILS(write(fds[0], "x", 1)));
	EXPECT_EQ(ENODEV, FAILS(read(fds[0], buf, 1)));
	/* the extent stays */
	EXPECT_LT(0, read(fds[1], buf, sizeof(buf)));
	EXPECT_EQ(NULL, batch_walk(buf, batch_get(buf, AT_LENGTH, 4) + 12, &next, NULL));
	EXPECT_GT(0, partition_locate(fds[1], 0, 4096, 0, &loc));
	EXPECT_GT(0, ioctl(fds[2], PLOG_IOC_BIND, &bind));
	EXPECT_GT(0, control_register(fds[2], 0, NULL));
	ioctl(fds[2], PLOG_IOC_INFO, &info);
	close(fds[0]);
	close(fds[1]);
	close(fds[2]);
	close(fds[3]);
}

TEST_F_TIMEOUT(log, namespaces_come_and_go, 120)
{
	int round, i, status;
	pid_t pids[4];

	for (round = 0; round < 8 / slow(); round++) {
		for (i = 0; i < 4; i++) {
			pids[i] = child();
			if (!pids[i]) {
				struct instance in;
				int fd;

				if (namespace_new() || instance_start(&in, NULL) ||
				    instance_topic(&in, "t"))
					_exit(1);
				fd = partition_bind("t", 0, 0);
				if (write(fd, "x", 1) != 1)
					_exit(2);
				/* half of them leave their directory behind */
				if (i % 2 == 0 && (instance_stop(&in) ||
						   (instance_remove(&in), 0)))
					_exit(3);
				_exit(0);
			}
		}
		for (i = 0; i < 4; i++) {
			waitpid(pids[i], &status, 0);
			EXPECT_EQ(0, status);
		}
	}
	EXPECT_EQ(1, write(self->fd, "x", 1));
}

/* ---- one directory, two users ---- */

TEST_F(log, same_directory_in_two_namespaces_is_refused)
{
	struct instance other;
	struct nl nl;

	ASSERT_EQ(0, namespace_new());
	/* the lock says so already */
	EXPECT_EQ(-EAGAIN, instance_start(&other, self->in.dir));
	/* and the module, where somebody hands it the very descriptors */
	ASSERT_EQ(0, nl_open(&nl));
	EXPECT_EQ(-EBUSY, nl_instance_set(&nl, self->in.dir, self->in.dir_fd,
					  self->in.lock_fd));
	EXPECT_STRNE("", nl.error_text);
	nl_close(&nl);
	EXPECT_EQ(1, write(self->fd, "x", 1));
}

TEST_F(log, lock_of_another_directory_is_refused)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[400];
	struct nl nl;
	int file;

	/* a file of another name, or another directory's .lock */
	ASSERT_EQ(0, instance_stop(&self->in));
	snprintf(path, sizeof(path), "%s/other", self->in.dir);
	ASSERT_EQ(0, mkdir(path, 0755));
	self->in.dir_fd = open(self->in.dir, O_RDONLY | O_DIRECTORY);
	snprintf(path, sizeof(path), "%s/other/.lock", self->in.dir);
	file = open(path, O_RDWR | O_CREAT, 0600);
	ASSERT_EQ(0, fcntl(file, F_OFD_SETLK, &lock));
	ASSERT_EQ(0, nl_open(&nl));
	EXPECT_GT(0, nl_instance_set(&nl, self->in.dir, self->in.dir_fd, file));
	EXPECT_STRNE("", nl.error_text);
	nl_close(&nl);
	close(file);
	close(self->in.dir_fd);
}

TEST_F(log, directory_locked_by_a_process_is_refused)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct instance again;
	char path[300], dir[256];
	int file, unlocked;
	struct nl nl;

	/* what the daemon's process engine does: an OFD lock of its own */
	strcpy(dir, self->in.dir);
	ASSERT_EQ(0, instance_stop(&self->in));
	snprintf(path, sizeof(path), "%s/.lock", dir);
	file = open(path, O_RDWR);
	ASSERT_EQ(0, fcntl(file, F_OFD_SETLK, &lock));
	EXPECT_EQ(-EAGAIN, instance_start(&again, dir));
	unlocked = open(path, O_RDWR);
	ASSERT_EQ(0, nl_open(&nl));
	{
		int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);

		EXPECT_GT(0, nl_instance_set(&nl, dir, dir_fd, unlocked));
		EXPECT_STRNE("", nl.error_text);
		close(dir_fd);
	}
	nl_close(&nl);
	close(unlocked);
	close(file);
	ASSERT_EQ(0, instance_start(&again, dir));
	EXPECT_EQ(0, instance_stop(&again));
}

TEST_F(log, partition_directory_of_another_instance_is_refused)
{
	struct nl_partition part = { .topic = "t" };
	struct instance other;

	part.dir_fd = open(instance_path(&self->in, "t", 0, NULL), O_RDONLY | O_DIRECTORY);
	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&other, NULL));
	EXPECT_GT(0, nl_partition_new(&other.nl, &part));
	EXPECT_STRNE("", other.nl.error_text);
	EXPECT_EQ(0, instance_stop(&other));
	instance_remove(&other);
	close(part.dir_fd);
}

SELFTEST_MAIN
