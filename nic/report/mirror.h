/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mirror - the gauges of the control block, for tools
 *
 * Only the lease holder calls these functions, except where a comment says (any).  The
 * state is in the published segment: gauges, lines of queues and lines of waits.
 */
#ifndef P3_NIC_REPORT_MIRROR_H
#define P3_NIC_REPORT_MIRROR_H

#include "nic/state.h"

#define P3_MIRROR_PASSES 4096u /* a power of two */

/* Write the gauges as they are now.  next is the holder of the lease after this call:
 * the caller, or P3_LEASE_FREE if it is about to leave. */
P3_RARE void p3_mirror_gauges(struct p3_nic *n, enum p3_lease_holder next);
/* Write this peer's gauges. */
void p3_mirror_peer(struct p3_peer *p, uint64_t now_ns);
/* A peer is gone: show that nothing waits for it. */
void p3_mirror_lost(struct p3_peer *p);
/* Show the queue and the place of its ring, or that there is no queue any more. */
void p3_mirror_queue(struct p3_nic *n, const struct p3_eq *eq);
void p3_mirror_no_queue(struct p3_nic *n, const struct p3_eq *eq);
/* Write the settings in effect, once. */
void p3_mirror_conf(struct p3_nic *n);

/* The events or the result that a thread waits for. */
struct p3_wants {
	enum p3_wait_kind kind;
	uint32_t n;
	const uint64_t *handles; /* COMMAND: its p3_op */
};

/* (any) Take a line for the calling thread, which is about to sleep.  Return NULL if
 * there is none left. */
struct p3_wait_line *p3_mirror_wait(struct p3_nic *n, const struct p3_wants *wants,
	uint64_t since_ns, uint64_t deadline_ns);
/* (any) Give the line back.  Accept NULL. */
void p3_mirror_waited(struct p3_wait_line *line);

#endif
