/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease - take and give up the lease of the firmware
 *
 * Any thread may call p3_lease_enter(), and the thread that got the lease calls
 * p3_lease_leave() later.  The lease itself is n->lease (shm/lease.h).
 */
#ifndef P3_NIC_RUN_LEASE_H
#define P3_NIC_RUN_LEASE_H

#include "nic/report/trace.h"
#include "nic/run/commands.h"
#include "shm/fault.h"

/* Give up the lease, fence, and look for sleepers to wake, cold lanes to ring for, and
 * commands in the mailbox. */
void p3_lease_leave(struct p3_nic *n);

/* Take the lease and execute the posted commands.  Return false if another thread has
 * the lease. */
static inline bool p3_lease_enter(struct p3_nic *n, enum p3_lease_holder who)
{
	if (p3_unlikely(!p3_lease_take(&n->lease, who)))
		return false;
	p3_count(&n->count[who == P3_LEASE_NIC ? P3_C_LEASE_NIC : P3_C_LEASE_HOST], 1);
	FAULT_POINT("lease.taken");
	P3_TRACE(lease, n, who);
	if (p3_unlikely(p3_mbx_any(n->mailbox)))
		p3_command_take_posted(n);
	return true;
}

#endif
