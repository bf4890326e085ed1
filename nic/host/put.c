/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The straight path of puts (shm/variant.h): a put that leaves its node at once.
 *
 * The path takes a put if no ACK is wanted, the lease is free, no command waits, the
 * descriptor is plain, and the bytes are few and fit an open request ring
 * (p3_ring_open()).  All other puts go through p3_nic_do(), which does the same in more
 * steps.
 */
#include "nic/host/brief.h"
#include "nic/obj/table.h"
#include "nic/proto/format.h"
#include "nic/proto/ids.h"
#include "nic/proto/peer.h"
#include "nic/proto/send.h"
#include "nic/run/lease.h"
#include "nic/run/odd.h"
#include "nic/xfer/xfer.h"
#include "shm/trace.h"

#include <string.h>

/* ---- the cases ---- */

static P3_HOT bool is_plain(const struct p3_md *md)
{
	const uint32_t odd =
		P3_ODD_THRESHOLD | P3_ODD_INACTIVE | P3_ODD_IOVEC | P3_ODD_STARTS;
	return p3_likely(!(md->odd & odd));
}

/* Return the descriptor if it has these bytes, and may send them in a straight put, or
 * NULL. */
static P3_HOT struct p3_md *find_md(
	struct p3_nic *n, uint64_t handle, uint64_t *offset, uint64_t *length)
{
	struct p3_md *md = p3_md_named(n, handle);
	if (p3_unlikely(!md || !is_plain(md)))
		return NULL;
	uint64_t size = md->region.size;
	if (*length == P3_WHOLE) {
		*length = size;
		*offset = 0;
	} else if (p3_unlikely(*offset > size || *length > size - *offset)) {
		return NULL;
	}
	bool fits = p3_likely(*length <= P3_REQ_INLINE) || *length <= P3_EAGER_MOST_HEAP;
	return fits ? md : NULL;
}

/* ---- the steps ---- */

/* Fill in the bytes of a message of one cell. */
static P3_HOT void fill_cell(struct p3_cell *c, const char *from, uint64_t length)
{
	uint64_t d[2] = {0, 0};
	if (p3_likely(length == sizeof d[0]))
		memcpy(d, from, sizeof d[0]);
	else
		p3_region_copy_few((char *)d, from, length);
	p3_pack_data(c, d);
}

/* Send the message whose bytes are in the cells at c. */
static P3_HOT void send(struct p3_ring_tx *r, struct p3_cell *c, const struct p3_move *m,
	uint64_t id, uint32_t ni, uint64_t length, uint32_t cells)
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
	uint64_t word0 = p3_pack_eager(c, &q);
	_Static_assert(P3_JOB_NIS == 2, "the interface is the flag");
	word0 |= p3_field_in(P3_HEADER_FLAGS, (uint64_t)ni * P3_F_NI1);
	FAULT_POINT("request.filled");
	p3_ring_run(r, word0, cells);
	FAULT_POINT("request.published");
}

/* Open the request ring again for a message of k cells, if it is not shut, and the peer
 * has set its credit.  A base ring comes to its end, or to that of the credit, at every
 * third or fourth message of two cells, so this is part of the message path of nodes that
 * share CPUs. */
P3_PATH
static __attribute__((noinline)) bool reopen(struct p3_peer *p, uint32_t k)
{
	return p->req_out.until && p3_likely(p3_peer_has_acked(p)) &&
	       p3_ring_reopen(&p->req_out, k);
}

static P3_HOT bool is_open(struct p3_peer *p, uint32_t k)
{
	return p3_ring_runs(&p->req_out, k) || reopen(p, k);
}

/* Begin a message in an open ring. */
static P3_HOT struct p3_cell *begin_cell(const struct p3_ring_tx *r)
{
	FAULT_POINT("lane.begun");
	return r->next;
}

/* Send the bytes if the ring is open for them.  The number of cells is a constant where
 * the bytes are copied in place. */
static P3_HOT bool send_if_open(struct p3_nic *n, struct p3_peer *p,
	const struct p3_move *m, uint64_t id, const struct p3_md *md, uint64_t offset,
	uint64_t length)
{
	struct p3_ring_tx *r = &p->req_out;
	const char *from = p3_region_address(md->region.start, offset);
	if (p3_likely(length <= P3_REQ_INLINE)) {
		if (p3_unlikely(!is_open(p, 1)))
			return false;
		struct p3_cell *c = begin_cell(r);
		fill_cell(c, from, length);
		send(r, c, m, id, md->o.ni, length, 1);
		p3_count(&n->count[P3_C_PUT_INLINE], 1);
		return true;
	}
	if (n->crowded && p3_likely(length <= P3_FEW)) {
		if (p3_unlikely(!is_open(p, 2)))
			return false;
		struct p3_cell *c = begin_cell(r);
		p3_region_copy_few(p3_request_eager_bytes(c), from, length);
		send(r, c, m, id, md->o.ni, length, 2);
		p3_count(&n->count[P3_C_PUT_EAGER], 1);
		return true;
	}
	uint32_t cells = p3_request_cells(length);
	if (p3_unlikely(cells > p3_ring_most(r->n) || !is_open(p, cells)))
		return false;
	struct p3_cell *c = begin_cell(r);
	memcpy(p3_request_eager_bytes(c), from, length);
	send(r, c, m, id, md->o.ni, length, cells);
	p3_count(&n->count[P3_C_PUT_EAGER], 1);
	return true;
}

static P3_HOT void count(struct p3_nic *n, struct p3_ni *ni, uint64_t length)
{
	p3_a64 *count = n->count;
	p3_count(&count[P3_C_LEASE_HOST], 1);
	p3_count(&count[P3_C_SENT], 1);
	p3_count(&count[P3_C_SENT_BYTES], length);
	p3_send_count(ni, length);
}

/* Post SEND_END.  Return the news, or 0 if the descriptor has no queue for it. */
static P3_HOT uint32_t post(struct p3_nic *n, const struct p3_ni *ni,
	const struct p3_move *m, const struct p3_md *md, uint64_t offset, uint64_t length)
{
	uint32_t link = n->next_link++;
	if (md->odd & (P3_ODD_QUEUE | P3_ODD_ENDS))
		return 0;
	struct p3_eq *eq = p3_eq_of_sink(&md->sink);
	if (p3_unlikely(!eq))
		return 0;
	struct p3_event_record *e = p3_event_begin(eq);
	p3_send_describe_from(
		n, ni, m, md, offset, length, link, PTL_EVENT_SEND_END, &e->words);
	p3_event_show(eq, e, PTL_EVENT_SEND_END);
	return eq->news;
}

P3_SPREAD
bool p3_nic_put(struct p3_nic *n, uint64_t handle, const struct p3_move *m)
{
	uint64_t offset = m->offset, length = m->length, id;
	memcpy(&id, &m->target, sizeof id);
	if (p3_unlikely(!p3_brief_enter(n)))
		return false;
	struct p3_md *md = find_md(n, handle, &offset, &length);
	if (p3_unlikely(!md))
		return p3_brief_turn_back(n);
	struct p3_peer *p = p3_ids_peer(n, id);
	if (p3_unlikely(!send_if_open(n, p, m, id, md, offset, length)))
		return p3_brief_turn_back(n);
	struct p3_ni *ni = p3_ni_of(n, &md->o);
	count(n, ni, length);
	uint32_t posted = post(n, ni, m, md, offset, length);
	FAULT_POINT("command.executed");
	p3_lease_leave_to(n, p, posted);
	p3_call_end(n);
	return true;
}
