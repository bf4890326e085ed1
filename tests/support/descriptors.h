/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * descriptors - the open descriptors of a process, or other entries of a folder of /proc
 *
 *	unsigned before = descriptors_settled("self");
 *	...
 *	unsigned after = descriptors_within("self", before);
 *	check(after == before, "%u descriptors, %u before", after, before);
 *
 * Another thread of the process has one more for a moment: it takes a packet with
 * descriptors, maps them and closes them, or it reads a file.  A joined thread is in
 * /proc until the kernel has ended it.  So one look proves nothing: a leak stays.
 * Any program may include this header; it has no state.
 */
#ifndef P3_TESTS_DESCRIPTORS_H
#define P3_TESTS_DESCRIPTORS_H

#include "patience.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DESCRIPTORS_LOOKS 20u

/* Return the number of entries, with "." and "..". */
static inline unsigned entries_of(const char *path)
{
	unsigned n = 0;
	DIR *d = opendir(path);
	if (!d) {
		perror(path);
		abort();
	}
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Wait until there are as many entries as this, or the limit is over.  Return their
 * number at the last look. */
static inline unsigned entries_within(const char *path, unsigned want)
{
	const struct timespec t = {0, 1000000};
	struct patience p = patience_begin();
	unsigned n;
	while ((n = entries_of(path)) != want && !patience_is_over(&p))
		nanosleep(&t, NULL);
	return n;
}

/* Wait until the number has been the same at DESCRIPTORS_LOOKS looks, a millisecond
 * apart, and return it. */
static inline unsigned entries_settled(const char *path)
{
	const struct timespec t = {0, 1000000};
	unsigned n = entries_of(path), same = 1;
	while (same < DESCRIPTORS_LOOKS) {
		nanosleep(&t, NULL);
		unsigned now = entries_of(path);
		same = now == n ? same + 1 : 1;
		n = now;
	}
	return n;
}

/* The same for the descriptors of a process: its number, or "self".  Each look counts its
 * own descriptor, too. */
static inline unsigned descriptors_of(const char *pid)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/%s/fd", pid);
	return entries_of(path);
}

static inline unsigned descriptors_settled(const char *pid)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/%s/fd", pid);
	return entries_settled(path);
}

static inline unsigned descriptors_within(const char *pid, unsigned want)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/%s/fd", pid);
	return entries_within(path, want);
}

#endif
