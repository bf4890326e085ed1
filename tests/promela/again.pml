/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XFER.6 of nic/xfer/xfer.h, without a window: a put whose reader has begun, and exchanges of
 * its bytes at the source, which do not wait for the reader.
 *
 * Checked: the put carries all bytes of an exchange, or none.
 *
 * Bounds: one source and one reader; two bytes, each a slice of its own; CHANGES changes,
 * of both bytes or of none (that is a window taken back); the log has room for one
 * change.  The bytes are words: a reader may see them while they change.
 *
 * The fences order relaxed accesses, which weak.inc does not model.  So a store behind
 * the source's fence carries the view, and a load before the reader's fence adds it.
 */
#ifndef CHANGES
#define CHANGES 3
#endif

#define XFER_6_swap_offer_anew          1 /* its fence */
#define XFER_6_p3_xfer_end_change  2
#define XFER_6_slice_judge       3 /* its fence, behind the slice */
#define XFER_6_slice_judge_again 4 /* its load */
#define XFER_6_slice_catch_up    5 /* its fence, behind the log */

#define PROCS 2
#define AGAIN  0
#define LOG    1 /* 1: the last change was of both bytes */
#define BOUNDS 2 /* 1: any change was */
#define BYTE0  3
#define BYTE1  4
#define WORDS 5
#define DATA  0
#include "weak.inc"

#define store_behind(w, v, fence) store(w, v, HAS(fence))
#define load_before(w, out, fence) load(w, out, HAS(fence))

active proctype source()
{
	byte changes, version;
	bit both, any;
	do
	:: changes < CHANGES ->
		changes++;
		if
		:: both = 1; any = 1; version++
		:: both = 0
		fi;
		p3_set(AGAIN, 2 * changes - 1); /* begin_change */
		store_behind(LOG, both, XFER_6_swap_offer_anew);
		store_behind(BOUNDS, any, XFER_6_swap_offer_anew);
		if
		:: both ->
			store_behind(BYTE0, version, XFER_6_swap_offer_anew);
			store_behind(BYTE1, version, XFER_6_swap_offer_anew)
		:: else
		fi;
		p3_release(AGAIN, 2 * changes, XFER_6_p3_xfer_end_change)
	:: else -> break
	od
}

/* The source's bytes have changed: the log says which. */
inline catch_up()
{
	if
	:: x - again > 2 -> load_before(BOUNDS, half, XFER_6_slice_catch_up)
	:: else -> load_before(LOG, half, XFER_6_slice_catch_up)
	fi;
	p3_get(AGAIN, y);
	if
	:: y == x ->
		again = x;
		if
		:: half && done == 1 -> done = 0
		:: else
		fi
	:: else
	fi;
	y = 0;
	half = 0
}

active proctype reader()
{
	byte again, x, y, half, slice, done, got0, got1;
	do
	:: done < 2 ->
		if
		:: done == 0 -> load_before(BYTE0, slice, XFER_6_slice_judge)
		:: else -> load_before(BYTE1, slice, XFER_6_slice_judge)
		fi;
		p3_acquire(AGAIN, x, XFER_6_slice_judge_again);
		if
		:: x == again && done == 0 -> got0 = slice; done = 1
		:: x == again && done == 1 -> got1 = slice; done = 2
		:: x != again && x % 2 == 0 -> catch_up()
		:: x != again && x % 2 == 1
		fi;
		slice = 0;
		x = 0
	:: else -> break
	od;
	assert(got0 == got1)
}
