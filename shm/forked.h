/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forked - state of the process that a forked child begins anew
 *
 * Another thread of the parent may have been in the middle of anything when a child was
 * forked, and the child has no such thread: it would wait for it for ever.  So locks of
 * the process are made anew in each child.  Each guards words that one store changes, or
 * words that lib/init.c forgets.
 */
#ifndef P3_SHM_FORKED_H
#define P3_SHM_FORKED_H

#include <pthread.h>

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

#endif
