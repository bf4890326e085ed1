/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts on the straight path and one step beside it: both do the same.  A put took the
 * straight path if its target is in nic->latest afterwards: only that path and the one of
 * requests with a response (test_ask.c) enter a target there; others only clear it.
 */
#include "nic/obj/state.h"
#include "nic/proto/state.h"
#include "nic/run/lease.h"
#include "cases.h"

#include "lib/node/node.h"
#include "shm/variant.h"
#include "support/hold.h"

#include <sched.h>

enum { PT = 6, TRIES = 200, ROOM = 4096 };

static struct p3_nic *nic(void)
{
	return p3_nic(p3_node());
}

static void forget_target(void)
{
	nic_hold(nic());
	nic()->latest = (struct p3_id){.peer = &nic()->absent};
	p3_lease_leave(nic());
}

static bool went_straight(void)
{
	return nic()->latest.peer != &nic()->absent;
}

/* Return true if puts of this run must go straight sooner or later. */
static bool is_straight(void)
{
#if defined(P3_STRAIGHT_RANDOM) || defined(P3_STRAIGHT_OFF)
	return false;
#else
	const char *mode = getenv("PTL3_MODE");
	return !nic()->wired && !nic()->conf.base_lanes_only &&
	       (!mode || strcmp(mode, "dedicated") != 0);
#endif
}

/* One put of rank 0 to itself. */
struct call {
	ptl_handle_ni_t ni;
	ptl_handle_md_t md;
	size_t offset, length;
	bool whole;     /* by PtlPut, else by PtlPutRegion */
	bool generally; /* by the command that the general path executes */
};

static int put_generally(const struct call *call, uint64_t hdr)
{
	struct p3_cmd c = {.op = P3_OP_PUT,
		.handle = call->md,
		.move = {.target = id_of(call->ni, 0),
			.pt_index = PT,
			.bits = 0x1234567890abcdef,
			.hdr = hdr,
			.remote_offset = 32,
			.offset = call->offset,
			.length = call->whole ? P3_WHOLE : call->length}};
	return p3_nic_do(nic(), &c);
}

static int put(const struct call *c, uint64_t hdr)
{
	const uint64_t bits = 0x1234567890abcdef;
	if (c->generally)
		return put_generally(c, hdr);
	if (c->whole)
		return PtlPut(
			c->md, PTL_NO_ACK_REQ, id_of(c->ni, 0), PT, 0, bits, 32, hdr);
	return PtlPutRegion(c->md, c->offset, c->length, PTL_NO_ACK_REQ, id_of(c->ni, 0),
		PT, 0, bits, 32, hdr);
}

/* All that a program sees of a put. */
struct seen {
	int rc;
	ptl_event_t sent, came;
	ptlx_stats_t stats;
	ptl_sr_value_t count, length;
};

static struct seen look(ptl_handle_ni_t ni)
{
	struct seen s = {.stats = {.struct_size = sizeof s.stats}};
	CHECK_OK(PtlXStats(ni, &s.stats));
	CHECK_OK(PtlNIStatus(ni, PTL_SR_SEND_COUNT, &s.count));
	CHECK_OK(PtlNIStatus(ni, PTL_SR_SEND_LENGTH, &s.length));
	return s;
}

/* Clear all that differs between two puts: the numbers, and padding, in which events have
 * words of their records. */
static ptl_event_t without_numbers(ptl_event_t ev)
{
	ev.link = ev.sequence = 0;
	memset((char *)&ev + offsetof(ptl_event_t, md.threshold) + 4, 0, 4);
	memset((char *)&ev + offsetof(ptl_event_t, md.options) + 4, 0, 4);
	return ev;
}

/* Make the call, and return what it has changed. */
static struct seen watch(const struct call *c, ptl_handle_eq_t sent, ptl_handle_eq_t came)
{
	static uint64_t hdr = 77;
	struct seen before = look(c->ni), after;
	int rc = put(c, hdr);
	after = look(c->ni);
	after.rc = rc;
	after.stats.msgs_sent -= before.stats.msgs_sent;
	after.stats.bytes_sent -= before.stats.bytes_sent;
	after.stats.puts_inline -= before.stats.puts_inline;
	after.stats.puts_eager -= before.stats.puts_eager;
	after.count -= before.count;
	after.length -= before.length;
	CHECK_OK(rc);
	after.sent = without_numbers(expect(sent, PTL_EVENT_SEND_END));
	after.came = without_numbers(expect(came, PTL_EVENT_PUT_END));
	return after;
}

static void check_same(const struct seen *a, const struct seen *b)
{
	CHECK_EQ(memcmp(&a->sent, &b->sent, sizeof a->sent), 0);
	CHECK_EQ(memcmp(&a->came, &b->came, sizeof a->came), 0);
	CHECK_EQ(a->stats.msgs_sent, b->stats.msgs_sent);
	CHECK_EQ(a->stats.bytes_sent, b->stats.bytes_sent);
	CHECK_EQ(a->stats.puts_inline, b->stats.puts_inline);
	CHECK_EQ(a->stats.puts_eager, b->stats.puts_eager);
	CHECK_EQ(a->count, b->count);
	CHECK_EQ(a->length, b->length);
}

/* The same put again and again, by both paths in turn, to all places of the ring. */
static void both_ways(ptl_handle_ni_t ni, size_t length, bool whole)
{
	unsigned straight = 0, n = rounds(TRIES);
	unsigned char *from = node_alloc(ROOM), *to = node_alloc(ROOM);
	ptl_handle_eq_t sent = eq_new(ni, 8), came = eq_new(ni, 8);
	ptl_handle_md_t target = post_md(ni, PT, 0x1234567890abcdef,
		md_of(to, ROOM, MD_ANY | PTL_MD_EVENT_START_DISABLE, came));
	size_t size = whole ? length : ROOM;
	struct call c = {
		.ni = ni, .offset = whole ? 0 : 3, .length = length, .whole = whole};
	c.md = bind_md(ni, md_of(from, size, PTL_MD_EVENT_START_DISABLE, sent));
	for (unsigned i = 0; i < n; i++) {
		struct seen seen[2];
		for (unsigned way = 0; way < 2; way++) {
			c.generally = way == 1;
			fill_pattern(from, size, 2 * i + way);
			memset(to, 0, ROOM);
			forget_target();
			seen[way] = watch(&c, sent, came);
			CHECK(!went_straight() || way == 0);
			straight += went_straight();
			CHECK_PATTERN(to + 32, c.offset, length, 2 * i + way);
			CHECK_ZERO(to + 32 + length, ROOM - 32 - length);
		}
		check_same(&seen[0], &seen[1]);
	}
	CHECK(straight > 0 || !is_straight());
	CHECK_OK(PtlMDUnlink(c.md));
	CHECK_OK(PtlMDUnlink(target));
}

NODES_CASE(both_paths_do_the_same, 1)
{
	UNUSED_ARGS;
	static const size_t lengths[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 32, 33, 64,
		80, 81, 144, 145, 1000, 1024, 1535, 1536};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		both_ways(ni, lengths[i], false);
		both_ways(ni, lengths[i], true);
	}
}

/* ---- one step beside the path ---- */

static ptl_md_t source(void *at, size_t len, ptl_handle_eq_t eq)
{
	return md_of(at, len, PTL_MD_EVENT_START_DISABLE, eq);
}

/* Put, and check that the put has not gone straight. */
static int put_beside(ptl_handle_md_t md, ptl_size_t length, ptl_process_id_t to,
	ptl_ack_req_t ack, ptl_pt_index_t pt)
{
	forget_target();
	int rc = PtlPutRegion(md, 0, length, ack, to, pt, 0, 1, 0, 5);
	CHECK(!went_straight());
	return rc;
}

NODES_CASE(unusual_descriptors_take_the_general_path, 1)
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
	CHECK_OK(put_beside(md, 8, self, PTL_NO_ACK_REQ, PT));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_START).hdr_data, 5);
	(void)expect(eq, PTL_EVENT_SEND_END);

	ptl_md_t d = source(at, 8, eq);
	d.threshold = 2;
	CHECK_OK(PtlMDBind(ni, d, PTL_UNLINK, &md));
	CHECK_OK(put_beside(md, 8, self, PTL_NO_ACK_REQ, PT));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).md.threshold, 1);
	CHECK_OK(put_beside(md, 8, self, PTL_NO_ACK_REQ, PT));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).md.threshold, 0);
	(void)expect(eq, PTL_EVENT_UNLINK);
	CHECK_RC(put_beside(md, 8, self, PTL_NO_ACK_REQ, PT), PTL_MD_INVALID);

	ptl_md_iovec_t pieces[2] = {{at, 3}, {at + 100, 5}};
	d = source(pieces, 2, eq);
	d.options |= PTL_MD_IOVEC;
	md = bind_md(ni, d);
	CHECK_OK(put_beside(md, 8, self, PTL_NO_ACK_REQ, PT));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).mlength, 8);
	for (unsigned i = 0; i < 20 + 4; i++)
		CHECK_EQ(expect(came, PTL_EVENT_PUT_END).mlength, 8);
	CHECK_PATTERN(to, 0, 3, 3);
	CHECK_PATTERN(to + 3, 100, 5, 3);
	expect_empty(eq);
}

NODES_CASE(unusual_arguments_take_the_general_path, 1)
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
	CHECK_RC(put_beside(md, ROOM + 1, self, PTL_NO_ACK_REQ, PT), PTL_MD_ILLEGAL);
	CHECK_RC(put_beside(md, P3_WHOLE, self, PTL_NO_ACK_REQ, PT), PTL_MD_ILLEGAL);
	CHECK_RC(put_beside(none, 8, self, PTL_NO_ACK_REQ, PT), PTL_MD_INVALID);
	CHECK_RC(put_beside(eq, 8, self, PTL_NO_ACK_REQ, PT), PTL_MD_INVALID);
	CHECK_RC(put_beside(md, 8, any, PTL_NO_ACK_REQ, PT), PTL_PROCESS_INVALID);
	any = (ptl_process_id_t){PTL_NID_ANY, self.pid};
	CHECK_RC(put_beside(md, 8, any, PTL_NO_ACK_REQ, PT), PTL_PROCESS_INVALID);

	CHECK_OK(put_beside(md, 1537, self, PTL_NO_ACK_REQ, PT));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).mlength, 1537);
	CHECK_OK(put_beside(md, 17, self, PTL_ACK_REQ, PT));
	(void)expect(eq, PTL_EVENT_SEND_END);
	(void)expect(eq, PTL_EVENT_ACK);
	uint64_t drops = drops_of(ni);
	CHECK_OK(put_beside(md, 8, self, PTL_NO_ACK_REQ, 0x10000 + PT));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).pt_index, 0x10000 + PT);
	run_for_drops(ni, drops + 1);
	const ptl_process_id_t other = {self.nid, self.pid + 3};
	CHECK_OK(put_beside(md, 8, other, PTL_NO_ACK_REQ, PT));
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

static struct gate *gate; /* of two threads, without the library */

static void run_with_gate(unsigned nodes, nodes_fn *fn)
{
	gate = gate_new(2);
	run_nodes(nodes, fn, NULL);
	gate_free(gate);
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
	CHECK(rank == 1 || !is_straight() || p3_ring_runs(&nic()->peer[1].req_out, 1));
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

static void hold_for_a_while(void *arg)
{
	(void)arg;
	nic_hold(nic());
	gate_wait(gate);
	while (!p3_mbx_any(nic()->mailbox)) /* the other thread's put has come */
		sched_yield();
	p3_lease_leave(nic());
}

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
		cmocka_unit_test(both_paths_do_the_same),
		cmocka_unit_test(unusual_descriptors_take_the_general_path),
		cmocka_unit_test(unusual_arguments_take_the_general_path),
		cmocka_unit_test(puts_of_all_lengths_come_in_order),
		cmocka_unit_test(puts_fill_the_ring_and_no_more),
		cmocka_unit_test(no_put_overtakes_a_waiting_request),
		cmocka_unit_test(puts_to_a_dead_node_fail),
		cmocka_unit_test(a_put_without_the_lease_is_posted),
	};
	return RUN_CASES(cases);
}
