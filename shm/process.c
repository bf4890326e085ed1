/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of the library's threads, and what /proc tells of a process. */
#include "shm/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FIRST_NAP_NS 1000000
#define NAP_NS       100000000

P3_PROCESS_LOCK(worker_lock)     /* guards all below */
static unsigned workers_created; /* threads, from their creation to their end */
static unsigned workers_running; /* those between start and end of worker_run() */
static bool worker_watching;
static sigset_t worker_mask_of_program; /* of the thread whose end began the watch */

static void worker_begin_anew(void)
{
	workers_created = workers_running = 0;
	worker_watching = false;
}

P3_IN_FORKED_CHILD(worker_begin_anew)

struct worker_start {
	void *(*run)(void *);
	void *arg;
};

static void worker_count(int more_created, int more_workers)
{
	pthread_mutex_lock(&worker_lock);
	workers_created += (unsigned)more_created;
	workers_running += (unsigned)more_workers;
	pthread_mutex_unlock(&worker_lock);
}

static void *worker_run(void *arg)
{
	const struct worker_start start = *(struct worker_start *)arg;
	free(arg);
	worker_count(0, 1);
	void *result = start.run(start.arg);
	worker_count(-1, -1);
	return result;
}

static int worker_create(pthread_t *thread_out, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	struct worker_start *start = malloc(sizeof *start);
	if (!start)
		return -ENOMEM;
	*start = (struct worker_start){run, arg};
	worker_count(1, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(thread_out, NULL, worker_run, start);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		worker_count(-1, 0);
		free(start);
	}
	return -rc;
}

/* ---- the end of a process whose first thread has ended ---- */

/*
 * A process ends when its last thread does.  The library's threads would keep one for
 * ever whose first thread has ended by pthread_exit(), and no thread would take its
 * signals.  So the end of a thread that has started some of them begins a watch, which
 * ends the process when no other threads than the library's are left.
 */

/* Return true if the first thread has ended, and there are `others` threads beside it.
 * The kernel counts a first thread that has ended until all others have. */
static bool worker_is_left_with(unsigned others)
{
	struct p3_stat stat;
	return p3_stat_read(0, 0, &stat) && stat.state == 'Z' &&
	       stat.threads == others + 1;
}

/* While no worker begins or ends, look whether only workers are left.  Return false at
 * the end of the watch: this thread is the only worker. */
static bool worker_go_on_watching(bool *left_out)
{
	pthread_mutex_lock(&worker_lock);
	worker_watching = workers_created > 1;
	*left_out = worker_watching && workers_running == workers_created &&
		    worker_is_left_with(workers_running);
	bool go_on = worker_watching;
	pthread_mutex_unlock(&worker_lock);
	return go_on;
}

static void *worker_watch(void *arg)
{
	bool left;
	struct timespec nap = {.tv_nsec = FIRST_NAP_NS};
	int state;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	(void)prctl(PR_SET_NAME, "p3end");
	while (worker_go_on_watching(&left)) {
		if (left) {
			pthread_sigmask(SIG_SETMASK, &worker_mask_of_program, NULL);
			exit(0); /* as the last thread of a program does */
		}
		(void)nanosleep(&nap, NULL);
		nap.tv_nsec = nap.tv_nsec < NAP_NS / 2 ? 2 * nap.tv_nsec : NAP_NS;
	}
	return arg;
}

/* At the end of a thread that has started workers. */
static void worker_begin_watch(void *arg)
{
	pthread_t thread;
	(void)arg;
	pthread_mutex_lock(&worker_lock);
	bool begin = workers_created && !worker_watching;
	if (begin)
		pthread_sigmask(SIG_SETMASK, NULL, &worker_mask_of_program);
	worker_watching |= begin;
	pthread_mutex_unlock(&worker_lock);
	if (begin && worker_create(&thread, worker_watch, NULL) == 0)
		pthread_detach(thread);
}

static pthread_key_t worker_starter;
static bool worker_has_key;

__attribute__((constructor)) static void worker_make_key(void)
{
	worker_has_key = pthread_key_create(&worker_starter, worker_begin_watch) == 0;
}

__attribute__((destructor)) static void worker_drop_key(void)
{
	if (worker_has_key)
		(void)pthread_key_delete(worker_starter);
}

int p3_worker_start(pthread_t *thread_out, void *(*run)(void *), void *arg)
{
	if (worker_has_key)
		(void)pthread_setspecific(worker_starter, &workers_running);
	return worker_create(thread_out, run, arg);
}

/* The kernel's sched_attr, which libc does not declare. */
struct worker_slice {
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
	struct worker_slice attr = {.size = sizeof attr, .runtime = 100000};
	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* ---- any process ---- */

bool p3_stat_read(uint32_t pid, uint32_t tid, struct p3_stat *out)
{
	char name[64], line[1024];
	snprintf(name, sizeof name,
		tid   ? "/proc/%u/task/%u/stat"
		: pid ? "/proc/%u/stat"
		      : "/proc/self/stat",
		pid, tid);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
	if (fd >= 0)
		close(fd);
	line[len > 0 ? len : 0] = 0;
	/* The end of the name, which may contain any character. */
	const char *end = strrchr(line, ')');
	return end && sscanf(end,
			      ") %c %" SCNu32 " %*s %*s %*s %*s %" SCNu32
			      " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu32
			      " %*s %" SCNu64 " %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
			      &out->state, &out->parent, &out->flags, &out->threads,
			      &out->ticks, &out->signals) == 6;
}
