/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yielding - two ranks on one CPU that look for events with PtlEQGet and give the CPU to
 * each other with sched_yield do not wake each other's NIC thread for each message
 *
 * Both ranks sleep first, until their NIC threads have armed their doorbells.  The first
 * message rings then, which is right: its target sleeps.  A NIC thread arms its doorbell
 * again when no host has looked for a tick, because other processes have had the CPU, and
 * that may make some messages ring.  So the wakes may grow with the ticks that have
 * passed, and not with the messages.  Where other processes take so much of the CPU that
 * a round trip takes a part of a tick, nothing can be told, and the test is skipped.
 */
#include "mp.h"

#include <sched.h>
#include <stdio.h>

enum { BITS = 1, STRETCHES = 8, ROUNDS = 1000, SLEEP_MS = 60, RINGS = 8, SKIPPED = 77 };
enum { FIRST = 1, NEXT = 2, LAST = 3, END = 4 };

#define TICK_NS    2000000u /* least time between two looks of a NIC thread */
#define STRETCH_NS 500000000u

static ptl_handle_eq_t eq;
static ptl_handle_md_t md;
static uint64_t ball, slot, woken, trips, ns;

static uint64_t wakes(void)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	return st.wakes_sent;
}

static uint64_t take(void)
{
	ptl_event_t ev;
	int rc;
	while ((rc = PtlEQGet(eq, &ev)) == PTL_EQ_EMPTY)
		sched_yield();
	mp_check(rc == PTL_OK && ev.type == PTL_EVENT_PUT_END, "rc %d, event %d", rc,
		(int)ev.type);
	return ev.hdr_data;
}

static uint64_t round_trip(uint64_t what)
{
	mp_put(md, 0, 8, PTL_NO_ACK_REQ, 1, BITS, 0, what);
	return take();
}

static void run_stretch(void)
{
	/* pause: both nodes fall asleep, which this test measures from */
	sleep_ms(2 * SLEEP_MS);
	uint64_t before = wakes(), start = now_ns(), theirs;
	(void)round_trip(FIRST);
	for (unsigned i = 0; i < ROUNDS && now_ns() - start < STRETCH_NS; i++, trips++)
		(void)round_trip(NEXT);
	theirs = round_trip(LAST);
	ns += now_ns() - start;
	woken += wakes() - before + theirs;
}

/* Return false if nothing can be told: if each message might have rung. */
static bool play(void)
{
	for (unsigned i = 0; i < STRETCHES; i++)
		run_stretch();
	uint64_t most = RINGS * (2 * STRETCHES + ns / TICK_NS);
	printf("%llu round trips, %llu wakes, %llu expected at most\n",
		(unsigned long long)trips, (unsigned long long)woken,
		(unsigned long long)most);
	mp_check(woken <= most, "too many wakes");
	(void)round_trip(END);
	return most < trips;
}

static void answer(void)
{
	uint64_t what = LAST, before = 0;
	while (what != END) {
		if (what == LAST)
			/* pause: this node falls asleep in the next call */
			sleep_ms(SLEEP_MS);
		what = take();
		if (what == FIRST)
			before = wakes();
		mp_put(md, 0, 8, PTL_NO_ACK_REQ, 0, BITS, 0, wakes() - before);
	}
}

int main(void)
{
	bool told = true;
	mp_start();
	mp_check(mp.size == 2, "usage: yod -sz 2 yielding");
	mp_pin(0); /* not the NIC thread, which is there already */
	eq = mp_queue(64);
	md = mp_bind(&ball, sizeof ball, PTL_EQ_NONE, 0);
	mp_attach(BITS, &slot, sizeof slot, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	mp_barrier();
	if (mp.rank == 0)
		told = play();
	else
		answer();
	mp_end();
	if (!told)
		puts("skipped: other processes have the CPU");
	return told ? 0 : SKIPPED;
}
