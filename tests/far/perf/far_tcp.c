/* SPDX-License-Identifier: BSD-3-Clause */
/* The patterns over raw TCP. */
#include "farperf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int fd;
static char bytes[FAR_LONG];

static struct sockaddr_in at(const char *address, uint32_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = (uint16_t)port};
	if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
		far_die("address", address);
	return a;
}

static int listen_at(struct far_end *e, p3_a32 *port)
{
	struct sockaddr_in a = at(e->address[0], 0);
	socklen_t len = sizeof a;
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s < 0 || bind(s, (struct sockaddr *)&a, len) || listen(s, 1) ||
		getsockname(s, (struct sockaddr *)&a, &len))
		far_die("listen", strerror(errno));
	p3_release(port, a.sin_port);
	int got = accept4(s, NULL, NULL, SOCK_CLOEXEC);
	close(s);
	return got;
}

static int connect_to(struct far_end *e, p3_a32 *at_port)
{
	uint32_t port;
	while (!(port = p3_acquire(at_port)))
		usleep(1000);
	struct sockaddr_in a = at(e->address[0], port);
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s < 0 || connect(s, (struct sockaddr *)&a, sizeof a))
		far_die("connect", strerror(errno));
	return s;
}

int far_tcp_connect(struct far_end *e, p3_a32 *port)
{
	int on = 1, s = e->rank ? connect_to(e, port) : listen_at(e, port);
	if (s < 0 || setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on))
		far_die("TCP_NODELAY", strerror(errno));
	return s;
}

void far_tcp_open(struct far_end *e)
{
	fd = far_tcp_connect(e, &e->shared->tcp_port);
}

static void put_all(size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = send(fd, bytes + done, len - done, 0);
		if (n < 0)
			far_die("send", strerror(errno));
		done += (size_t)n;
	}
}

/* Receive len bytes; spin: never sleep. */
static void take_all(size_t len, bool spin)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = recv(fd, bytes + done, len - done, spin ? MSG_DONTWAIT : 0);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			far_die("recv", n ? strerror(errno) : "end of file");
		done += n > 0 ? (size_t)n : 0;
	}
}

static void ping(const struct far_end *e, uint64_t count, bool spin)
{
	for (; count; count--) {
		if (e->rank == 0)
			put_all(8);
		take_all(8, spin);
		if (e->rank)
			put_all(8);
	}
}

/* Windows of short messages, each by a call; 8 bytes answer a window. */
static void rate(const struct far_end *e, uint64_t count)
{
	for (; count; count--) {
		if (e->rank == 0) {
			for (unsigned i = 0; i < FAR_WINDOW; i++)
				put_all(8);
			take_all(8, true);
		} else {
			take_all(8 * FAR_WINDOW, true);
			put_all(8);
		}
	}
}

/* A stream from one rank to the other, and 8 bytes back at its end. */
static void stream(
	const struct far_end *e, unsigned from, size_t bytes_each, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (e->rank == from)
			put_all(bytes_each);
		else
			take_all(bytes_each, false);
	}
	if (e->rank == from)
		take_all(8, false);
	else
		put_all(8);
}

void far_tcp_run(struct far_end *e, enum far_row row, uint64_t count)
{
	if (row == FAR_PING || row == FAR_SLEEPY || row == FAR_BYPASS)
		ping(e, count, row == FAR_PING);
	else if (row == FAR_RATE)
		rate(e, count);
	else
		stream(e, !far_is_put(row), far_bytes(row), count);
}
