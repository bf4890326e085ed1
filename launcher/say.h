/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * say - one line of yod's own to stderr, one write
 *
 *	yod: rank 3 (pid 18233) killed by signal 9 (Killed); ending the job
 *
 * Thing, value, what was expected, remedy; lower case.
 */
#ifndef P3_LAUNCHER_SAY_H
#define P3_LAUNCHER_SAY_H

void p3_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What is said from now on is about that place of a file, as in "jobs:3"; NULL: none. */
void p3_say_at(const char *place);

#endif
