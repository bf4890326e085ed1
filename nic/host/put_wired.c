/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The straight path of puts (shm/straight.h) of nodes with wires that carry frames.
 *
 * It takes the puts that put.c takes, if their bytes fit the message's one cell, and ends
 * as a general hold of the lease does, which flushes the wires.  These are steps of its
 * own: with a second caller, those of put.c would have more instructions on one host.
 */
#include "nic/host/brief.h"
#include "nic/obj/region.h"
#include "nic/obj/table.h"
#include "nic/proto/format.h"
#include "nic/proto/ids.h"
#include "nic/proto/peer.h"
#include "nic/proto/send.h"
#include "nic/run/lease.h"
#include "nic/run/looks.h"
#include "nic/run/odd.h"

#include <string.h>

/* Return the descriptor if it has these bytes and is plain, or NULL. */
static struct p3_md *find_md(
	struct p3_nic *n, uint64_t handle, uint64_t *offset, uint64_t *length)
{
	const uint32_t odd =
		P3_ODD_THRESHOLD | P3_ODD_INACTIVE | P3_ODD_IOVEC | P3_ODD_STARTS;
	struct p3_md *md = p3_md_named(n, handle);
	if (!md || md->odd & odd)
		return NULL;
	uint64_t size = md->region.size;
	if (*length == P3_WHOLE) {
		*length = size;
		*offset = 0;
	}
	bool has = *offset <= size && *length <= size - *offset;
	return has && *length <= P3_REQ_INLINE ? md : NULL;
}

static bool is_open(struct p3_peer *p)
{
	struct p3_ring_tx *r = &p->req_out;
	return p3_ring_runs(r, 1) ||
	       (r->until && p3_peer_has_acked(p) && p3_ring_reopen(r, 1));
}

static void send(struct p3_ring_tx *r, const struct p3_move *m, const struct p3_md *md,
	uint64_t offset, uint64_t length)
{
	struct p3_cell *c = r->next;
	uint64_t d[2] = {0, 0};
	if (length) /* else the region may have no address */
		memcpy(d, p3_region_address(md->region.start, offset), length);
	p3_pack_data(c, d);
	const struct p3_request q = {.kind = P3_REQ_PUT,
		.ncells = 1,
		.pid = (uint16_t)m->target.pid,
		.portal = m->pt_index,
		.access = m->ac_index,
		.bits = m->bits,
		.hdr = m->hdr,
		.offset = m->remote_offset,
		.length = length};
	uint64_t word0 = p3_pack_eager(c, &q);
	_Static_assert(P3_JOB_NIS == 2, "the interface is the flag");
	word0 |= p3_field_in(P3_HEADER_FLAGS, (uint64_t)md->o.ni * P3_F_NI1);
	FAULT_POINT("request.filled");
	p3_ring_run(r, word0, 1);
	FAULT_POINT("request.published");
}

static void count(struct p3_nic *n, struct p3_ni *ni, uint64_t length)
{
	p3_count(&n->count[P3_C_PUT_INLINE], 1);
	p3_count(&n->count[P3_C_LEASE_HOST], 1);
	p3_count(&n->count[P3_C_SENT], 1);
	p3_count(&n->count[P3_C_SENT_BYTES], length);
	p3_send_count(ni, length);
}

/* Post SEND_END, if the descriptor has a queue. */
static void post(struct p3_nic *n, const struct p3_ni *ni, const struct p3_move *m,
	const struct p3_md *md, uint64_t offset, uint64_t length)
{
	uint32_t link = n->next_link++;
	struct p3_eq *eq = p3_eq_of_sink(&md->sink);
	if (md->odd & (P3_ODD_QUEUE | P3_ODD_ENDS) || !eq)
		return;
	struct p3_event_record *e = p3_event_begin(eq);
	p3_send_describe_from(
		n, ni, m, md, offset, length, link, PTL_EVENT_SEND_END, &e->words);
	p3_event_show(eq, e, PTL_EVENT_SEND_END);
	n->posted = true;
}

/* Return true if this thread has the lease now, and may begin. */
static bool enter(struct p3_nic *n)
{
	if (!p3_straight() || p3_self.inside)
		return false;
	p3_call_begin();
	if (!p3_cas_acquire32(
		    &n->lease.word, P3_LEASE_FREE, P3_LEASE_HOST)) { /* LEASE.1 */
		p3_call_end(n);
		return false;
	}
	FAULT_POINT("lease.taken");
	FAULT_POINT("command.held");
	if (!p3_mbx_any(n->mailbox) && !(n->odd & (P3_ODD_TRACED | P3_ODD_BLOCKED)))
		return true;
	return p3_brief_turn_back(n);
}

bool p3_nic_put_wired(struct p3_nic *n, uint64_t handle, const struct p3_move *m)
{
	uint64_t offset = m->offset, length = m->length, id;
	memcpy(&id, &m->target, sizeof id);
	if (p3_likely(!n->nwires) || m->pt_index > 0xffff || !enter(n))
		return false;
	struct p3_md *md = find_md(n, handle, &offset, &length);
	struct p3_peer *p = p3_ids_peer(n, id);
	if (!md || !is_open(p))
		return p3_brief_turn_back(n);
	struct p3_ni *ni = p3_ni_of(n, &md->o);
	send(&p->req_out, m, md, offset, length);
	count(n, ni, length);
	post(n, ni, m, md, offset, length);
	p3_looks_add(n, p);
	FAULT_POINT("command.executed");
	p3_lease_leave(n);
	p3_call_end(n);
	return true;
}
