/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tx - requests that leave their node at once, inlined into calls and commands
 *
 * The lease holder calls p3_tx_put_now(), p3_tx_ask_now() and p3_tx_atomic_now(), unless
 * n->odd has a bit of P3_TX_ODD.  They send a request if the descriptor is plain, the
 * bytes are few, and the request ring is open for them (p3_ring_open()).  A request with
 * a response has one cell in each direction, and there is room for the response, and a
 * free pending.  If a check fails, they return false, having done nothing, and the caller
 * executes the command (p3_tx_put() and its kin), whose tail sends the request, or keeps
 * it as a pending.
 *
 * The caller looks whether the peer sleeps, and posts the news (LEASE.2, PARK.1).
 */
#ifndef P3_NIC_PROTO_TX_H
#define P3_NIC_PROTO_TX_H

#include "nic/obj/state.h"
#include "nic/proto/format.h"
#include "nic/proto/proto.h"
#include "nic/xfer/xfer.h"

#include <string.h>

/* The trace records requests, those that are blocked go first, and the host posts their
 * events. */
#define P3_TX_ODD (P3_ODD_TRACED | P3_ODD_BLOCKED | P3_ODD_GENERIC)

/* ---- puts without an acknowledgement ---- */

/* Return the descriptor, or NULL.  It is plain, with none of these bits of enum
 * p3_md_odd, and has a queue for the ACK if there will be one.  It has these bytes, and
 * they are few enough for one cell, or at most `most`. */
static P3_HOT struct p3_md *tx_find_md(struct p3_nic *n, uint64_t handle, uint32_t odd,
	bool ack, uint64_t most, uint64_t *offset, uint64_t *length)
{
	struct p3_md *md = p3_md_named(n, handle);
	odd |= P3_MD_ODD_THRESHOLD | P3_MD_ODD_INACTIVE | P3_MD_ODD_IOVEC;
	if (p3_unlikely(!md) || p3_unlikely(md->odd & odd) ||
		p3_unlikely(ack && !p3_eq_of_sink(&md->sink)))
		return NULL;
	uint64_t size = md->region.size;
	if (*length == P3_WHOLE) {
		*length = size;
		*offset = 0;
	} else if (p3_unlikely(*offset > size || *length > size - *offset)) {
		return NULL;
	}
	bool fits = p3_likely(*length <= P3_REQ_INLINE) || *length <= most;
	return fits ? md : NULL;
}

/* Fill in the bytes of a message of one cell. */
static P3_HOT void tx_fill_cell(struct p3_cell *c, const char *from, uint64_t length)
{
	uint64_t d[2] = {0, 0};
	if (p3_likely(length == sizeof d[0]))
		memcpy(d, from, sizeof d[0]);
	else
		p3_region_copy_few((char *)d, from, length);
	p3_pack_data(c, d);
}

/* Send the message whose bytes are in the next cells. */
static P3_HOT void tx_send_put(struct p3_ring_tx *r, const struct p3_move *m, uint64_t id,
	uint32_t ni, uint64_t length, uint32_t cells)
{
	const struct p3_request q = {.kind = P3_REQ_PUT,
		.ncells = cells,
		.pid = (uint16_t)(id >> 32),
		.portal = m->pt_index,
		.access = m->ac_index,
		.bits = m->bits,
		.hdr = m->hdr,
		.offset = m->remote_offset,
		.length = length};
	uint64_t word0 = p3_pack_eager(r->next, &q);
	_Static_assert(P3_JOB_NIS == 2, "the interface is the flag");
	word0 |= p3_field_in(P3_HEADER_FLAGS, (uint64_t)ni * P3_F_NI1);
	FAULT_POINT("request.filled");
	p3_ring_run(r, word0, cells);
	FAULT_POINT("request.published");
}

/* Open the request ring again for a message of k cells, if it is not shut, and the peer
 * has set its credit; behind a pad if the message does not fit the lap.  A base ring
 * comes to its end, or to that of the credit, at every third or fourth message of two
 * cells, so this is part of the message path of nodes that share CPUs. */
bool p3_tx_reopen(struct p3_peer *p, uint32_t k);

static P3_HOT bool tx_is_open(struct p3_peer *p, uint32_t k)
{
	return p3_ring_runs(&p->req_out, k) || p3_tx_reopen(p, k);
}

/* Send the bytes if the ring is open for them.  Of the descriptor the start of its region
 * and its interface count.  The number of cells is a constant where the bytes are copied
 * in place. */
static P3_HOT bool tx_put_if_open(struct p3_nic *n, struct p3_peer *p,
	const struct p3_move *m, uint64_t id, const struct p3_md *md, uint64_t offset,
	uint64_t length)
{
	struct p3_ring_tx *r = &p->req_out;
	const char *from = p3_region_address(md->region.start, offset);
	if (p3_likely(length <= P3_REQ_INLINE)) {
		if (p3_unlikely(!tx_is_open(p, 1)))
			return false;
		FAULT_POINT("lane.begun");
		tx_fill_cell(r->next, from, length);
		tx_send_put(r, m, id, md->o.ni, length, 1);
		p3_count(&n->count[P3_C_PUT_INLINE], 1);
		return true;
	}
	if (n->crowded && p3_likely(length <= P3_FEW)) {
		if (p3_unlikely(!tx_is_open(p, 2)))
			return false;
		FAULT_POINT("lane.begun");
		p3_region_copy_few(p3_request_eager_bytes(r->next, P3_FEW), from, length);
		tx_send_put(r, m, id, md->o.ni, length, 2);
		p3_count(&n->count[P3_C_PUT_EAGER], 1);
		return true;
	}
	uint32_t cells = p3_request_cells(length);
	if (p3_unlikely(cells > p3_ring_most(r->n) || !tx_is_open(p, cells)))
		return false;
	FAULT_POINT("lane.begun");
	/* There are no more bytes than P3_EAGER_APART. */
	memcpy(p3_request_eager_bytes(r->next, P3_EAGER_APART), from, length);
	tx_send_put(r, m, id, md->o.ni, length, cells);
	p3_count(&n->count[P3_C_PUT_EAGER], 1);
	return true;
}

static P3_HOT void tx_count(struct p3_nic *n, struct p3_ni *ni, uint64_t length)
{
	p3_count(&n->count[P3_C_SENT], 1);
	p3_count(&n->count[P3_C_SENT_BYTES], length);
	p3_tx_count(ni, length);
}

/* Post SEND_END.  Return the news, or 0 if the descriptor has no queue for it. */
static P3_HOT uint32_t tx_post_put(struct p3_nic *n, const struct p3_ni *ni,
	const struct p3_move *m, const struct p3_md *md, uint64_t offset, uint64_t length)
{
	uint32_t link = n->next_link++;
	if (md->odd & (P3_MD_ODD_QUEUE | P3_MD_ODD_ENDS))
		return 0;
	struct p3_eq *eq = p3_eq_of_sink(&md->sink);
	if (p3_unlikely(!eq))
		return 0;
	struct p3_event_record *e = p3_event_begin(eq);
	p3_tx_describe_from(
		n, ni, m, md, offset, length, link, PTL_EVENT_SEND_END, &e->words);
	p3_event_show(eq, e, PTL_EVENT_SEND_END);
	return eq->news;
}

/* Put at once, and post SEND_END.  Return the target and the news, or
 * false. */
static P3_HOT bool p3_tx_put_now(struct p3_nic *n, uint64_t handle,
	const struct p3_move *m, struct p3_peer **to_out, uint32_t *posted_out)
{
	uint64_t offset = m->offset, length = m->length, id;
	memcpy(&id, &m->target, sizeof id);
	struct p3_md *md = tx_find_md(
		n, handle, P3_MD_ODD_STARTS, false, P3_EAGER_MOST_HEAP, &offset, &length);
	if (p3_unlikely(!md))
		return false;
	struct p3_peer *p = *to_out = p3_ids_peer(n, id);
	if (p3_unlikely(!tx_put_if_open(n, p, m, id, md, offset, length)))
		return false;
	struct p3_ni *ni = p3_ni_of(n, &md->o);
	tx_count(n, ni, length);
	*posted_out = tx_post_put(n, ni, m, md, offset, length);
	return true;
}

/* Put bytes at once that no descriptor has, at most P3_EAGER_APART, or return false.
 * There are no events.  Return the target. */
static P3_HOT bool p3_tx_put_bytes_now(struct p3_nic *n, uint32_t ni, const void *bytes,
	const struct p3_move *m, struct p3_peer **to_out)
{
	uint64_t id;
	struct p3_md md; /* the parts that tx_put_if_open() uses */
	memcpy(&id, &m->target, sizeof id);
	md.o.ni = ni;
	md.region.start = (char *)(uintptr_t)bytes;
	struct p3_peer *p = *to_out = p3_ids_peer(n, id);
	if (p3_unlikely(m->length > P3_EAGER_APART ||
			!tx_put_if_open(n, p, m, id, &md, 0, m->length)))
		return false;
	tx_count(n, &n->ni[ni], m->length);
	return true;
}

/* ---- puts that want an acknowledgement, and gets ---- */

/* Return true if a cell of each ring is free. */
static P3_HOT bool tx_has_cells(const struct p3_peer *p)
{
	return p3_ring_runs(&p->req_out, 1) && p3_likely(p->rsp_used < p->rsp_cap);
}

/* Keep the arguments of the request, for the events of its response. */
static P3_HOT void tx_keep(struct p3_pending *t, const struct p3_move *m, uint32_t kind,
	uint64_t offset, uint64_t length)
{
	t->move.target = m->target;
	t->move.bits = m->bits;
	t->move.hdr = kind == P3_REQ_GET ? 0 : m->hdr;
	t->move.remote_offset = m->remote_offset;
	t->move.offset = offset;
	t->move.length = length;
	t->move.pt_index = m->pt_index;
	t->move.ac_index = m->ac_index;
	t->move.ack = kind == P3_REQ_PUT;
}

static P3_HOT void tx_send_asked(
	struct p3_peer *p, const struct p3_pending *t, const struct p3_move *m)
{
	struct p3_cell *c = p->req_out.next;
	const struct p3_request q = {.kind = t->kind,
		.flags = t->kind == P3_REQ_PUT ? P3_F_ACK : 0u,
		.ncells = 1,
		.pid = (uint16_t)m->target.pid,
		.portal = m->pt_index,
		.access = m->ac_index,
		.room = 1,
		.pending = p3_pending_name(t),
		.bits = m->bits,
		.hdr = t->move.hdr,
		.offset = m->remote_offset,
		.length = t->move.length};
	uint64_t word0 =
		t->kind == P3_REQ_GET ? p3_pack_get(c, &q) : p3_pack_eager(c, &q);
	_Static_assert(P3_JOB_NIS == 2, "the interface is the flag");
	word0 |= p3_field_in(P3_HEADER_FLAGS, (uint64_t)t->ni * P3_F_NI1);
	FAULT_POINT("request.filled");
	p3_ring_run(&p->req_out, word0, 1);
	p->rsp_used++;
	FAULT_POINT("request.published");
	FAULT_POINT("request.sent");
}

/* Post SEND_END.  Return the news. */
static P3_HOT uint32_t tx_post_asked(struct p3_nic *n, const struct p3_pending *t)
{
	const struct p3_move *m = &t->move;
	struct p3_eq *eq = t->md->sink.eq;
	struct p3_event_record *e = p3_event_begin(eq);
	p3_tx_describe(n, m, t->md, m->offset, m->length, n->next_link++,
		PTL_EVENT_SEND_END, &e->words);
	p3_event_show(eq, e, PTL_EVENT_SEND_END);
	return eq->news;
}

/* Put at once with an acknowledgement, or get.  Return the target and the news, or
 * false. */
static P3_HOT bool p3_tx_ask_now(struct p3_nic *n, uint64_t handle,
	const struct p3_move *m, uint32_t kind, struct p3_peer **to_out,
	uint32_t *posted_out)
{
	uint64_t offset = m->offset, length = m->length, id;
	memcpy(&id, &m->target, sizeof id);
	/* A put has SEND_END and ACK, a get has no SEND events. */
	bool get = kind == P3_REQ_GET;
	struct p3_md *md = tx_find_md(n, handle, get ? P3_MD_ODD_CRAY : P3_MD_ODD_EVENTS,
		!get, get ? P3_RSP_INLINE : P3_REQ_INLINE, &offset, &length);
	if (p3_unlikely(!md))
		return false;
	struct p3_peer *p = *to_out = p3_ids_peer(n, id);
	if (p3_unlikely(!tx_has_cells(p)))
		return false;
	struct p3_pending *t = p3_pending_take(n, p, kind, md);
	if (p3_unlikely(!t))
		return false;
	tx_keep(t, m, kind, offset, length);
	FAULT_POINT("request.admitted");
	FAULT_POINT("lane.begun");
	if (!get)
		tx_fill_cell(p->req_out.next, p3_region_address(md->region.start, offset),
			length);
	tx_send_asked(p, t, m);
	tx_count(n, p3_ni_of(n, &md->o), get ? 0 : length);
	*posted_out = get ? 0 : tx_post_asked(n, t);
	return true;
}

/* ---- atomic operations ---- */

/* Return true if the operation exists and changes bytes, and if these are whole elements,
 * and not too many for the interface. */
static P3_HOT bool tx_is_atomic(
	const struct p3_ni *ni, const struct p3_move *m, uint64_t sent)
{
	return p3_likely(p3_atomic_is_valid(m->what) &&
			 p3_atomic_op(m->what) != PTLX_READ) &&
	       p3_likely(m->length <= P3_REQ_INLINE && /* sent may have overflowed */
			 sent <= (uint64_t)ni->limits.max_getput_md &&
			 !(m->length & (p3_atomic_size(m->what) - 1)));
}

/* Fill in the operands. */
static P3_HOT void tx_fill_operands(
	struct p3_cell *c, const struct p3_region *r, uint64_t offset, uint64_t length)
{
	uint64_t d[2] = {0, 0};
	if (p3_likely(length == sizeof d[0]))
		memcpy(d, p3_region_address(r->start, offset), sizeof d[0]);
	else
		p3_region_read(r, offset, d, length);
	p3_pack_data(c, d);
}

/* Send an operation.  t is NULL if it wants no response. */
static P3_HOT void tx_send_atomic(struct p3_peer *p, const struct p3_pending *t,
	const struct p3_move *m, uint32_t kind, uint32_t ni)
{
	struct p3_cell *c = p->req_out.next;
	bool ack = t && kind == P3_REQ_PUT;
	const struct p3_request q = {.kind = kind,
		.flags = P3_F_ATOMIC | (ack ? P3_F_ACK : 0u),
		.ncells = 1,
		.pid = (uint16_t)m->target.pid,
		.portal = m->pt_index,
		.access = m->ac_index,
		.room = t != NULL,
		.pending = t ? p3_pending_name(t) : 0,
		.bits = m->bits,
		.hdr = m->hdr,
		.offset = m->remote_offset,
		.length = m->length,
		.what = m->what};
	uint64_t word0 = p3_pack_atomic(c, &q);
	_Static_assert(P3_JOB_NIS == 2, "the interface is the flag");
	word0 |= p3_field_in(P3_HEADER_FLAGS, (uint64_t)ni * P3_F_NI1);
	FAULT_POINT("request.filled");
	p3_ring_run(&p->req_out, word0, 1);
	p->rsp_used += t != NULL;
	FAULT_POINT("request.published");
	FAULT_POINT("request.sent");
}

/* Send an atomic operation at once: a put, or an exchange, whose former bytes the
 * descriptor `handle` takes.  Return the target and the news, or false. */
static P3_HOT bool p3_tx_atomic_now(struct p3_nic *n, uint64_t handle,
	const struct p3_move *m, uint32_t kind, struct p3_peer **to_out,
	uint32_t *posted_out)
{
	bool fetch = kind == P3_REQ_GETPUT, asks = fetch || m->ack;
	uint64_t sent = p3_atomic_sent(m->what, m->length), length = m->length, id;
	uint64_t to = m->offset, from = fetch ? m->put_offset : to;
	memcpy(&id, &m->target, sizeof id);
	struct p3_md *source = tx_find_md(n, fetch ? m->put_handle : handle,
		P3_MD_ODD_STARTS, asks && !fetch, 0, &from, &sent);
	struct p3_md *md =
		fetch ? tx_find_md(n, handle, 0, false, 0, &to, &length) : source;
	if (p3_unlikely(!source || !md || source->o.ni != md->o.ni))
		return false;
	struct p3_ni *ni = p3_ni_of(n, &md->o);
	struct p3_peer *p = *to_out = p3_ids_peer(n, id);
	if (p3_unlikely(!tx_is_atomic(ni, m, sent) || !tx_is_open(p, 1) ||
			(asks && p->rsp_used >= p->rsp_cap)))
		return false;
	struct p3_pending *t = asks ? p3_pending_take(n, p, kind, md) : NULL;
	if (p3_unlikely(asks && !t))
		return false;
	if (asks)
		tx_keep(t, m, kind, to, length);
	else
		p3_count(&n->count[P3_C_PUT_INLINE], 1);
	FAULT_POINT("request.admitted");
	FAULT_POINT("lane.begun");
	tx_fill_operands(p->req_out.next, &source->region, from, sent);
	tx_send_atomic(p, t, m, kind, md->o.ni);
	tx_count(n, ni, length);
	*posted_out = tx_post_put(n, ni, m, source, from, length);
	return true;
}

#endif
