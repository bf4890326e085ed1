/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle - OS handles of endpoints, the firmware's half
 *
 * nic/cci.h has the states.  The lease holder calls these functions, or the thread that
 * has just given up the lease; the state is in the endpoint.
 */
#ifndef P3_NIC_CCI_HANDLE_H
#define P3_NIC_CCI_HANDLE_H

#include "nic/cci.h"

/*
 * The pass that is over has posted events to the endpoint, and this thread has fenced
 * fully since then.  Make the eventfd readable if a thread may sleep on it.  A thread
 * inside of a call looks at the queue when it leaves, also if it is this one.
 */
static inline void p3_cci_handle_posted(struct p3_cci_handle *h)
{
	if (!p3_get(&h->inside) && p3_get(&h->state) == P3_CCI_ARMED) /* CCIFD.1 */
		p3_cci_handle_signal(h);
}

/* An event waits at a tick: make the eventfd readable, also in state IDLE, in which the
 * program was taken for one that polls.  It does not poll any more. */
static inline void p3_cci_handle_remind(struct p3_cci_handle *h)
{
	if (p3_get(&h->inside))
		return;
	p3_set(&h->polls, 0);
	p3_cci_handle_signal(h);
}

/* The NIC thread is about to sleep, so no tick will remind: the next event writes the
 * eventfd. */
static inline void p3_cci_handle_arm(struct p3_cci_handle *h)
{
	uint32_t idle = P3_CCI_IDLE;
	if (p3_get(&h->state) == P3_CCI_IDLE)
		(void)p3_cas32(&h->state, &idle, P3_CCI_ARMED); /* CCIFD.3 */
}

#endif
