/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong COUNT [pin|poll] - round trips of 8 bytes between ranks 0 and 1, each waiting
 * in PtlEQWait.  pin: rank r on the r-th CPU.  poll: the same, and no rank waits inside
 * of a call.  Prints the distribution.
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 1, WARM_UP = 1000 };

static ptl_handle_eq_t eq;
static ptl_handle_md_t md;
static uint64_t sent, got;
static bool poll;

static void pass_ball(void)
{
	sent++;
	mp_put(md, 0, 8, PTL_NO_ACK_REQ, 1 - mp.rank, BITS, 0, sent);
}

static void take_ball(void)
{
	ptl_event_t ev;
	while (poll && PtlEQPeek(eq, &ev) == PTL_EQ_EMPTY)
		;
	ev = mp_expect(eq, PTL_EVENT_PUT_END);
	mp_check(ev.hdr_data == sent && got == sent, "ball %llu, expected %llu",
		(unsigned long long)ev.hdr_data, (unsigned long long)sent);
}

static uint64_t round_trip(void)
{
	uint64_t start = now_ns();
	if (mp.rank == 0) {
		pass_ball();
		take_ball();
	} else {
		sent++; /* the one that is coming */
		take_ball();
		sent--;
		pass_ball();
	}
	return now_ns() - start;
}

static void report(uint64_t *ns, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += ns[i];
	double p50 = (double)mp_median(ns, n) / 1e3;
	double p99 = (double)mp_percentile(ns, n, 99) / 1e3;
	double p999 = (double)mp_percentile(ns, n, 99.9) / 1e6;
	double max = (double)ns[n - 1] / 1e6;
	printf("%zu round trips: mean %.2f us, p50 %.2f us, p99 %.1f us, p99.9 %.3f ms, "
	       "max %.3f ms\n",
		n, (double)sum / (double)n / 1e3, p50, p99, p999, max);
}

int main(int argc, char **argv)
{
	poll = argc > 2 && strcmp(argv[2], "poll") == 0;
	bool pin = poll || (argc > 2 && strcmp(argv[2], "pin") == 0);
	const char *rank = getenv("PTL_MY_RID");
	if (pin && rank)
		mp_pin((unsigned)atoi(rank));
	mp_start();
	mp_check(argc > 1 && mp.size == 2, "usage: yod -sz 2 pingpong COUNT [pin|poll]");
	size_t n = strtoull(argv[1], NULL, 0);
	uint64_t *ns = malloc(n * sizeof *ns);
	mp_check(ns, "no memory");
	eq = mp_queue(64);
	md = mp_bind(&sent, sizeof sent, PTL_EQ_NONE, 0);
	mp_attach(BITS, &got, sizeof got, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	mp_barrier();
	for (int i = 0; i < WARM_UP; i++)
		(void)round_trip();
	for (size_t i = 0; i < n; i++)
		ns[i] = round_trip();
	if (mp.rank == 0)
		report(ns, n);
	mp_end();
	return 0;
}
