// SPDX-License-Identifier: GPL-2.0
/*
 * The control node and the ioctls: what they answer, what they refuse.
 */
#include <sys/epoll.h>

#include "fixture.h"

/* Every ioctl with its argument's size. */
static const struct call {
	const char *name;
	unsigned long number;
	bool control;		/* of an unbound descriptor */
} calls[] = {
	{ "INFO", PLOG_IOC_INFO, true },
	{ "BIND", PLOG_IOC_BIND, true },
	{ "REGISTER", PLOG_IOC_REGISTER, true },
	{ "SET_MODE", PLOG_IOC_SET_MODE, false },
	{ "STATE", PLOG_IOC_STATE, false },
	{ "APPEND", PLOG_IOC_APPEND, false },
	{ "LOCATE", PLOG_IOC_LOCATE, false },
	{ "LOOKUP", PLOG_IOC_LOOKUP, false },
	{ "CONTROL", PLOG_IOC_CONTROL, false },
};

TEST_F(log, info_tells_abi_and_limits)
{
	struct plog_info info;
	int fd = control_open(0);

	memset(&info, 0, sizeof(info));
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PLOG_IOC_INFO, &info));
	EXPECT_EQ(PLOG_ABI_MAJOR, info.abi_major);
	EXPECT_EQ(PLOG_ABI_MINOR, info.abi_minor);
	EXPECT_EQ(0, info.features);
	EXPECT_LT(999, info.partitions_max);
	EXPECT_EQ(PLOG_MESSAGE_BYTES_MAX, info.message_bytes_max);
	EXPECT_EQ(0, info.incarnation);
	EXPECT_EQ(0, info.reserved[0] | info.reserved[1] | info.reserved[2] |
		     info.reserved[3]);
	close(fd);
}

TEST_F(log, info_works_on_a_bound_descriptor)
{
	struct plog_info info;

	memset(&info, 0, sizeof(info));
	EXPECT_EQ(0, ioctl(self->fd, PLOG_IOC_INFO, &info));
	EXPECT_EQ(PLOG_ABI_MAJOR, info.abi_major);
}

TEST_F(log, bind_to_missing_partition_is_enodev)
{
	EXPECT_EQ(-ENODEV, partition_bind("t", 1, 0));
	EXPECT_EQ(-ENODEV, partition_bind("u", 0, 0));
	EXPECT_EQ(-ENODEV, partition_bind("t", UINT32_MAX, 0));
}

TEST_F(log, bind_needs_a_zero_terminated_topic)
{
	struct plog_bind bind;
	int fd = control_open(0);

	memset(&bind, 0, sizeof(bind));
	EXPECT_EQ(EINVAL, FAILS(ioctl(fd, PLOG_IOC_BIND, &bind)));
	memset(bind.topic, 'a', sizeof(bind.topic));
	EXPECT_EQ(EINVAL, FAILS(ioctl(fd, PLOG_IOC_BIND, &bind)));
	/* the rest behind the name must be zero */
	memset(bind.topic, 0, sizeof(bind.topic));
	bind.topic[0] = 't';
	bind.topic[2] = 'x';
	EXPECT_EQ(EINVAL, FAILS(ioctl(fd, PLOG_IOC_BIND, &bind)));
	bind.topic[2] = '\0';
	EXPECT_EQ(0, ioctl(fd, PLOG_IOC_BIND, &bind));
	close(fd);
}

TEST_F(log, bind_refuses_unknown_flags)
{
	int bit;

	for (bit = 3; bit < 32; bit++) {
		EXPECT_EQ(-EINVAL, partition_bind("t", 0, 1u << bit));
	}
}

TEST_F(log, rebinding_is_ebusy)
{
	struct plog_bind bind = { .topic = "t" };

	EXPECT_EQ(EBUSY, FAILS(ioctl(self->fd, PLOG_IOC_BIND, &bind)));
	EXPECT_EQ(0, ioctl(self->fd, PLOG_IOC_INFO, &(struct plog_info){ 0 }));
	EXPECT_EQ(2, write(self->fd, "ok", 2));
}

TEST_F(log, binding_races_have_one_winner)
{
	int round;

	for (round = 0; round < 40 / slow(); round++) {
		int fd = control_open(0), won = 0, status, i;
		pid_t pids[4];

		ASSERT_LE(0, fd);
		for (i = 0; i < 4; i++) {
			pids[i] = child();
			if (!pids[i]) {
				struct plog_bind bind = { .topic = "t" };

				_exit(FAILS(ioctl(fd, PLOG_IOC_BIND, &bind)) == EBUSY);
			}
		}
		for (i = 0; i < 4; i++) {
			waitpid(pids[i], &status, 0);
			won += WIFEXITED(status) && !WEXITSTATUS(status);
		}
		EXPECT_EQ(1, won);
		close(fd);
	}
}

TEST_F(log, unbound_descriptor_is_enotconn)
{
	int fd = control_open(O_NONBLOCK);
	struct plog_state state;
	struct plog_locate loc;
	char byte = 'x';

	EXPECT_EQ(ENOTCONN, FAILS(read(fd, &byte, 1)));
	EXPECT_EQ(ENOTCONN, FAILS(write(fd, &byte, 1)));
	EXPECT_EQ(ENOTCONN, FAILS(fsync(fd)));
	EXPECT_EQ(ENOTCONN, FAILS(lseek(fd, 0, SEEK_SET)));
	EXPECT_EQ(-ENOTCONN, partition_state(fd, &state));
	EXPECT_EQ(-ENOTCONN, partition_append(fd, &byte, 1, NULL));
	EXPECT_EQ(-ENOTCONN, partition_locate(fd, 0, 1, 0, &loc));
	EXPECT_EQ(-ENOTCONN, partition_mode(fd, 0));
	EXPECT_EQ(0, polled(fd, POLLIN | POLLOUT, 0));
	close(fd);
}

/* An epoll has its place in line from before BIND: it hears of what comes after. */
TEST_F(log, epoll_before_bind)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET }, got;
	struct plog_bind bind = { .topic = "t" };
	int ep = epoll_create1(EPOLL_CLOEXEC), fd = control_open(O_NONBLOCK), i;
	char value[8];

	ASSERT_LE(0, ep);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 0));
	ASSERT_EQ(1, write(self->fd, "a", 1));
	/* the bind itself is news, since there is something to read */
	ASSERT_EQ(0, ioctl(fd, PLOG_IOC_BIND, &bind));
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 0));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(1, read(fd, value, sizeof(value)));
		EXPECT_EQ(0, epoll_wait(ep, &got, 1, 0));
		ASSERT_EQ(1, write(self->fd, "b", 1));
		EXPECT_EQ(1, epoll_wait(ep, &got, 1, 5000));
	}
	/* the descriptor goes away in the middle of it, then the epoll does */
	close(fd);
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 0));
	ASSERT_EQ(1, write(self->fd, "c", 1));
	close(ep);
}

TEST_F(log, unknown_ioctls_are_enotty)
{
	uint64_t big[128];
	int number;

	memset(big, 0, sizeof(big));
	for (number = 0; number < 256; number++) {
		bool known = number <= 2 || (number >= 0x10 && number <= 0x15);

		if (known)
			continue;
		EXPECT_EQ(ENOTTY, FAILS(ioctl(self->fd, _IOC(_IOC_READ | _IOC_WRITE,
							     PLOG_IOC_MAGIC, number, 1000),
					      big)));
	}
	/* somebody else's magic: TCGETS, and a random one */
	EXPECT_EQ(ENOTTY, FAILS(ioctl(self->fd, 0x5401, big)));
	EXPECT_EQ(ENOTTY, FAILS(ioctl(self->fd, _IOWR('x', 0x11, struct plog_state), big)));
	EXPECT_EQ(0, isatty(self->fd));
}

TEST_F(log, wrong_sizes_are_enotty)
{
	uint64_t big[2100];
	size_t i;
	int size;

	memset(big, 0, sizeof(big));
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		unsigned int right = _IOC_SIZE(calls[i].number);
		int fd = calls[i].control ? control_open(0) : dup(self->fd);
		const int sizes[] = { 0, 1, (int)right - 8, (int)right + 8, 16383 };
		size_t j;

		for (j = 0; j < ARRAY_SIZE(sizes); j++) {
			size = sizes[j];
			EXPECT_EQ(ENOTTY, FAILS(ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE,
							       PLOG_IOC_MAGIC,
							       _IOC_NR(calls[i].number),
							       size), big))) {
				TH_LOG("%s with size %d", calls[i].name, size);
			}
		}
		/* the right size in the wrong direction */
		EXPECT_EQ(ENOTTY, FAILS(ioctl(fd, _IOC(_IOC_WRITE, PLOG_IOC_MAGIC,
						       _IOC_NR(calls[i].number), right),
					      big)));
		close(fd);
	}
}

TEST_F(log, wild_pointers_are_efault)
{
	void *const wild[] = {
		NULL, (void *)1, WILD, (void *)0xffff888000000000UL, (void *)-4096L,
		before_gap(4),
	};
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		for (j = 0; j < ARRAY_SIZE(wild); j++) {
			int fd = calls[i].control ? control_open(0) : dup(self->fd);

			EXPECT_EQ(EFAULT, FAILS(ioctl(fd, calls[i].number, wild[j]))) {
				TH_LOG("%s at %p", calls[i].name, wild[j]);
			}
			close(fd);
		}
	}
}

TEST_F(log, read_only_argument_memory_is_efault)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		const char *name = calls[i].name;
		uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		int fd = calls[i].control ? control_open(0) :
			 partition_bind("t", 0, PLOG_MODE_BATCH);
		int err;

		/* only calls that answer something must write */
		mprotect(page, 4096, PROT_READ);
		err = FAILS(ioctl(fd, calls[i].number, page));
		if (!strcmp(name, "INFO") || !strcmp(name, "STATE") ||
		    !strcmp(name, "LOOKUP") || !strcmp(name, "REGISTER") ||
		    !strcmp(name, "LOCATE")) {
			EXPECT_EQ(EFAULT, err) {
				TH_LOG("%s into read-only memory", name);
			}
		}
		close(fd);
		munmap(page, 4096);
	}
	/* a REGISTER that could not say its incarnation must not have happened */
	{
		struct nl_instance got;

		ASSERT_EQ(0, nl_instance_get(&self->in.nl, &got));
		EXPECT_EQ(0, got.incarnation);
	}
}

TEST_F(log, set_mode_refuses_flags_and_reserved)
{
	struct plog_mode mode;
	int i;

	for (i = 3; i < 32; i++) {
		EXPECT_EQ(-EINVAL, partition_mode(self->fd, 1u << i));
	}
	for (i = 0; i < 3; i++) {
		memset(&mode, 0, sizeof(mode));
		mode.reserved[i] = 1;
		EXPECT_EQ(EINVAL, FAILS(ioctl(self->fd, PLOG_IOC_SET_MODE, &mode)));
	}
	EXPECT_EQ(0, partition_mode(self->fd, PLOG_MODE_BATCH));
	EXPECT_EQ(0, partition_mode(self->fd, 0));
}

TEST_F(log, append_refuses_flags_and_reserved)
{
	struct plog_append arg;
	struct batch b;
	int i;

	ASSERT_TRUE(batch_text(&b, "hello"));
	for (i = 0; i < 36; i++) {
		memset(&arg, 0, sizeof(arg));
		arg.data = (uintptr_t)b.data;
		arg.length = (uint32_t)b.size;
		arg.leader_epoch = -1;
		/* those that there are */
		if (i < 5)
			continue;
		if (i < 32)
			arg.flags = 1u << i;
		else if (i == 32)
			arg.pad = 1;
		else if (i == 33)
			arg.reserved[0] = 1;
		else if (i == 34)
			arg.first_unstable = 1;
		else
			arg.incarnation = 1;
		EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_APPEND, &arg))) {
			TH_LOG("case %d", i);
		}
	}
	EXPECT_EQ(0, partition_end(self->batch));
	EXPECT_EQ(0, partition_append(self->batch, b.data, b.size, NULL));
	EXPECT_EQ(1, partition_end(self->batch));
	batch_free(&b);
}

TEST_F(log, locate_refuses_flags_and_reserved)
{
	struct plog_locate loc;
	int i;

	for (i = 3; i < 34; i++) {
		memset(&loc, 0, sizeof(loc));
		loc.max_bytes = 4096;
		if (i < 32)
			loc.flags = 1u << i;
		else
			loc.reserved[i - 32] = 1;
		EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_LOCATE, &loc)));
	}
	EXPECT_EQ(-EINVAL, partition_locate(self->batch, 0, 4096,
					    PLOG_LOCATE_COMMITTED | PLOG_LOCATE_LOG_END,
					    &loc));
	EXPECT_EQ(-EINVAL, partition_locate(self->fd, 0, 4096, 0, &loc)) {
		TH_LOG("LOCATE belongs to batch mode");
	}
}

TEST_F(log, lookup_refuses_flags_and_reserved)
{
	struct plog_lookup look;
	int i;

	for (i = 2; i < 34; i++) {
		memset(&look, 0, sizeof(look));
		if (i < 32)
			look.flags = 1u << i;
		else
			look.reserved[i - 32] = 1;
		EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_LOOKUP, &look)));
	}
}

TEST_F(log, control_refuses_commands_and_reserved)
{
	struct plog_control arg;
	int i;

	for (i = 0; i < 4; i++) {
		memset(&arg, 0, sizeof(arg));
		arg.command = i < 2 ? (uint32_t)i * 99 : PLOG_CONTROL_TRUNCATE;
		if (i == 2)
			arg.reserved[0] = 1;
		if (i == 3)
			arg.pad = 1;
		EXPECT_EQ(EINVAL, FAILS(ioctl(self->batch, PLOG_IOC_CONTROL, &arg)));
	}
}

TEST_F(log, register_refuses_flags_and_reserved)
{
	int fd = control_open(0);
	struct plog_register arg;
	int i;

	for (i = 0; i < 34; i++) {
		memset(&arg, 0, sizeof(arg));
		if (i < 32)
			arg.flags = 1u << i;
		else
			arg.reserved[i - 32] = 1;
		EXPECT_EQ(EINVAL, FAILS(ioctl(fd, PLOG_IOC_REGISTER, &arg)));
	}
	close(fd);
}

TEST_F(log, state_describes_the_partition)
{
	struct plog_state state;

	ASSERT_EQ(0, partition_state(self->fd, &state));
	EXPECT_EQ(PLOG_PARTITION_ONLINE, state.state);
	EXPECT_EQ(0, state.flags & ~PLOG_STATE_LEADER);
	EXPECT_EQ(0, state.log_start);
	EXPECT_EQ(0, state.log_end);
	EXPECT_EQ(0, state.high_watermark);
	EXPECT_EQ(0, state.last_stable);
	EXPECT_EQ(-1, state.max_timestamp);
	EXPECT_EQ(PLOG_MESSAGE_BYTES_DEFAULT, state.max_message_bytes);
	EXPECT_STREQ("t", state.topic);
	EXPECT_EQ(0, state.partition);

	ASSERT_EQ(3, write(self->fd, "abc", 3));
	ASSERT_EQ(0, partition_state(self->fd, &state));
	EXPECT_EQ(1, state.log_end);
	EXPECT_EQ(1, state.high_watermark);
	EXPECT_EQ(1, state.last_stable);
	EXPECT_EQ(1, state.segments);
	EXPECT_LT(BATCH_HEADER, state.bytes);
	EXPECT_LT(1600000000000LL, state.max_timestamp);
}

TEST_F(log, descriptor_acts_on_its_openers_namespace)
{
	struct plog_bind bind = { .topic = "t" };
	int ours = control_open(0), theirs;

	ASSERT_EQ(0, namespace_new());
	theirs = control_open(0);
	EXPECT_EQ(ENODEV, FAILS(ioctl(theirs, PLOG_IOC_BIND, &bind)));
	EXPECT_EQ(0, ioctl(ours, PLOG_IOC_BIND, &bind));
	EXPECT_EQ(2, write(ours, "hi", 2));
	EXPECT_EQ(1, partition_end(self->fd));
	close(ours);
	close(theirs);
}

TEST_F(log, mmap_and_pread_do_not_apply)
{
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, self->fd, 0));
	EXPECT_EQ(ENODEV, errno);
}

SELFTEST_MAIN
