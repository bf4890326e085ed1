/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane - CCI's messages into the lanes, and its answers
 *
 * Only the lease holder calls these functions.  The state is the rings of a peer, and
 * asked of its struct p3_cci_peer.
 */
#ifndef P3_NIC_CCI_LANE_H
#define P3_NIC_CCI_LANE_H

#include "nic/cci/format.h"
#include "nic/proto/proto.h"
#include "nic/run/run.h"
#include "nic/state.h"

/* Return true if there is room for a request of this number of cells, whose answer needs
 * rsp cells.  Give the pair its full lane if that is what the request needs. */
static inline bool p3_cci_has_room(
	struct p3_nic *n, struct p3_peer *p, uint32_t cells, uint32_t rsp)
{
	if (p3_unlikely(rsp + p->rsp_used > p->rsp_cap))
		return false;
	return p3_peer_has_room(p, &p->req_out, cells) ||
	       (p3_peer_grow_requests(n, p) && p3_peer_has_room(p, &p->req_out, cells));
}

/* Return the most cells of one message to the peer. */
static inline uint32_t p3_cci_most_cells(const struct p3_peer *p)
{
	return p3_ring_most(p->req_out.n);
}

/* Switch to the full ring when it is time, and return the place of a request, for which
 * there is room. */
static inline struct p3_cell *p3_cci_begin(
	struct p3_nic *n, struct p3_peer *p, uint32_t cells)
{
	if (p3_unlikely(!p->req_full) && !n->sparing && ++p->nsent >= 8)
		(void)p3_peer_grow_requests(n, p);
	return p3_ring_begin(&p->req_out, cells);
}

/* Publish the request that was filled. */
static inline void p3_cci_publish(struct p3_nic *n, struct p3_peer *p, uint32_t kind,
	uint32_t flags, uint32_t cells, uint32_t rsp)
{
	FAULT_POINT("cci.request_filled");
	p3_ring_publish(&p->req_out, p3_word0(kind, flags, cells), cells);
	FAULT_POINT("cci.request_published");
	p->rsp_used += rsp;
	p->cci.asked += rsp;
	if (p3_unlikely(!p->hot))
		p3_peer_heat(n, p);
	p3_looks_add(n, p);
	if (p3_likely(p->req_full || n->sparing))
		p3_ring_open(&p->req_out);
	n->worked = true;
}

/* Answer a request: begin the cell, and publish it.  p3_cci_answer_begin() returns NULL
 * if the peer does not listen, or has not reserved the cell. */
struct p3_cell *p3_cci_answer_begin(struct p3_nic *n, struct p3_peer *p);
void p3_cci_answer_send(struct p3_nic *n, struct p3_peer *p);
/* Answer with a status alone; xfer: the slot that is over, or 0. */
void p3_cci_answer(struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint64_t token,
	enum p3_cci_status status, uint64_t xfer);

#endif
