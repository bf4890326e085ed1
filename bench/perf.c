/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between ranks: content, puts, the raw hand-over, tests and their rounds. */
#include "perf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the content of messages: filling, and checking from end to end ---- */

const char *const perf_test_name[PERF_TESTS] = {
	"put", "get", "ack", "bidir", "stream", "rate", "nto1"};

void perf_fill(char *at, uint64_t length, uint64_t seed)
{
	for (uint64_t i = 0; i < length; i += PERF_WORD) {
		uint64_t w = perf_word(i / PERF_WORD, seed);
		memcpy(at + i, &w, length - i < PERF_WORD ? length - i : PERF_WORD);
	}
}

uint64_t perf_differs_at(const char *at, uint64_t length, uint64_t first, uint64_t seed)
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

static void guard(char *at)
{
	memset(at, 0xa5, PERF_GUARD);
}

void perf_check_all(struct perf_node *n, const char *rx, uint64_t first, uint64_t seed)
{
	char want[PERF_GUARD];
	uint64_t at = perf_differs_at(rx, n->length, first, seed);
	guard(want);
	if (at < n->length || memcmp(rx + n->length, want, PERF_GUARD) != 0)
		perf_wrong(n, at);
}

void perf_wrong(struct perf_node *n, uint64_t at)
{
	bench_wrong(n->b,
		"%s of %" PRIu64 " bytes, message %" PRIu64 ": wrong byte at %" PRIu64
		"; expected what was sent; the library damages data",
		perf_test_name[n->test], n->length, n->message, at);
}

/* ---- notes, and the number of messages of some rounds ---- */

/* Put a note, an empty message. */
static void tell(struct perf_node *n, ptl_process_id_t whom, ptl_hdr_data_t what)
{
	bench_put(n->b, n->note, PTL_NO_ACK_REQ, whom, PERF_PORTAL_PUT, BENCH_BITS, 0,
		what);
}

/* Return what a note tells.  Its event does not count, so that messages still start at
 * 0. */
static uint64_t told(struct perf_node *n)
{
	bench_await(&n->w, PTL_EVENT_PUT_END, n->w.seen[PTL_EVENT_PUT_END] + 1);
	n->w.seen[PTL_EVENT_PUT_END]--;
	return n->w.last.hdr_data;
}

uint64_t perf_agree(struct perf_node *n, uint64_t value)
{
	if (!n->first)
		return told(n);
	tell(n, n->peer, value);
	return value;
}

bool perf_both(struct perf_node *n, bool mine)
{
	if (n->first)
		return told(n) && mine;
	tell(n, n->peer, mine);
	return mine;
}

uint64_t perf_messages(const struct perf_node *n, uint64_t count)
{
	uint64_t senders = n->test == PERF_NTO1 ? n->b->size - 1 : 1;
	return perf_is_stream(n->test) ? count * n->window * senders : count;
}

/* ---- the raw hand-over of a cache line between two CPUs ---- */

static struct hand *map(int fd)
{
	void *at = mmap(
		NULL, sizeof(struct hand), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

struct hand *perf_hand_share(struct perf_node *n)
{
	struct hand *h = NULL;
	char name[64];
	int fd = -1;
	if (n->first) {
		fd = memfd_create("portalperf-raw", MFD_CLOEXEC);
		if (fd >= 0 && !ftruncate(fd, sizeof *h))
			h = map(fd);
	}
	uint64_t at = perf_agree(n, h ? (uint64_t)getpid() << 32 | (unsigned)fd : 0);
	if (!n->first && at) {
		snprintf(name, sizeof name, "/proc/%u/fd/%u", (unsigned)(at >> 32),
			(unsigned)at);
		fd = open(name, O_RDWR | O_CLOEXEC);
		h = fd < 0 ? NULL : map(fd);
	}
	if (!perf_both(n, h != NULL) && n->first && h) {
		munmap(h, sizeof *h);
		h = NULL;
	}
	if (fd >= 0)
		close(fd);
	return h;
}

void perf_hand_over(struct hand *h, const struct perf_node *n, uint64_t count)
{
	_Atomic uint64_t *mine = n->first ? &h->ping : &h->pong;
	uint64_t done = atomic_load_explicit(mine, memory_order_relaxed);
	hand_over(h, n->first, done, count, n->w.yields);
}

/* ---- put, get, ack and bidir: one message at a time ---- */

static inline void ping_pong(struct perf_node *n, bool first)
{
	if (!first) {
		bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
		perf_check_stamp(n, n->rx, n->b->rank ^ 1);
	}
	perf_stamp(n);
	perf_put(n, PTL_NO_ACK_REQ, 0, 0);
	if (first)
		bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
	bench_await(&n->w, PTL_EVENT_SEND_END, n->message + 1);
	if (first)
		perf_check_stamp(n, n->rx, n->b->rank ^ 1);
}

/* Exchange messages.  The peer can be one message ahead, not two: slots are used in
 * turn. */
static inline void exchange(struct perf_node *n)
{
	uint64_t slot = (n->message & 1) * n->pitch;
	perf_stamp(n);
	perf_put(n, PTL_NO_ACK_REQ, slot, 0);
	bench_await(&n->w, PTL_EVENT_SEND_END, n->message + 1);
	bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
	perf_check_stamp(n, n->rx + slot, n->b->rank ^ 1);
}

/* Get, and check the bytes.  Each get starts a little further on, so each one fetches
 * other bytes. */
static inline void fetch(struct perf_node *n)
{
	uint64_t at = n->message % PERF_SHIFTS * 64, seed = n->full ? n->message : 0;
	if (n->full)
		bench_await(&n->w, PTL_EVENT_PUT_END, ++n->told);
	BENCH_DO(PtlGet, n->out, n->peer, PERF_PORTAL_GET, 0, BENCH_BITS, at);
	bench_await(&n->w, PTL_EVENT_REPLY_END, n->message + 1);
	const uint64_t *rx = (const uint64_t *)n->rx;
	uint64_t first = at / PERF_WORD, w = perf_word(first, seed), last = perf_last(n);
	if (n->full)
		perf_check_all(n, n->rx, first, seed);
	else if (n->length >= PERF_WORD) {
		perf_check_word(n, rx[0], w, 0);
		perf_check_word(n, rx[last], perf_word(first + last, seed), last);
	} else if (memcmp(rx, &w, n->length))
		perf_wrong(n, 0);
}

static inline void serve(struct perf_node *n)
{
	if (n->full) {
		perf_fill(n->tx, n->length + PERF_SHIFTS * 64, n->message);
		tell(n, n->peer, 0);
	}
	bench_await(&n->w, PTL_EVENT_GET_END, n->message + 1);
}

/* Put a message, and wait until its bytes are in the target's memory; in full rounds wait
 * also until the target has checked them. */
static inline void put_acked(struct perf_node *n)
{
	perf_stamp(n);
	perf_put(n, PTL_ACK_REQ, 0, n->message);
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
		tell(n, n->peer, 0);
	}
}

static void pair_rounds(struct perf_node *n, uint64_t count)
{
#define REPEAT(what)                                                                     \
	for (; n->message < end; n->message++)                                           \
	what
	uint64_t end = n->message + count;
	if (n->test == PERF_BIDIR)
		REPEAT(exchange(n));
	else if (n->test == PERF_PUT && n->first)
		REPEAT(ping_pong(n, true));
	else if (n->test == PERF_PUT)
		REPEAT(ping_pong(n, false));
	else if (n->test == PERF_ACK && n->first)
		REPEAT(put_acked(n));
	else if (n->test == PERF_ACK)
		REPEAT(take_acked(n));
	else if (n->first)
		REPEAT(fetch(n));
	else
		REPEAT(serve(n));
}

/*
 * ---- stream, rate, nto1: windows of messages; an empty put answers each window ----
 *
 * hdr_data is the sender's rank in the upper, the message's number in the lower half.
 * The receiver takes the event of every message, and adds the numbers up.
 */

enum { RANK_SHIFT = 40 };

static inline void send_window(struct perf_node *n, uint64_t base)
{
	uint64_t hdr = (uint64_t)n->b->rank << RANK_SHIFT | n->message * n->window;
	perf_stamp(n);
	for (uint64_t i = 0, slot = 0; i < n->window; i++) {
		perf_put(n, PTL_NO_ACK_REQ, base + slot * n->pitch, hdr + i);
		slot = slot + 1 == n->slots ? 0 : slot + 1;
	}
	if (!n->silent)
		bench_await(&n->w, PTL_EVENT_SEND_END, (n->message + 1) * n->window);
	bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
}

static void check_window(
	struct perf_node *n, const char *rx, unsigned sender, uint64_t hdr_sum)
{
	uint64_t w = n->window, used = n->slots < w ? n->slots : w;
	uint64_t want = n->message * w * w + w * (w - 1) / 2; /* sum of its numbers */
	for (uint64_t i = 0; i < used; i++)
		perf_check_stamp(n, rx + i * n->pitch, sender);
	if (hdr_sum != want)
		bench_wrong(n->b,
			"%s of %" PRIu64 " bytes, window %" PRIu64 ": numbers in "
			"hdr_data add up to %" PRIu64 "; expected %" PRIu64
			"; messages are lost, or come twice",
			perf_test_name[n->test], n->length, n->message, hdr_sum, want);
}

static inline void take_window(struct perf_node *n)
{
	uint64_t sum = 0, mask = ((uint64_t)1 << RANK_SHIFT) - 1;
	for (unsigned i = 0; i < n->window; i++) {
		bench_take(&n->w);
		sum += n->w.last.hdr_data & mask;
	}
	check_window(n, n->rx, n->b->rank ^ 1, sum);
	tell(n, n->peer, 0);
}

/* ---- nto1 ---- */

static uint64_t base_of(const struct perf_node *n, unsigned sender)
{
	return n->test == PERF_NTO1 ? sender * n->slots * n->pitch : 0;
}

static void take_from_any(struct perf_node *n)
{
	bench_take(&n->w);
	uint64_t hdr = n->w.last.hdr_data;
	unsigned rank = (unsigned)(hdr >> RANK_SHIFT);
	if (rank == 0 || rank >= n->b->size)
		bench_die(1, "nto1: hdr_data names rank %u; expected 1 to %u", rank,
			n->b->size - 1);
	struct perf_sender *s = &n->sender[rank];
	s->hdr_sum += hdr & (((uint64_t)1 << RANK_SHIFT) - 1);
	if (++s->messages % n->window)
		return;
	n->message = s->messages / n->window - 1;
	check_window(n, n->rx + base_of(n, rank), rank, s->hdr_sum);
	s->hdr_sum = 0;
	tell(n, bench_id(n->b, rank), 0);
}

static void stream_rounds(struct perf_node *n, uint64_t count)
{
	uint64_t base = base_of(n, n->b->rank), end = n->message + count;
	if (n->test == PERF_NTO1 && !n->first) {
		for (uint64_t i = perf_messages(n, count); i; i--)
			take_from_any(n); /* counts the windows of a sender in message */
		n->message = end = n->told += count;
	}
	for (; n->message < end; n->message++)
		if (n->first)
			send_window(n, base);
		else
			take_window(n);
}

enum { FULL_ROUNDS = 4, SLOT_BYTES = 64 << 10, QUEUE_LEAST = 256 };

/* ---- one test at one size ---- */

static uint64_t pitch_of(uint64_t length)
{
	return (length + PERF_GUARD + 127) / 128 * 128;
}

/* A window has at least two slots.  Together they have at most SLOT_BYTES, unless two
 * slots are longer. */
void perf_begin(struct perf_node *n, enum perf_test test, uint64_t length)
{
	n->test = test;
	n->length = length;
	n->pitch = pitch_of(length);
	n->slots = SLOT_BYTES / n->pitch;
	n->slots = n->slots < n->window ? n->slots : n->window;
	n->slots = n->slots < 2 ? 2 : n->slots;
	n->message = n->told = 0;
	n->active = test == PERF_NTO1 ? n->b->size > 1 : n->paired;
	if (n->active) {
		bool target = n->test == PERF_NTO1, get = n->test == PERF_GET;
		bool events = !n->silent || !perf_is_stream(n->test);
		uint64_t sets = target && n->b->rank == 0 ? n->b->size : 1;
		n->peer = bench_id(n->b, target ? 0 : n->b->rank ^ 1);
		n->first = target ? n->b->rank != 0 : n->b->rank % 2 == 0;
		for (uint64_t i = 0; i < n->slots * sets; i++)
			guard(n->rx + i * n->pitch + n->length);
		memset(n->sender, 0, n->b->size * sizeof *n->sender);
		n->out = bench_bind(n->b, get ? n->rx : n->tx, n->length,
			events ? n->w.eq : PTL_EQ_NONE);
		bench_watch_reset(&n->w, n->first              ? BENCH_LOSE_NONE
					 : get                 ? PTL_EVENT_GET_END
					 : n->test == PERF_ACK ? PTL_EVENT_PUT_END
							       : BENCH_LOSE_NONE);
	}
	bench_barrier();
}

static void expect(struct perf_node *n, ptl_event_kind_t kind, uint64_t count)
{
	bench_expect(n->b, &n->w, perf_test_name[n->test], kind, count);
}

void perf_end(struct perf_node *n)
{
	uint64_t all = n->message;
	if (!n->active)
		return;
	if (n->test == PERF_GET) {
		expect(n, n->first ? PTL_EVENT_REPLY_END : PTL_EVENT_GET_END, all);
	} else if (n->test == PERF_ACK) {
		expect(n, PTL_EVENT_PUT_END, n->first ? n->told : all);
		expect(n, PTL_EVENT_ACK, n->first ? all : 0);
		expect(n, PTL_EVENT_SEND_END, n->first ? all : 0);
	} else if (perf_is_stream(n->test)) {
		expect(n, PTL_EVENT_PUT_END, n->first ? all : perf_messages(n, all));
		expect(n, PTL_EVENT_SEND_END,
			n->silent || !n->first ? 0 : all * n->window);
	} else {
		expect(n, PTL_EVENT_PUT_END, all);
		expect(n, PTL_EVENT_SEND_END, all);
	}
	BENCH_DO(PtlMDUnlink, n->out);
}

void perf_rounds(struct perf_node *n, uint64_t count)
{
	if (perf_is_stream(n->test))
		stream_rounds(n, count);
	else
		pair_rounds(n, count);
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
	if (n->test == PERF_GET && n->first) {
		bench_await(&n->w, PTL_EVENT_PUT_END, ++n->told);
	} else if (n->test == PERF_GET) { /* restore what the timed gets expect */
		perf_fill(n->tx, n->length + PERF_SHIFTS * 64, 0);
		tell(n, n->peer, 0);
	}
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
	bench_post(n->b, PERF_PORTAL_PUT, PTL_MD_OP_PUT, n->rx, rx, n->w.eq);
	bench_post(n->b, PERF_PORTAL_GET, PTL_MD_OP_GET, n->tx, tx, n->w.eq);
	n->note = bench_bind(n->b, NULL, 0, PTL_EQ_NONE);
}
