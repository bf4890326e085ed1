/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf - messages between ranks, for portalperf and cciperf
 *
 * Ranks 2k and 2k + 1 are a pair; in nto1 all send to rank 0.  Each rank has a match
 * entry with a descriptor for puts and one for gets, and one free-floating descriptor per
 * message size; all of them are there before a timed loop begins.  The loops use
 * START_DISABLE and no ACK (except in the test ack), and call nothing but PtlPut, PtlGet
 * and PtlEQWait (or PtlEQPoll).
 *
 * Data: in "full" rounds messages are filled, and checked, from end to end, with the
 * bytes behind them.  Otherwise the first and the last word of every message, and one
 * that wanders through long ones, are changed and checked.  Messages of a window are
 * equal except for hdr_data.  Those of ack carry their number in hdr_data, and only the
 * full ones are checked: the next one may be there before the target looks.
 */
#ifndef BENCH_PERF_H
#define BENCH_PERF_H

#include "bench.h"

#include <string.h>

/* clang-format off */
enum perf_test {
	PERF_PUT, PERF_GET, PERF_ACK, PERF_BIDIR, PERF_STREAM, PERF_RATE, PERF_NTO1,
	PERF_TESTS
};
/* clang-format on */

extern const char *const perf_test_name[PERF_TESTS];

enum { PERF_PORTAL_PUT = 4, PERF_PORTAL_GET = 5 };
enum { PERF_GUARD = 64, PERF_SHIFTS = 16, PERF_RATE_BYTES = 8 };

struct perf_node {
	struct bench *b;
	struct bench_watch w;
	ptl_process_id_t peer;
	bool paired, first; /* first of its pair: it starts, and keeps the time */
	uint64_t largest;   /* longest message, set by the caller */
	unsigned window;    /* messages, set by the caller */
	bool silent;        /* stream, rate, nto1: no SEND_END, set by the caller */
	bool heap;          /* buffers are in the shared heap, set by the caller */
	/* the test */
	enum perf_test test;
	uint64_t length;
	bool active;          /* the rank takes part */
	bool full;            /* messages are filled and checked from end to end */
	uint64_t message;     /* number of the message; in window tests, of the window */
	uint64_t told;        /* get, ack: notes of the peer in full rounds */
	ptl_handle_md_t out;  /* free-floating, length bytes of tx, for gets of rx */
	ptl_handle_md_t note; /* descriptor of an empty message */
	struct perf_sender {
		uint64_t messages, hdr_sum;
	} * sender; /* nto1, rank 0: indexed by rank */
	/* memory: the receiver's is divided into slots of pitch bytes */
	char *tx, *rx;
	uint64_t pitch, slots;
};

/* The caller has set b, largest, window, silent, heap and w.poll. */
void perf_open(struct perf_node *n);
/* Return the length of rx. */
uint64_t perf_rx_bytes(const struct perf_node *n);
/* All ranks call both.  No rank sends before all have left the barrier in perf_begin. */
void perf_begin(struct perf_node *n, enum perf_test test, uint64_t length);
/* End a test, and check that there were as many events as messages. */
void perf_end(struct perf_node *n);
/* Ranks that take part: run count round trips or windows. */
void perf_rounds(struct perf_node *n, uint64_t count);
/* Run a few full rounds. */
void perf_full_rounds(struct perf_node *n);
/* Return the number of messages of count rounds, by all senders. */
uint64_t perf_messages(const struct perf_node *n, uint64_t count);

static inline bool perf_is_stream(enum perf_test test)
{
	return test == PERF_STREAM || test == PERF_RATE || test == PERF_NTO1;
}

static inline void perf_put(
	struct perf_node *n, ptl_ack_req_t ack, uint64_t remote, ptl_hdr_data_t hdr)
{
	bench_put(n->b, n->out, ack, n->peer, PERF_PORTAL_PUT, BENCH_BITS, remote, hdr);
}

/* Agree within a pair, before messages or between rounds: return the first rank's
 * value. */
uint64_t perf_agree(struct perf_node *n, uint64_t value);
/* The same in the other direction: return at the first rank whether both say true, and at
 * the other one its own word. */
bool perf_both(struct perf_node *n, bool mine);

/* ---- the raw hand-over of a cache line ---- */

/* Share a line within a pair, through /proc.  Return NULL at both ranks if one of them
 * cannot. */
struct hand *perf_hand_share(struct perf_node *n);

/* Run round trips; both ranks call it.  With yields in the watch, call sched_yield after
 * each look that finds nothing. */
void perf_hand_over(struct hand *h, const struct perf_node *n, uint64_t count);

/* ---- the words of a message ---- */

enum { PERF_WORD = 8 };

/* Return word k of a full message. */
static inline uint64_t perf_word(uint64_t k, uint64_t seed)
{
	return (k + 1) * 0x9e3779b97f4a7c15u ^ (seed + 1) * 0xd1b54a32d192ed03u;
}

void perf_fill(char *at, uint64_t length, uint64_t seed);
/* Return the position of the first byte that is not of word number first and those behind
 * it, or length. */
uint64_t perf_differs_at(const char *at, uint64_t length, uint64_t first, uint64_t seed);
/* Check the whole message, whose first word is number first, and the bytes behind it;
 * count an error. */
void perf_check_all(struct perf_node *n, const char *rx, uint64_t first, uint64_t seed);
/* Count an error: the message has a wrong byte there. */
void perf_wrong(struct perf_node *n, uint64_t at);

enum { PERF_WANDER = 4096 };

/* Return a stamp that differs for each message (or window) and sender, also in its low
 * bytes. */
static inline uint64_t perf_stamp_of(const struct perf_node *n, unsigned sender)
{
	return (n->message * 2 + (sender & 1)) | (uint64_t)sender << 48;
}

/* Return the numbers of words that the timed loop checks besides the first one: the last
 * one, and one that is another one in each message. */
static inline uint64_t perf_last(const struct perf_node *n)
{
	return n->length / PERF_WORD - 1;
}

static inline uint64_t perf_wandering(const struct perf_node *n)
{
	return n->message * 61 % (n->length / PERF_WORD);
}

static inline void perf_stamp(struct perf_node *n)
{
	uint64_t v = perf_stamp_of(n, n->b->rank), *tx = (uint64_t *)n->tx;
	if (n->full) {
		perf_fill(n->tx, n->length, v);
		return;
	}
	if (n->length < PERF_WORD) {
		memcpy(n->tx, &v, n->length);
		return;
	}
	if (n->length >= PERF_WANDER)
		tx[perf_wandering(n)] = v;
	tx[perf_last(n)] = v;
	tx[0] = v;
}

static inline void perf_check_word(
	struct perf_node *n, uint64_t got, uint64_t want, uint64_t k)
{
	if (__builtin_expect(got != want, 0))
		perf_wrong(n, k * PERF_WORD);
}

static inline void perf_check_stamp(struct perf_node *n, const char *at, unsigned sender)
{
	uint64_t v = perf_stamp_of(n, sender);
	const uint64_t *rx = (const uint64_t *)at;
	if (n->full) {
		perf_check_all(n, at, 0, v);
		return;
	}
	if (n->length < PERF_WORD) {
		if (memcmp(at, &v, n->length))
			perf_wrong(n, 0);
		return;
	}
	perf_check_word(n, rx[0], v, 0);
	perf_check_word(n, rx[perf_last(n)], v, perf_last(n));
	if (n->length >= PERF_WANDER)
		perf_check_word(n, rx[perf_wandering(n)], v, perf_wandering(n));
}

#endif
