/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptor of an event queue, or of a CCI endpoint (nic/run/evfd.c).  Threads of the
 * program sleep in poll() on the eventfd, take one event each time, arm the descriptor,
 * and sleep again; the firmware posts events and makes the eventfd readable.  The threads
 * behave as those of a program with a queue (PtlXEQArm), or, with endpoint, as those in
 * calls on a CCI endpoint (state IDLE).
 *
 * Checked: no thread sleeps while an event waits (an invalid end); the eventfd is never
 * readable in state ARMED, in which no thread reads it, so that poll() would return at
 * once for ever.
 *
 * Bounds: one thread and two events, or two threads and one event (two with LARGE).  The
 * order of the queue is that of cciq.pml; here it is the number of events posted and that
 * of events taken.  The program never counts as one that polls: that is ccidle.pml.
 *
 * The kernel's lock of the eventfd orders its writes and reads; a poll() that sees the
 * counter orders nothing.  weak.inc has no store that comes late for an operation that
 * reads and writes at once, so without EVFD.2 the state's store stands before the other.
 */
#ifdef LARGE
#define POSTS(threads) 2
#else
#define POSTS(threads) (3 - threads)
#endif

#define EVFD_1_p3_nic_eq_arm 1 /* the fence of the thread that arms */
#define EVFD_1_lease_leave 2 /* the firmware's fence, behind its posts */
#define EVFD_2_p3_evfd_signal 3
#define EVFD_2_evfd_drain 4

#define PROCS  3 /* the firmware, and threads */
#define POSTED 0 /* events in the queue so far */
#define TAKEN  1
#define STATE  2
#define PARKED 3
#define FD     4 /* the eventfd: 1 while its counter is not 0 */
#define WORDS  5
#define DATA   0
#define WEAK   (ALL & ~BIT(FD)) /* no process only looks at it */
#include "weak.inc"

#define ARMED      0 /* so it begins */
#define SIGNALLING 1
#define SIGNALLED  2
#define DRAINING   3
#define IDLE       4

#define NOBODY 255 /* parked: one less than in C, where the armed descriptor counts */

#define p3_fd_signal() p3_rmw(FD, 1, ALWAYS, ALWAYS)

byte posts;

/* In y: the state before.  That a failed change raises PARKED for a moment costs time
 * only, so it is one step. */
inline evfd_change(from, to)
{
	atomic {
		if
		:: to == ARMED -> p3_rmw(PARKED, mem[PARKED] + 1, ALWAYS, ALWAYS)
		:: else
		fi;
		p3_cas(STATE, from, to, y, ALWAYS, ALWAYS);
		if
		:: (y == from && from == ARMED) || (y != from && to == ARMED) ->
			p3_rmw(PARKED, mem[PARKED] - 1, ALWAYS, ALWAYS)
		:: else
		fi
	}
}

inline p3_evfd_signal()
{
	x = ARMED;
	do
	:: evfd_change(x, SIGNALLING);
		if
		:: y == x && HAS(EVFD_2_p3_evfd_signal) ->
			p3_fd_signal();
			p3_release(STATE, SIGNALLED, EVFD_2_p3_evfd_signal);
			break
		:: y == x && !HAS(EVFD_2_p3_evfd_signal) ->
			p3_set(STATE, SIGNALLED);
			p3_fd_signal();
			break
		:: y != x && (y == ARMED || y == IDLE) -> x = y
		:: else -> break
		fi
	od;
	x = 0;
	y = 0
}

/* In x: an event waits, as this thread sees it. */
inline is_any()
{
	p3_get(TAKEN, y);
	p3_acquire(POSTED, x, ALWAYS);
	x = (x > y);
	y = 0
}

inline p3_evfd_settle()
{
	p3_get(STATE, y);
	if
	:: y == SIGNALLED ->
		evfd_change(SIGNALLED, DRAINING);
		if
		:: y == SIGNALLED && HAS(EVFD_2_evfd_drain) ->
			p3_exchange(FD, 0, y, ALWAYS, ALWAYS);
			p3_rmw(PARKED, mem[PARKED] + 1, ALWAYS, ALWAYS);
			p3_release(STATE, ARMED, EVFD_2_evfd_drain)
		:: y == SIGNALLED && !HAS(EVFD_2_evfd_drain) ->
			p3_rmw(PARKED, mem[PARKED] + 1, ALWAYS, ALWAYS);
			p3_set(STATE, ARMED);
			p3_exchange(FD, 0, y, ALWAYS, ALWAYS)
		:: else
		fi
	:: else -> evfd_change(IDLE, ARMED)
	fi;
	y = 0
}

/* A queue that is not empty is not armed: the program calls PtlEQGet.  Here it sleeps, to
 * show that the eventfd is readable. */
inline arm()
{
	is_any();
	if
	:: x && !endpoint
	:: else ->
		if
		:: x -> evfd_change(IDLE, ARMED)
		:: else -> p3_evfd_settle()
		fi;
		p3_fence(EVFD_1_p3_nic_eq_arm);
		is_any();
		if
		:: x -> p3_evfd_signal()
		:: else
		fi
	fi;
	x = 0;
	y = 0
}

inline post()
{
	p3_release(POSTED, mem[POSTED] + 1, ALWAYS);
	p3_fence(EVFD_1_lease_leave);
	p3_get(PARKED, x);
	if
	:: x != NOBODY ->
		p3_acquire(STATE, x, ALWAYS);
		if
		:: x == ARMED -> p3_evfd_signal()
		:: else
		fi
	:: else
	fi;
	x = 0
}

inline take()
{
	p3_get(TAKEN, y);
	p3_acquire(POSTED, x, ALWAYS);
	if
	:: x > y -> p3_cas(TAKEN, y, y + 1, x, ALWAYS, ALWAYS)
	:: else
	fi;
	x = 0;
	y = 0
}

active proctype nic()
{
	byte x, y;
	bool endpoint;
	atomic {
		if
		:: endpoint = true
		:: true
		fi;
		run program(endpoint);
		if
		:: run program(endpoint); posts = POSTS(2)
		:: posts = POSTS(1)
		fi;
		endpoint = false
	}
	do
	:: mem[POSTED] < posts -> post()
	:: else -> break
	od
}

proctype program(bool endpoint)
{
	byte x, y;
	do
	:: mem[TAKEN] == posts -> break
	:: atomic {
		mem[FD] == 1 && mem[TAKEN] < posts -> /* poll() returns */
		assert(mem[STATE] != ARMED)
	   };
		if
		:: endpoint -> evfd_change(ARMED, IDLE); y = 0
		:: else
		fi;
		take();
		arm()
	od
}
