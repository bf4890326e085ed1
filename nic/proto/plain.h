/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain - the straight path of the most frequent requests
 *
 * Plain are puts whose bytes the message carries, and gets of a few bytes, with all the
 * circumstances that plain.c lists.  rx.c has the general path, which takes every
 * request, and takes a plain one in the same way.
 *
 * Only the lease holder calls this function.  The state is p->req_in of each peer, and
 * n->acl_cache.
 */
#ifndef P3_NIC_PROTO_PLAIN_H
#define P3_NIC_PROTO_PLAIN_H

#include "nic/state.h"

/* Do as p3_rx_take(). */
bool p3_plain_take(struct p3_nic *n, struct p3_peer *p);

#endif
