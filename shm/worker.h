/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker - threads of the library in a program's process
 *
 * Any thread may call this.  The state is the number of these threads, under a lock: when
 * the first thread of the process and all other threads of the program have ended, the
 * process ends, as it would without the library's threads (exit status 0, handlers of
 * atexit() and signals that are pending included).
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
