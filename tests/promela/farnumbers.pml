/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of frames between hosts (nic/wire/frame.c with probes, nic/far/link.c): one
 * direction of a pair, over a medium that loses, doubles, delays and reorders frames, that
 * reports failures which were none, and that has acknowledgements of an earlier life.
 *
 * Checked: each frame is accepted once and in order; a frame that is sent again still has
 * its place in the queue; the sender forgets no frame that has not come; the receiver
 * gets no more frames than it has promised room for.  And no state is a deadlock before the last frame is acknowledged: a probe, which is sent when nothing
 * else can happen, makes the pair go on.  PROBES without progress count as a deadlock.
 *
 * The medium is a set: a frame of the same kind, number and credits is in it once, and may
 * come twice.  Numbers do not wrap here.
 */
#define FRAMES  3
#define WINDOW  2 /* of the queue */
#define FIRST   1 /* credits at the start */
#define ROOM    2 /* credits at most */
#define FAULTS  3 /* losses, doubles, failures, and probes while frames are under way */
#define PROBES  5 /* more than the losses, so that one comes and is answered */

#ifndef WITHOUT
#define WITHOUT 0
#endif
#define NUMBER_1_p3_gbn_take   1 /* accept no frame before its turn */
#define NUMBER_2_look_at_clock 2 /* ask what is missing */
#define NUMBER_3_answer        3 /* say what is missing */
#define NUMBER_4_has_frame     4 /* send what the other end has room for */
#define NUMBER_5_offer_room    5 /* offer room for a frame in any case */
#define NUMBER_6_is_intact     6 /* refuse frames of other lives */
#define NUMBER_7_take_ack      7 /* ignore an acknowledgement that comes late */
#define NUMBER_8_break_off     8 /* go back after a failure: faster than a probe */
#define NUMBER_9_miss          9 /* ask for the missing frame at once: faster, too */

#define ACK(ack, room, again) ((ack) * 2 * (ROOM + 1) + (room) * 2 + (again))

/* What is under way. */
bool data[FRAMES], probe[FRAMES + 1], ack[ACK(FRAMES + 1, 0, 0)];
byte under_way, faults;

/* The sender's end, the receiver's end. */
byte base, sent, next, may = FIRST;
byte expected, promised = FIRST;

inline put(where)
{
	if
	:: faults < FAULTS -> faults++
	:: true ->
		if
		:: !where -> where = true; under_way++
		:: else
		fi
	fi
}

inline get(where)
{
	if
	:: where = false; under_way--
	:: faults < FAULTS -> faults++
	fi
}

inline take_ack(number, room, again)
{
	if
	:: number < base && WITHOUT != NUMBER_7_take_ack
	:: else ->
		if
		:: number > base -> probes = 0
		:: else
		fi;
		base = number;
		if
		:: number + room > may -> may = number + room
		:: else
		fi;
		if
		:: sent < base || (again && sent != base) -> sent = base
		:: else
		fi
	fi;
	assert(base <= expected)
}

active proctype sender()
{
	byte probes, i;
	do
	:: atomic { /* p3_gbn_begin, p3_gbn_commit */
		next < FRAMES && next - base < WINDOW -> next++
	}
	:: atomic { /* p3_gbn_send */
		sent < next && (may > sent || WITHOUT == NUMBER_4_has_frame) ->
		assert(next - sent <= WINDOW);
		assert(sent < promised);
		put(data[sent]);
		sent++
	}
	:: atomic { /* the medium reports a failure */
		faults < FAULTS && sent != base ->
		faults++;
		if
		:: WITHOUT == NUMBER_8_break_off
		:: else -> sent = base
		fi
	}
	:: atomic {
		faults < FAULTS && sent != base && WITHOUT != NUMBER_2_look_at_clock ->
		faults++;
		put(probe[sent])
	}
	:: atomic {
		timeout && sent != base && probes < PROBES &&
		WITHOUT != NUMBER_2_look_at_clock ->
		probes++;
		put(probe[sent])
	}
	:: atomic {
		under_way ->
		i = 0;
		do
		:: i < ACK(FRAMES + 1, 0, 0) && !ack[i] -> i++
		:: i < ACK(FRAMES + 1, 0, 0) && ack[i] -> break
		:: i < ACK(FRAMES + 1, 0, 0) && ack[i] -> i++
		:: else -> break
		od;
		if
		:: i < ACK(FRAMES + 1, 0, 0) ->
			get(ack[i]);
			take_ack(i / (2 * (ROOM + 1)), (i / 2) % (ROOM + 1), i % 2)
		:: else
		fi;
		i = 0
	}
	:: atomic { /* an acknowledgement of an earlier life */
		WITHOUT == NUMBER_6_is_intact && base != FRAMES ->
		take_ack(FRAMES, ROOM, 0)
	}
	:: base == FRAMES -> break
	od
}

/* Take the frame with this number. */
inline take(number)
{
	if
	:: number == expected ||
	   (number > expected && WITHOUT == NUMBER_1_p3_gbn_take) ->
		assert(number == expected);
		expected++;
		owes_ack = true;
		asked = false;
		owes_again = false
	:: number > expected && WITHOUT != NUMBER_1_p3_gbn_take ->
		if
		:: !asked && WITHOUT != NUMBER_9_miss ->
			owes_again = true;
			owes_ack = true;
			asked = true
		:: else
		fi
	:: number < expected -> owes_ack = true
	fi
}

active proctype receiver()
{
	bool owes_ack, owes_again, asked;
	byte i, room;
end:	do
	:: atomic {
		under_way ->
		i = 0;
		do
		:: i < FRAMES && !data[i] -> i++
		:: i < FRAMES && data[i] -> break
		:: i < FRAMES && data[i] -> i++
		:: else -> break
		od;
		if
		:: i < FRAMES -> get(data[i]); take(i)
		:: else
		fi;
		i = 0
	}
	:: atomic {
		under_way ->
		i = 0;
		do
		:: i <= FRAMES && !probe[i] -> i++
		:: i <= FRAMES && probe[i] -> break
		:: else -> break
		od;
		if
		:: i <= FRAMES ->
			get(probe[i]);
			owes_ack = true;
			owes_again = owes_again ||
				(i > expected && WITHOUT != NUMBER_3_answer)
		:: else
		fi;
		i = 0
	}
	:: atomic { /* put_bare, with the room that other links leave */
		owes_ack ->
		if
		:: WITHOUT == NUMBER_5_offer_room -> room = 0
		:: room = 1
		:: room = ROOM
		fi;
		put(ack[ACK(expected, room, owes_again)]);
		if
		:: expected + room > promised -> promised = expected + room
		:: else
		fi;
		owes_ack = false;
		owes_again = false;
		room = 0
	}
	od
}
