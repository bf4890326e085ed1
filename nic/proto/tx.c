/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests sent: those that leave at once, admission, send queues. */
#include "nic/proto/tx.h"

#include "nic/cci/firmware.h"
#include "nic/obj/obj.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"
#include "portals3x.h"
#include "shm/fault.h"

/* ---- requests that leave at once ---- */

P3_PATH
__attribute__((noinline)) bool p3_tx_reopen(struct p3_peer *p, uint32_t k)
{
	struct p3_ring_tx *r = &p->req_out;
	if (!r->until || p3_unlikely(!p3_peer_has_acked(p)))
		return false;
	if (p3_likely(p3_ring_reopen(r, k)))
		return true;
	/* An open full ring clears one cell more than a message needs (p3_ring_until());
	 * ask for it before the pad is written, since a pad without a message behind it
	 * looks like one that is not taken. */
	uint32_t more = r->n > P3_BASE_CELLS;
	if (!p3_ring_pad(r, k) || !p3_peer_has_room(p, r, k + more))
		return false;
	(void)p3_ring_begin(r, k); /* it writes the pad */
	p3_ring_open(r);
	return p3_ring_runs(r, k);
}

/* Note that a command's request has left for p. */
static P3_HOT int tx_left(struct p3_nic *n, struct p3_peer *p, uint32_t posted)
{
	n->worked = true;
	n->posted |= posted;
	p3_looks_add(n, p);
	return PTL_OK;
}

/* Return true if a command's request may leave at once: nothing has to record it, or go
 * before it. */
static P3_HOT bool tx_is_usual(const struct p3_nic *n, const struct p3_cmd *c)
{
	return p3_likely(
		!(n->odd & P3_TX_ODD) && c->move.pt_index <= 0xffff && !c->move.what);
}

/* ---- admission ---- */

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

/* Check the operation of a request of PtlXAtomic: a get is a read, no other one is. */
static P3_RARE int tx_check_atomic(
	const struct p3_nic *n, const struct p3_md *md, const struct p3_move *m, bool get)
{
	uint64_t most = (uint64_t)n->ni[md->o.ni].limits.max_getput_md;
	if (!p3_atomic_is_valid(m->what) || (p3_atomic_op(m->what) == PTLX_READ) != get)
		return PTL_FAIL;
	bool fits = m->length <= most && p3_atomic_sent(m->what, m->length) <= most;
	return fits && m->length % p3_atomic_size(m->what) == 0 ? PTL_OK : PTL_MD_ILLEGAL;
}

/* Check a put or get, and set *m to its parameters, with the whole descriptor's length if
 * that is asked for. */
static int tx_check(struct p3_nic *n, const struct p3_cmd *c, struct p3_move *m,
	struct p3_md **md_out)
{
	struct p3_md *md = tx_active_md(n, c->handle);
	*m = c->move;
	if (!md)
		return PTL_MD_INVALID;
	int rc = p3_likely(!m->what) ? PTL_OK
				     : tx_check_atomic(n, md, m, c->op == P3_OP_GET);
	if (rc != PTL_OK)
		return rc;
	if (m->length == P3_WHOLE) {
		m->offset = 0;
		m->length = md->region.size;
	} else if (!tx_fits(md, m->offset, p3_atomic_sent(m->what, m->length))) {
		return PTL_MD_ILLEGAL;
	}
	*md_out = md;
	return PTL_OK;
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
	if (p3_get(&t->o.name) != name)
		return PTL_OK;
	if (t->state == P3_PEND_QUEUED)
		p3_pending_copy_out(n, t);
	else if (p3_unlikely(t->is_long) && t->xfer->ahead)
		p3_xfer_send_ahead(n, t->xfer, P3_AHEAD_MOST);
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

/* End a request that goes nowhere. */
static P3_RARE void tx_end_nowhere(struct p3_nic *n, struct p3_peer *p, uint32_t kind,
	const struct p3_move *m, struct p3_md *md, struct p3_md *source, uint64_t offset,
	bool failure)
{
	p3_why_nowhere(n, p, kind, m);
	bool told = p3_pending_is_told(kind, m, md);
	uint64_t name = p3_get(&md->o.name);
	if (source)
		tx_send_nowhere(n, m, source, offset, failure);
	/* The end of the send may have unlinked the descriptor. */
	if ((told && p3_get(&md->o.name) == name) || (failure && !source))
		p3_pending_answer_fails(n, kind, m, md, p);
}

/* Send or keep a request that has been checked, or end it at once.  The arguments are
 * those of tx_admit(). */
static int tx_send(struct p3_nic *n, uint32_t kind, const struct p3_move *m,
	struct p3_md *md, struct p3_md *source, uint64_t offset)
{
	struct p3_peer *p = p3_peer_find(n, m->target), *to = p;
	if (p3_unlikely(!p3_peer_is_live(p, m->target.pid))) {
		int rc = p3_hold_find_queue(n, p, m->target, &to);
		if (rc != PTL_OK)
			return rc;
	}
	if (p3_likely(to != NULL))
		return tx_admit(n, to, kind, m, md, source, offset);
	tx_end_nowhere(
		n, p, kind, m, md, source, offset, p3_peer_is_failure(p, m->target.pid));
	return PTL_OK;
}

/* Send a put whose record t is in no queue, and which needs none.  md has its SEND
 * events; NULL: it has none.  Return false if the put needs a record: it wants an ACK,
 * other requests wait before it, it is long, or the lane has no room. */
static bool tx_put_unrecorded(
	struct p3_nic *n, struct p3_peer *p, struct p3_pending *t, struct p3_md *md)
{
	const struct p3_move *m = &t->move;
	if (m->ack || !p3_peer_is_live(p, m->target.pid) || !p3_list_empty(&p->queue))
		return false;
	if (!p3_req_put(n, p, t))
		return false;
	p3_tx_count(&n->ni[t->ni], m->length);
	if (!md)
		return true;
	p3_match_threshold(md);
	p3_tx_describe(n, m, md, m->offset, m->length, n->next_link++, 0, &t->send.rec);
	p3_event_write(n, &md->sink, &t->send.rec, PTL_EVENT_SEND_START, PTL_NI_OK);
	p3_event_ends(n, md, &md->sink, &t->send.rec, PTL_EVENT_SEND_END, PTL_NI_OK);
	return true;
}

/* Put what fails a fast check.  Such puts are long, or rare, so the function is not
 * P3_PATH. */
static __attribute__((noinline)) int tx_put_any(struct p3_nic *n, const struct p3_cmd *c)
{
	struct p3_pending t;
	struct p3_md *md;
	int rc = tx_check(n, c, &t.move, &md);
	if (rc != PTL_OK)
		return rc;
	t.move.ack = t.move.ack && p3_eq_of_sink(&md->sink);
	t.kind = P3_REQ_PUT;
	t.ni = (uint8_t)md->o.ni;
	t.is_long = false;
	t.xfer = NULL;
	t.copy = NULL;
	t.send.sink = md->sink;
	t.send.region = md->region;
	t.send.offset = t.move.offset;
	if (tx_put_unrecorded(n, p3_peer_find(n, t.move.target), &t, md))
		return PTL_OK;
	return tx_send(n, P3_REQ_PUT, &t.move, md, md, t.move.offset);
}

/* ---- puts of bytes without a descriptor ---- */

_Static_assert(PTLX_INJECT_MOST == P3_SHORT_MOST, "a copy has room for the bytes");

/* Keep a put of bytes in the send queue of its target, with a copy. */
static P3_RARE int tx_admit_bytes(
	struct p3_nic *n, struct p3_peer *p, const struct p3_pending *from)
{
	struct p3_pending *t = p3_pending_alloc(n, p, P3_REQ_PUT, &from->move, NULL);
	if (!t)
		return -(1 + (int)P3_T_PENDING);
	t->ni = from->ni;
	t->send = from->send;
	if (!p3_pending_take_over(n, t)) {
		p3_table_release(&n->table[P3_T_PENDING], &t->o);
		return PTL_NO_SPACE;
	}
	if (p3_unlikely(n->traced != NULL))
		t->command = n->trace.command;
	p3_tx_count(&n->ni[t->ni], t->move.length);
	p3_list_add(&p->queue, &t->link);
	p->nqueued++;
	p3_tx_push(n, p);
	return PTL_OK;
}

/* Put bytes.  p is the target as p3_peer_find() finds it. */
static __attribute__((noinline)) int tx_put_bytes(
	struct p3_nic *n, struct p3_peer *p, uint32_t ni, const struct p3_cmd *c)
{
	const struct p3_move *m = &c->move;
	struct p3_peer *to = p;
	struct p3_pending t = {.kind = P3_REQ_PUT, .ni = (uint8_t)ni, .move = *m};
	t.send.region = (struct p3_region){
		.start = (char *)(uintptr_t)c->bytes, .size = m->length};
	if (tx_put_unrecorded(n, p, &t, NULL))
		return PTL_OK;
	int rc = PTL_OK;
	if (!p3_peer_is_live(p, m->target.pid))
		rc = p3_hold_find_queue(n, p, m->target, &to);
	if (rc != PTL_OK)
		return rc;
	if (p3_likely(to != NULL))
		return tx_admit_bytes(n, to, &t);
	p3_why_nowhere(n, p, P3_REQ_PUT, m);
	return p3_peer_is_failure(p, m->target.pid) ? PTL_FAIL : PTL_OK;
}

int p3_tx_inject(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t ni = p3_handle_ni(c->handle);
	if (!p3_ni_is(n, ni, c->handle))
		return PTL_NI_INVALID;
	if (c->move.length > P3_SHORT_MOST)
		return PTL_FAIL;
	return tx_put_bytes(n, p3_peer_find(n, c->move.target), ni, c);
}

/* Do what p3_tx_ask_now() does for a command.  It is rare on the path of a message, whose
 * pages it would fill: a call that can take the lease has it inline. */
static __attribute__((noinline)) bool tx_ask_now(struct p3_nic *n, const struct p3_cmd *c,
	uint32_t kind, struct p3_peer **to_out, uint32_t *posted_out)
{
	const struct p3_move *m = &c->move;
	return kind == P3_REQ_PUT
		       ? p3_tx_ask_now(n, c->handle, m, P3_REQ_PUT, to_out, posted_out)
		       : p3_tx_ask_now(n, c->handle, m, P3_REQ_GET, to_out, posted_out);
}

/* Do what p3_tx_put_now() does, for a command and for a node with a wire. */
static __attribute__((noinline)) bool tx_put_now(struct p3_nic *n, uint64_t handle,
	const struct p3_move *m, struct p3_peer **to_out, uint32_t *posted_out)
{
	return p3_tx_put_now(n, handle, m, to_out, posted_out);
}

P3_PATH
int p3_tx_put(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_peer *p;
	uint32_t posted;
	const struct p3_move *m = &c->move;
	if (p3_likely(tx_is_usual(n, c)) &&
		(p3_unlikely(m->ack) ? tx_ask_now(n, c, P3_REQ_PUT, &p, &posted)
				     : tx_put_now(n, c->handle, m, &p, &posted)))
		return tx_left(n, p, posted);
	return tx_put_any(n, c);
}

bool p3_tx_put_wired(struct p3_nic *n, uint64_t handle, const struct p3_move *m)
{
	struct p3_peer *p;
	uint32_t posted;
	return tx_put_now(n, handle, m, &p, &posted) && tx_left(n, p, posted) == PTL_OK;
}

/* Return the descriptor that has the SEND events of a get, or NULL. */
static struct p3_md *tx_get_source(struct p3_md *md)
{
	return md->sink.options & P3_MD_CRAY ? md : NULL;
}

int p3_tx_get(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md;
	struct p3_move m;
	struct p3_peer *p;
	uint32_t posted;
	if (p3_likely(tx_is_usual(n, c)) && tx_ask_now(n, c, P3_REQ_GET, &p, &posted))
		return tx_left(n, p, posted);
	int rc = tx_check(n, c, &m, &md);
	if (rc != PTL_OK)
		return rc;
	m.hdr = 0;
	m.ack = m.what = 0;
	return tx_send(n, P3_REQ_GET, &m, md, tx_get_source(md), m.offset);
}

/* Check an exchange, as tx_check() does. */
static int tx_check_exchange(struct p3_nic *n, const struct p3_cmd *c, struct p3_move *m,
	struct p3_md **get_out, struct p3_md **put_out)
{
	struct p3_md *get = tx_active_md(n, c->handle);
	struct p3_md *put = tx_active_md(n, c->move.put_handle);
	*m = c->move;
	m->ack = false;
	if (!get || !put)
		return PTL_MD_INVALID;
	int rc = m->what == P3_ATOMIC_SWAP ? PTL_OK : tx_check_atomic(n, get, m, false);
	if (rc != PTL_OK)
		return rc;
	if (get->o.ni != put->o.ni)
		return PTL_MD_ILLEGAL;
	if (m->length == P3_WHOLE) {
		m->offset = m->put_offset = 0;
		m->length = put->region.size;
	} else if (!tx_fits(get, m->offset, m->length) ||
		   !tx_fits(put, m->put_offset, p3_atomic_sent(m->what, m->length))) {
		return PTL_MD_ILLEGAL;
	}
	*get_out = get;
	*put_out = put;
	uint64_t most = (uint64_t)n->ni[get->o.ni].limits.max_getput_md;
	return m->length <= most ? PTL_OK : PTL_MD_ILLEGAL;
}

int p3_tx_getput(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *get, *put;
	struct p3_move m;
	int rc = tx_check_exchange(n, c, &m, &get, &put);
	if (rc != PTL_OK)
		return rc;
	return tx_send(n, P3_REQ_GETPUT, &m, get, put, m.put_offset);
}

void p3_tx_refuse(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md, *put;
	struct p3_move m;
	struct p3_peer *p = p3_peer_find(n, c->move.target);
	if (c->op == P3_OP_GETPUT) {
		if (tx_check_exchange(n, c, &m, &md, &put) == PTL_OK)
			tx_end_nowhere(
				n, p, P3_REQ_GETPUT, &m, md, put, m.put_offset, true);
	} else if (c->op == P3_OP_PUT || c->op == P3_OP_GET) {
		if (tx_check(n, c, &m, &md) != PTL_OK)
			return;
		bool is_put = c->op == P3_OP_PUT;
		tx_end_nowhere(n, p, is_put ? P3_REQ_PUT : P3_REQ_GET, &m, md,
			is_put ? md : tx_get_source(md), m.offset, true);
	}
	n->posted = P3_NEWS_ALL;
}

/* ---- send queues ---- */

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
	while (!p3_list_empty(&p->queue)) {
		struct p3_pending *t = p3_item(p->queue.next, struct p3_pending, link);
		if (!(p3_unlikely(t == &p->cci_marker) ? tx_send_cci(n, p)
						       : p3_req_send(n, p, t)))
			break;
	}
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
