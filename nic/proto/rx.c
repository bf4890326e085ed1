/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests received: header check, matching. */
#include "nic/proto/rx.h"

#include "nic/cci/take.h"
#include "nic/generic/take.h"
#include "nic/match/ahead.h"
#include "nic/proto/deliver.h"
#include "nic/proto/exchange.h"
#include "nic/proto/peer.h"
#include "nic/proto/back.h"
#include "nic/report/trace.h"
#include "nic/xfer/xfer.h"
#include "shm/fault.h"
#include "shm/trace.h"

#define P3_FIRST_LINES 8u /* lines of bytes in a heap, prefetched before the match */
#define P3_LAST_LINES  2u

/* ---- header check ---- */

static inline bool has_reply_room(const struct p3_nic *n, const struct p3_incoming *r)
{
	uint64_t len = r->ask.length;
	return len <= P3_RSP_INLINE + 64ull * n->layout.rsp_cells &&
	       p3_reply_room(len) <= r->rsp;
}

/* Return the reason why a header is invalid, or NULL. */
static inline const char *wrong(const struct p3_nic *n, const struct p3_incoming *r)
{
	bool is_long = r->flags & P3_F_LONG;
	uint32_t kind = r->ask.kind, slots = n->layout.nxfers / 2;
	bool fits = r->ncells == p3_request_cells(r->ask.length);
	if (p3_likely(kind == P3_REQ_PUT && !is_long && fits))
		return NULL;
	if (kind < P3_REQ_PUT || kind > P3_REQ_GETPUT)
		return "a request of no kind";
	if (kind != P3_REQ_GET && !is_long && !fits)
		return "data of impossible length";
	if (kind == P3_REQ_GETPUT)
		return r->pending && !is_long && has_reply_room(n, r)
			       ? NULL
			       : "an exchange without room for its reply";
	if (r->ncells != 1 || !r->pending)
		return "a request that wants no answer";
	if (is_long)
		return (uint32_t)r->xfer < slots ? NULL : "a transfer out of the table";
	return has_reply_room(n, r) ? NULL : "a get without room for its reply";
}

/* Prefetch the first and last lines of a put's bytes in the peer's heap.  The peer
 * names the place and may lie, but a prefetch cannot fault.  GCC drops calls of
 * functions that only prefetch, so this one is inlined. */
static P3_HOT void expect_bytes(const struct p3_peer *p, uint64_t off, uint64_t len)
{
	if (len < 64 * P3_FIRST_LINES || !p3_heap_view_holds(&p->heap, off, len))
		return;
	const char *first = p->heap.base + off, *last = first + len - 1;
	for (uint32_t i = 0; i < P3_FIRST_LINES; i++)
		p3_read_soon(first + 64 * i);
	for (uint32_t i = 0; i < P3_LAST_LINES; i++)
		p3_read_soon(last - 64 * i);
}

/* Prefetch the memory that a long put will read and write. */
P3_PATH
static __attribute__((noinline)) void expect_pull(struct p3_nic *n, struct p3_peer *p,
	uint64_t xfer, uint64_t heap, uint64_t length)
{
	p3_read_soon(p3_xfer_of_peer(n, p, xfer));
	p3_own_soon(&p->mine->reading); /* for the announcement */
	if (heap)
		expect_bytes(p, heap - 1, length);
}

static bool enter_full_requests(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t off =
		p3_acquire(&p->theirs->full_req); /* LANE.1: before the switch cell */
	if (!p3_peer_holds_ring(n, p, off, n->layout.req_cells))
		return false;
	FAULT_POINT("ring.entering_requests");
	p3_ring_rx_init(&p->req_in, (struct p3_cell *)(p->base + off),
		n->layout.req_cells, &p->mine->req_credit[1], P3_REQ_USUAL);
	return true;
}

/* Process a cell that carries no request. */
static P3_RARE bool control_cell(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint32_t ncells)
{
	if (kind == P3_REQ_PAD) {
		p3_ring_take(&p->req_in, ncells);
		return true;
	}
	/* Switch from the base ring only: a switch cell at the start of the full ring
	 * would be found again after each switch, for ever. */
	if (p->req_in.n == P3_BASE_CELLS && enter_full_requests(n, p))
		return true;
	p3_peer_ignore(n, p, "a lane out of its segment");
	return false;
}

static inline void taken(struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r)
{
	p3_ring_take(&p->req_in, r->ncells);
	p3_exchange_over(n, p);
	n->worked = true;
	n->msgs++;
	n->bytes += r->flags & P3_F_LONG ? 0 : r->ask.length;
	p3_count(&n->count[P3_C_RECEIVED], 1);
	p3_count(&n->count[P3_C_RECEIVED_BYTES],
		r->ask.kind == P3_REQ_GET ? 0 : r->ask.length);
}

/* Give the cells of a delivered request back.  Return true. */
static inline bool done(struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r)
{
	P3_PROBE2(deliver, r->ask.kind, r->ask.length);
	P3_TRACE(delivered, n, p, r->ask.kind, r->ask.length);
	FAULT_POINT("request.delivered");
	taken(n, p, r);
	return true;
}

/* Take what is no request of Portals. */
static __attribute__((noinline)) bool take_other(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0)
{
	uint32_t kind = p3_word0_kind(w0);
	return p3_likely(kind > P3_REQ_GETPUT)
		       ? p3_cci_take(n, p, c, w0)
		       : control_cell(n, p, kind, p3_word0_ncells(w0));
}

/*
 * Return true if this peer's next request may be taken.  First post the END of each get
 * that the peer has released: the peer stored the release (XFER.3) before the request
 * (LANE.1), so a node that sees the request sees the release, too.
 */
static P3_RARE bool may_take(struct p3_nic *n, struct p3_peer *p)
{
	p3_xfer_end_served(n, p);
	return !p->bad &&
	       (!p->behind || p->going || (p->asks && p3_generic_is_done(n, p)));
}

P3_PATH
bool p3_rx_take(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t w0;
	struct p3_incoming r;
	struct p3_hit hit;
	const struct p3_cell *c = p3_ring_peek(&p->req_in, &w0);
	if (p3_unlikely(!c)) {
		p3_ring_give(&p->req_in);
		return false;
	}
	/* LANE.1: take the answers that the peer sent before this request first, so that
	 * an operation ends before a message that the peer sent after its end. */
	p3_back_take_all(n, p);
	if (p3_unlikely(p->odd) && !may_take(n, p))
		return false;
	uint32_t kind = p3_word0_kind(w0), ncells = p3_word0_ncells(w0);
	if (p3_unlikely(!p3_ring_sane(&p->req_in, kind, ncells))) {
		p3_peer_ignore(n, p, "a request of impossible size");
		return false;
	}
	if (p3_unlikely(kind - P3_REQ_PUT > P3_REQ_GETPUT - P3_REQ_PUT))
		return take_other(n, p, c, w0);
	if (ncells > 1)
		p3_cells_soon(c, ncells);
	if (p3_unlikely(n->nlong) && !p3_without(P3_PREFETCHES))
		p3_ahead_look(n, p, ncells);
	p3_incoming_load(p, c, w0, &r);
	if (p3_unlikely(r.ask.who >> 32 == P3_JOB_NO_PID))
		return false; /* a new interface, whose pid is yet to be reported */
	const char *why = wrong(n, &r);
	if (p3_unlikely(why != NULL)) {
		p3_peer_ignore(n, p, why);
		return false;
	}
	if (p3_unlikely(kind == P3_REQ_PUT && (r.flags & P3_F_LONG)))
		expect_pull(
			n, p, r.xfer, r.flags & P3_F_HEAP ? r.place : 0, r.ask.length);
	if (p3_unlikely(p->asks)) {
		enum p3_generic_next next = p3_generic_take(n, p, &r);
		if (next != P3_GENERIC_DIRECT)
			return next == P3_GENERIC_TAKEN && done(n, p, &r);
	}
	P3_TRACE(take, n, p, kind, r.ask.length);
	struct p3_ni *ni = p3_match_interface(n, r.target_pid);
	bool wanted = p3_likely(ni != NULL) && p3_match_request(ni, &r.ask, &hit);
	P3_PROBE3(match, r.ask.bits, r.ask.length, wanted);
	P3_TRACE(match, n, p, wanted, r.ask.bits);
	if (p3_unlikely(!wanted)) {
		if (p3_deliver_settles(n, ni)) {
			P3_TRACE(wait, n, p, r.ask.kind);
			return false;
		}
		p3_deliver_discard(n, p, ni, r);
	} else if (p3_unlikely(!p3_deliver(n, p, &r, &hit))) {
		P3_TRACE(wait, n, p, r.ask.kind);
		return false;
	}
	return done(n, p, &r);
}

P3_RARE bool p3_rx_settles(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t w0;
	if (p->wire->drain)
		p->wire->drain(n, p);
	for (uint32_t i = 0; i < n->layout.req_cells && !p->bad && p3_peer_is_ready(n, p);
		i++)
		if (!p3_rx_take(n, p))
			break;
	if (p->bad || !p3_peer_is_ready(n, p))
		return false;
	const struct p3_cell *c = p3_ring_peek(&p->req_in, &w0);
	return c && p3_word0_kind(w0) > P3_REQ_SWITCH &&
	       p3_word0_kind(w0) <= P3_REQ_GETPUT &&
	       p3_deliver_settles(n, p3_match_interface(n, p3_request_pid(c)));
}

bool p3_rx_refuse(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t w0;
	struct p3_incoming r;
	const struct p3_cell *c = p->bad ? NULL : p3_ring_peek(&p->req_in, &w0);
	if (!c || p->bad)
		return false;
	p3_incoming_load(p, c, w0, &r);
	if (r.ask.kind <= P3_REQ_SWITCH || wrong(n, &r) ||
		!p3_ring_sane(&p->req_in, r.ask.kind, r.ncells))
		return false;
	P3_TRACE(take, n, p, r.ask.kind, r.ask.length);
	if (!p->asks || !p3_generic_refuse(n, p))
		p3_deliver_discard(n, p, p3_match_interface(n, r.target_pid), r);
	taken(n, p, &r);
	return true;
}
