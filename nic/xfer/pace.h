/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pace - the choice between window and cross-memory read
 *
 * For every power of two of lengths the reader keeps the recent time of both movers,
 * and moves most transfers by the faster one, a few by the other.  The faster mover
 * depends on the machine, on the length, and on the owner, which must run passes to fill
 * a window.  Only the lease holder calls these functions.  Their state is n->pace.
 */
#ifndef P3_NIC_XFER_PACE_H
#define P3_NIC_XFER_PACE_H

#include "nic/state.h"

/* Choose the mover of a transfer that may use a window (bulk) or cma, and begin to time
 * the transfer.  Return true for a window. */
bool p3_xfer_pick(struct p3_nic *n, struct p3_pull *pull);
/* Return the transfer's share of its duration took, by its length, if all transfers
 * together have moved `moved` bytes in that time.  With the whole duration, a transfer
 * that takes turns with others would look slow, and one with a window, which takes the
 * others' time, would look fast. */
uint64_t p3_pace_share(uint64_t took, uint64_t length, uint64_t moved);
/* Let a duration count in the mean of the mover that began the transfer. */
void p3_pace_learn(struct p3_pace *pace, enum p3_mover began, uint64_t took);
/* If the transfer was timed, let its duration count in the mean of the mover that began
 * it. */
void p3_xfer_learn(struct p3_nic *n, const struct p3_pull *pull);

#endif
