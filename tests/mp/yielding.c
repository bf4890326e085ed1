/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yielding - two ranks on one CPU that look for events with PtlEQGet and give the CPU to
 * each other with sched_yield do not wake each other's NIC thread for each message
 *
 * Both ranks sleep first, until their NIC threads have armed their doorbells.  The first
 * message rings then, which is right: its target sleeps.  Later ones must not ring.
 *
 * A stretch of 1,000 round trips counts if the first message rang, and if other processes
 * have left the CPU to the two: one that took longer than 0.1 ms a round trip is measured
 * again.  In eight that count a fifth of the round trips may ring: NIC threads arm their
 * doorbells again when other processes have had the CPU.  Where none counts in 30 s the
 * test is skipped.
 */
#include "mp.h"

#include <sched.h>
#include <stdio.h>

enum { BITS = 1, ROUNDS = 1000, MOST_WAKES = ROUNDS / 5, SLEEP_MS = 60, SKIPPED = 77 };
enum { STRETCHES = 8, LIMIT_S = 30, STRETCH_MS = 100 };
enum { FIRST = 1, NEXT = 2, LAST = 3, END = 4 };

static ptl_handle_eq_t eq;
static ptl_handle_md_t md;
static uint64_t ball, slot, woken;

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

/* Return true if this stretch counts. */
static bool run_stretch(void)
{
	/* pause: both nodes fall asleep, which this test measures from */
	mp_sleep_ms(2 * SLEEP_MS);
	uint64_t before = wakes(), start = mp_ns(), theirs = round_trip(FIRST);
	bool rang = wakes() > before;
	for (unsigned i = 0; i < ROUNDS; i++)
		theirs = round_trip(i + 1 < ROUNDS ? NEXT : LAST);
	if (!rang || mp_ns() - start > STRETCH_MS * 1000000ull)
		return false;
	woken += wakes() - before + theirs;
	return true;
}

static unsigned play(void)
{
	unsigned counted = 0;
	uint64_t end = mp_ns() + LIMIT_S * 1000000000ull;
	while (counted < STRETCHES && mp_ns() < end)
		counted += run_stretch();
	printf("%u stretches, %llu wakes\n", counted, (unsigned long long)woken);
	mp_check(woken <= counted * MOST_WAKES,
		"%llu wakes in %u times %d round trips, expected %u at most",
		(unsigned long long)woken, counted, ROUNDS, counted * MOST_WAKES);
	(void)round_trip(END);
	return counted;
}

static void answer(void)
{
	uint64_t what = LAST, before = 0;
	while (what != END) {
		if (what == LAST)
			/* pause: this node falls asleep in the next call */
			mp_sleep_ms(SLEEP_MS);
		what = take();
		if (what == FIRST)
			before = wakes();
		mp_put(md, 0, 8, PTL_NO_ACK_REQ, 0, BITS, 0, wakes() - before);
	}
}

int main(void)
{
	unsigned counted = 1;
	mp_start();
	mp_check(mp.size == 2, "usage: yod -sz 2 yielding");
	mp_pin(0); /* not the NIC thread, which is there already */
	eq = mp_queue(64);
	md = mp_bind(&ball, sizeof ball, PTL_EQ_NONE, 0);
	mp_attach(BITS, &slot, sizeof slot, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	mp_barrier();
	if (mp.rank == 0)
		counted = play();
	else
		answer();
	mp_end();
	return counted ? 0 : SKIPPED;
}
