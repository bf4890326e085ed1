/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests received.  They enter by p3_rx_take(), at the end of this file.  Above it are
 * the fast checks of plain requests (rx_fast_), and above those the tail for all others:
 * header check and matching.
 */
#include "nic/proto/proto.h"

#include "nic/cci/state.h"
#include "nic/cci/firmware.h"
#include "nic/generic/upper.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"
#include "shm/fault.h"
#include "shm/trace.h"
#include "shm/variant.h"

#include <string.h>

#define P3_FIRST_LINES 8u /* lines of bytes in a heap, prefetched before the match */
#define P3_LAST_LINES  2u

#define P3_KEPT_MOST   16u /* messages that one try of kept requests takes */

/* ---- header check ---- */

static inline bool rx_has_reply_room(const struct p3_nic *n, const struct p3_incoming *r)
{
	uint64_t len = r->ask.length;
	return len <= P3_RSP_INLINE + 64ull * n->layout.rsp_cells &&
	       p3_reply_room(len) <= r->rsp;
}

/* Return the reason why the header of an atomic operation is invalid, or NULL. */
static __attribute__((noinline)) const char *rx_wrong_atomic(
	const struct p3_nic *n, const struct p3_incoming *r)
{
	uint32_t what = r->ask.what;
	bool swap = what == P3_ATOMIC_SWAP, fetch = r->ask.kind == P3_REQ_GETPUT;
	uint64_t length = r->ask.length, sent = p3_atomic_sent(what, length);
	if (swap ? !fetch : !p3_atomic_is_valid(what) || p3_atomic_op(what) == PTLX_READ)
		return "an atomic operation that does not exist";
	if (sent > P3_ATOMIC_MOST || length % p3_atomic_size(what) ||
		r->ncells != p3_request_cells(sent))
		return "operands of impossible length";
	return !fetch || (r->pending && rx_has_reply_room(n, r))
		       ? NULL
		       : "an exchange without room for its reply";
}

/* Return the reason why a header is invalid, or NULL. */
static inline const char *rx_wrong(const struct p3_nic *n, const struct p3_incoming *r)
{
	bool is_long = r->flags & P3_F_LONG, atomic = r->flags & P3_F_ATOMIC;
	uint32_t kind = r->ask.kind, slots = n->layout.nxfers / 2;
	bool fits = r->ncells == p3_request_cells(r->ask.length);
	if (p3_likely(kind == P3_REQ_PUT && !is_long && !atomic && fits))
		return NULL;
	if (kind < P3_REQ_PUT || kind > P3_REQ_GETPUT)
		return "a request of no kind";
	if (atomic || kind == P3_REQ_GETPUT)
		return rx_wrong_atomic(n, r);
	if (kind != P3_REQ_GET && !is_long && !fits)
		return "data of impossible length";
	if (r->ncells != 1 || !r->pending)
		return "a request that wants no answer";
	if (is_long)
		return (uint32_t)r->xfer < slots ? NULL : "a transfer out of the table";
	return rx_has_reply_room(n, r) ? NULL : "a get without room for its reply";
}

/* Prefetch the memory that a long put will read and write: the words of the transfer, and
 * the first and last lines of its bytes, if they lie in the peer's heap.  The peer names
 * the place and may lie, but a prefetch cannot fault. */
P3_PATH
static __attribute__((noinline)) void rx_expect_pull(struct p3_nic *n, struct p3_peer *p,
	uint64_t xfer, uint64_t heap, uint64_t length)
{
	p3_read_soon(p3_xfer_of_peer(n, p, xfer));
	p3_own_soon(&p->mine->reading); /* for the announcement */
	if (!heap || length < 64 * P3_FIRST_LINES ||
		!p3_heap_view_holds(&p->heap, heap - 1, length))
		return;
	const char *first = p->heap.base + (heap - 1), *last = first + length - 1;
	for (uint32_t i = 0; i < P3_FIRST_LINES; i++)
		p3_read_soon(first + 64 * i);
	for (uint32_t i = 0; i < P3_LAST_LINES; i++)
		p3_read_soon(last - 64 * i);
}

/* Process a cell that carries no request. */
static P3_RARE bool rx_control_cell(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint32_t ncells)
{
	if (kind == P3_REQ_PAD) {
		p3_ring_take(&p->req_in, ncells);
		return true;
	}
	/* Switch from the base ring only: a switch cell at the start of the full ring
	 * would be found again after each switch, for ever. */
	uint64_t off =
		p3_acquire(&p->theirs->full_req); /* LANE.1: before the switch cell */
	if (p->req_in.n != P3_BASE_CELLS ||
		!p3_peer_holds_ring(n, p, off, n->layout.req_cells)) {
		p3_peer_ignore(n, p, "a lane out of its segment");
		return false;
	}
	FAULT_POINT("ring.entering_requests");
	p3_ring_rx_init(&p->req_in, (struct p3_cell *)(p->base + off),
		n->layout.req_cells, &p->mine->req_credit[1],
		p->req_in.usual >> 32 << 32);
	return true;
}

static inline void rx_taken(
	struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r)
{
	p3_ring_take(&p->req_in, r->ncells);
	p3_getput_over(n, p);
	n->worked = true;
	n->msgs++;
	n->bytes += r->flags & P3_F_LONG ? 0 : r->ask.length;
	p3_count(&n->count[P3_C_RECEIVED], 1);
	p3_count(&n->count[P3_C_RECEIVED_BYTES],
		r->ask.kind == P3_REQ_GET ? 0 : r->ask.length);
}

/* Give the cells of a delivered request back.  Return true. */
static inline bool rx_done(
	struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r)
{
	P3_PROBE2(deliver, r->ask.kind, r->ask.length);
	P3_TRACE(delivered, n, p, p3_request_name(r->ask.kind, r->ask.what),
		r->ask.length);
	FAULT_POINT("request.delivered");
	rx_taken(n, p, r);
	return true;
}

/* Take a WRITE or a READ of CCI. */
static __attribute__((noinline)) bool rx_take_rma(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0)
{
	struct p3_incoming r;
	const uint64_t as_put =
		p3_field_in(P3_HEADER_KIND, P3_REQ_CCI_WRITE - P3_REQ_PUT);
	p3_incoming_load(p, c, w0 - as_put, &r);
	const char *why = rx_wrong(n, &r);
	if (!why && (!r.pending || !r.ask.length || r.flags & P3_F_ATOMIC))
		why = "a bad RMA request";
	if (p3_unlikely(why != NULL)) {
		p3_peer_ignore(n, p, why);
		return false;
	}
	P3_TRACE(take, n, p, p3_word0_kind(w0), r.ask.length);
	if (!p3_cci_rma_deliver(n, p, &r)) {
		P3_TRACE(wait, n, p, p3_word0_kind(w0));
		return false;
	}
	FAULT_POINT("cci.request_taken");
	p3_ring_take(&p->req_in, r.ncells);
	n->worked = true;
	n->msgs++;
	return true;
}

/* Take what is no request of Portals. */
static __attribute__((noinline)) bool rx_take_other(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0)
{
	uint32_t kind = p3_word0_kind(w0);
	if (kind == P3_REQ_CCI_WRITE || kind == P3_REQ_CCI_READ)
		return rx_take_rma(n, p, c, w0);
	return p3_likely(kind > P3_REQ_GETPUT)
		       ? p3_cci_req_take(n, p, c, w0)
		       : rx_control_cell(n, p, kind, p3_word0_ncells(w0));
}

/*
 * Return true if this peer's next request may be taken.  First post the END of each get
 * that the peer has released: the peer stored the release (XFER.3) before the request
 * (LANE.1), so a node that sees the request sees the release, too.
 */
static P3_RARE bool rx_may_take(struct p3_nic *n, struct p3_peer *p)
{
	p3_xfer_end_served(n, p);
	return !p->bad && !p->kept &&
	       (!p->behind || p->going || (p->asks && p3_generic_is_done(n, p)));
}

/* Take a request that fails one of the fast checks below.  Return false if there is none,
 * or it must wait. */
P3_PATH
static __attribute__((noinline)) bool rx_take_any(struct p3_nic *n, struct p3_peer *p)
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
	p3_rsp_take_all(n, p);
	if (p3_unlikely(p->odd) && !rx_may_take(n, p))
		return false;
	uint32_t kind = p3_word0_kind(w0), ncells = p3_word0_ncells(w0);
	if (p3_unlikely(!p3_ring_sane(&p->req_in, kind, ncells))) {
		p3_peer_ignore(n, p, "a request of impossible size");
		return false;
	}
	if (p3_unlikely(kind - P3_REQ_PUT > P3_REQ_GETPUT - P3_REQ_PUT))
		return rx_take_other(n, p, c, w0);
	if (ncells > 1)
		p3_cells_soon(c, ncells);
	if (p3_unlikely(n->nlong) && !p3_without(P3_PREFETCHES))
		p3_prefetch_look(n, p, ncells);
	p3_incoming_load(p, c, w0, &r);
	if (p3_unlikely(r.ask.who >> 32 == P3_JOB_NO_PID))
		return false; /* a new interface, whose pid is yet to be reported */
	const char *why = rx_wrong(n, &r);
	if (p3_unlikely(why != NULL)) {
		p3_peer_ignore(n, p, why);
		return false;
	}
	if (p3_unlikely(kind == P3_REQ_PUT && (r.flags & P3_F_LONG)))
		rx_expect_pull(
			n, p, r.xfer, r.flags & P3_F_HEAP ? r.place : 0, r.ask.length);
	if (p3_unlikely(p->asks)) {
		enum p3_generic_next next = p3_generic_take(n, p, &r);
		if (next != P3_GENERIC_DIRECT)
			return next == P3_GENERIC_TAKEN && rx_done(n, p, &r);
	}
	P3_TRACE(take, n, p, p3_request_name(kind, r.ask.what), r.ask.length);
	struct p3_ni *ni = p3_match_interface(n, r.target_pid);
	bool wanted = p3_likely(ni != NULL) && p3_match_request(ni, &r.ask, &hit);
	P3_PROBE3(match, r.ask.bits, r.ask.length, wanted);
	P3_TRACE(match, n, p, wanted, r.ask.bits);
	if (p3_unlikely(!wanted)) {
		if (p3_deliver_keeps(n, p, ni, &r.ask)) {
			P3_TRACE(wait, n, p, p3_request_name(kind, r.ask.what));
			return false;
		}
		p3_deliver_discard(n, p, ni, r);
	} else if (p3_unlikely(!p3_deliver(n, p, &r, &hit))) {
		P3_TRACE(wait, n, p, p3_request_name(kind, r.ask.what));
		return false;
	}
	return rx_done(n, p, &r);
}

/* A request that the host matches takes two turns: one asks the host, which answers at
 * once, and one takes the request.  Until the host has answered it is unknown whether the
 * request waits. */
P3_RARE bool p3_rx_take_last(struct p3_nic *n, struct p3_peer *p, bool left)
{
	uint64_t w0;
	uint32_t most = 2 * (P3_BASE_CELLS + n->layout.req_cells);
	p3_far_drain(n, p);
	p3_generic_hurry(n, p);
	for (uint32_t i = 0; i < most && !p->bad && p3_peer_is_ready(n, p); i++)
		if (!rx_take_any(n, p) && !p3_generic_answer(n, p))
			break;
	if (p->bad || !p3_peer_is_ready(n, p))
		return false;
	const struct p3_cell *c = p3_ring_peek(&p->req_in, &w0);
	return c && p3_word0_kind(w0) > P3_REQ_SWITCH &&
	       p3_word0_kind(w0) <= P3_REQ_GETPUT &&
	       (p3_deliver_settles(n, p3_match_interface(n, p3_request_pid(c))) ||
		       (left && p3_deliver_keeps_behind_end(p)));
}

/*
 * The doorbell that rang for the requests behind a kept one is long over.  So if a lane
 * has moved on, a sleeping thread of this node is woken for a pass.  It has armed its
 * word in a hold of the lease before this one, or it looks at the lanes in a hold after
 * this one (LEASE.1).
 */
P3_RARE void p3_rx_try_kept(struct p3_nic *n)
{
	uint32_t taken = 0;
	for (uint32_t i = 0; n->nkept && i < n->nhot; i++) {
		struct p3_peer *p = n->hot[i];
		if (!p->kept)
			continue;
		p3_deliver_keep_no_more(n, p);
		while (taken < P3_KEPT_MOST && p3_rx_take(n, p))
			taken++;
		p3_ring_give(&p->req_in);
	}
	if (taken)
		p3_wake_self(n);
}

bool p3_rx_refuse(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t w0;
	struct p3_incoming r;
	const struct p3_cell *c = p->bad ? NULL : p3_ring_peek(&p->req_in, &w0);
	if (!c || p->bad)
		return false;
	p3_incoming_load(p, c, w0, &r);
	if (r.ask.kind <= P3_REQ_SWITCH || rx_wrong(n, &r) ||
		!p3_ring_sane(&p->req_in, r.ask.kind, r.ncells))
		return false;
	P3_TRACE(take, n, p, p3_request_name(r.ask.kind, r.ask.what), r.ask.length);
	if (!p->asks || !p3_generic_refuse(n, p))
		p3_deliver_discard(n, p, p3_match_interface(n, r.target_pid), r);
	rx_taken(n, p, &r);
	return true;
}

/* ---- plain requests: fast checks ---- */

/*
 * A request is plain if all of this is true:
 *
 *	word 0		that of the most frequent message (P3_REQ_USUAL, with the flag
 *			P3_F_NI1 of the last request), or other in the flag P3_F_ACK, in
 *			the number of cells, or in being a get, or an atomic operation
 *	node		n->odd has none of the bits below
 *	peer		p->odd is 0, its interface has a pid, no response of it is there
 *	target		n->acl_cache has interface and portal: the access list admits all
 *			processes of the peer's owner there
 *	match list	the first of its entries matches, or one of few that are walked
 *			along, or, for a put, its index finds one, and it is not long
 *	descriptor	that of the first entry that matches: no START events, but END
 *			events; no iovec; there is room, and behind it room for max_size
 *			bytes; infinite threshold, or, for a put, one that counts, unless
 *			an operation under way delays the automatic unlink
 *	queue		none, or a living one with room
 *	get		at most P3_RSP_INLINE bytes, which the request has reserved room
 *			for; the response ring is open, or can be opened
 *	atomic		not that of PtlGetPut, operands for whole elements in one cell,
 *	operation	and no long transfer has begun here; if it fetches, as for a get
 *
 * Each test comes before the first change.  When one fails, rx_take_any() begins anew: it
 * loads the words of the cell again, and ignores those that were loaded here
 * (docs/design/polling.md).  The most frequent case, a put in one cell without an
 * acknowledgement, calls no function, so the compiler keeps all of it in registers.
 */

/* A trace wants records, pulls must know which bytes are overwritten, and an exchange may
 * wait. */
#define RX_UNUSUAL (P3_ODD_TRACED | P3_ODD_PULLS | P3_ODD_SWAPPER | P3_ODD_GENERIC)

/* The parts of a plain request that the steps behind the tests need. */
struct rx_fast {
	const struct p3_acl_target *acl;
	struct p3_md *md;
	struct p3_eq *eq; /* NULL: no event is wanted */
	uint64_t bits;
	uint64_t offset;
	uint64_t length;
};

/* ---- tests ---- */

/* LANE.1: answers that the peer sent before this request come first; rx_take_any() takes
 * them. */
static P3_HOT bool rx_fast_may_come(const struct p3_nic *n, struct p3_peer *p)
{
	return !(n->odd & RX_UNUSUAL) && !p->odd && p->usual_pid != P3_JOB_NO_PID &&
	       !p3_peer_has_response(p);
}

/* Return the descriptor of the first entry that matches, or NULL if there is none among
 * the first ones, or if another than the first is for an index to find. */
static P3_HOT struct p3_md *rx_fast_match(
	const struct p3_portal *list, uint64_t bits, uint64_t who)
{
	uint32_t left = P3_INDEX_FROM;
	for (const struct p3_me *me = list->head; me; me = me->next) {
		if (p3_likely(((bits ^ me->bits) & ~me->ignore) == 0) &&
			p3_likely(me->md != NULL) &&
			p3_likely(p3_want_matches(me->who, who)))
			return me->md;
		if (p3_unlikely(list->indexed) || !--left)
			return NULL;
	}
	return NULL;
}

/* a descriptor with one of these bits is unusual for each request */
#define ODD                                                                              \
	(P3_MD_ODD_THRESHOLD | P3_MD_ODD_INACTIVE | P3_MD_ODD_IOVEC | P3_MD_ODD_STARTS | \
		P3_MD_ODD_ENDS)

static P3_HOT bool rx_fast_has_event_room(struct rx_fast *r)
{
	const struct p3_sink *sink = &r->md->sink;
	r->eq = p3_eq_of_sink(sink);
	return r->eq ? p3_evq_has_room(&r->eq->tx) : !sink->eq;
}

/* Return true if the request leaves room for another one of the largest size. */
static P3_HOT bool rx_fast_leaves_room(const struct rx_fast *r, bool remote)
{
	const struct p3_md *md = r->md;
	return remote || md->region.size - r->offset - r->length >= md->words.max_size;
}

/* Return true if the descriptor of a request, which may be NULL, is plain; odd: bits of
 * enum p3_md_odd that it must not have. */
static P3_HOT bool rx_fast_fits(const struct p3_cell *c, uint32_t odd, struct rx_fast *r)
{
	struct p3_md *md = r->md;
	if (p3_unlikely(!md) || p3_unlikely(md->odd & odd))
		return false;
	bool remote = md->sink.options & PTL_MD_MANAGE_REMOTE;
	r->offset = p3_likely(remote) ? p3_format_get(c, P3_REQUEST_OFFSET)
				      : md->local_offset;
	uint64_t size = md->region.size;
	return p3_likely(r->offset <= size && r->length <= size - r->offset) &&
	       (p3_likely(!(md->odd & P3_MD_ODD_MAX_SIZE)) ||
		       rx_fast_leaves_room(r, remote)) &&
	       rx_fast_has_event_room(r);
}

/* Find the descriptor of a request.  Return false if it is not plain. */
static P3_HOT bool rx_fast_find(
	const struct p3_peer *p, const struct p3_cell *c, uint32_t odd, struct rx_fast *r)
{
	r->bits = p3_format_get(c, P3_REQUEST_BITS);
	r->md = rx_fast_match(r->acl->list, r->bits, p3_match_usual(p));
	return rx_fast_fits(c, odd, r);
}

/* Do the same where the list has an index. */
static P3_HOT bool rx_fast_search(
	const struct p3_peer *p, const struct p3_cell *c, uint32_t odd, struct rx_fast *r)
{
	r->bits = p3_format_get(c, P3_REQUEST_BITS);
	r->md = p3_match_search(r->acl->ni, p3_acl_cache_portal(r->acl), P3_REQ_PUT,
		r->bits, p3_match_usual(p), r->length,
		p3_format_get(c, P3_REQUEST_OFFSET));
	return rx_fast_fits(c, odd, r);
}

/* ---- delivery ---- */

/* Take a plain-looking request whose target n->acl_cache does not know. */
static P3_RARE bool rx_fast_take_unknown(
	struct p3_nic *n, struct p3_peer *p, uint64_t target)
{
	p3_acl_cache_add(n, target, p3_pair(p->jid, p->uid));
	return rx_take_any(n, p);
}

static P3_HOT void rx_fast_account(
	struct p3_nic *n, const struct rx_fast *r, uint64_t bytes)
{
	struct p3_ni *ni = r->acl->ni;
	ni->received++;
	ni->received_bytes += r->length;
	if (p3_unlikely(!(r->md->sink.options & PTL_MD_MANAGE_REMOTE)))
		r->md->local_offset += r->length;
	n->worked = true;
	n->msgs++;
	n->bytes += r->length;
	p3_count(&n->count[P3_C_RECEIVED], 1);
	p3_count(&n->count[P3_C_RECEIVED_BYTES], bytes);
}

/* Write an event of a request. */
static P3_HOT void rx_fast_describe(struct p3_event_words *rec, const struct p3_peer *p,
	const struct rx_fast *r, uint64_t hdr, uint32_t link, ptl_event_kind_t kind)
{
	p3_record_set_request(rec, r->bits, r->length, r->length, r->offset, hdr);
	p3_record_set_md(rec, r->md, link);
	p3_record_set_ids(
		rec, kind, p3_match_usual(p), r->acl->owner, p3_acl_cache_portal(r->acl));
	FAULT_POINT("event.written");
}

/*
 * Write the event of a request, if it has one.  This comes before its bytes are copied,
 * since fewer values must be kept then: a reader looks at the record only after
 * rx_fast_post(), and the descriptor's snapshot does not change meanwhile.
 */
static P3_HOT struct p3_event_record *rx_fast_write_event(struct p3_nic *n,
	const struct p3_peer *p, const struct rx_fast *r, uint64_t hdr,
	ptl_event_kind_t kind)
{
	uint32_t link = n->next_link++;
	if (p3_unlikely(!r->eq))
		return NULL;
	struct p3_event_record *e = p3_evq_next(&r->eq->tx);
	FAULT_POINT("event.begun");
	rx_fast_describe(&e->words, p, r, hdr, link, kind);
	return e;
}

static P3_HOT void rx_fast_post(struct p3_nic *n, const struct rx_fast *r,
	struct p3_event_record *e, ptl_event_kind_t kind)
{
	if (p3_unlikely(!e))
		return;
	p3_evq_commit(&r->eq->tx, e);
	FAULT_POINT("event.posted");
	P3_PROBE2(event, kind, r->eq->tx.tail);
	n->posted |= r->eq->news;
}

/* Copy the bytes of a put.  k is its number of cells: with more than one a call of memcpy
 * is as fast (docs/design/polling.md). */
static P3_HOT void rx_fast_deposit(const struct p3_nic *n, const struct p3_cell *c,
	const struct rx_fast *r, uint32_t k)
{
	char *to = p3_region_address(r->md->region.start, r->offset);
	if (p3_likely(k == 1 && r->length == 8))
		memcpy(to, p3_request_eager_bytes(c, 8), 8);
	else if (k == 1 || (n->crowded && r->length <= P3_FEW))
		p3_region_copy_few(to, p3_request_eager_bytes(c, P3_FEW), r->length);
	else
		memcpy(to, p3_request_eager_bytes(c, r->length), r->length);
	FAULT_POINT("put.deposited");
}

/* Give the cells back.  The rare half is the last that a caller does, so that the call
 * needs no registers.  A base ring comes there every few messages. */
P3_PATH
static __attribute__((noinline)) bool rx_fast_turn(struct p3_ring_rx *r)
{
	p3_ring_turn_here(r);
	return true;
}

static P3_HOT bool rx_fast_taken(struct p3_peer *p, uint32_t k)
{
	FAULT_POINT("request.delivered");
	if (p3_unlikely(p3_ring_step(&p->req_in, k)))
		return rx_fast_turn(&p->req_in);
	return true;
}

static P3_HOT void rx_fast_acknowledge(
	struct p3_nic *n, struct p3_peer *p, uint32_t pending, uint64_t len)
{
	const struct p3_answer a = {
		.kind = P3_RSP_ACK, .pending = pending, .mlength = len};
	if (p3_unlikely(!p3_rsp_may_run(p))) {
		p3_rsp_send(n, p, &a);
		return;
	}
	uint64_t word0 = p3_pack_brief(p->rsp_out.next, &a);
	FAULT_POINT("response.filled");
	p3_rsp_run(n, p, word0);
	FAULT_POINT("response.published");
}

/*
 * Take the response that this node has just sent to itself: the pass would find it only
 * at the next visit of the lane.  A look at the response of another node would be too
 * early, and take the line away from its producer.
 */
static P3_HOT bool rx_fast_responded(struct p3_nic *n, struct p3_peer *p)
{
	(void)rx_fast_taken(p, 1);
	if (p->rsp_used && p3_likely(p->nout && p->index == n->conf.node))
		p3_rsp_take_all(n, p);
	return true;
}

/* Post the last event of an exhausted descriptor, written in e or NULL, and unlink the
 * descriptor before that: a program that has seen the event finds the room free. */
static P3_HOT void rx_fast_unlink(struct p3_nic *n, struct p3_peer *p,
	const struct rx_fast *r, struct p3_event_record *e, uint64_t hdr)
{
	if (p3_unlikely(e && !p3_md_unlinks_silently(r->md))) {
		uint32_t link = n->next_link - 1;
		rx_fast_post(n, r, e, PTL_EVENT_PUT_END);
		e = p3_event_begin(r->eq);
		rx_fast_describe(&e->words, p, r, hdr, link, PTL_EVENT_UNLINK);
	}
	if (p3_likely(e != NULL))
		p3_record_set_unlinked(&e->words);
	p3_me_drop_md(n, r->md);
	rx_fast_post(n, r, e, PTL_EVENT_UNLINK);
}

/* Take a put that is plain but for an index of its list, or a threshold.  This function
 * is not P3_PATH, as the calls that post receives. */
static __attribute__((noinline)) bool rx_fast_put_posted(struct p3_nic *n,
	struct p3_peer *p, const struct p3_cell *c, uint32_t k, uint64_t len,
	uint32_t pending, const struct p3_acl_target *acl)
{
	struct rx_fast r = {.acl = acl, .length = len}; /* checked, and read once */
	uint32_t odd = (ODD ^ P3_MD_ODD_THRESHOLD) | P3_MD_ODD_PUT |
		       (pending ? P3_MD_ODD_ACK : 0u);
	bool plain = rx_fast_find(p, c, odd, &r) ||
		     (r.acl->list->indexed && rx_fast_search(p, c, odd, &r));
	if (p3_unlikely(!plain || (r.md->words.threshold == 1 && r.md->pending)))
		return rx_take_any(n, p);
	P3_PROBE3(match, r.bits, len, true);
	uint64_t hdr = p3_format_get(c, P3_REQUEST_HDR);
	p3_match_threshold(r.md);
	struct p3_event_record *e = rx_fast_write_event(n, p, &r, hdr, PTL_EVENT_PUT_END);
	rx_fast_deposit(n, c, &r, k);
	rx_fast_account(n, &r, len);
	if (p3_likely(r.md->exhausted && r.md->unlink))
		rx_fast_unlink(n, p, &r, e, hdr);
	else
		rx_fast_post(n, &r, e, PTL_EVENT_PUT_END);
	if (pending)
		rx_fast_acknowledge(n, p, pending, len);
	P3_PROBE2(deliver, P3_REQ_PUT, len);
	return pending ? rx_fast_responded(n, p) : rx_fast_taken(p, k);
}

/* Return true if rx_fast_put_posted() may take a put for which the fast checks fail.
 * rx_take_any() prefetches for long lists. */
static P3_HOT bool rx_fast_is_posted(const struct p3_nic *n, const struct rx_fast *r)
{
	return r->md ? r->md->odd & P3_MD_ODD_THRESHOLD
		     : r->acl->list->indexed && !n->nlong;
}

/* Take a put of k cells with len bytes, whose pending is 0 if it wants no
 * acknowledgement. */
static P3_HOT bool rx_fast_put(struct p3_nic *n, struct p3_peer *p,
	const struct p3_cell *c, uint32_t k, uint64_t len, uint32_t pending)
{
	if (p3_unlikely(!rx_fast_may_come(n, p)))
		return rx_take_any(n, p);
	uint64_t target = p3_acl_cache_key(p3_format_get(c, P3_REQUEST_PID));
	struct rx_fast r = {.acl = p3_acl_cache_at(n, target), .length = len};
	if (p3_unlikely(!p3_acl_cache_has(r.acl, target, p3_pair(p->jid, p->uid))))
		return rx_fast_take_unknown(n, p, target);
	uint32_t odd = ODD | P3_MD_ODD_PUT | (pending ? P3_MD_ODD_ACK : 0u);
	if (p3_unlikely(!rx_fast_find(p, c, odd, &r)))
		return rx_fast_is_posted(n, &r)
			       ? rx_fast_put_posted(n, p, c, k, len, pending, r.acl)
			       : rx_take_any(n, p);
	P3_PROBE3(match, r.bits, len, true);
	uint64_t hdr = p3_format_get(c, P3_REQUEST_HDR);
	struct p3_event_record *e = rx_fast_write_event(n, p, &r, hdr, PTL_EVENT_PUT_END);
	rx_fast_deposit(n, c, &r, k);
	rx_fast_account(n, &r, len);
	rx_fast_post(n, &r, e, PTL_EVENT_PUT_END);
	if (pending)
		rx_fast_acknowledge(n, p, pending, len);
	P3_PROBE2(deliver, P3_REQ_PUT, len);
	return pending ? rx_fast_responded(n, p) : rx_fast_taken(p, k);
}

/* ---- kinds of requests ---- */

/* A put whose bytes fit its header, and that wants an acknowledgement. */
P3_PATH
static __attribute__((noinline)) bool rx_fast_take_acked(
	struct p3_nic *n, struct p3_peer *p)
{
	const struct p3_cell *c = p->req_in.next;
	uint64_t w = p3_format_get(c, P3_REQUEST_PENDING);
	uint64_t len = p3_field_of(P3_EAGER_LENGTH, w);
	uint32_t pending = (uint32_t)p3_field_of(P3_REQUEST_PENDING, w);
	return p3_likely(pending && len <= P3_REQ_INLINE)
		       ? rx_fast_put(n, p, c, 1, len, pending)
		       : rx_take_any(n, p);
}

/* A put of more cells, which wants no acknowledgement. */
P3_PATH
static __attribute__((noinline)) bool rx_fast_take_longer(
	struct p3_nic *n, struct p3_peer *p, uint32_t k)
{
	const struct p3_cell *c = p->req_in.next;
	uint64_t w = p3_format_get(c, P3_REQUEST_PENDING);
	uint64_t len = p3_field_of(P3_EAGER_LENGTH, w);
	if (p3_unlikely(p3_field_of(P3_REQUEST_PENDING, w) || k < 2 ||
			k != p3_request_cells(len) ||
			!p3_ring_sane(&p->req_in, P3_REQ_PUT, k)))
		return rx_take_any(n, p);
	p3_cells_soon(c, k);
	return rx_fast_put(n, p, c, k, len, 0);
}

static P3_HOT void rx_fast_reply(
	struct p3_nic *n, struct p3_peer *p, const struct rx_fast *r, uint32_t pending)
{
	const struct p3_answer a = {.pending = pending, .mlength = r->length};
	struct p3_cell *c = p->rsp_out.next;
	uint64_t word0 = p3_pack_reply(c, &a);
	const char *from = p3_region_address(r->md->region.start, r->offset);
	if (p3_likely(r->length == 8))
		memcpy(p3_reply_bytes(c), from, 8);
	else
		p3_region_copy_few(p3_reply_bytes(c), from, r->length);
	FAULT_POINT("reply.filled");
	p3_rsp_run(n, p, word0);
	FAULT_POINT("reply.published");
}

/* A get. */
P3_PATH
static __attribute__((noinline)) bool rx_fast_take_get(
	struct p3_nic *n, struct p3_peer *p)
{
	const struct p3_cell *c = p->req_in.next;
	uint64_t w = p3_format_get(c, P3_REQUEST_PENDING);
	uint64_t to = p3_format_get(c, P3_REQUEST_PID), target = p3_acl_cache_key(to);
	uint32_t pending = (uint32_t)p3_field_of(P3_REQUEST_PENDING, w);
	struct rx_fast r = {.acl = p3_acl_cache_at(n, target),
		.length = p3_format_get(c, P3_GET_LENGTH)};
	if (p3_unlikely(!pending || r.length > P3_RSP_INLINE ||
			!p3_field_of(P3_REQUEST_ROOM, to) || !p3_rsp_may_run(p) ||
			!rx_fast_may_come(n, p)))
		return rx_take_any(n, p);
	if (p3_unlikely(!p3_acl_cache_has(r.acl, target, p3_pair(p->jid, p->uid))))
		return rx_fast_take_unknown(n, p, target);
	if (p3_unlikely(!rx_fast_find(p, c, ODD | P3_MD_ODD_GET, &r)))
		return rx_take_any(n, p);
	P3_PROBE3(match, r.bits, r.length, true);
	rx_fast_reply(n, p, &r, pending);
	rx_fast_account(n, &r, 0);
	rx_fast_post(n, &r, rx_fast_write_event(n, p, &r, 0, PTL_EVENT_GET_END),
		PTL_EVENT_GET_END);
	P3_PROBE2(deliver, P3_REQ_GET, r.length);
	return rx_fast_responded(n, p);
}

/* Request the cell of the answer before the request is looked at.  A peer that waits for
 * the answer polls that cell, so its line takes long to come; a peer that has sent a
 * second request does not wait. */
static P3_HOT void rx_fast_expect_to_answer(
	const struct p3_peer *p, const struct p3_ring_tx *r)
{
	if (!p->deep)
		p3_ring_own_soon(r, 0);
}

/* Do an atomic operation whose operands lie in the header. */
static P3_HOT void rx_fast_change(
	const struct p3_cell *c, const struct rx_fast *r, uint32_t what, uint64_t old[2])
{
	uint64_t operands[2];
	p3_unpack_data(c, operands);
	p3_atomic_do(what, &r->md->region, r->offset, r->length, (const char *)operands,
		(const char *)operands + r->length, (char *)old);
	FAULT_POINT("swap.written");
}

/* Return the former bytes of an atomic operation. */
static P3_HOT void rx_fast_reply_old(struct p3_nic *n, struct p3_peer *p,
	const uint64_t old[2], uint64_t length, uint32_t pending)
{
	const struct p3_answer a = {.pending = pending, .mlength = length};
	struct p3_cell *c = p->rsp_out.next;
	uint64_t word0 = p3_pack_reply(c, &a);
	memcpy(p3_reply_bytes(c), old, 2 * sizeof old[0]);
	FAULT_POINT("reply.filled");
	p3_rsp_run(n, p, word0);
	FAULT_POINT("reply.published");
}

/* Return true if the header of an atomic operation of one cell is valid and plain, and
 * no transfer may use the bytes (p3_getput_may_go()). */
static P3_HOT bool rx_fast_may_change(
	const struct p3_nic *n, const struct p3_peer *p, uint32_t what, uint64_t length)
{
	return p3_atomic_is_valid(what) && p3_atomic_op(what) != PTLX_READ &&
	       p3_atomic_sent(what, length) <= P3_REQ_INLINE &&
	       !(length & (p3_atomic_size(what) - 1)) && !p->swap_ns &&
	       p3_list_empty(&n->sources) && p3_list_empty(&n->pulls);
}

/* An atomic operation whose operands fit its header.  This function is not P3_PATH, as
 * few programs have such operations. */
static __attribute__((noinline)) bool rx_fast_take_atomic(
	struct p3_nic *n, struct p3_peer *p, bool fetch, bool ack)
{
	const struct p3_cell *c = p->req_in.next;
	uint64_t w = p3_format_get(c, P3_REQUEST_PENDING), old[2] = {0, 0};
	uint64_t to = p3_format_get(c, P3_REQUEST_PID), target = p3_acl_cache_key(to);
	uint32_t pending = (uint32_t)p3_field_of(P3_REQUEST_PENDING, w);
	uint32_t what = (uint32_t)p3_field_of(P3_ATOMIC_WHAT, w);
	struct rx_fast r = {.acl = p3_acl_cache_at(n, target),
		.length = p3_field_of(P3_ATOMIC_LENGTH, w)};
	bool asks = fetch || ack;
	rx_fast_expect_to_answer(p, asks ? &p->rsp_out : &p->req_out);
	if (p3_unlikely(
		    !rx_fast_may_change(n, p, what, r.length) || (pending != 0) != asks ||
		    (fetch &&
			    (!p3_field_of(P3_REQUEST_ROOM, to) || !p3_rsp_may_run(p))) ||
		    !rx_fast_may_come(n, p)))
		return rx_take_any(n, p);
	if (p3_unlikely(!p3_acl_cache_has(r.acl, target, p3_pair(p->jid, p->uid))))
		return rx_fast_take_unknown(n, p, target);
	uint32_t odd = ODD | P3_MD_ODD_PUT | (fetch ? P3_MD_ODD_GET : 0u) |
		       (ack ? P3_MD_ODD_ACK : 0u);
	if (p3_unlikely(!rx_fast_find(p, c, odd, &r)))
		return rx_take_any(n, p);
	P3_PROBE3(match, r.bits, r.length, true);
	ptl_event_kind_t kind = fetch ? PTL_EVENT_GETPUT_END : PTL_EVENT_PUT_END;
	struct p3_event_record *e =
		rx_fast_write_event(n, p, &r, p3_format_get(c, P3_REQUEST_HDR), kind);
	rx_fast_change(c, &r, what, old);
	if (fetch)
		rx_fast_reply_old(n, p, old, r.length, pending);
	rx_fast_account(n, &r, r.length);
	rx_fast_post(n, &r, e, kind);
	if (ack)
		rx_fast_acknowledge(n, p, pending, r.length);
	P3_PROBE2(deliver, fetch ? P3_REQ_GETPUT : P3_REQ_PUT, r.length);
	return asks ? rx_fast_responded(n, p) : rx_fast_taken(p, 1);
}

/* A message of CCI that is not in parts, of k cells.  This function is not P3_PATH, nor
 * are CCI's others. */
static __attribute__((noinline)) bool rx_fast_take_cci(
	struct p3_nic *n, struct p3_peer *p, uint32_t k)
{
	const struct p3_cell *c = p->req_in.next;
	uint64_t w1 = p3_format_get(c, P3_CCI_ROOM);
	bool answered = p3_field_of(P3_CCI_ROOM, w1) != 0;
	rx_fast_expect_to_answer(p, answered ? &p->rsp_out : &p->req_out);
	if (p3_unlikely(n->odd & P3_ODD_TRACED || p->odd || p3_peer_has_response(p)))
		return rx_take_any(n, p);
	if (k != 1) {
		if (p3_unlikely(!p3_ring_sane(&p->req_in, P3_REQ_CCI_MSG, k)))
			return rx_take_any(n, p);
		p3_cells_soon(c, k);
	}
	return p3_cci_msg_take(n, p, c, w1, k) || rx_take_any(n, p);
}

/* Take a request of the peer's other interface, and expect more of them. */
static __attribute__((noinline)) bool rx_take_of_other_interface(
	struct p3_nic *n, struct p3_peer *p)
{
	p->req_in.usual ^= p3_word0(0, P3_F_NI1, 0);
	p3_peer_expect_usual(p);
	return rx_take_any(n, p);
}

P3_PATH
bool p3_rx_take(struct p3_nic *n, struct p3_peer *p)
{
	const struct p3_cell *c = p->req_in.next;
	const uint64_t ack = p3_word0(0, P3_F_ACK, 0),
		       get = p3_word0(P3_REQ_PUT ^ P3_REQ_GET, 0, 0),
		       cci = p3_word0(P3_REQ_PUT ^ P3_REQ_CCI_MSG, 0, 0),
		       atomic = p3_word0(0, P3_F_ATOMIC, 0),
		       fetch = p3_word0(P3_REQ_PUT ^ P3_REQ_GETPUT, 0, 0);
	uint64_t w0 = p3_acquire(&c->w[0]); /* LANE.1 */
	uint64_t other = w0 ^ p->req_in.usual;
	p3_ring_ask_at(&p->req_in, P3_RING_AHEAD);
	if (p3_likely(!other)) {
		rx_fast_expect_to_answer(p, &p->req_out);
		/* the length, and in the upper half the pending, which is 0 */
		uint64_t w = p3_format_get(c, P3_REQUEST_PENDING),
			 len = w >> 32 | w << 32;
		return p3_likely(len <= P3_REQ_INLINE) ? rx_fast_put(n, p, c, 1, len, 0)
						       : rx_take_any(n, p);
	}
	if (other == ack || other == get)
		rx_fast_expect_to_answer(p, &p->rsp_out);
	if (other == ack)
		return rx_fast_take_acked(n, p);
	if (other == get)
		return rx_fast_take_get(n, p);
	if (!(other << 16)) /* all but the number of cells */
		return rx_fast_take_longer(n, p, p3_word0_ncells(w0));
	if (!((other ^ cci) << 16))
		return rx_fast_take_cci(n, p, p3_word0_ncells(w0));
	if (other == atomic || other == (atomic | ack))
		return rx_fast_take_atomic(n, p, false, other != atomic);
	if (other == (atomic | fetch))
		return rx_fast_take_atomic(n, p, true, false);
	if (!(uint32_t)other && (p3_word0_flags(other) & P3_F_NI1))
		return rx_take_of_other_interface(n, p);
	return rx_take_any(n, p);
}
