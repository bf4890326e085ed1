/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses received: acknowledgements, ends of long puts, replies. */
#include "nic/proto/proto.h"

#include "nic/cci/firmware.h"
#include "nic/generic/upper.h"
#include "nic/obj/obj.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"

#include <string.h>

static bool rsp_md_lives(struct p3_nic *n, struct p3_pending *t)
{
	bool lives = t->md && p3_pending_md_lives(t);
	if (!lives && t->md) {
		p3_rsp_drop(n, &n->ni[t->ni], t->move.length);
		p3_why_late(n, t);
	}
	return lives;
}

/* ---- answers ---- */

/* Count an answer of peer p to pending t on the descriptor, and write the content of its
 * events. */
static void rsp_accept(struct p3_nic *n, const struct p3_peer *p,
	const struct p3_pending *t, uint64_t mlength, struct p3_event_words *rec)
{
	const struct p3_answerer by = {{p->nid, t->move.target.pid}, p->uid, p->jid};
	p3_match_threshold(t->md);
	p3_pending_describe_answer(&t->move, t->md, &by, mlength, n->next_link++, 0, rec);
}

static void rsp_got_ack(
	struct p3_nic *n, struct p3_peer *p, struct p3_pending *t, uint64_t mlength)
{
	struct p3_event_words rec;
	struct p3_md *md = t->md;
	if (!rsp_md_lives(n, t))
		return;
	if (!p3_eq_of_sink(&md->sink)) {
		p3_rsp_drop(n, p3_ni_of(n, &md->o), t->move.length);
		p3_why_late(n, t);
		return;
	}
	rsp_accept(n, p, t, mlength, &rec);
	p3_event_ends(n, md, &md->sink, &rec, PTL_EVENT_ACK, PTL_NI_OK);
}

/* Return the number of a reply's bytes that fit the get's descriptor as it is now:
 * replies always truncate. */
static uint64_t rsp_reply_space(const struct p3_pending *t, uint64_t len)
{
	uint64_t size = t->md->region.size;
	uint64_t space = size > t->move.offset ? size - t->move.offset : 0;
	return len < space ? len : space;
}

static void rsp_got_reply(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	const struct p3_cell *c, uint64_t mlength)
{
	if (!rsp_md_lives(n, t))
		return;
	struct p3_event_words rec;
	struct p3_md *md = t->md;
	uint64_t len = rsp_reply_space(t, mlength);
	rsp_accept(n, p, t, len, &rec);
	p3_event_write(n, &md->sink, &rec, PTL_EVENT_REPLY_START, PTL_NI_OK);
	p3_region_write(&md->region, t->move.offset, p3_reply_bytes(c), len);
	if (p3_unlikely(!p3_list_empty(&n->pulls)))
		p3_xfer_wrote(n, &md->region, t->move.offset, len);
	p3_event_ends(n, md, &md->sink, &rec, PTL_EVENT_REPLY_END, PTL_NI_OK);
}

static void rsp_got_long_reply(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	const struct p3_answer *a)
{
	struct p3_xfer_slot *x = t->xfer;
	bool rma = p3_pending_is_rma(t);
	if (rma ? !t->rma : !rsp_md_lives(n, t)) {
		/* No one wants the bytes any more, which is no failure for the target. */
		p3_xfer_release(n, t->xfer, PTL_NI_OK);
		t->xfer = NULL;
		p3_pending_free(n, t);
		return;
	}
	struct p3_pull *pull = &x->pull;
	*pull = (struct p3_pull){.peer = p,
		.xfer_id = x->peer_id,
		.addr = a->addr,
		.heap = a->heap,
		.length = rma ? t->move.length : rsp_reply_space(t, a->mlength),
		.over = rma ? p3_cci_rma_pulled : p3_pending_end_get,
		.get = t};
	if (p3_unlikely(rma)) {
		p3_cci_rma_expect(t, pull);
	} else {
		rsp_accept(n, p, t, pull->length, &pull->span.rec);
		p3_span_begin(&pull->span, t->md, t->move.offset);
		p3_span_start(n, &pull->span, PTL_EVENT_REPLY_START);
	}
	t->state = P3_PEND_PULLING;
	p3_pull_begin(n, pull);
}

static bool rsp_handle(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	const struct p3_cell *c, struct p3_answer *a)
{
	uint32_t status = a->status ? PTL_NI_FAIL : PTL_NI_OK;
	uint64_t mlength = a->mlength;
	bool put = t->kind == P3_REQ_PUT;
	if (mlength > t->move.length)
		return false;
	if (p3_unlikely(p3_pending_is_rma(t)) && a->kind != P3_RSP_REPLY_LONG)
		return p3_cci_rma_answered(n, t, c, a);
	switch (a->kind) {
	case P3_RSP_NONE:
		if (t->send.md) /* of a long put */
			p3_pending_end(n, t, PTL_NI_OK);
		p3_pending_unanswered(n, t, false);
		break;
	case P3_RSP_ACK:
		if (!put || t->is_long || !t->move.ack)
			return false;
		rsp_got_ack(n, p, t, mlength);
		break;
	case P3_RSP_DONE:
		if (!put)
			return false;
		if (t->send.md)
			p3_pending_end(n, t, status);
		else if (p3_unlikely(status && t->copy))
			p3_why_failed(n, t);
		if (p3_unlikely(status))
			p3_pending_unanswered(n, t, false);
		else if ((a->flags & P3_F_ACK) && t->move.ack)
			rsp_got_ack(n, p, t, mlength);
		break;
	case P3_RSP_REPLY:
		if (put || mlength > p3_reply_most(p->rsp_in.n) ||
			a->ncells != p3_reply_cells(mlength))
			return false;
		rsp_got_reply(n, p, t, c, mlength);
		break;
	case P3_RSP_REPLY_LONG:
		p3_unpack_long_reply(c, a);
		if (put || !t->is_long)
			return false;
		t->xfer->peer_id = a->xfer;
		/* Slots for served requests are in the upper half of the target's. */
		if ((uint32_t)a->xfer < n->layout.nxfers / 2 ||
			(uint32_t)a->xfer >= n->layout.nxfers)
			return false;
		rsp_got_long_reply(n, p, t, a);
		return true; /* continues as a pull */
	default:
		return false;
	}
	p3_pending_free(n, t);
	return true;
}

/* Take a response that fails one of the fast checks below, or return false if there is
 * none.  Nothing has changed yet. */
static __attribute__((noinline)) bool rsp_take_any(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t w0;
	const struct p3_cell *c = p3_ring_peek(&p->rsp_in, &w0);
	if (p3_likely(!c))
		return false;
	uint32_t kind = p3_word0_kind(w0), ncells = p3_word0_ncells(w0);
	if (p3_unlikely(p->asks) && p3_generic_reply_waits(n, p, c, w0))
		return false;
	n->worked = true;
	if (!p3_ring_sane(&p->rsp_in, kind, ncells)) {
		p3_peer_ignore(n, p, "a response of impossible size");
		return false;
	}
	if (kind == P3_RSP_PAD) {
		p3_ring_take_now(&p->rsp_in, ncells);
		return true;
	}
	if (kind == P3_RSP_SWITCH) {
		uint64_t off = p3_acquire(
			&p->theirs->full_rsp); /* LANE.1: before the switch cell */
		if (p->rsp_in.n != P3_BASE_CELLS ||
			!p3_peer_holds_ring(n, p, off, n->layout.rsp_cells)) {
			p3_peer_ignore(n, p, "a response ring out of its segment");
			return false;
		}
		FAULT_POINT("ring.entering_responses");
		p3_ring_rx_init(&p->rsp_in, (struct p3_cell *)(p->base + off),
			n->layout.rsp_cells, &p->mine->rsp_credit[1], P3_RSP_USUAL);
		p->rsp_cap = n->layout.rsp_cells - 1;
		return true;
	}
	struct p3_answer a;
	p3_unpack_answer(c, w0, &a);
	struct p3_pending *t = p3_pending_named(n, p, a.pending);
	uint32_t rsp = t ? t->rsp_cells : 0;
	if (t)
		P3_TRACE(about, n, t->topic, P3_TRACE_ANSWERED, kind, a.mlength);
	if (!t || !rsp_handle(n, p, t, c, &a)) {
		rsp = kind == P3_RSP_CCI ? p3_cci_rsp_take(n, p, c) : 0;
		if (p3_unlikely(!rsp)) {
			p3_peer_ignore(n, p, "a response to no request");
			return false;
		}
	}
	FAULT_POINT("response.handled");
	p3_ring_take_now(&p->rsp_in, ncells);
	p->rsp_used -= rsp; /* the response's room is free only now */
	return true;
}

/* ---- fast checks ---- */

/*
 * rsp_take_any() takes a response unless all of these conditions hold:
 *
 *	word 0		that of an ACK (P3_RSP_USUAL), or of a reply of one cell
 *	node		n->odd has none of the bits below
 *	pending		the response names a pending that waits for it, reports no
 *			failure, and has no more bytes than were requested; the pending
 *			is a short put that wants an ACK, or a get, or an exchange
 *	descriptor	the pending's descriptor has not been unlinked, has an infinite
 *			threshold, and is active; that of a reply also is one piece of
 *			memory, and has END events, but no START events
 *	queue		the descriptor's event queue lives; that of a reply may have none
 *
 * Each check comes before the first change.  If a check fails, rsp_take_any() loads the
 * words of the cell anew; the words that were loaded here are discarded.
 */

/* A trace wants records, and pulls must know which bytes are overwritten. */
#define RSP_UNUSUAL (P3_ODD_TRACED | P3_ODD_PULLS | P3_ODD_GENERIC)

#define INERT       (P3_MD_ODD_THRESHOLD | P3_MD_ODD_INACTIVE)

/* Find the pending of a response, and the response's length.  Return NULL if the response
 * is not usual. */
static P3_HOT struct p3_pending *rsp_find_pending(struct p3_nic *n,
	const struct p3_peer *p, const struct p3_cell *c, uint64_t *length_out)
{
	uint64_t w = p3_format_get(c, P3_RESPONSE_PENDING);
	uint64_t length = p3_format_get(c, P3_RESPONSE_LENGTH);
	if (p3_unlikely(w >> 32 ||
			n->odd & RSP_UNUSUAL)) /* the status is in the upper half */
		return NULL;
	struct p3_pending *t = p3_pending_named(n, p, (uint32_t)w);
	*length_out = length;
	return p3_likely(t && t->md && !t->is_long && length <= t->move.length) ? t
										: NULL;
}

/* Return the descriptor of a response, or NULL if it has been unlinked, or has one of
 * these bits of enum p3_md_odd. */
static P3_HOT struct p3_md *rsp_usual_md(const struct p3_pending *t, uint32_t odd)
{
	struct p3_md *md = t->md;
	return p3_likely(p3_pending_md_lives(t) && !(md->odd & odd)) ? md : NULL;
}

/* ---- steps ---- */

static P3_HOT void rsp_post(struct p3_nic *n, const struct p3_peer *p,
	const struct p3_pending *t, struct p3_eq *eq, uint64_t length,
	ptl_event_kind_t kind)
{
	const struct p3_answerer by = {{p->nid, t->move.target.pid}, p->uid, p->jid};
	struct p3_event_record *e = p3_event_begin(eq);
	p3_pending_describe_answer(
		&t->move, t->md, &by, length, n->next_link, (uint32_t)kind, &e->words);
	p3_event_show(eq, e, (uint32_t)kind);
	n->posted |= eq->news;
}

/* Free the pending, and the cell of its response. */
static P3_HOT bool rsp_end(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t)
{
	uint32_t cells = t->rsp_cells;
	n->next_link++;
	n->worked = true;
	p3_pending_give(n, t);
	FAULT_POINT("response.handled");
	p3_ring_take_now(&p->rsp_in, 1);
	p->rsp_used -= cells;
	return true;
}

static P3_HOT bool rsp_take_ack(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c)
{
	uint64_t length;
	struct p3_pending *t = rsp_find_pending(n, p, c, &length);
	if (p3_unlikely(!t || t->kind != P3_REQ_PUT || !t->move.ack))
		return rsp_take_any(n, p);
	struct p3_md *md = rsp_usual_md(t, INERT);
	struct p3_eq *eq = p3_likely(md != NULL) ? p3_eq_of_sink(&md->sink) : NULL;
	if (p3_unlikely(!eq))
		return rsp_take_any(n, p);
	rsp_post(n, p, t, eq, length, PTL_EVENT_ACK);
	return rsp_end(n, p, t);
}

/* Write the bytes of a reply that fit the descriptor as it is now.  Return their
 * number. */
static P3_HOT uint64_t rsp_deposit(const struct p3_md *md, const struct p3_pending *t,
	const struct p3_cell *c, uint64_t length)
{
	uint64_t offset = t->move.offset, size = md->region.size;
	uint64_t space = p3_likely(size > offset) ? size - offset : 0;
	char *to = p3_region_address(md->region.start, offset);
	if (p3_unlikely(length > space))
		length = space;
	if (p3_likely(length == 8))
		memcpy(to, p3_reply_bytes(c), 8);
	else
		p3_region_copy_few(to, p3_reply_bytes(c), length);
	return length;
}

/* Take a reply of one cell. */
P3_PATH
static __attribute__((noinline)) bool rsp_take_reply(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t length;
	const struct p3_cell *c = p->rsp_in.next;
	struct p3_pending *t = rsp_find_pending(n, p, c, &length);
	if (p3_unlikely(!t || t->kind == P3_REQ_PUT || length > P3_RSP_INLINE))
		return rsp_take_any(n, p);
	struct p3_md *md = rsp_usual_md(
		t, INERT | P3_MD_ODD_IOVEC | P3_MD_ODD_STARTS | P3_MD_ODD_ENDS);
	if (p3_unlikely(!md))
		return rsp_take_any(n, p);
	struct p3_eq *eq = p3_eq_of_sink(&md->sink);
	length = rsp_deposit(md, t, c, length);
	if (p3_likely(eq != NULL))
		rsp_post(n, p, t, eq, length, PTL_EVENT_REPLY_END);
	return rsp_end(n, p, t);
}

/* Take an answer of CCI.  It lies beside the path of Portals' messages, as CCI's own
 * functions do. */
static __attribute__((noinline)) bool rsp_take_cci(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c)
{
	uint32_t cells = p3_cci_rsp_take(n, p, c);
	n->worked = true;
	if (p3_unlikely(!cells)) {
		p3_peer_ignore(n, p, "a response to no request");
		return false;
	}
	FAULT_POINT("response.handled");
	p3_ring_take_now(&p->rsp_in, 1);
	p->rsp_used -= cells;
	return true;
}

P3_PATH
bool p3_rsp_take(struct p3_nic *n, struct p3_peer *p)
{
	const struct p3_cell *c = p->rsp_in.next;
	const uint64_t reply = p3_word0(P3_RSP_ACK ^ P3_RSP_REPLY, 0, 0),
		       cci = p3_word0(P3_RSP_ACK ^ P3_RSP_CCI, 0, 0);
	uint64_t other = p3_acquire(&c->w[0]) ^ p->rsp_in.usual; /* LANE.1 */
	if (p3_likely(!other))
		return rsp_take_ack(n, p, c);
	if (p3_likely(other == reply))
		return rsp_take_reply(n, p);
	return other == cci ? rsp_take_cci(n, p, c) : rsp_take_any(n, p);
}
