/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short puts have ended when their call returns, in every state of the lane: SEND_END
 * is there, the descriptor can be unlinked, the bytes may change.  The target stands
 * still meanwhile: a thread of its own holds its lease and makes no pass.
 */
#include "nic/proto/proto.h"
#include "nic/run/lease.h"
#include "nic/xfer/xfer.h"
#include "cases.h"

#include "shm/why.h"
#include "support/asleep.h"
#include "support/hold.h"

enum { PT = 6, MOST = P3_SHORT_MOST, PER_TARGET = P3_COPIES_LEN / 4 };

static const size_t lengths[] = {0, 8, 80, 81, 128, 1000, 2000, 2001, 4049, MOST};
#define LENGTHS (sizeof lengths / sizeof *lengths)

/* Wait until all nodes are there and the chosen ones, or node 1, stand still. */
static void still_if(bool chosen)
{
	sync_nodes();
	meet_nodes();
	if (chosen)
		nic_hold(nic());
	meet_nodes();
}

static void still(unsigned rank)
{
	still_if(rank == 1);
}

static void go_on_if(bool chosen)
{
	meet_nodes();
	if (chosen)
		p3_lease_leave(nic());
}

static void go_on(unsigned rank)
{
	go_on_if(rank == 1);
}

static size_t length_of(unsigned i)
{
	return lengths[i % LENGTHS];
}

/* Return the bytes of this number of messages, one behind the other. */
static size_t bytes_of(unsigned messages)
{
	size_t all = 0;
	for (unsigned i = 0; i < messages; i++)
		all += length_of(i);
	return all;
}

static unsigned seed_of(unsigned i)
{
	return i % 251;
}

/* After the call: unlink the descriptor, check its events, and change its bytes. */
static void over(ptl_handle_eq_t eq, ptl_handle_md_t md, unsigned char *at, size_t len)
{
	ptl_event_t ev;
	CHECK_OK(PtlMDUnlink(md));
	memset(at, 0xee, len);
	CHECK_OK(PtlEQGet(eq, &ev));
	CHECK_EQ(ev.type, PTL_EVENT_SEND_START);
	CHECK_OK(PtlEQGet(eq, &ev));
	CHECK_EQ(ev.type, PTL_EVENT_SEND_END);
	CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
	CHECK_EQ(ev.mlength, len);
}

static void send_and_forget(ptl_handle_ni_t ni, ptl_handle_eq_t eq, unsigned n)
{
	unsigned char *at = node_alloc(MOST);
	for (unsigned i = 0; i < n; i++) {
		size_t len = length_of(i);
		fill_pattern(at, len, seed_of(i));
		ptl_handle_md_t md = bind_md(ni, md_of(at, len, 0, eq));
		CHECK_OK(put_to(ni, md, 1, PT, 1, i % 3 ? PTL_NOACK_REQ : PTL_ACK_REQ));
		over(eq, md, at, len);
	}
}

/* Check that messages arrive one after the other, each ending before the next begins. */
static void arrive(ptl_handle_eq_t eq, const unsigned char *at, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		CHECK_EQ(expect(eq, PTL_EVENT_PUT_START).mlength, length_of(i));
		ptl_event_t end = expect(eq, PTL_EVENT_PUT_END);
		CHECK_EQ(end.mlength, length_of(i));
		CHECK_PATTERN(at + end.offset, 0, end.mlength, seed_of(i));
	}
	expect_empty(eq);
}

static void short_puts(unsigned rank, ptl_handle_ni_t ni, unsigned n)
{
	size_t all = bytes_of(n);
	unsigned char *at = node_alloc(all);
	ptl_handle_eq_t eq = eq_new(ni, 2 * n);
	if (rank == 1)
		post_md(ni, PT, 1, md_of(at, all, PTL_MD_OP_PUT, eq));
	still(rank);
	if (rank == 0)
		send_and_forget(ni, eq, n);
	go_on(rank);
	if (rank == 1)
		arrive(eq, at, n);
	sync_nodes();
	CHECK_EQ(p3_get(&nic()->leaving), 0);
	CHECK_EQ(nic()->peer[!rank].copied, 0);
}

NODES_CASE(the_first_put_is_over_whatever_its_length, 2)
{
	short_puts(rank, ni, LENGTHS);
}

NODES_CASE(puts_into_a_full_lane_are_over, 2)
{
	short_puts(rank, ni, 40 * LENGTHS);
}

/* With more than 16 nodes the full lanes are shorter. */
NODES_CASE(puts_are_over_with_many_nodes, NODES_MAX)
{
	short_puts(rank, ni, rank < 2 ? LENGTHS : 0);
}

/* The descriptor to send from has its SEND_END when PtlGetPut returns; the one to get
 * into waits for the reply. */
NODES_CASE(an_exchange_into_a_full_lane_has_sent, 2)
{
	enum { TIMES = 2000 };
	uint64_t *at = (uint64_t *)node_alloc(8), *in = (uint64_t *)node_alloc(8);
	uint64_t *out = (uint64_t *)node_alloc(8);
	ptl_handle_eq_t sent = eq_new(ni, 8), got = eq_new(ni, TIMES);
	if (rank == 1)
		post_md(ni, PT, 1, md_of(at, 8, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	ptl_md_t d = source_md(in, 8, got);
	ptl_handle_md_t get = bind_md(ni, d);
	still(rank);
	for (unsigned i = 0; i < TIMES && rank == 0; i++) {
		*out = i + 1;
		ptl_handle_md_t put = bind_md(ni, md_of(out, 8, 0, sent));
		CHECK_OK(PtlGetPut(get, put, id_of(ni, 1), PT, 0, 1, 0, 0));
		over(sent, put, (unsigned char *)out, 8);
	}
	go_on(rank);
	for (unsigned i = 0; i < TIMES && rank == 0; i++)
		expect(got, PTL_EVENT_REPLY_END);
	sync_nodes();
	CHECK_EQ(rank ? *at : *in, rank ? TIMES : TIMES - 1);
}

/* Put until one put has not ended at once: then the copies of the target are used up. */
static unsigned use_up(ptl_handle_ni_t ni, ptl_handle_eq_t eq, unsigned char *at,
	unsigned to, uint32_t share)
{
	unsigned n = 0;
	for (;; n++) {
		ptl_handle_md_t md = bind_md(ni, md_of(at, MOST, 0, eq));
		CHECK_OK(put_to(ni, md, to, PT, 1, PTL_NOACK_REQ));
		expect(eq, PTL_EVENT_SEND_START);
		if (nic()->peer[to].copied == share && PtlMDUnlink(md) == PTL_MD_IN_USE)
			return n + 1;
		expect(eq, PTL_EVENT_SEND_END);
		CHECK(n <= 2 * PER_TARGET / MOST);
	}
}

/* One target uses up its share: messages to others still end at once, those to that
 * target when it goes on. */
NODES_CASE(one_target_does_not_use_up_all, 3)
{
	unsigned char *at = node_alloc(MOST);
	ptl_handle_eq_t eq = eq_new(ni, 4096);
	if (rank != 0)
		post_md(ni, PT, 1, md_of(at, MOST, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	still(rank);
	if (rank == 0) {
		CHECK(use_up(ni, eq, at, 1, PER_TARGET) >= PER_TARGET / MOST);
		ptl_handle_md_t md = bind_md(ni, md_of(at, MOST, 0, eq));
		CHECK_OK(put_to(ni, md, 2, PT, 1, PTL_NOACK_REQ));
		over(eq, md, at, MOST);
	}
	go_on(rank);
	if (rank == 0) {
		ptl_event_t end = expect(eq, PTL_EVENT_SEND_END);
		CHECK_OK(PtlMDUnlink(end.md_handle));
	}
	sync_nodes();
	CHECK_EQ(p3_get(&nic()->leaving), 0);
}

/* All targets but the last use up all: a message to the last one ends when it goes on. */
NODES_CASE(many_targets_use_up_all, 2 + P3_COPIES_LEN / PER_TARGET)
{
	unsigned char *at = node_alloc(MOST);
	ptl_handle_eq_t eq = eq_new(ni, 4096);
	if (rank != 0)
		post_md(ni, PT, 1, md_of(at, MOST, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	still_if(rank != 0);
	for (unsigned to = 1; rank == 0 && to < size; to++)
		(void)use_up(ni, eq, at, to, to < size - 1 ? PER_TARGET : 0);
	go_on_if(rank != 0);
	for (unsigned to = 1; rank == 0 && to < size; to++) {
		ptl_event_t end = expect(eq, PTL_EVENT_SEND_END);
		CHECK_OK(PtlMDUnlink(end.md_handle));
	}
	sync_nodes();
	CHECK_EQ(p3_get(&nic()->leaving), 0);
}

/* P3.3 3.13: PUT_STARTs come in the order in which SEND_STARTs were seen here */
NODES_CASE(starts_have_one_order_on_both_sides, 2)
{
	enum { N = 400, LONG = 40000 };
	unsigned char *at = node_alloc(LONG);
	ptl_handle_eq_t eq = eq_new(ni, 4 * N);
	ptl_handle_md_t md = bind_md(ni, md_of(at, LONG, 0, eq));
	if (rank == 1)
		post_md(ni, PT, 1,
			md_of(at, LONG, MD_ANY | PTL_MD_EVENT_END_DISABLE, eq));
	still(rank);
	for (unsigned i = 0; i < N && rank == 0; i++)
		CHECK_OK(PtlPutRegion(md, 0, i % 4 ? length_of(i) : LONG, PTL_NO_ACK_REQ,
			id_of(ni, 1), PT, 0, 1, 0, i));
	go_on(rank);
	for (unsigned starts = 0, ends = 0; starts + ends < (rank ? N : 2 * N);) {
		ptl_event_t ev = next_event(eq);
		if (ev.type == PTL_EVENT_SEND_END)
			ends++;
		else
			CHECK_EQ(ev.hdr_data, starts++);
	}
	sync_nodes();
}

static pid_t leaver; /* thread of rank 0; the meeting orders it */

/* A message that has SEND_END when its sender leaves arrives. */
NODES_CASE(the_last_puts_before_fini_arrive, 2)
{
	enum { N = 10 * LENGTHS };
	size_t all = bytes_of(N);
	unsigned char *at = node_alloc(all);
	ptl_handle_eq_t eq = eq_new(ni, 2 * N);
	if (rank == 1)
		post_md(ni, PT, 1, md_of(at, all, PTL_MD_OP_PUT, eq));
	still(rank);
	if (rank == 0) {
		send_and_forget(ni, eq, N);
		leaver = gettid();
		meet_nodes();
		CHECK_OK(PtlNIFini(ni));
		return;
	}
	meet_nodes();
	CHECK(await_thread_state(leaver, 'S')); /* inside PtlNIFini */
	p3_lease_leave(nic());
	arrive(eq, at, N);
}

/* ---- targets that cannot take a copy ---- */

static struct p3_cmd put_of(ptl_handle_ni_t ni, ptl_handle_md_t md, size_t length)
{
	return (struct p3_cmd){.handle = md,
		.move = {.target = id_of(ni, 1),
			.pt_index = PT,
			.bits = 1,
			.length = length}};
}

/* Send while the target is expected, as it is until its segment is mapped. */
NODES_CASE(a_put_is_not_over_before_its_target_is_mapped, 2)
{
	unsigned char *at = node_alloc(MOST);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_handle_md_t md = bind_md(ni, md_of(at, MOST, 0, eq));
	if (rank == 1)
		post_md(ni, PT, 1, md_of(at, MOST, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	struct p3_cmd c = put_of(ni, md, MOST);
	CHECK_OK(put_to(ni, md, rank, 0, 0, PTL_NOACK_REQ)); /* memory for c, too */
	expect_pair(eq, PTL_EVENT_SEND_START);
	still(rank);
	if (rank == 0) {
		struct p3_peer *p = &nic()->peer[1];
		nic_hold(nic());
		p->state = P3_EXPECTED;
		int rc = p3_tx_put(nic(), &c);
		uint32_t copied = p->copied;
		p->state = P3_LIVE;
		p3_tx_push(nic(), p);
		p3_lease_leave(nic());
		CHECK_RC(rc, PTL_OK);
		CHECK_EQ(copied, 0);
	}
	go_on(rank);
	if (rank == 0) {
		expect_pair(eq, PTL_EVENT_SEND_START);
	}
	sync_nodes();
}

/* Return how many copies their target could not read, as this node's control block tells
 * tools. */
static uint64_t unread_copies(void)
{
	const char *base = nic()->published.base;
	const struct p3_case_line *line =
		(const struct p3_case_line *)(base + nic()->layout.cases_off);
	struct p3_case c;
	for (unsigned i = 0; i < P3_CASE_WORDS; i++)
		((uint64_t *)&c)[i] = p3_get(&line[P3_WHY_LATE - 1].w[i]);
	return c.near ? c.count : 0;
}

/* Take the ids of all transfers back, so that no reader can read on. */
static void take_back_ids(void)
{
	nic_hold(nic());
	p3_xfer_revoke_all(nic());
	p3_lease_leave(nic());
}

/* The put has had its SEND_END when its copy cannot be read, so no event tells: the
 * initiator's log and control block do. */
static void not_read_node(NODE_ARGS)
{
	unsigned char *at = node_alloc(MOST);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	if (rank == 1)
		post_md(ni, PT, 1, sink_md(at, MOST, eq));
	still(rank);
	if (rank == 0) {
		ptl_handle_md_t md = bind_md(ni, md_of(at, MOST, 0, eq));
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_NOACK_REQ));
		CHECK(nic()->peer[1].copied > 0);
		over(eq, md, at, MOST);
		take_back_ids();
	}
	go_on(rank);
	if (rank == 1) {
		ptl_event_t ev = next_event(eq);
		CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_FAIL);
	}
	sync_nodes();
	CHECK_EQ(nic()->peer[!rank].copied, 0);
	CHECK_EQ(unread_copies(), rank == 0);
	sync_nodes();
}

CASE(a_copy_that_is_not_read)
{
	/* the put does not fit the lane */
	run_nodes_with("PTL3_LANES", "base", 2, not_read_node);
}
