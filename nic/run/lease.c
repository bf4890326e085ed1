/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a hold of the lease, with the looks and wake-ups that belong to it. */
#include "nic/run/lease.h"
#include "nic/cci/firmware.h"
#include "nic/run/looks.h"
#include "nic/run/odd.h"
#include "nic/run/ringer.h"
#include "nic/run/wake.h"
#include "nic/run/wires.h"

#include <stdlib.h>

/* Wake the parked threads that wait for the posted news; and one of them to tend the node
 * if the lease is free for it, and no watcher looks after the node. */
static void wake_parked(struct p3_nic *n, uint32_t posted)
{
	if (!p3_get(&n->parked))
		return;
	if (posted)
		p3_wake_hosts(n, posted);
	if (!n->generic && !p3_get(&n->watcher))
		p3_wake_tender(n);
}

/* Give up the lease and do the looks.  Return true if the mailbox has a command now:
 * its poster saw the lease taken and relies on this thread. */
static bool leave(struct p3_nic *n)
{
	struct p3_looks l;
	struct p3_mailbox *mailbox = n->mailbox; /* still readable here */
	p3_looks_gather(n, &l);
	bool light = n->light;
	if (p3_unlikely(n->cci.dirty))
		p3_cci_event_signal(n);
	P3_TRACE(given, n);
	if (p3_unlikely(n->generic != NULL))
		p3_lease_give_reserved(&n->lease);
	else
		p3_lease_give(&n->lease);
	p3_fence_light(light); /* LEASE.2, PARK.1, COLD.1 */
	p3_looks_check(n, &l);
	wake_parked(n, l.posted);
	return p3_mbx_any(mailbox); /* MBX.4 */
}

/* Do as leave() where a wire carries frames.  If a thread of this node sleeps, arm the
 * wire's descriptor for that thread: the passes and commands of this hold may have
 * changed the time of the wire's next pass. */
static P3_RARE bool leave_wired(struct p3_nic *n)
{
	p3_wires_flush(n);
	bool due = n->ringer && p3_get(n->asleep) != P3_AWAKE &&
		   p3_ringer_arm(n); /* PARK.2 */
	bool more = leave(n);
	if (due)
		p3_ringer_wake(n);
	return more;
}

P3_PATH
static __attribute__((noinline)) void leave_many(struct p3_nic *n)
{
	while ((n->nwires ? leave_wired(n) : leave(n)) &&
		p3_lease_enter(n, P3_LEASE_HOST))
		;
}

P3_RARE void p3_lease_left(struct p3_nic *n, p3_a32 *asleep, const p3_a32 *cold,
	struct p3_doorbell *bell, uint32_t posted, struct p3_mailbox *mailbox)
{
	p3_looks_tell(n, (struct p3_look){asleep, cold, bell});
	wake_parked(n, posted);
	if (p3_mbx_any(mailbox) && p3_lease_enter(n, P3_LEASE_HOST)) /* MBX.4 */
		leave_many(n);
}

/* Abort the program if n->odd lacks a bit that must be set (odd.h), in builds with
 * P3_STRAIGHT=random. */
static inline void check_odd(const struct p3_nic *n)
{
#ifdef P3_STRAIGHT_RANDOM
	if (p3_odd_now(n) & ~n->odd)
		abort();
#else
	(void)n;
#endif
}

/* Do as leave_many(), and without arrays if this hold has written to one peer at most. */
P3_PATH
void p3_lease_leave(struct p3_nic *n)
{
	check_odd(n);
	const uint32_t odd = P3_ODD_WIRED | P3_ODD_TRACED | P3_ODD_CCI | P3_ODD_GENERIC;
	if (p3_unlikely(n->ntouched > 1 || n->odd & odd)) {
		leave_many(n);
		return;
	}
	struct p3_mailbox *mailbox = n->mailbox; /* still readable here */
	struct p3_look l = {.asleep = &n->never_asleep, .cold = &n->never_cold};
	if (p3_likely(n->ntouched != 0))
		l = p3_looks_copy(n, n->touched[0]);
	uint32_t posted = n->posted;
	bool light = n->light;
	n->ntouched = 0;
	n->unlooked = 0;
	n->posted = 0;
	p3_lease_give(&n->lease);
	p3_fence_light(light); /* LEASE.2, PARK.1, COLD.1 */
	uint32_t news = p3_get(l.cold) | p3_get(l.asleep) | p3_get(&n->parked);
	if (p3_unlikely(news || p3_mbx_any(mailbox))) /* MBX.4 */
		p3_lease_left(n, l.asleep, l.cold, l.bell, posted, mailbox);
}
