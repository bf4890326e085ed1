/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * absent CASE - messages to a rank that is not there
 *
 *	never	 rank 1 ends without having called PtlNIInit: messages wait until it has
 *		 ended, then all of them fail
 *	bound	 rank 1 never calls it and stays, and PTL3_ABSENT is hold:1: they fail
 *	ended	 rank 1's process has ended with status 0, without PtlNIFini: they fail
 *	lost	 rank 1 comes late: five puts are lost, since PTL3_ABSENT is drop, and
 *		 the next one is answered
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 1, LENGTH = 200000, HOLD_NS = 1000000000 /* of hold:1 */ };

static ptl_handle_eq_t eq;
static char got[LENGTH];

static void expect_nothing(unsigned ms, const char *what)
{
	ptl_event_t ev;
	mp_check(!mp_next_within(eq, ms, &ev), "%s: %s", what, PtlEventKindStr(ev.type));
}

/* Expect START and END of one operation, which fails. */
static void expect_failure(ptl_event_kind_t first, ptl_event_kind_t last)
{
	ptl_event_t start = mp_expect(eq, first), end = mp_next(eq);
	mp_check(end.type == last && start.link == end.link, "START and END differ");
	mp_check(end.ni_fail_type != PTL_NI_OK, "%s says OK", PtlEventKindStr(end.type));
}

static const ptl_size_t lengths[] = {0, 8, 5000, LENGTH};

/* Check the result of a conditional PtlMDUpdate with an empty test queue. */
static void check_update(ptl_handle_md_t handle, int want)
{
	ptl_md_t md;
	ptl_handle_eq_t other = mp_queue(8);
	mp_ok(PtlMDUpdate(handle, &md, NULL, PTL_EQ_NONE));
	mp_check(PtlMDUpdate(handle, NULL, &md, other) == want, "not %s",
		PtlErrorStr((unsigned)want));
	mp_ok(PtlEQFree(other));
}

/* waits: rank 1 is still there, and no message may end before it has ended, or before the
 * bound.  lets_go: rank 1 ends behind the barrier. */
static void fail_to_talk(bool waits, bool lets_go)
{
	ptl_handle_md_t md[8];
	ptl_event_t ev;
	uint64_t begun = now_ns();
	for (int k = 0; k < 4; k++) {
		md[k] = mp_bind(mp_pattern, MP_PATTERN, eq, MP_STARTS);
		md[4 + k] = mp_bind(got, lengths[k], eq, MP_STARTS);
		mp_put(md[k], 0, lengths[k], PTL_ACK_REQ, 1, BITS, 0, 7);
		if (!waits)
			expect_failure(PTL_EVENT_SEND_START, PTL_EVENT_SEND_END);
	}
	if (lets_go) {
		mp_check(PtlMDUnlink(md[3]) == PTL_MD_IN_USE && !mp_poll(eq, &ev),
			"over before rank 1 is");
		check_update(md[3], PTL_MD_NO_UPDATE);
		mp_barrier();
	}
	for (int k = 0; k < 4; k++) {
		if (waits)
			expect_failure(PTL_EVENT_SEND_START, PTL_EVENT_SEND_END);
		mp_check(!waits || lets_go || now_ns() - begun >= HOLD_NS,
			"over before the bound is");
		mp_get(md[4 + k], 0, lengths[k], 1, BITS, 0);
	}
	for (int k = 0; k < 4; k++)
		expect_failure(PTL_EVENT_REPLY_START, PTL_EVENT_REPLY_END);
	expect_nothing(20, "after all has failed");
	check_update(md[3], PTL_OK);
	for (int k = 0; k < 8; k++)
		mp_ok(PtlMDUnlink(md[k]));
	puts("all fail");
}

/* Five puts are lost before rank 1 joins; the put after that has an answer. */
static void lose_early(void)
{
	static uint64_t word = 2, last = 1;
	ptl_handle_md_t md = mp_bind(&word, sizeof word, eq, PTL_MD_EVENT_START_DISABLE);
	for (int i = 0; i < 5; i++) {
		mp_put(md, 0, 8, PTL_ACK_REQ, 1, BITS, 0, 0);
		mp_check(mp_expect(eq, PTL_EVENT_SEND_END).ni_fail_type == PTL_NI_OK,
			"a lost put fails");
	}
	mp_barrier();
	mp_barrier(); /* rank 1 has its entry */
	md = mp_bind(&last, sizeof last, eq, PTL_MD_EVENT_START_DISABLE);
	mp_put(md, 0, 8, PTL_ACK_REQ, 1, BITS, 0, 0);
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
	(void)mp_expect(eq, PTL_EVENT_ACK);
	expect_nothing(20, "after the answer");
	puts("answered");
}

/* ---- rank 1 ---- */

static void come_late(void)
{
	static uint64_t word;
	int most;
	mp_ok(PtlInit(&most));
	mp_barrier();
	mp_start();
	ptl_handle_eq_t in = mp_queue(16);
	mp_attach(BITS, &word, sizeof word, PTL_MD_OP_PUT, in);
	mp_barrier();
	(void)mp_expect(in, PTL_EVENT_PUT_END);
	mp_check(word == 1, "wrong hello");
	mp_end();
}

/* Never call PtlNIInit; end when rank 0 has come to the second barrier. */
static void never_come(void)
{
	int most;
	mp_ok(PtlInit(&most));
	mp_barrier();
	mp_barrier();
}

/* Join with an entry that takes every message, and end without PtlNIFini. */
static void go_away(void)
{
	static char sink[LENGTH];
	mp_start();
	mp_attach(BITS, sink, LENGTH,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE);
	mp_barrier();
}

/* Wait until rank 0 knows that rank 1 has ended. */
static void await_end(void)
{
	struct patience p = patience_begin();
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	while (st.peers_alive > 1) {
		mp_check(!patience_is_over(&p), "rank 1 does not end");
		sleep_ms(1);
		mp_ok(PtlXStats(mp.ni, &st));
	}
}

static bool is(const char *what, const char *word)
{
	return strcmp(what, word) == 0;
}

static _Noreturn void rank_1(const char *what)
{
	if (is(what, "lost"))
		come_late();
	else if (is(what, "ended"))
		go_away();
	else
		never_come();
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
	if (is(what, "lost")) {
		lose_early();
		mp_end();
		return 0;
	}
	mp_barrier();
	if (is(what, "ended"))
		await_end();
	fail_to_talk(!is(what, "ended"), is(what, "never"));
	if (is(what, "bound"))
		mp_barrier();
	PtlFini();
	return 0;
}
