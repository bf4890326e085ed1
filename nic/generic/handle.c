/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's part: matching, receive commands, events. */
#include "nic/generic/handle.h"

#include "nic/generic/queue.h"
#include "nic/generic/upper.h"
#include "nic/match/match.h"
#include "nic/report/trace.h"
#include "shm/fault.h"
#include "shm/park.h"
#include "shm/trace.h"

#define P3_AGAIN_NS   200000u
#define P3_AGAIN_MOST 2000000u

/* Leave a request in its lane: the firmware asks again, each time after a longer
 * interval. */
static void put_off(struct p3_generic *g, struct p3_upper *u)
{
	u->wait_ns = u->wait_ns ? 2 * u->wait_ns : P3_AGAIN_NS;
	if (u->wait_ns > P3_AGAIN_MOST)
		u->wait_ns = P3_AGAIN_MOST;
	u->again_ns = p3_now_ns() + u->wait_ns;
	u->state = P3_UPPER_LATER;
	g->later++;
}

/* Return true if the request has bytes that the firmware moves in one step.  The host
 * moves few bytes, with the header of the request or of its reply, and those of an
 * exchange.  A long message goes on over many passes. */
static bool has_to_move(
	const struct p3_generic *g, const struct p3_incoming *r, uint64_t mlength)
{
	bool is_long = r->flags & P3_F_LONG;
	if (r->ask.kind == P3_REQ_PUT)
		return !is_long && r->ask.length > g->inlined;
	return r->ask.kind == P3_REQ_GET && mlength > g->inlined &&
	       !(is_long && mlength > P3_RSP_INLINE);
}

/* Place a request that an entry has accepted. */
static void place(
	struct p3_nic *n, struct p3_peer *p, struct p3_upper *u, const struct p3_hit *hit)
{
	struct p3_generic *g = n->generic;
	const struct p3_incoming *r = &u->r;
	if (has_to_move(g, r, hit->mlength)) {
		p3_deliver_place(n, p, r, hit, &u->placed);
		u->state = P3_UPPER_RECEIVE;
	} else if (p3_deliver(n, p, r, hit)) {
		u->state = P3_UPPER_DONE;
	} else {
		put_off(g, u);
	}
}

static void match(struct p3_nic *n, struct p3_peer *p)
{
	struct p3_hit hit;
	struct p3_upper *u = &n->generic->upper[p->index];
	const struct p3_incoming *r = &u->r;
	if (u->state != P3_UPPER_ASKED)
		return;
	P3_TRACE(take, n, p, r->ask.kind, r->ask.length);
	struct p3_ni *ni = p3_match_interface(n, r->target_pid);
	bool wanted = ni && p3_match_on_host(ni, &r->ask, &hit);
	P3_PROBE3(match, r->ask.bits, r->ask.length, wanted);
	P3_TRACE(match, n, p, wanted, r->ask.bits);
	FAULT_POINT("generic.matched");
	if (wanted) {
		place(n, p, u, &hit);
	} else if (p3_deliver_settles(n, ni)) {
		put_off(n->generic, u);
	} else {
		p3_deliver_discard(n, p, ni, *r);
		u->state = P3_UPPER_DONE;
	}
}

static void handle(struct p3_nic *n, const struct p3_generic_event *e)
{
	if (e->kind == P3_GENERIC_HEADER)
		match(n, &n->peer[e->peer]);
	else
		n->generic->upper[e->peer].reply_state = P3_UPPER_DONE;
}

void p3_generic_handle(struct p3_nic *n)
{
	struct p3_generic *g = n->generic;
	const struct p3_generic_event *e;
	if (!g)
		return;
	n->staging = false;
	p3_generic_post_events(n);
	while ((e = p3_generic_oldest(g))) {
		handle(n, e);
		p3_generic_drop(g);
		FAULT_POINT("generic.handled");
	}
	n->staging = true;
}
