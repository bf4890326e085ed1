/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call - the beginning and the end of a call of the API
 *
 * Every Ptl* function begins with these, in the thread that calls it; the state is that
 * thread's own.
 */
#ifndef P3_LIB_NODE_CALL_H
#define P3_LIB_NODE_CALL_H

#include "lib/node/node.h"

#include <errno.h>
#include <pthread.h>

/* Begin a call: set nic_var to the node's NIC.  Without PtlInit, the call returns
 * PTL_NO_INIT, and without an interface no_nic_code. */
#define P3_CALL(nic_var, no_nic_code)                                                    \
	struct p3_nic *nic_var = p3_nic_ready(p3_node());                                \
	if (p3_unlikely(!nic_var))                                                       \
	return p3_is_up(p3_node()) ? (no_nic_code) : PTL_NO_INIT

/*
 * Mark this thread as busy inside the library.  A signal handler may interrupt the
 * thread while it holds a lock, is in malloc, or reads data guarded by RCU: between
 * p3_busy and p3_idle the handler must not do the same.  Each call that would do so
 * asks p3_is_busy first.
 */
static inline void p3_busy(void)
{
	p3_thread.busy++;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void p3_idle(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	p3_thread.busy--;
}

static inline bool p3_is_busy(void)
{
	return p3_thread.busy || p3_nic_interrupts();
}

/*
 * Save and restore the state of the calling program, around calls that wait or make
 * many system calls: errno stays the program's, and they are no cancellation points,
 * since they hold locks.
 */
struct p3_caller {
	int err, cancel;
};

static inline struct p3_caller p3_caller_save(void)
{
	struct p3_caller c = {.err = errno};
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c.cancel);
	p3_busy();
	return c;
}

static inline void p3_caller_restore(struct p3_caller c)
{
	p3_idle();
	(void)pthread_setcancelstate(c.cancel, &c.cancel);
	errno = c.err;
}

#endif
