/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table - the transfer table: slots of bytes that peers may read
 *
 * A slot offers bytes of this node to one peer: those of an own long put, or those that
 * a peer's long get asks for.  It also serves an own long get, whose release it
 * publishes.  The private half is struct p3_xfer_slot, the half in the published segment
 * struct p3_xfer (shm/layout.h).  Only the lease holder calls these functions.  Their
 * state is n->xfer, the list n->sources of published slots, and the free windows in
 * n->window_free.  XFER.1 to XFER.7 are edges of xfer.h.
 */
#ifndef P3_NIC_XFER_TABLE_H
#define P3_NIC_XFER_TABLE_H

#include "nic/proto/proto.h"
#include "nic/state.h"

/* Return the peer's published half of a slot; the caller has range-checked the number. */
static inline const struct p3_xfer *p3_xfer_of_peer(
	const struct p3_nic *n, const struct p3_peer *p, uint64_t id)
{
	return (const struct p3_xfer *)(p->image + n->layout.xfers_off) + (uint32_t)id;
}

void p3_xfer_start(struct p3_nic *n);
/* Stop all reads of this process's memory when the NIC stops. */
void p3_xfer_revoke_all(struct p3_nic *n);

/* The two halves of the table: slots of own requests, and of served ones. */
enum p3_xfer_class { P3_X_OWN, P3_X_SERVE };
/* Return a slot for a transfer to or from the peer, or NULL if the peer has used up its
 * share of slots. */
struct p3_xfer_slot *p3_xfer_alloc(
	struct p3_nic *n, struct p3_peer *p, enum p3_xfer_class class);
/* Let the peer read the bytes of x->span. */
void p3_xfer_publish(struct p3_nic *n, struct p3_xfer_slot *x);
void p3_xfer_free(struct p3_nic *n, struct p3_xfer_slot *x);
/* Stop all reads of a slot's bytes, which only the program uses from now on.  The slot
 * stays in use until the peer answers. */
void p3_xfer_withdraw(struct p3_nic *n, struct p3_xfer_slot *x);
/* Return true if a peer of this host is reading a slice of a transfer that this node has
 * withdrawn.  A heavy fence lies between the withdrawal and this call: XFER.7. */
bool p3_xfer_is_read(const struct p3_nic *n);
/* Return a slot's window to the free ones. */
void p3_xfer_free_window(struct p3_nic *n, struct p3_xfer_slot *x);

static inline uint64_t p3_xfer_name(const struct p3_xfer_slot *x)
{
	return p3_xfer_id(x->slot, x->gen);
}

/*
 * Return true if the target can read these bytes sooner from a heap that it has mapped,
 * or by a cross-memory read, than through the lane, which they would fit
 * (docs/design/movers.md).  The caller asks only for a put with SEND_END, which tells the
 * program when the bytes may change; the call of a put without SEND_END must copy them.
 */
#define P3_EAGER_MOST_HEAP 1536u
#define P3_EAGER_MOST      P3_SHORT_MOST
bool p3_xfer_is_faster(const struct p3_nic *n, const struct p3_peer *p,
	const struct p3_region *r, uint64_t off, uint64_t len);

/*
 * XFER.6: the bytes of a slot change, or the slot loses its window.  The reader notices,
 * does not count its last slice, and tells where in the window it continues.
 *
 *	p3_xfer_begin_change	of each slot
 *	p3_fence		once
 *	p3_xfer_log_change	of each slot
 *	...			the bytes
 *	p3_xfer_end_change	of each slot
 */
void p3_xfer_begin_change(struct p3_xfer_slot *x, struct p3_range change);
void p3_xfer_log_change(struct p3_xfer_slot *x);
void p3_xfer_end_change(struct p3_xfer_slot *x);

#endif
