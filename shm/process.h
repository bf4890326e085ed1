/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process - threads, forked children and loaded libraries of a program's process; /proc
 *
 * Any thread may call this.  The state of threads is the number of these threads, under
 * a lock: when the first thread of the process and all other threads of the program have
 * ended, the process ends, as it would without the library's threads (exit status 0,
 * handlers of atexit() and signals that are pending included).
 *
 * Another thread of the parent may have been in the middle of anything when a child was
 * forked, and the child has no such thread: it would wait for it for ever.  So locks of
 * the process are made anew in each child.  Each guards words that one store changes, or
 * words that lib/init.c forgets.
 */
#ifndef P3_SHM_PROCESS_H
#define P3_SHM_PROCESS_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Start such a thread with all signals blocked, so that no handler of the program runs
 * in it.  Return 0 or -errno. */
int p3_worker_start(pthread_t *thread_out, void *(*run)(void *), void *arg);

/* Ask the kernel to run the calling thread soon when it wakes up: it runs briefly, and
 * often. */
void p3_worker_run_briefly(void);

/* Fields of the file stat in /proc of a process, or of one of its threads. */
struct p3_stat {
	char state;
	uint32_t parent;
	uint32_t flags;   /* the kernel's PF_ bits */
	uint32_t threads; /* of the process */
	uint64_t ticks;   /* time of its start, since that of the machine */
	uint64_t signals; /* pending for this thread alone */
};

/* Read it of a thread, or with tid 0 of the process; pid 0 is the calling process.
 * Return false if it is not there. */
bool p3_stat_read(uint32_t pid, uint32_t tid, struct p3_stat *stat_out);

/* Let each forked child call renew(), before fork() returns there.  Without memory for
 * that, at the start of the program, children do without. */
#define P3_IN_FORKED_CHILD(renew)                                                        \
	__attribute__((constructor)) static void renew##_if_forked(void)                 \
	{                                                                                \
		(void)pthread_atfork(NULL, NULL, renew);                                 \
	}

/* A static lock that a forked child finds free. */
#define P3_PROCESS_LOCK(lock)                                                            \
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;                         \
	static void lock##_renew(void)                                                   \
	{                                                                                \
		(void)pthread_mutex_init(&lock, NULL);                                   \
	}                                                                                \
	P3_IN_FORKED_CHILD(lock##_renew)

/* Find a function of a library, and store its address at *out.  Return false if there is
 * none. */
static inline bool p3_dl_find(void *lib, const char *name, void *out)
{
	void *at = dlsym(lib, name);
	memcpy(out, &at, sizeof at);
	return at != NULL;
}

#endif
