/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote reads between hosts (nic/far/reads.c, nic/xfer/movers.c): a put whose target has two
 * slices read at once, each with the transfer's slot behind its bytes; exchanges of these
 * bytes at the source; the source takes the bytes back and uses their memory, and its slot,
 * for others; the target ends early.
 *
 * Checked: if the put succeeds it has the bytes of the transfer, and all of an exchange or
 * none; no read of the bytes is served when the source has heard that the transfer is over,
 * or has given their memory back (the provider would read memory that is gone).  No state
 * is a deadlock.
 *
 * A cut fails the reads that are being served.  Bytes that were on their way may still
 * arrive; then the slot is read over the next connection.
 *
 * Frames carry the slot to an image at the target, at any later time: a process copies it.
 * A read of the slot is one step, as is the copy; an exchange is several, as for a provider
 * that serves reads in a thread of its own.
 */
#ifndef WITHOUT
#define WITHOUT 0
#endif
#define FAR_2_reads_read_slot            1 /* read the slot behind the bytes, not look at the image */
#define FAR_2_judge                2 /* compare the id, */
#define FAR_2_judge_again          3 /* and again */
#define READ_1_swap_offer_anew     4 /* take each offered transfer for one that is read */
#define READ_2_send                5 /* say that it is over when no read is under way */
#define READ_3_p3_far_reads_cut    6 /* end the reads before the bytes go, */
#define READ_4_p3_far_reads_recall 7 /* and serve no later ones */

#define HAS(rule) (WITHOUT != rule)
#define CHANGES 2
#define OTHERS  9 /* bytes of others */
#define OURS    1 /* id of the transfer */

mtype = { NONE, ASKED, SENDING, HALF, HERE, FAILED }

/* The source. */
byte bytes[2], id = OURS, again, changes;
bit both; /* the last change was of both bytes, */
bit any;  /* or any was */
bit over; /* the source has heard that the transfer is over */
bit recalled, given; /* the key; the memory of the bytes */

/* The image. */
byte seen_id = OURS, seen_again;
bit seen_both, seen_any;

/* The target. */
mtype state[2] = NONE;
byte got[2], found_id[2], found_again[2];
bit ended;

#define under_way(i) (state[i] == ASKED || state[i] == SENDING || state[i] == HALF)

inline cut(i)
{
	if
	:: under_way(i) -> state[i] = FAILED
	:: state[i] != ASKED && state[i] != SENDING
	fi
}

active proctype source()
{
	do
	:: changes < CHANGES && id == OURS && !over ->
		changes++;
		if
		:: HAS(READ_1_swap_offer_anew) || again ->
			again++;
			both = 1;
			any = 1
		:: else
		fi;
		bytes[0] = changes;
		bytes[1] = changes;
		again = again + again % 2
	:: id == OURS ->
		id = 0; /* taken back */
		recalled = HAS(READ_4_p3_far_reads_recall);
		atomic {
			if
			:: HAS(READ_3_p3_far_reads_cut) -> cut(0); cut(1)
			:: else
			fi
		}
		given = 1
	:: given && bytes[1] != OTHERS ->
		bytes[0] = OTHERS;
		bytes[1] = OTHERS
	:: id == 0 && bytes[1] == OTHERS ->
		atomic { id = OURS + 1; again = 0 }
	:: ended ->
		over = 1;
		break
	od
}

active proctype frames()
{
	do
	:: atomic {
		seen_id != id || seen_again != again ->
		seen_id = id;
		seen_again = again;
		seen_both = both;
		seen_any = any
	}
	:: over -> break
	od
}

active [2] proctype medium()
{
	byte i = _pid - 2;
	do
	:: atomic { /* the provider looks at the key, and then sends the bytes */
		state[i] == ASKED -> state[i] = (recalled -> FAILED : SENDING)
	}
	:: atomic {
		state[i] == SENDING ->
		assert(!over && !given);
		got[i] = bytes[i];
		state[i] = HALF
	}
	:: atomic {
		state[i] == HALF ->
		if
		:: HAS(FAR_2_reads_read_slot) ->
			found_id[i] = id;
			found_again[i] = again
		:: else ->
			found_id[i] = seen_id;
			found_again[i] = seen_again
		fi;
		state[i] = HERE
	}
	:: over -> break
	od
}

/* Forget a read that was dropped or taken, so that equal states are one. */
inline forget(i)
{
	got[i] = 0;
	found_id[i] = 0;
	found_again[i] = 0
}

/* Drop what does not count yet. */
inline let_go()
{
	(!under_way(0) && !under_way(1));
	atomic {
		state[0] = NONE;
		state[1] = NONE;
		forget(0);
		forget(1)
	}
}

active proctype target()
{
	byte done, known;
	byte has[2];
	do
	:: done == 2 ->
		assert(has[0] == has[1] && has[0] != OTHERS);
		break
	:: done < 2 -> /* end early */
		break
	:: done < 2 && state[0] == NONE && state[1] == NONE ->
		atomic {
			if
			:: done == 0 -> state[0] = ASKED
			:: else
			fi;
			state[1] = ASKED
		}
	:: done < 2 && state[done] == FAILED ->
		let_go()
	:: done < 2 && state[done] == HERE ->
		if
		:: HAS(FAR_2_judge) && found_id[done] != OURS ->
			break
		:: else
		fi;
		if
		:: found_again[done] == known || !HAS(FAR_2_judge_again) ->
			has[done] = got[done];
			atomic { state[done] = NONE; forget(done) }
			done++
		:: else ->
			if
			:: HAS(FAR_2_judge) && seen_id != OURS -> break
			:: else
			fi;
			atomic {
				if
				:: seen_again != known && seen_again % 2 == 0 ->
					if
					:: done == 1 && (seen_again - known == 2 && seen_both ||
						seen_again - known > 2 && seen_any) ->
						done = 0
					:: else
					fi;
					known = seen_again
				:: else
				fi
			}
			let_go()
		fi
	od;
	if
	:: HAS(READ_2_send) -> let_go()
	:: else
	fi;
	ended = 1
}
