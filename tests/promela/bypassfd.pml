/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host thread that waits for the first thing that the wire does and then computes, the
 * NIC thread, and the wire's thread, which must ring for all things that the wire does.
 */
#ifndef MESSAGES
#define MESSAGES 2
#endif
#define PROCS 3
#define WIRE
#define WEAK 0
#include "node.inc"

active proctype host()
{
	HOST_S;
	p3_wait_until(EVENTS, 1)
}

active proctype ringer()
{
	byte x;
	do
	:: true -> wire_thread_wait_and_ring()
	od
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

active proctype time()
{
	do
	:: let_time_come()
	:: taken == MESSAGES -> break
	od
}
