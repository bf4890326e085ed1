/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * answer - responses of this node to requests of its peers
 *
 * The initiator of a request has reserved room for the response, so a response never
 * waits for room.  A reply that carries data is written in two steps, because the
 * target of an exchange must write its memory between them.
 *
 * Only the lease holder calls these functions.  The state is p->rsp_out and the counter
 * p->nanswered of each peer.
 */
#ifndef P3_NIC_PROTO_ANSWER_H
#define P3_NIC_PROTO_ANSWER_H

#include "nic/match/match.h"
#include "nic/proto/format.h"
#include "nic/proto/peer.h"
#include "nic/run/run.h"
#include "nic/state.h"

/* Respond with one cell. */
void p3_answer_respond(struct p3_nic *n, struct p3_peer *p, const struct p3_answer *a);
/* Respond with a kind, a pending and a length alone. */
void p3_answer_briefly(struct p3_nic *n, struct p3_peer *p, uint32_t pending,
	enum p3_rsp_kind kind, uint64_t mlength);

/* Return true if the caller may publish a response of one cell to this living peer by
 * p3_answer_at_once(): the response ring is open.  If the ring is shut, open it first if
 * it is a full one with room. */
static P3_HOT bool p3_answer_may_go(struct p3_peer *p)
{
	if (p3_ring_runs(&p->rsp_out, 1))
		return true;
	if (p->rsp_full && p3_peer_has_room(p, &p->rsp_out, 1))
		p3_ring_open(&p->rsp_out);
	return p3_ring_runs(&p->rsp_out, 1);
}

/* Publish the response of one cell that is filled in at p->rsp_out.next. */
static P3_HOT void p3_answer_at_once(struct p3_nic *n, struct p3_peer *p, uint64_t word0)
{
	p3_ring_run(&p->rsp_out, word0, 1);
	p3_looks_add(n, p);
}

/* Return true if the response ring has room for a reply of this length. */
bool p3_answer_has_room(struct p3_peer *p, uint64_t mlength);
/* Copy the present bytes of a descriptor's region into a reply that is not published yet.
 * Call this only after p3_answer_has_room() has returned true.  Return word 0 of the
 * reply's header, for p3_answer_send(). */
uint64_t p3_answer_fill(struct p3_nic *n, struct p3_peer *p, uint32_t pending,
	const struct p3_region *from, uint64_t offset, uint64_t mlength);
/* Publish the reply that p3_answer_fill() has filled. */
void p3_answer_send(
	struct p3_nic *n, struct p3_peer *p, uint64_t word0, uint64_t mlength);

/* Count a dropped message of this length.  ni is its interface, or NULL. */
void p3_answer_drop(struct p3_nic *n, struct p3_ni *ni, uint64_t length);

#endif
