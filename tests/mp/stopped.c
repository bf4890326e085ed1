/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stopped [outrun] - rank 1 is stopped (SIGSTOP) while rank 0 keeps sending to it; the
 * other ranks talk to each other and to rank 0.  Nothing fails, and all messages arrive
 * when rank 1 goes on: once, in their order, with their bytes.
 *
 *	stopped		puts and gets of all lengths; the others are not slowed
 *	stopped outrun	rank 0 sends until a call says PTL_NO_SPACE, and goes on trying:
 *			its memory stays as it is, and in the end there is room again
 */
#include "../support/asleep.h"
#include "../support/memory.h"
#include "mp.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BITS = 1, HELLO, PID, WORD, VICTIM = 1, SINK = 100000 };
enum { ROUNDS = 200, PUTS = 600, GETS = 60 };        /* stopped */
enum { REFUSED = 20000, TALKS = 500, LENGTHS = 64 }; /* outrun */

static bool outruns;
static ptl_handle_eq_t eq;

static ptl_size_t length_of(uint64_t seq)
{
	uint64_t dice = mp_mix(seq);
	if (outruns)
		return seq % 500 == 7 ? 30000 : (dice >> 8) % LENGTHS;
	if (seq % 100 == 50)
		return 1 << 20;
	return (dice >> 8) % (dice % 4 ? 300 : 30000);
}

static pid_t stop_victim(void)
{
	static pid_t pid;
	ptl_handle_md_t md = mp_bind(&pid, sizeof pid, eq, 0);
	mp_get(md, 0, sizeof pid, VICTIM, PID, 0);
	(void)mp_expect(eq, PTL_EVENT_REPLY_END);
	mp_check(pid > 1 && kill(pid, SIGSTOP) == 0 && await_stopped(pid),
		"cannot stop rank 1, pid %d", (int)pid);
	return pid;
}

/* ---- messages to running ranks ---- */

static void put_and_ack(unsigned to, ptl_handle_md_t md, ptl_size_t length)
{
	mp_put(md, 0, length, PTL_ACK_REQ, to, BITS, 0, 0);
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
	ptl_event_t ev = mp_expect(eq, PTL_EVENT_ACK);
	mp_check(ev.mlength == length, "short ACK");
}

static void get_and_look(unsigned from, uint64_t seq)
{
	static char got[50000];
	ptl_handle_md_t md = mp_bind(got, sizeof got, eq, 0);
	memset(got, 0, sizeof got);
	mp_get(md, 0, sizeof got, from, HELLO, mp_cut(from, 0, seq));
	(void)mp_expect(eq, PTL_EVENT_REPLY_END);
	mp_check(mp_same(got, from, 0, seq, sizeof got), "wrong bytes in a get");
	mp_ok(PtlMDUnlink(md));
}

static double talk_to_others(ptl_handle_md_t md)
{
	uint64_t start = now_ns();
	for (uint64_t i = 0; i < ROUNDS; i++)
		for (unsigned r = VICTIM + 1; r < mp.size; r++) {
			put_and_ack(r, md, 100);
			put_and_ack(r, md, 100000);
			get_and_look(r, i);
		}
	return (double)(now_ns() - start) / 1e9;
}

/* ---- messages to the stopped rank ---- */

static char *got[GETS];
static ptl_handle_eq_t theirs;
static unsigned sends, acks, replies;

static void start_with_victim(ptl_handle_md_t md)
{
	for (uint64_t seq = 0; seq < PUTS; seq++)
		mp_put(md, mp_cut(0, VICTIM, seq), length_of(seq), PTL_ACK_REQ, VICTIM,
			BITS, 0, seq);
	for (uint64_t i = 0; i < GETS; i++) {
		ptl_size_t length = i % 2 ? 1000 : 100000;
		got[i] = calloc(1, length);
		mp_check(got[i], "no memory");
		ptl_handle_md_t here = mp_bind(got[i], length, theirs, 0);
		mp_get(here, 0, length, VICTIM, HELLO, mp_cut(VICTIM, 0, i));
	}
}

static void account(const ptl_event_t *ev)
{
	mp_check(ev->ni_fail_type == PTL_NI_OK && ev->mlength == ev->rlength,
		"%s: fail %u", PtlEventKindStr(ev->type), ev->ni_fail_type);
	sends += ev->type == PTL_EVENT_SEND_END;
	acks += ev->type == PTL_EVENT_ACK;
	replies += ev->type == PTL_EVENT_REPLY_END;
}

static void finish_with_victim(void)
{
	ptl_event_t ev;
	while (sends < PUTS || acks < PUTS || replies < GETS) {
		mp_check(mp_next_soon(theirs, &ev),
			"of %d puts %u were sent, %u acknowledged; %u of %d gets", PUTS,
			sends, acks, replies, GETS);
		account(&ev);
	}
	for (uint64_t i = 0; i < GETS; i++)
		mp_check(mp_same(got[i], VICTIM, 0, i, i % 2 ? 1000 : 100000),
			"wrong bytes in a get from the stopped one");
}

static void source(void)
{
	ptl_event_t ev;
	ptl_handle_md_t md = mp_bind(mp_pattern, MP_PATTERN, eq, 0);
	ptl_handle_md_t to_victim = mp_bind(mp_pattern, MP_PATTERN, theirs, 0);
	double before = talk_to_others(md);
	pid_t pid = stop_victim();
	start_with_victim(to_victim);
	double during = talk_to_others(md);
	for (int i = 0; i < 4 && during >= 3 * before + 0.5; i++)
		/* the load of other processes comes and goes */
		during = talk_to_others(md);
	while (mp_poll(theirs, &ev))
		account(&ev);
	mp_check(acks < PUTS, "a stopped node acknowledged everything");
	mp_check(kill(pid, SIGCONT) == 0, "SIGCONT");
	uint64_t start = now_ns();
	finish_with_victim();
	printf("others: %.3f s before, %.3f s while one is stopped; it caught up in %.1f "
	       "ms\n",
		before, during, (double)(now_ns() - start) / 1e6);
	mp_check(during < 3 * before + 0.5, "the others were slowed");
}

/* ---- outrun ---- */

static int put(ptl_handle_md_t md, unsigned to, uint64_t seq)
{
	return PtlPutRegion(md, mp_cut(0, VICTIM, seq), length_of(seq), PTL_ACK_REQ,
		mp.id[to], MP_PORTAL, 0, BITS, 0, seq);
}

static void talk(ptl_handle_md_t md, unsigned to)
{
	static uint64_t ns[TALKS];
	for (unsigned i = 0; i < TALKS; i++) {
		uint64_t t = now_ns();
		mp_put(md, 0, 8, PTL_ACK_REQ, to, BITS, 0, 0);
		(void)mp_expect(eq, PTL_EVENT_ACK);
		ns[i] = now_ns() - t;
	}
	double median = (double)mp_median(ns, TALKS) / 1e3; /* it also sorts */
	printf("rank %u to rank %u meanwhile: %.1f us in the median, 99 %% within %.1f "
	       "us\n",
		mp.rank, to, median, (double)mp_percentile(ns, TALKS, 99) / 1e3);
}

static uint64_t outrun(ptl_handle_md_t md)
{
	uint64_t n = 0;
	int rc;
	while ((rc = put(md, VICTIM, n)) == PTL_OK)
		n++;
	mp_check(rc == PTL_NO_SPACE, "%s", PtlErrorStr((unsigned)rc));
	unsigned long before = memory_kib("Pss");
	uint64_t start = now_ns();
	for (unsigned i = 0; i < REFUSED; i++)
		mp_check(put(md, VICTIM, n) == PTL_NO_SPACE, "there is room again?");
	unsigned long after = memory_kib("Pss");
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

static void outrunner(ptl_handle_eq_t told)
{
	ptl_handle_eq_t acked = mp_queue(1 << 18);
	ptl_handle_md_t md =
		mp_bind(mp_pattern, MP_PATTERN, acked, PTL_MD_EVENT_END_DISABLE);
	pid_t pid = stop_victim();
	uint64_t n = outrun(md);
	tell(2, 0);
	tell(3, 0);
	(void)mp_expect(told, PTL_EVENT_PUT_END);
	(void)mp_expect(told, PTL_EVENT_PUT_END);
	mp_check(kill(pid, SIGCONT) == 0, "cannot wake rank 1");
	for (uint64_t i = 0; i < n; i++)
		(void)mp_expect(acked, PTL_EVENT_ACK);
	mp_check(put(md, VICTIM, n) == PTL_OK, "there is no room after all");
	(void)mp_expect(acked, PTL_EVENT_ACK);
	tell(VICTIM, n + 1);
}

static void talker(ptl_handle_eq_t told)
{
	ptl_handle_md_t md = mp_bind(mp_pattern, 64, eq, PTL_MD_EVENT_END_DISABLE);
	(void)mp_expect(told, PTL_EVENT_PUT_END);
	talk(md, 0);
	talk(md, 5 - mp.rank);
	tell(0, 0);
}

/* ---- the stopped rank ---- */

/* Take all of rank 0's messages; if their number is not known, its word tells it. */
static void victim(ptl_handle_eq_t told, const char *in, uint64_t all)
{
	uint64_t started = 0, ended = 0;
	ptl_size_t next = 0;
	ptl_event_t ev;
	while (started < all || ended < all) {
		if (all == UINT64_MAX && mp_poll(told, &ev))
			all = ev.hdr_data;
		if (!mp_next_within(eq, 50, &ev))
			continue;
		uint64_t seq = ev.hdr_data;
		mp_check(ev.ni_fail_type == PTL_NI_OK && ev.mlength == length_of(seq),
			"message %llu fails, or is short", (unsigned long long)seq);
		if (ev.type == PTL_EVENT_PUT_START) {
			mp_check(seq == started++ && ev.offset == next,
				"message %llu comes out of order",
				(unsigned long long)seq);
			next += ev.mlength;
			continue;
		}
		mp_check(mp_same(in + ev.offset, 0, VICTIM, seq, ev.mlength),
			"message %llu: wrong bytes", (unsigned long long)seq);
		ended++;
	}
}

int main(int argc, char **argv)
{
	static char in[32 << 20], sink[SINK];
	static pid_t me;
	unsigned put = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE;
	unsigned get = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
	outruns = argc > 1 && strcmp(argv[1], "outrun") == 0;
	mp_start();
	mp_check(mp.size == 4, "four ranks, please");
	setvbuf(stdout, NULL, _IOLBF, 0);
	ptl_handle_eq_t told = mp_queue(8);
	me = getpid();
	eq = mp_queue(outruns && mp.rank == VICTIM ? 1 << 19 : 4 * PUTS);
	theirs = mp_queue(4 * PUTS);
	if (mp.rank == VICTIM)
		mp_attach(BITS, in, sizeof in, PTL_MD_OP_PUT | MP_STARTS, eq);
	else
		mp_attach(BITS, sink, sizeof sink, put, PTL_EQ_NONE);
	mp_attach(HELLO, mp_pattern, MP_PATTERN, get, PTL_EQ_NONE);
	mp_attach(PID, &me, sizeof me, get, PTL_EQ_NONE);
	mp_attach(WORD, sink, sizeof sink, put, told);
	mp_barrier();
	if (mp.rank == VICTIM)
		victim(told, in, outruns ? UINT64_MAX : PUTS);
	else if (mp.rank == 0 && outruns)
		outrunner(told);
	else if (mp.rank == 0)
		source();
	else if (outruns)
		talker(told);
	mp_end();
	return 0;
}
