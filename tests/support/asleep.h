/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * asleep - wait until a thread or process sleeps in the kernel, or is stopped
 *
 * For tests that need another thread inside a blocking call: a state, and no guess of the
 * time that it takes.  Any program may include this header; it has no state.
 */
#ifndef P3_TESTS_ASLEEP_H
#define P3_TESTS_ASLEEP_H

#include <stdbool.h>
#include <stdio.h>
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
 * within 20 s.
 */
static inline bool await_thread_state(pid_t tid, char wanted)
{
	char now = 1;
	for (int looks = 0, seen = 0; looks < 20000 && seen < 5 && now; looks++) {
		now = thread_state(tid);
		seen = now == wanted ? seen + 1 : 0;
		if (seen == 5)
			return true;
		/* pause: between two looks */
		usleep(1000);
	}
	return !now;
}

#endif
