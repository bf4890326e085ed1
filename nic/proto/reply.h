/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reply - responses to requests of this node
 *
 * A response names its pending.  The request has reserved room for the response, and
 * the reservation ends when the response has been taken.
 *
 * Only the lease holder calls these functions.  The state is p->rsp_in and p->rsp_used
 * of each peer.
 */
#ifndef P3_NIC_PROTO_REPLY_H
#define P3_NIC_PROTO_REPLY_H

#include "nic/state.h"

/* Take one response off the lane.  Return false if there is none, or if it is invalid:
 * then the peer is marked as bad. */
bool p3_reply_take(struct p3_nic *n, struct p3_peer *p);

#endif
