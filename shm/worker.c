/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of the library's threads. */
#include "shm/worker.h"

#include <signal.h>

int p3_worker_start(pthread_t *thread_out, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(thread_out, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}
