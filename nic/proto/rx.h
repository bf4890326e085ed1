/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rx - requests received: header check, matching
 *
 * Each request is taken when it can be done, or it stays in its lane: for room among the
 * pulls, for an exchange, or for an interface that settles.  So a lane keeps its order.
 *
 * deliver.h delivers the requests that an entry accepts.
 *
 * Only the lease holder calls these functions.  The state is p->req_in of each peer.
 */
#ifndef P3_NIC_PROTO_RX_H
#define P3_NIC_PROTO_RX_H

#include "nic/state.h"

/* Take one request off the lane.  Return false if there is none, or it must wait. */
bool p3_rx_take(struct p3_nic *n, struct p3_peer *p);
/* Take the peer's requests.  Return true if one of them waits for an interface of this
 * node to settle. */
bool p3_rx_settles(struct p3_nic *n, struct p3_peer *p);
/* Discard the request of a dead or departed peer that would have to wait.  Return false
 * if there is none. */
bool p3_rx_refuse(struct p3_nic *n, struct p3_peer *p);

#endif
