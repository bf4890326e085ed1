/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests sent: admission, reservations, send queues. */
#include "nic/proto/proto.h"

#include "nic/cci/firmware.h"
#include "nic/obj/obj.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"
#include "shm/fault.h"

#include <errno.h>
#include <string.h>

/* ---- needs of a request ---- */

/* Room that one request needs: cells of the request ring, cells of the response ring,
 * and a slot of the transfer table. */
struct tx_need {
	uint32_t cells;
	uint32_t rsp;
	bool slot; /* long: the target pulls the bytes */
};

/* The bytes that a request carries, and the sink of its SEND events. */
struct tx_load {
	const struct p3_sink *sink;
	const struct p3_region *region;
	uint64_t offset;
};

static inline bool tx_is_long_put(const struct p3_nic *n, const struct p3_peer *p,
	const struct tx_load *l, uint64_t len)
{
	return p3_unlikely(len > p3_request_most(p->req_out.n)) ||
	       (p3_unlikely(len > P3_EAGER_MOST_HEAP) &&
		       p3_event_queue(l->sink, PTL_EVENT_SEND_END) &&
		       p3_xfer_is_faster(n, p, l->region, l->offset, len));
}

static inline struct tx_need tx_need_of(const struct p3_nic *n, const struct p3_peer *p,
	uint32_t kind, const struct p3_move *m, const struct tx_load *l)
{
	struct tx_need need = {.cells = 1};
	if (kind == P3_REQ_GET) {
		need.slot = m->length > p3_reply_most(p->rsp_in.n);
		need.rsp = need.slot ? 1 : p3_reply_room(m->length);
		return need;
	}
	need.slot = kind == P3_REQ_PUT && tx_is_long_put(n, p, l, m->length);
	need.rsp = need.slot || m->ack;
	if (kind == P3_REQ_GETPUT)
		need.rsp = p3_reply_room(m->length);
	if (!need.slot)
		need.cells = p3_request_cells(m->length);
	return need;
}

static inline bool tx_has_room(
	struct p3_nic *n, struct p3_peer *p, const struct tx_need *need)
{
	if (p3_unlikely(need->rsp + p->rsp_used > p->rsp_cap))
		return false;
	return p3_peer_has_room(p, &p->req_out, need->cells) ||
	       (p3_peer_grow_requests(n, p) &&
		       p3_peer_has_room(p, &p->req_out, need->cells));
}

/* ---- one request into the lane ---- */

/* Begin a request.  After enough requests first switch to the full ring: a switch cell
 * without a request behind it could stay untaken for long, and look like an untaken
 * message.  A full ring touches more cache lines and pages than a base ring: if the full
 * rings of all pairs exceed a CPU's cache, only a pair whose base ring is too short gets
 * one. */
static inline struct p3_cell *tx_begin(
	struct p3_nic *n, struct p3_peer *p, const struct tx_need *need)
{
	if (p3_unlikely(!p->req_full) && (!n->sparing || need->slot) && ++p->nsent >= 8)
		(void)p3_peer_grow_requests(n, p);
	return p3_ring_begin(&p->req_out, need->cells);
}

/* Return the fields of a request that do not depend on its layout.  The header has 16
 * bits for the portal index: a larger index is sent as 0xffff, which no interface has, so
 * the target drops the request. */
static inline struct p3_request tx_describe(const struct p3_move *m, uint32_t kind,
	uint32_t flags, const struct tx_need *need, uint32_t pending)
{
	return (struct p3_request){.kind = kind,
		.flags = flags,
		.ncells = need->cells,
		.pid = (uint16_t)m->target.pid,
		.portal = m->pt_index > 0xffff ? 0xffff : m->pt_index,
		.access = m->ac_index,
		.room = need->rsp,
		.pending = pending,
		.bits = m->bits,
		.hdr = m->hdr,
		.offset = m->remote_offset,
		.length = m->length};
}

/* Write the bytes into the message, before its header (p3_pack_request()). */
static inline void tx_fill_data(const struct p3_nic *n, struct p3_cell *c,
	const struct p3_region *r, uint64_t offset, uint64_t length)
{
	uint64_t d[2] = {0, 0};
	if (length > P3_REQ_INLINE) {
		if (p3_region_copies_few(n->crowded, r, length))
			p3_region_copy_few(p3_request_eager_bytes(c),
				p3_region_address(r->start, offset), length);
		else
			p3_region_read(r, offset, p3_request_eager_bytes(c), length);
		return;
	}
	if (p3_likely(length == 8 && !r->iov))
		memcpy(d, r->start + offset, 8);
	else
		p3_region_read(r, offset, d, length);
	p3_pack_data(c, d);
}

/* Find the place of a long put's bytes, for the request's header.  Return P3_F_HEAP if
 * it is an offset in the shared heap, P3_F_ADDR if it is an address, or 0 if the header
 * does not tell the place. */
static uint32_t tx_place_of(const struct p3_pending *t, uint64_t *place_out)
{
	uint64_t heap = p3_get(&t->xfer->pub->heap);
	uint64_t place = heap ? heap : p3_get(&t->xfer->pub->addr);
	if (!place || (place | t->move.length) >> P3_PLACE_BITS)
		return 0;
	*place_out = place;
	return heap ? P3_F_HEAP : P3_F_ADDR;
}

static inline void tx_publish(struct p3_nic *n, struct p3_peer *p, uint64_t word0,
	const struct tx_need *need, uint64_t sent)
{
	FAULT_POINT("request.filled");
	P3_TRACE(send, n, p, word0, sent);
	p3_ring_publish(&p->req_out, word0, need->cells);
	FAULT_POINT("request.published");
	if (need->cells > 1)
		p3_ring_own_more(&p->req_out, need->cells);
	p->rsp_used += need->rsp;
	if (p3_unlikely(!p->hot))
		p3_peer_heat(n, p); /* a response may come, or the peer is this node */
	p3_looks_add(n, p);
	/* Open the request ring for straight puts (nic/host/request.c): the peer lives,
	 * its lane is hot, and no request is counted for a full ring.  The ring is shut
	 * when the peer is lost, when the lane becomes cold, and by each message that
	 * does not open it again.  If requests wait in the peer's queue, p3_tx_push()
	 * sets P3_ODD_BLOCKED. */
	if (p3_likely(p->req_full || n->sparing))
		p3_ring_open(&p->req_out);
	n->worked = true;
	p3_count(&n->count[P3_C_SENT], 1);
	p3_count(&n->count[P3_C_SENT_BYTES], sent);
}

/* Fill in a request; return its word 0. */
static uint64_t tx_fill(const struct p3_nic *n, struct p3_cell *c,
	const struct p3_pending *t, struct p3_request *r)
{
	r->xfer = t->xfer ? p3_xfer_name(t->xfer) : 0;
	if (t->kind == P3_REQ_GET)
		return p3_pack_get(c, r);
	if (t->is_long) {
		r->flags |= tx_place_of(t, &r->place);
		return p3_pack_long(c, r);
	}
	tx_fill_data(n, c, &t->send.region, t->send.offset, r->length);
	return p3_pack_eager(c, r);
}

static void tx_emit(struct p3_nic *n, struct p3_peer *p, const struct p3_pending *t,
	uint32_t name, const struct tx_need *need)
{
	uint32_t flags = (t->move.ack ? P3_F_ACK : 0u) | (t->is_long ? P3_F_LONG : 0u) |
			 (t->ni ? P3_F_NI1 : 0u) |
			 (t->is_long && t->copy ? P3_F_COPIED : 0u);
	struct p3_request r = tx_describe(&t->move, t->kind, flags, need, name);
	struct p3_cell *c = tx_begin(n, p, need);
	tx_publish(n, p, tx_fill(n, c, t, &r), need,
		t->kind == P3_REQ_GET ? 0 : t->move.length);
}

/* ---- admission ---- */

/* Find the queue of a request, or NULL if the request ends at once.  Return as
 * p3_hold_find_queue() does. */
static inline int tx_find_queue(struct p3_nic *n, struct p3_peer *p, ptl_process_id_t who,
	struct p3_peer **to_out)
{
	*to_out = p;
	return p3_likely(p3_peer_is_live(p, who.pid))
		       ? PTL_OK
		       : p3_hold_find_queue(n, p, who, to_out);
}

static bool tx_fits(const struct p3_md *md, uint64_t offset, uint64_t length)
{
	uint64_t size = md->region.size;
	return offset <= size && length <= size - offset;
}

static P3_HOT struct p3_md *tx_active_md(struct p3_nic *n, uint64_t handle)
{
	struct p3_md *md = p3_md_named(n, handle);
	return p3_likely(md && md->words.threshold != 0) ? md : NULL;
}

static inline int tx_check(struct p3_nic *n, struct p3_cmd *c, struct p3_md **md_out)
{
	struct p3_md *md = tx_active_md(n, c->handle);
	if (p3_unlikely(!md))
		return PTL_MD_INVALID;
	if (c->move.length == P3_WHOLE) {
		c->move.offset = 0;
		c->move.length = md->region.size;
	} else if (p3_unlikely(!tx_fits(md, c->move.offset, c->move.length))) {
		return PTL_MD_ILLEGAL;
	}
	*md_out = md;
	return PTL_OK;
}

static __attribute__((noinline)) void tx_send_started(
	struct p3_nic *n, const struct p3_move *m, struct p3_md *md, uint32_t link)
{
	struct p3_event_words rec;
	p3_tx_describe(n, m, md, m->offset, m->length, link, 0, &rec);
	p3_event_write(n, &md->sink, &rec, PTL_EVENT_SEND_START, PTL_NI_OK);
}

static __attribute__((noinline)) void tx_send_unlinks(
	struct p3_nic *n, const struct p3_move *m, struct p3_md *md, uint32_t link)
{
	struct p3_event_words rec;
	p3_tx_describe(n, m, md, m->offset, m->length, link, 0, &rec);
	p3_event_unlinks(n, md, &md->sink, &rec, PTL_EVENT_SEND_END, PTL_NI_OK);
}

static inline void tx_send_ended(
	struct p3_nic *n, const struct p3_move *m, struct p3_md *md, uint32_t link)
{
	struct p3_eq *eq = p3_event_queue(&md->sink, PTL_EVENT_SEND_END);
	if (p3_unlikely(!eq))
		return;
	struct p3_event_record *e = p3_event_draft(n, eq);
	p3_tx_describe(
		n, m, md, m->offset, m->length, link, PTL_EVENT_SEND_END, &e->words);
	p3_event_post(n, eq, e, PTL_EVENT_SEND_END);
}

/* Send a put without a pending.  Return false if it needs one: it wants an ACK, other
 * requests wait before it, it is long, or the lane has no room. */
static inline bool tx_put_now(
	struct p3_nic *n, struct p3_peer *p, const struct p3_move *m, struct p3_md *md)
{
	if (p3_unlikely(m->ack || !p3_list_empty(&p->queue)))
		return false;
	const struct tx_load l = {&md->sink, &md->region, m->offset};
	struct tx_need need = tx_need_of(n, p, P3_REQ_PUT, m, &l);
	if (p3_unlikely(need.slot))
		return false;
	need.rsp = 0; /* as m->ack is 0: a constant takes fewer instructions */
	if (p3_unlikely(!tx_has_room(n, p, &need)))
		return false;
	struct p3_cell *c = tx_begin(n, p, &need);
	tx_fill_data(n, c, &md->region, m->offset, m->length);
	const struct p3_request r = tx_describe(m, P3_REQ_PUT, 0, &need, 0);
	/* The interface is looked up last, which spares a register while c is filled. */
	uint64_t word0 = p3_pack_eager(c, &r);
	word0 |= p3_field_in(P3_HEADER_FLAGS, md->o.ni ? P3_F_NI1 : 0u);
	tx_publish(n, p, word0, &need, m->length);
	p3_tx_count(p3_ni_of(n, &md->o), m->length);
	p3_count(&n->count[need.cells == 1 ? P3_C_PUT_INLINE : P3_C_PUT_EAGER], 1);
	p3_match_threshold(md);
	uint32_t link = n->next_link++;
	if (p3_unlikely(p3_event_is_wanted(&md->sink, PTL_EVENT_SEND_START)))
		tx_send_started(n, m, md, link);
	if (p3_match_may_unlink(md))
		tx_send_unlinks(n, m, md, link);
	else
		tx_send_ended(n, m, md, link);
	return true;
}

/* Keep a request as a pending in the send queue of its target, and send it if there is
 * room.  source is the descriptor that has the SEND events, for its bytes from offset
 * on; NULL: the request has no SEND events. */
static __attribute__((noinline)) int tx_admit(struct p3_nic *n, struct p3_peer *p,
	uint32_t kind, const struct p3_move *m, struct p3_md *md, struct p3_md *source,
	uint64_t offset)
{
	struct p3_pending *t = p3_pending_alloc(n, p, kind, m, md);
	if (!t)
		return -(1 + (int)P3_T_PENDING);
	if (source) {
		p3_match_threshold(source);
		p3_tx_describe(
			n, m, source, offset, m->length, n->next_link++, 0, &t->send.rec);
		p3_span_begin(&t->send, source, offset);
		/* SEND_START is posted now, not when the request leaves the queue,
		 * since START events come in the order of the calls. */
		if (!p3_pending_is_held(n, p))
			p3_pending_start(n, t);
	}
	FAULT_POINT("request.admitted");
	if (p3_unlikely(n->traced != NULL))
		t->command = n->trace.command;
	p3_ni_use_more(&n->ni[t->ni], P3_U_OP);
	p3_tx_count(&n->ni[t->ni], kind == P3_REQ_GET ? 0 : m->length);
	p3_list_add(&p->queue, &t->link);
	p->nqueued++;
	uint64_t name = p3_get(&t->o.name);
	p3_tx_push(n, p);
	if (p3_get(&t->o.name) == name && t->state == P3_PEND_QUEUED)
		p3_pending_copy_out(n, t);
	return PTL_OK;
}

/* Post the SEND events of a request that ends at once, since its target has ended or does
 * not exist. */
static P3_RARE void tx_send_nowhere(struct p3_nic *n, const struct p3_move *m,
	struct p3_md *md, uint64_t offset, bool failure)
{
	struct p3_event_words rec;
	p3_match_threshold(md);
	p3_tx_describe(n, m, md, offset, m->length, n->next_link++, 0, &rec);
	p3_record_set_mlength(&rec, failure ? 0 : m->length);
	p3_event_write(n, &md->sink, &rec, PTL_EVENT_SEND_START, PTL_NI_OK);
	p3_event_ends(n, md, &md->sink, &rec, PTL_EVENT_SEND_END,
		failure ? PTL_NI_FAIL : PTL_NI_OK);
}

/* Restore the command's arguments, which tx_check() has changed, if the command did not
 * succeed: the caller may provide memory and execute it again. */
static int tx_restored(struct p3_move *m, uint64_t length, uint16_t ack, int rc)
{
	if (rc != PTL_OK) {
		m->length = length;
		m->ack = ack;
	}
	return rc;
}

P3_PATH
int p3_tx_put(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md;
	struct p3_move *m = &c->move;
	uint64_t length = m->length;
	uint16_t ack = m->ack;
	int rc = tx_check(n, c, &md);
	if (p3_unlikely(rc != PTL_OK))
		return rc;
	m->ack = p3_unlikely(m->ack) && p3_eq_of_sink(&md->sink);
	struct p3_peer *p = p3_peer_find(n, m->target);
	struct p3_peer *to = p;
	if (p3_likely(p3_peer_is_live(p, m->target.pid))) {
		if (p3_likely(tx_put_now(n, p, m, md)))
			return PTL_OK;
	} else {
		rc = p3_hold_find_queue(n, p, m->target, &to);
		if (rc != PTL_OK)
			return tx_restored(m, length, ack, rc);
	}
	if (to)
		return tx_restored(m, length, ack,
			tx_admit(n, to, P3_REQ_PUT, m, md, md, m->offset));
	p3_why_nowhere(n, p, P3_REQ_PUT, m);
	tx_send_nowhere(n, m, md, m->offset, p3_peer_is_failure(p, m->target.pid));
	return PTL_OK;
}

int p3_tx_get(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md;
	struct p3_move *m = &c->move;
	uint64_t length = m->length;
	m->hdr = 0;
	m->ack = false;
	int rc = tx_check(n, c, &md);
	if (rc != PTL_OK)
		return rc;
	struct p3_peer *p = p3_peer_find(n, m->target);
	struct p3_peer *to;
	rc = tx_find_queue(n, p, m->target, &to);
	if (p3_unlikely(rc != PTL_OK))
		return tx_restored(m, length, 0, rc);
	bool cray = md->sink.options & P3_MD_CRAY;
	if (to)
		return tx_restored(m, length, 0,
			tx_admit(n, to, P3_REQ_GET, m, md, cray ? md : NULL, m->offset));
	p3_why_nowhere(n, p, P3_REQ_GET, m);
	if (cray)
		tx_send_nowhere(
			n, m, md, m->offset, p3_peer_is_failure(p, m->target.pid));
	else if (p3_peer_is_failure(p, m->target.pid))
		p3_pending_reply_fails(n, m, md, p);
	return PTL_OK;
}

static int tx_check_exchange(struct p3_nic *n, struct p3_cmd *c, struct p3_md **get_out,
	struct p3_md **put_out)
{
	struct p3_md *get = tx_active_md(n, c->handle);
	struct p3_md *put = tx_active_md(n, c->move.put_handle);
	if (!get || !put)
		return PTL_MD_INVALID;
	if (get->o.ni != put->o.ni)
		return PTL_MD_ILLEGAL;
	if (c->move.length == P3_WHOLE) {
		c->move.offset = c->move.put_offset = 0;
		c->move.length = put->region.size;
	} else if (!tx_fits(get, c->move.offset, c->move.length) ||
		   !tx_fits(put, c->move.put_offset, c->move.length)) {
		return PTL_MD_ILLEGAL;
	}
	*get_out = get;
	*put_out = put;
	uint64_t most = (uint64_t)n->ni[get->o.ni].limits.max_getput_md;
	return c->move.length <= most ? PTL_OK : PTL_MD_ILLEGAL;
}

int p3_tx_getput(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *get, *put;
	struct p3_move *m = &c->move;
	uint64_t length = m->length;
	int rc = tx_check_exchange(n, c, &get, &put);
	if (rc != PTL_OK)
		return tx_restored(m, length, 0, rc);
	m->ack = false;
	struct p3_peer *p = p3_peer_find(n, m->target);
	struct p3_peer *to;
	rc = tx_find_queue(n, p, m->target, &to);
	if (p3_unlikely(rc != PTL_OK))
		return tx_restored(m, length, 0, rc);
	if (to)
		return tx_restored(m, length, 0,
			tx_admit(n, to, P3_REQ_GETPUT, m, get, put, m->put_offset));
	p3_why_nowhere(n, p, P3_REQ_GETPUT, m);
	tx_send_nowhere(n, m, put, m->put_offset, p3_peer_is_failure(p, m->target.pid));
	return PTL_OK;
}

void p3_tx_refuse(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md, *put;
	struct p3_move *m = &c->move;
	struct p3_peer *p = p3_peer_find(n, m->target);
	if (c->op == P3_OP_GETPUT) {
		p3_why_nowhere(n, p, P3_REQ_GETPUT, m);
		if (tx_check_exchange(n, c, &md, &put) == PTL_OK)
			tx_send_nowhere(n, m, put, m->put_offset, true);
	} else if (c->op == P3_OP_PUT || c->op == P3_OP_GET) {
		if (tx_check(n, c, &md) != PTL_OK)
			return;
		bool is_put = c->op == P3_OP_PUT;
		p3_why_nowhere(n, p, is_put ? P3_REQ_PUT : P3_REQ_GET, m);
		if (is_put || (md->sink.options & P3_MD_CRAY))
			tx_send_nowhere(n, m, md, m->offset, true);
		else
			p3_pending_reply_fails(n, m, md, p);
	}
	n->posted = P3_NEWS_ALL;
}

/* ---- send queues ---- */

/* Return true if a long transfer must wait for an exchange of the same bytes. */
static bool tx_must_wait(struct p3_nic *n, const struct p3_pending *t)
{
	const struct p3_region *r = &t->send.region;
	uint64_t off = t->send.offset;
	if (t->kind == P3_REQ_GET) {
		if (!t->md || !p3_pending_md_lives(t))
			return false;
		r = &t->md->region;
		off = t->move.offset;
	}
	return p3_getput_waits(n, r, off, t->move.length);
}

/* Send messages of CCI, whose marker is at the front of the queue.  The marker goes to
 * the end if some are left. */
static P3_RARE bool tx_send_cci(struct p3_nic *n, struct p3_peer *p)
{
	p3_list_del(&p->cci_marker.link);
	bool sent = p3_cci_sendq_push(n, p);
	if (!p3_cci_sendq_waits(p))
		return true;
	p3_list_add(&p->queue, &p->cci_marker.link);
	return sent;
}

static bool tx_send_one(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t)
{
	if (p3_unlikely(t == &p->cci_marker))
		return tx_send_cci(n, p);
	/* A put that is too long for the base lane may fit a full one. */
	if (!p->req_full && t->kind == P3_REQ_PUT &&
		t->move.length > p3_request_most(p->req_out.n) &&
		p3_request_cells(t->move.length) <= p3_ring_most(n->layout.req_cells))
		(void)p3_peer_grow_requests(n, p);
	const struct tx_load l = {&t->send.sink, &t->send.region, t->send.offset};
	struct tx_need need = tx_need_of(n, p, t->kind, &t->move, &l);
	t->is_long = need.slot;
	if (!tx_has_room(n, p, &need))
		return false;
	if (need.slot) {
		if (p3_unlikely(n->swapper != NULL) && tx_must_wait(n, t))
			return false;
		t->xfer = p3_xfer_alloc(n, p, P3_X_OWN);
		if (!t->xfer)
			return false;
	}
	if (need.slot && t->kind == P3_REQ_PUT) {
		if (!t->copy &&
			!p3_xfer_is_faster(n, p, l.region, l.offset, t->move.length))
			p3_pending_copy_out(n, t);
		t->xfer->span.region = t->send.region;
		t->xfer->span.offset = t->send.offset;
		t->xfer->length = t->move.length;
		p3_xfer_publish(n, t->xfer);
	}
	P3_TRACE(focus, n, (struct p3_topic){p->index, 0}, t->command);
	t->rsp_cells = need.rsp;
	tx_emit(n, p, t, need.rsp ? p3_pending_name(t) : 0, &need);
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

/* If a request waits for the peer, have the NIC's owner fetch the peer's descriptors
 * (conf.meet), once. */
static P3_RARE void tx_meet(struct p3_nic *n, struct p3_peer *p)
{
	if (p->met || p3_list_empty(&p->queue))
		return;
	p->met = true;
	p3_set(&n->meeting, p3_get(&n->meeting) + 1);
	FAULT_POINT("apart.wanted");
	n->conf.meet(n->conf.ask_arg, p->index);
}

/* Send from the front of the peer's queue while there is room.  Requests to an expected
 * peer stay until p3_peer_up() calls this function again; no pass polls for that.
 * Pass the newest request to a pseudo-peer on to p3_hold_newest(). */
void p3_tx_push(struct p3_nic *n, struct p3_peer *p)
{
	if (p3_unlikely(p->state == P3_ABSENT)) {
		p3_hold_newest(n, p);
		return;
	}
	if (p->state == P3_EXPECTED) {
		if (p->apart)
			tx_meet(n, p);
		p3_mirror_peer(p, p3_now_ns());
		return;
	}
	while (!p3_list_empty(&p->queue))
		if (!tx_send_one(n, p, p3_item(p->queue.next, struct p3_pending, link)))
			break;
	bool blocked = !p3_list_empty(&p->queue);
	if (blocked && !p->blocked) {
		p3_list_add(&n->blocked, &p->blocked_link);
		p3_odd_set(n, P3_ODD_BLOCKED);
		p3_count(&n->count[P3_C_QUEUED], 1);
		p3_wake_self(n); /* room in a lane rings no doorbell */
	} else if (!blocked && p->blocked) {
		p3_list_del(&p->blocked_link);
	}
	p->blocked = blocked;
}

void p3_tx_unblock(struct p3_nic *n)
{
	p3_list_each(it, &n->blocked)
		p3_tx_push(n, p3_item(it, struct p3_peer, blocked_link));
}
