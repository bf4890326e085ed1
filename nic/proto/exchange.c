/* SPDX-License-Identifier: BSD-3-Clause */
/* Getputs that wait for long transfers of the same bytes. */
#include "nic/proto/exchange.h"

#include "nic/obj/state.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"

static bool is_waiting(const struct p3_nic *n)
{
	return n->swapper && p3_now_ns() < n->swapper_until;
}

bool p3_exchange_waits(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len)
{
	return p3_region_bounds_meet(n->swapper_wants, r, off, len) && is_waiting(n);
}

bool p3_exchange_precedes(
	struct p3_nic *n, const struct p3_peer *p, const struct p3_hit *hit)
{
	return p3_unlikely(n->swapper && n->swapper != p) &&
	       p3_exchange_waits(n, &hit->md->region, hit->offset, hit->mlength);
}

/* Return true if n->swapper may name this peer, so that no transfer begins on the bytes
 * of the peer's waiting exchange.  That is so once n->swapper_until has passed: then the
 * time of the exchange that was named before is over, and if that exchange waited in
 * vain, transfers have had time to begin. */
static bool is_vacant(const struct p3_nic *n, const struct p3_peer *p, uint64_t now)
{
	return n->swapper != p && now >= n->swapper_until;
}

/*
 * Let an exchange wait until the transfers on its bytes end, but no longer than
 * P3_SWAP_NS by this node's clock: whether they move is known from the peers' words
 * only, which may be wrong.
 */
static P3_RARE void wait_to_swap(
	struct p3_nic *n, struct p3_peer *p, const struct p3_hit *hit, uint64_t now)
{
	if (!p->swap_ns || p->swap_pos != p->req_in.pos) {
		p->swap_ns = now;
		p->swap_pos = p->req_in.pos;
	}
	if (is_vacant(n, p, now)) {
		n->swapper = p;
		p3_odd_set(n, P3_ODD_SWAPPER);
		n->swapper_until = p->swap_ns + P3_SWAP_NS;
		n->swapper_wants =
			p3_region_bounds(&hit->md->region, hit->offset, hit->mlength);
	}
}

bool p3_exchange_may_go(struct p3_nic *n, struct p3_peer *p, const struct p3_hit *hit)
{
	bool waited = p3_unlikely(p->swap_ns != 0) && p->swap_pos == p->req_in.pos;
	uint64_t now = waited ? p3_now_ns() : 0;
	uint64_t ns = waited ? now - p->swap_ns : 0;
	bool late = ns >= P3_SWAP_NS;
	if (!p3_xfer_may_swap(n, &hit->md->region, hit->offset, hit->mlength, ns)) {
		wait_to_swap(n, p, hit, now ? now : p3_now_ns());
		return false;
	}
	if (n->swapper == p)
		n->swapper_until = late ? now + P3_SWAP_NS : 0;
	p->swap_ns = 0;
	return true;
}
