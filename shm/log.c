/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/log.h"
#include "shm/atomics.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define P3_SIGSET 8u /* bytes of the kernel's */

static p3_a32 log_jid, log_nid;

void p3_log_who(uint32_t jid, uint32_t nid)
{
	p3_set(&log_jid, jid);
	p3_set(&log_nid, nid);
}

/*
 * A line that goes nowhere (a pipe without readers, a file at the limit of its size) is
 * no reason to end the program by a signal.
 */
static void write_quietly(const char *line, size_t len)
{
	static const struct timespec at_once;
	sigset_t ours, was, pending;
	sigemptyset(&ours);
	sigaddset(&ours, SIGPIPE);
	sigaddset(&ours, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &ours, &was);
	sigpending(&pending);
	/* not write(): that is a cancellation point */
	bool failed = syscall(SYS_write, STDERR_FILENO, line, len) < 0;
	int ended = errno == EPIPE ? SIGPIPE : errno == EFBIG ? SIGXFSZ : 0;
	if (failed && ended && !sigismember(&pending, ended))
		(void)syscall(SYS_rt_sigtimedwait, &ours, NULL, &at_once, P3_SIGSET);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
}

static void say(const char *level, const char *fmt, va_list args)
{
	char line[512];
	int saved = errno;
	int n = snprintf(line, sizeof line,
		"p3[job %u nid %u pid %d] %s: ", p3_get(&log_jid), p3_get(&log_nid),
		(int)getpid(), level);
	errno = saved; /* for %m */
	int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, args);
	size_t len = (size_t)(n + m);
	if (len > sizeof line - 2)
		len = sizeof line - 2;
	line[len++] = '\n';
	write_quietly(line, len);
	errno = saved;
}

void p3_error(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	say("error", fmt, args);
	va_end(args);
}

void p3_warn(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	say("warn", fmt, args);
	va_end(args);
}
