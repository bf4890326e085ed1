/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker - threads of the library in a program's process
 *
 * Any thread may call this; there is no state.
 */
#ifndef P3_SHM_WORKER_H
#define P3_SHM_WORKER_H

#include <pthread.h>

/* Start such a thread with all signals blocked, so that no handler of the program runs
 * in it.  Return 0 or -errno. */
int p3_worker_start(pthread_t *thread_out, void *(*run)(void *), void *arg);

/* Ask the kernel to run the calling thread soon when it wakes up: it runs briefly, and
 * often. */
void p3_worker_run_briefly(void);

#endif
