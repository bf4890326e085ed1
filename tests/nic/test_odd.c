/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The word odd of a NIC: each of its bits is set while its cause lasts, and cleared by
 * the next pass.  A bit that stays set makes all calls slow for ever; one that is missing
 * leaves work undone.
 */
#include "nic/host/call.h"
#include "nic/proto/proto.h"
#include "nic/run/lease.h"
#include "nic/cases.h"

#include "support/hold.h"

#define PT 3

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
	CHECK_EQ(nic()->odd, p3_odd_now(nic()));
	p3_lease_leave(nic());
}

/* With the lease, make passes until a part of a long message has come. */
static void pass_until_pulling(void)
{
	while (!p3_nic_counter(nic(), P3_C_BULK_BYTES) &&
		!p3_nic_counter(nic(), P3_C_CMA_BYTES))
		(void)p3_pass_run(nic());
}

NODES_CASE(a_long_put_is_odd_at_both_ends, 2)
{
	enum { LONG = 16 << 20 };
	char *at = (char *)node_alloc(LONG);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	if (rank == 1)
		post_md(ni, PT, 1,
			md_of(at, LONG, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
	else
		md = bind_md(ni, md_of(at, LONG, PTL_MD_EVENT_START_DISABLE, eq));
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
		md = bind_md(ni, md_of(at, LONG, PTL_MD_EVENT_START_DISABLE, eq));
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
