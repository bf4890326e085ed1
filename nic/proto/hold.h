/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold - requests whose target is not there yet
 *
 * Such requests wait in the queue of a pseudo-peer: n->absent holds requests until their
 * targets join, n->unresolved until the NIC's owner has answered whether the target
 * exists (conf.ask and p3_nic_peer_told() of nic.h).  Requests to a peer that is expected
 * wait in the queue of that peer.
 *
 * Only the lease holder calls these functions.  The state is the two pseudo-peers,
 * held_most, asked and told in struct p3_nic.
 */
#ifndef P3_NIC_PROTO_HOLD_H
#define P3_NIC_PROTO_HOLD_H

#include "nic/state.h"

/* Find the queue of a request that cannot be sent now, or NULL if the request ends at
 * once.  Return PTL_OK, or PTL_NO_SPACE if too many requests are held. */
P3_RARE int p3_hold_find_queue(struct p3_nic *n, struct p3_peer *p, ptl_process_id_t who,
	struct p3_peer **to_out);
/* Ask whether targets that this node does not know exist.  Return the number of the
 * question whose answer counts.  At most one question is open: if there is one,
 * p3_join_told() asks the next one. */
static inline uint32_t p3_hold_ask(struct p3_nic *n)
{
	uint32_t next = n->asked + 1;
	if (n->told == n->asked)
		n->conf.ask(n->conf.ask_arg, ++n->asked);
	return next;
}
/* Hold the newest request in the queue of a pseudo-peer, or ask whether its target
 * exists. */
P3_RARE void p3_hold_newest(struct p3_nic *n, const struct p3_peer *pseudo);
/* Move a held request to the queue of its target if the target can take it now, and
 * return the target.  Otherwise return NULL.  If the request's node has joined without
 * the pid, ask whether another node has the pid. */
struct p3_peer *p3_hold_readdress(struct p3_nic *n, struct p3_pending *t);
/* Take a held request that is about to end out of its target's gauges, and show the
 * start of the next one's wait. */
void p3_hold_show_end(struct p3_nic *n, const struct p3_pending *t);
/* Fail the held requests whose target will not join any more. */
void p3_hold_give_up(struct p3_nic *n);

/* End the requests that the answer to the last question concerns.  Return -ESTALE if the
 * answer is to another question. */
int p3_hold_told(struct p3_nic *n, const struct p3_cmd *c);
/* Command: fail the requests that have been held for too long, and report the rest. */
int p3_hold_expire(struct p3_nic *n, struct p3_cmd *c);

#endif
