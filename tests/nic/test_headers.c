/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile headers: a node writes messages into its own lane, each with one bit of the
 * header inverted.  What comes of it is what the changed fields say: events and bytes
 * inside the descriptor, a drop, or a peer that is not listened to any more.
 */
#include "nic/obj/obj.h"
#include "nic/proto/proto.h"
#include "nic/run/run.h"
#include "nic/cases.h"

#include "lib/node/node.h"
#include "support/hold.h"

enum { PT = 5, BITS = 0x71, ROOM = 300, GUARD = 100, AT = 40, ASKED = 30, AS_IS = 512 };
/* With one bit inverted, the offset 40 is 296, where 8 bytes do not fit. */
enum { ALL = ROOM + 2 * GUARD, FLAG_LONG = 41, MOST_CELLS = 4 };
enum fate { STAYS, PADDED, BAD, DROPPED, ENDED, DELIVERED };

static struct rig {
	struct p3_nic *n;
	struct p3_peer *p; /* the node itself */
	unsigned char *at;
	ptl_handle_eq_t eq;
	struct p3_eq *queue;
	struct p3_md *md;
	uint64_t before[5];
} r;

/* All that a message may change, but for bytes. */
static void look(uint64_t to[5])
{
	to[0] = p3_get(&r.n->count[P3_C_BAD_HEADERS]);
	to[1] = p3_get(&r.n->count[P3_C_DROPS]);
	to[2] = r.queue->tx.tail;
	to[3] = r.n->table[P3_T_PENDING].live;
	to[4] = r.p->rsp_used;
}

/* Set up the node, with full rings, and hold its lease. */
static void start(ptl_handle_ni_t ni, bool target)
{
	r = (struct rig){.n = p3_nic(p3_node()), .at = node_alloc(ALL)};
	r.p = &r.n->peer[r.n->conf.node];
	ptl_handle_eq_t eq = eq_new(ni, 16);
	post_md(ni, PT + 1, 0, md_of(r.at, ROOM, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	ptl_handle_md_t md = bind_md(ni, source_md(r.at, 8, eq));
	for (int i = 0; i < 40; i++) {
		CHECK_OK(put_to(ni, md, 0, PT + 1, 0, PTL_ACK_REQ));
		(void)expect(eq, PTL_EVENT_SEND_END);
		(void)expect(eq, PTL_EVENT_ACK);
	}
	CHECK_OK(PtlMDUnlink(md));
	r.eq = eq_new(ni, 16);
	ptl_md_t d = source_md(r.at + GUARD, ROOM, r.eq);
	if (target)
		d.options |= PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
	md = target ? post_md(ni, PT, BITS, d) : bind_md(ni, d);
	nic_hold(r.n);
	r.md = p3_md_named(r.n, md);
	r.queue = p3_eq_named(r.n, r.eq);
}

static void stop(void)
{
	r.n->some_bad = r.p->bad = false;
	p3_lease_leave(r.n);
}

/* Write a message into a lane of the node to itself, and copy its words into m. */
static void write_message(struct p3_ring_tx *out, struct p3_ring_rx *in,
	const struct p3_cell *from, uint64_t w0, unsigned flip, uint64_t m[8])
{
	uint32_t cells = p3_word0_ncells(w0);
	uint64_t at = out->pos;
	fill_pattern(r.at, ALL, 3);
	r.n->some_bad = r.p->bad = false;
	CHECK(p3_peer_has_room(r.p, out, cells));
	struct p3_cell *c = p3_ring_begin(out, cells);
	if (out->pos != at) /* it begins behind a pad */
		p3_ring_take_now(in, (uint32_t)(out->pos - at));
	for (uint32_t i = 1; i < 8 * cells; i++)
		p3_set(&c[i / 8].w[i % 8], p3_get(&from[i / 8].w[i % 8]));
	p3_ring_publish(out, w0, cells);
	if (flip < AS_IS)
		p3_set(&c->w[flip / 64], p3_get(&c->w[flip / 64]) ^ 1ull << flip % 64);
	for (uint32_t i = 0; i < 8; i++)
		m[i] = p3_get(&c->w[i]);
	look(r.before);
}

/* Bring both ends of a ring to one position: a message may have been refused, or may have
 * claimed more cells than it had. */
static void meet_again(struct p3_ring_tx *out, struct p3_ring_rx *in)
{
	while ((int64_t)(in->pos - out->pos) < 0)
		p3_ring_take_now(in, 1);
	while (in->pos != out->pos) {
		(void)p3_ring_begin(out, 1);
		p3_ring_publish(out, p3_word0(P3_RSP_NONE, 0, 1), 1);
	}
}

/* Check what has changed since the message was written; ended: one pending less. */
static void check_changes(
	enum fate fate, bool taken, unsigned events, bool ended, unsigned flip)
{
	uint64_t now[5];
	look(now);
	if (taken != (fate != STAYS && fate != BAD) || r.p->bad != (fate == BAD) ||
		now[0] - r.before[0] != (fate == BAD) ||
		now[1] - r.before[1] != (fate == DROPPED) ||
		now[2] - r.before[2] != events || r.before[3] - now[3] != ended ||
		r.before[4] - now[4] != ended)
		check_failed(__FILE__, __LINE__,
			"bit %u: fate %d: taken %d, bad %d, %d headers, %d drops, "
			"%d events, %d pendings less, %d cells less",
			flip, fate, taken, r.p->bad, (int)(now[0] - r.before[0]),
			(int)(now[1] - r.before[1]), (int)(now[2] - r.before[2]),
			(int)(r.before[3] - now[3]), (int)(r.before[4] - now[4]));
}

/* Check that these bytes have come to this place in the descriptor, and no others. */
static void check_bytes(uint64_t offset, const void *bytes, uint64_t length)
{
	CHECK_PATTERN(r.at, 0, GUARD + offset, 3);
	CHECK(memcmp(r.at + GUARD + offset, bytes, length) == 0);
	uint64_t end = GUARD + offset + length;
	CHECK_PATTERN(r.at + end, end, ALL - end, 3);
}

/* ---- requests ---- */

static bool is_atomic(const uint64_t w[8])
{
	return w[0] >> 40 & P3_F_ATOMIC;
}

/* Return true if a request has an atomic operation that exists, with all its operands. */
static bool is_whole_atomic(const uint64_t w[8])
{
	bool fetch = (w[0] >> 32 & 0xff) == P3_REQ_GETPUT;
	uint32_t what = w[2] >> 48 & 0xff, op = p3_atomic_op(what);
	uint64_t length = w[2] >> 32 & 0xffff, sent = p3_atomic_sent(what, length);
	bool exists = what == P3_ATOMIC_SWAP
			      ? fetch
			      : p3_atomic_is_valid(what) && op != PTLX_READ;
	return exists && sent <= P3_ATOMIC_MOST && !(length % p3_atomic_size(what)) &&
	       w[0] >> 48 == p3_request_cells(sent) &&
	       (!fetch || ((uint32_t)w[2] && p3_reply_room(length) <= w[1] >> 48));
}

/* Return the pid of the interface that a request is from. */
static uint32_t sender_of(const uint64_t w[8])
{
	return r.p->pid[w[0] >> 40 & P3_F_NI1 ? 1 : 0];
}

static enum fate fate_of_request(const uint64_t w[8], unsigned flip, uint64_t *length)
{
	uint32_t kind = w[0] >> 32 & 0xff, cells = (uint32_t)(w[0] >> 48);
	bool atomic = is_atomic(w) && kind != P3_REQ_GET;
	uint32_t left = r.p->req_in.n - (uint32_t)(r.p->req_in.pos & (r.p->req_in.n - 1));
	*length = kind == P3_REQ_GET ? w[6] : atomic ? w[2] >> 32 & 0xffff : w[2] >> 32;
	if (flip < 32 ||
		sender_of(w) == P3_JOB_NO_PID) /* an interface that is not open */
		return STAYS;
	if (kind == P3_REQ_PAD)
		return cells == left ? PADDED : BAD;
	if (kind == P3_REQ_CCI_READY || kind == P3_REQ_CCI_ALIVE) {
		bool asks = w[2] && !(w[0] >> 40 & P3_F_CCI_MORE);
		bool good = cells == 1 && !(w[1] & 0xffff) && w[1] >> 48 == asks &&
			    (w[2] || kind == P3_REQ_CCI_READY);
		return good ? PADDED : BAD; /* for a node without connections */
	}
	if (kind < P3_REQ_PUT || kind > P3_REQ_GETPUT || (is_atomic(w) && !atomic) ||
		(!atomic && kind == P3_REQ_GETPUT) || (atomic && !is_whole_atomic(w)))
		return BAD;
	if (kind == P3_REQ_PUT && !atomic &&
		(!cells || cells != p3_request_cells(*length)))
		return BAD;
	if (kind == P3_REQ_GET && (cells != 1 || !(uint32_t)w[2] || *length > 1000 ||
					  p3_reply_room(*length) > w[1] >> 48))
		return BAD;
	bool here = (w[1] & 0xffff) == r.n->ni[0].pid && (w[1] >> 16 & 0xffff) == PT &&
		    !(w[1] >> 32 & 0xffff) && w[3] == BITS;
	bool fits = w[5] <= ROOM && *length <= ROOM - w[5];
	return here && fits ? DELIVERED : DROPPED;
}

/* Take the response to a request, if it wants one. */
static void check_response(const uint64_t w[8], enum fate fate, uint64_t length)
{
	uint64_t w0;
	const struct p3_cell *c;
	uint32_t want = P3_RSP_NONE, came = P3_RSP_PAD;
	bool cci = (w[0] >> 32 & 0xff) > P3_REQ_GETPUT;
	if (fate == DELIVERED && (w[0] >> 32 & 0xff) != P3_REQ_PUT)
		want = P3_RSP_REPLY;
	else if (fate == DELIVERED)
		want = w[0] >> 40 & P3_F_ACK ? P3_RSP_ACK : P3_RSP_DONE;
	while ((c = p3_ring_peek(&r.p->rsp_in, &w0))) {
		if (p3_word0_kind(w0) != P3_RSP_PAD) {
			came = p3_word0_kind(w0);
			CHECK(cci || p3_get(&c->w[1]) == (uint32_t)w[2]);
			CHECK(cci ||
				p3_get(&c->w[2]) == (fate == DELIVERED ? length : 0));
			if (came == P3_RSP_REPLY)
				CHECK_PATTERN(p3_reply_bytes(c), GUARD + w[5], length, 3);
		}
		p3_ring_take_now(&r.p->rsp_in, p3_word0_ncells(w0));
	}
	if (cci && came == P3_RSP_CCI)
		return;
	CHECK_EQ(came, fate >= DROPPED && (uint32_t)w[2] ? want : P3_RSP_PAD);
}

static enum fate request(const struct p3_request *q, unsigned flip)
{
	static struct p3_cell c[MOST_CELLS];
	uint64_t w[8], length;
	fill_pattern((unsigned char *)c, sizeof c, 7);
	uint64_t w0 = q->kind == P3_REQ_GET    ? p3_pack_get(c, q)
		      : q->flags & P3_F_ATOMIC ? p3_pack_atomic(c, q)
					       : p3_pack_eager(c, q);
	write_message(&r.p->req_out, &r.p->req_in, c, w0, flip, w);
	enum fate fate = fate_of_request(w, flip, &length);
	uint32_t kind = w[0] >> 32 & 0xff;
	bool get = kind == P3_REQ_GET, getput = kind == P3_REQ_GETPUT;
	bool taken = p3_rx_take(r.n, r.p);
	check_changes(fate, taken, fate == DELIVERED, false, flip);
	check_response(w, fate, length);
	memcpy(c, w, sizeof w);
	if (fate != DELIVERED || get)
		check_bytes(0, c, 0);
	else if (is_atomic(w)) /* test_nic_atomic has the bytes of each operation */
		check_bytes(w[5], r.at + GUARD + w[5], length);
	else
		check_bytes(w[5], p3_request_eager_bytes(c, length), length);
	if (fate == DELIVERED) {
		ptl_event_t ev = expect(r.eq, get      ? PTL_EVENT_GET_END
					      : getput ? PTL_EVENT_GETPUT_END
						       : PTL_EVENT_PUT_END);
		CHECK_EQ(ev.match_bits, BITS);
		CHECK_EQ(ev.hdr_data, get ? 0 : w[4]);
		CHECK_EQ(ev.offset, w[5]);
		CHECK_EQ(ev.rlength, length);
		CHECK_EQ(ev.mlength, length);
		CHECK_EQ(ev.initiator.pid, sender_of(w));
	}
	meet_again(&r.p->req_out, &r.p->req_in);
	return fate;
}

static struct p3_request request_of(uint32_t kind, bool ack, uint64_t length)
{
	bool get = kind == P3_REQ_GET, answered = kind != P3_REQ_PUT || ack;
	return (struct p3_request){.kind = kind,
		.flags = ack ? P3_F_ACK : 0,
		.ncells = get ? 1 : p3_request_cells(length),
		.room = answered ? p3_reply_room(8) : 0,
		.pending = answered ? 64 : 0,
		.pid = r.n->ni[0].pid,
		.portal = PT,
		.bits = BITS,
		.hdr = 0x1234567890abcdef,
		.offset = AT,
		.length = length};
}

static struct p3_request atomic_of(
	uint32_t kind, bool ack, uint64_t length, uint32_t what)
{
	struct p3_request q = request_of(kind, ack, length);
	q.flags |= P3_F_ATOMIC;
	q.ncells = p3_request_cells(p3_atomic_sent(what, length));
	q.what = what;
	return q;
}

static void requests_node(NODE_ARGS)
{
	start(ni, true);
	const struct p3_request q[] = {request_of(P3_REQ_PUT, false, 8),
		request_of(P3_REQ_PUT, true, 13), request_of(P3_REQ_PUT, false, 100),
		request_of(P3_REQ_GET, false, 8),
		atomic_of(P3_REQ_PUT, false, 8, P3_ATOMIC(PTLX_SUM, PTLX_INT32)),
		atomic_of(P3_REQ_PUT, true, 24, P3_ATOMIC(PTLX_CSWAP, PTLX_DOUBLE)),
		atomic_of(P3_REQ_GETPUT, false, 8, P3_ATOMIC(PTLX_MSWAP, PTLX_INT64)),
		atomic_of(P3_REQ_GETPUT, false, 8, P3_ATOMIC_SWAP)};
	const unsigned n = sizeof q / sizeof *q;
	for (unsigned i = 0; i < n * AS_IS; i++) {
		if (i % AS_IS == FLAG_LONG)
			continue; /* begins a transfer of bytes that are not offered */
		(void)request(&q[i / AS_IS], i % AS_IS);
		CHECK_EQ(request(&q[i / AS_IS], AS_IS), DELIVERED); /* also behind it */
	}
	stop();
}

CASE(requests_with_each_bit_inverted)
{
	const struct nodes_opt opt = {.bad_headers = true};
	run_nodes_opt(1, requests_node, NULL, &opt);
}

/* A request waits for the pid of its peer's interface, and behind a long put. */
NODES_CASE(circumstances_of_the_peer, 1)
{
	start(ni, true);
	const struct p3_request q = request_of(P3_REQ_PUT, false, 8);
	struct p3_ring_rx *in = &r.p->req_in;
	uint64_t w[8];
	struct p3_cell c = {0};
	uint64_t w0 = p3_pack_eager(&c, &q);
	uint32_t pid = r.p->pid[0];
	CHECK_EQ(request(&q, AS_IS), DELIVERED); /* from here on the target is known */
	write_message(&r.p->req_out, in, &c, w0, AS_IS, w);
	r.p->pid[0] = P3_JOB_NO_PID;
	p3_peer_expect_usual(r.p);
	check_changes(STAYS, p3_rx_take(r.n, r.p), 0, false, AS_IS);
	r.p->pid[0] = pid;
	p3_peer_expect_usual(r.p);
	r.p->behind = true;
	check_changes(STAYS, p3_rx_take(r.n, r.p), 0, false, AS_IS);
	r.p->behind = false;
	check_changes(DELIVERED, p3_rx_take(r.n, r.p), 1, false, AS_IS);
	(void)expect(r.eq, PTL_EVENT_PUT_END);
	r.p->uid++; /* a foreign user, whom the access list does not admit */
	write_message(&r.p->req_out, in, &c, w0, AS_IS, w);
	check_changes(DROPPED, p3_rx_take(r.n, r.p), 0, false, AS_IS);
	r.p->uid--;
	CHECK_EQ(request(&q, AS_IS), DELIVERED);
	stop();
}

/* The fast checks follow the interface that sends: the events name the right one. */
NODES_CASE(interfaces_take_turns, 1)
{
	start(ni, true);
	r.p->pid[1] = r.p->pid[0] + 1;
	for (unsigned i = 0; i < 24; i++) {
		bool second = i / 3 % 2, ack = i % 4 == 1;
		struct p3_request q = request_of(
			i % 4 == 3 ? P3_REQ_GET : P3_REQ_PUT, ack, i % 8 == 2 ? 100 : 8);
		q.flags |= second ? P3_F_NI1 : 0;
		CHECK_EQ(request(&q, AS_IS), DELIVERED);
		CHECK_EQ(r.p->usual_pid, r.p->pid[second]);
	}
	r.p->pid[1] = P3_JOB_NO_PID;
	p3_peer_expect_usual(r.p);
	stop();
}

/* Puts that use a threshold up: the last one unlinks descriptor and entry. */
NODES_CASE(thresholds_are_used_up, 1)
{
	start(ni, true);
	for (int left = 1; left < 4; left++) {
		ptl_handle_md_t md = p3_get(&r.md->o.name);
		uint32_t mds = r.n->table[P3_T_MD].live, mes = r.n->table[P3_T_ME].live;
		const struct p3_request q = request_of(P3_REQ_PUT, left == 2, 8);
		ptl_event_t end = {0};
		r.md->words.threshold = left;
		r.md->odd |= P3_MD_ODD_THRESHOLD;
		r.md->unlink = left < 3;
		p3_me_place(r.n, r.md->me)->unlink = true;
		for (int i = left; i-- > 0;) {
			struct p3_cell c = {0};
			uint64_t w[8], w0 = p3_pack_eager(&c, &q);
			write_message(&r.p->req_out, &r.p->req_in, &c, w0, AS_IS, w);
			bool last = !i && left < 3;
			CHECK(p3_rx_take(r.n, r.p));
			check_response(w, DELIVERED, 8);
			check_bytes(AT, p3_request_eager_bytes(&c, 8), 8);
			end = expect(r.eq, PTL_EVENT_PUT_END);
			CHECK_EQ(end.md.threshold, i);
			CHECK_EQ(end.md_handle, md);
			CHECK(!end.unlinked);
			CHECK_EQ(r.queue->tx.tail - r.before[2], 1 + last);
			CHECK_EQ(p3_md_named(r.n, md) == NULL, last);
		}
		CHECK_EQ(mds - r.n->table[P3_T_MD].live, left < 3);
		CHECK_EQ(mes - r.n->table[P3_T_ME].live, left < 3);
		if (left == 3) {
			CHECK(r.md->odd & P3_MD_ODD_INACTIVE);
			break;
		}
		ptl_event_t gone = expect(r.eq, PTL_EVENT_UNLINK);
		CHECK(gone.unlinked);
		CHECK_EQ(gone.link, end.link);
		CHECK_EQ(gone.md_handle, md);
		CHECK_EQ(gone.hdr_data, end.hdr_data);
		stop();
		start(ni, true);
	}
	stop();
}

/* A put uses the threshold up while another operation is under way: that one unlinks. */
NODES_CASE(the_last_operation_to_end_unlinks, 1)
{
	struct p3_cell c = {0};
	struct p3_span span = {0};
	uint64_t w[8];
	start(ni, true);
	ptl_handle_md_t md = p3_get(&r.md->o.name);
	const struct p3_request q = request_of(P3_REQ_PUT, false, 8);
	p3_span_begin(&span, r.md, 0);
	r.md->words.threshold = 2;
	r.md->odd |= P3_MD_ODD_THRESHOLD;
	r.md->unlink = p3_me_place(r.n, r.md->me)->unlink = true;
	uint64_t w0 = p3_pack_eager(&c, &q);
	for (unsigned i = 0; i < 2; i++) { /* the first one's access is looked up */
		write_message(&r.p->req_out, &r.p->req_in, &c, w0, AS_IS, w);
		CHECK(p3_rx_take(r.n, r.p));
		expect(r.eq, PTL_EVENT_PUT_END);
	}
	CHECK(p3_md_named(r.n, md) == r.md);
	p3_span_end(r.n, &span, PTL_EVENT_GET_END, PTL_NI_OK);
	expect(r.eq, PTL_EVENT_GET_END);
	expect(r.eq, PTL_EVENT_UNLINK);
	CHECK(p3_md_named(r.n, md) == NULL);
	stop();
}

/* ---- responses ---- */

/* A pending and the response to it; most differ from usual ones in one thing. */
struct row {
	uint32_t asked, kind;
	uint64_t length;
	enum { SENT, UNACKED, QUEUED, ELSEWHERE, CLOSED, UNLINKED, UNASKED } how;
	enum fate fate;
};

static struct p3_pending *ask(const struct row *a)
{
	struct p3_pending *t = p3_pending_take(r.n, r.p, a->asked, r.md);
	CHECK(t != NULL);
	t->move = (struct p3_move){.target = {r.p->nid, r.p->pid[0]},
		.bits = BITS,
		.offset = AT,
		.length = ASKED,
		.pt_index = PT,
		.ack = a->asked == P3_REQ_PUT && a->how != UNACKED};
	t->md_name ^= (uint64_t)(a->how == UNLINKED) << 30;
	t->state = a->how == QUEUED ? P3_PEND_QUEUED : P3_PEND_SENT;
	t->peer = a->how == ELSEWHERE ? &r.n->absent : r.p;
	t->md = a->how == CLOSED ? NULL : r.md;
	r.p->rsp_used += t->rsp_cells;
	return t;
}

static enum fate fate_of_response(
	const struct row *a, const uint64_t w[8], unsigned flip, bool sane)
{
	uint32_t kind = w[0] >> 32 & 0xff;
	if (flip < 32)
		return STAYS;
	if (!sane || (flip >= 64 && flip < 96) || w[2] > ASKED)
		return BAD;
	if (kind == P3_RSP_PAD)
		return PADDED;
	if (a->asked == P3_REQ_PUT && (kind == P3_RSP_NONE || kind == P3_RSP_DONE))
		return ENDED;
	return kind == a->kind && (kind == P3_RSP_ACK || w[0] >> 48 == 1) ? a->fate : BAD;
}

static void respond(const struct row *a, unsigned flip)
{
	static struct p3_cell c;
	uint64_t w[8];
	struct p3_ring_rx *in = &r.p->rsp_in;
	struct p3_pending *t = ask(a);
	uint64_t name = p3_get(&t->o.name);
	const struct p3_answer q = {.kind = a->kind,
		.pending = p3_pending_name(t) + (a->how == UNASKED),
		.mlength = a->length};
	fill_pattern((unsigned char *)&c, sizeof c, 7);
	uint64_t w0 = p3_pack_brief(&c, &q);
	write_message(&r.p->rsp_out, in, &c, w0, flip, w);
	bool sane = p3_ring_sane(in, w[0] >> 32 & 0xff, (uint32_t)(w[0] >> 48));
	enum fate fate = fate_of_response(a, w, flip, sane);
	bool taken = p3_rsp_take(r.n, r.p), reply = a->kind == P3_RSP_REPLY;
	check_changes(fate, taken, fate == DELIVERED,
		fate >= DROPPED && a->how != UNASKED, flip);
	memcpy(&c, w, sizeof w);
	bool bytes = fate == DELIVERED && reply;
	check_bytes(AT, p3_reply_bytes(&c), bytes ? w[2] : 0);
	if (fate == DELIVERED) {
		ptl_event_t ev =
			expect(r.eq, reply ? PTL_EVENT_REPLY_END : PTL_EVENT_ACK);
		CHECK_EQ(ev.mlength, w[2]);
		CHECK_EQ(ev.match_bits, BITS);
		CHECK_EQ(ev.rlength, ASKED);
	}
	if (p3_get(&t->o.name) == name) { /* the response has not ended it */
		t->peer = r.p;
		t->state = P3_PEND_SENT;
		r.p->rsp_used -= t->rsp_cells;
		p3_pending_give(r.n, t);
	}
	meet_again(&r.p->rsp_out, in);
}

static const struct row fit[] = {
	{P3_REQ_PUT, P3_RSP_ACK, 8, SENT, DELIVERED},
	{P3_REQ_GET, P3_RSP_REPLY, 8, SENT, DELIVERED},
	{P3_REQ_GETPUT, P3_RSP_REPLY, ASKED, SENT, DELIVERED},
};

static const struct row misfit[] = {
	{P3_REQ_GET, P3_RSP_ACK, 8, SENT, BAD},
	{P3_REQ_GETPUT, P3_RSP_ACK, 8, SENT, BAD},
	{P3_REQ_PUT, P3_RSP_REPLY, 8, SENT, BAD},
	{P3_REQ_PUT, P3_RSP_DONE, 8, SENT, ENDED},
	{P3_REQ_GET, P3_RSP_REPLY_LONG, 8, SENT, BAD},
	{P3_REQ_PUT, P3_RSP_ACK, ASKED + 1, SENT, BAD},
	{P3_REQ_GET, P3_RSP_REPLY, ASKED + 1, SENT, BAD},
	{P3_REQ_PUT, P3_RSP_ACK, 8, UNACKED, BAD},
	{P3_REQ_PUT, P3_RSP_ACK, 8, UNASKED, BAD},
	{P3_REQ_PUT, P3_RSP_ACK, 8, QUEUED, BAD},
	{P3_REQ_GET, P3_RSP_REPLY, 8, QUEUED, BAD},
	{P3_REQ_PUT, P3_RSP_ACK, 8, ELSEWHERE, BAD},
	{P3_REQ_GET, P3_RSP_REPLY, 8, ELSEWHERE, BAD},
	{P3_REQ_PUT, P3_RSP_ACK, 8, CLOSED, ENDED},
	{P3_REQ_GET, P3_RSP_REPLY, 8, CLOSED, ENDED},
	{P3_REQ_PUT, P3_RSP_ACK, 8, UNLINKED, DROPPED},
	{P3_REQ_GET, P3_RSP_REPLY, 8, UNLINKED, DROPPED},
};

static void responses_node(NODE_ARGS)
{
	start(ni, false);
	for (unsigned i = 0; i < 3 * AS_IS; i++) {
		respond(&fit[i / AS_IS], i % AS_IS);
		respond(&fit[i / AS_IS], AS_IS); /* also behind it */
	}
	for (size_t i = 0; i < sizeof misfit / sizeof *misfit; i++) {
		respond(&misfit[i], AS_IS);
		respond(&fit[i % 3], AS_IS);
	}
	stop();
}

CASE(responses_with_each_bit_inverted_and_misfits)
{
	const struct nodes_opt opt = {.bad_headers = true};
	run_nodes_opt(1, responses_node, NULL, &opt);
}
