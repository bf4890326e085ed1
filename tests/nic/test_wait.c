/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that wait or poll.  Where a pass only polls a few lanes, PtlEQWait runs it in
 * a short way (nic/host/eq_poll.c), which must miss none of the things that a pass sees
 * to.
 */
#include "nic/obj/obj.h"
#include "nic/run/lease.h"
#include "nic/cases.h"

#include "lib/node/node.h"
#include "support/hold.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

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

/* Wait often.  Return true if most of the waits have counted as passes: the others met
 * the NIC thread with the lease. */
static bool most_waits_count(const struct self *s)
{
	uint64_t passes = counter(P3_C_PASSES), holds = counter(P3_C_LEASE_HOST);
	go_round(s, 1000);
	return counter(P3_C_PASSES) - passes >= 500 &&
	       counter(P3_C_LEASE_HOST) - holds >= 1000;
}

/* The NIC thread has the lease for longer when it loses its CPU meanwhile. */
NODES_CASE(waits_count_as_passes, 1)
{
	(void)arg;
	(void)size;
	struct patience p = patience_begin();
	struct self s = self_of(ni, rank);
	while (!most_waits_count(&s) && !is_dedicated())
		CHECK(!patience_is_over(&p));
}

/* No round ends in a pass without work, so only the passes that waits count show the
 * gauges. */
NODES_CASE(waits_show_the_node_to_tools, 1)
{
	(void)arg;
	(void)size;
	struct patience p = patience_begin();
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

#define ODD_CASE(name, take)                                                             \
	NODES_CASE(name, 1)                                                              \
	{                                                                                \
		(void)arg;                                                               \
		(void)size;                                                              \
		see_to_what_is_odd(ni, rank, take);                                      \
	}

ODD_CASE(a_wait_sees_to_what_is_odd, take_by_wait)
ODD_CASE(a_get_sees_to_what_is_odd, take_by_get)
ODD_CASE(a_poll_sees_to_what_is_odd, take_by_poll)

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
	ptl_handle_md_t md =
		bind_md(ni, md_of(at, SHORT, PTL_MD_EVENT_START_DISABLE, PTL_EQ_NONE));
	for (unsigned q = 0; q < QUEUES; q++) {
		eq[q] = eq_new(ni, 64);
		post_md(ni, PT, q,
			md_of(at, SHORT, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq[q]));
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
		(void)arg;                                                               \
		(void)size;                                                              \
		exchange_windows(ni, rank, take, spread);                                \
	}

WINDOWS_CASE(waits_find_windows_of_any_length, take_by_wait, 1)
WINDOWS_CASE(gets_find_windows_of_any_length, take_by_get, 1)
WINDOWS_CASE(polls_find_windows_of_any_length, take_by_poll, QUEUES)
WINDOWS_CASE(long_polls_find_windows_of_any_length, take_by_long_poll, QUEUES)

/* ---- polls of lists that are not valid ---- */

/* A queue that is not valid is told although another one has an event, which stays. */
NODES_CASE(polls_check_all_queues_first, 1)
{
	(void)arg;
	(void)size;
	ptl_event_t ev;
	int which = -1;
	struct self s = self_of(ni, rank);
	ptl_handle_eq_t freed = eq_new(ni, 8);
	CHECK_OK(PtlEQFree(freed));
	put_to_self(&s);
	put_to_self(&s);
	wait_for_kind(&s, PTL_EVENT_SEND_END); /* so this thread has read the queue */
	ptl_handle_eq_t lists[][QUEUES] = {{s.eq, freed, s.eq}, {freed, s.eq, s.eq},
		{s.eq, s.eq, PTL_EQ_NONE}, {s.md, s.eq, s.eq}};
	for (unsigned i = 0; i < sizeof lists / sizeof *lists; i++) {
		CHECK_RC(PtlEQPoll(lists[i], QUEUES, 0, &ev, &which), PTL_EQ_INVALID);
		CHECK_RC(PtlEQPoll(lists[i], QUEUES, 1, &ev, &which), PTL_EQ_INVALID);
	}
	CHECK_EQ(which, -1);
	/* The NIC thread may deliver the first put before it sends the second one. */
	unsigned sent = 0, put = 0;
	for (unsigned i = 0; i < 3; i++) {
		CHECK_OK(PtlEQWait(s.eq, &ev));
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		sent += ev.type == PTL_EVENT_SEND_END;
		put += ev.type == PTL_EVENT_PUT_END;
	}
	CHECK_EQ(sent, 1);
	CHECK_EQ(put, 2);
}

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
 * one may lose its CPU before it sleeps again. */
static void answer_beside_silent_threads(
	ptl_handle_ni_t ni, ptl_handle_md_t md, ptl_handle_eq_t eq)
{
	struct silent s[SILENT] = {0};
	struct side *side[SILENT];
	char *at = (char *)node_alloc(SHORT);
	for (unsigned i = 0; i < SILENT; i++) {
		s[i].eq = eq_new(ni, 8);
		post_md(ni, PT, 1 + i,
			md_of(at, SHORT, MD_ANY | PTL_MD_EVENT_START_DISABLE, s[i].eq));
		side[i] = side_start(wait_for_the_end, &s[i]);
	}
	while (p3_get(&nic()->parked) < SILENT)
		sleep_ms(1);
	unsigned long before = switches_of_all(s);
	sync_nodes();
	for (unsigned i = 0; i < MESSAGES; i++) {
		expect(eq, PTL_EVENT_PUT_END);
		CHECK_OK(put_to(ni, md, 0, PT, 0, PTL_NO_ACK_REQ));
	}
	unsigned long switches = switches_of_all(s) - before;
	CHECK(switches <= MOST * MESSAGES);
	for (unsigned i = 0; i < SILENT; i++)
		CHECK_OK(put_to(ni, md, 1, PT, 1 + i, PTL_NO_ACK_REQ));
	for (unsigned i = 0; i < SILENT; i++)
		side_join(side[i]);
}

NODES_CASE(a_message_wakes_the_threads_that_it_concerns, 2)
{
	UNUSED_ARGS;
	char *at = (char *)node_alloc(SHORT);
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t md = bind_md(ni, md_of(at, SHORT, MD_QUIET, PTL_EQ_NONE));
	post_md(ni, PT, 0, md_of(at, SHORT, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
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
	UNUSED_ARGS;
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

/* ---- threads that wait for an event of another thread's put ---- */

/* Count a thread that sleeps for events of this queue, and that nothing wakes. */
static void count_sleeper(ptl_handle_eq_t eq, uint32_t one)
{
	unsigned bit = (unsigned)__builtin_ctz(p3_news_of_queue(eq));
	p3_add32(&nic()->sleepers[bit], one);
	p3_add32(&nic()->parked, one);
}

/* Put, and return true if this wakes the threads that sleep for its SEND_END before the
 * call returns. */
static bool put_wakes(
	ptl_handle_ni_t ni, ptl_handle_md_t md, ptl_handle_eq_t eq, ptl_ack_req_t ack)
{
	count_sleeper(eq, 1);
	uint32_t news = p3_get(&nic()->news);
	CHECK_OK(put_to(ni, md, 1, PT, 0, ack));
	bool woken = p3_get(&nic()->news) != news;
	count_sleeper(eq, (uint32_t)-1);
	expect(eq, PTL_EVENT_SEND_END);
	return woken;
}

/* Puts with an ACK let the target keep up.  The NIC thread may execute some of the puts,
 * and wake later. */
NODES_CASE(a_put_wakes_the_threads_that_wait_for_its_end, 2)
{
	UNUSED_ARGS;
	char *at = (char *)node_alloc(SHORT);
	ptl_handle_eq_t eq[QUEUES];
	for (unsigned i = 0; i < QUEUES; i++)
		eq[i] = eq_new(ni, 2 * QUEUES * MESSAGES);
	post_md(ni, PT, 0, md_of(at, SHORT, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq[0]));
	sync_nodes();
	for (unsigned i = 0; i < 2 * QUEUES * MESSAGES && rank == 1; i++)
		expect(eq[0], PTL_EVENT_PUT_END);
	for (unsigned i = 0; i < QUEUES && rank == 0; i++) {
		ptl_handle_md_t md =
			bind_md(ni, md_of(at, SHORT, PTL_MD_EVENT_START_DISABLE, eq[i]));
		unsigned woken = 0, with_ack = 0;
		for (unsigned k = 0; k < MESSAGES; k++) {
			woken += put_wakes(ni, md, eq[i], PTL_NOACK_REQ);
			with_ack += put_wakes(ni, md, eq[i], PTL_ACK_REQ);
			expect(eq[i], PTL_EVENT_ACK);
		}
		CHECK(is_dedicated() || woken > MESSAGES / 2);
		CHECK(is_dedicated() || with_ack > MESSAGES / 2);
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
	(void)arg;
	(void)size;
	ptl_event_t ev;
	char *at = (char *)node_alloc(SHORT);
	ptl_handle_eq_t eq[2] = {eq_new(ni, 8)};
	CHECK_OK(PtlEQAlloc(ni, 8, note_which, &eq[1]));
	ptl_handle_md_t md =
		bind_md(ni, md_of(at, SHORT, PTL_MD_EVENT_START_DISABLE, eq[1]));
	post_md(ni, PT, 0,
		md_of(at, SHORT, MD_ANY | PTL_MD_EVENT_START_DISABLE, PTL_EQ_NONE));
	for (unsigned i = 0; i < 32; i++) {
		which_now = which_seen = -1;
		CHECK_OK(put_to(ni, md, rank, PT, 0, PTL_NOACK_REQ));
		CHECK_OK(PtlEQPoll(eq, 2, PTL_TIME_FOREVER, &ev, &which_now));
		CHECK_EQ(which_now, 1);
		CHECK_EQ(which_seen, 1);
	}
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(waits_count_as_passes),
		cmocka_unit_test(waits_show_the_node_to_tools),
		cmocka_unit_test(a_wait_sees_to_what_is_odd),
		cmocka_unit_test(a_get_sees_to_what_is_odd),
		cmocka_unit_test(a_poll_sees_to_what_is_odd),
		cmocka_unit_test(waits_find_windows_of_any_length),
		cmocka_unit_test(gets_find_windows_of_any_length),
		cmocka_unit_test(polls_find_windows_of_any_length),
		cmocka_unit_test(long_polls_find_windows_of_any_length),
		cmocka_unit_test(polls_check_all_queues_first),
		cmocka_unit_test(polls_name_the_queue_before_its_handler),
		cmocka_unit_test(short_waits_sleep),
		cmocka_unit_test(waits_sleep_at_once_beside_programs_that_compute),
		cmocka_unit_test(a_message_wakes_the_threads_that_it_concerns),
		cmocka_unit_test(naps_stay_short_while_a_message_is_not_taken),
		cmocka_unit_test(a_put_wakes_the_threads_that_wait_for_its_end),
	};
	return RUN_CASES(cases);
}
