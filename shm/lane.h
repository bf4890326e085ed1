/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane - ring of 64-byte cells from one producer to one consumer
 *
 *	producer  --begin, fill, publish-->  [ cells 0 .. n-1 ]  --peek, take-->  consumer
 *
 * The cells are in the producer's published segment, the credit (cells taken) in the
 * consumer's: every byte has one writer.  A pair of nodes has two rings, requests and
 * responses, so that a request that must wait never holds up a response.
 *
 * A message is k contiguous cells, k at most a quarter of the ring, in a full ring one
 * more: its header is beside a quarter of bytes.  Only the first
 * cell of a message, its header, has a validity word: the low half of word 0 holds (lap
 * << 1 | 1), never 0, lap being the number of times that the ring went round.  Before
 * the producer publishes a header at p it stores 0 in word 0 of cell p + k (it owns one
 * cell more than it fills), so that old payload there can never look like a header; the
 * consumer looks at no other cell.  If the next message may have one cell, the producer
 * clears the word behind that one as soon as this message is published.  A header of an
 * earlier lap has another validity word, so it need not be cleared: in a base ring the
 * producer knows the cells with old payload, and clears no others; in a full ring it
 * clears none while its messages have the length, more than one cell, of all those of a
 * whole lap (p3_ring_is_clean()).  The first cell of a lap never has payload, so a
 * message that ends there may fill a base ring.
 *
 * Only the lease holder of the producing node calls the producer functions, and only
 * that of the consuming node the consumer functions; the two sides may call at the same
 * time, and there is no lock.
 *
 * Progress: all functions are wait-free.  If the other process is killed between any
 * two instructions, this side sees a full or an empty ring, never half a message, and
 * waits for no process.
 *
 * Memory ordering:
 *	LANE.1	word 0 of a header: publish releases -> peek acquires (cells are filled)
 *	LANE.2	credit: take releases -> room acquires (cells were read)
 *
 * Positions are free-running 64-bit numbers, compared by unsigned difference; they
 * start so that the 32-bit validity wraps in the third lap of every run.  The peer may
 * have written anything into its words, so they are checked: a credit out of range
 * counts as no room, a header's cell count is range-checked by the caller's peek, and
 * every word of a cell is loaded once, into private memory.
 */
#ifndef P3_SHM_LANE_H
#define P3_SHM_LANE_H

#include "shm/fault.h"
#include "shm/layout.h"

struct p3_ring_tx {
	/* all that a message of an open ring touches: see p3_ring_open */
	uint64_t pos;   /* next header */
	uint64_t until; /* a message that ends there at most has room; 0: shut */
	union {
		struct {                  /* full ring, low halves of positions: */
			uint32_t cleared; /* behind pos: word 0 is 0 there */
			uint32_t clean;   /* these two: see p3_ring_is_clean() */
		};
		uint8_t dirty; /* base ring: a bit for each cell from pos on: its word 0
				* may be payload; never set for the first cell */
	};
	struct p3_cell *next; /* open: the cell at pos, */
	uint32_t valid;       /* and the validity word of a header there */
	uint16_t n;           /* cells, a power of two */
	uint16_t step;        /* full ring: cells of the last longer message */
	/* the rest */
	struct p3_cell *cells;
	const p3_a64 *credit; /* the consumer's, in its segment */
	uint64_t seen;        /* credit as last read */
	uint32_t log2n;
};

struct p3_ring_rx {
	struct p3_cell *next; /* cell of pos, in a read-only mapping of the producer's
			       * segment */
	uint64_t usual;       /* word 0 of the usual message, if it is the next one */
	uint64_t pos;
	uint64_t sure;  /* cells before this are most likely filled: see p3_ring_expect */
	p3_a64 *credit; /* in its own segment */
	uint32_t due;   /* low half of the position where the credit is to be written */
	uint32_t given; /* low half of the credit as last written */
	uint32_t n;
	uint32_t share; /* cells between two positions where the credit is written */
};

_Static_assert(P3_BASE_CELLS == 8, "a byte has a bit for each cell of a base ring");

static inline uint32_t p3_log2(uint32_t n)
{
	return 31 - (uint32_t)__builtin_clz(n);
}

/* Return the first position: two laps below the wrap of the validity word. */
static inline uint64_t p3_ring_start(uint32_t n)
{
	return (uint64_t)0x7ffffffe * n;
}

static inline uint32_t p3_ring_valid(uint64_t pos, uint32_t log2n)
{
	return (uint32_t)(pos >> log2n) << 1 | 1;
}

static inline struct p3_cell *p3_cell_at(struct p3_cell *cells, uint64_t pos, uint32_t n)
{
	return &cells[pos & (n - 1)];
}

/* Return the largest number of cells of one message. */
static inline uint32_t p3_ring_most(uint32_t n)
{
	return n / 4 + (n > P3_BASE_CELLS);
}

/* Set up the producer's side: an empty ring whose first header is not valid. */
static inline void p3_ring_tx_init(
	struct p3_ring_tx *r, struct p3_cell *cells, uint32_t n, const p3_a64 *credit)
{
	r->cells = r->next = cells;
	r->credit = credit;
	r->n = (uint16_t)n;
	r->log2n = p3_log2(n);
	r->pos = r->seen = p3_ring_start(n);
	r->step = 0;
	if (n > P3_BASE_CELLS)
		r->cleared = (uint32_t)r->pos;
	else
		r->dirty = 0xfe;
	r->until = 0;
	p3_set(&cells[0].w[0], 0);
}

/* Set up the consumer's side.  usual is word 0 of the most frequent message, without the
 * validity word. */
static inline void p3_ring_rx_init(struct p3_ring_rx *r, struct p3_cell *cells,
	uint32_t n, p3_a64 *credit, uint64_t usual)
{
	r->next = cells;
	r->credit = credit;
	r->n = n;
	r->pos = r->sure = p3_ring_start(n);
	r->given = (uint32_t)r->pos;
	r->share = p3_without(P3_CREDITS) ? 1 : n / 8;
	r->due = r->given + r->share;
	r->usual = usual | p3_ring_valid(r->pos, p3_log2(n));
	p3_set(credit, r->pos);
}

/* Write the credit of a new ring at each half of the ring only: its consumer calls
 * p3_ring_give() at the end of each visit.  An eighth of a base ring is one cell. */
static inline void p3_ring_pay_late(struct p3_ring_rx *r)
{
	if (p3_without(P3_CREDITS))
		return;
	r->share = r->n / 2;
	r->due = r->given + r->share;
}

/* Return the cells wasted at the ring's end by a message of k cells at pos. */
static inline uint32_t p3_ring_pad(const struct p3_ring_tx *r, uint32_t k)
{
	uint32_t left = r->n - (uint32_t)(r->pos & (r->n - 1));
	return p3_likely(k <= left) ? 0 : left;
}

static inline bool p3_ring_fits(const struct p3_ring_tx *r, uint32_t cells)
{
	uint64_t used = r->pos - r->seen;
	return used + cells < r->n; /* one more cell than is filled */
}

/* Look at the consumer's own word of credit.  Return false if it went back, or is ahead
 * of the cells sent. */
static inline bool p3_ring_see(struct p3_ring_tx *r)
{
	uint64_t credit = p3_acquire(r->credit); /* LANE.2 */
	if (r->pos - credit > r->pos - r->seen)
		return false;
	r->seen = credit;
	return true;
}

/* Return true if there is room for a message of k cells; refresh the credit if need
 * be. */
static inline bool p3_ring_room(struct p3_ring_tx *r, uint32_t k)
{
	uint32_t need = k + p3_ring_pad(r, k);
	if (p3_likely(p3_ring_fits(r, need)) && !p3_without(P3_SHADOWS))
		return true;
	return p3_ring_see(r) && p3_ring_fits(r, need);
}

enum { P3_KIND_PAD = 0 };

static inline uint64_t p3_word0(uint32_t kind, uint32_t flags, uint32_t ncells)
{
	return (uint64_t)kind << 32 | (uint64_t)flags << 40 | (uint64_t)ncells << 48;
}

static inline uint32_t p3_word0_kind(uint64_t w0)
{
	return (uint32_t)(w0 >> 32) & 0xff;
}

static inline uint32_t p3_word0_flags(uint64_t w0)
{
	return (uint32_t)(w0 >> 40) & 0xff;
}

static inline uint32_t p3_word0_ncells(uint64_t w0)
{
	return (uint32_t)(w0 >> 48);
}

/*
 * Prefetch for writing a line that will be filled soon.  The consumer still has it from
 * the last lap: getting it back costs as much as a message, and must not lie between
 * fill and publish.
 */
static inline void p3_ring_own_soon(const struct p3_ring_tx *r, uint32_t ahead)
{
	p3_own_soon(p3_cell_at(r->cells, r->pos + ahead, r->n));
}

/* Prefetch for writing, likewise, the cells behind pos + 1 up to pos + k, after a message
 * of k cells: the next one may be as long. */
static inline void p3_ring_own_more(struct p3_ring_tx *r, uint32_t k)
{
	for (uint32_t i = 2; i <= k; i++)
		p3_ring_own_soon(r, i);
}

/* Prefetch all cells behind a header at once: the producer's cache still has them.  Long
 * messages take four of them a turn. */
static inline void p3_cells_soon(const struct p3_cell *c, uint32_t k)
{
	const struct p3_cell *end = c + k;
	if (p3_without(P3_PREFETCHES))
		return;
	if (p3_likely(k == 2)) {
		p3_read_soon_far(&c[1]);
		return;
	}
	for (c++; c + 4 <= end; c += 4) {
		p3_read_soon_far(&c[0]);
		p3_read_soon_far(&c[1]);
		p3_read_soon_far(&c[2]);
		p3_read_soon_far(&c[3]);
	}
	for (; c < end; c++)
		p3_read_soon_far(c);
}

/*
 * Clear now, while no receiver waits, the word that the next message will have to clear
 * if it has one cell.  If that message did it, the store would be slow, since the
 * receiver's prefetcher has taken the word's line by then; and the store that publishes
 * the message would wait behind it in the CPU's store buffer.
 */
static inline void p3_ring_clear_ahead(struct p3_ring_tx *r)
{
	r->cleared = (uint32_t)r->pos - 1; /* not pos: p3_ring_is_clean() */
	if (p3_unlikely(!p3_ring_fits(r, 1)))
		return;
	p3_set(&p3_cell_at(r->cells, r->pos + 1, r->n)->w[0], 0);
	r->cleared = (uint32_t)r->pos + 1;
}

/* Prefetch the lines that a stream of messages of k cells will clear and fill. */
static inline void p3_ring_own_ahead(struct p3_ring_tx *r, uint32_t k)
{
	p3_ring_own_soon(r, 6);
	if (k > 1)
		p3_ring_own_soon(r, 7);
}

/* Let each message use the general functions, until p3_ring_open(). */
static inline void p3_ring_shut(struct p3_ring_tx *r)
{
	r->until = 0;
}

/*
 * Clear in a base ring the word behind the message of k cells that was filled at the
 * current position, unless that word is 0 or of a header: a header of an earlier lap has
 * another validity word.  Where all messages are of one length, each header lies where
 * one lay in the lap before, so nothing is cleared, and the line behind the message is
 * not touched.
 */
static P3_HOT void p3_ring_clear_dirty(struct p3_ring_tx *r, uint32_t k)
{
	uint32_t dirty =
		(r->dirty | ((1u << k) - 1)) & ~1u; /* the payload, not the header */
	uint8_t then = (uint8_t)(dirty >> k | dirty << (P3_BASE_CELLS - k));
	if (p3_unlikely(then & 1)) {
		p3_set(&p3_cell_at(r->cells, r->pos + k, r->n)->w[0], 0);
		then &= 0xfe;
	}
	r->dirty = then;
}

/*
 * Return true if the cell behind the message of k cells, two or more, that was filled at
 * the current position of a full ring had a header a lap before.  That is so if messages
 * of k cells lay one behind the other in the whole lap before, and have since: each lap
 * begins with a header.  The end of a lap that was too short for another one may be a pad
 * or a shorter message.
 *
 * r->step is the length of the last message of more than one cell.  Since this length
 * came up, a lap is over at r->clean.  Behind such a message r->cleared is its end, and
 * behind one of one cell it is not.
 */
static P3_HOT bool p3_ring_is_clean(const struct p3_ring_tx *r, uint32_t k)
{
	uint32_t pos = (uint32_t)r->pos;
	return p3_likely(k == r->step && pos == r->cleared) &&
	       p3_likely((int32_t)(pos + k - r->clean) >= 0);
}

/* Clear in a full ring the word behind the message of k cells that was filled at the
 * current position, unless it is 0 or of a header. */
static P3_HOT void p3_ring_clear_full(struct p3_ring_tx *r, uint32_t k)
{
	uint32_t pos = (uint32_t)r->pos;
	if (k == 1 ? p3_likely(r->cleared == pos + 1) : p3_ring_is_clean(r, k))
		return;
	if (k != 1 && (k != r->step || pos != r->cleared)) {
		r->step = (uint16_t)k;
		r->clean = pos + r->n;
	}
	p3_set(&p3_cell_at(r->cells, r->pos + k, r->n)->w[0], 0);
}

/* Note that a lap of a full ring ends with the message of k cells at the current
 * position: see p3_ring_is_clean().  The word behind it is of a header. */
static P3_HOT void p3_ring_end_lap(struct p3_ring_tx *r, uint32_t k)
{
	uint32_t pos = (uint32_t)r->pos, end = pos + k;
	if (k > r->step || pos != r->cleared || (int32_t)(r->clean - end) > 0)
		r->clean = end + r->n;
	r->cleared = end;
}

/* Clear the word behind the message of k cells that was filled at the current position,
 * if it may look like a header.  Return true if the ring is full, and goes on there. */
static __attribute__((noinline, unused)) bool p3_ring_clear_behind(
	struct p3_ring_tx *r, uint32_t k)
{
	if (r->n <= P3_BASE_CELLS) {
		p3_ring_clear_dirty(r, k);
		return false;
	}
	bool ends = !((r->pos + k) & (r->n - 1u));
	if (ends)
		p3_ring_end_lap(r, k);
	else
		p3_ring_clear_full(r, k);
	return !ends;
}

/* Do behind the message of k cells that was published in a full ring what can wait until
 * then: the current position is the next one. */
static P3_HOT void p3_ring_look_ahead(struct p3_ring_tx *r, uint32_t k)
{
	if (k == 1)
		p3_ring_clear_ahead(r);
	else
		r->cleared = (uint32_t)r->pos;
	p3_ring_own_ahead(r, k);
}

/* Publish the message of k cells that was filled at the current position.  This shuts the
 * ring. */
static P3_HOT void p3_ring_publish(struct p3_ring_tx *r, uint64_t word0, uint32_t k)
{
	struct p3_cell *c = p3_cell_at(r->cells, r->pos, r->n);
	FAULT_POINT("lane.filled");
	bool full = p3_ring_clear_behind(r, k);
	word0 |= p3_ring_valid(r->pos, r->log2n);
	r->pos += k;
	p3_ring_shut(r);
	FAULT_POINT("lane.cleared");
	p3_release(&c->w[0], word0); /* LANE.1: nothing after this may touch the cells */
	if (full)
		p3_ring_look_ahead(r, k);
	FAULT_POINT("lane.published");
}

/* Fill the rest of the ring with padding, because the message does not fit before its
 * end. */
static P3_RARE __attribute__((unused)) void p3_ring_skip(
	struct p3_ring_tx *r, uint32_t pad)
{
	p3_ring_publish(r, p3_word0(P3_KIND_PAD, 0, pad), pad);
}

/*
 * Return the place of the next message of k cells; p3_ring_room(r, k) must have
 * returned true.  Fill words 1..7 of the first cell and all of the next k - 1 cells,
 * then publish with the same k.
 */
static inline struct p3_cell *p3_ring_begin(struct p3_ring_tx *r, uint32_t k)
{
	uint32_t pad = p3_ring_pad(r, k);
	if (p3_unlikely(pad != 0))
		p3_ring_skip(r, pad);
	FAULT_POINT("lane.begun");
	return p3_cell_at(r->cells, r->pos, r->n);
}

/*
 * An open ring.  Between two ends of the ring, and while the credit suffices, the place
 * of each message is known: the cell behind the one before.  p3_ring_open computes once
 * up to where this holds, and one comparison (p3_ring_runs) tells whether it holds for a
 * message.  So a message computes no place, no room and no validity word.
 *
 * Behind the last message of an open full ring there are cells that may be cleared early
 * or prefetched, before the ring's end.  A base ring is open up to its end.  The message
 * that ends there may fill the ring, since the word behind it, in the first cell, is
 * never cleared.
 */
#define P3_RING_BEYOND 8u

static inline uint64_t p3_ring_until(const struct p3_ring_tx *r)
{
	uint64_t end = (r->pos | (r->n - 1)) + 1, room = r->seen + r->n;
	if (r->n <= P3_BASE_CELLS)
		return room < end ? room - 1 : end; /* as p3_ring_fits */
	end -= P3_RING_BEYOND;
	room -= 2; /* as p3_ring_fits, and one more is cleared */
	return room < end ? room : end;
}

static inline void p3_ring_open(struct p3_ring_tx *r)
{
	r->until = p3_ring_until(r);
	r->next = p3_cell_at(r->cells, r->pos, r->n);
	r->valid = p3_ring_valid(r->pos, r->log2n);
}

/* Return true if a message of k cells, for which p3_ring_room() has no room, fits a base
 * ring because it ends at the end of the lap: the producer of an open ring sends it. */
static inline bool p3_ring_fills(const struct p3_ring_tx *r, uint32_t k)
{
	uint64_t end = r->pos + k;
	return r->n <= P3_BASE_CELLS && !(end & (r->n - 1)) && end - r->seen == r->n;
}

/* Return true if the consumer's own word of credit has room for a message of k cells. */
static inline bool p3_ring_has_credit(const struct p3_ring_tx *r, uint32_t k)
{
	return r->pos + k - p3_acquire(r->credit) < r->n; /* LANE.2 */
}

/* Return true if the ring is open for a message of k cells: its place is r->next. */
static inline bool p3_ring_runs(const struct p3_ring_tx *r, uint32_t k)
{
	return p3_likely(r->pos + k <= r->until) &&
	       (!p3_without(P3_SHADOWS) || p3_ring_has_credit(r, k));
}

/* Open again a ring that is not shut, but has come to its end, or to the end of the last
 * known credit.  Return false if a message of k cells must take the general functions. */
static inline bool p3_ring_reopen(struct p3_ring_tx *r, uint32_t k)
{
	bool base = r->n <= P3_BASE_CELLS; /* a new lap of it needs a new credit */
	if (!r->until || !(base ? p3_ring_see(r) : p3_ring_room(r, k)))
		return false;
	p3_ring_open(r);
	return p3_ring_runs(r, k);
}

/* Do as p3_ring_own_more() behind the message of k cells that p3_ring_run() published, if
 * the ring is open for another one. */
static P3_HOT void p3_ring_run_more(const struct p3_ring_tx *r, uint32_t k)
{
	const struct p3_cell *c = r->next + 2, *end = r->next + k + 1;
	if (r->pos + k > r->until)
		return;
	if (p3_likely(k == 2)) {
		p3_own_soon(&c[0]);
		return;
	}
	for (; c + 4 <= end; c += 4) {
		p3_own_soon(&c[0]);
		p3_own_soon(&c[1]);
		p3_own_soon(&c[2]);
		p3_own_soon(&c[3]);
	}
	for (; c < end; c++)
		p3_own_soon(c);
}

/* Do as p3_ring_run() in a base ring. */
static P3_HOT void p3_ring_run_base(struct p3_ring_tx *r, uint64_t word0, uint32_t k)
{
	struct p3_cell *c = r->next, *next = c + k;
	FAULT_POINT("lane.filled");
	p3_ring_clear_dirty(r, k);
	r->pos += k;
	if (p3_unlikely(!(r->pos & (P3_BASE_CELLS - 1))))
		next = r->cells; /* for prefetches: the ring is not open there */
	r->next = next;
	FAULT_POINT("lane.cleared");
	p3_release(&c->w[0], word0 | r->valid); /* LANE.1: as in p3_ring_publish */
	FAULT_POINT("lane.published");
}

/* Do as p3_ring_run() in a full ring. */
static P3_HOT void p3_ring_run_full(struct p3_ring_tx *r, uint64_t word0, uint32_t k)
{
	struct p3_cell *c = r->next;
	uint64_t end = r->pos + k;
	FAULT_POINT("lane.filled");
	p3_ring_clear_full(r, k);
	r->pos = end;
	r->next = c + k;
	FAULT_POINT("lane.cleared");
	p3_release(&c->w[0], word0 | r->valid); /* LANE.1: as in p3_ring_publish */
	if (k == 1)
		p3_set(&c[2].w[0], 0);
	r->cleared = (uint32_t)end + (k == 1);
	p3_own_soon(&c[k + 6]);
	FAULT_POINT("lane.published");
	if (k == 1)
		return;
	p3_own_soon(&c[k + 7]);
	p3_ring_run_more(r, k);
}

/* The same with more than one cell: it is one function for all callers. */
P3_PATH
static __attribute__((noinline, unused)) void p3_ring_run_longer(
	struct p3_ring_tx *r, uint64_t word0, uint32_t k)
{
	p3_ring_run_full(r, word0, k);
}

/* Do as p3_ring_publish() with a message of k cells in an open ring, which stays open. */
static P3_HOT void p3_ring_run(struct p3_ring_tx *r, uint64_t word0, uint32_t k)
{
	if (r->n > P3_BASE_CELLS && k == 1)
		p3_ring_run_full(r, word0, 1);
	else if (r->n > P3_BASE_CELLS)
		p3_ring_run_longer(r, word0, k);
	else
		p3_ring_run_base(r, word0, k);
}

/* Return the cell of a position at most a lap ahead. */
static inline struct p3_cell *p3_ring_cell(const struct p3_ring_rx *r, uint64_t pos)
{
	return r->next - (r->pos & (r->n - 1)) + (pos & (r->n - 1));
}

/* Return the header cell at pos, or NULL if none is there yet.  pos must be where the
 * headers before it lead. */
static P3_HOT struct p3_cell *p3_ring_peek_at(
	const struct p3_ring_rx *r, uint64_t pos, uint64_t *word0_out)
{
	struct p3_cell *c = p3_ring_cell(r, pos);
	uint64_t w0 = p3_acquire(&c->w[0]); /* LANE.1 */
	if (p3_unlikely((uint32_t)w0 != p3_ring_valid(pos, p3_log2(r->n))))
		return NULL;
	*word0_out = w0;
	return c;
}

/*
 * Consumer: return the next header cell, with its word 0 in *word0_out, or NULL.  The
 * words are in shared memory: copy each once.
 */
static P3_HOT struct p3_cell *p3_ring_peek(
	const struct p3_ring_rx *r, uint64_t *word0_out)
{
	uint64_t w0 = p3_acquire(&r->next->w[0]); /* LANE.1 */
	if (p3_unlikely((uint32_t)w0 != (uint32_t)r->usual))
		return NULL;
	*word0_out = w0;
	return r->next;
}

/* Return true if a header is there. */
static P3_HOT bool p3_ring_any(const struct p3_ring_rx *r)
{
	return (uint32_t)p3_get(&r->next->w[0]) == (uint32_t)r->usual;
}

/*
 * A consumer that lags behind prefetches cells before it reaches them, since each costs
 * as much as its message otherwise.  But the prefetch of a cell that is not filled yet
 * takes the line from the producer, which then waits for it.  So the consumer
 * prefetches only cells that are most likely filled, judged by the number that it took
 * at its last visit.
 */
#define P3_RING_AHEAD 8u

static inline void p3_ring_ask_at(const struct p3_ring_rx *r, uint32_t ahead)
{
	if (r->pos + ahead < r->sure)
		p3_read_soon(p3_ring_cell(r, r->pos + ahead));
}

/* Prefetch the first cells when the consumer comes back to this lane. */
static inline void p3_ring_ask_some(const struct p3_ring_rx *r)
{
	for (uint32_t i = 1; i < P3_RING_AHEAD && r->pos + i < r->sure; i++)
		p3_ring_ask_at(r, i);
}

/* Expect this number of filled cells at the next visit. */
static inline void p3_ring_expect(struct p3_ring_rx *r, uint64_t cells)
{
	r->sure = r->pos + cells;
}

/* Prefetch the next header; p3_ring_ask_more then prefetches the cell behind a filled
 * one. */
static inline void p3_ring_ask(const struct p3_ring_rx *r)
{
	p3_read_soon(r->next);
}

static inline void p3_ring_ask_more(const struct p3_ring_rx *r)
{
	uint64_t w0 = p3_get(&r->next->w[0]);
	if (p3_without(P3_PREFETCHES))
		return;
	if (p3_likely((uint32_t)w0 == (uint32_t)r->usual) && p3_word0_ncells(w0) > 1)
		p3_read_soon(&r->next[1]);
}

/* Return true if k is a possible count of cells in a header at the current position. */
static inline bool p3_ring_sane(const struct p3_ring_rx *r, uint32_t kind, uint32_t k)
{
	uint32_t left = r->n - (uint32_t)(r->pos & (r->n - 1));
	if (kind == P3_KIND_PAD)
		return k == left && k < p3_ring_most(r->n);
	return k >= 1 && k <= left && k <= p3_ring_most(r->n);
}

static inline void p3_ring_pay(struct p3_ring_rx *r)
{
	r->given = (uint32_t)r->pos;
	p3_release(r->credit, r->pos); /* LANE.2 */
}

/* Do what is due at this position: write the credit, and begin the next lap at the
 * ring's end. */
static P3_HOT void p3_ring_turn_here(struct p3_ring_rx *r)
{
	FAULT_POINT("credit.due");
	if (!(r->pos & (r->n - 1))) {
		r->next -= r->n;
		r->usual = r->usual >> 32 << 32 | p3_ring_valid(r->pos, p3_log2(r->n));
	}
	r->due = ((uint32_t)r->pos & -r->share) + r->share;
	p3_ring_pay(r);
}

static __attribute__((noinline, unused)) void p3_ring_turn(struct p3_ring_rx *r)
{
	p3_ring_turn_here(r);
}

/* Go on behind a message of k cells.  Return true if p3_ring_turn() is due. */
static inline bool p3_ring_step(struct p3_ring_rx *r, uint32_t k)
{
	r->pos += k;
	r->next += k;
	return (int32_t)((uint32_t)r->pos - r->due) >= 0;
}

/* Take a message of k cells.  Give its cells back lazily: write the credit only at each
 * eighth of the ring (or half: p3_ring_pay_late()). */
static inline void p3_ring_take(struct p3_ring_rx *r, uint32_t k)
{
	if (p3_unlikely(p3_ring_step(r, k)))
		p3_ring_turn(r);
}

/* Write the whole credit.  A consumer that leaves the lane may not come back soon, and
 * the producer would wait for cells that seem not to be taken. */
static inline void p3_ring_give(struct p3_ring_rx *r)
{
	if (r->given == (uint32_t)r->pos)
		return;
	p3_ring_pay(r);
	FAULT_POINT("credit.given");
}

static inline void p3_ring_take_now(struct p3_ring_rx *r, uint32_t k)
{
	p3_ring_take(r, k);
	p3_ring_give(r);
}

#endif
