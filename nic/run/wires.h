/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wires - the wires between this node and its peers
 *
 * Each peer has a wire (nic/wire/wire.h), chosen when the NIC starts: shared memory,
 * which needs no pass, or the wire between hosts.  If some peer has the latter
 * (n->wired), passes poll and flush it.
 *
 * start and stop run with the NIC's; the lease holder calls the others, except where a
 * comment says (any).
 */
#ifndef P3_NIC_RUN_WIRES_H
#define P3_NIC_RUN_WIRES_H

#include "nic/state.h"

/* Choose the wire of each peer, and start the wire between hosts, and the thread that
 * rings for it.  Return 0 or -errno. */
int p3_wires_start(struct p3_nic *n);
void p3_wires_stop(struct p3_nic *n);

/* Only if n->wired. */
P3_RARE void p3_wires_poll(struct p3_nic *n);
P3_RARE void p3_wires_flush(struct p3_nic *n);

/* Return true if the wire has later work for which no peer rings the doorbell. */
static inline bool p3_wires_wait(const struct p3_nic *n)
{
	return n->wired && p3_wire_far.waits(n);
}

/* (any) Return true if the wire has delivered the messages that lay in the lanes at this
 * call of p3_nic_settle(). */
static inline bool p3_wires_have_settled(const struct p3_nic *n, uint32_t call)
{
	return !n->wired || (int32_t)(p3_get(&n->settled) - call) >= 0;
}

#endif
