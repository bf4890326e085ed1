/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange - getputs that wait for long transfers of the same bytes
 *
 * A getput is one step of one pass.  A long transfer goes on over many passes, and a peer
 * may read its bytes at any time.  While a transfer that has begun uses the bytes of a
 * getput, the getput waits, and no other transfer begins on these bytes.
 *
 * Only the lease holder calls these functions.  The state is n->swapper,
 * n->swapper_wants, n->swapper_until, and p->swap_pos and p->swap_ns of each peer.
 */
#ifndef P3_NIC_PROTO_EXCHANGE_H
#define P3_NIC_PROTO_EXCHANGE_H

#include "nic/match/match.h"
#include "nic/state.h"

/* Return true if a waiting exchange must go before a transfer of these bytes. */
bool p3_exchange_waits(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len);
/* Return true if the peer's transfer of these bytes must let an exchange of another peer
 * go first. */
bool p3_exchange_precedes(
	struct p3_nic *n, const struct p3_peer *p, const struct p3_hit *hit);
/* Return true if the peer's exchange may be done now.  Otherwise it begins to wait, or
 * goes on waiting. */
bool p3_exchange_may_go(struct p3_nic *n, struct p3_peer *p, const struct p3_hit *hit);
/* Note that the peer's exchange waits no longer. */
static inline void p3_exchange_over(struct p3_nic *n, const struct p3_peer *p)
{
	if (p3_unlikely(n->swapper == p))
		n->swapper = NULL;
}

#endif
