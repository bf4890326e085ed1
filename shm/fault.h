/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault - places where a test can make a process die or stop
 *
 *	FAULT_POINT("lane.filled");
 *
 * Such a line stands wherever another process can see a step half done.  In the release
 * build (P3_FAULTS=OFF) a point has no code; with P3_FAULTS=ON it costs one load and one
 * branch.  Any thread may pass a point.
 *
 * A build with points obeys PTL3_FAULT in the environment:
 *
 *	name[:nth][:action][@who]	when the point is reached for the nth time (1st)
 *					in process who (a rank, or yod; any), do this:
 *					kill  (default) SIGKILL to itself
 *					stop  SIGSTOP to itself, a test continues it
 *					exit  _exit(1)
 *	list				print the names of all points, and exit
 *	count				at exit print how often each was reached
 *
 * Any other value is an error, and the process exits with status 2.  A point that
 * strikes says so in one line.  Points of yod are named yod.*, in its program; all
 * others are in the library, those of domain.* in both (yod's with @yod).  A section
 * of the binary has all names: a new point needs no other line.
 * tests/fault/walk goes through all of them, with --hosts through remote.*,
 * tests/fault/domain.c through domain.* and meet.*.
 */
#ifndef P3_SHM_FAULT_H
#define P3_SHM_FAULT_H

#ifdef P3_FAULTS

#include "shm/atomics.h"

/* One point.  An inline function has one in each file, all under one name. */
struct p3_fault {
	const char *name;
	p3_a32 armed;
	p3_a32 hits;
};

_Static_assert(sizeof(struct p3_fault) == 16, "the section is an array of these");

void p3_fault_reached(struct p3_fault *here);

#define FAULT_POINT(text)                                                                \
	do {                                                                             \
		static struct p3_fault p3_here_ __attribute__((                          \
			section("p3_faults"), used, aligned(16))) = {.name = (text)};    \
		if (p3_unlikely(p3_get(&p3_here_.armed) != 0))                           \
			p3_fault_reached(&p3_here_);                                     \
	} while (0)

#else
#define FAULT_POINT(text) ((void)0)
#endif

#endif
