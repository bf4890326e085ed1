/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests received: header check, matching, delivery. */
#include "nic/proto/rx.h"

#include "nic/cci/take.h"
#include "nic/match/ahead.h"
#include "nic/match/match.h"
#include "nic/obj/event.h"
#include "nic/obj/ni.h"
#include "nic/obj/region.h"
#include "nic/obj/span.h"
#include "nic/proto/answer.h"
#include "nic/proto/exchange.h"
#include "nic/proto/format.h"
#include "nic/proto/peer.h"
#include "nic/proto/back.h"
#include "nic/report/trace.h"
#include "nic/report/why.h"
#include "nic/xfer/xfer.h"
#include "shm/fault.h"
#include "shm/probe.h"

#include <string.h>

/* Longest wait of a request for a program to begin.  On a machine with too much to do,
 * more than two seconds pass between PtlNIInit and the first match entry. */
#define P3_SETTLING_NS UINT64_C(10000000000)
#define P3_FIRST_LINES 8u /* lines of bytes in a heap, prefetched before the match */
#define P3_LAST_LINES  2u

/* A request as copied, once, from its header cell. */
struct request {
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

/* ---- requests that no entry accepts ---- */

/* Drop a request that no entry accepts.  Respond if the initiator has reserved room for
 * a response, so that it can use that room again. */
static P3_RARE void discard(
	struct p3_nic *n, struct p3_peer *p, struct p3_ni *ni, struct request r)
{
	bool long_put = r.ask.kind == P3_REQ_PUT && (r.flags & P3_F_LONG);
	p3_answer_drop(n, ni, r.ask.length);
	p3_why_dropped(n, p, ni, r.ask);
	if (r.pending)
		p3_answer_briefly(
			n, p, r.pending, long_put ? P3_RSP_DONE : P3_RSP_NONE, 0);
}

/*
 * Return true while a new interface settles: until its program serves it, a request
 * that no entry accepts stays in its lane, since the program may be about to attach
 * that entry.  Programs for a library that looks at messages only inside of calls
 * expect this.  The program serves the interface once it has looked for an event and
 * found none, has sent, or has entered a barrier.  After P3_SETTLING_NS the interface
 * counts as served.
 */
static P3_RARE bool is_settling(struct p3_nic *n, struct p3_ni *ni)
{
	if (!ni || p3_get(&ni->attended))
		return false;
	uint64_t until = ni->opened_ns + P3_SETTLING_NS;
	bool settled =
		p3_get(&n->count[P3_C_SENT]) != ni->sent_before || p3_now_ns() >= until;
	if (settled)
		p3_set(&ni->attended, 1);
	else
		n->settling_until = until;
	return !settled;
}

/* ---- delivery ---- */

static inline void describe(const struct request *r, const struct p3_hit *hit,
	uint32_t link, uint32_t kind, struct p3_event_words *rec)
{
	p3_record_set_request(rec, r->ask.bits, r->ask.length, hit->mlength, hit->offset,
		r->ask.kind == P3_REQ_GET ? 0 : r->ask.hdr);
	p3_record_set_md(rec, hit->md, link);
	p3_record_set_ids(rec, kind, r->ask.who, r->ask.owner, r->ask.pt_index);
}

static inline void deposit(
	const struct p3_nic *n, const struct request *r, const struct p3_hit *hit)
{
	const struct p3_region *to = &hit->md->region;
	const char *from = p3_request_eager_bytes(r->cell);
	uint64_t len = hit->mlength;
	if (p3_likely(len == 8 && r->ask.length == 8 && !to->iov))
		memcpy(to->start + hit->offset, r->data, 8);
	else if (p3_region_copies_few(n->crowded, to, len))
		p3_region_copy_few(p3_region_address(to->start, hit->offset), from, len);
	else
		p3_region_write(to, hit->offset, from, len);
}

/* Account for the operation on the descriptor; return its link. */
static inline uint32_t count_in(struct p3_nic *n, const struct p3_hit *hit)
{
	struct p3_ni *ni = p3_ni_of(n, &hit->md->o);
	ni->received++;
	ni->received_bytes += hit->mlength;
	p3_match_commit(hit->md, hit);
	return n->next_link++;
}

/* Account for the operation as count_in() does, and write the content of its events. */
static void accept(struct p3_nic *n, const struct request *r, const struct p3_hit *hit,
	struct p3_event_words *rec)
{
	uint32_t link = count_in(n, hit);
	describe(r, hit, link, 0, rec);
}

static inline bool wants_ack(struct p3_nic *n, struct p3_peer *p, const struct request *r,
	const struct p3_md *md)
{
	if (p3_likely(!(r->flags & P3_F_ACK)))
		return false;
	if (p3_likely(!(md->sink.options & PTL_MD_ACK_DISABLE)))
		return true;
	p3_why_no_ack(n, p, r->ask);
	return false;
}

/* Post PUT_START, which few descriptors enable.  The arguments are values, so that no
 * address of the request is taken: in the common case it stays in registers. */
static __attribute__((noinline)) void put_started(
	struct p3_nic *n, struct request r, struct p3_hit hit, uint32_t link)
{
	struct p3_event_words rec;
	describe(&r, &hit, link, 0, &rec);
	p3_event_write(n, &hit.md->sink, &rec, PTL_EVENT_PUT_START, PTL_NI_OK);
}

static __attribute__((noinline)) void put_unlinks(
	struct p3_nic *n, struct request r, struct p3_hit hit, uint32_t link)
{
	struct p3_event_words rec;
	describe(&r, &hit, link, 0, &rec);
	p3_event_unlinks(n, hit.md, &hit.md->sink, &rec, PTL_EVENT_PUT_END, PTL_NI_OK);
}

/* Post PUT_END, writing it straight into the queue. */
static inline void put_ended(struct p3_nic *n, const struct request *r,
	const struct p3_hit *hit, uint32_t link)
{
	struct p3_eq *eq = p3_event_queue(&hit->md->sink, PTL_EVENT_PUT_END);
	if (p3_unlikely(!eq))
		return;
	struct p3_event_record *e = p3_event_begin(eq);
	describe(r, hit, link, PTL_EVENT_PUT_END, &e->words);
	p3_event_post(n, eq, e, PTL_EVENT_PUT_END);
}

static inline void put_eager(struct p3_nic *n, struct p3_peer *p, const struct request *r,
	const struct p3_hit *hit)
{
	bool ack = wants_ack(n, p, r, hit->md);
	uint32_t link = count_in(n, hit);
	if (p3_unlikely(p3_event_is_wanted(&hit->md->sink, PTL_EVENT_PUT_START)))
		put_started(n, *r, *hit, link);
	deposit(n, r, hit);
	if (p3_unlikely(!p3_list_empty(&n->pulls)))
		p3_xfer_wrote(n, &hit->md->region, hit->offset, hit->mlength);
	FAULT_POINT("put.deposited");
	if (p3_match_may_unlink(hit->md))
		put_unlinks(n, *r, *hit, link);
	else
		put_ended(n, r, hit, link);
	if (p3_unlikely(r->pending))
		p3_answer_briefly(
			n, p, r->pending, ack ? P3_RSP_ACK : P3_RSP_NONE, hit->mlength);
}

/* Set the place of a long put's bytes: from the request's header, or from the source's
 * transfer table if the header does not tell it. */
static void place_pull(struct p3_nic *n, struct p3_pull *pull, const struct request *r)
{
	const struct p3_xfer *src = p3_xfer_of_peer(n, pull->peer, r->xfer);
	bool heap = r->flags & P3_F_HEAP, addr = r->flags & P3_F_ADDR;
	pull->heap = heap ? r->place : addr ? 0 : p3_get(&src->heap);
	pull->addr = !heap && addr ? r->place : 0;
	if (!pull->addr && !p3_xfer_sees_heap(pull))
		pull->addr = p3_get(&src->addr);
}

/* Begin a long put.  Return false if the request must wait: no pull is free for this
 * peer, or an exchange waits for the same bytes. */
static bool put_long(struct p3_nic *n, struct p3_peer *p, const struct request *r,
	const struct p3_hit *hit)
{
	struct p3_pull *pull =
		p3_exchange_precedes(n, p, hit) ? NULL : p3_pull_alloc(n, p);
	if (!pull)
		return false;
	struct p3_md *md = hit->md;
	pull->xfer_id = r->xfer;
	place_pull(n, pull, r);
	pull->length = hit->mlength;
	pull->ack = wants_ack(n, p, r, md);
	pull->peer_pending = r->pending;
	accept(n, r, hit, &pull->span.rec);
	p3_span_begin(&pull->span, md, hit->offset);
	p3_ni_use_more(p3_ni_of(n, &md->o), P3_U_OP);
	p3_span_start(n, &pull->span, PTL_EVENT_PUT_START);
	p3_pull_begin(n, pull);
	pull->first = r->flags & P3_F_COPIED;
	if (pull->first)
		p->behind = true;
	return true;
}

static bool get_eager(struct p3_nic *n, struct p3_peer *p, const struct request *r,
	const struct p3_hit *hit)
{
	struct p3_event_words rec;
	struct p3_md *md = hit->md;
	if (!p3_answer_has_room(p, hit->mlength))
		return false;
	accept(n, r, hit, &rec);
	p3_event_write(n, &md->sink, &rec, PTL_EVENT_GET_START, PTL_NI_OK);
	uint64_t word0 = p3_answer_fill(n, p, r->pending, hit);
	p3_answer_send(n, p, word0, hit->mlength);
	p3_event_ends(n, md, &md->sink, &rec, PTL_EVENT_GET_END, PTL_NI_OK);
	return true;
}

/*
 * Do an exchange in one step of one pass, so that no other action of this firmware comes
 * between its read and its write.  While a long transfer that has begun uses these bytes
 * (exchange.h), the request waits.
 */
static bool getput(struct p3_nic *n, struct p3_peer *p, const struct request *r,
	const struct p3_hit *hit)
{
	struct p3_event_words rec;
	struct p3_md *md = hit->md;
	if (!p3_answer_has_room(p, hit->mlength) || !p3_exchange_may_go(n, p, hit))
		return false;
	accept(n, r, hit, &rec);
	p3_event_write(n, &md->sink, &rec, PTL_EVENT_GETPUT_START, PTL_NI_OK);
	uint64_t word0 = p3_answer_fill(n, p, r->pending, hit);
	FAULT_POINT("swap.read");
	deposit(n, r, hit);
	FAULT_POINT("swap.written");
	p3_xfer_swapped(n);
	p3_answer_send(n, p, word0, hit->mlength);
	p3_event_ends(n, md, &md->sink, &rec, PTL_EVENT_GETPUT_END, PTL_NI_OK);
	return true;
}

static bool get_long(struct p3_nic *n, struct p3_peer *p, const struct request *r,
	const struct p3_hit *hit)
{
	struct p3_xfer_slot *x =
		p3_exchange_precedes(n, p, hit) ? NULL : p3_xfer_alloc(n, p, P3_X_SERVE);
	if (!x)
		return false;
	struct p3_md *md = hit->md;
	p3_xfer_serve(x, r->xfer);
	x->length = hit->mlength;
	P3_TRACE(keep, n, &x->topic);
	P3_TRACE(fw, n, P3_TRACE_BEGIN, P3_TRACE_SERVED, hit->mlength);
	accept(n, r, hit, &x->span.rec);
	p3_span_begin(&x->span, md, hit->offset);
	p3_ni_use_more(p3_ni_of(n, &md->o), P3_U_OP);
	p3_span_start(n, &x->span, PTL_EVENT_GET_START);
	p3_xfer_publish(n, x);
	FAULT_POINT("serve.published");
	struct p3_answer a = {.kind = P3_RSP_REPLY_LONG,
		.pending = r->pending,
		.mlength = hit->mlength,
		.xfer = p3_xfer_name(x),
		.addr = p3_get(&x->pub->addr),
		.heap = p3_get(&x->pub->heap)};
	p3_answer_respond(n, p, &a);
	return true;
}

/* Deliver any request other than an eager put. */
static __attribute__((noinline)) bool deliver_other(
	struct p3_nic *n, struct p3_peer *p, struct request r, struct p3_hit hit)
{
	bool is_long = r.flags & P3_F_LONG;
	if (r.ask.kind == P3_REQ_PUT)
		return put_long(n, p, &r, &hit);
	if (r.ask.kind == P3_REQ_GETPUT)
		return getput(n, p, &r, &hit);
	return is_long && hit.mlength > P3_RSP_INLINE ? get_long(n, p, &r, &hit)
						      : get_eager(n, p, &r, &hit);
}

static inline bool deliver(struct p3_nic *n, struct p3_peer *p, const struct request *r,
	const struct p3_hit *hit)
{
	if (p3_unlikely(r->ask.kind != P3_REQ_PUT || (r->flags & P3_F_LONG)))
		return deliver_other(n, p, *r, *hit);
	put_eager(n, p, r, hit);
	return true;
}

/* ---- header check ---- */

static inline void load(
	struct p3_peer *p, const struct p3_cell *c, uint64_t w0, struct request *r)
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

static inline bool has_reply_room(const struct p3_nic *n, const struct request *r)
{
	uint64_t len = r->ask.length;
	return len <= P3_RSP_INLINE + 64ull * n->layout.rsp_cells &&
	       p3_reply_room(len) <= r->rsp;
}

/* Return the reason why a header is invalid, or NULL. */
static inline const char *wrong(const struct p3_nic *n, const struct request *r)
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
		__builtin_prefetch(first + 64 * i);
	for (uint32_t i = 0; i < P3_LAST_LINES; i++)
		__builtin_prefetch(last - 64 * i);
}

/* Prefetch the memory that a long put will read and write. */
P3_PATH
static __attribute__((noinline)) void expect_pull(struct p3_nic *n, struct p3_peer *p,
	uint64_t xfer, uint64_t heap, uint64_t length)
{
	__builtin_prefetch(p3_xfer_of_peer(n, p, xfer));
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

static inline void taken(struct p3_nic *n, struct p3_peer *p, const struct request *r)
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
	return !p->bad && (!p->behind || p->going);
}

P3_PATH
bool p3_rx_take(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t w0;
	struct request r;
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
	if (p3_unlikely(n->nlong))
		p3_ahead_look(n, p, ncells);
	load(p, c, w0, &r);
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
	P3_TRACE(take, n, p, kind, r.ask.length);
	struct p3_ni *ni = p3_match_interface(n, r.target_pid);
	bool wanted = p3_likely(ni != NULL) && p3_match_request(ni, &r.ask, &hit);
	P3_PROBE3(match, r.ask.bits, r.ask.length, wanted);
	P3_TRACE(match, n, p, wanted, r.ask.bits);
	if (p3_unlikely(!wanted)) {
		if (is_settling(n, ni)) {
			P3_TRACE(wait, n, p, r.ask.kind);
			return false;
		}
		discard(n, p, ni, r);
	} else if (p3_unlikely(!deliver(n, p, &r, &hit))) {
		P3_TRACE(wait, n, p, r.ask.kind);
		return false;
	}
	P3_PROBE2(deliver, r.ask.kind, r.ask.length);
	P3_TRACE(delivered, n, p, r.ask.kind, r.ask.length);
	FAULT_POINT("request.delivered");
	taken(n, p, &r);
	return true;
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
	       is_settling(n, p3_match_interface(n, p3_request_pid(c)));
}

bool p3_rx_refuse(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t w0;
	struct request r;
	const struct p3_cell *c = p->bad ? NULL : p3_ring_peek(&p->req_in, &w0);
	if (!c || p->bad)
		return false;
	load(p, c, w0, &r);
	if (r.ask.kind <= P3_REQ_SWITCH || wrong(n, &r) ||
		!p3_ring_sane(&p->req_in, r.ask.kind, r.ncells))
		return false;
	P3_TRACE(take, n, p, r.ask.kind, r.ask.length);
	discard(n, p, p3_match_interface(n, r.target_pid), r);
	taken(n, p, &r);
	return true;
}
