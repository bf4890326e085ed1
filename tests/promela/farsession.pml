/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets between two processes on different hosts (nic/far/control.c,
 * lib/domain/remote.c): the caller (end 0) and the called (end 1) say packets to each
 * other over connections that break at any time.
 *
 * Checked: each packet is taken once and in order; no end tells what cannot be; an end
 * takes nothing from a process that it treats as ended.  No state is a deadlock before
 * all packets are taken, or both ends treat each other as ended, or the called has found
 * that the caller has died.
 *
 * A break is noticed by one end or by both.  What was sent before it may come or not; what
 * is sent later does not.  The last connection does not break.  A probe that the caller
 * keeps, as its own calls are in vain, is a call here: the caller uses it first.
 */
#ifndef WITHOUT
#define WITHOUT 0
#endif
#define SESSION_1_write_next      1 /* tell on each connection what was taken, */
#define SESSION_2_on_left         2 /* after the earlier one is closed */
#define SESSION_3_resume          3 /* say again what was not taken */
#define SESSION_4_drop            4 /* keep a packet until it has been taken */
#define SESSION_5_has_packets     5 /* say nothing before the other end has told, */
#define SESSION_6_owes_taken      6 /* and tell sometimes without a packet to say */
#define SESSION_7_call_again      7 /* the caller calls again */
#define SESSION_8_on_probe        8 /* the caller takes a probe for a broken connection */
#define SESSION_9_use             9 /* the called takes a new call in place of the old */
#define SESSION_10_treat_as_ended 10 /* what is treated as ended stays so, */
#define SESSION_11_send_dropped  11 /* and hears of it */
#define SESSION_12_may_reconnect 12 /* a refused connection is an end, */
#define SESSION_13_may_reconnect 13 /* and a broken one is none */

#define HAS(rule) (WITHOUT != rule)
#define CONNS  3
#define NONE   CONNS
#define SAID   2 /* packets of each end */
#define KEPT   1

mtype = { TAKEN, PACKET, DROPPED }
mtype = { LIVE, SILENT, MORTAL } /* both live; the called loses patience; the caller dies */

/* Packets of a connection to an end: kind, number, and how many its sender has taken. */
chan line[6] = [3] of { mtype, byte, byte };
#define LINE(conn, end) line[2 * (conn) + (end)]

byte acked[2], given[2], next[2], taken[2], told[2];
bit resumed[2], ended[2];
byte cur[2] = NONE; /* the connection of each end */
byte calls;         /* of the caller, */
byte answered;      /* and those that the called has accepted */
bit blind[6];       /* this end does not see that the connection is broken */
bit broken[CONNS], closed[CONNS];
bit probe, looked; /* one for each connection that the called has lost */
bit dead;
mtype story = LIVE;

#define all_taken (taken[0] == SAID && taken[1] == SAID)
#define over      (all_taken || (ended[0] && ended[1]) || (dead && ended[1]))
#define opened(e) (cur[e] != NONE)

inline put(e, kind, number)
{
	if
	:: broken[cur[e]] || closed[cur[e]]
	:: else -> LINE(cur[e], 1 - e)!kind, number, taken[e]
	fi
}

inline tell(e)
{
	put(e, TAKEN, 0);
	told[e] = taken[e]
}

inline close(e)
{
	if
	:: opened(e) ->
		closed[cur[e]] = 1;
		do /* nothing of it is taken any more */
		:: nempty(LINE(cur[e], e)) && HAS(SESSION_2_on_left) ->
			LINE(cur[e], e)?_, _, _
		:: else -> break
		od;
		cur[e] = NONE
	:: else
	fi
}

/* p3_control_open, take_up */
inline open(e, conn)
{
	cur[e] = conn;
	if
	:: HAS(SESSION_1_write_next) ->
		resumed[e] = 0;
		tell(e)
	:: else ->
		resumed[e] = 1;
		given[e] = acked[e]
	fi
}

inline lose(e)
{
	close(e);
	ended[e] = 1
}

/* p3_control_post, write_next */
inline push(e)
{
	if
	:: given[e] != next[e] ->
		put(e, PACKET, given[e]);
		given[e]++;
		told[e] = taken[e];
		if
		:: HAS(SESSION_4_drop)
		:: else -> acked[e] = given[e]
		fi
	:: given[e] == next[e] && told[e] != taken[e] -> tell(e)
	fi
}

/* p3_control_take */
inline hear(e, kind, number, its)
{
	if
	:: kind == DROPPED -> lose(e)
	:: else ->
		assert(its >= acked[e] || WITHOUT == SESSION_4_drop);
		assert(its <= (resumed[e] -> given[e] : next[e]));
		acked[e] = (its > acked[e] -> its : acked[e]);
		if
		:: !resumed[e] ->
			if
			:: HAS(SESSION_3_resume) -> given[e] = acked[e]
			:: else
			fi;
			resumed[e] = 1
		:: else
		fi;
		if
		:: kind == PACKET ->
			assert(!ended[e]);
			assert(number == taken[e]);
			taken[e]++
		:: else
		fi
	fi
}

#define may_say(e) (next[e] < SAID && next[e] - acked[e] < KEPT && !ended[e])
#define may_push(e)                                                                      \
	(opened(e) && (resumed[e] || !HAS(SESSION_5_has_packets)) &&                 \
		(given[e] != next[e] ||                                                  \
			(told[e] != taken[e] && HAS(SESSION_6_owes_taken))))
#define sees_break(e)                                                                    \
	(opened(e) && !blind[2 * cur[e] + e] &&                                          \
		(broken[cur[e]] || (closed[cur[e]] && empty(LINE(cur[e], e)))))

active proctype caller()
{
	mtype kind;
	byte number, its;
	do
	:: atomic { may_say(0) -> next[0]++ }
	:: atomic { may_push(0) -> push(0) }
	:: atomic {
		opened(0) && nempty(LINE(cur[0], 0)) ->
		LINE(cur[0], 0)?kind, number, its;
		hear(0, kind, number, its);
		kind = 0; number = 0; its = 0
	}
	:: atomic {
		sees_break(0) ->
		close(0);
		if
		:: HAS(SESSION_13_may_reconnect)
		:: else -> lose(0)
		fi
	}
	:: atomic { /* dial */
		!opened(0) && !ended[0] && calls < CONNS &&
		(calls == 0 || HAS(SESSION_7_call_again)) ->
		calls++;
		open(0, calls - 1)
	}
	:: atomic { /* on_probe */
		probe ->
		probe = 0;
		if
		:: opened(0) && cur[0] < CONNS - 1 && HAS(SESSION_8_on_probe) -> close(0)
		:: else
		fi
	}
	:: atomic { /* both ends are silent to each other */
		story == SILENT && ended[1] && opened(0) && blind[2 * cur[0]] ->
		lose(0)
	}
	:: atomic { story == MORTAL && !all_taken -> dead = 1; close(0); break }
	:: over -> break
	od
}

active proctype called()
{
	mtype kind;
	byte number, its, old = NONE;
	do
	:: atomic { may_say(1) -> next[1]++ }
	:: atomic { may_push(1) -> push(1) }
	:: atomic {
		opened(1) && nempty(LINE(cur[1], 1)) ->
		LINE(cur[1], 1)?kind, number, its;
		hear(1, kind, number, its);
		kind = 0; number = 0; its = 0
	}
	:: atomic { /* a packet of a connection that was replaced */
		old != NONE && !HAS(SESSION_2_on_left) && nempty(LINE(old, 1)) ->
		LINE(old, 1)?kind, number, its;
		if
		:: kind == PACKET -> assert(number == taken[1]); taken[1]++
		:: else
		fi
	}
	:: atomic {
		sees_break(1) ->
		close(1);
		if
		:: HAS(SESSION_13_may_reconnect)
		:: else -> lose(1)
		fi
	}
	:: atomic { /* welcome */
		answered < calls && (HAS(SESSION_9_use) || !opened(1)) ->
		answered++;
		if
		:: ended[1] && HAS(SESSION_10_treat_as_ended) ->
			if
			:: HAS(SESSION_11_send_dropped) && !closed[answered - 1] ->
				LINE(answered - 1, 0)!DROPPED, 0, 0
			:: else
			fi;
			closed[answered - 1] = HAS(SESSION_11_send_dropped)
		:: else ->
			looked = 0;
			old = (HAS(SESSION_2_on_left) -> NONE : cur[1]);
			close(1);
			open(1, answered - 1)
		fi
	}
	:: atomic { /* the other host is silent */
		!ended[1] && !all_taken &&
		((story == SILENT && calls < CONNS) ||
			(dead && opened(1) && blind[2 * cur[1] + 1])) ->
		lose(1)
	}
	:: atomic { /* probe */
		!opened(1) && !ended[1] && answered == calls &&
		((answered > 0 && !looked && !dead) ||
			(dead && HAS(SESSION_12_may_reconnect))) ->
		if
		:: dead -> lose(1) /* refused */
		:: else -> looked = 1; probe = 1
		fi
	}
	:: over -> break
	od
}

/* All but the last connection may break, for either end or for both. */
active proctype network()
{
	byte k;
	if
	:: story = SILENT
	:: story = MORTAL
	:: true
	fi;
	do
	:: atomic {
		k < CONNS - 1 && calls > k ->
		broken[k] = 1;
		if
		:: blind[2 * k] = 1
		:: blind[2 * k + 1] = 1
		:: true
		fi;
		k++
	}
	:: over -> break
	od
}
