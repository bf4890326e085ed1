/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signals - which signals yod takes, and what its nodes start with
 *
 * yod takes its signals through a signalfd, so they are blocked in it; nodes get the
 * mask and the dispositions that yod was started with.  An ignored HUP (nohup) stays
 * ignored in yod and its nodes.
 */
#ifndef P3_LAUNCHER_SIGNALS_H
#define P3_LAUNCHER_SIGNALS_H

#include <stdbool.h>

struct p3_signals; /* as yod was started */

/* Once, before anything else; returns a static. */
const struct p3_signals *p3_signals_take(void);

/* signalfd of the calling process (close-on-exec, non-blocking), or -errno. */
int p3_signals_fd(void);

/* Readable while a signal is pending that ends the job (never read it). */
int p3_signals_end_fd(void);

/* Does this signal end the job? */
bool p3_signals_ends(int sig);

/* Next signal that came, 0 if none. */
int p3_signals_next(int fd);

/* In a forked child, before exec. */
void p3_signals_give_back(const struct p3_signals *was);

#endif
