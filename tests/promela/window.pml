/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XFER.6 of nic/xfer/xfer.h, through a window: a put whose reader has begun, exchanges of its
 * bytes at the source, and another transfer that gets the window.
 *
 * Checked: the put carries all bytes of an exchange, or none, each byte at its place, and
 * no byte of the other transfer.
 *
 * Bounds: one source and one reader; two bytes, and a window for one of them; CHANGES
 * changes, of both bytes or of the window's owner; the log has room for all of them.
 * The window is a word: a reader may see it while it changes.
 *
 * A source that goes ahead (P3_F_AHEAD) fills the window before it looks at the reader's
 * words, while the bytes are those of the publication.
 *
 * As in again.pml a store behind the source's fence carries the view, and a load before
 * the reader's fence adds it.  XFER.2 (produced and bulk_read) is complete, and so is the
 * fence of swap_offer_anew, which again.pml leaves out.  window_take_back makes the word even in one
 * step: weak.inc knows only one older value of a word, and no byte changes while it is odd.
 */
#ifndef CHANGES
#define CHANGES 2
#endif

#define XFER_6_window_take_back           1 /* its fence */
#define XFER_6_p3_xfer_end_change  2
#define XFER_6_window_fill         3
#define XFER_6_slice_judge       4 /* its fence, behind the slice */
#define XFER_6_slice_judge_again 5 /* its load */
#define XFER_6_slice_read_anew   6

#define PROCS 2
#define AGAIN      0
#define PRODUCED   1
#define BULK_READ  2
#define BULK_AGAIN 3
#define WINDOW     4
#define LOG        5 /* a bit for each change: it was of both bytes */
#define WORDS 6
#define DATA  0
#include "weak.inc"

#define FOREIGN 99
#define byte_is(place, version) (10 * (place) + (version) + 1)

bit over;

inline window_fill()
{
	p3_acquire(BULK_AGAIN, x, XFER_6_window_fill);
	p3_acquire(BULK_READ, done, ALWAYS);
	if
	:: x == again ->
		if
		:: !agreed || produced < done -> produced = done
		:: else
		fi;
		agreed = 1;
		if
		:: produced < 2 && produced == done ->
			store(WINDOW, byte_is(produced, version), fenced);
			produced++;
			p3_release(PRODUCED, produced, ALWAYS)
		:: else
		fi
	:: else
	fi;
	x = 0;
	done = 0
}

inline window_fill_ahead()
{
	if
	:: produced == 0 -> /* it never goes round */
		agreed = 1;
		store(WINDOW, byte_is(0, version), fenced);
		produced = 1;
		p3_release(PRODUCED, 1, ALWAYS)
	:: else
	fi
}

inline begin_anew()
{
	produced = 0;
	agreed = 0;
	p3_set(PRODUCED, 0)
}

active proctype source()
{
	byte again, produced, version, x, done, log;
	bit agreed, fenced = 1;
	do
	:: over -> break
	:: !over -> window_fill()
	:: !over && again == 0 -> window_fill_ahead()
	:: !over && again < 2 * CHANGES -> /* an exchange */
		begin_anew();
		log = log | BIT(again / 2);
		p3_set(AGAIN, again + 1);
		fenced = 1;
		store(LOG, log, fenced);
		version++;
		again = again + 2;
		p3_release(AGAIN, again, XFER_6_p3_xfer_end_change)
	:: !over && again < 2 * CHANGES -> /* window_take_back */
		begin_anew();
		again = again + 2;
		p3_release(AGAIN, again, XFER_6_p3_xfer_end_change);
		fenced = HAS(XFER_6_window_take_back);
		store(WINDOW, FOREIGN, fenced)
	od
}

inline read_anew()
{
	load(LOG, log, true);
	p3_get(AGAIN, y);
	if
	:: y == x ->
		log = log >> (again / 2);
		if
		:: log && done == 1 -> done = 0
		:: else
		fi;
		again = x;
		p3_set(BULK_READ, done);
		p3_release(BULK_AGAIN, x, XFER_6_slice_read_anew)
	:: else
	fi;
	y = 0;
	log = 0
}

inline judge()
{
	p3_acquire(AGAIN, x, XFER_6_slice_judge_again);
	good = (x == again);
	if
	:: !good && x % 2 == 0 -> read_anew()
	:: else
	fi;
	x = 0
}

active proctype reader()
{
	byte again, done, produced, slice, x, y, log, got0, got1;
	bit good;
	do
	:: done < 2 ->
		p3_acquire(PRODUCED, produced, ALWAYS);
		judge();
		if
		:: good && produced > done ->
			load(WINDOW, slice, HAS(XFER_6_slice_judge));
			judge();
			if
			:: good && done == 0 -> got0 = slice
			:: good && done == 1 -> got1 = slice
			:: else
			fi;
			if
			:: good -> done++; p3_release(BULK_READ, done, ALWAYS)
			:: else
			fi
		:: else
		fi;
		produced = 0;
		slice = 0;
		good = 0
	:: else -> break
	od;
	over = 1;
	assert(got0 > 0 && got0 <= byte_is(0, CHANGES) && got1 == got0 + 10)
}
