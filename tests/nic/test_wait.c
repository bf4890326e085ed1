/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that wait: where a pass only polls a few lanes, PtlEQWait runs it in a short
 * way (nic/host/take.c), which must miss none of the things that a pass sees to.
 */
#include "nic/run/odd.h"
#include "nic/run/pass.h"
#include "nic/cases.h"

#include "lib/node/node.h"
#include "support/hold.h"

#define PT 3

enum { SHORT = 8 };

static struct p3_nic *nic(void)
{
	return p3_nic(p3_node());
}

static uint64_t counter(enum p3_counter c)
{
	return p3_nic_counter(nic(), c);
}

/* Return true if host threads never get the lease. */
static bool is_dedicated(void)
{
	return nic()->conf.mode == P3_MODE_DEDICATED;
}

struct self {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	uint32_t rank;
};

/* Return a source and a target of this node itself, which share a queue. */
static struct self self_of(ptl_handle_ni_t ni, uint32_t rank)
{
	char *at = (char *)node_alloc(SHORT);
	struct self s = {.ni = ni, .eq = eq_new(ni, 64), .rank = rank};
	s.md = bind_md(ni, md_of(at, SHORT, PTL_MD_EVENT_START_DISABLE, s.eq));
	post_md(ni, PT, 0, md_of(at, SHORT, MD_ANY | PTL_MD_EVENT_START_DISABLE, s.eq));
	return s;
}

static void put_to_self(const struct self *s)
{
	CHECK_OK(put_to(s->ni, s->md, s->rank, PT, 0, PTL_NOACK_REQ));
}

static void wait_for_kind(const struct self *s, ptl_event_kind_t kind)
{
	ptl_event_t ev;
	CHECK_OK(PtlEQWait(s->eq, &ev));
	CHECK_EQ(ev.type, kind);
	CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
}

static void go_round(const struct self *s, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		put_to_self(s);
		wait_for_kind(s, PTL_EVENT_SEND_END);
		wait_for_kind(s, PTL_EVENT_PUT_END);
	}
}

/* The NIC thread may have the lease during a few of the rounds. */
NODES_CASE(waits_count_as_passes, 1)
{
	(void)arg;
	(void)size;
	struct self s = self_of(ni, rank);
	uint64_t passes = counter(P3_C_PASSES), holds = counter(P3_C_LEASE_HOST);
	go_round(&s, 1000);
	CHECK(counter(P3_C_PASSES) - passes >= 500 || is_dedicated());
	CHECK(counter(P3_C_LEASE_HOST) - holds >= 1000 || is_dedicated());
}

/* No round ends in a pass without work, so only the passes that waits count show the
 * gauges. */
NODES_CASE(waits_show_the_node_to_tools, 1)
{
	(void)arg;
	(void)size;
	struct patience p = patience_ms(30000);
	struct self s = self_of(ni, rank);
	uint64_t shown = counter((enum p3_counter)P3_G_NOW_NS);
	uint64_t nic_took = counter(P3_C_LEASE_NIC);
	go_round(&s, 2 * P3_MIRROR_PASSES);
	while (counter((enum p3_counter)P3_G_NOW_NS) == shown) {
		CHECK(counter(P3_C_LEASE_NIC) != nic_took || is_dedicated());
		CHECK(!patience_is_over(&p));
		go_round(&s, P3_MIRROR_PASSES);
	}
}

/* A bit without a cause is cleared by a pass in the general way. */
NODES_CASE(a_wait_sees_to_what_is_odd, 1)
{
	(void)arg;
	(void)size;
	struct self s = self_of(ni, rank);
	for (unsigned i = 0; i < 32 && !is_dedicated(); i++) {
		put_to_self(&s);
		wait_for_kind(&s, PTL_EVENT_SEND_END);
		nic_hold(nic());
		bool is_there = p3_evq_any(&p3_eq_named(nic(), s.eq)->rx);
		p3_odd_set(nic(), P3_ODD_BLOCKED);
		p3_lease_leave(nic());
		wait_for_kind(&s, PTL_EVENT_PUT_END);
		nic_hold(nic());
		CHECK(!(nic()->odd & P3_ODD_BLOCKED) || is_there);
		p3_lease_leave(nic());
	}
}

/* A lane with more and fewer messages than its last visits had: none is lost, all are in
 * order, and a wait that finds its event leaves the others to the next. */
NODES_CASE(waits_find_windows_of_any_length, 2)
{
	(void)arg;
	(void)size;
	char *at = (char *)node_alloc(SHORT);
	ptl_event_t ev;
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t md =
		bind_md(ni, md_of(at, SHORT, PTL_MD_EVENT_START_DISABLE, PTL_EQ_NONE));
	post_md(ni, PT, 0, md_of(at, SHORT, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
	sync_nodes();
	for (unsigned i = 0; i < rounds(400); i++) {
		unsigned window = i * 7 % 23;
		for (unsigned k = 0; k < window && rank == i % 2; k++)
			CHECK_OK(PtlPut(md, PTL_NOACK_REQ, id_of(ni, 1 - rank), PT, 0, 0,
				0, i * 64 + k));
		for (unsigned k = 0; k < window && rank != i % 2; k++) {
			CHECK_OK(PtlEQWait(eq, &ev));
			CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
			CHECK_EQ(ev.hdr_data, i * 64 + k);
		}
	}
	sync_nodes();
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(waits_count_as_passes),
		cmocka_unit_test(waits_show_the_node_to_tools),
		cmocka_unit_test(a_wait_sees_to_what_is_odd),
		cmocka_unit_test(waits_find_windows_of_any_length),
	};
	return RUN_CASES(cases);
}
