/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence - Dekker's fences where one side has them in each message, the other rarely
 *
 *	often	store, p3_fence_light, load	costs nothing
 *	rarely	store, p3_fence_heavy, load	a system call (membarrier)
 *
 * The light one only keeps the compiler from changing the order.  The heavy one has the
 * kernel make each thread that runs pass a full fence, somewhere between the call's begin
 * and its end, in each process that has joined; those that do not run have passed one
 * when they stopped.  If a thread passes it before its store, its later load sees what
 * the heavy side had stored before; else its store is seen by the heavy side's load.  So
 * one of the two sees the other, as with two full fences.
 *
 * Who has not joined does with full fences, and so do all that it is a Dekker with: light
 * ones are for who knows that the others' are heavy.
 *
 * A filter of system calls may forbid later what was allowed.  Then the heavy one waits
 * until what was stored before it began has left all CPUs' buffers by itself.
 *
 * Not under ThreadSanitizer, which does not know the call: both are p3_fence() there.
 */
#ifndef P3_SHM_FENCE_H
#define P3_SHM_FENCE_H

#include "shm/atomics.h"

/*
 * From now on this process can pass heavy fences of others, and call them.  False: it
 * cannot.  Any number of times; the first takes the kernel some 16 ms, but microseconds
 * while the process has one thread only.
 */
bool p3_fence_join(void);

/* False: the kernel refused; it took a millisecond instead. */
bool p3_fence_heavy(void);      /* for all processes that have joined */
bool p3_fence_heavy_here(void); /* for the threads of this process */

/* light: all others' are heavy; else a full one. */
static inline void p3_fence_light(bool light)
{
#ifdef P3_TSAN
	light = false;
#endif
	if (p3_likely(light))
		atomic_signal_fence(memory_order_seq_cst);
	else
		p3_fence();
}

#endif
