/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reap - the ends of child processes
 *
 * yod is a subreaper: a descendant whose parent dies becomes yod's child.  A child that
 * yod has not reaped keeps its pid, so a kill() of a child never hits another process.
 * Only yod's main thread calls these functions; the kernel has all state.
 */
#ifndef P3_LAUNCHER_REAP_H
#define P3_LAUNCHER_REAP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Return true, and the wait status, if this child has ended.  The caller must still reap
 * it (p3_reap_take). */
bool p3_reap_fate(pid_t pid, int *status_out);

/* Return true if this child has ended, or is ending in the kernel: all of its threads,
 * since a program may end its first one and go on. */
bool p3_reap_is_ending(pid_t pid);

/* Return the signal that stopped this child, or 0. */
int p3_reap_stopped(pid_t pid);

/* Write a text such as "exited with status 1" for a wait status. */
void p3_reap_describe(char *text, size_t len, int status);

/* Reap a child that has ended. */
void p3_reap_take(pid_t pid);

/*
 * Return a child that has ended, 0 if none has, or -1 if there are no children.  The
 * caller must still reap it: until then further calls may return the same child.
 */
pid_t p3_reap_any(void);

/* Kill and reap all descendants.  Return false if some are left after ms. */
bool p3_reap_sweep(int ms);

#endif
