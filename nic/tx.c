/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get at the initiator: admission, lanes and send queues, responses received. */
#include "nic/fw.h"

#include <string.h>

/* ---- what a request needs ---- */

static uint64_t eager_most(const struct p3_ring_tx *r)
{
	return P3_REQ_INLINE + (uint64_t)(p3_ring_most(r->n) - 1) * P3_CELL;
}

static uint64_t reply_most(const struct p3_ring_rx *r)
{
	return P3_RSP_INLINE + (uint64_t)(p3_ring_most(r->n) - 1) * P3_CELL;
}

/* With the pad cells that the ring's end may cost. */
static uint32_t reply_room(uint64_t len)
{
	return 2 * p3_reply_cells(len) - 1;
}

/* Cells of the lane, cells of the response ring, and a slot: granted together. */
struct need {
	uint32_t cells;
	uint32_t rsp;
	bool slot;
};

static struct need need_of(struct p3_peer *p, struct p3_pending *t)
{
	struct need need = {.cells = 1};
	if (t->kind == P3_REQ_GET) {
		t->is_long = t->length > reply_most(&p->rsp_in);
		need.rsp = t->is_long ? 1 : reply_room(t->length);
		need.slot = t->is_long;
		return need;
	}
	t->is_long = t->length > eager_most(&p->req_out);
	need.slot = t->is_long;
	need.rsp = t->is_long || t->ack;
	if (!t->is_long)
		need.cells = p3_request_cells(t->length);
	return need;
}

static bool has_room(struct p3_peer *p, const struct need *need)
{
	return need->rsp + p->rsp_used <= p->rsp_cap &&
	       p3_fw_room(p, &p->req_out, need->cells);
}

/* ---- one request into the lane ---- */

static void fill_data(struct p3_cell *c, const struct p3_pending *t)
{
	const struct p3_region *r = &t->md->region;
	if (t->length > P3_REQ_INLINE) {
		p3_region_read(r, t->local_offset, (char *)c + 48, t->length);
		return;
	}
	uint64_t d[2] = {0, 0};
	if (__builtin_expect(t->length == 8 && !r->iov, 1))
		memcpy(d, r->start + t->local_offset, 8);
	else
		p3_region_read(r, t->local_offset, d, t->length);
	p3_set(&c->w[6], d[0]);
	p3_set(&c->w[7], d[1]);
}

static void fill_long(struct p3_cell *c, const struct p3_pending *t)
{
	p3_set(&c->w[6], t->length);
	p3_set(&c->w[7], t->xfer ? p3_xfer_name(t->xfer) : 0);
}

static void emit(struct p3_nic *n, struct p3_peer *p, const struct p3_pending *t,
	uint32_t name, const struct need *need)
{
	struct p3_cell *c = p3_ring_begin(&p->req_out, need->cells);
	uint64_t eager = t->is_long || t->kind == P3_REQ_GET ? 0 : t->length;
	p3_set(&c->w[1], (uint64_t)need->rsp << 48 | (uint64_t)t->ac_index << 32 |
				 (t->rec.w[13] & 0xffff) << 16 | t->target_pid);
	p3_set(&c->w[2], eager << 32 | name);
	p3_set(&c->w[3], t->rec.w[0]);
	p3_set(&c->w[4], t->rec.w[4]);
	p3_set(&c->w[5], t->remote_offset);
	if (t->is_long || t->kind == P3_REQ_GET)
		fill_long(c, t);
	else
		fill_data(c, t);
	uint32_t flags = (t->ack ? P3_F_ACK : 0u) | (t->is_long ? P3_F_LONG : 0u) |
			 (t->ni ? P3_F_NI1 : 0u);
	p3_ring_publish(&p->req_out, p3_word0(t->kind, flags, need->cells), need->cells);
	p->rsp_used += need->rsp;
	if (__builtin_expect(!p->hot, 0))
		p3_fw_heat(n, p); /* answers will come; or it is this node itself */
	p3_fw_touch(n, p);
	n->worked = true;
	p3_count(&n->count[P3_C_SENT], 1);
	p3_count(&n->count[P3_C_SENT_BYTES], t->kind == P3_REQ_PUT ? t->length : 0);
	if (__builtin_expect(++p->nsent >= 8 && !p->req_full, 0))
		p3_fw_grow_lane(n, p);
}

/* ---- the send's events ---- */

static void send_start(struct p3_nic *n, struct p3_pending *t)
{
	if (t->kind == P3_REQ_PUT)
		p3_fw_event(n, t->md, &t->rec, PTL_EVENT_SEND_START, PTL_NI_OK);
}

static void send_end(struct p3_nic *n, struct p3_pending *t, uint32_t fail)
{
	if (fail)
		t->rec.w[2] = 0;
	t->md->pending--;
	p3_fw_paid(t->md, &t->owed);
	p3_fw_event(n, t->md, &t->rec, PTL_EVENT_SEND_END, fail);
	p3_fw_maybe_unlink(n, t->md, &t->rec);
}

static void free_pending(struct p3_nic *n, struct p3_pending *t)
{
	p3_list_del(&t->link);
	if (t->xfer)
		p3_xfer_free(n, t->xfer);
	t->xfer = NULL;
	p3_table_release(&n->table[P3_T_PENDING], &t->o);
}

/* ---- admission ---- */

static bool has_pid(const struct p3_peer *p, ptl_pid_t pid)
{
	return pid != P3_JOB_NO_PID && (p->pid[0] == pid || p->pid[1] == pid);
}

/* A target that is there and takes part; the others need no lane. */
static bool is_live(const struct p3_peer *p, ptl_pid_t pid)
{
	return p && p->state == P3_LIVE && has_pid(p, pid);
}

/* Nobody will answer: is that a failure, or the silence of one who is not there yet? */
static bool is_failure(const struct p3_peer *p, ptl_pid_t pid)
{
	return !p || p->state == P3_DEAD || (p->state == P3_LIVE && !has_pid(p, pid));
}

static int check(struct p3_nic *n, struct p3_cmd *c, struct p3_md **md_out)
{
	struct p3_md *md = p3_fw_named(n, P3_KIND_MD, c->handle);
	if (!md || md->threshold == 0)
		return PTL_MD_INVALID;
	uint64_t size = md->region.size;
	if (c->move.length == P3_WHOLE) {
		c->move.offset = 0;
		c->move.length = size;
	} else if (c->move.offset > size || c->move.length > size - c->move.offset) {
		return PTL_MD_ILLEGAL;
	}
	*md_out = md;
	return PTL_OK;
}

static void describe(struct p3_nic *n, struct p3_pending *t, const struct p3_cmd *c,
	struct p3_md *md, uint8_t kind)
{
	t->md = md;
	t->ni = (uint8_t)md->o.ni;
	t->kind = kind;
	t->ack = kind == P3_REQ_PUT && c->move.ack && p3_md_eq(md);
	t->ac_index = c->move.ac_index;
	t->target_pid = (uint16_t)c->move.target.pid;
	t->xfer = NULL;
	t->local_offset = c->move.offset;
	t->length = c->move.length;
	t->remote_offset = c->move.remote_offset;
	t->owed = false;
	t->rec.w[0] = c->move.bits;
	t->rec.w[1] = t->rec.w[2] = c->move.length;
	t->rec.w[3] = kind == P3_REQ_PUT ? c->move.offset : c->move.remote_offset;
	t->rec.w[4] = kind == P3_REQ_PUT ? c->move.hdr : 0;
	p3_rec_link(n, &t->rec, c->move.pt_index > 0xffff ? 0xffff : c->move.pt_index);
}

static void describe_self(struct p3_nic *n, struct p3_pending *t)
{
	ptl_process_id_t self = {n->conf.nid, n->ni[t->md->o.ni].pid};
	p3_rec_snap(&t->rec, t->md);
	p3_rec_who(&t->rec, self, n->conf.uid, n->conf.jid);
}

/* The one-cell case and every eager put without acknowledgement: no pending needed. */
static bool put_now(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t)
{
	if (t->ack || !p3_list_empty(&p->queue))
		return false;
	struct need need = need_of(p, t);
	if (t->is_long || !has_room(p, &need))
		return false;
	p3_fw_threshold(t->md);
	describe_self(n, t);
	emit(n, p, t, 0, &need);
	p3_fw_event(n, t->md, &t->rec, PTL_EVENT_SEND_START, PTL_NI_OK);
	p3_fw_event(n, t->md, &t->rec, PTL_EVENT_SEND_END, PTL_NI_OK);
	p3_fw_maybe_unlink(n, t->md, &t->rec);
	p3_count(&n->count[need.cells == 1 ? P3_C_PUT_INLINE : P3_C_PUT_EAGER], 1);
	return true;
}

/* Keep it as a pending, in the send queue of its target. */
static int admit(struct p3_nic *n, struct p3_peer *p, const struct p3_pending *from)
{
	struct p3_pending *t = p3_table_alloc(&n->table[P3_T_PENDING]);
	if (!t)
		return -(1 + (int)P3_T_PENDING);
	struct p3_object o = {.index = t->o.index};
	uint32_t gen = p3_get(&t->o.gen);
	*t = *from;
	t->o.index = o.index;
	p3_set(&t->o.gen, gen + 1);
	t->peer = p;
	t->state = P3_PEND_QUEUED;
	t->md_gen = p3_get(&t->md->o.gen);
	t->rsp_cells = 0;
	if (t->kind == P3_REQ_PUT) {
		p3_fw_threshold(t->md);
		t->md->pending++;
		p3_fw_owe(t->md, &t->owed);
	}
	describe_self(n, t);
	p3_list_add(&p->queue, &t->link);
	p3_fw_push(n, p);
	return PTL_OK;
}

/* Target not there: over at once. */
static void send_nowhere(struct p3_nic *n, struct p3_pending *t, bool failure)
{
	struct p3_md *md = t->md;
	p3_fw_threshold(md);
	describe_self(n, t);
	if (failure)
		t->rec.w[2] = 0;
	uint32_t fail = failure ? PTL_NI_FAIL : PTL_NI_OK;
	bool put = t->kind == P3_REQ_PUT;
	p3_fw_event(
		n, md, &t->rec, put ? PTL_EVENT_SEND_START : PTL_EVENT_REPLY_START, 0);
	p3_fw_event(n, md, &t->rec, put ? PTL_EVENT_SEND_END : PTL_EVENT_REPLY_END, fail);
	p3_fw_maybe_unlink(n, md, &t->rec);
}

int p3_fw_put(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md;
	int rc = check(n, c, &md);
	if (rc != PTL_OK)
		return rc;
	struct p3_peer *p = p3_fw_find(n, c->move.target.nid);
	struct p3_pending t;
	describe(n, &t, c, md, P3_REQ_PUT);
	if (__builtin_expect(is_live(p, c->move.target.pid), 1))
		return put_now(n, p, &t) ? PTL_OK : admit(n, p, &t);
	send_nowhere(n, &t, is_failure(p, c->move.target.pid));
	return PTL_OK;
}

int p3_fw_get(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md;
	int rc = check(n, c, &md);
	if (rc != PTL_OK)
		return rc;
	struct p3_peer *p = p3_fw_find(n, c->move.target.nid);
	struct p3_pending t;
	describe(n, &t, c, md, P3_REQ_GET);
	if (is_live(p, c->move.target.pid))
		return admit(n, p, &t);
	if (is_failure(p, c->move.target.pid))
		send_nowhere(n, &t, true);
	return PTL_OK;
}

/* ---- send queues ---- */

static bool send_one(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t)
{
	struct need need = need_of(p, t);
	if (!has_room(p, &need))
		return false;
	if (need.slot) {
		t->xfer = p3_xfer_alloc(n, p, P3_X_OWN);
		if (!t->xfer)
			return false;
	}
	if (need.slot && t->kind == P3_REQ_PUT) {
		t->xfer->region = t->md->region;
		t->xfer->offset = t->local_offset;
		t->xfer->length = t->length;
		p3_xfer_publish(n, t->xfer);
	}
	send_start(n, t);
	t->rsp_cells = need.rsp;
	emit(n, p, t, need.rsp ? p3_pending_name(t) : 0, &need);
	p3_list_del(&t->link);
	p3_list_add(&p->outstanding, &t->link);
	t->state = P3_PEND_SENT;
	if (t->kind == P3_REQ_PUT && !t->is_long)
		send_end(n, t, PTL_NI_OK);
	if (!need.rsp)
		free_pending(n, t);
	return true;
}

void p3_fw_push(struct p3_nic *n, struct p3_peer *p)
{
	while (!p3_list_empty(&p->queue))
		if (!send_one(n, p, p3_item(p->queue.next, struct p3_pending, link)))
			break;
	bool blocked = !p3_list_empty(&p->queue);
	if (blocked && !p->blocked) {
		p3_list_add(&n->blocked, &p->blocked_link);
		p3_count(&n->count[P3_C_QUEUED], 1);
		/* Nobody rings for room: whoever sleeps here must look again soon. */
		if (p3_get(&n->doorbell->asleep) != P3_AWAKE)
			p3_wake_peer(n, n->doorbell);
	} else if (!blocked && p->blocked) {
		p3_list_del(&p->blocked_link);
	}
	p->blocked = blocked;
}

void p3_fw_unblock(struct p3_nic *n)
{
	p3_list_each(it, &n->blocked)
		p3_fw_push(n, p3_item(it, struct p3_peer, blocked_link));
}

/* ---- responses ---- */

/* The pending that a response names, if it waits for one of this peer. */
static struct p3_pending *named_pending(
	struct p3_nic *n, struct p3_peer *p, uint32_t name)
{
	struct p3_pending *t =
		p3_table_at(&n->table[P3_T_PENDING], name & P3_PENDING_INDEX);
	if (!t || !(p3_get(&t->o.gen) & 1) || p3_pending_name(t) != name)
		return NULL;
	return t->peer == p && t->state == P3_PEND_SENT ? t : NULL;
}

static void answer_who(struct p3_pending *t, const struct p3_peer *p)
{
	ptl_process_id_t id = {p->nid, t->target_pid};
	p3_rec_who(&t->rec, id, p->uid, p->jid);
}

static bool md_lives(struct p3_nic *n, struct p3_pending *t)
{
	bool lives = t->md && p3_lives(&t->md->o, t->md_gen);
	if (!lives && t->md)
		p3_fw_drop(n, &n->ni[t->ni], t->length);
	return lives;
}

static void got_ack(
	struct p3_nic *n, struct p3_peer *p, struct p3_pending *t, uint64_t mlength)
{
	if (!md_lives(n, t))
		return;
	struct p3_md *md = t->md;
	if (!p3_md_eq(md)) {
		p3_fw_drop(n, p3_ni_of(n, &md->o), t->length);
		return;
	}
	p3_fw_threshold(md);
	p3_rec_snap(&t->rec, md);
	answer_who(t, p);
	t->rec.w[2] = mlength;
	t->rec.w[3] = t->remote_offset;
	t->rec.w[4] = 0;
	p3_rec_link(n, &t->rec, (uint32_t)t->rec.w[13] & 0xffff);
	p3_fw_event(n, md, &t->rec, PTL_EVENT_ACK, PTL_NI_OK);
	p3_fw_maybe_unlink(n, md, &t->rec);
}

static void got_done(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	uint64_t mlength, uint32_t status, bool ack)
{
	if (t->md)
		send_end(n, t, status);
	if (ack && t->ack && !status)
		got_ack(n, p, t, mlength);
}

/* Room at the get's descriptor now: replies always truncate. */
static uint64_t reply_space(const struct p3_pending *t, uint64_t len)
{
	uint64_t size = t->md->region.size;
	uint64_t space = size > t->local_offset ? size - t->local_offset : 0;
	return len < space ? len : space;
}

static void reply_start(
	struct p3_nic *n, struct p3_peer *p, struct p3_pending *t, uint64_t len)
{
	p3_fw_threshold(t->md);
	p3_rec_snap(&t->rec, t->md);
	answer_who(t, p);
	t->rec.w[2] = len;
	p3_fw_event(n, t->md, &t->rec, PTL_EVENT_REPLY_START, PTL_NI_OK);
}

static void got_reply(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	const struct p3_cell *c, uint64_t mlength)
{
	if (!md_lives(n, t))
		return;
	uint64_t len = reply_space(t, mlength);
	reply_start(n, p, t, len);
	p3_region_write(&t->md->region, t->local_offset, (const char *)c + 24, len);
	p3_fw_event(n, t->md, &t->rec, PTL_EVENT_REPLY_END, PTL_NI_OK);
	p3_fw_maybe_unlink(n, t->md, &t->rec);
}

/* Tell the target that its bytes are no longer needed; the slot waits until it knows. */
static void release_get(struct p3_nic *n, struct p3_pending *t, uint32_t fail)
{
	struct p3_xfer_slot *x = t->xfer;
	t->xfer = NULL;
	p3_set(&x->pub->status, fail ? UINT64_MAX : 0);
	p3_release(&x->pub->released, p3_xfer_name(x)); /* XFER.3 */
	x->releasing = true;
	p3_list_add(&n->sources, &x->link);
	p3_fw_touch(n, x->peer);
}

static void got_long_reply(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	uint64_t mlength, const struct p3_cell *c)
{
	struct p3_xfer_slot *x = t->xfer;
	uint64_t source = x->peer_id;
	uint64_t addr = p3_get(&c->w[4]);
	if (!md_lives(n, t)) {
		release_get(n, t, PTL_NI_OK); /* dropped here, no failure there */
		free_pending(n, t);
		return;
	}
	struct p3_pull *pull = &x->pull;
	*pull = (struct p3_pull){.peer = p,
		.md = t->md,
		.region = t->md->region,
		.xfer_id = source,
		.addr = addr,
		.length = reply_space(t, mlength),
		.offset = t->local_offset,
		.get = t};
	reply_start(n, p, t, pull->length);
	t->md->pending++;
	p3_fw_owe(t->md, &t->owed);
	t->state = P3_PEND_PULLING;
	p3_pull_begin(n, pull);
}

/* The last byte of a long get is there, or never will be. */
void p3_fw_get_done(struct p3_nic *n, struct p3_pending *t, uint32_t fail)
{
	struct p3_md *md = t->md;
	release_get(n, t, fail);
	if (md) {
		md->pending--;
		p3_fw_paid(md, &t->owed);
		p3_fw_event(n, md, &t->rec, PTL_EVENT_REPLY_END, fail);
		p3_fw_maybe_unlink(n, md, &t->rec);
	}
	free_pending(n, t);
}

/* The target's slot that the reply names: read once, in range. */
static bool set_source(const struct p3_nic *n, struct p3_pending *t, uint64_t xfer)
{
	uint32_t slot = (uint32_t)xfer;
	t->xfer->peer_id = xfer;
	return slot >= n->layout.nxfers / 2 && slot < n->layout.nxfers;
}

static bool answer(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	const struct p3_cell *c, uint64_t w0)
{
	uint32_t kind = p3_word0_kind(w0), ncells = p3_word0_ncells(w0);
	uint32_t status = (uint32_t)(p3_get(&c->w[1]) >> 32) ? PTL_NI_FAIL : PTL_NI_OK;
	uint64_t mlength = p3_get(&c->w[2]);
	bool put = t->kind == P3_REQ_PUT;
	if (mlength > t->length)
		return false;
	switch (kind) {
	case P3_RSP_NONE:
		if (put && t->is_long)
			return false;
		break;
	case P3_RSP_ACK:
		if (!put || t->is_long || !t->ack)
			return false;
		got_ack(n, p, t, mlength);
		break;
	case P3_RSP_DONE:
		if (!put || !t->is_long)
			return false;
		got_done(n, p, t, mlength, status, p3_word0_flags(w0) & P3_F_ACK);
		break;
	case P3_RSP_REPLY:
		if (put || ncells != p3_reply_cells(mlength))
			return false;
		got_reply(n, p, t, c, mlength);
		break;
	case P3_RSP_REPLY_LONG:
		if (put || !t->is_long || !set_source(n, t, p3_get(&c->w[3])))
			return false;
		got_long_reply(n, p, t, mlength, c);
		return true; /* goes on as a pull */
	default:
		return false;
	}
	free_pending(n, t);
	return true;
}

static bool enter_full_responses(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t off =
		p3_acquire(&p->theirs->full_rsp); /* LANE.1: before the switch cell */
	if (!p3_fw_full_ring_ok(n, off, n->layout.rsp_cells))
		return false;
	p3_ring_rx_init(&p->rsp_in, (struct p3_cell *)(p->base + off),
		n->layout.rsp_cells, &p->mine->rsp_credit[1]);
	p->rsp_cap = n->layout.rsp_cells - 1;
	return true;
}

bool p3_fw_take_response(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t w0;
	const struct p3_cell *c = p3_ring_peek(&p->rsp_in, &w0);
	if (__builtin_expect(!c, 1))
		return false;
	uint32_t kind = p3_word0_kind(w0), ncells = p3_word0_ncells(w0);
	n->worked = true;
	if (!p3_ring_sane(&p->rsp_in, kind, ncells)) {
		p3_fw_bad_peer(n, p, "a response of impossible size");
		return false;
	}
	if (kind == P3_RSP_PAD) {
		p3_ring_take_now(&p->rsp_in, ncells);
		return true;
	}
	if (kind == P3_RSP_SWITCH) {
		if (p->rsp_in.n == P3_BASE_CELLS && enter_full_responses(n, p))
			return true;
		p3_fw_bad_peer(n, p, "a response ring out of its segment");
		return false;
	}
	struct p3_pending *t = named_pending(n, p, (uint32_t)p3_get(&c->w[1]));
	uint32_t rsp = t ? t->rsp_cells : 0;
	if (!t || !answer(n, p, t, c, w0)) {
		p3_fw_bad_peer(n, p, "a response to no request");
		return false;
	}
	p3_ring_take_now(&p->rsp_in, ncells);
	p->rsp_used -= rsp; /* only now is its room free again */
	return true;
}

/* ---- ends that no response brings ---- */

void p3_fw_fail_pending(struct p3_nic *n, struct p3_pending *t, bool died)
{
	uint32_t fail = died ? PTL_NI_FAIL : PTL_NI_OK;
	bool queued = t->state == P3_PEND_QUEUED;
	if (!t->md) {
		free_pending(n, t);
		return;
	}
	if (t->kind == P3_REQ_PUT && queued)
		send_start(n, t);
	if (t->kind == P3_REQ_PUT && (queued || t->is_long))
		send_end(n, t, fail);
	if (t->kind == P3_REQ_GET && died && p3_lives(&t->md->o, t->md_gen)) {
		reply_start(n, t->peer, t, 0);
		p3_fw_event(n, t->md, &t->rec, PTL_EVENT_REPLY_END, fail);
		p3_fw_maybe_unlink(n, t->md, &t->rec);
	}
	free_pending(n, t);
}

static void forget_pendings(struct p3_nic *n, struct p3_link *list, uint32_t ni)
{
	p3_list_each(it, list) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		if (!t->md || t->ni != ni)
			continue;
		t->md = NULL;
		if (t->xfer)
			p3_xfer_withdraw(n, t->xfer);
		if (t->state == P3_PEND_QUEUED)
			free_pending(n, t);
	}
}

/* Interface ni closes: nothing under way may touch its memory or post its events. */
void p3_fw_forget(struct p3_nic *n, uint32_t ni)
{
	p3_xfer_forget(n, ni);
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		forget_pendings(n, &n->peer[i].queue, ni);
		forget_pendings(n, &n->peer[i].outstanding, ni);
	}
}
