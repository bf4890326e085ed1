/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * straight - switch of the straight paths
 *
 * A straight path is code for the most frequent cases of an operation that also has a
 * general path.  It does the same as the general path in fewer instructions: the same
 * results, events, counters and orders between threads.  Each straight path begins with
 *
 *	if (p3_straight() && CASE)
 *
 * and goes back to the general path, before it has changed anything, where it finds that
 * the case is another one.  The build option P3_STRAIGHT chooses:
 *
 *	on	(default) take the straight paths
 *	off	take the general paths only
 *	random	throw a coin at each of them, so that one test takes both in all orders
 *
 * Any thread may call p3_straight().  The state is a generator of random numbers for each
 * thread, in builds that throw coins.
 */
#ifndef P3_SHM_STRAIGHT_H
#define P3_SHM_STRAIGHT_H

#include <stdbool.h>

#if defined(P3_STRAIGHT_RANDOM)
/* Return a random bit of this thread's. */
bool p3_straight(void);
#elif defined(P3_STRAIGHT_OFF)
static inline bool p3_straight(void)
{
	return false;
}
#else
static inline bool p3_straight(void)
{
	return true;
}
#endif

#endif
