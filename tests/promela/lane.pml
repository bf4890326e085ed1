/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lane of shm/lane.h: one producer, one consumer.
 *
 * Checked: each message arrives once, whole, in order; no cell is read before it is
 * filled, or filled before it was read; neither side waits for ever.
 *
 * Bounds: a ring of CELLS, 4-bit positions that wrap in every run, MESSAGES of one or two
 * cells.  Word 0 of a second cell is payload, and looks like a header of this lap or of
 * the next.  Credit is given at once, as by p3_ring_take_now.
 *
 * Rules of a full ring: the producer clears a word of payload behind a message of two
 * cells unless all messages of a lap and since had two (CLEAN_1); a lap that did not begin
 * with them, or ends with another one, does not count (CLEAN_2).
 *
 * With BASE (lanebase.pml) the ring is a base ring: the producer clears no word that had
 * a header, and a message that ends at the end of a lap may fill the ring.
 */
#define CELLS    4
#define MOST     2
#ifndef MESSAGES
#define MESSAGES 8
#endif

#define LANE_1_p3_ring_publish 1
#define LANE_1_p3_ring_peek_at    2
#define LANE_2_p3_ring_take    3
#define LANE_2_p3_ring_see     4
#define CLEAN_1_p3_ring_clear_full 5
#define CLEAN_2_p3_ring_end_lap    6

/* Words: word 0 of each cell, and the credit.  Data: the other words of each cell. */
#define PROCS  2
#define WORDS  (CELLS + 1)
#define DATA   CELLS
#define CREDIT CELLS
#include "weak.inc"

bool formatted;
byte cells[CELLS]; /* what they hold: the message's number */

#define START      12 /* one lap below the wrap */
#define POS(x)     ((x) & 15)
#define AT(pos)    ((pos) & (CELLS - 1))
#define VALID(pos) ((POS(pos) / CELLS) << 1 | 1)

/* Word 0: validity in the low half, kind and number of cells above it. */
#define PAD             0
#define MESSAGE         1
#define WORD0(kind, k)  ((kind) << 4 | (k) << 5)
#define IS_VALID(w, p)  (((w) & 15) == VALID(p))
#define KIND(w)         ((w) >> 4 & 1)
#define NCELLS(w)       ((w) >> 5)

#define FITS(need) (POS(tx_pos - tx_seen) + (need) < CELLS)
#ifdef BASE
/* p3_ring_until */
#define FILLS(k) (AT(tx_pos) + (k) == CELLS && POS(tx_pos - tx_seen) + (k) == CELLS)
#else
#define FILLS(k) false
#endif

inline p3_ring_pad(k, pad_out)
{
	pad_out = ((k) <= CELLS - AT(tx_pos) -> 0 : CELLS - AT(tx_pos))
}

inline p3_ring_room(k)
{
	p3_ring_pad(k, pad);
	do
	:: FITS(k + pad) || FILLS(k) -> break
	:: else ->
		p3_acquire(CREDIT, credit, LANE_2_p3_ring_see);
		if
		:: POS(tx_pos - credit) > POS(tx_pos - tx_seen) -> assert(false)
		:: else -> tx_seen = credit
		fi;
		FITS(k + pad) || FILLS(k) || mem[CREDIT] != credit /* look again then */
	od
}

#ifdef BASE
inline p3_ring_clear_dirty(k)
{
	if
	:: WITHOUT != DIRTY_2_p3_ring_clear_dirty -> dirty = dirty | (1 << (k)) - 1
	:: else
	fi;
	dirty = dirty & ~1;
	dirty = (dirty >> (k) | dirty << (CELLS - (k))) & 15;
	if
	:: (dirty & 1) && WITHOUT != DIRTY_1_p3_ring_clear_dirty ->
		p3_set(AT(tx_pos + k), 0)
	:: else
	fi;
	dirty = dirty & ~1
}

inline p3_ring_publish(kind, k)
{
	p3_ring_clear_dirty(k);
	p3_release(AT(tx_pos), WORD0(kind, k) | VALID(tx_pos), LANE_1_p3_ring_publish);
	tx_pos = POS(tx_pos + k)
}
#else
#define BEHIND(a, b) (POS((a) - (b)) < 8) /* a is b, or comes behind it */

inline p3_ring_clear_ahead()
{
	if
	:: FITS(1) ->
		p3_set(AT(tx_pos + 1), 0);
		cleared = POS(tx_pos + 1)
	:: else -> cleared = POS(tx_pos - 1)
	fi
}

inline p3_ring_clear_full(k)
{
	if
	:: k == 1 && cleared == POS(tx_pos + 1)
	:: k != 1 && k == step && tx_pos == cleared && BEHIND(tx_pos + k, clean)
	:: else ->
		if
		:: k != 1 && (k != step || tx_pos != cleared) &&
			(WITHOUT != CLEAN_1_p3_ring_clear_full || !step) ->
			step = k;
			clean = POS(tx_pos + CELLS)
		:: else
		fi;
		p3_set(AT(tx_pos + k), 0)
	fi
}

inline p3_ring_end_lap(k)
{
	if
	:: (k > step || tx_pos != cleared || !BEHIND(tx_pos + k, clean)) &&
		WITHOUT != CLEAN_2_p3_ring_end_lap ->
		clean = POS(tx_pos + k + CELLS)
	:: else
	fi;
	cleared = POS(tx_pos + k)
}

inline p3_ring_publish(kind, k)
{
	bool ends = AT(tx_pos + k) == 0;
	if
	:: ends -> p3_ring_end_lap(k)
	:: else -> p3_ring_clear_full(k)
	fi;
	p3_release(AT(tx_pos), WORD0(kind, k) | VALID(tx_pos), LANE_1_p3_ring_publish);
	tx_pos = POS(tx_pos + k);
	if
	:: ends
	:: !ends && k == 1 -> p3_ring_clear_ahead()
	:: else -> cleared = tx_pos
	fi
}
#endif

inline p3_ring_begin(k)
{
	if
	:: pad -> p3_ring_publish(PAD, pad)
	:: else
	fi
}

inline fill(k)
{
	access(AT(tx_pos));
	cells[AT(tx_pos)] = sent;
	if
	:: k == 2 ->
		access(AT(tx_pos + 1));
		cells[AT(tx_pos + 1)] = sent;
		if
		:: p3_set(AT(tx_pos + 1), WORD0(MESSAGE, 1) | VALID(tx_pos + 1))
		:: p3_set(AT(tx_pos + 1), WORD0(MESSAGE, 1) | VALID(tx_pos + 1 + CELLS))
		fi
	:: else
	fi
}

active proctype producer()
{
	byte tx_pos = START, tx_seen = START, credit, pad, k, sent;
#ifdef BASE
	byte dirty = 14;
#else
	byte cleared = START, clean, step;
#endif
	d_step {
		mem[CREDIT] = START;
		prev[CREDIT] = START;
		formatted = true
	}
	do
	:: sent < MESSAGES ->
		sent++;
		if
		:: k = 1
		:: k = MOST
		fi;
		p3_ring_room(k);
		p3_ring_begin(k);
		fill(k);
		p3_ring_publish(MESSAGE, k)
	:: else -> break
	od
}

inline p3_ring_peek(out)
{
	do
	:: p3_acquire(AT(rx_pos), out, LANE_1_p3_ring_peek_at);
		if
		:: IS_VALID(out, rx_pos) -> break
		:: else -> mem[AT(rx_pos)] != out /* look again then */
		fi
	od
}

inline p3_ring_take(k)
{
	rx_pos = POS(rx_pos + k);
	p3_release(CREDIT, rx_pos, LANE_2_p3_ring_take)
}

inline read(k)
{
	assert(k == 1 || k == MOST);
	access(AT(rx_pos));
	assert(cells[AT(rx_pos)] == received);
	if
	:: k == 2 ->
		access(AT(rx_pos + 1));
		assert(cells[AT(rx_pos + 1)] == received)
	:: else
	fi
}

active proctype consumer()
{
	byte rx_pos = START, word0, received;
	formatted;
	do
	:: received < MESSAGES ->
		p3_ring_peek(word0);
		if
		:: KIND(word0) == MESSAGE ->
			received++;
			read(NCELLS(word0))
		:: else
		fi;
		p3_ring_take(NCELLS(word0))
	:: else -> break
	od
}
