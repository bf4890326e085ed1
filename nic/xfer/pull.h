/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pull - pulls: the reading of long transfers into the memory of this process
 *
 * A pull belongs to a put into this node, whose target reads the bytes, or to a get of
 * this node.  Each pass moves a slice of each pull that can go on.  A reader that finds
 * its window empty reads a slice from the message's other end by cma meanwhile.  If that
 * is impossible the reader waits: after P3_STALL_NS (pull.c) it reads the rest by cma,
 * or, where cma is not allowed, it kicks the owner's NIC.
 *
 * Only the lease holder calls these functions.  Their state is the list n->pulls, the
 * pool n->pull, and each peer's own pull.
 */
#ifndef P3_NIC_XFER_PULL_H
#define P3_NIC_XFER_PULL_H

#include "nic/state.h"

/* Return an empty pull for a put of the peer, or NULL if the peer has no more of its own
 * and of the pool. */
struct p3_pull *p3_pull_alloc(struct p3_nic *n, struct p3_peer *p);
/* Return true if the bytes lie in the source's heap, and this node has mapped it. */
bool p3_xfer_sees_heap(const struct p3_pull *pull);
/* Begin a pull, whose span, length and place at the source are set. */
void p3_pull_begin(struct p3_nic *n, struct p3_pull *pull);
/* Move a slice of every pull that can go on. */
__attribute__((noinline)) void p3_pull_move(struct p3_nic *n);
/* End a pull, and with it the put or get: all bytes are read, or never will be. */
void p3_pull_end(struct p3_nic *n, struct p3_pull *pull, uint32_t fail);
/* End all pulls and served gets of an interface that closes, without an event. */
void p3_xfer_forget(struct p3_nic *n, uint32_t ni);

#endif
