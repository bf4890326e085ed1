/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * brief - brief holds of the lease by host threads
 *
 * A straight path (shm/variant.h) begins with p3_brief_enter().  It ends with
 * p3_brief_turn_back() if it finds that the general path must take this case, and with
 * p3_brief_leave() if it has written to no peer and posted no event.  Any host thread may
 * call these functions; they have no state.
 */
#ifndef P3_NIC_HOST_BRIEF_H
#define P3_NIC_HOST_BRIEF_H

#include "nic/host/call.h"
#include "nic/run/lease.h"
#include "nic/run/odd.h"
#include "shm/trace.h"
#include "shm/variant.h"

/* Give the lease back, having done nothing.  Return false. */
static P3_RARE bool p3_brief_turn_back(struct p3_nic *n)
{
	p3_lease_leave(n);
	p3_call_end(n);
	return false;
}

/* Return true if the lease holder has no other duty: no command was posted before, and
 * there is no trace, wire or peer without room that needs it. */
static P3_HOT bool p3_brief_is_usual(const struct p3_nic *n)
{
	const uint32_t odd = P3_ODD_TRACED | P3_ODD_WIRED | P3_ODD_BLOCKED;
	return p3_likely(!p3_mbx_any(n->mailbox) && !(n->odd & odd));
}

/* Return true if this thread has the lease now, and nothing is unusual. */
static P3_HOT bool p3_brief_enter(struct p3_nic *n)
{
	if (!p3_straight() || p3_unlikely(p3_self.inside != 0))
		return false;
	p3_call_begin();
	if (p3_unlikely(!p3_cas_acquire32(
		    &n->lease.word, P3_LEASE_FREE, P3_LEASE_HOST))) { /* LEASE.1 */
		p3_call_end(n);
		return false;
	}
	FAULT_POINT("lease.taken");
	FAULT_POINT("command.held");
	if (p3_likely(p3_brief_is_usual(n)))
		return true;
	p3_brief_turn_back(n);
	return false;
}

/* End a hold that has executed a command. */
static P3_HOT void p3_brief_leave(struct p3_nic *n, enum p3_op op)
{
	struct p3_mailbox *mailbox = n->mailbox; /* still readable after the give */
	bool light = n->light;
	P3_PROBE2(command, op, n->conf.nid);
	FAULT_POINT("command.executed");
	p3_count(&n->count[P3_C_LEASE_HOST], 1);
	p3_lease_give(&n->lease);
	p3_fence_light(light); /* LEASE.2 */
	/* The same as p3_mbx_any(), so that one branch tests both words. */
	uint32_t posted = p3_get(&mailbox->head) ^ P3_MBX_NONE; /* MBX.4 */
	if (p3_unlikely(posted | p3_get(&n->parked)))
		p3_lease_left(n, &n->never_asleep, &n->never_cold, NULL, 0, mailbox);
	p3_call_end(n);
}

#endif
