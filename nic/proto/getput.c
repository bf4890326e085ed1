/* SPDX-License-Identifier: BSD-3-Clause */
/* Getputs that wait for long transfers of the same bytes. */
#include "nic/proto/proto.h"

#include "nic/obj/state.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"

bool p3_getput_waits(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len)
{
	return p3_region_bounds_meet(n->swapper_wants, r, off, len) && n->swapper &&
	       p3_now_ns() < n->swapper_until;
}

bool p3_getput_precedes(
	struct p3_nic *n, const struct p3_peer *p, const struct p3_hit *hit)
{
	return p3_unlikely(n->swapper && n->swapper != p) &&
	       p3_getput_waits(n, &hit->md->region, hit->offset, hit->mlength);
}

/*
 * Let a getput wait until the transfers on its bytes end, but no longer than P3_SWAP_NS
 * by this node's clock: whether they move is known from the peers' words only, which may
 * be wrong.  No transfer begins on the bytes of the getput of the peer that n->swapper
 * names.  It may name this peer once n->swapper_until has passed: then the time of the
 * getput that was named before is over, and if that one waited in vain, transfers have
 * had time to begin.
 */
static P3_RARE void getput_begin_wait(
	struct p3_nic *n, struct p3_peer *p, const struct p3_hit *hit, uint64_t now)
{
	if (!p->swap_ns || p->swap_pos != p->req_in.pos) {
		p->swap_ns = now;
		p->swap_pos = p->req_in.pos;
	}
	if (n->swapper != p && now >= n->swapper_until) {
		n->swapper = p;
		p3_odd_set(n, P3_ODD_SWAPPER);
		n->swapper_until = p->swap_ns + P3_SWAP_NS;
		n->swapper_wants =
			p3_region_bounds(&hit->md->region, hit->offset, hit->mlength);
	}
}

bool p3_getput_may_go(struct p3_nic *n, struct p3_peer *p, const struct p3_hit *hit)
{
	bool waited = p3_unlikely(p->swap_ns != 0) && p->swap_pos == p->req_in.pos;
	uint64_t now = waited ? p3_now_ns() : 0;
	uint64_t ns = waited ? now - p->swap_ns : 0;
	bool late = ns >= P3_SWAP_NS;
	if (!p3_xfer_may_swap(n, &hit->md->region, hit->offset, hit->mlength, ns)) {
		getput_begin_wait(n, p, hit, now ? now : p3_now_ns());
		return false;
	}
	if (n->swapper == p)
		n->swapper_until = late ? now + P3_SWAP_NS : 0;
	p->swap_ns = 0;
	return true;
}
