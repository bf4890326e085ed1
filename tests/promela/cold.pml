/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cold lanes of nic/proto/peer.c and pass.c: a consumer that stops polling a lane, and a
 * producer that then rings its bit.
 *
 * Checked: each message is taken; none stays in a lane that is not polled.
 *
 * Bounds: one lane, MESSAGES, one NIC that never sleeps but by not looking.
 */
#ifndef MESSAGES
#define MESSAGES 3
#endif

#define COLD_1_p3_peer_cool 1
#define COLD_1_p3_looks_take      2

#define PROCS 2
#define LANE  0 /* messages published */
#define COLD  1
#define BELL  2 /* doorbell->lanes */
#define WORDS 3
#define DATA  0
#include "weak.inc"

inline p3_looks_take()
{
	p3_fence_light(COLD_1_p3_looks_take);
	p3_get(COLD, x);
	if
	:: x -> p3_rmw(BELL, 1, 0, 0)
	:: else
	fi
}

active proctype producer()
{
	byte x, number;
	do
	:: number < MESSAGES ->
		number++;
		p3_release(LANE, number, ALWAYS);
		p3_looks_take()
	:: else -> break
	od
}

inline p3_peer_heat()
{
	hot = true;
	p3_set(COLD, 0)
}

inline make_cold()
{
	hot = false;
	p3_set(COLD, 1);
	p3_fence_heavy(COLD_1_p3_peer_cool); /* p3_peer_cool */
	p3_acquire(LANE, x, ALWAYS);
	if
	:: x > taken -> p3_peer_heat()
	:: else
	fi
}

inline p3_peer_answer_doorbell()
{
	p3_exchange(BELL, 0, x, 0, 0);
	if
	:: x && !hot -> p3_peer_heat()
	:: else
	fi
}

active proctype consumer()
{
	byte x, taken;
	bool hot = true;
	do
	:: taken == MESSAGES -> break
	:: hot && mem[LANE] > taken ->
		p3_acquire(LANE, x, ALWAYS);
		if
		:: x > taken -> taken++
		:: else
		fi
	:: hot && taken < MESSAGES -> make_cold()
	:: mem[BELL] -> p3_peer_answer_doorbell()
	od
}
