/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lease of shm/lease.h: a host thread waits for a message, another has a command.
 */
#define PROCS    2
#define WATCHING end_watching /* there may be no message */
#include "node.inc"

active proctype waiter()
{
	HOST_S;
	p3_wait_until(EVENTS, 1)
}

active proctype poster()
{
	HOST_S;
	p3_lease_enter(HOST, ok);
	if
	:: ok -> p3_lease_leave()
	:: else ->
		p3_rmw(MBX, 1, 0, ALWAYS);
		p3_wait_until(DONE, 1)
	fi
}
