/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XFER.7 of nic/xfer/xfer.h: an RMA operation whose bytes a peer reads in the owner's memory,
 * and the withdrawal of the operation by the owner.
 *
 * Checked: no slice is read after the program has got its bytes back.
 *
 * Bounds: one owner and one reader, SLICES slices; the reader is neither stopped nor dead.
 */
#ifndef SLICES
#define SLICES 3
#endif

#define XFER_7_slice_enter_cci       1 /* its fence */
#define XFER_7_slice_leave     2
#define XFER_7_p3_cci_wait_for_readers 3
#define XFER_7_p3_xfer_is_read         4

#define PROCS 2
#define ID       0 /* of the owner's slot: 1 while the bytes may be read */
#define SLICE_OF 1 /* of the reader's entry for the owner */
#define WORDS 2
#define BYTES 0
#define DATA  1
#include "weak.inc"

active proctype reader()
{
	byte x, slices;
	p3_acquire(ID, x, ALWAYS); /* the request */
	do
	:: !x -> break
	:: x && slices < SLICES ->
		p3_set(SLICE_OF, 1);
		p3_fence_light(XFER_7_slice_enter_cci);
		p3_get(ID, x);
		if
		:: x -> access(BYTES)
		:: else
		fi;
		p3_release(SLICE_OF, 0, XFER_7_slice_leave);
		slices++
	:: x && slices == SLICES -> break
	od
}

active proctype owner()
{
	byte x;
	atomic { access(BYTES); p3_release(ID, 1, ALWAYS) }
	p3_release(ID, 0, ALWAYS); /* XFER.1 */
	p3_fence_heavy(XFER_7_p3_cci_wait_for_readers);
	do
	:: p3_acquire(SLICE_OF, x, XFER_7_p3_xfer_is_read);
		if
		:: x
		:: else -> break
		fi
	od;
	access(BYTES) /* the program's */
}
