/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of lane.h, one side at a time; test_lane_torture.c runs both at once. */
#include <stdlib.h>
#include <string.h>

#include "shm/lane.h"
#include "unit/torture.h"
#include "unit/rigs.h"

#define MOST_CELLS 1024u
#define KIND       7
#define PLAIN      99 /* payload that resembles no header */

struct rig {
	struct p3_cell cells[MOST_CELLS];
	p3_a64 credit;
	struct p3_ring_tx tx;
	struct p3_ring_rx rx;
};

static const uint32_t sizes[] = {8, 16, 64, MOST_CELLS};

static struct rig *rig_new(uint32_t n)
{
	struct rig *r =
		aligned_alloc(P3_LINE, (sizeof *r + P3_LINE - 1) & ~(P3_LINE - 1ul));
	assert_non_null(r);
	memset(r, 0xff, sizeof *r);
	p3_ring_rx_init(&r->rx, r->cells, n, &r->credit, p3_word0(KIND, 0, 1));
	p3_ring_tx_init(&r->tx, r->cells, n, &r->credit);
	return r;
}

static void rig_free(struct rig *r)
{
	free(r);
}

/* Return the word that would be a header at this cell this number of laps after pos. */
static uint64_t imitation(const struct rig *r, uint64_t pos, int laps)
{
	uint64_t at = pos + (uint64_t)(int64_t)laps * r->tx.n;
	return p3_word0(KIND, 0, 1) | p3_ring_valid(at, r->tx.log2n);
}

static bool opens; /* the producer opens its ring after each message */

/* Begin and publish as a producer does that opens its ring. */
static struct p3_cell *begin(struct rig *r, uint32_t k)
{
	bool runs = p3_ring_runs(&r->tx, k) || (opens && p3_ring_reopen(&r->tx, k));
	return runs ? r->tx.next : p3_ring_begin(&r->tx, k);
}

static void publish(struct rig *r, uint64_t word0, uint32_t k)
{
	if (p3_ring_runs(&r->tx, k))
		p3_ring_run(&r->tx, word0, k);
	else
		p3_ring_publish(&r->tx, word0, k);
	if (opens && !r->tx.until)
		p3_ring_open(&r->tx);
}

/* Send k cells whose payload is one kind of imitation, or tag. */
static void send_like(struct rig *r, uint32_t k, uint64_t tag, int laps)
{
	struct p3_cell *c = begin(r, k);
	for (uint32_t i = 1; i < 8 * k; i++) {
		uint64_t word = tag + i;
		if (laps != PLAIN)
			word = imitation(r, r->tx.pos + i / 8, laps);
		p3_set(&c[i / 8].w[i % 8], word);
	}
	publish(r, p3_word0(KIND, tag & 0xff, k), k);
}

static void send(struct rig *r, uint32_t k, uint64_t tag)
{
	assert_true(p3_ring_room(&r->tx, k));
	send_like(r, k, tag, PLAIN);
}

/* Return the next message, after taking a pad before it. */
static struct p3_cell *peek_message(struct rig *r, uint64_t *w0)
{
	struct p3_cell *c = p3_ring_peek(&r->rx, w0);
	if (!c || p3_word0_kind(*w0) != P3_KIND_PAD)
		return c;
	assert_true(p3_ring_sane(&r->rx, P3_KIND_PAD, p3_word0_ncells(*w0)));
	p3_ring_take(&r->rx, p3_word0_ncells(*w0));
	assert_int_equal(r->rx.pos & (r->rx.n - 1), 0);
	return p3_ring_peek(&r->rx, w0);
}

static void receive(struct rig *r, uint32_t k, uint64_t tag)
{
	uint64_t w0 = 0;
	struct p3_cell *c = peek_message(r, &w0);
	assert_non_null(c);
	assert_int_equal(p3_word0_kind(w0), KIND);
	assert_int_equal(p3_word0_flags(w0), tag & 0xff);
	assert_int_equal(p3_word0_ncells(w0), k);
	assert_true(p3_ring_sane(&r->rx, KIND, k));
	for (uint32_t i = 1; i < 8 * k; i++)
		assert_int_equal(p3_get(&c[i / 8].w[i % 8]), tag + i);
	p3_ring_take(&r->rx, k);
}

static void assert_empty(struct rig *r)
{
	uint64_t w0 = 0;
	assert_null(peek_message(r, &w0));
}

CASE(lane_word0_keeps_kind_flags_and_cells)
{
	uint64_t w0 = p3_word0(0xab, 0xcd, 0x1234);
	assert_int_equal((uint32_t)w0, 0);
	w0 |= 0xffffffff;
	assert_int_equal(p3_word0_kind(w0), 0xab);
	assert_int_equal(p3_word0_flags(w0), 0xcd);
	assert_int_equal(p3_word0_ncells(w0), 0x1234);
}

CASE(lane_starts_two_laps_below_the_wrap_of_validity)
{
	for (EACH_SIZE(i)) {
		uint32_t n = sizes[i], log2n = p3_log2(n);
		uint64_t start = p3_ring_start(n);
		assert_int_equal(1u << log2n, n);
		assert_int_equal(start % n, 0);
		assert_int_equal(p3_ring_valid(start, log2n), 0xfffffffd);
		assert_int_equal(p3_ring_valid(start + n, log2n), 0xffffffff);
		assert_int_equal(p3_ring_valid(start + 2ull * n, log2n), 1);
	}
}

CASE(lane_validity_is_odd_and_new_in_each_lap)
{
	uint64_t start = p3_ring_start(8);
	for (uint64_t lap = 0; lap < 8; lap++) {
		uint32_t valid = p3_ring_valid(start + lap * 8, 3);
		assert_int_equal(valid & 1, 1);
		assert_int_equal(p3_ring_valid(start + lap * 8 + 7, 3), valid);
		assert_int_not_equal(p3_ring_valid(start + lap * 8 + 8, 3), valid);
	}
}

RIG_CASE(lane_is_empty_at_first_whatever_the_memory_held, 64)
{
	for (uint32_t i = 0; i < 64; i++)
		p3_set(&r->cells[i].w[0], imitation(r, r->rx.pos, 0));
	p3_ring_tx_init(&r->tx, r->cells, 64, &r->credit);
	assert_empty(r);
	send(r, 1, 3);
	receive(r, 1, 3);
	assert_empty(r);
}

RIG_CASE(lane_is_empty_over_zero_pages_in_every_lap, 8)
{
	memset(r->cells, 0, sizeof r->cells);
	for (int i = 0; i < 5 * 8; i++) {
		assert_empty(r);
		p3_ring_take(&r->rx, 1);
	}
}

RIGS_CASE(lane_delivers_every_size_at_every_offset)
{
	for (uint32_t k = 1; k <= p3_ring_most(r->tx.n); k++) {
		for (uint32_t cells = 0; cells < r->tx.n + k; cells += k) {
			send(r, k, cells);
			receive(r, k, cells);
			assert_empty(r);
		}
	}
	assert_true(r->tx.pos - p3_ring_start(r->tx.n) > r->tx.n);
	assert_int_equal(r->tx.pos, r->rx.pos);
}

RIGS_CASE(lane_keeps_order_across_the_wrap_with_a_lagging_consumer)
{
	uint32_t most = p3_ring_most(r->tx.n);
	uint64_t sent = 0, got = 0;
	while (r->rx.pos < p3_ring_start(r->tx.n) + 5ull * r->tx.n) {
		uint32_t k = 1 + (uint32_t)(mix(sent) % most);
		while (!p3_ring_room(&r->tx, k)) {
			receive(r, 1 + (uint32_t)(mix(got) % most), got << 8);
			got++;
		}
		send(r, k, sent++ << 8);
	}
	for (; got < sent; got++)
		receive(r, 1 + (uint32_t)(mix(got) % most), got << 8);
	assert_empty(r);
}

static void pass_imitations(struct rig *r, uint32_t k, int laps)
{
	uint64_t w0 = 0;
	assert_true(p3_ring_room(&r->tx, k));
	send_like(r, k, 0, laps);
	assert_non_null(peek_message(r, &w0));
	assert_int_equal(p3_word0_ncells(w0), k);
	p3_ring_take(&r->rx, k);
	assert_empty(r);
}

/* The payload looks like headers of this lap, the last and the next two. */
CASE(lane_never_takes_payload_for_a_header)
{
	for (EACH_SIZE(i)) {
		for (int laps = -1; laps <= 2; laps++) {
			struct rig *r = rig_new(sizes[i]);
			uint64_t seed = (uint64_t)(laps + 10);
			while (r->tx.pos < p3_ring_start(r->tx.n) + 6ull * r->tx.n) {
				uint32_t k = 1 + dice(&seed, p3_ring_most(r->tx.n));
				pass_imitations(r, k, laps);
			}
			free(r);
		}
	}
}

/* There are several messages in the ring: k cells, then 1 cell, so headers wander. */
RIG_CASE(lane_never_takes_payload_for_a_header_behind_others, 16)
{
	uint64_t w0 = 0, seed = 1;
	while (r->tx.pos < p3_ring_start(16) + 16 * 40) {
		uint32_t k[3], sent = 0;
		while (sent < 3 && p3_ring_room(&r->tx, k[sent] = 1 + dice(&seed, 4)))
			send_like(r, k[sent++], 0, 1);
		assert_in_range(sent, 1, 3);
		for (uint32_t i = 0; i < sent; i++) {
			assert_non_null(peek_message(r, &w0));
			assert_int_equal(p3_word0_kind(w0), KIND);
			assert_int_equal(p3_word0_ncells(w0), k[i]);
			p3_ring_take_now(&r->rx, k[i]);
		}
		assert_empty(r);
	}
}

/* Several messages of one length follow each other, for up to two laps. */
CASE(lane_never_takes_payload_for_a_header_behind_equal_ones)
{
	for (EACH_SIZE(i)) {
		for (int laps = -1; laps <= 2; laps++) {
			struct rig *r = rig_new(sizes[i]);
			uint32_t n = r->tx.n, k = 1, left = 0, sent = 0;
			uint64_t seed = (uint64_t)(laps + 10);
			for (; sent < 5000; sent++, left--) {
				if (!left) {
					k = 1 + dice(&seed, n < 64 ? n / 4 : 4);
					left = 1 + dice(&seed, dice(&seed, 2)
								       ? 3
								       : 2 * n / k);
				}
				pass_imitations(r, k, laps);
			}
			free(r);
		}
	}
}

/* The last message of a lap is longer than all others. */
RIG_CASE(lane_never_takes_payload_for_a_header_behind_a_longer_one, 16)
{
	for (uint32_t i = 0; i < 16 + 6; i++)
		pass_imitations(r, 2, 1);
	pass_imitations(r, 4, 1);
	for (uint32_t i = 0; i < 16; i++)
		pass_imitations(r, 2, 1);
}

RIG_CASE(lane_shows_nothing_of_an_unpublished_message, 16)
{
	for (int i = 0; i < 100; i++) {
		assert_true(p3_ring_room(&r->tx, 4));
		struct p3_cell *c = begin(r, 4);
		assert_empty(r);
		for (uint32_t w = 1; w < 32; w++) {
			p3_set(&c[w / 8].w[w % 8], imitation(r, r->tx.pos + w / 8, 0));
			assert_empty(r);
		}
		publish(r, p3_word0(KIND, 0, 4), 4);
		uint64_t w0 = 0;
		assert_non_null(peek_message(r, &w0));
		p3_ring_take(&r->rx, 4);
	}
}

/* The word of the next header holds another lap's value or half a value. */
RIG_CASE(lane_takes_the_validity_of_this_lap_only, 16)
{
	for (uint32_t i = 0; i < 40; i++) {
		p3_a64 *word = &p3_cell_at(r->cells, r->rx.pos, 16)->w[0];
		uint64_t w0 = 0, valid = imitation(r, r->rx.pos, 0);
		const uint64_t wrong[] = {imitation(r, r->rx.pos, -1),
			imitation(r, r->rx.pos, 1), valid & ~UINT64_C(1), valid << 32,
			UINT64_MAX << 32 | 1, valid ^ 0x80000000u};
		for (size_t j = 0; j < sizeof wrong / sizeof wrong[0]; j++) {
			if ((uint32_t)wrong[j] == (uint32_t)valid)
				continue; /* 1 is valid in one lap */
			p3_set(word, wrong[j]);
			assert_null(p3_ring_peek(&r->rx, &w0));
		}
		p3_set(word, valid);
		assert_non_null(p3_ring_peek(&r->rx, &w0));
		assert_int_equal(w0, valid);
		p3_ring_take(&r->rx, 1);
	}
}

CASE(lane_pads_the_end_when_a_message_does_not_fit)
{
	for (uint32_t left = 1; left < 4; left++) {
		struct rig *r = rig_new(16);
		for (uint32_t i = 0; i < 16 - left; i++) {
			send(r, 1, i);
			receive(r, 1, i);
		}
		assert_int_equal(p3_ring_pad(&r->tx, left), 0);
		assert_int_equal(p3_ring_pad(&r->tx, 4), left);
		send(r, 4, 99);
		uint64_t w0 = 0;
		assert_non_null(p3_ring_peek(&r->rx, &w0));
		assert_int_equal(p3_word0_kind(w0), P3_KIND_PAD);
		assert_int_equal(p3_word0_ncells(w0), left);
		assert_true(p3_ring_sane(&r->rx, P3_KIND_PAD, left));
		receive(r, 4, 99);
		assert_int_equal(r->rx.pos, p3_ring_start(16) + 20);
		free(r);
	}
}

RIG_CASE(lane_counts_the_pad_as_used, 16)
{
	for (uint32_t i = 0; i < 13; i++)
		send(r, 1, i);
	for (uint32_t i = 0; i < 4; i++)
		receive(r, 1, i);
	/* 7 cells are free, 3 of them at the end: 3 of pad and 4 would be all. */
	assert_true(p3_ring_room(&r->tx, 3));
	assert_false(p3_ring_room(&r->tx, 4));
	receive(r, 1, 4);
	receive(r, 1, 5);
	send(r, 4, 13);
	assert_true(p3_ring_fits(&r->tx, 1));
	assert_false(p3_ring_fits(&r->tx, 2));
	for (uint32_t i = 6; i < 13; i++)
		receive(r, 1, i);
	receive(r, 4, 13);
}

RIGS_CASE(lane_has_no_room_when_full_and_keeps_one_cell)
{
	uint32_t n = r->tx.n, sent = 0;
	while (p3_ring_room(&r->tx, 1))
		send(r, 1, 1000 + sent++);
	assert_int_equal(sent, n - 1);
	assert_int_equal(p3_get(&r->cells[n - 1].w[0]), 0);
	for (uint32_t m = 0; m < sent; m++)
		receive(r, 1, 1000 + m);
	assert_empty(r);
	assert_true(p3_ring_room(&r->tx, p3_ring_most(n)));
}

static p3_a64 *word0(struct rig *r, uint64_t pos)
{
	return &p3_cell_at(r->cells, pos, r->tx.n)->w[0];
}

/* The cell behind the message is zeroed, unless a lap begins there, and mostly also that
 * behind the next message, for the case that it has one cell. */
RIG_CASE(lane_zeroes_the_cell_after_a_message_before_it_is_valid, 16)
{
	uint32_t ahead = 0;
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t k = i % 3 ? 1 : 2;
		bool ends = (r->tx.pos + k) % 16 == 0;
		if (k == 2 && !ends)
			p3_set(word0(r, r->tx.pos + k), UINT64_MAX);
		p3_set(word0(r, r->tx.pos + k + 1), UINT64_MAX);
		send(r, k, i);
		if (!ends)
			assert_int_equal(p3_get(word0(r, r->tx.pos)), 0);
		ahead += p3_get(word0(r, r->tx.pos + 1)) == 0;
		receive(r, k, i);
	}
	assert_true(ahead > 32);
}

/* No cell that the consumer has not read is zeroed ahead. */
RIG_CASE(lane_zeroes_no_cell_that_is_not_read, 16)
{
	for (uint32_t i = 0; i < 15; i++)
		send(r, 1, i);
	assert_int_not_equal(p3_get(word0(r, r->tx.pos + 1)), 0);
	for (uint32_t i = 0; i < 15; i++)
		receive(r, 1, i);
}

RIG_CASE(lane_credit_is_written_once_an_eighth_is_owed, 64)
{
	uint64_t start = p3_ring_start(64);
	for (uint32_t i = 1; i <= 16; i++) {
		send(r, 1, i);
		receive(r, 1, i);
		assert_int_equal(p3_get(&r->credit), start + i / 8 * 8);
	}
	send(r, 1, 5);
	p3_ring_take_now(&r->rx, 1);
	assert_int_equal(p3_get(&r->credit), start + 17);
}

/* Return the credit after this number of messages of one cell through a base ring that
 * pays late. */
static uint64_t late_credit(uint32_t messages, bool given)
{
	struct rig *r = rig_new(P3_BASE_CELLS);
	p3_ring_pay_late(&r->rx);
	for (uint32_t i = 1; i <= messages; i++) {
		send(r, 1, i);
		receive(r, 1, i);
	}
	if (given)
		p3_ring_give(&r->rx);
	uint64_t credit = p3_get(&r->credit) - p3_ring_start(P3_BASE_CELLS);
	free(r);
	return credit;
}

CASE(lane_late_credit_is_written_at_each_half_and_when_given)
{
	const uint32_t half = P3_BASE_CELLS / 2;
	for (uint32_t i = 0; i < 8 * half; i++) {
		assert_int_equal(late_credit(i, false), i / half * half);
		assert_int_equal(late_credit(i, true), i);
	}
}

/* A base ring takes messages of one cell and of two, lap after lap, without the general
 * functions; but none while the ring is shut or full, or over its end. */
RIG_CASE(lane_opens_again_at_its_end, P3_BASE_CELLS)
{
	assert_false(p3_ring_reopen(&r->tx, 2)); /* shut */
	p3_ring_open(&r->tx);
	for (uint32_t i = 0; i < P3_BASE_CELLS - 1; i++) {
		assert_true(p3_ring_runs(&r->tx, 2) || p3_ring_reopen(&r->tx, 2));
		assert_ptr_equal(
			r->tx.next, p3_cell_at(r->tx.cells, r->tx.pos, P3_BASE_CELLS));
		send(r, 2, i);
		receive(r, 2, i);
	}
	for (uint32_t i = 0; i < 3 * P3_BASE_CELLS + 1; i++) {
		assert_true(p3_ring_runs(&r->tx, 1) || p3_ring_reopen(&r->tx, 1));
		send(r, 1, i);
		receive(r, 1, i);
	}
	assert_false(p3_ring_runs(&r->tx, 2) || p3_ring_reopen(&r->tx, 2)); /* its end */
	send(r, 1, 0);
	receive(r, 1, 0);
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(p3_ring_runs(&r->tx, 2) || p3_ring_reopen(&r->tx, 2));
		send_like(r, 2, i, PLAIN); /* the last one fills the ring */
	}
	assert_false(p3_ring_runs(&r->tx, 2) || p3_ring_reopen(&r->tx, 2)); /* full */
	for (uint32_t i = 0; i < 4; i++)
		receive(r, 2, i);
	assert_empty(r);
}

/* A wire carries the messages of an open ring that is full to a ring of the same length
 * at the other node, whose consumer has taken none yet. */
CASE(lane_carried_takes_what_an_open_ring_sends)
{
	for (uint32_t k = 1; k <= 2; k++) {
		struct rig *out = rig_new(P3_BASE_CELLS), *in = rig_new(P3_BASE_CELLS);
		for (uint32_t i = 0; i < P3_BASE_CELLS; i += k) {
			assert_true(
				p3_ring_room(&out->tx, k) || p3_ring_runs(&out->tx, k));
			send_like(out, k, i, PLAIN);
			p3_ring_open(&out->tx);
			assert_true(
				p3_ring_room(&in->tx, k) || p3_ring_fills(&in->tx, k));
			send_like(in, k, i, PLAIN);
		}
		assert_false(p3_ring_runs(&out->tx, 1) || p3_ring_room(&out->tx, 1));
		assert_false(p3_ring_room(&in->tx, 1) || p3_ring_fills(&in->tx, 1));
		for (uint32_t i = 0; i < P3_BASE_CELLS; i += k)
			receive(in, k, i);
		assert_empty(in);
		free(out);
		free(in);
	}
}

/* Where all messages are of one length, no message writes to the cell behind it: a header
 * of the lap before is there.  In a full ring this begins when a lap is full of them, and
 * is so for messages of two cells or more. */
static void leave_the_next_header_alone(uint32_t n, uint32_t k)
{
	struct rig *r = rig_new(n);
	if (n > P3_BASE_CELLS)
		send(r, 1, 0), receive(r, 1, 0);
	for (uint32_t i = 0; i < 5 * n; i += k) {
		p3_a64 *next = word0(r, r->tx.pos + k);
		uint64_t before = p3_get(next);
		bool pads = p3_ring_pad(&r->tx, k);
		send(r, k, i);
		if (i >= (n > P3_BASE_CELLS ? 2 * n : n) && !pads)
			assert_int_equal(p3_get(next), before);
		receive(r, k, i);
		assert_empty(r);
	}
	free(r);
}

CASE(lane_leaves_the_next_header_alone)
{
	for (uint32_t k = 1; k <= 2; k++)
		leave_the_next_header_alone(P3_BASE_CELLS, k);
	for (EACH_SIZE(i))
		for (uint32_t k = 2; sizes[i] > P3_BASE_CELLS && k <= 4; k++)
			leave_the_next_header_alone(sizes[i], k);
}

/* Credit that is owed but not written never stops the producer of the largest message. */
RIGS_CASE(lane_lazy_credit_leaves_room_for_the_largest)
{
	uint32_t n = r->tx.n, most = p3_ring_most(n);
	for (uint32_t j = 0; j < 3 * n; j++) {
		assert_true(p3_ring_room(&r->tx, most));
		send(r, 1, j);
		receive(r, 1, j);
	}
}

RIG_CASE(lane_looks_at_the_credit_only_when_it_must, 64)
{
	for (uint32_t i = 0; i < 16; i++) {
		send(r, 1, i);
		receive(r, 1, i);
	}
	assert_true(p3_ring_room(&r->tx, 16));
	assert_int_equal(r->tx.seen, p3_ring_start(64));
	while (r->tx.seen == p3_ring_start(64))
		send(r, 1, 0);
	assert_int_equal(r->tx.pos, p3_ring_start(64) + 64);
	assert_int_equal(r->tx.seen, p3_ring_start(64) + 16);
}

static void lie(struct rig *r, uint64_t credit)
{
	uint64_t seen = r->tx.seen, pos = r->tx.pos;
	p3_set(&r->credit, credit);
	for (uint32_t k = 1; k <= p3_ring_most(r->tx.n); k++)
		assert_false(p3_ring_room(&r->tx, k));
	assert_int_equal(r->tx.seen, seen);
	assert_int_equal(r->tx.pos, pos);
}

static void lie_much(struct rig *r)
{
	uint64_t pos = r->tx.pos, seen = r->tx.seen, n = r->tx.n, seed = 42;
	const uint64_t lies[] = {seen - 1, seen - n, pos + 1, pos + n, pos + (n << 32), 0,
		1, UINT64_MAX, UINT64_MAX / 2, (uint64_t)INT64_MIN,
		seen ^ (uint64_t)1 << 63, (uint32_t)seen - n, seen + ((uint64_t)1 << 32),
		seen - ((uint64_t)1 << 32)};
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
		lie(r, lies[i]);
	for (int i = 0; i < 1000; i++) {
		uint64_t garbage = mix(++seed);
		if (garbage - seen > pos - seen)
			lie(r, garbage);
	}
}

RIGS_CASE(lane_lying_credit_makes_no_room)
{
	uint32_t sent = 0;
	for (; p3_ring_room(&r->tx, 1); sent++)
		send(r, 1, sent);
	lie_much(r);
	for (uint32_t got = 0; got < sent; got++)
		receive(r, 1, got);
	p3_ring_take_now(&r->rx, 0); /* the credit is true again */
	assert_true(p3_ring_room(&r->tx, p3_ring_most(r->tx.n)));
	while (p3_ring_room(&r->tx, 1))
		send(r, 1, 0);
	lie_much(r);
}

RIG_CASE(lane_credit_does_not_go_back, 8)
{
	for (int i = 0; i < 7; i++)
		send(r, 1, 0);
	p3_set(&r->credit, r->tx.pos - 3);
	assert_true(p3_ring_room(&r->tx, 2));
	assert_int_equal(r->tx.seen, r->tx.pos - 3);
	send(r, 1, 0);
	send(r, 1, 0);
	send(r, 1, 0);
	send(r, 1, 0);
	lie(r, p3_ring_start(8) + 1);
	lie(r, r->tx.seen - 1);
}

RIG_CASE(lane_cell_counts_out_of_range_are_not_sane, 16)
{
	assert_true(p3_ring_sane(&r->rx, KIND, 1));
	assert_true(p3_ring_sane(&r->rx, KIND, 5));
	assert_false(p3_ring_sane(&r->rx, KIND, 0));
	assert_false(p3_ring_sane(&r->rx, KIND, 6));
	assert_false(p3_ring_sane(&r->rx, KIND, 16));
	assert_false(p3_ring_sane(&r->rx, KIND, 0xffff));
	assert_false(p3_ring_sane(&r->rx, P3_KIND_PAD, 0));
	assert_false(p3_ring_sane(&r->rx, P3_KIND_PAD, 1));
	assert_false(p3_ring_sane(&r->rx, P3_KIND_PAD, 16));
	p3_ring_take(&r->rx, 13); /* three cells are left */
	assert_true(p3_ring_sane(&r->rx, KIND, 3));
	assert_false(p3_ring_sane(&r->rx, KIND, 4));
	assert_true(p3_ring_sane(&r->rx, P3_KIND_PAD, 3));
	assert_false(p3_ring_sane(&r->rx, P3_KIND_PAD, 2));
	assert_false(p3_ring_sane(&r->rx, P3_KIND_PAD, 4));
}

CASE(a_copy_past_the_cache_is_exact)
{
	enum { MOST = 5 * P3_CELL };
	static _Alignas(P3_CELL) char to[MOST + 1];
	char from[MOST + 16];
	for (unsigned i = 0; i < sizeof from; i++)
		from[i] = (char)(i * 7 + 1);
	for (unsigned len = 0; len <= MOST; len++)
		for (unsigned at = 0; at < 16; at += 5) {
			memset(to, '#', sizeof to);
			p3_copy_past(to, from + at, len);
			assert_memory_equal(to, from + at, len);
			assert_int_equal(to[len], '#');
		}
}

int main(void)
{
	int failed = cases_run();
	opens = true;
	return failed + cases_run();
}
