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
#include "shm/variant.h"

/* Give up the lease, fence, and look for sleepers to wake, cold lanes to ring for, and
 * commands in the mailbox. */
void p3_lease_leave(struct p3_nic *n);

/* Begin a hold of the lease, which this thread has just taken: execute the posted
 * commands. */
static inline void p3_lease_begin(struct p3_nic *n, enum p3_lease_holder who)
{
	p3_count(&n->count[who == P3_LEASE_NIC ? P3_C_LEASE_NIC : P3_C_LEASE_HOST], 1);
	FAULT_POINT("lease.taken");
	P3_TRACE(lease, n, who);
	if (p3_unlikely(p3_mbx_any(n->mailbox)))
		p3_command_take_posted(n);
}

/* Finish p3_lease_leave() in the uncommon cases, after the lease was given up.  The
 * arguments are words, not structs, so that the common case keeps them in registers. */
P3_RARE void p3_lease_left(struct p3_nic *n, p3_a32 *asleep, const p3_a32 *cold,
	struct p3_doorbell *bell, uint32_t posted, struct p3_mailbox *mailbox);

/* Do as p3_lease_leave() after a hold that wrote to this peer and to no other one, not on
 * a wire, and posted these news. */
static P3_HOT void p3_lease_leave_to(
	struct p3_nic *n, const struct p3_peer *p, uint32_t posted)
{
	struct p3_mailbox *mailbox = n->mailbox; /* still readable here */
	p3_a32 *asleep = p->asleep;
	const p3_a32 *cold = p->cold;
	struct p3_doorbell *bell = p->doorbell;
	bool light = n->light;
	p3_lease_give(&n->lease);
	p3_fence_light(light); /* LEASE.2, PARK.1, COLD.1 */
	uint32_t news = p3_get(cold) | p3_get(asleep) | p3_get(&n->parked);
	if (p3_unlikely(news || p3_mbx_any(mailbox))) /* MBX.4 */
		p3_lease_left(n, asleep, cold, bell, posted, mailbox);
}

/* Take the lease and execute the posted commands.  Return false if another thread has
 * the lease. */
static inline bool p3_lease_enter(struct p3_nic *n, enum p3_lease_holder who)
{
	if (p3_unlikely(!p3_lease_take(&n->lease, who)))
		return false;
	p3_lease_begin(n, who);
	return true;
}

/* Do as p3_lease_enter() on a node whose host matches.  Only its NIC thread, the host's
 * thread, and the thread that stops the node call this. */
static inline bool p3_lease_enter_reserved(struct p3_nic *n, enum p3_lease_holder who)
{
	if (!p3_lease_take_reserved(&n->lease, who))
		return false;
	p3_lease_begin(n, who);
	return true;
}

/* Do as p3_lease_begin(), except that the posted commands wait for the pass with which
 * the caller goes on. */
static P3_HOT void p3_lease_begin_to_pass(struct p3_nic *n)
{
	p3_count(&n->count[P3_C_LEASE_HOST], 1);
	FAULT_POINT("lease.taken");
	P3_TRACE(lease, n, P3_LEASE_HOST);
}

/* Do as p3_lease_enter(), but begin by p3_lease_begin_to_pass(). */
static P3_HOT bool p3_lease_enter_to_pass(struct p3_nic *n)
{
	if (p3_unlikely(!p3_cas_acquire32(
		    &n->lease.word, P3_LEASE_FREE, P3_LEASE_HOST))) /* LEASE.1 */
		return false;
	p3_lease_begin_to_pass(n);
	return true;
}

/* Do as p3_lease_leave(), inlined if this hold has written to no peer. */
static P3_HOT void p3_lease_leave_here(struct p3_nic *n)
{
	if (!p3_straight() || p3_unlikely(n->ntouched | n->odd)) {
		p3_lease_leave(n);
		return;
	}
	struct p3_mailbox *mailbox = n->mailbox; /* still readable here */
	uint32_t posted = n->posted;
	bool light = n->light;
	n->unlooked = 0;
	n->posted = 0;
	p3_lease_give(&n->lease);
	p3_fence_light(light); /* LEASE.2, PARK.1, COLD.1 */
	if (p3_unlikely(p3_get(&n->parked) || p3_mbx_any(mailbox))) /* MBX.4 */
		p3_lease_left(n, &n->never_asleep, &n->never_cold, NULL, posted, mailbox);
}

#endif
