/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that want no acknowledgement: all lengths, unusual descriptors and arguments,
 * lanes that are full, targets that have ended, a lease that is taken. */
#include "nic/obj/state.h"
#include "nic/proto/state.h"
#include "nic/run/lease.h"
#include "cases.h"

#include "support/hold.h"

#include <sched.h>

enum { PT = 6, TRIES = 200, ROOM = 4096 };

/* ---- all lengths ---- */

enum { FAR = 32 };
static const uint64_t put_bits = 0x1234567890abcdef;

static ptlx_stats_t stats_of(ptl_handle_ni_t ni)
{
	ptlx_stats_t s = {.struct_size = sizeof s};
	CHECK_OK(PtlXStats(ni, &s));
	return s;
}

static void check_event(const ptl_event_t *ev, const void *start, size_t offset,
	size_t length, uint64_t hdr)
{
	CHECK(ev->md.start == start);
	CHECK_EQ(ev->offset, offset);
	CHECK_EQ(ev->rlength, length);
	CHECK_EQ(ev->mlength, length);
	CHECK_EQ(ev->match_bits, put_bits);
	CHECK_EQ(ev->hdr_data, hdr);
	CHECK_EQ(ev->pt_index, PT);
	CHECK_EQ(ev->ni_fail_type, PTL_NI_OK);
	CHECK_EQ(ev->md.threshold, PTL_MD_THRESH_INF);
}

static struct gate *gate; /* of two threads, without the library */

static void hold_for_a_while(void *arg)
{
	(void)arg;
	nic_hold_until_posted(nic(), gate);
}

/* Return true if a lane has room for a put of this length: else its target pulls it. */
static bool fits_lane(size_t length)
{
	return !nic()->conf.base_lanes_only ||
	       p3_request_cells(length) <= p3_ring_most(P3_BASE_CELLS);
}

/* The same put again and again, to all places of the ring; whole: by PtlPut; posted:
 * another thread has the lease, so the put is a command. */
static void put_often(ptl_handle_ni_t ni, size_t length, bool whole, bool posted)
{
	const size_t size = whole ? length : ROOM, offset = whole ? 0 : 3;
	unsigned char *from = node_alloc(ROOM), *to = node_alloc(ROOM);
	ptl_handle_eq_t sent = eq_new(ni, 8), came = eq_new(ni, 8);
	ptl_handle_md_t target = post_md(ni, PT, put_bits,
		md_of(to, ROOM, MD_ANY | PTL_MD_EVENT_START_DISABLE, came));
	ptl_handle_md_t md =
		bind_md(ni, md_of(from, size, PTL_MD_EVENT_START_DISABLE, sent));
	for (unsigned i = 0; i < (posted ? 4 : rounds(TRIES)); i++) {
		fill_pattern(from, size, i);
		memset(to, 0, ROOM);
		ptlx_stats_t before = stats_of(ni);
		int64_t count = status_of(ni, PTL_SR_SEND_COUNT);
		int64_t bytes = status_of(ni, PTL_SR_SEND_LENGTH);
		struct side *other = posted ? side_start(hold_for_a_while, NULL) : NULL;
		if (posted)
			gate_wait(gate);
		CHECK_OK(whole ? PtlPut(md, PTL_NO_ACK_REQ, id_of(ni, 0), PT, 0, put_bits,
					 FAR, i)
			       : PtlPutRegion(md, offset, length, PTL_NO_ACK_REQ,
					 id_of(ni, 0), PT, 0, put_bits, FAR, i));
		if (posted)
			side_join(other);
		CHECK_EQ(status_of(ni, PTL_SR_SEND_COUNT) - count, 1);
		CHECK_EQ(status_of(ni, PTL_SR_SEND_LENGTH) - bytes, length);
		ptlx_stats_t after = stats_of(ni);
		CHECK_EQ(after.puts_eager - before.puts_eager,
			length > 16 && fits_lane(length));
		CHECK_EQ(after.msgs_sent - before.msgs_sent, 1);
		CHECK_EQ(after.bytes_sent - before.bytes_sent, length);
		CHECK_EQ(after.puts_inline - before.puts_inline, length <= 16);
		ptl_event_t ev = expect(sent, PTL_EVENT_SEND_END);
		check_event(&ev, from, offset, length, i);
		ev = expect(came, PTL_EVENT_PUT_END);
		check_event(&ev, to, FAR, length, i);
		CHECK_PATTERN(to + FAR, offset, length, i);
		CHECK_ZERO(to, FAR);
		CHECK_ZERO(to + FAR + length, ROOM - FAR - length);
	}
	CHECK_OK(PtlMDUnlink(md));
	CHECK_OK(PtlMDUnlink(target));
}

static void run_with_gate(unsigned nodes, nodes_fn *fn)
{
	gate = gate_new(2);
	run_nodes(nodes, fn, NULL);
	gate_free(gate);
}

static void lengths_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	static const size_t lengths[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 32, 33, 64,
		80, 81, 144, 145, 1000, 1024, 1535, 1536};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		put_often(ni, lengths[i], false, false);
		put_often(ni, lengths[i], true, false);
		put_often(ni, lengths[i], i % 2, true);
	}
}

static void puts_of_each_length_have_their_events(void **state)
{
	(void)state;
	run_with_gate(1, lengths_node);
}

/* ---- unusual descriptors and arguments ---- */

static ptl_md_t source(void *at, size_t len, ptl_handle_eq_t eq)
{
	return md_of(at, len, PTL_MD_EVENT_START_DISABLE, eq);
}

static int put_some(ptl_handle_md_t md, ptl_size_t length, ptl_process_id_t to,
	ptl_ack_req_t ack, ptl_pt_index_t pt)
{
	return PtlPutRegion(md, 0, length, ack, to, pt, 0, 1, 0, 5);
}

NODES_CASE(unusual_descriptors_have_their_events, 1)
{
	UNUSED_ARGS;
	unsigned char *at = node_pattern(ROOM, 3), *to = node_alloc(ROOM);
	ptl_handle_eq_t eq = eq_new(ni, 8), came = eq_new(ni, 64);
	ptl_process_id_t self = id_of(ni, 0);
	post_md(ni, PT, 1, md_of(to, ROOM, MD_ANY | PTL_MD_EVENT_START_DISABLE, came));
	for (unsigned i = 0; i < 20; i++) /* the ring is open after some of these */
		CHECK_OK(put_to(ni, bind_md(ni, source(at, 8, PTL_EQ_NONE)), 0, PT, 1,
			PTL_NO_ACK_REQ));

	ptl_handle_md_t md = bind_md(ni, md_of(at, 8, 0, eq));
	CHECK_OK(put_some(md, 8, self, PTL_NO_ACK_REQ, PT));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_START).hdr_data, 5);
	(void)expect(eq, PTL_EVENT_SEND_END);

	ptl_md_t d = source(at, 8, eq);
	d.threshold = 2;
	CHECK_OK(PtlMDBind(ni, d, PTL_UNLINK, &md));
	CHECK_OK(put_some(md, 8, self, PTL_NO_ACK_REQ, PT));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).md.threshold, 1);
	CHECK_OK(put_some(md, 8, self, PTL_NO_ACK_REQ, PT));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).md.threshold, 0);
	(void)expect(eq, PTL_EVENT_UNLINK);
	CHECK_RC(put_some(md, 8, self, PTL_NO_ACK_REQ, PT), PTL_MD_INVALID);

	ptl_md_iovec_t pieces[2] = {{at, 3}, {at + 100, 5}};
	d = source(pieces, 2, eq);
	d.options |= PTL_MD_IOVEC;
	md = bind_md(ni, d);
	CHECK_OK(put_some(md, 8, self, PTL_NO_ACK_REQ, PT));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).mlength, 8);
	for (unsigned i = 0; i < 20 + 4; i++)
		CHECK_EQ(expect(came, PTL_EVENT_PUT_END).mlength, 8);
	CHECK_PATTERN(to, 0, 3, 3);
	CHECK_PATTERN(to + 3, 100, 5, 3);
	expect_empty(eq);
}

NODES_CASE(unusual_arguments_are_checked, 1)
{
	UNUSED_ARGS;
	unsigned char *at = node_pattern(ROOM, 3);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_process_id_t self = id_of(ni, 0), any = {self.nid, PTL_PID_ANY};
	ptl_handle_md_t md = bind_md(ni, source(at, ROOM, eq)), none = md + (1u << 24);
	post_md(ni, PT, 1, md_of(node_alloc(ROOM), ROOM, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	for (unsigned i = 0; i < 20; i++) {
		CHECK_OK(PtlPutRegion(md, 0, 8, PTL_NO_ACK_REQ, self, PT, 0, 1, 0, 0));
		(void)expect(eq, PTL_EVENT_SEND_END);
	}
	CHECK_RC(put_some(md, ROOM + 1, self, PTL_NO_ACK_REQ, PT), PTL_MD_ILLEGAL);
	CHECK_RC(put_some(md, P3_WHOLE, self, PTL_NO_ACK_REQ, PT), PTL_MD_ILLEGAL);
	CHECK_RC(put_some(none, 8, self, PTL_NO_ACK_REQ, PT), PTL_MD_INVALID);
	CHECK_RC(put_some(eq, 8, self, PTL_NO_ACK_REQ, PT), PTL_MD_INVALID);
	CHECK_RC(put_some(md, 8, any, PTL_NO_ACK_REQ, PT), PTL_PROCESS_INVALID);
	any = (ptl_process_id_t){PTL_NID_ANY, self.pid};
	CHECK_RC(put_some(md, 8, any, PTL_NO_ACK_REQ, PT), PTL_PROCESS_INVALID);

	CHECK_OK(put_some(md, 1537, self, PTL_NO_ACK_REQ, PT));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).mlength, 1537);
	CHECK_OK(put_some(md, 17, self, PTL_ACK_REQ, PT));
	(void)expect(eq, PTL_EVENT_SEND_END);
	(void)expect(eq, PTL_EVENT_ACK);
	uint64_t drops = drops_of(ni);
	CHECK_OK(put_some(md, 8, self, PTL_NO_ACK_REQ, 0x10000 + PT));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).pt_index, 0x10000 + PT);
	run_for_drops(ni, drops + 1);
	const ptl_process_id_t other = {self.nid, self.pid + 3};
	CHECK_OK(put_some(md, 8, other, PTL_NO_ACK_REQ, PT));
	CHECK_EQ(next_event(eq).ni_fail_type, PTL_NI_FAIL);
	expect_empty(eq);
}

/* ---- the lane ---- */

/* Puts of all lengths to a node that takes them when it likes: none is lost, and all are
 * in order, through several laps of the ring and while it is full.  The bytes of a window
 * have places of their own, since the target looks at them while later ones come. */
NODES_CASE(puts_of_all_lengths_come_in_order, 2)
{
	UNUSED_ARGS;
	enum { MOST = 200, WINDOW = 32 };
	unsigned n = rounds(20000);
	unsigned char *at = node_pattern(MOST, 9);
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t md = bind_md(ni, source(at, MOST, PTL_EQ_NONE));
	if (rank == 1)
		post_md(ni, PT, 1,
			md_of(node_alloc(WINDOW * MOST), WINDOW * MOST,
				MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
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

static void take_all(ptl_handle_eq_t eq, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		CHECK_EQ(expect(eq, PTL_EVENT_PUT_END).hdr_data, i);
}

/* Put while the target takes nothing.  Before that it has taken part of a lap, so that
 * its credit is not the end of the ring.  Every which-th put wants an ACK. */
static void to_a_still_target(unsigned rank, ptl_handle_ni_t ni, unsigned which)
{
	enum { PART = 700, N = 3700 };
	ptl_handle_eq_t eq = eq_new(ni, 2 * N);
	ptl_handle_md_t md = bind_md(ni, source(node_alloc(8), 8, eq_new(ni, 8)));
	if (rank == 1)
		post_md(ni, PT, 1,
			md_of(node_alloc(8), 8, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
	sync_nodes();
	for (unsigned i = 0; i < N; i++) {
		if (i == PART && rank == 1) {
			take_all(eq, 0, PART);
			nic_hold(nic());
		}
		if (i == PART)
			gate_wait(gate);
		ptl_ack_req_t ack =
			i > PART && i % which == 0 ? PTL_ACK_REQ : PTL_NO_ACK_REQ;
		if (rank == 0)
			CHECK_OK(PtlPutRegion(
				md, 0, 8, ack, id_of(ni, 1), PT, 0, 1, 0, i));
	}
	gate_wait(gate);
	if (rank == 1) {
		p3_lease_leave(nic());
		take_all(eq, PART, N);
	}
	sync_nodes();
}

static void full_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	to_a_still_target(rank, ni, UINT32_MAX);
}

static void puts_fill_the_ring_and_no_more(void **state)
{
	(void)state;
	run_with_gate(2, full_node);
}

static void waiting_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	to_a_still_target(rank, ni, 5);
}

/* Requests that want an ACK wait when the room for responses is used up, while the
 * request ring has room. */
static void no_put_overtakes_a_waiting_request(void **state)
{
	(void)state;
	run_with_gate(2, waiting_node);
}

static void dead_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t md = bind_md(ni, source(node_alloc(8), 8, eq));
	ptl_process_id_t to = id_of(ni, 1);
	sync_nodes();
	for (unsigned i = 0; i < 50 * TRIES && rank == 0; i++) {
		CHECK_OK(PtlPutRegion(md, 0, 8, PTL_NO_ACK_REQ, to, PT, 0, 1, 0, i));
		(void)expect(eq, PTL_EVENT_SEND_END);
		if (p3_ring_runs(&nic()->peer[1].req_out, 1))
			break; /* the ring is open now */
		sched_yield();
	}
	sync_nodes();
	if (rank == 1) {
		node_die();
		return;
	}
	for (enum p3_peer_state state = P3_LIVE; state != P3_DEAD; sched_yield()) {
		nic_hold(nic());
		(void)p3_pass_run(nic());
		state = (enum p3_peer_state)nic()->peer[1].state;
		p3_lease_leave(nic());
	}
	CHECK_OK(PtlPutRegion(md, 0, 8, PTL_NO_ACK_REQ, to, PT, 0, 1, 0, 0));
	CHECK_EQ(next_event(eq).ni_fail_type, PTL_NI_FAIL);
}

/* Puts to a node that ends fail once its end is known. */
static void puts_to_a_dead_node_fail(void **state)
{
	(void)state;
	run_nodes(2, dead_node, NULL);
}

/* ---- the lease ---- */

static void held_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t md = bind_md(ni, source(node_alloc(8), 8, eq));
	for (unsigned i = 0; i < 20; i++) {
		struct side *other = side_start(hold_for_a_while, NULL);
		gate_wait(gate);
		CHECK_OK(PtlPutRegion(
			md, 0, 8, PTL_NO_ACK_REQ, id_of(ni, 0), PT, 0, 1, 0, i));
		side_join(other);
		CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).hdr_data, i);
	}
}

/* While another thread has the lease, the put is a command in the mailbox. */
static void a_put_without_the_lease_is_posted(void **state)
{
	(void)state;
	run_with_gate(1, held_node);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(puts_of_each_length_have_their_events),
		cmocka_unit_test(unusual_descriptors_have_their_events),
		cmocka_unit_test(unusual_arguments_are_checked),
		cmocka_unit_test(puts_of_all_lengths_come_in_order),
		cmocka_unit_test(puts_fill_the_ring_and_no_more),
		cmocka_unit_test(no_put_overtakes_a_waiting_request),
		cmocka_unit_test(puts_to_a_dead_node_fail),
		cmocka_unit_test(a_put_without_the_lease_is_posted),
	};
	return RUN_CASES(cases);
}
