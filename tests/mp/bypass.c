/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bypass [LIMIT_MS] - transfers of 1 MiB go on while one side, or both, compute.
 *
 *	put, get	the target computes; time from the call to ACK or REPLY_END
 *	put_and_go	the initiator computes; time from the call to the target's
 *			PUT_END
 *	get_and_go	likewise; time to the target's GET_END
 *	both		both compute; time until the bytes are in the target's memory
 *
 * Two ranks.  A computing rank does not enter the library.  The median of each must be
 * within the limit (10 ms if not given), and within twice that if both compute, because
 * two CPUs then have none left for a NIC.  While more threads than CPUs want to run, the
 * limit grows in proportion.  Every byte is checked.
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MIB = 1 << 20,
	WINDOWS = 3,
	SHOTS = 8, /* operations in a window; pauses of 1 to 20 ms before each of
		    * them let the NICs sleep in some cases and not in others */
	SAMPLES = WINDOWS * SHOTS,
	COMPUTE_MS = 200,
	PUT_BITS = 1,
	GET_BITS = 2
};

static double limit_ms = 10;
static char *buffer; /* target: memory for puts and gets */
static ptl_handle_eq_t eq;
static ptl_handle_md_t md;
static uint64_t sample[SAMPLES];
static uint64_t shot;

/* Return the number of runnable threads for each CPU, and at least 1: that of the last
 * minute or that of now, which is larger when the load has just begun. */
static double crowding(void)
{
	double runnable = 0, now = 1 / patience_share_now();
	if (getloadavg(&runnable, 1) != 1)
		return now;
	runnable /= (double)sysconf(_SC_NPROCESSORS_ONLN);
	return runnable > now ? runnable : now;
}

static void report(const char *what, double limit)
{
	limit *= crowding();
	double median = (double)mp_median(sample, SAMPLES) / 1e6;
	printf("%-10s median %.3f ms, worst %.3f ms\n", what, median,
		(double)sample[SAMPLES - 1] / 1e6);
	mp_check(median <= limit, "%s: median of %.1f ms, limit %.0f", what, median,
		limit);
}

static void pause_before(uint64_t seq)
{
	/* pause: messages at random distances find the target asleep or awake */
	mp_sleep_ms(1 + (unsigned)(mp_mix(seq) % 20));
}

/* ---- the target computes ---- */

static void one_put(void)
{
	mp_put(md, mp_cut(0, 1, shot), MIB, PTL_ACK_REQ, 1, PUT_BITS, 0, mp_ns());
	bool ended = false;
	ptl_event_t ev;
	while ((ev = mp_next(eq)).type != PTL_EVENT_ACK)
		ended |= ev.type == PTL_EVENT_SEND_END && ev.ni_fail_type == PTL_NI_OK;
	mp_check(ended && ev.mlength == MIB, "ACK of %llu bytes",
		(unsigned long long)ev.mlength);
}

static void one_get(void)
{
	static char got[MIB];
	ptl_handle_md_t here = mp_bind(got, MIB, eq, 0);
	memset(got, 0, MIB);
	mp_get(here, 0, MIB, 1, GET_BITS, 0);
	ptl_event_t ev = mp_expect(eq, PTL_EVENT_REPLY_END);
	mp_check(ev.mlength == MIB && mp_same(got, 1, 0, 0, MIB), "wrong bytes in a get");
	mp_ok(PtlMDUnlink(here));
}

static void against_computing(const char *what, void (*one)(void), bool is_put)
{
	for (int i = 0; i < SAMPLES; i++, shot++) {
		if (i % SHOTS == 0)
			mp_barrier();
		if (mp.rank == 1 && i % SHOTS == 0)
			mp_compute_ms(COMPUTE_MS);
		if (mp.rank == 1 && is_put) {
			ptl_event_t ev = mp_expect(eq, PTL_EVENT_PUT_END);
			mp_check(ev.mlength == MIB, "short put");
		}
		if (mp.rank == 1)
			continue;
		pause_before(shot);
		uint64_t start = mp_ns();
		one();
		sample[i] = mp_ns() - start;
	}
	mp_barrier();
	if (mp.rank == 1 && is_put)
		mp_check(mp_same(buffer, 0, 1, shot - 1, MIB), "wrong bytes in a put");
	if (mp.rank == 0)
		report(what, limit_ms);
}

/* ---- the initiator computes ---- */

static void put_and_go(void)
{
	for (int i = 0; i < SAMPLES; i++, shot++) {
		mp_barrier();
		if (mp.rank == 1) {
			ptl_event_t ev = mp_expect(eq, PTL_EVENT_PUT_END);
			sample[i] = mp_ns() - ev.hdr_data;
			mp_check(
				mp_same(buffer, 0, 1, shot, MIB), "wrong bytes in a put");
			continue;
		}
		mp_put(md, mp_cut(0, 1, shot), MIB, PTL_NO_ACK_REQ, 1, PUT_BITS, 0,
			mp_ns());
		mp_compute_ms(60);
		(void)mp_expect(eq, PTL_EVENT_SEND_END);
	}
	if (mp.rank == 1)
		report("put_and_go", limit_ms);
}

/* Compute, for 60 ms at least, until a byte of memory has the expected value. */
static uint64_t computed_until(const volatile char *byte, unsigned char want)
{
	struct patience p = patience_ms(2000);
	uint64_t start = mp_ns(), now = start, there = 0;
	while (there ? now - start < 60000000u : !patience_is_over(&p)) {
		if (!there && *byte == (char)want)
			there = mp_ns();
		now = mp_ns();
	}
	mp_check(there, "the bytes did not come while this rank computed");
	return there - start;
}

static void get_and_go(ptl_handle_eq_t served)
{
	static char got[MIB];
	unsigned char last = mp_pattern[mp_cut(1, 0, 0) + MIB - 1];
	ptl_handle_md_t here = mp_bind(got, MIB, eq, 0);
	for (int i = 0; i < SAMPLES; i++) {
		got[MIB - 1] = (char)~last;
		mp_barrier();
		if (mp.rank == 1) {
			uint64_t start = mp_ns();
			(void)mp_expect(served, PTL_EVENT_GET_END);
			sample[i] = mp_ns() - start;
			continue;
		}
		memset(got, 0, MIB - 1);
		mp_get(here, 0, MIB, 1, GET_BITS, 0);
		(void)computed_until(&got[MIB - 1], last);
		(void)mp_expect(eq, PTL_EVENT_REPLY_END);
		mp_check(mp_same(got, 1, 0, 0, MIB), "wrong bytes in a get");
	}
	if (mp.rank == 1)
		report("get_and_go", limit_ms);
}

/* ---- both compute ---- */

static void both(void)
{
	for (int i = 0; i < SAMPLES; i++, shot++) {
		unsigned char last = mp_pattern[mp_cut(0, 1, shot) + MIB - 1];
		buffer[MIB - 1] = (char)~last;
		mp_barrier();
		if (mp.rank == 1) {
			sample[i] = computed_until(&buffer[MIB - 1], last);
			(void)mp_expect(eq, PTL_EVENT_PUT_END);
			mp_check(
				mp_same(buffer, 0, 1, shot, MIB), "wrong bytes in a put");
			continue;
		}
		mp_put(md, mp_cut(0, 1, shot), MIB, PTL_NO_ACK_REQ, 1, PUT_BITS, 0, 0);
		mp_compute_ms(60);
		(void)mp_expect(eq, PTL_EVENT_SEND_END);
	}
	if (mp.rank == 1)
		report("both", 2 * limit_ms);
}

int main(int argc, char **argv)
{
	mp_start();
	mp_check(mp.size == 2, "two ranks, please");
	if (argc > 1)
		limit_ms = atof(argv[1]);
	eq = mp_queue(256);
	ptl_handle_eq_t served = mp_queue(256);
	md = mp_bind(mp_pattern, MP_PATTERN, eq, 0);
	buffer = calloc(1, MIB);
	mp_check(buffer, "no memory");
	mp_attach(PUT_BITS, buffer, MIB, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	mp_attach(GET_BITS, mp_pattern + mp_cut(1, 0, 0), MIB,
		PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, served);
	mp_barrier();
	against_computing("put", one_put, true);
	against_computing("get", one_get, false);
	ptl_event_t ev;
	while (mp_poll(served, &ev))
		;
	put_and_go();
	get_and_go(served);
	both();
	mp_end();
	return 0;
}
