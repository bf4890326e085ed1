/* SPDX-License-Identifier: BSD-3-Clause */
/* Delivery of requests to the descriptors that accept them. */
#include "nic/proto/proto.h"

#include "nic/obj/obj.h"
#include "nic/report/report.h"
#include "nic/xfer/xfer.h"
#include "shm/fault.h"

/* Longest wait of a request for a program to begin.  On a machine with too much to do,
 * more than two seconds pass between PtlNIInit and the first match entry. */
#define P3_SETTLING_NS UINT64_C(10000000000)
/* Longest wait of a kept request whose initiator has left. */
#define P3_KEEPING_NS UINT64_C(10000000000)

/* ---- requests that no entry accepts ---- */

void p3_deliver_discard(
	struct p3_nic *n, struct p3_peer *p, struct p3_ni *ni, struct p3_incoming r)
{
	p3_rsp_drop(n, ni, r.ask.length);
	p3_why_dropped(n, p, ni, r.ask);
	if (r.pending)
		p3_rsp_send_brief(n, p, r.pending, P3_RSP_NONE, 0);
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

/*
 * Keep a request that no entry accepts in its lane if its portal index holds such
 * requests.  A request that the access list refuses is not kept: no entry would help.
 */
static bool deliver_holds(
	struct p3_nic *n, struct p3_peer *p, struct p3_ni *ni, const struct p3_ask *ask)
{
	if (!ni || p->going || ask->pt_index > (uint32_t)ni->limits.max_pt_index ||
		!ni->portal[ask->pt_index].keeps || !p3_match_allows(ni, ask))
		return false;
	uint64_t at = p3_pair(p->req_in.n, (uint32_t)p->req_in.pos);
	if (p->kept_at != at)
		p3_count(&n->count[P3_C_KEPT], 1);
	p->kept_at = at;
	n->nkept += !p->kept;
	p->kept = true;
	p3_odd_set(n, P3_ODD_KEPT);
	p3_set(&p->shown->shown_kept, p3_pair(ni->pid, ask->pt_index + 1));
	return true;
}

bool p3_deliver_keeps(
	struct p3_nic *n, struct p3_peer *p, struct p3_ni *ni, const struct p3_ask *ask)
{
	return deliver_holds(n, p, ni, ask) || p3_deliver_settles(n, ni);
}

bool p3_deliver_keeps_behind_end(struct p3_peer *p)
{
	uint64_t now = p3_now_ns();
	if (!p->kept)
		return false;
	if (!p->left_ns)
		p->left_ns = now;
	return now - p->left_ns < P3_KEEPING_NS;
}

void p3_deliver_keep_no_more(struct p3_nic *n, struct p3_peer *p)
{
	if (!p->kept)
		return;
	p->kept = false;
	n->nkept--;
	p3_set(&p->shown->shown_kept, 0);
}

/* ---- delivery ---- */

/* Account for the operation on the descriptor, and write the content of its events. */
static void deliver_accept(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_hit *hit, struct p3_event_words *rec)
{
	const struct p3_ask *ask = &r->ask;
	if (p3_unlikely(hit->mlength != ask->length))
		p3_why_truncated(n, p, *ask, hit->mlength);
	struct p3_ni *ni = p3_ni_of(n, &hit->md->o);
	ni->received++;
	ni->received_bytes += hit->mlength;
	p3_match_commit(hit->md, hit);
	p3_record_set_request(rec, ask->bits, ask->length, hit->mlength, hit->offset,
		ask->kind == P3_REQ_GET ? 0 : ask->hdr);
	p3_record_set_md(rec, hit->md, n->next_link++);
	p3_record_set_ids(rec, 0, ask->who, ask->owner, ask->pt_index);
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

/* The pull of a long put or of a WRITE has ended, or the interface of its descriptor has
 * closed. */
static void deliver_put_pulled(struct p3_nic *n, struct p3_pull *pull, uint32_t fail)
{
	const struct p3_answer a = {.kind = pull->span.md ? P3_RSP_DONE : P3_RSP_NONE,
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

struct p3_pull *p3_deliver_pull(
	struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r)
{
	struct p3_pull *pull = p3_pull_alloc(n, p);
	if (!pull)
		return NULL;
	pull->xfer_id = r->xfer;
	deliver_place_pull(n, pull, r);
	pull->length = r->ask.length;
	pull->peer_pending = r->pending;
	pull->ahead = n->conf.bulk && r->flags & P3_F_AHEAD;
	pull->over = deliver_put_pulled;
	return pull;
}

/* Begin a long put.  Return false if the request must wait: no pull is free for this
 * peer, or an exchange waits for the same bytes. */
static bool deliver_put_long(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_hit *hit)
{
	struct p3_pull *pull =
		p3_getput_precedes(n, p, hit) ? NULL : p3_deliver_pull(n, p, r);
	if (!pull)
		return false;
	struct p3_md *md = hit->md;
	pull->length = hit->mlength;
	pull->ack = deliver_wants_ack(n, p, r, md);
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

void p3_deliver_offer(
	struct p3_nic *n, const struct p3_incoming *r, struct p3_xfer_slot *x)
{
	p3_xfer_publish(n, x);
	FAULT_POINT("serve.published");
	struct p3_answer a = {.kind = P3_RSP_REPLY_LONG,
		.pending = r->pending,
		.mlength = x->length,
		.xfer = p3_xfer_name(x),
		.addr = p3_get(&x->pub->addr),
		.heap = p3_get(&x->pub->heap)};
	p3_rsp_send(n, x->peer, &a);
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
	p3_deliver_offer(n, r, x);
	return true;
}

/* ---- requests whose bytes fit a message: two steps, which the host may part ---- */

static ptl_event_kind_t deliver_start_of(uint32_t kind)
{
	return kind == P3_REQ_PUT   ? PTL_EVENT_PUT_START
	       : kind == P3_REQ_GET ? PTL_EVENT_GET_START
				    : PTL_EVENT_GETPUT_START;
}

static ptl_event_kind_t deliver_end_of(uint32_t kind)
{
	return kind == P3_REQ_PUT   ? PTL_EVENT_PUT_END
	       : kind == P3_REQ_GET ? PTL_EVENT_GET_END
				    : PTL_EVENT_GETPUT_END;
}

/* Account for the operation, and post its START. */
static void deliver_begin(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_hit *hit, struct p3_placed *t_out)
{
	t_out->ack = r->ask.kind == P3_REQ_PUT && deliver_wants_ack(n, p, r, hit->md);
	t_out->mlength = hit->mlength;
	deliver_accept(n, p, r, hit, &t_out->span.rec);
	p3_span_begin(&t_out->span, hit->md, hit->offset);
	p3_span_start(n, &t_out->span, deliver_start_of(r->ask.kind));
}

/* Write the bytes of a put to their place. */
static void deliver_deposit(
	struct p3_nic *n, const struct p3_incoming *r, const struct p3_placed *t)
{
	const struct p3_span *s = &t->span;
	p3_region_write(&s->region, s->offset,
		p3_request_eager_bytes(r->cell, r->ask.length), t->mlength);
	if (!p3_list_empty(&n->pulls))
		p3_xfer_wrote(n, &s->region, s->offset, t->mlength);
	FAULT_POINT("put.deposited");
}

/* Do an atomic operation, and copy the former bytes to the reply, unless it is NULL. */
static __attribute__((noinline)) void deliver_exchange(struct p3_nic *n,
	const struct p3_incoming *r, const struct p3_placed *t, char *reply)
{
	const struct p3_ask *ask = &r->ask;
	const struct p3_span *s = &t->span;
	char operands[P3_ATOMIC_MOST], old[P3_ATOMIC_MOST];
	uint64_t sent = p3_atomic_sent(ask->what, ask->length);
	memcpy(operands, p3_request_eager_bytes(r->cell, sent), sent);
	p3_atomic_do(ask->what, &s->region, s->offset, t->mlength, operands,
		operands + ask->length, old);
	FAULT_POINT("swap.written");
	p3_xfer_swapped(n);
	if (reply)
		memcpy(reply, old, t->mlength);
}

/* Move the bytes, post END, and answer.  An exchange reads and writes in one step of one
 * pass, so that no other action of this firmware comes between. */
static void deliver_finish(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, struct p3_placed *t)
{
	struct p3_span *s = &t->span;
	uint32_t kind = r->ask.kind;
	uint64_t word0 = 0;
	char *reply = NULL;
	if (kind != P3_REQ_PUT)
		reply = p3_rsp_begin_reply(n, p, r->pending, t->mlength, &word0);
	if (r->flags & P3_F_ATOMIC)
		deliver_exchange(n, r, t, reply);
	else if (kind == P3_REQ_GET)
		p3_region_read(&s->region, s->offset, reply, t->mlength);
	else
		deliver_deposit(n, r, t);
	if (kind != P3_REQ_PUT) {
		FAULT_POINT("reply.filled");
		p3_rsp_publish(n, p, word0, t->mlength);
		FAULT_POINT("reply.published");
	}
	p3_span_end(n, s, deliver_end_of(kind), PTL_NI_OK);
	if (kind == P3_REQ_PUT && r->pending)
		p3_rsp_send_brief(
			n, p, r->pending, t->ack ? P3_RSP_ACK : P3_RSP_DONE, t->mlength);
}

/* Return true if an atomic operation may be done now, on the elements that fit whole.
 * It waits while a long transfer that has begun uses its bytes. */
static __attribute__((noinline)) bool deliver_may_exchange(struct p3_nic *n,
	struct p3_peer *p, const struct p3_incoming *r, struct p3_hit *hit)
{
	hit->mlength -= hit->mlength % p3_atomic_size(r->ask.what);
	return p3_getput_may_go(n, p, hit);
}

P3_PATH
bool p3_deliver(struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r,
	struct p3_hit *hit)
{
	struct p3_placed t;
	uint32_t kind = r->ask.kind;
	bool is_long = r->flags & P3_F_LONG;
	if (is_long && kind == P3_REQ_PUT)
		return deliver_put_long(n, p, r, hit);
	if (is_long && kind == P3_REQ_GET && hit->mlength > P3_RSP_INLINE)
		return deliver_get_long(n, p, r, hit);
	if (kind != P3_REQ_PUT && !p3_rsp_has_room(p, hit->mlength))
		return false;
	if (r->flags & P3_F_ATOMIC && !deliver_may_exchange(n, p, r, hit))
		return false;
	deliver_begin(n, p, r, hit, &t);
	deliver_finish(n, p, r, &t);
	return true;
}

void p3_deliver_place(struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r,
	const struct p3_hit *hit, struct p3_placed *t_out)
{
	deliver_begin(n, p, r, hit, t_out);
	p3_ni_use_more(p3_ni_of(n, &hit->md->o), P3_U_OP);
}

bool p3_deliver_move(struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r,
	struct p3_placed *t)
{
	struct p3_ni *ni = p3_ni_of(n, &t->span.md->o);
	if (r->ask.kind == P3_REQ_GET && !p3_rsp_has_room(p, t->mlength))
		return false;
	deliver_finish(n, p, r, t);
	p3_ni_use_less(ni, P3_U_OP);
	return true;
}

void p3_deliver_fail(struct p3_nic *n, const struct p3_incoming *r, struct p3_placed *t)
{
	struct p3_ni *ni = p3_ni_of(n, &t->span.md->o);
	p3_span_end(n, &t->span, deliver_end_of(r->ask.kind), PTL_NI_FAIL);
	p3_ni_use_less(ni, P3_U_OP);
}
