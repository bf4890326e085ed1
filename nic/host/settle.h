/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settle - passes that a program asks for, without a wait for the lease
 *
 * Any host thread may call these functions, without the lease.  Their state is the word
 * attended of each interface (struct p3_ni), and the hint want of the lease.
 */
#ifndef P3_NIC_HOST_SETTLE_H
#define P3_NIC_HOST_SETTLE_H

#include "nic/state.h"

/* Note that the program has looked for an event of interface ni: the interface has
 * settled. */
static inline void p3_settle_attend(struct p3_nic *n, uint32_t ni)
{
	if (ni < P3_JOB_NIS && p3_unlikely(!p3_get(&n->ni[ni].attended)))
		p3_set(&n->ni[ni].attended, 1);
}

/* Tell the lease holder that this thread has looked for messages and found the lease
 * taken, and that it does not wait for the lease. */
static inline void p3_settle_look_in_vain(struct p3_nic *n)
{
	if (!p3_get(&n->lease.want))
		p3_set(&n->lease.want, P3_WANT_LOOK);
}

/* Run a pass.  Return false if it found no work, or another thread has the lease. */
bool p3_settle_pass(struct p3_nic *n);

#endif
