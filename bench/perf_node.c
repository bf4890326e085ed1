/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of performance tests; begin and end of a test at one size. */
#include "perf_data.h"

enum { FULL_ROUNDS = 4, SLOT_BYTES = 64 << 10, QUEUE_LEAST = 256 };

/* ---- one test at one size ---- */

/* Return the number of slots of a window, at least two.  Together they have at most
 * SLOT_BYTES, unless two slots are longer. */
static uint64_t slots_of(const struct perf_node *n, uint64_t pitch)
{
	uint64_t fit = SLOT_BYTES / pitch;
	fit = fit < n->window ? fit : n->window;
	return fit < 2 ? 2 : fit;
}

static uint64_t pitch_of(uint64_t length)
{
	return (length + PERF_GUARD + 127) / 128 * 128;
}

static void guard_slots(struct perf_node *n)
{
	uint64_t sets = n->test == PERF_NTO1 && n->b->rank == 0 ? n->b->size : 1;
	for (uint64_t i = 0; i < n->slots * sets; i++)
		perf_guard(n->rx + i * n->pitch + n->length);
}

static bool takes_part(const struct perf_node *n, enum perf_test test)
{
	return test == PERF_NTO1 ? n->b->size > 1 : n->paired;
}

static void set_peer(struct perf_node *n)
{
	unsigned peer = n->test == PERF_NTO1 ? 0 : n->b->rank ^ 1;
	n->peer = bench_id(n->b, peer);
	n->first = n->test == PERF_NTO1 ? n->b->rank != 0 : n->b->rank % 2 == 0;
}

static void start_test(struct perf_node *n)
{
	bool events = !n->silent || !perf_is_stream(n->test);
	char *from = n->test == PERF_GET ? n->rx : n->tx;
	set_peer(n);
	guard_slots(n);
	memset(n->sender, 0, n->b->size * sizeof *n->sender);
	n->out = bench_bind(n->b, from, n->length, events ? n->w.eq : PTL_EQ_NONE);
	bench_watch_reset(&n->w, n->first              ? BENCH_LOSE_NONE
				 : n->test == PERF_GET ? PTL_EVENT_GET_END
				 : n->test == PERF_ACK ? PTL_EVENT_PUT_END
						       : BENCH_LOSE_NONE);
}

void perf_begin(struct perf_node *n, enum perf_test test, uint64_t length)
{
	n->test = test;
	n->length = length;
	n->pitch = pitch_of(length);
	n->slots = slots_of(n, n->pitch);
	n->message = n->told = 0;
	n->active = takes_part(n, test);
	if (n->active)
		start_test(n);
	bench_barrier();
}

static void expect(struct perf_node *n, ptl_event_kind_t kind, uint64_t count)
{
	bench_expect(n->b, &n->w, perf_test_name[n->test], kind, count);
}

static void expect_acked(struct perf_node *n)
{
	expect(n, PTL_EVENT_PUT_END, n->first ? n->told : n->message);
	expect(n, PTL_EVENT_ACK, n->first ? n->message : 0);
	expect(n, PTL_EVENT_SEND_END, n->first ? n->message : 0);
}

static void expect_events(struct perf_node *n)
{
	if (perf_is_stream(n->test))
		perf_stream_expect(n);
	else if (n->test == PERF_GET)
		expect(n, n->first ? PTL_EVENT_REPLY_END : PTL_EVENT_GET_END, n->message);
	else if (n->test == PERF_ACK)
		expect_acked(n);
	else {
		expect(n, PTL_EVENT_PUT_END, n->message);
		expect(n, PTL_EVENT_SEND_END, n->message);
	}
}

void perf_end(struct perf_node *n)
{
	if (!n->active)
		return;
	expect_events(n);
	bench_check(PtlMDUnlink(n->out), "PtlMDUnlink");
}

void perf_rounds(struct perf_node *n, uint64_t count)
{
	if (perf_is_stream(n->test))
		perf_stream_rounds(n, count);
	else
		perf_pair_rounds(n, count);
}

/* Restore the bytes that the timed gets expect. */
static void restore_source(struct perf_node *n)
{
	if (n->first) {
		bench_await(&n->w, PTL_EVENT_PUT_END, ++n->told);
		return;
	}
	perf_fill(n->tx, n->length + PERF_SHIFTS * 64, 0);
	perf_tell(n, n->peer, 0);
}

void perf_full_rounds(struct perf_node *n)
{
	if (n->test == PERF_NTO1)
		bench_barrier(); /* fast senders wait here for rank 0 */
	n->full = true;
	perf_rounds(n, perf_is_stream(n->test) ? 1 : FULL_ROUNDS);
	n->full = false;
	if (n->test == PERF_NTO1)
		bench_barrier();
	if (n->test == PERF_GET)
		restore_source(n);
}

/* ---- setting up ---- */

uint64_t perf_rx_bytes(const struct perf_node *n)
{
	uint64_t sets = n->b->rank ? 1 : n->b->size;
	uint64_t large = 2 * pitch_of(n->largest);
	return sets * (large > 2 * SLOT_BYTES ? large : 2 * SLOT_BYTES);
}

void perf_open(struct perf_node *n)
{
	uint64_t tx = n->largest + PERF_SHIFTS * 64, rx = perf_rx_bytes(n);
	uint64_t events = 3ull * n->window * n->b->size;
	n->paired = (n->b->rank ^ 1) < n->b->size;
	n->tx = n->heap ? bench_allocate_shared(tx) : bench_allocate(tx);
	n->rx = n->heap ? bench_allocate_shared(rx) : bench_allocate(rx);
	n->sender = bench_allocate(n->b->size * sizeof *n->sender);
	n->w.eq = bench_queue(n->b, events < QUEUE_LEAST ? QUEUE_LEAST : events);
	bench_post(n->b, PERF_PORTAL_PUT, BENCH_BITS, PTL_MD_OP_PUT, n->rx, rx, n->w.eq);
	bench_post(n->b, PERF_PORTAL_GET, BENCH_BITS, PTL_MD_OP_GET, n->tx, tx, n->w.eq);
	n->note = bench_bind(n->b, NULL, 0, PTL_EQ_NONE);
}
