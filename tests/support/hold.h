/* SPDX-License-Identifier: BSD-3-Clause */
/* hold - takes the lease of a NIC, for a test that looks at its state or keeps it
 * still */
#ifndef P3_SUPPORT_HOLD_H
#define P3_SUPPORT_HOLD_H

#include "lib/node/node.h"
#include "nic/run/lease.h"
#include "support/nodes.h"

#include <sched.h>

/* Return the NIC of this process. */
static inline struct p3_nic *nic(void)
{
	return p3_nic(p3_node());
}

/* Hold the lease until p3_lease_leave. */
static inline void nic_hold(struct p3_nic *n)
{
	while (!(n->generic ? p3_lease_enter_reserved(n, P3_LEASE_HOST)
			    : p3_lease_enter(n, P3_LEASE_HOST))) {
		p3_set(&n->lease.want, 1);
		sched_yield();
	}
}

/* Hold the lease, and meet the other thread at the gate, until that thread's call has
 * been posted. */
static inline void nic_hold_until_posted(struct p3_nic *n, struct gate *gate)
{
	nic_hold(n);
	gate_wait(gate);
	while (!p3_mbx_any(n->mailbox))
		sched_yield();
	p3_lease_leave(n);
}

#endif
