/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peek - a pass that finds nothing, in few instructions
 *
 * A program that polls finds nothing most of the time.  p3_peek() then does all that a
 * pass would do: it takes the lease (the memory of a peer may be read under the lease
 * only), looks at one word of each hot lane, counts a hold of the lease and a pass, and
 * gives the lease up.  If there is work, it keeps the lease for the caller.
 *
 * Any host thread that is in no other call of the library may call p3_peek().  The file
 * has no state.
 */
#ifndef P3_NIC_RUN_PEEK_H
#define P3_NIC_RUN_PEEK_H

#include "nic/proto/proto.h"
#include "nic/report/mirror.h"
#include "nic/run/lease.h"
#include "nic/run/odd.h"

enum p3_peeked {
	P3_PEEK_BUSY,    /* another thread has the lease */
	P3_PEEK_NEWS,    /* this thread has the lease: it calls p3_lease_begin(), and runs
			  * passes */
	P3_PEEK_NOTHING, /* there is nothing to do, and the lease is given up */
	P3_PEEK_LEFT     /* as P3_PEEK_NOTHING, but a thread is parked or a command was
			  * posted: the caller calls p3_lease_left() with *mailbox_out */
};

/* Return true if no hot lane has a message. */
static P3_HOT bool p3_peek_has_emptied(struct p3_nic *n)
{
	struct p3_peer **at = n->hot;
	for (uint32_t left = n->nhot; left; left--, at++) {
		struct p3_peer *p = *at;
		if (p3_unlikely(p3_ring_any(&p->req_in) || p3_peer_has_response(p)))
			return false;
		p->deep = 0; /* as after a visit that finds nothing (pass.c) */
	}
	return true;
}

/* Return true if the lease holder has nothing to do, and this pass is not one that writes
 * the gauges for tools.  Count the pass then. */
static P3_HOT bool p3_peek_is_idle(struct p3_nic *n, struct p3_mailbox *mailbox)
{
	if (p3_unlikely(n->odd || p3_mbx_any(mailbox) || !p3_peek_has_emptied(n)))
		return false;
	uint64_t passes = p3_get(&n->count[P3_C_PASSES]) + 1;
	if (p3_unlikely(passes % P3_MIRROR_PASSES == 0))
		return false;
	p3_set(&n->count[P3_C_PASSES], passes);
	return true;
}

static P3_HOT enum p3_peeked p3_peek(struct p3_nic *n, struct p3_mailbox **mailbox_out)
{
	if (p3_unlikely(!p3_lease_take(&n->lease, P3_LEASE_HOST)))
		return P3_PEEK_BUSY;
	struct p3_mailbox *mailbox = n->mailbox; /* still readable after the give */
	if (p3_unlikely(!p3_peek_is_idle(n, mailbox)))
		return P3_PEEK_NEWS;
	p3_count(&n->count[P3_C_LEASE_HOST], 1);
	p3_count(&n->drained, 1);
	p3_set(&n->emptied, 0);
	bool light = n->light;
	p3_lease_give(&n->lease);
	p3_fence_light(light); /* LEASE.2 */
	*mailbox_out = mailbox;
	bool left = p3_get(&n->parked) || p3_mbx_any(mailbox); /* MBX.4 */
	return p3_unlikely(left) ? P3_PEEK_LEFT : P3_PEEK_NOTHING;
}

#endif
