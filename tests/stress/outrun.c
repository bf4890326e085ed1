/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outrun - rank 0 sends to rank 1, which is stopped (SIGSTOP), until a call says
 * PTL_NO_SPACE, and goes on trying: its memory stays as it is, and the other ranks talk
 * to each other and to it.  When rank 1 goes on all that was accepted arrives, once, in
 * its order, with its bytes; then there is room again.
 */
#include "../mp/mp.h"
#include "../support/asleep.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VICTIM = 1, BITS = 1, PID, WORD, REFUSED = 20000, ROUNDS = 500, LENGTHS = 64 };

static ptl_size_t length_of(uint64_t seq)
{
	return seq % 500 == 7 ? 30000 : (mp_mix(seq) >> 8) % LENGTHS;
}

static unsigned long pss_kib(void)
{
	unsigned long kib = 0;
	char line[200];
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "Pss: %lu", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

static int put(ptl_handle_md_t md, unsigned to, uint64_t seq)
{
	return PtlPutRegion(md, mp_cut(0, VICTIM, seq), length_of(seq), PTL_ACK_REQ,
		mp.id[to], MP_PORTAL, 0, BITS, 0, seq);
}

static void talk(ptl_handle_md_t md, ptl_handle_eq_t eq, unsigned to)
{
	static uint64_t ns[ROUNDS];
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t t = now_ns();
		mp_put(md, 0, 8, PTL_ACK_REQ, to, BITS, 0, 0);
		(void)mp_expect(eq, PTL_EVENT_ACK);
		ns[i] = now_ns() - t;
	}
	double median = (double)mp_median(ns, ROUNDS) / 1e3; /* it also sorts */
	printf("rank %u to rank %u meanwhile: %.1f us in the median, 99 %% within %.1f "
	       "us\n",
		mp.rank, to, median, (double)mp_percentile(ns, ROUNDS, 99) / 1e3);
}

static pid_t stop_victim(void)
{
	static pid_t pid;
	ptl_handle_eq_t eq = mp_queue(8);
	ptl_handle_md_t md = mp_bind(&pid, sizeof pid, eq, 0);
	mp_get(md, 0, sizeof pid, VICTIM, PID, 0);
	(void)mp_expect(eq, PTL_EVENT_REPLY_END);
	mp_check(kill(pid, SIGSTOP) == 0, "cannot stop rank 1");
	mp_check(await_stopped(pid), "rank 1 does not stop");
	return pid;
}

static uint64_t outrun(ptl_handle_md_t md)
{
	uint64_t n = 0;
	int rc;
	while ((rc = put(md, VICTIM, n)) == PTL_OK)
		n++;
	mp_check(rc == PTL_NO_SPACE, "%s", PtlErrorStr((unsigned)rc));
	unsigned long before = pss_kib();
	uint64_t start = now_ns();
	for (unsigned i = 0; i < REFUSED; i++)
		mp_check(put(md, VICTIM, n) == PTL_NO_SPACE, "there is room again?");
	unsigned long after = pss_kib();
	printf("refused after %llu; %d times more in %.2f s: memory %lu -> %lu KiB\n",
		(unsigned long long)n, REFUSED, (double)(now_ns() - start) / 1e9, before,
		after);
	mp_check(after < before + 1024, "memory grows while calls are refused");
	return n;
}

/* Send a word to a rank, without acknowledgement: no operation is kept for it. */
static void tell(unsigned to, uint64_t what)
{
	static uint64_t word;
	static ptl_handle_md_t md = PTL_INVALID_HANDLE;
	if (md == PTL_INVALID_HANDLE)
		md = mp_bind(&word, sizeof word, PTL_EQ_NONE, 0);
	mp_put(md, 0, sizeof word, PTL_NO_ACK_REQ, to, WORD, 0, what);
}

static void source(ptl_handle_eq_t told)
{
	ptl_handle_eq_t eq = mp_queue(1 << 18);
	ptl_handle_md_t md =
		mp_bind(mp_pattern, MP_PATTERN, eq, PTL_MD_EVENT_END_DISABLE);
	pid_t pid = stop_victim();
	uint64_t n = outrun(md);
	tell(2, 0);
	tell(3, 0);
	(void)mp_expect(told, PTL_EVENT_PUT_END);
	(void)mp_expect(told, PTL_EVENT_PUT_END);
	mp_check(kill(pid, SIGCONT) == 0, "cannot wake rank 1");
	for (uint64_t i = 0; i < n; i++)
		(void)mp_expect(eq, PTL_EVENT_ACK);
	mp_check(put(md, VICTIM, n) == PTL_OK, "there is no room after all");
	(void)mp_expect(eq, PTL_EVENT_ACK);
	tell(VICTIM, n + 1);
}

static void other(ptl_handle_eq_t told)
{
	ptl_handle_eq_t eq = mp_queue(64);
	ptl_handle_md_t md = mp_bind(mp_pattern, 64, eq, PTL_MD_EVENT_END_DISABLE);
	(void)mp_expect(told, PTL_EVENT_PUT_END);
	talk(md, eq, 0);
	talk(md, eq, 5 - mp.rank);
	tell(0, 0);
}

/* Take all of rank 0's messages, in order; its word is their number. */
static void victim(ptl_handle_eq_t eq, ptl_handle_eq_t told, const char *in)
{
	uint64_t started = 0, ended = 0, all = UINT64_MAX;
	ptl_event_t ev;
	while (started < all || ended < all) {
		if (all == UINT64_MAX && mp_poll(told, &ev))
			all = ev.hdr_data;
		if (!mp_next_within(eq, 50, &ev))
			continue;
		uint64_t seq = ev.hdr_data;
		mp_check(ev.ni_fail_type == PTL_NI_OK && ev.mlength == length_of(seq),
			"message %llu is short", (unsigned long long)seq);
		if (ev.type == PTL_EVENT_PUT_START) {
			mp_check(seq == started++, "message %llu comes out of order",
				(unsigned long long)seq);
			continue;
		}
		mp_check(mp_same(in + ev.offset, 0, VICTIM, seq, ev.mlength),
			"message %llu: wrong bytes", (unsigned long long)seq);
		ended++;
	}
}

int main(void)
{
	static char in[32 << 20], sink[64];
	static pid_t me;
	mp_start();
	mp_check(mp.size == 4, "four ranks, please");
	setvbuf(stdout, NULL, _IOLBF, 0);
	ptl_handle_eq_t eq = PTL_EQ_NONE, told = mp_queue(8);
	me = getpid();
	if (mp.rank == VICTIM) {
		eq = mp_queue(1 << 19);
		mp_attach(BITS, in, sizeof in, PTL_MD_OP_PUT | MP_STARTS, eq);
		mp_attach(PID, &me, sizeof me, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
			PTL_EQ_NONE);
	} else {
		mp_attach(BITS, sink, sizeof sink, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
			PTL_EQ_NONE);
	}
	mp_attach(WORD, sink, sizeof sink, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, told);
	mp_barrier();
	if (mp.rank == 0)
		source(told);
	else if (mp.rank == VICTIM)
		victim(eq, told, in);
	else
		other(told);
	mp_end();
	return 0;
}
