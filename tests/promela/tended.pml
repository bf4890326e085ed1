/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three host threads of one node, without any message: one goes to sleep for news, one
 * has armed the doorbell when its time is up, one is inside for a moment.  The first
 * must not sleep while no thread has the lease and none watches: the giver of the lease
 * checks for a watcher.
 */
#define PROCS    3
#define WATCHING end_watching
#define WEAK     (BIT(LEASE) | BIT(WATCHER) | BIT(PARKED))
#include "node.inc"

active proctype sleeper()
{
	HOST_S;
	p3_rmw(PARKED, mem[PARKED] + 1, 0, 0);
	wait_sleep_for_news(EVENTS, 1);
	p3_rmw(PARKED, mem[PARKED] - 1, 0, 0)
}

/* park and p3_wait_until, with a deadline. */
active proctype watcher()
{
	HOST_S;
	p3_lease_enter(HOST, held);
	if
	:: held ->
		p3_rmw(PARKED, mem[PARKED] + 1, 0, 0);
		p3_set(WATCHER, FOR_EVENT);
		p3_set(ASLEEP, ASLEEP_HOST);
		p3_fence_heavy(PARK_1_wait_sleep_as_watcher);
		p3_pass_run(news);
		wait_let_go();
		wait_disarm();
		p3_rmw(PARKED, mem[PARKED] - 1, 0, 0);
		wait_progress(worked)
	:: else
	fi;
	wait_let_go()
}

active proctype passer()
{
	HOLDER_S;
	p3_lease_enter(HOST, ok);
	if
	:: ok -> p3_pass_run(worked); p3_lease_leave()
	:: else
	fi
}
