/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tty - leaves the terminal as it was
 *
 * A node that turns echo off, or wants keys as they are typed, may be killed before it
 * puts that back.
 */
#ifndef P3_LAUNCHER_TTY_H
#define P3_LAUNCHER_TTY_H

#include <stdbool.h>
#include <termios.h>

struct p3_tty {
	int fd; /* -1: no terminal */
	struct termios was;
};

/* Of standard input, or else of standard output or error. */
struct p3_tty p3_tty_keep(void);

/* If it is ours now and differs.  SIGTTOU must be blocked or ignored. */
void p3_tty_restore(const struct p3_tty *tty);

#endif
