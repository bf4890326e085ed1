/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tx - puts and gets of this node: admission, reservations, send queues
 *
 * A put that needs no response and finds room leaves at once.  The other requests become
 * pendings in the queue of their target (pending.h), and leave in the order of the calls.
 *
 * Only the lease holder calls these functions.  The state is p->req_out, p->rsp_used and
 * p->queue of each peer, and n->blocked.
 */
#ifndef P3_NIC_PROTO_TX_H
#define P3_NIC_PROTO_TX_H

#include "nic/state.h"

/* Commands: admit a request, and send it if there is room. */
int p3_tx_put(struct p3_nic *n, struct p3_cmd *c);
int p3_tx_get(struct p3_nic *n, struct p3_cmd *c);
int p3_tx_getput(struct p3_nic *n, struct p3_cmd *c);
/* End the operation of a command that found no room among the pendings, and whose
 * poster does not wait for a return code: the operation's events say that it failed. */
P3_RARE void p3_tx_refuse(struct p3_nic *n, struct p3_cmd *c);
/* Send from the front of the peer's queue while there is room. */
void p3_tx_push(struct p3_nic *n, struct p3_peer *p);
/* Do so for each peer in n->blocked. */
__attribute__((noinline)) void p3_tx_unblock(struct p3_nic *n);

#endif
