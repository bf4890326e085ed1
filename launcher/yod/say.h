/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * say - one line of yod's own to stderr
 *
 *	yod: rank 3 (pid 18233) killed by signal 9 (Killed); ending the job
 *
 * A line names the thing, its value, the expectation and the remedy, in lower case.
 * Only the main threads of yod and its guard call these functions: the place is a static
 * without a lock.  Once there is a job no line blocks: yod and its guard hand lines to
 * output.h, and an agent sends them to yod, which prints them.
 * errno stays as it was.
 */
#ifndef P3_LAUNCHER_SAY_H
#define P3_LAUNCHER_SAY_H

#include <stddef.h>

/* Print one line, made as by printf(), with "yod: " before it. */
void p3_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Print lines that have been made elsewhere, each with its newline. */
void p3_say_lines(const char *lines, size_t len);

/* Hand each line, with its newline, to this function instead of printing it; NULL:
 * print. */
void p3_say_by(void (*by)(void *arg, const char *line, size_t len), void *arg);

/* Name the host at the beginning of each line; NULL: do not.  Not copied. */
void p3_say_on(const char *host);

/* Begin the following lines with a place in a file, such as "jobs:3"; NULL: with none.
 * The text is not copied. */
void p3_say_at(const char *place);

#endif
