/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wires - the wires between this node and its peers
 *
 * Each peer has a wire (nic/wire/wire.h), chosen when the NIC starts.  Shared memory
 * needs no pass.  The other wires that some peer has are n->wires, of which there are
 * n->nwires; passes poll all of them, and flush them.  One node may have peers on several
 * wires at once.
 *
 * start and stop run with the NIC's; the lease holder calls the others, except where a
 * comment says (any).
 */
#ifndef P3_NIC_RUN_WIRES_H
#define P3_NIC_RUN_WIRES_H

#include "nic/state.h"

/* Choose the wire of each peer, and start the wires, and the thread that rings for them.
 * Return 0 or -errno. */
int p3_wires_start(struct p3_nic *n);
void p3_wires_stop(struct p3_nic *n);

P3_RARE void p3_wires_poll(struct p3_nic *n);
P3_RARE void p3_wires_flush(struct p3_nic *n);

/* Copy the wires' counters for tools. */
void p3_wires_show(struct p3_nic *n);

/* Return true if a wire has later work for which no peer rings the doorbell. */
static inline bool p3_wires_wait(const struct p3_nic *n)
{
	for (uint32_t i = 0; i < n->nwires; i++)
		if (n->wires[i]->waits(n))
			return true;
	return false;
}

/* (any) Return true if all wires have delivered the messages that lay in the lanes at
 * this call of p3_nic_settle(). */
bool p3_wires_have_settled(const struct p3_nic *n, uint32_t call);

#endif
