/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses received: acknowledgements, ends of long puts, replies. */
#include "nic/proto/reply.h"

#include "nic/cci/firmware.h"
#include "nic/generic/take.h"
#include "nic/obj/event.h"
#include "nic/obj/ni.h"
#include "nic/obj/region.h"
#include "nic/obj/span.h"
#include "nic/obj/table.h"
#include "nic/proto/answer.h"
#include "nic/proto/peer.h"
#include "nic/proto/pending.h"
#include "nic/report/trace.h"
#include "nic/report/why.h"
#include "nic/xfer/xfer.h"

static bool md_lives(struct p3_nic *n, struct p3_pending *t)
{
	bool lives = t->md && p3_pending_md_lives(t);
	if (!lives && t->md) {
		p3_answer_drop(n, &n->ni[t->ni], t->move.length);
		p3_why_late(n, t);
	}
	return lives;
}

/* ---- events of answers ---- */

/* An answer of peer p to pending t; the operation is counted on the descriptor. */
struct answered {
	struct p3_peer *p;
	struct p3_pending *t;
	uint64_t mlength;
	uint32_t link;
};

static inline void describe(const struct answered *a, const struct p3_md *md,
	uint32_t kind, struct p3_event_words *rec)
{
	const struct p3_move *m = &a->t->move;
	const struct p3_answerer by = {{a->p->nid, m->target.pid}, a->p->uid, a->p->jid};
	p3_pending_describe_answer(m, md, &by, a->mlength, a->link, kind, rec);
}

/* Post REPLY_START, which few descriptors enable. */
static __attribute__((noinline)) void reply_started(
	struct p3_nic *n, struct answered a, struct p3_md *md)
{
	struct p3_event_words rec;
	describe(&a, md, 0, &rec);
	p3_event_write(n, &md->sink, &rec, PTL_EVENT_REPLY_START, PTL_NI_OK);
}

static __attribute__((noinline)) void answer_unlinks(
	struct p3_nic *n, struct answered a, struct p3_md *md, ptl_event_kind_t kind)
{
	struct p3_event_words rec;
	describe(&a, md, 0, &rec);
	p3_event_unlinks(n, md, &md->sink, &rec, kind, PTL_NI_OK);
}

/* Post the END of an operation, writing it straight into the queue. */
static inline void answer_ends(struct p3_nic *n, const struct answered *a,
	struct p3_md *md, ptl_event_kind_t kind)
{
	if (p3_match_may_unlink(md)) {
		answer_unlinks(n, *a, md, kind);
		return;
	}
	struct p3_eq *eq = p3_event_queue(&md->sink, kind);
	if (p3_unlikely(!eq))
		return;
	struct p3_event_record *e = p3_event_draft(n, eq);
	describe(a, md, (uint32_t)kind, &e->words);
	p3_event_post(n, eq, e, (uint32_t)kind);
}

/* ---- answers ---- */

static void got_ack(
	struct p3_nic *n, struct p3_peer *p, struct p3_pending *t, uint64_t mlength)
{
	if (!md_lives(n, t))
		return;
	struct p3_md *md = t->md;
	if (!p3_eq_of_sink(&md->sink)) {
		p3_answer_drop(n, p3_ni_of(n, &md->o), t->move.length);
		p3_why_late(n, t);
		return;
	}
	p3_match_threshold(md);
	const struct answered a = {p, t, mlength, n->next_link++};
	answer_ends(n, &a, md, PTL_EVENT_ACK);
}

static void got_done(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	uint64_t mlength, uint32_t status, bool ack)
{
	if (t->send.md)
		p3_pending_end(n, t, status);
	else if (p3_unlikely(status && t->copy))
		p3_why_failed(n, t);
	if (ack && t->move.ack && !status)
		got_ack(n, p, t, mlength);
}

/* Return the number of a reply's bytes that fit the get's descriptor as it is now:
 * replies always truncate. */
static uint64_t reply_space(const struct p3_pending *t, uint64_t len)
{
	uint64_t size = t->md->region.size;
	uint64_t space = size > t->move.offset ? size - t->move.offset : 0;
	return len < space ? len : space;
}

static void got_reply(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	const struct p3_cell *c, uint64_t mlength)
{
	if (!md_lives(n, t))
		return;
	struct p3_md *md = t->md;
	uint64_t len = reply_space(t, mlength);
	p3_match_threshold(md);
	const struct answered a = {p, t, len, n->next_link++};
	if (p3_unlikely(md->odd & P3_ODD_STARTS))
		reply_started(n, a, md);
	p3_region_write(&md->region, t->move.offset, p3_reply_bytes(c), len);
	if (p3_unlikely(!p3_list_empty(&n->pulls)))
		p3_xfer_wrote(n, &md->region, t->move.offset, len);
	answer_ends(n, &a, md, PTL_EVENT_REPLY_END);
}

static void got_long_reply(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	const struct p3_answer *a)
{
	struct p3_xfer_slot *x = t->xfer;
	if (!md_lives(n, t)) {
		/* The descriptor is gone, which is no failure for the target. */
		p3_pending_release(n, t, PTL_NI_OK);
		p3_pending_free(n, t);
		return;
	}
	struct p3_pull *pull = &x->pull;
	*pull = (struct p3_pull){.peer = p,
		.xfer_id = x->peer_id,
		.addr = a->addr,
		.heap = a->heap,
		.length = reply_space(t, a->mlength),
		.get = t};
	p3_match_threshold(t->md);
	const struct answered all = {p, t, pull->length, n->next_link++};
	describe(&all, t->md, 0, &pull->span.rec);
	p3_span_begin(&pull->span, t->md, t->move.offset);
	p3_span_start(n, &pull->span, PTL_EVENT_REPLY_START);
	t->state = P3_PEND_PULLING;
	p3_pull_begin(n, pull);
}

/* Set the target's slot that the reply names.  Return false if no slot for served
 * requests has that number. */
static bool set_source(const struct p3_nic *n, struct p3_pending *t, uint64_t xfer)
{
	uint32_t slot = (uint32_t)xfer;
	t->xfer->peer_id = xfer;
	return slot >= n->layout.nxfers / 2 && slot < n->layout.nxfers;
}

static bool answer(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	const struct p3_cell *c, struct p3_answer *a)
{
	uint32_t status = a->status ? PTL_NI_FAIL : PTL_NI_OK;
	uint64_t mlength = a->mlength;
	bool put = t->kind == P3_REQ_PUT; /* a put, which is answered by ACK or DONE */
	if (mlength > t->move.length)
		return false;
	switch (a->kind) {
	case P3_RSP_NONE:
		if (put && t->is_long)
			return false;
		break;
	case P3_RSP_ACK:
		if (!put || t->is_long || !t->move.ack)
			return false;
		got_ack(n, p, t, mlength);
		break;
	case P3_RSP_DONE:
		if (!put || !t->is_long)
			return false;
		got_done(n, p, t, mlength, status, a->flags & P3_F_ACK);
		break;
	case P3_RSP_REPLY:
		if (put || mlength > p3_reply_most(p->rsp_in.n) ||
			a->ncells != p3_reply_cells(mlength))
			return false;
		got_reply(n, p, t, c, mlength);
		break;
	case P3_RSP_REPLY_LONG:
		p3_unpack_long_reply(c, a);
		if (put || !t->is_long || !set_source(n, t, a->xfer))
			return false;
		got_long_reply(n, p, t, a);
		return true; /* continues as a pull */
	default:
		return false;
	}
	p3_pending_free(n, t);
	return true;
}

static bool enter_full_responses(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t off =
		p3_acquire(&p->theirs->full_rsp); /* LANE.1: before the switch cell */
	if (!p3_peer_holds_ring(n, p, off, n->layout.rsp_cells))
		return false;
	FAULT_POINT("ring.entering_responses");
	p3_ring_rx_init(&p->rsp_in, (struct p3_cell *)(p->base + off),
		n->layout.rsp_cells, &p->mine->rsp_credit[1], P3_RSP_USUAL);
	p->rsp_cap = n->layout.rsp_cells - 1;
	return true;
}

bool p3_reply_take(struct p3_nic *n, struct p3_peer *p)
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
		if (p->rsp_in.n == P3_BASE_CELLS && enter_full_responses(n, p))
			return true;
		p3_peer_ignore(n, p, "a response ring out of its segment");
		return false;
	}
	struct p3_answer a;
	p3_unpack_answer(c, w0, &a);
	struct p3_pending *t = p3_pending_named(n, p, a.pending);
	uint32_t rsp = t ? t->rsp_cells : 0;
	if (t)
		P3_TRACE(about, n, t->topic, P3_TRACE_ANSWERED, kind, a.mlength);
	if (!t || !answer(n, p, t, c, &a)) {
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
