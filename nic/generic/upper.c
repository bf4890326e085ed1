/* SPDX-License-Identifier: BSD-3-Clause */
/* Upper pendings: the firmware's part, headers to the host and receive commands, and the
 * host's part, matching and events. */
#include "nic/generic/upper.h"

#include "nic/match/match.h"
#include "nic/obj/obj.h"
#include "nic/proto/proto.h"
#include "shm/fault.h"
#include "shm/park.h"
#include "shm/trace.h"

#include <string.h>

/* Give the host the header, with as much of its payload as goes with it. */
static void upper_ask(struct p3_nic *n, struct p3_peer *p, struct p3_upper *u,
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

/* Forget a question to the host, for a peer that is going.  Its entry in the queue finds
 * another state. */
static enum p3_generic_next upper_go_alone(struct p3_nic *n, struct p3_upper *u)
{
	if (u->state == P3_UPPER_LATER)
		n->generic->later--;
	u->state = P3_UPPER_FREE;
	return P3_GENERIC_DIRECT;
}

/* Return true if the request r at the head of the lane is the one of this upper pending.
 * Its header was checked and copied, but its peer may have changed the lane since. */
static bool upper_is_the_same(
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
	if (u->state != P3_UPPER_FREE && !upper_is_the_same(u, p, r)) {
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
		return upper_go_alone(n, u);
	if (u->state == P3_UPPER_FREE && !p3_peer_has_response(p)) {
		upper_ask(n, p, u, r);
	} else if (u->state == P3_UPPER_LATER && p3_now_ns() >= u->again_ns) {
		n->generic->later--;
		u->state = P3_UPPER_ASKED;
		p3_generic_stage_header(n, p->index, P3_GENERIC_HEADER);
	}
	return P3_GENERIC_WAIT;
}

/* Return true if the response has bytes that did not go with its header. */
static bool upper_reply_has_to_move(
	const struct p3_generic *g, const struct p3_cell *c, uint64_t w0)
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
	if (free && !p->going && upper_reply_has_to_move(n->generic, c, w0)) {
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
		(void)upper_go_alone(n, u);
	u->reply_state = P3_UPPER_FREE;
}

void p3_generic_forget(struct p3_nic *n, uint32_t ni)
{
	struct p3_generic *g = n->generic;
	for (uint32_t i = 0; g && i < g->nupper; i++) {
		struct p3_upper *u = &g->upper[i];
		const struct p3_md *md = u->placed.span.md;
		if (u->state != P3_UPPER_RECEIVE || (ni != P3_JOB_NIS && md->o.ni != ni))
			continue;
		/* The initiator is told as of a drop. */
		p3_span_forget(&u->placed.span);
		if (u->r.pending && n->peer[i].state == P3_LIVE)
			p3_rsp_send_brief(n, &n->peer[i], u->r.pending, P3_RSP_NONE, 0);
		u->state = P3_UPPER_DONE;
	}
}

/* ---- the host's part ---- */

#define P3_AGAIN_NS   200000u
#define P3_AGAIN_MOST 2000000u

/* Leave a request in its lane: the firmware asks again, each time after a longer
 * interval. */
static void upper_put_off(struct p3_generic *g, struct p3_upper *u)
{
	u->wait_ns = u->wait_ns ? 2 * u->wait_ns : P3_AGAIN_NS;
	if (u->wait_ns > P3_AGAIN_MOST)
		u->wait_ns = P3_AGAIN_MOST;
	u->again_ns = p3_now_ns() + u->wait_ns;
	u->state = P3_UPPER_LATER;
	g->later++;
}

/* Return true if the request has bytes that the firmware moves in one step.  The host
 * moves few bytes, with the header of the request or of its reply, and those of atomic
 * operations.  A long message goes on over many passes. */
static bool upper_request_has_to_move(
	const struct p3_generic *g, const struct p3_incoming *r, uint64_t mlength)
{
	bool is_long = r->flags & P3_F_LONG;
	if (r->ask.kind == P3_REQ_PUT)
		return !is_long && !r->ask.what && r->ask.length > g->inlined;
	return r->ask.kind == P3_REQ_GET && mlength > g->inlined &&
	       !(is_long && mlength > P3_RSP_INLINE);
}

/* Place a request that an entry has accepted. */
static void upper_place(
	struct p3_nic *n, struct p3_peer *p, struct p3_upper *u, struct p3_hit *hit)
{
	struct p3_generic *g = n->generic;
	const struct p3_incoming *r = &u->r;
	if (upper_request_has_to_move(g, r, hit->mlength)) {
		p3_deliver_place(n, p, r, hit, &u->placed);
		u->state = P3_UPPER_RECEIVE;
	} else if (p3_deliver(n, p, r, hit)) {
		u->state = P3_UPPER_DONE;
	} else {
		upper_put_off(g, u);
	}
}

static void upper_match(struct p3_nic *n, struct p3_peer *p)
{
	struct p3_hit hit;
	struct p3_upper *u = &n->generic->upper[p->index];
	const struct p3_incoming *r = &u->r;
	if (u->state != P3_UPPER_ASKED)
		return;
	P3_TRACE(take, n, p, p3_request_name(r->ask.kind, r->ask.what), r->ask.length);
	struct p3_ni *ni = p3_match_interface(n, r->target_pid);
	bool wanted = ni && p3_match_on_host(ni, &r->ask, &hit);
	P3_PROBE3(match, r->ask.bits, r->ask.length, wanted);
	P3_TRACE(match, n, p, wanted, r->ask.bits);
	FAULT_POINT("generic.matched");
	if (wanted) {
		upper_place(n, p, u, &hit);
	} else if (p3_deliver_keeps(n, p, ni, &r->ask)) {
		/* The firmware asks anew about a kept request, once it looks again. */
		if (p->kept)
			u->state = P3_UPPER_FREE;
		else
			upper_put_off(n->generic, u);
	} else {
		p3_deliver_discard(n, p, ni, *r);
		u->state = P3_UPPER_DONE;
	}
}

void p3_generic_handle(struct p3_nic *n)
{
	struct p3_generic *g = n->generic;
	if (!g)
		return;
	n->staging = false;
	p3_generic_post_events(n); /* headers are left */
	while (g->head != g->tail) {
		const struct p3_generic_event *e = &g->entry[g->head & g->mask];
		if (e->kind == P3_GENERIC_HEADER)
			upper_match(n, &n->peer[e->peer]);
		else
			g->upper[e->peer].reply_state = P3_UPPER_DONE;
		p3_generic_drop(g);
		FAULT_POINT("generic.handled");
	}
	n->staging = true;
}

void p3_generic_hurry(struct p3_nic *n, const struct p3_peer *p)
{
	if (n->generic)
		n->generic->upper[p->index].again_ns = 0;
}

bool p3_generic_answer(struct p3_nic *n, const struct p3_peer *p)
{
	if (!n->generic || n->generic->upper[p->index].state != P3_UPPER_ASKED)
		return false;
	p3_generic_handle(n);
	return true;
}
