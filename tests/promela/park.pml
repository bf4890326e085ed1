/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host thread that waits for the first message and then computes, the NIC thread, and a
 * peer whose messages must all be taken.
 */
#ifndef MESSAGES
#define MESSAGES 2
#endif
#define PROCS 3
#define WEAK  (BIT(ASLEEP) | BIT(LANE))
#include "node.inc"

bool inside = true; /* the host, in the library */

active proctype host()
{
	HOST_S;
	p3_wait_until(EVENTS, 1);
	inside = false
}

active proctype peer()
{
	byte x, number;
	do
	:: number < MESSAGES -> number++; send(number)
	:: else -> break
	od;
	taken == MESSAGES
}

active proctype nic()
{
	NIC_S;
	do
	:: true ->
end_ticks:	mem[LEASE] == FREE;
		p3_lease_enter(NIC, ok);
		if
		:: ok -> thread_stay_asleep(false)
		:: else
		fi
	od
}
