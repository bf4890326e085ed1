/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get at the initiator: admission, lanes and send queues, responses received. */
#include "nic/fw.h"

#include <errno.h>
#include <string.h>

/* ---- needs of a request ---- */

static uint64_t eager_most(const struct p3_ring_tx *r)
{
	return P3_REQ_INLINE + (uint64_t)(p3_ring_most(r->n) - 1) * P3_CELL;
}

static uint64_t reply_most(const struct p3_ring_rx *r)
{
	return P3_RSP_INLINE + (uint64_t)(p3_ring_most(r->n) - 1) * P3_CELL;
}

/* Return the cells to reserve for a reply: its own, and the pad cells that may have to
 * fill the ring up to its end. */
static uint32_t reply_room(uint64_t len)
{
	return 2 * p3_reply_cells(len) - 1;
}

/* Room that one request needs: cells of the request ring, cells of the response ring,
 * and a slot of the transfer table. */
struct need {
	uint32_t cells;
	uint32_t rsp;
	bool slot; /* long: the target pulls the bytes */
};

/* The bytes that a request carries, and the sink of its SEND events. */
struct load {
	const struct p3_sink *sink;
	const struct p3_region *region;
	uint64_t offset;
};

static inline bool is_long_put(const struct p3_nic *n, const struct p3_peer *p,
	const struct load *l, uint64_t len)
{
	return p3_unlikely(len > eager_most(&p->req_out)) ||
	       (p3_unlikely(len > P3_EAGER_MOST_HEAP) &&
		       p3_sink_for(l->sink, PTL_EVENT_SEND_END) &&
		       p3_xfer_is_faster(n, p, l->region, l->offset, len));
}

static inline struct need need_of(const struct p3_nic *n, const struct p3_peer *p,
	uint32_t kind, const struct p3_move *m, const struct load *l)
{
	struct need need = {.cells = 1};
	if (kind == P3_REQ_GET) {
		need.slot = m->length > reply_most(&p->rsp_in);
		need.rsp = need.slot ? 1 : reply_room(m->length);
		return need;
	}
	need.slot = kind == P3_REQ_PUT && is_long_put(n, p, l, m->length);
	need.rsp = need.slot || m->ack;
	if (kind == P3_REQ_GETPUT)
		need.rsp = reply_room(m->length);
	if (!need.slot)
		need.cells = p3_request_cells(m->length);
	return need;
}

/* Return true if the pair should get full rings.  A full ring touches more cache lines
 * and pages than a base ring: if the full rings of all pairs exceed a CPU's cache, only
 * a pair whose base ring is too short gets one. */
static inline bool wants_full_ring(const struct p3_nic *n, const struct need *need)
{
	return !n->sparing || need->slot;
}

static inline bool has_room(struct p3_nic *n, struct p3_peer *p, const struct need *need)
{
	if (p3_unlikely(need->rsp + p->rsp_used > p->rsp_cap))
		return false;
	return p3_fw_room(p, &p->req_out, need->cells) ||
	       (p3_fw_grow_requests(n, p) && p3_fw_room(p, &p->req_out, need->cells));
}

/* ---- one request into the lane ---- */

/* Count a request that is about to be sent, and first switch to the full ring if it is
 * time.  A switch with no request behind it could stay untaken for long, and look like
 * an untaken message. */
static inline void count_request(
	struct p3_nic *n, struct p3_peer *p, const struct need *need)
{
	if (p3_unlikely(!p->req_full) && wants_full_ring(n, need) && ++p->nsent >= 8)
		(void)p3_fw_grow_requests(n, p);
}

static inline struct p3_cell *begin(
	struct p3_nic *n, struct p3_peer *p, const struct need *need)
{
	count_request(n, p, need);
	return p3_ring_begin(&p->req_out, need->cells);
}

/*
 * Fill the header, after the data: a receiver that looks for the header takes its line
 * away at the first store, and a copy of freshly written data may wait for the
 * program's stores.
 */
static inline void fill_header(struct p3_cell *c, const struct p3_move *m,
	const struct need *need, uint64_t eager, uint32_t name)
{
	uint64_t pt = m->pt_index > 0xffff ? 0xffff : m->pt_index;
	p3_set(&c->w[1], (uint64_t)need->rsp << 48 | (uint64_t)m->ac_index << 32 |
				 pt << 16 | (uint16_t)m->target.pid);
	p3_set(&c->w[2], eager << 32 | name);
	p3_set(&c->w[3], m->bits);
	p3_set(&c->w[4], m->hdr);
	p3_set(&c->w[5], m->remote_offset);
}

static inline void fill_data(const struct p3_nic *n, struct p3_cell *c,
	const struct p3_region *r, uint64_t offset, uint64_t length)
{
	uint64_t d[2] = {0, 0};
	if (length > P3_REQ_INLINE) {
		if (p3_copies_few(n->crowded, r, length))
			p3_copy_few((char *)c + 48, p3_sum(r->start, offset), length);
		else
			p3_region_read(r, offset, (char *)c + 48, length);
		return;
	}
	if (p3_likely(length == 8 && !r->iov))
		memcpy(d, r->start + offset, 8);
	else
		p3_region_read(r, offset, d, length);
	p3_set(&c->w[6], d[0]);
	p3_set(&c->w[7], d[1]);
}

/* Find the place of a long put's bytes, for the request's header.  Return P3_F_HEAP if
 * it is an offset in the shared heap, P3_F_ADDR if it is an address, or 0 if the header
 * does not tell the place. */
static uint32_t place_of(const struct p3_pending *t, uint64_t *place_out)
{
	*place_out = 0;
	if (!t->is_long || t->kind != P3_REQ_PUT)
		return 0;
	uint64_t heap = p3_get(&t->xfer->pub->heap);
	uint64_t place = heap ? heap : p3_get(&t->xfer->pub->addr);
	if (!place || (place | t->move.length) >> P3_PLACE_BITS)
		return 0;
	*place_out = place;
	return heap ? P3_F_HEAP : P3_F_ADDR;
}

static void fill_long(struct p3_cell *c, const struct p3_pending *t, uint64_t place)
{
	p3_set(&c->w[6], place >> 32 << P3_PLACE_BITS | t->move.length);
	p3_set(&c->w[7], t->xfer ? p3_xfer_name(t->xfer) : 0);
}

static inline void publish(struct p3_nic *n, struct p3_peer *p, uint64_t word0,
	const struct need *need, uint64_t sent)
{
	FAULT_POINT("request.filled");
	P3_TRACE(send, n, p, word0, sent);
	p3_ring_publish(&p->req_out, word0, need->cells);
	FAULT_POINT("request.published");
	if (need->cells > 1)
		p3_ring_own_more(&p->req_out, need->cells);
	p->rsp_used += need->rsp;
	if (p3_unlikely(!p->hot))
		p3_fw_heat(n, p); /* answers will come; or the peer is this node itself */
	p3_fw_touch(n, p);
	n->worked = true;
	p3_count(&n->count[P3_C_SENT], 1);
	p3_count(&n->count[P3_C_SENT_BYTES], sent);
}

static void emit(struct p3_nic *n, struct p3_peer *p, const struct p3_pending *t,
	uint32_t name, const struct need *need)
{
	const struct p3_move *m = &t->move;
	bool data_inside = !t->is_long && t->kind != P3_REQ_GET;
	uint64_t place;
	uint32_t said = place_of(t, &place);
	struct p3_cell *c = begin(n, p, need);
	if (data_inside)
		fill_data(n, c, &t->send.region, t->send.offset, m->length);
	else
		fill_long(c, t, place);
	fill_header(c, m, need, data_inside ? m->length : (uint32_t)place, name);
	uint32_t flags = (m->ack ? P3_F_ACK : 0u) | (t->is_long ? P3_F_LONG : 0u) |
			 (t->ni ? P3_F_NI1 : 0u) | said |
			 (t->is_long && t->copy ? P3_F_COPIED : 0u);
	publish(n, p, p3_word0(t->kind, flags, need->cells), need,
		t->kind == P3_REQ_GET ? 0 : m->length);
}

/* ---- the send's events ---- */

/* Return true if p is a pseudo-peer, whose queue holds requests to targets that are not
 * there yet.  Such a request has no SEND event before its target comes, unless its
 * bytes are copied: a program may take SEND_END as a sign that the message has left. */
static bool is_held(const struct p3_nic *n, const struct p3_peer *p)
{
	return p == &n->unresolved || p == &n->absent;
}

static void send_start(struct p3_nic *n, struct p3_pending *t)
{
	if (t->send.md)
		p3_span_start(n, &t->send, PTL_EVENT_SEND_START);
	FAULT_POINT("request.started");
}

static void send_end(struct p3_nic *n, struct p3_pending *t, uint32_t fail)
{
	if (fail)
		p3_say(&t->send.rec, 2, 0);
	p3_span_end(n, &t->send, PTL_EVENT_SEND_END, fail);
	t->send.md = NULL; /* the send is over: no other function has to end it */
}

/* ---- short puts that cannot leave at once ---- */

static bool is_short(const struct p3_pending *t)
{
	return t->kind != P3_REQ_GET && t->move.length <= P3_SHORT_MOST;
}

/* Return the counter of copies that have not left, for copies that are addressed to
 * this peer. */
static p3_a32 *copies_for(struct p3_nic *n, const struct p3_peer *p)
{
	return is_held(n, p) ? &n->promised : &n->leaving;
}

/*
 * Copy a send's bytes and post its SEND_END, so that the program may unlink the
 * descriptor when its call returns.  Return false if there is no memory for a copy.
 */
static P3_RARE bool take_over(struct p3_nic *n, struct p3_pending *t)
{
	uint64_t len = t->move.length;
	p3_a32 *copies = copies_for(n, t->peer);
	t->copy = p3_copy_alloc(n, t->peer, len);
	if (!t->copy)
		return false;
	p3_region_read(&t->send.region, t->send.offset, t->copy, len);
	/* Before SEND_END: a thread that takes the event may look at once (LEAVE.1). */
	p3_set(copies, p3_get(copies) + 1);
	FAULT_POINT("request.copied");
	if (is_held(n, t->peer))
		send_start(n, t);
	send_end(n, t, PTL_NI_OK);
	t->send.region = (struct p3_region){.start = t->copy, .size = len};
	t->send.offset = 0;
	return true;
}

/* Copy a short send that could not leave.  Only if its target is mapped: SEND_END
 * promises that the bytes will leave. */
static P3_RARE void copy_out(struct p3_nic *n, struct p3_pending *t)
{
	if (t->send.md && is_short(t) && t->peer->state == P3_LIVE)
		(void)take_over(n, t);
}

/* Drop a copy: the bytes lie in the lane now, or no peer will read them any more. */
static P3_RARE void drop_copy(struct p3_nic *n, struct p3_pending *t)
{
	p3_a32 *copies = copies_for(n, t->peer);
	p3_copy_free(n, t->peer, t->copy);
	t->copy = NULL;
	p3_release(copies, p3_get(copies) - 1); /* LEAVE.1 */
}

/* Count a copy for peer p, since its request goes to the queue of that peer. */
static P3_RARE void readdress_copy(
	struct p3_nic *n, struct p3_pending *t, struct p3_peer *p)
{
	p3_a32 *before = copies_for(n, t->peer), *copies = copies_for(n, p);
	p3_copy_readdress(n, t->peer, p, t->copy);
	p3_set(copies, p3_get(copies) + 1);
	p3_release(before, p3_get(before) - 1); /* LEAVE.1 */
}

static void free_pending(struct p3_nic *n, struct p3_pending *t)
{
	if (t->copy)
		drop_copy(n, t);
	p3_list_del(&t->link);
	if (t->state == P3_PEND_QUEUED)
		t->peer->nqueued--;
	else
		t->peer->nout--;
	if (t->xfer)
		p3_xfer_free(n, t->xfer);
	t->xfer = NULL;
	if (t->md)
		p3_use_less(&n->ni[t->ni], P3_U_OP);
	p3_table_release(&n->table[P3_T_PENDING], &t->o);
}

/* ---- admission ---- */

static bool has_pid(const struct p3_peer *p, ptl_pid_t pid)
{
	return pid != P3_JOB_NO_PID && (p3_likely(p->pid[0] == pid) || p->pid[1] == pid);
}

/* Return true if a target lives and takes part; the others need no lane. */
static bool is_live(const struct p3_peer *p, ptl_pid_t pid)
{
	return p3_likely(p && p->state == P3_LIVE && has_pid(p, pid));
}

static bool is_expected(const struct p3_peer *p, ptl_pid_t pid)
{
	return p && p->state == P3_EXPECTED && has_pid(p, pid);
}

/* Return true if a request to this target fails.  One to a target that has left, or has
 * yet to come, ends without a failure. */
static bool is_failure(const struct p3_peer *p, ptl_pid_t pid)
{
	return !p || p->state == P3_DEAD ||
	       ((p->state == P3_LIVE || p->state == P3_EXPECTED) && !has_pid(p, pid));
}

/* Return true if the target has yet to join, as far as this node knows. */
static bool is_absent(struct p3_nic *n, const struct p3_peer *p, ptl_process_id_t who)
{
	if (n->ids)
		return p == &n->unresolved && p3_ids_may_come(n, who);
	return p && p->state == P3_ABSENT;
}

/* Find the queue of a request that cannot be sent now, or NULL if the request ends at
 * once.  Return PTL_OK, or PTL_NO_SPACE if too many requests are held. */
static P3_RARE int find_queue(struct p3_nic *n, struct p3_peer *p, ptl_process_id_t who,
	struct p3_peer **to_out)
{
	bool may_come = p ? p->state != P3_DEAD : n->ids != NULL;
	*to_out = NULL;
	if (is_expected(p, who.pid))
		*to_out = p;
	else if (n->conf.hold_ns && is_absent(n, p, who))
		*to_out = &n->absent;
	else if (n->conf.ask && may_come)
		*to_out = &n->unresolved;
	bool full = *to_out == &n->absent && n->absent.nqueued >= n->held_most;
	return full ? PTL_NO_SPACE : PTL_OK;
}

/* Find the queue of a request, or NULL if the request ends at once.  Return as
 * find_queue() does. */
static inline int find_way(struct p3_nic *n, struct p3_peer *p, ptl_process_id_t who,
	struct p3_peer **to_out)
{
	*to_out = p;
	return p3_likely(is_live(p, who.pid)) ? PTL_OK : find_queue(n, p, who, to_out);
}

static bool fits(const struct p3_md *md, uint64_t offset, uint64_t length)
{
	uint64_t size = md->region.size;
	return offset <= size && length <= size - offset;
}

static P3_HOT struct p3_md *active_md(struct p3_nic *n, uint64_t handle)
{
	struct p3_md *md = p3_named_in(&n->table[P3_T_MD], P3_KIND_MD, handle);
	return p3_likely(md && md->threshold != 0) ? md : NULL;
}

static inline int check(struct p3_nic *n, struct p3_cmd *c, struct p3_md **md_out)
{
	struct p3_md *md = active_md(n, c->handle);
	if (p3_unlikely(!md))
		return PTL_MD_INVALID;
	if (c->move.length == P3_WHOLE) {
		c->move.offset = 0;
		c->move.length = md->region.size;
	} else if (p3_unlikely(!fits(md, c->move.offset, c->move.length))) {
		return PTL_MD_ILLEGAL;
	}
	*md_out = md;
	return PTL_OK;
}

/* Write the content of the SEND events.  The caller has counted the operation on the
 * descriptor (p3_fw_threshold()). */
static inline void describe_send(struct p3_nic *n, const struct p3_move *m,
	const struct p3_md *md, uint64_t offset, uint32_t link, uint32_t kind,
	struct p3_event_words *rec)
{
	ptl_process_id_t self = {n->conf.nid, p3_ni_of(n, &md->o)->pid};
	p3_say(rec, 0, m->bits);
	p3_say(rec, 1, m->length);
	p3_say(rec, 2, m->length);
	p3_say(rec, 3, offset);
	p3_say(rec, 4, m->hdr);
	p3_say_md(rec, md);
	p3_say_who(rec, self, n->conf.uid, n->conf.jid);
	p3_say_what(rec, link, m->pt_index, kind);
}

/* Write the content of the SEND events, with a new link. */
static void describe_slow(struct p3_nic *n, const struct p3_move *m,
	const struct p3_md *md, uint64_t offset, struct p3_event_words *rec)
{
	describe_send(n, m, md, offset, n->next_link++, 0, rec);
}

static __attribute__((noinline)) void send_started(
	struct p3_nic *n, const struct p3_move *m, struct p3_md *md, uint32_t link)
{
	struct p3_event_words rec;
	describe_send(n, m, md, m->offset, link, 0, &rec);
	p3_fw_event(n, &md->sink, &rec, PTL_EVENT_SEND_START, PTL_NI_OK);
}

static __attribute__((noinline)) void send_unlinks(
	struct p3_nic *n, const struct p3_move *m, struct p3_md *md, uint32_t link)
{
	struct p3_event_words rec;
	describe_send(n, m, md, m->offset, link, 0, &rec);
	p3_fw_event_unlinks(n, md, &md->sink, &rec, PTL_EVENT_SEND_END, PTL_NI_OK);
}

static inline void send_ended(
	struct p3_nic *n, const struct p3_move *m, struct p3_md *md, uint32_t link)
{
	struct p3_eq *eq = p3_sink_for(&md->sink, PTL_EVENT_SEND_END);
	if (p3_unlikely(!eq))
		return;
	struct p3_event_record *e = p3_event_begin(eq);
	describe_send(n, m, md, m->offset, link, PTL_EVENT_SEND_END, &e->words);
	p3_event_post(n, eq, e, PTL_EVENT_SEND_END);
}

static inline void count_sent(struct p3_ni *ni, uint64_t length)
{
	ni->sent++;
	ni->sent_bytes += length;
}

/* Send a put without a pending.  Return false if it needs one: it wants an ACK, other
 * requests wait before it, it is long, or the lane has no room. */
static inline bool put_now(
	struct p3_nic *n, struct p3_peer *p, const struct p3_move *m, struct p3_md *md)
{
	if (p3_unlikely(m->ack || !p3_list_empty(&p->queue)))
		return false;
	const struct load l = {&md->sink, &md->region, m->offset};
	struct need need = need_of(n, p, P3_REQ_PUT, m, &l);
	if (p3_unlikely(need.slot || !has_room(n, p, &need)))
		return false;
	struct p3_cell *c = begin(n, p, &need);
	fill_data(n, c, &md->region, m->offset, m->length);
	fill_header(c, m, &need, m->length, 0);
	publish(n, p, p3_word0(P3_REQ_PUT, md->o.ni ? P3_F_NI1 : 0u, need.cells), &need,
		m->length);
	count_sent(p3_ni_of(n, &md->o), m->length);
	p3_count(&n->count[need.cells == 1 ? P3_C_PUT_INLINE : P3_C_PUT_EAGER], 1);
	p3_fw_threshold(md);
	uint32_t link = n->next_link++;
	if (p3_unlikely(p3_wants(&md->sink, PTL_EVENT_SEND_START)))
		send_started(n, m, md, link);
	if (p3_fw_may_unlink(md))
		send_unlinks(n, m, md, link);
	else
		send_ended(n, m, md, link);
	return true;
}

/* Keep a request as a pending in the send queue of its target, and send it if there is
 * room.  source is the descriptor that has the SEND events, for its bytes from offset
 * on; NULL: the request has no SEND events. */
P3_PATH
static __attribute__((noinline)) int admit(struct p3_nic *n, struct p3_peer *p,
	uint32_t kind, const struct p3_move *m, struct p3_md *md, struct p3_md *source,
	uint64_t offset)
{
	struct p3_pending *t = p3_table_alloc(&n->table[P3_T_PENDING]);
	if (!t)
		return -(1 + (int)P3_T_PENDING);
	p3_set(&t->o.gen, p3_get(&t->o.gen) + 1);
	t->kind = (uint8_t)kind;
	t->ni = (uint8_t)md->o.ni;
	t->peer = p;
	t->state = P3_PEND_QUEUED;
	t->md = md;
	t->md_gen = p3_get(&md->o.gen);
	t->move = *m;
	t->is_long = false;
	t->xfer = NULL;
	t->rsp_cells = 0;
	t->send.md = NULL;
	t->copy = NULL;
	if (source) {
		p3_fw_threshold(source);
		describe_slow(n, m, source, offset, &t->send.rec);
		p3_span_begin(&t->send, source, offset);
		/* SEND_START is posted now, not when the request leaves the queue,
		 * since START events come in the order of the calls. */
		if (!is_held(n, p))
			send_start(n, t);
	}
	FAULT_POINT("request.admitted");
	if (p3_unlikely(n->traced != NULL))
		t->command = n->trace.command;
	p3_use_more(&n->ni[t->ni], P3_U_OP);
	count_sent(&n->ni[t->ni], kind == P3_REQ_GET ? 0 : m->length);
	p3_list_add(&p->queue, &t->link);
	p->nqueued++;
	uint32_t gen = p3_get(&t->o.gen);
	p3_fw_push(n, p);
	if (p3_lives(&t->o, gen) && t->state == P3_PEND_QUEUED)
		copy_out(n, t);
	return PTL_OK;
}

/* End a request with SEND events at once: its target is not there. */
static P3_RARE void send_nowhere(struct p3_nic *n, const struct p3_move *m,
	struct p3_md *md, uint64_t offset, bool failure)
{
	struct p3_event_words rec;
	p3_fw_threshold(md);
	describe_slow(n, m, md, offset, &rec);
	p3_say(&rec, 2, failure ? 0 : m->length);
	p3_fw_event(n, &md->sink, &rec, PTL_EVENT_SEND_START, PTL_NI_OK);
	p3_fw_event_ends(n, md, &md->sink, &rec, PTL_EVENT_SEND_END,
		failure ? PTL_NI_FAIL : PTL_NI_OK);
}

/* Restore the command's arguments, which checking it has changed, if it did not
 * succeed: the caller may bring memory and execute it again. */
static int restored(struct p3_move *m, uint64_t length, uint16_t ack, int rc)
{
	if (rc != PTL_OK) {
		m->length = length;
		m->ack = ack;
	}
	return rc;
}

P3_PATH
int p3_fw_put(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md;
	struct p3_move *m = &c->move;
	uint64_t length = m->length;
	uint16_t ack = m->ack;
	int rc = check(n, c, &md);
	if (p3_unlikely(rc != PTL_OK))
		return rc;
	m->ack = p3_unlikely(m->ack) && p3_sink_eq(&md->sink);
	struct p3_peer *p = p3_fw_find(n, m->target);
	struct p3_peer *to = p;
	if (p3_likely(is_live(p, m->target.pid))) {
		if (p3_likely(put_now(n, p, m, md)))
			return PTL_OK;
	} else {
		rc = find_queue(n, p, m->target, &to);
		if (rc != PTL_OK)
			return restored(m, length, ack, rc);
	}
	if (to)
		return restored(
			m, length, ack, admit(n, to, P3_REQ_PUT, m, md, md, m->offset));
	p3_fw_why_nowhere(n, p, P3_REQ_PUT, m);
	send_nowhere(n, m, md, m->offset, is_failure(p, m->target.pid));
	return PTL_OK;
}

static void reply_fails(struct p3_nic *n, const struct p3_move *m, struct p3_md *md,
	const struct p3_peer *p);

P3_PATH
int p3_fw_get(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md;
	struct p3_move *m = &c->move;
	uint64_t length = m->length;
	m->hdr = 0;
	m->ack = false;
	int rc = check(n, c, &md);
	if (rc != PTL_OK)
		return rc;
	struct p3_peer *p = p3_fw_find(n, m->target);
	struct p3_peer *to;
	rc = find_way(n, p, m->target, &to);
	if (p3_unlikely(rc != PTL_OK))
		return restored(m, length, 0, rc);
	bool cray = md->sink.options & P3_MD_CRAY;
	if (to)
		return restored(m, length, 0,
			admit(n, to, P3_REQ_GET, m, md, cray ? md : NULL, m->offset));
	p3_fw_why_nowhere(n, p, P3_REQ_GET, m);
	if (cray)
		send_nowhere(n, m, md, m->offset, is_failure(p, m->target.pid));
	else if (is_failure(p, m->target.pid))
		reply_fails(n, m, md, p);
	return PTL_OK;
}

static int check_exchange(struct p3_nic *n, struct p3_cmd *c, struct p3_md **get_out,
	struct p3_md **put_out)
{
	struct p3_md *get = active_md(n, c->handle);
	struct p3_md *put = active_md(n, c->move.put_handle);
	if (!get || !put)
		return PTL_MD_INVALID;
	if (get->o.ni != put->o.ni)
		return PTL_MD_ILLEGAL;
	if (c->move.length == P3_WHOLE) {
		c->move.offset = c->move.put_offset = 0;
		c->move.length = put->region.size;
	} else if (!fits(get, c->move.offset, c->move.length) ||
		   !fits(put, c->move.put_offset, c->move.length)) {
		return PTL_MD_ILLEGAL;
	}
	*get_out = get;
	*put_out = put;
	uint64_t most = (uint64_t)n->ni[get->o.ni].limits.max_getput_md;
	return c->move.length <= most ? PTL_OK : PTL_MD_ILLEGAL;
}

int p3_fw_getput(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *get, *put;
	struct p3_move *m = &c->move;
	uint64_t length = m->length;
	int rc = check_exchange(n, c, &get, &put);
	if (rc != PTL_OK)
		return restored(m, length, 0, rc);
	m->ack = false;
	struct p3_peer *p = p3_fw_find(n, m->target);
	struct p3_peer *to;
	rc = find_way(n, p, m->target, &to);
	if (p3_unlikely(rc != PTL_OK))
		return restored(m, length, 0, rc);
	if (to)
		return restored(m, length, 0,
			admit(n, to, P3_REQ_GETPUT, m, get, put, m->put_offset));
	p3_fw_why_nowhere(n, p, P3_REQ_GETPUT, m);
	send_nowhere(n, m, put, m->put_offset, is_failure(p, m->target.pid));
	return PTL_OK;
}

void p3_fw_refuse(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md, *put;
	struct p3_move *m = &c->move;
	struct p3_peer *p = p3_fw_find(n, m->target);
	if (c->op == P3_OP_GETPUT) {
		p3_fw_why_nowhere(n, p, P3_REQ_GETPUT, m);
		if (check_exchange(n, c, &md, &put) == PTL_OK)
			send_nowhere(n, m, put, m->put_offset, true);
	} else if (c->op == P3_OP_PUT || c->op == P3_OP_GET) {
		if (check(n, c, &md) != PTL_OK)
			return;
		bool is_put = c->op == P3_OP_PUT;
		p3_fw_why_nowhere(n, p, is_put ? P3_REQ_PUT : P3_REQ_GET, m);
		if (is_put || (md->sink.options & P3_MD_CRAY))
			send_nowhere(n, m, md, m->offset, true);
		else
			reply_fails(n, m, md, p);
	}
	n->posted = true;
}

/* ---- targets that are not known ---- */

/* Let the newest request wait for the answer to a question that is asked after the
 * request came.  One question is open at a time: if there is one, the next is asked
 * when it is answered. */
static void question(struct p3_nic *n)
{
	struct p3_pending *newest =
		p3_item(n->unresolved.queue.prev, struct p3_pending, link);
	newest->question = n->asked + 1;
	if (n->told == n->asked)
		n->conf.ask(n->conf.ask_arg, ++n->asked);
}

static void move_to(struct p3_nic *n, struct p3_pending *t, struct p3_peer *p)
{
	if (t->copy)
		readdress_copy(n, t, p);
	p3_list_del(&t->link);
	t->peer->nqueued--;
	t->peer = p;
	p->nqueued++;
	p3_list_add(&p->queue, &t->link);
}

static void requeue(struct p3_nic *n, struct p3_pending *t, struct p3_peer *p)
{
	if (is_held(n, t->peer))
		send_start(n, t);
	move_to(n, t, p);
}

static void give_up(struct p3_nic *n, struct p3_pending *t);

/* Ask whether another node has the pid of a held request, since the request's node has
 * joined without that pid. */
static P3_RARE void ask_for(struct p3_nic *n, struct p3_pending *t)
{
	if (!n->conf.ask) {
		give_up(n, t);
		return;
	}
	move_to(n, t, &n->unresolved);
	question(n);
}

static void readdress(struct p3_nic *n, struct p3_peer *from)
{
	p3_list_each(it, &from->queue) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		ptl_process_id_t who = t->move.target;
		struct p3_peer *p = p3_fw_find(n, who);
		if (is_live(p, who.pid) || is_expected(p, who.pid)) {
			requeue(n, t, p);
			p3_fw_push(n, p);
		} else if (from == &n->absent && !is_absent(n, p, who)) {
			ask_for(n, t);
		}
	}
}

void p3_fw_readdress(struct p3_nic *n)
{
	readdress(n, &n->absent);
	readdress(n, &n->unresolved);
}

static void give_up(struct p3_nic *n, struct p3_pending *t)
{
	struct p3_peer *p = p3_fw_find(n, t->move.target);
	bool failure = is_failure(p, t->move.target.pid);
	if (p && p != &n->unresolved)
		requeue(n, t, p);
	p3_fw_fail_pending(n, t, failure);
}

int p3_fw_peer_told(struct p3_nic *n, struct p3_cmd *c)
{
	if (n->told == n->asked || (uint32_t)c->handle != n->asked)
		return -ESTALE;
	n->told = n->asked;
	p3_list_each(it, &n->unresolved.queue) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		if (t->question == n->told)
			give_up(n, t);
	}
	if (!p3_list_empty(&n->unresolved.queue))
		n->conf.ask(n->conf.ask_arg, ++n->asked);
	n->posted = true;
	return 0;
}

/* ---- targets that have yet to join ---- */

/* Count a held request in the gauges of its target, which tools read. */
static void show_held(struct p3_nic *n, const struct p3_pending *t)
{
	struct p3_peer *p = p3_fw_find(n, t->move.target);
	if (!p || p == &n->unresolved)
		return;
	uint32_t queued = (uint32_t)p3_get(&p->mine->shown_ops);
	p3_set(&p->mine->shown_ops, p3_pair(0, queued + 1));
	if (!queued)
		p3_set(&p->mine->shown_since, t->held_ns);
}

/* Take a held request that is about to end out of its target's gauges, and show the
 * start of the next one's wait. */
static void show_no_held(struct p3_nic *n, const struct p3_pending *t)
{
	struct p3_peer *p = p3_fw_find(n, t->move.target);
	if (!p || p == &n->unresolved || p->state != P3_ABSENT)
		return;
	uint32_t queued = (uint32_t)p3_get(&p->mine->shown_ops);
	p3_fw_mirror_lost(p);
	p3_list_each(it, &n->absent.queue) {
		struct p3_pending *next = p3_item(it, struct p3_pending, link);
		if (next == t || p3_fw_find(n, next->move.target) != p)
			continue;
		p3_set(&p->mine->shown_since, next->held_ns);
		p3_set(&p->mine->shown_ops, p3_pair(0, queued - 1));
		return;
	}
}

/* Begin to hold the newest request: note the time.  Tell the life thread, which ends
 * such requests, when it is the first one. */
static void hold(struct p3_nic *n)
{
	struct p3_pending *newest =
		p3_item(n->absent.queue.prev, struct p3_pending, link);
	newest->held_ns = p3_now_ns();
	show_held(n, newest);
	if (n->absent.nqueued == 1)
		n->conf.hold(n->conf.ask_arg);
}

static struct p3_pending *first_held(struct p3_nic *n)
{
	struct p3_link *first = n->absent.queue.next;
	return p3_list_empty(&n->absent.queue) ? NULL
					       : p3_item(first, struct p3_pending, link);
}

int p3_fw_held(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_pending *t;
	uint64_t now = p3_now_ns();
	while ((t = first_held(n)) && now - t->held_ns >= n->conf.hold_ns) {
		show_no_held(n, t);
		p3_fw_fail_pending(n, t, true);
		n->posted = true;
	}
	c->held = (struct p3_on_hold){.n = n->absent.nqueued};
	if (t) {
		c->held.who = t->move.target;
		c->held.since_ns = t->held_ns;
	}
	return PTL_OK;
}

void p3_fw_give_up(struct p3_nic *n)
{
	p3_list_each(it, &n->absent.queue) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		struct p3_peer *p = p3_fw_find(n, t->move.target);
		if (p && p->state != P3_DEAD && p->state != P3_GONE)
			continue;
		give_up(n, t);
		n->posted = true;
	}
}

/* ---- descriptors that are unlinked while their puts wait for targets ---- */

/* The requests of a descriptor in a queue of requests whose target is not there yet. */
struct waiting {
	struct p3_link *queue;
	struct p3_link *first; /* the oldest request of the descriptor */
	uint32_t n;
};

/* Find requests of the descriptor in a queue, no more than most.  Search from the
 * newest one on, since a descriptor is often unlinked right behind its put, and stop at
 * the first request that is too long for a copy. */
static void find_waiting(
	struct p3_link *queue, const struct p3_md *md, uint32_t most, struct waiting *out)
{
	*out = (struct waiting){.queue = queue, .first = queue};
	for (struct p3_link *it = queue->prev; it != queue && out->n < most;
		it = it->prev) {
		const struct p3_pending *t = p3_item(it, struct p3_pending, link);
		if (t->send.md != md)
			continue;
		if (!is_short(t))
			return;
		out->first = it;
		out->n++;
	}
}

/* Copy the bytes of all requests that find_waiting() found.  Return false if there is
 * no memory.  The last SEND_END may unlink the descriptor, so do not use it after
 * that. */
static bool take_over_waiting(
	struct p3_nic *n, const struct waiting *w, const struct p3_md *md)
{
	uint32_t left = w->n;
	for (struct p3_link *it = w->first; left; it = it->next) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		if (t->send.md != md)
			continue;
		if (!take_over(n, t))
			return false;
		left--;
	}
	return true;
}

/* Find the descriptor's requests to a peer that yod is still to introduce, if the peer is
 * one. */
static void find_apart(
	struct p3_peer *p, const struct p3_md *md, uint32_t most, struct waiting *out)
{
	*out = (struct waiting){.queue = &p->queue, .first = &p->queue};
	if (p->state == P3_EXPECTED && p->apart)
		find_waiting(&p->queue, md, most, out);
}

/* Return the number of the descriptor's requests, at most most, to all such peers. */
static uint32_t count_apart(struct p3_nic *n, const struct p3_md *md, uint32_t most)
{
	struct waiting w;
	uint32_t left = most;
	for (uint32_t i = 0; i < n->conf.nnodes && left; i++) {
		find_apart(&n->peer[i], md, left, &w);
		left -= w.n;
	}
	return most - left;
}

/* Copy the bytes of the requests that count_apart() has counted.  Return false if there
 * is no memory. */
static bool take_over_apart(struct p3_nic *n, const struct p3_md *md, uint32_t count)
{
	struct waiting w;
	for (uint32_t i = 0; i < n->conf.nnodes && count; i++) {
		find_apart(&n->peer[i], md, count, &w);
		if (!take_over_waiting(n, &w, md))
			return false;
		count -= w.n;
	}
	return true;
}

bool p3_fw_let_go(struct p3_nic *n, struct p3_md *md)
{
	struct waiting absent, unresolved;
	find_waiting(&n->absent.queue, md, md->pending, &absent);
	find_waiting(&n->unresolved.queue, md, md->pending - absent.n, &unresolved);
	uint32_t left = md->pending - absent.n - unresolved.n;
	if (count_apart(n, md, left) != left)
		return false;
	n->posted = true;
	return take_over_waiting(n, &absent, md) &&
	       take_over_waiting(n, &unresolved, md) && take_over_apart(n, md, left);
}

/* ---- send queues ---- */

/* Return true if a long transfer must wait for an exchange of the same bytes. */
static bool must_wait(struct p3_nic *n, const struct p3_pending *t)
{
	const struct p3_region *r = &t->send.region;
	uint64_t off = t->send.offset;
	if (t->kind == P3_REQ_GET) {
		if (!t->md || !p3_lives(&t->md->o, t->md_gen))
			return false;
		r = &t->md->region;
		off = t->move.offset;
	}
	return p3_bounds_meet(n->swapper_wants, r, off, t->move.length) &&
	       p3_fw_swap_waits(n);
}

/* Return true if a request is too long for the base lane, but not for a full one. */
static bool wants_lane(
	const struct p3_nic *n, const struct p3_peer *p, const struct p3_pending *t)
{
	return !p->req_full && t->kind == P3_REQ_PUT &&
	       t->move.length > eager_most(&p->req_out) &&
	       p3_request_cells(t->move.length) <= p3_ring_most(n->layout.req_cells);
}

static bool send_one(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t)
{
	if (wants_lane(n, p, t))
		(void)p3_fw_grow_requests(n, p);
	const struct load l = {&t->send.sink, &t->send.region, t->send.offset};
	struct need need = need_of(n, p, t->kind, &t->move, &l);
	t->is_long = need.slot;
	if (!has_room(n, p, &need))
		return false;
	if (need.slot) {
		if (p3_unlikely(n->swapper != NULL) && must_wait(n, t))
			return false;
		t->xfer = p3_xfer_alloc(n, p, P3_X_OWN);
		if (!t->xfer)
			return false;
	}
	if (need.slot && t->kind == P3_REQ_PUT) {
		if (!t->copy &&
			!p3_xfer_is_faster(n, p, l.region, l.offset, t->move.length))
			copy_out(n, t);
		t->xfer->span.region = t->send.region;
		t->xfer->span.offset = t->send.offset;
		t->xfer->length = t->move.length;
		p3_xfer_publish(n, t->xfer);
	}
	P3_TRACE(focus, n, (struct p3_topic){p->index, 0}, t->command);
	t->rsp_cells = need.rsp;
	emit(n, p, t, need.rsp ? p3_pending_name(t) : 0, &need);
	P3_TRACE(keep, n, &t->topic);
	p3_list_del(&t->link);
	p3_list_add(&p->outstanding, &t->link);
	t->state = P3_PEND_SENT;
	p->nqueued--;
	p->nout++;
	FAULT_POINT("request.sent");
	if (t->send.md && !(t->is_long && t->kind == P3_REQ_PUT))
		send_end(n, t, PTL_NI_OK);
	if (t->copy && !t->is_long)
		drop_copy(n, t);
	if (!need.rsp)
		free_pending(n, t);
	return true;
}

/* Have the life thread ask yod for the peer's file descriptors, once, if a request
 * waits for the peer. */
static P3_RARE void meet(struct p3_nic *n, struct p3_peer *p)
{
	if (p->met || p3_list_empty(&p->queue))
		return;
	p->met = true;
	p3_set(&n->meeting, p3_get(&n->meeting) + 1);
	FAULT_POINT("apart.wanted");
	n->conf.meet(n->conf.ask_arg, p->index);
}

/* Send from the front of the peer's queue while there is room.  Requests to an expected
 * peer stay until p3_fw_peer_up() calls this function again; no pass polls for that.
 * The newest request to a pseudo-peer is held, or asked about. */
void p3_fw_push(struct p3_nic *n, struct p3_peer *p)
{
	if (p3_unlikely(p->state == P3_ABSENT)) {
		(p == &n->absent ? hold : question)(n);
		return;
	}
	if (p->state == P3_EXPECTED) {
		if (p->apart)
			meet(n, p);
		p3_fw_mirror_peer(p, p3_now_ns());
		return;
	}
	while (!p3_list_empty(&p->queue))
		if (!send_one(n, p, p3_item(p->queue.next, struct p3_pending, link)))
			break;
	bool blocked = !p3_list_empty(&p->queue);
	if (blocked && !p->blocked) {
		p3_list_add(&n->blocked, &p->blocked_link);
		p3_count(&n->count[P3_C_QUEUED], 1);
		p3_fw_rouse(n); /* room in a lane rings no doorbell */
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

/* Return the pending that a response names, or NULL if it does not wait for a response
 * from this peer. */
static struct p3_pending *named_pending(
	struct p3_nic *n, struct p3_peer *p, uint32_t name)
{
	struct p3_pending *t =
		p3_table_at(&n->table[P3_T_PENDING], name & P3_PENDING_INDEX);
	if (!t || !(p3_get(&t->o.gen) & 1) || p3_pending_name(t) != name)
		return NULL;
	return t->peer == p && t->state == P3_PEND_SENT ? t : NULL;
}

static void answer_who(
	const struct p3_pending *t, const struct p3_peer *p, struct p3_event_words *rec)
{
	ptl_process_id_t id = {p->nid, t->move.target.pid};
	p3_say_who(rec, id, p->uid, p->jid);
}

static bool md_lives(struct p3_nic *n, struct p3_pending *t)
{
	bool lives = t->md && p3_lives(&t->md->o, t->md_gen);
	if (!lives && t->md) {
		p3_fw_drop(n, &n->ni[t->ni], t->move.length);
		p3_fw_why_late(n, t);
	}
	return lives;
}

/* Count the operation on the descriptor, then write the parts of an ACK or REPLY event
 * that echo the request. */
static void describe_answer(struct p3_nic *n, const struct p3_move *m, struct p3_md *md,
	uint64_t mlength, struct p3_event_words *rec)
{
	p3_fw_threshold(md);
	p3_say(rec, 0, m->bits);
	p3_say(rec, 1, m->length);
	p3_say(rec, 2, mlength);
	p3_say(rec, 3, m->remote_offset);
	p3_say(rec, 4, 0);
	p3_say_md(rec, md);
	p3_say_what(rec, n->next_link++, m->pt_index, 0);
}

static void got_ack(
	struct p3_nic *n, struct p3_peer *p, struct p3_pending *t, uint64_t mlength)
{
	struct p3_event_words rec;
	if (!md_lives(n, t))
		return;
	struct p3_md *md = t->md;
	if (!p3_sink_eq(&md->sink)) {
		p3_fw_drop(n, p3_ni_of(n, &md->o), t->move.length);
		p3_fw_why_late(n, t);
		return;
	}
	describe_answer(n, &t->move, md, mlength, &rec);
	answer_who(t, p, &rec);
	p3_fw_event_ends(n, md, &md->sink, &rec, PTL_EVENT_ACK, PTL_NI_OK);
}

static void got_done(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	uint64_t mlength, uint32_t status, bool ack)
{
	if (t->send.md)
		send_end(n, t, status);
	else if (p3_unlikely(status && t->copy))
		p3_fw_why_failed(n, t);
	if (ack && t->move.ack && !status)
		got_ack(n, p, t, mlength);
}

/* Return the number of a reply's bytes that fit the get's descriptor as it is now:
 * replies always truncate. */
static uint64_t reply_space(const struct p3_pending *t, uint64_t len)
{
	uint64_t size = t->md->region.size;
	uint64_t space = size > t->move.offset ? size - t->move.offset : 0;
	return len < space ? len : space;
}

static void got_reply(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	const struct p3_cell *c, uint64_t mlength)
{
	struct p3_event_words rec;
	if (!md_lives(n, t))
		return;
	struct p3_md *md = t->md;
	uint64_t len = reply_space(t, mlength);
	describe_answer(n, &t->move, md, len, &rec);
	answer_who(t, p, &rec);
	p3_fw_event(n, &md->sink, &rec, PTL_EVENT_REPLY_START, PTL_NI_OK);
	p3_region_write(&md->region, t->move.offset, (const char *)c + 24, len);
	if (p3_unlikely(!p3_list_empty(&n->pulls)))
		p3_xfer_wrote(n, &md->region, t->move.offset, len);
	p3_fw_event_ends(n, md, &md->sink, &rec, PTL_EVENT_REPLY_END, PTL_NI_OK);
}

/* Fail a get whose reply will never come.  p is its target, or NULL if that is
 * unknown. */
static void reply_fails(struct p3_nic *n, const struct p3_move *m, struct p3_md *md,
	const struct p3_peer *p)
{
	struct p3_event_words rec;
	describe_answer(n, m, md, 0, &rec);
	p3_say_who(&rec, m->target, p ? p->uid : PTL_UID_ANY, p ? p->jid : PTL_JID_ANY);
	p3_fw_event(n, &md->sink, &rec, PTL_EVENT_REPLY_START, PTL_NI_OK);
	p3_fw_event_ends(n, md, &md->sink, &rec, PTL_EVENT_REPLY_END, PTL_NI_FAIL);
}

/* Tell the target that its bytes are no longer needed.  The slot stays in use until the
 * target has seen that. */
static void release_get(struct p3_nic *n, struct p3_pending *t, uint32_t fail)
{
	struct p3_xfer_slot *x = t->xfer;
	t->xfer = NULL;
	p3_set(&x->pub->status, fail ? UINT64_MAX : 0);
	FAULT_POINT("release.filled");
	p3_release(&x->pub->released, p3_xfer_name(x)); /* XFER.3 */
	FAULT_POINT("release.published");
	x->releasing = true;
	p3_list_add(&n->sources, &x->link);
	p3_fw_touch(n, x->peer);
}

static void got_long_reply(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t,
	uint64_t mlength, const struct p3_cell *c)
{
	struct p3_xfer_slot *x = t->xfer;
	uint64_t source = x->peer_id;
	uint64_t addr = p3_get(&c->w[4]), heap = p3_get(&c->w[5]);
	if (!md_lives(n, t)) {
		/* the reply is dropped here, which is no failure for the target */
		release_get(n, t, PTL_NI_OK);
		free_pending(n, t);
		return;
	}
	struct p3_pull *pull = &x->pull;
	*pull = (struct p3_pull){.peer = p,
		.xfer_id = source,
		.addr = addr,
		.heap = heap,
		.length = reply_space(t, mlength),
		.get = t};
	describe_answer(n, &t->move, t->md, pull->length, &pull->span.rec);
	answer_who(t, p, &pull->span.rec);
	p3_span_begin(&pull->span, t->md, t->move.offset);
	p3_span_start(n, &pull->span, PTL_EVENT_REPLY_START);
	t->state = P3_PEND_PULLING;
	p3_pull_begin(n, pull);
}

/* End a long get: its last byte has come, or never will. */
void p3_fw_get_done(struct p3_nic *n, struct p3_pull *pull, uint32_t fail)
{
	struct p3_pending *t = pull->get;
	struct p3_span span = pull->span;
	release_get(n, t, fail);
	if (fail)
		p3_say(&span.rec, 2, 0);
	if (span.md)
		p3_span_end(n, &span, PTL_EVENT_REPLY_END, fail);
	free_pending(n, t);
}

/* Set the target's slot that the reply names.  Return false if no slot for served
 * requests has that number.  The caller has read the word once: the target may change
 * it. */
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
	bool put = t->kind == P3_REQ_PUT; /* a put, which is answered by ACK or DONE */
	if (mlength > t->move.length)
		return false;
	switch (kind) {
	case P3_RSP_NONE:
		if (put && t->is_long)
			return false;
		break;
	case P3_RSP_ACK:
		if (!put || t->is_long || !t->move.ack)
			return false;
		got_ack(n, p, t, mlength);
		break;
	case P3_RSP_DONE:
		if (!put || !t->is_long)
			return false;
		got_done(n, p, t, mlength, status, p3_word0_flags(w0) & P3_F_ACK);
		break;
	case P3_RSP_REPLY:
		if (put || mlength > reply_most(&p->rsp_in) ||
			ncells != p3_reply_cells(mlength))
			return false;
		got_reply(n, p, t, c, mlength);
		break;
	case P3_RSP_REPLY_LONG:
		if (put || !t->is_long || !set_source(n, t, p3_get(&c->w[3])))
			return false;
		got_long_reply(n, p, t, mlength, c);
		return true; /* continues as a pull */
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
	if (!p3_fw_full_ring_ok(n, p, off, n->layout.rsp_cells))
		return false;
	FAULT_POINT("ring.entering_responses");
	p3_ring_rx_init(&p->rsp_in, (struct p3_cell *)(p->base + off),
		n->layout.rsp_cells, &p->mine->rsp_credit[1]);
	p->rsp_cap = n->layout.rsp_cells - 1;
	return true;
}

P3_PATH
bool p3_fw_take_response(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t w0;
	const struct p3_cell *c = p3_ring_peek(&p->rsp_in, &w0);
	if (p3_likely(!c))
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
	if (t)
		P3_TRACE(about, n, t->topic, P3_TRACE_ANSWERED, kind, p3_get(&c->w[2]));
	if (!t || !answer(n, p, t, c, w0)) {
		p3_fw_bad_peer(n, p, "a response to no request");
		return false;
	}
	FAULT_POINT("response.handled");
	p3_ring_take_now(&p->rsp_in, ncells);
	p->rsp_used -= rsp; /* the response's room is free only now */
	return true;
}

/* ---- ends without a response ---- */

void p3_fw_fail_pending(struct p3_nic *n, struct p3_pending *t, bool died)
{
	uint32_t fail = died ? PTL_NI_FAIL : PTL_NI_OK;
	if (!t->md) {
		free_pending(n, t);
		return;
	}
	p3_fw_why_nowhere(n, t->peer, t->kind, &t->move);
	if (is_held(n, t->peer))
		send_start(n, t);
	if (t->send.md)
		send_end(n, t, fail);
	else if (t->kind != P3_REQ_PUT && died && p3_lives(&t->md->o, t->md_gen))
		reply_fails(n, &t->move, t->md, t->peer);
	free_pending(n, t);
}

static void forget_pendings(struct p3_nic *n, struct p3_link *list, uint32_t ni)
{
	p3_list_each(it, list) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		if (!t->md || t->ni != ni)
			continue;
		if (t->xfer && !t->copy)
			p3_xfer_withdraw(n, t->xfer);
		if (t->send.md)
			p3_span_forget(&t->send);
		p3_use_less(&n->ni[ni], P3_U_OP);
		t->md = NULL;
		if (t->peer == &n->absent)
			show_no_held(n, t);
		if (t->state == P3_PEND_QUEUED && !t->copy)
			free_pending(n, t);
	}
}

/* Forget operations of interface ni, which closes: no memory is touched, no event is
 * posted. */
void p3_fw_forget(struct p3_nic *n, uint32_t ni)
{
	p3_xfer_forget(n, ni);
	forget_pendings(n, &n->unresolved.queue, ni);
	forget_pendings(n, &n->absent.queue, ni);
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		forget_pendings(n, &n->peer[i].queue, ni);
		forget_pendings(n, &n->peer[i].outstanding, ni);
	}
}
