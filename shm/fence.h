/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence - Dekker fences for a side that fences in each message and a side that fences
 * rarely
 *
 *	message side	store, p3_fence_light, load	costs nothing
 *	rare side	store, p3_fence_heavy, load	a system call (membarrier)
 *
 * The light fence only keeps the compiler from changing the order.  The heavy fence has
 * the kernel make each running thread of each process that has joined pass a full
 * fence, somewhere between the call's begin and its end; threads that do not run have
 * passed one when they were stopped.  If a thread passes that fence before its store,
 * its later load sees all that the heavy side had stored before; else the heavy side's
 * load sees the thread's store.  So one of the two sees the other, as with two full
 * fences.
 *
 * A process that has not joined uses full fences, and so do all its partners: light
 * fences are only for a process that knows that the others' fences are heavy.
 *
 * A filter of system calls may later forbid membarrier.  Then the heavy fence waits
 * until earlier stores have left all CPUs' buffers by themselves.
 *
 * ThreadSanitizer does not know the system call: under it both are p3_fence().
 *
 * Any thread may call these functions.  Their state is the process's registration with
 * the kernel.
 */
#ifndef P3_SHM_FENCE_H
#define P3_SHM_FENCE_H

#include "shm/atomics.h"

/*
 * Join: from now on the heavy fences of other processes reach this process, and it may
 * call such fences itself.  Return false if the kernel refuses.  The call may be
 * repeated; the first call takes some 16 ms, but microseconds while the process has one
 * thread only.
 */
bool p3_fence_join(void);

/* Return false if the kernel refused and the call waited a millisecond instead. */
bool p3_fence_heavy(void);      /* reaches all processes that have joined */
bool p3_fence_heavy_here(void); /* reaches the threads of this process */

/* Fence lightly if light (all partners' fences are heavy), else fully. */
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
