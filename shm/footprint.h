/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * footprint - the memory that a node of a job takes, by its number of nodes
 *
 *	published	control block and one window at once; full lanes and more windows
 *			when they are first used, up to seg_len
 *	doorbell	one page
 *	host		the mailbox at once; event rings and pendings when they are needed
 *	trace		the size in PTL3_TRACE at once, behind the published part; nothing
 *			if it is off
 *	shared heap	nothing until the first block is allocated
 *
 * Each is in whole pages; published and host are in hugepages if the machine has some.
 * tests/stress/footprint.c compares a node with these figures to the byte.  Any thread
 * may call p3_footprint_of; there is no state.
 */
#ifndef P3_SHM_FOOTPRINT_H
#define P3_SHM_FOOTPRINT_H

#include "shm/layout.h"
#include "shm/mailbox.h"
#include "shm/trace.h"

#include <stdbool.h>

#define P3_HOST_LEN ((uint64_t)1 << 30) /* sparse: address space only */
/*
 * The kernel's memory for one node that another node has mapped: page tables and
 * mappings, measured as 9.3 KiB.  A job of N nodes has N such mappings at the start, and
 * N * N when each node has talked to all.  With PTL3_ATTACH=start it has N * N from the
 * start on.
 */
#define P3_PAIR_KERNEL 9523

/* Bytes that the process has for one source besides (struct p3_peer). */
#define P3_SOURCE_PRIVATE 1920u
/* Pendings, which the host segment gets in chunks when they are needed: the bytes of
 * one, the pendings in a chunk, and the bytes of all at most. */
#define P3_PENDING_LEN   384u
#define P3_PENDING_CHUNK 1024u
#define P3_PENDING_LIMIT ((uint64_t)64 << 20)

#define P3_NODE_FDS      6 /* lifeline, eventfd, heap and three segments */

struct p3_footprint {
	uint64_t published; /* bytes at the start */
	uint64_t doorbell;
	uint64_t host;
	uint64_t start;     /* sum of the three above */
	uint64_t grown;     /* published at its largest */
	uint64_t hugepages; /* hugepages of published and host at the start; 0:
			     * ordinary pages */
};

/* Return the bytes that a node publishes for one source: at the start, with its share of
 * a page, */
static inline uint64_t p3_footprint_source(void)
{
	return P3_PAGE / P3_PARTS + 2 * sizeof(struct p3_xfer);
}

/* and in addition when the pair has exchanged some messages. */
static inline uint64_t p3_footprint_lane(uint32_t nnodes)
{
	struct p3_layout l = p3_layout_of(nnodes);
	return p3_full_lane_len(&l);
}

/* Compute a node's memory; records is the length of the trace, 0 if it is off. */
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
