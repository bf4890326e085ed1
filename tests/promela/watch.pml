/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host thread that waits for messages and sleeps on the doorbell meanwhile: PARK.1 of
 * nic/run/wait.c.  There is no NIC thread: a thread that is not rung stays asleep.
 */
#ifndef MESSAGES
#define MESSAGES 3
#endif
#define PROCS 2
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

active proctype peer()
{
	byte x, number;
	do
	:: number < MESSAGES -> number++; send(number)
	:: else -> break
	od;
	taken == MESSAGES
}
