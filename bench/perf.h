/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf - messages between ranks, for portalperf and pipeperf
 *
 *	perf_node.c	descriptors; begin and end of a test at one size
 *	perf_pair.c	put, get, ack, bidir: one message at a time
 *	perf_stream.c	stream, rate, nto1: windows of messages
 *	perf_data.h	the words that the timed loops write and check
 *	perf_data.c	the content of full messages, and its checks
 *	perf_put.c	puts of messages and of notes
 *	perf_raw.c	the raw hand-over of a cache line between the same two CPUs
 *
 * A file calls only those below it.
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

enum perf_test {
	PERF_PUT,
	PERF_GET,
	PERF_ACK,
	PERF_BIDIR,
	PERF_STREAM,
	PERF_RATE,
	PERF_NTO1,
	PERF_TESTS
};

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

/* ---- perf_node.c ---- */

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

/* ---- perf_pair.c, perf_stream.c ---- */

void perf_pair_rounds(struct perf_node *n, uint64_t count);
void perf_stream_rounds(struct perf_node *n, uint64_t count);
void perf_stream_expect(struct perf_node *n);

/* ---- perf_data.c ---- */

enum { PERF_WORD = 8 };

/* Return word k of a full message. */
static inline uint64_t perf_word(uint64_t k, uint64_t seed)
{
	return (k + 1) * 0x9e3779b97f4a7c15u ^ (seed + 1) * 0xd1b54a32d192ed03u;
}

void perf_fill(char *at, uint64_t length, uint64_t seed);
/* Write the bytes that are to stay behind a message. */
void perf_guard(char *at);
/* Check the whole message, whose first word is number first, and the bytes behind it;
 * count an error. */
void perf_check_all(struct perf_node *n, const char *rx, uint64_t first, uint64_t seed);
/* Count an error: the message has a wrong byte there. */
void perf_wrong(struct perf_node *n, uint64_t at);

/* ---- perf_put.c ---- */

void perf_put(struct perf_node *n, uint64_t remote, ptl_hdr_data_t hdr);
void perf_put_for_ack(struct perf_node *n, ptl_hdr_data_t hdr);
/* Put a note, an empty message. */
void perf_tell(struct perf_node *n, ptl_process_id_t whom, ptl_hdr_data_t what);
/* Agree within a pair, before messages or between rounds: return the first rank's
 * value. */
uint64_t perf_agree(struct perf_node *n, uint64_t value);
/* Return the number of messages of count rounds, by all senders. */
uint64_t perf_messages(const struct perf_node *n, uint64_t count);

static inline bool perf_is_stream(enum perf_test test)
{
	return test == PERF_STREAM || test == PERF_RATE || test == PERF_NTO1;
}

/* ---- perf_raw.c ---- */

struct perf_page; /* two cache lines that a pair of ranks shares */

/* Make the page in one rank; open it in the other through /proc.  Return NULL with
 * errno. */
struct perf_page *perf_page_make(int *fd_out);
struct perf_page *perf_page_open(uint32_t pid, uint32_t fd);
void perf_page_close(struct perf_page *p);

/* Run round trips; the first rank hands over first; both ranks call it.  yields: call
 * sched_yield after each look that finds nothing. */
void perf_page_bounce(struct perf_page *p, bool first, uint64_t rounds, bool yields);

#endif
