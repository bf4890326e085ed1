/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a hold of the lease, with the looks and wake-ups that belong to it. */
#include "nic/run/lease.h"
#include "nic/run/looks.h"
#include "nic/run/wake.h"

/* Return true if a parked thread must be woken: an event or result was posted, or the
 * lease is free and no watcher looks after the node. */
static bool must_wake_hosts(struct p3_nic *n, bool posted)
{
	return p3_get(&n->parked) && (posted || !p3_get(&n->watcher));
}

/* Give up the lease and do the looks.  Return true if the mailbox has a command now:
 * its poster saw the lease taken and relies on this thread. */
static bool leave(struct p3_nic *n)
{
	struct p3_looks l;
	struct p3_mailbox *mailbox = n->mailbox; /* still readable here */
	if (n->wired)
		n->wired->flush(n);
	p3_looks_gather(n, &l);
	bool light = n->light;
	P3_TRACE(given, n);
	p3_lease_give(&n->lease);
	p3_fence_light(light); /* LEASE.2, PARK.1, COLD.1 */
	p3_looks_check(n, &l);
	if (must_wake_hosts(n, l.posted))
		p3_wake_hosts(n);
	return p3_mbx_any(mailbox); /* MBX.4 */
}

P3_PATH
static __attribute__((noinline)) void leave_many(struct p3_nic *n)
{
	while (leave(n) && p3_lease_enter(n, P3_LEASE_HOST))
		;
}

/* Finish p3_lease_leave() in the uncommon cases, after the lease was given up.  The
 * arguments are words, not structs, so that the common case keeps them in registers. */
static P3_RARE void left(struct p3_nic *n, p3_a32 *asleep, const p3_a32 *cold,
	struct p3_doorbell *bell, bool posted, struct p3_mailbox *mailbox)
{
	p3_looks_tell(n, (struct p3_look){asleep, cold, bell});
	if (must_wake_hosts(n, posted))
		p3_wake_hosts(n);
	if (p3_mbx_any(mailbox) && p3_lease_enter(n, P3_LEASE_HOST)) /* MBX.4 */
		leave_many(n);
}

/* Do the same as leave_many(), without arrays if the thread touched one peer at
 * most. */
P3_PATH
void p3_lease_leave(struct p3_nic *n)
{
	if (p3_unlikely(n->ntouched > 1 || n->wired || n->traced)) {
		leave_many(n);
		return;
	}
	struct p3_mailbox *mailbox = n->mailbox; /* still readable here */
	struct p3_look l = {.asleep = &n->never_asleep, .cold = &n->never_cold};
	if (p3_likely(n->ntouched != 0))
		l = p3_looks_copy(n, n->touched[0]);
	bool posted = n->posted, light = n->light;
	n->ntouched = 0;
	n->unlooked = 0;
	n->posted = false;
	p3_lease_give(&n->lease);
	p3_fence_light(light); /* LEASE.2, PARK.1, COLD.1 */
	uint32_t news = p3_get(l.cold) | p3_get(l.asleep) | p3_get(&n->parked);
	if (p3_unlikely(news || p3_mbx_any(mailbox))) /* MBX.4 */
		left(n, l.asleep, l.cold, l.bell, posted, mailbox);
}
