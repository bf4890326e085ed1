/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void p3_say(const char *fmt, ...)
{
	char line[600] = "yod: ";
	size_t head = strlen(line);
	int saved = errno; /* for %m, and for the caller */
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(line + head, sizeof line - head - 1, fmt, args);
	va_end(args);

	size_t len = head + (n < 0 ? 0 : (size_t)n);
	if (len > sizeof line - 2)
		len = sizeof line - 2;
	line[len++] = '\n';
	ssize_t done = write(STDERR_FILENO, line, len);
	(void)done;
	errno = saved;
}
