/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * join - births of peers
 *
 * A peer is EXPECTED until its segment is mapped here, then LIVE.  Its birth resets both
 * directions of the lane, and sends the requests that have waited for the peer.
 *
 * Only the lease holder calls these functions.  The state is struct p3_peer.
 */
#ifndef P3_NIC_PROTO_JOIN_H
#define P3_NIC_PROTO_JOIN_H

#include "nic/state.h"

/* Command: a peer has joined, and is mapped unless its base is NULL. */
int p3_join_peer(struct p3_nic *n, struct p3_cmd *c);
/* Command: a question is answered (p3_nic_peer_told() of nic.h). */
int p3_join_told(struct p3_nic *n, struct p3_cmd *c);
/* Command: a peer has opened an interface. */
int p3_join_pids(struct p3_nic *n, struct p3_cmd *c);

#endif
