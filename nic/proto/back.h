/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back - the straight path of the most frequent responses
 *
 * Such responses are acknowledgements, and replies of one cell, with all the
 * circumstances that back.c lists.  reply.c has the general path, which takes every
 * response, and takes such a response in the same way.
 *
 * Only the lease holder calls these functions.  The state is that of reply.h.
 */
#ifndef P3_NIC_PROTO_BACK_H
#define P3_NIC_PROTO_BACK_H

#include "nic/proto/peer.h"
#include "nic/state.h"

/* Do as p3_reply_take(); the caller has seen that there is a response. */
bool p3_back_take(struct p3_nic *n, struct p3_peer *p);

static inline void p3_back_take_all(struct p3_nic *n, struct p3_peer *p)
{
	while (p3_unlikely(p3_peer_has_response(p)))
		if (!p3_back_take(n, p))
			break;
}

#endif
