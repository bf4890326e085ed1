/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cold ROUNDS - lanes that are no longer polled: there are more nodes than hot lanes
 *
 * In each round all nodes are quiet until many lanes are cold.  Then each rank puts to a
 * rank that it has hardly talked to, and waits for the put of another one and for its
 * own ACK.
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>

enum { BITS = 1, LENGTH = 64, QUIET_MS = 30 };

static ptl_handle_eq_t eq, served;
static ptl_handle_md_t md;

static void put_to(unsigned to, unsigned round)
{
	mp_put(md, mp_cut(mp.rank, to, round), LENGTH, PTL_ACK_REQ, to, BITS, 0, round);
}

/* Expect one whole message from a rank. */
static void expect_from(unsigned from, const char *sink, unsigned round)
{
	ptl_event_t ev = mp_expect(served, PTL_EVENT_PUT_END);
	mp_check(ev.initiator.nid == mp.id[from].nid && ev.hdr_data == round,
		"round %u: a put of nid %u, not of rank %u", round, ev.initiator.nid,
		from);
	mp_check(mp_same(sink, from, mp.rank, round, LENGTH), "round %u: wrong bytes",
		round);
}

int main(int argc, char **argv)
{
	static char sink[LENGTH];
	mp_check(argc == 2, "usage: cold ROUNDS");
	mp_start();
	eq = mp_queue(256);
	served = mp_queue(256);
	md = mp_bind(mp_pattern, MP_PATTERN, eq, 0);
	mp_attach(BITS, sink, LENGTH, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, served);
	for (unsigned round = 0; round < (unsigned)atoi(argv[1]); round++) {
		unsigned step = 1 + round * 17 % (mp.size - 1);
		mp_barrier();
		sleep_ms(QUIET_MS);
		put_to((mp.rank + step) % mp.size, round);
		expect_from((mp.rank + mp.size - step) % mp.size, sink, round);
		for (int i = 0; i < 2; i++) {
			ptl_event_t ev = mp_next(eq);
			mp_check(
				ev.type == PTL_EVENT_SEND_END || ev.type == PTL_EVENT_ACK,
				"%s", PtlEventKindStr(ev.type));
		}
	}
	puts("fine");
	mp_end();
	return 0;
}
