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

/* Return how often the NIC thread has had the lease, when no thread has it: that thread
 * counts a hold only after it has begun. */
static inline uint64_t nic_holds(struct p3_nic *n)
{
	nic_hold(n);
	uint64_t holds = p3_nic_counter(n, P3_C_LEASE_NIC);
	p3_lease_leave(n);
	return holds;
}

static inline void hold_until_posted(void *held)
{
	nic_hold(nic());
	p3_release((p3_a32 *)held, 1);
	while (!p3_mbx_any(nic()->mailbox))
		sched_yield();
	p3_lease_leave(nic());
}

/* Return a thread that holds the lease until a call of this node has been posted. */
static inline struct side *nic_held_until_posted(p3_a32 *held)
{
	p3_set(held, 0);
	struct side *other = side_start(hold_until_posted, held);
	while (!p3_acquire(held))
		sched_yield();
	return other;
}

#endif
