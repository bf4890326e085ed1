/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XFER.5 of nic/xfer/xfer.h: a put whose bytes its target reads in the source's memory, and
 * exchanges (PtlGetPut) of those bytes at the source.
 *
 * Checked: no reader reads while the bytes are exchanged, so the put carries no half of
 * an exchange.
 *
 * Bounds: one source and one reader, PUTS and EXCHANGES.  No reader is taken for a still
 * one (that is XFER.6).
 */
#ifndef PUTS
#define PUTS 2
#endif
#ifndef EXCHANGES
#define EXCHANGES 2
#endif

#define XFER_5_slice_announce 1 /* its fence */
#define XFER_5_swapping         2 /* its load */
#define XFER_5_p3_xfer_recant   3
#define XFER_5_swap_announce    4
#define XFER_5_swap_has_begun        5
#define XFER_5_p3_xfer_swapped  6

#define PROCS 2
#define READING  0 /* of the target's entry for the source */
#define SWAPPING 1 /* of the source's entry for the target */
#define WORDS 2
#define BYTES 0
#define DATA  1
#include "weak.inc"

inline announce()
{
	if
	:: !announced ->
		announced = true;
		p3_set(READING, 1);
		p3_fence_light(XFER_5_slice_announce)
	:: else
	fi;
	p3_acquire(SWAPPING, x, XFER_5_swapping);
	may_read = !x
}

active proctype target()
{
	byte x, puts;
	bool announced, may_read;
	do
	:: puts < PUTS ->
		announce();
		if
		:: may_read ->
			access(BYTES);
			p3_release(READING, 0, XFER_5_p3_xfer_recant); /* recant */
			announced = false;
			puts++
		:: else
		fi
	:: else -> break
	od
}

#define swap_has_begun() p3_acquire(READING, x, XFER_5_swap_has_begun)

inline p3_xfer_may_swap()
{
	swap_has_begun();
	if
	:: !x ->
		p3_set(SWAPPING, 1);
		p3_fence_heavy(XFER_5_swap_announce); /* swap_announce */
		swap_has_begun()
	:: else
	fi
}

active proctype source()
{
	byte x, exchanges;
	do
	:: exchanges < EXCHANGES ->
		p3_xfer_may_swap();
		if
		:: !x -> access(BYTES); exchanges++
		:: else
		fi;
		p3_release(SWAPPING, 0, XFER_5_p3_xfer_swapped)
	:: else -> break
	od
}
