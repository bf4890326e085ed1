/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call - commands of host threads, and signal handlers that interrupt a call
 *
 * Any host thread may call these functions, without the lease.  The state is the
 * calling thread's own (nic/run/run.h).
 */
#ifndef P3_NIC_HOST_CALL_H
#define P3_NIC_HOST_CALL_H

#include "nic/run/run.h"
#include "nic/state.h"

/* Execute the commands that a signal handler has left behind. */
P3_RARE void p3_call_run_left(struct p3_nic *n);

/* Mark this thread as inside the library. */
static inline void p3_call_begin(void)
{
	p3_self.inside++;
	atomic_signal_fence(memory_order_seq_cst);
}

/* Unmark this thread.  Return false if the caller must call p3_call_run_left(). */
static inline bool p3_call_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	p3_self.inside--;
	atomic_signal_fence(memory_order_seq_cst);
	return p3_likely(!p3_self.left_behind) || p3_self.inside;
}

/* Unmark this thread, and execute the commands that a signal handler has left behind
 * meanwhile. */
static inline void p3_call_end(struct p3_nic *n)
{
	if (p3_unlikely(!p3_call_leave()))
		p3_call_run_left(n);
}

/* Execute a command, between p3_call_begin() and p3_call_end(). */
int p3_call_inside(struct p3_nic *n, struct p3_cmd *c);

#endif
