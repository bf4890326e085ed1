/* SPDX-License-Identifier: BSD-3-Clause */
/* Error lines of programs, and their ends. */
#include "launcher/tools/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void p3_tool_say(const char *fmt, ...)
{
	va_list args;
	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

int p3_tool_end(int status, int failed)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	p3_tool_say("cannot write to standard output; see df, and where it leads");
	return status ? status : failed;
}
