/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tty - saves and restores the terminal's settings
 *
 * A node that turns echo off, or reads single keys, may be killed before it restores
 * the terminal.  The guard's only thread calls these functions; the state is struct
 * p3_tty.
 */
#ifndef P3_LAUNCHER_TTY_H
#define P3_LAUNCHER_TTY_H

#include <stdbool.h>
#include <termios.h>

struct p3_tty {
	int fd; /* -1: no terminal */
	struct termios was;
};

/* Save the settings of the terminal on standard input, or else on standard output or
 * error. */
struct p3_tty p3_tty_keep(void);

/* Restore the settings if this process is in the foreground and they differ.  SIGTTOU
 * must be blocked or ignored. */
void p3_tty_restore(const struct p3_tty *tty);

#endif
