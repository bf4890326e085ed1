/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf - messages between ranks, for portalperf and pipeperf
 *
 *	perf_node.c	descriptors; begin and end of a test at one size
 *	perf_data.h	what is in the messages, and the checks of it
 *	perf_pair.c	put, get, bidir: one message at a time
 *	perf_stream.c	stream, rate, nto1: windows of messages
 *	perf_raw.c	the raw hand-over of a cache line between the same two CPUs
 *
 * Ranks 2k and 2k + 1 are a pair; in nto1 all send to rank 0.  Each rank has a match
 * entry with a descriptor for puts and one for gets, and one free-floating descriptor per
 * message size; all of them are there before a timed loop begins.  The loops use
 * START_DISABLE and no ACK, and call nothing but PtlPut, PtlGet and PtlEQWait (or
 * PtlEQPoll).
 *
 * Data: in "full" rounds messages are filled, and checked, from end to end, with the
 * bytes behind them.  Otherwise the first and the last word of every message, and one
 * that wanders through long ones, are changed and checked.  Messages of a window are the
 * same; what tells them apart is hdr_data.
 */
#ifndef BENCH_PERF_H
#define BENCH_PERF_H

#include "bench.h"

enum perf_test {
	PERF_PUT,
	PERF_GET,
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
	bool paired, first; /* first of its pair: starts, and keeps the time */
	uint64_t largest;   /* message, set by the caller */
	unsigned window;    /* messages, likewise */
	bool silent;        /* stream, rate, nto1: no SEND_END, likewise */
	bool heap;          /* buffers of the shared heap, likewise */
	/* the test */
	enum perf_test test;
	uint64_t length;
	bool active;          /* takes part */
	bool full;            /* messages are filled and checked from end to end */
	uint64_t message;     /* number; in window tests, of the window */
	uint64_t told;        /* get: notes that the peer's bytes are ready */
	uint64_t hdr_sum;     /* of the window's messages */
	ptl_handle_md_t out;  /* free-floating, length bytes; of tx, for gets of rx */
	ptl_handle_md_t note; /* empty */
	struct perf_sender {
		uint64_t messages, hdr_sum;
	} * sender; /* nto1, rank 0: by rank */
	/* memory: the receiver's is cut into slots of pitch bytes */
	char *tx, *rx;
	uint64_t pitch, slots;
};

/* ---- perf_node.c ---- */

/* b, largest, window, silent, heap, w.poll are set. */
void perf_open(struct perf_node *n);
/* All ranks.  No rank sends before all have come out of begin's barrier. */
void perf_begin(struct perf_node *n, enum perf_test test, uint64_t length);
/* Checks that there were as many events as messages. */
void perf_end(struct perf_node *n);
/* Ranks that take part: count round trips or windows. */
void perf_rounds(struct perf_node *n, uint64_t count);
/* Two of a pair, before messages or between rounds: what the first has. */
uint64_t perf_agree(struct perf_node *n, uint64_t value);
/* A few full rounds. */
void perf_full_rounds(struct perf_node *n);

void perf_put(struct perf_node *n, uint64_t remote, ptl_hdr_data_t hdr);
void perf_tell(struct perf_node *n, ptl_process_id_t whom, ptl_hdr_data_t what);
void perf_wrong(struct perf_node *n, uint64_t at);

/* Messages of count rounds, and how many times a message's bytes go by in each. */
uint64_t perf_messages(const struct perf_node *n, uint64_t count);

/* ---- perf_pair.c, perf_stream.c ---- */

void perf_pair_rounds(struct perf_node *n, uint64_t count);
void perf_stream_rounds(struct perf_node *n, uint64_t count);
void perf_stream_expect(struct perf_node *n);

/* ---- perf_raw.c ---- */

struct perf_page; /* two cache lines that a pair of ranks share */

/* Made by one rank, opened by the other through /proc; NULL with errno. */
struct perf_page *perf_page_make(int *fd_out);
struct perf_page *perf_page_open(uint32_t pid, uint32_t fd);
void perf_page_close(struct perf_page *p);

/* rounds round trips, the first rank hands over first; both call it. */
void perf_page_bounce(struct perf_page *p, bool first, uint64_t rounds);

#endif
