/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One node: its lease, its host threads that wait and park, its NIC thread that sleeps;
 * and a peer that sends to it.  As nic/fw.h, pass.c, call.c and nic.c have it, with
 *
 *	mailbox	one bit for each posted command (mailbox.pml has the list)
 *	lane	the number of messages published (lane.pml has the cells)
 *	events	the number of messages taken, as the hosts see it
 *	engine	whatever only the holder of the lease may touch
 *
 * Nobody sleeps for a limited time: no belt, no nap, no deadline, no kick.  Whoever is
 * not woken stays asleep, which is an invalid end.  Spinning and yielding are one; to
 * park is always possible.
 */
#define LEASE_1_p3_lease_give                1
#define LEASE_1_p3_lease_take                2
#define LEASE_2_p3_lease_give       3
#define LEASE_2_sleep_for_news      4
#define MBX_4_post_and_wait         5
#define PARK_1_peer                 6
#define PARK_1_sleep_as_watcher     7
#define PARK_1_disarm               8
#define PARK_1_p3_fw_look           9
#define PARK_1_sleep_until_rung     10
#define PARK_1_word                 11
#define PARK_1_last_look          12
#define PARK_1_cut                  13
#define PARK_1_disarm_word          14

#define LEASE      0
#define MBX        1
#define ASLEEP     2
#define NIC_ASLEEP 3
#define WATCHER    4
#define PARKED     5
#define NEWS       6
#define LANE       7
#define EVENTS     8
#define DONE       9 /* the posted command's state */
#define WORDS      10
#define DATA       1
#define ENGINE     0
#include "weak.h"

#ifndef WATCHING
#define WATCHING watching
#endif

/* Of the lease; of the doorbell's word; and what sleepers wait for. */
#define FREE        0
#define HOST        1
#define NIC         2
#define AWAKE       0
#define ASLEEP_HOST 1
#define ASLEEP_NIC  2
#define FOR_NEWS    4

/* News only differ: from what is there, and from all that somebody has seen. */
#define NOTHING        9
#define IS_OLD(v)      (mem[NEWS] == v || seen[0] == v || seen[1] == v)
#define NEXT_NEWS      (!IS_OLD(0) -> 0 : (!IS_OLD(1) -> 1 : (!IS_OLD(2) -> 2 : 3)))

byte seen[2] = NOTHING; /* by the host threads, which are the first processes */
byte sleeping[PROCS]; /* in the kernel, for what */

/* The engine's state. */
byte taken;  /* messages */
bool posted; /* an event or a result */

/* The kernel compares the word as it is, under its lock. */
inline p3_futex_wait(w, val, mask)
{
	if
	:: atomic { mem[w] == val -> sleeping[me] = mask };
		sleeping[me] == 0
	:: atomic { mem[w] != val -> skip }
	fi
}

inline p3_futex_wake(mask)
{
	d_step {
		i_ = 0;
		do
		:: i_ < PROCS ->
			sleeping[i_] = (sleeping[i_] & (mask) -> 0 : sleeping[i_]);
			i_++
		:: else -> break
		od;
		i_ = 0
	}
}

/* ---- shm/lease.h ---- */

inline p3_lease_take(who, ok)
{
	p3_get(LEASE, x);
	ok = false;
	if
	:: x == FREE ->
		p3_cas(LEASE, FREE, who, x, LEASE_1_p3_lease_take, 0);
		ok = (x == FREE)
	:: else
	fi
}

inline p3_lease_give()
{
	atomic {
		looks_posted = posted;
		posted = false;
		p3_release(LEASE, FREE, LEASE_1_p3_lease_give)
	}
	p3_fence(LEASE_2_p3_lease_give)
}

/* ---- nic/pass.c ---- */

inline p3_fw_mail()
{
	p3_exchange(MBX, 0, x, ALWAYS, 0);
	if
	:: x ->
		atomic {
			access(ENGINE);
			posted = true;
			p3_release(DONE, 1, ALWAYS)
		}
	:: else
	fi
}

inline p3_fw_enter(who, ok)
{
	p3_lease_take(who, ok);
	if
	:: ok ->
		atomic {
			access(ENGINE);
			p3_get(MBX, x)
		}
		if
		:: x -> p3_fw_mail()
		:: else
		fi
	:: else
	fi
}

inline p3_wake_peer()
{
	p3_exchange(ASLEEP, AWAKE, x, 0, 0);
	if
	:: x != AWAKE -> p3_futex_wake(x)
	:: else
	fi
}

inline p3_wake_hosts()
{
	p3_rmw(NEWS, NEXT_NEWS, 0, ALWAYS);
	p3_futex_wake(FOR_NEWS);
	p3_get(WATCHER, x);
	if
	:: x ->
		p3_cas(ASLEEP, ASLEEP_HOST, AWAKE, x, 0, 0);
		if
		:: x == ASLEEP_HOST -> p3_futex_wake(ASLEEP_HOST)
		:: else
		fi
	:: else
	fi
}

inline p3_fw_look()
{
	atomic {
		looks_posted = posted;
		posted = false;
		p3_fence(PARK_1_p3_fw_look)
	}
	p3_get(PARKED, x);
	if
	:: looks_posted && x -> p3_wake_hosts()
	:: else
	fi;
	looks_posted = false
}

inline must_wake_hosts(must)
{
	p3_get(PARKED, x);
	must = false;
	if
	:: x && looks_posted -> must = true
	:: x && !looks_posted -> p3_get(WATCHER, x); must = !x
	:: else
	fi
}

inline p3_fw_leave()
{
	do
	:: true ->
		p3_lease_give();
		must_wake_hosts(ok);
		looks_posted = false;
		if
		:: ok -> p3_wake_hosts()
		:: else
		fi;
		p3_get(MBX, x);
		if
		:: x -> p3_fw_enter(HOST, ok); x = 0
		:: else -> ok = false
		fi;
		if
		:: ok -> ok = false
		:: else -> break
		fi
	od
}

/* One message at most.  A busy holder tells sleepers when it pauses, or sooner. */
inline p3_fw_pass(worked)
{
	atomic {
		worked = false;
		access(ENGINE);
		p3_get(MBX, x)
	}
	if
	:: x -> p3_fw_mail(); worked = true
	:: else
	fi;
	p3_acquire(LANE, x, ALWAYS);
	if
	:: atomic {
		x > taken ->
			taken++;
			posted = true;
			worked = true;
			x = 0;
			p3_release(EVENTS, taken, ALWAYS)
	   }
	:: x <= taken -> x = 0
	fi;
	if
	:: posted -> p3_fw_look()
	:: !posted || worked
	fi
}

/* ---- nic/call.c ---- */

#define READY(w, want, is) p3_acquire(w, x, ALWAYS); is = (x >= want); x = 0

inline let_go()
{
	if
	:: held -> p3_fw_leave()
	:: else
	fi;
	held = false
}

inline progress(worked)
{
	if
	:: !held -> p3_fw_enter(HOST, held)
	:: else
	fi;
	if
	:: held ->
		p3_fw_pass(worked);
		unlooked = unlooked && worked && HAS(PARK_1_cut) /* p3_fw_was_cut */
	:: else -> worked = false
	fi
}

inline disarm()
{
	p3_set(WATCHER, 0);
	p3_cas(ASLEEP, ASLEEP_HOST, AWAKE, x, 0, 0);
	p3_fence(PARK_1_disarm_word);
	p3_get(NIC_ASLEEP, x);
	unlooked = x;
	if
	:: unlooked -> p3_cas(ASLEEP, AWAKE, ASLEEP_NIC, x, 0, 0)
	:: else
	fi;
	x = 0;
	p3_fence(PARK_1_disarm)
}

inline sleep_as_watcher(w, want)
{
	p3_set(WATCHER, 1);
	p3_set(ASLEEP, ASLEEP_HOST);
	p3_fence(PARK_1_sleep_as_watcher);
	p3_fw_pass(news);
	if
	:: !news -> READY(w, want, news)
	:: else
	fi;
	let_go();
	if
	:: !news ->
		if
		:: atomic { mem[ASLEEP] == ASLEEP_HOST -> sleeping[me] = ASLEEP_HOST };
WATCHING:		sleeping[me] == 0
		:: atomic { mem[ASLEEP] != ASLEEP_HOST -> skip }
		fi
	:: else
	fi;
	news = false;
	disarm()
}

inline sleep_for_news(w, want)
{
	p3_acquire(NEWS, seen[me], ALWAYS);
	let_go();
	p3_fence(LEASE_2_sleep_for_news);
	p3_get(WATCHER, x);
	if
	:: !x -> p3_get(LEASE, x)
	:: else
	fi;
	if
	:: !x /* nobody tends */
	:: else ->
		READY(w, want, news);
		if
		:: !news -> p3_futex_wait(NEWS, seen[me], FOR_NEWS)
		:: else
		fi
	fi;
	news = false;
	seen[me] = NOTHING;
	x = 0
}

inline park(w, want)
{
	p3_rmw(PARKED, mem[PARKED] + 1, 0, 0);
	p3_get(WATCHER, x);
	if
	:: held && !x -> sleep_as_watcher(w, want)
	:: else -> sleep_for_news(w, want)
	fi;
	p3_rmw(PARKED, mem[PARKED] - 1, 0, 0)
}

inline ring_nic()
{
	p3_cas(ASLEEP, ASLEEP_NIC, AWAKE, x, 0, 0);
	if
	:: x == ASLEEP_NIC -> p3_futex_wake(ASLEEP_NIC)
	:: else
	fi
}

inline wait_until(w, want)
{
	look = true;
	do
	:: true ->
		progress(worked);
		if
		:: worked || look -> READY(w, want, is_ready)
		:: else
		fi;
		if
		:: is_ready -> break
		:: !is_ready && worked
		:: !is_ready && !worked -> let_go() /* yield */
		:: !is_ready && !worked -> park(w, want)
		fi;
		worked = false;
		look = !held
	od;
	worked = false;
	look = false;
	is_ready = false;
	let_go();
	if
	:: unlooked -> ring_nic()
	:: else
	fi;
	unlooked = false
}

/* Of each process that may hold the lease, and of each host thread. */
#define HOLDER_S byte x; bool ok, looks_posted, worked
#define HOST_S   HOLDER_S; bool held, look, unlooked, news, is_ready

/* ---- nic/nic.c ---- */

/* A host may want the lease at any time. */
inline run_passes()
{
	do
	:: p3_fw_pass(worked);
		if
		:: worked
		:: true -> break
		fi
	od;
	worked = false
}

inline sleep_until_rung()
{
	p3_set(NIC_ASLEEP, 1);
	p3_cas(ASLEEP, AWAKE, ASLEEP_NIC, word, 0, 0);
	if
	:: !HAS(PARK_1_word) -> p3_get(ASLEEP, word)
	:: HAS(PARK_1_word) && word == AWAKE -> word = ASLEEP_NIC
	:: HAS(PARK_1_word) && word != AWAKE
	fi;
	p3_fence(PARK_1_sleep_until_rung);
	p3_fw_pass(worked);
	p3_fw_leave();
	if
	:: !worked ->
		if
		:: atomic { mem[ASLEEP] == word -> sleeping[me] = ASLEEP_NIC };
end_asleep:		sleeping[me] == 0
		:: atomic { mem[ASLEEP] != word -> skip }
		fi
	:: else
	fi;
	worked = false;
	word = 0;
	p3_set(NIC_ASLEEP, 0);
	p3_cas(ASLEEP, ASLEEP_NIC, AWAKE, x, 0, 0);
	x = 0;
	p3_fence(PARK_1_last_look)
}

#define NIC_S HOLDER_S; byte word

/* With the lease.  Returns without it: the next tick is for others to see. */
inline stay_asleep(host_ran)
{
	do
	:: true ->
		sleep_until_rung();
		p3_fw_enter(NIC, ok);
		if
		:: ok -> ok = false
		:: else -> break
		fi;
		run_passes();
		if
		:: true
		:: host_ran -> p3_fw_leave(); break
		fi
	od
}

/* ---- the peer ---- */

inline send(number)
{
	p3_release(LANE, number, ALWAYS);
	p3_fence(PARK_1_peer); /* of its p3_fw_leave or p3_fw_look */
	p3_get(ASLEEP, x);
	if
	:: x != AWAKE -> p3_wake_peer()
	:: else
	fi
}
