/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that only poll: a poll that finds nothing takes the short way of
 * nic/run/lease.h, and must miss none of the things that a pass sees to.
 */
#include "nic/run/lease.h"
#include "nic/cases.h"

#include "lib/node/node.h"
#include "support/hold.h"

#define PT 3

enum { SHORT = 8, LONG = 1 << 20 };

static struct p3_nic *nic(void)
{
	return p3_nic(p3_node());
}

/* Poll until an event comes, in turn by both calls, also with a queue that stays
 * empty. */
static void poll_for(ptl_handle_eq_t eq, ptl_handle_eq_t empty, ptl_event_kind_t kind)
{
	struct patience p = patience_begin();
	ptl_handle_eq_t both[] = {empty, eq};
	ptl_event_t ev;
	int rc = PTL_EQ_EMPTY, which = 1;
	for (unsigned i = 0; rc == PTL_EQ_EMPTY; i++) {
		CHECK(!patience_is_over(&p));
		rc = i % 2 ? PtlEQGet(eq, &ev) : PtlEQPoll(both, 2, 0, &ev, &which);
	}
	CHECK_OK(rc);
	CHECK_EQ(which, 1);
	CHECK_EQ(ev.type, kind);
	CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
}

/* Return true if the NIC thread always has the lease, so that no poll gets it. */
static bool is_dedicated(void)
{
	return nic()->conf.mode == P3_MODE_DEDICATED;
}

static int poll_once(ptl_handle_eq_t eq, bool get, ptl_event_t *ev)
{
	int which;
	return get ? PtlEQGet(eq, ev) : PtlEQPoll(&eq, 1, 0, ev, &which);
}

/* Give the lease back, and find an event by one poll: its message lies in the lane.  The
 * NIC thread may have taken the lease before. */
static void find_at_once(ptl_handle_eq_t eq, bool get, ptl_event_kind_t kind)
{
	ptl_event_t ev;
	uint64_t before = p3_nic_counter(nic(), P3_C_LEASE_NIC);
	p3_lease_leave(nic());
	int rc = poll_once(eq, get, &ev);
	if (rc == PTL_EQ_EMPTY && p3_nic_counter(nic(), P3_C_LEASE_NIC) != before) {
		(void)expect(eq, kind);
		return;
	}
	CHECK_OK(rc);
	CHECK_EQ(ev.type, kind);
}

NODES_CASE(a_poll_finds_what_lies_in_a_lane, 2)
{
	(void)arg;
	(void)size;
	char *at = (char *)node_alloc(SHORT);
	ptl_handle_eq_t eq = eq_new(ni, 16);
	ptl_handle_md_t md =
		bind_md(ni, md_of(at, SHORT, PTL_MD_EVENT_START_DISABLE, eq));
	post_md(ni, PT, 0, md_of(at, SHORT, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
	for (unsigned i = 0; i < 32 && !is_dedicated(); i++) {
		sync_nodes();
		if (rank == 1)
			nic_hold(nic());
		sync_nodes();
		if (rank == 0) {
			CHECK_OK(put_to(ni, md, 1, PT, 0, PTL_ACK_REQ));
			(void)expect(eq, PTL_EVENT_SEND_END);
			nic_hold(nic());
		}
		sync_nodes();
		if (rank == 1)
			find_at_once(eq, i % 2, PTL_EVENT_PUT_END);
		sync_nodes();
		if (rank == 0)
			find_at_once(eq, i % 2, PTL_EVENT_ACK);
	}
	sync_nodes();
}

/* Messages for another queue lie before the one that the poll looks for. */
NODES_CASE(a_poll_finds_what_lies_behind_others, 2)
{
	(void)arg;
	(void)size;
	char *at = (char *)node_alloc(SHORT);
	ptl_handle_eq_t eq[2] = {eq_new(ni, 16), eq_new(ni, 16)};
	ptl_handle_md_t md =
		bind_md(ni, md_of(at, SHORT, PTL_MD_EVENT_START_DISABLE, PTL_EQ_NONE));
	for (unsigned k = 0; k < 2; k++)
		post_md(ni, PT, k,
			md_of(at, SHORT, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq[k]));
	for (unsigned i = 0; i < 32 && !is_dedicated(); i++) {
		unsigned others = i / 2 % 4;
		sync_nodes();
		if (rank == 1)
			nic_hold(nic());
		sync_nodes();
		for (unsigned k = 0; k <= others && rank == 0; k++)
			CHECK_OK(put_to(ni, md, 1, PT, k == others, PTL_NOACK_REQ));
		sync_nodes();
		if (rank != 1)
			continue;
		find_at_once(eq[1], i % 2, PTL_EVENT_PUT_END);
		for (unsigned k = 0; k < others; k++)
			(void)expect(eq[0], PTL_EVENT_PUT_END);
	}
	sync_nodes();
}

/* A bit without a cause is cleared by a pass. */
NODES_CASE(a_poll_sees_to_what_is_odd, 1)
{
	UNUSED_ARGS;
	ptl_event_t ev;
	ptl_handle_eq_t eq = eq_new(ni, 16);
	for (unsigned i = 0; i < 32 && !is_dedicated(); i++) {
		uint64_t before = p3_nic_counter(nic(), P3_C_LEASE_NIC);
		nic_hold(nic());
		p3_odd_set(nic(), P3_ODD_BLOCKED);
		p3_lease_leave(nic());
		CHECK_RC(poll_once(eq, i % 2, &ev), PTL_EQ_EMPTY);
		nic_hold(nic());
		CHECK(!(nic()->odd & P3_ODD_BLOCKED) ||
			p3_nic_counter(nic(), P3_C_LEASE_NIC) != before);
		p3_lease_leave(nic());
	}
}

/* Short messages, answers, and long messages: pulls and sources. */
NODES_CASE(polls_find_all_that_comes, 2)
{
	(void)arg;
	(void)size;
	char *at = (char *)node_alloc(LONG);
	ptl_handle_eq_t eq = eq_new(ni, 16), empty = eq_new(ni, 16);
	ptl_handle_md_t md[2];
	for (unsigned i = 0; i < 2; i++) {
		const size_t len = i ? LONG : SHORT;
		post_md(ni, PT, i,
			md_of(at, len, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
		md[i] = bind_md(ni, md_of(at, len, PTL_MD_EVENT_START_DISABLE, eq));
	}
	sync_nodes();
	for (unsigned i = 0; i < rounds(400); i++) {
		unsigned k = i % 8 == 7;
		if (rank == i % 2) {
			CHECK_OK(put_to(ni, md[k], 1 - rank, PT, k, PTL_ACK_REQ));
			poll_for(eq, empty, PTL_EVENT_SEND_END);
			poll_for(eq, empty, PTL_EVENT_ACK);
		} else {
			poll_for(eq, empty, PTL_EVENT_PUT_END);
		}
	}
	sync_nodes();
}

/* Return the number of polls of each call that found nothing. */
static unsigned poll_in_vain(ptl_handle_eq_t eq, unsigned times)
{
	ptl_event_t ev;
	int which;
	for (unsigned i = 0; i < times; i++) {
		CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
		CHECK_RC(PtlEQPoll(&eq, 1, 0, &ev, &which), PTL_EQ_EMPTY);
	}
	return 2 * times;
}

/* Poll often.  Return true if most of the polls have counted as passes: the others met
 * the NIC thread with the lease. */
static bool most_polls_count(ptl_handle_eq_t eq)
{
	static const enum p3_counter counter[] = {
		P3_C_PASSES, P3_C_DRAINED, P3_C_LEASE_HOST};
	uint64_t before[3];
	bool most = true;
	for (unsigned i = 0; i < 3; i++)
		before[i] = p3_nic_counter(nic(), counter[i]);
	unsigned polls = poll_in_vain(eq, 1000);
	for (unsigned i = 0; i < 3; i++)
		most &= p3_nic_counter(nic(), counter[i]) - before[i] >= polls / 2;
	CHECK(p3_nic_counter(nic(), P3_C_LEASE_HOST) - before[2] <= polls);
	return most;
}

/* The NIC thread has the lease for longer when it loses its CPU meanwhile. */
NODES_CASE(polls_count_as_passes, 1)
{
	UNUSED_ARGS;
	struct patience p = patience_begin();
	ptl_handle_eq_t eq = eq_new(ni, 16);
	while (!most_polls_count(eq) && !is_dedicated())
		CHECK(!patience_is_over(&p));
}

NODES_CASE(polls_show_the_node_to_tools, 1)
{
	UNUSED_ARGS;
	struct patience p = patience_begin();
	ptl_handle_eq_t eq = eq_new(ni, 16);
	uint64_t shown = p3_nic_counter(nic(), (enum p3_counter)P3_G_NOW_NS);
	uint64_t nic_took = p3_nic_counter(nic(), P3_C_LEASE_NIC);
	(void)poll_in_vain(eq, 2 * P3_MIRROR_PASSES);
	while (p3_nic_counter(nic(), (enum p3_counter)P3_G_NOW_NS) == shown) {
		CHECK(p3_nic_counter(nic(), P3_C_LEASE_NIC) != nic_took ||
			is_dedicated());
		CHECK(!patience_is_over(&p));
		(void)poll_in_vain(eq, P3_MIRROR_PASSES);
	}
}

static p3_a32 bound;

static void bind_often(void *arg)
{
	const ptl_handle_ni_t *ni = arg;
	for (unsigned i = 0; i < rounds(2000); i++)
		CHECK_OK(PtlMDUnlink(bind_md(*ni, md_of(NULL, 0, 0, PTL_EQ_NONE))));
	p3_set(&bound, 1);
}

/* A command that is posted while a poll has the lease is executed. */
NODES_CASE(polls_execute_commands_of_others, 1)
{
	UNUSED_ARGS;
	ptl_handle_eq_t eq = eq_new(ni, 16);
	p3_set(&bound, 0);
	struct side *other = side_start(bind_often, &ni);
	while (!p3_get(&bound))
		(void)poll_in_vain(eq, 16);
	side_join(other);
}

struct waiting {
	ptl_handle_eq_t eq;
	p3_a32 got;
};

static void wait_often(void *arg)
{
	struct waiting *w = arg;
	for (unsigned i = 0; i < rounds(200); i++) {
		(void)expect(w->eq, PTL_EVENT_PUT_END);
		p3_add32(&w->got, 1);
	}
}

/* A thread that sleeps in a wait gets its event although another thread polls. */
NODES_CASE(polls_wake_a_thread_that_waits, 2)
{
	(void)arg;
	(void)size;
	struct waiting w = {.eq = eq_new(ni, 16)};
	struct side *other = NULL;
	ptl_handle_eq_t eq = eq_new(ni, 16);
	ptl_handle_md_t md = bind_md(ni, md_of(NULL, 0, MD_QUIET, PTL_EQ_NONE));
	if (rank == 1) {
		post_md(ni, PT, 0,
			md_of(NULL, 0, MD_ANY | PTL_MD_EVENT_START_DISABLE, w.eq));
		other = side_start(wait_often, &w);
	}
	for (unsigned i = 0; i < rounds(200); i++) {
		sync_nodes();
		if (rank == 0)
			CHECK_OK(put_to(ni, md, 1, PT, 0, PTL_NOACK_REQ));
		while (rank == 1 && p3_get(&w.got) <= i)
			(void)poll_in_vain(eq, 1);
	}
	if (other)
		side_join(other);
	sync_nodes();
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(a_poll_finds_what_lies_in_a_lane),
		cmocka_unit_test(a_poll_finds_what_lies_behind_others),
		cmocka_unit_test(a_poll_sees_to_what_is_odd),
		cmocka_unit_test(polls_find_all_that_comes),
		cmocka_unit_test(polls_count_as_passes),
		cmocka_unit_test(polls_show_the_node_to_tools),
		cmocka_unit_test(polls_execute_commands_of_others),
		cmocka_unit_test(polls_wake_a_thread_that_waits),
	};
	return RUN_CASES(cases);
}
