/* SPDX-License-Identifier: BSD-3-Clause */
/* yod's own messages. */
#include "launcher/yod/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *place_of, *host_of;
static void (*say_by)(void *arg, const char *line, size_t len);
static void *say_by_arg;

void p3_say_by(void (*by)(void *arg, const char *line, size_t len), void *arg)
{
	say_by = by;
	say_by_arg = arg;
}

void p3_say_on(const char *host)
{
	host_of = host;
}

void p3_say_at(const char *place)
{
	place_of = place;
}

/* Return the number of bytes that fit into the room, of n wanted ones. */
static size_t there(int n, size_t room)
{
	size_t len = n < 0 ? 0 : (size_t)n;
	return len < room ? len : room - 1;
}

/* Replace control characters: names from outside may have any, and a message is one
 * line. */
static void make_printable(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
}

void p3_say_lines(const char *lines, size_t len)
{
	if (say_by) {
		say_by(say_by_arg, lines, len);
		return;
	}
	ssize_t done = write(STDERR_FILENO, lines, len);
	(void)done;
}

void p3_say(const char *fmt, ...)
{
	char line[800];
	int saved = errno; /* for %m, and for the caller */
	size_t room = sizeof line - 1;
	size_t len = there(snprintf(line, room, "yod: %s%s%.200s%s",
				   host_of ? host_of : "", host_of ? ": " : "",
				   place_of ? place_of : "", place_of ? ": " : ""),
		room);
	va_list args;
	va_start(args, fmt);
	errno = saved;
	len += there(vsnprintf(line + len, room - len, fmt, args), room - len);
	va_end(args);
	make_printable(line, len);
	line[len++] = '\n';
	p3_say_lines(line, len);
	errno = saved;
}
