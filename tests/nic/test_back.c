/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The straight path of responses (nic/proto/rsp.c) does the same as the general one.
 *
 * A node makes a pending of its own, writes a response to it into its own lane, and
 * takes it twice: by p3_rsp_take_fast() and by p3_rsp_take().  All that a response
 * changes must be equal: the bytes, the events, the counters, the pending, the
 * reservation, the position, and whether the peer is ignored from then on.  The
 * responses are usual ones; usual ones with each bit of the header inverted, as a
 * hostile peer may send them; and those that one circumstance makes different from a
 * usual one.
 */
#include "nic/obj/obj.h"
#include "nic/proto/proto.h"
#include "nic/run/run.h"
#include "nic/cases.h"

#include "lib/node/node.h"
#include "support/hold.h"

enum { PT = 5, ROOM = 500, SLOTS = 16, OFFSET = 40, ASKED = 30, AS_IS = 512 };

typedef bool take_fn(struct p3_nic *n, struct p3_peer *p);

struct rig {
	struct p3_nic *n;
	struct p3_peer *p; /* the node itself */
	unsigned char *at;
	struct p3_eq *queue;
	struct p3_md *md;
	struct p3_md first;
	struct p3_pending *t;
	/* how the pending differs from a usual one */
	bool is_long, unlinked, closed, unacked, queued, elsewhere;
};

/* All changes that a response has made. */
struct outcome {
	bool taken, bad, worked, posted;
	uint64_t moved, drops, drop_bytes, headers;
	uint32_t links, used, out, live, operations;
	int32_t threshold;
	uint32_t odd;
	uint64_t nevents, event[4 * P3_EW_WORDS];
	unsigned char content[ROOM];
};

/* ---- the node ---- */

/* Let the ring of responses become a full one. */
static void grow(ptl_handle_ni_t ni, unsigned char *at)
{
	ptl_handle_eq_t eq = eq_new(ni, SLOTS);
	post_md(ni, PT, 0, md_of(at, ROOM, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	ptl_handle_md_t md = bind_md(ni, md_of(at, 8, PTL_MD_EVENT_START_DISABLE, eq));
	for (int i = 0; i < 40; i++) {
		CHECK_OK(put_to(ni, md, 0, PT, 0, PTL_ACK_REQ));
		expect(eq, PTL_EVENT_SEND_END);
		expect(eq, PTL_EVENT_ACK);
	}
	expect_empty(eq);
	CHECK_OK(PtlMDUnlink(md));
}

static void start(struct rig *r, ptl_handle_ni_t ni, ptl_md_t md)
{
	*r = (struct rig){.n = p3_nic(p3_node())};
	r->at = node_alloc(ROOM);
	r->p = &r->n->peer[r->n->conf.node];
	if (!(md.options & PTL_MD_IOVEC))
		md.start = r->at;
	grow(ni, r->at);
	ptl_handle_md_t handle = bind_md(ni, md);
	nic_hold(r->n);
	r->md = p3_md_named(r->n, handle);
	r->first = *r->md;
	r->queue = md.eq_handle == PTL_EQ_NONE ? NULL : p3_eq_named(r->n, md.eq_handle);
	CHECK_EQ(r->p->rsp_used, 0);
}

static void stop(struct rig *r)
{
	r->n->some_bad = r->p->bad = false;
	p3_lease_leave(r->n);
}

/* Put everything back that a response may have changed. */
static void reset(struct rig *r)
{
	fill_pattern(r->at, ROOM, 3);
	r->md->words.threshold = r->first.words.threshold;
	r->md->odd = r->first.odd;
	r->md->exhausted = r->first.exhausted;
	r->n->some_bad = r->p->bad = false;
	r->n->worked = false;
	r->n->posted = 0;
}

/* ---- a pending and its response ---- */

static void ask(struct rig *r, uint32_t kind)
{
	struct p3_move m = {.target = {r->p->nid, r->p->pid[0]},
		.bits = 0x1234567890abcdef,
		.remote_offset = 77,
		.offset = OFFSET,
		.length = ASKED,
		.pt_index = PT,
		.ack = kind == P3_REQ_PUT && !r->unacked};
	struct p3_pending *t = p3_pending_take(r->n, r->p, kind, r->md);
	CHECK(t != NULL);
	t->move = m;
	t->is_long = r->is_long;
	t->md_name ^= (uint64_t)r->unlinked << 30;
	t->state = r->queued ? P3_PEND_QUEUED : P3_PEND_SENT;
	t->peer = r->elsewhere ? &r->n->absent : r->p;
	if (r->closed)
		t->md = NULL;
	r->p->rsp_used += t->rsp_cells;
	r->t = t;
}

/* Write a response to the pending into the lane; its bit "flip" is inverted. */
static void respond(struct rig *r, struct p3_answer a, unsigned flip)
{
	struct p3_ring_tx *out = &r->p->rsp_out;
	bool reply = a.kind == P3_RSP_REPLY;
	uint32_t cells = reply ? p3_reply_cells(a.mlength) : 1;
	CHECK(p3_peer_has_room(r->p, out, cells));
	uint64_t at = out->pos;
	struct p3_cell *c = p3_ring_begin(out, cells);
	if (out->pos != at) /* it begins behind a pad */
		p3_ring_take_now(&r->p->rsp_in, (uint32_t)(out->pos - at));
	fill_pattern((unsigned char *)&c->w[1], cells * 64 - 8, 7);
	a.pending = p3_pending_name(r->t);
	uint64_t word0 = reply ? p3_pack_reply(c, &a) : p3_pack_brief(c, &a);
	p3_ring_publish(out, word0, cells);
	if (flip < AS_IS)
		p3_set(&c->w[flip / 64], p3_get(&c->w[flip / 64]) ^ 1ull << flip % 64);
}

/* Free the pending if the response has not ended it. */
static void forget(struct rig *r, uint64_t name)
{
	if (p3_get(&r->t->o.name) != name)
		return;
	r->t->peer = r->p;
	r->t->state = P3_PEND_SENT;
	r->p->rsp_used -= r->t->rsp_cells;
	p3_pending_give(r->n, r->t);
}

/* Bring both ends of the ring to one position: a response may have been refused, or may
 * have claimed more cells than it had. */
static void meet_again(struct rig *r)
{
	struct p3_ring_rx *in = &r->p->rsp_in;
	struct p3_ring_tx *out = &r->p->rsp_out;
	while (in->pos != out->pos) {
		if ((int64_t)(in->pos - out->pos) < 0) {
			p3_ring_take_now(in, 1);
		} else {
			(void)p3_ring_begin(out, 1);
			p3_ring_publish(out, p3_word0(P3_RSP_NONE, 0, 1), 1);
		}
	}
}

/* ---- outcomes ---- */

static void look(const struct rig *r, struct outcome *o)
{
	const struct p3_ni *ni = &r->n->ni[0];
	o->moved = r->p->rsp_in.pos - o->moved;
	o->drops = ni->drops - o->drops;
	o->drop_bytes = ni->drop_bytes - o->drop_bytes;
	o->headers = p3_get(&r->n->count[P3_C_BAD_HEADERS]) - o->headers;
	o->links = r->n->next_link - o->links;
	o->used = r->p->rsp_used - o->used;
	o->out = r->p->nout - o->out;
	o->live = r->n->table[P3_T_PENDING].live - o->live;
	o->operations = ni->use[P3_U_OP].cur - o->operations;
	o->nevents = (r->queue ? r->queue->tx.tail : 0) - o->nevents;
}

/* Keep the new events, all but their links, which grow, and mark them as read. */
static void take_events(struct rig *r, struct outcome *o)
{
	if (!r->queue)
		return;
	struct p3_evq_tx *q = &r->queue->tx;
	CHECK(o->nevents <= 4);
	for (uint64_t i = 0; i < o->nevents; i++) {
		const struct p3_event_record *e =
			&q->rec[(q->tail - o->nevents + i) & (q->n - 1)];
		for (unsigned j = 0; j < P3_EW_WORDS; j++)
			o->event[i * P3_EW_WORDS + j] = p3_get(&e->w[j]);
		o->event[i * P3_EW_WORDS + P3_EW_LINK] &= UINT32_MAX;
	}
	p3_release(&q->ring->head, q->tail); /* EVQ.3 */
}

/* Make a pending of this kind, respond, and take the response by this function. */
static void play(struct rig *r, uint32_t kind, const struct p3_answer *a, unsigned flip,
	take_fn *take, struct outcome *o)
{
	memset(o, 0, sizeof *o);
	reset(r);
	ask(r, kind);
	uint64_t name = p3_get(&r->t->o.name);
	respond(r, *a, flip);
	look(r, o);
	o->taken = take(r->n, r->p);
	look(r, o);
	o->bad = r->p->bad;
	o->worked = r->n->worked;
	o->posted = r->n->posted;
	o->threshold = r->md->words.threshold;
	o->odd = r->md->odd;
	take_events(r, o);
	memcpy(o->content, r->at, ROOM);
	forget(r, name);
	meet_again(r);
	CHECK_EQ(r->p->rsp_used, 0);
}

static void is_same(
	const struct outcome *back, const struct outcome *general, unsigned flip)
{
	if (!memcmp(back, general, sizeof *back))
		return;
	const uint64_t *x = (const uint64_t *)back, *y = (const uint64_t *)general;
	size_t i = 0;
	while (i < sizeof *back / 8 - 1 && x[i] == y[i])
		i++;
	check_failed(__FILE__, __LINE__,
		"bit %u: byte %zu of the outcome: %#llx, the general path has %#llx",
		flip, 8 * i, (unsigned long long)x[i], (unsigned long long)y[i]);
}

/* Return the outcome, which is the same both ways. */
static struct outcome compare(
	struct rig *r, uint32_t kind, struct p3_answer a, unsigned flip)
{
	static struct outcome back, general;
	play(r, kind, &a, flip, p3_rsp_take, &general);
	play(r, kind, &a, flip, p3_rsp_take_fast, &back);
	is_same(&back, &general, flip);
	return back;
}

static struct p3_answer ack(uint64_t length)
{
	return (struct p3_answer){.kind = P3_RSP_ACK, .mlength = length};
}

static struct p3_answer reply(uint64_t length)
{
	return (struct p3_answer){.kind = P3_RSP_REPLY, .mlength = length};
}

/* ---- cases ---- */

static ptl_md_t usual(ptl_handle_ni_t ni)
{
	return md_of(NULL, ROOM, PTL_MD_EVENT_START_DISABLE, eq_new(ni, SLOTS));
}

static ptl_md_t pieces(ptl_md_t md)
{
	static ptl_md_iovec_t piece[2];
	unsigned char *at = node_alloc(ROOM);
	piece[0] = (ptl_md_iovec_t){at, 43};
	piece[1] = (ptl_md_iovec_t){at + 50, 400};
	md.start = piece;
	md.length = 2;
	md.options |= PTL_MD_IOVEC;
	return md;
}

static void every_bit_of(struct rig *r, uint32_t kind, struct p3_answer a)
{
	for (unsigned bit = 0; bit < 512; bit++) {
		(void)compare(r, kind, a, bit);
		struct outcome o = compare(r, kind, a, AS_IS); /* also behind it */
		CHECK(o.taken && o.nevents == 1 && !o.bad);
		CHECK_EQ((uint32_t)o.live, UINT32_MAX); /* one less */
	}
}

static void flipped_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	struct rig r;
	start(&r, ni, usual(ni));
	every_bit_of(&r, P3_REQ_PUT, ack(8));
	every_bit_of(&r, P3_REQ_GET, reply(8));
	every_bit_of(&r, P3_REQ_GETPUT, reply(ASKED));
	stop(&r);
}

static void responses_with_each_bit_inverted(void **state)
{
	const struct nodes_opt opt = {.bad_headers = true};
	(void)state;
	run_nodes_opt(1, flipped_node, NULL, &opt);
}

/* Each kind of response to each kind of request, and lengths around those that were
 * requested and that fit the cell. */
static void compare_kinds(struct rig *r)
{
	static const uint64_t lengths[] = {0, 1, 7, 8, 9, ASKED, ASKED + 1, 40, 41, 400};
	for (uint32_t kind = P3_REQ_PUT; kind <= P3_REQ_GETPUT; kind++)
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			struct p3_answer a = ack(lengths[i]);
			(void)compare(r, kind, a, AS_IS);
			(void)compare(r, kind, reply(lengths[i]), AS_IS);
			a.status = 1;
			(void)compare(r, kind, a, AS_IS);
			a.flags = P3_F_ACK;
			(void)compare(r, kind, a, AS_IS);
			a.kind = P3_RSP_NONE;
			(void)compare(r, kind, a, AS_IS);
		}
}

static void compare_with(ptl_handle_ni_t ni, ptl_md_t md, uint64_t events)
{
	struct rig r;
	start(&r, ni, md);
	CHECK_EQ(compare(&r, P3_REQ_GET, reply(8), AS_IS).nevents, events);
	compare_kinds(&r);
	stop(&r);
}

#define MD_CASE(name, events, change)                                                    \
	static nodes_fn name##_node;                                                     \
	static void name(void **state)                                                   \
	{                                                                                \
		const struct nodes_opt opt = {.bad_headers = true};                      \
		(void)state;                                                             \
		run_nodes_opt(1, name##_node, NULL, &opt);                               \
	}                                                                                \
	static void name##_node(                                                         \
		unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)             \
	{                                                                                \
		UNUSED_ARGS;                                                             \
		ptl_md_t md = usual(ni);                                                 \
		change;                                                                  \
		compare_with(ni, md, events);                                            \
	}

MD_CASE(usual_descriptor, 1, (void)0)
MD_CASE(descriptor_that_is_short, 1, md.length = OFFSET + 5)
MD_CASE(descriptor_that_ends_before, 1, md.length = OFFSET - 5)
MD_CASE(descriptor_without_queue, 0, md.eq_handle = PTL_EQ_NONE)
MD_CASE(descriptor_with_start_events, 2, md.options = 0)
MD_CASE(descriptor_without_end_events, 0, md.options |= PTL_MD_EVENT_END_DISABLE)
MD_CASE(descriptor_with_threshold, 1, md.threshold = 2)
MD_CASE(descriptor_with_last_operation, 1, md.threshold = 1)

MD_CASE(descriptor_of_pieces, 1, md = pieces(md))

#define RIG_CASE(name, change)                                                           \
	static nodes_fn name##_node;                                                     \
	static void name(void **state)                                                   \
	{                                                                                \
		const struct nodes_opt opt = {.bad_headers = true};                      \
		(void)state;                                                             \
		run_nodes_opt(1, name##_node, NULL, &opt);                               \
	}                                                                                \
	static void name##_node(                                                         \
		unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)             \
	{                                                                                \
		UNUSED_ARGS;                                                             \
		struct rig r;                                                            \
		start(&r, ni, usual(ni));                                                \
		change;                                                                  \
		CHECK_EQ(compare(&r, P3_REQ_PUT, ack(8), AS_IS).nevents, 0);             \
		compare_kinds(&r);                                                       \
		stop(&r);                                                                \
	}

RIG_CASE(pending_whose_descriptor_is_unlinked, r.unlinked = true)
RIG_CASE(pending_whose_interface_is_closed, r.closed = true)
RIG_CASE(pending_without_acknowledgement, r.unacked = true)
RIG_CASE(pending_that_is_not_sent, r.queued = true)
RIG_CASE(pending_of_another_peer, r.elsewhere = true)
RIG_CASE(queue_that_was_freed, r.md->sink.eq_life++)

NODES_CASE(circumstances_of_the_node, 1)
{
	UNUSED_ARGS;
	struct rig r;
	start(&r, ni, usual(ni));
	r.md->exhausted = true;
	r.md->odd |= P3_ODD_INACTIVE;
	r.first = *r.md;
	CHECK_EQ(compare(&r, P3_REQ_GET, reply(8), AS_IS).nevents, 1);
	CHECK_EQ(compare(&r, P3_REQ_PUT, ack(8), AS_IS).nevents, 1);
	p3_odd_set(r.n, P3_ODD_PULLS);
	CHECK_EQ(compare(&r, P3_REQ_GET, reply(8), AS_IS).nevents, 1);
	p3_odd_settle(r.n);
	stop(&r);
}

/* No room in the queue: the oldest event is lost. */
NODES_CASE(queue_that_is_full, 1)
{
	UNUSED_ARGS;
	struct rig r;
	start(&r, ni, usual(ni));
	struct p3_evq_tx *q = &r.queue->tx;
	for (int way = 0; way < 2; way++) {
		uint64_t head = q->tail, lost = p3_get(&q->ring->lost);
		for (unsigned i = 0; i < SLOTS + 3; i++) {
			ask(&r, P3_REQ_GET);
			respond(&r, reply(8), AS_IS);
			CHECK((way ? p3_rsp_take : p3_rsp_take_fast)(r.n, r.p));
			p3_set(&q->ring->head, head);
		}
		CHECK_EQ(q->tail - head, SLOTS + 3);
		CHECK_EQ(p3_get(&q->ring->lost) - lost, 3);
		p3_set(&q->ring->head, q->tail);
	}
	stop(&r);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(usual_descriptor),
		cmocka_unit_test(descriptor_that_is_short),
		cmocka_unit_test(descriptor_that_ends_before),
		cmocka_unit_test(descriptor_without_queue),
		cmocka_unit_test(descriptor_with_start_events),
		cmocka_unit_test(descriptor_without_end_events),
		cmocka_unit_test(descriptor_with_threshold),
		cmocka_unit_test(descriptor_with_last_operation),
		cmocka_unit_test(descriptor_of_pieces),
		cmocka_unit_test(pending_whose_descriptor_is_unlinked),
		cmocka_unit_test(pending_whose_interface_is_closed),
		cmocka_unit_test(pending_without_acknowledgement),
		cmocka_unit_test(pending_that_is_not_sent),
		cmocka_unit_test(pending_of_another_peer),
		cmocka_unit_test(queue_that_was_freed),
		cmocka_unit_test(circumstances_of_the_node),
		cmocka_unit_test(queue_that_is_full),
		cmocka_unit_test(responses_with_each_bit_inverted),
	};
	return RUN_CASES(cases);
}
