/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deliver - requests received: delivery to the descriptor that accepts them
 *
 * A request that cannot be delivered now stays in its lane, and is tried again: it waits
 * for room among the pulls, for room in the response ring, or for an exchange.
 *
 * Only the lease holder calls these functions.  The state is p->behind of each peer, and
 * n->settling_until.
 */
#ifndef P3_NIC_PROTO_DELIVER_H
#define P3_NIC_PROTO_DELIVER_H

#include "nic/match/match.h"
#include "nic/proto/format.h"
#include "nic/state.h"

/* A request as copied, once, from its header cell. */
struct p3_incoming {
	struct p3_ask ask;
	const struct p3_cell *cell;
	uint32_t flags;
	uint32_t ncells;
	uint32_t pending; /* the initiator's pending, 0: no response is requested */
	uint32_t rsp;     /* cells reserved for the response */
	uint32_t target_pid;
	uint64_t data[2];
	uint64_t xfer;  /* the initiator's slot */
	uint64_t place; /* long put: place of the bytes, if the header names it */
};

/* A request whose entry the host has found, and whose bytes the firmware is to move. */
struct p3_placed {
	struct p3_span span;
	uint64_t mlength;
	bool ack; /* the initiator gets an acknowledgement */
};

/* Copy a request from its header cell. */
static inline void p3_incoming_load(
	struct p3_peer *p, const struct p3_cell *c, uint64_t w0, struct p3_incoming *r)
{
	struct p3_request m;
	p3_unpack_request(c, w0, &m);
	r->cell = c;
	r->flags = m.flags;
	r->ncells = m.ncells;
	r->target_pid = m.pid;
	r->rsp = m.room;
	r->pending = m.pending;
	r->data[0] = m.data[0];
	r->data[1] = m.data[1];
	r->xfer = m.xfer;
	r->place = m.place;
	r->ask = (struct p3_ask){.kind = (uint8_t)m.kind,
		.pt_index = m.portal,
		.ac_index = m.access,
		.bits = m.bits,
		.hdr = m.hdr,
		.remote_offset = m.offset,
		.length = m.length,
		.who = p3_match_initiator(p, m.flags),
		.owner = p3_pair(p->jid, p->uid)};
}

/* Deliver a request to the descriptor that has accepted it.  Return false if it must
 * wait: then nothing has changed. */
bool p3_deliver(struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r,
	const struct p3_hit *hit);
/* Do the first half of a delivery (generic/): account for a put whose bytes are in the
 * lane, or for a get whose bytes fit a reply, and post its START. */
P3_RARE void p3_deliver_place(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_hit *hit, struct p3_placed *t_out);
/* Do the second half: move the bytes, post END, and answer.  Return false if the response
 * ring has no room: then nothing has changed. */
P3_RARE bool p3_deliver_move(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, struct p3_placed *t);
/* End the delivery without its bytes, since the peer is lost. */
P3_RARE void p3_deliver_fail(
	struct p3_nic *n, const struct p3_incoming *r, struct p3_placed *t);
/* Drop a request that no entry accepts.  Respond if the initiator has reserved room for
 * a response, so that it can use that room again.  ni is the target, or NULL. */
P3_RARE void p3_deliver_discard(
	struct p3_nic *n, struct p3_peer *p, struct p3_ni *ni, struct p3_incoming r);
/*
 * Return true while a new interface settles: until its program serves it, a request
 * that no entry accepts stays in its lane, since the program may be about to attach
 * that entry.  Programs for a library that looks at messages only inside of calls
 * expect this.  The program serves the interface once it has looked for an event and
 * found none, has sent, or has entered a barrier.  After ten seconds the interface counts
 * as served.
 */
P3_RARE bool p3_deliver_settles(struct p3_nic *n, struct p3_ni *ni);

#endif
