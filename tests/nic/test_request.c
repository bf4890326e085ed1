/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts, acknowledged puts and gets: all lengths, unusual descriptors and arguments, lanes
 * that are full, targets that answer late or never, threads. */
#include "nic/obj/state.h"
#include "nic/proto/state.h"
#include "nic/run/lease.h"
#include "cases.h"

#include "support/hold.h"
#include "support/pools.h"

enum { PT = 6, TRIES = 200, ROOM = 4096, FAR = 32, INLINE = 16 };
enum kind { PUT, ACKED, GET, KINDS };
static const uint64_t BITS = 0x1234567890abcdef;

/* ---- all lengths ---- */

/* One request of rank 0 to itself. */
struct call {
	ptl_handle_ni_t ni;
	ptl_handle_md_t md;
	size_t offset, length;
	enum kind kind;
	bool whole; /* by PtlPut or PtlGet, else by the call with a region */
	uint64_t hdr;
};

static int request(const struct call *c, ptl_process_id_t to)
{
	ptl_ack_req_t ack = c->kind == ACKED ? PTL_ACK_REQ : PTL_NO_ACK_REQ;
	if (c->kind == GET)
		return c->whole ? PtlGet(c->md, to, PT, 0, BITS, FAR)
				: PtlGetRegion(c->md, c->offset, c->length, to, PT, 0,
					  BITS, FAR);
	return c->whole ? PtlPut(c->md, ack, to, PT, 0, BITS, FAR, c->hdr)
			: PtlPutRegion(c->md, c->offset, c->length, ack, to, PT, 0, BITS,
				  FAR, c->hdr);
}

/* Return true if a lane has room for a put of this length: else its target pulls it. */
static bool fits_lane(size_t length)
{
	return !nic()->conf.base_lanes_only ||
	       p3_request_cells(length) <= p3_ring_most(P3_BASE_CELLS);
}

/* Request, and check registers and statistics.  posted: another thread has the lease, so
 * the request is a command. */
static void request_once(const struct call *c, bool posted)
{
	static p3_a32 held;
	ptlx_stats_t before = stats_of(c->ni);
	int64_t count = status_of(c->ni, PTL_SR_SEND_COUNT);
	int64_t bytes = status_of(c->ni, PTL_SR_SEND_LENGTH);
	struct side *other = posted ? nic_held_until_posted(&held) : NULL;
	CHECK_OK(request(c, id_of(c->ni, 0)));
	if (posted)
		side_join(other);
	CHECK_EQ(status_of(c->ni, PTL_SR_SEND_COUNT) - count, 1);
	CHECK_EQ(status_of(c->ni, PTL_SR_SEND_LENGTH) - bytes,
		c->kind == GET ? 0 : c->length);
	if (c->kind != PUT)
		return;
	ptlx_stats_t after = stats_of(c->ni);
	CHECK_EQ(after.puts_eager - before.puts_eager,
		c->length > INLINE && fits_lane(c->length));
	CHECK_EQ(after.puts_inline - before.puts_inline, c->length <= INLINE);
	CHECK_EQ(after.msgs_sent - before.msgs_sent, 1);
	CHECK_EQ(after.bytes_sent - before.bytes_sent, c->length);
}

static void check_event(ptl_handle_eq_t eq, ptl_event_kind_t kind, const struct call *c,
	const void *start, size_t offset)
{
	ptl_event_t ev = expect(eq, kind);
	CHECK(ev.md.start == start);
	CHECK_EQ(ev.offset, offset);
	CHECK_EQ(ev.rlength, c->length);
	CHECK_EQ(ev.mlength, c->length);
	CHECK_EQ(ev.match_bits, BITS);
	CHECK_EQ(ev.pt_index, PT);
	CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
	CHECK_EQ(ev.md.threshold, PTL_MD_THRESH_INF);
	if (kind == PTL_EVENT_SEND_END || kind == PTL_EVENT_PUT_END)
		CHECK_EQ(ev.hdr_data, c->hdr);
}

/* The same request again and again, to all places of the ring. */
static void request_again(
	ptl_handle_ni_t ni, enum kind kind, size_t length, bool whole, bool posted)
{
	bool get = kind == GET;
	unsigned char *here = node_alloc(ROOM), *there = node_alloc(ROOM);
	ptl_handle_eq_t own = eq_new(ni, 8), came = eq_new(ni, 8);
	ptl_handle_md_t target = post_md(ni, PT, BITS, sink_md(there, ROOM, came));
	size_t size = whole ? length : ROOM;
	struct call c = {.ni = ni,
		.offset = whole ? 0 : 3,
		.length = length,
		.kind = kind,
		.whole = whole};
	unsigned char *from = get ? there : here, *to = get ? here : there;
	size_t at = get ? c.offset : FAR, of = get ? FAR : c.offset;
	size_t most = get ? size : ROOM;
	c.md = bind_md(ni, source_md(here, size, own));
	for (c.hdr = 0; c.hdr < (posted ? 4 : rounds(TRIES)); c.hdr++) {
		memset(to, 0, most);
		fill_pattern(from, get ? ROOM : size, (unsigned)c.hdr);
		request_once(&c, posted);
		if (!get)
			check_event(own, PTL_EVENT_SEND_END, &c, here, c.offset);
		check_event(came, get ? PTL_EVENT_GET_END : PTL_EVENT_PUT_END, &c, there,
			FAR);
		if (kind != PUT)
			check_event(own, get ? PTL_EVENT_REPLY_END : PTL_EVENT_ACK, &c,
				here, FAR);
		CHECK_ZERO(to, at);
		CHECK_PATTERN(to + at, of, length, (unsigned)c.hdr);
		CHECK_ZERO(to + at + length, most - at - length);
	}
	expect_empty(own);
	CHECK_OK(PtlMDUnlink(c.md));
	CHECK_OK(PtlMDUnlink(target));
	CHECK_OK(PtlEQFree(own));
	CHECK_OK(PtlEQFree(came));
}

NODES_CASE(requests_of_each_length_have_their_events, 1)
{
	static const size_t lengths[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 32, 33, 39,
		40, 41, 64, 80, 81, 100, 144, 145, 1000, 1024, 1535, 1536};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		for (unsigned how = 0; how < 4 * KINDS; how++)
			if (how % KINDS == PUT || lengths[i] <= 100)
				request_again(ni, how % KINDS, lengths[i],
					how / KINDS & 1, how / KINDS & 2);
	expect_full();
}

/* ---- unusual descriptors and arguments ---- */

static int acked(ptl_handle_md_t md, ptl_size_t length, ptl_process_id_t to)
{
	return PtlPutRegion(md, 0, length, PTL_ACK_REQ, to, PT, 0, BITS, 0, 5);
}

static int put(ptl_handle_md_t md, ptl_size_t length, ptl_process_id_t to)
{
	return PtlPutRegion(md, 0, length, PTL_NO_ACK_REQ, to, PT, 0, BITS, 0, 5);
}

static int get(ptl_handle_md_t md, ptl_size_t length, ptl_process_id_t to)
{
	return PtlGetRegion(md, 0, length, to, PT, 0, BITS, 0);
}

/* Requests of rank 0 until the ring to this rank is open for the next one. */
static void open_ring(ptl_handle_ni_t ni, unsigned rank)
{
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_handle_md_t md = bind_md(ni, source_md(node_alloc(8), 8, eq));
	for (unsigned i = 0; i < 50 * TRIES; i++) {
		CHECK_OK(acked(md, 8, id_of(ni, rank)));
		(void)expect(eq, PTL_EVENT_SEND_END);
		(void)expect(eq, PTL_EVENT_ACK);
		if (i > 20 && p3_ring_runs(&nic()->peer[rank].req_out, 8))
			break;
	}
	CHECK_OK(PtlMDUnlink(md));
}

NODES_CASE(unusual_descriptors_have_their_events, 1)
{
	unsigned char *at = node_pattern(ROOM, 3), *there = node_pattern(ROOM, 4);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_process_id_t self = id_of(ni, 0);
	post_md(ni, PT, BITS, md_of(there, ROOM, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	open_ring(ni, 0);

	ptl_handle_md_t md = bind_md(ni, md_of(at, 8, 0, eq));
	CHECK_OK(acked(md, 8, self));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_START).hdr_data, 5);
	(void)expect(eq, PTL_EVENT_SEND_END);
	(void)expect(eq, PTL_EVENT_ACK);
	CHECK_OK(put(md, 8, self));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_START).hdr_data, 5);
	(void)expect(eq, PTL_EVENT_SEND_END);
	CHECK_OK(get(md, 8, self)); /* START events are the reply's concern */
	expect_pair(eq, PTL_EVENT_REPLY_START);

	md = bind_md(ni, md_of(at, 8, MD_QUIET, eq));
	CHECK_OK(acked(md, 8, self));
	(void)expect(eq, PTL_EVENT_ACK);

	md = bind_md(ni, source_md(at, 8, PTL_EQ_NONE));
	CHECK_OK(acked(md, 8, self)); /* an ACK needs a queue */

	ptl_md_t d = source_md(at, 8, eq);
	d.threshold = 1;
	CHECK_OK(PtlMDBind(ni, d, PTL_UNLINK, &md));
	CHECK_OK(put(md, 8, self));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).md.threshold, 0);
	(void)expect(eq, PTL_EVENT_UNLINK);
	CHECK_RC(put(md, 8, self), PTL_MD_INVALID);
	d.threshold = 4;
	CHECK_OK(PtlMDBind(ni, d, PTL_UNLINK, &md));
	CHECK_OK(put(md, 8, self));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).md.threshold, 3);
	CHECK_OK(acked(md, 8, self));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).md.threshold, 2);
	CHECK_EQ(expect(eq, PTL_EVENT_ACK).md.threshold, 1);
	CHECK_OK(get(md, 8, self));
	CHECK_EQ(expect(eq, PTL_EVENT_REPLY_END).md.threshold, 0);
	(void)expect(eq, PTL_EVENT_UNLINK);
	CHECK_RC(get(md, 8, self), PTL_MD_INVALID);
	CHECK_RC(put(md, 8, self), PTL_MD_INVALID);

	ptl_md_iovec_t pieces[2] = {{at, 3}, {at + 100, 5}};
	d = source_md(pieces, 2, eq);
	d.options |= PTL_MD_IOVEC;
	md = bind_md(ni, d);
	fill_pattern(there, 8, 9);
	CHECK_OK(get(md, 8, self));
	CHECK_EQ(expect(eq, PTL_EVENT_REPLY_END).mlength, 8);
	CHECK_PATTERN(at, 0, 3, 9);
	CHECK_PATTERN(at + 100, 3, 5, 9);
	memset(there, 0, 8);
	CHECK_OK(put(md, 8, self));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).mlength, 8);
	CHECK_OK(get(
		bind_md(ni, source_md(at + 200, 8, eq)), 8, self)); /* behind the put */
	CHECK_EQ(expect(eq, PTL_EVENT_REPLY_END).mlength, 8);
	CHECK_PATTERN(there, 0, 8, 9);
	expect_empty(eq);
	expect_full();
}

NODES_CASE(unusual_arguments_are_checked, 1)
{
	static int (*const calls[])(ptl_handle_md_t, ptl_size_t, ptl_process_id_t) = {
		put, acked, get};
	static const size_t lengths[] = {1537, 17, 41};
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_process_id_t self = id_of(ni, 0), other = {self.nid, self.pid + 3};
	const ptl_process_id_t any[] = {{self.nid, PTL_PID_ANY}, {PTL_NID_ANY, self.pid}};
	ptl_handle_md_t md = bind_md(ni, source_md(node_alloc(ROOM), ROOM, eq));
	post_md(ni, PT, BITS,
		md_of(node_alloc(ROOM), ROOM, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	open_ring(ni, 0);
	for (enum kind k = 0; k < KINDS; k++) {
		CHECK_RC(calls[k](md, ROOM + 1, self), PTL_MD_ILLEGAL);
		CHECK_RC(calls[k](md, P3_WHOLE, self), PTL_MD_ILLEGAL);
		CHECK_RC(calls[k](md + (1u << 24), 8, self), PTL_MD_INVALID);
		CHECK_RC(calls[k](eq, 8, self), PTL_MD_INVALID);
		for (unsigned i = 0; i < 2; i++)
			CHECK_RC(calls[k](md, 8, any[i]), PTL_PROCESS_INVALID);
		CHECK_OK(calls[k](md, lengths[k], self));
		if (k != GET)
			CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).mlength, lengths[k]);
		if (k != PUT)
			CHECK_EQ(next_event(eq).mlength, lengths[k]);
		CHECK_OK(calls[k](md, 8, other));
		CHECK_EQ(next_event(eq).ni_fail_type, PTL_NI_FAIL);
	}
	uint64_t drops = drops_of(ni);
	CHECK_OK(PtlPutRegion(
		md, 0, 8, PTL_NO_ACK_REQ, self, 0x10000 + PT, 0, BITS, 0, 5));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).pt_index, 0x10000 + PT);
	run_for_drops(ni, drops + 1);
	expect_empty(eq);
	expect_full();
}

/* ---- the lane ---- */

/* Puts of all lengths to a node that takes them when it likes: none is lost, and all are
 * in order, through several laps of the ring and while it is full.  The bytes of a window
 * have places of their own, since the target looks at them while later ones come. */
NODES_CASE(puts_of_all_lengths_come_in_order, 2)
{
	enum { MOST = 200, WINDOW = 32 };
	unsigned n = rounds(20000);
	unsigned char *at = node_pattern(MOST, 9);
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t md = bind_md(ni, source_md(at, MOST, PTL_EQ_NONE));
	if (rank == 1)
		post_md(ni, PT, 1, sink_md(node_alloc(WINDOW * MOST), WINDOW * MOST, eq));
	sync_nodes();
	for (unsigned i = 0; i < n && rank == 0; i++) {
		ptl_ack_req_t ack = i % 97 ? PTL_NO_ACK_REQ : PTL_ACK_REQ;
		CHECK_OK(PtlPutRegion(md, 0, i * i % MOST, ack, id_of(ni, 1), PT, 0, 1,
			i % WINDOW * MOST, i));
		if (i % WINDOW == WINDOW - 1)
			sync_nodes();
	}
	for (unsigned i = 0; i < n && rank == 1; i++) {
		ptl_event_t ev = next_event(eq);
		CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
		CHECK_EQ(ev.hdr_data, i);
		CHECK_EQ(ev.mlength, i * i % MOST);
		CHECK_EQ(ev.offset, i % WINDOW * MOST);
		CHECK_PATTERN((char *)ev.md.start + ev.offset, 0, ev.mlength, 9);
		if (i % WINDOW == WINDOW - 1)
			sync_nodes();
	}
	sync_nodes();
}

/* The kind of message number i in a run of many. */
typedef enum kind kinds_fn(unsigned i);

static enum kind all_puts(unsigned i)
{
	(void)i;
	return PUT;
}

static enum kind some_acked(unsigned i)
{
	return i > 700 && i % 5 == 0 ? ACKED : PUT;
}

static enum kind all_answered(unsigned i)
{
	return i % 3 ? ACKED : GET;
}

static void take_requests(ptl_handle_eq_t eq, kinds_fn *kind_of, unsigned i, unsigned to)
{
	for (; i < to; i++) {
		bool get = kind_of(i) == GET;
		ptl_event_t ev = expect(eq, get ? PTL_EVENT_GET_END : PTL_EVENT_PUT_END);
		CHECK(get || ev.hdr_data == i);
	}
}

/* Take a SEND_END of each put, and the answers in the order of their requests. */
static void take_answers(ptl_handle_eq_t eq, kinds_fn *kind_of, unsigned n)
{
	unsigned puts = 0, next = 0;
	for (unsigned i = 0; i < n; i++)
		puts += kind_of(i) != GET;
	for (;;) {
		while (next < n && kind_of(next) == PUT)
			next++;
		if (next == n && !puts)
			return;
		ptl_event_t ev = next_event(eq);
		if (ev.type == PTL_EVENT_SEND_END) {
			puts--;
			continue;
		}
		CHECK_EQ(ev.type,
			kind_of(next) == GET ? PTL_EVENT_REPLY_END : PTL_EVENT_ACK);
		next++;
	}
}

/* Request while the target takes nothing.  Before that it has taken part of a lap, so
 * that its credit is not the end of the ring. */
static void to_a_still_target(NODE_ARGS)
{
	enum { PART = 700, N = 3700 };
	kinds_fn *kind_of = *(kinds_fn **)arg;
	ptl_handle_eq_t eq = eq_new(ni, 4 * N), came = eq_new(ni, 2 * N);
	struct call c = {.md = bind_md(ni, source_md(node_alloc(8), 8, eq)), .length = 8};
	if (rank == 1)
		post_md(ni, PT, BITS, sink_md(node_alloc(FAR + 8), FAR + 8, came));
	sync_nodes();
	for (unsigned i = 0; i < N; i++) {
		if (i == PART && rank == 1) {
			take_requests(came, kind_of, 0, PART);
			nic_hold(nic());
		}
		if (i == PART)
			meet_nodes();
		c.kind = kind_of(i);
		c.hdr = i;
		if (rank == 0)
			CHECK_OK(request(&c, id_of(ni, 1)));
	}
	meet_nodes();
	if (rank == 1) {
		p3_lease_leave(nic());
		take_requests(came, kind_of, PART, N);
	} else {
		take_answers(eq, kind_of, N);
		expect_full();
	}
	sync_nodes();
}

/* Requests fill the ring, and the room for responses, and no more; all are answered in
 * order, and none overtakes those that wait: also while the request ring has room. */
CASE(requests_fill_the_ring_and_no_more)
{
	kinds_fn *const runs[] = {all_puts, some_acked, all_answered};
	for (unsigned i = 0; i < 3; i++)
		run_nodes(2, to_a_still_target, (void *)&runs[i]);
}

/* ---- a target that answers late, or never ---- */

enum { ASKED = 100 };

/* Set up two nodes; from the return on, rank 1 stands still. */
static void meet_a_still_target(unsigned rank, ptl_handle_ni_t ni)
{
	if (rank == 1)
		post_md(ni, PT, BITS,
			md_of(node_pattern(ROOM, 5), ROOM, MD_ANY | MD_QUIET,
				PTL_EQ_NONE));
	sync_nodes();
	if (rank == 0)
		open_ring(ni, 1);
	sync_nodes();
	if (rank == 1)
		nic_hold(nic());
	meet_nodes();
}

/* Be that target once the initiator has asked: answer, and wait for the other's end. */
static void answer_at_last(void)
{
	meet_nodes();
	p3_lease_leave(nic());
	sync_nodes();
}

/* Request without waiting for answers. */
static void ask_often(ptl_handle_ni_t ni, ptl_handle_md_t puts, ptl_handle_md_t gets)
{
	for (unsigned i = 0; i < ASKED; i++) {
		CHECK_OK(acked(puts, 8, id_of(ni, 1)));
		CHECK_OK(get(gets, 8, id_of(ni, 1)));
	}
	nic_hold(nic());
	CHECK_EQ(nic()->peer[1].nout + nic()->peer[1].nqueued, 2 * ASKED);
	p3_lease_leave(nic());
}

/* Each get fails once, no put is acknowledged, and no pending is left. */
NODES_CASE(requests_end_with_their_target, 2)
{
	unsigned sent = 0, failed = 0;
	ptl_handle_eq_t eq = eq_new(ni, 1024);
	ptl_handle_md_t md = bind_md(ni, source_md(node_alloc(8), 8, eq));
	meet_a_still_target(rank, ni);
	if (rank == 1) {
		meet_nodes();
		node_die_holding();
		return;
	}
	ask_often(ni, md, md);
	meet_nodes();
	while (sent < ASKED || failed < ASKED) {
		ptl_event_t ev = next_event(eq);
		sent += ev.type == PTL_EVENT_SEND_END;
		failed += ev.type == PTL_EVENT_REPLY_END;
		CHECK(ev.type == PTL_EVENT_SEND_END || ev.type == PTL_EVENT_REPLY_END);
		CHECK_EQ(ev.ni_fail_type,
			ev.type == PTL_EVENT_SEND_END ? PTL_NI_OK : PTL_NI_FAIL);
	}
	expect_empty(eq);
	expect_full();
	CHECK_OK(get(md, 8, id_of(ni, 1)));
	CHECK_EQ(next_event(eq).ni_fail_type, PTL_NI_FAIL);
	CHECK_OK(put(md, 8, id_of(ni, 1)));
	CHECK_EQ(next_event(eq).ni_fail_type, PTL_NI_FAIL);
}

/* Answers for descriptors that were unlinked meanwhile are dropped, and touch nothing. */
NODES_CASE(answers_for_unlinked_descriptors_are_dropped, 2)
{
	unsigned char *at = node_alloc(8);
	ptl_handle_eq_t eq = eq_new(ni, 1024);
	ptl_handle_md_t puts = bind_md(ni, source_md(node_alloc(8), 8, eq));
	ptl_handle_md_t gets = bind_md(ni, source_md(at, 8, eq));
	meet_a_still_target(rank, ni);
	if (rank == 1) {
		answer_at_last();
		return;
	}
	uint64_t drops = drops_of(ni);
	ask_often(ni, puts, gets);
	CHECK_OK(PtlMDUnlink(puts));
	CHECK_OK(PtlMDUnlink(gets));
	ptl_handle_md_t next =
		bind_md(ni, source_md(at, 8, eq)); /* perhaps in its place */
	meet_nodes();
	run_for_drops(ni, drops + 2 * ASKED);
	for (unsigned i = 0; i < ASKED; i++)
		(void)expect(eq, PTL_EVENT_SEND_END);
	expect_empty(eq);
	CHECK_ZERO(at, 8);
	expect_full();
	CHECK_OK(get(next, 8, id_of(ni, 1)));
	(void)expect(eq, PTL_EVENT_REPLY_END);
	sync_nodes();
}

/* The answers for an interface that was closed meanwhile go nowhere; those for the other
 * one come. */
NODES_CASE(answers_for_a_closed_interface_go_nowhere, 2)
{
	unsigned char *at = node_alloc(8);
	ptl_handle_ni_t second = PTL_INVALID_HANDLE;
	ptl_handle_eq_t eq = eq_new(ni, 1024);
	ptl_handle_md_t md = bind_md(ni, source_md(node_alloc(8), 8, eq));
	meet_a_still_target(rank, ni);
	if (rank == 1) {
		answer_at_last();
		return;
	}
	CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &second));
	ptl_md_t d = source_md(at, 8, eq_new(second, 1024));
	ptl_handle_md_t closed = bind_md(second, d);
	ask_often(ni, closed, closed);
	CHECK_OK(acked(md, 8, id_of(ni, 1)));
	CHECK_OK(PtlNIFini(second));
	CHECK_OK(get(md, 8, id_of(ni, 1)));
	meet_nodes();
	(void)expect(eq, PTL_EVENT_SEND_END);
	(void)expect(eq, PTL_EVENT_ACK);
	(void)expect(eq, PTL_EVENT_REPLY_END);
	expect_empty(eq);
	CHECK_ZERO(at, 8);
	expect_full();
	sync_nodes();
}

/* Without a free pending a call returns PTL_NO_SPACE; answers make room. */
NODES_CASE(pendings_run_out, 2)
{
	uint32_t most = P3_TABLE_EACH, asked = 0;
	ptl_handle_eq_t eq = eq_new(ni, 4096);
	ptl_handle_md_t md = bind_md(ni, source_md(node_alloc(8), 8, eq));
	nic_hold(nic());
	nic()->conf.pending_limit = most * sizeof(struct p3_pending);
	p3_lease_leave(nic());
	meet_a_still_target(rank, ni);
	if (rank == 1) {
		answer_at_last();
		return;
	}
	int rc;
	while ((rc = get(md, 8, id_of(ni, 1))) == PTL_OK)
		CHECK(++asked <= most);
	CHECK_EQ(rc, PTL_NO_SPACE);
	CHECK_EQ(asked, most);
	CHECK_RC(acked(md, 8, id_of(ni, 1)), PTL_NO_SPACE);
	meet_nodes();
	for (uint32_t i = 0; i < asked; i++)
		(void)expect(eq, PTL_EVENT_REPLY_END);
	CHECK_OK(acked(md, 8, id_of(ni, 1)));
	(void)expect(eq, PTL_EVENT_SEND_END);
	(void)expect(eq, PTL_EVENT_ACK);
	expect_empty(eq);
	expect_full();
	sync_nodes();
}

/* ---- other threads ---- */

struct asker {
	ptl_handle_ni_t ni;
	unsigned target, seed;
};

/* Request again and again, and wait for the answers. */
static void ask_and_wait(void *arg)
{
	const struct asker *a = arg;
	unsigned char *at = node_alloc(16);
	ptl_handle_eq_t eq = eq_new(a->ni, 8);
	ptl_handle_md_t md = bind_md(a->ni, source_md(at, 16, eq));
	ptl_process_id_t to = id_of(a->ni, a->target);
	for (unsigned i = 0; i < rounds(3000); i++) {
		fill_pattern(at, 8, i + a->seed);
		CHECK_OK(PtlPutRegion(
			md, 0, 8, PTL_ACK_REQ, to, PT, 0, BITS, 8 * a->seed, i));
		CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).hdr_data, i);
		CHECK_EQ(expect(eq, PTL_EVENT_ACK).mlength, 8);
		CHECK_OK(PtlGetRegion(md, 8, 8, to, PT, 0, BITS, 8 * a->seed));
		CHECK_EQ(expect(eq, PTL_EVENT_REPLY_END).mlength, 8);
		CHECK_PATTERN(at + 8, 0, 8, i + a->seed);
	}
	expect_empty(eq);
}

NODES_CASE(threads_ask_at_the_same_time, 2)
{
	post_md(ni, PT, BITS,
		md_of(node_alloc(ROOM), ROOM, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	sync_nodes();
	struct asker a[3] = {
		{ni, 0, 3 * rank}, {ni, 1, 3 * rank + 1}, {ni, !rank, 3 * rank + 2}};
	struct side *side[2] = {
		side_start(ask_and_wait, &a[0]), side_start(ask_and_wait, &a[1])};
	ask_and_wait(&a[2]);
	side_join(side[0]);
	side_join(side[1]);
	sync_nodes();
	expect_full();
	sync_nodes();
}
