/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * absent WHAT - messages to a rank that is not there, which is no failure: SEND_START,
 * SEND_END with PTL_NI_OK, no ACK; a get gives nothing.
 *
 *	never	 rank 1 never calls PtlNIInit
 *	finished rank 1 has called PtlNIFini
 *	ended	 rank 1's process has ended in order, without PtlFini
 *	late	 rank 0 repeats its hello until rank 1 has come, and answers
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 1, LENGTH = 200000 };

static ptl_handle_eq_t eq;
static char got[LENGTH];

static void expect_nothing(unsigned ms, const char *what)
{
	ptl_event_t ev;
	mp_check(!mp_next_within(eq, ms, &ev), "%s: %s", what, PtlEventKindStr(ev.type));
}

static void put_into_the_void(ptl_size_t length)
{
	ptl_handle_md_t md = mp_bind(mp_pattern, MP_PATTERN, eq, MP_STARTS);
	mp_put(md, 0, length, PTL_ACK_REQ, 1, BITS, 0, 7);
	ptl_event_t start = mp_expect(eq, PTL_EVENT_SEND_START);
	ptl_event_t end = mp_expect(eq, PTL_EVENT_SEND_END);
	mp_check(start.link == end.link && end.hdr_data == 7, "START and END differ");
	expect_nothing(20, "after a put to nobody");
	mp_ok(PtlMDUnlink(md));
}

static void get_from_the_void(ptl_size_t length)
{
	ptl_handle_md_t md = mp_bind(got, length, eq, MP_STARTS);
	mp_get(md, 0, length, 1, BITS, 0);
	expect_nothing(20, "after a get from nobody");
	mp_ok(PtlMDUnlink(md));
}

static void talk_to_nobody(void)
{
	static const ptl_size_t lengths[] = {0, 8, 5000, LENGTH};
	for (int k = 0; k < 4; k++) {
		put_into_the_void(lengths[k]);
		get_from_the_void(lengths[k]);
	}
	puts("no failure");
}

/* The partner is slow; each hello without answer is gone. */
static void hello_until_answered(void)
{
	static uint64_t word = 1;
	unsigned tries = 0;
	ptl_event_t ev;
	ptl_handle_md_t md = mp_bind(&word, sizeof word, eq, 0);
	do {
		mp_check(++tries < 2000, "no answer to %u hellos", tries);
		mp_put(md, 0, 8, PTL_ACK_REQ, 1, BITS, 0, 0);
		(void)mp_expect(eq, PTL_EVENT_SEND_END);
	} while (!mp_next_within(eq, 10, &ev));
	mp_check(ev.type == PTL_EVENT_ACK, "%s", PtlEventKindStr(ev.type));
	printf("answer after %u hellos\n", tries);
	mp_check(tries > 5, "too early");
}

/* ---- rank 1 ---- */

static void come_late(void)
{
	static uint64_t word;
	mp_sleep_ms(300);
	mp_start();
	ptl_handle_eq_t in = mp_queue(16);
	mp_attach(BITS, &word, sizeof word, PTL_MD_OP_PUT, in);
	(void)mp_expect(in, PTL_EVENT_PUT_END);
	mp_check(word == 1, "wrong hello");
	mp_end();
}

static void never_come(void)
{
	int most;
	mp_ok(PtlInit(&most));
	mp_barrier();
	mp_sleep_ms(400);
}

/* It would take everything, if it were there. */
static void go_away(bool process)
{
	static char sink[LENGTH];
	mp_start();
	mp_attach(BITS, sink, LENGTH,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE);
	mp_barrier();
	if (process)
		return;
	mp_ok(PtlNIFini(mp.ni));
	mp_sleep_ms(400);
}

static _Noreturn void rank_1(const char *what)
{
	if (strcmp(what, "late") == 0)
		come_late();
	else if (strcmp(what, "never") == 0)
		never_come();
	else
		go_away(strcmp(what, "ended") == 0);
	exit(0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *rank = getenv("PTL_MY_RID");
	if (rank && atoi(rank) == 1)
		rank_1(what);
	mp_start();
	mp_check(mp.size == 2, "two ranks, please");
	eq = mp_queue(256);
	if (strcmp(what, "late") == 0) {
		hello_until_answered();
		mp_end();
		return 0;
	}
	mp_barrier();
	mp_sleep_ms(100);
	talk_to_nobody();
	PtlFini();
	return 0;
}
