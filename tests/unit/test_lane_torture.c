/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both sides of a lane at once: as threads, as processes that map each other's segment
 * read-only, and with a producer that is killed.  The payload imitates the words that
 * the consumer looks for: headers of this lap and the next, and counters.
 */
#include <stdlib.h>
#include <string.h>

#include <signal.h>

#include "shm/lane.h"
#include "unit/torture.h"
#include "support/cases.h"

#define MOST_CELLS 1024u
#define KIND_LAST  255u
#define FOREVER    3600000000000u

static const uint32_t sizes[] = {8, 16, 64, MOST_CELLS};

_Static_assert(MOST_CELLS * sizeof(struct p3_cell) <= PAIR_USED, "it fits");

#define NSIZES ((unsigned)(sizeof sizes / sizeof sizes[0]))

struct producer {
	struct p3_ring_tx ring;
	uint64_t until;
	struct verdict verdict;
};

struct consumer {
	struct p3_ring_rx ring;
	uint64_t count; /* messages received */
	bool ended;     /* the last message was received */
	struct verdict verdict;
};

/* Return the length of a message, which follows from its number as all its content
 * does. */
static uint32_t cells_of(uint64_t number, uint32_t n)
{
	uint64_t r = mix(number);
	uint32_t most = p3_ring_most(n), few = most < 3 ? most : 3;
	return 1 + (uint32_t)(r >> 8) % (r & 7 ? few : most);
}

static uint64_t header_of(uint64_t number, bool last, uint32_t k)
{
	uint32_t kind = last ? KIND_LAST : 1 + (uint32_t)(mix(number) >> 40) % 200;
	return p3_word0(kind, (uint32_t)number & 0xff, k);
}

/* Return word w of cell j of a message whose header is at pos. */
static uint64_t payload(uint64_t number, uint64_t pos, uint32_t j, uint32_t w, uint32_t n)
{
	uint64_t at = pos + j, word0 = p3_word0(1, 0, 1);
	switch (mix(number) >> 60 & 3) {
	case 0:
		return word0 | p3_ring_valid(at + n, p3_log2(n));
	case 1:
		return word0 | p3_ring_valid(at, p3_log2(n));
	case 2:
		return pos + 8 * j + w + 1;
	default:
		return mix(number << 12 ^ j << 3 ^ w);
	}
}

static bool produce(struct producer *p, uint64_t number, bool last)
{
	uint32_t n = p->ring.n, k = last ? 1 : cells_of(number, n);
	struct spin spin = {0, 0};
	while (!p3_ring_room(&p->ring, k))
		if (!SIDE_CHECK(&p->verdict, spin_on(&spin), number))
			return false;
	struct p3_cell *c = p3_ring_begin(&p->ring, k);
	for (uint32_t i = 1; i < 8 * k; i++)
		p3_set(&c[i / 8].w[i % 8], payload(number, p->ring.pos, i / 8, i % 8, n));
	p3_ring_publish(&p->ring, header_of(number, last, k), k);
	return true;
}

static void *run_producer(void *arg)
{
	struct producer *p = arg;
	for (uint64_t number = 0;; number++) {
		bool last = number % 64 == 63 && p3_now_ns() >= p->until;
		if (!produce(p, number, last) || last)
			return NULL;
	}
}

static bool is_message(struct consumer *c, const struct p3_cell *cell, uint64_t w0)
{
	uint64_t number = c->count, pos = c->ring.pos;
	uint32_t n = c->ring.n, k = p3_word0_ncells(w0);
	bool last = p3_word0_kind(w0) == KIND_LAST;
	uint64_t want = header_of(number, last, last ? 1 : cells_of(number, n));
	if (!SIDE_CHECK(&c->verdict, w0 >> 32 == want >> 32, number) ||
		!SIDE_CHECK(&c->verdict, p3_ring_sane(&c->ring, 1, k), number))
		return false;
	for (uint32_t i = 1; i < 8 * k; i++) {
		uint64_t word = p3_get(&cell[i / 8].w[i % 8]);
		want = payload(number, pos, i / 8, i % 8, n);
		if (!SIDE_CHECK(&c->verdict, word == want, number))
			return false;
	}
	c->ended = last;
	return true;
}

/* Take the pad or message at the consumer's position. */
static bool consume(struct consumer *c, const struct p3_cell *cell, uint64_t w0)
{
	uint32_t k = p3_word0_ncells(w0);
	if (p3_word0_kind(w0) == P3_KIND_PAD) {
		bool sane = p3_ring_sane(&c->ring, P3_KIND_PAD, k);
		p3_ring_take(&c->ring, k);
		return SIDE_CHECK(&c->verdict, sane, c->count);
	}
	if (!is_message(c, cell, w0))
		return false;
	if (mix(c->count++) & 7)
		p3_ring_take(&c->ring, k);
	else
		p3_ring_take_now(&c->ring, k);
	return true;
}

static void *run_consumer(void *arg)
{
	struct consumer *c = arg;
	struct spin spin = {0, 0};
	while (!c->ended) {
		uint64_t w0;
		struct p3_cell *cell = p3_ring_peek(&c->ring, &w0);
		if (cell && !consume(c, cell, w0))
			break;
		if (cell)
			spin = (struct spin){0, 0};
		else if (!SIDE_CHECK(&c->verdict, spin_on(&spin), c->count))
			break;
	}
	return NULL;
}

static void assert_all_came(const struct producer *p, const struct consumer *c)
{
	assert_side_is_well("consumer", &c->verdict);
	assert_side_is_well("producer", &p->verdict);
	assert_true(c->ended);
	assert_int_equal(c->ring.pos, p->ring.pos);
	assert_in_range(c->count, 64, UINT32_MAX);
}

CASE(lane_keeps_all_words_between_threads)
{
	struct p3_cell *cells = aligned_alloc(P3_LINE, PAIR_USED);
	static p3_a64 credit;
	assert_non_null(cells);
	for (unsigned i = 0; i < NSIZES; i++) {
		struct producer p = {.until = p3_now_ns() + torture_ns(NSIZES)};
		struct consumer c = {.count = 0};
		memset(cells, 0xff, PAIR_USED);
		p3_ring_rx_init(&c.ring, cells, sizes[i], &credit, 0);
		p3_ring_tx_init(&p.ring, cells, sizes[i], &credit);
		run_threads(2, (torture_side *const[]){run_producer, run_consumer},
			(void *const[]){&p, &c});
		assert_all_came(&p, &c);
	}
	free(cells);
}

/* The child's task. */
struct order {
	uint32_t n;
	uint64_t ns;
};

static int producer_process(struct pair *half)
{
	const struct order *order = half->arg;
	struct producer p = {.until = p3_now_ns() + order->ns};
	p3_ring_tx_init(&p.ring, half->own.base, order->n, half->peer);
	if (SIDE_CHECK(&p.verdict, pair_meet(half), 0))
		run_producer(&p);
	return side_status("producer", &p.verdict);
}

/* Start a child that produces; this process consumes. */
static pid_t start_producer(
	struct pair *half, struct consumer *c, uint32_t n, uint64_t ns)
{
	struct order order = {n, ns};
	pid_t pid = pair_start(half, p3_ring_start(n), producer_process, &order);
	*c = (struct consumer){.count = 0};
	p3_ring_rx_init(&c->ring, half->peer, n, half->own.base, 0);
	assert_true(pair_meet(half));
	return pid;
}

CASE(lane_keeps_all_words_between_processes)
{
	for (unsigned i = 0; i < NSIZES; i++) {
		struct pair half;
		struct consumer c;
		pid_t pid = start_producer(&half, &c, sizes[i], torture_ns(NSIZES));
		run_consumer(&c);
		assert_side_is_well("consumer", &c.verdict);
		assert_int_equal(wait_child(pid), 0);
		assert_in_range(c.count, 64, UINT32_MAX);
		pair_end(&half);
	}
}

/* After the producer's death the ring has whole messages, then nothing. */
CASE(lane_shows_whole_messages_when_the_producer_is_killed)
{
	uint64_t end = p3_now_ns() + torture_ns(2), seed = end;
	do {
		struct pair half;
		struct consumer c;
		uint64_t w0, stop = 1 + dice(&seed, 200);
		pid_t pid =
			start_producer(&half, &c, sizes[dice(&seed, NSIZES)], FOREVER);
		while (c.count < stop && !c.ended && !c.verdict.why) {
			struct p3_cell *cell = p3_ring_peek(&c.ring, &w0);
			if (!cell)
				sched_yield();
			else if (!consume(&c, cell, w0))
				break;
		}
		kill(pid, SIGKILL);
		assert_int_equal(wait_child(pid), 128 + SIGKILL);
		struct p3_cell *cell;
		while ((cell = p3_ring_peek(&c.ring, &w0)) && consume(&c, cell, w0))
			;
		assert_side_is_well("consumer", &c.verdict);
		pair_end(&half);
	} while (p3_now_ns() < end);
}
