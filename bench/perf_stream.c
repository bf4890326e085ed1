/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_stream - windows of messages in one direction; an empty put answers each window
 *
 * hdr_data is the sender's rank in the upper, the message's number in the lower half.
 * The receiver takes the event of every message, and adds the numbers up.
 */
#include "perf_data.h"

enum { RANK_SHIFT = 40 };

static inline void send_window(struct perf_node *n, uint64_t base)
{
	uint64_t hdr = (uint64_t)n->b->rank << RANK_SHIFT | n->message * n->window;
	perf_stamp(n);
	for (uint64_t i = 0, slot = 0; i < n->window; i++) {
		perf_put(n, base + slot * n->pitch, hdr + i);
		slot = slot + 1 == n->slots ? 0 : slot + 1;
	}
	if (!n->silent)
		bench_await(&n->w, PTL_EVENT_SEND_END, (n->message + 1) * n->window);
	bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
}

/* Return the sum of the numbers of window k. */
static uint64_t sum_of(const struct perf_node *n, uint64_t k)
{
	uint64_t w = n->window;
	return k * w * w + w * (w - 1) / 2;
}

static void check_window(
	struct perf_node *n, const char *rx, unsigned sender, uint64_t hdr_sum)
{
	uint64_t used = n->slots < n->window ? n->slots : n->window;
	for (uint64_t i = 0; i < used; i++)
		perf_check_stamp(n, rx + i * n->pitch, sender);
	if (hdr_sum != sum_of(n, n->message))
		bench_wrong(n->b,
			"%s of %llu bytes, window %llu: numbers in hdr_data add up to "
			"%llu; expected %llu; messages are lost, or come twice",
			perf_test_name[n->test], (unsigned long long)n->length,
			(unsigned long long)n->message, (unsigned long long)hdr_sum,
			(unsigned long long)sum_of(n, n->message));
}

static inline void take_window(struct perf_node *n)
{
	uint64_t sum = 0, mask = ((uint64_t)1 << RANK_SHIFT) - 1;
	for (unsigned i = 0; i < n->window; i++) {
		bench_take(&n->w);
		sum += n->w.last.hdr_data & mask;
	}
	check_window(n, n->rx, n->b->rank ^ 1, sum);
	perf_tell(n, n->peer, 0);
}

/* ---- nto1 ---- */

static uint64_t base_of(const struct perf_node *n, unsigned sender)
{
	return n->test == PERF_NTO1 ? sender * n->slots * n->pitch : 0;
}

static void window_is_full(struct perf_node *n, unsigned rank)
{
	struct perf_sender *s = &n->sender[rank];
	n->message = s->messages / n->window - 1;
	check_window(n, n->rx + base_of(n, rank), rank, s->hdr_sum);
	s->hdr_sum = 0;
	perf_tell(n, bench_id(n->b, rank), 0);
}

static void take_from_any(struct perf_node *n)
{
	bench_take(&n->w);
	uint64_t hdr = n->w.last.hdr_data;
	unsigned rank = (unsigned)(hdr >> RANK_SHIFT);
	if (rank == 0 || rank >= n->b->size)
		bench_die(1, "nto1: hdr_data names rank %u; expected 1 to %u", rank,
			n->b->size - 1);
	n->sender[rank].hdr_sum += hdr & (((uint64_t)1 << RANK_SHIFT) - 1);
	if (++n->sender[rank].messages % n->window == 0)
		window_is_full(n, rank);
}

static void take_from_all(struct perf_node *n, uint64_t count)
{
	uint64_t windows = n->told + count;
	for (uint64_t i = perf_messages(n, count); i; i--)
		take_from_any(n);
	n->message = n->told = windows;
}

/* ---- */

void perf_stream_rounds(struct perf_node *n, uint64_t count)
{
	uint64_t base = base_of(n, n->b->rank), end = n->message + count;
	if (n->test == PERF_NTO1 && !n->first)
		take_from_all(n, count);
	for (; n->message < end; n->message++)
		if (n->first)
			send_window(n, base);
		else
			take_window(n);
}

void perf_stream_expect(struct perf_node *n)
{
	const char *test = perf_test_name[n->test];
	uint64_t sent = n->silent || !n->first ? 0 : n->message * n->window;
	uint64_t got = n->first ? n->message : perf_messages(n, n->message);
	bench_expect(n->b, &n->w, test, PTL_EVENT_PUT_END, got);
	bench_expect(n->b, &n->w, test, PTL_EVENT_SEND_END, sent);
}
