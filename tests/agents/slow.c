/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slow - to be preloaded: calls between hosts that are slow, or fail for a while
 *
 *	SLOW=hello RANK		the caller sleeps for SLOW_MS after its first HELLO
 *	SLOW=accept RANK	the first call is accepted SLOW_MS late
 *	SLOW=full RANK		for SLOW_MS there are no descriptors for calls; the end of
 *				the process tells how often it tried
 *	SLOW=unwatched RANK	for SLOW_MS epoll has no room for calls
 *	SLOW=card RANK		there is no descriptor for the card
 */
#include "../support/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define HELLO_LEN 48
#define MAGIC     0x33504401u
#define HELLO     1u

static unsigned tries;

/* Return true if this process is the one that is slow in this way. */
static int is(const char *what)
{
	const char *slow = getenv("SLOW"), *rank = getenv("PTL_MY_RID");
	char own[40];
	if (!slow || !rank)
		return 0;
	snprintf(own, sizeof own, "%s %s", what, rank);
	return strcmp(slow, own) == 0;
}

static uint64_t slow_ms(void)
{
	const char *ms = getenv("SLOW_MS");
	return ms ? strtoull(ms, NULL, 10) : 0;
}

static void sleep_once(void)
{
	static int slept;
	uint64_t end = now_ms() + slow_ms();
	if (slept++)
		return;
	while (now_ms() < end)
		usleep(20000);
}

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	static ssize_t (*real)(int, const void *, size_t, int);
	uint32_t word[2] = {0, 0};
	if (!real)
		*(void **)&real = next("send");
	ssize_t n = real(fd, bytes, len, flags);
	if (len == HELLO_LEN)
		memcpy(word, bytes, sizeof word);
	if (word[0] == MAGIC && word[1] == HELLO && is("hello"))
		sleep_once();
	return n;
}

/* Return an option of the socket, or -1: fd is none. */
static int socket_has(int fd, int option)
{
	int value;
	socklen_t len = sizeof value;
	return getsockopt(fd, SOL_SOCKET, option, &value, &len) ? -1 : value;
}

static int is_of_hosts(int fd)
{
	int domain = socket_has(fd, SO_DOMAIN);
	return domain >= 0 && domain != AF_UNIX;
}

/* Return true for SLOW_MS after the first call. */
static int fails_yet(void)
{
	static uint64_t first;
	first = first ? first : now_ms();
	return now_ms() - first < slow_ms();
}

int accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	static int (*real)(int, struct sockaddr *, socklen_t *, int);
	if (!real)
		*(void **)&real = next("accept4");
	if (is_of_hosts(fd) && is("accept"))
		sleep_once();
	if (is_of_hosts(fd) && is("full")) {
		tries++;
		if (fails_yet()) {
			errno = EMFILE;
			return -1;
		}
	}
	return real(fd, from, len, flags);
}

int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	static int (*real)(int, int, int, struct epoll_event *);
	if (!real)
		*(void **)&real = next("epoll_ctl");
	if (op == EPOLL_CTL_ADD && is_of_hosts(fd) && !socket_has(fd, SO_ACCEPTCONN) &&
		is("unwatched") && fails_yet()) {
		errno = ENOSPC;
		return -1;
	}
	return real(set, op, fd, event);
}

int memfd_create(const char *name, unsigned flags)
{
	static int (*real)(const char *, unsigned);
	if (!real)
		*(void **)&real = next("memfd_create");
	if (strcmp(name, "p3-card") == 0 && is("card")) {
		errno = EMFILE;
		return -1;
	}
	return real(name, flags);
}

__attribute__((destructor)) static void tell(void)
{
	if (is("full"))
		printf("%u tries to accept\n", tries);
}
