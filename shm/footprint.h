/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * footprint - what a node of a job takes, by its number of nodes
 *
 *	published	control block and one window at once; full lanes and more windows
 *			when they are first used, up to seg_len
 *	doorbell	one page
 *	host		the mailbox at once; event rings and pendings as they are wanted
 *	trace		what PTL3_TRACE says at once, behind the published part; nothing
 *			if it is off
 *	shared heap	nothing until a block is wanted
 *
 * Each is in whole pages; published and host are in hugepages where there are some.
 * tests/stress/footprint.c compares a node with it to the byte.
 */
#ifndef P3_SHM_FOOTPRINT_H
#define P3_SHM_FOOTPRINT_H

#include "shm/layout.h"
#include "shm/mailbox.h"
#include "shm/trace.h"

#include <stdbool.h>

#define P3_HOST_LEN ((uint64_t)1 << 30) /* sparse */
/*
 * Of the kernel, for each node that a node has mapped: page tables and mappings, as
 * measured (9.3 KiB).  A job of N nodes has N times N of them.
 */
#define P3_PAIR_KERNEL 9523

#define P3_NODE_FDS    6 /* lifeline, eventfd, heap and three segments */

struct p3_footprint {
	uint64_t published; /* bytes at the start */
	uint64_t doorbell;
	uint64_t host;
	uint64_t start;     /* all of them */
	uint64_t grown;     /* published at its largest */
	uint64_t hugepages; /* of them, at the start; 0: ordinary pages */
};

/* records: of the trace, 0: it is off */
static inline struct p3_footprint p3_footprint_of(
	uint32_t nnodes, bool huge, uint32_t records)
{
	struct p3_layout l = p3_layout_of(nnodes);
	uint64_t page = huge ? P3_HUGE : P3_PAGE;
	struct p3_footprint f = {
		.published = p3_round_up(l.ctl_len + P3_WINDOW_LEN, page) +
			     p3_round_up(p3_trace_len(records), page),
		.doorbell = P3_PAGE,
		.host = p3_round_up(sizeof(struct p3_mailbox), page),
		.grown = l.seg_len + p3_round_up(p3_trace_len(records), page)};
	f.start = f.published + f.doorbell + f.host;
	f.hugepages = huge ? (f.published + f.host) / P3_HUGE : 0;
	return f;
}

#endif
