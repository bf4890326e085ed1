/* SPDX-License-Identifier: BSD-3-Clause */
/* The firmware's part: headers to the host, and receive commands. */
#include "nic/generic/take.h"

#include "nic/generic/queue.h"
#include "nic/generic/upper.h"
#include "nic/obj/span.h"
#include "nic/proto/proto.h"
#include "shm/fault.h"
#include "shm/park.h"

#include <string.h>

/* Give the host the header, with as much of its payload as goes with it. */
static void ask(struct p3_nic *n, struct p3_peer *p, struct p3_upper *u,
	const struct p3_incoming *r)
{
	u->r = *r;
	u->pos = p->req_in.pos;
	u->ncells = p->req_in.n;
	if (r->ncells <= P3_UPPER_CELLS) {
		memcpy(u->cell, r->cell, r->ncells * sizeof *r->cell);
		u->r.cell = u->cell;
	}
	u->wait_ns = 0;
	u->state = P3_UPPER_ASKED;
	FAULT_POINT("generic.asked");
	p3_generic_stage_header(n, p->index, P3_GENERIC_HEADER);
	n->worked = true;
}

static void ask_again(struct p3_nic *n, struct p3_peer *p, struct p3_upper *u)
{
	if (p3_now_ns() < u->again_ns)
		return;
	n->generic->later--;
	u->state = P3_UPPER_ASKED;
	p3_generic_stage_header(n, p->index, P3_GENERIC_HEADER);
}

/* Forget a question to the host, for a peer that is going.  Its entry in the queue finds
 * another state. */
static enum p3_generic_next go_alone(struct p3_nic *n, struct p3_upper *u)
{
	if (u->state == P3_UPPER_LATER)
		n->generic->later--;
	u->state = P3_UPPER_FREE;
	return P3_GENERIC_DIRECT;
}

/* Return true if the request r at the head of the lane is the one of this upper pending.
 * Its header was checked and copied, but its peer may have changed the lane since. */
static bool is_the_same(
	const struct p3_upper *u, const struct p3_peer *p, const struct p3_incoming *r)
{
	return u->pos == p->req_in.pos && u->ncells == p->req_in.n &&
	       u->r.ncells == r->ncells && u->r.ask.kind == r->ask.kind &&
	       u->r.ask.length == r->ask.length;
}

enum p3_generic_next p3_generic_take(
	struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r)
{
	struct p3_upper *u = &n->generic->upper[p->index];
	if (u->state != P3_UPPER_FREE && !is_the_same(u, p, r)) {
		p3_peer_ignore(n, p, "a request that changed while it waited");
		return P3_GENERIC_WAIT;
	}
	if (u->state == P3_UPPER_RECEIVE) {
		u->r.cell = r->cell;
		if (!p3_deliver_move(n, p, &u->r, &u->placed))
			return P3_GENERIC_WAIT;
		u->state = P3_UPPER_DONE;
	}
	if (u->state == P3_UPPER_DONE) {
		u->state = P3_UPPER_FREE;
		return P3_GENERIC_TAKEN;
	}
	if (p->going)
		return go_alone(n, u);
	if (u->state == P3_UPPER_FREE && !p3_peer_has_response(p))
		ask(n, p, u, r);
	else if (u->state == P3_UPPER_LATER)
		ask_again(n, p, u);
	return P3_GENERIC_WAIT;
}

/* Return true if the response has bytes that did not go with its header. */
static bool has_to_move(const struct p3_generic *g, const struct p3_cell *c, uint64_t w0)
{
	struct p3_answer a;
	p3_unpack_answer(c, w0, &a);
	return a.kind == P3_RSP_REPLY_LONG ||
	       (a.kind == P3_RSP_REPLY && a.mlength > g->inlined);
}

bool p3_generic_reply_waits(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0)
{
	struct p3_upper *u = &n->generic->upper[p->index];
	bool free = u->reply_state == P3_UPPER_FREE;
	if (free && !p->going && has_to_move(n->generic, c, w0)) {
		u->reply_state = P3_UPPER_ASKED;
		p3_generic_stage_header(n, p->index, P3_GENERIC_REPLY);
		n->worked = true;
		return true;
	}
	if (u->reply_state == P3_UPPER_ASKED && !p->going)
		return true;
	u->reply_state = P3_UPPER_FREE;
	return false;
}

bool p3_generic_is_done(const struct p3_nic *n, const struct p3_peer *p)
{
	return n->generic->upper[p->index].state == P3_UPPER_DONE;
}

bool p3_generic_refuse(struct p3_nic *n, struct p3_peer *p)
{
	struct p3_upper *u = &n->generic->upper[p->index];
	if (u->state != P3_UPPER_RECEIVE)
		return false;
	p3_deliver_fail(n, &u->r, &u->placed);
	u->state = P3_UPPER_FREE;
	return true;
}

void p3_generic_lose(struct p3_nic *n, struct p3_peer *p)
{
	if (!n->generic)
		return;
	struct p3_upper *u = &n->generic->upper[p->index];
	if (!p3_generic_refuse(n, p))
		(void)go_alone(n, u);
	u->reply_state = P3_UPPER_FREE;
}

/* Forget a request; its initiator gets no more than the room for its response back. */
static void forget(struct p3_nic *n, struct p3_peer *p, struct p3_upper *u)
{
	p3_span_forget(&u->placed.span);
	if (u->r.pending && p->state == P3_LIVE)
		p3_rsp_send_brief(n, p, u->r.pending, P3_RSP_NONE, 0);
	u->state = P3_UPPER_DONE;
}

void p3_generic_forget(struct p3_nic *n, uint32_t ni)
{
	struct p3_generic *g = n->generic;
	for (uint32_t i = 0; g && i < g->nupper; i++) {
		struct p3_upper *u = &g->upper[i];
		const struct p3_md *md = u->placed.span.md;
		if (u->state == P3_UPPER_RECEIVE && (ni == P3_JOB_NIS || md->o.ni == ni))
			forget(n, &n->peer[i], u);
	}
}
