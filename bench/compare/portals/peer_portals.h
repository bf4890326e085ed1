/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_portals - patterns with libportals that no program of bench/ has
 *
 *	yod -sz 2 peer_portals WHO quick|full test=list ...
 *
 *	am	ns	am.c		round trip of an active message of x bytes
 *	queues	ns	queues.c	half a round trip of 8 bytes, with the events in
 *					the last of x queues that PtlEQPoll reads
 *	threads	M/s	threads.c	messages of 8 bytes from x threads to as many, all
 *					of them; windows of 64 as in rate
 *	posted	ns	steps.c		half a round trip of x bytes, see peer.h
 *	step	ns	steps.c		step x of such a round, see peer.h
 *
 * Both ranks run each pattern; rank 0 keeps the time.
 */
#ifndef BENCH_COMPARE_PEER_PORTALS_H
#define BENCH_COMPARE_PEER_PORTALS_H

#include "../../bench.h"
#include "../peer.h"

enum {
	PORTAL_AM = 4,
	PORTAL_QUEUES = 8,
	PORTAL_THREADS = 24,
	PORTAL_STEPS = 48,
	PORTAL_MOST = 16
};

struct node {
	struct bench b;
	ptl_process_id_t other;
};

double am_run(struct node *n, uint64_t bytes, bool quick);
double queues_run(struct node *n, uint64_t queues, bool quick);
double threads_run(struct node *n, uint64_t threads, bool quick);
double posted_run(struct node *n, uint64_t bytes, bool quick);
double step_run(struct node *n, uint64_t step, bool quick);

/* Put bytes of a descriptor without an ACK, and end the program if that fails. */
void node_put(const struct node *n, ptl_handle_md_t md, uint64_t at, uint64_t bytes,
	ptl_pt_index_t portal, uint64_t remote, ptl_hdr_data_t hdr);

#endif
