/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yod_shim - LD_PRELOAD: a system on which calls of yod fail, for yod_errors.sh
 *
 *	YOD_SHIM_FAIL=call:N:ERRNO  the Nth call of that name in a process fails so;
 *	children continue the count
 *				(tcgetpgrp does not fail: before it, another process takes
 *				what was typed)
 *	YOD_SHIM_LEAST=LEN	calls for less memory than that are not counted
 *	YOD_SHIM_FILES=DIR	files that are read by fopen are looked for in DIR first
 *	YOD_SHIM_SPARES=1	kill() kills no process, and time runs fifty times as fast
 *
 * Nodes run without it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define FASTER 50

void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *block, size_t len);

static char call[40];
static int calls_left, failure;
static size_t least;
static bool spares;
static const char *files;

__attribute__((constructor)) static void begin(void)
{
	const char *fail = getenv("YOD_SHIM_FAIL");
	if (fail)
		sscanf(fail, "%39[^:]:%d:%d", call, &calls_left, &failure);
	const char *len = getenv("YOD_SHIM_LEAST");
	least = len ? strtoul(len, NULL, 10) : 0;
	files = getenv("YOD_SHIM_FILES");
	spares = getenv("YOD_SHIM_SPARES") != NULL;
	unsetenv("LD_PRELOAD");
}

static bool fails(const char *name)
{
	if (strcmp(name, call) != 0 || --calls_left != 0)
		return false;
	errno = failure;
	return true;
}

#define NEXT(type, name) ((type)(uintptr_t)dlsym(RTLD_NEXT, name))

void *calloc(size_t n, size_t each)
{
	return n * each >= least && fails("calloc") ? NULL : __libc_calloc(n, each);
}

void *realloc(void *block, size_t len)
{
	return len >= least && fails("realloc") ? NULL : __libc_realloc(block, len);
}

pid_t fork(void)
{
	return fails("fork") ? -1 : NEXT(pid_t(*)(void), "fork")();
}

int open(const char *name, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	int mode = va_arg(args, int);
	va_end(args);
	return fails("open")
		       ? -1
		       : NEXT(int (*)(const char *, int, int), "open")(name, flags, mode);
}

int epoll_create1(int flags)
{
	return fails("epoll_create1") ? -1 : NEXT(int (*)(int), "epoll_create1")(flags);
}

int memfd_create(const char *name, unsigned flags)
{
	return fails("memfd_create") ? -1
				     : NEXT(int (*)(const char *, unsigned),
					       "memfd_create")(name, flags);
}

int bind(int sock, const struct sockaddr *at, socklen_t len)
{
	return fails("bind") ? -1
			     : NEXT(int (*)(int, const struct sockaddr *, socklen_t),
				       "bind")(sock, at, len);
}

int sched_getaffinity(pid_t pid, size_t len, cpu_set_t *set)
{
	return fails("sched_getaffinity") ? -1
					  : NEXT(int (*)(pid_t, size_t, cpu_set_t *),
						    "sched_getaffinity")(pid, len, set);
}

FILE *fopen(const char *name, const char *mode)
{
	FILE *(*next)(const char *, const char *) =
		NEXT(FILE * (*)(const char *, const char *), "fopen");
	char path[1000];
	snprintf(path, sizeof path, "%s%s", files ? files : "", name);
	return next(files && access(path, R_OK) == 0 ? path : name, mode);
}

pid_t tcgetpgrp(int fd)
{
	if (fails("tcgetpgrp"))
		(void)tcflush(fd, TCIFLUSH);
	return NEXT(pid_t(*)(int), "tcgetpgrp")(fd);
}

/* ---- no process dies, and the time until yod gives up is short ---- */

int kill(pid_t pid, int sig)
{
	return spares ? 0 : NEXT(int (*)(pid_t, int), "kill")(pid, sig);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = NEXT(int (*)(clockid_t, struct timespec *), "clock_gettime")(clock, t);
	if (spares && clock == CLOCK_MONOTONIC) {
		long long ns = (t->tv_sec * 1000000000LL + t->tv_nsec) * FASTER;
		*t = (struct timespec){ns / 1000000000, ns % 1000000000};
	}
	return rc;
}

static int shorter(int ms)
{
	return spares && ms > 0 ? ms / FASTER : ms;
}

int epoll_wait(int ep, struct epoll_event *events, int n, int ms)
{
	return NEXT(int (*)(int, struct epoll_event *, int, int), "epoll_wait")(
		ep, events, n, shorter(ms));
}
