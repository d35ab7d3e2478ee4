// SPDX-License-Identifier: GPL-2.0
/*
 * Calls as an enemy makes them: ioctls, reads, writes, splices and netlink
 * messages that are valid but for a mutation or two, over a pool of descriptors
 * that are bound, duplicated and passed on, while partitions and the instance
 * come and go. Nothing may happen but errors: the kernel says the rest (KASAN,
 * lockdep, kmemleak), and the log is intact at the end.
 *
 * PLOG_HOSTILE_CALLS is how many calls there are, PLOG_HOSTILE_SEED what they
 * are made of: the same seed makes the same calls.
 */
#include <stddef.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#include "compaction.h"
#include "enemy.h"
#include "fixture.h"

#define CALLS		40000
#define BASES		100000
/* Out of so many one must work, or nothing is tried in earnest. */
#define ENOUGH		1000
#define DESCRIPTORS	24
#define WORKERS		2
/* A wait that only a fatal signal ends is killed after that; what cannot be killed is a bug. */
#define STUCK_MS	1500
#define UNKILLABLE_MS	120000
/* Topic t is made anew when it has gone: calls that find nothing to do harm to prove nothing. */
#define AWAY_MS		60000
#define TAKEN_MS	500
#define SWEEP_MS	2000
#define SAY_MS		60000		/* how far it is, where it takes long */

/* What a worker tells its parent, in shared memory. */
struct told {
	volatile uint64_t calls;
	volatile uint64_t worked[64];
	volatile uint64_t tried[64];
	volatile uint64_t answered[PLOG_CMD_MAX + 1];	/* requests that worked */
	volatile uint64_t asked[PLOG_CMD_MAX + 1];
	volatile int what;
};

static struct told *told;

static struct instance inst;
static struct nl sock;
static int fds[DESCRIPTORS];
static uint8_t *gap;			/* 4096 bytes before a hole */
static uint8_t payload[3000];		/* of the relay */

static int any_fd(void)
{
	return fds[rnd(DESCRIPTORS)];
}

/* ---- ioctls ---- */

enum kind { FLAGS, LENGTH, DATA, INCARNATION, LEADER, OFFSET, TOPIC, COMMAND, SMALL, ZERO, TIME,
	    COUNT, GENERATION, UNSTABLE, PORT };

struct field {
	uint16_t at, size;
	enum kind kind;
};

#define F(type, name, kind) { offsetof(struct type, name), sizeof(((struct type *)0)->name), kind }

static const struct call {
	const char *name;
	unsigned long cmd;
	struct field f[8];
} calls[] = {
	{ "INFO", PLOG_IOC_INFO, { F(plog_info, reserved, ZERO) } },
	{ "BIND", PLOG_IOC_BIND, { F(plog_bind, flags, FLAGS), F(plog_bind, partition, SMALL),
				   F(plog_bind, topic, TOPIC) } },
	{ "REGISTER", PLOG_IOC_REGISTER, { F(plog_register, flags, ZERO),
					   F(plog_register, netlink_port, PORT) } },
	{ "SET_MODE", PLOG_IOC_SET_MODE, { F(plog_mode, flags, FLAGS), F(plog_mode, reserved, ZERO) } },
	{ "STATE", PLOG_IOC_STATE, { F(plog_state, flags, ZERO) } },
	{ "APPEND", PLOG_IOC_APPEND, { F(plog_append, flags, FLAGS), F(plog_append, length, LENGTH),
				       F(plog_append, data, DATA),
				       F(plog_append, incarnation, INCARNATION),
				       F(plog_append, leader_epoch, LEADER),
				       F(plog_append, pad, ZERO),
				       F(plog_append, first_unstable, UNSTABLE),
				       F(plog_append, reserved, ZERO) } },
	{ "LOCATE", PLOG_IOC_LOCATE, { F(plog_locate, offset, OFFSET),
				       F(plog_locate, max_bytes, LENGTH),
				       F(plog_locate, flags, FLAGS),
				       F(plog_locate, reserved, ZERO) } },
	{ "LOOKUP", PLOG_IOC_LOOKUP, { F(plog_lookup, timestamp, TIME), F(plog_lookup, flags, FLAGS),
				       F(plog_lookup, offset, OFFSET),
				       F(plog_lookup, reserved, ZERO) } },
	{ "CONTROL", PLOG_IOC_CONTROL, { F(plog_control, command, COMMAND),
					 F(plog_control, leader_epoch, LEADER),
					 F(plog_control, incarnation, INCARNATION),
					 F(plog_control, offset, OFFSET),
					 F(plog_control, epoch, ZERO) } },
	{ "EPOCH", PLOG_IOC_EPOCH, { F(plog_epoch, flags, FLAGS), F(plog_epoch, epoch, LEADER),
				     F(plog_epoch, offset, OFFSET), F(plog_epoch, reserved, ZERO) } },
	{ "LEAD", PLOG_IOC_LEAD, { F(plog_lead, flags, FLAGS), F(plog_lead, leader_epoch, LEADER),
				   F(plog_lead, incarnation, INCARNATION),
				   F(plog_lead, reserved, ZERO) } },
	{ "LEASE", PLOG_IOC_LEASE, { F(plog_lease, deadline, TIME), F(plog_lease, reserved, ZERO) } },
	{ "HEADERS", PLOG_IOC_HEADERS, { F(plog_headers, offset, OFFSET),
					 F(plog_headers, flags, FLAGS), F(plog_headers, count, COUNT),
					 F(plog_headers, entries, DATA),
					 F(plog_headers, reserved, ZERO) } },
	{ "PRODUCER", PLOG_IOC_PRODUCER, { F(plog_producer, reserved, ZERO) } },
	{ "SWAP", PLOG_IOC_SWAP, { F(plog_swap, generation, GENERATION),
				   F(plog_swap, first_base, OFFSET), F(plog_swap, last_base, OFFSET),
				   F(plog_swap, incarnation, INCARNATION),
				   F(plog_swap, leader_epoch, LEADER), F(plog_swap, flags, FLAGS),
				   F(plog_swap, reserved, ZERO) } },
};

#define NCALLS (sizeof(calls) / sizeof(calls[0]))

static struct batch valid;		/* rebuilt now and then */

/* A batch, damaged or not, in memory that ends at a hole or not. */
static void *batch_bytes(uint64_t *length)
{
	static uint8_t copy[70000];
	size_t n = valid.size < sizeof(copy) ? valid.size : sizeof(copy);

	memcpy(copy, valid.data, n);
	*length = n;
	switch (rnd(10)) {
	case 0:		/* a field of the header, with a right CRC */
		batch_set(copy, n, rnd(61), 1 << rnd(4), odd_value());
		break;
	case 1:		/* a byte anywhere, with a right CRC */
		copy[rnd((uint32_t)n)] ^= (uint8_t)(1 << rnd(8));
		batch_seal(copy, n);
		break;
	case 2:
		*length = rnd(2) ? rnd((uint32_t)n + 100) : odd_value();
		break;
	case 3:
		copy[rnd((uint32_t)n)] ^= 1;
		break;
	}
	if (n <= 4096 && !rnd(4)) {
		memcpy(gap + 4096 - n, copy, n);
		return gap + 4096 - n;
	}
	return copy;
}

static uint64_t field_value(enum kind kind, uint64_t *length, void **data)
{
	switch (kind) {
	case FLAGS:
		return rnd(2) ? 0 : rnd(2) ? 1ULL << rnd(6) : rnd(64);
	case LENGTH:
		return *length;
	case DATA:
		return (uintptr_t)*data;
	case INCARNATION:
		return enemy_incarnation();
	case LEADER:
		return rnd(4) ? (uint64_t)enemy_known->state.leader_epoch :
				(uint64_t)(int64_t)enemy_known->state.leader_epoch + rnd(4) - 1;
	case OFFSET:
		return enemy_offset();
	case GENERATION:
		return rnd(4) ? enemy_known->generation : odd_value();
	case UNSTABLE:
		return rnd(4) ? 0 : (uint64_t)-1 - rnd(3);
	case COUNT:
		return rnd(8) ? 1 + rnd(250) : odd_value();
	case COMMAND:
		return rnd(10);
	case PORT:
		return rnd(4) ? sock.port : rnd(200);
	case SMALL:
		return rnd(4) ? 0 : rnd(200);
	case TIME:
		return rnd(2) ? rnd(100000) : odd_value();
	default:
		return 0;
	}
}

static long one_ioctl(void)
{
	const struct call *c = &calls[rnd(NCALLS)];
	size_t size = _IOC_SIZE(c->cmd), i;
	static uint8_t entries[72 * 256];
	uint64_t length;
	uint8_t raw[512], *arg = raw;
	unsigned long cmd = c->cmd;
	void *data;
	long ret;

	memset(raw, 0, sizeof(raw));
	length = rnd(20000);
	data = entries;
	/* a batch and its CRC take longer than all the rest */
	if (c->cmd == PLOG_IOC_APPEND)
		data = batch_bytes(&length);
	for (i = 0; i < 8 && c->f[i].size; i++) {
		uint64_t v = field_value(c->f[i].kind, &length, &data);

		if (c->f[i].kind == TOPIC)
			strncpy((char *)raw + c->f[i].at, topic_name(), PLOG_TOPIC_SIZE);
		else
			memcpy(raw + c->f[i].at, &v, c->f[i].size < 8 ? c->f[i].size : 8);
	}
	/* an append as anybody makes it names no epoch */
	if (c->cmd == PLOG_IOC_APPEND && !(((struct plog_append *)raw)->flags & 1)) {
		((struct plog_append *)raw)->incarnation = 0;
		((struct plog_append *)raw)->leader_epoch = -1;
	}
	for (i = rnd(3) ? 0 : 1 + rnd(3); i; i--) {
		uint64_t v = odd_value();
		uint32_t n = 1u << rnd(4), at = rnd((uint32_t)size);

		memcpy(raw + at, &v, at + n <= sizeof(raw) ? n : 1);
	}
	switch (rnd(24)) {
	case 0:		/* ends before a hole, or in it */
		i = rnd(2) ? size : rnd((uint32_t)size);
		arg = gap + 4096 - i;
		memcpy(arg, raw, i);
		break;
	case 1:
		arg = rnd(2) ? NULL : WILD;
		break;
	case 2:
		cmd = _IOC(rnd(4), PLOG_IOC_MAGIC, _IOC_NR(cmd), rnd(2) ? size : rnd(512));
		break;
	case 3:
		cmd = (unsigned long)odd_value();
		break;
	}
	ret = ioctl(any_fd(), cmd, arg);
	i = (size_t)(c - calls);
	told->tried[i]++;
	told->worked[i] += ret >= 0;
	if (ret < 0 || arg != raw)
		return ret;
	if (cmd == PLOG_IOC_REGISTER)
		enemy_known->incarnation = ((struct plog_register *)raw)->incarnation;
	else if (cmd == PLOG_IOC_STATE)
		enemy_known->state = *(struct plog_state *)raw;
	else if (cmd == PLOG_IOC_SWAP)
		enemy_known->generation = ((struct plog_swap *)raw)->generation;
	return ret;
}

/* ---- reads and writes ---- */

static int pipes[2];

static long one_file_call(void)
{
	static uint8_t buf[80000];
	struct iovec iov[5];
	uint64_t length;
	int fd = any_fd(), i;
	uint32_t what = rnd(16);
	void *data = buf;
	off_t pos = (off_t)odd_value();
	struct pollfd pfd = { .fd = fd, .events = (short)rnd(65536) };

	length = rnd(sizeof(buf));
	if (what < 2 || what == 8)
		data = batch_bytes(&length);
	if (length > sizeof(buf))
		length = rnd(sizeof(buf));
	for (i = 0; i < 5; i++) {
		iov[i].iov_base = rnd(12) ? buf + rnd(100) : WILD;
		iov[i].iov_len = rnd(3) ? rnd(100) : rnd(20000);
	}
	switch (what) {
	case 0:
	case 1:
		return write(fd, rnd(20) ? data : WILD, rnd(3) ? rnd(300) : length);
	case 2:
		return writev(fd, iov, (int)rnd(6));
	case 3:
	case 4:
		return read(fd, rnd(20) ? buf : WILD, rnd(sizeof(buf)));
	case 5:
		return readv(fd, iov, (int)rnd(6));
	case 6:
		return splice(fd, NULL, pipes[1], NULL, rnd(100000), SPLICE_F_NONBLOCK | rnd(16));
	case 7:
		return splice(pipes[0], NULL, fd, NULL, rnd(100000), SPLICE_F_NONBLOCK | rnd(16));
	case 8:
		return write(pipes[1], data, length > 4096 ? 4096 : length);
	case 9:
		return sendfile(pipes[1], fd, rnd(2) ? &pos : NULL, rnd(100000));
	case 10:
		return lseek(fd, rnd(2) ? (off_t)rnd(2000) : pos, (int)rnd(6));
	case 11:
		return rnd(2) ? fsync(fd) : fdatasync(fd);
	case 12:
		return poll(&pfd, 1, 0);
	case 13:
		return pread(fd, buf, rnd(1000), pos);
	case 14:
		return pwritev2(fd, iov, (int)rnd(5), rnd(2) ? -1 : pos, (int)rnd(64));
	default:
		return mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0;
	}
}

/* ---- descriptors ---- */

static int passed(int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = "", byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int pair[2], got = -1;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return -1;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	if (sendmsg(pair[0], &msg, MSG_DONTWAIT) == 1 && recvmsg(pair[1], &msg, MSG_DONTWAIT) == 1 &&
	    (c = CMSG_FIRSTHDR(&msg)) && c->cmsg_type == SCM_RIGHTS)
		memcpy(&got, CMSG_DATA(c), sizeof(int));
	close(pair[0]);
	close(pair[1]);
	return got;
}

static long one_descriptor(void)
{
	static const uint32_t modes[] = { 0, PLOG_MODE_BATCH, PLOG_MODE_READ_COMMITTED,
					  PLOG_MODE_BATCH | PLOG_MODE_READ_COMMITTED };
	static const int access_modes[] = { O_RDWR, O_RDWR, O_RDONLY, O_WRONLY };
	int fd, *to = &fds[rnd(DESCRIPTORS)];

	switch (rnd(6)) {
	case 0:
		fd = dup(any_fd());
		break;
	case 1:
		fd = passed(any_fd());
		break;
	case 2:
		fd = open("/dev/plog-control", access_modes[rnd(4)] | O_NONBLOCK |
			  (rnd(4) ? 0 : O_DSYNC) | (rnd(8) ? 0 : O_APPEND));
		break;
	default:
		fd = partition_bind_flags(rnd(2) ? "t" : topic_name(), 0, modes[rnd(4)],
					  O_NONBLOCK | (rnd(6) ? 0 : O_DSYNC));
	}
	if (fd < 0)
		return -1;
	if (*to >= 0)
		close(*to);
	*to = fd;
	return 0;
}

/* ---- netlink ---- */

static long one_message(void)
{
	struct enemy_message m = {
		.nl = &sock, .instance = &inst, .fds = fds, .fd_count = DESCRIPTORS,
		.payload = payload,
	};
	long ret = enemy_message(&m);

	if (m.command <= PLOG_CMD_MAX) {
		told->asked[m.command]++;
		told->answered[m.command] += m.worked;
	}
	return ret;
}

/* ---- one worker ---- */

enum { FILE_CALL = 40, MESSAGE, DESCRIPTOR, STRANGER };

static void one_call(void)
{
	uint32_t what = rnd(100);
	bool stranger = !rnd(12);
	long ret;
	int kind;

	if (!rnd(200)) {
		batch_free(&valid);
		if (!batch_fill(&valid, rnd(16) ? 1 + rnd(900) : 1 + rnd(60000), 'h'))
			_exit(97);
	}
	if (stranger && seteuid(65534))
		_exit(96);
	kind = what < 50 ? 0 : what < 75 ? FILE_CALL : what < 95 ? MESSAGE : DESCRIPTOR;
	told->what = kind;
	switch (kind) {
	case 0:
		one_ioctl();
		break;
	case FILE_CALL:
		ret = one_file_call();
		goto count;
	case MESSAGE:
		ret = one_message();
		goto count;
	default:
		ret = one_descriptor();
count:
		told->tried[kind]++;
		told->worked[kind] += ret >= 0;
	}
	if (stranger && seteuid(0))
		_exit(96);
}

static void alarmed(int sig)
{
	(void)sig;
}

static void worker(uint64_t seed, uint64_t count)
{
	struct itimerval every = { { 0, 50000 }, { 0, 50000 } };
	struct sigaction sa = { .sa_handler = alarmed };
	int i;

	enemy_seed(seed);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigaction(SIGALRM, &sa, NULL);
	gap = before_gap(4096);
	if (!gap || nl_open(&sock) || pipe2(pipes, O_NONBLOCK) ||
	    !batch_fill(&valid, 100, 'h'))
		_exit(95);
	for (i = 0; i < DESCRIPTORS; i++)
		fds[i] = -1;
	for (i = 0; i < 4 * DESCRIPTORS; i++)
		one_descriptor();
	/* what blocks all the same is woken */
	setitimer(ITIMER_REAL, &every, NULL);
	for (; count; count--) {
		one_call();
		told->calls++;
	}
	_exit(0);
}

/* ---- the parent ---- */

/* What mend() has found and got when it looked last. */
static struct {
	int64_t online;			/* when topic t was last seen so */
	int64_t longest;		/* between two of these */
	int instance, partition;	/* states; -1: none */
	int set, get, new;		/* what the requests came to */
} seen;

/* Bring back what the calls have taken away: the instance, and topic t. */
static int mend(struct instance *in)
{
	struct nl_instance got;
	struct nl_partition part = { .topic = "t" }, there;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int err;

	err = nl_instance_get(&in->nl, &got);
	if (err)
		return err;
	seen.instance = (int)got.state;
	seen.partition = -1;
	seen.set = seen.get = seen.new = 0;
	if (got.state == PLOG_INSTANCE_STOPPING)
		return 0;
	if (got.state != PLOG_INSTANCE_RUNNING) {
		fcntl(in->lock_fd, F_OFD_SETLK, &lock);
		err = seen.set = nl_instance_set(&in->nl, in->dir, in->dir_fd, in->lock_fd);
		if (err)
			/* a worker may have made one since */
			return err == -EBUSY || err == -EAGAIN || err == -EEXIST ? 0 : err;
	}
	seen.get = nl_partition_get(&in->nl, "t", 0, &there);
	if (!seen.get)
		seen.partition = (int)there.state;
	if (seen.partition == PLOG_PARTITION_ONLINE) {
		int64_t now = now_ms();

		seen.longest = seen.longest > now - seen.online ? seen.longest :
								  now - seen.online;
		seen.online = now;
	}
	if (seen.get == -ENOENT) {
		part.dir_fd = open(instance_path(in, "t", 0, NULL), O_RDONLY | O_DIRECTORY);
		seen.new = nl_partition_new(&in->nl, &part);
		close(part.dir_fd);
		/* some call has made a partition of another name with its directory */
		if (seen.new == -EBUSY && now_ms() - seen.online > TAKEN_MS)
			nl_instance_stop(&in->nl);
	}
	return 0;
}

/*
 * What retention and deletions have left empty, as a daemon would delete it: or each open
 * would take longer than the one before. Not the last one, which may be the log's end.
 */
static void sweep(struct instance *in, const char *topic)
{
	static const char *const kinds[] = { "log", "index", "timeindex" };
	static int64_t bases[BASES];
	char dir[300];
	struct stat st;
	int i, k, n;

	snprintf(dir, sizeof(dir), "%s", instance_path(in, topic, 0, NULL));
	n = segment_bases(dir, bases, BASES);
	for (i = 0; i < n - 1; i++) {
		if (stat(segment_file(dir, bases[i], "log"), &st) || st.st_size)
			continue;
		for (k = 0; k < 3; k++)
			unlink(segment_file(dir, bases[i], kinds[k]));
	}
}

/* Into the kernel's log, which is shown where a test has failed: the stacks of who sleeps. */
static void tell_who_waits(void)
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY);

	if (write(fd, "w", 1) != 1 || write(fd, "l", 1) != 1)
		perror("/proc/sysrq-trigger");
	close(fd);
}

TEST_F_TIMEOUT(log, hostile_calls, 100000)
{
	uint64_t seed = getenv("PLOG_HOSTILE_SEED") ? strtoull(getenv("PLOG_HOSTILE_SEED"), NULL, 0) :
						      (uint64_t)time(NULL);
	uint64_t total = getenv("PLOG_HOSTILE_CALLS") ?
			 strtoull(getenv("PLOG_HOSTILE_CALLS"), NULL, 0) : CALLS;
	uint64_t left, before, sum = 0, kills = 0, round = 0;
	struct told *all[WORKERS];
	int64_t start = now_ms(), swept = start, said = start, moved[WORKERS], stuck[WORKERS];
	pid_t pid[WORKERS];
	static int64_t bases[BASES];
	const char *wrong;
	char line[600];
	int i, k, n, status;

	for (i = 0; i < ENEMY_TOPICS; i++) {
		snprintf(line, sizeof(line), "h%d", i);
		ASSERT_EQ(0, instance_topic(&self->in, line));
	}
	for (i = 0; i < 20; i++)
		ASSERT_EQ(6, write(self->fd, "record", 6));
	TH_LOG("PLOG_HOSTILE_SEED=%llu PLOG_HOSTILE_CALLS=%llu", (unsigned long long)seed,
	       (unsigned long long)total);
	inst = self->in;
	seen.online = now_ms();
	for (i = 0; i < WORKERS; i++) {
		all[i] = mmap(NULL, sizeof(struct told), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, all[i]);
		pid[i] = 0;
	}
	for (;;) {
		bool running = false;

		for (i = 0; i < WORKERS; i++) {
			before = all[i]->calls;
			left = total / WORKERS > before ? total / WORKERS - before : 0;
			if (!pid[i] && left) {
				told = all[i];
				moved[i] = stuck[i] = now_ms();
				pid[i] = child();
				if (!pid[i])
					worker(seed + (uint64_t)i + 1000 * round, left);
				round++;
			}
			running |= pid[i] != 0;
		}
		if (!running)
			break;
		usleep(20000);
		ASSERT_EQ(0, mend(&self->in));
		if (now_ms() - swept > SWEEP_MS) {
			sweep(&self->in, "t");
			for (i = 0; i < ENEMY_TOPICS; i++) {
				snprintf(line, sizeof(line), "h%d", i);
				sweep(&self->in, line);
			}
			swept = now_ms();
		}
		if (now_ms() - said > SAY_MS) {
			for (i = 0, sum = 0; i < WORKERS; i++)
				sum += all[i]->calls;
			said = now_ms();
			TH_LOG("%llu calls of %llu in %lld s", (unsigned long long)sum,
			       (unsigned long long)total, (long long)(said - start) / 1000);
		}
		ASSERT_GT(AWAY_MS * slow(), now_ms() - seen.online) {
			TH_LOG("topic t stays away: instance %d, set %d, partition %d, get %d, new %d",
			       seen.instance, seen.set, seen.partition, seen.get, seen.new);
			tell_who_waits();
		}
		for (i = 0; i < WORKERS; i++) {
			before = all[i]->tried[63];
			if (all[i]->calls != before) {
				all[i]->tried[63] = all[i]->calls;
				moved[i] = stuck[i] = now_ms();
			} else if (pid[i] && now_ms() - moved[i] > STUCK_MS) {
				/* a wait that only a fatal signal ends: the call counts */
				kill(pid[i], SIGKILL);
				if (moved[i] == stuck[i]) {
					kills++;
					all[i]->calls++;
					all[i]->tried[63] = all[i]->calls;
				}
				moved[i] = now_ms();
			}
			if (pid[i] && waitpid(pid[i], &status, WNOHANG) == pid[i]) {
				EXPECT_TRUE(status == 0 || WIFSIGNALED(status)) {
					TH_LOG("worker %d ended with status %x", i, status);
				}
				pid[i] = 0;
			}
			ASSERT_GT(UNKILLABLE_MS, now_ms() - stuck[i]) {
				TH_LOG("a call of kind %d cannot be killed", all[i]->what);
			}
		}
	}
	for (i = 0, sum = 0; i < WORKERS; i++)
		sum += all[i]->calls;
	TH_LOG("%llu calls in %lld ms, %llu waits killed", (unsigned long long)sum,
	       (long long)(now_ms() - start), (unsigned long long)kills);
	EXPECT_LE(total / WORKERS * WORKERS, sum);
	for (k = 0, n = 0; k < 63; k++) {
		uint64_t tried = 0, worked = 0;

		for (i = 0; i < WORKERS; i++) {
			tried += all[i]->tried[k];
			worked += all[i]->worked[k];
		}
		if (!tried)
			continue;
		EXPECT_TRUE(worked || tried < ENOUGH) {
			TH_LOG("of %llu calls of kind %d none worked", (unsigned long long)tried,
			       k);
		}
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %s %llu/%llu",
			      k < (int)NCALLS ? calls[k].name : k == FILE_CALL ? "file" :
			      k == MESSAGE ? "message" : "descriptor",
			      (unsigned long long)worked, (unsigned long long)tried);
		if (n > 300 || k == DESCRIPTOR) {
			TH_LOG("worked/tried:%s", line);
			n = 0;
		}
	}
	for (k = 1, n = 0; k <= PLOG_CMD_MAX; k++) {
		uint64_t asked = 0, worked = 0;

		for (i = 0; i < WORKERS; i++) {
			asked += all[i]->asked[k];
			worked += all[i]->answered[k];
		}
		/* events are no requests; a stop is seldom asked for */
		EXPECT_TRUE(worked || asked < ENOUGH || k == PLOG_CMD_INSTANCE_NTF ||
			    k == PLOG_CMD_PARTITION_NTF || k == PLOG_CMD_RETIRED_NTF) {
			TH_LOG("of %llu requests of command %d none worked",
			       (unsigned long long)asked, k);
		}
		if (asked)
			n += snprintf(line + n, sizeof(line) - (size_t)n, " %d: %llu/%llu", k,
				      (unsigned long long)worked, (unsigned long long)asked);
	}
	TH_LOG("netlink commands:%s", line);
	TH_LOG("%d log files in the directory of topic t, the longest without it %lld ms",
	       segment_bases(instance_path(&self->in, "t", 0, NULL), bases, BASES),
	       (long long)seen.longest);
	/* the logs are what they should be: they can be opened, read and written */
	for (i = 0; i < 500 && mend(&self->in) == 0; i++) {
		struct nl_partition there;

		if (!nl_partition_get(&self->in.nl, "t", 0, &there) &&
		    there.state == PLOG_PARTITION_ONLINE)
			break;
		usleep(20000);
	}
	close(self->batch);
	self->batch = partition_bind("t", 0, PLOG_MODE_BATCH);
	ASSERT_LE(0, self->batch);
	/* offsets may have gaps: an enemy with the daemon's rights may append replicas */
	wrong = partition_check(self->batch, NULL);
	EXPECT_TRUE(!wrong || strstr(wrong, "offset")) {
		TH_LOG("the log: %s", wrong);
	}
}

SELFTEST_MAIN
