/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get, ack and bidir: one message at a time. */
#include "perf_data.h"

static inline void ping(struct perf_node *n)
{
	perf_stamp(n);
	perf_put(n, 0, 0);
	bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
	bench_await(&n->w, PTL_EVENT_SEND_END, n->message + 1);
	perf_check_stamp(n, n->rx, n->b->rank ^ 1);
}

static inline void pong(struct perf_node *n)
{
	bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
	perf_check_stamp(n, n->rx, n->b->rank ^ 1);
	perf_stamp(n);
	perf_put(n, 0, 0);
	bench_await(&n->w, PTL_EVENT_SEND_END, n->message + 1);
}

/* Exchange messages.  The peer can be one message ahead, not two: slots are used in
 * turn. */
static inline void exchange(struct perf_node *n)
{
	uint64_t slot = (n->message & 1) * n->pitch;
	perf_stamp(n);
	perf_put(n, slot, 0);
	bench_await(&n->w, PTL_EVENT_SEND_END, n->message + 1);
	bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
	perf_check_stamp(n, n->rx + slot, n->b->rank ^ 1);
}

/* Check the bytes of a get.  Each get starts a little further on, so each one fetches
 * other bytes. */
static inline void check_got(struct perf_node *n, uint64_t first, uint64_t seed)
{
	const uint64_t *rx = (const uint64_t *)n->rx;
	uint64_t w = perf_word(first, seed);
	if (n->full)
		perf_check_all(n, n->rx, first, seed);
	else if (n->length >= PERF_WORD) {
		perf_check_word(n, rx[0], w, 0);
		perf_check_word(n, rx[perf_last(n)],
			perf_word(first + perf_last(n), seed), perf_last(n));
	} else if (memcmp(rx, &w, n->length))
		perf_wrong(n, 0);
}

static inline void fetch(struct perf_node *n)
{
	uint64_t at = n->message % PERF_SHIFTS * 64, seed = n->full ? n->message : 0;
	if (n->full)
		bench_await(&n->w, PTL_EVENT_PUT_END, ++n->told);
	int rc = PtlGet(n->out, n->peer, PERF_PORTAL_GET, 0, BENCH_BITS, at);
	if (__builtin_expect(rc != PTL_OK, 0))
		bench_check(rc, "PtlGet");
	bench_await(&n->w, PTL_EVENT_REPLY_END, n->message + 1);
	check_got(n, at / PERF_WORD, seed);
}

static inline void serve(struct perf_node *n)
{
	if (n->full) {
		perf_fill(n->tx, n->length + PERF_SHIFTS * 64, n->message);
		perf_tell(n, n->peer, 0);
	}
	bench_await(&n->w, PTL_EVENT_GET_END, n->message + 1);
}

/* Put a message, and wait until its bytes are in the target's memory; in full rounds wait
 * also until the target has checked them. */
static inline void put_acked(struct perf_node *n)
{
	perf_stamp(n);
	perf_put_for_ack(n, n->message);
	bench_await(&n->w, PTL_EVENT_ACK, n->message + 1);
	bench_await(&n->w, PTL_EVENT_SEND_END, n->message + 1);
	if (n->full)
		bench_await(&n->w, PTL_EVENT_PUT_END, ++n->told);
}

/* Take an acknowledged put.  The ACK does not wait until the target takes the event, so
 * the target's queue may lose PUT_ENDs while its program is off its CPU; seen counts the
 * lost events, too. */
static inline void take_acked(struct perf_node *n)
{
	bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
	perf_check_word(n, n->w.last.hdr_data, n->w.seen[PTL_EVENT_PUT_END] - 1, 0);
	if (n->full) {
		perf_check_all(n, n->rx, 0, perf_stamp_of(n, n->b->rank ^ 1));
		perf_tell(n, n->peer, 0);
	}
}

#define REPEAT(n, end, what)                                                             \
	for (; (n)->message < (end); (n)->message++)                                     \
	what(n)

void perf_pair_rounds(struct perf_node *n, uint64_t count)
{
	uint64_t end = n->message + count;
	if (n->test == PERF_BIDIR)
		REPEAT(n, end, exchange);
	else if (n->test == PERF_PUT && n->first)
		REPEAT(n, end, ping);
	else if (n->test == PERF_PUT)
		REPEAT(n, end, pong);
	else if (n->test == PERF_ACK && n->first)
		REPEAT(n, end, put_acked);
	else if (n->test == PERF_ACK)
		REPEAT(n, end, take_acked);
	else if (n->first)
		REPEAT(n, end, fetch);
	else
		REPEAT(n, end, serve);
}
