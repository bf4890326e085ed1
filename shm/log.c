/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/log.h"
#include "shm/atomics.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static p3_a32 log_jid, log_nid;

void p3_log_who(uint32_t jid, uint32_t nid)
{
	p3_set(&log_jid, jid);
	p3_set(&log_nid, nid);
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
	/* not write(): that is a cancellation point */
	if (syscall(SYS_write, STDERR_FILENO, line, len) < 0)
		errno = saved;
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
