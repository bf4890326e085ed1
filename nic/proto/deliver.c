/* SPDX-License-Identifier: BSD-3-Clause */
/* Delivery of requests to the descriptors that accept them. */
#include "nic/proto/proto.h"

#include "nic/obj/obj.h"
#include "nic/report/report.h"
#include "nic/xfer/xfer.h"
#include "shm/fault.h"

#include <string.h>

/* Longest wait of a request for a program to begin.  On a machine with too much to do,
 * more than two seconds pass between PtlNIInit and the first match entry. */
#define P3_SETTLING_NS UINT64_C(10000000000)

/* ---- requests that no entry accepts ---- */

void p3_deliver_discard(
	struct p3_nic *n, struct p3_peer *p, struct p3_ni *ni, struct p3_incoming r)
{
	bool long_put = r.ask.kind == P3_REQ_PUT && (r.flags & P3_F_LONG);
	p3_rsp_drop(n, ni, r.ask.length);
	p3_why_dropped(n, p, ni, r.ask);
	if (r.pending)
		p3_rsp_send_brief(
			n, p, r.pending, long_put ? P3_RSP_DONE : P3_RSP_NONE, 0);
}

bool p3_deliver_settles(struct p3_nic *n, struct p3_ni *ni)
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

static inline void deliver_describe(const struct p3_incoming *r, const struct p3_hit *hit,
	uint32_t link, uint32_t kind, struct p3_event_words *rec)
{
	p3_record_set_request(rec, r->ask.bits, r->ask.length, hit->mlength, hit->offset,
		r->ask.kind == P3_REQ_GET ? 0 : r->ask.hdr);
	p3_record_set_md(rec, hit->md, link);
	p3_record_set_ids(rec, kind, r->ask.who, r->ask.owner, r->ask.pt_index);
}

static inline void deliver_deposit(
	const struct p3_nic *n, const struct p3_incoming *r, const struct p3_hit *hit)
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
static inline uint32_t deliver_count_in(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_hit *hit)
{
	if (p3_unlikely(hit->mlength != r->ask.length))
		p3_why_truncated(n, p, r->ask, hit->mlength);
	struct p3_ni *ni = p3_ni_of(n, &hit->md->o);
	ni->received++;
	ni->received_bytes += hit->mlength;
	p3_match_commit(hit->md, hit);
	return n->next_link++;
}

/* Account for the operation as deliver_count_in() does, and write the content of its
 * events. */
static void deliver_accept(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_hit *hit, struct p3_event_words *rec)
{
	uint32_t link = deliver_count_in(n, p, r, hit);
	deliver_describe(r, hit, link, 0, rec);
}

static inline bool deliver_wants_ack(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_md *md)
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
static __attribute__((noinline)) void deliver_put_started(
	struct p3_nic *n, struct p3_incoming r, struct p3_hit hit, uint32_t link)
{
	struct p3_event_words rec;
	deliver_describe(&r, &hit, link, 0, &rec);
	p3_event_write(n, &hit.md->sink, &rec, PTL_EVENT_PUT_START, PTL_NI_OK);
}

static __attribute__((noinline)) void deliver_put_unlinks(
	struct p3_nic *n, struct p3_incoming r, struct p3_hit hit, uint32_t link)
{
	struct p3_event_words rec;
	deliver_describe(&r, &hit, link, 0, &rec);
	p3_event_unlinks(n, hit.md, &hit.md->sink, &rec, PTL_EVENT_PUT_END, PTL_NI_OK);
}

/* Post PUT_END, writing it straight into the queue. */
static inline void deliver_put_ended(struct p3_nic *n, const struct p3_incoming *r,
	const struct p3_hit *hit, uint32_t link)
{
	struct p3_eq *eq = p3_event_queue(&hit->md->sink, PTL_EVENT_PUT_END);
	if (p3_unlikely(!eq))
		return;
	struct p3_event_record *e = p3_event_draft(n, eq);
	deliver_describe(r, hit, link, PTL_EVENT_PUT_END, &e->words);
	p3_event_post(n, eq, e, PTL_EVENT_PUT_END);
}

static inline void deliver_put_eager(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_hit *hit)
{
	bool ack = deliver_wants_ack(n, p, r, hit->md);
	uint32_t link = deliver_count_in(n, p, r, hit);
	if (p3_unlikely(p3_event_is_wanted(&hit->md->sink, PTL_EVENT_PUT_START)))
		deliver_put_started(n, *r, *hit, link);
	deliver_deposit(n, r, hit);
	if (p3_unlikely(!p3_list_empty(&n->pulls)))
		p3_xfer_wrote(n, &hit->md->region, hit->offset, hit->mlength);
	FAULT_POINT("put.deposited");
	if (p3_match_may_unlink(hit->md))
		deliver_put_unlinks(n, *r, *hit, link);
	else
		deliver_put_ended(n, r, hit, link);
	if (p3_unlikely(r->pending))
		p3_rsp_send_brief(
			n, p, r->pending, ack ? P3_RSP_ACK : P3_RSP_NONE, hit->mlength);
}

/* Set the place of a long put's bytes: from the request's header, or from the source's
 * transfer table if the header does not tell it. */
static void deliver_place_pull(
	struct p3_nic *n, struct p3_pull *pull, const struct p3_incoming *r)
{
	const struct p3_xfer *src = p3_xfer_of_peer(n, pull->peer, r->xfer);
	bool heap = r->flags & P3_F_HEAP, addr = r->flags & P3_F_ADDR;
	pull->heap = heap ? r->place : addr ? 0 : p3_get(&src->heap);
	pull->addr = !heap && addr ? r->place : 0;
	if (!pull->addr && !p3_xfer_sees_heap(pull))
		pull->addr = p3_get(&src->addr);
}

/* The pull of a long put has ended. */
static void deliver_put_pulled(struct p3_nic *n, struct p3_pull *pull, uint32_t fail)
{
	const struct p3_answer a = {.kind = P3_RSP_DONE,
		.flags = pull->ack && !fail ? P3_F_ACK : 0,
		.pending = pull->peer_pending,
		.status = fail,
		.mlength = pull->length};
	struct p3_span span = pull->span;
	FAULT_POINT("pull.unanswered");
	p3_rsp_send(n, pull->peer, &a);
	FAULT_POINT("pull.answered");
	if (!span.md)
		return;
	p3_ni_use_less(p3_ni_of(n, &span.md->o), P3_U_OP);
	p3_span_end(n, &span, PTL_EVENT_PUT_END, fail);
}

/* Begin a long put.  Return false if the request must wait: no pull is free for this
 * peer, or an exchange waits for the same bytes. */
static bool deliver_put_long(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_hit *hit)
{
	struct p3_pull *pull = p3_getput_precedes(n, p, hit) ? NULL : p3_pull_alloc(n, p);
	if (!pull)
		return false;
	struct p3_md *md = hit->md;
	pull->xfer_id = r->xfer;
	deliver_place_pull(n, pull, r);
	pull->length = hit->mlength;
	pull->ack = deliver_wants_ack(n, p, r, md);
	pull->peer_pending = r->pending;
	pull->over = deliver_put_pulled;
	deliver_accept(n, p, r, hit, &pull->span.rec);
	p3_span_begin(&pull->span, md, hit->offset);
	p3_ni_use_more(p3_ni_of(n, &md->o), P3_U_OP);
	p3_span_start(n, &pull->span, PTL_EVENT_PUT_START);
	p3_pull_begin(n, pull);
	pull->first = r->flags & P3_F_COPIED;
	if (pull->first)
		p->behind = true;
	return true;
}

static bool deliver_get_eager(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_hit *hit)
{
	struct p3_event_words rec;
	struct p3_md *md = hit->md;
	if (!p3_rsp_has_room(p, hit->mlength))
		return false;
	deliver_accept(n, p, r, hit, &rec);
	p3_event_write(n, &md->sink, &rec, PTL_EVENT_GET_START, PTL_NI_OK);
	uint64_t word0 =
		p3_rsp_fill(n, p, r->pending, &md->region, hit->offset, hit->mlength);
	p3_rsp_publish(n, p, word0, hit->mlength);
	p3_event_ends(n, md, &md->sink, &rec, PTL_EVENT_GET_END, PTL_NI_OK);
	return true;
}

/*
 * Do an exchange in one step of one pass, so that no other action of this firmware comes
 * between its read and its write.  While a long transfer that has begun uses these bytes
 * (getput.c), the request waits.
 */
static bool deliver_getput(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_hit *hit)
{
	struct p3_event_words rec;
	struct p3_md *md = hit->md;
	if (!p3_rsp_has_room(p, hit->mlength) || !p3_getput_may_go(n, p, hit))
		return false;
	deliver_accept(n, p, r, hit, &rec);
	p3_event_write(n, &md->sink, &rec, PTL_EVENT_GETPUT_START, PTL_NI_OK);
	uint64_t word0 =
		p3_rsp_fill(n, p, r->pending, &md->region, hit->offset, hit->mlength);
	FAULT_POINT("swap.read");
	deliver_deposit(n, r, hit);
	FAULT_POINT("swap.written");
	p3_xfer_swapped(n);
	p3_rsp_publish(n, p, word0, hit->mlength);
	p3_event_ends(n, md, &md->sink, &rec, PTL_EVENT_GETPUT_END, PTL_NI_OK);
	return true;
}

static bool deliver_get_long(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_hit *hit)
{
	struct p3_xfer_slot *x =
		p3_getput_precedes(n, p, hit) ? NULL : p3_xfer_alloc(n, p, P3_X_SERVE);
	if (!x)
		return false;
	struct p3_md *md = hit->md;
	p3_xfer_serve(x, r->xfer);
	x->length = hit->mlength;
	P3_TRACE(keep, n, &x->topic);
	P3_TRACE(fw, n, P3_TRACE_BEGIN, P3_TRACE_SERVED, hit->mlength);
	deliver_accept(n, p, r, hit, &x->span.rec);
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
	p3_rsp_send(n, p, &a);
	return true;
}

/* Deliver any request other than an eager put. */
static __attribute__((noinline)) bool deliver_other(
	struct p3_nic *n, struct p3_peer *p, struct p3_incoming r, struct p3_hit hit)
{
	bool is_long = r.flags & P3_F_LONG;
	if (r.ask.kind == P3_REQ_PUT)
		return deliver_put_long(n, p, &r, &hit);
	if (r.ask.kind == P3_REQ_GETPUT)
		return deliver_getput(n, p, &r, &hit);
	return is_long && hit.mlength > P3_RSP_INLINE ? deliver_get_long(n, p, &r, &hit)
						      : deliver_get_eager(n, p, &r, &hit);
}

P3_PATH
bool p3_deliver(struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r,
	const struct p3_hit *hit)
{
	if (p3_unlikely(r->ask.kind != P3_REQ_PUT || (r->flags & P3_F_LONG)))
		return deliver_other(n, p, *r, *hit);
	deliver_put_eager(n, p, r, hit);
	return true;
}

/* ---- in two steps, if the host matches ---- */

void p3_deliver_place(struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r,
	const struct p3_hit *hit, struct p3_placed *t_out)
{
	struct p3_md *md = hit->md;
	bool put = r->ask.kind == P3_REQ_PUT;
	t_out->ack = put && deliver_wants_ack(n, p, r, md);
	t_out->mlength = hit->mlength;
	deliver_accept(n, p, r, hit, &t_out->span.rec);
	p3_span_begin(&t_out->span, md, hit->offset);
	p3_ni_use_more(p3_ni_of(n, &md->o), P3_U_OP);
	p3_span_start(n, &t_out->span, put ? PTL_EVENT_PUT_START : PTL_EVENT_GET_START);
}

static void deliver_end_placed(
	struct p3_nic *n, const struct p3_incoming *r, struct p3_placed *t, uint32_t fail)
{
	bool put = r->ask.kind == P3_REQ_PUT;
	struct p3_ni *ni = p3_ni_of(n, &t->span.md->o);
	p3_span_end(n, &t->span, put ? PTL_EVENT_PUT_END : PTL_EVENT_GET_END, fail);
	p3_ni_use_less(ni, P3_U_OP);
}

bool p3_deliver_move(struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r,
	struct p3_placed *t)
{
	const struct p3_span *s = &t->span;
	if (r->ask.kind == P3_REQ_GET) {
		if (!p3_rsp_has_room(p, t->mlength))
			return false;
		uint64_t word0 =
			p3_rsp_fill(n, p, r->pending, &s->region, s->offset, t->mlength);
		p3_rsp_publish(n, p, word0, t->mlength);
	} else {
		p3_region_write(&s->region, s->offset, p3_request_eager_bytes(r->cell),
			t->mlength);
		if (!p3_list_empty(&n->pulls))
			p3_xfer_wrote(n, &s->region, s->offset, t->mlength);
		FAULT_POINT("put.deposited");
	}
	deliver_end_placed(n, r, t, PTL_NI_OK);
	if (r->ask.kind == P3_REQ_PUT && r->pending)
		p3_rsp_send_brief(
			n, p, r->pending, t->ack ? P3_RSP_ACK : P3_RSP_NONE, t->mlength);
	return true;
}

void p3_deliver_fail(struct p3_nic *n, const struct p3_incoming *r, struct p3_placed *t)
{
	deliver_end_placed(n, r, t, PTL_NI_FAIL);
}
