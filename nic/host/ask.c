/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The straight path of requests with a response (shm/variant.h): a put that wants an
 * acknowledgement, or a get, that leaves its node at once.
 *
 * The path takes a request if the lease is free, no command waits, the descriptor is
 * plain, request and response have one cell, the request ring is open (p3_ring_open()),
 * there is room for the response, and a pending is free.  All other requests go through
 * p3_nic_do(), which does the same in more steps.
 */
#include "nic/host/brief.h"
#include "nic/obj/region.h"
#include "nic/obj/table.h"
#include "nic/proto/format.h"
#include "nic/proto/ids.h"
#include "nic/proto/peer.h"
#include "nic/proto/pending.h"
#include "nic/proto/send.h"
#include "nic/run/lease.h"
#include "nic/run/odd.h"
#include "shm/trace.h"

#include <string.h>

/* ---- the cases ---- */

/* Return true if the descriptor is usual: a put that it sends has SEND_END and ACK, a get
 * that it sends has no SEND events. */
static P3_HOT bool is_plain(const struct p3_md *md, uint32_t kind)
{
	const uint32_t odd = P3_ODD_THRESHOLD | P3_ODD_INACTIVE | P3_ODD_IOVEC |
			     (kind == P3_REQ_GET ? P3_ODD_CRAY : P3_ODD_EVENTS);
	return p3_likely(!(md->odd & odd)) &&
	       p3_likely(kind == P3_REQ_GET || p3_eq_of_sink(&md->sink));
}

/* Return the descriptor if it is usual and has these bytes, few enough for one cell, or
 * NULL. */
static P3_HOT struct p3_md *find_md(struct p3_nic *n, uint64_t handle, uint32_t kind,
	uint64_t *offset, uint64_t *length)
{
	struct p3_md *md = p3_md_named(n, handle);
	if (p3_unlikely(!md || !is_plain(md, kind)))
		return NULL;
	uint64_t size = md->region.size;
	if (*length == P3_WHOLE) {
		*length = size;
		*offset = 0;
	} else if (p3_unlikely(*offset > size || *length > size - *offset)) {
		return NULL;
	}
	uint64_t most = kind == P3_REQ_GET ? P3_RSP_INLINE : P3_REQ_INLINE;
	return p3_likely(*length <= most) ? md : NULL;
}

/* Return true if a cell of each ring is free. */
static P3_HOT bool has_room(const struct p3_peer *p)
{
	return p3_ring_runs(&p->req_out, 1) && p3_likely(p->rsp_used < p->rsp_cap);
}

/* ---- the steps ---- */

/* Keep the arguments of the request, for the events of its response. */
static P3_HOT void keep(struct p3_pending *t, const struct p3_move *m, uint32_t kind,
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

/* Fill in the bytes of a put. */
static P3_HOT void fill_bytes(struct p3_cell *c, const char *from, uint64_t length)
{
	uint64_t d[2] = {0, 0};
	if (p3_likely(length == sizeof d[0]))
		memcpy(d, from, sizeof d[0]);
	else
		p3_region_copy_few((char *)d, from, length);
	p3_pack_data(c, d);
}

static P3_HOT void send(
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

static P3_HOT void count(struct p3_nic *n, struct p3_ni *ni, uint64_t length)
{
	p3_a64 *count = n->count;
	p3_count(&count[P3_C_LEASE_HOST], 1);
	p3_count(&count[P3_C_SENT], 1);
	p3_count(&count[P3_C_SENT_BYTES], length);
	p3_send_count(ni, length);
}

/* Post SEND_END.  Return the news. */
static P3_HOT uint32_t post(struct p3_nic *n, const struct p3_pending *t)
{
	const struct p3_move *m = &t->move;
	struct p3_eq *eq = t->md->sink.eq;
	struct p3_event_record *e = p3_event_begin(eq);
	p3_send_describe(n, m, t->md, m->offset, m->length, n->next_link++,
		PTL_EVENT_SEND_END, &e->words);
	p3_event_show(eq, e, PTL_EVENT_SEND_END);
	return eq->news;
}

static P3_HOT bool ask(
	struct p3_nic *n, uint64_t handle, const struct p3_move *m, uint32_t kind)
{
	uint64_t offset = m->offset, length = m->length, id;
	memcpy(&id, &m->target, sizeof id);
	if (p3_unlikely(!p3_brief_enter(n)))
		return false;
	struct p3_md *md = find_md(n, handle, kind, &offset, &length);
	if (p3_unlikely(!md))
		return p3_brief_turn_back(n);
	struct p3_peer *p = p3_ids_peer(n, id);
	if (p3_unlikely(!has_room(p)))
		return p3_brief_turn_back(n);
	struct p3_pending *t = p3_pending_take(n, p, kind, md);
	if (p3_unlikely(!t))
		return p3_brief_turn_back(n);
	keep(t, m, kind, offset, length);
	FAULT_POINT("request.admitted");
	FAULT_POINT("lane.begun");
	if (kind == P3_REQ_PUT)
		fill_bytes(p->req_out.next, p3_region_address(md->region.start, offset),
			length);
	send(p, t, m);
	count(n, p3_ni_of(n, &md->o), kind == P3_REQ_GET ? 0 : length);
	uint32_t posted = kind == P3_REQ_PUT ? post(n, t) : 0;
	FAULT_POINT("command.executed");
	p3_lease_leave_to(n, p, posted);
	p3_call_end(n);
	return true;
}

P3_SPREAD
bool p3_nic_put_acked(struct p3_nic *n, uint64_t handle, const struct p3_move *m)
{
	return ask(n, handle, m, P3_REQ_PUT);
}

P3_SPREAD
bool p3_nic_get(struct p3_nic *n, uint64_t handle, const struct p3_move *m)
{
	return ask(n, handle, m, P3_REQ_GET);
}
