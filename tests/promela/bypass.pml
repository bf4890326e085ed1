/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC thread of a node whose host computes, asleep until a message comes: PARK.1 of
 * nic/run/thread.c.  The peer ends when all its messages were taken.
 */
#ifndef MESSAGES
#define MESSAGES 3
#endif
#define PROCS 2
#include "node.inc"

active proctype nic()
{
	NIC_S;
	p3_lease_enter(NIC, ok);
	assert(ok);
	thread_stay_asleep(false)
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
