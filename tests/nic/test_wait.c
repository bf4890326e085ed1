/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that wait or poll.  Where a pass only polls a few lanes, PtlEQWait runs it in
 * a short way (nic/host/eq_poll.c), and so does a poll that finds nothing
 * (nic/run/lease.h); both must miss none of the things that a pass sees to.
 */
#include "nic/obj/obj.h"
#include "nic/run/lease.h"
#include "nic/cases.h"

#include "support/asleep.h"
#include "support/hold.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#define PT 3

enum { SHORT = 8, LONG = 1 << 20 };

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
	s.md = bind_md(ni, source_md(at, SHORT, s.eq));
	post_md(ni, PT, 0, sink_md(at, SHORT, s.eq));
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

/* Use calls of one kind, some times; return the number of calls. */
typedef unsigned call_fn(const struct self *s, unsigned times);

static unsigned by_wait(const struct self *s, unsigned times)
{
	go_round(s, times);
	return 2 * times;
}

static unsigned by_poll(const struct self *s, unsigned times)
{
	return poll_in_vain(s->eq, times);
}

/* Call often.  Return true if most of the calls have counted as passes: the others met
 * the NIC thread with the lease.  A wait may take the lease for two passes, and ends none
 * of them without work. */
static bool most_calls_count(const struct self *s, call_fn *call)
{
	bool polls = call == by_poll;
	uint64_t passes = counter(P3_C_PASSES), holds = counter(P3_C_LEASE_HOST);
	uint64_t drained = counter(P3_C_DRAINED);
	unsigned calls = call(s, 1000);
	holds = counter(P3_C_LEASE_HOST) - holds;
	CHECK(!polls || holds <= calls);
	return counter(P3_C_PASSES) - passes >= calls / (polls ? 2 : 4) &&
	       holds >= calls / 2 &&
	       (!polls || counter(P3_C_DRAINED) - drained >= calls / 2);
}

/* The NIC thread has the lease for longer when it loses its CPU meanwhile. */
static void count_as_passes(ptl_handle_ni_t ni, unsigned rank, call_fn *call)
{
	struct patience p = patience_begin();
	struct self s = self_of(ni, rank);
	while (!most_calls_count(&s, call) && !is_dedicated())
		CHECK(!patience_is_over(&p));
}

/* No round of waits ends in a pass without work, so only the passes that waits count show
 * the gauges. */
static void show_the_node_to_tools(ptl_handle_ni_t ni, unsigned rank, call_fn *call)
{
	struct patience p = patience_begin();
	struct self s = self_of(ni, rank);
	uint64_t shown = counter((enum p3_counter)P3_G_NOW_NS);
	uint64_t nic_took = nic_holds(nic());
	(void)call(&s, 2 * P3_MIRROR_PASSES);
	while (counter((enum p3_counter)P3_G_NOW_NS) == shown) {
		CHECK(nic_holds(nic()) != nic_took || is_dedicated());
		CHECK(!patience_is_over(&p));
		(void)call(&s, P3_MIRROR_PASSES);
	}
}

#define CALL_CASE(name, check, call)                                                     \
	NODES_CASE(name, 1)                                                              \
	{                                                                                \
		check(ni, rank, call);                                                   \
	}

CALL_CASE(waits_count_as_passes, count_as_passes, by_wait)
CALL_CASE(polls_count_as_passes, count_as_passes, by_poll)
CALL_CASE(waits_show_the_node_to_tools, show_the_node_to_tools, by_wait)
CALL_CASE(polls_show_the_node_to_tools, show_the_node_to_tools, by_poll)

/* ---- the calls that take an event ---- */

enum { QUEUES = 3 };

/* Take an event from one of three queues, and return its queue. */
typedef int take_fn(const ptl_handle_eq_t eq[QUEUES], ptl_event_t *ev);

static int take_by_wait(const ptl_handle_eq_t eq[QUEUES], ptl_event_t *ev)
{
	CHECK_OK(PtlEQWait(eq[0], ev));
	return 0;
}

static int take_by_get(const ptl_handle_eq_t eq[QUEUES], ptl_event_t *ev)
{
	int rc;
	while ((rc = PtlEQGet(eq[0], ev)) == PTL_EQ_EMPTY)
		;
	CHECK_OK(rc);
	return 0;
}

static int take_by_poll(const ptl_handle_eq_t eq[QUEUES], ptl_event_t *ev)
{
	ptl_handle_eq_t list[QUEUES];
	int rc, which = -1;
	memcpy(list, eq, sizeof list);
	while ((rc = PtlEQPoll(list, QUEUES, 0, ev, &which)) == PTL_EQ_EMPTY)
		;
	CHECK_OK(rc);
	return which;
}

static int take_by_long_poll(const ptl_handle_eq_t eq[QUEUES], ptl_event_t *ev)
{
	ptl_handle_eq_t list[QUEUES];
	int which = -1;
	memcpy(list, eq, sizeof list);
	CHECK_OK(PtlEQPoll(list, QUEUES, PTL_TIME_FOREVER, ev, &which));
	return which;
}

/* A bit without a cause is cleared by a pass in the general way. */
static void see_to_what_is_odd(ptl_handle_ni_t ni, unsigned rank, take_fn *take)
{
	struct self s = self_of(ni, rank);
	ptl_handle_eq_t eq[QUEUES] = {s.eq, s.eq, s.eq};
	ptl_event_t ev;
	for (unsigned i = 0; i < 32 && !is_dedicated(); i++) {
		put_to_self(&s);
		wait_for_kind(&s, PTL_EVENT_SEND_END);
		nic_hold(nic());
		bool is_there = !p3_eq_is_empty(p3_eq_named(nic(), s.eq), s.eq);
		p3_odd_set(nic(), P3_ODD_BLOCKED);
		p3_lease_leave(nic());
		(void)take(eq, &ev);
		CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
		nic_hold(nic());
		CHECK(!(nic()->odd & P3_ODD_BLOCKED) || is_there);
		p3_lease_leave(nic());
	}
}

CALL_CASE(a_wait_sees_to_what_is_odd, see_to_what_is_odd, take_by_wait)
CALL_CASE(a_get_sees_to_what_is_odd, see_to_what_is_odd, take_by_get)
CALL_CASE(a_poll_sees_to_what_is_odd, see_to_what_is_odd, take_by_poll)

/* ---- polls that find nothing ---- */

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
	if (rc == PTL_EQ_EMPTY && nic_holds(nic()) != before) {
		(void)expect(eq, kind);
		return;
	}
	CHECK_OK(rc);
	CHECK_EQ(ev.type, kind);
}

NODES_CASE(a_poll_finds_what_lies_in_a_lane, 2)
{
	char *at = (char *)node_alloc(SHORT);
	ptl_handle_eq_t eq = eq_new(ni, 16);
	ptl_handle_md_t md = bind_md(ni, source_md(at, SHORT, eq));
	post_md(ni, PT, 0, sink_md(at, SHORT, eq));
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
	char *at = (char *)node_alloc(SHORT);
	ptl_handle_eq_t eq[2] = {eq_new(ni, 16), eq_new(ni, 16)};
	ptl_handle_md_t md = bind_md(ni, source_md(at, SHORT, PTL_EQ_NONE));
	for (unsigned k = 0; k < 2; k++)
		post_md(ni, PT, k, sink_md(at, SHORT, eq[k]));
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

NODES_CASE(an_empty_poll_sees_to_what_is_odd, 1)
{
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
	char *at = (char *)node_alloc(LONG);
	ptl_handle_eq_t eq = eq_new(ni, 16), empty = eq_new(ni, 16);
	ptl_handle_md_t md[2];
	for (unsigned i = 0; i < 2; i++) {
		const size_t len = i ? LONG : SHORT;
		post_md(ni, PT, i, sink_md(at, len, eq));
		md[i] = bind_md(ni, source_md(at, len, eq));
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
	struct waiting w = {.eq = eq_new(ni, 16)};
	struct side *other = NULL;
	ptl_handle_eq_t eq = eq_new(ni, 16);
	ptl_handle_md_t md = bind_md(ni, md_of(NULL, 0, MD_QUIET, PTL_EQ_NONE));
	if (rank == 1) {
		post_md(ni, PT, 0, sink_md(NULL, 0, w.eq));
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

/* ---- windows of messages ---- */

/* Message k of a window goes to a queue of its own order: none is lost, and those of each
 * queue are in order. */
static void take_window(take_fn *take, const ptl_handle_eq_t eq[QUEUES], unsigned spread,
	unsigned base, unsigned window)
{
	ptl_event_t ev;
	unsigned next[QUEUES] = {0, 1 % spread, 2 % spread};
	for (unsigned k = 0; k < window; k++) {
		int q = take(eq, &ev);
		CHECK(q >= 0 && q < QUEUES);
		CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
		CHECK_EQ(ev.md.eq_handle, eq[q]);
		CHECK_EQ(ev.match_bits, (unsigned)q);
		CHECK_EQ(ev.hdr_data, base + next[q]);
		next[q] += spread;
	}
}

/* A lane with more and fewer messages than its last visits had; spread: number of queues
 * that get messages. */
static void exchange_windows(
	ptl_handle_ni_t ni, unsigned rank, take_fn *take, unsigned spread)
{
	char *at = (char *)node_alloc(SHORT);
	ptl_handle_eq_t eq[QUEUES];
	ptl_handle_md_t md = bind_md(ni, source_md(at, SHORT, PTL_EQ_NONE));
	for (unsigned q = 0; q < QUEUES; q++) {
		eq[q] = eq_new(ni, 64);
		post_md(ni, PT, q, sink_md(at, SHORT, eq[q]));
	}
	sync_nodes();
	for (unsigned i = 0; i < rounds(400); i++) {
		unsigned window = 1 + i * 7 % 23; /* each waits for the one before */
		for (unsigned k = 0; k < window && rank == i % 2; k++)
			CHECK_OK(PtlPut(md, PTL_NOACK_REQ, id_of(ni, 1 - rank), PT, 0,
				k % spread, 0, i * 64 + k));
		if (rank != i % 2)
			take_window(take, eq, spread, i * 64, window);
	}
	sync_nodes();
}

#define WINDOWS_CASE(name, take, spread)                                                 \
	NODES_CASE(name, 2)                                                              \
	{                                                                                \
		exchange_windows(ni, rank, take, spread);                                \
	}

WINDOWS_CASE(waits_find_windows_of_any_length, take_by_wait, 1)
WINDOWS_CASE(gets_find_windows_of_any_length, take_by_get, 1)
WINDOWS_CASE(polls_find_windows_of_any_length, take_by_poll, QUEUES)
WINDOWS_CASE(long_polls_find_windows_of_any_length, take_by_long_poll, QUEUES)

/* ---- other threads want the CPU ---- */

enum { HOLD_NS = 10000, COMPUTE_NS = 5000000 };

struct other {
	struct p3_nic *n;
	uint64_t hold_ns;
	p3_a32 ends, saw_sleep;
};

/* Hold the CPU again and again, and see whether the waiting thread sleeps. */
static void *want_the_cpu(void *arg)
{
	struct other *o = arg;
	while (!p3_get(&o->ends)) {
		uint64_t since = p3_now_ns();
		while (p3_now_ns() - since < o->hold_ns)
			;
		if (p3_get(&o->n->parked))
			p3_set(&o->saw_sleep, 1);
		sched_yield();
	}
	return NULL;
}

static void share_this_cpu(pthread_t other)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
	CHECK_EQ(pthread_setaffinity_np(other, sizeof one, &one), 0);
}

/* One short wait after the other: the thread sleeps in some of them.  It does not take
 * itself for the only one that wants the CPU.  While other programs want this CPU, too, a
 * yield may take as long as a whole wait. */
NODES_CASE(short_waits_sleep, 1)
{
	(void)arg, (void)rank, (void)size;
	struct other o = {.n = nic(), .hold_ns = HOLD_NS};
	ptl_handle_eq_t eq = eq_new(ni, 8);
	pthread_t other;
	ptl_event_t ev;
	int which;
	CHECK_EQ(pthread_create(&other, NULL, want_the_cpu, &o), 0);
	share_this_cpu(other);
	struct patience p = patience_begin();
	while (!p3_get(&o.saw_sleep) && !patience_is_over(&p))
		CHECK_RC(PtlEQPoll(&eq, 1, 10, &ev, &which), PTL_EQ_EMPTY);
	p3_set(&o.ends, 1);
	CHECK_EQ(pthread_join(other, NULL), 0);
	CHECK(p3_get(&o.saw_sleep));
	CHECK_OK(PtlEQFree(eq));
}

/* Return the number of passes of a short wait for nothing. */
static uint64_t passes_of_wait(ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	int which;
	uint64_t before = counter(P3_C_PASSES);
	CHECK_RC(PtlEQPoll(&eq, 1, 5, &ev, &which), PTL_EQ_EMPTY);
	return counter(P3_C_PASSES) - before;
}

/* Wait until the library has found out that another program computes on this CPU, which a
 * node that never yields has no need to know. */
static void find_company(ptl_handle_eq_t eq)
{
	struct other o = {.n = nic(), .hold_ns = COMPUTE_NS};
	struct patience p = patience_begin();
	pthread_t other;
	ptl_event_t ev;
	int which;
	CHECK_EQ(pthread_create(&other, NULL, want_the_cpu, &o), 0);
	share_this_cpu(other);
	while (!p3_get(&nic()->hogged_until) && nic()->idle.yield_ns &&
		!patience_is_over(&p))
		CHECK_RC(PtlEQPoll(&eq, 1, 30, &ev, &which), PTL_EQ_EMPTY);
	p3_set(&o.ends, 1);
	CHECK_EQ(pthread_join(other, NULL), 0);
	CHECK(p3_get(&nic()->hogged_until) || !nic()->idle.yield_ns);
}

/* Where other programs compute, waits neither yield nor spin for long: a thread that has
 * slept runs before them.  The NIC thread's ticks are passes, too. */
NODES_CASE(waits_sleep_at_once_beside_programs_that_compute, 1)
{
	enum { FEW = 16, SPUN = 64 };
	(void)arg, (void)rank, (void)size;
	ptl_handle_eq_t eq = eq_new(ni, 8);
	find_company(eq);
	p3_set(&nic()->hogged_until, UINT64_MAX); /* as long as this case goes on */
	struct patience p = patience_begin();
	while (passes_of_wait(eq) > FEW && !is_dedicated())
		CHECK(!patience_is_over(&p));
	p3_set(&nic()->hogged_until, 1); /* that is over */
	while (passes_of_wait(eq) < SPUN && nic()->idle.spin_ns && !is_dedicated())
		CHECK(!patience_is_over(&p));
}

/* ---- threads that wait for other queues ---- */

enum { SILENT = 8, MESSAGES = 64, PACE_MS = 3, MOST = 4 };

struct silent {
	ptl_handle_eq_t eq;
	p3_a32 tid;
};

static void wait_for_the_end(void *arg)
{
	struct silent *s = arg;
	ptl_event_t ev;
	p3_set(&s->tid, (uint32_t)gettid());
	CHECK_OK(PtlEQWait(s->eq, &ev));
	CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
}

/* Return how often the thread has left its CPU, for itself or for others. */
static unsigned long switches_of(uint32_t tid)
{
	char name[64], line[128];
	unsigned long all = 0, n;
	snprintf(name, sizeof name, "/proc/self/task/%u/status", tid);
	FILE *f = fopen(name, "re");
	CHECK(f != NULL);
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1 ||
			sscanf(line, "nonvoluntary_ctxt_switches: %lu", &n) == 1)
			all += n;
	fclose(f);
	return all;
}

static unsigned long switches_of_all(struct silent s[SILENT])
{
	unsigned long all = 0;
	for (unsigned i = 0; i < SILENT; i++)
		all += switches_of(p3_get(&s[i].tid));
	return all;
}

/* A message wakes the thread that waits for it, and at most one that tends the node; this
 * one may lose its CPU before it sleeps again.  The longer the messages take, the more
 * often threads look that nothing wakes. */
static void answer_beside_silent_threads(
	ptl_handle_ni_t ni, ptl_handle_md_t md, ptl_handle_eq_t eq)
{
	struct silent s[SILENT] = {0};
	struct side *side[SILENT];
	char *at = (char *)node_alloc(SHORT);
	for (unsigned i = 0; i < SILENT; i++) {
		s[i].eq = eq_new(ni, 8);
		post_md(ni, PT, 1 + i, sink_md(at, SHORT, s[i].eq));
		side[i] = side_start(wait_for_the_end, &s[i]);
	}
	while (p3_get(&nic()->parked) < SILENT)
		sleep_ms(1);
	unsigned long before = switches_of_all(s);
	uint64_t since = p3_now_ns();
	sync_nodes();
	for (unsigned i = 0; i < MESSAGES; i++) {
		expect(eq, PTL_EVENT_PUT_END);
		CHECK_OK(put_to(ni, md, 0, PT, 0, PTL_NO_ACK_REQ));
	}
	unsigned long switches = switches_of_all(s) - before;
	uint64_t by_time = 2 * SILENT * (p3_now_ns() - since) / P3_SAFETY_NS;
	CHECK(switches <= MOST * MESSAGES + by_time);
	for (unsigned i = 0; i < SILENT; i++)
		CHECK_OK(put_to(ni, md, 1, PT, 1 + i, PTL_NO_ACK_REQ));
	for (unsigned i = 0; i < SILENT; i++)
		side_join(side[i]);
}

NODES_CASE(a_message_wakes_the_threads_that_it_concerns, 2)
{
	char *at = (char *)node_alloc(SHORT);
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t md = bind_md(ni, md_of(at, SHORT, MD_QUIET, PTL_EQ_NONE));
	post_md(ni, PT, 0, sink_md(at, SHORT, eq));
	if (rank == 1)
		answer_beside_silent_threads(ni, md, eq);
	else
		sync_nodes();
	for (unsigned i = 0; i < MESSAGES && rank == 0; i++) {
		sleep_ms(PACE_MS); /* pause: the other node's threads fall asleep */
		CHECK_OK(put_to(ni, md, 1, PT, 0, PTL_NO_ACK_REQ));
		expect(eq, PTL_EVENT_PUT_END);
	}
	sync_nodes();
}

/* ---- a target that stands still ---- */

enum { NAPS = 100 };

static p3_a32 stands, goes_on;

static void wait_for_ack(void *arg)
{
	struct silent *s = arg;
	ptl_event_t ev;
	p3_set(&s->tid, (uint32_t)gettid());
	CHECK_OK(PtlEQWait(s->eq, &ev));
	CHECK_EQ(ev.type, PTL_EVENT_ACK);
}

/* Wait until the thread has slept and looked again a number of times. */
static void await_naps(const struct silent *s)
{
	struct patience p = patience_begin();
	while (!p3_get(&s->tid))
		sleep_ms(1);
	unsigned long before = switches_of(p3_get(&s->tid));
	while (switches_of(p3_get(&s->tid)) < before + NAPS) {
		CHECK(!patience_is_over(&p));
		sleep_ms(1);
	}
}

/* While its message is not taken, a thread that waits for the answer looks again after
 * each nap, and the naps stay short: the target may need a kick. */
NODES_CASE(naps_stay_short_while_a_message_is_not_taken, 2)
{
	if (is_dedicated() || nic()->wired)
		return;
	struct silent s = {.eq = eq_new(ni, 8)};
	post_md(ni, PT, 0, md_of(NULL, 0, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	p3_set(&stands, 0);
	p3_set(&goes_on, 0);
	sync_nodes();
	if (rank == 1) {
		nic_hold(nic());
		p3_set(&stands, 1);
		while (!p3_get(&goes_on))
			sleep_ms(1);
		p3_lease_leave(nic());
	} else {
		while (!p3_get(&stands))
			sleep_ms(1);
		CHECK_OK(put_to(ni, bind_md(ni, md_of(NULL, 0, MD_QUIET, s.eq)), 1, PT, 0,
			PTL_ACK_REQ));
		struct side *side = side_start(wait_for_ack, &s);
		await_naps(&s);
		p3_set(&goes_on, 1);
		side_join(side);
	}
	sync_nodes();
}

/* ---- lost wake-ups ---- */

/* Take a message, and tell none of its event, while a thread sleeps for that. */
static void lose_a_wake_up(ptl_handle_eq_t eq)
{
	struct silent s = {.eq = eq};
	nic_hold(nic());
	struct side *side = side_start(wait_for_the_end, &s);
	while (!p3_get(&s.tid) || !p3_get(&nic()->parked))
		sleep_ms(1);
	CHECK(await_thread_state((pid_t)p3_get(&s.tid), 'S'));
	sync_nodes();
	while (p3_eq_is_empty(p3_eq_named(nic(), eq), eq))
		(void)p3_pass_run(nic());
	nic()->posted = 0;
	side_join(side);
	p3_lease_leave(nic());
}

/* The sleeper finds the event when its sleep ends.  It counts that, unless it has just
 * been between two sleeps. */
NODES_CASE(a_lost_wake_up_is_counted, 2)
{
	struct patience p = patience_begin();
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_handle_md_t md = bind_md(ni, md_of(NULL, 0, MD_QUIET, PTL_EQ_NONE));
	uint64_t late = counter(P3_C_PARK_LATE);
	post_md(ni, PT, 0, md_of(NULL, 0, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
	p3_set(&goes_on, is_dedicated() || nic()->generic || nic()->wired);
	for (sync_nodes(); !p3_get(&goes_on); sync_nodes()) {
		if (rank == 1)
			lose_a_wake_up(eq);
		else
			sync_nodes();
		if (rank == 0)
			CHECK_OK(put_to(ni, md, 1, PT, 0, PTL_NO_ACK_REQ));
		else
			p3_set(&goes_on, counter(P3_C_PARK_LATE) != late);
		CHECK(!patience_is_over(&p));
	}
}

/* ---- threads that wait for an event of another thread's put ---- */

/* Count a thread that sleeps for events of this queue, and that nothing wakes. */
static void count_sleeper(ptl_handle_eq_t eq, uint32_t one)
{
	unsigned bit = (unsigned)__builtin_ctz(p3_news_of_queue(eq));
	p3_add32(&nic()->sleepers[bit], one);
	p3_add32(&nic()->parked, one);
}

/* Put, and return true if this wakes the threads that sleep for its SEND_END before the
 * call returns, or if the NIC thread may have executed the put, to wake them later. */
static bool put_wakes(
	ptl_handle_ni_t ni, ptl_handle_md_t md, ptl_handle_eq_t eq, ptl_ack_req_t ack)
{
	uint64_t before = nic_holds(nic());
	count_sleeper(eq, 1);
	uint32_t news = p3_get(&nic()->news);
	CHECK_OK(put_to(ni, md, 1, PT, 0, ack));
	bool woken = p3_get(&nic()->news) != news;
	count_sleeper(eq, (uint32_t)-1);
	expect(eq, PTL_EVENT_SEND_END);
	return woken || nic_holds(nic()) != before;
}

/* Puts with an ACK let the target keep up. */
NODES_CASE(a_put_wakes_the_threads_that_wait_for_its_end, 2)
{
	char *at = (char *)node_alloc(SHORT);
	ptl_handle_eq_t eq[QUEUES];
	for (unsigned i = 0; i < QUEUES; i++)
		eq[i] = eq_new(ni, 2 * QUEUES * MESSAGES);
	post_md(ni, PT, 0, sink_md(at, SHORT, eq[0]));
	sync_nodes();
	for (unsigned i = 0; i < 2 * QUEUES * MESSAGES && rank == 1; i++)
		expect(eq[0], PTL_EVENT_PUT_END);
	for (unsigned i = 0; i < QUEUES && rank == 0; i++) {
		ptl_handle_md_t md = bind_md(ni, source_md(at, SHORT, eq[i]));
		for (unsigned k = 0; k < MESSAGES; k++) {
			CHECK(put_wakes(ni, md, eq[i], PTL_NOACK_REQ) || is_dedicated());
			CHECK(put_wakes(ni, md, eq[i], PTL_ACK_REQ) || is_dedicated());
			expect(eq[i], PTL_EVENT_ACK);
		}
	}
	sync_nodes();
}

/* ---- handlers of queues ---- */

static int which_now, which_seen;

static void note_which(ptl_event_t *ev)
{
	(void)ev;
	which_seen = which_now;
}

/* A handler may read the index of its queue.  The first event of a thread takes the
 * general way, later ones the short way. */
NODES_CASE(polls_name_the_queue_before_its_handler, 1)
{
	ptl_event_t ev;
	char *at = (char *)node_alloc(SHORT);
	ptl_handle_eq_t eq[2] = {eq_new(ni, 8)};
	CHECK_OK(PtlEQAlloc(ni, 8, note_which, &eq[1]));
	ptl_handle_md_t md = bind_md(ni, source_md(at, SHORT, eq[1]));
	post_md(ni, PT, 0, sink_md(at, SHORT, PTL_EQ_NONE));
	for (unsigned i = 0; i < 32; i++) {
		which_now = which_seen = -1;
		CHECK_OK(put_to(ni, md, rank, PT, 0, PTL_NOACK_REQ));
		CHECK_OK(PtlEQPoll(eq, 2, PTL_TIME_FOREVER, &ev, &which_now));
		CHECK_EQ(which_now, 1);
		CHECK_EQ(which_seen, 1);
	}
}
