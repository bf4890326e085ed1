/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ends and births of a node on another host (lib/domain/remote.c, packets of domains; far.c,
 * link.c, lose.c, carry.c: frames): node B opens an interface LIVES times, with another
 * incarnation each time, sends node A a word and a message, and closes it.  A sends each
 * life of B a message.
 *
 * Beacon packets are in order (farsession).  Frames are not, may come at any later time
 * and more than once, and are overtaken by packets of domains and overtake them.  A LEAVE may
 * get lost before the next BORN.  A may also sever B at any time (silence, a refused
 * connection), while B lives on and sends.
 *
 * Checked: the firmware of A sees the word and the message of a life while that life is
 * attached only, the message once, and before an end in order; B takes no message that was
 * for another life; a life is attached when the one before has ended.  No state is a
 * deadlock before A has seen the end of the last life, or has severed B.
 */
#ifndef WITHOUT
#define WITHOUT 0
#endif
#define SEVER_1_p3_nic_settle     1 /* leave when all has been acknowledged */
#define SEVER_2_stream_lose              2 /* take what has come before the end */
#define SEVER_3_link_key          3 /* make keys of both incarnations */
#define SEVER_4_p3_carry_reset    4 /* begin each life with empty rings and words */
#define SEVER_5_far_is_open           5 /* take no frames for a link that is down */
#define SEVER_6_on_born           6 /* a birth ends the life before it, */
#define SEVER_7_p3_mesh_part_with 7 /* at once */
#define SEVER_8_p3_peer_down      8 /* an end names the life that it is of: a second guard */
#define SEVER_9_p3_gbn_end        9 /* drop the frames for a life that ended */
#define SEVER_10_on_packet       10 /* and so does a LEAVE: the same */

#define HAS(rule) (WITHOUT != rule)
#define LIVES 2
#define NEW   (LIVES + 1)

mtype = { BORN, LEAVE }
chan beacon = [4] of { mtype, byte };

/* Frames under way, by the lives of their key, and acknowledgements of them; what each
 * carries. */
byte to_a[NEW], to_b[NEW];
bit ack[NEW];

/* B. */
byte born;     /* the life of its interface, or 0 */
bit settled[NEW];

/* A: the link, and the peer. */
byte life;     /* the life that is attached, */
byte met;      /* and the one that the meeting knows */
byte key;      /* life of the keys, which a link that is down keeps */
bit up;
byte ring, word; /* life of what has come, or 0 */
byte taken[NEW];
byte queue;    /* life for which a frame waits to be sent */
bit ended;     /* the last life has ended, */
bit severed;   /* or B was severed */

/* A frame of life m is accepted by an end whose key is of life k. */
#define right(m, k) (m == k || (m && !HAS(SEVER_3_link_key)))

active proctype b()
{
	byte n = 1, i;
	bit acked;
	do
	:: n > LIVES -> break
	:: n <= LIVES ->
		born = n;
		acked = 0;
		beacon!BORN, n;
		do
		:: severed -> goto done
		:: atomic { !acked && !to_a[n] -> to_a[n] = n } /* and again */
		:: atomic {
			i = 1;
			do
			:: i <= LIVES && !(ack[i] && right(i, n)) -> i++
			:: i <= LIVES && ack[i] && right(i, n) -> break
			:: i > LIVES -> break
			od;
			if
			:: i <= LIVES -> ack[i] = 0; acked = 1
			:: else
			fi
		}
		:: atomic {
			to_b[n] -> assert(to_b[n] == n);
			to_b[n] = 0
		}
		:: acked || !HAS(SEVER_1_p3_nic_settle) -> break
		od;
		settled[n] = 1;
		born = 0;
		if
		:: beacon!LEAVE, n
		:: n < LIVES
		fi;
		n++
	od;
done:	skip
}

/* The firmware of A. */
inline take()
{
	atomic {
		if
		:: ring ->
			assert(life && ring == life && word == life);
			taken[ring]++;
			assert(taken[ring] == 1);
			ring = 0
		:: else
		fi
	}
}

/* Commands of the meeting: PEER_DOWN, PEER_UP. */
inline down(which)
{
	atomic {
		if
		:: life && (life == which || !HAS(SEVER_8_p3_peer_down)) ->
			if
			:: HAS(SEVER_2_stream_lose) -> take()
			:: else
			fi;
			assert(severed || taken[life] == settled[life]);
			if
			:: life == LIVES -> ended = 1
			:: else
			fi;
			life = 0;
			up = !HAS(SEVER_5_far_is_open);
			if
			:: HAS(SEVER_9_p3_gbn_end) -> queue = 0
			:: else
			fi
		:: else
		fi
	}
}

inline come(which)
{
	atomic {
		if
		:: !life ->
			life = which;
			key = which;
			up = 1;
			if
			:: HAS(SEVER_4_p3_carry_reset) -> ring = 0; word = 0
			:: else
			fi
		:: else -> assert(0)
		fi
	}
}

active proctype meeting()
{
	mtype what;
	byte which, late;
	do
	:: atomic { beacon?what, which };
		if
		:: what == LEAVE && (which == met || !HAS(SEVER_10_on_packet)) ->
			if /* messages may wait for the interface of A: then try again */
			:: down(which)
			:: late = which
			fi
		:: what == BORN ->
			if
			:: met && met != which && HAS(SEVER_6_on_born) ->
				if
				:: HAS(SEVER_7_p3_mesh_part_with) -> down(met); late = 0
				:: else -> late = met
				fi
			:: else
			fi;
			met = which;
			come(which)
		:: else
		fi;
		which = 0
	:: late -> down(late); late = 0
	:: atomic { met && life && !ended -> severed = 1; down(met) }; break
	:: ended -> break
	od
}

active proctype firmware()
{
	byte i;
end:	do
	:: atomic { /* take, p3_gbn_take, p3_carry_apply */
		up && (to_a[1] || to_a[2]) ->
		i = 1;
		do
		:: i <= LIVES && !to_a[i] -> i++
		:: i <= LIVES && to_a[i] -> break
		:: i < LIVES && to_a[i] -> i++
		:: i > LIVES -> break
		od;
		if
		:: i <= LIVES && right(i, key) ->
			if
			:: !taken[i] && ring != i -> ring = i; word = i
			:: else /* a double */
			fi;
			ack[i] = 1
		:: else
		fi;
		if /* it may come once more */
		:: i <= LIVES -> to_a[i] = 0
		:: true
		fi;
		i = 0
	}
	:: ring -> take()
	:: atomic { word && life -> assert(word == life) }
	:: atomic { life && !queue -> queue = life } /* the program puts */
	:: atomic { up && queue && life -> to_b[life] = queue }
	:: ended -> break
	od
}
