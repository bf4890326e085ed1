/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests into a lane: their needs, their cells, their publication. */
#include "nic/obj/obj.h"
#include "nic/proto/proto.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"
#include "shm/fault.h"

/* ---- needs of a request ---- */

/* Room that one request needs: cells of the request ring, cells of the response ring,
 * and a slot of the transfer table. */
struct req_need {
	uint32_t cells;
	uint32_t rsp;
	bool slot; /* long: the target pulls the bytes */
	bool past; /* the bytes are copied by p3_copy_past() */
};

static bool req_is_long_put(
	const struct p3_nic *n, const struct p3_peer *p, const struct p3_pending *t)
{
	uint64_t len = t->move.length;
	return len > p3_request_most(p->req_out.n) ||
	       (len > P3_EAGER_MOST_HEAP &&
		       (p3_pending_is_rma(t) ||
			       p3_event_queue(&t->send.sink, PTL_EVENT_SEND_END)) &&
		       p3_xfer_is_faster(n, p, &t->send.region, t->send.offset, len));
}

static struct req_need req_need_of(
	const struct p3_nic *n, const struct p3_peer *p, const struct p3_pending *t)
{
	struct req_need need = {.cells = 1};
	uint64_t len = t->move.length;
	if (t->kind == P3_REQ_GET) {
		need.slot = len > p3_reply_most(p->rsp_in.n);
		need.rsp = need.slot ? 1 : p3_reply_room(len);
		return need;
	}
	need.slot = t->kind == P3_REQ_PUT && req_is_long_put(n, p, t);
	need.rsp =
		t->kind == P3_REQ_GETPUT ? p3_reply_room(len) : need.slot || t->move.ack;
	if (need.slot)
		return need;
	need.cells = p3_request_cells(p3_atomic_sent(t->move.what, len));
	need.past = len > P3_EAGER_APART && !t->send.region.iov &&
		    p->index != n->conf.node && p3_pace_copies_past(n, len);
	return need;
}

bool p3_req_has_room(struct p3_nic *n, struct p3_peer *p, uint32_t cells, uint32_t rsp)
{
	if (p3_unlikely(rsp + p->rsp_used > p->rsp_cap))
		return false;
	return p3_peer_has_room(p, &p->req_out, cells) ||
	       (p3_peer_grow_requests(n, p) && p3_peer_has_room(p, &p->req_out, cells));
}

/* ---- one request into the lane ---- */

struct p3_cell *p3_req_begin(
	struct p3_nic *n, struct p3_peer *p, uint32_t cells, bool is_long)
{
	if (p3_unlikely(!p->req_full) && (!n->sparing || is_long) && ++p->nsent >= 8)
		(void)p3_peer_grow_requests(n, p);
	return p3_ring_begin(&p->req_out, cells);
}

/* Not inline: otherwise its loop would be on the path of each message. */
static __attribute__((noinline)) void req_copy_past(
	struct p3_cell *c, const struct p3_region *r, uint64_t offset, uint64_t length)
{
	p3_copy_past(p3_request_eager_bytes(c, length),
		p3_region_address(r->start, offset), length);
}

/* Write the bytes into the message, before its header (p3_pack_request()). */
static void req_fill_data(struct p3_cell *c, const struct p3_region *r, uint64_t offset,
	uint64_t length, bool past)
{
	uint64_t d[2] = {0, 0};
	if (past) {
		req_copy_past(c, r, offset, length);
		return;
	}
	if (length > P3_REQ_INLINE) {
		p3_region_read(r, offset, p3_request_eager_bytes(c, length), length);
		return;
	}
	p3_region_read(r, offset, d, length);
	p3_pack_data(c, d);
}

/* Find the place of a long put's bytes, for the request's header.  Return P3_F_HEAP if
 * it is an offset in the shared heap, P3_F_ADDR if it is an address, or 0 if the header
 * does not tell the place. */
static uint32_t req_place_of(const struct p3_pending *t, uint64_t *place_out)
{
	uint64_t heap = p3_get(&t->xfer->pub->heap);
	uint64_t place = heap ? heap : p3_get(&t->xfer->pub->addr);
	if (!place || (place | t->move.length) >> P3_PLACE_BITS)
		return 0;
	*place_out = place;
	return heap ? P3_F_HEAP : P3_F_ADDR;
}

void p3_req_publish(struct p3_nic *n, struct p3_peer *p, uint64_t word0, uint32_t rsp)
{
	FAULT_POINT("request.filled");
	p3_ring_publish(&p->req_out, word0, p3_word0_ncells(word0));
	FAULT_POINT("request.published");
	p->rsp_used += rsp;
	if (p3_unlikely(!p->hot))
		p3_peer_heat(n, p); /* a response may come, or the peer is this node */
	p3_looks_add(n, p);
	/* Open the request ring for requests that leave at once (tx.h): the peer lives,
	 * its lane is hot, and no request is counted for a full ring.  The ring is shut
	 * when the peer is lost, when the lane becomes cold, and by each message that
	 * does not open it again.  If requests wait in the peer's queue, p3_tx_push()
	 * sets P3_ODD_BLOCKED. */
	if (p3_likely(p->req_full || n->sparing))
		p3_ring_open(&p->req_out);
	n->worked = true;
}

/* Fill in a request; return its word 0. */
static uint64_t req_fill(
	struct p3_cell *c, const struct p3_pending *t, struct p3_request *r, bool past)
{
	r->xfer = t->xfer ? p3_xfer_name(t->xfer) : 0;
	if (t->kind == P3_REQ_GET)
		return p3_pack_get(c, r);
	if (t->is_long) {
		r->flags |=
			req_place_of(t, &r->place) | (t->xfer->ahead ? P3_F_AHEAD : 0u);
		return p3_pack_long(c, r);
	}
	req_fill_data(c, &t->send.region, t->send.offset,
		p3_atomic_sent(r->what, r->length), past);
	return r->what ? p3_pack_atomic(c, r) : p3_pack_eager(c, r);
}

/* Send a request.  The header has 16 bits for the portal index: a larger index is sent as
 * 0xffff, which no interface has, so the target drops the request. */
static void req_emit(struct p3_nic *n, struct p3_peer *p, const struct p3_pending *t,
	const struct req_need *need)
{
	const struct p3_move *m = &t->move;
	uint32_t flags = (m->ack ? P3_F_ACK : 0u) | (t->is_long ? P3_F_LONG : 0u) |
			 (t->ni == 1 ? P3_F_NI1 : 0u) | (m->what ? P3_F_ATOMIC : 0u) |
			 (t->is_long && t->copy ? P3_F_COPIED : 0u);
	struct p3_request r = {.kind = p3_pending_kind(t),
		.flags = flags,
		.ncells = need->cells,
		.pid = (uint16_t)m->target.pid,
		.portal = m->pt_index > 0xffff ? 0xffff : m->pt_index,
		.access = m->ac_index,
		.room = need->rsp,
		.pending = need->rsp ? p3_pending_name(t) : 0,
		.bits = m->bits,
		.hdr = m->hdr,
		.offset = m->remote_offset,
		.length = m->length,
		.what = m->what};
	struct p3_cell *c = p3_req_begin(n, p, need->cells, need->slot);
	uint64_t word0 = req_fill(c, t, &r, need->past);
	uint64_t sent = t->kind == P3_REQ_GET ? 0 : m->length;
	P3_TRACE(send, n, p, p3_request_name(r.kind, m->what), sent);
	p3_req_publish(n, p, word0, need->rsp);
	if (need->cells > 1 && !need->past)
		p3_ring_own_more(&p->req_out, need->cells);
	if (p3_likely(!p3_pending_is_rma(t))) {
		p3_count(&n->count[P3_C_SENT], 1);
		p3_count(&n->count[P3_C_SENT_BYTES], sent);
	}
	if (t->kind == P3_REQ_PUT && m->length > P3_EAGER_APART)
		p3_pace_sent(n, m->length, !p->nout);
}

bool p3_req_put(struct p3_nic *n, struct p3_peer *p, const struct p3_pending *t)
{
	struct req_need need = req_need_of(n, p, t);
	if (need.slot || !p3_req_has_room(n, p, need.cells, need.rsp))
		return false;
	req_emit(n, p, t, &need);
	p3_count(&n->count[need.cells == 1 ? P3_C_PUT_INLINE : P3_C_PUT_EAGER], 1);
	return true;
}

/* ---- pendings ---- */

/* Return true if a long transfer must wait for an exchange of the same bytes. */
static bool req_must_wait(struct p3_nic *n, const struct p3_pending *t)
{
	const struct p3_region *r = &t->send.region;
	uint64_t off = t->send.offset;
	if (t->kind == P3_REQ_GET && !p3_pending_is_rma(t)) {
		if (!t->md || !p3_pending_md_lives(t))
			return false;
		r = &t->md->region;
		off = t->move.offset;
	}
	return p3_getput_waits(n, r, off, t->move.length);
}

bool p3_req_send(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t)
{
	/* A put that is too long for the base lane may fit a full one. */
	if (!p->req_full && t->kind == P3_REQ_PUT &&
		t->move.length > p3_request_most(p->req_out.n) &&
		p3_request_cells(t->move.length) <= p3_ring_most(n->layout.req_cells))
		(void)p3_peer_grow_requests(n, p);
	struct req_need need = req_need_of(n, p, t);
	t->is_long = need.slot;
	if (!p3_req_has_room(n, p, need.cells, need.rsp))
		return false;
	if (need.slot) {
		if (p3_unlikely(n->swapper != NULL) && req_must_wait(n, t))
			return false;
		t->xfer = p3_xfer_alloc(n, p, P3_X_OWN);
		if (!t->xfer)
			return false;
	}
	if (need.slot && t->kind == P3_REQ_PUT) {
		if (!t->copy && !p3_xfer_is_faster(n, p, &t->send.region, t->send.offset,
					t->move.length))
			p3_pending_copy_out(n, t);
		t->xfer->span.region = t->send.region;
		t->xfer->span.offset = t->send.offset;
		t->xfer->length = t->move.length;
		p3_xfer_publish(n, t->xfer);
		t->xfer->ahead = !t->copy && p3_xfer_may_go_ahead(n, t->xfer);
		if (t->xfer->ahead)
			p3_xfer_send_ahead(n, t->xfer, P3_AHEAD_FIRST);
	}
	P3_TRACE(focus, n, (struct p3_topic){p->index, 0}, t->command);
	t->rsp_cells = need.rsp;
	req_emit(n, p, t, &need);
	P3_TRACE(keep, n, &t->topic);
	p3_list_del(&t->link);
	p3_list_add(&p->outstanding, &t->link);
	t->state = P3_PEND_SENT;
	p->nqueued--;
	p->nout++;
	FAULT_POINT("request.sent");
	if (t->send.md && !(t->is_long && t->kind == P3_REQ_PUT))
		p3_pending_end(n, t, PTL_NI_OK);
	if (t->copy && !t->is_long)
		p3_pending_drop_copy(n, t);
	if (!need.rsp)
		p3_pending_free(n, t);
	return true;
}
