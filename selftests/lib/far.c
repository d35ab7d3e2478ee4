// SPDX-License-Identifier: MIT
/*
 * far COMMAND [ARG]...: run COMMAND on the machine outside the guest
 *
 * In the project's folder there, with this program's input, output, errors and exit status.
 * What a test asks of a broker is the same wherever the client runs; an emulated processor
 * takes seconds to load a client. The other end is far.py, which QEMU starts for each
 * connection to the address below (tools/vm/vm --answer). Status 125: nobody answers.
 *
 * Both send frames: a letter, the length as 32 bits, big end first, and so many bytes.
 *   a  the command and its arguments, each with a 0 behind it (first, and once)
 *   i  input; of length 0: its end
 *   o  output      e  errors      x  the exit status, a byte (last)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDRESS	"10.0.2.100"
#define PORT	9
#define MOST	65536
#define BROKEN	125

static void die(const char *what)
{
	fprintf(stderr, "far: %s: %s\n", what, strerror(errno));
	exit(BROKEN);
}

static void put(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("write");
		data += n;
		len -= n;
	}
}

static void get(int fd, char *data, size_t len)
{
	while (len) {
		ssize_t n = read(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : ECONNRESET;
			die("the other end");
		}
		data += n;
		len -= n;
	}
}

static void frame(int fd, char what, const char *data, uint32_t len)
{
	uint32_t size = htonl(len);
	char head[5] = {what};

	memcpy(head + 1, &size, sizeof(size));
	put(fd, head, sizeof(head));
	put(fd, data, len);
}

static int dial(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	inet_pton(AF_INET, ADDRESS, &to.sin_addr);
	if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof(to)))
		die("connect to " ADDRESS);
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return s;
}

static char buf[MOST];

/* One frame of the other end: to our output, or the end. */
static void take(int s)
{
	uint32_t len;
	char head[5];

	get(s, head, sizeof(head));
	memcpy(&len, head + 1, sizeof(len));
	len = ntohl(len);
	if (len > MOST) {
		errno = EMSGSIZE;
		die("the other end");
	}
	get(s, buf, len);
	if (head[0] == 'x')
		exit(len == 1 ? (unsigned char)buf[0] : BROKEN);
	put(head[0] == 'o' ? 1 : 2, buf, len);
}

/* By a thread of its own: a command that waits for its output to be taken takes no input. */
static void *input(void *arg)
{
	static char data[MOST];
	ssize_t n;

	do {
		do
			n = read(0, data, sizeof(data));
		while (n < 0 && errno == EINTR);
		frame(*(int *)arg, 'i', data, n > 0 ? n : 0);
	} while (n > 0);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	size_t len = 0;
	int s;

	for (int i = 1; i < argc; i++) {
		size_t n = strlen(argv[i]) + 1;

		if (n > MOST - len) {
			errno = E2BIG;
			die("arguments");
		}
		memcpy(buf + len, argv[i], n);
		len += n;
	}
	if (!len) {
		fprintf(stderr, "usage: far COMMAND [ARG]...\n");
		return 2;
	}
	s = dial();
	frame(s, 'a', buf, len);

	if (pthread_create(&thread, NULL, input, &s))
		die("thread");
	for (;;)
		take(s);
}
