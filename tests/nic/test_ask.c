/* SPDX-License-Identifier: BSD-3-Clause */
/* Acknowledged puts and gets: all lengths, unusual descriptors and arguments, targets
 * that answer late or never, threads and signal handlers. */
#include "nic/obj/state.h"
#include "nic/proto/state.h"
#include "nic/run/lease.h"
#include "cases.h"

#include "support/hold.h"
#include "support/pools.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum { PT = 6, TRIES = 200, ROOM = 4096, FAR = 32, BITS = 0x12345678, STORM_MS = 1000 };

static void expect_full(void)
{
	struct patience p = patience_begin();
	const char *what;
	unsigned of;
	while ((what = pools_left(nic(), &of)) && !patience_is_over(&p))
		sleep_ms(1);
	if (what)
		check_failed(__FILE__, __LINE__, "%s is left of node %u", what, of);
}

/* ---- all lengths ---- */

static struct gate *gate; /* of two threads, without the library */

static void run_with_gate(unsigned nodes, nodes_fn *fn)
{
	gate = gate_new(2);
	run_nodes(nodes, fn, NULL);
	gate_free(gate);
}

static void hold_for_a_while(void *arg)
{
	(void)arg;
	nic_hold_until_posted(nic(), gate);
}

/* One request of rank 0 to itself. */
struct call {
	ptl_handle_ni_t ni;
	ptl_handle_md_t md;
	size_t offset, length;
	bool get;
	bool whole; /* by PtlPut or PtlGet, else by the call with a region */
};

static int ask_now(const struct call *c)
{
	ptl_process_id_t to = id_of(c->ni, 0);
	if (c->get)
		return c->whole ? PtlGet(c->md, to, PT, 0, BITS, FAR)
				: PtlGetRegion(c->md, c->offset, c->length, to, PT, 0,
					  BITS, FAR);
	return c->whole ? PtlPut(c->md, PTL_ACK_REQ, to, PT, 0, BITS, FAR, 77)
			: PtlPutRegion(c->md, c->offset, c->length, PTL_ACK_REQ, to, PT,
				  0, BITS, FAR, 77);
}

/* Ask, and check the registers.  posted: another thread has the lease, so the request
 * is a command. */
static void ask(const struct call *c, bool posted)
{
	int64_t count = status_of(c->ni, PTL_SR_SEND_COUNT);
	int64_t bytes = status_of(c->ni, PTL_SR_SEND_LENGTH);
	struct side *other = posted ? side_start(hold_for_a_while, NULL) : NULL;
	if (posted)
		gate_wait(gate);
	CHECK_OK(ask_now(c));
	if (posted)
		side_join(other);
	CHECK_EQ(status_of(c->ni, PTL_SR_SEND_COUNT) - count, 1);
	CHECK_EQ(status_of(c->ni, PTL_SR_SEND_LENGTH) - bytes, c->get ? 0 : c->length);
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
}

/* The same request again and again, to all places of the ring. */
static void ask_again(
	ptl_handle_ni_t ni, bool is_get, size_t length, bool whole, bool posted)
{
	unsigned char *here = node_alloc(ROOM), *there = node_alloc(ROOM);
	ptl_handle_eq_t own = eq_new(ni, 8), came = eq_new(ni, 8);
	ptl_handle_md_t target = post_md(ni, PT, BITS,
		md_of(there, ROOM, MD_ANY | PTL_MD_EVENT_START_DISABLE, came));
	size_t size = whole ? length : ROOM;
	struct call c = {.ni = ni,
		.offset = whole ? 0 : 3,
		.length = length,
		.get = is_get,
		.whole = whole};
	unsigned char *from = is_get ? there : here, *to = is_get ? here : there;
	size_t at = is_get ? c.offset : FAR, of = is_get ? FAR : c.offset;
	size_t most = is_get ? size : ROOM;
	c.md = bind_md(ni, md_of(here, size, PTL_MD_EVENT_START_DISABLE, own));
	for (unsigned i = 0; i < (posted ? 4 : rounds(TRIES)); i++) {
		memset(to, 0, most);
		fill_pattern(from, is_get ? ROOM : size, i);
		ask(&c, posted);
		if (!is_get)
			check_event(own, PTL_EVENT_SEND_END, &c, here, c.offset);
		check_event(came, is_get ? PTL_EVENT_GET_END : PTL_EVENT_PUT_END, &c,
			there, FAR);
		check_event(
			own, is_get ? PTL_EVENT_REPLY_END : PTL_EVENT_ACK, &c, here, FAR);
		CHECK_ZERO(to, at);
		CHECK_PATTERN(to + at, of, length, i);
		CHECK_ZERO(to + at + length, most - at - length);
	}
	expect_empty(own);
	CHECK_OK(PtlMDUnlink(c.md));
	CHECK_OK(PtlMDUnlink(target));
}

static void lengths_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	static const size_t lengths[] = {0, 1, 3, 7, 8, 9, 15, 16, 17, 39, 40, 41, 100};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		for (unsigned how = 0; how < 8; how++)
			ask_again(ni, how & 1, lengths[i], how & 2, how & 4);
	expect_full();
}

static void requests_of_each_length_have_their_events(void **state)
{
	(void)state;
	run_with_gate(1, lengths_node);
}

/* ---- unusual descriptors and arguments ---- */

static ptl_md_t source(void *at, size_t len, ptl_handle_eq_t eq)
{
	return md_of(at, len, PTL_MD_EVENT_START_DISABLE, eq);
}

static ptl_md_t sink(void *at, size_t len, ptl_handle_eq_t eq)
{
	return md_of(at, len, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq);
}

static int acked(ptl_handle_md_t md, ptl_size_t length, ptl_process_id_t to)
{
	return PtlPutRegion(md, 0, length, PTL_ACK_REQ, to, PT, 0, BITS, 0, 5);
}

static int get(ptl_handle_md_t md, ptl_size_t length, ptl_process_id_t to)
{
	return PtlGetRegion(md, 0, length, to, PT, 0, BITS, 0);
}

/* Requests of rank 0 until the ring to this rank is open for the next one. */
static void open_ring(ptl_handle_ni_t ni, unsigned rank)
{
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_handle_md_t md = bind_md(ni, source(node_alloc(8), 8, eq));
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
	UNUSED_ARGS;
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
	CHECK_OK(get(md, 8, self)); /* START events are the reply's concern */
	(void)expect(eq, PTL_EVENT_REPLY_START);
	(void)expect(eq, PTL_EVENT_REPLY_END);

	md = bind_md(ni, md_of(at, 8, MD_QUIET, eq));
	CHECK_OK(acked(md, 8, self));
	(void)expect(eq, PTL_EVENT_ACK);

	md = bind_md(ni, source(at, 8, PTL_EQ_NONE));
	CHECK_OK(acked(md, 8, self)); /* an ACK needs a queue */

	ptl_md_t d = source(at, 8, eq);
	d.threshold = 3;
	CHECK_OK(PtlMDBind(ni, d, PTL_UNLINK, &md));
	CHECK_OK(acked(md, 8, self));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).md.threshold, 2);
	CHECK_EQ(expect(eq, PTL_EVENT_ACK).md.threshold, 1);
	CHECK_OK(get(md, 8, self));
	CHECK_EQ(expect(eq, PTL_EVENT_REPLY_END).md.threshold, 0);
	(void)expect(eq, PTL_EVENT_UNLINK);
	CHECK_RC(get(md, 8, self), PTL_MD_INVALID);

	ptl_md_iovec_t pieces[2] = {{at, 3}, {at + 100, 5}};
	d = source(pieces, 2, eq);
	d.options |= PTL_MD_IOVEC;
	md = bind_md(ni, d);
	fill_pattern(there, 8, 9);
	CHECK_OK(get(md, 8, self));
	CHECK_EQ(expect(eq, PTL_EVENT_REPLY_END).mlength, 8);
	CHECK_PATTERN(at, 0, 3, 9);
	CHECK_PATTERN(at + 100, 3, 5, 9);
	expect_empty(eq);
	expect_full();
}

NODES_CASE(unusual_arguments_are_checked, 1)
{
	UNUSED_ARGS;
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_process_id_t self = id_of(ni, 0), any = {self.nid, PTL_PID_ANY};
	ptl_process_id_t other = {self.nid, self.pid + 3};
	ptl_handle_md_t md = bind_md(ni, source(node_alloc(ROOM), ROOM, eq));
	post_md(ni, PT, BITS,
		md_of(node_alloc(ROOM), ROOM, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	open_ring(ni, 0);
	CHECK_RC(acked(md, ROOM + 1, self), PTL_MD_ILLEGAL);
	CHECK_RC(acked(md, P3_WHOLE, self), PTL_MD_ILLEGAL);
	CHECK_RC(get(md, ROOM + 1, self), PTL_MD_ILLEGAL);
	CHECK_RC(get(md, P3_WHOLE, self), PTL_MD_ILLEGAL);
	CHECK_RC(acked(md + (1u << 24), 8, self), PTL_MD_INVALID);
	CHECK_RC(get(eq, 8, self), PTL_MD_INVALID);
	CHECK_RC(acked(md, 8, any), PTL_PROCESS_INVALID);
	CHECK_RC(get(md, 8, any), PTL_PROCESS_INVALID);
	CHECK_OK(acked(md, 17, self));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).mlength, 17);
	CHECK_EQ(expect(eq, PTL_EVENT_ACK).mlength, 17);
	CHECK_OK(get(md, 41, self));
	CHECK_EQ(expect(eq, PTL_EVENT_REPLY_END).mlength, 41);
	CHECK_OK(get(md, 8, other));
	CHECK_EQ(next_event(eq).ni_fail_type, PTL_NI_FAIL);
	CHECK_OK(acked(md, 8, other));
	CHECK_EQ(next_event(eq).ni_fail_type, PTL_NI_FAIL);
	expect_empty(eq);
	expect_full();
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
	gate_wait(gate);
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

static void dead_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	unsigned sent = 0, failed = 0;
	ptl_handle_eq_t eq = eq_new(ni, 1024);
	ptl_handle_md_t md = bind_md(ni, source(node_alloc(8), 8, eq));
	meet_a_still_target(rank, ni);
	if (rank == 1) {
		gate_wait(gate);
		node_die_holding();
		return;
	}
	ask_often(ni, md, md);
	gate_wait(gate);
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
}

/* Each get fails once, no put is acknowledged, and no pending is left. */
static void requests_end_with_their_target(void **state)
{
	(void)state;
	run_with_gate(2, dead_node);
}

static void unlinked_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	unsigned char *at = node_alloc(8);
	ptl_handle_eq_t eq = eq_new(ni, 1024);
	ptl_handle_md_t puts = bind_md(ni, source(node_alloc(8), 8, eq));
	ptl_handle_md_t gets = bind_md(ni, source(at, 8, eq));
	meet_a_still_target(rank, ni);
	if (rank == 1) {
		gate_wait(gate);
		p3_lease_leave(nic());
		sync_nodes();
		return;
	}
	uint64_t drops = drops_of(ni);
	ask_often(ni, puts, gets);
	CHECK_OK(PtlMDUnlink(puts));
	CHECK_OK(PtlMDUnlink(gets));
	ptl_handle_md_t next = bind_md(ni, source(at, 8, eq)); /* perhaps in its place */
	gate_wait(gate);
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

/* Answers for descriptors that were unlinked meanwhile are dropped, and touch nothing. */
static void answers_for_unlinked_descriptors_are_dropped(void **state)
{
	(void)state;
	run_with_gate(2, unlinked_node);
}

static void closed_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	unsigned char *at = node_alloc(8);
	ptl_handle_ni_t second = PTL_INVALID_HANDLE;
	ptl_handle_eq_t eq = eq_new(ni, 1024);
	ptl_handle_md_t md = bind_md(ni, source(node_alloc(8), 8, eq));
	meet_a_still_target(rank, ni);
	if (rank == 1) {
		gate_wait(gate);
		p3_lease_leave(nic());
		sync_nodes();
		return;
	}
	CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &second));
	ptl_md_t d = source(at, 8, eq_new(second, 1024));
	ptl_handle_md_t closed = bind_md(second, d);
	ask_often(ni, closed, closed);
	CHECK_OK(acked(md, 8, id_of(ni, 1)));
	CHECK_OK(PtlNIFini(second));
	CHECK_OK(get(md, 8, id_of(ni, 1)));
	gate_wait(gate);
	(void)expect(eq, PTL_EVENT_SEND_END);
	(void)expect(eq, PTL_EVENT_ACK);
	(void)expect(eq, PTL_EVENT_REPLY_END);
	expect_empty(eq);
	CHECK_ZERO(at, 8);
	expect_full();
	sync_nodes();
}

/* The answers for an interface that was closed meanwhile go nowhere; those for the other
 * one come. */
static void answers_for_a_closed_interface_go_nowhere(void **state)
{
	(void)state;
	run_with_gate(2, closed_node);
}

static void full_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	enum { N = 3700 };
	ptl_handle_eq_t eq = eq_new(ni, 4 * N), came = eq_new(ni, 4 * N);
	ptl_handle_md_t md = bind_md(ni, source(node_alloc(8), 8, eq));
	if (rank == 1)
		post_md(ni, PT + 1, BITS, sink(node_alloc(8), 8, came));
	meet_a_still_target(rank, ni);
	for (unsigned i = 0; i < N && rank == 0; i++)
		CHECK_OK(
			i % 3 ? PtlPutRegion(md, 0, 8, PTL_ACK_REQ, id_of(ni, 1), PT + 1,
					0, BITS, 0, i)
			      : PtlGetRegion(md, 0, 8, id_of(ni, 1), PT + 1, 0, BITS, 0));
	gate_wait(gate);
	if (rank == 1)
		p3_lease_leave(nic());
	for (unsigned i = 0; i < N && rank == 1; i++) {
		ptl_event_t ev = next_event(came);
		CHECK_EQ(ev.type, i % 3 ? PTL_EVENT_PUT_END : PTL_EVENT_GET_END);
		CHECK(i % 3 == 0 || ev.hdr_data == i);
	}
	unsigned sent = 0, answered = 0;
	while (rank == 0 && (answered < N || sent < N - (N + 2) / 3)) {
		ptl_event_t ev = next_event(eq);
		if (ev.type == PTL_EVENT_SEND_END) {
			sent++;
			continue;
		}
		CHECK_EQ(ev.type, answered % 3 ? PTL_EVENT_ACK : PTL_EVENT_REPLY_END);
		answered++;
	}
	if (rank == 0)
		expect_full();
	sync_nodes();
}

/* Requests fill the ring, and the room for responses, and no more; all are answered in
 * order, and none overtakes those that wait. */
static void requests_fill_the_ring_and_no_more(void **state)
{
	(void)state;
	run_with_gate(2, full_node);
}

static void limited_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	uint32_t most = P3_TABLE_EACH, asked = 0;
	ptl_handle_eq_t eq = eq_new(ni, 4096);
	ptl_handle_md_t md = bind_md(ni, source(node_alloc(8), 8, eq));
	nic_hold(nic());
	nic()->conf.pending_limit = most * sizeof(struct p3_pending);
	p3_lease_leave(nic());
	meet_a_still_target(rank, ni);
	if (rank == 1) {
		gate_wait(gate);
		p3_lease_leave(nic());
		sync_nodes();
		return;
	}
	int rc;
	while ((rc = get(md, 8, id_of(ni, 1))) == PTL_OK)
		CHECK(++asked <= most);
	CHECK_EQ(rc, PTL_NO_SPACE);
	CHECK_EQ(asked, most);
	CHECK_RC(acked(md, 8, id_of(ni, 1)), PTL_NO_SPACE);
	gate_wait(gate);
	for (uint32_t i = 0; i < asked; i++)
		(void)expect(eq, PTL_EVENT_REPLY_END);
	CHECK_OK(acked(md, 8, id_of(ni, 1)));
	(void)expect(eq, PTL_EVENT_SEND_END);
	(void)expect(eq, PTL_EVENT_ACK);
	expect_empty(eq);
	expect_full();
	sync_nodes();
}

/* Without a free pending a call returns PTL_NO_SPACE; answers make room. */
static void pendings_run_out(void **state)
{
	(void)state;
	run_with_gate(2, limited_node);
}

/* ---- other threads, signal handlers ---- */

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
	ptl_handle_md_t md = bind_md(a->ni, source(at, 16, eq));
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
	UNUSED_ARGS;
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

static void held_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t md = bind_md(ni, source(node_alloc(8), 8, eq));
	post_md(ni, PT, BITS, md_of(node_alloc(8), 8, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	for (unsigned i = 0; i < 20; i++) {
		struct side *other = side_start(hold_for_a_while, NULL);
		gate_wait(gate);
		CHECK_OK(i % 2 ? get(md, 8, id_of(ni, 0)) : acked(md, 8, id_of(ni, 0)));
		side_join(other);
		if (i % 2 == 0)
			(void)expect(eq, PTL_EVENT_SEND_END);
		(void)expect(eq, i % 2 ? PTL_EVENT_REPLY_END : PTL_EVENT_ACK);
	}
}

/* While another thread has the lease, the request is a command in the mailbox. */
static void a_request_without_the_lease_is_posted(void **state)
{
	(void)state;
	run_with_gate(1, held_node);
}

static struct {
	ptl_handle_md_t md;
	ptl_process_id_t self;
	p3_a32 handled, put, got, wrong, stop;
} storm;

static void count(int rc, p3_a32 *ok)
{
	if (rc == PTL_OK)
		p3_add32(ok, 1);
	else if (rc != PTL_NO_SPACE)
		p3_add32(&storm.wrong, 1);
}

static void handler(int number)
{
	(void)number;
	count(acked(storm.md, 8, storm.self), &storm.put);
	count(get(storm.md, 8, storm.self), &storm.got);
	p3_add32(&storm.handled, 1);
}

/* Send one signal after another, each when the last one was handled. */
static void *thunder(void *arg)
{
	uint64_t until = now_ms() + STORM_MS;
	for (uint32_t i = 0; i < rounds(5000) && now_ms() < until; i++) {
		(void)pthread_kill(*(pthread_t *)arg, SIGUSR1);
		while (p3_get(&storm.handled) <= i)
			sched_yield();
	}
	p3_set(&storm.stop, 1);
	return NULL;
}

static void ask_in_a_storm(ptl_handle_ni_t ni, ptl_handle_eq_t eq, ptl_handle_md_t md)
{
	ptl_process_id_t self = id_of(ni, 0);
	while (!p3_get(&storm.stop)) {
		CHECK_OK(acked(md, 8, self));
		(void)expect(eq, PTL_EVENT_SEND_END);
		(void)expect(eq, PTL_EVENT_ACK);
		CHECK_OK(get(md, 8, self));
		(void)expect(eq, PTL_EVENT_REPLY_END);
	}
}

NODES_CASE(handlers_interrupt_requests, 1)
{
	UNUSED_ARGS;
	struct sigaction act = {.sa_handler = handler}, before;
	pthread_t self = pthread_self(), other;
	ptl_handle_eq_t eq = eq_new(ni, 64), theirs = eq_new(ni, 1 << 15);
	ptl_handle_md_t md = bind_md(ni, source(node_alloc(8), 8, eq));
	post_md(ni, PT, BITS, md_of(node_alloc(8), 8, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	memset(&storm, 0, sizeof storm);
	storm.self = id_of(ni, 0);
	storm.md = bind_md(ni, source(node_alloc(8), 8, theirs));
	CHECK(sigaction(SIGUSR1, &act, &before) == 0);
	CHECK(pthread_create(&other, NULL, thunder, &self) == 0);
	ask_in_a_storm(ni, eq, md);
	CHECK(pthread_join(other, NULL) == 0);
	CHECK(sigaction(SIGUSR1, &before, NULL) == 0);
	CHECK_EQ(p3_get(&storm.wrong), 0);
	CHECK(p3_get(&storm.put) > 0 && p3_get(&storm.got) > 0);
	uint32_t seen[3] = {0, 0, 0}, puts = p3_get(&storm.put),
		 gets = p3_get(&storm.got);
	while (seen[0] < puts || seen[1] < puts || seen[2] < gets) {
		ptl_event_t ev = next_event(theirs);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		seen[ev.type == PTL_EVENT_SEND_END ? 0
			: ev.type == PTL_EVENT_ACK ? 1
						   : 2]++;
	}
	CHECK(seen[0] == puts && seen[1] == puts && seen[2] == gets);
	expect_empty(theirs);
	expect_full();
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(requests_of_each_length_have_their_events),
		cmocka_unit_test(unusual_descriptors_have_their_events),
		cmocka_unit_test(unusual_arguments_are_checked),
		cmocka_unit_test(requests_end_with_their_target),
		cmocka_unit_test(answers_for_unlinked_descriptors_are_dropped),
		cmocka_unit_test(answers_for_a_closed_interface_go_nowhere),
		cmocka_unit_test(requests_fill_the_ring_and_no_more),
		cmocka_unit_test(pendings_run_out),
		cmocka_unit_test(threads_ask_at_the_same_time),
		cmocka_unit_test(a_request_without_the_lease_is_posted),
		cmocka_unit_test(handlers_interrupt_requests),
	};
	return RUN_CASES(cases);
}
