/* SPDX-License-Identifier: BSD-3-Clause */
/* tracedump's error messages. */
#include "launcher/tracedump/tracedump.h"

#include <stdarg.h>
#include <stdio.h>

void td_say(const char *fmt, ...)
{
	char line[1200];
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	fprintf(stderr, "tracedump: %s\n", line);
}
