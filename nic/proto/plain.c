/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain requests: the straight path of a receiver.
 *
 * A request is plain if all of this is true:
 *
 *	word 0		that of the most frequent message (P3_REQ_USUAL), or other in the
 *			flag P3_F_ACK, in the number of cells, or in being a get
 *	node		n->odd has none of the bits below
 *	peer		p->odd is 0, its interface has a pid, no response of it is there
 *	target		n->way has interface and portal: the access list admits all
 *			processes of the peer's owner there
 *	match list	it has no index
 *	descriptor	that of the first entry that matches: no START events, but END
 *			events; infinite threshold, no iovec; there is room, and behind
 *			it room for max_size bytes
 *	queue		none, or a living one with room
 *	get		at most P3_RSP_INLINE bytes, which the request has reserved room
 *			for; the response ring is open, or can be opened
 *
 * Each test comes before the first change.  When one fails, p3_rx_take() begins anew: it
 * loads the words of the cell again, and ignores those that were loaded here
 * (docs/design/polling.md).  The most frequent case, a put in one cell without an
 * acknowledgement, calls no function, so the compiler keeps all of it in registers.
 */
#include "nic/proto/plain.h"

#include "nic/cci/format.h"
#include "nic/cci/msg_rx.h"
#include "nic/match/match.h"
#include "nic/obj/event.h"
#include "nic/proto/answer.h"
#include "nic/proto/back.h"
#include "nic/proto/format.h"
#include "nic/proto/peer.h"
#include "nic/proto/rx.h"
#include "nic/run/looks.h"
#include "nic/run/odd.h"
#include "shm/trace.h"
#include "shm/variant.h"

#include <string.h>

/* A trace has records that only the general path writes; it also tells pulls of bytes
 * that are overwritten, and ends the wait of an exchange. */
#define UNUSUAL (P3_ODD_TRACED | P3_ODD_PULLS | P3_ODD_SWAPPER | P3_ODD_GENERIC)

/* The parts of a plain request that the steps behind the tests need. */
struct plain {
	const struct p3_way *way;
	struct p3_md *md;
	struct p3_eq *eq; /* NULL: no event is wanted */
	uint64_t bits;
	uint64_t offset;
	uint64_t length;
};

/* ---- tests ---- */

/* LANE.1: answers that the peer sent before this request come first; p3_rx_take() takes
 * them. */
static P3_HOT bool may_come(const struct p3_nic *n, struct p3_peer *p)
{
	return !(n->odd & UNUSUAL) && !p->odd && p->pid[0] != P3_JOB_NO_PID &&
	       !p3_peer_has_response(p);
}

/* Return the descriptor of the first entry that matches, or NULL if there is none, or if
 * the list has an index. */
static P3_HOT struct p3_md *match(
	const struct p3_portal *list, uint64_t bits, uint64_t who)
{
	if (p3_unlikely(list->indexed))
		return NULL;
	for (const struct p3_me *me = list->head; me; me = me->next)
		if (p3_likely(((bits ^ me->bits) & ~me->ignore) == 0) &&
			p3_likely(me->md != NULL) &&
			p3_likely(p3_want_matches(me->who, who)))
			return me->md;
	return NULL;
}

/* a descriptor with one of these bits is unusual for each request */
#define ODD                                                                              \
	(P3_ODD_THRESHOLD | P3_ODD_INACTIVE | P3_ODD_IOVEC | P3_ODD_STARTS | P3_ODD_ENDS)

static P3_HOT bool has_event_room(struct plain *r)
{
	const struct p3_sink *sink = &r->md->sink;
	r->eq = p3_eq_of_sink(sink);
	return r->eq ? p3_evq_has_room(&r->eq->tx) : !sink->eq;
}

/* Return true if the request leaves room for another one of the largest size. */
static P3_HOT bool leaves_room(const struct plain *r, bool remote)
{
	const struct p3_md *md = r->md;
	return remote || md->region.size - r->offset - r->length >= md->words.max_size;
}

/* Find the descriptor of a request; odd: bits of enum p3_md_odd that it must not have.
 * Return false if it is not plain. */
static P3_HOT bool find(
	const struct p3_peer *p, const struct p3_cell *c, uint32_t odd, struct plain *r)
{
	r->bits = p3_format_get(c, P3_REQUEST_BITS);
	struct p3_md *md = r->md = match(r->way->list, r->bits, p3_match_initiator(p, 0));
	if (p3_unlikely(!md) || p3_unlikely(md->odd & odd))
		return false;
	bool remote = md->sink.options & PTL_MD_MANAGE_REMOTE;
	r->offset = p3_likely(remote) ? p3_format_get(c, P3_REQUEST_OFFSET)
				      : md->local_offset;
	uint64_t size = md->region.size;
	return p3_likely(r->offset <= size && r->length <= size - r->offset) &&
	       (p3_likely(!(md->odd & P3_ODD_MAX_SIZE)) || leaves_room(r, remote)) &&
	       has_event_room(r);
}

/* ---- delivery ---- */

/* Take a plain-looking request whose target n->way does not know. */
static P3_RARE bool take_on_new_way(struct p3_nic *n, struct p3_peer *p, uint64_t target)
{
	p3_match_learn(n, target, p3_pair(p->jid, p->uid));
	return p3_rx_take(n, p);
}

static P3_HOT void account(struct p3_nic *n, const struct plain *r, uint64_t bytes)
{
	struct p3_ni *ni = r->way->ni;
	ni->received++;
	ni->received_bytes += r->length;
	if (p3_unlikely(!(r->md->sink.options & PTL_MD_MANAGE_REMOTE)))
		r->md->local_offset += r->length;
	n->worked = true;
	n->msgs++;
	n->bytes += r->length;
	p3_count(&n->count[P3_C_RECEIVED], 1);
	p3_count(&n->count[P3_C_RECEIVED_BYTES], bytes);
}

/*
 * Write the event of a request, if it has one.  This comes before its bytes are copied,
 * since fewer values must be kept then: a reader looks at the record only after post(),
 * and the descriptor's snapshot does not change meanwhile.
 */
static P3_HOT struct p3_event_record *write_event(struct p3_nic *n,
	const struct p3_peer *p, const struct plain *r, uint64_t hdr,
	ptl_event_kind_t kind)
{
	uint32_t link = n->next_link++;
	if (p3_unlikely(!r->eq))
		return NULL;
	struct p3_event_record *e = p3_evq_next(&r->eq->tx);
	FAULT_POINT("event.begun");
	p3_record_set_request(&e->words, r->bits, r->length, r->length, r->offset, hdr);
	p3_record_set_md(&e->words, r->md, link);
	p3_record_set_ids(&e->words, kind, p3_match_initiator(p, 0), r->way->owner,
		p3_match_portal(r->way));
	FAULT_POINT("event.written");
	return e;
}

static P3_HOT void post(struct p3_nic *n, const struct plain *r,
	struct p3_event_record *e, ptl_event_kind_t kind)
{
	if (p3_unlikely(!e))
		return;
	p3_evq_commit(&r->eq->tx, e);
	FAULT_POINT("event.posted");
	P3_PROBE2(event, kind, r->eq->tx.tail);
	n->posted |= r->eq->news;
}

/* Copy the bytes of a put.  k is its number of cells: with more than one a call of memcpy
 * is as fast (docs/design/polling.md). */
static P3_HOT void deposit(const struct p3_nic *n, const struct p3_cell *c,
	const struct plain *r, uint32_t k)
{
	char *to = p3_region_address(r->md->region.start, r->offset);
	if (p3_likely(k == 1 && r->length == 8))
		memcpy(to, p3_request_eager_bytes(c), 8);
	else if (k == 1 || (n->crowded && r->length <= P3_FEW))
		p3_region_copy_few(to, p3_request_eager_bytes(c), r->length);
	else
		memcpy(to, p3_request_eager_bytes(c), r->length);
	FAULT_POINT("put.deposited");
}

/* Give the cells back.  The rare half is the last that a caller does, so that the call
 * needs no registers.  A base ring comes there every few messages. */
P3_PATH
static __attribute__((noinline)) bool turn(struct p3_ring_rx *r)
{
	p3_ring_turn_here(r);
	return true;
}

static P3_HOT bool taken(struct p3_peer *p, uint32_t k)
{
	FAULT_POINT("request.delivered");
	if (p3_unlikely(p3_ring_step(&p->req_in, k)))
		return turn(&p->req_in);
	return true;
}

static P3_HOT void acknowledge(
	struct p3_nic *n, struct p3_peer *p, uint32_t pending, uint64_t len)
{
	const struct p3_answer a = {
		.kind = P3_RSP_ACK, .pending = pending, .mlength = len};
	if (p3_unlikely(!p3_answer_may_go(p))) {
		p3_answer_respond(n, p, &a);
		return;
	}
	uint64_t word0 = p3_pack_brief(p->rsp_out.next, &a);
	FAULT_POINT("response.filled");
	p3_answer_at_once(n, p, word0);
	FAULT_POINT("response.published");
}

/*
 * Take the response that this node has just sent to itself: the pass would find it only
 * at the next visit of the lane.  A look at the response of another node would be too
 * early, and take the line away from its producer.
 */
static P3_HOT bool responded(struct p3_nic *n, struct p3_peer *p)
{
	(void)taken(p, 1);
	if (p->rsp_used && p3_likely(p->nout && p->index == n->conf.node))
		p3_back_take_all(n, p);
	return true;
}

/* Take a put of k cells with len bytes, whose pending is 0 if it wants no
 * acknowledgement. */
static P3_HOT bool put(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c,
	uint32_t k, uint64_t len, uint32_t pending)
{
	if (p3_unlikely(!may_come(n, p)))
		return p3_rx_take(n, p);
	uint64_t target = p3_match_target(p3_format_get(c, P3_REQUEST_PID));
	struct plain r = {.way = p3_match_way(n, target), .length = len};
	if (p3_unlikely(!p3_match_knows(r.way, target, p3_pair(p->jid, p->uid))))
		return take_on_new_way(n, p, target);
	uint32_t odd = ODD | P3_ODD_PUT | (pending ? P3_ODD_ACK : 0u);
	if (p3_unlikely(!find(p, c, odd, &r)))
		return p3_rx_take(n, p);
	P3_PROBE3(match, r.bits, len, true);
	uint64_t hdr = p3_format_get(c, P3_REQUEST_HDR);
	struct p3_event_record *e = write_event(n, p, &r, hdr, PTL_EVENT_PUT_END);
	deposit(n, c, &r, k);
	account(n, &r, len);
	post(n, &r, e, PTL_EVENT_PUT_END);
	if (pending)
		acknowledge(n, p, pending, len);
	P3_PROBE2(deliver, P3_REQ_PUT, len);
	return pending ? responded(n, p) : taken(p, k);
}

/* ---- kinds of requests ---- */

/* A put whose bytes fit its header, and that wants an acknowledgement. */
P3_PATH
static __attribute__((noinline)) bool take_acked(struct p3_nic *n, struct p3_peer *p)
{
	const struct p3_cell *c = p->req_in.next;
	uint64_t w = p3_format_get(c, P3_REQUEST_PENDING);
	uint64_t len = p3_field_of(P3_EAGER_LENGTH, w);
	uint32_t pending = (uint32_t)p3_field_of(P3_REQUEST_PENDING, w);
	return p3_likely(pending && len <= P3_REQ_INLINE) ? put(n, p, c, 1, len, pending)
							  : p3_rx_take(n, p);
}

/* A put of more cells, which wants no acknowledgement. */
P3_PATH
static __attribute__((noinline)) bool take_longer(
	struct p3_nic *n, struct p3_peer *p, uint32_t k)
{
	const struct p3_cell *c = p->req_in.next;
	uint64_t w = p3_format_get(c, P3_REQUEST_PENDING);
	uint64_t len = p3_field_of(P3_EAGER_LENGTH, w);
	if (p3_unlikely(p3_field_of(P3_REQUEST_PENDING, w) || k < 2 ||
			k != p3_request_cells(len) ||
			!p3_ring_sane(&p->req_in, P3_REQ_PUT, k)))
		return p3_rx_take(n, p);
	p3_cells_soon(c, k);
	return put(n, p, c, k, len, 0);
}

static P3_HOT void reply(
	struct p3_nic *n, struct p3_peer *p, const struct plain *r, uint32_t pending)
{
	const struct p3_answer a = {.pending = pending, .mlength = r->length};
	struct p3_cell *c = p->rsp_out.next;
	uint64_t word0 = p3_pack_reply(c, &a);
	const char *from = p3_region_address(r->md->region.start, r->offset);
	if (p3_likely(r->length == 8))
		memcpy(p3_reply_bytes(c), from, 8);
	else
		p3_region_copy_few(p3_reply_bytes(c), from, r->length);
	FAULT_POINT("reply.filled");
	p3_answer_at_once(n, p, word0);
	FAULT_POINT("reply.published");
}

/* A get. */
P3_PATH
static __attribute__((noinline)) bool take_get(struct p3_nic *n, struct p3_peer *p)
{
	const struct p3_cell *c = p->req_in.next;
	uint64_t w = p3_format_get(c, P3_REQUEST_PENDING);
	uint64_t to = p3_format_get(c, P3_REQUEST_PID), target = p3_match_target(to);
	uint32_t pending = (uint32_t)p3_field_of(P3_REQUEST_PENDING, w);
	struct plain r = {.way = p3_match_way(n, target),
		.length = p3_format_get(c, P3_GET_LENGTH)};
	if (p3_unlikely(!pending || r.length > P3_RSP_INLINE ||
			!p3_field_of(P3_REQUEST_ROOM, to) || !p3_answer_may_go(p) ||
			!may_come(n, p)))
		return p3_rx_take(n, p);
	if (p3_unlikely(!p3_match_knows(r.way, target, p3_pair(p->jid, p->uid))))
		return take_on_new_way(n, p, target);
	if (p3_unlikely(!find(p, c, ODD | P3_ODD_GET, &r)))
		return p3_rx_take(n, p);
	P3_PROBE3(match, r.bits, r.length, true);
	reply(n, p, &r, pending);
	account(n, &r, 0);
	post(n, &r, write_event(n, p, &r, 0, PTL_EVENT_GET_END), PTL_EVENT_GET_END);
	P3_PROBE2(deliver, P3_REQ_GET, r.length);
	return responded(n, p);
}

/* Request the cell of the answer before the request is looked at.  A peer that waits for
 * the answer polls that cell, so its line takes long to come; a peer that has sent a
 * second request does not wait. */
static P3_HOT void expect_to_answer(const struct p3_peer *p, const struct p3_ring_tx *r)
{
	if (!p->deep)
		p3_ring_own_soon(r, 0);
}

/* Messages of CCI that are not in parts: of one cell, or of k cells.  These functions are
 * not P3_PATH, nor are CCI's others. */
static __attribute__((noinline)) bool take_cci(struct p3_nic *n, struct p3_peer *p)
{
	const struct p3_cell *c = p->req_in.next;
	bool answered = p3_field_of(P3_CCI_ROOM, p3_format_get(c, P3_CCI_ROOM)) != 0;
	expect_to_answer(p, answered ? &p->rsp_out : &p->req_out);
	if (p3_unlikely(n->odd & P3_ODD_TRACED || p->odd || p3_peer_has_response(p)))
		return p3_rx_take(n, p);
	return p3_cci_msg_take_one(n, p, c) || p3_rx_take(n, p);
}

static __attribute__((noinline)) bool take_longer_cci(
	struct p3_nic *n, struct p3_peer *p, uint32_t k)
{
	const struct p3_cell *c = p->req_in.next;
	if (p3_unlikely(n->odd & P3_ODD_TRACED || p->odd || p3_peer_has_response(p) ||
			!p3_ring_sane(&p->req_in, P3_REQ_CCI_MSG, k)))
		return p3_rx_take(n, p);
	p3_cells_soon(c, k);
	return p3_cci_msg_take_longer(n, p, c, k) || p3_rx_take(n, p);
}

P3_PATH
bool p3_plain_take(struct p3_nic *n, struct p3_peer *p)
{
	const struct p3_cell *c = p->req_in.next;
	const uint64_t ack = p3_word0(0, P3_F_ACK, 0),
		       get = p3_word0(P3_REQ_PUT ^ P3_REQ_GET, 0, 0),
		       cci = p3_word0(P3_REQ_PUT ^ P3_REQ_CCI_MSG, 0, 0);
	uint64_t w0 = p3_acquire(&c->w[0]); /* LANE.1 */
	uint64_t other = w0 ^ p->req_in.usual;
	p3_ring_ask_at(&p->req_in, P3_RING_AHEAD);
	if (p3_unlikely(!p3_straight()))
		return p3_rx_take(n, p);
	if (p3_likely(!other)) {
		expect_to_answer(p, &p->req_out);
		/* the length, and in the upper half the pending, which is 0 */
		uint64_t w = p3_format_get(c, P3_REQUEST_PENDING),
			 len = w >> 32 | w << 32;
		return p3_likely(len <= P3_REQ_INLINE) ? put(n, p, c, 1, len, 0)
						       : p3_rx_take(n, p);
	}
	if (other == ack || other == get)
		expect_to_answer(p, &p->rsp_out);
	if (other == ack)
		return take_acked(n, p);
	if (other == get)
		return take_get(n, p);
	if (!(other << 16)) /* all but the number of cells */
		return take_longer(n, p, p3_word0_ncells(w0));
	if (other == cci)
		return take_cci(n, p);
	if (!((other ^ cci) << 16))
		return take_longer_cci(n, p, p3_word0_ncells(w0));
	return p3_rx_take(n, p);
}
