/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The work that passes do on lanes, and the state in which they leave them: nothing may
 * keep the sending node awake.  A node stands still while a thread of its own holds the
 * lease and makes no pass.
 */
#include "nic/host/call.h"
#include "nic/proto/proto.h"
#include "nic/run/lease.h"
#include "nic/xfer/movers.h"
#include "nic/cases.h"

#include "support/hold.h"

#define PT 3

enum { WANTED = 1, OTHER };

static void stand_still(void)
{
	nic_hold(nic());
}

static bool is_restless(void)
{
	stand_still();
	bool is = p3_wait_is_restless(nic());
	p3_lease_leave(nic());
	return is;
}

/* Take all messages: a drained pass has seen each lane empty. */
static void drain(void)
{
	stand_still();
	for (int i = 0; i < 100; i++)
		(void)p3_pass_run(nic());
	p3_lease_leave(nic());
}

/* Check after each of 16 answers: behind one of them the pair changes from the base ring
 * to the full ring. */
NODES_CASE(answers_leave_nobody_restless, 2)
{
	char *at = (char *)node_alloc(8);
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	if (rank == 1)
		post_md(ni, PT, WANTED, md_of(at, 8, MD_ANY, PTL_EQ_NONE));
	else
		md = bind_md(ni, source_md(at, 8, eq));
	for (unsigned i = 0; i < 16; i++) {
		sync_nodes();
		if (rank == 0) {
			CHECK_OK(put_to(ni, md, 1, PT, WANTED, PTL_ACK_REQ));
			(void)expect(eq, PTL_EVENT_SEND_END);
			(void)expect(eq, PTL_EVENT_ACK);
		}
		sync_nodes();
		drain();
		sync_nodes();
		CHECK(!is_restless());
	}
	sync_nodes();
}

/* A node that computes after a message has given the credit back: the sender need not
 * kick. */
NODES_CASE(a_message_taken_is_given_back, 2)
{
	char *at = (char *)node_alloc(8);
	ptl_handle_eq_t eq = eq_new(ni, 64);
	bool restless = false;
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	if (rank == 1)
		post_md(ni, PT, WANTED, sink_md(at, 8, eq));
	else
		md = bind_md(ni, md_of(at, 8, MD_QUIET, PTL_EQ_NONE));
	for (unsigned i = 0; i < 32; i++) {
		sync_nodes();
		if (rank == 1)
			stand_still();
		sync_nodes();
		if (rank == 0)
			CHECK_OK(put_to(ni, md, 1, PT, WANTED, PTL_NOACK_REQ));
		sync_nodes();
		if (rank == 1)
			(void)p3_pass_run(nic());
		sync_nodes();
		if (rank == 0)
			restless |= is_restless();
		sync_nodes();
		if (rank == 1) {
			p3_lease_leave(nic());
			(void)expect(eq, PTL_EVENT_PUT_END);
		}
	}
	CHECK(!restless);
	sync_nodes();
}

/* Two nodes have sent much to one: except for the first ones, each pass takes as much
 * as it may. */
NODES_CASE(two_full_lanes_are_taken_in_whole_passes, 3)
{
	enum { EACH = 200, BEFORE = 10 };
	char *at = (char *)node_alloc(8);
	unsigned passes = 0;
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	if (rank == 2)
		post_md(ni, PT, WANTED, md_of(at, 8, MD_ANY, PTL_EQ_NONE));
	else
		md = bind_md(ni, md_of(at, 8, MD_QUIET, PTL_EQ_NONE));
	stand_still();
	nic()->sparing = false; /* use full rings even if crowded */
	p3_lease_leave(nic());
	sync_nodes();
	for (unsigned i = 0; i < BEFORE; i++) {
		if (rank != 2)
			CHECK_OK(put_to(ni, md, 2, PT, WANTED, PTL_NOACK_REQ));
		sync_nodes();
		drain();
		sync_nodes();
	}
	if (rank == 2)
		stand_still();
	sync_nodes();
	for (unsigned i = 0; i < EACH && rank != 2; i++)
		CHECK_OK(put_to(ni, md, 2, PT, WANTED, PTL_NOACK_REQ));
	sync_nodes();
	if (rank == 2) {
		while (p3_pass_run(nic()))
			passes++;
		p3_lease_leave(nic());
		CHECK_EQ(p3_nic_counter(nic(), P3_C_RECEIVED), 2 * (EACH + BEFORE));
	}
	CHECK(passes <= 2 * EACH / 16 + 6);
	sync_nodes();
}

/* Give the lease back.  Return true if the first PtlEQGet finds the event; it may miss it
 * only if the NIC thread took the lease before. */
static bool find_when_left(ptl_handle_eq_t wanted)
{
	ptl_event_t event;
	uint64_t before = p3_nic_counter(nic(), P3_C_LEASE_NIC);
	p3_lease_leave(nic());
	int rc = PtlEQGet(wanted, &event);
	if (rc != PTL_EQ_EMPTY || nic_holds(nic()) == before) {
		CHECK_OK(rc);
		return true;
	}
	(void)expect(wanted, PTL_EVENT_PUT_END);
	return false;
}

/* Messages for another queue came before the awaited one. */
NODES_CASE(a_look_without_waiting_goes_on_to_the_event, 2)
{
	char *at = (char *)node_alloc(8);
	ptl_handle_eq_t wanted = eq_new(ni, 64), other = eq_new(ni, 64);
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	unsigned found = 0;
	if (rank == 1) {
		const unsigned options = MD_ANY | PTL_MD_EVENT_START_DISABLE;
		post_md(ni, PT, WANTED, md_of(at, 8, options, wanted));
		post_md(ni, PT, OTHER, md_of(at, 8, options, other));
	} else {
		md = bind_md(ni, md_of(at, 8, MD_QUIET, PTL_EQ_NONE));
	}
	for (unsigned i = 0; i < 16; i++) {
		sync_nodes(); /* births need the lease */
		if (rank == 1)
			stand_still();
		sync_nodes();
		for (unsigned k = 0; k < 4 && rank == 0; k++)
			CHECK_OK(put_to(
				ni, md, 1, PT, k < 3 ? OTHER : WANTED, PTL_NOACK_REQ));
		sync_nodes();
		if (rank == 1) {
			found += find_when_left(wanted);
			for (unsigned k = 0; k < 3; k++)
				(void)expect(other, PTL_EVENT_PUT_END);
			drain();
		}
	}
	CHECK(rank == 0 || found > 0);
	sync_nodes();
}

static uint64_t bytes_moved(void)
{
	return p3_nic_counter(nic(), P3_C_BULK_BYTES) +
	       p3_nic_counter(nic(), P3_C_CMA_BYTES);
}

/* With the lease: make passes until this many messages or bytes have come. */
static void pass_until(uint64_t received, uint64_t moved)
{
	while (p3_nic_counter(nic(), P3_C_RECEIVED) < received && bytes_moved() < moved)
		(void)p3_pass_run(nic());
}

/* Tools see the length of slices as soon as some have been read. */
static void check_slice(void)
{
	uint64_t slice = p3_nic_counter(nic(), P3_G_SLICE);
	bool none = p3_nic_counter(nic(), P3_C_CMA_BYTES) < P3_SLICE_MOST;
	CHECK(slice ? slice >= P3_SLICE_LEAST && slice <= P3_SLICE_MOST : none);
}

/* A pass moves a slice of a long put: a new message need not wait for the rest. */
NODES_CASE(a_short_put_comes_between_two_slices, 2)
{
	enum { LONG = 16 << 20, SHORT = 8 };
	char *at = (char *)node_alloc(LONG);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	const unsigned options = MD_ANY | PTL_MD_EVENT_START_DISABLE;
	const size_t len[] = {LONG, SHORT};
	for (unsigned i = 0; i < 2 && rank == 1; i++)
		post_md(ni, PT, i, md_of(at, len[i], options, eq));
	sync_nodes(); /* births need the lease */
	if (rank == 1)
		stand_still();
	for (unsigned i = 0; i < 2; i++) {
		sync_nodes();
		if (rank == 0)
			CHECK_OK(put_to(ni,
				bind_md(ni, md_of(at, len[i], MD_QUIET, PTL_EQ_NONE)), 1,
				PT, i, PTL_NOACK_REQ));
		sync_nodes();
		if (rank == 1)
			pass_until(2, i ? LONG : 1);
	}
	if (rank == 1) {
		uint64_t moved = bytes_moved();
		p3_lease_leave(nic());
		CHECK_EQ(expect(eq, PTL_EVENT_PUT_END).mlength, SHORT);
		CHECK(moved > 0 && moved < LONG / 2);
		CHECK_EQ(expect(eq, PTL_EVENT_PUT_END).mlength, LONG);
		check_slice();
	}
	sync_nodes();
}

/* With the lease: let the pace of slices be one at which 1 MiB takes less than
 * P3_LONE_NS.  Return the number of bytes that one pass moves. */
static uint64_t moved_by_a_fast_pass(void)
{
	uint64_t before = bytes_moved();
	nic()->slices.fit = 2 * P3_SLICE_MOST;
	(void)p3_pass_run(nic());
	return bytes_moved() - before;
}

/* A pass takes a short put only after a long one that came before it, so the second round
 * is the first in which a message has waited for a lone slice. */
NODES_CASE(a_lone_message_is_read_at_once_unless_others_have_waited, 2)
{
	enum { LONG = 1 << 20, SHORT = 8, ROUNDS = 3 };
	char *at = (char *)node_alloc(LONG);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	const unsigned options = MD_ANY | PTL_MD_EVENT_START_DISABLE;
	const size_t len[] = {LONG, SHORT};
	ptl_handle_md_t md[2];
	for (unsigned i = 0; i < 2; i++)
		if (rank == 1)
			post_md(ni, PT, i, md_of(at, len[i], options, eq));
		else
			md[i] = bind_md(ni, md_of(at, len[i], MD_QUIET, PTL_EQ_NONE));
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned puts = round == 1 ? 2 : 1;
		sync_nodes();
		if (rank == 1) {
			drain();
			stand_still();
			nic()->conf.bulk = false;
		}
		sync_nodes();
		for (unsigned i = 0; i < puts && rank == 0; i++)
			CHECK_OK(put_to(ni, md[i], 1, PT, i, PTL_NOACK_REQ));
		sync_nodes();
		if (rank == 1) {
			uint64_t moved = moved_by_a_fast_pass();
			bool reads = !nic()->peer[0].cma_off && nic()->conf.cpus > 1;
			p3_lease_leave(nic());
			CHECK(!reads || (moved == LONG) == (round < 2));
			for (unsigned i = 0; i < puts; i++)
				(void)expect(eq, PTL_EVENT_PUT_END);
		}
	}
	sync_nodes();
}

/* In one hold of the lease, write to some peers that sleep: on these words instead of
 * their own. */
static void write_to_sleepers(p3_a32 *word, unsigned peers)
{
	p3_a32 *own[NODES_MAX];
	stand_still();
	for (unsigned i = 0; i < peers; i++) {
		struct p3_peer *p = &nic()->peer[1 + i];
		own[i] = p->asleep;
		p->asleep = &word[i];
		p3_set(&word[i], P3_ASLEEP_NIC);
		p3_looks_add(nic(), p);
	}
	p3_lease_leave(nic());
	stand_still();
	for (unsigned i = 0; i < peers; i++)
		nic()->peer[1 + i].asleep = own[i];
	p3_lease_leave(nic());
}

NODES_CASE(the_end_of_a_hold_wakes_all_its_peers, 4)
{
	static p3_a32 word[NODES_MAX];
	sync_nodes();
	for (unsigned peers = 1; peers < size && rank == 0; peers++) {
		write_to_sleepers(word, peers);
		for (unsigned i = 0; i < peers; i++)
			CHECK_EQ(p3_get(&word[i]), P3_AWAKE);
	}
	sync_nodes();
}

/* ---- the word odd ---- */

/*
 * The word odd of a NIC: each of its bits is set while its cause lasts, and cleared by
 * the next pass.  A bit that stays set makes all calls slow for ever; one that is missing
 * leaves work undone.
 */

/* the bits that come and go */
#define CHANGING                                                                         \
	(P3_ODD_BLOCKED | P3_ODD_PULLS | P3_ODD_SOURCES | P3_ODD_HUNGRY | P3_ODD_BAD)

static uint32_t changing(void)
{
	nic_hold(nic());
	uint32_t odd = nic()->odd & CHANGING;
	p3_lease_leave(nic());
	return odd;
}

/* Run passes until all operations under way have ended, which the other node may have to
 * see first; the word shows the end. */
static void check_usual(void)
{
	struct patience p = patience_begin();
	while (changing()) {
		CHECK(!patience_is_over(&p));
		nic_hold(nic());
		(void)p3_pass_run(nic());
		p3_lease_leave(nic());
	}
	nic_hold(nic());
	uint32_t odd = nic()->odd;
	p3_odd_settle(nic());
	CHECK_EQ(odd, nic()->odd);
	CHECK_EQ(odd & ~(uint32_t)P3_ODD_LANES, nic()->odd_life);
	p3_lease_leave(nic());
}

/* With the lease, make passes until a part of a long message has come. */
static void pass_until_pulling(void)
{
	while (!p3_nic_counter(nic(), P3_C_BULK_BYTES) &&
		!p3_nic_counter(nic(), P3_C_CMA_BYTES))
		(void)p3_pass_run(nic());
}

/* Wait until node 1 reads no bytes of this node: an exchange would wait for it. */
static void await_no_reader(void)
{
	struct patience p = patience_begin();
	while (p3_get(&nic()->peer[1].theirs->reading)) {
		CHECK(!patience_is_over(&p));
		sched_yield();
	}
}

NODES_CASE(a_long_put_is_odd_at_both_ends, 2)
{
	enum { LONG = 16 << 20 };
	char *at = (char *)node_alloc(LONG);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	if (rank == 1)
		post_md(ni, PT, 1, sink_md(at, LONG, eq));
	else
		md = bind_md(ni, source_md(at, LONG, eq));
	check_usual();
	sync_nodes(); /* births need the lease */
	if (rank == 1)
		nic_hold(nic());
	sync_nodes();
	if (rank == 0)
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_NOACK_REQ));
	sync_nodes();
	if (rank == 1) {
		pass_until_pulling();
		CHECK_EQ(nic()->odd & CHANGING, P3_ODD_PULLS);
	} else {
		CHECK_EQ(changing(), P3_ODD_SOURCES);
	}
	sync_nodes();
	if (rank == 1)
		p3_lease_leave(nic());
	(void)expect(eq, rank ? PTL_EVENT_PUT_END : PTL_EVENT_SEND_END);
	check_usual();
	if (rank == 0)
		await_no_reader();
	sync_nodes();
}

/* The slot of a get that has ended is a source until the target has seen the end. */
NODES_CASE(an_ended_get_is_odd_until_its_target_knows, 2)
{
	enum { LONG = 1 << 20 };
	char *at = (char *)node_alloc(LONG);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	if (rank == 1)
		post_md(ni, PT, 1, md_of(at, LONG, PTL_MD_OP_GET, PTL_EQ_NONE));
	else
		md = bind_md(ni, source_md(at, LONG, eq));
	sync_nodes();
	if (rank == 1)
		nic_hold(nic());
	sync_nodes();
	if (rank == 0)
		CHECK_OK(get_from(ni, md, 1, PT, 1));
	sync_nodes();
	while (rank == 1 && !(nic()->odd & P3_ODD_SOURCES))
		(void)p3_pass_run(nic());
	sync_nodes();
	if (rank == 0) {
		(void)expect(eq, PTL_EVENT_REPLY_END);
		CHECK_EQ(changing(), P3_ODD_SOURCES);
	}
	sync_nodes();
	if (rank == 1)
		p3_lease_leave(nic());
	check_usual();
	sync_nodes();
	check_usual();
}

NODES_CASE(a_full_lane_is_odd_for_its_sender, 2)
{
	char *at = (char *)node_alloc(8);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	unsigned puts = 0;
	if (rank == 1)
		post_md(ni, PT, 1, md_of(at, 8, MD_ANY, PTL_EQ_NONE));
	else
		md = bind_md(ni, md_of(at, 8, MD_QUIET, eq));
	sync_nodes();
	if (rank == 1)
		nic_hold(nic());
	sync_nodes();
	for (; rank == 0 && !p3_nic_counter(nic(), P3_C_QUEUED); puts++)
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_NOACK_REQ));
	if (rank == 0)
		CHECK_EQ(changing(), P3_ODD_BLOCKED);
	sync_nodes();
	if (rank == 1)
		p3_lease_leave(nic());
	if (rank == 0) {
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_ACK_REQ));
		(void)expect(eq, PTL_EVENT_ACK);
	}
	check_usual();
	sync_nodes();
}

/* A command that a signal handler has posted finds no memory. */
NODES_CASE(a_hungry_command_is_odd, 1)
{
	char *at = (char *)node_alloc(8);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	post_md(ni, PT, 1, md_of(at, 8, MD_ANY, PTL_EQ_NONE));
	ptl_handle_md_t md = bind_md(ni, md_of(at, 8, MD_QUIET, eq));
	check_usual();
	p3_call_begin();
	CHECK_OK(put_to(ni, md, 0, PT, 1, PTL_ACK_REQ));
	CHECK_EQ(changing(), P3_ODD_HUNGRY);
	p3_call_end(nic()); /* provides the memory */
	(void)expect(eq, PTL_EVENT_ACK);
	check_usual();
}

static void ignore_peer_node(NODE_ARGS)
{
	sync_nodes();
	if (rank == 0) {
		nic_hold(nic());
		p3_peer_ignore(nic(), &nic()->peer[1], "a word of this test");
		CHECK_EQ(nic()->odd & CHANGING, P3_ODD_BAD);
		(void)p3_pass_run(nic());
		CHECK_EQ(nic()->odd & CHANGING, 0);
		p3_lease_leave(nic());
	}
	sync_nodes();
}

CASE(an_ignored_peer_is_odd)
{
	const struct nodes_opt opt = {.bad_headers = true};
	run_nodes_opt(2, ignore_peer_node, NULL, &opt);
}

/* In each pass the firmware treats its lanes as few or as many. */
NODES_CASE(many_lanes_are_odd, 10)
{
	sync_nodes();
	nic_hold(nic());
	CHECK_EQ(!!(nic()->odd & P3_ODD_LANES), nic()->nhot > nic()->few);
	CHECK_EQ(nic()->odd & (P3_ODD_NODES | P3_ODD_WIRED | P3_ODD_TRACED), 0);
	p3_lease_leave(nic());
	sync_nodes();
}
