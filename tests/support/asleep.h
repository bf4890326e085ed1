/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * asleep - wait until a thread or process sleeps in the kernel, or is stopped
 *
 * For tests that need another thread inside a blocking call: a state, and no guess of the
 * time that it takes.  Any program may include this header; it has no state.
 */
#ifndef P3_TESTS_ASLEEP_H
#define P3_TESTS_ASLEEP_H

#include "patience.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Return the state of a thread or process as in /proc/ID/stat, or 0 if it has ended. */
static inline char thread_state(pid_t tid)
{
	char name[40], line[256];
	snprintf(name, sizeof name, "/proc/%d/stat", (int)tid);
	FILE *f = fopen(name, "re");
	size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
	if (f)
		fclose(f);
	line[n] = 0;
	const char *at = strrchr(line, ')');
	return at && at[1] ? at[2] : 0;
}

/*
 * Wait until the thread has the state at several looks in a row, since it may pass
 * through short sleeps on its way, or until it has ended.  Return false if it had neither
 * within the limit of a wait.
 */
static inline bool await_thread_state(pid_t tid, char wanted)
{
	struct patience p = patience_begin();
	char now = 1;
	for (int seen = 0; seen < 5 && now && !patience_is_over(&p);) {
		now = thread_state(tid);
		seen = now == wanted ? seen + 1 : 0;
		if (seen == 5)
			return true;
		/* pause: between two looks */
		usleep(1000);
	}
	return !now;
}

/* Return how often a thread has gone to sleep, or -1 if it has ended. */
static inline long thread_sleeps(pid_t tid)
{
	char name[40], line[256];
	long n = -1;
	snprintf(name, sizeof name, "/proc/%d/status", (int)tid);
	FILE *f = fopen(name, "re");
	while (f && n < 0 && fgets(line, sizeof line, f))
		(void)sscanf(line, "voluntary_ctxt_switches: %ld", &n);
	if (f)
		fclose(f);
	return n;
}

/* Wait until a thread that sleeps a short time again and again has done so three times,
 * or has ended.  Where many want its CPU it is rarely found asleep. */
static inline bool await_sleeps(pid_t tid)
{
	struct patience p = patience_begin();
	long now, first = thread_sleeps(tid);
	while ((now = thread_sleeps(tid)) >= 0 && now < first + 3) {
		if (patience_is_over(&p))
			return false;
		/* pause: between two looks */
		usleep(1000);
	}
	return true;
}

/* Return true if all threads of a process have the state, or it has ended. */
static inline bool process_has_state(pid_t pid, char wanted)
{
	char name[40];
	snprintf(name, sizeof name, "/proc/%d/task", (int)pid);
	DIR *d = opendir(name);
	bool all = true;
	for (struct dirent *e; d && all && (e = readdir(d)) != NULL;)
		if (e->d_name[0] != '.')
			all = thread_state((pid_t)atoi(e->d_name)) == wanted;
	if (d)
		closedir(d);
	return all;
}

/* Wait until a signal has stopped all threads of the process.  Return false if one still
 * ran after the limit of a wait. */
static inline bool await_stopped(pid_t pid)
{
	struct patience p = patience_begin();
	while (!process_has_state(pid, 'T')) {
		if (patience_is_over(&p))
			return false;
		/* pause: between two looks */
		usleep(1000);
	}
	return true;
}

#endif
