/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host thread that waits for what the wire does at later times, and sleeps on the
 * doorbell meanwhile, which the wire's thread rings: PARK.2 of nic/run/wires.c.
 */
#ifndef MESSAGES
#define MESSAGES 3
#endif
#define PROCS 2
#define WIRE
#include "node.inc"

active proctype host()
{
	HOST_S;
	byte number;
	do
	:: number < MESSAGES -> number++; p3_wait_until(EVENTS, number)
	:: else -> break
	od
}

active proctype ringer()
{
	byte x;
	do
	:: true -> wire_thread_wait_and_ring()
	od
}

active proctype time()
{
	do
	:: let_time_come()
	:: taken == MESSAGES -> break
	od
}
