/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The OS handle of a CCI endpoint (nic/cci/event.c, lib/cci/endpoint.c).  THREADS of the
 * program sleep in poll() on the eventfd, take one event each time, and sleep again; the
 * NIC thread posts events and makes the eventfd readable.  A thread inside of a call may
 * post, too, and then signals nothing: it looks at the queue when it leaves.
 *
 * Checked: no thread sleeps while an event waits (an invalid end); the eventfd is never
 * readable in state ARMED, in which no thread reads it, so that poll() would return at
 * once for ever.
 *
 * Bounds: THREADS, POSTS events.  The order of the queue is that of cciq.pml; here it is
 * the number of events posted and that of events taken.  The program never counts as one
 * that polls, so there is neither the state IDLE nor a reminder.
 *
 * The kernel's lock of the eventfd orders its writes and reads; a poll() that sees the
 * counter orders nothing.  weak.inc has no store that comes late for an operation that
 * reads and writes at once, so without CCIFD.2 the state's store stands before the other.
 */
#ifndef POSTS
#define POSTS 2
#endif
#ifndef THREADS
#define THREADS 2
#endif

#define CCIFD_1_p3_cci_handle_leave_slowly 1 /* the host's fence */
#define CCIFD_1_p3_cci_event_signal 2 /* the firmware's fence, behind its posts */
#define CCIFD_2_p3_cci_handle_signal 3
#define CCIFD_2_cci_handle_drain 4

#define PROCS  (THREADS + 1)
#define POSTED 0 /* events in the queue so far */
#define TAKEN  1
#define STATE  2
#define INSIDE 3
#define FD     4 /* the eventfd: 1 while its counter is not 0 */
#define WORDS  5
#define DATA   0
#include "weak.inc"

#define ARMED      0 /* so an endpoint begins: a program may sleep before its first call */
#define SIGNALLING 1
#define SIGNALLED  2
#define DRAINING   3

#define p3_fd_signal() p3_rmw(FD, 1, ALWAYS, ALWAYS)

inline p3_cci_handle_signal()
{
	p3_cas(STATE, ARMED, SIGNALLING, x, ALWAYS, ALWAYS);
	if
	:: x == ARMED && HAS(CCIFD_2_p3_cci_handle_signal) ->
		p3_fd_signal();
		p3_release(STATE, SIGNALLED, CCIFD_2_p3_cci_handle_signal)
	:: x == ARMED && !HAS(CCIFD_2_p3_cci_handle_signal) ->
		p3_set(STATE, SIGNALLED);
		p3_fd_signal()
	:: else
	fi;
	x = 0
}

/* In x: an event waits, as this thread sees it. */
inline p3_cci_any_event()
{
	p3_get(TAKEN, head);
	p3_acquire(POSTED, x, ALWAYS);
	x = (x > head);
	head = 0
}

inline cci_handle_drain()
{
	p3_cas(STATE, SIGNALLED, DRAINING, x, ALWAYS, ALWAYS);
	if
	:: x == SIGNALLED && HAS(CCIFD_2_cci_handle_drain) ->
		p3_exchange(FD, 0, x, ALWAYS, ALWAYS);
		p3_release(STATE, ARMED, CCIFD_2_cci_handle_drain)
	:: x == SIGNALLED && !HAS(CCIFD_2_cci_handle_drain) ->
		p3_set(STATE, ARMED);
		p3_exchange(FD, 0, x, ALWAYS, ALWAYS)
	:: else
	fi
}

inline p3_cci_handle_leave_slowly()
{
	p3_cci_any_event();
	if
	:: !x -> cci_handle_drain()
	:: else
	fi;
	p3_rmw(INSIDE, mem[INSIDE] - 1, 0, 0);
	p3_fence(CCIFD_1_p3_cci_handle_leave_slowly);
	p3_cci_any_event();
	if
	:: x -> p3_cci_handle_signal()
	:: else
	fi
}

/* The lease keeps the others from posting. */
inline post()
{
	atomic {
		mem[POSTED] < POSTS -> p3_rmw(POSTED, mem[POSTED] + 1, ALWAYS, ALWAYS)
	}
}

inline take()
{
	p3_get(TAKEN, head);
	p3_acquire(POSTED, x, ALWAYS);
	if
	:: x > head ->
		p3_cas(TAKEN, head, head + 1, x, ALWAYS, ALWAYS);
		got = (x == head)
	:: else
	fi;
	x = 0;
	head = 0
}

active proctype nic()
{
	byte x;
	do
	:: post();
		p3_fence(CCIFD_1_p3_cci_event_signal);
		p3_get(INSIDE, x);
		if
		:: !x ->
			p3_get(STATE, x);
			if
			:: x == ARMED -> p3_cci_handle_signal()
			:: else
			fi
		:: else
		fi;
		x = 0
	:: mem[POSTED] == POSTS -> break
	od
}

active [THREADS] proctype program()
{
	byte x, head;
	bool got;
	do
	:: mem[TAKEN] == POSTS -> break
	:: atomic {
		mem[FD] == 1 && mem[TAKEN] < POSTS -> /* poll() returns */
		assert(mem[STATE] != ARMED)
	   };
		p3_rmw(INSIDE, mem[INSIDE] + 1, 0, 0);
		if
		:: post()
		:: true
		fi;
		take();
		p3_cci_handle_leave_slowly();
		got = false
	od
}
