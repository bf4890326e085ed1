/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements 131 to 154: making, freeing and reading event queues. */
#include "spec.h"
#include "../support/asleep.h"

#include <string.h>

/* ---- events for B, by puts of A ---- */

#define LAST     UINT64_C(0x1a57) /* match bits of a put behind all others */
#define FOR_LONG 300000u          /* ms: the test is cut off before */

struct source {
	ptl_handle_md_t put; /* A */
	ptl_handle_eq_t acks;
};

/* Return a descriptor that makes one event per put, in this queue. */
static ptl_md_t sink(ptl_handle_eq_t eq)
{
	static uint64_t bytes;
	return spec_md(&bytes, sizeof bytes,
		PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE, eq);
}

/* B: attach it for puts with these bits. */
static ptl_handle_md_t target(ptl_match_bits_t bits, ptl_handle_eq_t eq)
{
	return spec_target(bits, sink(eq));
}

static struct source source(void)
{
	struct source s = {.acks = spec_eq(4096)};
	s.put = spec_bind(
		spec_md(suite_alloc(8), 8,
			PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, s.acks),
		PTL_RETAIN);
	return s;
}

/* A: make one event at B, which has been posted at the return. */
static void post(struct source *s, ptl_match_bits_t bits, ptl_hdr_data_t hdr)
{
	CHECK_OK(PtlPut(s->put, PTL_ACK_REQ, spec.b, SPEC_PT, 0, bits, 0, hdr));
	(void)EXPECT(s->acks, PTL_EVENT_ACK);
}

/* All nodes: wait until B has posted the events of all puts of A.  An ACK may come before
 * the event, but the event of a later put comes behind those of earlier ones. */
static void await_posts(struct source *s)
{
	ptl_handle_eq_t eq = spec_eq(4);
	ptl_handle_me_t me = PTL_INVALID_HANDLE;
	if (spec.is_b) {
		me = spec_me(LAST);
		CHECK_OK(PtlMDAttach(me, sink(eq), PTL_RETAIN, NULL));
	}
	spec_barrier();
	if (spec.is_a)
		post(s, LAST, 0);
	if (spec.is_b) {
		(void)EXPECT(eq, PTL_EVENT_PUT_END);
		CHECK_OK(PtlMEUnlink(me));
	}
	CHECK_OK(PtlEQFree(eq));
	spec_barrier();
}

/* All nodes: A makes n events, numbered from 0 on, which are then in B's queue. */
static void post_many(struct source *s, ptl_match_bits_t bits, unsigned n)
{
	spec_barrier();
	for (unsigned i = 0; spec.is_a && i < n; i++)
		post(s, bits, i);
	await_posts(s);
}

/* ---- PtlEQAlloc, PtlEQFree ---- */

static void alloc_on_nothing(ptl_handle_any_t ni)
{
	ptl_handle_eq_t eq = SPEC_JUNK;
	CHECK_RC(PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &eq), PTL_NI_INVALID);
	CHECK_EQ(eq, SPEC_JUNK);
}

static void check_most_queues(void)
{
	ptl_handle_eq_t eq = SPEC_JUNK, one = spec_eq(4);
	for (int i = 1; i < spec.limits.max_eqs; i++)
		(void)spec_eq(4);
	CHECK_RC(PtlEQAlloc(spec.ni, 4, PTL_EQ_HANDLER_NONE, &eq), PTL_NO_SPACE);
	CHECK_EQ(eq, SPEC_JUNK);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(PtlEQFree(one));
		one = spec_eq(4);
		CHECK_RC(PtlEQAlloc(spec.ni, 4, PTL_EQ_HANDLER_NONE, &eq), PTL_NO_SPACE);
	}
}

STATEMENT(131, bad_calls_of_alloc)
{
	alloc_on_nothing(PTL_INVALID_HANDLE);
	alloc_on_nothing(SPEC_JUNK);
	alloc_on_nothing(spec_me(1));
	CHECK_RC(PtlEQAlloc(spec.ni, 4, PTL_EQ_HANDLER_NONE, NULL), PTL_SEGV);
	ptl_ni_limits_t few = {.max_eqs = 10};
	spec_up(&few);
	check_most_queues();
}

STATEMENT(132, room_for_all_events)
{
	static const unsigned sizes[] = {1, 2, 3, 7, 16, 100, 1000};
	struct source s = source();
	for (unsigned k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
		ptl_handle_eq_t eq = spec_eq(sizes[k]);
		if (spec.is_b)
			(void)target(k, eq);
		post_many(&s, k, sizes[k]);
		for (unsigned i = 0; spec.is_b && i < sizes[k]; i++) {
			ptl_event_t ev = EXPECT(eq, PTL_EVENT_PUT_END);
			CHECK_EQ(ev.hdr_data, i);
		}
		SILENCE(eq);
	}
}

WEAK_STATEMENT(133, queue_of_nothing)
{
	ptl_handle_eq_t eq = SPEC_JUNK;
	CHECK_OK(PtlEQAlloc(spec.ni, 0, PTL_EQ_HANDLER_NONE, &eq));
	CHECK_EQ(eq, PTL_EQ_NONE);
}

STATEMENT(134, freed_queue)
{
	ptl_event_t ev;
	int which;
	ptl_handle_eq_t eq = spec_eq(4);
	CHECK_OK(PtlEQFree(eq));
	CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_INVALID);
	CHECK_RC(PtlEQWait(eq, &ev), PTL_EQ_INVALID);
	CHECK_RC(PtlEQPoll(&eq, 1, 0, &ev, &which), PTL_EQ_INVALID);
	CHECK_RC(PtlEQFree(eq), PTL_EQ_INVALID);
	CHECK_RC(PtlEQFree(PTL_EQ_NONE), PTL_EQ_INVALID);
	CHECK_RC(PtlEQFree(PTL_INVALID_HANDLE), PTL_EQ_INVALID);
	CHECK_RC(PtlEQFree(SPEC_JUNK), PTL_EQ_INVALID);
	CHECK_RC(PtlEQFree(spec.ni), PTL_EQ_INVALID);
}

enum { SHARERS = 10 };

STATEMENT(135, shared_queue)
{
	struct source s = source();
	ptl_handle_eq_t eq = spec_eq(64);
	ptl_handle_md_t md[SHARERS];
	static char mark[SHARERS];
	for (unsigned i = 0; spec.is_b && i < SHARERS; i++) {
		ptl_md_t desc = spec_md(&mark[i], 1,
			PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE |
				PTL_MD_EVENT_START_DISABLE,
			eq);
		desc.user_ptr = &mark[i];
		md[i] = spec_target(i, desc);
	}
	spec_barrier();
	for (unsigned i = 0; spec.is_a && i < 3 * SHARERS; i++)
		post(&s, i * 7 % SHARERS, i);
	for (unsigned i = 0; spec.is_b && i < 3 * SHARERS; i++) {
		ptl_event_t ev = EXPECT(eq, PTL_EVENT_PUT_END);
		CHECK_EQ(ev.hdr_data, i);
		CHECK_EQ(ev.md_handle, md[i * 7 % SHARERS]);
		CHECK(ev.md.user_ptr == &mark[i * 7 % SHARERS]);
	}
	spec_barrier();
}

STATEMENT(136, freed_with_events)
{
	struct source s = source();
	ptl_handle_eq_t eq = spec_eq(16);
	if (spec.is_b)
		(void)target(1, eq);
	post_many(&s, 1, 10);
	if (spec.is_b) {
		ptl_event_t ev;
		CHECK_OK(PtlEQFree(eq));
		CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_INVALID);
	}
	spec_barrier();
}

/* ---- PtlEQGet, PtlEQWait, PtlEQPoll ---- */

STATEMENT(137, empty_queue)
{
	ptl_handle_eq_t eq = spec_eq(4);
	ptl_event_t ev, same;
	int which;
	memset(&ev, 0xa5, sizeof ev);
	memset(&same, 0xa5, sizeof same);
	for (int i = 0; i < 3; i++)
		CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
	CHECK_RC(PtlEQPoll(&eq, 1, 0, &ev, &which), PTL_EQ_EMPTY);
	if (memcmp(&ev, &same, sizeof ev) != 0)
		spec_note("the event was written (weak)");
}

static void read_nothing(ptl_handle_any_t eq)
{
	ptl_event_t ev;
	CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_INVALID);
	CHECK_RC(PtlEQWait(eq, &ev), PTL_EQ_INVALID);
}

STATEMENT(138, bad_calls_of_get_and_wait)
{
	ptl_handle_eq_t eq = spec_eq(4);
	CHECK_RC(PtlEQGet(eq, NULL), PTL_SEGV);
	CHECK_RC(PtlEQWait(eq, NULL), PTL_SEGV);
	read_nothing(PTL_EQ_NONE);
	read_nothing(PTL_INVALID_HANDLE);
	read_nothing(SPEC_JUNK);
	read_nothing(spec.ni);
	read_nothing(spec_me(1));
}

STATEMENT(139, in_order_and_once)
{
	enum { N = 500 };
	struct source s = source();
	ptl_handle_eq_t eq = spec_eq(N);
	if (spec.is_b)
		(void)target(1, eq);
	spec_barrier();
	for (unsigned i = 0; spec.is_a && i < N; i++)
		post(&s, 1, i);
	for (unsigned i = 0; spec.is_b && i < N; i++) {
		ptl_event_t ev = EXPECT(eq, PTL_EVENT_PUT_END);
		CHECK_EQ(ev.hdr_data, i);
	}
	SILENCE(eq);
	spec_barrier();
}

enum { FEW = 4, FLOOD = 600 };

/* Make a queue for a few events at B, and many events. */
static ptl_handle_eq_t flood(ptl_match_bits_t bits)
{
	struct source s = source();
	ptl_handle_eq_t eq = spec_eq(FEW);
	if (spec.is_b)
		(void)target(bits, eq);
	post_many(&s, bits, FLOOD);
	return eq;
}

STATEMENT(140, overflow_is_told_once)
{
	ptl_handle_eq_t eq = flood(1);
	if (spec.is_b) {
		ptl_event_t ev;
		unsigned left = 1;
		CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_DROPPED);
		int rc;
		ptl_seq_t before = ev.sequence;
		while ((rc = PtlEQGet(eq, &ev)) == PTL_OK) {
			CHECK_EQ(ev.sequence, before + 1);
			before = ev.sequence;
			left++;
		}
		CHECK_RC(rc, PTL_EQ_EMPTY);
		CHECK(left >= FEW && left < FLOOD);
	}
	spec_barrier();
}

STATEMENT(141, newest_events_survive)
{
	ptl_handle_eq_t eq = flood(1);
	if (spec.is_b) {
		ptl_event_t ev;
		CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_DROPPED);
		CHECK(ev.hdr_data > 0 && ev.hdr_data <= FLOOD - FEW);
		for (ptl_hdr_data_t next = ev.hdr_data + 1; next < FLOOD; next++) {
			ev = EXPECT(eq, PTL_EVENT_PUT_END);
			CHECK_EQ(ev.hdr_data, next);
		}
		CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
	}
	spec_barrier();
}

STATEMENT(142, overflow_rejects_nothing)
{
	struct source s = source();
	unsigned char *got = suite_alloc(FLOOD), *from = suite_alloc(FLOOD);
	ptl_handle_eq_t eq = spec_eq(FEW), acks = spec_eq(64);
	fill_bytes(from, FLOOD, 1);
	if (spec.is_b)
		(void)spec_target(1, spec_md(got, FLOOD, PTL_MD_OP_PUT, eq));
	spec_barrier();
	ptl_handle_md_t md = spec_bind(
		spec_md(from, FLOOD,
			PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, acks),
		PTL_RETAIN);
	for (unsigned i = 0; spec.is_a && i < FLOOD; i++) {
		CHECK_OK(
			PtlPutRegion(md, i, 1, PTL_ACK_REQ, spec.b, SPEC_PT, 0, 1, 0, 0));
		CHECK_EQ(EXPECT(acks, PTL_EVENT_ACK).mlength, 1);
	}
	await_posts(&s);
	if (spec.is_b) {
		CHECK_BYTES(got, 0, FLOOD, 1);
		CHECK_EQ(spec_drops(), 0);
	}
	spec_barrier();
}

/* A thread of B in one of the calls that wait. */
struct waiter {
	ptl_handle_eq_t eq;
	bool polls;
	int rc;
	ptl_event_t ev;
	_Atomic uint64_t began;
	pid_t tid;
	uint64_t ended;
	_Atomic bool *over;
};

static void wait_in_thread(void *arg)
{
	struct waiter *w = arg;
	int which = -1;
	w->tid = gettid();
	w->began = now_ms();
	w->rc = w->polls ? PtlEQPoll(&w->eq, 1, PTL_TIME_FOREVER, &w->ev, &which)
			 : PtlEQWait(w->eq, &w->ev);
	w->ended = now_ms();
	if (w->over)
		*w->over = true;
	CHECK(!w->polls || which == 0);
}

/* Start a thread, and return when it sleeps in its call. */
static struct thread *start_waiter(struct waiter *w)
{
	struct thread *t = thread_start(wait_in_thread, w);
	while (!w->began)
		sleep_ms(1);
	CHECK(await_thread_state(w->tid, 'S'));
	return t;
}

/* Check the duration of a wait; the time of the put is in its header. */
static void check_blocks(bool polls)
{
	struct source s = source();
	struct waiter w = {.eq = spec_eq(4), .polls = polls};
	struct thread *t = NULL;
	if (spec.is_b) {
		(void)target(1, w.eq);
		t = start_waiter(&w);
	}
	spec_barrier();
	if (spec.is_a) {
		/* pause: the wait of the others must last at least so long */
		sleep_ms(150);
		post(&s, 1, now_ms());
	}
	if (t) {
		thread_join(t);
		CHECK_OK(w.rc);
		CHECK_EQ(w.ev.type, PTL_EVENT_PUT_END);
		CHECK(w.began + 100 < w.ev.hdr_data);
		CHECK(w.ended >= w.ev.hdr_data);
	}
	spec_barrier();
}

STATEMENT(143, wait_blocks)
{
	check_blocks(false);
}

STATEMENT(144, wait_finds_an_event)
{
	struct source s = source();
	ptl_handle_eq_t eq = spec_eq(16);
	if (spec.is_b)
		(void)target(1, eq);
	post_many(&s, 1, 5);
	for (unsigned i = 0; spec.is_b && i < 5; i++) {
		ptl_event_t ev;
		struct patience p = patience_begin();
		CHECK_OK(PtlEQWait(eq, &ev));
		CHECK_EQ(ev.hdr_data, i);
		CHECK(!patience_is_over(&p));
	}
	spec_barrier();
}

STATEMENT(145, one_event_wakes_one)
{
	struct source s = source();
	_Atomic bool over[2] = {false, false};
	struct waiter w[2] = {{.eq = spec_eq(16), .over = &over[0]}, {0}};
	struct thread *t[2] = {NULL, NULL};
	w[1] = (struct waiter){.eq = w[0].eq, .over = &over[1]};
	if (spec.is_b) {
		(void)target(1, w[0].eq);
		for (int i = 0; i < 2; i++)
			t[i] = start_waiter(&w[i]);
	}
	post_many(&s, 1, 1);
	if (spec.is_b) {
		struct patience p = patience_begin();
		while (!over[0] && !over[1] && !patience_is_over(&p))
			sleep_ms(1);
		/* pause: time for the other thread to wake wrongly */
		sleep_ms(30);
		CHECK_EQ(over[0] + over[1], 1);
	}
	post_many(&s, 1, 1);
	if (spec.is_b) {
		for (int i = 0; i < 2; i++)
			thread_join(t[i]);
		CHECK_OK(w[0].rc);
		CHECK_OK(w[1].rc);
		CHECK(w[0].ev.sequence != w[1].ev.sequence);
		SILENCE(w[0].eq);
	}
	spec_barrier();
}

static void check_timeout(ptl_time_t timeout, uint64_t least)
{
	struct patience p = patience_begin();
	ptl_handle_eq_t eq[2] = {spec_eq(4), spec_eq(4)};
	ptl_event_t ev;
	int which = -7;
	uint64_t since = now_ms();
	CHECK_RC(PtlEQPoll(eq, 2, timeout, &ev, &which), PTL_EQ_EMPTY);
	uint64_t took = now_ms() - since;
	if (took < least || patience_is_over(&p))
		check_failed(__FILE__, __LINE__, "PtlEQPoll for %u ms took %llu",
			(unsigned)timeout, (unsigned long long)took);
	CHECK(which == -7);
}

STATEMENT(146, poll_without_waiting)
{
	for (int i = 0; i < 10; i++)
		check_timeout(0, 0);
}

STATEMENT(147, poll_times_out)
{
	check_timeout(100, 98);
	check_timeout(10, 9);
}

STATEMENT(148, poll_names_the_queue)
{
	enum { QUEUES = 40, TWICE = 3 };
	struct source s = source();
	ptl_handle_eq_t eq[QUEUES + 1];
	for (unsigned i = 0; i < QUEUES; i++) {
		eq[i] = spec_eq(16);
		if (spec.is_b)
			(void)target(i, eq[i]);
	}
	eq[QUEUES] = eq[TWICE]; /* a queue may be in the list twice */
	for (unsigned i = 0; i < 3 * QUEUES; i++) {
		unsigned q = i * 7 % QUEUES;
		spec_barrier();
		if (spec.is_a) {
			/* pause: the other node waits in PtlEQPoll by now, or not yet */
			sleep_ms(i % 50 == 1 ? 30 : i % 4);
			post(&s, q, i);
		}
		if (spec.is_b) {
			ptl_event_t ev;
			int which = -1;
			CHECK_OK(PtlEQPoll(eq, QUEUES + 1,
				i % 2 ? PTL_TIME_FOREVER : FOR_LONG, &ev, &which));
			CHECK(which == (int)q || (q == TWICE && which == QUEUES));
			CHECK_EQ(ev.hdr_data, i);
			CHECK_EQ(ev.match_bits, q);
			CHECK_EQ(ev.md.eq_handle, eq[q]);
		}
		spec_barrier();
	}
}

STATEMENT(149, poll_for_ever)
{
	check_blocks(true);
}

STATEMENT(150, bad_arrays)
{
	struct source s = source();
	ptl_handle_eq_t eq = spec_eq(16), freed = spec_eq(4);
	const ptl_handle_any_t bad[] = {
		PTL_EQ_NONE, PTL_INVALID_HANDLE, SPEC_JUNK, spec.ni, spec_me(9), freed};
	ptl_event_t ev;
	int which = -7;
	CHECK_OK(PtlEQFree(freed));
	if (spec.is_b)
		(void)target(1, eq);
	post_many(&s, 1, 2);
	if (spec.is_b) /* so this thread has read the queue */
		(void)EXPECT(eq, PTL_EVENT_PUT_END);
	CHECK_RC(PtlEQPoll(&eq, 0, 0, &ev, &which), PTL_EQ_INVALID);
	CHECK_RC(PtlEQPoll(&eq, -1, 0, &ev, &which), PTL_EQ_INVALID);
	for (unsigned i = 0; i < 3 * sizeof bad / sizeof bad[0]; i++) {
		ptl_handle_eq_t list[3] = {eq, eq, eq};
		list[i % 3] = bad[i / 3];
		CHECK_RC(PtlEQPoll(list, 3, 0, &ev, &which), PTL_EQ_INVALID);
		CHECK_RC(PtlEQPoll(list, 3, 1, &ev, &which), PTL_EQ_INVALID);
		CHECK_RC(PtlEQPoll(list, 3, PTL_TIME_FOREVER, &ev, &which),
			PTL_EQ_INVALID);
	}
	CHECK(which == -7);
	if (spec.is_b)
		(void)EXPECT(eq, PTL_EVENT_PUT_END);
	spec_barrier();
}

STATEMENT(151, poll_needs_its_pointers)
{
	ptl_handle_eq_t eq = spec_eq(4);
	ptl_event_t ev;
	int which;
	CHECK_RC(PtlEQPoll(NULL, 1, 0, &ev, &which), PTL_SEGV);
	CHECK_RC(PtlEQPoll(&eq, 1, 0, NULL, &which), PTL_SEGV);
	CHECK_RC(PtlEQPoll(&eq, 1, 0, &ev, NULL), PTL_SEGV);
}

STATEMENT(152, queues_of_two_interfaces)
{
	ptl_handle_eq_t eq[2] = {spec_eq(4)}, swapped[2];
	ptl_event_t ev;
	int which;
	CHECK_OK(PtlEQAlloc(spec_second(), 4, PTL_EQ_HANDLER_NONE, &eq[1]));
	swapped[0] = eq[1];
	swapped[1] = eq[0];
	CHECK_RC(PtlEQPoll(eq, 2, 0, &ev, &which), PTL_EQ_INVALID);
	CHECK_RC(PtlEQPoll(swapped, 2, 0, &ev, &which), PTL_EQ_INVALID);
	CHECK_RC(PtlEQPoll(&eq[0], 1, 0, &ev, &which), PTL_EQ_EMPTY);
	CHECK_RC(PtlEQPoll(&eq[1], 1, 0, &ev, &which), PTL_EQ_EMPTY);
}

STATEMENT(153, poll_tells_of_losses)
{
	ptl_handle_eq_t eq[3] = {spec_eq(4), 0, spec_eq(4)};
	eq[1] = flood(1);
	if (spec.is_b) {
		ptl_event_t ev;
		int which = -1;
		CHECK_RC(PtlEQPoll(eq, 3, FOR_LONG, &ev, &which), PTL_EQ_DROPPED);
		CHECK_EQ(which, 1);
		which = -1;
		CHECK_RC(PtlEQPoll(eq, 3, FOR_LONG, &ev, &which), PTL_OK);
		CHECK_EQ(which, 1);
	}
	spec_barrier();
}

WEAK_STATEMENT(154, no_queue_starves)
{
	enum { MANY = 200 };
	struct source s = source();
	ptl_handle_eq_t eq[2] = {spec_eq(MANY), spec_eq(16)};
	if (spec.is_b) {
		(void)target(0, eq[0]);
		(void)target(1, eq[1]);
	}
	post_many(&s, 0, MANY);
	post_many(&s, 1, 1);
	if (spec.is_b) {
		ptl_event_t ev;
		int which = -1;
		while (PtlEQPeek(eq[1], &ev) == PTL_EQ_EMPTY)
			sleep_ms(1);
		for (int i = 0; i < 10 && which != 1; i++)
			CHECK_OK(PtlEQPoll(eq, 2, 0, &ev, &which));
		CHECK_EQ(which, 1);
	}
	spec_barrier();
}
