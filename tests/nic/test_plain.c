/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The straight path of requests (nic/proto/rx.c) does the same as the general one.
 *
 * A node writes a request into its own lane, and takes it twice: by p3_rx_take_fast() and
 * by p3_rx_take().  All that a request changes must be equal: the bytes, the events, the
 * responses, the counters, the descriptor, the position, and whether the peer is ignored
 * from then on.  The requests are plain ones; plain ones with each bit of the header
 * inverted, as a hostile peer may send them; and those that one circumstance makes
 * different from a plain one.
 */
#include "nic/obj/obj.h"
#include "nic/proto/proto.h"
#include "nic/run/run.h"
#include "nic/cases.h"

#include "lib/node/node.h"
#include "support/hold.h"

enum { PT = 5, OTHERS = 20, BITS = 0x71, ROOM = 1000, SLOTS = 16, MOST_CELLS = 16 };

typedef bool take_fn(struct p3_nic *n, struct p3_peer *p);

struct rig {
	ptl_handle_ni_t ni;
	struct p3_nic *n;
	struct p3_peer *p; /* the node itself */
	unsigned char *at;
	ptl_handle_eq_t eq;
	struct p3_eq *queue;
	struct p3_md *md; /* of the entry at PT */
	struct p3_md first;
};

/* All changes that a request has made. */
struct outcome {
	bool taken, bad, worked, posted;
	uint64_t moved, count[8];
	uint64_t received, received_bytes, drops, drop_bytes;
	uint64_t msgs, bytes, local_offset;
	int32_t threshold;
	uint32_t odd;
	uint32_t links;
	uint64_t nevents, event[4 * P3_EW_WORDS];
	uint64_t nresponses, response[4 * 8];
	unsigned char content[ROOM];
};

/* ---- the node ---- */

/* Let both rings of responses and requests become full ones. */
static void grow(struct rig *r)
{
	ptl_event_t ev;
	ptl_handle_eq_t eq = eq_new(r->ni, SLOTS);
	post_md(r->ni, PT + 1, 0, md_of(r->at, ROOM, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	ptl_handle_md_t md =
		bind_md(r->ni, md_of(r->at, 8, PTL_MD_EVENT_START_DISABLE, eq));
	for (int i = 0; i < 40; i++) {
		CHECK_OK(put_to(r->ni, md, 0, PT + 1, 0, PTL_ACK_REQ));
		expect(eq, PTL_EVENT_SEND_END);
		expect(eq, PTL_EVENT_ACK);
	}
	CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
	CHECK_OK(PtlMDUnlink(md));
}

static void start(struct rig *r, ptl_handle_ni_t ni, ptl_md_t md)
{
	*r = (struct rig){.ni = ni, .n = p3_nic(p3_node()), .eq = md.eq_handle};
	r->at = md.options & PTL_MD_IOVEC ? node_alloc(ROOM) : md.start;
	r->p = &r->n->peer[r->n->conf.node];
	grow(r);
	ptl_handle_md_t handle = post_md(ni, PT, BITS, md);
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

/* Put everything back that a request may have changed. */
static void reset(struct rig *r)
{
	fill_pattern(r->at, ROOM, 3);
	r->md->words.threshold = r->first.words.threshold;
	r->md->local_offset = r->first.local_offset;
	r->md->odd = r->first.odd;
	r->md->exhausted = false;
	r->n->some_bad = r->p->bad = false;
	r->n->msgs = 0;
	r->n->bytes = 0;
	r->n->worked = false;
	r->n->posted = 0;
}

/* ---- requests ---- */

/* A request, with all words but the validity. */
struct message {
	uint32_t cells; /* cells that are written */
	uint64_t w[8 * MOST_CELLS];
};

static struct message message_of(const struct p3_request *q)
{
	static struct p3_cell c[MOST_CELLS];
	struct message m = {.cells = q->ncells};
	fill_pattern((unsigned char *)c, sizeof c, 7);
	uint64_t word0 = q->kind == P3_REQ_GET ? p3_pack_get(c, q) : p3_pack_eager(c, q);
	p3_set(&c->w[0], word0);
	memcpy(m.w, c, sizeof m.w);
	return m;
}

static struct p3_request request_of(const struct rig *r, uint32_t kind, uint64_t length)
{
	return (struct p3_request){.kind = kind,
		.ncells = kind == P3_REQ_GET ? 1 : p3_request_cells(length),
		.room = kind == P3_REQ_GET ? p3_reply_room(length) : 0,
		.pending = kind == P3_REQ_GET ? 77 : 0,
		.pid = r->n->ni[0].pid,
		.portal = PT,
		.bits = BITS,
		.hdr = 0x1234567890abcdef,
		.offset = 40,
		.length = length};
}

static struct p3_request acked(struct p3_request q)
{
	q.flags = P3_F_ACK;
	q.pending = 99;
	q.room = 1;
	return q;
}

/* Write a message into the lane; its bit "flip" is inverted. */
static void write_message(struct rig *r, const struct message *m, unsigned flip)
{
	struct p3_ring_tx *out = &r->p->req_out;
	CHECK(p3_peer_has_room(r->p, out, m->cells));
	uint64_t at = out->pos;
	struct p3_cell *c = p3_ring_begin(out, m->cells);
	if (out->pos != at) /* it begins behind a pad */
		p3_ring_take_now(&r->p->req_in, (uint32_t)(out->pos - at));
	for (uint32_t i = 1; i < 8 * m->cells; i++)
		p3_set(&c[i / 8].w[i % 8], m->w[i]);
	p3_ring_publish(out, m->w[0], m->cells);
	if (flip < 512)
		p3_set(&c->w[flip / 64], p3_get(&c->w[flip / 64]) ^ 1ull << flip % 64);
}

/* ---- outcomes ---- */

/* the counters that a request may change */
static const uint8_t counters[] = {P3_C_SENT, P3_C_RECEIVED, P3_C_RECEIVED_BYTES,
	P3_C_DROPS, P3_C_DROP_BYTES, P3_C_BAD_HEADERS, P3_C_DENIED, P3_C_LANES_FULL};

static void look_at_counters(const struct rig *r, struct outcome *o)
{
	const struct p3_ni *ni = &r->n->ni[0];
	for (unsigned i = 0; i < sizeof counters; i++)
		o->count[i] = p3_get(&r->n->count[counters[i]]) - o->count[i];
	o->received = ni->received - o->received;
	o->received_bytes = ni->received_bytes - o->received_bytes;
	o->drops = ni->drops - o->drops;
	o->drop_bytes = ni->drop_bytes - o->drop_bytes;
	o->links = r->n->next_link - o->links;
	o->nevents = (r->queue ? r->queue->tx.tail : 0) - o->nevents;
	o->moved = r->p->req_in.pos - o->moved;
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

static void take_responses(struct rig *r, struct outcome *o)
{
	uint64_t w0;
	const struct p3_cell *c;
	while ((c = p3_ring_peek(&r->p->rsp_in, &w0))) {
		if (p3_word0_kind(w0) != P3_RSP_PAD) {
			CHECK(o->nresponses < 4);
			uint64_t *to = &o->response[8 * o->nresponses++];
			to[0] = w0 >> 32;
			to[1] = p3_get(&c->w[1]);
			to[2] = p3_get(&c->w[2]);
			if (p3_word0_kind(w0) == P3_RSP_REPLY)
				memcpy(to + 3, p3_reply_bytes(c),
					to[2] < 40 ? to[2] : 40);
		}
		p3_ring_take_now(&r->p->rsp_in, p3_word0_ncells(w0));
	}
}

/* Send a message to the node itself, and take it by this function. */
static void play(struct rig *r, const struct message *m, unsigned flip, take_fn *take,
	struct outcome *o)
{
	memset(o, 0, sizeof *o);
	reset(r);
	write_message(r, m, flip);
	look_at_counters(r, o);
	o->taken = take(r->n, r->p);
	look_at_counters(r, o);
	if (!o->taken)
		p3_ring_take_now(&r->p->req_in, m->cells);
	CHECK_EQ(r->p->req_in.pos, r->p->req_out.pos);
	o->bad = r->p->bad;
	o->worked = r->n->worked;
	o->posted = r->n->posted;
	o->msgs = r->n->msgs;
	o->bytes = r->n->bytes;
	o->threshold = r->md->words.threshold;
	o->odd = r->md->odd;
	o->local_offset = r->md->local_offset;
	take_events(r, o);
	take_responses(r, o);
	memcpy(o->content, r->at, ROOM);
}

static void is_same(
	const struct outcome *plain, const struct outcome *general, unsigned flip)
{
	if (!memcmp(plain, general, sizeof *plain))
		return;
	const uint64_t *a = (const uint64_t *)plain, *b = (const uint64_t *)general;
	size_t i = 0;
	while (i < sizeof *plain / 8 - 1 && a[i] == b[i])
		i++;
	check_failed(__FILE__, __LINE__,
		"bit %u: byte %zu of the outcome: %#llx, the general path has %#llx",
		flip, 8 * i, (unsigned long long)a[i], (unsigned long long)b[i]);
}

enum { AS_IS = 512, FLAG_LONG = 41 };

/* Take a message, with an inverted bit, on both paths, and compare the outcomes.  Return
 * true if the message was taken. */
static bool compare(struct rig *r, const struct p3_request *q, unsigned flip)
{
	static struct outcome plain, general;
	const struct message m = message_of(q);
	play(r, &m, flip, p3_rx_take, &general);
	play(r, &m, flip, p3_rx_take_fast, &plain); /* may only learn the target */
	is_same(&plain, &general, flip);
	play(r, &m, flip, p3_rx_take_fast, &plain);
	is_same(&plain, &general, flip);
	return plain.taken;
}

static void compare_all_bits(struct rig *r, struct p3_request q)
{
	CHECK(compare(r, &q, AS_IS));
	for (unsigned bit = 0; bit < 512; bit++) {
		if (bit == FLAG_LONG)
			continue; /* begins a transfer of bytes that are not offered */
		(void)compare(r, &q, bit);
		CHECK(compare(r, &q, AS_IS)); /* also behind it */
	}
}

/* ---- cases ---- */

static ptl_md_t usual(ptl_handle_ni_t ni)
{
	return md_of(node_alloc(ROOM), ROOM,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE |
			PTL_MD_EVENT_START_DISABLE,
		eq_new(ni, SLOTS));
}

static void every_bit_of(uint32_t kind, bool ack, uint64_t length, ptl_handle_ni_t ni)
{
	struct rig r;
	start(&r, ni, usual(ni));
	struct p3_request q = request_of(&r, kind, length);
	compare_all_bits(&r, ack ? acked(q) : q);
	stop(&r);
}

#define BITS_CASE(name, kind, ack, length)                                               \
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
		(void)rank, (void)size, (void)arg;                                       \
		every_bit_of(kind, ack, length, ni);                                     \
	}

BITS_CASE(plain_put_with_each_bit_inverted, P3_REQ_PUT, false, 8)
BITS_CASE(acked_put_with_each_bit_inverted, P3_REQ_PUT, true, 13)
BITS_CASE(put_of_three_cells_with_each_bit_inverted, P3_REQ_PUT, false, 100)
BITS_CASE(plain_get_with_each_bit_inverted, P3_REQ_GET, false, 8)

/* Each kind of request, and lengths around those of the header and of the cells. */
static void compare_kinds(struct rig *r)
{
	static const uint64_t lengths[] = {
		0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 39, 40, 41, 64, 65, 80, 81, 400};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct p3_request put = request_of(r, P3_REQ_PUT, lengths[i]),
				  ack = acked(put),
				  get = request_of(r, P3_REQ_GET, lengths[i]);
		(void)compare(r, &put, AS_IS);
		(void)compare(r, &ack, AS_IS);
		(void)compare(r, &get, AS_IS);
	}
}

static void compare_with(ptl_handle_ni_t ni, ptl_md_t md)
{
	struct rig r;
	start(&r, ni, md);
	compare_kinds(&r);
	stop(&r);
}

#define MD_CASE(name, change)                                                            \
	NODES_CASE(name, 1)                                                              \
	{                                                                                \
		UNUSED_ARGS;                                                             \
		ptl_md_t md = usual(ni);                                                 \
		change;                                                                  \
		compare_with(ni, md);                                                    \
	}

MD_CASE(usual_descriptor, (void)0)
MD_CASE(descriptor_with_local_offset, md.options &= ~PTL_MD_MANAGE_REMOTE)
MD_CASE(descriptor_that_truncates, (md.options |= PTL_MD_TRUNCATE, md.length = 80))
MD_CASE(descriptor_that_is_short, md.length = 80)
MD_CASE(descriptor_without_queue, md.eq_handle = PTL_EQ_NONE)
MD_CASE(descriptor_with_start_events, md.options &= ~PTL_MD_EVENT_START_DISABLE)
MD_CASE(descriptor_without_end_events, md.options |= PTL_MD_EVENT_END_DISABLE)
MD_CASE(descriptor_without_acks, md.options |= PTL_MD_ACK_DISABLE)
MD_CASE(descriptor_for_gets, md.options &= ~PTL_MD_OP_PUT)
MD_CASE(descriptor_for_puts, md.options &= ~PTL_MD_OP_GET)
MD_CASE(descriptor_with_threshold, md.threshold = 2)
/* 15 bytes leave just enough room, 16 bytes do not. */
MD_CASE(descriptor_with_max_size,
	(md.options |= PTL_MD_MAX_SIZE, md.options &= ~PTL_MD_MANAGE_REMOTE,
		md.max_size = md.length - 15))
MD_CASE(descriptor_with_small_max_size,
	(md.options |= PTL_MD_MAX_SIZE, md.options &= ~PTL_MD_MANAGE_REMOTE,
		md.max_size = 64))
MD_CASE(descriptor_with_max_size_and_remote_offset,
	(md.options |= PTL_MD_MAX_SIZE, md.max_size = 990))

NODES_CASE(descriptor_of_pieces, 1)
{
	UNUSED_ARGS;
	ptl_md_t md = usual(ni);
	ptl_md_iovec_t piece[] = {{md.start, 43}, {(char *)md.start + 50, 800}};
	unsigned char *at = md.start;
	md.start = piece;
	md.length = 2;
	md.options |= PTL_MD_IOVEC;
	struct rig r;
	start(&r, ni, md);
	r.at = at;
	compare_kinds(&r);
	stop(&r);
}

/* ---- circumstances of the node and the peer ---- */

static void compare_under(struct rig *r, bool comes)
{
	struct p3_request q = request_of(r, P3_REQ_PUT, 8);
	CHECK_EQ(compare(r, &q, AS_IS), comes);
	compare_kinds(r);
}

NODES_CASE(circumstances_of_a_peer, 1)
{
	UNUSED_ARGS;
	struct rig r;
	start(&r, ni, usual(ni));
	uint32_t pid = r.p->pid[0];
	compare_under(&r, true);
	r.p->pid[0] = P3_JOB_NO_PID;
	compare_under(&r, false);
	r.p->pid[0] = pid;
	r.p->behind = true;
	compare_under(&r, false);
	r.p->behind = false;
	r.p->rsp_used = 3; /* this node waits for a response, which is not there */
	compare_under(&r, true);
	r.p->rsp_used = 0;
	r.p->uid++; /* a foreign user */
	compare_under(&r, true);
	r.p->uid--;
	p3_odd_set(r.n, P3_ODD_PULLS);
	compare_under(&r, true);
	p3_odd_settle(r.n);
	stop(&r);
}

/* The request meets a list with an index, whose first entries are for others. */
NODES_CASE(list_with_an_index, 1)
{
	UNUSED_ARGS;
	struct rig r;
	for (unsigned i = 0; i < OTHERS; i++)
		(void)me_last(ni, PT, BITS + 1 + i, 0, PTL_RETAIN);
	start(&r, ni, usual(ni));
	CHECK(r.n->ni[0].portal[PT].indexed);
	compare_under(&r, true);
	stop(&r);
}

/* The first entry that matches refuses, the second accepts. */
NODES_CASE(entries_before_the_right_one, 1)
{
	UNUSED_ARGS;
	struct rig r;
	ptl_md_t refuses = usual(ni);
	refuses.options &= ~(unsigned)(PTL_MD_OP_PUT | PTL_MD_OP_GET);
	(void)me_last(ni, PT, BITS, 0, PTL_RETAIN); /* no descriptor */
	post_md(ni, PT, BITS + 1, usual(ni));
	post_md(ni, PT, BITS, refuses);
	start(&r, ni, usual(ni));
	compare_under(&r, true);
	stop(&r);
}

/* No room in the queue: the oldest event is lost. */
NODES_CASE(queue_that_is_full, 1)
{
	UNUSED_ARGS;
	struct rig r;
	start(&r, ni, usual(ni));
	struct p3_evq_tx *q = &r.queue->tx;
	struct p3_request put = request_of(&r, P3_REQ_PUT, 8);
	const struct message m = message_of(&put);
	for (int way = 0; way < 2; way++) {
		uint64_t head = q->tail, lost = p3_get(&q->ring->lost);
		for (unsigned i = 0; i < SLOTS + 3; i++) {
			write_message(&r, &m, AS_IS);
			CHECK((way ? p3_rx_take : p3_rx_take_fast)(r.n, r.p));
			p3_set(&q->ring->head, head);
		}
		CHECK_EQ(q->tail - head, SLOTS + 3);
		CHECK_EQ(p3_get(&q->ring->lost) - lost, 3);
		p3_set(&q->ring->head, q->tail);
	}
	stop(&r);
}

/* A freed queue gets no event, nor does the next queue in its place. */
NODES_CASE(queue_that_was_freed, 1)
{
	UNUSED_ARGS;
	struct rig r;
	start(&r, ni, usual(ni));
	struct p3_request put = request_of(&r, P3_REQ_PUT, 8);
	CHECK(compare(&r, &put, AS_IS));
	p3_lease_leave(r.n);
	CHECK_OK(PtlEQFree(r.eq));
	ptl_handle_eq_t next = eq_new(ni, SLOTS);
	nic_hold(r.n);
	r.queue = p3_eq_named(r.n, next);
	compare_under(&r, true);
	stop(&r);
	expect_empty(next);
}

/* The access list changes, and the interface is opened anew with the same pid. */
NODES_CASE(target_that_was_closed, 1)
{
	UNUSED_ARGS;
	struct rig r;
	start(&r, ni, usual(ni));
	struct p3_request put = request_of(&r, P3_REQ_PUT, 8);
	CHECK(compare(&r, &put, AS_IS));
	p3_lease_leave(r.n);
	ptl_process_id_t other = {12345, 6};
	CHECK_OK(PtlACEntry(ni, 0, other, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
	nic_hold(r.n);
	uint64_t denied = p3_get(&r.n->count[P3_C_DENIED]);
	CHECK(compare(&r, &put, AS_IS)); /* it is taken, and dropped */
	CHECK_EQ(p3_get(&r.n->count[P3_C_DENIED]) - denied, 3);
	stop(&r);
	CHECK_OK(PtlACEntry(ni, 0, anybody(), PTL_UID_ANY, PTL_JID_ANY, PT + 1));
	nic_hold(r.n);
	CHECK(compare(&r, &put, AS_IS));
	CHECK_EQ(p3_get(&r.n->count[P3_C_DENIED]) - denied, 6);
	stop(&r);
	CHECK_OK(PtlACEntry(ni, 0, anybody(), PTL_UID_ANY, PTL_JID_ANY, PT));
	nic_hold(r.n);
	uint64_t drops = r.n->ni[0].drops;
	CHECK(compare(&r, &put, AS_IS));
	CHECK_EQ(r.n->ni[0].drops, drops);
	stop(&r);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(usual_descriptor),
		cmocka_unit_test(descriptor_with_local_offset),
		cmocka_unit_test(descriptor_that_truncates),
		cmocka_unit_test(descriptor_that_is_short),
		cmocka_unit_test(descriptor_without_queue),
		cmocka_unit_test(descriptor_with_start_events),
		cmocka_unit_test(descriptor_without_end_events),
		cmocka_unit_test(descriptor_without_acks),
		cmocka_unit_test(descriptor_for_gets),
		cmocka_unit_test(descriptor_for_puts),
		cmocka_unit_test(descriptor_with_threshold),
		cmocka_unit_test(descriptor_with_max_size),
		cmocka_unit_test(descriptor_with_small_max_size),
		cmocka_unit_test(descriptor_with_max_size_and_remote_offset),
		cmocka_unit_test(descriptor_of_pieces),
		cmocka_unit_test(circumstances_of_a_peer),
		cmocka_unit_test(list_with_an_index),
		cmocka_unit_test(entries_before_the_right_one),
		cmocka_unit_test(queue_that_is_full),
		cmocka_unit_test(queue_that_was_freed),
		cmocka_unit_test(target_that_was_closed),
		cmocka_unit_test(plain_put_with_each_bit_inverted),
		cmocka_unit_test(acked_put_with_each_bit_inverted),
		cmocka_unit_test(put_of_three_cells_with_each_bit_inverted),
		cmocka_unit_test(plain_get_with_each_bit_inverted),
	};
	return RUN_CASES(cases);
}
