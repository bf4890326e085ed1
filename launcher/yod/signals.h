/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signals - the signals that yod takes, and the signal state that its nodes start with
 *
 * yod takes its signals through a signalfd, so they are blocked in it; nodes get the
 * mask and the dispositions that yod was started with.  An ignored HUP (nohup) stays
 * ignored in yod and its nodes.  The main threads of the guard and of yod call these
 * functions.
 */
#ifndef P3_LAUNCHER_SIGNALS_H
#define P3_LAUNCHER_SIGNALS_H

#include <stdbool.h>

struct p3_signals; /* the state in which yod was started */

/* Take the signals, once, before anything else; return a static. */
const struct p3_signals *p3_signals_take(void);

/* Return a signalfd of the calling process (close-on-exec, non-blocking), or -errno. */
int p3_signals_fd(void);

/* Return a descriptor that is readable while a job-ending signal is pending; never read
 * it. */
int p3_signals_end_fd(void);

/* Return true if this signal ends the job. */
bool p3_signals_ends(int sig);

/* Return the next signal that came, or 0. */
int p3_signals_next(int fd);

/* Restore the state in a forked child, before exec. */
void p3_signals_give_back(const struct p3_signals *was);

#endif
