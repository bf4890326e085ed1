/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reap - how children ended, and the end of all of them
 *
 * yod is a subreaper: a descendant whose parent dies becomes yod's child.  A child that
 * yod has not reaped keeps its pid, so kill() to a child never meets a stranger.
 */
#ifndef P3_LAUNCHER_REAP_H
#define P3_LAUNCHER_REAP_H

#include <stdbool.h>
#include <sys/types.h>

/* Has this child ended?  Its wait status; it stays to be reaped. */
bool p3_reap_fate(pid_t pid, int *status_out);

/* Is this child stopped?  The signal that stopped it, or 0. */
int p3_reap_stopped(pid_t pid);

/* Reaps a child that has ended. */
void p3_reap_take(pid_t pid);

/*
 * Some child that has ended, or 0 if none has, or -1 if there are no children.  It
 * stays to be reaped.
 */
pid_t p3_reap_any(void);

/* Kills and reaps all descendants; false if some are left after ms. */
bool p3_reap_sweep(int ms);

#endif
