/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of short puts in nic/proto/pending.c, and the thread that waits until they have
 * left the node in nic/host/call.c: p3_nic_await_absent(), then flush_has_left().
 *
 * Checked: when a thread that has the SEND_END of a put has waited so, and tells the
 * target, as a barrier does, the target finds the put's request in its lane.
 *
 * Bounds: one put; its target is there, or joins later.
 */
#define LEAVE_1_p3_pending_take_over      1
#define LEAVE_1_pending_readdress_copy 2
#define LEAVE_1_p3_pending_drop_copy      3
#define LEAVE_1_p3_nic_await_absent       4
#define LEAVE_1_flush_has_left                  5

#define PROCS 3
#define LANE     0 /* requests published */
#define EVENT    1 /* SEND_END in the queue */
#define LEAVING  2
#define PROMISED 3
#define BARRIER  4
#define WORDS 5
#define DATA  0
#include "weak.inc"

/* Count the copy before the event: EVQ.1's release carries the count. */
inline p3_pending_take_over(copies)
{
	p3_set(copies, 1);
	p3_release(EVENT, 1, LEAVE_1_p3_pending_take_over)
}

inline pending_readdress_copy()
{
	p3_set(LEAVING, 1);
	p3_release(PROMISED, 0, LEAVE_1_pending_readdress_copy)
}

inline p3_pending_drop_copy()
{
	p3_release(LEAVING, 0, LEAVE_1_p3_pending_drop_copy)
}

active proctype firmware()
{
	if
	:: p3_pending_take_over(LEAVING)
	:: p3_pending_take_over(PROMISED);
		pending_readdress_copy()
	fi;
	p3_release(LANE, 1, ALWAYS);
	p3_pending_drop_copy()
}

active proctype host()
{
	byte x;
	do
	:: p3_acquire(EVENT, x, ALWAYS);
		if
		:: x -> break
		:: else
		fi
	od;
	do
	:: p3_acquire(PROMISED, x, LEAVE_1_p3_nic_await_absent);
		if
		:: !x -> break
		:: else
		fi
	od;
	do
	:: p3_acquire(LEAVING, x, LEAVE_1_flush_has_left);
		if
		:: !x -> break
		:: else
		fi
	od;
	p3_release(BARRIER, 1, ALWAYS)
}

active proctype target()
{
	byte x;
	do
	:: p3_acquire(BARRIER, x, ALWAYS);
		if
		:: x -> break
		:: else
		fi
	od;
	p3_acquire(LANE, x, ALWAYS);
	assert(x == 1)
}
