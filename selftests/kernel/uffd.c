// SPDX-License-Identifier: GPL-2.0
/*
 * A caller whose memory sits behind a page that never arrives: it waits alone.
 * Other writers, readers and the daemon go on, and it can be killed.
 */
#include <linux/userfaultfd.h>
#include <sys/syscall.h>

#include "fixture.h"

#define SPAN (1UL << 20)

/* A region whose pages are missing until somebody serves them: nobody does. */
static uint8_t *missing(size_t first_missing)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int fd = (int)syscall(__NR_userfaultfd, O_CLOEXEC);
	uint8_t *map = mmap(NULL, SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	if (fd < 0 || map == MAP_FAILED || ioctl(fd, UFFDIO_API, &api))
		return NULL;
	reg.range.start = (uintptr_t)map + first_missing;
	reg.range.len = SPAN - first_missing;
	return ioctl(fd, UFFDIO_REGISTER, &reg) ? NULL : map;
}

/* What the stuck process does; none of these may come back. */
static void stuck(int kind, int fd, int batch, uint64_t incarnation)
{
	struct plog_append arg = { .leader_epoch = -1 };
	struct iovec iov[2];
	struct batch b;
	uint8_t *map;

	switch (kind) {
	case 0:		/* a record of which nothing is there */
		map = missing(0);
		if (map && write(fd, map, 100) < 0)
			_exit(1);
		break;
	case 1:		/* its second page is not there */
		map = missing(4096);
		if (map && write(fd, map, 8192) < 0)
			_exit(1);
		break;
	case 2:		/* a large record, the last page */
		map = missing(SPAN - 4096);
		if (map && write(fd, map, SPAN - 100) < 0)
			_exit(1);
		break;
	case 3:
		map = missing(4096);
		iov[0].iov_base = "first";
		iov[0].iov_len = 5;
		iov[1].iov_base = map + 4000;
		iov[1].iov_len = 1000;
		if (map && writev(fd, iov, 2) < 0)
			_exit(1);
		break;
	case 4:		/* a small batch after its header */
	case 5:		/* a large one */
	case 6:		/* by the daemon */
		map = missing(4096);
		if (!map || !batch_fill(&b, kind == 4 ? 20000 : 500000, 'u'))
			break;
		memcpy(map, b.data, 4096);
		if (kind == 6) {
			arg.flags = PLOG_APPEND_DAEMON;
			arg.incarnation = incarnation;
			arg.leader_epoch = EPOCH;
		}
		partition_append(batch, map, b.size, &arg);
		_exit(1);
	case 7:		/* a reader's buffer */
		map = missing(0);
		if (map && lseek(fd, 0, SEEK_SET) == 0 && read(fd, map, 100) < 0)
			_exit(1);
		break;
	case 8: {	/* a cursor's */
		struct plog_locate loc;

		map = missing(0);
		if (map && !partition_locate(batch, 0, 4096, 0, &loc) &&
		    read(batch, map, 100) < 0)
			_exit(1);
		break;
	}
	case 9:		/* the ioctl's own argument */
		map = missing(0);
		if (map)
			ioctl(batch, PLOG_IOC_APPEND, map);
		break;
	case 10:
		map = missing(0);
		if (map)
			ioctl(batch, PLOG_IOC_LOCATE, map);
		break;
	case 11:	/* the answer of a registration */
		map = missing(4096);
		if (map) {
			int control = control_open(0);

			ioctl(control, PLOG_IOC_REGISTER, map + 4096 - 8);
		}
		break;
	}
	_exit(2);
}

FIXTURE(uffd)
{
	struct instance in;
	int control;
	int fd;
	int batch;
	uint64_t incarnation;
	pid_t pid;
};

FIXTURE_VARIANT(uffd)
{
	int kind;
};

FIXTURE_VARIANT_ADD(uffd, record) { .kind = 0 };
FIXTURE_VARIANT_ADD(uffd, record_second_page) { .kind = 1 };
FIXTURE_VARIANT_ADD(uffd, record_large) { .kind = 2 };
FIXTURE_VARIANT_ADD(uffd, writev) { .kind = 3 };
FIXTURE_VARIANT_ADD(uffd, batch_small) { .kind = 4 };
FIXTURE_VARIANT_ADD(uffd, batch_large) { .kind = 5 };
FIXTURE_VARIANT_ADD(uffd, batch_of_daemon) { .kind = 6 };
FIXTURE_VARIANT_ADD(uffd, record_reader) { .kind = 7 };
FIXTURE_VARIANT_ADD(uffd, cursor_reader) { .kind = 8 };
FIXTURE_VARIANT_ADD(uffd, append_argument) { .kind = 9 };
FIXTURE_VARIANT_ADD(uffd, locate_argument) { .kind = 10 };
FIXTURE_VARIANT_ADD(uffd, register_argument) { .kind = 11 };

FIXTURE_SETUP(uffd)
{
	int status;

	/* the tests themselves skip: SKIP() here would run them all the same */
	self->pid = -1;
	if (!missing(0))
		return;
	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	self->control = control_open(0);
	ASSERT_EQ(0, control_register(self->control, 0, &self->incarnation));
	self->fd = partition_bind_flags("t", 0, 0, O_NONBLOCK);
	self->batch = partition_bind("t", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, self->batch);
	ASSERT_EQ(5, write(self->fd, "first", 5));

	self->pid = child();
	if (!self->pid) {
		/* descriptors of its own: a descriptor serializes its readers */
		stuck(variant->kind, partition_bind_flags("t", 0, 0, O_NONBLOCK),
		      partition_bind("t", 0, PLOG_MODE_BATCH), self->incarnation);
	}
	usleep(100000 * (useconds_t)slow());
	status = 0;
	if (waitpid(self->pid, &status, WNOHANG)) {
		ASSERT_EQ(0, 1) {
			TH_LOG("the process that should be stuck ended: %x", status);
		}
	}
}

FIXTURE_TEARDOWN(uffd)
{
	if (self->pid < 0)
		return;
	close(self->control);
	close(self->fd);
	close(self->batch);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
}

#define NEED_UFFD()								\
	do {									\
		if (self->pid < 0)						\
			SKIP(return, "no userfaultfd in this kernel");		\
	} while (0)

#define UNSTICK()								\
	do {									\
		int status_;							\
		kill(self->pid, SIGKILL);					\
		ASSERT_EQ(self->pid, waitpid(self->pid, &status_, 0));		\
		EXPECT_TRUE(WIFSIGNALED(status_));				\
	} while (0)

TEST_F_TIMEOUT(uffd, others_go_on, 20)
{
	struct plog_locate loc;
	struct batch b;
	char buf[16];

	NEED_UFFD();
	EXPECT_EQ(6, write(self->fd, "second", 6));
	EXPECT_EQ(5, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(6, read(self->fd, buf, sizeof(buf)));
	ASSERT_TRUE(batch_fill(&b, 200000, 'o'));
	EXPECT_EQ(0, partition_append(self->batch, b.data, b.size, NULL));
	EXPECT_EQ(0, partition_locate(self->batch, 0, 1 << 20, 0, &loc));
	EXPECT_EQ(3, partition_end(self->batch));
	EXPECT_EQ(0, fsync(self->fd));
	UNSTICK();
	EXPECT_EQ(3, partition_end(self->batch));
	EXPECT_EQ(NULL, partition_check(self->batch, NULL));
	batch_free(&b);
}

TEST_F_TIMEOUT(uffd, a_new_daemon_takes_over, 20)
{
	int second = control_open(0);
	struct plog_append arg = { .flags = PLOG_APPEND_DAEMON, .leader_epoch = EPOCH };
	uint64_t incarnation = 0;
	struct batch b;

	NEED_UFFD();
	ASSERT_TRUE(batch_text(&b, "new"));
	ASSERT_EQ(0, control_register(second, 0, &incarnation));
	EXPECT_LT(self->incarnation, incarnation);
	arg.incarnation = incarnation;
	EXPECT_EQ(0, partition_append(self->batch, b.data, b.size, &arg));
	UNSTICK();
	close(second);
	batch_free(&b);
}

TEST_F_TIMEOUT(uffd, the_partition_can_be_deleted, 20)
{
	NEED_UFFD();
	EXPECT_EQ(0, instance_delete(&self->in, "t", 0));
	EXPECT_EQ(0, instance_topic(&self->in, "u"));
	UNSTICK();
}

SELFTEST_MAIN
