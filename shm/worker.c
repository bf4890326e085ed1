/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of the library's threads. */
#include "shm/worker.h"

#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int p3_worker_start(pthread_t *thread_out, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(thread_out, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}

/* The kernel's sched_attr, which libc does not declare. */
struct slice {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

void p3_worker_run_briefly(void)
{
	(void)prctl(PR_SET_TIMERSLACK, 1);
	/* a short slice (since Linux 6.12) */
	struct slice attr = {.size = sizeof attr, .runtime = 100000};
	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}
