/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lose - deaths of peers
 *
 * This node first takes all messages that a lost peer had published, then ends all
 * operations with that peer.  A peer that breaks the protocol is lost, too.
 *
 * Only the lease holder calls these functions.  The state is struct p3_peer and
 * n->some_bad.
 */
#ifndef P3_NIC_PROTO_LOSE_H
#define P3_NIC_PROTO_LOSE_H

#include "nic/state.h"

/* Lose the peers that have broken the protocol. */
void p3_lose_bad(struct p3_nic *n);
/* Command: a peer has left or died.  Return -EAGAIN if one of its requests must wait for
 * an interface of this node to settle. */
int p3_lose_peer(struct p3_nic *n, struct p3_cmd *c);
/* Command: a rank has ended, which may have joined and left before this node joined. */
int p3_lose_rank(struct p3_nic *n, struct p3_cmd *c);

#endif
