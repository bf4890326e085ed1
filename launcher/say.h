/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * say - one line of yod's own to stderr, one write
 *
 *	yod: rank 3 (pid 18233) killed by signal 9 (Killed); ending the job
 *
 * A line names the thing, its value, the expectation and the remedy, in lower case.
 */
#ifndef P3_LAUNCHER_SAY_H
#define P3_LAUNCHER_SAY_H

void p3_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Name a place of a file, such as "jobs:3", in the following lines; NULL: none. */
void p3_say_at(const char *place);

#endif
