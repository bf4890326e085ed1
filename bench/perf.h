/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf - messages between ranks, for portalperf and pipeperf
 *
 *	perf_node.c	descriptors; begin and end of a test at one size
 *	perf_data.h	the content of messages, and its checks
 *	perf_pair.c	put, get, ack, bidir: one message at a time
 *	perf_stream.c	stream, rate, nto1: windows of messages
 *	perf_raw.c	the raw hand-over of a cache line between the same two CPUs
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
	uint64_t hdr_sum;     /* sum over the window's messages */
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
/* Agree within a pair, before messages or between rounds: return the first rank's
 * value. */
uint64_t perf_agree(struct perf_node *n, uint64_t value);
/* Run a few full rounds. */
void perf_full_rounds(struct perf_node *n);

void perf_put(struct perf_node *n, uint64_t remote, ptl_hdr_data_t hdr);
void perf_put_for_ack(struct perf_node *n, ptl_hdr_data_t hdr);
void perf_tell(struct perf_node *n, ptl_process_id_t whom, ptl_hdr_data_t what);
void perf_wrong(struct perf_node *n, uint64_t at);

/* Return the messages of count rounds, and the number of times their bytes move in
 * each. */
uint64_t perf_messages(const struct perf_node *n, uint64_t count);

/* ---- perf_pair.c, perf_stream.c ---- */

void perf_pair_rounds(struct perf_node *n, uint64_t count);
void perf_stream_rounds(struct perf_node *n, uint64_t count);
void perf_stream_expect(struct perf_node *n);

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
