/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state IDLE of an OS handle (nic/cci/event.c, nic/cci/host.c).  A program that
 * polls leaves the state IDLE, in which no event makes the eventfd readable.  If it polls
 * no more and sleeps, the NIC thread's next tick finds the event.  A NIC thread that
 * sleeps has no ticks, so it arms the handle before it sleeps.  A third thread, which
 * holds the lease, posts the events.
 *
 * Checked: the program does not sleep in poll() for ever while an event waits and the
 * NIC thread sleeps (an invalid end).
 *
 * Bounds: one event, LOOKS looks of the program without an event, one tick.  The program
 * may count as one that polls or not, by its free choice at each look.
 */
#ifndef LOOKS
#define LOOKS 2
#endif

#define EVFD_3_p3_cci_handle_leave_slowly 1 /* the host's fence */
#define EVFD_3_thread_arm 2 /* the NIC thread's fence */

#define PROCS  3
#define POSTED 0
#define TAKEN  1
#define STATE  2
#define FD     3 /* the eventfd: 1 while its counter is not 0 */
#define ASLEEP 4 /* the NIC thread */
#define WORDS  5
#define DATA   0
#include "weak.inc"

#define ARMED      0
#define SIGNALLING 1
#define SIGNALLED  2
#define DRAINING   3
#define IDLE       4

bit lease;

inline take_lease()
{
	atomic { lease == 0 -> lease = 1 };
	p3_fence(ALWAYS)
}

inline give_lease()
{
	p3_fence(ALWAYS);
	lease = 0
}

inline p3_evfd_signal()
{
	y = ARMED;
	do
	:: p3_cas(STATE, y, SIGNALLING, x, ALWAYS, ALWAYS);
		if
		:: x == y ->
			p3_rmw(FD, 1, ALWAYS, ALWAYS);
			p3_release(STATE, SIGNALLED, ALWAYS);
			break
		:: x != y && (x == ARMED || x == IDLE) -> y = x
		:: else -> break
		fi
	od;
	x = 0;
	y = 0
}

/* In x: an event waits, as this thread sees it. */
inline p3_cci_any_event()
{
	p3_get(TAKEN, y);
	p3_acquire(POSTED, x, ALWAYS);
	x = (x > y);
	y = 0
}

inline set_empty(next, other)
{
	p3_get(STATE, x);
	if
	:: x == SIGNALLED ->
		p3_cas(STATE, SIGNALLED, DRAINING, x, ALWAYS, ALWAYS);
		if
		:: x == SIGNALLED ->
			p3_exchange(FD, 0, x, ALWAYS, ALWAYS);
			p3_release(STATE, next, ALWAYS)
		:: else
		fi
	:: else -> p3_cas(STATE, other, next, x, ALWAYS, ALWAYS)
	fi
}

inline cci_handle_arm()
{
	p3_cci_any_event();
	if
	:: x -> p3_cas(STATE, IDLE, ARMED, x, ALWAYS, ALWAYS)
	:: else -> set_empty(ARMED, IDLE)
	fi;
	p3_fence(ALWAYS);
	p3_cci_any_event();
	if
	:: x -> p3_evfd_signal()
	:: else
	fi
}

inline p3_cci_handle_leave_slowly()
{
	if
	:: poller ->
		p3_cci_any_event();
		if
		:: !x -> set_empty(IDLE, ARMED)
		:: else
		fi;
		p3_fence(EVFD_3_p3_cci_handle_leave_slowly);
		p3_get(ASLEEP, x);
		poller = !x
	:: else
	fi;
	if
	:: !poller -> cci_handle_arm()
	:: else
	fi
}

active proctype program()
{
	byte x, y, looks;
	bool poller;
	do
	:: mem[TAKEN] -> break
	:: atomic {
		!mem[TAKEN] && (mem[FD] || looks < LOOKS) -> /* poll() returns, or a look */
		if
		:: mem[FD]
		:: looks < LOOKS -> looks++
		fi
	   };
		p3_cas(STATE, ARMED, IDLE, x, ALWAYS, ALWAYS);
		if
		:: poller = true
		:: poller = false
		fi;
		p3_cci_any_event();
		if
		:: x -> p3_set(TAKEN, 1)
		:: else
		fi;
		p3_cci_handle_leave_slowly()
	od
}

inline p3_cci_event_remind()
{
	p3_cci_any_event();
	if
	:: x -> p3_evfd_signal()
	:: else
	fi
}

active proctype nic()
{
	byte x, y;
	take_lease();
	p3_cci_event_remind(); /* a tick */
	give_lease();
	take_lease();
	p3_set(ASLEEP, 1);
	p3_fence_heavy(EVFD_3_thread_arm);
	p3_get(STATE, x); /* p3_cci_event_remind */
	if
	:: x == IDLE -> p3_cas(STATE, IDLE, ARMED, x, ALWAYS, ALWAYS)
	:: else
	fi;
	p3_cci_event_remind();
	give_lease()
}

active proctype poster()
{
	byte x, y;
	take_lease();
	p3_rmw(POSTED, 1, ALWAYS, ALWAYS);
	p3_fence(ALWAYS);
	p3_get(STATE, x);
	if
	:: x == ARMED -> p3_evfd_signal()
	:: else
	fi;
	give_lease()
}
