/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of performance tests; begin and end of a test at one size. */
#include "perf_data.h"

enum { FULL_ROUNDS = 4, SLOT_BYTES = 64 << 10, QUEUE_LEAST = 256 };

const char *const perf_test_name[PERF_TESTS] = {
	"put", "get", "ack", "bidir", "stream", "rate", "nto1"};

static bool is_stream(enum perf_test test)
{
	return test == PERF_STREAM || test == PERF_RATE || test == PERF_NTO1;
}

/* ---- bytes ---- */

void perf_fill(char *at, uint64_t length, uint64_t seed)
{
	for (uint64_t i = 0; i < length; i += PERF_WORD) {
		uint64_t w = perf_word(i / PERF_WORD, seed);
		memcpy(at + i, &w, length - i < PERF_WORD ? length - i : PERF_WORD);
	}
}

/* Return the position of the first wrong byte, or length. */
static uint64_t differs_at(const char *at, uint64_t length, uint64_t first, uint64_t seed)
{
	for (uint64_t i = 0; i < length; i++) {
		uint64_t w = perf_word(first + i / PERF_WORD, seed);
		if (i % PERF_WORD == 0 && length - i >= PERF_WORD &&
			!memcmp(at + i, &w, PERF_WORD))
			i += PERF_WORD - 1;
		else if (at[i] != ((char *)&w)[i % PERF_WORD])
			return i;
	}
	return length;
}

void perf_guard(char *at)
{
	memset(at, 0xa5, PERF_GUARD);
}

static bool is_guarded(const char *at)
{
	char want[PERF_GUARD];
	perf_guard(want);
	return !memcmp(at, want, PERF_GUARD);
}

void perf_check_all(struct perf_node *n, const char *rx, uint64_t first, uint64_t seed)
{
	uint64_t at = differs_at(rx, n->length, first, seed);
	if (at < n->length || !is_guarded(rx + n->length))
		perf_wrong(n, at);
}

void perf_wrong(struct perf_node *n, uint64_t at)
{
	bench_wrong(n->b,
		"%s of %llu bytes, message %llu: wrong byte at %llu; expected what was "
		"sent; the library damages data",
		perf_test_name[n->test], (unsigned long long)n->length,
		(unsigned long long)n->message, (unsigned long long)at);
}

/* ---- puts ---- */

static int put(
	struct perf_node *n, ptl_ack_req_t ack, uint64_t remote, ptl_hdr_data_t hdr)
{
	return PtlPut(n->out, ack, n->peer, PERF_PORTAL_PUT, 0, BENCH_BITS, remote, hdr);
}

static void put_again(struct perf_node *n, int rc, ptl_ack_req_t ack, uint64_t remote,
	ptl_hdr_data_t hdr)
{
	while (rc == PTL_NO_SPACE) { /* bench_try() advances the operations that wait */
		bench_try(&n->w);
		rc = put(n, ack, remote, hdr);
	}
	bench_check(rc, "PtlPut");
}

void perf_put(struct perf_node *n, uint64_t remote, ptl_hdr_data_t hdr)
{
	int rc = put(n, PTL_NO_ACK_REQ, remote, hdr);
	if (__builtin_expect(rc != PTL_OK, 0))
		put_again(n, rc, PTL_NO_ACK_REQ, remote, hdr);
}

void perf_put_for_ack(struct perf_node *n, ptl_hdr_data_t hdr)
{
	int rc = put(n, PTL_ACK_REQ, 0, hdr);
	if (__builtin_expect(rc != PTL_OK, 0))
		put_again(n, rc, PTL_ACK_REQ, 0, hdr);
}

void perf_tell(struct perf_node *n, ptl_process_id_t whom, ptl_hdr_data_t what)
{
	int rc = PtlPut(
		n->note, PTL_NO_ACK_REQ, whom, PERF_PORTAL_PUT, 0, BENCH_BITS, 0, what);
	bench_check(rc, "PtlPut");
}

/* Send the value from the first rank to the other one, and return it.  Do not count the
 * event of the note, so that messages still start at 0. */
uint64_t perf_agree(struct perf_node *n, uint64_t value)
{
	if (n->first) {
		perf_tell(n, n->peer, value);
		return value;
	}
	bench_await(&n->w, PTL_EVENT_PUT_END, n->w.seen[PTL_EVENT_PUT_END] + 1);
	n->w.seen[PTL_EVENT_PUT_END]--;
	return n->w.last.hdr_data;
}

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
	bool events = !n->silent || !is_stream(n->test);
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
	n->message = n->told = n->hdr_sum = 0;
	n->active = takes_part(n, test);
	if (n->active)
		start_test(n);
	bench_barrier();
}

uint64_t perf_messages(const struct perf_node *n, uint64_t count)
{
	uint64_t senders = n->test == PERF_NTO1 ? n->b->size - 1 : 1;
	return is_stream(n->test) ? count * n->window * senders : count;
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
	if (is_stream(n->test))
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
	if (is_stream(n->test))
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
	perf_rounds(n, is_stream(n->test) ? 1 : FULL_ROUNDS);
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
