/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stopped - rank 1 is stopped (SIGSTOP) while rank 0 keeps sending puts and gets of all
 * lengths to it, and talks to the other ranks, which are not slowed.  Nothing fails, and
 * all messages arrive when rank 1 goes on: once, in their order, with their bytes.
 */
#include "../support/asleep.h"
#include "mp.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BITS = 1, HELLO, PID, VICTIM = 1, SINK = 100000 };
enum { ROUNDS = 200, PUTS = 600, GETS = 60 };

static ptl_handle_eq_t eq;

static ptl_size_t length_of(uint64_t seq)
{
	uint64_t dice = mp_mix(seq);
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

/* Return the milliseconds of the fastest round: other processes slow only some. */
static double talk_to_others(ptl_handle_md_t md)
{
	uint64_t fastest = UINT64_MAX;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t start = now_ns();
		for (unsigned r = VICTIM + 1; r < mp.size; r++) {
			put_and_ack(r, md, 100);
			put_and_ack(r, md, 100000);
			get_and_look(r, i);
		}
		uint64_t ns = now_ns() - start;
		fastest = ns < fastest ? ns : fastest;
	}
	return (double)fastest / 1e6;
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
	while (mp_poll(theirs, &ev))
		account(&ev);
	mp_check(acks < PUTS, "a stopped node acknowledged everything");
	mp_check(kill(pid, SIGCONT) == 0, "SIGCONT");
	uint64_t start = now_ns();
	finish_with_victim();
	printf("others: %.3f ms before, %.3f ms while one is stopped; it caught up in "
	       "%.1f ms\n",
		before, during, (double)(now_ns() - start) / 1e6);
	mp_check(during < 3 * before + 2.5, "the others were slowed");
}

/* ---- the stopped rank ---- */

/* Take all of rank 0's messages. */
static void victim(const char *in)
{
	uint64_t started = 0, ended = 0;
	ptl_size_t next = 0;
	while (started < PUTS || ended < PUTS) {
		ptl_event_t ev = mp_next(eq);
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

int main(void)
{
	static char in[32 << 20], sink[SINK];
	static pid_t me;
	unsigned put = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE;
	unsigned get = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
	mp_start();
	mp_check(mp.size == 4, "four ranks, please");
	setvbuf(stdout, NULL, _IOLBF, 0);
	me = getpid();
	eq = mp_queue(4 * PUTS);
	theirs = mp_queue(4 * PUTS);
	if (mp.rank == VICTIM)
		mp_attach(BITS, in, sizeof in, PTL_MD_OP_PUT | MP_STARTS, eq);
	else
		mp_attach(BITS, sink, sizeof sink, put, PTL_EQ_NONE);
	mp_attach(HELLO, mp_pattern, MP_PATTERN, get, PTL_EQ_NONE);
	mp_attach(PID, &me, sizeof me, get, PTL_EQ_NONE);
	mp_barrier();
	if (mp.rank == VICTIM)
		victim(in);
	else if (mp.rank == 0)
		source();
	mp_end();
	return 0;
}
