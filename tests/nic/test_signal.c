/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls from a signal handler that interrupts the same thread anywhere, also in the
 * middle of the library: none waits, and accepted calls are carried out, with all their
 * events.
 */
#include "nic/host/call.h"
#include "cases.h"

#include "lib/node/node.h"
#include "support/hold.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

enum { PT = 4, SIGNALS = 20000, STORM_MS = 600, MOST = 1 << 30 };
enum { EVENTS = 1 << 17 }; /* more than all signals can cause */

static struct {
	ptl_handle_ni_t ni;
	ptl_handle_md_t md, get;
	ptl_handle_eq_t eq;
	ptl_process_id_t self;
	p3_a32 handled, put, got, taken, wrong, stop;
	p3_a64 mine; /* the queue that the interrupted thread reads */
	bool may_free;
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
	int saved = errno, rc;
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_event_t ev;
	ptl_process_id_t id;
	(void)number;
	count(PtlPut(storm.md, PTL_ACK_REQ, storm.self, PT, 0, 0, 0, 0), &storm.put);
	count(PtlGet(storm.get, storm.self, PT, 0, 1, 0), &storm.got);
	rc = PtlEQGet(storm.eq, &ev);
	bool wrong = rc != PTL_OK && rc != PTL_EQ_EMPTY;
	if (rc == PTL_OK)
		p3_add32(&storm.taken, 1);
	wrong |= PtlNIHandle(storm.md, &ni) != PTL_OK || ni != storm.ni;
	wrong |= PtlNIHandle(PTL_EQ_NONE, &ni) != PTL_HANDLE_INVALID;
	wrong |= PtlGetId(storm.ni, &id) != PTL_OK;
	rc = PtlXPTHold(storm.ni, PT + 1, 0);
	wrong |= rc != PTL_OK && rc != PTL_NO_SPACE;
	rc = PtlXInject(storm.ni, &storm.ni, 8, storm.self, PT + 1, 0, 0, 0, 0);
	wrong |= rc != PTL_OK && rc != PTL_NO_SPACE;
	rc = PtlEQAlloc(storm.ni, 4, PTL_EQ_HANDLER_NONE, &eq);
	wrong |= rc != PTL_OK && rc != PTL_NO_SPACE;
	if (rc == PTL_OK && PtlEQFree(eq) != PTL_OK)
		wrong = true;
	rc = storm.may_free ? PtlEQFree(p3_get(&storm.mine)) : PTL_OK;
	wrong |= rc != PTL_OK && rc != PTL_NO_SPACE && rc != PTL_EQ_INVALID;
	if (wrong)
		p3_add32(&storm.wrong, 1);
	p3_add32(&storm.handled, 1);
	errno = saved;
}

/*
 * Send one signal after another, each when the last one was handled.  On a busy machine
 * a signal may cost a turn of the scheduler: there a time limit ends the storm.
 */
static void *thunder(void *arg)
{
	pthread_t *victim = arg;
	uint64_t until = now_ms() + STORM_MS;
	for (uint32_t i = 0; i < rounds(SIGNALS); i++) {
		if (now_ms() >= until && p3_get(&storm.put) && p3_get(&storm.got))
			break;
		(void)pthread_kill(*victim, SIGUSR1);
		while (p3_get(&storm.handled) <= i)
			sched_yield();
	}
	p3_set(&storm.stop, 1);
	return NULL;
}

static int left_of(ptl_handle_md_t md)
{
	ptl_md_t d = {.options = 0};
	CHECK_OK(PtlMDUpdate(md, &d, NULL, PTL_EQ_NONE));
	return d.threshold;
}

/* Request and wait for the answers: most of it is done in the short way.  mp_storm has
 * other calls. */
static void ask_on_and_on(ptl_handle_ni_t ni)
{
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t md = bind_md(ni, source_md(node_alloc(8), 8, eq));
	post_md(ni, PT, 3, md_of(node_alloc(8), 8, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	while (!p3_get(&storm.stop)) {
		CHECK_OK(put_to(ni, md, 0, PT, 3, PTL_ACK_REQ));
		(void)expect(eq, PTL_EVENT_SEND_END);
		(void)expect(eq, PTL_EVENT_ACK);
		CHECK_OK(get_from(ni, md, 0, PT, 3));
		(void)expect(eq, PTL_EVENT_REPLY_END);
	}
}

/* Poll queues that stay empty: a handler interrupts a peek, which has the lease. */
static void peek_on_and_on(ptl_handle_ni_t ni)
{
	ptl_event_t ev;
	int which;
	ptl_handle_eq_t eq[2] = {eq_new(ni, 8), eq_new(ni, 8)};
	while (!p3_get(&storm.stop)) {
		CHECK_RC(PtlEQGet(eq[0], &ev), PTL_EQ_EMPTY);
		CHECK_RC(PtlEQPoll(eq, 2, 0, &ev, &which), PTL_EQ_EMPTY);
	}
}

/* Make a new queue again and again: only its first reader, if alone, takes the short
 * way. */
static void read_own(ptl_handle_ni_t ni, ptl_handle_md_t src)
{
	ptl_event_t ev;
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t d = sink_md(NULL, 0, eq);
	ptl_handle_md_t md = post_md(ni, PT, 2, d);
	p3_set(&storm.mine, eq);
	int rc = PTL_OK;
	for (unsigned i = 0; i < 20 && rc != PTL_EQ_INVALID; i++) {
		CHECK_OK(PtlPut(src, PTL_NO_ACK_REQ, storm.self, PT, 0, 2, 0, 0));
		rc = storm.may_free ? PtlEQGet(eq, &ev) : PtlEQWait(eq, &ev);
	}
	while ((rc = PtlMDUnlink(md)) == PTL_MD_IN_USE)
		;
	CHECK_OK(rc);
	rc = PtlEQFree(eq);
	CHECK(rc == PTL_OK || rc == PTL_EQ_INVALID);
}

static void read_on_and_on(ptl_handle_ni_t ni)
{
	ptl_handle_md_t src = bind_md(ni, md_of(NULL, 0, 0, PTL_EQ_NONE));
	while (!p3_get(&storm.stop))
		read_own(ni, src);
}

static void look_into_it(void *arg)
{
	ptl_event_t ev;
	int which;
	(void)arg;
	while (!p3_get(&storm.stop)) {
		ptl_handle_eq_t eq = p3_get(&storm.mine);
		(void)PtlEQPoll(&eq, 1, 1, &ev, &which);
	}
}

static void read_with_another(ptl_handle_ni_t ni)
{
	storm.may_free = true;
	struct side *other = side_start(look_into_it, NULL);
	read_on_and_on(ni);
	side_join(other);
}

/* Wait for all events of accepted calls, each of which has decremented its target's
 * threshold. */
static void wait_for_all(ptl_handle_md_t puts, ptl_handle_md_t gets)
{
	uint32_t put = p3_get(&storm.put), got = p3_get(&storm.got);
	for (uint32_t due = 3 * put + 2 * got - p3_get(&storm.taken); due; due--)
		CHECK_EQ(next_event(storm.eq).ni_fail_type, PTL_NI_OK);
	expect_empty(storm.eq);
	CHECK_EQ(left_of(puts), MOST - (int)put);
	CHECK_EQ(left_of(gets), MOST - (int)got);
}

static void under_thunder(ptl_handle_ni_t ni, void (*calls)(ptl_handle_ni_t ni))
{
	struct sigaction act = {.sa_handler = handler}, before;
	pthread_t self = pthread_self(), other;
	ptl_md_t d = md_of(node_alloc(8), 8, MD_ANY | MD_QUIET, PTL_EQ_NONE);
	memset(&storm, 0, sizeof storm);
	storm.ni = ni;
	p3_set(&storm.mine, PTL_EQ_NONE);
	storm.eq = eq_new(ni, EVENTS);
	CHECK_OK(PtlGetId(ni, &storm.self));
	storm.md = bind_md(ni, md_of(node_alloc(8), 8, 0, storm.eq));
	storm.get = bind_md(ni, md_of(node_alloc(8), 8, 0, storm.eq));
	d.threshold = MOST;
	ptl_handle_md_t puts = post_md(ni, PT, 0, d), gets = post_md(ni, PT, 1, d);
	CHECK(sigaction(SIGUSR1, &act, &before) == 0);
	CHECK(pthread_create(&other, NULL, thunder, &self) == 0);
	calls(ni);
	CHECK(pthread_join(other, NULL) == 0);
	CHECK(sigaction(SIGUSR1, &before, NULL) == 0);
	CHECK_EQ(p3_get(&storm.wrong), 0);
	CHECK(p3_get(&storm.put) > 0 && p3_get(&storm.got) > 0);
	wait_for_all(puts, gets);
}

NODES_CASE(handlers_may_interrupt_requests, 1)
{
	under_thunder(ni, ask_on_and_on);
}

NODES_CASE(handlers_may_interrupt_a_peek, 1)
{
	under_thunder(ni, peek_on_and_on);
}

NODES_CASE(handlers_may_interrupt_a_reader, 1)
{
	under_thunder(ni, read_on_and_on);
}

NODES_CASE(handlers_may_interrupt_one_of_two_readers, 1)
{
	under_thunder(ni, read_with_another);
}

/* Put as from a handler that has interrupted a call, until all slots for such puts are
 * taken and more were refused.  Return the number of accepted puts. */
static unsigned put_inside(ptl_handle_ni_t ni, ptl_handle_md_t md)
{
	struct p3_nic *n = p3_nic(p3_node());
	unsigned accepted = 0;
	nic_hold(n); /* no other thread frees a slot meanwhile */
	p3_call_begin();
	for (unsigned i = 0; i < P3_MBX_SLOTS; i++) {
		int rc = put_to(ni, md, 0, PT, 0, PTL_NO_ACK_REQ);
		CHECK(rc == PTL_OK || rc == PTL_NO_SPACE);
		accepted += rc == PTL_OK;
	}
	p3_lease_leave(n);
	p3_call_end(n);
	return accepted;
}

NODES_CASE(refused_calls_take_no_slot_from_later_ones, 1)
{
	ptl_handle_md_t md = bind_md(ni, md_of(NULL, 0, 0, PTL_EQ_NONE));
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ(put_inside(ni, md), P3_MBX_SLOTS / 2);
}
